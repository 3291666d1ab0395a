// SPDX-License-Identifier: GPL-2.0-or-later
//! Events as a trace.dat, version 6: trace-cmd, KernelShark and LISA read it, and `schedtwin replay`.
//!
//! Algorithm:
//! 1. Records have the fields of their row in the table of tracepoints ([`records`]). A field that an event does not tell is
//!    −1; an event that a record cannot hold is left out and counted.
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

use super::{EventSink, Rows, Taken, UNKNOWN};
use crate::event::{
    EventContext, Interrupt, NameId, Names, StartingThread, TraceEvent, TraceEventKind, TraceHeader,
};
use crate::trace_dat::notes::{self, NotesText};
use crate::trace_dat::write::{CpuPages, OPTION_UNAME, OPTION_VERSION, Texts, write};
use crate::tracepoint::flags;
use crate::tracepoint::row::{ABSENT, Field, MACHINE_SUSPEND, Tracepoint, Type};
use crate::{AtomicFile, Destination};
use pages::{PAGE_BYTES, Pages, RECORD_BYTES_MAX};
use records::{COMMON_BYTES, Form};
use std::collections::{BTreeMap, BTreeSet};
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

/// The made-up address of the string [`MACHINE_SUSPEND`].
const SUSPEND_STRING: u64 = FIRST_STRING - ADDRESS_STEP;

/// Names of threads that are kept for `saved_cmdlines`.
const CMDLINES_MAX: usize = 1 << 16;

/// A tracepoint that has occurred.
struct Occurred {
    id: u16,
    /// Its row in the table; `None`: text of programs.
    row: Option<&'static Tracepoint>,
    name: String,
    fields: Vec<(&'static str, Form)>,
    offsets: Vec<usize>,
    bytes: usize,
}

/// Addresses that names were given, made up: of functions, and of strings.
struct Addresses {
    functions: BTreeMap<NameId, u64>,
    strings: BTreeMap<NameId, u64>,
    /// Texts of these names, as a source's names are at hand with events only.
    texts: BTreeMap<NameId, String>,
}

impl Addresses {
    /// The number in a field of 64 bits.
    fn number(&mut self, ty: Type, value: i64, before: i64, names: &Names) -> u64 {
        let name = if value == ABSENT { NameId::NONE } else { NameId(value as u32) };
        let (known, first) = match ty {
            Type::Reason => (&mut self.strings, FIRST_STRING),
            ty if ty.is_function() => (&mut self.functions, FIRST_FUNCTION),
            Type::Suspend => return SUSPEND_STRING,
            Type::Callsite => return 0,
            Type::Ticks => return before.wrapping_sub(value) as u64,
            _ => return value as u64,
        };
        let text = names.text(name);
        let hex = text.strip_prefix("0x");
        if let Some(address) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            return address;
        }
        let next = first + ADDRESS_STEP * known.len() as u64;
        self.texts.entry(name).or_insert_with(|| text.to_owned());
        *known.entry(name).or_insert(next)
    }

    /// A line for each address of a name.
    fn lines(&self, of: &BTreeMap<NameId, u64>, line: impl Fn(u64, &str) -> String) -> String {
        let mut by_address: Vec<_> = of.iter().map(|(name, address)| (*address, name)).collect();
        by_address.sort_unstable();
        by_address.iter().map(|(address, name)| line(*address, &self.texts[*name])).collect()
    }
}

