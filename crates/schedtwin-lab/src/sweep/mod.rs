// SPDX-License-Identifier: GPL-2.0-or-later
//! Many settings, one table: each of some machines, kernels and workloads with each seed.
//!
//! # Idea
//!
//! A sweep is a numbered list of runs: settings (every machine with every kernel with every workload) times seeds. Its results are a
//! file with one line a run. What makes it fit for batch engines is that the file depends on the list alone:
//!
//! - a **shard** K/N has every N-th run, and [`part::merge`] makes of all shards the bytes that one go would have made;
//! - a sweep that is **interrupted** has kept each finished run in a journal beside its output, and goes on from there;
//! - the number of threads changes no byte.
//!
//! The sweep's identity is a digest of everything that determines its runs, so that nothing is mixed up that does not belong together.

pub mod cache;
pub mod choices;
#[cfg(feature = "arrow")]
pub mod chunk;
pub mod journal;
#[cfg(feature = "parquet")]
mod parquet;
pub mod part;
mod race;
pub mod run;
mod spec;

pub use spec::SweepSpec;

use crate::Progress;
use crate::crash::Crash;
use crate::given::Input;
use crate::many_parts;
use crate::twin::{Column, provenance};
use cache::{Cache, Key};
use journal::Journal;
use rayon::prelude::*;
use run::{KnownTitles, Run};
use schedtwin_engine::Scenario;
use schedtwin_input::Diagnostics;
use schedtwin_types::fnv::Fnv1a;
use schedtwin_types::metric::Metric;
use schedtwin_types::printable;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

/// One of the things that are compared.
#[derive(Clone)]
pub struct Setting {
    /// The machine as it is spelled.
    pub machine: String,
    /// The kernel.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// Values of what varies, by the sweep's [`Sweep::varies`]; empty where a setting has no such key.
    pub values: Vec<String>,
    column: Column,
}

/// A numbered list of runs.
#[derive(Clone)]
pub struct Sweep {
    /// The settings, in order: workloads change fastest, then kernels, then machines.
    pub settings: Vec<Setting>,
    /// Keys that vary: `kernel.schedutil.rate_limit_us`.
    pub varies: Vec<String>,
    /// Runs of each setting.
    pub seeds: u64,
    first_seed: u64,
    spec: SweepSpec,
    /// Whether C of the user's decides in any run.
    foreign_code: bool,
    titles: Arc<Mutex<KnownTitles>>,
}

/// A machine, a kernel or a workload that was loaded, with the values of its keys that vary.
struct Loaded<'s, T> {
    name: &'s str,
    value: T,
    settings: Vec<(String, String)>,
}

/// Loads the choices of one part, `machine` for example, and notes which of its keys vary.
fn loaded<'s, T: Input>(
    choices: &'s [spec::Choice<T>],
    part: &str,
    varies: &mut Vec<String>,
    faults: &mut Diagnostics,
) -> Vec<Loaded<'s, T>> {
    let load = |choice: &'s spec::Choice<T>| {
        let named = |(key, value): &(String, String)| (format!("{part}.{key}"), value.clone());
        let settings: Vec<_> = choice.settings.iter().map(named).collect();
        for (key, _) in &settings {
            if !varies.contains(key) {
                varies.push(key.clone());
            }
        }
        let value = faults.absorb(choice.given.load())?;
        Some(Loaded { name: choice.given.name(), value, settings })
    };
    choices.iter().filter_map(load).collect()
}

/// Every `of`-th run, beginning with number `at` − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    at: NonZeroU64,
    of: NonZeroU64,
}

impl Shard {
    /// All runs.
    pub const WHOLE: Shard = Shard { at: NonZeroU64::MIN, of: NonZeroU64::MIN };

    /// Reads `3/40`.
    ///
    /// ```
    /// use schedtwin_lab::sweep::Shard;
    /// let shard = Shard::parse("2/3").unwrap();
    /// assert_eq!((0..7).filter(|run| shard.has(*run)).collect::<Vec<u64>>(), [1, 4]);
    /// assert!(["4/3", "0/3", "3", "1/0"].iter().all(|text| Shard::parse(text).is_err()));
    /// ```
    pub fn parse(text: &str) -> Result<Shard, String> {
        let pair =
            text.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
        pair.filter(|(at, of)| at <= of)
            .map(|(at, of)| Shard { at, of })
            .ok_or_else(|| "a shard is written K/N, K from 1 to N: 3/40".to_string())
    }

