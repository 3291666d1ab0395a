// SPDX-License-Identifier: GPL-2.0-or-later
//! The cost of recording, measured on the machine before the recording begins.
//!
//! Two threads on one CPU wake each other in turn, with the events off and on in alternation. The difference of the shortest
//! times, by the events recorded, is the cost of an event. What this records is thrown away.

use super::tracefs::Instance;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Wakeups there and back in a round, and rounds of each kind.
const TURNS: u32 = 500;
const ROUNDS: u32 = 5;

/// The time that all threads of this process have computed.
pub fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// The cost of an event, ns; `None` if it cannot be told from noise, or not be measured.
pub fn of_an_event(instance: &Instance) -> Option<u64> {
    let (mut off, mut on) = (Duration::MAX, Duration::MAX);
    let entries = || {
        let cpus = instance.cpus().ok()?;
        let of_cpu = |cpu| {
            let stats = instance.read(&format!("per_cpu/cpu{cpu}/stats")).ok()?;
            let count = |name: &str| {
                let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse::<u64>().ok()
            };
            Some(count("entries:")? + count("overrun:")?)
        };
        (0..cpus).map(of_cpu).sum::<Option<u64>>()
    };
    let mut events = 0;
    for _ in 0..ROUNDS {
        off = off.min(turns()?);
        let before = entries()?;
        instance.set("tracing_on", "1").ok()?;
        let took = turns();
        instance.set("tracing_on", "0").ok()?;
        let took = took?;
        let recorded = entries()?.saturating_sub(before);
        if took < on {
            (on, events) = (took, recorded);
        }
    }
    instance.empty().ok()?;
    let more = on.checked_sub(off)?;
    Some(u64::try_from(more.as_nanos()).ok()? / events.max(1)).filter(|cost| *cost > 0)
}

/// The time of a round.
fn turns() -> Option<Duration> {
    let cpu = *rustix::thread::sched_getaffinity(None)
        .ok()
        .map(|set| (0..CpuSet::MAX_CPU).find(|cpu| set.is_set(*cpu)))?
        .as_ref()?;
    let pin = move || {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).is_ok()
    };
    let (there, from_here) = mpsc::sync_channel::<()>(0);
    let (back, from_there) = mpsc::sync_channel::<()>(0);
    let answering = std::thread::spawn(move || {
        pin();
        while from_here.recv().is_ok() {
            if back.send(()).is_err() {
                return;
            }
        }
    });
    let asking = std::thread::spawn(move || {
        if !pin() {
            return None;
        }
        let start = Instant::now();
        for _ in 0..TURNS {
            there.send(()).ok()?;
            from_there.recv().ok()?;
        }
        Some(start.elapsed())
    });
    let took = asking.join().ok()?;
    answering.join().ok()?;
    took
}
