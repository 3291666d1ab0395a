// SPDX-License-Identifier: GPL-2.0-or-later
//! Is the test honest? A kernel compared to itself must look different in one of twenty tables.
//!
//! A/A calibration: take `2 n` fresh seeds, call the runs of the first `n` one kernel and the others
//! another, compare, and count how often a metric is called significant. Both tests are put to the
//! test: Welch's, made for unrelated groups, and the paired one, whose pairs are here unrelated
//! runs.
//! With a true level of 5 % and 400 comparisons the share of one metric lies between 3 % and 7 % in
//! 19 cases of 20 (2 * sqrt(0.05 * 0.95 / 400) = 2.2 %).
//!
//! A third column puts to the test what `--fail-if` does: it looks before all seeds are run, and stops where the answer is certain.
//!
//! Metrics whose samples are all the same never differ; they are left out, as they would make the
//! overall share look better than it is.

use std::io;

use rayon::prelude::*;

use crate::Progress;
use crate::compare::Subject;
use crate::measured::Measured;
use crate::stats;
use crate::stopping;

/// How often a metric was called significant though nothing differed.
#[derive(Clone, Debug, PartialEq)]
pub struct FalseAlarms {
    /// The metric's title; empty for the total of all metrics.
    pub metric: String,
    /// Comparisons in which a difference could have been seen.
    pub comparisons: u64,
    /// Called significant by the paired test.
    pub paired: u64,
    /// Called significant by Welch's test.
    pub welch: u64,
    /// Called different by a search for an answer, which may look and stop before the last seed ([`crate::stopping`]).
    pub looks: u64,
}

impl FalseAlarms {
    fn none(metric: String) -> FalseAlarms {
        FalseAlarms { metric, comparisons: 0, paired: 0, welch: 0, looks: 0 }
    }

    /// The paired test's share, 0 to 1.
    pub fn paired_share(&self) -> f64 {
        self.paired as f64 / self.comparisons.max(1) as f64
    }

    /// The search's share, 0 to 1.
    pub fn looks_share(&self) -> f64 {
        self.looks as f64 / self.comparisons.max(1) as f64
    }

    /// Welch's share, 0 to 1.
    pub fn welch_share(&self) -> f64 {
        self.welch as f64 / self.comparisons.max(1) as f64
    }
}

/// An A/A calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// All metrics together.
    pub overall: FalseAlarms,
    /// Metric by metric.
    pub metrics: Vec<FalseAlarms>,
}

/// Compares `subject` with itself `comparisons` times, `n` seeds a side, from `first_seed` on.
pub fn calibrate<S: Subject>(
    subject: &S,
    first_seed: u64,
    comparisons: usize,
    n: usize,
    progress: &Progress,
) -> io::Result<Calibration> {
    progress.expect_runs((comparisons * 2 * n) as u64);
    let mut metrics: Vec<FalseAlarms> = Vec::new();
    let mut overall = FalseAlarms::none(String::new());
    for comparison in 0..comparisons {
        let seeds = (0..2 * n).map(|i| first_seed + (comparison * 2 * n + i) as u64);
        let results: Vec<_> = seeds
            .collect::<Vec<u64>>()
            .into_par_iter()
            .with_max_len(1)
            .map(|seed| progress.attempt(subject, seed))
            .collect::<io::Result<_>>()?;
        let mut measured = Measured::new(2);
        for (at, result) in results.into_iter().enumerate() {
            // What panicked is kept by `progress`; the pair is left out.
            if let Ok(result) = result {
                measured.add(at / n, at % n, result.metrics);
            }
        }
        for row in measured.rows(n) {
            let values: Vec<f64> = row.samples.iter().flatten().copied().flatten().collect();
            if values.windows(2).all(|pair| pair[0] == pair[1]) {
                continue;
            }
            let paired =
                stats::paired(&row.samples[0], &row.samples[1]).is_some_and(|d| d.significant);
            let welch =
                stats::welch(&row.samples[0], &row.samples[1]).is_some_and(|d| d.significant);
            let looks = paired || stopping::stops_early(&row.samples[0], &row.samples[1]);
            let title = row.title();
            let index = metrics.iter().position(|m| m.metric == title).unwrap_or_else(|| {
                metrics.push(FalseAlarms::none(title));
                metrics.len() - 1
            });
            for tally in [&mut metrics[index], &mut overall] {
                tally.comparisons += 1;
                tally.paired += u64::from(paired);
                tally.welch += u64::from(welch);
                tally.looks += u64::from(looks);
            }
        }
    }
    Ok(Calibration { overall, metrics })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    /// `elapsed` is normal, `wakeup_latency` exponential, `migrations` constant.
    #[test]
    fn normal_and_skewed_data_are_called_different_in_one_of_twenty() {
        let calibration =
            calibrate(&Synthetic::new("base", 100.0, 5.0), 1, 2000, 10, &Progress::new()).unwrap();
        let names: Vec<&str> = calibration.metrics.iter().map(|m| m.metric.as_str()).collect();
        assert_eq!(names, ["elapsed sum", "wakeup_latency p99 task=ui"]);
        for tally in calibration.metrics.iter().chain([&calibration.overall]) {
            for share in [tally.paired_share(), tally.welch_share(), tally.looks_share()] {
                assert!((0.03..=0.07).contains(&share), "{tally:?}");
            }
        }
        assert_eq!(calibration.overall.comparisons, 4000);
    }
}
