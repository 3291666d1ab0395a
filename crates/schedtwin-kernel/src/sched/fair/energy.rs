//! Energy-aware placement: `find_energy_efficient_cpu`.
//!
//! **Decides** on which CPU a waking task costs the least energy, as long as no CPU is overutilized.
//!
//! **Idea.** In each performance domain the CPU with the most spare capacity is the candidate. The energy
//! model gives the operating point that the domain would need with the task there (its highest CPU
//! utilisation) and what that costs per utilisation; the candidate whose domain grows by the least wins.
//! Idleness plays no role.
//!
//! ```text
//! energy(pd, dst) = cost of the lowest state ≥ max_util(pd, dst)  ×  busy time(pd, dst)
//! delta(dst)      = energy(pd, dst) − energy(pd, nowhere)
//! ```
//!
//! **Algorithm.** 1. Per domain: candidate and, if the domain holds it, prev. 2. Base energy without the task.
//! 3. prev's delta. 4. The candidate's delta, if it has strictly more spare capacity than prev. 5. The best
//! candidate is taken if it fits better than prev or costs strictly less.
//!
//! **Example.** Two domains, A of capacity 512 (costs 3906, 5859) and B of 1024 (7812, 13671), all idle, and
//! a sleeping task of util_est 200: B costs 7812 · 200, A 3906 · 200, so the task goes to A from either.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `find_energy_efficient_cpu`, `compute_energy`, `eenv_pd_max_util`;
//! include/linux/energy_model.h `em_cpu_energy`.
//! Differences: utilisation clamps are not modelled, so nothing "fits but for uclamp".

use crate::Kernel;
use crate::sched::pelt::scale_irq_capacity;
use crate::sched::root_domain::PerfDomain;
use crate::see::See;
use schedtwin_types::{Candidate, CpuId, CpuMask, TaskId};

/// The choice, and the rule that made it.
pub type Choice = (CpuId, &'static str);

/// What `compute_energy()` finds out about a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyEstimate {
    /// Cost of the operating point times busy time: only its differences mean something.
    pub energy: u64,
    /// The utilisation that decides the operating point.
    pub max_util: u64,
    /// Busy time of all its CPUs, as utilisation.
    pub busy: u64,
}

/// `struct energy_env`.
struct EnergyEnv {
    task_busy_time: u64,
    pd_busy_time: u64,
    cpu_cap: u64,
    pd_cap: u64,
}

/// `em_cpu_energy()`.
fn em_cpu_energy(pd: &PerfDomain, max_util: u64, sum_util: u64, allowed_cpu_cap: u64) -> u64 {
    if sum_util == 0 {
        return 0;
    }
    let max_util = max_util.min(allowed_cpu_cap);
    let state = pd
        .states
        .iter()
        .find(|s| s.performance >= max_util && !(pd.skip_inefficiencies && s.inefficient))
        .unwrap_or_else(|| pd.states.last().expect("a domain has states"));
    state.cost * sum_util
}

