// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in menu's forms that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const MENU_SHARED: &str = "cpuidle/menu/mod.rs";
const MENU_5_18_FILE: &str = "cpuidle/menu/v5_18.rs";
const MENU_6_12_FILE: &str = "cpuidle/menu/v6_12.rs";
const MENU_6_18_FILE: &str = "cpuidle/menu/v6_18.rs";
const MENU_7_3_FILE: &str = "cpuidle/menu/v7_3.rs";
const IDLE_STATES: &str = "cpuidle/states.rs";

/// Mutations of menu, of what its forms share.
macro_rules! menu_mutations {
    ($($own:expr,)*) => { &[
        m(MENU_SHARED, "RESOLUTION: u64 = 1024", "RESOLUTION: u64 = 1023"),
        m(MENU_SHARED, "DECAY: u64 = 8", "DECAY: u64 = 7"),
        m(MENU_SHARED, "last_residency_ns == 0 {", "last_residency_ns == 1 {"),
        m(MENU_SHARED, "push_interval(u32::MAX)", "push_interval(0)"),
        m(MENU_SHARED, "next_timer_ns > input.tick_nsec", "next_timer_ns >= input.tick_nsec"),
        m(MENU_SHARED, "9 * MAX_INTERESTING / 10", "8 * MAX_INTERESTING / 10"),
        m(MENU_SHARED, "last.polling && self", "!last.polling && self"),
        m(MENU_SHARED, "last_residency_ns - last.exit_latency_ns", "last_residency_ns"),
        m(MENU_SHARED, ".min(self.next_timer_ns)", ".min(u64::MAX)"),
        m(MENU_SHARED, "(measured_ns / 1000)", "(measured_ns / 1024)"),
        m(MENU_SHARED, "wrapping_add(UNIT / 2)", "wrapping_add(0)"),
        m(MENU_SHARED, "thresh = i32::MAX as u32", "thresh = u32::MAX"),
        m(MENU_SHARED, "&& most_left", "&& !most_left"),
        m(MENU_SHARED, "variance <= 400", "variance <= 399"),
        m(MENU_SHARED, "4 * count <= 3", "4 * count < 3"),
        m(MENU_SHARED, "thresh = max - 1", "thresh = max / 2"),
        m(MENU_SHARED, "0..10_000 => 0,\n        10_000", "0..=10_000 => 0,\n        10_001"),
        m(MENU_SHARED, "latency_req_ns == 0", "latency_req_ns == 1"),
        m(MENU_SHARED, "next_timer_ns < states[1]", "next_timer_ns <= states[1]"),
        m(MENU_SHARED, "latency_req_ns < states[1]", "latency_req_ns <= states[1]"),
        m(MENU_SHARED, "predicted_ns < input.tick_nsec", "predicted_ns <= input.tick_nsec"),
        m(MENU_SHARED, "residency_ns() > delta_tick_ns", "residency_ns() >= delta_tick_ns"),
        m(IDLE_STATES, "residency_ns() <= duration_ns", "residency_ns() < duration_ns"),
        $($own,)*
    ] };
}

/// In what 4.20 does before it chooses.
pub const MENU_4_20: &[Mutation] =
    &[m("cpuidle/menu/v4_20.rs", "if menu.needs_update {", "if true {")];

/// Mutations of menu of 4.20 to 6.5.
pub const MENU_5_18: &[Mutation] = menu_mutations![
    m(MENU_5_18_FILE, "nr_iowaiters > 0", "nr_iowaiters > 1"),
    m(MENU_5_18_FILE, "shortest >= timer_us", "shortest < timer_us"),
    m(MENU_5_18_FILE, "(1 + 10 * input", "(1 + 9 * input"),
    m(
        MENU_5_18_FILE,
        "    if !input.tick_stopped {\n        let",
        "    if input.tick_stopped {\n        let"
    ),
    m(MENU_5_18_FILE, "> interactivity_req_ns {", ">= interactivity_req_ns + 1000 {"),
    m(MENU_5_18_FILE, "as i64 > latency_req_ns;", "as i64 >= latency_req_ns;"),
    m(MENU_5_18_FILE, "target_residency_ns > predicted_ns", "target_residency_ns >= predicted_ns"),
    m(MENU_5_18_FILE, "shallower.polling && !slow", "shallower.polling"),
    m(MENU_5_18_FILE, "<= next_timer_ns {", "< next_timer_ns {"),
    m(MENU_5_18_FILE, "shallower.residency_ns() < input", "shallower.residency_ns() <= input"),
    m(MENU_5_18_FILE, "state.residency_ns() <= delta", "state.residency_ns() < delta"),
];

