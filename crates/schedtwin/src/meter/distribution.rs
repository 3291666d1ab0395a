//! A distribution of durations whose memory does not grow with the number of samples.
//!
//! Count, sum, least and greatest are integers and exact, hence so is the mean. Quantiles come from
//! a histogram with high dynamic range (HdrHistogram, two significant digits): its buckets are at
//! most 1/128 of their value wide, so a quantile is at most 0.8 % above the true one, and it never
//! leaves the range of the samples.
//!
//! References: Gil Tene, HdrHistogram.

use hdrhistogram::Histogram;
use schedtwin_types::Ns;

/// The longest duration that a bucket of its own exists for: 1000 s, far longer than runs are.
/// Longer ones count in the last bucket; mean and maximum stay exact.
const LONGEST_NS: Ns = 1_000_000_000_000;
/// Two digits keep quantiles within 1 %, which is what results promise.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Durations in ns.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    count: u64,
    sum: u128,
    min: Ns,
    max: Ns,
    /// Counts of 32 bits halve the memory, 17 kB each; they saturate.
    histogram: Histogram<u32>,
}

impl Distribution {
    pub(super) fn new() -> Distribution {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
            .expect("constant bounds are valid");
        Distribution { count: 0, sum: 0, min: Ns::MAX, max: 0, histogram }
    }

    /// Counts one sample.
    #[inline]
    pub(super) fn record(&mut self, value: Ns) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.saturating_record(value);
    }

    /// Adds all samples of `other`.
    pub(super) fn merge(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
    }

    /// All samples of `parts` in one distribution.
    pub(super) fn merged<'a>(parts: impl IntoIterator<Item = &'a Distribution>) -> Distribution {
        let mut whole = Distribution::new();
        for part in parts {
            whole.merge(part);
        }
        whole
    }

    /// The number of samples.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The exact mean, ns.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The exact greatest sample, ns.
    pub(super) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max as f64)
    }

    /// The value that a share `quantile` of the samples do not exceed, ns, within 1 %.
    pub(super) fn quantile(&self, quantile: f64) -> Option<f64> {
        (self.count > 0).then(|| {
            let value = self.histogram.value_at_quantile(quantile);
            value.clamp(self.min, self.max) as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_per_cent_and_the_rest_is_exact() {
        let mut low = Distribution::new();
        let mut high = Distribution::new();
        for value in 1..=100_000u64 {
            if value % 2 == 0 { low.record(value * 37) } else { high.record(value * 37) }
        }
        let whole = Distribution::merged([&low, &high]);
        assert_eq!(whole.count(), 100_000);
        assert_eq!(whole.mean(), Some(100_001.0 / 2.0 * 37.0));
        assert_eq!(whole.max(), Some(3_700_000.0));
        for (quantile, exact) in [(0.5, 1_850_000.0), (0.9, 3_330_000.0), (0.99, 3_663_000.0)] {
            let found = whole.quantile(quantile).unwrap();
            assert!((found - exact).abs() <= 0.01 * exact, "{quantile}: {found} for {exact}");
        }
    }

    #[test]
    fn extremes_are_kept() {
        let mut one = Distribution::new();
        assert_eq!((one.mean(), one.max(), one.quantile(0.5)), (None, None, None));
        one.record(0);
        assert_eq!((one.mean(), one.max(), one.quantile(0.99)), (Some(0.0), Some(0.0), Some(0.0)));
        one.record(5 * LONGEST_NS);
        assert_eq!(one.max(), Some(5.0 * LONGEST_NS as f64));
        let p99 = one.quantile(0.99).unwrap();
        assert!(p99 >= LONGEST_NS as f64 && p99 <= 5.0 * LONGEST_NS as f64);
    }
}
