// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads back the Perfetto traces that schedtwin writes.
//!
//! It shares the message types with the writer's cold packets, and reads events as the reader of
//! recordings does, but shares none of the writer's hand encoding, and so checks it. It understands what [`crate::perfetto`] writes; other traces are refused, since
//! their tracks mean other things.
//!
//! **Algorithm.** Packets are read and decoded one by one; the facts of a packet are handed over in
//! time order. Bundles of different CPUs overlap in time: who needs one order sorts by `at`.
//!
//! Data that a trace does not hold reads as follows: `IdleEnter::tick_stopped` false,
//! `IdleExit::residency_ns` and `IrqExit::spent_ns` 0, `Frequency::requested_at` = `at`; `Preempted`
//! and balance passes that moved nothing are missing; so are samples of signals that changed
//! nothing.

use crate::event::{Interrupt, Names, TraceEventKind};
use crate::perfetto::{PROCESS, TYPE_COUNTER, track};
use crate::perfetto_messages::{CompactSched, Data, FtraceEventBundle, TracePacket, TrackEvent};
use crate::perfetto_source::bundle::{RawEvent, Reader};
use crate::tasks::{DEFAULT_PRIO, TASKS_MAX, Tasks};
use crate::tracepoint::flags;
use crate::{Meta, TaskInfo};
use prost::Message;
use schedtwin_types::{
    CpuId, CpuMask, Fact, FactKind, IpiKind, MAX_CPUS, Ns, PolicyId, TaskId, TaskState, WakeSource,
};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read};

/// Longest packet that is read. The writer's are below 200 KB.
pub const PACKET_BYTES_MAX: u64 = 1 << 24;

/// Why a trace cannot be read further.
#[derive(Debug)]
pub struct ReadError {
    /// The packet, counted from 1.
    pub packet: u64,
    /// The fault, in words that fit after "failed to read the trace".
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}: {}", self.packet, self.message)
    }
}

impl std::error::Error for ReadError {}

/// The content of a trace besides its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The run.
    pub meta: Meta,
    /// The tasks, in the order in which they appeared. The priority is the first one seen.
    pub tasks: Vec<TaskInfo>,
    /// Packets read.
    pub packets: u64,
    /// Decisions, which are not read.
    pub decisions: u64,
}

/// An event of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A fact.
    Fact(Fact),
    /// A fact whose CPU the trace does not hold: `TaskSignals`, `Overutilized`.
    Unplaced {
        /// When.
        at: Ns,
        /// The fact itself.
        kind: FactKind,
    },
    /// The power of a domain from a time on.
    Power {
        /// When.
        at: Ns,
        /// Which domain.
        domain: u16,
        /// Microwatts.
        microwatts: u64,
    },
}

/// Reads a trace and hands each event to `each`, in time order within each packet.
pub fn read(input: impl BufRead, each: &mut dyn FnMut(Event)) -> Result<Contents, ReadError> {
    let mut packets = Packets { input, number: 0, bytes: Vec::new() };
    let mut decoder = Decoder::new();
    loop {
        let packet = match packets.next() {
            Ok(Some(packet)) => packet,
            Ok(None) if decoder.contents.meta.nr_cpus == 0 => {
                return Err(packets.fail("the trace has no system information"));
            }
            Ok(None) => break,
            Err(message) => return Err(packets.fail(message)),
        };
        decoder.packet(packet, each).map_err(|message| packets.fail(message))?;
    }
    decoder.flush_signals(each);
    let mut contents = decoder.contents;
    contents.tasks = decoder.tasks.iter().cloned().collect();
    for task in contents.tasks.iter_mut().filter(|task| task.prio == PRIO_UNKNOWN) {
        task.prio = DEFAULT_PRIO;
    }
    contents.packets = packets.number;
    Ok(contents)
}

