// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists what happened, and why, as plain text.
//!
//! A fact is one line: time, CPU, event, details. A decision is an indented block with what the
//! kernel looked at and the rule that decided:
//!
//! ```text
//!     0.000004000 [001] placement           ui-12: CPU 1 -> 6, feec: cheapest
//!                           cpu  role       util  capacity  use  energy delta  max util
//!                             1  prev        120       124  96%        123456       400
//!                       =>    6  max_spare    40      1024   3%         99999       300
//!     0.000004100 [001] sched_wakeup        ui-12 on CPU 6
//! ```
//!
//! It reads records ([`crate::record`]), which hold decisions, and our own Perfetto traces
//! ([`crate::perfetto_read`]), which hold facts only. A record is streamed; of a trace the matching
//! facts are kept, since its CPUs have to be merged.

mod chain;
mod legend;
mod pick;
mod waits;
mod words;

use crate::perfetto_read::{self, Event};
use crate::record::{Entry, Reader, RecordedDecision};
use crate::tasks::Tasks;
use crate::{Meta, TaskInfo, open_readable};
use chain::WhereTimeWent;
pub use legend::LEGEND;
use schedtwin_types::printable;
use schedtwin_types::wildcard::{Wildcards, matches};
use schedtwin_types::{CpuId, CpuMask, DecisionRecord, Fact, FactKind, Ns, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use waits::Waits;

/// The kind of things that a listing has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// Facts, decisions and chains.
    #[default]
    Entries,
    /// Chains from need to clock, with where the time of all of them went.
    Chains,
    /// The longest waits for a CPU.
    Waits,
}

impl What {
    /// [`Query::limit`] where nobody says one.
    pub const fn usual_limit(self) -> u64 {
        match self {
            What::Entries | What::Chains => 100_000,
            What::Waits => 20,
        }
    }
}

/// The conditions of a listing: it lists everything for which all given conditions hold.
#[derive(Clone, Debug)]
pub struct Query {
    /// Around this time.
    pub at: Option<Ns>,
    /// How far around it, nanoseconds to each side.
    pub window_ns: Ns,
    /// About tasks of this name: exact, with `*` and `?`, without the number that a workload's
    /// threads carry (`ui` for `ui-3`), `NAME-ID`, or the bare number.
    pub task: Option<String>,
    /// On, to or about this CPU.
    pub cpu: Option<CpuId>,
    /// Of entries those of these names alone, as the listing has them (`sched_switch`, `pick`); empty: all.
    pub events: Vec<String>,
    /// At most so many entries, or waits.
    pub limit: u64,
    /// The kind of things that are listed.
    pub what: What,
    /// As JSON Lines: what is listed, and before it the record's head and tasks, so that it is a record again.
    pub json: bool,
}

impl Default for Query {
    /// Everything; half a millisecond to each side; a hundred thousand lines.
    fn default() -> Query {
        Query {
            at: None,
            window_ns: 500_000,
            task: None,
            cpu: None,
            events: Vec::new(),
            limit: What::Entries.usual_limit(),
            what: What::Entries,
            json: false,
        }
    }
}

/// How a listing went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries, or waits, that matched.
    pub matched: u64,
    /// How many of them were listed: at most [`Query::limit`].
    pub listed: u64,
    /// Whether a task of the asked name exists, if one was asked for.
    pub task_found: bool,
    /// Names that one might have meant: of tasks, if none of the asked name exists.
    pub task_names: BTreeSet<String>,
    /// Names of the entries that were looked at, if some were asked for by name.
    pub event_names: BTreeSet<String>,
    /// The number of CPUs.
    pub nr_cpus: usize,
    /// When the last entry about what was asked for is, before the window, if nothing in the window matched.
    pub before: Option<Ns>,
    /// When the last event is, if it lies before everything that was asked for.
    pub ends_before: Option<Ns>,
    /// The first [`PROBLEMS_MAX`] lines that could not be read, and why.
    pub problems: Vec<String>,
    /// How many there were.
    pub problem_count: u64,
}

/// Problems that a [`Summary`] tells in full.
pub const PROBLEMS_MAX: usize = 20;

