// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns what a run wrote in one format into another.
//!
//! A record or a Perfetto trace is read back and fed to a new [`crate::Sink`]. A record is streamed;
//! of a trace all events are kept at first, since its CPUs have to be merged into one order.
//!
//! Differences: a conversion can hold no more than its source: a Perfetto trace lacks what
//! [`crate::perfetto_read`] lists. Chains are in records only. Decisions are, too, unless a Perfetto trace is asked to
//! show them ([`Detail::Decisions`]); they are not read back from there.
//! Events whose CPU a trace does not hold are given to CPU 0.

use crate::perfetto_read::{self, Event};
use crate::record::{Entry, PACKED, Reader, Why};
use crate::{Detail, Format, Meta, Sink, open_readable};
use schedtwin_types::{CpuId, Fact, Ns};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// How a conversion went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Facts written.
    pub facts: u64,
    /// Decisions left out.
    pub decisions_dropped: u64,
}

/// Writes what `from` holds to `to`. A damaged source is an error and leaves `to` as it was.
pub fn convert(from: &Path, to: &Path, format: Format, detail: Detail) -> io::Result<Converted> {
    let input = BufReader::with_capacity(1 << 16, open_readable(from)?);
    convert_from(input, |meta| crate::create(to, format, meta, detail))
}

/// Whether a file is a record of a run.
pub fn is_record(path: &Path) -> io::Result<bool> {
    let mut input = BufReader::new(open_readable(path)?);
    Ok(matches!(Kind::of(input.fill_buf()?), Kind::Record | Kind::Empty))
}

/// Whether a file is a Perfetto trace that a run wrote: its first packet names us as the system.
pub fn is_run(path: &Path) -> io::Result<bool> {
    const FIRST_PACKET_BYTES: usize = 256;
    const SYSTEM: &[u8] = b"schedtwin";
    let mut input = BufReader::new(open_readable(path)?);
    let head = input.fill_buf()?;
    let first = &head[..head.len().min(FIRST_PACKET_BYTES)];
    Ok(Kind::of(head) == Kind::Perfetto && first.windows(SYSTEM.len()).any(|at| at == SYSTEM))
}

/// Feeds what any bytes hold to the sink that `create` makes of what they say about their run.
pub fn convert_from<'a>(
    mut input: impl BufRead,
    create: impl FnOnce(Meta) -> io::Result<Box<dyn Sink + 'a>>,
) -> io::Result<Converted> {
    match Kind::of(input.fill_buf()?) {
        Kind::Perfetto => convert_perfetto(input, create),
        Kind::Record => convert_record(input, create),
        Kind::Empty => Err(damaged("it is empty".to_string())),
        Kind::TraceDat => Err(damaged(
            "it is a recording in trace-cmd's format, which `schedtwin replay` reads as it is; \
             what is converted here are traces and records of runs"
                .to_string(),
        )),
        Kind::Packed => Err(damaged("it is packed; unpack it first".to_string())),
        Kind::Other => Err(damaged(
            "it is neither a record (`run --record FILE`) nor a Perfetto trace (`run --trace \
             FILE.pftrace`); recordings of devices are for `schedtwin replay`"
                .to_string(),
        )),
    }
}

/// The kind of a file, read from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Record,
    Perfetto,
    TraceDat,
    Packed,
    Empty,
    Other,
}

/// The prefix of packed records of all versions.
const PACKED_BEGINS: &[u8] = PACKED.split_at(PACKED.len() - 2).0.as_bytes();

impl Kind {
    fn of(head: &[u8]) -> Kind {
        match head {
            [] => Kind::Empty,
            // The tag of a trace's first packet.
            [0x0a, ..] => Kind::Perfetto,
            [b'{', ..] if !is_of_chrome(head) => Kind::Record,
            _ if head.starts_with(PACKED_BEGINS) => Kind::Record,
            [0x17, 0x08, 0x44, b't', b'r', ..] => Kind::TraceDat,
            // gzip, xz, zstd.
            [0x1f, 0x8b, ..] | [0xfd, b'7', b'z', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                Kind::Packed
            }
            _ => Kind::Other,
        }
    }
}

/// Whether JSON is Chrome's and no record.
fn is_of_chrome(head: &[u8]) -> bool {
    const KEY: &[u8] = b"traceEvents\"";
    head.windows(KEY.len()).any(|at| at.eq_ignore_ascii_case(KEY))
}

fn damaged(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn convert_record<'a>(
    input: impl BufRead,
    create: impl FnOnce(Meta) -> io::Result<Box<dyn Sink + 'a>>,
) -> io::Result<Converted> {
    let mut converted = Converted::default();
    let mut create = Some(create);
    let mut sink: Option<Box<dyn Sink + 'a>> = None;
    for entry in Reader::new(input) {
        let entry = entry.map_err(|error| damaged(format!("read the record: {error}")))?;
        let Some(sink) = &mut sink else {
            let Entry::Header(meta) = entry else {
                unreachable!("a record begins with its header")
            };
            let create = create.take().expect("the first line is read once");
            sink = Some(create(meta)?);
            continue;
        };
        match entry {
            Entry::Header(_) => unreachable!("only the first line is read as a header"),
            Entry::Task(info) => sink.task(&info),
            Entry::Prio(id, prio) => sink.task_prio(id, prio),
            Entry::Fact(fact) => {
                converted.facts += 1;
                sink.fact(&fact);
            }
            Entry::Decision(at, cpu, decision) => {
                let kept = sink.read_back(at, Why::Decision(cpu, decision));
                converted.decisions_dropped += u64::from(!kept);
            }
            Entry::Chain(at, chain) => {
                sink.read_back(at, Why::Chain(chain));
            }
            Entry::Power(at, domain, microwatts) => sink.power_uw(at, domain, microwatts),
        }
    }
    sink.expect("an empty file is an error of its first line").finish()?;
    Ok(converted)
}

fn convert_perfetto<'a>(
    input: impl BufRead,
    create: impl FnOnce(Meta) -> io::Result<Box<dyn Sink + 'a>>,
) -> io::Result<Converted> {
    let mut events: Vec<(Ns, Event)> = Vec::new();
    let contents = perfetto_read::read(input, &mut |event| {
        let at = match event {
            Event::Fact(fact) => fact.at,
            Event::Unplaced { at, .. } | Event::Power { at, .. } => at,
        };
        events.push((at, event));
    })
    .map_err(|error| damaged(format!("read the trace: {error}")))?;
    events.sort_by_key(|(at, _)| *at);
    let mut converted = Converted { decisions_dropped: contents.decisions, ..Converted::default() };
    let mut sink = create(contents.meta)?;
    contents.tasks.iter().for_each(|info| sink.task(info));
    for (_, event) in events {
        let fact = match event {
            Event::Fact(fact) => fact,
            Event::Unplaced { at, kind } => Fact { at, cpu: CpuId(0), kind },
            Event::Power { at, domain, microwatts } => {
                sink.power_uw(at, domain, microwatts);
                continue;
            }
        };
        converted.facts += 1;
        sink.fact(&fact);
    }
    sink.finish()?;
    Ok(converted)
}
