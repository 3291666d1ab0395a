// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of threads that are found by their names: `nice hogs=10`, `slice ui=100us`.
//!
//! The same words change the threads of a workload in the twin and threads of a running Linux, so
//! that what was predicted and what is measured are one thing.
//!
//! | word | value | Linux |
//! |---|---|---|
//! | `nice` | −20..=19 | `setpriority()` |
//! | `policy` | `other`, `batch`, `idle`, `fifo:PRIORITY`, `rr:PRIORITY` | `sched_setattr()` |
//! | `slice` | a time, `0`: the default | `sched_setattr()`: `sched_runtime` of a fair thread |
//! | `cpus` | a list: `0-3,6` | `sched_setaffinity()` |
//! | `util_min`, `util_max` | 0..=1024 | `sched_setattr()` |
//! | `dl` | `RUNTIME/PERIOD` or `RUNTIME/DEADLINE/PERIOD` | `sched_setattr()`: SCHED_DEADLINE |
//!
//! A pattern (`*` and `?`) matches the name of a thread or of its class: `ui` matches `ui-0`, `kworker`
//! matches `kworker/0:1`.

use schedtwin_types::wildcard::{Wildcards, matches};
use schedtwin_types::{CpuId, CpuMask, DlReservation, Duration, MAX_CPUS, Ns, Policy, SchedAttr};
use std::fmt;

/// Words of thread settings.
pub const WORDS: [&str; 7] = ["nice", "policy", "slice", "cpus", "util_min", "util_max", "dl"];

/// The highest real-time priority.
const RT_PRIORITY_MAX: u8 = 99;

/// The highest value of a clamp.
const CLAMP_MAX: u16 = 1024;

/// A setting and the threads that get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSetting {
    /// The pattern of their names.
    pub threads: String,
    /// The value that they get.
    pub value: ThreadValue,
}

/// The value of a thread's setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadValue {
    /// The nice value.
    Nice(i8),
    /// A policy, not SCHED_DEADLINE, and the priority of a real-time one, else 0.
    Policy(Policy, u8),
    /// The slice of a fair thread, ns; 0: the default.
    Slice(Ns),
    /// The CPUs that it may use.
    Cpus(CpuMask),
    /// The lower utilisation clamp.
    UtilMin(u16),
    /// The upper utilisation clamp.
    UtilMax(u16),
    /// SCHED_DEADLINE with this reservation.
    Deadline(DlReservation),
}

/// The class of a thread: its name without the numbers behind it.
///
/// ```
/// use schedtwin_workload::class_of;
/// let names = ["ui-0", "ui-3-0001", "kworker/0:1", "cc1", "-7"];
/// assert_eq!(names.map(class_of), ["ui", "ui", "kworker", "cc1", "-7"]);
/// ```
pub fn class_of(name: &str) -> &str {
    let mut class = name;
    loop {
        let before = class.trim_end_matches(|c: char| c.is_ascii_digit());
        let shorter = before.trim_end_matches(['-', ':', '/', '#', '_', '.']);
        if before.len() == class.len() || shorter.len() == before.len() || shorter.is_empty() {
            return class;
        }
        class = shorter;
    }
}

