// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in the queues and timers of the deadline class that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const CLASS: &str = "sched/deadline.rs";
const BANDWIDTH: &str = "sched/deadline/bandwidth.rs";
const MIGRATE: &str = "sched/deadline/migrate.rs";

/// Mutations of the class. Not in it, because nothing can notice them where nobody interferes: what Linux asks again after it
/// has taken a second lock, or while a timer's handler runs elsewhere, and what another question excludes.
pub const DEADLINE_QUEUES: &[Mutation] = &[
    m(
        CLASS,
        "let at = queue.partition_point(|other| !later(other));",
        "let at = queue.partition_point(|other| later(other));",
    ),
    m(
        CLASS,
        "if self.rq[cpu].dl.queue.len() == 1 {\n                self.cpupri",
        "if false {\n                self.cpupri",
    ),
    m(
        CLASS,
        "            self.rd.cpudl.set(cpu, deadline);\n        }\n        self.update",
        "        }\n        self.update",
    ),
    m(CLASS, "self.cpupri_deadline_gone(cpu);", ""),
    m(CLASS, "self.rd.cpudl.clear(cpu);", ""),
    m(
        CLASS,
        "let at = next_period.wrapping_add(now.wrapping_sub(clock));",
        "let at = next_period;",
    ),
    m(CLASS, "if at + 1000 <= now {", "if at <= now {"),
    m(CLASS, "if self.sched.rq[cpu].curr != task && t.dl.queued && t.nr", "if t.dl.queued && t.nr"),
    m(CLASS, "dl.runtime = dl.runtime.min(0);", ""),
    m(
        CLASS,
        "flags & ENQUEUE_RESTORE != 0 || self.sched.tasks[task].on_rq == OnRq::Migrating {\n            self.sched.add",
        "flags & ENQUEUE_RESTORE != 0 {\n            self.sched.add",
    ),
    m(CLASS, "dl.throttled && flags & ENQUEUE_REPLENISH == 0 {", "dl.throttled && flags == 99 {"),
    m(
        CLASS,
        "            if flags & ENQUEUE_WAKEUP != 0 {\n                self.task_contending",
        "            if false {\n                self.task_contending",
    ),
    m(CLASS, "self.sched.tasks[task].dl.update(clock);", ""),
    m(CLASS, "self.sched.tasks[task].dl.setup_new(clock);", ""),
    m(CLASS, "flags & DEQUEUE_SAVE != 0 || self", "flags & DEQUEUE_SAVE == 0 || self"),
    m(
        CLASS,
        "            self.task_non_contending(cpu, task);\n        }\n        self.sched.dequeue",
        "        }\n        self.sched.dequeue",
    ),
    m(CLASS, "} else if !dl.yielded {", "} else {"),
    m(CLASS, "if dl.runtime <= 0 || dl.yielded {", "if dl.runtime < 0 || dl.yielded {"),
    m(CLASS, "if !self.start_dl_timer(cpu, curr) {", "if self.start_dl_timer(cpu, curr) {"),
    m(
        CLASS,
        "if !self.sched.is_leftmost_dl(cpu, DlNode::Task(curr)) {",
        "if self.sched.is_leftmost_dl(cpu, DlNode::Task(curr)) {",
    ),
    m(CLASS, "dl.stranded = dl.throttled;", "dl.throttled = false;"),
    m(
        CLASS,
        "        if !t.dl.throttled {\n            return;\n        }\n        self.sched.update_rq_clock(cpu, &self.cx);\n        if !queued",
        "        self.sched.update_rq_clock(cpu, &self.cx);\n        if !queued",
    ),
    m(CLASS, "self.sched.tasks[task].dl.replenish(clock);\n            return;", "return;"),
    m(
        CLASS,
        "            self.sched.wakeup_preempt_dl(cpu, task, &mut self.cpuidle, &mut self.cx);\n        } else",
        "        } else",
    ),
    m(
        CLASS,
        "        self.push_dl_task(cpu);\n    }\n\n    /// `yield_task_dl",
        "    }\n\n    /// `yield_task_dl",
    ),
    m(CLASS, "self.sched.tasks[curr].dl.yielded = true;", ""),
    m(CLASS, "rq.push_pending |= !rq.dl.pushable.is_empty();", ""),
    m(
        CLASS,
        "if t.dl.queued && t.nr_cpus_allowed > 1 {\n            self.sched.enqueue_pushable_dl_task(cpu, prev",
        "if t.nr_cpus_allowed > 1 {\n            self.sched.enqueue_pushable_dl_task(cpu, prev",
    ),
    m(BANDWIDTH, "if flags & ENQUEUE_MIGRATED != 0 {", "if flags & ENQUEUE_MIGRATED == 0 {"),
    m(
        BANDWIDTH,
        "            self.sched.cancel_inactive_timer(task, &mut self.time, &mut self.cx);\n        } else {",
        "        } else {",
    ),
    m(BANDWIDTH, "zero_lag_in < 0 || self", "zero_lag_in <= 0 || self"),
    m(
        BANDWIDTH,
        "            if in_class {\n                self.sub_running_bw(cpu, task);\n            }",
        "            self.sub_running_bw(cpu, task);",
    ),
    m(BANDWIDTH, "dl.non_contending = true;", ""),
    m(
        BANDWIDTH,
        "            self.sub_running_bw(cpu, task);\n            self.sched.tasks[task].dl.non_contending = false;\n        }\n    }\n\n    /// `migrate",
        "            self.sub_running_bw(cpu, task);\n        }\n    }\n\n    /// `migrate",
    ),
    m(
        BANDWIDTH,
        "        self.sched.sub_rq_bw(cpu, task);\n    }\n\n    /// `switched_from",
        "    }\n\n    /// `switched_from",
    ),
    m(
        BANDWIDTH,
        "        self.sched.tasks[task].dl.non_contending = false;\n        if self.sched.rq[cpu].dl_nr",
        "        if self.sched.rq[cpu].dl_nr",
    ),
    m(
        BANDWIDTH,
        "if self.sched.rq[cpu].dl_nr_running() == 0 {\n            self.pull",
        "if self.sched.rq[cpu].dl_nr_running() != 0 {\n            self.pull",
    ),
    m(BANDWIDTH, "self.rd.dl_bw.total_bw -= dl.dl_bw;", ""),
    m(BANDWIDTH, "None if self.inactive_timer_queued(task, time) => t.dl.dl_bw,", ""),
    m(
        BANDWIDTH,
        "        self.cancel_inactive_timer(task, time, cx);\n        self.update_dl",
        "        self.update_dl",
    ),
    m(
        MIGRATE,
        "list.partition_point(|other| !entity.preempts(&tasks[*other].dl))",
        "list.partition_point(|other| entity.preempts(&tasks[*other].dl))",
    ),
    m(MIGRATE, ">= self.tasks[task].dl.dl_density >> 10", "> self.tasks[task].dl.dl_density >> 10"),
    m(MIGRATE, "later.then_some(cpu)", "Some(cpu)"),
    m(MIGRATE, "if !self.has_asym_cpucapacity() {", "if true {"),
    m(MIGRATE, "*c == t.cpu, u16::MAX - c.0)", "false, u16::MAX - c.0)"),
    m(MIGRATE, "if t.dl.preempts(&c.dl) {", "if !c.dl.preempts(&t.dl) {"),
    m(MIGRATE, "if !curr_stays && !other_moves {", "if !curr_stays {"),
    m(MIGRATE, "&& !self.sched.rq[cpu].need_resched\n", "\n"),
    m(MIGRATE, "&& curr.nr_cpus_allowed > 1\n", "\n"),
    m(
        MIGRATE,
        "if t.class == Class::Deadline && !t.dl.queued {\n            self.pull",
        "if t.class == Class::Deadline {\n            self.pull",
    ),
    m(MIGRATE, "|| self.sched.rq[src].dl_nr_running() <= 1\n", "\n"),
    m(
        MIGRATE,
        "last_pulled.is_some_and(|last| !dl_time_before(deadline, last))\n                || !",
        "!",
    ),
    m(
        MIGRATE,
        "if dl_time_before(deadline, self.sched.tasks[src_curr].dl.deadline) {",
        "if false {",
    ),
    m(
        MIGRATE,
        "if last_pulled.is_some() {\n            self.sched.resched",
        "if false {\n            self.sched.resched",
    ),
    m(MIGRATE, "deadline_of(cpu).unwrap_or(0);", "deadline_of(cpu).unwrap_or(u64::MAX >> 1);"),
];

