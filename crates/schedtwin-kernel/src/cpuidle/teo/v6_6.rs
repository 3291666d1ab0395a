// SPDX-License-Identifier: GPL-2.0-or-later
//! teo as of Linux 6.6 to 6.10: recent intercepts as before, timers asked late as since.
//!
//! **The idea** and the terms are those of [`v6_12`](super::v6_12), the *recent* intercepts those of
//! [`v5_14`](super::v5_14). New in this form: states are compared by their residency alone, no longer by the
//! middle of their bins; timers a tick away have a bin of their own; and the timers, which are expensive to
//! ask, are asked only if their answer can matter.
//!
//! **Algorithm** ([`TeoCpu::select`]):
//! 1. Count the last wakeup, if one was reflected, in the bins and in the ring of recent ones. A hit behind
//!    the last bin takes its place in the ring without being written there: the old entry stays, and counts
//!    no more.
//! 2. A utilised CPU with two states takes state 0 if it is enabled, sleeps and is deep enough, or if state 1
//!    is disabled, and keeps the tick; else state 1.
//! 3. Candidate: the deepest enabled state. If there is but one, take it.
//! 4. Do intercepts prevail, in the bins or among the recent ones? Walk towards state 0 until more than half
//!    of whichever prevails lies at or above a state (with the tick stopped: a state that pays for a tick).
//! 5. Apply the latency limit. A utilised CPU goes one state shallower that does not spin, if it is deep
//!    enough.
//! 6. State 0, or a state that hardly pays beside a polling one: take it, keep the tick, ask no timers. So
//!    nobody learns later whether the timers would have agreed; 6.11 asks them after all.
//! 7. Ask the timers; if the next one comes too soon, go shallower, if that is deep enough.
//! 8. Decide about the tick as 6.12 does.
//!
//! *Deep enough*: the tick is running, or the state pays for a whole tick.
//!
//! **Example.** Two states, and a utilised CPU: state 0, without a look at the timers.
//!
//! ```
//! use schedtwin_kernel::config::TeoUtil;
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput};
//! use schedtwin_kernel::cpuidle::teo::util::UtilAware;
//! use schedtwin_kernel::cpuidle::teo::{SelectRule, v6_6::TeoCpu};
//!
//! let states = [IdleStateParams::default(); 2];
//! let input = SelectInput {
//!     states: &states,
//!     latency_req_ns: i64::MAX,
//!     tick_stopped: false,
//!     tick_nsec: 4_000_000,
//!     now: 0,
//!     last_residency_ns: 0,
//!     nr_iowaiters: 0,
//!     cpu_util: 17,
//! };
//! let mut teo = TeoCpu::new(UtilAware::new(TeoUtil::V6_3, 1024, 6));
//! let selection = teo.select(&input, &mut || unreachable!("nobody asks"));
//! assert_eq!((selection.idx, selection.rule), (0, SelectRule::Utilised));
//! ```
//!
//! **Kernel:** Linux 6.6, `drivers/cpuidle/governors/teo.c`, without utilisation as 6.6.y and 6.10.y have been
//! since its revert. This file is checked bit for bit against that C (`conformance/src/teo`).
//! **Differences:** those of [`v6_12`](super::v6_12).

use super::util::UtilAware;
use super::v5_14::{NR_RECENT, TeoBin};
use super::{DECAY_SHIFT, PULSE, SelectRule, Selection, TickRule, measured_ns, reflected_span_ns};
use crate::cpuidle::states::{
    CPUIDLE_STATE_MAX, KTIME_MAX, RESIDENCY_THRESHOLD_NS, Reflection, SelectInput, SleepLength,
    find_shallower_state,
};

/// teo's memory of one CPU (`struct teo_cpu`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeoCpu {
    /// Between selection and reflection the time of selection, afterwards the time between them, ns.
    pub time_span_ns: i64,
    /// Time to the next timer at the last selection, ns; [`KTIME_MAX`] if it was not asked for.
    pub sleep_length_ns: i64,
    /// Counters per state.
    pub state_bins: [TeoBin; CPUIDLE_STATE_MAX],
    /// Sum of all counters but the recent ones, the new pulse included.
    pub total: u32,
    /// The extra bin: timers a tick or more away that were met.
    pub tick_hits: u32,
    /// Which entry of `recent_idx` is the oldest.
    pub next_recent_idx: u8,
    /// Bins of the last wakeups, where they were intercepts.
    pub recent_idx: [Option<u8>; NR_RECENT],
    /// The state whose wakeup is still to be counted (`dev->last_state_idx`), at first state 0.
    pub last_state_idx: Option<u8>,
    /// Where utilisation counts.
    pub util: Option<UtilAware>,
}

