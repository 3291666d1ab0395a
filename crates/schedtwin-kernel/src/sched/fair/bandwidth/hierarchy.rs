// SPDX-License-Identifier: GPL-2.0-or-later
//! Throttling reaches down: how often a queue is throttled by those above it, and the PELT clock that stops meanwhile.
//!
//! **Idea.** Averages of tasks that may not run must not decay. Each queue counts how many queues on its way to the root are
//! throttled, itself included (`throttle_count`), and has a PELT clock of its own: that of the CPU, less the time in which it
//! stood still. Where the whole queue leaves, the clock stops at once. Where tasks leave one by one, it stops as soon as the
//! queue is empty, and goes on when something is queued, throttled or not.
//!
//! ```text
//!                        throttled                    unthrottled
//!   throttle_count  0    |1                           |0
//!   tasks           2    |2      1      0             |2
//!   clock, queue    ─────|····························|─────
//!   clock, task     ────────────────────|·············|─────
//! ```
//!
//! Kernel: 6.12.95, 6.18 and 7.3.4 kernel/sched/fair.c `tg_throttle_down`, `tg_unthrottle_up`, `sync_throttle`, pelt.h
//! `cfs_rq_clock_pelt`, `update_idle_cfs_rq_clock_pelt`.

use super::CfsRqBandwidth;
use crate::sched::CfsRqId;
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, FactKind, NEVER, Ns, TaskGroupId, TaskId};

impl Kernel {
    /// `tg_unthrottle_up()`, groups below before those above: where nothing else is throttled, clocks go on, and tasks that had
    /// to leave come back.
    pub(super) fn tg_unthrottle_up(&mut self, group: TaskGroupId, cpu: CpuId) {
        let mut below = self.sched.groups[group].first_child;
        while let Some(child) = below {
            self.tg_unthrottle_up(child, cpu);
            below = self.sched.groups[child].next_sibling;
        }
        let cfs_rq = self.sched.groups[group].cfs_rq[cpu.index()];
        if self.cx.throttles_at_charge() {
            self.update_curr(cfs_rq);
        }
        let own = &mut self.sched.cfs[cfs_rq].bandwidth;
        own.throttle_count -= 1;
        if own.throttle_count != 0 {
            return;
        }
        self.cx.fact(FactKind::CfsThrottled { group, on: cpu, throttled: false });
        self.sched.pelt_clock_goes_on(cfs_rq);
        self.unthrottle_tasks(cpu, cfs_rq);
        if !self.sched.cfs_rq_is_decayed(cfs_rq, self.sched.rq[cpu].leaf_cfs_rqs.len()) {
            self.sched.list_add_leaf_cfs_rq(cfs_rq);
        }
    }
}

impl Scheduler {
    /// `tg_throttle_down()`, from a group to those below it. `stops`: clocks stop also where there are tasks.
    pub(super) fn tg_throttle_down(
        &mut self,
        group: TaskGroupId,
        cpu: CpuId,
        stops: bool,
        cx: &mut Context,
    ) {
        let cfs_rq = self.groups[group].cfs_rq[cpu.index()];
        let cfs = &mut self.cfs[cfs_rq];
        cfs.bandwidth.throttle_count += 1;
        let is_first = cfs.bandwidth.throttle_count == 1;
        if is_first {
            cx.fact(FactKind::CfsThrottled { group, on: cpu, throttled: true });
        }
        if is_first && (stops || cfs.nr_queued == 0) {
            self.pelt_clock_stops(cfs_rq);
        }
        let mut below = self.groups[group].first_child;
        while let Some(child) = below {
            self.tg_throttle_down(child, cpu, stops, cx);
            below = self.groups[child].next_sibling;
        }
    }

    /// `throttled_hierarchy()`: the queue or one above it is throttled.
    #[inline(always)]
    pub(super) fn throttled_hierarchy(&self, cfs_rq: CfsRqId) -> bool {
        self.cfs_bandwidth_used() && self.cfs[cfs_rq].bandwidth.throttle_count != 0
    }

