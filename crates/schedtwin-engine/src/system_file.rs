// SPDX-License-Identifier: GPL-2.0-or-later
//! Profiles of systems: `profiles/*.toml`, what a system does beside its workload.
//!
//! ```toml
//! name = "mine"
//! description = "a server of mine"
//!
//! [rcu]                       # left out: nobody waits for grace periods
//! preemptible = true
//!
//! [[source]]
//! name = "kcompactd0"
//! origin = "mm/compaction.c: HPAGE_FRAG_CHECK_INTERVAL_MSEC; run measured with `schedtwin record`"
//! timer = { every_ms = 500 }  # or hrtimer, or interrupt; without: another source's `then`
//! run = "thread"              # function, softirq, work, unbound-work, thread, stopper
//! run_us = [9, 11, 14, 20]    # 10th, 50th, 90th, 99th percentile; one number: always the same
//! ```
//!
//! Each source says where its values come from (`origin`). None may come from a number that is to be predicted.
//!
//! Times of runs are those of a CPU of capacity 1024, unless the file gives `measured_capacity`: the capacity, at its frequency
//! then, of the CPU that they were measured on.

use schedtwin_input::{
    Diagnostics, FileKind, Located, Location, Source, TableReader, TomlDocument, did_you_mean,
    read_source,
};
use schedtwin_kernel::system::{
    Handler, Queue, RcuDescription, RunWork, Softirq, SourceDescription, SystemDescription,
    ThreadClass, Trigger,
};
use schedtwin_machine::Machine;
use schedtwin_types::draw::{Draws, in_range};
use schedtwin_types::{CpuId, CpuMask, Ns};
use std::sync::Arc;

/// Name and text of each built-in profile.
const BUILTIN: [(&str, &str); 5] = [
    ("board", include_str!("../profiles/board.toml")),
    ("desktop-linux", include_str!("../profiles/desktop-linux.toml")),
    ("guest-linux", include_str!("../profiles/guest-linux.toml")),
    ("phone-android", include_str!("../profiles/phone-android.toml")),
    ("server-linux", include_str!("../profiles/server-linux.toml")),
];

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;
/// The most sources of a file.
const SOURCES_MAX: usize = 256;
/// The longest period, ms: a day.
const EVERY_MAX_MS: u64 = 86_400_000;

/// The quantiles of an exponential distribution with mean 1000, in the middles of 32 equal parts.
const EXPONENTIAL: [u64; 32] = [
    16, 49, 82, 117, 153, 191, 230, 270, 312, 356, 402, 450, 501, 554, 610, 670, 733, 800, 872,
    950, 1035, 1127, 1228, 1340, 1467, 1611, 1780, 1983, 2237, 2577, 3094, 4204,
];

/// A profile.
#[derive(Clone, Debug)]
pub struct SystemFile {
    /// Its name, or the path that was given.
    pub identity: String,
    /// One line about it.
    pub description: String,
    sources: Vec<Profiled>,
    rcu: Option<RcuDescription>,
    text: Arc<Source>,
}

/// A source of a profile, and on which CPUs of a machine it is.
#[derive(Clone, Debug)]
struct Profiled {
    description: SourceDescription,
    cpus: Cpus,
    /// Of a device: the mean time between two interrupts.
    interrupt_ns: Ns,
    origin: String,
}

/// The CPUs that a source is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpus {
    /// One, anywhere.
    One,
    /// One, among the weakest.
    Little,
    /// Each has its own.
    Each,
}

/// A device of a system: which source it triggers, where, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) source: usize,
    pub(crate) cpu: CpuId,
    mean: Ns,
    draws: Draws,
}

impl Device {
    /// The time from its `ordinal`th interrupt to the next.
    pub(crate) fn gap(&self, ordinal: u64) -> Ns {
        let part = in_range(self.draws.nth(ordinal), 0, EXPONENTIAL.len() as u64 - 1);
        (self.mean / 1000).saturating_mul(EXPONENTIAL[part as usize]).max(1)
    }
}

