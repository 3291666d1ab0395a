// SPDX-License-Identifier: GPL-2.0-or-later
//! Where EEVDF and CFS differ: the one place that knows which of them a kernel has.
//!
//! Both share the entity, the walk through enqueue, dequeue, switch and tick (`class.rs`), the weights and
//! PELT. What is theirs alone is virtual time, and each place where the walk needs it is a hook here:
//!
//! | hook | EEVDF (`eevdf.rs`) | CFS (`cfs.rs`) |
//! |---|---|---|
//! | `timeline_insert`, `timeline_remove` | by deadline, with the sums behind V | by virtual runtime |
//! | `place_before_update`, `place_after_update` | at V less its lag | relative → absolute; a sleeper gets credit |
//! | `before_delaying` | its lag is fixed (7.3) | |
//! | `before_leaving`, `after_leaving` | keeps its lag | absolute → relative; `min_vruntime` moves on |
//! | `virtual_time_passed` | the slice is used up: reschedule | `min_vruntime` moves on |
//! | `pick_next_entity` | earliest eligible deadline | smallest virtual runtime, or a buddy |
//! | `installed` | its slice is protected | |
//! | `repicked` | | starts another slice, unless groups are compiled in |
//! | `tick_preempts` | | its share of the period is used up |
//! | `wakeup_preempts` | is the wakee the best pick? | does it lag by a granularity? |
//! | `yields` | forfeits the slice | becomes the skip buddy |
//! | `forked` | | starts a slice behind its parent |
//! | `sleeper_migrates` | | absolute → relative |
//! | `slice_changes` | `sched_setattr()` sets slices | has none |
//! | `slice_for_above`, `takes_slice` | a group has the shortest slice in it | |
//! | `before_reweight`, `after_reweight` | another weight, another place | its place stays |
//!
//! Not hooks, since features that CFS does not have turn them off: delayed dequeue, relative deadlines.
//!
//! Kernel: kernel/sched/fair.c, 6.12.95 for EEVDF, 6.1.192 for CFS.

use super::own_code::Instructions;
use crate::config::{Config, FairClass};
use crate::observe::DecisionObserver;
use crate::sched::{CfsRq, CfsRqId, EntityId, SchedEntity};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns, PickRule, PreemptionRule, SchedAttr, TaskId};

/// Returns the order in which a kernel's run queues keep their timelines.
pub(crate) fn of(config: &Config) -> FairClass {
    config.fair
}

/// Returns how many instructions the class takes.
pub(super) fn instructions(cx: &Context) -> &'static Instructions {
    match cx.config.fair {
        FairClass::Eevdf => super::eevdf::instructions(cx),
        FairClass::Cfs => &super::own_code::CFS,
    }
}

impl CfsRq {
    /// `__enqueue_entity()`: into the timeline.
    #[inline(always)]
    pub(super) fn timeline_insert(&mut self, id: EntityId, se: &SchedEntity) {
        match self.discipline {
            FairClass::Eevdf => self.enqueue(id, se),
            FairClass::Cfs => self.enqueue_by_vruntime(id, se),
        }
    }

    /// `__dequeue_entity()`: out of the timeline.
    #[inline(always)]
    pub(super) fn timeline_remove(&mut self, id: EntityId, se: &SchedEntity) {
        match self.discipline {
            FairClass::Eevdf => self.dequeue(id, se),
            FairClass::Cfs => self.dequeue_by_vruntime(id),
        }
    }
}

impl Scheduler {
    /// [`CfsRq::timeline_insert`], by number.
    pub(super) fn timeline_insert(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        self.cfs[cfs_rq].timeline_insert(se, &self.se[se]);
    }

    /// [`CfsRq::timeline_remove`], by number.
    pub(super) fn timeline_remove(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        self.cfs[cfs_rq].timeline_remove(se, &self.se[se]);
    }

    /// An entity joins a queue whose time has been accounted.
    #[inline(always)]
    pub(super) fn place_after_update(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        flags: u32,
        cx: &Context,
    ) {
        let curr = self.cfs[cfs_rq].curr == Some(se);
        match cx.config.fair {
            FairClass::Eevdf if curr => {}
            FairClass::Eevdf => self.place_entity(cfs_rq, se, flags, cx),
            FairClass::Cfs => {
                if !curr {
                    self.renormalise(cfs_rq, se, flags);
                }
                self.place_sleeper(cfs_rq, se, flags, cx);
            }
        }
    }

