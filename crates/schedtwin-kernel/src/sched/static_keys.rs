// SPDX-License-Identifier: GPL-2.0-or-later
//! Questions with one answer for the whole life of a kernel, or nearly so: Linux's static keys.

use crate::Scheduler;
use crate::sched::CfsRqId;
use crate::sched::topology::DomainId;
use schedtwin_types::CpuId;

impl Scheduler {
    /// There are task groups beside the root.
    #[inline(always)]
    pub(crate) fn has_groups(&self) -> bool {
        self.groups.len() > 1
    }

    /// There are groups, and the tasks of all compete in one timeline of each CPU.
    #[inline(always)]
    pub(crate) fn flat_groups(&self) -> bool {
        self.flat_groups
    }

    /// The static key `__cfs_bandwidth_used`.
    #[inline(always)]
    pub(crate) fn cfs_bandwidth_used(&self) -> bool {
        self.cfs_bandwidth_used
    }

    /// `cpu_of()` of a fair run queue.
    #[inline(always)]
    pub(crate) fn cpu_of(&self, cfs_rq: CfsRqId) -> CpuId {
        self.cfs[cfs_rq].cpu
    }

    /// The static key `sched_smt_present`.
    #[inline(always)]
    pub(crate) fn has_smt(&self) -> bool {
        self.topology.smt
    }

    /// The static key `sched_cluster_active`.
    #[inline(always)]
    pub(crate) fn has_clusters(&self) -> bool {
        self.topology.cluster
    }

    /// The static key `sched_asym_cpucapacity`.
    #[inline(always)]
    pub(crate) fn has_asym_cpucapacity(&self) -> bool {
        self.topology.asym_cpucapacity
    }

    /// `sched_energy_enabled()`.
    #[inline(always)]
    pub(crate) fn is_energy_aware(&self) -> bool {
        self.rd.energy_aware
    }

    /// The smallest domain of `cpu` in which capacities differ (`sd_asym_cpucapacity`).
    #[inline(always)]
    pub(crate) fn sd_asym_cpucapacity(&self, cpu: CpuId) -> Option<DomainId> {
        self.topology.sd_asym_cpucapacity[cpu.index()]
    }
}
