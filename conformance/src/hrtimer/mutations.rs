// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong tokens in hrtimers and the tick that the sequences notice.

use crate::l0::mutate::{Mutation, m};

const HRTIMER: &str = "time/hrtimer.rs";
const TICK: &str = "time/tick_sched.rs";

/// What 6.12 passes through.
pub const LINUX_6_12: &[Mutation] = &[
    m(HRTIMER, "|other| other.expires <= timer.expires", "|other| other.expires < timer.expires"),
    m(
        HRTIMER,
        "if now < expires {\n        return expires;",
        "if now <= expires {\n        return expires;",
    ),
    m(
        HRTIMER,
        "((now - expires) / interval + 1) * interval",
        "((now - expires) / interval) * interval",
    ),
    m(HRTIMER, "if !self.idle_cpu(this) {", "if self.idle_cpu(this) {"),
    m(HRTIMER, "level = sd.parent;", "break;"),
    m(
        HRTIMER,
        "let mut level = self.topology().base[this.index()];",
        "let mut level = self.topology().base[this.index()].filter(|_| false);",
    ),
    m(HRTIMER, "expires < self.timers[target].armed();", "expires <= self.timers[target].armed();"),
    m(HRTIMER, "if sooner { cx.this_cpu } else { target }", "target"),
    m(
        HRTIMER,
        "if last == this && self.time.timers[this].next_timer == Some(kind) {",
        "if false {",
    ),
    m(HRTIMER, "if looked_up {", "if false {"),
    m(HRTIMER, "self.time.timers[cpu].next_timer = None;", ""),
    m(HRTIMER, "if timer.soft_expires > now {", "if timer.soft_expires >= now {"),
    m(HRTIMER, "if timer.soft_expires > now {", "if timer.expires > now {"),
    m(HRTIMER, ".find(|t| t.kind != TimerKind::SchedTick)", ".next()"),
    m(
        TICK,
        "if ts.inidle {\n            ts.got_idle_tick = true;",
        "if !ts.inidle {\n            ts.got_idle_tick = true;",
    ),
    m(TICK, "if !stopped {\n            let next", "{\n            let next"),
    m(
        TICK,
        "let next = hrtimer_forward(expires, now, self.cx.tick_nsec);",
        "let next = expires + self.cx.tick_nsec;",
    ),
    m(
        TICK,
        "let expires = match ts.timer_expires.take() {",
        "let expires = match ts.timer_expires {",
    ),
    m(
        TICK,
        "ts.idle_calls += 1;\n        if expires == 0 {\n            return;\n        }",
        "if expires == 0 {\n            return;\n        }\n        ts.idle_calls += 1;",
    ),
    m(TICK, "if !idle {\n            return;", "if idle {\n            return;"),
    m(
        TICK,
        "ts.last_tick = queued.expect(\"a tick that goes on is queued\");",
        "ts.last_tick = expires;",
    ),
    m(TICK, "ts.next_tick = expires;", ""),
    m(
        TICK,
        "if expires == ts.next_tick && (expires == NEVER || queued == Some(expires)) {",
        "if expires == ts.next_tick {",
    ),
    m(TICK, "self.cpuidle.cpu_mut(cpu).tick.timer_expires = None;", ""),
    m(TICK, "ts.idle_entrytime = now;", ""),
    m(TICK, "self.cpu_mut(cpu).tick.idle_entrytime = cx.local_clock();", ""),
    m(TICK, "if self.wheel.is_none() && !needs_tick {", "if self.wheel.is_none() {"),
    m(TICK, "if needs_tick { basej + 1 }", "if needs_tick { basej + 2 }"),
    m(TICK, "self.next_timer_event(cpu, basej, false)", "self.next_timer_event(cpu, basej, true)"),
    m(TICK, "if next != NEVER && next <= basej + 1 {", "if next != NEVER && next < basej + 1 {"),
    m(
        TICK,
        "if !tick_stopped {\n                return 0;",
        "if tick_stopped {\n                return 0;",
    ),
    m(TICK, "|| marked || tick_stopped {", "|| marked {"),
    m(
        TICK,
        "self.next_timer_event(cpu, cx.jiffies(), true)",
        "self.next_timer_event(cpu, cx.jiffies(), false)",
    ),
    m(TICK, "cx.time_of_jiffy(next).min(timer_expires)", "cx.time_of_jiffy(next)"),
    m(TICK, "if at == NEVER { i64::MAX - uptime }", "if at == NEVER { i64::MAX }"),
    m(
        TICK,
        "let delta_tick_ns = until(self.timers[cpu].armed());",
        "let delta_tick_ns = until(self.timers[cpu].next_event_without_tick());",
    ),
    m(TICK, "ts.timer_expires = Some(next);", ""),
    m(
        TICK,
        "next.min(self.timers[cpu].next_event_without_tick())",
        "next.min(self.timers[cpu].next_event())",
    ),
    m(TICK, "next.min(self.timers[cpu].next_event_without_tick())", "next"),
    m(TICK, "ts.inidle = false;", ""),
    m(TICK, "ts.tick_stopped = false;", ""),
    m(TICK, "        self.timer_clear_idle(cpu);\n        let next", "        let next"),
    m(
        TICK,
        "hrtimer_forward(last, cx.local_clock(), cx.tick_nsec)",
        "hrtimer_forward(last, cx.local_clock(), cx.tick_nsec) + 1",
    ),
];

