// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads the text traces of the rig: the kernel as judge, line by line.
//!
//! **What a line is.** A recording (`*.trace.txt`, or packed, `*.trace.txt.xz`) is ftrace's text:
//!
//! ```text
//!       task-pid  [cpu] flags    seconds:  event:  what it says
//!         ui-0-78 [006] d..3. 5.090956: p_run: run pid=78 ct=5066799856 cp=5062662773
//!                         ^ h or H: inside an interrupt, s: inside a softirq, else the task itself
//! ```
//!
//! Two kinds of events are mixed. Lines whose event begins with `p_` (and `sugov`, `resolve`, …) are
//! printed by the rig from inside the scheduler: its averages, clocks and counts, times in ns. The
//! others are the kernel's own events, stamped in µs. [`Event`] has the ones that re-driving needs;
//! everything else is [`Event::Other`].
//!
//! The head of a line and its fields are taken apart by `schedtwin_trace::ftrace_read`, which also reads
//! traces from elsewhere; what the rig prints is understood here.
//!
//! **The CPU that prints is not always the CPU that is spoken of**: a wakeup prints, on the waker's
//! CPU, lines about the run queue of another one. [`Record::cpu`] is the printing one; the lines carry
//! the other in a field of their own.
//!
//! **Example.**
//!
//! ```
//! use schedtwin_conformance::ftrace::{Event, parse_line};
//!
//! let line = "  ui-0-78 [006] d..3. 5.090956: p_run: run pid=78 ct=5066799856 cp=5062662773";
//! let record = parse_line(line).unwrap().unwrap();
//! assert_eq!((record.cpu, record.time_us), (6, 5_090_956));
//! assert_eq!(record.event, Event::Run { pid: 78, ct: 5_066_799_856, cp: 5_062_662_773 });
//! ```

pub use queues::{QUEUES_MAX, Queue, Queues};
pub use schedtwin_trace::event::CPUS_MAX;

mod queues;

use schedtwin_trace::event::{Interrupt, NameId};
use schedtwin_trace::ftrace_read::{self, Fields};
use schedtwin_trace::packed;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// A line that does not say what its event should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// 1-based.
    pub line: u64,
    /// The fault.
    pub what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// One parsed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The CPU that printed the line.
    pub cpu: usize,
    /// The task that was running on it; 0 = idle.
    pub pid: i32,
    /// Printed inside a hardware interrupt.
    pub hardirq: bool,
    /// Printed inside a softirq (and not inside an interrupt on top of it).
    pub softirq: bool,
    /// The running task is to be switched away from (`TIF_NEED_RESCHED`).
    pub need_resched: bool,
    /// Trace clock, µs.
    pub time_us: u64,
    /// The event.
    pub event: Event,
}

/// The averages of an entity as printed (`struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// `last_update_time`, ns of the PELT clock.
    pub lut: u64,
    /// `period_contrib`, 0..=1023.
    pub pc: u32,
    /// `load_sum`.
    pub ls: u64,
    /// `runnable_sum`.
    pub rs: u64,
    /// `util_sum`.
    pub us: u32,
    /// `load_avg`.
    pub l: u64,
    /// `runnable_avg`.
    pub r: u64,
    /// `util_avg`.
    pub u: u64,
    /// `util_est` without its flag.
    pub ue: u32,
}

/// Which of a CPU's three small signals a [`Event::PeltOther`] line prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherSignal {
    /// `rq->avg_rt`.
    Rt,
    /// `rq->avg_dl`.
    Dl,
    /// `rq->avg_irq`.
    Irq,
}

/// Where an [`Event::Rq`] line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RqAt {
    /// Before a context switch, with the next task already chosen.
    Switch,
    /// At a waking (the task's last CPU, without its lock) or a wakeup (its new CPU).
    Wake,
}

