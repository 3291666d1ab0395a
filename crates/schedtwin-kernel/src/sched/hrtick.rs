// SPDX-License-Identifier: GPL-2.0-or-later
//! The hrtick: a timer that ends slices when they are over, not at the next tick.
//!
//! **Decides** when the running task of a CPU is asked to give way, apart from ticks and wakeups.
//!
//! **Idea.** While more than one fair task is queued, a timer is set to the time when the running task reaches its virtual
//! deadline if it goes on alone, with interrupt time counted in. When it fires, the averages are refreshed as by a tick, and
//! the next task is picked. A deadline task has its timer set to what is left of its runtime.
//!
//! ```text
//! tick      |               |               |               |      slice 2.8 ms, HZ=250
//! without   A A A A A A A A B B B B B B B B C C C C C C C C A      a slice that is over goes on to the tick
//! with      A A A A A A B B B B B B C C C C C C A A A A A A B      each at its deadline
//!                       ^hrtick
//! ```
//!
//! **Algorithm** (`hrtick_start_fair`). 1. One fair task, or none: nothing. 2. left = deadline - vruntime; past it: the running
//! task gives way. 3. delay = left * weight / 1024 (in fixed point), divided by the share of time that interrupts leave;
//! at least 10 us. 4. A timer that is queued already stays if it is right within 5 us. Within a switch only the last delay
//! counts, from the switch's end. From another CPU it is set by an interrupt.
//!
//! A timer that is taken back when the CPU goes idle, or moved to a later time, leaves the clock event as it is: the interrupt
//! comes without a timer.
//!
//! Kernel: 7.3.4 kernel/sched/core.c `hrtick`, `hrtick_start`, `hrtick_schedule_enter`, `hrtick_schedule_exit`, fair.c
//! `hrtick_start_fair`, `hrtick_update`, deadline.c `start_hrtick_dl`, kernel/time/hrtimer.c `__hrtimer_rearm_deferred`.
//! Differences: none known. The hrtick of earlier releases, off by default, is absent.

use crate::sched::deadline::DlNode;
use crate::sched::fair::NICE_0_LOAD;
use crate::sched::{CfsRqId, Class};
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, IpiKind, NEVER, Ns, TaskId};

/// No slice ends sooner.
const SHORTEST_NS: u64 = 10_000;
/// By how much a timer may be wrong before it is moved.
const TOLERANCE_NS: u64 = 5_000;

/// The hrtick state of a run queue.
#[derive(Clone, Debug)]
pub struct Hrtick {
    /// `HRTICK_SCHED_DEFER`: the CPU is switching.
    switching: bool,
    /// `HRTICK_SCHED_START`: the delay to be counted from the end of the switch.
    delay: Option<Ns>,
    /// `hrtick_time`: when a timer shall expire that an interrupt is to set.
    time: Ns,
    /// When that interrupt was sent ([`NEVER`]: none is under way).
    csd_at: Ns,
}

impl Default for Hrtick {
    fn default() -> Hrtick {
        Hrtick { switching: false, delay: None, time: 0, csd_at: NEVER }
    }
}

/// Time until a running entity reaches its virtual deadline, in real time, while interrupts use `irq` of 1024.
///
/// ```
/// use schedtwin_kernel::sched::hrtick::slice_left;
/// const NICE_0: u64 = 1 << 20;
/// assert_eq!(slice_left(2_800_000, NICE_0, 0), 2_800_000);
/// assert_eq!(slice_left(2_800_000, NICE_0, 256), 3_732_421); // 1365/1024 of it
/// assert_eq!(slice_left(8_558_806, 335 << 10, 0), 2_800_000); // nice 5
/// ```
pub fn slice_left(vdelta: u64, weight: u64, irq: u64) -> Ns {
    let delta = weight.wrapping_mul(vdelta) / NICE_0_LOAD;
    let scale = if irq != 0 && irq < 1024 { 1024 * 1024 / (1024 - irq) } else { 1024 };
    scale.wrapping_mul(delta) / 1024
}

