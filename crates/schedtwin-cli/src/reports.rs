// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin study run --reports`: published changes on one scoreboard, and the files of results that
//! docs/reports.md is made of.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use schedtwin_input::{Diagnostics, read_source};
use schedtwin_lab::Progress;
use schedtwin_lab::compare::Plan;
use schedtwin_lab::report::{self, Format, Scoreboard};
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::study::prepare::Registry;
use schedtwin_lab::study::reports::ledger::{Entry, Ledger, by_id};
use schedtwin_lab::study::reports::{DEFAULT_SEEDS, Kind, Status, score};
use schedtwin_lab::study::run::Ready;
use schedtwin_lab::study::{Study, builtin, load};
use schedtwin_trace::{AtomicFile, Destination};

use crate::arguments::{StudyList, StudyRun};
use crate::bar::Bar;
use crate::compare::{check_seeds, no_crashes, with_threads};
use crate::confine::confined;
use crate::failure::Failure;
use crate::run::writable;
use crate::{output, terminal};

/// The files of results in the directory of `--record`.
const FILES: [&str; 2] = ["first-results.csv", "present-results.csv"];

pub fn list(arguments: &StudyList) -> Result<(), Failure> {
    let studies = select(&[], arguments.kind)?;
    if arguments.results {
        let [first, present] = builtin::results();
        let board = Scoreboard { studies, first, present, waiting: Vec::new() };
        return output::print(&report::scoreboard(
            &board,
            Format::Markdown,
            terminal::report_width(None),
        ));
    }
    let width = studies.iter().map(|study| study.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for study in &studies {
        let head = study.report.as_ref().expect("`select` gives reports only");
        let kept = if head.kept_aside { ", kept aside" } else { "" };
        let status = head.status.word();
        let (name, kind) = (&study.name, head.kind.word());
        text.push_str(&format!(
            "{name:width$}  {kind:16}  {}  {status}{kept}: {}\n",
            head.year, study.description
        ));
    }
    output::print_fit(&text)
}

/// The named reports, else all that are built in; of one kind if it is given.
fn select(names: &[String], kind: Option<Kind>) -> Result<Vec<Study>, Failure> {
    let mut names: Vec<String> = match names {
        [] => builtin::reports().map(str::to_string).collect(),
        names => names.to_vec(),
    };
    names.sort_by(|a, b| by_id(a, b));
    names.dedup();
    let mut faults = Diagnostics::new();
    let studies: Vec<Study> = names.iter().filter_map(|name| faults.absorb(load(name))).collect();
    faults.into_result(())?;
    let is_none = |study: &&Study| study.report.is_none();
    if let Some(study) = studies.iter().find(is_none) {
        let message = format!(
            "{} is no report: its file has no table [report]; run it without --reports",
            study.name
        );
        return Err(Failure::bad(message));
    }
    let is_of = |study: &Study| {
        let head = study.report.as_ref();
        kind.is_none_or(|kind| head.is_some_and(|head| head.kind == kind))
    };
    Ok(studies.into_iter().filter(is_of).collect())
}

pub fn run(arguments: &StudyRun) -> Result<(), Failure> {
    let studies = select(&arguments.names, arguments.kind)?;
    let runs = |study: &&Study| {
        let head = study.report.as_ref();
        head.is_some_and(|head| {
            head.status == Status::Runs && (arguments.kept_aside || !head.kept_aside)
        })
    };
    let registry = Registry::built_in();
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for study in studies.iter().filter(runs) {
        let one = Ready::new(study.clone(), Vec::new(), false, &registry);
        match one.waits_for() {
            waits if waits.is_empty() => ready.push(one),
            waits => waiting.push((study.name.clone(), waits)),
        }
    }
    let files = arguments.record.as_deref().map(recorded).transpose()?;
    confined()?;
    let present = Ledger { entries: measure(arguments, &ready)? };
    if let Some(files) = files {
        record(files, &present)?;
    }
    let board = Scoreboard { studies, first: builtin::results()[0].clone(), present, waiting };
    output::print(&report::scoreboard(&board, arguments.format(), terminal::report_width(None)))
}

/// The precision to which a sure difference shall be known: half its interval, in percent of the published difference.
const PART_PCT: f64 = 25.0;

/// Until then a report takes more seeds than its file says, at most so many times as many.
const MOST_TIMES: usize = 4;

/// Runs the reports, and returns their results.
fn measure(arguments: &StudyRun, ready: &[Ready]) -> Result<Vec<Entry>, Failure> {
    let plan = |one: &Ready| {
        let own = one.study().report.as_ref().map_or(DEFAULT_SEEDS, |head| head.seeds) as usize;
        let iterations = match arguments.iterations {
            Some(seeds) => Iterations::Fixed(seeds as usize),
            None => {
                Iterations::Published { part_pct: PART_PCT, first: own, most: own * MOST_TIMES }
            }
        };
        Plan { first_seed: arguments.seed, iterations }
    };
    check_seeds(
        arguments.seed,
        ready.iter().map(|one| plan(one).first_runs(1)).max().unwrap_or(0),
    )?;
    let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let today = &today[.."2026-11-28".len()];
    let progress = Arc::new(Progress::new());
    progress.expect_runs(ready.iter().map(|one| one.first_runs(&plan(one))).sum());
    let bar = Bar::watch(&progress, arguments.quiet);
    let mut entries = Vec::new();
    for one in ready {
        let ran = with_threads(arguments.threads, || one.run(&plan(one), &progress))?;
        let failed =
            |error| Failure::bad(format!("failed to run the report {}: {error}", one.study().name));
        entries.extend(score::entries(&ran.map_err(failed)?, today));
    }
    drop(bar);
    no_crashes(&progress)?;
    Ok(entries)
}

/// Reads the files of results in a directory; one that is not there is empty.
fn recorded(folder: &Path) -> Result<[(PathBuf, Ledger); 2], Failure> {
    let [first, present] = FILES.map(|name| {
        let path = folder.join(name);
        writable(&path)?;
        let ledger = match path.exists() {
            true => {
                let source = read_source(&path)?;
                Ledger::read(&source.name, &source.text)?
            }
            false => Ledger::default(),
        };
        Ok::<_, Failure>((path, ledger))
    });
    Ok([first?, present?])
}

/// Writes the results: all of them as the present ones, and as first ones those of cells without any.
fn record(files: [(PathBuf, Ledger); 2], results: &Ledger) -> Result<(), Failure> {
    let [(first_path, mut first), (present_path, mut present)] = files;
    let added = first.add_missing(&results.entries);
    present.replace(&results.entries);
    for (path, ledger) in [(&first_path, &first), (&present_path, &present)] {
        AtomicFile::create(path)
            .and_then(|file| file.commit_with(ledger.text().as_bytes()))
            .map_err(|error| Failure::of_file("write", path, &error))?;
    }
    let (first, present) = (output::shown(&first_path), output::shown(&present_path));
    output::tell(&format!("{added} first results added to {first}; present ones are in {present}"));
    Ok(())
}
