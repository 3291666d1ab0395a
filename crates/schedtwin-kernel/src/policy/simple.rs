// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler of sched_ext with one queue for all CPUs: in turn, or fairly by weight.
//!
//! **Idea.** A woken task gets an idle CPU at once; otherwise it waits in one queue, from which each CPU that is free takes
//! the first. *In turn* (`fifo`) the queue has the order of arrival. *Fairly*, each task has a virtual time, which grows by
//! what it ran, less for a larger weight, and the queue is ordered by it. A task that slept is at most a slice behind.
//!
//! It behaves as scx_simple of the kernel's tree, of which a task needs no more than this.

use super::{ExtScheduler, Kfuncs, SCX_DSQ_LOCAL, SCX_SLICE_DFL, time_before64};
use schedtwin_types::{CpuId, TaskId};

/// The queue.
const SHARED: u64 = 0;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Simple {
    /// In turn.
    pub fifo: bool,
    /// The largest virtual time of a task that began to run.
    vtime_now: u64,
}

impl Simple {
    /// Fairly, or in turn.
    pub fn new(fifo: bool) -> Simple {
        Simple { fifo, vtime_now: 0 }
    }
}

impl ExtScheduler for Simple {
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.create_dsq(SHARED)
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let (cpu, is_idle) = scx.select_cpu_dfl(task, prev, wake_flags);
        if is_idle {
            scx.dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
        }
        cpu.0.into()
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        if self.fifo {
            scx.dsq_insert(task, SHARED, SCX_SLICE_DFL, enq_flags);
            return;
        }
        let (own, least) = (scx.task(task).dsq_vtime, self.vtime_now.wrapping_sub(SCX_SLICE_DFL));
        let vtime = if time_before64(own, least) { least } else { own };
        scx.dsq_insert_vtime(task, SHARED, SCX_SLICE_DFL, vtime, enq_flags);
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, _: Option<TaskId>) {
        scx.dsq_move_to_local(SHARED, 0);
    }

    fn running(&mut self, scx: &mut Kfuncs, task: TaskId) {
        let vtime = scx.task(task).dsq_vtime;
        if time_before64(self.vtime_now, vtime) {
            self.vtime_now = vtime;
        }
    }

    fn stopping(&mut self, scx: &mut Kfuncs, task: TaskId, _: bool) {
        if self.fifo {
            return;
        }
        let task = scx.task(task);
        let ran = SCX_SLICE_DFL.saturating_sub(task.slice);
        scx.task_set_dsq_vtime(task.task, task.dsq_vtime + ran * 100 / u64::from(task.weight));
    }

    fn enable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        scx.task_set_dsq_vtime(task, self.vtime_now);
    }
}
