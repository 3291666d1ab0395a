// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's events in ftrace text, in both spellings.
//!
//! | event | the kernel's own format | `trace-cmd report` without `-N` |
//! |---|---|---|
//! | `sched_switch` | `prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=b ...` | `a:5 [120] S ==> b:6 [120]` |
//! | `sched_waking`, `sched_wakeup`, `sched_wakeup_new` | `comm=b pid=6 prio=120 target_cpu=002` | `b:6 [120] CPU:002` |
//! | `sched_process_fork` | `comm=a pid=5 child_comm=b child_pid=6` | the same |
//! | `sched_process_exit` | `comm=a pid=5 prio=120` | the same |
//! | `cpu_idle`, `cpu_frequency` | `state=1 cpu_id=0` | the same |
//! | `print`, `tracing_mark_write` | `cpu_frequency: state=1 cpu_id=0`, `cpu_frequency_devlib: frequency=1 cpu_id=0` | the same |
//!
//! The last are marks that devlib writes at the beginning and end of a recording, for clocks that do
//! not change within it. Any other text that a program wrote is no event here.
//!
//! `prev_state` is a letter or a number. Its bits below 256 say what the task waits for; the marks that
//! say "preempted" (`R+`) have moved between releases and lie above, so a number is runnable where
//! the low bits are 0.

use super::line::{Fields, Line};

/// A task, as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its name.
    pub comm: &'a str,
    /// Its pid; 0 is idle.
    pub pid: u32,
    /// The kernel's priority: 120 is nice 0, below 100 real time (99 − `sched_priority`), −1 deadline.
    pub prio: i32,
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It wants to go on: preempted, or it yielded.
    Runnable,
    /// It sleeps.
    Asleep,
    /// It has exited.
    Dead,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// `sched_switch`.
    Switch {
        /// Who ran.
        prev: Named<'a>,
        /// How it leaves.
        left: Left,
        /// Who runs.
        next: Named<'a>,
    },
    /// `sched_waking`, stamped in the waker's context.
    Waking(Named<'a>),
    /// `sched_wakeup`: the task is runnable; stamped on its own CPU by newer kernels.
    Wakeup(Named<'a>),
    /// `sched_wakeup_new`: runnable for the first time.
    WakeupNew(Named<'a>),
    /// `sched_process_fork`.
    Fork {
        /// Pid of the parent.
        parent: u32,
        /// Name of the child.
        child_comm: &'a str,
        /// Pid of the child.
        child: u32,
    },
    /// `sched_process_exit`.
    Exit {
        /// Pid.
        pid: u32,
    },
    /// `cpu_idle`; `None`: woken up.
    Idle {
        /// Which CPU.
        cpu: usize,
        /// Which state.
        state: Option<u32>,
    },
    /// `cpu_frequency`, or a mark of it.
    Frequency {
        /// Which CPU.
        cpu: usize,
        /// To what, kHz.
        khz: u32,
    },
    /// Any other event.
    Other,
}

/// What a line says, or which field of a known event cannot be read.
pub fn parse_event<'a>(line: &Line<'a>) -> Result<Event<'a>, String> {
    let f = &mut Fields::new(line.event, line.arguments);
    Ok(match line.event {
        "sched_switch" if line.arguments.starts_with("prev_comm=") => Event::Switch {
            prev: Named {
                comm: f.name("prev_comm", "prev_pid")?,
                pid: f.number("prev_pid")?,
                prio: f.number("prev_prio")?,
            },
            left: left(f.text("prev_state")?).ok_or_else(|| f.bad("prev_state"))?,
            next: Named {
                // `==> ` stands between the two in most releases.
                comm: {
                    let rest = f.rest();
                    *f = Fields::new(line.event, rest.strip_prefix("==> ").unwrap_or(rest));
                    f.name("next_comm", "next_pid")?
                },
                pid: f.number("next_pid")?,
                prio: f.number("next_prio")?,
            },
        },
        "sched_switch" => short_switch(line.arguments)
            .ok_or_else(|| "event sched_switch has an unknown form".to_owned())?,
        "sched_waking" => Event::Waking(woken(line, f)?),
        "sched_wakeup" => Event::Wakeup(woken(line, f)?),
        "sched_wakeup_new" => Event::WakeupNew(woken(line, f)?),
        "sched_process_fork" => {
            f.name("comm", "pid")?;
            Event::Fork {
                parent: f.number("pid")?,
                child_comm: f.name("child_comm", "child_pid")?,
                child: f.number("child_pid")?,
            }
        }
        "sched_process_exit" => {
            f.name("comm", "pid")?;
            Event::Exit { pid: f.number("pid")? }
        }
        "cpu_idle" => {
            let state: u32 = f.number("state")?;
            // PWR_EVENT_EXIT is -1 as an unsigned number.
            let state = (state != u32::MAX).then_some(state);
            Event::Idle { state, cpu: f.cpu("cpu_id")? }
        }
        "cpu_frequency" => Event::Frequency { khz: f.number("state")?, cpu: f.cpu("cpu_id")? },
        "print" | "tracing_mark_write" => frequency_mark(line.arguments).unwrap_or(Event::Other),
        _ => Event::Other,
    })
}

