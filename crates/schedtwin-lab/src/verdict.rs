// SPDX-License-Identifier: GPL-2.0-or-later
//! What a comparison concludes, the gravest first.
//!
//! A kernel that starves a few tasks can have better totals: the others get their CPU. So a verdict asks, in this order:
//!
//! 1. what ended a run, or kept it from ending;
//! 2. which properties ([`Property`]) were broken, under this kernel and not under the baseline;
//! 3. which thread class or cgroup was hurt most, beyond chance, whatever became of the totals;
//! 4. only then, the headlines. A kernel is *better* only if the first three found nothing.
//!
//! # Who is hurt
//!
//! Looked at are throughput, duration of frames, missed periods, wakeup latency, run_delay, missed deadlines and starved waits of each
//! task (with all its threads), scheduling class and cgroup; but no duration that grows by less than a hundredth of the time that
//! the task has left before its period ends; no waits of a task that hardly ever waits,
//! none that grow by less than 5 us, or in sum by less than a thousandth of the run, and sums of waits for the same work where the run does more. Many are looked at, so each must be as clear as one alone would have to be after Bonferroni's correction: p times their number
//! is below 0.05. A change of less than a hundredth hurts nobody, and no wait hurts a class whose own work (throughput, frames, jobs, slack) improves. The row with the largest change for the worse is named.
//! A workload of one class has none: its headlines say it all.

use schedtwin_engine::result::{Better, Breach, Property, RunResult};
use schedtwin_types::metric;
use std::collections::BTreeSet;

use crate::compare::{ComparedRow, Comparison};
use crate::measured::{Labels, Row};
use crate::stats::Difference;

/// What tells of a class that it is hurt: each kind of harm once, so that few rows are looked at.
const HARMS: [(&str, &[&str]); 8] = [
    ("throughput", &["mean"]),
    ("frame_duration", &["mean", "p99"]),
    ("job_duration", &["mean", "p99"]),
    ("missed_periods", &["mean"]),
    ("wakeup_latency", &["mean", "p99"]),
    ("run_delay", &["sum"]),
    ("deadline_misses", &["sum"]),
    ("starved", &["sum"]),
];

/// Labels that name a class of threads or a cgroup.
const CLASSES: [&str; 3] = ["task", "group", "class"];

/// The waits with a row for each task. Of one that hardly ever waits, such as the thread that starts the others, every
/// path's nanosecond is a change beyond chance, and hurts nobody: long waits are the properties' matter.
const WAITS: [&str; 2] = ["wakeup_latency", "run_delay"];

/// Durations of work, in the unit of slack.
const DURATIONS: [&str; 2] = ["frame_duration", "job_duration"];

/// A task that switches less often in each run hardly ever waits.
const FEW_SWITCHES: f64 = 10.0;

/// The least growth of a wait, us: less is the difference of two estimated path costs, the same in all seeds. The longest
/// path of a wakeup that was measured on a machine takes 2.7 us.
const LEAST_WAIT_US: f64 = 5.0;

/// The least growth of a sum of waits, in % of the run.
const LEAST_SUM_PCT: f64 = 0.1;

/// What people call a change: below a hundredth of the baseline nobody is hurt.
pub(crate) const LEAST_HARM_PCT: f64 = 1.0;

/// Two differences that happen to be equal have no spread: fewer seeds accuse nobody.
const LEAST_SEEDS: usize = 3;

/// What went wrong in the runs of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Troubles {
    /// Runs that were looked at.
    pub runs: usize,
    /// What ended runs, or kept them from ending: in the words of the first such run, and how many there were.
    pub ended: Vec<(String, usize)>,
    /// The properties that were broken, the gravest first.
    pub broken: Vec<Broken>,
}

/// A property that runs of one kernel broke.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The worst breach.
    pub worst: Breach,
    /// Number of runs that broke the property.
    pub runs: usize,
    /// The least seed whose run broke it.
    pub first_seed: u64,
    /// The seed of the worst breach.
    pub worst_seed: u64,
}

impl Broken {
    /// `first with seed 3`, and the seed of the worst breach where that is another one.
    pub fn seeds(&self) -> String {
        match (self.first_seed, self.worst_seed) {
            (first, worst) if first == worst => format!("first with seed {first}"),
            (first, worst) => format!("first with seed {first}, worst with seed {worst}"),
        }
    }
}

