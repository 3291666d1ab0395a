// SPDX-License-Identifier: GPL-2.0-or-later
//! The record: what `--record` writes and `explain` reads, complete and lossless.
//!
//! JSON Lines: one object a line, so that a record can be cut, searched and streamed. The first line
//! is the header; every other is one of six kinds, told by the member that is present:
//!
//! ```text
//! {"schema":"schedtwin.record/1","title":"...","nr_cpus":8,"domains":["cpu-little",...],
//!  "policies":[[0,1,2,3],...],"provenance":{"version":"...",...}}                  header (one line)
//! {"task":12,"name":"ui","prio":120}                             a task exists
//! {"task":12,"prio":110}                                         its priority changes
//! {"at":1000,"cpu":3,"fact":{"sched_switch":{"prev":0,"next":12,"prev_state":"R"}}}
//! {"at":1000,"cpu":3,"decision":{"idle":{"state":1,...}}}        why
//! {"at":1000,"power":{"domain":0,"mw":412,"uw":412000}}
//! {"at":1000,"chain":{"policy":1,"more":true,...}}               a need has got its clock, or has gone
//! ```
//!
//! A packed record ([`PACKED`]) says the same without names of members, in less time and space.
//!
//! Times are nanoseconds; lines come in the order in which things happened. Facts are named after
//! the kernel's events, and their members as in [`schedtwin_types::FactKind`].
//!
//! **Reading** is tolerant: a line that cannot be understood is an error that names the line, and
//! reading goes on with the next; members that are not known are ignored, so that later versions can
//! add some. Memory is bounded by [`LINE_BYTES_MAX`].

use crate::atomic_file::Output;
use crate::record_lines::Line;
use crate::tasks::TASKS_MAX;
use crate::{Destination, Meta, Sink, TaskInfo};
use packed::Item;
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Fact, FactKind, MAX_CPUS, NeedChain, Ns, TaskId,
};
use std::fmt;
use std::io::{self, BufRead};

mod packed;
pub(crate) mod varint;

pub use packed::{PACKED, PackedRecord};

pub use crate::record_lines::{
    CandidateLine, ChainEventLine, ChainLine as RecordedChain, DecisionLine as RecordedDecision,
    IdleInputLine, InputLine, PickLine, Text, WaitLine,
};

/// The first line's `schema`.
pub const SCHEMA: &str = "schedtwin.record/1";

/// Longest line that is read. A placement with 256 candidates has 40 KB.
pub const LINE_BYTES_MAX: u64 = 1 << 20;

/// A record being written; see the module.
pub struct Record<D: Destination> {
    output: Output<D>,
    line: Vec<u8>,
}

/// The first line of a record.
fn header_line(meta: Meta) -> Line {
    let policies = meta.policy_cpus.iter().map(|cpus| cpus.iter().map(|c| c.0).collect());
    let provenance = meta.provenance.into_iter().map(|(key, value)| (key, value.into()));
    Line {
        schema: Some(SCHEMA.to_string()),
        title: Some(meta.title),
        nr_cpus: Some(meta.nr_cpus),
        domains: Some(meta.domain_names),
        policies: Some(policies.collect()),
        cgroups: (!meta.cgroups.is_empty()).then_some(meta.cgroups),
        provenance: Some(provenance.collect()),
        ..Line::default()
    }
}

fn push_line(bytes: &mut Vec<u8>, line: &Line) {
    serde_json::to_writer(&mut *bytes, line).expect("plain data, and memory takes it");
    bytes.push(b'\n');
}

impl<D: Destination> Record<D> {
    /// Starts a record with its header.
    pub fn new(destination: D, meta: Meta) -> Record<D> {
        let mut record = Record { output: Output::new(destination), line: Vec::new() };
        record.write(&header_line(meta));
        record
    }

    fn write(&mut self, line: &Line) {
        self.line.clear();
        push_line(&mut self.line, line);
        self.output.write(&self.line);
    }
}

