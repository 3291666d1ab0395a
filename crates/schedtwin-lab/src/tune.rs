// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for the value of a setting at which a metric is what is wanted: the scale of clamps at the power of another kernel, say.
//!
//! 1. **goal**: a number, or what another kernel measures with the same machine and workload
//! 2. **ends**: the range's least and greatest value. The goal must lie between what they measure
//! 3. **between**: Brent's method (argmin) halves the range, or better, until two neighbours are left; the closest of all that were
//!    measured is the answer
//!
//! Each value runs the same seeds as the goal, so that two values differ by what was set and not by luck. That the metric rises or falls
//! all the way is assumed; all that was measured is returned, so that the user can see whether it
//! does.
//!
//! ```
//! use schedtwin_lab::tune::Range;
//! let range = Range::parse("0.50..2.00").unwrap();
//! assert_eq!((range.steps(), range.value(25)), (150, "0.75".to_string()));
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use argmin::core::{CostFunction, Executor};
use argmin::solver::brent::BrentRoot;

use crate::Progress;
use crate::compare::{Plan, Subject, sample};
use crate::measured::Row;
use crate::select::Key;
use crate::selector::Selector;
use crate::stats::{self, Difference, Estimate};
use crate::stopping::{Iterations, Look};

/// Steps that a range may have.
const MOST_STEPS: u64 = 1_000_000_000;

/// Steps of Brent's method: halving takes 30 for [`MOST_STEPS`], and Brent's takes no more than a few times as many.
const MOST_ROUNDS: u64 = 200;

/// Decimal numbers from a least to a greatest one, as fine as the finer of the two is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// In units of the last decimal place.
    least: i64,
    greatest: i64,
    decimals: usize,
}

impl Range {
    /// Reads `LEAST..GREATEST`: `300..1000` has whole numbers, `0.5..2.0` tenths.
    pub fn parse(text: &str) -> Result<Range, String> {
        let form = || "a range is written LEAST..GREATEST: 300..1000, 0.50..2.00".to_string();
        let (least, greatest) = text.split_once("..").ok_or_else(form)?;
        let decimals_of = |number: &str| number.trim().split_once('.').map_or(0, |(_, d)| d.len());
        let decimals = decimals_of(least).max(decimals_of(greatest));
        let units = |number: &str| {
            let number = number.trim();
            let (whole, part) = number.split_once('.').unwrap_or((number, ""));
            let digits = format!("{whole}{part:0<decimals$}");
            let is_number = whole.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
            digits.parse::<i64>().ok().filter(|_| is_number).ok_or_else(form)
        };
        let (least, greatest) = (units(least)?, units(greatest)?);
        match greatest.checked_sub(least) {
            Some(1..) if greatest.abs_diff(least) <= MOST_STEPS => {
                Ok(Range { least, greatest, decimals })
            }
            Some(..1) => Err("a range ends above where it begins".to_string()),
            _ => Err(format!("a range has at most {MOST_STEPS} steps")),
        }
    }

    /// How many steps lead from the least to the greatest value.
    pub fn steps(&self) -> u64 {
        self.greatest.abs_diff(self.least)
    }

    /// The value after that many steps, as it is written in a setting.
    pub fn value(&self, step: u64) -> String {
        let units = self.least + step as i64;
        if self.decimals == 0 {
            return units.to_string();
        }
        let sign = if units < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", units.unsigned_abs(), width = self.decimals + 1);
        let (whole, part) = digits.split_at(digits.len() - self.decimals);
        format!("{sign}{whole}.{part}")
    }
}

/// The goal that the metric shall reach.
pub enum Goal<S> {
    /// A number in the metric's unit.
    Value(f64),
    /// The measurement of this subject.
    Like(S),
}

/// The measurement at a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value, as it is written in a setting.
    pub value: String,
    /// The metric.
    pub estimate: Estimate,
    /// Against the goal, seed by seed.
    pub from_goal: Difference,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Name, stat and labels of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// The goal in that unit.
    pub goal: f64,
    /// All that was measured, from the least value to the greatest.
    pub points: Vec<Point>,
    /// Which of them is closest to the goal; `None`: the goal is not between the ends.
    pub best: Option<usize>,
}

