// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair server: the deadline entity that keeps fair tasks from starving.
//!
//! Each CPU has one: 50 ms of fair time per second, *deferred*: while fair tasks run anyway it only watches
//! and pushes its timer on; only when a second is nearly over and RT tasks have left them less than 50 ms
//! does it become runnable itself.
//!
//! Its bandwidth has effects everywhere: while the server is active, `running_bw` holds 52428 (5 %
//! of 2^20), a minimum of 51 for schedutil's request and for EAS's highest utilisation, also on an
//! idle CPU until the timer finds out, up to about a second after the last fair task.
//!
//! ```text
//!  A inactive ──start──► B waiting ──timer, starved──► D enqueued ──used up──► E throttled
//!      ▲                  │  ▲ └── timer, not starved: timer again                 │ timer
//!      │                  │  └── fair time consumed the runtime: new period        ▼
//!      └──── no fair task at pick ◄────────────────────────────────────────────── D
//! ```
//!
//! In 6.18 a server that is queued does not count as a task, so that an idle CPU keeps its idle task when the timer has queued
//! the server: it stays queued, and its minimum lasts, until a pick for another reason meets it, or
//! fair tasks use its runtime up. A server that has used up its runtime so late that its timer
//! cannot be set begins a new period then.
//!
//! `fair_server/v7_3.rs` has the differences of 7.3, most of them on idle CPUs.
//!
//! Kernel: 6.12.95, 6.18.44 and 7.3.4 kernel/sched/deadline.c `dl_server_start`, `dl_server_update`, `dl_server_timer`,
//! `enqueue_dl_entity`, `update_dl_entity`, `replenish_dl_entity`, `task_non_contending`.
//! Differences: Linux has two timers, `dl_timer` and `inactive_timer`; since a stop cancels the first and a
//! start the second, at most one of them is queued up to 6.18, and there they are one here. A server whose timer sits on
//! another CPU is cancelled together with that CPU's clock event, which Linux would let fire for nothing.

#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
mod v7_3;

use crate::config::{Config, FairServerForm};
use crate::sched::deadline::dl_bw::dl_bw_capacity;
use crate::sched::deadline::{DlNode, dl_entity_overflow, dl_time_before, to_ratio};
use crate::sched::{CfsRqId, Class};
use crate::time::hrtimer::{TimerKind, hrtimer_forward};
use crate::{Context, Cpuidle, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, Ns};

/// `dl_server_min_res`: 1 ms.
const DL_SERVER_MIN_RES: i64 = 1_000_000;

/// The server's entity (`struct sched_dl_entity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairServer {
    /// Runtime per period; 0 = the server is off.
    dl_runtime: Ns,
    /// Period and relative deadline.
    dl_period: Ns,
    /// Remaining runtime.
    runtime: i64,
    /// Absolute deadline, on `rq.clock`.
    deadline: u64,
    active: bool,
    throttled: bool,
    defer_armed: bool,
    defer_running: bool,
    queued: bool,
    /// 7.3, state C: the CPU has been idle for all of its runtime, and stops the server at the timer.
    defer_idle: bool,
    /// Counted in `running_bw` beyond its stop, until its zero-lag time.
    non_contending: bool,
    /// The CPU on which its timer is (or was last) queued.
    timer_on: CpuId,
    /// 7.3: the CPU of the second timer, for the zero-lag time.
    inactive_on: CpuId,
    /// Its timer's handler is running: a restart stays on that CPU, and nothing can be cancelled.
    callback_running: bool,
}

impl Config {
    /// Whether Linux lets fair servers of these parameters be set on every CPU of a machine with these capacities.
    ///
    /// ```
    /// use schedtwin_kernel::config::Config;
    ///
    /// let config = Config { fair_server_runtime: 500_000_000, ..Config::linux_6_12() };
    /// assert!(config.admits_fair_servers(&[1024; 8]));
    /// assert!(!config.admits_fair_servers(&[250, 250, 250, 1024]));
    /// ```
    ///
    /// `__dl_overflow()` for a server on every CPU: all of them together stay within what `rt_runtime` per
    /// `rt_period` leaves to DEADLINE.
    pub fn admits_fair_servers(&self, capacities: &[u64]) -> bool {
        !self.dl_bw(capacities.len()).overflows(dl_bw_capacity(capacities), 0, 0)
    }
}

impl FairServer {
    /// A server that has never run.
    pub fn new(runtime: Ns, period: Ns) -> FairServer {
        FairServer { dl_runtime: runtime, dl_period: period, ..FairServer::default() }
    }

