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
#[derive(Clone, Copy, Default)]
pub(crate) struct RqSection {
    /// The holder before.
    before: LastWriter,
    /// The debt at its beginning.
    begun: Ns,
}

impl Scheduler {
    /// `rq_lock()` of `cpu`, in order to change queues so many `levels` of groups deep.
    #[inline(always)]
    pub(crate) fn lock_rq(&mut self, cpu: CpuId, levels: u32, cx: &mut Context) -> RqSection {
        let mut section = RqSection { begun: cx.debt, ..RqSection::default() };
        self.fetch(cx, |lines, at| {
            section.before = lines.rq_holder(cpu);
            lines.rq_changes(cpu, levels, at)
        });
        section
    }

    /// The same, in order to queue `task` there.
    #[inline(always)]
    pub(crate) fn lock_rq_for(&mut self, cpu: CpuId, task: TaskId, cx: &mut Context) -> RqSection {
        if !cx.has_coherence() {
            return RqSection::default();
        }
        let section = self.lock_rq(cpu, self.se[self.tasks[task].se].depth, cx);
        self.fetch(cx, |lines, at| lines.task_moves(task, at));
        section
    }

    /// `rq_unlock()`: the path since the lock was taken, and `work` of what was charged before, were under it.
    #[inline(always)]
    pub(crate) fn unlock_rq(
        &mut self,
        cpu: CpuId,
        section: RqSection,
        work: u64,
        cx: &mut Context,
    ) {
        if cx.has_coherence() {
            let hold = cx.debt - section.begun + cx.time_of(work);
            self.fetch(cx, |lines, at| lines.rq_lock(cpu, section.before, hold, at));
        }
    }

    /// `rq_unlock()` at the end of a wakeup: half of what a wakeup costs was under the lock.
    #[inline(always)]
    pub(crate) fn unlock_rq_after_wakeup(
        &mut self,
        cpu: CpuId,
        section: RqSection,
        cx: &mut Context,
    ) {
        let wakeup = cx.platform.device_tree.path_costs.wakeup;
        self.unlock_rq(cpu, section, wakeup / 2, cx);
    }

    /// `finish_lock_switch()` after the switch to `next`, or without one.
    #[inline(always)]
    pub(crate) fn unlock_rq_after_switch(
        &mut self,
        cpu: CpuId,
        section: RqSection,
        next: Option<TaskId>,
        cx: &mut Context,
    ) {
        if cx.has_coherence() {
            let costs = &cx.platform.device_tree.path_costs;
            let switch = next.map_or(0, |_| costs.context_switch);
            let hold = cx.time_of(costs.schedule + switch);
            self.fetch(cx, |lines, at| {
                let moved = next.filter(|next| !next.is_idle());
                let wait = moved.map_or(0, |next| lines.task_moves(next, at));
                wait + lines.rq_lock(cpu, section.before, hold + wait, at)
            });
        }
    }
}