/// Searches. `at` makes what runs with a value; `seeds` of each measurement begin with `first_seed`. Announces its runs itself.
pub fn tune<S: Subject>(
    range: Range,
    goal: &Goal<S>,
    at: impl Fn(&str) -> io::Result<S>,
    metric: &Selector,
    (first_seed, seeds): (u64, usize),
    progress: &Progress,
) -> io::Result<Tuned> {
    let plan = Plan { first_seed, iterations: Iterations::Fixed(seeds) };
    // By seed, as the samples of each value are.
    let wanted: Vec<Option<f64>> = match goal {
        Goal::Value(value) => vec![Some(*value); seeds],
        Goal::Like(subject) => {
            progress.expect_runs(seeds as u64);
            one_row(subject, &plan, metric, progress)?.samples.swap_remove(0)
        }
    };
    let search = Search {
        steps: range.steps(),
        known: RefCell::new(BTreeMap::new()),
        measure: |step: u64| {
            progress.expect_runs(seeds as u64);
            let value = range.value(step);
            let row = one_row(&at(&value)?, &plan, metric, progress)?;
            let samples = &row.samples[0];
            let none = || io::Error::other(format!("{} has no value at {value}", row.title()));
            let estimate = stats::estimate(samples).ok_or_else(none)?;
            let from_goal = stats::paired(&wanted, samples).ok_or_else(none)?;
            Ok((Point { value, estimate, from_goal }, row))
        },
        distance: |(point, _): &(Point, Row)| point.from_goal.diff,
    };
    let best = search.run()?;
    let known = search.known.into_inner();
    let (_, row) = known.values().next().expect("the ends were measured");
    Ok(Tuned {
        metric: row.title(),
        unit: row.unit,
        goal: stats::estimate(&wanted).expect("differences to it were taken").mean,
        best: best.map(|best| known.keys().position(|step| *step == best).expect("it is known")),
        points: known.into_values().map(|(point, _)| point).collect(),
    })
}

/// The row that the selector means; it must be one.
fn one_row<S: Subject>(
    subject: &S,
    plan: &Plan,
    metric: &Selector,
    progress: &Progress,
) -> io::Result<Row> {
    let sampled = sample(std::slice::from_ref(subject), plan, progress, |_| Look::Enough)?;
    let keys: Vec<Key> = sampled.rows.iter().map(Row::key).collect();
    let picked =
        metric.pick_totals(&keys).map_err(|faults| io::Error::other(faults.to_string()))?;
    match picked.as_slice() {
        [only] => Ok(sampled.rows[*only].clone()),
        several => {
            let titles: Vec<String> = several.iter().map(|at| sampled.rows[*at].title()).collect();
            Err(io::Error::other(format!(
                "one row is tuned, and these are several: {}",
                titles.join(", ")
            )))
        }
    }
}

/// The root of a function of whole numbers from 0 to `steps` that costs much to ask.
struct Search<T, M, D> {
    steps: u64,
    known: RefCell<BTreeMap<u64, T>>,
    measure: M,
    /// Below zero on one side of the root, above on the other.
    distance: D,
}

impl<T, M: Fn(u64) -> io::Result<T>, D: Fn(&T) -> f64> Search<T, M, D> {
    fn distance_at(&self, step: u64) -> io::Result<f64> {
        if let Some(known) = self.known.borrow().get(&step) {
            return Ok((self.distance)(known));
        }
        let measured = (self.measure)(step)?;
        let distance = (self.distance)(&measured);
        self.known.borrow_mut().insert(step, measured);
        Ok(distance)
    }

    /// The step closest to the root; `None` if the ends are on the same side of it.
    fn run(&self) -> io::Result<Option<u64>> {
        let ends = [self.distance_at(0)?, self.distance_at(self.steps)?];
        if ends[0] * ends[1] > 0.0 {
            return Ok(None);
        }
        let failed = |error: argmin::core::Error| io::Error::other(error.to_string());
        // Neighbours are apart by the tolerance: then there is nothing between them.
        let solver = BrentRoot::new(0.0, 1.0, 1.0 / self.steps as f64);
        Executor::new(self, solver)
            .configure(|state| state.max_iters(MOST_ROUNDS))
            .timer(false)
            .run()
            .map_err(failed)?;
        let known = self.known.borrow();
        let distances = known.iter().map(|(step, found)| (*step, (self.distance)(found).abs()));
        Ok(distances.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(step, _)| step))
    }
}

