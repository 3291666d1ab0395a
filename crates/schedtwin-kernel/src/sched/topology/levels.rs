// SPDX-License-Identifier: GPL-2.0-or-later
//! From what firmware says to the levels of domains: which CPUs see each other as near.
//!
//! The levels, bottom-up, each a mask per CPU. What an architecture's own code knows decides which there are:
//!
//! | architecture | levels (their flags) |
//! |---|---|
//! | arm64 and others | SMT (threads, cache) · CLS the cluster (cluster, cache) · MC the core group (cache) · PKG the node |
//! | x86 | SMT · CLS who shares an L2 · MC who shares the last-level cache, each with ASYM_PACKING above SMT · PKG the node, unless a package holds several |
//! | powerpc | SMT the small core · CACHE who shares an L2 (cache), if that is more than a core · MC the hemisphere, if there are any · PKG the node |
//! | all | NODE the node · for each further distance NUMA: all nodes that are no farther (NUMA, overlapping) |
//!
//! | term | is |
//! |---|---|
//! | cpu-map | the tree of sockets, clusters and cores in a device tree |
//! | leaf cluster | the innermost clusters, which hold cores |
//! | package | what the cpu-map's sockets are, or in older kernels its leaf clusters |
//! | core group | the smallest of node, package and last-level cache: arm64's level MC |
//! | small core | half of POWER's core of eight threads: two L2 caches, and to the kernel two cores |
//! | big core | that core. Up to 5.10, and with the patch wide-llc, the kernel takes its caches for one: level CACHE |
//!
//! Up to 5.19 a phone with one last-level cache and three leaf clusters has three packages, and so three
//! MC domains that its hardware knows nothing of. From 6.0 on it has one, and its leaf clusters become the
//! level CLS, if that is compiled in:
//!
//! ```text
//! CPUs 0-3, 4-5, 6-7 in leaf clusters, one cache for all
//!
//!   up to 5.19   MC 0-3 | 4-5 | 6-7      PKG 0-7
//!   from 6.0     MC 0-7
//!   and CLS      CLS 0-3 | 4-5 | 6-7     MC 0-7
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 drivers/base/arch_topology.c `parse_cluster`, `update_siblings_masks`,
//! `cpu_coregroup_mask`, `cpu_clustergroup_mask`, for 5.19 the patches of 2022 that ended it; kernel/sched/topology.c
//! `sched_init_numa`; arch/x86/kernel/smpboot.c and arch/powerpc/kernel/smp.c by the behaviour notes (10 §1).
//! Differences:
//! - Where a cluster has no number, arm64's cluster mask is smaller than a core with threads. Linux complains and
//!   widens the domain; here the mask is the core at once.
//! - x86's ASYM_PACKING is on CLS, MC and PKG in all releases; POWER7's on SMT is not modelled.

use super::*;
use crate::config::{CpuMapPackage, PackageDomain, PowerpcL2};
use crate::device_tree::{Architecture, DtCpu, DtTopology};
use std::collections::{BTreeMap, BTreeSet};

/// `struct sched_domain_topology_level`.
pub(super) struct Level {
    pub name: &'static str,
    pub flags: u32,
    pub mask: Vec<CpuMask>,
    pub overlap: bool,
    /// Of a NUMA level: how far its nodes are at most.
    pub distance: u8,
}

/// `cpu_topology[]`: per CPU the masks that firmware's tables give, itself included in each.
struct Siblings {
    /// The same node.
    node: Vec<CpuMask>,
    /// The same socket.
    package: Vec<CpuMask>,
    /// The same leaf cluster of a socket; all CPUs of it that are in none are one.
    leaf: Vec<CpuMask>,
    /// The same leaf cluster; alone where a CPU is in none.
    cluster: Vec<CpuMask>,
    /// The same last-level cache.
    llc: Vec<CpuMask>,
    /// The same last-level cache and node.
    llc_of_node: Vec<CpuMask>,
    /// The same level 2 cache; alone where it is not known.
    l2: Vec<CpuMask>,
    /// The same hemisphere; the node where a CPU is in none.
    hemisphere: Vec<CpuMask>,
    /// The same big core; alone where a CPU is in none.
    big_core: Vec<CpuMask>,
    /// The same core.
    smt: Vec<CpuMask>,
}

