// SPDX-License-Identifier: GPL-2.0-or-later
//! Tracepoints in text: one line of [`TRACEPOINTS`] each, and a function that reads its arguments.
//!
//! | event | the kernel's own format | `trace-cmd report` without `-N` |
//! |---|---|---|
//! | `sched_switch` | `prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b ...` | `a:5 [120] S ==> b:6 [120]` |
//! | `sched_waking`, `sched_wakeup`, `sched_wakeup_new` | `comm=b pid=6 prio=120 target_cpu=002` | `b:6 [120] CPU:002` |
//! | all others | `key=value` | the same |
//! | `print`, `tracing_mark_write` | `B\|7\|name`, `cpu_frequency: state=1 cpu_id=0`, `cpu_frequency_devlib: frequency=1 cpu_id=0` | the same |
//!
//! The last two are marks that devlib writes at the beginning and end of a recording, for clocks that do
//! not change within it. Any other text that a program wrote is no event here.
//!
//! An event that a replay is built from must be readable; others that are not become [`TraceEventKind::Other`].

use super::line::{Fields, hex};
use crate::event::{CPUS_MAX, EventTask, Left, Names, TraceEventKind};
use schedtwin_types::CpuId;

/// Reads a tracepoint's arguments; returns the event, or the name of the field that cannot be read.
type Read = fn(&mut Arguments<'_>) -> Result<TraceEventKind, String>;

/// How a tracepoint is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decoder {
    /// An unreadable event is damage: a replay would be wrong.
    Strict(Read),
    /// An unreadable event is not used: releases and vendors print it in other ways.
    Lenient(Read),
    /// Not used.
    None,
}

use Decoder::{Lenient, Strict};

/// Every tracepoint that is read.
const TRACEPOINTS: [(&str, Decoder); 50] = [
    ("sched_switch", Strict(switch)),
    (
        "sched_waking",
        Strict(|a| Ok(TraceEventKind::Waking { task: a.woken()?, target: a.target() })),
    ),
    (
        "sched_wakeup",
        Strict(|a| Ok(TraceEventKind::Wakeup { task: a.woken()?, target: a.target() })),
    ),
    (
        "sched_wakeup_new",
        Strict(|a| Ok(TraceEventKind::WakeupNew { task: a.woken()?, target: a.target() })),
    ),
    ("sched_process_fork", Strict(fork)),
    ("sched_process_exit", Strict(|a| Ok(TraceEventKind::Exit { pid: a.named()?.1 }))),
    ("cpu_idle", Strict(idle)),
    (
        "cpu_frequency",
        Strict(|a| {
            Ok(TraceEventKind::Frequency { khz: a.f.number("state")?, cpu: a.f.cpu_id("cpu_id")? })
        }),
    ),
    ("sched_process_free", Lenient(|a| Ok(TraceEventKind::Free { pid: a.named()?.1 }))),
    ("sched_process_exec", Lenient(exec)),
    ("sched_migrate_task", Lenient(migrate)),
    ("task_newtask", Lenient(new_task)),
    ("task_rename", Lenient(rename)),
    ("sched_pi_setprio", Lenient(pi_priority)),
    ("uclamp_util_se", Lenient(clamp)),
    ("cpu_frequency_limits", Lenient(limits)),
    ("cpu_idle_miss", Lenient(idle_miss)),
    ("irq_handler_entry", Lenient(irq_entry)),
    ("irq_handler_exit", Lenient(|a| Ok(TraceEventKind::IrqExit { irq: a.f.number("irq")? }))),
    ("softirq_raise", Lenient(|a| Ok(TraceEventKind::SoftirqRaise { vector: a.f.number("vec")? }))),
    ("softirq_entry", Lenient(|a| Ok(TraceEventKind::SoftirqEntry { vector: a.f.number("vec")? }))),
    ("softirq_exit", Lenient(|a| Ok(TraceEventKind::SoftirqExit { vector: a.f.number("vec")? }))),
    ("ipi_raise", Lenient(ipi_raise)),
    (
        "ipi_send_cpu",
        Lenient(|a| {
            Ok(TraceEventKind::IpiSend { to: Some(a.f.cpu_id("cpu")?), reason: Default::default() })
        }),
    ),
    ("ipi_entry", Lenient(|a| Ok(TraceEventKind::VectorEntry { name: a.in_parentheses() }))),
    ("ipi_exit", Lenient(|a| Ok(TraceEventKind::VectorExit { name: a.in_parentheses() }))),
    ("local_timer_entry", Lenient(vector_entry)),
    ("local_timer_exit", Lenient(vector_exit)),
    ("reschedule_entry", Lenient(vector_entry)),
    ("reschedule_exit", Lenient(vector_exit)),
    ("call_function_entry", Lenient(vector_entry)),
    ("call_function_exit", Lenient(vector_exit)),
    ("call_function_single_entry", Lenient(vector_entry)),
    ("call_function_single_exit", Lenient(vector_exit)),
    ("hrtimer_start", Lenient(hrtimer_start)),
    (
        "hrtimer_cancel",
        Lenient(|a| Ok(TraceEventKind::HrtimerCancel { timer: a.f.hex("hrtimer")? })),
    ),
    ("hrtimer_expire_entry", Lenient(hrtimer_expire)),
    (
        "hrtimer_expire_exit",
        Lenient(|a| Ok(TraceEventKind::HrtimerDone { timer: a.f.hex("hrtimer")? })),
    ),
    ("timer_start", Lenient(timer_start)),
    ("timer_cancel", Lenient(|a| Ok(TraceEventKind::TimerCancel { timer: a.f.hex("timer")? }))),
    ("timer_expire_entry", Lenient(timer_expire)),
    ("timer_expire_exit", Lenient(|a| Ok(TraceEventKind::TimerDone { timer: a.f.hex("timer")? }))),
    ("workqueue_queue_work", Lenient(work_queue)),
    ("workqueue_execute_start", Lenient(work_start)),
    ("workqueue_execute_end", Lenient(|a| Ok(TraceEventKind::WorkEnd { work: a.work()?.0 }))),
    ("sched_blocked_reason", Lenient(blocked_reason)),
    ("suspend_resume", Lenient(suspend)),
    ("print", Lenient(mark)),
    ("tracing_mark_write", Lenient(mark)),
    ("0", Lenient(mark)),
];

