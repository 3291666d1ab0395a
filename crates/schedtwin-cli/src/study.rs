// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin study`: published experiments and what the twin says of them. `schedtwin calibrate`: fits what
//! nobody published, on base values only.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use schedtwin_input::{Diagnostics, read_source};
use schedtwin_lab::Progress;
use schedtwin_lab::calibrate::{
    self, BaseOnly, COARSE_SEEDS, Calibration, Effort, Parameter, Residual, Target,
};
use schedtwin_lab::compare::Plan;
use schedtwin_lab::report::{self, Format, Rerun, Studies};
use schedtwin_lab::stopping::{DEFAULT_ITERATIONS, Iterations};
use schedtwin_lab::study::prepare::Registry;
use schedtwin_lab::study::run::{Calibrated, Ready};
use schedtwin_lab::study::{self as lab, Role, Study, builtin, load};
use schedtwin_lab::twin::Column;
use schedtwin_trace::{AtomicFile, Destination};

use schedtwin_lab::moment::moments;

use crate::arguments::{
    Calibrate, DocumentFormat, Stability, StudyAction, StudyArguments, StudyRun,
};
use crate::bar::Bar;
use crate::compare::{check_seeds, no_crashes, with_threads, write_page};
use crate::confine::confined;
use crate::failure::Failure;
use crate::reports;
use crate::run::{can_be_written, writable};
use crate::{output, terminal};

pub fn study(arguments: StudyArguments) -> Result<(), Failure> {
    match arguments.action {
        StudyAction::List(list) if list.reports => reports::list(&list),
        StudyAction::List(_) => output::print_fit(&list()),
        StudyAction::Show { name, file: true, .. } => output::print(&load(&name)?.source.text),
        StudyAction::Show { name, file: false, base } => {
            let study = load(&name)?;
            let study = if base { study.base_only() } else { study };
            let ready = Ready::new(study, Vec::new(), false, &Registry::built_in());
            output::print(&report::study(
                ready.study(),
                ready.setups(),
                terminal::report_width(None),
            ))
        }
        StudyAction::Run(run) if run.reports => reports::run(&run),
        StudyAction::Run(run) => self::run(run),
        StudyAction::Stability(arguments) => stability(arguments),
    }
}

/// The built-in studies, and what they wait for.
pub fn list() -> String {
    let registry = Registry::built_in();
    let width = builtin::names().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for name in builtin::names() {
        let study = load(name).expect("the built-in studies are read by a test");
        let description = study.description.clone();
        let ready = Ready::new(study, Vec::new(), false, &registry);
        text.push_str(&format!("{name:width$}  {description}\n"));
        let waits = ready.waits_for();
        if !waits.is_empty() {
            let some = if ready.can_run() { "some rows wait" } else { "waits" };
            text.push_str(&format!("{:width$}    {some} for: {}\n", "", waits.join(", ")));
        }
    }
    text
}

fn run(arguments: StudyRun) -> Result<(), Failure> {
    let iterations = arguments.iterations.unwrap_or(DEFAULT_ITERATIONS as u64);
    let most = if arguments.precision.is_some() { arguments.max_iterations } else { iterations };
    check_seeds(arguments.seed, most)?;
    let iterations = match arguments.precision {
        Some(half_width_pct) => Iterations::Precision { half_width_pct, most: most as usize },
        None => Iterations::Fixed(most as usize),
    };
    let plan = Plan { first_seed: arguments.seed, iterations };
    let (ready, waiting) = understand(&arguments)?;
    if let Some(path) = &arguments.html {
        writable(path)?;
    }
    confined()?;
    let progress = Arc::new(Progress::new());
    progress.expect_runs(ready.iter().map(|one| one.first_runs(&plan)).sum());
    let bar = Bar::watch(&progress, arguments.quiet);
    let mut studies = Studies { ran: Vec::new(), waiting };
    for one in &ready {
        let ran = with_threads(arguments.threads, || one.run(&plan, &progress))?;
        let name = &one.study().name;
        let failed = |error| Failure::bad(format!("failed to run the study {name}: {error}"));
        studies.ran.push(ran.map_err(failed)?);
    }
    drop(bar);
    let mut page = Ok(());
    if let Some(path) = &arguments.html {
        let of = |one: &Ready| {
            // Under the names that the publication has: what runs may be spelled at length.
            let columns = one.setups().iter().flat_map(|setup| {
                setup.scenarios.iter().zip(&setup.columns).map(|(column, number)| {
                    let kernel = one.study().columns[*number].kernel.clone();
                    Column { kernel, ..column.clone() }
                })
            });
            moments(&columns.collect::<Vec<_>>(), arguments.seed)
        };
        let all: Vec<_> = ready.iter().map(of).collect();
        page = write_page(path, report::html::studies(&studies, &all));
    }
    let width = terminal::report_width(arguments.width);
    let text = match arguments.sensitivity {
        true => report::sensitivity(&studies, arguments.format(), width),
        false => report::studies_in(&studies, arguments.format(), width),
    };
    let is_text = arguments.format() == Format::Text;
    let columns = arguments.width.map(usize::from).or_else(terminal::width);
    let printed = output::print_within(&text, columns.filter(|_| is_text));
    no_crashes(&progress)?;
    page?;
    printed
}

