// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads Perfetto traces of any tool as typed events: `perfetto`, `tracebox`, Android's `record_android_trace`, ours.
//!
//! Algorithm:
//! 1. Packets are read one by one; packed ones (deflate, Zstandard) hold packets in turn.
//! 2. Bundles of events wait undecoded, those of each CPU in their order (`bundle.rs`).
//! 3. While more than [`WINDOW_BYTES`] wait, or at the end, the CPU with the earliest event hands out that event.
//!
//! So events are in order as long as no CPU's bundles are more than a window behind in the file, which is minutes of a busy
//! phone; a trace smaller than that is sorted wholly. Memory: the window, and one decoded bundle of each CPU.
//!
//! **Clocks.** Times of events are taken as they are, in the clock of the bundles; a bundle in another clock than
//! the first one is left out and told. Spans of the frame timeline are moved to that clock by the last snapshot of clocks.
//!
//! **Left out:** events of other machines (guests), track events of programs, sampled counters.
//! Events before `tracing_started` are kept, other than by the trace processor.

pub(crate) mod bundle;
mod messages;
mod rails;
#[cfg(test)]
mod tests;

use crate::event::{
    CPUS_MAX, EventContext, FrameSpan, Missing, Names, Place, SourceFault, SourceReport,
    StartingThread, TraceEvent, TraceEventKind, TraceHeader, TraceSource,
};
use crate::perfetto_messages::{
    ClockSnapshot, FtraceEventBundle as Bundle, ProcessTree, SystemInfo,
};
use bundle::{CpuState, Reader};
use messages::{BundleHead, CpuInfo, FrameTimeline, FtraceStats, Packet, PowerRails};
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, decode_key, decode_varint, encode_varint, skip_field};
use rails::Rails;
use schedtwin_types::{CpuId, Ns};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::io::{self, BufRead, Read};

/// Bytes of bundles that wait for earlier ones of other CPUs.
pub const WINDOW_BYTES: usize = 64 << 20;

/// Longest packet, and longest content of a packed one.
const PACKET_BYTES_MAX: u64 = 64 << 20;

/// Threads that are kept, and sequences.
const THREADS_MAX: usize = 1 << 20;
const SEQUENCES_MAX: usize = 1 << 16;

/// The tag of a packet: field 1, bytes.
const PACKET_TAG: u8 = 0x0a;

/// Clocks of snapshots: raw monotonic, and monotonic with suspends.
const CLOCK_MONOTONIC_RAW: u32 = 5;
const CLOCK_BOOTTIME: u32 = 6;

/// Clocks of bundles.
const FTRACE_CLOCKS: [Option<&str>; 5] =
    [Some("boot"), None, Some("global"), Some("local"), Some("mono_raw")];

/// Whether a file of these first bytes is a Perfetto trace. There is no magic but the tag of the first packet, which is a line
/// feed too, so the fields of the first packet are looked at as far as they are there.
pub fn is_perfetto(head: &[u8]) -> bool {
    let Some((&PACKET_TAG, mut rest)) = head.split_first() else { return false };
    let Ok(length) = decode_varint(&mut rest) else { return false };
    let whole = length <= rest.len() as u64;
    let mut packet = &rest[..length.min(rest.len() as u64) as usize];
    while !packet.is_empty() {
        let skipped = decode_key(&mut packet).and_then(|(number, wire_type)| {
            skip_field(wire_type, number, &mut packet, DecodeContext::default())
        });
        if skipped.is_err() {
            // A field may reach beyond the bytes that are there.
            return !whole && head.len() > 64;
        }
    }
    !whole || rest.get(length as usize).is_none_or(|next| *next == PACKET_TAG)
}

/// A Perfetto trace that is being read.
pub struct PerfettoTrace<R> {
    input: R,
    at: u64,
    ended: bool,
    names: Names,
    header: TraceHeader,
    report: SourceReport,
    reader: Reader,
    cpus: BTreeMap<u16, Cpu>,
    /// CPUs with a decoded event, by its time; the one in `current` is not among them.
    waiting: BinaryHeap<Reverse<(Ns, u16)>>,
    current: Option<u16>,
    waiting_bytes: usize,
    /// Spans of frames, which have no CPU.
    frames: BTreeMap<(Ns, u64), TraceEventKind>,
    frames_seen: u64,
    clock: Option<i32>,
    snapshot: BTreeMap<u32, u64>,
    sequences: BTreeSet<u32>,
    default_clocks: BTreeMap<u32, u32>,
    overruns: BTreeMap<u64, u64>,
    threads: BTreeMap<u32, usize>,
    rails: Rails,
    other_clock: bool,
    latest: Ns,
}