impl<D: Destination> Sink for Record<D> {
    fn task(&mut self, info: &TaskInfo) {
        self.write(&Item::task(info).into());
    }

    fn task_prio(&mut self, id: TaskId, prio: i32) {
        self.write(&Item::Prio(id.0, prio).into());
    }

    fn fact(&mut self, fact: &Fact) {
        self.write(&Item::fact(fact).into());
    }

    fn wants_decisions(&self) -> bool {
        true
    }

    fn decision(&mut self, decision: &DecisionRecord) {
        self.write(&Item::decision(decision).into());
    }

    fn power_uw(&mut self, at: Ns, domain: u16, microwatts: u64) {
        self.write(&Item::Power(at, domain, microwatts).into());
    }

    fn chain(&mut self, chain: &NeedChain) {
        self.write(&Item::chain(chain).into());
    }

    fn read_back(&mut self, at: Ns, why: Why) -> bool {
        self.write(&Item::from((at, why)).into());
        true
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.output.finish()
    }
}

/// One line of a record, read.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The first line.
    Header(Meta),
    /// A task exists.
    Task(TaskInfo),
    /// A task's kernel priority changes.
    Prio(TaskId, i32),
    /// Something happened.
    Fact(Fact),
    /// The kernel decided something: when, where, what.
    Decision(Ns, CpuId, RecordedDecision),
    /// The power of a domain: when, which, microwatts.
    Power(Ns, u16, u64),
    /// A chain from a need to the clock has ended: when, which.
    Chain(Ns, RecordedChain),
}

/// The reason why something happened, which only a record holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A decision of the kernel on this CPU.
    Decision(CpuId, RecordedDecision),
    /// A chain that ends.
    Chain(RecordedChain),
}