/// The built-in profiles: name and description.
pub fn builtin_names() -> Vec<(String, String)> {
    let described = |(name, text): &(&str, &str)| {
        let file = SystemFile::parse(name, &Source::new(*name, *text)).expect("read by a test");
        (name.to_string(), file.description)
    };
    BUILTIN.iter().map(described).collect()
}

impl SystemFile {
    /// Loads a built-in profile by name, or a file by path. `at`: where it was named.
    pub fn load(name: &str, at: &Location) -> Result<SystemFile, Diagnostics> {
        if let Some((known, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
            return SystemFile::parse(name, &Source::new(format!("<built in> {known}"), *text));
        }
        if name.contains('/') || name.ends_with(".toml") {
            let source = read_source(name)?;
            FileKind::System.expect(&source, at)?;
            return SystemFile::parse(name, &source);
        }
        let mut faults = Diagnostics::new();
        let help = match did_you_mean(name, BUILTIN.iter().map(|(known, _)| *known)) {
            Some(near) => format!("did you mean `{near}`? (`schedtwin list systems` lists all)"),
            None => "`schedtwin list systems` lists them; a path ends in .toml".to_string(),
        };
        faults.push_at(at, format!("there is no system `{name}`"), Some(help));
        Err(faults)
    }

    /// Reads a profile; every fault at once.
    pub fn parse(identity: &str, text: &Arc<Source>) -> Result<SystemFile, Diagnostics> {
        let document = TomlDocument::parse(text)?;
        let mut faults = Diagnostics::new();
        let mut top = document.reader();
        let _: Option<String> = top.required("name", &mut faults);
        let description: Option<String> = top.required("description", &mut faults);
        let capacity = bounded(&mut top, "measured_capacity", 1024, 1..=1024, &mut faults);
        let rcu = top.optional_table("rcu", &mut faults).map(|t| rcu_of(t, capacity, &mut faults));
        let tables = top.tables("source", &mut faults);
        top.finish(&mut faults);
        let mut read: Vec<(Located<String>, Profiled, Vec<Located<String>>)> = Vec::new();
        if tables.len() > SOURCES_MAX {
            faults.push_whole(text, format!("more than {SOURCES_MAX} sources"), None);
        }
        for table in tables.into_iter().take(SOURCES_MAX) {
            read.extend(source_of(table, capacity, &mut faults));
        }
        let names: Vec<String> = read.iter().map(|(name, ..)| name.value.clone()).collect();
        let mut sources = Vec::new();
        for (at, (name, mut source, then)) in read.into_iter().enumerate() {
            if names[..at].contains(&name.value) {
                let message = format!("there are two sources `{}`", name.value);
                faults.push_at(&name.at, message, None);
            }
            for next in then {
                match names.iter().position(|known| *known == next.value) {
                    Some(kind) if kind != at => source.description.then.push(kind),
                    Some(_) => {
                        let message = format!("`{}` triggers itself", next.value);
                        faults.push_at(&next.at, message, None);
                    }
                    None => {
                        let help = did_you_mean(&next.value, names.iter().map(String::as_str));
                        let help = help.map(|near| format!("did you mean `{near}`?"));
                        let message = format!("there is no source `{}`", next.value);
                        faults.push_at(&next.at, message, help);
                    }
                }
            }
            sources.push(source);
        }
        if let Some(circle) = circle_of(&sources) {
            let message = format!("`{}` triggers itself by others", names[circle]);
            faults.push_whole(text, message, None);
        }
        faults.sort();
        let Some(description) = description.filter(|_| faults.is_empty()) else {
            return Err(faults);
        };
        let (identity, text) = (identity.to_string(), text.clone());
        Ok(SystemFile { identity, description, sources, rcu, text })
    }

    /// The text that determines what it does.
    pub fn fingerprint_text(&self) -> &str {
        &self.text.text
    }

    /// Text for `show system`: each source, with the origin of its values.
    pub fn describe(&self) -> String {
        let mut text = format!("system {}\n{}\n", self.identity, self.description);
        if let Some(rcu) = &self.rcu {
            let by = if rcu.offloaded { "threads" } else { "softirqs" };
            text.push_str(&format!("\nRCU: callbacks are run by {by}\n"));
        }
        let width = self.sources.iter().map(|s| s.description.name.len()).max().unwrap_or(0);
        text.push('\n');
        for Profiled { description, cpus, interrupt_ns, origin } in &self.sources {
            let trigger = match description.trigger {
                Trigger::Timer { delay, deferrable, .. } => {
                    let kind = if deferrable { "deferrable timer" } else { "timer" };
                    format!("{kind}, {} ms", delay / NS_PER_MS)
                }
                Trigger::Hrtimer { period } => format!("hrtimer, {} ms", period / NS_PER_MS),
                Trigger::Interrupt => format!("interrupt, every {} us", interrupt_ns / NS_PER_US),
                Trigger::Source => "by another source".to_string(),
            };
            let each = if *cpus == Cpus::Each { " on each CPU" } else { "" };
            let name = &description.name;
            text.push_str(&format!("  {name:width$}  {trigger}{each}\n"));
            text.push_str(&format!("  {:width$}  {origin}\n", ""));
        }
        text
    }

    /// The system on a machine, as its kernel is told.
    pub(crate) fn on(&self, machine: &Machine, seed: u64) -> (SystemDescription, Vec<Device>) {
        let nr_cpus = machine.nr_cpus();
        let all = CpuMask::first(nr_cpus);
        let least = machine.cpus.iter().map(|cpu| cpu.capacity).min().unwrap_or(0);
        let little: Vec<CpuId> = (0..nr_cpus)
            .filter(|cpu| machine.cpus[*cpu].capacity == least)
            .map(|cpu| CpuId(cpu as u16))
            .collect();
        let mut devices = Vec::new();
        let mut sources = Vec::new();
        for (index, profiled) in self.sources.iter().enumerate() {
            let mut source = profiled.description.clone();
            let draws = Draws::new(seed, &source.name, "where");
            // Interrupts are spread over the CPUs that take them, in the order of the file.
            let among = |cpus: &[CpuId]| cpus[devices.len() % cpus.len()];
            let anywhere = CpuId(in_range(draws.nth(0), 0, nr_cpus as u64 - 1) as u16);
            source.starts_on = match profiled.cpus {
                Cpus::Little => among(&little),
                Cpus::One | Cpus::Each => anywhere,
            };
            if profiled.cpus == Cpus::Each {
                source.each = all;
            }
            if source.trigger == Trigger::Interrupt {
                let draws = Draws::new(seed, &source.name, "gap");
                let (cpu, mean) = (source.starts_on, profiled.interrupt_ns);
                devices.push(Device { source: index, cpu, mean, draws });
            }
            sources.push(source);
        }
        // The thread of an interrupt is where the interrupt comes.
        for device in &devices {
            for next in sources[device.source].then.clone() {
                if let Handler::Thread { bound: true, .. } = sources[next].handler {
                    sources[next].starts_on = device.cpu;
                }
            }
        }
        (SystemDescription { sources, rcu: self.rcu.clone() }, devices)
    }

    /// How many devices it has.
    pub(crate) fn nr_devices(&self) -> usize {
        let is_device = |s: &&Profiled| s.description.trigger == Trigger::Interrupt;
        self.sources.iter().filter(is_device).count()
    }
}

/// A number within bounds, or what holds without one.
fn bounded(
    table: &mut TableReader<'_>,
    key: &str,
    otherwise: u64,
    range: std::ops::RangeInclusive<u64>,
    faults: &mut Diagnostics,
) -> u64 {
    match table.optional::<Located<u64>>(key, faults) {
        Some(given) if !range.contains(&given.value) => {
            let message =
                format!("`{key}` is {}, outside {}..={}", given.value, range.start(), range.end());
            faults.push_at(&given.at, message, None);
            otherwise
        }
        Some(given) => given.value,
        None => otherwise,
    }
}

/// Times of runs as work. Two numbers are the median and the 90th percentile: the 10th lies as far below the median in
/// proportion, as in a lognormal distribution, and the 99th follows from the same.
fn run_work(
    table: &mut TableReader<'_>,
    key: &str,
    capacity: u64,
    faults: &mut Diagnostics,
) -> RunWork {
    let at = table.location_of(key);
    let given: Vec<u64> = match table.optional::<Vec<u64>>(key, faults) {
        None => return RunWork::default(),
        Some(given) => given,
    };
    if given.iter().any(|us| *us > 10_000_000) || !given.is_sorted() {
        let message = format!("`{key}` must rise, and be at most 10000000");
        faults.push_at(&at, message, None);
        return RunWork::default();
    }
    let work = |us: u64| us * NS_PER_US * capacity / 1024;
    match given[..] {
        [us] => RunWork([work(us); 4]),
        [p50, p90] => {
            let up = |from: u64| from * p90 / p50.max(1);
            RunWork([work(p50 * p50 / p90.max(1)), work(p50), work(p90), work(up(p90))])
        }
        [p10, p50, p90, p99] => RunWork([work(p10), work(p50), work(p90), work(p99)]),
        _ => {
            let help = "one number; median and 90th percentile; or 10th, 50th, 90th, 99th";
            faults.push_at(&at, format!("`{key}` has {} numbers", given.len()), Some(help.into()));
            RunWork::default()
        }
    }
}

fn rcu_of(mut table: TableReader<'_>, capacity: u64, faults: &mut Diagnostics) -> RcuDescription {
    let _: Option<String> = table.required("origin", faults);
    let rcu = RcuDescription {
        preemptible: table.optional("preemptible", faults).unwrap_or(true),
        offloaded: table.optional("offloaded", faults).unwrap_or(false),
        lazy: table.optional("lazy", faults).unwrap_or(false),
        softirq: run_work(&mut table, "softirq_us", capacity, faults),
        thread: run_work(&mut table, "thread_us", capacity, faults),
        callback: bounded(&mut table, "callback_ns", 0, 0..=1_000_000, faults) * capacity / 1024,
        exit_callbacks: bounded(&mut table, "exit_callbacks", 0, 0..=1000, faults) as u32,
    };
    if rcu.lazy && !rcu.offloaded {
        let message = "`lazy` needs `offloaded = true`".to_string();
        faults.push_at(&table.location_of("lazy"), message, None);
    }
    table.finish(faults);
    rcu
}

/// The trigger of a source, and the mean time between interrupts.
fn trigger_of(
    table: &mut TableReader<'_>,
    faults: &mut Diagnostics,
) -> (Trigger, Ns, Option<Location>) {
    let mut found: Vec<(Trigger, Ns, Location)> = Vec::new();
    if let Some(mut timer) = table.optional_table("timer", faults) {
        let trigger = Trigger::Timer {
            delay: every(&mut timer, faults),
            deferrable: timer.optional("deferrable", faults).unwrap_or(false),
            pinned: timer.optional("pinned", faults).unwrap_or(false),
            rounded: timer.optional("rounded", faults).unwrap_or(false),
        };
        found.push((trigger, 0, timer.location().clone()));
        timer.finish(faults);
    }
    if let Some(mut timer) = table.optional_table("hrtimer", faults) {
        let trigger = Trigger::Hrtimer { period: every(&mut timer, faults) };
        found.push((trigger, 0, timer.location().clone()));
        timer.finish(faults);
    }
    if let Some(mut device) = table.optional_table("interrupt", faults) {
        let mean: Option<u64> = device.required("mean_us", faults);
        let mean = mean.unwrap_or(1).clamp(10, EVERY_MAX_MS * 1000) * NS_PER_US;
        found.push((Trigger::Interrupt, mean, device.location().clone()));
        device.finish(faults);
    }
    if let [_, .., (_, _, at)] = &found[..] {
        let message = "a source has one of `timer`, `hrtimer` and `interrupt`".to_string();
        faults.push_at(at, message, None);
    }
    match found.pop() {
        Some((trigger, mean, at)) => (trigger, mean, Some(at)),
        None => (Trigger::Source, 0, None),
    }
}

/// The period of a timer.
fn every(table: &mut TableReader<'_>, faults: &mut Diagnostics) -> Ns {
    if !table.has("every_ms") {
        let _: Option<u64> = table.required("every_ms", faults);
        return NS_PER_MS;
    }
    bounded(table, "every_ms", 1, 1..=EVERY_MAX_MS, faults) * NS_PER_MS
}

/// The words of `run`.
const RUNS: [(&str, Handler); 10] = [
    ("function", Handler::Function),
    ("softirq", Handler::Softirq(Softirq::Tasklet)),
    ("block-softirq", Handler::Softirq(Softirq::Block)),
    ("net-softirq", Handler::Softirq(Softirq::NetRx)),
    ("work", Handler::Work(Queue::PerCpu { high: false })),
    ("high-work", Handler::Work(Queue::PerCpu { high: true })),
    ("unbound-work", Handler::Work(Queue::Unbound { high: false })),
    ("thread", Handler::Thread { class: ThreadClass::Nice(0), bound: false }),
    ("bound-thread", Handler::Thread { class: ThreadClass::Nice(0), bound: true }),
    ("stopper", Handler::Stopper),
];

/// The words of `cpus`.
const CPUS: [(&str, Cpus); 3] =
    [("one", Cpus::One), ("little", Cpus::Little), ("each", Cpus::Each)];

/// The meaning of one of some words.
fn word_of<T: Copy>(
    given: Option<Located<String>>,
    words: &[(&str, T)],
    faults: &mut Diagnostics,
) -> Option<T> {
    let given = given?;
    if let Some((_, meant)) = words.iter().find(|(word, _)| *word == given.value) {
        return Some(*meant);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let help = Some(format!("one of {}", known.join(", ")));
    faults.push_at(&given.at, format!("unknown word `{}`", given.value), help);
    None
}

fn source_of(
    mut table: TableReader<'_>,
    capacity: u64,
    faults: &mut Diagnostics,
) -> Option<(Located<String>, Profiled, Vec<Located<String>>)> {
    let name: Option<Located<String>> = table.required("name", faults);
    let origin: Option<String> = table.required("origin", faults);
    let (trigger, interrupt_ns, trigger_at) = trigger_of(&mut table, faults);
    let run = table.optional("run", faults);
    let mut handler = word_of(run, &RUNS, faults).unwrap_or(Handler::Function);
    let nice: Option<Located<i64>> = table.optional("nice", faults);
    let fifo: Option<Located<i64>> = table.optional("fifo", faults);
    for (given, range) in [(&nice, -20..=19), (&fifo, 1..=99)] {
        let Some(given) = given else { continue };
        match &mut handler {
            _ if !range.contains(&given.value) => {
                let message = format!("{} is outside {range:?}", given.value);
                faults.push_at(&given.at, message, None);
            }
            Handler::Thread { class, .. } if range == (1..=99) => {
                *class = ThreadClass::Fifo(given.value as i32);
            }
            Handler::Thread { class, .. } => *class = ThreadClass::Nice(given.value as i8),
            _ => faults.push_at(&given.at, "only threads have a class", None),
        }
    }
    let cpus = table.optional("cpus", faults);
    let cpus = word_of(cpus, &CPUS, faults).unwrap_or(Cpus::One);
    if cpus == Cpus::Each
        && let (Trigger::Interrupt, Some(at)) = (trigger, trigger_at)
    {
        faults.push_at(&at, "a device interrupts one CPU", None);
    }
    let work = run_work(&mut table, "run_us", capacity, faults);
    let rcu_callbacks = bounded(&mut table, "rcu_callbacks", 0, 0..=1000, faults) as u32;
    let then: Vec<Located<String>> = table.optional("then", faults).unwrap_or_default();
    table.finish(faults);
    let (name, origin) = (name?, origin?);
    let description = SourceDescription {
        name: name.value.clone(),
        trigger,
        handler,
        work,
        rcu_callbacks,
        then: Vec::new(),
        each: CpuMask::EMPTY,
        starts_on: CpuId(0),
    };
    Some((name, Profiled { description, cpus, interrupt_ns, origin }, then))
}

/// A source that triggers itself by others, if there is one.
fn circle_of(sources: &[Profiled]) -> Option<usize> {
    (0..sources.len()).find(|start| {
        let mut seen = vec![false; sources.len()];
        let mut next = sources[*start].description.then.clone();
        while let Some(at) = next.pop() {
            if at == *start {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                next.extend(&sources[at].description.then);
            }
        }
        false
    })
}

#[cfg(test)]
mod tests;
