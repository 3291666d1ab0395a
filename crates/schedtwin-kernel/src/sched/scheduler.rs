// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's state. Only `sched/` reads and writes its fields; other subsystems ask by the methods below.

use super::demand::need::Needs;
use super::demand::signal::StaleDemands;
use super::demand::uclamp::UclampKey;
use super::fair::group::TaskGroup;
use super::fair::sched_cache::CacheAffinity;
use super::nohz::Nohz;
use super::root_domain::RootDomain;
use super::topology::Topology;
use super::{CfsRq, CfsRqId, EntityId, Rq, SchedEntity, Task};
use crate::config::CfsTunables;
use crate::policy::CustomPlacement;
use schedtwin_types::arena::{Arena, PerCpu};
use schedtwin_types::{CpuMask, Ns, TaskGroupId, TaskId};

/// `kernel/sched/`: run queues, entities, tasks, groups and domains.
#[derive(Clone)]
// Fields that each entry touches come first: their addresses are short, and they share few cache lines.
#[repr(C)]
pub struct Scheduler {
    /// Run queues.
    pub(crate) rq: PerCpu<Rq>,
    /// Fair run queues: the root one of CPU c is number c; group ones follow.
    pub(crate) cfs: Arena<CfsRqId, CfsRq>,
    /// Entities of tasks and groups.
    pub(crate) se: Arena<EntityId, SchedEntity>,
    /// All tasks; 0 is the idle task of every CPU.
    pub(crate) tasks: Arena<TaskId, Task>,
    /// The static key `__cfs_bandwidth_used`: some group has had a limit.
    pub(crate) cfs_bandwidth_used: bool,
    /// There are groups, and the tasks of all compete in one timeline of each CPU.
    pub(crate) flat_groups: bool,
    /// What processes prefer of several last-level caches (`sched_cache_active`).
    pub(crate) sched_cache: Option<Box<CacheAffinity>>,
    /// The static key `sched_uclamp_used`: somebody has used a clamp, so clamps are accounted.
    pub(crate) sched_uclamp_used: UclampKey,
    /// CPUs idle in the sense of `idle_cpu()`, kept incrementally.
    pub(crate) idle_mask: CpuMask,
    /// CPUs with `SCHED_IDLE` tasks only, in the sense of `sched_idle_cpu()`, kept incrementally.
    pub(crate) sched_idle_mask: CpuMask,
    /// CPUs whose demand schedutil has to compute at its next request.
    pub(crate) stale_demands: StaleDemands,
    /// `sysctl_sched_base_slice`, scaled by the number of CPUs.
    pub(crate) base_slice: Ns,
    /// Whether firmware has ever told what it takes away.
    pub(crate) hw_pressure_told: bool,
    /// Task groups; 0 is the root.
    pub(crate) groups: Arena<TaskGroupId, TaskGroup>,
    /// The autogroup of each session; none without autogroups.
    pub(crate) autogroups: Vec<TaskGroupId>,
    /// Scheduling domains.
    pub(crate) topology: Topology,
    /// The root domain that spans all CPUs.
    pub(crate) rd: RootDomain,
    /// NOHZ idle balancing.
    pub(crate) nohz: Nohz,
    /// The operating point that each CPU needs.
    pub(crate) needs: Needs,
    /// The user's placement, if there is one.
    pub(crate) placement: Option<Box<CustomPlacement>>,
    /// The tunables of CFS, scaled by the number of CPUs.
    pub(crate) cfs_tunables: CfsTunables,
}
