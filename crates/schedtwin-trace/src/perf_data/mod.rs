// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads perf.data with tracepoints: `perf sched record`, `perf record -e sched:sched_switch ...`.
//!
//! Algorithm:
//! 1. `attrs.rs` reads the events that were recorded and the layout of their samples; the tracing data of the file give
//!    the formats of the tracepoints, as in trace.dat.
//! 2. Records are read one after the other; packed ones are unpacked on the way (`unpack.rs`).
//! 3. They are put into the order of time by rounds (`rounds.rs`): perf reads the buffers of all CPUs in turn, and what was
//!    written before one round ended is complete when the next one has.
//! 4. The raw part of a sample is the kernel's record, which [`crate::tracepoint`] reads.
//!
//! **Directories** (`perf record --threads`) have further records in files of their own, one for each CPU's buffer, in order and
//! without rounds. Each is a `Part`; the earliest record of all parts is next.
//!
//! Not the crate linux-perf-data: it sizes buffers by what a header says, so a damaged file of a kilobyte takes
//! all memory; and it unpacks with a library in C.
//!
//! `PERF_RECORD_COMM`, `FORK` and `EXIT` with a time are events where the file has no tracepoint that says the same; those
//! without one describe the threads at the start ([`TraceHeader::threads`]).

mod attrs;
mod rounds;
#[cfg(test)]
pub(crate) mod tests;
mod unpack;

use crate::event::{
    CPUS_MAX, EventContext, NameId, Names, Place, SourceFault, SourceReport, StartingThread,
    TraceEvent, TraceEventKind, TraceHeader, TraceSource,
};
use crate::trace_dat::undecoded_text;
use crate::tracepoint::metadata::{self, Bytes, Found, TEXT_BYTES_MAX};
use crate::tracepoint::{ByteOrder, Decoder};
use attrs::{Attrs, Sample};
use rounds::{Rounds, Waiting};
use schedtwin_types::{CpuId, Ns};
use std::collections::VecDeque;
use std::io::{BufReader, Read, Seek, SeekFrom};
use unpack::Unpacker;

/// The first bytes, in both byte orders.
const MAGIC_LITTLE: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";

/// Bytes of the head of a file, and of a file that was written to a pipe.
const HEAD_BYTES: u64 = 104;
const PIPE_HEAD_BYTES: u64 = 16;

/// Threads at the start that are kept.
const THREADS_MAX: usize = 1 << 20;

/// Bytes that are read of a part at a time, and its records that wait to be handed out.
const PART_BUFFER: usize = 64 << 10;
const PART_RECORDS: usize = 256;

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const RECORD_ATTR: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_FINISHED_ROUND: u32 = 68;
const RECORD_AUXTRACE: u32 = 71;
const RECORD_FEATURE: u32 = 80;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;

const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_HOSTNAME: u32 = 3;
const FEATURE_OSRELEASE: u32 = 4;
const FEATURE_VERSION: u32 = 5;
const FEATURE_NRCPUS: u32 = 7;
const FEATURE_CPUDESC: u32 = 8;

/// Whether a file of these first bytes is perf.data.
pub fn is_perf_data(head: &[u8]) -> bool {
    head.starts_with(MAGIC_LITTLE) || head.starts_with(MAGIC_BIG)
}

/// A perf.data that is being read.
pub struct PerfData<R: Read> {
    /// The part that is being read, and the others.
    part: Part<R>,
    others: Vec<Part<R>>,
    order: ByteOrder,
    attrs: Attrs,
    decoder: Decoder,
    /// Tracepoints say what these records say, too.
    has_fork: bool,
    has_exit: bool,
    has_rename: bool,
    names: Names,
    header: TraceHeader,
    report: SourceReport,
    body: Vec<u8>,
    latest: Ns,
    /// Records of perf's own from before the first sample, then those with it that have not been handed out. A recording begins
    /// with its first sample: perf's own events may begin long before.
    early: VecDeque<TraceEvent>,
    has_begun: bool,
}

/// So many records before the first sample are kept for it.
const EARLY_MAX: usize = 1 << 16;

