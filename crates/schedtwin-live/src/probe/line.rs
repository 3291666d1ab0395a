// SPDX-License-Identifier: GPL-2.0-or-later
//! Time of a line's transfer between two CPUs.
//!
//! By store and load, each CPU writes a line of its own and waits for the other's. A round trip is four transfers, one after
//! the other: a store first takes its line away from the CPU that has been reading it, and then that CPU fetches it again.
//! By compare-and-swap, both change one line in turn, as most published matrices do. Also failed attempts take the whole
//! line, so a round trip is two transfers.
//!
//! ```text
//! store and load, a quarter             compare-and-swap, half
//! CPU 0   store a: takes a from CPU 1   CPU 0   0 -> 1: takes the line from CPU 1
//! CPU 1   load a: fetches a             CPU 1   1 -> 2: takes the line from CPU 0
//!         store b: takes b from CPU 0   CPU 0   2 -> 3 ...
//! CPU 0   load b: fetches b ...
//! ```
//!
//! Machine files get the first one. Compare-and-swap misleads: some CPUs execute atomics in a shared cache and show the
//! same time at every distance (Kunpeng 920: 34.5 ns within a cluster and 35.7 outside, while messages within a cluster
//! are 1 µs faster), and how often a CPU that waits takes the line for nothing depends on its arbiter. The kernel's paths
//! mostly load and store.
//!
//! In a guest the distance itself may change: a hypervisor moves CPUs between caches. Both values and the chain of loads
//! then jump together (2 CPUs of a Zen 5, a shared cache by sysfs: 25 ns in most runs, 126 in others).
//!
//! Differences: a store that takes a line and a load that fetches one need not take the same time; this is their mean. What
//! a path waits for, which mostly loads, is `overlap_permille` of it.

use super::pinned::{Line, Turns, on_two};
use super::{Effort, Quantity, Samples};
use crate::runner::clock::{CLOCK, now};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn store_and_load(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let (batches, trips) = (u64::from(effort.batches_in_all()), u64::from(effort.trips));
    let follow = |turns: &Turns| {
        // Each batch begins with a trip that is not timed: the other one may have been preempted.
        for turn in 1..=batches * (trips + 1) {
            turns.follow(turn);
            turns.answer(turn);
        }
    };
    let lead = |turns: &Turns| {
        let mut turn = 0;
        effort.repeat(|| {
            turn += 1;
            turns.pass(turn);
            let began = now(CLOCK);
            for _ in 0..trips {
                turn += 1;
                turns.pass(turn);
            }
            [transfer_ns(now(CLOCK) - began, 4 * trips)]
        })
    };
    let [line] = on_two(cpus, || Ok(Turns::default()), lead, follow)?;
    Ok(vec![(Quantity::Line, line)])
}

pub(super) fn compare_and_swap(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let (batches, trips) = (u64::from(effort.batches_in_all()), u64::from(effort.trips));
    let swap = |word: &AtomicU64, from: u64| {
        while word.compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {}
    };
    let follow = |word: &Line<AtomicU64>| {
        for trip in 0..batches * (trips + 2) {
            swap(word, 2 * trip + 1);
        }
    };
    let lead = |word: &Line<AtomicU64>| {
        let mut trip = 0;
        let mut next = || {
            swap(word, 2 * trip);
            trip += 1;
        };
        effort.repeat(|| {
            // A swap succeeds when the trip before has ended: two bring the other one in step.
            next();
            next();
            let began = now(CLOCK);
            for _ in 0..trips {
                next();
            }
            [transfer_ns(now(CLOCK) - began, 2 * trips)]
        })
    };
    let [line] = on_two(cpus, || Ok(Line::default()), lead, follow)?;
    Ok(vec![(Quantity::CompareAndSwap, line)])
}

fn transfer_ns(elapsed: u64, transfers: u64) -> f64 {
    elapsed as f64 / transfers as f64
}
