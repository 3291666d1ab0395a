// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as a trace.dat, version 6: trace-cmd, KernelShark and LISA read it, and `schedtwin replay`.
//!
//! Algorithm:
//! 1. The first event of a tracepoint decides which fields its records have ([`records`]); an event that has others is left
//!    out and counted.
//! 2. Records go into pages of their CPU, which wait in a temporary file ([`pages`]). A loss begins a page that says so.
//! 3. The end writes the formats, the names of functions and strings, and then all pages CPU by CPU.
//!
//! What trace.dat has no place for stands in the option of `schedtwin record` (see `trace_dat::notes`): threads with their
//! processes, policies, clamps and affinities.
//!
//! Differences: addresses of functions and of strings that the source knows by name are made up, and named in
//! `kallsyms` and `printk_formats`. If the first event does not tell whether it interrupted something, none does: records
//! have no `common_flags`. The clock `boot` is called `mono`, from which it differs by suspends only: trace-cmd
//! prints times of `boot` as bare nanoseconds, which LISA does not read.

mod pages;
mod records;

use super::{EventSink, mark};
use crate::event::{
    EventContext, Interrupt, NameId, Names, StartingThread, TraceEvent, TraceEventKind, TraceHeader,
};
use crate::trace_dat::notes::{self, NotesText};
use crate::trace_dat::write::{CpuPages, OPTION_UNAME, OPTION_VERSION, Texts, write};
use crate::{AtomicFile, Destination};
use pages::{PAGE_BYTES, Pages, RECORD_BYTES_MAX};
use records::{COMMON_BYTES, Row, Type, Value};
use std::collections::BTreeMap;
use std::io::{self, BufWriter};

/// `events/header_page` of pages as we write them.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// `events/header_event`, as the kernel has it.
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\
    \ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\tpadding     : type == 29\n\
    \ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

/// Number of the first tracepoint; that of `print` is fixed in the kernel.
const FIRST_ID: u16 = 300;
const PRINT_ID: u16 = 5;

/// Made-up addresses of functions and of strings.
const FIRST_FUNCTION: u64 = 0xffff_8000_0100_0000;
const FIRST_STRING: u64 = 0xffff_8000_0900_0000;
const ADDRESS_STEP: u64 = 64;

/// `TRACE_FLAG_*` of the kernel.
const IRQS_OFF: u8 = 1;
const NEED_RESCHED: u8 = 4;
const HARDIRQ: u8 = 8;
const SOFTIRQ: u8 = 0x10;

/// Names of threads that are kept for `saved_cmdlines`.
const CMDLINES_MAX: usize = 1 << 16;

/// A tracepoint that has occurred.
struct Tracepoint {
    id: u16,
    system: &'static str,
    name: String,
    fields: Vec<(&'static str, Type)>,
    offsets: Vec<usize>,
    bytes: usize,
}

/// Addresses that names were given.
struct Addresses {
    by_name: BTreeMap<NameId, u64>,
    first: u64,
}

impl Addresses {
    fn of(&mut self, name: NameId, names: &Names) -> u64 {
        let hex = names.text(name).strip_prefix("0x");
        if let Some(address) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            return address;
        }
        let next = self.first + ADDRESS_STEP * self.by_name.len() as u64;
        *self.by_name.entry(name).or_insert(next)
    }
}

/// Writes events as a trace.dat.
pub struct EventTraceDat<W: Destination> {
    out: W,
    header: TraceHeader,
    pages: Pages,
    /// By the numbers of their names.
    tracepoints: BTreeMap<NameId, Tracepoint>,
    with_flags: Option<bool>,
    functions: Addresses,
    strings: Addresses,
    /// Texts of the names that got addresses, as a source's names are at hand with events only.
    texts: BTreeMap<NameId, String>,
    comms: BTreeMap<u32, String>,
    row: Row,
    record: Vec<u8>,
}

impl EventTraceDat<AtomicFile> {
    /// A file that appears when it is finished.
    pub fn create(
        path: &std::path::Path,
        header: &TraceHeader,
    ) -> io::Result<EventTraceDat<AtomicFile>> {
        EventTraceDat::new(AtomicFile::create(path)?, header)
    }
}

impl<W: Destination> EventTraceDat<W> {
    /// Begins a file of what that header describes.
    pub fn new(out: W, header: &TraceHeader) -> io::Result<EventTraceDat<W>> {
        Ok(EventTraceDat {
            out,
            header: header.clone(),
            pages: Pages::new()?,
            tracepoints: BTreeMap::new(),
            with_flags: None,
            functions: Addresses { by_name: BTreeMap::new(), first: FIRST_FUNCTION },
            strings: Addresses { by_name: BTreeMap::new(), first: FIRST_STRING },
            texts: BTreeMap::new(),
            comms: BTreeMap::new(),
            row: Row::new(),
            record: Vec::new(),
        })
    }

