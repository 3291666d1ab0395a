// SPDX-License-Identifier: GPL-2.0-or-later
//! The rule by which a prediction is judged. It was fixed before any result was looked at, and every judgement prints it.
//!
//! For a setting B beside A, and one figure of the work as a whole, or of a class of threads that takes at least 1 % of the work's
//! CPU time under A:
//!
//! 1. *Measured*: the mean of B − A over the pairs of runs that followed each other, with its 95 % interval (Student's t). The
//!    machine is *sure* of the difference if the interval excludes 0.
//! 2. *Predicted*: the mean of B − A of the twin's runs. Both differences are compared in % of their own A, as in studies; where
//!    an A is 0, in the figure's unit.
//! 3. The verdict is the first that holds:
//!
//! | verdict | holds if |
//! |---|---|
//! | `inconclusive` | the machine is not sure |
//! | `powerless` | the twin has no such figure, or 0 under both settings; or a replay keeps it as recorded (CPU time, sleeps); or the twin has no such setting |
//! | `agree` | the sign is the same, and the predicted difference is 0.5 to 2 times the measured one |
//! | `direction` | the sign is the same |
//! | `disagree` | nothing of this |
//!
//! **Controls.** A against A, its runs split in two, may be called different in at most 5 % of the figures by chance. A setting with a
//! known large effect has to be called different in so many figures that chance, which calls 5 % of them different, has
//! as many less than once in a hundred comparisons.
//!
//! **Floor.** The same table with the machine as its own prophet: the pairs of odd rounds predict, those of even
//! rounds are measured. No prediction can be expected to do better.

use crate::rows::{Key, Rows, WHOLE};
use schedtwin_lab::stats::{self, Difference};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The rule in a few lines, as judgements print it.
pub const RULE: &str = "\
rule (fixed before any result): the machine is sure of a difference if the 95 % interval of B - A
over pairs of neighbouring runs excludes 0. Then: agree = same sign and predicted 0.5 to 2 times
measured, each in % of its own A; direction = same sign; disagree = else; powerless = the twin
cannot move the figure.";

/// Least and most that a predicted difference may be, times the measured one, to agree.
const FACTOR: [f64; 2] = [0.5, 2.0];

/// Pairs that an interval needs.
const PAIRS_LEAST: usize = 3;

/// Figures that a replay keeps as they were recorded.
const KEPT_BY_REPLAYS: [&str; 2] = ["cpu_time", "sleeps"];

/// A verdict about one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Sign and size.
    Agree,
    /// The sign.
    Direction,
    /// Neither.
    Disagree,
    /// The machine is not sure.
    Inconclusive,
    /// The twin cannot move the figure.
    Powerless,
}

impl Verdict {
    /// All, in the order of tables.
    pub const ALL: [Verdict; 5] = [
        Verdict::Agree,
        Verdict::Direction,
        Verdict::Disagree,
        Verdict::Inconclusive,
        Verdict::Powerless,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Agree => "agree",
            Verdict::Direction => "direction",
            Verdict::Disagree => "disagree",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Powerless => "powerless",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// How the twin predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The rt-app file is the workload.
    File,
    /// The recordings of A are replayed.
    Replay,
    /// Not at all: the setting is none of the twin's.
    None,
}

impl Method {
    /// Its word in files.
    pub fn word(self) -> &'static str {
        match self {
            Method::File => "file",
            Method::Replay => "replay",
            Method::None => "none",
        }
    }

    /// The converse of `word`.
    pub fn parse(word: &str) -> Option<Method> {
        [Method::File, Method::Replay, Method::None].into_iter().find(|m| m.word() == word)
    }
}

/// One figure under two settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Which.
    pub key: Key,
    /// Means of the machine under A and B.
    pub measured: [f64; 2],
    /// The measured difference.
    pub difference: Difference,
    /// Means of the twin under A and B, where it has the figure.
    pub predicted: [Option<f64>; 2],
    /// The verdict.
    pub verdict: Verdict,
}

impl Judged {
    /// The predicted difference.
    pub fn predicted_difference(&self) -> Option<f64> {
        Some(self.predicted[1]? - self.predicted[0]?)
    }
}

/// Whether the machine is sure of a difference.
pub fn is_sure(difference: &Difference) -> bool {
    difference.n >= PAIRS_LEAST
        && difference.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
}

/// Classes with less of the work's CPU time under A are not judged, %.
const SHARE_LEAST: f64 = 1.0;

/// The classes of threads that take enough of the work's CPU time under A.
fn judged_classes(a: &[Rows]) -> BTreeSet<&str> {
    let mut by_class: BTreeMap<&str, f64> = BTreeMap::new();
    for (key, value) in a.iter().flatten().filter(|(key, _)| key.metric == "cpu_time") {
        *by_class.entry(&key.class).or_default() += value;
    }
    let all: f64 = by_class.values().sum();
    by_class.retain(|_, time| *time * 100.0 >= all * SHARE_LEAST);
    by_class.into_keys().collect()
}

