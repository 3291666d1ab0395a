// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's state, for tests.
//!
//! Unit tests, the scenarios in `tests/` and the comparison with the kernel's own C (`conformance/`) set single run queues
//! and entities and read them back. Nothing else does: a test fails when the twin does.
//! The view of hardware and user space is in [`crate::hardware`].

use crate::arena::{Arena, PerCpu};
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpuidle::CpuIdle;
use crate::device_tree::DeviceTree;
use crate::sched::fair::balance::CpuIdleType;
use crate::sched::fair::energy::EnergyEstimate;
use crate::sched::fair::group::TaskGroup;
use crate::sched::nohz::Nohz;
use crate::sched::root_domain::RootDomain;
use crate::sched::topology::{DomainId, Topology};
use crate::sched::{CfsRq, CfsRqId, EntityId, Rq, SchedEntity, Task};
use crate::sync::socket::Sockets;
use crate::time::hrtimer::HrtimerBase;
use crate::{BootConfig, Kernel};
use schedtwin_types::{CpuId, CpuMask, Ns, PolicyId, TaskGroupId, TaskId};

/// Declares what tests see of one part of the kernel, in the module of that part.
macro_rules! opened {
    ($part:ident { $($field:ident: $type:ty),* $(,)? }) => {
        /// State of this part, to be read by tests.
        pub(crate) struct Opened<'a> {
            $(pub(crate) $field: &'a $type,)*
        }

        /// State of this part, to be set by tests.
        pub(crate) struct OpenedMut<'a> {
            $(pub(crate) $field: &'a mut $type,)*
        }

        impl $part {
            /// Its state, for tests to read.
            pub(crate) fn opened(&self) -> Opened<'_> {
                Opened { $($field: &self.$field,)* }
            }

            /// Its state, for tests to set.
            pub(crate) fn opened_mut(&mut self) -> OpenedMut<'_> {
                OpenedMut { $($field: &mut self.$field,)* }
            }
        }
    };
}
pub(crate) use opened;

