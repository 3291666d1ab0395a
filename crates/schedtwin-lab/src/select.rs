//! Which of the many metrics a reader wants to see first, and in which groups.
//!
//! A run of an 8-CPU phone measures several hundred numbers; a table that is pasted into a cover
//! letter has twenty. The rule: a metric is shown if its name and stat are listed here, if it is not about
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

/// What a short table shows of a metric.
struct Shown {
    name: &'static str,
    group: Group,
    /// Stats shown of the whole machine.
    whole: &'static [&'static str],
    /// Stats shown of its parts: clusters, frequency domains, packages.
    parts: &'static [&'static str],
}

const fn shown(
    name: &'static str,
    group: Group,
    whole: &'static [&'static str],
    parts: &'static [&'static str],
) -> Shown {
    Shown { name, group, whole, parts }
}

/// Stats of metrics that have one value a run.
const TOTAL: &[&str] = &["mean", "sum", "gmean", "share"];

/// Names as in the reference of measurements.
const SHOWN: &[Shown] = &[
    shown("elapsed", Group::Performance, TOTAL, &[]),
    shown("throughput", Group::Performance, TOTAL, &[]),
    shown("score", Group::Performance, TOTAL, TOTAL),
    shown("replayed_work", Group::Performance, TOTAL, &[]),
    shown("frame_duration", Group::Performance, &["mean", "p90", "p99", "max"], &[]),
    shown("job_duration", Group::Performance, &["mean", "p90", "p99", "max"], &[]),
    shown("jank", Group::Performance, TOTAL, &[]),
    shown("frames_over_period", Group::Performance, TOTAL, &[]),
    shown("slack", Group::Performance, &["mean"], &[]),
    shown("wakeup_latency", Group::Latency, &["mean", "p99", "max"], &["p99"]),
    shown("power", Group::Power, TOTAL, TOTAL),
    shown("energy", Group::Power, TOTAL, &[]),
    shown("temperature", Group::Power, &["max"], &["max"]),
    shown("throttled", Group::Power, TOTAL, TOTAL),
    shown("idle_too_deep", Group::Idle, TOTAL, &[]),
    shown("idle_too_shallow", Group::Idle, TOTAL, &[]),
    shown("idle_residency", Group::Idle, TOTAL, TOTAL),
    shown("freq_mean", Group::Frequency, TOTAL, TOTAL),
    shown("freq_transitions", Group::Frequency, TOTAL, &[]),
    shown("freq_update_latency", Group::Frequency, &["mean"], &[]),
    shown("utilization", Group::Scheduling, TOTAL, &[]),
    shown("irq_time", Group::Scheduling, TOTAL, &[]),
    shown("overutilized", Group::Scheduling, TOTAL, &[]),
    shown("contention", Group::Scheduling, TOTAL, TOTAL),
    shown("context_switches", Group::Scheduling, TOTAL, &[]),
    shown("migrations", Group::Scheduling, TOTAL, &[]),
    shown("preemptions", Group::Scheduling, TOTAL, &[]),
];

/// Labels that make a metric one of very many; such rows are left to `--all`.
const DETAIL_LABELS: [&str; 6] = ["task", "cpu", "khz", "source", "while", "over"];

/// The group of a metric name.
pub fn group(name: &str) -> Group {
    SHOWN.iter().find(|shown| shown.name == name).map_or(Group::Other, |shown| shown.group)
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
    let Some(shown) = SHOWN.iter().find(|shown| shown.name == name) else { return false };
    let stats = if labels.is_empty() { shown.whole } else { shown.parts };
    stats.contains(&stat) && labels.iter().all(|(key, _)| !DETAIL_LABELS.contains(key))
}

/// Whether a row repeats the row of the whole machine: the only cluster of a machine is the machine.
/// `all` has name, stat and labels of every row.
pub fn repeats_the_whole<'a>(
    name: &str,
    stat: &str,
    labels: &Labels,
    all: impl Iterator<Item = (&'a str, &'a str, &'a Labels)>,
) -> bool {
    let [(part, _)] = labels.as_slice() else { return false };
    let (mut wholes, mut parts) = (0, 0);
    for (_, _, other) in all.filter(|(n, s, _)| *n == name && *s == stat) {
        match other.as_slice() {
            [] => wholes += 1,
            [(key, _)] if key == part => parts += 1,
            _ => {}
        }
    }
    wholes == 1 && parts == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_part_repeats_the_whole() {
        let domain = |name: &str| vec![("domain", name.to_string())];
        let (whole, little, big, cpu) =
            (vec![], domain("little"), domain("big"), vec![("cpu", "0".to_string())]);
        let check = |rows: &[&Labels], labels: &Labels| {
            repeats_the_whole("power", "mean", labels, rows.iter().map(|l| ("power", "mean", *l)))
        };
        assert!(check(&[&whole, &little, &cpu], &little));
        assert!(!check(&[&whole, &little, &cpu], &whole));
        assert!(!check(&[&whole, &little, &big], &little));
        assert!(!check(&[&little], &little), "there is no whole to repeat");
    }
}
