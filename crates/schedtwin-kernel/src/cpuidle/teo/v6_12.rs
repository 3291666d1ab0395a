// SPDX-License-Identifier: GPL-2.0-or-later
//! teo as of Linux 6.12: which idle state a CPU should enter, and whether its tick may stop.
//!
//! **The idea.** Timers are the commonest wakeups, and when the next one fires is known exactly.
//! It is not known whether something else comes first. So teo looks at what happened before:
//! did the CPU wake when the timer said (a *hit*) or earlier (an *intercept*)?
//!
//! **Terms.** *Bin* `i` holds the durations from the target residency of state `i` up to that of
//! state `i + 1` (bin 0 from zero). *sleep length*: time to the next timer at selection, tick left
//! out. *Measured duration*: how long the CPU really slept. *Hit*: both fall into the same bin;
//! counts in that bin. *Intercept*: the measured duration falls into a shallower bin; counts there.
//! Each wakeup takes 1/8 off every counter and adds [`PULSE`] to one. *tick hits*: an extra bin
//! behind the last, for timers at least a tick away, where the deepest state pays within a tick.
//!
//! ```text
//!  residency   0        20 µs          800 µs                    next timer
//!  ------------|---bin 0---|----bin 1-----|--------bin 2-------------x----> time
//!                               ^ woken here: an intercept in bin 1
//! ```
//!
//! **Algorithm** ([`TeoCpu::select`] = [`TeoCpu::update`], [`TeoCpu::decide`], [`TeoCpu::commit`]):
//! 1. Count the last wakeup, if one was reflected.
//! 2. Candidate: the deepest enabled state. Sum hits and intercepts of all shallower bins.
//! 3. If twice those intercepts exceed everything but those hits, early wakeups prevail: walk from
//!    the candidate towards state 0 until more than half of the intercepts lie at or above a state;
//!    that is the new candidate (if the tick is stopped, only states that pay for a whole tick).
//! 4. Candidate 0 by step 3: take it and keep the tick; ask the timers nevertheless, so that the
//!    next update can tell hit from intercept.
//! 5. Apply the latency limit. State 0, or a state that hardly pays beside a polling one: take it,
//!    keep the tick, do not ask the timers.
//! 6. Ask the timers; if the next one comes too soon for the candidate, go shallower.
//! 7. The tick may stop unless the state spins, the next timer is within a tick, or 5/8 of the
//!    wakeups are intercepts and the state pays within a tick. If it goes on, it is a timer like
//!    any other: go shallower if it comes before the state pays.
//!
//! **Example.** A CPU that is always woken after 100 µs learns to stay in the shallower state:
//!
//! ```
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
//! use schedtwin_kernel::cpuidle::teo::{SelectRule, v6_12::TeoCpu};
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(230, 2000)];
//! let mut teo = TeoCpu::default();
//! let mut chosen = Vec::new();
//! for round in 0..4u64 {
//!     let input = SelectInput {
//!         states: &states,
//!         latency_req_ns: i64::MAX,
//!         tick_stopped: false,
//!         tick_nsec: 4_000_000,
//!         now: round * 1_000_000,
//!         last_residency_ns: 100_000,
//!         nr_iowaiters: 0,
//!         cpu_util: 0,
//!     };
//!     let far = SleepLength { sleep_length_ns: 50_000_000, delta_tick_ns: 3_000_000 };
//!     let selection = teo.select(&input, &mut || far);
//!     chosen.push((selection.idx, selection.rule));
//!     teo.reflect(&Reflection {
//!         state: selection.idx,
//!         got_tick: false,
//!         poll_time_limit: false,
//!         now: round * 1_000_000 + 120_000,
//!         tick_nsec: 4_000_000,
//!         last_residency_ns: 100_000,
//!     });
//! }
//! assert_eq!(chosen[0], (1, SelectRule::Deepest)); // nothing known yet
//! assert_eq!(chosen[3], (0, SelectRule::Intercepts));
//! ```
//!
//! **Kernel:** Linux 6.12, `drivers/cpuidle/governors/teo.c`. This file is checked bit for bit
//! against that C (`conformance/src/teo`).
//!
//! **Differences:**
//! - The driver, the device and the tick are arguments, not globals. Nobody can notice.
//! - `last_state_idx` lives here, not in the device. Who could notice: a run that changes governors
//!   on the way; the twin has none.

