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
        read { $($(#[$read_doc:meta])* $read:ident: $read_type:ty,)* }
        set { $($(#[$doc:meta])* $field:ident: $type:ty,)* }
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
                Inside { $($read: &self.$read,)* $($field: &self.$field,)* }
            }

            /// The state, for tests to set.
            #[doc(hidden)]
            pub fn inside_mut(&mut self) -> InsideMut<'_> {
                InsideMut { $($field: &mut self.$field,)* }
            }
        }
    };
}

doors! {
    read {
        /// The variation points and tunables, as of boot.
        config: BootConfig,
        /// What firmware told it about the machine.
        device_tree: DeviceTree,
        /// Sockets.
        sockets: Sockets,
    }
    set {
        /// Time of the current entry.
        now: Ns,
        /// The CPU that executes the current entry.
        this_cpu: CpuId,
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
        /// Frequency domains.
        policies: Arena<PolicyId, CpufreqPolicy>,
        /// Idle governor and idle loop, per CPU.
        cpuidle: Arena<CpuId, CpuIdle>,
        /// hrtimer queues and tick state, per CPU.
        timers: PerCpu<HrtimerBase>,
        /// CPUs idle in the sense of `idle_cpu()`.
        idle_mask: CpuMask,
    }
}
