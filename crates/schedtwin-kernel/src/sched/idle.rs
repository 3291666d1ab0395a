// SPDX-License-Identifier: GPL-2.0-or-later
//! The idle class: the task that runs when nothing else does.
//!
//! Kernel: 6.12.95 kernel/sched/idle.c. The idle loop itself is in [`crate::cpuidle`].

use crate::sched::Class;
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, Ns};

impl Scheduler {
    fn install_idle_task(&mut self, cpu: CpuId, cpuidle: &mut Cpuidle, cx: &mut Context) {
        if cx.keeps_idle_core() {
            self.count_idle(cpu);
        }
        if self.has_smt() {
            self.update_idle_core(cpu, cx);
        }
        // `rq.curr` is the task that goes.
        let unseen = cx.config.bugs.lost_idle_time_unseen
            && self.tasks[self.rq[cpu].curr].class > Class::Fair;
        if !unseen {
            self.update_idle_rq_clock_pelt(cpu);
        }
        let rq = &mut self.rq[cpu];
        rq.idle_exec_start = rq.clock_task;
        cpuidle.cpu_mut(cpu).idle_since = cx.now;
    }

    /// `__update_idle_core()`: where the CPU was the last of its core to be busy, wakeups have an idle core to look for.
    fn update_idle_core(&mut self, cpu: CpuId, cx: &mut Context) {
        if let Some(shared) = self.learn_idle_core(cpu, cx) {
            self.fetch(cx, |lines, at| lines.llc_word(shared, true, at));
        }
    }

    /// The same without its cost. Returns the object that did not know of an idle core.
    pub(super) fn learn_idle_core(&mut self, cpu: CpuId, cx: &Context) -> Option<usize> {
        if cx.keeps_idle_core() {
            self.find_idle_core(cpu);
            return None;
        }
        let shared = self.topology.sd_balance_shared[cpu.index()]?;
        if self.topology.shared[shared].has_idle_cores || !self.is_core_idle(cpu) {
            return None;
        }
        self.topology.shared[shared].has_idle_cores = true;
        Some(shared)
    }

    /// `get_cpu_idle_time_us()`: how long the idle task of `cpu` has run since boot, nanoseconds.
    pub(crate) fn idle_time(&self, cpu: CpuId, cpuidle: &Cpuidle, cx: &Context) -> Ns {
        let idle = cpuidle.cpu(cpu);
        let runs = self.rq[cpu].curr.is_idle();
        idle.idle_time + if runs { cx.now - idle.idle_since } else { 0 }
    }
}

impl Kernel {
    /// `set_next_task_idle()`.
    pub(crate) fn set_next_task_idle(&mut self, cpu: CpuId) {
        if self.sched.scx_enabled() {
            self.scx_update_idle(cpu, true, true);
        }
        self.sched.install_idle_task(cpu, &mut self.cpuidle, &mut self.cx);
    }

    /// `put_prev_task_idle()`.
    pub(crate) fn put_prev_task_idle(&mut self, cpu: CpuId) {
        if self.cx.keeps_idle_core() {
            self.sched.count_busy(cpu);
        }
        self.fair_server_idle_ends(cpu);
        if self.sched.scx_enabled() {
            self.scx_update_idle(cpu, false, true);
        }
        self.sched.idle_ends_by_switch(cpu, &self.cx);
        let idle = self.cpuidle.cpu_mut(cpu);
        idle.idle_time += self.cx.now - idle.idle_since;
        // The switch is not over: a caller that asks before its end gets no idle time beyond this.
        idle.idle_since = self.cx.now;
    }
}
