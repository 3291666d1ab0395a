// SPDX-License-Identifier: GPL-2.0-or-later
//! A trace of a real device becomes a workload: joins the reader of traces with what a workload keeps of them.
//!
//! **What the device could do.** Work needs the capacity and the highest frequency of every recorded
//! CPU. They come from the machine that the trace was recorded on, see `device`. Before a CPU's first
//! `cpu_frequency` it is taken to run at its highest frequency.
//!
//! All of this is told in [`TraceRecording::assumptions`] and [`TraceRecording::clusters`].

mod costs;
mod device;
mod handlers;
mod origin;
mod other_machine;
mod parting;
mod profile;
#[cfg(test)]
mod tests;
mod ticks;

use crate::result::Metric;
use handlers::Handlers;
use schedtwin_input::{Diagnostics, Source};
use schedtwin_machine::Machine;
use schedtwin_trace::event::{
    EventTask, Interrupt, Left, Missing, NameId, Names, Place, SourceFault, SourceReport,
    StartingThread, TraceEvent, TraceEventKind, TraceHeader, TraceSource,
};
use schedtwin_trace::sources;
use schedtwin_types::{CpuId, CpuMask, MAX_CPUS, Ns, Policy, metric};
use schedtwin_workload::Workload;
use schedtwin_workload::recorded::{
    Builder, Done, Full, Moment, PathCosts, STEPS_MAX, Seen, Silicon, THREADS_MAX, ThreadFacts,
    Waker, frame_slice,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use ticks::Ticks;

pub use costs::{MeasuredCosts, MeasuredKey, SAMPLES_LEAST, Spread, measure_costs};
pub use device::{Capacities, Device, FEW_FREQUENCIES, RecordedCluster, cpu_list, cpus_text};
pub use origin::Origin;
pub use parting::{Differences, First, Kind, Parting, parting};
pub use profile::{ExtractedProfile, ProfileOptions, Symbols, profile};
pub use schedtwin_trace::event::PowerRail;
pub use schedtwin_workload::recorded::{Excluded, Recorded, RecordedThread};

/// The counts of events and lines in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSummary {
    /// The information in the file beside its events.
    pub header: TraceHeader,
    /// Events, of whatever tracepoint.
    pub events: u64,
    /// Events by tracepoint.
    pub by_name: BTreeMap<String, u64>,
    /// Events that a replay does not use.
    pub unused: u64,
    /// Those by tracepoint.
    pub unused_by_name: BTreeMap<String, u64>,
    /// 1 if the file ends in the middle of an event; it is not among the events.
    pub cut: u64,
    /// What it lacks behind the cut, where it tells that.
    pub missing: Option<Missing>,
    /// Pieces of another machine, as of a guest, that are left out.
    pub elsewhere: u64,
    /// What was left out because the buffer of a CPU begins later than others.
    pub late: LateBuffers,
    /// Suspends of the machine, whose time nobody has.
    pub suspends: Suspends,
    /// Lines that are no events, comments and the known headings apart.
    pub foreign: u64,
    /// Events that are a little earlier than the one before.
    pub disordered: u64,
    /// Events that the recorder says it lost.
    pub lost: u64,
    /// Times the recorder lost events without saying how many.
    pub lost_uncounted: u64,
}

/// The part of a recording before the buffers of all CPUs have begun: what other CPUs have of it is no whole picture, so it is not
/// replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateBuffers {
    /// CPUs whose buffers begin within it.
    pub cpus: Vec<u16>,
    /// Events before.
    pub events: u64,
    /// How long it is.
    pub ns: Ns,
}

/// Suspends of the recorded machine. Its time goes on without them: nobody runs, waits or sleeps then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspends {
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub ns: Ns,
}

/// A trace, read.
#[derive(Clone, Debug)]
pub struct TraceRecording {
    /// The workload that it asks the twin to run.
    pub workload: Workload,
    /// The work that it held.
    pub recorded: Recorded,
    /// The summary of its lines.
    pub trace: TraceSummary,
    /// The kernel that recorded, as far as the file tells it.
    pub origin: Origin,
    /// Wakeups whose lines do not say whether an interrupt made them: taken as the running task's.
    pub unknown_context: u64,
    /// It has no `sched_waking`, so latencies begin with `sched_wakeup`.
    pub without_waking: bool,
    /// Assumptions about the recorded device, a sentence each.
    pub assumptions: Vec<String>,
    /// Its CPUs by clock and capacity, in the order of their lowest.
    pub clusters: Vec<RecordedCluster>,
    /// What became of each sleep, if [`read_trace_with_moments`] read it.
    pub moments: Arc<[Moment]>,
}

