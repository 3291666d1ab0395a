// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads `tasks`: threads, phases and their scheduling properties.
//!
//! Properties come at two levels. Those of a task hold from its start (absent ones take defaults),
//! those of a phase are applied at the beginning of each of its iterations (absent ones change
//! nothing). A task without `phases` is its own only phase, and its properties count once, as the
//! task's.
//!
//! | key | task | phase |
//! |---|---|---|
//! | `loop` | repetitions of all phases, -1 (default) for ever; without phases as a phase's, but for ever if absent | repetitions, default 1 |
//! | `policy`, `priority` | default `default_policy`; nice 0 or priority 10 | unchanged |
//! | `cpus` | all CPUs | the task's |
//! | `dl-runtime` | custom slice of a fair task (Linux 6.12 and later), default 0 | 0 if the phase sets policy or priority, else unchanged |
//! | `dl-runtime`, `dl-period`, `dl-deadline` | the reservation under SCHED_DEADLINE: to be given, as long as the runtime, as long as the period | all anew, if the phase gives anything |

use super::event::{self, TaskContext};
use super::json::{Kind, Member, shorten};
use super::model::{Attributes, CpuList, Loops, Phase, PolicyName, Task, TimerDefinition};
use super::numbers::{OFFERED, TaskNumbers};
use super::reader::{INT_MAX, Names, Reader, one_of};
use crate::MAX_THREADS;
use schedtwin_input::did_you_mean_or;
use schedtwin_types::{CpuId, CpuMask, DlReservation, MAX_CPUS};
use std::collections::BTreeMap;
use std::ops::Range;

/// Keys of a task.
const TASK_KEYS: &[&str] = &[
    "instance",
    "delay",
    "loop",
    "phases",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "runtime",
    "period",
    "deadline",
    "cpus",
    "nodes_membind",
    "taskgroup",
    "util_min",
    "util_max",
];
/// Keys of a phase, besides its events.
const PHASE_KEYS: &[&str] = &[
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "cpus",
    "nodes_membind",
    "taskgroup",
    "util_min",
    "util_max",
];
/// Keys that only rt-app before its language of events (2014) knew.
const OLD_KEYS: [&str; 2] = ["exec", "lock_order"];
/// The longest name of a task: rt-app calls a log file after it.
const MAX_NAME_BYTES: usize = 255;
/// rt-app's bound on task groups.
const MAX_TASK_GROUPS: usize = 32;
/// A bound of ours: each level costs a run queue per CPU.
const MAX_TASK_GROUP_LEVELS: usize = 16;
/// Default real-time priority.
const DEFAULT_RT_PRIORITY: i64 = 10;

/// Timers by name.
#[derive(Default)]
pub(super) struct Timers {
    names: Names,
    pub list: Vec<TimerDefinition>,
}

impl Timers {
    /// The timer of this name; `absolute` sticks.
    pub fn intern(&mut self, name: &str, absolute: bool) -> u32 {
        let at = self.names.intern(name);
        if at as usize == self.list.len() {
            self.list.push(TimerDefinition { absolute: false });
        }
        self.list[at as usize].absolute |= absolute;
        at
    }
}

/// The scheduling properties of a task or a phase as they are written.
#[derive(Default)]
struct Properties {
    loops: Option<Loops>,
    policy: Option<(PolicyName, Range<usize>)>,
    priority: Option<(i64, Range<usize>)>,
    /// `dl-runtime`.
    slice_us: Option<u32>,
    /// `dl-period` and `dl-deadline`.
    dl_us: [Option<u32>; 2],
    /// `util_min`, `util_max`; −1 is none.
    clamps: [Option<u16>; 2],
    cpus: Option<CpuList>,
    /// The group's number, and its place.
    task_group: Option<(u32, Range<usize>)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Task { has_phases: bool },
    Phase,
}

