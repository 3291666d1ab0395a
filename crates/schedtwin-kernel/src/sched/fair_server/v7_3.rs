// SPDX-License-Identifier: GPL-2.0-or-later
//! The treatment of idle time in the fair server of 7.3.
//!
//! **Idea.** A CPU that idles leaves fair tasks all the time that they could want, so idle time is charged like theirs: when the
//! idle task is left, at each tick in idle, and when the server's timer looks. Runtime that goes into idling begins a new
//! period, and marks the server (`defer_idle`, state C): if the CPU is still idle at the timer, the server stops instead of
//! becoming runnable for nobody. Busy time takes the mark away.
//!
//! ```text
//! 3 ms of work at 0, then idle without ticks           6.12: timer 950, again 953, runnable, stopped: floor until 953
//!                                                      7.3:  timer 950: charges 947 ms, marks, stops: floor until 950
//! ```
//!
//! **Two timers.** A stop within the timer's own handler cannot cancel what the charge has just armed there, so a timer is left
//! over: one more interrupt of the idle CPU, which finds nothing; and if the server has started meanwhile, it is kept and comes
//! early. The zero-lag time has a timer of its own.
//!
//! Kernel: 7.3.4 kernel/sched/deadline.c `dl_server_update_idle`, `dl_server_timer`, `inactive_task_timer`; kernel/sched/idle.c
//! `update_curr_idle`.

use crate::sched::Class;
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, Ns};

impl Kernel {
    /// `update_curr_idle()`: the idle task of `cpu` has run since it was last asked.
    pub(super) fn update_curr_idle(&mut self, cpu: CpuId) {
        let rq = &mut self.sched.rq[cpu];
        let delta = rq.clock_task as i64 - rq.idle_exec_start as i64;
        if delta <= 0 {
            return;
        }
        rq.idle_exec_start = rq.clock_task;
        if rq.fair_server.active {
            self.fair_server_update(cpu, delta);
        }
    }

    /// `sched_class->update_curr()` of the task that runs on `cpu`.
    pub(in crate::sched) fn update_curr_of_class(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        match self.sched.tasks[curr].class {
            Class::Idle => self.update_curr_idle(cpu),
            Class::Fair => {
                let mut level = Some(self.sched.tasks[curr].se);
                while let Some(se) = level {
                    self.update_curr(self.sched.se[se].cfs_rq);
                    level = self.sched.se[se].parent;
                }
            }
            Class::Ext => self.update_curr_scx(cpu),
            Class::Rt => self.update_curr_rt(cpu),
            Class::Deadline => self.update_curr_dl(cpu),
            Class::Stop => {}
        }
    }

    /// The first half of `dl_server_timer()`: charges what has run, and stops the server of an idle CPU; whether it did.
    pub(super) fn fair_server_timer_charges(&mut self, cpu: CpuId) -> bool {
        self.sched.rq[cpu].fair_server.callback_running = true;
        self.update_curr_of_class(cpu);
        let idle = self.sched.rq[cpu].fair_server.defer_idle;
        if idle {
            self.fair_server_stop(cpu);
        }
        self.sched.rq[cpu].fair_server.callback_running = false;
        idle
    }

    /// `hrtimer_start()` of the timer for the zero-lag time.
    pub(super) fn fair_server_arm_inactive(&mut self, cpu: CpuId, at: Ns) {
        let kind = TimerKind::FairServerInactive(cpu);
        let on = self.hrtimer_target(kind, at, self.sched.rq[cpu].fair_server.inactive_on);
        self.sched.rq[cpu].fair_server.inactive_on = on;
        self.time.hrtimer_start(on, at, at, kind, &mut self.cx);
    }

    /// `inactive_task_timer()`: the zero-lag time of a stopped server has come.
    pub(crate) fn fair_server_inactive_timer(&mut self, cpu: CpuId) {
        self.sched.update_rq_clock(cpu, &self.cx);
        if std::mem::take(&mut self.sched.rq[cpu].fair_server.non_contending) {
            let bw = self.sched.rq[cpu].fair_server.bandwidth();
            self.__sub_running_bw(cpu, bw);
        }
    }
}

impl Scheduler {
    pub(super) fn fair_server_cancel_inactive(
        &self,
        cpu: CpuId,
        time: &mut Time,
        cx: &mut Context,
    ) {
        let on = self.rq[cpu].fair_server.inactive_on;
        time.hrtimer_cancel(on, TimerKind::FairServerInactive(cpu), cx);
    }
}