/// The bundles of a CPU.
#[derive(Default)]
struct Cpu {
    state: CpuState,
    bundles: VecDeque<(u64, Bytes, bool)>,
    events: Vec<TraceEvent>,
    next: usize,
}

fn unusable(why: impl Into<String>) -> SourceFault {
    SourceFault::Unusable(why.into())
}

impl<R: BufRead> PerfettoTrace<R> {
    /// Starts to read.
    pub fn open(mut input: R) -> Result<PerfettoTrace<R>, SourceFault> {
        if input.fill_buf()?.first() != Some(&PACKET_TAG) {
            return Err(unusable("it does not begin as a Perfetto trace does"));
        }
        let mut names = Names::new();
        let reader = Reader::new(&mut names);
        Ok(PerfettoTrace {
            input,
            at: 0,
            ended: false,
            names,
            header: TraceHeader { format: "Perfetto", ..TraceHeader::default() },
            report: SourceReport::default(),
            reader,
            cpus: BTreeMap::new(),
            waiting: BinaryHeap::new(),
            current: None,
            waiting_bytes: 0,
            frames: BTreeMap::new(),
            frames_seen: 0,
            clock: None,
            snapshot: BTreeMap::new(),
            sequences: BTreeSet::new(),
            default_clocks: BTreeMap::new(),
            overruns: BTreeMap::new(),
            threads: BTreeMap::new(),
            rails: Rails::default(),
            other_clock: false,
            latest: 0,
        })
    }

    /// Reads the next packet; `false` at the end.
    fn read_packet(&mut self) -> Result<bool, SourceFault> {
        let begin = self.at;
        let Some(tag) = self.varint()? else {
            return Ok(false);
        };
        if tag != u64::from(PACKET_TAG) {
            return self.foreign_field(tag, begin);
        }
        let Some(length) = self.varint()? else {
            self.report.cut = 1;
            return Ok(false);
        };
        if length > PACKET_BYTES_MAX {
            let what = format!(
                "a packet of {length} bytes, more than {PACKET_BYTES_MAX}; the rest is lost"
            );
            self.damaged_to_the_end(begin, what);
            return Ok(false);
        }
        let mut bytes = Vec::new();
        // Grows as bytes arrive: a wrong length of a short file costs nothing.
        (&mut self.input).take(length).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        if (bytes.len() as u64) < length {
            // Usual where a recording crashed, or was copied while it ran.
            self.report.cut = 1;
            let there = bytes.len() as u64;
            self.report.missing = Some(Missing::Bytes { missing: length - there, there });
            if let Some(whole) = whole_part(&bytes).filter(|_| self.report.elsewhere == 0) {
                self.packet(Bytes::from(whole), begin, false);
            }
            return Ok(false);
        }
        self.packet(Bytes::from(bytes), begin, false);
        Ok(true)
    }

    /// Skips a field of the file that is no packet.
    fn foreign_field(&mut self, tag: u64, begin: u64) -> Result<bool, SourceFault> {
        self.report.foreign += 1;
        let size = match tag & 7 {
            0 => {
                return Ok(self.varint()?.is_some());
            }
            1 => 8,
            2 => match self.varint()? {
                Some(size) => size,
                None => return Ok(false),
            },
            5 => 4,
            _ => {
                self.damaged_to_the_end(begin, "it is no packet; the rest is lost".to_owned());
                return Ok(false);
            }
        };
        let skipped = io::copy(&mut (&mut self.input).take(size), &mut io::sink())?;
        self.at += skipped;
        self.report.cut |= u64::from(skipped < size);
        Ok(skipped == size)
    }

    fn damaged_to_the_end(&mut self, at: u64, what: String) {
        self.report.damage(Place::Byte(at), what);
        self.report.lose(None, None);
    }

    /// A number; `None` at the end of the file.
    fn varint(&mut self) -> Result<Option<u64>, SourceFault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            if self.input.read(&mut byte)? == 0 {
                self.report.cut |= u64::from(shift > 0);
                return Ok(None);
            }
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(value));
            }
        }
        self.damaged_to_the_end(
            self.at,
            "a number of more than 64 bits; the rest is lost".to_owned(),
        );
        Ok(None)
    }
}

