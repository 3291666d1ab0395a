// SPDX-License-Identifier: GPL-2.0-or-later
//! teo as of Linux 7.3: which idle state a CPU should enter, and whether its tick may stop.
//!
//! **The idea** is that of [`v6_12`](super::v6_12): timers are known, and what came before them is remembered. What is
//! new is what counts as a hit, and what the tick tells.
//!
//! **Terms** beside those of [`v6_12`](super::v6_12). *Hit*: sleep length and measured duration fall into the same bin, **and** the
//! sleep was not shorter than the sleep length by half an exit latency or more: the timer must have come. *Intercept*: any other wakeup; counts in
//! the bin of the measured duration. *Tick intercepts*: intercepts after at most a tick. *Short idles*: sleeps below
//! [`RESIDENCY_THRESHOLD_NS`]. *Tick wakeups*: sleeps that the tick ended. A counter below eight decays to zero at once.
//!
//! ```text
//!  residency   0        20 µs          800 µs                           next timer
//!  ------------|---bin 0---|----bin 1-----|--------bin 2------------------x----> time
//!                                                 ^ woken here: an intercept in bin 2
//!                                                   (6.12: a hit)
//! ```
//!
//! **Algorithm** ([`TeoCpu::select`] = [`TeoCpu::update`], [`TeoCpu::decide`], [`TeoCpu::commit`]):
//! 1. Count the last wakeup, if one was reflected. If the tick came, and ticks are more than two thirds of what comes, it is a hit of the last bin;
//!    if intercepts within a tick are less than two thirds, it is a hit of the timer's bin; else it is judged like any other.
//! 2. Candidate: the deepest enabled state. Sum hits and intercepts of all shallower bins, and find the bin among them with most intercepts.
//! 3. If twice those intercepts exceed everything but those hits, early wakeups prevail: walk from the candidate towards the first enabled
//!    state until more than half of the intercepts lie at or above a state that is not deeper than the bin with most; that is the
//!    new candidate.
//! 4. Apply the latency limit. If the tick runs, the candidate pays at once, and half of the last sleeps were short (or the limit itself admits nothing else): take
//!    it, keep the tick, do not ask the timers.
//! 5. Ask the timers. If the tick is stopped, the candidate pays within a tick, and the timer is more than two ticks away: take the
//!    deepest state that the limit and the timer allow, so that the CPU is not stuck in a shallow one.
//! 6. State 0: take it, keep the tick. If the timer comes too soon for the candidate, go shallower.
//! 7. The tick may stop unless the state spins, the next timer is within a tick, or two thirds of the wakeups are intercepts within a
//!    tick and the state pays within one. If it goes on, it is a timer like any other: go shallower if it comes before the state pays.
//!
//! **Example.** A CPU whose timer is 10 ms away is always woken after 5 ms. Its deep state pays, so it goes on being chosen; the tick goes
//! on where a tick is 10 ms, as all wakeups come within one:
//!
//! ```
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
//! use schedtwin_kernel::cpuidle::teo::v7_3::TeoCpu;
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(455, 3500)];
//! let stops_tick = |tick_nsec: i64| {
//!     let mut teo = TeoCpu::default();
//!     let mut last = None;
//!     for round in 0..9u64 {
//!         let input = SelectInput {
//!             states: &states,
//!             latency_req_ns: i64::MAX,
//!             tick_stopped: false,
//!             tick_nsec,
//!             now: round * 10_000_000,
//!             last_residency_ns: 5_000_000,
//!             nr_iowaiters: 0,
//!             cpu_util: 0,
//!         };
//!         let timers = SleepLength { sleep_length_ns: 10_000_000, delta_tick_ns: tick_nsec };
//!         let selection = teo.select(&input, &mut || timers);
//!         last = Some((selection.idx, selection.stop_tick));
//!         teo.reflect(&Reflection {
//!             state: selection.idx,
//!             got_tick: false,
//!             poll_time_limit: false,
//!             now: round * 10_000_000 + 5_000_000,
//!             tick_nsec,
//!             last_residency_ns: 5_000_000,
//!         });
//!     }
//!     last.unwrap()
//! };
//! assert_eq!(stops_tick(4_000_000), (1, true)); // HZ 250
//! assert_eq!(stops_tick(10_000_000), (1, false)); // HZ 100
//! ```
//!
//! **Kernel:** Linux 7.3, `drivers/cpuidle/governors/teo.c`. This file is checked bit for bit against that C
//! (`conformance/src/teo`).
//!
//! **Differences:**
//! - The driver, the device and the tick are arguments, not globals. Nobody can notice.
//! - `last_state_idx` and `poll_time_limit` live here, not in the device. Who could notice: a run that changes governors on the
//!   way; the twin has none.

