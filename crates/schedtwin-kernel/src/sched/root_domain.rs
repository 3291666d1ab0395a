// SPDX-License-Identifier: GPL-2.0-or-later
//! The root domain: what all CPUs of a partition share, and the performance domains of EAS.
//!
//! Kernel: 6.12.95 kernel/sched/{sched.h, topology.c}, kernel/power/energy_model.c.
//! Differences: one root domain, no cpusets.

use crate::Context;
use crate::config::{Config, PushOverload};
use crate::device_tree::DeviceTree;
use crate::sched::deadline::{Cpudl, DlBw};
use crate::sched::fair::energy::em_cost;
use crate::sched::rt::RtPeriod;
use schedtwin_types::{CpuId, CpuMask};

impl Context {
    /// Whether a CPU is overloaded with tasks of a class as soon as one waits that may move; up to 6.6 it is if it has two, and one of all may
    /// move.
    pub(crate) fn pushable_overloads(&self) -> bool {
        self.config.push_overload == PushOverload::Pushable
    }
}

/// The root domain.
#[derive(Clone, Debug, Default)]
pub struct RootDomain {
    /// All its CPUs.
    pub span: CpuMask,
    /// Capacity of the biggest CPU.
    pub max_cpu_capacity: u64,
    /// Some CPU has two or more runnable tasks.
    pub overloaded: bool,
    /// Some CPU is used beyond its capacity: EAS stands back.
    pub overutilized: bool,
    /// EAS is on.
    pub energy_aware: bool,
    /// Why EAS is off, if it is.
    pub energy_aware_off_because: Option<&'static str>,
    /// CPUs with pushable RT tasks.
    pub rto_mask: CpuMask,
    /// Where the interrupt is that has overloaded CPUs push RT tasks; `None`: none is under way.
    pub rto_cpu: Option<CpuId>,
    /// Rounds of it that were asked for when it last began one.
    pub rto_loop: u32,
    /// Rounds of it that have been asked for.
    pub rto_loop_next: u32,
    /// CPUs with pushable deadline tasks.
    pub dlo_mask: CpuMask,
    /// Which CPU's earliest deadline is the latest.
    pub cpudl: Cpudl,
    /// The bandwidth that deadline tasks may reserve, and have reserved.
    pub dl_bw: DlBw,
    /// When RT queues are next forgiven what they have used.
    pub rt_period: RtPeriod,
    /// Performance domains in the order in which EAS visits them: the one that starts at the highest
    /// CPU first, since the kernel prepends while it walks CPUs upwards.
    pub pds: Vec<PerfDomain>,
}

/// A performance domain (`struct perf_domain` and its `em_perf_domain`).
#[derive(Clone, Debug)]
pub struct PerfDomain {
    /// Its CPUs.
    pub span: CpuMask,
    /// Its first CPU.
    pub first: CpuId,
    /// Performance states, ascending.
    pub states: Vec<PerfState>,
    /// Skip inefficient states.
    pub skip_inefficiencies: bool,
}

/// A performance state (`struct em_perf_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfState {
    /// kHz.
    pub frequency: u64,
    /// Capacity at this state.
    pub performance: u64,
    /// Power, microwatts.
    pub power: u64,
    /// Cost coefficient (`em_cost`).
    pub cost: u64,
    /// Costs as much as a faster state.
    pub inefficient: bool,
}

/// The energy model's table of a domain (`em_create_perf_table`, `em_adjust_new_capacity`).
///
/// ```
/// use schedtwin_kernel::sched::root_domain::perf_states;
/// let config = schedtwin_kernel::config::Config::linux_6_12();
/// let states = perf_states(&config, 512, &[(500, 100_000), (1000, 300_000)]);
/// assert_eq!([states[0].cost, states[1].cost], [3906, 5859]);
/// ```
pub fn perf_states(config: &Config, capacity: u64, opps: &[(u32, u64)]) -> Vec<PerfState> {
    let max = opps.last().expect("a domain has operating points").0 as u64;
    let mut states: Vec<PerfState> = opps
        .iter()
        .map(|&(khz, power)| {
            let (frequency, performance) = (khz as u64, capacity * khz as u64 / max);
            let mut state =
                PerfState { frequency, performance, power, cost: 0, inefficient: false };
            state.cost = em_cost(config, max, &state);
            state
        })
        .collect();
    let mut smallest = u64::MAX;
    for state in states.iter_mut().rev() {
        if state.cost >= smallest {
            state.inefficient = true;
        } else {
            smallest = state.cost;
        }
    }
    states
}

