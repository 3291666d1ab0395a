// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin.score/1`: one line per candidate and job. Of jobs that are held out there is one number together.

use schedtwin_engine::MODEL_VERSION;
use serde_json::{Value, json};

use super::json;
use crate::score::judge::Judged;
use crate::score::suite::Job;
use crate::score::{Outcome, Prepared, Scored, of_gain, thousandths};
use schedtwin_types::fnv::Fnv1a;

/// Everything for programs.
pub fn scores(prepared: &Prepared, scored: &[Scored]) -> String {
    let suite = &prepared.suite;
    let hash = Fnv1a::of(suite.source.text.bytes()).digest();
    let held_out = suite.jobs.iter().filter(|job| job.held_out).count();
    json::lines(vec![
        ("schema", json!("schedtwin.score/1")),
        (
            "provenance",
            json!({
                "version": env!("CARGO_PKG_VERSION"), "model_version": MODEL_VERSION,
                "suite": suite.name, "suite_hash": format!("{hash:016x}"),
                "baseline": suite.baseline, "first_seed": suite.first_seed, "seeds": suite.seeds,
                "cap": suite.cap, "jobs": suite.jobs.len(), "jobs_held_out": held_out,
            }),
        ),
        ("means", json!("100 is the baseline, more is better, 0 breaks a limit")),
        ("candidates", scored.iter().map(|of| candidate(prepared, of)).collect()),
    ])
}

/// The documents of candidates that were scored one by one as that of all; `None`: one is none of [`scores`].
pub fn joined_scores(documents: &[Value]) -> Option<String> {
    let mut candidates = Vec::new();
    for document in documents {
        candidates.extend(document["candidates"].as_array()?.iter().cloned());
    }
    let first = documents.first()?;
    let of = |key| Some((key, first.get(key)?.clone()));
    let mut fields = vec![of("schema")?, of("provenance")?, of("means")?];
    fields.push(("candidates", Value::Array(candidates)));
    Some(json::lines(fields))
}

fn candidate(prepared: &Prepared, of: &Scored) -> Value {
    let jobs = prepared.suite.jobs.iter().enumerate().filter(|(_, job)| !job.held_out);
    let jobs = jobs.filter(|(at, _)| !of.judged[*at].is_empty());
    let jobs: Vec<Value> = jobs.map(|(at, job)| of_job(prepared, of, at, job)).collect();
    json!({
        "kernel": of.kernel, "score": of.score, "bounds": of.bounds,
        "half_width": of.half_width(prepared), "runs": of.runs(),
        "shown": of.part(prepared, false), "held_out": of.part(prepared, true),
        "outcome": outcome(of), "jobs": jobs,
    })
}

fn outcome(of: &Scored) -> Value {
    match &of.outcome {
        Outcome::Complete => json!({"how": "complete", "text": null}),
        Outcome::Fault { job, fault, command, seed } => {
            let shown = job.is_some() || of.runs() == 0;
            let kind = if shown { fault.kind() } else { "held-out" };
            json!({"how": kind, "job": job, "text": told(of), "command": command, "seed": seed})
        }
        Outcome::CannotReach(_) => json!({"how": "bound", "text": told(of)}),
        Outcome::Beaten(_) => json!({"how": "estimate", "text": told(of)}),
    }
}

/// Why a candidate came to its end before the last run; `None`: it did not.
fn told(of: &Scored) -> Option<String> {
    match &of.outcome {
        Outcome::Complete => None,
        Outcome::Fault { job: Some(job), fault, seed, .. } => {
            let seed = seed.map_or(String::new(), |seed| format!(", seed {seed}"));
            Some(format!("{job}{seed}: {}", fault.text()))
        }
        // Without a run there is no job whose details would be told.
        Outcome::Fault { job: None, fault, .. } if of.runs() == 0 => Some(fault.text()),
        Outcome::Fault { job: None, .. } => {
            Some("a job that is held out breaks a limit".to_string())
        }
        Outcome::CannotReach(beat) => {
            Some(format!("at most {} can come of it, below {beat}", of.bounds[1]))
        }
        Outcome::Beaten(rival) => {
            Some(format!("{rival} is better, by the 99.9 % interval (an estimate)"))
        }
    }
}

fn of_job(prepared: &Prepared, of: &Scored, at: usize, job: &Job) -> Value {
    let runs = &of.judged[at];
    let mean = |value: &dyn Fn(&Judged) -> f64| {
        (!runs.is_empty()).then(|| runs.iter().map(value).sum::<f64>() / runs.len() as f64)
    };
    let measures = job.measures.iter().enumerate().map(|(number, measure)| {
        let score = mean(&|judged| judged.gains[number]).map(of_gain);
        json!({"metric": measure.selector.text(), "weight": measure.weight, "score": score})
    });
    json!({
        "name": job.name, "weight": job.weight, "runs": runs.len(), "score": of.of_job(prepared, at),
        "work_pct": mean(&|judged| 100.0 * judged.work).map(thousandths), "measures": measures.collect::<Vec<_>>(),
    })
}