    /// The tracepoint of an event, made at its first; `None`: its records have other fields.
    fn tracepoint(&mut self, event: &TraceEvent, names: &Names) -> Option<&Tracepoint> {
        let row = &self.row;
        if !self.tracepoints.contains_key(&event.name) {
            let name = names.text(event.name).to_owned();
            let marks = row.first().is_some_and(|(name, ..)| *name == "ip");
            let (id, system) = match marks {
                true if name == "print" => (PRINT_ID, "ftrace"),
                true => (FIRST_ID + self.tracepoints.len() as u16, "ftrace"),
                false => (
                    FIRST_ID + self.tracepoints.len() as u16,
                    records::system_of(&name, &event.kind),
                ),
            };
            let fields: Vec<_> = row.iter().map(|(name, ty, _)| (*name, *ty)).collect();
            let (offsets, bytes) = records::offsets(fields.iter().map(|(_, ty)| *ty));
            let tracepoint = Tracepoint { id, system, name, fields, offsets, bytes };
            self.tracepoints.insert(event.name, tracepoint);
        }
        let known = &self.tracepoints[&event.name];
        let same = known.fields.len() == row.len()
            && known.fields.iter().zip(row).all(|(a, b)| *a == (b.0, b.1));
        same.then_some(known)
    }

    /// Encodes the row; `false`: it is too long for a page.
    fn encode(&mut self, event: &TraceEvent, mark: Option<&str>, names: &Names) -> bool {
        let Some(Tracepoint { id, offsets, bytes, .. }) = self.tracepoints.get(&event.name) else {
            return false;
        };
        let record = &mut self.record;
        record.clear();
        record.resize(*bytes, 0);
        record[..2].copy_from_slice(&id.to_ne_bytes());
        record[2] = flags(&event.context);
        record[3] = event.context.preempt_count.unwrap_or(0);
        record[4..COMMON_BYTES].copy_from_slice(&event.context.pid.to_ne_bytes());
        for ((_, ty, value), at) in self.row.iter().zip(offsets) {
            let number = match value {
                Value::Number(number) => *number,
                Value::Address(name) => {
                    let of_string = self.row[0].0 == "reason";
                    let addresses = if of_string { &mut self.strings } else { &mut self.functions };
                    if !self.texts.contains_key(name) {
                        self.texts.insert(*name, names.text(*name).to_owned());
                    }
                    addresses.of(*name, names) as i64
                }
                Value::Name(_) => 0,
            };
            let at = *at;
            match (ty, value) {
                (Type::Comm, Value::Name(name)) => {
                    let comm = records::comm(names, *name);
                    record[at..at + comm.len()].copy_from_slice(&comm);
                }
                (Type::Text, Value::Name(name)) => {
                    let (start, text) = (record.len(), names.text(*name).as_bytes());
                    let length = text.len() + 1;
                    record.extend(text);
                    record.push(0);
                    let place = (length as u32) << 16 | start as u32;
                    record[at..at + 4].copy_from_slice(&place.to_ne_bytes());
                }
                (Type::Rest, _) => {
                    record.truncate(at);
                    record.extend(mark.unwrap_or_default().as_bytes());
                    record.push(0);
                }
                (Type::I32 | Type::U32, _) => {
                    record[at..at + 4].copy_from_slice(&(number as u32).to_ne_bytes());
                }
                _ => record[at..at + 8].copy_from_slice(&number.to_ne_bytes()),
            }
        }
        record.resize(record.len().next_multiple_of(4), 0);
        record.len() <= RECORD_BYTES_MAX
    }

    /// Remembers the name of the thread in whose context an event was recorded.
    fn see_comm(&mut self, context: &EventContext, names: &Names) {
        let comm = names.text(context.comm);
        let known = self.comms.len() < CMDLINES_MAX || self.comms.contains_key(&context.pid);
        if context.pid != 0 && !comm.is_empty() && !comm.starts_with('<') && known {
            let old = self.comms.entry(context.pid).or_default();
            if old != comm {
                comm.clone_into(old);
            }
        }
    }

