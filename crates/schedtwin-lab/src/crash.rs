// SPDX-License-Identifier: GPL-2.0-or-later
//! A run that panics is a bug of the twin, and costs only itself.
//!
//! The other seeds and kernels are run and shown without it; every report names it, with the command that repeats it alone,
//! and the program's exit code is 1.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

/// A run that panicked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crash {
    /// The seed.
    pub seed: u64,
    /// The kernel as the user spelled it.
    pub kernel: String,
    /// The message of the panic, and its place if that is known.
    pub message: String,
    /// The command that repeats this run alone.
    pub command: String,
}

/// Crashes that a text names one by one; programs find all of them in the JSON.
const NAMED: usize = 5;

/// Crashes as lines for people: how many there are, then each with its command, at most a few.
pub fn lines(crashes: &[Crash]) -> Vec<String> {
    let (first, more) = crashes.split_at(crashes.len().min(NAMED));
    let mut lines = Vec::new();
    if !crashes.is_empty() {
        let runs =
            if crashes.len() == 1 { "1 run".into() } else { format!("{} runs", crashes.len()) };
        lines.push(format!(
            "{runs} panicked and count in no number here: this is a bug, please report it"
        ));
    }
    lines.extend(first.iter().map(|crash| {
        let Crash { seed, kernel, message, command } = crash;
        format!("{kernel} with seed {seed} panicked: {message}; again: {command}")
    }));
    if !more.is_empty() {
        lines.push(format!("and {} more panicked", more.len()));
    }
    lines
}

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does the work, or says with what it panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CATCHES.replace(true);
    // What the work has changed when it panics is dropped with it: runs share what they only read.
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(outer);
    done.map_err(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        HEARD.take().unwrap_or_else(|| said.to_string())
    })
}

/// For a panic hook: keeps message and place of a panic that [`caught`] will report, and then needs no other words.
/// `false`: nobody catches it.
pub fn heard(panic: &PanicHookInfo<'_>) -> bool {
    if !CATCHES.get() {
        return false;
    }
    let said = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    HEARD.set(Some(format!("{said}{}", place.unwrap_or_default())));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_with_its_words() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| -> u8 { panic!("it rests {}", 6) }), Err("it rests 6".to_string()));
        assert_eq!(caught(|| -> u8 { std::panic::panic_any(7u8) }), Err("no message".to_string()));
        let inner = caught(|| caught(|| -> u8 { panic!("inside") }));
        assert_eq!(inner, Ok(Err("inside".to_string())));
    }

    #[test]
    fn many_crashes_are_few_lines() {
        let crash = |seed| Crash {
            seed,
            kernel: "linux-6.12".into(),
            message: "it rests".into(),
            command: format!("schedtwin run --seed {seed}"),
        };
        assert!(lines(&[]).is_empty());
        let one = lines(&[crash(6)]);
        assert_eq!(
            one,
            [
                "1 run panicked and count in no number here: this is a bug, please report it",
                "linux-6.12 with seed 6 panicked: it rests; again: schedtwin run --seed 6",
            ]
        );
        let many: Vec<Crash> = (1..=9).map(crash).collect();
        assert_eq!(lines(&many).len(), 1 + NAMED + 1);
        assert_eq!(lines(&many).last().unwrap(), "and 4 more panicked");
    }
}
