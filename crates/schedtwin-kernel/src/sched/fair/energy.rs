// SPDX-License-Identifier: GPL-2.0-or-later
//! Energy-aware placement: what a task would cost where (`find_energy_efficient_cpu`, "feec").
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
//! **Two forms** of the search, each in a file of its own: [`fits`] (6.2 and later) looks first at how well a
//! task fits and then for the least energy; [`margin`] (5.14 to 5.19) wants to save a sixteenth of the total
//! before it moves a task. Two forms of the energy model ([`EmCpuEnergy`]):
//!
//! ```text
//!                     cost of a state          state chosen by          energy
//!   ByFrequency       f_max · power / f        f_max · util / capacity  cost · busy / capacity
//!   ByPerformance     10 · power / performance performance              cost · busy
//! ```
//!
//! They mean the same, but truncate differently: performance of a small core is a coarse number.
//!
//! **Example.** Two domains, A of capacity 512 (costs 3906, 5859) and B of 1024 (7812, 13671), all idle, and
//! a sleeping task of util_est 200: B costs 7812 · 200, A 3906 · 200, so the task goes to A from either.
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `compute_energy`, `eenv_pd_max_util`;
//! include/linux/energy_model.h `em_cpu_energy`; kernel/power/energy_model.c.
//! Differences: the quarter of headroom that `em_cpu_energy` adds up to 6.7 is part of the highest
//! utilisation here; both are capped by the same capacity, so nothing changes. Before 6.0 drivers stated
//! power in whole milliwatts; here it is in microwatts in every form.

pub mod fits;
pub mod margin;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod states;

use crate::config::{Config, EmCpuEnergy, FindEnergyEfficientCpu};
use crate::observe::DecisionObserver;
use crate::sched::root_domain::{PerfDomain, PerfState};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{Candidate, CpuId, PlacementRule, TaskId};

/// The choice, and the rule that made it.
pub type Choice = (CpuId, PlacementRule);

/// The result of `compute_energy()` for a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyEstimate {
    /// Cost of the operating point times busy time: only its differences mean something.
    pub energy: u64,
    /// The utilisation that decides the operating point.
    pub max_util: u64,
    /// Busy time of all its CPUs, as utilisation.
    pub busy: u64,
}

/// `ps->cost` of an operating point in a domain with this highest frequency (kHz; power in microwatts).
pub fn em_cost(config: &Config, max_frequency: u64, state: &PerfState) -> u64 {
    match config.em_cpu_energy {
        EmCpuEnergy::ByFrequency => max_frequency * state.power / state.frequency,
        EmCpuEnergy::ByPerformance => state.power * 10 / state.performance.max(1),
    }
}

fn top_state(pd: &PerfDomain) -> &PerfState {
    pd.states.last().expect("a domain has states")
}

/// `em_pd_get_efficient_state()`: the lowest state that suffices and is worth its power, else the top one.
#[inline(always)]
fn efficient_state(pd: &PerfDomain, suffices: impl Fn(&PerfState) -> bool) -> &PerfState {
    let mut states = pd.states.iter();
    states
        .find(|s| suffices(s) && !(pd.skip_inefficiencies && s.inefficient))
        .unwrap_or_else(|| top_state(pd))
}

/// `em_cpu_energy()`. `max_util` includes the headroom.
fn em_cpu_energy(
    config: &Config,
    pd: &PerfDomain,
    max_util: u64,
    sum_util: u64,
    allowed_cpu_cap: u64,
) -> u64 {
    if sum_util == 0 {
        return 0;
    }
    let max_util = max_util.min(allowed_cpu_cap);
    match config.em_cpu_energy {
        EmCpuEnergy::ByFrequency => {
            let top = top_state(pd);
            // At its highest frequency a state performs as much as the CPU can.
            let capacity = top.performance;
            let frequency = top.frequency * max_util / capacity;
            efficient_state(pd, |s| s.frequency >= frequency).cost * sum_util / capacity
        }
        EmCpuEnergy::ByPerformance => {
            efficient_state(pd, |s| s.performance >= max_util).cost * sum_util
        }
    }
}

