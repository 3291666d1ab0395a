// SPDX-License-Identifier: GPL-2.0-or-later
//! teo as of Linux 6.18: which idle state a CPU should enter, and whether its tick may stop.
//!
//! **The idea** is that of [`v6_12`](super::v6_12), and a hit is what it is there: sleep length and measured duration fall into
//! the same bin. What is new stands between that form and [`v7_3`](super::v7_3).
//!
//! **Terms** beside those of [`v6_12`](super::v6_12). *Tick intercepts*: intercepts after **at least** a tick (7.3: at most).
//! *Short idles*: sleeps below [`RESIDENCY_THRESHOLD_NS`]. *Safety net*: a tick without a timer within one, or a polling state
//! that gave up; the sleep counts as one without end. The total decays by itself and is no sum of the bins.
//!
//! ```text
//!  sleeps, µs          5000 of 10000, in one bin        6.12: hit       6.18: hit       7.3: intercept
//!                      5000 of 10000, across a bin      intercept       intercept, and a tick intercept if a tick is ≤ 5 ms
//! ```
//!
//! **Algorithm** ([`TeoCpu::select`] = [`TeoCpu::update`], [`TeoCpu::decide`], [`TeoCpu::commit`]):
//! 1. Count the last wakeup, if one was reflected.
//! 2. Candidate: the deepest enabled state. Sum hits and intercepts of all shallower bins.
//! 3. If twice those intercepts exceed everything but those hits, early wakeups prevail: go shallower as 6.12 does.
//! 4. Apply the latency limit. If the candidate pays at once, and half of the last sleeps were short (or the limit itself admits
//!    nothing else): take it, keep the tick, do not ask the timers. So it is with a stopped tick, too.
//! 5. Ask the timers. State 0: take it, keep the tick. If the timer comes too soon for the candidate, go shallower.
//! 6. The tick may stop unless the state spins, the next timer is within a tick, or 5/8 of the wakeups are tick intercepts and
//!    the state pays within a tick. If it goes on, go shallower if it comes before the state pays.
//!
//! **Example.** The total of the first updates, and what a sleep of half its length counts as:
//!
//! ```
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput};
//! use schedtwin_kernel::cpuidle::teo::v6_18::TeoCpu;
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(455, 3500)];
//! let input = SelectInput {
//!     states: &states,
//!     latency_req_ns: i64::MAX,
//!     tick_stopped: false,
//!     tick_nsec: 4_000_000,
//!     now: 0,
//!     last_residency_ns: 5_000_000,
//!     nr_iowaiters: 0,
//!     cpu_util: 0,
//! };
//! let mut teo = TeoCpu::default();
//! let totals = [(); 3].map(|()| {
//!     (teo.last_state_idx, teo.sleep_length_ns) = (Some(1), 10_000_000);
//!     teo.update(&input);
//!     teo.total
//! });
//! assert_eq!(totals, [1024, 1920, 2704]);
//! assert_eq!((teo.state_bins[1].hits, teo.state_bins[1].intercepts), (2704, 0));
//! ```
//!
//! **Kernel:** Linux 6.18.44, `drivers/cpuidle/governors/teo.c` (the same since 6.18.3).
//!
//! **Differences:**
//! - The driver, the device and the tick are arguments, not globals. Nobody can notice.
//! - `last_state_idx` lives here, not in the device. Who could notice: a run that changes governors on the way; the twin has
//!   none.

use super::v6_12::{TeoBin, state_that_half_reached};
use super::{DECAY_SHIFT, Expected, PULSE, SelectRule, Selection, TickRule, tick_decision};
use crate::cpuidle::states::{
    CPUIDLE_STATE_MAX, KTIME_MAX, RESIDENCY_THRESHOLD_NS, Reflection, SelectInput, SleepLength,
    find_shallower_state,
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
    /// Wakeups; decays like one counter.
    pub total: u32,
    /// Intercepts after at least a tick.
    pub tick_intercepts: u32,
    /// Wakeups after short sleeps.
    pub short_idles: u32,
    /// A safety net ended the last sleep.
    pub artificial_wakeup: bool,
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
            tick_intercepts: 0,
            short_idles: 0,
            artificial_wakeup: false,
            last_state_idx: Some(0),
        }
    }
}

