//! Which of the many metrics a reader wants to see first, and in which groups.
//!
//! A run of an 8-CPU phone measures several hundred numbers; a table that is pasted into a cover
//! letter has twenty. The rule: a metric is shown if its name and stat are in [`SHOWN`], if it is not about
//! one task or one CPU, and if it is defined and not zero everywhere. Nothing is lost: `--all` shows the rest,
//! and JSON and CSV always carry everything.

use crate::measured::Labels;

/// What a group of rows is about; groups are set apart by an empty line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// How fast the work was done.
    Performance,
    /// How long tasks waited.
    Latency,
    /// Power, energy and heat.
    Power,
    /// What idle CPUs did.
    Idle,
    /// Frequencies.
    Frequency,
    /// What the scheduler did.
    Scheduling,
    /// Everything else.
    Other,
}

/// Stats of metrics that have one value a run.
const TOTALS: &[&str] = &["mean", "sum", "gmean", "share"];

/// Name, group, and the stats of it that are shown. Names as in the reference of measurements.
const SHOWN: &[(&str, Group, &[&str])] = &[
    ("elapsed", Group::Performance, TOTALS),
    ("throughput", Group::Performance, TOTALS),
    ("score", Group::Performance, TOTALS),
    (
        "frame_duration",
        Group::Performance,
        &["mean", "p90", "p99", "max"],
    ),
    ("jank", Group::Performance, TOTALS),
    ("frames_over_period", Group::Performance, TOTALS),
    ("slack", Group::Performance, &["mean", "min"]),
    ("waking_latency", Group::Latency, &["mean", "p99"]),
    ("wakeup_latency", Group::Latency, &["mean", "p99", "max"]),
    ("power", Group::Power, TOTALS),
    ("energy", Group::Power, TOTALS),
    ("temperature", Group::Power, &["max"]),
    ("throttled", Group::Power, TOTALS),
    ("idle_too_deep", Group::Idle, TOTALS),
    ("idle_too_shallow", Group::Idle, TOTALS),
    ("idle_residency", Group::Idle, TOTALS),
    ("freq_mean", Group::Frequency, TOTALS),
    ("freq_transitions", Group::Frequency, TOTALS),
    (
        "freq_update_latency",
        Group::Frequency,
        &["mean", "p99", "max"],
    ),
    ("utilization", Group::Scheduling, TOTALS),
    ("irq_time", Group::Scheduling, TOTALS),
    ("overutilized", Group::Scheduling, TOTALS),
    ("context_switches", Group::Scheduling, TOTALS),
    ("migrations", Group::Scheduling, TOTALS),
    ("preemptions", Group::Scheduling, TOTALS),
];

/// Labels that make a metric one of very many; such rows are left to `--all`.
const DETAIL_LABELS: [&str; 5] = ["task", "cpu", "khz", "source", "while"];

/// The group of a metric name.
pub fn group(name: &str) -> Group {
    SHOWN
        .iter()
        .find(|(shown, _, _)| *shown == name)
        .map_or(Group::Other, |(_, group, _)| *group)
}

/// Whether a metric belongs into the short table.
///
/// ```
/// use schedtwin_lab::select::is_shown;
/// assert!(is_shown("power", "mean", &vec![("domain", "cpu".into())]));
/// assert!(!is_shown("power", "mean", &vec![("cpu", "3".into())]));
/// assert!(!is_shown("wakeup_latency", "p50", &vec![]));
/// ```
pub fn is_shown(name: &str, stat: &str, labels: &Labels) -> bool {
    SHOWN
        .iter()
        .any(|(shown, _, stats)| *shown == name && stats.contains(&stat))
        && labels.iter().all(|(key, _)| !DETAIL_LABELS.contains(key))
}
