// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads events: what a thread does, in the order of the file.
//!
//! An event is recognised by the beginning of its key, in the order of [`NAMES`] (which is rt-app's
//! own: `memrun` is looked for before `mem`, `runtime` before `run`).

use super::json::{Kind, Member, shorten};
use super::model::{BarrierDefinition, Event};
use super::reader::{INT_MAX, Names, Reader, one_of};
use super::task::Timers;
use schedtwin_input::did_you_mean_or;
use schedtwin_types::BlockOp;

/// The meaning of an event key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventName {
    Runtime,
    Run,
    Sleep,
    MemoryRun,
    Memory,
    IoRun,
    Io,
    Lock,
    Unlock,
    Signal,
    Broadcast,
    Wait,
    Sync,
    Barrier,
    Timer,
    Resume,
    Suspend,
    Yield,
    Fork,
    SemaphorePost,
    SemaphoreWait,
}

/// Beginnings of event keys, in the order of matching.
pub(super) const NAMES: [(&str, EventName); 21] = [
    ("runtime", EventName::Runtime),
    ("run", EventName::Run),
    ("sleep", EventName::Sleep),
    ("memrun", EventName::MemoryRun),
    ("mem", EventName::Memory),
    ("iorun", EventName::IoRun),
    ("io", EventName::Io),
    ("lock", EventName::Lock),
    ("unlock", EventName::Unlock),
    ("signal", EventName::Signal),
    ("broad", EventName::Broadcast),
    ("wait", EventName::Wait),
    ("sync", EventName::Sync),
    ("barrier", EventName::Barrier),
    ("timer", EventName::Timer),
    ("resume", EventName::Resume),
    ("suspend", EventName::Suspend),
    ("yield", EventName::Yield),
    ("fork", EventName::Fork),
    ("sem_post", EventName::SemaphorePost),
    ("sem_wait", EventName::SemaphoreWait),
];

/// For messages about missing or unknown events.
pub(super) const HELP: &str = "events are run, runtime, sleep, timer, lock, unlock, wait, signal, broad, sync, barrier, \
                               suspend, resume, sem_post, sem_wait, yield, fork, mem, memrun, iorun, io";

/// The largest request of `io`: one of the kernel's may have 4 MiB at most on usual devices.
const IO_BYTES_MAX: u32 = 4 << 20;
/// The most requests of an `io`.
const IO_COUNT_MAX: u32 = 1000;

/// The name that rt-app gives to what is referred to without a name.
const UNNAMED: &str = "unknown";

/// The facts that events need about their task.
pub(super) struct TaskContext {
    pub name: String,
    pub instances: u32,
    /// The task's own (`unique*`) timers.
    pub timers: Timers,
}

/// The tasks that sleep on a condition and those that wake it, for hints about sleeps without end.
#[derive(Clone, Default)]
pub(super) struct ConditionUse {
    sleeper: Option<String>,
    waker: Option<String>,
}

/// The event that a key begins with.
pub(super) fn kind(key: &str) -> Option<EventName> {
    NAMES.iter().find(|(name, _)| key.starts_with(name)).map(|(_, kind)| *kind)
}