/// A study that cannot run, and what it waits for.
type Waiting = (String, Vec<String>);

/// The studies that can run, and the others with what they wait for; or all that is wrong with any.
fn understand(arguments: &StudyRun) -> Result<(Vec<Ready>, Vec<Waiting>), Failure> {
    let names: Vec<String> = match arguments.all {
        true => builtin::names().map(str::to_string).collect(),
        false => arguments.names.clone(),
    };
    let mut faults = Diagnostics::new();
    let mut seen = BTreeSet::new();
    let studies: Vec<(&String, Study)> = names
        .iter()
        .filter(|name| seen.insert(name.as_str()))
        .filter_map(|name| Some((name, faults.absorb(load(name))?)))
        .collect();
    faults.into_result(())?;
    let registry = Registry::built_in();
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for (named, study) in studies {
        let calibrated = match calibration(arguments, named, &study)? {
            Ok(calibrated) => calibrated,
            Err(stale) if arguments.all => {
                waiting.push((study.name.clone(), vec![stale]));
                continue;
            }
            Err(stale) => return Err(Failure::bad(format!("{}: {stale}", study.name))),
        };
        let study = if arguments.base { study.base_only() } else { study };
        if arguments.base && study.rows.is_empty() {
            waiting.push((study.name, vec!["a number published of its base kernel".to_string()]));
            continue;
        }
        let one = Ready::new(study, calibrated, !arguments.no_variants, &registry);
        match one.can_run() {
            true => ready.push(one),
            false => waiting.push((one.study().name.clone(), one.waits_for())),
        }
    }
    if ready.is_empty() && !arguments.all {
        let line = |(name, waits): &Waiting| format!("{name} waits for: {}", waits.join(", "));
        let lines: Vec<String> = waiting.iter().map(line).collect();
        return Err(Failure::bad(lines.join("; ")));
    }
    Ok((ready, waiting))
}

/// Returns the fitted values of a study: none, those of its calibration, or why that may not be
/// used.
fn calibration(
    arguments: &StudyRun,
    named: &str,
    study: &Study,
) -> Result<Result<Vec<Calibrated>, String>, Failure> {
    if arguments.uncalibrated {
        return Ok(Ok(Vec::new()));
    }
    let found = match &arguments.calibration {
        Some(path) => Some(Calibration::read(&read_source(path)?)?),
        None => calibrate::of_study(named)?,
    };
    let Some(found) = found else { return Ok(Ok(Vec::new())) };
    if found.study != study.name {
        let message = format!("the calibration is of {}, not of {}", found.study, study.name);
        return Err(Failure::bad(message));
    }
    Ok(match found.check(study) {
        Some(stale) => Err(stale),
        None => Ok(found.calibrated()),
    })
}

fn stability(arguments: Stability) -> Result<(), Failure> {
    let iterations = match arguments.precision {
        Some(half_width_pct) => {
            Iterations::Precision { half_width_pct, most: arguments.max_iterations as usize }
        }
        None => Iterations::Fixed(arguments.iterations as usize),
    };
    check_seeds(arguments.seed, arguments.reruns.saturating_mul(iterations.most() as u64))?;
    let name = &arguments.name;
    let study = load(name)?;
    let calibrated = match calibrate::of_study(name)? {
        Some(found) => match found.check(&study) {
            Some(stale) => return Err(Failure::bad(format!("{}: {stale}", study.name))),
            None => found.calibrated(),
        },
        None => Vec::new(),
    };
    let study = lab::stability::predictions(&study, &arguments.rows)?;
    if study.rows.is_empty() {
        return Err(Failure::bad(format!("{name} has no prediction that can be judged")));
    }
    let ready = Ready::new(study, calibrated, false, &Registry::built_in());
    if !ready.can_run() {
        return Err(Failure::bad(format!("{name} waits for: {}", ready.waits_for().join(", "))));
    }
    confined()?;
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let (reruns, first_seed) = (arguments.reruns as usize, arguments.seed);
    let rerun = || lab::stability::stability(&ready, reruns, &iterations, first_seed, &progress);
    let found = with_threads(arguments.threads, rerun)?;
    drop(bar);
    let found = found.map_err(|error| Failure::bad(format!("failed to run: {error}")))?;
    let rerun = Rerun { ready: &ready, reruns, iterations, first_seed, found: &found };
    let below = |one: &&lab::stability::Stability| {
        arguments.fail_below.is_some_and(|least| one.commonest().1 < least)
    };
    let line = |one| report::stability_line(&rerun, one).trim_start().to_string();
    let unstable: Vec<String> = found.iter().filter(below).map(line).collect();
    let format = if arguments.json() { Format::Json } else { Format::Text };
    let printed = output::print(&report::stability(&rerun, format));
    no_crashes(&progress)?;
    if unstable.is_empty() { printed } else { Err(Failure::Failed(unstable)) }
}

