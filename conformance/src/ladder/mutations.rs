// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in ladder that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const LADDER_FILE: &str = "cpuidle/ladder.rs";

/// Mutations of ladder.
pub const LADDER: &[Mutation] = &[
    m(LADDER_FILE, "PROMOTION_COUNT: u32 = 4", "PROMOTION_COUNT: u32 = 5"),
    m(LADDER_FILE, "DEMOTION_COUNT: u32 = 1", "DEMOTION_COUNT: u32 = 2"),
    m(LADDER_FILE, "wrapping_sub(latency_ns)", "saturating_sub(latency_ns)"),
    m(LADDER_FILE, "{ (0, 0) }", "{ (1, 1) }"),
    m(LADDER_FILE, "slept_ns > long_ns", "slept_ns >= long_ns"),
    m(LADDER_FILE, "as i64 <= input.latency_req_ns", "as i64 - 1 <= input.latency_req_ns"),
    m(LADDER_FILE, "!deeper.disabled && ", ""),
    m(LADDER_FILE, "states[last].disabled || !quick(last)", "!quick(last)"),
    m(LADDER_FILE, "slept_ns < latency_ns", "slept_ns <= latency_ns"),
    m(LADDER_FILE, "return Some(last - 1)", "return Some(first)"),
    m(LADDER_FILE, "usize::from(states[0].polling)", "0"),
    m(LADDER_FILE, "self.stats[self.last_state_idx] = Stats::default();", ""),
];
