// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels against each other: every kernel runs every seed, and rows of samples become differences.
//!
//! Seeds are `first_seed, first_seed + 1, ...`, the same for every kernel, so the comparison is
//! paired (see [`crate::stats`]). Runs go in parallel; results are folded in the order (seed, kernel),
//! so the number of threads changes no byte.
//! [`crate::stopping`] says how many there are.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use schedtwin_engine::result::{Metric, RunResult};
use schedtwin_types::{Ns, metric};

use crate::Progress;
use crate::balancing::{WidestLevel, asleep_warnings, unscanned_warning};
use crate::crash::Crash;
use crate::many_parts;
use crate::measured::{Measured, Row};
use crate::provenance::Provenance;
use crate::stats::{self, Difference, Estimate};
use crate::stopping::{Iterations, Look};
use crate::verdict::{RunTroubles, Troubles};

/// A thing that can be run with a seed: the twin's scenario, or a stand-in in tests.
pub trait Subject: Sync {
    /// The column's identity: the kernel as the user spelled it.
    fn name(&self) -> &str;
    /// The commits of the C that it runs, with their subjects.
    fn commits(&self) -> Vec<String> {
        Vec::new()
    }
    /// Files of the kernel that its tree and another's do not share, and that neither runs.
    fn changed_and_not_taken(&self, _base: &Self) -> Vec<String> {
        Vec::new()
    }
    /// How long a run simulates, where that is known before.
    fn duration(&self) -> Option<Ns>;
    /// How its CPUs balance at the widest level; `None`: they do not, or nobody knows.
    fn widest_level(&self) -> Option<WidestLevel> {
        None
    }
    /// CPUs of a cache that wakeups do not search at first, `Scenario::unscanned_at_first`.
    fn unscanned_at_first(&self) -> Option<u32> {
        None
    }
    /// The machine's file says that it takes no power while all its CPUs sleep.
    fn sleeps_without_power(&self) -> bool {
        false
    }
    /// schedutil asks for clocks that Linux leaves to the processor's own driver, unless told.
    fn leaves_clocks_to_schedutil(&self) -> bool {
        false
    }
    /// It throttles cgroups with `cpu.max` as another kernel does.
    fn throttles_like(&self, _base: &Self) -> bool {
        true
    }
    /// Nothing runs beside the workload (`--system`).
    fn is_alone(&self) -> bool {
        false
    }
    /// One run; stores the simulated ns so far into `simulated` now and then.
    fn run(&self, seed: u64, simulated: Arc<AtomicU64>) -> io::Result<RunResult>;
    /// Returns the command that repeats one run alone.
    fn command(&self, seed: u64) -> String;
}

/// Seeds of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Seed of the first iteration.
    pub first_seed: u64,
    /// How many.
    pub iterations: Iterations,
}

/// One kernel's value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Mean over the seeds; `None` where no seed defined it.
    pub estimate: Option<Estimate>,
    /// Against the baseline; `None` for the baseline itself and where a side is undefined.
    pub difference: Option<Difference>,
}

/// A compared metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// Name, stat, unit, labels and samples.
    pub row: Row,
    /// By kernel; the first is the baseline.
    pub cells: Vec<Cell>,
    /// It depends on something in which a replay differs too much from its recording.
    pub doubtful: bool,
    /// The recording does not tell whether a replay differs from it there.
    pub not_judged: bool,
}

impl ComparedRow {
    /// The difference of a kernel as it is told. A t-interval is symmetric, so that of scattered values may reach below what
    /// they can lose: of values that are never negative it ends at -100 %.
    pub fn told(&self, kernel: usize) -> Option<Difference> {
        let mut difference = self.cells[kernel].difference?;
        if let (Some([low, _]), Some([low_pct, _])) =
            (&mut difference.ci95, &mut difference.ci95_pct)
            && *low_pct < -100.0
            && self.is_never_negative()
        {
            *low *= -100.0 / *low_pct;
            *low_pct = -100.0;
        }
        Some(difference)
    }

    /// The word of a row that a replay's figures do not bear out: `doubtful`, `not judged`.
    pub fn standing(&self) -> Option<&'static str> {
        match (self.not_judged, self.doubtful) {
            (true, _) => Some("not judged"),
            (_, true) => Some("doubtful"),
            _ => None,
        }
    }

    fn is_never_negative(&self) -> bool {
        let declared = metric::declared(self.row.name);
        declared.is_none_or(|metric| !metric.may_be_negative())
            && self.row.samples.iter().flatten().flatten().all(|sample| *sample >= 0.0)
    }
}