impl<T, M: Fn(u64) -> io::Result<T>, D: Fn(&T) -> f64> CostFunction for &Search<T, M, D> {
    type Param = f64;
    type Output = f64;

    fn cost(&self, at: &f64) -> Result<f64, argmin::core::Error> {
        let step = (at.clamp(0.0, 1.0) * self.steps as f64).round() as u64;
        Ok(self.distance_at(step)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    #[test]
    fn ranges_are_as_fine_as_they_are_written() {
        let range = |text| Range::parse(text).unwrap();
        let ends = |r: Range| (r.value(0), r.value(r.steps()), r.steps());
        assert_eq!(ends(range("300..1000")), ("300".into(), "1000".into(), 700));
        assert_eq!(ends(range("-1.5 .. 2")), ("-1.5".into(), "2.0".into(), 35));
        assert_eq!(ends(range("0.05..0.1")), ("0.05".into(), "0.10".into(), 5));
        assert_eq!(range("-0.5..1").value(2), "-0.3");
        for wrong in ["", "5", "5..", "..5", "a..b", "1..1", "2..1", "1e3..2e3", "--1..2", "0..9e9"]
        {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Range::parse("0..2000000000").unwrap_err().contains("at most"));
        assert!(Range::parse("-9223372036854775808..9223372036854775807").is_err());
    }

    /// Whatever the form of the function: the closest step, in few measurements.
    #[test]
    fn the_closest_step_is_found() {
        let forms: [fn(f64) -> f64; 4] =
            [|x| x, |x| -x, |x| x * x * x / 1e4, |x| if x <= 0.0 { -1.0 } else { 50.0 }];
        for (number, form) in forms.into_iter().enumerate() {
            for root in [0.0, 1.2, 333.4, 699.9, 700.0] {
                let search = Search {
                    steps: 700,
                    known: RefCell::new(BTreeMap::new()),
                    measure: |step: u64| Ok(form(step as f64 - root)),
                    distance: |x: &f64| *x,
                };
                let best = search.run().unwrap();
                if form(-root) * form(700.0 - root) > 0.0 {
                    assert_eq!(best, None, "form {number}, root {root}");
                    continue;
                }
                let closest = (0..=700).map(|step| form(f64::from(step) - root).abs());
                let closest = closest.min_by(f64::total_cmp).unwrap();
                let found = form(best.unwrap() as f64 - root).abs();
                assert!(found <= closest, "form {number}, root {root}: {best:?}");
                let asked = search.known.borrow().len();
                assert!(asked <= 40, "form {number}, root {root}: {asked} measurements");
            }
        }
    }

    fn wanted(metric: &str) -> Selector {
        Selector::parse_list(metric).unwrap().remove(0)
    }

    #[test]
    fn seeds_are_compared_one_by_one() {
        let at = |value: &str| Ok(Synthetic::new("other", value.parse().unwrap(), 0.0));
        let range = Range::parse("10..30").unwrap();
        let progress = Progress::new();
        let goal = Goal::Like(Synthetic::new("base", 17.2, 0.0));
        let tuned = tune(range, &goal, at, &wanted("elapsed"), (1, 3), &progress).unwrap();
        let best = &tuned.points[tuned.best.unwrap()];
        assert_eq!((best.value.as_str(), tuned.goal), ("17", 17.2));
        assert!((best.from_goal.diff + 0.2).abs() < 1e-9);
        assert_eq!(progress.expected_runs(), progress.done_runs());
        // Beyond the range there is nothing to find, and the ends say why.
        let tuned = tune(range, &Goal::Value(31.0), at, &wanted("elapsed"), (1, 2), &progress);
        let tuned = tuned.unwrap();
        assert_eq!((tuned.best, tuned.points.len()), (None, 2));
    }

    #[test]
    fn what_cannot_be_tuned() {
        let at = |value: &str| Ok(Synthetic::new("other", value.parse().unwrap(), 0.0));
        let range = Range::parse("10..30").unwrap();
        for (metric, why) in [
            ("frame_duration", "has no value at 10"),
            ("power", "was not measured"),
            ("*.sum", "one row is tuned"),
        ] {
            let goal = Goal::Value(1.0);
            let tuned = tune(range, &goal, at, &wanted(metric), (1, 2), &Progress::new());
            let error = tuned.unwrap_err().to_string();
            assert!(error.contains(why), "{metric}: {error}");
        }
    }
}
