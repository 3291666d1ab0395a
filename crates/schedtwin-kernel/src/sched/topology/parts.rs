// SPDX-License-Identifier: GPL-2.0-or-later
//! Small machines by their parts, for tests and for comparisons with the kernel's C.

use crate::Kernel;
use crate::config::{Config, FrequencyGovernor};
use crate::device_tree::{DeviceTree, DtCpu, DtIdleState, DtPolicy, PathCosts};
use schedtwin_types::CpuMask;

/// Some equal CPUs of a machine.
#[derive(Clone)]
pub(crate) struct Part {
    pub(super) count: usize,
    pub(super) cpu: DtCpu,
}

impl Part {
    /// In package, cache and node 0, without clusters.
    pub(crate) fn of(count: usize, capacity: u32) -> Part {
        Part { count, cpu: DtCpu::new(capacity, 0) }
    }
    pub(crate) fn cluster(mut self, cluster: u16) -> Part {
        self.cpu.cluster = Some(cluster);
        self
    }
    pub(crate) fn llc(mut self, llc: u16) -> Part {
        self.cpu.llc = llc;
        self
    }
    pub(crate) fn node(mut self, node: u16) -> Part {
        self.cpu.node = node;
        self
    }
    pub(crate) fn core(mut self, core: u16) -> Part {
        self.cpu.core = Some(core);
        self
    }
}

/// A machine of these CPUs, in this order.
pub(crate) fn machine(parts: &[Part]) -> DeviceTree {
    let cpus = parts.iter().flat_map(|p| std::iter::repeat_n(p.cpu.clone(), p.count)).collect();
    DeviceTree { cpus, ..DeviceTree::of_domains(&[]) }
}

/// Boots 6.12 on a machine of these CPUs; CPUs of a capacity share a frequency domain of one step.
pub(crate) fn boot(parts: &[Part], eas: bool) -> Kernel {
    let mut dt = machine(parts);
    let mut capacities: Vec<u32> = dt.cpus.iter().map(|c| c.capacity).collect();
    capacities.dedup();
    for (policy, capacity) in capacities.iter().enumerate() {
        let cpus = dt.all_cpus().iter().filter(|c| dt.cpus[c.index()].capacity == *capacity);
        let cpus: CpuMask = cpus.collect();
        for cpu in cpus.iter() {
            dt.cpus[cpu.index()].policy = policy;
        }
        dt.policies.push(DtPolicy {
            cpus,
            opps: vec![(1_000_000, 1000 * *capacity as u64)],
            transition_latency: 10_000,
            fast_switch: true,
            driver_latency: 0,
            driver_sleeps: false,
            dvfs_possible_from_any_cpu: true,
        });
    }
    // The second one is deep enough for the tick to be stopped.
    dt.idle_tables = vec![vec![DtIdleState::new(1000, 1000), DtIdleState::new(100_000, 5_000_000)]];
    dt.path_costs = PathCosts {
        constant_time: true,
        interrupt: 500,
        schedule: 300,
        balance_per_cpu: 200,
        migrate_task: 1000,
        ..PathCosts::default()
    };
    dt.nr_threads_hint = 16;
    let mut config = Config::linux_6_12();
    if !eas {
        config.cpufreq = FrequencyGovernor::Performance;
    }
    let mut kernel = Kernel::boot(dt, config);
    kernel.cx.want_decisions = true;
    kernel
}