/// Writes events as a trace.dat.
pub struct EventTraceDat<W: Destination> {
    out: W,
    header: TraceHeader,
    pages: Pages,
    /// By the numbers of their names.
    tracepoints: BTreeMap<NameId, Occurred>,
    with_flags: Option<bool>,
    addresses: Addresses,
    comms: BTreeMap<u32, String>,
    rows: Rows,
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
            addresses: Addresses {
                functions: BTreeMap::new(),
                strings: BTreeMap::new(),
                texts: BTreeMap::new(),
            },
            comms: BTreeMap::new(),
            rows: Rows::default(),
            record: Vec::new(),
        })
    }

    /// Notes the tracepoint of an event at its first; `false`: its records are of another tracepoint, or there are too many.
    fn see(&mut self, event: NameId, row: Option<&'static Tracepoint>, names: &Names) -> bool {
        let next = u16::try_from(usize::from(FIRST_ID) + self.tracepoints.len());
        let Ok(next) = next else { return false };
        let known = self.tracepoints.entry(event).or_insert_with(|| {
            let mut name = names.text(event).to_owned();
            // Text of programs, as some reports call it.
            if row.is_none() && name == "0" {
                name = "print".into();
            }
            let id = if row.is_none() && name == "print" { PRINT_ID } else { next };
            let fields = records::fields(row);
            let (offsets, bytes) = records::offsets(fields.iter().map(|(_, form)| *form));
            Occurred { id, row, name, fields, offsets, bytes }
        });
        known.row.map(|row| row.name) == row.map(|row| row.name)
    }

    /// Encodes an event; `false`: it is too long for a page, or a field is absent that a record cannot be without.
    fn encode(&mut self, event: &TraceEvent, taken: &Taken, names: &Names) -> bool {
        let Some(Occurred { id, offsets, bytes, .. }) = self.tracepoints.get(&event.name) else {
            return false;
        };
        let record = &mut self.record;
        record.clear();
        record.resize(*bytes, 0);
        record[..2].copy_from_slice(&id.to_ne_bytes());
        record[2] = flags::of(&event.context);
        record[3] = event.context.preempt_count.unwrap_or(0);
        record[4..COMMON_BYTES].copy_from_slice(&event.context.pid.to_ne_bytes());
        match taken {
            Taken::Mark(mark) => {
                record.truncate(offsets[1]);
                record.extend(mark.as_bytes());
                record.push(0);
            }
            Taken::Row(row, values) => {
                let mut offsets = offsets.iter();
                for (field, value, before) in row.with_values(values) {
                    let Some(form) = records::form(field) else { continue };
                    let Some(&at) = offsets.next() else { return false };
                    let name = || names.text(NameId(value as u32));
                    match form {
                        Form::Comm => {
                            let name = if value == ABSENT { UNKNOWN } else { name() };
                            let comm = records::comm(name);
                            record[at..at + comm.len()].copy_from_slice(&comm);
                        }
                        Form::Text => {
                            let start = record.len();
                            record.extend(name().as_bytes());
                            record.push(0);
                            let place = ((record.len() - start) as u32) << 16 | start as u32;
                            record[at..at + 4].copy_from_slice(&place.to_ne_bytes());
                        }
                        Form::I32 | Form::U32 => {
                            let Some(number) = records::number(field.ty, value) else {
                                return false;
                            };
                            record[at..at + 4].copy_from_slice(&number.to_ne_bytes());
                        }
                        _ => {
                            let number = self.addresses.number(field.ty, value, before, names);
                            record[at..at + 8].copy_from_slice(&number.to_ne_bytes());
                        }
                    }
                }
            }
            Taken::Other => return false,
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
        let with_flags = self.with_flags != Some(false);
        let mut systems: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        let mut suspends = false;
        let mut described = BTreeSet::new();
        for Occurred { id, name, row, fields, .. } in self.tracepoints.values() {
            if !described.insert(id) {
                continue;
            }
            let format = records::format_text(name, *id, fields, with_flags).into_bytes();
            systems.entry(row.map_or("ftrace", |row| row.system)).or_default().push(format);
            let is_step = |field: &Field| field.ty == Type::Suspend;
            suspends |= row.is_some_and(|row| row.fields.iter().any(is_step));
        }
        let ftrace_formats = systems.remove("ftrace").unwrap_or_default();
        let string = |address: u64, text: &str| format!("{address:#x} : \"{text}\"\n");
        let mut strings = self.addresses.lines(&self.addresses.strings, string);
        if suspends {
            strings += &string(SUSPEND_STRING, MACHINE_SUSPEND);
        }
        let function = |address, name: &str| format!("{address:016x} t {name}\n");
        let functions = self.addresses.lines(&self.addresses.functions, function);
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
            kallsyms: functions.into_bytes(),
            printk_formats: strings.into_bytes(),
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

impl<W: Destination> EventSink for EventTraceDat<W> {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        match event.kind {
            TraceEventKind::Lost { events } => {
                self.pages.lose(event.cpu.index(), events)?;
                return Ok(true);
            }
            TraceEventKind::Begins => return Ok(false),
            _ => {}
        }
        let taken = self.rows.take(event, names, |_| true);
        let row = match &taken {
            Taken::Mark(_) => None,
            Taken::Row(row, _) => Some(*row),
            Taken::Other => return Ok(false),
        };
        if !self.see(event.name, row, names) {
            return Ok(false);
        }
        // A CPU's first switch in Perfetto's columns tells less than all others.
        if !matches!(event.kind, TraceEventKind::Switch { prev: None, .. }) {
            let told = event.context.interrupt != Interrupt::Unknown;
            self.with_flags.get_or_insert(told);
        }
        self.see_comm(&event.context, names);
        if !self.encode(event, &taken, names) {
            return Ok(false);
        }
        self.pages.record(event.cpu.index(), event.at, &self.record)?;
        Ok(true)
    }

    fn finish(mut self: Box<Self>, header: &TraceHeader) -> io::Result<()> {
        self.header = header.clone();
        let texts = self.texts();
        let pages = std::mem::replace(&mut self.pages, Pages::new()?);
        let cpus = pages.finish()?.into_iter();
        let cpus = cpus.map(|(bytes, pages)| CpuPages { bytes, pages: pages.buffered() }).collect();
        let mut out = BufWriter::with_capacity(1 << 18, self.out);
        write(&mut out, &texts, PAGE_BYTES as u32, cpus)?;
        out.into_inner().map_err(|error| error.into_error())?.commit()
    }
}
