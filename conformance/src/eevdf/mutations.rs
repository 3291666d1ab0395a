// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in EEVDF and in the fair class's entries that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const EEVDF_FILE: &str = "sched/fair/eevdf.rs";
const WEIGHTS: &str = "sched/fair/mod.rs";

/// Mutations of EEVDF, of the fair class's entries and of its weights.
pub const EEVDF: &[Mutation] = &[
    m(EEVDF_FILE, "(a.wrapping_sub(b) as i64) < 0", "(a.wrapping_sub(b) as i64) <= 0"),
    m(
        EEVDF_FILE,
        "sum -= load - 1;\n            }\n            cfs.divide",
        "sum -= load;\n            }\n            cfs.divide",
    ),
    m(EEVDF_FILE, "false => sum >= key", "false => sum > key"),
    m(EEVDF_FILE, "(2 * entity.slice).max(cx.tick_nsec)", "(2 * entity.slice).min(cx.tick_nsec)"),
    m(EEVDF_FILE, "load = cfs.avg_load + curr.map_or(0,", "load = cfs.avg_load + curr.map_or(1,"),
    m(EEVDF_FILE, "vslice /= 2", "vslice /= 3"),
    m(EEVDF_FILE, "entity.rel_deadline = false", "entity.rel_deadline = true"),
    m(EEVDF_FILE, "cfs_rq);\n        true", "cfs_rq);\n        false"),
    m(EEVDF_FILE, "entity.deadline.wrapping_add(1)", "entity.deadline.wrapping_add(0)"),
    m(EEVDF_FILE, "self.se[pse].slice < self", "self.se[pse].slice <= self"),
    m(EEVDF_FILE, "&& !self.protect_slice(curr, cx)", "&& self.protect_slice(curr, cx)"),
    m(EEVDF_FILE, "if cfs.nr_queued == 1", "if cfs.nr_queued == 2"),
    m(EEVDF_FILE, "used_up || self.did", "used_up && self.did"),
    m(
        EEVDF_FILE,
        "vruntime = self.sched.se[se].deadline;",
        "vruntime = self.sched.se[se].deadline + 1;",
    ),
    m(EEVDF_FILE, "other.deadline)", "other.vruntime)"),
    m(EEVDF_FILE, "best.deadline) => Some(curr)", "best.vruntime) => Some(curr)"),
    m(EEVDF_FILE, "owed = self.sched.se[se].vlag > 0", "owed = self.sched.se[se].vlag >= 0"),
    m(EEVDF_FILE, "delay_zero && entity.vlag > 0", "delay_zero && entity.vlag < 0"),
    m(EEVDF_FILE, "place_rel_deadline && !sleep", "place_rel_deadline && sleep"),
    m(
        EEVDF_FILE,
        "entity.vlag = scaled / weight as i32 as i64;",
        "entity.vlag = scaled / weight as i32 as i64 - 1;",
    ),
    m(WEIGHTS, "(weight >> 10).max(2)", "(weight >> 10).max(3)"),
    m(WEIGHTS, "(u32::MAX as u64 / w)", "((1 << 32) / w)"),
];

/// Mutations of the form of 6.18.
pub const EEVDF_6_18: &[Mutation] = &[
    m(FILE_6_18, "if before(b, a) { b } else { a }", "if before(b, a) { a } else { b }"),
    m(FILE_6_18, "/ weight as i32 as i64", "/ weight as i32 as i64 - 1"),
    m(
        FILE_6_18,
        "before(self.vruntime, self.vlag as u64)",
        "!before(self.vlag as u64, self.vruntime)",
    ),
    m(FILE_6_18, "self.min_slice(cfs_rq).unwrap_or(entity.slice)", "entity.slice"),
    m(FILE_6_18, "false => cx.config.base_slice_unscaled", "false => entity.slice"),
    m(FILE_6_18, "vprot = earlier(vprot, entity", "vprot = earlier(entity.deadline + 1, entity"),
    m(FILE_6_18, "(curr && entity.is_protected_6_18())", "entity.is_protected_6_18()"),
    m(FILE_6_18, "(entity.vlag as u64).wrapping_sub(entity.vruntime)", "entity.vlag as u64"),
    m(FILE_6_18, "entity.deadline.wrapping_sub(entity.vruntime)", "entity.deadline"),
    m(FILE_6_18, "self.cfs[cfs_rq].nr_queued -= 1;", ""),
    m(FILE_6_18, "wrapping_add(protection)", "wrapping_sub(protection)"),
    m(FILE_6_18, "self.sched.se[pse].slice < self", "self.sched.se[pse].slice <= self"),
    m(FILE_6_18, "!short && wake_flags & WF_FORK != 0", "wake_flags & WF_FORK != 0"),
];

