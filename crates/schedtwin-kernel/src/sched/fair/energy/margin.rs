// SPDX-License-Identifier: GPL-2.0-or-later
//! The search for the least energy of 5.14 to 5.19: prev is left for a saving of more than 1/16.
//!
//! **Idea.** Estimates are rough, and moving a task costs something that they do not contain; so a domain must
//! promise to save more than 6 % of the total before a task leaves prev.
//!
//! **Algorithm.** 1. Per domain: prev, if it is there and the task fits, and of the other CPUs that fit the one
//! with the most spare capacity, if it has any at all. 2. Base energy without the task, summed over the
//! domains that had one of them. 3. prev's delta, the candidate's delta. 4. The cheapest candidate is taken if
//! prev is out of the question, or if
//!
//! ```text
//!   prev_delta − best_delta  >  (prev_delta + Σ base) / 16
//! ```
//!
//! **Example.** Everything idle, prev costs 800, the best 760: 40 is less than 800 / 16 = 50, so it stays.
//!
//! Kernel: 5.18 kernel/sched/fair.c `find_energy_efficient_cpu`, `compute_energy`.
//! Not the same as `fits.rs` besides: a clamped utilisation must fit (there is no −1); spare capacity 0 is no
//! candidate; in prev's domain the best other CPU is looked at even with less spare capacity; and the domain's
//! busy time is summed over CPUs with the task on one of them, each capped by its capacity.

use super::{Choice, EnergyEstimate, em_cpu_energy};
use crate::observe::DecisionObserver;
use crate::sched::root_domain::PerfDomain;
use crate::{Context, Scheduler};
use schedtwin_types::{CpuId, CpuMask, PlacementRule, TaskId};

impl Scheduler {
    /// `find_energy_efficient_cpu()` in the scheduling domain `span`.
    pub(super) fn feec_margin(
        &self,
        span: &CpuMask,
        task: TaskId,
        prev: CpuId,
        computed: &mut u32,
        see: &mut impl DecisionObserver,
        cx: &Context,
    ) -> Choice {
        if self.task_util_est(task) == 0 {
            return (prev, PlacementRule::FeecNoUtilisation);
        }
        let (mut prev_delta, mut best_delta) = (u64::MAX, u64::MAX);
        let mut best_cpu = prev;
        let mut base_energy = 0;
        for pd in &self.rd.pds {
            let mut prev_fits = false;
            let mut candidate: Option<CpuId> = None;
            let mut max_spare = 0;
            for cpu in pd.span.iter() {
                if !span.contains(cpu) || !self.tasks[task].cpus_mask.contains(cpu) {
                    continue;
                }
                let (fits, spare) = self.fits_beside_clamped(task, cpu, cx);
                if !fits {
                    let role = if cpu == prev { "prev, does not fit" } else { "does not fit" };
                    self.note_feec(see, task, cpu, role, None, cx);
                } else if cpu == prev {
                    prev_fits = true;
                } else if spare > max_spare {
                    max_spare = spare;
                    candidate = Some(cpu);
                }
            }
            if candidate.is_none() && !prev_fits {
                continue;
            }
            *computed += 1;
            let base = self.compute_energy_margin(task, None, pd, cx).energy;
            base_energy += base;
            if prev_fits {
                let EnergyEstimate { energy, max_util, .. } =
                    self.compute_energy_margin(task, Some(prev), pd, cx);
                if energy < base {
                    return (prev, PlacementRule::FeecRaced);
                }
                prev_delta = energy - base;
                best_delta = best_delta.min(prev_delta);
                self.note_feec(see, task, prev, "prev", Some((prev_delta, max_util)), cx);
            }
            if let Some(cpu) = candidate {
                let EnergyEstimate { energy, max_util, .. } =
                    self.compute_energy_margin(task, Some(cpu), pd, cx);
                if energy < base {
                    return (prev, PlacementRule::FeecRaced);
                }
                let delta = energy - base;
                let role = "most spare capacity of its domain";
                self.note_feec(see, task, cpu, role, Some((delta, max_util)), cx);
                if delta < best_delta {
                    best_delta = delta;
                    best_cpu = cpu;
                }
            }
        }
        if prev_delta == u64::MAX {
            let rule = if best_cpu == prev {
                PlacementRule::FeecFitsNowhere
            } else {
                PlacementRule::FeecFitsBetter
            };
            (best_cpu, rule)
        } else if prev_delta - best_delta > (prev_delta + base_energy) >> 4 {
            (best_cpu, PlacementRule::FeecSavesSixteenth)
        } else if best_cpu == prev {
            (prev, PlacementRule::FeecPrevCostsNoMore)
        } else {
            (prev, PlacementRule::FeecSavesTooLittle)
        }
    }

    /// `compute_energy()`: of the domain with the task on `dst`.
    pub(super) fn compute_energy_margin(
        &self,
        task: TaskId,
        dst: Option<CpuId>,
        pd: &PerfDomain,
        cx: &Context,
    ) -> EnergyEstimate {
        let cpu_cap = self.get_actual_cpu_capacity(pd.first);
        let (mut max_util, mut busy) = (0, 0);
        for cpu in pd.span.iter() {
            let here = dst == Some(cpu);
            // The task's own share must not depend on whether util_avg or util_est counts for the CPU.
            let running = if here {
                self.cpu_util(cpu, Some(task), None, false, cx) + self.task_util_est(task)
            } else {
                self.cpu_util(cpu, Some(task), dst, false, cx)
            };
            busy += self.sched_cpu_util_at(cpu, running).min(cpu_cap);
            let demand = self.energy_demand(cpu, task, dst, cx);
            max_util = max_util.max(demand.min(cpu_cap));
        }
        let energy = em_cpu_energy(&cx.config, pd, max_util, busy, cpu_cap);
        EnergyEstimate { energy, max_util, busy }
    }
}
