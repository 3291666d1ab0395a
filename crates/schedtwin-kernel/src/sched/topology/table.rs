// SPDX-License-Identifier: GPL-2.0-or-later
//! The domains of a machine as plain data, to be shown and compared: what `/sys/kernel/debug/sched/domains` and the
//! kernel's log (`sched_verbose`) tell of them.
//!
//! ```
//! # use schedtwin_kernel::config::Config;
//! # use schedtwin_kernel::device_tree::DeviceTree;
//! # let mut juno = DeviceTree::of_domains(&[(4, 383, &[]), (2, 1024, &[])]);
//! # juno.cpus.iter_mut().for_each(|cpu| cpu.llc = cpu.policy as u16);
//! let table = juno.domains(&Config::linux_6_12());
//! let names: Vec<_> = table.levels.iter().map(|level| level.name).collect();
//! assert_eq!(names, ["MC", "PKG"]);
//! let big = &table.levels[0].domains[1];
//! assert_eq!((big.span.to_string(), big.groups.len()), ("4-5".to_string(), 2));
//! ```

use super::*;

/// All domains of a machine, level by level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainTable {
    /// The levels of which some CPU has a domain, the smallest domains first.
    pub levels: Vec<LevelRow>,
    /// The CPUs by what their pointers point to, ascending by the first of them.
    pub pointers: Vec<PointerRow>,
}

/// A level of domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRow {
    /// `SMT`, `CLS`, `CACHE`, `MC`, `PKG` or `DIE`, `NODE`, `NUMA`; there may be several of the last.
    pub name: &'static str,
    /// Its domains, ascending by the first of their CPUs.
    pub domains: Vec<DomainRow>,
}

/// A domain, as all of `cpus` have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRow {
    /// The CPUs that have this domain. Where levels overlap these are fewer than `span`.
    pub cpus: CpuMask,
    /// Its CPUs.
    pub span: CpuMask,
    /// `SD_*`; [`flag_names`] says which.
    pub flags: u32,
    /// A group busier than this percentage of the other is imbalanced (117: 17 % busier).
    pub imbalance_pct: u32,
    /// Failed passes after which cache-hot tasks are moved, too.
    pub cache_nice_tries: u32,
    /// Factor of the interval while the CPU is busy.
    pub busy_factor: u32,
    /// Shortest interval between passes, ms.
    pub min_interval_ms: u64,
    /// Longest one, ms.
    pub max_interval_ms: u64,
    /// Number of tasks that this node may have more than another one.
    pub imb_numa_nr: u32,
    /// Its groups, ascending by their first CPU.
    pub groups: Vec<GroupRow>,
}

/// A group of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// Its CPUs.
    pub span: CpuMask,
    /// Flags of the domain that it stands for; 0 for a single CPU.
    pub flags: u32,
    /// The sum of its CPUs' capacities: what it can do while no interrupt and no RT task takes from it.
    pub capacity: u64,
    /// Number of its cores.
    pub cores: u32,
    /// The CPUs that may balance for it.
    pub balance_mask: CpuMask,
}

/// Where the pointers of some CPUs lead. A pointer to a domain is the name of its level; `None`: the CPU has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerRow {
    /// The CPUs with these pointers.
    pub cpus: CpuMask,
    /// `sd_llc`: the highest domain that shares a cache.
    pub sd_llc: Option<&'static str>,
    /// `sd_llc_size`: how many CPUs it has; 1 without.
    pub sd_llc_size: u32,
    /// `sd_llc_id`: its first CPU. Equal numbers share a cache.
    pub sd_llc_id: CpuId,
    /// `sd_share_id`: the first CPU of the cluster, or where there is none, of the cache.
    pub sd_share_id: CpuId,
    /// `sd_asym_cpucapacity`: the lowest domain with all capacities of the machine.
    pub sd_asym_cpucapacity: Option<&'static str>,
    /// `sd_asym_packing`: the highest domain that packs work.
    pub sd_asym_packing: Option<&'static str>,
    /// `sd_numa`: the lowest NUMA domain.
    pub sd_numa: Option<&'static str>,
}

