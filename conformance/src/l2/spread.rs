// SPDX-License-Identifier: GPL-2.0-or-later
//! When a figure of the twin is like the recordings'.
//!
//! The recordings of a workload differ among themselves: their **spread** is (p90 − p10) / median. A figure that
//! spreads by more than [`SPREAD_MAX`] is not judged, and is counted: at least [`JUDGED_MIN`] of a workload's
//! figures must be judged. The twin's mean over its seeds is **in** if it lies from the least to the largest recorded
//! value; [`INSIDE_MIN`] of the judged ones must be in.
//!
//! Where the recordings agree more closely than the figure can be told (a count is told to 1 in the window, a latency to
//! 1 us, a share of time to 0.5 % of itself), the interval is that resolution around the median.
//!
//! A figure that is 0 in all recordings, and in the twin as far as it can be told, is none of the workload's and not
//! counted: agreeing about nothing is no merit. If the twin has more of it, it is out. Of shares of time less than a
//! thousandth of a CPU is nothing ([`Figure::nothing`]).

use super::figures::Figure;

/// More than this is not judged.
pub const SPREAD_MAX: f64 = 0.30;
/// Share of figures that must be judged.
pub const JUDGED_MIN: f64 = 0.70;
/// Share of the judged figures that must be in.
pub const INSIDE_MIN: f64 = 0.90;

/// Like the recordings or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside.
    In,
    /// Outside.
    Out,
    /// The recordings differ too much, or one of them lacks it.
    NotJudged,
}

/// A figure of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The figure's name, and its task or CPU.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Least, median and largest recorded value.
    pub recorded: Option<(f64, f64, f64)>,
    /// (p90 − p10) / median.
    pub spread: f64,
    /// The twin's least, mean and largest.
    pub twin: Option<(f64, f64, f64)>,
    /// The result.
    pub verdict: Verdict,
}

/// The quantile of sorted values, interpolated.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = (sorted.len() - 1) as f64 * q;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

