// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, m};

/// In the code that 6.12 passes through.
pub const LINUX_6_12: &[Mutation] = &[
    m("sched/fair/balance/newidle.rs", "(d1k <= weight).then", "(d1k < weight).then"),
    m("sched/fair/balance/newidle.rs", "(1024 + weight / 2) / weight)", "1024 / weight)"),
    m(
        "sched/fair/balance/newidle.rs",
        "if !self.sched.rd.overloaded || self.sched.rq[cpu].avg_idle < cost {",
        "if !self.sched.rd.overloaded || self.sched.rq[cpu].avg_idle <= cost {",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "rq.next_balance = rq.next_balance.min(next_balance);",
        "rq.next_balance = next_balance;",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "if pulled != 0 {\n            rq.idle_stamp = 0;",
        "if pulled > 0 {\n            rq.idle_stamp = 0;",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "avg_idle < curr_cost + self",
        "avg_idle <= curr_cost + self",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "let success = weight * (pulled != 0) as u32;",
        "let success = (pulled != 0) as u32;",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "if pulled != 0 || !continue_balancing {",
        "if pulled != 0 {",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "rq.max_idle_balance_cost.max(curr_cost);",
        "rq.max_idle_balance_cost;",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "if rq.nr_running != h_nr_queued {",
        "if rq.nr_running == h_nr_queued {",
    ),
    m("sched/fair/balance.rs", "if sd.newidle_call >= 1024 {", "if sd.newidle_call > 1024 {"),
    m("sched/fair/balance.rs", "sd.newidle_success /= 2;", "sd.newidle_success /= 4;"),
    m(
        "sched/fair/balance.rs",
        "if cost > sd.max_newidle_lb_cost {",
        "if cost >= sd.max_newidle_lb_cost {",
    ),
    m(
        "sched/fair/balance.rs",
        "sd.max_newidle_lb_cost * 253 / 256;",
        "sd.max_newidle_lb_cost * 252 / 256;",
    ),
    m(
        "sched/fair/balance.rs",
        "} else if jiffies > sd.last_decay_max_lb_cost + hz {",
        "} else if jiffies >= sd.last_decay_max_lb_cost + hz {",
    ),
    m("sched/fair/balance.rs", "(interval - busy as u64).clamp(1, max)", "interval.clamp(1, max)"),
    m(
        "sched/fair/balance.rs",
        "if jiffies >= self.sched.topology[sd].last_balance + interval {",
        "if jiffies > self.sched.topology[sd].last_balance + interval {",
    ),
    m("sched/fair/balance.rs", "self.cx.config.migration_cost.max(max_cost);", "max_cost;"),
    m(
        "sched/nohz.rs",
        "if self.nohz.has_blocked && jiffies > self.nohz.next_blocked {",
        "if self.nohz.has_blocked && jiffies >= self.nohz.next_blocked {",
    ),
    m(
        "sched/nohz.rs",
        "if jiffies >= self.nohz.next_balance && self.idle",
        "if jiffies > self.nohz.next_balance && self.idle",
    ),
    m("sched/nohz.rs", "if rq.nr_running >= 2 {", "if rq.nr_running > 2 {"),
    m("sched/nohz.rs", "&& self.h_nr_running(cpu, cx) >= 1", "&& self.h_nr_running(cpu, cx) > 1"),
    m(
        "sched/nohz.rs",
        "return rq.misfit_task_load != 0 && can_be_helped;",
        "return rq.misfit_task_load == 0 && can_be_helped;",
    ),
    m("sched/nohz.rs", ".nr_busy_cpus > 1)", ".nr_busy_cpus > 2)"),
    m(
        "sched/nohz.rs",
        "self.nohz.next_balance = cx.jiffies() + 1;",
        "self.nohz.next_balance = cx.jiffies();",
    ),
    m("sched/nohz.rs", "if before & flags == flags {", "if before & flags != 0 {"),
    m("sched/nohz.rs", "if before & NOHZ_KICK_MASK == 0 {", "if before == 0 {"),
    m("sched/nohz.rs", "        domain.nohz_idle = idle;\n", "        domain.nohz_idle = !idle;\n"),
    m(
        "sched/nohz.rs",
        "*busy = if idle { *busy - 1 } else { *busy + 1 };",
        "*busy = if idle { *busy + 1 } else { *busy + 1 };",
    ),
    m(
        "sched/nohz.rs",
        "|| cx.jiffies() < self.nohz.next_blocked",
        "|| cx.jiffies() <= self.nohz.next_blocked",
    ),
    m(
        "sched/nohz.rs",
        "if jiffies >= self.sched.rq[cpu].next_balance {",
        "if jiffies > self.sched.rq[cpu].next_balance {",
    ),
    m(
        "sched/nohz.rs",
        "next_balance = next_balance.min(self.sched.rq[cpu].next_balance);",
        "next_balance = self.sched.rq[cpu].next_balance;",
    ),
    m(
        "sched/nohz.rs",
        "iter_wrapping_from(CpuId(this_cpu.0 + 1))",
        "iter_wrapping_from(CpuId(this_cpu.0))",
    ),
    m("sched/nohz.rs", "has_blocked_load |= stats;", "has_blocked_load &= stats;"),
    m(
        "sched/nohz.rs",
        "self.cx.jiffies() <= self.sched.rq[cpu].last_blocked",
        "self.cx.jiffies() < self.sched.rq[cpu].last_blocked",
    ),
    m(
        "sched/nohz.rs",
        "if flags == NOHZ_NEWILB_KICK && !self",
        "if flags & NOHZ_NEWILB_KICK != 0 && !self",
    ),
];

/// Where 6.18 is as 7.3, and where it is not.
pub const LINUX_6_18: &[Mutation] = &[
    m(
        "sched/fair/balance/detach.rs",
        "BalanceDelayed::LoadOnly => cfs.h_nr_runnable,",
        "BalanceDelayed::LoadOnly => cfs.h_nr_queued,",
    ),
    m("sched/nohz.rs", "FindNewIlb::IdleCore if self.has_smt()", "_ if self.has_smt()"),
    m(
        "sched/fair/balance/newidle.rs",
        "let by_time = self.cx.config.newidle_rate == NewidleRate::SuccessAndTime;",
        "let by_time = self.cx.config.newidle_rate != NewidleRate::SuccessAndTime;",
    ),
    m("sched/nohz.rs", "if self.nohz.nr_cpus == 0 {", "if self.nohz.nr_cpus <= 1 {"),
];

/// In the code that only 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &[
    m("sched/fair/balance.rs", ">> 22);", ">> 21);"),
    m(
        "sched/fair/balance.rs",
        "(seldom + sd.newidle_success as u64).min(1024)",
        "(seldom + sd.newidle_success as u64)",
    ),
    m(
        "sched/nohz.rs",
        "idle.iter().find(|cpu| self.is_core_idle(*cpu))",
        "idle.iter().find(|cpu| !self.is_core_idle(*cpu))",
    ),
    m(
        "sched/fair/balance/newidle.rs",
        "self.sched.topology[sd].newidle_ratio == 1024;",
        "self.sched.topology[sd].newidle_ratio == 1023;",
    ),
];