/// Those of what 6.1 has and later ones have not.
pub const LINUX_6_1: &[Mutation] = &[
    m(
        MIGRATE,
        "let overloaded = queue.len() > 1 && queue",
        "let overloaded = queue.len() > 0 && queue",
    ),
    m(
        MIGRATE,
        "queue.iter().any(may_move);",
        "!queue.iter().all(|node| !may_move(node) && false);",
    ),
    m("sched/core.rs", "Class::Deadline => self.update_curr_dl(cpu),\n", ""),
];

/// Those of what only 7.3 has.
pub const LINUX_7_3: &[Mutation] = &[
    m(MIGRATE, "true if deadline == old_deadline => return,", ""),
    m(
        MIGRATE,
        "=> dl_time_before(old_deadline, deadline),",
        "=> dl_time_before(deadline, old_deadline),",
    ),
    m(CLASS, "{ DEQUEUE_MOVE }", "{ ENQUEUE_RESTORE }"),
    m("sched/syscalls.rs", "            self.wakeup_preempt(cpu, task, 0);", ""),
    m("sched/syscalls.rs", "            self.update_curr_dl(cpu);", ""),
    m("sched/syscalls.rs", "if prio_changes || deadline {", "if prio_changes {"),
];

const SERVER: &str = "sched/fair_server.rs";
const SERVER_7_3: &str = "sched/fair_server/v7_3.rs";

