// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, join, m};

/// In the code that 6.12 and 7.3 pass through.
pub const SINCE_6_12: &[Mutation] = &[
    m(
        "sched/fair/balance/src_group.rs",
        "if local.group_type > busiest.group_type {",
        "if local.group_type >= busiest.group_type {",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "if 100 * busiest.avg_load <= pct * local.avg_load {",
        "if 100 * busiest.avg_load < pct * local.avg_load {",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "self.sibling_imbalance(env, sds, group, cx) > 1",
        "self.sibling_imbalance(env, sds, group, cx) > 0",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "local.idle_cpus <= busiest.idle_cpus.wrapping_add(1)",
        "local.idle_cpus < busiest.idle_cpus.wrapping_add(1)",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "if imbalance <= 1 && nr_local == 0 && nr_busiest > 1 { 2 }",
        "if imbalance <= 1 && nr_local == 0 && nr_busiest > 2 { 2 }",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "(2 * excess.max(0) + cores) / cores",
        "(2 * excess.max(0) + cores - 1) / cores",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "imb_numa_nr as i32 || imbalance > MIN",
        "imb_numa_nr as i32 || imbalance >= MIN",
    ),
    m(
        "sched/fair/balance/src_group.rs",
        "busiest.group_type > GroupType::FullyBusy",
        "busiest.group_type >= GroupType::FullyBusy",
    ),
    m("sched/fair/balance/src_group.rs", "imbalance >> 1", "imbalance >> 2"),
    m("sched/fair/balance/src_group.rs", "surplus.min(room)", "surplus.max(room)"),
    m(
        "sched/fair/balance/src_rq.rs",
        "let too_much = nr == 1 && load > env.imbalance as u64;",
        "let too_much = nr == 1 && load >= env.imbalance as u64;",
    ),
    m(
        "sched/fair/balance/src_rq.rs",
        "MigrationType::Util if nr <= 1 => continue,",
        "MigrationType::Util if nr < 1 => continue,",
    ),
    m(
        "sched/fair/balance/src_rq.rs",
        "if value * others > busiest_value * mine {",
        "if value * others >= busiest_value * mine {",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "if self.sum_nr_running < self.group_weight {",
        "if self.sum_nr_running <= self.group_weight {",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "if self.sum_nr_running <= self.group_weight {",
        "if self.sum_nr_running < self.group_weight {",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "sgs.group_misfit_task_load < rq.misfit_task_load",
        "sgs.group_misfit_task_load > rq.misfit_task_load",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "sgs.sum_nr_running > busiest.sum_nr_running",
        "sgs.sum_nr_running < busiest.sum_nr_running",
    ),
    m(
        "sched/fair/balance/detach.rs",
        "sd.nr_balance_failed > sd.cache_nice_tries",
        "sd.nr_balance_failed >= sd.cache_nice_tries",
    ),
    m(
        "sched/fair/balance/detach.rs",
        "if env.loops > env.loop_max {",
        "if env.loops >= env.loop_max {",
    ),
    m(
        "sched/fair/balance/pass.rs",
        "domain.balance_interval < domain.max_interval",
        "domain.balance_interval <= domain.max_interval",
    ),
    m(
        "sched/fair/balance/pass.rs",
        "return rq.nr_running == 0 && !rq.ttwu_pending;",
        "return rq.nr_running == 0;",
    ),
    m(
        "sched/fair/balance/pass.rs",
        "return group.first_cpu == env.dst_cpu;",
        "return group.first_cpu != env.dst_cpu;",
    ),
    m(
        "sched/fair/balance/active.rs",
        "sd.nr_balance_failed > sd.cache_nice_tries + 2",
        "sd.nr_balance_failed > sd.cache_nice_tries + 3",
    ),
    m(
        "sched/fair/balance/active.rs",
        "if env.idle.is_idle() && src_nr == 1",
        "if env.idle.is_idle() && src_nr == 2",
    ),
    m("sched/fair/slow_path.rs", "1024 * (pct - 100) / 100", "1024 * pct / 100"),
    m(
        "sched/fair/slow_path.rs",
        "local_sgs.idle_cpus >= idlest_sgs.idle_cpus",
        "local_sgs.idle_cpus > idlest_sgs.idle_cpus",
    ),
    m(
        "sched/fair/slow_path.rs",
        "shallower || as_shallow && idle_stamp > latest_idle_timestamp",
        "shallower || as_shallow && idle_stamp < latest_idle_timestamp",
    ),
    m("sched/fair/slow_path.rs", "if load < min_load {", "if load <= min_load {"),
];

/// In the code that is 6.18's own, or that it has with 7.3.
pub const LINUX_6_18: &[Mutation] = &[
    // Groups of bigger CPUs.
    m(
        "sched/fair/balance/stats.rs",
        "let spared_always = cx.config.pick_busiest_bigger == PickBusiestBigger::Always;",
        "let spared_always = cx.config.pick_busiest_bigger != PickBusiestBigger::Always;",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "sgs.group_type > GroupType::FullyBusy || !bigger()",
        "sgs.group_type >= GroupType::FullyBusy || !bigger()",
    ),
    m(
        "sched/fair/balance/stats.rs",
        "cx.config.pick_busiest_bigger == PickBusiestBigger::Always\n            && self.has_smt()",
        "cx.config.pick_busiest_bigger != PickBusiestBigger::Always\n            && self.has_smt()",
    ),
    // Delayed tasks.
    m(
        "sched/fair/balance/detach.rs",
        "BalanceDelayed::LoadOnly => cfs.h_nr_runnable,",
        "BalanceDelayed::LoadOnly => cfs.h_nr_queued,",
    ),
    m(
        "sched/fair/balance/detach.rs",
        "env.migration_type != MigrationType::Load\n",
        "env.migration_type == MigrationType::Load\n",
    ),
    // Tasks that would have to wait.
    m(
        "sched/fair/balance/detach.rs",
        ".cfs_rq[dst.index()]].nr_queued",
        ".cfs_rq[self.tasks[task].cpu.index()]].nr_queued",
    ),
    m("sched/fair/balance/detach.rs", "&& !self.entity_eligible(", "&& self.entity_eligible("),
    m(
        "sched/fair/balance/detach.rs",
        "if sd.nr_balance_failed == 0",
        "if sd.nr_balance_failed != 0",
    ),
];

/// In the code that 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &join::<29>(
    SINCE_6_12,
    &[m(
        "sched/fair/balance/detach.rs",
        "if sd.nr_balance_failed == 0",
        "if sd.nr_balance_failed != 0",
    )],
);
