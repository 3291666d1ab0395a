// SPDX-License-Identifier: GPL-2.0-or-later
//! The types of a machine.
//!
//! Terms: the **truth** is what the hardware does; what the kernel is **told** about it (by a device
//! tree or a driver) stands in fields whose names begin with `kernel_` or `em_`. Both are written in
//! the machine's file, because on real devices they differ.

use std::sync::Arc;

use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::arena::Arena;
use schedtwin_types::{Capacity, ClockDomainId, CpuId, Khz, Ns, PowerDomainId};

use crate::{
    BlockDevice, Broadcast, Coupling, Distances, Heat, Interrupts, KernelTopology, L3, PathCosts,
    PowerDependence, PowerDomain, PowerLimit, Smt, Switching, Turns, WorkKind,
};

/// The most idle states of a CPU (`CPUIDLE_STATE_MAX` of include/linux/cpuidle.h).
pub const MAX_IDLE_STATES: usize = 10;

/// A machine, read and checked: its owner need not check it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name in the file: `pixel6`.
    pub name: String,
    /// The name that the user asked for, with settings: `pixel6:coupling=false`.
    pub identity: String,
    /// The settings that were put in, `KEY=VALUE` each, in the order given.
    pub settings: Vec<String>,
    /// One line for people.
    pub description: String,
    /// Which of the file's topologies is in use: `mc`.
    pub topology: String,
    /// The topology that the kernel is told beside the places of CPUs.
    pub kernel_topology: KernelTopology,
    /// The CPUs, numbered from 0 without gaps.
    pub cpus: Vec<Cpu>,
    /// The frequency domains (cpufreq policies), in the order of their lowest CPU.
    pub domains: Arena<ClockDomainId, FrequencyDomain>,
    /// The kinds of cores, in the order of the file.
    pub core_types: Vec<CoreType>,
    /// Frequencies that domains force upon each other, so ordered that a domain's own floors come
    /// before those that it causes.
    pub couplings: Vec<Coupling>,
    /// The kernel's driver does what `couplings` say: the kernel knows the clock.
    pub coupling_by_driver: bool,
    /// Domains whose power depends on the clocks of others; at most one entry a domain.
    pub power_dependences: Vec<PowerDependence>,
    /// How often work uses the cache that all CPUs share; `None` where the file does not say.
    pub l3: Option<L3>,
    /// Parts above single CPUs with power and idle states of their own.
    pub power_domains: Arena<PowerDomainId, PowerDomain>,
    /// Firmware that holds clocks back.
    pub power_limits: Vec<PowerLimit>,
    /// Heat flow, and the kernel's thermal zones; `None` where the file has no heat or it is switched off.
    pub heat: Option<Heat>,
    /// The timer for CPUs whose own timers stop; `None` where the file does not say.
    pub broadcast: Option<Broadcast>,
    /// Block devices; the first one is the default of workloads.
    pub block: Vec<BlockDevice>,
    /// The properties that hardware threads of a core share; `None` where every CPU is a core.
    pub smt: Option<Smt>,
    /// The costs of distance between CPUs; `None`: nothing.
    pub distances: Option<Distances>,
    /// The way in which CPUs take turns; `None`: all execute at the same time.
    pub turns: Option<Turns>,
    /// Kinds of work that do not follow the capacities; empty where the file switches them off.
    pub kinds: Vec<WorkKind>,
    /// The costs of the kernel's paths.
    pub path_costs: PathCosts,
    /// Latencies of interrupts.
    pub interrupts: Interrupts,
    /// Work of one loop of rt-app's busy loop, ns at capacity 1024 and full speed: its calibration.
    pub ns_per_loop: u64,
    /// The number of lines of the file with estimates in place of measurements; 0 if the file does not say.
    pub estimated: u64,
    /// Paths of the keys that the file marks as estimates; a table's path stands for all of its keys.
    pub estimates: Vec<String>,
    /// Paths of the keys that `schedtwin calibrate machine` measured.
    pub measured: Vec<String>,
    /// Paths of the keys whose values were fitted to published ones: what rests on them predicts nothing there.
    pub fitted: Vec<String>,
    /// Paths of the keys that the file leaves out and the classes of its cores stand for: estimates.
    pub left_out: Vec<String>,
    /// Warnings: values that look wrong but are possible.
    pub warnings: Diagnostics,
    /// The file. Together with `settings` it determines the machine, so the hash of a provenance
    /// covers both: see [`Machine::fingerprint_text`].
    pub source: Arc<Source>,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its kind: index into [`Machine::core_types`].
    pub core_type: usize,
    /// Its clock.
    pub domain: ClockDomainId,
    /// Capacity at the highest frequency (`arch_scale_cpu_capacity`), 1..=1024; the largest of a
    /// machine is 1024.
    pub capacity: Capacity,
    /// The physical core (`topology_core_id`): equal for its hardware threads. Its number is that of its lowest CPU.
    pub core: u16,
    /// `topology_cluster_id` as the scheduler sees it; `None` where it sees none.
    pub cluster: Option<u16>,
    /// `topology_physical_package_id`.
    pub package: u16,
    /// The last-level cache (`cpu_llc_shared_mask`).
    pub llc: u16,
    /// The NUMA node.
    pub node: u16,
    /// The level 2 cache; `None` where the file does not say: the core's own.
    pub l2: Option<u16>,
    /// The half of a powerpc chip (`coregroup`); `None` where there are none.
    pub hemisphere: Option<u16>,
    /// The powerpc core of two small ones; `None` where there are none.
    pub big_core: Option<u16>,
}

