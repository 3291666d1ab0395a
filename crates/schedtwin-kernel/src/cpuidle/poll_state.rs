// SPDX-License-Identifier: GPL-2.0-or-later
//! The polling idle state: a loop that watches `need_resched` instead of sleeping.
//!
//! On x86 it is state 0, "POLL": nothing is faster to leave, and nothing draws more.
//!
//! **A wakeup without an interrupt.** While it polls, the idle task has `TIF_POLLING_NRFLAG` set. Who wants
//! something of the CPU, writes `need_resched` and sends nothing; the loop sees the write and ends, and what
//! was wanted is done on the way out of the idle loop.
//!
//! ```text
//!  cpu0   wakes a task for cpu1: need_resched = 1
//!                                     │ (no interrupt)
//!  cpu1   ── poll ────────────────────┴─ reflect ─ tick back ─ calls that wait ─ schedule ── task
//!                  └─ limit: gives up, asks the governor again
//! ```
//!
//! **How long.** Until the *poll limit*: the target residency of the first enabled deeper state that is worth
//! 10 µs, at most 1/16 tick. It is computed once, so that switching states off later does not alter it;
//! haltpoll sets its own. A loop that reaches its limit says so (`poll_time_limit`), since it was a safety net
//! and not an event that ended it.
//!
//! **Interrupts** are on in the loop. One that asks for no reschedule leaves the CPU polling, within the same
//! stay, and counts into its residency.
//!
//! Kernel: 6.12 drivers/cpuidle/poll_state.c `poll_idle`, drivers/cpuidle/cpuidle.c `cpuidle_poll_time`,
//! kernel/smp.c `flush_smp_call_function_queue`, kernel/sched/core.c `set_nr_if_polling`; the same in 6.1.
//! Differences: the clock is looked at all the time, not every 201 turns of the loop: who counts the
//! microseconds beyond the limit notices (up to 7 where a turn is 140 cycles long). The flag is set in the
//! loop only, not on the whole way round the idle loop, where an interrupt is sent that Linux saves.
//!
//! **Asleep.** A state that MWAIT enters (`mwait_idle_with_hints()`) watches the flag as well. A write ends it as an interrupt
//! would, after the way out of the state; no interrupt is sent, none is taken.

use super::CpuIdle;
use crate::config::Bugs;
use crate::{Activity, Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, IpiKind, IrqLine, IrqLines, NEVER, Ns};

/// No residency below this is a limit (`CPUIDLE_POLL_MIN`).
const CPUIDLE_POLL_MIN: Ns = 10_000;
/// Stands for no limit, an hour: every idle period ends before.
const NO_POLL_LIMIT: Ns = 3_600_000_000_000;

impl CpuIdle {
    /// How long to poll (`cpuidle_poll_time()`).
    pub(super) fn poll_time(&mut self, tick_nsec: Ns, bugs: &Bugs) -> Ns {
        if bugs.poll_without_limit {
            return NO_POLL_LIMIT;
        }
        let CpuIdle { governor, states, poll_limit_ns, .. } = self;
        // The governor's own limit is the device's as well.
        let limit_ns = governor.poll_limit_ns().unwrap_or(poll_limit_ns);
        if *limit_ns == 0 {
            // CPUIDLE_POLL_MAX
            let max = tick_nsec / 16;
            let worth = |ns: &Ns| *ns >= CPUIDLE_POLL_MIN || bugs.poll_too_short;
            let deeper = states[1..].iter().filter(|s| !s.disabled).map(|s| s.target_residency_ns);
            *limit_ns = deeper.filter(worth).map(|ns| ns.min(max)).next().unwrap_or(max);
        }
        *limit_ns
    }

    /// Asserts that a CPU polls in its polling state, and that calls without an interrupt are heard.
    pub(crate) fn verify(&self, polls: bool, need_resched: bool) {
        let in_poll_state = self.entered.is_some_and(|state| self.states[state as usize].polling);
        assert_eq!(polls, in_poll_state, "polling outside of its state");
        assert!(self.pending_calls.is_empty() || (polls && need_resched), "calls nobody hears of");
    }
}

impl Context {
    /// Whether a CPU polls; then it has been told that there is something to do.
    pub(crate) fn polls(&mut self, cpu: CpuId) -> bool {
        let now = self.local_clock();
        let Activity::Poll { until } = &mut self.platform.wires[cpu].activity else {
            return false;
        };
        *until = now.min(*until);
        self.platform.dirty.insert(cpu);
        true
    }

