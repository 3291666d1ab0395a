// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads trace text: the kernel's own, what `trace-cmd report`, atrace and `perf script` print, and systrace's HTML.
//!
//! [`FtraceSource`] streams a file line by line: `line` and `latency` take the head of a line apart, `event` its
//! arguments, `html` finds the trace within a page. Memory grows with names, not with lines.
//!
//! **What is tolerated, and counted.** Unknown events; lines that are no trace lines (the text that a
//! program wrote into the trace may hold line feeds, and reports begin with headings); lost events
//! (`CPU:3 [LOST 12 EVENTS]`); a last line that ends in its middle, as in a trace that was cut, with a line feed or without.
//! **What is damage.** An event of the scheduler without its fields, and a time that goes back by more than
//! a CPU's buffer can be out of step: the work that follows from them would be wrong. All damage of a file is told,
//! the first 20 with their line.
//! **What is refused.** Text without any trace line, the latency format when it is verbose, and times that are differences
//! (`perf script --deltatime`).
//!
//! ```
//! use schedtwin_trace::event::{TraceEventKind, TraceSource};
//! use schedtwin_trace::ftrace_read::FtraceSource;
//!
//! let text = "# tracer: nop\n\
//!     ui-7 [001] d..2 5.000001: sched_switch: prev_comm=ui prev_pid=7 prev_prio=120 \
//!     prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
//! let mut source = FtraceSource::new(text.as_bytes());
//! let event = source.next_event()?.unwrap();
//! assert_eq!((event.at, source.names().text(event.context.comm)), (5_000_001_000, "ui"));
//! assert!(matches!(event.kind, TraceEventKind::Switch { .. }));
//! assert!(source.next_event()?.is_none());
//! assert_eq!((source.report().events, source.report().foreign), (1, 0));
//! # Ok::<(), schedtwin_trace::event::SourceFault>(())
//! ```

mod event;
mod html;
mod latency;
mod line;
#[cfg(test)]
mod tests;

use line::{CPU_BEYOND, NO_CPU};
pub use line::{Fields, Line, parse_line};

use crate::event::{
    CPUS_MAX, Missing, NameId, Names, Place, STEP_BACK_MAX_NS, SourceFault, SourceReport,
    TraceEvent, TraceEventKind, TraceHeader, TraceSource,
};
use crate::tracepoint::row::Tracepoint;
use html::Page;
use schedtwin_types::{CpuId, Ns};
use std::borrow::Cow;
use std::io::{self, BufRead};

/// Bytes of a line that are looked at: a page, more than the kernel's buffer holds of one event.
const LINE_MAX: usize = 4096;

/// Bytes that are read in search of the first trace line, and at most of any line: whatever has none so far is no trace,
/// and may have no end.
const SEARCH_MAX: u64 = 64 << 20;

/// Of so many events one may be earlier than the one before it: a trace has fewer, differences of times have more. Fewer
/// events than the second number tell nothing.
const DISORDERED_PART: u64 = 8;
const DISORDERED_LEAST: u64 = 64;

/// Trace text, being read.
pub struct FtraceSource<R> {
    input: R,
    names: Names,
    header: TraceHeader,
    report: SourceReport,
    /// The line.
    bytes: Vec<u8>,
    /// Bytes in front of the first trace line.
    searched: u64,
    first_foreign: Option<String>,
    /// The latest time.
    latest: Ns,
    /// Rows of the table of tracepoints, by the number of their name; `None`: not looked up yet.
    rows: Vec<Option<Option<&'static Tracepoint>>>,
    page: Page,
    /// Of each CPU: its buffer begins, which its next event tells the time of; or it has lost that many events.
    notes: Vec<Option<TraceEventKind>>,
    /// An event that follows a note on its CPU.
    pending: Option<TraceEvent>,
    /// A fault of the latest trace line. If no other follows, the file was cut within it.
    latest_fault: Option<(NameId, Place, String)>,
    /// Events of CPUs that the twin has not, and which damage of the report tells them.
    beyond: u64,
    beyond_damage: usize,
    /// Events in the buffer, as the heading tells it.
    entries: Option<u64>,
    ended: bool,
}