/// CPUs that share one clock: a cpufreq policy, which is also a performance domain of the kernel's
/// energy model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyDomain {
    /// The name in the file: `little`. The kernel calls it `policyN` after its lowest CPU.
    pub name: String,
    /// Its CPUs, ascending.
    pub cpus: Vec<CpuId>,
    /// Its operating points, frequencies rising.
    pub opps: Vec<OperatingPoint>,
    /// `cpuinfo.transition_latency`: what the driver tells the kernel, and what schedutil's default
    /// rate limit comes from.
    pub kernel_transition_latency_ns: Ns,
    /// The truth: how the hardware gets from one frequency to another.
    pub switching: Switching,
    /// Whether the driver can switch from the scheduler's context (`fast_switch_possible`).
    pub fast_switch: bool,
    /// Without fast switch: what the governor's thread does while the driver's call takes its time.
    pub driver: DriverWait,
    /// And how long that is.
    pub driver_latency_ns: Ns,
    /// Whether any CPU may change this domain's frequency (`dvfs_possible_from_any_cpu`).
    pub dvfs_possible_from_any_cpu: bool,
    /// Measured: power of the domain while all its CPUs are in deep states, µW.
    pub off_uw: u64,
}

/// The way in which a frequency driver waits for its hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverWait {
    /// Asleep, until an interrupt says that it is done: a message to another processor.
    Sleeps,
    /// Polling, with its CPU.
    Spins,
}

/// A frequency with what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// The frequency.
    pub khz: Khz,
    /// Supply voltage, µV, where known: a clock waits for it where [`Switching`] says how fast it rises.
    pub microvolt: Option<u32>,
    /// The kernel's energy model: power of one busy CPU, µW.
    pub em_power_uw: u64,
    /// Measured: power of one busy CPU, µW.
    pub active_uw: u64,
    /// Measured: power of one CPU in WFI, µW; shallow idle states draw a share of it.
    pub idle_wfi_uw: u64,
    /// Measured: power of the domain while at least one of its CPUs is not in a deep state, µW.
    pub static_uw: u64,
    /// The same while none of its CPUs executes; `static_uw` unless the file says otherwise.
    pub idle_static_uw: u64,
}

/// A kind of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreType {
    /// Its name: `cortex-a55`.
    pub name: String,
    /// Its idle states, shallow to deep; at least one.
    pub idle_states: Vec<IdleState>,
}

/// An idle state of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Its name: `WFI`.
    pub name: String,
    /// The truth: from the instruction to being in the state.
    pub entry_latency_ns: Ns,
    /// The truth: from the interrupt to the first instruction.
    pub exit_latency_ns: Ns,
    /// The same where an interrupt of another CPU wakes it.
    pub exit_ipi_latency_ns: Ns,
    /// The same where a device does.
    pub exit_device_latency_ns: Ns,
    /// From an interrupt during the entry to the first instruction; `None`: the entry is completed first,
    /// and no exit follows.
    pub abort_latency_ns: Option<Ns>,
    /// `exit_latency_ns` of the kernel's table: the worst case, so entry and exit together unless
    /// the file says otherwise.
    pub kernel_exit_latency_ns: Ns,
    /// `target_residency_ns` of the kernel's table.
    pub target_residency_ns: Ns,
    /// The power that the CPU draws from entry to exit.
    pub power: IdlePower,
    /// Energy of each entry on top of that, nJ: saving and flushing.
    pub energy_entry_nj: u64,
    /// Energy of each exit on top of that, nJ: restoring.
    pub energy_exit_nj: u64,
    /// Energy of an entry that is aborted, nJ: what was saved and flushed in vain, and restored.
    pub energy_abort_nj: u64,
    /// Whether the domain's static power is off once all its CPUs are in states like this.
    pub deep: bool,
    /// Whether the CPU polls `need_resched` (`CPUIDLE_FLAG_POLLING`): only the first state may.
    pub polling: bool,
    /// Whether the CPU watches `need_resched` asleep (MWAIT), so that others wake it without an interrupt.
    pub mwait: bool,
    /// Whether an entry that an interrupt aborts counts as refused, as far as the kernel is told: firmware
    /// that looks for pending interrupts and returns an error.
    pub refuses_pending: bool,
    /// Whether the CPU's own timer stops (`CPUIDLE_FLAG_TIMER_STOP`), so that the kernel must ask
    /// another one to wake it.
    pub local_timer_stops: bool,
    /// The level that owns the state: one that is shared is entered only while all who share it
    /// have asked for it.
    pub shared: Shared,
}

