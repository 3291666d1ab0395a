// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin convert`: runs and recordings from one format to another.
//!
//! | from | to `.rec`, `.jsonl` | to `.pftrace`, `.txt` | to `.dat` | to a folder | to `.json` |
//! |---|---|---|---|---|---|
//! | a record of a run | everything | what the format holds | - | - | - |
//! | a recording in any format | - | its events | its events | a table for each tracepoint | an rt-app file |
//!
//! A Perfetto trace that schedtwin wrote counts as both.

use std::io;
use std::path::Path;

use schedtwin_engine::recording::{Device, read_trace};
use schedtwin_lab::replay::rtapp;
use schedtwin_machine::Machine;
use schedtwin_trace::convert::{is_record, is_run};
use schedtwin_trace::event::{SourceFault, TraceSource};
use schedtwin_trace::event_out::{
    EventPerfetto, EventSink, EventTables, EventText, EventTraceDat, Failed, TableFormat,
    write_events,
};
use schedtwin_trace::{AtomicFile, Destination, Detail, Format, sources};

use crate::arguments::Convert;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{shown, tell};
use crate::run::{detail_of, writable};

/// Converts, and says on stderr what the new format had no place for.
pub fn convert(arguments: &Convert) -> Result<(), Failure> {
    let Convert { from, to, machine, decisions, tables: table_format } = arguments;
    if names_a_folder(to) {
        return tables(from, to, table_format.unwrap_or_default().into());
    }
    if table_format.is_some() {
        return Err(Failure::bad(format!(
            "failed to write {}: --tables is for a folder, whose name ends in /",
            shown(to)
        )));
    }
    let ends_in = |wanted: &str| to.extension().is_some_and(|ending| ending == wanted);
    let (rtapp, trace_dat) = (ends_in("json"), ends_in("dat"));
    let format = Format::from_path(to);
    if format.is_none() && !rtapp && !trace_dat {
        let message = format!(
            "failed to write {}: the name of a trace or record ends in {}, that of a trace.dat in .dat, that of an \
             rt-app file in .json, and that of a folder for tables in /",
            shown(to),
            Format::ENDINGS
        );
        return Err(Failure::bad(message));
    }
    writable(to)?;
    // A folder, or a file of an archive, is no run's.
    let is_file = from.is_file();
    let is_record = |path: &Path| if is_file { is_record(path) } else { Ok(false) };
    let is_run = |path: &Path| if is_file { is_run(path) } else { Ok(false) };
    let same = from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to));
    if same {
        let message = format!("failed to convert {}: OUT is the same file", shown(from));
        return Err(Failure::bad(message));
    }
    let failed = |error: io::Error| Failure::of_file("convert", from, &error);
    if trace_dat {
        if is_record(from).map_err(failed)? {
            let hint = "convert it to .pftrace first, and that to .dat";
            return Err(Failure::bad(format!(
                "failed to convert {}: it is a record; {hint}",
                shown(from)
            )));
        }
        interrupt::guard(to);
        return events_as_trace_dat(from, to);
    }
    let Some(format) = format else { return rtapp_file(from, to, machine.as_deref()) };
    // Only what a run wrote has the facts of a record.
    let of_run = matches!(format, Format::Record | Format::PackedRecord)
        || is_record(from).map_err(failed)?
        || is_run(from).map_err(failed)?;
    let detail = detail_of(to, *decisions)?;
    if *decisions && !of_run {
        return Err(Failure::bad(format!(
            "failed to convert {}: only a record of a run has decisions",
            shown(from)
        )));
    }
    interrupt::guard(to);
    if of_run { run(from, to, format, detail) } else { events(from, to, format) }
}

/// A record or a trace of a run.
fn run(from: &Path, to: &Path, format: Format, detail: Detail) -> Result<(), Failure> {
    let converted = schedtwin_trace::convert::convert(from, to, format, detail)
        .map_err(|error| Failure::of_file("convert", from, &error))?;
    if converted.decisions_dropped > 0 {
        tell(&format!(
            "note: {} decisions stay in {}: only a record holds them, or a Perfetto trace with --decisions",
            converted.decisions_dropped,
            shown(from)
        ));
    }
    Ok(())
}

fn unreadable(from: &Path, fault: &SourceFault) -> Failure {
    let help = match fault {
        SourceFault::Io(_) => String::new(),
        SourceFault::Unusable(_) => format!("\nhelp: {}", sources::KNOWN),
    };
    Failure::bad(format!("failed to convert {}: {fault}{help}", shown(from)))
}

