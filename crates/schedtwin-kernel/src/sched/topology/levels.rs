//! From what firmware says to the levels of domains: which CPUs see each other as near.
//!
//! The levels, bottom-up, each a mask per CPU: SMT, CLS (cluster), MC (core group), PKG (all CPUs of the
//! node), and with several nodes NODE and NUMA.
//!
//! | term | is |
//! |---|---|
//! | cpu-map | the tree of sockets, clusters and cores in a device tree |
//! | leaf cluster | the innermost clusters, which hold cores |
//! | package | what the cpu-map's sockets are, or in older kernels its leaf clusters |
//! | core group | the smallest of node, package and last-level cache: the level MC |
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
//! `cpu_coregroup_mask`, `cpu_clustergroup_mask`; for 5.19 the patches of 2022 that ended it.
//! Differences: the level of all CPUs is PKG in all releases (DIE before 6.7).

use super::*;
use crate::config::CpuMapPackage;
use crate::device_tree::DtCpu;

/// `struct sched_domain_topology_level`.
pub(super) struct Level {
    pub name: &'static str,
    pub flags: u32,
    pub mask: Vec<CpuMask>,
    pub overlap: bool,
}

/// `cpu_topology[]`: what the architecture has made of the firmware's tables.
struct CpuTopology<'a> {
    dt: &'a DeviceTree,
    package: CpuMapPackage,
    sched_cluster: bool,
}

impl CpuTopology<'_> {
    /// CPUs for which `same` holds with `cpu`.
    fn siblings(&self, cpu: CpuId, same: impl Fn(&DtCpu, &DtCpu) -> bool) -> CpuMask {
        let cpus = &self.dt.cpus;
        let is_sibling = |c: &CpuId| *c == cpu || same(&cpus[cpu.index()], &cpus[c.index()]);
        self.dt.all_cpus().iter().filter(is_sibling).collect()
    }

    fn node(&self, cpu: CpuId) -> CpuMask {
        self.siblings(cpu, |a, b| a.node == b.node)
    }

    /// The masks that the two readings of a cpu-map give: packages, last-level caches and clusters, each
    /// as far as it is known.
    fn core_llc_cluster(&self, cpu: CpuId) -> (CpuMask, Option<CpuMask>, CpuMask) {
        let llc = || self.siblings(cpu, |a, b| a.llc == b.llc);
        let leaf = |a: &DtCpu, b: &DtCpu| a.package == b.package && a.cluster == b.cluster;
        let in_leaf = self.dt.cpus[cpu.index()].cluster.is_some();
        match self.package {
            // Caches were known from ACPI only, which has no cpu-map; and clusters had no number.
            CpuMapPackage::LeafCluster => {
                (self.siblings(cpu, leaf), (!in_leaf).then(llc), CpuMask::of(cpu))
            }
            CpuMapPackage::Socket => (
                self.siblings(cpu, |a, b| a.package == b.package),
                Some(llc()),
                self.siblings(cpu, |a, b| in_leaf && leaf(a, b)),
            ),
        }
    }

    /// `cpu_coregroup_mask()`: the smallest of node, package, last-level cache and cluster, as far as
    /// each is inside the one before.
    fn coregroup(&self, cpu: CpuId) -> CpuMask {
        let (core, llc, cluster) = self.core_llc_cluster(cpu);
        let mut mask = self.node(cpu);
        for smaller in [Some(core), llc].into_iter().flatten() {
            if smaller.is_subset(&mask) {
                mask = smaller;
            }
        }
        if self.sched_cluster && mask.is_subset(&cluster) { cluster } else { mask }
    }

    /// `cpu_clustergroup_mask()`: the cluster, unless it is no less than the core group.
    fn clustergroup(&self, cpu: CpuId) -> CpuMask {
        let (_, _, cluster) = self.core_llc_cluster(cpu);
        if self.coregroup(cpu).is_subset(&cluster) { CpuMask::of(cpu) } else { cluster }
    }
}

/// The levels of this machine, bottom-up.
pub(super) fn levels(dt: &DeviceTree, package: CpuMapPackage, sched_cluster: bool) -> Vec<Level> {
    let topology = CpuTopology { dt, package, sched_cluster };
    let level = |name, flags, mask: &dyn Fn(CpuId) -> CpuMask| Level {
        name,
        flags,
        mask: dt.all_cpus().iter().map(mask).collect(),
        overlap: false,
    };
    // Without threads a core is one CPU. The level is removed again, but while it exists it takes the
    // loss of PREFER_SIBLING that an asymmetric domain inflicts on its child.
    let mut levels = vec![level("SMT", SD_SHARE_CPUCAPACITY | SD_SHARE_LLC, &CpuMask::of)];
    if sched_cluster {
        levels.push(level("CLS", SD_CLUSTER | SD_SHARE_LLC, &|c| topology.clustergroup(c)));
    }
    levels.push(level("MC", SD_SHARE_LLC, &|c| topology.coregroup(c)));
    levels.push(level("PKG", 0, &|c| topology.node(c)));
    if dt.cpus.iter().any(|c| c.node != dt.cpus[0].node) {
        levels.push(level("NODE", 0, &|c| topology.node(c)));
        levels.push(Level { overlap: true, ..level("NUMA", SD_NUMA, &|_| dt.all_cpus()) });
    }
    levels
}

/// See [`Topology::check`].
pub(super) fn check(dt: &DeviceTree) -> Result<(), TopologyError> {
    if dt.cpus.is_empty() {
        return Err(TopologyError::NoCpu);
    }
    if let Some(i) = dt.cpus.iter().position(|c| !(1..=1024).contains(&c.capacity)) {
        return Err(TopologyError::Capacity { cpu: CpuId(i as u16) });
    }
    for package in [CpuMapPackage::LeafCluster, CpuMapPackage::Socket] {
        for sched_cluster in [false, true] {
            check_levels(dt, &levels(dt, package, sched_cluster))?;
        }
    }
    Ok(())
}

fn check_levels(dt: &DeviceTree, levels: &[Level]) -> Result<(), TopologyError> {
    // topology_span_sane()
    for level in levels.iter().filter(|l| !l.overlap) {
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
