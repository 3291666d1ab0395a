// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick and its stopping in idle (`NO_HZ_IDLE`).
//!
//! All CPUs tick on one grid of `TICK_NSEC` (no `skew_tick`). A CPU that goes idle keeps its tick
//! unless the idle governor allows stopping it; a stopped tick comes back, on the old grid, when the
//! idle loop is left.
//!
//! Kernel: 6.12.95 kernel/time/tick-sched.c.
//! Differences: no timer wheel, RCU or irq_work that needs the tick, so a tick that may stop always
//! stops, and no event is left but hrtimers.

use crate::cpuidle::states::SleepLength;
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

    /// `tick_nohz_idle_stop_tick()`.
    pub(crate) fn tick_nohz_idle_stop_tick(&mut self, cpu: CpuId) {
        let ts = &mut self.cpuidle.cpu_mut(cpu).tick;
        ts.idle_calls += 1;
        if ts.tick_stopped {
            return;
        }
        ts.tick_stopped = true;
        let tick = self.time.timers[cpu].expires(TimerKind::SchedTick);
        ts.last_tick = tick.expect("a tick that goes on is queued");
        self.time.hrtimer_cancel(cpu, TimerKind::SchedTick, &mut self.cx);
        self.sched.nohz_balance_enter_idle(cpu, &self.cx);
    }

    /// `sched_tick()`.
    fn sched_tick(&mut self, cpu: CpuId) {
        let cost = self.cx.platform.device_tree.path_costs.tick;
        self.sched.charge(cost, &mut self.cx);
        self.cx.fact(FactKind::Tick);
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
            self.sched.update_other_load_avgs(cpu, &self.cx);
        }
        if !self.sched.scx_switched_all() {
            self.sched.note_idle_at_tick(cpu);
            self.sched.sched_balance_trigger(cpu, &mut self.cpuidle, &mut self.cx);
        }
        self.vmstat_tick(cpu);
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
    /// `tick_nohz_get_sleep_length()`: time to the next timer without the tick, and to the next clock
    /// event, both from `idle_entrytime`.
    pub(crate) fn tick_nohz_get_sleep_length(&self, cpu: CpuId, cpuidle: &Cpuidle) -> SleepLength {
        let now = cpuidle.cpu(cpu).tick.idle_entrytime as i64;
        let until = |at: Ns| if at == NEVER { i64::MAX - now } else { at as i64 - now };
        let base = &self.timers[cpu];
        SleepLength {
            sleep_length_ns: until(base.next_event_without_tick()),
            delta_tick_ns: until(base.armed()),
        }
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
        if !ts.tick_stopped {
            return;
        }
        ts.tick_stopped = false;
        // tick_nohz_restart(): where it would have gone on.
        let last = ts.last_tick;
        let next = hrtimer_forward(last, cx.local_clock(), cx.tick_nsec);
        self.hrtimer_start(cpu, next, next, TimerKind::SchedTick, cx);
    }
}
