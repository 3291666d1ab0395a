// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation clamping: how fast a task wants its CPU at least and at most.
//!
//! **Decides** nothing itself: it tells the other files of this module how much performance the
//! runnable tasks of a CPU ask for, whatever they really use.
//!
//! **Terms.** *Request*: what a task asks for, a minimum and a maximum of 0..=1024; without one the default of
//! its class: 0 and 1024, but a real-time task wants `sched_util_clamp_min_rt_default`. *Effective value*: the
//! request within its group's clamps ([`group`]) and the system's limits, as it was when the task was queued. *Aggregate*: what a run queue makes of
//! its tasks' ([`mod@max`]): the largest minimum and the largest maximum; or, with a patch, the sum of
//! the utilisations that each task's clamps leave ([`sum`]).
//!
//! **The static key.** Until somebody uses a clamp (a system call, a sysctl, a group), nothing is accounted.
//! With the key off a runnable real-time task wants the full speed outright; with the key on it wants it by
//! its default minimum.
//!
//! ```text
//!                 key off                            key on
//!   enqueue       class ─ governor                   before: clamps ─ class ─ governor
//!                                                    after:  class ─ governor (old clamps) ─ clamps
//!   RT runnable   full speed                         the aggregate's minimum: 1024 by default
//!   a CPU fits    util · 1.25 < capacity             and see util_fits_cpu()
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/core.c `uclamp_validate`, `uclamp_rq_inc`, `uclamp_rq_dec`,
//! `uclamp_eff_value`, `enqueue_task`; kernel/sched/sched.h `uclamp_rq_util_with`, `uclamp_rq_is_capped`.
//! Differences: system-wide limits are those of boot. A refused request leaves the rest of its system call as it is.

#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
pub mod group;
pub mod max;
pub mod sum;

use crate::config::{Config, Uclamp, UclampAggregation, UclampOrder};
use crate::sched::core::ENQUEUE_DELAYED;
use crate::sched::demand::signal::StaleDemands;
use crate::sched::{Class, SCHED_CAPACITY_SCALE};
use crate::{Context, Scheduler};
use max::Clamps;
use schedtwin_types::{CpuId, SchedAttr, TaskGroupId, TaskId};

/// `uclamp_default`: the system-wide limits.
fn system_clamps(config: &Config) -> Clamps {
    Clamps { min: config.uclamp_util_min, max: config.uclamp_util_max }
}

/// The request of a task (`uclamp_req`); `None`: the default of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UclampRequest {
    /// At least this fast, 0..=1024.
    pub min: Option<u16>,
    /// At most this fast, 0..=1024.
    pub max: Option<u16>,
}

/// The clamps with which a task is counted in its run queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskClamps {
    /// The clamps of its enqueue; `None`: it is not counted (`uclamp`, `active`).
    active: Option<Clamps>,
    /// The minimum that its class gave it before the class changed. It stays if the call that changed the class gave a
    /// clamp: only a call without clamps gives the new class's default.
    kept_min: Option<u32>,
    /// Its contribution to the sums of its CPU; nothing under max aggregation.
    pub(super) sums: sum::TaskSums,
}

/// The aggregate of the clamps of a run queue's tasks (`rq.uclamp`): each arm is a way to aggregate
/// them.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one a CPU, and a box would be an indirection in the event path"
)]
pub enum RqClamps {
    /// The largest minimum and the largest maximum.
    Max(max::UclampRq),
    /// The changes that the clamps make to the tasks' utilisations, added up.
    Sum(sum::UclampRq),
}

impl RqClamps {
    /// As at boot: no task.
    pub(crate) fn new(config: &Config) -> RqClamps {
        match config.uclamp_aggregation {
            UclampAggregation::Max => {
                RqClamps::Max(max::UclampRq::new(config.uclamp_buckets).with_bugs(&config.bugs))
            }
            UclampAggregation::Sum => RqClamps::Sum(sum::UclampRq::default()),
        }
    }