impl Reader {
    pub fn tasks(&mut self, members: &[Member], section: &Range<usize>) -> Vec<Task> {
        if members.is_empty() {
            self.fault(section.clone(), "\"tasks\" is empty: there is nothing to run", None);
            return Vec::new();
        }
        let names = self.task_names(members);
        let mut instances = Vec::with_capacity(members.len());
        let mut threads: u64 = 0;
        for (at, member) in members.iter().enumerate() {
            self.numbers.push(TaskNumbers::new(&names.list[at], member.value.span.start + 1));
            self.task_at = Some(at);
            let Kind::Object(inner) = &member.value.kind else {
                instances.push(1);
                continue;
            };
            let given = inner.iter().find(|m| m.key == "instance");
            let count = match given {
                Some(given) => self.offered(given).unwrap_or(1),
                None => 1,
            };
            let before = threads;
            threads += count as u64;
            if threads > MAX_THREADS as u64 && before <= MAX_THREADS as u64 {
                let span = given.map_or(member.key_span.clone(), |g| g.value.span.clone());
                let message = format!(
                    "the tasks up to \"{}\" make {threads} threads, more than {MAX_THREADS}",
                    shorten(&member.key)
                );
                self.fault(span, message, Some("lower \"instance\"".to_owned()));
            }
            instances.push(count.min(MAX_THREADS as i64) as u32);
        }
        let tasks: Vec<Task> = members
            .iter()
            .enumerate()
            .filter_map(|(at, member)| self.task(member, &names, at, instances[at]))
            .collect();
        self.task_at = None;
        if threads == 0 {
            self.fault(
                section.clone(),
                "no thread would ever start: every task has \"instance\": 0",
                Some("give at least one task an instance".to_owned()),
            );
        }
        self.lint_conditions();
        tasks
    }

    /// Each task's own name; a repeated name gets a number, as `workgen` gives it one.
    fn task_names(&mut self, members: &[Member]) -> Names {
        let mut names = Names::default();
        // Per name: the number that the next one of that name tries first, so that thousands of equal names stay cheap.
        let mut next_number: BTreeMap<&str, u32> = BTreeMap::new();
        for member in members {
            if member.key.is_empty() {
                self.fault(member.key_span.clone(), "a task must have a name", None);
            }
            if member.key.len() > MAX_NAME_BYTES {
                let message = format!("a task's name of more than {MAX_NAME_BYTES} bytes");
                self.fault(member.key_span.clone(), message, None);
            }
            let mut name = member.key.clone();
            let number = next_number.entry(&member.key).or_insert(1);
            while names.get(&name).is_some() {
                name = format!("{}{number}", member.key);
                *number += 1;
            }
            if name != member.key {
                self.notice(format!(
                    "there is more than one task \"{}\"; a later one is called \"{name}\"",
                    shorten(&member.key)
                ));
            }
            names.intern(&name);
        }
        names
    }

