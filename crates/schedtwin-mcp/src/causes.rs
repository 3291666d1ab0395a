// SPDX-License-Identifier: GPL-2.0-or-later
//! Which setting breaks a property, and the smallest work that shows it: `bisect` and `shrink`.

use schedtwin::{KernelFile, Progress};
use schedtwin_engine::kernel_file::mixture::Mixture;
use schedtwin_engine::result::{Bounds, Breach, Property};
use schedtwin_lab::search::{
    Answer, Case, MachineGiven, Question, WorkloadGiven, bisect, rt_app_text, shrink,
};
use schedtwin_lab::verdict::words;

use crate::arguments::{Arguments, Input};
use crate::asked;

/// A case of two kernels.
struct Pair {
    case: Case,
    good: KernelFile,
    bad: KernelFile,
    question: Question,
}

/// Reads what both tools are asked.
fn pair(arguments: &Arguments) -> Result<Pair, String> {
    let load = |key: &str| {
        let given: schedtwin::GivenKernel =
            asked::given(arguments.input(key).expect("it is required"));
        let kernel = given.load().map_err(|faults| faults.to_string())?;
        match kernel.code.is_empty() {
            true => Ok(kernel),
            false => Err(format!("`{key}` has C: `schedtwin bisect` of the command does that")),
        }
    };
    let (good, bad) = (load("good")?, load("bad")?);
    let machine = match arguments.input("machine").expect("it is required") {
        Input::Named(name) => MachineGiven::Named(name),
        Input::Text(_, text) => MachineGiven::Text(text),
    };
    let workload = match arguments.input("workload").expect("it is required") {
        Input::Named(name) => WorkloadGiven::Named(name),
        Input::Text(name, text) => {
            WorkloadGiven::rt_app(&text).map_err(|why| format!("`workload` {name}: {why}"))?
        }
    };
    let duration = asked::duration(arguments)?.map(schedtwin::Duration::ns);
    let case = Case { machine, workload, seed: asked::seed(arguments), duration };
    for kernel in [&good, &bad] {
        case.scenario(kernel).map_err(|faults| faults.to_string())?;
    }
    Ok(Pair { case, good, bad, question: question(arguments)? })
}

fn question(arguments: &Arguments) -> Result<Question, String> {
    let named = |name: &str| {
        Property::named(name)
            .ok_or_else(|| format!("{name:?} is no property; there are {}", Property::names()))
    };
    let property = arguments.text("property").map(named).transpose()?;
    Ok(Question { property, bounds: bounds(arguments)? })
}

/// The bounds of properties that a call sets.
pub fn bounds(arguments: &Arguments) -> Result<Bounds, String> {
    let mut bounds = Bounds::default();
    for text in arguments.texts("bounds") {
        bounds.set(&text).map_err(|why| format!("`bounds`: {why}"))?;
    }
    Ok(bounds)
}

impl Pair {
    /// The breach of the bad kernel that the good one does not have.
    fn parted(&self) -> Result<Breach, String> {
        let found = self.question.parts(&self.case, &self.good, &self.bad);
        found.ok_or_else(|| {
            let asked =
                self.question.property.map_or("a property".to_string(), |of| of.to_string());
            match self.question.ask(&self.case, &self.bad) {
                Answer::Unknown(why) => format!("nothing is known of the bad kernel: {why}"),
                Answer::Kept => {
                    format!(
                        "the bad kernel keeps {asked} here: try other seeds, or smaller `bounds`"
                    )
                }
                Answer::Broken(breach) => {
                    format!("the good kernel breaks {} here, too", breach.property)
                }
            }
        })
    }

    /// The question narrowed to the property that was broken.
    fn same(&self, breach: &Breach) -> Question {
        Question { property: Some(breach.property), ..self.question.clone() }
    }
}

/// Counts one more run; `false`: nobody waits any more.
fn goes_on(progress: &Progress) -> bool {
    progress.expect_runs(1);
    progress.one_run(None, |_| ());
    !progress.is_cancelled()
}

/// The settings that break a property.
pub fn bisect(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    let pair = pair(arguments)?;
    let mixture = Mixture::new(&pair.good, &pair.bad);
    if mixture.differing.is_empty() {
        return Err("the kernels have the same settings: there is nothing to bisect".to_string());
    }
    let breach = pair.parted()?;
    let same = pair.same(&breach);
    let found = bisect::find(&mixture, |kernel| {
        goes_on(progress) && matches!(same.ask(&pair.case, kernel), Answer::Broken(_))
    });
    let setting = |at: &usize| {
        let of = &found.differing[*at];
        let [good, bad] = [&of.good, &of.bad].map(|value| value.as_deref().unwrap_or("absent"));
        format!("  {}: {good} (good) -> {bad} (bad)\n", of.path)
    };
    let mut text = format!(
        "the bad kernel breaks {}: {}\n\n{} settings differ; {} kernels were run. It is caused by\n",
        breach.property,
        words(&breach),
        found.differing.len(),
        found.asked,
    );
    text.extend(found.cause.iter().map(setting));
    if !found.also_alone.is_empty() {
        text.push_str("Each of these suffices alone, too:\n");
        text.extend(found.also_alone.iter().map(setting));
    }
    let heals = found.heals.len() == found.cause.len();
    text.push_str(match heals {
        true => "Set back alone, each heals the bad kernel.\n",
        false => "Set back alone, not each of them heals the bad kernel.\n",
    });
    Ok(text)
}

/// The smallest work that shows the breach.
pub fn shrink(arguments: &Arguments, progress: &Progress) -> Result<String, String> {
    let mut pair = pair(arguments)?;
    if let WorkloadGiven::Named(name) = &pair.case.workload {
        let text = std::fs::read_to_string(name).map_err(|_| {
            "shrink takes an rt-app file: its content as {\"name\": ..., \"text\": ...}, or its path".to_string()
        })?;
        pair.case.workload = WorkloadGiven::rt_app(&text)?;
    }
    let breach = pair.parted()?;
    let same = pair.same(&breach);
    let shrunk = shrink::shrink(pair.case.clone(), |case| {
        goes_on(progress) && same.parts(case, &pair.good, &pair.bad).is_some()
    });
    let breach = same.parts(&shrunk.case, &pair.good, &pair.bad).unwrap_or(breach);
    let WorkloadGiven::RtApp(root) = &shrunk.case.workload else {
        return Err("shrink takes rt-app files".to_string());
    };
    let machine = match &shrunk.case.machine {
        MachineGiven::Named(name) => format!("machine: {name}"),
        MachineGiven::Text(text) => format!("machine, as a file:\n{text}"),
    };
    let duration = shrunk.case.duration.map(|ns| schedtwin::Duration::from_ns(ns).word());
    Ok(format!(
        "the bad kernel breaks {}: {}\nshrunk in {} steps\nseed: {}\nduration: {}\n{machine}\nworkload, as a file:\n{}",
        breach.property,
        words(&breach),
        shrunk.tried,
        shrunk.case.seed,
        duration.unwrap_or("the workload's own".to_string()),
        rt_app_text(root),
    ))
}
