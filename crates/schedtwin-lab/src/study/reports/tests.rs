// SPDX-License-Identifier: GPL-2.0-or-later
//! The reports as shipped, their results, and the score of small ones.

use std::collections::BTreeSet;
use std::path::Path;

use schedtwin_input::Source;
use schedtwin_types::metric::METRICS;

use super::ledger::{Entry, Ledger, by_id};
use super::score::{Tally, claims};
use super::{Kind, Status};
use crate::study::prepare::Registry;
use crate::study::run::Ready;
use crate::study::verdict::{TwinDiff, Verdict, judge};
use crate::study::{Role, Study, builtin, load, read};

const REPORT: &str = r#"
name = "X1"
description = "a report for tests"
published = "nowhere"
about = "made up"
machine = "pixel6"
workload = "ui-phone"

[report]
kind = "tick"
year = 2025
sources = ["https://example.org/"]
status = "runs"

[[column]]
kernel = "linux-6.12"
[[column]]
kernel = "linux-6.12:hz=1000"

[[row]]
id = "1"
metric = "power"
stat = "mean"
unit = "mW"
better = "lower"
cells = [
  { kernel = "linux-6.12", role = "base", value = 200 },
  { kernel = "linux-6.12:hz=1000", role = "patched", value = 210 },
]
[[row]]
id = "2"
metric = "jank"
stat = "mean"
unit = "%"
better = "lower"
cells = [
  { kernel = "linux-6.12", role = "base", text = "not published" },
  { kernel = "linux-6.12:hz=1000", role = "patched", diff_pct = -3.0, noise = 4.0 },
]
"#;

fn report(text: &str) -> Study {
    read(&Source::new("report.toml", text)).unwrap_or_else(|faults| panic!("{faults}"))
}

fn faults(from: &str, to: &str) -> String {
    let text = REPORT.replace(from, to);
    assert_ne!(text, REPORT, "{from} is in it");
    read(&Source::new("report.toml", text)).expect_err("it is wrong").to_string()
}

fn entry(row: &str, diff: Option<f64>, level: Option<f64>, verdict: Verdict) -> Entry {
    Entry {
        report: "X1".to_string(),
        row: row.to_string(),
        kernel: if diff.is_some() { "linux-6.12:hz=1000" } else { "linux-6.12" }.to_string(),
        date: "2026-11-29".to_string(),
        model: "3".to_string(),
        seeds: 5,
        diff_pct: diff,
        half_pct: diff.map(|_| 1.0),
        level,
        verdict,
        note: String::new(),
    }
}

fn shipped() -> Vec<Study> {
    builtin::reports().map(|name| load(name).unwrap_or_else(|faults| panic!("{faults}"))).collect()
}

#[test]
fn every_report_of_the_directory_is_built_in_and_can_run_or_says_why_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/reports");
    let files = std::fs::read_dir(folder).expect("studies/reports").flatten();
    let files: BTreeSet<String> = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_string()))
        .collect();
    assert_eq!(files, builtin::reports().map(str::to_string).collect());
    let registry = Registry::built_in();
    for study in shipped() {
        let name = study.name.clone();
        let head = study.report.as_ref().unwrap_or_else(|| panic!("{name} has no [report]"));
        assert!((2007..2100).contains(&head.year), "{name}");
        assert!(study.fits.is_empty() && study.variants.is_empty(), "{name}: nothing is fitted");
        let ids: Vec<&str> = study.rows.iter().map(|row| row.id.as_str()).collect();
        let different: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), different.len(), "{name}: results are found by the id of their row");
        if head.status == Status::Runs {
            let ready = Ready::new(study, Vec::new(), false, &registry);
            assert_eq!(ready.waits_for(), [""; 0], "{name}");
            for row in &ready.study().rows {
                let metric = row.twin.as_ref().map_or(&row.metric, |twin| &twin.name);
                let known = METRICS.iter().any(|declared| declared.name == metric.as_str());
                assert!(known, "{name}: there is no metric {metric}");
            }
        }
    }
}

#[test]
fn built_in_reports_are_ordered_and_named_as_their_files() {
    let names: Vec<&str> = builtin::reports().collect();
    assert!(names.is_sorted_by(|a, b| by_id(a, b).is_lt()), "{names:?}");
    let own: Vec<String> = shipped().into_iter().map(|study| study.name).collect();
    assert_eq!(own, names);
}

