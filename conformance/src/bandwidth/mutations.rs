// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the code of `cpu.max` that the comparison must notice; those of a pool's arithmetic are in `groups`.

use crate::l0::mutate::{Mutation, join, m};

const BANDWIDTH_RS: &str = "sched/fair/bandwidth.rs";
const HIERARCHY: &str = "sched/fair/bandwidth/hierarchy.rs";
const QUEUE: &str = "sched/fair/bandwidth/queue.rs";
const TASK: &str = "sched/fair/bandwidth/task.rs";
const CLASS: &str = "sched/fair/class.rs";
const FLAT: &str = "sched/fair/flat.rs";

/// What each form notices.
const SHARED: &[Mutation] = &[
    m(HIERARCHY, "own.throttled_clock_pelt_time += now - own.throttled_clock_pelt;", ""),
    m(HIERARCHY, "is_first && (", "("),
    m(BANDWIDTH_RS, "pool.stat.throttled_time += since.map_or(0, |since| clock - since);", ""),
    m(BANDWIDTH_RS, "            at += 1;\n", "            at += 2;\n"),
    m(
        BANDWIDTH_RS,
        "CFS_BANDWIDTH_SLACK_PERIOD: Ns = 5_000_000",
        "CFS_BANDWIDTH_SLACK_PERIOD: Ns = 5_000_001",
    ),
];

/// Mutations of 6.12's form.
pub(super) const BANDWIDTH: &[Mutation] = &join::<13>(
    SHARED,
    &[
        m(QUEUE, "cfs.h_nr_runnable -= runnable;", ""),
        m(QUEUE, "cfs.h_nr_delayed += delayed;", ""),
        m(QUEUE, "parent_stays |= cfs.load_weight != 0;", ""),
        m(QUEUE, "if cfs.bandwidth.dequeued {", "if false {"),
        m(QUEUE, "DEQUEUE_SLEEP | DEQUEUE_SPECIAL | delayed", "DEQUEUE_SLEEP | delayed"),
        m(
            QUEUE,
            "self.sched.se[se].on_rq && !self.sched.se[se].sched_delayed",
            "self.sched.se[se].on_rq",
        ),
        m(QUEUE, "(always || cfs.nr_queued != 0).then_some(clock)", "Some(clock)"),
        m(HIERARCHY, "(stops || cfs.nr_queued == 0)", "cfs.nr_queued == 0"),
    ],
);

/// Mutations of 6.1's form.
pub(super) const BANDWIDTH_6_1: &[Mutation] = &join::<13>(
    SHARED,
    &[
        m(QUEUE, "cfs.h_nr_runnable -= runnable;", ""),
        m(QUEUE, "parent_stays |= cfs.load_weight != 0;", ""),
        m(QUEUE, "if cfs.bandwidth.dequeued {", "if false {"),
        m(QUEUE, "always || cfs.nr_queued != 0", "cfs.nr_queued != 0"),
        m(
            BANDWIDTH_RS,
            "cfs[cfs_rq].curr.is_some() && self.check_cfs_rq",
            "cfs[cfs_rq].curr.is_none() && self.check_cfs_rq",
        ),
        m(BANDWIDTH_RS, "self.put_prev_task_fair(cpu, self.sched.rq[cpu].curr);", ""),
        m(BANDWIDTH_RS, "                    at -= 1;\n", ""),
        m(CLASS, "!(first && self.cx.puts_back_before_pick())", "true"),
    ],
);

/// What both forms notice whose tasks leave one by one.
const BY_TASK: &[Mutation] = &join::<14>(
    SHARED,
    &[
        m(TASK, "t.class != Class::Fair || !throttled", "t.class != Class::Fair"),
        m(TASK, "throttled_hierarchy(cfs_rq) && !runs;", "throttled_hierarchy(cfs_rq);"),
        m(TASK, "get_or_insert(clock)", "insert(clock)"),
        m(TASK, "retain(|other| *other != task)", "retain(|_| true)"),
        m(TASK, "        self.sched.tasks[task].throttled = true;\n", ""),
        m(HIERARCHY, "(stops || cfs.nr_queued == 0)", "(stops || cfs.nr_queued != 1)"),
        m(BANDWIDTH_RS, "i64::from(self.cx.throttles_tasks())", "0"),
        m(
            BANDWIDTH_RS,
            "own.runtime_enabled && own.runtime_remaining <= 0",
            "own.runtime_remaining < -1_000_000_000",
        ),
        m(BANDWIDTH_RS, "if stops {", "if false {"),
    ],
);

/// Mutations of 6.18's form.
pub(super) const BANDWIDTH_6_18: &[Mutation] = &join::<17>(
    BY_TASK,
    &[
        m(CLASS, "                    throttled = true;\n", ""),
        m(CLASS, "(DEQUEUE_SPECIAL | DEQUEUE_THROTTLE) == 0", "DEQUEUE_SPECIAL == 0"),
        m(CLASS, "            if throttles {", "            if false {"),
    ],
);

/// Mutations of 7.3's form.
pub(super) const BANDWIDTH_7_3: &[Mutation] = &join::<21>(
    BY_TASK,
    &[
        m(TASK, "if again && self.cx.throttles_at_charge() {", "if false {"),
        m(BANDWIDTH_RS, "if charged { self.cx.config.cfs_bandwidth_slice } else { 1 }", "1"),
        m(BANDWIDTH_RS, "if self.cx.throttles_at_charge() && cfs.curr.is_some() {", "if false {"),
        m(
            BANDWIDTH_RS,
            "self.cx.throttles_at_charge() && self.sched.csd_is_pending",
            "self.sched.flat_groups() && !self.sched.csd_is_pending",
        ),
        m(
            FLAT,
            "DEQUEUE_SPECIAL | DEQUEUE_THROTTLE | DEQUEUE_DELAYED",
            "DEQUEUE_SPECIAL | DEQUEUE_DELAYED",
        ),
        m(FLAT, "            if throttles {", "            if false {"),
        m(
            CLASS,
            "account_cfs_rq_runtime(self.sched.se[curr].cfs_rq, delta)",
            "account_cfs_rq_runtime(cfs_rq, delta)",
        ),
    ],
);