impl ThreadSetting {
    /// Reads `WORD THREADS=VALUE`; `None`: the first word is none of [`WORDS`].
    ///
    /// ```
    /// use schedtwin_workload::ThreadSetting;
    /// let nice = ThreadSetting::parse("nice hogs=10").unwrap().unwrap();
    /// assert!(nice.matches("hogs-2") && !nice.matches("ui-0"));
    /// assert_eq!(nice.to_string(), "nice hogs=10");
    /// assert!(ThreadSetting::parse("nice hogs=40").unwrap().is_err());
    /// assert!(ThreadSetting::parse("hz=1000").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Result<ThreadSetting, String>> {
        let (word, rest) = text.trim().split_once(char::is_whitespace)?;
        WORDS.contains(&word).then(|| ThreadSetting::of(word, rest.trim()))
    }

    fn of(word: &str, rest: &str) -> Result<ThreadSetting, String> {
        let (threads, value) = rest
            .rsplit_once('=')
            .ok_or_else(|| format!("{word} {rest}: a setting is written {word} THREADS=VALUE"))?;
        let (threads, value) = (threads.trim(), value.trim());
        if threads.is_empty() {
            return Err(format!("{word} {rest}: which threads? * stands for all"));
        }
        let value = value_of(word, value)
            .map_err(|expected| format!("{word} {threads}={value}: expected {expected}"))?;
        Ok(ThreadSetting { threads: threads.to_owned(), value })
    }

    /// Whether a thread of that name gets it.
    pub fn matches(&self, name: &str) -> bool {
        [name, class_of(name)]
            .into_iter()
            .any(|name| matches(&self.threads, name, Wildcards::StarAndOne))
    }
}

/// Reads a value, or says what is expected.
fn value_of(word: &str, text: &str) -> Result<ThreadValue, &'static str> {
    const TIME: &str = "a time as 100us";
    let clamp = || {
        let clamp = text.parse::<u16>().ok().filter(|clamp| *clamp <= CLAMP_MAX);
        clamp.ok_or("0 to 1024")
    };
    Ok(match word {
        "nice" => {
            let nice = text.parse::<i8>().ok().filter(|nice| (-20..=19).contains(nice));
            ThreadValue::Nice(nice.ok_or("-20 to 19")?)
        }
        "policy" => policy(text).ok_or("other, batch, idle, fifo:1..99 or rr:1..99")?,
        "slice" if text == "0" => ThreadValue::Slice(0),
        "slice" => ThreadValue::Slice(time(text).ok_or(TIME)?),
        "cpus" => ThreadValue::Cpus(cpus(text).ok_or(CPU_LIST)?),
        "util_min" => ThreadValue::UtilMin(clamp()?),
        "util_max" => ThreadValue::UtilMax(clamp()?),
        _ => {
            const EXPECTED: &str = "RUNTIME/PERIOD or RUNTIME/DEADLINE/PERIOD as 2ms/10ms, runtime <= deadline <= period";
            let times: Option<Vec<Ns>> = text.split('/').map(time).collect();
            let reservation = match times.as_deref() {
                Some(&[runtime, period]) => DlReservation { runtime, deadline: period, period },
                Some(&[runtime, deadline, period]) => DlReservation { runtime, deadline, period },
                _ => return Err(EXPECTED),
            };
            ThreadValue::Deadline(
                Some(reservation).filter(DlReservation::is_valid).ok_or(EXPECTED)?,
            )
        }
    })
}

fn time(text: &str) -> Option<Ns> {
    text.trim().parse::<Duration>().ok().map(|time| time.ns())
}

/// A policy by its short name, or by Linux's.
fn policy(text: &str) -> Option<ThreadValue> {
    let lower = text.to_ascii_lowercase();
    let word = lower.strip_prefix("sched_").unwrap_or(&lower);
    let (word, priority) = match word.split_once(':') {
        Some((word, priority)) => {
            let priority = priority.parse::<u8>().ok()?;
            (word, Some(priority).filter(|priority| (1..=RT_PRIORITY_MAX).contains(priority)))
        }
        None => (word, None),
    };
    let fair = |policy| (!lower.contains(':')).then_some(ThreadValue::Policy(policy, 0));
    match word {
        "other" | "normal" => fair(Policy::Normal),
        "batch" => fair(Policy::Batch),
        "idle" => fair(Policy::Idle),
        "ext" => fair(Policy::Ext),
        "fifo" => Some(ThreadValue::Policy(Policy::Fifo, priority?)),
        "rr" => Some(ThreadValue::Policy(Policy::Rr, priority?)),
        _ => None,
    }
}

/// How a list of CPUs is written; CPU 255 is the last ([`MAX_CPUS`]).
pub const CPU_LIST: &str = "a list of CPUs from 0 to 255, as 0-3,6";

