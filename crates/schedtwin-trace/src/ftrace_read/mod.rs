// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads ftrace text: the kernel's own, and what `trace-cmd report` prints.
//!
//! [`read`] streams a file line by line and hands over what the scheduler's events say
//! ([`Event`], see `event`); `line` takes the head of a line apart. Memory does not grow with the file.
//!
//! **What is tolerated, and counted.** Unknown events; lines that are no trace lines (the text that a
//! program wrote into the trace may hold line feeds, and reports begin with headings); `[LOST n EVENTS]`;
//! a last line that ends in its middle, as in a trace that was cut.
//! **What is a fault.** A scheduler event without its fields, and a time that goes back by more than
//! a CPU's buffer can be out of step: the work that follows from them would be wrong. All faults of a file are told,
//! the first [`FAULTS_KEPT`] with their line.
//!
//! ```
//! use schedtwin_trace::ftrace_read::{Event, read};
//! use std::ops::ControlFlow;
//!
//! let text = "# tracer: nop\n\
//!     ui-7 [001] d..2 5.000001: sched_switch: prev_comm=ui prev_pid=7 prev_prio=120 \
//!     prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
//! let mut switches = 0;
//! let summary = read(text.as_bytes(), &mut |line, event| {
//!     switches += u32::from(matches!(event, Event::Switch { .. }));
//!     assert_eq!(line.at, 5_000_001_000);
//!     ControlFlow::Continue(())
//! }).unwrap();
//! assert_eq!((switches, summary.events), (1, 1));
//! ```

mod event;
mod line;
mod packed;
#[cfg(test)]
mod tests;

pub use event::{Event, Left, Named, parse_event};
pub use line::{CPUS_MAX, Context, Fields, Line, parse_line};

pub use packed::{open, unpack};

use schedtwin_types::Ns;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;

/// Faults that are kept; more are only counted.
pub const FAULTS_KEPT: usize = 20;

/// Bytes of a line that are looked at: a page, more than the kernel's buffer holds of one event.
const LINE_MAX: usize = 4096;

/// Bytes that are read in search of the first trace line, and at most of any line: whatever has none so far is no trace,
/// and may have no end.
const SEARCH_MAX: u64 = 64 << 20;

/// Names of events that are kept apart: a kernel has some 2000, a trace tens.
const NAMES_KEPT: usize = 4096;

/// How far times may go back: lines of several CPUs are merged by their stamps, but a program that
/// copied traces together by hand would give any order.
const STEP_BACK_MAX_NS: Ns = 1_000_000;

/// What a file held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Lines.
    pub lines: u64,
    /// Trace lines, of whatever event.
    pub events: u64,
    /// Trace lines of events that nobody here reads.
    pub unknown: u64,
    /// Those by the event's name, as far as the first 4096 names go.
    pub unknown_by_name: BTreeMap<String, u64>,
    /// 1 if the last line is cut in its middle; it is not among the events.
    pub cut: u64,
    /// Lines that are no trace lines, comments and the known headings apart.
    pub foreign: u64,
    /// Events that the recorder says it lost: `[LOST n EVENTS]`, and entries that were overwritten.
    pub lost: u64,
    /// Times the recorder lost events without saying how many.
    pub lost_uncounted: u64,
}

impl Summary {
    fn unused(&mut self, event: &str) {
        self.unknown += 1;
        if let Some(count) = self.unknown_by_name.get_mut(event) {
            *count += 1;
        } else if self.unknown_by_name.len() < NAMES_KEPT {
            self.unknown_by_name.insert(event.to_owned(), 1);
        }
    }
}

/// A line that does not say what its event should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// 1-based.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum Fault {
    /// It cannot be read.
    Io(io::Error),
    /// Lines of known events are damaged: the first ones, and how many there are.
    Lines(Vec<BadLine>, u64),
    /// It holds no trace line at all; what the first line lacks.
    NotATrace(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => write!(f, "{error}"),
            Fault::NotATrace(why) => write!(f, "it is not ftrace text: {why}"),
            Fault::Lines(bad, count) => {
                for (at, bad) in bad.iter().enumerate() {
                    write!(f, "{}{bad}", if at > 0 { "\n" } else { "" })?;
                }
                match count - bad.len() as u64 {
                    0 => Ok(()),
                    more => write!(f, "\nand {more} more lines"),
                }
            }
        }
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// Text ends where it ends; only packed data can end too early.
    fn of_reading(error: io::Error) -> Fault {
        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
        Fault::Io(if cut { cut_short() } else { error })
    }
}

fn cut_short() -> io::Error {
    io::Error::other("the file is cut short: its packed data ends too early")
}

