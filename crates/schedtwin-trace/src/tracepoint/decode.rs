// SPDX-License-Identifier: GPL-2.0-or-later
//! Records become typed events, by the formats that the file carries.
//!
//! Algorithm:
//! 1. For each tracepoint of the file a *plan* is made once: which event it becomes, and the accessors of the
//!    fields that this needs. A field is found by its name, under any of the names that kernels gave it.
//! 2. A record names its tracepoint in `common_type`; its plan is found by that number and read.
//!
//! Nothing is allocated for an event. A known tracepoint without a field that its event needs, or with a
//! field of another type, is refused by name and counted as [`TraceEventKind::Other`].
//!
//! Addresses of functions become names where the file holds the kernel's symbols, else hexadecimal numbers. Reasons of
//! interrupts come from `printk_formats`, where the file has it.

use super::fields::{ByteOrder, Number, Text};
use super::format::Format;
use crate::event::{
    CPUS_MAX, EventContext, EventTask, Interrupt, Left, NameId, Names, TraceEventKind,
};
use crate::marker;
use schedtwin_types::CpuId;
use std::collections::BTreeMap;

/// Addresses of functions whose text is kept.
const FUNCTIONS_KEPT: usize = 1 << 14;

/// Tracepoints that a file may define.
pub const FORMATS_MAX: usize = 1 << 16;

/// `common_flags`: interrupts off, to be rescheduled, in a hardware interrupt, in a softirq, in an NMI.
const FLAG_IRQS_OFF: i64 = 0x01;
const FLAG_NEED_RESCHED: i64 = 0x04;
const FLAG_HARDIRQ: i64 = 0x08;
const FLAG_SOFTIRQ: i64 = 0x10;
const FLAG_NMI: i64 = 0x40;

/// The bit of `prev_state` for "preempted" since Linux 4.14: 0x40 is a parked thread from then on.
const PREEMPTED_SINCE_4_14: u64 = 0x100;
const PARKED: u64 = 0x40;
/// Before 4.14, `TASK_NOLOAD` of an idle kernel thread.
const NO_LOAD_BEFORE_4_14: u64 = 0x400;
const INTERRUPTIBLE: u64 = 1;

/// Makes events of a file's records.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    plans: Vec<Option<Plan>>,
    common: Option<Common>,
    /// Texts of addresses: of functions in hexadecimal, of strings as `printk_formats` has them.
    functions: BTreeMap<u64, NameId>,
    strings: BTreeMap<u64, NameId>,
    symbols: Symbols,
}

/// The kernel's symbols: the text of `/proc/kallsyms`, and by address the place of each name, found when the first is
/// asked for.
#[derive(Clone, Debug, Default)]
struct Symbols {
    text: Vec<u8>,
    names: Option<Vec<(u64, u32)>>,
}

impl Symbols {
    /// The places of names in lines of `ADDRESS TYPE NAME [MODULE]`, by address.
    fn places(text: &[u8]) -> Vec<(u64, u32)> {
        let mut names = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let mut spaces = memchr::memchr_iter(b' ', line);
            if let (Some(first), Some(second)) = (spaces.next(), spaces.next())
                && let Ok(address) = std::str::from_utf8(&line[..first])
                && let Ok(address @ 1..) = u64::from_str_radix(address, 16)
            {
                names.push((address, (at + second + 1) as u32));
            }
            at += line.len();
        }
        names.sort_unstable();
        names
    }

    /// The function that begins at that address.
    fn name(&mut self, address: u64) -> Option<&str> {
        let names = self.names.get_or_insert_with(|| Symbols::places(&self.text));
        let place = names.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        let rest = &self.text[names[place].1 as usize..];
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// A record that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The tracepoint's name.
    pub name: NameId,
    /// The tracepoint's number.
    pub id: u16,
    /// The context that ran.
    pub context: EventContext,
    /// The event itself.
    pub kind: TraceEventKind,
}

/// Why a record is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// The file has no format of this number.
    UnknownId(u16),
    /// It is too short for the common fields, or for those of this tracepoint.
    Short(NameId),
    /// A CPU or a pid in it is out of range.
    OutOfRange(NameId),
}

