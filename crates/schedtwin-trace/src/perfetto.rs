// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes Perfetto traces.
//!
//! **Idea.** A trace is a sequence of packets. The scheduler's events go into *ftrace bundles*, one
//! CPU each, as Perfetto's own probes write them, so that everything that reads Android traces reads
//! ours: `sched_switch` and `sched_waking` as columns (`compact_sched`), what has no columns as
//! plain events. Signals and power, which no tracepoint carries, are *counter tracks*.
//!
//! **Steps.**
//! 1. [`Sink::fact`] encodes the fact, by hand, to its CPU's bundle (with the priority that the task has
//!    now), except signals, which become packets at once if they changed.
//! 2. A bundle of [`BATCH`] facts becomes a packet.
//! 3. The end writes all bundles. Readers sort by time, so bundles of CPUs may come in any order.
//!
//! **Memory**: a bundle for each CPU (about 40 KiB), and what was last written of each counter.
//!
//! **How the twin's words appear**
//!
//! | fact | in the trace |
//! |---|---|
//! | `Switch`, `Waking` | `compact_sched`; `prev` follows from the switch before; the wake source is the context in `common_flags` |
//! | `Wakeup`, `Migrate`, `Exit`, `IdleEnter`, `IdleExit`, `Frequency`, `Ipi`, `IrqEntry`, `IrqExit` | the tracepoint of that name (`Frequency`: for each CPU of the policy; `Ipi`: `ipi_raise`) |
//! | `Tick` | `hrtimer_expire_entry` |
//! | `CpuSignals`, `TaskSignals`, `Overutilized`, power | counters, written when they change |
//! | `Balance` that moved tasks, `IdleMiss` | instants on a track of the CPU |
//!
//! Decisions are instants on a track of each CPU, if [`Perfetto::with_decisions`] asks for them
//! (`decisions.rs`).
//!
//! All tasks are threads of one process, named after the run, whose number no task has.
//!
//! Differences: what a trace format has no place for is left out ("X, not Y"): balance passes that
//! move nothing; `IdleEnter::tick_stopped`, `IdleExit::residency_ns`, `Frequency::requested_at`,
//! `IrqExit::spent_ns`; `Preempted`, which the `R+` of its switch says. The record has them all. An
//! interrupt's number is the bit set of lines that were delivered together, not a hardware number;
//! on arm64 IPIs have no `irq_handler_entry` at all. The tick's `hrtimer` and `function` addresses
//! are absent.
//!
//! References: `protos/perfetto/trace/trace_packet.proto` and `ftrace/ftrace_event_bundle.proto`
//! in the Perfetto repository; numbers checked by `tests/perfetto_schema.rs`.

mod bundle;
mod decisions;

use crate::atomic_file::Output;
use crate::perfetto_messages::{
    Clock, ClockSnapshot, CounterDescriptor, Data, DebugAnnotation, Process, ProcessTree,
    SystemInfo, Thread, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent, Utsname,
};
use crate::record::{RecordedDecision, Why};
use crate::tasks::Tasks;
use crate::wire::{Buffer, Encoded, Space, message, uint, varint};
use crate::{Destination, Meta, Sink, TaskInfo};
use bundle::{Bundle, Columns};
use decisions::Decisions;
use prost::Message;
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Fact, IpiKind, IrqLines, Khz, Ns, PerfettoForm, PerfettoValue,
    PolicyId, TaskId, TaskState, WakeSource,
};
use std::io;

/// Facts per CPU that become one bundle. Larger saves a name table and a header per bundle, which
/// at this size are below one byte a fact; smaller saves memory: 160 CPUs hold 6.4 MiB.
pub const BATCH: usize = 1024;

/// So many bytes of packets are written together. Blocks of this size, and only whole ones, suit the page cache: large pages
/// are made for them, and none is written in two parts. It is also from where on a file's own buffer is passed by.
const WRITE_BYTES: usize = 1 << 18;

/// The process that all tasks are threads of: the highest number below `PID_MAX_LIMIT`, which no
/// task of a run has.
pub const PROCESS: i32 = 4 * 1024 * 1024 - 1;

