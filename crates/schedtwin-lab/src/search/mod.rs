// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds what breaks a property: [`hunt`] finds a workload, [`shrink`] makes it small, [`bisect`] finds the settings that cause it, and [`by_metric`] those that cause the change of a metric.
//!
//! All three ask one question again and again ([`Question`]): does this kernel break the property, and does that one keep it?
//! The question names the property, so that a search does not slip from one fault to another, and it asks for more than the
//! bound, so that what remains in the end is no borderline case.
//!
//! References: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002), for `ddmin`.

pub mod bisect;
pub mod by_metric;
pub mod hunt;
pub mod shrink;

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::result::{Bounds, Breach, Property};
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{Machine, Scenario, Workload};
use schedtwin_input::{Diagnostics, Source};
use schedtwin_types::Ns;

use crate::crash::caught;

/// A breach has to be so much longer than its bound, tenths, to be found: the final case shall not be a borderline one.
const MARGIN_TENTHS: u64 = 12;

/// Events of one run: a search is about many short runs.
const MOST_EVENTS: u64 = 20_000_000;

/// What a run is made of, as texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// A machine's spelling, or the text of a machine file.
    pub machine: MachineGiven,
    /// The text of an rt-app file, or the spelling of a workload.
    pub workload: WorkloadGiven,
    /// The seed.
    pub seed: u64,
    /// Simulated time; `None`: the workload's own.
    pub duration: Option<Ns>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub enum MachineGiven {
    /// As the command line names it.
    Named(String),
    /// The text of a file.
    Text(String),
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadGiven {
    /// As the command line names it.
    Named(String),
    /// The members of an rt-app file, in their order.
    RtApp(serde_json::Value),
}

impl WorkloadGiven {
    /// The members of an rt-app file that is plain JSON.
    pub fn rt_app(text: &str) -> Result<WorkloadGiven, String> {
        let root = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(WorkloadGiven::RtApp(root))
    }
}

impl Case {
    /// The case under a kernel.
    pub fn scenario(&self, kernel: &KernelFile) -> Result<Scenario, Diagnostics> {
        let (machine_name, machine) = match &self.machine {
            MachineGiven::Named(spec) => (spec.clone(), Machine::load(spec)?),
            MachineGiven::Text(text) => {
                let source = Source::new("machine.toml", text.clone());
                ("machine.toml".to_string(), Machine::from_source(&source, &[])?)
            }
        };
        let (workload_name, workload) = match &self.workload {
            WorkloadGiven::Named(spec) => (spec.clone(), Workload::from_path_or_name(spec)?),
            WorkloadGiven::RtApp(value) => {
                let source = Source::new("workload.json", rt_app_text(value));
                ("workload.json".to_string(), Workload::parse_rtapp(source)?)
            }
        };
        Scenario::named(
            (&machine_name, machine),
            (&kernel.identity.clone(), kernel.clone()),
            (&workload_name, workload),
            self.duration,
        )
    }
}

/// An rt-app file as text: a line for each task.
pub fn rt_app_text(value: &serde_json::Value) -> String {
    let Some(top) = value.as_object() else { return value.to_string() };
    let member = |(name, value): (&String, &serde_json::Value)| {
        let inner = match value.as_object() {
            Some(tasks) if name == "tasks" || name == "taskgroups" => {
                let lines = tasks.iter().map(|(name, value)| {
                    format!("  {}: {value}", serde_json::Value::from(name.as_str()))
                });
                format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
            }
            _ => value.to_string(),
        };
        format!("\"{name}\": {inner}")
    };
    format!("{{\n{}\n}}\n", top.iter().map(member).collect::<Vec<_>>().join(",\n"))
}

/// The question of a search.
#[derive(Clone, Debug)]
pub struct Question {
    /// The property; `None`: any.
    pub property: Option<Property>,
    /// The bounds.
    pub bounds: Bounds,
}

/// What a run answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The property is kept.
    Kept,
    /// It is broken so.
    Broken(Breach),
    /// The run is refused, panics, or has too many events: nothing is known.
    Unknown(String),
}

