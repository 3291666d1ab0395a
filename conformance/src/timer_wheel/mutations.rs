// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the timer wheel that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const WHEEL: &str = "time/timer/wheel.rs";
const BASES: &str = "time/timer/bases.rs";

/// Mutations of the wheel, and of bases with a hierarchy. What is not here: equal times at a comparison whose two
/// outcomes are the same, and the events that are fetched for another CPU within a tick, which no operation asks for.
pub const TIMER_WHEEL: &[Mutation] = &[
    m(WHEEL, "(LVL_SIZE - 1) << ((level", "LVL_SIZE << ((level"),
    m(WHEEL, "(expires >> shift).wrapping_add(1)", "(expires >> shift).wrapping_add(0)"),
    m(WHEEL, "delta < lvl_start(level + 1)", "delta <= lvl_start(level + 1)"),
    m(WHEEL, "(delta as i64) < 0 {", "(delta as i64) < -1 {"),
    m(WHEEL, "if delta >= cutoff", "if delta > cutoff"),
    m(WHEEL, "cutoff - (1 << (last * LVL_CLK_SHIFT))", "cutoff - (2 << (last * LVL_CLK_SHIFT))"),
    m(WHEEL, "ROUND_SKEW: u64 = 3", "ROUND_SKEW: u64 = 4"),
    m(WHEEL, "rem < hz / 4 && !force_up", "rem <= hz / 4 && !force_up"),
    m(WHEEL, "&& !force_up", ""),
    m(WHEEL, "if time_before(jiffies, rounded)", "if !time_before(rounded, jiffies)"),
    m(
        WHEEL,
        "let sooner = time_before(bucket_expiry, self.next_expiry)",
        "let sooner = time_before(expires, self.next_expiry)",
    ),
    m(WHEEL, "if before == Before::Head(idx) && after.is_none()", "if before == Before::Head(idx)"),
    m(WHEEL, "self.next_expiry_recalc = true;", ""),
    m(
        WHEEL,
        "timers.get_mut(first).before = Before::Timer(timer)",
        "timers.get_mut(first).before = Before::Head(idx as u16)",
    ),
    m(WHEEL, "WHEEL_SIZE + self.expiring - 1", "WHEEL_SIZE"),
    m(WHEEL, "self.clk = self.clk.wrapping_add(1);", ""),
    m(WHEEL, "self.clk = self.next_expiry;\n        let", "let"),
    m(
        WHEEL,
        "if clk & LVL_CLK_MASK != 0 {\n                break;",
        "if clk & LVL_CLK_MASK != 0 {\n                continue;",
    ),
    m(WHEEL, "u64::from(lvl_clk != 0)", "u64::from(lvl_clk == 0)"),
    m(WHEEL, "self.timers_pending = next != none;", ""),
    m(WHEEL, "if moves_empty && !self.timers_pending", "if moves_empty"),
    m(BASES, "if timers.expires(timer) == expires {", "if false {"),
    m(BASES, "if old.modify_in_place(timer, expires, timers) {", "if false {"),
    m(BASES, "if from != to {\n        new.forward", "if from == to {\n        new.forward"),
    m(BASES, "local.wrapping_sub(global) as i64 <= 0", "(local.wrapping_sub(global) as i64) < 0"),
    m(BASES, "if ahead <= 1 {", "if ahead <= 2 {"),
    m(BASES, "if ahead < 0 { basej } else { first }", "first"),
    m(BASES, "if !local_first && self", "if self"),
    m(
        BASES,
        "let idle_is_possible = next.wrapping_sub(basej) as i64 > 1",
        "let idle_is_possible = next.wrapping_sub(basej) as i64 > 2",
    ),
    m(BASES, "of_all.max(basej)", "of_all"),
    m(BASES, "self.bases[GLOBAL].forward(basej);", ""),
    m(BASES, "!self.is_idle() && idle_is_possible", "idle_is_possible"),
];

/// Mutations of what is of older releases.
pub const TIMER_WHEEL_6_1: &[Mutation] = &[
    m(BASES, "base.next_timer_interrupt(basej, false)", "base.next_timer_interrupt(basej, true)"),
    m(
        BASES,
        "if next.wrapping_sub(basej) as i64 <= 0 {",
        "if (next.wrapping_sub(basej) as i64) < 0 {",
    ),
    m(BASES, "base.is_idle = false;\n", ""),
    m(BASES, "expires - basej > 1 {", "expires - basej > 2 {"),
    m(BASES, "if base.timers_pending { next } else { NEVER }", "next"),
];

/// Mutations of the depth of a wheel with few ticks.
pub const TIMER_WHEEL_7_3: &[Mutation] = &[
    m(WHEEL, "if hz > 100 { LVL", "if hz > 99 { LVL"),
    m(WHEEL, "LVL_DEPTH_MAX - 1 }", "LVL_DEPTH_MAX }"),
];
