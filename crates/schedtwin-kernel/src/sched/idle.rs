// SPDX-License-Identifier: GPL-2.0-or-later
//! The idle class: the task that runs when nothing else does.
//!
//! Kernel: 6.12.95 kernel/sched/idle.c. The idle loop itself is in [`crate::cpuidle`].

use crate::Kernel;
use schedtwin_types::{CpuId, Ns};

impl Kernel {
    /// `set_next_task_idle()`.
    pub(crate) fn set_next_task_idle(&mut self, cpu: CpuId) {
        if self.keeps_idle_core() {
            self.count_idle(cpu);
        }
        if self.has_smt() {
            self.update_idle_core(cpu);
        }
        self.update_idle_rq_clock_pelt(cpu);
        let rq = &mut self.sched.rq[cpu];
        rq.idle_exec_start = rq.clock_task;
        self.cpuidle.cpus[cpu].idle_since = self.cx.now;
    }

    /// `__update_idle_core()`: where the CPU was the last of its core to be busy, wakeups have an idle core to look for.
    fn update_idle_core(&mut self, cpu: CpuId) {
        if self.keeps_idle_core() {
            return self.find_idle_core(cpu);
        }
        if let Some(shared) = self.sched.topology.sd_balance_shared[cpu.index()]
            && !self.sched.topology.shared[shared].has_idle_cores
            && self.is_core_idle(cpu)
        {
            self.sched.topology.shared[shared].has_idle_cores = true;
        }
    }

    /// `put_prev_task_idle()`.
    pub(crate) fn put_prev_task_idle(&mut self, cpu: CpuId) {
        if self.keeps_idle_core() {
            self.count_busy(cpu);
        }
        self.fair_server_idle_ends(cpu);
        self.idle_ends_by_switch(cpu);
        let idle = &mut self.cpuidle.cpus[cpu];
        idle.idle_time += self.cx.now - idle.idle_since;
        // The switch is not over: whoever asks before its end finds nothing more.
        idle.idle_since = self.cx.now;
    }

    /// `get_cpu_idle_time_us()`: how long the idle task of `cpu` has run since boot, nanoseconds.
    pub(crate) fn idle_time(&self, cpu: CpuId) -> Ns {
        let idle = &self.cpuidle.cpus[cpu];
        let runs = self.sched.rq[cpu].curr.is_idle();
        idle.idle_time + if runs { self.cx.now - idle.idle_since } else { 0 }
    }
}
