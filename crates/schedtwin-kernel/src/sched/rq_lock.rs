// SPDX-License-Identifier: GPL-2.0-or-later
//! Sections under the lock of a run queue: whose lines they fetch, and who waits for whom.
//!
//! Kernel: 6.12 kernel/sched/core.c `try_to_wake_up`, `ttwu_queue`, `__schedule`, `finish_lock_switch`;
//! kernel/sched/fair.c `sched_balance_rq`.
//! Differences: a wakeup has the lock for half of its path's cost; pushes and pulls of real-time tasks, throttling and
//! changes of attributes take none.

use crate::coherence::LastWriter;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, Ns, TaskId};

/// A section under the lock of a run queue.
#[derive(Clone, Copy)]
pub(crate) struct RqSection {
    /// Who had the run queue before.
    before: LastWriter,
    /// The debt at its beginning.
    begun: Ns,
}

impl Scheduler {
    /// `rq_lock()` of `cpu`, in order to queue `task` there.
    #[inline(always)]
    pub(crate) fn lock_rq(&mut self, cpu: CpuId, task: TaskId, cx: &mut Context) -> RqSection {
        if cx.coherence.is_none() {
            return RqSection { before: LastWriter::default(), begun: 0 };
        }
        let section = self.lock_rq_of_group(cpu, self.se[self.tasks[task].se].depth, cx);
        self.fetch(cx, |lines, at| lines.task_moves(task, at));
        section
    }

    /// The same, to change queues so many levels deep.
    #[inline(never)]
    pub(crate) fn lock_rq_of_group(
        &mut self,
        cpu: CpuId,
        levels: u32,
        cx: &mut Context,
    ) -> RqSection {
        let (begun, mut before) = (cx.debt, LastWriter::default());
        self.fetch(cx, |lines, at| {
            before = lines.rq_holder(cpu);
            lines.rq_changes(cpu, levels, at)
        });
        RqSection { before, begun }
    }

    /// `rq_unlock()` after a wakeup: half of its path was under the lock.
    #[inline(always)]
    pub(crate) fn unlock_rq(&mut self, cpu: CpuId, section: RqSection, cx: &mut Context) {
        if cx.coherence.is_some() {
            let wakeup = cx.time_of(cx.platform.device_tree.path_costs.wakeup / 2);
            let hold = cx.debt - section.begun + wakeup;
            self.fetch(cx, |lines, at| lines.rq_lock(cpu, section.before, hold, at));
        }
    }

    /// `__schedule()` takes the lock of the CPU's own run queue; who had it before.
    #[inline(always)]
    pub(crate) fn lock_rq_for_switch(&mut self, cpu: CpuId, cx: &mut Context) -> LastWriter {
        let mut before = LastWriter::default();
        self.fetch(cx, |lines, at| {
            before = lines.rq_holder(cpu);
            lines.rq_changes(cpu, 0, at)
        });
        before
    }

    /// The lock is given back by `finish_task_switch()`, after the switch to `next`, or without one.
    #[inline(always)]
    pub(crate) fn unlock_rq_after_switch(
        &mut self,
        cpu: CpuId,
        before: LastWriter,
        next: Option<TaskId>,
        cx: &mut Context,
    ) {
        if cx.coherence.is_some() {
            let costs = &cx.platform.device_tree.path_costs;
            let switch = next.map_or(0, |_| costs.context_switch);
            let hold = cx.time_of(costs.schedule + switch);
            self.fetch(cx, |lines, at| {
                let moved = next.filter(|next| !next.is_idle());
                let wait = moved.map_or(0, |next| lines.task_moves(next, at));
                wait + lines.rq_lock(cpu, before, hold + wait, at)
            });
        }
    }

    /// A balance pass has the lock of the busiest run queue while it detaches tasks; `begun`: the debt before.
    pub(crate) fn unlock_rq_after_detach(
        &mut self,
        cpu: CpuId,
        section: RqSection,
        cx: &mut Context,
    ) {
        if cx.coherence.is_some() {
            let hold = cx.debt - section.begun;
            self.fetch(cx, |lines, at| lines.rq_lock(cpu, section.before, hold, at));
        }
    }
}