/// A frequency that a program wrote into the trace; text that only looks like one is not at fault.
fn frequency_mark(text: &str) -> Option<Event<'_>> {
    let text = text.strip_prefix("tracing_mark_write:").unwrap_or(text).trim_start_matches(' ');
    let (name, fields) = text.split_once(':')?;
    let key = match name {
        "cpu_frequency" => "state",
        "cpu_frequency_devlib" => "frequency",
        _ => return None,
    };
    let f = &mut Fields::new(name, fields);
    Some(Event::Frequency { khz: f.number(key).ok()?, cpu: f.cpu("cpu_id").ok()? })
}

fn woken<'a>(line: &Line<'a>, f: &mut Fields<'a>) -> Result<Named<'a>, String> {
    if line.arguments.starts_with("comm=") {
        return Ok(Named {
            comm: f.name("comm", "pid")?,
            pid: f.number("pid")?,
            prio: f.number("prio")?,
        });
    }
    let task = short_task(line.arguments);
    task.map(|(task, _)| task).ok_or_else(|| format!("event {} has an unknown form", line.event))
}

/// `a:5 [120] S ==> b:6 [120]`.
fn short_switch(text: &str) -> Option<Event<'_>> {
    // A name may hold an arrow as well, so every one is tried.
    text.match_indices(" ==> ").find_map(|(at, arrow)| {
        let (prev, state) = short_task(&text[..at])?;
        let (next, _) = short_task(&text[at + arrow.len()..])?;
        Some(Event::Switch { prev, left: left(state)?, next })
    })
}

/// `comm:pid [prio] rest`.
fn short_task(text: &str) -> Option<(Named<'_>, &str)> {
    text.match_indices(" [").find_map(|(at, _)| {
        let (comm, pid) = text[..at].rsplit_once(':')?;
        let (prio, rest) = text[at + 2..].split_once(']')?;
        let named = Named { comm, pid: pid.parse().ok()?, prio: prio.parse().ok()? };
        Some((named, rest.trim_start_matches(' ')))
    })
}

/// Bits of a numeric state: what is waited for, and the preemption marks above.
const WAITS_FOR: u64 = 0xff;
/// `EXIT_DEAD`, `EXIT_ZOMBIE` and the `TASK_DEAD` of older releases.
const DEAD: u64 = 0x10 | 0x20 | 0x40;

fn left(state: &str) -> Option<Left> {
    if let Ok(bits) = state.parse::<u64>() {
        return Some(match bits & WAITS_FOR {
            0 => Left::Runnable,
            bits if bits & DEAD != 0 => Left::Dead,
            _ => Left::Asleep,
        });
    }
    Some(match *state.as_bytes().first()? {
        b'R' => Left::Runnable,
        b'X' | b'x' | b'Z' => Left::Dead,
        letter if letter.is_ascii_alphabetic() => Left::Asleep,
        _ => return None,
    })
}