/// The event of a line. Field names are the trace's; times in ns unless stated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // The names are those of the rig's README, field by field.
#[expect(
    clippy::large_enum_variant,
    reason = "one kind of line in a hundred is long, and records are copied in bounded windows"
)]
pub enum Event {
    PeltSe {
        pid: i32,
        cpu: usize,
        avg: Averages,
        uf: bool,
        w: u64,
        on: bool,
        dly: bool,
        v: u64,
        d: u64,
        vlag: i64,
        sl: u64,
    },
    PeltCfs {
        cpu: usize,
        avg: Averages,
        nr: u32,
        hq: u32,
        hr: u32,
        hd: u32,
        av: i64,
        al: u64,
        zv: u64,
        cur: i32,
    },
    /// A fair queue with a choice, before a question is put to it; its entities follow.
    Queue {
        cpu: usize,
        /// It is a CPU's own, not a task group's.
        root: bool,
        /// The question is a pick.
        pick: bool,
        av: i64,
        al: u64,
        zv: u64,
    },
    /// One of the entities of the last [`Event::Queue`] that the same CPU printed.
    Ent {
        /// Negative: a task group's.
        who: i32,
        v: u64,
        d: u64,
        vlag: i64,
        sl: u64,
        /// `vprot`, where the release has it.
        vp: Option<u64>,
        w: u64,
        dly: bool,
    },
    PeltOther {
        signal: OtherSignal,
        cpu: usize,
        lut: u64,
        pc: u32,
        us: u32,
        u: u64,
    },
    Rq {
        at: RqAt,
        cpu: usize,
        clk: u64,
        ct: u64,
        cp: u64,
        lost: u64,
        irq: u64,
        rbw: u64,
        umin: u64,
        umax: u64,
        nr: u32,
    },
    Run {
        pid: i32,
        ct: u64,
        cp: u64,
    },
    Nr {
        cpu: usize,
        nr: u32,
        ch: i32,
        cp: u64,
    },
    UeCfs {
        cpu: usize,
        ue: u32,
    },
    UeSe {
        pid: i32,
        u: u64,
        ue: u32,
        uf: bool,
    },
    Energy {
        pid: i32,
        dst: i32,
        e: u64,
        max: u64,
        busy: u64,
    },
    Sugov {
        cpu: usize,
        time: u64,
        fl: u32,
    },
    Resolve {
        cpu: usize,
        khz: u32,
    },
    Sleep {
        len: i64,
        tick: i64,
    },
    Reflect {
        st: i32,
        res: i64,
    },
    Overutilized {
        on: bool,
    },
    /// `select_task_rq_fair()` is asked, and what it reads besides averages: `idle`: the mask of `idle_cpu()`;
    /// `used`: `recent_used_cpu`; `nr`: `nr_running` of the CPU that asks; `sthis`, `sprev`:
    /// `nr_idle_scan`; `lthis`, `lprev`, `lcur`: `load_avg` of queues and of the running task.
    Select {
        pid: i32,
        this: usize,
        prev: usize,
        fl: u32,
        cpus: u64,
        idle: u64,
        over: bool,
        used: usize,
        nr: u32,
        sthis: i32,
        sprev: i32,
        lthis: u64,
        lprev: u64,
        lcur: u64,
        /// `has_idle_cores` of both caches; `None`: not printed.
        cores: Option<[bool; 2]>,
    },
    /// A balance pass of `cpu` begins over its domain number `dom` (0: the lowest); `kind` is the kernel's
    /// `cpu_idle_type`, `idle` as in `Select`.
    Balance {
        cpu: usize,
        dom: usize,
        kind: u32,
        failed: u32,
        idle: u64,
        queues: Queues,
    },
    /// The group that the pass would pull from, by its first CPU.
    SrcGroup {
        first: Option<usize>,
    },
    /// The queue of that group.
    SrcRq {
        cpu: Option<usize>,
    },
    /// Its answer, and the task's averages then; `wf`, `pf`: `wakee_flips` of waker and task.
    Selected {
        pid: i32,
        cpu: usize,
        wf: u32,
        pf: u32,
        l: u64,
        u: u64,
        ue: u32,
    },
    /// Interrupt time `d` is charged at clock `clk`; `irq`: its sum.
    IrqTime {
        cpu: usize,
        clk: u64,
        d: u64,
        irq: u64,
    },
    Cap {
        cpu: usize,
        cap: u64,
    },
    SchedSwitch {
        prev_pid: i32,
        prev_prio: i32,
        /// The first letter of the state: `R` still wants to run, `S`, `D`, `I` sleep, `X`, `Z` dead.
        prev_state: u8,
        next_pid: i32,
        next_prio: i32,
        /// The next task is the stop class's (`migration/N`), which shares priority 0 with RT 99.
        next_stop: bool,
    },
    SchedWaking {
        pid: i32,
        prio: i32,
        target_cpu: usize,
    },
    SchedWakeup {
        pid: i32,
        prio: i32,
        target_cpu: usize,
        /// `sched_wakeup_new`: the first one after a fork.
        new: bool,
    },
    SchedMigrateTask {
        pid: i32,
        prio: i32,
        orig_cpu: usize,
        dest_cpu: usize,
    },
    SchedProcessFork {
        pid: i32,
        child_pid: i32,
    },
    SchedProcessExit {
        pid: i32,
    },
    CpuIdle {
        cpu: usize,
        /// −1 = woken up.
        state: i32,
    },
    /// The last stay in idle was in too shallow a state (`below`), or in too deep a one.
    CpuIdleMiss {
        cpu: usize,
        state: u32,
        below: bool,
    },
    CpuFrequency {
        cpu: usize,
        khz: u32,
    },
    /// The idle loop stopped the tick, or (`success` 0) something forbade it.
    TickStop {
        success: bool,
    },
    /// A timer fires; `tick`: the scheduler's tick.
    HrtimerExpire {
        /// A DEADLINE entity's zero-lag time has come (`inactive_task_timer`).
        inactive: bool,
        tick: bool,
        now: u64,
    },
    /// A timer is set.
    HrtimerStart {
        tick: bool,
    },
    /// A timer of the wheel is queued; `bucket_expiry`: when it fires, jiffies.
    TimerStart {
        timer: u64,
        bucket_expiry: u64,
        cpu: usize,
        deferrable: bool,
        pinned: bool,
    },
    TimerCancel {
        timer: u64,
    },
    /// A timer of the wheel fires; `now`: jiffies, `base`: the jiffy of its bucket.
    TimerExpire {
        timer: u64,
        now: u64,
        base: u64,
    },
    /// A handler of a hardware interrupt begins.
    IrqEntry,
    /// It ends.
    IrqExit,
    SoftirqEntry {
        vec: u32,
    },
    SoftirqExit {
        vec: u32,
    },
    /// The fair class has been asked whether a task takes a CPU from the running one; `now`: that is to give way.
    Preempt {
        cpu: usize,
        pid: i32,
        now: bool,
    },
    /// The printing CPU tells a CPU, mostly another one, to reschedule.
    Reschedule {
        cpu: usize,
    },
    /// A kernel event that nobody here reads.
    Other,
}

