// SPDX-License-Identifier: GPL-2.0-or-later
//! Repetitions of a measurement and their spread.
//!
//! A mean would follow the one batch in which another thread had the CPU. Medians of batches do not: a repetition is one,
//! and the spread between repetitions is what the machine itself does (clocks, the home of a line, a busy neighbour).

use super::Samples;
use std::io;

/// Spread of repetitions, (largest - smallest) / median, up to which a measurement is steady.
pub const STEADY_WITHIN: f64 = 0.3;

/// Length of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Repetitions that count.
    pub repetitions: u32,
    /// Batches of a repetition.
    pub batches: u32,
    /// Round trips of a line in a batch; the other measurements take a fixed share of it.
    pub trips: u32,
    /// Attempts at a steady measurement.
    pub rounds: u32,
}

impl Effort {
    /// Some seconds for two CPUs, less than a minute for a server with every class of pairs.
    pub const FULL: Effort = Effort { repetitions: 21, batches: 31, trips: 1000, rounds: 3 };

    /// The least that has every row.
    pub const TINY: Effort = Effort { repetitions: 2, batches: 1, trips: 8, rounds: 1 };

    /// Batches of all repetitions, with the one that warms up.
    pub(super) fn batches_in_all(&self) -> u32 {
        (self.repetitions + 1) * self.batches
    }

    /// A share of the round trips, at least one.
    pub(super) fn share(&self, of: u32) -> u32 {
        (self.trips / of).max(1)
    }

    /// Runs all batches; of each of their `N` values a sample of the medians of repetitions.
    pub(super) fn repeat<const N: usize>(
        &self,
        mut batch: impl FnMut() -> [f64; N],
    ) -> [Sample; N] {
        let mut repetitions: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
        for repetition in 0..=self.repetitions {
            let batches: Vec<[f64; N]> = (0..self.batches).map(|_| batch()).collect();
            // The first one warms up caches and clocks.
            if repetition > 0 {
                for (index, medians) in repetitions.iter_mut().enumerate() {
                    let values = batches.iter().map(|values| values[index]).collect();
                    medians.push(Sample::of(values).median());
                }
            }
        }
        repetitions.map(Sample::of)
    }
}

/// Values of the repetitions of a measurement, rising; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Makes a sample of at least one finite value.
    ///
    /// # Panics
    ///
    /// If there is no value, or one is not finite: measurements divide by counts, never by what they measured.
    pub fn of(mut values: Vec<f64>) -> Sample {
        assert!(!values.is_empty() && values.iter().all(|value| value.is_finite()), "{values:?}");
        values.sort_by(f64::total_cmp);
        Sample(values)
    }

    /// The value in the middle, or the mean of the two there.
    pub fn median(&self) -> f64 {
        let count = self.0.len();
        f64::midpoint(self.0[(count - 1) / 2], self.0[count / 2])
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// Count of the values.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The sample of values made of these.
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Sample {
        Sample::of(self.0.iter().map(|value| of(*value)).collect())
    }

    /// The sample of all values of several.
    pub fn pool<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Option<Sample> {
        let values: Vec<f64> = samples.into_iter().flat_map(|sample| sample.0.clone()).collect();
        (!values.is_empty()).then(|| Sample::of(values))
    }

    /// (Largest - smallest) / median; infinite where the median is not positive.
    pub fn relative_spread(&self) -> f64 {
        let median = self.median();
        if median > 0.0 { (self.max() - self.min()) / median } else { f64::INFINITY }
    }
}

/// Measures until the first quantity is steady, [`Effort::rounds`] times at most; the round with the smallest spread of
/// that quantity, and whether it is steady.
pub(super) fn steadily(
    effort: &Effort,
    mut measure: impl FnMut() -> io::Result<Samples>,
) -> io::Result<(Samples, bool)> {
    let mut best = measure()?;
    for _ in 1..effort.rounds {
        if best[0].1.relative_spread() <= STEADY_WITHIN {
            break;
        }
        let again = measure()?;
        if again[0].1.relative_spread() < best[0].1.relative_spread() {
            best = again;
        }
    }
    let is_steady = best[0].1.relative_spread() <= STEADY_WITHIN;
    Ok((best, is_steady))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Quantity;

    #[test]
    fn a_repetition_is_the_median_of_its_batches_and_the_first_does_not_count() {
        let effort = Effort { repetitions: 2, batches: 3, trips: 1, rounds: 1 };
        // A batch in which another thread had the CPU changes nothing.
        let batches = [900.0, 900.0, 900.0, 10.0, 9000.0, 12.0, 20.0, 18.0, 22.0];
        let mut next = batches.iter();
        let [sample, halved] = effort.repeat(|| {
            let value = *next.next().unwrap();
            [value, value / 2.0]
        });
        assert_eq!(next.next(), None);
        assert_eq!(effort.batches_in_all() as usize, batches.len());
        assert_eq!(
            (sample.min(), sample.median(), sample.max(), sample.len()),
            (12.0, 16.0, 20.0, 2)
        );
        assert_eq!(halved, sample.map(|value| value / 2.0));
        let pooled = Sample::pool([&sample, &halved]).unwrap();
        assert_eq!(
            (pooled.min(), pooled.median(), pooled.max(), pooled.len()),
            (6.0, 11.0, 20.0, 4)
        );
        assert_eq!(Sample::pool([]), None);
    }

    #[test]
    fn a_wide_spread_is_measured_again_and_the_narrowest_kept() {
        let effort = Effort { rounds: 3, ..Effort::TINY };
        let measured = |rounds: &[[f64; 2]]| {
            let mut next = rounds.iter();
            let measured = steadily(&effort, || {
                let values = next.next().expect("a round").to_vec();
                Ok(vec![(Quantity::Line, Sample::of(values))])
            });
            let (rows, is_steady) = measured.unwrap();
            (rows[0].1.min(), is_steady, next.count())
        };
        assert_eq!(measured(&[[10.0, 12.0], [0.0, 0.0]]), (10.0, true, 1));
        assert_eq!(measured(&[[10.0, 20.0], [11.0, 11.0]]), (11.0, true, 0));
        assert_eq!(measured(&[[10.0, 20.0], [10.0, 15.0], [10.0, 17.0]]), (10.0, false, 0));
        // Nothing measured is not steady.
        assert_eq!(measured(&[[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0]]), (0.0, false, 0));
    }
}
