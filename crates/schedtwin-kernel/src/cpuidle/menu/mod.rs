// SPDX-License-Identifier: GPL-2.0-or-later
//! The menu governor, one file per form it has had; what the forms share is here.
//!
//! **The idea.** When the next timer fires is known exactly; something else usually comes first. Two
//! guesses are made of how long the CPU will sleep, and the shorter one counts:
//! - *timer*: the time to the next timer, times the share of it that past sleeps of that length have
//!   lasted, the *correction factor*;
//! - *typical interval*: if the last eight sleeps were much alike, perhaps but for one or two long ones,
//!   their mean.
//!
//! The deepest state that pays within the guess, and can be left fast enough, is taken.
//!
//! **Terms.** *Bucket*: sleep lengths of one decade, from below 10 µs to 100 ms and more; each has a
//! factor of its own, in 1/8192. *Predicted*: the guess that counts.
//!
//! ```text
//!  sleeps, µs     810 812 811 9000 812 813 812 812
//!  typical        all: spread far too wide; without 9000: 812, spread 1 ─► 812 µs
//!  timer          4000 µs away, factor 8192/8192 ─► 4000 µs            predicted: 812 µs
//! ```
//!
//! | releases | form |
//! |---|---|
//! | 4.20 to 6.5 | [`v4_20`]: as 5.18, but nothing is noted where the driver refuses a state |
//! | 6.1.192 | [`v5_18`]: asks the timers first; twelve buckets, half of them with I/O waiters |
//! | 6.6 to 6.12 | [`v6_12`]: asks the timers only if the typical interval leaves something open |
//! | 6.18 | [`v6_18`]: as that; short sleeps can be left out of the typical interval, too |
//! | 7.3 | [`v7_3`]: as 6.12; short sleeps can be left out of the typical interval as well as long ones |
//!
//! **Example.** A factor of 1 believes the timer:
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::MenuCpu;
//!
//! let menu = MenuCpu::default();
//! assert_eq!(menu.timer_us(4_000_000, 3), 4000);
//! ```
//!
//! **Kernel:** Linux 6.1, 6.12, 6.18 and 7.3, `drivers/cpuidle/governors/menu.c`. All forms but that of 6.18 are checked bit for bit
//! against that C (`conformance/src/menu`).
//!
//! **Differences:**
//! - The driver, the device and the tick are arguments, not globals. Nobody can notice.
//! - `last_state_idx` and whether polling gave up live here, not in the device. Who could notice: a run
//!   that changes governors on the way; the twin has none.

pub mod v4_20;
pub mod v5_18;
pub mod v6_12;
pub mod v6_18;
pub mod v7_3;

use super::states::{CPUIDLE_STATE_MAX, SelectInput};
pub use schedtwin_types::MenuRule as SelectRule;

/// Decades of sleep lengths.
pub const DECADES: usize = 6;
/// Sleeps that the typical interval looks at.
pub const INTERVALS: usize = 8;
/// The amount that a sleep until the timer adds to its factor.
pub const RESOLUTION: u64 = 1024;
/// Each update takes 1/8 off the factor, so a factor of 1 is 8 · 1024.
pub const DECAY: u64 = 8;
/// A sleep as long as this counts as perfectly predicted, ns.
pub const MAX_INTERESTING: u64 = 50_000_000;

/// menu's memory of one CPU (`struct menu_device`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuCpu {
    /// A sleep was reflected and is still to be counted.
    pub needs_update: bool,
    /// The tick's handler ran in it.
    pub tick_wakeup: bool,
    /// The polling state gave up in it (`dev->poll_time_limit`).
    pub poll_time_limit: bool,
    /// The state of it (`dev->last_state_idx`).
    pub last_state_idx: u8,
    /// Which of `intervals` is the oldest.
    pub interval_ptr: u8,
    /// Index into `correction_factor` at the last selection.
    pub bucket: u8,
    /// Time to the next timer at the last selection, ns; `KTIME_MAX` if it was not asked for.
    pub next_timer_ns: u64,
    /// A state whose exit latency exceeds the prediction may take the place of polling (`bugs.menu_drops_polling`).
    pub drops_polling: bool,
    /// Share of the time to the timer that was slept, in 1/8192. The second half, with I/O waiters, is
    /// used by [`v5_18`] only.
    pub correction_factor: [u32; 2 * DECADES],
    /// The last sleeps, µs; `u32::MAX` for an entry that was refused.
    pub intervals: [u32; INTERVALS],
}

