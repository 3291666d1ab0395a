// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin replay`: what recorded work would have done on other kernels.

use std::path::Path;
use std::sync::Arc;

use schedtwin_engine::recording::{
    Device, TraceRecording, read_trace, read_trace_behind, read_trace_with_moments,
};
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_lab::compare::Plan;
use schedtwin_lab::fail_if::Condition;
use schedtwin_lab::moment::moments;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::stopping::Iterations;
use schedtwin_lab::timeline::timelines;
use schedtwin_lab::twin::{Column, joint_provenance};
use schedtwin_lab::{Progress, crash, replay as lab, report};
use schedtwin_machine::Machine;
use schedtwin_trace::Detail;
use schedtwin_types::Duration;

use crate::arguments::Replay;
use crate::bar::Bar;
use crate::compare::{
    check_seeds, conditions, distinct, judge, named_kernels, print_first_differences, with_threads,
    write_page,
};
use crate::confine::confined;
use crate::failure::{Failure, warn_of};
use crate::run::{detail_of, is_name_of_a_record, writable};
use crate::{interrupt, output, parting};

pub fn replay(arguments: Replay) -> Result<(), Failure> {
    check_seeds(arguments.seed, arguments.iterations)?;
    arguments.printing.check_width()?;
    arguments.record.as_deref().map_or(Ok(()), is_name_of_a_record)?;
    for path in arguments.trace.iter().chain(&arguments.record).chain(&arguments.html) {
        writable(path)?;
    }
    let detail = arguments.trace.as_deref();
    let detail = detail.map_or(Ok(Detail::Facts), |path| detail_of(path, arguments.decisions))?;
    let Understood { columns, trace, conditions, selectors } = understand(&arguments)?;
    warn_of(columns.iter().map(|column| &column.scenario));
    confined()?;
    match &columns[..] {
        [alone] if arguments.first_difference => {
            return parting::print(alone, &trace, arguments.seed, &arguments.printing);
        }
        _ if arguments.first_difference => {
            return print_first_differences(&columns, arguments.seed, &arguments.printing);
        }
        _ => {}
    }
    if arguments.halves {
        return halves(&arguments, &trace);
    }
    let plan = Plan {
        first_seed: arguments.seed,
        iterations: Iterations::Fixed(arguments.iterations as usize),
    };
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.printing.quiet);
    let provenance = joint_provenance(&columns);
    let replayed = with_threads(arguments.threads, || {
        lab::replay(&columns, &trace, plan, provenance, &progress)
    })?;
    drop(bar);
    let mut replayed =
        replayed.map_err(|error| Failure::bad(format!("failed to replay: {error}")))?;
    if arguments.trace.is_some() || arguments.record.is_some() {
        for path in arguments.trace.iter().chain(&arguments.record) {
            interrupt::guard(path);
        }
        let options = RunOptions {
            trace: arguments.trace.clone(),
            detail,
            record: arguments.record.clone(),
            max_size: arguments.size.max(),
            ..RunOptions::default()
        };
        let written = columns[0].scenario.run(arguments.seed, options);
        let written =
            written.map_err(|error| Failure::bad(format!("failed to write the trace: {error}")))?;
        for notice in written.notices {
            if !replayed.comparison.notices.contains(&notice) {
                replayed.comparison.notices.push(notice);
            }
        }
    }
    let page = match &arguments.html {
        Some(path) => {
            let moments = moments(&columns, arguments.seed);
            let domains: Vec<_> = columns.iter().map(|column| column.scenario.domains()).collect();
            let runs = timelines(&columns, &moments, arguments.seed);
            write_page(path, report::html::replay(&replayed, &runs, &moments, &domains))
        }
        None => Ok(()),
    };
    // All rows are judged, shown or not.
    let findings = judged(&conditions, &replayed, arguments.fail_on_doubtful);
    if !selectors.is_empty() {
        report::choose_rows(&mut replayed.comparison, &selectors)?;
    }
    let printing = &arguments.printing;
    let printed = output::print(&report::replay_in(
        &replayed,
        printing.format(),
        printing.extent(),
        printing.layout(),
    ));
    let mut failed = crash::lines(&progress.crashes());
    failed.extend(findings?);
    page?;
    if failed.is_empty() { printed } else { Err(Failure::Failed(failed)) }
}

