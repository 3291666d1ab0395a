// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, m};

/// In the code that only 5.14 to 5.19 pass through.
pub const MARGIN: &[Mutation] = &[
    m(
        "sched/fair/energy/margin.rs",
        "if self.task_util_est(task) == 0 {",
        "if self.task_util(task) == 0 {",
    ),
    m(
        "sched/fair/energy/margin.rs",
        "} else if spare > max_spare {",
        "} else if spare >= max_spare {",
    ),
    m("sched/fair/energy/margin.rs", "if candidate.is_none() && !prev_fits {", "if !prev_fits {"),
    m("sched/fair/energy/margin.rs", "base_energy += base;", "base_energy = base;"),
    m("sched/fair/energy/margin.rs", "best_delta.min(prev_delta);", "best_delta;"),
    m("sched/fair/energy/margin.rs", "if delta < best_delta {", "if delta <= best_delta {"),
    m(
        "sched/fair/energy/margin.rs",
        "(prev_delta + base_energy) >> 4",
        "(prev_delta + base_energy) >> 3",
    ),
    m("sched/fair/energy/margin.rs", "prev_delta - best_delta > (", "prev_delta - best_delta >= ("),
    m(
        "sched/fair/energy/margin.rs",
        "self.cpu_util(cpu, Some(task), None, false, cx) + self.task_util_est(task)",
        "self.cpu_util(cpu, Some(task), None, false, cx) + self.task_util(task)",
    ),
    m(
        "sched/fair/energy/margin.rs",
        "self.sched_cpu_util_at(cpu, running).min(cpu_cap);",
        "self.sched_cpu_util_at(cpu, running);",
    ),
    m(
        "sched/demand/fits.rs",
        "(self.fits_capacity(clamped, cpu), spare)",
        "(self.fits_capacity(util, cpu), spare)",
    ),
];

/// In the code that 6.1 passes through.
pub const LINUX_6_1: &[Mutation] = &[
    m("sched/fair/energy.rs", "max_frequency * state.power / state.frequency", "state.power"),
    m("sched/fair/energy.rs", "s.frequency >= frequency", "s.frequency > frequency"),
    m("sched/fair/energy.rs", ".cost * sum_util / capacity", ".cost * sum_util / (capacity + 1)"),
    m("sched/demand/effective.rs", "self.rt_gets_all(cpu) || irq >= max", "irq >= max"),
    m("sched/demand/effective.rs", "if util + rq.avg_dl.util_avg >= max {", "if util >= max {"),
    m(
        "sched/demand/effective.rs",
        "self.uclamp_rq_util_with(cpu, util_cfs + rq.avg_rt.util_avg, task, cx);",
        "self.uclamp_rq_util_with(cpu, util_cfs, task, cx);",
    ),
    m(
        "sched/demand/effective.rs",
        "(scale_irq_capacity(util, irq, max) + irq + self.cpu_bw_dl(cpu)).min(max)",
        "(scale_irq_capacity(util, irq, max) + irq).min(max)",
    ),
    m(
        "sched/demand/uclamp/max.rs",
        "Some(own) if self.has_no_say() => own,",
        "Some(own) if !self.has_no_say() => own,",
    ),
];

