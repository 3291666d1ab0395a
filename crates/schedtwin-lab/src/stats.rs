// SPDX-License-Identifier: GPL-2.0-or-later
//! Is the difference between two kernels real, and how large can it be?
//!
//! The idea: every seed is one day in the laboratory. Two kernels that ran the same seeds saw the
//! same phases, interrupts and random job lengths, so their results are *pairs* and only the
//! differences within the pairs matter ([`paired`]). Two kernels that ran different seeds are two
//! independent groups, possibly with different spread ([`welch`]).
//!
//! Terms, for `n` defined values `x`:
//! - mean `m = sum(x) / n`, variance `s2 = sum((x - m)^2) / (n - 1)`, standard error `sqrt(s2 / n)`
//! - the 95 % interval is `m +- t * standard error`, `t` the 0.975 quantile of Student's
//!   distribution with `n - 1` degrees of freedom (Welch–Satterthwaite for two groups)
//! - significant: the two-sided p is below 0.05
//!
//! Undefined values stay undefined: one value has no interval and nothing is significant from
//! it; `None` and non-finite samples are left out; no result is ever NaN. Differences that no value
//! shows beyond rounding (2^-40 of the values) count as none at all.
//!
//! The same bytes on every computer: `+ - * /` and `sqrt` are exact in IEEE 754, sums go in the
//! order of the seeds, and `exp`, `ln` and `lgamma` inside the incomplete beta function come from
//! the libm crate (pure Rust), not from the computer's C library.
//!
//! ```
//! use schedtwin_lab::stats::paired;
//! let base = [Some(18.0), Some(18.4), Some(17.7)];
//! let other = [Some(12.6), Some(13.1), Some(12.4)];
//! let difference = paired(&base, &other).unwrap();
//! assert!(difference.significant && difference.diff_pct.unwrap() < -29.0);
//! ```

use special::Beta;

/// A mean and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Values that were defined.
    pub n: usize,
    /// Their mean, in the metric's unit.
    pub mean: f64,
    /// The 95 % interval of the mean; `None` from one value.
    pub ci95: Option<[f64; 2]>,
}

/// The change from the baseline to another kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Pairs (paired test) or the smaller group (Welch).
    pub n: usize,
    /// Other minus baseline, in the metric's unit.
    pub diff: f64,
    /// The same in percent of the baseline's mean; `None` where that mean is zero, or one of the two is below it, as that of a
    /// margin can be.
    pub diff_pct: Option<f64>,
    /// The 95 % interval of `diff`; `None` from one pair.
    pub ci95: Option<[f64; 2]>,
    /// The same interval in percent of the baseline's mean.
    pub ci95_pct: Option<[f64; 2]>,
    /// Two-sided p of "there is no difference"; `None` from one pair.
    pub p: Option<f64>,
    /// `p < 0.05`.
    pub significant: bool,
    /// It is not that of the values: they were brought to the length of the baseline's runs first.
    pub for_equal_lengths: bool,
}

impl Difference {
    /// Whether nothing changed, in no run.
    pub fn is_none(&self) -> bool {
        self.diff == 0.0 && self.ci95.is_none_or(|[low, high]| low == 0.0 && high == 0.0)
    }

    /// Half the width of the interval in percent of the baseline's mean.
    pub fn half_width_pct(&self) -> Option<f64> {
        self.ci95_pct.map(|[low, high]| (high - low) / 2.0)
    }
}

/// Below this share of the values a difference is the rounding of sums, not an effect.
const ROUNDING: f64 = 1.0 / (1u64 << 40) as f64;

/// A two-sided p below this is called significant.
pub const SIGNIFICANCE: f64 = 0.05;

/// The part of a distribution between two equal tails.
struct Middle {
    share: f64,
    /// The quantile of the normal distribution at the end of it.
    z: f64,
}

const MIDDLE_95: Middle = Middle { share: 0.95, z: 1.959963984540054 };
const MIDDLE_99_9: Middle = Middle { share: 0.999, z: 3.2905267314918945 };

/// The 0.975 quantile of Student's t with `degrees` of freedom (at least 1; may be fractional).
pub fn t_quantile_975(degrees: f64) -> f64 {
    t_quantile(&MIDDLE_95, degrees)
}

/// The interval of 99.9 % of an estimate from `n` values whose 95 % interval is `ci95`.
pub fn widened([low, high]: [f64; 2], n: usize) -> [f64; 2] {
    let degrees = n.saturating_sub(1).max(1) as f64;
    let ratio = t_quantile(&MIDDLE_99_9, degrees) / t_quantile(&MIDDLE_95, degrees);
    let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0 * ratio);
    [middle - half, middle + half]
}

