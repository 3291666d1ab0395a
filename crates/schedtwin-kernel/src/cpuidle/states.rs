// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle states as a governor sees them, and what it is told when it is asked.
//!
//! Governors are plain values: the driver, the device, the timers and the tick are arguments here,
//! where Linux has globals and per-CPU data.

/// Most idle states a driver can have (`CPUIDLE_STATE_MAX`).
pub const CPUIDLE_STATE_MAX: usize = 10;
/// A state with a shorter target residency is not worth asking the timers about
/// (`RESIDENCY_THRESHOLD_NS` of `drivers/cpuidle/governors/gov.h`, since 6.6).
pub const RESIDENCY_THRESHOLD_NS: i64 = 15_000;
/// A timer at most so many ticks away is a safety net for a CPU whose tick is stopped (`SAFE_TIMER_RANGE_NS` there, 7.3).
pub const SAFE_TIMER_RANGE_TICKS: i64 = 2;
/// The sleep length when nothing was asked or nothing is pending (`KTIME_MAX`), ns.
pub const KTIME_MAX: i64 = i64::MAX;

/// The governor's knowledge of an idle state (`struct cpuidle_state` and the `disable` of
/// `struct cpuidle_state_usage`). States are ordered from shallow to deep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleStateParams {
    /// Worst time from interrupt to first instruction, ns (an s64 in C; at most 2^63 − 1).
    pub exit_latency_ns: u64,
    /// Shortest stay that pays, ns (an s64 in C; at most 2^63 − 1).
    pub target_residency_ns: u64,
    /// The state spins instead of sleeping (`CPUIDLE_FLAG_POLLING`).
    pub polling: bool,
    /// Switched off, by the driver or through sysfs.
    pub disabled: bool,
}

impl IdleStateParams {
    /// The target residency as C reads it, signed.
    #[inline(always)]
    pub(crate) fn residency_ns(&self) -> i64 {
        self.target_residency_ns as i64
    }
}

/// The situation that `select` is told.
#[derive(Clone, Copy, Debug)]
pub struct SelectInput<'a> {
    /// The CPU's idle states, 1..=[`CPUIDLE_STATE_MAX`] of them.
    pub states: &'a [IdleStateParams],
    /// Longest exit latency that is allowed (`cpuidle_governor_latency_req`), ns.
    pub latency_req_ns: i64,
    /// The tick was stopped by an earlier round of this idle period (`tick_nohz_tick_stopped`).
    pub tick_stopped: bool,
    /// Length of a tick (`TICK_NSEC`): (10^9 + HZ/2) / HZ.
    pub tick_nsec: i64,
    /// `local_clock()`, ns.
    pub now: u64,
    /// How long the last entered state lasted, latencies included (`dev->last_residency_ns`); 0 also if
    /// the entry was refused or a task was already waiting.
    pub last_residency_ns: u64,
    /// Tasks of this CPU that sleep until I/O is done (`nr_iowait_cpu`); read by menu up to 6.5.
    pub nr_iowaiters: u32,
    /// `sched_cpu_util()`, 0..=1024; read by teo where it looks at utilisation, see
    /// [`Governor::reads_util`](super::governor::Governor::reads_util).
    pub cpu_util: u64,
}

/// The stay that has ended, as `reflect` is told.
#[derive(Clone, Copy, Debug)]
pub struct Reflection {
    /// Index of the state entered.
    pub state: usize,
    /// The tick's handler ran meanwhile (`tick_nohz_idle_got_tick`).
    pub got_tick: bool,
    /// The polling state gave up (`dev->poll_time_limit`).
    pub poll_time_limit: bool,
    /// `local_clock()`, ns.
    pub now: u64,
    /// Length of a tick (`TICK_NSEC`).
    pub tick_nsec: i64,
    /// How long the stay lasted, latencies included (`dev->last_residency_ns`).
    pub last_residency_ns: u64,
}

/// The answer of `tick_nohz_get_sleep_length`, ns. Both can be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepLength {
    /// Until the next timer, with the tick left out if it can be stopped.
    pub sleep_length_ns: i64,
    /// Until the next programmed event, the tick included (`delta_next`).
    pub delta_tick_ns: i64,
}

/// The deepest enabled state below `idx` whose residency fits into `duration_ns`; the shallowest
/// enabled one if none does; `idx` if none is enabled. `no_poll`: a state that spins does not count.
#[inline]
pub(crate) fn find_shallower_state(
    states: &[IdleStateParams],
    idx: usize,
    duration_ns: i64,
    no_poll: bool,
) -> usize {
    let mut found = idx;
    for i in (0..idx).rev() {
        if states[i].disabled || (no_poll && states[i].polling) {
            continue;
        }
        found = i;
        if states[i].residency_ns() <= duration_ns {
            break;
        }
    }
    found
}

/// States and questions for decisions that are worked out by hand, in the tests of all governors.
#[cfg(test)]
pub(super) mod by_hand {
    use super::{IdleStateParams, SelectInput, SleepLength};

    pub(crate) const TICK: i64 = 4_000_000;

    pub(crate) fn state(exit_us: u64, residency_us: u64) -> IdleStateParams {
        IdleStateParams {
            exit_latency_ns: exit_us * 1000,
            target_residency_ns: residency_us * 1000,
            ..Default::default()
        }
    }

    pub(crate) fn off(state: IdleStateParams) -> IdleStateParams {
        IdleStateParams { disabled: true, ..state }
    }

    pub(crate) fn poll() -> IdleStateParams {
        IdleStateParams { polling: true, ..Default::default() }
    }

    pub(crate) fn input(states: &[IdleStateParams]) -> SelectInput<'_> {
        SelectInput {
            states,
            latency_req_ns: i64::MAX,
            tick_stopped: false,
            tick_nsec: TICK,
            now: 0,
            last_residency_ns: 0,
            nr_iowaiters: 0,
            cpu_util: 0,
        }
    }

    pub(crate) fn timers(sleep_us: i64, tick_us: i64) -> impl FnMut() -> SleepLength {
        move || SleepLength { sleep_length_ns: sleep_us * 1000, delta_tick_ns: tick_us * 1000 }
    }
}
