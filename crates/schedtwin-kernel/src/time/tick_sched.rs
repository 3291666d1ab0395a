// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick and its stopping in idle (`NO_HZ_IDLE`).
//!
//! All CPUs tick on one grid of `TICK_NSEC` (no `skew_tick`). A CPU that goes idle keeps its tick
//! unless the idle governor allows stopping it; a stopped tick comes back, on the old grid, when the
//! idle loop is left.
//!
//! The tick goes on although the governor would let it stop if a timer of the wheel is due within a tick, or if RCU waits on this
//! CPU. A stopped tick comes once for the first timer of the wheel.
//!
//! Kernel: 6.12.95 kernel/time/tick-sched.c; 6.1.192 where bases are marked idle by the question
//! (up to 6.8).
//! Differences: no irq_work needs the tick.

use crate::cpuidle::states::SleepLength;
use crate::softirq::Softirq;
use crate::time::hrtimer::{TimerKind, hrtimer_forward};
use crate::{Context, Cpuidle, Kernel, Time};
use schedtwin_types::{CpuId, FactKind, NEVER, Ns};

/// `struct tick_sched`, part of [`crate::cpuidle::CpuIdle`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickSched {
    /// In the idle loop.
    pub inidle: bool,
    /// The tick is stopped.
    pub tick_stopped: bool,
    /// The tick's handler has run since the governor last looked (`got_idle_tick`).
    pub got_idle_tick: bool,
    /// Start of this stay in idle: its entry, or the end of the last interrupt in it.
    pub idle_entrytime: Ns,
    /// When the tick would have come when it was stopped.
    pub last_tick: Ns,
    /// How often stopping the tick was tried (`idle_calls`).
    pub idle_calls: u64,
    /// The next event that was computed for the sleep length (`timer_expires`); 0: the tick goes on.
    pub timer_expires: Option<Ns>,
    /// When the stopped tick comes for a timer of the wheel.
    pub next_tick: Ns,
}

/// Whether the tick can be stopped, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoppedTick {
    expires: Ns,
    idle: bool,
}

impl Kernel {
    /// The tick's hrtimer has expired (`tick_nohz_handler`).
    pub(crate) fn tick_nohz_handler(&mut self, cpu: CpuId, expires: Ns) {
        let ts = &mut self.cpuidle.cpu_mut(cpu).tick;
        if ts.inidle {
            ts.got_idle_tick = true;
        }
        let stopped = ts.tick_stopped;
        let now = self.cx.local_clock();
        self.sched_tick(cpu);
        if !stopped {
            let next = hrtimer_forward(expires, now, self.cx.tick_nsec);
            self.time.hrtimer_start(cpu, next, next, TimerKind::SchedTick, &mut self.cx);
        }
    }

    /// `tick_nohz_idle_stop_tick()`. `needs_tick`: RCU waits on this CPU.
    pub(crate) fn tick_nohz_idle_stop_tick(&mut self, cpu: CpuId, needs_tick: bool) {
        let ts = &mut self.cpuidle.cpu_mut(cpu).tick;
        let expires = match ts.timer_expires.take() {
            Some(expires) => expires,
            None => self.time.tick_nohz_next_event(cpu, ts.tick_stopped, needs_tick, &self.cx),
        };
        ts.idle_calls += 1;
        if expires == 0 {
            return;
        }
        let StoppedTick { expires, idle } =
            self.time.tick_nohz_stop_tick(cpu, ts.tick_stopped, expires, &self.cx);
        if !idle {
            return;
        }
        let queued = self.time.timers[cpu].expires(TimerKind::SchedTick);
        if ts.tick_stopped {
            if expires == ts.next_tick && (expires == NEVER || queued == Some(expires)) {
                return;
            }
        } else {
            ts.last_tick = queued.expect("a tick that goes on is queued");
        }
        let was_stopped = std::mem::replace(&mut ts.tick_stopped, true);
        ts.next_tick = expires;
        let (time, tick, cx) = (&mut self.time, TimerKind::SchedTick, &mut self.cx);
        match expires {
            NEVER => time.hrtimer_cancel(cpu, tick, cx),
            expires => time.hrtimer_restart(cpu, expires, expires, tick, cx),
        }
        if !was_stopped {
            self.sched.nohz_balance_enter_idle(cpu, &self.cx);
        }
    }

    /// `tick_nohz_idle_retain_tick()`.
    #[inline]
    pub(crate) fn tick_nohz_idle_retain_tick(&mut self, cpu: CpuId) {
        self.cpuidle.cpu_mut(cpu).tick.timer_expires = None;
        if !self.cx.has_timer_hierarchy() {
            self.time.timer_clear_idle(cpu);
        }
    }