/// What only 6.1 passes through.
pub const LINUX_6_1: &[Mutation] = &[
    m(
        TICK,
        "        if !self.cx.has_timer_hierarchy() {\n            self.time.timer_clear_idle(cpu);\n        }\n",
        "",
    ),
    m(
        TICK,
        "            if !cx.has_timer_hierarchy() {\n                self.timer_clear_idle(cpu);\n            }\n",
        "",
    ),
    m(TICK, "let marked = !cx.has_timer_hierarchy();", "let marked = false;"),
];

/// What only 7.3 passes through.
pub const LINUX_7_3: &[Mutation] = &[
    m(HRTIMER, "timer.expires <= next.expires", "timer.expires < next.expires"),
    m(HRTIMER, "timer.expires >= previous.expires", "timer.expires > previous.expires"),
    m(HRTIMER, "if cx.config.hrtimer_restart == HrtimerRestart::InPlace =>", "if false =>"),
    m(HRTIMER, "if place == self.queue.len() {", "{"),
    m(
        HRTIMER,
        "if place == self.queue.len() {\n            self.left_armed = armed;",
        "if false {\n            self.left_armed = armed;",
    ),
    m(HRTIMER, "if timer.expires < base.left_armed {", "if timer.expires > base.left_armed {"),
    m(
        HRTIMER,
        "if base.rearm == Rearm::Cached {\n            base.rearm = Rearm::Update;",
        "if base.rearm == Rearm::Cached {",
    ),
    m(
        HRTIMER,
        "std::mem::take(&mut self.rearm) == Rearm::Update",
        "std::mem::take(&mut self.rearm) != Rearm::Done",
    ),
    m(
        HRTIMER,
        "self.rearm = Rearm::Cached;\n        self.next_timer = self.first_kind();",
        "self.rearm = Rearm::Cached;",
    ),
    m(HRTIMER, "self.rearm == Rearm::Cached && local {", "false {"),
    m(HRTIMER, "self.rearm == Rearm::Cached && local {", "self.rearm == Rearm::Cached {"),
    m(
        HRTIMER,
        "        self.next_timer = None;\n        if std::mem::take",
        "        if std::mem::take",
    ),
    m(HRTIMER, "cx.config.hrtimer_target == HrtimerTarget::NohzTarget;", "true;"),
    m(
        HRTIMER,
        "last == this && (!stopped || self.sched.rq(this).need_resched)",
        "last == this && !stopped",
    ),
    m(
        HRTIMER,
        "last == this && (!stopped || self.sched.rq(this).need_resched)",
        "!stopped || self.sched.rq(this).need_resched",
    ),
    m(HRTIMER, "self.next_event().min(self.left_armed)", "self.next_event()"),
];
