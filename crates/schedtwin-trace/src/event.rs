// SPDX-License-Identifier: GPL-2.0-or-later
//! One recorded event, typed, whatever file it comes from; and the interface of those who read such files.
//!
//! A recording enters the twin by one way: a [`TraceSource`] hands out [`TraceEvent`]s in time order, one after
//! the other. What the file says beside its events (who recorded it, which kernel, which tasks existed) is
//! its [`TraceHeader`]; what is wrong with it (lost events, damage, a cut end) is its [`SourceReport`].
//!
//! **Strings** are interned: an event holds [`NameId`]s, small `Copy` numbers, and the source's [`Names`] holds the
//! text. So an event is `Copy`, can be kept in a heap while CPUs are merged, and costs no allocation.
//!
//! **Order.** Times never go back by more than [`STEP_BACK_MAX_NS`]; a source that reads several CPUs
//! merges them first. Events of equal time keep the order of the file.
//!
//! **Losses** are told twice: where they happened, as [`TraceEventKind::Lost`] on that CPU, so that a consumer
//! does not carry on what it believed to run there; and summed up in [`SourceReport::losses`].
//!
//! **Faults.** A source goes on behind a damaged event and keeps the damage in its report; only what makes all the
//! rest unreadable ends it with a [`SourceFault`].
//!
//! ```
//! use schedtwin_trace::event::{EventContext, Names, SourceReport, TraceEvent, TraceEventKind};
//! use schedtwin_types::CpuId;
//!
//! // As the reader of a format makes an event:
//! let (mut names, mut report) = (Names::new(), SourceReport::default());
//! let context = EventContext { pid: 7, comm: names.intern("ui"), ..EventContext::default() };
//! let kind = TraceEventKind::Idle { cpu: CpuId(1), state: Some(1) };
//! let name = names.intern("cpu_idle");
//! let event = TraceEvent { at: 5_000_001_000, cpu: CpuId(1), name, context, kind };
//! report.count(name, false);
//! // As its consumer sees it:
//! assert_eq!(names.text(event.context.comm), "ui");
//! assert!(matches!(event.kind, TraceEventKind::Idle { state: Some(1), .. }));
//! assert_eq!(report.counts(&names).next().unwrap().0, "cpu_idle");
//! ```

mod kind;
#[cfg(test)]
pub(crate) mod listing;
mod names;
mod rail;
mod report;

pub use kind::{EventTask, FrameSpan, Left, TraceEventKind};
pub use names::{NameId, Names};
pub use rail::PowerRail;
pub use report::{
    CpuLosses, Damage, EventCount, Missing, Place, SourceFault, SourceReport, StartingThread,
    TraceHeader,
};

use schedtwin_types::{CpuId, Ns};

/// CPUs that a trace may speak of, as many as the largest machines have.
pub const CPUS_MAX: usize = 1024;

/// How far times may go back from one event to the next: recorders merge the buffers of CPUs by their stamps, which
/// are out of step by this much at most. More is damage.
pub const STEP_BACK_MAX_NS: Ns = 1_000_000;

/// The level at which the recording CPU executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupt {
    /// The task itself, or a kernel path in its name.
    Task,
    /// A softirq.
    Softirq,
    /// A hardware interrupt, or an NMI.
    Hardirq,
    /// The file does not say: `trace-cmd report` without `-l`, `perf script`.
    #[default]
    Unknown,
}

/// The state in which the CPU was that recorded an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventContext {
    /// The thread that ran; 0 is the idle task.
    pub pid: u32,
    /// Its process, where the event or the file says so.
    pub tgid: Option<u32>,
    /// The thread's name as the event gives it: `<idle>` for the idle task in ftrace text, [`NameId::NONE`] where the
    /// format has none.
    pub comm: NameId,
    /// Whether an interrupt was being handled.
    pub interrupt: Interrupt,
    /// The running task was to be switched away from (`TIF_NEED_RESCHED`).
    pub need_resched: bool,
    /// Interrupts were disabled; `None` where the file does not say.
    pub irqs_off: Option<bool>,
    /// Depth of disabled preemption; `None` where the file does not say.
    pub preempt_count: Option<u8>,
}

/// One event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When, in ns of the trace's clock ([`TraceHeader::clock`]).
    pub at: Ns,
    /// The CPU that recorded it; not always the one that the event speaks of.
    pub cpu: CpuId,
    /// The tracepoint's name, as the file spells it.
    pub name: NameId,
    /// The context that ran there.
    pub context: EventContext,
    /// The event itself.
    pub kind: TraceEventKind,
}

/// A recording that is being read.
///
/// Implemented once for each format. Memory grows with tasks, CPUs and names, not with events.
pub trait TraceSource {
    /// The next event, `None` at the end. After an error or the end there are no more.
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault>;

    /// The text of all names that events have used so far.
    fn names(&self) -> &Names;

    /// Returns the header: the file's data beside its events, as far as it has been read.
    fn header(&self) -> &TraceHeader;

    /// Returns the counts of events read and the faults found so far.
    fn report(&self) -> &SourceReport;
}

impl<S: TraceSource + ?Sized> TraceSource for Box<S> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        (**self).next_event()
    }

    fn names(&self) -> &Names {
        (**self).names()
    }

    fn header(&self) -> &TraceHeader {
        (**self).header()
    }

    fn report(&self) -> &SourceReport {
        (**self).report()
    }
}
