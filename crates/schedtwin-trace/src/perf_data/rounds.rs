// SPDX-License-Identifier: GPL-2.0-or-later
//! Records of several CPUs in the order of time.
//!
//! ```text
//! round 1:  CPU 0: 1 2     CPU 1: 2 3 4     latest 4
//! round 2:  CPU 0: 3 4 5   CPU 1: 5 6 7     latest 7
//!           end of round 2: nothing at or before 4 can come any more, so that is handed out
//! ```
//!
//! A round holds some megabytes. A file that never ends one is handed out by halves beyond [`BYTES_MAX`].

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
    /// The latest time of all, and when the round before ended.
    latest: u64,
    latest_before: u64,
}

impl Rounds {
    /// Keeps a record. `false`: there were so many that some were handed out before their round had ended.
    pub fn push(&mut self, waiting: Waiting, body: &[u8]) -> bool {
        self.latest = self.latest.max(waiting.time);
        self.incoming.push(waiting, body);
        if self.incoming.bytes.len() + self.incoming.entries.len() * size_of::<Entry>() < BYTES_MAX
        {
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

    /// A round has ended: what came before the end of the one before can be handed out.
    pub fn finish_round(&mut self) {
        self.release(self.latest_before);
        self.latest_before = self.latest;
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

    #[test]
    fn a_round_is_handed_out_when_the_next_one_has_ended() {
        let mut rounds = Rounds::default();
        let push = |rounds: &mut Rounds, times: &[u64]| {
            for time in times {
                assert!(
                    rounds.push(Waiting { time: *time, kind: 9, misc: 0 }, &time.to_le_bytes())
                );
            }
        };
        push(&mut rounds, &[1, 2, 2, 3, 4]);
        rounds.finish_round();
        assert!(!rounds.is_ready());
        push(&mut rounds, &[3, 4, 5, 5, 6, 7]);
        rounds.finish_round();
        assert_eq!(taken(&mut rounds), [1, 2, 2, 3, 3, 4, 4]);
        push(&mut rounds, &[6]);
        rounds.finish();
        assert_eq!(taken(&mut rounds), [5, 5, 6, 6, 7]);
        assert!(!rounds.is_ready());
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
