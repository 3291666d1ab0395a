// SPDX-License-Identifier: GPL-2.0-or-later
//! Known bugs of Linux's scheduler: the verdict names the symptom first, and bisection names the rule.
//!
//! `tests/bugs` has a file for each bug, NAME.toml, and the workload that shows it, NAME.json:
//!
//! - `fix`, `what`: the commit that mended it, the wrong rule and its symptom. The releases that have it are those that
//!   the declaration of its setting names: of the one that `bad` has and `good` has not
//! - `machine`, `workload` (a built-in one, or the file of another bug; else NAME.json), `duration`, `seeds`, `bounds`
//! - `good`, `bad`: two kernels that `compare` gets
//! - `first`: words in the first sentence of the verdict
//! - `[bisect]`: `good` and `bad`, which may differ in more, `by` (a property, or `metric: NAME`), the `cause` that has to be
//!   found, and `seeds` for a metric (3)
//! - `long = true`: takes more than a second or two, so it is only in the tests called `long`
//!
//! `not-shown.toml` has the bugs that cannot be shown, and why. docs/findings.md lists all of them;
//! `BLESS=1 cargo test -p schedtwin-lab --test bugs long::` writes its table anew, from the runs. Read the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::mixture::Mixture;
use schedtwin_engine::kernel_file::{KernelFile, settings};
use schedtwin_engine::result::{Bounds, Property};
use schedtwin_lab::Progress;
use schedtwin_lab::compare::{Plan, compare};
use schedtwin_lab::report;
use schedtwin_lab::search::{
    Answer, Case, MachineGiven, Question, WorkloadGiven, bisect, by_metric,
};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::twin::{Column, joint_provenance};
use schedtwin_types::Duration;
use toml::{Table, Value};

/// The end of the document, which this test writes.
const BEGIN: &str = "<!-- known bugs, as the tests see them -->\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bugs")
}

/// A bug that can be shown.
struct Bug {
    name: String,
    file: Table,
}

/// What its runs said.
struct Seen {
    line: String,
    cause: Vec<String>,
    faults: Vec<String>,
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).map(|value| value.as_str().unwrap_or_else(|| panic!("{key} is no text")))
}

fn texts<'a>(table: &'a Table, key: &str) -> Vec<&'a str> {
    let list = table.get(key).and_then(Value::as_array).into_iter().flatten();
    list.map(|value| value.as_str().expect("a text")).collect()
}

fn number(table: &Table, key: &str) -> Option<u64> {
    table.get(key).map(|value| value.as_integer().expect("a number") as u64)
}

impl Bug {
    fn text(&self, key: &str) -> &str {
        text(&self.file, key).unwrap_or_else(|| panic!("{}.toml has no {key}", self.name))
    }

    fn is_long(&self) -> bool {
        self.file.get("long").is_some_and(|long| long.as_bool() == Some(true))
    }

    fn workload(&self) -> String {
        let beside = |file: &str| folder().join(file).display().to_string();
        match text(&self.file, "workload") {
            None => beside(&format!("{}.json", self.name)),
            Some(file) if file.ends_with(".json") => beside(file),
            Some(spelled) => spelled.to_string(),
        }
    }

    fn duration(&self) -> Option<u64> {
        let duration = text(&self.file, "duration")?;
        Some(duration.parse::<Duration>().expect("a duration").ns())
    }

    fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::default();
        texts(&self.file, "bounds").iter().for_each(|bound| bounds.set(bound).unwrap());
        bounds
    }

    fn case(&self) -> Case {
        Case {
            machine: MachineGiven::Named(self.text("machine").into()),
            workload: WorkloadGiven::Named(self.workload()),
            seed: 1,
            duration: self.duration(),
        }
    }

    /// The releases that have it, in the words of the declaration of the setting in which `bad` differs from `good`.
    fn releases(&self) -> &'static str {
        let given = |which| self.text(which).split_once(':').map_or("", |(_, all)| all);
        let good: Vec<&str> = given("good").split(',').collect();
        let mut own = given("bad").split(',').filter(|setting| !good.contains(setting));
        let (path, value) = own.next().and_then(|own| own.split_once('=')).expect("a setting");
        assert_eq!(own.next(), None, "{}: one setting is the bug", self.name);
        let history = settings().iter().find(|s| s.path == path).expect("declared").history();
        let of_value = history.iter().find(|(of, _)| of.to_string() == value);
        of_value.unwrap_or_else(|| panic!("{}: no release has {path}={value}", self.name)).1
    }

    /// The first sentence of the verdict of `compare`.
    fn line(&self) -> String {
        let columns = ["good", "bad"].map(|which| {
            let kernel = self.text(which);
            let (machine, workload) = (self.text("machine"), self.workload());
            let scenario = Scenario::new(machine, kernel, &workload, self.duration())
                .unwrap_or_else(|faults| panic!("{}: {faults}", self.name));
            Column { kernel: kernel.to_string(), scenario: scenario.with_bounds(self.bounds()) }
        });
        let seeds = number(&self.file, "seeds").unwrap_or(5);
        let plan = Plan { first_seed: 1, iterations: Iterations::Fixed(seeds as usize) };
        let found = compare(&columns, &plan, joint_provenance(&columns), &Progress::new()).unwrap();
        let said = report::conclusions(&found);
        first_sentence(said.first().expect("a verdict")).to_string()
    }

    /// The settings that bisection names.
    fn cause(&self) -> Vec<String> {
        let Some(asked) = self.file.get("bisect").and_then(Value::as_table) else {
            return Vec::new();
        };
        let [good, bad] = ["good", "bad"].map(|which| {
            let name = text(asked, which).unwrap_or(self.text(which));
            KernelFile::load(name).unwrap_or_else(|faults| panic!("{}: {faults}", self.name))
        });
        let mixture = Mixture::new(&good, &bad);
        let case = self.case();
        let by = text(asked, "by").expect("by");
        let found = match by.strip_prefix("metric: ") {
            Some(metric) => {
                let selector = Selector::parse_list(metric).unwrap().remove(0);
                let seeds = number(asked, "seeds").unwrap_or(3);
                match by_metric::find(&case, &mixture, [&good, &bad], &selector, seeds) {
                    Ok(by) => by.found,
                    Err(why) => return vec![format!("{why:?}")],
                }
            }
            None => {
                let property = Some(Property::named(by).expect("a property"));
                let question = Question { property, bounds: self.bounds() };
                if question.parts(&case, &good, &bad).is_none() {
                    return vec!["the property does not part the kernels".to_string()];
                }
                bisect::find(&mixture, |kernel| {
                    matches!(question.ask(&case, kernel), Answer::Broken(_))
                })
            }
        };
        let cause = found.cause.iter().chain(&found.also_alone);
        let mut cause: Vec<String> =
            cause.map(|at| found.differing[*at].path.to_string()).collect();
        cause.sort_unstable();
        cause
    }

    fn see(&self) -> Seen {
        let (line, cause) = rayon::join(|| self.line(), || self.cause());
        let mut faults = Vec::new();
        let first = self.text("first");
        if !line.contains(first) {
            faults.push(format!("{}: the first line has no {first:?}: {line}", self.name));
        }
        let mut expected =
            self.file.get("bisect").map_or(Vec::new(), |b| texts(b.as_table().unwrap(), "cause"));
        expected.sort_unstable();
        if cause != expected {
            faults.push(format!("{}: the cause is {cause:?}, not {expected:?}", self.name));
        }
        Seen { line, cause, faults }
    }

    fn row(&self, seen: &Seen) -> String {
        let cause = match seen.cause.len() {
            0 => "(not asked)".to_string(),
            _ => seen.cause.iter().map(|at| format!("`{at}`")).collect::<Vec<_>>().join(", "),
        };
        // How many rows were looked at is of no interest here.
        let line = seen.line.split("; ").filter(|part| !part.ends_with("were looked at"));
        let cells = [
            format!("{}: {}", self.name, self.text("what")),
            self.text("fix").to_string(),
            self.releases().to_string(),
            line.collect::<Vec<_>>().join("; "),
            cause,
        ];
        format!("| {} |\n", cells.map(|cell| cell.replace('|', "/")).join(" | "))
    }
}

