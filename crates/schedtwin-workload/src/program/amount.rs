// SPDX-License-Identifier: GPL-2.0-or-later
//! How much: work, pauses and device times of built-in workloads, drawn from integer tables.
//!
//! A table is a distribution as its 17 quantiles 0, 1/16, ... 1: a draw of 64 bits picks one of the 16
//! pieces with its upper bits and a place in it with the others. Nothing but integers decides, so
//! a draw is the same on every computer.
//!
//! ```text
//! quantiles   52      70        359    671  ..   1461
//!             |--------|---------|------|--  --  --|        each piece holds 1/16 of the draws
//! ```

use schedtwin_types::draw::in_range;

/// Pieces of a table.
const PIECES: usize = 16;
/// Per cent of one.
const HUNDRED: u64 = 100;

/// A distribution: its quantiles 0, 1/16, ... 1, ascending.
pub(crate) type Quantiles = [u32; PIECES + 1];

/// The exponential distribution of mean 1000: -1000 ln(1 - p), its tail cut at p = 1 - 1/64.
const EXPONENTIAL: Quantiles =
    [0, 65, 134, 208, 288, 375, 470, 575, 693, 827, 981, 1163, 1386, 1674, 2079, 2773, 4159];
/// Mean of that table by its pieces, whose straightness and cut tail change it a little: see the test.
const EXPONENTIAL_MEAN: u64 = 986;

/// How much, of nanoseconds of work or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Always the same.
    Fixed(u64),
    /// From the first to the second, all equally likely.
    Uniform(u64, u64),
    /// The gaps of things that come independently of each other, with this mean.
    Exponential(u64),
    /// A measured distribution times so many per cent.
    Table(&'static Quantiles, u64),
}

impl Amount {
    /// Returns the amount for a draw of 64 bits.
    pub fn of(self, word: u64) -> u64 {
        match self {
            Amount::Fixed(amount) => amount,
            Amount::Uniform(min, max) => in_range(word, min, max),
            Amount::Exponential(mean) => {
                let thousandths = quantile(&EXPONENTIAL, word, mean);
                thousandths / EXPONENTIAL_MEAN
            }
            Amount::Table(quantiles, percent) => quantile(quantiles, word, percent) / HUNDRED,
        }
    }

    /// Whether a draw is needed.
    pub fn is_drawn(self) -> bool {
        !matches!(self, Amount::Fixed(_))
    }
}

/// The quantile that a draw falls on, times `factor`.
fn quantile(quantiles: &Quantiles, word: u64, factor: u64) -> u64 {
    let piece = (word >> 60) as usize;
    let place = (word >> 28) & 0xffff_ffff;
    let (low, high) = (u64::from(quantiles[piece]), u64::from(quantiles[piece + 1]));
    let between = ((u128::from((high - low) * factor) * u128::from(place)) >> 32) as u64;
    low * factor + between
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::draw::Draws;

    fn drawn(amount: Amount) -> Vec<u64> {
        let draws = Draws::new(1, "test", "amount");
        let mut all: Vec<u64> = (0..20_000).map(|ordinal| amount.of(draws.nth(ordinal))).collect();
        all.sort_unstable();
        all
    }

    fn mean(all: &[u64]) -> u64 {
        all.iter().sum::<u64>() / all.len() as u64
    }

    #[test]
    fn a_table_gives_its_quantiles() {
        const TABLE: Quantiles =
            [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500, 600, 700, 1000];
        let all = drawn(Amount::Table(&TABLE, 200));
        assert!(all[0] >= 20 && all[all.len() - 1] < 2000);
        for (permille, expected) in [(250, 100), (500, 180), (750, 800)] {
            let got = all[all.len() * permille / 1000];
            assert!(got.abs_diff(expected) * 20 <= expected, "{permille}: {got}");
        }
    }

    #[test]
    fn gaps_have_their_mean_and_many_are_short() {
        let all = drawn(Amount::Exponential(1_000_000));
        assert!(mean(&all).abs_diff(1_000_000) < 20_000, "{}", mean(&all));
        let short = all.iter().filter(|gap| **gap < 693_000).count();
        assert!(short.abs_diff(all.len() / 2) < all.len() / 40, "{short}");
        let doubled: u32 = EXPONENTIAL.windows(2).map(|p| p[0] + p[1]).sum();
        assert_eq!((u64::from(doubled) + 16) / 32, EXPONENTIAL_MEAN);
    }

    #[test]
    fn uniform_and_fixed() {
        assert!(drawn(Amount::Uniform(5, 7)).iter().all(|v| (5..=7).contains(v)));
        assert_eq!(Amount::Fixed(9).of(12345), 9);
    }
}
