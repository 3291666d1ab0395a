// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens that the states must notice.

use crate::l0::mutate::{Mutation, m};

/// In the code that 6.12 passes through, but for the numbers of groups that `balance-7.3` has.
pub const LINUX_6_12: &[Mutation] = &[
    m(
        "sched/fair/slow_path.rs",
        "if !self.sched.topology[sd].span.intersects(",
        "if self.sched.topology[sd].span.intersects(",
    ),
    m(
        "sched/fair/slow_path.rs",
        "if domain.flags & sd_flag == 0 {",
        "if domain.flags & sd_flag != 0 {",
    ),
    m("sched/fair/slow_path.rs", "if new_cpu == cpu {", "if new_cpu != cpu {"),
    m(
        "sched/fair/slow_path.rs",
        "self.sched.topology[*d].flags & sd_flag != 0",
        "self.sched.topology[*d].flags & sd_flag == 0",
    ),
    m(
        "sched/fair/slow_path.rs",
        "DstGroupStats::AllowedCpus => group.span.and(&self.sched.tasks[task].cpus_mask),",
        "DstGroupStats::AllowedCpus => group.span,",
    ),
    m(
        "sched/fair/slow_path.rs",
        "let own = self.sched.task_running_on_cpu(cpu, task) as u32;",
        "let own = 0;",
    ),
    m(
        "sched/fair/slow_path.rs",
        "nr_running == 0 && self.sched.idle_cpu_without(cpu, task)",
        "nr_running == 0",
    ),
    m(
        "sched/fair/slow_path.rs",
        "avg.last_update_time != 0 && t.on_rq",
        "avg.last_update_time == 0 && t.on_rq",
    ),
    m(
        "sched/fair/slow_path.rs",
        "(rq.curr.is_idle() || rq.curr == task) && !rq.ttwu_pending",
        "(rq.curr.is_idle() || rq.curr == task)",
    ),
    m(
        "sched/fair/slow_path.rs",
        "let Some((local, local_sgs)) = local else { return Some(idlest) };",
        "let (local, local_sgs) = local?;",
    ),
    m(
        "sched/fair/slow_path.rs",
        "numa && idlest_sgs.avg_load + margin >= local_sgs.avg_load",
        "numa && idlest_sgs.avg_load + margin > local_sgs.avg_load",
    ),
    m(
        "sched/fair/slow_path.rs",
        "100 * local_sgs.avg_load <= pct * idlest_sgs.avg_load",
        "100 * local_sgs.avg_load < pct * idlest_sgs.avg_load",
    ),
    m(
        "sched/fair/slow_path.rs",
        "let running = local_sgs.sum_nr_running + 1;",
        "let running = local_sgs.sum_nr_running;",
    ),
    m("sched/fair/slow_path.rs", "domain.imb_numa_nr.min(usable)", "domain.imb_numa_nr"),
    m(
        "sched/fair/slow_path.rs",
        "sgs.idle_cpus > idlest_sgs.idle_cpus\n",
        "sgs.idle_cpus >= idlest_sgs.idle_cpus\n",
    ),
    m(
        "sched/fair/slow_path.rs",
        "sgs.group_util < idlest_sgs.group_util",
        "sgs.group_util <= idlest_sgs.group_util",
    ),
    m(
        "sched/fair/wakeup.rs",
        "sd.flags & SD_WAKE_AFFINE != 0 && sd.span.contains(prev)",
        "sd.flags & SD_WAKE_AFFINE != 0",
    ),
    m(
        "sched/fair/wakeup.rs",
        "                slow = None;\n                break;",
        "                break;",
    ),
    m("sched/fair/wakeup.rs", "} else if !want_affine {", "} else if want_affine {"),
    m(
        "sched/fair/wakeup.rs",
        "            && self.sched.tasks[task].cpus_mask.contains(cpu);",
        ";",
    ),
    m("sched/fair/wakeup.rs", "ask_eas = !self.sched.is_rd_overutilized();", "ask_eas = true;"),
    m(
        "sched/fair/wakeup.rs",
        "wake_flags & WF_SYNC != 0 && !self.sched.tasks[current].exiting;",
        "wake_flags & WF_SYNC != 0;",
    ),
    m(
        "sched/fair/wakeup/affine.rs",
        "if jiffies > *decay_ts + hz {",
        "if jiffies >= *decay_ts + hz {",
    ),
    m("sched/fair/wakeup/affine.rs", "*flips >>= 1;", "*flips >>= 2;"),
    m("sched/fair/wakeup/affine.rs", "if *last_wakee != task {", "if *last_wakee == task {"),
    m("sched/fair/wakeup/affine.rs", "!(slave < factor ||", "!(slave <= factor ||"),
    m(
        "sched/fair/wakeup/affine.rs",
        "(master as u64) < slave as u64 * factor as u64",
        "(master as u64) <= slave as u64 * factor as u64",
    ),
    m("sched/fair/load_avg.rs", "load.saturating_sub(self.task_h_load(task, cx))", "load"),
    m(
        "sched/fair/load_avg.rs",
        "runnable.saturating_sub(self.se[self.tasks[task].se].avg.runnable_avg)",
        "runnable",
    ),
    m(
        "sched/fair/load_avg.rs",
        "self.tasks[task].cpu != cpu || self.se",
        "self.tasks[task].cpu != cpu && self.se",
    ),
];
