// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine as firmware describes it to the kernel, as a device tree would.
//!
//! These are the kernel's *beliefs*: the capacities, operating points, energy model and idle-state
//! parameters that it decides with. The machine itself may differ.

use crate::config::Config;
use crate::sched::topology::Topology;
pub use crate::sched::topology::TopologyError;
pub use crate::sched::topology::table::{
    DomainRow, DomainTable, GroupRow, LevelRow, PointerRow, flag_names,
};
pub use crate::thermal::{DtThermalZone, DtTrip, Governor as ThermalGovernor, TripType};
pub use crate::time::tick_broadcast::BroadcastDevice;
use schedtwin_types::{Capacity, CpuId, CpuMask, Khz, LineCounts, Ns};

/// The tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTree {
    /// Per CPU.
    pub cpus: Vec<DtCpu>,
    /// Frequency domains (cpufreq policies).
    pub policies: Vec<DtPolicy>,
    /// Idle-state tables; a CPU names its table.
    pub idle_tables: Vec<Vec<DtIdleState>>,
    /// Inputs of the scheduling domains beside the CPUs.
    pub topology: DtTopology,
    /// Costs of kernel paths.
    pub path_costs: PathCosts,
    /// Costs of lines that CPUs take from each other; `None`: nothing.
    pub coherence: Option<DtCoherence>,
    /// Number of threads and futexes to allocate space for at the start.
    pub nr_threads_hint: usize,
}

/// A CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtCpu {
    /// `arch_scale_cpu_capacity`, 1..=1024.
    pub capacity: Capacity,
    /// Index of its frequency domain.
    pub policy: usize,
    /// Index of its idle-state table.
    pub idle_table: usize,
    /// Package: the socket.
    pub package: u16,
    /// The cpu-map's leaf cluster; `None`: there is no cpu-map, or it names no clusters. What a kernel
    /// makes of it is up to `cpu_map_package` and `sched_cluster`.
    pub cluster: Option<u16>,
    /// Last-level cache. powerpc does not ask for it: its domains follow `core` and `l2`.
    pub llc: u16,
    /// NUMA node.
    pub node: u16,
    /// The core of which the CPU is a hardware thread; `None`: it is a core by itself. On a powerpc with big cores:
    /// the small core.
    pub core: Option<u16>,
    /// Level 2 cache, for x86 and powerpc; `None`: the core's own.
    pub l2: Option<u16>,
    /// powerpc: the hemisphere of the chip (`coregroup`); `None`: firmware names none.
    pub hemisphere: Option<u16>,
    /// powerpc: the core whose halves are the small cores; `None`: `core` is a whole one.
    pub big_core: Option<u16>,
    /// `arch_asym_cpu_priority()`, higher is preferred; `None`: lower CPU numbers are.
    pub asym_priority: Option<i32>,
}

/// The architecture whose code makes levels of domains out of the firmware's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Architecture {
    /// arm64, riscv and others: drivers/base/arch_topology.c.
    #[default]
    Arm64,
    /// x86: arch/x86/kernel/smpboot.c.
    X86,
    /// powerpc: arch/powerpc/kernel/smp.c.
    Powerpc,
}

/// Inputs of the scheduling domains beside the CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtTopology {
    /// Which levels there are.
    pub architecture: Architecture,
    /// `node_distance()` from the row's node to the column's, 10..=255; a node's distance to itself is 10. Empty: all
    /// nodes are 20 from each other.
    pub distances: Vec<Vec<u8>>,
    /// `node_reclaim_distance`: tasks are not spread at fork, exec and wakeup to nodes that are farther. 30; 32 on AMD's
    /// Zen.
    pub reclaim_distance: u8,
    /// Some CPUs are preferred to others (`SD_ASYM_PACKING`): x86 with ITMT, powerpc on shared processors.
    pub asym_packing: bool,
}

impl Default for DtTopology {
    fn default() -> DtTopology {
        DtTopology {
            architecture: Architecture::Arm64,
            distances: Vec::new(),
            reclaim_distance: 30,
            asym_packing: false,
        }
    }
}

impl DtTopology {
    /// `LOCAL_DISTANCE`: from a node to itself.
    pub const LOCAL_DISTANCE: u8 = 10;
    /// `REMOTE_DISTANCE`: between nodes of which nothing is known.
    pub const REMOTE_DISTANCE: u8 = 20;

