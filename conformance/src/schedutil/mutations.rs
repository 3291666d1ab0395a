// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in schedutil that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const GOVERNOR: &str = "cpufreq/schedutil.rs";
const DRIVER: &str = "cpufreq/driver.rs";
const THREAD: &str = "cpufreq/sugov_kthread.rs";
const UTIL: &str = "sched/demand/effective.rs";
const LOAD: &str = "sched/demand/util.rs";
const CLAMP: &str = "sched/demand/uclamp/mod.rs";
const MAX: &str = "sched/demand/uclamp/max.rs";

/// Mutations of the form since 6.8 and of what both share.
pub const SINCE_6_8: &[Mutation] = &[
    m(GOVERNOR, ">= self.freq_update_delay_ns", "> self.freq_update_delay_ns"),
    m(GOVERNOR, "bw_dl > sg.bw_min", "bw_dl >= sg.bw_min"),
    m(GOVERNOR, "<= tick {", "<= tick - 1 {"),
    m(GOVERNOR, "cached_raw_khz: self.sugov.cached_raw_freq,", "cached_raw_khz: raw_khz,"),
    m(GOVERNOR, "|| !self.sched.uclamp_rq_is_capped(cpu, &self.cx))", "|| true)"),
    m(GOVERNOR, "before == highest && demand < before", "false"),
    m(GOVERNOR, "(sg.iowait_boost << 1).min(1024)", "(sg.iowait_boost << 1).min(1023)"),
    m(GOVERNOR, "choice.khz != self.next_freq;", "true;"),
    m(GOVERNOR, "self.last_freq_update_time = time;", ""),
    m(GOVERNOR, "self.need_freq_update = false;", ""),
    m(DRIVER, "if hold && self.sugov_cpus[cpu].util < util_before", "if hold && false"),
    m(
        DRIVER,
        "if hold && self.sugov_cpus[cpu].util < util_before",
        "if self.sugov_cpus[cpu].util < util_before",
    ),
    m(
        DRIVER,
        "(sugov.last_freq_update_time, sugov.next_freq) = (time, raw_khz);",
        "sugov.next_freq = raw_khz;",
    ),
    m(THREAD, "if !sugov.work_in_progress {", "if true {"),
    m(THREAD, "sugov.work_in_progress = true;", ""),
    m(THREAD, "            policy.sugov.work_in_progress = false;", ""),
    m(THREAD, "thread.queued = true;", "thread.queued = thread.call.is_none();"),
    m(THREAD, "(sugov.next_freq, sugov", "(self.cpufreq.policies[index].requested, sugov"),
    m(THREAD, "if khz == policy.cur && khz == policy.requested {", "if false {"),
    m(THREAD, "if khz == policy.cur && khz == policy.requested {", "if khz <= policy.cur {"),
    m(THREAD, "self.cpufreq.cpufreq_driver_target_index(index, khz);", ""),
    m(THREAD, "cpufreq.cpufreq_freq_transition(index, khz, requested_at, sched, cx);", ""),
    m(UTIL, "irq + self.cpu_bw_dl(cpu)).max", "self.cpu_bw_dl(cpu)).max"),
    m(UTIL, "util + (util >> 2)", "util + util / 5"),
    m(UTIL, "=> self.arch_scale_cpu_capacity(hook),", "=> self.arch_scale_cpu_capacity(j),"),
    m(LOAD, "RunnableBoost::On => util = util.max(avg.runnable_avg),", "RunnableBoost::On => {}"),
    m(MAX, "&& util >= max", "&& util > max"),
];

/// Mutations of the form before 6.8.
pub const BEFORE_6_8: &[Mutation] = &[
    m(UTIL, "util + rq.avg_dl.util_avg >= max", "util + rq.avg_dl.util_avg > max"),
    m(UTIL, "util, irq, max) + irq + self", "util, irq, max) + self"),
    m(UTIL, "j_util * max > j_max * util", "j_util * max >= j_max * util"),
    m(
        UTIL,
        "                self.arch_scale_cpu_capacity(j)\n",
        "                self.arch_scale_cpu_capacity(hook)\n",
    ),
    m(UTIL, "|boost| self.uclamp_rq_util_with(cpu, boost, None, cx))", "|boost| boost)"),
    m(UTIL, "HeadroomLast => map_util_perf(util),", "HeadroomLast => util,"),
    m(CLAMP, "util.min(max as u64).max(min as u64)", "util.max(min as u64).min(max as u64)"),
];