#[derive(Clone, Copy, Debug)]
struct Common {
    id: Number,
    flags: Option<Number>,
    preempt_count: Option<Number>,
    pid: Number,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    name: NameId,
    body: Body,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    comm: Text,
    pid: Number,
    prio: Number,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Waking,
    Wakeup,
    New,
}

#[derive(Clone, Copy, Debug)]
enum Softirq {
    Raise,
    Entry,
    Exit,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Other,
    Switch {
        prev: Task,
        prev_state: Number,
        modern: bool,
        next: Task,
    },
    Waking {
        which: Stage,
        task: Task,
        target: Option<Number>,
    },
    Migrate {
        task: Task,
        from: Number,
        to: Number,
    },
    Fork {
        parent: Number,
        child_comm: Text,
        child: Number,
    },
    Exit {
        pid: Number,
    },
    Free {
        pid: Number,
    },
    Exec {
        pid: Number,
        old_pid: Number,
    },
    NewTask {
        pid: Number,
        comm: Text,
        clone_flags: Number,
    },
    Rename {
        pid: Number,
        comm: Text,
    },
    PiPriority {
        pid: Number,
        from: Number,
        to: Number,
    },
    Affinity {
        pid: Number,
        cpus: Number,
    },
    Clamp {
        pid: Number,
        min: Number,
        max: Number,
    },
    Frequency {
        cpu: Number,
        khz: Number,
    },
    FrequencyLimits {
        cpu: Number,
        min: Number,
        max: Number,
    },
    Idle {
        cpu: Number,
        state: Number,
    },
    IdleMiss {
        cpu: Number,
        state: Number,
        below: Number,
    },
    Suspend {
        action: Number,
        start: Number,
    },
    IrqEntry {
        irq: Number,
        handler: Text,
    },
    IrqExit {
        irq: Number,
    },
    Softirq {
        which: Softirq,
        vector: Number,
    },
    IpiSend {
        to: Option<Number>,
        reason: Option<Number>,
    },
    /// The name of the vector is the event's own.
    Vector {
        name: NameId,
        enters: bool,
    },
    Ipi {
        reason: Number,
        enters: bool,
    },
    HrtimerStart {
        timer: Number,
        function: Number,
        expires: Number,
    },
    HrtimerCancel {
        timer: Number,
    },
    HrtimerExpire {
        timer: Number,
        function: Number,
    },
    HrtimerDone {
        timer: Number,
    },
    TimerStart {
        timer: Number,
        function: Number,
        expires: Number,
        now: Option<Number>,
    },
    TimerCancel {
        timer: Number,
    },
    TimerExpire {
        timer: Number,
        function: Option<Number>,
    },
    TimerDone {
        timer: Number,
    },
    WorkQueue {
        work: Number,
        function: Number,
        cpu: Option<Number>,
    },
    WorkStart {
        work: Number,
        function: Option<Number>,
    },
    WorkEnd {
        work: Number,
    },
    BlockedReason {
        pid: Number,
        io_wait: Number,
    },
    Marker {
        text: Text,
    },
}

impl Decoder {
    /// Adds a tracepoint of the file. Says why a known one cannot be used; its events are counted then, not read.
    pub fn add(
        &mut self,
        system: &str,
        format: &Format,
        order: ByteOrder,
        names: &mut Names,
    ) -> Result<(), String> {
        let fields = Fields { format, order };
        if self.common.is_none() {
            self.common = Some(Common {
                id: fields.number("common_type")?,
                pid: fields.number("common_pid")?,
                flags: fields.number("common_flags").ok(),
                preempt_count: fields.number("common_preempt_count").ok(),
            });
        }
        let (body, result) = match body(system, &fields, names) {
            Ok(body) => (body, Ok(())),
            Err(lacks) => (Body::Other, Err(format!("event {} {lacks}", format.name))),
        };
        let index = usize::from(format.id);
        if self.plans.len() <= index {
            self.plans.resize(index + 1, None);
        }
        self.plans[index] = Some(Plan { name: names.intern(&format.name), body });
        result
    }