/// Facts may come a little out of order: a remote wakeup is stamped when the path that causes it
/// has been paid for. Reading of a record stops so far after the window.
const DISORDER_NS_MAX: Ns = 10_000_000;

/// Lists what `path` holds: a record, or a Perfetto trace that schedtwin wrote.
pub fn explain(path: &Path, query: &Query, out: &mut dyn Write) -> io::Result<Summary> {
    let mut input = BufReader::with_capacity(1 << 16, open_readable(path)?);
    match input.fill_buf()?.first() {
        // The tag of a trace's first packet; a record begins with a brace, or says that it is packed.
        Some(0x0a) => explain_perfetto(input, query, out),
        _ => explain_record(input, query, out),
    }
}

/// Lists a record.
pub fn explain_record(
    input: impl BufRead,
    query: &Query,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    let mut listing = Listing::new(query);
    // A chain and a wait are listed where they end, which may be long after the window.
    let until = query.at.filter(|_| query.what == What::Entries);
    let last = until.map(|at| at.saturating_add(query.window_ns).saturating_add(DISORDER_NS_MAX));
    let mut end = 0;
    let mut waits = Waits::default();
    let mut reader = Reader::new(input);
    while let Some(entry) = reader.next() {
        let wanted = match entry {
            Ok(Entry::Header(meta)) => {
                listing.header_seen = true;
                listing.header(&meta);
                None
            }
            Ok(Entry::Task(info)) => {
                listing.task(&info);
                None
            }
            Ok(Entry::Prio(id, prio)) => {
                listing.tasks.set_prio(id, prio);
                None
            }
            Ok(Entry::Power(..)) => continue,
            Ok(Entry::Fact(Fact { at, cpu, kind })) if query.what == What::Waits => {
                listing.attached(&kind);
                waits.fact(at, cpu, &kind, &listing);
                Some((at, None))
            }
            Ok(Entry::Fact(Fact { at, cpu, kind })) => {
                listing.attached(&kind);
                let wanted = listing.wants(at, Some(cpu), &kind);
                Some((at, wanted.then(|| listing.fact(at, Some(cpu), &kind))))
            }
            Ok(Entry::Decision(at, cpu, decision)) => {
                let wanted = listing.wants_decision(at, cpu, &decision);
                Some((at, wanted.then(|| listing.decision(at, cpu, &decision))))
            }
            Ok(Entry::Chain(at, chain)) => {
                let wanted = listing.wants_chain(at, &chain);
                if wanted {
                    listing.time_went.add(at, &chain);
                }
                Some((at, wanted.then(|| listing.chain(at, &chain))))
            }
            Err(error) => {
                if !listing.header_seen {
                    let message = format!("read the record: {error}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                listing.summary.problem_count += 1;
                if listing.summary.problems.len() < PROBLEMS_MAX {
                    listing.summary.problems.push(error.to_string());
                }
                continue;
            }
        };
        let Some((at, line)) = wanted else {
            // What is listed is a record again, but for waits.
            if query.json && query.what != What::Waits {
                writeln!(out, "{}", reader.json())?;
            }
            continue;
        };
        end = end.max(at);
        if last.is_some_and(|last| at > last) {
            break;
        }
        match line {
            Some(_) if query.json => listing.write(&(reader.json() + "\n"), out)?,
            Some(line) => listing.write(&line, out)?,
            None => {}
        }
    }
    if query.what == What::Waits {
        waits.finish(end, &mut listing, out)?;
    }
    if query.what == What::Chains && !query.json && listing.summary.matched > 0 {
        listing.time_went.write(out)?;
    }
    Ok(listing.finish(end))
}

/// Lists a Perfetto trace that schedtwin wrote.
pub fn explain_perfetto(
    input: impl BufRead,
    query: &Query,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    if query.json {
        let message = "print a trace as JSON: only a record is; run --record writes one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let (mut matching, mut end) = (Vec::new(), 0);
    let mut unnamed = Query { task: None, ..query.clone() };
    unnamed.limit = u64::MAX;
    let filter = Listing::new(&unnamed);
    let contents = perfetto_read::read(input, &mut |event| {
        let (at, cpu, kind) = match event {
            Event::Fact(fact) => (fact.at, Some(fact.cpu), fact.kind),
            Event::Unplaced { at, kind } => (at, None, kind),
            Event::Power { .. } => return,
        };
        end = end.max(at);
        if query.what == What::Waits || filter.wants(at, cpu, &kind) {
            matching.push((at, cpu, kind));
        }
    })
    .map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("read the trace: {error}"))
    })?;
    matching.sort_by_key(|(at, ..)| *at);
    let mut listing = Listing::new(query);
    listing.header(&contents.meta);
    contents.tasks.iter().for_each(|info| listing.task(info));
    if query.what == What::Waits {
        let mut waits = Waits::default();
        for (at, cpu, kind) in
            matching.iter().filter_map(|(at, cpu, kind)| Some((*at, (*cpu)?, kind)))
        {
            waits.fact(at, cpu, kind, &listing);
        }
        waits.finish(end, &mut listing, out)?;
        return Ok(listing.finish(end));
    }
    for (at, cpu, kind) in matching {
        if listing.wants(at, cpu, &kind) {
            let line = listing.fact(at, cpu, &kind);
            listing.write(&line, out)?;
        }
    }
    Ok(listing.finish(end))
}