    /// Whether it has a run.
    pub fn has(self, run: u64) -> bool {
        run % self.of == self.at.get() - 1
    }

    /// `3/40`; `None`: it is the whole.
    fn text(self) -> Option<String> {
        (self != Shard::WHOLE).then(|| format!("{}/{}", self.at, self.of))
    }
}

impl Sweep {
    /// Loads and checks what a sweep is made of; all faults at once.
    pub fn of(spec: &SweepSpec) -> Result<Sweep, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut varies: Vec<String> = Vec::new();
        let machines = loaded(&spec.machines, "machine", &mut varies, &mut faults);
        let kernels = loaded(&spec.kernels, "kernel", &mut varies, &mut faults);
        let workloads = loaded(&spec.workloads, "workload", &mut varies, &mut faults);
        let mut settings = Vec::new();
        for machine in &machines {
            for kernel in &kernels {
                for workload in &workloads {
                    let scenario = Scenario::named(
                        (machine.name, machine.value.clone()),
                        (kernel.name, kernel.value.clone()),
                        (workload.name, workload.value.clone()),
                        spec.duration,
                    );
                    let Some(scenario) = faults.absorb(scenario) else { continue };
                    let of_all = || {
                        machine.settings.iter().chain(&kernel.settings).chain(&workload.settings)
                    };
                    let value = |key: &String| {
                        let found = of_all().find(|(k, _)| k == key);
                        found.map_or(String::new(), |(_, value)| value.clone())
                    };
                    settings.push(Setting {
                        machine: machine.name.to_string(),
                        kernel: kernel.name.to_string(),
                        workload: workload.name.to_string(),
                        values: varies.iter().map(value).collect(),
                        column: Column { kernel: kernel.name.to_string(), scenario },
                    });
                }
            }
        }
        let (seeds, first_seed) = (spec.seeds, spec.first_seed);
        let foreign = |setting: &Setting| setting.column.scenario.has_foreign_code();
        let foreign_code = settings.iter().any(foreign);
        let spec = spec.clone();
        let titles = Arc::default();
        faults.into_result(Sweep {
            settings,
            varies,
            seeds,
            first_seed,
            spec,
            foreign_code,
            titles,
        })
    }

    /// Returns the scenarios that run, without the seeds.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.settings.iter().map(|setting| &setting.column.scenario)
    }

    /// Number of runs.
    pub fn runs(&self) -> u64 {
        self.settings.len() as u64 * self.seeds
    }

    /// Number of runs of a shard.
    pub fn runs_of(&self, shard: Shard) -> u64 {
        (0..self.runs()).filter(|run| shard.has(*run)).count() as u64
    }

    /// Returns the seed of a run.
    pub fn seed(&self, run: u64) -> u64 {
        self.run(run).1
    }

    /// The setting and the seed of a run.
    fn run(&self, run: u64) -> (&Setting, u64) {
        (&self.settings[(run / self.seeds) as usize], self.first_seed + run % self.seeds)
    }

    /// Groups the settings that compete with each other, those of one machine (whatever is changed of it) under one workload: a number
    /// for each setting.
    pub fn rivals(&self) -> Vec<usize> {
        let mut groups: Vec<(&str, &str)> = Vec::new();
        let mut numbers = Vec::new();
        for Setting { machine, workload, .. } in &self.settings {
            let own = (machine.split(':').next().unwrap_or_default(), workload.as_str());
            let known = groups.iter().position(|group| *group == own);
            numbers.push(known.unwrap_or(groups.len()));
            if known.is_none() {
                groups.push(own);
            }
        }
        numbers
    }

    /// Returns the head of every part: where the results come from, each input once. Equal heads
    /// belong together.
    pub fn head(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut determines = Fnv1a::new();
        for setting in &self.settings {
            let from = provenance(&setting.column.scenario);
            for (name, hash) in &from.hashes {
                let text = match name.as_str() {
                    "machine" => &setting.machine,
                    "kernel" => &setting.kernel,
                    _ => &setting.workload,
                };
                let line = printable::line(&format!("{name} {text}: {hash}")).into_owned();
                determines.extend(line.bytes());
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            let how = format!("{} {} {:?}", from.version, from.model_version, from.duration_ns);
            determines.extend(how.bytes());
        }
        determines.extend(format!("{} {}", self.first_seed, self.seeds).bytes());
        let from = self.settings.first().map(|setting| provenance(&setting.column.scenario));
        let from = from.unwrap_or_default();
        lines.insert(
            0,
            format!(
                "schedtwin sweep {:016x}: {} runs, version {}, model {}",
                determines.digest(),
                self.runs(),
                from.version,
                from.model_version
            ),
        );
        lines
    }

    /// Performs the runs of a shard that neither the journal nor the cache has, and writes each into both. The caller has
    /// announced them. What a run panicked with is with the progress; such a run is not kept.
    pub fn perform(
        &self,
        shard: Shard,
        journal: Journal,
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> io::Result<Vec<Run>> {
        let missing = (0..self.runs()).filter(|run| shard.has(*run) && !journal.has(*run));
        let journal = self.perform_these(missing.collect(), journal, cache, progress)?;
        Ok(journal.into_runs())
    }

    fn perform_these(
        &self,
        missing: Vec<u64>,
        journal: Journal,
        cache: Option<&Cache>,
        progress: &Progress,
    ) -> io::Result<Journal> {
        let journal = Mutex::new(journal);
        missing.into_par_iter().with_max_len(1).try_for_each(|number| {
            let (setting, _) = self.run(number);
            let duration = setting.column.scenario.duration();
            let run = match self.cached(number, cache) {
                Some(run) => progress.one_run(duration, |_| run),
                None => match self.performed(number, progress)? {
                    Ok(run) => run,
                    Err(_) => return Ok(()),
                },
            };
            if let Some(cache) = cache {
                self.keep(&run, cache)?;
            }
            journal.lock().expect("nobody panics while writing").keep(run)
        })?;
        Ok(journal.into_inner().expect("nobody panicked while writing"))
    }

    /// Performs one run.
    pub fn performed(&self, number: u64, progress: &Progress) -> io::Result<Result<Run, Crash>> {
        let (setting, seed) = self.run(number);
        Ok(progress.attempt(&setting.column, seed)?.map(|mut result| {
            many_parts::summarise(&mut result.metrics);
            self.measured(number, result.digest, &result.metrics)
        }))
    }

    /// A run as an earlier sweep kept it.
    pub fn cached(&self, number: u64, cache: Option<&Cache>) -> Option<Run> {
        let (setting, seed) = self.run(number);
        let measured = cache?.get(&Key::of(&setting.column.scenario, seed)?)?;
        Some(Run::new(number, self.own_fields(number).into_iter().chain(measured)))
    }

    /// Whether C of the user's decides in any run. Such a sweep keeps none: its runs are measured in one process with that C, which
    /// could forge each of them.
    pub fn has_foreign_code(&self) -> bool {
        self.foreign_code
    }

    /// Keeps what a run measured, for other sweeps with such a run.
    pub fn keep(&self, run: &Run, cache: &Cache) -> io::Result<()> {
        if self.foreign_code || run.number >= self.runs() {
            return Ok(());
        }
        let (setting, seed) = self.run(run.number);
        let Some(key) = Key::of(&setting.column.scenario, seed) else { return Ok(()) };
        let own = self.own_fields(run.number);
        let is_own = |column: &str| own.iter().any(|(name, _)| name == column);
        cache.put(&key, run.fields().filter(|(column, _)| !is_own(column)))
    }

    /// A run: what it was, then what it measured.
    fn measured(&self, number: u64, digest: u64, metrics: &[Metric]) -> Run {
        let mut own = self.own_fields(number);
        own.push(("digest".to_string(), format!("{digest:016x}")));
        Run::of_metrics(number, own, metrics, &self.titles)
    }

    /// What a run was.
    fn own_fields(&self, number: u64) -> Vec<(String, String)> {
        let (setting, seed) = self.run(number);
        let own = |(key, value): (&str, &str)| (key.to_string(), value.to_string());
        let mut fields: Vec<(String, String)> = [
            ("machine", &setting.machine),
            ("kernel", &setting.kernel),
            ("workload", &setting.workload),
        ]
        .map(|(key, value)| own((key, value)))
        .to_vec();
        fields.extend(self.varies.iter().zip(&setting.values).map(|(k, v)| own((k, v))));
        fields.push(own(("seed", &seed.to_string())));
        fields
    }

    /// The columns that every line has, before those of metrics.
    pub fn own_columns(&self) -> Vec<String> {
        let before = ["machine", "kernel", "workload"].map(String::from).into_iter();
        let after = ["seed", "digest"].map(String::from);
        before.chain(self.varies.iter().cloned()).chain(after).collect()
    }
}
