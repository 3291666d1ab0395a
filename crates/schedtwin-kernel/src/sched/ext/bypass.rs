// SPDX-License-Identifier: GPL-2.0-or-later
//! Bypass: the scheduler is not asked, and all of its tasks run in turn.
//!
//! **Idea.** While a scheduler comes and goes, tasks must go on without it. Everything that waits is taken out of where it
//! waits and put back: now into queues of the kernel's own. At the end the same is done again, and the scheduler gets all
//! waiting tasks by its `enqueue`.
//!
//! | in bypass | 7.3 | 6.12 |
//! |---|---|---|
//! | a wakeup's CPU | the previous one | the default selection's |
//! | a runnable task waits in | the bypass DSQ of its CPU | the global DSQ of its node |
//! | its slice | 5 ms | 20 ms |
//! | an idle CPU that is told of late | at its next pick after the end | never |
//!
//! In both a tick ends the slice of the running task, a slice that is left keeps no task on its CPU, kicks are dropped, and
//! `runnable`, `running`, `stopping` and `quiescent` go on; `select_cpu`, `enqueue`, `dispatch`, `tick` and `update_idle`
//! do not.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `scx_bypass`; 6.12.95 kernel/sched/ext.c `scx_ops_bypass`.
//! Differences: the timer that evens the bypass DSQs out every 500 ms is absent: no bypass of the twin lasts so long.

use super::SCX_SLICE_DFL;
use super::dsq::DsqIndex;
use super::steps::{Call, Step};
use crate::Kernel;
use crate::sched::core::{DEQUEUE_MOVE, DEQUEUE_SAVE, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE};
use schedtwin_types::{CpuId, TaskId};

/// `SCX_SLICE_BYPASS`: 5 ms.
const SCX_SLICE_BYPASS: u64 = 5_000_000;

impl Kernel {
    /// `scx_bypass()`: begins or ends it on all CPUs, and has all waiting tasks enqueued accordingly.
    pub(super) fn scx_bypass(&mut self, on: bool) {
        let ext = self.sched.scx_mut();
        ext.bypass = on;
        if ext.form.bypass_queues {
            ext.slice_dfl = if on { SCX_SLICE_BYPASS } else { SCX_SLICE_DFL };
        }
        let enabled = ext.enabled;
        ext.note(Step::Bypass { on });
        for c in 0..self.sched.nr_cpus() {
            let cpu = CpuId(c as u16);
            let ext = self.sched.scx_mut();
            ext.rqs[cpu].idle_renotify |= !on && ext.form.renotifies_idle;
            if enabled {
                self.scx_cycle_waiting(cpu);
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
        }
    }

    /// Takes the waiting tasks of a CPU out and puts them back, the last of its runnable list first.
    fn scx_cycle_waiting(&mut self, cpu: CpuId) {
        let ext = self.sched.scx();
        let waits =
            |task: &TaskId| self.sched.tasks[*task].cpu == cpu && ext.tasks[task.index()].waits();
        let mut tasks: Vec<TaskId> = self.sched.tasks.ids().filter(waits).collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(ext.tasks[task.index()].runnable_seq));
        for task in tasks {
            self.sched.update_rq_clock(cpu, &self.cx);
            self.dequeue_task(cpu, task, DEQUEUE_SAVE | DEQUEUE_MOVE);
            self.enqueue_task(cpu, task, ENQUEUE_RESTORE | DEQUEUE_MOVE | ENQUEUE_NOCLOCK);
        }
    }

    /// `scx_do_enqueue_task()` in bypass.
    pub(super) fn scx_enqueue_in_bypass(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64) {
        let ext = self.sched.scx_mut();
        let dsq = ext.bypass_dsq(cpu);
        ext.refill_slice(task);
        ext.tasks[task.index()].clear_direct_dispatch();
        self.scx_dispatch_enqueue(cpu, dsq, task, None, enq_flags);
    }

    /// `select_task_rq_scx()` in bypass.
    pub(super) fn scx_select_cpu_in_bypass(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
    ) -> CpuId {
        let cursor = self.sched.distribute_cursor(&self.cx);
        let ext = self.sched.scx_mut();
        ext.tasks[task.index()].cpu_selected = true;
        let mut cpu = prev;
        if !ext.form.bypass_queues && ext.idle.enabled {
            ext.note(Step::Call(Call::SelectDfl { task, prev, wake_flags, cursor }));
            let found = self.scx_select_cpu_dfl(task, prev, wake_flags, None, 0);
            cpu = found.unwrap_or(prev);
            let returned = i64::from(cpu.0) | i64::from(found.is_some()) << 32;
            self.sched.scx_mut().note(Step::CallEnds { returned });
        }
        self.sched.scx_mut().note(Step::Selected { task, cpu });
        cpu
    }
}

impl super::Ext {
    /// Where a task of `cpu` waits in bypass.
    fn bypass_dsq(&self, cpu: CpuId) -> DsqIndex {
        match self.form.bypass_queues {
            true => self.dsqs.bypass(cpu),
            false => self.dsqs.global(self.node_of[cpu.index()]),
        }
    }
}
