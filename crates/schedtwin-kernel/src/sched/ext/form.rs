// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the classes of the releases differ.

use crate::config::{Config, SchedExt};

/// The answers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Tasks are dispatched before the pick, in `balance_scx()`; else in the pick.
    pub(super) balances: bool,
    /// A slice and a virtual time change at the call of the insertion; else when the task gets into the queue.
    pub(super) sets_slice_at_call: bool,
    /// `ops.dequeue()` comes when a task leaves the scheduler's custody; else only for tasks in no queue that are
    /// taken away from the scheduler.
    pub(super) custody: bool,
    /// A synchronous wakeup looks at the previous CPU first, and idle CPUs are looked for in the cache and the node.
    pub(super) near_first: bool,
    /// `ops.update_idle()` comes after the masks have changed.
    pub(super) masks_first: bool,
    /// CPUs that are idle when the scheduler is loaded are told to it.
    pub(super) tells_idle_at_load: bool,
    /// A CPU that runs a class above is not kicked.
    pub(super) kick_spares_above: bool,
    /// An insertion into a local queue wakes the CPU by the class picked last, and gives way within a dispatch.
    pub(super) wakes_by_next_class: bool,
    /// `SCX_DEQ_SCHED_CHANGE` is there.
    pub(super) sched_change: bool,
    /// `scx_bpf_cpuperf_set()` reaches the locked CPU only.
    pub(super) cpuperf_locked: bool,
    /// The class has a DEADLINE server.
    pub(super) server: bool,
    /// `cgroup_set_bandwidth` and `cgroup_set_idle` are there.
    pub(super) cgroup_knobs: bool,
    /// `scx_bpf_reenqueue_local()` works everywhere.
    pub(super) reenqueues_anywhere: bool,
    /// A running task that changes to the class from a higher one is rescheduled.
    pub(super) reschedules_below: bool,
    /// `SCX_ENQ_IMMED` is there.
    pub(super) immed: bool,
    /// In bypass tasks wait in queues of their own, with short slices; else in the global ones.
    pub(super) bypass_queues: bool,
    /// CPUs that idle when a bypass ends are told to the scheduler.
    pub(super) renotifies_idle: bool,
    /// The wake list may be used, if the scheduler allows it.
    pub(super) queued_wakeups: bool,
}

/// What a scheduler's own program finds out about the kernel before it loads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderForm {
    /// `LINUX_KERNEL_VERSION`'s parts.
    pub version: &'static str,
    /// `scx_bpf_reenqueue_local()` works everywhere; else in `cpu_release` only.
    pub reenqueues_anywhere: bool,
}

impl Config {
    /// What loaders see of the class; `None`: there is none.
    pub fn scx_loader_form(&self) -> Option<LoaderForm> {
        let newer = Form::of(self.sched_ext)?.reenqueues_anywhere;
        let version = if newer { "7,3,4" } else { "6,12,95" };
        Some(LoaderForm { version, reenqueues_anywhere: newer })
    }

    /// Whether a scheduler of sched_ext can be loaded.
    pub fn has_sched_ext(&self) -> bool {
        Form::of(self.sched_ext).is_some()
    }
}

impl Form {
    /// `None`: the kernel has no such class.
    pub(super) fn of(point: SchedExt) -> Option<Form> {
        let newer = match point {
            SchedExt::None => return None,
            SchedExt::V6_12 => false,
            SchedExt::V7_3 => true,
        };
        Some(Form {
            balances: !newer,
            sets_slice_at_call: !newer,
            custody: newer,
            near_first: newer,
            masks_first: newer,
            tells_idle_at_load: newer,
            kick_spares_above: newer,
            wakes_by_next_class: newer,
            sched_change: newer,
            cpuperf_locked: newer,
            server: newer,
            cgroup_knobs: newer,
            reenqueues_anywhere: newer,
            reschedules_below: newer,
            immed: newer,
            bypass_queues: newer,
            renotifies_idle: newer,
            queued_wakeups: newer,
        })
    }
}