/// The CPUs that must agree on an idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// The CPU alone.
    Own,
    /// Every hardware thread of the core.
    Core,
    /// Every CPU of the cluster, which is the frequency domain.
    Cluster,
    /// Every CPU of the package.
    Package,
}

impl CoreType {
    /// The depth of a request, comparable between kinds of cores: the unit that the state belongs to (CPU, core,
    /// cluster, package), and the state's position among those of that unit.
    pub fn depth(&self, state: usize) -> (Shared, usize) {
        let shared = self.idle_states[state].shared;
        (shared, self.idle_states[..state].iter().filter(|s| s.shared == shared).count())
    }
}

/// The power of a CPU in an idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePower {
    /// So many thousandths of busy power at the present frequency: it polls.
    ActivePermille(u16),
    /// So many thousandths of the WFI curve at the present frequency; 0 = power is off.
    WfiPermille(u16),
}

impl Machine {
    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Whether it has several NUMA nodes.
    pub fn has_several_nodes(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.node != 0)
    }

    /// Whether its file has the power of CPUs, and of nothing beside them: no package, no interconnect.
    pub fn has_power_of_cpus_alone(&self) -> bool {
        let opps = self.domains.iter().flat_map(|domain| &domain.opps);
        opps.into_iter().any(|opp| opp.active_uw > 0) && self.power_domains.is_empty()
    }

    /// The parts of its file that are estimated and decide about results, in words, each once.
    pub fn estimated_parts(&self) -> Vec<&'static str> {
        let words = |path: &String| match path.split('.').next()? {
            "domain" => Some("operating points with their power"),
            "power" | "power_limit" => Some("power beside the CPUs"),
            "distance" => Some("distances"),
            "smt" => Some("SMT"),
            "heat_node" | "thermal_zone" => Some("heat"),
            _ => None,
        };
        let mut parts: Vec<_> = self.estimates.iter().filter_map(words).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The text whose hash identifies this machine: settings (in no particular order) and file,
    /// wherever that lies.
    pub fn fingerprint_text(&self) -> String {
        let mut settings = self.settings.clone();
        settings.sort();
        format!("{}\n{}", settings.join(","), self.source.text)
    }

    /// How fast `cpu` works at `khz`: see [`crate::rate`].
    pub fn rate(&self, cpu: CpuId, khz: Khz) -> u64 {
        crate::rate(self.cpus[cpu.index()].capacity, khz, self.domain_of(cpu).max_khz())
    }

    /// The number of the kind of work called `name`; `None`: it follows the capacities.
    pub fn kind(&self, name: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.name == name)
    }

    /// How fast `cpu` does work of a kind at `khz`: see [`crate::rate_of_kind`].
    pub fn rate_of(&self, cpu: CpuId, khz: Khz, kind: Option<usize>) -> u64 {
        let Some(kind) = kind.map(|kind| &self.kinds[kind]) else {
            return self.rate(cpu, khz);
        };
        let hardware = &self.cpus[cpu.index()];
        let factor = kind.factor_permille[hardware.core_type];
        let max_khz = self.domain_of(cpu).max_khz();
        crate::rate_of_kind(hardware.capacity, factor, kind.stall_permille, khz, max_khz)
    }

    /// The idle states of a CPU.
    pub fn idle_states(&self, cpu: CpuId) -> &[IdleState] {
        &self.core_types[self.cpus[cpu.index()].core_type].idle_states
    }

    /// The hardware threads of a CPU's core, itself included.
    pub fn threads_of(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let core = self.cpus[cpu.index()].core;
        let all = (0..self.cpus.len()).filter(move |c| self.cpus[*c].core == core);
        all.map(|c| CpuId(c as u16))
    }

    /// The frequency domain of a CPU.
    pub fn domain_of(&self, cpu: CpuId) -> &FrequencyDomain {
        &self.domains[self.cpus[cpu.index()].domain]
    }
}

impl FrequencyDomain {
    /// The lowest frequency.
    pub fn min_khz(&self) -> Khz {
        self.opps[0].khz
    }

    /// The highest frequency.
    pub fn max_khz(&self) -> Khz {
        self.opps[self.opps.len() - 1].khz
    }

    /// The operating point of exactly this frequency.
    pub fn opp_of(&self, khz: Khz) -> Option<usize> {
        self.opps.binary_search_by_key(&khz, |opp| opp.khz).ok()
    }

    /// The highest operating point of at most this frequency, or the lowest of all.
    pub fn opp_at_most(&self, khz: Khz) -> usize {
        self.opps.partition_point(|opp| opp.khz <= khz).saturating_sub(1)
    }

    /// The lowest operating point of at least this frequency, or the highest of all
    /// (`CPUFREQ_RELATION_L`).
    pub fn opp_at_least(&self, khz: Khz) -> usize {
        self.opps.partition_point(|opp| opp.khz < khz).min(self.opps.len() - 1)
    }
}
