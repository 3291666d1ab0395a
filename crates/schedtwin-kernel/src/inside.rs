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
use crate::sched::fair::group::TaskGroup;
use crate::sched::root_domain::RootDomain;
use crate::sched::topology::Topology;
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
