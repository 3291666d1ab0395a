// SPDX-License-Identifier: GPL-2.0-or-later
//! Random numbers of tests and generators of cases, the same on every computer: splitmix64.
//!
//! What is random in a simulation is drawn by name instead ([`crate::draw`]).
//!
//! Sebastiano Vigna's constants, <https://prng.di.unimi.it/splitmix64.c> (public domain).

/// A stream of random words.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream with this state.
    pub fn with_state(state: u64) -> Rng {
        Rng(state)
    }

    /// The stream of a case.
    pub fn new(seed: u64, case: u64) -> Rng {
        let mut rng = Rng(seed);
        // Decorrelates neighbouring cases: their streams start far apart.
        let start = rng.next() ^ case.wrapping_mul(0xd134_2543_de82_ef95);
        Rng(start)
    }

    /// 64 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 ≤ value < `bound` (slightly uneven, which does no harm here).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// True once in `n` times.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number of any magnitude up to 2^`bits`: small ones as likely as large ones.
    #[inline]
    pub fn magnitude(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        if bits == 0 { 0 } else { self.next() >> (64 - bits) }
    }

    /// One of `values`.
    #[inline]
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}