impl Default for MenuCpu {
    /// As after `menu_enable_device`.
    fn default() -> Self {
        MenuCpu {
            needs_update: false,
            tick_wakeup: false,
            poll_time_limit: false,
            last_state_idx: 0,
            interval_ptr: 0,
            bucket: 0,
            next_timer_ns: 0,
            drops_polling: false,
            correction_factor: [(RESOLUTION * DECAY) as u32; 2 * DECADES],
            intervals: [0; INTERVALS],
        }
    }
}

/// The choice and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Index of the state to enter.
    pub idx: usize,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// The rule that decided about the state: the last one that moved it.
    pub rule: SelectRule,
    /// The answer of the timers, if they were asked.
    pub sleep_length_ns: Option<i64>,
    /// To be remembered: time to the next timer, not negative, ns.
    pub next_timer_ns: u64,
    /// To be remembered: the bucket that it falls into.
    pub bucket: usize,
}

impl MenuCpu {
    /// Notes the end of an idle period (`menu_reflect`). `state` is the one entered; not to be called
    /// when the entry was refused or a task was already waiting. `got_tick`: the tick's handler ran
    /// meanwhile. `poll_time_limit`: the polling state gave up.
    #[inline]
    pub fn reflect(&mut self, state: usize, got_tick: bool, poll_time_limit: bool) {
        self.last_state_idx = state as u8;
        self.needs_update = true;
        self.tick_wakeup = got_tick;
        self.poll_time_limit = poll_time_limit;
    }

    /// Counts the last sleep, unless that was done (`menu_update` and the beginning of `menu_select`).
    pub fn update(&mut self, input: &SelectInput) {
        let states = input.states;
        assert!(
            (1..=CPUIDLE_STATE_MAX).contains(&states.len()),
            "menu: no idle states, or too many"
        );
        if !std::mem::take(&mut self.needs_update) {
            if input.last_residency_ns == 0 {
                // The entry was refused, or there was none yet: an interval that never counts.
                self.push_interval(u32::MAX);
            }
            return;
        }

        let last = &states[self.last_state_idx as usize];
        let measured_ns = if self.tick_wakeup && self.next_timer_ns > input.tick_nsec as u64 {
            // The tick should have been stopped, and then the CPU would have slept long.
            9 * MAX_INTERESTING / 10
        } else if last.polling && self.poll_time_limit {
            self.next_timer_ns
        } else if input.last_residency_ns > last.exit_latency_ns.wrapping_mul(2) {
            input.last_residency_ns - last.exit_latency_ns
        } else {
            // Perhaps the state was never reached.
            input.last_residency_ns / 2
        }
        .min(self.next_timer_ns);

        let factor = &mut self.correction_factor[self.bucket as usize];
        *factor -= *factor / DECAY as u32;
        *factor += if self.next_timer_ns > 0 && measured_ns < MAX_INTERESTING {
            (RESOLUTION * measured_ns / self.next_timer_ns) as u32
        } else {
            RESOLUTION as u32
        };
        self.push_interval((measured_ns / 1000) as u32);
    }

    /// Stores what the next update will compare with.
    #[inline]
    fn commit(&mut self, selection: &Selection) {
        self.next_timer_ns = selection.next_timer_ns;
        self.bucket = selection.bucket as u8;
    }

    fn push_interval(&mut self, interval_us: u32) {
        self.intervals[self.interval_ptr as usize] = interval_us;
        self.interval_ptr = (self.interval_ptr + 1) % INTERVALS as u8;
    }

