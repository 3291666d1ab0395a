// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions as instants: on a track of the CPU that decided, named after kind and rule.
//!
//! `select name, count(*) from slice where category = 'placement' group by name` counts the rules by which tasks
//! were placed. What the kernel looked at are the instant's arguments (`debug.rule`, `debug.candidates[0].util`); their
//! names are those of a record, and tasks have `task` and `task_name`.
//!
//! Names and texts stand in the trace once (`InternedData`), and instants have their numbers: a decision takes a third of the bytes.
//!
//! A need's chain is no instant, and only records have it.

use crate::record::{CandidateLine, InputLine, PickLine, RecordedDecision};
use crate::tasks::Tasks;
use crate::wire::Buffer;
use schedtwin_types::{CpuId, Ns, TaskId};

/// `SEQ_NEEDS_INCREMENTAL_STATE`: a packet that refers to interned data.
const NEEDS_STATE: u64 = 2;

/// Declares the names of arguments; each is known in a trace by its place in the list, from 1 on.
macro_rules! names {
    ($($name:ident $text:literal,)*) => {
        /// The name of an argument.
        #[derive(Clone, Copy)]
        enum Argument { $($name),* }

        impl Argument {
            const TEXTS: &[&str] = &[$($text),*];
        }
    };
}

names! {
    Boost "boost", Candidates "candidates", Capacity "capacity", Chosen "chosen", Cpu "cpu", Curr "curr",
    CurrName "curr_name", Deadline "deadline", Depth "depth", Dl "dl", Dst "dst", Eligible "eligible",
    EnergyDelta "energy_delta", Group "group", Idle "idle", Imbalance "imbalance", Inputs "inputs", Irq "irq",
    Khz "khz", Lag "lag", Level "level", LimitedUntil "limited_until", MaxUtil "max_util", Migration "migration",
    Min "min", Moved "moved", Next "next", NextName "next_name", Perf "perf", Picked "picked", Policy "policy",
    Preempt "preempt", Prev "prev", PrevName "prev_name", PreviousKhz "previous_khz", RawKhz "raw_khz", Role "role",
    Rt "rt", RunnableAvg "runnable_avg", SleepLengthNs "sleep_length_ns", Src "src", State "state",
    StopTick "stop_tick", Task "task", TaskName "task_name", Util "util", UtilAvg "util_avg", UtilEst "util_est",
    UtilUclamp "util_uclamp", Max "max", TickRule "tick_rule",
}

/// The kinds of decisions: categories of instants, known by their places from 1 on.
const KINDS: [&str; 6] = ["placement", "frequency", "idle", "balance", "preemption", "pick"];

/// Texts that stand in the trace by now, each known by its place, from 1 on.
#[derive(Default)]
struct Texts(Vec<(usize, String)>);

impl Texts {
    /// The number of `text`, which belongs to `of`; a new one is passed to `tell`.
    fn number(&mut self, of: usize, text: &str, tell: impl FnOnce(u64)) -> u64 {
        let known = self.0.iter().position(|(owner, known)| *owner == of && known == text);
        let at = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push((of, text.to_string()));
            tell(at as u64 + 1);
        }
        at as u64 + 1
    }
}

/// Texts that decisions have written so far, and their buffers.
#[derive(Default)]
pub(super) struct Decisions {
    /// Rules, by the number of their kind.
    rules: Texts,
    texts: Texts,
    /// New entries of [`Decisions::texts`] and others, as fields of `InternedData`.
    new: Buffer,
    event: Buffer,
}

/// Fields of `InternedData`.
mod interned {
    pub(super) const CATEGORIES: u8 = 1;
    pub(super) const EVENT_NAMES: u8 = 2;
    pub(super) const ARGUMENT_NAMES: u8 = 3;
    pub(super) const TEXTS: u8 = 29;
}

/// Appends a number with its text, an entry of field `field` of `InternedData`.
fn intern(to: &mut Buffer, field: u8, number: u64, text: &str) {
    let tag = u64::from(field) << 3 | 2;
    to.append(|space| space.varint(tag));
    let start = to.long_message_begins();
    to.append(|space| space.uint(1, number));
    to.bytes(2, text.as_bytes());
    to.long_message_ended(start);
}