impl Siblings {
    fn new(dt: &DeviceTree) -> Siblings {
        let node = siblings(dt, |cpu| Some(cpu.node));
        let mut hemisphere = siblings(dt, |cpu| cpu.hemisphere);
        for (cpu, told) in dt.cpus.iter().enumerate() {
            if told.hemisphere.is_none() {
                hemisphere[cpu] = node[cpu];
            }
        }
        Siblings {
            package: siblings(dt, |cpu| Some(cpu.package)),
            leaf: siblings(dt, |cpu| Some((cpu.package, cpu.cluster))),
            cluster: siblings(dt, |cpu| cpu.cluster.map(|cluster| (cpu.package, cluster))),
            llc: siblings(dt, |cpu| Some(cpu.llc)),
            llc_of_node: siblings(dt, |cpu| Some((cpu.llc, cpu.node))),
            l2: siblings(dt, |cpu| cpu.l2),
            big_core: siblings(dt, |cpu| cpu.big_core),
            smt: smt_masks(dt),
            node,
            hemisphere,
        }
    }
}

/// Per CPU: all CPUs with the same key; the CPU alone where it has none.
fn siblings<K: Ord>(dt: &DeviceTree, key_of: impl Fn(&DtCpu) -> Option<K>) -> Vec<CpuMask> {
    let mut of_key: BTreeMap<K, CpuMask> = BTreeMap::new();
    for (cpu, told) in dt.all_cpus().iter().zip(&dt.cpus) {
        if let Some(key) = key_of(told) {
            of_key.entry(key).or_insert(CpuMask::EMPTY).insert(cpu);
        }
    }
    let mask_of = |(cpu, told)| key_of(told).map_or(CpuMask::of(cpu), |key| of_key[&key]);
    dt.all_cpus().iter().zip(&dt.cpus).map(mask_of).collect()
}

/// The CPU topology that the architecture derives from the firmware's tables.
struct CpuTopology<'a> {
    dt: &'a DeviceTree,
    siblings: &'a Siblings,
    reading: Reading,
    /// Name of the level of a node's CPUs.
    node_level: &'static str,
}

/// The choices in which kernels differ.
#[derive(Clone, Copy)]
struct Reading {
    package: CpuMapPackage,
    sched_cluster: bool,
    powerpc_l2: PowerpcL2,
}

