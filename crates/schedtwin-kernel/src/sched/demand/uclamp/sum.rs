// SPDX-License-Identifier: GPL-2.0-or-later
//! Sum aggregation: each task's utilisation is clamped by itself, and a run queue adds the clamped ones up.
//!
//! **Idea.** With max aggregation one task without a cap lifts the caps of all others on its CPU, and a capped task
//! fits everywhere, however many are there already. Here a clamp changes how large *its* task looks, and nothing
//! else: a CPU demands what its tasks demand together, and is full when that fills it.
//!
//! **Terms.** *Bias*: by how much the clamps change a task's `util_avg`; negative under a cap. *Clamped
//! utilisation*: `util_avg` plus bias, of a task or of a CPU. *util_est_uclamp*: the task's estimate, clamped when it
//! was stored.
//!
//! **Algorithm.**
//! 1. Whenever a task's averages are refreshed, so is its bias: `clamp(util_avg, min, max) − util_avg`. A maximum of
//!    1024 is none. The bias of a queued task moves its CPU's sum along.
//! 2. The bias joins its CPU's sum at the end of the task's enqueue, and leaves with its dequeue. A delayed sleeper is
//!    queued, so its bias stays. The governor is told once more at the end of an enqueue, if the bias raises the demand.
//! 3. A capped task that leaves takes along what its cap hid (`propagate_negative_bias`).
//! 4. A cap does not throttle below the fair share beside the task that demands most for its weight
//!    (`UclampRq::allowed`).
//! 5. The clamped utilisation of a CPU, with a task or without it: `cpu_util_uclamp`.
//!
//! ```text
//!                       util_avg   clamps      bias    clamped
//!   A                       300     0, 110     −190        110
//!   B                        50   200,1024     +150        200
//!   their CPU               350                 −40        310
//! ```
//!
//! **Example.** Four tasks of utilisation 300 that are capped at 110: the CPU's utilisation is 1200, its bias −760.
//!
//! ```
//! use schedtwin_kernel::sched::demand::uclamp::{max::Clamps, sum::util_avg_bias};
//! let capped = Clamps { min: 0, max: 110 };
//! assert_eq!(util_avg_bias(300, capped), -190);
//! assert_eq!(4 * 300 + 4 * util_avg_bias(300, capped), 440);
//! assert_eq!(util_avg_bias(1030, Clamps::NONE), 0);
//! ```
//!
//! A change of clamps counts from the next refresh of the task's averages. Real-time tasks have no bias, so with the key
//! on a runnable one raises no demand by its minimum.
//!
//! Kernel: the series "uclamp sum aggregation" by Hongyan Xia, version 2 of March 2025; its consumers and what its
//! second version took out as in version 1 of June 2024. Never merged.
//! Differences: runnable boosting has the posted form in every kernel that has any. A kernel that keeps two numbers
//! for an estimate clamps the larger one. Effective clamps are those of the moment: as posted they are noted when a task
//! is forked, moved to another group or given clamps, so that a change of class alone would leave them. Averages have 64
//! bits as ever: as posted `util_avg` has 32, and a sum of groups that falls below zero would wrap. A delayed sleeper that changes
//! its class leaves the sum of estimates once, also where Linux takes its plain estimate out twice (6.12).

use super::RqClamps;
use super::max::Clamps;
use crate::config::{MaxUclampFactor, NegativeBias, UtilBiasHook, UtilEstUclamp};
use crate::sched::pelt::{self, UTIL_AVG_UNCHANGED};
use crate::sched::{CfsRqId, EntityId, OnRq, SCHED_CAPACITY_SCALE};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId};

/// `MAX_RT_PRIO`: fair priorities begin here.
const MAX_RT_PRIO: i32 = 100;

/// The contribution of a task to its CPU's sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSums {
    /// `se.avg.util_avg_bias`: by how much its clamps change its utilisation, −1024..=1024.
    pub bias: i32,
    /// `se.avg.util_est_uclamp`: its estimate within its clamps, 0..=1024.
    pub util_est: u32,
}

