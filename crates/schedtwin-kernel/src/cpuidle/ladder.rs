// SPDX-License-Identifier: GPL-2.0-or-later
//! The ladder governor: step by step deeper while sleeps last, one step up as soon as one does not.
//!
//! **The idea** is older than tickless kernels: a timer that ends every sleep makes prediction pointless, so
//! the last sleep has to say what the next one will be.
//!
//! **Algorithm** ([`LadderCpu::select`]); *last* is the state on whose rung the CPU stands:
//! 1. No latency is allowed at all: state 0.
//! 2. *Promotion.* The last sleep, less its state's exit latency, was longer than that latency, and the next
//!    deeper state is enabled and quick enough: after [`PROMOTION_COUNT`] such sleeps one state deeper.
//! 3. The state has been switched off, or has become too slow: up to the next one that is quick enough.
//! 4. *Demotion.* The sleep was shorter than the exit latency: one state shallower.
//!
//! The first rung is state 0, or state 1 beside a polling one. The tick may always stop, and no timer is asked.
//!
//! ```text
//!  slept, µs      900  900  900  900  100  400  900
//!  state        0    0    0    0    1    1    0    0      exit latency of state 1: 230 µs
//!                     promoted ─┘    │    └─ demoted
//!                                    └─ not demoted: see below
//! ```
//!
//! **A surprise.** The last sleep without its exit latency is computed unsigned: a sleep shorter than the exit
//! latency wraps to a huge number and counts *towards promotion*. So only a sleep between one and two exit
//! latencies speaks for a shallower state.
//!
//! **Example.** Four long sleeps to climb, one short one to fall:
//!
//! ```
//! use schedtwin_kernel::cpuidle::ladder::LadderCpu;
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput};
//!
//! let state = |exit_us: u64| IdleStateParams { exit_latency_ns: exit_us * 1000, ..Default::default() };
//! let states = [state(1), state(230)];
//! let mut ladder = LadderCpu::new(&states);
//! let slept_us = [900, 900, 900, 900, 100, 400, 900];
//! let chosen = slept_us.map(|us| {
//!     let input = SelectInput {
//!         states: &states,
//!         latency_req_ns: i64::MAX,
//!         tick_stopped: false,
//!         tick_nsec: 4_000_000,
//!         now: 0,
//!         last_residency_ns: us * 1000,
//!         nr_iowaiters: 0,
//!         cpu_util: 0,
//!     };
//!     ladder.select(&input)
//! });
//! assert_eq!(chosen, [0, 0, 0, 1, 1, 0, 0]);
//! ```
//!
//! **Kernel:** Linux 6.1 and 6.12, `drivers/cpuidle/governors/ladder.c`, checked bit for bit against that C
//! (`conformance/src/ladder`).
//! **Differences:** the driver and the device are arguments; nobody can notice.

use super::states::{CPUIDLE_STATE_MAX, IdleStateParams, SelectInput};

/// Long sleeps that promote.
pub const PROMOTION_COUNT: u32 = 4;
/// Short sleeps that demote.
pub const DEMOTION_COUNT: u32 = 1;

/// How far a rung is from being left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Long sleeps in a row.
    pub promotion_count: u32,
    /// Short sleeps in a row.
    pub demotion_count: u32,
}

/// ladder's memory of one CPU (`struct ladder_device`, and `dev->last_state_idx`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderCpu {
    /// The rung: the state chosen or entered last.
    pub last_state_idx: usize,
    /// Per state.
    pub stats: [Stats; CPUIDLE_STATE_MAX],
}

/// The lowest rung: a state that does not poll.
fn first_idx(states: &[IdleStateParams]) -> usize {
    usize::from(states[0].polling)
}

impl LadderCpu {
    /// As after `ladder_enable_device`.
    pub fn new(states: &[IdleStateParams]) -> LadderCpu {
        LadderCpu {
            last_state_idx: first_idx(states),
            stats: [Stats::default(); CPUIDLE_STATE_MAX],
        }
    }