    /// `sched_tick()`.
    fn sched_tick(&mut self, cpu: CpuId) {
        let cost = self.cx.platform.device_tree.path_costs.tick;
        self.sched.charge(cost, &mut self.cx);
        self.cx.fact(FactKind::Tick);
        if self.time.timers_are_due(cpu, &self.cx) {
            self.softirqs.raise(cpu, Softirq::Timer);
        }
        self.rcu_sched_clock_irq(cpu);
        if self.cpufreq.reads_counters() {
            self.cpufreq.arch_scale_freq_tick(cpu, &mut self.sched, &self.cx);
        }
        self.sched.update_rq_clock(cpu, &self.cx);
        self.sched.update_hw_load_avg(cpu);
        self.sched.tick_ends_laziness(cpu, &mut self.cpuidle, &mut self.cx);
        let curr = self.sched.rq(cpu).curr;
        self.task_tick(cpu, curr);
        if self.cx.want_signals {
            self.sched.cpu_signals_fact(cpu, &mut self.cx);
            self.sched.task_signals_fact(curr, &mut self.cx);
        }
        if self.sched.scx_enabled() {
            self.sched.scx_tick(cpu, &self.cx);
        }
        if !self.sched.scx_switched_all() {
            self.sched.note_idle_at_tick(cpu);
            self.sched.sched_balance_trigger(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }
}

impl Cpuidle {
    /// The idle loop begins (`tick_nohz_idle_enter`).
    pub(crate) fn tick_nohz_idle_enter(&mut self, cpu: CpuId, cx: &Context) {
        let now = cx.local_clock();
        let ts = &mut self.cpu_mut(cpu).tick;
        ts.inidle = true;
        ts.idle_entrytime = now;
    }

    /// An interrupt in idle ends and idle goes on (`tick_nohz_irq_exit`).
    pub(crate) fn tick_nohz_irq_exit(&mut self, cpu: CpuId, cx: &Context) {
        self.cpu_mut(cpu).tick.idle_entrytime = cx.local_clock();
    }
}

impl Time {
    /// `tick_nohz_next_event()`: when the stopped tick has to come; 0: it must not be stopped.
    fn tick_nohz_next_event(
        &mut self,
        cpu: CpuId,
        tick_stopped: bool,
        needs_tick: bool,
        cx: &Context,
    ) -> Ns {
        if self.wheel.is_none() && !needs_tick {
            return NEVER;
        }
        let basej = cx.jiffies();
        let next = if needs_tick { basej + 1 } else { self.next_timer_event(cpu, basej, false) };
        if next != NEVER && next <= basej + 1 {
            if !cx.has_timer_hierarchy() {
                self.timer_clear_idle(cpu);
            }
            if !tick_stopped {
                return 0;
            }
        }
        cx.time_of_jiffy(next)
    }

    /// The first part of `tick_nohz_stop_tick()`: marks the bases idle, where the question before has not.
    fn tick_nohz_stop_tick(
        &mut self,
        cpu: CpuId,
        tick_stopped: bool,
        timer_expires: Ns,
        cx: &Context,
    ) -> StoppedTick {
        let marked = !cx.has_timer_hierarchy();
        if self.wheel.is_none() || marked || tick_stopped {
            return StoppedTick { expires: timer_expires, idle: true };
        }
        let next = self.next_timer_event(cpu, cx.jiffies(), true);
        let expires = cx.time_of_jiffy(next).min(timer_expires);
        StoppedTick { expires, idle: self.timer_base_is_idle(cpu).unwrap_or(true) }
    }

    /// `tick_nohz_get_sleep_length()`: time to the next timer without the tick, and to the next clock
    /// event, both from `idle_entrytime`. `needs_tick`: RCU waits on this CPU.
    pub(crate) fn tick_nohz_get_sleep_length(
        &mut self,
        cpu: CpuId,
        ts: &mut TickSched,
        needs_tick: bool,
        cx: &Context,
    ) -> SleepLength {
        let now = ts.idle_entrytime as i64;
        let uptime = now + cx.uptime_at_start() as i64;
        let until = |at: Ns| if at == NEVER { i64::MAX - uptime } else { at as i64 - now };
        let delta_tick_ns = until(self.timers[cpu].armed());
        let next = self.tick_nohz_next_event(cpu, ts.tick_stopped, needs_tick, cx);
        ts.timer_expires = Some(next);
        let sleep_length_ns = match next {
            0 => delta_tick_ns,
            next => until(next.min(self.timers[cpu].next_event_without_tick())),
        };
        SleepLength { sleep_length_ns, delta_tick_ns }
    }

    /// The idle loop is left (`tick_nohz_idle_exit`): the tick comes back on its grid.
    pub(crate) fn tick_nohz_idle_exit(
        &mut self,
        cpu: CpuId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let ts = &mut cpuidle.cpu_mut(cpu).tick;
        ts.inidle = false;
        ts.timer_expires = None;
        if !ts.tick_stopped {
            return;
        }
        ts.tick_stopped = false;
        // tick_nohz_restart(): where it would have gone on.
        let last = ts.last_tick;
        self.timer_clear_idle(cpu);
        let next = hrtimer_forward(last, cx.local_clock(), cx.tick_nsec);
        self.hrtimer_restart(cpu, next, next, TimerKind::SchedTick, cx);
    }
}
