// SPDX-License-Identifier: GPL-2.0-or-later
//! One bundle: the events of one CPU, in columns and one by one, as typed events in the order of time.
//!
//! In columns, `sched_switch` names only the next task: the previous one is the next of the switch before.
//! Where that is unknown, at a CPU's first switch and after a loss, `prev` is `None`. A waking before it is kept, its waker
//! being unknown: pid 0.

use super::messages::{
    Bundle, CompactSched, Fork, NameNumbers, NumberName, Numbers, Rename, SuspendResume, Switch,
};
use crate::event::{
    CPUS_MAX, EventContext, EventTask, Interrupt, NameId, Names, SourceReport, TraceEvent,
    TraceEventKind,
};
use crate::marker;
use crate::tracepoint::decode::left;
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use schedtwin_types::{CpuId, Ns};

/// Bits of `common_flags`.
const FLAG_IRQS_OFF: u32 = 0x01;
const FLAG_HARDIRQ: u32 = 0x08;
const FLAG_SOFTIRQ: u32 = 0x10;
const FLAG_NMI: u32 = 0x40;

/// Events of which the number is all that is known, by number; names of those that are read come first.
const NAMES: [(u32, &str); 71] = [
    (SWITCH, "sched_switch"),
    (WAKING, "sched_waking"),
    (WAKEUP, "sched_wakeup"),
    (WAKEUP_NEW, "sched_wakeup_new"),
    (PRINT, "print"),
    (11, "cpu_frequency"),
    (12, "cpu_frequency_limits"),
    (13, "cpu_idle"),
    (14, "clock_enable"),
    (15, "clock_disable"),
    (16, "clock_set_rate"),
    (18, "sched_blocked_reason"),
    (19, "sched_cpu_hotplug"),
    (21, "ipi_entry"),
    (22, "ipi_exit"),
    (23, "ipi_raise"),
    (24, "softirq_entry"),
    (25, "softirq_exit"),
    (26, "softirq_raise"),
    (36, "irq_handler_entry"),
    (37, "irq_handler_exit"),
    (56, "workqueue_activate_work"),
    (57, "workqueue_execute_end"),
    (58, "workqueue_execute_start"),
    (59, "workqueue_queue_work"),
    (67, "cgroup_attach_task"),
    (71, "cgroup_transfer_tasks"),
    (80, "tracing_mark_write"),
    (113, "suspend_resume"),
    (235, "task_newtask"),
    (236, "task_rename"),
    (237, "sched_process_exec"),
    (238, "sched_process_exit"),
    (239, "sched_process_fork"),
    (240, "sched_process_free"),
    (322, "clk_set_rate"),
    (GENERIC, "generic"),
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
    (353, "sched_pi_setprio"),
    (421, "sched_cpu_util_cfs"),
    (481, "suspend_resume_minimal"),
    (487, "sched_switch_with_ctrs"),
    (491, "sched_migrate_task"),
    (506, "thermal_exynos_acpm_bulk"),
    (508, "dcvsh_freq"),
    (540, "sched_wakeup_task_attr"),
    (541, "devfreq_frequency"),
    (542, "kprobe_event"),
    (551, "hrtimer_start"),
    (552, "hrtimer_cancel"),
    (553, "hrtimer_expire_entry"),
    (554, "hrtimer_expire_exit"),
    (555, "timer_start"),
    (556, "timer_cancel"),
    (557, "timer_expire_entry"),
    (558, "timer_expire_exit"),
    (559, "local_timer_entry"),
    (560, "local_timer_exit"),
    (604, "sched_group_tracker"),
    (616, "long_irq"),
    (617, "long_softirq"),
];

const PRINT: u32 = 3;
const SWITCH: u32 = 4;
const WAKEUP: u32 = 17;
const WAKING: u32 = 20;
const WAKEUP_NEW: u32 = 114;
const GENERIC: u32 = 327;

/// The state of a CPU from one of its bundles to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState {
    /// The task that runs; `None`: unknown.
    running: Option<EventTask>,
    /// It is known since when its events are complete.
    begun: bool,
}

/// Reads bundles; keeps what they share.
pub struct Reader {
    /// `prev_state` is that of Linux 4.14 or newer.
    pub modern: bool,
    names: Vec<(u32, NameId)>,
    functions: Vec<(u64, NameId)>,
}

