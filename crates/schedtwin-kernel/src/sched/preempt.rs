// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a task that has been queued preempts the running one.
//!
//! **Decides** whether a CPU is asked to reschedule, by class; within the fair class that decides itself.
//!
//! **Idea.** A higher class preempts a lower one outright, and equal ones ask their class. 7.3 compares with the class that was
//! picked last *or has been raised since* (`next_class`): a fair task that is queued while an RT task waits for the switch is
//! not looked at any more, so it neither dequeues a delayed task nor shortens the running task's
//! protection.
//!
//! **Lazy preemption.** Where a fair task is to give way to a fair one (its slice is over, or a wakee preempts), a kernel with
//! `preempt=lazy` asks for that by a second flag. No interrupt is sent for it and kernel mode goes on; it is looked at on the way
//! to user mode, by every `schedule()`, and by the tick, which turns a flag that it finds into a full one:
//!
//! ```text
//! cpu1, in user mode    ─────────────────────────────|tick: update_curr   ⇒ gives way at the tick's return
//! cpu1, in the kernel   ──|tick: flag ────────────|tick: full flag        ⇒ gives way at the second tick
//!          cpu0 wakes ▲ a task for it
//! ```
//!
//! Idle CPUs, other classes, changes of priority and the fair server ask as before.
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/core.c `wakeup_preempt`; 7.3.4 `resched_curr_lazy`, `sched_tick`,
//! kernel/entry/common.c `exit_to_user_mode_loop`.
//! Differences: a call that wakes somebody and goes on to sleep does both at one instant, as with the other models.

use crate::sched::{Class, OnRq};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId};

impl Scheduler {
    /// `resched_curr_lazy()`: a fair task wants the CPU from a fair task.
    #[inline]
    pub(crate) fn resched_curr_lazy(
        &mut self,
        cpu: CpuId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let rq = &mut self.rq[cpu];
        if !cx.config.preempt.is_lazy() || rq.curr.is_idle() {
            return self.resched_curr(cpu, cpuidle, cx);
        }
        // No interrupt: the CPU sees it when it comes by.
        rq.need_resched_lazy |= !rq.need_resched;
    }

    /// In `sched_tick()`, before the class looks: what has been asked for since the tick before is no longer put off.
    #[inline]
    pub(crate) fn tick_ends_laziness(
        &mut self,
        cpu: CpuId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        if self.rq[cpu].need_resched_lazy {
            self.resched_curr(cpu, cpuidle, cx);
        }
    }

    /// In `exit_to_user_mode_loop()`: whether the running task gives way before it goes on in user mode.
    #[inline]
    pub(crate) fn must_give_way_to_user(&self, cpu: CpuId) -> bool {
        self.rq[cpu].need_resched || self.rq[cpu].need_resched_lazy
    }
}

impl Kernel {
    /// `wakeup_preempt()`.
    pub fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) {
        let curr = self.sched.rq[cpu].curr;
        let class = self.sched.tasks[task].class;
        let curr_class = self.sched.tasks[curr].class;
        let raised = self.sched.rq[cpu].next_class;
        let compared = if self.cx.compares_next_class() { raised } else { curr_class };
        if class > compared {
            if raised == Class::Ext && self.sched.scx_enabled() {
                self.wakeup_preempt_scx(cpu);
            }
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        } else if class == compared && class == curr_class {
            match class {
                Class::Fair => {
                    self.check_preempt_wakeup_fair(cpu, task, wake_flags);
                    self.charge_preempt_fair();
                }
                Class::Rt => {
                    self.sched.wakeup_preempt_rt(cpu, task, &mut self.cpuidle, &mut self.cx)
                }
                Class::Deadline => {
                    self.sched.wakeup_preempt_dl(cpu, task, &mut self.cpuidle, &mut self.cx)
                }
                _ => {}
            }
        }
        self.sched.rq[cpu].next_class = raised.max(class);
        // The switch that follows is dated to this clock reading.
        if self.sched.tasks[curr].on_rq == OnRq::Queued && self.sched.rq[cpu].need_resched {
            self.sched.rq[cpu].skip_clock_update = true;
        }
        if self.cpufreq.has_callback(cpu) {
            self.cpufreq_callback(cpu);
        }
    }
}
