// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the kernel about waits that the meter finds too long: whether the task may run at all, and where.

use super::Twin;
use crate::board::Board;
use schedtwin_types::{Ns, TaskGroupId, TaskId};

impl<B: Board> Twin<B> {
    /// Answers the meter's questions (`meter/waits.rs`).
    #[cold]
    pub(super) fn judge_waits(&mut self) {
        let Twin { kernel, meter, now, .. } = self;
        let may_move_to = |task| kernel.may_move_to(task);
        let turn_of = |task, competing: &[TaskId], since| kernel.turn_of(task, competing, since);
        let free_since = |task, cpu| kernel.free_since(task, cpu);
        meter.judge_waits(*now, may_move_to, free_since, |task| kernel.share_of(task), turn_of);
    }

    /// Tells the meter of jobs that are not done and locks that were not given back.
    pub(super) fn tell_what_is_open(&mut self, end: Ns) {
        let task_of = |tasks: &[super::TaskState], thread| {
            let at = tasks.iter().position(|task| task.thread == Some(thread));
            at.map(|at| TaskId(at as u32))
        };
        for (thread, released) in self.programs.open_jobs() {
            if let Some(task) = task_of(&self.tasks, thread) {
                self.meter.open_job(task, released, end);
            }
        }
        for wait in self.programs.lock_waits() {
            if let Some(waiter) = task_of(&self.tasks, wait.waiter) {
                let holder = (self.programs.thread_name(wait.holder), wait.holder_ended);
                self.meter.open_lock(waiter, holder, wait.since, end);
            }
        }
    }

    /// Tells the meter what became of the limits of cgroups.
    pub(super) fn tell_of_limits(&mut self) {
        for (at, path) in self.programs.task_group_paths().iter().enumerate() {
            // Group 0 is the root.
            let group = TaskGroupId(at as u32 + 1);
            if let Some(stat) = self.kernel.cpu_stat(group) {
                let early = (stat.longest_early, stat.nr_early);
                self.meter.limited(path, early, self.kernel.beyond_limit(group));
            }
        }
    }

    /// Tells the meter in which cgroup each task of the workload is.
    pub(super) fn name_cgroups(&mut self) {
        let paths = self.programs.task_group_paths();
        for index in (1..self.tasks.len()).filter(|index| self.tasks[*index].thread.is_some()) {
            let task = TaskId(index as u32);
            let group = self.kernel.cgroup_of(task).0;
            // Group 0 is the root.
            if let Some(path) = (group as usize).checked_sub(1).and_then(|at| paths.get(at)) {
                self.meter.task_cgroup(task, path);
            }
        }
    }
}