/// Functions whose text is kept.
const FUNCTIONS_KEPT: usize = 1 << 12;

/// Numbers of events that are told apart.
const NUMBERS_KEPT: usize = 1 << 12;

impl Reader {
    /// A reader whose names are in `names`.
    pub fn new(names: &mut Names) -> Reader {
        let mut names: Vec<_> =
            NAMES.iter().map(|(number, name)| (*number, names.intern(name))).collect();
        names.sort_unstable();
        Reader { modern: true, names, functions: Vec::new() }
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
        let mut raw = Vec::with_capacity(bundle.event.len());
        for event in &bundle.event {
            match RawEvent::read(event) {
                Some(event) => raw.push(event),
                None => damages.push("an event that cannot be read".to_owned()),
            }
        }
        let empty = CompactSched::default();
        let compact = bundle.compact_sched.as_ref().unwrap_or(&empty);
        let switches = compact
            .switch_timestamp
            .len()
            .min(compact.switch_prev_state.len())
            .min(compact.switch_next_pid.len())
            .min(compact.switch_next_prio.len())
            .min(compact.switch_next_comm_index.len());
        let wakings = compact
            .waking_timestamp
            .len()
            .min(compact.waking_pid.len())
            .min(compact.waking_target_cpu.len())
            .min(compact.waking_prio.len())
            .min(compact.waking_comm_index.len());
        if switches < compact.switch_timestamp.len() || wakings < compact.waking_timestamp.len() {
            damages.push(
                "columns of events of different lengths; what they all have is used".to_owned(),
            );
        }
        let comms: Vec<NameId> =
            compact.intern_table.iter().map(|name| names.intern_bytes(name)).collect();
        let comm = |index: u32| comms.get(index as usize).copied();
        // Three lists, each in order, are merged; the state has to go through them in the order of time.
        let (mut next_raw, mut next_switch, mut next_waking) = (0, 0, 0);
        let mut switch_at = compact.switch_timestamp.first().copied().unwrap_or(0);
        let mut waking_at = compact.waking_timestamp.first().copied().unwrap_or(0);
        raw.sort_by_key(|event| event.at);
        // Its first bundle says since when; what other CPUs have before is no whole picture.
        let begins = bundle.previous_bundle_end_timestamp.or(bundle.last_read_event_timestamp);
        let begins = begins.filter(|at| *at > 0 && !std::mem::replace(&mut state.begun, true));
        state.begun = true;
        let mut lost = bundle.lost_events == Some(true) || !bundle.error.is_empty();
        if lost {
            state.running = None;
        }
        loop {
            let times = [
                (next_waking < wakings).then_some(waking_at),
                (next_raw < raw.len()).then(|| raw[next_raw].at),
                (next_switch < switches).then_some(switch_at),
            ];
            let Some((at, which)) =
                times.iter().enumerate().filter_map(|(which, at)| Some(((*at)?, which))).min()
            else {
                break;
            };
            if let Some(begins) = begins.filter(|_| events.is_empty()) {
                let (at, context) = (begins.min(at), EventContext::default());
                let kind = TraceEventKind::Begins;
                events.push(TraceEvent { at, cpu, name: NameId::NONE, context, kind });
            }
            if std::mem::take(&mut lost) {
                let kind = TraceEventKind::Lost { events: None };
                let context = EventContext::default();
                events.push(TraceEvent { at, cpu, name: NameId::NONE, context, kind });
            }
            match which {
                0 => {
                    let index = next_waking;
                    next_waking += 1;
                    if let Some(more) = compact.waking_timestamp.get(next_waking) {
                        waking_at = waking_at.saturating_add(*more);
                    }
                    let pid = u32::try_from(compact.waking_pid[index]);
                    let (Ok(pid), Some(comm)) = (pid, comm(compact.waking_comm_index[index]))
                    else {
                        damages.push("a sched_waking whose name or pid is out of range".to_owned());
                        continue;
                    };
                    let flags = compact.waking_common_flags.get(index).copied();
                    let context = EventContext {
                        pid: state.running.map_or(0, |task| task.pid),
                        comm: state.running.map_or(NameId::NONE, |task| task.comm),
                        interrupt: interrupt(flags),
                        irqs_off: flags.map(|flags| flags & FLAG_IRQS_OFF != 0),
                        ..EventContext::default()
                    };
                    let task = EventTask { comm, pid, prio: compact.waking_prio[index] };
                    let target = cpu_of(i64::from(compact.waking_target_cpu[index]));
                    let kind = TraceEventKind::Waking { task, target };
                    let name = self.name(WAKING, names);
                    report.count(name, false);
                    events.push(TraceEvent { at, cpu, name, context, kind });
                }
                1 => {
                    let event = &raw[next_raw];
                    next_raw += 1;
                    match self.event(event, names) {
                        Some((name, kind)) => {
                            let unused = matches!(kind, TraceEventKind::Other);
                            report.count(name, unused);
                            if let TraceEventKind::Switch { next, .. } = kind {
                                state.running = Some(next);
                            }
                            let context =
                                EventContext { pid: event.pid, ..EventContext::default() };
                            events.push(TraceEvent { at, cpu, name, context, kind });
                        }
                        None => {
                            let name = self.name(event.number, names);
                            damages.push(format!("a {} that cannot be read", names.text(name)));
                        }
                    }
                }
                _ => {
                    let index = next_switch;
                    next_switch += 1;
                    if let Some(more) = compact.switch_timestamp.get(next_switch) {
                        switch_at = switch_at.saturating_add(*more);
                    }
                    let pid = u32::try_from(compact.switch_next_pid[index]);
                    let (Ok(pid), Some(comm)) = (pid, comm(compact.switch_next_comm_index[index]))
                    else {
                        damages.push("a sched_switch whose name or pid is out of range".to_owned());
                        state.running = None;
                        continue;
                    };
                    let next = EventTask { comm, pid, prio: compact.switch_next_prio[index] };
                    let prev = state.running.replace(next);
                    let context = EventContext {
                        pid: prev.map_or(0, |task| task.pid),
                        comm: prev.map_or(NameId::NONE, |task| task.comm),
                        ..EventContext::default()
                    };
                    let left = left(compact.switch_prev_state[index] as u64, self.modern);
                    let kind = TraceEventKind::Switch { prev, left, next };
                    let name = self.name(SWITCH, names);
                    report.count(name, false);
                    events.push(TraceEvent { at, cpu, name, context, kind });
                }
            }
        }
        damages
    }