/// The packet of which a file has only the beginning, without what is cut: fields that are whole, and of the bundle of events
/// that the cut goes through its own whole fields. `None`: nothing of it is whole.
fn whole_part(bytes: &[u8]) -> Option<Vec<u8>> {
    const EVENTS: u64 = 1 << 3 | 2;
    let (end, tail) = whole_fields(bytes);
    let mut whole = bytes[..end].to_vec();
    if let Some((EVENTS, content)) = tail {
        let (end, _) = whole_fields(content);
        if end > 0 {
            encode_varint(EVENTS, &mut whole);
            encode_varint(end as u64, &mut whole);
            whole.extend_from_slice(&content[..end]);
        }
    }
    (!whole.is_empty()).then_some(whole)
}

/// Where the last whole field of a message ends, and the tag of the one that is cut with as much of its content as there is.
fn whole_fields(bytes: &[u8]) -> (usize, Option<(u64, &[u8])>) {
    let mut end = 0;
    loop {
        let mut rest = &bytes[end..];
        let (Ok(tag), true) = (decode_varint(&mut rest), !rest.is_empty()) else {
            return (end, None);
        };
        let size = match tag & 7 {
            0 => match decode_varint(&mut rest) {
                Ok(_) => 0,
                Err(_) => return (end, None),
            },
            1 => 8,
            2 => match decode_varint(&mut rest) {
                Ok(size) => size,
                Err(_) => return (end, None),
            },
            5 => 4,
            _ => return (end, None),
        };
        if size > rest.len() as u64 {
            return (end, (tag & 7 == 2).then_some((tag, rest)));
        }
        end = bytes.len() - rest.len() + size as usize;
        if end == bytes.len() {
            return (end, None);
        }
    }
}

impl<R> PerfettoTrace<R> {
    /// Takes a packet in; `packed`: it was in another one.
    fn packet(&mut self, bytes: Bytes, at: u64, packed: bool) {
        self.report.pieces += 1;
        let damage = |report: &mut SourceReport, what: &str, error: prost::DecodeError| {
            report.damage(Place::Byte(at), format!("{what} that cannot be read: {error}"));
        };
        let packet = match Packet::decode(bytes) {
            Ok(packet) => packet,
            Err(error) => return damage(&mut self.report, "a packet", error),
        };
        if packet.machine.unwrap_or(0) != 0 {
            self.report.elsewhere += 1;
            return;
        }
        let sequence = packet.sequence.unwrap_or(0);
        if let Some(clock) = packet.defaults.and_then(|defaults| defaults.timestamp_clock)
            && self.default_clocks.len() < SEQUENCES_MAX
        {
            self.default_clocks.insert(sequence, clock);
        }
        let known = self.sequences.contains(&sequence);
        if !known && self.sequences.len() < SEQUENCES_MAX {
            self.sequences.insert(sequence);
        }
        // The flag stands on the first packet of a sequence, too, where nothing is missing.
        let dropped = known && packet.previous_packet_dropped.unwrap_or(0) != 0;
        macro_rules! part {
            ($field:ident, $type:ty, $what:literal, $take:ident) => {
                if let Some(bytes) = packet.$field.clone() {
                    match <$type>::decode(bytes) {
                        Ok(part) => self.$take(part),
                        Err(error) => damage(&mut self.report, $what, error),
                    }
                }
            };
        }
        part!(clock_snapshot, ClockSnapshot, "a snapshot of clocks", take_clocks);
        part!(process_tree, ProcessTree, "a process tree", take_processes);
        part!(system_info, SystemInfo, "a description of the system", take_system);
        part!(cpu_info, CpuInfo, "a description of CPUs", take_cpus);
        part!(ftrace_stats, FtraceStats, "statistics", take_stats);
        part!(power_rails, PowerRails, "power rails", take_rails);
        if let Some(bytes) = &packet.frame_timeline {
            match FrameTimeline::decode(bytes.clone()) {
                Ok(frame) => self.take_frame(&packet, frame, at),
                Err(error) => damage(&mut self.report, "a span of the frame timeline", error),
            }
        }
        if let Some(bytes) = packet.ftrace_events {
            self.take_bundle(bytes, at, packed, dropped);
        }
        if packed
            && (packet.compressed_packets.is_some() || packet.zstd_compressed_packets.is_some())
        {
            self.report
                .damage(Place::Byte(at), "a packed packet within a packed one; it is left out");
            return;
        }
        if let Some(bytes) = packet.compressed_packets {
            self.take_packed(flate2::read::ZlibDecoder::new(&bytes[..]), at);
        }
        if let Some(bytes) = packet.zstd_compressed_packets {
            match ruzstd::decoding::StreamingDecoder::new(&bytes[..]) {
                Ok(decoder) => self.take_packed(decoder, at),
                Err(error) => self.unpack_failed(at, &error.to_string()),
            }
        }
    }

