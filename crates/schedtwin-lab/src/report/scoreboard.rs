// SPDX-License-Identifier: GPL-2.0-or-later
//! The scoreboard of reports: as text after a run, as Markdown with first and present results for
//! docs/reports.md, and as `schedtwin.reports/1`.

use serde_json::{Value, json};

use super::cells::{number, plain_table, wrap};
use super::json;
use super::markdown::escape;
use super::{Format, Scoreboard};
use crate::study::reports::ledger::{Entry, Ledger};
use crate::study::reports::score::{
    Claim, LEVEL_PCT, SURE_WITHOUT_NOISE_PCT, Tally, by_kind, by_year, claims, is_level,
};
use crate::study::reports::{Head, Status};
use crate::study::{Published, Study};

pub fn render(board: &Scoreboard, format: Format, width: usize) -> String {
    match format {
        Format::Text => text(board, width),
        Format::Markdown => markdown(board),
        Format::Json | Format::Csv => json(board),
    }
}

fn head(study: &Study) -> &Head {
    study.report.as_ref().expect("a scoreboard has reports only")
}

/// The reports without results, each with its reason.
fn without_results(board: &Scoreboard) -> Vec<(String, String)> {
    let reason = |study: &Study| {
        let head = head(study);
        let reason = match &head.status {
            Status::Runs if head.kept_aside => "kept aside".to_string(),
            Status::Runs => return None,
            status => format!("{}: {}", status.word(), status.why().unwrap_or_default()),
        };
        Some((study.name.clone(), reason))
    };
    let waiting = board
        .waiting
        .iter()
        .map(|(name, waits)| (name.clone(), format!("waits for: {}", waits.join(", "))));
    board.studies.iter().filter_map(reason).chain(waiting).collect()
}

/// A published difference with its noise: `-15.0 ±3.1`.
fn percent(diff: f64, half: Option<f64>) -> String {
    let round = |x: f64| match x.abs() {
        ..10.0 => format!("{x:.2}"),
        10.0..100.0 => format!("{x:.1}"),
        _ => format!("{x:.0}"),
    };
    let sign = if diff > 0.0 { "+" } else { "" };
    let half = half.map_or(String::new(), |half| format!(" ±{}", round(half)));
    format!("{sign}{}{half}", round(diff))
}

fn result(claim: &Claim, ledger: &Ledger) -> Option<(String, &'static str)> {
    let entry = claim.result(ledger)?;
    let twin = entry.diff_pct.map_or("-".to_string(), |diff| percent(diff, entry.half_pct));
    Some((twin, claim.outcome(entry.verdict)))
}

fn text(board: &Scoreboard, width: usize) -> String {
    let mut text = String::new();
    for study in &board.studies {
        let ran = board.present.entries.iter().any(|entry| entry.report == study.name);
        if !ran {
            continue;
        }
        let head = head(study);
        let kind = head.kind.word();
        let title = format!("{} ({kind}, {}): {}", study.name, head.year, study.description);
        text.push_str(&wrap(&title, width, "  "));
        let heading = ["  ", "published", "twin", "", "level"].map(str::to_string).to_vec();
        let mut rows = vec![heading];
        rows.extend(claims(study).iter().map(|claim| text_row(claim, &board.present)));
        rows.extend(levels_alone(study, &board.present));
        text.push_str(&plain_table(rows, 1, &[3]));
        text.push('\n');
    }
    for (name, reason) in without_results(board) {
        text.push_str(&wrap(&format!("{name}: {reason}"), width, "  "));
    }
    text.push('\n');
    text.push_str(&plain_table(sums(board, &[("", &board.present)]), 1, &[]));
    text.push('\n');
    text.extend(legend().iter().map(|line| wrap(line, width, "  ")));
    text
}

fn text_row(claim: &Claim, ledger: &Ledger) -> Vec<String> {
    let (twin, outcome) = result(claim, ledger).unwrap_or(("-".to_string(), "no result"));
    vec![
        format!("  {}", title(claim)),
        percent(claim.published_pct, claim.noise_pct),
        twin,
        outcome.to_string(),
        claim.level(ledger).map_or(String::new(), number),
    ]
}