/// Judges every figure that both settings have on the machine.
pub fn judge(measured: [&[Rows]; 2], predicted: [&[Rows]; 2], method: Method) -> Vec<Judged> {
    let classes = judged_classes(measured[0]);
    let mut keys: BTreeSet<&Key> =
        measured[0].iter().chain(measured[1]).flat_map(Rows::keys).collect();
    keys.retain(|key| key.class == WHOLE || classes.contains(key.class.as_str()));
    let of = |runs: &[Rows], key: &Key| -> Vec<Option<f64>> {
        runs.iter().map(|rows| rows.get(key).copied()).collect()
    };
    let mut judged = Vec::new();
    for key in keys {
        let [a, b] = measured.map(|runs| of(runs, key));
        let Some(difference) = stats::paired(&a, &b) else { continue };
        let (Some(mean_a), Some(mean_b)) = (mean(&a), mean(&b)) else { continue };
        let predicted = predicted.map(|runs| mean(&of(runs, key)));
        let verdict = verdict(key, &difference, predicted, method);
        let measured = [mean_a, mean_b];
        judged.push(Judged { key: key.clone(), measured, difference, predicted, verdict });
    }
    judged
}

fn verdict(
    key: &Key,
    measured: &Difference,
    predicted: [Option<f64>; 2],
    method: Method,
) -> Verdict {
    if !is_sure(measured) {
        return Verdict::Inconclusive;
    }
    let kept = method == Method::Replay && KEPT_BY_REPLAYS.contains(&key.metric.as_str());
    let [Some(a), Some(b)] = predicted else { return Verdict::Powerless };
    if kept || method == Method::None || (a == 0.0 && b == 0.0) {
        return Verdict::Powerless;
    }
    let ratio = match measured.diff_pct {
        Some(percent) if a != 0.0 => 100.0 * (b - a) / a.abs() / percent,
        _ => (b - a) / measured.diff,
    };
    match ratio {
        ratio if (FACTOR[0]..=FACTOR[1]).contains(&ratio) => Verdict::Agree,
        ratio if ratio > 0.0 => Verdict::Direction,
        _ => Verdict::Disagree,
    }
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    stats::estimate(values).map(|estimate| estimate.mean)
}

/// Counts of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub [usize; 5]);

impl Counts {
    /// Of figures.
    pub fn of<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> Counts {
        let mut counts = Counts::default();
        for row in judged {
            counts.0[row.verdict as usize] += 1;
        }
        counts
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Counts) -> Counts {
        Counts(std::array::from_fn(|at| self.0[at] + other.0[at]))
    }

    /// All figures.
    pub fn all(self) -> usize {
        self.0.iter().sum()
    }

    /// Differences that the machine is sure of and the twin can move; of these the ones of the right sign, and within the factor.
    pub fn sure(self) -> [usize; 3] {
        let [agree, direction, disagree, ..] = self.0;
        [agree + direction + disagree, agree + direction, agree]
    }
}

/// A against A: how many figures there are, and how many are called different.
pub fn control(a: &[Rows]) -> [usize; 2] {
    let half = |odd: usize| -> Vec<Rows> { a.iter().skip(odd).step_by(2).cloned().collect() };
    let (even, odd) = (half(0), half(1));
    let classes = judged_classes(a);
    let mut keys: BTreeSet<&Key> = a.iter().flat_map(Rows::keys).collect();
    keys.retain(|key| key.class == WHOLE || classes.contains(key.class.as_str()));
    let mut counts = [0; 2];
    for key in keys {
        let of = |runs: &[Rows]| -> Vec<Option<f64>> {
            runs.iter().map(|rows| rows.get(key).copied()).collect()
        };
        if let Some(difference) = stats::welch(&of(&even), &of(&odd)) {
            counts[0] += 1;
            counts[1] +=
                usize::from(difference.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0));
        }
    }
    counts
}

/// The share of figures that an interval of 95 % calls different by chance.
const CHANCE: f64 = 0.05;

/// The least probable count of figures that chance is believed to give.
const CHANCE_LEAST: f64 = 0.01;

/// Whether so many of the figures are called different that it is not by chance: the tail of the binomial distribution.
pub fn is_beyond_chance(figures: usize, different: usize) -> bool {
    let mut of_count = (1.0 - CHANCE).powi(figures as i32);
    let mut fewer = 0.0;
    for count in 0..different {
        fewer += of_count;
        of_count *= (figures - count) as f64 / (count + 1) as f64 * CHANCE / (1.0 - CHANCE);
    }
    1.0 - fewer < CHANCE_LEAST
}