impl Kernel {
    /// `find_energy_efficient_cpu()`; `None`: EAS cannot tell, ask the idle-sibling search. `task`'s
    /// signals have been aged to its queue's last update. `computed` counts the domains whose energy it took:
    /// those in which the task fits.
    #[inline(never)]
    pub fn find_energy_efficient_cpu(
        &self,
        task: TaskId,
        prev: CpuId,
        computed: &mut u32,
        see: &mut impl DecisionObserver,
    ) -> Option<Choice> {
        let mut domain = self.sched.sd_asym_cpucapacity(self.cx.this_cpu);
        while let Some(id) = domain
            && !self.sched.topology.domains[id.0 as usize].span.contains(prev)
        {
            domain = self.sched.topology.domains[id.0 as usize].parent;
        }
        let span = &self.sched.topology.domains[domain?.0 as usize].span;
        Some(match self.cx.config.find_energy_efficient_cpu {
            FindEnergyEfficientCpu::Margin => {
                self.sched.feec_margin(span, task, prev, computed, see, &self.cx)
            }
            FindEnergyEfficientCpu::Fits => self.feec_fits(span, task, prev, computed, see),
        })
    }
}

impl Scheduler {
    /// Notes a CPU that `find_energy_efficient_cpu()` looked at. `estimate`: how much the task would add to
    /// its domain, and the domain's highest utilisation then.
    fn note_feec(
        &self,
        see: &mut impl DecisionObserver,
        task: TaskId,
        cpu: CpuId,
        role: &'static str,
        estimate: Option<(u64, u64)>,
        cx: &Context,
    ) {
        see.candidate(|| Candidate {
            cpu,
            role,
            util: self.cpu_util(cpu, Some(task), Some(cpu), false, cx),
            capacity: self.capacity_of(cpu),
            energy_delta: estimate.map(|e| e.0),
            max_util: estimate.map(|e| e.1),
        });
    }

