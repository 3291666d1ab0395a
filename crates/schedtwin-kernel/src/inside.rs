// SPDX-License-Identifier: GPL-2.0-or-later
//! A door to the kernel's state, for tests.
//!
//! Unit tests, the scenarios in `tests/` and the comparison with the kernel's own C (`conformance/`) set single run queues
//! and entities and read them back. Nothing else goes through this door: a test of the house fails when the twin does.
//! What hardware and user space see is in [`crate::hardware`].

use crate::BootConfig;
use crate::Kernel;
use crate::arena::{Arena, PerCpu};
use crate::cpufreq::policy::CpufreqPolicy;
use crate::cpuidle::CpuIdle;
use crate::device_tree::DeviceTree;
use crate::sched::fair::balance::CpuIdleType;
use crate::sched::fair::energy::EnergyEstimate;
use crate::sched::fair::group::TaskGroup;
use crate::sched::root_domain::RootDomain;
use crate::sched::topology::{DomainId, Topology};
use crate::sched::{CfsRq, CfsRqId, EntityId, Rq, SchedEntity, Task};
use crate::sync::socket::Sockets;
use crate::time::hrtimer::HrtimerBase;
use schedtwin_types::{CpuId, CpuMask, Ns, PolicyId, TaskGroupId, TaskId};

/// Declares both doors. What is as of boot can only be read.
macro_rules! doors {
    (
        read { $($(#[$read_doc:meta])* $read:ident: $read_type:ty = $read_in:ident$(.$read_at:ident)+,)* }
        set { $($(#[$doc:meta])* $field:ident: $type:ty = $in:ident$(.$at:ident)+,)* }
    ) => {
        /// The state, to be read.
        #[doc(hidden)]
        pub struct Inside<'a> {
            $($(#[$read_doc])* pub $read: &'a $read_type,)*
            $($(#[$doc])* pub $field: &'a $type,)*
        }

        /// The state, to be set.
        #[doc(hidden)]
        pub struct InsideMut<'a> {
            $($(#[$doc])* pub $field: &'a mut $type,)*
        }

        impl Kernel {
            /// The state, for tests to read.
            #[doc(hidden)]
            pub fn inside(&self) -> Inside<'_> {
                Inside { $($read: &self.$read_in$(.$read_at)+,)* $($field: &self.$in$(.$at)+,)* }
            }

            /// The state, for tests to set.
            #[doc(hidden)]
            pub fn inside_mut(&mut self) -> InsideMut<'_> {
                InsideMut { $($field: &mut self.$in$(.$at)+,)* }
            }
        }
    };
}

doors! {
    read {
        /// The variation points and tunables, as of boot.
        config: BootConfig = cx.config,
        /// What firmware told it about the machine.
        device_tree: DeviceTree = cx.platform.device_tree,
        /// Sockets.
        sockets: Sockets = sync.sockets,
    }
    set {
        /// Time of the current entry.
        now: Ns = cx.now,
        /// The CPU that executes the current entry.
        this_cpu: CpuId = cx.this_cpu,
        /// All tasks.
        tasks: Arena<TaskId, Task> = sched.tasks,
        /// Entities of tasks and groups.
        se: Arena<EntityId, SchedEntity> = sched.se,
        /// Fair run queues.
        cfs: Arena<CfsRqId, CfsRq> = sched.cfs,
        /// Task groups.
        groups: Arena<TaskGroupId, TaskGroup> = sched.groups,
        /// Run queues.
        rq: PerCpu<Rq> = sched.rq,
        /// Scheduling domains.
        topology: Topology = sched.topology,
        /// The root domain.
        rd: RootDomain = sched.rd,
        /// Frequency domains.
        policies: Arena<PolicyId, CpufreqPolicy> = cpufreq.policies,
        /// Idle governor and idle loop, per CPU.
        cpuidle: Arena<CpuId, CpuIdle> = cpuidle.cpus,
        /// hrtimer queues and tick state, per CPU.
        timers: PerCpu<HrtimerBase> = time.timers,
        /// CPUs idle in the sense of `idle_cpu()`.
        idle_mask: CpuMask = sched.idle_mask,
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

    /// What a pass over `sd` that began now would pull from: nothing is moved. For comparisons with recordings, which print
    /// what the kernel found. The tables may be those of any moment.
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
}
