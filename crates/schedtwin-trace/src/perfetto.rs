// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes Perfetto traces.
//!
//! **Idea.** A trace is a sequence of packets. The scheduler's events go into *ftrace bundles*, one
//! CPU each, as Perfetto's own probes write them, so that everything that reads Android traces reads
//! ours: `sched_switch` and `sched_waking` as columns (`compact_sched`), what has no columns as
//! plain events. Signals and power, which no tracepoint carries, are *counter tracks*.
//!
//! **Steps.**
//! 1. [`Sink::fact`] only appends the fact to its CPU's batch (with the priority that the task has
//!    now), except signals, which become a packet at once if they changed.
//! 2. A full batch is encoded in one pass, by hand into reused byte buffers, to a bundle.
//! 3. The end flushes all batches. Readers sort by time, so bundles of CPUs may come in any order.
//!
//! **Memory**: a batch of [`BATCH`] facts a CPU (40 KiB), and what was last written of each counter.
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

use crate::atomic_file::Output;
use crate::perfetto_messages::{
    Clock, ClockSnapshot, CounterDescriptor, Data, DebugAnnotation, Process, ProcessTree,
    SystemInfo, Thread, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent, Utsname,
};
use crate::tasks::Tasks;
use crate::wire::{Short, bytes, int, message, uint, varint};
use crate::{Destination, Meta, Sink, TaskInfo};
use prost::Message;
use schedtwin_types::{
    CpuId, CpuMask, Fact, FactKind, IpiKind, IrqLine, IrqLines, Ns, TaskId, TaskState, WakeSource,
};
use std::io;

/// Facts per CPU that become one bundle. Larger saves a name table and a header per bundle, which
/// at this size are below one byte a fact; smaller saves memory: 160 CPUs hold 6.4 MiB.
pub const BATCH: usize = 1024;

/// So many bytes of packets are written together.
const WRITE_BYTES: usize = 1 << 15;

/// The process that all tasks are threads of: the highest number below `PID_MAX_LIMIT`, which no
/// task of a run has.
pub const PROCESS: i32 = 4 * 1024 * 1024 - 1;

/// `cpu_idle`'s state for the way back (`PWR_EVENT_EXIT`).
pub const PWR_EVENT_EXIT: u32 = u32::MAX;

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

/// `enum trace_flag_type`, `include/linux/trace_events.h`: the context of a waking.
const TRACE_FLAG_IRQS_OFF: u8 = 0x01;
pub(crate) const TRACE_FLAG_HARDIRQ: u8 = 0x08;
pub(crate) const TRACE_FLAG_SOFTIRQ: u8 = 0x10;

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
    /// First of the domains' tracks.
    pub(crate) const DOMAIN_FIRST: u64 = 8192;
    /// First of four tracks a task: `util_avg`, `runnable_avg`, `util_est`, the thread.
    pub(crate) const TASK_FIRST: u64 = 1 << 17;
    /// The signals that the first three of four stand for.
    pub(crate) const SIGNALS: [&str; 3] = ["util_avg", "runnable_avg", "util_est"];
}

const _: () =
    assert!(track::CPU_FIRST + 4 * schedtwin_types::MAX_CPUS as u64 <= track::DOMAIN_FIRST);
const _: () = assert!(track::DOMAIN_FIRST + (u16::MAX as u64) < track::TASK_FIRST);

/// A fact that waits for its bundle.
#[derive(Clone, Copy)]
struct Waiting {
    fact: Fact,
    /// The priority, when it happened, of the task that the event names.
    prio: i32,
}

/// Last values of three signals; `None` before the first.
type Signals = Option<[u32; 3]>;