    /// Writes the flag that a CPU watches asleep, which then wakes.
    fn write_flag(&mut self, cpu: CpuId, kind: IpiKind) {
        let (at, from) = (self.local_clock(), self.this_cpu);
        let wires = &mut self.platform.wires[cpu];
        (wires.ipi_at[kind as usize], wires.ipi_from[kind as usize]) = (at, from);
        wires.written.insert(IrqLine::ipi(kind));
        self.platform.dirty.insert(cpu);
    }
}

impl Cpuidle {
    /// Calls a CPU that polls without an interrupt; `false`: it does not poll.
    pub(crate) fn call_without_ipi(
        &mut self,
        cpu: CpuId,
        kind: IpiKind,
        sched: &mut Scheduler,
        cx: &mut Context,
    ) -> bool {
        if cx.polls(cpu) {
            sched.set_need_resched(cpu);
            self.cpus[cpu].pending_calls.insert(IrqLine::ipi(kind));
            return true;
        }
        let asleep = self.monitors(cpu, cx);
        if asleep {
            sched.set_need_resched(cpu);
            cx.write_flag(cpu, kind);
        }
        asleep
    }

    /// Whether a CPU watches the flag asleep.
    #[inline]
    fn monitors(&self, cpu: CpuId, cx: &Context) -> bool {
        let Activity::Idle { state } = cx.platform.wires[cpu].activity else { return false };
        self.cpus[cpu].monitors.get(usize::from(state)) == Some(&true)
    }

    /// A CPU is awake, with `lines`: of them and of what is in flight, writes become calls that wait. The interrupts.
    #[inline]
    pub(crate) fn take_writes(
        &mut self,
        cpu: CpuId,
        lines: IrqLines,
        cx: &mut Context,
    ) -> IrqLines {
        let wires = &mut cx.platform.wires[cpu];
        if wires.written.is_empty() {
            return lines;
        }
        let written = std::mem::take(&mut wires.written);
        for kind in IpiKind::ALL.into_iter().filter(|kind| written.contains(IrqLine::ipi(*kind))) {
            wires.ipi_at[kind as usize] = NEVER;
            if kind != IpiKind::Reschedule {
                self.cpus[cpu].pending_calls.insert(IrqLine::ipi(kind));
            }
        }
        lines.without(written)
    }
}

impl Kernel {
    /// On the way out of the idle loop: does what it was called for while it polled.
    pub(super) fn flush_smp_call_function_queue(&mut self, cpu: CpuId) {
        let calls = std::mem::take(&mut self.cpuidle.cpus[cpu].pending_calls);
        if calls.is_empty() {
            return;
        }
        self.handle_ipis(cpu, calls);
        if self.softirqs.is_pending(cpu) {
            // do_softirq_post_smp_call_flush()
            self.do_softirq(cpu);
        } else if self.sched.take_sched_softirq(cpu) {
            self.sched_balance_softirq(cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpuidle::governor::Governor;
    use crate::cpuidle::states::IdleStateParams;

    #[test]
    fn the_limit_is_the_first_residency_that_is_worth_it() {
        const TICK: Ns = 4_000_000;
        let state = |us: u64, disabled| IdleStateParams {
            target_residency_ns: us * 1000,
            disabled,
            ..IdleStateParams::default()
        };
        let (on, off) = (false, true);
        for (deeper, limit_us) in [
            (vec![], 250),
            (vec![state(2, on), state(20, on), state(100, on)], 20),
            (vec![state(2, on), state(20, off), state(100, on)], 100),
            (vec![state(2, on), state(9, on)], 250),
            (vec![state(10, on)], 10),
            (vec![state(800, on), state(20, on)], 250),
        ] {
            let poll = IdleStateParams { polling: true, ..IdleStateParams::default() };
            let states = [vec![poll], deeper].concat();
            let mut idle = CpuIdle::new(states, Governor::Shallow, i64::MAX);
            assert_eq!(idle.poll_time(TICK, &Bugs::default()), limit_us * 1000);
            // It stays, whatever is switched off or on afterwards.
            idle.states.iter_mut().for_each(|state| state.disabled ^= true);
            assert_eq!(idle.poll_time(TICK, &Bugs::default()), limit_us * 1000);
        }
        let poll = IdleStateParams { polling: true, ..IdleStateParams::default() };
        let states = vec![poll, state(2, on), state(20, on)];
        let short = Bugs { poll_too_short: true, ..Bugs::default() };
        let idle = CpuIdle::new(states, Governor::Shallow, i64::MAX);
        assert_eq!(idle.clone().poll_time(TICK, &short), 2_000);
        let endless = Bugs { poll_without_limit: true, ..Bugs::default() };
        assert!(idle.clone().poll_time(TICK, &endless) > 1000 * TICK);
    }
}
