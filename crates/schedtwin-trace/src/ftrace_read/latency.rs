// SPDX-License-Identifier: GPL-2.0-or-later
//! The head of a line of the latency format: the kernel's (`options/latency-format`), that of `trace-cmd report -l`, and
//! that which a kernel prints when it dies (`ftrace_dump_on_oops`), each line behind the log's own stamp.
//!
//! ```text
//!     COMM-PID   CPU FLAGS   MICROSECONDS us MARK: EVENT: ARGUMENTS
//!   <idle>-0       0d.h2. 100000000us+: sched_waking: comm=work pid=1001 prio=120 target_cpu=000
//!     COMM-PID   CPU FLAGS  SECONDS: EVENT: ARGUMENTS
//!   <idle>-0       2dNs2.  2084.021528: sched_waking: ...
//!   [   12.345678]  <...>-7   1d..2. 12345678us : sched_waking: ...
//! ```
//!
//! Names have at most eight letters there; events have them whole. Times begin where the buffer does.

use super::line::{CPU_BEYOND, Line, event, number, stamp, without_spaces};
use crate::event::CPUS_MAX;
use schedtwin_types::Ns;

/// Marks behind a time: how long it was since the line before.
const MARKS: [char; 7] = ['+', '!', '#', '*', '@', '$', ' '];

/// The line; `None`: it is of another form. The inner error: it is one of a CPU that the twin has not.
pub(super) fn parse(text: &str) -> Option<Result<Line<'_>, &'static str>> {
    let text = without_stamp_of_log(text);
    // The name may hold spaces: the first pid that flags and a time follow.
    let mut from = 0;
    while let Some(dash) = memchr::memchr(b'-', &text.as_bytes()[from..]).map(|at| from + at) {
        from = dash + 1;
        if let Some(found) = behind_name(&text[..dash], &text[from..]) {
            return Some(found);
        }
    }
    None
}

/// The line, taken apart at the dash in front of a pid.
fn behind_name<'a>(comm: &'a str, rest: &'a str) -> Option<Result<Line<'a>, &'static str>> {
    let (pid, rest) = rest.split_once(' ')?;
    let pid = number(pid).and_then(|pid| u32::try_from(pid).ok())?;
    let (place, rest) = without_spaces(rest).split_once(' ')?;
    let digits = place.bytes().take_while(u8::is_ascii_digit).count();
    let (cpu, flags) = place.split_at(digits);
    let cpu = usize::try_from(number(cpu)?).ok()?;
    let flags = match flags.strip_prefix("-0x") {
        // Raw numbers (`-R`).
        Some(bits) => u64::from_str_radix(bits, 16).ok().map(|_| "")?,
        None => Some(flags).filter(|flags| are_flags(flags))?,
    };
    let (at, rest) = microseconds(rest).or_else(|| {
        let (_, at, rest) = stamp(rest).ok()?;
        Some((at, rest))
    })?;
    let (event, arguments) = event(rest)?;
    if cpu >= CPUS_MAX {
        return Some(Err(CPU_BEYOND));
    }
    let comm = without_spaces(comm);
    Some(Ok(Line { comm, pid, tgid: None, cpu, flags, at, event, arguments }))
}

fn are_flags(text: &str) -> bool {
    (4..=7).contains(&text.len()) && text.bytes().all(|b| b == b'.' || b.is_ascii_alphanumeric())
}

/// `  1234us+: rest`.
fn microseconds(text: &str) -> Option<(Ns, &str)> {
    let (time, rest) = without_spaces(text).split_once("us")?;
    let rest = rest.trim_start_matches(MARKS).strip_prefix(':')?;
    Some((number(time)?.checked_mul(1000)?, rest))
}

/// The text behind `[   12.345678] `, which a level may precede: `<4>`.
fn without_stamp_of_log(text: &str) -> &str {
    let start = without_spaces(text);
    let level = start.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let start = match level {
        Some((level, rest)) if number(level).is_some() => rest,
        _ => start,
    };
    let behind = start.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let is_stamp = |stamp: &str| {
        let (seconds, fraction) = without_spaces(stamp).split_once('.')?;
        number(seconds).and(number(fraction))
    };
    match behind {
        Some((stamp, rest)) if is_stamp(stamp).is_some() => rest,
        _ => text,
    }
}

/// Whether a line is of the verbose latency format, which has no pid and CPU in fixed places:
/// `ui  7  1 0 00000000 00000000 [0009f2b3] 651.955ms (+0.020ms): ...`.
pub(super) fn is_verbose(text: &str) -> bool {
    let Some((head, rest)) = text.split_once("ms (+") else { return false };
    rest.split_once("ms): ").is_some() && head.split_whitespace().count() >= 8
}