/// How a tracepoint of that name is read.
pub(super) fn decoder_of(event: &str) -> Decoder {
    let known = TRACEPOINTS.iter().find(|(name, _)| *name == event);
    known.map_or(Decoder::None, |(_, decoder)| *decoder)
}

/// The arguments of a line, being read.
pub(super) struct Arguments<'a> {
    event: &'a str,
    all: &'a str,
    f: Fields<'a>,
    names: &'a mut Names,
}

impl<'a> Arguments<'a> {
    pub fn new(event: &'a str, arguments: &'a str, names: &'a mut Names) -> Arguments<'a> {
        Arguments { event, all: arguments, f: Fields::new(event, arguments), names }
    }

    fn task(&mut self, comm: &str, pid: &str, prio: &str) -> Result<EventTask, String> {
        let name = self.f.name(comm, pid)?;
        let pid = self.f.number(pid)?;
        let prio = self.f.number(prio)?;
        Ok(EventTask { comm: self.names.intern(name), pid, prio })
    }

    /// `comm=a pid=5`.
    fn named(&mut self) -> Result<(&'a str, u32), String> {
        let comm = self.f.name("comm", "pid")?;
        Ok((comm, self.f.number("pid")?))
    }

    fn woken(&mut self) -> Result<EventTask, String> {
        if self.all.starts_with("comm=") {
            return self.task("comm", "pid", "prio");
        }
        let unknown = || format!("event {} has an unknown form", self.event);
        let (comm, pid, prio, rest) = short_task(self.all).ok_or_else(unknown)?;
        self.f = Fields::new(self.event, rest);
        Ok(EventTask { comm: self.names.intern(comm), pid, prio })
    }

    /// `target_cpu=002`, or `CPU:002` of trace-cmd; not every release prints it.
    fn target(&mut self) -> Option<CpuId> {
        self.f.cpu_if_any("target_cpu").or_else(|| {
            let mut words = self.f.rest().split(' ');
            let cpu: u16 = words.find_map(|word| word.strip_prefix("CPU:"))?.parse().ok()?;
            (usize::from(cpu) < CPUS_MAX).then_some(CpuId(cpu))
        })
    }

    /// `(Rescheduling interrupts)`.
    fn in_parentheses(&mut self) -> crate::event::NameId {
        let text = self.all.rsplit_once('(').map_or("", |(_, text)| text.trim_end_matches(')'));
        self.names.intern(text)
    }

    /// `work struct=0x12 function=f ...` or `work struct 0x12: function f`.
    fn work(&mut self) -> Result<(u64, crate::event::NameId), String> {
        let bad = || format!("event {} has an unknown form", self.event);
        let rest = self.all.strip_prefix("work struct").ok_or_else(bad)?;
        let rest = rest.trim_start_matches([' ', '=']);
        let end = rest.find([':', ' ']).unwrap_or(rest.len());
        let work = hex(&rest[..end]).ok_or_else(bad)?;
        let function = rest[end..].trim_start_matches([':', ' ']).strip_prefix("function");
        let function = function.unwrap_or("").trim_start_matches([' ', '=']);
        let end = function.find(' ').unwrap_or(function.len());
        Ok((work, self.names.intern(&function[..end])))
    }
}

fn switch(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    if !a.all.starts_with("prev_comm=") {
        return short_switch(a).ok_or_else(|| "event sched_switch has an unknown form".to_owned());
    }
    let prev = a.task("prev_comm", "prev_pid", "prev_prio")?;
    let left = left(a.f.digits("prev_state")?).ok_or_else(|| a.f.bad("prev_state"))?;
    // `==> ` stands between the two in most releases.
    let rest = a.f.rest();
    a.f = Fields::new(a.event, rest.strip_prefix("==> ").unwrap_or(rest));
    let next = a.task("next_comm", "next_pid", "next_prio")?;
    Ok(TraceEventKind::Switch { prev: Some(prev), left, next })
}

/// `a:5 [120] S ==> b:6 [120]`.
fn short_switch(a: &mut Arguments<'_>) -> Option<TraceEventKind> {
    let text = a.all;
    // A name may hold an arrow as well, so every one is tried.
    let (prev, left, next) = text.match_indices(" ==> ").find_map(|(at, arrow)| {
        let (comm, pid, prio, state) = short_task(&text[..at])?;
        let next = short_task(&text[at + arrow.len()..])?;
        Some(((comm, pid, prio), left(state)?, next))
    })?;
    let prev = EventTask { comm: a.names.intern(prev.0), pid: prev.1, prio: prev.2 };
    let next = EventTask { comm: a.names.intern(next.0), pid: next.1, prio: next.2 };
    Some(TraceEventKind::Switch { prev: Some(prev), left, next })
}

/// `comm:pid [prio] rest`.
fn short_task(text: &str) -> Option<(&str, u32, i32, &str)> {
    text.match_indices(" [").find_map(|(at, _)| {
        let (comm, pid) = text[..at].rsplit_once(':')?;
        let (prio, rest) = text[at + 2..].split_once(']')?;
        Some((comm, pid.parse().ok()?, prio.parse().ok()?, rest.trim_start_matches(' ')))
    })
}

fn left(state: &str) -> Option<Left> {
    let bits = match state.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => state.parse::<u64>().ok(),
    };
    bits.map(Left::of_bits).or_else(|| Left::of_letters(state))
}