/// A line that was read.
enum Read1 {
    Event(TraceEvent),
    Skipped,
    End,
}

impl<R: BufRead> FtraceSource<R> {
    /// Reads that text.
    pub fn new(input: R) -> FtraceSource<R> {
        FtraceSource {
            input,
            names: Names::new(),
            header: TraceHeader { format: "ftrace text", ..TraceHeader::default() },
            report: SourceReport::default(),
            bytes: Vec::with_capacity(LINE_MAX),
            searched: 0,
            first_foreign: None,
            latest: 0,
            rows: Vec::new(),
            page: Page::Unknown,
            notes: Vec::new(),
            pending: None,
            latest_fault: None,
            beyond: 0,
            beyond_damage: 0,
            entries: None,
            ended: false,
        }
    }

    fn read_line(&mut self, bytes: &mut Vec<u8>) -> Result<Read1, SourceFault> {
        let length = next_line(&mut self.input, bytes)?;
        if length == 0 {
            return Ok(Read1::End);
        }
        self.report.pieces += 1;
        if self.report.events == 0 || length >= SEARCH_MAX {
            self.searched += length;
            if length >= SEARCH_MAX || self.searched >= SEARCH_MAX {
                let (line, mib) = (self.report.pieces, SEARCH_MAX >> 20);
                let why = format!("line {line}: {mib} MiB without a trace line");
                return Err(no_trace(self.first_foreign.take().unwrap_or(why)));
            }
        }
        // A name that the kernel cut at 15 bytes may end inside a character.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        // Only the last line can lack its end, or one that is longer than what is looked at.
        let ended = bytes.last() == Some(&b'\n') || bytes.len() == LINE_MAX;
        let text = text.trim_ascii_end();
        let Some(text) = self.page.trace_text(text, &mut self.header) else {
            return Ok(Read1::Skipped);
        };
        if text.is_empty() || self.is_heading(text)? {
            return Ok(Read1::Skipped);
        }
        self.trace_line(text, ended)
    }

    fn trace_line(&mut self, text: &str, ended: bool) -> Result<Read1, SourceFault> {
        let line = match parse_line(text) {
            Ok(line) => line,
            Err(_) if !ended => {
                self.report.cut = 1;
                return Ok(Read1::Skipped);
            }
            Err(CPU_BEYOND) => {
                self.beyond();
                return Ok(Read1::Skipped);
            }
            Err(NO_CPU) if self.report.events == 0 && latency::is_verbose(text) => {
                return Err(SourceFault::Unusable(VERBOSE.to_owned()));
            }
            Err(why) => {
                self.report.foreign += 1;
                let line = self.report.pieces;
                self.first_foreign.get_or_insert_with(|| format!("line {line}: {why}"));
                return Ok(Read1::Skipped);
            }
        };
        self.flush_fault();
        let name = self.names.intern(line.event);
        let kind = self.kind(&line, name);
        let place = Place::Line(self.report.pieces);
        if line.at.saturating_add(STEP_BACK_MAX_NS) < self.latest {
            self.report.count(name, true);
            let by = (self.latest - line.at) / 1000;
            self.report.damage(place, format!("the time goes back by {by} us"));
            return Ok(Read1::Skipped);
        }
        let kind = match kind {
            Ok(kind) => kind,
            Err(_) if !ended => {
                self.report.cut = 1;
                return Ok(Read1::Skipped);
            }
            Err(what) => {
                self.latest_fault = Some((name, place, what));
                return Ok(Read1::Skipped);
            }
        };
        let cpu = CpuId(line.cpu as u16);
        if line.event.starts_with("PERF_RECORD_LOST") {
            let digits = line.arguments.split(|c: char| !c.is_ascii_digit());
            let events = digits.filter_map(|word| word.parse().ok()).next();
            self.report.lose(Some(cpu), events);
            self.note(cpu, TraceEventKind::Lost { events });
            return Ok(Read1::Skipped);
        }
        self.report.count(name, kind == TraceEventKind::Other);
        self.report.disordered += u64::from(line.at < self.latest);
        self.latest = self.latest.max(line.at);
        let context = line.context(self.names.intern(line.comm));
        Ok(Read1::Event(TraceEvent { at: line.at, cpu, name, context, kind }))
    }

