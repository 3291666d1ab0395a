// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in clamps that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const CLAMP: &str = "sched/demand/uclamp/mod.rs";
const MAX: &str = "sched/demand/uclamp/max.rs";
const GROUP: &str = "sched/demand/uclamp/group.rs";
const SUMS: &str = "sched/demand/uclamp/sum.rs";
const FITS: &str = "sched/demand/fits.rs";
const PELT: &str = "sched/pelt/attach.rs";
const LOAD: &str = "sched/fair/load_avg.rs";

/// Mutations of max aggregation since 6.8 and of what both forms share.
pub const MAX_SINCE_6_8: &[Mutation] = &[
    m(MAX, "bucket.tasks == 1 || value > bucket.value", "bucket.tasks == 1"),
    m(MAX, "bucket.tasks == 1 || value > bucket.value", "value > bucket.value"),
    m(MAX, "SCHED_CAPACITY_SCALE as u32 + buckets / 2", "SCHED_CAPACITY_SCALE as u32"),
    m(
        MAX,
        "(value / self.delta) as usize).min(self.last)",
        "(value.saturating_sub(1) / self.delta) as usize).min(self.last)",
    ),
    m(MAX, "self.buckets.iter().rev().find(", "self.buckets.iter().find("),
    m(MAX, "self.max.inc(task.max, self.idle);", "self.max.inc(task.max, false);"),
    m(MAX, "self.max.dec(task.max, task.max)", "self.max.dec(task.max, Clamps::NONE.max)"),
    m(MAX, "self.max.inc(new.max, alone)", "self.max.inc(new.max, false)"),
    m(
        MAX,
        "let (min, max) = (self.min.min(self.max) as u64,",
        "let (min, max) = (self.min as u64,",
    ),
    m(MAX, "(!uncapped && max <= arch)", "(max <= arch)"),
    m(MAX, "(!uncapped && max <= arch)", "(!uncapped && max < arch)"),
    m(MAX, "util < min && min > actual", "util < min && min >= actual"),
    m(MAX, "if self.has_no_say() { own_max } else { max.max(own_max) }", "max.max(own_max)"),
    m(CLAMP, "if !resets && of(", "if of("),
    m(CLAMP, "let keeps = gives && !resets_min &&", "let keeps = gives &&"),
    m(CLAMP, "kept_min.filter(|_| t.class != Class::Rt)", "kept_min"),
    m(CLAMP, "min: min.min(limits.min)", "min"),
    m(CLAMP, "if delayed || !self", "if !self"),
    m(GROUP, "task.min.clamp(min, max)", "task.min.max(min)"),
    m(GROUP, "task.max.clamp(min, max)", "task.max.min(max)"),
    m(GROUP, "request.min.min(above.min).min(max)", "request.min.min(above.min)"),
    m(GROUP, "+ PERCENT_SCALE / 2) /", ") /"),
    m(GROUP, "self.uclamp_update_active_tasks(group, cx);", ""),
];

/// Mutations of what differs since 6.16.
pub const MAX_SINCE_6_16: &[Mutation] = &[
    m(CLAMP, "if self.uclamp_is_counted(cx) && cx.uclamp_joins_before_enqueue()", "if false"),
    m(CLAMP, "sched_delayed && flags & ENQUEUE_DELAYED == 0;", "sched_delayed;"),
];

/// Mutations of max aggregation before 6.8.
pub const MAX_BEFORE_6_8: &[Mutation] = &[
    m(MAX, "Some(own) if self.has_no_say() => own", "Some(own) if false => own"),
    m(MAX, "None => self.clamps(),", "None => Clamps::NONE,"),
    m(CLAMP, "util.min(max as u64).max(min as u64)", "util.max(min as u64).min(max as u64)"),
    m(CLAMP, "if self.uclamp_is_counted(cx) && cx.uclamp_joins_before_enqueue()", "if false"),
];

/// Mutations of sum aggregation.
pub const SUM: &[Mutation] = &[
    m(SUMS, "u32 { u32::MAX } else { max }", "u32 { max } else { max }"),
    m(SUMS, "if value >= max { max } else { value.max(min) }", "value.max(min).min(max)"),
    m(SUMS, "if self.max_factor_of == Some(task) {", "if false {"),
    m(SUMS, "} else if factor > self.max_factor {", "} else if factor >= self.max_factor {"),
    m(SUMS, "wrapping_mul(weight as u64) >> 32)", "wrapping_mul(weight as u64) >> 31)"),
    m(SUMS, "if on_rq && prio >= MAX_RT_PRIO &&", "if prio >= MAX_RT_PRIO &&"),
    m(SUMS, "if on_rq && bias != old {", "if bias != old {"),
    m(SUMS, "sums.bias += bias - old", "sums.bias += bias"),
    m(SUMS, "UtilBiasHook::Boosted => bias > 0", "UtilBiasHook::Boosted => bias >= 0"),
    m(SUMS, "(sums.max_factor, sums.max_factor_of) = (0, None);", ""),
    m(SUMS, "if sums.max_factor_of == Some(task) {", "if true {"),
    m(SUMS, "if propagates && bias < 0 &&", "if propagates && bias != 0 &&"),
    m(SUMS, ".on_rq != OnRq::Migrating {", ".on_rq == OnRq::Migrating {"),
    m(SUMS, "self.tasks[task].uclamp.sums.bias = 0;", ""),
    m(SUMS, "level = entity.parent;", "level = None;"),
    m(SUMS, "sums.util_est = clamped(estimate, min, max);", "sums.util_est = estimate;"),
    m(SUMS, "sums.util_est += own", "sums.util_est = own"),
    m(SUMS, "util.max(util * avg.runnable_avg / avg.util_avg)", "util.max(avg.runnable_avg)"),
    m(SUMS, "if here && !self.se[self.tasks[p].se].on_rq {", "if here {"),
    m(SUMS, "util -= util.min(self.task_util_uclamp(p));", "util -= util.min(self.task_util(p));"),
    m(SUMS, "util += self.task_util_uclamp(p);", "util += self.task_util(p);"),
    m(FITS, "if self.fits_capacity(clamped, cpu) {", "if self.fits_capacity(util, cpu) {"),
    m(
        PELT,
        "floor_u32(sa.util_sum.saturating_sub(sum), sa.util_avg)",
        "sa.util_sum.saturating_sub(sum)",
    ),
    m(
        LOAD,
        "if refreshed {\n                self.sched.load_avg_refreshed(se, &self.cx);\n            }\n        }\n        let mut decayed",
        "}\n        let mut decayed",
    ),
];
