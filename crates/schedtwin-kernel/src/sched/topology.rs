// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling domains: how far apart CPUs are, as the scheduler sees it.
//!
//! Every CPU has its own stack of **domains**, from its nearest neighbours to the whole machine. A
//! domain is cut into **groups**: the CPUs that one domain of the level below spans, or single CPUs
//! at the lowest level. Load balancing compares the groups of a domain; waking looks for a CPU inside
//! the highest domain that shares a cache (`sd_llc`).
//!
//! ```text
//! six CPUs, two clusters, each with its own cache (Arm Juno):
//!
//!   PKG  0-5        groups {0-3} {4-5}         flags 1077: asymmetric capacities, all in sight
//!   MC   0-3 | 4-5  groups {0}{1}{2}{3} | ..   flags  217: shares the cache
//! ```
//!
//! A domain belongs to one CPU: its intervals and failure counts are that CPU's. Groups, their
//! capacities and what is known about a cache are shared by all CPUs that have them. The groups of a
//! domain form a ring; [`SchedDomain::groups`] is the one that contains the domain's own CPU.
//!
//! ```
//! # use schedtwin_kernel::config::Config;
//! # use schedtwin_kernel::device_tree::DeviceTree;
//! # use schedtwin_kernel::sched::topology::{Topology, SD_SHARE_LLC};
//! # use schedtwin_types::CpuId;
//! # let mut juno = DeviceTree::of_domains(&[(4, 383, &[]), (2, 1024, &[])]);
//! # juno.cpus.iter_mut().for_each(|cpu| cpu.llc = cpu.policy as u16);
//! let topology = Topology::build(&juno, &Config::linux_6_12());
//! let mc = topology.base[4].unwrap();
//! assert_eq!((topology[mc].name, topology[mc].flags), ("MC", 0x217));
//! assert!(topology[mc].flags & SD_SHARE_LLC != 0);
//! let pkg = topology[mc].parent.unwrap();
//! assert_eq!((topology[pkg].name, topology[pkg].span.to_string()), ("PKG", "0-5".to_string()));
//! assert!(!topology.cpus_share_cache(CpuId(0), CpuId(4)));
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/topology.c, sd_flags.h, and what `levels.rs` names.
//! Differences:
//! - One partition of all CPUs, built once: no cpusets, isolated CPUs, hotplug or changing capacities.
//! - Masks that do not nest are refused, where Linux widens the upper domain and goes on.
//! - `relax_domain_level` is not modelled.
//! - `level` counts the domains that are left, from 0; Linux counts those it removed, too.

mod build;
mod levels;
#[cfg(any(test, feature = "conformance"))]
pub(crate) mod parts;
mod shared;
pub mod table;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::device_tree::DeviceTree;
use schedtwin_types::{CpuId, CpuMask, Ns};
use std::ops::{Index, IndexMut};

/// Newidle balancing looks at this domain.
pub const SD_BALANCE_NEWIDLE: u32 = 0x1;
/// exec balancing looks at this domain.
pub const SD_BALANCE_EXEC: u32 = 0x2;
/// fork balancing looks at this domain.
pub const SD_BALANCE_FORK: u32 = 0x4;
/// Every wakeup takes the slow path in this domain. No default domain has it.
pub const SD_BALANCE_WAKE: u32 = 0x8;
/// A waker may pull the task to itself within this domain.
pub const SD_WAKE_AFFINE: u32 = 0x10;
/// CPUs of this domain differ in capacity.
pub const SD_ASYM_CPUCAPACITY: u32 = 0x20;
/// And every capacity of the machine occurs in it.
pub const SD_ASYM_CPUCAPACITY_FULL: u32 = 0x40;
/// CPUs are threads of a core.
pub const SD_SHARE_CPUCAPACITY: u32 = 0x80;
/// CPUs of a cluster inside the last-level cache.
pub const SD_CLUSTER: u32 = 0x100;
/// CPUs share the last-level cache.
pub const SD_SHARE_LLC: u32 = 0x200;
/// One balance pass at a time in the machine. Entries are atomic here, so it never has to wait.
pub const SD_SERIALIZE: u32 = 0x400;
/// Work is packed onto the CPUs with the highest priority.
pub const SD_ASYM_PACKING: u32 = 0x800;
/// Prefer to place tasks in a sibling domain.
pub const SD_PREFER_SIBLING: u32 = 0x1000;
/// The level's masks may overlap (NUMA).
pub const SD_OVERLAP: u32 = 0x2000;
/// The domain spans NUMA nodes.
pub const SD_NUMA: u32 = 0x4000;