/// Reads a trace. `recorded_on`: the machine that it comes from; `replayed_on`: whose kernel paths
/// will be charged. `duration`: how much of it, from its beginning.
pub fn read_trace<'a>(
    path: &Path,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    read_file(Feed { duration, ..Feed::default() }, path, recorded_on.into(), replayed_on)
}

/// As [`read_trace`], of what comes `skip` after the recording's beginning.
pub fn read_trace_behind<'a>(
    path: &Path,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    skip: Ns,
) -> Result<TraceRecording, Diagnostics> {
    read_file(Feed { skip, ..Feed::default() }, path, recorded_on.into(), replayed_on)
}

/// As [`read_trace`], and keeps what became of each sleep, for [`parting`].
pub fn read_trace_with_moments<'a>(
    path: &Path,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    let mut feed = Feed { duration, ..Feed::default() };
    feed.builder.keep_moments();
    read_file(feed, path, recorded_on.into(), replayed_on)
}

/// As [`read_trace`], from `skip` to `until` after the recording's beginning, without the threads of some classes.
pub fn read_trace_without<'a>(
    path: &Path,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    classes: BTreeSet<String>,
    Range { start: skip, end: until }: Range<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    let mut feed = Feed { skip, duration: Some(until), ..Feed::default() };
    feed.builder.leave_out(classes);
    read_file(feed, path, recorded_on.into(), replayed_on)
}

/// As [`read_with`], of a file.
fn read_file(
    feed: Feed,
    path: &Path,
    recorded_on: Device<'_>,
    replayed_on: &Machine,
) -> Result<TraceRecording, Diagnostics> {
    let name = path.display().to_string();
    let source = sources::open(path).map_err(|fault| unreadable(&name, &fault))?;
    read_with(feed, source, &name, recorded_on, replayed_on)
}

/// As [`read_trace`], from any text or other content of a file.
pub fn read_trace_from<'a>(
    content: impl std::io::BufRead,
    name: &str,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    match sources::read(content) {
        Ok(source) => read_events(source, name, recorded_on, replayed_on, duration),
        Err(fault) => Err(unreadable(name, &fault)),
    }
}

/// As [`read_trace`], from the events of any source.
pub fn read_events<'a>(
    source: impl TraceSource,
    name: &str,
    recorded_on: impl Into<Device<'a>>,
    replayed_on: &Machine,
    duration: Option<Ns>,
) -> Result<TraceRecording, Diagnostics> {
    let feed = Feed { duration, ..Feed::default() };
    read_with(feed, source, name, recorded_on.into(), replayed_on)
}

fn read_with(
    mut feed: Feed,
    mut source: impl TraceSource,
    name: &str,
    device: Device<'_>,
    replayed_on: &Machine,
) -> Result<TraceRecording, Diagnostics> {
    while let Some(event) = source.next_event().map_err(|fault| unreadable(name, &fault))? {
        if feed.event(&event, source.names()).is_break() {
            break;
        }
    }
    if source.report().damage_count > 0 {
        return Err(damaged(name, source.report()));
    }
    let trace = feed.summary(&source);
    feed.describe_as_told_before(&trace.header.threads);
    let Feed { mut builder, too_long, unknown, waking, ticks, .. } = feed;
    if too_long {
        let help = "--duration replays its beginning only".to_owned();
        return Err(refusal(name, "the trace is longer than a day", Some(help)));
    }
    check(name, &builder, device.machine)?;
    let device::Silicon { cpus, clusters, mut assumptions, own_numbers } =
        device::silicon(&builder, device).map_err(|fault| refusal(name, fault, None))?;
    for thread in &trace.header.threads {
        builder.describe(thread.pid, facts(thread));
    }
    let same_numbers = own_numbers && device.machine.identity == replayed_on.identity;
    let recording = builder.finish(&Silicon { cpus, paths: path_costs(replayed_on), same_numbers });
    let recorded = recording.recorded().clone();
    if recorded.bound > 0 && !same_numbers {
        assumptions.push(format!(
            "{} threads that were bound to CPUs may use all here, for {} numbers its CPUs otherwise",
            recorded.bound, replayed_on.identity
        ));
    }
    if recorded.span_ns == 0 {
        return Err(refusal(name, "the trace has no length: all its events are at one time", None));
    }
    Ok(TraceRecording {
        origin: Origin::of(&trace, &recorded, ticks.hz()),
        moments: recording.moments().clone(),
        workload: Workload::recorded(short_name(name), recording),
        recorded,
        trace,
        unknown_context: unknown,
        without_waking: waking == 0,
        assumptions,
        clusters,
    })
}

