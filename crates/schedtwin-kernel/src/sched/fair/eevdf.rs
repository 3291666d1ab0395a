// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF: which entities are owed time, and which of those has the earliest deadline.
//!
//! **Decides** which entity of a fair run queue runs next, and where a newcomer starts in virtual time.
//!
//! **Idea.** Each entity has a virtual runtime v that advances with its runtime divided by its weight.
//! V, the weighted average of all v, is where everybody would be had service been perfectly fair. An
//! entity behind V (v ≤ V) is *eligible*: it is owed time. Among the eligible ones the one with the
//! earliest virtual *deadline* d = v + slice/weight runs: short slices mean early deadlines, so low
//! latency, without more time.
//!
//! ```text
//!  virtual time ─────────────────────────────►
//!      v₁     v₂      V    v₃        d₂   d₁   d₃
//!      ●──────┼───────┼────┼─────────┼────●          1: eligible, later deadline
//!             ●───────┼────┼─────────●               2: eligible, earliest deadline: runs
//!                     │    ●─────────┼─────────●     3: not eligible (it has run too much)
//! ```
//!
//! **Terms.** lag = V − v, in virtual units `vlag`, kept over a sleep (`PLACE_LAG`). `zero_vruntime`: base
//! of the sums `avg_vruntime` = Σ (v − base)·w and `avg_load` = Σ w over the *queued* entities; the running
//! one is not queued and is added where needed.
//!
//! **Algorithm of `pick_eevdf`.** 1. A lone entity is picked. 2. The running entity counts only while
//! eligible. 3. `RUN_TO_PARITY`: it stays until its slice is used up (its `vlag` still equals its
//! `deadline`: the mark made when it was installed). 4. The first eligible entity by deadline. 5. The
//! running one, if its deadline is earlier.
//!
//! **Three forms.** That of 6.12 is here; `eevdf/v6_18.rs` has the differences of 6.18,
//! `eevdf/v7_3.rs` those of 7.3, and this file chooses the form.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `avg_vruntime`, `vruntime_eligible`, `place_entity`, `pick_eevdf`,
//! `update_deadline`, `update_curr`, `check_preempt_wakeup_fair`.
//! Differences: a sorted array instead of an augmented tree; the kernel's search descends to the first
//! eligible entity in deadline order, which a scan finds as well.

#[cfg(test)]
mod tests;
mod v6_18;
mod v7_3;

use super::own_code::{self, Instructions};
use super::scale_load_down;
use crate::config::{Config, EevdfForm, LagLimit, ReweightEntity};
use crate::observe::{DecisionObserver, LastPick};
use crate::sched::core::{DEQUEUE_DELAYED, DEQUEUE_SLEEP, ENQUEUE_INITIAL};
use crate::sched::{CfsRq, CfsRqId, EntityId, LoadWeight, SchedEntity, TimelineNode};
use crate::sorted;
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, PickRule, Policy, PreemptionRule, TaskId};

/// The work that is left for a queued entity whose weight changes.
pub(super) enum Reweighted {
    /// Nothing: its virtual times have been rescaled where it stands.
    InPlace,
    /// It is placed anew. `protection`: how far its slice is protected from where it is then.
    ToBePlaced { protection: Option<u64> },
}

/// Whether weights in a queue's sums have all of their bits: 7.3 scales none of them down.
pub(crate) fn sums_full_weights(config: &Config) -> bool {
    config.eevdf_form == EevdfForm::V7_3
}

/// Returns how many instructions the class takes. 6.18's form has the counts of 6.12's.
pub(super) fn instructions(cx: &Context) -> &'static Instructions {
    match cx.config.eevdf_form {
        EevdfForm::V6_12 | EevdfForm::V6_18 => &own_code::V6_12,
        EevdfForm::V7_3 => &own_code::V7_3,
    }
}

/// `entity_before()` on deadlines.
#[inline(always)]
fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// Σ (v − base)·w and Σ w over the queue, running entity included.
#[inline]
fn sums(cfs: &CfsRq, curr: Option<&SchedEntity>) -> (i64, i64) {
    let mut sum = cfs.avg_vruntime;
    let mut load = cfs.avg_load as i64;
    if let Some(curr) = curr {
        let weight = cfs.weight_in_sums(curr) as i64;
        let key = curr.vruntime.wrapping_sub(cfs.zero_vruntime) as i64;
        sum = sum.wrapping_add(key.wrapping_mul(weight));
        load += weight;
    }
    (sum, load)
}