const FILE_6_18: &str = "sched/fair/eevdf/v6_18.rs";
const NEW_FILE: &str = "sched/fair/eevdf/v7_3.rs";
const FLAT_FILE: &str = "sched/fair/flat.rs";

/// Mutations of the walk through one timeline for all groups.
pub const EEVDF_7_3_FLAT: &[Mutation] = &[
    m(FLAT_FILE, "let protected = curr && self", "let protected = !curr && self"),
    m(FLAT_FILE, "entity.vlag = lag;", ""),
    m(FLAT_FILE, "entity.rescale(old, weight, protected)", "entity.rescale(old, weight, false)"),
    m(FLAT_FILE, "entity.rescale(old, weight, false)", "entity.rescale(weight, old, false)"),
    m(FLAT_FILE, "average.wrapping_sub(entity.vlag as u64)", "average"),
    m(
        FLAT_FILE,
        "                self.update_curr(timeline);\n            }\n            let picked",
        "            }\n            let picked",
    ),
    m(FLAT_FILE, "self.sched.reweight_in_timeline(timeline, se, weight, false, &self.cx)", "()"),
    m(
        FLAT_FILE,
        "self.sched.reweight_in_timeline(self.sched.rq[cpu].timeline, se, weight, true, &self.cx)",
        "()",
    ),
    m(
        FLAT_FILE,
        "        self.sched.clear_buddies(timeline, se);\n        if on_rq {",
        "        if on_rq {",
    ),
];

/// Mutations of the form of 7.3.
pub const EEVDF_7_3: &[Mutation] = &[
    m(NEW_FILE, "if super::before(b, a)", "if super::before(a, b)"),
    m(NEW_FILE, "vlag.wrapping_add(vlag.wrapping_mul", "vlag.wrapping_sub(vlag.wrapping_mul"),
    m(NEW_FILE, "weight > load as i64", "weight < load as i64"),
    m(NEW_FILE, ".max().unwrap_or(0)", ".min().unwrap_or(0)"),
    m(NEW_FILE, "lag.max(entity.vlag)", "lag.min(entity.vlag)"),
    m(NEW_FILE, "lag = lag.min(0)", "lag = lag.max(0)"),
    m(NEW_FILE, "as u64) != entity.vruntime", "as u64) == entity.vruntime"),
    m(FLAT_FILE, "wrapping_mul(old as i64) / weight", "wrapping_mul(old as i64 + 1) / weight"),
    m(FLAT_FILE, "if self.rel_deadline", "if !self.rel_deadline"),
    m(NEW_FILE, "if shortest >= entity.slice", "if shortest > entity.slice"),
    m(NEW_FILE, "(sum / load) as u64).wrapping_add(1)", "(sum / load) as u64).wrapping_add(2)"),
    m(NEW_FILE, "sum -= load - 1;", "sum -= load;"),
    m(NEW_FILE, "earlier(entity.vruntime, average)", "earlier(average, average)"),
    m(NEW_FILE, "if !features.preempt_short && self", "if features.preempt_short && self"),
    m(NEW_FILE, "if curr_is_idle && !task_is_idle", "if curr_is_idle && task_is_idle"),
    m(
        NEW_FILE,
        "self.sched.se[pse].slice < self.sched.se[se].slice",
        "self.sched.se[pse].slice <= self.sched.se[se].slice",
    ),
    m(NEW_FILE, "if !short && wake_flags", "if short && wake_flags"),
    m(NEW_FILE, "if short && self.sched.entity_eligible", "if self.sched.entity_eligible"),
    m(NEW_FILE, "if features.run_to_parity {", "if !features.run_to_parity {"),
    m(NEW_FILE, "self.se[next].slice < self.se[pse]", "self.se[next].slice > self.se[pse]"),
    m(
        EEVDF_FILE,
        "used_up || !self.protect_slice(curr, cx)",
        "used_up || self.protect_slice(curr, cx)",
    ),
    m(EEVDF_FILE, "before(entity.vruntime, entity.vprot)", "before(entity.vprot, entity.vruntime)"),
    m(EEVDF_FILE, "max(entity.slice) + cx.tick", "max(entity.slice) - cx.tick"),
    m(EEVDF_FILE, "true => sum as i128 >= key", "true => sum as i128 > key"),
    m(
        WEIGHTS,
        "delta.wrapping_mul(NICE_0_LOAD) / load",
        "delta.wrapping_mul(NICE_0_LOAD + 1) / load",
    ),
];
