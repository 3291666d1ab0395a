// SPDX-License-Identifier: GPL-2.0-or-later
//! The events of a run as tables, with the names that ftrace and LISA have for events and fields.
//!
//! The texts are those of a trace that `schedtwin run --trace FILE.txt` writes; only the time is exact, where text has
//! microseconds.

use crate::Error;
use schedtwin_engine::Scenario;
use schedtwin_input::{Diagnostics, Source, did_you_mean};
use schedtwin_trace::{Destination, FtraceText, Sink, TaskInfo};
use schedtwin_types::{DecisionRecord, Fact, NeedChain, Ns, TaskId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex};

/// All events of one name, a row each, in time order.
///
/// Columns are called as [LISA](https://tooling.sites.arm.com/lisa/latest/) calls them: `Time` in seconds, `__cpu`, `__pid`
/// and `__comm` of the task that ran there, then the event's own fields; and `time_ns`, which is exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Nanoseconds since the start.
    pub time_ns: Vec<Ns>,
    /// The CPU on which it happened.
    pub cpu: Vec<u32>,
    /// The task that ran there; 0: the idle task.
    pub pid: Vec<i64>,
    /// Its name.
    pub comm: Vec<Arc<str>>,
    /// Fields in their order, with a value for each event.
    pub fields: Vec<(String, Field)>,
}

/// The values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Whole numbers; nothing where an event does not have the field.
    Numbers(Vec<Option<i64>>),
    /// Texts, likewise.
    Texts(Vec<Option<Arc<str>>>),
}

impl Events {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Runs a scenario and takes the events of this name. It is a fault if there are none.
    pub(crate) fn of(scenario: &Scenario, seed: u64, event: &str) -> Result<Events, Error> {
        let taken = Arc::new(Mutex::new(Taken { event: event.to_string(), ..Taken::default() }));
        let lines = Lines::default();
        let text = FtraceText::new(lines.clone(), scenario.meta(seed));
        mem::take(&mut *lines.0.lock().expect(UNSHARED));
        let sink = Taker { text, lines, taken: taken.clone() };
        scenario.run_into(seed, Box::new(sink))?;
        let taken = mem::take(&mut *taken.lock().expect(UNSHARED));
        if taken.rows.is_empty() {
            return Err(no_event(event, &taken.others).into());
        }
        Ok(taken.columns())
    }
}

fn no_event(event: &str, others: &BTreeSet<String>) -> Diagnostics {
    let mut faults = Diagnostics::new();
    let names: Vec<&str> = others.iter().map(String::as_str).collect();
    let near = did_you_mean(event, names.iter().copied());
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    let source = Source::new("event", event);
    faults.push(&source, 0..event.len(), format!("the run has no event `{event}`"), Some(help));
    faults
}

/// Locks here are held by one thread, which does not panic with them.
const UNSHARED: &str = "nobody panics while it is held";

/// Lines that were written and not yet taken.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect(UNSHARED).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for Lines {
    fn commit(self) -> io::Result<()> {
        Ok(())
    }
}

/// What was taken of a trace.
#[derive(Default)]
struct Taken {
    event: String,
    /// Names of other events that there are.
    others: BTreeSet<String>,
    rows: Vec<Row>,
    texts: BTreeMap<String, Arc<str>>,
}

struct Row {
    at: Ns,
    cpu: u32,
    pid: i64,
    comm: Arc<str>,
    fields: Vec<(Arc<str>, Arc<str>)>,
}

impl Taken {
    /// A text that may have been there before.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(text.to_string(), new.clone());
        new
    }

    /// Takes a line, `COMM-PID [CPU] TIME: EVENT: FIELDS`, if it is of the event.
    fn line(&mut self, at: Ns, line: &str) -> Option<()> {
        let (task, rest) = line.split_once(" [")?;
        let (cpu, rest) = rest.split_once("] ")?;
        let (_, rest) = rest.split_once(": ")?;
        let (event, fields) = rest.split_once(": ")?;
        if event != self.event {
            if !self.others.contains(event) {
                self.others.insert(event.to_string());
            }
            return None;
        }
        let (comm, pid) = task.trim().rsplit_once('-')?;
        let mut told: Vec<(&str, String)> = Vec::new();
        for word in fields.split(' ').filter(|word| !word.is_empty() && *word != "==>") {
            match (word.split_once('='), told.last_mut()) {
                (Some((key, value)), _) if !key.is_empty() => told.push((key, value.to_string())),
                // A name with a space.
                (_, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
                (_, None) => {}
            }
        }
        let told: Vec<(Arc<str>, Arc<str>)> =
            told.into_iter().map(|(key, value)| (self.text(key), self.text(&value))).collect();
        let comm = self.text(comm);
        let (cpu, pid) = (cpu.parse().ok()?, pid.trim().parse().ok()?);
        self.rows.push(Row { at, cpu, pid, comm, fields: told });
        Some(())
    }

    fn columns(&self) -> Events {
        let mut names: Vec<Arc<str>> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.fields) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let field = |name: &Arc<str>| {
            let value = |row: &Row| {
                row.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            };
            let texts: Vec<Option<Arc<str>>> = self.rows.iter().map(value).collect();
            let number = |text: &Option<Arc<str>>| match text {
                Some(text) => text.parse().ok().map(Some),
                None => Some(None),
            };
            match texts.iter().map(number).collect::<Option<Vec<Option<i64>>>>() {
                Some(numbers) => (name.to_string(), Field::Numbers(numbers)),
                None => (name.to_string(), Field::Texts(texts)),
            }
        };
        Events {
            time_ns: self.rows.iter().map(|row| row.at).collect(),
            cpu: self.rows.iter().map(|row| row.cpu).collect(),
            pid: self.rows.iter().map(|row| row.pid).collect(),
            comm: self.rows.iter().map(|row| row.comm.clone()).collect(),
            fields: names.iter().map(field).collect(),
        }
    }
}

/// A trace as text, of which each line is taken with the exact time of its fact.
struct Taker {
    text: FtraceText<Lines>,
    lines: Lines,
    taken: Arc<Mutex<Taken>>,
}

impl Sink for Taker {
    fn task(&mut self, info: &TaskInfo) {
        self.text.task(info);
    }

    fn task_prio(&mut self, id: TaskId, prio: i32) {
        self.text.task_prio(id, prio);
    }

    fn fact(&mut self, fact: &Fact) {
        self.text.fact(fact);
        let lines = mem::take(&mut *self.lines.0.lock().expect(UNSHARED));
        let mut taken = self.taken.lock().expect(UNSHARED);
        for line in String::from_utf8_lossy(&lines).lines() {
            taken.line(fact.at, line);
        }
    }

    fn decision(&mut self, _: &DecisionRecord) {}

    fn chain(&mut self, _: &NeedChain) {}

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