/// Returns the metrics that only the replay of a recording measures.
pub(crate) fn metrics(done: &Done) -> Vec<Metric> {
    let share = 100.0 * done.work as f64 / done.work_recorded as f64;
    let share = (done.work_recorded > 0).then_some(share);
    let early: u64 = done.early.iter().map(|(_, count)| count).sum();
    let mut metrics = vec![
        metric::REPLAYED_WORK.value("share", Vec::new(), share),
        metric::REPLAYED_SLEEPS.value("sum", Vec::new(), Some(done.sleeps as f64)),
        metric::REPLAYED_EARLY_WAKEUPS.value("sum", Vec::new(), Some(early as f64)),
    ];
    metrics.extend(done.early.iter().take(EARLY_NAMES).map(|(name, count)| {
        let labels = vec![("task", name.to_string())];
        metric::REPLAYED_EARLY_WAKEUPS.value("sum", labels, Some(*count as f64))
    }));
    for frames in &done.frames {
        let labels = || vec![("slice", frames.slice.to_owned())];
        for (stat, percent) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let ms = Some(frames.quantile_ms(percent));
            metrics.push(metric::REPLAYED_FRAME_DURATION.value(stat, labels(), ms));
        }
        metrics.push(metric::REPLAYED_JANK.value("share", labels(), frames.jank_pct()));
    }
    metrics
}

/// Names of threads whose early wakeups are told apart.
const EARLY_NAMES: usize = 5;

/// The longest recording, as the longest run of the command line: sums of time over a thousand CPUs fit 64 bits.
const LONGEST: Ns = 24 * 3600 * 1_000_000_000;

/// The CPUs that threads may use, by pid.
type AllowedByPid = BTreeMap<u32, CpuMask>;
/// Lower and upper clamps of threads, by pid.
type ClampsByPid = BTreeMap<u32, (Option<u16>, Option<u16>)>;

/// Hands events to the builder.
#[derive(Default)]
struct Feed {
    builder: Builder,
    duration: Option<Ns>,
    /// Events before that much after the beginning are left out.
    skip: Ns,
    start: Option<Ns>,
    too_long: bool,
    unknown: u64,
    waking: u64,
    handlers: Handlers,
    ticks: Ticks,
    late: LateBuffers,
    /// Events since the beginning of what is replayed.
    events: u64,
    suspends: Suspends,
    /// When the machine fell asleep, by the trace's clock.
    asleep_since: Option<Ns>,
    /// What goes on if the beginning moves: of each CPU its frequency, of each thread what it may use and its clamps.
    khz: Vec<u32>,
    /// Of each CPU the limits of its clock.
    limits: BTreeMap<u16, (u32, u32)>,
    allowed: AllowedByPid,
    clamps: ClampsByPid,
    /// Those at the beginning.
    told_before: (AllowedByPid, ClampsByPid),
    /// Events, and those that are not used, by the number of their tracepoint's name.
    counts: Vec<(u64, u64)>,
}