impl CpuTopology<'_> {
    fn smt(&self, cpu: CpuId) -> CpuMask {
        self.siblings.smt[cpu.index()]
    }

    fn node(&self, cpu: CpuId) -> CpuMask {
        self.siblings.node[cpu.index()]
    }

    /// The masks that the two readings of a cpu-map give: packages, last-level caches and clusters, each
    /// as far as it is known.
    fn core_llc_cluster(&self, cpu: CpuId) -> (CpuMask, Option<CpuMask>, CpuMask) {
        let of = self.siblings;
        let at = cpu.index();
        let in_leaf = self.dt.cpus[at].cluster.is_some();
        match self.reading.package {
            // Caches were known from ACPI only, which has no cpu-map; and clusters had no number.
            CpuMapPackage::LeafCluster => {
                (of.leaf[at], (!in_leaf).then_some(of.llc[at]), of.smt[at])
            }
            CpuMapPackage::Socket => {
                (of.package[at], Some(of.llc[at]), of.cluster[at].or(&of.smt[at]))
            }
        }
    }

    /// `cpu_coregroup_mask()` of arm64: the smallest of node, package, last-level cache and cluster, as far
    /// as each is inside the one before.
    fn coregroup(&self, cpu: CpuId) -> CpuMask {
        let (core, llc, cluster) = self.core_llc_cluster(cpu);
        let mut mask = self.node(cpu);
        for smaller in [Some(core), llc].into_iter().flatten() {
            if smaller.is_subset(&mask) {
                mask = smaller;
            }
        }
        if self.reading.sched_cluster && mask.is_subset(&cluster) { cluster } else { mask }
    }

    /// `cpu_clustergroup_mask()` of arm64: the cluster, unless it is no less than the core group.
    fn clustergroup(&self, cpu: CpuId) -> CpuMask {
        let (_, _, cluster) = self.core_llc_cluster(cpu);
        if self.coregroup(cpu).is_subset(&cluster) { self.smt(cpu) } else { cluster }
    }

    /// Returns the CPUs that share the level 2 cache; if these are not known, the threads of the
    /// core.
    fn l2(&self, cpu: CpuId) -> CpuMask {
        self.siblings.l2[cpu.index()].or(&self.smt(cpu))
    }

    /// powerpc's `cpu_l2_cache_mask()`.
    fn l2_of_powerpc(&self, cpu: CpuId) -> CpuMask {
        match (self.reading.powerpc_l2, self.dt.cpus[cpu.index()].big_core) {
            (PowerpcL2::BigCore, Some(_)) => self.siblings.big_core[cpu.index()],
            _ => self.l2(cpu),
        }
    }

    /// x86's `cpu_coregroup_mask()`: the CPUs that share the last-level cache, within the node.
    fn llc_of_node(&self, cpu: CpuId) -> CpuMask {
        self.siblings.llc_of_node[cpu.index()]
    }

    /// powerpc's `cpu_coregroup_mask()`.
    fn hemisphere(&self, cpu: CpuId) -> CpuMask {
        self.siblings.hemisphere[cpu.index()]
    }

    /// `x86_has_numa_in_package`.
    fn numa_in_package(&self) -> bool {
        let mut packages = self.siblings.package.iter().zip(&self.siblings.node);
        packages.any(|(package, node)| !package.is_subset(node))
    }

    fn level(
        &self,
        name: &'static str,
        flags: u32,
        mask: impl Fn(&Self, CpuId) -> CpuMask,
    ) -> Level {
        let mask = self.dt.all_cpus().iter().map(|cpu| mask(self, cpu)).collect();
        Level { name, flags, mask, overlap: false, distance: 0 }
    }

    /// The levels inside a node.
    fn within_node(&self) -> Vec<Level> {
        let asym = if self.dt.topology.asym_packing { SD_ASYM_PACKING } else { 0 };
        let smt = SD_SHARE_CPUCAPACITY | SD_SHARE_LLC;
        // Without threads a core is one CPU. The level is removed again, but while it exists it takes the
        // loss of PREFER_SIBLING that an asymmetric domain inflicts on its child.
        let mut levels = vec![self.level("SMT", smt, Self::smt)];
        match self.dt.topology.architecture {
            Architecture::Arm64 => {
                if self.reading.sched_cluster {
                    levels.push(self.level("CLS", SD_CLUSTER | SD_SHARE_LLC, Self::clustergroup));
                }
                levels.push(self.level("MC", SD_SHARE_LLC, Self::coregroup));
                levels.push(self.level(self.node_level, 0, Self::node));
            }
            Architecture::X86 => {
                if self.reading.sched_cluster {
                    levels.push(self.level("CLS", SD_CLUSTER | SD_SHARE_LLC | asym, Self::l2));
                }
                levels.push(self.level("MC", SD_SHARE_LLC | asym, Self::llc_of_node));
                if !self.numa_in_package() {
                    levels.push(self.level(self.node_level, asym, Self::node));
                }
            }
            Architecture::Powerpc => {
                let cache = self.level("CACHE", SD_SHARE_LLC | asym, Self::l2_of_powerpc);
                let more = |(l2, smt): (&CpuMask, &CpuMask)| l2.weight() > smt.weight();
                // `shared_caches`
                if cache.mask.iter().zip(&levels[0].mask).any(more) {
                    levels.push(cache);
                }
                if self.dt.cpus.iter().any(|cpu| cpu.hemisphere.is_some()) {
                    levels.push(self.level("MC", asym, Self::hemisphere));
                }
                levels.push(self.level(self.node_level, asym, Self::node));
            }
        }
        levels
    }

    /// `sched_init_numa()`: NODE, and a level for each distance between nodes with CPUs.
    fn between_nodes(&self) -> Vec<Level> {
        let nodes: BTreeSet<u16> = self.dt.cpus.iter().map(|cpu| cpu.node).collect();
        if nodes.len() == 1 {
            return Vec::new();
        }
        let topology = &self.dt.topology;
        let mut distances: BTreeSet<u8> = nodes
            .iter()
            .flat_map(|from| nodes.iter().map(|to| topology.distance(*from, *to)))
            .collect();
        distances.remove(&DtTopology::LOCAL_DISTANCE);
        let numa = |distance: u8| {
            let near = |from: &u16| -> CpuMask {
                let is_near = |to: u16| topology.distance(*from, to) <= distance;
                let cpus = self.dt.all_cpus().iter().zip(&self.dt.cpus);
                cpus.filter(|(_, told)| is_near(told.node)).map(|(cpu, _)| cpu).collect()
            };
            let near: BTreeMap<u16, CpuMask> = nodes.iter().map(|n| (*n, near(n))).collect();
            let level = self.level("NUMA", SD_NUMA, |t, cpu| near[&t.dt.cpus[cpu.index()].node]);
            Level { overlap: true, distance, ..level }
        };
        let node = self.level("NODE", 0, Self::node);
        std::iter::once(node).chain(distances.into_iter().map(numa)).collect()
    }
}

/// `cpu_smt_mask()`, per CPU: the hardware threads of its core, itself included.
pub(super) fn smt_masks(dt: &DeviceTree) -> Vec<CpuMask> {
    siblings(dt, |cpu| cpu.core)
}

/// The levels of this machine, bottom-up.
pub(super) fn levels(dt: &DeviceTree, config: &Config) -> Vec<Level> {
    let reading = Reading {
        package: config.cpu_map_package,
        sched_cluster: config.sched_cluster,
        powerpc_l2: config.powerpc_l2,
    };
    levels_as((dt, &Siblings::new(dt)), reading, config.package_domain)
}

