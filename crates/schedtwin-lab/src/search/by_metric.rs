// SPDX-License-Identifier: GPL-2.0-or-later
//! Which settings cause the change of a metric.
//!
//! 1. Both kernels run with the same seeds. If their paired difference is within chance, there is nothing to explain, and whatever
//!    settings were named would explain noise.
//! 2. A kernel is bad if its mean over the seeds is nearer to the bad kernel's mean than to the good one's.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::kernel_file::mixture::Mixture;
use schedtwin_types::metric::{Better, declared};

use super::bisect::{self, Bisected};
use super::{Case, caught};
use crate::Progress;
use crate::selector::Selector;
use crate::stats::{self, Difference};
use crate::twin::Column;
use crate::value::{self, Value};

/// Why there is nothing to bisect.
#[derive(Clone, Debug, PartialEq)]
pub enum NoPair {
    /// One of the kernels does not have the metric.
    Unmeasured,
    /// Both have this mean.
    Equal(f64),
    /// The paired difference is within chance.
    Chance {
        /// The good kernel's mean.
        good: Value,
        /// The bad kernel's mean.
        bad: Value,
        /// The 95 % interval of their paired difference, which holds 0.
        ci95: [f64; 2],
    },
}

/// The means under the two kernels, and what parts them.
#[derive(Clone, Debug, PartialEq)]
pub struct ByMetric {
    /// The good kernel's mean.
    pub good: Value,
    /// The bad kernel's mean.
    pub bad: Value,
    /// The bad kernel's values less the good one's, seed by seed.
    pub difference: Difference,
    /// The direction in which the metric is better.
    pub better: Better,
    /// The settings.
    pub found: Bisected,
}

impl ByMetric {
    /// Whether the kernel that was given as the bad one is the better one; `None`: the metric has no better direction.
    pub fn bad_is_better(&self) -> Option<bool> {
        match self.better {
            Better::Higher => Some(self.difference.diff > 0.0),
            Better::Lower => Some(self.difference.diff < 0.0),
            Better::Neutral => None,
        }
    }
}

/// Bisects a metric over `iterations` seeds from the case's on.
pub fn find(
    case: &Case,
    mixture: &Mixture<'_>,
    [good, bad]: [&KernelFile; 2],
    selector: &Selector,
    iterations: u64,
) -> Result<ByMetric, NoPair> {
    let samples = |kernel: &KernelFile| -> Option<Vec<Option<f64>>> {
        let scenario = caught(|| case.scenario(kernel)).ok()?.ok()?;
        let column = Column { kernel: kernel.identity.clone(), scenario };
        let seeds = case.seed..=case.seed + (iterations - 1);
        let known = caught(|| value::samples_of_runs(&column, seeds, selector, &Progress::new()));
        known.ok()?.ok()?.ok()
    };
    let mean = |samples: &[Option<f64>]| {
        stats::estimate(samples).map(|estimate| Value::new(estimate.mean, estimate.ci95))
    };
    let both = [samples(good), samples(bad)];
    let [Some(of_good), Some(of_bad)] = both else { return Err(NoPair::Unmeasured) };
    let known = mean(&of_good).zip(mean(&of_bad)).zip(stats::paired(&of_good, &of_bad));
    let ((good, bad), difference) = known.ok_or(NoPair::Unmeasured)?;
    if good.value == bad.value {
        return Err(NoPair::Equal(good.value));
    }
    // One run has no interval: what it says is told as such.
    if let Some(ci95) = difference.ci95.filter(|_| !difference.significant) {
        return Err(NoPair::Chance { good, bad, ci95 });
    }
    let is_bad = |kernel: &KernelFile| {
        let mean = samples(kernel).and_then(|samples| mean(&samples));
        mean.is_some_and(|mean| (mean.value - bad.value).abs() < (mean.value - good.value).abs())
    };
    let name = selector.text().split(['.', ',', '{', ' ']).next().unwrap_or_default();
    let better = declared(name).map_or(Better::Neutral, |metric| metric.better);
    Ok(ByMetric { good, bad, difference, better, found: bisect::find(mixture, is_bad) })
}