    /// An entity is going to sleep or to leave, and its queue's time has been accounted.
    #[inline(always)]
    pub(super) fn before_delaying(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        match cx.config.fair {
            FairClass::Eevdf => self.fix_lag(cfs_rq, se, cx),
            FairClass::Cfs => {}
        }
    }

    /// An entity is about to leave its queue, and still counts there.
    #[inline(always)]
    pub(super) fn before_leaving(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        flags: u32,
        cx: &Context,
    ) {
        match cx.config.fair {
            FairClass::Eevdf => self.keep_lag(cfs_rq, se, flags, cx),
            FairClass::Cfs => {}
        }
    }

    /// An entity has left its queue, and does not count there any more.
    #[inline(always)]
    pub(super) fn after_leaving(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        flags: u32,
        cx: &Context,
    ) {
        match cx.config.fair {
            FairClass::Eevdf => {}
            FairClass::Cfs => self.leave_virtual_time(cfs_rq, se, flags),
        }
    }

    /// The running entity's virtual runtime has grown (the end of `update_curr()`).
    #[inline(always)]
    pub(super) fn virtual_time_passed(
        &mut self,
        cfs_rq: CfsRqId,
        curr: EntityId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        match cx.config.fair {
            FairClass::Eevdf => self.charge_request(cfs_rq, curr, cpuidle, cx),
            FairClass::Cfs => self.update_min_vruntime(cfs_rq),
        }
    }

    /// `pick_next_entity()`: the entity that runs next. Read-only: the decision alone. `protect`: a
    /// protected slice counts.
    #[inline(always)]
    pub(super) fn pick_next_entity(
        &self,
        cfs_rq: CfsRqId,
        protect: bool,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<EntityId> {
        match cx.config.fair {
            FairClass::Eevdf => match self.cfs[cfs_rq].next {
                Some(next) if self.entity_eligible(cfs_rq, next) => {
                    see.pick(PickRule::NextBuddyEligible);
                    Some(next)
                }
                _ => self.pick_eevdf(cfs_rq, protect, see, cx),
            },
            FairClass::Cfs => self.pick_cfs(cfs_rq, see),
        }
    }

    /// Returns the standing of an entity among the candidates of a pick: its distance behind, its
    /// deadline and whether it may be picked, as in [`schedtwin_types::PickCandidate`].
    pub(super) fn virtual_standing(
        &self,
        cfs_rq: CfsRqId,
        se: EntityId,
        cx: &Context,
    ) -> (i64, Option<i64>, bool) {
        let entity = &self.se[se];
        match cx.config.fair {
            FairClass::Eevdf => {
                let average = self.peek_avg_vruntime(cfs_rq);
                (
                    average.wrapping_sub(entity.vruntime) as i64,
                    Some(entity.deadline.wrapping_sub(average) as i64),
                    self.entity_eligible(cfs_rq, se),
                )
            }
            FairClass::Cfs => {
                let behind = self.cfs[cfs_rq].min_vruntime.wrapping_sub(entity.vruntime);
                (behind as i64, None, true)
            }
        }
    }

    /// A queued entity has been switched to (`first`), or put back after a change (`set_next_entity()`).
    #[inline(always)]
    pub(super) fn installed(&mut self, cfs_rq: CfsRqId, se: EntityId, first: bool, cx: &Context) {
        match cx.config.fair {
            FairClass::Eevdf => self.set_protect_slice(cfs_rq, se, first, cx),
            FairClass::Cfs => {}
        }
    }

    /// A tick: is it somebody else's turn?
    #[inline(always)]
    pub(super) fn tick_preempts(
        &mut self,
        cfs_rq: CfsRqId,
        curr: EntityId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        match cx.config.fair {
            // It has been decided when its time was accounted.
            FairClass::Eevdf => {}
            FairClass::Cfs => self.check_preempt_tick(cfs_rq, curr, cpuidle, cx),
        }
    }

    /// `migrate_task_rq_fair()`, the virtual part: a waking task leaves the queue it slept on.
    #[inline(always)]
    pub(crate) fn sleeper_migrates(&mut self, se: EntityId, cx: &Context) {
        match cx.config.fair {
            FairClass::Eevdf => {}
            FairClass::Cfs => self.normalise(self.se[se].cfs_rq, se),
        }
    }

    /// Whether `sched_setattr()` asks for another slice than `se` has.
    pub(crate) fn slice_changes(&self, se: EntityId, attr: &SchedAttr, cx: &Context) -> bool {
        match cx.config.fair {
            // Compared with the slice in force, so asking for the default counts as a change.
            FairClass::Eevdf => attr.slice != self.se[se].slice,
            FairClass::Cfs => false,
        }
    }

    /// `cfs_rq_min_slice()`: the slice of a group with this queue.
    #[inline]
    pub(super) fn slice_for_above(&self, cfs_rq: CfsRqId, cx: &Context) -> Option<Ns> {
        match cx.config.fair {
            FairClass::Eevdf => {
                let waiting = self.cfs[cfs_rq].timeline.iter().map(|node| node.se);
                waiting.chain(self.curr_on_rq(cfs_rq)).map(|se| self.se[se].slice).min()
            }
            FairClass::Cfs => None,
        }
    }

    /// A group that joins a queue has the slice of those in it.
    #[inline]
    pub(super) fn takes_slice(&mut self, se: EntityId, slice: Ns) {
        let entity = &mut self.se[se];
        entity.slice = slice;
        entity.custom_slice = true;
    }

    /// It has been.
    pub(super) fn after_reweight(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        curr: bool,
        cx: &Context,
    ) {
        if cx.config.fair == FairClass::Eevdf && !curr {
            self.timeline_insert(cfs_rq, se);
        }
    }

    /// Asserts that the timeline is in order, and the sums are what is in it.
    pub(crate) fn verify_timeline(&self, cfs_rq: CfsRqId, cx: &Context) {
        match cx.config.fair {
            FairClass::Eevdf => self.verify_eevdf(cfs_rq),
            FairClass::Cfs => self.verify_cfs(cfs_rq),
        }
    }
}

impl Kernel {
    /// An entity joins a queue whose time is not accounted yet.
    #[inline(always)]
    pub(super) fn place_before_update(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        if self.sched.cfs[cfs_rq].curr == Some(se) {
            match self.cx.config.fair {
                FairClass::Eevdf => self.place_running(cfs_rq, se, flags),
                FairClass::Cfs => self.sched.renormalise(cfs_rq, se, flags),
            }
        }
    }

