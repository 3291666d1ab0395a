// SPDX-License-Identifier: GPL-2.0-or-later
//! Time of a copied line of data that another CPU has just written, and of own data.
//!
//! A copy's misses overlap and are prefetched: payload up to a page costs next to nothing within a last-level cache, where
//! metadata that is reached through pointers costs the full latency. The difference of both rows is what distance adds.
//!
//! The buffer changes hands as an owned value before the clock starts: no lock is timed.

use super::chain::{clock_ns, of_each};
use super::pinned::{Turns, on_two};
use super::{Effort, Quantity, Samples};
use crate::runner::clock::{CLOCK, now};
use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Bytes of a copy: just below a page, as pipes and sockets carry them.
const BYTES: usize = 4_000;

/// Bytes of a line in machine files.
const LINE_BYTES: f64 = 64.0;

type Buffer = Box<[u8; BYTES]>;

#[derive(Debug, Default)]
struct Shared {
    turns: Turns,
    buffer: Mutex<Option<Buffer>>,
}

impl Shared {
    fn put(&self, buffer: Buffer) {
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
    }

    fn take(&self) -> Buffer {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner).take();
        buffer.expect("it was put there before the turn was given")
    }
}

/// Measures a copied line from the other CPU, an own one, and the difference, all ns.
pub(super) fn measure(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let copies = u64::from(effort.share(8));
    let turns_in_all = u64::from(effort.batches_in_all()) * copies;
    let follow = |shared: &Shared| {
        for turn in 1..=turns_in_all {
            shared.turns.follow(turn);
            let mut buffer = shared.take();
            buffer.fill(turn as u8);
            shared.put(buffer);
            shared.turns.answer(turn);
        }
    };
    let lead = |shared: &Shared| {
        let mut target = Box::new([0; BYTES]);
        let mut turn = 0;
        effort.repeat(|| {
            let (mut foreign, mut own) = (0, 0);
            for _ in 0..copies {
                turn += 1;
                shared.turns.pass(turn);
                let buffer = shared.take();
                foreign += timed_copy(&mut target, &buffer);
                own += timed_copy(&mut target, &buffer);
                shared.put(buffer);
            }
            let clock = clock_ns(copies);
            let of_line = |ns| of_each(ns, copies, clock) * LINE_BYTES / BYTES as f64;
            let (foreign, own) = (of_line(foreign), of_line(own));
            [foreign, own, foreign - own]
        })
    };
    let make = || {
        let shared = Shared::default();
        shared.put(Box::new([0; BYTES]));
        Ok(shared)
    };
    let [foreign, own, more] = on_two(cpus, make, lead, follow)?;
    Ok(vec![(Quantity::Copy, foreign), (Quantity::CopyOwn, own), (Quantity::CopyShare, more)])
}

fn timed_copy(target: &mut Buffer, from: &Buffer) -> u64 {
    let began = now(CLOCK);
    target.copy_from_slice(black_box(&from[..]));
    black_box(&mut *target);
    now(CLOCK) - began
}