    /// Whether the queue of a task, or one above it, is throttled.
    pub(crate) fn throttled_task(&self, task: TaskId) -> bool {
        self.throttled_hierarchy(self.se[self.tasks[task].se].cfs_rq)
    }

    /// Since when no queue of the task's groups on `cpu` is throttled; `NEVER` while one is.
    pub(crate) fn unthrottled_since(&self, task: TaskId, cpu: CpuId) -> Ns {
        if !self.cfs_bandwidth_used() {
            return 0;
        }
        let mut since = 0;
        let mut level = Some(self.tasks[task].cgroup);
        while let Some(group) = level {
            // The root group has no limit, and no queues of its own here.
            let queue = self.groups[group].cfs_rq.get(cpu.index());
            let own = queue.map(|cfs_rq| &self.cfs[*cfs_rq].bandwidth);
            since = since
                .max(own.map_or(0, |own| if own.throttled { NEVER } else { own.unthrottled_at }));
            level = self.groups[group].parent;
        }
        since
    }

    /// `sync_throttle()`: a new group below one that is throttled. Its first task lets the clock go on where tasks leave one by
    /// one.
    pub(in crate::sched::fair) fn sync_throttle(&mut self, group: TaskGroupId) {
        let Some(parent) = self.groups[group].parent else { return };
        for cpu in self.rq.ids() {
            let above = self.groups[parent].cfs_rq[cpu.index()];
            let throttle_count = self.cfs[above].bandwidth.throttle_count;
            let now = self.rq_clock_pelt(cpu);
            let own = &mut self.cfs[self.groups[group].cfs_rq[cpu.index()]].bandwidth;
            (own.throttle_count, own.throttled_clock_pelt) = (throttle_count, now);
            own.pelt_clock_throttled = throttle_count != 0;
        }
    }

    // ---- the PELT clock -------------------------------------------------------------------------

    /// `cfs_rq_clock_pelt()`: the PELT clock of a CPU, less the time in which the queue's own stood still.
    #[inline(always)]
    pub(crate) fn cfs_rq_clock_pelt(&self, cfs_rq: CfsRqId) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        let now = self.rq_clock_pelt(cfs.cpu);
        if self.cfs_bandwidth_used() { cfs.bandwidth.clock_pelt(now) } else { now }
    }

    /// The queue's clock stops, and its averages with it.
    pub(super) fn pelt_clock_stops(&mut self, cfs_rq: CfsRqId) {
        self.list_del_leaf_cfs_rq(cfs_rq);
        let now = self.rq_clock_pelt(self.cpu_of(cfs_rq));
        let own = &mut self.cfs[cfs_rq].bandwidth;
        (own.throttled_clock_pelt, own.pelt_clock_throttled) = (now, true);
    }

    /// The queue's clock goes on, if it stands still.
    pub(super) fn pelt_clock_goes_on(&mut self, cfs_rq: CfsRqId) {
        let now = self.rq_clock_pelt(self.cpu_of(cfs_rq));
        let own = &mut self.cfs[cfs_rq].bandwidth;
        if std::mem::take(&mut own.pelt_clock_throttled) {
            own.throttled_clock_pelt_time += now - own.throttled_clock_pelt;
        }
    }

    /// `update_idle_cfs_rq_clock_pelt()`: a queue has become empty.
    pub(super) fn update_idle_cfs_rq_clock_pelt(&mut self, cfs_rq: CfsRqId) {
        let own = &mut self.cfs[cfs_rq].bandwidth;
        own.throttled_pelt_idle = match own.pelt_clock_throttled {
            true => u64::MAX,
            false => own.throttled_clock_pelt_time,
        };
    }
}

impl CfsRqBandwidth {
    /// The queue's PELT clock when that of the CPU is `now`.
    fn clock_pelt(&self, now: u64) -> u64 {
        let now = if self.pelt_clock_throttled { self.throttled_clock_pelt } else { now };
        now - self.throttled_clock_pelt_time
    }
}