/// All that a comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Where it comes from.
    pub provenance: Provenance,
    /// Names of the columns; the first is the baseline.
    pub kernels: Vec<String>,
    /// Of each column the commits of the C that it runs, with their subjects; fewer entries where there are none.
    pub commits: Vec<Vec<String>>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// The metrics.
    pub rows: Vec<ComparedRow>,
    /// All of them, where `rows` are those that were asked for.
    pub all_rows: Option<Vec<ComparedRow>>,
    /// Per kernel: with how many seeds it executed exactly what the baseline executed.
    pub identical_executions: Vec<usize>,
    /// Per kernel: whether it throttles cgroups with `cpu.max` as the baseline does, at the same place of a task's way.
    pub throttles_alike: Vec<bool>,
    /// Things worth knowing, each once: what runs reported, a precision that was not reached.
    pub notices: Vec<String>,
    /// Per kernel: what ended runs, and which properties they broke.
    pub troubles: Vec<Troubles>,
    /// Runs that panicked: their samples are undefined.
    pub crashes: Vec<Crash>,
}

impl Comparison {
    /// The rows that verdicts read, whichever are shown.
    pub fn read_rows(&self) -> &[ComparedRow] {
        self.all_rows.as_ref().unwrap_or(&self.rows)
    }

    /// A kernel's name as legends have it: with the commit that it is.
    pub fn named(&self, kernel: usize) -> String {
        let name = &self.kernels[kernel];
        match self.commits.get(kernel).map(|commits| commits.join("; ")) {
            Some(commits) if !commits.is_empty() => format!("{name} ({commits})"),
            _ => name.clone(),
        }
    }
}

/// Runs every subject with every seed and compares the others to the first.
///
/// # Panics
/// Without a subject, without an iteration, or with seeds beyond `u64::MAX`: callers check these.
pub fn compare<S: Subject>(
    subjects: &[S],
    plan: &Plan,
    provenance: Provenance,
    progress: &Progress,
) -> io::Result<Comparison> {
    progress.expect_runs(plan.first_runs(subjects.len()));
    let span = if subjects[0].duration().is_some() { Span::Asked } else { Span::OfTheWork };
    let look = |rows: &[Row]| plan.iterations.look(&judge(rows.to_vec(), span));
    let Sampled { rows, digests, seeds, mut notices, troubles, crashes } =
        sample(subjects, plan, progress, look)?;
    notices.extend(told_of_spans(&rows, span));
    notices.extend(subjects[0].widest_level().and_then(|level| level.warning(&rows)));
    notices.extend(subjects.iter().find_map(|subject| {
        unscanned_warning(subject.name(), subject.unscanned_at_first()?, &rows)
    }));
    notices.extend(told_of_tails(&rows, |kernel| subjects[kernel].name()));
    let base = &subjects[0];
    notices.extend(subjects[1..].iter().filter_map(|subject| {
        told_of_files(subject.name(), base.name(), &subject.changed_and_not_taken(base))
    }));
    if subjects.iter().all(Subject::leaves_clocks_to_schedutil) {
        notices.push(CLOCKS_OF_SCHEDUTIL.to_string());
    }
    notices.extend(asleep_warnings(&rows, base.sleeps_without_power(), base.is_alone()));
    let identical = |kernel: &Vec<Option<u64>>| {
        kernel.iter().zip(&digests[0]).filter(|(a, b)| a.is_some() && a == b).count()
    };
    Ok(Comparison {
        provenance,
        kernels: subjects.iter().map(|s| s.name().to_string()).collect(),
        commits: subjects.iter().map(Subject::commits).collect(),
        seeds,
        rows: judge(rows, span),
        all_rows: None,
        troubles,
        identical_executions: digests.iter().map(identical).collect(),
        throttles_alike: subjects.iter().map(|subject| subject.throttles_like(base)).collect(),
        notices,
        crashes,
    })
}

/// The notice on x86 where nobody has named a driver.
const CLOCKS_OF_SCHEDUTIL: &str = "all kernels here have schedutil over the machine's own driver. Linux has intel_pstate or \
    amd-pstate-epp on such a processor, which decide themselves: scaling_driver=..., docs/governors.md";

