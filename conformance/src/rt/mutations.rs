// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the RT class that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const CLASS: &str = "sched/rt.rs";
const BANDWIDTH: &str = "sched/rt/bandwidth.rs";

/// Mutations of the class. Not in it, because nothing can notice them where nobody interferes: what Linux asks again
/// after it has taken a second lock, and what the same operation takes back.
pub const RT: &[Mutation] = &[
    m(CLASS, "!= DEQUEUE_SAVE\n}", "!= DEQUEUE_MOVE\n}"),
    m(
        CLASS,
        "let at = list.partition_point(|e| e.0 <= prio);",
        "let at = list.partition_point(|e| e.0 < prio);",
    ),
    m(
        CLASS,
        "list.insert(at, (prio, task));\n        if cx.pushable_overloads()",
        "list.insert(at, (prio, task));\n        if !cx.pushable_overloads()",
    ),
    m(CLASS, "if list.is_empty() && cx.pushable", "if list.len() < 2 && cx.pushable"),
    m(
        CLASS,
        "convert_prio(rt.highest_prio());\n    }\n\n    /// `rt_task_fits",
        "CPUPRI_HIGHER;\n    }\n\n    /// `rt_task_fits",
    ),
    m(CLASS, "CPUPRI_HIGHER: i32 = 100", "CPUPRI_HIGHER: i32 = 50"),
    m(CLASS, ">= self.rt_uclamp_min(task, cx) as u64", "> self.rt_uclamp_min(task, cx) as u64"),
    m(CLASS, "self.dequeue_pushable_task(cpu, next, cx);", ""),
    m(
        CLASS,
        "if first {\n            self.rq[cpu].push_pending |=",
        "if !first {\n            self.rq[cpu].push_pending |=",
    ),
    m(
        CLASS,
        "queue.partition_point(|e| e.0 < entry.0)",
        "queue.partition_point(|e| e.0 <= entry.0)",
    ),
    m(
        CLASS,
        "let curr = self.rq[cpu].curr;\n        self.requeue_task_rt(cpu, curr, false);",
        "let curr = self.rq[cpu].curr;\n        self.requeue_task_rt(cpu, curr, true);",
    ),
    m(CLASS, "if prio < curr_prio {", "if prio <= curr_prio {"),
    m(
        CLASS,
        "prio == curr_prio && !self.rq[cpu].need_resched",
        "prio == curr_prio && self.rq[cpu].need_resched",
    ),
    m(CLASS, "self.requeue_task_rt(cpu, task, true);", ""),
    m(CLASS, "level >= own || level > best", "level > own || level > best"),
    m(
        CLASS,
        "if fit && mask.is_empty() { self.lowest_mask(task, false, cx) } else { mask }",
        "mask",
    ),
    m(CLASS, "if mask.contains(task_cpu) {", "if mask.contains(cx.this_cpu) {"),
    m(CLASS, "sd.flags & SD_WAKE_AFFINE != 0 && !within.is_empty()", "!within.is_empty()"),
    m(CLASS, "if near.contains(this) { this } else", "if mask.contains(this) { this } else"),
    m(CLASS, "rt.cursor + 1);", "rt.cursor);"),
    m(
        CLASS,
        "self.tasks[curr].nr_cpus_allowed < 2 || self.tasks[curr].prio <= prio",
        "self.tasks[curr].prio <= prio",
    ),
    m(CLASS, "self.tasks[curr].prio <= prio);", "self.tasks[curr].prio < prio);"),
    m(
        CLASS,
        "Some(target) if !occupied && !self.rt_task_fits_capacity(task, target, cx) => cpu,",
        "",
    ),
    m(CLASS, "if cpu != cx.this_cpu || cx.config.rto_next_cpu == RtoNextCpu::Any {", "if true {"),
    m(CLASS, "self.rd.rto_loop = self.rd.rto_loop_next;\n", "return None;\n"),
    m(CLASS, "self.rd.rto_loop_next += 1;", ""),
    m(CLASS, "if self.rd.rto_cpu.is_none()\n", "if true\n"),
    m(
        CLASS,
        "rt.queue.partition_point(|e| e.0 < prio),",
        "rt.queue.partition_point(|e| e.0 <= prio),",
    ),
    m(CLASS, "(kept.is_none() || rt.queue.is_empty())", "true"),
    m(CLASS, "Some(place) => place,", "Some(place) if place > 9 => place, Some(_) => 0,"),
    m(CLASS, "(move_entity(flags) || rt.queue.is_empty())", "true"),
    m(CLASS, "self.sched.dequeue_pushable_task(cpu, task, &self.cx);\n        true", "true"),
    m(
        CLASS,
        "if queued && self.sched.tasks[prev].nr_cpus_allowed > 1",
        "if self.sched.tasks[prev].nr_cpus_allowed > 1",
    ),
    m(
        CLASS,
        "if self.sched.tasks[curr].policy != Policy::Rr {",
        "if self.sched.tasks[curr].policy == Policy::Rr {",
    ),
    m(CLASS, "t.rr_time_slice = full;", "t.rr_time_slice = full + 1;"),
    m(
        CLASS,
        ".count() > 1 {\n            self.sched.requeue_task_rt(cpu, curr, false);",
        ".count() > 0 {\n            self.sched.requeue_task_rt(cpu, curr, false);",
    ),
    m(
        CLASS,
        "if self.sched.tasks[next].prio < self.sched.tasks[curr].prio {",
        "if self.sched.tasks[next].prio <= self.sched.tasks[curr].prio {",
    ),
    m(CLASS, "self.sched.resched_curr(target, &mut self.cpuidle, &mut self.cx);", ""),
    m(
        CLASS,
        "&& !self.sched.rq[cpu].need_resched\n            && self.sched.tasks[task].nr_cpus_allowed > 1",
        "&& self.sched.tasks[task].nr_cpus_allowed > 1",
    ),
    m(
        CLASS,
        "&& self.sched.tasks[curr].class >= Class::Rt\n",
        "&& self.sched.tasks[curr].class == Class::Rt\n",
    ),
    m(
        CLASS,
        "|| self.sched.tasks[curr].prio <= self.sched.tasks[task].prio);",
        "|| self.sched.tasks[curr].prio < self.sched.tasks[task].prio);",
    ),
    m(
        CLASS,
        "if !on_rt_rq && self.sched.rq[cpu].rt.highest_prio() > self",
        "if !on_rt_rq && self.sched.rq[cpu].rt.highest_prio() >= self",
    ),
    m(CLASS, "others.remove(cpu);\n        if others.is_empty() {", "if others.is_empty() {"),
    m(CLASS, "&& prio >= self.sched.tasks[src_curr].prio\n", "\n"),
    m(CLASS, "== OnRq::Queued && self.sched.rq[cpu].rt.queue.is_empty() {", "== OnRq::Queued {"),
    m(
        CLASS,
        "if old_prio < prio {\n            self.pull_rt_task(cpu);",
        "if old_prio > prio {\n            self.pull_rt_task(cpu);",
    ),
    m(
        CLASS,
        "if prio > self.sched.rq[cpu].rt.highest_prio() {",
        "if prio >= self.sched.rq[cpu].rt.highest_prio() {",
    ),
];

