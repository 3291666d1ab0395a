// SPDX-License-Identifier: GPL-2.0-or-later
//! Events for Perfetto: ftrace bundles by CPU, as its own recorder writes them.
//!
//! `sched_waking` goes into the compact columns where the source tells whether an interrupt was handled, as only these have
//! flags; every other event is an `FtraceEvent`. All CPUs are written together after every [`BATCH`] events, so that
//! packets are out of order by no more than that. Timers, work items and events of unknown fields have no place here.
//!
//! References: perfetto, protos/perfetto/trace/ftrace/ftrace_event_bundle.proto and ftrace_event.proto.

use super::{EventSink, mark};
use crate::event::{
    EventTask, Interrupt, Left, NameId, Names, TraceEvent, TraceEventKind, TraceHeader,
};
use crate::wire::{message, uint, varint};
use crate::{AtomicFile, Destination};
use schedtwin_types::Ns;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// Events of all CPUs between two rounds of bundles.
const BATCH: usize = 8192;

/// Threads whose process is told.
const THREADS_MOST: usize = 1 << 16;

/// The sequence of our packets; 0 is no number.
const SEQUENCE: u64 = 1;

/// `TRACE_FLAG_*` of the kernel.
const IRQS_OFF: u64 = 1;
const HARDIRQ: u64 = 8;
const SOFTIRQ: u64 = 0x10;

/// Writes events for Perfetto.
pub struct EventPerfetto<W: Destination> {
    out: BufWriter<W>,
    cpus: Vec<Bundle>,
    waiting: usize,
    packet: Vec<u8>,
    /// Of each thread its process and its name.
    threads: BTreeMap<u32, (u32, String)>,
}

/// What waits to be written of a CPU.
#[derive(Default)]
struct Bundle {
    lost: bool,
    /// Fields `event` of the bundle.
    events: Vec<u8>,
    wakings: Vec<Waking>,
    comms: Vec<NameId>,
    comm_texts: Vec<String>,
}

struct Waking {
    at: Ns,
    task: EventTask,
    target: u64,
    comm: u64,
    flags: u64,
}

impl EventPerfetto<AtomicFile> {
    /// A file that appears when it is finished.
    pub fn create(
        path: &std::path::Path,
        header: &TraceHeader,
    ) -> io::Result<EventPerfetto<AtomicFile>> {
        EventPerfetto::new(AtomicFile::create(path)?, header)
    }
}

impl<W: Destination> EventPerfetto<W> {
    /// Begins a trace of what that header describes.
    pub fn new(out: W, header: &TraceHeader) -> io::Result<EventPerfetto<W>> {
        let mut writer = EventPerfetto {
            out: BufWriter::with_capacity(1 << 16, out),
            cpus: Vec::new(),
            waiting: 0,
            packet: Vec::new(),
            threads: BTreeMap::new(),
        };
        for thread in &header.threads {
            if let Some(tgid) = thread.tgid {
                writer.thread(thread.pid, tgid, &thread.comm);
            }
        }
        if let Some(release) = &header.release {
            writer.packet(|packet| {
                message(packet, 45, |info| {
                    message(info, 1, |name| {
                        message(name, 1, |text| text.extend(b"Linux"));
                        message(name, 3, |text| text.extend(release.as_bytes()));
                    });
                    if let Some(cpus) = header.nr_cpus {
                        uint(info, 8, cpus as u64);
                    }
                });
            })?;
        }
        Ok(writer)
    }

    fn thread(&mut self, pid: u32, tgid: u32, name: &str) {
        if self.threads.len() < THREADS_MOST && pid != 0 {
            self.threads.entry(pid).or_insert_with(|| (tgid, name.to_owned()));
        }
    }

    /// Writes a packet.
    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.packet.clear();
        message(&mut self.packet, 1, |packet| {
            uint(packet, 10, SEQUENCE);
            fill(packet);
        });
        self.out.write_all(&self.packet)
    }

    /// Writes what waits.
    fn flush(&mut self) -> io::Result<()> {
        for cpu in 0..self.cpus.len() {
            let bundle = std::mem::take(&mut self.cpus[cpu]);
            if bundle.events.is_empty() && bundle.wakings.is_empty() {
                self.cpus[cpu].lost = bundle.lost;
                continue;
            }
            self.packet(|packet| message(packet, 1, |to| bundle.write(cpu, to)))?;
        }
        self.waiting = 0;
        Ok(())
    }

    fn bundle(&mut self, cpu: usize) -> &mut Bundle {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Bundle::default);
        }
        &mut self.cpus[cpu]
    }
}

