// SPDX-License-Identifier: GPL-2.0-or-later
//! CFS: the smallest virtual runtime runs.
//!
//! **Decides** which entity of a fair run queue runs next, how long it may, whether a wakee preempts it, and
//! where a newcomer starts in virtual time. In kernels before 6.6.
//!
//! **Idea.** Each entity has a virtual runtime v that advances with its runtime divided by its weight. The
//! one furthest behind runs. So that not every tick switches, time is cut into *periods* in which everybody
//! runs once, for a slice in proportion to its weight; so that not every wakeup switches, a wakee must be
//! behind by a *granularity*.
//!
//! ```text
//!  virtual time ─────────────────────────────────────►
//!        min_vruntime                curr
//!             ●─────────●─────●────────┤
//!             first           ├──gran──┤
//!     ├─credit┤
//!     ▲ a sleeper wakes at most that far back, and preempts curr if it is behind by more than gran
//! ```
//!
//! **Terms.** `min_vruntime`: the smallest v of a queue, never going back; the zero of its virtual time. An
//! entity *between* two queues has a v relative to it: it is made relative (*normalised*) when it leaves
//! without sleeping, when it is woken on another CPU, and when it is forked, and absolute again when it
//! joins. A sleeper keeps its absolute v, and the wakeup takes the larger of that and `min_vruntime` less
//! half a latency. Buddies are hints for the next pick, all subject to fairness: `next` has preempted,
//! `last` was preempted, `skip` has yielded.
//!
//! **Algorithm of `pick_next_entity`.** 1. *Left*: the first of the timeline, or the running entity if it is
//! strictly earlier. 2. If it is the skip buddy: the second, unless that is ahead of left by more than
//! `wakeup_granularity`. 3. Instead of either: the next buddy, or else the last buddy, by the same rule.
//!
//! **Algorithm of `check_preempt_tick`.** The running entity gives way if it has run for longer than its
//! slice (in 6.3 and later: or the latency) since it was switched to; or for at least `min_granularity`, and is ahead of the first by more than
//! its slice.
//!
//! **Example.** On eight CPUs latency, granularity and wakeup granularity are 24, 3 and 4 ms. Two hogs have
//! slices of 12 ms; a task that has slept for long wakes 12 ms before `min_vruntime` and preempts at once. Ten
//! hogs have a period of 30 ms and slices of 3 ms.
//!
//! ```
//! use schedtwin_kernel::sched::fair::{calc_delta, weight_of};
//! use schedtwin_kernel::sched::LoadWeight;
//! use schedtwin_types::Policy;
//! // The slice of a nice 0 task beside one of nice 5: 1024 of 1359 parts of the latency.
//! let mine = weight_of(Policy::Normal, 0);
//! let all = LoadWeight { weight: (1024 + 335) << 10, inv_weight: 0 };
//! assert_eq!(calc_delta(24_000_000, mine.weight, &all), 18_083_885);
//! ```
//!
//! Kernel: 6.1.192 kernel/sched/fair.c `place_entity`, `sched_slice`, `check_preempt_tick`,
//! `pick_next_entity`, `check_preempt_wakeup`, `yield_task_fair`, `task_fork_fair`,
//! `migrate_task_rq_fair`.
//! Differences: a sorted array instead of a tree. The vruntime that a very long sleeper (104 days) loses
//! is as in 6.1.y and 6.3; before, it depended on how the clocks wrapped. No
//! `sched_child_runs_first`, no hrtick.

#[cfg(test)]
mod tests;

use super::{NICE_0_LOAD, calc_delta, calc_delta_fair, scale_load_down};
use crate::config::IdealRuntime;
use crate::observe::DecisionObserver;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_MIGRATED, ENQUEUE_WAKEUP, WF_FORK,
};
use crate::sched::{CfsRq, CfsRqId, EntityId, LoadWeight, SchedEntity, TimelineNode};
use crate::sorted;
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns, PickRule, Policy, PreemptionRule, TaskId};

/// `entity_before()` on virtual runtimes.
#[inline(always)]
fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

impl CfsRq {
    /// `__enqueue_entity()`: behind all with the same virtual runtime.
    #[inline]
    pub(super) fn enqueue_by_vruntime(&mut self, id: EntityId, se: &SchedEntity) {
        let node = TimelineNode { deadline: se.deadline, vruntime: se.vruntime, se: id };
        sorted::insert(&mut self.timeline, node, |other| before(node.vruntime, other.vruntime));
    }

    /// `__dequeue_entity()`.
    #[inline]
    pub(super) fn dequeue_by_vruntime(&mut self, id: EntityId) {
        let at = self.timeline.iter().position(|n| n.se == id).expect("a queued entity");
        sorted::remove(&mut self.timeline, at);
    }
}