/// `BUILTIN_CLOCK_MONOTONIC` and `BUILTIN_CLOCK_BOOTTIME` of `common/builtin_clock.proto`.
const CLOCK_MONOTONIC: u32 = 3;
const CLOCK_BOOTTIME: u32 = 6;

/// `TrackEvent.Type`.
pub(crate) const TYPE_INSTANT: i32 = 3;
/// `TrackEvent.Type`.
pub(crate) const TYPE_COUNTER: i32 = 4;

/// Packet sequences: state (here: none but "nothing was lost") is kept for each.
const SEQUENCE_FTRACE: u32 = 1;
const SEQUENCE_TRACKS: u32 = 2;

/// Numbers of tracks. Small ones are short in the file.
pub(crate) mod track {
    /// Parent of the CPUs' tracks.
    pub(crate) const CPUS: u64 = 1;
    /// Parent of the power domains' tracks.
    pub(crate) const POWER: u64 = 2;
    /// The run's description.
    pub(crate) const RUN: u64 = 3;
    /// Counter: whether the system is overutilized.
    pub(crate) const OVERUTILIZED: u64 = 4;
    /// First of four tracks a CPU: `util_avg`, `runnable_avg`, `util_est`, instants.
    pub(crate) const CPU_FIRST: u64 = 16;
    /// Parent of the tracks with decisions.
    pub(crate) const DECISIONS: u64 = 5;
    /// First of the domains' tracks.
    pub(crate) const DOMAIN_FIRST: u64 = 8192;
    /// First of the CPUs' tracks with decisions.
    pub(crate) const DECISIONS_FIRST: u64 = DOMAIN_FIRST + (1 << 16);
    /// First of four tracks a task: `util_avg`, `runnable_avg`, `util_est`, the thread.
    pub(crate) const TASK_FIRST: u64 = 1 << 17;
    /// The signals that the first three of four stand for.
    pub(crate) const SIGNALS: [&str; 3] = ["util_avg", "runnable_avg", "util_est"];
}

const _: () =
    assert!(track::CPU_FIRST + 4 * schedtwin_types::MAX_CPUS as u64 <= track::DOMAIN_FIRST);
const _: () = assert!(track::DOMAIN_FIRST + (u16::MAX as u64) < track::DECISIONS_FIRST);
const _: () =
    assert!(track::DECISIONS_FIRST + schedtwin_types::MAX_CPUS as u64 <= track::TASK_FIRST);

/// The counters of three signals.
#[derive(Clone, Copy)]
struct Signals {
    /// Values written last.
    values: [u32; 3],
    /// The leading bytes of the first signal's events.
    first: Encoded,
}

/// A Perfetto trace being written; see the module.
pub struct Perfetto<D: Destination> {
    output: Output<D>,
    meta: Meta,
    tasks: Tasks,
    /// By CPU.
    bundles: Vec<Bundle>,
    columns: Columns,
    /// `None` before the first.
    cpu_signals: Vec<Option<Signals>>,
    task_signals: Vec<Option<Signals>>,
    cpu_instants: CpuMask,
    /// Whether decisions are written; and the CPUs that have a track for theirs.
    with_decisions: bool,
    deciding: CpuMask,
    decisions: Decisions,
    /// By power domain: microwatts, and what their events begin with.
    power: Vec<Option<(u64, Encoded)>>,
    overutilized: Option<bool>,
    /// Time of the last fact, for packets that have none of their own.
    now: Ns,
    /// A time, and the same encoded.
    timed_at: Ns,
    time: Encoded,
    /// Packets that wait to be written.
    packets: Buffer,
}

