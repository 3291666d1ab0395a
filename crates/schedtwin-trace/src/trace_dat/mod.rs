// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads trace.dat, the binary format of trace-cmd and of `schedtwin record`, versions 6 and 7.
//!
//! A file holds, for each CPU, the pages of the kernel's ring buffer as the kernel wrote them, and
//! beside them whatever is needed to read those: the layout of a page, the formats of the tracepoints.
//!
//! Algorithm:
//! 1. `layout.rs` reads the metadata: in version 6 they follow each other in a fixed order, in version 7 they are
//!    sections that a chain of options points to, each of which may be packed.
//! 2. Each CPU of each buffer becomes a stream (`stream.rs`) that holds one block of pages.
//! 3. The streams are merged by time; on equal times the lower stream goes first, and a stream keeps its order.
//! 4. Records become events by their formats ([`crate::tracepoint::decode`]).
//!
//! Memory: a block of each stream, and the plans of the tracepoints.
//!
//! **Several buffers** (instances) are merged if they have the same clock. A tracepoint that is enabled in more than
//! one would come twice: it is taken from the buffer that has it first, and counted in the others as a foreign piece.
//!
//! **Refused by name:** recordings of a guest (their CPUs are the host's threads), the text of a latency tracer,
//! clocks that do not count time (`counter`, and `x86-tsc` without its conversion).

mod layout;
pub mod notes;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod write;

use crate::event::{
    CPUS_MAX, NameId, Names, Place, SourceFault, SourceReport, TraceEvent, TraceEventKind,
    TraceHeader, TraceSource,
};
use crate::tracepoint::{Decoder, Lost, PageLayout, Undecoded};
use layout::TscToNs;
use schedtwin_types::{CpuId, Ns};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};
use stream::{Advance, Stream};

pub use crate::tracepoint::metadata::MAGIC;

/// Whether a file of these first bytes is a trace.dat.
pub fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(&MAGIC[..3])
}

/// A trace.dat that is being read.
pub struct TraceDat<R> {
    input: R,
    file_bytes: u64,
    names: Names,
    header: TraceHeader,
    report: SourceReport,
    decoder: Decoder,
    layout: PageLayout,
    tsc: Option<TscToNs>,
    streams: Vec<Stream>,
    /// The stream whose record is next, if any; the others that have one are in `waiting`.
    current: Option<usize>,
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// By number of the tracepoint: the buffer that it is taken from, plus 1. Empty if there is only one buffer.
    owners: Vec<u16>,
    /// The event after a loss.
    pending: Option<TraceEvent>,
    latest: Ns,
}

impl<R: Read + Seek> TraceDat<R> {
    /// Reads all but the events.
    pub fn open(mut input: R) -> Result<TraceDat<R>, SourceFault> {
        let file_bytes = input.seek(std::io::SeekFrom::End(0))?;
        let mut names = Names::new();
        let mut report = SourceReport::default();
        let layout::Layout { decoder, page, buffers, header, tsc } =
            layout::read(&mut input, file_bytes, &mut names, &mut report)?;
        let owners = if buffers.len() > 1 {
            vec![0; crate::tracepoint::decode::FORMATS_MAX]
        } else {
            Vec::new()
        };
        let mut streams = Vec::new();
        for (index, buffer) in buffers.into_iter().enumerate() {
            for cpu in &buffer.cpus {
                if usize::from(cpu.cpu) >= CPUS_MAX {
                    return Err(SourceFault::Unusable(format!(
                        "it has a CPU {}, and at most {CPUS_MAX} are read",
                        cpu.cpu
                    )));
                }
                if cpu.bytes > 0 {
                    streams.push(Stream::new(index as u16, &buffer, cpu));
                }
            }
        }
        let mut trace = TraceDat {
            input,
            file_bytes,
            names,
            header,
            report,
            decoder,
            layout: page,
            tsc,
            streams,
            current: None,
            waiting: BinaryHeap::new(),
            owners,
            pending: None,
            latest: 0,
        };
        for index in 0..trace.streams.len() {
            if let Some(at) = trace.advance(index)? {
                trace.waiting.push(Reverse((at, index)));
            }
        }
        trace.current = trace.waiting.pop().map(|Reverse((_, index))| index);
        Ok(trace)
    }

    /// As [`TraceDat::open`], of a file that was made of something else: that is its format, and it may have been cut.
    pub(crate) fn open_as(
        input: R,
        format: &'static str,
        is_cut: bool,
    ) -> Result<TraceDat<R>, SourceFault> {
        let mut trace = TraceDat::open(input)?;
        trace.report.cut = is_cut.into();
        trace.header.format = format;
        Ok(trace)
    }