    /// Adds the strings of `printk_formats`: lines of `0xADDRESS : "TEXT"`.
    pub fn add_strings(&mut self, printk_formats: &str, names: &mut Names) {
        for line in printk_formats.lines().take(FUNCTIONS_KEPT) {
            let Some((address, text)) = line.split_once(" : ") else { continue };
            let address = address.trim().trim_start_matches("0x");
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let text = text.trim().trim_start_matches('"').trim_end_matches('"');
            self.strings.insert(address, names.intern(text));
        }
    }

    /// Whether records of a tracepoint name a function by its address.
    pub fn names_functions(&self) -> bool {
        self.plans.iter().flatten().any(|plan| {
            matches!(
                plan.body,
                Body::HrtimerStart { .. }
                    | Body::HrtimerExpire { .. }
                    | Body::TimerStart { .. }
                    | Body::TimerExpire { function: Some(_), .. }
                    | Body::WorkQueue { .. }
                    | Body::WorkStart { function: Some(_), .. }
            )
        })
    }

    /// Takes the text of `/proc/kallsyms`.
    pub fn add_symbols(&mut self, kallsyms: Vec<u8>) {
        self.symbols = Symbols { text: kallsyms, names: None };
    }

    /// Whether any tracepoint is known.
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// The number of the tracepoint of this name.
    pub fn id_of(&self, name: &str, names: &Names) -> Option<u16> {
        let name = names.find(name)?;
        let index =
            self.plans.iter().position(|plan| plan.is_some_and(|plan| plan.name == name))?;
        u16::try_from(index).ok()
    }

    /// Reads a record.
    #[inline]
    pub fn decode(&mut self, record: &[u8], names: &mut Names) -> Result<Decoded, Undecoded> {
        let short = Undecoded::Short(NameId::NONE);
        let common = self.common.ok_or(short)?;
        let id = common.id.read(record).ok_or(short)? as u16;
        let plan = match self.plans.get(usize::from(id)) {
            Some(Some(plan)) => *plan,
            _ => return Err(Undecoded::UnknownId(id)),
        };
        let context = context(&common, record).ok_or(Undecoded::Short(plan.name))?;
        let kind = self.kind(&plan, record, names)?;
        Ok(Decoded { name: plan.name, id, context, kind })
    }