/// The part of a result that [`Troubles`] keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTroubles {
    /// What ended the run, or kept it from ending.
    pub ended: Vec<String>,
    /// Its breaches.
    pub broken: Vec<Breach>,
}

impl RunTroubles {
    /// Those of a result.
    pub fn of(result: &RunResult) -> RunTroubles {
        RunTroubles { ended: result.ended.clone(), broken: result.broken.clone() }
    }
}

impl Troubles {
    /// Adds those of the run with that seed.
    pub fn add(&mut self, seed: u64, run: RunTroubles) {
        self.runs += 1;
        for ended in run.ended {
            // The same end has another time with each seed: what comes before the first comma or colon tells them apart.
            let kind = |text: &str| text.split([',', ':']).next().unwrap_or_default().to_string();
            match self.ended.iter_mut().find(|(other, _)| kind(other) == kind(&ended)) {
                Some((_, runs)) => *runs += 1,
                None => self.ended.push((ended, 1)),
            }
        }
        for breach in run.broken {
            match self.broken.iter_mut().find(|of| of.worst.property == breach.property) {
                Some(of) => {
                    of.runs += 1;
                    of.first_seed = of.first_seed.min(seed);
                    if breach.longest > of.worst.longest {
                        (of.worst, of.worst_seed) = (breach, seed);
                    }
                }
                None => {
                    let (first_seed, worst_seed) = (seed, seed);
                    self.broken.push(Broken { worst: breach, runs: 1, first_seed, worst_seed });
                }
            }
        }
        self.broken.sort_by_key(|of| of.worst.property);
    }

    /// The runs that broke a property.
    pub fn runs_with(&self, property: Property) -> usize {
        let found = self.broken.iter().find(|of| of.worst.property == property);
        found.map_or(0, |of| of.runs)
    }
}

/// A thread class or cgroup that a kernel hurts.
#[derive(Clone, Copy, Debug)]
pub struct Hurt<'a> {
    /// The row with the largest change for the worse.
    pub row: &'a ComparedRow,
    /// That change.
    pub difference: Difference,
    /// How many rows were looked at.
    pub of: usize,
    /// Rows of other classes that are worse beyond chance, too.
    pub others: usize,
}

/// What is said of a kernel against the baseline.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// What ended runs here and not in as many runs of the baseline.
    pub ended: Vec<&'a (String, usize)>,
    /// Properties broken here, and in no run of the baseline.
    pub broken: Vec<&'a Broken>,
    /// Properties that the baseline breaks, too.
    pub shared: Vec<&'a Broken>,
    /// The same of the baseline.
    pub of_baseline: Vec<&'a Broken>,
    /// Who is hurt most.
    pub hurt: Option<Hurt<'a>>,
    /// How many runs there were.
    pub runs: usize,
}

/// A verdict in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A run ended or did not end, or a property was broken that the baseline keeps.
    Broken,
    /// A thread class or cgroup is hurt.
    Hurts,
    /// Nothing of that: the headlines decide.
    Headlines,
}

impl Word {
    /// As JSON has it.
    pub fn text(self) -> &'static str {
        match self {
            Word::Broken => "broken",
            Word::Hurts => "hurts",
            Word::Headlines => "headlines",
        }
    }
}

impl Verdict<'_> {
    /// In one word.
    pub fn word(&self) -> Word {
        if !self.ended.is_empty() || !self.broken.is_empty() {
            Word::Broken
        } else if self.hurt.is_some() {
            Word::Hurts
        } else {
            Word::Headlines
        }
    }

    /// One line for each end and each newly broken property, for the end of a command that was asked to judge.
    pub fn failures(&self, kernel: &str) -> Vec<String> {
        let in_runs = |runs: usize| format!("{runs} run{}", if runs == 1 { "" } else { "s" });
        let ended = self.ended.iter();
        let ended = ended.map(|(what, runs)| format!("{kernel}: {what} ({})", in_runs(*runs)));
        let broken = self.broken.iter().map(|of| {
            let (property, runs, seeds) = (of.worst.property, in_runs(of.runs), of.seeds());
            format!("{kernel} breaks {property} ({runs}, {seeds}): {}", words(&of.worst))
        });
        ended.chain(broken).collect()
    }
}