/// Cuts a trace into packets.
struct Packets<R> {
    input: R,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Packets<R> {
    fn fail(&self, message: impl Into<String>) -> ReadError {
        ReadError { packet: self.number, message: message.into() }
    }

    /// The next packet; `None` at the end of the trace.
    fn next(&mut self) -> Result<Option<TracePacket>, String> {
        let readable = |error: io::Error| error.to_string();
        if self.input.fill_buf().map_err(readable)?.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.varint()? != 1 << 3 | 2 {
            return Err("not a Perfetto trace".to_string());
        }
        let length = self.varint()?;
        if length > PACKET_BYTES_MAX {
            return Err(format!("{length} bytes, more than {PACKET_BYTES_MAX}"));
        }
        self.bytes.clear();
        // Grows as bytes arrive: a wrong length of a short file costs nothing.
        (&mut self.input).take(length).read_to_end(&mut self.bytes).map_err(readable)?;
        if (self.bytes.len() as u64) < length {
            return Err(format!("ends after {} of {length} bytes", self.bytes.len()));
        }
        TracePacket::decode(&self.bytes[..]).map(Some).map_err(|error| error.to_string())
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.input.read_exact(&mut byte).map_err(|error| error.to_string())?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err("a number of more than 64 bits".to_string())
    }
}

/// The owner of the three signals that are being collected.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Cpu(CpuId),
    Task(TaskId),
}

struct Decoder {
    names: Names,
    reader: Reader,
    contents: Contents,
    tasks: Tasks,
    current: Vec<TaskId>,
    cpu_signals: Vec<[u32; 3]>,
    task_signals: BTreeMap<TaskId, [u32; 3]>,
    /// A sample of which more values may follow: when, whose, the last signal seen.
    sample: Option<(Ns, Owner, usize)>,
    facts: Vec<Fact>,
}

impl Decoder {
    fn new() -> Decoder {
        let mut names = Names::new();
        Decoder {
            reader: Reader::new(&mut names),
            names,
            contents: Contents::default(),
            tasks: Tasks::default(),
            current: Vec::new(),
            cpu_signals: Vec::new(),
            task_signals: BTreeMap::new(),
            sample: None,
            facts: Vec::new(),
        }
    }

    fn packet(&mut self, packet: TracePacket, each: &mut dyn FnMut(Event)) -> Result<(), String> {
        let first = self.contents.meta.nr_cpus == 0;
        match packet.data {
            Some(Data::SystemInfo(info)) => {
                let ours = info.utsname.is_some_and(|name| name.version() == b"schedtwin");
                let cpus = info.num_cpus.unwrap_or(0) as usize;
                if !ours || cpus == 0 || cpus > MAX_CPUS {
                    return Err("not a trace that schedtwin wrote".to_string());
                }
                self.contents.meta.nr_cpus = cpus;
                self.current = vec![TaskId::IDLE; cpus];
                self.cpu_signals = vec![[0; 3]; cpus];
            }
            _ if first => return Err("not a trace that schedtwin wrote".to_string()),
            Some(Data::FtraceEvents(bundle)) => {
                self.facts.clear();
                self.bundle(&bundle)?;
                self.facts.sort_by_key(|fact| fact.at);
                self.facts.iter().for_each(|fact| each(Event::Fact(*fact)));
            }
            Some(Data::ProcessTree(tree)) => {
                for thread in tree.threads.iter().filter(|thread| thread.tgid() == PROCESS) {
                    let id = task(thread.tid())?;
                    // Until an event shows it: then the first priority seen is the task's.
                    let prio = self.tasks.get(id).map_or(PRIO_UNKNOWN, |known| known.prio);
                    let name = String::from_utf8_lossy(thread.name()).into_owned();
                    self.tasks.insert(&TaskInfo { id, name, prio });
                }
            }
            Some(Data::TrackDescriptor(descriptor)) => {
                let domain = descriptor.uuid().wrapping_sub(track::DOMAIN_FIRST);
                if domain <= u64::from(u16::MAX) {
                    let names = &mut self.contents.meta.domain_names;
                    let index = domain as usize;
                    names.resize(names.len().max(index + 1), String::new());
                    let name = descriptor.name();
                    names[index] = name.strip_prefix("power ").unwrap_or(name).to_string();
                }
            }
            Some(Data::TrackEvent(event)) => {
                self.track_event(packet.timestamp.unwrap_or(0), &event, each)?;
            }
            Some(Data::ClockSnapshot(_)) | None => {}
        }
        Ok(())
    }

