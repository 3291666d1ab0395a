// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces out of a run, and records of it in and out again.
//!
//! A run produces facts (what happened) and, while a recorder is on, decisions (why). This crate
//! turns that stream into files that other people's tools open:
//!
//! | [`Format`] | file | opened by |
//! |---|---|---|
//! | [`Format::Perfetto`] | binary protobuf, `compact_sched` | ui.perfetto.dev, `trace_processor` |
//! | [`Format::FtraceText`] | text, as `trace-cmd report -N` prints it | LISA, TRAPpy, grep |
//! | [`Format::PackedRecord`] | binary, lossless, with decisions | `schedtwin explain`, `schedtwin convert` |
//! | [`Format::Record`] | the same as JSON Lines | `schedtwin explain`, jq |
//!
//! Other people's traces come in by [`sources`]: every format becomes a stream of [`event::TraceEvent`]s.
//!
//! All are [`Sink`]s: fed in time order, streaming, of bounded memory. A result appears under
//! its name only when it is complete ([`AtomicFile`]).
//!
//! It knows only the words of `schedtwin-types`: nothing of kernels, machines or workloads.
//!
//! ```
//! use schedtwin_trace::{Detail, Format, Meta, Sink, TaskInfo};
//! use schedtwin_types::{CpuId, Fact, FactKind, TaskId, TaskState};
//!
//! let path = std::env::temp_dir().join(format!("schedtwin-doc-{}.jsonl", std::process::id()));
//! let format = Format::from_path(&path).unwrap();
//! let meta = Meta { title: "one task".into(), nr_cpus: 1, ..Meta::default() };
//! let mut sink = schedtwin_trace::create(&path, format, meta, Detail::Facts)?;
//! sink.task(&TaskInfo { id: TaskId(1), name: "ui".into(), prio: 120 });
//! sink.fact(&Fact {
//!     at: 1_000,
//!     cpu: CpuId(0),
//!     kind: FactKind::Switch { prev: TaskId::IDLE, next: TaskId(1), prev_state: TaskState::Running },
//! });
//! assert!(!path.exists(), "nothing half-written is visible");
//! sink.finish()?;
//! assert_eq!(std::fs::read_to_string(&path)?.lines().count(), 3);
//! # std::fs::remove_file(&path)?;
//! # std::io::Result::Ok(())
//! ```

mod atomic_file;
mod atomic_folder;
mod chrome_json;
pub mod convert;
pub mod event;
pub mod event_out;
pub mod explain;
mod folder;
pub mod ftrace_read;
mod ftrace_text;
pub mod marker;
mod open;
pub mod outside;
pub mod packed;
pub mod perf_data;
pub mod perfetto;
pub mod perfetto_messages;
pub mod perfetto_read;
pub mod perfetto_source;
pub mod record;
mod record_lines;
pub mod sources;
mod tasks;
pub mod trace_dat;
pub mod tracepoint;
mod wire;

pub use atomic_file::{AtomicFile, Destination, remove_abandoned, remove_partials};
pub use atomic_folder::AtomicFolder;
pub use ftrace_text::FtraceText;
pub use open::open_readable;
pub use perfetto::Perfetto;
pub use record::{PackedRecord, Record};

use record::Why;
use schedtwin_types::{CpuMask, DecisionRecord, Fact, NeedChain, Ns, TaskId};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A task, as a trace names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// The task's number, also its pid in the trace.
    pub id: TaskId,
    /// Its `comm`. Not cut to the kernel's 15 characters.
    pub name: String,
    /// The kernel's priority: 120 is nice 0, 0..=98 real time (99 − `sched_priority`), −1 deadline.
    pub prio: i32,
}

/// The description of the run that a trace comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The name of the run: of its process in Perfetto, e.g. the workload.
    pub title: String,
    /// The number of CPUs, `1..=MAX_CPUS`.
    pub nr_cpus: usize,
    /// Names of what has power: first the frequency domains as in `policy_cpus`, then packages and the like; indexed as in [`Sink::power_uw`].
    pub domain_names: Vec<String>,
    /// CPUs of each cpufreq policy, indexed as in `FactKind::Frequency`: the kernel emits
    /// `cpu_frequency` for each CPU of the policy. A policy that is not listed is taken to be the
    /// CPU that executed the change alone.
    pub policy_cpus: Vec<CpuMask>,
    /// Paths of the workload's cgroups, the root left out: the first is that of group 1.
    pub cgroups: Vec<String>,
    /// The inputs of the run: version, machine, kernel, workload, seed, ... in this order.
    pub provenance: Vec<(String, String)>,
}