    fn task(
        &mut self,
        member: &Member,
        names: &Names,
        index: usize,
        instances: u32,
    ) -> Option<Task> {
        let name = names.list[index].clone();
        self.task_at = Some(index);
        let inner = self.object(member)?;
        if let Some(old) = old_key(inner) {
            let message = format!(
                "task \"{}\" is written in the language of rt-app before 2014 (\"{}\"), without events",
                shorten(&name),
                old.key
            );
            let help =
                "rewrite it with events: \"run\", \"sleep\", \"timer\", \"lock\", \"wait\", ..."
                    .to_owned();
            self.fault(old.key_span.clone(), message, Some(help));
            return None;
        }
        let phases_member = inner.iter().find(|m| m.key == "phases");
        let has_phases = phases_member.is_some();
        self.no_duplicates(inner, |key| TASK_KEYS.contains(&key) && event::kind(key).is_none());
        let properties = self.properties(inner, Level::Task { has_phases }, &name);
        let delay_us = match inner.iter().find(|m| m.key == "delay") {
            Some(delay) => self.integer(delay, 0..=INT_MAX, "microseconds").unwrap_or(0) as u32,
            None => 0,
        };
        let mut context = TaskContext { name: name.clone(), instances, timers: Timers::default() };

        let policy = properties.policy.as_ref().map_or(self.default_policy, |(policy, _)| *policy);
        let policy_span =
            properties.policy.as_ref().map_or(member.key_span.clone(), |(_, span)| span.clone());
        self.check_task_group(&properties, policy, &name);
        let priority = self.priority(&properties, policy);
        let attributes = Attributes {
            policy,
            priority: Some(priority),
            slice_us: Some(properties.slice_us.unwrap_or(0)),
            clamps: properties.clamps,
            dl: self.reservation(&properties, policy, &policy_span, &name),
        };
        let mut deadline_at = (policy == PolicyName::Deadline).then_some(policy_span);

        let mut phases = Vec::new();
        let loops;
        if let Some(phases_member) = phases_member {
            let list = self.object(phases_member).unwrap_or_default();
            if list.is_empty() && matches!(phases_member.value.kind, Kind::Object(_)) {
                let message = format!("task \"{}\" has no phase", shorten(&name));
                self.fault(phases_member.key_span.clone(), message, None);
            }
            let mut current = policy;
            for phase in list {
                let Some(inner) = self.object(phase) else {
                    continue;
                };
                self.within = format!("{}/", phase.key);
                phases.extend(self.phase(phase, inner, &mut current, names, &mut context));
                self.within.clear();
                if current == PolicyName::Deadline && deadline_at.is_none() {
                    deadline_at = Some(phase.key_span.clone());
                }
            }
            loops = properties.loops.unwrap_or(Loops::Forever);
        } else {
            let events = self.events(inner, names, &mut context);
            if events.is_empty() {
                let message = format!(
                    "task \"{}\" has no event: its threads would do nothing",
                    shorten(&name)
                );
                self.fault(member.key_span.clone(), message, Some(event::HELP.to_owned()));
            }
            let phase_loops = properties.loops.unwrap_or(Loops::Times(1));
            loops = if properties.loops.is_some() { Loops::Times(1) } else { Loops::Forever };
            let (cpus, task_group, attributes) = (None, None, None);
            phases.push(Phase { loops: phase_loops, cpus, task_group, attributes, events });
        }
        Some(Task {
            name,
            instances,
            delay_us,
            loops,
            timers: context.timers.list,
            cpus: properties.cpus,
            task_group: properties.task_group.map(|(number, _)| number),
            attributes,
            deadline_at,
            phases,
        })
    }

    fn phase(
        &mut self,
        member: &Member,
        inner: &[Member],
        current: &mut PolicyName,
        names: &Names,
        context: &mut TaskContext,
    ) -> Option<Phase> {
        let owner = format!("{}/{}", context.name, member.key);
        self.no_duplicates(inner, |key| PHASE_KEYS.contains(&key));
        let properties = self.properties(inner, Level::Phase, &owner);
        let events = self.events(inner, names, context);
        if events.is_empty() {
            let message = format!("phase \"{}\" has no event", shorten(&member.key));
            self.fault(member.key_span.clone(), message, Some(event::HELP.to_owned()));
            return None;
        }
        if let Some((policy, _)) = &properties.policy {
            *current = *policy;
        }
        self.check_task_group(&properties, *current, &owner);
        let changes = properties.slice_us.is_some()
            || properties.dl_us != [None, None]
            || properties.clamps != [None, None];
        let named = properties.policy.is_some() || properties.priority.is_some();
        let at = properties.policy.as_ref().map_or(&member.key_span, |(_, span)| span);
        let dl = match named || changes {
            true => self.reservation(&properties, *current, at, &owner),
            false => DlReservation::default(),
        };
        let attributes = if named {
            let priority = Some(self.priority(&properties, *current));
            Some(Attributes {
                policy: *current,
                priority,
                slice_us: Some(properties.slice_us.unwrap_or(0)),
                clamps: properties.clamps,
                dl,
            })
        } else {
            changes.then_some(Attributes {
                policy: *current,
                priority: None,
                slice_us: properties.slice_us,
                clamps: properties.clamps,
                dl,
            })
        };
        Some(Phase {
            loops: properties.loops.unwrap_or(Loops::Times(1)),
            cpus: properties.cpus,
            task_group: properties.task_group.map(|(number, _)| number),
            attributes,
            events,
        })
    }