/// Takes an eighth off a counter; seven and less stay.
#[inline(always)]
fn decay(counter: &mut u32) {
    *counter -= *counter >> DECAY_SHIFT;
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
        self.last_state_idx = Some(stay.state);
        let by_tick = stay.got_tick && self.sleep_length_ns > stay.tick_nsec;
        self.artificial_wakeup = stay.poll_time_limit || by_tick;
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
        let measured_ns = self.measure(states[last_state].exit_latency_ns, input.last_residency_ns);

        let mut idx_timer = 0;
        let mut idx_duration = 0;
        for (i, (state, bin)) in states.iter().zip(&mut self.state_bins).enumerate() {
            decay(&mut bin.hits);
            decay(&mut bin.intercepts);
            if state.residency_ns() <= self.sleep_length_ns {
                idx_timer = i;
                if state.target_residency_ns <= measured_ns {
                    idx_duration = i;
                }
            }
        }
        decay(&mut self.tick_intercepts);
        if idx_timer == idx_duration {
            self.state_bins[idx_timer].hits += PULSE;
        } else {
            self.state_bins[idx_duration].intercepts += PULSE;
            if input.tick_nsec as u64 <= measured_ns {
                self.tick_intercepts += PULSE;
            }
        }
        decay(&mut self.total);
        self.total += PULSE;
    }

    /// How long the CPU slept, as teo counts it, ns; counts the sleep if it was short.
    fn measure(&mut self, latency_ns: u64, residency_ns: u64) -> u64 {
        decay(&mut self.short_idles);
        if self.artificial_wakeup {
            // Perhaps the sleep would have been long.
            return u64::MAX;
        }
        // Waking rarely takes its worst time, hence half of the exit latency.
        let (measured_ns, short) = if residency_ns >= latency_ns {
            let measured_ns = residency_ns - latency_ns / 2;
            (measured_ns, measured_ns < RESIDENCY_THRESHOLD_NS as u64)
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
        let keep_tick = |idx, rule, sleep_length_ns| Selection {
            idx,
            stop_tick: false,
            rule,
            tick_rule: TickRule::Shallow,
            sleep_length_ns,
        };
        if states.len() < 2 {
            return keep_tick(0, SelectRule::NoChoice, None);
        }
        let below = self.shallower_bins(input);
        let Some((first_enabled, deepest)) = below.enabled else {
            return keep_tick(0, SelectRule::NoneEnabled, None);
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
                let bins = &self.state_bins;
                idx = state_that_half_reached(bins, input, deepest, below.intercepts);
                if idx != deepest {
                    rule = SelectRule::Intercepts;
                } else if input.tick_stopped {
                    rule = SelectRule::TickStopped;
                }
            }
            if idx > below.constraint_idx {
                idx = below.constraint_idx;
                rule = SelectRule::LatencyLimit;
            }
            let pays_at_once = idx == 0 || states[idx].residency_ns() < RESIDENCY_THRESHOLD_NS;
            let timers_matter_little =
                2 * self.short_idles >= self.total || input.latency_req_ns < LATENCY_THRESHOLD_NS;
            if pays_at_once && timers_matter_little {
                return keep_tick(idx, rule, None);
            }

            let timers = sleep_length();
            sleep_length_ns = Some(timers.sleep_length_ns);
            delta_tick_ns = timers.delta_tick_ns;
            if idx == 0 {
                return keep_tick(0, rule, sleep_length_ns);
            }
            if states[idx].residency_ns() > timers.sleep_length_ns {
                let shallower = find_shallower_state(states, idx, timers.sleep_length_ns, false);
                if shallower != idx {
                    rule = SelectRule::Timer;
                }
                idx = shallower;
            }
            tick_intercepted = states[idx].residency_ns() < input.tick_nsec
                && self.tick_intercepts > self.total / 2 + self.total / 8;
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
        let mut below = Below::default();
        let (mut hits, mut intercepts) = (0, 0);
        for (i, state) in input.states.iter().enumerate() {
            if !state.disabled {
                let first = below.enabled.map_or(i, |(first, _)| first);
                below.enabled = Some((first, i));
                // No latency limit keeps a CPU out of state 0.
                if state.exit_latency_ns as i64 <= input.latency_req_ns {
                    below.constraint_idx = i;
                }
                (below.hits, below.intercepts) = (hits, intercepts);
            }
            hits += self.state_bins[i].hits;
            intercepts += self.state_bins[i].intercepts;
        }
        below
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
}

#[cfg(test)]
mod tests;
