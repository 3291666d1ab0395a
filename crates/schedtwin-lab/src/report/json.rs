// SPDX-License-Identifier: GPL-2.0-or-later
//! Everything for programs: `schedtwin.run/1`, `schedtwin.compare/1` and `schedtwin.replay/1`.
//!
//! The shape is stable (fields are added, never renamed) and described by the shipped schemas. Numbers are finite
//! and printed with the fewest digits that read back as the same number; what is undefined is null. One line per metric,
//! task and CPU: a file can be compared with `diff` and searched with `grep`.

use schedtwin_engine::result::{Better, Breach, RunResult};
use serde_json::{Map, Value, json};

use super::{Extent, RunReport};
use crate::Provenance;
use crate::compare::{ComparedRow, Comparison};
use crate::crash::Crash;
use crate::fail_if::Verdict;
use crate::measured::Labels;
use crate::replay::trust::Trust;
use crate::select::Key;
use crate::verdict::Broken;

pub fn comparison(comparison: &Comparison) -> String {
    lines(comparison_fields("schedtwin.compare/1", comparison))
}

/// With what became of the conditions that were asked.
pub fn judged(comparison: &Comparison, verdicts: &[(String, Verdict)]) -> String {
    let mut fields = comparison_fields("schedtwin.compare/1", comparison);
    let verdict = |(condition, verdict): &(String, Verdict)| json!({"condition": condition, "failed": verdict.failed, "findings": verdict.findings});
    fields.insert(fields.len() - 1, ("verdicts", verdicts.iter().map(verdict).collect()));
    lines(fields)
}

/// As a comparison, with the fidelity of the replay in front of the metrics.
pub fn replay(comparison: &Comparison, fidelity: Value, trust: &Trust) -> String {
    let mut fields = comparison_fields("schedtwin.replay/1", comparison);
    if let Some((_, Value::Array(rows))) = fields.last_mut() {
        for (row, of) in rows.iter_mut().zip(&comparison.rows) {
            let row = row.as_object_mut().expect("a row is an object");
            let trust = super::replay::row_trust(trust, of.row.name);
            row.extend(trust.map(|(key, value)| (key.to_owned(), value)));
        }
    }
    fields.insert(fields.len() - 1, ("fidelity", fidelity));
    lines(fields)
}

fn comparison_fields(schema: &'static str, comparison: &Comparison) -> Vec<(&'static str, Value)> {
    let mut provenance = provenance(&comparison.provenance, &comparison.seeds);
    provenance.insert("n".into(), json!(comparison.seeds.len()));
    let metrics = comparison.rows.iter().map(|row| compared(row, &comparison.kernels)).collect();
    vec![
        ("schema", json!(schema)),
        ("provenance", Value::Object(provenance)),
        ("kernels", json!(comparison.kernels)),
        ("baseline", json!(comparison.kernels[0])),
        ("paired", json!(true)),
        ("test", json!("two-sided paired t-test, significant if p < 0.05")),
        ("ci_of", json!("seeds")),
        ("identical_executions", json!(comparison.identical_executions)),
        ("notices", json!(comparison.notices)),
        ("crashes", comparison.crashes.iter().map(crash).collect()),
        (
            "verdict",
            (0..comparison.kernels.len()).map(|kernel| verdict(comparison, kernel)).collect(),
        ),
        ("metrics", Value::Array(metrics)),
    ]
}

/// The conclusion on a kernel, in the order in which it is told: what ended, what is broken, who is hurt.
fn verdict(comparison: &Comparison, kernel: usize) -> Value {
    let found = crate::verdict::verdict(comparison, kernel);
    let ended: Vec<Value> =
        found.ended.iter().map(|(what, runs)| json!({"what": what, "runs": runs})).collect();
    let in_runs = |broken: &[&Broken]| -> Vec<Value> {
        let of = |of: &&Broken| {
            let mut value = breach(&of.worst);
            value["runs"] = json!(of.runs);
            value["first_seed"] = json!(of.first_seed);
            value["worst_seed"] = json!(of.worst_seed);
            value
        };
        broken.iter().map(of).collect()
    };
    let hurt = found.hurt.map(|hurt| {
        let row = &hurt.row.row;
        json!({
            "name": row.name, "stat": row.stat, "labels": labels(&row.labels), "unit": row.unit,
            "diff": hurt.difference.diff, "diff_pct": hurt.difference.diff_pct,
            "diff_ci95": hurt.difference.ci95, "rows_looked_at": hurt.of, "others": hurt.others,
        })
    });
    json!({
        "kernel": comparison.kernels[kernel], "word": found.word().text(),
        "conclusion": (kernel > 0).then(|| conclusion(comparison, kernel)), "runs": found.runs,
        "ended": ended, "broken": in_runs(&found.broken), "also_of_baseline": in_runs(&found.shared),
        "hurt": hurt,
    })
}

/// The conclusion of the sentences, in one word.
fn conclusion(comparison: &Comparison, kernel: usize) -> Option<&'static str> {
    let extent = if comparison.all_rows.is_some() { Extent::Chosen } else { Extent::Headlines };
    let said = || super::summary::conclusion(comparison, extent, kernel).text();
    (comparison.seeds.len() > 1).then(said)
}

/// A broken property.
fn breach(breach: &Breach) -> Value {
    json!({
        "property": breach.property.name(), "count": breach.count, "longest_ns": breach.longest,
        "open": breach.open, "since_ns": breach.since, "who": breach.who, "task": breach.group,
        "how": breach.how, "bound_ns": breach.bound,
    })
}