/// A Perfetto trace being written; see the module.
pub struct Perfetto<D: Destination> {
    output: Output<D>,
    meta: Meta,
    tasks: Tasks,
    batches: Vec<Vec<Waiting>>,
    /// Who runs on each CPU at the end of what was flushed: events carry it as their `pid`.
    current: Vec<TaskId>,
    /// Lines of the interrupt that each CPU is in, for its end.
    lines: Vec<u16>,
    cpu_signals: Vec<Signals>,
    task_signals: Vec<Signals>,
    cpu_instants: CpuMask,
    power: Vec<Option<u64>>,
    overutilized: Option<bool>,
    /// Time of the last fact, for packets that have none of their own.
    now: Ns,
    encoder: Encoder,
    /// What packets of counters begin with, and the time that it says: several counters have one.
    stamp: Short,
    stamped_at: Ns,
    /// Packets that wait to be written, and the one that is put together.
    packet: Vec<u8>,
}

impl<D: Destination> Perfetto<D> {
    /// Starts a trace.
    pub fn new(destination: D, meta: Meta) -> Perfetto<D> {
        let cpus = meta.nr_cpus;
        assert!(cpus <= schedtwin_types::MAX_CPUS, "{cpus} CPUs");
        let mut trace = Perfetto {
            output: Output::new(destination),
            tasks: Tasks::default(),
            batches: (0..cpus).map(|_| Vec::with_capacity(BATCH)).collect(),
            current: vec![TaskId::IDLE; cpus],
            lines: vec![0; cpus],
            cpu_signals: vec![None; cpus],
            task_signals: Vec::new(),
            cpu_instants: CpuMask::EMPTY,
            power: Vec::new(),
            overutilized: None,
            now: 0,
            encoder: Encoder::default(),
            stamp: Short::default(),
            stamped_at: Ns::MAX,
            packet: Vec::new(),
            meta,
        };
        trace.write_preamble();
        trace
    }

    /// What a reader has to know before the first event.
    fn write_preamble(&mut self) {
        // A release is what readers decode `prev_state` by: R+ is 0x100 since 4.14. Named after the
        // kernel of the run if that names a release.
        let kernel = self.meta.provenance.iter().find(|(key, _)| key == "kernel");
        let release = kernel.and_then(|(_, name)| uname_release(name));
        let utsname = Utsname {
            sysname: Some("Linux".to_string()),
            version: Some("schedtwin".to_string()),
            release: Some(release.unwrap_or_else(|| "6.12.0".to_string())),
            machine: Some("schedtwin".to_string()),
        };
        let info = SystemInfo { utsname: Some(utsname), num_cpus: Some(self.meta.nr_cpus as u32) };
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
            cmdline: vec![format!("schedtwin: {}", self.meta.title)],
        };
        let tree = ProcessTree { processes: vec![process], threads: Vec::new() };
        self.write_packet(SEQUENCE_FTRACE, Some(0), Data::ProcessTree(tree));