impl<D: Destination> Perfetto<D> {
    /// Starts a trace.
    pub fn new(destination: D, meta: Meta) -> Perfetto<D> {
        let cpus = meta.nr_cpus;
        assert!(cpus <= schedtwin_types::MAX_CPUS, "{cpus} CPUs");
        let mut trace = Perfetto {
            output: Output::new(destination),
            tasks: Tasks::default(),
            bundles: (0..cpus).map(|cpu| Bundle::new(CpuId(cpu as u16))).collect(),
            columns: Columns::default(),
            cpu_signals: vec![None; cpus],
            task_signals: Vec::new(),
            cpu_instants: CpuMask::EMPTY,
            with_decisions: false,
            deciding: CpuMask::EMPTY,
            decisions: Decisions::default(),
            power: Vec::new(),
            overutilized: None,
            now: 0,
            timed_at: 0,
            time: Encoded::varint(0),
            packets: Buffer::with_space(WRITE_BYTES),
            meta,
        };
        trace.write_preamble();
        trace
    }

    /// Writes decisions, too: each an instant with its rule and its inputs.
    #[must_use]
    pub fn with_decisions(mut self) -> Perfetto<D> {
        self.with_decisions = true;
        self
    }

    /// Writes a decision by code on `cpu`.
    fn write_decision(&mut self, at: Ns, cpu: CpuId, decision: &RecordedDecision) {
        let uuid = track::DECISIONS_FIRST + u64::from(cpu.0);
        if !self.deciding.contains(cpu) {
            if self.deciding.is_empty() {
                let descriptor = track_descriptor(track::DECISIONS, None, "Decisions");
                self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
            }
            self.deciding.insert(cpu);
            let name = format!("cpu{cpu} decisions");
            let descriptor = track_descriptor(uuid, Some(track::DECISIONS), &name);
            self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        }
        let to = (&self.tasks, &mut self.packets);
        self.decisions.write((at, cpu, SEQUENCE_TRACKS), uuid, decision, to);
        self.packet_ends();
    }

    /// Writes the data that a reader needs before the first event.
    fn write_preamble(&mut self) {
        // A release is what readers decode `prev_state` by: R+ is 0x100 since 4.14. Named after the
        // kernel of the run if that names a release.
        let kernel = self.meta.provenance.iter().find(|(key, _)| key == "kernel");
        let release = kernel.and_then(|(_, name)| uname_release(name));
        let utsname = Utsname {
            sysname: Some("Linux".into()),
            version: Some("schedtwin".into()),
            release: Some(release.map_or("6.12.0".into(), Into::into)),
            machine: Some("schedtwin".into()),
        };
        let num_cpus = Some(self.meta.nr_cpus as u32);
        let info = SystemInfo { utsname: Some(utsname), num_cpus, ..SystemInfo::default() };
        self.write_first(SEQUENCE_FTRACE, None, Data::SystemInfo(info));
        let clock = |id| Clock { clock_id: Some(id), timestamp: Some(0) };
        let clocks = ClockSnapshot {
            clocks: vec![clock(CLOCK_BOOTTIME), clock(CLOCK_MONOTONIC)],
            primary_trace_clock: Some(CLOCK_BOOTTIME as i32),
        };
        self.write_packet(SEQUENCE_FTRACE, None, Data::ClockSnapshot(clocks));
        let process = Process {
            pid: Some(PROCESS),
            ppid: Some(0),
            cmdline: vec![format!("schedtwin: {}", self.meta.title).into()],
        };
        let tree = ProcessTree { processes: vec![process], threads: Vec::new() };
        self.write_packet(SEQUENCE_FTRACE, Some(0), Data::ProcessTree(tree));

        let descriptor = track_descriptor(track::RUN, None, "schedtwin run");
        self.write_first(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        let detail = |name: String, text: String| DebugAnnotation {
            name: Some(name),
            string_value: Some(text),
            ..DebugAnnotation::default()
        };
        let policies = self.meta.policy_cpus.iter().enumerate();
        let event = TrackEvent {
            r#type: Some(TYPE_INSTANT),
            track_uuid: Some(track::RUN),
            name: Some(self.meta.title.clone()),
            debug_annotations: (self.meta.provenance.iter().cloned())
                .chain(policies.map(|(i, cpus)| (format!("policy{i}"), cpus.to_string())))
                .map(|(name, text)| detail(name, text))
                .collect(),
            ..TrackEvent::default()
        };
        self.write_packet(SEQUENCE_TRACKS, Some(0), Data::TrackEvent(event));
        for (uuid, name) in [(track::CPUS, "CPU signals"), (track::POWER, "Power")] {
            let descriptor = track_descriptor(uuid, None, name);
            self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        }
    }

    /// Writes the packet that opens a sequence.
    fn write_first(&mut self, sequence: u32, timestamp: Option<Ns>, data: Data) {
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: Some(sequence),
            sequence_flags: Some(1),
            first_packet_on_sequence: Some(true),
            interned_data: None,
            data: Some(data),
        };
        self.write_message(&packet);
    }