/// A file with records.
struct Part<R: Read> {
    input: BufReader<R>,
    at: u64,
    /// Where the records end; `None`: at the end of what comes out of the pipe.
    end: Option<u64>,
    unpacker: Unpacker,
    rounds: Rounds,
    /// Its records are in the order of time, without rounds.
    is_sorted: bool,
    ended: bool,
}

impl<R: Read> Part<R> {
    fn new(input: BufReader<R>, at: u64, is_sorted: bool) -> Part<R> {
        let (unpacker, rounds) = (Unpacker::default(), Rounds::default());
        Part { input, at, end: None, unpacker, rounds, is_sorted, ended: false }
    }
}

fn unusable(why: impl Into<String>) -> SourceFault {
    SourceFault::Unusable(why.into())
}

impl<R: Read + Seek> PerfData<R> {
    /// Reads all but the records.
    pub fn open(mut input: R) -> Result<PerfData<R>, SourceFault> {
        let file_bytes = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::with_capacity(256 << 10, input);
        let mut bytes = Bytes::new(&mut input, 0, file_bytes, ByteOrder::Little);
        let mut magic = [0; 8];
        bytes.fill(&mut magic, "its first bytes")?;
        let order = match &magic {
            MAGIC_LITTLE => ByteOrder::Little,
            MAGIC_BIG => ByteOrder::Big,
            _ => return Err(unusable("it does not begin as perf.data does")),
        };
        bytes.order = order;
        let head_bytes = bytes.u64("its head")?;
        let mut perf = PerfData {
            part: Part::new(input, PIPE_HEAD_BYTES, false),
            others: Vec::new(),
            order,
            attrs: Attrs::new(order),
            decoder: Decoder::default(),
            has_fork: false,
            has_exit: false,
            has_rename: false,
            names: Names::new(),
            header: TraceHeader {
                format: "perf.data",
                clock: Some("perf".to_owned()),
                ..TraceHeader::default()
            },
            report: SourceReport::default(),
            body: Vec::new(),
            latest: 0,
            early: VecDeque::new(),
            has_begun: false,
        };
        match head_bytes {
            PIPE_HEAD_BYTES => Ok(perf),
            HEAD_BYTES => {
                perf.read_head(file_bytes)?;
                Ok(perf)
            }
            other => Err(unusable(format!(
                "its head has {other} bytes; known are {HEAD_BYTES} and {PIPE_HEAD_BYTES}"
            ))),
        }
    }

    /// As [`PerfData::open`], of a directory: further files have records alone, each in order.
    pub fn open_with_parts(data: R, parts: Vec<R>) -> Result<PerfData<R>, SourceFault> {
        let mut perf = PerfData::open(data)?;
        let part = |input| Part::new(BufReader::with_capacity(PART_BUFFER, input), 0, true);
        perf.others = parts.into_iter().map(part).collect();
        Ok(perf)
    }

