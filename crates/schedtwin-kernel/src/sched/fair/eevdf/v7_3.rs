// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF as of 7.3, where it is not that of 6.12.
//!
//! **Slice protection.** An entity that is switched to may run until `vprot`, once: an entity that is picked again goes on
//! without protection, so from its second slice on it asks for a pick whenever its time is accounted. `vprot` is its deadline,
//! or, if somebody with a shorter slice is queued, the point at which it is no longer eligible. A wakee that does not preempt
//! moves it nearer.
//!
//! ```text
//!  virtual time ──────────────────────────────────►
//!      v        vprot                d              switched to while a shorter slice is queued:
//!      ├──────────┼──────────────────┤              protected until it has had its share
//! ```
//!
//! **Wakeup preemption.** 1. `SCHED_IDLE` gives way. 2. A wakee that is idle, batch or about to
//! leave does not preempt, nor does a new task unless its slice is shorter. 3. Which entity would
//! the pick take, protection left aside if the wakee's slice is shorter? If it is the wakee, or if
//! that has a shorter slice and is eligible, it preempts, in the second case as the next buddy.
//!
//! **Lag.** It is measured when a task blocks. While its dequeue is delayed it can only improve, and with `DELAY_ZERO` up to 0.
//!
//! **Weights** have all of their bits in the sums. A task's weight in the timeline is taken over when it is queued: a nice value
//! that changes meanwhile rescales its lag, and a relative deadline, once.
//!
//! Kernel: 7.3.4 kernel/sched/fair.c `set_protect_slice`, `update_protect_slice`, `update_entity_lag`, `wakeup_preempt_fair`,
//! `reweight_eevdf`, `place_entity`.
//! Differences: none known. The timeline of all groups is in [`super::super::flat`].

use crate::observe::{DecisionObserver, LastPick};
use crate::sched::core::{DEQUEUE_DELAYED, DEQUEUE_SLEEP, WF_FORK};
use crate::sched::{CfsRq, CfsRqId, EntityId, SchedEntity};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns, Policy, PreemptionRule, TaskId};

/// The earlier of two virtual times (`min_vruntime()`).
fn earlier(a: u64, b: u64) -> u64 {
    if super::before(b, a) { b } else { a }
}

impl CfsRq {
    /// The lag with which an entity has to be placed so that it has `vlag` once it counts among the
    /// others, which weigh `load`. The base of the sums follows an entity that is heavier than all
    /// others.
    #[inline(never)]
    pub(super) fn inflated(&mut self, vlag: i64, load: u64, se: &SchedEntity) -> i64 {
        let weight = self.weight_in_sums(se) as i64;
        let lag = vlag.wrapping_add(vlag.wrapping_mul(weight) / load as i64);
        if vlag != 0 && weight > load as i64 {
            self.move_zero(lag.wrapping_neg());
        }
        lag
    }
}

impl Scheduler {
    /// The slices of a queue's entities, the running one included.
    fn slices(&self, cfs_rq: CfsRqId) -> impl Iterator<Item = Ns> {
        let waiting = self.cfs[cfs_rq].timeline.iter().map(|node| node.se);
        waiting.chain(self.curr_on_rq(cfs_rq)).map(|se| self.se[se].slice)
    }

    /// `cfs_rq_min_slice()`; nothing of an empty queue.
    pub(super) fn min_slice(&self, cfs_rq: CfsRqId) -> Option<Ns> {
        self.slices(cfs_rq).min()
    }

    /// `cfs_rq_max_slice()`.
    pub(super) fn max_slice(&self, cfs_rq: CfsRqId) -> Ns {
        self.slices(cfs_rq).max().unwrap_or(0)
    }

    /// `update_entity_lag()`; whether the lag is another than that of the place where the entity is.
    pub(super) fn update_entity_lag_7_3(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        cx: &Context,
    ) -> bool {
        let average = self.avg_vruntime(cfs_rq);
        let mut lag = self.entity_lag(cfs_rq, average, se, cx);
        let entity = &mut self.se[se];
        if entity.sched_delayed {
            lag = lag.max(entity.vlag);
            if cx.config.features.delay_zero {
                lag = lag.min(0);
            }
        }
        entity.vlag = lag;
        average.wrapping_sub(lag as u64) != entity.vruntime
    }

    /// `reweight_eevdf()` of an entity that is going to be queued: its weight may have changed since it left.
    #[inline(never)]
    pub(super) fn take_weight(&mut self, se: EntityId) {
        let entity = &mut self.se[se];
        let Some(old) = entity.timeline_load.take() else { return };
        if old.weight != entity.load.weight {
            entity.rescale(old.weight, entity.load.weight, false);
        }
    }

    /// `set_protect_slice()`: up to where an entity that is switched to may run.
    pub(super) fn protected_until(&self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) -> u64 {
        let entity = &self.se[se];
        let features = &cx.config.features;
        let shortest = match features.run_to_parity {
            true => self.min_slice(cfs_rq).unwrap_or(entity.slice),
            false => cx.config.base_slice_unscaled,
        };
        if shortest >= entity.slice {
            return entity.deadline;
        }
        let turn = if features.preempt_short {
            self.ineligible_vruntime(cfs_rq)
        } else {
            let vslice = cx.calc_delta_fair(shortest, entity.virtual_load());
            entity.vruntime.wrapping_add(vslice)
        };
        earlier(entity.deadline, turn)
    }