impl Context {
    /// Whether a wakee is compared with the class that has been raised since the last pick, not
    /// with the running task.
    #[inline(always)]
    pub(crate) fn compares_next_class(&self) -> bool {
        self.config.eevdf_form == EevdfForm::V7_3
    }
}

impl SchedEntity {
    /// The weight by which its virtual time passes.
    #[inline(always)]
    pub(crate) fn virtual_load(&self) -> &LoadWeight {
        self.timeline_load.as_ref().unwrap_or(&self.load)
    }
}

impl CfsRq {
    /// `avg_vruntime_weight()`: what an entity's weight counts in the sums.
    #[inline(always)]
    pub fn weight_in_sums(&self, se: &SchedEntity) -> u64 {
        let weight = se.virtual_load().weight;
        if self.full_weights { weight } else { scale_load_down(weight) }
    }

    /// `/` of the sums: up to 6.12 `div_s64()`, which takes a 32-bit divisor.
    #[inline(always)]
    fn divide(&self, sum: i64, load: i64) -> i64 {
        if self.full_weights { sum / load } else { sum / load as i32 as i64 }
    }

    /// `vruntime_eligible()`: v ≤ V, without a division. 7.3 multiplies in 128 bits.
    #[inline(always)]
    fn is_eligible(&self, (sum, load): (i64, i64), vruntime: u64) -> bool {
        let key = vruntime.wrapping_sub(self.zero_vruntime) as i64;
        match self.full_weights {
            true => sum as i128 >= key as i128 * load as i128,
            false => sum >= key.wrapping_mul(load),
        }
    }

    /// `update_zero_vruntime()`: moves the base of the sums.
    #[inline(always)]
    fn move_zero(&mut self, delta: i64) {
        self.avg_vruntime =
            self.avg_vruntime.wrapping_sub((self.avg_load as i64).wrapping_mul(delta));
        self.zero_vruntime = self.zero_vruntime.wrapping_add(delta as u64);
    }

    /// `__enqueue_entity()`: into the timeline, and into the sums.
    #[inline]
    pub(crate) fn enqueue(&mut self, id: EntityId, se: &SchedEntity) {
        let weight = self.weight_in_sums(se);
        let key = se.vruntime.wrapping_sub(self.zero_vruntime) as i64;
        self.avg_vruntime = self.avg_vruntime.wrapping_add(key.wrapping_mul(weight as i64));
        self.avg_load += weight;
        let node = TimelineNode { deadline: se.deadline, vruntime: se.vruntime, se: id };
        sorted::insert(&mut self.timeline, node, |other| before(node.deadline, other.deadline));
    }

    /// `__dequeue_entity()`.
    #[inline]
    pub(crate) fn dequeue(&mut self, id: EntityId, se: &SchedEntity) {
        let at = self.timeline.iter().position(|n| n.se == id).expect("a queued entity");
        sorted::remove(&mut self.timeline, at);
        let weight = self.weight_in_sums(se);
        let key = se.vruntime.wrapping_sub(self.zero_vruntime) as i64;
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(key.wrapping_mul(weight as i64));
        self.avg_load -= weight;
    }
}

impl Scheduler {
    /// `avg_vruntime()`: V, and moves the base of the sums there.
    pub(crate) fn avg_vruntime(&mut self, cfs_rq: CfsRqId) -> u64 {
        let curr = self.curr_on_rq(cfs_rq).map(|c| &self.se[c]);
        let cfs = &mut self.cfs[cfs_rq];
        let delta = if cfs.avg_load != 0 {
            let (mut sum, load) = sums(cfs, curr);
            if sum < 0 {
                // Rounds towards −∞.
                sum -= load - 1;
            }
            cfs.divide(sum, load)
        } else if let Some(curr) = curr {
            curr.vruntime.wrapping_sub(cfs.zero_vruntime) as i64
        } else {
            0
        };
        cfs.move_zero(delta);
        cfs.zero_vruntime
    }