    fn write_packet(&mut self, sequence: u32, timestamp: Option<Ns>, data: Data) {
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: Some(sequence),
            data: Some(data),
            ..TracePacket::default()
        };
        self.write_message(&packet);
    }

    /// A packet is complete. Packets are written many at a time.
    #[inline(always)]
    fn packet_ends(&mut self) {
        if self.packets.len() >= WRITE_BYTES {
            self.write_block();
        }
    }

    #[inline(never)]
    fn write_block(&mut self) {
        let whole = self.packets.len() / WRITE_BYTES * WRITE_BYTES;
        self.output.write(&self.packets.as_bytes()[..whole]);
        self.packets.forget(whole);
    }

    fn write_message(&mut self, packet: &TracePacket) {
        self.packets.bytes(1, &packet.encode_to_vec());
        self.packet_ends();
    }

    fn flush(&mut self, cpu: usize) {
        if self.bundles[cpu].len() > 0 {
            self.bundles[cpu].flush(&mut self.columns, &self.tasks, &mut self.packets);
            self.packet_ends();
        }
    }

    fn flush_all(&mut self) {
        for cpu in 0..self.bundles.len() {
            self.flush(cpu);
        }
    }

    /// Packets are of `at` from now on. Several facts, and more counters, have one time.
    #[inline(always)]
    fn time_is(&mut self, at: Ns) {
        if self.timed_at != at {
            self.timed_at = at;
            self.time = Encoded::varint(at);
        }
    }

    /// Writes one value of a counter: the one of number `index` after that whose events begin with `first`.
    #[inline(never)]
    fn write_counter(&mut self, first: &Encoded, index: u8, value: u64) {
        // Tracks of four have numbers that differ in the lowest bits only.
        let head = first.with_bits(COUNTER_HEAD_UUID, index);
        if value >> 56 != 0 {
            return self.write_large_counter(head, value);
        }

        let time = &self.time;
        self.packets.append_within(|space| {
            packet_begins(space, time);
            let event = space.len();
            space.piece(&head);
            space.varint(value);
            space.put(event - 1, (space.len() - event) as u8);
            space.put(1, (space.len() - 2) as u8);
        });
        self.packet_ends();
    }

    /// As [`Perfetto::write_counter`], for values of more than 8 groups of 7 bits.
    #[cold]
    fn write_large_counter(&mut self, head: Encoded, value: u64) {
        let mut packet = Vec::new();
        uint(&mut packet, 8, self.timed_at);
        uint(&mut packet, 10, u64::from(SEQUENCE_TRACKS));
        message(&mut packet, 11, |event| {
            head.push_to(event);
            varint(event, value);
        });
        self.packets.bytes(1, &packet);
        self.packet_ends();
    }

    fn write_counter_track(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        name: &str,
        unit: Option<&str>,
    ) {
        let mut descriptor = track_descriptor(uuid, parent, name);
        descriptor.counter = Some(CounterDescriptor { unit_name: unit.map(str::to_string) });
        self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
    }

    /// Writes those of three signals that changed; `first` is what the first one's events begin with.
    #[inline(always)]
    fn write_signals(&mut self, first: &Encoded, old: [u32; 3], new: [u32; 3]) {
        for (index, value) in new.into_iter().enumerate() {
            if old[index] != value {
                self.write_counter(first, index as u8, u64::from(value));
            }
        }
    }

    /// Writes three signals for the first time.
    #[cold]
    fn first_signals(&mut self, first: u64, values: [u32; 3]) -> Signals {
        let first = counter_head(first);
        for (index, value) in values.into_iter().enumerate() {
            self.write_counter(&first, index as u8, u64::from(value));
        }
        Signals { values, first }
    }

    #[inline(always)]
    fn cpu_signals(&mut self, cpu: CpuId, new: [u32; 3]) {
        let Some(signals) = &mut self.cpu_signals[cpu.index()] else {
            return self.cpu_signals_begin(cpu, new);
        };
        let (first, old) = (signals.first, std::mem::replace(&mut signals.values, new));
        self.write_signals(&first, old, new);
    }

    #[cold]
    fn cpu_signals_begin(&mut self, cpu: CpuId, new: [u32; 3]) {
        let first = track::CPU_FIRST + 4 * u64::from(cpu.0);
        for (index, signal) in track::SIGNALS.iter().enumerate() {
            let name = format!("cpu{cpu} {signal}");
            self.write_counter_track(first + index as u64, Some(track::CPUS), &name, None);
        }
        self.cpu_signals[cpu.index()] = Some(self.first_signals(first, new));
    }

    #[inline(always)]
    fn task_signals(&mut self, task: TaskId, new: [u32; 3]) {
        let Some(Some(signals)) = self.task_signals.get_mut(task.index()) else {
            return self.task_signals_begin(task, new);
        };
        let (first, old) = (signals.first, std::mem::replace(&mut signals.values, new));
        self.write_signals(&first, old, new);
    }

    #[cold]
    fn task_signals_begin(&mut self, task: TaskId, new: [u32; 3]) {
        let first = track::TASK_FIRST + 4 * u64::from(task.0);
        if self.task_signals.len() <= task.index() {
            self.task_signals.resize(task.index() + 1, None);
        }
        // Counters under a thread's track are shown beside the thread.
        let name = self.tasks.comm(task, CpuId(0));
        let mut descriptor = track_descriptor(first + 3, None, &name);
        descriptor.thread = Some(ThreadDescriptor {
            pid: Some(PROCESS),
            tid: Some(i64::from(task.0)),
            thread_name: Some(name),
        });
        self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        for (index, signal) in track::SIGNALS.iter().enumerate() {
            self.write_counter_track(first + index as u64, Some(first + 3), signal, None);
        }
        self.task_signals[task.index()] = Some(self.first_signals(first, new));
    }

    /// Writes an instant with two numbers on the CPU's track.
    fn write_instant(&mut self, cpu: CpuId, name: &str, details: &[(&str, u64)]) {
        let uuid = track::CPU_FIRST + 4 * u64::from(cpu.0) + 3;
        if !self.cpu_instants.contains(cpu) {
            self.cpu_instants.insert(cpu);
            let name = format!("cpu{} events", cpu);
            let descriptor = track_descriptor(uuid, Some(track::CPUS), &name);
            self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        }
        let (time, packets) = (&self.time, &mut self.packets);
        let start = packets.len();
        packets.append(|space| packet_begins(space, time));
        let event = packets.len();
        for (name, value) in details {
            let annotation = packets.len();
            packets.append(|space| {
                space.raw([4 << 3 | 2, 0]);
                space.uint(3, *value);
                space.raw([10 << 3 | 2, name.len() as u8]);
            });
            packets.extend(name.as_bytes());
            packets.message_ends(annotation + 1);
        }
        packets.append(|space| {
            space.uint(9, TYPE_INSTANT as u64);
            space.uint(11, uuid);
            space.raw([(23 << 3 | 2) as u8 | 0x80, ((23 << 3 | 2) >> 7) as u8, name.len() as u8]);
        });
        packets.extend(name.as_bytes());
        packets.message_ends(event - 1);
        packets.message_ends(start + 1);
        self.packet_ends();
    }
}

