// SPDX-License-Identifier: GPL-2.0-or-later
//! Share of a line's time for which a path waits that reads lines another CPU has just written.
//!
//! The follower writes 16 lines, the leader reads them in an order in which each names the next, so that misses cannot
//! overlap and no prefetcher guesses them. `overlap_permille` is the time of a line of that chain against `line_ns`, which
//! is also made of stores that take a line away from its reader; the chain does not wait for those.
//!
//! ```text
//! CPU 1 writes   L0 -> L3 -> L2 -> L13 -> ... (16 lines, each with the number of the next)
//! CPU 0 reads    L0, L3, L2, L13 ...          timed, less the clock itself
//! ```

use super::pinned::{Line, Turns, on_two};
use super::{Effort, Quantity, Samples};
use crate::runner::clock::{CLOCK, now};
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lines of the chain: those that a wakeup fetches of a run queue or a task are of this order.
const LINES: usize = 16;

#[derive(Debug, Default)]
struct Chain {
    turns: Turns,
    lines: [Line<AtomicUsize>; LINES],
}

/// The line after another: a full circle over [`LINES`], with steps of changing length.
fn after(line: usize) -> usize {
    (5 * line + 3) % LINES
}

impl Chain {
    fn write(&self) {
        for (index, line) in self.lines.iter().enumerate() {
            line.store(after(index), Ordering::Relaxed);
        }
    }

    /// Reads all lines; the clock waits for the last one.
    fn read(&self) {
        let mut line = 0;
        for _ in 0..LINES {
            line = self.lines[line].load(Ordering::Relaxed);
        }
        black_box(line);
    }
}

pub(super) fn measure(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let walks = u64::from(effort.share(8));
    let turns_in_all = u64::from(effort.batches_in_all()) * walks;
    let follow = |chain: &Chain| {
        for turn in 1..=turns_in_all {
            chain.turns.follow(turn);
            chain.write();
            chain.turns.answer(turn);
        }
    };
    let lead = |chain: &Chain| {
        let mut turn = 0;
        effort.repeat(|| {
            let mut elapsed = 0;
            for _ in 0..walks {
                turn += 1;
                chain.turns.pass(turn);
                let began = now(CLOCK);
                chain.read();
                elapsed += now(CLOCK) - began;
            }
            [of_each(elapsed, walks, clock_ns(walks)) / LINES as f64]
        })
    };
    let [line] = on_two(cpus, || Ok(Chain::default()), lead, follow)?;
    Ok(vec![(Quantity::Chain, line)])
}

/// Time of one of `count` intervals, less the clock, ns; not below 0.
pub(super) fn of_each(elapsed: u64, count: u64, clock_ns: f64) -> f64 {
    (elapsed as f64 / count as f64 - clock_ns).max(0.0)
}

/// Time that reading the clock adds to an interval, ns: the mean of as many as are measured, since a clock may tick
/// slowly (25 MHz on some arm64).
pub(super) fn clock_ns(count: u64) -> f64 {
    let empty = |_| {
        let began = now(CLOCK);
        now(CLOCK) - began
    };
    let elapsed: u64 = (0..count).map(empty).sum();
    elapsed as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_has_every_line_once() {
        let mut seen = [false; LINES];
        let mut line = 0;
        for _ in 0..LINES {
            line = after(line);
            assert!(!std::mem::replace(&mut seen[line], true), "{line}");
        }
        assert_eq!(line, 0);
    }

    #[test]
    fn the_clock_is_taken_off_and_nothing_falls_below_0() {
        assert_eq!(of_each(1000, 10, 25.0), 75.0);
        assert_eq!(of_each(100, 10, 25.0), 0.0);
    }
}
