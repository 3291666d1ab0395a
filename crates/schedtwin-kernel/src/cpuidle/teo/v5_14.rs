// SPDX-License-Identifier: GPL-2.0-or-later
//! teo as of Linux 5.14 to 6.5, with or without an eye on utilisation.
//!
//! **The idea** is that of [`v6_12`](super::v6_12), where the terms are explained: bins of hits and
//! intercepts. These forms know one thing more, the *recent* intercepts: of the last [`NR_RECENT`]
//! wakeups, how many were early, and in which bin. A change of habit shows there first. And it asks the
//! timers before anything else, also where the answer cannot matter.
//!
//! **Algorithm** ([`TeoCpu::select`]):
//! 1. Count the last wakeup, if one was reflected, in the bins and in the ring of recent ones (*).
//! 2. Ask the timers. The next one comes before state 1 pays: state 0.
//! 3. A utilised CPU may take a shallow state at once (*).
//! 4. Candidate: the deepest enabled state that pays until the timer. It is the first enabled one: take it.
//! 5. Do intercepts prevail (twice those of the shallower bins exceed all else but the hits there), or
//!    are more than half of the recent wakeups intercepts there? Walk from the candidate towards state 0
//!    until more than half of whichever prevails lies at or above a state: that is the new candidate, and
//!    the middle of its bin is how long the CPU is expected to sleep. With a stopped tick, only states
//!    whose middle is a tick away.
//! 6. Apply the latency limit. A utilised CPU may go a state shallower (*).
//! 7. The tick may stop unless the state spins or the CPU is expected to sleep less than a tick; if it
//!    goes on, go shallower if it comes before the state pays.
//!
//! (*) What utilisation alters is a matter of [`util`](super::util); without it, as up to 6.2, nothing.
//!
//! **Example.** Five early wakeups of the last nine are enough, whatever the bins have counted before:
//!
//! ```
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, Reflection, SelectInput, SleepLength};
//! use schedtwin_kernel::cpuidle::teo::{SelectRule, v5_14::TeoCpu};
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(230, 2000)];
//! let mut teo = TeoCpu::new(None);
//! let mut chosen = Vec::new();
//! for round in 0..60u64 {
//!     // 5 ms, which is when the timer is due; in the end always woken after 100 us.
//!     let slept_us = if round < 50 { 5000 } else { 100 };
//!     let input = SelectInput {
//!         states: &states,
//!         latency_req_ns: i64::MAX,
//!         tick_stopped: false,
//!         tick_nsec: 4_000_000,
//!         now: round * 10_000_000,
//!         last_residency_ns: if round <= 50 { 5_000_000 } else { 100_000 },
//!         nr_iowaiters: 0,
//!         cpu_util: 0,
//!     };
//!     let timers = SleepLength { sleep_length_ns: 5_000_000, delta_tick_ns: 3_000_000 };
//!     let selection = teo.select(&input, &mut || timers);
//!     chosen.push(selection.idx);
//!     teo.reflect(&Reflection {
//!         state: selection.idx,
//!         got_tick: false,
//!         poll_time_limit: false,
//!         now: input.now + slept_us * 1000,
//!         tick_nsec: 4_000_000,
//!         last_residency_ns: slept_us * 1000,
//!     });
//! }
//! assert_eq!(chosen[50..], [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
//! ```
//!
//! **Kernel:** Linux 6.1, `drivers/cpuidle/governors/teo.c`. This file is checked bit for bit against that C,
//! alone and with each patch of [`util`](super::util) (`conformance/src/teo`).
//!
//! **Differences:**
//! - The driver, the device and the tick are arguments, not globals. Nobody can notice.
//! - `last_state_idx` lives here, not in the device. Who could notice: a run that changes governors
//!   on the way; the twin has none.

use super::util::UtilAware;
use super::{DECAY_SHIFT, PULSE, SelectRule, Selection, TickRule, measured_ns, reflected_span_ns};
use crate::cpuidle::states::{
    CPUIDLE_STATE_MAX, Reflection, SelectInput, SleepLength, find_shallower_state,
};

/// How many wakeups are recent.
pub const NR_RECENT: usize = 9;

/// Counters of one range of durations (`struct teo_bin`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeoBin {
    /// Early wakeups that fell into this bin.
    pub intercepts: u32,
    /// Wakeups in the bin that the timer had promised.
    pub hits: u32,
    /// How many of the last [`NR_RECENT`] wakeups were intercepts in this bin.
    pub recent: u32,
}

