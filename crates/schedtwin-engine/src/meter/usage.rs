// SPDX-License-Identifier: GPL-2.0-or-later
//! User and system time: what a task did while it ran.
//!
//! User time is counted where work is: from the moment at which a task's CPU owes the kernel nothing until the next entry. The rest of
//! its time on a CPU is system time: system calls, switches, and what interrupts took of it, as where Linux counts by ticks.

use super::Meter;
use schedtwin_types::{Ns, TaskId};

impl Meter {
    /// A task has been at the work of its program, in user mode, between these times.
    #[inline(always)]
    pub fn user_time(&mut self, task: TaskId, from: Ns, until: Ns) {
        let start = self.window_start;
        self.tasks[task.index()].user_ns += until.max(start) - from.max(start);
    }
}
