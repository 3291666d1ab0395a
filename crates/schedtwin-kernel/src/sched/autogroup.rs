// SPDX-License-Identifier: GPL-2.0-or-later
//! Autogroups: each session of processes is a task group.
//!
//! **Decides** which task group a task is in that nobody put into a cgroup.
//!
//! **Idea.** A build with thirty compilers and an editor are two things to a user, not thirty-one. Each terminal has a session of its
//! own, so CPU time is shared between sessions first, and then within them.
//!
//! ```text
//!   without: 31 tasks at the root               with: two groups at the root
//!    cc cc cc ... cc editor (1/31)               session 1 (1/2): cc cc cc ... cc     session 2 (1/2): editor
//! ```
//!
//! **Terms.** *Cgroup*: where a task was put; the root is nowhere. *Autogroup*: the task group of its session, a child of the root.
//! *Task group*: where it competes.
//!
//! **Algorithm.** 1. `setsid()` makes an autogroup, and the caller moves there. 2. Children inherit it. 3. The task group is the
//! autogroup of a task in the root cgroup, and the cgroup of any other. 4. An exiting task moves to
//! the root before it goes. 5. The weight of an autogroup is that of a task with the session's nice
//! value (`/proc/PID/autogroup`), 0 by default. Kernel threads are in no session.
//!
//! Kernel: 6.12.117 kernel/sched/autogroup.c `autogroup_task_group`, `task_wants_autogroup`, `sched_autogroup_create_attach`,
//! `autogroup_move_group`, `sched_autogroup_exit_task`, `proc_sched_autogroup_set_nice`; 6.1.192 has the same rules.
//! Differences: autogroups are made before the run, as other groups are, and stay. Only a process that has one thread calls
//! `setsid()`. Switching the sysctl off later, which moves nobody until the next move, is not modelled.

use crate::{Kernel, Scheduler};
use schedtwin_types::{GroupWeight, SessionId, TaskGroupFiles, TaskGroupId, TaskId};

/// `cpu.shares` of a new group.
const DEFAULT_SHARES: u64 = 1024;

impl Kernel {
    /// Makes the next session with the nice value of its autogroup (-20..=19). The first one made is that of the
    /// shell, which [`Kernel::boot_thread`] joins. Without autogroups in the kernel nothing is made.
    pub fn new_session(&mut self, nice: i8) {
        if !self.cx.config.sched_autogroup {
            return;
        }
        // autogroup_create()
        let group = self.sched.new_task_group(TaskGroupId::ROOT, DEFAULT_SHARES, &self.cx);
        self.sched.autogroups.push(group);
        let weight = Some(GroupWeight::Nice(nice));
        self.boot_task_groups(&[TaskGroupFiles { weight, ..TaskGroupFiles::none(group) }]);
    }

    /// `sched_autogroup_create_attach()` of the running task, which leads `session` from now on.
    pub(crate) fn sched_autogroup_create_attach(&mut self, task: TaskId, session: SessionId) {
        if let Some(&group) = self.sched.autogroups.get(session.0 as usize) {
            // autogroup_move_group()
            self.sched.tasks[task].autogroup = group;
            self.sched_move_task(task);
        }
    }

    /// `sched_autogroup_exit_task()`: an exiting task must not be found in its session any more.
    #[inline]
    pub(crate) fn sched_autogroup_exit_task(&mut self, task: TaskId) {
        if self.cx.config.sched_autogroup {
            self.sched_move_task(task);
        }
    }
}

impl Scheduler {
    /// The first thread of user space is in the shell's session.
    pub(crate) fn join_first_session(&mut self, task: TaskId) {
        let Some(&group) = self.autogroups.first() else { return };
        let t = &mut self.tasks[task];
        (t.autogroup, t.group) = (group, group);
        let cpu = t.cpu;
        self.set_task_rq(task, cpu);
    }

    /// Task group, cgroup and autogroup of a new task (`sched_autogroup_fork`, `sched_cgroup_fork`).
    pub(crate) fn groups_of_child(&self, parent: Option<TaskId>) -> [TaskGroupId; 3] {
        parent.map_or([TaskGroupId::ROOT; 3], |parent| {
            let parent = &self.tasks[parent];
            [parent.group, parent.cgroup, parent.autogroup]
        })
    }

    /// `autogroup_task_group()` of the task's cgroup: the group that it should be in.
    #[inline]
    pub(crate) fn autogroup_task_group(&self, task: TaskId) -> TaskGroupId {
        let t = &self.tasks[task];
        // task_wants_autogroup()
        match t.cgroup == TaskGroupId::ROOT && !t.exiting {
            true => t.autogroup,
            false => t.cgroup,
        }
    }
}