use super::v6_12::TeoBin;
use super::{DECAY_SHIFT, Expected, PULSE, SelectRule, Selection, TickRule, tick_decision};
use crate::cpuidle::states::{
    CPUIDLE_STATE_MAX, KTIME_MAX, RESIDENCY_THRESHOLD_NS, Reflection, SAFE_TIMER_RANGE_TICKS,
    SelectInput, SleepLength, find_shallower_state,
};

/// A latency limit below this leaves only states that are taken without asking the timers (`LATENCY_THRESHOLD_NS`).
const LATENCY_THRESHOLD_NS: i64 = RESIDENCY_THRESHOLD_NS / 2;

/// teo's memory of one CPU (`struct teo_cpu`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeoCpu {
    /// Time to the next timer at the last selection, ns; [`KTIME_MAX`] if it was not asked for.
    pub sleep_length_ns: i64,
    /// Counters per state.
    pub state_bins: [TeoBin; CPUIDLE_STATE_MAX],
    /// Sum of the bins' counters, the new pulse included.
    pub total: u32,
    /// Wakeups by the tick.
    pub total_tick: u32,
    /// Intercepts after at most a tick.
    pub tick_intercepts: u32,
    /// Wakeups after short sleeps.
    pub short_idles: u32,
    /// The last wakeup was the tick's.
    pub tick_wakeup: bool,
    /// In the last sleep the polling state gave up (`dev->poll_time_limit`).
    pub poll_time_limit: bool,
    /// The state whose wakeup is still to be counted (`dev->last_state_idx`).
    ///
    /// A zeroed device says 0 and not "none": the very first selection counts a wakeup that never was.
    pub last_state_idx: Option<usize>,
}

impl Default for TeoCpu {
    /// As after `teo_enable_device` on a fresh device.
    fn default() -> Self {
        TeoCpu {
            sleep_length_ns: 0,
            state_bins: [TeoBin::default(); CPUIDLE_STATE_MAX],
            total: 0,
            total_tick: 0,
            tick_intercepts: 0,
            short_idles: 0,
            tick_wakeup: false,
            poll_time_limit: false,
            last_state_idx: Some(0),
        }
    }
}

