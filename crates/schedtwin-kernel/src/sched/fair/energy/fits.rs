// SPDX-License-Identifier: GPL-2.0-or-later
//! The search for the least energy since 6.1.y: how well a task fits comes first, no margin.
//!
//! **Algorithm.** 1. Per domain: candidate and, if the domain holds it, prev. 2. Base energy without the task.
//! 3. prev's delta. 4. The candidate's delta, if it has strictly more spare capacity than prev. 5. The best
//! candidate is taken if it fits better than prev or costs strictly less.
//!
//! **Terms.** *Fits* ([`Fits`]): fully, or less well if the CPU's capacity suffices but it cannot
//! be as fast as the task's `uclamp_min` wants. A domain that fits fully is always better than one
//! that does not; among those that do not, the largest counts and nobody asks for energy.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `find_energy_efficient_cpu`, `eenv_pd_max_util`,
//! `eenv_pd_busy_time`, `eenv_task_busy_time`.
//! Before 6.7, and before its backports, a CPU without spare capacity was no candidate (`max_spare_cap`).
//! Quirk: a CPU without tasks keeps no clamps, so it is judged with those that the CPU before it in its
//! domain left behind.

use super::{Choice, EnergyEstimate, em_cpu_energy};
use crate::config::MaxSpareCap;
use crate::observe::DecisionObserver;
use crate::sched::demand::fits::Fits;
use crate::sched::pelt::scale_irq_capacity;
use crate::sched::root_domain::PerfDomain;
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, PlacementRule, TaskId};

/// `struct energy_env`.
pub(super) struct EnergyEnv {
    task_busy_time: u64,
    pd_busy_time: u64,
    cpu_cap: u64,
    pd_cap: u64,
}

impl Kernel {
    /// `find_energy_efficient_cpu()` in the scheduling domain `span`.
    pub(super) fn feec_fits(
        &self,
        span: &CpuMask,
        task: TaskId,
        prev: CpuId,
        computed: &mut u32,
        see: &mut impl DecisionObserver,
    ) -> Choice {
        let demand = self.task_demand(task);
        if demand.is_nothing() {
            return (prev, PlacementRule::FeecNoUtilisation);
        }
        let task_busy_time = self.sched.eenv_task_busy_time(demand.util(), prev);
        let (mut prev_delta, mut best_delta) = (u64::MAX, u64::MAX);
        let (mut prev_fits, mut best_fits) = (Fits::TooSlow, Fits::TooSlow);
        let (mut prev_actual_cap, mut best_actual_cap) = (0, 0);
        let mut best_cpu = None;
        for pd in &self.sched.rd.pds {
            let cpu_cap = self.sched.get_actual_cpu_capacity(pd.first);
            let mut env = EnergyEnv { task_busy_time, pd_busy_time: 0, cpu_cap, pd_cap: 0 };
            let none = match self.cx.config.max_spare_cap {
                MaxSpareCap::AboveZero => 0i64,
                MaxSpareCap::MayBeZero => -1,
            };
            let (mut prev_spare, mut max_spare) = (none, none);
            let mut candidate: Option<CpuId> = None;
            let mut max_fits = Fits::TooSlow;
            let mut search = demand.search();
            for cpu in pd.span.iter() {
                env.pd_cap += cpu_cap;
                if !span.contains(cpu) || !self.sched.tasks[task].cpus_mask.contains(cpu) {
                    continue;
                }
                let (fits, spare) = self.sched.fits_beside(&mut search, task, cpu, &self.cx);
                if fits == Fits::No {
                    let role = if cpu == prev { "prev, does not fit" } else { "does not fit" };
                    self.sched.note_feec(see, task, cpu, role, None, &self.cx);
                    continue;
                }
                let spare = spare as i64;
                if cpu == prev {
                    prev_spare = spare;
                    prev_fits = fits;
                } else if fits > max_fits || (fits == max_fits && spare > max_spare) {
                    max_spare = spare;
                    max_fits = fits;
                    candidate = Some(cpu);
                }
            }
            if candidate.is_none() && prev_spare <= none {
                continue;
            }
            *computed += 1;
            self.sched.eenv_pd_busy_time(&mut env, &pd.span, task, &self.cx);
            let base = self.sched.compute_energy(&env, pd, task, None, &self.cx).energy;
            if prev_spare > none {
                let EnergyEstimate { energy, max_util, .. } =
                    self.sched.compute_energy(&env, pd, task, Some(prev), &self.cx);
                if energy < base {
                    return (prev, PlacementRule::FeecRaced);
                }
                prev_delta = energy - base;
                prev_actual_cap = cpu_cap;
                best_delta = best_delta.min(prev_delta);
                self.sched.note_feec(
                    see,
                    task,
                    prev,
                    "prev",
                    Some((prev_delta, max_util)),
                    &self.cx,
                );
            }
            if let Some(cpu) = candidate
                && max_spare > prev_spare
            {
                let too_slow = max_fits == Fits::TooSlow && cpu_cap <= best_actual_cap;
                if max_fits < best_fits || too_slow {
                    let role = "fits worse than the best so far";
                    self.sched.note_feec(see, task, cpu, role, None, &self.cx);
                    continue;
                }
                let EnergyEstimate { energy, max_util, .. } =
                    self.sched.compute_energy(&env, pd, task, Some(cpu), &self.cx);
                if energy < base {
                    return (prev, PlacementRule::FeecRaced);
                }
                let delta = energy - base;
                let role = "most spare capacity of its domain";
                self.sched.note_feec(see, task, cpu, role, Some((delta, max_util)), &self.cx);
                if max_fits == Fits::Yes && best_fits == Fits::Yes && delta >= best_delta {
                    continue;
                }
                best_delta = delta;
                best_cpu = Some(cpu);
                best_fits = max_fits;
                best_actual_cap = cpu_cap;
            }
        }
        match best_cpu {
            Some(cpu) if best_fits > prev_fits => (cpu, PlacementRule::FeecFitsBetter),
            Some(cpu) if best_fits == Fits::Yes && best_delta < prev_delta => {
                (cpu, PlacementRule::FeecLeastEnergy)
            }
            Some(cpu) if best_fits == Fits::TooSlow && best_actual_cap > prev_actual_cap => {
                (cpu, PlacementRule::FeecFasterThanPrev)
            }
            _ if prev_delta != u64::MAX => (prev, PlacementRule::FeecPrevCostsNoMore),
            _ => (prev, PlacementRule::FeecFitsNowhere),
        }
    }
}