/// The notice of files that no kernel here takes, though their commits do not share them.
fn told_of_files(name: &str, base: &str, files: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let (first, more) = files.split_at(files.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!first.is_empty()).then(|| {
        format!(
            "{name} and {base} also differ in {}{more}, which no run takes: of a tree only idle governors and schedutil run",
            first.join(", ")
        )
    })
}

/// The measurements of runs, not judged yet.
pub struct Sampled {
    /// The metrics with their samples.
    pub rows: Vec<Row>,
    /// By kernel, then by seed: equal digests are equal executions; `None` of a run that panicked.
    pub digests: Vec<Vec<Option<u64>>>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// Things worth knowing, each once.
    pub notices: Vec<String>,
    /// By kernel: what ended runs, and which properties they broke.
    pub troubles: Vec<Troubles>,
    /// Runs that panicked, in the order of the seeds.
    pub crashes: Vec<Crash>,
}

impl Plan {
    /// Runs of the first round, before anything is looked at.
    pub fn first_runs(&self, subjects: usize) -> u64 {
        (self.iterations.first() * subjects) as u64
    }
}

/// Runs every subject with every seed. The caller has announced the runs of the first round;
/// `look` says after each round whether there are enough seeds.
///
/// # Panics
/// As [`compare`].
pub fn sample<S: Subject>(
    subjects: &[S],
    plan: &Plan,
    progress: &Progress,
    look: impl Fn(&[Row]) -> Look,
) -> io::Result<Sampled> {
    assert!(!subjects.is_empty(), "a comparison has a baseline");
    let mut measured = Measured::new(subjects.len());
    let mut digests: Vec<Vec<Option<u64>>> = vec![Vec::new(); subjects.len()];
    let mut notices: Vec<String> = Vec::new();
    let mut troubles = vec![Troubles::default(); subjects.len()];
    let mut crashes = Vec::new();
    let mut done = 0;
    let mut wanted = plan.iterations.first();
    assert!(wanted > 0, "a comparison has a seed");
    loop {
        while done < wanted {
            // Batches bound the memory: results shrink to their samples when a batch is folded.
            let batch =
                (rayon::current_num_threads() * 8).div_ceil(subjects.len()).min(wanted - done);
            for (job, outcome) in
                run_batch(subjects, plan.first_seed, done, batch, progress)?.into_iter().enumerate()
            {
                let (seed_number, kernel) = (done + job / subjects.len(), job % subjects.len());
                let outcome = match outcome {
                    Ok(outcome) => outcome,
                    Err(crash) => {
                        digests[kernel].push(None);
                        crashes.push(crash);
                        continue;
                    }
                };
                measured.add(kernel, seed_number, outcome.metrics);
                digests[kernel].push(Some(outcome.digest));
                troubles[kernel].add(plan.first_seed + seed_number as u64, outcome.troubles);
                for notice in outcome.notices {
                    if !notices.contains(&notice) {
                        notices.push(notice);
                    }
                }
            }
            done += batch;
        }
        if matches!(plan.iterations, Iterations::Fixed(_)) {
            break;
        }
        let Look::Short { what, needs } = look(&measured.rows(done)) else { break };
        if done >= plan.iterations.most() {
            notices.extend(plan.iterations.unreached(&what));
            break;
        }
        wanted = plan.iterations.next(done, needs);
        progress.expect_runs(((wanted - done) * subjects.len()) as u64);
    }
    Ok(Sampled {
        rows: measured.rows(done),
        digests,
        seeds: (0..done as u64).map(|i| plan.first_seed + i).collect(),
        notices,
        troubles,
        crashes,
    })
}

struct Outcome {
    troubles: RunTroubles,
    metrics: Vec<Metric>,
    digest: u64,
    notices: Vec<String>,
}

fn run_batch<S: Subject>(
    subjects: &[S],
    first_seed: u64,
    from: usize,
    seeds: usize,
    progress: &Progress,
) -> io::Result<Vec<Result<Outcome, Crash>>> {
    let seed = |number: usize| {
        first_seed.checked_add((from + number) as u64).expect("the caller bounds the seeds")
    };
    attempt_all(subjects, seed(0)..=seed(seeds - 1), progress, |mut result| {
        many_parts::summarise(&mut result.metrics);
        Outcome {
            troubles: RunTroubles::of(&result),
            metrics: result.metrics,
            digest: result.digest,
            notices: result.notices,
        }
    })
}

