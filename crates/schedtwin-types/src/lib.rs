// SPDX-License-Identifier: GPL-2.0-or-later
//! The words that kernel, machine, workload and twin share.
//!
//! Nothing here decides anything: identifiers, masks, units, the operations that a task asks for
//! ([`Op`]) and the facts that a run leaves behind ([`Fact`]).
//!
//! Time, frequency and work are aliases of the kernel's own integer widths rather than newtypes:
//! the arithmetic of PELT, EEVDF and the governors mixes signed and unsigned readings of the same
//! nanosecond counters, and must wrap, truncate and shift exactly as C does. What is easily
//! mistaken for something else (a CPU, a task, a thread of a workload) is a newtype.

pub mod arena;
mod chain;
mod cpu_list;
mod decision;
pub mod draw;
mod duration;
mod fact;
pub mod fnv;
mod ids;
mod irq;
mod lines;
pub mod metric;
mod op;
pub mod printable;
pub mod property;
pub mod rng;
mod rule;
pub mod wildcard;

pub use chain::{ChainEnd, ChainEvent, ChainWait, NeedCause, NeedChain};
pub use decision::{Candidate, Decision, DecisionRecord, FrequencyInput, IdleInput, PickCandidate};
pub use duration::Duration;
pub use fact::{
    Fact, FactKind, FactWords, FtraceForm, IpiKind, PerfettoForm, PerfettoValue, TaskState,
    WakeSource,
};
pub use ids::{
    BlockDeviceId, ClockDomainId, CpuId, CpuMask, FutexId, MAX_CPUS, PipeId, PolicyId, PolicyMask,
    PowerDomainId, PowerSource, ProcessId, SessionId, SocketId, TaskGroupId, TaskId, ThreadId,
    WordIter,
};
pub use irq::{IrqLine, IrqLines};
pub use lines::LineCounts;
pub use op::{
    BlockOp, CpuMax, DlReservation, Errno, File, GroupWeight, Mark, Mode, Op, Outcome, Policy,
    SchedAttr, SocketKind, Syscall, TaskGroupFiles,
};
pub use rule::{
    BalanceRule, FrequencyRule, IdleRule, MenuRule, PickRule, PlacementRule, PreemptionRule,
    TeoRule, TickRule,
};

/// A point in simulated time or a span of it, nanoseconds. Time starts at 0.
pub type Ns = u64;
/// A frequency in kHz, as cpufreq counts it.
pub type Khz = u32;
/// A CPU capacity, 1..=1024 (`SCHED_CAPACITY_SCALE`).
pub type Capacity = u32;
/// An amount of work: nanoseconds on a CPU of capacity 1024 at its highest frequency.
pub type Work = u64;

/// The time of something that never happens.
pub const NEVER: Ns = u64::MAX;