    fn kind(
        &mut self,
        plan: &Plan,
        record: &[u8],
        names: &mut Names,
    ) -> Result<TraceEventKind, Undecoded> {
        let mut read = Read { record, name: plan.name, names };
        Ok(match &plan.body {
            Body::Other => TraceEventKind::Other,
            Body::Switch { prev, prev_state, modern, next } => TraceEventKind::Switch {
                prev: Some(read.task(prev)?),
                left: left(read.number(prev_state)? as u64, *modern),
                next: read.task(next)?,
            },
            Body::Waking { which, task, target } => {
                let task = read.task(task)?;
                let target = target.as_ref().map(|target| read.cpu(target)).transpose()?;
                match which {
                    Stage::Waking => TraceEventKind::Waking { task, target },
                    Stage::Wakeup => TraceEventKind::Wakeup { task, target },
                    Stage::New => TraceEventKind::WakeupNew { task, target },
                }
            }
            Body::Migrate { task, from, to } => TraceEventKind::Migrate {
                task: read.task(task)?,
                from: read.cpu(from)?,
                to: read.cpu(to)?,
            },
            Body::Fork { parent, child_comm, child } => TraceEventKind::Fork {
                parent: read.pid(parent)?,
                child_comm: read.text(child_comm)?,
                child: read.pid(child)?,
            },
            Body::Exit { pid } => TraceEventKind::Exit { pid: read.pid(pid)? },
            Body::Free { pid } => TraceEventKind::Free { pid: read.pid(pid)? },
            Body::Exec { pid, old_pid } => {
                TraceEventKind::Exec { pid: read.pid(pid)?, old_pid: read.pid(old_pid)? }
            }
            Body::NewTask { pid, comm, clone_flags } => TraceEventKind::NewTask {
                pid: read.pid(pid)?,
                comm: read.text(comm)?,
                clone_flags: read.number(clone_flags)? as u64,
            },
            Body::Rename { pid, comm } => {
                TraceEventKind::Rename { pid: read.pid(pid)?, comm: read.text(comm)? }
            }
            Body::PiPriority { pid, from, to } => TraceEventKind::PiPriority {
                pid: read.pid(pid)?,
                from: read.number(from)? as i32,
                to: read.number(to)? as i32,
            },
            Body::Affinity { pid, cpus } => {
                TraceEventKind::Affinity { pid: read.pid(pid)?, cpus: read.number(cpus)? as u64 }
            }
            Body::Clamp { pid, min, max } => TraceEventKind::Clamp {
                pid: read.pid(pid)?,
                min: u16::try_from(read.number(min)?).ok(),
                max: u16::try_from(read.number(max)?).ok(),
            },
            Body::Frequency { cpu, khz } => {
                TraceEventKind::Frequency { cpu: read.cpu(cpu)?, khz: read.number(khz)? as u32 }
            }
            Body::FrequencyLimits { cpu, min, max } => TraceEventKind::FrequencyLimits {
                cpu: read.cpu(cpu)?,
                min_khz: read.number(min)? as u32,
                max_khz: read.number(max)? as u32,
            },
            Body::Idle { cpu, state } => {
                let state = read.number(state)? as u32;
                // PWR_EVENT_EXIT is -1 as an unsigned number.
                TraceEventKind::Idle {
                    cpu: read.cpu(cpu)?,
                    state: (state != u32::MAX).then_some(state),
                }
            }
            Body::IdleMiss { cpu, state, below } => TraceEventKind::IdleMiss {
                cpu: read.cpu(cpu)?,
                state: read.number(state)? as u32,
                below: read.number(below)? != 0,
            },
            Body::IrqEntry { irq, handler } => TraceEventKind::IrqEntry {
                irq: read.number(irq)? as u32,
                handler: read.text(handler)?,
            },
            Body::IrqExit { irq } => TraceEventKind::IrqExit { irq: read.number(irq)? as u32 },
            Body::Softirq { which, vector } => {
                let vector = read.number(vector)? as u8;
                match which {
                    Softirq::Raise => TraceEventKind::SoftirqRaise { vector },
                    Softirq::Entry => TraceEventKind::SoftirqEntry { vector },
                    Softirq::Exit => TraceEventKind::SoftirqExit { vector },
                }
            }
            Body::IpiSend { to, reason } => TraceEventKind::IpiSend {
                to: to.as_ref().map(|to| read.cpu(to)).transpose()?,
                reason: match reason {
                    Some(reason) => self.string(read.number(reason)? as u64),
                    None => NameId::NONE,
                },
            },
            Body::Vector { name, enters: true } => TraceEventKind::VectorEntry { name: *name },
            Body::Vector { name, enters: false } => TraceEventKind::VectorExit { name: *name },
            Body::Ipi { reason, enters } => {
                let name = self.string(read.number(reason)? as u64);
                match enters {
                    true => TraceEventKind::VectorEntry { name },
                    false => TraceEventKind::VectorExit { name },
                }
            }
            Body::HrtimerStart { timer, function, expires } => TraceEventKind::HrtimerStart {
                timer: read.number(timer)? as u64,
                function: self.function(read.number(function)? as u64, read.names),
                expires: read.number(expires)? as u64,
            },
            Body::HrtimerCancel { timer } => {
                TraceEventKind::HrtimerCancel { timer: read.number(timer)? as u64 }
            }
            Body::HrtimerExpire { timer, function } => TraceEventKind::HrtimerExpire {
                timer: read.number(timer)? as u64,
                function: self.function(read.number(function)? as u64, read.names),
            },
            Body::HrtimerDone { timer } => {
                TraceEventKind::HrtimerDone { timer: read.number(timer)? as u64 }
            }
            Body::TimerStart { timer, function, expires, now } => {
                let expires = read.number(expires)?;
                let now = now.as_ref().map(|now| read.number(now)).transpose()?.unwrap_or(expires);
                TraceEventKind::TimerStart {
                    timer: read.number(timer)? as u64,
                    function: self.function(read.number(function)? as u64, read.names),
                    expires: expires as u64,
                    ticks: expires.wrapping_sub(now),
                }
            }
            Body::TimerCancel { timer } => {
                TraceEventKind::TimerCancel { timer: read.number(timer)? as u64 }
            }
            Body::TimerExpire { timer, function } => TraceEventKind::TimerExpire {
                timer: read.number(timer)? as u64,
                function: self.maybe_function(function, &mut read)?,
            },
            Body::TimerDone { timer } => {
                TraceEventKind::TimerDone { timer: read.number(timer)? as u64 }
            }
            Body::WorkQueue { work, function, cpu } => TraceEventKind::WorkQueue {
                work: read.number(work)? as u64,
                function: self.function(read.number(function)? as u64, read.names),
                // WORK_CPU_UNBOUND lies above all CPUs.
                cpu: match cpu {
                    Some(cpu) => read.cpu(cpu).ok(),
                    None => None,
                },
            },
            Body::WorkStart { work, function } => TraceEventKind::WorkStart {
                work: read.number(work)? as u64,
                function: self.maybe_function(function, &mut read)?,
            },
            Body::WorkEnd { work } => TraceEventKind::WorkEnd { work: read.number(work)? as u64 },
            Body::BlockedReason { pid, io_wait } => TraceEventKind::BlockedReason {
                pid: read.pid(pid)?,
                io_wait: read.number(io_wait)? != 0,
            },
            Body::Suspend { action, start } => {
                let action = self.string(read.number(action)? as u64);
                match read.names.text(action) {
                    "machine_suspend" => {
                        TraceEventKind::Suspend { begins: read.number(start)? != 0 }
                    }
                    _ => TraceEventKind::Other,
                }
            }
            Body::Marker { text } => {
                let text = text.read(record).ok_or(Undecoded::Short(plan.name))?;
                marker::parse(text, read.names).unwrap_or(TraceEventKind::Other)
            }
        })
    }

