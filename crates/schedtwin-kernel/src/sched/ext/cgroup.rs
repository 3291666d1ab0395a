// SPDX-License-Identifier: GPL-2.0-or-later
//! Cgroups towards a scheduler: which there are, what their files say, and which task is in which.
//!
//! ```text
//!  load: cgroup_init(root) ─ init_task(...)          mkdir: cgroup_init        a file: cgroup_set_weight, _bandwidth, _idle
//!  a task writes itself into another group: cgroup_prep_move ─ (taken out) ─ cgroup_move ─ (put back)
//!  end: cgroup_exit, children first ─ exit_task(...)
//! ```
//!
//! An autogroup is a task group without a cgroup: its tasks are in the root.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `scx_cgroup_init`, `scx_tg_online`, `scx_cgroup_can_attach`, `scx_cgroup_move_task`,
//! `scx_group_set_weight`, `scx_group_set_bandwidth`, `scx_group_set_idle`; 6.12 has no `cgroup_set_bandwidth` and no
//! `cgroup_set_idle`.

use crate::Kernel;
use crate::arena::Id;
use crate::policy::CgroupChange;
use schedtwin_types::{TaskGroupId, TaskId, TaskState};

/// `CGROUP_WEIGHT_DFL`.
const CGROUP_WEIGHT_DFL: u32 = 100;

/// The CPU controller's files of a cgroup, as a scheduler gets them (`struct scx_cgroup_init_args`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupFiles {
    /// `cpu.weight`: 1 to 10000.
    pub weight: u32,
    /// `cpu.max`: period, quota (`u64::MAX`: none) and burst, microseconds.
    pub bandwidth_us: (u64, u64, u64),
    /// `cpu.idle`.
    pub idle: bool,
}

impl Default for CgroupFiles {
    fn default() -> CgroupFiles {
        CgroupFiles { weight: CGROUP_WEIGHT_DFL, bandwidth_us: (100_000, u64::MAX, 0), idle: false }
    }
}

/// What a scheduler can read of a cgroup (`struct cgroup`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupView {
    /// Its task group.
    pub group: TaskGroupId,
    /// `kn->id`; 1: the root.
    pub id: u64,
    /// The number of cgroups above it.
    pub level: u32,
    /// The one above.
    pub parent: Option<TaskGroupId>,
    /// Its files.
    pub files: CgroupFiles,
}

/// The cgroups that the scheduler knows, by the numbers of their task groups; `None`: it has no cgroup.
#[derive(Clone, Debug, Default)]
pub(super) struct Cgroups(Vec<Option<CgroupFiles>>);

impl Cgroups {
    pub(super) fn files(&self, group: TaskGroupId) -> Option<CgroupFiles> {
        self.0.get(group.index()).copied().flatten()
    }

    fn insert(&mut self, group: TaskGroupId) {
        let at = group.index();
        self.0.resize(self.0.len().max(at + 1), None);
        self.0[at] = Some(CgroupFiles::default());
    }
}

impl Kernel {
    /// `scx_tg_online()`: a cgroup becomes known.
    pub(crate) fn scx_tg_online(&mut self, group: TaskGroupId) {
        let Some(ext) = &mut self.sched.ext else { return };
        ext.cgroups.insert(group);
        if ext.enabled {
            self.scx_cgroup_init(group);
        }
    }

    /// `scx_cgroup_init()` of all cgroups, parents first.
    pub(super) fn scx_cgroups_init(&mut self) {
        for at in 0..self.sched.scx().cgroups.0.len() {
            if self.sched.scx().cgroups.0[at].is_some() {
                self.scx_cgroup_init(TaskGroupId::from_index(at));
            }
        }
    }

    fn scx_cgroup_init(&mut self, group: TaskGroupId) {
        let result = self.scx_call(None, |ops, scx| ops.cgroup_init(scx, group));
        if result != 0 {
            self.scx_error(format!("ops.cgroup_init() failed ({result})"));
        }
    }

