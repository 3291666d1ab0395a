// SPDX-License-Identifier: GPL-2.0-or-later
//! The head of a line of trace text: who printed it, where, when, about which event.
//!
//! ```text
//!     TASK-PID     (TGID)  [CPU] FLAGS   SECONDS: EVENT: ARGUMENTS
//!       ui-0-78    (   78) [006] d..3.  5.090956: sched_waking: comm=x pid=5 prio=120 target_cpu=002
//!     <...>-1701           [001]       76.211513: sched_switch:         prev_comm=...
//!     TASK  PID            [CPU]         SECONDS:   SYSTEM:EVENT: ARGUMENTS
//!        x y    17343      [001]       76.211513:  sched:sched_switch: prev_comm=...
//! ```
//!
//! The first form is the kernel's (`/sys/kernel/tracing/trace`), with a column for the thread group
//! where the option `record-tgid` is on and without flags where `irq-info` is off; the second is `trace-cmd report`'s,
//! which has no flags; the third is `perf script`'s, which may have `TGID/PID` in place of `PID`. Lines without
//! brackets are those of the latency format, see `latency`.
//! A name may hold spaces, dashes, brackets and `>`, so the line is found from its `[CPU]`: the first
//! one that follows a pid and that a time follows.

use super::latency;
use crate::event::{CPUS_MAX, EventContext, Interrupt, NameId};
use memchr::{memchr, memchr_iter, memrchr};
use schedtwin_types::{CpuId, Ns};

/// The head of a line and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The task that ran on the CPU, `<idle>` for its idle task, `<...>` where ftrace had forgotten it.
    pub comm: &'a str,
    /// Its pid; 0 is idle.
    pub pid: u32,
    /// Its thread group, if the line tells it.
    pub tgid: Option<u32>,
    /// The CPU that printed the line; not always the one that is spoken of.
    pub cpu: usize,
    /// The column of flags, empty if there is none.
    pub flags: &'a str,
    /// Trace clock, ns.
    pub at: Ns,
    /// The event's name.
    pub event: &'a str,
    /// The arguments, without leading spaces.
    pub arguments: &'a str,
}

impl Line<'_> {
    /// Returns the line's context, the state of the running task; `comm` is its interned name.
    ///
    /// Flags are columns of one letter: interrupts off, need to reschedule, (lazily, in kernels with the old patches for
    /// PREEMPT_RT, that have six columns or more), interrupt, depth of preemption.
    pub fn context(&self, comm: NameId) -> EventContext {
        let flags = self.flags.as_bytes();
        let interrupt_at = if flags.len() >= 6 { 3 } else { 2 };
        let flag = |at: usize| flags.get(at).copied();
        EventContext {
            pid: self.pid,
            tgid: self.tgid,
            comm,
            interrupt: match flag(interrupt_at) {
                None => Interrupt::Unknown,
                Some(b'h' | b'H' | b'z' | b'Z') => Interrupt::Hardirq,
                Some(b's') => Interrupt::Softirq,
                Some(_) => Interrupt::Task,
            },
            need_resched: matches!(flag(1), Some(b'N' | b'n' | b'B' | b'b')),
            irqs_off: flag(0).filter(|flag| *flag != b'X').map(|flag| matches!(flag, b'd' | b'D')),
            preempt_count: flag(interrupt_at + 1).and_then(|flag| match flag {
                b'.' => Some(0),
                flag => char::from(flag).to_digit(16).map(|depth| depth as u8),
            }),
        }
    }
}

/// Takes a line apart, or says what it lacks.
///
/// ```
/// use schedtwin_trace::event::{Interrupt, NameId};
/// use schedtwin_trace::ftrace_read::parse_line;
///
/// let line = parse_line("  ui-0-78 [006] d.h3. 5.090956: sched_waking: comm=x pid=5").unwrap();
/// assert_eq!((line.comm, line.pid, line.cpu, line.at), ("ui-0", 78, 6, 5_090_956_000));
/// assert_eq!((line.event, line.arguments), ("sched_waking", "comm=x pid=5"));
/// assert_eq!(line.context(NameId::NONE).interrupt, Interrupt::Hardirq);
/// let line = parse_line("  a b 70/78 [006]  5.090956:  sched:sched_waking: comm=x pid=5").unwrap();
/// assert_eq!((line.comm, line.tgid, line.pid, line.event), ("a b", Some(70), 78, "sched_waking"));
/// assert_eq!(parse_line("hello"), Err("no [CPU]"));
/// ```
pub fn parse_line(text: &str) -> Result<Line<'_>, &'static str> {
    let mut fault = NO_CPU;
    let mut from = 0;
    while let Some(bracket) = memchr(b'[', &text.as_bytes()[from..]).map(|at| from + at) {
        from = bracket + 1;
        let Some((cpu, after)) = cpu_at(&text[bracket..]) else { continue };
        let Some((comm, pid, tgid)) = task(&text[..bracket]) else {
            if fault == NO_CPU {
                fault = "no TASK-PID";
            }
            continue;
        };
        // A name may also hold what looks like a pid and a CPU: the time behind them tells.
        let (flags, at, rest) = match stamp(after) {
            Ok(stamp) => stamp,
            Err(why) => {
                fault = why;
                continue;
            }
        };
        let (event, arguments) = event(rest).ok_or("no event")?;
        if cpu >= CPUS_MAX {
            return Err(CPU_BEYOND);
        }
        return Ok(Line { comm, pid, tgid, cpu, flags, at, event, arguments });
    }
    latency::parse(text).unwrap_or(Err(fault))
}