/// The verdict on a kernel of a comparison; the baseline's own has what it ends and breaks itself.
pub fn verdict(comparison: &Comparison, kernel: usize) -> Verdict<'_> {
    let none = || (Vec::new(), Vec::new(), Vec::new(), 0);
    let (ended, broken, shared, runs) = match comparison.troubles.get(kernel) {
        None => none(),
        Some(here) => {
            let base = (kernel > 0).then(|| &comparison.troubles[0]);
            let kept = |property| base.is_none_or(|base| base.runs_with(property) == 0);
            let (broken, shared): (Vec<_>, Vec<_>) =
                here.broken.iter().partition(|of| kept(of.worst.property));
            let base_ended: usize = base.map_or(0, |base| base.ended.iter().map(|e| e.1).sum());
            let mine: usize = here.ended.iter().map(|ended| ended.1).sum();
            let ended = here.ended.iter().filter(|_| mine > base_ended).collect();
            (ended, broken, shared, here.runs)
        }
    };
    let base = comparison.troubles.first().map_or(&[][..], |base| &base.broken[..]);
    let also = |of: &&Broken| shared.iter().any(|own| own.worst.property == of.worst.property);
    let of_baseline = base.iter().filter(also).collect();
    Verdict { ended, broken, shared, of_baseline, hurt: hurt(comparison, kernel), runs }
}

/// Whether the row is of a class of threads or a cgroup, and has a direction.
fn is_of_a_class(row: &ComparedRow) -> bool {
    let harm =
        |(name, stats): &(&str, &[&str])| *name == row.row.name && stats.contains(&row.row.stat);
    HARMS.iter().any(harm)
        && !row.doubtful
        && !row.not_judged
        && matches!(&row.row.labels[..], [(label, _)] if CLASSES.contains(label))
}

/// Tasks that hardly ever wait.
fn rarely_waiting(comparison: &Comparison) -> Vec<&Labels> {
    let few = |row: &&ComparedRow| {
        row.row.name == "context_switches"
            && matches!(row.row.labels[..], [("task", _)])
            && row.row.samples.iter().flatten().flatten().all(|switches| *switches < FEW_SWITCHES)
    };
    comparison.read_rows().iter().filter(few).map(|row| &row.row.labels).collect()
}

/// By how many percent the whole run's throughput rose beyond chance: who does more waits more often.
fn more_work(comparison: &Comparison, kernel: usize) -> f64 {
    let throughput = |row: &&ComparedRow| row.row.name == HARMS[0].0 && row.row.labels.is_empty();
    let row = comparison.read_rows().iter().find(throughput);
    let rose = row
        .and_then(|row| row.told(kernel))
        .filter(|difference| difference.p.is_some_and(|p| p < 0.05))
        .and_then(|difference| difference.diff_pct);
    rose.unwrap_or(0.0).max(0.0)
}

/// Whether the change of a wait is too short to hurt anybody, in runs of that many us.
fn is_short(row: &Row, difference: &Difference, run_us: f64) -> bool {
    let us = match row.unit {
        "ms" => 1000.0,
        _ => 1.0,
    };
    let least = match row.stat {
        "sum" => LEAST_WAIT_US.max(run_us * LEAST_SUM_PCT / 100.0),
        _ => LEAST_WAIT_US,
    };
    WAITS.contains(&row.name) && us * difference.diff.abs() < least
}

/// The baseline's mean length, us; 0 where nobody knows.
fn run_us(comparison: &Comparison) -> f64 {
    let elapsed = |row: &&ComparedRow| row.row.name == metric::ELAPSED.name && row.row.is_whole();
    let row = comparison.read_rows().iter().find(elapsed);
    row.and_then(|row| row.cells[0].estimate).map_or(0.0, |seconds| seconds.mean * 1e6)
}

