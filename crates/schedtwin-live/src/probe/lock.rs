// SPDX-License-Identifier: GPL-2.0-or-later
//! Time by which a lock's hand-over to another CPU lengthens a section.
//!
//! The lock is a ticket lock with one line, whose sections are empty. Between two CPUs it moves the lines that the kernel's
//! qspinlock moves between two: the second waits at the lock word itself. Lines that a section touches are not in it; they are
//! the section's own.
//!
//! 1. The leader takes and gives back the lock alone: `alone` ns a section.
//! 2. Both do. By the tickets that were drawn meanwhile, `both` ns a section.
//! 3. A section follows one of the other CPU, or one of its own: the numbers of the leader's tickets tell. A hand-over is
//!    (`both` - `alone`) / share of sections that follow one of the other CPU.
//!
//! ```text
//! tickets   0 1 2 3 4 5 6       leader draws 0, 2, 3, 5: of five sections from 0 to 5 four were handed over
//!           L F L L F L F
//! ```
//!
//! Kernel: kernel/locking/qspinlock.c `queued_spin_lock_slowpath`, pending path.
//! Differences: an MCS queue, from the third CPU on, moves a line more.

use super::pinned::{Line, Turns, on_two};
use super::{Effort, Quantity, Samples};
use crate::runner::clock::{CLOCK, now};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tickets that were drawn and served.
#[derive(Debug, Default)]
struct TicketLock {
    drawn: AtomicU64,
    serving: AtomicU64,
}

impl TicketLock {
    /// Runs an empty section; its ticket.
    fn section(&self) -> u64 {
        let ticket = self.drawn.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Acquire) != ticket {}
        self.serving.store(ticket + 1, Ordering::Release);
        ticket
    }
}

#[derive(Debug, Default)]
struct Shared {
    turns: Turns,
    lock: Line<TicketLock>,
}

/// Sections of a batch, as the leader's tickets tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tickets {
    first: u64,
    last: u64,
    /// Pairs of own tickets with tickets of the other CPU between them.
    gaps: u64,
}

impl Tickets {
    fn begin(ticket: u64) -> Tickets {
        Tickets { first: ticket, last: ticket, gaps: 0 }
    }

    fn add(&mut self, ticket: u64) {
        self.gaps += u64::from(ticket > self.last + 1);
        self.last = ticket;
    }

    /// Sections of both CPUs after the first.
    fn sections(self) -> u64 {
        self.last - self.first
    }

    /// Hand-over, ns, of a batch that took `elapsed` ns. A gap is two hand-overs: to the other CPU and back.
    fn handover_ns(self, elapsed: u64, alone_ns: f64) -> f64 {
        let handed_over = 2 * self.gaps;
        let longer = elapsed as f64 - self.sections() as f64 * alone_ns;
        (longer / handed_over.max(1) as f64).max(0.0)
    }
}

pub(super) fn measure(cpus: [usize; 2], effort: &Effort) -> io::Result<Samples> {
    let (batches, sections) = (u64::from(effort.batches_in_all()), u64::from(effort.trips));
    let follow = |shared: &Shared| {
        for batch in 1..=batches {
            // Where the leader has the lock alone, the follower waits for its next turn.
            shared.turns.follow(2 * batch - 1);
            shared.turns.answer(2 * batch - 1);
            shared.turns.follow(2 * batch);
            shared.turns.answer(2 * batch);
            for _ in 0..=sections {
                shared.lock.section();
            }
        }
    };
    let lead = |shared: &Shared| {
        let mut batch = 0;
        effort.repeat(|| {
            batch += 1;
            shared.turns.pass(2 * batch - 1);
            shared.lock.section();
            let began = now(CLOCK);
            for _ in 0..sections {
                shared.lock.section();
            }
            let alone_ns = (now(CLOCK) - began) as f64 / sections as f64;
            shared.turns.pass(2 * batch);
            let mut tickets = Tickets::begin(shared.lock.section());
            let began = now(CLOCK);
            for _ in 0..sections {
                tickets.add(shared.lock.section());
            }
            [tickets.handover_ns(now(CLOCK) - began, alone_ns)]
        })
    };
    let [handover] = on_two(cpus, || Ok(Shared::default()), lead, follow)?;
    Ok(vec![(Quantity::Handover, handover)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_follow_own_ones_are_no_hand_overs() {
        let counted = |drawn: &[u64]| {
            let mut tickets = Tickets::begin(drawn[0]);
            drawn[1..].iter().for_each(|ticket| tickets.add(*ticket));
            tickets
        };
        let mixed = counted(&[0, 2, 3, 5]);
        assert_eq!((mixed.sections(), mixed.gaps), (5, 2));
        // Five sections of 10 ns and four hand-overs of 30.
        assert_eq!(mixed.handover_ns(170, 10.0), 30.0);
        assert_eq!(counted(&[4, 6, 8]).handover_ns(4 * 40, 10.0), 30.0);
        // Nothing was handed over, and nothing is below 0.
        assert_eq!(counted(&[0, 1, 2]).handover_ns(20, 10.0), 0.0);
        assert_eq!(counted(&[0, 2]).handover_ns(3, 10.0), 0.0);
    }
}
