// SPDX-License-Identifier: GPL-2.0-or-later
//! The interface of a benchmark's model, in one trait, and the metrics that several benchmarks
//! share.
//!
//! A benchmark is a file of this folder with a type that implements [`Benchmark`], and its line in the list of the
//! folder. Names, options, help, reading, running and results follow from it: nothing else names a benchmark.
//!
//! A run goes through three of its methods:
//!
//! ```text
//! -w 'name --option 5'  ─ options ─► Values ─ build ─► Script ─ compiled, executed ─► Counted ─ results ─► metrics
//! ```
//!
//! Frames are counted by the workload, because the rule that calls one jank is the app's; how long frames take is
//! the meter's `frame_duration`, which sees every mark.

use super::compile;
use super::frames::FrameCount;
use super::options::{self, Values, WorkloadOption};
use super::script::Script;
use crate::program::Interpreter;
use crate::workload::Checked;
use crate::{Host, Programs};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::metric::{self, DeclaredMetric, Metric};
use schedtwin_types::{Ns, Policy};
use std::fmt::Debug;
use std::sync::Arc;

/// A model of a benchmark.
pub(crate) trait Benchmark: Debug + Sync {
    /// The word by which a user asks for it.
    fn name(&self) -> &'static str;

    /// One line for `list workloads`, which ends with how long it takes.
    fn description(&self) -> &'static str;

    /// The options that may follow its name.
    fn options(&self) -> &'static [WorkloadOption];

    /// Returns the parts of the model, for `show workload`: lines, each with its end.
    fn about(&self) -> &'static str;

    /// Returns the fault of a set of options that are right by themselves, if there is one.
    fn check(&self, _values: &Values) -> Option<String> {
        None
    }

    /// The metrics that only it knows; all that [`Benchmark::results`] may give.
    fn metrics(&self) -> &'static [&'static DeclaredMetric] {
        &[]
    }

    /// How long it runs, ns; `None`: until its script says that it is over.
    fn duration(&self, _values: &Values) -> Option<Ns> {
        None
    }

    /// How much of its beginning the meter leaves out, ns. What the script counts and records is not affected.
    fn warmup(&self, _values: &Values) -> Ns {
        0
    }

    /// Whether its jobs are requests, whose cost is told.
    fn counts_requests(&self) -> bool {
        false
    }

    /// What a machine lacks that it needs, and what to do; `None`: nothing.
    fn misses(&self, _values: &Values, _host: &Host) -> Option<(String, &'static str)> {
        None
    }

    /// Its threads and devices on a machine.
    fn build(&self, values: &Values, host: &Host) -> Script;

    /// Returns the benchmark's own results after a run, in the order in which results list them.
    fn results(&self, _counted: &Counted) -> Vec<Metric> {
        Vec::new()
    }
}

/// A benchmark with the options that a user has chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    benchmark: &'static dyn Benchmark,
    values: Values,
    /// Name and all options.
    canonical: String,
}

impl Chosen {
    pub fn new(benchmark: &'static dyn Benchmark, values: Values) -> Chosen {
        Chosen { benchmark, canonical: values.canonical(benchmark.name()), values }
    }
}

impl Checked for Chosen {
    fn describe(&self) -> String {
        let Chosen { benchmark, canonical, .. } = self;
        let options = options::describe(benchmark.options());
        format!("{options}\n{}\nas asked for:\n  {canonical}\n", benchmark.about())
    }

    fn has_rt_tasks(&self, host: &Host) -> bool {
        let script = self.benchmark.build(&self.values, host);
        let policies = script.threads.iter().map(|thread| thread.attributes.policy);
        policies.into_iter().any(|policy| matches!(policy, Policy::Fifo | Policy::Rr))
    }