fn fork(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    // As the kernel prints it, and with the names of its fields (`trace-cmd report -R`).
    let (comm, pid) = match a.all.starts_with("parent_comm=") {
        true => ("parent_comm", "parent_pid"),
        false => ("comm", "pid"),
    };
    a.f.name(comm, pid)?;
    let parent = a.f.number(pid)?;
    let child = a.f.name("child_comm", "child_pid")?;
    Ok(TraceEventKind::Fork {
        parent,
        child_comm: a.names.intern(child),
        child: a.f.number("child_pid")?,
    })
}

fn exec(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    a.f.name("filename", "pid")?;
    Ok(TraceEventKind::Exec { pid: a.f.number("pid")?, old_pid: a.f.number("old_pid")? })
}

fn migrate(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let task = a.task("comm", "pid", "prio")?;
    Ok(TraceEventKind::Migrate { task, from: a.f.cpu_id("orig_cpu")?, to: a.f.cpu_id("dest_cpu")? })
}

fn new_task(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let pid = a.f.number("pid")?;
    let comm = a.f.name("comm", "clone_flags")?;
    let comm = a.names.intern(comm);
    Ok(TraceEventKind::NewTask { pid, comm, clone_flags: a.f.hex("clone_flags")? })
}

fn rename(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let pid = a.f.number("pid")?;
    a.f.name("oldcomm", "newcomm")?;
    let comm = a.f.name("newcomm", "oom_score_adj")?;
    Ok(TraceEventKind::Rename { pid, comm: a.names.intern(comm) })
}