/// The sums of a CPU's run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UclampRq {
    /// `cfs.avg.util_avg_bias`: of its queued tasks, delayed ones included.
    bias: i32,
    /// `cfs.avg.util_est_uclamp`: of its runnable tasks.
    util_est: u32,
    /// `max_uclamp_factor`: the highest clamped utilisation per weight, `<< 32`.
    max_factor: u64,
    /// `max_uclamp_factor_pid`: the task with that factor.
    max_factor_of: Option<TaskId>,
}

/// `util_avg_bias`: by how much clamps change a utilisation.
#[inline]
pub fn util_avg_bias(util: u32, clamps: Clamps) -> i32 {
    clamped(util, clamps.min, no_cap_at_scale(clamps.max)) as i32 - util as i32
}

/// A maximum that is none, as one that no utilisation reaches.
fn no_cap_at_scale(max: u32) -> u32 {
    if max == SCHED_CAPACITY_SCALE as u32 { u32::MAX } else { max }
}

/// C's `clamp()`: of an inverted pair a value is the maximum if it reaches that, else the minimum.
fn clamped(value: u32, min: u32, max: u32) -> u32 {
    if value >= max { max } else { value.max(min) }
}

impl UclampRq {
    /// The cap that holds for a queued task of `utilisation` within its own clamps, whose weight is `weight` and
    /// its inverse `wmult`: at least its fair share beside the task that demands most for its weight. That task notes
    /// its own demand here.
    fn allowed(
        &mut self,
        task: TaskId,
        utilisation: u32,
        weight: u32,
        wmult: u32,
        max: u32,
    ) -> u32 {
        let factor = wmult as u64 * utilisation as u64;
        if self.max_factor_of == Some(task) {
            self.max_factor = factor;
        } else if factor > self.max_factor {
            (self.max_factor, self.max_factor_of) = (factor, Some(task));
        } else {
            return max.max((self.max_factor.wrapping_mul(weight as u64) >> 32) as u32);
        }
        max
    }

    /// Bias, estimate, highest factor and its task, for comparisons.
    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn parts(&self) -> (i32, u32, u64, Option<TaskId>) {
        (self.bias, self.util_est, self.max_factor, self.max_factor_of)
    }

    /// Asserts that the sums are those of these tasks, `(task, queued, runnable, sums)`, and that the highest factor is a
    /// queued one's.
    pub(super) fn verify(&self, tasks: impl Iterator<Item = (TaskId, bool, bool, TaskSums)>) {
        let (mut bias, mut util_est, mut owner_is_queued) = (0, 0, false);
        for (task, queued, runnable, sums) in tasks {
            bias += if queued { sums.bias } else { 0 };
            util_est += if runnable { sums.util_est } else { 0 };
            owner_is_queued |= queued && self.max_factor_of == Some(task);
        }
        assert_eq!((self.bias, self.util_est), (bias, util_est), "util_avg_bias, util_est_uclamp");
        match self.max_factor_of {
            Some(owner) => assert!(owner_is_queued, "max_uclamp_factor_pid: {owner:?} has left"),
            None => assert_eq!(self.max_factor, 0, "max_uclamp_factor is nobody's"),
        }
    }
}

impl Scheduler {
    /// Changes a CPU's sums.
    fn change_sums<R>(&mut self, cpu: CpuId, change: impl FnOnce(&mut UclampRq) -> R) -> R {
        self.rq[cpu].uclamp.change(cpu, &mut self.stale_demands, |uclamp| match uclamp {
            RqClamps::Sum(sums) => change(sums),
            RqClamps::Max(_) => unreachable!("only asked for where clamps are added up"),
        })
    }

    // ---- what changes the sums ------------------------------------------------------------------