    /// Chooses a state for a CPU that goes idle (`ladder_select_state`).
    pub fn select(&mut self, input: &SelectInput) -> usize {
        let chosen = self.climb(input);
        if let Some(idx) = chosen {
            self.stats[self.last_state_idx] = Stats::default();
            self.last_state_idx = idx;
        }
        self.last_state_idx
    }

    /// Notes the end of an idle period (`ladder_reflect`); not to be called when the entry was refused.
    pub fn reflect(&mut self, state: usize) {
        if state > 0 {
            self.last_state_idx = state;
        }
    }

    /// The new rung; `None`: stay.
    fn climb(&mut self, input: &SelectInput) -> Option<usize> {
        let states = input.states;
        let (last, first) = (self.last_state_idx, first_idx(states));
        if input.latency_req_ns == 0 {
            return Some(0);
        }
        let stats = &mut self.stats[last];
        // A CPU that can but poll stands on a rung that does not exist: C reads zeros there.
        let latency_ns = states.get(last).map_or(0, |state| state.exit_latency_ns);
        // As C computes it: unsigned.
        let slept_ns = input.last_residency_ns.wrapping_sub(latency_ns);
        let quick = |idx: usize| states[idx].exit_latency_ns as i64 <= input.latency_req_ns;

        if let Some(deeper) = states.get(last + 1) {
            // Below the first rung nothing has been set up: any sleep is long and enough.
            let (count, long_ns) =
                if last < first { (0, 0) } else { (PROMOTION_COUNT, latency_ns) };
            if !deeper.disabled && slept_ns > long_ns && quick(last + 1) {
                stats.promotion_count += 1;
                stats.demotion_count = 0;
                if stats.promotion_count >= count {
                    return Some(last + 1);
                }
            }
        }
        if last <= first {
            return None;
        }
        if states[last].disabled || !quick(last) {
            // Whether that one is enabled nobody asks.
            return Some((first + 1..last).rev().find(|idx| quick(*idx)).unwrap_or(first));
        }
        if slept_ns < latency_ns {
            stats.demotion_count += 1;
            stats.promotion_count = 0;
            if stats.demotion_count >= DEMOTION_COUNT {
                return Some(last - 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(exits_us: &[u64]) -> Vec<IdleStateParams> {
        let state = |us: &u64| IdleStateParams { exit_latency_ns: us * 1000, ..Default::default() };
        exits_us.iter().map(state).collect()
    }

    fn chosen(ladder: &mut LadderCpu, states: &[IdleStateParams], req_us: i64, us: u64) -> usize {
        ladder.select(&SelectInput {
            states,
            latency_req_ns: req_us * 1000,
            tick_stopped: false,
            tick_nsec: 4_000_000,
            now: 0,
            last_residency_ns: us * 1000,
            nr_iowaiters: 0,
            cpu_util: 0,
        })
    }

    #[test]
    fn a_strict_limit_sends_it_down_and_a_poll_state_is_no_rung() {
        let mut states = states(&[0, 2, 10, 70]);
        states[0].polling = true;
        let mut ladder = LadderCpu::new(&states);
        assert_eq!(ladder.last_state_idx, 1);
        ladder.last_state_idx = 3;
        assert_eq!(chosen(&mut ladder, &states, 10, 999), 2, "as deep as the limit allows");
        states[2].disabled = true;
        assert_eq!(chosen(&mut ladder, &states, 100, 5), 1, "a disabled one is left");
        assert_eq!(chosen(&mut ladder, &states, 0, 999), 0, "no latency at all");
        // From there any sleep leads back.
        assert_eq!(chosen(&mut ladder, &states, 100, 1), 1);
        assert_eq!(chosen(&mut ladder, &states, 0, 0), 0);
        assert_eq!(chosen(&mut ladder, &states, 100, 0), 0, "but for none");
    }

    #[test]
    fn a_sleep_of_between_one_and_two_exit_latencies_demotes() {
        let states = states(&[1, 200, 300]);
        for (us, idx) in [(299, 2), (300, 1), (599, 1), (600, 2), (601, 2)] {
            let mut ladder = LadderCpu { last_state_idx: 2, ..LadderCpu::new(&states) };
            assert_eq!(chosen(&mut ladder, &states, 1000, us), idx, "{us} us");
        }
    }
}