/// Runs every subject with every seed on all CPUs, and keeps `of` of each result: in the order of the seeds, and of the
/// subjects for each.
pub fn attempt_all<S: Subject, T: Send>(
    subjects: &[S],
    seeds: RangeInclusive<u64>,
    progress: &Progress,
    of: impl Fn(RunResult) -> T + Sync,
) -> io::Result<Vec<Result<T, Crash>>> {
    let jobs: Vec<(u64, &S)> =
        seeds.flat_map(|seed| subjects.iter().map(move |subject| (seed, subject))).collect();
    jobs.into_par_iter()
        // Runs take long and unequally; rayon shall hand them out one at a time.
        .with_max_len(1)
        .map(|(seed, subject)| Ok(progress.attempt(subject, seed)?.map(&of)))
        .collect()
}

/// What decides how long runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A duration that was asked for: a run that goes on longer has not done more of what was asked.
    Asked,
    /// The work: a slower kernel takes longer, and its sums are what the work costs.
    OfTheWork,
}

/// Runs of the same seed differ in length if one is longer than the other by more than a hundredth.
fn differs(a: f64, b: f64) -> bool {
    (a - b).abs() > 0.01 * a.min(b)
}

/// By kernel and seed: how much longer the run is than the baseline's of the same seed; `None` where all are as long, or the
/// length is the work's own.
fn stretches(rows: &[Row], span: Span) -> Option<Vec<Vec<f64>>> {
    let elapsed = rows.iter().find(|row| row.name == metric::ELAPSED.name && row.is_whole())?;
    let (base, mut differ) = (&elapsed.samples[0], false);
    let stretch = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) if *a > 0.0 && *b > 0.0 && differs(*a, *b) => b / a,
        _ => 1.0,
    };
    let of = |samples: &Vec<Option<f64>>| base.iter().zip(samples).map(stretch).collect();
    let stretches: Vec<Vec<f64>> = elapsed.samples.iter().map(of).collect();
    differ |= stretches.iter().flatten().any(|stretch| *stretch != 1.0);
    (differ && span == Span::Asked).then_some(stretches)
}

/// Says that changes of sums are per second, where they are.
pub fn told_of_spans(rows: &[Row], span: Span) -> Option<String> {
    stretches(rows, span)?;
    Some(
        "runs of a seed did not last equally long (see elapsed). A change with ~ is of sums per second, or of \
         throughput by all that was done, and not that of the two values beside it"
            .to_string(),
    )
}

/// Says where a tail is longer than the quantile that is to show it: a few waits are so long that the mean exceeds p99.
fn told_of_tails<'s>(rows: &[Row], name: impl Fn(usize) -> &'s str) -> Option<String> {
    let mean_of = |row: &Row, kernel: usize| stats::estimate(&row.samples[kernel]).map(|e| e.mean);
    let whole = |row: &&Row, stat| row.stat == stat && row.is_whole();
    // Of rows that a table shows.
    let listed = |row: &&Row| {
        metric::declared(row.name).is_some_and(|of| of.headline.whole.contains(&row.stat))
    };
    rows.iter().filter(|row| whole(row, "mean") && listed(row)).find_map(|mean| {
        let p99 = rows.iter().find(|row| row.name == mean.name && whole(row, "p99"))?;
        let kernel = (0..mean.samples.len())
            .find(|kernel| mean_of(mean, *kernel) > mean_of(p99, *kernel))?;
        Some(format!(
            "the mean of {} under {} is above its p99: fewer than one in a hundred are so long that p99 does not show them. Look at \
             --metric '{}.max' and .p99.9",
            mean.name,
            name(kernel),
            mean.name,
        ))
    })
}

