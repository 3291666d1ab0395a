// SPDX-License-Identifier: GPL-2.0-or-later
//! Facts: the events of a run, for the meter and the traces.
//!
//! A fact says what happened, never why (reasons are decision records and cost nothing when off).
//! Facts are always on, so they are small and `Copy`.
//!
//! All kinds are declared in one table, `fact/table.rs`: fields, share of the digest, words, and
//! form in each kind of trace. `fact/declare.rs` makes the type from it.

mod declare;
mod form;
mod table;

pub use form::{FactWords, FtraceForm, PerfettoForm, PerfettoValue};
pub use table::FactKind;

use crate::{CpuId, Ns};

/// Something that happened at `at` on `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Ns,
    /// On which CPU: the one that executed the code.
    pub cpu: CpuId,
    /// The event.
    pub kind: FactKind,
}

/// State in which a task leaves its CPU, as `sched_switch` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TaskState {
    /// `R`: yielded or finished its slice, still runnable.
    #[default]
    Running,
    /// `R+`: preempted.
    Preempted,
    /// `S`: interruptible sleep.
    Interruptible,
    /// `D`: uninterruptible sleep.
    Uninterruptible,
    /// `X`: exited.
    Dead,
}

impl TaskState {
    /// Returns the letters that `sched_switch` prints.
    pub const fn letters(self) -> &'static str {
        match self {
            TaskState::Running => "R",
            TaskState::Preempted => "R+",
            TaskState::Interruptible => "S",
            TaskState::Uninterruptible => "D",
            TaskState::Dead => "X",
        }
    }
}

/// Inter-processor interrupts. At most one of a kind is in flight per CPU, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IpiKind {
    /// `smp_send_reschedule`.
    Reschedule = 0,
    /// `call_function_single`: the wake list (`TTWU_QUEUE`), and queues of groups that are no longer throttled.
    WakeList = 1,
    /// `call_function_single`: an idle CPU is asked to balance (`nohz_csd_func`).
    NohzKick = 2,
    /// `irq_work`: schedutil's slow path, and pushing of RT tasks.
    IrqWork = 3,
    /// Tick broadcast: the receiver's timer has expired while it could not see that itself.
    Timer = 4,
}

impl IpiKind {
    /// How many kinds there are.
    pub const COUNT: usize = 5;
    /// All kinds, by number.
    pub const ALL: [IpiKind; IpiKind::COUNT] = [
        IpiKind::Reschedule,
        IpiKind::WakeList,
        IpiKind::NohzKick,
        IpiKind::IrqWork,
        IpiKind::Timer,
    ];

    /// Returns its name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            IpiKind::Reschedule => "reschedule",
            IpiKind::WakeList => "wake list",
            IpiKind::NohzKick => "nohz kick",
            IpiKind::IrqWork => "irq work",
            IpiKind::Timer => "timer broadcast",
        }
    }

    /// Returns the reason that arm64's `ipi_raise` gives (`ipi_types[]` of `arch/arm64/kernel/smp.c`);
    /// the two uses of `call_function_single` are told apart.
    pub const fn reason(self) -> &'static str {
        match self {
            IpiKind::Reschedule => "Rescheduling interrupts",
            IpiKind::WakeList => "Function call interrupts (wake list)",
            IpiKind::NohzKick => "Function call interrupts (nohz kick)",
            IpiKind::IrqWork => "IRQ work interrupts",
            IpiKind::Timer => "Timer broadcast interrupts",
        }
    }
}

/// The source of a wakeup: splits the latency metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WakeSource {
    /// Another task, in a system call.
    Task = 0,
    /// A timer's interrupt.
    Timer = 1,
    /// The kernel itself or a device.
    Kernel = 2,
}

impl WakeSource {
    /// Returns it in words.
    pub const fn words(self) -> &'static str {
        match self {
            WakeSource::Task => "a task",
            WakeSource::Timer => "a timer",
            WakeSource::Kernel => "the kernel",
        }
    }
}

const _: () = assert!(size_of::<Fact>() <= 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_small() {
        assert!(size_of::<Fact>() <= 32, "{}", size_of::<Fact>());
    }
}