/// Declares what tests see of the kernel, part by part. What is as of boot can only be read.
macro_rules! inside {
    (
        read { $($(#[$read_doc:meta])* $read:ident: $read_type:ty = $read_in:ident,)* }
        $($part:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*
    ) => {
        /// The state, to be read.
        #[doc(hidden)]
        pub struct Inside<'a> {
            $($(#[$read_doc])* pub $read: &'a $read_type,)*
            $($($(#[$doc])* pub $field: &'a $type,)*)*
        }

        /// The state, to be set.
        #[doc(hidden)]
        pub struct InsideMut<'a> {
            $($($(#[$doc])* pub $field: &'a mut $type,)*)*
        }

        impl Kernel {
            /// The state, for tests to read.
            #[doc(hidden)]
            pub fn inside(&self) -> Inside<'_> {
                $(let $part = self.$part.opened();)*
                Inside {
                    $($read: self.$read_in.$read(),)*
                    $($($field: $part.$field,)*)*
                }
            }

            /// The state, for tests to set.
            #[doc(hidden)]
            pub fn inside_mut(&mut self) -> InsideMut<'_> {
                $(let $part = self.$part.opened_mut();)*
                InsideMut { $($($field: $part.$field,)*)* }
            }
        }
    };
}

inside! {
    read {
        /// The variation points and tunables, as of boot.
        config: BootConfig = cx,
        /// The machine as firmware describes it.
        device_tree: DeviceTree = cx,
        /// Sockets.
        sockets: Sockets = sync,
    }
    cx {
        /// Time of the current entry.
        now: Ns,
        /// The CPU that executes the current entry.
        this_cpu: CpuId,
    }
    sched {
        /// All tasks.
        tasks: Arena<TaskId, Task>,
        /// Entities of tasks and groups.
        se: Arena<EntityId, SchedEntity>,
        /// Fair run queues.
        cfs: Arena<CfsRqId, CfsRq>,
        /// Task groups.
        groups: Arena<TaskGroupId, TaskGroup>,
        /// Run queues.
        rq: PerCpu<Rq>,
        /// Scheduling domains.
        topology: Topology,
        /// The root domain.
        rd: RootDomain,
        /// What all CPUs share of balancing idle ones.
        nohz: Nohz,
        /// CPUs idle in the sense of `idle_cpu()`.
        idle_mask: CpuMask,
    }
    cpufreq {
        /// Frequency domains.
        policies: Arena<PolicyId, CpufreqPolicy>,
    }
    cpuidle {
        /// Idle governor and idle loop, per CPU.
        cpus: Arena<CpuId, CpuIdle>,
    }
    time {
        /// hrtimer queues and tick state, per CPU.
        timers: PerCpu<HrtimerBase>,
    }
}

/// Questions to one subsystem, for tests.
#[doc(hidden)]
impl Kernel {
    /// `idle_cpu()`.
    #[inline]
    pub fn idle_cpu(&self, cpu: CpuId) -> bool {
        self.sched.idle_cpu(cpu)
    }

    /// `sched_idle_cpu()`: only `SCHED_IDLE` tasks are queued.
    #[inline]
    pub fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        self.sched.sched_idle_cpu(cpu)
    }

    /// The entity of a task.
    #[inline]
    pub fn se_of(&self, task: TaskId) -> EntityId {
        self.sched.se_of(task)
    }

    /// `arch_scale_cpu_capacity()`.
    #[inline]
    pub fn arch_scale_cpu_capacity(&self, cpu: CpuId) -> u64 {
        self.sched.arch_scale_cpu_capacity(cpu)
    }

    /// `get_actual_cpu_capacity()`.
    #[inline]
    pub fn get_actual_cpu_capacity(&self, cpu: CpuId) -> u64 {
        self.sched.get_actual_cpu_capacity(cpu)
    }

    /// `cpu_uclamp_write()`: the files `cpu.uclamp.min` and `cpu.uclamp.max` of a group are written, those that are given:
    /// hundredths of a percent, 0..=10000; `max` is 10000.
    #[inline]
    pub fn cpu_uclamp_write(&mut self, group: TaskGroupId, min: Option<u32>, max: Option<u32>) {
        self.sched.cpu_uclamp_write(group, min, max, &self.cx)
    }

    /// `task_util()`.
    #[inline]
    pub fn task_util(&self, task: TaskId) -> u64 {
        self.sched.task_util(task)
    }

    /// Returns the group and queue that a pass over `sd` would pull from if it began now; moves
    /// nothing. For comparisons with recordings, which print the kernel's finding. The tables may
    /// be those of any moment.
    ///
    /// `None`: `cpu` is not the one to balance. Else the busiest group by its first CPU, and its busiest queue.
    #[inline]
    pub fn find_busiest(
        &self,
        cpu: CpuId,
        sd: DomainId,
        idle: CpuIdleType,
    ) -> Option<(Option<CpuId>, Option<CpuId>)> {
        self.sched.find_busiest(cpu, sd, idle, &self.cx)
    }

    /// One estimate of [`Kernel::find_energy_efficient_cpu`] by itself, for comparison with what a real
    /// kernel's `sched_compute_energy_tp` says: of the domain of `cpu`, with the task on it (`placed`) or
    /// nowhere. `None`: `cpu` is in no domain.
    #[inline]
    pub fn energy_estimate(
        &self,
        task: TaskId,
        prev: CpuId,
        cpu: CpuId,
        placed: bool,
    ) -> Option<EnergyEstimate> {
        self.sched.energy_estimate(task, prev, cpu, placed, &self.cx)
    }

    /// `update_rq_clock()`: brings the clocks of a run queue to the time of the entry.
    #[inline]
    pub fn update_rq_clock(&mut self, cpu: CpuId) {
        self.sched.update_rq_clock(cpu, &self.cx)
    }

    /// `rq_clock_pelt()`.
    #[inline]
    pub fn rq_clock_pelt(&self, cpu: CpuId) -> u64 {
        self.sched.rq_clock_pelt(cpu)
    }

    /// `jiffies`. Differences: counted by the clock, not by whichever CPU keeps the tick, so it never
    /// lags while all CPUs sleep.
    #[inline]
    pub fn jiffies(&self) -> u64 {
        self.cx.jiffies()
    }

    /// `select_task_rq_rt()`: the CPU on which a real-time task wakes that was last on `cpu`.
    #[inline]
    pub fn select_task_rq_rt(&mut self, task: TaskId, cpu: CpuId, _flags: u32) -> CpuId {
        self.sched.select_task_rq_rt(task, cpu, _flags, &self.cx)
    }

    /// `cpu_util_cfs()`.
    #[inline]
    pub fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        self.sched.cpu_util_cfs(cpu, &self.cx)
    }

    /// `cpu_util_cfs_boost()`.
    #[inline]
    pub fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        self.sched.cpu_util_cfs_boost(cpu, &self.cx)
    }

    /// The utilisation that a real-time task demands by its clamps.
    pub fn rt_uclamp_min(&self, task: TaskId) -> u32 {
        self.sched.rt_uclamp_min(task, &self.cx)
    }
}
