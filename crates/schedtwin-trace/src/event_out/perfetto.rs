// SPDX-License-Identifier: GPL-2.0-or-later
//! Events for Perfetto: ftrace bundles by CPU, as its own recorder writes them.
//!
//! `sched_waking` goes into the compact columns where the source tells whether an interrupt was handled, as only these have
//! flags, and so does a `sched_switch` from a thread that is not known, as only these can be without it; every other event is
//! an `FtraceEvent` of the numbers in the table of tracepoints. All CPUs are written together after every [`BATCH`] events, so
//! that packets are out of order by no more than that. Timers, work items and events of unknown fields have no place here.
//!
//! References: perfetto, protos/perfetto/trace/ftrace/ftrace_event_bundle.proto and ftrace_event.proto.

use super::{EventSink, Rows, Taken};
use crate::event::{
    EventTask, Interrupt, Left, NameId, Names, TraceEvent, TraceEventKind, TraceHeader,
};
use crate::tracepoint::flags;
use crate::tracepoint::row::{ABSENT, FIELDS_MAX, MACHINE_SUSPEND, Tracepoint, Type, Values};
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

/// Writes events for Perfetto.
pub struct EventPerfetto<W: Destination> {
    out: BufWriter<W>,
    cpus: Vec<Bundle>,
    waiting: usize,
    packet: Vec<u8>,
    /// Of each thread its process and its name.
    threads: BTreeMap<u32, (u32, String)>,
    rows: Rows,
    has_system: bool,
}

/// What waits to be written of a CPU.
#[derive(Default)]
struct Bundle {
    lost: bool,
    /// Fields `event` of the bundle.
    events: Vec<u8>,
    wakings: Vec<Waking>,
    /// Switches whose previous thread is not known.
    switches: Vec<Switch>,
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

struct Switch {
    at: Ns,
    left: Left,
    next: EventTask,
    comm: u64,
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
            rows: Rows::default(),
            has_system: false,
        };
        for thread in &header.threads {
            if let Some(tgid) = thread.tgid {
                writer.thread(thread.pid, tgid, &thread.comm);
            }
        }
        writer.system(header)?;
        Ok(writer)
    }

    /// Says once which system was recorded, as soon as it is known.
    fn system(&mut self, header: &TraceHeader) -> io::Result<()> {
        let Some(release) = header.release.as_ref().filter(|_| !self.has_system) else {
            return Ok(());
        };
        self.has_system = true;
        self.packet(|packet| {
            message(packet, 45, |info| {
                message(info, 1, |name| {
                    message(name, 1, |text| text.extend(b"Linux"));
                    message(name, 3, |text| text.extend(release.as_bytes()));
                });
                if let Some(cpus) = header.nr_cpus {
                    uint(info, 8, cpus as u64);
                }
            });
        })
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
            if bundle.is_empty() {
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
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.wakings.is_empty() && self.switches.is_empty()
    }

    fn write(&self, cpu: usize, to: &mut Vec<u8>) {
        uint(to, 1, cpu as u64);
        to.extend(&self.events);
        if self.lost {
            uint(to, 3, 1);
        }
        if self.comms.is_empty() {
            return;
        }
        message(to, 4, |compact| {
            for comm in &self.comm_texts {
                message(compact, 5, |text| text.extend(comm.as_bytes()));
            }
            if !self.wakings.is_empty() {
                let wakings = &self.wakings;
                column(compact, 8, wakings, |waking| u64::from(waking.task.pid));
                column(compact, 9, wakings, |waking| waking.target);
                column(compact, 10, wakings, |waking| i64::from(waking.task.prio) as u64);
                column(compact, 11, wakings, |waking| waking.comm);
                column(compact, 12, wakings, |waking| waking.flags);
                times(compact, 7, wakings, |waking| waking.at);
            }
            if !self.switches.is_empty() {
                let switches = &self.switches;
                column(compact, 2, switches, |switch| switch.left.bits());
                column(compact, 3, switches, |switch| u64::from(switch.next.pid));
                column(compact, 4, switches, |switch| i64::from(switch.next.prio) as u64);
                column(compact, 6, switches, |switch| switch.comm);
                times(compact, 1, switches, |switch| switch.at);
            }
        });
    }

    /// The place of a name among those of the columns.
    fn comm(&mut self, name: NameId, names: &Names) -> u64 {
        let known = self.comms.iter().position(|comm| *comm == name);
        known.unwrap_or_else(|| {
            self.comms.push(name);
            self.comm_texts.push(names.text(name).to_owned());
            self.comms.len() - 1
        }) as u64
    }

    /// A switch from a thread that is not known: only the columns can be without it.
    fn switch(&mut self, at: Ns, left: Left, next: EventTask, names: &Names) {
        let comm = self.comm(next.comm, names);
        self.switches.push(Switch { at, left, next, comm });
    }

    fn waking(&mut self, event: &TraceEvent, task: EventTask, target: u64, names: &Names) {
        let comm = self.comm(task.comm, names);
        let flags = flags::of(&event.context) & !flags::NEED_RESCHED;
        self.wakings.push(Waking { at: event.at, task, target, comm, flags: flags.into() });
    }
}