    /// `ineligible_vruntime()`: where the running entity has had its share, so that it is not eligible any more.
    fn ineligible_vruntime(&self, cfs_rq: CfsRqId) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        let (mut sum, load) = (cfs.avg_vruntime, cfs.avg_load as i64);
        if load == 0 {
            return cfs.zero_vruntime.wrapping_add(1);
        }
        if sum < 0 {
            // Rounds towards −∞.
            sum -= load - 1;
        }
        cfs.zero_vruntime.wrapping_add((sum / load) as u64).wrapping_add(1)
    }

    /// `update_protect_slice()`: an entity has come that does not preempt.
    fn update_protect_slice(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        let average = self.avg_vruntime(cfs_rq);
        let shortest = self.min_slice(cfs_rq).unwrap_or(Ns::MAX);
        let entity = &self.se[se];
        let vslice = cx.calc_delta_fair(shortest, entity.virtual_load());
        let from = earlier(entity.vruntime, average);
        self.se[se].vprot = earlier(entity.vprot, from.wrapping_add(vslice));
    }

    /// The wakee preempts: if its slice is shorter, the pick that follows takes it.
    fn preempts_7_3(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        pse: EntityId,
        short: bool,
        rule: PreemptionRule,
        cx: &Context,
    ) -> (bool, PreemptionRule) {
        self.cancel_protect_slice(se, cx);
        let shorter_buddy = |next: EntityId| self.se[next].slice < self.se[pse].slice;
        if short && !self.cfs[cfs_rq].next.is_some_and(shorter_buddy) {
            self.set_next_buddy(pse);
        }
        (true, rule)
    }
}

impl Kernel {
    /// `wakeup_preempt_fair()`.
    pub(super) fn wakeup_preempts_7_3(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake_flags: u32,
    ) -> (bool, PreemptionRule) {
        let features = self.cx.config.features;
        if !features.preempt_short && self.sched.rq[cpu].need_resched {
            return (false, PreemptionRule::ReschedulePending);
        }
        if !features.wakeup_preemption {
            return (false, PreemptionRule::FeatureOff);
        }
        let (mut se, mut pse) = (self.sched.tasks[curr].se, self.sched.tasks[task].se);
        if !self.sched.flat_groups() {
            (se, pse) = self.sched.find_matching_se(se, pse);
        }
        let cfs_rq = self.sched.timeline_of(se);
        if let Some(decided) = self.sched.decided_by_policies(task, curr, se, &self.cx) {
            return decided;
        }
        let (curr_is_idle, task_is_idle) = (self.sched.se_is_idle(se), self.sched.se_is_idle(pse));
        if curr_is_idle && !task_is_idle {
            return self.sched.idle_gives_way(se, &self.cx);
        }
        self.update_curr_of_class(cpu);
        let short = features.preempt_short && self.sched.se[pse].slice < self.sched.se[se].slice;
        let refused = if curr_is_idle != task_is_idle {
            Some(PreemptionRule::IdleDoesNotPreempt)
        } else if self.sched.tasks[task].policy != Policy::Normal {
            Some(PreemptionRule::BatchDoesNotPreempt)
        } else if self.sched.se[pse].sched_delayed {
            Some(PreemptionRule::DelayedDoesNotPreempt)
        } else if !short && wake_flags & WF_FORK != 0 {
            Some(PreemptionRule::ForkDoesNotPreempt)
        } else {
            None
        };
        let mut seen = LastPick::default();
        let rule = match refused {
            Some(rule) => rule,
            None if self.picks(cpu, cfs_rq, !short, !short, &mut seen) == Some(pse) => {
                let rule = match short {
                    true => PreemptionRule::PreemptShort,
                    false => PreemptionRule::EarliestDeadline,
                };
                return self.sched.preempts_7_3(cfs_rq, se, pse, short, rule, &self.cx);
            }
            None if short && self.sched.entity_eligible(cfs_rq, pse) => {
                let rule = PreemptionRule::PreemptShortEligible;
                return self.sched.preempts_7_3(cfs_rq, se, pse, short, rule, &self.cx);
            }
            None => seen.refuses(),
        };
        if features.run_to_parity {
            self.sched.update_protect_slice(cfs_rq, se, &self.cx);
        }
        (false, rule)
    }

    /// `pick_next_entity()`: the entity that a pick would take; delayed tasks that it meets leave.
    /// `buddies`: a buddy comes first.
    pub(super) fn picks(
        &mut self,
        cpu: CpuId,
        cfs_rq: CfsRqId,
        protect: bool,
        buddies: bool,
        see: &mut impl DecisionObserver,
    ) -> Option<EntityId> {
        while self.sched.cfs[cfs_rq].nr_queued != 0 {
            let picked = match buddies {
                true => self.sched.pick_next_entity(cfs_rq, protect, see, &self.cx),
                false => self.sched.pick_eevdf(cfs_rq, protect, see, &self.cx),
            };
            let picked = picked.expect("a queue that is not empty has a best");
            if !self.sched.se[picked].sched_delayed {
                return Some(picked);
            }
            self.dequeue_entities(cpu, picked, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
        }
        None
    }
}