/// Every flag with its name, ascending (`sd_flag_debug`).
pub const SD_FLAG_NAMES: [(u32, &str); 15] = [
    (SD_BALANCE_NEWIDLE, "BALANCE_NEWIDLE"),
    (SD_BALANCE_EXEC, "BALANCE_EXEC"),
    (SD_BALANCE_FORK, "BALANCE_FORK"),
    (SD_BALANCE_WAKE, "BALANCE_WAKE"),
    (SD_WAKE_AFFINE, "WAKE_AFFINE"),
    (SD_ASYM_CPUCAPACITY, "ASYM_CPUCAPACITY"),
    (SD_ASYM_CPUCAPACITY_FULL, "ASYM_CPUCAPACITY_FULL"),
    (SD_SHARE_CPUCAPACITY, "SHARE_CPUCAPACITY"),
    (SD_CLUSTER, "CLUSTER"),
    (SD_SHARE_LLC, "SHARE_LLC"),
    (SD_SERIALIZE, "SERIALIZE"),
    (SD_ASYM_PACKING, "ASYM_PACKING"),
    (SD_PREFER_SIBLING, "PREFER_SIBLING"),
    (SD_OVERLAP, "OVERLAP"),
    (SD_NUMA, "NUMA"),
];

/// Flags that mean nothing in a domain with one group.
const SD_DEGENERATE_GROUPS_MASK: u32 = 0x7fff & !SD_WAKE_AFFINE;

/// A scheduling domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DomainId(pub u32);

/// A scheduling group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupId(pub u32);

/// `struct sched_domain`. Times called "jiffies" count ticks.
#[derive(Clone, Debug)]
pub struct SchedDomain {
    /// Its CPUs.
    pub span: CpuMask,
    /// `SD_*`.
    pub flags: u32,
    /// Number of CPUs in `span`.
    pub span_weight: u32,
    /// The next larger domain of the same CPU.
    pub parent: Option<DomainId>,
    /// The next smaller domain of the same CPU.
    pub child: Option<DomainId>,
    /// The group that contains the domain's CPU; the ring of all groups starts here.
    pub groups: GroupId,
    /// A group busier than this percentage of the other is imbalanced (117: 17 % busier).
    pub imbalance_pct: u32,
    /// Failed passes after which cache-hot tasks are moved, too.
    pub cache_nice_tries: u32,
    /// Factor of the interval while the CPU is busy.
    pub busy_factor: u32,
    /// Shortest interval between passes, ms.
    pub min_interval: u64,
    /// Interval up to which it is doubled, ms.
    pub max_interval: u64,
    /// Current interval, ms.
    pub balance_interval: u64,
    /// Jiffy of the last pass.
    pub last_balance: u64,
    /// Passes that found an imbalance and moved nothing, in a row.
    pub nr_balance_failed: u32,
    /// Newidle passes counted (halved now and then).
    pub newidle_call: u32,
    /// Number of them that pulled a task, weighted.
    pub newidle_success: u32,
    /// Successes per 1024.
    pub newidle_ratio: u32,
    /// When that was last computed, if time counts.
    pub newidle_stamp: Ns,
    /// Longest newidle pass of late.
    pub max_newidle_lb_cost: Ns,
    /// Jiffy when that was last taken or decayed.
    pub last_decay_max_lb_cost: u64,
    /// SIS_PROP: average time of a wakeup's scan of this domain.
    pub avg_scan_cost: Ns,
    /// Index into [`Topology::shared`], where the domain has such an object (`shared.rs` says which have one).
    pub shared: Option<usize>,
    /// The CPU is not counted in `nr_busy_cpus`.
    pub nohz_idle: bool,
    /// Number of tasks that this node may have more than another one, NUMA.
    pub imb_numa_nr: u32,
    /// 0 = the lowest domain of the CPU.
    pub level: u8,
    /// Name of the level: `SMT`, `CLS`, `CACHE`, `MC`, `PKG` or `DIE`, `NODE`, `NUMA`.
    pub name: &'static str,
}

/// `struct sched_group`.
#[derive(Clone, Debug)]
pub struct SchedGroup {
    /// Its CPUs.
    pub span: CpuMask,
    /// The next group of the ring.
    pub next: GroupId,
    /// The lowest CPU of `span`.
    pub first_cpu: CpuId,
    /// Number of CPUs.
    pub group_weight: u32,
    /// Number of cores: without SMT the same.
    pub cores: u32,
    /// The CPU with the highest priority, of equals the lowest. Means something where the domain has
    /// `SD_ASYM_PACKING`.
    pub asym_prefer_cpu: CpuId,
    /// Flags of the domain below that the group stands for; 0 for single CPUs.
    pub flags: u32,
    /// Index into [`Topology::capacities`].
    pub sgc: usize,
    /// CPUs that may balance on behalf of the group; the first one is `group_balance_cpu`.
    pub balance_mask: CpuMask,
}