pub fn calibrate(arguments: Calibrate) -> Result<(), Failure> {
    let name = arguments.name.as_deref().expect("clap asks for it");
    let study = load(name)?;
    let base = BaseOnly::of(&study)?;
    // With the parameters put in, so that one which does not exist is told before anything runs.
    let start = base.settings(&base.start()).into_iter().map(Calibrated::plain).collect();
    let ready = Ready::new(base.study().clone(), start, false, &Registry::built_in());
    let waits = ready.waits_for();
    if !waits.is_empty() {
        return Err(Failure::bad(format!("{} waits for: {}", study.name, waits.join(", "))));
    }
    let path = arguments.output.clone().unwrap_or_else(|| calibrate::path_of(name));
    let effort = Effort { seeds: arguments.iterations as usize, ..Effort::default() };
    if arguments.dry_run {
        return output::print_fit(&dry(&study, &base, effort, &path));
    }
    // A folder of calibrations is made, but not the folder that it belongs in: that may be a typing error.
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    if let Some(folder) = path.parent().filter(missing) {
        can_be_written(folder)?;
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::of_file("make", folder, &error))?;
    }
    writable(&path)?;
    confined()?;
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let found = with_threads(arguments.threads, || calibrate::fit(&base, effort, &progress))?;
    drop(bar);
    let found = found.map_err(|error| Failure::bad(format!("failed to calibrate: {error}")))?;
    // What is fitted is used for long: it must not rest on runs that are missing.
    no_crashes(&progress)?;
    // A link beside a study that somebody else wrote is not followed; one that the user names is.
    let file = match &arguments.output {
        Some(named) => AtomicFile::create(named),
        None => AtomicFile::replace(&path),
    };
    file.and_then(|file| file.commit_with(found.text().as_bytes()))
        .map_err(|error| Failure::of_file("write", &path, &error))?;
    output::print_fit(&fitted(&found, &path))
}

/// Returns the found values, how well they are determined, and how well they meet the base values.
fn fitted(found: &Calibration, path: &Path) -> String {
    let rise = |rise: Option<f64>| rise.map_or("-".to_string(), |rise| format!("{rise:+.2}"));
    let mut text =
        String::from("parameter                       cost of a tenth of its range less, more\n");
    for Parameter { set, rise_below, rise_above, .. } in &found.parameters {
        text.push_str(&format!(
            "{:30}  {:>8}  {:>8}\n",
            set.text(),
            rise(*rise_below),
            rise(*rise_above)
        ));
    }
    text.push_str("\n published   known to        twin  deviation  in noises  fitted on\n");
    for Residual { on, published, half_width, twin, deviation_pct, in_half_widths } in
        &found.residuals
    {
        text.push_str(&format!(
            "{published:>10.4}  +-{half_width:<8.4}{twin:>10.4}  {deviation_pct:>+8.1}%  {in_half_widths:>+9.2}  {on}\n"
        ));
    }
    text.push_str(&format!(
        "\ncost {:.2} on {} base values: the sum of the squared deviations in noises\n",
        found.cost,
        found.residuals.len()
    ));
    text.extend(found.warnings().iter().map(|warning| format!("warning: {warning}\n")));
    text.push_str(&format!(
        "{} settings measured, {} seeds each, {} in the coarse grid; written to {}\n",
        found.evaluations,
        found.seeds,
        found.seeds.min(COARSE_SEEDS),
        output::shown(path)
    ));
    text
}

/// Lists the parameters that would be fitted, the values they would be fitted on, and the values
/// that would stay a check.
fn dry(study: &Study, base: &BaseOnly, effort: Effort, path: &Path) -> String {
    let mut text = String::from("would fit\n");
    for fit in &study.fits {
        let [low, high] = fit.bounds;
        let span = match fit.choices.is_empty() {
            true => format!("in {low} .. {high}"),
            false => format!("one of {}", fit.choices.join(", ")),
        };
        text.push_str(&format!("  {} {span}: {}\n", fit.parameter.value, fit.why));
    }
    text.push_str("on\n");
    for target in base.targets() {
        let Target { centre, half_width, .. } = target;
        text.push_str(&format!("  {} = {centre} +-{half_width}\n", target.name()));
    }
    text.push_str("and would leave as checks\n");
    for row in &study.rows {
        for cell in row.cells.iter().filter(|cell| cell.role == Role::Base) {
            let name = format!("{} {}", row.id, study.columns[cell.column].kernel);
            if !base.cells().contains(&name) {
                text.push_str(&format!("  {name} {}\n", row.title()));
            }
        }
    }
    let [coarse, fine] = effort.settings(study.fits.len());
    text.push_str(&format!(
        "{coarse} settings with {} seeds and at most {fine} with {}; would write {}\n",
        effort.seeds.min(COARSE_SEEDS),
        effort.seeds,
        output::shown(path)
    ));
    text
}

impl StudyRun {
    pub fn format(&self) -> Format {
        match self.format {
            DocumentFormat::Text => Format::Text,
            DocumentFormat::Markdown => Format::Markdown,
            DocumentFormat::Json => Format::Json,
        }
    }
}