pub(super) const NO_CPU: &str = "no [CPU]";
/// The fault of an event on a CPU that the twin has not: [`CPUS_MAX`].
pub(super) const CPU_BEYOND: &str = "a CPU beyond 1023";

/// `[006] rest`: the number and the rest.
fn cpu_at(text: &str) -> Option<(usize, &str)> {
    let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    if !(3..=5).contains(&digits) || text.as_bytes().get(1 + digits) != Some(&b']') {
        return None;
    }
    Some((text[1..1 + digits].parse().ok()?, &text[digits + 2..]))
}

/// `comm-pid` with an optional `(tgid)` behind it, or perf's `comm pid` and `comm tgid/pid`.
fn task(text: &str) -> Option<(&str, u32, Option<u32>)> {
    let mut text = without_spaces_behind(text);
    let mut tgid = None;
    if text.ends_with(')')
        && let Some(open) = memrchr(b'(', text.as_bytes())
    {
        let group = text[open + 1..text.len() - 1].trim();
        if group.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            text = without_spaces_behind(&text[..open]);
            tgid = group.parse().ok();
        }
    }
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (head, pid) = text.split_at(text.len() - digits);
    let pid = pid.parse().ok()?;
    if let Some(head) = head.strip_suffix('/') {
        let digits = head.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (comm, group) = head.split_at(head.len() - digits);
        return Some((comm.strip_suffix(' ')?.trim_matches(' '), pid, Some(group.parse().ok()?)));
    }
    if !head.as_bytes().ends_with(b"-") && !head.as_bytes().ends_with(b" ") {
        return None;
    }
    let comm = &head[..head.len() - 1];
    // A thread that is gone has the pid -1 in perf's text: it is nobody.
    let dash = head.as_bytes().ends_with(b"-");
    let nobody = dash && comm.as_bytes().ends_with(b" ") && without_spaces(comm).starts_with(':');
    // Perf's names are padded on both sides, the kernel's on the left.
    let comm = without_spaces(comm);
    let comm = if dash && !nobody { comm } else { without_spaces_behind(comm) };
    Some((comm, if nobody { u32::MAX } else { pid }, tgid))
}

/// `flags seconds.fraction: rest`, with or without flags.
#[inline]
pub(super) fn stamp(text: &str) -> Result<(&str, Ns, &str), &'static str> {
    let text = without_spaces(text);
    let (mut flags, mut rest) = ("", text);
    let (word, after) = split_at_byte(text, b' ').ok_or("no time")?;
    if !word.ends_with(':') {
        (flags, rest) = (word, without_spaces(after));
    }
    let (stamp, rest) = split_at_byte(rest, b':').ok_or("no time")?;
    let rest = rest.strip_prefix(' ').ok_or("no time")?;
    let (seconds, fraction) = split_at_byte(stamp, b'.')
        .ok_or("a time without a fraction; record with trace_clock local")?;
    let ns_of_fraction = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return Err("a time in neither microseconds nor nanoseconds"),
    };
    let at = number(seconds)
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .and_then(|ns| ns.checked_add(number(fraction)? * ns_of_fraction))
        .ok_or("no time")?;
    Ok((flags, at, rest))
}

/// A number that is nothing but digits. The library's own parser would look at each of them twice more.
pub(super) fn number(digits: &str) -> Option<u64> {
    /// As many digits as always fit.
    const FIT: usize = 19;
    let mut value = 0_u64;
    for byte in digits.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(digit.into());
    }
    match digits.len() {
        0 => None,
        1..=FIT => Some(value),
        _ => digits.parse().ok(),
    }
}

