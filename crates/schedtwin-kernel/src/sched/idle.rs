//! The idle class: the task that runs when nothing else does.
//!
//! Kernel: 6.12.95 kernel/sched/idle.c. The idle loop itself is in [`crate::cpuidle`].

use crate::Kernel;
use schedtwin_types::CpuId;

impl Kernel {
    /// `set_next_task_idle()`.
    pub(crate) fn set_next_task_idle(&mut self, cpu: CpuId) {
        self.update_idle_rq_clock_pelt(cpu);
        let rq = &mut self.rq[cpu];
        rq.idle_exec_start = rq.clock_task;
    }

    /// `put_prev_task_idle()`.
    pub(crate) fn put_prev_task_idle(&mut self, cpu: CpuId) {
        self.fair_server_update_idle_time(cpu);
    }
}