    fn events(
        &mut self,
        members: &[Member],
        names: &Names,
        context: &mut TaskContext,
    ) -> Vec<super::model::Event> {
        members
            .iter()
            .filter_map(|m| event::kind(&m.key).map(|kind| (m, kind)))
            .map(|(m, kind)| {
                let outer = self.within.len();
                if let Kind::Object(_) = m.value.kind {
                    self.within.push_str(&format!("{}.", m.key));
                }
                let event = self.event(m, kind, names, context);
                self.within.truncate(outer);
                event
            })
            .collect()
    }

    /// A number of [`OFFERED`].
    fn offered(&mut self, member: &Member) -> Option<i64> {
        let offered = OFFERED.iter().find(|offered| offered.key == member.key);
        let offered = offered.expect("it is read by this name");
        self.integer(member, offered.range.clone(), offered.unit)
    }

    /// The reservation under SCHED_DEADLINE: "dl-runtime", "dl-period" (or as long as the runtime) and "dl-deadline" (or as
    /// long as the period).
    fn reservation(
        &mut self,
        properties: &Properties,
        policy: PolicyName,
        at: &Range<usize>,
        owner: &str,
    ) -> DlReservation {
        if policy != PolicyName::Deadline {
            return DlReservation::default();
        }
        let ns = |us: Option<u32>| us.filter(|us| *us > 0).map(|us| u64::from(us) * 1000);
        let runtime = ns(properties.slice_us).unwrap_or(0);
        let period = ns(properties.dl_us[0]).unwrap_or(runtime);
        let deadline = ns(properties.dl_us[1]).unwrap_or(period);
        let reservation = DlReservation { runtime, deadline, period };
        if runtime == 0 {
            let message = format!("SCHED_DEADLINE of \"{}\" lacks \"dl-runtime\"", shorten(owner));
            self.fault(at.clone(), message, Some("give it in microseconds".to_owned()));
        } else if !reservation.is_valid() {
            let message = format!(
                "Linux refuses the reservation of \"{}\" (EINVAL): \"dl-runtime\" {} us, \"dl-deadline\" {} us, \"dl-period\" {} us",
                shorten(owner),
                runtime / 1000,
                deadline / 1000,
                period / 1000
            );
            let help =
                "2 us <= runtime <= deadline <= period, and a period of 100 us to 4194304 us";
            self.fault(at.clone(), message, Some(help.to_owned()));
        }
        reservation
    }

    /// The priority that is given, or the policy's default, within the policy's range.
    fn priority(&mut self, properties: &Properties, policy: PolicyName) -> i8 {
        let (range, default, meaning) = match policy {
            PolicyName::Fifo | PolicyName::Rr => {
                (1..=99, DEFAULT_RT_PRIORITY, "a real-time priority")
            }
            PolicyName::Deadline => (0..=0, 0, "no priority under SCHED_DEADLINE"),
            PolicyName::Other | PolicyName::Batch | PolicyName::Idle | PolicyName::Ext => {
                (-20..=19, 0, "a nice value")
            }
        };
        let Some((priority, span)) = &properties.priority else {
            return default as i8;
        };
        if range.contains(priority) {
            return *priority as i8;
        }
        let message = format!(
            "\"priority\" is {priority}, outside {}..={} of its policy",
            range.start(),
            range.end()
        );
        self.fault(span.clone(), message, Some(format!("give {meaning}")));
        default as i8
    }