    /// `dl_server_active()`.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// State D: runnable as a deadline entity.
    #[inline(always)]
    pub fn is_queued(&self) -> bool {
        self.queued
    }

    /// `dl_bw`: what it has reserved, 2^20 = a whole CPU.
    pub(crate) fn bandwidth(&self) -> u64 {
        to_ratio(self.dl_period, self.dl_runtime)
    }

    /// Would what is left exceed its rate until the deadline?
    fn overflows(&self, clock: u64) -> bool {
        dl_entity_overflow(self.dl_period, self.dl_runtime, self.runtime, self.deadline, clock)
    }

    /// The absolute deadline.
    #[inline(always)]
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// `replenish_dl_new_period()`.
    fn new_period(&mut self, clock: u64) {
        self.deadline = clock + self.dl_period;
        self.runtime = self.dl_runtime as i64;
        if !self.defer_running {
            self.throttled = true;
            self.defer_armed = true;
        }
    }

    /// `replenish_dl_entity()`.
    fn replenish(&mut self, clock: u64) {
        if self.defer_armed && self.overflows(clock) {
            self.deadline = clock + self.dl_period;
            self.runtime = self.dl_runtime as i64;
        }
        while self.runtime <= 0 {
            self.deadline += self.dl_period;
            self.runtime += self.dl_runtime as i64;
        }
        if self.deadline < clock {
            self.new_period(clock);
        }
        self.throttled = false;
        if self.defer_armed {
            self.defer_armed = false;
        } else if !self.defer_running && (clock as i64) < self.deadline as i64 - self.runtime {
            self.defer_armed = true;
            self.throttled = true;
        }
    }

    /// `update_dl_entity()`: at a start.
    fn update(&mut self, clock: u64) {
        let passed = self.deadline < clock;
        if passed || self.overflows(clock) {
            if self.defer_running && !passed {
                // update_dl_revised_wakeup(): as much as its density allows until the deadline.
                let density = self.bandwidth();
                let laxity = self.deadline - clock;
                self.runtime = ((density as u128 * laxity as u128) >> 20) as i64;
                return;
            }
            self.defer_running = false;
            self.new_period(clock);
        } else if !self.defer_running {
            self.defer_armed = true;
            self.throttled = true;
        }
    }

    /// When the timer is due (`start_dl_timer`).
    fn timer_at(&self) -> Ns {
        if self.defer_armed {
            (self.deadline as i64 - self.runtime).max(0) as Ns
        } else {
            // dl_next_period(): deadline − relative deadline + period.
            self.deadline
        }
    }
}

impl Kernel {
    /// `start_dl_timer()`; `false`: its time has passed.
    fn fair_server_start_timer(&mut self, cpu: CpuId) -> bool {
        let at = self.sched.rq[cpu].fair_server.timer_at();
        let clock = self.sched.rq[cpu].clock;
        // ktime_us_delta() < 0: a microsecond's fraction is cut.
        if at + 1000 <= clock {
            return false;
        }
        // The deadline is a time of the run queue's clock, which may be behind the timers'.
        self.fair_server_arm(cpu, at + self.cx.local_clock().saturating_sub(clock));
        true
    }

    /// `hrtimer_start()` of the server's timer, unless it is queued.
    fn fair_server_arm(&mut self, cpu: CpuId, at: Ns) {
        let server = &self.sched.rq[cpu].fair_server;
        let kind = TimerKind::FairServer(cpu);
        if self.time.base(server.timer_on).is_queued(kind) {
            return;
        }
        let last = server.timer_on;
        let on = if server.callback_running { last } else { self.hrtimer_target(kind, at, last) };
        self.sched.rq[cpu].fair_server.timer_on = on;
        self.time.hrtimer_start(on, at, at, kind, &mut self.cx);
    }

    /// The tail of `enqueue_dl_entity()`: throttled entities wait for the timer, others are queued.
    fn fair_server_enqueue(&mut self, cpu: CpuId) {
        if self.sched.rq[cpu].fair_server.throttled {
            if self.fair_server_start_timer(cpu) {
                return;
            }
            self.sched.fair_server_cancel_timer(cpu, &mut self.time, &mut self.cx);
            let server = &mut self.sched.rq[cpu].fair_server;
            server.defer_armed = false;
            server.throttled = false;
        }
        if !self.sched.rq[cpu].fair_server.queued {
            self.sched.rq[cpu].fair_server.queued = true;
            self.sched.insert_dl_entity(cpu, DlNode::FairServer, &self.cx);
        }
    }

