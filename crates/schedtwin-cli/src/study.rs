//! `schedtwin study`: published experiments and what the twin says of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use schedtwin_input::Diagnostics;
use schedtwin_lab::Progress;
use schedtwin_lab::compare::{Iterations, Plan};
use schedtwin_lab::report::{self, Format, Studies};
use schedtwin_lab::study::prepare::Registry;
use schedtwin_lab::study::run::{Calibrated, Ready};
use schedtwin_lab::study::{Study, builtin, load};

use crate::arguments::{StudyAction, StudyArguments, StudyRun};
use crate::bar::Bar;
use crate::compare::{check_seeds, with_threads};
use crate::failure::Failure;
use crate::output;

pub fn study(arguments: StudyArguments) -> Result<(), Failure> {
    match arguments.action {
        StudyAction::List => output::print(&list()),
        StudyAction::Show { name } => {
            let ready = Ready::new(load(&name)?, Vec::new(), false, &Registry::built_in());
            output::print(&report::study(ready.study(), ready.setups()))
        }
        StudyAction::Run(run) => self::run(run),
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
    output::print(&report::studies(&studies, arguments.format()))
}

/// The studies that can run, and the others with what they wait for; or all that is wrong with any.
fn understand(arguments: &StudyRun) -> Result<(Vec<Ready>, Vec<(String, Vec<String>)>), Failure> {
    let names: Vec<String> = match arguments.all {
        true => builtin::names().map(str::to_string).collect(),
        false => arguments.names.clone(),
    };
    let mut faults = Diagnostics::new();
    let mut seen = BTreeSet::new();
    let studies: Vec<Study> = names
        .iter()
        .filter(|name| seen.insert(name.as_str()))
        .filter_map(|name| faults.absorb(load(name)))
        .collect();
    faults.into_result(())?;
    let registry = Registry::built_in();
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for study in studies {
        let calibrated = calibration(&study)?;
        let one = Ready::new(study, calibrated, !arguments.no_variants, &registry);
        match one.can_run() {
            true => ready.push(one),
            false => waiting.push((one.study().name.clone(), one.waits_for())),
        }
    }
    if ready.is_empty() && !arguments.all {
        let line = |(name, waits): &(String, Vec<String>)| {
            format!("{name} waits for: {}", waits.join(", "))
        };
        let lines: Vec<String> = waiting.iter().map(line).collect();
        return Err(Failure::bad(lines.join("; ")));
    }
    Ok((ready, waiting))
}

fn calibration(_study: &Study) -> Result<Vec<Calibrated>, Failure> {
    Ok(Vec::new())
}

impl StudyRun {
    fn format(&self) -> Format {
        self.format.into()
    }
}
