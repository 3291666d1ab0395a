// SPDX-License-Identifier: GPL-2.0-or-later
//! W1, the yardstick: `workloads/w1.json` on `uniform8` under `linux-6.12`, 150,000 jobs in a minute.
//!
//! A run counts only if it did all that was asked for: every job, at least as many context switches,
//! balance passes, and every metric that the workload can have. Its time is told as a multiple of the
//! [`floor`]'s, the median of alternating pairs in one process.

use crate::floor;
use crate::measure::{child, median, range, timed};
use comfy_table::{CellAlignment, Table, presets};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::{RunOptions, Scenario};
use std::path::Path;

/// Jobs per simulated second: 40 threads, a job every 16 ms.
pub const JOBS_PER_SECOND: u64 = 2_500;
/// Multiples of the floor: the bar, the next one, the goal.
pub const BARS: [f64; 3] = [22.0, 10.0, 5.0];
/// A run with a trace may take this many times the time of one without.
pub const TRACE_BAR: f64 = 2.0;
/// Memory that a run may take, KiB.
pub const MEMORY_BAR_KIB: u64 = 32 * 1024;

/// The metrics that a W1 run prints. The design's other metrics belong to benchmarks with frames of their
/// own (`score`, `jank`, `frames_over_period`) and to heat (`temperature`, `throttled`), see [`WAITING`].
pub const METRICS: &[&str] = &[
    "elapsed",
    "throughput",
    "frame_duration",
    "power",
    "energy",
    "waking_latency",
    "wakeup_latency",
    "idle_too_deep",
    "idle_too_shallow",
    "idle_residency",
    "freq_residency",
    "freq_mean",
    "freq_transitions",
    "freq_update_latency",
    "context_switches",
    "migrations",
    "preemptions",
    "ipis",
    "ticks",
    "balance_passes",
    "overutilized",
    "cpu_time",
];
/// Metrics that W1 cannot have.
pub const WAITING: &[&str] = &["score", "jank", "frames_over_period", "temperature", "throttled"];

/// The files that a run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Nothing.
    None,
    /// A Perfetto trace.
    Trace,
    /// A record with every decision.
    Record,
}

/// The kernel of the yardstick.
pub const KERNEL: &str = "linux-6.12";

/// W1 under a kernel for so many simulated seconds.
pub fn scenario(kernel: &str, seconds: u64) -> Scenario {
    Scenario::new("uniform8", kernel, "w1", Some(seconds * 1_000_000_000))
        .unwrap_or_else(|faults| panic!("W1 is made of built-ins: {faults}"))
}

/// One run; files go to a directory that is removed.
pub fn run(scenario: &Scenario, seed: u64, files: Files) -> RunResult {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    scenario.run(seed, options(files, directory.path())).expect("files can be written")
}

fn options(files: Files, directory: &Path) -> RunOptions {
    RunOptions {
        trace: (files == Files::Trace).then(|| directory.join("w1.perfetto-trace")),
        record: (files == Files::Record).then(|| directory.join("w1.record")),
        ..RunOptions::default()
    }
}

/// The value of a metric's total.
fn total(result: &RunResult, name: &str) -> f64 {
    let metric = result.metrics.iter().find(|m| m.name == name && m.labels.is_empty());
    metric.and_then(|m| m.value).unwrap_or(0.0)
}

/// The conditions without which a run does not count: what, what it is, whether it holds.
pub fn conditions(result: &RunResult, seconds: u64) -> Vec<(&'static str, String, bool)> {
    let due = JOBS_PER_SECOND * seconds;
    let jobs: u64 = result.tasks.iter().map(|task| task.jobs).sum();
    let switches = total(result, "context_switches");
    let passes = total(result, "balance_passes");
    let missing: Vec<&str> = METRICS
        .iter()
        .copied()
        .filter(|name| !result.metrics.iter().any(|m| m.name == *name))
        .collect();
    let printed = match missing.is_empty() {
        true => format!("{} of {}", METRICS.len(), METRICS.len()),
        false => format!("missing: {}", missing.join(", ")),
    };
    vec![
        ("jobs done", jobs.to_string(), jobs >= due),
        ("context switches", switches.to_string(), switches >= due as f64),
        ("balance passes", passes.to_string(), passes > 0.0),
        ("metrics printed", printed, missing.is_empty()),
    ]
}

