// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a finding smaller: the shortest tape of the smallest choices that still shows it.
//!
//! 1. **ends**: the tape is cut to a half, a quarter, ...; what is missing is 0
//! 2. **zeros**: blocks of choices become 0, from long blocks to single choices
//! 3. **left out**: blocks are taken out, so that later choices move up
//! 4. **lower**: single choices are halved, or lowered by one
//!
//! Rounds go on until one changes nothing, or the attempts are used up.

use crate::tape::Tape;

/// Makes `tape` smaller while `shows` says that the finding is still there. Tries at most `attempts` tapes.
pub fn smaller(
    tape: Vec<u64>,
    attempts: usize,
    mut shows: impl FnMut(&mut Tape) -> bool,
) -> Vec<u64> {
    let mut best = tape;
    let mut left = attempts;
    let mut try_it = |candidate: Vec<u64>, best: &mut Vec<u64>, left: &mut usize| -> bool {
        if *left == 0 || candidate == *best {
            return false;
        }
        *left -= 1;
        let mut tape = Tape::given(candidate.clone());
        let still = shows(&mut tape);
        if still {
            *best = candidate;
        }
        still
    };
    loop {
        let before = best.clone();
        let mut keep = best.len() / 2;
        while keep > 0 {
            let shorter = best[..keep.min(best.len())].to_vec();
            try_it(shorter, &mut best, &mut left);
            keep /= 2;
        }
        for drops in [false, true] {
            let mut length = best.len().next_power_of_two() / 2;
            while length > 0 {
                let mut at = 0;
                while at < best.len() {
                    let end = (at + length).min(best.len());
                    let mut candidate = best.clone();
                    if drops {
                        candidate.drain(at..end);
                    } else {
                        candidate[at..end].fill(0);
                    }
                    if !(try_it(candidate, &mut best, &mut left) && drops) {
                        at += length;
                    }
                }
                length /= 2;
            }
        }
        for at in 0..best.len() {
            while at < best.len() && best[at] > 0 {
                let mut half = best.clone();
                half[at] /= 2;
                if try_it(half, &mut best, &mut left) {
                    continue;
                }
                let mut less = best.clone();
                less[at] -= 1;
                if !try_it(less, &mut best, &mut left) {
                    break;
                }
            }
        }
        if best == before || left == 0 {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a list of numbers only one above 40 matters.
    #[test]
    fn only_what_matters_remains() {
        let list = |tape: &mut Tape| -> Vec<u64> {
            let length = tape.below(100);
            (0..length).map(|_| tape.below(1000)).collect()
        };
        let shows = |tape: &mut Tape| list(tape).iter().any(|number| *number > 40);
        let mut seeded = Tape::of_seed(3);
        assert!(shows(&mut seeded));
        let smallest = smaller(seeded.made().to_vec(), 10_000, shows);
        assert_eq!(list(&mut Tape::given(smallest)), [41]);
    }

    #[test]
    fn attempts_are_bounded() {
        let mut tried = 0;
        smaller((0..1000).collect(), 50, |_| {
            tried += 1;
            true
        });
        assert!(tried <= 50);
    }
}