/// A line that could not be read.
#[derive(Debug)]
pub struct ReadError {
    /// Its number, from 1; 0 if the file itself cannot be read.
    pub line: u64,
    /// It is an item of a packed record. The header is the first.
    pub packed: bool,
    /// The fault, in words that fit after "failed to read the record".
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.packed { "item" } else { "line" };
        write!(f, "{what} {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// Reads a record line by line.
///
/// ```
/// use schedtwin_trace::record::{Entry, Reader};
/// let text = concat!(
///     r#"{"schema":"schedtwin.record/1","title":"t","nr_cpus":2}"#, "\n",
///     r#"{"at":5,"cpu":1,"fact":{"cpu_idel":{}}}"#, "\n",
///     r#"{"at":7,"cpu":1,"fact":"sched_tick"}"#, "\n",
/// );
/// let entries: Vec<_> = Reader::new(text.as_bytes()).collect();
/// assert!(matches!(entries[0], Ok(Entry::Header(_))));
/// assert!(entries[1].as_ref().unwrap_err().to_string().starts_with("line 2: unknown variant"));
/// assert!(matches!(entries[2], Ok(Entry::Fact(_))));
/// ```
pub struct Reader<R: BufRead> {
    input: R,
    line: u64,
    bytes: Vec<u8>,
    nr_cpus: usize,
    /// It has turned out to be packed.
    packed: bool,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Reader<R> {
        Reader { input, line: 0, bytes: Vec::new(), nr_cpus: 0, packed: false, ended: false }
    }

    /// Returns the item that the last [`Reader::next`] read, as a line of a record of JSON Lines,
    /// without its end.
    pub fn json(&self) -> String {
        let item =
            (self.packed && self.line > 1).then(|| packed::parse(&self.bytes).ok()).flatten();
        match item {
            Some(item) => serde_json::to_string(&Line::from(item))
                .expect("a line has nothing but words and numbers"),
            None => String::from_utf8_lossy(self.bytes.trim_ascii()).into_owned(),
        }
    }

    fn fail(&self, message: impl Into<String>) -> ReadError {
        ReadError { line: self.line, packed: self.packed, message: message.into() }
    }

    /// Reads the next line into `bytes`, without its end; `Ok(false)` at the end of the file.
    fn next_line(&mut self) -> Result<bool, ReadError> {
        self.bytes.clear();
        self.line += 1;
        let mut limited = io::Read::take(&mut self.input, LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.bytes);
        if let Err(error) = read {
            self.ended = true;
            return Err(self.fail(error.to_string()));
        }
        if self.bytes.is_empty() {
            return Ok(false);
        }
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        } else if self.bytes.len() as u64 == LINE_BYTES_MAX {
            if self.line == 1 {
                // No header is that long, and the line of what is no record may have no end.
                return Err(self.fail("not a record: its first line is too long"));
            }
            // Find the end of the overlong line without keeping it.
            if let Err(error) = skip_line(&mut self.input) {
                self.ended = true;
                return Err(self.fail(error.to_string()));
            }
            return Err(self.fail(format!("longer than {LINE_BYTES_MAX} bytes")));
        }
        Ok(true)
    }

    /// Reads the next item of a packed record into `bytes`; `Ok(false)` at the end of the file.
    fn next_item(&mut self) -> Result<bool, ReadError> {
        self.line += 1;
        let read = packed::read_item(&mut self.input, &mut self.bytes);
        read.map_err(|message| {
            // Where the next item begins is not known.
            self.ended = true;
            self.fail(message)
        })
    }

    fn parse(&mut self) -> Result<Entry, ReadError> {
        if self.line == 1
            && let Some(header) = packed::header(&self.bytes).map_err(|m| self.fail(m))?
        {
            self.packed = true;
            self.bytes.drain(..header);
        } else if self.packed {
            let item = packed::parse(&self.bytes).map_err(|error| self.fail(error))?;
            return self.entry(item.into());
        }
        // serde would take an array's elements for the members in order.
        if self.bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(self.fail("not a JSON object"));
        }
        let line: Line = serde_json::from_slice(&self.bytes).map_err(|error| {
            // The line number that serde appends is within this line: always 1.
            let text = error.to_string();
            let message = match text.rsplit_once(" at line 1 column ") {
                Some((message, column)) => format!("{message} (column {column})"),
                None => text,
            };
            self.fail(message)
        })?;
        if self.line == 1 {
            let meta = self.header(line)?;
            self.nr_cpus = meta.nr_cpus;
            return Ok(Entry::Header(meta));
        }
        self.entry(line)
    }

    /// Checks a line that is not the first one, and returns its entry.
    fn entry(&self, line: Line) -> Result<Entry, ReadError> {
        let cpu = match line.cpu {
            Some(cpu) if usize::from(cpu) < self.nr_cpus => Some(CpuId(cpu)),
            Some(cpu) => {
                return Err(self.fail(format!("CPU {cpu}, but there are {} CPUs", self.nr_cpus)));
            }
            None => None,
        };
        if let Some(task) = line.task {
            let (id, Some(prio)) = (self.task(task)?, line.prio) else {
                return Err(self.fail("a task without `prio`"));
            };
            return Ok(match line.name {
                Some(name) => Entry::Task(TaskInfo { id, name, prio }),
                None => Entry::Prio(id, prio),
            });
        }
        let Some(at) = line.at else {
            return Err(self.fail("no `task` and no `at`: not a line of a record"));
        };
        if let (Some(chain), None, None, None) =
            (&line.chain, &line.fact, &line.decision, &line.power)
        {
            self.check_chain(at, chain)?;
            return Ok(Entry::Chain(at, line.chain.expect("looked at")));
        }
        match (cpu, line.fact, line.decision, line.power) {
            (Some(cpu), Some(fact), None, None) => {
                let kind = FactKind::from(fact);
                let mut known = Ok(());
                kind.for_each_task(|task| {
                    if known.is_ok() {
                        known = self.task(task.0).map(|_| ());
                    }
                });
                known?;
                Ok(Entry::Fact(Fact { at, cpu, kind }))
            }
            (Some(cpu), None, Some(decision), None) => Ok(Entry::Decision(at, cpu, decision)),
            (None, Some(_), ..) | (None, _, Some(_), _) => Err(self.fail("missing member `cpu`")),
            (_, None, None, Some(power)) => {
                Ok(Entry::Power(at, power.domain(), power.microwatts()))
            }
            _ => Err(self.fail("one of `fact`, `decision`, `power` and `chain` is expected")),
        }
    }