    /// A task joins. Sums are changed with its utilisation instead.
    pub(crate) fn inc(&mut self, task: Clamps) {
        match self {
            RqClamps::Max(rq) => rq.inc(task),
            RqClamps::Sum(_) => {}
        }
    }

    /// A task that has joined leaves.
    pub(crate) fn dec(&mut self, task: Clamps) {
        match self {
            RqClamps::Max(rq) => rq.dec(task),
            RqClamps::Sum(_) => {}
        }
    }

    /// The clamps of a task that has joined change.
    fn reinc(&mut self, old: Clamps, new: Clamps) {
        match self {
            RqClamps::Max(rq) => rq.reinc(old, new),
            RqClamps::Sum(_) => {}
        }
    }

    /// Returns the clamps that the tasks ask for together (`uclamp_rq_get`). With sums they are in
    /// the utilisation already.
    #[inline(always)]
    fn clamps(&self) -> Clamps {
        match self {
            RqClamps::Max(rq) => rq.clamps(),
            RqClamps::Sum(_) => Clamps::NONE,
        }
    }
}

/// The static key `sched_uclamp_used`.
#[derive(Clone, Copy, Debug)]
pub struct UclampKey {
    used: bool,
    /// Clamps have to fit with a migration's margin, as utilisations do (`bugs.clamps_with_margin`).
    with_margin: bool,
}

impl UclampKey {
    /// As of boot. Writing a system-wide limit or another default of RT tasks counts as use
    /// (`sysctl_sched_uclamp_handler()`).
    pub(crate) fn new(config: &Config) -> UclampKey {
        let scale = SCHED_CAPACITY_SCALE as u32;
        let limited = system_clamps(config) != Clamps { min: scale, max: scale }
            || config.uclamp_min_rt_default != scale;
        let used = match config.uclamp {
            Uclamp::CompiledOut => false,
            Uclamp::KeyOff => limited,
            Uclamp::On => true,
        };
        UclampKey { used, with_margin: config.bugs.clamps_with_margin }
    }
}

/// `SCHED_FLAG_UTIL_CLAMP`: one clamp or both are given.
fn gives_clamps(attr: &SchedAttr) -> bool {
    attr.util_min.is_some() || attr.util_max.is_some()
}

impl Context {
    /// `CONFIG_UCLAMP_TASK`: tasks can ask for clamps.
    pub(crate) fn uclamp_compiled_in(&self) -> bool {
        self.config.uclamp.is_compiled_in()
    }

    /// Whether run queues add clamped utilisations up.
    #[inline(always)]
    pub(crate) fn uclamp_sums(&self) -> bool {
        self.config.uclamp_aggregation == UclampAggregation::Sum
    }

    /// Scales a clamp by `uclamp_scale_permille`, as if all who set clamps had reduced theirs.
    fn scaled_clamp(&self, value: u32) -> u32 {
        (value * self.config.uclamp_scale_permille + 500) / 1000
    }

    fn uclamp_joins_before_enqueue(&self) -> bool {
        match self.config.uclamp_order {
            UclampOrder::BeforeEnqueue => true,
            UclampOrder::AfterEnqueue => false,
        }
    }
}

impl Scheduler {
    /// The clamps of a run queue; `None`: it counts none.
    pub(crate) fn uclamp_of(&self, cpu: CpuId, cx: &Context) -> Option<Clamps> {
        self.uclamp_is_counted(cx).then(|| self.rq[cpu].uclamp.clamps())
    }

    /// Whether run queues count their tasks' clamps: only under max aggregation, and if somebody uses clamps.
    #[inline(always)]
    fn uclamp_is_counted(&self, cx: &Context) -> bool {
        self.uclamp_is_used() && !cx.uclamp_sums()
    }

    /// `uclamp_is_used()`: the static key `sched_uclamp_used`.
    #[inline(always)]
    pub(in crate::sched::demand) fn uclamp_is_used(&self) -> bool {
        self.sched_uclamp_used.used
    }

