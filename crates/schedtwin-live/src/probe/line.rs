// SPDX-License-Identifier: GPL-2.0-or-later
//! Time of a line one way: half of a round trip between two CPUs.
//!
//! By store and load, each CPU writes a line of its own and reads the other's. By compare-and-swap, both change one line in
//! turn, as most published matrices do.
//!
//! ```text
//! store and load           compare-and-swap
//! CPU 0: store a           CPU 0: 0 -> 1 succeeds
//! CPU 1: sees a, store b   CPU 1: 1 -> 2 succeeds
//! CPU 0: sees b ...        CPU 0: 2 -> 3 succeeds ...
//! ```
//!
//! Machine files get the first one. Compare-and-swap misleads: some CPUs execute atomics in the last-level cache and show the
//! same time at every distance (Kunpeng 920: 34.5 ns within a cluster and 35.7 outside), and failed attempts of the one that
//! waits take the line away from the other. The kernel's paths mostly load and store.

use super::pinned::{Line, Turns, on_two};
use super::{Effort, Quantity, Sample};
use crate::runner::clock::{CLOCK, now};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn store_and_load(
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<Vec<(Quantity, Sample)>> {
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
            [one_way(now(CLOCK) - began, trips)]
        })
    };
    let [line] = on_two(cpus, || Ok(Turns::default()), lead, follow)?;
    Ok(vec![(Quantity::Line, line)])
}

pub(super) fn compare_and_swap(
    cpus: [usize; 2],
    effort: &Effort,
) -> io::Result<Vec<(Quantity, Sample)>> {
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
            [one_way(now(CLOCK) - began, trips)]
        })
    };
    let [line] = on_two(cpus, || Ok(Line::default()), lead, follow)?;
    Ok(vec![(Quantity::CompareAndSwap, line)])
}

/// Half of a round trip, ns.
fn one_way(elapsed: u64, trips: u64) -> f64 {
    elapsed as f64 / (2 * trips) as f64
}
