// SPDX-License-Identifier: GPL-2.0-or-later
//! A suite whose inputs are loaded and checked, and the runs of its baseline.

use std::io;

use rayon::prelude::*;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::{Machine, Scenario, Workload};
use schedtwin_input::{Diagnostics, Source};

use super::judge::counts_work;
use super::observed::Observed;
use super::suite::{Drawn, Job, Suite};
use crate::Progress;
use crate::crash::Crash;
use crate::sweep::cache::{Cache, Key};
use crate::twin::Column;

/// A suite that is ready to run.
#[derive(Clone)]
pub struct Prepared {
    /// The suite.
    pub suite: Suite,
    /// The machines of each job, and its workloads: read once, as the process that runs them may open no file.
    machines: Vec<Vec<Machine>>,
    workloads: Vec<Vec<Workload>>,
    baseline: KernelFile,
}

/// The runs of a baseline: by job, then by run.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline(pub(super) Vec<Vec<Observed>>);

/// What became of a run.
pub(super) enum Performed {
    /// It was measured; the faults of measures that it does not have are beside it.
    Observed(Observed, Diagnostics),
    /// It panicked.
    Panicked(Crash),
    /// The kernel cannot run the job.
    Refused(Diagnostics),
}

impl Prepared {
    /// Loads what the suite names, and checks that the baseline can run each job; all faults at once.
    pub fn of(suite: Suite) -> Result<Prepared, Diagnostics> {
        let mut faults = Diagnostics::new();
        let baseline = faults.absorb(KernelFile::load(&suite.baseline));
        let (mut machines, mut workloads) = (Vec::new(), Vec::new());
        for job in &suite.jobs {
            let loaded = job.machines.iter().filter_map(|name| faults.absorb(Machine::load(name)));
            machines.push(loaded.collect());
            let read = job.workloads.iter();
            let read =
                read.filter_map(|name| faults.absorb(Workload::from_path_or_name(name))).collect();
            workloads.push(read);
        }
        let Some(baseline) = baseline.filter(|_| faults.is_empty()) else { return Err(faults) };
        let prepared = Prepared { suite, machines, workloads, baseline };
        for job in 0..prepared.suite.jobs.len() {
            for run in 0..prepared.suite.seeds {
                faults.absorb(prepared.scenario(job, run, &prepared.baseline));
            }
        }
        faults.into_result(prepared)
    }

    /// Whether C of the user's decides in the baseline.
    pub fn has_foreign_code(&self) -> bool {
        !self.baseline.code.is_empty()
    }

    /// A run's scenario under a kernel.
    pub fn scenario(
        &self,
        job: usize,
        run: u64,
        kernel: &KernelFile,
    ) -> Result<Scenario, Diagnostics> {
        let of = &self.suite.jobs[job];
        let Drawn { machine, workload, duration, .. } = self.suite.draw(of, run);
        let spelled = &of.workloads[workload];
        let scenario = Scenario::named(
            (&of.machines[machine], self.machines[job][machine].clone()),
            (&kernel.identity, kernel.clone()),
            (spelled, self.workloads[job][workload].clone()),
            Some(duration),
        )?;
        Ok(scenario.with_bounds(self.suite.bounds.clone()))
    }

    /// Performs a run, or takes it from the kept ones.
    pub(super) fn perform(
        &self,
        (job, run): (usize, u64),
        kernel: &KernelFile,
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> io::Result<Performed> {
        let scenario = match self.scenario(job, run, kernel) {
            Ok(scenario) => scenario,
            Err(faults) => return Ok(Performed::Refused(faults)),
        };
        let of = &self.suite.jobs[job];
        let seed = self.suite.draw(of, run).seed;
        let key = cache.and_then(|cache| Some((cache, self.key(of, &scenario, seed)?)));
        let kept = key.as_ref().and_then(|(cache, key)| Observed::read(cache.get(key)?));
        if let Some(observed) = kept {
            progress.one_run(None, |_| ());
            return Ok(Performed::Observed(observed, Diagnostics::new()));
        }
        let column = Column { kernel: kernel.identity.clone(), scenario };
        let result = match progress.attempt(&column, seed)? {
            Ok(result) => result,
            Err(crash) => return Ok(Performed::Panicked(crash)),
        };
        let mut missing = Diagnostics::new();
        let observed = Observed::of(result, &self.suite, of, &mut missing);
        if let Some((cache, key)) = key.filter(|_| missing.is_empty()) {
            cache.put(&key, observed.texts().into_iter())?;
        }
        Ok(Performed::Observed(observed, missing))
    }

    /// The key of a run among kept results: it also has all of the suite that decides what is kept.
    fn key(&self, job: &Job, scenario: &Scenario, seed: u64) -> Option<Key> {
        let measures: Vec<&str> = job.measures.iter().map(|m| m.selector.text()).collect();
        let Suite { properties, bounds, .. } = &self.suite;
        Key::of_part(scenario, seed, &format!("score {measures:?} {properties:?} {bounds:?}"))
    }

    /// Performs the runs of the baseline, or takes them from the kept ones.
    pub fn baseline(
        &self,
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> io::Result<Result<Baseline, Diagnostics>> {
        let runs = self.units();
        let perform = |unit: &(usize, u64)| self.perform(*unit, &self.baseline, cache, progress);
        let performed = runs.par_iter().with_max_len(1).map(perform).collect::<io::Result<_>>()?;
        Ok(self.baseline_of(performed))
    }

    /// Every run, by job.
    fn units(&self) -> Vec<(usize, u64)> {
        let jobs = 0..self.suite.jobs.len();
        jobs.flat_map(|job| (0..self.suite.seeds).map(move |run| (job, run))).collect()
    }

    fn baseline_of(&self, performed: Vec<Performed>) -> Result<Baseline, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut jobs: Vec<Vec<Observed>> = vec![Vec::new(); self.suite.jobs.len()];
        for ((job, _), performed) in self.units().into_iter().zip(performed) {
            let of = &self.suite.jobs[job];
            let mut fault = |message: String| {
                let source: &std::sync::Arc<Source> = &self.suite.source;
                faults.push_whole(source, format!("job {}: {message}", of.name), None);
            };
            match performed {
                Performed::Refused(refused) => drop(faults.absorb::<()>(Err(refused))),
                Performed::Panicked(crash) => {
                    fault(format!("the baseline panics: {}", crash.message))
                }
                Performed::Observed(observed, missing) => {
                    for lacks in &missing.0 {
                        fault(format!("the baseline has no value: {}", lacks.message));
                    }
                    for (measure, value) in of.measures.iter().zip(&observed.values) {
                        let name = measure.selector.text();
                        match value {
                            None if missing.is_empty() => {
                                fault(format!("{name} is undefined under the baseline"));
                            }
                            Some(value) if value.max(measure.least) <= 0.0 => {
                                fault(format!(
                                    "{name} is {value} under the baseline: give it a `least`"
                                ));
                            }
                            _ => {}
                        }
                    }
                    if !counts_work(of, &observed) {
                        fault(
                            "it measures power, but no task counts jobs: idling would win".into(),
                        );
                    }
                    jobs[job].push(observed);
                }
            }
        }
        faults.0.dedup_by(|a, b| a.message == b.message);
        faults.into_result(Baseline(jobs))
    }
}