    /// `dl_server_start()`: the first fair task has been queued.
    #[inline(always)]
    pub(crate) fn fair_server_start(&mut self, cpu: CpuId) {
        let server = &mut self.sched.rq[cpu].fair_server;
        server.defer_idle = false;
        if server.dl_runtime != 0 && !server.active {
            self.fair_server_begins(cpu);
        }
    }

    #[inline(never)]
    fn fair_server_begins(&mut self, cpu: CpuId) {
        if self.cx.config.fair_server_form == FairServerForm::V7_3 {
            self.update_curr_of_class(cpu);
        }
        let server = &self.sched.rq[cpu].fair_server;
        let was_waiting = server.non_contending;
        let first = server.deadline == 0;
        self.sched.rq[cpu].fair_server.active = true;
        // task_contending(): its bandwidth counts (again).
        if was_waiting {
            self.sched.rq[cpu].fair_server.non_contending = false;
            match self.cx.config.fair_server_form {
                FairServerForm::V6_12 | FairServerForm::V6_18 => {
                    self.sched.fair_server_cancel_timer(cpu, &mut self.time, &mut self.cx)
                }
                FairServerForm::V7_3 => {
                    self.sched.fair_server_cancel_inactive(cpu, &mut self.time, &mut self.cx)
                }
            }
        } else {
            let bw = self.sched.rq[cpu].fair_server.bandwidth();
            self.__add_running_bw(cpu, bw);
        }
        let clock = self.sched.rq[cpu].clock;
        if first {
            // setup_new_dl_entity()
            self.sched.rq[cpu].fair_server.new_period(clock);
        }
        self.sched.rq[cpu].fair_server.update(clock);
        self.fair_server_enqueue(cpu);
        self.sched.fair_server_resched(cpu, &mut self.cpuidle, &mut self.cx);
    }

    /// `dl_server_stop()`: no fair task is left when the server is picked.
    pub(crate) fn fair_server_stop(&mut self, cpu: CpuId) {
        let server = &self.sched.rq[cpu].fair_server;
        if server.dl_runtime == 0 || !server.active {
            return;
        }
        self.sched.fair_server_dequeue(cpu, &self.cx);
        self.sched.fair_server_cancel_timer(cpu, &mut self.time, &mut self.cx);
        let clock = self.sched.rq[cpu].clock;
        let server = &mut self.sched.rq[cpu].fair_server;
        server.defer_armed = false;
        server.throttled = false;
        server.defer_idle = false;
        server.active = false;
        // task_non_contending(): its bandwidth counts until the zero-lag time.
        // The product wraps as C's does: of two numbers around 2^32 ns it has more than 63 bits.
        let product = server.runtime.wrapping_mul(server.dl_period as i64);
        let consumed = product / server.dl_runtime as i64;
        let zero_lag = server.deadline as i64 - consumed - clock as i64;
        if zero_lag < 0 {
            let bw = self.sched.rq[cpu].fair_server.bandwidth();
            self.__sub_running_bw(cpu, bw);
        } else {
            server.non_contending = true;
            let at = self.cx.local_clock() + zero_lag as u64;
            match self.cx.config.fair_server_form {
                FairServerForm::V6_12 | FairServerForm::V6_18 => self.fair_server_arm(cpu, at),
                FairServerForm::V7_3 => self.fair_server_arm_inactive(cpu, at),
            }
        }
    }

