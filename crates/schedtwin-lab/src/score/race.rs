// SPDX-License-Identifier: GPL-2.0-or-later
//! Candidates beside the baseline, round by round.
//!
//! 1. every candidate that is left runs every job with the next seed
//! 2. it is over if a run broke a limit: its score is [`WORST`], whatever the rest would be
//! 3. it is over if it cannot reach the score to beat: with every run that is left at the cap its score is below. This is certain
//! 4. in a race it is over if a rival is better by the 99.9 % interval of their paired difference, after three seeds or more. This is an
//!    estimate: the intervals of runs that are not normal are wrong more often
//!
//! References: Maron and Moore, Hoeffding Races (1994), for bounds from the range alone.

use std::io;

use rayon::prelude::*;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_input::{Diagnostics, Source};

use super::judge::{Fault, Judged, judge, most_gain};
use super::prepare::{Baseline, Performed, Prepared};
use super::{WORST, of_gain, thousandths};
use crate::Progress;
use crate::given::GivenKernel;
use crate::stats;
use crate::stopping::certain_difference;
use crate::sweep::cache::Cache;

/// Seeds before a rival's lead is believed.
const FEWEST_SEEDS: u64 = 3;

/// A kernel that is judged.
#[derive(Clone)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// The kernel, or why there is none.
    pub kernel: Result<KernelFile, Diagnostics>,
}

impl Candidate {
    /// The kernel that the command line would take.
    pub fn named(name: &str) -> Candidate {
        Candidate::given(&GivenKernel::from(name))
    }

    /// A kernel as it was given.
    pub fn given(given: &GivenKernel) -> Candidate {
        let name = given.name().to_string();
        // They are the twin's: a candidate that is not loaded, or whose callbacks cost nothing, is none.
        const NOT_ITS_OWN: [&str; 3] = ["scx.load_ms", "scx.unload_ms", "scx.op_ns"];
        let named = |key: &&'static str| Some((*key, name.find(*key)?));
        let kernel = match NOT_ITS_OWN.iter().find_map(named) {
            Some((key, at)) => {
                let mut faults = Diagnostics::new();
                let source = Source::new("candidate", name.clone());
                let message = format!("`{key}` is not a candidate's to choose");
                let help =
                    "leave it out: a score takes the scheduler as it is, from the begin to the end";
                faults.push(&source, at..at + key.len(), message, Some(help.into()));
                Err(faults)
            }
            None => given.load(),
        };
        Candidate { name, kernel }
    }
}

/// The conditions of a score.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'c> {
    /// A candidate that cannot reach this score is over.
    pub beat: Option<f64>,
    /// A candidate that a rival beats is over.
    pub race: bool,
    /// Where runs are kept.
    pub cache: Option<&'c Cache>,
    /// The baseline, if it has been run.
    pub baseline: Option<&'c Baseline>,
}

/// How a candidate came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran everything.
    Complete,
    /// It broke a limit.
    Fault {
        /// The job; `None`: one that is held out.
        job: Option<String>,
        /// What it broke.
        fault: Fault,
        /// The command that repeats the run; `None`: it is held out, or there is none.
        command: Option<String>,
        /// The seed of the run; `None` where there is no command.
        seed: Option<u64>,
    },
    /// It cannot reach the score to beat.
    CannotReach(f64),
    /// A rival of this name is better, as far as can be estimated.
    Beaten(String),
}

/// A candidate's runs.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The candidate.
    pub kernel: String,
    /// The score: [`WORST`] if it broke a limit, the mean of the runs that it had if it is over for another reason.
    pub score: f64,
    /// The least and the greatest score that it can have: the score twice if it is complete.
    pub bounds: [f64; 2],
    /// How it came to its end.
    pub outcome: Outcome,
    /// By job and run.
    pub judged: Vec<Vec<Judged>>,
}

impl Scored {
    /// A candidate that was ended from outside, before it had a run.
    pub fn ended(kernel: &str, prepared: &Prepared, why: &str) -> Scored {
        let fault = Fault::Ended(why.to_string());
        let outcome = Outcome::Fault { job: None, fault, command: None, seed: None };
        Scored { outcome, ..Scored::new(kernel, prepared.suite.jobs.len()) }
    }

    fn new(kernel: &str, jobs: usize) -> Scored {
        Scored {
            kernel: kernel.to_string(),
            score: WORST,
            bounds: [WORST; 2],
            outcome: Outcome::Complete,
            judged: vec![Vec::new(); jobs],
        }
    }