/// A list of CPUs, not empty.
fn cpus(text: &str) -> Option<CpuMask> {
    let mut mask = CpuMask::EMPTY;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u16>().ok()?, last.trim().parse::<u16>().ok()?);
        if first > last || usize::from(last) >= MAX_CPUS {
            return None;
        }
        for cpu in first..=last {
            mask.insert(CpuId(cpu));
        }
    }
    Some(mask)
}

/// `nice hogs=10`, as it is read.
impl fmt::Display for ThreadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = &self.threads;
        let word = |ns: Ns| Duration::from_ns(ns).word();
        match &self.value {
            ThreadValue::Nice(nice) => write!(f, "nice {threads}={nice}"),
            ThreadValue::Policy(policy, priority) => {
                write!(f, "policy {threads}={}", policy_word(*policy))?;
                if *priority > 0 { write!(f, ":{priority}") } else { Ok(()) }
            }
            ThreadValue::Slice(0) => write!(f, "slice {threads}=0"),
            ThreadValue::Slice(ns) => write!(f, "slice {threads}={}", word(*ns)),
            ThreadValue::Cpus(cpus) => write!(f, "cpus {threads}={}", list_of(cpus)),
            ThreadValue::UtilMin(clamp) => write!(f, "util_min {threads}={clamp}"),
            ThreadValue::UtilMax(clamp) => write!(f, "util_max {threads}={clamp}"),
            ThreadValue::Deadline(of) => {
                let (runtime, deadline, period) =
                    (word(of.runtime), word(of.deadline), word(of.effective_period()));
                write!(f, "dl {threads}={runtime}/{deadline}/{period}")
            }
        }
    }
}

fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Normal => "other",
        Policy::Batch => "batch",
        Policy::Idle => "idle",
        Policy::Fifo => "fifo",
        Policy::Rr => "rr",
        Policy::Deadline => "deadline",
        Policy::Ext => "ext",
    }
}

/// A mask as the kernel writes lists.
pub fn list_of(cpus: &CpuMask) -> String {
    let numbers: Vec<u16> = cpus.iter().map(|cpu| cpu.0).collect();
    let mut parts: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        parts.push(match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        });
    }
    parts.join(",")
}

/// The settings of one thread, put together: the last of a kind counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadChanges {
    /// The nice value.
    pub nice: Option<i8>,
    /// Policy and real-time priority.
    pub policy: Option<(Policy, u8)>,
    /// The slice.
    pub slice: Option<Ns>,
    /// The CPUs.
    pub cpus: Option<CpuMask>,
    /// The clamps, lower and upper.
    pub clamps: [Option<u16>; 2],
    /// The reservation of SCHED_DEADLINE.
    pub dl: Option<DlReservation>,
}

impl ThreadChanges {
    /// The changes of a thread of that name.
    pub fn of(name: &str, settings: &[ThreadSetting]) -> ThreadChanges {
        let mut changes = ThreadChanges::default();
        for setting in settings.iter().filter(|setting| setting.matches(name)) {
            match setting.value {
                ThreadValue::Nice(nice) => changes.nice = Some(nice),
                ThreadValue::Policy(policy, priority) => {
                    (changes.policy, changes.dl) = (Some((policy, priority)), None);
                }
                ThreadValue::Slice(slice) => changes.slice = Some(slice),
                ThreadValue::Cpus(cpus) => changes.cpus = Some(cpus),
                ThreadValue::UtilMin(min) => changes.clamps[0] = Some(min),
                ThreadValue::UtilMax(max) => changes.clamps[1] = Some(max),
                ThreadValue::Deadline(dl) => (changes.dl, changes.policy) = (Some(dl), None),
            }
        }
        changes
    }

    /// Whether nothing changes.
    pub fn is_none(&self) -> bool {
        *self == ThreadChanges::default()
    }

