// SPDX-License-Identifier: GPL-2.0-or-later
//! irq_work: something that must not be done under the run queue's lock is done in an interrupt soon after.
//!
//! A CPU that queues a work sends itself an interrupt (`arch_irq_work_raise()`, on arm64 an
//! inter-processor
//! interrupt to the executing CPU), which arrives as soon as interrupts are on again. A CPU has one such
//! interrupt in flight at most; what is queued meanwhile is done by it too.
//!
//! ```text
//!  sugov_update ── irq_work_queue ─┐            ┌─ irq_work_run ── sugov_irq_work ── wake sugov:N
//!  (rq locked, interrupts off)     └ self IPI ──┘
//! ```
//!
//! Kernel: 6.12.95 kernel/irq_work.c; arch/arm64/kernel/smp.c.
//! Differences: works are schedutil's, one per frequency domain, and the pushing of RT tasks, which comes
//! from other CPUs and in Linux by the interrupt of a function call. Domains go in ascending order, not
//! last queued first: to be noticed only where one path asks for two domains at once.

use crate::Kernel;
use schedtwin_types::{CpuId, IpiKind, PolicyId};

impl Kernel {
    /// `irq_work_queue()` of the work of frequency domain `policy`, by the executing CPU.
    pub(crate) fn irq_work_queue(&mut self, policy: PolicyId) {
        self.irq_work_queue_on(policy, self.cx.this_cpu);
    }

    /// `irq_work_queue_on()`: the same on another CPU.
    pub(crate) fn irq_work_queue_on(&mut self, policy: PolicyId, cpu: CpuId) {
        self.work.irq_work_raised[cpu].insert(policy);
        self.sched.send_ipi(cpu, IpiKind::IrqWork, &mut self.cpuidle, &mut self.cx);
    }

    /// `irq_work_run()`: the interrupt has come to `cpu`.
    pub(crate) fn irq_work_run(&mut self, cpu: CpuId) {
        let raised = std::mem::take(&mut self.work.irq_work_raised[cpu]);
        for policy in raised.iter() {
            self.sugov_irq_work(policy);
        }
        if self.work.fast_switch_raised.contains(cpu) {
            self.work.fast_switch_raised.remove(cpu);
            self.cpufreq.fast_switch_by_interrupt(cpu, &mut self.sched, &mut self.cx);
        }
        if self.sched.scx_enabled() {
            self.scx_irq_work_run(cpu);
        }
        // Where the round of pushes is, its interrupt is in flight or has come.
        if self.sched.rd().rto_cpu == Some(cpu) {
            self.rto_push_irq_work(cpu);
        }
    }
}
