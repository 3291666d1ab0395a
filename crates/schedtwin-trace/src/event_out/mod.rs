// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings out again: the events of any source as text, as tables, or for Perfetto.
//!
//! | writer | file | opened by |
//! |---|---|---|
//! | [`EventText`] | ftrace text as `trace-cmd report` prints it, with nanoseconds | grep, LISA, `schedtwin replay` |
//! | [`EventTables`] | a folder with a table for each tracepoint: CSV, Parquet or Arrow | pandas, polars, a spreadsheet |
//! | [`EventPerfetto`] | binary protobuf | ui.perfetto.dev, `schedtwin replay` |
//! | [`EventTraceDat`] | trace.dat of version 6 | trace-cmd, KernelShark, LISA, `schedtwin replay` |
//!
//! An event has the fields of its tracepoint that [`crate::event::TraceEventKind`] keeps ([`Fields`]); fields and events that
//! nothing here reads are lost, and [`Written`] counts them.

mod perfetto;
mod tables;
mod text;
mod trace_dat;

pub use perfetto::EventPerfetto;
pub use tables::{EventTables, TableFormat};
pub use text::EventText;
pub use trace_dat::EventTraceDat;

use crate::event::{
    EventTask, Left, NameId, Names, SourceFault, TraceEvent, TraceEventKind, TraceSource,
};
use schedtwin_types::CpuId;
use std::io;

/// Takes the events of a source, in their order.
pub trait EventSink {
    /// Writes an event; `false`: the format has no place for it.
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool>;
    /// Writes what is left and puts the files in their place.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// The outcome of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events written.
    pub events: u64,
    /// Events that are not, by tracepoint: the most first.
    pub dropped: Vec<(String, u64)>,
}

/// Why a recording was not converted.
#[derive(Debug)]
pub enum Failed {
    /// It cannot be read.
    Read(SourceFault),
    /// The result cannot be written.
    Write(io::Error),
}

/// Writes all events of a source to a sink.
pub fn write_events(
    source: &mut (impl TraceSource + ?Sized),
    mut sink: Box<dyn EventSink + '_>,
) -> Result<Written, Failed> {
    let mut written = Written::default();
    let mut dropped: Vec<u64> = Vec::new();
    while let Some(event) = source.next_event().map_err(Failed::Read)? {
        if sink.event(&event, source.names()).map_err(Failed::Write)? {
            written.events += 1;
            continue;
        }
        let name = event.name.index();
        if name >= dropped.len() {
            dropped.resize(name + 1, 0);
        }
        dropped[name] += 1;
    }
    sink.finish().map_err(Failed::Write)?;
    for (name, count) in dropped.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        written.dropped.push((source.names().text(NameId(name as u32)).to_owned(), count));
    }
    written.dropped.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    Ok(written)
}

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Number(i64),
    Hex(u64),
    /// A CPU in three digits.
    Cpu3(CpuId),
    Name(NameId),
    Word(&'static str),
}

/// The fields of an event by their names in the kernel's format, in its order.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(&'static str, Field)>);

impl Fields {
    fn number(&mut self, name: &'static str, value: impl Into<i64>) {
        self.0.push((name, Field::Number(value.into())));
    }