    /// The weighted mean of the gains of the runs so far over the jobs that count; `rest` is the gain of each of the `of` runs that is
    /// not done yet, `None`: they do not count. `None`: there is nothing to have a mean of.
    fn mean(
        &self,
        prepared: &Prepared,
        rest: Option<f64>,
        counts: impl Fn(usize) -> bool,
    ) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (at, job) in prepared.suite.jobs.iter().enumerate().filter(|(at, _)| counts(*at)) {
            let done = &self.judged[at];
            let missing = prepared.suite.seeds as f64 - done.len() as f64;
            let gains: f64 = done.iter().map(|judged| judged.gain(job)).sum();
            let (gains, runs) = match rest {
                Some(rest) => (gains + missing * rest, prepared.suite.seeds as f64),
                None => (gains, done.len() as f64),
            };
            if runs > 0.0 {
                sum += job.weight * gains / runs;
                weights += job.weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }

    /// The score over the jobs that are told of, or over those that are held out; `None`: there are none.
    pub fn part(&self, prepared: &Prepared, held_out: bool) -> Option<f64> {
        if matches!(self.outcome, Outcome::Fault { .. }) {
            return None;
        }
        let counts = |at: usize| prepared.suite.jobs[at].held_out == held_out;
        self.mean(prepared, None, counts).map(of_gain)
    }

    /// The score of one job.
    pub fn of_job(&self, prepared: &Prepared, job: usize) -> Option<f64> {
        self.mean(prepared, None, |at| at == job).map(of_gain)
    }

    /// Gains of whole rounds: what seeds differ in.
    fn rounds(&self, prepared: &Prepared) -> Vec<Option<f64>> {
        let jobs = &prepared.suite.jobs;
        let weights: f64 = jobs.iter().map(|job| job.weight).sum();
        let rounds = self.judged.iter().map(Vec::len).min().unwrap_or(0);
        let gain = |round: usize| {
            let of = |(job, judged): (&super::suite::Job, &Vec<Judged>)| {
                job.weight * judged[round].gain(job)
            };
            jobs.iter().zip(&self.judged).map(of).sum::<f64>() / weights
        };
        (0..rounds).map(|round| Some(gain(round))).collect()
    }

    /// Half the width of the 95 % interval of the score over the seeds; `None` from one seed.
    pub fn half_width(&self, prepared: &Prepared) -> Option<f64> {
        if matches!(self.outcome, Outcome::Fault { .. }) {
            return None;
        }
        let [low, high] = stats::estimate(&self.rounds(prepared))?.ci95?;
        Some(thousandths((of_gain(high) - of_gain(low)) / 2.0))
    }

    /// The runs that it had.
    pub fn runs(&self) -> usize {
        self.judged.iter().map(Vec::len).sum()
    }

    /// Puts score and bounds right after a round.
    fn settle(&mut self, prepared: &Prepared) {
        if matches!(self.outcome, Outcome::Fault { .. }) {
            (self.score, self.bounds) = (WORST, [WORST; 2]);
            return;
        }
        let most = most_gain(&prepared.suite);
        let mean = |rest| self.mean(prepared, rest, |_| true).map_or(WORST, of_gain);
        (self.score, self.bounds) = (mean(None), [mean(Some(-most)), mean(Some(most))]);
        // What is left to run may break a limit.
        if (self.runs() as u64) < prepared.suite.runs() {
            self.bounds[0] = WORST;
        }
    }
}

/// Scores candidates, in their order. Faults are the suite's; those of a candidate are its outcome.
pub fn score(
    prepared: &Prepared,
    candidates: &[Candidate],
    conditions: &Conditions,
    progress: &Progress,
) -> io::Result<Result<Vec<Scored>, Diagnostics>> {
    let (suite, cache) = (&prepared.suite, conditions.cache);
    let measured;
    let baseline = match conditions.baseline {
        Some(baseline) => baseline,
        None => {
            progress.expect_runs(suite.runs());
            measured = match prepared.baseline(cache, progress)? {
                Ok(baseline) => baseline,
                Err(faults) => return Ok(Err(faults)),
            };
            &measured
        }
    };
    let new = |candidate: &Candidate| Scored::new(&candidate.name, suite.jobs.len());
    let mut scored: Vec<Scored> = candidates.iter().map(new).collect();
    let mut kernels: Vec<(usize, &KernelFile)> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        match &candidate.kernel {
            Ok(kernel) => kernels.push((at, kernel)),
            Err(faults) => {
                let fault = Fault::Refused(faults.to_string().trim_end().to_string());
                scored[at].outcome = Outcome::Fault { job: None, fault, command: None, seed: None };
            }
        }
    }
    for run in 0..suite.seeds {
        kernels.retain(|(at, _)| scored[*at].outcome == Outcome::Complete);
        let units: Vec<((usize, &KernelFile), usize)> = (kernels.iter())
            .flat_map(|kernel| (0..suite.jobs.len()).map(move |job| (*kernel, job)))
            .collect();
        progress.expect_runs(units.len() as u64);
        let performed = units
            .par_iter()
            .with_max_len(1)
            .map(|((_, kernel), job)| prepared.perform((*job, run), kernel, cache, progress))
            .collect::<io::Result<Vec<Performed>>>()?;
        for (((at, kernel), job), performed) in units.into_iter().zip(performed) {
            let base = &baseline.0[job][run as usize];
            take(prepared, &mut scored[at], kernel, (job, run), (base, performed));
        }
        for (at, _) in &kernels {
            scored[*at].settle(prepared);
        }
        leave(prepared, &mut scored, conditions);
    }
    Ok(Ok(scored))
}