    /// `scx_cgroup_exit()`: children come after their parents in number, so the last one goes first.
    pub(super) fn scx_cgroup_exit(&mut self) {
        for at in (0..self.sched.scx().cgroups.0.len()).rev() {
            if self.sched.scx_mut().cgroups.0[at].is_some() {
                let group = TaskGroupId::from_index(at);
                self.scx_call(None, |ops, scx| ops.cgroup_exit(scx, group));
            }
        }
        self.sched.scx_mut().cgroups.0.clear();
    }

    /// `scx_group_set_weight()`, `scx_group_set_bandwidth()`, `scx_group_set_idle()`: told if the value changes.
    pub(crate) fn scx_group_set(&mut self, group: TaskGroupId, change: CgroupChange) {
        let Some(ext) = &mut self.sched.ext else { return };
        let newer = ext.form.cgroup_knobs;
        let Some(files) = ext.cgroups.0.get_mut(group.index()).and_then(Option::as_mut) else {
            return;
        };
        let before = *files;
        let told = match change {
            CgroupChange::Weight(weight) => {
                files.weight = weight;
                true
            }
            CgroupChange::Bandwidth { period_us, quota_us, burst_us } => {
                files.bandwidth_us = (period_us, quota_us, burst_us);
                newer
            }
            CgroupChange::Idle(idle) => {
                files.idle = idle;
                newer
            }
        };
        if ext.enabled && told && *files != before {
            self.scx_call(None, |ops, scx| ops.cgroup_changed(scx, group, change));
        }
    }

    /// `scx_cgroup_can_attach()`: whether the running task may go to another cgroup.
    pub(crate) fn scx_cgroup_can_attach(&mut self, task: TaskId, to: TaskGroupId) -> bool {
        if !self.sched.scx_enabled() {
            return true;
        }
        let from = self.sched.scx_cgroup_of(task);
        from == to || self.scx_call(None, |ops, scx| ops.cgroup_prep_move(scx, task, from, to)) == 0
    }

    /// `scx_cgroup_move_task()`, while the task is in no queue. `from`: where it was.
    pub(crate) fn scx_cgroup_move_task(&mut self, task: TaskId, from: TaskGroupId) {
        if !self.sched.scx_enabled() {
            return;
        }
        let (to, cpu) = (self.sched.scx_cgroup_of(task), self.sched.tasks[task].cpu);
        if from != to {
            self.scx_call(Some(cpu), |ops, scx| ops.cgroup_move(scx, task, from, to));
        }
    }

    /// Counts a switch, voluntary if the task blocks; the tracepoint `sched_switch`, if the scheduler listens.
    pub(crate) fn scx_trace_switch(
        &mut self,
        preempt: bool,
        prev: TaskId,
        next: TaskId,
        prev_state: TaskState,
    ) {
        // TASK_RUNNING, TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, TASK_DEAD.
        let prev_state = match prev_state {
            TaskState::Running | TaskState::Preempted => 0,
            TaskState::Interruptible => 1,
            TaskState::Uninterruptible => 2,
            TaskState::Dead => 0x80,
        };
        if let Some(entity) = self.sched.scx_mut().tasks.get_mut(prev.index()) {
            entity.context_switches[usize::from(prev_state == 0)] += 1;
        }
        if self.sched.scx().traces_switches {
            self.scx_call(None, |ops, scx| ops.sched_switch(scx, preempt, prev, next, prev_state));
        }
    }
}

impl crate::Scheduler {
    /// `tg_cgrp()` of a task's group.
    pub(crate) fn scx_cgroup_of(&self, task: TaskId) -> TaskGroupId {
        let group = self.tasks[task].group;
        match &self.ext {
            Some(ext) if ext.cgroups.files(group).is_some() => group,
            _ => TaskGroupId::ROOT,
        }
    }

    /// A cgroup, if it is one.
    pub(super) fn scx_cgroup(&self, group: TaskGroupId) -> Option<CgroupView> {
        let files = self.scx().cgroups.files(group)?;
        let above = |group: TaskGroupId| self.groups[group].parent;
        let level = std::iter::successors(above(group), |group| above(*group)).count() as u32;
        let id = group.index() as u64 + 1;
        Some(CgroupView { group, id, level, parent: above(group), files })
    }
}
