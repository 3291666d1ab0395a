// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the arithmetic of task groups that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const POOL: &str = "sched/fair/bandwidth/pool.rs";
const SHARES: &str = "sched/fair/group/shares.rs";

/// Mutations of task groups.
pub const GROUPS: &[Mutation] = &[
    m(SHARES, "MIN_SHARES: i64 = 2", "MIN_SHARES: i64 = 3"),
    m(SHARES, "group.load_avg - contrib as i64 + load", "group.load_avg + load"),
    m(SHARES, "part /= total;", "part /= total + 1;"),
    m(SHARES, "clamp(MIN_SHARES, most)", "max(MIN_SHARES)"),
    m(SHARES, "> told.1 / 64", ">= told.1 / 64"),
    m(SHARES, "told.1 / 64", "told.1 / 63"),
    m(POOL, "RUNTIME: i64 = 1_000_000", "RUNTIME: i64 = 999_999"),
    m(POOL, "self.runtime += quota;", "self.runtime = quota;"),
    m(POOL, "self.runtime_snap > self.runtime", "self.runtime_snap + 1 > self.runtime"),
    m(
        POOL,
        "self.stat.burst_time += self.runtime_snap - self.runtime",
        "self.stat.burst_time += self.runtime_snap",
    ),
    m(POOL, "min(quota + self.burst)", "min(quota)"),
    m(POOL, "(target as i64 - queue.runtime_remaining)", "(target as i64)"),
    m(POOL, "            if self.runtime > 0 {\n", "            if self.runtime > 1_000_000 {\n"),
    m(POOL, "                self.idle = false;\n", ""),
    m(POOL, "slack <= 0", "slack < -1"),
    m(POOL, "self.runtime > slice &&", "self.runtime >= slice &&"),
    m(POOL, "&& !self.throttled.is_empty()\n", "\n"),
    m(POOL, "(1 - queue.runtime_remaining)", "(2 - queue.runtime_remaining)"),
    m(POOL, "self.stat.nr_periods += overrun", "self.stat.nr_periods += 1"),
    m(POOL, "self.idle && !throttled", "self.idle"),
    m(POOL, "self.idle = true", "self.idle = false"),
    m(POOL, "self.stat.nr_throttled += overrun", "self.stat.nr_throttled += 1"),
    m(
        POOL,
        "        self.stat.nr_throttled += overrun;\n        self.idle = false;\n",
        "        self.stat.nr_throttled += overrun;\n",
    ),
];

/// Those of what only 7.3 has.
pub const GROUPS_7_3: &[Mutation] = &[
    m(SHARES, "(group.runnable_avg >> TASK_SHIFT).max(1)", "(group.runnable_avg >> TASK_SHIFT)"),
    m(SHARES, "TASK_SHIFT: u32 = 10", "TASK_SHIFT: u32 = 9"),
    m(SHARES, "88761 << 10", "71755 << 10"),
    m(SHARES, "=> return group.shares,", "=> (shares, shares),"),
    m(SHARES, "Smp => (shares, shares)", "Smp => (shares, 2 * shares)"),
    m(SHARES, "(tasks.min(cpus) * shares, tasks", "(tasks * shares, tasks"),
    m(SHARES, "shares, tasks.min(cpus) * shares)", "shares, shares)"),
    m(SHARES, "(cpus * shares, MAX_WEIGHT)", "(cpus * shares, cpus * shares)"),
    m(SHARES, "Tasks => (tasks * shares, tasks", "Tasks => (tasks * shares, cpus"),
    m(SHARES, "if with_runnable { delta(runnable) } else { 0 }", "0"),
    m(SHARES, "|| with_runnable && moved(runnable)", ""),
    m(SHARES, "then(|| (delta(load),", "then(|| (if moved(load) { delta(load) } else { 0 },"),
];