/// Something that takes a run's facts, in time order.
///
/// Failures of writing (a full disk) stop the writing and surface at [`Sink::finish`]; a run never
/// fails for its trace.
pub trait Sink {
    /// A task exists from now on. Comes before any fact about it.
    fn task(&mut self, info: &TaskInfo);
    /// A task's kernel priority changes.
    fn task_prio(&mut self, id: TaskId, prio: i32);
    /// Something happened.
    fn fact(&mut self, fact: &Fact);
    /// Whether it keeps decisions: records do, and traces that were asked to.
    fn wants_decisions(&self) -> bool {
        false
    }
    /// The kernel decided something.
    fn decision(&mut self, _decision: &DecisionRecord) {}
    /// A need has got its clock, or has gone. Only the record keeps chains.
    fn chain(&mut self, _chain: &NeedChain) {}
    /// The power that domain number `domain` draws from `at` on, microwatts.
    fn power_uw(&mut self, _at: Ns, _domain: u16, _microwatts: u64) {}
    /// A decision or a chain that was read from a record; whether this format keeps it.
    fn read_back(&mut self, _at: Ns, _why: Why) -> bool {
        false
    }
    /// Writes what is left and puts the file in its place, or says what failed.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A trace format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's binary format: `.pftrace`, `.perfetto-trace`, `.pb`.
    Perfetto,
    /// Text as `trace-cmd report -N` prints it: `.txt`, `.ftrace`.
    FtraceText,
    /// schedtwin's own record, JSON Lines: `.jsonl`.
    Record,
    /// The same, packed: `.rec`, `.record`.
    PackedRecord,
}

impl Format {
    /// The endings that [`Format::from_path`] knows, for messages.
    pub const ENDINGS: &'static str = ".pftrace, .perfetto-trace, .pb (Perfetto); .txt, .ftrace (text); .rec, .record, .jsonl (record)";

    /// The format that the ending of a file's name asks for.
    pub fn from_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "pftrace" | "perfetto-trace" | "pb" => Some(Format::Perfetto),
            "txt" | "ftrace" => Some(Format::FtraceText),
            "jsonl" => Some(Format::Record),
            "rec" | "record" => Some(Format::PackedRecord),
            _ => None,
        }
    }

    /// The format of a record of any name: packed, unless the name asks for JSON Lines.
    pub fn of_record(path: &Path) -> Format {
        match Format::from_path(path) {
            Some(Format::Record) => Format::Record,
            _ => Format::PackedRecord,
        }
    }
}

/// What a trace is to hold. A record holds everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What happened.
    #[default]
    Facts,
    /// Decisions as well, in formats that have a place for them.
    Decisions,
}

/// A sink whose file can be watched.
pub struct GrowingFile {
    /// The sink that writes it. Its errors name the file.
    pub sink: Box<dyn Sink>,
    /// Its size so far, bytes.
    pub bytes: Arc<AtomicU64>,
}

impl GrowingFile {
    /// A sink that writes no file.
    pub fn none(sink: Box<dyn Sink>) -> GrowingFile {
        GrowingFile { sink, bytes: Arc::default() }
    }
}

/// Starts a trace at `path`, which appears (or is replaced) when the sink is finished.
pub fn create(
    path: &Path,
    format: Format,
    meta: Meta,
    detail: Detail,
) -> io::Result<Box<dyn Sink>> {
    Ok(create_growing(path, format, meta, detail)?.sink)
}

/// As [`create`], for who wants to follow how large the file gets.
pub fn create_growing(
    path: &Path,
    format: Format,
    meta: Meta,
    detail: Detail,
) -> io::Result<GrowingFile> {
    let file = AtomicFile::create(path)?;
    let bytes = file.written();
    let file = file.named();
    let sink: Box<dyn Sink> = match format {
        Format::Perfetto if detail == Detail::Decisions => {
            Box::new(Perfetto::new(file, meta).with_decisions())
        }
        Format::Perfetto => Box::new(Perfetto::new(file, meta)),
        Format::FtraceText => Box::new(FtraceText::new(file, meta)),
        Format::Record => Box::new(Record::new(file, meta)),
        Format::PackedRecord => Box::new(PackedRecord::new(file, meta)),
    };
    Ok(GrowingFile { sink, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_formats() {
        for (name, format) in [
            ("a.pftrace", Some(Format::Perfetto)),
            ("a.b.perfetto-trace", Some(Format::Perfetto)),
            ("A.PB", Some(Format::Perfetto)),
            ("a.txt", Some(Format::FtraceText)),
            ("a.ftrace", Some(Format::FtraceText)),
            ("a.jsonl", Some(Format::Record)),
            ("a.rec", Some(Format::PackedRecord)),
            ("a.record", Some(Format::PackedRecord)),
            ("a.json", None),
            ("pftrace", None),
        ] {
            assert_eq!(Format::from_path(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn a_record_is_packed_unless_its_name_says_otherwise() {
        for (name, format) in [
            ("a.jsonl", Format::Record),
            ("a.JSONL", Format::Record),
            ("a.record", Format::PackedRecord),
            ("a.txt", Format::PackedRecord),
            ("a", Format::PackedRecord),
        ] {
            assert_eq!(Format::of_record(Path::new(name)), format, "{name}");
        }
    }
}