    /// The head of a file: events, features, and where the records are.
    fn read_head(&mut self, file_bytes: u64) -> Result<(), SourceFault> {
        let bytes = &mut Bytes::new(&mut self.part.input, 16, file_bytes - 16, self.order);
        let attr_bytes = bytes.u64("its head")?;
        let attrs = (bytes.u64("its head")?, bytes.u64("its head")?);
        let data = (bytes.u64("its head")?, bytes.u64("its head")?);
        bytes.skip(16, "its head")?;
        let mut features = Vec::new();
        for word in 0..4 {
            let bits = bytes.u64("its head")?;
            features.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| 64 * word + bit));
        }
        let range = |what: &str, (at, size): (u64, u64)| match at.checked_add(size) {
            Some(end) if end <= file_bytes => Ok(()),
            _ => Err(unusable(format!(
                "its {what} at byte {at} claim {size} bytes, and it has {file_bytes}"
            ))),
        };
        range("events", attrs)?;
        if !(64 + 16..=4096).contains(&attr_bytes) {
            return Err(unusable(format!(
                "its descriptions of events have {attr_bytes} bytes each"
            )));
        }
        for index in 0..attrs.1 / attr_bytes {
            let mut bytes = self.reader_at(attrs.0 + index * attr_bytes, file_bytes)?;
            let attr = bytes.bytes(attr_bytes - 16, 4096, "event")?;
            let ids = (bytes.u64("an event")?, bytes.u64("an event")?);
            range("numbers of an event", ids)?;
            let ids = self.reader_at(ids.0, file_bytes)?.bytes(
                ids.1,
                TEXT_BYTES_MAX,
                "numbers of an event",
            )?;
            self.attrs.add(&attr, &ids)?;
        }
        if data.1 == 0 {
            return Err(unusable(
                "its recording was not finished: it has no size; end `perf record` with Ctrl-C, not by killing it",
            ));
        }
        // A file that was cut has lost its features, which stand behind the records.
        range("records", data)?;
        let table = data.0 + data.1;
        for (index, feature) in features.into_iter().enumerate() {
            let mut bytes = self.reader_at(table + 16 * index as u64, file_bytes)?;
            let place = (bytes.u64("the table of features")?, bytes.u64("the table of features")?);
            range("features", place)?;
            let mut bytes = self.reader_at(place.0, file_bytes)?;
            if feature == FEATURE_TRACING_DATA {
                self.read_tracing_data(place.0, place.1)?;
            } else if is_known(feature) {
                let data = bytes.bytes(place.1, TEXT_BYTES_MAX, "feature")?;
                self.feature(feature, &data);
            }
        }
        self.check()?;
        self.part.input.seek(SeekFrom::Start(data.0))?;
        self.part.at = data.0;
        self.part.end = Some(table);
        Ok(())
    }

    fn reader_at(
        &mut self,
        at: u64,
        file_bytes: u64,
    ) -> Result<Bytes<&mut BufReader<R>>, SourceFault> {
        if at > file_bytes {
            return Err(unusable(format!("it points to byte {at} and has only {file_bytes}")));
        }
        self.part.input.seek(SeekFrom::Start(at))?;
        Ok(Bytes::new(&mut self.part.input, at, file_bytes - at, self.order))
    }
}

/// Features that are read.
fn is_known(feature: u32) -> bool {
    matches!(
        feature,
        FEATURE_HOSTNAME | FEATURE_OSRELEASE | FEATURE_VERSION | FEATURE_NRCPUS | FEATURE_CPUDESC
    )
}

impl<R: Read> PerfData<R> {
    /// Reads the formats of the tracepoints at the present place.
    fn read_tracing_data(&mut self, at: u64, size: u64) -> Result<(), SourceFault> {
        let bytes = &mut Bytes::new(&mut self.part.input, at, size, self.order);
        let head = metadata::read_head(bytes)?;
        metadata::read_page_layout(bytes, &head)?;
        let found = &mut Found {
            decoder: &mut self.decoder,
            names: &mut self.names,
            report: &mut self.report,
        };
        metadata::read_ftrace_formats(bytes, found)?;
        metadata::read_systems(bytes, found)?;
        metadata::read_kallsyms(bytes, found)?;
        metadata::read_printk_formats(bytes, found)?;
        // Names of threads follow in newer files; what is left is not needed.
        let left = bytes.left();
        bytes.skip(left, "tracing data")?;
        for (name, has) in [
            ("sched_process_fork", &mut self.has_fork),
            ("sched_process_exit", &mut self.has_exit),
            ("task_rename", &mut self.has_rename),
        ] {
            *has = self.decoder.id_of(name, &self.names).is_some();
        }
        Ok(())
    }

    fn feature(&mut self, feature: u32, data: &[u8]) {
        let text = || {
            let size = self.order.u32_at(data, 0)? as usize;
            let text = data.get(4..)?;
            let text = &text[..text.len().min(size)];
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            Some(String::from_utf8_lossy(&text[..end]).into_owned())
        };
        match feature {
            FEATURE_HOSTNAME => self.header.hostname = text(),
            FEATURE_OSRELEASE => self.header.release = text(),
            FEATURE_VERSION => self.header.tool = text().map(|version| format!("perf {version}")),
            FEATURE_CPUDESC => self.header.hardware = text(),
            FEATURE_NRCPUS => {
                let counts = [self.order.u32_at(data, 0), self.order.u32_at(data, 4)];
                let most = counts.into_iter().flatten().max();
                self.header.nr_cpus = most.map(|cpus| (cpus as usize).min(CPUS_MAX));
            }
            _ => {}
        }
    }

