// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings from their file: `studies/recordings/*.toml`, or one of the user's own.
//!
//! The file says of each recording what is judged, reduced by the rules of `docs/studies.md`, "Executions".

use std::sync::Arc;

use schedtwin_input::{
    Diagnostics, Located, Source, TableReader, TomlDocument, did_you_mean, read_source,
};
use schedtwin_types::Ns;

use super::{Execution, PARTS, Stage, Task};

/// Name and text of the recordings that are compiled in.
const BUILT_IN: [(&str, &str); 2] = [
    ("juno-uclamp", include_str!("../../../studies/recordings/juno-uclamp.toml")),
    ("pixel6-uclamp", include_str!("../../../studies/recordings/pixel6-uclamp.toml")),
];

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// The recorded behaviour of a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Its name in the file.
    pub name: String,
    /// In one line.
    pub about: String,
    /// The task and the CPU whose runs bound its stage.
    pub of_stage: Option<OfStage>,
    /// The execution.
    pub execution: Execution,
}

impl Recording {
    /// How many CPUs a machine has to have.
    pub fn nr_cpus(&self) -> usize {
        let of_tasks = self.execution.tasks.iter().map(|task| task.ran.len());
        of_tasks.chain(self.of_stage.as_ref().map(|of| of.cpu.saturating_add(1))).max().unwrap_or(0)
    }
}

/// From where to where a stage goes: the runs of a task on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfStage {
    /// The task's name.
    pub task: String,
    /// The CPU.
    pub cpu: usize,
}

/// The recordings of that name, or of that file.
pub fn load(name: &str) -> Result<Vec<Recording>, Diagnostics> {
    if name.contains('/') || name.ends_with(".toml") {
        return read(&read_source(name)?);
    }
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => read(&Source::new(format!("<built in> {name}"), *text)),
        None => {
            let near = did_you_mean(name, BUILT_IN.iter().map(|(known, _)| *known));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let mut faults = Diagnostics::new();
            let source = Source::new("<study>", name);
            let message = format!("there are no recordings `{name}`");
            faults.push(&source, 0..name.len(), message, help);
            Err(faults)
        }
    }
}

fn read(source: &Arc<Source>) -> Result<Vec<Recording>, Diagnostics> {
    let document = TomlDocument::parse(source)?;
    let mut faults = Diagnostics::new();
    let f = &mut faults;
    let mut file = document.reader();
    let _: Option<String> = file.required("source", f);
    let found = file.tables("recording", f).into_iter().filter_map(|t| recording(t, f)).collect();
    file.finish(f);
    faults.sort();
    faults.into_result(found)
}

fn recording(mut reader: TableReader, f: &mut Diagnostics) -> Option<Recording> {
    let name = reader.required("name", f);
    let about = reader.required("about", f);
    let length_us: Option<u64> = reader.required("length_us", f);
    let same_work = reader.optional("same_work", f).unwrap_or(false);
    let tasks = reader.tables("tasks", f).into_iter().filter_map(|t| task(t, f)).collect();
    let stage = reader.optional_table("stage", f).and_then(|t| stage(t, f));
    let util: Option<Located<Vec<u64>>> = reader.optional("util", f);
    let clock = reader.optional_table("clock", f).and_then(|t| clock(t, f));
    let at = reader.location().clone();
    reader.finish(f);
    let stage = match (stage, util, clock) {
        (None, None, None) => None,
        (Some((of_stage, span)), Some(util), Some(clock)) => {
            if util.value.len() != PARTS {
                f.push_at(&util.at, format!("a stage has {PARTS} parts"), None);
            }
            let util = util.value.iter().map(|util| *util as f64).collect();
            Some((of_stage, Stage { span, clock, util }))
        }
        _ => {
            f.push_at(&at, "`stage`, `util` and `clock` come together", None);
            return None;
        }
    };
    let (of_stage, stage) = stage.unzip();
    let length = length_us?.saturating_mul(US);
    let execution = Execution { length, same_work, tasks, stage };
    Some(Recording { name: name?, about: about?, of_stage, execution })
}

