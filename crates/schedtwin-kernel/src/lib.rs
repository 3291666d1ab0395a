// SPDX-License-Identifier: GPL-2.0-or-later
//! The decisions of Linux: the scheduler, cpufreq and cpuidle governors, timers and wait queues of
//! one
//! simulated kernel.
//!
//! [`Kernel`] is a value. Entries ([`Kernel::interrupt`], [`Kernel::syscall`], [`Kernel::idle_enter`],
//! ...) take the time and arguments, change it, and return; nothing inside calls out. All that
//! hardware can see of a CPU is its [`Wires`], which the kernel writes and the twin reads after each
//! entry. A snapshot is a `clone()`.
//!
//! **Time inside an entry.** An entry is atomic at its time T. Each path adds its cost to the CPU's
//! *debt*, which the CPU pays before its activity proceeds; interrupts that arrive meanwhile wait.
//! Run-queue clocks read T; only what Linux stamps in the middle of a path (`local_clock()`: trace
//! events, costs of newidle balancing) reads T plus the debt so far (`Context::local_clock`).
//!
//! The modules are where Linux has them: `sched/core.rs`, `sched/fair/`, `time/tick_sched.rs`, ...

mod block;
mod boot;
mod boot_config;
mod coherence;
pub mod config;
mod context;
pub mod cpufreq;
pub mod cpuidle;
pub mod device_tree;
mod dispatch;
mod entry;
pub mod hardware;
pub mod inside;
pub mod observe;
pub mod policy;
mod random;
mod rcu;
pub mod sched;
mod softirq;
mod sorted;
pub mod sync;
pub mod system;
pub mod thermal;
pub mod time;
mod work;

pub use boot_config::BootConfig;
pub(crate) use context::Context;
use cpufreq::Cpufreq;
use cpuidle::Cpuidle;
use policy::OwnPolicies;
use sched::Scheduler;
use schedtwin_types::{CpuId, IpiKind, IrqLines, Ns, TaskId, arena};
use sync::SyncObjects;
use thermal::Thermal;
use time::Time;
use work::IrqWork;

/// The state of a CPU that hardware sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wires {
    /// The one-shot clock event (`clockevents_program_event`); [`schedtwin_types::NEVER`] = off.
    pub clock_event_at: Ns,
    /// Per kind: when the interrupt in flight to this CPU was sent; [`schedtwin_types::NEVER`] = none.
    pub ipi_at: [Ns; IpiKind::COUNT],
    /// Per kind: who sent it last.
    pub ipi_from: [CpuId; IpiKind::COUNT],
    /// Which of those in flight are no interrupts but writes to the flag that the CPU watches asleep.
    pub written: IrqLines,
    /// The activity of the CPU once its debt is paid.
    pub activity: Activity,
    /// Kernel time that the CPU still owes, nanoseconds from the time of its last entry. Written when
    /// the entry ends.
    pub debt: Ns,
}

/// The activity of a CPU between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Runs a task.
    Task(TaskId),
    /// The idle task is about to ask the governor: [`Kernel::idle_enter`] is due.
    IdleLoop,
    /// Sleeps in idle state `state` until an interrupt.
    Idle {
        /// Index of the state.
        state: u8,
    },
    /// Spins in the polling idle state, with interrupts on: [`Kernel::poll_end`] is due.
    Poll {
        /// When the loop ends: its time is up, or another CPU has set `need_resched`.
        until: Ns,
    },
}

/// The simulated kernel: its subsystems, and the entry that they work in. Their state is private to each; what leaves the kernel is
/// listed in [`hardware`].
///
/// A method of a subsystem touches that subsystem alone, and the `Context` if it takes one. A method of `Kernel` may
/// touch several.
#[derive(Clone)]
pub struct Kernel {
    cx: Context,
    sched: Scheduler,
    cpufreq: Cpufreq,
    time: Time,
    cpuidle: Cpuidle,
    sync: SyncObjects,
    block: block::Block,
    thermal: Thermal,
    work: IrqWork,
    workqueues: work::workqueue::Workqueues,
    softirqs: softirq::Softirqs,
    random: Option<random::Random>,
    rcu: rcu::Rcu,
    system: system::System,
    own: OwnPolicies,
}
