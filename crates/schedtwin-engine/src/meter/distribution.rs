// SPDX-License-Identifier: GPL-2.0-or-later
//! A distribution of durations whose memory does not grow with the number of samples.
//!
//! Count, sum, least and greatest are integers and exact, hence so is the mean. Samples are counted in
//! the buckets of a histogram with high dynamic range (HdrHistogram, two significant digits), which is
//! one addition. They are at most 1/128 of their value wide, so a quantile is at most 0.8 % above the
//! true one, and it never leaves the range of the samples.
//!
//! ```text
//!  value      0 .. 255      256 .. 511     512 .. 1023    1024 .. 2047
//!  width      1             2              4              8               one in 128 .. 256
//! ```
//!
//! References: Gil Tene, HdrHistogram.

use schedtwin_types::Ns;
use std::ops::Range;

/// The longest duration that a bucket of its own exists for: 1000 s, far longer than runs are.
/// Longer ones count in the last bucket; mean and maximum stay exact.
const LONGEST_NS: Ns = 1_000_000_000_000;
/// A power of two of values has 2^7 buckets: two digits take so many (1/128 < 1 %), and results promise these.
const BUCKET_BITS: u32 = 7;
const BUCKETS: usize = bucket_of(LONGEST_NS) + 1;

/// The bucket of a value.
#[inline(always)]
const fn bucket_of(value: Ns) -> usize {
    // Values below 2^8 have a bucket each.
    let width_bits = (63 - (value | ((2 << BUCKET_BITS) - 1)).leading_zeros()) - BUCKET_BITS;
    ((width_bits as usize) << BUCKET_BITS) + (value >> width_bits) as usize
}

/// The lowest value of a bucket.
const fn lowest_value(bucket: usize) -> Ns {
    let width_bits = (bucket >> BUCKET_BITS).saturating_sub(1);
    ((bucket - (width_bits << BUCKET_BITS)) as Ns) << width_bits
}

/// Durations in ns.
#[derive(Debug)]
pub(crate) struct Distribution {
    count: u64,
    sum: u128,
    min: Ns,
    max: Ns,
    /// Samples per bucket. Counts of 32 bits halve the memory, 18 kB each; they saturate. There are none before the first
    /// sample, but space for all: a machine of many CPUs has thousands of distributions, most of
    /// which get no sample, and memory that nobody writes to costs nothing.
    buckets: Vec<u32>,
}

impl Clone for Distribution {
    /// The copy has space for all buckets, too.
    fn clone(&self) -> Distribution {
        let mut copy = Distribution { buckets: Vec::with_capacity(BUCKETS), ..*self };
        copy.buckets.extend_from_slice(&self.buckets);
        copy
    }
}

impl Distribution {
    pub(crate) fn new() -> Distribution {
        let buckets = Vec::with_capacity(BUCKETS);
        Distribution { count: 0, sum: 0, min: Ns::MAX, max: 0, buckets }
    }

    /// Counts one sample.
    #[inline]
    pub(crate) fn record(&mut self, value: Ns) {
        self.record_in(Distribution::bucket(value), value);
    }

    /// Where a sample counts: the same in all distributions.
    #[inline]
    pub(super) fn bucket(value: Ns) -> usize {
        bucket_of(value.min(LONGEST_NS))
    }

    /// Counts one sample in its bucket.
    #[inline]
    pub(super) fn record_in(&mut self, bucket: usize, value: Ns) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match self.buckets.get_mut(bucket) {
            Some(samples) => *samples = samples.saturating_add(1),
            None => self.begin(bucket),
        }
    }

    /// The first sample.
    #[cold]
    fn begin(&mut self, bucket: usize) {
        self.buckets.resize(BUCKETS, 0);
        self.buckets[bucket] = 1;
    }

    /// Adds all samples of `other`.
    pub(super) fn merge(&mut self, other: &Distribution) {
        let used = other.used();
        if !used.is_empty() {
            self.buckets.resize(BUCKETS, 0);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, other) in self.buckets[used.clone()].iter_mut().zip(&other.buckets[used]) {
            *mine = mine.saturating_add(*other);
        }
    }

    /// The buckets from the least sample's to the greatest's: all others are empty.
    fn used(&self) -> Range<usize> {
        match self.count {
            0 => 0..0,
            _ => Distribution::bucket(self.min)..Distribution::bucket(self.max) + 1,
        }
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
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum, ns.
    pub(super) fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact mean, ns.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The exact greatest sample, ns.
    pub(super) fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max as f64)
    }

    /// For each of `quantiles`, none of which is 0: the value that this share of the samples does not exceed, ns,
    /// within 1 %. It is the highest value of a bucket, the first up to which there are that many samples.
    pub(crate) fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Option<f64>; N] {
        let used = self.used();
        // Less than `count` where a bucket is saturated.
        let all: u64 = self.buckets[used.clone()].iter().map(|samples| u64::from(*samples)).sum();
        let wanted = quantiles.map(|quantile| ((quantile * all as f64).ceil() as u64).max(1));
        let mut found = [None; N];
        let mut up_to = 0;
        for bucket in used.filter(|bucket| self.buckets[*bucket] > 0) {
            up_to += u64::from(self.buckets[bucket]);
            for (found, wanted) in found.iter_mut().zip(wanted) {
                if found.is_none() && up_to >= wanted {
                    let highest = lowest_value(bucket + 1) - 1;
                    *found = Some(highest.clamp(self.min, self.max) as f64);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

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
        let found = whole.quantiles([0.5, 0.9, 0.99]);
        for (found, exact) in found.into_iter().zip([1_850_000.0, 3_330_000.0, 3_663_000.0]) {
            let found = found.unwrap();
            assert!((found - exact).abs() <= 0.01 * exact, "{found} for {exact}");
        }
    }

    #[test]
    fn extremes_are_kept() {
        let mut one = Distribution::new();
        assert_eq!((one.mean(), one.max(), one.quantiles([0.5])), (None, None, [None]));
        one.record(0);
        let p99 = one.quantiles([0.99]);
        assert_eq!((one.mean(), one.max(), p99), (Some(0.0), Some(0.0), [Some(0.0)]));
        one.record(5 * LONGEST_NS);
        assert_eq!(one.max(), Some(5.0 * LONGEST_NS as f64));
        let p99 = one.quantiles([0.99])[0].unwrap();
        assert!(p99 >= LONGEST_NS as f64 && p99 <= 5.0 * LONGEST_NS as f64);
    }

    /// Buckets and quantiles are those of the library's histogram.
    #[test]
    fn quantiles_are_those_of_hdr_histogram() {
        let mut direct = Histogram::<u32>::new_with_bounds(1, LONGEST_NS, 2).unwrap();
        let mut ours = Distribution::new();
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let spread = (1..20_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 60));
        for value in edges.chain(spread).filter(|value| *value <= LONGEST_NS) {
            direct.saturating_record(value);
            ours.record(value);
        }
        for thousandth in 1..=1000 {
            let quantile = f64::from(thousandth) / 1000.0;
            let expected = direct.value_at_quantile(quantile).clamp(ours.min, ours.max) as f64;
            assert_eq!(ours.quantiles([quantile]), [Some(expected)], "{quantile}");
        }
    }

    #[test]
    fn buckets_join_without_gap() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(lowest_value(bucket)), bucket);
            assert_eq!(bucket_of(lowest_value(bucket + 1) - 1), bucket);
        }
    }
}