    /// Refuses times that run backwards, so that readers may subtract them, and things that do not
    /// exist.
    fn check_chain(&self, end_at: Ns, chain: &RecordedChain) -> Result<(), ReadError> {
        let times = [Some(chain.need_at), chain.requested_at, chain.driver_at, Some(end_at)];
        if !times.iter().flatten().is_sorted() {
            return Err(self.fail("the times of a chain run backwards"));
        }
        for event in &chain.events {
            let (cpu, task) = match event {
                ChainEventLine::Need { cpu, task, .. } => (*cpu, *task),
                ChainEventLine::Governor { cpu, .. } => (*cpu, None),
            };
            if usize::from(cpu) >= self.nr_cpus {
                return Err(self.fail(format!("CPU {cpu}, but there are {} CPUs", self.nr_cpus)));
            }
            task.map(|task| self.task(task)).transpose()?;
        }
        Ok(())
    }

    fn task(&self, task: u32) -> Result<TaskId, ReadError> {
        if task < TASKS_MAX {
            Ok(TaskId(task))
        } else {
            Err(self.fail(format!("task {task} is beyond the highest task number {TASKS_MAX}")))
        }
    }

    fn header(&self, line: Line) -> Result<Meta, ReadError> {
        match line.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(other) => {
                return Err(self.fail(format!("schema is `{other}`; `{SCHEMA}` can be read")));
            }
            None => return Err(self.fail(format!("not a record: no `\"schema\":\"{SCHEMA}\"`"))),
        }
        let nr_cpus = line.nr_cpus.unwrap_or(0);
        if nr_cpus == 0 || nr_cpus > MAX_CPUS {
            return Err(self.fail(format!("nr_cpus is {nr_cpus}, not within 1..={MAX_CPUS}")));
        }
        let mut policy_cpus = Vec::new();
        for cpus in line.policies.unwrap_or_default() {
            if let Some(cpu) = cpus.iter().find(|cpu| usize::from(**cpu) >= nr_cpus) {
                return Err(self.fail(format!("policy of CPU {cpu}, but there are {nr_cpus} CPUs")));
            }
            policy_cpus.push(CpuMask::from_cpus(cpus.into_iter().map(CpuId)));
        }
        let provenance = line.provenance.unwrap_or_default().into_iter();
        let text = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(Meta {
            title: line.title.unwrap_or_default(),
            nr_cpus,
            domain_names: line.domains.unwrap_or_default(),
            policy_cpus,
            cgroups: line.cgroups.unwrap_or_default(),
            provenance: provenance.map(|(key, value)| (key, text(value))).collect(),
        })
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, ReadError>;

    /// The next line. After an error in the header there is no next one.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.ended {
                return None;
            }
            match if self.packed { self.next_item() } else { self.next_line() } {
                Ok(false) if self.line == 1 => {
                    self.ended = true;
                    return Some(Err(self.fail("the file is empty")));
                }
                Ok(false) => return None,
                Ok(true) if !self.packed && self.line > 1 && self.bytes.trim_ascii().is_empty() => {
                    continue;
                }
                Ok(true) => {
                    let entry = self.parse();
                    self.ended |= self.line == 1 && entry.is_err();
                    return Some(entry);
                }
                Err(error) => {
                    self.ended |= self.line == 1;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Reads up to and including the next line end, keeping nothing.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                input.consume(end + 1);
                return Ok(());
            }
            None => {
                let length = buffer.len();
                input.consume(length);
            }
        }
    }
}