/// A run that panicked.
pub fn crash(crash: &Crash) -> Value {
    let Crash { seed, kernel, message, command } = crash;
    json!({"kernel": kernel, "seed": seed, "message": message, "command": command})
}

fn compared(row: &ComparedRow, kernels: &[String]) -> Value {
    let values: Vec<Value> = row
        .cells
        .iter()
        .enumerate()
        .map(|(kernel, cell)| {
            let mut value = Map::new();
            value.insert("kernel".into(), json!(kernels[kernel]));
            value.insert("mean".into(), json!(cell.estimate.map(|e| e.mean)));
            value.insert("ci95".into(), json!(cell.estimate.and_then(|e| e.ci95)));
            value.insert("samples".into(), json!(row.row.samples[kernel]));
            if kernel > 0 {
                let told = row.told(kernel);
                let difference = told.as_ref();
                value.insert("diff".into(), json!(difference.map(|d| d.diff)));
                value.insert("diff_pct".into(), json!(difference.and_then(|d| d.diff_pct)));
                value.insert("diff_ci95".into(), json!(difference.and_then(|d| d.ci95)));
                value.insert("p".into(), json!(difference.and_then(|d| d.p)));
                value
                    .insert("significant".into(), json!(difference.is_some_and(|d| d.significant)));
                if difference.is_some_and(|d| d.for_equal_lengths) {
                    value.insert("for_equal_lengths".into(), json!(true));
                }
            }
            Value::Object(value)
        })
        .collect();
    let mut metric = named(row.row.key(), row.row.unit, row.row.better);
    metric.insert("values".into(), json!(values));
    Value::Object(metric)
}

/// The fields of a row that come before its values.
fn named((name, stat, labels, kind): Key, unit: &str, better: Better) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("name".into(), json!(name));
    fields.insert("stat".into(), json!(stat));
    fields.insert("unit".into(), json!(unit));
    fields.insert("labels".into(), self::labels(labels));
    fields.insert("kind".into(), json!(kind.word()));
    if let Some(parts) = kind.parts() {
        fields.insert("of".into(), json!(parts.of));
        fields.insert("over".into(), json!(parts.over));
    }
    fields.insert("better".into(), json!(better.word()));
    fields
}

pub fn run(report: &RunReport) -> String {
    let RunReport { provenance: from, kernel, seed, result } = report;
    let RunResult { metrics, tasks, cpus, digest, simulated_ns, events, ended, broken, notices } =
        result;
    let mut provenance = provenance(from, &[*seed]);
    provenance.insert("kernel".into(), json!(kernel));
    let metrics = metrics.iter().map(|m| {
        let mut metric = named((m.name, m.stat, &m.labels, m.kind), m.unit, m.better);
        metric.insert("value".into(), json!(m.value.filter(|v| v.is_finite())));
        Value::Object(metric)
    });
    let tasks = tasks.iter().map(|t| {
        json!({
            "name": t.name, "id": t.id, "cpu_time_ns": t.cpu_time_ns,
            "utime_ns": t.utime_ns, "stime_ns": t.stime_ns,
            "cpu_time_by_cpu_ns": t.cpu_time_by_cpu_ns, "jobs": t.jobs, "switches": t.switches,
            "migrations": t.migrations,
        })
    });
    let cpus = cpus.iter().map(|c| {
        let frequencies: Vec<Value> =
            c.frequency_ns.iter().map(|(khz, ns)| json!({"khz": khz, "time_ns": ns})).collect();
        json!({
            "cpu": c.cpu, "busy_ns": c.busy_ns, "idle_ns": c.idle_ns, "idle_loop_ns": c.idle_loop_ns,
            "idle_entries": c.idle_entries,
            "frequency_ns": frequencies,
        })
    });
    lines(vec![
        ("schema", json!("schedtwin.run/1")),
        ("provenance", Value::Object(provenance)),
        ("simulated_ns", json!(simulated_ns)),
        ("events", json!(events)),
        // 64 bits do not fit the numbers of most JSON readers.
        ("digest", json!(format!("{digest:016x}"))),
        ("notices", json!(notices)),
        ("ended", json!(ended)),
        ("broken", broken.iter().map(breach).collect()),
        ("metrics", metrics.collect()),
        ("tasks", tasks.collect()),
        ("cpus", cpus.collect()),
    ])
}

pub(super) fn provenance(from: &Provenance, seeds: &[u64]) -> Map<String, Value> {
    let hashes: Map<String, Value> =
        from.hashes.iter().map(|(n, h)| (n.clone(), json!(h))).collect();
    let mut provenance = Map::new();
    provenance.insert("version".into(), json!(from.version));
    provenance.insert("model_version".into(), json!(from.model_version));
    provenance.insert("machine".into(), json!(from.machine));
    provenance.insert("workload".into(), json!(from.workload));
    provenance.insert("hashes".into(), Value::Object(hashes));
    provenance.insert("seeds".into(), json!(seeds));
    provenance.insert("duration_s".into(), json!(from.duration_ns.map(|ns| ns as f64 / 1e9)));
    provenance.insert("trust".into(), json!(from.trust));
    provenance
}

fn labels(labels: &Labels) -> Value {
    Value::Object(labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect())
}

/// An object with a line per field, and a line per element of the arrays of objects in it.
pub(super) fn lines(fields: Vec<(&str, Value)>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| match value {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let items: Vec<String> = items.iter().map(|item| format!("  {item}")).collect();
                format!("\"{name}\":[\n{}\n ]", items.join(",\n"))
            }
            value => format!("\"{name}\":{value}"),
        })
        .collect();
    format!("{{{}}}\n", fields.join(",\n "))
}
