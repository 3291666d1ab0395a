// SPDX-License-Identifier: GPL-2.0-or-later
//! How many seeds a comparison takes: a fixed number, or as many as its question needs.
//!
//! **A precision** ([`Iterations::Precision`], [`Iterations::Goals`]): the wanted differences have 95 % intervals of at most the wanted
//! half-width, in percent of the baseline's mean.
//! 1. run [`FIRST_LOOK`] seeds
//! 2. stop when every wanted half-width is reached
//! 3. else the widest says how many seeds it needs: `seeds * (half-width / wanted)^2`. Go on with as many, but with half as many again
//!    at most, because few seeds know their scatter badly, and with an eighth more at least, because each look is a chance to stop too
//!    early. Go to 2
//!
//! The rule looks at widths only, never at the sign or the significance of a difference, so that stopping early does not favour a
//! verdict. What it does favour are samples that happen to scatter little: intervals that ended a search are a little too narrow. Of
//! kernels that do not differ, 5 to 7.5 % instead of 5 % are called different; a test measures it.
//!
//! **An answer** ([`Iterations::Answer`]): whether the conditions of `--fail-if` hold. After [`ANSWER_LOOKS`] seeds, and then after half as
//! many again, a look asks whether the answer is certain: a condition holds, or none holds, wherever in its 99.9 % interval each
//! difference lies. Then it stops; after the last seed the usual 95 % interval decides, as without looks. This is the rule of Haybittle
//! and Peto for clinical trials: a look adds 0.1 % at most to the 5 % of wrong answers of the last one.

use schedtwin_input::Diagnostics;
use schedtwin_types::metric::declared;

use crate::compare::{Cell, ComparedRow, Comparison};
use crate::fail_if::Condition;
use crate::report::totals_of;
use crate::selector::Selector;
use crate::stats;

/// Seeds that `-n` has when it is not given.
pub const DEFAULT_ITERATIONS: usize = 10;

/// Seeds before a search for a precision looks first.
pub const FIRST_LOOK: usize = 6;

/// Seeds before a search for an answer looks first.
pub const ANSWER_LOOKS: usize = 4;

/// More seeds than this are a typing error: a thousand runs of a second are a quarter of an hour.
pub const MOST_ITERATIONS: usize = 100_000;

/// How many seeds.
#[derive(Clone, Debug, PartialEq)]
pub enum Iterations {
    /// That many.
    Fixed(usize),
    /// Until the primary differences are known that well, or `most` seeds are done.
    Precision {
        /// Half-width of the 95 % interval in percent of the baseline's mean.
        half_width_pct: f64,
        /// Bound of the number of seeds.
        most: usize,
    },
    /// Until each of these differences is known as well as it says.
    Goals {
        /// What shall be known, and how well.
        goals: Vec<Goal>,
        /// Bound of the number of seeds.
        most: usize,
    },
    /// Until each difference that a publication is sure of is known to a part of its published size.
    Published {
        /// Half-width of the 95 % interval in percent of the published difference.
        part_pct: f64,
        /// Seeds before the first look.
        first: usize,
        /// Bound of the number of seeds.
        most: usize,
    },
    /// Until it is certain whether one of the conditions holds.
    Answer {
        /// The conditions.
        conditions: Vec<Condition>,
        /// Bound of the number of seeds.
        most: usize,
    },
}

/// Rows, and how well their differences shall be known.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The rows.
    pub selector: Selector,
    /// Half-width of the 95 % interval in percent of the baseline's mean.
    pub half_width_pct: f64,
}

/// What a look at the measurements so far says.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// There are enough seeds.
    Enough,
    /// What is not known yet.
    Short {
        /// The row that is known worst, or the condition that is open, with how well it is known.
        what: String,
        /// About how many seeds it needs in all; `None`: nobody knows.
        needs: Option<usize>,
    },
}

impl Iterations {
    /// Seeds at most.
    pub fn most(&self) -> usize {
        match self {
            Iterations::Fixed(most)
            | Iterations::Precision { most, .. }
            | Iterations::Goals { most, .. }
            | Iterations::Published { most, .. }
            | Iterations::Answer { most, .. } => *most,
        }
    }