/// `struct sched_group_capacity`.
#[derive(Clone, Debug)]
pub struct SchedGroupCapacity {
    /// Sum of the CPUs' capacities left for fair tasks.
    pub capacity: u64,
    /// The smallest of them.
    pub min_capacity: u64,
    /// The largest of them.
    pub max_capacity: u64,
    /// Jiffy from which a newidle pass refreshes these.
    pub next_update: u64,
    /// Affinity kept the level below from balancing.
    pub imbalance: bool,
}

/// `struct sched_domain_shared`: what CPUs that share a cache, or a domain with all capacities, know in common.
#[derive(Clone, Debug)]
pub struct SchedDomainShared {
    /// CPUs whose tick runs (`nohz.rs` keeps it).
    pub nr_busy_cpus: u32,
    /// Some core is idle as a whole (SMT only).
    pub has_idle_cores: bool,
    /// Which core is idle as a whole (SMT, and a patch that keeps it).
    pub idle_core: IdleCore,
    /// Number of CPUs that a wakeup looks at when it searches an idle one.
    pub nr_idle_scan: u32,
    /// Utilisation of the CPUs of a last-level cache, as the last pass saw it (cache-aware balancing).
    pub util_avg: u64,
    /// Their capacity likewise.
    pub capacity: u64,
}

/// The knowledge of a cache about its cores, if it remembers more than whether one is idle
/// (`sd_llc_shared->idle_core`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleCore {
    /// The one of which this is the first thread is idle.
    Core(CpuId),
    /// The one that was known has become busy; there may be others.
    Unknown,
    /// None is idle.
    None,
}

/// All domains, groups, and each CPU's way into them.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Domains by [`DomainId`].
    pub domains: Vec<SchedDomain>,
    /// Groups by [`GroupId`].
    pub groups: Vec<SchedGroup>,
    /// Capacities of groups.
    pub capacities: Vec<SchedGroupCapacity>,
    /// The state that the CPUs of a domain share.
    pub shared: Vec<SchedDomainShared>,
    /// Per CPU: its lowest domain (`rq->sd`).
    pub base: Vec<Option<DomainId>>,
    /// Per CPU: the highest domain that shares a cache.
    pub sd_llc: Vec<Option<DomainId>>,
    /// Per CPU: how many CPUs that has; 1 without.
    pub sd_llc_size: Vec<u32>,
    /// Per CPU: its first CPU; the CPU itself without.
    pub sd_llc_id: Vec<CpuId>,
    /// Per CPU: what the CPUs of that domain share.
    pub sd_llc_shared: Vec<Option<usize>>,
    /// Per CPU: the object that knows of idle cores.
    pub sd_balance_shared: Vec<Option<usize>>,
    /// Per CPU: first CPU of its cluster, else its `sd_llc_id`.
    pub sd_share_id: Vec<CpuId>,
    /// Per CPU: the lowest domain that contains every capacity of the machine.
    pub sd_asym_cpucapacity: Vec<Option<DomainId>>,
    /// Per CPU: the lowest NUMA domain.
    pub sd_numa: Vec<Option<DomainId>>,
    /// Per CPU: the highest domain that packs work.
    pub sd_asym_packing: Vec<Option<DomainId>>,
    /// Per CPU: the hardware threads of its core, itself included (`cpu_smt_mask`).
    pub smt_mask: Vec<CpuMask>,
    /// Per CPU: `arch_asym_cpu_priority()`.
    pub asym_priority: Vec<i32>,
    /// `sched_asym_cpucap_active()`: capacities differ somewhere.
    pub asym_cpucapacity: bool,
    /// `sched_cluster_active`: some CPU has a cluster domain.
    pub cluster: bool,
    /// `sched_smt_active()`: some core has two threads.
    pub smt: bool,
}

/// Why no domains can be built for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// There is no CPU.
    NoCpu,
    /// Two CPUs see masks that intersect without being equal.
    BrokenLevel {
        /// The level.
        level: &'static str,
        /// One CPU.
        a: CpuId,
        /// Another one.
        b: CpuId,
    },
    /// A CPU's mask at one level is not inside its mask at the next.
    NotNested {
        /// The lower level.
        lower: &'static str,
        /// The upper one.
        upper: &'static str,
        /// The CPU of the masks.
        cpu: CpuId,
    },
    /// The table of distances is not square, or it has fewer nodes than the machine.
    DistanceTable {
        /// Number of nodes that there are at least.
        nodes: usize,
    },
    /// A node that is not 10 from itself, or another that is no farther.
    Distance {
        /// The row.
        from: usize,
        /// The column.
        to: usize,
        /// The distance in the table.
        distance: u8,
    },
    /// A capacity of 0, or above 1024.
    Capacity {
        /// The CPU.
        cpu: CpuId,
    },
}

