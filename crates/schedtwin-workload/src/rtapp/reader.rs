// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads an rt-app file: the document, `global` and `resources`; collects all faults.
//!
//! The reader never stops at a fault: it notes it with its position and goes on with a harmless
//! value, so that a user sees everything that is wrong at once (up to [`MAX_FAULTS`]).
//!
//! ```text
//! { "global": {...}, "resources": {...}, "tasks": { NAME: task, ... } }     only tasks must be there
//! ```
//!
//! `tasks` is read in `task.rs`, events in `event.rs`.

use super::json::{self, Kind, Member, PLACEHOLDER, Value, is_placeholder, shorten};
use super::model::{Calibration, Global, Model, PolicyName};
use super::numbers::TaskNumbers;
use schedtwin_input::{Diagnostics, Source, did_you_mean_or};
use schedtwin_types::{MAX_CPUS, TaskGroupFiles};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// After so many faults the rest is only counted: nobody reads more, and hostile files have more.
const MAX_FAULTS: usize = 50;
/// rt-app keeps every number in a C `int`.
pub(super) const INT_MAX: i64 = i32::MAX as i64;

/// `global` keys, and what they hold. `frag` and `fragment` are left over from rt-app 0.x; many
/// published files still carry them and rt-app ignores them.
const GLOBAL_KEYS: &[&str] = &[
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "system",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "fragment",
];
/// Categories of `ftrace`.
const FTRACE_CATEGORIES: &[&str] =
    &["none", "main", "task", "run", "event", "loop", "stats", "attrs"];
/// Types of a pre-declared resource.
const RESOURCE_TYPES: &[&str] = &[
    "mutex",
    "wait",
    "signal",
    "broadcast",
    "sync",
    "sleep",
    "run",
    "runtime",
    "timer",
    "timer_unique",
    "lock",
    "unlock",
    "suspend",
    "resume",
    "mem",
    "memrun",
    "iorun",
    "io",
    "yield",
    "barrier",
    "fork",
    "sem",
    "sem_post",
    "sem_wait",
];

/// The state of reading one file.
pub(super) struct Reader {
    pub source: Arc<Source>,
    pub faults: Diagnostics,
    suppressed: usize,
    pub notices: Vec<String>,
    pub pending: Diagnostics,
    pub default_policy: PolicyName,
    /// The key of `"pi_enabled": true`.
    pub pi_enabled: Option<Range<usize>>,
    pub mutexes: Names,
    pub conditions: Names,
    pub semaphores: Names,
    pub timers: super::task::Timers,
    pub barriers: Vec<super::model::BarrierDefinition>,
    pub barrier_names: Names,
    pub block_devices: Vec<(Option<String>, Range<usize>)>,
    pub task_groups: Names,
    pub group_files: Vec<(u32, TaskGroupFiles)>,
    pub condition_uses: Vec<super::event::ConditionUse>,
    /// All keys have been listed once already, in the help of a fault.
    pub keys_listed: bool,
    /// The numbers of each task, in the order of the file.
    pub numbers: Vec<TaskNumbers>,
    /// The task that is being read.
    pub task_at: Option<usize>,
    /// The phase and the event that are being read, as names of numbers begin: `scroll/timer.`
    pub within: String,
}

/// Names in the order of their first use.
#[derive(Default)]
pub(super) struct Names {
    index: BTreeMap<String, u32>,
    pub list: Vec<String>,
}

impl Names {
    /// The number of `name`, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(at) = self.index.get(name) {
            return *at;
        }
        let at = self.list.len() as u32;
        self.index.insert(name.to_owned(), at);
        self.list.push(name.to_owned());
        at
    }

    /// A number for something that no name in the file can mean.
    pub fn anonymous(&mut self, description: String) -> u32 {
        self.list.push(description);
        self.list.len() as u32 - 1
    }

    /// The number of `name`, if it is there.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }
}

/// Reads and checks a whole file.
pub(crate) fn read(source: Arc<Source>) -> Result<Model, Diagnostics> {
    read_with_numbers(source).map(|(model, _)| model)
}

