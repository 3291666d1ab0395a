// SPDX-License-Identifier: GPL-2.0-or-later
//! One bundle: the events of one CPU, in columns and one by one, as typed events in the order of time.
//!
//! In columns, `sched_switch` names only the next task: the previous one is the next of the switch before.
//! Where that is unknown, at a CPU's first switch and after a loss, `prev` is `None`. A waking before it is kept, its waker
//! being unknown: pid 0.

use crate::event::{
    CPUS_MAX, EventContext, EventTask, NameId, Names, SourceReport, TraceEvent, TraceEventKind,
};
use crate::marker;
use crate::perfetto_messages::{CompactSched, FtraceEventBundle as Bundle};
use crate::tracepoint::decode::left;
use crate::tracepoint::flags;
use crate::tracepoint::row::{FIELDS_MAX, MACHINE_SUSPEND, Tracepoint, Type, Values, vector};
use crate::tracepoint::table::TRACEPOINTS;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use schedtwin_types::{CpuId, Ns};

/// Events of which the number is all that is known.
const NAMES: [(u32, &str); 29] = [
    (14, "clock_enable"),
    (15, "clock_disable"),
    (16, "clock_set_rate"),
    (19, "sched_cpu_hotplug"),
    (56, "workqueue_activate_work"),
    (67, "cgroup_attach_task"),
    (71, "cgroup_transfer_tasks"),
    (322, "clk_set_rate"),
    (329, "sys_enter"),
    (330, "sys_exit"),
    (331, "zero"),
    (332, "gpu_frequency"),
    (341, "thermal_temperature"),
    (342, "cdev_update"),
    (343, "cpuhp_exit"),
    (344, "cpuhp_multi_enter"),
    (345, "cpuhp_enter"),
    (346, "cpuhp_latency"),
    (352, "cpuhp_pause"),
    (421, "sched_cpu_util_cfs"),
    (487, "sched_switch_with_ctrs"),
    (506, "thermal_exynos_acpm_bulk"),
    (508, "dcvsh_freq"),
    (541, "devfreq_frequency"),
    (542, "kprobe_event"),
    (604, "sched_group_tracker"),
    (616, "long_irq"),
    (617, "long_softirq"),
    (GENERIC, "generic"),
];

/// Numbers of events that are read in their own way: of any tracepoint; a mark of atrace in fields.
const GENERIC: u32 = 327;
const MARK: u32 = 80;

/// The state of a CPU from one of its bundles to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState {
    /// The task that runs; `None`: unknown.
    running: Option<EventTask>,
    /// It is known since when its events are complete.
    begun: bool,
}

/// The events of a bundle that are not in columns, in the order of time.
fn raw_events<'a>(bundle: &'a Bundle, damages: &mut Vec<String>) -> Vec<RawEvent<'a>> {
    let mut raw = Vec::with_capacity(bundle.event.len());
    for event in &bundle.event {
        match RawEvent::read(event) {
            Some(event) => raw.push(event),
            None => damages.push("an event that cannot be read".to_owned()),
        }
    }
    raw.sort_by_key(|event| event.at);
    raw
}

/// The columns of a bundle: `sched_switch` and `sched_waking`, row by row.
struct Columns<'a> {
    compact: &'a CompactSched,
    comms: Vec<NameId>,
    switches: Rows<'a>,
    wakings: Rows<'a>,
}

/// Where the next row of some columns is.
struct Rows<'a> {
    /// Each from the one before.
    times: &'a [u64],
    /// Rows that all columns have.
    count: usize,
    next: usize,
    at: Ns,
}

