// SPDX-License-Identifier: GPL-2.0-or-later
//! Single steps of hrtimers and of the tick on a machine whose CPUs are idle, for the differential test against the kernel's
//! own C (`conformance/`, L0 `hrtimer`).
//!
//! Each step passes on to the functions that it names. Timers have the handlers that the caller gives them, and who
//! asks for the tick is an argument. Nothing else uses this, and it decides nothing.

use super::hrtimer::{Hrtimer, TimerKind};
use super::timer::wheel::TimerId;
use super::timer::{TimerFlags, TimerFunction};
use crate::Kernel;
use crate::cpuidle::states::SleepLength;
use crate::system::SourceId;
use schedtwin_types::{CpuId, Ns};

/// hrtimers and the tick. The executing CPU and the time are those of the last [`TimeSteps::enter`].
pub struct TimeSteps<'a>(pub &'a mut Kernel);

/// The CPU's part of the wheel, as the tick asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelAnswer {
    /// The time of the next event.
    pub next: Ns,
    /// Whether the bases are marked idle afterwards.
    pub idle: bool,
}

/// What is compared of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickState {
    /// In the idle loop.
    pub inidle: bool,
    /// The tick is stopped.
    pub stopped: bool,
    /// The time that the tick would have come, if it is stopped.
    pub last_tick: Ns,
    /// `idle_calls`.
    pub idle_calls: u64,
    /// The next event, if it has been computed since the tick was last stopped or retained.
    pub timer_expires: Option<Ns>,
    /// Whether the bases of the wheel are marked idle.
    pub wheel_idle: bool,
}