    fn cpu(&self, cpu: i64) -> Result<CpuId, String> {
        match u16::try_from(cpu) {
            Ok(number) if usize::from(number) < self.contents.meta.nr_cpus => Ok(CpuId(number)),
            _ => Err(format!("CPU {cpu}, but there are {} CPUs", self.contents.meta.nr_cpus)),
        }
    }

    fn see_prio(&mut self, id: TaskId, prio: i32) {
        if self.tasks.get(id).is_some_and(|task| task.prio == PRIO_UNKNOWN) {
            self.tasks.set_prio(id, prio);
        }
    }

    fn bundle(&mut self, bundle: &FtraceEventBundle) -> Result<(), String> {
        let cpu = self.cpu(i64::from(bundle.cpu()))?;
        for bytes in &bundle.event {
            let event = RawEvent::read(bytes).ok_or("an event that cannot be read")?;
            let kind = self.reader.event(&event, &mut self.names);
            let (_, kind) = kind.ok_or("an event that cannot be read")?;
            let (at, kind) = (event.at, self.event(cpu, event.at, kind)?);
            self.facts.extend(kind.map(|kind| Fact { at, cpu, kind }));
        }
        if let Some(compact) = &bundle.compact_sched {
            self.compact(cpu, compact)?;
        }
        Ok(())
    }

    fn compact(&mut self, cpu: CpuId, columns: &CompactSched) -> Result<(), String> {
        let count = columns.switch_timestamp.len();
        let lengths = [
            columns.switch_prev_state.len(),
            columns.switch_next_pid.len(),
            columns.switch_next_prio.len(),
            columns.switch_next_comm_index.len(),
        ];
        if lengths != [count; 4] {
            return Err(format!("columns of sched_switch differ: {count} and {lengths:?}"));
        }
        let names = columns.intern_table.len();
        let named = |place: u32| match (place as usize) < names {
            true => Ok(()),
            false => Err(format!("name {place} of {names}")),
        };
        let mut at: Ns = 0;
        for index in 0..count {
            at = at.wrapping_add(columns.switch_timestamp[index]);
            named(columns.switch_next_comm_index[index])?;
            let next = task(columns.switch_next_pid[index])?;
            let prev = std::mem::replace(&mut self.current[cpu.index()], next);
            let prev_state = prev_state(columns.switch_prev_state[index])?;
            self.see_prio(next, columns.switch_next_prio[index]);
            let kind = FactKind::Switch { prev, next, prev_state };
            self.facts.push(Fact { at, cpu, kind });
        }
        let count = columns.waking_timestamp.len();
        let lengths = [
            columns.waking_pid.len(),
            columns.waking_target_cpu.len(),
            columns.waking_prio.len(),
            columns.waking_comm_index.len(),
            columns.waking_common_flags.len(),
        ];
        if lengths != [count; 5] {
            return Err(format!("columns of sched_waking differ: {count} and {lengths:?}"));
        }
        at = 0;
        for index in 0..count {
            at = at.wrapping_add(columns.waking_timestamp[index]);
            named(columns.waking_comm_index[index])?;
            let flags = columns.waking_common_flags[index] as u8;
            let task = task(columns.waking_pid[index])?;
            self.see_prio(task, columns.waking_prio[index]);
            let kind = FactKind::Waking {
                task,
                source: match flags::context(Some(flags)).interrupt {
                    Interrupt::Hardirq => WakeSource::Timer,
                    Interrupt::Softirq => WakeSource::Kernel,
                    Interrupt::Task | Interrupt::Unknown => WakeSource::Task,
                },
                prev_cpu: self.cpu(i64::from(columns.waking_target_cpu[index]))?,
            };
            self.facts.push(Fact { at, cpu, kind });
        }
        Ok(())
    }