    fn hex(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Field::Hex(value)));
    }

    fn name(&mut self, name: &'static str, value: NameId) {
        self.0.push((name, Field::Name(value)));
    }

    fn word(&mut self, name: &'static str, value: &'static str) {
        self.0.push((name, Field::Word(value)));
    }

    fn task(&mut self, [comm, pid, prio]: [&'static str; 3], task: EventTask) {
        self.name(comm, task.comm);
        self.number(pid, task.pid);
        self.number(prio, task.prio);
    }

    fn woken(&mut self, task: EventTask, target: Option<CpuId>) {
        self.task(["comm", "pid", "prio"], task);
        if let Some(target) = target {
            self.0.push(("target_cpu", Field::Cpu3(target)));
        }
    }

    /// Fills in the fields of an event; `false`: it has none that are kept, or it is a mark of a program.
    fn fill(&mut self, kind: &TraceEventKind) -> bool {
        use TraceEventKind as Kind;
        self.0.clear();
        match *kind {
            Kind::Switch { prev: Some(prev), left, next } => {
                self.task(["prev_comm", "prev_pid", "prev_prio"], prev);
                self.word("prev_state", letter(left));
                self.task(["next_comm", "next_pid", "next_prio"], next);
            }
            Kind::Waking { task, target }
            | Kind::Wakeup { task, target }
            | Kind::WakeupNew { task, target } => self.woken(task, target),
            Kind::Migrate { task, from, to } => {
                self.task(["comm", "pid", "prio"], task);
                self.number("orig_cpu", from.0);
                self.number("dest_cpu", to.0);
            }
            Kind::Fork { parent, child_comm, child } => {
                self.word("comm", "parent");
                self.number("pid", parent);
                self.name("child_comm", child_comm);
                self.number("child_pid", child);
            }
            Kind::Exit { pid } | Kind::Free { pid } => {
                self.word("comm", "exited");
                self.number("pid", pid);
                self.number("prio", 120);
            }
            Kind::Exec { pid, old_pid } => {
                self.word("filename", "-");
                self.number("pid", pid);
                self.number("old_pid", old_pid);
            }
            Kind::NewTask { pid, comm, clone_flags } => {
                self.number("pid", pid);
                self.name("comm", comm);
                self.hex("clone_flags", clone_flags);
            }
            Kind::Rename { pid, comm } => {
                self.number("pid", pid);
                self.word("oldcomm", "-");
                self.name("newcomm", comm);
                self.number("oom_score_adj", 0);
            }
            Kind::PiPriority { pid, from, to } => {
                self.word("comm", "-");
                self.number("pid", pid);
                self.number("oldprio", from);
                self.number("newprio", to);
            }
            Kind::Clamp { pid, min: Some(min), max: Some(max) } => {
                self.number("pid", pid);
                self.number("uclamp_min", min);
                self.number("uclamp_max", max);
            }
            Kind::Frequency { cpu, khz } => {
                self.number("state", khz);
                self.number("cpu_id", cpu.0);
            }
            Kind::FrequencyLimits { cpu, min_khz, max_khz } => {
                self.number("min", min_khz);
                self.number("max", max_khz);
                self.number("cpu_id", cpu.0);
            }
            Kind::Idle { cpu, state } => {
                self.number("state", state.unwrap_or(u32::MAX));
                self.number("cpu_id", cpu.0);
            }
            Kind::IdleMiss { cpu, state, below } => {
                self.number("cpu_id", cpu.0);
                self.number("state", state);
                self.word("type", if below { "below" } else { "above" });
            }
            Kind::IrqEntry { irq, handler } => {
                self.number("irq", irq);
                self.name("name", handler);
            }
            Kind::IrqExit { irq } => {
                self.number("irq", irq);
                self.word("ret", "handled");
            }
            Kind::SoftirqRaise { vector }
            | Kind::SoftirqEntry { vector }
            | Kind::SoftirqExit { vector } => self.number("vec", vector),
            Kind::HrtimerStart { timer, function, expires } => {
                self.hex("hrtimer", timer);
                self.name("function", function);
                self.number("expires", expires as i64);
            }
            Kind::HrtimerCancel { timer } | Kind::HrtimerDone { timer } => {
                self.hex("hrtimer", timer);
            }
            Kind::HrtimerExpire { timer, function } => {
                self.hex("hrtimer", timer);
                self.name("function", function);
            }
            Kind::TimerCancel { timer } | Kind::TimerDone { timer } => self.hex("timer", timer),
            Kind::TimerExpire { timer, function } => {
                self.hex("timer", timer);
                self.name("function", function);
            }
            Kind::Suspend { begins } => {
                self.word("action", "machine_suspend");
                self.number("val", 3);
                self.number("start", u32::from(begins));
            }
            Kind::BlockedReason { pid, io_wait } => {
                self.number("pid", pid);
                self.number("iowait", io_wait);
            }
            _ => return false,
        }
        true
    }
}

/// The letter of a state, as `prev_state` has it.
fn letter(left: Left) -> &'static str {
    match left {
        Left::Runnable => "R",
        Left::Asleep => "S",
        Left::Blocked => "D",
        Left::Dead => "X",
    }
}

/// The text that a program wrote for a mark, as atrace does; `None`: it is none.
fn mark(kind: &TraceEventKind, names: &Names) -> Option<String> {
    use TraceEventKind as Kind;
    Some(match *kind {
        Kind::SliceBegin { tgid, name } => format!("B|{tgid}|{}", names.text(name)),
        Kind::SliceEnd { tgid } => format!("E|{tgid}"),
        Kind::AsyncBegin { tgid, name, cookie } => {
            format!("S|{tgid}|{}|{cookie}", names.text(name))
        }
        Kind::AsyncEnd { tgid, name, cookie } => format!("F|{tgid}|{}|{cookie}", names.text(name)),
        Kind::Counter { tgid, name, value } => format!("C|{tgid}|{}|{value}", names.text(name)),
        Kind::Instant { tgid, name } => format!("I|{tgid}|{}", names.text(name)),
        _ => return None,
    })
}