fn hurt(comparison: &Comparison, kernel: usize) -> Option<Hurt<'_>> {
    if kernel == 0 || comparison.seeds.len() < LEAST_SEEDS {
        return None;
    }
    let rarely = rarely_waiting(comparison);
    let says_nothing =
        |row: &ComparedRow| WAITS.contains(&row.row.name) && rarely.contains(&&row.row.labels);
    let looked: Vec<(&ComparedRow, Difference)> = comparison
        .read_rows()
        .iter()
        .filter(|row| is_of_a_class(row) && !says_nothing(row))
        .filter_map(|row| Some((row, row.told(kernel)?)))
        .filter(|(_, difference)| difference.p.is_some())
        .collect();
    let mut classes: Vec<&str> = looked.iter().filter_map(|(row, _)| class_of(row)).collect();
    classes.sort_unstable();
    classes.dedup();
    if classes.len() < 2 {
        return None;
    }
    let of = looked.len();
    let does_better: BTreeSet<&Labels> = looked
        .iter()
        .filter(|(row, _)| !WAITS.contains(&row.row.name))
        .filter(|(row, difference)| {
            difference.significant && (difference.diff > 0.0) == (row.row.better == Better::Higher)
        })
        .map(|(row, _)| &row.row.labels)
        .collect();
    // What a task with a period has left of it; a frame that takes a little more of that is as good.
    let slack = |labels: &Labels| {
        let is_slack = |row: &&ComparedRow| {
            row.row.name == metric::SLACK.name
                && row.row.stat == "mean"
                && row.row.labels == *labels
        };
        let row = comparison.read_rows().iter().find(is_slack)?;
        Some(row.cells[0].estimate?.mean)
    };
    let in_time = |row: &ComparedRow, difference: &Difference| {
        DURATIONS.contains(&row.row.name)
            && slack(&row.row.labels)
                .is_some_and(|slack| 100.0 * difference.diff < LEAST_HARM_PCT * slack)
    };
    let (more_work, run_us) = (more_work(comparison, kernel), run_us(comparison));
    let mut worse: Vec<(&ComparedRow, Difference, f64)> = looked
        .into_iter()
        .filter(|(_, difference)| difference.p.is_some_and(|p| p * (of as f64) < 0.05))
        .filter(|(row, difference)| !is_short(&row.row, difference, run_us))
        .filter(|(row, difference)| !in_time(row, difference))
        // Whose work is done sooner may wait longer for it.
        .filter(|(row, _)| {
            !(WAITS.contains(&row.row.name) && does_better.contains(&row.row.labels))
        })
        .filter_map(|(row, difference)| {
            // A share counts by its points. A row that was zero has no percent: it has become worse beyond all measure.
            let base = row.cells[0].estimate.map_or(0.0, |base| base.mean.abs());
            let pct = match row.row.unit {
                "%" => difference.diff,
                _ => difference.diff_pct.unwrap_or(100.0 * difference.diff / base),
            };
            let harm = if row.row.better == Better::Higher { -pct } else { pct };
            // A loss of work cannot exceed 100 %: it is as many times as long for the same work.
            let harm = if row.row.better == Better::Higher && harm < 100.0 {
                100.0 * harm / (100.0 - harm)
            } else {
                harm
            };
            // A sum over all waits counts for the same work.
            let harm = match row.row.name {
                "run_delay" => 100.0 * (100.0 + harm) / (100.0 + more_work) - 100.0,
                _ => harm,
            };
            (harm >= LEAST_HARM_PCT).then_some((row, difference, harm))
        })
        .collect();
    // Work that is not done counts before waits, and the larger harm first.
    let work = |row: &ComparedRow| row.row.name == HARMS[0].0;
    worse.sort_by(|a, b| (work(b.0), b.2).partial_cmp(&(work(a.0), a.2)).expect("no NaN"));
    let &(row, difference, _) = worse.first()?;
    let mut others: Vec<&str> = worse.iter().filter_map(|(row, ..)| class_of(row)).collect();
    others.sort_unstable();
    others.dedup();
    Some(Hurt { row, difference, of, others: others.len() - 1 })
}

fn class_of(row: &ComparedRow) -> Option<&str> {
    row.row.labels.first().map(|(_, value)| value.as_str())
}

/// `worker-3 waited 4.87 s (still at the end; the bound is 1 s) on CPU 1, where hog ran`.
pub fn words(breach: &Breach) -> String {
    let Breach { property, count, longest, open, since, who, how, bound, .. } = breach;
    let did = match property {
        Property::Starvation
        | Property::LatencyBound
        | Property::LockHeld
        | Property::PriorityInversion
        | Property::WorkConservation => "waited",
        Property::ClockHeld | Property::ClockAbove | Property::IdleStuck => "was for",
        Property::ThrottledEarly => "was throttled",
        Property::Bandwidth => "used",
        Property::Fairness => "was owed",
    };
    let length = time(*longest);
    let length = if *open { format!("at least {length} (until the end)") } else { length };
    let more = match count {
        1 => String::new(),
        count => format!("; {count} times in that run"),
    };
    format!("{who} {did} {length} from {} on, {how} (bound {}{more})", time(*since), time(*bound))
}

