// SPDX-License-Identifier: GPL-2.0-or-later
//! How often a study's verdicts come out the same: as text and as `schedtwin.stability/1`.

use serde_json::{Map, Value, json};

use super::{Rerun, json};
use crate::stopping::Iterations;
use crate::study::stability::Stability;
use crate::study::verdict::Verdict;

pub fn text(rerun: &Rerun) -> String {
    let study = rerun.ready.study();
    let seeds = match &rerun.iterations {
        Iterations::Fixed(n) => format!("{n} fresh seeds each"),
        Iterations::Precision { half_width_pct, most } => {
            format!("fresh seeds until {half_width_pct}% is reached, at most {most}, each")
        }
        other => format!("at most {} fresh seeds each", other.most()),
    };
    let mut text = format!(
        "{}: {} reruns with {seeds}; the verdict that most of them give\n\n",
        study.name, rerun.reruns
    );
    text.extend(rerun.found.iter().map(|one| format!("{}\n", line(rerun, one))));
    text
}

/// One row: share, verdict, which row, and how often the others.
pub fn line(rerun: &Rerun, one: &Stability) -> String {
    let study = rerun.ready.study();
    let row = &study.rows[one.cell.0];
    let kernel = &study.columns[row.cells[one.cell.1].column].kernel;
    let (verdict, share) = one.commonest();
    let others: Vec<String> = Verdict::ALL
        .iter()
        .zip(one.counts)
        .filter(|(other, count)| **other != verdict && *count > 0)
        .map(|(other, count)| format!("{} {count}", other.word()))
        .collect();
    let others =
        if others.is_empty() { String::new() } else { format!("  ({})", others.join(", ")) };
    format!("{share:>5.1}%  {:12}  {} {} {kernel}{others}", verdict.word(), row.id, row.title())
}

pub fn json(rerun: &Rerun) -> String {
    let study = rerun.ready.study();
    let (most, precision) = match rerun.iterations {
        Iterations::Fixed(n) => (n, None),
        Iterations::Precision { half_width_pct, most } => (most, Some(half_width_pct)),
        ref other => (other.most(), None),
    };
    let row = |one: &Stability| {
        let row = &study.rows[one.cell.0];
        let labels: Map<String, Value> =
            row.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let counts: Map<String, Value> = Verdict::ALL
            .iter()
            .zip(one.counts)
            .filter(|(verdict, _)| **verdict != Verdict::Base)
            .map(|(verdict, count)| (verdict.word().to_string(), json!(count)))
            .collect();
        let (verdict, share) = one.commonest();
        json!({
            "id": row.id, "metric": row.metric, "stat": row.stat, "labels": labels, "unit": row.unit,
            "occasion": row.occasion, "kernel": study.columns[row.cells[one.cell.1].column].kernel,
            "verdict": verdict.word(), "share_pct": share, "counts": counts,
        })
    };
    let mut provenance = json::provenance(&rerun.ready.provenance(), &[]);
    // Seeds are many and follow from the first one.
    provenance.remove("seeds");
    provenance.insert("first_seed".into(), json!(rerun.first_seed));
    provenance.insert("n".into(), json!(most));
    json::lines(vec![
        ("schema", json!("schedtwin.stability/1")),
        ("provenance", Value::Object(provenance)),
        ("study", json!(study.name)),
        ("reruns", json!(rerun.reruns)),
        ("precision_pct", json!(precision)),
        ("rows", rerun.found.iter().map(row).collect()),
    ])
}
