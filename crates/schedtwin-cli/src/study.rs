//! `schedtwin study`: published experiments and what the twin says of them. `schedtwin calibrate`: fits what
//! nobody published, on base values only.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use schedtwin_input::{Diagnostics, read_source};
use schedtwin_lab::Progress;
use schedtwin_lab::calibrate::{self, BaseOnly, Calibration, Effort};
use schedtwin_lab::compare::{Iterations, Plan};
use schedtwin_lab::report::{self, Format, Studies};
use schedtwin_lab::study::prepare::Registry;
use schedtwin_lab::study::run::{Calibrated, Ready};
use schedtwin_lab::study::{self as lab, Role, Study, builtin, load};

use crate::arguments::{
    Calibrate, DocumentFormat, Stability, StudyAction, StudyArguments, StudyRun,
};
use crate::bar::Bar;
use crate::compare::{check_seeds, moments, with_threads, write_page};
use crate::failure::Failure;
use crate::output;
use crate::run::writable;

pub fn study(arguments: StudyArguments) -> Result<(), Failure> {
    match arguments.action {
        StudyAction::List => output::print(&list()),
        StudyAction::Show { name } => {
            let ready = Ready::new(load(&name)?, Vec::new(), false, &Registry::built_in());
            output::print(&report::study(ready.study(), ready.setups()))
        }
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
    let most =
        if arguments.precision.is_some() { arguments.max_iterations } else { arguments.iterations };
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
    let progress = Arc::new(Progress::new());
    progress.expect_runs(ready.iter().map(|one| one.first_runs(plan)).sum());
    let bar = Bar::watch(&progress, arguments.quiet);
    let mut studies = Studies { ran: Vec::new(), waiting };
    for one in &ready {
        let ran = with_threads(arguments.threads, || one.run(plan, &progress))?;
        let name = &one.study().name;
        let failed = |error| Failure::bad(format!("failed to run the study {name}: {error}"));
        studies.ran.push(ran.map_err(failed)?);
    }
    drop(bar);
    if let Some(path) = &arguments.html {
        let of = |one: &Ready| {
            let columns = one.setups().iter().flat_map(|setup| setup.scenarios.clone());
            moments(&columns.collect::<Vec<_>>(), arguments.seed)
        };
        let all: Vec<_> = ready.iter().map(of).collect();
        write_page(path, &report::html::studies(&studies, &all))?;
    }
    output::print(&report::studies(&studies, arguments.format()))
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

/// What was fitted for a study: none, what its calibration says, or why that may not be used.
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
    let Stability { name, reruns, iterations, seed, fail_below, threads, quiet } = arguments;
    check_seeds(seed, reruns.saturating_mul(iterations))?;
    let study = load(&name)?;
    let calibrated = match calibrate::of_study(&name)? {
        Some(found) => match found.check(&study) {
            Some(stale) => return Err(Failure::bad(format!("{}: {stale}", study.name))),
            None => found.calibrated(),
        },
        None => Vec::new(),
    };
    let ready = Ready::new(study, calibrated, false, &Registry::built_in());
    if !ready.can_run() {
        return Err(Failure::bad(format!("{name} waits for: {}", ready.waits_for().join(", "))));
    }
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, quiet);
    let (reruns, n) = (reruns as usize, iterations as usize);
    let found =
        with_threads(threads, || lab::stability::stability(&ready, reruns, n, seed, &progress))?;
    drop(bar);
    let found = found.map_err(|error| Failure::bad(format!("failed to run: {error}")))?;
    let mut text = format!(
        "{}: {reruns} reruns with {n} fresh seeds each; the verdict that most of them give\n\n",
        ready.study().name
    );
    let mut unstable = Vec::new();
    for one in &found {
        let row = &ready.study().rows[one.cell.0];
        let kernel = &ready.study().columns[row.cells[one.cell.1].column].kernel;
        let (verdict, share) = one.commonest();
        let line =
            format!("{share:>5.1}%  {:12}  {} {} {kernel}", verdict.word(), row.id, row.title());
        if fail_below.is_some_and(|least| share < least) {
            unstable.push(line.trim_start().to_string());
        }
        text.push_str(&format!("{line}\n"));
    }
    let printed = output::print(&text);
    if unstable.is_empty() { printed } else { Err(Failure::Failed(unstable)) }
}

pub fn calibrate(arguments: Calibrate) -> Result<(), Failure> {
    let study = load(&arguments.name)?;
    let base = BaseOnly::of(&study)?;
    let ready = Ready::new(base.study().clone(), Vec::new(), false, &Registry::built_in());
    let waits = ready.waits_for();
    if !waits.is_empty() {
        return Err(Failure::bad(format!("{} waits for: {}", study.name, waits.join(", "))));
    }
    let path = arguments.output.clone().unwrap_or_else(|| calibrate::path_of(&arguments.name));
    let effort = Effort { seeds: arguments.iterations as usize, ..Effort::default() };
    if arguments.dry_run {
        return output::print(&dry(&study, &base, effort, &path));
    }
    // A folder of calibrations is made, but not the folder that it belongs in: that may be a typing error.
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    if let Some(folder) = path.parent().filter(missing) {
        writable(folder)?;
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::of_file("make", folder, &error))?;
    }
    writable(&path)?;
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let found = with_threads(arguments.threads, || calibrate::fit(&base, effort, &progress))?;
    drop(bar);
    let found = found.map_err(|error| Failure::bad(format!("failed to calibrate: {error}")))?;
    std::fs::write(&path, found.text())
        .map_err(|error| Failure::of_file("write", &path, &error))?;
    let mut text = String::new();
    for set in &found.settings {
        text.push_str(&format!("{}\n", set.text()));
    }
    text.push_str("\nfitted on     published      twin  deviation\n");
    for one in &found.residuals {
        text.push_str(&format!(
            "{}  {:.4}  {:.4}  {:+.2}%\n",
            one.on, one.published, one.twin, one.deviation_pct
        ));
    }
    text.push_str(&format!(
        "\n{} settings measured, {} seeds each; written to {}\n",
        found.evaluations,
        found.seeds,
        path.display()
    ));
    output::print(&text)
}

/// What would be fitted, on what, and what would stay a check.
fn dry(study: &Study, base: &BaseOnly, effort: Effort, path: &Path) -> String {
    let mut text = String::from("would fit\n");
    for fit in &study.fits {
        let [low, high] = fit.bounds;
        text.push_str(&format!("  {} in {low} .. {high}: {}\n", fit.parameter.value, fit.why));
    }
    text.push_str("on\n");
    for target in base.targets() {
        text.push_str(&format!("  {} = {}\n", target.2, base.published(target)));
    }
    text.push_str("and would leave as checks\n");
    for row in &study.rows {
        for cell in row.cells.iter().filter(|cell| cell.role == Role::Base) {
            let name = format!("{} {}", row.id, study.columns[cell.column].kernel);
            if !base.targets().iter().any(|target| target.2 == name) {
                text.push_str(&format!("  {name} {}\n", row.title()));
            }
        }
    }
    text.push_str(&format!(
        "at most {} settings, {} seeds each; would write {}\n",
        effort.measurements(study.fits.len()),
        effort.seeds,
        path.display()
    ));
    text
}

impl StudyRun {
    fn format(&self) -> Format {
        match self.format {
            DocumentFormat::Text => Format::Text,
            DocumentFormat::Markdown => Format::Markdown,
            DocumentFormat::Json => Format::Json,
        }
    }
}