    /// `node_distance()`.
    pub fn distance(&self, from: u16, to: u16) -> u8 {
        if from == to {
            DtTopology::LOCAL_DISTANCE
        } else if self.distances.is_empty() {
            DtTopology::REMOTE_DISTANCE
        } else {
            self.distances[from as usize][to as usize]
        }
    }
}

/// A frequency domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtPolicy {
    /// Its CPUs.
    pub cpus: CpuMask,
    /// Operating points, ascending: frequency and the energy model's power of one CPU, microwatts.
    pub opps: Vec<(Khz, u64)>,
    /// The driver's transition latency.
    pub transition_latency: Ns,
    /// Whether the driver can switch in scheduler context.
    pub fast_switch: bool,
    /// Without fast switch: how long the driver's call takes.
    pub driver_latency: Ns,
    /// Whether the driver sleeps meanwhile, until an interrupt says that it is done; else it spins.
    pub driver_sleeps: bool,
    /// Whether any CPU may change this domain's frequency.
    pub dvfs_possible_from_any_cpu: bool,
}

/// An idle state as cpuidle sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtIdleState {
    /// Worst-case exit latency.
    pub exit_latency: Ns,
    /// Target residency.
    pub target_residency: Ns,
    /// The CPU spins, watching `need_resched` (`CPUIDLE_FLAG_POLLING`); only state 0 may.
    pub polling: bool,
    /// The CPU watches `need_resched` asleep (MWAIT).
    pub monitors: bool,
    /// The CPU's timer stops (`CPUIDLE_FLAG_TIMER_STOP`).
    pub timer_stop: bool,
    /// Switched off from the start (`/sys/devices/system/cpu/cpuN/cpuidle/stateM/disable`).
    pub disabled: bool,
}

impl DtIdleState {
    /// A state that sleeps and is enabled.
    pub const fn new(exit_latency: Ns, target_residency: Ns) -> DtIdleState {
        DtIdleState {
            exit_latency,
            target_residency,
            polling: false,
            monitors: false,
            timer_stop: false,
            disabled: false,
        }
    }
}

/// Costs of kernel paths.
///
/// Costs are work: nanoseconds on a CPU of capacity 1024 at its highest frequency; a slower CPU takes
/// longer. With [`PathCosts::constant_time`] they are nanoseconds everywhere, as on an emulated board.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PathCosts {
    /// Costs are nanoseconds on every CPU at every frequency.
    pub constant_time: bool,
    /// Run-queue clocks advance within a path by what it has cost so far; else they read the entry's time.
    pub running_clocks: bool,
    /// CPUs enter the kernel one at a time, as an emulator runs them: no lock is ever found taken.
    pub one_at_a_time: bool,
    /// The share of what sending a message costs, through a pipe or a socket, that comes after the reader is woken.
    pub after_wakeup_permille: u64,
    /// Entry to and exit from a system call, with its usual small work.
    pub syscall: u64,
    /// `__schedule` that picks without switching, and the switch itself.
    pub schedule: u64,
    /// `context_switch`.
    pub context_switch: u64,
    /// `try_to_wake_up` without CPU selection.
    pub wakeup: u64,
    /// CPU selection: per CPU looked at.
    pub select_per_cpu: u64,
    /// EAS: per performance domain evaluated.
    pub energy_per_domain: u64,
    /// Interrupt entry and exit.
    pub interrupt: u64,
    /// Per expired hrtimer.
    pub hrtimer: u64,
    /// `sched_tick` and its surroundings.
    pub tick: u64,
    /// Sending an inter-processor interrupt.
    pub ipi_send: u64,
    /// SCHED softirq, without the passes.
    pub softirq: u64,
    /// A balance pass: per CPU whose statistics are read.
    pub balance_per_cpu: u64,
    /// Moving one task.
    pub migrate_task: u64,
    /// A round of the idle loop: governor, tick decision, entry.
    pub idle_enter: u64,
    /// The way out of the idle loop.
    pub idle_exit: u64,
    /// A frequency switch in scheduler context.
    pub frequency_switch: u64,
    /// `clone()`, on top of the system call.
    pub fork: u64,
    /// `exit()`.
    pub exit: u64,
    /// Reading or writing a pipe, on top of the system call.
    pub pipe: u64,
    /// The last part of that, and of copying with it, under the pipe's mutex.
    pub pipe_lock: u64,
    /// A message through an `AF_UNIX` socket: each of sending and receiving, likewise.
    pub unix_socket: u64,
    /// The last part of that under the lock of the receiver's queue.
    pub unix_lock: u64,
    /// A segment of TCP over loopback: each of sending, receiving in softirq, and reading, likewise.
    pub tcp: u64,
    /// A datagram of UDP over loopback, likewise.
    pub udp: u64,
    /// `poll()`, likewise.
    pub poll: u64,
    /// Copying 1024 bytes from or to user memory.
    pub copy_per_kib: u64,
    /// 1,000 instructions of the fair class beyond those of CFS without groups.
    pub kilo_instruction: u64,
}

