// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin.study/1`: one line per published cell.

use schedtwin_engine::MODEL_VERSION;
use serde_json::{Map, Value, json};

use super::{Studies, json};
use crate::Provenance;
use crate::stats::Difference;
use crate::study::run::{Beside, Ran, summary};
use crate::study::{Noise, Published, Role};

pub fn studies(studies: &Studies) -> String {
    let mut from = Provenance {
        version: env!("CARGO_PKG_VERSION").to_string(),
        model_version: MODEL_VERSION.to_string(),
        trust: trust(studies),
        ..Provenance::default()
    };
    let mut seeds: Vec<u64> = Vec::new();
    for ran in &studies.ran {
        for hash in &ran.provenance.hashes {
            if !from.hashes.contains(hash) {
                from.hashes.push(hash.clone());
            }
        }
        if ran.seeds.len() > seeds.len() {
            seeds = ran.seeds.clone();
        }
    }
    let mut provenance = json::provenance(&from, &seeds);
    // Every study has a machine and a workload of its own.
    provenance.retain(|key, _| !["machine", "workload", "duration_s"].contains(&key.as_str()));
    provenance.insert("n".into(), json!(seeds.len()));
    let cells = studies.ran.iter().flat_map(|ran| &ran.cells);
    let summary: Map<String, Value> = summary(cells)
        .into_iter()
        .map(|(verdict, count)| (verdict.word().to_string(), json!(count)))
        .collect();
    let waiting = |(name, waits): &(String, Vec<String>)| json!({"name": name, "waits_for": waits});
    // The rows are the long lists: one line each, as elsewhere.
    let ran: Vec<String> = studies.ran.iter().map(study).collect();
    let head = json::lines(vec![
        ("schema", json!("schedtwin.study/1")),
        ("provenance", Value::Object(provenance)),
    ]);
    let tail = json::lines(vec![
        ("waiting", studies.waiting.iter().map(waiting).collect()),
        ("summary", Value::Object(summary)),
    ]);
    let head = head.trim_end().strip_suffix('}').expect("an object");
    let tail = tail.strip_prefix('{').expect("an object");
    format!("{head},\n \"studies\":[{}],\n {tail}", ran.join(","))
}

fn study(ran: &Ran) -> String {
    let fitted = ran.calibrated.iter().map(|one| {
        let number: Option<f64> = one.set.value.parse().ok().filter(|x: &f64| x.is_finite());
        let value = number.map_or(json!(one.set.value), |number| json!(number));
        json!({"parameter": one.set.parameter(), "value": value, "fitted_on": one.fitted_on, "warnings": one.warnings})
    });
    let text = json::lines(vec![
        ("name", json!(ran.study.name)),
        ("machine", json!(ran.study.machine)),
        ("workload", json!(ran.study.workload)),
        ("seeds", json!(ran.seeds)),
        ("variants", ran.study.variants.iter().map(|variant| json!(variant.name)).collect()),
        ("waits_for", json!(ran.waits_for)),
        ("notices", json!(ran.notices)),
        ("crashes", ran.crashes.iter().map(json::crash).collect()),
        ("calibrated", fitted.collect()),
        ("rows", ran.cells.iter().map(|cell| row(ran, cell)).collect()),
        ("executions", super::execution::json(ran)),
    ]);
    text.trim_end().to_string()
}

fn row(ran: &Ran, beside: &Beside) -> Value {
    let row = &ran.study.rows[beside.row];
    let cell = &row.cells[beside.cell];
    let labels: Map<String, Value> =
        row.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let role = match cell.role {
        Role::Patched => "patched",
        Role::Base if beside.fitted => "base",
        Role::Base => "check",
    };
    let text = match &cell.published {
        Published::Text(text) => Some(text),
        _ => None,
    };
    let noise = beside.noise.as_ref().map(
        |Noise { half_width, assumed }| json!({"value": half_width, "assumed": assumed.is_some()}),
    );
    let in_variants = |of: fn(&Difference) -> Value| -> Vec<Value> {
        beside.in_variants.iter().map(|d| d.as_ref().map_or(Value::Null, of)).collect()
    };
    let against = row.base_of(&ran.study, cell).map(|base| &ran.study.columns[base.column].kernel);
    json!({
        "id": row.id, "metric": row.metric, "stat": row.stat, "labels": labels, "unit": row.unit,
        "occasion": row.occasion, "kernel": ran.study.columns[cell.column].kernel, "against": against,
        "role": role, "published": beside.published, "published_text": text, "published_noise": noise,
        "twin": beside.twin.map(|e| e.mean), "twin_ci95": beside.twin.and_then(|e| e.ci95),
        "published_diff_pct": beside.published_diff_pct, "published_diff_noise_pct": beside.noise_pct,
        "twin_diff_pct": beside.difference.and_then(|d| d.diff_pct),
        "twin_diff_ci95": beside.difference.and_then(|d| d.ci95_pct),
        "significant": beside.difference.map(|d| d.significant), "robust": beside.robust,
        "robust_known_in": beside.known_in_variants,
        "diff_pct_in_variants": in_variants(|d| json!(d.diff_pct)),
        "diff_ci95_in_variants": in_variants(|d| json!(d.ci95_pct)),
        "significant_in_variants": in_variants(|d| json!(d.significant)), "verdict": beside.verdict.word(),
        "why_not": beside.why_not,
    })
}

fn trust(studies: &Studies) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(studies.ran.iter().filter_map(super::study::fitted_text));
    for ran in &studies.ran {
        if !lines.contains(&ran.provenance.trust) {
            lines.push(ran.provenance.trust.clone());
        }
    }
    lines.join("; ")
}
