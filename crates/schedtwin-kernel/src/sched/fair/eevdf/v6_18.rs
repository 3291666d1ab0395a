// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF as of 6.18, where it is not that of 6.12. It stands between that and 7.3's.
//!
//! **Slice protection.** An entity that is switched to may run until `vprot`, once, as in 7.3. `vprot` is its deadline, or, if
//! somebody with a shorter slice is queued, its virtual runtime and that slice, whichever comes first. A wakee that does not
//! preempt moves it nearer in the same way. `vprot` is stored where the lag is kept (a union), so
//! that an entity that is put back after a change of nice value or group goes on with its lag for a
//! mark, which as a rule is no protection.
//!
//! ```text
//!  virtual time ──────────────────────────────────►
//!      v      v + 1 ms               d              switched to while a slice of 1 ms is queued:
//!      ├──────────┼──────────────────┤              protected for 1 ms; 7.3: until it is not eligible
//! ```
//!
//! **Wakeup preemption.** 1. Nothing while a pick is pending. 2. An idle entity gives way; an idle
//! or batch wakee does not preempt. 3. A shorter slice: which entity would the pick take,
//! protection left aside? 4. Else new tasks and delayed ones do not preempt, and the pick counts
//! protection. 5. A wakee that would not be picked does not preempt, however eligible (7.3: a
//! shorter slice needs no more), and the protection is moved nearer. A short wakee becomes no
//! buddy.
//!
//! **Weights.** Up to 6.18.44 (`reweight_entity = "placed"`) an entity whose weight changes is placed anew where it is queued: its lag, rescaled and within its limit, is
//! inflated as at any other placement. What is left of its protection would be rescaled, too; but of a running entity the lag is
//! computed first, into the same storage, and goes on as its mark.
//!
//! Kernel: 6.18.44 kernel/sched/fair.c `set_protect_slice`, `update_protect_slice`, `wakeup_preempt_fair`, `pick_next_entity`,
//! `reweight_entity`.
//! Differences: the longest slice of a queue is that of the entities that are there; Linux keeps it
//! in the nodes of its tree, of which one that has just been inserted can still hold the value of
//! an earlier time, so that a lag's limit can be smaller there.

use super::{Reweighted, before};
use crate::observe::LastPick;
use crate::sched::core::WF_FORK;
use crate::sched::{CfsRqId, EntityId, SchedEntity};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns, PreemptionRule, TaskId};

/// The earlier of two virtual times (`min_vruntime()`).
fn earlier(a: u64, b: u64) -> u64 {
    if before(b, a) { b } else { a }
}

/// `div_s64()` of a virtual time by a weight: it takes a 32-bit divisor.
fn rescaled(virtual_time: i64, old: u64, weight: u64) -> i64 {
    virtual_time.wrapping_mul(old as i64) / weight as i32 as i64
}

impl SchedEntity {
    /// `protect_slice()`: the mark is where the lag is kept while the entity is queued.
    #[inline(always)]
    pub(super) fn is_protected_6_18(&self) -> bool {
        before(self.vruntime, self.vlag as u64)
    }

    /// `reweight_entity()` off the queue: lag, and a relative deadline.
    pub(super) fn rescale_6_18(&mut self, weight: u64) {
        let old = self.load.weight;
        self.vlag = rescaled(self.vlag, old, weight);
        if self.rel_deadline {
            self.deadline = rescaled(self.deadline as i64, old, weight) as u64;
        }
    }
}

impl Scheduler {
    /// `set_protect_slice()`: up to where an entity that is switched to may run.
    #[inline(never)]
    pub(super) fn set_protect_slice_6_18(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        let entity = &self.se[se];
        let shortest = match cx.config.features.run_to_parity {
            true => self.min_slice(cfs_rq).unwrap_or(entity.slice),
            false => cx.config.base_slice_unscaled,
        };
        let mut vprot = entity.deadline;
        if shortest < entity.slice {
            let vslice = cx.calc_delta_fair(shortest, entity.virtual_load());
            vprot = earlier(vprot, entity.vruntime.wrapping_add(vslice));
        }
        self.se[se].vlag = vprot as i64;
    }

    /// `update_protect_slice()`: an entity has come that does not preempt.
    fn update_protect_slice_6_18(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        let entity = &self.se[se];
        let shortest = self.min_slice(cfs_rq).unwrap_or(Ns::MAX);
        let vslice = cx.calc_delta_fair(shortest, entity.virtual_load());
        let vprot = earlier(entity.vlag as u64, entity.vruntime.wrapping_add(vslice));
        self.se[se].vlag = vprot as i64;
    }

    /// `reweight_entity()` of a queued entity, out of the timeline: lag and deadline become relative and are rescaled.
    pub(super) fn reweight_eevdf_6_18(
        &mut self,
        se: EntityId,
        average: u64,
        weight: u64,
        cx: &Context,
    ) -> Reweighted {
        let cfs_rq = self.se[se].cfs_rq;
        let lag = self.entity_lag(cfs_rq, average, se, cx);
        let curr = self.cfs[cfs_rq].curr == Some(se);
        let entity = &mut self.se[se];
        let old = entity.load.weight;
        // The lag takes the mark's place before the mark is asked for.
        entity.vlag = lag;
        let protection = (curr && entity.is_protected_6_18()).then(|| {
            let left = (entity.vlag as u64).wrapping_sub(entity.vruntime);
            rescaled(left as i64, old, weight) as u64
        });
        entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
        entity.rel_deadline = true;
        entity.rescale_6_18(weight);
        Reweighted::ToBePlaced { protection }
    }

    /// The end of it: the entity, which has its new weight, is placed.
    pub(super) fn place_reweighted(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        protection: Option<u64>,
        cx: &Context,
    ) {
        self.cfs[cfs_rq].nr_queued -= 1;
        self.place_entity(cfs_rq, se, 0, cx);
        self.cfs[cfs_rq].nr_queued += 1;
        if let Some(protection) = protection {
            let entity = &mut self.se[se];
            entity.vlag = entity.vruntime.wrapping_add(protection) as i64;
        }
    }
}

impl Kernel {
    /// `wakeup_preempt_fair()`.
    pub(super) fn wakeup_preempts_6_18(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake_flags: u32,
    ) -> (bool, PreemptionRule) {
        let features = self.cx.config.features;
        let (se, pse) = match self.wakeup_checks_before_times(cpu, task, curr) {
            Ok(entities) => entities,
            Err(decided) => return decided,
        };
        let cfs_rq = self.sched.se[se].cfs_rq;
        let short = features.preempt_short && self.sched.se[pse].slice < self.sched.se[se].slice;
        if !short && wake_flags & WF_FORK != 0 {
            return (false, PreemptionRule::ForkDoesNotPreempt);
        }
        if !short && self.sched.se[pse].sched_delayed {
            return (false, PreemptionRule::DelayedDoesNotPreempt);
        }
        let mut seen = LastPick::default();
        if self.picks(cpu, cfs_rq, !short, true, &mut seen) != Some(pse) {
            if features.run_to_parity {
                self.sched.update_protect_slice_6_18(cfs_rq, se, &self.cx);
            }
            return (false, seen.refuses());
        }
        if short {
            self.sched.cancel_protect_slice(se, &self.cx);
            return (true, PreemptionRule::PreemptShort);
        }
        (true, PreemptionRule::EarliestDeadline)
    }
}

#[cfg(test)]
mod tests;