use super::{
    DECAY_SHIFT, Expected, PULSE, SelectRule, Selection, TickRule, measured_ns, reflected_span_ns,
    tick_decision,
};
use crate::cpuidle::states::{
    CPUIDLE_STATE_MAX, KTIME_MAX, RESIDENCY_THRESHOLD_NS, Reflection, SelectInput, SleepLength,
    find_shallower_state,
};

/// Counters of one range of durations (`struct teo_bin`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeoBin {
    /// Early wakeups that fell into this bin.
    pub intercepts: u32,
    /// Wakeups in the bin that the timer had promised.
    pub hits: u32,
}

/// teo's memory of one CPU (`struct teo_cpu`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeoCpu {
    /// Between selection and reflection the time of selection, afterwards the time between them, ns.
    pub time_span_ns: i64,
    /// Time to the next timer at the last selection, ns; [`KTIME_MAX`] if it was not asked for.
    pub sleep_length_ns: i64,
    /// Counters per state.
    pub state_bins: [TeoBin; CPUIDLE_STATE_MAX],
    /// Sum of all counters, the new pulse included.
    pub total: u32,
    /// The extra bin: timers a tick or more away that were met.
    pub tick_hits: u32,
    /// The state whose wakeup is still to be counted (`dev->last_state_idx`).
    ///
    /// A zeroed device says 0 and not "none": the very first selection counts a hit that never was.
    pub last_state_idx: Option<usize>,
}

impl Default for TeoCpu {
    /// As after `teo_enable_device` on a fresh device.
    fn default() -> Self {
        TeoCpu {
            time_span_ns: 0,
            sleep_length_ns: 0,
            state_bins: [TeoBin::default(); CPUIDLE_STATE_MAX],
            total: 0,
            tick_hits: 0,
            last_state_idx: Some(0),
        }
    }
}

impl TeoCpu {
    /// Chooses a state for a CPU that goes idle (`teo_select`). `sleep_length` asks the timers
    /// (`tick_nohz_get_sleep_length`), at most once.
    #[inline]
    pub fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Selection {
        self.update(input);
        let selection = self.decide(input, sleep_length);
        self.commit(input.now, &selection);
        selection
    }

    /// Notes the end of an idle period (`teo_reflect`); not to be called when the entry was refused or a task
    /// was already waiting.
    #[inline]
    pub fn reflect(&mut self, stay: &Reflection) {
        self.last_state_idx = Some(stay.state);
        self.time_span_ns = reflected_span_ns(self.time_span_ns, self.sleep_length_ns, stay);
    }

    /// Counts the last wakeup (`teo_update`), unless that was done or there was none.
    pub fn update(&mut self, input: &SelectInput) {
        let states = input.states;
        assert!(
            (1..=CPUIDLE_STATE_MAX).contains(&states.len()),
            "teo: no idle states, or too many"
        );
        let Some(last_state) = self.last_state_idx.take() else {
            return;
        };

        let measured_ns = measured_ns(
            self.time_span_ns,
            self.sleep_length_ns,
            states[last_state].exit_latency_ns,
            input.last_residency_ns,
        );

        self.total = 0;
        let mut idx_timer = 0;
        let mut idx_duration = 0;
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

        let mut tick_hit = false;
        if states[states.len() - 1].residency_ns() < input.tick_nsec {
            self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
            self.total = self.total.wrapping_add(self.tick_hits);
            if input.tick_nsec <= self.sleep_length_ns {
                // The timer is in the extra bin, where no state is: whatever is measured below it
                // is an intercept.
                idx_timer = states.len();
                tick_hit = input.tick_nsec as u64 <= measured_ns;
            }
        }

        if tick_hit {
            self.tick_hits += PULSE;
        } else if idx_timer == idx_duration {
            self.state_bins[idx_timer].hits += PULSE;
        } else {
            self.state_bins[idx_duration].intercepts += PULSE;
        }
        self.total = self.total.wrapping_add(PULSE);
    }