/// As [`read`], with the numbers of each task.
pub(super) fn read_with_numbers(
    source: Arc<Source>,
) -> Result<(Model, Vec<TaskNumbers>), Diagnostics> {
    let mut reader = Reader::new(source.clone());
    let model = reader.document();
    // In the order of the file, whatever the order of reading.
    reader.faults.0.sort_by_key(|fault| fault.span.start);
    if reader.suppressed > 0 {
        let message = format!("{} more faults are not shown", reader.suppressed);
        reader.faults.push(&source, 0..0, message, None);
    }
    match model {
        Some(model) if reader.faults.is_empty() => Ok((model, reader.numbers)),
        _ => Err(reader.faults),
    }
}

impl Reader {
    /// Nothing has been read yet.
    pub fn new(source: Arc<Source>) -> Reader {
        Reader {
            source,
            faults: Diagnostics::new(),
            suppressed: 0,
            notices: Vec::new(),
            pending: Diagnostics::new(),
            default_policy: PolicyName::Other,
            pi_enabled: None,
            mutexes: Names::default(),
            conditions: Names::default(),
            semaphores: Names::default(),
            timers: super::task::Timers::default(),
            barriers: Vec::new(),
            barrier_names: Names::default(),
            block_devices: Vec::new(),
            task_groups: Names::default(),
            group_files: Vec::new(),
            condition_uses: Vec::new(),
            keys_listed: false,
            numbers: Vec::new(),
            task_at: None,
            within: String::new(),
        }
    }

    pub fn fault(&mut self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        if self.faults.0.len() < MAX_FAULTS {
            self.faults.push(&self.source, span, message, help);
        } else {
            self.suppressed += 1;
        }
    }

    /// Notes something that the file asks for and that a later version will model.
    pub fn pend(&mut self, span: Range<usize>, what: &str, feature: &str) {
        if self.pending.0.len() < MAX_FAULTS {
            self.pending.push(
                &self.source,
                span,
                format!("{what} is not modelled: {feature}"),
                None,
            );
        }
    }

    pub fn notice(&mut self, text: String) {
        if self.notices.len() < MAX_FAULTS && !self.notices.contains(&text) {
            self.notices.push(text);
        }
    }

    fn document(&mut self) -> Option<Model> {
        let source = self.source.clone();
        let everything = 0..source.text.len();
        if source.text.contains('\0') {
            let at = source.text.find('\0').unwrap_or(0);
            self.fault(at..at + 1, "not an rt-app file: it holds binary data", None);
            return None;
        }
        let root = match json::parse(&source.text) {
            Err(error) => {
                self.fault(error.span, error.message, error.help);
                return None;
            }
            Ok(None) => {
                self.fault(
                    0..0,
                    "the file is empty",
                    Some("an rt-app file holds at least { \"tasks\": { ... } }".to_owned()),
                );
                return None;
            }
            Ok(Some(root)) => root,
        };
        let Kind::Object(members) = root.kind else {
            let message = format!("the file must hold an object, not {}", root.kind.describe());
            self.fault(root.span, message, Some("write { \"tasks\": { ... } }".to_owned()));
            return None;
        };
        self.no_duplicates(&members, |_| true);

        let mut global = Global::left_out();
        let mut tasks = None;
        for member in &members {
            match member.key.as_str() {
                "global" => {
                    if let Some(inner) = self.object(member) {
                        global = self.global(inner);
                    }
                }
                // Its oldest files have a count of mutexes here, which rt-app still takes.
                "resources" if matches!(member.value.kind, Kind::Integer(_)) => {
                    self.integer(member, 0..=1_000_000, "a count of resources");
                }
                // As if it were not there.
                "resources" if matches!(member.value.kind, Kind::Null) => {}
                "resources" => {
                    if let Some(inner) = self.object(member) {
                        self.resources(inner);
                    }
                }
                "tasks" => tasks = tasks.or(Some(member)),
                "taskgroups" => {
                    if let Some(inner) = self.object(member) {
                        self.task_group_files(inner);
                    }
                }
                key => {
                    let known = ["global", "tasks", "resources", "taskgroups"];
                    let help = did_you_mean_or(key, known, || Some(one_of(&known)));
                    self.fault(
                        member.key_span.clone(),
                        format!("unknown section \"{}\"", shorten(key)),
                        help,
                    );
                }
            }
        }
        let Some(tasks) = tasks else {
            let sections: Vec<_> =
                members.iter().map(|m| format!("\"{}\"", shorten(&m.key))).take(3).collect();
            let holds = if sections.is_empty() {
                "nothing".to_owned()
            } else {
                format!("only {}", sections.join(", "))
            };
            self.fault(
                everything,
                format!("no \"tasks\" section: the file holds {holds} and says of no thread what it does"),
                Some("it is a part that is meant to be merged with others into one file; merge them first".to_owned()),
            );
            return None;
        };
        let tasks = match self.object(tasks) {
            Some(inner) => self.tasks(inner, &tasks.key_span),
            None => return None,
        };
        if let (Some(span), false) = (self.pi_enabled.clone(), self.mutexes.list.is_empty()) {
            self.pend(span, "\"pi_enabled\"", "priority inheritance of mutexes");
        }
        self.pending.0.sort_by_key(|fault| fault.span.start);
        Some(Model {
            identity: source.text.clone(),
            source,
            global,
            tasks,
            mutexes: std::mem::take(&mut self.mutexes.list),
            conditions: std::mem::take(&mut self.conditions.list),
            semaphores: std::mem::take(&mut self.semaphores.list),
            timers: std::mem::take(&mut self.timers.list),
            barriers: std::mem::take(&mut self.barriers),
            block_devices: std::mem::take(&mut self.block_devices),
            task_groups: std::mem::take(&mut self.task_groups.list),
            group_files: std::mem::take(&mut self.group_files),
            notices: std::mem::take(&mut self.notices),
            pending: std::mem::take(&mut self.pending),
        })
    }

