//! Recorded work on other kernels: a comparison, and how far the first kernel's replay is the recording.
//!
//! A replay is a [`crate::compare`] whose workload is a trace. Its [`Fidelity`] says what of the trace was
//! used, what was left out and what assumed, and sets measurements of the recording beside those of
//! the first kernel's runs. They need not agree: the recorded device had another kernel, caches, interrupts and threads
//! that the twin has not. They tell how far to trust the table.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use schedtwin::recording::{Excluded, TraceRecording};
use schedtwin::result::{Better, Metric, RunResult};
use schedtwin_types::Ns;

use crate::Progress;
use crate::compare::{Comparison, Plan, Subject, compare};
use crate::provenance::Provenance;
use crate::twin::Column;

/// A comparison of kernels on recorded work.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The kernels against each other.
    pub comparison: Comparison,
    /// The recording against the first kernel.
    pub fidelity: Fidelity,
}

/// A number of the recording and of its replay on the first kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Which metric, as in the comparison.
    pub name: &'static str,
    /// Which stat of it.
    pub stat: &'static str,
    /// Its labels.
    pub labels: Vec<(&'static str, String)>,
    /// Its unit.
    pub unit: &'static str,
    /// In the recording; `None` where it has no sample.
    pub recorded: Option<f64>,
    /// On the first kernel, the mean over the seeds.
    pub replayed: Option<f64>,
}

/// Threads that are not replayed, for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Why, in words.
    pub reason: &'static str,
    /// Their names, each once.
    pub names: Vec<String>,
    /// Their part of the CPU time of all threads, %.
    pub cpu_time_pct: f64,
}

/// How far a replay is the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// Length of the recording.
    pub span_ns: Ns,
    /// Trace lines.
    pub events: u64,
    /// Trace lines of events that are not used.
    pub events_unused: u64,
    /// Lines that are no trace lines.
    pub lines_foreign: u64,
    /// Events that the recorder lost, as far as it counted.
    pub events_lost: u64,
    /// Times the recorder lost events without a count.
    pub losses_uncounted: u64,
    /// Events that contradict each other: others between them are missing.
    pub contradictions: u64,
    /// Threads replayed.
    pub threads: u64,
    /// Threads that others start within the recording.
    pub threads_forked: u64,
    /// Threads pinned to the CPU in their name.
    pub threads_pinned: u64,
    /// Share of the recorded CPU time that is replayed, %.
    pub cpu_time_covered_pct: f64,
    /// Threads that are not.
    pub left_out: Vec<LeftOut>,
    /// Sleeps that end when the task that woke the thread gets there.
    pub wakes_by_waker: u64,
    /// Sleeps that end at the recorded time of an interrupt.
    pub wakes_by_time: u64,
    /// Sleeps whose wakeup is not in the trace: they end when the thread was seen to run again.
    pub wakes_unmatched: u64,
    /// Wakeups whose lines do not say whether an interrupt made them.
    pub wakes_of_unknown_context: u64,
    /// Changes of priority.
    pub priority_changes: u64,
    /// Latencies begin with `sched_wakeup`, as there is no `sched_waking`.
    pub without_waking: bool,
    /// CPU time before the first `cpu_frequency` of its CPU, %.
    pub assumed_frequency_pct: f64,
    /// Share of the recorded work that was taken off as cost of kernel paths, %.
    pub paths_taken_off_pct: f64,
    /// What was assumed of the recorded device.
    pub assumptions: Vec<String>,
    /// The kernel whose replay is compared with the recording.
    pub kernel: String,
    /// Measurements of both.
    pub pairs: Vec<Pair>,
}

/// A column whose runs measure the work of all and each CPU's busy time as well.
struct ReplayColumn<'a>(&'a Column);

impl Subject for ReplayColumn<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn duration(&self) -> Option<Ns> {
        self.0.duration()
    }

    fn run(&self, seed: u64, simulated: Arc<AtomicU64>) -> io::Result<RunResult> {
        let mut result = self.0.run(seed, simulated)?;
        let used = result.metrics.iter().find(|m| m.name == "utilization" && m.labels.is_empty());
        let used = used.and_then(|metric| metric.value).unwrap_or(0.0) / 100.0;
        let cpus = &self.0.scenario.machine().cpus;
        let capacity: u64 = cpus.iter().map(|cpu| u64::from(cpu.capacity)).sum();
        let elapsed = result.metrics.iter().find(|m| m.name == "elapsed").and_then(|m| m.value);
        result.metrics.push(Metric {
            name: "work",
            unit: "s",
            stat: "sum",
            labels: Vec::new(),
            value: elapsed.map(|elapsed| used * elapsed * capacity as f64 / 1024.0),
            better: Better::Neutral,
        });
        let busy = result.cpus.iter().map(|cpu| Metric {
            name: "cpu_time",
            unit: "s",
            stat: "sum",
            labels: vec![("cpu", cpu.cpu.to_string())],
            value: Some(seconds(cpu.busy_ns)),
            better: Better::Neutral,
        });
        result.metrics.extend(busy);
        Ok(result)
    }
}

