// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kernel is built with. As in Linux, code for what is left out is not there, and nothing tests for it.
//!
//! A run with everything left out that it does not need takes fewer instructions; what it decides is the same. Which
//! build a run gets is decided before it, from its machine, kernel and workload ([`crate::config`] says what a kernel
//! does, this only what it cannot do).

use crate::Kernel;
use crate::config::Config;
use crate::device_tree::{DeviceTree, DtCpu};
use crate::sched::topology::{DomainId, SD_ASYM_PACKING, SchedDomain};
use crate::sched::{CfsRqId, EntityId, Rq, SCHED_CAPACITY_SCALE, SchedEntity};
use schedtwin_types::CpuId;

/// A build of the kernel.
pub trait Kconfig: Copy + Send + Sync + 'static {
    /// Task groups, and with them hierarchies of run queues and limits.
    const GROUPS: bool;
    /// Decisions can be recorded, users' policies asked, and everything verified after each event.
    const WATCHED: bool;
    /// Cores of several hardware threads, clusters of cores, preferred CPUs.
    const THREADS: bool;
    /// CPUs of different capacities, and with them energy-aware scheduling.
    const CAPACITIES: bool;

    /// Whether this build has what a run needs. `groups`: the workload has task groups; `watched`: there is a
    /// record, a policy of the user, or a reference twin.
    fn suits(device_tree: &DeviceTree, config: &Config, groups: bool, watched: bool) -> bool {
        let cpus = &device_tree.cpus;
        let alone = |cpu: &DtCpu| {
            cpu.core.is_none()
                && (!config.sched_cluster || cpu.cluster.is_none() && cpu.l2.is_none())
        };
        let full = |cpu: &DtCpu| u64::from(cpu.capacity) == SCHED_CAPACITY_SCALE;
        (Self::GROUPS || !groups && !config.sched_autogroup)
            && (Self::WATCHED || !watched)
            && (Self::THREADS || !device_tree.topology.asym_packing && cpus.iter().all(alone))
            && (Self::CAPACITIES || cpus.iter().all(full))
    }

    /// The kernel as users' policies see it.
    fn as_all_yes(_: &Kernel<Self>) -> &Kernel {
        unreachable!("users' policies run on a kernel that has everything")
    }
}

/// Everything is built in.
#[derive(Clone, Copy, Debug)]
pub struct AllYesConfig;

impl Kconfig for AllYesConfig {
    const GROUPS: bool = true;
    const WATCHED: bool = true;
    const THREADS: bool = true;
    const CAPACITIES: bool = true;

    fn as_all_yes(kernel: &Kernel) -> &Kernel {
        kernel
    }
}

/// As little as possible: no task groups, no records, and CPUs that are alike.
#[derive(Clone, Copy, Debug)]
pub struct TinyConfig;

impl Kconfig for TinyConfig {
    const GROUPS: bool = false;
    const WATCHED: bool = false;
    const THREADS: bool = false;
    const CAPACITIES: bool = false;
}

impl SchedEntity {
    /// The run queue that a group's entity stands for; `None` for a task.
    #[inline(always)]
    pub(crate) fn my_q<K: Kconfig>(&self) -> Option<CfsRqId> {
        if K::GROUPS { self.my_q } else { None }
    }

    /// The entity of the group that it is in.
    #[inline(always)]
    pub(crate) fn parent<K: Kconfig>(&self) -> Option<EntityId> {
        if K::GROUPS { self.parent } else { None }
    }
}

impl Rq {
    /// `arch_scale_cpu_capacity()`.
    #[inline(always)]
    pub(crate) fn arch_capacity<K: Kconfig>(&self) -> u64 {
        if K::CAPACITIES { self.arch_capacity } else { SCHED_CAPACITY_SCALE }
    }
}

