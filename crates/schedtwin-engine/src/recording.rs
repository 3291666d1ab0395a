// SPDX-License-Identifier: GPL-2.0-or-later
//! A trace of a real device becomes a workload: joins the reader of traces with what a workload keeps of them.
//!
//! **What the device could do.** Work needs the capacity and the highest frequency of every recorded
//! CPU. They come from the machine that the trace was recorded on, see `device`. Before a CPU's first
//! `cpu_frequency` it is taken to run at its highest frequency.
//!
//! All of this is told in [`TraceRecording::assumptions`] and [`TraceRecording::clusters`].

mod device;
#[cfg(test)]
mod tests;

use crate::result::Metric;
use schedtwin_input::{Diagnostics, Source};
use schedtwin_machine::Machine;
use schedtwin_trace::ftrace_read::{self, Context, Event, Fault, Left, Line, Named};
use schedtwin_types::{Ns, metric};
use schedtwin_workload::Workload;
use schedtwin_workload::recorded::{
    Builder, Done, Full, PathCosts, STEPS_MAX, Seen, Silicon, THREADS_MAX, Waker,
};
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;

pub use device::{Capacities, Device, FEW_FREQUENCIES, RecordedCluster, cpu_list, cpus_text};
pub use schedtwin_trace::ftrace_read::Summary as TraceSummary;
pub use schedtwin_workload::recorded::{Excluded, Recorded, RecordedThread};

/// A trace, read.
#[derive(Clone, Debug)]
pub struct TraceRecording {
    /// What it asks the twin to do.
    pub workload: Workload,
    /// What it held of work.
    pub recorded: Recorded,
    /// What it held of lines.
    pub trace: TraceSummary,
    /// Wakeups whose lines do not say whether an interrupt made them: taken as the running task's.
    pub unknown_context: u64,
    /// It has no `sched_waking`, so latencies begin with `sched_wakeup`.
    pub without_waking: bool,
    /// What had to be assumed of the recorded device, a sentence each.
    pub assumptions: Vec<String>,
    /// Its CPUs by clock and capacity, in the order of their lowest.
    pub clusters: Vec<RecordedCluster>,
}

/// Reads a trace. `recorded_on`: the machine that it comes from; `replayed_on`: whose kernel paths
/// will be charged. `duration`: how much of it, from its beginning.
pub fn read_trace<'a>(
    path: &Path,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    let name = path.display().to_string();
    match ftrace_read::open(path) {
        Ok(input) => read_trace_from(input, &name, recorded_on, replayed_on, duration),
        Err(error) => Err(refusal(&name, format!("cannot be read: {error}"), None)),
    }
}

/// As [`read_trace`], from any lines.
pub fn read_trace_from<'a>(
    input: impl BufRead,
    name: &str,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    let mut feed = Feed {
        builder: Builder::new(),
        duration,
        start: None,
        too_long: false,
        unknown: 0,
        waking: 0,
    };
    let trace = ftrace_read::read(input, &mut |line, event| feed.line(line, event))
        .map_err(|fault| fault_of(name, &fault))?;
    let Feed { builder, too_long, unknown, waking, .. } = feed;
    if too_long {
        let help = "--duration replays its beginning only".to_owned();
        return Err(refusal(name, "the trace is longer than a day", Some(help)));
    }
    let device: Device<'_> = recorded_on.into();
    check(name, &builder, device.machine)?;
    let device::Silicon { cpus, clusters, assumptions } =
        device::silicon(&builder, device).map_err(|fault| refusal(name, fault, None))?;
    let recording = builder.finish(&Silicon { cpus, paths: path_costs(replayed_on) });
    let recorded = recording.recorded().clone();
    if recorded.span_ns == 0 {
        return Err(refusal(name, "the trace has no length: all its events are at one time", None));
    }
    Ok(TraceRecording {
        workload: Workload::recorded(short_name(name), recording),
        recorded,
        trace,
        unknown_context: unknown,
        without_waking: waking == 0,
        assumptions,
        clusters,
    })
}

/// What only the replay of a recording measures.
pub(crate) fn metrics(done: &Done) -> [Metric; 2] {
    let share = 100.0 * done.work as f64 / done.work_recorded as f64;
    let share = (done.work_recorded > 0).then_some(share);
    [
        metric::REPLAYED_WORK.value("share", Vec::new(), share),
        metric::REPLAYED_SLEEPS.value("sum", Vec::new(), Some(done.sleeps as f64)),
    ]
}

/// The longest recording, as the longest run of the command line: sums of time over a thousand CPUs fit 64 bits.
const LONGEST: Ns = 24 * 3600 * 1_000_000_000;

/// Hands events to the builder.
struct Feed {
    builder: Builder,
    duration: Option<Ns>,
    start: Option<Ns>,
    too_long: bool,
    unknown: u64,
    waking: u64,
}

