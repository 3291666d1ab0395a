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

pub mod choices;
pub mod journal;
#[cfg(feature = "parquet")]
mod parquet;
pub mod part;

use crate::Progress;
use crate::many_parts;
use crate::twin::{Column, provenance};
use journal::Journal;
use part::Run;
use rayon::prelude::*;
use schedtwin_engine::Scenario;
use schedtwin_input::Diagnostics;
use schedtwin_types::fnv::Fnv1a;
use schedtwin_types::metric::Metric;
use schedtwin_types::{Ns, printable};
use std::io;
use std::num::NonZeroU64;
use std::sync::Mutex;

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
    /// Every machine with every kernel with every workload, where each name may have lists of choices; all faults at once.
    pub fn new(
        [machines, kernels, workloads]: [&[String]; 3],
        duration: Option<Ns>,
        (first_seed, seeds): (u64, u64),
    ) -> Result<Sweep, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut varies: Vec<String> = Vec::new();
        let mut expand = |names: &[String], part: &str| {
            let mut all: Vec<(String, Vec<(String, String)>)> = Vec::new();
            for name in names {
                for choice in faults.absorb(choices::choices(name)).unwrap_or_default() {
                    let named = |(key, value): (String, String)| (format!("{part}.{key}"), value);
                    let settings: Vec<_> = choice.settings.into_iter().map(named).collect();
                    for (key, _) in &settings {
                        if !varies.contains(key) {
                            varies.push(key.clone());
                        }
                    }
                    if !all.iter().any(|(text, _)| *text == choice.text) {
                        all.push((choice.text, settings));
                    }
                }
            }
            all
        };
        let machines = expand(machines, "machine");
        let kernels = expand(kernels, "kernel");
        let workloads = expand(workloads, "workload");
        let mut settings = Vec::new();
        for (machine, of_machine) in &machines {
            for (kernel, of_kernel) in &kernels {
                for (workload, of_workload) in &workloads {
                    let scenario = Scenario::new(machine, kernel, workload, duration);
                    let Some(scenario) = faults.absorb(scenario) else { continue };
                    let of_all = || of_machine.iter().chain(of_kernel).chain(of_workload);
                    let value = |key: &String| {
                        let found = of_all().find(|(k, _)| k == key);
                        found.map_or(String::new(), |(_, value)| value.clone())
                    };
                    settings.push(Setting {
                        machine: machine.clone(),
                        kernel: kernel.clone(),
                        workload: workload.clone(),
                        values: varies.iter().map(value).collect(),
                        column: Column { kernel: kernel.clone(), scenario },
                    });
                }
            }
        }
        faults.into_result(Sweep { settings, varies, seeds, first_seed })
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

    /// The setting and the seed of a run.
    fn run(&self, run: u64) -> (&Setting, u64) {
        (&self.settings[(run / self.seeds) as usize], self.first_seed + run % self.seeds)
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

    /// Performs the runs of a shard that the journal does not have, and writes each into it. The caller has announced them. What a
    /// run panicked with is with the progress; such a run is not kept.
    pub fn perform(
        &self,
        shard: Shard,
        journal: Journal,
        progress: &Progress,
    ) -> io::Result<Vec<Run>> {
        let missing: Vec<u64> =
            (0..self.runs()).filter(|run| shard.has(*run) && !journal.has(*run)).collect();
        let journal = Mutex::new(journal);
        missing.into_par_iter().with_max_len(1).try_for_each(|number| {
            let (setting, seed) = self.run(number);
            let Ok(mut result) = progress.attempt(&setting.column, seed)? else {
                return Ok(());
            };
            many_parts::summarise(&mut result.metrics);
            let run = Run { number, fields: self.fields(number, result.digest, &result.metrics) };
            journal.lock().expect("nobody panics while writing").keep(run)
        })?;
        Ok(journal.into_inner().expect("nobody panicked while writing").into_runs())
    }

    /// A run's line: what it was, then what it measured.
    fn fields(&self, number: u64, digest: u64, metrics: &[Metric]) -> Vec<(String, String)> {
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
        fields.push(own(("digest", &format!("{digest:016x}"))));
        let value = |metric: &Metric| {
            let value = metric.value.filter(|value| value.is_finite())?;
            Some((
                part::title((metric.name, metric.stat, &metric.labels, metric.kind)),
                value.to_string(),
            ))
        };
        fields.extend(metrics.iter().filter_map(value));
        fields
    }

    /// The columns that every line has, before those of metrics.
    pub fn own_columns(&self) -> Vec<String> {
        let before = ["machine", "kernel", "workload"].map(String::from).into_iter();
        let after = ["seed", "digest"].map(String::from);
        before.chain(self.varies.iter().cloned()).chain(after).collect()
    }
}
