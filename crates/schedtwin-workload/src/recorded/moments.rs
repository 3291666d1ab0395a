// SPDX-License-Identifier: GPL-2.0-or-later
//! What became of each recorded sleep, to compare a replay with: kept only if asked for.
//!
//! A *job* is what a thread does between two sleeps. A replay keeps the order of a thread's jobs, so that a
//! job of the replay and one of the recording are the same one if the step of the sleep before it is.

use super::builder::{Builder, Sleep, SleepEnd, Wakeup};
use schedtwin_types::Ns;

/// A recorded sleep and the job behind it. Times begin with the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The number of the thread among those that are replayed.
    pub thread: u32,
    /// The step of its code that is the sleep.
    pub step: u32,
    /// When the sleep began; `None`: before the recording.
    pub slept_at: Option<Ns>,
    /// When it was woken; `None`: no wakeup was recorded.
    pub woken_at: Option<Ns>,
    /// The number of the replayed thread that woke it.
    pub woken_by: Option<u32>,
    /// When it ran again; `None`: it did not.
    pub ran_at: Option<Ns>,
    /// On which CPU.
    pub cpu: u16,
    /// The CPU on which it had run before; `None`: it is not recorded.
    pub prev: Option<u16>,
    /// Times that it lost its CPU during the job while it wanted to go on.
    pub preempted: u32,
}

/// What is noted of a sleep while events are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ran {
    pub at: Option<Ns>,
    pub cpu: u16,
    pub prev: Option<u16>,
    pub preempted: u32,
}

/// Notes of sleeps by their numbers, if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Notes {
    wanted: bool,
    ran: Vec<Ran>,
}

impl Notes {
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    pub(super) fn wanted(&self) -> bool {
        self.wanted
    }

    /// A thread runs after that sleep.
    pub(super) fn runs(&mut self, sleep: Option<u32>, at: Ns, cpu: u16, prev: Option<u16>) {
        let Some(note) = self.note(sleep) else { return };
        if note.at.is_none() {
            (note.at, note.cpu, note.prev) = (Some(at), cpu, prev);
        }
    }

    /// A thread loses its CPU in the job after that sleep.
    pub(super) fn preempted(&mut self, sleep: Option<u32>) {
        if let Some(note) = self.note(sleep) {
            note.preempted += 1;
        }
    }

    fn note(&mut self, sleep: Option<u32>) -> Option<&mut Ran> {
        let sleep = sleep.filter(|_| self.wanted)? as usize;
        if sleep >= self.ran.len() {
            self.ran.resize(sleep + 1, Ran::default());
        }
        Some(&mut self.ran[sleep])
    }

    /// The moment of a sleep that became a step; `None`: moments are not wanted.
    pub(super) fn moment(
        &self,
        sleep: u32,
        (thread, step): (u32, u32),
        builder: &Builder,
        numbers: &[Option<u32>],
    ) -> Option<Moment> {
        if !self.wanted {
            return None;
        }
        let start = builder.start.unwrap_or(0);
        let since = |at: Ns| at.saturating_sub(start);
        let Ran { at, cpu, prev, preempted } =
            self.ran.get(sleep as usize).copied().unwrap_or_default();
        let Sleep { began, end, .. } = builder.sleeps[sleep as usize];
        let wakeup = match end {
            SleepEnd::Wakeup(wakeup) => Some(builder.wakeups[wakeup as usize]),
            SleepEnd::Open | SleepEnd::Unmatched { .. } => None,
        };
        Some(Moment {
            thread,
            step,
            slept_at: began.map(since),
            woken_at: wakeup.map(|Wakeup { at, .. }| since(at)),
            woken_by: wakeup.and_then(|Wakeup { by, .. }| numbers[by? as usize]),
            ran_at: at.map(since),
            cpu,
            prev,
            preempted,
        })
    }
}

/// Where a thread of a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its step; one behind its last, when it is done.
    pub step: u32,
    /// It sleeps there, as the recording has it.
    pub sleeps: bool,
}