fn t_quantile(middle: &Middle, degrees: f64) -> f64 {
    assert!(degrees >= 1.0, "a t distribution needs a degree of freedom");
    if degrees >= EXPANSION_FROM {
        return expansion(middle.z, degrees);
    }
    let (a, b) = (0.5, degrees / 2.0);
    // t^2 / (t^2 + degrees) follows the beta distribution (1/2, degrees/2).
    let y = middle.share.inv_inc_beta(a, b, a.ln_beta(b));
    (degrees * y / (1.0 - y)).sqrt()
}

/// Degrees of freedom from which the expansion is exact to 12 digits; the inversion of the
/// incomplete beta function loses digits there.
const EXPANSION_FROM: f64 = 500.0;

/// The quantile for many degrees of freedom: the expansion around the normal quantile `z` in powers
/// of 1/degrees, Abramowitz & Stegun 26.7.5.
fn expansion(z: f64, degrees: f64) -> f64 {
    let z2 = z * z;
    let g1 = z * (z2 + 1.0) / 4.0;
    let g2 = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let g3 = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let g4 = z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0;
    z + (g1 + (g2 + (g3 + g4 / degrees) / degrees) / degrees) / degrees
}

/// The two-sided p of a t statistic.
pub fn two_sided_p(t: f64, degrees: f64) -> f64 {
    assert!(degrees >= 1.0, "a t distribution needs a degree of freedom");
    let (a, b) = (degrees / 2.0, 0.5);
    let x = degrees / (degrees + t * t);
    // A product that underflows leaves x = 0: p is then zero to all digits.
    x.inc_beta(a, b, a.ln_beta(b)).clamp(0.0, 1.0)
}

/// Mean and interval of what is defined in `samples`; `None` when nothing is.
pub fn estimate(samples: &[Option<f64>]) -> Option<Estimate> {
    let values: Vec<f64> = defined(samples).collect();
    let moments = Moments::of(&values)?;
    let ci95 = moments.variance.map(|variance| {
        let degrees = (values.len() - 1) as f64;
        interval(moments.mean, (variance / values.len() as f64).sqrt(), degrees)
    });
    Some(Estimate { n: values.len(), mean: moments.mean, ci95: ci95.filter(all_finite) })
}

/// The standard deviation of what is defined in `samples`; `None` below two values.
pub fn stddev(samples: &[Option<f64>]) -> Option<f64> {
    let values: Vec<f64> = defined(samples).collect();
    Moments::of(&values)?.variance.map(f64::sqrt).filter(|deviation| deviation.is_finite())
}

/// The largest p of those that are clear among all of them: Holm's correction, of which at most one in 20 comparisons of equal things
/// calls anything different. Negative where none is clear.
pub fn holm(ps: &[f64]) -> f64 {
    let mut sorted = ps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let of = sorted.iter().zip((1..=sorted.len()).rev());
    of.take_while(|(p, left)| **p * (*left as f64) < 0.05).last().map_or(-1.0, |(p, _)| *p)
}

/// How probable it is that of `with` runs, by chance among twice `of`, all are on one side: Fisher's exact test of that many against
/// none, two-sided.
pub fn none_of_as_many(with: usize, of: usize) -> f64 {
    let step = |taken: usize| (of - taken) as f64 / (2 * of - taken) as f64;
    (2.0 * (0..with.min(of)).map(step).product::<f64>()).min(1.0)
}

/// The paired comparison: sample `i` of both sides ran the same seed. Pairs with an undefined side
/// are left out; `None` when no pair is left.
pub fn paired(base: &[Option<f64>], other: &[Option<f64>]) -> Option<Difference> {
    let pairs: Vec<(f64, f64)> =
        base.iter().zip(other).filter_map(|(b, o)| Some((finite(*b)?, finite(*o)?))).collect();
    let scale = pairs.iter().fold(0.0f64, |most, (b, o)| most.max(b.abs()).max(o.abs()));
    let differences: Vec<f64> = pairs.iter().map(|(b, o)| without_rounding(o - b, scale)).collect();
    let base_mean = Moments::of(&pairs.iter().map(|(b, _)| *b).collect::<Vec<_>>())?.mean;
    let moments = Moments::of(&differences)?;
    let n = differences.len();
    let spread = moments.variance.map(|variance| {
        // Equal differences: their variance is the rounding of their mean.
        let variance = if all_within(&differences, scale * ROUNDING) { 0.0 } else { variance };
        Spread { standard_error: (variance / n as f64).sqrt(), degrees: (n - 1) as f64 }
    });
    judge(n, moments.mean, base_mean, spread)
}