/// Replays a trace on every column's kernel, and judges the first one's fidelity.
///
/// # Panics
/// As [`compare`].
pub fn replay(
    columns: &[Column],
    trace: &TraceRecording,
    plan: Plan,
    provenance: Provenance,
    progress: &Progress,
) -> io::Result<Replayed> {
    let subjects: Vec<ReplayColumn<'_>> = columns.iter().map(ReplayColumn).collect();
    let comparison = compare(&subjects, plan, provenance, progress)?;
    let fidelity = fidelity(trace, &comparison);
    Ok(Replayed { comparison, fidelity })
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn fidelity(trace: &TraceRecording, comparison: &Comparison) -> Fidelity {
    let recorded = &trace.recorded;
    let all_ns: Ns = recorded.threads.iter().map(|thread| thread.cpu_time_ns).sum();
    let replayed_ns: Ns = recorded.busy_ns.iter().sum();
    let mut left_out = Vec::new();
    for (excluded, reason) in [
        (Excluded::Stopper, "the twin has stoppers of its own"),
        (Excluded::Governor, "the twin's governor changes frequencies itself"),
    ] {
        let of = recorded.threads.iter().filter(|thread| thread.excluded == Some(excluded));
        let cpu_time_pct = percent(of.clone().map(|thread| thread.cpu_time_ns).sum(), all_ns);
        let mut names: Vec<String> = of.map(|thread| thread.name.to_string()).collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            left_out.push(LeftOut { reason, names, cpu_time_pct });
        }
    }
    let excluded = recorded.threads.iter().filter(|thread| thread.excluded.is_some()).count();
    Fidelity {
        span_ns: recorded.span_ns,
        events: trace.trace.events,
        events_unused: trace.trace.unknown,
        lines_foreign: trace.trace.foreign,
        events_lost: trace.trace.lost,
        losses_uncounted: trace.trace.lost_uncounted,
        contradictions: recorded.contradictions,
        threads: (recorded.threads.len() - excluded) as u64,
        threads_forked: recorded.forked,
        threads_pinned: recorded.pinned,
        cpu_time_covered_pct: percent(replayed_ns, all_ns),
        left_out,
        wakes_by_waker: recorded.tied_to_waker,
        wakes_by_time: recorded.tied_to_time,
        wakes_unmatched: recorded.unmatched,
        wakes_of_unknown_context: trace.unknown_context,
        priority_changes: recorded.priority_changes,
        without_waking: trace.without_waking,
        assumed_frequency_pct: percent(recorded.assumed_frequency_ns, replayed_ns),
        paths_taken_off_pct: percent(recorded.paths_taken_off, recorded.work),
        assumptions: trace.assumptions.clone(),
        kernel: comparison.kernels[0].clone(),
        pairs: pairs(trace, comparison),
    }
}

/// What can be measured in a recording and in its replay.
fn pairs(trace: &TraceRecording, comparison: &Comparison) -> Vec<Pair> {
    let recorded = &trace.recorded;
    let mut pairs = Vec::new();
    let mut add = |name, stat, labels: Vec<(&'static str, String)>, unit, value: Option<f64>| {
        let row = comparison
            .rows
            .iter()
            .find(|row| (row.row.name, row.row.stat, &row.row.labels) == (name, stat, &labels));
        let replayed = row.and_then(|row| row.cells[0].estimate).map(|estimate| estimate.mean);
        pairs.push(Pair { name, stat, labels, unit, recorded: value, replayed });
    };
    let latencies = &recorded.waking_latency_ns;
    let us = |ns: u32| f64::from(ns) / 1e3;
    let quantile = |q: usize| latencies.get(latencies.len() * q / 100).map(|ns| us(*ns));
    let busy: Ns = recorded.busy_ns.iter().sum();
    add("cpu_time", "sum", vec![], "s", Some(seconds(busy)));
    for (cpu, ns) in recorded.busy_ns.iter().enumerate() {
        add("cpu_time", "sum", vec![("cpu", cpu.to_string())], "s", Some(seconds(*ns)));
    }
    // What a CPU of capacity 1024 at its highest frequency takes for it.
    add("work", "sum", vec![], "s", Some(seconds(recorded.work)));
    let sleeps = recorded.tied_to_waker + recorded.tied_to_time + recorded.unmatched;
    add("replayed_sleeps", "sum", vec![], "count", Some(sleeps as f64));
    add("context_switches", "sum", vec![], "count", Some(recorded.switches as f64));
    add("migrations", "sum", vec![], "count", Some(recorded.migrations as f64));
    // The twin's samples of both kinds begin where the trace's begin.
    let latency = if trace.without_waking { "wakeup_latency" } else { "waking_latency" };
    let mean = latencies.iter().map(|ns| us(*ns)).sum::<f64>() / latencies.len() as f64;
    add(latency, "mean", vec![], "us", (!latencies.is_empty()).then_some(mean));
    for (stat, q) in [("p50", 50), ("p90", 90), ("p99", 99)] {
        add(latency, stat, vec![], "us", quantile(q));
    }
    pairs
}