    /// Whether a clamped utilisation has to fit as one without clamps does.
    #[inline(always)]
    pub(in crate::sched::demand) fn clamps_have_margin(&self) -> bool {
        self.sched_uclamp_used.with_margin
    }

    /// `uclamp_validate()`: whether the task may ask for this. A minimum above the maximum is refused, and so is
    /// everything where clamps are compiled out. The first request turns the key on; a task that is
    /// queued then is counted from its next enqueue.
    pub(crate) fn uclamp_validate(&mut self, task: TaskId, attr: &SchedAttr, cx: &Context) -> bool {
        if !gives_clamps(attr) || !cx.uclamp_compiled_in() {
            return false;
        }
        // A side that is not given counts as it is; one that goes back to its default is not looked at.
        let present = self.uclamp_request(task, cx);
        let resets = [attr.util_min, attr.util_max].contains(&Some(SchedAttr::UTIL_CLAMP_RESET));
        let of = |value: Option<u16>, present: u32| value.map_or(present, u32::from);
        if !resets && of(attr.util_min, present.min) > of(attr.util_max, present.max) {
            return false;
        }
        self.set_uclamp_key(true, cx);
        true
    }

    /// `__setscheduler_uclamp()`: the task's class is what it will be, and `min_before` was its minimum. `accepted`: by
    /// [`Kernel::uclamp_validate`].
    pub(crate) fn setscheduler_uclamp(
        &mut self,
        task: TaskId,
        attr: &SchedAttr,
        accepted: bool,
        min_before: u32,
        cx: &Context,
    ) {
        let gives = gives_clamps(attr) && cx.uclamp_compiled_in();
        let t = &mut self.tasks[task];
        let give = |request: &mut Option<u16>, given: Option<u16>| match given {
            None => {}
            Some(SchedAttr::UTIL_CLAMP_RESET) => *request = None,
            value => *request = value,
        };
        let resets_min = accepted && attr.util_min == Some(SchedAttr::UTIL_CLAMP_RESET);
        if accepted {
            give(&mut t.uclamp_req.min, attr.util_min);
            give(&mut t.uclamp_req.max, attr.util_max);
        }
        // A default follows the class if no clamp is given, or if it is what the task goes back to.
        let keeps = gives && !resets_min && t.uclamp_req.min.is_none();
        t.uclamp.kept_min = keeps.then_some(min_before);
    }

    /// Returns the minimum that a task asks for, 0..=1024.
    pub(crate) fn uclamp_min_request(&self, task: TaskId, cx: &Context) -> u32 {
        self.uclamp_request(task, cx).min
    }

    /// `uclamp_post_fork()`: a child keeps what its parent asks for, but an RT task's default is its class's.
    pub(crate) fn uclamp_of_child(&self, parent: TaskId) -> TaskClamps {
        let t = &self.tasks[parent];
        let kept_min = t.uclamp.kept_min.filter(|_| t.class != Class::Rt);
        TaskClamps { kept_min, ..TaskClamps::default() }
    }

    /// `static_branch_enable(&sched_uclamp_used)`; only a comparison turns it off.
    pub(super) fn set_uclamp_key(&mut self, on: bool, cx: &Context) {
        if std::mem::replace(&mut self.sched_uclamp_used.used, on) != on {
            self.stale_demands = StaleDemands::all(cx.platform.device_tree.all_cpus());
        }
    }

    /// The capacity that a real-time task wants of a CPU (`rt_task_fits_capacity`), key or no key: the
    /// smaller of its clamps. Where clamps are compiled out every CPU does.
    pub(crate) fn rt_uclamp_min(&self, task: TaskId, cx: &Context) -> u32 {
        if !cx.uclamp_compiled_in() {
            return 0;
        }
        let clamps = self.uclamp_eff_value(task, cx);
        clamps.min.min(clamps.max)
    }