/// Costs of cache lines that CPUs take from each other, see `coherence.rs`. They are times: no clock of a CPU
/// changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtCoherence {
    /// Time to fetch a line, by the CPU that fetches it, then by the one that wrote it last.
    pub line_ns: Vec<Vec<Ns>>,
    /// The share of that time for which a path waits, since it fetches several lines at once.
    pub overlap_permille: u64,
    /// The same share for each line of a payload.
    pub copy_permille: u64,
    /// Lines that are fetched one after the other when a lock passes to a CPU that spins for it.
    pub handover_lines: u64,
    /// Whether the locks of run queues are waited for.
    pub rq_locks: bool,
    /// Lines of each object.
    pub lines: LineCounts,
}

impl DtCpu {
    /// A CPU whose package, node and last-level cache are the first ones, without clusters and threads.
    pub const fn new(capacity: Capacity, policy: usize) -> DtCpu {
        DtCpu {
            capacity,
            policy,
            idle_table: 0,
            package: 0,
            cluster: None,
            llc: 0,
            node: 0,
            core: None,
            l2: None,
            hemisphere: None,
            big_core: None,
            asym_priority: None,
        }
    }
}

impl DtPolicy {
    /// A domain that any CPU switches at once.
    pub fn new(cpus: CpuMask, opps: &[(Khz, u64)]) -> DtPolicy {
        DtPolicy {
            cpus,
            opps: opps.to_vec(),
            transition_latency: 0,
            fast_switch: true,
            driver_latency: 0,
            driver_sleeps: false,
            dvfs_possible_from_any_cpu: true,
        }
    }
}

/// Some CPUs that share a clock, for [`DeviceTree::of_domains`]: how many, their capacity, and the operating
/// points as [`DtPolicy::opps`] has them.
pub type DtDomain<'a> = (u16, Capacity, &'a [(Khz, u64)]);

impl DeviceTree {
    /// A small machine as tests and examples want it: these frequency domains in order, one package with one
    /// cache, one idle state that takes a microsecond, and kernel paths that cost nothing. What else a
    /// machine needs is set afterwards.
    ///
    /// ```
    /// use schedtwin_kernel::device_tree::DeviceTree;
    /// use schedtwin_types::{CpuId, CpuMask};
    /// let opps = [(1_000_000, 100_000)];
    /// let machine = DeviceTree::of_domains(&[(4, 383, &opps), (2, 1024, &opps)]);
    /// assert_eq!(machine.policies[1].cpus, CpuMask::from_cpus([CpuId(4), CpuId(5)]));
    /// assert_eq!((machine.cpus[5].capacity, machine.cpus[5].policy), (1024, 1));
    /// ```
    pub fn of_domains(domains: &[DtDomain]) -> DeviceTree {
        let (mut cpus, mut policies) = (Vec::new(), Vec::new());
        for (policy, &(count, capacity, opps)) in domains.iter().enumerate() {
            let first = cpus.len() as u16;
            cpus.extend((0..count).map(|_| DtCpu::new(capacity, policy)));
            let mask = CpuMask::from_cpus((first..first + count).map(CpuId));
            policies.push(DtPolicy::new(mask, opps));
        }
        DeviceTree {
            cpus,
            policies,
            idle_tables: vec![vec![DtIdleState::new(1_000, 1_000)]],
            topology: DtTopology::default(),
            path_costs: PathCosts::default(),
            coherence: None,
            nr_threads_hint: 8,
        }
    }

    /// Whether every kernel can build scheduling domains for this machine.
    pub fn check(&self) -> Result<(), TopologyError> {
        Topology::check(self)
    }

    /// The scheduling domains that a kernel builds for this machine. The tables have passed [`DeviceTree::check`].
    pub fn domains(&self, config: &Config) -> DomainTable {
        DomainTable::of(self, &Topology::build(self, config))
    }

    /// All CPUs.
    pub fn all_cpus(&self) -> CpuMask {
        CpuMask::first(self.cpus.len())
    }

    /// The idle states of a CPU.
    pub fn idle_states(&self, cpu: CpuId) -> &[DtIdleState] {
        &self.idle_tables[self.cpus[cpu.index()].idle_table]
    }
}