    fn unpack_failed(&mut self, at: u64, why: &str) {
        self.report.damage(Place::Byte(at), format!("a packed packet cannot be unpacked: {why}"));
        self.report.lose(None, None);
    }

    /// Takes the packets of a packed one.
    fn take_packed(&mut self, unpacker: impl Read, at: u64) {
        let mut bytes = Vec::new();
        let unpacked = unpacker.take(PACKET_BYTES_MAX + 1).read_to_end(&mut bytes);
        if let Err(error) = unpacked {
            // What came out before the damage is whole.
            self.unpack_failed(at, &error.to_string());
        }
        if bytes.len() as u64 > PACKET_BYTES_MAX {
            return self.unpack_failed(at, &format!("more than {PACKET_BYTES_MAX} bytes"));
        }
        let mut rest = Bytes::from(bytes);
        while !rest.is_empty() {
            let tag = decode_varint(&mut rest);
            let length = decode_varint(&mut rest);
            let (Ok(0x0a), Ok(length)) = (tag, length) else {
                return self.unpack_failed(at, "it holds something else than packets");
            };
            if length > rest.len() as u64 {
                return self.unpack_failed(at, "its last packet is cut");
            }
            let packet = rest.split_to(length as usize);
            self.packet(packet, at, true);
        }
    }

    fn take_bundle(&mut self, bytes: Bytes, at: u64, packed: bool, dropped: bool) {
        let head = match BundleHead::decode(bytes.clone()) {
            Ok(head) => head,
            Err(error) => {
                self.report.damage(
                    Place::Byte(at),
                    format!("a bundle of events that cannot be read: {error}"),
                );
                return self.report.lose(None, None);
            }
        };
        let Some(cpu) = head.cpu.filter(|cpu| (*cpu as usize) < CPUS_MAX) else {
            let which = head.cpu.map_or("without a CPU".to_owned(), |cpu| format!("of CPU {cpu}"));
            self.report.damage(Place::Byte(at), format!("a bundle of events {which}"));
            return self.report.lose(None, None);
        };
        let clock = head.ftrace_clock.unwrap_or(0);
        let name = usize::try_from(clock).ok().and_then(|clock| *FTRACE_CLOCKS.get(clock)?);
        if self.clock.is_none() && name.is_some() {
            self.clock = Some(clock);
            self.header.clock = name.map(str::to_owned);
        }
        if self.clock != Some(clock) {
            self.report.foreign += 1;
            if !self.other_clock {
                self.other_clock = true;
                self.report.damage(
                    Place::Byte(at),
                    format!(
                        "events in the clock {} are left out",
                        name.unwrap_or("that is told as unknown")
                    ),
                );
            }
            return;
        }
        // A part of a packed packet would keep all of it.
        let bytes = if packed { Bytes::copy_from_slice(&bytes) } else { bytes };
        self.waiting_bytes += bytes.len();
        let cpu = cpu as u16;
        self.cpus.entry(cpu).or_default().bundles.push_back((at, bytes, dropped));
        let of_cpu = &self.cpus[&cpu];
        let idle = of_cpu.next >= of_cpu.events.len() && self.current != Some(cpu);
        if idle
            && of_cpu.bundles.len() == 1
            && let Some(at) = self.load(cpu)
        {
            self.waiting.push(Reverse((at, cpu)));
        }
    }

    /// Decodes bundles of a CPU until one has an event; its time.
    fn load(&mut self, cpu: u16) -> Option<Ns> {
        let of_cpu = self.cpus.get_mut(&cpu)?;
        loop {
            if let Some(event) = of_cpu.events.get(of_cpu.next) {
                return Some(event.at);
            }
            let Some((at, bytes, dropped)) = of_cpu.bundles.pop_front() else {
                of_cpu.events.clear();
                of_cpu.next = 0;
                return None;
            };
            self.waiting_bytes -= bytes.len();
            let id = CpuId(cpu);
            let mut bundle = match Bundle::decode(bytes) {
                Ok(bundle) => bundle,
                Err(error) => {
                    self.report.damage(
                        Place::Byte(at),
                        format!("a bundle of events that cannot be read: {error}"),
                    );
                    self.report.lose(Some(id), None);
                    of_cpu.state = CpuState::default();
                    continue;
                }
            };
            bundle.lost_events = Some(bundle.lost_events == Some(true) || dropped);
            if bundle.lost_events == Some(true) || !bundle.error.is_empty() {
                self.report.lose(Some(id), None);
            }
            of_cpu.next = 0;
            let damages = self.reader.read(
                &bundle,
                id,
                &mut of_cpu.state,
                &mut self.names,
                &mut self.report,
                &mut of_cpu.events,
            );
            damages.into_iter().for_each(|what| self.report.damage(Place::Byte(at), what));
        }
    }