impl Feed {
    fn event(&mut self, event: &TraceEvent, names: &Names) -> ControlFlow<()> {
        let at = self.awake(event);
        self.count(event, names);
        if event.kind == TraceEventKind::Begins {
            self.begin_again(at, event.cpu);
            return ControlFlow::Continue(());
        }
        if matches!(event.kind, TraceEventKind::FrameBegin { .. } | TraceEventKind::FrameEnd { .. })
        {
            // Spans of the frame timeline are of no CPU, and begin before the recorder does.
            return ControlFlow::Continue(());
        }
        self.events += 1;
        let start = *self.start.get_or_insert(at);
        if self.duration.is_some_and(|duration| at.saturating_sub(start) > duration) {
            return ControlFlow::Break(());
        }
        self.too_long = at.saturating_sub(start) > LONGEST;
        if self.too_long {
            return ControlFlow::Break(());
        }
        let cpu = event.cpu.index();
        self.handlers.event(event, names);
        self.ticks.event(event, names);
        if at.saturating_sub(start) < self.skip {
            // Clocks go on as they are.
            self.clock(at, event.kind);
            return ControlFlow::Continue(());
        }
        let builder = &mut self.builder;
        builder.time(at);
        builder.cpu_exists(cpu);
        match event.kind {
            TraceEventKind::Switch { prev, left, next } => {
                let leaves = (left.sleeps(), left == Left::Dead);
                let prev = prev.and_then(|prev| seen(prev, names));
                builder.switch(at, cpu, prev, leaves, seen(next, names));
            }
            TraceEventKind::Waking { task, .. }
            | TraceEventKind::Wakeup { task, .. }
            | TraceEventKind::WakeupNew { task, .. } => {
                let Some(seen) = seen(task, names) else { return ControlFlow::Continue(()) };
                let by = match event.context.interrupt {
                    _ if event.context.pid == 0 => self.handlers.waker(cpu),
                    Interrupt::Hardirq | Interrupt::Softirq => self.handlers.waker(cpu),
                    Interrupt::Task => Waker::Task(event.context.pid),
                    Interrupt::Unknown => {
                        self.unknown += 1;
                        Waker::Task(event.context.pid)
                    }
                };
                match event.kind {
                    TraceEventKind::Waking { .. } => {
                        self.waking += 1;
                        builder.waking(at, by, seen);
                    }
                    TraceEventKind::WakeupNew { .. } => builder.wakeup_new(at, by, seen),
                    _ => builder.wakeup(at, by, seen),
                }
            }
            TraceEventKind::Fork { parent, child_comm, child } => {
                builder.fork(at, parent, names.text(child_comm), child);
            }
            TraceEventKind::Exec { pid, old_pid } => builder.exec(at, old_pid, pid),
            TraceEventKind::Idle { cpu, state } => builder.idle(at, cpu.index(), state),
            kind @ (TraceEventKind::Frequency { .. } | TraceEventKind::FrequencyLimits { .. }) => {
                self.clock(at, kind);
            }
            TraceEventKind::Affinity { pid, cpus } => {
                let cpus = mask_of_bits(cpus);
                builder.affinity(pid, cpus);
                self.allowed.insert(pid, cpus);
            }
            TraceEventKind::Clamp { pid, min, max } => {
                builder.clamps(pid, min, max);
                self.clamps.insert(pid, (min, max));
            }
            TraceEventKind::SliceBegin { name, .. } => {
                builder.slice_begin(at, event.context.pid, frame_slice(names.text(name)));
            }
            TraceEventKind::SliceEnd { .. } => builder.slice_end(at, event.context.pid),
            TraceEventKind::Lost { .. } => builder.lost(cpu),
            // The last switch tells an exit as well, after what exiting takes.
            _ => {}
        }
        match self.builder.full() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// The time of an event without the suspends before it; while the machine sleeps it stands still.
    fn awake(&mut self, event: &TraceEvent) -> Ns {
        if let TraceEventKind::Suspend { begins } = event.kind {
            match (begins, self.asleep_since) {
                (true, None) => self.asleep_since = Some(event.at),
                (false, Some(since)) => {
                    self.asleep_since = None;
                    self.suspends.count += 1;
                    self.suspends.ns += event.at.saturating_sub(since);
                }
                _ => {}
            }
        }
        let at = self.asleep_since.map_or(event.at, |since| event.at.min(since));
        at.saturating_sub(self.suspends.ns)
    }

    /// A clock gets another frequency, or other limits.
    fn clock(&mut self, at: Ns, kind: TraceEventKind) {
        match kind {
            TraceEventKind::Frequency { cpu, khz } => {
                self.builder.frequency(at, cpu.index(), khz);
                self.note_khz(cpu, khz);
            }
            TraceEventKind::FrequencyLimits { cpu, min_khz, max_khz } => {
                self.builder.frequency_limits(at, cpu.index(), min_khz, max_khz);
                self.limits.insert(cpu.0, (min_khz, max_khz));
            }
            _ => {}
        }
    }

    fn note_khz(&mut self, cpu: CpuId, khz: u32) {
        if cpu.index() >= self.khz.len() {
            self.khz.resize(cpu.index() + 1, 0);
        }
        self.khz[cpu.index()] = khz;
    }

    /// The events of a CPU are complete from now on only: the recording begins here. Clocks and what threads may do go on.
    fn begin_again(&mut self, at: Ns, cpu: CpuId) {
        if self.events > 0 {
            self.late.cpus.push(cpu.0);
            self.late.events += std::mem::take(&mut self.events);
            self.late.ns += at.saturating_sub(self.start.unwrap_or(at));
        }
        self.start = Some(at);
        let before = std::mem::take(&mut self.builder);
        if before.keeps_moments() {
            self.builder.keep_moments();
        }
        self.builder.time(at);
        for other in 0..before.nr_cpus().max(cpu.index() + 1) {
            self.builder.cpu_exists(other);
        }
        for (cpu, khz) in self.khz.iter().enumerate().filter(|(_, khz)| **khz > 0) {
            self.builder.frequency(at, cpu, *khz);
        }
        for (cpu, (min_khz, max_khz)) in &self.limits {
            self.builder.frequency_limits(at, usize::from(*cpu), *min_khz, *max_khz);
        }
        self.told_before = (self.allowed.clone(), self.clamps.clone());
    }

    /// What events in front of the beginning told of threads that the file does not describe otherwise.
    fn describe_as_told_before(&mut self, described: &[StartingThread]) {
        let (mut allowed, mut clamps) = std::mem::take(&mut self.told_before);
        for thread in described {
            allowed.remove(&thread.pid);
            clamps.remove(&thread.pid);
        }
        let pids: BTreeSet<u32> = allowed.keys().chain(clamps.keys()).copied().collect();
        for pid in pids {
            let clamps = clamps.get(&pid);
            let clamps = clamps.map(|(min, max)| (min.unwrap_or(0), max.unwrap_or(1024)));
            let facts = ThreadFacts { policy: None, affinity: allowed.get(&pid).copied(), clamps };
            self.builder.describe(pid, facts);
        }
    }

    fn count(&mut self, event: &TraceEvent, names: &Names) {
        use TraceEventKind as Kind;
        if matches!(event.kind, Kind::Lost { .. } | Kind::Begins) {
            return;
        }
        let used = matches!(
            event.kind,
            Kind::Switch { .. }
                | Kind::Waking { .. }
                | Kind::Wakeup { .. }
                | Kind::WakeupNew { .. }
                | Kind::Fork { .. }
                | Kind::Exec { .. }
                | Kind::Exit { .. }
                | Kind::Idle { .. }
                | Kind::Frequency { .. }
                | Kind::FrequencyLimits { .. }
                | Kind::IrqEntry { .. }
                | Kind::IrqExit { .. }
                | Kind::SoftirqEntry { .. }
                | Kind::SoftirqExit { .. }
                | Kind::VectorEntry { .. }
                | Kind::VectorExit { .. }
                | Kind::Affinity { .. }
                | Kind::Clamp { .. }
                | Kind::Suspend { .. }
        );
        let used = match event.kind {
            Kind::SliceBegin { name, .. } => frame_slice(names.text(name)).is_some(),
            _ => used,
        };
        let name = event.name.index();
        if name >= self.counts.len() {
            self.counts.resize(name + 1, (0, 0));
        }
        self.counts[name].0 += 1;
        self.counts[name].1 += u64::from(!used);
    }

    fn summary(&self, source: &impl TraceSource) -> TraceSummary {
        let (report, names) = (source.report(), source.names());
        let mut summary = TraceSummary {
            header: source.header().clone(),
            cut: report.cut,
            foreign: report.foreign,
            missing: report.missing,
            elsewhere: report.elsewhere,
            late: self.late.clone(),
            suspends: self.suspends,
            disordered: report.disordered,
            lost: report.lost().events,
            lost_uncounted: report.lost().uncounted,
            ..TraceSummary::default()
        };
        for (name, &(events, unused)) in self.counts.iter().enumerate() {
            summary.events += events;
            summary.unused += unused;
            let name = || names.text(NameId(name as u32)).to_owned();
            if events > 0 && summary.by_name.len() < NAMES_KEPT {
                summary.by_name.insert(name(), events);
            }
            if unused > 0 && summary.unused_by_name.len() < NAMES_KEPT {
                summary.unused_by_name.insert(name(), unused);
            }
        }
        summary
    }
}

/// Names of tracepoints that are kept apart: a kernel has some 2000, a trace tens.
const NAMES_KEPT: usize = 4096;

/// What a file says of a thread beside its events, in the words of a workload.
fn facts(thread: &StartingThread) -> ThreadFacts {
    // include/uapi/linux/sched.h
    let policy = thread.policy.and_then(|number| {
        Some(match number {
            0 => Policy::Normal,
            1 => Policy::Fifo,
            2 => Policy::Rr,
            3 => Policy::Batch,
            5 => Policy::Idle,
            6 => Policy::Deadline,
            7 => Policy::Ext,
            _ => return None,
        })
    });
    ThreadFacts { policy, affinity: thread.affinity, clamps: thread.clamps }
}

/// CPUs 0 to 63 from bits.
fn mask_of_bits(bits: u64) -> CpuMask {
    (0..MAX_CPUS.min(64)).filter(|cpu| bits >> cpu & 1 != 0).map(|cpu| CpuId(cpu as u16)).collect()
}

fn seen(task: EventTask, names: &Names) -> Option<Seen<'_>> {
    let EventTask { comm, pid, prio } = task;
    (pid != 0).then(|| Seen { comm: names.text(comm), pid, prio })
}