    /// Whether anything but the CPUs changes.
    pub fn changes_attributes(&self) -> bool {
        *self != ThreadChanges { cpus: self.cpus, ..ThreadChanges::default() }
    }

    /// The parameters that a thread with `attr` has after the changes.
    ///
    /// ```
    /// use schedtwin_types::{Policy, SchedAttr};
    /// use schedtwin_workload::{ThreadChanges, ThreadSetting};
    /// let settings = ["policy tick=fifo:50", "slice ui=100us"].map(|text| ThreadSetting::parse(text).unwrap().unwrap());
    /// let plain = SchedAttr::default();
    /// let tick = ThreadChanges::of("tick-0", &settings).applied_to(plain);
    /// assert_eq!((tick.policy, tick.rt_priority), (Policy::Fifo, 50));
    /// assert_eq!(ThreadChanges::of("ui-1", &settings).applied_to(plain).slice, 100_000);
    /// assert_eq!(ThreadChanges::of("x", &settings).applied_to(plain), plain);
    /// ```
    pub fn applied_to(&self, attr: SchedAttr) -> SchedAttr {
        let mut new = attr;
        if let Some((policy, priority)) = self.policy {
            (new.policy, new.rt_priority) = (policy, priority);
        }
        if let Some(dl) = self.dl {
            (new.policy, new.rt_priority, new.dl) = (Policy::Deadline, 0, dl);
        }
        let fair =
            matches!(new.policy, Policy::Normal | Policy::Batch | Policy::Idle | Policy::Ext);
        if let (Some(nice), true) = (self.nice, fair) {
            new.nice = nice;
        }
        if let (Some(slice), true) = (self.slice, fair) {
            new.slice = slice;
        }
        let [min, max] = self.clamps;
        new.util_min = min.or(new.util_min);
        new.util_max = max.or(new.util_max);
        new
    }
}

/// Settings whose pattern matches none of the names: a sentence for each.
pub fn unmatched<'a>(
    settings: &[ThreadSetting],
    names: impl Iterator<Item = &'a str> + Clone,
) -> Vec<String> {
    const NAMED: usize = 12;
    let lost = settings.iter().filter(|setting| !names.clone().any(|name| setting.matches(name)));
    let mut classes: Vec<&str> = names.clone().map(class_of).collect();
    classes.sort_unstable();
    classes.dedup();
    let more = if classes.len() > NAMED { ", ..." } else { "" };
    let classes = classes[..classes.len().min(NAMED)].join(", ");
    lost.map(|setting| format!("{setting}: no thread is called that; there are {classes}{more}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ThreadSetting, String> {
        ThreadSetting::parse(text).expect("a word of a thread's setting")
    }

    #[test]
    fn settings_are_written_as_they_are_read() {
        for text in [
            "nice hogs=10",
            "nice *=-20",
            "policy tick=fifo:50",
            "policy a?=idle",
            "slice ui=100us",
            "slice ui=0",
            "cpus hogs=0-2,5",
            "util_min ui=512",
            "util_max bg=0",
            "dl ui=2ms/5ms/10ms",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("dl ui=2ms/10ms").unwrap().to_string(), "dl ui=2ms/10ms/10ms");
        assert_eq!(read("policy a=SCHED_RR:3").unwrap().to_string(), "policy a=rr:3");
    }

    #[test]
    fn wrong_settings_say_what_is_expected() {
        for (text, part) in [
            ("nice hogs", "nice THREADS=VALUE"),
            ("nice =3", "which threads?"),
            ("nice a=20", "-20 to 19"),
            ("policy a=fifo", "fifo:1..99"),
            ("policy a=fifo:100", "fifo:1..99"),
            ("policy a=other:1", "other, batch"),
            ("slice a=fast", "100us"),
            ("cpus a=3-1", "a list of CPUs"),
            ("cpus a=", "a list of CPUs"),
            ("util_max a=1025", "0 to 1024"),
            ("dl a=10ms/2ms", "runtime <= deadline"),
            ("dl a=10ms", "RUNTIME/PERIOD"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