    /// `uclamp_eff_value()` of both clamps: frozen while the task is counted. Sum aggregation counts nobody, and asks for
    /// no clamps while the key is off.
    pub(super) fn uclamp_eff_value(&self, task: TaskId, cx: &Context) -> Clamps {
        if cx.uclamp_sums() && !self.uclamp_is_used() {
            return Clamps::NONE;
        }
        self.tasks[task].uclamp.active.unwrap_or_else(|| self.uclamp_eff_get(task, cx))
    }

    /// `uclamp_eff_get()`: what a task asks for, as far as its group and the system allow it.
    fn uclamp_eff_get(&self, task: TaskId, cx: &Context) -> Clamps {
        let Clamps { min, max } = self.uclamp_request(task, cx);
        let asked = &self.tasks[task].uclamp_req;
        let min = if asked.min.is_some() { cx.scaled_clamp(min) } else { min };
        let max = if max == SCHED_CAPACITY_SCALE as u32 { max } else { cx.scaled_clamp(max) };
        let asked = Clamps { min, max };
        let group = self.tasks[task].group;
        let Clamps { min, max } = match group {
            TaskGroupId::ROOT => asked,
            _ => self.groups[group].uclamp.restrict(asked),
        };
        let limits = system_clamps(&cx.config);
        Clamps { min: min.min(limits.min), max: max.min(limits.max) }
    }

    /// Returns the clamps that a task asks for, or that its class gives it (`uclamp_req`).
    fn uclamp_request(&self, task: TaskId, cx: &Context) -> Clamps {
        let t = &self.tasks[task];
        let default_min = match (t.uclamp.kept_min, t.class) {
            (Some(min), _) => min,
            (None, Class::Rt) => cx.config.uclamp_min_rt_default,
            (None, _) => 0,
        };
        Clamps {
            min: t.uclamp_req.min.map_or(default_min, u32::from),
            max: t.uclamp_req.max.map_or(SCHED_CAPACITY_SCALE as u32, u32::from),
        }
    }

    /// [`Kernel::uclamp_rq_inc`] ahead of the class's own enqueue, where the release has it there.
    #[inline(always)]
    pub(crate) fn uclamp_rq_inc_before(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        flags: u32,
        cx: &Context,
    ) {
        if self.uclamp_is_counted(cx) && cx.uclamp_joins_before_enqueue() {
            self.uclamp_rq_inc(cpu, task, flags, cx);
        }
    }

    /// [`Kernel::uclamp_rq_inc`] behind the class's own enqueue, where the release has it there.
    #[inline(always)]
    pub(crate) fn uclamp_rq_inc_after(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        flags: u32,
        cx: &Context,
    ) {
        if self.uclamp_is_counted(cx) && !cx.uclamp_joins_before_enqueue() {
            // The class has made a delayed task that is being woken a runnable one.
            self.uclamp_rq_inc(cpu, task, flags & !ENQUEUE_DELAYED, cx);
        }
    }

    /// `uclamp_rq_inc()`: the task's clamps join its run queue's. A delayed sleeper's do not, unless this
    /// wakes it.
    fn uclamp_rq_inc(&mut self, cpu: CpuId, task: TaskId, flags: u32, cx: &Context) {
        let delayed = self.se[self.tasks[task].se].sched_delayed && flags & ENQUEUE_DELAYED == 0;
        if delayed || !self.has_uclamp(task) {
            return;
        }
        debug_assert!(self.tasks[task].uclamp.active.is_none(), "{task:?} is counted twice");
        let clamps = self.uclamp_eff_value(task, cx);
        self.tasks[task].uclamp.active = Some(clamps);
        self.change_uclamp(cpu, |uclamp| uclamp.inc(clamps));
    }

    /// `uclamp_rq_dec()`, ahead of the class's own dequeue: a delayed sleeper has left already.
    #[inline(always)]
    pub(crate) fn uclamp_rq_dec(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        if self.uclamp_is_counted(cx)
            && self.has_uclamp(task)
            && !self.se[self.tasks[task].se].sched_delayed
            && let Some(clamps) = self.tasks[task].uclamp.active.take()
        {
            self.change_uclamp(cpu, |uclamp| uclamp.dec(clamps));
        }
    }