impl Reader {
    pub fn event(
        &mut self,
        member: &Member,
        name: EventName,
        tasks: &Names,
        task: &mut TaskContext,
    ) -> Event {
        match name {
            EventName::Run => Event::Run { us: self.microseconds(member) },
            EventName::Runtime => Event::Runtime { us: self.microseconds(member) },
            EventName::Sleep => Event::Sleep { us: self.microseconds(member) },
            EventName::Memory => {
                self.integer(member, 0..=INT_MAX, "bytes");
                self.pending_event(member, task, "memory-bound work")
            }
            EventName::IoRun => {
                let bytes = self.integer(member, 0..=INT_MAX, "bytes").unwrap_or(0) as u32;
                Event::IoRun { bytes }
            }
            EventName::Io => self.block_io(member),
            EventName::MemoryRun => {
                self.memory_run(member);
                self.pending_event(member, task, "memory-bound work")
            }
            EventName::Lock | EventName::Unlock => {
                let mutex = self.name(member).map_or(0, |name| self.mutexes.intern(name));
                if name == EventName::Lock {
                    Event::Lock { mutex }
                } else {
                    Event::Unlock { mutex }
                }
            }
            EventName::Signal | EventName::Broadcast => {
                let condition = self.name(member).map_or(0, |name| self.waker(name, task));
                if name == EventName::Signal {
                    Event::Signal { condition }
                } else {
                    Event::Broadcast { condition }
                }
            }
            EventName::Wait | EventName::Sync => self.wait(member, name, task),
            EventName::Barrier => self.barrier(member, task),
            EventName::Timer => self.timer(member, task),
            EventName::Resume => {
                let Some(name) = self.name(member) else {
                    return Event::Pending;
                };
                let condition = self.waker(name, task);
                Event::Resume { condition, mutex: self.mutexes.intern(name) }
            }
            EventName::Suspend => {
                let own = task.name.clone();
                let name = match member.value.kind {
                    Kind::Missing => own.as_str(),
                    _ => match self.name(member) {
                        Some(name) => name,
                        None => return Event::Pending,
                    },
                };
                let condition = self.sleeper(name, task);
                Event::Suspend { condition, mutex: self.mutexes.intern(name) }
            }
            EventName::Yield => Event::Yield,
            EventName::Fork => self.fork(member, tasks),
            EventName::SemaphorePost => Event::SemaphorePost {
                semaphore: self.name(member).map_or(0, |name| self.semaphores.intern(name)),
            },
            EventName::SemaphoreWait => Event::SemaphoreWait {
                semaphore: self.name(member).map_or(0, |name| self.semaphores.intern(name)),
            },
        }
    }

    fn microseconds(&mut self, member: &Member) -> u32 {
        self.integer(member, 0..=INT_MAX, "microseconds").unwrap_or(0) as u32
    }