    /// The fact that an event shows; `None` for a further CPU of a frequency change.
    fn event(
        &mut self,
        cpu: CpuId,
        at: Ns,
        event: TraceEventKind,
    ) -> Result<Option<FactKind>, String> {
        let known = |cpu: CpuId| self.cpu(cpu.0.into());
        Ok(Some(match event {
            TraceEventKind::Frequency { cpu, khz } => {
                let changed = known(cpu)?;
                let policies = &self.contents.meta.policy_cpus;
                let policy = policies.iter().position(|cpus| cpus.contains(changed));
                let first = policy.is_none_or(|policy| policies[policy].lowest() == Some(changed));
                let policy = PolicyId(policy.map_or(changed.0, |policy| policy as u16));
                return Ok(first.then_some(FactKind::Frequency { policy, khz, requested_at: at }));
            }
            TraceEventKind::Idle { state: Some(state), .. } => {
                let state = u8::try_from(state).map_err(|_| format!("idle state {state}"))?;
                FactKind::IdleEnter { state, tick_stopped: false }
            }
            TraceEventKind::Idle { state: None, .. } => {
                FactKind::IdleExit { state: 0, residency_ns: 0 }
            }
            TraceEventKind::Wakeup { task: woken, target }
            | TraceEventKind::WakeupNew { task: woken, target } => {
                let new = matches!(event, TraceEventKind::WakeupNew { .. });
                let target = known(target.ok_or("a wakeup without a CPU")?)?;
                let task = task(woken.pid)?;
                self.see_prio(task, woken.prio);
                FactKind::Wakeup { task, target, new }
            }
            TraceEventKind::Migrate { task: moved, from, to } => {
                FactKind::Migrate { task: task(moved.pid)?, from: known(from)?, to: known(to)? }
            }
            TraceEventKind::Exit { pid } => FactKind::Exit { task: task(pid)? },
            TraceEventKind::HrtimerExpire { .. } => FactKind::Tick,
            TraceEventKind::IpiSend { to, reason } => {
                let reason = self.names.text(reason);
                let bad = || format!("an IPI `{reason}`");
                // A mask has no place for a far CPU.
                let (name, to) = match reason.rsplit_once(" to CPU ") {
                    Some((name, far)) => (name, far.parse().map_err(|_| bad())?),
                    None => (reason, i64::from(to.ok_or_else(bad)?.0)),
                };
                let kind = IpiKind::ALL.into_iter().find(|kind| kind.reason() == name);
                FactKind::Ipi { target: self.cpu(to)?, kind: kind.ok_or_else(bad)? }
            }
            TraceEventKind::IrqEntry { irq, .. } => {
                let lines = u16::try_from(irq).map_err(|_| format!("irq {irq}"))?;
                FactKind::IrqEntry { lines: lines.into() }
            }
            TraceEventKind::IrqExit { .. } => FactKind::IrqExit { spent_ns: 0 },
            _ => return Err(format!("an event on CPU {cpu} that schedtwin does not write")),
        }))
    }