impl Scheduler {
    /// `sched_idle_cfs_rq()`: nothing but idle entities here. What is below a normal group does not count. Linux keeps
    /// their number (`idle_nr_running`); as only idle entities ask, it is counted here.
    fn sched_idle_cfs_rq(&self, cfs_rq: CfsRqId) -> bool {
        let cfs = &self.cfs[cfs_rq];
        let waiting = cfs.timeline.iter().map(|node| node.se);
        let mut entities = waiting.chain(self.curr_on_rq(cfs_rq));
        cfs.nr_queued != 0 && entities.all(|se| self.se_is_idle(se))
    }

    /// `sched_nr_latency`: how many slices of `min_granularity` a latency holds.
    fn sched_nr_latency(&self) -> u64 {
        let tunables = &self.cfs_tunables;
        tunables.latency.div_ceil(tunables.min_granularity.max(1))
    }

    // ---- where virtual time is ----------------------------------------------------------------

    /// `update_min_vruntime()`: follows the smallest virtual runtime of the queue, forward only.
    pub(super) fn update_min_vruntime(&mut self, cfs_rq: CfsRqId) {
        let running = self.curr_on_rq(cfs_rq).map(|curr| self.se[curr].vruntime);
        let cfs = &mut self.cfs[cfs_rq];
        let first = cfs.timeline.first().map(|node| node.vruntime);
        let smallest = match (running, first) {
            (Some(running), Some(first)) if before(first, running) => first,
            (Some(running), _) => running,
            (None, Some(first)) => first,
            (None, None) => return,
        };
        if before(cfs.min_vruntime, smallest) {
            cfs.min_vruntime = smallest;
        }
    }

    /// Absolute → relative: the entity is between two queues.
    pub(super) fn normalise(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let min_vruntime = self.cfs[cfs_rq].min_vruntime;
        self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(min_vruntime);
    }

    /// Relative → absolute, unless the entity has slept here.
    pub(super) fn renormalise(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        if flags & ENQUEUE_WAKEUP == 0 || flags & ENQUEUE_MIGRATED != 0 {
            let min_vruntime = self.cfs[cfs_rq].min_vruntime;
            self.se[se].vruntime = self.se[se].vruntime.wrapping_add(min_vruntime);
        }
    }

    /// The end of `dequeue_entity()`. A task that changes its attributes and comes back at once
    /// does not move `min_vruntime`: it would be placed further back than it was.
    pub(super) fn leave_virtual_time(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        if flags & DEQUEUE_SLEEP == 0 {
            self.normalise(cfs_rq, se);
        }
        if flags & (DEQUEUE_SAVE | DEQUEUE_MOVE) != DEQUEUE_SAVE {
            self.update_min_vruntime(cfs_rq);
        }
    }

    // ---- placement ----------------------------------------------------------------------------

    pub(super) fn place_sleeper(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        flags: u32,
        cx: &Context,
    ) {
        if flags & ENQUEUE_WAKEUP != 0 {
            self.place_by_vruntime(cfs_rq, se, false, cx);
        }
    }

    /// `place_entity()`: a sleeper gets some credit, a forked task (`initial`) some debt, and nobody goes
    /// back from where it was.
    pub(super) fn place_by_vruntime(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        initial: bool,
        cx: &Context,
    ) {
        let mut vruntime = self.cfs[cfs_rq].min_vruntime;
        if !initial {
            let tunables = &self.cfs_tunables;
            let idle = self.se_is_idle(se);
            let credit = if idle { tunables.min_granularity } else { tunables.latency };
            let gentle = cx.config.features.gentle_fair_sleepers as u32;
            vruntime = vruntime.wrapping_sub(credit >> gentle);
        } else if cx.config.features.start_debit {
            // The period is promised to the others: behind them all.
            let slice = self.sched_slice(cfs_rq, se, cx);
            vruntime = vruntime.wrapping_add(calc_delta_fair(slice, &self.se[se].load));
        }
        let forget = self.entity_is_long_sleeper(cfs_rq, se);
        let entity = &mut self.se[se];
        if forget || before(entity.vruntime, vruntime) {
            entity.vruntime = vruntime;
        }
    }

    /// `entity_is_long_sleeper()`: so long ago that a comparison of virtual runtimes might wrap.
    fn entity_is_long_sleeper(&self, cfs_rq: CfsRqId, se: EntityId) -> bool {
        let exec_start = self.se[se].exec_start;
        let clock_task = self.rq[self.cpu_of(cfs_rq)].clock_task;
        exec_start != 0
            && clock_task.saturating_sub(exec_start) > (1 << 63) / scale_load_down(NICE_0_LOAD)
    }

    // ---- how long an entity may run -----------------------------------------------------------