/// Mutations of the fair server. Up to 6.18 a server that stops has run, so one that begins has run, too, or has no runtime.
pub const FAIR_SERVER: &[Mutation] = &[
    m(SERVER, "DL_SERVER_MIN_RES: i64 = 1_000_000", "DL_SERVER_MIN_RES: i64 = 0"),
    m(SERVER, "let passed = self.deadline < clock;", "let passed = self.deadline <= clock;"),
    m(
        SERVER,
        "if !self.defer_running {\n            self.throttled = true;",
        "if self.defer_running {\n            self.throttled = true;",
    ),
    m(SERVER, "if at + 1000 <= clock {", "if at <= clock {"),
    m(SERVER, "if server.dl_runtime != 0 && !server.active {", "if server.dl_runtime != 0 {"),
    m(SERVER, "        if zero_lag < 0 {", "        if zero_lag <= 0 {"),
    m(SERVER, "server.non_contending = true;", ""),
    m(
        SERVER,
        "if server.runtime > 0 {\n            return;",
        "if server.runtime >= 0 {\n            return;",
    ),
    m(
        SERVER,
        "            server.defer_running = false;\n            server.new_period(clock);",
        "            server.new_period(clock);",
    ),
    m(
        SERVER,
        "FairServerForm::V6_12 => self.fair_server_replenish(cpu),",
        "FairServerForm::V6_12 => {}",
    ),
    m(SERVER, "if !self.sched.is_leftmost_dl(cpu, DlNode::FairServer) {", "if false {"),
    m(SERVER, "if self.defer_armed && self.overflows(clock) {", "if self.overflows(clock) {"),
    m(SERVER, "while self.runtime <= 0 {", "while self.runtime < 0 {"),
    m(
        SERVER,
        "        self.throttled = false;\n        if self.defer_armed {",
        "        if self.defer_armed {",
    ),
    m(SERVER, "} else if !self.defer_running && ", "} else if "),
    m(SERVER, "if (clock as i64) < due - DL_SERVER_MIN_RES {", "if (clock as i64) < due {"),
    m(SERVER, "server.defer_running = true;", ""),
    m(SERVER, "        self.push_dl_task(cpu);\n", "\n"),
    m(
        SERVER,
        "curr.class != Class::Deadline || dl_time_before(deadline, curr.dl.deadline)",
        "true",
    ),
    m(
        SERVER,
        "            rq.fair_server.defer_running = false;\n            rq.fair_server.runtime = 0;",
        "            rq.fair_server.runtime = 0;",
    ),
    m(SERVER, "if rq.fair_server.runtime < 0 || delta < 0 {", "if delta < 0 {"),
    m(SERVER, "            Class::Deadline => rq.dl.exec_start_mut(),\n", ""),
];

/// Those of what only 7.3 has.
pub const FAIR_SERVER_7_3: &[Mutation] = &[
    m(SERVER, "if self.defer_running && !passed {", "if !passed {"),
    m(SERVER_7_3, "if rq.fair_server.active {", "if !rq.fair_server.active {"),
    m(SERVER_7_3, "rq.idle_exec_start = rq.clock_task;", ""),
    m(
        SERVER_7_3,
        "        if idle {\n            self.fair_server_stop(cpu);",
        "        if false {\n            self.fair_server_stop(cpu);",
    ),
    m(SERVER, "server.defer_idle &= idle;", ""),
    m(SERVER, "            if server.defer_idle {", "            if false {"),
    m(
        SERVER,
        "                server.runtime = 0;\n                return;",
        "                return;",
    ),
    m(SERVER, "            server.defer_idle = idle;", ""),
];
