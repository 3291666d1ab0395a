// SPDX-License-Identifier: GPL-2.0-or-later
//! The clock of the runner, and sleeping by it.

use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_gettime};
use schedtwin_types::Ns;

/// The clock of all sleeps.
pub const CLOCK: ClockId = ClockId::Monotonic;

const NS_PER_S: Ns = 1_000_000_000;

/// The time of a clock.
pub fn now(clock: ClockId) -> Ns {
    let time = clock_gettime(clock);
    time.tv_sec as Ns * NS_PER_S + time.tv_nsec as Ns
}

fn timespec(ns: Ns) -> Timespec {
    Timespec { tv_sec: (ns / NS_PER_S) as _, tv_nsec: (ns % NS_PER_S) as _ }
}

/// Sleeps for a time, signals or not.
pub fn sleep(duration: Ns) {
    let mut left = timespec(duration);
    while let NanosleepRelativeResult::Interrupted(rest) = clock_nanosleep_relative(CLOCK, &left) {
        left = rest;
    }
}

/// Sleeps until a time, signals or not.
pub fn sleep_until(at: Ns) {
    while clock_nanosleep_absolute(CLOCK, &timespec(at)) == Err(rustix::io::Errno::INTR) {}
}
