// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions as instants: on a track of the CPU that decided, named after kind and rule.
//!
//! `select name, count(*) from slice where category = 'placement' group by name` counts the rules by which tasks
//! were placed. What the kernel looked at are the instant's arguments (`debug.rule`, `debug.candidates[0].util`); their
//! names are those of a record, and tasks have `task` and `task_name`.
//!
//! A need's chain is no instant, and only records have it.

use crate::perfetto_messages::{DebugAnnotation, TrackEvent};
use crate::record::{CandidateLine, InputLine, PickLine, RecordedDecision};
use crate::tasks::Tasks;
use schedtwin_types::{CpuId, TaskId};

/// The arguments of an instant, in their order.
struct Details<'a> {
    tasks: &'a Tasks,
    cpu: CpuId,
    list: Vec<DebugAnnotation>,
}

/// A named detail without a value.
fn named(name: &str) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_string()), ..DebugAnnotation::default() }
}

impl Details<'_> {
    /// Further details of the same CPU, for an element of a list.
    fn nested(&self) -> Details<'_> {
        Details { tasks: self.tasks, cpu: self.cpu, list: Vec::new() }
    }

    fn number(&mut self, name: &str, value: impl Into<u64>) {
        self.list.push(DebugAnnotation { uint_value: Some(value.into()), ..named(name) });
    }

    fn signed(&mut self, name: &str, value: i64) {
        self.list.push(DebugAnnotation { int_value: Some(value), ..named(name) });
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.list.push(DebugAnnotation { bool_value: Some(value), ..named(name) });
    }

    fn text(&mut self, name: &str, value: &str) {
        let string_value = Some(value.to_string());
        self.list.push(DebugAnnotation { string_value, ..named(name) });
    }

    /// A task: its number, and its name beside it.
    fn task(&mut self, name: &str, task: u32) {
        self.number(name, task);
        let comm = self.tasks.comm(TaskId(task), self.cpu);
        self.text(&format!("{name}_name"), &comm);
    }

    fn elements<T>(&mut self, name: &str, of: &[T], fill: impl Fn(&T, &mut Details<'_>)) {
        if of.is_empty() {
            return;
        }
        let element = |one| {
            let mut details = self.nested();
            fill(one, &mut details);
            DebugAnnotation { dict_entries: details.list, ..DebugAnnotation::default() }
        };
        let array_values = of.iter().map(element).collect();
        self.list.push(DebugAnnotation { array_values, ..named(name) });
    }
}

/// Returns the instant of a decision by code on `cpu`.
pub(super) fn instant(
    track_uuid: u64,
    cpu: CpuId,
    decision: &RecordedDecision,
    tasks: &Tasks,
) -> TrackEvent {
    let mut details = Details { tasks, cpu, list: Vec::new() };
    let (kind, rule) = fill(decision, &mut details);
    TrackEvent {
        r#type: Some(super::TYPE_INSTANT),
        track_uuid: Some(track_uuid),
        name: Some(format!("{kind}: {rule}")),
        categories: vec![kind.to_string()],
        debug_annotations: details.list,
        ..TrackEvent::default()
    }
}

/// Fills in the arguments; returns the decision's kind and its rule.
fn fill<'a>(decision: &'a RecordedDecision, to: &mut Details<'_>) -> (&'static str, &'a str) {
    match decision {
        RecordedDecision::Placement { task, prev, chosen, rule, candidates } => {
            to.task("task", *task);
            to.number("prev", *prev);
            to.number("chosen", *chosen);
            to.elements("candidates", candidates, candidate);
            ("placement", rule)
        }
        RecordedDecision::Frequency {
            policy,
            inputs,
            util,
            raw_khz,
            khz,
            previous_khz,
            rule,
            limited_until,
        } => {
            to.number("policy", *policy);
            to.number("khz", *khz);
            to.number("previous_khz", *previous_khz);
            // Refused before anything was looked at.
            if !inputs.is_empty() {
                if let Some(util) = util {
                    to.number("util", *util);
                }
                to.number("raw_khz", *raw_khz);
                to.elements("inputs", inputs, input);
            }
            if let Some(until) = limited_until {
                to.number("limited_until", *until);
            }
            ("frequency", rule)
        }
        RecordedDecision::Idle { state, stop_tick, sleep_length_ns, rule } => {
            to.number("state", *state);
            to.flag("stop_tick", *stop_tick);
            if let Some(ns) = sleep_length_ns {
                to.signed("sleep_length_ns", *ns);
            }
            ("idle", rule)
        }
        RecordedDecision::Balance { dst, src, level, idle, migration, imbalance, moved, rule } => {
            to.number("dst", *dst);
            if let Some(src) = src {
                to.number("src", *src);
            }
            to.number("level", *level);
            to.text("idle", idle);
            to.text("migration", migration);
            to.signed("imbalance", *imbalance);
            to.elements("moved", moved, |task, to| to.task("task", *task));
            ("balance", rule)
        }
        RecordedDecision::Preemption { task, curr, preempt, rule } => {
            to.task("task", *task);
            to.task("curr", *curr);
            to.flag("preempt", *preempt);
            ("preemption", rule)
        }
        RecordedDecision::Pick { prev, next, rule, candidates } => {
            to.task("prev", *prev);
            to.task("next", *next);
            to.elements("candidates", candidates, pick);
            ("pick", rule)
        }
    }
}

fn candidate(candidate: &CandidateLine, to: &mut Details<'_>) {
    let CandidateLine { cpu, role, util, capacity, energy_delta, max_util } = candidate;
    to.number("cpu", *cpu);
    to.text("role", role);
    to.number("util", *util);
    to.number("capacity", *capacity);
    if let Some(energy) = energy_delta {
        to.number("energy_delta", *energy);
    }
    if let Some(util) = max_util {
        to.number("max_util", *util);
    }
}

fn input(input: &InputLine, to: &mut Details<'_>) {
    let InputLine {
        cpu,
        util_avg,
        runnable_avg,
        util_est,
        util_uclamp,
        boost,
        rt,
        dl,
        irq,
        min,
        perf,
    } = *input;
    to.number("cpu", cpu);
    for (name, value) in [
        ("util_avg", util_avg),
        ("runnable_avg", runnable_avg),
        ("util_est", util_est),
        ("boost", boost),
        ("rt", rt),
        ("dl", dl),
        ("irq", irq),
        ("min", min),
        ("perf", perf),
    ] {
        to.number(name, value);
    }
    if let Some(util) = util_uclamp {
        to.number("util_uclamp", util);
    }
}

fn pick(candidate: &PickLine, to: &mut Details<'_>) {
    let PickLine { depth, task, group, picked, curr, lag, deadline, eligible } = *candidate;
    match task {
        Some(task) => to.task("task", task),
        None => to.number("group", group),
    }
    to.number("depth", depth);
    to.flag("picked", picked);
    to.flag("curr", curr);
    to.signed("lag", lag);
    if let Some(deadline) = deadline {
        to.signed("deadline", deadline);
    }
    to.flag("eligible", eligible);
}