impl Kernel {
    /// `hrtick()`: the timer has expired.
    #[inline(never)]
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        self.sched.update_rq_clock(cpu, &self.cx);
        let curr = self.sched.rq[cpu].curr;
        match self.sched.tasks[curr].class {
            Class::Fair => self.task_hrtick_fair(cpu, curr),
            Class::Deadline => self.task_hrtick_dl(cpu, curr),
            _ => self.task_tick(cpu, curr),
        }
    }

    /// `task_tick_dl()` for a hrtick.
    fn task_hrtick_dl(&mut self, cpu: CpuId, curr: TaskId) {
        self.task_tick_dl(cpu);
        let runtime = self.sched.tasks[curr].dl.runtime;
        if self.cx.hrtick_enabled_dl()
            && runtime > 0
            && self.sched.is_leftmost_dl(cpu, DlNode::Task(curr))
        {
            self.hrtick_start(cpu, runtime as u64);
        }
    }

    /// A deadline task has been switched to.
    pub(crate) fn hrtick_start_dl(&mut self, cpu: CpuId, next: TaskId) {
        if self.cx.hrtick_enabled_dl() {
            // A runtime that is used up is a negative delay.
            self.hrtick_start(cpu, self.sched.tasks[next].dl.runtime.max(0) as u64);
        }
    }

    /// `hrtick_start_fair()` for a task that runs, or is just being switched to.
    pub(crate) fn hrtick_start_fair(&mut self, cpu: CpuId, task: TaskId) {
        if self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued <= 1 {
            return;
        }
        let se = &self.sched.se[self.sched.tasks[task].se];
        let vdelta = se.deadline.wrapping_sub(se.vruntime);
        if (vdelta as i64) < 0 {
            if self.sched.rq[cpu].curr == task {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            return;
        }
        let irq = self.sched.rq[cpu].avg_irq.util_avg;
        let delay = slice_left(vdelta, se.virtual_load().weight, irq);
        self.hrtick_start(cpu, delay);
    }

    /// `hrtick_update()`: a fair task has been queued.
    pub(crate) fn hrtick_update(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        if self.sched.tasks[curr].class == Class::Fair
            && !self.time.base(cpu).is_queued(TimerKind::Hrtick)
        {
            self.hrtick_start_fair(cpu, curr);
        }
    }

    /// `hrtick_start()`.
    fn hrtick_start(&mut self, cpu: CpuId, delay: Ns) {
        let delay = delay.max(SHORTEST_NS);
        if self.sched.rq[cpu].hrtick.switching {
            self.sched.rq[cpu].hrtick.delay = Some(delay);
            return;
        }
        let sent_at = self.cx.local_clock();
        self.sched.rq[cpu].hrtick.time = sent_at + delay;
        if cpu == self.cx.this_cpu {
            self.sched.hrtick_cond_restart(cpu, &mut self.time, &mut self.cx);
        } else if self.sched.hrtick_needs_rearm(cpu, &self.time)
            && self.sched.rq[cpu].hrtick.csd_at == NEVER
        {
            self.sched.rq[cpu].hrtick.csd_at = sent_at;
            self.sched.send_ipi(cpu, IpiKind::WakeList, &mut self.cpuidle, &mut self.cx);
        }
    }
}

impl Context {
    /// `hrtick_enabled_dl()`.
    fn hrtick_enabled_dl(&self) -> bool {
        self.config.features.hrtick && self.config.features.hrtick_dl
    }
}

impl Scheduler {
    /// `__hrtick_start()`: the interrupt of another CPU has arrived. What was sent later than now has one of its own.
    pub(crate) fn hrtick_csd(&mut self, cpu: CpuId, time: &mut Time, cx: &mut Context) {
        let sent_at = self.rq[cpu].hrtick.csd_at;
        if sent_at == NEVER {
            return;
        }
        if sent_at > cx.now {
            cx.wake_list_again(cpu, sent_at);
            return;
        }
        self.rq[cpu].hrtick.csd_at = NEVER;
        self.hrtick_cond_restart(cpu, time, cx);
    }

    /// `hrtick_needs_rearm()`.
    fn hrtick_needs_rearm(&self, cpu: CpuId, time: &Time) -> bool {
        match time.base(cpu).expires(TimerKind::Hrtick) {
            Some(expires) => expires.abs_diff(self.rq[cpu].hrtick.time) > TOLERANCE_NS,
            None => true,
        }
    }

    /// `hrtick_cond_restart()`, on the executing CPU.
    fn hrtick_cond_restart(&self, cpu: CpuId, time: &mut Time, cx: &mut Context) {
        if self.hrtick_needs_rearm(cpu, time) {
            let at = self.rq[cpu].hrtick.time;
            time.hrtimer_restart_lazily(cpu, at, TimerKind::Hrtick, cx);
        }
    }

    /// `hrtick_schedule_enter()`.
    pub(crate) fn hrtick_schedule_enter(&mut self, cpu: CpuId) {
        self.rq[cpu].hrtick.switching = true;
    }

    /// `hrtick_schedule_exit()`.
    pub(crate) fn hrtick_schedule_exit(&mut self, cpu: CpuId, time: &mut Time, cx: &mut Context) {
        self.rq[cpu].hrtick.switching = false;
        if let Some(delay) = self.rq[cpu].hrtick.delay.take() {
            self.rq[cpu].hrtick.time = cx.local_clock() + delay;
            self.hrtick_cond_restart(cpu, time, cx);
        } else if self.idle_cpu(cpu) {
            time.base_mut(cpu).remove_lazily(TimerKind::Hrtick);
        }
        time.hrtimer_rearm_deferred(cpu, cx);
    }
}

impl Time {
    /// `hrtimer_rearm_deferred()`: an interrupt, or the switch at its end, is over.
    #[inline(never)]
    pub(crate) fn hrtimer_rearm_deferred(&mut self, cpu: CpuId, cx: &mut Context) {
        self.base_mut(cpu).rearm_deferred();
        self.program_clock_event(cpu, cx);
    }
}
