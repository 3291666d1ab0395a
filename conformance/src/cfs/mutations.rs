// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in CFS and in the fair class's entries that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const CFS_FILE: &str = "sched/fair/cfs.rs";
const CLASS: &str = "sched/fair/class.rs";

/// Mutations of CFS and of the fair class's entries.
pub const CFS: &[Mutation] = &[
    m(CFS_FILE, "(a.wrapping_sub(b) as i64) < 0", "(a.wrapping_sub(b) as i64) <= 0"),
    m(CFS_FILE, "tunables.latency.div_ceil(", "tunables.latency.div_euclid("),
    m(CFS_FILE, "if before(first, running) => first", "if before(running, first) => first"),
    m(CFS_FILE, "if before(cfs.min_vruntime, smallest)", "if cfs.min_vruntime != smallest"),
    m(CFS_FILE, "flags & ENQUEUE_WAKEUP == 0 || flags", "flags & ENQUEUE_WAKEUP == 0 && flags"),
    m(CFS_FILE, "if flags & DEQUEUE_SLEEP == 0", "if flags & DEQUEUE_SLEEP != 0"),
    m(CFS_FILE, "(DEQUEUE_SAVE | DEQUEUE_MOVE) != DEQUEUE_SAVE", "DEQUEUE_SAVE != DEQUEUE_SAVE"),
    m(CFS_FILE, "if idle { tunables.min_granularity }", "if idle { tunables.latency }"),
    m(CFS_FILE, "credit >> gentle", "credit << gentle"),
    m(CFS_FILE, "calc_delta_fair(slice, &self", "calc_delta_fair(slice + 1, &self"),
    m(CFS_FILE, "if forget || before", "if before"),
    m(CFS_FILE, "exec_start != 0\n", "true\n"),
    m(CFS_FILE, "saturating_sub(exec_start) > (1", "saturating_sub(exec_start) >= (2"),
    m(
        CFS_FILE,
        "vruntime = self.sched.se[curr].vruntime;\n        }\n        self.sched.place",
        "vruntime = 0;\n        }\n        self.sched.place",
    ),
    m(CFS_FILE, "counted as u64 + !self.se[se].on_rq as u64", "counted as u64"),
    m(CFS_FILE, "nr_running > self.sched_nr_latency()", "nr_running >= self.sched_nr_latency()"),
    m(CFS_FILE, "if entity.on_rq { 0 }", "if true { 0 }"),
    m(CFS_FILE, "slice.max(floor)", "slice.min(floor)"),
    m(CFS_FILE, "self.se_is_idle(se) && !self", "self.se_is_idle(se) && self"),
    m(CFS_FILE, "entities.all(|se| self", "entities.any(|se| self"),
    m(CFS_FILE, "if ran > ideal_runtime {", "if ran >= ideal_runtime {"),
    m(CFS_FILE, "if ran < self.cfs", "if ran <= self.cfs"),
    m(CFS_FILE, "if lead > ideal_runtime as", "if lead >= ideal_runtime as"),
    m(CFS_FILE, "if behind <= 0 {", "if behind < 0 {"),
    m(CFS_FILE, "(behind > granularity)", "(behind >= granularity)"),
    m(CFS_FILE, "second.flatten().filter(fair)", "second.flatten()"),
    m(CFS_FILE, "or_curr(waiting(1))", "waiting(1)"),
    m(CFS_FILE, "cfs.next.filter(fair)", "cfs.next.filter(|_| true)"),
    m(CFS_FILE, "cfs.last.filter(fair)", "cfs.last.filter(|_| true)"),
    m(
        CFS_FILE,
        "nr_queued as u64 >= self.sched.sched_nr_latency()",
        "nr_queued as u64 > self.sched.sched_nr_latency()",
    ),
    m(CFS_FILE, "crowded && wake_flags & WF_FORK == 0", "crowded"),
    m(CFS_FILE, "if !marked {", "if marked {"),
    m(CFS_FILE, "crowded && entity.on_rq && entity", "crowded && entity"),
    m(CFS_FILE, "policy != Policy::Batch", "policy == Policy::Batch"),
    m(CFS_FILE, "self.sched.cfs[cfs_rq].skip = Some(se)", "self.sched.cfs[cfs_rq].next = Some(se)"),
    m(CLASS, ".exec_start = 0;", ".exec_start = 1;"),
];