fn is_tick(function: &str) -> bool {
    matches!(function, "tick_nohz_handler" | "tick_sched_timer")
}

fn period_contrib(f: &mut Fields<'_>) -> Result<u32, String> {
    let pc: u32 = f.number("pc")?;
    if pc < 1024 { Ok(pc) } else { Err(f.bad("pc")) }
}

fn flag(f: &mut Fields<'_>, key: &str) -> Result<bool, String> {
    Ok(f.number::<u32>(key)? != 0)
}

/// Tasks of a queue: all, runnable, delayed. A release that does not count the delayed does not print them.
fn counts(f: &mut Fields<'_>) -> Result<[u32; 3], String> {
    let (queued, runnable): (u32, u32) = (f.number("hq")?, f.number("hr")?);
    let delayed = match f.rest().starts_with("hd=") {
        true => f.number("hd")?,
        false => queued.checked_sub(runnable).ok_or_else(|| f.bad("hr"))?,
    };
    Ok([queued, runnable, delayed])
}

/// A CPU, or none, which is printed as −1.
fn cpu_or_none(f: &mut Fields<'_>, key: &str) -> Result<Option<usize>, String> {
    let cpu: i32 = f.number(key)?;
    match usize::try_from(cpu) {
        Ok(cpu) if cpu < CPUS_MAX => Ok(Some(cpu)),
        Err(_) if cpu == -1 => Ok(None),
        _ => Err(f.bad(key)),
    }
}

/// An address, as the kernel disguises it.
fn hex(f: &mut Fields<'_>, key: &str) -> Result<u64, String> {
    u64::from_str_radix(f.text(key)?, 16).map_err(|_| f.bad(key))
}

/// The last field of a `timer_start` line.
fn flags(text: &str) -> &str {
    text.rsplit_once("flags=").map_or("", |(_, flags)| flags)
}

fn averages(f: &mut Fields<'_>) -> Result<Averages, String> {
    Ok(Averages {
        lut: f.number("lut")?,
        pc: period_contrib(f)?,
        ls: f.number("ls")?,
        rs: f.number("rs")?,
        us: f.number("us")?,
        l: f.number("l")?,
        r: f.number("r")?,
        u: f.number("u")?,
        ue: f.number("ue")?,
    })
}