    /// The name of an event by its number.
    fn name(&mut self, number: u32, names: &mut Names) -> NameId {
        match self.names.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(index) => self.names[index].1,
            Err(_) if self.names.len() >= NUMBERS_KEPT => NameId::MANY,
            Err(index) => {
                let name = names.intern(&format!("ftrace_event_{number}"));
                self.names.insert(index, (number, name));
                name
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
    fn event(&mut self, event: &RawEvent, names: &mut Names) -> Option<(NameId, TraceEventKind)> {
        let name = self.name(event.number, names);
        let body = event.body.clone();
        let pid = |pid: Option<i64>| u32::try_from(pid.unwrap_or(0)).ok();
        let kind = match event.number {
            SWITCH => {
                let switch = Switch::decode(body).ok()?;
                let mut task = |comm: Option<Bytes>, pid: Option<i32>, prio: Option<i32>| {
                    Some(EventTask {
                        comm: names.intern_bytes(&comm.unwrap_or_default()),
                        pid: u32::try_from(pid.unwrap_or(0)).ok()?,
                        prio: prio.unwrap_or(0),
                    })
                };
                TraceEventKind::Switch {
                    prev: Some(task(switch.prev_comm, switch.prev_pid, switch.prev_prio)?),
                    left: left(switch.prev_state.unwrap_or(0) as u64, self.modern),
                    next: task(switch.next_comm, switch.next_pid, switch.next_prio)?,
                }
            }
            WAKEUP | WAKING | WAKEUP_NEW | 491 => {
                let waking = NameNumbers::decode(body).ok()?;
                let task = EventTask {
                    comm: names.intern_bytes(&waking.name.unwrap_or_default()),
                    pid: pid(waking.second)?,
                    prio: waking.third.unwrap_or(0) as i32,
                };
                let target = cpu_of(waking.fifth.unwrap_or(0));
                match event.number {
                    WAKEUP => TraceEventKind::Wakeup { task, target },
                    WAKING => TraceEventKind::Waking { task, target },
                    WAKEUP_NEW => TraceEventKind::WakeupNew { task, target },
                    _ => TraceEventKind::Migrate {
                        task,
                        from: cpu_of(waking.fourth.unwrap_or(0))?,
                        to: target?,
                    },
                }
            }
            237 | 238 | 240 | 353 => {
                let event_of = NameNumbers::decode(body).ok()?;
                match event.number {
                    237 => TraceEventKind::Exec {
                        pid: pid(event_of.second)?,
                        old_pid: pid(event_of.third)?,
                    },
                    238 => TraceEventKind::Exit { pid: pid(event_of.second)? },
                    240 => TraceEventKind::Free { pid: pid(event_of.second)? },
                    _ => TraceEventKind::PiPriority {
                        pid: pid(event_of.fourth)?,
                        from: event_of.third.unwrap_or(0) as i32,
                        to: event_of.second.unwrap_or(0) as i32,
                    },
                }
            }
            235 => {
                let task = NumberName::decode(body).ok()?;
                TraceEventKind::NewTask {
                    pid: pid(task.first)?,
                    comm: names.intern_bytes(&task.name.unwrap_or_default()),
                    clone_flags: task.third.unwrap_or(0) as u64,
                }
            }
            236 => {
                let rename = Rename::decode(body).ok()?;
                let comm = names.intern_bytes(&rename.newcomm.unwrap_or_default());
                TraceEventKind::Rename { pid: pid(rename.pid.map(i64::from))?, comm }
            }
            239 => {
                let fork = Fork::decode(body).ok()?;
                TraceEventKind::Fork {
                    parent: pid(fork.parent_pid.map(i64::from))?,
                    child_comm: names.intern_bytes(&fork.child_comm.unwrap_or_default()),
                    child: pid(fork.child_pid.map(i64::from))?,
                }
            }
            PRINT => {
                let print = NumberName::decode(body).ok()?;
                let text = print.name.unwrap_or_default();
                marker::parse(&text, names).unwrap_or(TraceEventKind::Other)
            }
            80 => {
                let mark = NumberName::decode(body).ok()?;
                let tgid = pid(mark.first)?;
                match mark.third.unwrap_or(0) {
                    0 => TraceEventKind::SliceEnd { tgid },
                    _ => TraceEventKind::SliceBegin {
                        tgid,
                        name: names.intern_bytes(&mark.name.unwrap_or_default()),
                    },
                }
            }
            36 => {
                let irq = NumberName::decode(body).ok()?;
                TraceEventKind::IrqEntry {
                    irq: irq.first.unwrap_or(0) as u32,
                    handler: names.intern_bytes(&irq.name.unwrap_or_default()),
                }
            }
            23 => {
                let ipi = NumberName::decode(body).ok()?;
                let cpus = ipi.first.unwrap_or(0) as u32;
                let one = cpus.is_power_of_two().then(|| CpuId(cpus.trailing_zeros() as u16));
                TraceEventKind::IpiSend {
                    to: one,
                    reason: names.intern_bytes(&ipi.name.unwrap_or_default()),
                }
            }
            21 | 22 => {
                let ipi = NameNumbers::decode(body).ok()?;
                let name = names.intern_bytes(&ipi.name.unwrap_or_default());
                match event.number {
                    21 => TraceEventKind::VectorEntry { name },
                    _ => TraceEventKind::VectorExit { name },
                }
            }
            // The short form is written for suspends of the machine alone.
            481 => {
                let start = Numbers::decode(body).ok()?.first.unwrap_or(0);
                TraceEventKind::Suspend { begins: start != 0 }
            }
            113 => {
                let step = SuspendResume::decode(body).ok()?;
                match step.action.as_deref() {
                    Some(b"machine_suspend") => {
                        TraceEventKind::Suspend { begins: step.start.unwrap_or(0) != 0 }
                    }
                    _ => TraceEventKind::Other,
                }
            }
            559 => TraceEventKind::VectorEntry { name: names.intern("local_timer") },
            560 => TraceEventKind::VectorExit { name: names.intern("local_timer") },
            GENERIC => {
                let generic = NameNumbers::decode(body).ok();
                let text = generic.and_then(|generic| generic.name).unwrap_or_default();
                let name = names.intern_bytes(&text);
                return Some((name, TraceEventKind::Other));
            }
            11..=13 | 18 | 24..=26 | 37 | 57..=59 | 540 | 551..=558 => {
                self.numbers(event.number, &Numbers::decode(body).ok()?, names)?
            }
            _ => TraceEventKind::Other,
        };
        Some((name, kind))
    }

    /// Events that have numbers only.
    fn numbers(
        &mut self,
        number: u32,
        fields: &Numbers,
        names: &mut Names,
    ) -> Option<TraceEventKind> {
        let [first, second, third, fourth] =
            [fields.first, fields.second, fields.third, fields.fourth]
                .map(|field| field.unwrap_or(0));
        Some(match number {
            11 => TraceEventKind::Frequency { cpu: cpu_of(second)?, khz: first as u32 },
            12 => TraceEventKind::FrequencyLimits {
                cpu: cpu_of(third)?,
                min_khz: first as u32,
                max_khz: second as u32,
            },
            13 => {
                let state = first as u32;
                TraceEventKind::Idle {
                    cpu: cpu_of(second)?,
                    state: (state != u32::MAX).then_some(state),
                }
            }
            18 => TraceEventKind::BlockedReason {
                pid: u32::try_from(first).ok()?,
                io_wait: third != 0,
            },
            24 => TraceEventKind::SoftirqEntry { vector: first as u8 },
            25 => TraceEventKind::SoftirqExit { vector: first as u8 },
            26 => TraceEventKind::SoftirqRaise { vector: first as u8 },
            37 => TraceEventKind::IrqExit { irq: first as u32 },
            57 => TraceEventKind::WorkEnd { work: first as u64 },
            58 => TraceEventKind::WorkStart {
                work: first as u64,
                function: self.function(second, names),
            },
            59 => TraceEventKind::WorkQueue {
                work: first as u64,
                function: self.function(second, names),
                cpu: cpu_of(fourth),
            },
            540 => {
                TraceEventKind::Affinity { pid: u32::try_from(first).ok()?, cpus: second as u64 }
            }
            551 => TraceEventKind::HrtimerStart {
                timer: first as u64,
                function: self.function(second, names),
                expires: third as u64,
            },
            552 => TraceEventKind::HrtimerCancel { timer: first as u64 },
            553 => TraceEventKind::HrtimerExpire {
                timer: first as u64,
                function: self.function(third, names),
            },
            554 => TraceEventKind::HrtimerDone { timer: first as u64 },
            555 => TraceEventKind::TimerStart {
                timer: first as u64,
                function: self.function(second, names),
                expires: third as u64,
                ticks: third.wrapping_sub(fourth),
            },
            556 => TraceEventKind::TimerCancel { timer: first as u64 },
            557 => TraceEventKind::TimerExpire {
                timer: first as u64,
                function: self.function(third, names),
            },
            _ => TraceEventKind::TimerDone { timer: first as u64 },
        })
    }
}

fn interrupt(flags: Option<u32>) -> Interrupt {
    match flags {
        None => Interrupt::Unknown,
        Some(flags) if flags & (FLAG_HARDIRQ | FLAG_NMI) != 0 => Interrupt::Hardirq,
        Some(flags) if flags & FLAG_SOFTIRQ != 0 => Interrupt::Softirq,
        Some(_) => Interrupt::Task,
    }
}

fn cpu_of(cpu: i64) -> Option<CpuId> {
    (0..CPUS_MAX as i64).contains(&cpu).then_some(CpuId(cpu as u16))
}

/// An `FtraceEvent`: its head, and the one message that it holds. The message's number says which event it is, also
/// where we have no type for it, which a derived message would drop.
struct RawEvent {
    at: Ns,
    pid: u32,
    number: u32,
    body: Bytes,
}

impl RawEvent {
    fn read(bytes: &Bytes) -> Option<RawEvent> {
        let mut event = RawEvent { at: 0, pid: 0, number: 0, body: Bytes::new() };
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let (number, wire_type) = decode_key(&mut rest).ok()?;
            match (number, wire_type) {
                (1, WireType::Varint) => event.at = decode_varint(&mut rest).ok()?,
                (2, WireType::Varint) => event.pid = decode_varint(&mut rest).ok()? as u32,
                (_, WireType::LengthDelimited) => {
                    let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                    if length > rest.len() {
                        return None;
                    }
                    event.number = number;
                    event.body = rest.split_to(length);
                }
                _ => skip_field(wire_type, number, &mut rest, DecodeContext::default()).ok()?,
            }
        }
        (event.number != 0).then_some(event)
    }
}