    /// Counts an event of a CPU that the twin has not. It is damage, told once: it is missing in the middle of the work.
    fn beyond(&mut self) {
        self.flush_fault();
        let line = self.report.pieces;
        self.beyond += 1;
        if self.beyond == 1 {
            self.first_foreign.get_or_insert_with(|| format!("line {line}: {CPU_BEYOND}"));
            self.beyond_damage = self.report.damages.len();
            self.report.damage(Place::Line(line), beyond_text(1));
        }
    }

    /// The line with a fault was not the last one: it is damage.
    fn flush_fault(&mut self) {
        if let Some((name, place, what)) = self.latest_fault.take() {
            self.report.count(name, true);
            self.report.damage(place, what);
        }
    }

    /// The end: the only fault of a file, in its last line, is where it was cut.
    fn end(&mut self) {
        let only = self.report.events > 0 && self.report.damage_count == 0;
        if only && self.latest_fault.take().is_some() {
            self.report.cut = 1;
        }
        self.flush_fault();
        if let Some(damage) =
            self.report.damages.get_mut(self.beyond_damage).filter(|_| self.beyond > 1)
        {
            damage.what = beyond_text(self.beyond);
        }
        if self.report.disordered > self.report.events / DISORDERED_PART
            && self.report.events >= DISORDERED_LEAST
        {
            let (back, events) = (self.report.disordered, self.report.events);
            let what = format!(
                "{back} of {events} times are earlier than the one before: they are differences, not times \
                 (perf script without --deltatime prints times)"
            );
            self.report.damage(Place::Line(self.report.pieces), what);
        }
        if self.report.cut > 0 {
            let read = self.report.events;
            let missing = self.entries.map_or(0, |entries| entries.saturating_sub(read));
            self.report.missing = (missing > 0).then_some(Missing::Events(missing));
        }
    }

    /// Returns the event of a line, or the name of the field of a known event that cannot be read.
    fn kind(&mut self, line: &Line<'_>, name: NameId) -> Result<TraceEventKind, String> {
        if name.index() >= self.rows.len() {
            self.rows.resize(name.index() + 1, None);
        }
        match self.rows[name.index()].get_or_insert_with(|| Tracepoint::named(line.event)) {
            Some(row) => event::read(row, line.event, line.arguments, &mut self.names),
            None => Ok(TraceEventKind::Other),
        }
    }

    /// Whether a line is a comment or a heading; those that tell of lost events are counted.
    fn is_heading(&mut self, text: &str) -> Result<bool, SourceFault> {
        // Most lines begin with spaces.
        if !matches!(text.as_bytes()[0], b'#' | b'C' | b'T' | b'c' | b'f' | b't' | b'v') {
            return Ok(false);
        }
        let number = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
        if let Some(comment) = text.strip_prefix('#') {
            let comment = comment.trim_start_matches(['#', ' ']);
            if let Some(entries) = comment.strip_prefix("entries-in-buffer/entries-written:") {
                if let Some((kept, written)) = entries.split_once('/')
                    && let (Some(kept), Some(written)) = (number(kept), number(written))
                {
                    self.entries = Some(kept);
                    if written > kept {
                        self.report.lose(None, Some(written - kept));
                    }
                }
                let cpus = entries.split_once("#P:").and_then(|(_, cpus)| number(cpus));
                self.header.nr_cpus = cpus.map(|cpus| cpus as usize).or(self.header.nr_cpus);
            } else if let Some(rest) = comment.strip_prefix("CPU ")
                && rest.contains("buffer started")
                && let Some(cpu) = number(rest).filter(|cpu| *cpu < CPUS_MAX as u64)
            {
                self.note(CpuId(cpu as u16), TraceEventKind::Begins);
            }
            return Ok(true);
        }
        // `CPU:3 [LOST 123 EVENTS]` of the kernel, `CPU:3 [123 EVENTS DROPPED]` of trace-cmd.
        if text.starts_with("CPU")
            && let Some(bracket) = text.find('[')
            && (text.contains("LOST") || text.contains("DROPPED"))
        {
            let words = text[bracket..].split(|c: char| !c.is_ascii_digit());
            let events = words.filter_map(|word| word.parse::<u64>().ok()).next();
            let cpu = text[3..bracket].trim_matches([':', ' ']).parse::<u16>().ok();
            let cpu = cpu.filter(|cpu| usize::from(*cpu) < CPUS_MAX).map(CpuId);
            self.report.lose(cpu, events);
            if let Some(cpu) = cpu {
                self.note(cpu, TraceEventKind::Lost { events });
            }
            return Ok(true);
        }
        if let Some(cpus) = text.strip_prefix("cpus=") {
            self.header.nr_cpus = number(cpus).map(|cpus| cpus as usize);
            self.header.tool = Some("trace-cmd report".to_owned());
        }
        Ok(["cpus=", "version = ", "trace-cmd version", "CPU ", "file:", "TRACE:"]
            .iter()
            .any(|heading| text.starts_with(heading)))
    }

