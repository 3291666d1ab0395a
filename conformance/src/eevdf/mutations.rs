//! Wrong tokens in EEVDF and in the fair class's entries that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const EEVDF_FILE: &str = "sched/fair/eevdf.rs";
const CLASS: &str = "sched/fair/class.rs";
const WEIGHTS: &str = "sched/fair/mod.rs";

/// Mutations of EEVDF, of the fair class's entries and of its weights.
pub const EEVDF: &[Mutation] = &[
    m(EEVDF_FILE, "(a.wrapping_sub(b) as i64) < 0", "(a.wrapping_sub(b) as i64) <= 0"),
    m(
        EEVDF_FILE,
        "sum -= load - 1;\n            }\n            // div_s64()",
        "sum -= load;\n            }\n            // div_s64()",
    ),
    m(EEVDF_FILE, "sum >= key.wrapping_mul(load)", "sum > key.wrapping_mul(load)"),
    m(
        EEVDF_FILE,
        "(2 * entity.slice).max(self.tick_nsec)",
        "(2 * entity.slice).min(self.tick_nsec)",
    ),
    m(EEVDF_FILE, "cfs.avg_load + curr_weight", "cfs.avg_load"),
    m(EEVDF_FILE, "vslice /= 2", "vslice /= 3"),
    m(EEVDF_FILE, "entity.rel_deadline = false", "entity.rel_deadline = true"),
    m(EEVDF_FILE, "cfs_rq);\n        true", "cfs_rq);\n        false"),
    m(EEVDF_FILE, "deadline.wrapping_add(1)", "deadline.wrapping_add(0)"),
    m(EEVDF_FILE, "self.se[pse].slice < self", "self.se[pse].slice <= self"),
    m(EEVDF_FILE, "&& !self.protect_slice(curr)", "&& self.protect_slice(curr)"),
    m(EEVDF_FILE, "if cfs.nr_queued == 1", "if cfs.nr_queued == 2"),
    m(EEVDF_FILE, "used_up || self.did", "used_up && self.did"),
    m(EEVDF_FILE, "= self.se[se].deadline;", "= self.se[se].deadline + 1;"),
    m(EEVDF_FILE, "other.deadline)", "other.vruntime)"),
    m(EEVDF_FILE, "best.deadline) => Some(curr)", "best.vruntime) => Some(curr)"),
    m(CLASS, "if self.se[se].vlag > 0", "if self.se[se].vlag >= 0"),
    m(EEVDF_FILE, "delay_zero && entity.vlag > 0", "delay_zero && entity.vlag < 0"),
    m(EEVDF_FILE, "place_rel_deadline && !sleep", "place_rel_deadline && sleep"),
    m(CLASS, "scaled / new.weight as i64", "scaled / new.weight as i64 - 1"),
    m(WEIGHTS, "(weight >> 10).max(2)", "(weight >> 10).max(3)"),
    m(WEIGHTS, "(u32::MAX as u64 / w)", "((1 << 32) / w)"),
];
