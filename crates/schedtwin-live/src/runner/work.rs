// SPDX-License-Identifier: GPL-2.0-or-later
//! Work of a given length: a loop whose speed is measured at the start, as rt-app does.
//!
//! Work is nanoseconds of the strongest CPU at its highest frequency, as in the twin: slower CPUs take longer.

use super::clock::{CLOCK, now};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use schedtwin_types::{Ns, Work};
use std::fs;
use std::hint::black_box;

/// How long the loop runs before it is measured, so that the CPU reaches its highest frequency.
const WARM_UP: Ns = 60_000_000;
/// Length of one measurement, and how many there are: the shortest counts, since interrupts only lengthen.
const MEASUREMENT_TURNS: u64 = 2_000_000;
const MEASUREMENTS: usize = 25;

/// The speed of the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Turns in 2^20 ns.
    turns_per_1m: u64,
}

/// Turns of a loop that depend on each other and touch no memory.
#[inline(never)]
fn turn(count: u64) {
    let mut x = black_box(count);
    for _ in 0..count {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(x);
}

impl Speed {
    /// Measures the loop on the CPU of the largest capacity; the thread may use its CPUs again afterwards.
    pub fn measure() -> rustix::io::Result<Speed> {
        let own: Option<Pid> = None;
        let allowed = sched_getaffinity(own)?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let strongest = cpus.max_by_key(|cpu| (capacity(*cpu), std::cmp::Reverse(*cpu)));
        let mut there = CpuSet::new();
        there.set(strongest.unwrap_or(0));
        sched_setaffinity(own, &there)?;
        let began = now(CLOCK);
        while now(CLOCK) - began < WARM_UP {
            turn(100_000);
        }
        let once = || {
            let began = now(CLOCK);
            turn(MEASUREMENT_TURNS);
            (now(CLOCK) - began).max(1)
        };
        let shortest = (0..MEASUREMENTS).map(|_| once()).min().expect("there is more than one");
        sched_setaffinity(own, &allowed)?;
        Ok(Speed { turns_per_1m: ((MEASUREMENT_TURNS << 20) / shortest).max(1) })
    }

    /// Nanoseconds of a turn, for people.
    pub fn ns_per_turn(self) -> f64 {
        f64::from(1 << 20) / self.turns_per_1m as f64
    }

    /// Does `work`.
    pub fn work(self, work: Work) {
        let turns = (u128::from(work) * u128::from(self.turns_per_1m)) >> 20;
        turn(turns as u64);
    }
}

/// The capacity of a CPU; 1024 where the kernel does not tell it.
pub fn capacity(cpu: usize) -> u32 {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}