/// A time as a user writes it: `1.234s`, `12.5ms`, `300us`, `1000ns`, or seconds without a unit.
///
/// ```
/// use schedtwin_trace::explain::parse_time;
/// assert_eq!(parse_time("1.234s"), Ok(1_234_000_000));
/// assert_eq!(parse_time("0.5us"), Ok(500));
/// assert!(parse_time("soon").is_err());
/// ```
pub fn parse_time(text: &str) -> Result<Ns, String> {
    let text = text.trim();
    let error = || format!("`{text}` is no time; write it like 1.234s, 12.5ms, 300us or 1000ns");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_ns: u64 = match unit.trim() {
        "" | "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        _ => return Err(error()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(error());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| error())? };
    // Digits below a nanosecond are cut off.
    let mut fraction_ns = 0;
    let mut digit_ns = unit_ns;
    for digit in fraction.chars() {
        digit_ns /= 10;
        fraction_ns += u64::from(digit.to_digit(10).ok_or_else(error)?) * digit_ns;
    }
    whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(fraction_ns)).ok_or_else(error)
}

/// Words facts and decisions that were never written to a file, as a listing does.
pub struct Teller {
    listing: Listing<'static>,
}

/// Everything: a teller does not choose.
static ALL: Query = Query {
    at: None,
    window_ns: 0,
    task: None,
    cpu: None,
    events: Vec::new(),
    limit: u64::MAX,
    what: What::Entries,
    json: false,
};

impl Default for Teller {
    fn default() -> Teller {
        Teller { listing: Listing::new(&ALL) }
    }
}

impl Teller {
    /// Takes the names of the policies from the header.
    pub fn header(&mut self, meta: &Meta) {
        self.listing.header(meta);
    }

    /// A task exists.
    pub fn task(&mut self, info: &TaskInfo) {
        self.listing.task(info);
    }

    /// A task as the listing calls it: `ui-12`.
    pub fn name(&self, task: TaskId) -> String {
        self.listing.who(task)
    }

    /// A fact in words: one line.
    pub fn fact(&self, fact: &Fact) -> String {
        self.listing.fact(fact.at, Some(fact.cpu), &fact.kind)
    }

    /// A decision in words: a line and what the kernel looked at.
    pub fn decision(&self, record: &DecisionRecord) -> String {
        self.listing.decision(record.at, record.cpu, &(&record.decision).into())
    }
}

/// Most names in [`Summary::task_names`].
const NAMES_MAX: usize = 1000;

/// A name without the number that tells a workload's threads apart: `ui` of `ui-3`, and of `ui-`,
/// whose number did not fit a `comm`.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((stem, number)) if number.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// Chooses and words facts and decisions.
struct Listing<'a> {
    query: &'a Query,
    /// Policies by index, as Linux and the machine name them.
    policies: Vec<String>,
    policy_cpus: Vec<CpuMask>,
    cgroups: Vec<String>,
    tasks: Tasks,
    /// Tasks whose names match.
    named: BTreeSet<TaskId>,
    header_seen: bool,
    /// As [`Summary::before`].
    before: Cell<Option<Ns>>,
    /// As [`Summary::event_names`].
    event_names: RefCell<BTreeSet<String>>,
    summary: Summary,
    time_went: WhereTimeWent,
}