fn pi_priority(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let (_, pid) = a.named()?;
    Ok(TraceEventKind::PiPriority { pid, from: a.f.number("oldprio")?, to: a.f.number("newprio")? })
}

fn clamp(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let pid = a.f.number("pid")?;
    let (min, max) = (a.f.number("uclamp_min")?, a.f.number("uclamp_max")?);
    Ok(TraceEventKind::Clamp { pid, min: Some(min), max: Some(max) })
}

fn idle(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    // PWR_EVENT_EXIT is -1, which most printers take as an unsigned number.
    let state: i64 = a.f.number("state")?;
    let bad = a.f.bad("state");
    let state = match state {
        -1 => None,
        state => Some(u32::try_from(state).map_err(|_| bad)?).filter(|state| *state != u32::MAX),
    };
    Ok(TraceEventKind::Idle { state, cpu: a.f.cpu_id("cpu_id")? })
}

fn limits(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let (min_khz, max_khz) = (a.f.number("min")?, a.f.number("max")?);
    Ok(TraceEventKind::FrequencyLimits { cpu: a.f.cpu_id("cpu_id")?, min_khz, max_khz })
}

fn idle_miss(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let cpu = a.f.cpu_id("cpu_id")?;
    let state = a.f.number("state")?;
    Ok(TraceEventKind::IdleMiss { cpu, state, below: a.f.text("type")? == "below" })
}

fn irq_entry(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let irq = a.f.number("irq")?;
    let handler = a.f.rest().strip_prefix("name=").unwrap_or("");
    Ok(TraceEventKind::IrqEntry { irq, handler: a.names.intern(handler) })
}

/// `target_mask=00000000,00000010 (Rescheduling interrupts)`.
fn ipi_raise(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let mask = a.f.text("target_mask")?;
    let mut to = None;
    for (at, word) in mask.split(',').rev().enumerate() {
        let bits = u32::from_str_radix(word, 16).map_err(|_| a.f.bad("target_mask"))?;
        match (bits.count_ones(), to) {
            (0, _) => {}
            (1, None) => to = Some(at * 32 + bits.trailing_zeros() as usize),
            // Several.
            _ => {
                to = None;
                break;
            }
        }
    }
    let to = to.filter(|cpu| *cpu < CPUS_MAX).map(|cpu| CpuId(cpu as u16));
    Ok(TraceEventKind::IpiSend { to, reason: a.in_parentheses() })
}

/// The interrupt vectors of x86: `local_timer_entry: vector=236`.
fn vector_entry(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let name = a.event.strip_suffix("_entry").unwrap_or(a.event);
    Ok(TraceEventKind::VectorEntry { name: a.names.intern(name) })
}

fn vector_exit(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let name = a.event.strip_suffix("_exit").unwrap_or(a.event);
    Ok(TraceEventKind::VectorExit { name: a.names.intern(name) })
}

fn hrtimer_start(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let timer = a.f.hex("hrtimer")?;
    let function = a.f.text("function")?;
    let function = a.names.intern(function);
    Ok(TraceEventKind::HrtimerStart { timer, function, expires: a.f.number("expires")? })
}

fn hrtimer_expire(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let timer = a.f.hex("hrtimer")?;
    let function = a.f.text("function")?;
    Ok(TraceEventKind::HrtimerExpire { timer, function: a.names.intern(function) })
}

/// `timer=0x1 function=f expires=4295 [timeout=250] ...`.
fn timer_start(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let timer = a.f.hex("timer")?;
    let function = a.f.text("function")?;
    let function = a.names.intern(function);
    let expires = a.f.number("expires")?;
    let ticks = a.f.text("[timeout")?.trim_end_matches(']');
    let ticks = ticks.parse().map_err(|_| a.f.bad("timeout"))?;
    Ok(TraceEventKind::TimerStart { timer, function, expires, ticks })
}

