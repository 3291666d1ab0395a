// SPDX-License-Identifier: GPL-2.0-or-later
//! A tape of choices: what a seed decides, one number after the other.
//!
//! Generators ask the tape for numbers below a bound, and 0 is always the simplest answer. A tape that is given can be shorter
//! than what is asked for: then every further choice is 0. This makes any change of a tape a scenario again, which is what making
//! findings smaller lives on.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Choices that have been made, and where further ones come from.
pub struct Tape {
    given: Vec<u64>,
    random: Option<ChaCha8Rng>,
    made: Vec<u64>,
    marks: Vec<&'static str>,
}

impl Tape {
    /// All choices follow from a seed.
    pub fn of_seed(seed: u64) -> Tape {
        let random = Some(ChaCha8Rng::seed_from_u64(seed));
        Tape { given: Vec::new(), random, made: Vec::new(), marks: Vec::new() }
    }

    /// The choices are given; those after their end are 0.
    pub fn given(given: Vec<u64>) -> Tape {
        Tape { given, random: None, made: Vec::new(), marks: Vec::new() }
    }

    /// The choices that were made.
    pub fn made(&self) -> &[u64] {
        &self.made
    }

    /// Returns the marks that the generators set for the scenario, see [`crate::cover`].
    pub fn marks(&self) -> &[&'static str] {
        &self.marks
    }

    /// The scenario has this.
    pub fn mark(&mut self, what: &'static str) {
        if !self.marks.contains(&what) {
            self.marks.push(what);
        }
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        let raw = match &mut self.random {
            Some(random) => random.next_u64(),
            None => self.given.get(self.made.len()).copied().unwrap_or(0),
        };
        let choice = raw % bound;
        self.made.push(choice);
        choice
    }

    /// A number from `low` to `high`, both included; `low` is the simplest.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number from `low` to `high` of any magnitude: each power of two is as likely.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let bits = self.below(u64::from(64 - (high - low).leading_zeros()) + 1);
        let span = if bits == 0 { 0 } else { self.below(1 << bits) };
        low + span.min(high - low)
    }

    /// Whether something rare or odd is so; no is the simplest.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) >= 100 - percent
    }

    /// One of several, of which the first is the simplest.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_repeats_a_seed_and_ends_in_zeros() {
        let ask = |tape: &mut Tape| {
            (0..50).map(|n| tape.below(n + 1) + tape.magnitude(3, 90_000)).collect::<Vec<u64>>()
        };
        let mut seeded = Tape::of_seed(7);
        let asked = ask(&mut seeded);
        assert_eq!(asked, ask(&mut Tape::given(seeded.made().to_vec())));
        assert_ne!(asked, ask(&mut Tape::of_seed(8)));
        assert_eq!(ask(&mut Tape::given(vec![])), [3; 50]);
    }
}
