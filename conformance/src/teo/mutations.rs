// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in teo's forms that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const TEO_SHARED: &str = "cpuidle/teo/mod.rs";
const TEO_FILE: &str = "cpuidle/teo/v6_12.rs";
const TEO_6_18_FILE: &str = "cpuidle/teo/v6_18.rs";
const TEO_7_3_FILE: &str = "cpuidle/teo/v7_3.rs";
const TEO_RECENT_FILE: &str = "cpuidle/teo/v5_14.rs";
const TEO_6_6_FILE: &str = "cpuidle/teo/v6_6.rs";
const TEO_UTIL_FILE: &str = "cpuidle/teo/util.rs";

/// Mutations of teo.
pub const TEO: &[Mutation] = &[
    m(TEO_SHARED, "PULSE: u32 = 1024", "PULSE: u32 = 1023"),
    m(TEO_SHARED, "DECAY_SHIFT: u32 = 3", "DECAY_SHIFT: u32 = 4"),
    m(TEO_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_SHARED, "sleep_length_ns > stay.tick_nsec", "sleep_length_ns >= stay.tick_nsec"),
    m(TEO_SHARED, "time_span_ns >= sleep", "time_span_ns > sleep"),
    m(TEO_SHARED, "residency_ns >= exit_latency_ns", "residency_ns > exit_latency_ns"),
    m(TEO_SHARED, "residency_ns - exit_latency_ns / 2", "residency_ns - exit_latency_ns"),
    m(TEO_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_FILE, "target_residency_ns <= measured_ns", "target_residency_ns < measured_ns"),
    m(TEO_FILE, "input.tick_nsec as u64 <= measured_ns", "input.tick_nsec as u64 >= measured_ns"),
    m(TEO_FILE, "<= input.latency_req_ns {", "<= input.latency_req_ns - 1 {"),
    m(TEO_FILE, "2 * idx_intercept_sum > self", "2 * idx_intercept_sum >= self"),
    m(TEO_FILE, "wrapping_sub(idx_hit_sum)", "wrapping_sub(hit_sum)"),
    m(TEO_FILE, "2 * intercepts > candidate", "2 * intercepts >= candidate"),
    m(TEO_FILE, "deep_enough(i) && !states", "!states"),
    m(TEO_FILE, "first_suitable == candidate", "first_suitable != candidate"),
    m(TEO_FILE, "< RESIDENCY_THRESHOLD_NS", "<= RESIDENCY_THRESHOLD_NS"),
    m(TEO_FILE, "self.total / 2 + self.total / 8", "self.total / 2"),
    m(TEO_FILE, "> timers.sleep_length_ns {", ">= timers.sleep_length_ns {"),
    m(TEO_SHARED, "idx > first_enabled &&", "idx < first_enabled &&"),
    m(TEO_SHARED, "residency_ns() > expected.delta", "residency_ns() >= expected.delta"),
    m(TEO_SHARED, "duration_ns >= input.tick_nsec", "duration_ns > input.tick_nsec"),
    m(TEO_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
];

/// Mutations of teo of 6.18.
pub const TEO_6_18: &[Mutation] = &[
    m(TEO_6_18_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_6_18_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_6_18_FILE, "target_residency_ns <= measured_ns", "target_residency_ns < measured_ns"),
    m(
        TEO_6_18_FILE,
        "input.tick_nsec as u64 <= measured_ns",
        "input.tick_nsec as u64 >= measured_ns",
    ),
    m(TEO_6_18_FILE, "decay(&mut self.total);", ""),
    m(TEO_6_18_FILE, "return u64::MAX;", "return residency_ns;"),
    m(TEO_6_18_FILE, "residency_ns >= latency_ns", "residency_ns > latency_ns"),
    m(TEO_6_18_FILE, "residency_ns - latency_ns / 2", "residency_ns - latency_ns"),
    m(TEO_6_18_FILE, "measured_ns < RESIDENCY", "measured_ns <= RESIDENCY"),
    m(TEO_6_18_FILE, "(residency_ns / 2, true)", "(residency_ns / 2, false)"),
    m(
        TEO_6_18_FILE,
        "self.sleep_length_ns > stay.tick_nsec",
        "self.sleep_length_ns >= stay.tick_nsec",
    ),
    m(TEO_6_18_FILE, "stay.poll_time_limit || by_tick", "by_tick"),
    m(TEO_6_18_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
    m(TEO_6_18_FILE, "if states.len() < 2", "if states.len() < 1"),
    m(TEO_6_18_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_6_18_FILE, "wrapping_sub(below.hits)", "wrapping_sub(0)"),
    m(TEO_6_18_FILE, "idx > below.constraint_idx", "idx > deepest"),
    m(TEO_6_18_FILE, "residency_ns() < RESIDENCY", "residency_ns() <= RESIDENCY"),
    m(TEO_6_18_FILE, "2 * self.short_idles >= self.total", "2 * self.short_idles > self.total"),
    m(TEO_6_18_FILE, "RESIDENCY_THRESHOLD_NS / 2;", "RESIDENCY_THRESHOLD_NS;"),
    m(
        TEO_6_18_FILE,
        "residency_ns() > timers.sleep_length_ns {",
        "residency_ns() >= timers.sleep_length_ns {",
    ),
    m(TEO_6_18_FILE, "residency_ns() < input.tick_nsec", "residency_ns() <= input.tick_nsec"),
    m(TEO_6_18_FILE, "self.total / 2 + self.total / 8", "self.total / 2"),
    m(TEO_6_18_FILE, "exit_latency_ns as i64 <= input", "exit_latency_ns as i64 - 1 <= input"),
];

/// Mutations of teo of 7.3.
pub const TEO_7_3: &[Mutation] = &[
    m(TEO_SHARED, "PULSE: u32 = 1024", "PULSE: u32 = 1023"),
    m(TEO_SHARED, "DECAY_SHIFT: u32 = 3", "DECAY_SHIFT: u32 = 4"),
    m(TEO_7_3_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_7_3_FILE, "if delta == 0 { 0 }", "if delta == 0 { *counter }"),
    m(TEO_7_3_FILE, "self.tick_wakeup = stay.got_tick", "self.tick_wakeup = false"),
    m(TEO_7_3_FILE, "residency_ns >= latency_ns", "residency_ns > latency_ns"),
    m(TEO_7_3_FILE, "residency_ns - latency_ns / 2", "residency_ns - latency_ns"),
    m(TEO_7_3_FILE, "measured_ns < RESIDENCY", "measured_ns <= RESIDENCY"),
    m(TEO_7_3_FILE, "(residency_ns / 2, true)", "(residency_ns / 2, false)"),
    m(TEO_7_3_FILE, "return i64::MAX;", "return i64::MAX - 100_000_000;"),
    m(TEO_7_3_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_7_3_FILE, "residency_ns() <= measured_ns", "residency_ns() < measured_ns"),
    m(TEO_7_3_FILE, "3 * self.total_tick > 2 * self.total", "3 * self.total_tick > 2 * decayed"),
    m(TEO_7_3_FILE, "state_bins[states.len() - 1].hits", "state_bins[idx_timer].hits"),
    m(
        TEO_7_3_FILE,
        "3 * self.tick_intercepts < 2 * decayed",
        "3 * self.tick_intercepts < 2 * self.total",
    ),
    m(TEO_7_3_FILE, "sleep_length_ns.wrapping_sub", "sleep_length_ns.saturating_sub"),
    m(TEO_7_3_FILE, "missing_ns < latency_ns / 2", "missing_ns <= latency_ns / 2"),
    m(TEO_7_3_FILE, "measured_ns <= input.tick_nsec", "measured_ns < input.tick_nsec"),
    m(TEO_7_3_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
    m(TEO_7_3_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_7_3_FILE, "wrapping_sub(below.hits)", "wrapping_sub(0)"),
    m(TEO_7_3_FILE, "idx > below.constraint_idx", "idx > deepest"),
    m(TEO_7_3_FILE, "residency_ns() < RESIDENCY", "residency_ns() <= RESIDENCY"),
    m(TEO_7_3_FILE, "2 * self.short_idles >= self.total", "2 * self.short_idles > self.total"),
    m(TEO_7_3_FILE, "RESIDENCY_THRESHOLD_NS / 2;", "RESIDENCY_THRESHOLD_NS;"),
    m(TEO_7_3_FILE, "sleep_length_ns > SAFE", "sleep_length_ns >= SAFE"),
    m(
        TEO_7_3_FILE,
        "&& states[idx].residency_ns() < input.tick_nsec\n            {",
        "&& states[idx].residency_ns() <= input.tick_nsec\n            {",
    ),
    m(TEO_7_3_FILE, "(idx + 1..=below.constraint_idx).rev()", "(idx + 1..=below.constraint_idx)"),
    m(TEO_7_3_FILE, "residency_ns() <= timers.sleep", "residency_ns() < timers.sleep"),
    m(
        TEO_7_3_FILE,
        "residency_ns() > timers.sleep_length_ns {",
        "residency_ns() >= timers.sleep_length_ns {",
    ),
    m(TEO_7_3_FILE, "3 * self.tick_intercepts >= 2", "3 * self.tick_intercepts > 2"),
    m(TEO_SHARED, "duration_ns >= input.tick_nsec", "duration_ns > input.tick_nsec"),
    m(TEO_SHARED, "residency_ns() > expected.delta", "residency_ns() >= expected.delta"),
    m(TEO_7_3_FILE, "bin.intercepts >= most", "bin.intercepts > most"),
    m(TEO_7_3_FILE, "exit_latency_ns as i64 <= input", "exit_latency_ns as i64 - 1 <= input"),
    m(
        TEO_7_3_FILE,
        "2 * intercepts > below.intercepts &&",
        "2 * intercepts >= below.intercepts &&",
    ),
    m(TEO_7_3_FILE, "&& i <= below.most", "&& i < below.most"),
];

/// Mutations of teo with recent intercepts.
pub const TEO_RECENT: &[Mutation] = &[
    m(TEO_RECENT_FILE, "% NR_RECENT as u8", "% 8"),
    m(TEO_RECENT_FILE, "last_state_idx: Some(0)", "last_state_idx: None"),
    m(TEO_RECENT_FILE, "residency_ns() <= self.sleep", "residency_ns() < self.sleep"),
    m(TEO_RECENT_FILE, "target_residency_ns <= measured_ns", "target_residency_ns < measured_ns"),
    m(TEO_RECENT_FILE, "(!hit).then_some", "(hit).then_some"),
    m(TEO_RECENT_FILE, "bin.recent += 1", "bin.recent += 0"),
    m(TEO_RECENT_FILE, "duration_ns < input.tick_nsec);", "duration_ns <= input.tick_nsec);"),
    m(TEO_RECENT_FILE, "residency_ns() > timers.delta", "residency_ns() >= timers.delta"),
    m(TEO_RECENT_FILE, "states[1].residency_ns() <= sleep", "states[1].residency_ns() < sleep"),
    m(TEO_RECENT_FILE, "state.residency_ns() > sleep", "state.residency_ns() >= sleep"),
    m(TEO_RECENT_FILE, "                idx0 = i;", "                idx0 = 0;"),
    m(TEO_RECENT_FILE, "exit_latency_ns as i64 <= input", "exit_latency_ns as i64 - 1 <= input"),
    m(TEO_RECENT_FILE, "below = all;", "below = below;"),
    m(TEO_RECENT_FILE, "if deepest == idx0 {", "if deepest == 0 {"),
    m(TEO_RECENT_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_RECENT_FILE, "wrapping_sub(below.hits)", "wrapping_sub(0)"),
    m(TEO_RECENT_FILE, "below.recent > NR_RECENT", "below.recent >= NR_RECENT"),
    m(TEO_RECENT_FILE, "span_ns >= input.tick_nsec", "span_ns > input.tick_nsec"),
    m(TEO_RECENT_FILE, "2 * recent > below.recent", "2 * recent >= below.recent"),
    m(TEO_RECENT_FILE, "2 * intercepts > below", "2 * intercepts >= below"),
    m(TEO_RECENT_FILE, "(states[i + 1].residency_ns()) / 2", "(states[i].residency_ns()) / 2"),
    m(TEO_RECENT_FILE, "time_ok(span_ns) && !states", "!states"),
    m(TEO_RECENT_FILE, "Some((i, span_ns)) } else", "Some((i, 0)) } else"),
    m(
        TEO_RECENT_FILE,
        "found.duration_ns) = (idx, duration_ns)",
        "found.duration_ns) = (idx, sleep_length_ns)",
    ),
    m(TEO_RECENT_FILE, "first_suitable.is_none() {", "first_suitable.is_some() {"),
    m(TEO_RECENT_FILE, "found.idx > constraint_idx", "found.idx < constraint_idx"),
];

/// Mutations of teo of 6.6 to 6.10.
pub const TEO_6_6: &[Mutation] = &[
    m(TEO_6_6_FILE, "% NR_RECENT as u8", "% 8"),
    m(TEO_6_6_FILE, "*recent = recent.wrapping_sub(1)", "*recent = recent.saturating_sub(1)"),
    m(TEO_6_6_FILE, "input.tick_nsec <= self.sleep", "input.tick_nsec < self.sleep"),
    m(
        TEO_6_6_FILE,
        "input.tick_nsec as u64 <= measured_ns",
        "input.tick_nsec as u64 >= measured_ns",
    ),
    m(TEO_6_6_FILE, "self.recent_idx[slot] = None", "self.recent_idx[slot] = Some(0)"),
    m(TEO_6_6_FILE, "bin.recent.wrapping_add(1)", "bin.recent"),
    m(TEO_6_6_FILE, "(1..states.len()).rfind(quick)", "(0..states.len() - 1).rfind(quick)"),
    m(TEO_6_6_FILE, "if idx == 0 || beside", "if beside"),
    m(TEO_6_6_FILE, "< RESIDENCY_THRESHOLD_NS", "<= RESIDENCY_THRESHOLD_NS"),
    m(TEO_6_6_FILE, "> timers.sleep_length_ns {", ">= timers.sleep_length_ns {"),
    m(TEO_6_6_FILE, "self.total / 2 + self.total / 8", "self.total / 2"),
    m(TEO_6_6_FILE, "idx > first_enabled &&", "idx < first_enabled &&"),
    m(TEO_6_6_FILE, "residency_ns() > delta_tick_ns", "residency_ns() >= delta_tick_ns"),
    m(TEO_6_6_FILE, "2 * below.intercepts > self", "2 * below.intercepts >= self"),
    m(TEO_6_6_FILE, "below.recent > NR_RECENT", "below.recent >= NR_RECENT"),
    m(TEO_6_6_FILE, "recent.wrapping_mul(2) > below", "recent.wrapping_mul(2) >= below"),
    m(TEO_6_6_FILE, "first_suitable == candidate", "first_suitable != candidate"),
    m(TEO_6_6_FILE, "unwrap_or(KTIME_MAX)", "unwrap_or(0)"),
];

/// Mutations of teo's utilisation awareness, by patch as in [`super::PATCHES`].
pub const TEO_UTIL: [&[Mutation]; 5] = [
    &[
        m(TEO_UTIL_FILE, "cpu_util > self.threshold", "cpu_util >= self.threshold"),
        m(TEO_UTIL_FILE, "capacity >> shift", "capacity >> shift >> 1"),
        m(TEO_UTIL_FILE, "self.forgetful && self.utilized", "self.forgetful"),
        m(TEO_UTIL_FILE, "enabled.or(Some(states.len()))", "enabled"),
        m(TEO_UTIL_FILE, "Step::None, true)", "Step::None, false)"),
        m(TEO_RECENT_FILE, "&& states_to_choose(input, timers.sleep_length_ns)", "&& true"),
        m(TEO_RECENT_FILE, "states[1].residency_ns() <= sleep", "states[1].residency_ns() < sleep"),
    ],
    &[
        m(TEO_UTIL_FILE, "idx > 0 && !states[idx - 1].disabled", "idx > 0"),
        m(TEO_UTIL_FILE, "                    idx - 1\n", "                    0\n"),
        m(TEO_UTIL_FILE, "Step::NextBelow, true)", "Step::NextBelow, false)"),
        m(TEO_UTIL_FILE, "states.len() > 2", "states.len() > 3"),
    ],
    &[
        m(
            TEO_UTIL_FILE,
            "TeoUtil::V3 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, true)",
            "TeoUtil::V3 => (AtOnce::OfTwoFirstSleeping, Step::FromState1, false)",
        ),
        m(TEO_UTIL_FILE, "Step::FromState1 => idx == 1", "Step::FromState1 => idx == 2"),
    ],
    &[
        m(TEO_UTIL_FILE, "sleeping.or(Some(states.len()))", "sleeping"),
        m(TEO_UTIL_FILE, "Step::FromState1 => idx == 1", "Step::FromState1 => true"),
        m(TEO_UTIL_FILE, "!s.disabled && !s.polling", "!s.disabled"),
    ],
    &[
        m(TEO_UTIL_FILE, "Step::Shallower => true", "Step::Shallower => idx == 1"),
        m(TEO_UTIL_FILE, "idx, duration_ns, true)", "idx, duration_ns, false)"),
        m(TEO_UTIL_FILE, "states, idx, duration_ns", "states, idx, i64::MAX"),
        m(
            TEO_UTIL_FILE,
            "OfTwoFirstSleepingIfAny => sleeping",
            "OfTwoFirstSleepingIfAny => enabled",
        ),
    ],
];