fn timer_expire(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let timer = a.f.hex("timer")?;
    let function = a.f.text("function")?;
    Ok(TraceEventKind::TimerExpire { timer, function: a.names.intern(function) })
}

fn work_queue(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let (work, function) = a.work()?;
    Ok(TraceEventKind::WorkQueue { work, function, cpu: a.f.cpu_if_any("req_cpu") })
}

fn work_start(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let (work, function) = a.work()?;
    Ok(TraceEventKind::WorkStart { work, function })
}

fn blocked_reason(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let pid = a.f.number("pid")?;
    Ok(TraceEventKind::BlockedReason { pid, io_wait: a.f.number::<u8>("iowait")? != 0 })
}

/// `machine_suspend[3] begin`; the other steps of a suspend are no time without a machine.
fn suspend(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    // With the names of its fields (the option `fields`): action=machine_suspend val=0x3 (3) start=0x1 (1).
    if a.all.starts_with("action=") {
        let action = a.f.text("action")?;
        let start = a.f.number::<u32>("start")?;
        return Ok(match action {
            "machine_suspend" => TraceEventKind::Suspend { begins: start != 0 },
            _ => TraceEventKind::Other,
        });
    }
    Ok(match a.all.strip_prefix("machine_suspend") {
        Some(rest) if rest.trim_end().ends_with(" begin") => {
            TraceEventKind::Suspend { begins: true }
        }
        Some(rest) if rest.trim_end().ends_with(" end") => {
            TraceEventKind::Suspend { begins: false }
        }
        _ => TraceEventKind::Other,
    })
}

/// Text that a program wrote into the trace; what only looks like a mark is not at fault.
fn mark(a: &mut Arguments<'_>) -> Result<TraceEventKind, String> {
    let text = a.all.strip_prefix("tracing_mark_write:").unwrap_or(a.all);
    let text = text.trim_start_matches(' ');
    let kind = frequency_mark(text).or_else(|| atrace(text, a.names)).or_else(|| {
        // An address or a symbol may come first.
        let (place, text) = text.split_once(": ")?;
        (!place.contains(' ')).then(|| atrace(text, a.names)).flatten()
    });
    Ok(kind.unwrap_or(TraceEventKind::Other))
}

/// A frequency.
fn frequency_mark(text: &str) -> Option<TraceEventKind> {
    let (name, fields) = text.split_once(':')?;
    let key = match name {
        "cpu_frequency" => "state",
        "cpu_frequency_devlib" => "frequency",
        _ => return None,
    };
    let f = &mut Fields::new(name, fields);
    Some(TraceEventKind::Frequency { khz: f.number(key).ok()?, cpu: f.cpu_id("cpu_id").ok()? })
}

/// `B|7|name`, `E|7`, `C|7|name|value` and so on, as atrace writes them.
fn atrace(text: &str, names: &mut Names) -> Option<TraceEventKind> {
    let (letter, rest) = text.split_at_checked(1)?;
    if letter == "E" {
        let tgid = rest.strip_prefix('|').and_then(|tgid| tgid.trim_end().parse().ok());
        return (rest.is_empty() || rest.starts_with('|'))
            .then_some(TraceEventKind::SliceEnd { tgid: tgid.unwrap_or(0) });
    }
    let (tgid, rest) = rest.strip_prefix('|')?.split_once('|')?;
    let tgid = tgid.parse().ok()?;
    // A name may hold the separator, a value may not.
    let with_number = |rest: &str, names: &mut Names| {
        let (name, number) = rest.rsplit_once('|')?;
        Some((names.intern_minor(name), number.trim_end().parse::<i64>().ok()?))
    };
    Some(match letter {
        "B" => TraceEventKind::SliceBegin { tgid, name: names.intern_minor(rest) },
        "C" => {
            let (name, value) = with_number(rest, names)?;
            TraceEventKind::Counter { tgid, name, value }
        }
        "S" => {
            let (name, cookie) = with_number(rest, names)?;
            TraceEventKind::AsyncBegin { tgid, name, cookie }
        }
        "F" => {
            let (name, cookie) = with_number(rest, names)?;
            TraceEventKind::AsyncEnd { tgid, name, cookie }
        }
        "I" | "N" => TraceEventKind::Instant { tgid, name: names.intern_minor(rest) },
        _ => return None,
    })
}