    fn global(&mut self, members: &[Member]) -> Global {
        self.no_duplicates(members, |_| true);
        let mut global = Global::left_out();
        for member in members {
            match member.key.as_str() {
                "duration" => {
                    let seconds =
                        self.integer(member, -1..=1_000_000, "seconds, or -1 for no limit");
                    if seconds == Some(0) {
                        self.notice("\"duration\": 0 means no limit, as -1 does".to_owned());
                    }
                    global.duration_s =
                        seconds.and_then(|s| u32::try_from(s).ok()).filter(|s| *s > 0);
                }
                "calibration" => {
                    if let Some(calibration) = self.calibration(member) {
                        global.calibration = calibration;
                    }
                }
                "default_policy" => {
                    self.default_policy = self.policy(member).unwrap_or(PolicyName::Other)
                }
                "pi_enabled" => {
                    if self.boolean(member) == Some(true) {
                        self.pi_enabled = Some(member.key_span.clone());
                    }
                }
                // These have an effect only on the real rt-app: on its log files and its memory.
                "lock_pages" | "gnuplot" | "cumulative_slack" => {
                    self.boolean(member);
                }
                "logdir" | "log_basename" => {
                    self.text(member);
                }
                "system" => {
                    let name = self.text(member).map(str::to_owned);
                    global.system = name.map(|name| (name, member.value.span.clone()));
                }
                "io_device" => {
                    let null = self.text(member).is_none_or(|path| path == "/dev/null");
                    global.io_to_null = null;
                }
                "mem_buffer_size" => {
                    if let Some(bytes) = self.integer(member, 1..=INT_MAX, "bytes") {
                        global.buffer_bytes = bytes as u32;
                    }
                }
                "frag" | "fragment" => {
                    self.integer(member, 0..=INT_MAX, "a number");
                }
                "log_size" => self.log_size(member),
                "ftrace" => self.ftrace(member),
                key => {
                    let help = did_you_mean_or(key, GLOBAL_KEYS.iter().copied(), || {
                        Some(one_of(GLOBAL_KEYS))
                    });
                    self.fault(
                        member.key_span.clone(),
                        format!("unknown key \"{}\" in \"global\"", shorten(key)),
                        help,
                    );
                }
            }
        }
        global
    }

    fn calibration(&mut self, member: &Member) -> Option<Calibration> {
        let help = || {
            Some(
                "write nanoseconds per loop as a number, or a CPU to measure on: \"CPU0\", or \
                 \"largest\" for the strongest"
                    .to_owned(),
            )
        };
        let span = member.value.span.clone();
        match &member.value.kind {
            Kind::Integer(ns @ 1..=1_000_000) => Some(Calibration::NsPerLoop(*ns as u32)),
            Kind::Text(text) if text == "largest" => Some(Calibration::Largest),
            Kind::Text(text) => {
                let number = text
                    .strip_prefix("CPU")
                    .filter(|n| n.len() < 9)
                    .and_then(|n| n.parse::<u32>().ok());
                match number {
                    Some(cpu) if (cpu as usize) < MAX_CPUS => {
                        Some(Calibration::Cpu { cpu: cpu as u16, span })
                    }
                    Some(cpu) => {
                        let message = format!(
                            "\"calibration\" names CPU {cpu}; machines have at most {MAX_CPUS} CPUs"
                        );
                        self.fault(span, message, None);
                        None
                    }
                    None => {
                        self.fault(
                            span,
                            format!("\"calibration\" is \"{}\", which is not a CPU", shorten(text)),
                            help(),
                        );
                        None
                    }
                }
            }
            Kind::Integer(ns) => {
                let message = format!("\"calibration\" is {ns} ns per loop, outside 1..=1000000");
                self.fault(span, message, help());
                None
            }
            _ => {
                self.wrong_kind(member, "a number or a string", help());
                None
            }
        }
    }