    /// `sched_class.uclamp_enabled`.
    fn has_uclamp(&self, task: TaskId) -> bool {
        matches!(self.tasks[task].class, Class::Fair | Class::Rt | Class::Ext)
    }

    fn change_uclamp(&mut self, cpu: CpuId, change: impl FnOnce(&mut RqClamps)) {
        self.rq[cpu].uclamp.update(cpu, &mut self.stale_demands, |uclamp| {
            let before = uclamp.clamps();
            change(uclamp);
            uclamp.clamps() != before
        });
    }

    /// The floor and the cap of the performance of `cpu`, 0..=1024. While the key is off, a
    /// runnable real-time task cannot say what it wants and gets the whole capacity.
    #[inline(always)]
    pub(super) fn floor_and_cap(&self, cpu: CpuId) -> (u64, u64) {
        if !self.uclamp_is_used() {
            let floor = if self.rt_gets_all(cpu) { self.arch_scale_cpu_capacity(cpu) } else { 0 };
            return (floor, SCHED_CAPACITY_SCALE);
        }
        let Clamps { min, max } = self.rq[cpu].uclamp.clamps();
        (min as u64, max as u64)
    }

    /// The same floor and cap if `task` ran on `cpu`, too.
    pub(super) fn floor_and_cap_with(
        &self,
        cpu: CpuId,
        task: TaskId,
        floor_and_cap: (u64, u64),
        cx: &Context,
    ) -> (u64, u64) {
        if !self.uclamp_is_used() {
            return floor_and_cap;
        }
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(rq) => rq.join(floor_and_cap, self.uclamp_eff_value(task, cx)),
            RqClamps::Sum(_) => floor_and_cap,
        }
    }

    /// Whether real-time tasks, without clamps in use, drive `cpu` to its full speed.
    #[inline(always)]
    pub(super) fn rt_gets_all(&self, cpu: CpuId) -> bool {
        !self.uclamp_is_used() && self.rq[cpu].rt.nr_running() != 0
    }

    /// `uclamp_rq_util_with()`, before 6.8: a utilisation within the clamps of `cpu`, and of `task` if it
    /// is to run there. An inverted pair is its minimum.
    #[inline]
    pub(super) fn uclamp_rq_util_with(
        &self,
        cpu: CpuId,
        util: u64,
        task: Option<TaskId>,
        cx: &Context,
    ) -> u64 {
        if !self.uclamp_is_used() {
            return util;
        }
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(rq) => {
                let own = task.map(|task| self.uclamp_eff_value(task, cx));
                let Clamps { min, max } = rq.with(own);
                util.min(max as u64).max(min as u64)
            }
            // The utilisation is a clamped one already.
            RqClamps::Sum(_) => util,
        }
    }

    /// `uclamp_rq_is_capped()`: the CPU has more to do than it is allowed to.
    pub(crate) fn uclamp_rq_is_capped(&self, cpu: CpuId, cx: &Context) -> bool {
        if !self.uclamp_is_used() {
            return false;
        }
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(rq) => {
                rq.is_capped(self.cpu_util_cfs(cpu, cx) + self.rq[cpu].avg_rt.util_avg)
            }
            RqClamps::Sum(_) => false,
        }
    }

    /// Asserts that a run queue counts the tasks that say they are counted, and adds up what they add; `here` are the CPU's.
    pub(crate) fn verify_uclamp(&self, cpu: CpuId, here: &[TaskId]) {
        let here = here.iter().copied();
        match &*self.rq[cpu].uclamp {
            RqClamps::Max(rq) => rq.verify(here.filter_map(|task| self.tasks[task].uclamp.active)),
            RqClamps::Sum(rq) => rq.verify(here.map(|task| {
                let se = &self.se[self.tasks[task].se];
                (task, se.on_rq, se.on_rq && !se.sched_delayed, self.tasks[task].uclamp.sums)
            })),
        }
    }
}

#[cfg(test)]
mod tests;