/// `event: arguments`, or perf's `system:event: arguments`, which a number (the period) may precede, or the time since the line
/// before (`trace-cmd report --ts-diff`: `(+5180)`).
#[inline]
pub(super) fn event(text: &str) -> Option<(&str, &str)> {
    let mut text = without_spaces(text);
    // The bytes themselves: a comparison of texts is a call for each line.
    if matches!(text.as_bytes(), [b'(', b'+', ..])
        && let Some((_, rest)) = split_at_byte(text, b')')
    {
        text = without_spaces(rest);
    }
    if text.starts_with(|c: char| c.is_ascii_digit())
        && let Some((number, rest)) = split_at_byte(text, b' ')
        && number.bytes().all(|b| b.is_ascii_digit())
    {
        text = rest.trim_start_matches(' ');
    }
    if text.starts_with("PERF_RECORD_") {
        let end = text.find([' ', ':', '(']).unwrap_or(text.len());
        return Some((&text[..end], text[end..].trim_start_matches([' ', ':'])));
    }
    let (event, arguments) = split_at_byte(text, b':')?;
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if !arguments.as_bytes().starts_with(b" ")
        && let Some((of_system, arguments)) = arguments.split_once(':')
        && (arguments.is_empty() || arguments.starts_with(' '))
        && word(event)
        && word(of_system)
    {
        return Some((of_system, arguments.trim_start_matches(' ')));
    }
    Some((event, without_spaces(arguments)))
}

/// Bytes that a thread's name has at most (`TASK_COMM_LEN` without its end).
const COMM_MAX: usize = 15;

/// Reads `key=value` pairs in the order in which the line has them; what is in between is skipped.
#[derive(Clone, Copy)]
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
            self.rest = without_spaces(self.rest);
            if self.rest.is_empty() {
                return Err(self.bad(key));
            }
            let end = memchr(b' ', self.rest.as_bytes()).unwrap_or(self.rest.len());
            let token = &self.rest[..end];
            self.rest = &self.rest[end..];
            if token.as_bytes().get(key.len()) == Some(&b'=') && token.starts_with(key) {
                return Ok(&token[key.len() + 1..]);
            }
        }
    }

    /// The value of `key`, which may hold spaces: up to ` next=`. A thread's name may hold that, too: it ends at the last one that
    /// its length allows.
    pub fn name(&mut self, key: &str, next: &str) -> Result<&'a str, String> {
        let value = without_spaces(self.rest).strip_prefix(key);
        let value = value.and_then(|v| v.strip_prefix('=')).ok_or_else(|| self.bad(key))?;
        let ends_at = |at: &usize| {
            value[at + 1..].strip_prefix(next).is_some_and(|rest| rest.starts_with('='))
        };
        let mut ends = memchr_iter(b' ', value.as_bytes()).filter(ends_at);
        let first = ends.next().ok_or_else(|| self.bad(next))?;
        let end = ends.take_while(|at| *at <= COMM_MAX).last().unwrap_or(first);
        self.rest = &value[end..];
        Ok(&value[..end])
    }

    /// A number.
    ///
    /// The kernel's option `fields` prints hexadecimal numbers, of as many bits as the field has, and the decimal one behind:
    /// `prio=0x78 (120)`.
    pub fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, String> {
        let text = self.digits(key)?;
        text.parse().map_err(|_| self.bad(key))
    }

    /// The value of `key`; of `0x78 (120)` the decimal number.
    pub fn digits(&mut self, key: &str) -> Result<&'a str, String> {
        let text = self.text(key)?;
        if text.starts_with("0x")
            && let Some(behind) = without_spaces(self.rest).strip_prefix('(')
            && let Some((decimal, rest)) = behind.split_once(')')
        {
            self.rest = rest;
            return Ok(decimal);
        }
        Ok(text)
    }

    /// An address or another hexadecimal number, with or without `0x`.
    pub fn hex(&mut self, key: &str) -> Result<u64, String> {
        hex(self.text(key)?).ok_or_else(|| self.bad(key))
    }

    /// A CPU's number.
    pub fn cpu(&mut self, key: &str) -> Result<usize, String> {
        let cpu: usize = self.number(key)?;
        if cpu < CPUS_MAX { Ok(cpu) } else { Err(self.bad(key)) }
    }

    /// A CPU's number, as a type of its own.
    pub fn cpu_id(&mut self, key: &str) -> Result<CpuId, String> {
        Ok(CpuId(self.cpu(key)? as u16))
    }

    /// A CPU's number, if the line goes on with one that is readable.
    pub fn cpu_if_any(&self, key: &str) -> Option<CpuId> {
        let mut ahead = *self;
        ahead.cpu_id(key).ok()
    }

    /// Returns the rest of the text.
    pub fn rest(&self) -> &'a str {
        without_spaces(self.rest)
    }

    /// The fault of a field.
    pub fn bad(&self, key: &str) -> String {
        format!("event {} has no readable field `{key}`", self.event)
    }
}

/// The two sides of a byte's first occurrence. The library's own searches for a character compare each find once more.
fn split_at_byte(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr(byte, text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

/// A text without the spaces in front.
pub(super) fn without_spaces(text: &str) -> &str {
    let spaces = text.bytes().take_while(|byte| *byte == b' ').count();
    &text[spaces..]
}

/// A text without the spaces at its end.
fn without_spaces_behind(text: &str) -> &str {
    let spaces = text.bytes().rev().take_while(|byte| *byte == b' ').count();
    &text[..text.len() - spaces]
}

/// A hexadecimal number, with or without `0x`.
pub(super) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}