impl Decisions {
    /// Appends the packet of a decision by code on `cpu` to `packets`, on the sequence of that number.
    pub(super) fn write(
        &mut self,
        (at, cpu, sequence): (Ns, CpuId, u32),
        track_uuid: u64,
        decision: &RecordedDecision,
        (tasks, packets): (&Tasks, &mut Buffer),
    ) {
        self.new.clear();
        self.event.clear();
        if self.rules.0.is_empty() {
            for (number, kind) in (1..).zip(KINDS) {
                intern(&mut self.new, interned::CATEGORIES, number, kind);
            }
            for (number, name) in (1..).zip(Argument::TEXTS) {
                intern(&mut self.new, interned::ARGUMENT_NAMES, number, name);
            }
        }
        let Decisions { rules, texts, new, event } = self;
        let (kind, rule) = kind_and_rule(decision);
        let name = rules.number(kind, rule, |number| {
            let name = format!("{}: {rule}", KINDS[kind]);
            intern(new, interned::EVENT_NAMES, number, &name);
        });
        event.append(|space| {
            space.uint(3, kind as u64 + 1);
            space.uint(9, super::TYPE_INSTANT as u64);
            space.uint(10, name);
            space.uint(11, track_uuid);
        });
        fill(decision, &mut Details { tasks, cpu, tag: 4, texts, new, event });
        packets.append(|space| space.raw([1 << 3 | 2]));
        let start = packets.long_message_begins();
        packets.append(|space| {
            space.uint(8, at);
            space.uint(10, u64::from(sequence));
            space.uint(13, NEEDS_STATE);
        });
        if self.new.len() > 0 {
            packets.bytes(12, self.new.as_bytes());
        }
        packets.bytes(11, self.event.as_bytes());
        packets.long_message_ended(start);
    }
}

/// The arguments of an instant, or those of an element of a list, in their order.
struct Details<'a> {
    tasks: &'a Tasks,
    cpu: CpuId,
    /// The field that an argument is.
    tag: u8,
    texts: &'a mut Texts,
    new: &'a mut Buffer,
    event: &'a mut Buffer,
}

impl Details<'_> {
    /// An argument with a number in field `field`.
    #[inline]
    fn value(&mut self, name: Argument, field: u8, value: u64) {
        let start = self.event.len() + 1;
        let tag = self.tag << 3 | 2;
        self.event.append(|space| {
            space.raw([tag, 0]);
            space.uint(1, name as u64 + 1);
            space.varint(u64::from(field) << 3);
            space.varint(value);
        });
        self.event.message_ends(start);
    }

    fn number(&mut self, name: Argument, value: impl Into<u64>) {
        self.value(name, 3, value.into());
    }

    fn signed(&mut self, name: Argument, value: i64) {
        self.value(name, 4, value as u64);
    }

    fn flag(&mut self, name: Argument, value: bool) {
        self.value(name, 2, u64::from(value));
    }

    fn text(&mut self, name: Argument, value: &str) {
        let new = &mut *self.new;
        let tell = |number| intern(new, interned::TEXTS, number, value);
        let number = self.texts.number(0, value, tell);
        self.value(name, 17, number);
    }

    /// A task: its number, and its name beside it.
    fn task(&mut self, (name, of_name): (Argument, Argument), task: u32) {
        self.number(name, task);
        let comm = self.tasks.comm(TaskId(task), self.cpu);
        self.text(of_name, &comm);
    }

    fn elements<T>(&mut self, name: Argument, of: &[T], fill: impl Fn(&T, &mut Details<'_>)) {
        if of.is_empty() {
            return;
        }
        let tag = self.tag << 3 | 2;
        self.event.append(|space| space.raw([tag]));
        let list = self.event.long_message_begins();
        self.event.append(|space| space.uint(1, name as u64 + 1));
        for one in of {
            self.event.append(|space| space.raw([12 << 3 | 2]));
            let element = self.event.long_message_begins();
            let Details { tasks, cpu, .. } = *self;
            let (texts, new, event) = (&mut *self.texts, &mut *self.new, &mut *self.event);
            fill(one, &mut Details { tasks, cpu, tag: 11, texts, new, event });
            self.event.long_message_ended(element);
        }
        self.event.long_message_ended(list);
    }
}

/// The number of a decision's kind, and its rule.
fn kind_and_rule(decision: &RecordedDecision) -> (usize, &str) {
    match decision {
        RecordedDecision::Placement { rule, .. } => (0, rule),
        RecordedDecision::Frequency { rule, .. } => (1, rule),
        RecordedDecision::Idle { rule, .. } => (2, rule),
        RecordedDecision::Balance { rule, .. } => (3, rule),
        RecordedDecision::Preemption { rule, .. } => (4, rule),
        RecordedDecision::Pick { rule, .. } => (5, rule),
    }
}