/// Takes an eighth off a counter; what is too small for that is forgotten (`teo_decay`).
#[inline(always)]
fn decay(counter: &mut u32) {
    let delta = *counter >> DECAY_SHIFT;
    *counter = if delta == 0 { 0 } else { *counter - delta };
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
        self.commit(&selection);
        selection
    }

    /// Notes the end of an idle period (`teo_reflect`); not to be called when the entry was refused or a task
    /// was already waiting.
    #[inline]
    pub fn reflect(&mut self, stay: &Reflection) {
        self.tick_wakeup = stay.got_tick;
        self.poll_time_limit = stay.poll_time_limit;
        self.last_state_idx = Some(stay.state);
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
        let latency_ns = states[last_state].exit_latency_ns as i64;
        let measured_ns = self.measure(latency_ns, input.last_residency_ns as i64);

        let mut decayed = 0u32;
        let mut idx_timer = 0;
        let mut idx_duration = 0;
        for (i, (state, bin)) in states.iter().zip(&mut self.state_bins).enumerate() {
            decay(&mut bin.hits);
            decay(&mut bin.intercepts);
            decayed = decayed.wrapping_add(bin.hits.wrapping_add(bin.intercepts));

            if state.residency_ns() <= self.sleep_length_ns {
                idx_timer = i;
                if state.residency_ns() <= measured_ns {
                    idx_duration = i;
                }
            }
        }
        self.total = decayed.wrapping_add(PULSE);
        decay(&mut self.tick_intercepts);
        decay(&mut self.total_tick);

        if self.tick_wakeup {
            self.total_tick += PULSE;
            if 3 * self.total_tick > 2 * self.total {
                // Without the tick the CPU would have slept on: a reason to stop it.
                self.state_bins[states.len() - 1].hits += PULSE;
                return;
            }
            if 3 * self.tick_intercepts < 2 * decayed {
                // Probably an intercept was expected that did not come.
                self.state_bins[idx_timer].hits += PULSE;
                return;
            }
        }

        // As in C, a timer that is overdue wraps where the measured duration is without end.
        let missing_ns = self.sleep_length_ns.wrapping_sub(measured_ns);
        if idx_timer == idx_duration && missing_ns < latency_ns / 2 {
            self.state_bins[idx_timer].hits += PULSE;
        } else {
            self.state_bins[idx_duration].intercepts += PULSE;
            if measured_ns <= input.tick_nsec {
                self.tick_intercepts += PULSE;
            }
        }
    }

    /// How long the CPU slept, as teo counts it, ns; counts the sleep if it was short.
    fn measure(&mut self, latency_ns: i64, residency_ns: i64) -> i64 {
        decay(&mut self.short_idles);
        if std::mem::take(&mut self.poll_time_limit) {
            // Perhaps the sleep would have been long.
            return i64::MAX;
        }
        // Waking rarely takes its worst time, hence half of the exit latency.
        let (measured_ns, short) = if residency_ns >= latency_ns {
            let measured_ns = residency_ns - latency_ns / 2;
            (measured_ns, measured_ns < RESIDENCY_THRESHOLD_NS)
        } else {
            (residency_ns / 2, true)
        };
        if short {
            self.short_idles += PULSE;
        }
        measured_ns
    }

    /// Stores what the next update will compare with.
    #[inline]
    pub fn commit(&mut self, selection: &Selection) {
        self.sleep_length_ns = selection.sleep_length_ns.unwrap_or(KTIME_MAX);
    }

    /// Chooses, changing nothing (`teo_select` without its stores).
    pub fn decide(
        &self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Selection {
        let states = input.states;
        let selection = |idx, stop_tick, rule, tick_rule, sleep_length_ns| Selection {
            idx,
            stop_tick,
            rule,
            tick_rule,
            sleep_length_ns,
        };
        let below = self.shallower_bins(input);
        let Some((first_enabled, deepest)) = below.enabled else {
            return selection(0, false, SelectRule::NoneEnabled, TickRule::Shallow, None);
        };

        let mut idx = deepest;
        let mut rule = SelectRule::Deepest;
        let mut sleep_length_ns = None;
        let mut delta_tick_ns = input.tick_nsec / 2;
        let mut tick_intercepted = false;
        let duration_ns;
        if deepest == first_enabled {
            rule = SelectRule::OneEnabled;
            duration_ns = states[idx].residency_ns();
        } else {
            if 2 * below.intercepts > self.total.wrapping_sub(below.hits) {
                idx = self.state_that_half_reached(input, first_enabled, deepest, &below);
                if idx != deepest {
                    rule = SelectRule::Intercepts;
                }
            }
            if idx > below.constraint_idx {
                idx = below.constraint_idx;
                rule = SelectRule::LatencyLimit;
            }
            let pays_at_once = idx == 0 || states[idx].residency_ns() < RESIDENCY_THRESHOLD_NS;
            let timers_matter_little =
                2 * self.short_idles >= self.total || input.latency_req_ns < LATENCY_THRESHOLD_NS;
            if !input.tick_stopped && pays_at_once && timers_matter_little {
                return selection(idx, false, rule, TickRule::Shallow, None);
            }

            let timers = sleep_length();
            sleep_length_ns = Some(timers.sleep_length_ns);
            delta_tick_ns = timers.delta_tick_ns;
            if input.tick_stopped
                && timers.sleep_length_ns > SAFE_TIMER_RANGE_TICKS * input.tick_nsec
                && states[idx].residency_ns() < input.tick_nsec
            {
                let deeper = (idx + 1..=below.constraint_idx).rev().find(|&i| {
                    !states[i].disabled && states[i].residency_ns() <= timers.sleep_length_ns
                });
                if let Some(deeper) = deeper {
                    (idx, rule) = (deeper, SelectRule::NotStuck);
                }
                return selection(idx, true, rule, TickRule::AlreadyStopped, sleep_length_ns);
            }
            if idx == 0 {
                return selection(0, false, rule, TickRule::Shallow, sleep_length_ns);
            }
            if states[idx].residency_ns() > timers.sleep_length_ns {
                let shallower = find_shallower_state(states, idx, timers.sleep_length_ns, false);
                if shallower != idx {
                    rule = SelectRule::Timer;
                }
                idx = shallower;
            }
            tick_intercepted = states[idx].residency_ns() < input.tick_nsec
                && 3 * self.tick_intercepts >= 2 * self.total;
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

    /// Step 2: what is below the deepest enabled state.
    fn shallower_bins(&self, input: &SelectInput) -> Below {
        let states = input.states;
        let mut below = Below::default();
        let (mut hits, mut intercepts, mut most) = (0, 0, 0);
        if !states[0].disabled {
            below.enabled = Some((0, 0));
        }
        for (i, state) in states.iter().enumerate().skip(1) {
            let bin = self.state_bins[i - 1];
            hits += bin.hits;
            intercepts += bin.intercepts;
            if bin.intercepts >= most {
                most = bin.intercepts;
                below.most_intercepts_idx = i - 1;
            }
            if state.disabled {
                continue;
            }
            let first = below.enabled.map_or(i, |(first, _)| first);
            below.enabled = Some((first, i));
            if state.exit_latency_ns as i64 <= input.latency_req_ns {
                below.constraint_idx = i;
            }
            (below.hits, below.intercepts) = (hits, intercepts);
        }
        below
    }

    /// Step 3: the deepest enabled state, not deeper than the bin with most intercepts, whose residency was reached in more than half of the
    /// early wakeups; the first enabled one if there is none.
    fn state_that_half_reached(
        &self,
        input: &SelectInput,
        first_enabled: usize,
        deepest: usize,
        below: &Below,
    ) -> usize {
        let mut idx = deepest;
        let mut intercepts = 0;
        for i in (first_enabled..deepest).rev() {
            intercepts += self.state_bins[i].intercepts;
            if input.states[i].disabled {
                continue;
            }
            idx = i;
            if 2 * intercepts > below.intercepts && i <= below.most_intercepts_idx {
                break;
            }
        }
        idx
    }
}

/// The findings of step 2.
#[derive(Default)]
struct Below {
    /// The shallowest and the deepest enabled state.
    enabled: Option<(usize, usize)>,
    /// The deepest enabled state that can be left in time; 0 if none can.
    constraint_idx: usize,
    /// Hits and intercepts of all bins below the deepest enabled state.
    hits: u32,
    intercepts: u32,
    /// The bin below the last state with most intercepts, the deepest of several.
    most_intercepts_idx: usize,
}

#[cfg(test)]
mod tests;