    /// `entity_eligible()`: v ≤ V, without a division.
    #[inline(always)]
    pub(crate) fn entity_eligible(&self, cfs_rq: CfsRqId, se: EntityId) -> bool {
        let cfs = &self.cfs[cfs_rq];
        let curr = self.curr_on_rq(cfs_rq).map(|c| &self.se[c]);
        cfs.is_eligible(sums(cfs, curr), self.se[se].vruntime)
    }

    /// `update_entity_lag()`: V − v, within its limit.
    pub(crate) fn update_entity_lag(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        let average = self.avg_vruntime(cfs_rq);
        self.se[se].vlag = self.entity_lag(cfs_rq, average, se, cx);
    }

    /// `entity_lag()`.
    #[inline(always)]
    pub(super) fn entity_lag(
        &self,
        cfs_rq: CfsRqId,
        average: u64,
        se: EntityId,
        cx: &Context,
    ) -> i64 {
        let entity = &self.se[se];
        let time = match cx.config.lag_limit {
            LagLimit::TwoSlices => (2 * entity.slice).max(cx.tick_nsec),
            // An entity that is being reweighted is out of the timeline for a moment.
            LagLimit::MaxSliceAndTick => self.max_slice(cfs_rq).max(entity.slice) + cx.tick_nsec,
        };
        let limit = cx.calc_delta_fair(time, entity.virtual_load()) as i64;
        (average.wrapping_sub(entity.vruntime) as i64).clamp(-limit, limit)
    }

    /// `reweight_eevdf()`: a queued entity, out of the timeline, is to have another weight. Its lag, and what is
    /// left of its request, are worth less virtual time the heavier it is.
    pub(super) fn reweight_eevdf(
        &mut self,
        se: EntityId,
        average: u64,
        weight: u64,
        cx: &Context,
    ) -> Reweighted {
        if cx.config.bugs.reweight_keeps_vruntime {
            self.rescale_deadline(se, weight);
            return Reweighted::InPlace;
        }
        if cx.config.reweight_entity == ReweightEntity::Placed {
            return self.reweight_eevdf_6_18(se, average, weight, cx);
        }
        let cfs_rq = self.se[se].cfs_rq;
        let lag = self.entity_lag(cfs_rq, average, se, cx);
        let protected = cx.config.eevdf_form == EevdfForm::V7_3
            && self.cfs[cfs_rq].curr == Some(se)
            && self.protect_slice(se, cx);
        let entity = &mut self.se[se];
        let old = entity.virtual_load().weight as i64;
        // div_s64() takes a 32-bit divisor.
        let rescaled = |virtual_time: i64| virtual_time.wrapping_mul(old) / weight as i32 as i64;
        if average != entity.vruntime {
            entity.vruntime = average.wrapping_sub(rescaled(lag) as u64);
        }
        if cx.config.eevdf_form == EevdfForm::V6_18 {
            // The lag is stored where the mark of a protected slice was, and goes on as the mark.
            entity.vlag = rescaled(lag);
        }
        let left = entity.deadline.wrapping_sub(average) as i64;
        entity.deadline = average.wrapping_add(rescaled(left) as u64);
        if protected {
            let left = entity.vprot.wrapping_sub(average) as i64;
            entity.vprot = average.wrapping_add(rescaled(left) as u64);
        }
        Reweighted::InPlace
    }

    /// What is left of a queued entity's slice follows the weight that it gets, and its virtual runtime stays.
    pub(super) fn rescale_deadline(&mut self, se: EntityId, weight: u64) {
        let entity = &mut self.se[se];
        let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
        let old = entity.virtual_load().weight as i64;
        // div_s64() takes a 32-bit divisor.
        let rescaled = left.wrapping_mul(old) / weight as i32 as i64;
        entity.deadline = entity.vruntime.wrapping_add(rescaled as u64);
    }

    /// The end of `reweight_entity()` of a queued entity, which has its new weight and is out of the timeline.
    pub(super) fn reweighted(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        how: Reweighted,
        cx: &Context,
    ) {
        if let Reweighted::ToBePlaced { protection } = how {
            self.place_reweighted(cfs_rq, se, protection, cx);
        }
    }