const TASK: (Argument, Argument) = (Argument::Task, Argument::TaskName);
const CURR: (Argument, Argument) = (Argument::Curr, Argument::CurrName);

/// Fills in the arguments.
fn fill(decision: &RecordedDecision, to: &mut Details<'_>) {
    match decision {
        RecordedDecision::Placement { task, prev, chosen, candidates, .. } => {
            to.task(TASK, *task);
            to.number(Argument::Prev, *prev);
            to.number(Argument::Chosen, *chosen);
            to.elements(Argument::Candidates, candidates, candidate);
        }
        RecordedDecision::Frequency {
            policy,
            inputs,
            util,
            raw_khz,
            khz,
            previous_khz,
            limited_until,
            ..
        } => {
            to.number(Argument::Policy, *policy);
            to.number(Argument::Khz, *khz);
            to.number(Argument::PreviousKhz, *previous_khz);
            // Refused before anything was looked at.
            if !inputs.is_empty() {
                if let Some(util) = util {
                    to.number(Argument::Util, *util);
                }
                to.number(Argument::RawKhz, *raw_khz);
                to.elements(Argument::Inputs, inputs, input);
            }
            if let Some(until) = limited_until {
                to.number(Argument::LimitedUntil, *until);
            }
        }
        RecordedDecision::Idle { state, stop_tick, sleep_length_ns, tick_rule, .. } => {
            to.number(Argument::State, *state);
            to.flag(Argument::StopTick, *stop_tick);
            if let Some(rule) = tick_rule {
                to.text(Argument::TickRule, rule);
            }
            if let Some(ns) = sleep_length_ns {
                to.signed(Argument::SleepLengthNs, *ns);
            }
        }
        RecordedDecision::Balance {
            dst, src, level, idle, migration, imbalance, moved, ..
        } => {
            to.number(Argument::Dst, *dst);
            if let Some(src) = src {
                to.number(Argument::Src, *src);
            }
            to.number(Argument::Level, *level);
            to.text(Argument::Idle, idle);
            to.text(Argument::Migration, migration);
            to.signed(Argument::Imbalance, *imbalance);
            to.elements(Argument::Moved, moved, |task, to| to.task(TASK, *task));
        }
        RecordedDecision::Preemption { task, curr, preempt, .. } => {
            to.task(TASK, *task);
            to.task(CURR, *curr);
            to.flag(Argument::Preempt, *preempt);
        }
        RecordedDecision::Pick { prev, next, candidates, .. } => {
            to.task((Argument::Prev, Argument::PrevName), *prev);
            to.task((Argument::Next, Argument::NextName), *next);
            to.elements(Argument::Candidates, candidates, pick);
        }
    }
}

fn candidate(candidate: &CandidateLine, to: &mut Details<'_>) {
    let CandidateLine { cpu, role, util, capacity, energy_delta, max_util } = candidate;
    to.number(Argument::Cpu, *cpu);
    to.text(Argument::Role, role);
    to.number(Argument::Util, *util);
    to.number(Argument::Capacity, *capacity);
    if let Some(energy) = energy_delta {
        to.number(Argument::EnergyDelta, *energy);
    }
    if let Some(util) = max_util {
        to.number(Argument::MaxUtil, *util);
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
        max,
        perf,
    } = *input;
    to.number(Argument::Cpu, cpu);
    for (name, value) in [
        (Argument::UtilAvg, util_avg),
        (Argument::RunnableAvg, runnable_avg),
        (Argument::UtilEst, util_est),
        (Argument::Boost, boost),
        (Argument::Rt, rt),
        (Argument::Dl, dl),
        (Argument::Irq, irq),
        (Argument::Min, min),
        (Argument::Perf, perf),
    ] {
        to.number(name, value);
    }
    for (name, value) in [(Argument::UtilUclamp, util_uclamp), (Argument::Max, max)] {
        if let Some(value) = value {
            to.number(name, value);
        }
    }
}

fn pick(candidate: &PickLine, to: &mut Details<'_>) {
    let PickLine { depth, task, group, picked, curr, lag, deadline, eligible } = *candidate;
    match task {
        Some(task) => to.task(TASK, task),
        None => to.number(Argument::Group, group),
    }
    to.number(Argument::Depth, depth);
    to.flag(Argument::Picked, picked);
    to.flag(Argument::Curr, curr);
    to.signed(Argument::Lag, lag);
    if let Some(deadline) = deadline {
        to.signed(Argument::Deadline, deadline);
    }
    to.flag(Argument::Eligible, eligible);
}