    fn track_event(
        &mut self,
        at: Ns,
        event: &TrackEvent,
        each: &mut dyn FnMut(Event),
    ) -> Result<(), String> {
        let uuid = event.track_uuid();
        if event.r#type() == TYPE_COUNTER {
            let value = event.counter_value();
            if (track::DOMAIN_FIRST..track::DECISIONS_FIRST).contains(&uuid) {
                let domain = (uuid - track::DOMAIN_FIRST) as u16;
                let microwatts =
                    u64::try_from(value).map_err(|_| format!("a counter is {value}"))?;
                each(Event::Power { at, domain, microwatts });
                return Ok(());
            }
            let value = u32::try_from(value).map_err(|_| format!("a counter is {value}"))?;
            if uuid >= track::TASK_FIRST {
                let number = (uuid - track::TASK_FIRST) / 4;
                let id = task(i32::try_from(number).unwrap_or(i32::MAX))?;
                return self.signal(at, Owner::Task(id), (uuid % 4) as usize, value, each);
            } else if uuid >= track::CPU_FIRST {
                let cpu = self.cpu(((uuid - track::CPU_FIRST) / 4) as i64)?;
                return self.signal(at, Owner::Cpu(cpu), (uuid % 4) as usize, value, each);
            } else if uuid == track::OVERUTILIZED {
                let kind = FactKind::Overutilized { on: value != 0 };
                each(Event::Unplaced { at, kind });
            }
            return Ok(());
        }
        if uuid == track::RUN {
            self.contents.meta.title = event.name().to_string();
            for detail in &event.debug_annotations {
                let (name, text) = (detail.name(), detail.string_value());
                let policy = name.strip_prefix("policy").and_then(|n| n.parse::<u16>().ok());
                if policy.is_some() {
                    let cpus = cpu_list(text).ok_or_else(|| format!("CPUs `{text}`"))?;
                    self.contents.meta.policy_cpus.push(cpus);
                } else {
                    self.contents.meta.provenance.push((name.to_string(), text.to_string()));
                }
            }
            return Ok(());
        }
        if (track::DECISIONS_FIRST..track::TASK_FIRST).contains(&uuid) {
            self.contents.decisions += 1;
            return Ok(());
        }
        let cpu = self.cpu((uuid.wrapping_sub(track::CPU_FIRST) / 4) as i64)?;
        let detail = |name: &str| {
            let found = event.debug_annotations.iter().find(|detail| detail.name() == name);
            let value = found.map(|detail| detail.uint_value()).unwrap_or(0);
            u16::try_from(value).map_err(|_| format!("{name} is {value}"))
        };
        let kind = match event.name() {
            "sched_balance_rq" => FactKind::Balance {
                level: detail("level")? as u8,
                idle: detail("idle")? as u8,
                moved: detail("moved")?,
            },
            "cpu_idle_miss" => {
                FactKind::IdleMiss { state: detail("state")? as u8, below: detail("below")? != 0 }
            }
            other => {
                return Err(format!("an instant `{other}` that schedtwin does not write"));
            }
        };
        each(Event::Fact(Fact { at, cpu, kind }));
        Ok(())
    }

    /// Collects one of three signals. They are written in order and together, so a sample ends
    /// where another owner, another time or an earlier signal begins.
    fn signal(
        &mut self,
        at: Ns,
        owner: Owner,
        index: usize,
        value: u32,
        each: &mut dyn FnMut(Event),
    ) -> Result<(), String> {
        if index > 2 {
            return Err("a counter on a track of events".to_string());
        }
        let continues = self.sample.is_some_and(|(sample_at, sample_owner, last)| {
            sample_at == at && sample_owner == owner && last < index
        });
        if !continues {
            self.flush_signals(each);
        }
        self.sample = Some((at, owner, index));
        match owner {
            Owner::Cpu(cpu) => self.cpu_signals[cpu.index()][index] = value,
            Owner::Task(task) => self.task_signals.entry(task).or_default()[index] = value,
        }
        Ok(())
    }

    fn flush_signals(&mut self, each: &mut dyn FnMut(Event)) {
        let Some((at, owner, _)) = self.sample.take() else {
            return;
        };
        each(match owner {
            Owner::Cpu(cpu) => {
                let [util_avg, runnable_avg, util_est] = self.cpu_signals[cpu.index()];
                let kind = FactKind::CpuSignals { util_avg, runnable_avg, util_est };
                Event::Fact(Fact { at, cpu, kind })
            }
            Owner::Task(task) => {
                let [util_avg, runnable_avg, util_est] = self.task_signals[&task];
                let (util_avg, util_est) = (util_avg as u16, util_est as u16);
                let kind = FactKind::TaskSignals { task, util_avg, util_est, runnable_avg };
                Event::Unplaced { at, kind }
            }
        });
    }
}

/// The priority of a task that no event has shown yet.
const PRIO_UNKNOWN: i32 = i32::MIN;

fn task(pid: impl Into<i64>) -> Result<TaskId, String> {
    let pid = pid.into();
    match u32::try_from(pid) {
        Ok(number) if number < TASKS_MAX => Ok(TaskId(number)),
        _ => Err(format!("task {pid} is not within 0..{TASKS_MAX}")),
    }
}

fn prev_state(raw: i64) -> Result<TaskState, String> {
    match raw {
        0 => Ok(TaskState::Running),
        1 => Ok(TaskState::Interruptible),
        2 => Ok(TaskState::Uninterruptible),
        0x10 => Ok(TaskState::Dead),
        0x100 => Ok(TaskState::Preempted),
        _ => Err(format!("a prev_state of {raw:#x}")),
    }
}

/// CPUs as sysfs lists them: `0-3,6`.
fn cpu_list(text: &str) -> Option<CpuMask> {
    let mut cpus = CpuMask::EMPTY;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        if usize::from(last) >= MAX_CPUS {
            return None;
        }
        (first..=last).for_each(|cpu| cpus.insert(CpuId(cpu)));
    }
    Some(cpus)
}
