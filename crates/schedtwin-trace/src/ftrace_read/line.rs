// SPDX-License-Identifier: GPL-2.0-or-later
//! The head of a line of ftrace text: who printed it, where, when, about which event.
//!
//! ```text
//!     TASK-PID     (TGID)  [CPU] FLAGS   SECONDS: EVENT: ARGUMENTS
//!       ui-0-78    (   78) [006] d..3.  5.090956: sched_waking: comm=x pid=5 prio=120 target_cpu=002
//!     <...>-1701           [001]       76.211513: sched_switch:         prev_comm=...
//! ```
//!
//! The first form is the kernel's (`/sys/kernel/tracing/trace`), with a column for the thread group
//! where that option is on; the second is `trace-cmd report`'s, which has no flags unless asked.
//! A name may hold spaces, dashes, brackets and `>`, so the line is found from its `[CPU]`: the first
//! one that follows `-PID` and that a time follows.

use schedtwin_types::Ns;

/// CPUs that a trace may speak of, as many as the largest machines have.
pub const CPUS_MAX: usize = 1024;

/// What the printing CPU was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The task itself, or a kernel path in its name.
    Task,
    /// A softirq.
    Softirq,
    /// A hardware interrupt, or an NMI.
    Hardirq,
    /// The line has no flags: `trace-cmd report` without `-l`.
    Unknown,
}

/// The head of a line and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The task that ran on the CPU, `<idle>` for its idle task, `<...>` where ftrace had forgotten it.
    pub comm: &'a str,
    /// Its pid; 0 is idle.
    pub pid: u32,
    /// The CPU that printed the line; not always the one that is spoken of.
    pub cpu: usize,
    /// The column of flags, empty if there is none.
    pub flags: &'a str,
    /// Trace clock, ns.
    pub at: Ns,
    /// The event's name.
    pub event: &'a str,
    /// What it says, without leading spaces.
    pub arguments: &'a str,
}

impl Line<'_> {
    /// What the CPU was doing, from the third flag.
    pub fn context(&self) -> Context {
        match self.flags.as_bytes().get(2) {
            None => Context::Unknown,
            Some(b'h' | b'H' | b'z' | b'Z') => Context::Hardirq,
            Some(b's') => Context::Softirq,
            Some(_) => Context::Task,
        }
    }

    /// The running task is to be switched away from (`TIF_NEED_RESCHED`).
    pub fn need_resched(&self) -> bool {
        matches!(self.flags.as_bytes().get(1), Some(b'N' | b'n' | b'B' | b'b'))
    }
}

/// Takes a line apart, or says what it lacks.
///
/// ```
/// use schedtwin_trace::ftrace_read::{Context, parse_line};
///
/// let line = parse_line("  ui-0-78 [006] d.h3. 5.090956: sched_waking: comm=x pid=5").unwrap();
/// assert_eq!((line.comm, line.pid, line.cpu, line.at), ("ui-0", 78, 6, 5_090_956_000));
/// assert_eq!((line.event, line.arguments), ("sched_waking", "comm=x pid=5"));
/// assert_eq!(line.context(), Context::Hardirq);
/// assert_eq!(parse_line("hello"), Err("no [CPU]"));
/// ```
pub fn parse_line(text: &str) -> Result<Line<'_>, &'static str> {
    let mut fault = NO_CPU;
    let mut from = 0;
    while let Some(bracket) = text[from..].find('[').map(|at| from + at) {
        from = bracket + 1;
        let Some((cpu, after)) = cpu_at(&text[bracket..]) else { continue };
        let Some((comm, pid)) = task(&text[..bracket]) else {
            if fault == NO_CPU {
                fault = "no TASK-PID";
            }
            continue;
        };
        if cpu >= CPUS_MAX {
            return Err("a CPU beyond 1023");
        }
        // A name may also hold what looks like a pid and a CPU: the time behind them tells.
        let (flags, at, rest) = match stamp(after) {
            Ok(stamp) => stamp,
            Err(why) => {
                fault = why;
                continue;
            }
        };
        let (event, arguments) = rest.split_once(':').ok_or("no event")?;
        let arguments = arguments.trim_start_matches(' ');
        return Ok(Line { comm, pid, cpu, flags, at, event, arguments });
    }
    Err(fault)
}