/// Base values of rows in which nothing was changed.
fn levels_alone(study: &Study, ledger: &Ledger) -> Vec<Vec<String>> {
    let alone = study
        .rows
        .iter()
        .filter(|row| row.cells.iter().all(|cell| cell.role == crate::study::Role::Base));
    let line = |row: &crate::study::Row| {
        let cell = row.cells.first()?;
        let kernel = &study.columns[cell.column].kernel;
        let level = ledger.find(&study.name, &row.id, kernel)?.level?;
        let title = format!("  {}, {kernel}", row_title(row));
        Some(vec![title, String::new(), String::new(), "base".to_string(), number(level)])
    };
    alone.filter_map(line).collect()
}

fn row_title(row: &crate::study::Row) -> String {
    row.occasion.clone().unwrap_or_else(|| row.title())
}

/// The row and the changed kernel, this only where a row has several.
fn title(claim: &Claim) -> String {
    let changed = claims(claim.study);
    let of_row = changed.iter().filter(|other| other.row.id == claim.row.id).count();
    match of_row {
        1 => row_title(claim.row),
        _ => format!("{}, {}", row_title(claim.row), claim.kernel()),
    }
}

fn legend() -> Vec<String> {
    vec![
        format!(
            "published, twin: differences in % of the base, ± half of the 95 % interval. A published one is sure if it exceeds \
             its noise, without a known noise from {SURE_WITHOUT_NOISE_PCT} % on; the others are open, and met if the twin has \
             nothing beyond the noise, either."
        ),
        format!(
            "sign right: the twin's interval leaves out zero and has the published sign; within x2: besides, 0.5 to 2 times the \
             published difference. level: the twin's base value divided by the published one; met within {LEVEL_PCT} %."
        ),
    ]
}

/// The sums by kind, by year and of all, of one or two sets of results.
fn sums(board: &Scoreboard, sets: &[(&str, &Ledger)]) -> Vec<Vec<String>> {
    let mut heading = vec![String::new(), "reports".to_string(), "run".to_string()];
    for (name, _) in sets {
        let columns = ["sure", "sign", "x2", "wrong", "unclear", "open", "level"];
        heading.extend(columns.map(|column| format!("{name}{column}")));
    }
    let studies: Vec<&Study> = board.studies.iter().collect();
    let mut rows = vec![heading];
    let groups = by_kind(&studies).into_iter().chain(by_year(&studies));
    for (name, of) in groups.chain([("all".to_string(), studies.clone())]) {
        let count = Tally::of(of.iter().copied(), &Ledger::default());
        let mut row = vec![name, count.reports.to_string(), count.runnable.to_string()];
        for (_, ledger) in sets {
            let tally = Tally::of(of.iter().copied(), ledger);
            row.extend([
                tally.sure.to_string(),
                share(tally.sign, tally.sure),
                share(tally.size, tally.sure),
                tally.wrong.to_string(),
                tally.inconclusive.to_string(),
                format!("{}/{}", tally.open_met, tally.open),
                format!("{}/{}", tally.levels_met, tally.levels),
            ]);
        }
        rows.push(row);
    }
    rows
}

fn share(count: usize, of: usize) -> String {
    if of == 0 {
        "-".to_string()
    } else {
        format!("{count} ({:.0}%)", 100.0 * count as f64 / of as f64)
    }
}