/// The machine as its own prophet: odd rounds predict, even ones are measured.
pub fn floor(measured: [&[Rows]; 2]) -> Vec<Judged> {
    let half = |runs: &[Rows], odd: usize| -> Vec<Rows> {
        runs.iter().skip(odd).step_by(2).cloned().collect()
    };
    let [a, b] = measured;
    let (predicted, measured) = ([half(a, 1), half(b, 1)], [half(a, 0), half(b, 0)]);
    judge([&measured[0], &measured[1]], [&predicted[0], &predicted[1]], Method::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(metric: &str, values: &[f64]) -> Vec<Rows> {
        let key = Key { class: WHOLE.into(), metric: metric.into(), stat: String::new() };
        values.iter().map(|value| Rows::from([(key.clone(), *value)])).collect()
    }

    fn verdict_of(metric: &str, b: &[f64], predicted: [&[f64]; 2], method: Method) -> Verdict {
        let a = runs(metric, &[100.0, 101.0, 99.0, 100.0]);
        let predicted = predicted.map(|values| runs(metric, values));
        let judged = judge([&a, &runs(metric, b)], [&predicted[0], &predicted[1]], method);
        judged[0].verdict
    }

    #[test]
    fn verdicts_follow_the_rule() {
        let half = [50.0, 51.0, 49.0, 50.5];
        for (b, predicted, method, expected) in [
            (&half, [&[80.0][..], &[40.0]], Method::File, Verdict::Agree),
            (&half, [&[80.0], &[65.0]], Method::File, Verdict::Direction),
            (&half, [&[300.0], &[190.0]], Method::File, Verdict::Agree),
            (&[120.0, 121.0, 119.0, 120.5], [&[10.0], &[15.0]], Method::File, Verdict::Direction),
            (&half, [&[80.0], &[90.0]], Method::File, Verdict::Disagree),
            (&half, [&[80.0], &[80.0]], Method::File, Verdict::Disagree),
            (&half, [&[0.0], &[0.0]], Method::File, Verdict::Powerless),
            (&half, [&[80.0], &[]], Method::File, Verdict::Powerless),
            (&half, [&[80.0], &[40.0]], Method::None, Verdict::Powerless),
            (&[90.0, 110.0, 95.0, 106.0], [&[80.0], &[40.0]], Method::File, Verdict::Inconclusive),
        ] {
            assert_eq!(verdict_of("latency", b, predicted, method), expected, "{predicted:?}");
        }
        let kept = verdict_of("cpu_time", &half, [&[80.0], &[40.0]], Method::Replay);
        assert_eq!(kept, Verdict::Powerless);
        assert_eq!(verdict_of("cpu_time", &half, [&[80.0], &[40.0]], Method::File), Verdict::Agree);
    }

    #[test]
    fn classes_that_hardly_run_are_not_judged() {
        let rows = |class: &str, time| {
            let key = |metric: &str| Key {
                class: class.into(),
                metric: metric.into(),
                stat: String::new(),
            };
            [(key("cpu_time"), time), (key("sleeps"), 5.0)]
        };
        let run: Rows = rows("ui", 99.5).into_iter().chain(rows("rare", 0.5)).collect();
        let a = vec![run; 3];
        let judged = judge([&a, &a], [&a, &a], Method::File);
        let classes: Vec<&str> = judged.iter().map(|row| row.key.class.as_str()).collect();
        assert_eq!(classes, ["ui", "ui"]);
        assert_eq!(control(&a)[0], 2);
    }

    /// By a table of the binomial distribution.
    #[test]
    fn as_many_figures_as_chance_gives_are_no_effect() {
        assert!(!is_beyond_chance(0, 0) && !is_beyond_chance(1, 1));
        for (figures, least) in [(2, 2), (10, 4), (28, 6), (100, 12)] {
            assert!(!is_beyond_chance(figures, least - 1), "{figures}");
            assert!(is_beyond_chance(figures, least), "{figures}");
        }
    }

    #[test]
    fn two_runs_are_never_sure() {
        let (a, b) = (runs("latency", &[1.0, 1.0]), runs("latency", &[9.0, 9.0]));
        let judged = judge([&a, &b], [&a, &b], Method::File);
        assert_eq!(judged[0].verdict, Verdict::Inconclusive);
    }

    #[test]
    fn controls_and_floor_split_the_runs() {
        let a = runs("latency", &[10.0, 20.0, 10.1, 20.1, 9.9, 19.9]);
        assert_eq!(control(&a), [1, 1], "odd and even runs differ");
        assert_eq!(control(&runs("latency", &[10.0, 10.0, 12.0, 12.0, 9.0, 9.0])), [1, 0]);
        let a = runs("latency", &[10.0, 10.0, 11.0, 11.0, 9.0, 9.0, 10.0, 10.0]);
        let b = runs("latency", &[20.0, 20.0, 21.0, 21.0, 19.0, 19.0, 20.0, 20.1]);
        assert_eq!(Counts::of(&floor([&a, &b])), Counts([1, 0, 0, 0, 0]));
    }
}
