// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler of sched_ext: whoever has waited longest runs next, for 3 ms.
//!
//! A woken task takes an idle CPU if there is one. Otherwise it waits in one queue, from which every CPU that has nothing
//! else takes the first task that may run there.

use schedtwin_engine::policy::{CpuId, ExtScheduler, Kfuncs, SCX_DSQ_LOCAL, TaskId};

/// The queue.
const WAITING: u64 = 0;
const SLICE_NS: u64 = 3_000_000;

#[derive(Clone)]
pub struct Turns;

impl ExtScheduler for Turns {
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.create_dsq(WAITING)
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let (cpu, is_idle) = scx.select_cpu_dfl(task, prev, wake_flags);
        if is_idle {
            scx.dsq_insert(task, SCX_DSQ_LOCAL, SLICE_NS, 0);
        }
        cpu.0.into()
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        scx.dsq_insert(task, WAITING, SLICE_NS, enq_flags);
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, _: Option<TaskId>) {
        scx.dsq_move_to_local(WAITING, 0);
    }
}