fn task(mut reader: TableReader, f: &mut Diagnostics) -> Option<Task> {
    let name = reader.required("name", f);
    let ran_ms: Option<Vec<u64>> = reader.required("ran_ms", f);
    let seats: Option<Located<String>> = reader.required("seats", f);
    reader.finish(f);
    let (ran_ms, text) = (ran_ms?, seats?);
    let seat = |c: char| c.to_digit(10).filter(|cpu| (*cpu as usize) < ran_ms.len());
    let fine = text.value.chars().all(|c| c == '.' || seat(c).is_some());
    if !fine || text.value.len() != PARTS {
        let message = format!("{PARTS} seats: digits of CPUs that `ran_ms` has, or dots");
        f.push_at(&text.at, message, None);
    }
    let seats = text.value.chars().map(|c| seat(c).map(|cpu| cpu as u16)).collect();
    Some(Task { name: name?, ran: ran_ms.iter().map(|ms| ms.saturating_mul(MS)).collect(), seats })
}

fn stage(mut reader: TableReader, f: &mut Diagnostics) -> Option<(OfStage, [Ns; 2])> {
    let task = reader.required("task", f);
    let cpu: Option<u64> = reader.required("cpu", f);
    let from: Option<u64> = reader.required("from_us", f);
    let to: Option<Located<u64>> = reader.required("to_us", f);
    reader.finish(f);
    let (from, to) = (from?, to?);
    if to.value <= from {
        f.push_at(&to.at, "a stage ends after it has begun", None);
    }
    Some((
        OfStage { task: task?, cpu: cpu? as usize },
        [from.saturating_mul(US), to.value.saturating_mul(US)],
    ))
}

fn clock(mut reader: TableReader, f: &mut Diagnostics) -> Option<Vec<(Ns, u32)>> {
    let _: Option<String> = reader.required("domain", f);
    let mhz: Option<u32> = reader.required("mhz", f);
    let changes: Option<Located<Vec<u64>>> = reader.required("changes", f);
    reader.finish(f);
    let (mhz, changes) = (mhz?, changes?);
    let steps = changes.value.chunks(2);
    let rising = changes.value.iter().step_by(2).is_sorted();
    if steps.clone().any(|step| step.len() != 2) || !rising {
        f.push_at(&changes.at, "pairs of microseconds, rising, and MHz", None);
        return None;
    }
    let steps =
        steps.map(|step| (step[0].saturating_mul(US), u32::try_from(step[1]).unwrap_or(u32::MAX)));
    Some([(0, mhz)].into_iter().chain(steps).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_recordings_are_whole() {
        let all: Vec<Recording> =
            BUILT_IN.iter().flat_map(|(name, _)| load(name).unwrap()).collect();
        assert_eq!(all.len(), 9 + 3, "scenario 2 of juno-uclamp was not recorded under max");
        for recording in &all {
            let Execution { length, tasks, stage, .. } = &recording.execution;
            assert_eq!(tasks.is_empty(), stage.is_some(), "{}", recording.name);
            for task in tasks {
                let ran: Ns = task.ran.iter().sum();
                assert!(ran <= *length, "{} {}", recording.name, task.name);
            }
            if let Some(stage) = stage {
                assert!(stage.span[1] <= *length, "{}", recording.name);
            }
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let text = "source = \"s\"\n[[recording]]\nname = \"a\"\nabout = \"b\"\nlength_us = 1\n\
                    tasks = [{ name = \"t\", ran_ms = [1], seats = \"01\" }]\nutil = [1]\n";
        let faults = read(&Source::new("x.toml", text)).unwrap_err().to_string();
        assert!(faults.contains("100 seats") && faults.contains("come together"), "{faults}");
    }
}