    fn string(&self, address: u64) -> NameId {
        self.strings.get(&address).copied().unwrap_or(NameId::NONE)
    }

    fn maybe_function(
        &mut self,
        function: &Option<Number>,
        read: &mut Read,
    ) -> Result<NameId, Undecoded> {
        match function {
            Some(function) => Ok(self.function(read.number(function)? as u64, read.names)),
            None => Ok(NameId::NONE),
        }
    }

    fn function(&mut self, address: u64, names: &mut Names) -> NameId {
        if let Some(name) = self.functions.get(&address) {
            return *name;
        }
        if self.functions.len() >= FUNCTIONS_KEPT {
            return NameId::MANY;
        }
        let name = match self.symbols.name(address) {
            Some(name) => names.intern(name),
            None => names.intern(&format!("{address:#x}")),
        };
        self.functions.insert(address, name);
        name
    }
}

/// How a task leaves, from the raw `prev_state`; the meaning of some bits changed with Linux 4.14.
pub fn left(bits: u64, modern: bool) -> Left {
    Left::of_bits(match modern {
        true if bits & PARKED != 0 => bits & !PARKED | INTERRUPTIBLE,
        false if bits & NO_LOAD_BEFORE_4_14 != 0 => INTERRUPTIBLE,
        _ => bits,
    })
}

#[inline]
fn context(common: &Common, record: &[u8]) -> Option<EventContext> {
    let flags = match &common.flags {
        Some(flags) => Some(flags.read(record)?),
        None => None,
    };
    let preempt_count = match &common.preempt_count {
        // The upper half counts disabled migration.
        Some(count) => Some((count.read(record)? & 0xf) as u8),
        None => None,
    };
    Some(EventContext {
        pid: u32::try_from(common.pid.read(record)?).unwrap_or(0),
        interrupt: match flags {
            None => Interrupt::Unknown,
            Some(flags) if flags & (FLAG_HARDIRQ | FLAG_NMI) != 0 => Interrupt::Hardirq,
            Some(flags) if flags & FLAG_SOFTIRQ != 0 => Interrupt::Softirq,
            Some(_) => Interrupt::Task,
        },
        need_resched: flags.is_some_and(|flags| flags & FLAG_NEED_RESCHED != 0),
        irqs_off: flags.map(|flags| flags & FLAG_IRQS_OFF != 0),
        preempt_count,
        ..EventContext::default()
    })
}

/// Reads fields of one record.
struct Read<'a> {
    record: &'a [u8],
    name: NameId,
    names: &'a mut Names,
}