/// Geometric mean and interval of what is defined in `samples`: an estimate of the logarithms, taken back.
/// `None` when nothing is defined or a value is not positive.
pub fn gmean(samples: &[Option<f64>]) -> Option<Estimate> {
    let logs = logarithms(samples)?;
    let Estimate { n, mean, ci95 } = estimate(&logs)?;
    Some(Estimate { n, mean: libm::exp(mean), ci95: ci95.map(|ends| ends.map(libm::exp)) })
}

/// The paired comparison of geometric means: the mean ratio within the pairs. `None` where [`gmean`] is.
pub fn paired_gmean(base: &[Option<f64>], other: &[Option<f64>]) -> Option<Difference> {
    let both = |(b, o): (&Option<f64>, &Option<f64>)| Some((finite(*b)?, finite(*o)?));
    let (base, other): (Vec<_>, Vec<_>) =
        base.iter().zip(other).filter_map(both).map(|(b, o)| (Some(b), Some(o))).unzip();
    let from = gmean(&base)?.mean;
    // Logarithms have no zero of their own, so their rounding is told by the values.
    let logs = paired(&logarithms(&base)?, &logarithms(&other)?)?;
    let percent = |log: f64| 100.0 * (libm::exp(log) - 1.0);
    let unit = |log: f64| from * (libm::exp(log) - 1.0);
    Some(Difference {
        n: logs.n,
        diff: unit(logs.diff),
        diff_pct: Some(percent(logs.diff)),
        ci95: logs.ci95.map(|ends| ends.map(unit)),
        ci95_pct: logs.ci95.map(|ends| ends.map(percent)),
        p: logs.p,
        significant: logs.significant,
        for_equal_lengths: false,
    })
}

fn logarithms(samples: &[Option<f64>]) -> Option<Vec<Option<f64>>> {
    let positive = defined(samples).all(|x| x > 0.0);
    positive.then(|| samples.iter().map(|x| finite(*x).map(libm::log)).collect())
}

/// The unpaired comparison of two groups whose variances may differ (Welch). `None` when a group
/// is empty.
pub fn welch(base: &[Option<f64>], other: &[Option<f64>]) -> Option<Difference> {
    let (base, other): (Vec<f64>, Vec<f64>) = (defined(base).collect(), defined(other).collect());
    let (b, o) = (Moments::of(&base)?, Moments::of(&other)?);
    let scale = base.iter().chain(&other).fold(0.0f64, |most, x| most.max(x.abs()));
    let diff = without_rounding(o.mean - b.mean, scale);
    let spread = b.variance.zip(o.variance).map(|(vb, vo)| {
        let (nb, no) = (base.len() as f64, other.len() as f64);
        let vb = if all_within(&base, scale * ROUNDING) { 0.0 } else { vb / nb };
        let vo = if all_within(&other, scale * ROUNDING) { 0.0 } else { vo / no };
        let total = vb + vo;
        // Welch–Satterthwaite, with shares instead of squares of variances: nothing overflows.
        let (sb, so) = if total > 0.0 { (vb / total, vo / total) } else { (0.5, 0.5) };
        let degrees = 1.0 / (sb * sb / (nb - 1.0) + so * so / (no - 1.0));
        Spread { standard_error: total.sqrt(), degrees: degrees.max(1.0) }
    });
    judge(base.len().min(other.len()), diff, b.mean, spread)
}

struct Spread {
    standard_error: f64,
    degrees: f64,
}

fn judge(n: usize, diff: f64, base_mean: f64, spread: Option<Spread>) -> Option<Difference> {
    if !diff.is_finite() {
        return None;
    }
    let has_percent = base_mean > 0.0 && base_mean + diff >= -ROUNDING * base_mean;
    let percent = |x: f64| finite(Some(100.0 * x / base_mean)).filter(|_| has_percent);
    let spread = spread.filter(|s| s.standard_error.is_finite());
    let (ci95, p) = match spread {
        None => (None, None),
        Some(s) if s.standard_error == 0.0 => {
            (Some([diff, diff]), Some(if diff == 0.0 { 1.0 } else { 0.0 }))
        }
        Some(s) => {
            let p = two_sided_p(diff / s.standard_error, s.degrees);
            (Some(interval(diff, s.standard_error, s.degrees)).filter(all_finite), Some(p))
        }
    };
    Some(Difference {
        n,
        diff,
        diff_pct: percent(diff),
        ci95,
        ci95_pct: ci95.and_then(|[low, high]| Some([percent(low)?, percent(high)?])),
        p,
        significant: p.is_some_and(|p| p < SIGNIFICANCE),
        for_equal_lengths: false,
    })
}