impl TeoCpu {
    /// As after `teo_enable_device` on a fresh device.
    pub fn new(util: Option<UtilAware>) -> TeoCpu {
        TeoCpu {
            time_span_ns: 0,
            sleep_length_ns: 0,
            state_bins: [TeoBin::default(); CPUIDLE_STATE_MAX],
            total: 0,
            tick_hits: 0,
            next_recent_idx: 0,
            recent_idx: [None; NR_RECENT],
            last_state_idx: Some(0),
            util,
        }
    }

    /// Chooses a state for a CPU that goes idle (`teo_select`). `sleep_length` asks the timers, at most once.
    pub fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Selection {
        self.update(input);
        if let Some(util) = &mut self.util {
            util.look(input.cpu_util);
        }
        let selection = self.decide(input, sleep_length);
        self.time_span_ns = input.now as i64;
        self.sleep_length_ns = selection.sleep_length_ns.unwrap_or(KTIME_MAX);
        selection
    }

    /// Notes the end of an idle period (`teo_reflect`); not to be called when the entry was refused.
    #[inline]
    pub fn reflect(&mut self, stay: &Reflection) {
        self.last_state_idx = Some(stay.state as u8);
        self.time_span_ns = reflected_span_ns(self.time_span_ns, self.sleep_length_ns, stay);
    }

    /// Counts the last wakeup (`teo_update`), unless that was done or there was none.
    pub fn update(&mut self, input: &SelectInput) {
        let states = input.states;
        assert!(
            (1..=CPUIDLE_STATE_MAX).contains(&states.len()),
            "teo: no idle states, or too many"
        );
        let Some(last_state) = self.last_state_idx.take() else { return };
        let measured_ns = measured_ns(
            self.time_span_ns,
            self.sleep_length_ns,
            states[last_state as usize].exit_latency_ns,
            input.last_residency_ns,
        );
        self.total = 0;
        let (mut idx_timer, mut idx_duration) = (0, 0);
        for (i, (state, bin)) in states.iter().zip(&mut self.state_bins).enumerate() {
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total = self.total.wrapping_add(bin.hits.wrapping_add(bin.intercepts));
            if state.residency_ns() <= self.sleep_length_ns {
                idx_timer = i;
                if state.target_residency_ns <= measured_ns {
                    idx_duration = i;
                }
            }
        }

        let slot = self.next_recent_idx as usize;
        self.next_recent_idx = (self.next_recent_idx + 1) % NR_RECENT as u8;
        if let Some(oldest) = self.recent_idx[slot] {
            let recent = &mut self.state_bins[oldest as usize].recent;
            *recent = recent.wrapping_sub(1);
        }

        let mut tick_hit = false;
        if states[states.len() - 1].residency_ns() < input.tick_nsec {
            self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
            self.total = self.total.wrapping_add(self.tick_hits);
            if input.tick_nsec <= self.sleep_length_ns {
                idx_timer = states.len();
                tick_hit = input.tick_nsec as u64 <= measured_ns;
            }
        }
        if tick_hit {
            // The slot of the ring keeps what it had.
            self.tick_hits += PULSE;
        } else if idx_timer == idx_duration {
            self.state_bins[idx_timer].hits += PULSE;
            self.recent_idx[slot] = None;
        } else {
            let bin = &mut self.state_bins[idx_duration];
            bin.intercepts += PULSE;
            bin.recent = bin.recent.wrapping_add(1);
            self.recent_idx[slot] = Some(idx_duration as u8);
        }
        self.total = self.total.wrapping_add(PULSE);
    }

