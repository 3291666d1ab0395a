// SPDX-License-Identifier: GPL-2.0-or-later
//! The forms in which a fact appears outside of a run, as the table of facts fills them in.
//!
//! Each trait is implemented once, by the listing or the kind of trace in its name.

use crate::{
    CpuId, IpiKind, IrqLines, Khz, Ns, PolicyId, TaskGroupId, TaskId, TaskState, WakeSource,
};
use std::fmt::Arguments;

/// A field of a fact, which may name a task.
pub(super) trait FactField: Sized {
    /// Returns the task that it names.
    fn task(self) -> Option<TaskId> {
        None
    }
}

impl FactField for TaskId {
    fn task(self) -> Option<TaskId> {
        Some(self)
    }
}

macro_rules! other_fields {
    ($($type:ty),*) => {
        $( impl FactField for $type {} )*
    };
}

other_fields!(
    u8,
    u16,
    u32,
    u64,
    bool,
    CpuId,
    PolicyId,
    TaskGroupId,
    TaskState,
    WakeSource,
    IpiKind,
    IrqLines
);

/// Names and spans as a listing prints them.
pub trait FactWords {
    /// Returns a task's name and number.
    fn task(&self, task: TaskId) -> String;
    /// Returns a frequency domain's name.
    fn policy(&self, policy: PolicyId) -> String;
    /// Returns a cgroup's path, `/` of the root, or its number where nobody knows the path.
    fn cgroup(&self, group: TaskGroupId) -> String;
    /// Returns a span of time.
    fn span(&self, ns: Ns) -> String;
}

/// Ftrace text: lines of events.
pub trait FtraceForm {
    /// Writes `event` with its fields.
    fn event(&mut self, event: &str, fields: Arguments<'_>);
    /// Writes `event` with name, number and priority of `task`, and then `rest`.
    fn task_event(&mut self, event: &str, task: TaskId, rest: Arguments<'_>);
    /// Writes `sched_switch`.
    fn switch(&mut self, prev: TaskId, next: TaskId, prev_state: TaskState);
    /// Writes `cpu_frequency` for each CPU of `policy`.
    fn frequency(&mut self, policy: PolicyId, khz: Khz);
    /// Writes `ipi_raise`.
    fn ipi(&mut self, target: CpuId, kind: IpiKind);
    /// Writes `irq_handler_entry`.
    fn irq_entry(&mut self, lines: IrqLines);
    /// Writes `irq_handler_exit` of the interrupt that the CPU is in.
    fn irq_exit(&mut self);
    /// Writes `hrtimer_expire_entry` of the tick.
    fn tick(&mut self);
    /// Returns a task's name.
    fn comm(&self, task: TaskId) -> String;
}

/// The value of a field in a Perfetto event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfettoValue {
    /// A number.
    Number(u64),
    /// The time of the fact.
    At,
    /// The task's number.
    Pid,
    /// The task's priority.
    Prio,
    /// The process that all tasks belong to.
    Process,
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $( impl From<$type> for PerfettoValue {
            #[inline(always)]
            fn from(number: $type) -> PerfettoValue {
                PerfettoValue::Number(number.into())
            }
        } )*
    };
}

numbers!(u8, u16, u32);

impl From<CpuId> for PerfettoValue {
    #[inline(always)]
    fn from(cpu: CpuId) -> PerfettoValue {
        PerfettoValue::Number(cpu.0.into())
    }
}

/// Perfetto: the forms that its packets offer. Numbers are those of
/// `protos/perfetto/trace/ftrace/ftrace_event.proto` and of the events' own messages.
pub trait PerfettoForm {
    /// Adds a row to the columns of `sched_switch`.
    fn switch(&mut self, next: TaskId, prev_state: TaskState);
    /// Adds a row to the columns of `sched_waking`.
    fn waking(&mut self, task: TaskId, source: WakeSource, prev_cpu: CpuId);
    /// Writes an event whose fields are numbers.
    fn event<const N: usize>(&mut self, number: u16, fields: [(u8, PerfettoValue); N]);
    /// Writes an event with the name of `task` as field 1.
    fn task_event<const N: usize>(
        &mut self,
        number: u16,
        task: TaskId,
        fields: [(u8, PerfettoValue); N],
    );
    /// Writes `cpu_frequency` for each CPU of `policy`.
    fn frequency(&mut self, policy: PolicyId, khz: Khz);
    /// Writes `ipi_raise`.
    fn ipi(&mut self, target: CpuId, kind: IpiKind);
    /// Writes `irq_handler_entry`.
    fn irq_entry(&mut self, lines: IrqLines);
    /// Writes `irq_handler_exit` of the interrupt that the CPU is in.
    fn irq_exit(&mut self);
    /// Writes an instant on the CPU's track.
    fn instant<const N: usize>(&mut self, name: &str, details: [(&str, u64); N]);
    /// Writes the counter of overutilization.
    fn overutilized(&mut self, on: bool);
    /// Writes the CPU's counters that changed: `util_avg`, `runnable_avg`, `util_est`.
    fn cpu_signals(&mut self, signals: [u32; 3]);
    /// Writes the task's counters that changed, in the same order.
    fn task_signals(&mut self, task: TaskId, signals: [u32; 3]);
}