/// Replays both halves of the recording on the first kernel, and prints whether their verdicts agree.
fn halves(arguments: &Replay, whole: &TraceRecording) -> Result<(), Failure> {
    let machine = Machine::load(&arguments.machine)?;
    let recorded_on = Machine::load(arguments.recorded_on.as_ref().unwrap_or(&arguments.machine))?;
    let device = Device { machine: &recorded_on, capacities: arguments.capacities.as_ref() };
    let middle = whole.recorded.span_ns / 2;
    let path: &Path = &arguments.recording;
    let first = read_trace(path, device, &machine, Some(middle))?;
    let second = read_trace_behind(path, device, &machine, middle)?;
    let kernel = &arguments.kernels[0];
    let plan = || Plan {
        first_seed: arguments.seed,
        iterations: Iterations::Fixed(arguments.iterations as usize),
    };
    let progress = Arc::new(Progress::new());
    let mut figures = Vec::new();
    for half in [first, second] {
        let workload = Ok(half.workload.clone());
        let scenario = Scenario::with_workload(&arguments.machine, kernel, workload, None)?;
        let columns = [Column { kernel: kernel.clone(), scenario }];
        let provenance = joint_provenance(&columns);
        let replayed = with_threads(arguments.threads, || {
            lab::replay(&columns, &half, plan(), provenance, &progress)
        })?;
        let replayed =
            replayed.map_err(|error| Failure::bad(format!("failed to replay: {error}")))?;
        figures.push(replayed.fidelity.trust.figures);
    }
    let failed = crash::lines(&progress.crashes());
    if !failed.is_empty() {
        return Err(Failure::Failed(failed));
    }
    output::print_fit(&lab::halves::Halves::of(&figures[0], &figures[1]).text())
}

/// Returns the objections of the conditions. Rows that are doubtful are not judged unless asked;
/// what they would have objected to there is
/// told as a warning.
fn judged(
    conditions: &[Condition],
    replayed: &lab::Replayed,
    doubtful_too: bool,
) -> Result<Vec<String>, Diagnostics> {
    let all = judge(conditions, &replayed.comparison)?;
    if doubtful_too || all.is_empty() {
        return Ok(all);
    }
    let mut trusted = replayed.comparison.clone();
    trusted.rows.retain(|row| !row.doubtful && !row.not_judged);
    let mut found = Vec::new();
    for condition in conditions {
        // A condition all of whose rows are doubtful names none that are left.
        found.extend(condition.judge(&trusted).map_or(Vec::new(), |verdict| verdict.findings));
    }
    for finding in all.iter().filter(|finding| !found.contains(finding)) {
        eprintln!(
            "warning: does not count, for the replay is doubtful or not judged there (--fail-on-doubtful lets it): {finding}"
        );
    }
    Ok(found)
}

/// The request of the arguments, understood.
struct Understood {
    columns: Vec<Column>,
    /// The recording that they replay.
    trace: TraceRecording,
    conditions: Vec<Condition>,
    /// Which rows are shown.
    selectors: Vec<Selector>,
}

/// The arguments checked, or all that is wrong with any of them.
fn understand(arguments: &Replay) -> Result<Understood, Failure> {
    let mut faults = Diagnostics::new();
    let selectors = faults.absorb(arguments.printing.selectors()).unwrap_or_default();
    let conditions = conditions(&arguments.fail_if, arguments.iterations, &mut faults);
    let machine = faults.absorb(Machine::load(&arguments.machine));
    let recorded_on = match &arguments.recorded_on {
        Some(spec) => faults.absorb(Machine::load(spec)),
        None => machine.clone(),
    };
    let mut trace = None;
    if let (Some(machine), Some(recorded_on)) = (&machine, &recorded_on) {
        let path: &Path = &arguments.recording;
        let device = Device { machine: recorded_on, capacities: arguments.capacities.as_ref() };
        let read = match arguments.first_difference {
            true => read_trace_with_moments,
            false => read_trace,
        };
        trace = faults.absorb(read(path, device, machine, arguments.duration.map(Duration::ns)));
    }
    let mut columns: Vec<Column> = Vec::new();
    let kernels = named_kernels(&arguments.kernels, &mut faults);
    for (at, kernel) in kernels.iter().enumerate() {
        if kernels[..at].contains(kernel) {
            let source = Source::new("<command line>", kernel.clone());
            faults.push(&source, 0..kernel.len(), "this kernel is named twice", None);
            continue;
        }
        // Without a trace the kernels are checked all the same.
        let workload = match &trace {
            Some(trace) => Ok(trace.workload.clone()),
            None => Err(Diagnostics::new()),
        };
        let scenario = Scenario::with_workload(&arguments.machine, kernel, workload, None);
        let scenario = faults.absorb(scenario);
        columns.extend(scenario.map(|scenario| Column { kernel: kernel.clone(), scenario }));
    }
    distinct(faults).into_result(())?;
    if columns.len() < 2 && !conditions.is_empty() {
        return Err(Failure::bad("--fail-if compares kernels: give -k again for another one"));
    }
    let trace = trace.expect("a trace that was not read is a fault");
    Ok(Understood { columns, trace, conditions, selectors })
}