/// Finds faults that make a trace useless although its lines are right.
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

/// Returns the costs that the twin will charge for the paths that recorded runs contain.
fn path_costs(machine: &Machine) -> PathCosts {
    let costs = &machine.path_costs;
    let search = costs.energy_per_domain_ns * machine.domains.len() as u64;
    PathCosts {
        wake: costs.syscall_ns + costs.wakeup_ns + search + costs.ipi_send_ns,
        sleep: costs.syscall_ns + costs.schedule_ns + costs.context_switch_ns,
        fork: costs.syscall_ns + costs.fork_ns,
        exec: costs.syscall_ns,
        exit: costs.exit_ns + costs.schedule_ns,
        priority: costs.syscall_ns,
    }
}

/// The name of a trace without folders and endings.
fn short_name(name: &str) -> String {
    let stem = Path::new(name).file_name().map_or(name.to_owned(), |n| n.to_string_lossy().into());
    let packed = [".xz", ".gz", ".zst", ".zip"];
    let stem = packed.iter().find_map(|ending| stem.strip_suffix(ending)).unwrap_or(&stem);
    let stem = stem.strip_suffix(".txt").unwrap_or(stem);
    if stem == "-" { "standard input".to_owned() } else { stem.to_owned() }
}

fn refusal(name: &str, message: impl Into<String>, help: Option<String>) -> Diagnostics {
    let mut faults = Diagnostics::new();
    faults.push_whole(&Source::new(name, ""), message, help);
    faults
}

/// A file that is no recording, or that cannot be read.
pub fn unreadable(name: &str, fault: &SourceFault) -> Diagnostics {
    match fault {
        SourceFault::Io(error) => refusal(name, format!("cannot be read: {error}"), None),
        SourceFault::Unusable(why) => refusal(name, why, Some(sources::KNOWN.to_owned())),
    }
}

/// All damage of a file, each with its place.
fn damaged(name: &str, report: &SourceReport) -> Diagnostics {
    let mut faults = Diagnostics::new();
    for damage in &report.damages {
        faults.push_whole(&Source::new(name, ""), damage.to_string(), None);
    }
    let more = report.damage_count - report.damages.len() as u64;
    if more > 0 {
        let what = match report.damages.first().map(|damage| damage.place) {
            Some(Place::Byte(_)) => "places",
            _ => "lines",
        };
        faults.push_whole(&Source::new(name, ""), format!("and {more} more {what}"), None);
    }
    faults
}