/// Appends the start of a packet for an event on a track. The second byte and the last one are
/// reserved for the lengths of both.
#[inline(always)]
fn packet_begins(space: &mut Space, time: &Encoded) {
    // Field 1 of the trace, and the time as field 8 of that.
    space.raw([1 << 3 | 2, 0, 8 << 3]);
    space.piece(time);
    // Field 10, and the event as field 11.
    space.raw([10 << 3, SEQUENCE_TRACKS as u8, 11 << 3 | 2, 0]);
}

/// Where the number of a track is in what [`counter_head`] returns.
const COUNTER_HEAD_UUID: usize = 3;

/// Encodes the start of an event that is a value of counter `uuid`: fields 9 and 11, and the tag of
/// field 30, the value.
fn counter_head(uuid: u64) -> Encoded {
    Encoded::of(|space| {
        space.uint(9, TYPE_COUNTER as u64);
        space.uint(11, uuid);
        space.raw([(30 << 3) as u8 | 0x80, (30 << 3 >> 7) as u8]);
    })
}

fn track_descriptor(uuid: u64, parent_uuid: Option<u64>, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid,
        name: Some(name.to_string()),
        ..TrackDescriptor::default()
    }
}

/// One fact on its way into the trace.
struct Packets<'a, D: Destination> {
    trace: &'a mut Perfetto<D>,
    at: Ns,
    cpu: CpuId,
}