impl<'a> Listing<'a> {
    fn new(query: &'a Query) -> Listing<'a> {
        Listing {
            query,
            policies: Vec::new(),
            policy_cpus: Vec::new(),
            cgroups: Vec::new(),
            tasks: Tasks::default(),
            named: BTreeSet::new(),
            header_seen: false,
            before: Cell::new(None),
            event_names: RefCell::default(),
            summary: Summary { task_found: query.task.is_none(), ..Summary::default() },
            time_went: WhereTimeWent::default(),
        }
    }

    fn header(&mut self, meta: &Meta) {
        self.summary.nr_cpus = meta.nr_cpus;
        let name = |(index, cpus): (usize, &CpuMask)| {
            let number = cpus.lowest().map_or(index.to_string(), |cpu| cpu.to_string());
            // Whose power is told first are the clocks; a header without them may name anything.
            let names = &meta.domain_names;
            let domain = names.get(index).filter(|_| names.len() >= meta.policy_cpus.len());
            let named = |domain: &String| format!("policy{number} ({})", printable::line(domain));
            domain.map_or(format!("policy{number}"), named)
        };
        self.policy_cpus = meta.policy_cpus.clone();
        self.cgroups = meta.cgroups.iter().map(|path| printable::line(path).into_owned()).collect();
        self.policies = meta.policy_cpus.iter().enumerate().map(name).collect();
    }

    /// A policy as Linux names it, `policy4 (mid)`; by its index where the header does not say.
    fn policy(&self, index: u16) -> String {
        let named = self.policies.get(usize::from(index)).cloned();
        named.unwrap_or_else(|| format!("policy {index}"))
    }

    /// Returns the summary of the whole after its last event, at `end`.
    fn finish(mut self, end: Ns) -> Summary {
        if !self.summary.task_found {
            let names = self.tasks.iter().map(|info| without_number(&info.name).to_string());
            self.summary.task_names = names.take(NAMES_MAX).collect();
        }
        self.summary.event_names = self.event_names.take();
        self.summary.before = self.before.get().filter(|_| self.summary.matched == 0);
        let from = self.query.at.map_or(0, |at| at.saturating_sub(self.query.window_ns));
        self.summary.ends_before = (from > end).then_some(end);
        self.summary
    }

    fn write(&mut self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        self.summary.matched += 1;
        if self.summary.listed < self.query.limit {
            self.summary.listed += 1;
            out.write_all(printable::lines(text).as_bytes())?;
        }
        Ok(())
    }

    fn task(&mut self, info: &TaskInfo) {
        self.tasks.insert(info);
        if let Some(pattern) = &self.query.task {
            let numbered = format!("{}-{}", info.name, info.id);
            let matches = *pattern == info.id.to_string()
                || matches(pattern, &info.name, Wildcards::StarAndOne)
                || pattern == without_number(&info.name)
                || matches(pattern, &numbered, Wildcards::StarAndOne);
            if matches {
                self.named.insert(info.id);
                self.summary.task_found = true;
            }
        }
    }

    /// A task that gets into the cgroup that is asked for, or into one within, is asked for.
    fn attached(&mut self, kind: &FactKind) {
        let (FactKind::CgroupAttach { task, group }, Some(wanted)) = (kind, &self.query.task)
        else {
            return;
        };
        if !wanted.starts_with('/') {
            return;
        }
        if Path::new(&self.cgroup(*group)).starts_with(wanted) {
            self.named.insert(*task);
            self.summary.task_found = true;
        } else {
            self.named.remove(task);
        }
    }

    /// Asked of what meets all other conditions: the last such entry before the window is remembered.
    fn in_window(&self, at: Ns) -> bool {
        let Some(center) = self.query.at else { return true };
        if center.abs_diff(at) > self.query.window_ns {
            if at < center {
                self.before.set(self.before.get().max(Some(at)));
            }
            return false;
        }
        true
    }

    /// Whether something that lasted from one moment to another was under way in the window.
    fn is_under_way(&self, (since, until): (Ns, Ns)) -> bool {
        self.query.at.is_none_or(|center| {
            since <= center.saturating_add(self.query.window_ns)
                && until >= center.saturating_sub(self.query.window_ns)
        })
    }

    /// Whether entries of a name are asked for; the name is remembered.
    fn is_asked(&self, name: &str) -> bool {
        let asked = &self.query.events;
        if !asked.is_empty() && !self.event_names.borrow().contains(name) {
            self.event_names.borrow_mut().insert(name.to_owned());
        }
        asked.is_empty() || asked.iter().any(|wanted| wanted == name)
    }

    fn wants(&self, at: Ns, cpu: Option<CpuId>, kind: &FactKind) -> bool {
        let task = || {
            let mut named = false;
            kind.for_each_task(|task| named |= self.named.contains(&task));
            named
        };
        let on = |wanted: CpuId| {
            cpu == Some(wanted)
                || match *kind {
                    FactKind::Wakeup { target, .. } | FactKind::Ipi { target, .. } => {
                        target == wanted
                    }
                    FactKind::Migrate { from, to, .. } => from == wanted || to == wanted,
                    _ => false,
                }
        };
        self.query.what == What::Entries
            && (self.query.task.is_none() || task())
            && self.query.cpu.is_none_or(on)
            && (self.query.events.is_empty() || self.is_asked(kind.words(self, at).0))
            && self.in_window(at)
    }

    fn wants_decision(&self, at: Ns, cpu: CpuId, decision: &RecordedDecision) -> bool {
        let task = |id: &u32| self.named.contains(&TaskId(*id));
        let about_task = match decision {
            RecordedDecision::Placement { task: id, .. } => task(id),
            RecordedDecision::Preemption { task: id, curr, .. } => task(id) || task(curr),
            RecordedDecision::Balance { moved, .. } => moved.iter().any(task),
            RecordedDecision::Pick { prev, next, candidates, .. } => {
                let waits = candidates.iter().filter_map(|candidate| candidate.task);
                task(prev) || task(next) || waits.into_iter().any(|id| task(&id))
            }
            RecordedDecision::Frequency { .. } | RecordedDecision::Idle { .. } => false,
        };
        let about_cpu = |wanted: CpuId| {
            cpu == wanted
                || match decision {
                    RecordedDecision::Placement { prev, chosen, .. } => {
                        *prev == wanted.0 || *chosen == wanted.0
                    }
                    RecordedDecision::Frequency { inputs, .. } => {
                        inputs.iter().any(|input| input.cpu == wanted.0)
                    }
                    RecordedDecision::Balance { dst, src, .. } => {
                        *dst == wanted.0 || *src == Some(wanted.0)
                    }
                    RecordedDecision::Idle { .. }
                    | RecordedDecision::Preemption { .. }
                    | RecordedDecision::Pick { .. } => false,
                }
        };
        self.query.what == What::Entries
            && (self.query.task.is_none() || about_task)
            && self.query.cpu.is_none_or(about_cpu)
            && self.is_asked(words::name(decision))
            && self.in_window(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_name() {
        for (name, stem) in [
            ("ui-3", "ui"),
            ("app-events-1", "app-events"),
            ("Binder:dequeue-", "Binder:dequeue"),
            ("RenderThread", "RenderThread"),
            ("crtc-commit", "crtc-commit"),
        ] {
            assert_eq!(without_number(name), stem, "{name}");
        }
    }

    #[test]
    fn times() {
        for (text, ns) in [
            ("1.234s", Some(1_234_000_000)),
            ("1.234567891", Some(1_234_567_891)),
            ("1.2345678919", Some(1_234_567_891)),
            (".5ms", Some(500_000)),
            ("12.5 ms", Some(12_500_000)),
            ("300us", Some(300_000)),
            ("7ns", Some(7)),
            ("7.9ns", Some(7)),
            ("", None),
            (".", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("5min", None),
            ("99999999999999s", None),
        ] {
            assert_eq!(parse_time(text).ok(), ns, "{text}");
        }
    }
}
