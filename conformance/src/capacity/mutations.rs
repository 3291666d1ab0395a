// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, m};

/// In the code that only releases up to 6.9 pass through.
pub const LINUX_6_1: &[Mutation] = &[
    m(
        "sched/hw_pressure.rs",
        "(self.arch_scale_cpu_capacity(cpu), self.rq[cpu].avg_hw.load_avg)",
        "(self.arch_scale_cpu_capacity(cpu), self.rq[cpu].hw_pressure)",
    ),
    m(
        "sched/fair/balance/capacity.rs",
        "rq.avg_rt.util_avg + rq.avg_dl.util_avg + pressure;",
        "rq.avg_rt.util_avg + rq.avg_dl.util_avg;",
    ),
];

/// In the code that 6.12 passes through.
pub const LINUX_6_12: &[Mutation] = &[
    m(
        "sched/hw_pressure.rs",
        "rq.cpufreq_pressure.max(rq.avg_hw",
        "rq.cpufreq_pressure.min(rq.avg_hw",
    ),
    m("sched/fair/balance/capacity.rs", "|| used >= max {", "|| used > max + 1 {"),
    m(
        "sched/fair/balance/capacity.rs",
        "scale_irq_capacity(max - used, irq, max)",
        "scale_irq_capacity(max - used, used, max)",
    ),
    m(
        "sched/fair/balance/capacity.rs",
        "self.scale_rt_capacity(cpu).max(1);",
        "self.scale_rt_capacity(cpu);",
    ),
    m("sched/fair/balance/capacity.rs", "hz).clamp(1, max);", "hz).clamp(1, max + 1);"),
    m("sched/fair/balance/capacity.rs", "= jiffies + interval;", "= interval;"),
    m("sched/fair/balance/capacity.rs", "flags & SD_OVERLAP != 0", "flags & SD_OVERLAP == 0"),
    m("sched/fair/balance/capacity.rs", "capacity += sum;", "capacity = sum;"),
    m(
        "sched/fair/balance/capacity.rs",
        "min_capacity = min_capacity.min(min);",
        "min_capacity = min;",
    ),
    m(
        "sched/fair/balance/capacity.rs",
        "max_capacity = max_capacity.max(max);",
        "max_capacity = max;",
    ),
    m("sched/fair/balance/capacity.rs", "add(below, below, below);", "add(below, below, 0);"),
    m(
        "sched/fair/balance/capacity.rs",
        "add(below.capacity, below.min_capacity, below.max_capacity);",
        "add(below.capacity, below.capacity, below.max_capacity);",
    ),
];
