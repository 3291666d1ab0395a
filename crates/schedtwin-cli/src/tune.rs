// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin tune`: the value of a setting at which a metric is what is wanted.

use std::io;
use std::sync::Arc;

use schedtwin_engine::{Scenario, Workload};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_lab::Progress;
use schedtwin_lab::given::{GivenKernel, GivenMachine};
use schedtwin_lab::report;
use schedtwin_lab::selector::Selector;
use schedtwin_lab::study::spec::{Assignment, Part, with_settings};
use schedtwin_lab::tune::{self as lab, Goal, Range};
use schedtwin_lab::twin::Column;
use schedtwin_types::Duration;
use schedtwin_types::printable;

use crate::arguments::{Subject, Tune};
use crate::bar::Bar;
use crate::compare::{check_seeds, distinct, no_crashes, with_threads};
use crate::confine::confined;
use crate::failure::{Failure, warn_of};
use crate::output;

pub fn tune(arguments: Tune) -> Result<(), Failure> {
    check_seeds(arguments.seed, arguments.iterations)?;
    let Understood { setting, range, metric, goal, given } = understand(&arguments)?;
    let at = |value: &str| {
        given
            .column(Some(&setting.to(value)))
            .map_err(|faults| io::Error::other(faults.to_string()))
    };
    let least = at(&range.value(0)).map(|column| column.scenario);
    warn_of(least.iter());
    confined()?;
    let progress = Arc::new(Progress::new());
    let bar = Bar::watch(&progress, arguments.quiet);
    let seeds = (arguments.seed, arguments.iterations as usize);
    let search = || lab::tune(range, &goal, at, &metric, seeds, &progress);
    let found = with_threads(arguments.threads, search)?;
    drop(bar);
    no_crashes(&progress)?;
    let tuned = found.map_err(|error| Failure::bad(format!("failed to tune: {error}")))?;
    let like = arguments.like.as_deref();
    let mut text = report::tuned(&tuned, &setting.parameter(), like, arguments.iterations);
    if let Some(best) = tuned.best {
        let with = setting.to(&tuned.points[best].value);
        let best = given.column(Some(&with))?;
        let again = best.scenario.command(arguments.seed);
        text.push_str(&format!("\nto run it: {}\n", printable::line(&again)));
    }
    let printed = output::print_fit(&text);
    match tuned.best {
        Some(_) => printed,
        None => Err(Failure::Failed(vec![format!(
            "what is wanted of {} lies outside of what the ends of the range of {} measure",
            tuned.metric,
            setting.parameter()
        )])),
    }
}

/// The setting that is searched, without a value.
struct Searched {
    part: Part,
    key: String,
}

impl Searched {
    fn to(&self, value: &str) -> Assignment {
        Assignment { part: self.part, key: self.key.clone(), value: value.to_string() }
    }

    fn parameter(&self) -> String {
        self.to("").parameter()
    }
}

struct Understood {
    setting: Searched,
    range: Range,
    metric: Selector,
    goal: Goal<Column>,
    given: Given,
}

/// The parts of a run; files are read once, as the process that runs C may open none.
struct Given {
    machine: GivenMachine,
    kernel: GivenKernel,
    workload: (String, Workload),
    duration: Option<Duration>,
}

impl Given {
    fn read(subject: &Subject, kernel: &str) -> Result<Given, Diagnostics> {
        let mut faults = Diagnostics::new();
        let machine = faults.absorb(GivenMachine::from(subject.machine.as_str()).embedded());
        let kernel = faults.absorb(GivenKernel::from(kernel).embedded());
        let workload = faults.absorb(Workload::from_path_or_name(&subject.workload));
        match (machine, kernel, workload) {
            (Some(machine), Some(kernel), Some(workload)) => {
                let workload = (subject.workload.clone(), workload);
                Ok(Given { machine, kernel, workload, duration: subject.duration })
            }
            _ => Err(faults),
        }
    }

    /// A scenario with the setting put in.
    fn column(&self, setting: Option<&Assignment>) -> Result<Column, Diagnostics> {
        let settings: Vec<Assignment> = setting.into_iter().cloned().collect();
        let [machine, kernel, workload] = [
            (self.machine.name(), Part::Machine),
            (self.kernel.name(), Part::Kernel),
            (self.workload.0.as_str(), Part::Workload),
        ]
        .map(|(name, part)| with_settings(name, part, &settings));
        // Files have no settings.
        let set = match workload == self.workload.0 {
            true => self.workload.1.clone(),
            false => Workload::from_path_or_name(&workload)?,
        };
        let scenario = Scenario::named(
            (&machine, self.machine.renamed(machine.clone()).load()?),
            (&kernel, self.kernel.renamed(kernel.clone()).load()?),
            (&workload, set),
            self.duration.map(Duration::ns),
        )?;
        Ok(Column { kernel, scenario })
    }
}

/// The arguments checked, with the least and the greatest value put in; or all that is wrong with them.
fn understand(arguments: &Tune) -> Result<Understood, Failure> {
    let mut faults = Diagnostics::new();
    let setting = faults.absorb(setting(&arguments.setting));
    let metric = faults.absorb(metric(&arguments.metric));
    let subject = &arguments.subject;
    let given = faults.absorb(Given::read(subject, &arguments.kernel));
    if let (Some((setting, range)), Some(given)) = (&setting, &given) {
        for end in [0, range.steps()] {
            let with = setting.to(&range.value(end));
            faults.absorb(given.column(Some(&with)));
        }
    }
    let goal = match (&arguments.like, arguments.to) {
        (Some(like), _) => {
            let like = Given::read(subject, like).and_then(|given| given.column(None));
            faults.absorb(like).map(Goal::Like)
        }
        (None, to) => Some(Goal::Value(to.expect("clap wants one of the two"))),
    };
    let faults = distinct(faults);
    match (setting, metric, goal, given) {
        (Some((setting, range)), Some(metric), Some(goal), Some(given)) if faults.0.is_empty() => {
            Ok(Understood { setting, range, metric, goal, given })
        }
        _ => Err(faults.into()),
    }
}

fn setting(text: &str) -> Result<(Searched, Range), Diagnostics> {
    let fault = |from: usize, message: String| {
        let help = "for example kernel.uclamp_scale_permille=300..1000".to_string();
        let mut faults = Diagnostics::new();
        faults.push(&Source::new("--setting", text), from..text.len(), message, Some(help));
        faults
    };
    let Assignment { part, key, value } =
        Assignment::parse(text).map_err(|message| fault(0, message))?;
    let from = text.find('=').map_or(0, |at| at + 1);
    let range = Range::parse(&value).map_err(|message| fault(from, message))?;
    Ok((Searched { part, key }, range))
}

fn metric(text: &str) -> Result<Selector, Diagnostics> {
    let mut selectors = Selector::parse_list(text)?;
    if selectors.len() == 1 {
        return Ok(selectors.remove(0));
    }
    let mut faults = Diagnostics::new();
    let source = Source::new("--metric", text);
    faults.push(&source, 0..text.len(), "one metric is tuned, and these are several", None);
    Err(faults)
}