const NO_CPU: &str = "no [CPU]";

/// `[006] rest`: the number and the rest.
fn cpu_at(text: &str) -> Option<(usize, &str)> {
    let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    if !(3..=5).contains(&digits) || text.as_bytes().get(1 + digits) != Some(&b']') {
        return None;
    }
    Some((text[1..1 + digits].parse().ok()?, &text[digits + 2..]))
}

/// `comm-pid` with an optional `(tgid)` behind it.
fn task(text: &str) -> Option<(&str, u32)> {
    let mut text = text.trim_end_matches(' ');
    if let Some(open) = text.strip_suffix(')').and_then(|t| t.rfind('(')) {
        let tgid = text[open + 1..text.len() - 1].trim();
        if tgid.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            text = text[..open].trim_end_matches(' ');
        }
    }
    let dash = text.rfind('-')?;
    Some((text[..dash].trim_start_matches(' '), text[dash + 1..].parse().ok()?))
}

/// `flags seconds.fraction: rest`, with or without flags.
fn stamp(text: &str) -> Result<(&str, Ns, &str), &'static str> {
    let text = text.trim_start_matches(' ');
    let (mut flags, mut rest) = ("", text);
    let (word, after) = text.split_once(' ').ok_or("no time")?;
    if !word.ends_with(':') {
        (flags, rest) = (word, after.trim_start_matches(' '));
    }
    let (stamp, rest) = rest.split_once(": ").ok_or("no time")?;
    let (seconds, fraction) =
        stamp.split_once('.').ok_or("a time without a fraction; record with trace_clock local")?;
    let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
        true => digits.parse::<u64>().map_err(|_| "no time"),
        false => Err("no time"),
    };
    let ns_of_fraction = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return Err("a time in neither microseconds nor nanoseconds"),
    };
    let at = number(seconds)?
        .checked_mul(1_000_000_000)
        .and_then(|ns| ns.checked_add(number(fraction).ok()? * ns_of_fraction))
        .ok_or("no time")?;
    Ok((flags, at, rest))
}

/// Reads `key=value` pairs in the order in which the line has them; what is in between is skipped.
pub struct Fields<'a> {
    event: &'a str,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    /// The arguments of an event.
    pub fn new(event: &'a str, arguments: &'a str) -> Fields<'a> {
        Fields { event, rest: arguments }
    }

    /// The value of `key`: up to the next space.
    pub fn text(&mut self, key: &str) -> Result<&'a str, String> {
        loop {
            self.rest = self.rest.trim_start_matches(' ');
            if self.rest.is_empty() {
                return Err(self.bad(key));
            }
            let end = self.rest.find(' ').unwrap_or(self.rest.len());
            let token = &self.rest[..end];
            self.rest = &self.rest[end..];
            if let Some(value) = token.strip_prefix(key).and_then(|v| v.strip_prefix('=')) {
                return Ok(value);
            }
        }
    }

    /// The value of `key`, which may hold spaces: up to ` next=`.
    pub fn name(&mut self, key: &str, next: &str) -> Result<&'a str, String> {
        let value = self.rest.trim_start_matches(' ').strip_prefix(key);
        let value = value.and_then(|v| v.strip_prefix('=')).ok_or_else(|| self.bad(key))?;
        let ends_at = |at: &usize| {
            value[at + 1..].strip_prefix(next).is_some_and(|rest| rest.starts_with('='))
        };
        let mut spaces = value.match_indices(' ').map(|(at, _)| at);
        let end = spaces.find(ends_at).ok_or_else(|| self.bad(next))?;
        self.rest = &value[end..];
        Ok(&value[..end])
    }

    /// A number.
    pub fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, String> {
        self.text(key)?.parse().map_err(|_| self.bad(key))
    }

    /// A CPU's number.
    pub fn cpu(&mut self, key: &str) -> Result<usize, String> {
        let cpu: usize = self.number(key)?;
        if cpu < CPUS_MAX { Ok(cpu) } else { Err(self.bad(key)) }
    }

    /// What is left.
    pub fn rest(&self) -> &'a str {
        self.rest.trim_start_matches(' ')
    }

    /// The fault of a field.
    pub fn bad(&self, key: &str) -> String {
        format!("event {} has no readable field `{key}`", self.event)
    }
}