impl std::fmt::Display for TopologyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TopologyError::NoCpu => write!(f, "the machine has no CPU"),
            TopologyError::BrokenLevel { level, a, b } => write!(
                f,
                "CPUs {a} and {b} see {level} masks that overlap without being equal: core, package, \
                 cluster, llc and node have to nest"
            ),
            TopologyError::NotNested { lower, upper, cpu } => write!(
                f,
                "CPU {cpu}: its {lower} mask is not inside its {upper} mask: core, package, cluster, \
                 llc and node have to nest"
            ),
            TopologyError::DistanceTable { nodes } => write!(
                f,
                "the table of node distances is not square, or has fewer rows than there are nodes ({nodes})"
            ),
            TopologyError::Distance { from, to, distance } => write!(
                f,
                "distance {distance} from node {from} to node {to}: a node is 10 from itself, and \
                 others are farther"
            ),
            TopologyError::Capacity { cpu } => write!(f, "CPU {cpu}: capacity is not in 1..=1024"),
        }
    }
}

impl std::error::Error for TopologyError {}

impl Index<DomainId> for Topology {
    type Output = SchedDomain;
    #[inline(always)]
    fn index(&self, id: DomainId) -> &SchedDomain {
        &self.domains[id.0 as usize]
    }
}

impl IndexMut<DomainId> for Topology {
    #[inline(always)]
    fn index_mut(&mut self, id: DomainId) -> &mut SchedDomain {
        &mut self.domains[id.0 as usize]
    }
}

impl Index<GroupId> for Topology {
    type Output = SchedGroup;
    #[inline(always)]
    fn index(&self, id: GroupId) -> &SchedGroup {
        &self.groups[id.0 as usize]
    }
}

impl IndexMut<GroupId> for Topology {
    #[inline(always)]
    fn index_mut(&mut self, id: GroupId) -> &mut SchedGroup {
        &mut self.groups[id.0 as usize]
    }
}

impl Topology {
    /// Builds the domains. The device tree has passed [`Topology::check`].
    pub fn build(dt: &DeviceTree, config: &Config) -> Topology {
        match Topology::try_build(dt, config) {
            Ok(topology) => topology,
            Err(error) => panic!("the device tree was not checked: {error}"),
        }
    }

    /// Whether every kernel can build domains for this machine.
    pub fn check(dt: &DeviceTree) -> Result<(), TopologyError> {
        levels::check(dt)
    }

    /// Builds the domains, or says why not.
    pub fn try_build(dt: &DeviceTree, config: &Config) -> Result<Topology, TopologyError> {
        levels::check(dt)?;
        Ok(build::build_sched_domains(dt, config))
    }

    /// The domains of a CPU, bottom-up (`for_each_domain`).
    #[inline]
    pub fn domains_of(&self, cpu: CpuId) -> impl Iterator<Item = DomainId> + '_ {
        std::iter::successors(self.base[cpu.index()], move |sd| self[*sd].parent)
    }

    /// The groups of a domain in ring order, its own CPU's first.
    #[inline]
    pub fn groups_of(&self, sd: DomainId) -> impl Iterator<Item = GroupId> + '_ {
        let first = self[sd].groups;
        std::iter::successors(Some(first), move |sg| {
            let next = self[*sg].next;
            (next != first).then_some(next)
        })
    }

    /// The lowest domain of a CPU that has `flag` (`lowest_flag_domain`).
    pub fn lowest_flag_domain(&self, cpu: CpuId, flag: u32) -> Option<DomainId> {
        self.domains_of(cpu).find(|sd| self[*sd].flags & flag != 0)
    }

    /// The highest domain of a CPU up to which all have `flag` (`highest_flag_domain`).
    pub fn highest_flag_domain(&self, cpu: CpuId, flag: u32) -> Option<DomainId> {
        self.domains_of(cpu).take_while(|sd| self[*sd].flags & flag != 0).last()
    }

    /// `sched_asym_prefer()`: whether `a` has the higher priority.
    #[inline]
    pub fn sched_asym_prefer(&self, a: CpuId, b: CpuId) -> bool {
        self.asym_priority[a.index()] > self.asym_priority[b.index()]
    }

    /// `cpus_share_cache()`.
    #[inline(always)]
    pub fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.sd_llc_id[a.index()] == self.sd_llc_id[b.index()]
    }

    /// `cpus_share_resources()`: the same cluster, or where there are none, the same cache.
    #[inline(always)]
    pub fn cpus_share_resources(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.sd_share_id[a.index()] == self.sd_share_id[b.index()]
    }
}