    fn take_clocks(&mut self, snapshot: ClockSnapshot) {
        self.snapshot = snapshot
            .clocks
            .iter()
            .take(256)
            .filter_map(|clock| Some((clock.clock_id?, clock.timestamp?)))
            .collect();
    }

    fn take_rails(&mut self, rails: PowerRails) {
        self.rails.take(rails, &mut self.header);
    }

    fn take_processes(&mut self, tree: ProcessTree) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for process in tree.processes {
            if let Ok(pid) = u32::try_from(process.pid.unwrap_or(-1)) {
                let comm = process.cmdline.first().map_or(String::new(), |word| text(word));
                self.thread(pid, Some(pid), comm, false);
            }
        }
        for thread in tree.threads {
            if let Ok(pid) = u32::try_from(thread.tid.unwrap_or(-1)) {
                let tgid = thread.tgid.and_then(|tgid| u32::try_from(tgid).ok());
                self.thread(pid, tgid, text(&thread.name.unwrap_or_default()), true);
            }
        }
    }

    /// Notes a thread; what is told later is newer, a thread's own name better than its command line.
    fn thread(&mut self, pid: u32, tgid: Option<u32>, comm: String, own_name: bool) {
        if let Some(index) = self.threads.get(&pid) {
            let known = &mut self.header.threads[*index];
            known.tgid = tgid.or(known.tgid);
            if own_name && !comm.is_empty() {
                known.comm = comm;
            }
        } else if self.threads.len() < THREADS_MAX {
            self.threads.insert(pid, self.header.threads.len());
            self.header.threads.push(StartingThread {
                pid,
                tgid,
                comm,
                ..StartingThread::default()
            });
        }
    }

    fn take_system(&mut self, info: SystemInfo) {
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        if let Some(release) = info.utsname.and_then(|name| name.release).map(text) {
            self.reader.modern = is_modern(&release);
            self.header.release = Some(release);
        }
        if let Some(cpus) = info.num_cpus {
            self.header.nr_cpus = Some((cpus as usize).min(CPUS_MAX));
        }
        self.header.hardware = info.android_soc_model.map(text).or(self.header.hardware.take());
        self.header.tool = info.tracing_service_version.map(text).or(self.header.tool.take());
    }

    fn take_cpus(&mut self, info: CpuInfo) {
        let cpus = &info.cpus[..info.cpus.len().min(CPUS_MAX)];
        self.header.frequencies_khz = cpus.iter().map(|cpu| cpu.frequencies.clone()).collect();
        let capacities: Option<Vec<u32>> = cpus.iter().map(|cpu| cpu.capacity).collect();
        self.header.capacities = capacities.unwrap_or_default();
    }

    /// Takes the kernel's losses between the first and the last statistics.
    fn take_stats(&mut self, stats: FtraceStats) {
        const AT_START: i32 = 1;
        for cpu in stats.cpu_stats.iter().take(CPUS_MAX) {
            let number = cpu.cpu.unwrap_or(0);
            let lost = cpu.overrun.unwrap_or(0).saturating_add(cpu.dropped_events.unwrap_or(0));
            if stats.phase == Some(AT_START) {
                self.overruns.insert(number, lost);
            } else if let Some(before) = self.overruns.get(&number) {
                let lost = lost.saturating_sub(*before);
                if lost > 0 && number < CPUS_MAX as u64 {
                    self.report.lose(Some(CpuId(number as u16)), Some(lost));
                }
            }
        }
    }

    fn take_frame(&mut self, packet: &Packet, frame: FrameTimeline, at: u64) {
        let begin =
            |span, cookie: Option<i64>, token: Option<i64>, pid: Option<i32>, jank: Option<i32>| {
                TraceEventKind::FrameBegin {
                    cookie: cookie.unwrap_or(0),
                    token: token.unwrap_or(0),
                    pid: u32::try_from(pid.unwrap_or(0)).unwrap_or(0),
                    span,
                    jank: jank.unwrap_or(0) as u32,
                }
            };
        let kind = if let Some(span) = frame.expected_display {
            begin(FrameSpan::ExpectedDisplay, span.cookie, span.token, span.pid, None)
        } else if let Some(span) = frame.actual_display {
            begin(FrameSpan::ActualDisplay, span.cookie, span.token, span.pid, span.jank)
        } else if let Some(span) = frame.expected_surface {
            begin(FrameSpan::ExpectedSurface, span.cookie, span.token, span.pid, None)
        } else if let Some(span) = frame.actual_surface {
            begin(FrameSpan::ActualSurface, span.cookie, span.token, span.pid, span.jank)
        } else if let Some(end) = frame.frame_end {
            TraceEventKind::FrameEnd { cookie: end.cookie.unwrap_or(0) }
        } else {
            return;
        };
        let sequence = packet.sequence.unwrap_or(0);
        let clock = packet.timestamp_clock.or_else(|| self.default_clocks.get(&sequence).copied());
        let Some(time) = packet
            .timestamp
            .and_then(|time| self.in_our_clock(time, clock.unwrap_or(CLOCK_BOOTTIME)))
        else {
            return self
                .report
                .damage(Place::Byte(at), "a span of the frame timeline whose clock is not known");
        };
        self.frames_seen += 1;
        self.frames.insert((time, self.frames_seen), kind);
        self.waiting_bytes += size_of::<TraceEventKind>();
    }

    /// A time of another clock in the clock of the events.
    fn in_our_clock(&self, time: u64, clock: u32) -> Option<Ns> {
        let ours = match self.clock.unwrap_or(0) {
            0 => CLOCK_BOOTTIME,
            4 => CLOCK_MONOTONIC_RAW,
            _ => return None,
        };
        if clock == ours {
            return Some(time);
        }
        let (from, to) = (self.snapshot.get(&clock)?, self.snapshot.get(&ours)?);
        Some(time.wrapping_add(to.wrapping_sub(*from)))
    }

    /// The next event of a CPU, as `waiting` holds it.
    fn head(&self, cpu: u16) -> Option<Reverse<(Ns, u16)>> {
        let of_cpu = self.cpus.get(&cpu)?;
        Some(Reverse((of_cpu.events.get(of_cpu.next)?.at, cpu)))
    }

    /// The earliest event that waits.
    fn take_event(&mut self) -> Option<TraceEvent> {
        // Another CPU's event may be earlier by now, also one that has been read since.
        let head = self.current.and_then(|cpu| self.head(cpu));
        match (head, self.waiting.peek()) {
            (Some(Reverse(head)), Some(Reverse(first))) if head > *first => {
                self.waiting.push(Reverse(head));
                self.current = self.waiting.pop().map(|Reverse((_, cpu))| cpu);
            }
            (Some(_), _) => {}
            (None, _) => self.current = self.waiting.pop().map(|Reverse((_, cpu))| cpu),
        }
        let of_cpu = self.current.and_then(|cpu| {
            let of_cpu = self.cpus.get(&cpu)?;
            Some((of_cpu.events.get(of_cpu.next)?.at, cpu))
        });
        if let Some((&(at, _), _)) = self.frames.first_key_value()
            && of_cpu.is_none_or(|(event, _)| at < event)
        {
            let ((at, _), kind) = self.frames.pop_first()?;
            self.waiting_bytes -= size_of::<TraceEventKind>();
            let name = match kind {
                TraceEventKind::FrameEnd { .. } => "frame_timeline_end",
                _ => "frame_timeline_begin",
            };
            let name = self.names.intern(name);
            self.report.count(name, false);
            let context = EventContext::default();
            return Some(TraceEvent { at, cpu: CpuId(0), name, context, kind });
        }
        let (_, cpu) = of_cpu?;
        let of_cpu = self.cpus.get_mut(&cpu)?;
        let event = of_cpu.events[of_cpu.next];
        of_cpu.next += 1;
        if self.load(cpu).is_none() {
            self.current = None;
        }
        Some(event)
    }
}

/// Whether the release is 4.14 or newer, or no release of Linux.
fn is_modern(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (4, 14),
        _ => true,
    }
}

impl<R: BufRead> TraceSource for PerfettoTrace<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        loop {
            while !self.ended && self.waiting_bytes < WINDOW_BYTES {
                self.ended = !self.read_packet()?;
            }
            if let Some(event) = self.take_event() {
                self.report.follow(&mut self.latest, &event, Place::Byte(self.at));
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
        }
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