    /// An entity that is off the queue gets another weight: its lag is worth less virtual time the heavier it is.
    pub(super) fn reweighted_off_queue(&mut self, se: EntityId, weight: u64, cx: &Context) {
        let entity = &mut self.se[se];
        match cx.config.eevdf_form {
            EevdfForm::V6_12 => {
                let scaled = entity.vlag.wrapping_mul(entity.load.weight as i64);
                // div_s64() takes a 32-bit divisor.
                entity.vlag = scaled / weight as i32 as i64;
            }
            EevdfForm::V6_18 => entity.rescale_6_18(weight),
            // What it was worth before is needed when it is queued.
            EevdfForm::V7_3 => {
                entity.timeline_load.get_or_insert(entity.load);
            }
        }
    }

    /// The beginning of `dequeue_task()`: 7.3 fixes the lag when a task blocks.
    pub(super) fn fix_lag(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) {
        match cx.config.eevdf_form {
            EevdfForm::V6_12 | EevdfForm::V6_18 => {}
            EevdfForm::V7_3 => {
                self.update_entity_lag_7_3(cfs_rq, se, cx);
            }
        }
    }

    /// The middle of `dequeue_entity()`: what an entity takes along.
    pub(super) fn keep_lag(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32, cx: &Context) {
        let fixed = cx.config.eevdf_form == EevdfForm::V7_3;
        if !fixed {
            self.update_entity_lag(cfs_rq, se, cx);
        }
        let features = &cx.config.features;
        let entity = &mut self.se[se];
        let sleep = flags & DEQUEUE_SLEEP != 0;
        if features.place_rel_deadline && !sleep {
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.rel_deadline = true;
        }
        if !fixed && flags & DEQUEUE_DELAYED != 0 && features.delay_zero && entity.vlag > 0 {
            entity.vlag = 0;
        }
    }

    /// `place_entity()`: where a newcomer starts.
    pub(crate) fn place_entity(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32, cx: &Context) {
        let form = cx.config.eevdf_form;
        if form == EevdfForm::V7_3 && !self.flat_groups() {
            self.take_weight(se);
        }
        let average = self.avg_vruntime(cfs_rq);
        let curr = self.curr_on_rq(cfs_rq);
        let base_slice = self.base_slice;
        let entity = &mut self.se[se];
        if !entity.custom_slice {
            entity.slice = base_slice;
        }
        let mut vslice = cx.calc_delta_fair(self.se[se].slice, self.se[se].virtual_load());
        let cfs = &mut self.cfs[cfs_rq];
        let features = &cx.config.features;
        let mut lag = 0;
        if features.place_lag && cfs.nr_queued != 0 {
            // Joining moves V towards the newcomer, which would eat part of its lag: inflate the
            // lag so that after joining it is what it was.
            let load = cfs.avg_load + curr.map_or(0, |curr| cfs.weight_in_sums(&self.se[curr]));
            let vlag = self.se[se].vlag;
            lag = match form {
                EevdfForm::V6_12 | EevdfForm::V6_18 => {
                    let together = load + cfs.weight_in_sums(&self.se[se]);
                    vlag.wrapping_mul(together as i64) / load.max(1) as i32 as i64
                }
                EevdfForm::V7_3 => cfs.inflated(vlag, load.max(1), &self.se[se]),
            };
        }
        let entity = &mut self.se[se];
        entity.vruntime = average.wrapping_sub(lag as u64);
        // Without PLACE_REL_DEADLINE only 6.18's change of weight makes a deadline relative.
        if entity.rel_deadline {
            entity.deadline = entity.deadline.wrapping_add(entity.vruntime);
            entity.rel_deadline = false;
            return;
        }
        if features.place_deadline_initial && flags & ENQUEUE_INITIAL != 0 {
            // The others are, on average, halfway through their slices.
            vslice /= 2;
        }
        entity.deadline = entity.vruntime.wrapping_add(vslice);
    }

    /// `update_deadline()`: has the slice been used up? Then the next one begins.
    #[inline(always)]
    fn update_deadline(&mut self, cfs_rq: CfsRqId, se: EntityId, cx: &Context) -> bool {
        let base_slice = self.base_slice;
        let entity = &mut self.se[se];
        if before(entity.vruntime, entity.deadline) {
            return false;
        }
        if !entity.custom_slice {
            entity.slice = base_slice;
        }
        let slice = entity.slice;
        let vslice = cx.calc_delta_fair(slice, self.se[se].virtual_load());
        let entity = &mut self.se[se];
        entity.deadline = entity.vruntime.wrapping_add(vslice);
        self.avg_vruntime(cfs_rq);
        true
    }

