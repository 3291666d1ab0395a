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

use super::{EventSink, Field, Fields, mark};
use crate::event::{Interrupt, Names, TraceEvent, TraceEventKind};
use crate::{AtomicFile, Destination};
use schedtwin_types::printable;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

/// Writes events as text.
pub struct EventText<W: Destination> {
    out: BufWriter<W>,
    line: String,
    fields: Fields,
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
        Ok(EventText { out, line: String::new(), fields: Fields::default() })
    }

    /// `comm-pid [cpu] flags time: name: `.
    fn begin(&mut self, event: &TraceEvent, names: &Names) {
        let context = &event.context;
        let comm = match names.text(context.comm) {
            "" if context.pid == 0 => "<idle>",
            "" => "<...>",
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

/// A value as the kernel prints it.
fn push(line: &mut String, field: Field, names: &Names) {
    let _ = match field {
        Field::Number(value) => write!(line, "{value}"),
        Field::Hex(value) => write!(line, "0x{value:x}"),
        Field::Cpu3(cpu) => write!(line, "{:03}", cpu.0),
        Field::Name(name) => write!(line, "{}", printable::line(names.text(name))),
        Field::Word(word) => write!(line, "{word}"),
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
            Kind::VectorEntry { name } | Kind::VectorExit { name } => {
                self.begin(event, names);
                match names.text(event.name).starts_with("ipi_") {
                    true => drop(write!(self.line, "({})", names.text(name))),
                    false => self.line.push_str("vector=0"),
                }
            }
            Kind::IpiSend { to: Some(to), .. } if names.text(event.name) == "ipi_send_cpu" => {
                self.begin(event, names);
                let _ = write!(self.line, "cpu={}", to.0);
            }
            Kind::IpiSend { to: Some(to), reason } if names.text(event.name) == "ipi_raise" => {
                self.begin(event, names);
                let (word, bit) = (to.0 / 32, to.0 % 32);
                let _ = write!(self.line, "target_mask={:08x}", 1u32 << bit);
                (0..word).for_each(|_| self.line.push_str(",00000000"));
                let _ = write!(self.line, " ({})", names.text(reason));
            }
            Kind::WorkStart { work, function } => {
                self.begin(event, names);
                let _ =
                    write!(self.line, "work struct 0x{work:x}: function {}", names.text(function));
            }
            Kind::WorkEnd { work } => {
                self.begin(event, names);
                let _ = write!(self.line, "work struct 0x{work:x}");
            }
            kind => {
                self.begin(event, names);
                if let Some(mark) = mark(&kind, names) {
                    self.line.push_str(&mark);
                } else if self.fields.fill(&kind) {
                    for (index, (name, field)) in self.fields.0.iter().enumerate() {
                        let between = match *name {
                            _ if index == 0 => "",
                            "next_comm" => " ==> ",
                            _ => " ",
                        };
                        let _ = write!(self.line, "{between}{name}=");
                        push(&mut self.line, *field, names);
                    }
                } else {
                    return Ok(false);
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

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.into_inner().map_err(|error| error.into_error())?.commit()
    }
}