/// Mean and, from two values on, the unbiased variance. `None` for no value or an overflow.
struct Moments {
    mean: f64,
    variance: Option<f64>,
}

impl Moments {
    fn of(values: &[f64]) -> Option<Moments> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let rough = values.iter().sum::<f64>() / n;
        // The second pass takes out what rounding left in the first: equal values have exactly
        // their value as mean.
        let mean = rough + values.iter().map(|x| x - rough).sum::<f64>() / n;
        let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        mean.is_finite().then(|| Moments {
            mean,
            variance: (values.len() > 1).then(|| squares / (n - 1.0)).filter(|v| v.is_finite()),
        })
    }
}

fn interval(middle: f64, standard_error: f64, degrees: f64) -> [f64; 2] {
    if standard_error == 0.0 {
        return [middle, middle];
    }
    let half = t_quantile_975(degrees) * standard_error;
    [middle - half, middle + half]
}

fn without_rounding(difference: f64, scale: f64) -> f64 {
    if difference.abs() <= scale * ROUNDING { 0.0 } else { difference }
}

fn all_within(values: &[f64], tolerance: f64) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - least <= tolerance
}

fn defined(samples: &[Option<f64>]) -> impl Iterator<Item = f64> + '_ {
    samples.iter().filter_map(|x| finite(*x))
}

fn finite(x: Option<f64>) -> Option<f64> {
    x.filter(|x| x.is_finite())
}