    /// Moves a stream to its next record; its time.
    fn advance(&mut self, index: usize) -> Result<Option<u64>, SourceFault> {
        loop {
            let stream = &mut self.streams[index];
            match stream.advance(&mut self.input, self.file_bytes, &self.layout)? {
                Advance::Record(at) => return Ok(Some(at)),
                Advance::Page { lost, .. } => {
                    self.report.pieces += 1;
                    match lost {
                        Lost::Nothing => {}
                        Lost::Events(events) => {
                            self.report.lose(Some(stream.cpu), Some(events));
                            stream.lose(Some(events));
                        }
                        Lost::Unknown => {
                            self.report.lose(Some(stream.cpu), None);
                            stream.lose(None);
                        }
                    }
                }
                Advance::Damaged { at, why } => {
                    self.report.damage(Place::Byte(at), why);
                    self.report.lose(Some(stream.cpu), None);
                    stream.lose(None);
                }
                Advance::Cut => self.report.cut = 1,
                Advance::End => return Ok(None),
            }
        }
    }

    /// Chooses the stream whose record is earliest, after the current one has moved to the time `at`.
    fn choose(&mut self, current: usize, at: Option<u64>) {
        self.current = match (at, self.waiting.peek()) {
            (Some(at), Some(Reverse(first))) if (at, current) > *first => {
                let first = first.1;
                self.waiting.pop();
                self.waiting.push(Reverse((at, current)));
                Some(first)
            }
            (Some(_), _) => Some(current),
            (None, _) => self.waiting.pop().map(|Reverse((_, index))| index),
        };
    }

    /// Reads the current stream's record; `None` if it is no event for us.
    fn event(&mut self, index: usize) -> Option<TraceEvent> {
        let stream = &self.streams[index];
        let (at, record) = stream.record()?;
        let place = Place::Byte(stream.page_at());
        let (cpu, buffer) = (stream.cpu, stream.buffer);
        match self.decoder.decode(record, &mut self.names) {
            Ok(decoded) => {
                if let Some(owner) = self.owners.get_mut(usize::from(decoded.id)) {
                    if *owner == 0 {
                        *owner = buffer + 1;
                    }
                    if *owner != buffer + 1 {
                        self.report.foreign += 1;
                        return None;
                    }
                }
                let unused = matches!(decoded.kind, TraceEventKind::Other);
                self.report.count(decoded.name, unused);
                let at = self.tsc.as_ref().map_or(at, |tsc| tsc.ns(at));
                Some(TraceEvent {
                    at,
                    cpu,
                    name: decoded.name,
                    context: decoded.context,
                    kind: decoded.kind,
                })
            }
            Err(undecoded) => {
                let what = undecoded_text(undecoded, &self.names);
                self.report.damage(place, what);
                None
            }
        }
    }
}

/// Returns the fault of a record in words.
pub(crate) fn undecoded_text(undecoded: Undecoded, names: &Names) -> String {
    match undecoded {
        Undecoded::UnknownId(id) => {
            format!("a record of tracepoint {id}, whose format the file lacks")
        }
        Undecoded::Short(name) => {
            format!("a record of {} is too short for its fields", known(names.text(name)))
        }
        Undecoded::OutOfRange(name) => {
            format!("a record of {} has a CPU or a pid out of range", known(names.text(name)))
        }
    }
}

fn known(name: &str) -> &str {
    if name.is_empty() { "an unknown tracepoint" } else { name }
}

impl<R: Read + Seek> TraceSource for TraceDat<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        if let Some(event) = self.pending.take() {
            return Ok(Some(event));
        }
        while let Some(index) = self.current {
            let event = self.event(index);
            let lost = match event {
                Some(_) => self.streams[index].take_lost(),
                None => None,
            };
            let at = self.advance(index)?;
            self.choose(index, at);
            let Some(event) = event else { continue };
            let place = Place::Byte(self.streams[index].page_at());
            self.report.follow(&mut self.latest, &event, place);
            if let Some(events) = lost {
                self.pending = Some(event);
                let kind = TraceEventKind::Lost { events };
                let lost =
                    TraceEvent { name: NameId::NONE, kind, context: Default::default(), ..event };
                return Ok(Some(lost));
            }
            return Ok(Some(event));
        }
        Ok(None)
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

/// A CPU's number as the type of events.
pub(crate) fn cpu_id(cpu: u16) -> CpuId {
    CpuId(cpu)
}