/// In the code that 6.12 passes through.
pub const LINUX_6_12: &[Mutation] = &[
    m(
        "sched/demand/fits.rs",
        "Wish::Clamps(clamps) => self.util == 0 && clamps.min == 0",
        "Wish::Clamps(clamps) => self.util == 0 || clamps.min == 0",
    ),
    m("sched/demand/fits.rs", "util * 1280 < ", "util * 1280 <= "),
    m(
        "sched/hw_pressure.rs",
        "rq.cpufreq_pressure.max(rq.avg_hw",
        "rq.cpufreq_pressure.min(rq.avg_hw",
    ),
    m("sched/demand/uclamp/max.rs", "(!uncapped && max <= arch)", "(!uncapped && max < arch)"),
    m(
        "sched/demand/uclamp/max.rs",
        "if self.has_no_say() { before }",
        "if self.has_no_say() { task }",
    ),
    m("sched/fair/energy/fits.rs", "MaxSpareCap::MayBeZero => -1,", "MaxSpareCap::MayBeZero => 0,"),
    m(
        "sched/fair/energy/fits.rs",
        "(fits == max_fits && spare > max_spare)",
        "(fits == max_fits && spare >= max_spare)",
    ),
    m("sched/fair/energy/fits.rs", "fits > max_fits ||", "fits < max_fits ||"),
    m("sched/fair/energy/fits.rs", "env.pd_cap += cpu_cap;", "env.pd_cap = cpu_cap;"),
    m(
        "sched/fair/energy/fits.rs",
        "if candidate.is_none() && prev_spare <= none {",
        "if prev_spare <= none {",
    ),
    m("sched/fair/energy/fits.rs", "if prev_spare > none {", "if prev_spare > 0 {"),
    m("sched/fair/energy/fits.rs", "best_delta.min(prev_delta);", "best_delta;"),
    m("sched/fair/energy/fits.rs", "&& max_spare > prev_spare", "&& max_spare >= prev_spare"),
    m("sched/fair/energy/fits.rs", "cpu_cap <= best_actual_cap", "cpu_cap < best_actual_cap"),
    m(
        "sched/fair/energy/fits.rs",
        "if max_fits < best_fits || too_slow",
        "if max_fits <= best_fits || too_slow",
    ),
    m("sched/fair/energy/fits.rs", "&& delta >= best_delta {", "&& delta > best_delta {"),
    m("sched/fair/energy/fits.rs", "if best_fits > prev_fits =>", "if best_fits >= prev_fits =>"),
    m("sched/fair/energy/fits.rs", "best_delta < prev_delta =>", "best_delta <= prev_delta =>"),
    m(
        "sched/fair/energy/fits.rs",
        "best_actual_cap > prev_actual_cap",
        "best_actual_cap >= prev_actual_cap",
    ),
    m("sched/fair/energy/fits.rs", "if irq >= max { max }", "if irq > max { max }"),
    m(
        "sched/fair/energy/fits.rs",
        "env.pd_busy_time = busy.min(env.pd_cap);",
        "env.pd_busy_time = busy;",
    ),
    m(
        "sched/fair/energy/fits.rs",
        "(busy + env.task_busy_time).min(env.pd_cap)",
        "busy + env.task_busy_time",
    ),
    m(
        "sched/fair/energy.rs",
        "let max_util = max_util.min(allowed_cpu_cap);",
        "let max_util = max_util.max(allowed_cpu_cap);",
    ),
    m("sched/fair/energy.rs", "!(pd.skip_inefficiencies && s.inefficient)", "!s.inefficient"),
    m("sched/fair/energy.rs", "s.performance >= max_util", "s.performance > max_util"),
    m("sched/fair/energy.rs", "state.power * 10 /", "state.power * 9 /"),
    m(
        "sched/fair/energy.rs",
        "domain = self.sched.topology.domains[id.0 as usize].parent;",
        "domain = None;",
    ),
    m("sched/root_domain.rs", "if state.cost >= smallest {", "if state.cost > smallest {"),
    m(
        "sched/demand/effective.rs",
        "(irq + self.cpu_bw_dl(cpu)).max(floor)",
        "self.cpu_bw_dl(cpu).max(floor)",
    ),
    m("sched/demand/effective.rs", "scale.min(cap))", "scale.max(cap))"),
    m(
        "sched/demand/effective.rs",
        "let mut util = util_cfs + rq.avg_rt.util_avg + rq.avg_dl.util_avg;",
        "let mut util = util_cfs + rq.avg_rt.util_avg;",
    ),
    m(
        "sched/demand/effective.rs",
        "util = scale_irq_capacity(util, irq, scale) + irq;",
        "util = scale_irq_capacity(util, irq, scale);",
    ),
    m("sched/demand/effective.rs", "util + (util >> 2)", "util + (util >> 3)"),
    m("sched/demand/util.rs", "if on_cpu && dst != Some(cpu) {", "if on_cpu {"),
    m("sched/demand/util.rs", "runnable += own;", "runnable -= own.min(runnable);"),
    m("sched/demand/util.rs", "estimate - estimate.min(own)", "estimate"),
];