    /// Seeds before the first look.
    pub fn first(&self) -> usize {
        match self {
            Iterations::Fixed(seeds) => *seeds,
            Iterations::Precision { most, .. } | Iterations::Goals { most, .. } => {
                FIRST_LOOK.min(*most)
            }
            Iterations::Published { first, most, .. } => *first.min(most),
            Iterations::Answer { most, .. } => ANSWER_LOOKS.min(*most),
        }
    }

    /// Looks at a comparison's rows.
    pub fn look(&self, rows: &[ComparedRow]) -> Look {
        match self {
            // A study looks by itself: only it knows what was published.
            Iterations::Fixed(_) | Iterations::Published { .. } => Look::Enough,
            Iterations::Precision { half_width_pct, .. } => {
                worst_primary(rows.iter().filter(|row| row.row.is_whole()), *half_width_pct)
            }
            Iterations::Goals { goals, .. } => {
                let looks = goals.iter().map(|goal| goal.look(rows));
                looks.reduce(Look::worse).unwrap_or(Look::Enough)
            }
            Iterations::Answer { conditions, .. } => answered(conditions, rows),
        }
    }

    /// How many seeds to go on to, after a look at `done` that found too few; within the bound.
    pub fn next(&self, done: usize, needs: Option<usize>) -> usize {
        let (least, most) = (done + (done / 8).max(2), done + done.div_ceil(2));
        needs.unwrap_or(most).min(most).max(least).min(self.most())
    }

    /// Says that the bound was reached, and what is known until there.
    pub fn unreached(&self, what: &str) -> Option<String> {
        let most = self.most();
        match self {
            // After the last seed the usual interval decides: there is nothing to excuse.
            Iterations::Fixed(_) | Iterations::Answer { .. } => None,
            Iterations::Precision { half_width_pct, .. } => Some(format!(
                "the precision of {half_width_pct}% was not reached with {most} seeds: {what}"
            )),
            Iterations::Goals { .. } | Iterations::Published { .. } => {
                Some(format!("the precision was not reached with {most} seeds: {what}"))
            }
        }
    }
}