    /// `protect_slice()`: the entity was installed and still is in that slice.
    #[inline(always)]
    pub(super) fn protect_slice(&self, se: EntityId, cx: &Context) -> bool {
        let entity = &self.se[se];
        match cx.config.eevdf_form {
            EevdfForm::V6_12 => entity.vlag == entity.deadline as i64,
            EevdfForm::V6_18 => entity.is_protected_6_18(),
            EevdfForm::V7_3 => before(entity.vruntime, entity.vprot),
        }
    }

    /// `set_protect_slice()`. `first`: it has been switched to, not put back after a change.
    #[inline(always)]
    pub(crate) fn set_protect_slice(
        &mut self,
        cfs_rq: CfsRqId,
        se: EntityId,
        first: bool,
        cx: &Context,
    ) {
        match cx.config.eevdf_form {
            EevdfForm::V6_12 => self.se[se].vlag = self.se[se].deadline as i64,
            EevdfForm::V6_18 if first => self.set_protect_slice_6_18(cfs_rq, se, cx),
            EevdfForm::V7_3 if first => self.se[se].vprot = self.protected_until(cfs_rq, se, cx),
            EevdfForm::V6_18 | EevdfForm::V7_3 => {}
        }
    }

    /// `cancel_protect_slice()`.
    pub(crate) fn cancel_protect_slice(&mut self, se: EntityId, cx: &Context) {
        if self.protect_slice(se, cx) {
            let entity = &mut self.se[se];
            match cx.config.eevdf_form {
                EevdfForm::V6_12 => entity.vlag = entity.deadline.wrapping_add(1) as i64,
                EevdfForm::V6_18 => entity.vlag = entity.vruntime as i64,
                EevdfForm::V7_3 => entity.vprot = entity.vruntime,
            }
        }
    }

    /// A running idle entity gives way to a wakee that is not idle.
    pub(super) fn idle_gives_way(&mut self, se: EntityId, cx: &Context) -> (bool, PreemptionRule) {
        if !cx.config.bugs.protected_idle_task {
            self.cancel_protect_slice(se, cx);
        }
        (true, PreemptionRule::IdleGivesWay)
    }

    /// What the policies of the two tasks decide where they are asked before their groups.
    #[inline(always)]
    pub(super) fn decided_by_policies(
        &mut self,
        task: TaskId,
        curr: TaskId,
        se: EntityId,
        cx: &Context,
    ) -> Option<(bool, PreemptionRule)> {
        if !cx.config.bugs.idle_preempt_by_task {
            return None;
        }
        match (self.tasks[curr].policy, self.tasks[task].policy) {
            (Policy::Idle, Policy::Idle) => Some((false, PreemptionRule::BatchDoesNotPreempt)),
            (Policy::Idle, _) => Some(self.idle_gives_way(se, cx)),
            (_, Policy::Normal) => None,
            _ => Some((false, PreemptionRule::BatchDoesNotPreempt)),
        }
    }

    /// The end of `update_curr()`: if the slice is used up, or the running entity has lost its claim, it
    /// is somebody else's turn.
    pub(super) fn charge_request(
        &mut self,
        cfs_rq: CfsRqId,
        curr: EntityId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let used_up = self.update_deadline(cfs_rq, curr, cx);
        if self.cfs[cfs_rq].nr_queued == 1 {
            return;
        }
        let loses = match cx.config.eevdf_form {
            EevdfForm::V6_12 => used_up || self.did_preempt_short(cfs_rq, curr, cx),
            EevdfForm::V6_18 | EevdfForm::V7_3 => used_up || !self.protect_slice(curr, cx),
        };
        if loses {
            self.resched_curr_lazy(self.cpu_of(cfs_rq), cpuidle, cx);
            self.clear_buddies(cfs_rq, curr);
        }
    }

    /// `did_preempt_short()`: an unprotected running entity has run beyond its share.
    fn did_preempt_short(&self, cfs_rq: CfsRqId, curr: EntityId, cx: &Context) -> bool {
        cx.config.features.preempt_short
            && !self.protect_slice(curr, cx)
            && !self.entity_eligible(cfs_rq, curr)
    }