    /// `sched_slice()`: an entity's part of the period, in real time. One that is not queued is counted
    /// as if it were.
    pub(super) fn sched_slice(&self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) -> Ns {
        let features = &cx.config.features;
        let tunables = &self.cfs_tunables;
        let counted = if features.alt_period {
            self.cfs[CfsRqId::root(self.cpu_of(cfs_rq))].h_nr_queued
        } else {
            self.cfs[cfs_rq].nr_queued
        };
        let nr_running = counted as u64 + !self.se[se].on_rq as u64;
        // __sched_period()
        let mut slice = if nr_running > self.sched_nr_latency() {
            nr_running * tunables.min_granularity
        } else {
            tunables.latency
        };
        let mut level = Some(se);
        while let Some(id) = level {
            let entity = &self.se[id];
            let absent = if entity.on_rq { 0 } else { entity.load.weight };
            let weight = self.cfs[entity.cfs_rq].load_weight + absent;
            let all = LoadWeight { weight, inv_weight: 0 };
            slice = calc_delta(slice, entity.load.weight, &all);
            level = entity.parent;
        }
        if features.base_slice {
            let background = self.se_is_idle(se) && !self.sched_idle_cfs_rq(cfs_rq);
            let floor =
                if background { tunables.idle_min_granularity } else { tunables.min_granularity };
            slice = slice.max(floor);
        }
        slice
    }

    /// `check_preempt_tick()`: gives way if the slice is used up, or if another is far behind.
    pub(super) fn check_preempt_tick(
        &mut self,
        cfs_rq: CfsRqId,
        curr: EntityId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        if self.cfs[cfs_rq].nr_queued <= 1 {
            return;
        }
        let cpu = self.cpu_of(cfs_rq);
        let slice = self.sched_slice(cfs_rq, curr, cx);
        let ideal_runtime = match cx.config.ideal_runtime {
            IdealRuntime::SchedSlice => slice,
            IdealRuntime::AtMostLatency => slice.min(self.cfs_tunables.latency),
        };
        let entity = &self.se[curr];
        let ran = entity.sum_exec_runtime - entity.prev_sum_exec_runtime;
        if ran > ideal_runtime {
            self.resched_curr(cpu, cpuidle, cx);
            // Or it would be picked again as a buddy.
            self.clear_buddies(cfs_rq, curr);
            return;
        }
        if ran < self.cfs_tunables.min_granularity {
            return;
        }
        let first = self.cfs[cfs_rq].timeline.first().expect("somebody waits");
        let lead = entity.vruntime.wrapping_sub(first.vruntime) as i64;
        if lead > ideal_runtime as i64 {
            self.resched_curr(cpu, cpuidle, cx);
        }
    }

    // ---- who runs -----------------------------------------------------------------------------

    /// `wakeup_preempt_entity()`: 1 if `se` is behind `curr` by more than a granularity, 0 if it is behind
    /// by less, −1 if it is not behind. The granularity is in `se`'s virtual time, so a heavy wakee
    /// preempts sooner.
    pub(super) fn wakeup_preempt_entity(&self, curr: EntityId, se: EntityId) -> i32 {
        let behind = self.se[curr].vruntime.wrapping_sub(self.se[se].vruntime) as i64;
        if behind <= 0 {
            return -1;
        }
        let granularity =
            calc_delta_fair(self.cfs_tunables.wakeup_granularity, &self.se[se].load) as i64;
        (behind > granularity) as i32
    }

    /// `pick_next_entity()`. Read-only: the decision alone.
    pub(super) fn pick_cfs(
        &self,
        cfs_rq: CfsRqId,
        see: &mut impl DecisionObserver,
    ) -> Option<EntityId> {
        let cfs = &self.cfs[cfs_rq];
        let curr = self.curr_on_rq(cfs_rq);
        let waiting = |at: usize| cfs.timeline.get(at).map(|node| node.se);
        // A waiting entity, or the running one if that is strictly earlier.
        let or_curr = |waiting: Option<EntityId>| match (waiting, curr) {
            (Some(waits), Some(runs))
                if before(self.se[runs].vruntime, self.se[waits].vruntime) =>
            {
                curr
            }
            (Some(_), _) => waiting,
            (None, _) => curr,
        };
        let left = or_curr(waiting(0))?;
        let fair = |se: &EntityId| self.wakeup_preempt_entity(*se, left) < 1;
        let (picked, rule) = if let Some(next) = cfs.next.filter(fair) {
            (next, PickRule::NextBuddy)
        } else if let Some(last) = cfs.last.filter(fair) {
            (last, PickRule::LastBuddy)
        } else {
            let second = (cfs.skip == Some(left))
                .then(|| if curr == Some(left) { waiting(0) } else { or_curr(waiting(1)) });
            match second.flatten().filter(fair) {
                Some(second) => (second, PickRule::AfterSkipBuddy),
                None => (left, PickRule::SmallestVruntime),
            }
        };
        see.pick(if cfs.nr_queued == 1 { PickRule::OnlyEntity } else { rule });
        Some(picked)
    }