/// The events of a recording, as a trace.
fn events(from: &Path, to: &Path, format: Format) -> Result<(), Failure> {
    let source = sources::open(from).map_err(|fault| unreadable(from, &fault))?;
    let header = source.header();
    let made: io::Result<Box<dyn EventSink>> = match format {
        Format::Perfetto => EventPerfetto::create(to, header).map(|sink| Box::new(sink) as _),
        _ => {
            let nr_cpus = header.nr_cpus.map_or_else(|| nr_cpus(from), Ok)?;
            EventText::create(to, nr_cpus).map(|sink| Box::new(sink) as _)
        }
    };
    write(from, to, source, made.map_err(|error| Failure::of_file("write", to, &error))?)
}

/// The CPUs of a recording whose header does not tell them: those of its events.
fn nr_cpus(from: &Path) -> Result<usize, Failure> {
    let mut source = sources::open(from).map_err(|fault| unreadable(from, &fault))?;
    let mut nr_cpus = 1;
    while let Some(event) = source.next_event().map_err(|fault| unreadable(from, &fault))? {
        nr_cpus = nr_cpus.max(event.cpu.index() + 1);
    }
    Ok(nr_cpus)
}

/// The events of a recording, as a trace.dat.
fn events_as_trace_dat(from: &Path, to: &Path) -> Result<(), Failure> {
    let source = sources::open(from).map_err(|fault| unreadable(from, &fault))?;
    let made = EventTraceDat::create(to, source.header());
    write(from, to, source, Box::new(made.map_err(|error| Failure::of_file("write", to, &error))?))
}

/// The events of a recording, as tables.
fn tables(from: &Path, to: &Path, format: TableFormat) -> Result<(), Failure> {
    let source = sources::open(from).map_err(|fault| unreadable(from, &fault))?;
    interrupt::guard(to);
    let made = EventTables::create(to, format);
    write(from, to, source, Box::new(made.map_err(|error| Failure::of_file("write", to, &error))?))
}

fn names_a_folder(to: &Path) -> bool {
    to.as_os_str().to_string_lossy().ends_with('/') || to.is_dir()
}

/// Tracepoints without a place in a format that are named.
const NAMED: usize = 8;

fn write(
    from: &Path,
    to: &Path,
    mut source: impl TraceSource,
    sink: Box<dyn EventSink>,
) -> Result<(), Failure> {
    let written = write_events(&mut source, sink).map_err(|failed| match failed {
        Failed::Read(fault) => unreadable(from, &fault),
        Failed::Write(error) => Failure::of_file("write", to, &error),
    })?;
    let report = source.report();
    for damage in &report.damages {
        tell(&format!("warning: {}: {damage}", shown(from)));
    }
    let kept = |what: String| tell(&format!("note: {what} stays in {}", shown(from)));
    if report.cut > 0 {
        kept("the last event, which is cut short,".into());
    }
    if report.elsewhere > 0 {
        kept(format!("what is of another machine ({} packets)", report.elsewhere));
    }
    if let [first, ..] = written.late[..] {
        let cpus = written.late.len();
        let text = "to .txt, which can say it, or replay the recording itself";
        tell(&format!(
            "warning: the buffer of CPU {first}{} begins later than others, and {} does not say so: before that it \
             looks idle; convert {text}",
            if cpus > 1 { format!(" and of {} more", cpus - 1) } else { String::new() },
            shown(to)
        ));
    }
    let is_dat = to.extension().is_some_and(|ending| ending == "dat");
    let tells_release = is_dat || Format::from_path(to) == Some(Format::Perfetto);
    if let (Some(release), false) = (&source.header().release, tells_release) {
        kept(format!("that it was recorded on Linux {release}"));
    }
    let count = source.header().rails.len();
    if count > 0 {
        kept(format!("what {count} power rails counted"));
    }
    let lost: u64 = written.dropped.iter().map(|(_, count)| count).sum();
    if lost > 0 {
        let names: Vec<String> = written
            .dropped
            .iter()
            .take(NAMED)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let more = written.dropped.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more tracepoints") } else { String::new() };
        tell(&format!(
            "note: {} events are written; {lost} stay in {}, whose fields are not read: {}{more}",
            written.events,
            shown(from),
            names.join(", ")
        ));
    }
    Ok(())
}

/// A model of a recording for rt-app.
fn rtapp_file(from: &Path, to: &Path, machine: Option<&str>) -> Result<(), Failure> {
    let Some(machine) = machine else {
        return Err(Failure::bad(
            "failed to convert: the work of threads depends on the CPUs that they ran on: say with -m MACHINE which \
             machine recorded",
        ));
    };
    let machine = Machine::load(machine)?;
    let device = Device { machine: &machine, capacities: None };
    let trace = read_trace(from, device, &machine, None)?;
    let title = from.file_name().unwrap_or_default().to_string_lossy();
    let made = rtapp::rtapp(&trace.recorded, &title);
    interrupt::guard(to);
    let written = AtomicFile::create(to).and_then(|file| file.commit_with(made.text.as_bytes()));
    written.map_err(|error| Failure::of_file("write", to, &error))?;
    for lost in &made.lost {
        tell(&format!("lost: {lost}"));
    }
    Ok(())
}
