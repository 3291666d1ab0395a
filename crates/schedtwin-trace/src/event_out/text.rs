// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as ftrace text: the kernel's own lines, with nanoseconds.
//!
//! ```text
//! cpus=2
//!               ui-7       [001] dNh2. 5.000001250: sched_waking: comm=render pid=9 prio=120 target_cpu=000
//! ```
//!
//! The group of flags is left out where the source does not tell whether an interrupt was handled, as `trace-cmd report`
//! does, so that a reader does not take "unknown" for "no".

use super::{EventSink, Rows, Taken, UNKNOWN};
use crate::event::{Interrupt, Left, NameId, Names, TraceEvent, TraceEventKind, TraceHeader};
use crate::tracepoint::row::{ABSENT, Field, MACHINE_SUSPEND, Tracepoint, Type, Values};
use crate::{AtomicFile, Destination};
use schedtwin_types::printable;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

/// Writes events as text.
pub struct EventText<W: Destination> {
    out: BufWriter<W>,
    line: String,
    rows: Rows,
}

impl EventText<AtomicFile> {
    /// A file that appears when it is finished.
    pub fn create(path: &std::path::Path, nr_cpus: usize) -> io::Result<EventText<AtomicFile>> {
        EventText::new(AtomicFile::create(path)?, nr_cpus)
    }
}

impl<W: Destination> EventText<W> {
    /// Begins a text of so many CPUs.
    pub fn new(out: W, nr_cpus: usize) -> io::Result<EventText<W>> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        writeln!(out, "cpus={nr_cpus}")?;
        Ok(EventText { out, line: String::new(), rows: Rows::default() })
    }

    /// `comm-pid [cpu] flags time: name: `.
    fn begin(&mut self, event: &TraceEvent, names: &Names) {
        let context = &event.context;
        let comm = match names.text(context.comm) {
            "" if context.pid == 0 => "<idle>",
            "" => UNKNOWN,
            comm => comm,
        };
        // A thread chooses its name, and the text is for terminals.
        let comm = printable::line(comm);
        let _ = write!(self.line, "{comm:>16}-{:<7} ", context.pid);
        if let Some(tgid) = context.tgid {
            let _ = write!(self.line, "({tgid:>7}) ");
        }
        let _ = write!(self.line, "[{:03}] ", event.cpu.0);
        let level = match context.interrupt {
            Interrupt::Task => Some('.'),
            Interrupt::Softirq => Some('s'),
            Interrupt::Hardirq => Some('h'),
            Interrupt::Unknown => None,
        };
        if let Some(level) = level {
            let irqs = if context.irqs_off == Some(true) { 'd' } else { '.' };
            let need = if context.need_resched { 'n' } else { '.' };
            let depth = context.preempt_count.unwrap_or(0).min(15);
            let depth = char::from_digit(depth.into(), 16).filter(|_| depth > 0).unwrap_or('.');
            let _ = write!(self.line, "{irqs}{need}{level}{depth}. ");
        }
        let (seconds, ns) = (event.at / 1_000_000_000, event.at % 1_000_000_000);
        let _ = write!(self.line, "{seconds}.{ns:09}: {}: ", names.text(event.name));
    }
}

/// Appends the fields of a tracepoint; `false`: text cannot be without one that is absent.
fn push_fields(line: &mut String, row: &Tracepoint, values: &Values, names: &Names) -> bool {
    let begin = line.len();
    for (field, value, _) in row.with_values(values) {
        let absent = value == ABSENT;
        match field.ty {
            Type::Behind => continue,
            Type::Target | Type::AnyCpu if absent => continue,
            Type::U16 | Type::Cpu | Type::Mask if absent => return false,
            _ => {}
        }
        push_label(line, field.label, line.len() == begin);
        push_value(line, field, value, names);
        match field.label.as_bytes()[0] {
            b'(' => line.push(')'),
            b'[' => line.push(']'),
            _ => {}
        }
    }
    true
}

/// Appends what stands before a value: a key and `=`, or literal text.
fn push_label(line: &mut String, label: &str, first: bool) {
    match label {
        _ if first || label.starts_with([' ', ':']) => {}
        "next_comm" => line.push_str(" ==> "),
        _ => line.push(' '),
    }
    line.push_str(label);
    if !label.ends_with(['(', ' ', '=']) {
        line.push('=');
    }
}

/// Appends a value as the kernel prints it.
fn push_value(line: &mut String, field: &Field, value: i64, names: &Names) {
    let name = || printable::line(names.text(NameId(value as u32)));
    let _ = match field.ty {
        Type::Unkept => write!(line, "{UNKNOWN}"),
        Type::Comm if value == ABSENT => write!(line, "{UNKNOWN}"),
        Type::PrevPid | Type::I32 if value == ABSENT => write!(line, "-1"),
        Type::Comm | Type::Text | Type::Reason => write!(line, "{}", name()),
        ty if ty.is_function() => write!(line, "{}", name()),
        Type::Hex | Type::Address | Type::Work => write!(line, "0x{value:x}"),
        Type::Time => write!(line, "{}", value as u64),
        Type::Target => write!(line, "{value:03}"),
        Type::State => write!(line, "{}", Left::of_bits(value as u64).letter()),
        Type::IdleState => write!(line, "{}", value as u32),
        Type::Below => write!(line, "{}", if value != 0 { "below" } else { "above" }),
        Type::Suspend => write!(line, "{MACHINE_SUSPEND}"),
        Type::Vector | Type::Callsite => write!(line, "0"),
        Type::Mask => {
            let _ = write!(line, "{:08x}", 1_u32 << (value % 32));
            (0..value / 32).try_for_each(|_| line.write_str(",00000000"))
        }
        _ => write!(line, "{value}"),
    };
}

impl<W: Destination> EventSink for EventText<W> {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        use TraceEventKind as Kind;
        self.line.clear();
        match event.kind {
            Kind::Lost { events: Some(events) } => {
                let _ = write!(self.line, "CPU:{} [LOST {events} EVENTS]", event.cpu.0);
            }
            Kind::Lost { events: None } => {
                let _ = write!(self.line, "CPU:{} [EVENTS DROPPED]", event.cpu.0);
            }
            Kind::Begins => {
                let _ = write!(self.line, "##### CPU {} buffer started ####", event.cpu.0);
            }
            _ => {
                self.begin(event, names);
                match self.rows.take(event, names, |_| true) {
                    Taken::Mark(mark) => self.line.push_str(&mark),
                    Taken::Row(row, values) => {
                        if !push_fields(&mut self.line, row, &values, names) {
                            return Ok(false);
                        }
                    }
                    Taken::Other => return Ok(false),
                }
            }
        }
        // A name with a line break would make two lines of one.
        let line = self.line.trim_end_matches('\n');
        match line.contains('\n') {
            true => writeln!(self.out, "{}", line.replace('\n', " "))?,
            false => writeln!(self.out, "{line}")?,
        }
        Ok(true)
    }

    fn finish(self: Box<Self>, _: &TraceHeader) -> io::Result<()> {
        self.out.into_inner().map_err(|error| error.into_error())?.commit()
    }
}