    /// `util_bias_update()`: a task's averages have been refreshed.
    pub(crate) fn util_bias_update(&mut self, task: TaskId, cx: &Context) {
        let t = &self.tasks[task];
        let (cpu, prio, old) = (t.cpu, t.prio, t.uclamp.sums.bias);
        let entity = &self.se[t.se];
        let (util, on_rq) = (entity.avg.util_avg as u32, entity.on_rq);
        let Clamps { min, max } = self.uclamp_eff_value(task, cx);
        let max = no_cap_at_scale(max);
        let mut utilisation = clamped(util, min, max);
        if on_rq && prio >= MAX_RT_PRIO && cx.config.max_uclamp_factor == MaxUclampFactor::Tracked {
            let (weight, wmult) = crate::sched::fair::prio_weight(prio - MAX_RT_PRIO);
            let allowed =
                self.change_sums(cpu, |s| s.allowed(task, utilisation, weight, wmult, max));
            utilisation = clamped(util, min, allowed);
        }
        let bias = utilisation as i32 - util as i32;
        self.tasks[task].uclamp.sums.bias = bias;
        if on_rq && bias != old {
            self.change_sums(cpu, |sums| sums.bias += bias - old);
        }
    }

    /// `util_bias_dequeue()`, and what follows it: a task has been dequeued.
    pub(crate) fn util_bias_dequeue(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let bias = self.tasks[task].uclamp.sums.bias;
        self.change_sums(cpu, |sums| {
            sums.bias -= bias;
            if sums.max_factor_of == Some(task) {
                // The next one notes its own when its averages are refreshed.
                (sums.max_factor, sums.max_factor_of) = (0, None);
            }
        });
        let propagates = match cx.config.negative_bias {
            NegativeBias::Removed => false,
            NegativeBias::Propagated => true,
        };
        if propagates && bias < 0 && self.tasks[task].on_rq != OnRq::Migrating {
            self.propagate_negative_bias(task, bias.unsigned_abs());
        }
    }

    /// `propagate_negative_bias()`: what a cap hid of a task's utilisation leaves its signals on all levels. Otherwise it
    /// would appear the moment the bias is gone. As both decay alike, the rest decays as the clamped utilisation would.
    fn propagate_negative_bias(&mut self, task: TaskId, hidden: u32) {
        self.tasks[task].uclamp.sums.bias = 0;
        let mut level: Option<EntityId> = Some(self.tasks[task].se);
        while let Some(se) = level {
            let entity = &mut self.se[se];
            pelt::sub_util(&mut entity.avg, hidden);
            let cfs = &mut self.cfs[entity.cfs_rq];
            cfs.avg.change(cfs.cpu, &mut self.stale_demands, |avg| pelt::sub_util(avg, hidden));
            level = entity.parent;
        }
    }