impl TimeSteps<'_> {
    /// Enters the kernel on `cpu` at `now`.
    pub fn enter(&mut self, now: Ns, cpu: CpuId) {
        (self.0.cx.now, self.0.cx.this_cpu, self.0.cx.debt) = (now, cpu, 0);
    }

    fn cpu(&self) -> CpuId {
        self.0.cx.this_cpu
    }

    /// Makes a CPU busy for all that ask whether it is idle, and sets whether it is to switch.
    pub fn set_busy(&mut self, cpu: CpuId, busy: bool, need_resched: bool) {
        let rq = &mut self.0.sched.opened_mut().rq[cpu];
        (rq.ttwu_pending, rq.need_resched) = (busy, need_resched);
        self.0.sched.refresh_idle(cpu);
    }

    /// Starts a timer that is not queued (`hrtimer_start_range_ns()`) and that was last on `last`; the CPU where it is queued.
    pub fn start(&mut self, kind: TimerKind, (soft, hard): (Ns, Ns), last: Option<CpuId>) -> CpuId {
        let on = last.map_or(self.cpu(), |last| self.0.hrtimer_target(kind, hard, last));
        self.0.time.hrtimer_start(on, soft, hard, kind, &mut self.0.cx);
        on
    }

    /// Starts a timer that is queued on this CPU again, and keeps it here.
    pub fn restart(&mut self, kind: TimerKind, (soft, hard): (Ns, Ns)) {
        let cpu = self.cpu();
        self.0.time.hrtimer_restart(cpu, soft, hard, kind, &mut self.0.cx);
    }

    /// Starts a timer of this CPU that is armed lazily (`hrtick_cond_restart()`).
    pub fn start_lazily(&mut self, kind: TimerKind, expires: Ns) {
        let cpu = self.cpu();
        self.0.time.hrtimer_restart_lazily(cpu, expires, kind, &mut self.0.cx);
    }

    /// `hrtimer_try_to_cancel()`, of a timer that is queued on `on`.
    pub fn cancel(&mut self, kind: TimerKind, on: CpuId) {
        self.0.time.hrtimer_cancel(on, kind, &mut self.0.cx);
    }

    /// The same of a timer of this CPU that is armed lazily.
    pub fn cancel_lazily(&mut self, kind: TimerKind) {
        let cpu = self.cpu();
        self.0.time.timers[cpu].remove_lazily(kind);
        self.0.time.program_clock_event(cpu, &mut self.0.cx);
    }

    /// `hrtimer_interrupt()`, with these handlers of all timers but the tick.
    pub fn interrupt(&mut self, mut run: impl FnMut(&mut TimeSteps<'_>, Hrtimer)) {
        self.0.hrtimer_interrupt_with(|kernel, cpu, timer| match timer.kind {
            TimerKind::SchedTick => kernel.run_hrtimer(cpu, timer),
            _ => run(&mut TimeSteps(kernel), timer),
        });
    }

    /// `__hrtimer_rearm_deferred()`.
    pub fn rearm(&mut self) {
        let cpu = self.cpu();
        self.0.time.hrtimer_rearm_deferred(cpu, &mut self.0.cx);
    }

    /// Where a timer is queued and when it expires, soft and hard.
    pub fn queued(&self, kind: TimerKind, cpus: u16) -> Option<(CpuId, Ns, Ns)> {
        (0..cpus).map(CpuId).find_map(|cpu| {
            let timer = self.0.time.timers[cpu].timer(kind)?;
            Some((cpu, timer.soft_expires, timer.expires))
        })
    }

    /// The earliest timer of this CPU.
    pub fn first(&self) -> Option<Hrtimer> {
        self.0.time.timers[self.cpu()].first().copied()
    }

    /// The programmed clock event of a CPU.
    pub fn clock_event(&self, cpu: CpuId) -> Ns {
        self.0.cx.platform.wires[cpu].clock_event_at
    }

    /// When a CPU's tick comes, if it is queued.
    pub fn tick_expires(&self, cpu: CpuId) -> Option<Ns> {
        self.0.time.timers[cpu].expires(TimerKind::SchedTick)
    }

    /// `get_nohz_timer_target()`.
    pub fn nohz_timer_target(&self) -> CpuId {
        self.0.sched.nohz_timer_target(self.cpu())
    }

    /// `hrtimer_next_event_without()` the tick.
    pub fn next_event_without_tick(&self) -> Ns {
        self.0.time.timers[self.cpu()].next_event_without_tick()
    }

    /// Makes the wheel with a timer that is pinned and one that is not. Its jiffies count from boot, as those of the C.
    pub fn make_wheel(&mut self) -> [TimerId; 2] {
        self.0.time.init_timers(0, &self.0.cx);
        [true, false].map(|pinned| {
            let flags = TimerFlags { pinned, ..TimerFlags::default() };
            self.0.time.timer_setup(TimerFunction::Source(SourceId(0)), flags)
        })
    }

    /// Arms a timer of the wheel on this CPU so many jiffies from now, or deletes it.
    pub fn set_wheel_timer(&mut self, timer: TimerId, delay: Option<u64>) {
        match delay {
            Some(delay) => {
                let expires = self.0.cx.jiffies() + delay;
                self.0.add_timer_on(timer, expires, self.cpu());
            }
            None => _ = self.0.time.timer_delete(timer),
        }
    }

    /// Asks a copy of the wheel for the next event and, with `stops`, as if the tick were about to be stopped after that.
    pub fn wheel_answers(&self, asks: bool, stops: bool) -> [WheelAnswer; 2] {
        let mut time = self.0.time.clone();
        let (cpu, cx) = (self.cpu(), &self.0.cx);
        let mut answer = |asked: bool, stops: bool| {
            let jiffy =
                if asked { time.next_timer_event(cpu, cx.jiffies(), stops) } else { Ns::MAX };
            let next = jiffy.saturating_mul(cx.tick_nsec);
            WheelAnswer { next, idle: time.timer_base_is_idle(cpu).unwrap_or(true) }
        };
        [answer(asks, false), answer(stops, true)]
    }

    /// `tick_nohz_idle_enter()`.
    pub fn idle_enter(&mut self) {
        self.0.cpuidle.tick_nohz_idle_enter(self.cpu(), &self.0.cx);
    }

    /// `tick_nohz_irq_exit()`.
    pub fn irq_exit(&mut self) {
        self.0.cpuidle.tick_nohz_irq_exit(self.cpu(), &self.0.cx);
    }

    /// `tick_nohz_get_sleep_length()`.
    pub fn sleep_length(&mut self, needs_tick: bool) -> SleepLength {
        let (cpu, kernel) = (self.cpu(), &mut *self.0);
        let tick = &mut kernel.cpuidle.cpu_mut(cpu).tick;
        kernel.time.tick_nohz_get_sleep_length(cpu, tick, needs_tick, &kernel.cx)
    }

    /// `tick_nohz_idle_stop_tick()`.
    pub fn stop_tick(&mut self, needs_tick: bool) {
        self.0.tick_nohz_idle_stop_tick(self.cpu(), needs_tick);
    }

    /// `tick_nohz_idle_retain_tick()`.
    pub fn retain_tick(&mut self) {
        self.0.tick_nohz_idle_retain_tick(self.cpu());
    }

    /// `tick_nohz_idle_exit()`.
    pub fn idle_exit(&mut self) {
        let (cpu, kernel) = (self.cpu(), &mut *self.0);
        kernel.time.tick_nohz_idle_exit(cpu, &mut kernel.cpuidle, &mut kernel.cx);
    }

    /// `tick_nohz_idle_got_tick()`.
    pub fn got_tick(&mut self) -> bool {
        std::mem::take(&mut self.0.cpuidle.cpu_mut(self.cpu()).tick.got_idle_tick)
    }

    /// What is compared of a CPU's tick.
    pub fn tick(&self, cpu: CpuId) -> TickState {
        let tick = self.0.cpuidle.cpu(cpu).tick;
        TickState {
            inidle: tick.inidle,
            stopped: tick.tick_stopped,
            last_tick: if tick.tick_stopped { tick.last_tick } else { 0 },
            idle_calls: tick.idle_calls,
            timer_expires: tick.timer_expires,
            wheel_idle: self.0.time.timer_base_is_idle(cpu).unwrap_or(false),
        }
    }

    /// `TICK_NSEC`.
    pub fn tick_nsec(&self) -> Ns {
        self.0.cx.tick_nsec
    }
}
