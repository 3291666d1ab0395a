// SPDX-License-Identifier: GPL-2.0-or-later
//! Two threads, each bound to a CPU, and lines that nobody else touches.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// A value with a line of its own. Lines have 64 bytes on most machines, 128 on POWER and Apple's, 256 on s390; some
/// prefetchers fetch their neighbour, too.
#[derive(Debug, Default)]
#[repr(align(256))]
pub(super) struct Line<T>(pub T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Signals of two threads in turn, each a number in a line of its own.
///
/// A waiting thread spins without a pause instruction, which alone would take longer than a line. It ends because the other one
/// runs on another CPU.
#[derive(Debug, Default)]
pub(super) struct Turns {
    there: Line<AtomicU64>,
    back: Line<AtomicU64>,
}

impl Turns {
    /// Gives the turn to the follower.
    pub fn give(&self, turn: u64) {
        self.there.store(turn, Ordering::Release);
    }

    /// Waits for the leader's turn.
    pub fn follow(&self, turn: u64) {
        while self.there.load(Ordering::Acquire) != turn {}
    }

    /// Answers the leader.
    pub fn answer(&self, turn: u64) {
        self.back.store(turn, Ordering::Release);
    }

    /// Waits for the follower's answer.
    pub fn expect(&self, turn: u64) {
        while self.back.load(Ordering::Acquire) != turn {}
    }

    /// Gives the turn and waits for its return.
    pub fn pass(&self, turn: u64) {
        self.give(turn);
        self.expect(turn);
    }
}

/// Binds the calling thread to a CPU; it is there on return.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    let mut there = CpuSet::new();
    there.set(cpu);
    sched_setaffinity(None, &there).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("CPU {cpu} cannot be used ({error}): is it offline, or outside of the cpuset?"),
        )
    })
}

/// Runs `lead` on the first CPU beside `follow` on the second. The first CPU makes what they share, so that it is the home
/// of its memory; both begin when both are where they belong.
pub(super) fn on_two<S: Sync, R: Send>(
    cpus: [usize; 2],
    make: impl FnOnce() -> io::Result<S> + Send,
    lead: impl FnOnce(&S) -> R + Send,
    follow: impl FnOnce(&S) + Send,
) -> io::Result<R> {
    let leader = move || {
        pin(cpus[0])?;
        let shared = make()?;
        thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let of_follower = &shared;
            thread::Builder::new().spawn_scoped(scope, move || {
                let pinned = pin(cpus[1]);
                let can_follow = pinned.is_ok();
                let _ = ready.send(pinned);
                if can_follow {
                    follow(of_follower);
                }
            })?;
            is_ready.recv().map_err(io::Error::other)??;
            Ok(lead(&shared))
        })
    };
    thread::scope(|scope| {
        let leader = thread::Builder::new().spawn_scoped(scope, leader)?;
        leader.join().map_err(|_| io::Error::other("a measuring thread panicked"))?
    })
}