        let descriptor = track_descriptor(track::RUN, None, "schedtwin run");
        self.write_first(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        let detail = |name: String, text: String| DebugAnnotation {
            name: Some(name),
            string_value: Some(text),
            uint_value: None,
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
            counter_value: None,
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
    #[inline]
    fn packet_ends(&mut self) {
        if self.packet.len() >= WRITE_BYTES {
            self.write_packets();
        }
    }

    fn write_packets(&mut self) {
        self.output.write(&self.packet);
        self.packet.clear();
    }

    fn write_message(&mut self, packet: &TracePacket) {
        bytes(&mut self.packet, 1, &packet.encode_to_vec());
        self.packet_ends();
    }

    fn flush(&mut self, cpu: usize) {
        if self.batches[cpu].is_empty() {
            return;
        }
        self.encoder.encode(
            CpuId(cpu as u16),
            &self.batches[cpu],
            &self.tasks,
            &self.meta.policy_cpus,
            &mut self.current[cpu],
            &mut self.lines[cpu],
        );
        self.batches[cpu].clear();
        self.encoder.write(CpuId(cpu as u16), &mut self.packet);
        self.packet_ends();
    }

    fn flush_all(&mut self) {
        for cpu in 0..self.batches.len() {
            self.flush(cpu);
        }
    }

    /// Writes one value of a counter.
    fn write_counter(&mut self, at: Ns, uuid: u64, value: impl Into<u64>) {
        if self.stamped_at != at {
            self.stamped_at = at;
            self.stamp = Short::default().uint(8, at).uint(10, u64::from(SEQUENCE_TRACKS));
        }
        let kind = TYPE_COUNTER as u64;
        let event = Short::default().uint(9, kind).uint(11, uuid).uint(30, value.into());
        let (stamp, event) = (self.stamp.as_bytes(), event.as_bytes());
        let nested = [Short::TAG_OF_11, event.len() as u8];
        let begin = [Short::TAG_OF_1, (stamp.len() + nested.len() + event.len()) as u8];
        for part in [&begin, stamp, &nested, event] {
            self.packet.extend_from_slice(part);
        }
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

    /// Writes those of three signals that changed.
    fn write_signals(&mut self, at: Ns, first: u64, old: Signals, new: [u32; 3]) {
        for (index, value) in new.into_iter().enumerate() {
            if old.is_none_or(|old| old[index] != value) {
                self.write_counter(at, first + index as u64, value);
            }
        }
    }

    fn cpu_signals(&mut self, at: Ns, cpu: CpuId, new: [u32; 3]) {
        let first = track::CPU_FIRST + 4 * u64::from(cpu.0);
        let old = self.cpu_signals[cpu.index()];
        if old.is_none() {
            for (index, signal) in track::SIGNALS.iter().enumerate() {
                let name = format!("cpu{cpu} {signal}");
                self.write_counter_track(first + index as u64, Some(track::CPUS), &name, None);
            }
        }
        self.write_signals(at, first, old, new);
        self.cpu_signals[cpu.index()] = Some(new);
    }

    fn task_signals(&mut self, at: Ns, task: TaskId, new: [u32; 3]) {
        let first = track::TASK_FIRST + 4 * u64::from(task.0);
        if self.task_signals.len() <= task.index() {
            self.task_signals.resize(task.index() + 1, None);
        }
        let old = self.task_signals[task.index()];
        if old.is_none() {
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
        }
        self.write_signals(at, first, old, new);
        self.task_signals[task.index()] = Some(new);
    }

    /// Writes an instant with two numbers on the CPU's track.
    fn write_instant(&mut self, fact: &Fact, name: &str, details: &[(&str, u64)]) {
        let uuid = track::CPU_FIRST + 4 * u64::from(fact.cpu.0) + 3;
        if !self.cpu_instants.contains(fact.cpu) {
            self.cpu_instants.insert(fact.cpu);
            let name = format!("cpu{} events", fact.cpu);
            let descriptor = track_descriptor(uuid, Some(track::CPUS), &name);
            self.write_packet(SEQUENCE_TRACKS, None, Data::TrackDescriptor(descriptor));
        }
        message(&mut self.packet, 1, |packet| {
            uint(packet, 8, fact.at);
            uint(packet, 10, u64::from(SEQUENCE_TRACKS));
            message(packet, 11, |event| {
                for (name, value) in details {
                    message(event, 4, |annotation| {
                        uint(annotation, 3, *value);
                        bytes(annotation, 10, name.as_bytes());
                    });
                }
                uint(event, 9, TYPE_INSTANT as u64);
                uint(event, 11, uuid);
                bytes(event, 23, name.as_bytes());
            });
        });
        self.packet_ends();
    }
}

fn track_descriptor(uuid: u64, parent_uuid: Option<u64>, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid,
        name: Some(name.to_string()),
        ..TrackDescriptor::default()
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
            name: Some(info.name.clone()),
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
        let named = match fact.kind {
            FactKind::Switch { next, .. } => next,
            FactKind::Waking { task, .. }
            | FactKind::Wakeup { task, .. }
            | FactKind::Migrate { task, .. }
            | FactKind::Exit { task } => task,
            FactKind::CpuSignals { util_avg, runnable_avg, util_est } => {
                return self.cpu_signals(fact.at, fact.cpu, [util_avg, runnable_avg, util_est]);
            }
            FactKind::TaskSignals { task, util_avg, util_est, runnable_avg } => {
                let new = [u32::from(util_avg), runnable_avg, u32::from(util_est)];
                return self.task_signals(fact.at, task, new);
            }
            FactKind::Overutilized { on } => {
                if self.overutilized.is_none() {
                    self.write_counter_track(track::OVERUTILIZED, None, "overutilized", None);
                }
                self.overutilized = Some(on);
                return self.write_counter(fact.at, track::OVERUTILIZED, u32::from(on));
            }
            FactKind::Balance { level, idle, moved } => {
                if moved > 0 {
                    let details = [
                        ("level", u64::from(level)),
                        ("idle", u64::from(idle)),
                        ("moved", u64::from(moved)),
                    ];
                    self.write_instant(fact, "sched_balance_rq", &details);
                }
                return;
            }
            FactKind::IdleMiss { state, below } => {
                let details = [("state", u64::from(state)), ("below", u64::from(below))];
                return self.write_instant(fact, "cpu_idle_miss", &details);
            }
            FactKind::Preempted { .. } | FactKind::DlThrottled { .. } => return,
            FactKind::IdleEnter { .. }
            | FactKind::IdleExit { .. }
            | FactKind::Frequency { .. }
            | FactKind::Tick
            | FactKind::Ipi { .. }
            | FactKind::IrqEntry { .. }
            | FactKind::IrqExit { .. } => TaskId::IDLE,
        };
        let prio = self.tasks.prio(named);
        let batch = &mut self.batches[fact.cpu.index()];
        batch.push(Waiting { fact: *fact, prio });
        if batch.len() == BATCH {
            self.flush(fact.cpu.index());
        }
    }

    fn power_uw(&mut self, at: Ns, domain: u16, microwatts: u64) {
        let index = usize::from(domain);
        if self.power.len() <= index {
            self.power.resize(index + 1, None);
        }
        let uuid = track::DOMAIN_FIRST + u64::from(domain);
        match self.power[index] {
            Some(last) if last == microwatts => return,
            Some(_) => {}
            None => {
                let name = match self.meta.domain_names.get(index) {
                    Some(name) => format!("power {name}"),
                    None => format!("power domain {domain}"),
                };
                self.write_counter_track(uuid, Some(track::POWER), &name, Some("uW"));
            }
        }
        self.power[index] = Some(microwatts);
        self.write_counter(at, uuid, microwatts);
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush_all();
        self.write_packets();
        self.output.finish()
    }
}

/// Turns a batch into a bundle. All buffers are reused.
#[derive(Default)]
struct Encoder {
    /// Columns of `sched_switch`: time, state, pid, priority, name.
    switch: [Vec<u8>; 5],
    /// Columns of `sched_waking`: time, pid, CPU, priority, name, flags.
    waking: [Vec<u8>; 6],
    /// The name table and the other events, as fields of their messages.
    names: Vec<u8>,
    events: Vec<u8>,
    compact: Vec<u8>,
    /// By task: the generation of the name table it was last put in, and its place there.
    interned: Vec<(u64, u32)>,
    generation: u64,
    names_count: u32,
    name: Vec<u8>,
}

impl Encoder {
    /// The task's place in this bundle's name table.
    #[inline]
    fn intern(&mut self, task: TaskId, cpu: CpuId, tasks: &Tasks) -> u32 {
        if self.interned.len() <= task.index() {
            self.interned.resize(task.index() + 1, (0, 0));
        }
        let (generation, place) = self.interned[task.index()];
        if generation == self.generation {
            return place;
        }
        let place = self.names_count;
        self.interned[task.index()] = (self.generation, place);
        self.names_count += 1;
        self.name.clear();
        tasks.push_comm(task, cpu, &mut self.name);
        bytes(&mut self.names, 5, &self.name);
        place
    }

    fn encode(
        &mut self,
        cpu: CpuId,
        batch: &[Waiting],
        tasks: &Tasks,
        policy_cpus: &[CpuMask],
        current: &mut TaskId,
        lines_in_service: &mut u16,
    ) {
        self.switch.iter_mut().for_each(Vec::clear);
        self.waking.iter_mut().for_each(Vec::clear);
        self.names.clear();
        self.events.clear();
        self.generation += 1;
        self.names_count = 0;
        let mut switched_at: Ns = 0;
        let mut woken_at: Ns = 0;
        for Waiting { fact, prio } in batch {
            let (at, prio) = (fact.at, i64::from(*prio));
            match fact.kind {
                FactKind::Switch { next, prev_state, .. } => {
                    let place = self.intern(next, cpu, tasks);
                    let [time, state, pid, prios, name] = &mut self.switch;
                    // A reader adds with wrap-around, so that even a step back survives.
                    varint(time, at.wrapping_sub(switched_at));
                    varint(state, raw_prev_state(prev_state));
                    varint(pid, u64::from(next.0));
                    varint(prios, prio as u64);
                    varint(name, u64::from(place));
                    switched_at = at;
                    *current = next;
                }
                FactKind::Waking { task, source, prev_cpu } => {
                    let place = self.intern(task, cpu, tasks);
                    let [time, pid, target, prios, name, flags] = &mut self.waking;
                    varint(time, at.wrapping_sub(woken_at));
                    varint(pid, u64::from(task.0));
                    varint(target, u64::from(prev_cpu.0));
                    varint(prios, prio as u64);
                    varint(name, u64::from(place));
                    flags.push(match source {
                        WakeSource::Task => TRACE_FLAG_IRQS_OFF,
                        WakeSource::Timer => TRACE_FLAG_IRQS_OFF | TRACE_FLAG_HARDIRQ,
                        WakeSource::Kernel => TRACE_FLAG_IRQS_OFF | TRACE_FLAG_SOFTIRQ,
                    });
                    woken_at = at;
                }
                FactKind::Frequency { policy, khz, .. } => {
                    let alone = CpuMask::of(fact.cpu);
                    let cpus = policy_cpus.get(policy.index()).unwrap_or(&alone);
                    for cpu in cpus.iter() {
                        self.event(at, *current, 11, |payload| {
                            uint(payload, 1, u64::from(khz));
                            uint(payload, 2, u64::from(cpu.0));
                        });
                    }
                }
                kind => self.plain(fact, kind, prio, tasks, *current, lines_in_service),
            }
        }
    }

    /// Appends an event whose payload is field `number`.
    #[inline]
    fn event(&mut self, at: Ns, current: TaskId, number: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        message(&mut self.events, 2, |event| {
            uint(event, 1, at);
            uint(event, 2, u64::from(current.0));
            message(event, number, fill);
        });
    }

    /// Appends an event that concerns one task or one CPU.
    #[inline]
    fn plain(
        &mut self,
        fact: &Fact,
        kind: FactKind,
        prio: i64,
        tasks: &Tasks,
        current: TaskId,
        lines_in_service: &mut u16,
    ) {
        let (at, cpu) = (fact.at, fact.cpu);
        let named = |payload: &mut Vec<u8>, task: TaskId| {
            message(payload, 1, |comm| tasks.push_comm(task, cpu, comm));
            uint(payload, 2, u64::from(task.0));
        };
        match kind {
            FactKind::Wakeup { task, target, new } => {
                self.event(at, current, if new { 114 } else { 17 }, |payload| {
                    named(payload, task);
                    int(payload, 3, prio);
                    uint(payload, 5, u64::from(target.0));
                });
            }
            FactKind::Migrate { task, from, to } => self.event(at, current, 491, |payload| {
                named(payload, task);
                int(payload, 3, prio);
                uint(payload, 4, u64::from(from.0));
                uint(payload, 5, u64::from(to.0));
            }),
            FactKind::Exit { task } => self.event(at, current, 238, |payload| {
                named(payload, task);
                int(payload, 3, i64::from(PROCESS));
                int(payload, 4, prio);
            }),
            FactKind::IdleEnter { state, .. } => self.event(at, current, 13, |payload| {
                uint(payload, 1, u64::from(state));
                uint(payload, 2, u64::from(cpu.0));
            }),
            FactKind::IdleExit { .. } => self.event(at, current, 13, |payload| {
                uint(payload, 1, u64::from(PWR_EVENT_EXIT));
                uint(payload, 2, u64::from(cpu.0));
            }),
            FactKind::Tick => self.event(at, current, 553, |payload| uint(payload, 2, at)),
            FactKind::Ipi { target, kind } => self.event(at, current, 23, |payload| {
                // The event has a 32-bit set; farther CPUs are named in the reason.
                let near = 1u32.checked_shl(u32::from(target.0)).unwrap_or(0);
                uint(payload, 1, u64::from(near));
                if near != 0 {
                    bytes(payload, 2, ipi_reason(kind).as_bytes());
                } else {
                    let reason = format!("{} to CPU {target}", ipi_reason(kind));
                    bytes(payload, 2, reason.as_bytes());
                }
            }),
            FactKind::IrqEntry { lines } => {
                *lines_in_service = lines.into();
                self.event(at, current, 36, |payload| {
                    uint(payload, 1, u64::from(u16::from(lines)));
                    message(payload, 2, |name| push_lines(lines, name));
                });
            }
            FactKind::IrqExit { .. } => self.event(at, current, 37, |payload| {
                uint(payload, 1, u64::from(*lines_in_service));
                uint(payload, 2, 1);
            }),
            other => unreachable!("{other:?} is not batched"),
        }
    }

    /// Puts the bundle's packet together.
    fn write(&mut self, cpu: CpuId, packet: &mut Vec<u8>) {
        self.compact.clear();
        if !self.switch[0].is_empty() {
            for (number, column) in [1, 2, 3, 4, 6].into_iter().zip(&self.switch) {
                bytes(&mut self.compact, number, column);
            }
        }
        if !self.waking[0].is_empty() {
            for (number, column) in (7..=12).zip(&self.waking) {
                bytes(&mut self.compact, number, column);
            }
        }
        self.compact.extend_from_slice(&self.names);
        message(packet, 1, |packet| {
            uint(packet, 10, u64::from(SEQUENCE_FTRACE));
            message(packet, 1, |bundle| {
                uint(bundle, 1, u64::from(cpu.0));
                bundle.extend_from_slice(&self.events);
                if !self.compact.is_empty() {
                    bytes(bundle, 4, &self.compact);
                }
            });
        });
    }
}

/// What `uname -r` says on the kernel that is named `linux-5.18+...` or `linux-6.12.95`.
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

/// `prev_state` as `sched_switch` records it since 4.14: `TASK_REPORT` bits, and `TASK_REPORT_MAX`
/// for a preempted task.
fn raw_prev_state(state: TaskState) -> u64 {
    match state {
        TaskState::Running => 0,
        TaskState::Interruptible => 0x01,
        TaskState::Uninterruptible => 0x02,
        TaskState::Dead => 0x10,
        TaskState::Preempted => 0x100,
    }
}

/// What arm64's `ipi_raise` says (`ipi_types[]` of `arch/arm64/kernel/smp.c`); the two uses of
/// `call_function_single` are told apart.
pub(crate) fn ipi_reason(kind: IpiKind) -> &'static str {
    match kind {
        IpiKind::Reschedule => "Rescheduling interrupts",
        IpiKind::WakeList => "Function call interrupts (wake list)",
        IpiKind::NohzKick => "Function call interrupts (nohz kick)",
        IpiKind::IrqWork => "IRQ work interrupts",
        IpiKind::Timer => "Timer broadcast interrupts",
    }
}

/// Appends the names of the lines of an interrupt: `timer+reschedule`.
pub(crate) fn push_lines(lines: IrqLines, to: &mut Vec<u8>) {
    let mut rest = lines.iter();
    let first = rest.next().map_or("none", IrqLine::name);
    to.extend_from_slice(first.as_bytes());
    for line in rest {
        to.push(b'+');
        to.extend_from_slice(line.name().as_bytes());
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