impl Bundle {
    fn write(&self, cpu: usize, to: &mut Vec<u8>) {
        uint(to, 1, cpu as u64);
        to.extend(&self.events);
        if self.lost {
            uint(to, 3, 1);
        }
        if self.wakings.is_empty() {
            return;
        }
        message(to, 4, |compact| {
            for comm in &self.comm_texts {
                message(compact, 5, |text| text.extend(comm.as_bytes()));
            }
            let mut before = 0;
            let mut column = |number, value: &dyn Fn(&Waking) -> u64| {
                message(compact, number, |to| {
                    self.wakings.iter().for_each(|waking| varint(to, value(waking)));
                });
            };
            column(8, &|waking| u64::from(waking.task.pid));
            column(9, &|waking| waking.target);
            column(10, &|waking| i64::from(waking.task.prio) as u64);
            column(11, &|waking| waking.comm);
            column(12, &|waking| waking.flags);
            message(compact, 7, |to| {
                for waking in &self.wakings {
                    // Times in the order of the source may step back a little; the columns cannot.
                    let at = waking.at.max(before);
                    varint(to, at - before);
                    before = at;
                }
            });
        });
    }

    fn waking(&mut self, event: &TraceEvent, task: EventTask, target: u64, names: &Names) {
        let known = self.comms.iter().position(|comm| *comm == task.comm);
        let comm = known.unwrap_or_else(|| {
            self.comms.push(task.comm);
            self.comm_texts.push(names.text(task.comm).to_owned());
            self.comms.len() - 1
        }) as u64;
        let level = match event.context.interrupt {
            Interrupt::Hardirq => HARDIRQ,
            Interrupt::Softirq => SOFTIRQ,
            Interrupt::Task | Interrupt::Unknown => 0,
        };
        let irqs = if event.context.irqs_off == Some(true) { IRQS_OFF } else { 0 };
        self.wakings.push(Waking { at: event.at, task, target, comm, flags: level | irqs });
    }
}

/// `TASK_*`.
fn state(left: Left) -> u64 {
    match left {
        Left::Runnable => 0,
        Left::Asleep => 1,
        Left::Blocked => 2,
        Left::Dead => 0x10,
    }
}

/// The fields of an event's message.
struct Body<'a> {
    to: &'a mut Vec<u8>,
    names: &'a Names,
}

impl Body<'_> {
    fn number(&mut self, number: u32, value: impl Into<i64>) {
        uint(self.to, number, value.into() as u64);
    }

    fn name(&mut self, number: u32, name: NameId) {
        message(self.to, number, |to| to.extend(self.names.text(name).as_bytes()));
    }

    fn task(&mut self, first: u32, task: EventTask) {
        self.name(first, task.comm);
        self.number(first + 1, task.pid);
        self.number(first + 2, task.prio);
    }
}

/// The number of an event's message; `None`: it has none here.
fn number_of(kind: &TraceEventKind, names: &Names) -> Option<u32> {
    use TraceEventKind as Kind;
    let timer = |name: NameId| names.text(name) == "local_timer";
    Some(match *kind {
        Kind::Switch { prev: Some(_), .. } => 4,
        Kind::Frequency { .. } => 11,
        Kind::FrequencyLimits { .. } => 12,
        Kind::Idle { .. } => 13,
        Kind::Wakeup { .. } => 17,
        Kind::BlockedReason { .. } => 18,
        Kind::Waking { .. } => 20,
        Kind::Suspend { .. } => 481,
        Kind::VectorEntry { name } => {
            if timer(name) {
                559
            } else {
                21
            }
        }
        Kind::VectorExit { name } => {
            if timer(name) {
                560
            } else {
                22
            }
        }
        Kind::IpiSend { to: Some(to), .. } if to.0 < 32 => 23,
        Kind::SoftirqEntry { .. } => 24,
        Kind::SoftirqExit { .. } => 25,
        Kind::SoftirqRaise { .. } => 26,
        Kind::IrqEntry { .. } => 36,
        Kind::IrqExit { .. } => 37,
        Kind::WakeupNew { .. } => 114,
        Kind::NewTask { .. } => 235,
        Kind::Rename { .. } => 236,
        Kind::Exec { .. } => 237,
        Kind::Exit { .. } => 238,
        Kind::Fork { .. } => 239,
        Kind::Free { .. } => 240,
        Kind::PiPriority { .. } => 353,
        Kind::Migrate { .. } => 491,
        _ => return None,
    })
}