impl Look {
    pub(crate) fn worse(self, other: Look) -> Look {
        let rank = |look: &Look| match look {
            Look::Enough => 0,
            Look::Short { needs, .. } => needs.unwrap_or(usize::MAX),
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

impl Goal {
    /// Refuses a name of which `comparison` measured nothing.
    pub fn check(&self, comparison: &Comparison) -> Result<(), Diagnostics> {
        totals_of(&self.selector, &comparison.rows).map(|_| ())
    }

    fn look(&self, rows: &[ComparedRow]) -> Look {
        // More seeds measure no other rows: `check` says so in the end.
        let picked = totals_of(&self.selector, rows).unwrap_or_default();
        worst(picked.into_iter(), self.half_width_pct)
    }
}

/// Looks at the primary metrics of `rows`, or at all of them where there is none.
pub fn worst_primary<'a>(rows: impl Iterator<Item = &'a ComparedRow>, wanted_pct: f64) -> Look {
    let rows: Vec<&ComparedRow> = rows.collect();
    let is_primary = |row: &&ComparedRow| {
        declared(row.row.name).is_some_and(|metric| metric.primary)
            && matches!(row.row.stat, "mean" | "sum" | "gmean")
            && !row.row.is_undefined()
    };
    let primary: Vec<&ComparedRow> = rows.iter().copied().filter(is_primary).collect();
    worst(if primary.is_empty() { rows } else { primary }.into_iter(), wanted_pct)
}

pub(crate) fn worst<'a>(rows: impl Iterator<Item = &'a ComparedRow>, wanted_pct: f64) -> Look {
    let mut look = Look::Enough;
    for row in rows.filter(|row| !row.row.is_undefined()) {
        for difference in row.cells.iter().filter_map(|cell| cell.difference.as_ref()) {
            // A share of a baseline of zero is undefined however many seeds there are.
            if difference.ci95.is_some() && difference.ci95_pct.is_none() {
                continue;
            }
            let title = row.row.title();
            let short = match difference.half_width_pct() {
                None => {
                    Look::Short { what: format!("{title} is known to no interval"), needs: None }
                }
                Some(width) if width > wanted_pct => {
                    let ratio = width / wanted_pct;
                    let needs = (difference.n as f64 * ratio * ratio).ceil() as usize;
                    let what = format!("{title} is known to +-{width:.2}%");
                    Look::Short { what, needs: Some(needs) }
                }
                Some(_) => continue,
            };
            look = look.worse(short);
        }
    }
    look
}

/// Whether it is certain that a condition holds, or that none does.
fn answered(conditions: &[Condition], rows: &[ComparedRow]) -> Look {
    let wide: Vec<ComparedRow> = rows.iter().map(widened).collect();
    let mut open = None;
    for condition in conditions {
        match condition.certain(&wide) {
            Some(true) => return Look::Enough,
            Some(false) => {}
            None => open = open.or(Some(condition)),
        }
    }
    open.map_or(Look::Enough, |condition| Look::Short {
        what: format!("{} is open", condition.text()),
        needs: None,
    })
}

/// Whether a search that asks on which side of zero a difference lies would stop before the last seed.
pub fn stops_early(base: &[Option<f64>], other: &[Option<f64>]) -> bool {
    let most = base.len();
    let looks = std::iter::successors(Some(ANSWER_LOOKS), |done| Some(done + done.div_ceil(2)));
    looks.take_while(|done| *done < most).any(|done| {
        let wide = certain_difference(&base[..done], &other[..done]);
        wide.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    })
}

/// The 99.9 % interval of a paired difference, by which a look judges; `None` from one pair.
pub fn certain_difference(base: &[Option<f64>], other: &[Option<f64>]) -> Option<[f64; 2]> {
    let difference = stats::paired(base, other)?;
    Some(stats::widened(difference.ci95?, difference.n))
}

/// The row with intervals of 99.9 % in the place of those of 95 %.
fn widened(row: &ComparedRow) -> ComparedRow {
    let widen = |cell: &Cell| {
        let mut cell = cell.clone();
        if let Some(estimate) = &mut cell.estimate {
            estimate.ci95 = estimate.ci95.map(|ci| stats::widened(ci, estimate.n));
        }
        if let Some(difference) = &mut cell.difference {
            let n = difference.n;
            difference.ci95 = difference.ci95.map(|ci| stats::widened(ci, n));
            difference.ci95_pct = difference.ci95_pct.map(|ci| stats::widened(ci, n));
        }
        cell
    };
    ComparedRow { cells: row.cells.iter().map(widen).collect(), ..row.clone() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Progress;
    use crate::compare::{Plan, compare};
    use crate::provenance::Provenance;
    use crate::synthetic::Synthetic;

    fn against(other: Synthetic, first_seed: u64, iterations: Iterations) -> Comparison {
        let subjects = [Synthetic::new("base", 100.0, 5.0), other];
        let plan = Plan { first_seed, iterations };
        compare(&subjects, &plan, Provenance::default(), &Progress::new()).unwrap()
    }

    /// Of the same distribution as the baseline, but drawn by itself.
    fn same() -> Synthetic {
        Synthetic::new("other", 100.0, 5.0 + 1e-9)
    }

    fn elapsed(of: &Comparison) -> &ComparedRow {
        of.rows.iter().find(|row| row.row.name == "elapsed").unwrap()
    }

    fn condition(text: &str) -> Iterations {
        Iterations::Answer { conditions: vec![Condition::parse(text).unwrap()], most: 40 }
    }

    #[test]
    fn seeds_are_added_until_the_precision_is_reached_or_the_bound() {
        let run = |half_width_pct, most| {
            let other = Synthetic::new("other", 90.0, 5.0);
            against(other, 1, Iterations::Precision { half_width_pct, most })
        };
        let loose = run(50.0, 1000);
        // One notice says that the synthetic runs differ in length.
        assert_eq!((loose.seeds.len(), loose.notices.len()), (FIRST_LOOK, 1));
        // Independent differences of standard deviation 5 * sqrt(2): half-width 1 % needs about 195.
        let tight = run(1.0, 1000);
        assert!((160..=250).contains(&tight.seeds.len()), "{}", tight.seeds.len());
        let width = elapsed(&tight).cells[1].difference.unwrap().half_width_pct().unwrap();
        assert!(width <= 1.0, "{width}");
        let bounded = run(0.01, 25);
        assert_eq!(bounded.seeds.len(), 25);
        let notice = &bounded.notices[0];
        assert!(notice.contains("was not reached with 25 seeds: elapsed"), "{notice}");
    }

    #[test]
    fn a_goal_asks_only_for_what_it_names() {
        let goal = |text: &str, half_width_pct| Goal {
            selector: Selector::parse_list(text).unwrap().remove(0),
            half_width_pct,
        };
        let run = |goals: &[Goal]| {
            against(same(), 1, Iterations::Goals { goals: goals.to_vec(), most: 3000 })
        };
        let seeds = |goals: &[Goal]| run(goals).seeds.len();
        let both = [goal("elapsed", 3.0), goal("wakeup_latency.p99", 12.0)];
        let (one, other, both) = (seeds(&both[..1]), seeds(&both[1..]), seeds(&both));
        assert!(one < 60, "{one}");
        // Two exponential distributions: standard deviation sqrt(2) of the mean, some 530 pairs.
        assert!((400..900).contains(&other), "{other}");
        assert!(both.abs_diff(other) < 90, "the worse of the two decides: {both}, {other}");
        let absent = [goal("power.mean", 1.0)];
        assert!(absent[0].check(&run(&absent)).is_err(), "nothing measured it");
    }

    /// Two names of one distribution, unrelated draws: the searches end after 6 to 80 seeds, whenever the scatter looks small enough.
    #[test]
    fn a_search_for_precision_hides_little() {
        let (mut significant, mut lengths) = (0, BTreeSet::new());
        const SEARCHES: u64 = 2000;
        for search in 0..SEARCHES {
            let iterations = Iterations::Precision { half_width_pct: 3.0, most: 80 };
            let found = against(same(), 1 + 80 * search, iterations);
            significant += u64::from(elapsed(&found).cells[1].difference.unwrap().significant);
            lengths.insert(found.seeds.len());
        }
        assert!(lengths.len() >= 10, "the ends differ, else nothing is tested: {lengths:?}");
        let share = significant as f64 / SEARCHES as f64;
        assert!((0.04..=0.08).contains(&share), "{share}");
    }

    /// A true difference of nothing lies just at the limit: "certain" may be wrong in 2.5 % of the searches, on each side, and looks add
    /// at most half of 0.1 % each.
    #[test]
    fn looks_for_an_answer_cost_few_wrong_ones() {
        let (mut above, mut early) = (0, 0);
        const SEARCHES: u64 = 4000;
        for search in 0..SEARCHES {
            let found = against(same(), 1 + 40 * search, condition("elapsed>+0%"));
            early += u64::from(found.seeds.len() < 40);
            let judged = Condition::parse("elapsed>+0%").unwrap().judge(&found).unwrap();
            above += u64::from(judged.failed);
        }
        let share = above as f64 / SEARCHES as f64;
        assert!((0.018..=0.035).contains(&share), "{share}");
        assert!(early > 0 && early < SEARCHES / 50, "looks that stopped: {early}");
    }

    #[test]
    fn a_clear_answer_takes_few_seeds() {
        let seeds = |mean, text| {
            let found = against(Synthetic::new("other", mean, 5.0), 1, condition(text));
            let failed = Condition::parse(text).unwrap().judge(&found).unwrap().failed;
            (found.seeds.len(), failed, found.notices.len())
        };
        let (yes, no) = (seeds(200.0, "elapsed>+5%"), seeds(100.0 + 1e-9, "elapsed>+40%"));
        assert!(yes.0 <= 6 && yes.1, "{yes:?}");
        assert!(no.0 <= 9 && !no.1, "{no:?}");
        assert_eq!(seeds(105.0, "elapsed>+5%"), (40, false, 1), "open until the last seed");
        assert!(seeds(200.0, "possible:elapsed>+5%").0 <= 6);
        assert!(seeds(200.0, "mean:elapsed<+5%").0 <= 6);
    }
}
