// SPDX-License-Identifier: GPL-2.0-or-later
//! An execution: what a scheduler did, read from ftrace text, of the real kernel and of the twin alike.
//!
//! The twin's execution is not taken from its memory: it writes its trace as text and this reader reads it back,
//! so that a figure has one definition and one resolution (1 us) on both sides.

use super::scenario::{Seeds, Variant};
use super::workload::BoardWorkload;
use schedtwin_engine::output::Output;
use schedtwin_engine::twin::Twin;
use schedtwin_input::Diagnostics;
use schedtwin_trace::event::{Left, SourceFault, TraceEventKind, TraceSource};
use schedtwin_trace::sources;
use schedtwin_trace::{Destination, FtraceText, GrowingFile, Meta};
use schedtwin_types::{CpuMask, Ns};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A thread, by pid.
pub type Pid = u32;

/// Something of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, trace clock.
    pub at: Ns,
    /// On which CPU it was printed.
    pub cpu: usize,
    /// The event.
    pub what: What,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `sched_switch`; pid 0 is idle.
    Switch {
        /// The task that ran.
        prev: Pid,
        /// How it left.
        left: Left,
        /// The task that runs.
        next: Pid,
    },
    /// `sched_waking`.
    Waking(Pid),
    /// `sched_wakeup`.
    Wakeup(Pid),
    /// `cpu_idle`; `None`: back.
    Idle(usize, Option<u32>),
    /// `cpu_idle_miss`: too shallow (`true`) or too deep.
    Miss(bool),
    /// `cpu_frequency`.
    Frequency(usize, u32),
}

/// The execution of a workload, in the order of its trace.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// The events.
    pub seen: Vec<Seen>,
    /// The task of the workload that a thread belongs to; others have none.
    pub task_of: BTreeMap<Pid, usize>,
    /// Threads and the CPUs on which they began, in that order.
    pub born: Vec<(Pid, usize)>,
    /// When the work began.
    pub start: Ns,
    /// When it was over.
    pub end: Ns,
}

/// The name of the task that a thread belongs to: what stands before its number.
fn task_name(comm: &str) -> &str {
    &comm[..comm.find(['-', '.']).unwrap_or(comm.len())]
}

impl Execution {
    /// Reads a trace of a workload. `None` for `start`: the trace ends with the work.
    pub fn read(
        lines: impl BufRead,
        workload: &BoardWorkload,
        start: Option<Ns>,
    ) -> Result<Execution, SourceFault> {
        let mut found = Execution::default();
        let names: Vec<&str> = workload.tasks.iter().map(|t| t.name.text.as_str()).collect();
        let mut source = sources::read(lines)?;
        while let Some(event) = source.next_event()? {
            found.end = event.at;
            let what = match event.kind {
                TraceEventKind::Switch { prev: Some(prev), left, next } => {
                    for task in [prev, next] {
                        // A thread is called after its parent until it has a name of its own.
                        let comm = task_name(source.names().text(task.comm));
                        if let Some(index) = names.iter().position(|name| *name == comm) {
                            found.task_of.insert(task.pid, index);
                        }
                    }
                    What::Switch { prev: prev.pid, left, next: next.pid }
                }
                TraceEventKind::Waking { task, .. } => What::Waking(task.pid),
                TraceEventKind::Wakeup { task, .. } => What::Wakeup(task.pid),
                TraceEventKind::WakeupNew { task, target: Some(target) } => {
                    found.born.push((task.pid, target.index()));
                    continue;
                }
                TraceEventKind::Idle { cpu, state } => What::Idle(cpu.index(), state),
                TraceEventKind::Frequency { cpu, khz } => What::Frequency(cpu.index(), khz),
                TraceEventKind::IdleMiss { below, .. } => What::Miss(below),
                _ => continue,
            };
            found.seen.push(Seen { at: event.at, cpu: event.cpu.index(), what });
        }
        if let Some(damage) = source.report().damages.first() {
            return Err(SourceFault::Unusable(damage.to_string()));
        }
        let length = Ns::from(workload.seconds) * 1_000_000_000;
        match start {
            Some(start) => {
                found.start = start;
                found.end = start + length;
            }
            None => found.start = found.end.saturating_sub(length),
        }
        Ok(found)
    }

    /// Reads a recording; `.xz` is unpacked.
    pub fn recorded(path: &Path, workload: &BoardWorkload) -> Result<Execution, SourceFault> {
        Execution::read(schedtwin_trace::packed::open(path)?.reader, workload, None)
    }

    /// Runs the twin.
    pub fn of_twin(
        workload: &BoardWorkload,
        seeds: Seeds,
        variant: &Variant,
    ) -> Result<Execution, Diagnostics> {
        let text = twin_trace(workload, seeds, variant)?;
        let read = Execution::read(text.as_slice(), workload, Some(workload.start(seeds)));
        Ok(read.expect("our own text can be read"))
    }
}

/// The trace of a run of the twin, as text.
pub fn twin_trace(
    workload: &BoardWorkload,
    seeds: Seeds,
    variant: &Variant,
) -> Result<Vec<u8>, Diagnostics> {
    let scenario = workload.scenario(seeds, variant)?;
    let machine = scenario.machine();
    let meta = Meta {
        title: workload.name.clone(),
        nr_cpus: machine.nr_cpus(),
        policy_cpus: machine
            .domains
            .iter()
            .map(|d| CpuMask::from_cpus(d.cpus.iter().copied()))
            .collect(),
        ..Meta::default()
    };
    let text = Text::default();
    let nr_clocks = scenario.machine().domains.len();
    let mut output = Output::new(
        Some(GrowingFile::none(Box::new(FtraceText::new(text.clone(), meta)))),
        None,
        nr_clocks,
    );
    let mut twin: Twin = scenario.twin(seeds.twin);
    twin.introduce(&mut output);
    // The last facts are stamped up to a path's cost ahead of the event.
    while twin.now() <= workload.end(seeds) && twin.step(&mut output) {}
    output.finish().expect("memory takes everything");
    let mut text = text.0.lock().expect("nobody else writes");
    Ok(std::mem::take(&mut text))
}

/// Text in memory.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody else writes").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Destination for Text {
    fn commit(self) -> io::Result<()> {
        Ok(())
    }
}