    fn log_size(&mut self, member: &Member) {
        const WORDS: [&str; 3] = ["file", "disable", "auto"];
        match &member.value.kind {
            Kind::Integer(0..=INT_MAX) => {}
            // The tutorial writes "Disable" and "Auto", the program "disable" and "auto".
            Kind::Text(text) if WORDS.contains(&text.to_lowercase().as_str()) => {}
            Kind::Text(text) => {
                let help = did_you_mean_or(text, WORDS, || Some(one_of(&WORDS)));
                self.fault(
                    member.value.span.clone(),
                    format!("unknown \"log_size\" \"{}\"", shorten(text)),
                    help,
                );
            }
            _ => self.wrong_kind(member, "megabytes or a string", Some(one_of(&WORDS))),
        }
    }

    fn ftrace(&mut self, member: &Member) {
        match &member.value.kind {
            Kind::Boolean(_) => {}
            Kind::Text(list) => {
                for category in list.split(',').map(str::trim).filter(|c| !c.is_empty()).take(100) {
                    if !FTRACE_CATEGORIES.contains(&category) {
                        let help =
                            did_you_mean_or(category, FTRACE_CATEGORIES.iter().copied(), || {
                                Some(one_of(FTRACE_CATEGORIES))
                            });
                        let message =
                            format!("unknown \"ftrace\" category \"{}\"", shorten(category));
                        self.fault(member.value.span.clone(), message, help);
                    }
                }
            }
            _ => self.wrong_kind(
                member,
                "a list of categories in a string",
                Some(one_of(FTRACE_CATEGORIES)),
            ),
        }
    }

    /// Pre-declared resources. rt-app creates every resource at its first use, so a declaration has
    /// no effect; it is checked all the same.
    fn resources(&mut self, members: &[Member]) {
        for member in members {
            let Some(inner) = self.object(member) else {
                continue;
            };
            self.no_duplicates(inner, |_| true);
            for property in inner {
                match property.key.as_str() {
                    "type" => {
                        if let Some(kind) = self.text(property)
                            && !RESOURCE_TYPES.contains(&kind)
                        {
                            let help =
                                did_you_mean_or(kind, RESOURCE_TYPES.iter().copied(), || {
                                    Some(one_of(RESOURCE_TYPES))
                                });
                            let message =
                                format!("unknown type \"{}\" of a resource", shorten(kind));
                            self.fault(property.value.span.clone(), message, help);
                        }
                    }
                    "target" => {
                        self.text(property);
                    }
                    key => {
                        let known = ["type", "target"];
                        let help = did_you_mean_or(key, known, || Some(one_of(&known)));
                        let message = format!("unknown key \"{}\" of a resource", shorten(key));
                        self.fault(property.key_span.clone(), message, help);
                    }
                }
            }
        }
    }

    pub fn policy(&mut self, member: &Member) -> Option<PolicyName> {
        const NAMES: [(&str, PolicyName); 7] = [
            ("SCHED_OTHER", PolicyName::Other),
            ("SCHED_BATCH", PolicyName::Batch),
            ("SCHED_IDLE", PolicyName::Idle),
            ("SCHED_FIFO", PolicyName::Fifo),
            ("SCHED_RR", PolicyName::Rr),
            ("SCHED_DEADLINE", PolicyName::Deadline),
            ("SCHED_EXT", PolicyName::Ext),
        ];
        let name = self.text(member)?;
        if let Some((_, policy)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Some(*policy);
        }
        let known = NAMES.map(|(name, _)| name);
        let help = did_you_mean_or(name, known, || Some(one_of(&known)));
        self.fault(
            member.value.span.clone(),
            format!("unknown policy \"{}\"", shorten(name)),
            help,
        );
        None
    }