/// teo's memory of one CPU (`struct teo_cpu`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeoCpu {
    /// Between selection and reflection the time of selection, afterwards the time between them, ns.
    pub time_span_ns: i64,
    /// Time to the next timer at the last selection, ns.
    pub sleep_length_ns: i64,
    /// Counters per state.
    pub state_bins: [TeoBin; CPUIDLE_STATE_MAX],
    /// Sum of all counters but the recent ones, the new pulse included.
    pub total: u32,
    /// Which entry of `recent_idx` is the oldest.
    pub next_recent_idx: u8,
    /// Bins of the last wakeups, where they were intercepts.
    pub recent_idx: [Option<u8>; NR_RECENT],
    /// The state whose wakeup is still to be counted (`dev->last_state_idx`).
    ///
    /// A zeroed device says 0 and not "none": the very first selection counts a hit that never was.
    pub last_state_idx: Option<u8>,
    /// Where utilisation counts.
    pub util: Option<UtilAware>,
}

/// The values that the choice of a state hands on to the decision about the tick.
struct Candidate {
    idx: usize,
    /// The first enabled state, as far as the choice came to look for it.
    idx0: usize,
    /// How long the CPU is expected to sleep.
    duration_ns: i64,
    rule: SelectRule,
}

/// Whether there is anything to choose: two states at least, and time for state 1 until the timer.
fn states_to_choose(input: &SelectInput, sleep_length_ns: i64) -> bool {
    let states = input.states;
    states.len() >= 2 && (states[0].disabled || states[1].residency_ns() <= sleep_length_ns)
}

impl TeoCpu {
    /// As after `teo_enable_device` on a fresh device.
    pub fn new(util: Option<UtilAware>) -> TeoCpu {
        TeoCpu {
            time_span_ns: 0,
            sleep_length_ns: 0,
            state_bins: [TeoBin::default(); CPUIDLE_STATE_MAX],
            total: 0,
            next_recent_idx: 0,
            recent_idx: [None; NR_RECENT],
            last_state_idx: Some(0),
            util,
        }
    }

    /// Chooses a state for a CPU that goes idle (`teo_select`). `sleep_length` asks the timers
    /// (`tick_nohz_get_sleep_length`), once.
    pub fn select(
        &mut self,
        input: &SelectInput,
        sleep_length: &mut impl FnMut() -> SleepLength,
    ) -> Selection {
        if self.util.is_some_and(|util| util.forgets()) {
            self.last_state_idx = None;
        }
        self.update(input);
        let timers = sleep_length();
        if let Some(util) = &mut self.util
            && states_to_choose(input, timers.sleep_length_ns)
        {
            util.look(input.cpu_util);
        }
        let selection = self.decide(input, timers);
        self.commit(input.now, timers);
        selection
    }

    /// Notes the end of an idle period (`teo_reflect`); not to be called when the entry was refused or a task
    /// was already waiting.
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
        let Some(last_state) = self.last_state_idx.take() else {
            return;
        };

        let measured_ns = measured_ns(
            self.time_span_ns,
            self.sleep_length_ns,
            states[last_state as usize].exit_latency_ns,
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

        let hit = idx_timer == idx_duration;
        let newest = (!hit).then_some(idx_duration as u8);
        let oldest = std::mem::replace(&mut self.recent_idx[self.next_recent_idx as usize], newest);
        self.next_recent_idx = (self.next_recent_idx + 1) % NR_RECENT as u8;
        if let Some(oldest) = oldest {
            self.state_bins[oldest as usize].recent -= 1;
        }
        let bin = &mut self.state_bins[idx_duration];
        if hit {
            bin.hits += PULSE;
        } else {
            bin.intercepts += PULSE;
            bin.recent += 1;
        }
        self.total = self.total.wrapping_add(PULSE);
    }

    /// Stores what the next update will compare with.
    #[inline]
    pub fn commit(&mut self, now: u64, timers: SleepLength) {
        self.time_span_ns = now as i64;
        self.sleep_length_ns = timers.sleep_length_ns;
    }

    /// Chooses, changing nothing (`teo_select` without its stores).
    pub fn decide(&self, input: &SelectInput, timers: SleepLength) -> Selection {
        let states = input.states;
        let Candidate { mut idx, idx0, duration_ns, mut rule } =
            self.candidate(input, timers.sleep_length_ns);
        // The patch as posted may answer a state behind the last: C reads zeros there.
        let state = states.get(idx).copied().unwrap_or_default();
        let polling = state.polling;
        let keep_tick = !input.tick_stopped && (polling || duration_ns < input.tick_nsec);
        if keep_tick && idx > idx0 && state.residency_ns() > timers.delta_tick_ns {
            let shallower = find_shallower_state(states, idx, timers.delta_tick_ns, false);
            if shallower != idx {
                rule = SelectRule::Tick;
            }
            idx = shallower;
        }
        let tick_rule = match () {
            () if input.tick_stopped => TickRule::AlreadyStopped,
            () if polling => TickRule::Polling,
            () if duration_ns < input.tick_nsec => TickRule::ShortSleep,
            () => TickRule::LongSleep,
        };
        let sleep_length_ns = Some(timers.sleep_length_ns);
        Selection { idx, stop_tick: !keep_tick, rule, tick_rule, sleep_length_ns }
    }