/// A result belongs to a cell of a report, its verdict follows from its numbers, and what has a present
/// result has a first one.
#[test]
fn results_belong_to_reports_and_are_judged_by_the_rule() {
    let studies = shipped();
    let [first, present] = builtin::results();
    for entry in first.entries.iter().chain(&present.entries) {
        let cell = format!("{:?}", entry.cell());
        let study = studies.iter().find(|study| study.name == entry.report);
        let study = study.unwrap_or_else(|| panic!("{cell}: there is no such report"));
        assert!(!study.report.as_ref().is_some_and(|head| head.kept_aside), "{cell} is kept aside");
        if entry.verdict == Verdict::Base {
            assert!(entry.level.is_some() && entry.diff_pct.is_none(), "{cell}");
            continue;
        }
        let claims = claims(study);
        let claim = claims
            .iter()
            .find(|claim| claim.row.id == entry.row && claim.kernel() == entry.kernel)
            .unwrap_or_else(|| panic!("{cell}: nothing was published of it"));
        if let (Some(diff), Some(half)) = (entry.diff_pct, entry.half_pct) {
            let twin = TwinDiff { percent: diff, ci95: Some([diff - half, diff + half]) };
            let by_rule = judge(Some(claim.published_pct), claim.noise_pct, Some(twin));
            assert_eq!(entry.verdict, by_rule, "{cell}");
        }
    }
    for entry in &present.entries {
        let (report, row, kernel) = entry.cell();
        assert!(first.find(report, row, kernel).is_some(), "{report} {row} {kernel}");
    }
}

#[test]
fn a_first_result_stays_and_a_present_one_is_replaced() {
    let mut ledger = Ledger::default();
    let (old, new) = (
        entry("1", Some(3.0), None, Verdict::Agree),
        entry("1", Some(-3.0), None, Verdict::Disagree),
    );
    assert_eq!(ledger.add_missing(std::slice::from_ref(&old)), 1);
    let other = entry("2", Some(1.0), None, Verdict::Inconclusive);
    assert_eq!(ledger.add_missing(&[new.clone(), other]), 1);
    assert_eq!(ledger.entries[0], old);
    let read = Ledger::read("x.csv", &ledger.text()).expect("its own text");
    assert_eq!(read, ledger);
    ledger.replace(std::slice::from_ref(&new));
    assert_eq!(ledger.entries, [new]);
    let bad = format!("{}X1,1,k,2026-11-29,3,5,x,1,,agree,\n", Ledger::default().text());
    let message = Ledger::read("x.csv", &bad).expect_err("a bad number").to_string();
    assert!(message.contains("result 1: `x` is no number"), "{message}");
}

#[test]
fn only_sure_differences_enter_the_shares() {
    let study = report(REPORT);
    let of_study = claims(&study);
    let sure: Vec<bool> = of_study.iter().map(|claim| claim.is_sure()).collect();
    assert_eq!(sure, [true, false], "5 % without a noise; 3 % within 4");
    let ledger = Ledger {
        entries: vec![
            entry("1", None, Some(1.2), Verdict::Base),
            entry("1", Some(3.0), None, Verdict::Agree),
            entry("2", Some(1.0), None, Verdict::Agree),
        ],
    };
    let tally = Tally::of([&study], &ledger);
    let expected = Tally {
        reports: 1,
        runnable: 1,
        sure: 1,
        sign: 1,
        size: 1,
        open: 1,
        open_met: 1,
        levels: 1,
        levels_met: 1,
        ..Tally::default()
    };
    assert_eq!(tally, expected);
    assert_eq!(of_study[0].level(&ledger), Some(1.2));
    assert_eq!(of_study[1].outcome(Verdict::Disagree), "open, not met");
    assert!(study.rows[0].cells.iter().any(|cell| cell.role == Role::Base));
}

#[test]
fn a_head_says_what_is_wrong_with_it() {
    for (from, to, message) in [
        ("kind = \"tick\"", "kind = \"tic\"", "did you mean `tick`?"),
        ("\"https://example.org/\"", "\"a mail\"", "names a public address"),
        ("status = \"runs\"", "status = \"refused\"", "a report that is `refused` says `why`"),
        ("status = \"runs\"", "status = \"soon\"", "a status is `runs`"),
        ("status = \"runs\"", "status = \"runs\"\nwhy = \"x\"", "this one runs"),
        ("status = \"runs\"", "status = \"runs\"\nseeds = 1", "an interval needs two runs"),
        ("machine = \"pixel6\"\n", "", "machine"),
    ] {
        let found = faults(from, to);
        assert!(found.contains(message), "{found}");
    }
    let refused = "status = \"refused\"\nwhy = \"a call\"";
    let text = REPORT.replace("machine = \"pixel6\"\nworkload = \"ui-phone\"\n", "");
    let study = report(&text.replace("status = \"runs\"", refused));
    let head = study.report.expect("its head");
    assert_eq!((head.kind, head.status.why()), (Kind::Tick, Some("a call")));
}