impl Scheduler {
    /// Returns the values that all estimates of a domain share.
    pub(super) fn energy_env(
        &self,
        task: TaskId,
        prev: CpuId,
        pd: &PerfDomain,
        cx: &Context,
    ) -> EnergyEnv {
        let task_busy_time = self.eenv_task_busy_time(self.task_util_est(task), prev);
        let cpu_cap = self.get_actual_cpu_capacity(pd.first);
        let pd_cap = pd.span.iter().map(|_| cpu_cap).sum();
        let mut env = EnergyEnv { task_busy_time, pd_busy_time: 0, cpu_cap, pd_cap };
        self.eenv_pd_busy_time(&mut env, &pd.span, task, cx);
        env
    }

    /// `eenv_task_busy_time()`: how busy the task keeps a CPU, interrupts taken out.
    fn eenv_task_busy_time(&self, task_util: u64, prev: CpuId) -> u64 {
        let irq = self.rq[prev].avg_irq.util_avg;
        let max = self.arch_scale_cpu_capacity(prev);
        if irq >= max { max } else { scale_irq_capacity(task_util, irq, max) }
    }

    /// `eenv_pd_busy_time()`: how busy the domain is without the task.
    fn eenv_pd_busy_time(&self, env: &mut EnergyEnv, cpus: &CpuMask, task: TaskId, cx: &Context) {
        let busy: u64 = cpus
            .iter()
            .map(|cpu| {
                let util = self.cpu_util(cpu, Some(task), None, false, cx);
                self.sched_cpu_util_at(cpu, util)
            })
            .sum();
        env.pd_busy_time = busy.min(env.pd_cap);
    }

    /// `compute_energy()`: of the domain with the task on `dst`.
    pub(super) fn compute_energy(
        &self,
        env: &EnergyEnv,
        pd: &PerfDomain,
        task: TaskId,
        dst: Option<CpuId>,
        cx: &Context,
    ) -> EnergyEstimate {
        let max_util = self.eenv_pd_max_util(env, &pd.span, task, dst, cx);
        let mut busy = env.pd_busy_time;
        if dst.is_some() {
            busy = (busy + env.task_busy_time).min(env.pd_cap);
        }
        let energy = em_cpu_energy(&cx.config, pd, max_util, busy, env.cpu_cap);
        EnergyEstimate { energy, max_util, busy }
    }

    /// `eenv_pd_max_util()`: the utilisation that decides the domain's operating point, headroom included.
    fn eenv_pd_max_util(
        &self,
        env: &EnergyEnv,
        cpus: &CpuMask,
        task: TaskId,
        dst: Option<CpuId>,
        cx: &Context,
    ) -> u64 {
        let highest = cpus.iter().map(|cpu| self.energy_demand(cpu, task, dst, cx));
        highest.max().unwrap_or(0).min(env.cpu_cap)
    }
}