impl Read<'_> {
    #[inline]
    fn number(&self, field: &Number) -> Result<i64, Undecoded> {
        field.read(self.record).ok_or(Undecoded::Short(self.name))
    }

    fn pid(&self, field: &Number) -> Result<u32, Undecoded> {
        u32::try_from(self.number(field)?).map_err(|_| Undecoded::OutOfRange(self.name))
    }

    fn cpu(&self, field: &Number) -> Result<CpuId, Undecoded> {
        match self.number(field)? {
            cpu @ 0.. if cpu < CPUS_MAX as i64 => Ok(CpuId(cpu as u16)),
            _ => Err(Undecoded::OutOfRange(self.name)),
        }
    }

    #[inline]
    fn text(&mut self, field: &Text) -> Result<NameId, Undecoded> {
        let text = field.read(self.record).ok_or(Undecoded::Short(self.name))?;
        Ok(self.names.intern_bytes(text))
    }

    #[inline]
    fn task(&mut self, task: &Task) -> Result<EventTask, Undecoded> {
        Ok(EventTask {
            comm: self.text(&task.comm)?,
            pid: self.pid(&task.pid)?,
            prio: self.number(&task.prio)? as i32,
        })
    }
}

/// Finds fields by name.
struct Fields<'a> {
    format: &'a Format,
    order: ByteOrder,
}

impl Fields<'_> {
    fn number(&self, name: &str) -> Result<Number, String> {
        let field = self.format.field(name).ok_or_else(|| format!("has no field {name}"))?;
        Number::new(field, self.order)
            .ok_or_else(|| format!("has a field {name} that is no number"))
    }

    fn text(&self, name: &str) -> Result<Text, String> {
        let field = self.format.field(name).ok_or_else(|| format!("has no field {name}"))?;
        Text::new(field, self.order).ok_or_else(|| format!("has a field {name} that is no text"))
    }

    fn task(&self, comm: &str, pid: &str, prio: &str) -> Result<Task, String> {
        Ok(Task { comm: self.text(comm)?, pid: self.number(pid)?, prio: self.number(prio)? })
    }
}