impl<D: Destination> Packets<'_, D> {
    #[inline(always)]
    fn bundle(&mut self) -> &mut Bundle {
        &mut self.trace.bundles[self.cpu.index()]
    }
}

impl<D: Destination> PerfettoForm for Packets<'_, D> {
    #[inline(always)]
    fn switch(&mut self, next: TaskId, prev_state: TaskState) {
        let (at, prio) = (self.at, self.trace.tasks.prio(next));
        self.bundle().switch(at, next, prev_state, prio);
    }

    #[inline(always)]
    fn waking(&mut self, task: TaskId, source: WakeSource, prev_cpu: CpuId) {
        let (at, prio) = (self.at, self.trace.tasks.prio(task));
        self.bundle().waking(at, task, source, prev_cpu, prio);
    }

    #[inline(always)]
    fn event<const N: usize>(&mut self, number: u16, fields: [(u8, PerfettoValue); N]) {
        let time = self.trace.time;
        self.bundle().of_cpu(&time, number, fields);
    }

    #[inline(always)]
    fn task_event<const N: usize>(
        &mut self,
        number: u16,
        task: TaskId,
        fields: [(u8, PerfettoValue); N],
    ) {
        let Perfetto { bundles, tasks, time, .. } = &mut *self.trace;
        bundles[self.cpu.index()].of_task(time, number, task, fields, tasks);
    }

    fn frequency(&mut self, policy: PolicyId, khz: Khz) {
        let alone = CpuMask::of(self.cpu);
        let Perfetto { bundles, meta, time, .. } = &mut *self.trace;
        let cpus = meta.policy_cpus.get(policy.index()).unwrap_or(&alone);
        bundles[self.cpu.index()].frequency(time, khz, cpus);
    }

    fn ipi(&mut self, target: CpuId, kind: IpiKind) {
        let time = self.trace.time;
        self.bundle().ipi(&time, target, kind);
    }

    #[inline(always)]
    fn irq_entry(&mut self, lines: IrqLines) {
        let time = self.trace.time;
        self.bundle().irq_entry(&time, lines);
    }

    #[inline(always)]
    fn irq_exit(&mut self) {
        let time = self.trace.time;
        self.bundle().irq_exit(&time);
    }

    fn instant<const N: usize>(&mut self, name: &str, details: [(&str, u64); N]) {
        self.trace.write_instant(self.cpu, name, &details);
    }

    fn overutilized(&mut self, on: bool) {
        let trace = &mut *self.trace;
        if trace.overutilized.is_none() {
            trace.write_counter_track(track::OVERUTILIZED, None, "overutilized", None);
        }
        trace.overutilized = Some(on);
        trace.write_counter(&counter_head(track::OVERUTILIZED), 0, u64::from(on));
    }

    #[inline(always)]
    fn cpu_signals(&mut self, signals: [u32; 3]) {
        self.trace.cpu_signals(self.cpu, signals);
    }

    #[inline(always)]
    fn task_signals(&mut self, task: TaskId, signals: [u32; 3]) {
        self.trace.task_signals(task, signals);
    }
}