    /// Refuses files without tracepoints, with the reason.
    fn check(&mut self) -> Result<(), SourceFault> {
        if !self.attrs.has_tracepoints() {
            return Err(unusable(
                "it holds no tracepoints; record with `perf sched record` or `perf record -e sched:sched_switch -e sched:sched_waking -a`",
            ));
        }
        if self.decoder.is_empty() {
            return Err(unusable(
                "it lacks the formats of its tracepoints (TRACING_DATA), so that their fields cannot be found",
            ));
        }
        if let Some(clock) = self.attrs.clock() {
            self.header.clock = Some(clock.to_owned());
        }
        Ok(())
    }

    /// Reads records until the earliest of all can be handed out, and turns to its part; `false` at the end.
    fn read_round(&mut self) -> Result<bool, SourceFault> {
        let mut is_ready = self.read_part()?;
        for index in 0..self.others.len() {
            std::mem::swap(&mut self.part, &mut self.others[index]);
            is_ready |= self.read_part()?;
            let time = |part: &Part<R>| part.rounds.next_time().unwrap_or(u64::MAX);
            if time(&self.others[index]) <= time(&self.part) {
                std::mem::swap(&mut self.part, &mut self.others[index]);
            }
        }
        Ok(is_ready)
    }

    /// Reads records of the present part until some can be handed out; `false` at its end.
    fn read_part(&mut self) -> Result<bool, SourceFault> {
        while !self.part.rounds.is_ready() {
            if self.part.ended {
                return Ok(false);
            }
            match self.read_record()? {
                true if self.part.is_sorted && self.part.rounds.waiting() >= PART_RECORDS => {
                    self.part.rounds.finish();
                }
                true => {}
                false => {
                    self.part.ended = true;
                    self.end_of_records()?;
                }
            }
        }
        Ok(true)
    }

    fn end_of_records(&mut self) -> Result<(), SourceFault> {
        if let Err(why) = self.part.unpacker.finish() {
            self.report.damage(Place::Byte(self.part.at), why);
        }
        self.unpacked_records()?;
        self.report.cut |= u64::from(self.part.unpacker.has_rest());
        self.part.rounds.finish();
        if self.part.end.is_none() && !self.part.is_sorted {
            self.check()?;
        }
        Ok(())
    }

    /// Reads one record of the file; `false` at its end.
    fn read_record(&mut self) -> Result<bool, SourceFault> {
        if self.part.end.is_some_and(|end| self.part.at >= end) {
            return Ok(false);
        }
        let begin = self.part.at;
        let mut head = [0; 8];
        match self.fill(&mut head)? {
            0 => return Ok(false),
            8 => {}
            _ => return Ok(self.cut()),
        }
        let kind = self.order.u32([head[0], head[1], head[2], head[3]]);
        let misc = self.order.u16([head[4], head[5]]);
        let size = self.order.u16([head[6], head[7]]);
        self.report.pieces += 1;
        let Some(body) = size.checked_sub(8) else {
            // The next record cannot be found.
            self.report.damage(
                Place::Byte(begin),
                format!("a record of {size} bytes; the rest of the file is lost"),
            );
            self.report.lose(None, None);
            return Ok(false);
        };
        let mut bytes = std::mem::take(&mut self.body);
        bytes.resize(usize::from(body), 0);
        let filled = self.fill(&mut bytes)?;
        self.body = bytes;
        if filled < usize::from(body) {
            return Ok(self.cut());
        }
        match kind {
            RECORD_FINISHED_ROUND => match self.part.unpacker.round() {
                // What has been unpacked so far is not out of the unpacker yet.
                true => {}
                false => self.part.rounds.finish_round(),
            },
            RECORD_COMPRESSED | RECORD_COMPRESSED2 => {
                let data = match kind {
                    RECORD_COMPRESSED => Some(&self.body[..]),
                    _ => self.order.u64_at(&self.body, 0).and_then(|size| {
                        self.body.get(8..8_usize.checked_add(usize::try_from(size).ok()?)?)
                    }),
                };
                let fed = match data {
                    Some(data) => self.part.unpacker.feed(data),
                    None => Err("a packed record claims more than it has".to_owned()),
                };
                if let Err(why) = fed {
                    self.report.damage(Place::Byte(begin), why);
                    self.report.lose(None, None);
                }
                self.unpacked_records()?;
            }
            RECORD_ATTR => {
                let size = self.order.u32_at(&self.body, 4).unwrap_or(0) as usize;
                let (attr, ids) = self.body.split_at_checked(size).unwrap_or((&self.body, &[]));
                self.attrs.add(attr, ids)?;
            }
            RECORD_FEATURE => {
                let feature = self.order.u64_at(&self.body, 0).unwrap_or(0) as u32;
                let data = std::mem::take(&mut self.body);
                self.feature(feature, data.get(8..).unwrap_or(&[]));
                self.body = data;
            }
            RECORD_TRACING_DATA => {
                let size = u64::from(self.order.u32_at(&self.body, 0).unwrap_or(0));
                self.read_tracing_data(self.part.at, size)?;
                let padding = size.next_multiple_of(8) - size;
                self.fill(&mut [0; 8][..padding as usize])?;
                self.part.at += size;
            }
            RECORD_AUXTRACE => {
                let size = self.order.u64_at(&self.body, 0).unwrap_or(0);
                self.part.at +=
                    std::io::copy(&mut (&mut self.part.input).take(size), &mut std::io::sink())?;
            }
            kind => {
                let body = std::mem::take(&mut self.body);
                self.record(kind, misc, &body, begin);
                self.body = body;
            }
        }
        Ok(true)
    }