    /// Steps 2 to 6: the state, but for what the tick has to say.
    fn candidate(&self, input: &SelectInput, sleep_length_ns: i64) -> Candidate {
        let states = input.states;
        let at = |idx, idx0, rule| Candidate { idx, idx0, duration_ns: sleep_length_ns, rule };
        if states.len() < 2 {
            return at(0, 0, SelectRule::NoChoice);
        }
        if !states_to_choose(input, sleep_length_ns) {
            return at(0, 0, SelectRule::Timer);
        }
        if let Some(idx) = self.util.and_then(|util| util.at_once(states)) {
            // The counters need not be asked. The first enabled state is not looked for either: the tick
            // may move this choice down to a state that spins.
            return at(idx, 0, SelectRule::Utilised);
        }

        let mut candidate = (!states[0].disabled).then_some(0);
        let mut idx0 = 0;
        let mut constraint_idx = 0;
        let mut too_deep = false;
        let (mut below, mut all) = (TeoBin::default(), TeoBin::default());
        for (i, state) in states.iter().enumerate().skip(1) {
            let bin = &self.state_bins[i - 1];
            all.intercepts += bin.intercepts;
            all.hits += bin.hits;
            all.recent += bin.recent;
            if state.disabled {
                continue;
            }
            if candidate.is_none() {
                candidate = Some(i);
                idx0 = i;
            }
            too_deep = state.residency_ns() > sleep_length_ns;
            if too_deep {
                break;
            }
            candidate = Some(i);
            if state.exit_latency_ns as i64 <= input.latency_req_ns {
                constraint_idx = i;
            }
            below = all;
        }
        let Some(deepest) = candidate else {
            return at(0, idx0, SelectRule::NoneEnabled);
        };
        let mut found = at(deepest, idx0, SelectRule::Deepest);
        if too_deep {
            found.rule = SelectRule::Timer;
        }
        if deepest == idx0 {
            // Before the latency limit is looked at.
            if !too_deep {
                found.rule = SelectRule::OneEnabled;
            }
            return found;
        }

        if let Some((idx, duration_ns)) = self.state_that_half_reached(input, &found, below) {
            if idx != deepest {
                found.rule = SelectRule::Intercepts;
            } else if input.tick_stopped {
                found.rule = SelectRule::TickStopped;
            }
            (found.idx, found.duration_ns) = (idx, duration_ns);
        }
        if found.idx > constraint_idx {
            found.idx = constraint_idx;
            found.rule = SelectRule::LatencyLimit;
        }
        if let Some(util) = self.util {
            let shallower = util.step(states, found.idx, found.duration_ns);
            if shallower != found.idx {
                found.rule = SelectRule::Utilised;
            }
            found.idx = shallower;
        }
        found
    }

    /// Step 5: the state that early wakeups speak for, and how long the CPU is expected to sleep; `None`
    /// if they speak for none. `below`: sums of the bins below the candidate.
    fn state_that_half_reached(
        &self,
        input: &SelectInput,
        candidate: &Candidate,
        below: TeoBin,
    ) -> Option<(usize, i64)> {
        let states = input.states;
        let alt_intercepts = 2 * below.intercepts > self.total.wrapping_sub(below.hits);
        let alt_recent = below.recent > NR_RECENT as u32 / 2;
        if !alt_intercepts && !alt_recent {
            return None;
        }
        // With the tick stopped the CPU may sleep long: a state must be expected to last a tick.
        let time_ok = |span_ns: i64| !input.tick_stopped || span_ns >= input.tick_nsec;
        let mut first_suitable = None;
        let (mut intercepts, mut recent) = (0, 0);
        for i in (0..candidate.idx).rev() {
            intercepts += self.state_bins[i].intercepts;
            recent += self.state_bins[i].recent;
            let span_ns = states[i].residency_ns().wrapping_add(states[i + 1].residency_ns()) / 2;
            if (!alt_recent || 2 * recent > below.recent)
                && (!alt_intercepts || 2 * intercepts > below.intercepts)
            {
                let usable = time_ok(span_ns) && !states[i].disabled;
                return if usable { Some((i, span_ns)) } else { first_suitable };
            }
            if states[i].disabled {
                continue;
            }
            if time_ok(span_ns) {
                first_suitable = Some((i, span_ns));
            } else if first_suitable.is_none() {
                // Shallower ones will not last long enough either, and there is none to fall back to.
                break;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