/// Parses one line. `Ok(None)`: a header or an empty line.
pub fn parse_line(text: &str) -> Result<Option<Record>, BadLine> {
    if text.starts_with('#') || text.trim().is_empty() {
        return Ok(None);
    }
    let bad = |what| BadLine { line: 0, what };
    let line = ftrace_read::parse_line(text)
        .map_err(|what| bad(format!("is not a trace line: {what}")))?;
    let context = line.context(NameId::NONE);
    Ok(Some(Record {
        cpu: line.cpu,
        pid: line.pid as i32,
        hardirq: context.interrupt == Interrupt::Hardirq,
        softirq: context.interrupt == Interrupt::Softirq,
        need_resched: context.need_resched,
        time_us: line.at / 1000,
        event: parse_event(line.event, line.arguments).map_err(bad)?,
    }))
}

fn parse_event(name: &str, text: &str) -> Result<Event, String> {
    let f = &mut Fields::new(name, text);
    let other = |signal, f: &mut Fields<'_>| -> Result<Event, String> {
        Ok(Event::PeltOther {
            signal,
            cpu: f.cpu("cpu")?,
            lut: f.number("lut")?,
            pc: period_contrib(f)?,
            us: f.number("us")?,
            u: f.number("u")?,
        })
    };
    // Struct fields are evaluated in the order written, which is the order of the line.
    Ok(match name {
        "p_se" => Event::PeltSe {
            pid: f.number("pid")?,
            cpu: f.cpu("cpu")?,
            avg: averages(f)?,
            uf: flag(f, "uf")?,
            w: f.number("w")?,
            on: flag(f, "on")?,
            dly: flag(f, "dly")?,
            v: f.number("v")?,
            d: f.number("d")?,
            vlag: f.number("vlag")?,
            sl: f.number("sl")?,
        },
        "p_cfs" => {
            let (cpu, avg, nr) = (f.cpu("cpu")?, averages(f)?, f.number("nr")?);
            let [hq, hr, hd] = counts(f)?;
            let (av, al, zv) = (f.number("av")?, f.number("al")?, f.number("zv")?);
            Event::PeltCfs { cpu, avg, nr, hq, hr, hd, av, al, zv, cur: f.number("cur")? }
        }
        "p_queue" => Event::Queue {
            cpu: f.cpu("cpu")?,
            root: f.number::<u32>("tg")? == 1,
            pick: f.text("at")? == "pick",
            av: f.number("av")?,
            al: f.number("al")?,
            zv: f.number("zv")?,
        },
        "p_ent" => Event::Ent {
            who: f.number("who")?,
            v: f.number("v")?,
            d: f.number("d")?,
            vlag: f.number("vlag")?,
            sl: f.number("sl")?,
            vp: if f.rest().starts_with("vp=") { Some(f.number("vp")?) } else { None },
            w: f.number("w")?,
            dly: flag(f, "dly")?,
        },
        "p_rt" => other(OtherSignal::Rt, f)?,
        "p_dl" => other(OtherSignal::Dl, f)?,
        "p_irq" => other(OtherSignal::Irq, f)?,
        "p_switch" | "p_wake" => Event::Rq {
            at: if name == "p_switch" { RqAt::Switch } else { RqAt::Wake },
            cpu: f.cpu("cpu")?,
            clk: f.number("clk")?,
            ct: f.number("ct")?,
            cp: f.number("cp")?,
            lost: f.number("lost")?,
            irq: f.number("irq")?,
            rbw: f.number("rbw")?,
            umin: f.number("umin")?,
            umax: f.number("umax")?,
            nr: f.number("nr")?,
        },
        "p_run" => Event::Run { pid: f.number("pid")?, ct: f.number("ct")?, cp: f.number("cp")? },
        "p_nr" => Event::Nr {
            cpu: f.cpu("cpu")?,
            nr: f.number("nr")?,
            ch: f.number("ch")?,
            cp: f.number("cp")?,
        },
        "p_ue_cfs" => Event::UeCfs { cpu: f.cpu("cpu")?, ue: f.number("ue")? },
        "p_ue_se" => Event::UeSe {
            pid: f.number("pid")?,
            u: f.number("u")?,
            ue: f.number("ue")?,
            uf: flag(f, "uf")?,
        },
        "p_energy" => Event::Energy {
            pid: f.number("pid")?,
            dst: f.number("dst")?,
            e: f.number("e")?,
            max: f.number("max")?,
            busy: f.number("busy")?,
        },
        "sugov" => Event::Sugov {
            cpu: f.cpu("cpu")?,
            time: f.number("time")?,
            fl: u32::from_str_radix(f.text("fl")?, 16).map_err(|_| f.bad("fl"))?,
        },
        "resolve" => Event::Resolve { cpu: f.cpu("cpu")?, khz: f.number("khz")? },
        "sleep_out" => Event::Sleep { len: f.number("len")?, tick: f.number("tick")? },
        "reflect" => Event::Reflect { st: f.number("st")?, res: f.number("res")? },
        "p_over" => Event::Overutilized { on: flag(f, "on")? },
        "select_in" => Event::Select {
            pid: f.number("pid")?,
            this: f.cpu("this")?,
            prev: f.cpu("prev")?,
            fl: hex(f, "fl")? as u32,
            cpus: hex(f, "cpus")?,
            idle: hex(f, "idle")?,
            over: flag(f, "over")?,
            used: f.cpu("used")?,
            nr: f.number("nr")?,
            sthis: f.number("sthis")?,
            sprev: f.number("sprev")?,
            lthis: f.number("lthis")?,
            lprev: f.number("lprev")?,
            lcur: f.number("lcur")?,
            // Recordings made before boards had threads do not print them.
            cores: if text.contains(" cthis=") {
                Some([flag(f, "cthis")?, flag(f, "cprev")?])
            } else {
                None
            },
        },
        "balance_in" => Event::Balance {
            cpu: f.cpu("cpu")?,
            dom: f.number("dom")?,
            kind: f.number("type")?,
            failed: f.number("failed")?,
            idle: hex(f, "idle")?,
            queues: {
                let (queues, groups) = (f.text("queues")?, f.text("groups")?);
                Queues::parse(queues, groups).ok_or_else(|| f.bad("queues"))?
            },
        },
        "group_out" => Event::SrcGroup { first: cpu_or_none(f, "first")? },
        "queue_out" => Event::SrcRq { cpu: cpu_or_none(f, "cpu")? },
        "select_out" => Event::Selected {
            pid: f.number("pid")?,
            cpu: f.cpu("cpu")?,
            wf: f.number("wf")?,
            pf: f.number("pf")?,
            l: f.number("l")?,
            u: f.number("u")?,
            ue: f.number("ue")?,
        },
        "p_irqt" => {
            let (cpu, clk) = (f.cpu("cpu")?, f.number("clk")?);
            Event::IrqTime { cpu, clk, d: f.number("d")?, irq: f.number("irq")? }
        }
        "p_cap" => Event::Cap { cpu: f.cpu("cpu")?, cap: f.number("cap")? },
        "sched_switch" => Event::SchedSwitch {
            prev_pid: f.number("prev_pid")?,
            prev_prio: f.number("prev_prio")?,
            prev_state: *f
                .text("prev_state")?
                .as_bytes()
                .first()
                .ok_or_else(|| f.bad("prev_state"))?,
            next_stop: f.text("next_comm")?.starts_with("migration/"),
            next_pid: f.number("next_pid")?,
            next_prio: f.number("next_prio")?,
        },
        "sched_waking" => Event::SchedWaking {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            target_cpu: f.cpu("target_cpu")?,
        },
        "sched_wakeup" | "sched_wakeup_new" => Event::SchedWakeup {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            target_cpu: f.cpu("target_cpu")?,
            new: name == "sched_wakeup_new",
        },
        "sched_migrate_task" => Event::SchedMigrateTask {
            pid: f.number("pid")?,
            prio: f.number("prio")?,
            orig_cpu: f.cpu("orig_cpu")?,
            dest_cpu: f.cpu("dest_cpu")?,
        },
        "sched_process_fork" => {
            Event::SchedProcessFork { pid: f.number("pid")?, child_pid: f.number("child_pid")? }
        }
        "sched_process_exit" => Event::SchedProcessExit { pid: f.number("pid")? },
        "cpu_idle" => {
            Event::CpuIdle { state: f.number::<u32>("state")? as i32, cpu: f.cpu("cpu_id")? }
        }
        "cpu_idle_miss" => Event::CpuIdleMiss {
            cpu: f.cpu("cpu_id")?,
            state: f.number("state")?,
            below: f.text("type")? == "below",
        },
        "cpu_frequency" => Event::CpuFrequency { khz: f.number("state")?, cpu: f.cpu("cpu_id")? },
        "tick_stop" => Event::TickStop { success: flag(f, "success")? },
        "hrtimer_expire_entry" => {
            let function = f.text("function")?;
            Event::HrtimerExpire {
                inactive: function == "inactive_task_timer",
                tick: is_tick(function),
                now: f.number("now")?,
            }
        }
        "hrtimer_start" => Event::HrtimerStart { tick: is_tick(f.text("function")?) },
        "timer_start" => Event::TimerStart {
            timer: hex(f, "timer")?,
            bucket_expiry: f.number("bucket_expiry")?,
            cpu: f.cpu("cpu")?,
            // Nothing may follow the last `=`.
            deferrable: flags(text).contains('D'),
            pinned: flags(text).contains('P'),
        },
        "timer_cancel" => Event::TimerCancel { timer: hex(f, "timer")? },
        "timer_expire_entry" => {
            let (timer, now) = (hex(f, "timer")?, f.number("now")?);
            Event::TimerExpire { timer, now, base: f.number("baseclk")? }
        }
        "irq_handler_entry" => Event::IrqEntry,
        "irq_handler_exit" => Event::IrqExit,
        "softirq_entry" => Event::SoftirqEntry { vec: f.number("vec")? },
        "softirq_exit" => Event::SoftirqExit { vec: f.number("vec")? },
        "preempt_out" => {
            Event::Preempt { cpu: f.cpu("cpu")?, pid: f.number("pid")?, now: flag(f, "now")? }
        }
        "p_resched" => Event::Reschedule { cpu: f.cpu("cpu")? },
        // Other interrupts between processors have a function to call.
        "ipi_send_cpu" if text.ends_with("callback=0x0") => {
            Event::Reschedule { cpu: f.cpu("cpu")? }
        }
        _ => Event::Other,
    })
}

