// SPDX-License-Identifier: GPL-2.0-or-later
//! menu as of Linux 6.1.192: the timers are asked first, and I/O waiters count.
//!
//! **Algorithm** ([`select`]; the two guesses are those of [`super`]):
//! 1. Count the last sleep, if one was reflected.
//! 2. Ask the timers; bucket by the answer, of the second half if tasks of this CPU wait for I/O.
//! 3. The timer comes before state 1 pays, or state 1 takes too long to leave: state 0.
//! 4. Predict. The typical interval is not looked for if no sleep was shorter than the timer's guess.
//! 5. The tick is stopped: a prediction below a tick is not believed, the timer counts. It runs: no state
//!    that takes longer to leave than the prediction, divided by 1 + 10 per I/O waiter.
//! 6. From shallow to deep while states pay within the prediction; then while they can be left in time.
//!    Rather than spin, take the first one that pays until the timer. A long sleep without a state for
//!    it: keep the tick, to look again; if it is stopped already, take the deeper one.
//! 7. The tick may stop if a tick or more is predicted and the state does not spin; if it goes on, go
//!    shallower if it comes before the state pays.
//!
//! **Example.** A CPU that wants to sleep for 3 ms does not take a state that needs 400 µs to wake up as
//! long as a task waits for I/O: 3 ms / 11 = 272 µs.
//!
//! ```
//! use schedtwin_kernel::cpuidle::menu::{MenuCpu, SelectRule, v5_18};
//! use schedtwin_kernel::cpuidle::states::{IdleStateParams, SelectInput, SleepLength};
//!
//! let state = |exit_us: u64, residency_us: u64| IdleStateParams {
//!     exit_latency_ns: exit_us * 1000,
//!     target_residency_ns: residency_us * 1000,
//!     ..Default::default()
//! };
//! let states = [state(1, 1), state(400, 2000)];
//! let chosen = [0, 1].map(|nr_iowaiters| {
//!     let input = SelectInput {
//!         states: &states,
//!         latency_req_ns: i64::MAX,
//!         tick_stopped: false,
//!         tick_nsec: 4_000_000,
//!         now: 0,
//!         last_residency_ns: 0,
//!         nr_iowaiters,
//!         cpu_util: 0,
//!     };
//!     // Nothing is remembered but that the timer is always right.
//!     let mut menu = MenuCpu { intervals: [u32::MAX; 8], ..MenuCpu::default() };
//!     let timers = SleepLength { sleep_length_ns: 3_000_000, delta_tick_ns: 3_000_000 };
//!     let selection = v5_18::select(&mut menu, &input, &mut || timers);
//!     (selection.idx, selection.rule)
//! });
//! assert_eq!(chosen, [(1, SelectRule::Timer), (0, SelectRule::Interactivity)]);
//! ```
//!
//! **Kernel:** Linux 6.1.192, `drivers/cpuidle/governors/menu.c`; [`super::v4_20`] is without its fix.
//! **Differences:** see [`super`].

use super::{DECADES, MenuCpu, SelectRule, Selection, only_state_0, tick_decision, which_bucket};
use crate::cpuidle::states::{SelectInput, SleepLength};

/// Chooses a state for a CPU that goes idle (`menu_select`). `sleep_length` asks the timers
/// (`tick_nohz_get_sleep_length`), once.
pub fn select(
    menu: &mut MenuCpu,
    input: &SelectInput,
    sleep_length: &mut impl FnMut() -> SleepLength,
) -> Selection {
    menu.update(input);
    let selection = decide(menu, input, sleep_length());
    menu.commit(&selection);
    selection
}

/// Chooses, changing nothing.
pub fn decide(menu: &MenuCpu, input: &SelectInput, timers: SleepLength) -> Selection {
    let states = input.states;
    let (next_timer_ns, delta_tick_ns) = match timers.sleep_length_ns {
        ..0 => (0, 0),
        sleep_length_ns => (sleep_length_ns as u64, timers.delta_tick_ns),
    };
    let group = if input.nr_iowaiters > 0 { DECADES } else { 0 };
    let bucket = group + which_bucket(next_timer_ns);
    let chosen = |(idx, stop_tick, rule)| {
        let sleep_length_ns = Some(timers.sleep_length_ns);
        Selection { idx, stop_tick, rule, sleep_length_ns, next_timer_ns, bucket }
    };
    if let Some(rule) = only_state_0(input, next_timer_ns) {
        return chosen((0, !states[0].polling, rule));
    }

    let timer_us = menu.timer_us(next_timer_ns, bucket);
    let typical_us = menu.typical_interval_us(|shortest, _| shortest >= timer_us);
    let mut rule = if typical_us < timer_us { SelectRule::Typical } else { SelectRule::Timer };
    let mut predicted_ns = typical_us.min(timer_us) as u64 * 1000;
    let mut latency_req_ns = input.latency_req_ns;
    let mut latency_rule = SelectRule::LatencyLimit;
    if !input.tick_stopped {
        let interactivity_req_ns = predicted_ns / (1 + 10 * input.nr_iowaiters as u64);
        if latency_req_ns as u64 > interactivity_req_ns {
            latency_req_ns = interactivity_req_ns as i64;
            latency_rule = SelectRule::Interactivity;
        }
    } else if predicted_ns < input.tick_nsec as u64 {
        predicted_ns = next_timer_ns;
        rule = SelectRule::TickStopped;
    }

    let mut idx = None;
    for (i, state) in states.iter().enumerate() {
        if state.disabled {
            continue;
        }
        let shallower = &states[*idx.get_or_insert(i)];
        let slow = state.exit_latency_ns as i64 > latency_req_ns;
        if state.target_residency_ns > predicted_ns {
            if shallower.polling && !slow && state.target_residency_ns <= next_timer_ns {
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
        if slow {
            rule = latency_rule;
            break;
        }
        idx = Some(i);
    }
    chosen(tick_decision(input, idx, predicted_ns, delta_tick_ns, rule))
}