    fn properties(&mut self, members: &[Member], level: Level, owner: &str) -> Properties {
        let mut found = Properties::default();
        let mut legacy_runtime = None;
        let (mut util_min, mut util_max) = (None, None);
        for member in members {
            let key = member.key.as_str();
            if key == "runtime" && level != Level::Phase {
                // rt-app reads this key of a task as the old spelling of "dl-runtime", even where it
                // is an event as well.
                if let Kind::Integer(us @ 0..=INT_MAX) = member.value.kind {
                    legacy_runtime = Some(us as u32);
                    if us > 0 && level == (Level::Task { has_phases: false }) {
                        self.notice(format!(
                            "\"runtime\" of task \"{}\" is also read as its \"dl-runtime\": a custom slice of {us} us (write \"runtime0\" to avoid that)",
                            shorten(owner)
                        ));
                    }
                }
                if level == (Level::Task { has_phases: true }) {
                    self.integer(member, 0..=INT_MAX, "microseconds");
                }
                continue;
            }
            if event::kind(key).is_some() {
                if level == (Level::Task { has_phases: true }) {
                    let message = format!(
                        "the event \"{}\" beside \"phases\" is never executed",
                        shorten(key)
                    );
                    self.fault(
                        member.key_span.clone(),
                        message,
                        Some("move it into a phase".to_owned()),
                    );
                }
                continue;
            }
            let known = if level == Level::Phase { PHASE_KEYS } else { TASK_KEYS };
            match key {
                _ if !known.contains(&key) => self.unknown_key(member, known, owner),
                "loop" => found.loops = self.loops(member),
                "policy" => {
                    found.policy =
                        self.policy(member).map(|policy| (policy, member.value.span.clone()))
                }
                "priority" => {
                    let priority = self.offered(member);
                    found.priority = priority.map(|priority| (priority, member.value.span.clone()));
                }
                "dl-runtime" => {
                    found.slice_us =
                        self.integer(member, 0..=INT_MAX, "microseconds").map(|us| us as u32);
                }
                "dl-period" | "dl-deadline" | "period" | "deadline" => {
                    let us = self.integer(member, 0..=INT_MAX, "microseconds").map(|us| us as u32);
                    // The old spelling counts where the new one is not given.
                    let place = &mut found.dl_us[usize::from(key.ends_with("deadline"))];
                    if key.starts_with("dl-") || place.is_none() {
                        *place = us;
                    }
                }
                "cpus" => found.cpus = self.cpus(member),
                "nodes_membind" => self.nodes(member, owner),
                "taskgroup" => found.task_group = self.task_group(member),
                "util_min" => util_min = self.offered(member),
                "util_max" => util_max = self.offered(member),
                // Read by their owners: "instance", "delay", "phases".
                _ => {}
            }
        }
        if found.slice_us.unwrap_or(0) == 0 && legacy_runtime.is_some() {
            found.slice_us = legacy_runtime;
        }
        if let (Some(min @ 0..), Some(max @ 0..)) = (util_min, util_max)
            && min > max
        {
            let at =
                members.iter().find(|m| m.key == "util_min").map_or(0..0, |m| m.value.span.clone());
            self.fault(at, format!("\"util_min\" {min} is above \"util_max\" {max}"), None);
        }
        let clamp = |value: Option<i64>| value.and_then(|value| u16::try_from(value).ok());
        found.clamps = [clamp(util_min), clamp(util_max)];
        found
    }

    fn unknown_key(&mut self, member: &Member, known: &[&str], owner: &str) {
        let words = known.iter().copied().chain(event::NAMES.iter().map(|(name, _)| *name));
        let listed = self.keys_listed;
        let all =
            || (!listed).then(|| format!("properties are {}; {}", known.join(", "), event::HELP));
        let help = did_you_mean_or(&member.key, words, all);
        self.keys_listed |= help.as_ref().is_some_and(|help| help.starts_with("properties"));
        let message = format!("unknown key \"{}\" in \"{}\"", shorten(&member.key), shorten(owner));
        self.fault(member.key_span.clone(), message, help);
    }

    fn loops(&mut self, member: &Member) -> Option<Loops> {
        match self.integer(member, -1..=INT_MAX, "a number of repetitions, or -1 for ever")? {
            -1 => Some(Loops::Forever),
            0 => {
                self.fault(
                    member.value.span.clone(),
                    "\"loop\" is 0: rt-app never runs such a task and never ends such a phase",
                    Some("give a number of repetitions, or -1 for ever".to_owned()),
                );
                None
            }
            times => Some(Loops::Times(times as u32)),
        }
    }

