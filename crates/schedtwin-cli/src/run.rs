// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin run`: one run, printed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use schedtwin_engine::result::SCX_ENDED;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_lab::moment::moments;
use schedtwin_lab::report::{self, RunReport};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::timeline::timelines;
use schedtwin_lab::twin::{self, Column};
use schedtwin_lab::{Progress, many_parts, value};
use schedtwin_trace::{AtomicFile, Detail, Format};
use schedtwin_types::Duration;

use crate::arguments::Run;
use crate::bar::Bar;
use crate::compare::{check_seeds, no_crashes, write_page};
use crate::confine::{confined, writes};
use crate::failure::{Failure, warn_of};
use crate::{interrupt, output};

pub fn run(arguments: Run) -> Result<(), Failure> {
    let Run {
        subject,
        kernel,
        seed,
        value,
        iterations,
        trace,
        decisions,
        record,
        size,
        html,
        interruptions,
        verify,
        bounds,
        printing,
    } = arguments;
    printing.check_width()?;
    let bounds = crate::search::bounds(&bounds)?;
    record.as_deref().map_or(Ok(()), is_name_of_a_record)?;
    let detail = trace.as_deref().map_or(Ok(Detail::Facts), |path| detail_of(path, decisions))?;
    if trace.is_some() && trace == record {
        return Err(Failure::bad("--trace and --record name the same file"));
    }
    if html.is_some() && (html == trace || html == record) {
        return Err(Failure::bad("--html names the same file as --trace or --record"));
    }
    let mut faults = Diagnostics::new();
    let selectors = faults.absorb(printing.selectors()).unwrap_or_default();
    let scenario = Scenario::new(
        &subject.machine,
        &kernel,
        &subject.workload,
        subject.duration.map(Duration::ns),
    );
    let scenario = faults.absorb(scenario);
    let value = value.and_then(|text| faults.absorb(one_selector(&text)));
    faults.into_result(())?;
    let scenario = scenario.expect("a scenario that is none is a fault").with_bounds(bounds);
    warn_of(std::iter::once(&scenario));
    for path in trace.iter().chain(&record).chain(&html) {
        writable(path)?;
        interrupt::guard(path);
    }
    confined()?;
    if let Some(selector) = value {
        check_seeds(seed, iterations)?;
        let progress = Arc::new(Progress::new());
        progress.expect_runs(iterations);
        let bar = Bar::watch(&progress, printing.quiet);
        let column = Column { kernel, scenario };
        let known = value::of_runs(&column, seed..=seed + (iterations - 1), &selector, &progress);
        drop(bar);
        let known = known.map_err(|error| Failure::bad(format!("failed to run: {error}")))?;
        no_crashes(&progress)?;
        return output::print(&known?.line());
    }
    if interruptions {
        let found = scenario.interruptions(seed);
        let tables: Vec<String> = found.iter().map(|kind| kind.table()).collect();
        return output::print_fit(&tables.join("\n"));
    }
    let progress = Arc::new(Progress::new());
    progress.expect_runs(1);
    let bar = Bar::watch(&progress, printing.quiet);
    let result = progress.one_run(scenario.duration(), |simulated| {
        let (max_size, written) = (size.max(), Some(progress.written()));
        let progress = Some(simulated);
        let options = RunOptions { trace, detail, record, max_size, progress, written, verify };
        scenario.run(seed, options)
    });
    drop(bar);
    let mut result = result.map_err(|error| Failure::bad(format!("failed to run: {error}")))?;
    for notice in scenario.notices().into_iter().rev() {
        if !result.notices.contains(&notice) {
            result.notices.insert(0, notice);
        }
    }
    many_parts::summarise(&mut result.metrics);
    let provenance = twin::provenance(&scenario);
    let page = match &html {
        Some(path) => {
            let column = Column { kernel: kernel.clone(), scenario };
            let moments = moments(std::slice::from_ref(&column), seed);
            let report =
                RunReport { provenance: &provenance, kernel: &kernel, seed, result: &result };
            let runs = timelines(std::slice::from_ref(&column), &moments, seed);
            let domains = [column.scenario.domains()];
            write_page(path, report::html::run(&report, &runs, &moments, &domains))
        }
        None => Ok(()),
    };
    if !selectors.is_empty() {
        report::choose_metrics(&mut result, &selectors)?;
    }
    let report = RunReport { provenance: &provenance, kernel: &kernel, seed, result: &result };
    let printed = output::print(&report::run_in(
        &report,
        printing.format(),
        printing.extent(),
        printing.width(),
    ));
    // What was measured has been printed, whatever became of the file.
    page?;
    let failed = failed_schedulers(&result.notices);
    if failed.is_empty() { printed } else { Err(Failure::Failed(failed)) }
}

/// The notices that tell that a scheduler of sched_ext failed.
pub fn failed_schedulers(notices: &[String]) -> Vec<String> {
    notices.iter().filter(|notice| notice.starts_with(SCX_ENDED)).cloned().collect()
}

/// The metric of a `--value`.
pub fn one_selector(text: &str) -> Result<Selector, Diagnostics> {
    let mut list = Selector::parse_list(text)?;
    match list.len() {
        1 => Ok(list.remove(0)),
        _ => {
            let mut faults = Diagnostics::new();
            let help = "give one: power.mean".to_string();
            let source = Source::new("--value", text);
            faults.push(&source, 0..text.len(), "these are several metrics", Some(help));
            Err(faults)
        }
    }
}

/// Returns what a trace of that name is to hold. Refuses other names, and decisions where the format has no place for
/// them.
pub fn detail_of(path: &Path, decisions: bool) -> Result<Detail, Failure> {
    let fails = |why: &str| Failure::bad(format!("failed to write {}: {why}", output::shown(path)));
    match (Format::from_path(path), decisions) {
        (None, _) => Err(fails(&format!("the name of a trace ends in {}", Format::ENDINGS))),
        (Some(Format::FtraceText), true) => {
            Err(fails("text has no place for --decisions; a Perfetto trace has one: .pftrace"))
        }
        (Some(_), true) => Ok(Detail::Decisions),
        (Some(_), false) => Ok(Detail::Facts),
    }
}

/// Refuses a record under the name of a trace.
pub fn is_name_of_a_record(path: &Path) -> Result<(), Failure> {
    match Format::from_path(path) {
        Some(Format::Perfetto | Format::FtraceText) => Err(Failure::bad(format!(
            "failed to write {}: --record writes records (.rec, .record, .jsonl); --trace writes that format",
            output::shown(path)
        ))),
        _ => Ok(()),
    }
}

/// Says before the run what would fail after it.
pub fn writable(path: &Path) -> Result<(), Failure> {
    if !writes(path) {
        return Err(Failure::bad(format!(
            "failed to write {}: two outputs name this file",
            output::shown(path)
        )));
    }
    can_be_written(path)
}

/// As [`writable`], of what is no output itself.
pub fn can_be_written(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Failure::bad(format!(
            "failed to write {}: it is a directory",
            output::shown(path)
        )));
    }
    if !directory.is_dir() {
        let message = format!(
            "failed to write {}: there is no directory {}",
            output::shown(path),
            output::shown(directory)
        );
        return Err(Failure::bad(message));
    }
    // Pipes and devices are not opened twice: their reader would take the first end for the end.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let tried = AtomicFile::create(path).map(drop);
    tried.map_err(|error| Failure::of_file("write", path, &error))
}