/// How many records ahead of the present one can be looked at.
///
/// The purpose of an enqueue is printed up to some thirty lines after it began, with the lines of
/// seven other CPUs in between.
pub const WINDOW: usize = 512;

/// A recording, read as it is asked for, with a bounded view ahead.
pub struct Trace {
    lines: Box<dyn BufRead>,
    window: VecDeque<Record>,
    text: String,
    line: u64,
    at_end: bool,
    bad: Vec<BadLine>,
    bad_count: u64,
}

/// Bytes of a line; the rig's longest have about 350. What is longer is cut and then bad.
const LINE_MAX: u64 = 4096;
/// Bad lines that are kept; more are only counted.
const BAD_LINES_KEPT: usize = 20;

impl Trace {
    /// Opens a recording; `.xz` is unpacked.
    pub fn open(path: &Path) -> io::Result<Trace> {
        Ok(Trace::new(packed::open(path)?.reader))
    }

    /// Reads from any lines.
    pub fn new(lines: Box<dyn BufRead>) -> Trace {
        Trace {
            lines,
            window: VecDeque::with_capacity(WINDOW),
            text: String::new(),
            line: 0,
            at_end: false,
            bad: Vec::new(),
            bad_count: 0,
        }
    }

    /// The next record, `None` at the end.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        while !self.at_end && self.window.len() < WINDOW {
            self.text.clear();
            self.line += 1;
            if (&mut self.lines).take(LINE_MAX).read_line(&mut self.text)? == 0 {
                self.at_end = true;
                break;
            }
            match parse_line(self.text.trim_end()) {
                Ok(record) => self.window.extend(record),
                Err(mut bad) => {
                    self.bad_count += 1;
                    bad.line = self.line;
                    if self.bad.len() < BAD_LINES_KEPT {
                        self.bad.push(bad);
                    }
                }
            }
        }
        Ok(self.window.pop_front())
    }

    /// Returns the records that `cpu` will print after the record that [`Trace::next_record`] gave
    /// last, as far as the
    /// window reaches.
    pub fn ahead(&self, cpu: usize) -> impl Iterator<Item = &Record> {
        self.window.iter().filter(move |r| r.cpu == cpu)
    }

    /// Returns the records that any CPU will print, likewise.
    pub fn ahead_all(&self) -> impl Iterator<Item = &Record> {
        self.window.iter()
    }

    /// Lines that could not be read: the first few, and how many there were.
    pub fn bad_lines(&self) -> (&[BadLine], u64) {
        (&self.bad, self.bad_count)
    }
}

#[cfg(test)]
mod tests;