/// Takes a run that was performed.
fn take(
    prepared: &Prepared,
    scored: &mut Scored,
    kernel: &KernelFile,
    (job, run): (usize, u64),
    (base, performed): (&super::observed::Observed, Performed),
) {
    let (suite, of) = (&prepared.suite, &prepared.suite.jobs[job]);
    let fault = match performed {
        Performed::Observed(observed, _) => {
            let judged = judge(suite, of, base, &observed);
            let fault = judged.fault.clone();
            scored.judged[job].push(judged);
            fault
        }
        Performed::Panicked(crash) => Some(Fault::Panicked(crash.message)),
        Performed::Refused(faults) => Some(Fault::Refused(faults.to_string().trim_end().into())),
    };
    // Jobs are taken in their order, so the first fault of a round is the same everywhere.
    if let Some(fault) = fault.filter(|_| scored.outcome == Outcome::Complete) {
        let shown = !of.held_out;
        let scenario = prepared.scenario(job, run, kernel).ok().filter(|_| shown);
        let seed = suite.draw(of, run).seed;
        scored.outcome = Outcome::Fault {
            job: shown.then(|| of.name.clone()),
            fault,
            seed: scenario.as_ref().map(|_| seed),
            command: scenario.map(|scenario| scenario.command(seed)),
        };
    }
}

/// Ends the candidates that cannot win.
fn leave(prepared: &Prepared, scored: &mut [Scored], conditions: &Conditions) {
    let is_left =
        |of: &Scored| of.outcome == Outcome::Complete && (of.runs() as u64) < prepared.suite.runs();
    if let Some(beat) = conditions.beat {
        for of in scored.iter_mut().filter(|of| is_left(of) && of.bounds[1] < beat) {
            of.outcome = Outcome::CannotReach(beat);
        }
    }
    if !conditions.race {
        return;
    }
    let rounds: Vec<Vec<Option<f64>>> = scored.iter().map(|of| of.rounds(prepared)).collect();
    let races: Vec<usize> = (0..scored.len()).filter(|at| is_left(&scored[*at])).collect();
    let beaten = |at: &usize| {
        let better = |rival: &usize| {
            rounds[*at].len() as u64 >= FEWEST_SEEDS
                && certain_difference(&rounds[*at], &rounds[*rival])
                    .is_some_and(|[low, _]| low > 0.0)
        };
        races.iter().copied().find(better).map(|rival| (*at, rival))
    };
    let out: Vec<(usize, usize)> = races.iter().filter_map(beaten).collect();
    for (at, rival) in out {
        scored[at].outcome = Outcome::Beaten(scored[rival].kernel.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_input::Source;

    /// A race ends a candidate that loses for certain before its last seed, and neither the winner nor one that is alone.
    #[test]
    fn a_race_ends_who_loses_and_changes_no_other_number() {
        let text = r#"
name = "race"
description = "of this test"
baseline = "linux-7.3"
seeds = 8
[[job]]
name = "scrolling"
machines = ["pixel6"]
workloads = ["ui-phone"]
duration = "100ms"
measure = [{ metric = "power.mean" }]
"#;
        let suite = super::super::read::read(&Source::new("race.toml", text)).unwrap();
        let prepared = Prepared::of(suite).unwrap();
        let kernels = ["linux-7.3", "linux-7.3:cpufreq=performance"].map(Candidate::named);
        let scored = |candidates: &[Candidate], race| {
            let conditions = Conditions { race, ..Conditions::default() };
            score(&prepared, candidates, &conditions, &Progress::new()).unwrap().unwrap()
        };
        let (whole, raced) = (scored(&kernels, false), scored(&kernels, true));
        assert!(whole[1].score < 90.0, "{}", whole[1].score);
        assert_eq!((whole[0].score, raced[0].score), (100.0, 100.0));
        assert_eq!(raced[0].outcome, Outcome::Complete);
        assert_eq!(raced[1].outcome, Outcome::Beaten("linux-7.3".into()));
        assert!((FEWEST_SEEDS as usize..8).contains(&raced[1].runs()), "{}", raced[1].runs());
        assert_eq!(scored(&kernels[1..], true)[0].score, whole[1].score);
    }
}