/// Those of what 6.1 has and later ones have not.
pub const LINUX_6_1: &[Mutation] = &[
    m(CLASS, "queue.len() > 1 && migratory()", "queue.len() > 1"),
    m(
        CLASS,
        "self.rd.rto_mask.set(cpu, queue.len() > 1",
        "self.rd.rto_mask.set(cpu, queue.len() > 2",
    ),
    m(
        CLASS,
        "if *rt.throttled { None } else { rt.queue.first().map(|e| e.1) }",
        "rt.queue.first().map(|e| e.1)",
    ),
    m(
        BANDWIDTH,
        "runtime >= cx.config.rt_period || rt.rt_time <= runtime",
        "runtime >= cx.config.rt_period || rt.rt_time < runtime",
    ),
    m(BANDWIDTH, "runtime >= cx.config.rt_period ||", "runtime > cx.config.rt_period ||"),
    m(BANDWIDTH, "self.sub_nr_running(cpu, count);", ""),
    m(
        BANDWIDTH,
        "self.sched.rq[cpu].rt.rt_time += delta;",
        "self.sched.rq[cpu].rt.rt_time = delta;",
    ),
    m(
        BANDWIDTH,
        "if self.sched.rt_runtime_exceeded(cpu, runtime, &self.cx) {\n            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);",
        "if self.sched.rt_runtime_exceeded(cpu, runtime, &self.cx) {",
    ),
    m(BANDWIDTH, "let overrun = (next - expires) / period;", "let overrun = 1;"),
    m(
        BANDWIDTH,
        "RtPeriod { active: !idle, expires: next }",
        "RtPeriod { active: true, expires: next }",
    ),
    m(BANDWIDTH, "if rt.rt_time == 0 && !queued {", "if !queued {"),
    m(BANDWIDTH, "&& rq.rt.rt_time < runtime {", "&& rq.rt.rt_time <= runtime {"),
    m(BANDWIDTH, "idle &= rq.rt.rt_time == 0 && !queued;", "idle &= rq.rt.rt_time == 0;"),
    m(BANDWIDTH, "enqueue = !*rq.rt.throttled;", "enqueue = false;"),
    m(BANDWIDTH, "if count == 0 {\n            return;", "if false {\n            return;"),
    m(BANDWIDTH, "self.sched.add_nr_running(cpu, count);", ""),
    m("sched/core.rs", "== PutPrev::BeforePick\n", "!= PutPrev::BeforePick\n"),
];

/// Where 6.3 differs from 6.1.
pub const LINUX_6_3: &[Mutation] =
    &[m(CLASS, "|| cx.config.rto_next_cpu == RtoNextCpu::Any {", "|| false {")];