    /// `util_est_enqueue()` counts a task in.
    #[inline]
    pub(crate) fn util_est_uclamp_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        let own = self.tasks[task].uclamp.sums.util_est;
        if own != 0 {
            self.change_sums(cpu, |sums| sums.util_est += own);
        }
    }

    /// `util_est_dequeue()` counts a task out.
    #[inline]
    pub(crate) fn util_est_uclamp_dequeue(&mut self, cpu: CpuId, task: TaskId) {
        let own = self.tasks[task].uclamp.sums.util_est;
        if own != 0 {
            self.change_sums(cpu, |sums| sums.util_est -= own);
        }
    }

    /// `util_est_update()` has stored a task's estimate, which is not counted now.
    #[inline(never)]
    pub(crate) fn util_est_uclamp_update(&mut self, task: TaskId, cx: &Context) {
        let tracked = match cx.config.util_est_uclamp {
            UtilEstUclamp::Absent => false,
            UtilEstUclamp::Tracked => true,
        };
        let avg = &self.se[self.tasks[task].se].avg;
        debug_assert!(avg.util_est & UTIL_AVG_UNCHANGED != 0, "a store sets the flag");
        let estimate = pelt::_task_util_est(avg) as u32;
        if tracked {
            let Clamps { min, max } = self.uclamp_eff_value(task, cx);
            self.tasks[task].uclamp.sums.util_est = clamped(estimate, min, max);
        }
    }

    // ---- what they say --------------------------------------------------------------------------

    /// `task_util_est_uclamp()`: the larger of the clamped utilisation and the clamped estimate.
    #[inline]
    pub(in crate::sched::demand) fn task_util_est_uclamp(&self, task: TaskId) -> u64 {
        self.task_util_uclamp(task).max(self.tasks[task].uclamp.sums.util_est as u64)
    }

    /// The same of a sleeping task whose signals `avg` have been aged elsewhere; `refreshed`: they have changed since its
    /// bias was computed.
    pub(in crate::sched::demand) fn synced_task_util_est_uclamp(
        &self,
        task: TaskId,
        avg: &pelt::SchedAvg,
        refreshed: bool,
        cx: &Context,
    ) -> u64 {
        let TaskSums { bias, util_est } = self.tasks[task].uclamp.sums;
        let util = avg.util_avg as u32;
        let bias =
            if refreshed { util_avg_bias(util, self.uclamp_eff_value(task, cx)) } else { bias };
        util.saturating_add_signed(bias).max(util_est) as u64
    }

    /// `task_util_uclamp()`: a task's clamped utilisation.
    #[inline]
    fn task_util_uclamp(&self, task: TaskId) -> u64 {
        self.task_util(task).saturating_add_signed(self.tasks[task].uclamp.sums.bias as i64)
    }

    /// `cpu_util_uclamp()`: clamped utilisation of `cpu`, whose sums are `sums`, if `task` ran on `dst`. `boost`: runnable
    /// boosting, in proportion to the clamped utilisation.
    pub(in crate::sched::demand) fn cpu_util_uclamp(
        &self,
        cpu: CpuId,
        sums: &UclampRq,
        task: Option<TaskId>,
        dst: Option<CpuId>,
        boost: bool,
        cx: &Context,
    ) -> u64 {
        let avg = &self.cfs[CfsRqId::root(cpu)].avg;
        let mut util = avg.util_avg.saturating_add_signed(sums.bias as i64);
        if boost && cx.has_runnable_boost() && avg.util_avg != 0 {
            util = util.max(util * avg.runnable_avg / avg.util_avg);
        }
        if let Some(p) = task {
            let here = self.tasks[p].cpu == cpu;
            if here && !self.se[self.tasks[p].se].on_rq {
                // Its utilisation is part of the CPU's while it sleeps, its bias is not.
                util = util.saturating_add_signed(self.tasks[p].uclamp.sums.bias as i64);
            }
            if here && dst != Some(cpu) {
                util -= util.min(self.task_util_uclamp(p));
            } else if !here && dst == Some(cpu) {
                util += self.task_util_uclamp(p);
            }
        }
        if cx.config.features.util_est {
            let mut estimate = sums.util_est as u64;
            if let Some(p) = task {
                let own = self.tasks[p].uclamp.sums.util_est as u64;
                estimate = self.estimate_with(estimate, p, own, dst == Some(cpu), cx);
            }
            util = util.max(estimate);
        }
        util.min(self.arch_scale_cpu_capacity(cpu))
    }
}

impl Kernel {
    /// `util_bias_enqueue()`: a task has been enqueued.
    #[inline(never)]
    pub(crate) fn util_bias_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        let bias = self.sched.tasks[task].uclamp.sums.bias;
        self.sched.change_sums(cpu, |sums| sums.bias += bias);
        let tells = match self.cx.config.enqueue_hook {
            UtilBiasHook::Always => true,
            UtilBiasHook::Boosted => bias > 0,
        };
        if tells {
            self.cpufreq_update_util(cpu, 0);
        }
    }
}

#[cfg(test)]
mod tests;
