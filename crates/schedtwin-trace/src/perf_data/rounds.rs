// SPDX-License-Identifier: GPL-2.0-or-later
//! Records of several CPUs in the order of time.
//!
//! ```text
//! round 1:  CPU 0: 1 2     CPU 1: 2 3 4     latest 4
//! round 2:  CPU 0: 3 4 5   CPU 1: 5 6 7     latest 7
//!           end of round 2: nothing at or before 4 should come any more
//! ```
//!
//! Should: a CPU stamps a record before the record is in its buffer. A virtual CPU that its host takes away in between for 20
//! ms brings it in a later round, when perf itself would hand it out too late. So rounds wait as long as they have
//! less than [`WINDOW_BYTES`] together, and a file smaller than that is sorted wholly. Beyond, the older half of them is handed
//! out, never one of the last two. A file that never ends a round is handed out by halves beyond [`BYTES_MAX`].

use std::collections::VecDeque;

/// Bytes of records that wait, beyond which older rounds are handed out.
const WINDOW_BYTES: usize = 32 << 20;
/// Bytes of records that wait for the end of a round.
const BYTES_MAX: usize = 128 << 20;

/// A record that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When.
    pub time: u64,
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub misc: u16,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiting: Waiting,
    at: u32,
    size: u32,
}

/// Records, and their bytes one behind the other.
#[derive(Debug, Default)]
struct Store {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Store {
    fn push(&mut self, waiting: Waiting, body: &[u8]) {
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(body);
        self.entries.push(Entry { waiting, at, size: body.len() as u32 });
    }

    fn of(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..entry.size as usize]
    }
}

/// The records of the rounds that have not been handed out.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Sorted; `next` is handed out next.
    ready: Store,
    next: usize,
    incoming: Store,
    /// The latest time of all, and when rounds ended whose records wait.
    latest: u64,
    ends: VecDeque<u64>,
}

impl Rounds {
    /// Keeps a record. `false`: there were so many that some were handed out before their round had ended.
    pub fn push(&mut self, waiting: Waiting, body: &[u8]) -> bool {
        self.latest = self.latest.max(waiting.time);
        self.incoming.push(waiting, body);
        if self.incoming_bytes() < BYTES_MAX {
            return true;
        }
        let mut times: Vec<u64> =
            self.incoming.entries.iter().map(|entry| entry.waiting.time).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.release(median);
        false
    }

    /// A round has ended: if many wait, what came before the end of one in their middle can be handed out.
    pub fn finish_round(&mut self) {
        self.ends.push_back(self.latest);
        if self.incoming_bytes() < WINDOW_BYTES || self.ends.len() < 2 {
            return;
        }
        let older = (self.ends.len() / 2).max(1);
        let until = self.ends.drain(..older).next_back().expect("there is one");
        self.release(until);
    }

    fn incoming_bytes(&self) -> usize {
        self.incoming.bytes.len() + self.incoming.entries.len() * size_of::<Entry>()
    }

    /// How many records wait that cannot be taken yet.
    pub fn waiting(&self) -> usize {
        self.incoming.entries.len()
    }

    /// The time of the record that can be taken next.
    pub fn next_time(&self) -> Option<u64> {
        self.ready.entries.get(self.next).map(|entry| entry.waiting.time)
    }

    /// There are no more records.
    pub fn finish(&mut self) {
        self.release(u64::MAX);
    }

    /// The latest time of all records.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    fn release(&mut self, until: u64) {
        let mut old = std::mem::take(&mut self.incoming);
        let (mut ready, rest): (Vec<Entry>, Vec<Entry>) =
            old.entries.drain(..).partition(|entry| entry.waiting.time <= until);
        for entry in &rest {
            self.incoming.push(entry.waiting, old.of(entry));
        }
        // Stable: records of one time keep the order of the file.
        ready.sort_by_key(|entry| entry.waiting.time);
        if self.next < self.ready.entries.len() {
            // Handed out before: behind what is still to be taken.
            for entry in &ready {
                self.ready.push(entry.waiting, old.of(entry));
            }
        } else {
            old.entries = ready;
            self.ready = old;
            self.next = 0;
        }
    }

    /// Whether a record can be taken.
    pub fn is_ready(&self) -> bool {
        self.next < self.ready.entries.len()
    }

    /// Takes the next record.
    pub fn pop(&mut self, body: &mut Vec<u8>) -> Option<Waiting> {
        let entry = self.ready.entries.get(self.next)?;
        self.next += 1;
        body.clear();
        body.extend_from_slice(self.ready.of(entry));
        Some(entry.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rounds: &mut Rounds) -> Vec<u64> {
        let mut body = Vec::new();
        let mut times = Vec::new();
        while let Some(waiting) = rounds.pop(&mut body) {
            assert_eq!(body, waiting.time.to_le_bytes(), "each record has its own bytes");
            times.push(waiting.time);
        }
        times
    }

    fn push(rounds: &mut Rounds, times: &[u64]) {
        for time in times {
            assert!(rounds.push(Waiting { time: *time, kind: 9, misc: 0 }, &time.to_le_bytes()));
        }
    }

    #[test]
    fn a_small_file_is_sorted_wholly_though_a_record_came_rounds_too_late() {
        let mut rounds = Rounds::default();
        push(&mut rounds, &[1, 2, 2, 3, 4]);
        rounds.finish_round();
        push(&mut rounds, &[3, 4, 5, 5, 6, 7]);
        rounds.finish_round();
        push(&mut rounds, &[8]);
        rounds.finish_round();
        assert!(!rounds.is_ready());
        push(&mut rounds, &[6, 3]);
        rounds.finish();
        assert_eq!(taken(&mut rounds), [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8]);
        assert!(!rounds.is_ready());
    }

    #[test]
    fn rounds_of_a_large_file_are_handed_out_while_newer_ones_wait() {
        let mut rounds = Rounds::default();
        let body = vec![0; 1 << 20];
        let (mut taken, mut most) = (Vec::new(), 0);
        for round in 0..200_u64 {
            // Each round has a record that came five rounds too late.
            for time in [100 + 2 * round, 100 + 2 * round - 9.min(2 * round)] {
                assert!(rounds.push(Waiting { time, kind: 9, misc: 0 }, &body));
            }
            rounds.finish_round();
            most = most.max(rounds.incoming_bytes());
            while let Some(waiting) = rounds.pop(&mut Vec::new()) {
                taken.push(waiting.time);
            }
        }
        assert!(taken.is_sorted() && taken.len() > 300, "{taken:?}");
        assert!(most < WINDOW_BYTES + (4 << 20), "{most}");
    }

    #[test]
    fn many_records_without_a_round_do_not_take_all_memory() {
        let mut rounds = Rounds::default();
        let body = [0; 1 << 16];
        let mut forced = 0;
        for time in 1..=5000 {
            forced += u32::from(!rounds.push(Waiting { time, kind: 9, misc: 0 }, &body));
            let mut out = Vec::new();
            while rounds.pop(&mut out).is_some() {}
            assert!(rounds.incoming.bytes.len() <= BYTES_MAX);
        }
        assert!(forced > 1);
    }
}