    /// Chooses, changing nothing (`teo_select` without its stores).
    pub fn decide(
        &self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Selection {
        let states = input.states;
        let keep_tick = |idx, rule, tick_rule, sleep_length_ns| Selection {
            idx,
            stop_tick: false,
            rule,
            tick_rule,
            sleep_length_ns,
        };
        if states.len() < 2 {
            return keep_tick(0, SelectRule::NoChoice, TickRule::Shallow, None);
        }
        let deep_enough =
            |i: usize| !input.tick_stopped || states[i].residency_ns() >= input.tick_nsec;
        let utilised = self.util.is_some_and(|util| util.utilized);
        let mut delta_tick_ns = input.tick_nsec / 2;
        let mut sleep_length_ns = None;
        let mut tick_intercepted = false;
        let (mut idx, mut rule, duration_ns);
        let mut first_enabled = 0;
        if utilised && states.len() < 3 {
            let state_0 = !states[0].disabled && !states[0].polling && deep_enough(0);
            rule = SelectRule::Utilised;
            if state_0 || states[1].disabled {
                return keep_tick(0, rule, TickRule::Shallow, None);
            }
            (idx, duration_ns) = (1, states[1].residency_ns());
        } else {
            let enabled = |i: &usize| !states[*i].disabled;
            let Some(first) = (0..states.len()).find(enabled) else {
                return keep_tick(0, SelectRule::NoneEnabled, TickRule::Shallow, None);
            };
            let deepest = (first..states.len()).rfind(enabled).expect("the first is one");
            first_enabled = first;
            if deepest == first {
                (idx, rule) = (first, SelectRule::OneEnabled);
                duration_ns = states[idx].residency_ns();
            } else {
                idx = self.state_that_half_reached(input, deepest);
                rule = if idx == deepest { SelectRule::Deepest } else { SelectRule::Intercepts };
                let quick = |i: &usize| {
                    enabled(i) && states[*i].exit_latency_ns as i64 <= input.latency_req_ns
                };
                let constraint_idx = (1..states.len()).rfind(quick).unwrap_or(0);
                if idx > constraint_idx {
                    (idx, rule) = (constraint_idx, SelectRule::LatencyLimit);
                }
                if utilised {
                    let shallower = find_shallower_state(states, idx, KTIME_MAX, true);
                    if shallower != idx && deep_enough(shallower) {
                        (idx, rule) = (shallower, SelectRule::Utilised);
                    }
                }
                let beside_polling =
                    states[0].polling && states[idx].residency_ns() < RESIDENCY_THRESHOLD_NS;
                if idx == 0 || beside_polling {
                    return keep_tick(idx, rule, TickRule::Shallow, None);
                }

                let timers = sleep_length();
                sleep_length_ns = Some(timers.sleep_length_ns);
                delta_tick_ns = timers.delta_tick_ns;
                if states[idx].residency_ns() > timers.sleep_length_ns {
                    let shallower =
                        find_shallower_state(states, idx, timers.sleep_length_ns, false);
                    if shallower != idx && deep_enough(shallower) {
                        (idx, rule) = (shallower, SelectRule::Timer);
                    }
                }
                let intercepts: u32 =
                    self.state_bins[..states.len()].iter().map(|bin| bin.intercepts).sum();
                tick_intercepted = states[idx].residency_ns() < input.tick_nsec
                    && intercepts > self.total / 2 + self.total / 8;
                duration_ns =
                    if tick_intercepted { input.tick_nsec / 2 } else { timers.sleep_length_ns };
            }
        }

        let polling = states[idx].polling;
        if input.tick_stopped || (!polling && duration_ns >= input.tick_nsec) {
            let tick_rule =
                if input.tick_stopped { TickRule::AlreadyStopped } else { TickRule::LongSleep };
            return Selection { idx, stop_tick: true, rule, tick_rule, sleep_length_ns };
        }
        let tick_rule = match () {
            () if polling => TickRule::Polling,
            () if tick_intercepted => TickRule::Intercepts,
            () => TickRule::ShortSleep,
        };
        if idx > first_enabled && states[idx].residency_ns() > delta_tick_ns {
            let shallower = find_shallower_state(states, idx, delta_tick_ns, false);
            if shallower != idx {
                (idx, rule) = (shallower, SelectRule::Tick);
            }
        }
        keep_tick(idx, rule, tick_rule, sleep_length_ns)
    }

    /// Step 4: the state that early wakeups speak for, `candidate` if they speak for none.
    fn state_that_half_reached(&self, input: &SelectInput, candidate: usize) -> usize {
        let states = input.states;
        let mut below = TeoBin::default();
        for bin in &self.state_bins[..candidate] {
            below.intercepts += bin.intercepts;
            below.hits += bin.hits;
            below.recent = below.recent.wrapping_add(bin.recent);
        }
        let alt_intercepts = 2 * below.intercepts > self.total.wrapping_sub(below.hits);
        let alt_recent = below.recent > NR_RECENT as u32 / 2;
        if !alt_intercepts && !alt_recent {
            return candidate;
        }
        let deep_enough =
            |i: usize| !input.tick_stopped || states[i].residency_ns() >= input.tick_nsec;
        let mut first_suitable = candidate;
        let (mut intercepts, mut recent) = (0, 0u32);
        for i in (0..candidate).rev() {
            intercepts += self.state_bins[i].intercepts;
            recent = recent.wrapping_add(self.state_bins[i].recent);
            if (!alt_recent || recent.wrapping_mul(2) > below.recent)
                && (!alt_intercepts || 2 * intercepts > below.intercepts)
            {
                let usable = deep_enough(i) && !states[i].disabled;
                return if usable { i } else { first_suitable };
            }
            if states[i].disabled {
                continue;
            }
            if deep_enough(i) {
                first_suitable = i;
            } else if first_suitable == candidate {
                // Shallower ones will not be deep enough either, and there is none to fall back to.
                break;
            }
        }
        candidate
    }
}

#[cfg(test)]
mod tests;