/// Appends the fields of an event that has a number.
fn body(kind: &TraceEventKind, to: &mut Vec<u8>, names: &Names) {
    use TraceEventKind as Kind;
    let mut b = Body { to, names };
    match *kind {
        Kind::Switch { prev, left, next } => {
            b.task(1, prev.expect("it has one"));
            uint(b.to, 4, state(left));
            b.task(5, next);
        }
        Kind::Waking { task, target }
        | Kind::Wakeup { task, target }
        | Kind::WakeupNew { task, target } => {
            b.task(1, task);
            b.number(4, 1);
            b.number(5, target.map_or(0, |cpu| cpu.0));
        }
        Kind::Migrate { task, from, to } => {
            b.task(1, task);
            b.number(4, from.0);
            b.number(5, to.0);
        }
        Kind::Frequency { cpu, khz } => {
            b.number(1, khz);
            b.number(2, cpu.0);
        }
        Kind::FrequencyLimits { cpu, min_khz, max_khz } => {
            b.number(1, min_khz);
            b.number(2, max_khz);
            b.number(3, cpu.0);
        }
        Kind::Idle { cpu, state } => {
            b.number(1, state.unwrap_or(u32::MAX));
            b.number(2, cpu.0);
        }
        Kind::Suspend { begins } => b.number(1, begins),
        Kind::BlockedReason { pid, io_wait } => {
            b.number(1, pid);
            b.number(3, io_wait);
        }
        Kind::VectorEntry { name } | Kind::VectorExit { name } => match names.text(name) {
            "local_timer" => b.number(1, 0),
            _ => b.name(1, name),
        },
        Kind::IpiSend { to: cpu, reason } => {
            uint(b.to, 1, 1 << cpu.map_or(0, |cpu| cpu.0));
            b.name(2, reason);
        }
        Kind::SoftirqRaise { vector }
        | Kind::SoftirqEntry { vector }
        | Kind::SoftirqExit { vector } => b.number(1, vector),
        Kind::IrqEntry { irq, handler } => {
            b.number(1, irq);
            b.name(2, handler);
        }
        Kind::IrqExit { irq } => b.number(1, irq),
        Kind::NewTask { pid, comm, clone_flags } => {
            b.number(1, pid);
            b.name(2, comm);
            uint(b.to, 3, clone_flags);
        }
        Kind::Rename { pid, comm } => {
            b.number(1, pid);
            b.name(3, comm);
        }
        Kind::Exec { pid, old_pid } => {
            b.number(2, pid);
            b.number(3, old_pid);
        }
        Kind::Exit { pid } | Kind::Free { pid } => b.number(2, pid),
        Kind::Fork { parent, child_comm, child } => {
            b.number(2, parent);
            b.name(3, child_comm);
            b.number(4, child);
        }
        Kind::PiPriority { pid, from, to } => {
            b.number(2, to);
            b.number(3, from);
            b.number(4, pid);
        }
        _ => unreachable!("it has a number"),
    }
}

impl<W: Destination> EventSink for EventPerfetto<W> {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> io::Result<bool> {
        let cpu = event.cpu.index();
        let context = &event.context;
        if let Some(tgid) = context.tgid {
            self.thread(context.pid, tgid, names.text(context.comm));
        }
        match event.kind {
            TraceEventKind::Lost { .. } => {
                self.flush()?;
                self.bundle(cpu).lost = true;
                return Ok(true);
            }
            // No tracepoint either: the first bundle of a CPU says it.
            TraceEventKind::Begins => return Ok(true),
            TraceEventKind::Waking { task, target } if context.interrupt != Interrupt::Unknown => {
                let target = u64::from(target.map_or(0, |cpu| cpu.0));
                self.bundle(cpu).waking(event, task, target, names);
            }
            kind => {
                let mark = mark(&kind, names);
                let number = match &mark {
                    Some(_) => Some(3),
                    None => number_of(&kind, names),
                };
                let Some(number) = number else { return Ok(false) };
                message(&mut self.bundle(cpu).events, 2, |to| {
                    uint(to, 1, event.at);
                    uint(to, 2, u64::from(context.pid));
                    message(to, number, |to| match &mark {
                        Some(mark) => message(to, 2, |text| text.extend(mark.as_bytes())),
                        None => body(&kind, to, names),
                    });
                });
            }
        }
        self.waiting += 1;
        if self.waiting >= BATCH {
            self.flush()?;
        }
        Ok(true)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        let threads = std::mem::take(&mut self.threads);
        if !threads.is_empty() {
            self.packet(|packet| {
                message(packet, 2, |tree| {
                    for (tid, (tgid, name)) in &threads {
                        if tid == tgid {
                            message(tree, 1, |process| {
                                uint(process, 1, u64::from(*tid));
                                message(process, 3, |text| text.extend(name.as_bytes()));
                            });
                        }
                        message(tree, 2, |thread| {
                            uint(thread, 1, u64::from(*tid));
                            message(thread, 2, |text| text.extend(name.as_bytes()));
                            uint(thread, 3, u64::from(*tgid));
                        });
                    }
                });
            })?;
        }
        self.out.into_inner().map_err(|error| error.into_error())?.commit()
    }
}