/// Turns rows of samples into estimates and paired differences to the first kernel. Of runs of different length for the same
/// duration, sums that grow with time are compared per second, and throughput by all that was done.
pub fn judge(rows: Vec<Row>, span: Span) -> Vec<ComparedRow> {
    let stretches = stretches(&rows, span);
    rows.into_iter()
        .map(|row| {
            let grows = metric::declared(row.name).is_some_and(|of| of.grows_with_time(row.stat));
            // Who has done the same and waits for another one's end has no lower throughput.
            let is_throughput = row.name == metric::THROUGHPUT.name;
            let scaling = stretches.as_ref().filter(|_| grows || is_throughput);
            let difference = |kernel: usize, samples: &Vec<Option<f64>>| match scaling {
                None => stats::paired(&row.samples[0], samples),
                Some(stretches) => {
                    let scale = |by: &f64| if is_throughput { *by } else { by.recip() };
                    let scaled = samples.iter().zip(&stretches[kernel]);
                    let scaled: Vec<_> = scaled.map(|(s, by)| s.map(|s| s * scale(by))).collect();
                    let difference = stats::paired(&row.samples[0], &scaled);
                    let for_equal_lengths = stretches[kernel].iter().any(|by| *by != 1.0);
                    difference.map(|found| Difference { for_equal_lengths, ..found })
                }
            };
            let cell = |(kernel, samples): (usize, &Vec<Option<f64>>)| Cell {
                estimate: stats::estimate(samples),
                difference: (kernel > 0).then(|| difference(kernel, samples)).flatten(),
            };
            let cells = row.samples.iter().enumerate().map(cell).collect();
            ComparedRow { row, cells, doubtful: false, not_judged: false }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

    fn plan(first_seed: u64, n: usize) -> Plan {
        Plan { first_seed, iterations: Iterations::Fixed(n) }
    }

    fn subjects() -> Vec<Synthetic> {
        vec![Synthetic::new("base", 100.0, 5.0), Synthetic::new("other", 90.0, 5.0)]
    }

    #[test]
    fn thread_count_changes_nothing() {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                compare(&subjects(), &plan(7, 33), Provenance::default(), &Progress::new()).unwrap()
            })
        };
        let one = run(1);
        assert_eq!(one, run(5));
        assert_eq!(one.seeds, (7..40).collect::<Vec<u64>>());
        let row = one.rows.iter().find(|row| row.row.name == "elapsed").unwrap();
        assert!(row.cells[1].difference.unwrap().significant, "{:?}", row.cells[1]);
        assert_eq!(row.row.samples[0].len(), 33);
        assert!(row.cells[0].difference.is_none());
    }

    #[test]
    fn a_kernel_against_itself_is_identical_and_never_significant() {
        let twice = [Synthetic::new("base", 100.0, 5.0), Synthetic::new("base", 100.0, 5.0)];
        let comparison =
            compare(&twice, &plan(1, 6), Provenance::default(), &Progress::new()).unwrap();
        assert_eq!(comparison.identical_executions, [6, 6]);
        for row in &comparison.rows {
            assert!(row.cells[1].difference.is_none_or(|d| d.diff == 0.0 && !d.significant));
        }
    }

    /// With seed 3 the second kernel panics: every other run counts, and nothing is left out without a word.
    #[test]
    fn a_run_that_panics_costs_only_itself() {
        let mut with_bug = subjects();
        with_bug[1].panics_at = Some(3);
        let run = |subjects: &[Synthetic], threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let progress = Progress::new();
            let found = pool.install(|| {
                compare(subjects, &plan(1, 5), Provenance::default(), &progress).unwrap()
            });
            assert_eq!(found.crashes, progress.crashes());
            found
        };
        let (whole, found) = (run(&subjects(), 1), run(&with_bug, 1));
        assert_eq!(found, run(&with_bug, 4));
        assert_eq!(
            found.crashes,
            [Crash {
                seed: 3,
                kernel: "other".into(),
                message: "a bug with seed 3".into(),
                command: "synthetic other --seed 3".into(),
            }]
        );
        assert_eq!(found.seeds, [1, 2, 3, 4, 5]);
        for (row, without) in whole.rows.iter().zip(&found.rows) {
            assert_eq!(row.row.samples[0], without.row.samples[0], "the baseline is whole");
            for (at, sample) in without.row.samples[1].iter().enumerate() {
                let expected = if at == 2 { None } else { row.row.samples[1][at] };
                assert_eq!(*sample, expected);
            }
        }
        let elapsed = found.rows.iter().find(|row| row.row.name == "elapsed").unwrap();
        assert_eq!(elapsed.cells[1].estimate.unwrap().n, 4);
        assert_eq!(elapsed.cells[1].difference.unwrap().n, 4);

        // A kernel whose every run panics leaves the others' columns.
        with_bug[1].panics_at = Some(1);
        let progress = Progress::new();
        let found = compare(&with_bug, &plan(1, 1), Provenance::default(), &progress).unwrap();
        assert_eq!((found.crashes.len(), found.identical_executions), (1, vec![1, 0]));
        let elapsed = found.rows.iter().find(|row| row.row.name == "elapsed").unwrap();
        assert!(elapsed.cells[0].estimate.is_some() && elapsed.cells[1].estimate.is_none());
    }

    #[test]
    fn throughput_of_runs_that_last_longer_counts_all_that_was_done() {
        let told = |span| {
            let mut measured = Measured::new(2);
            // 100 jobs in 10 s, and in 12.5 s: another thread ended later.
            for (kernel, [elapsed, rate]) in [[10.0, 10.0], [12.5, 8.0]].into_iter().enumerate() {
                for seed in 0..2 {
                    let elapsed = metric::ELAPSED.value("sum", Vec::new(), Some(elapsed));
                    let rate = metric::THROUGHPUT.value("mean", Vec::new(), Some(rate));
                    measured.add(kernel, seed, vec![elapsed, rate]);
                }
            }
            judge(measured.rows(2), span)[1].cells[1].difference.unwrap().diff_pct
        };
        assert_eq!((told(Span::Asked), told(Span::OfTheWork)), (Some(0.0), Some(-20.0)));
    }

    #[test]
    fn a_tail_that_p99_does_not_show_is_told() {
        let row = |stat, samples: [f64; 2]| Row {
            name: metric::WAKEUP_LATENCY.name,
            stat,
            unit: "us",
            labels: Default::default(),
            kind: metric::Kind::One,
            better: metric::Better::Lower,
            samples: samples.map(|value| vec![Some(value)]).to_vec(),
        };
        let told = |rows: &[Row]| told_of_tails(rows, |kernel| ["a", "b"][kernel]);
        let notice = told(&[row("mean", [90.0, 426.0]), row("p99", [9010.0, 16.3])]).unwrap();
        assert!(
            notice.starts_with("the mean of wakeup_latency under b is above its p99"),
            "{notice}"
        );
        assert_eq!(told(&[row("mean", [90.0, 4.0]), row("p99", [9010.0, 16.3])]), None);
    }

    #[test]
    fn of_values_that_are_never_negative_no_interval_is_below_minus_100_percent() {
        let row = |name: &'static str, samples: [[f64; 3]; 2]| {
            let metric = metric::declared(name).expect("it is declared");
            let mut measured = Measured::new(2);
            for (kernel, of_kernel) in samples.iter().enumerate() {
                for (seed, value) in of_kernel.iter().enumerate() {
                    let value = metric.value("mean", Vec::new(), Some(*value));
                    measured.add(kernel, seed, vec![value]);
                }
            }
            judge(measured.rows(3), Span::Asked).remove(0)
        };
        let scattered = [[1.0, 10.0, 4.0], [2.0, 1.0, 3.0]];
        let of_power = row("power", scattered);
        let raw = of_power.cells[1].difference.unwrap();
        assert!(raw.ci95_pct.unwrap()[0] < -100.0, "{raw:?}");
        let told = of_power.told(1).unwrap();
        assert_eq!(told.ci95_pct.unwrap()[0], -100.0);
        assert!((told.ci95.unwrap()[0] + 5.0).abs() < 1e-9, "the baseline's mean: {told:?}");
        assert_eq!(told.ci95_pct.unwrap()[1], raw.ci95_pct.unwrap()[1]);
        // Slack may be negative, whatever its samples are.
        let of_slack = row("slack", scattered);
        assert_eq!(of_slack.told(1), of_slack.cells[1].difference);
        // A narrow interval stays.
        let narrow = row("power", [[1.0, 2.0, 3.0], [1.1, 2.1, 3.2]]);
        assert_eq!(narrow.told(1), narrow.cells[1].difference);
    }

    #[test]
    fn a_failing_run_is_an_error() {
        let mut subjects = subjects();
        subjects[1].fails_at = Some(3);
        let error =
            compare(&subjects, &plan(1, 5), Provenance::default(), &Progress::new()).unwrap_err();
        assert_eq!(error.to_string(), "no space");
    }
}