    fn name<'m>(&mut self, member: &'m Member) -> Option<&'m str> {
        self.text(member)
    }

    fn pending_event(&mut self, member: &Member, task: &TaskContext, feature: &str) -> Event {
        let what = format!("\"{}\" of task \"{}\"", shorten(&member.key), shorten(&task.name));
        self.pend(member.key_span.clone(), &what, feature);
        Event::Pending
    }

    /// A condition that somebody wakes.
    fn waker(&mut self, name: &str, task: &TaskContext) -> u32 {
        let at = self.conditions.intern(name);
        self.condition_uses.resize(self.conditions.list.len(), ConditionUse::default());
        self.condition_uses[at as usize].waker.get_or_insert_with(|| task.name.clone());
        at
    }

    /// A condition that somebody sleeps on.
    fn sleeper(&mut self, name: &str, task: &TaskContext) -> u32 {
        let at = self.conditions.intern(name);
        self.condition_uses.resize(self.conditions.list.len(), ConditionUse::default());
        self.condition_uses[at as usize].sleeper.get_or_insert_with(|| task.name.clone());
        at
    }

    /// Hints about conditions with only one side.
    pub fn lint_conditions(&mut self) {
        for at in 0..self.condition_uses.len() {
            let (name, uses) =
                (shorten(&self.conditions.list[at]), self.condition_uses[at].clone());
            match (uses.sleeper, uses.waker) {
                (Some(task), None) => self.notice(format!(
                    "task \"{}\" waits for \"{name}\", which nothing resumes or signals: it sleeps there until the end",
                    shorten(&task)
                )),
                (None, Some(task)) => self.notice(format!(
                    "task \"{}\" resumes or signals \"{name}\", for which nothing waits: it wakes nobody",
                    shorten(&task)
                )),
                _ => {}
            }
        }
    }

    /// The object of an event, whose keys must be known.
    fn arguments<'m>(
        &mut self,
        member: &'m Member,
        known: &[&str],
        example: &str,
    ) -> Option<&'m [Member]> {
        let Kind::Object(inner) = &member.value.kind else {
            self.wrong_kind(member, "an object", Some(format!("as {example}")));
            return None;
        };
        self.no_duplicates(inner, |_| true);
        for argument in inner {
            if !known.contains(&argument.key.as_str()) {
                let help =
                    did_you_mean_or(&argument.key, known.iter().copied(), || Some(one_of(known)));
                let message = format!(
                    "unknown key \"{}\" in \"{}\"",
                    shorten(&argument.key),
                    shorten(&member.key)
                );
                self.fault(argument.key_span.clone(), message, help);
            }
        }
        Some(inner)
    }

    /// A name among the arguments; rt-app calls what is not named "unknown".
    fn argument<'m>(&mut self, arguments: &'m [Member], key: &str, member: &Member) -> &'m str {
        match arguments.iter().find(|argument| argument.key == key) {
            Some(argument) => self.text(argument).unwrap_or(UNNAMED),
            None => {
                self.notice(format!(
                    "\"{}\" names no \"{key}\"; rt-app takes \"{UNNAMED}\"",
                    shorten(&member.key)
                ));
                UNNAMED
            }
        }
    }

    fn wait(&mut self, member: &Member, name: EventName, task: &TaskContext) -> Event {
        let example = "{ \"ref\": \"condition\", \"mutex\": \"mutex\" }";
        let Some(arguments) = self.arguments(member, &["ref", "mutex"], example) else {
            return Event::Pending;
        };
        let condition = self.argument(arguments, "ref", member);
        let mutex = self.argument(arguments, "mutex", member);
        let mutex = self.mutexes.intern(mutex);
        if name == EventName::Sync {
            self.waker(condition, task);
        }
        let condition = self.sleeper(condition, task);
        if name == EventName::Sync {
            Event::Sync { condition, mutex }
        } else {
            Event::Wait { condition, mutex }
        }
    }

    fn barrier(&mut self, member: &Member, task: &TaskContext) -> Event {
        let Some(name) = self.name(member) else {
            return Event::Pending;
        };
        let barrier = self.barrier_names.intern(name);
        if barrier as usize == self.barriers.len() {
            let mutex = self.mutexes.anonymous(format!("mutex of barrier {name}"));
            let condition = self.conditions.anonymous(format!("condition of barrier {name}"));
            self.barriers.push(BarrierDefinition { mutex, condition, users: 0 });
        }
        self.condition_uses.resize(self.conditions.list.len(), ConditionUse::default());
        let users = &mut self.barriers[barrier as usize].users;
        *users = users.saturating_add(task.instances);
        if task.instances == 0 {
            self.notice(format!(
                "task \"{}\" uses barrier \"{}\" but is only forked: rt-app does not count its threads",
                shorten(&task.name),
                shorten(name)
            ));
        }
        Event::Barrier { barrier }
    }

    fn timer(&mut self, member: &Member, task: &mut TaskContext) -> Event {
        const MODES: [&str; 2] = ["relative", "absolute"];
        let example = "{ \"ref\": \"unique\", \"period\": 16000 }";
        let Some(arguments) = self.arguments(member, &["ref", "period", "mode"], example) else {
            return Event::Pending;
        };
        let name = self.argument(arguments, "ref", member);
        let period_us = match arguments.iter().find(|argument| argument.key == "period") {
            Some(period) => self.microseconds(period),
            None => {
                self.notice(format!(
                    "\"{}\" has no \"period\"; rt-app takes 0",
                    shorten(&member.key)
                ));
                0
            }
        };
        let mut absolute = false;
        if let Some(argument) = arguments.iter().find(|argument| argument.key == "mode")
            && let Some(mode) = self.text(argument)
        {
            absolute = mode == "absolute";
            if !MODES.contains(&mode) {
                let help = did_you_mean_or(mode, MODES, || Some(one_of(&MODES)));
                self.fault(
                    argument.value.span.clone(),
                    format!("unknown \"mode\" \"{}\"", shorten(mode)),
                    help,
                );
            }
        }
        let own = name.starts_with("unique");
        let timers = if own { &mut task.timers } else { &mut self.timers };
        Event::Timer { timer: timers.intern(name, absolute), own, period_us }
    }

    fn fork(&mut self, member: &Member, tasks: &Names) -> Event {
        let Some(name) = self.name(member) else {
            return Event::Pending;
        };
        match tasks.get(name) {
            Some(task) => Event::Fork { task },
            None => {
                let help = did_you_mean_or(name, tasks.list.iter().map(String::as_str), || None);
                let message = format!(
                    "\"{}\" names the task \"{}\", which is not there",
                    shorten(&member.key),
                    shorten(name)
                );
                self.fault(member.value.span.clone(), message, help);
                Event::Pending
            }
        }
    }

    /// `io`, which rt-app does not have: requests to a block device.
    fn block_io(&mut self, member: &Member) -> Event {
        const TYPES: [(&str, BlockOp); 3] =
            [("read", BlockOp::Read), ("write", BlockOp::Write), ("flush", BlockOp::Flush)];
        let example = "{ \"type\": \"read\", \"bytes\": 4096, \"count\": 1, \"device\": \"sda\" }";
        let Some(arguments) =
            self.arguments(member, &["type", "bytes", "count", "device"], example)
        else {
            return Event::Pending;
        };
        let (mut op, mut bytes, mut count) = (BlockOp::Read, 4096, 1);
        let mut device = (None, member.key_span.clone());
        for argument in arguments {
            match argument.key.as_str() {
                "type" => {
                    let Some(word) = self.text(argument) else { continue };
                    match TYPES.iter().find(|(known, _)| *known == word) {
                        Some((_, known)) => op = *known,
                        None => self.one_of_words(argument, &TYPES.map(|(word, _)| word)),
                    }
                }
                "bytes" => {
                    let most = i64::from(IO_BYTES_MAX);
                    bytes = self.integer(argument, 1..=most, "bytes").unwrap_or(1) as u32;
                }
                "count" => {
                    let most = i64::from(IO_COUNT_MAX);
                    let what = "a number of requests";
                    count = self.integer(argument, 1..=most, what).unwrap_or(1) as u32;
                }
                "device" => {
                    let name = self.text(argument).map(str::to_owned);
                    device = (name, argument.value.span.clone());
                }
                _ => {}
            }
        }
        self.block_devices.push(device);
        let bytes = if op == BlockOp::Flush { 0 } else { bytes };
        Event::Io { device: self.block_devices.len() as u32 - 1, op, bytes, count }
    }

    fn memory_run(&mut self, member: &Member) {
        const TYPES: [&str; 3] = ["read", "write", "chase"];
        const PATTERNS: [&str; 2] = ["random", "sequential"];
        let known = ["type", "size", "count", "ref", "stride", "pattern"];
        let example = "{ \"type\": \"read\", \"size\": 1048576, \"count\": 1000 }";
        let Some(arguments) = self.arguments(member, &known, example) else {
            return;
        };
        for argument in arguments {
            match argument.key.as_str() {
                "type" => self.one_of_words(argument, &TYPES),
                "pattern" => self.one_of_words(argument, &PATTERNS),
                "size" | "stride" => {
                    self.integer(argument, 1..=INT_MAX, "bytes");
                }
                "count" => {
                    self.integer(argument, 0..=INT_MAX, "a number of accesses");
                }
                "ref" => {
                    self.text(argument);
                }
                _ => {}
            }
        }
        for key in ["type", "size", "count"] {
            if !arguments.iter().any(|argument| argument.key == key) {
                let message = format!("\"{}\" has no \"{key}\"", shorten(&member.key));
                self.fault(member.key_span.clone(), message, Some(format!("as {example}")));
            }
        }
    }

    fn one_of_words(&mut self, argument: &Member, words: &[&str]) {
        if let Some(word) = self.text(argument)
            && !words.contains(&word)
        {
            let help = did_you_mean_or(word, words.iter().copied(), || Some(one_of(words)));
            let message = format!("unknown \"{}\" \"{}\"", argument.key, shorten(word));
            self.fault(argument.value.span.clone(), message, help);
        }
    }
}