    /// The running task has been picked again.
    #[inline(always)]
    pub(super) fn repicked(&mut self, cpu: CpuId, task: TaskId) {
        match self.cx.config.fair {
            FairClass::Eevdf => {}
            // What the hierarchies of both have in common is not touched: its slice goes on.
            FairClass::Cfs if self.cx.config.fair_group_sched => {
                self.sched.cfs_tasks_move_to_head(cpu, task);
                self.update_misfit_status(Some(task), cpu);
            }
            FairClass::Cfs => {
                self.put_prev_task_fair(cpu, task);
                self.set_next_task_fair(cpu, task, true);
            }
        }
    }

    /// Whether `task`, which has just been queued, preempts `curr`, and by what rule.
    pub(super) fn wakeup_preempts(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake_flags: u32,
    ) -> (bool, PreemptionRule) {
        match self.cx.config.fair {
            FairClass::Eevdf => self.wakeup_preempts_eevdf(cpu, task, curr, wake_flags),
            FairClass::Cfs => self.wakeup_preempts_cfs(cpu, task, curr, wake_flags),
        }
    }

    /// The running task yields, and is not alone.
    pub(super) fn yields(&mut self, cpu: CpuId, cfs_rq: CfsRqId, se: EntityId) {
        match self.cx.config.fair {
            FairClass::Eevdf => self.yield_eevdf(cpu, cfs_rq, se),
            FairClass::Cfs => self.yield_cfs(cpu, cfs_rq, se),
        }
    }

    /// `task_fork_fair()`: the running task has made `child`.
    pub(crate) fn forked(&mut self, child: EntityId) {
        match self.cx.config.fair {
            FairClass::Eevdf => {}
            FairClass::Cfs => self.task_fork_cfs(child),
        }
    }

    /// A queued entity is going to be reweighted: out of the timeline where its place depends on the
    /// weight. V, where its lag does.
    pub(super) fn before_reweight(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        curr: bool,
    ) -> Option<u64> {
        match self.cx.config.fair {
            FairClass::Eevdf if self.cx.config.bugs.reweight_stale_average => {
                if curr {
                    self.update_curr(cfs_rq);
                } else {
                    self.sched.timeline_remove(cfs_rq, se);
                }
                Some(self.sched.avg_vruntime(cfs_rq))
            }
            FairClass::Eevdf => {
                self.update_curr(cfs_rq);
                let average = self.sched.avg_vruntime(cfs_rq);
                if !curr {
                    self.sched.timeline_remove(cfs_rq, se);
                }
                Some(average)
            }
            FairClass::Cfs => {
                if curr {
                    self.update_curr(cfs_rq);
                }
                None
            }
        }
    }
}
