// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in PELT that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const AVERAGES: &str = "sched/pelt.rs";
const CLOCK: &str = "sched/pelt/clock.rs";
const ATTACH: &str = "sched/pelt/attach.rs";
const EST: &str = "sched/pelt/util_est.rs";

/// Mutations of PELT.
pub const PELT: &[Mutation] = &[
    m(AVERAGES, "LOAD_AVG_PERIOD * 63", "LOAD_AVG_PERIOD * 62"),
    m(AVERAGES, "shift: n / 32,", "shift: n / 31,"),
    m(AVERAGES, "periods = position / SEGMENT", "periods = delta / SEGMENT"),
    m(AVERAGES, "full_segments -= decay", "full_segments += decay"),
    m(AVERAGES, ".wrapping_sub(sa.period_contrib));", ".wrapping_sub(rest));"),
    m(AVERAGES, "periods as u32 != 0", "periods != 0"),
    m(AVERAGES, "= if load == 0 {", "= if load == 1 {"),
    m(AVERAGES, "if (elapsed_ns as i64) < 0", "if (elapsed_ns as i64) < -1"),
    m(AVERAGES, ".wrapping_add(delta << 10);\n    let (", ".wrapping_add(elapsed_ns);\n    let ("),
    m(AVERAGES, "sa.runnable_sum / divider", "sa.load_sum / divider"),
    m(AVERAGES, "sa.util_est &= !UTIL", "sa.util_est |= UTIL"),
    m(AVERAGES, "capacity as u32)", "(capacity != 0) as u32)"),
    m(AVERAGES, "let crossed = before | during;", "let crossed = during;"),
    m(AVERAGES, "(power * 0xffff_ffff)", "(power * 0xffff_fffe)"),
    m(CLOCK, "util_sum >= SATURATED", "util_sum > SATURATED"),
    m(CLOCK, "delta.wrapping_mul(cpu_scale)", "delta.wrapping_mul(freq_scale)"),
    m(CLOCK, "clock_task.wrapping_sub(self.clock_pelt)", "clock.wrapping_sub(self.clock_pelt)"),
    m(ATTACH, "se_weight < weighted", "se_weight > weighted"),
    m(ATTACH, "delta < 0 && sum > value", "delta < 0 && sum < value"),
    m(ATTACH, "now < cfs_last_update_time", "now > cfs_last_update_time"),
    m(ATTACH, ".wrapping_neg() >> SCHED", " >> SCHED"),
    m(ATTACH, "if cap > 0 {", "if cap >= 0 {"),
    m(ATTACH, ".min(divider)", ".min(divider - 1)"),
    m(EST, "ewma <= dequeued", "ewma >= dequeued"),
    m(EST, "fall >= UTIL_EST_MARGIN", "fall > UTIL_EST_MARGIN"),
    m(EST, "dequeued as u64 > arch", "dequeued as u64 >= arch"),
    m(EST, "as u64 >= task.runnable_avg", "as u64 > task.runnable_avg"),
];

/// Mutations of what the older 6.12 has of its own.
pub const PELT_6_12_95: &[Mutation] =
    &[m(ATTACH, "(se.runnable_avg as u32)", "(cfs.runnable_avg as u32)")];

/// Mutations of what 7.3 has of its own.
pub const PELT_7_3: &[Mutation] = &[
    m(ATTACH, "floor == AttachFloor::Raised", "floor == AttachFloor::Absent"),
    m(
        ATTACH,
        "se.runnable_avg.wrapping_mul(divider as u64)",
        "(se.runnable_avg as u32).wrapping_mul(divider) as u64",
    ),
    m(ATTACH, ".wrapping_neg() >> SCHED", " >> SCHED"),
    m(ATTACH, "delta < 0 && sum > value", "delta < 0 && sum < value"),
    m(EST, "UtilEstUpdate::InDequeue => u64::MAX", "UtilEstUpdate::InDequeue => arch_capacity"),
    m(EST, "as u64 >= task.runnable_avg", "as u64 > task.runnable_avg"),
];

/// Mutations of what 6.18 has of its own.
pub const PELT_6_18: &[Mutation] = &[
    m(EST, "InDequeue => u64::MAX", "InDequeue => arch_capacity"),
    m(EST, "as u64 >= task.runnable_avg", "as u64 > task.runnable_avg"),
];

/// Mutations of what PELT was before 6.8.
pub const PELT_6_1: &[Mutation] = &[
    m(AVERAGES, "full_segments -= decay", "full_segments += decay"),
    m(AVERAGES, "sa.util_est &= !UTIL", "sa.util_est |= UTIL"),
    m(ATTACH, "if cap > 0 {", "if cap >= 0 {"),
    m(EST, "if fastup && ewma < enqueued", "if ewma < enqueued"),
    m(EST, "within_margin(enqueued, ewma)", "within_margin(enqueued, before)"),
    m(EST, "within_margin(before, enqueued)", "within_margin(before, ewma)"),
    m(EST, "task.util_avg > arch_capacity", "task.util_avg >= arch_capacity"),
    m(EST, "enqueued.wrapping_sub(ewma));", "before.wrapping_sub(ewma));"),
    m(EST, "task.util_est = enqueued |", "task.util_est = ewma |"),
    m(EST, "abs_diff(b) < UTIL", "abs_diff(b) <= UTIL"),
    m(
        EST,
        "!UTIL_AVG_UNCHANGED).max(task.util_est_ewma)",
        "!UTIL_AVG_UNCHANGED).min(task.util_est_ewma)",
    ),
];