fn levels_as(
    (dt, siblings): (&DeviceTree, &Siblings),
    reading: Reading,
    name: PackageDomain,
) -> Vec<Level> {
    let node_level = match name {
        PackageDomain::Die => "DIE",
        PackageDomain::Pkg => "PKG",
    };
    let topology = CpuTopology { dt, siblings, reading, node_level };
    let mut levels = topology.within_node();
    levels.extend(topology.between_nodes());
    levels
}

/// All readings that make a difference on an architecture: only arm64 reads a cpu-map, and only powerpc has big cores.
fn readings(architecture: Architecture) -> Vec<Reading> {
    let (leaf, socket) = (CpuMapPackage::LeafCluster, CpuMapPackage::Socket);
    let (big, small) = (PowerpcL2::BigCore, PowerpcL2::SmallCore);
    let (packages, clusters, caches): (&[_], &[_], &[_]) = match architecture {
        Architecture::Arm64 => (&[leaf, socket], &[false, true], &[small]),
        Architecture::X86 => (&[socket], &[false, true], &[small]),
        Architecture::Powerpc => (&[socket], &[false], &[big, small]),
    };
    let mut readings = Vec::new();
    for package in packages.iter().copied() {
        for sched_cluster in clusters.iter().copied() {
            for powerpc_l2 in caches.iter().copied() {
                readings.push(Reading { package, sched_cluster, powerpc_l2 });
            }
        }
    }
    readings
}

/// See [`Topology::check`].
pub(super) fn check(dt: &DeviceTree) -> Result<(), TopologyError> {
    if dt.cpus.is_empty() {
        return Err(TopologyError::NoCpu);
    }
    if let Some(i) = dt.cpus.iter().position(|c| !(1..=1024).contains(&c.capacity)) {
        return Err(TopologyError::Capacity { cpu: CpuId(i as u16) });
    }
    check_distances(dt)?;
    let siblings = Siblings::new(dt);
    for reading in readings(dt.topology.architecture) {
        check_levels(dt, &levels_as((dt, &siblings), reading, PackageDomain::Pkg))?;
    }
    Ok(())
}

/// Refuses the tables of distances that `acpi_numa` and `of_numa` refuse. The distances from one
/// node to another and back may differ.
fn check_distances(dt: &DeviceTree) -> Result<(), TopologyError> {
    let distances = &dt.topology.distances;
    if distances.is_empty() {
        return Ok(());
    }
    let nodes = dt.cpus.iter().map(|cpu| cpu.node as usize + 1).max().unwrap_or(0);
    if distances.len() < nodes || distances.iter().any(|row| row.len() != distances.len()) {
        return Err(TopologyError::DistanceTable { nodes });
    }
    for (from, row) in distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate() {
            let local = *distance == DtTopology::LOCAL_DISTANCE;
            if *distance < DtTopology::LOCAL_DISTANCE || local != (from == to) {
                return Err(TopologyError::Distance { from, to, distance: *distance });
            }
        }
    }
    Ok(())
}

/// Whether masks of which each holds its CPU either are the same or have no CPU in common. They are and have if the lowest
/// CPU of each has the same one, and so have all CPUs of the lowest's.
fn is_partition(masks: &[CpuMask]) -> bool {
    masks.iter().enumerate().all(|(cpu, mask)| {
        let lowest = mask.lowest().expect("a mask holds its CPU");
        match lowest.index() == cpu {
            true => mask.iter().all(|member| masks[member.index()] == *mask),
            false => masks[lowest.index()] == *mask,
        }
    })
}

fn check_levels(dt: &DeviceTree, levels: &[Level]) -> Result<(), TopologyError> {
    // topology_span_sane()
    for level in levels.iter().filter(|l| !l.overlap && !is_partition(&l.mask)) {
        for a in dt.all_cpus().iter() {
            let mask = level.mask[a.index()];
            let broken = |b: &CpuId| {
                let other = level.mask[b.index()];
                mask.intersects(&other) && mask != other
            };
            if let Some(b) = dt.all_cpus().iter().find(broken) {
                return Err(TopologyError::BrokenLevel { level: level.name, a, b });
            }
        }
    }
    for pair in levels.windows(2) {
        let (lower, upper) = (&pair[0], &pair[1]);
        let broken = |c: &CpuId| !lower.mask[c.index()].is_subset(&upper.mask[c.index()]);
        if let Some(cpu) = dt.all_cpus().iter().find(broken) {
            return Err(TopologyError::NotNested { lower: lower.name, upper: upper.name, cpu });
        }
    }
    Ok(())
}