impl<D: Destination> Sink for Perfetto<D> {
    fn task(&mut self, info: &TaskInfo) {
        if self.tasks.get(info.id).is_some() {
            // What waits belongs to the old name.
            self.flush_all();
        }
        self.tasks.insert(info);
        let thread = Thread {
            tid: Some(info.id.0 as i32),
            name: Some(info.name.clone().into()),
            tgid: Some(PROCESS),
        };
        let tree = ProcessTree { processes: Vec::new(), threads: vec![thread] };
        self.write_packet(SEQUENCE_FTRACE, Some(self.now), Data::ProcessTree(tree));
    }

    fn task_prio(&mut self, id: TaskId, prio: i32) {
        self.tasks.set_prio(id, prio);
    }

    fn fact(&mut self, fact: &Fact) {
        self.now = fact.at;
        self.time_is(fact.at);
        let (at, cpu) = (fact.at, fact.cpu);
        fact.kind.perfetto(&mut Packets { trace: self, at, cpu }, cpu);
        if self.bundles[cpu.index()].len() == BATCH {
            self.flush(cpu.index());
        }
    }

    fn power_uw(&mut self, at: Ns, domain: u16, microwatts: u64) {
        let index = usize::from(domain);
        if self.power.len() <= index {
            self.power.resize(index + 1, None);
        }
        self.time_is(at);
        let head = match self.power[index] {
            Some((last, _)) if last == microwatts => return,
            Some((_, head)) => head,
            None => {
                let uuid = track::DOMAIN_FIRST + u64::from(domain);
                let name = match self.meta.domain_names.get(index) {
                    Some(name) => format!("power {name}"),
                    None => format!("power domain {domain}"),
                };
                self.write_counter_track(uuid, Some(track::POWER), &name, Some("uW"));
                counter_head(uuid)
            }
        };
        self.power[index] = Some((microwatts, head));
        self.write_counter(&head, 0, microwatts);
    }

    fn wants_decisions(&self) -> bool {
        self.with_decisions
    }

    fn decision(&mut self, decision: &DecisionRecord) {
        if self.with_decisions {
            self.write_decision(decision.at, decision.cpu, &(&decision.decision).into());
        }
    }

    fn read_back(&mut self, at: Ns, why: Why) -> bool {
        match why {
            Why::Decision(cpu, decision) if self.with_decisions => {
                self.write_decision(at, cpu, &decision);
                true
            }
            _ => false,
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush_all();
        self.output.write(self.packets.as_bytes());
        self.output.finish()
    }
}

/// Returns what `uname -r` prints on the kernel that is named `linux-5.18+...` or `linux-6.12.95`.
fn uname_release(kernel: &str) -> Option<String> {
    let release = kernel.strip_prefix("linux-")?;
    let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
    let parts: Vec<&str> = release[..end].split('.').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [major, minor] => Some(format!("{major}.{minor}.0")),
        [major, minor, patch] => Some(format!("{major}.{minor}.{patch}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::uname_release;

    #[test]
    fn a_kernel_is_called_as_it_calls_itself() {
        for (kernel, release) in [
            ("linux-5.18", Some("5.18.0")),
            ("linux-5.18+runnable-boost", Some("5.18.0")),
            ("linux-6.12.95", Some("6.12.95")),
            ("linux-6.12:hz=1000", Some("6.12.0")),
            ("linux-6.12.", Some("6.12.0")),
            ("linux-6", None),
            ("linux-1.2.3.4", None),
            ("linux-", None),
            ("mine", None),
        ] {
            assert_eq!(uname_release(kernel).as_deref(), release, "{kernel}");
        }
    }
}
