// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, join, m};

/// In the code that both pass through.
const SHARED: &[Mutation] = &[
    m(
        "sched/fair/wakeup/affine.rs",
        "if self.available_idle_cpu(this) && self.topology.cpus_share_cache(this, prev) {",
        "if self.available_idle_cpu(this) {",
    ),
    m(
        "sched/fair/wakeup/affine.rs",
        "if sync && self.nr_running_but_delayed(this) == 1 {",
        "if sync && self.nr_running_but_delayed(this) <= 2 {",
    ),
    m(
        "sched/fair/wakeup/affine.rs",
        "if current_load > this_load {",
        "if current_load >= this_load {",
    ),
    m("sched/fair/wakeup/affine.rs", "100 + (pct - 100) / 2", "100 + (pct - 100)"),
    m("sched/fair/wakeup/affine.rs", "this_load < prev_load\n", "this_load <= prev_load\n"),
    m(
        "sched/fair/wakeup/idle_cpu.rs",
        "self.topology.shared[shared].nr_idle_scan + 1;",
        "self.topology.shared[shared].nr_idle_scan + 2;",
    ),
    m(
        "sched/fair/wakeup/idle_cpu.rs",
        "let start = CpuId(target.0 + 1);",
        "let start = CpuId(target.0);",
    ),
    m(
        "sched/fair/wakeup/idle_cpu.rs",
        "if has_idle_core && !self.has_smt() {",
        "if has_idle_core && self.has_smt() {",
    ),
    m(
        "sched/fair/wakeup/idle_cpu.rs",
        "if group.flags & SD_CLUSTER != 0 && group.span.contains(target)",
        "if group.flags & SD_CLUSTER == 0 && group.span.contains(target)",
    ),
    m("sched/fair/wakeup/smt.rs", "threads.iter().filter(|cpu| *cpu != target)", "threads.iter()"),
    m(
        "sched/fair/wakeup/smt.rs",
        "if first_idle.is_none() && takes && cpus.contains(cpu)",
        "if takes && cpus.contains(cpu)",
    ),
    m(
        "sched/fair/wakeup.rs",
        "            && recent != target\n",
        "            && recent == target\n",
    ),
    m(
        "sched/fair/wakeup.rs",
        "            && !idle_core.known\n",
        "            && idle_core.known\n",
    ),
];

/// By what CPUs that are too slow for a minimum are compared, where capacities differ.
const TOO_SLOW: Mutation = m(
    "sched/fair/wakeup/idle_capacity.rs",
    "(\"idle, too slow\", self.averaged_cpu_capacity(cpu))",
    "(\"idle, too slow\", self.capacity_of(cpu))",
);

/// In the code that 6.12 passes through.
pub const LINUX_6_12: &[Mutation] = &join::<16>(
    SHARED,
    &[
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "(fits == best_fits && cap > best_cap)",
            "(fits == best_fits && cap >= best_cap)",
        ),
        m("sched/fair/wakeup/idle_capacity.rs", "if fits > best_fits ||", "if fits < best_fits ||"),
        TOO_SLOW,
    ],
);

/// In the code that 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &join::<21>(
    SHARED,
    &[
        m(
            "sched/fair/wakeup/idle_cpu.rs",
            "self.tasks[task].policy != Policy::Idle,",
            "self.tasks[task].policy == Policy::Idle,",
        ),
        m(
            "sched/fair/wakeup/idle_cpu.rs",
            "let (looked, found) = if way < *left",
            "let (looked, found) = if way <= *left",
        ),
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "left = known.nr_idle_scan + 1;",
            "left = known.nr_idle_scan + 2;",
        ),
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "let preferred_core = !has_idle_core || self.is_core_idle(cpu);",
            "let preferred_core = !has_idle_core;",
        ),
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "rank < best_rank || (rank == best_rank && cap > best_cap)",
            "rank <= best_rank",
        ),
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "if has_idle_core && best_rank > rank::COMPLETE_MISFIT",
            "if has_idle_core && best_rank >= rank::COMPLETE_MISFIT",
        ),
        TOO_SLOW,
        m(
            "sched/fair/wakeup/idle_capacity.rs",
            "(rank::THREAD_TOO_SLOW, role, cap)",
            "(rank::THREAD_MISFIT, role, cap)",
        ),
    ],
);
