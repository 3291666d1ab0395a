// SPDX-License-Identifier: GPL-2.0-or-later
//! The suite of a score: its jobs, what is measured in them, and what ends a candidate.
//!
//! # Variation
//!
//! A candidate that knew the machine, the length of a run or the phase of its ticks could behave for the measured runs alone. So a job has
//! lists of machines and workloads, of which each seed takes one, and each run is up to `vary_percent` longer than its duration.
//! All of it is drawn by the seed and the name of the job, so that the baseline and every candidate run the same ([`Suite::draw`]);
//! the phase of the start against the tick is drawn by the twin itself.

use std::sync::Arc;

use schedtwin_engine::result::{Better, Bounds, Property};
use schedtwin_input::{Source, Spec};
use schedtwin_types::Ns;
use schedtwin_types::draw::{Draws, in_range};

use crate::selector::Selector;

/// The suites that are compiled in.
const SUITES: [(&str, &str); 3] = [
    ("default", include_str!("../../suites/default.toml")),
    ("laptop", include_str!("../../suites/laptop.toml")),
    ("phone", include_str!("../../suites/phone.toml")),
];

/// A metric of a job.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The metric.
    pub selector: Selector,
    /// Whether more of it is better.
    pub better: Better,
    /// Its share of the job, relative to the other measures.
    pub weight: f64,
    /// A value below this counts as this.
    pub least: f64,
}

/// A machine with a workload.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name, by which its variation is drawn.
    pub name: String,
    /// The machines, of which each seed takes one.
    pub machines: Vec<String>,
    /// The workloads, of which each seed takes one.
    pub workloads: Vec<String>,
    /// The shortest duration of a run.
    pub duration: Ns,
    /// Its share of the score, relative to the other jobs.
    pub weight: f64,
    /// It counts as every other job, but nothing is told of it alone.
    pub held_out: bool,
    /// The metrics.
    pub measures: Vec<Measure>,
}

/// A suite.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its file.
    pub source: Arc<Source>,
    /// Its name.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// The kernel that has the score 100.
    pub baseline: String,
    /// Runs of each job.
    pub seeds: u64,
    /// The seed of the first.
    pub first_seed: u64,
    /// No measure of a run counts as more than so many times better or worse.
    pub cap: f64,
    /// By how much runs are longer than the duration of their job at most.
    pub vary_percent: u64,
    /// A task has to do this share of what it does under the baseline.
    pub least_work: f64,
    /// Properties that end a candidate.
    pub properties: Vec<Property>,
    /// Their bounds.
    pub bounds: Bounds,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// The conditions of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The machine, an index of the job's.
    pub machine: usize,
    /// The workload, an index of the job's.
    pub workload: usize,
    /// The duration.
    pub duration: Ns,
    /// The seed of the run.
    pub seed: u64,
}

impl Suite {
    /// The conditions of a job's run, by its number. Successive runs take the next machine, so that none is left out.
    pub fn draw(&self, job: &Job, run: u64) -> Drawn {
        let seed = self.first_seed + run;
        let of = |what: &str, seed| Draws::new(seed, &job.name, what).nth(0);
        let one_of = |what: &str, count: usize| {
            ((of(what, self.first_seed) % count as u64 + run) % count as u64) as usize
        };
        let longest = job.duration.saturating_add(job.duration / 100 * self.vary_percent);
        Drawn {
            machine: one_of("machine", job.machines.len()),
            workload: one_of("workload", job.workloads.len()),
            duration: in_range(of("duration", seed), job.duration, longest),
            seed,
        }
    }

    /// A candidate's kernel as all else spells it: `baseline` is the suite's, which settings and patches may follow.
    ///
    /// ```
    /// let suite = schedtwin_lab::score::load("phone").unwrap();
    /// assert_eq!(suite.spelled("baseline:hz=100"), format!("{}:hz=100", suite.baseline));
    /// assert_eq!(suite.spelled("linux-7.3:hz=100"), "linux-7.3:hz=100");
    /// ```
    pub fn spelled(&self, kernel: &str) -> String {
        let [spec, base] = [kernel, &self.baseline].map(Spec::parse_kernel);
        let (Ok(mut spec), Ok(mut base)) = (spec, base) else { return kernel.to_string() };
        if spec.name.text != "baseline" {
            return kernel.to_string();
        }
        let is_own = |key: &str| spec.settings.iter().any(|own| own.key.text == key);
        base.settings.retain(|setting| !is_own(&setting.key.text));
        spec.name = base.name;
        spec.patches.splice(0..0, base.patches);
        spec.settings.splice(0..0, base.settings);
        spec.identity()
    }

    /// Runs that a complete score of one candidate has.
    pub fn runs(&self) -> u64 {
        self.jobs.len() as u64 * self.seeds
    }
}

/// Name and description of the built-in suites.
pub fn list() -> Vec<(String, String)> {
    let read = |(name, _): &(&str, &str)| {
        let source = source(name).expect("it is in the list");
        let suite = super::read::read(&source).expect("the built-in suites are read by a test");
        ((*name).to_string(), suite.description)
    };
    SUITES.iter().map(read).collect()
}

/// The names of the built-in suites.
pub fn names() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(name, _)| *name)
}

/// The file of a built-in suite.
pub fn source(name: &str) -> Option<Arc<Source>> {
    let (name, text) = SUITES.iter().find(|(known, _)| *known == name)?;
    Some(Source::new(format!("<built in> {name}"), *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length differs from run to run, every machine has its turn, and a candidate changes nothing of it.
    #[test]
    fn runs_vary_by_seed_and_by_nothing_else() {
        let suite = super::super::read::load("default").unwrap();
        let job = suite.jobs.iter().find(|job| job.machines.len() > 1).expect("one varies");
        let drawn: Vec<Drawn> = (0..suite.seeds).map(|run| suite.draw(job, run)).collect();
        assert_eq!(drawn, (0..suite.seeds).map(|run| suite.draw(job, run)).collect::<Vec<_>>());
        for machine in 0..job.machines.len().min(suite.seeds as usize) {
            assert!(drawn.iter().any(|d| d.machine == machine), "{drawn:?}");
        }
        let longest = job.duration + job.duration / 100 * suite.vary_percent;
        for (at, one) in drawn.iter().enumerate() {
            assert!((job.duration..=longest).contains(&one.duration));
            assert!(drawn[..at].iter().all(|other| other.duration != one.duration), "{drawn:?}");
        }
    }

    #[test]
    fn all_built_in_suites_are_right() {
        assert_eq!(list().len(), SUITES.len());
        for name in names() {
            let suite = super::super::read::load(name).unwrap();
            assert_eq!(suite.name, name);
            assert!(suite.jobs.iter().any(|job| job.held_out), "{name} holds nothing out");
        }
    }
}
