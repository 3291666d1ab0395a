//! Randomness: every draw is keyed by who draws, what for, and the how-manieth draw it is.
//!
//! A draw never depends on how many others were made, so a policy that changes the order of events does
//! not shift the dice of anything else.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// When the workload starts against the tick and PELT's segments.
    StartPhase = 1,
    /// How late a timer interrupt is.
    TimerLatency = 2,
    /// How long an inter-processor interrupt takes.
    IpiLatency = 3,
    /// The kernel's own pseudo-random sequence.
    KernelRandom = 4,
}

/// A number in `min..=max`, the `ordinal`th of `purpose` by `who`.
#[inline]
pub fn draw(seed: u64, who: u64, purpose: Purpose, ordinal: u64, min: u64, max: u64) -> u64 {
    if min >= max {
        return min;
    }
    let key = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((purpose as u64) << 56 ^ who << 40 ^ ordinal);
    let mut generator = SplitMix64::seed_from_u64(key);
    // Multiply-shift: the bias is below 2^-32 for ranges of nanoseconds.
    let range = max - min + 1;
    min + ((generator.next_u64() as u128 * range as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_keyed_and_in_range() {
        let at = |ordinal| draw(7, 3, Purpose::TimerLatency, ordinal, 100, 600);
        assert_eq!(at(5), at(5));
        let all: Vec<u64> = (0..1000).map(at).collect();
        assert!(all.iter().all(|v| (100..=600).contains(v)));
        let mean = all.iter().sum::<u64>() / 1000;
        assert!((330..370).contains(&mean), "{mean}");
        assert_ne!(
            draw(1, 0, Purpose::StartPhase, 0, 0, 1 << 40),
            draw(2, 0, Purpose::StartPhase, 0, 0, 1 << 40)
        );
    }
}