    fn numbers(&mut self, member: &Member, what: &str, bound: i64) -> Vec<(u16, Range<usize>)> {
        let Kind::Array(elements) = &member.value.kind else {
            self.wrong_kind(
                member,
                &format!("an array of {what} numbers"),
                Some("as [0, 2, 3]".to_owned()),
            );
            return Vec::new();
        };
        if elements.is_empty() {
            self.fault(
                member.value.span.clone(),
                format!("\"{}\" names no {what}", member.key),
                None,
            );
        }
        let mut found = Vec::new();
        for element in elements {
            let place = element.span.clone();
            let unit = format!("the number of a {what}");
            let number = self.integer_value(
                element,
                &place,
                &format!("an entry of \"{}\"", member.key),
                0..=bound,
                &unit,
            );
            found.extend(number.map(|number| (number as u16, place)));
        }
        found
    }

    fn cpus(&mut self, member: &Member) -> Option<CpuList> {
        let numbers = self.numbers(member, "CPU", MAX_CPUS as i64 - 1);
        let mask = CpuMask::from_cpus(numbers.iter().map(|(cpu, _)| CpuId(*cpu)));
        // Repeated numbers say nothing new; one place of each is enough for messages.
        let mut numbers = numbers;
        numbers.sort_by_key(|(cpu, span)| (*cpu, span.start));
        numbers.dedup_by_key(|(cpu, _)| *cpu);
        (!numbers.is_empty()).then_some(CpuList { mask, numbers })
    }

    fn nodes(&mut self, member: &Member, owner: &str) {
        /// More nodes than any Linux has (`MAX_NUMNODES` is at most 1024).
        const MAX_NODE: i64 = 1023;
        if !self.numbers(member, "NUMA node", MAX_NODE).is_empty() {
            let what = format!("\"nodes_membind\" of \"{}\"", shorten(owner));
            self.pend(member.key_span.clone(), &what, "NUMA memory binding");
        }
    }

    /// A task group, with its place.
    fn task_group(&mut self, member: &Member) -> Option<(u32, Range<usize>)> {
        let path = self.text(member)?;
        if path.is_empty() {
            return None;
        }
        let span = member.value.span.clone();
        self.task_group_of_path(path, span.clone()).map(|number| (number, span))
    }

    /// The number of a task group's path that stands at `span`.
    pub(super) fn task_group_of_path(&mut self, path: &str, span: Range<usize>) -> Option<u32> {
        if !path.starts_with('/') {
            self.fault(
                span,
                format!("\"taskgroup\" is \"{}\"", shorten(path)),
                Some("a task group begins with \"/\"".to_owned()),
            );
            return None;
        }
        if path.split('/').filter(|name| !name.is_empty()).count() > MAX_TASK_GROUP_LEVELS {
            let message = format!("a task group is at most {MAX_TASK_GROUP_LEVELS} levels deep");
            self.fault(span, message, None);
            return None;
        }
        let known = self.task_groups.list.len();
        let number = self.task_groups.intern(path);
        if known == MAX_TASK_GROUPS && self.task_groups.list.len() > known {
            self.fault(
                span,
                format!("more than {MAX_TASK_GROUPS} task groups, rt-app's bound"),
                None,
            );
            return None;
        }
        Some(number)
    }

    fn check_task_group(&mut self, properties: &Properties, policy: PolicyName, owner: &str) {
        let list = &self.task_groups.list;
        let in_root =
            properties.task_group.as_ref().is_some_and(|(at, _)| list[*at as usize] == "/");
        if let (Some((_, span)), PolicyName::Fifo | PolicyName::Rr | PolicyName::Deadline) =
            (&properties.task_group, policy)
            && !in_root
        {
            let message =
                format!("\"{}\" cannot be in a task group with its policy", shorten(owner));
            let help = one_of(&["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_EXT"]);
            self.fault(span.clone(), message, Some(help));
        }
    }
}

/// A key of the old language, in the task or in one of its phases.
fn old_key(members: &[Member]) -> Option<&Member> {
    let here = members.iter().find(|m| OLD_KEYS.contains(&m.key.as_str()));
    here.or_else(|| {
        let phases = members.iter().find(|m| m.key == "phases")?;
        let Kind::Object(phases) = &phases.value.kind else {
            return None;
        };
        phases.iter().find_map(|phase| match &phase.value.kind {
            Kind::Object(inner) => inner.iter().find(|m| OLD_KEYS.contains(&m.key.as_str())),
            _ => None,
        })
    })
}
