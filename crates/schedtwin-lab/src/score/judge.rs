// SPDX-License-Identifier: GPL-2.0-or-later
//! A run of a candidate beside the baseline's: by how much each measure is better, and whether a limit is broken.
//!
//! 1. A limit ends the candidate: the run ended before its time, a property of the suite is broken, or a task did less than
//!    `least_work` of what it does under the baseline. A breach of the baseline's own in the same run excuses one that is at most
//!    twice as long and twice as often.
//! 2. Each measure gives a *gain*, the logarithm of how many times better it is, within ± the logarithm of `cap`. A measure that the
//!    candidate lacks and the baseline has counts as the worst.
//! 3. Energy and power are those of the work that was done: they are divided by the share of the baseline's work that the candidate
//!    did. Work that is put off until after the end saves nothing so.
//!
//! The share of work is by task, in jobs that ended, weighted by the CPU time of each under the baseline. More work than the baseline's
//! counts, too, up to twice; what one task lacks another may make up for as far as `least_work` goes. CPU time itself is no measure of work: a higher clock
//! needs less of it. So a job of the suite in which no task counts jobs cannot measure energy ([`counts_work`]).

use schedtwin_engine::result::Better;
use schedtwin_types::metric::{METRICS, Section};

use super::observed::{Broken, Done, Observed};
use super::suite::{Job, Measure, Suite};

/// Jobs in a second from which on a task's work is looked at.
const FEWEST_JOBS: f64 = 5.0;

/// A task's work counts for so many times the baseline's at most.
const MOST_SHARE: f64 = 2.0;

/// The reason for which a candidate ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A property was broken.
    Broken(Broken),
    /// The run ended before its time, or did not end.
    Ended(String),
    /// A task did too little: its name and its share.
    Undone(String, f64),
    /// The run panicked.
    Panicked(String),
    /// The kernel cannot run the job.
    Refused(String),
}

impl Fault {
    /// Its kind in one word, as JSON has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Broken(_) => "property",
            Fault::Ended(_) => "ended",
            Fault::Undone(..) => "work",
            Fault::Panicked(_) => "panicked",
            Fault::Refused(_) => "refused",
        }
    }

    /// In words.
    pub fn text(&self) -> String {
        match self {
            Fault::Broken(broken) => format!("{} is broken: {}", broken.property, broken.words),
            Fault::Ended(text) | Fault::Refused(text) => text.clone(),
            Fault::Undone(task, share) => {
                let percent = (100.0 * share).floor();
                format!("{task} did {percent} % of its work under the baseline")
            }
            Fault::Panicked(text) => format!("the run panicked: {text}"),
        }
    }
}

/// A run of a candidate, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// By measure: the logarithm of how many times better it is.
    pub gains: Vec<f64>,
    /// The share of the baseline's work that was done.
    pub work: f64,
    /// The reason for which the candidate ends.
    pub fault: Option<Fault>,
}

impl Judged {
    /// The gain of the run: the weighted mean of its measures.
    pub fn gain(&self, job: &Job) -> f64 {
        let weights: f64 = job.measures.iter().map(|measure| measure.weight).sum();
        let gains = job.measures.iter().zip(&self.gains);
        gains.map(|(measure, gain)| measure.weight * gain).sum::<f64>() / weights
    }
}

/// The logarithm of the cap: the most that a measure can gain.
pub fn most_gain(suite: &Suite) -> f64 {
    libm::log(suite.cap)
}

/// Judges a run.
pub fn judge(suite: &Suite, job: &Job, base: &Observed, run: &Observed) -> Judged {
    let work = work(&base.tasks, &run.tasks);
    let most = most_gain(suite);
    let gain = |(measure, (base, run)): (&Measure, (&Option<f64>, &Option<f64>))| {
        match (base, run) {
            (Some(base), Some(run)) => {
                let run = if is_of_energy(measure) { run / work.max(1e-9) } else { *run };
                gain_of(measure, *base, run).clamp(-most, most)
            }
            (Some(_), None) => -most,
            // Checked of every run of the baseline: one without a value has been refused.
            (None, _) => 0.0,
        }
    };
    let gains = job.measures.iter().zip(base.values.iter().zip(&run.values)).map(gain).collect();
    Judged { gains, work, fault: fault(suite, base, run) }
}

/// The logarithm of how many times better a value is than the baseline's.
fn gain_of(measure: &Measure, base: f64, run: f64) -> f64 {
    let [base, run] = [base, run].map(|value| libm::log(value.max(measure.least).max(1e-12)));
    match measure.better {
        Better::Higher => run - base,
        _ => base - run,
    }
}

fn is_of_energy(measure: &Measure) -> bool {
    let name = measure.selector.text().split(['.', ',', '{', ' ']).next().unwrap_or_default();
    let of_power = |section| section == Section::Power;
    METRICS.iter().any(|m| m.name == name && of_power(m.section) && matches!(m.unit, "mW" | "mJ"))
}