/// Writes a column.
fn column<T>(to: &mut Vec<u8>, number: u32, events: &[T], value: fn(&T) -> u64) {
    message(to, number, |to| events.iter().for_each(|event| varint(to, value(event))));
}

/// Writes the column of times: each is told from the one before.
fn times<T>(to: &mut Vec<u8>, number: u32, events: &[T], at: fn(&T) -> Ns) {
    let mut before = 0;
    message(to, number, |to| {
        for event in events {
            // Times in the order of the source may step back a little; the columns cannot.
            let at = at(event).max(before);
            varint(to, at - before);
            before = at;
        }
    });
}

/// Whether an event of that tracepoint has a place in the trace. Timers and work items are named by addresses, of which a
/// source knows only the names.
fn has_place(row: &Tracepoint) -> bool {
    row.perfetto != 0 && !row.is_mark() && !matches!(row.system, "timer" | "workqueue")
}

/// Appends the fields of an event; `false`: the message cannot tell one of them.
fn body(row: &Tracepoint, values: &Values, to: &mut Vec<u8>, names: &Names) -> bool {
    for number in 1..FIELDS_MAX as u32 {
        let mut fields = row.with_values(values);
        let Some((field, value, _)) = fields.find(|(field, ..)| field.perfetto == number) else {
            continue;
        };
        match field.ty {
            Type::Mask if !(0..32).contains(&value) => return false,
            Type::Mask => uint(to, number, 1 << value),
            Type::Suspend => message(to, number, |to| to.extend(MACHINE_SUSPEND.as_bytes())),
            Type::Vector => uint(to, number, 0),
            Type::IdleState => uint(to, number, u64::from(value as u32)),
            Type::Target if value == ABSENT => {}
            ty if ty.is_text() => {
                let text = names.text(NameId(value as u32));
                message(to, number, |to| to.extend(text.as_bytes()));
            }
            _ => uint(to, number, value as u64),
        }
    }
    true
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
            TraceEventKind::Begins => return Ok(false),
            TraceEventKind::Waking { task, target } if context.interrupt != Interrupt::Unknown => {
                let target = u64::from(target.map_or(0, |cpu| cpu.0));
                self.bundle(cpu).waking(event, task, target, names);
            }
            TraceEventKind::Switch { prev: None, left, next } => {
                self.bundle(cpu).switch(event.at, left, next, names);
            }
            _ => {
                let taken = self.rows.take(event, names, has_place);
                let events = &mut self.bundle(cpu).events;
                let begin = events.len();
                let mut whole = true;
                message(events, 2, |to| {
                    uint(to, 1, event.at);
                    uint(to, 2, u64::from(context.pid));
                    match &taken {
                        Taken::Mark(mark) => message(to, 3, |to| {
                            message(to, 2, |text| text.extend(mark.as_bytes()));
                        }),
                        Taken::Row(row, values) => {
                            message(to, row.perfetto, |to| whole = body(row, values, to, names));
                        }
                        Taken::Other => whole = false,
                    }
                });
                if !whole {
                    events.truncate(begin);
                    return Ok(false);
                }
            }
        }
        self.waiting += 1;
        if self.waiting >= BATCH {
            self.flush()?;
        }
        Ok(true)
    }

    fn finish(mut self: Box<Self>, header: &TraceHeader) -> io::Result<()> {
        self.flush()?;
        self.system(header)?;
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