/// Measures and prints. `pairs` alternate; `seconds` are simulated.
pub fn report(kernel: &str, pairs: usize, seconds: u64) {
    let scenario = scenario(kernel, seconds);
    let jobs = JOBS_PER_SECOND * seconds;
    let mut times = [const { Vec::new() }; 4];
    let mut last = None;
    for pair in 0..=pairs {
        let (floor_s, floor) = timed(|| floor::run(jobs));
        let (w1_s, result) = timed(|| run(&scenario, 1, Files::None));
        let (trace_s, traced) = timed(|| run(&scenario, 1, Files::Trace));
        let (record_s, recorded) = timed(|| run(&scenario, 1, Files::Record));
        assert_eq!(floor.jobs, jobs);
        assert_eq!(traced.digest, result.digest, "a trace changes nothing");
        assert_eq!(recorded.digest, result.digest, "a record changes nothing");
        last = Some(result);
        // The first round warms caches and files.
        if pair > 0 {
            for (times, seconds) in times.iter_mut().zip([floor_s, w1_s, trace_s, record_s]) {
                times.push(seconds);
            }
        }
    }
    let result = last.expect("at least one round ran");
    let [floor_times, w1_times, trace_times, record_times] = &times;
    let ratios = |over: &[f64], under: &[f64]| -> Vec<f64> {
        over.iter().zip(under).map(|(over, under)| over / under).collect()
    };

    println!(
        "W1 on {kernel}: {jobs} jobs, {} events, digest {:016x}\n",
        result.events, result.digest
    );
    let mut table = table(["side condition", "value", ""]);
    for (what, value, holds) in conditions(&result, seconds) {
        table.add_row([what, &value, if holds { "holds" } else { "DOES NOT HOLD" }]);
    }
    println!("{table}\n(not of W1: {})\n", WAITING.join(", "));

    let mut table =
        self::table(["", "CPU time, ms", "ns a job", "ratio", "lowest", "highest", "bar"]);
    let mut row = |name: &str, seconds: &[f64], ratio: Option<(Vec<f64>, Vec<f64>)>| {
        let (shown, low, high, bars) = match ratio {
            None => Default::default(),
            Some((values, bars)) => {
                let middle = median(&values);
                let (low, high) = range(&values);
                let bars: Vec<String> = bars
                    .iter()
                    .map(|bar| format!("{bar}× {}", if middle <= *bar { "passed" } else { "over" }))
                    .collect();
                (format!("{middle:.2}"), format!("{low:.2}"), format!("{high:.2}"), bars.join(", "))
            }
        };
        let time = median(seconds);
        let (ms, ns) = (format!("{:.1}", time * 1e3), format!("{:.0}", time * 1e9 / jobs as f64));
        table.add_row([name.to_string(), ms, ns, shown, low, high, bars]);
    };
    row("floor", floor_times, None);
    row("W1 : floor", w1_times, Some((ratios(w1_times, floor_times), BARS.to_vec())));
    row("with trace : W1", trace_times, Some((ratios(trace_times, w1_times), vec![TRACE_BAR])));
    row("with record : W1", record_times, Some((ratios(record_times, w1_times), Vec::new())));
    println!("{table}\n(medians of {pairs} alternating rounds)\n");

    let mut table = self::table(["memory of a process of its own", "peak, MiB", "bar"]);
    let long = (10 * seconds).to_string();
    let short = seconds.to_string();
    for (files, seconds) in
        [("none", &short), ("none", &long), ("trace", &short), ("record", &short)]
    {
        let peak = child(&[], &["case", "--files", files, "--seconds", seconds])
            .ok()
            .and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().ok());
        let (shown, bar) = match peak {
            None => ("unknown".to_string(), String::new()),
            Some(kib) => {
                let verdict = if kib <= MEMORY_BAR_KIB { "passed" } else { "over" };
                (format!("{:.1}", kib as f64 / 1024.0), format!("32 {verdict}"))
            }
        };
        let name = if files == "none" { "without files" } else { files };
        table.add_row([format!("{name}, {seconds} simulated s"), shown, bar]);
    }
    println!("{table}");
}

/// A table whose first column is text and the others numbers.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_w1_meets_its_conditions() {
        let result = run(&scenario(KERNEL, 1), 1, Files::None);
        for (what, value, holds) in conditions(&result, 1) {
            // Jobs released in the last 16 ms are done after the end, and threads start one after another.
            let near = what.starts_with("jobs") || what.starts_with("context");
            assert!(holds || near && value.parse::<f64>().unwrap() > 2_400.0, "{what}: {value}");
        }
    }
}