    /// `do_preempt_short()`: does a waking entity with a shorter slice break the protection?
    pub(crate) fn do_preempt_short(
        &self,
        cfs_rq: CfsRqId,
        pse: EntityId,
        se: EntityId,
        cx: &Context,
    ) -> bool {
        cx.config.features.preempt_short
            && self.se[pse].slice < self.se[se].slice
            && self.entity_eligible(cfs_rq, pse)
            && (before(self.se[pse].deadline, self.se[se].deadline)
                || !self.entity_eligible(cfs_rq, se))
    }

    /// V, without moving its base: what [`Kernel::avg_vruntime`] would return.
    pub(super) fn peek_avg_vruntime(&self, cfs_rq: CfsRqId) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        let (mut sum, load) = sums(cfs, self.curr_on_rq(cfs_rq).map(|c| &self.se[c]));
        if load == 0 {
            return cfs.zero_vruntime;
        }
        // The division rounds down.
        if sum < 0 {
            sum -= load - 1;
        }
        cfs.zero_vruntime.wrapping_add((sum / load) as u64)
    }

    /// `pick_eevdf()`. Read-only: the decision alone. `protect`: a protected slice counts (6.18, 7.3).
    pub(crate) fn pick_eevdf(
        &self,
        cfs_rq: CfsRqId,
        protect: bool,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Option<EntityId> {
        let cfs = &self.cfs[cfs_rq];
        let on_rq = self.curr_on_rq(cfs_rq);
        if cfs.nr_queued == 1 {
            see.pick(PickRule::OnlyEntity);
            return on_rq.or_else(|| cfs.timeline.first().map(|n| n.se));
        }
        let sums = sums(cfs, on_rq.map(|c| &self.se[c]));
        let eligible = |vruntime: u64| cfs.is_eligible(sums, vruntime);
        let curr = on_rq.filter(|&c| eligible(self.se[c].vruntime));
        let protects = match cx.config.eevdf_form {
            EevdfForm::V6_12 => cx.config.features.run_to_parity,
            EevdfForm::V6_18 | EevdfForm::V7_3 => protect,
        };
        if let Some(curr) = curr
            && protects
            && self.protect_slice(curr, cx)
        {
            see.pick(PickRule::RunToParity);
            return Some(curr);
        }
        let best = cfs.timeline.iter().find(|n| eligible(n.vruntime));
        let picked = match (best, curr) {
            (None, curr) => curr,
            (Some(best), Some(curr)) if before(self.se[curr].deadline, best.deadline) => Some(curr),
            (Some(best), _) => Some(best.se),
        };
        see.pick(match picked == on_rq {
            true => PickRule::CurrEarliestDeadline,
            false => PickRule::EarliestDeadline,
        });
        picked
    }

    /// Asserts that the timeline is in order, and recomputes the sums.
    pub(super) fn verify_eevdf(&self, cfs_rq: CfsRqId) {
        let cfs = &self.cfs[cfs_rq];
        for pair in cfs.timeline.windows(2) {
            assert!(!before(pair[1].deadline, pair[0].deadline), "{:?}: order", cfs.cpu);
        }
        let (mut sum, mut weights) = (0i64, 0);
        for node in &cfs.timeline {
            let weight = cfs.weight_in_sums(&self.se[node.se]);
            let key = node.vruntime.wrapping_sub(cfs.zero_vruntime) as i64;
            sum = sum.wrapping_add(key.wrapping_mul(weight as i64));
            weights += weight;
        }
        assert_eq!(cfs.avg_vruntime, sum, "{:?}: avg_vruntime", cfs.cpu);
        assert_eq!(cfs.avg_load, weights, "{:?}: avg_load", cfs.cpu);
    }
}

impl Kernel {
    /// `place_entity()` of a task that has blocked, has not been switched out yet and is woken: 7.3 accounts its time before.
    pub(super) fn place_running(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        match self.cx.config.eevdf_form {
            EevdfForm::V6_12 | EevdfForm::V6_18 => {}
            EevdfForm::V7_3 => self.update_curr(cfs_rq),
        }
        self.sched.place_entity(cfs_rq, se, flags, &self.cx);
    }

