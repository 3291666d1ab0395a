// SPDX-License-Identifier: GPL-2.0-or-later
//! The names and priorities of tasks, as the sinks and readers look them up.

use crate::TaskInfo;
use schedtwin_types::{CpuId, TaskId};

/// Highest task number that readers believe: `PID_MAX_LIMIT` of `include/linux/threads.h`. A
/// damaged file must not make them allocate more.
pub(crate) const TASKS_MAX: u32 = 4 * 1024 * 1024;

/// `DEFAULT_PRIO`: of a task that nobody announced, and of the idle task as the kernel prints it.
pub(crate) const DEFAULT_PRIO: i32 = 120;

/// Tasks by number.
#[derive(Default)]
pub(crate) struct Tasks {
    /// By task number: 1 + its place in `tasks`, 0 for none. Small, as numbers may be sparse.
    places: Vec<u32>,
    tasks: Vec<TaskInfo>,
}

impl Tasks {
    /// Announces a task, or gives it another name and priority.
    pub(crate) fn insert(&mut self, info: &TaskInfo) {
        assert!(info.id.0 < TASKS_MAX, "task number {} is beyond PID_MAX_LIMIT", info.id);
        if self.places.len() <= info.id.index() {
            self.places.resize(info.id.index() + 1, 0);
        }
        match self.places[info.id.index()] {
            0 => {
                self.tasks.push(info.clone());
                self.places[info.id.index()] = self.tasks.len() as u32;
            }
            place => self.tasks[place as usize - 1] = info.clone(),
        }
    }

    /// Changes the priority of an announced task.
    pub(crate) fn set_prio(&mut self, id: TaskId, prio: i32) {
        if let Some(place @ 1..) = self.places.get(id.index()) {
            self.tasks[*place as usize - 1].prio = prio;
        }
    }

    /// The task, if it was announced.
    pub(crate) fn get(&self, id: TaskId) -> Option<&TaskInfo> {
        self.tasks.get((*self.places.get(id.index())? as usize).checked_sub(1)?)
    }

    /// The tasks in the order in which they were announced.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskInfo> {
        self.tasks.iter()
    }

    /// The kernel's priority of a task.
    pub(crate) fn prio(&self, id: TaskId) -> i32 {
        self.get(id).map_or(DEFAULT_PRIO, |info| info.prio)
    }

    /// Appends a task's `comm` as seen on `cpu`: the idle tasks are `swapper/CPU`.
    pub(crate) fn push_comm(&self, id: TaskId, cpu: CpuId, to: &mut Vec<u8>) {
        use std::io::Write;
        let written = if id.is_idle() {
            write!(to, "swapper/{cpu}")
        } else if let Some(info) = self.get(id) {
            to.extend_from_slice(info.name.as_bytes());
            Ok(())
        } else {
            write!(to, "task-{id}")
        };
        written.expect("memory takes everything");
    }

    /// A task's `comm` as seen on `cpu`.
    pub(crate) fn comm(&self, id: TaskId, cpu: CpuId) -> String {
        let mut name = Vec::new();
        self.push_comm(id, cpu, &mut name);
        String::from_utf8(name).expect("made of strings")
    }
}