/// Mutations of menu of 6.6 to 6.12.
pub const MENU_6_12: &[Mutation] = menu_mutations![
    m(MENU_6_12_FILE, "longest == 0)", "longest == 1)"),
    m(MENU_6_12_FILE, "KTIME_MAX as u64, input", "KTIME_MAX as u64 / 2, input"),
    m(MENU_6_12_FILE, "predicted_ns > RESIDENCY", "predicted_ns >= RESIDENCY"),
    m(MENU_6_12_FILE, "..0 => (0, 0)", "..0 => (0, timers.delta_tick_ns)"),
    m(MENU_6_12_FILE, "timer_ns <= predicted_ns", "timer_ns > predicted_ns"),
    m(MENU_6_12_FILE, "tick_stopped && predicted_ns <", "tick_stopped && predicted_ns <="),
    m(MENU_6_12_FILE, "as i64 > input.latency", "as i64 >= input.latency"),
    m(MENU_6_12_FILE, "target_residency_ns <= predicted_ns", "target_residency_ns < predicted_ns"),
    m(MENU_6_12_FILE, "state.residency_ns() < RESIDENCY", "state.residency_ns() <= RESIDENCY"),
    m(MENU_6_12_FILE, "<= next_timer_ns\n", "< next_timer_ns\n"),
    m(MENU_6_12_FILE, "exit_latency_ns <= predicted_ns", "exit_latency_ns < predicted_ns"),
    m(MENU_6_12_FILE, "shallower.residency_ns() < input", "shallower.residency_ns() <= input"),
    m(MENU_6_12_FILE, "state.residency_ns() <= delta", "state.residency_ns() < delta"),
];

/// Mutations of menu of 6.18, of what it does not share with 6.12.
pub const MENU_6_18: &[Mutation] = &[
    m(
        MENU_6_18_FILE,
        "v7_3::typical_interval_us(menu), None",
        "menu.typical_interval_us(|_, longest| longest == 0), None",
    ),
    m(
        MENU_6_18_FILE,
        "typical_interval_us(menu), None",
        "typical_interval_us(menu), Some(8_000_000)",
    ),
    m(MENU_6_12_FILE, "tick_stopped && predicted_ns <", "tick_stopped && predicted_ns <="),
    m(MENU_7_3_FILE, "above = min as i64", "above = mean as i64"),
    m(MENU_7_3_FILE, "below = max as i64", "below = mean as i64"),
];

/// Mutations of menu of 7.3, of what it does not share with 6.12.
pub const MENU_7_3: &[Mutation] = &[
    m(IDLE_STATES, "SAFE_TIMER_RANGE_TICKS: i64 = 2", "SAFE_TIMER_RANGE_TICKS: i64 = 1"),
    m(MENU_6_12_FILE, "next_timer_ns > safe_ns", "next_timer_ns >= safe_ns"),
    m(MENU_7_3_FILE, "(-1i64, i64", "(0i64, i64"),
    m(MENU_7_3_FILE, "above = min as i64", "above = mean as i64"),
    m(MENU_7_3_FILE, "below = max as i64", "below = mean as i64"),
    m(MENU_7_3_FILE, "i64::from(u32::MAX));", "i64::from(i32::MAX));"),
    m(MENU_7_3_FILE, "if max == 0", "if max == 1"),
    m(MENU_7_3_FILE, "(squares / count).wrapping_sub", "(squares / count).saturating_sub"),
    m(MENU_7_3_FILE, "&& most_left", "&& !most_left"),
    m(MENU_7_3_FILE, "mean_squared > variance * 36", "mean_squared > variance * 35"),
    m(MENU_7_3_FILE, "variance <= 400", "variance <= 399"),
    m(MENU_7_3_FILE, "4 * count <= 3", "4 * count < 3"),
    m(MENU_7_3_FILE, "mean - min > max", "mean - min >= max"),
];