impl RootDomain {
    /// Builds it (`build_perf_domains`). `asymmetric`: some CPU has `sd_asym_cpucapacity`;
    /// `smt`: `sched_smt_active()`.
    pub fn build(dt: &DeviceTree, config: &Config, asymmetric: bool, smt: bool) -> RootDomain {
        let max_cpu_capacity = dt.cpus.iter().map(|c| c.capacity as u64).max().unwrap_or(0);
        let mut rd = RootDomain {
            span: dt.all_cpus(),
            max_cpu_capacity,
            cpudl: Cpudl::new(dt.all_cpus()),
            dl_bw: config.dl_bw(dt.cpus.len()),
            ..RootDomain::default()
        };
        rd.energy_aware_off_because = if !asymmetric {
            Some("all CPUs have the same capacity")
        } else if smt {
            Some("cores have several hardware threads")
        } else if !config.runs_schedutil() {
            Some("the frequency governor is not schedutil")
        } else if !config.energy_aware {
            Some("sched_energy_aware is 0")
        } else {
            None
        };
        rd.energy_aware = rd.energy_aware_off_because.is_none();
        for policy in &dt.policies {
            let first = policy.cpus.lowest().expect("a policy has CPUs");
            let capacity = dt.cpus[first.index()].capacity as u64;
            let states = perf_states(config, capacity, &policy.opps);
            let skip_inefficiencies = states.iter().any(|s| s.inefficient);
            rd.pds.push(PerfDomain { span: policy.cpus, first, states, skip_inefficiencies });
        }
        rd.pds.sort_by_key(|pd| std::cmp::Reverse(pd.first));
        rd
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Kernel;
    use crate::device_tree::DtDomain;

    /// A device tree for unit tests, whose frequencies take half a millisecond to change.
    pub(crate) fn device_tree(domains: &[DtDomain]) -> DeviceTree {
        let mut machine = DeviceTree::of_domains(domains);
        for policy in &mut machine.policies {
            policy.transition_latency = 500_000;
        }
        machine
    }

    /// CPU 0 is little, CPU 1 big, each with a clock of its own; `config` without its fair servers.
    pub(crate) fn little_and_big(config: Config) -> Kernel {
        const OPPS: &[(u32, u64)] = &[(1_000_000, 300_000), (2_000_000, 900_000)];
        let config = Config { fair_server_runtime: 0, ..config };
        Kernel::boot(device_tree(&[(1, 383, OPPS), (1, 1024, OPPS)]), config)
    }

    /// A kernel on it, without fair servers.
    pub(crate) fn kernel(domains: &[DtDomain]) -> Kernel {
        let config = Config { fair_server_runtime: 0, ..Config::linux_6_12() };
        Kernel::boot(device_tree(domains), config)
    }

    /// The energy model of the emulated board's middle CPUs as the kernel printed it: its lowest operating
    /// point costs more than the next, so nothing may choose it.
    #[test]
    fn an_inefficient_state_is_marked_and_skipped() {
        let opps = [(400_000, 33_504), (553_000, 45_883), (696_000, 59_712), (2_253_000, 603_709)];
        let states = perf_states(&Config::linux_6_12(), 427, &opps);
        let printed =
            [(75, 4467, true), (104, 4411, false), (131, 4558, false), (427, 14138, false)];
        for (state, printed) in states.iter().zip(printed) {
            assert_eq!((state.performance, state.cost, state.inefficient), printed);
        }
        let kernel = kernel(&[(2, 427, &opps), (1, 1024, &[(1_000_000, 1_000_000)])]);
        assert!(
            kernel.sched.rd.pds[1].skip_inefficiencies
                && !kernel.sched.rd.pds[0].skip_inefficiencies
        );
        assert_eq!(kernel.cpufreq.policy(schedtwin_types::PolicyId(0)).resolve(0), 553_000);
        assert_eq!(kernel.cpufreq.policy(schedtwin_types::PolicyId(0)).resolve(553_001), 696_000);
        assert_eq!(
            kernel.cpufreq.policy(schedtwin_types::PolicyId(0)).resolve(9_999_999),
            2_253_000
        );
    }

    #[test]
    fn eas_visits_the_domain_of_the_highest_cpu_first() {
        let opps: &[(u32, u64)] = &[(1_000_000, 100_000)];
        let kernel = kernel(&[(4, 124, opps), (2, 427, opps), (2, 1024, opps)]);
        let firsts: Vec<u16> = kernel.sched.rd.pds.iter().map(|pd| pd.first.0).collect();
        assert_eq!(firsts, [6, 4, 0]);
    }
}