    /// One estimate of [`Kernel::find_energy_efficient_cpu`] by itself, for comparison with what a real
    /// kernel's `sched_compute_energy_tp` says: of the domain of `cpu`, with the task on it (`placed`) or
    /// nowhere. `None`: `cpu` is in no domain.
    pub(crate) fn energy_estimate(
        &self,
        task: TaskId,
        prev: CpuId,
        cpu: CpuId,
        placed: bool,
        cx: &Context,
    ) -> Option<EnergyEstimate> {
        let pd = self.rd.pds.iter().find(|pd| pd.span.contains(cpu))?;
        let dst = placed.then_some(cpu);
        Some(match cx.config.find_energy_efficient_cpu {
            FindEnergyEfficientCpu::Margin => self.compute_energy_margin(task, dst, pd, cx),
            FindEnergyEfficientCpu::Fits => {
                let env = self.energy_env(task, prev, pd, cx);
                self.compute_energy(&env, pd, task, dst, cx)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, EffectiveCpuUtil, Uclamp};
    use crate::observe::DecisionLog;
    use crate::sched::CfsRqId;
    use crate::sched::TaskKind;
    use crate::sched::demand::uclamp::{UclampRequest, max::Clamps};
    use crate::sched::root_domain::perf_states;
    use crate::sched::root_domain::tests::{device_tree, kernel};
    use schedtwin_types::CpuMask;

    const A: &[(u32, u64)] = &[(1_000_000, 100_000), (2_000_000, 300_000)];
    const B: &[(u32, u64)] = &[(1_000_000, 400_000), (2_000_000, 1_400_000)];

    /// A sleeping task of util_avg 150 and util_est 200 that last ran on `prev`.
    fn sleeper(kernel: &mut Kernel, prev: u16) -> TaskId {
        let task = kernel.new_task(None, TaskKind::User);
        kernel.sched.tasks[task].cpu = CpuId(prev);
        let se = kernel.sched.tasks[task].se;
        let avg = &mut kernel.sched.se[se].avg;
        (avg.util_avg, avg.util_est, avg.last_update_time) = (150, 200, 1);
        task
    }

    fn choose(kernel: &Kernel, task: TaskId, prev: u16) -> (u16, Vec<(u16, u64)>) {
        let mut notes = DecisionLog::default();
        let computed = &mut 0;
        let choice = kernel.find_energy_efficient_cpu(task, CpuId(prev), computed, &mut notes);
        let choice = choice.unwrap();
        // A domain is computed if the task fits in it.
        let domain = |cpu| kernel.sched.rd.pds.iter().position(|pd| pd.span.contains(cpu));
        let seen = notes.candidates.iter().filter(|c| !c.role.ends_with("does not fit"));
        let seen: std::collections::BTreeSet<_> = seen.map(|c| domain(c.cpu)).collect();
        assert_eq!(*computed as usize, seen.len());
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
        let se = kernel.sched.tasks[task].se;
        let avg = &mut kernel.sched.se[se].avg;
        (avg.util_avg, avg.util_est) = (0, 0);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
        // Fits nowhere: it stays, and nothing else is asked.
        let util = |k: &mut Kernel, util| {
            k.sched.se[se].avg.util_avg = util;
            k.sched.cfs[crate::sched::CfsRqId::root(CpuId(1))].avg.util_avg = util;
        };
        util(&mut kernel, 1000);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
        // Fits on B only: no comparison is needed.
        util(&mut kernel, 600);
        assert_eq!(choose(&kernel, task, 1).0, 2);
        // Its affinity leaves only CPU 1 beside that.
        kernel.sched.tasks[task].cpus_mask = CpuMask::from_cpus([CpuId(0), CpuId(1)]);
        assert_eq!(choose(&kernel, task, 1), (1, vec![]));
    }

    /// The active fair server's 51 is the least that a domain runs at, also where nothing runs.
    #[test]
    fn the_fair_servers_floor_moves_small_tasks_to_the_big_cpus() {
        let little: &[(u32, u64)] = &[(738_000, 20_962), (930_000, 30_725), (1_803_000, 109_393)];
        let big: &[(u32, u64)] = &[(500_000, 79_613), (2_802_000, 2_158_976)];
        let mut kernel = kernel(&[(4, 124, little), (2, 1024, big)]);
        let task = sleeper(&mut kernel, 0);
        let se = kernel.sched.tasks[task].se;
        let avg = &mut kernel.sched.se[se].avg;
        (avg.util_avg, avg.util_est) = (20, 24);
        assert_eq!(choose(&kernel, task, 0), (0, vec![(4, 24 * 4374), (0, 24 * 4192)]));
        for cpu in [0, 4] {
            kernel.sched.rq[CpuId(cpu)].dl.count_for_test();
        }
        assert_eq!(choose(&kernel, task, 0), (4, vec![(4, 24 * 4374), (0, 24 * 4876)]));
    }

    fn older(config: Config) -> Config {
        Config {
            fair_server_runtime: 0,
            effective_cpu_util: EffectiveCpuUtil::HeadroomLast,
            em_cpu_energy: EmCpuEnergy::ByFrequency,
            ..config
        }
    }

    /// `f_max · power / f` and `10 · power / performance`, and which states are skipped.
    #[test]
    fn costs() {
        let opps = [(300, 9_000), (700, 20_000), (1000, 50_000)];
        for (form, expected) in [
            (EmCpuEnergy::ByFrequency, [(30_000, true), (28_571, false), (50_000, false)]),
            // Performance 37, 86, 124.
            (EmCpuEnergy::ByPerformance, [(2_432, true), (2_325, false), (4_032, false)]),
        ] {
            let config = Config { em_cpu_energy: form, ..Config::linux_6_12() };
            let states = perf_states(&config, 124, &opps);
            let costs: Vec<_> = states.iter().map(|s| (s.cost, s.inefficient)).collect();
            assert_eq!(costs, expected, "{form:?}");
        }
    }

    /// `em_cpu_energy()`: `(highest utilisation with headroom, busy time, allowed capacity, energy)` of the
    /// little CPUs above.
    #[test]
    fn energy_of_a_domain() {
        let opps: &[(u32, u64)] = &[(300, 9_000), (700, 20_000), (1000, 50_000)];
        let check = |form, cases: &[(u64, u64, u64, u64)]| {
            let config =
                Config { em_cpu_energy: form, fair_server_runtime: 0, ..Config::linux_6_12() };
            let kernel = Kernel::boot(device_tree(&[(2, 124, opps), (1, 1024, A)]), config.clone());
            for &(max_util, busy, allowed, expected) in cases {
                let energy =
                    em_cpu_energy(&config, &kernel.sched.rd.pds[1], max_util, busy, allowed);
                assert_eq!(energy, expected, "{form:?}: {max_util}, {busy}, {allowed}");
            }
        };
        check(
            EmCpuEnergy::ByFrequency,
            &[
                (10, 0, 124, 0),
                (10, 10, 124, 28_571 * 10 / 124), // 80 kHz; the lowest state is skipped
                (86, 60, 124, 28_571 * 60 / 124), // 1000 · 86 / 124 = 693
                (87, 60, 124, 50_000 * 60 / 124), // 701
                (900, 200, 124, 50_000 * 200 / 124),
                (900, 200, 80, 28_571 * 200 / 124), // capped at 645
            ],
        );
        check(
            EmCpuEnergy::ByPerformance,
            &[
                (10, 0, 124, 0),
                (10, 10, 124, 23_250),
                (86, 60, 124, 139_500),
                (87, 60, 124, 241_920),
                (900, 200, 80, 465_000),
            ],
        );
    }

    /// The older cost table chooses alike: costs 200000 and 300000 of capacity 512, 800000 and 1400000 of
    /// 1024. Before 6.8 headroom is added to the highest utilisation, 200 to 250, at the end.
    #[test]
    fn the_worked_example_by_frequency() {
        let config = older(Config::linux_6_12());
        let mut kernel = Kernel::boot(device_tree(&[(2, 512, A), (1, 1024, B)]), config);
        let task = sleeper(&mut kernel, 2);
        let deltas = vec![(2, 800_000 * 200 / 1024), (0, 200_000 * 200 / 512)];
        assert_eq!(choose(&kernel, task, 2), (0, deltas));
        let estimate =
            kernel.sched.energy_estimate(task, CpuId(2), CpuId(0), true, &kernel.cx).unwrap();
        assert_eq!((estimate.max_util, estimate.busy), (250, 200));
    }

    /// A task leaves prev for a saving of more than a sixteenth of all, and a CPU without spare capacity is
    /// none. Two domains of equal capacity differ in cost alone; an always asymmetric third one is empty.
    #[test]
    fn margin() {
        let cheap: &[(u32, u64)] = &[(1_000_000, 100_000)];
        let chosen = |dear: u64, others: u64, form| {
            let dear: &[(u32, u64)] = &[(1_000_000, dear)];
            let config = Config { find_energy_efficient_cpu: form, ..older(Config::linux_6_12()) };
            let domains = [(1, 512, cheap), (1, 512, dear), (1, 1024, B)];
            let mut kernel = Kernel::boot(device_tree(&domains), config);
            let task = sleeper(&mut kernel, 1);
            // Somebody keeps prev's domain busy: that counts in the total.
            let avg = &mut kernel.sched.cfs[CfsRqId::root(CpuId(1))].avg;
            avg.util_avg = 150 + others;
            choose(&kernel, task, 1).0
        };
        let margin = FindEnergyEfficientCpu::Margin;
        let fits = FindEnergyEfficientCpu::Fits;
        // Deltas: cost · 200 / 512, 39062 against 41796 (6.5 %) or 41406 (5.7 %).
        assert_eq!(chosen(107_000, 0, margin), 0);
        assert_eq!(chosen(106_000, 0, margin), 1);
        assert_eq!(chosen(106_000, 0, fits), 0);
        // With 100 of utilisation that stays, 6.5 % of the task are 4.4 % of all.
        assert_eq!(chosen(107_000, 100, margin), 1);
        assert_eq!(chosen(111_000, 100, margin), 0);
        assert_eq!(chosen(107_000, 100, fits), 0);
    }

    /// In prev's domain the margin form looks at the best other CPU whatever prev has to spare, and needs
    /// spare capacity.
    #[test]
    fn candidates_of_the_margin_form() {
        let config = Config {
            find_energy_efficient_cpu: FindEnergyEfficientCpu::Margin,
            ..older(Config::linux_6_12())
        };
        let mut kernel = Kernel::boot(device_tree(&[(2, 512, A), (1, 1024, B)]), config);
        let task = sleeper(&mut kernel, 0);
        let looked_at =
            |k: &Kernel| -> Vec<u16> { choose(k, task, 0).1.iter().map(|(cpu, _)| *cpu).collect() };
        assert_eq!(looked_at(&kernel), [2, 0, 1]);
        kernel.sched.cfs[CfsRqId::root(CpuId(1))].avg.util_avg = 200;
        assert_eq!(looked_at(&kernel), [2, 0, 1]);
        kernel.sched.cfs[CfsRqId::root(CpuId(1))].avg.util_avg = 400;
        assert_eq!(looked_at(&kernel), [2, 0]);
        // The task fits nowhere but on prev: it stays, whatever prev costs.
        let se = kernel.sched.tasks[task].se;
        kernel.sched.se[se].avg.util_est = 0;
        kernel.sched.se[se].avg.util_avg = 0;
        assert_eq!(choose(&kernel, task, 0), (0, vec![]));
    }

    /// On a busy CPU of its own the busy time of the margin form is that of the CPU without the task, plus
    /// the task's estimate; the later one takes what the CPU would be used.
    #[test]
    fn busy_time_of_the_margin_form() {
        let config = older(Config::linux_6_12());
        let mut kernel = Kernel::boot(device_tree(&[(2, 512, A), (1, 1024, B)]), config);
        let task = sleeper(&mut kernel, 0);
        let avg = &mut kernel.sched.cfs[CfsRqId::root(CpuId(0))].avg;
        (avg.util_avg, avg.util_est) = (250, 90);
        let pd = &kernel.sched.rd.pds[1];
        let on = |dst| kernel.sched.compute_energy_margin(task, dst, pd, &kernel.cx).busy;
        assert_eq!(on(None), 100); // util 250 − 150 against 90
        assert_eq!(on(Some(CpuId(0))), 300);
        assert_eq!(on(Some(CpuId(1))), 300);
        kernel.sched.cfs[CfsRqId::root(CpuId(0))].avg.util_avg = 600;
        let on = |dst| {
            kernel.sched.compute_energy_margin(task, dst, &kernel.sched.rd.pds[1], &kernel.cx).busy
        };
        assert_eq!(on(Some(CpuId(0))), 512, "capped by the CPU");
    }

    /// A task with a minimum goes where it can be met, or to the largest CPU.
    #[test]
    fn minima() {
        let chosen = |min: u16, prev: u16, allowed: &[u16]| {
            let config =
                Config { uclamp: Uclamp::On, fair_server_runtime: 0, ..Config::linux_6_12() };
            let domains = [(1, 124, A), (1, 427, A), (1, 1024, B)];
            let mut kernel = Kernel::boot(device_tree(&domains), config);
            let task = sleeper(&mut kernel, prev);
            let se = kernel.sched.tasks[task].se;
            let avg = &mut kernel.sched.se[se].avg;
            (avg.util_avg, avg.util_est) = (30, 40);
            kernel.sched.tasks[task].uclamp_req = UclampRequest { min: Some(min), max: None };
            kernel.sched.tasks[task].cpus_mask =
                CpuMask::from_cpus(allowed.iter().map(|c| CpuId(*c)));
            choose(&kernel, task, prev).0
        };
        assert_eq!(chosen(0, 0, &[0, 1, 2]), 1); // equal power, more performance
        assert_eq!(chosen(300, 0, &[0, 1, 2]), 1); // met there
        assert_eq!(chosen(500, 0, &[0, 1, 2]), 2); // met there only
        assert_eq!(chosen(500, 0, &[0, 1]), 1); // met nowhere: the larger
        assert_eq!(chosen(500, 1, &[0, 1]), 1);
        assert_eq!(chosen(100, 0, &[0]), 0);
    }

    /// The domain's highest utilisation respects the task's clamps; the retained maximum of a CPU without
    /// tasks is replaced by the task's.
    #[test]
    fn max_util_with_clamps() {
        let max_util = |effective_cpu_util, own: (u16, u16), rq: (u32, u32), idle: bool| {
            let config = Config {
                uclamp: Uclamp::On,
                effective_cpu_util,
                fair_server_runtime: 0,
                ..Config::linux_6_12()
            };
            let mut kernel = Kernel::boot(device_tree(&[(2, 512, A), (1, 1024, B)]), config);
            let task = sleeper(&mut kernel, 2);
            kernel.sched.tasks[task].uclamp_req =
                UclampRequest { min: Some(own.0), max: Some(own.1) };
            let clamps = Clamps { min: rq.0, max: rq.1 };
            kernel.sched.rq[CpuId(0)].uclamp.inc(clamps);
            if idle {
                kernel.sched.rq[CpuId(0)].uclamp.dec(clamps);
            }
            kernel
                .sched
                .energy_estimate(task, CpuId(2), CpuId(0), true, &kernel.cx)
                .unwrap()
                .max_util
        };
        let (before, since) = (EffectiveCpuUtil::HeadroomLast, EffectiveCpuUtil::ClampLast);
        for (form, own, rq, idle, expected) in [
            (since, (0, 1024), (0, 1024), false, 250),
            (before, (0, 1024), (0, 1024), false, 250),
            (since, (0, 100), (0, 1024), false, 250),
            (since, (0, 100), (0, 50), false, 100),
            (before, (0, 100), (0, 50), false, 125),
            (since, (0, 100), (0, 300), true, 100),
            (before, (0, 100), (0, 300), true, 125),
            (since, (400, 1024), (0, 1024), false, 400),
            (before, (400, 1024), (0, 1024), false, 500),
        ] {
            let case = (form, own, rq, idle);
            assert_eq!(max_util(form, own, rq, idle), expected, "{case:?}");
        }
    }
}
