// SPDX-License-Identifier: GPL-2.0-or-later
//! Puts settings of threads over an rt-app file: as if its tasks had been written with them.
//!
//! A setting holds for the task and for all of its phases, also where a phase sets the same parameter itself.

use super::model::{Attributes, CpuList, Model, PolicyName, Task};
use crate::thread_settings::unmatched;
use crate::{ThreadChanges, ThreadSetting};
use schedtwin_types::{Ns, Policy};

const NS_PER_US: Ns = 1000;

impl Model {
    /// The file with the settings, or what is wrong with them.
    pub(super) fn overlaid(&self, settings: &[ThreadSetting]) -> Result<Model, Vec<String>> {
        let mut faults = unmatched(settings, self.tasks.iter().map(|task| task.name.as_str()));
        let mut model = self.clone();
        for task in &mut model.tasks {
            let changes = ThreadChanges::of(&task.name, settings);
            if changes.slice.is_some_and(|slice| slice % NS_PER_US != 0) {
                faults
                    .push(format!("the slice of {} is no whole number of microseconds", task.name));
            }
            overlay(task, &changes);
        }
        for setting in settings {
            model.identity += &format!("\n{setting}");
        }
        if faults.is_empty() { Ok(model) } else { Err(faults) }
    }
}

fn overlay(task: &mut Task, changes: &ThreadChanges) {
    if let Some(mask) = changes.cpus {
        let numbers = mask.iter().map(|cpu| (cpu.0, 0..0)).collect();
        task.cpus = Some(CpuList { mask, numbers });
        task.phases.iter_mut().for_each(|phase| phase.cpus = None);
    }
    if changes.dl.is_some() {
        task.deadline_at.get_or_insert(0..0);
    } else if changes.policy.is_some() {
        task.deadline_at = None;
    }
    let of_phases = task.phases.iter_mut().filter_map(|phase| phase.attributes.as_mut());
    for attributes in of_phases.chain([&mut task.attributes]) {
        change(attributes, changes);
    }
}

fn change(attributes: &mut Attributes, changes: &ThreadChanges) {
    let was_rt = matches!(attributes.policy, PolicyName::Fifo | PolicyName::Rr);
    if let Some((policy, priority)) = changes.policy {
        attributes.policy = match policy {
            Policy::Normal => PolicyName::Other,
            Policy::Batch => PolicyName::Batch,
            Policy::Idle => PolicyName::Idle,
            Policy::Fifo => PolicyName::Fifo,
            Policy::Rr => PolicyName::Rr,
            Policy::Deadline => PolicyName::Deadline,
            Policy::Ext => PolicyName::Ext,
        };
        match policy {
            Policy::Fifo | Policy::Rr => attributes.priority = Some(priority as i8),
            // A real-time priority is no nice value.
            _ if was_rt => attributes.priority = Some(0),
            _ => {}
        }
    }
    if let Some(dl) = changes.dl {
        (attributes.policy, attributes.dl) = (PolicyName::Deadline, dl);
    }
    let fair = matches!(attributes.policy, PolicyName::Other | PolicyName::Batch | PolicyName::Ext);
    if let (Some(nice), true) = (changes.nice, fair) {
        attributes.priority = Some(nice);
    }
    if let Some(slice) = changes.slice {
        attributes.slice_us = Some((slice / NS_PER_US) as u32);
    }
    let [min, max] = changes.clamps;
    attributes.clamps = [min.or(attributes.clamps[0]), max.or(attributes.clamps[1])];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtapp::reader;
    use schedtwin_input::Source;

    const FILE: &str = r#"{ "tasks": {
        "ui": { "priority": -5, "cpus": [0], "phases": {
            "a": { "run": 10, "cpus": [1] },
            "b": { "run": 10, "policy": "SCHED_FIFO", "priority": 3 } } },
        "bg": { "run": 10 } } }"#;

    fn overlaid(settings: &[&str]) -> Result<Model, Vec<String>> {
        let read = |text: &&str| ThreadSetting::parse(text).unwrap().unwrap();
        let settings: Vec<ThreadSetting> = settings.iter().map(read).collect();
        reader::read(Source::new("a.json", FILE)).unwrap().overlaid(&settings)
    }

    #[test]
    fn settings_hold_for_tasks_and_their_phases() {
        let model = overlaid(&["nice ui=7", "cpus ui=2", "slice ui=100us"]).unwrap();
        let [ui, bg] = &model.tasks[..] else { panic!() };
        assert_eq!((ui.attributes.priority, ui.attributes.slice_us), (Some(7), Some(100)));
        assert_eq!(ui.cpus.as_ref().unwrap().numbers[0].0, 2);
        assert!(ui.phases.iter().all(|phase| phase.cpus.is_none()));
        let fifo = ui.phases[1].attributes.unwrap();
        assert_eq!((fifo.policy, fifo.priority), (PolicyName::Fifo, Some(3)), "no nice value");
        assert_eq!((bg.attributes.priority, bg.attributes.slice_us), (Some(0), Some(0)));
        assert!(model.identity.ends_with("\nnice ui=7\ncpus ui=2\nslice ui=100us"));
        let other = overlaid(&["policy ui=other"]).unwrap();
        assert_eq!(other.tasks[0].phases[1].attributes.unwrap().priority, Some(0));
        let dl = overlaid(&["dl bg=1ms/10ms"]).unwrap();
        assert!(dl.tasks[1].deadline_at.is_some());
        assert_eq!(dl.tasks[1].attributes.policy, PolicyName::Deadline);
    }

    #[test]
    fn unknown_names_and_split_microseconds_are_told() {
        let faults = overlaid(&["nice iu=7", "slice bg=1500ns"]).unwrap_err();
        assert_eq!(faults[0], "nice iu=7: no thread is called that; there are bg, ui");
        assert!(faults[1].contains("microseconds"), "{faults:?}");
    }
}