    /// A value of the wrong kind: `"run" must be a whole number, not null`.
    pub fn wrong_kind(&mut self, member: &Member, wanted: &str, help: Option<String>) {
        let key = shorten(&member.key);
        let message = match &member.value.kind {
            Kind::Missing => format!("\"{key}\" has no value; it must be {wanted}"),
            other => format!("\"{key}\" must be {wanted}, not {}", other.describe()),
        };
        self.fault(self.place(member), message, help);
    }

    /// Where to point for a wrong value: at the value, or at the key if there is no value.
    pub fn place(&self, member: &Member) -> Range<usize> {
        match member.value.kind {
            Kind::Missing => member.key_span.clone(),
            _ => member.value.span.clone(),
        }
    }

    /// A whole number in `range`; `unit` completes "must be ...".
    pub fn integer(
        &mut self,
        member: &Member,
        range: RangeInclusive<i64>,
        unit: &str,
    ) -> Option<i64> {
        if matches!(member.value.kind, Kind::Missing) {
            self.wrong_kind(member, "a whole number", Some(format!("give {unit}")));
            return None;
        }
        let number = self.integer_value(
            &member.value,
            &self.place(member),
            &format!("\"{}\"", shorten(&member.key)),
            range,
            unit,
        );
        if let (Some(at), Some(_)) = (self.task_at, number) {
            let name = format!("{}{}", self.within, member.key);
            self.numbers[at].note(name, unit, member.value.span.clone());
        }
        number
    }

    /// As [`Reader::integer`], for a value that has no key of its own.
    pub fn integer_value(
        &mut self,
        value: &Value,
        place: &Range<usize>,
        what: &str,
        range: RangeInclusive<i64>,
        unit: &str,
    ) -> Option<i64> {
        match &value.kind {
            Kind::Integer(number) if range.contains(number) => Some(*number),
            Kind::Integer(_) => {
                let message = format!(
                    "{what} is {}, outside {}..={}",
                    &self.source.text[value.span.clone()],
                    range.start(),
                    range.end()
                );
                self.fault(place.clone(), message, Some(format!("give {unit}")));
                None
            }
            Kind::OtherNumber(text)
                if text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) =>
            {
                let message = format!(
                    "{what} is {}, outside {}..={}",
                    shorten(text),
                    range.start(),
                    range.end()
                );
                self.fault(place.clone(), message, Some(format!("give {unit}")));
                None
            }
            other => {
                let message = format!("{what} must be a whole number, not {}", other.describe());
                let help = match other {
                    Kind::Text(text) if is_placeholder(text) => PLACEHOLDER.to_owned(),
                    _ => format!("give {unit}"),
                };
                self.fault(place.clone(), message, Some(help));
                None
            }
        }
    }

    pub fn boolean(&mut self, member: &Member) -> Option<bool> {
        if let Kind::Boolean(value) = member.value.kind {
            return Some(value);
        }
        self.wrong_kind(member, "true or false", None);
        None
    }

    pub fn text<'m>(&mut self, member: &'m Member) -> Option<&'m str> {
        if let Kind::Text(value) = &member.value.kind {
            return Some(value);
        }
        self.wrong_kind(member, "a string", None);
        None
    }

    pub fn object<'m>(&mut self, member: &'m Member) -> Option<&'m [Member]> {
        if let Kind::Object(inner) = &member.value.kind {
            return Some(inner);
        }
        self.wrong_kind(member, "an object", None);
        None
    }

    /// A property (not an event, not a phase) may occur only once: which one counts is unclear.
    pub fn no_duplicates(&mut self, members: &[Member], is_property: impl Fn(&str) -> bool) {
        let mut seen = BTreeMap::new();
        for member in members.iter().filter(|m| is_property(&m.key)) {
            if let Some(first) = seen.insert(member.key.as_str(), member.key_span.start) {
                seen.insert(member.key.as_str(), first);
                if self.faults.0.len() >= MAX_FAULTS {
                    self.suppressed += 1;
                    continue;
                }
                let (line, _) = self.source.line_column(first);
                let message = format!("\"{}\" is given twice", shorten(&member.key));
                self.fault(
                    member.key_span.clone(),
                    message,
                    Some(format!("remove one; the first is in line {line}")),
                );
            }
        }
    }
}

/// `one of: a, b, c`
pub(super) fn one_of(words: &[&str]) -> String {
    format!("one of: {}", words.join(", "))
}
