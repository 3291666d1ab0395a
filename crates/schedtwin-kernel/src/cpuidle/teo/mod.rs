// SPDX-License-Identifier: GPL-2.0-or-later
//! The timer events oriented governor (teo), one file per form it has had.
//!
//! This file has what the forms share: the words for why a state was chosen, and the times that
//! they compare.
//!
//! | releases | form |
//! |---|---|
//! | 5.14 to 6.2 | [`v5_14`] |
//! | 6.3 to 6.5 | [`v5_14`] with [`util`] |
//! | 6.6 to 6.10 | [`v6_6`] with [`util`], in 6.6.y and 6.10.y by now without |
//! | 6.11 and 6.12 | [`v6_12`] |
//! | 6.18 | [`v6_18`] |
//! | 7.3 | [`v7_3`] |

pub mod util;
pub mod v5_14;
pub mod v6_12;
pub mod v6_18;
pub mod v6_6;
pub mod v7_3;

use super::states::{Reflection, SelectInput, find_shallower_state};
pub use schedtwin_types::{TeoRule as SelectRule, TickRule};

/// The amount that a wakeup adds to its counter.
pub const PULSE: u32 = 1024;
/// Each update takes `counter >> 3` off every counter, so that a steady counter ends at 8 pulses.
pub const DECAY_SHIFT: u32 = 3;

/// The choice and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Index of the state to enter.
    pub idx: usize,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// The rule that decided about the state: the last one that moved it.
    pub rule: SelectRule,
    /// The rule that decided about the tick.
    pub tick_rule: TickRule,
    /// The answer of the timers, if they were asked.
    pub sleep_length_ns: Option<i64>,
}

/// How long the CPU slept, as teo counts it, ns; `u64::MAX` if the timer or a safety net woke it.
#[inline(always)]
fn measured_ns(
    time_span_ns: i64,
    sleep_length_ns: i64,
    exit_latency_ns: u64,
    residency_ns: u64,
) -> u64 {
    if time_span_ns >= sleep_length_ns {
        // The whole sleep length was slept.
        u64::MAX
    } else if residency_ns >= exit_latency_ns {
        // Not the time span, which includes what entering and leaving cost the kernel. Waking rarely
        // takes its worst time, hence half of the exit latency.
        residency_ns - exit_latency_ns / 2
    } else {
        residency_ns / 2
    }
}

/// Time from selection to reflection as `teo_reflect` stores it, ns. A tick (if no timer was due within
/// it) and a polling state that gave up are safety nets: such a wakeup says nothing about the load, and
/// counts as if the CPU had slept until the timer.
#[inline(always)]
fn reflected_span_ns(selected_at: i64, sleep_length_ns: i64, stay: &Reflection) -> i64 {
    if stay.poll_time_limit || (stay.got_tick && sleep_length_ns > stay.tick_nsec) {
        sleep_length_ns
    } else {
        stay.now.wrapping_sub(selected_at as u64) as i64
    }
}

/// Values that decide the end of a selection, since 6.12.
struct Expected {
    /// How long the CPU is expected to sleep, ns.
    duration_ns: i64,
    /// To the next event, the tick included, ns.
    delta_tick_ns: i64,
    /// Most wakeups come before a tick has passed.
    tick_intercepted: bool,
}

/// The end of `teo_select` since 6.12: may the tick stop, and if it goes on, does the state pay until it comes?
/// `chosen` is the selection with a tick that may stop for a long sleep.
#[inline(always)]
fn tick_decision(
    input: &SelectInput,
    first_enabled: usize,
    chosen: Selection,
    expected: &Expected,
) -> Selection {
    let states = input.states;
    let Selection { idx, .. } = chosen;
    let polling = states[idx].polling;
    if input.tick_stopped {
        return Selection { tick_rule: TickRule::AlreadyStopped, ..chosen };
    }
    if !polling && expected.duration_ns >= input.tick_nsec {
        return chosen;
    }
    let tick_rule = if polling {
        TickRule::Polling
    } else if expected.tick_intercepted {
        TickRule::Intercepts
    } else {
        TickRule::ShortSleep
    };
    let kept = Selection { stop_tick: false, tick_rule, ..chosen };
    if idx > first_enabled && states[idx].residency_ns() > expected.delta_tick_ns {
        let shallower = find_shallower_state(states, idx, expected.delta_tick_ns, false);
        let rule = if shallower == idx { kept.rule } else { SelectRule::Tick };
        return Selection { idx: shallower, rule, ..kept };
    }
    kept
}