    fn own_metrics(&self) -> Vec<&'static str> {
        self.benchmark.metrics().iter().map(|metric| metric.name).collect()
    }

    fn bytes(&self) -> &[u8] {
        self.canonical.as_bytes()
    }

    fn instantiate(
        &self,
        host: &Host,
        seed: u64,
        duration: Option<Ns>,
    ) -> Result<Programs, Diagnostics> {
        if let Some((message, help)) = self.benchmark.misses(&self.values, host) {
            let mut faults = Diagnostics::new();
            let source = Source::new("workload", self.canonical.as_str());
            faults.push(&source, 0..self.canonical.len(), message, Some(help.to_string()));
            return Err(faults);
        }
        let script = self.benchmark.build(&self.values, host);
        let warmup = self.benchmark.warmup(&self.values);
        let code = compile::compile(self.benchmark, script, seed, warmup, duration);
        Ok(Interpreter::new(Arc::new(code), host.cpu_capacity.len()).into())
    }
}

/// The counts and records of a script in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'p> {
    /// The names of the script's tests.
    pub tests: &'p [&'static str],
    /// The frames of each.
    pub frames: &'p [FrameCount],
    /// For each name in `Script::recorded`, the durations recorded under it, ns.
    pub recorded: &'p [Vec<Ns>],
    /// The registers, as the run left them.
    pub registers: &'p [u64],
}

/// The metrics of [`frames_by_test`].
pub(super) const OF_FRAMES: &[&DeclaredMetric] = &[&metric::JANK, &metric::FRAMES_OVER_PERIOD];

/// The metrics of [`score`].
pub(super) const OF_SCORES: &[&DeclaredMetric] = &[&metric::SCORE];

/// Reads one count of a test.
type CountOf = fn(&FrameCount) -> u64;

/// Jank and late frames in per cent of all frames: of the whole run, then of each test.
pub(super) fn frames_by_test(counted: &Counted) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let kinds: [(&DeclaredMetric, CountOf); 2] = [
        (&metric::JANK, |count| count.janks),
        (&metric::FRAMES_OVER_PERIOD, |count| count.over_period),
    ];
    for (of, part) in kinds {
        let share = |counts: &[FrameCount]| {
            let some: u64 = counts.iter().map(part).sum();
            let all: u64 = counts.iter().map(|count| count.frames).sum();
            (all > 0).then(|| some as f64 / all as f64 * 100.0)
        };
        metrics.push(of.value("mean", vec![], share(counted.frames)));
        for (test, count) in counted.tests.iter().zip(counted.frames) {
            let labels = vec![("test", test.to_string())];
            metrics.push(of.value("mean", labels, share(std::slice::from_ref(count))));
        }
    }
    metrics
}

/// A score: of a section, or of the whole benchmark. `None`: too little ran for one.
pub(super) fn score(section: Option<&str>, value: Option<f64>) -> Metric {
    let labels = section.iter().map(|section| ("section", section.to_string())).collect();
    metric::SCORE.value("gmean", labels, value)
}

/// The geometric mean of positive numbers; none of none.
///
/// By bisection with nothing but products, whose bits are the same on every computer; a logarithm's are not.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().reduce(f64::max)?;
    let (mut low, mut high) = (0.0, most);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let product: f64 = values.iter().map(|value| value / middle).product();
        if product > 1.0 { low = middle } else { high = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_frames_are_of_all_and_of_each_test() {
        let frames = [
            FrameCount { frames: 40, over_period: 8, janks: 4 },
            FrameCount { frames: 0, over_period: 0, janks: 0 },
            FrameCount { frames: 60, over_period: 12, janks: 1 },
        ];
        let tests = ["lists", "none", "text"];
        let metrics = frames_by_test(&Counted {
            tests: &tests,
            frames: &frames,
            recorded: &[],
            registers: &[],
        });
        let found: Vec<_> = metrics
            .iter()
            .map(|metric| {
                let test = metric.labels.first().map_or("", |(_, test)| test);
                (metric.name, test, metric.value)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("jank", "", Some(5.0)),
                ("jank", "lists", Some(10.0)),
                ("jank", "none", None),
                ("jank", "text", Some(1.0 / 60.0 * 100.0)),
                ("frames_over_period", "", Some(20.0)),
                ("frames_over_period", "lists", Some(20.0)),
                ("frames_over_period", "none", None),
                ("frames_over_period", "text", Some(20.0)),
            ]
        );
    }

    #[test]
    fn the_geometric_mean_is_that_of_known_numbers() {
        assert_eq!(geometric_mean(&[]), None);
        let mean = geometric_mean(&[2.0, 4.0, 8.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-9, "{mean}");
    }
}