/// Whether a job that measures energy has a task that tells how much was done for it.
pub fn counts_work(job: &Job, base: &Observed) -> bool {
    let measured = job.measures.iter().any(|of| of.weight > 0.0 && is_of_energy(of));
    !measured || base.tasks.iter().any(|task| task.jobs >= FEWEST_JOBS)
}

/// The share of its work that a task did; `None`: too little to be judged.
fn share(base: &Done, run: &[Done]) -> Option<f64> {
    let run = run.iter().find(|done| done.task == base.task);
    (base.jobs >= FEWEST_JOBS).then(|| run.map_or(0.0, |run| run.jobs / base.jobs))
}

/// The share of the baseline's work that was done.
fn work(base: &[Done], run: &[Done]) -> f64 {
    let (mut done, mut all) = (0.0, 0.0);
    for task in base {
        if let Some(share) = share(task, run) {
            done += task.cpu * share.min(MOST_SHARE);
            all += task.cpu;
        }
    }
    if all > 0.0 { done / all } else { 1.0 }
}

fn fault(suite: &Suite, base: &Observed, run: &Observed) -> Option<Fault> {
    if let Some(ended) = run.ended.first() {
        return Some(Fault::Ended(ended.clone()));
    }
    let excused = |broken: &Broken| {
        let of_base = base.broken.iter().find(|other| other.property == broken.property);
        of_base.is_some_and(|base| {
            broken.longest / 2 <= base.longest && broken.count / 2 <= base.count
        })
    };
    if let Some(broken) = run.broken.iter().find(|broken| !excused(broken)) {
        return Some(Fault::Broken(broken.clone()));
    }
    base.tasks.iter().find_map(|task| {
        let share = share(task, &run.tasks)?;
        (share < suite.least_work).then(|| Fault::Undone(task.task.clone(), share))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_engine::result::Property;

    fn suite() -> Suite {
        let text = r#"
name = "t"
description = "t"
baseline = "linux-7.3"
properties = ["starvation"]
[[job]]
name = "a"
machines = ["uniform8"]
workloads = ["w1"]
duration = "1s"
measure = [{ metric = "power.mean" }, { metric = "throughput", weight = 3 }]
"#;
        super::super::read::read(&schedtwin_input::Source::new("t.toml", text)).unwrap()
    }

    fn run(power: f64, jobs: f64) -> Observed {
        let tasks = vec![Done { task: "a".into(), jobs, cpu: 0.5 }];
        Observed { values: vec![Some(power), Some(jobs)], tasks, ..Observed::default() }
    }

    fn gains(base: &Observed, of: &Observed) -> Vec<f64> {
        let suite = suite();
        let judged = judge(&suite, &suite.jobs[0], base, of);
        judged.gains.into_iter().map(|gain| (1e6 * gain).round() / 1e6).collect()
    }

    #[test]
    fn a_measure_is_times_better_within_the_cap() {
        let base = run(100.0, 100.0);
        assert_eq!(gains(&base, &run(80.0, 100.0)), [0.223144, 0.0]);
        assert_eq!(gains(&base, &run(1.0, 100.0)), [1.386294, 0.0], "capped at 4");
        assert_eq!(gains(&base, &run(100.0, 150.0)), [0.405465, 0.405465]);
        let mut without = run(100.0, 100.0);
        without.values[1] = None;
        assert_eq!(gains(&base, &without), [0.0, -1.386294], "a missing value is the worst");
    }

    /// A fifth of the work undone saves a fifth of the power, and gains nothing of it.
    #[test]
    fn work_put_off_saves_nothing() {
        let base = run(100.0, 100.0);
        assert_eq!(gains(&base, &run(80.0, 80.0)), [0.0, -0.223144]);
        assert_eq!(gains(&base, &run(120.0, 120.0))[0], 0.0, "more work takes more energy");
    }

    #[test]
    fn a_limit_ends_a_candidate_and_the_baseline_excuses_its_own() {
        let suite = suite();
        let found = |base: &Observed, of: &Observed| judge(&suite, &suite.jobs[0], base, of).fault;
        let broken = |longest, count| {
            let words = "a waited".to_string();
            let one = Broken { property: Property::Starvation, count, longest, words };
            Observed { broken: vec![one], ..run(100.0, 100.0) }
        };
        let base = run(100.0, 100.0);
        assert_eq!(found(&base, &base), None);
        assert_eq!(found(&base, &broken(2000, 1)).map(|f| f.kind()), Some("property"));
        assert_eq!(found(&broken(1000, 1), &broken(2000, 2)), None);
        assert!(found(&broken(1000, 1), &broken(2002, 1)).is_some());
        assert!(found(&broken(1000, 1), &broken(1000, 4)).is_some());
        assert_eq!(found(&base, &run(100.0, 50.0)), None);
        let undone = found(&base, &run(100.0, 49.0)).expect("half of the work is asked for");
        assert_eq!(undone.text(), "a did 49 % of its work under the baseline");
        let ended = Observed { ended: vec!["unloaded".into()], ..run(100.0, 100.0) };
        assert_eq!(found(&base, &ended).map(|f| f.kind()), Some("ended"));
    }
}