impl Feed {
    fn line(&mut self, line: &Line<'_>, event: Event<'_>) -> ControlFlow<()> {
        let at = line.at;
        let start = *self.start.get_or_insert(at);
        if self.duration.is_some_and(|duration| at.saturating_sub(start) > duration) {
            return ControlFlow::Break(());
        }
        self.too_long = at.saturating_sub(start) > LONGEST;
        if self.too_long {
            return ControlFlow::Break(());
        }
        let builder = &mut self.builder;
        builder.time(at);
        builder.cpu_exists(line.cpu);
        match event {
            Event::Switch { prev, left, next } => {
                let leaves = (left == Left::Asleep, left == Left::Dead);
                builder.switch(at, line.cpu, seen(prev), leaves, seen(next));
            }
            Event::Waking(task) | Event::Wakeup(task) | Event::WakeupNew(task) => {
                let Some(seen) = seen(task) else { return ControlFlow::Continue(()) };
                let by = match line.context() {
                    _ if line.pid == 0 => Waker::Interrupt,
                    Context::Hardirq | Context::Softirq => Waker::Interrupt,
                    Context::Task => Waker::Task(line.pid),
                    Context::Unknown => {
                        self.unknown += 1;
                        Waker::Task(line.pid)
                    }
                };
                match event {
                    Event::Waking(_) => {
                        self.waking += 1;
                        builder.waking(at, by, seen);
                    }
                    Event::WakeupNew(_) => builder.wakeup_new(at, by, seen),
                    _ => builder.wakeup(at, by, seen),
                }
            }
            Event::Fork { parent, child_comm, child } => {
                builder.fork(at, parent, child_comm, child);
            }
            Event::Idle { cpu, .. } => builder.cpu_exists(cpu),
            Event::Frequency { cpu, khz } => builder.frequency(at, cpu, khz),
            // The last switch tells an exit as well, after what exiting takes.
            Event::Exit { .. } | Event::Other => {}
        }
        if builder.full().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn seen(task: Named<'_>) -> Option<Seen<'_>> {
    (task.pid != 0).then_some(Seen { comm: task.comm, pid: task.pid, prio: task.prio })
}

/// What makes a trace useless although its lines are right.
fn check(name: &str, builder: &Builder, recorded_on: &Machine) -> Result<(), Diagnostics> {
    let shorter = "--duration replays its beginning only".to_owned();
    match builder.full() {
        Some(Full::Threads) => {
            let message = format!("more than {THREADS_MAX} threads run in it");
            return Err(refusal(name, message, Some(shorter)));
        }
        Some(Full::Steps) => {
            let message = format!("it has more than {STEPS_MAX} wakeups, sleeps and runs");
            return Err(refusal(name, message, Some(shorter)));
        }
        None => {}
    }
    if builder.switches() == 0 {
        let help = "record with -e sched_switch -e sched_waking -e cpu_frequency -e cpu_idle";
        let message = "the trace has no sched_switch: it does not tell who ran when";
        return Err(refusal(name, message, Some(help.to_owned())));
    }
    let (has, needs) = (recorded_on.nr_cpus(), builder.nr_cpus());
    if needs > has {
        let message = format!(
            "the trace has a CPU {}, and {} has {has} CPUs",
            needs - 1,
            recorded_on.identity
        );
        let help = format!(
            "say with --recorded-on MACHINE which machine it comes from, one with at least {needs} CPUs"
        );
        return Err(refusal(name, message, Some(help)));
    }
    Ok(())
}

/// What the twin will charge for the paths that recorded runs contain.
fn path_costs(machine: &Machine) -> PathCosts {
    let costs = &machine.path_costs;
    let search = costs.energy_per_domain_ns * machine.domains.len() as u64;
    PathCosts {
        wake: costs.syscall_ns + costs.wakeup_ns + search + costs.ipi_send_ns,
        sleep: costs.syscall_ns + costs.schedule_ns + costs.context_switch_ns,
        fork: costs.syscall_ns + costs.fork_ns,
        exit: costs.exit_ns + costs.schedule_ns,
        priority: costs.syscall_ns,
    }
}

/// The name of a trace without folders and endings.
fn short_name(name: &str) -> String {
    let stem = Path::new(name).file_name().map_or(name.to_owned(), |n| n.to_string_lossy().into());
    let stem = stem.strip_suffix(".xz").unwrap_or(&stem);
    let stem = stem.strip_suffix(".txt").unwrap_or(stem);
    if stem == "-" { "standard input".to_owned() } else { stem.to_owned() }
}

fn refusal(name: &str, message: impl Into<String>, help: Option<String>) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new(name, ""), message, help);
    faults
}

/// The faults of a file, each with its line.
fn fault_of(name: &str, fault: &Fault) -> Diagnostics {
    match fault {
        Fault::Io(error) => refusal(name, format!("cannot be read: {error}"), None),
        Fault::NotATrace(_) => {
            let help = "expected the text of /sys/kernel/tracing/trace or of trace-cmd report; \
                        plain or packed with xz";
            refusal(name, fault.to_string(), Some(help.to_owned()))
        }
        Fault::Lines(bad, count) => {
            let mut faults = Diagnostics::new();
            for bad in bad {
                faults.push_whole(&Source::new(name, ""), bad.to_string(), None);
            }
            let more = count - bad.len() as u64;
            if more > 0 {
                faults.push_whole(&Source::new(name, ""), format!("and {more} more lines"), None);
            }
            faults
        }
    }
}