/// `4.87 s`, `120 ms`.
fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn breach(property: Property, longest: u64) -> Breach {
        Breach {
            property,
            count: 2,
            longest,
            open: true,
            since: 100_000_000,
            who: "worker-3".into(),
            group: "worker".into(),
            how: "on CPU 1, where hog ran".into(),
            bound: 1_000_000_000,
        }
    }

    fn with(base: &[Breach], other: &[Breach]) -> Comparison {
        let mut comparison = example::comparison();
        comparison.troubles = vec![Troubles::default(); 2];
        for (kernel, broken) in [base, other].into_iter().enumerate() {
            comparison.troubles[kernel]
                .add(1, RunTroubles { ended: Vec::new(), broken: broken.to_vec() });
        }
        comparison
    }

    #[test]
    fn what_only_this_kernel_breaks_comes_first() {
        let starved = breach(Property::Starvation, 4_870_000_000);
        let wasted = breach(Property::WorkConservation, 200_000_000);
        let comparison = with(std::slice::from_ref(&wasted), &[wasted.clone(), starved]);
        let found = verdict(&comparison, 1);
        assert_eq!(found.word(), Word::Broken);
        assert_eq!(found.broken.len(), 1);
        assert_eq!(found.shared.len(), 1);
        assert_eq!(
            found.failures("B"),
            [
                "B breaks starvation (1 run, first with seed 1): worker-3 waited at least 4.87 s (until the end) from 100 ms on, on CPU 1, \
              where hog ran (bound 1.00 s; 2 times in that run)"
            ]
        );
        // The example has a task that waits longer.
        assert_eq!(verdict(&with(&[], &[]), 1).word(), Word::Hurts);
        assert_eq!(verdict(&with(&[], &[]), 0).word(), Word::Headlines);
    }

    #[test]
    fn waits_of_a_task_that_hardly_ever_waits_hurt_nobody() {
        let mut comparison = example::comparison();
        let hurt = verdict(&comparison, 1).hurt.expect("the example has one").row.clone();
        assert!(WAITS.contains(&hurt.row.name), "{:?}", hurt.row);
        let mut switches = hurt;
        switches.row.name = "context_switches";
        for (few, word) in [(FEW_SWITCHES, Word::Hurts), (FEW_SWITCHES - 1.0, Word::Headlines)] {
            switches.row.samples.iter_mut().flatten().for_each(|of| *of = Some(few));
            comparison.rows.push(switches.clone());
            assert_eq!(verdict(&comparison, 1).word(), word);
            comparison.rows.pop();
        }
    }

    #[test]
    fn a_verdict_is_of_all_rows_whichever_are_shown() {
        let mut comparison = with(&[], &[]);
        let selectors = crate::selector::Selector::parse_list("power").unwrap();
        crate::report::choose_rows(&mut comparison, &selectors).unwrap();
        assert!(comparison.rows.iter().all(|row| row.row.name == "power"));
        assert_eq!(verdict(&comparison, 1).word(), Word::Hurts);
    }

    #[test]
    fn whose_work_is_done_sooner_is_hurt_by_no_wait() {
        let mut comparison = with(&[], &[]);
        let hurt = verdict(&comparison, 1).hurt.expect("the example has one");
        let (mut row, labels) = (hurt.row.clone(), hurt.row.row.labels.clone());
        let faster = comparison.rows.iter().find(|row| row.row.name == "frame_duration");
        row.row.name = "frame_duration";
        row.row.stat = "mean";
        row.cells = faster.expect("frames get shorter").cells.clone();
        row.row.labels = labels;
        comparison.rows.push(row);
        assert_eq!(verdict(&comparison, 1).word(), Word::Headlines);
    }

    #[test]
    fn of_each_property_the_worst_run_is_kept() {
        let mut troubles = Troubles::default();
        for (seed, longest) in [(7, 3), (8, 9), (5, 5)] {
            let broken = vec![breach(Property::Starvation, longest)];
            troubles.add(seed, RunTroubles { ended: vec!["it ended, at 4 s".into()], broken });
        }
        troubles.add(1, RunTroubles::default());
        assert_eq!((troubles.runs, troubles.runs_with(Property::Starvation)), (4, 3));
        assert_eq!(troubles.broken[0].worst.longest, 9);
        assert_eq!(troubles.broken[0].seeds(), "first with seed 5, worst with seed 8");
        assert_eq!(troubles.ended, [("it ended, at 4 s".to_string(), 3)]);
    }
}