/// The plan of a tracepoint, or which field it lacks.
fn body(system: &str, f: &Fields, names: &mut Names) -> Result<Body, String> {
    let name = f.format.name.as_str();
    let waking = |which| -> Result<Body, String> {
        Ok(Body::Waking {
            which,
            task: f.task("comm", "pid", "prio")?,
            target: f.number("target_cpu").ok(),
        })
    };
    Ok(match name {
        "sched_switch" => Body::Switch {
            prev: f.task("prev_comm", "prev_pid", "prev_prio")?,
            prev_state: f.number("prev_state")?,
            modern: f.format.preempted_bit.is_none_or(|bit| bit == PREEMPTED_SINCE_4_14),
            next: f.task("next_comm", "next_pid", "next_prio")?,
        },
        "sched_waking" => waking(Stage::Waking)?,
        "sched_wakeup" => waking(Stage::Wakeup)?,
        "sched_wakeup_new" => waking(Stage::New)?,
        "sched_migrate_task" => Body::Migrate {
            task: f.task("comm", "pid", "prio")?,
            from: f.number("orig_cpu")?,
            to: f.number("dest_cpu")?,
        },
        "sched_process_fork" => Body::Fork {
            parent: f.number("parent_pid")?,
            child_comm: f.text("child_comm")?,
            child: f.number("child_pid")?,
        },
        "sched_process_exit" => Body::Exit { pid: f.number("pid")? },
        "sched_process_free" => Body::Free { pid: f.number("pid")? },
        "sched_process_exec" => Body::Exec { pid: f.number("pid")?, old_pid: f.number("old_pid")? },
        "task_newtask" => Body::NewTask {
            pid: f.number("pid")?,
            comm: f.text("comm")?,
            clone_flags: f.number("clone_flags")?,
        },
        "task_rename" => Body::Rename { pid: f.number("pid")?, comm: f.text("newcomm")? },
        "sched_pi_setprio" => Body::PiPriority {
            pid: f.number("pid")?,
            from: f.number("oldprio")?,
            to: f.number("newprio")?,
        },
        "sched_wakeup_task_attr" => {
            Body::Affinity { pid: f.number("pid")?, cpus: f.number("cpu_affinity")? }
        }
        "uclamp_util_se" => Body::Clamp {
            pid: f.number("pid")?,
            min: f.number("uclamp_min")?,
            max: f.number("uclamp_max")?,
        },
        "cpu_frequency" => Body::Frequency { cpu: f.number("cpu_id")?, khz: f.number("state")? },
        "cpu_frequency_limits" => Body::FrequencyLimits {
            cpu: f.number("cpu_id")?,
            min: f.number("min_freq")?,
            max: f.number("max_freq")?,
        },
        "cpu_idle" => Body::Idle { cpu: f.number("cpu_id")?, state: f.number("state")? },
        "cpu_idle_miss" => Body::IdleMiss {
            cpu: f.number("cpu_id")?,
            state: f.number("state")?,
            below: f.number("below")?,
        },
        "irq_handler_entry" => Body::IrqEntry { irq: f.number("irq")?, handler: f.text("name")? },
        "irq_handler_exit" => Body::IrqExit { irq: f.number("irq")? },
        "softirq_raise" => Body::Softirq { which: Softirq::Raise, vector: f.number("vec")? },
        "softirq_entry" => Body::Softirq { which: Softirq::Entry, vector: f.number("vec")? },
        "softirq_exit" => Body::Softirq { which: Softirq::Exit, vector: f.number("vec")? },
        "ipi_raise" => Body::IpiSend { to: None, reason: f.number("reason").ok() },
        "ipi_send_cpu" => Body::IpiSend { to: Some(f.number("cpu")?), reason: None },
        "ipi_send_cpumask" => Body::IpiSend { to: None, reason: None },
        "ipi_entry" => Body::Ipi { reason: f.number("reason")?, enters: true },
        "ipi_exit" => Body::Ipi { reason: f.number("reason")?, enters: false },
        "hrtimer_start" => Body::HrtimerStart {
            timer: f.number("hrtimer")?,
            function: f.number("function")?,
            expires: f.number("expires")?,
        },
        "hrtimer_cancel" => Body::HrtimerCancel { timer: f.number("hrtimer")? },
        "hrtimer_expire_entry" => {
            Body::HrtimerExpire { timer: f.number("hrtimer")?, function: f.number("function")? }
        }
        "hrtimer_expire_exit" => Body::HrtimerDone { timer: f.number("hrtimer")? },
        "timer_start" => Body::TimerStart {
            timer: f.number("timer")?,
            function: f.number("function")?,
            expires: f.number("expires")?,
            now: f.number("now").ok(),
        },
        "timer_cancel" => Body::TimerCancel { timer: f.number("timer")? },
        "timer_expire_entry" => {
            Body::TimerExpire { timer: f.number("timer")?, function: f.number("function").ok() }
        }
        "timer_expire_exit" => Body::TimerDone { timer: f.number("timer")? },
        "workqueue_queue_work" => Body::WorkQueue {
            work: f.number("work")?,
            function: f.number("function")?,
            cpu: f.number("req_cpu").or_else(|_| f.number("cpu")).ok(),
        },
        "workqueue_execute_start" => {
            Body::WorkStart { work: f.number("work")?, function: f.number("function").ok() }
        }
        "workqueue_execute_end" => Body::WorkEnd { work: f.number("work")? },
        "sched_blocked_reason" => {
            Body::BlockedReason { pid: f.number("pid")?, io_wait: f.number("io_wait")? }
        }
        "suspend_resume" => {
            Body::Suspend { action: f.number("action")?, start: f.number("start")? }
        }
        "print" if system == "ftrace" => Body::Marker { text: f.text("buf")? },
        "tracing_mark_write" if f.format.field("buf").is_some() => {
            Body::Marker { text: f.text("buf")? }
        }
        _ if system == "irq_vectors" => match name.strip_suffix("_entry") {
            Some(vector) => Body::Vector { name: names.intern(vector), enters: true },
            None => match name.strip_suffix("_exit") {
                Some(vector) => Body::Vector { name: names.intern(vector), enters: false },
                None => Body::Other,
            },
        },
        _ => Body::Other,
    })
}
