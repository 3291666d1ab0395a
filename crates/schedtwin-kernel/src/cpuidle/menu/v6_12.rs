// SPDX-License-Identifier: GPL-2.0-or-later
//! menu as of Linux 6.6 to 6.12: the timers are asked only where it matters.
//!
//! **Algorithm** ([`select`]; the two guesses are those of [`super`]):
//! 1. Count the last sleep, if one was reflected.
//! 2. Typical interval. If it is at most [`RESIDENCY_THRESHOLD_NS`] and the tick runs, that is the
//!    prediction, the timers are not asked, and the tick is taken to be half its length away.
//! 3. Otherwise ask the timers; the shorter guess counts. A stopped tick: a prediction below a tick is not
//!    believed, the timer counts.
//! 4. The timer comes before state 1 pays, or state 1 takes too long to leave: state 0.
//! 5. From shallow to deep while states can be left in time and pay within the prediction. Rather than
//!    spin, take a cheap state that pays until the timer. A long sleep without a state for it: keep the
//!    tick, to look again; if it is stopped already, take the deeper one.
//! 6. The tick may stop if a tick or more is predicted and the state does not spin; if it goes on, go
//!    shallower if it comes before the state pays.
//!
//! **Example.** A CPU that has been woken after 100 µs eight times does not believe in its timer, 50 ms away:
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::{MenuCpu, SelectRule, v6_12};
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput, SleepLength};
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(230, 2000)];
//! let input = SelectInput {
//!     states: &states,
//!     latency_req_ns: i64::MAX,
//!     tick_stopped: false,
//!     tick_nsec: 4_000_000,
//!     now: 0,
//!     last_residency_ns: 100_000,
//!     nr_iowaiters: 0,
//!     cpu_util: 0,
//! };
//! let far = SleepLength { sleep_length_ns: 50_000_000, delta_tick_ns: 3_000_000 };
//! let mut menu = MenuCpu { intervals: [100; 8], ..MenuCpu::default() };
//! let selection = v6_12::select(&mut menu, &input, &mut || far);
//! assert_eq!((selection.idx, selection.rule), (0, SelectRule::Typical));
//! assert!(!selection.stop_tick);
//! ```
//!
//! **Kernel:** Linux 6.12, `drivers/cpuidle/governors/menu.c`. **Differences:** see [`super`].

use super::{MenuCpu, SelectRule, Selection, only_state_0, tick_decision, which_bucket};
use crate::cpuidle::states::{KTIME_MAX, RESIDENCY_THRESHOLD_NS, SelectInput, SleepLength};

/// Chooses a state for a CPU that goes idle (`menu_select`). `sleep_length` asks the timers
/// (`tick_nohz_get_sleep_length`), at most once.
pub fn select(
    menu: &mut MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    menu.update(input);
    let selection = decide(menu, input, sleep_length);
    menu.commit(&selection);
    selection
}

/// Chooses, changing nothing.
pub fn decide(
    menu: &MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    let typical_us = menu.typical_interval_us(|_, longest| longest == 0);
    decide_from(menu, input, sleep_length, typical_us, None)
}

/// Steps 3 to 6, with the typical interval of a form. `safe_timer_ns`: a timer that comes no later is a safety net, and
/// with it even a stopped tick's short prediction is believed.
pub(super) fn decide_from(
    menu: &MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
    typical_us: u32,
    safe_timer_ns: Option<u64>,
) -> Selection {
    let states = input.states;
    let mut rule = SelectRule::Typical;
    let mut predicted_ns = typical_us as u64 * 1000;
    let mut sleep_length_ns = None;
    // If the timers are not asked, the next one is far away, and the tick is half its length away.
    let (mut next_timer_ns, mut delta_tick_ns) = (KTIME_MAX as u64, input.tick_nsec / 2);
    if predicted_ns > RESIDENCY_THRESHOLD_NS as u64 || input.tick_stopped {
        let timers = sleep_length();
        sleep_length_ns = Some(timers.sleep_length_ns);
        (next_timer_ns, delta_tick_ns) = match timers.sleep_length_ns {
            ..0 => (0, 0),
            sleep_length_ns => (sleep_length_ns as u64, timers.delta_tick_ns),
        };
        let timer_ns = menu.timer_us(next_timer_ns, which_bucket(next_timer_ns)) as u64 * 1000;
        if timer_ns <= predicted_ns {
            predicted_ns = timer_ns;
            rule = SelectRule::Timer;
        }
        let no_safety_net = safe_timer_ns.is_none_or(|safe_ns| next_timer_ns > safe_ns);
        if input.tick_stopped && predicted_ns < input.tick_nsec as u64 && no_safety_net {
            predicted_ns = next_timer_ns;
            rule = SelectRule::TickStopped;
        }
    }
    let bucket = which_bucket(next_timer_ns);
    let chosen = |(idx, stop_tick, rule)| Selection {
        idx,
        stop_tick,
        rule,
        sleep_length_ns,
        next_timer_ns,
        bucket,
    };
    if let Some(rule) = only_state_0(input, next_timer_ns) {
        return chosen((0, !states[0].polling, rule));
    }

    let mut idx = None;
    for (i, state) in states.iter().enumerate() {
        if state.disabled {
            continue;
        }
        let shallower = &states[*idx.get_or_insert(i)];
        if state.exit_latency_ns as i64 > input.latency_req_ns {
            rule = SelectRule::LatencyLimit;
            break;
        }
        if state.target_residency_ns <= predicted_ns {
            idx = Some(i);
            continue;
        }
        if shallower.polling
            && state.residency_ns() < RESIDENCY_THRESHOLD_NS
            && state.target_residency_ns <= next_timer_ns
            && (state.exit_latency_ns <= predicted_ns || menu.drops_polling)
        {
            predicted_ns = state.target_residency_ns;
            idx = Some(i);
            rule = SelectRule::NoPolling;
        } else if predicted_ns < input.tick_nsec as u64 {
            // The state so far is what was predicted.
        } else if !input.tick_stopped {
            predicted_ns = shallower.target_residency_ns;
        } else if shallower.residency_ns() < input.tick_nsec
            && state.residency_ns() <= delta_tick_ns
        {
            idx = Some(i);
            rule = SelectRule::NotStuck;
        }
        break;
    }
    chosen(tick_decision(input, idx, predicted_ns, delta_tick_ns, rule))
}
