// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the deadline class's arithmetic that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const ENTITY: &str = "sched/deadline/entity.rs";
const HEAP: &str = "sched/deadline/cpudl.rs";
const LIMIT: &str = "sched/deadline/dl_bw.rs";

/// Mutations of the deadline class.
pub const DEADLINE: &[Mutation] = &[
    m(ENTITY, "DL_SCALE: u32 = 10", "DL_SCALE: u32 = 9"),
    m(ENTITY, "(runtime << 20)", "(runtime << 19)"),
    m(ENTITY, "a.wrapping_sub(b) as i64) < 0", "a.wrapping_sub(b) as i64) <= 0"),
    m(ENTITY, "dl_time_before(right, left)", "dl_time_before(left, right)"),
    m(ENTITY, "(runtime >> DL_SCALE) as u64", "(runtime as u64) >> DL_SCALE"),
    m(
        ENTITY,
        "to_ratio(self.dl_deadline, self.dl_runtime)",
        "to_ratio(self.dl_period, self.dl_runtime)",
    ),
    m(
        ENTITY,
        "to_ratio(self.dl_period, self.dl_runtime)",
        "to_ratio(self.dl_deadline, self.dl_runtime)",
    ),
    m(ENTITY, "self.special || dl_time_before", "dl_time_before"),
    m(ENTITY, "self.dl_deadline == self.dl_period", "self.dl_deadline >= self.dl_runtime"),
    m(
        ENTITY,
        "self.deadline.wrapping_sub(self.dl_deadline).wrapping_add",
        "self.deadline.wrapping_add",
    ),
    m(ENTITY, "clock.wrapping_add(self.dl_deadline)", "clock.wrapping_add(self.dl_period)"),
    m(ENTITY, "if !self.throttled {", "if self.throttled {"),
    m(ENTITY, "self.yielded && self.runtime > 0", "self.runtime > 0"),
    m(ENTITY, "while self.runtime <= 0", "while self.runtime < 0"),
    m(
        ENTITY,
        "self.deadline.wrapping_add(self.dl_period);",
        "self.deadline.wrapping_add(self.dl_deadline);",
    ),
    m(
        ENTITY,
        "        self.yielded = false;\n        self.throttled = false;\n    }\n\n    /// `update",
        "        self.yielded = false;\n    }\n\n    /// `update",
    ),
    m(ENTITY, "!passed && !self.overflows(clock)", "!self.overflows(clock)"),
    m(ENTITY, "!passed && !self.is_implicit()", "!self.is_implicit()"),
    m(ENTITY, "wrapping_mul(laxity) >> 20", "wrapping_mul(laxity) >> 10"),
    m(ENTITY, "&& dl_time_before(clock, self.next_period())", ""),
    m(
        ENTITY,
        "product.wrapping_div(self.dl_runtime as i64)",
        "product.wrapping_div(self.dl_deadline as i64)",
    ),
    m(ENTITY, ".wrapping_mul(scale_cpu) >> 10", ".wrapping_mul(scale_cpu) >> 9"),
    m(LIMIT, "self.total_bw - old_bw + new_bw", "self.total_bw + new_bw"),
    m(LIMIT, ">> 10 < self", ">> 10 <= self"),
    m(
        HEAP,
        "at > 0 && dl_time_before(self.elements[(at - 1) / 2].0, self.elements[at].0)",
        "at > 0",
    ),
    m(
        HEAP,
        "if dl_time_before(element.0, self.elements[parent].0) {",
        "if !dl_time_before(self.elements[parent].0, element.0) {",
    ),
    m(HEAP, "(2 * at + 1, 2 * at + 2)", "(2 * at + 2, 2 * at + 1)"),
    m(
        HEAP,
        "                largest_deadline = self.elements[left].0;",
        "                largest_deadline = element.0;",
    ),
    m(
        HEAP,
        "            self.heapify(at);\n        }\n    }\n\n    fn heapify(",
        "        }\n    }\n\n    fn heapify(",
    ),
    m(HEAP, "self.free_cpus.insert(cpu);", ""),
];