    /// `requeue_delayed_entity()`: whether a delayed task that is woken is placed anew, with its lag.
    pub(super) fn requeued_elsewhere(&mut self, cfs_rq: CfsRqId, se: EntityId) -> bool {
        match self.cx.config.eevdf_form {
            EevdfForm::V6_12 | EevdfForm::V6_18 => {
                if !self.cx.config.features.delay_zero {
                    return false;
                }
                self.sched.update_entity_lag(cfs_rq, se, &self.cx);
                let owed = self.sched.se[se].vlag > 0;
                if owed {
                    self.sched.se[se].vlag = 0;
                }
                owed
            }
            EevdfForm::V7_3 => {
                self.update_curr(cfs_rq);
                self.sched.update_entity_lag_7_3(cfs_rq, se, &self.cx)
            }
        }
    }

    /// `check_preempt_wakeup_fair()`, `wakeup_preempt_fair()`: whether the wakee preempts, and by what rule.
    #[inline(never)]
    pub(super) fn wakeup_preempts_eevdf(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake_flags: u32,
    ) -> (bool, PreemptionRule) {
        match self.cx.config.eevdf_form {
            EevdfForm::V6_12 => self.wakeup_preempts_6_12(cpu, task, curr),
            EevdfForm::V6_18 => self.wakeup_preempts_6_18(cpu, task, curr, wake_flags),
            EevdfForm::V7_3 => self.wakeup_preempts_7_3(cpu, task, curr, wake_flags),
        }
    }

    /// The beginning of the check up to 6.18: what decides before virtual times are compared, or else the entities of the
    /// running task and of the wakee on one level, whose queue is up to date.
    pub(super) fn wakeup_checks_before_times(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
    ) -> Result<(EntityId, EntityId), (bool, PreemptionRule)> {
        if self.sched.rq[cpu].need_resched {
            return Err((false, PreemptionRule::ReschedulePending));
        }
        if !self.cx.config.features.wakeup_preemption {
            return Err((false, PreemptionRule::FeatureOff));
        }
        let (se, pse) =
            self.sched.find_matching_se(self.sched.tasks[curr].se, self.sched.tasks[task].se);
        if let Some(decided) = self.sched.decided_by_policies(task, curr, se, &self.cx) {
            return Err(decided);
        }
        let (curr_is_idle, task_is_idle) = (self.sched.se_is_idle(se), self.sched.se_is_idle(pse));
        if curr_is_idle && !task_is_idle {
            return Err(self.sched.idle_gives_way(se, &self.cx));
        }
        if curr_is_idle != task_is_idle {
            return Err((false, PreemptionRule::IdleDoesNotPreempt));
        }
        if self.sched.tasks[task].policy != Policy::Normal {
            return Err((false, PreemptionRule::BatchDoesNotPreempt));
        }
        self.update_curr(self.sched.se[se].cfs_rq);
        Ok((se, pse))
    }

    fn wakeup_preempts_6_12(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
    ) -> (bool, PreemptionRule) {
        let (se, pse) = match self.wakeup_checks_before_times(cpu, task, curr) {
            Ok(entities) => entities,
            Err(decided) => return decided,
        };
        let cfs_rq = self.sched.se[se].cfs_rq;
        let short = self.sched.do_preempt_short(cfs_rq, pse, se, &self.cx);
        if short {
            self.sched.cancel_protect_slice(se, &self.cx);
        }
        let mut seen = LastPick::default();
        match (self.sched.pick_eevdf(cfs_rq, true, &mut seen, &self.cx) == Some(pse), short) {
            (true, true) => (true, PreemptionRule::PreemptShort),
            (true, false) => (true, PreemptionRule::EarliestDeadline),
            (false, _) => (false, seen.refuses()),
        }
    }

    /// `yield_task_fair()`, the virtual part: gives up what is left of the slice.
    pub(super) fn yield_eevdf(&mut self, cpu: CpuId, cfs_rq: CfsRqId, se: EntityId) {
        self.sched.update_rq_clock(cpu, &self.cx);
        self.update_curr(cfs_rq);
        self.sched.rq[cpu].skip_clock_update = true;
        if self.sched.entity_eligible(cfs_rq, se) {
            self.sched.se[se].vruntime = self.sched.se[se].deadline;
            self.sched.update_deadline(cfs_rq, se, &self.cx);
        }
    }
}