/// Reads a trace and hands over each trace line with what it says, until `see` breaks off.
pub fn read(
    mut input: impl BufRead,
    see: &mut dyn FnMut(&Line<'_>, Event<'_>) -> ControlFlow<()>,
) -> Result<Summary, Fault> {
    let mut summary = Summary::default();
    let mut bad: Vec<BadLine> = Vec::new();
    let mut bad_count = 0;
    let mut first_foreign: Option<String> = None;
    let mut latest: Ns = 0;
    let mut bytes = Vec::with_capacity(LINE_MAX);
    let mut searched = 0;
    loop {
        let length = next_line(&mut input, &mut bytes).map_err(Fault::of_reading)?;
        if length == 0 {
            break;
        }
        summary.lines += 1;
        searched += length;
        if length >= SEARCH_MAX || (summary.events == 0 && searched >= SEARCH_MAX) {
            let mib = SEARCH_MAX >> 20;
            let why = format!("line {}: {mib} MiB without a trace line", summary.lines);
            return Err(Fault::NotATrace(first_foreign.unwrap_or(why)));
        }
        // A name that the kernel cut at 15 bytes may end inside a character.
        let text = String::from_utf8_lossy(&bytes);
        // Only the last line can lack its end, or one that is longer than what is looked at.
        let ended = bytes.last() == Some(&b'\n') || bytes.len() == LINE_MAX;
        let text = text.trim_end();
        if text.is_empty() || is_heading(text, &mut summary) {
            continue;
        }
        let line = match parse_line(text) {
            Ok(line) => line,
            Err(_) if !ended => {
                summary.cut = 1;
                continue;
            }
            Err(why) => {
                summary.foreign += 1;
                first_foreign.get_or_insert_with(|| format!("line {}: {why}", summary.lines));
                continue;
            }
        };
        summary.events += 1;
        let fault = match parse_event(&line) {
            _ if line.at.saturating_add(STEP_BACK_MAX_NS) < latest => {
                format!("the time goes back by {} us", (latest - line.at) / 1000)
            }
            Ok(event) => {
                latest = latest.max(line.at);
                if event == Event::Other {
                    summary.unused(line.event);
                }
                if see(&line, event).is_break() {
                    break;
                }
                continue;
            }
            Err(_) if !ended => {
                summary.events -= 1;
                summary.cut = 1;
                continue;
            }
            Err(fault) => fault,
        };
        bad_count += 1;
        if bad.len() < FAULTS_KEPT {
            bad.push(BadLine { line: summary.lines, what: fault });
        }
    }
    if bad_count > 0 {
        return Err(Fault::Lines(bad, bad_count));
    }
    if summary.events == 0 {
        return Err(Fault::NotATrace(first_foreign.unwrap_or("it has no trace line".to_owned())));
    }
    Ok(summary)
}

/// Reads a line, of which at most [`LINE_MAX`] bytes are kept. Returns its length: 0 at the end, [`SEARCH_MAX`] where no
/// end of the line was found so far.
fn next_line(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u64> {
    bytes.clear();
    let mut length = input.by_ref().take(LINE_MAX as u64).read_until(b'\n', bytes)? as u64;
    if bytes.len() == LINE_MAX && bytes.last() != Some(&b'\n') {
        length += input.by_ref().take(SEARCH_MAX - length).skip_until(b'\n')? as u64;
    }
    Ok(length)
}

/// Whether a line is a comment or a heading; those that tell of lost events are counted.
fn is_heading(text: &str, summary: &mut Summary) -> bool {
    if let Some(comment) = text.strip_prefix('#') {
        let entries = comment.trim_start().strip_prefix("entries-in-buffer/entries-written:");
        if let Some((kept, written)) = entries.and_then(|e| e.split_once('/')) {
            let number = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
            if let (Some(kept), Some(written)) = (number(kept), number(written)) {
                summary.lost = summary.lost.saturating_add(written.saturating_sub(kept));
            }
        }
        return true;
    }
    if text.starts_with("CPU") && text.contains('[') {
        // `CPU:3 [LOST 123 EVENTS]` of the kernel, `CPU:3 [123 EVENTS DROPPED]` of trace-cmd.
        if text.contains("LOST") || text.contains("DROPPED") {
            let words = text[text.find('[').unwrap_or(0)..].split(|c: char| !c.is_ascii_digit());
            match words.filter_map(|word| word.parse::<u64>().ok()).next() {
                Some(count) => summary.lost = summary.lost.saturating_add(count),
                None => summary.lost_uncounted += 1,
            }
            return true;
        }
    }
    ["cpus=", "version = ", "trace-cmd version", "CPU ", "file:", "TRACE:"]
        .iter()
        .any(|heading| text.starts_with(heading))
}