impl Question {
    /// Asks a kernel.
    pub fn ask(&self, case: &Case, kernel: &KernelFile) -> Answer {
        match self.breaches(case, kernel) {
            Ok(broken) => self.answer(broken),
            Err(unknown) => Answer::Unknown(unknown),
        }
    }

    /// Every property that a kernel breaks, whichever is asked for; or why nothing is known.
    pub fn breaches(&self, case: &Case, kernel: &KernelFile) -> Result<Vec<Breach>, String> {
        let scenario = caught(|| case.scenario(kernel))?.map_err(|faults| {
            let first = faults.0.first().map(|fault| fault.message.clone());
            first.unwrap_or_default()
        })?;
        let scenario = scenario.with_bounds(self.bounds.clone());
        let broken = caught(|| run(&scenario, case.seed))?;
        broken.ok_or_else(|| format!("more than {MOST_EVENTS} events"))
    }

    fn answer(&self, broken: Vec<Breach>) -> Answer {
        let asked = |breach: &Breach| self.property.is_none_or(|of| breach.property == of);
        let broken: Vec<Breach> = broken.into_iter().filter(asked).collect();
        match broken.first() {
            None => Answer::Kept,
            Some(_) => {
                let clear = |breach: &&Breach| breach.longest / MARGIN_TENTHS >= breach.bound / 10;
                match broken.iter().find(clear) {
                    Some(breach) => Answer::Broken(breach.clone()),
                    None => Answer::Unknown(hardly(&broken[0])),
                }
            }
        }
    }

    /// Whether `bad` breaks the property in this case and `good` keeps it: the breach.
    pub fn parts(&self, case: &Case, good: &KernelFile, bad: &KernelFile) -> Option<Breach> {
        let Answer::Broken(breach) = self.ask(case, bad) else { return None };
        let same = Question { property: Some(breach.property), bounds: self.bounds.clone() };
        (same.ask(case, good) == Answer::Kept).then_some(breach)
    }
}

/// Says of a breach that it is too near to its bound to be looked for.
fn hardly(breach: &Breach) -> String {
    let ms = |ns: u64| format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000);
    let (property, longest, bound) = (breach.property, ms(breach.longest), ms(breach.bound));
    format!(
        "{property} is broken by {longest}, not {} % above the bound of {bound}: lower it with --bound, or take another --seed",
        10 * (MARGIN_TENTHS - 10)
    )
}

/// The breaches of a run; `None`: it has too many events.
fn run(scenario: &Scenario, seed: u64) -> Option<Vec<Breach>> {
    let mut twin: Twin = scenario.twin(seed);
    while twin.step(&mut ()) {
        if twin.events() > MOST_EVENTS {
            return None;
        }
    }
    Some(twin.finish().broken)
}

/// A 1-minimal subset of `0..count` for which `holds`: none of its members can be left out. `holds` is true of all, and `None`
/// where nothing is known, which counts as no.
pub fn minimal(count: usize, mut holds: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..count).collect();
    let mut length = count.div_ceil(2).max(1);
    loop {
        let (mut at, mut shorter) = (0, false);
        while at < kept.len() && kept.len() > 1 {
            let end = (at + length).min(kept.len());
            let without: Vec<usize> = kept[..at].iter().chain(&kept[end..]).copied().collect();
            // It goes on from where it succeeded, and does not start over.
            if !without.is_empty() && holds(&without) {
                (kept, shorter) = (without, true);
            } else {
                at = end;
            }
        }
        if length == 1 && !shorter {
            return kept;
        }
        length = (length / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_one_minimal() {
        for wanted in [vec![3], vec![0, 15], vec![2, 7, 8], (0..16).collect()] {
            let mut asked = 0;
            let found = minimal(16, |set| {
                asked += 1;
                wanted.iter().all(|member| set.contains(member))
            });
            assert_eq!(found, wanted);
            assert!(asked < 80, "{asked}");
        }
        assert_eq!(minimal(1, |_| true), [0]);
    }
}
