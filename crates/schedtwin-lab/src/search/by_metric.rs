// SPDX-License-Identifier: GPL-2.0-or-later
//! Which settings cause the change of a metric.
//!
//! A kernel is bad if its mean over the seeds is nearer to the bad kernel's mean than to the good one's.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::kernel_file::mixture::Mixture;

use super::bisect::{self, Bisected};
use super::{Case, caught};
use crate::Progress;
use crate::selector::Selector;
use crate::twin::Column;
use crate::value::{self, Value};

/// Why there is nothing to bisect.
#[derive(Clone, Debug, PartialEq)]
pub enum NoPair {
    /// One of the kernels does not have the metric.
    Unmeasured,
    /// Both have this mean.
    Equal(f64),
}

/// The means under the two kernels, and what parts them.
#[derive(Clone, Debug, PartialEq)]
pub struct ByMetric {
    /// The good kernel's mean.
    pub good: Value,
    /// The bad kernel's mean.
    pub bad: Value,
    /// The settings.
    pub found: Bisected,
}

impl ByMetric {
    /// Whether the means' 95 % intervals overlap: chance may have made the difference.
    pub fn may_be_chance(&self) -> bool {
        let both = self.good.half_width.zip(self.bad.half_width);
        both.is_some_and(|(a, b)| (self.good.value - self.bad.value).abs() <= a + b)
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
    let mean = |kernel: &KernelFile| -> Option<Value> {
        let scenario = caught(|| case.scenario(kernel)).ok()?.ok()?;
        let column = Column { kernel: kernel.identity.clone(), scenario };
        let seeds = case.seed..=case.seed + (iterations - 1);
        let known = caught(|| value::of_runs(&column, seeds, selector, &Progress::new())).ok()?;
        known.ok()?.ok()
    };
    let (good, bad) = (mean(good).ok_or(NoPair::Unmeasured)?, mean(bad).ok_or(NoPair::Unmeasured)?);
    if good.value == bad.value {
        return Err(NoPair::Equal(good.value));
    }
    let is_bad = |kernel: &KernelFile| {
        mean(kernel)
            .is_some_and(|mean| (mean.value - bad.value).abs() < (mean.value - good.value).abs())
    };
    Ok(ByMetric { good, bad, found: bisect::find(mixture, is_bad) })
}