impl<'a> Rows<'a> {
    fn new(times: &'a [u64], others: [usize; 4]) -> Rows<'a> {
        let count = others.into_iter().fold(times.len(), usize::min);
        Rows { times, count, next: 0, at: times.first().copied().unwrap_or(0) }
    }

    /// The time of the next row.
    fn at(&self) -> Option<Ns> {
        (self.next < self.count).then_some(self.at)
    }

    /// Passes over the next row; its index.
    fn take(&mut self) -> usize {
        self.next += 1;
        if let Some(more) = self.times.get(self.next) {
            self.at = self.at.saturating_add(*more);
        }
        self.next - 1
    }
}

/// The context in which a thread runs that is known, or not.
fn context_of(running: Option<EventTask>) -> EventContext {
    let (pid, comm) = running.map_or((0, NameId::NONE), |task| (task.pid, task.comm));
    EventContext { pid, comm, ..EventContext::default() }
}

impl<'a> Columns<'a> {
    fn new(compact: &'a CompactSched, names: &mut Names) -> Columns<'a> {
        let comms = compact.intern_table.iter().map(|name| names.intern_bytes(name)).collect();
        let switches = [
            compact.switch_prev_state.len(),
            compact.switch_next_pid.len(),
            compact.switch_next_prio.len(),
            compact.switch_next_comm_index.len(),
        ];
        let wakings = [
            compact.waking_pid.len(),
            compact.waking_target_cpu.len(),
            compact.waking_prio.len(),
            compact.waking_comm_index.len(),
        ];
        let switches = Rows::new(&compact.switch_timestamp, switches);
        let wakings = Rows::new(&compact.waking_timestamp, wakings);
        Columns { compact, comms, switches, wakings }
    }

    fn are_of_different_lengths(&self) -> bool {
        [&self.switches, &self.wakings].iter().any(|rows| rows.count < rows.times.len())
    }

    fn task(&self, pid: i32, comm: u32, prio: i32) -> Option<EventTask> {
        let comm = *self.comms.get(comm as usize)?;
        Some(EventTask { comm, pid: u32::try_from(pid).ok()?, prio })
    }

    /// The next `sched_waking`.
    fn waking(&mut self, state: &CpuState) -> Result<(EventContext, TraceEventKind), String> {
        let (row, compact) = (self.wakings.take(), self.compact);
        let task = self
            .task(compact.waking_pid[row], compact.waking_comm_index[row], compact.waking_prio[row])
            .ok_or("a sched_waking whose name or pid is out of range")?;
        let told = flags::context(compact.waking_common_flags.get(row).map(|flags| *flags as u8));
        let running = context_of(state.running);
        let context =
            EventContext { interrupt: told.interrupt, irqs_off: told.irqs_off, ..running };
        let target = cpu_of(i64::from(compact.waking_target_cpu[row]));
        Ok((context, TraceEventKind::Waking { task, target }))
    }

    /// The next `sched_switch`.
    fn switch(
        &mut self,
        state: &mut CpuState,
        modern: bool,
    ) -> Result<(EventContext, TraceEventKind), String> {
        let (row, compact) = (self.switches.take(), self.compact);
        let (pid, comm) = (compact.switch_next_pid[row], compact.switch_next_comm_index[row]);
        let next = self.task(pid, comm, compact.switch_next_prio[row]);
        let prev = std::mem::replace(&mut state.running, next);
        let next = next.ok_or("a sched_switch whose name or pid is out of range")?;
        let left = left(compact.switch_prev_state[row] as u64, modern);
        Ok((context_of(prev), TraceEventKind::Switch { prev, left, next }))
    }
}

/// Reads bundles; keeps what they share.
pub struct Reader {
    /// `prev_state` is that of Linux 4.14 or newer.
    pub modern: bool,
    /// Events by number: their names, and their rows in the table of tracepoints.
    events: Vec<(u32, NameId, Option<&'static Tracepoint>)>,
    switch: NameId,
    waking: NameId,
    functions: Vec<(u64, NameId)>,
}

/// Functions whose text is kept.
const FUNCTIONS_KEPT: usize = 1 << 12;

/// Numbers of events that are told apart.
const NUMBERS_KEPT: usize = 1 << 12;

impl Reader {
    /// A reader whose names are in `names`.
    pub fn new(names: &mut Names) -> Reader {
        let (switch, waking) = (names.intern("sched_switch"), names.intern("sched_waking"));
        let rows = TRACEPOINTS.iter().filter(|row| row.perfetto != 0);
        let rows = rows.map(|row| (row.perfetto, row.name, Some(row)));
        let others = NAMES.iter().map(|(number, name)| (*number, *name, None));
        let mut events: Vec<_> = rows
            .chain(others)
            .map(|(number, name, row)| (number, names.intern(name), row))
            .collect();
        events.sort_unstable_by_key(|(number, ..)| *number);
        Reader { modern: true, events, switch, waking, functions: Vec::new() }
    }