/// The names of the flags that are set, ascending.
pub fn flag_names(flags: u32) -> Vec<&'static str> {
    SD_FLAG_NAMES.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name).collect()
}

/// From the smallest domains to the largest.
const LEVELS: [&str; 8] = ["SMT", "CLS", "CACHE", "MC", "DIE", "PKG", "NODE", "NUMA"];

impl DomainTable {
    pub(crate) fn of(dt: &DeviceTree, topology: &Topology) -> DomainTable {
        let mut levels: Vec<((usize, usize), LevelRow)> = Vec::new();
        let mut pointers: Vec<PointerRow> = Vec::new();
        for cpu in dt.all_cpus().iter() {
            let mut numa = 0;
            for sd in topology.domains_of(cpu) {
                let name = topology[sd].name;
                let place = LEVELS.iter().position(|known| *known == name);
                // Levels of one name are told apart by how many of them a CPU has below.
                let key = (place.expect("a level has a known name"), numa);
                numa += (name == "NUMA") as usize;
                let row = domain_row(dt, topology, sd, cpu);
                let at = match levels.binary_search_by_key(&key, |(key, _)| *key) {
                    Ok(at) => at,
                    Err(at) => {
                        levels.insert(at, (key, LevelRow { name, domains: Vec::new() }));
                        at
                    }
                };
                let rows = &mut levels[at].1.domains;
                match rows
                    .iter_mut()
                    .find(|known| DomainRow { cpus: known.cpus, ..row.clone() } == **known)
                {
                    Some(known) => known.cpus.insert(cpu),
                    None => rows.push(row),
                }
            }
            let row = pointer_row(topology, cpu);
            match pointers
                .iter_mut()
                .find(|known| PointerRow { cpus: known.cpus, ..row.clone() } == **known)
            {
                Some(known) => known.cpus.insert(cpu),
                None => pointers.push(row),
            }
        }
        DomainTable { levels: levels.into_iter().map(|(_, level)| level).collect(), pointers }
    }
}

fn domain_row(dt: &DeviceTree, topology: &Topology, sd: DomainId, cpu: CpuId) -> DomainRow {
    let domain = &topology[sd];
    let group = |sg: GroupId| {
        let group = &topology[sg];
        GroupRow {
            span: group.span,
            flags: group.flags,
            capacity: group.span.iter().map(|c| u64::from(dt.cpus[c.index()].capacity)).sum(),
            cores: group.cores,
            balance_mask: group.balance_mask,
        }
    };
    let mut groups: Vec<GroupRow> = topology.groups_of(sd).map(group).collect();
    groups.sort_by_key(|group| group.span.lowest());
    DomainRow {
        cpus: CpuMask::of(cpu),
        span: domain.span,
        flags: domain.flags,
        imbalance_pct: domain.imbalance_pct,
        cache_nice_tries: domain.cache_nice_tries,
        busy_factor: domain.busy_factor,
        min_interval_ms: domain.min_interval,
        max_interval_ms: domain.max_interval,
        imb_numa_nr: domain.imb_numa_nr,
        groups,
    }
}

fn pointer_row(topology: &Topology, cpu: CpuId) -> PointerRow {
    let name = |sd: &[Option<DomainId>]| sd[cpu.index()].map(|sd| topology[sd].name);
    PointerRow {
        cpus: CpuMask::of(cpu),
        sd_llc: name(&topology.sd_llc),
        sd_llc_size: topology.sd_llc_size[cpu.index()],
        sd_llc_id: topology.sd_llc_id[cpu.index()],
        sd_share_id: topology.sd_share_id[cpu.index()],
        sd_asym_cpucapacity: name(&topology.sd_asym_cpucapacity),
        sd_asym_packing: name(&topology.sd_asym_packing),
        sd_numa: name(&topology.sd_numa),
    }
}