    fn texts(&self) -> Texts {
        let format = |tracepoint: &Tracepoint| {
            let Tracepoint { id, name, fields, .. } = tracepoint;
            records::format_text(name, *id, fields, self.with_flags != Some(false)).into_bytes()
        };
        let mut systems: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        for tracepoint in self.tracepoints.values() {
            systems.entry(tracepoint.system).or_default().push(format(tracepoint));
        }
        let ftrace_formats = systems.remove("ftrace").unwrap_or_default();
        let lines = |addresses: &Addresses, line: &dyn Fn(u64, &str) -> String| -> Vec<u8> {
            let mut by_address: Vec<_> =
                addresses.by_name.iter().map(|(name, address)| (*address, name)).collect();
            by_address.sort_unstable();
            let texts = by_address.iter().map(|(address, name)| line(*address, &self.texts[*name]));
            texts.collect::<String>().into_bytes()
        };
        let cmdlines = self.comms.iter().map(|(pid, comm)| format!("{pid} {comm}\n"));
        let mut options = vec![(OPTION_VERSION, b"schedtwin\0".to_vec())];
        if let Some(release) = &self.header.release {
            options.push((OPTION_UNAME, format!("Linux - {release} -\0").into_bytes()));
        }
        options.push((notes::OPTION, self.notes().as_str().as_bytes().to_vec()));
        Texts {
            header_page: HEADER_PAGE.into(),
            header_event: HEADER_EVENT.into(),
            ftrace_formats,
            systems: systems
                .into_iter()
                .map(|(system, formats)| (system.to_owned(), formats))
                .collect(),
            kallsyms: lines(&self.functions, &|address, name| format!("{address:016x} t {name}\n")),
            printk_formats: lines(&self.strings, &|address, text| {
                format!("{address:#x} : \"{text}\"\n")
            }),
            saved_cmdlines: cmdlines.collect::<String>().into_bytes(),
            trace_clock: format!("[{}]", clock(self.header.clock.as_deref())).into_bytes(),
            options,
        }
    }

    /// What the source says beside its events.
    fn notes(&self) -> NotesText {
        let mut text = NotesText::default();
        for (name, value) in &self.header.options {
            text.note(name, value);
        }
        let facts = |thread: &StartingThread| {
            thread.policy.is_some() || thread.affinity.is_some() || thread.tgid.is_some()
        };
        for thread in self.header.threads.iter().filter(|thread| facts(thread)) {
            text.thread(thread, false);
        }
        text
    }
}

/// The clock of the file. Text does not tell one: then it is the kernel's default.
fn clock(of_source: Option<&str>) -> &str {
    match of_source {
        None => "local",
        Some("boot") => "mono",
        Some(clock) => clock,
    }
}

fn flags(context: &EventContext) -> u8 {
    let level = match context.interrupt {
        Interrupt::Task | Interrupt::Unknown => 0,
        Interrupt::Softirq => SOFTIRQ,
        Interrupt::Hardirq => HARDIRQ,
    };
    let irqs = if context.irqs_off == Some(true) { IRQS_OFF } else { 0 };
    level | irqs | if context.need_resched { NEED_RESCHED } else { 0 }
}

impl<W: Destination> EventSink for EventTraceDat<W> {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        match event.kind {
            TraceEventKind::Lost { events } => {
                self.pages.lose(event.cpu.index(), events)?;
                return Ok(true);
            }
            // Where the first page of a CPU begins.
            TraceEventKind::Begins => return Ok(true),
            _ => {}
        }
        let mark = mark(&event.kind, names);
        let filled = match &mark {
            Some(_) => {
                self.row.clear();
                self.row.push(("ip", Type::Pointer, Value::Number(0)));
                self.row.push(("buf", Type::Rest, Value::Number(0)));
                true
            }
            None => {
                records::fill(&event.kind, &mut self.row)
                    || records::fill_interrupt(&event.kind, names.text(event.name), &mut self.row)
            }
        };
        if !filled || self.tracepoint(event, names).is_none() {
            return Ok(false);
        }
        let told = event.context.interrupt != Interrupt::Unknown;
        self.with_flags.get_or_insert(told);
        self.see_comm(&event.context, names);
        if !self.encode(event, mark.as_deref(), names) {
            return Ok(false);
        }
        self.pages.record(event.cpu.index(), event.at, &self.record)?;
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let texts = self.texts();
        let pages = std::mem::replace(&mut self.pages, Pages::new()?);
        let cpus = pages.finish()?.into_iter();
        let cpus = cpus.map(|(bytes, pages)| CpuPages { bytes, pages: pages.buffered() }).collect();
        let mut out = BufWriter::with_capacity(1 << 18, self.out);
        write(&mut out, &texts, PAGE_BYTES as u32, cpus)?;
        out.into_inner().map_err(|error| error.into_error())?.commit()
    }
}