    /// Notes a fact about a CPU's buffer; it is told with the CPU's next event.
    fn note(&mut self, cpu: CpuId, what: TraceEventKind) {
        if cpu.index() >= self.notes.len() {
            self.notes.resize(cpu.index() + 1, None);
        }
        self.notes[cpu.index()] = Some(what);
    }
}

impl<R: BufRead> TraceSource for FtraceSource<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        if let Some(event) = self.pending.take() {
            return Ok(Some(event));
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let result = loop {
            if self.ended {
                break Ok(None);
            }
            match self.read_line(&mut bytes) {
                Ok(Read1::Event(event)) => break Ok(Some(event)),
                Ok(Read1::Skipped) => {}
                Ok(Read1::End) => {
                    self.ended = true;
                    self.end();
                    if self.report.events == 0 {
                        let first = self.first_foreign.take();
                        let without = match self.page {
                            Page::Unknown | Page::None => "it has no trace line",
                            _ => "it is a page without a trace in it",
                        };
                        break Err(no_trace(first.unwrap_or(without.to_owned())));
                    }
                }
                Err(fault) => {
                    self.ended = true;
                    break Err(fault);
                }
            }
        };
        self.bytes = bytes;
        let event = result?;
        if let Some(event) = event
            && let Some(note) = self.notes.get_mut(event.cpu.index())
            && let Some(kind) = note.take()
        {
            self.pending = Some(event);
            return Ok(Some(TraceEvent { kind, name: NameId::NONE, ..event }));
        }
        Ok(event)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn report(&self) -> &SourceReport {
        &self.report
    }
}

const VERBOSE: &str = "it is in the kernel's verbose latency format: switch the option verbose off \
    (echo 0 > options/verbose) and read the trace again";

fn beyond_text(events: u64) -> String {
    format!(
        "{events} event{} of CPUs from {CPUS_MAX} on; the twin has at most {CPUS_MAX} CPUs: record fewer \
         (trace-cmd record -M MASK, or tracing_cpumask)",
        if events == 1 { "" } else { "s" }
    )
}

fn no_trace(why: String) -> SourceFault {
    SourceFault::Unusable(format!("it is not ftrace text: {why}"))
}

/// Reads a line, of which at most [`LINE_MAX`] bytes are kept. Returns its length: 0 at the end, [`SEARCH_MAX`] where no
/// end of the line was found so far.
fn next_line(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u64> {
    bytes.clear();
    let mut length = 0;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = memchr::memchr(b'\n', available).map(|at| at + 1);
        let used = end.unwrap_or(available.len());
        let kept = used.min(LINE_MAX - bytes.len());
        bytes.extend_from_slice(&available[..kept]);
        input.consume(used);
        length += used as u64;
        if end.is_some() || used == 0 || length >= SEARCH_MAX {
            return Ok(length);
        }
    }
}