fn row(recorded: &[&Figure], twin: &[&Figure]) -> Option<Row> {
    let values = |side: &[&Figure]| {
        let mut values: Vec<f64> = side.iter().filter_map(|figure| figure.value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (theirs, ours) = (values(recorded), values(twin));
    if theirs.is_empty() {
        return None;
    }
    let first = recorded[0];
    let median = quantile(&theirs, 0.5);
    let width = quantile(&theirs, 0.9) - quantile(&theirs, 0.1);
    let spread = match (median == 0.0, width == 0.0) {
        (_, true) => 0.0,
        (true, false) => f64::INFINITY,
        (false, false) => width / median.abs(),
    };
    let (least, largest) = (theirs[0], theirs[theirs.len() - 1]);
    let mean = (!ours.is_empty()).then(|| ours.iter().sum::<f64>() / ours.len() as f64);
    let inside = |mean: f64| {
        let step = first.resolution.around(median);
        (least.min(median - step)..=largest.max(median + step)).contains(&mean)
    };
    let verdict = if theirs.len() < recorded.len() || spread > SPREAD_MAX {
        Verdict::NotJudged
    } else if mean.is_some_and(inside) {
        Verdict::In
    } else {
        Verdict::Out
    };
    let told = first.nothing().max(if largest == 0.0 { first.resolution.around(0.0) } else { 0.0 });
    if largest <= told && mean.is_none_or(|mean| mean <= told) {
        return None;
    }
    Some(Row {
        name: first.name.clone(),
        unit: first.unit,
        recorded: Some((least, median, largest)),
        spread,
        twin: mean.map(|mean| (ours[0], mean, ours[ours.len() - 1])),
        verdict,
    })
}

/// Recordings and runs of the twin, figure by figure.
///
/// # Panics
///
/// If there is no recording, or if the lists of figures differ: they are of one workload.
pub fn compare(recorded: &[Vec<Figure>], twin: &[Vec<Figure>]) -> Vec<Row> {
    let count = recorded[0].len();
    assert!(recorded.iter().chain(twin).all(|figures| figures.len() == count));
    let side = |side: &[Vec<Figure>], at: usize| -> Vec<Figure> {
        side.iter().map(|figures| figures[at].clone()).collect()
    };
    (0..count)
        .filter_map(|at| {
            let (theirs, ours) = (side(recorded, at), side(twin, at));
            row(&theirs.iter().collect::<Vec<_>>(), &ours.iter().collect::<Vec<_>>())
        })
        .collect()
}

/// How many figures there are, how many are judged, how many of those are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Figures of the workload.
    pub figures: usize,
    /// Those judged.
    pub judged: usize,
    /// Those inside.
    pub inside: usize,
}

impl Score {
    /// Counts.
    pub fn of(rows: &[Row]) -> Score {
        let count =
            |wanted: &[Verdict]| rows.iter().filter(|r| wanted.contains(&r.verdict)).count();
        Score {
            figures: rows.len(),
            judged: count(&[Verdict::In, Verdict::Out]),
            inside: count(&[Verdict::In]),
        }
    }

    /// Whether a workload counts for the bars. Where recordings disagree among themselves on most figures, they tell of
    /// chance, and one of two ways in which the work can go is as good as the other.
    pub fn counts(self) -> bool {
        2 * self.judged >= self.figures
    }

    /// Both together.
    pub fn plus(self, other: Score) -> Score {
        Score {
            figures: self.figures + other.figures,
            judged: self.judged + other.judged,
            inside: self.inside + other.inside,
        }
    }

    /// Share of the figures that are judged.
    pub fn judged_share(self) -> f64 {
        self.judged as f64 / self.figures.max(1) as f64
    }

    /// Share of the judged figures that are in.
    pub fn inside_share(self) -> f64 {
        self.inside as f64 / self.judged.max(1) as f64
    }

    /// Whether both bars are met.
    pub fn passes(self) -> bool {
        self.judged_share() >= JUDGED_MIN && self.inside_share() >= INSIDE_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::Resolution;
    use super::*;

    /// The verdict of one figure that is told to 1.
    fn verdict(recorded: &[Option<f64>], twin: &[Option<f64>]) -> Option<Verdict> {
        let side = |values: &[Option<f64>]| -> Vec<Vec<Figure>> {
            let figure = |value: &Option<f64>| {
                vec![Figure {
                    name: "x".into(),
                    unit: "us",
                    value: *value,
                    resolution: Resolution::Absolute(1.0),
                }]
            };
            values.iter().map(figure).collect()
        };
        compare(&side(recorded), &side(twin)).first().map(|row| row.verdict)
    }

    #[test]
    fn inside_is_from_the_least_to_the_largest() {
        let recorded = [100.0, 110.0, 120.0].map(Some);
        for (twin, expected) in [
            (vec![100.0], Verdict::In),
            (vec![90.0, 130.0], Verdict::In),
            (vec![98.0], Verdict::Out),
            (vec![110.0, 140.0], Verdict::Out),
        ] {
            let twin: Vec<Option<f64>> = twin.into_iter().map(Some).collect();
            assert_eq!(verdict(&recorded, &twin), Some(expected), "{twin:?}");
        }
        assert_eq!(verdict(&recorded, &[None]), Some(Verdict::Out), "the twin never did it");
    }

    #[test]
    fn what_spreads_or_is_rare_is_not_judged_and_counted() {
        let wide = [60.0, 100.0, 140.0].map(Some);
        assert_eq!(verdict(&wide, &[Some(100.0)]), Some(Verdict::NotJudged));
        let rare = [Some(100.0), None, Some(100.0)];
        assert_eq!(verdict(&rare, &[Some(100.0)]), Some(Verdict::NotJudged));
        let score = Score { figures: 10, judged: 6, inside: 6 };
        assert!(!score.passes(), "too much is not judged");
        assert!(Score { figures: 10, judged: 7, inside: 7 }.passes());
        assert!(!Score { figures: 20, judged: 20, inside: 17 }.passes());
    }

    #[test]
    fn equal_recordings_are_as_fine_as_can_be_told() {
        let same = [100.0; 3].map(Some);
        assert_eq!(verdict(&same, &[Some(101.0)]), Some(Verdict::In));
        assert_eq!(verdict(&same, &[Some(101.1)]), Some(Verdict::Out));
    }

    #[test]
    fn agreeing_about_nothing_is_no_merit() {
        let nothing = [0.0; 3].map(Some);
        assert_eq!(verdict(&nothing, &[Some(0.0)]), None);
        assert_eq!(verdict(&nothing, &[Some(0.5)]), None, "cannot be told from 0");
        assert_eq!(verdict(&nothing, &[Some(2.0)]), Some(Verdict::Out));
        assert_eq!(verdict(&[None, None], &[Some(2.0)]), None);
        assert_eq!(verdict(&[Some(0.0), Some(1.0)], &[Some(0.5)]), Some(Verdict::NotJudged));
    }

    #[test]
    fn quantiles_are_interpolated() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!([0.0, 0.1, 0.5, 1.0].map(|q| quantile(&values, q)), [1.0, 1.4, 3.0, 5.0]);
    }
}
