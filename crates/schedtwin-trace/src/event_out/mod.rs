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
//! An event has the fields of its tracepoint that [`crate::event::TraceEventKind`] keeps, as the table of tracepoints
//! ([`crate::tracepoint::table`]) has them; fields and events that nothing here reads are lost, and [`Written`] counts them.
//! Nothing is filled in: a name that text cannot be without is `<...>`, as ftrace has it, and the thread that a CPU ran
//! before, where the source does not tell it, has the number −1.

mod perfetto;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod trace_dat;

pub use perfetto::EventPerfetto;
pub use tables::{EventTables, TableFormat};
pub use text::EventText;
pub use trace_dat::EventTraceDat;

use crate::event::{
    NameId, Names, SourceFault, TraceEvent, TraceEventKind, TraceHeader, TraceSource,
};
use crate::tracepoint::row::{Tracepoint, Values};
use crate::tracepoint::table::TRACEPOINTS;
use schedtwin_types::CpuId;
use std::io;

/// Takes the events of a source, in their order.
pub trait EventSink {
    /// Writes an event; `false`: the format has no place for it.
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool>;
    /// Writes what is left and puts the files in their place. By then the header is whole.
    fn finish(self: Box<Self>, header: &TraceHeader) -> io::Result<()>;
}

/// The outcome of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events written.
    pub events: u64,
    /// Events that are not, by tracepoint: the most first.
    pub dropped: Vec<(String, u64)>,
    /// CPUs whose buffer begins behind the first event, which the format cannot say.
    pub late: Vec<CpuId>,
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
        if event.kind == TraceEventKind::Begins {
            if written.events > 0 {
                written.late.push(event.cpu);
            }
            continue;
        }
        let name = event.name.index();
        if name >= dropped.len() {
            dropped.resize(name + 1, 0);
        }
        dropped[name] += 1;
    }
    sink.finish(source.header()).map_err(Failed::Write)?;
    for (name, count) in dropped.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        written.dropped.push((source.names().text(NameId(name as u32)).to_owned(), count));
    }
    written.dropped.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    Ok(written)
}

/// A name that is not known, as ftrace prints it.
const UNKNOWN: &str = "<...>";

/// An event as the writers take it.
enum Taken {
    /// Text of a program.
    Mark(String),
    /// The values of a tracepoint's fields.
    Row(&'static Tracepoint, Values),
    /// Neither: it is written in another way, or not at all.
    Other,
}

/// Finds the rows of events in the table of tracepoints.
#[derive(Clone, Debug, Default)]
struct Rows {
    /// By the number of their name; `None`: not looked up yet.
    by_name: Vec<Option<Option<&'static Tracepoint>>>,
}

impl Rows {
    /// Takes an event: by the row of its name; where that is not usable or of another kind, by the first usable row of its
    /// kind.
    fn take(
        &mut self,
        event: &TraceEvent,
        names: &Names,
        usable: fn(&Tracepoint) -> bool,
    ) -> Taken {
        if let Some(mark) = mark(&event.kind, names) {
            return Taken::Mark(mark);
        }
        let index = event.name.index();
        if index >= self.by_name.len() {
            self.by_name.resize(index + 1, None);
        }
        let of_name = self.by_name[index]
            .get_or_insert_with(|| Tracepoint::named_or_vector(names.text(event.name)));
        let mut values = Values::default();
        let mut takes = |row: &Tracepoint| {
            !row.is_mark() && usable(row) && (row.take)(&event.kind, &mut values)
        };
        let row = match *of_name {
            Some(row) if takes(row) => Some(row),
            Some(mark) if mark.is_mark() && usable(mark) => None,
            _ if event.kind == TraceEventKind::Other => None,
            _ => TRACEPOINTS.iter().find(|row| takes(row)),
        };
        match (row, event.kind) {
            (Some(row), _) => Taken::Row(row, values),
            // As devlib marks it.
            (None, TraceEventKind::Frequency { cpu, khz }) => {
                Taken::Mark(format!("cpu_frequency: state={khz} cpu_id={}", cpu.0))
            }
            (None, _) => Taken::Other,
        }
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
