// SPDX-License-Identifier: GPL-2.0-or-later
//! Kicks: a scheduler has other CPUs reschedule.
//!
//! A kick is noted by the executing CPU and carried out by an interrupt that the CPU sends itself, as soon as interrupts
//! are on again; kicks of the same CPU meanwhile are one.
//!
//! | flags | the CPU reschedules |
//! |---|---|
//! | 0 | unless a class above runs (7.3) |
//! | `PREEMPT` | likewise, and the running task of the class has lost its slice |
//! | `IDLE` | if it idles |
//!
//! A kick without `PREEMPT` of a CPU whose task has slice left leads to a pick of the same task.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `scx_kick_cpu`, `kick_cpus_irq_workfn`.
//! Differences: `SCX_KICK_WAIT` kicks and does not wait.

use super::steps::Step;
use super::{SCX_KICK_IDLE, SCX_KICK_PREEMPT, SCX_KICK_WAIT};
use crate::Kernel;
use crate::sched::Class;
use schedtwin_types::{CpuId, CpuMask, IpiKind};

/// The kicks that a CPU has noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kicks {
    kick: CpuMask,
    preempt: CpuMask,
    if_idle: CpuMask,
}

impl Kernel {
    /// `scx_kick_cpu()`, by the executing CPU.
    pub(super) fn scx_kick_cpu(&mut self, cpu: CpuId, flags: u64) {
        let this = self.cx.this_cpu;
        if self.sched.scx().bypass {
            return;
        }
        if flags & SCX_KICK_IDLE != 0 {
            if flags & (SCX_KICK_PREEMPT | SCX_KICK_WAIT) != 0 {
                self.scx_error("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE".to_string());
            }
            if self.scx_can_skip_idle_kick(cpu) {
                return;
            }
            self.sched.scx_mut().rqs[this].kicks.if_idle.insert(cpu);
        } else {
            let kicks = &mut self.sched.scx_mut().rqs[this].kicks;
            kicks.kick.insert(cpu);
            if flags & SCX_KICK_PREEMPT != 0 {
                kicks.preempt.insert(cpu);
            }
        }
        self.scx_raise_irq_work(this);
    }

    /// `can_skip_idle_kick()`.
    fn scx_can_skip_idle_kick(&self, cpu: CpuId) -> bool {
        !self.sched.rq[cpu].curr.is_idle() && !self.sched.scx().rqs[cpu].in_dispatch
    }

    /// `irq_work_queue_on()` of one of the class's works.
    pub(super) fn scx_raise_irq_work(&mut self, cpu: CpuId) {
        self.sched.send_ipi(cpu, IpiKind::IrqWork, &mut self.cpuidle, &mut self.cx);
    }

    /// The class's works in the interrupt that has come to `cpu`.
    #[inline(never)]
    pub(crate) fn scx_irq_work_run(&mut self, cpu: CpuId) {
        let Some(ext) = &mut self.sched.ext else { return };
        let kicks = std::mem::take(&mut ext.rqs[cpu].kicks);
        let deferred = std::mem::take(&mut ext.rqs[cpu].deferred_irq_work);
        if kicks != Kicks::default() {
            ext.note(Step::Kicks { cpu });
        }
        for target in kicks.kick.iter() {
            self.scx_kick_one(target, kicks.preempt.contains(target));
        }
        for target in kicks.if_idle.and_not(&kicks.kick).iter() {
            if !self.scx_can_skip_idle_kick(target) {
                self.scx_count_kick();
                self.sched.resched_curr(target, &mut self.cpuidle, &mut self.cx);
            }
        }
        if deferred {
            self.sched.update_rq_clock(cpu, &self.cx);
            self.scx_run_deferred(cpu);
        }
        self.scx_disable_if_pending();
    }

    /// `kick_one_cpu()`.
    fn scx_kick_one(&mut self, cpu: CpuId, preempt: bool) {
        let curr = self.sched.rq[cpu].curr;
        let class = self.sched.tasks[curr].class;
        let ext = self.sched.scx_mut();
        if class > Class::Ext && ext.form.kick_spares_above {
            return;
        }
        if preempt && class == Class::Ext {
            ext.set_task_slice(curr, 0);
        }
        self.scx_count_kick();
        self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
    }

    fn scx_count_kick(&mut self) {
        self.sched.scx_mut().events.kicks += 1;
    }
}