/// What the rules ask: constants where the build decides.
impl<K: Kconfig> Kernel<K> {
    /// Stops a kernel that lacks what its machine needs. Groups, records and policies stop it when they are asked for.
    pub(crate) fn check_build(&self) {
        let t = &self.topology;
        let preferred = |domain: &SchedDomain| domain.flags & SD_ASYM_PACKING != 0;
        let threads = t.smt || t.cluster || t.domains.iter().any(preferred);
        assert!(
            K::THREADS || !threads,
            "this build has no hardware threads, clusters or preferred CPUs"
        );
        let full = |rq: &Rq| rq.arch_capacity == SCHED_CAPACITY_SCALE;
        let equal = self.rq.iter().all(full) && !t.asym_cpucapacity && !self.rd.energy_aware;
        assert!(K::CAPACITIES || equal, "this build has one capacity only");
    }

    /// There are task groups beside the root.
    #[inline(always)]
    pub(crate) fn has_groups(&self) -> bool {
        K::GROUPS && self.groups.len() > 1
    }

    /// There are groups, and the tasks of all compete in one timeline of each CPU.
    #[inline(always)]
    pub(crate) fn flat_groups(&self) -> bool {
        K::GROUPS && self.flat_groups
    }

    /// The static key `__cfs_bandwidth_used`.
    #[inline(always)]
    pub(crate) fn cfs_bandwidth_used(&self) -> bool {
        K::GROUPS && self.cfs_bandwidth_used
    }

    /// `cpu_of()` of a fair run queue.
    #[inline(always)]
    pub(crate) fn cpu_of(&self, cfs_rq: CfsRqId) -> CpuId {
        if K::GROUPS { self.cfs[cfs_rq].cpu } else { CpuId(cfs_rq.0 as u16) }
    }

    /// The static key `sched_smt_present`.
    #[inline(always)]
    pub(crate) fn has_smt(&self) -> bool {
        K::THREADS && self.topology.smt
    }

    /// The static key `sched_cluster_active`.
    #[inline(always)]
    pub(crate) fn has_clusters(&self) -> bool {
        K::THREADS && self.topology.cluster
    }

    /// The static key `sched_asym_cpucapacity`.
    #[inline(always)]
    pub(crate) fn has_asym_cpucapacity(&self) -> bool {
        K::CAPACITIES && self.topology.asym_cpucapacity
    }

    /// `sched_energy_enabled()`.
    #[inline(always)]
    pub(crate) fn is_energy_aware(&self) -> bool {
        K::CAPACITIES && self.rd.energy_aware
    }

    /// The smallest domain of `cpu` in which capacities differ (`sd_asym_cpucapacity`).
    #[inline(always)]
    pub(crate) fn sd_asym_cpucapacity(&self, cpu: CpuId) -> Option<DomainId> {
        if K::CAPACITIES { self.topology.sd_asym_cpucapacity[cpu.index()] } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policies;
    use crate::sched::root_domain::tests::device_tree;

    const OPPS: &[(u32, u64)] = &[(500_000, 100_000), (2_000_000, 900_000)];

    #[test]
    fn a_run_gets_what_it_needs() {
        let config = Config::linux_6_12();
        let (alike, mixed) =
            (device_tree(&[(4, 1024, OPPS)]), device_tree(&[(2, 383, OPPS), (2, 1024, OPPS)]));
        let suits = |dt: &DeviceTree, groups, watched| {
            assert!(AllYesConfig::suits(dt, &config, groups, watched));
            TinyConfig::suits(dt, &config, groups, watched)
        };
        assert!(suits(&alike, false, false));
        assert!(!suits(&mixed, false, false), "capacities");
        assert!(!suits(&alike, true, false), "groups");
        assert!(!suits(&alike, false, true), "watched");
        let mut threads = alike.clone();
        threads.cpus.iter_mut().for_each(|cpu| cpu.core = Some(0));
        assert!(!suits(&threads, false, false), "hardware threads");
        let mut preferred = alike.clone();
        preferred.topology.asym_packing = true;
        assert!(!suits(&preferred, false, false), "preferred CPUs");
        let autogroups = Config { sched_autogroup: true, ..config.clone() };
        assert!(!TinyConfig::suits(&alike, &autogroups, false, false), "autogroups");
    }

    #[test]
    #[should_panic(expected = "one capacity only")]
    fn a_kernel_without_capacities_refuses_different_ones() {
        let mixed = device_tree(&[(2, 383, OPPS), (2, 1024, OPPS)]);
        Kernel::<TinyConfig>::boot_with(mixed, Config::linux_6_12(), &Policies::default());
    }
}