impl Kernel {
    /// `find_energy_efficient_cpu()`; `None`: EAS cannot tell, ask the idle-sibling search. `task`'s
    /// signals have been aged to its queue's last update.
    pub fn find_energy_efficient_cpu(
        &self,
        task: TaskId,
        prev: CpuId,
        see: &mut impl See,
    ) -> Option<Choice> {
        let mut domain = self.topology.sd_asym_cpucapacity[self.this_cpu.index()];
        while let Some(id) = domain
            && !self.topology.domains[id.0 as usize].span.contains(prev)
        {
            domain = self.topology.domains[id.0 as usize].parent;
        }
        let span = &self.topology.domains[domain?.0 as usize].span;
        let task_util = self.task_util_est(task);
        if task_util == 0 {
            return Some((prev, "feec: the task has no utilisation"));
        }
        let task_busy_time = self.eenv_task_busy_time(task_util, prev);
        let (mut prev_delta, mut best_delta) = (u64::MAX, u64::MAX);
        let (mut prev_fits, mut best_fits) = (false, false);
        let mut best_cpu = None;
        for pd in &self.rd.pds {
            let cpu_cap = self.get_actual_cpu_capacity(pd.first);
            let mut env = EnergyEnv { task_busy_time, pd_busy_time: 0, cpu_cap, pd_cap: 0 };
            let (mut prev_spare, mut max_spare) = (-1i64, -1i64);
            let mut candidate: Option<(CpuId, u64)> = None;
            for cpu in pd.span.iter() {
                env.pd_cap += cpu_cap;
                if !span.contains(cpu) || !self.tasks[task].cpus_mask.contains(cpu) {
                    continue;
                }
                let util = self.cpu_util(cpu, Some(task), Some(cpu), false);
                let cap = self.capacity_of(cpu);
                if !self.util_fits_cpu(util, cpu) {
                    see.candidate(|| Candidate {
                        cpu,
                        role: if cpu == prev { "prev, does not fit" } else { "does not fit" },
                        util,
                        capacity: cap,
                        energy_delta: None,
                        max_util: None,
                    });
                    continue;
                }
                let spare = (cap - cap.min(util)) as i64;
                if cpu == prev {
                    prev_spare = spare;
                    prev_fits = true;
                } else if candidate.is_none() || spare > max_spare {
                    max_spare = spare;
                    candidate = Some((cpu, util));
                }
            }
            if candidate.is_none() && prev_spare < 0 {
                continue;
            }
            self.eenv_pd_busy_time(&mut env, &pd.span, task);
            let base = self.compute_energy(&env, pd, task, None).energy;
            let mut note = |cpu: CpuId, role: &'static str, delta: u64, max_util: u64| {
                see.candidate(|| Candidate {
                    cpu,
                    role,
                    util: self.cpu_util(cpu, Some(task), Some(cpu), false),
                    capacity: self.capacity_of(cpu),
                    energy_delta: Some(delta),
                    max_util: Some(max_util),
                });
            };
            if prev_spare > -1 {
                let EnergyEstimate { energy, max_util, .. } =
                    self.compute_energy(&env, pd, task, Some(prev));
                if energy < base {
                    return Some((prev, "feec: the estimate fell with the task (raced)"));
                }
                prev_delta = energy - base;
                best_delta = best_delta.min(prev_delta);
                note(prev, "prev", prev_delta, max_util);
            }
            if let Some((cpu, _)) = candidate
                && max_spare > prev_spare
            {
                let EnergyEstimate { energy, max_util, .. } =
                    self.compute_energy(&env, pd, task, Some(cpu));
                if energy < base {
                    return Some((prev, "feec: the estimate fell with the task (raced)"));
                }
                let delta = energy - base;
                note(cpu, "most spare capacity of its domain", delta, max_util);
                if best_fits && delta >= best_delta {
                    continue;
                }
                best_delta = delta;
                best_cpu = Some(cpu);
                best_fits = true;
            }
        }
        Some(match best_cpu {
            Some(cpu) if best_fits && !prev_fits => (cpu, "feec: fits where prev does not"),
            Some(cpu) if best_fits && best_delta < prev_delta => (cpu, "feec: least energy"),
            _ if prev_fits => (prev, "feec: prev costs no more"),
            _ => (prev, "feec: fits nowhere, stays"),
        })
    }

    /// One estimate of [`Kernel::find_energy_efficient_cpu`] by itself, for comparison with what a real
    /// kernel's `sched_compute_energy_tp` says: of the domain of `cpu`, with the task on it (`placed`) or
    /// nowhere. `None`: `cpu` is in no domain.
    pub fn energy_estimate(
        &self,
        task: TaskId,
        prev: CpuId,
        cpu: CpuId,
        placed: bool,
    ) -> Option<EnergyEstimate> {
        let pd = self.rd.pds.iter().find(|pd| pd.span.contains(cpu))?;
        let task_busy_time = self.eenv_task_busy_time(self.task_util_est(task), prev);
        let cpu_cap = self.get_actual_cpu_capacity(pd.first);
        let pd_cap = pd.span.iter().map(|_| cpu_cap).sum();
        let mut env = EnergyEnv { task_busy_time, pd_busy_time: 0, cpu_cap, pd_cap };
        self.eenv_pd_busy_time(&mut env, &pd.span, task);
        Some(self.compute_energy(&env, pd, task, placed.then_some(cpu)))
    }

    /// `eenv_task_busy_time()`: how busy the task keeps a CPU, interrupts taken out.
    fn eenv_task_busy_time(&self, task_util: u64, prev: CpuId) -> u64 {
        let irq = self.rq[prev].avg_irq.util_avg;
        let max = self.rq[prev].arch_capacity;
        if irq >= max { max } else { scale_irq_capacity(task_util, irq, max) }
    }

    /// `eenv_pd_busy_time()`: how busy the domain is without the task.
    fn eenv_pd_busy_time(&self, env: &mut EnergyEnv, cpus: &CpuMask, task: TaskId) {
        let busy: u64 = cpus
            .iter()
            .map(|cpu| {
                let util = self.cpu_util(cpu, Some(task), None, false);
                self.effective_cpu_util(cpu, util).util
            })
            .sum();
        env.pd_busy_time = busy.min(env.pd_cap);
    }

    /// `compute_energy()`: of the domain with the task on `dst`.
    fn compute_energy(
        &self,
        env: &EnergyEnv,
        pd: &PerfDomain,
        task: TaskId,
        dst: Option<CpuId>,
    ) -> EnergyEstimate {
        let max_util = self.eenv_pd_max_util(env, &pd.span, task, dst);
        let mut busy = env.pd_busy_time;
        if dst.is_some() {
            busy = (busy + env.task_busy_time).min(env.pd_cap);
        }
        let energy = em_cpu_energy(pd, max_util, busy, env.cpu_cap);
        EnergyEstimate { energy, max_util, busy }
    }

    /// `eenv_pd_max_util()`: the utilisation that decides the domain's operating point.
    fn eenv_pd_max_util(
        &self,
        env: &EnergyEnv,
        cpus: &CpuMask,
        task: TaskId,
        dst: Option<CpuId>,
    ) -> u64 {
        let highest = cpus.iter().map(|cpu| {
            let util = self.cpu_util(cpu, Some(task), dst, true);
            let effective = self.effective_cpu_util(cpu, util);
            crate::cpufreq::schedutil::sugov_effective_cpu_perf(&effective)
        });
        highest.max().unwrap_or(0).min(env.cpu_cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::root_domain::tests::kernel;
    use crate::see::Notes;

    const A: &[(u32, u64)] = &[(1_000_000, 100_000), (2_000_000, 300_000)];
    const B: &[(u32, u64)] = &[(1_000_000, 400_000), (2_000_000, 1_400_000)];

    /// A sleeping task of util_avg 150 and util_est 200 that last ran on `prev`.
    fn sleeper(kernel: &mut Kernel, prev: u16) -> TaskId {
        let task = kernel.new_task(None, true);
        kernel.tasks[task].cpu = CpuId(prev);
        let se = kernel.tasks[task].se;
        let avg = &mut kernel.se[se].avg;
        (avg.util_avg, avg.util_est, avg.last_update_time) = (150, 200, 1);
        task
    }

    fn choose(kernel: &Kernel, task: TaskId, prev: u16) -> (u16, Vec<(u16, u64)>) {
        let mut notes = Notes::default();
        let choice = kernel.find_energy_efficient_cpu(task, CpuId(prev), &mut notes).unwrap();
        let deltas = notes.candidates.iter().filter_map(|c| Some((c.cpu.0, c.energy_delta?)));
        (choice.0.0, deltas.collect())
    }

    #[test]
    fn the_worked_example() {
        let mut kernel = kernel(&[(2, 512, A), (1, 1024, B)]);
        // B is visited first; CPU 1 has no more spare capacity than prev, so it is not looked at.
        let task = sleeper(&mut kernel, 0);
        assert_eq!(choose(&kernel, task, 0), (0, vec![(2, 1_562_400), (0, 781_200)]));
        // From B: of A's two equal CPUs the lower one.
        let task = sleeper(&mut kernel, 2);
        assert_eq!(choose(&kernel, task, 2), (0, vec![(2, 1_562_400), (0, 781_200)]));
    }

    #[test]
    fn early_ways_out() {
        let mut kernel = kernel(&[(2, 512, A), (1, 1024, B)]);
        let task = sleeper(&mut kernel, 1);
        let se = kernel.tasks[task].se;
        let avg = &mut kernel.se[se].avg;
        (avg.util_avg, avg.util_est) = (0, 0);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
        // Fits nowhere: it stays, and nothing else is asked.
        let util = |k: &mut Kernel, util| {
            k.se[se].avg.util_avg = util;
            k.cfs[crate::sched::CfsRqId::root(CpuId(1))].avg.util_avg = util;
        };
        util(&mut kernel, 1000);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
        // Fits on B only: no comparison is needed.
        util(&mut kernel, 600);
        assert_eq!(choose(&kernel, task, 1).0, 2);
        // Its affinity leaves only CPU 1 beside that.
        kernel.tasks[task].cpus_mask = CpuMask::from_cpus([CpuId(0), CpuId(1)]);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
    }

    /// The active fair server's 51 is a floor of what a domain runs at, also where nothing runs.
    #[test]
    fn the_fair_servers_floor_moves_small_tasks_to_the_big_cpus() {
        let little: &[(u32, u64)] = &[(738_000, 20_962), (930_000, 30_725), (1_803_000, 109_393)];
        let big: &[(u32, u64)] = &[(500_000, 79_613), (2_802_000, 2_158_976)];
        let mut kernel = kernel(&[(4, 124, little), (2, 1024, big)]);
        let task = sleeper(&mut kernel, 0);
        let se = kernel.tasks[task].se;
        let avg = &mut kernel.se[se].avg;
        (avg.util_avg, avg.util_est) = (20, 24);
        assert_eq!(choose(&kernel, task, 0), (0, vec![(4, 24 * 4374), (0, 24 * 4192)]));
        for cpu in [0, 4] {
            kernel.rq[CpuId(cpu)].fair_server.count_for_test();
        }
        assert_eq!(choose(&kernel, task, 0), (4, vec![(4, 24 * 4374), (0, 24 * 4876)]));
    }
}