    // ---- buddies ------------------------------------------------------------------------------

    /// Asserts that the timeline is in order, and that hints are about entities that are queued here.
    pub(super) fn verify_cfs(&self, cfs_rq: CfsRqId) {
        let cfs = &self.cfs[cfs_rq];
        for pair in cfs.timeline.windows(2) {
            assert!(!before(pair[1].vruntime, pair[0].vruntime), "{:?}: order", cfs.cpu);
        }
        for buddy in [cfs.next, cfs.last, cfs.skip].into_iter().flatten() {
            let entity = &self.se[buddy];
            assert!(entity.on_rq && entity.cfs_rq == cfs_rq, "{:?}: buddies", cfs.cpu);
        }
    }
}

impl Kernel {
    /// `task_fork_fair()`: in the parent's context, on its queue; then relative until it is woken.
    pub(super) fn task_fork_cfs(&mut self, child: EntityId) {
        let cpu = self.cx.this_cpu;
        self.sched.update_rq_clock(cpu, &self.cx);
        let cfs_rq = self.sched.se[child].cfs_rq;
        if let Some(curr) = self.sched.cfs[cfs_rq].curr {
            self.update_curr(cfs_rq);
            self.sched.se[child].vruntime = self.sched.se[curr].vruntime;
        }
        self.sched.place_by_vruntime(cfs_rq, child, true, &self.cx);
        self.sched.normalise(cfs_rq, child);
    }

    /// `check_preempt_wakeup()`: whether the wakee preempts, and by what rule. Sets the buddies.
    #[inline(never)]
    pub(super) fn wakeup_preempts_cfs(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake_flags: u32,
    ) -> (bool, PreemptionRule) {
        let (mut se, mut pse) = (self.sched.tasks[curr].se, self.sched.tasks[task].se);
        let cfs_rq = self.sched.se[se].cfs_rq;
        let features = self.cx.config.features;
        let crowded = self.sched.cfs[cfs_rq].nr_queued as u64 >= self.sched.sched_nr_latency();
        let marked = features.next_buddy && crowded && wake_flags & WF_FORK == 0;
        if marked {
            self.sched.set_next_buddy(pse);
        }
        if self.sched.rq[cpu].need_resched {
            return (false, PreemptionRule::ReschedulePending);
        }
        let curr_is_idle = self.sched.tasks[curr].policy == Policy::Idle;
        let task_is_idle = self.sched.tasks[task].policy == Policy::Idle;
        let rule = if curr_is_idle && !task_is_idle {
            PreemptionRule::IdleGivesWay
        } else {
            if self.sched.tasks[task].policy != Policy::Normal {
                return (false, PreemptionRule::BatchDoesNotPreempt);
            }
            if !features.wakeup_preemption {
                return (false, PreemptionRule::FeatureOff);
            }
            (se, pse) = self.sched.find_matching_se(se, pse);
            match (self.sched.se_is_idle(se), self.sched.se_is_idle(pse)) {
                (true, false) => PreemptionRule::IdleGivesWay,
                (false, true) => return (false, PreemptionRule::IdleDoesNotPreempt),
                _ => {
                    self.update_curr(self.sched.se[se].cfs_rq);
                    match self.sched.wakeup_preempt_entity(se, pse) {
                        1 => {}
                        0 => return (false, PreemptionRule::BehindTooLittle),
                        _ => return (false, PreemptionRule::NotBehind),
                    }
                    if !marked {
                        self.sched.set_next_buddy(pse);
                    }
                    PreemptionRule::Behind
                }
            }
        };
        // A task that blocks, and pulls others meanwhile, does not want to be switched back to.
        let entity = &self.sched.se[se];
        if features.last_buddy && crowded && entity.on_rq && entity.my_q.is_none() {
            // set_last_buddy()
            self.sched.set_buddy(se, |cfs| &mut cfs.last);
        }
        (true, rule)
    }

    /// `yield_task_fair()`, the virtual part: the others first, if that is not unfair. Virtual time does
    /// not change.
    pub(super) fn yield_cfs(&mut self, cpu: CpuId, cfs_rq: CfsRqId, se: EntityId) {
        if self.sched.tasks[self.sched.se[se].task].policy != Policy::Batch {
            self.sched.update_rq_clock(cpu, &self.cx);
            self.update_curr(cfs_rq);
            self.sched.rq[cpu].skip_clock_update = true;
        }
        self.sched.cfs[cfs_rq].skip = Some(se);
    }
}