    /// `dl_server_update()`: fair time was used, or since 7.3 idle time.
    pub(crate) fn fair_server_update(&mut self, cpu: CpuId, delta: i64) {
        let clock = self.sched.rq[cpu].clock;
        // Only 7.3 comes here from an idle CPU.
        let idle = self.sched.idle_cpu(cpu);
        let charge = self.sched.fair_server_charge(cpu, delta, &self.cx);
        let server = &mut self.sched.rq[cpu].fair_server;
        if server.dl_runtime == 0 {
            return;
        }
        server.runtime -= charge;
        server.defer_idle &= idle;
        if server.runtime > 0 {
            return;
        }
        if server.throttled {
            if server.defer_idle {
                // The timer will stop it, and a start before that goes on from the deadline.
                server.runtime = 0;
                return;
            }
            // Fair tasks got their time without help: the period starts over.
            server.defer_running = false;
            server.new_period(clock);
            server.defer_idle = idle;
            self.sched.fair_server_cancel_timer(cpu, &mut self.time, &mut self.cx);
            self.fair_server_start_timer(cpu);
            return;
        }
        server.throttled = true;
        self.sched.fair_server_dequeue(cpu, &self.cx);
        if !self.fair_server_start_timer(cpu) {
            match self.cx.config.fair_server_form {
                FairServerForm::V6_12 => self.fair_server_replenish(cpu),
                FairServerForm::V6_18 | FairServerForm::V7_3 => {
                    self.sched.rq[cpu].fair_server.new_period(clock);
                    self.fair_server_start_timer(cpu);
                }
            }
        }
        if !self.sched.is_leftmost_dl(cpu, DlNode::FairServer) {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `put_prev_task_idle()`: the CPU leaves its idle task.
    pub(crate) fn fair_server_idle_ends(&mut self, cpu: CpuId) {
        match self.cx.config.fair_server_form {
            FairServerForm::V6_12 | FairServerForm::V6_18 => {
                self.sched.fair_server_update_idle_time(cpu, &self.cx)
            }
            FairServerForm::V7_3 => self.update_curr_idle(cpu),
        }
    }

    /// `task_tick_idle()`.
    pub(crate) fn task_tick_idle(&mut self, cpu: CpuId) {
        if self.cx.config.fair_server_form == FairServerForm::V7_3 {
            self.update_curr_idle(cpu);
        }
    }

    /// `replenish_dl_entity()` and the queueing after it.
    fn fair_server_replenish(&mut self, cpu: CpuId) {
        let clock = self.sched.rq[cpu].clock;
        self.sched.rq[cpu].fair_server.replenish(clock);
        self.fair_server_enqueue(cpu);
    }

    /// `dl_server_timer()` or, after a stop, `inactive_task_timer()`. `expires`: when it was due.
    #[inline(never)]
    pub(crate) fn fair_server_timer(&mut self, cpu: CpuId, expires: Ns) {
        let one_timer = self.cx.config.fair_server_form != FairServerForm::V7_3;
        if one_timer && self.sched.rq[cpu].fair_server.non_contending {
            return self.fair_server_inactive_timer(cpu);
        }
        let server = &self.sched.rq[cpu].fair_server;
        if !server.throttled || server.dl_runtime == 0 {
            return;
        }
        self.sched.update_rq_clock(cpu, &self.cx);
        if self.cx.config.bugs.fair_server_stuck
            && self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued == 0
        {
            let clock = self.sched.rq[cpu].clock;
            self.sched.rq[cpu].fair_server.replenish(clock);
            return;
        }
        if !one_timer && self.fair_server_timer_charges(cpu) {
            return;
        }
        let now = self.cx.local_clock();
        let clock = self.sched.rq[cpu].clock;
        let server = &mut self.sched.rq[cpu].fair_server;
        if server.defer_armed {
            let due = server.deadline as i64 - server.runtime;
            if (clock as i64) < due - DL_SERVER_MIN_RES {
                // By what is missing from now, added to when it was due: a little early.
                let at = hrtimer_forward(expires, now, (due - clock as i64) as u64);
                let on = server.timer_on;
                // What the timer has charged may have started it again.
                if !self.time.base(on).is_queued(TimerKind::FairServer(cpu)) {
                    self.time.hrtimer_start(on, at, at, TimerKind::FairServer(cpu), &mut self.cx);
                }
                return;
            }
            server.defer_running = true;
        }
        server.callback_running = true;
        self.fair_server_replenish(cpu);
        self.sched.rq[cpu].fair_server.callback_running = false;
        self.sched.fair_server_resched(cpu, &mut self.cpuidle, &mut self.cx);
        self.push_dl_task(cpu);
    }
}

impl Scheduler {
    /// What `delta` of fair or idle time takes off the runtime.
    #[inline(always)]
    fn fair_server_charge(&self, cpu: CpuId, delta: i64, cx: &Context) -> i64 {
        match cx.config.bugs.fair_server_scaled {
            true => self.scaled_charge(cpu, delta),
            false => delta,
        }
    }

    fn fair_server_cancel_timer(&self, cpu: CpuId, time: &mut Time, cx: &mut Context) {
        let server = &self.rq[cpu].fair_server;
        if !server.callback_running {
            time.hrtimer_cancel(server.timer_on, TimerKind::FairServer(cpu), cx);
        }
    }

    fn fair_server_dequeue(&mut self, cpu: CpuId, cx: &Context) {
        if self.rq[cpu].fair_server.queued {
            self.rq[cpu].fair_server.queued = false;
            self.remove_dl_entity(cpu, DlNode::FairServer, cx);
        }
    }

    /// Preempts the running task, unless it is a deadline task with an earlier deadline.
    fn fair_server_resched(&mut self, cpu: CpuId, cpuidle: &mut Cpuidle, cx: &mut Context) {
        let curr = &self.tasks[self.rq[cpu].curr];
        let deadline = self.rq[cpu].fair_server.deadline;
        if curr.class != Class::Deadline || dl_time_before(deadline, curr.dl.deadline) {
            self.resched_curr(cpu, cpuidle, cx);
        }
    }

    /// `enqueue_task_fair()`: the first task of an idle CPU, before the server starts.
    pub(crate) fn fair_server_before_start(&mut self, cpu: CpuId, cx: &Context) {
        if cx.config.fair_server_form != FairServerForm::V7_3 {
            self.fair_server_update_idle_time(cpu, cx);
        }
    }

    /// `dl_server_update_idle_time()`: charges idle time to the server as if fair tasks had run.
    /// During newidle balancing `curr` is still the previous task, already charged, so nothing is
    /// added. A deadline task that runs on after it was throttled counts as idle, and is not charged for that time.
    fn fair_server_update_idle_time(&mut self, cpu: CpuId, cx: &Context) {
        let class = self.tasks[self.rq[cpu].curr].class;
        let rq = &mut self.rq[cpu];
        let exec_start = match class {
            Class::Idle => &mut rq.idle_exec_start,
            Class::Deadline => rq.dl.exec_start_mut(),
            _ => return,
        };
        let delta = rq.clock_task as i64 - *exec_start as i64;
        if rq.fair_server.runtime < 0 || delta < 0 {
            return;
        }
        *exec_start = rq.clock_task;
        let charge = self.fair_server_charge(cpu, delta, cx);
        let rq = &mut self.rq[cpu];
        rq.fair_server.runtime -= charge;
        if rq.fair_server.runtime < 0 {
            rq.fair_server.defer_running = false;
            rq.fair_server.runtime = 0;
        }
    }
}

impl Context {
    /// Whether a server that is queued counts as a task of its CPU.
    pub(crate) fn fair_server_is_counted(&self) -> bool {
        self.config.fair_server_form == FairServerForm::V6_12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_server_is_a_floor_of_51() {
        let server = FairServer::new(50_000_000, 1_000_000_000);
        assert_eq!((server.bandwidth() * 1024) >> 20, 51);
    }

    #[test]
    fn a_first_start_waits_for_the_end_of_its_period() {
        let mut server = FairServer::new(50_000_000, 1_000_000_000);
        server.new_period(7_000);
        server.update(7_000);
        assert!(server.throttled && server.defer_armed);
        assert_eq!(server.timer_at(), 7_000 + 950_000_000);
    }

    /// Runtime over time left above 50 ms over 1 s; a deadline that has passed wraps, as in C.
    #[test]
    fn overflow() {
        let mut server = FairServer::new(50_000_000, 1_000_000_000);
        for (runtime, left, overflows) in [
            (50_000_000, 1_000_000_000, false),
            (50_000_000, 999_000_000, true),
            (10_000_000, 200_000_000, false),
            (10_000_000, 199_000_000, true),
            (0, 100, false),
            (0, -50_000, true),
        ] {
            server.runtime = runtime;
            server.deadline = (5_000_000_000i64 + left) as u64;
            assert_eq!(server.overflows(5_000_000_000), overflows, "{runtime} {left}");
        }
    }

    /// A restart before the deadline goes on with the runtime that is left, waiting; a restart
    /// after it begins a new period.
    #[test]
    fn a_restart_keeps_its_deadline() {
        let mut server = FairServer::new(50_000_000, 1_000_000_000);
        (server.deadline, server.runtime) = (1_000_000_000, 20_000_000);
        server.update(400_000_000);
        assert!(server.throttled && server.defer_armed);
        assert_eq!((server.deadline, server.runtime), (1_000_000_000, 20_000_000));
        assert_eq!(server.timer_at(), 980_000_000);
        // Too much is left for the time that is left: a new period, unless it was running: then less.
        server.update(900_000_000);
        assert_eq!((server.deadline, server.runtime), (1_900_000_000, 50_000_000));
        let mut server = FairServer::new(50_000_000, 1_000_000_000);
        (server.deadline, server.runtime, server.defer_running) = (1_000_000_000, 20_000_000, true);
        server.update(900_000_000);
        assert!(!server.throttled && !server.defer_armed);
        assert_eq!((server.deadline, server.runtime), (1_000_000_000, 4_999_923));
    }
}