    /// Stores what the next update will compare with.
    #[inline]
    pub fn commit(&mut self, now: u64, selection: &Selection) {
        self.time_span_ns = now as i64;
        self.sleep_length_ns = selection.sleep_length_ns.unwrap_or(KTIME_MAX);
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

        let mut first_enabled = None;
        let mut deepest = 0;
        let mut constraint_idx = 0;
        let mut intercept_sum = 0;
        let mut hit_sum = 0;
        let mut idx_intercept_sum = 0;
        let mut idx_hit_sum = 0;
        for (i, state) in states.iter().enumerate() {
            // State 0 has nothing below it, and no latency limit keeps a CPU out of it.
            if !state.disabled {
                first_enabled = first_enabled.or(Some(i));
                deepest = i;
                if state.exit_latency_ns as i64 <= input.latency_req_ns {
                    constraint_idx = i;
                }
                idx_intercept_sum = intercept_sum;
                idx_hit_sum = hit_sum;
            }
            intercept_sum += self.state_bins[i].intercepts;
            hit_sum += self.state_bins[i].hits;
        }
        let Some(first_enabled) = first_enabled else {
            return keep_tick(0, SelectRule::NoneEnabled, TickRule::Shallow, None);
        };
        // All bins', those of disabled states too.
        let all_intercepts = intercept_sum;

        let mut idx = deepest;
        let mut rule = SelectRule::Deepest;
        let mut sleep_length_ns = None;
        let mut delta_tick_ns = input.tick_nsec / 2;
        let mut tick_intercepted = false;
        let duration_ns;
        if idx == first_enabled {
            rule = SelectRule::OneEnabled;
            duration_ns = states[idx].residency_ns();
        } else {
            if 2 * idx_intercept_sum > self.total.wrapping_sub(idx_hit_sum) {
                idx = state_that_half_reached(&self.state_bins, input, deepest, idx_intercept_sum);
                if idx != deepest {
                    rule = SelectRule::Intercepts;
                } else if input.tick_stopped {
                    rule = SelectRule::TickStopped;
                }
                if idx == 0 {
                    let asked = Some(sleep_length().sleep_length_ns);
                    return keep_tick(0, rule, TickRule::Shallow, asked);
                }
            }
            if idx > constraint_idx {
                idx = constraint_idx;
                rule = SelectRule::LatencyLimit;
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
                let shallower = find_shallower_state(states, idx, timers.sleep_length_ns, false);
                if shallower != idx {
                    rule = SelectRule::Timer;
                }
                idx = shallower;
            }
            tick_intercepted = states[idx].residency_ns() < input.tick_nsec
                && all_intercepts > self.total / 2 + self.total / 8;
            duration_ns =
                if tick_intercepted { input.tick_nsec / 2 } else { timers.sleep_length_ns };
        }

        let expected = Expected { duration_ns, delta_tick_ns, tick_intercepted };
        let chosen = Selection {
            idx,
            stop_tick: true,
            rule,
            tick_rule: TickRule::LongSleep,
            sleep_length_ns,
        };
        tick_decision(input, first_enabled, chosen, &expected)
    }
}

/// Step 3: the deepest state whose residency was reached in more than half of the early wakeups
/// that speak against `candidate`.
pub(super) fn state_that_half_reached(
    bins: &[TeoBin],
    input: &SelectInput,
    candidate: usize,
    candidate_intercepts: u32,
) -> usize {
    let states = input.states;
    // With the tick stopped the CPU may sleep long: a state must pay for at least a tick.
    let deep_enough = |i: usize| !input.tick_stopped || states[i].residency_ns() >= input.tick_nsec;
    let mut first_suitable = candidate;
    let mut intercepts = 0;
    for i in (0..candidate).rev() {
        intercepts += bins[i].intercepts;
        if 2 * intercepts > candidate_intercepts {
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

#[cfg(test)]
mod tests;