    /// Takes the records that have been unpacked.
    fn unpacked_records(&mut self) -> Result<(), SourceFault> {
        let begin = self.part.at;
        let mut record = std::mem::take(&mut self.body);
        loop {
            match self.part.unpacker.next_record(self.order, &mut record) {
                unpack::Next::Record { kind, misc } => {
                    self.report.pieces += 1;
                    self.record(kind, misc, &record, begin);
                }
                unpack::Next::Round => self.part.rounds.finish_round(),
                unpack::Next::Damaged => {
                    self.report
                        .damage(Place::Byte(begin), "an unpacked record of less than 8 bytes");
                    self.report.lose(None, None);
                    break;
                }
                unpack::Next::Nothing => break,
            }
        }
        self.body = record;
        Ok(())
    }

    /// Keeps a record until its turn; the threads at the start are noted at once.
    fn record(&mut self, kind: u32, misc: u16, body: &[u8], at: u64) {
        if !matches!(
            kind,
            RECORD_SAMPLE
                | RECORD_COMM
                | RECORD_FORK
                | RECORD_EXIT
                | RECORD_LOST
                | RECORD_LOST_SAMPLES
        ) {
            return;
        }
        let sample = match kind {
            RECORD_SAMPLE => self.attrs.sample(body),
            _ => self.attrs.trailer(body),
        };
        let Some(sample) = sample else {
            self.report.damage(
                Place::Byte(at),
                format!("a record of type {kind} that does not fit its event"),
            );
            self.report.lose(None, None);
            return;
        };
        if kind == RECORD_COMM && sample.time.unwrap_or(0) == 0 {
            if let (Some(tgid), Some(pid)) =
                (self.order.u32_at(body, 0), self.order.u32_at(body, 4))
                && self.header.threads.len() < THREADS_MAX
            {
                self.header.threads.push(StartingThread {
                    pid,
                    tgid: Some(tgid),
                    comm: String::from_utf8_lossy(until_nul(body.get(8..).unwrap_or(&[])))
                        .into_owned(),
                    ..StartingThread::default()
                });
            }
            return;
        }
        // A loss without a time happened about now.
        let time = match (kind, sample.time) {
            (RECORD_LOST | RECORD_LOST_SAMPLES, None | Some(0)) => self.part.rounds.latest(),
            (_, Some(time)) if time > 0 => time,
            _ => return,
        };
        if !self.part.rounds.push(Waiting { time, kind, misc }, body) {
            self.report.damage(
                Place::Byte(at),
                "so many records without an end of a round; their order may be wrong",
            );
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, SourceFault> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.part.input.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.part.at += filled as u64;
        Ok(filled)
    }

    fn cut(&mut self) -> bool {
        self.report.cut = 1;
        false
    }

    /// The event that a record is; `None` if it is none.
    fn event(&mut self, waiting: Waiting, body: &[u8]) -> Option<TraceEvent> {
        let sample = match waiting.kind {
            RECORD_SAMPLE => self.attrs.sample(body)?,
            _ => self.attrs.trailer(body)?,
        };
        let cpu = match sample.cpu {
            Some(cpu) if (cpu as usize) < CPUS_MAX => CpuId(cpu as u16),
            Some(cpu) => {
                self.report.damage(Place::Byte(self.part.at), format!("a record of CPU {cpu}"));
                return None;
            }
            None => CpuId(0),
        };
        let mut context = EventContext {
            pid: sample.tid.unwrap_or(0),
            tgid: sample.pid.filter(|pid| *pid != u32::MAX),
            ..EventContext::default()
        };
        let word = |at| self.order.u32_at(body, at);
        let (name, kind) = match waiting.kind {
            RECORD_SAMPLE => return self.sample(&sample, waiting.time, cpu, context),
            RECORD_LOST | RECORD_LOST_SAMPLES => {
                let at = if waiting.kind == RECORD_LOST { 8 } else { 0 };
                let events = self.order.u64_at(body, at)?;
                self.report.lose(sample.cpu.map(|_| cpu), Some(events));
                context = EventContext::default();
                (NameId::NONE, TraceEventKind::Lost { events: Some(events) })
            }
            RECORD_COMM => {
                let pid = word(4)?;
                let comm = self.names.intern_bytes(until_nul(body.get(8..)?));
                self.counted(
                    "PERF_RECORD_COMM",
                    self.has_rename,
                    TraceEventKind::Rename { pid, comm },
                )
            }
            RECORD_FORK => {
                let (child, parent) = (word(8)?, word(12)?);
                let child_comm = NameId::NONE;
                self.counted(
                    "PERF_RECORD_FORK",
                    self.has_fork,
                    TraceEventKind::Fork { parent, child_comm, child },
                )
            }
            _ => {
                let pid = word(8)?;
                self.counted("PERF_RECORD_EXIT", self.has_exit, TraceEventKind::Exit { pid })
            }
        };
        Some(TraceEvent { at: waiting.time, cpu, name, context, kind })
    }

    /// Counts a record of perf's own; it is an event only if no tracepoint says the same.
    fn counted(
        &mut self,
        name: &str,
        doubled: bool,
        kind: TraceEventKind,
    ) -> (NameId, TraceEventKind) {
        let name = self.names.intern(name);
        self.report.count(name, doubled);
        (name, if doubled { TraceEventKind::Other } else { kind })
    }

    fn sample(
        &mut self,
        sample: &Sample,
        at: Ns,
        cpu: CpuId,
        process: EventContext,
    ) -> Option<TraceEvent> {
        let raw = sample.raw?;
        match self.decoder.decode(raw, &mut self.names) {
            Ok(decoded) => {
                let unused = matches!(decoded.kind, TraceEventKind::Other);
                self.report.count(decoded.name, unused);
                let context = EventContext { tgid: process.tgid, ..decoded.context };
                Some(TraceEvent { at, cpu, name: decoded.name, context, kind: decoded.kind })
            }
            Err(undecoded) => {
                let what = undecoded_text(undecoded, &self.names);
                self.report.damage(Place::Byte(self.part.at), what);
                None
            }
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

impl<R: Read> TraceSource for PerfData<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        while self.early.is_empty() || !self.has_begun {
            if !self.read_round()? {
                self.has_begun = true;
                break;
            }
            let mut body = std::mem::take(&mut self.body);
            let waiting = self.part.rounds.pop(&mut body);
            let is_sample = waiting.as_ref().is_some_and(|of| of.kind == RECORD_SAMPLE);
            let event = waiting.and_then(|waiting| self.event(waiting, &body));
            self.body = body;
            let Some(event) = event else { continue };
            if !self.has_begun && (is_sample || self.early.len() >= EARLY_MAX) {
                self.early.iter_mut().for_each(|early| early.at = event.at);
                self.has_begun = true;
            }
            self.early.push_back(event);
        }
        let event = self.early.pop_front();
        if let Some(event) = &event {
            self.report.follow(&mut self.latest, event, Place::Byte(self.part.at));
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