/// Up to the first full stop; those within numbers are followed by digits. Where only small changes are sure, the sentence on
/// them comes second.
fn first_sentence(text: &str) -> &str {
    let mut ends = text.match_indices(". ").map(|(at, _)| at);
    let first = ends.next().unwrap_or(text.len());
    match text[..first].contains("no headline changed by") {
        true => &text[..ends.next().unwrap_or(text.len())],
        false => &text[..first],
    }
}

fn bugs() -> Vec<Bug> {
    let mut bugs: Vec<Bug> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .filter(|path| !path.ends_with("not-shown.toml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            let file = fs::read_to_string(&path).unwrap();
            Bug { file: file.parse().unwrap_or_else(|why| panic!("{name}: {why}")), name }
        })
        .collect();
    bugs.sort_by(|a, b| a.name.cmp(&b.name));
    bugs
}

fn table(seen: &[(Bug, Seen)]) -> String {
    let mut text =
        "| bug | mended by | releases | first line | cause |\n|---|---|---|---|---|\n".to_string();
    seen.iter().for_each(|(bug, seen)| text.push_str(&bug.row(seen)));
    text
}

fn not_shown() -> String {
    let file = fs::read_to_string(folder().join("not-shown.toml")).unwrap();
    let bugs: BTreeMap<String, Value> = file.parse::<Table>().unwrap().into_iter().collect();
    let mut rows = "| not shown | mended by | why |\n|---|---|---|\n".to_string();
    for (name, bug) in bugs {
        let of =
            |key| bug.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("{name}: {key}"));
        rows.push_str(&format!("| {name} | {} | {} |\n", of("fix"), of("why")));
    }
    rows
}

fn seen(bugs: Vec<Bug>) -> Vec<(Bug, Seen)> {
    let seen: Vec<Seen> = bugs.par_iter().map(Bug::see).collect();
    let seen: Vec<(Bug, Seen)> = bugs.into_iter().zip(seen).collect();
    for (bug, seen) in &seen {
        println!("{:26} {}\n{:26} {:?}", bug.name, seen.line, "", seen.cause);
    }
    let faults: Vec<&String> = seen.iter().flat_map(|(_, seen)| &seen.faults).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    seen
}

/// The releases of the section of docs/findings.md on tasks beside a busy group are the declaration's.
#[test]
fn the_section_on_a_finding_has_the_releases_of_its_declaration() {
    let (_, before, _) = document();
    let bug = bugs().into_iter().find(|bug| bug.name == "reweight-placed").unwrap();
    let line = format!("- **Releases:** {} ", bug.releases());
    assert!(before.contains(&line), "docs/findings.md has not: {line}");
}

fn document() -> (PathBuf, String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let document = fs::read_to_string(&path).expect("docs/findings.md");
    let (before, table) = document.split_once(BEGIN).expect("the table's beginning");
    (path, format!("{before}{BEGIN}"), table.to_string())
}

#[test]
fn the_verdict_names_the_symptom_and_bisection_the_rule() {
    let (_, _, shown) = document();
    let quick = bugs().into_iter().filter(|bug| !bug.is_long()).collect();
    for (bug, seen) in seen(quick) {
        let row = bug.row(&seen);
        let blessed = std::env::var_os("BLESS").is_some();
        assert!(
            blessed || shown.contains(&row),
            "BLESS=1 with long:: renews the table; now:\n{row}"
        );
    }
}

mod long {
    use super::*;

    #[test]
    fn all_known_bugs() {
        let (path, before, shown) = document();
        let made = format!("\n{}\n{}", table(&seen(bugs())), not_shown());
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, format!("{before}{made}")).expect("can be written");
            return;
        }
        assert_eq!(shown, made, "run with BLESS=1 to renew the table");
    }
}