    /// Reads a bundle of `cpu` into `events`, in the order of time; each event counted. Damages are in words.
    pub fn read(
        &mut self,
        bundle: &Bundle,
        cpu: CpuId,
        state: &mut CpuState,
        names: &mut Names,
        report: &mut SourceReport,
        events: &mut Vec<TraceEvent>,
    ) -> Vec<String> {
        let mut damages = Vec::new();
        events.clear();
        let raw = raw_events(bundle, &mut damages);
        let empty = CompactSched::default();
        let mut columns = Columns::new(bundle.compact_sched.as_ref().unwrap_or(&empty), names);
        if columns.are_of_different_lengths() {
            damages.push(
                "columns of events of different lengths; what they all have is used".to_owned(),
            );
        }
        // Its first bundle says since when; what other CPUs have before is no whole picture.
        let begins = bundle.previous_bundle_end_timestamp.or(bundle.last_read_event_timestamp);
        let begins = begins.filter(|at| *at > 0 && !std::mem::replace(&mut state.begun, true));
        state.begun = true;
        let mut lost = bundle.lost_events == Some(true) || !bundle.error.is_empty();
        if lost {
            state.running = None;
        }
        // Three lists, each in order, are merged; the state has to go through them in the order of time.
        let mut next_raw = raw.iter().peekable();
        loop {
            let times = [
                columns.wakings.at(),
                next_raw.peek().map(|event| event.at),
                columns.switches.at(),
            ];
            let times = times.iter().enumerate();
            let Some((at, which)) = times.filter_map(|(which, at)| Some(((*at)?, which))).min()
            else {
                break;
            };
            let note = |at, kind| {
                let context = EventContext::default();
                TraceEvent { at, cpu, name: NameId::NONE, context, kind }
            };
            if let Some(begins) = begins.filter(|_| events.is_empty()) {
                events.push(note(begins.min(at), TraceEventKind::Begins));
            }
            if std::mem::take(&mut lost) {
                events.push(note(at, TraceEventKind::Lost { events: None }));
            }
            let read = match (which, next_raw.peek()) {
                (0, _) => columns.waking(state).map(|(context, kind)| (self.waking, context, kind)),
                (1, Some(event)) => {
                    let read = self.raw(event, state, names);
                    next_raw.next();
                    read
                }
                _ => columns
                    .switch(state, self.modern)
                    .map(|(context, kind)| (self.switch, context, kind)),
            };
            match read {
                Ok((name, context, kind)) => {
                    report.count(name, matches!(kind, TraceEventKind::Other));
                    events.push(TraceEvent { at, cpu, name, context, kind });
                }
                Err(damage) => damages.push(damage),
            }
        }
        damages
    }

    /// Reads an event that is not in columns.
    fn raw(
        &mut self,
        event: &RawEvent,
        state: &mut CpuState,
        names: &mut Names,
    ) -> Result<(NameId, EventContext, TraceEventKind), String> {
        let Some((name, kind)) = self.event(event, names) else {
            let (name, _) = self.known(event.number, names);
            return Err(format!("a {} that cannot be read", names.text(name)));
        };
        if let TraceEventKind::Switch { next, .. } = kind {
            state.running = Some(next);
        }
        Ok((name, EventContext { pid: event.pid, ..EventContext::default() }, kind))
    }

    /// The name of an event by its number, and its row if it is read.
    fn known(&mut self, number: u32, names: &mut Names) -> (NameId, Option<&'static Tracepoint>) {
        match self.events.binary_search_by_key(&number, |(number, ..)| *number) {
            Ok(index) => (self.events[index].1, self.events[index].2),
            Err(_) if self.events.len() >= NUMBERS_KEPT => (NameId::MANY, None),
            Err(index) => {
                let name = names.intern(&format!("ftrace_event_{number}"));
                self.events.insert(index, (number, name, None));
                (name, None)
            }
        }
    }

    fn function(&mut self, address: i64, names: &mut Names) -> NameId {
        let address = address as u64;
        match self.functions.binary_search_by_key(&address, |(address, _)| *address) {
            Ok(index) => self.functions[index].1,
            Err(_) if self.functions.len() >= FUNCTIONS_KEPT => NameId::MANY,
            Err(index) => {
                let name = names.intern(&format!("{address:#x}"));
                self.functions.insert(index, (address, name));
                name
            }
        }
    }

    /// Decodes an event; returns `None` if it is damaged.
    pub fn event(
        &mut self,
        event: &RawEvent,
        names: &mut Names,
    ) -> Option<(NameId, TraceEventKind)> {
        let (name, row) = self.known(event.number, names);
        let kind = match (event.number, row) {
            (MARK, _) => {
                let fields = Fields::read(event.body)?;
                let tgid = u32::try_from(fields.number(1)?).ok()?;
                match (fields.number(3)?, fields.text(2)?) {
                    (0, _) => TraceEventKind::SliceEnd { tgid },
                    (_, name) => {
                        TraceEventKind::SliceBegin { tgid, name: names.intern_bytes(name) }
                    }
                }
            }
            (GENERIC, _) => {
                let text = Fields::read(event.body).and_then(|fields| fields.text(1));
                return Some((names.intern_bytes(text.unwrap_or(b"")), TraceEventKind::Other));
            }
            (_, Some(row)) if row.is_mark() => {
                let text = Fields::read(event.body)?.text(2)?;
                marker::parse(text, names).unwrap_or(TraceEventKind::Other)
            }
            (_, Some(row)) => {
                let fields = Fields::read(event.body)?;
                match self.values(row, &fields, names)? {
                    Some(values) => (row.make)(&values),
                    None => TraceEventKind::Other,
                }
            }
            (_, None) => TraceEventKind::Other,
        };
        Some((name, kind))
    }

