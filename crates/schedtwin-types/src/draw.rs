// SPDX-License-Identifier: GPL-2.0-or-later
//! Randomness: every draw is keyed by who draws, what for, and the how-manieth draw it is.
//!
//! A draw never depends on how many others were made, so a policy that changes the order of events does
//! not shift the dice of anything else: the seventh frame is as heavy under every kernel.
//!
//! The twin draws by number ([`draw`]: CPUs), the threads and devices of a workload by name ([`Draws`]).

use crate::fnv::Fnv1a;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The quantity that is drawn.
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
    /// When the periods of a task group's `cpu.max` begin.
    CfsPeriod = 5,
    /// The seed of a workload that is not the first of several.
    Job = 6,
}

/// A number in `min..=max`, the `ordinal`th of `purpose` by `who`.
#[inline]
pub fn draw(seed: u64, who: u64, purpose: Purpose, ordinal: u64, min: u64, max: u64) -> u64 {
    let key = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((purpose as u64) << 56 ^ who << 40 ^ ordinal);
    in_range(word(key), min, max)
}

/// The draws of one named thing for one named purpose.
///
/// ```
/// use schedtwin_types::draw::Draws;
/// let work = Draws::new(1, "RenderThread", "draw");
/// assert_eq!(work.nth(7), Draws::new(1, "RenderThread", "draw").nth(7));
/// assert_ne!(work.nth(7), work.nth(8));
/// assert_ne!(work.nth(7), Draws::new(1, "RenderThread", "sync").nth(7));
/// assert_ne!(work.nth(7), Draws::new(2, "RenderThread", "draw").nth(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// Keyed by the run's seed, the name of the thread or device, and what it draws.
    pub fn new(seed: u64, who: &str, what: &str) -> Draws {
        // 0xff is in no name, so the border between them counts.
        let name = Fnv1a::of(who.bytes().chain([0xff]).chain(what.bytes())).digest();
        // Through the generator, so that neighbouring keys and seeds have nothing in common.
        Draws { key: word(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name) }
    }

    /// The `ordinal`th draw: any number of 64 bits, all equally likely.
    #[inline]
    pub fn nth(&self, ordinal: u64) -> u64 {
        word(self.key.wrapping_add(ordinal))
    }
}

/// A number drawn from a distribution that is known by its 10th, 50th, 90th and 99th percentile, in ascending order: linear between
/// them, flat beyond them.
///
/// ```
/// use schedtwin_types::draw::from_quantiles;
/// let drawn = |word| from_quantiles([100, 200, 400, 4000], word);
/// assert_eq!([0, u64::MAX / 2, u64::MAX].map(drawn), [100, 199, 4000]);
/// ```
pub fn from_quantiles([p10, p50, p90, p99]: [u64; 4], word: u64) -> u64 {
    let at = in_range(word, 0, 9_999);
    let between = |from: u64, to: u64, begin: u64, end: u64| {
        from + to.saturating_sub(from) * (at - begin) / (end - begin)
    };
    match at {
        0..1_000 => p10,
        1_000..5_000 => between(p10, p50, 1_000, 5_000),
        5_000..9_000 => between(p50, p90, 5_000, 9_000),
        9_000..9_900 => between(p90, p99, 9_000, 9_900),
        _ => p99,
    }
}

/// A number in `min..=max` from any number of 64 bits; `min` if the range is empty.
#[inline]
pub fn in_range(word: u64, min: u64, max: u64) -> u64 {
    if min >= max {
        return min;
    }
    // Multiply-shift: the bias is below 2^-32 for ranges of nanoseconds.
    let range = max - min + 1;
    min + ((word as u128 * range as u128) >> 64) as u64
}

#[inline]
fn word(key: u64) -> u64 {
    SplitMix64::seed_from_u64(key).next_u64()
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

    #[test]
    fn named_draws_fill_the_range_evenly() {
        let draws = Draws::new(3, "RenderThread", "draw");
        let mut quarters = [0; 4];
        for ordinal in 0..4000 {
            quarters[in_range(draws.nth(ordinal), 0, 3) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (900..1100).contains(count)), "{quarters:?}");
        assert_ne!(Draws::new(3, "ab", "c"), Draws::new(3, "a", "bc"));
    }
}