fn all_finite(interval: &[f64; 2]) -> bool {
    interval.iter().all(|x| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-11 * right.abs().max(1e-3)
    }

    /// `scipy.stats.t.ppf([.975, .9995], df)` of SciPy 1.17.1.
    #[test]
    fn holm_is_less_strict_with_each_clear_one() {
        assert_eq!(holm(&[0.04, 0.01, 0.02]), 0.04);
        assert_eq!(holm(&[0.04, 0.03, 0.02]), -1.0);
        assert_eq!(holm(&[0.5, 0.01, 0.026]), 0.01);
        assert_eq!(holm(&[]), -1.0);
    }

    #[test]
    fn a_few_of_many_runs_are_chance() {
        // By scipy.stats.fisher_exact.
        for (with, of, p) in [(2, 10, 0.47368), (5, 10, 0.03251), (10, 10, 1.0825e-5), (1, 1, 1.0)]
        {
            assert!((none_of_as_many(with, of) / p - 1.0).abs() < 1e-4, "{with} of {of}");
        }
    }

    #[test]
    fn an_interval_of_95_percent_becomes_one_of_99_9() {
        for (n, at_95, at_99_9) in [
            (2, 12.706204736174694, 636.6192487687196),
            (4, 3.1824463052837078, 12.923978636687485),
            (10, 2.262157162798205, 4.780912585931115),
            (1001, 1.9623390808264083, 3.3002826482637573),
        ] {
            let [low, high] = widened([7.0 - at_95, 7.0 + at_95], n);
            let half = (high - low) / 2.0;
            assert!((half / at_99_9 - 1.0).abs() < 1e-9, "{n}: {half}");
            assert!(((low + high) / 2.0 - 7.0).abs() < 1e-9);
        }
        assert_eq!(widened([3.0, 3.0], 4), [3.0, 3.0]);
    }

    #[test]
    fn geometric_means_compare_ratios() {
        let (base, other) = (some(&[100.0, 400.0, 200.0]), some(&[50.0, 200.0, 100.0]));
        let mean = gmean(&base).unwrap();
        assert!(near(mean.mean, 200.0), "{mean:?}");
        let half = paired_gmean(&base, &other).unwrap();
        assert!(near(half.diff_pct.unwrap(), -50.0) && near(half.diff, -100.0), "{half:?}");
        assert!(half.significant && near(half.ci95_pct.unwrap()[1], -50.0), "{half:?}");
        // The interval of a ratio is not symmetric, and holds the ratio.
        let noisy = paired_gmean(&base, &some(&[110.0, 380.0, 260.0])).unwrap();
        let [low, high] = noisy.ci95_pct.unwrap();
        let middle = noisy.diff_pct.unwrap();
        assert!(low < middle && middle < high && high - middle > middle - low, "{noisy:?}");
        assert!(!noisy.significant);
        assert_eq!(gmean(&some(&[1.0, 0.0])), None);
        assert_eq!(gmean(&[None]), None);
        assert_eq!(paired_gmean(&some(&[1.0]), &some(&[-1.0])), None);
    }

    /// Quantiles as `scipy.stats.t.ppf(.975, df)` of SciPy 1.17.1 prints them.
    #[test]
    fn quantiles_are_those_of_scipy() {
        for (degrees, expected) in [
            (1.0, 12.706204736174694),
            (1.5, 6.016663104427929),
            (2.0, 4.302652729749462),
            (3.0, 3.1824463052837078),
            (4.0, 2.7764451051977934),
            (9.0, 2.262157162798205),
            (10.0, 2.228138851986274),
            (12.345, 2.1720786542260293),
            (30.0, 2.0422724563012378),
            (99.0, 1.9842169515864174),
            (999.5, 1.9623402703838457),
            (1000.0, 1.9623390808264083),
            (1500.25, 1.9615464899348274),
            (100000.0, 1.9599877075346095),
        ] {
            let t = t_quantile_975(degrees);
            assert!(near(t, expected), "{degrees} degrees: {t} instead of {expected}");
        }
        let mut last = f64::INFINITY;
        for tenth in 10..20_000 {
            let t = t_quantile_975(f64::from(tenth) / 10.0);
            assert!(t < last && t > 1.959963984540054, "{tenth} tenths: {t} after {last}");
            last = t;
        }
    }

    /// Where it is not used, its last terms weigh more: with 30 degrees of freedom it is 3e-8 below the quantile.
    #[test]
    fn the_expansion_has_all_its_terms() {
        assert!((expansion(MIDDLE_95.z, 30.0) - 2.0422724563012378 + 3.1025e-8).abs() < 1e-12);
    }

    /// Means and variances lose no digits to a large common part, nor to the number of values.
    #[test]
    fn moments_do_not_cancel() {
        let moments = Moments::of(&[1e15 - 1001.0, 1e15 + 2.0, 1e15 + 999.0]).unwrap();
        assert_eq!((moments.mean, moments.variance), (1e15, Some(1_000_003.0)));
        for value in [0.1, 0.3, 1e-7, 1e9 + 0.1] {
            for n in 1..100 {
                assert_eq!(estimate(&vec![Some(value); n]).unwrap().mean, value, "{n} times");
            }
        }
    }

    /// `2 * scipy.stats.t.sf(t, df)` of SciPy 1.17.1.
    #[test]
    fn p_values_are_those_of_scipy() {
        for (t, degrees, expected) in [
            (2.0, 9.0, 0.07655282377070101),
            (-2.0, 9.0, 0.07655282377070101),
            (0.1, 3.0, 0.9266523488008059),
            (5.5, 20.0, 2.2023208612953642e-05),
            (12.0, 2.5, 0.0028362150300783244),
            (0.0, 5.0, 1.0),
            (2.5, 1998.0, 0.012498932296586608),
        ] {
            let p = two_sided_p(t, degrees);
            assert!(near(p, expected), "t {t}, {degrees} degrees: {p} instead of {expected}");
        }
        // Nine digits are left of the gamma functions of 50000.
        assert!((two_sided_p(1.96, 100000.0) - 0.04999856319430168).abs() < 1e-10);
        assert_eq!(two_sided_p(1e300, 9.0), 0.0);
    }

    /// Student's sleep data (Biometrika 6, 1908), the textbook example of a paired test; numbers
    /// by SciPy's `ttest_rel`, `ttest_ind(equal_var=False)` and `t.interval`.
    #[test]
    fn students_sleep_data() {
        let dextro = some(&[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]);
        let laevo = some(&[1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]);

        let pairs = paired(&dextro, &laevo).unwrap();
        assert!(near(pairs.diff, 1.58) && pairs.significant && pairs.n == 10);
        assert!(near(pairs.p.unwrap(), 0.002832890197384273), "{pairs:?}");
        let [low, high] = pairs.ci95.unwrap();
        assert!(near(low, 0.7001142367230175) && near(high, 2.459885763276983), "{pairs:?}");
        assert!(near(pairs.diff_pct.unwrap(), 100.0 * 1.58 / 0.75));
        assert!(near(pairs.half_width_pct().unwrap(), 100.0 * (high - low) / 2.0 / 0.75));

        let groups = welch(&dextro, &laevo).unwrap();
        assert!(near(groups.p.unwrap(), 0.0793941401873583) && !groups.significant, "{groups:?}");
        let [low, high] = groups.ci95.unwrap();
        assert!(near(low, -0.20548323071171137) && near(high, 3.3654832307117104), "{groups:?}");

        let one = estimate(&dextro).unwrap();
        let [low, high] = one.ci95.unwrap();
        assert!(
            near(one.mean, 0.75)
                && near(low, -0.5297804135262318)
                && near(high, 2.0297804135262316)
        );
    }

    /// Groups of different size and spread: SciPy's `ttest_ind(equal_var=False)`, df 18.474.
    #[test]
    fn welch_with_unequal_groups() {
        let base = some(&[
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ]);
        let other = some(&[17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8]);
        let difference = welch(&base, &other).unwrap();
        assert!(near(difference.p.unwrap(), 0.8624433688651096), "{difference:?}");
        let [low, high] = difference.ci95.unwrap();
        assert!(near(low, -2.7164899093663295) && near(high, 2.296489909366335), "{difference:?}");
    }

    #[test]
    fn degenerate_samples_stay_undefined_or_exact() {
        struct Case {
            what: &'static str,
            base: Vec<Option<f64>>,
            other: Vec<Option<f64>>,
            /// diff, diff_pct, has an interval, significant
            expected: Option<(f64, Option<f64>, bool, bool)>,
        }
        let case = |what, base: &[f64], other: &[f64], expected| Case {
            what,
            base: some(base),
            other: some(other),
            expected,
        };
        let cases = [
            case("nothing", &[], &[], None),
            case("one pair", &[10.0], &[11.0], Some((1.0, Some(10.0), false, false))),
            case("all equal", &[5.0, 5.0], &[5.0, 5.0], Some((0.0, Some(0.0), true, false))),
            case("all zero", &[0.0, 0.0], &[0.0, 0.0], Some((0.0, None, true, false))),
            case("equal shift", &[1.0, 1.0], &[3.0, 3.0], Some((2.0, Some(200.0), true, true))),
            case("base zero", &[0.0, 0.0], &[3.0, 3.0], Some((3.0, None, true, true))),
            case(
                "only rounding",
                &[0.3, 0.3],
                &[0.1 + 0.2, 0.3],
                Some((0.0, Some(0.0), true, false)),
            ),
            case("too large", &[1e308, -1e308], &[-1e308, 1e308], None),
            case("negative base", &[-4.0, -4.0], &[-3.0, -3.0], Some((1.0, None, true, true))),
            Case {
                what: "undefined sides",
                base: vec![None, Some(1.0), Some(f64::NAN)],
                other: vec![Some(1.0), Some(2.0), Some(3.0)],
                expected: Some((1.0, Some(100.0), false, false)),
            },
            Case { what: "no pair", base: vec![None], other: vec![Some(1.0)], expected: None },
        ];
        for Case { what, base, other, expected } in &cases {
            let found = paired(base, other);
            let seen = found.map(|d| (d.diff, d.diff_pct, d.ci95.is_some(), d.significant));
            assert_eq!(seen, *expected, "{what}");
            if *what != "undefined sides" && *what != "too large" {
                let seen = welch(base, other)
                    .map(|d| (d.diff, d.diff_pct, d.ci95.is_some(), d.significant));
                assert_eq!(seen, *expected, "{what}, unpaired");
            }
        }
        assert_eq!(estimate(&[None, Some(f64::INFINITY)]), None);
        assert_eq!(estimate(&[Some(2.0), None]).unwrap().ci95, None);
        assert_eq!(estimate(&[Some(2.0), Some(2.0)]).unwrap().ci95, Some([2.0, 2.0]));
    }

    /// Equal differences beside a large and noisy common part are still equal differences.
    #[test]
    fn identical_differences_are_significant_in_spite_of_rounding() {
        let base: Vec<f64> = (0..10).map(|i| 1000.1 + 7.3 * f64::from(i)).collect();
        let other: Vec<f64> = base.iter().map(|x| x + 0.1).collect();
        let difference = paired(&some(&base), &some(&other)).unwrap();
        assert!(difference.significant && difference.p == Some(0.0), "{difference:?}");
    }
}