fn markdown(board: &Scoreboard) -> String {
    let sets = [("first: ", &board.first), ("now: ", &board.present)];
    let mut text = markdown_table(sums(board, &sets));
    text.push('\n');
    text.extend(legend().iter().map(|line| format!("- {}\n", escape(line))));
    let heading = ["report", "difference", "published, %", "first result", "present result"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    rows.extend(board.studies.iter().flat_map(|study| markdown_rows(study, board)));
    text.push('\n');
    text.push_str(&markdown_table(rows));
    text.push_str("\nReports of words, without a number for a difference: ");
    let words = board.studies.iter().filter(|study| claims(study).is_empty());
    let words: Vec<String> = words.map(of_words).collect();
    text.push_str(&format!(
        "{}.\n",
        if words.is_empty() { "none".into() } else { words.join("; ") }
    ));
    text
}

/// A line for each difference; the reason why a report does not run stands in its first line.
fn markdown_rows(study: &Study, board: &Scoreboard) -> Vec<Vec<String>> {
    let head = head(study);
    let name = format!("{} ({}, {})", study.name, head.kind.word(), head.year);
    let row = |(at, claim): (usize, &Claim)| {
        let present = match (head.status.why(), at) {
            (Some(why), 0) => format!("{}: {why}", head.status.word()),
            (Some(_), _) => head.status.word().to_string(),
            (None, _) if head.kept_aside => "kept aside".to_string(),
            (None, _) => markdown_result(claim, &board.present),
        };
        let published = percent(claim.published_pct, claim.noise_pct);
        let first = markdown_result(claim, &board.first);
        vec![name.clone(), title(claim), published, first, present]
    };
    claims(study).iter().enumerate().map(row).collect()
}

fn of_words(study: &Study) -> String {
    let why = head(study).status.why().map_or(String::new(), |why| format!(" ({why})"));
    format!("{}, {}{why}", study.name, study.description)
}

/// `-15.0 ±3.1: within x2; level 0.95; 2026-11-28, model 3`.
fn markdown_result(claim: &Claim, ledger: &Ledger) -> String {
    let (Some((twin, outcome)), Some(entry)) = (result(claim, ledger), claim.result(ledger)) else {
        return "-".to_string();
    };
    let level = claim.level(ledger).map_or(String::new(), |level| format!("; level {level:.2}"));
    let note = if entry.note.is_empty() { String::new() } else { format!("; {}", entry.note) };
    format!("{twin}: {outcome}{level} ({}, model {}{note})", entry.date, entry.model)
}

fn markdown_table(rows: Vec<Vec<String>>) -> String {
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    let rule = "|---".repeat(rows[0].len());
    lines.insert(1, format!("{rule}|\n"));
    lines.concat()
}

fn json(board: &Scoreboard) -> String {
    let studies: Vec<&Study> = board.studies.iter().collect();
    let of_ledger = |ledger: &Ledger| -> Value {
        let groups = by_kind(&studies).into_iter().chain(by_year(&studies));
        let groups = groups.chain([("all".to_string(), studies.clone())]);
        groups.map(|(name, of)| (name, tally(&Tally::of(of, ledger)))).collect()
    };
    let without = without_results(board).into_iter();
    json::lines(vec![
        ("schema", json!("schedtwin.reports/1")),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("model_version", json!(schedtwin_engine::MODEL_VERSION.to_string())),
        ("reports", studies.iter().map(|study| report(study, board)).collect()),
        ("without_results", without.map(|(name, why)| json!({"name": name, "why": why})).collect()),
        ("first", of_ledger(&board.first)),
        ("present", of_ledger(&board.present)),
    ])
}

fn tally(of: &Tally) -> Value {
    json!({
        "reports": of.reports, "runnable": of.runnable, "refused": of.refused, "sure": of.sure,
        "sign": of.sign, "size": of.size, "wrong": of.wrong, "inconclusive": of.inconclusive,
        "open": of.open, "open_met": of.open_met, "levels": of.levels, "levels_met": of.levels_met,
    })
}

fn report(study: &Study, board: &Scoreboard) -> Value {
    let head = head(study);
    let result = |entry: Option<&Entry>| {
        entry.map(|entry| {
            json!({
                "date": entry.date, "model_version": entry.model, "seeds": entry.seeds,
                "diff_pct": entry.diff_pct, "half_pct": entry.half_pct,
                "verdict": entry.verdict.word(), "note": entry.note,
            })
        })
    };
    let of_claim = |claim: &Claim| {
        json!({
            "row": claim.row.id, "what": row_title(claim.row), "kernel": claim.kernel(),
            "against": claim.base(), "published_diff_pct": claim.published_pct,
            "published_noise_pct": claim.noise_pct, "sure": claim.is_sure(),
            "first": result(claim.result(&board.first)),
            "present": result(claim.result(&board.present)),
        })
    };
    let mut levels = Vec::new();
    for row in &study.rows {
        for cell in &row.cells {
            let kernel = &study.columns[cell.column].kernel;
            let Published::Value(value) = cell.published else { continue };
            let level = |ledger: &Ledger| ledger.find(&study.name, &row.id, kernel)?.level;
            let Some(present) = level(&board.present) else { continue };
            levels.push(json!({
                "row": row.id, "kernel": kernel, "published": value, "unit": row.unit,
                "first": level(&board.first), "present": present, "met": is_level(present),
            }));
        }
    }
    json!({
        "name": study.name, "kind": head.kind.word(), "year": head.year, "sources": head.sources,
        "description": study.description, "status": head.status.word(), "why": head.status.why(),
        "kept_aside": head.kept_aside, "unknown": head.unknown, "assumed": head.assumed,
        "differences": claims(study).iter().map(of_claim).collect::<Vec<_>>(), "levels": levels,
    })
}