    /// The corrected time to the next timer, µs, rounded. As in C, the product wraps and the quotient is
    /// cut to 32 bits: a CPU without any timer gets some finite value.
    pub fn timer_us(&self, next_timer_ns: u64, bucket: usize) -> u32 {
        /// 1 µs at a factor of 1.
        const UNIT: u64 = RESOLUTION * DECAY * 1000;
        let factor = self.correction_factor[bucket] as u64;
        (next_timer_ns.wrapping_mul(factor).wrapping_add(UNIT / 2) / UNIT) as u32
    }

    /// The correction factor of the bucket that was used last, in thousandths.
    pub fn correction_permille(&self) -> u32 {
        let factor = u64::from(self.correction_factor[self.bucket as usize]);
        (factor * 1000 / (RESOLUTION * DECAY)) as u32
    }

    /// The mean of the last intervals if they are much alike (`get_typical_interval`), µs; `u32::MAX` if
    /// not. Alike: the standard deviation is at most 20 µs, or, of six or more, less than a sixth of the
    /// mean. If they are not, the longest are left out and the others tried, until six or fewer have been.
    /// `pointless` is told the shortest and the longest interval that are left, and ends it.
    fn typical_interval_us(&self, pointless: impl Fn(u32, u32) -> bool) -> u32 {
        let mut thresh = i32::MAX as u32;
        loop {
            let considered = || self.intervals.iter().filter(|value| **value <= thresh);
            let (mut min, mut max) = (u32::MAX, 0);
            let (mut sum, mut count) = (0u64, 0u64);
            for &value in considered() {
                sum += value as u64;
                count += 1;
                max = max.max(value);
                min = min.min(value);
            }
            if pointless(min, max) {
                return u32::MAX;
            }
            let mean = sum / count;
            let variance = considered().map(|&value| (value as u64).abs_diff(mean).pow(2));
            let variance = variance.sum::<u64>() / count;
            let most_left = 4 * count >= 3 * INTERVALS as u64;
            let narrow = variance <= u64::MAX / 36 && mean * mean > variance * 36 && most_left;
            if narrow || variance <= 400 {
                return mean as u32;
            }
            if 4 * count <= 3 * INTERVALS as u64 {
                return u32::MAX;
            }
            thresh = max - 1;
        }
    }
}

/// `which_bucket()`, without I/O waiters.
fn which_bucket(duration_ns: u64) -> usize {
    match duration_ns {
        0..10_000 => 0,
        10_000..100_000 => 1,
        100_000..1_000_000 => 2,
        1_000_000..10_000_000 => 3,
        10_000_000..100_000_000 => 4,
        _ => 5,
    }
}

/// Whether it will be state 0 no matter what is predicted, and why. Then the tick may stop if the state
/// does not spin.
fn only_state_0(input: &SelectInput, next_timer_ns: u64) -> Option<SelectRule> {
    let states = input.states;
    if states.len() <= 1 {
        return Some(SelectRule::NoChoice);
    }
    if input.latency_req_ns == 0 {
        return Some(SelectRule::LatencyLimit);
    }
    if states[0].disabled {
        return None;
    }
    if next_timer_ns < states[1].target_residency_ns {
        return Some(SelectRule::TimerTooSoon);
    }
    let slow = input.latency_req_ns < states[1].exit_latency_ns as i64;
    slow.then_some(SelectRule::LatencyLimit)
}

/// The end of `menu_select`: may the tick stop, and if it goes on, does the state pay until it comes?
/// Returns the state, whether the tick may stop, and the rule.
fn tick_decision(
    input: &SelectInput,
    idx: Option<usize>,
    predicted_ns: u64,
    delta_tick_ns: i64,
    rule: SelectRule,
) -> (usize, bool, SelectRule) {
    let states = input.states;
    let (idx, rule) = idx.map_or((0, SelectRule::NoneEnabled), |idx| (idx, rule));
    let short = states[idx].polling || predicted_ns < input.tick_nsec as u64;
    if !short || input.tick_stopped {
        return (idx, true, rule);
    }
    if states[idx].residency_ns() > delta_tick_ns {
        let shallower = super::states::find_shallower_state(states, idx, delta_tick_ns, false);
        if shallower != idx {
            return (shallower, false, SelectRule::Tick);
        }
    }
    (idx, false, rule)
}

#[cfg(test)]
mod tests;