    /// The values of an event; `None`: it is damaged, the inner one: it is no event.
    fn values(
        &mut self,
        row: &Tracepoint,
        fields: &Fields,
        names: &mut Names,
    ) -> Option<Option<Values>> {
        let mut values = Values::default();
        let mut kept = 0;
        for field in row.fields {
            let number = field.perfetto;
            values.0[kept] = match field.ty {
                Type::Unkept | Type::Behind => continue,
                Type::Suspend => match fields.text(number)? == MACHINE_SUSPEND.as_bytes() {
                    true => continue,
                    false => return Some(None),
                },
                Type::Vector => names.intern(vector(row.name)).0.into(),
                ty if ty.is_text() => names.intern_bytes(fields.text(number)?).0.into(),
                ty if ty.is_function() => self.function(fields.number(number)?, names).0.into(),
                Type::State => left(fields.number(number)? as u64, self.modern).bits() as i64,
                Type::Ticks => values.0[kept - 1].wrapping_sub(fields.number(number)?),
                ty => ty.checked(fields.number(number)?)?,
            };
            kept += 1;
        }
        Some(Some(values))
    }
}

fn cpu_of(cpu: i64) -> Option<CpuId> {
    (0..CPUS_MAX as i64).contains(&cpu).then_some(CpuId(cpu as u16))
}

/// An `FtraceEvent`: its head, and the one message that it holds. The message's number says which event it is, also
/// where we have no type for it, which a derived message would drop.
pub struct RawEvent<'a> {
    /// When.
    pub at: Ns,
    pid: u32,
    number: u32,
    body: &'a [u8],
}

impl<'a> RawEvent<'a> {
    /// Reads it; returns `None` if it is damaged.
    pub fn read(mut rest: &'a [u8]) -> Option<RawEvent<'a>> {
        let mut event = RawEvent { at: 0, pid: 0, number: 0, body: &[] };
        while !rest.is_empty() {
            match field(&mut rest)? {
                (1, Wire::Number(at)) => event.at = at as u64,
                (2, Wire::Number(pid)) => event.pid = pid as u32,
                (number, Wire::Text(body)) => (event.number, event.body) = (number, body),
                _ => {}
            }
        }
        (event.number != 0).then_some(event)
    }
}

/// A field of a message as it is on the wire.
#[derive(Clone, Copy, Default)]
enum Wire<'a> {
    #[default]
    Absent,
    Number(i64),
    Text(&'a [u8]),
}

/// Takes the next field off a message; its number.
#[inline]
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u32, Wire<'a>)> {
    let (number, wire_type) = decode_key(rest).ok()?;
    let wire = match wire_type {
        WireType::Varint => Wire::Number(decode_varint(rest).ok()? as i64),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
            let (text, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Wire::Text(text)
        }
        _ => {
            skip_field(wire_type, number, rest, DecodeContext::default()).ok()?;
            Wire::Absent
        }
    };
    Some((number, wire))
}

/// The fields of an event's message by their numbers; the last one of a number counts.
#[derive(Default)]
struct Fields<'a>([Wire<'a>; FIELDS_MAX]);

impl<'a> Fields<'a> {
    #[inline]
    fn read(mut rest: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Fields::default();
        while !rest.is_empty() {
            let (number, wire) = field(&mut rest)?;
            if let Some(kept) = fields.0.get_mut(number as usize) {
                *kept = wire;
            }
        }
        Some(fields)
    }

    /// A number, 0 if it is absent; `None`: it is none.
    #[inline]
    fn number(&self, number: u32) -> Option<i64> {
        match self.0[number as usize] {
            Wire::Absent => Some(0),
            Wire::Number(value) => Some(value),
            Wire::Text(_) => None,
        }
    }

    /// A text, empty if it is absent; `None`: it is none.
    #[inline]
    fn text(&self, number: u32) -> Option<&'a [u8]> {
        match self.0[number as usize] {
            Wire::Absent => Some(&[]),
            Wire::Number(_) => None,
            Wire::Text(text) => Some(text),
        }
    }
}
