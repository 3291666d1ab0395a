// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded work on other kernels: a comparison, and how far each kernel's replay is the recording.
//!
//! A replay is a [`crate::compare`] whose workload is a trace. Its [`Fidelity`] says what of the trace was
//! used, what was left out and what assumed, and sets measurements of the recording beside those of
//! every kernel's runs. A [`Verdict`] for each kernel says whether it placed the work as recorded. They need not agree: the recorded device had another kernel, caches, interrupts and threads
//! that the twin has not. They tell how far to trust the table.

pub mod halves;
mod rails;
pub mod rtapp;
pub mod trust;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use schedtwin_engine::recording::{Excluded, RecordedCluster, TraceRecording, cpus_text};
use schedtwin_engine::result::RunResult;
use schedtwin_types::{Ns, metric};

use crate::Progress;
use crate::compare::{ComparedRow, Comparison, Plan, Subject, compare};
use crate::measured::Labels;
use crate::provenance::Provenance;
use crate::twin::Column;
use trust::{Aspect, FEW_CPUS, Figure, Gap, LOST_MOST_PCT, Limit, Standing, Trust};

/// A comparison of kernels on recorded work.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The kernels against each other.
    pub comparison: Comparison,
    /// The recording against each kernel.
    pub fidelity: Fidelity,
}

impl Replayed {
    /// Joins a comparison with its fidelity: rows inherit the doubts of what they depend on.
    pub fn new(mut comparison: Comparison, fidelity: Fidelity) -> Replayed {
        for row in &mut comparison.rows {
            let standing = fidelity.trust.standing(row.row.name);
            row.doubtful = standing == Standing::Doubtful;
            row.not_judged = standing == Standing::NotJudged;
        }
        Replayed { comparison, fidelity }
    }
}

/// A number of the recording and of its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Which metric, as in the comparison.
    pub name: &'static str,
    /// Which stat of it.
    pub stat: &'static str,
    /// Its labels.
    pub labels: Vec<(&'static str, String)>,
    /// Its unit.
    pub unit: &'static str,
    /// In the recording; `None` where it has no sample.
    pub recorded: Option<f64>,
    /// On each kernel, the mean over the seeds.
    pub replayed: Vec<Option<f64>>,
}

/// How far a kernel placed the work as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The kernel.
    pub kernel: String,
    /// Share of the CPU time that is on CPUs of another capacity than recorded, %; `None` where there is
    /// one kind of CPU, or no time.
    pub moved_pct: Option<f64>,
    /// Share of the recorded work that was done within the recording's length, %.
    pub work_pct: Option<f64>,
    /// In words, without the kernel.
    pub text: String,
}

/// Threads that are not replayed, for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Why, in words.
    pub reason: &'static str,
    /// Their names, each once.
    pub names: Vec<String>,
    /// Their part of the CPU time of all threads, %.
    pub cpu_time_pct: f64,
}

/// How far a replay is the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// Length of the recording.
    pub span_ns: Ns,
    /// Trace lines.
    pub events: u64,
    /// Trace lines of events that are not used.
    pub events_unused: u64,
    /// The commonest of those events with their counts, at most [`UNUSED_NAMED`].
    pub unused_named: Vec<(String, u64)>,
    /// Lines that are no trace lines.
    pub lines_foreign: u64,
    /// 1 if the last line is cut in its middle.
    pub lines_cut: u64,
    /// Events that the recorder lost, as far as it counted.
    pub events_lost: u64,
    /// Times the recorder lost events without a count.
    pub losses_uncounted: u64,
    /// Events that contradict each other: others between them are missing.
    pub contradictions: u64,
    /// Threads replayed.
    pub threads: u64,
    /// Threads that others start within the recording.
    pub threads_forked: u64,
    /// Threads pinned to the CPU in their name.
    pub threads_pinned: u64,
    /// Share of the recorded CPU time that is replayed, %.
    pub cpu_time_covered_pct: f64,
    /// Threads that are not.
    pub left_out: Vec<LeftOut>,
    /// Sleeps that end when the task that woke the thread gets there.
    pub wakes_by_waker: u64,
    /// Sleeps that end at the recorded time of an interrupt.
    pub wakes_by_time: u64,
    /// Those of them that a device makes by an interrupt on its recorded CPU.
    pub wakes_by_device: u64,
    /// Sleeps whose wakeup is not in the trace: they end when the thread was seen to run again.
    pub wakes_unmatched: u64,
    /// Wakeups whose lines do not say whether an interrupt made them.
    pub wakes_of_unknown_context: u64,
    /// Threads whose allowed CPUs the file tells, and how many of them may not use all.
    pub affinities_told: u64,
    /// See `affinities_told`.
    pub threads_bound: u64,
    /// Threads with a policy that the file tells and their priority does not.
    pub policies_told: u64,
    /// Threads whose clamps the file tells and that limit something.
    pub threads_clamped: u64,
    /// Sleeps that threads passed over on the first kernel, since what ended them came before: of all, and of the names with
    /// the most.
    pub early_wakeups: (f64, Vec<(String, f64)>),
    /// Changes of priority.
    pub priority_changes: u64,
    /// Changes of `scaling_min_freq` and `scaling_max_freq`.
    pub limit_changes: u64,
    /// Latencies begin with `sched_wakeup`, as there is no `sched_waking`.
    pub without_waking: bool,
    /// CPU time before the first `cpu_frequency` of its CPU, %.
    pub assumed_frequency_pct: f64,
    /// Share of the recorded work that was taken off as cost of kernel paths, %.
    pub paths_taken_off_pct: f64,
    /// Facts of the file about the kernel that recorded, a sentence each.
    pub origin: Vec<String>,
    /// Assumptions about the recorded device.
    pub assumptions: Vec<String>,
    /// The recorded clusters as they were taken.
    pub clusters: Vec<RecordedCluster>,
    /// The kernels whose replays are compared with the recording.
    pub kernels: Vec<String>,
    /// Of each kernel.
    pub verdicts: Vec<Verdict>,
    /// Measurements of both.
    pub pairs: Vec<Pair>,
    /// How far the rows of the comparison can be trusted.
    pub trust: Trust,
}

/// Events of a page of a recorder's buffer: 4 KiB of switches and wakeups of some 60 bytes.
const PAGE_EVENTS: u64 = 64;

/// Events that a report names of those that were not used.
pub const UNUSED_NAMED: usize = 5;

/// Frames that a slice must have to be judged.
const FRAMES_LEAST: usize = 30;

/// Share of the CPU time on other CPUs from which on placement is said to differ, %.
const MOVED_PCT: f64 = 10.0;

/// A column whose runs measure the work of all and each CPU's busy time as well.
struct ReplayColumn<'a>(&'a Column);

impl Subject for ReplayColumn<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn duration(&self) -> Option<Ns> {
        self.0.duration()
    }

    fn command(&self, seed: u64) -> String {
        let machine = &self.0.scenario.provenance().machine;
        format!("schedtwin replay -m '{machine}' -k '{}' --seed {seed} -n 1 TRACE", self.0.kernel)
    }

    fn run(&self, seed: u64, simulated: Arc<AtomicU64>) -> io::Result<RunResult> {
        let mut result = self.0.run(seed, simulated)?;
        for metric in result.metrics.iter_mut().filter(|m| m.name == "frame_duration") {
            // What lies between two sleeps is no frame.
            let labels = std::mem::take(&mut metric.labels);
            *metric = metric::JOB_DURATION.value(metric.stat, labels, metric.value);
        }
        let used = result.metrics.iter().find(|m| m.name == "utilization" && m.labels.is_empty());
        let used = used.and_then(|metric| metric.value).unwrap_or(0.0) / 100.0;
        let cpus = &self.0.scenario.machine().cpus;
        let capacity: u64 = cpus.iter().map(|cpu| u64::from(cpu.capacity)).sum();
        let elapsed = result.metrics.iter().find(|m| m.name == "elapsed").and_then(|m| m.value);
        let work = elapsed.map(|elapsed| used * elapsed * capacity as f64 / 1024.0);
        result.metrics.push(metric::WORK.value("sum", Vec::new(), work));
        let busy = result.cpus.iter().map(|cpu| {
            let labels = vec![("cpu", cpu.cpu.to_string())];
            metric::CPU_TIME.value("sum", labels, Some(seconds(cpu.busy_ns)))
        });
        result.metrics.extend(busy);
        Ok(result)
    }
}

/// Replays a trace on every column's kernel, and judges their fidelity.
///
/// # Panics
/// As [`compare`].
pub fn replay(
    columns: &[Column],
    trace: &TraceRecording,
    plan: Plan,
    provenance: Provenance,
    progress: &Progress,
) -> io::Result<Replayed> {
    let subjects: Vec<ReplayColumn<'_>> = columns.iter().map(ReplayColumn).collect();
    let comparison = compare(&subjects, &plan, provenance, progress)?;
    let board = Board::of(&columns[0].scenario);
    let fidelity = fidelity(trace, &board, &comparison);
    Ok(Replayed::new(comparison, fidelity))
}

/// The machine that replays, as far as its figures are compared.
#[derive(Clone, Debug, Default)]
struct Board {
    /// Of each CPU.
    capacities: Vec<u32>,
    /// Name, CPUs and highest frequency of each frequency domain.
    domains: Vec<(String, Vec<u16>, u32)>,
    /// Of each CPU the name of its kind of core.
    core_names: Vec<String>,
    /// Why its power is no measurement; `None`: it is one.
    power_estimated: Option<String>,
}

impl Board {
    fn of(scenario: &schedtwin_engine::Scenario) -> Board {
        let machine = scenario.machine();
        let domains = machine.domains.iter().map(|domain| {
            let highest = domain.opps.last().map_or(0, |opp| opp.khz);
            (domain.name.clone(), domain.cpus.iter().map(|cpu| cpu.0).collect(), highest)
        });
        let core_names =
            machine.cpus.iter().map(|cpu| machine.core_types[cpu.core_type].name.clone());
        Board {
            capacities: machine.cpus.iter().map(|cpu| cpu.capacity).collect(),
            domains: domains.collect(),
            core_names: core_names.collect(),
            power_estimated: power_estimated(machine),
        }
    }
}

/// Why the power of a machine's CPUs is no measurement: its file marks it so, or has none.
fn power_estimated(machine: &schedtwin_engine::Machine) -> Option<String> {
    let points = || machine.domains.iter().flat_map(|domain| &domain.opps);
    if points().all(|point| point.active_uw == 0) {
        return Some(format!("no power of {} is known", machine.identity));
    }
    let of_power = |path: &&String| {
        let last = path.rsplit('.').next().unwrap_or(path);
        let whole = path.matches('.').count() <= 1;
        match path.split('.').next().unwrap_or(path) {
            "domain" => {
                whole || last.starts_with("opp") && !last.ends_with("khz") || last.ends_with("uw")
            }
            "core" => *path == "core",
            // The table's own zeroes are switched-off rails; a named one has a power.
            "power" => path.contains('.') && !path.contains("states"),
            _ => false,
        }
    };
    let found = machine.estimates.iter().find(of_power);
    found.map(|path| format!("the power of {} is estimated (`{path}`)", machine.identity))
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn fidelity(trace: &TraceRecording, board: &Board, comparison: &Comparison) -> Fidelity {
    let capacities = &board.capacities[..];
    let recorded = &trace.recorded;
    let all_ns: Ns = recorded.threads.iter().map(|thread| thread.cpu_time_ns).sum();
    let replayed_ns: Ns = recorded.busy_ns.iter().sum();
    let mut left_out = Vec::new();
    for (excluded, reason) in [
        (Excluded::Stopper, "the twin has stoppers of its own"),
        (Excluded::Governor, "the twin's governor changes frequencies itself"),
    ] {
        let of = recorded.threads.iter().filter(|thread| thread.excluded == Some(excluded));
        let cpu_time_pct = percent(of.clone().map(|thread| thread.cpu_time_ns).sum(), all_ns);
        let mut names: Vec<String> = of.map(|thread| thread.name.to_string()).collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            left_out.push(LeftOut { reason, names, cpu_time_pct });
        }
    }
    let excluded = recorded.threads.iter().filter(|thread| thread.excluded.is_some()).count();
    Fidelity {
        span_ns: recorded.span_ns,
        events: trace.trace.events,
        events_unused: trace.trace.unused,
        unused_named: commonest(&trace.trace.unused_by_name),
        lines_foreign: trace.trace.foreign,
        lines_cut: trace.trace.cut,
        events_lost: trace.trace.lost,
        losses_uncounted: trace.trace.lost_uncounted,
        contradictions: recorded.contradictions,
        threads: (recorded.threads.len() - excluded) as u64,
        threads_forked: recorded.forked,
        threads_pinned: recorded.pinned,
        affinities_told: recorded.affinities,
        threads_bound: recorded.bound,
        policies_told: recorded.policies,
        threads_clamped: recorded.clamped,
        cpu_time_covered_pct: percent(replayed_ns, all_ns),
        left_out,
        wakes_by_waker: recorded.tied_to_waker,
        wakes_by_time: recorded.tied_to_time,
        wakes_by_device: recorded.by_device,
        wakes_unmatched: recorded.unmatched,
        wakes_of_unknown_context: trace.unknown_context,
        early_wakeups: early_wakeups(comparison),
        priority_changes: recorded.priority_changes,
        limit_changes: recorded.limit_changes,
        without_waking: trace.without_waking,
        assumed_frequency_pct: percent(recorded.assumed_frequency_ns, replayed_ns),
        paths_taken_off_pct: percent(recorded.paths_taken_off, recorded.work),
        origin: trace.origin.sentences(),
        assumptions: trace.assumptions.clone(),
        clusters: trace.clusters.clone(),
        kernels: comparison.kernels.clone(),
        verdicts: verdicts(trace, capacities, comparison),
        pairs: pairs(trace, board, comparison),
        trust: Trust {
            figures: figures(trace, board, comparison),
            gaps: gaps(trace, board),
            bounds: bounds(trace),
        },
    }
}

/// What keeps rows from being judged.
fn gaps(trace: &TraceRecording, board: &Board) -> Vec<Gap> {
    let (summary, recorded) = (&trace.trace, &trace.recorded);
    let mut gaps = Vec::new();
    let mut add = |of_power, text| gaps.push(Gap { of_power, text });
    let all = summary.events + summary.lost;
    let of_all = |part: u64| part as f64 * 100.0 > LOST_MOST_PCT * all as f64;
    if of_all(summary.lost) {
        add(false, format!("{} of {all} events were lost", summary.lost));
    }
    // A loss without a count is at least one of a buffer's page: the recorder only knows that there was one.
    if of_all(summary.lost_uncounted * PAGE_EVENTS) {
        let times = summary.lost_uncounted;
        add(false, format!("events were lost {times} times, the recorder does not say how many"));
    }
    let contradictions = recorded.contradictions;
    if contradictions as f64 * 100.0 > LOST_MOST_PCT * recorded.switches as f64 {
        let switches = recorded.switches;
        add(
            false,
            format!(
                "{contradictions} events contradict those before, of {switches} switches: a thread ran on two CPUs, \
                 or one left that was not there"
            ),
        );
    }
    if let Some(why) = &board.power_estimated {
        add(true, why.clone());
    }
    gaps
}

/// What bounds the part of the recording that is replayed, with counts.
fn bounds(trace: &TraceRecording) -> Vec<String> {
    let (summary, recorded) = (&trace.trace, &trace.recorded);
    let mut bounds = Vec::new();
    let ms = |ns: Ns| format!("{:.1} ms", ns as f64 / 1e6);
    let late = &summary.late;
    if late.events > 0 {
        bounds.push(format!(
            "the buffer of {} begins later than others: {} events of the {} before are left out",
            cpus_text(&late.cpus),
            late.events,
            ms(late.ns)
        ));
    }
    let suspends = summary.suspends;
    if suspends.count > 0 {
        bounds.push(format!(
            "the machine was suspended ({} times, {:.3} s together): that time is nobody's and is left out",
            suspends.count,
            seconds(suspends.ns)
        ));
    }
    if summary.cut > 0 {
        let missing = summary.missing.map_or(String::new(), |missing| format!(": {missing}"));
        bounds.push(format!("the file is cut in the middle of an event{missing}"));
    }
    if summary.lost + summary.lost_uncounted > 0 {
        let times = match summary.lost_uncounted {
            0 => String::new(),
            times => format!(" and {times} times without a count"),
        };
        bounds.push(format!("{} events were lost by the recorder{times}", summary.lost));
    }
    if recorded.contradictions > 0 {
        bounds.push(format!(
            "{} events contradict those before (a thread on two CPUs at once, or one that left and was not there): \
             the time around them is not replayed",
            recorded.contradictions
        ));
    }
    if summary.elsewhere > 0 {
        bounds.push(format!(
            "{} packets are of another machine, as of a guest, and are left out",
            summary.elsewhere
        ));
    }
    bounds
}

/// Returns the figures that limits apply to: of the recording, and of its replay on the first
/// kernel.
fn figures(trace: &TraceRecording, board: &Board, comparison: &Comparison) -> Vec<Figure> {
    let recorded = &trace.recorded;
    let replayed = |name, stat, labels: &Labels| mean_of(comparison, 0, name, stat, labels);
    let mut figures = Vec::new();
    let mut add = |aspect, limit, name: String, unit, recorded, replayed, samples| {
        figures.push(Figure { aspect, name, unit, recorded, replayed, limit, samples });
    };
    // A run ends with a switch.
    let runs = Some(recorded.switches);
    let share_of = if board.capacities.len() > FEW_CPUS { Limit::Relative } else { Limit::Share };
    let latency = if trace.without_waking { "wakeup_latency" } else { "waking_latency" };
    let quantile =
        |all: &[u32], q: usize| all.get(all.len() * q / 100).map(|ns| f64::from(*ns) / 1e3);
    let whole = [(None, &recorded.waking_latency_ns)].into_iter();
    let names = recorded.latency_by_name.iter().map(|(name, all)| (Some(name), all));
    for (name, all) in whole.chain(names) {
        let labels: Labels = name.iter().map(|name| ("task", name.to_string())).collect();
        for (stat, q) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let title = crate::measured::title((
                latency,
                stat,
                &labels,
                schedtwin_types::metric::Kind::One,
            ));
            let value = replayed(latency, stat, &labels);
            let samples = Some(all.len() as u64);
            add(Aspect::Latency, Limit::Factor, title, "us", quantile(all, q), value, samples);
        }
    }
    for frames in recorded.frames.iter().filter(|frames| frames.ns.len() >= FRAMES_LEAST) {
        let labels: Labels = vec![("slice", frames.slice.to_owned())];
        for (stat, percent) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let name = format!("replayed_frame_duration {stat} slice={}", frames.slice);
            let value = replayed("replayed_frame_duration", stat, &labels);
            let recorded = Some(frames.quantile_ms(percent));
            let samples = Some(frames.ns.len() as u64);
            add(Aspect::Frames, Limit::Factor, name, "ms", recorded, value, samples);
        }
        let name = format!("replayed_jank slice={}", frames.slice);
        let value = replayed("replayed_jank", "share", &labels);
        let samples = Some(frames.ns.len() as u64);
        add(Aspect::Frames, Limit::Share, name, "%", frames.jank_pct(), value, samples);
    }
    let sleeps = recorded.tied_to_waker + recorded.tied_to_time + recorded.unmatched;
    for (aspect, name, count) in [
        (Aspect::Sleeps, "replayed_sleeps", sleeps),
        (Aspect::Switches, "context_switches", recorded.switches),
        (Aspect::Migrations, "migrations", recorded.migrations),
    ] {
        let value = replayed(name, "sum", &vec![]);
        add(aspect, Limit::Count, name.to_owned(), "count", Some(count as f64), value, None);
    }
    let of_cpu = |cpu: &u16| {
        let labels = vec![("cpu", cpu.to_string())];
        replayed("cpu_time", "sum", &labels).unwrap_or(0.0)
    };
    let kinds = kinds(trace, &board.capacities);
    let running: Vec<f64> = kinds.iter().map(|kind| kind.cpus.iter().map(of_cpu).sum()).collect();
    let (recorded_all, replayed_all): (f64, f64) =
        (kinds.iter().map(|kind| kind.recorded_s).sum(), running.iter().sum());
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
    let total = (recorded_all > 0.0).then_some(recorded_all);
    let name = "cpu_time of all CPUs".to_owned();
    add(Aspect::CpuTime, Limit::Relative, name, "s", total, Some(replayed_all), runs);
    for (kind, running) in kinds.iter().zip(&running) {
        if kinds.len() > 1 {
            let name = format!("share of the CPU time on {}", cpus_text(&kind.cpus));
            let (there, here) =
                (share(kind.recorded_s, recorded_all), share(*running, replayed_all));
            add(Aspect::Placement, share_of, name, "%", there, here, runs);
        }
        let name = format!("speed while running of {}, of the highest,", cpus_text(&kind.cpus));
        let here = replayed_speed(kind, board, &replayed);
        let there = recorded_speed(kind, trace);
        add(Aspect::Frequency, share_of, name, "%", there, here, runs);
    }
    let [shallow, deep] = recorded
        .idle_ns
        .iter()
        .fold([0, 0], |sum: [Ns; 2], cpu| [sum[0] + cpu[0], sum[1] + cpu[1]]);
    let there = (shallow + deep > 0).then(|| percent(deep, shallow + deep));
    let name = "share of the idle time below the shallowest state".to_owned();
    let states = trace.trace.by_name.get("cpu_idle").copied();
    add(Aspect::Idle, share_of, name, "%", there, replayed_deep(board, comparison), states);
    let done = replayed("replayed_work", "share", &vec![]);
    let there = (recorded.work > 0).then_some(100.0);
    add(Aspect::Work, Limit::Least, "replayed_work".to_owned(), "%", there, done, runs);
    figures
}

/// Mean frequency while running of a kind's recorded CPUs, of their highest, %.
fn recorded_speed(kind: &Kind, trace: &TraceRecording) -> Option<f64> {
    let (mut weighted, mut whole) = (0.0, 0.0);
    for cluster in &trace.clusters {
        for cpu in cluster.cpus.iter().filter(|cpu| kind.recorded_cpus.contains(cpu)) {
            let cpu = usize::from(*cpu);
            let khz = trace.recorded.mean_khz.get(cpu).copied().unwrap_or(0);
            let busy = seconds(trace.recorded.busy_ns[cpu]);
            if khz > 0 && cluster.full_speed_khz > 0 {
                weighted += busy * f64::from(khz) / f64::from(cluster.full_speed_khz);
                whole += busy;
            }
        }
    }
    (whole > 0.0).then(|| 100.0 * weighted / whole)
}

/// The same of the replay.
fn replayed_speed(
    kind: &Kind,
    board: &Board,
    replayed: &impl Fn(&'static str, &'static str, &Labels) -> Option<f64>,
) -> Option<f64> {
    let (mut weighted, mut whole) = (0.0, 0.0);
    for (name, cpus, highest_khz) in &board.domains {
        let labels = vec![("domain", name.clone()), ("while", "active".to_owned())];
        let of_kind = cpus.iter().filter(|cpu| kind.cpus.contains(cpu));
        let busy: f64 = of_kind
            .filter_map(|cpu| replayed("cpu_time", "sum", &vec![("cpu", cpu.to_string())]))
            .sum();
        if let Some(mhz) = replayed("freq_mean", "mean", &labels)
            && *highest_khz > 0
        {
            weighted += busy * mhz * 1000.0 / f64::from(*highest_khz);
            whole += busy;
        }
    }
    (whole > 0.0).then(|| 100.0 * weighted / whole)
}

/// Share of the replay's idle time below the shallowest state, %.
fn replayed_deep(board: &Board, comparison: &Comparison) -> Option<f64> {
    let (mut deep, mut all) = (0.0, 0.0);
    let mut cluster = None;
    for row in comparison.rows.iter().filter(|row| row.row.name == "idle_residency") {
        let name = row.row.labels.first().map(|(_, name)| name);
        let shallowest = cluster != name;
        cluster = name;
        let is = |known: &&String| Some(*known) == name;
        let domain = board.domains.iter().find(|(domain, ..)| Some(domain) == name);
        let cpus = match board.core_names.iter().filter(is).count() {
            0 => domain.map_or(1, |(_, cpus, _)| cpus.len()),
            cpus => cpus,
        };
        let part = row.cells[0].estimate?.mean * cpus as f64;
        all += part;
        deep += if shallowest { 0.0 } else { part };
    }
    (all > 0.0).then(|| 100.0 * deep / all)
}

/// Returns the measurements that exist both in a recording and in its replay.
fn pairs(trace: &TraceRecording, board: &Board, comparison: &Comparison) -> Vec<Pair> {
    let recorded = &trace.recorded;
    let mut pairs = Vec::new();
    let mut add = |name, stat, labels: Vec<(&'static str, String)>, unit, value: Option<f64>| {
        let kernels = 0..comparison.kernels.len();
        let replayed = kernels.map(|k| mean_of(comparison, k, name, stat, &labels)).collect();
        pairs.push(Pair { name, stat, labels, unit, recorded: value, replayed });
    };
    let latencies = &recorded.waking_latency_ns;
    let us = |ns: u32| f64::from(ns) / 1e3;
    let quantile = |q: usize| latencies.get(latencies.len() * q / 100).map(|ns| us(*ns));
    let busy: Ns = recorded.busy_ns.iter().sum();
    add("cpu_time", "sum", vec![], "s", Some(seconds(busy)));
    for (cpu, ns) in recorded.busy_ns.iter().enumerate() {
        add("cpu_time", "sum", vec![("cpu", cpu.to_string())], "s", Some(seconds(*ns)));
    }
    // What a CPU of capacity 1024 at its highest frequency takes for it.
    add("work", "sum", vec![], "s", Some(seconds(recorded.work)));
    let sleeps = recorded.tied_to_waker + recorded.tied_to_time + recorded.unmatched;
    add("replayed_sleeps", "sum", vec![], "count", Some(sleeps as f64));
    add("context_switches", "sum", vec![], "count", Some(recorded.switches as f64));
    add("migrations", "sum", vec![], "count", Some(recorded.migrations as f64));
    for frames in &recorded.frames {
        let labels = || vec![("slice", frames.slice.to_owned())];
        for (stat, percent) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let ms = Some(frames.quantile_ms(percent));
            add("replayed_frame_duration", stat, labels(), "ms", ms);
        }
        add("replayed_jank", "share", labels(), "%", frames.jank_pct());
    }
    // The twin's samples of both kinds begin where the trace's begin.
    let latency = if trace.without_waking { "wakeup_latency" } else { "waking_latency" };
    let mean = latencies.iter().map(|ns| us(*ns)).sum::<f64>() / latencies.len() as f64;
    add(latency, "mean", vec![], "us", (!latencies.is_empty()).then_some(mean));
    for (stat, q) in [("p50", 50), ("p90", 90), ("p99", 99)] {
        add(latency, stat, vec![], "us", quantile(q));
    }
    pairs.extend(rails::pairs(&trace.trace.header.rails, board, comparison));
    pairs
}

/// Wakeups that came before their threads slept, on the first kernel.
fn early_wakeups(comparison: &Comparison) -> (f64, Vec<(String, f64)>) {
    let (mut all, mut by_name) = (0.0, Vec::new());
    for row in comparison.rows.iter().filter(|row| row.row.name == "replayed_early_wakeups") {
        let Some(estimate) = row.cells[0].estimate else { continue };
        match row.row.labels.first() {
            None => all = estimate.mean,
            Some((_, name)) => by_name.push((name.clone(), estimate.mean)),
        }
    }
    by_name.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    (all, by_name)
}

fn mean_of(
    comparison: &Comparison,
    kernel: usize,
    name: &str,
    stat: &str,
    labels: &Labels,
) -> Option<f64> {
    let is_it =
        |row: &&ComparedRow| (row.row.name, row.row.stat, &row.row.labels) == (name, stat, labels);
    Some(comparison.rows.iter().find(is_it)?.cells[kernel].estimate?.mean)
}

fn commonest(counts: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = counts.iter().map(|(n, c)| (n.clone(), *c)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.truncate(UNUSED_NAMED);
    counts
}

/// CPUs of one capacity: of the machine, and the recorded ones that are most like them.
struct Kind {
    capacity: u32,
    cpus: Vec<u16>,
    recorded_cpus: Vec<u16>,
    recorded_s: f64,
}

/// Numbers of CPUs may differ between the boards, so time is compared by capacity.
fn kinds(trace: &TraceRecording, capacities: &[u32]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (cpu, &capacity) in capacities.iter().enumerate() {
        match kinds.iter_mut().find(|kind| kind.capacity == capacity) {
            Some(kind) => kind.cpus.push(cpu as u16),
            None => kinds.push(Kind {
                capacity,
                cpus: vec![cpu as u16],
                recorded_cpus: Vec::new(),
                recorded_s: 0.0,
            }),
        }
    }
    for cluster in &trace.clusters {
        let kind = kinds.iter_mut().min_by_key(|kind| kind.capacity.abs_diff(cluster.capacity));
        let kind = kind.expect("a machine has CPUs");
        for cpu in &cluster.cpus {
            kind.recorded_cpus.push(*cpu);
            kind.recorded_s += seconds(trace.recorded.busy_ns[usize::from(*cpu)]);
        }
        kind.recorded_cpus.sort_unstable();
    }
    kinds
}

fn verdicts(trace: &TraceRecording, capacities: &[u32], comparison: &Comparison) -> Vec<Verdict> {
    let kinds = kinds(trace, capacities);
    let of_kernel = |(at, kernel): (usize, &String)| {
        let time = |cpu: &u16| {
            let labels = vec![("cpu", cpu.to_string())];
            mean_of(comparison, at, "cpu_time", "sum", &labels).unwrap_or(0.0)
        };
        let replayed_s: Vec<f64> =
            kinds.iter().map(|kind| kind.cpus.iter().map(time).sum()).collect();
        let work_pct = mean_of(comparison, at, "replayed_work", "share", &vec![]);
        let (moved_pct, mut text) = placement(&kinds, &replayed_s);
        if let Some(work) = work_pct.filter(|work| *work < 99.0) {
            text.push_str(&format!("; only {work:.0}% of the recorded work is done in its time"));
        }
        Verdict { kernel: kernel.clone(), moved_pct, work_pct, text }
    };
    comparison.kernels.iter().enumerate().map(of_kernel).collect()
}

/// Less CPU time says nothing of where the work runs.
const LEAST_PLACED_S: f64 = 0.1;

fn placement(kinds: &[Kind], replayed_s: &[f64]) -> (Option<f64>, String) {
    let recorded_all: f64 = kinds.iter().map(|kind| kind.recorded_s).sum();
    let replayed_all: f64 = replayed_s.iter().sum();
    if kinds.len() < 2 || recorded_all <= 0.0 || replayed_all <= 0.0 {
        return (None, "one kind of CPU: placement is not compared".to_owned());
    }
    if recorded_all < LEAST_PLACED_S {
        let text =
            format!("{:.3} s of CPU time are recorded: placement is not compared", recorded_all);
        return (None, text);
    }
    let shares = |kind: usize| {
        let recorded = 100.0 * kinds[kind].recorded_s / recorded_all;
        (recorded, 100.0 * replayed_s[kind] / replayed_all)
    };
    let lost = |kind: usize| shares(kind).0 - shares(kind).1;
    let moved: f64 = (0..kinds.len()).map(|kind| lost(kind).max(0.0)).sum();
    if moved < MOVED_PCT {
        let text =
            format!("each kind of CPU has its recorded share of the time within {moved:.1}%");
        return (Some(moved), text);
    }
    let most = (0..kinds.len()).max_by(|a, b| lost(*a).total_cmp(&lost(*b))).unwrap_or(0);
    let kind = &kinds[most];
    let (recorded, replayed) = shares(most);
    let whose = match kind.recorded_cpus == kind.cpus {
        true => String::new(),
        false => format!(" of the recorded {}", cpus_text(&kind.recorded_cpus)),
    };
    let text = format!(
        "{} run for {:.2} s ({replayed:.0}% of the CPU time) instead of the {:.2} s ({recorded:.0}%){whose}: \
         placement differs",
        cpus_text(&kind.cpus),
        replayed_s[most],
        kind.recorded_s,
    );
    (Some(moved), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(capacity: u32, cpus: &[u16], recorded_cpus: &[u16], recorded_s: f64) -> Kind {
        Kind { capacity, cpus: cpus.to_vec(), recorded_cpus: recorded_cpus.to_vec(), recorded_s }
    }

    #[test]
    fn verdicts_compare_shares_by_kind_of_cpu() {
        let little = [0, 1, 2, 3];
        for (recorded_cpus, recorded, replayed, expected) in [
            (&little[..], [4.0, 1.0], [4.1, 0.9], "within 2.0%"),
            (
                &little,
                [4.67, 0.33],
                [0.65, 2.0],
                "CPUs 0-3 run for 0.65 s (25% of the CPU time) instead of the 4.67 s (93%): placement differs",
            ),
            (&[0, 3, 4, 5], [4.0, 1.0], [1.0, 1.0], " s (80%) of the recorded CPUs 0,3-5: "),
            (
                &little,
                [0.0, 5.0],
                [1.0, 4.0],
                "CPUs 4-5 run for 4.00 s (80% of the CPU time) instead",
            ),
            // A tenth is too much.
            (&little, [4.0, 1.0], [7.0, 3.0], "placement differs"),
            (&little, [0.0, 0.0], [1.0, 4.0], "not compared"),
        ] {
            let kinds = [
                kind(383, &little, recorded_cpus, recorded[0]),
                kind(1024, &[4, 5], &[4, 5], recorded[1]),
            ];
            let (_, text) = placement(&kinds, &replayed);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_column_is_repeated_by_its_command() {
        let scenario =
            schedtwin_engine::Scenario::new("pixel6", "linux-6.12", "w1", Some(5_000_000));
        let column = Column::new(scenario.unwrap());
        assert_eq!(ReplayColumn(&column).duration(), Some(5_000_000));
        assert_eq!(ReplayColumn(&column).name(), "linux-6.12");
        let command = "schedtwin replay -m 'pixel6' -k 'linux-6.12' --seed 7 -n 1 TRACE";
        assert_eq!(ReplayColumn(&column).command(7), command);
    }

    /// Where there is one kind of CPU, or nothing ran, no share has moved.
    #[test]
    fn what_cannot_be_compared_has_no_share() {
        let kinds = [kind(383, &[0], &[0], 4.0), kind(1024, &[1], &[1], 1.0)];
        assert_eq!(placement(&kinds, &[1.0, 4.0]).0, Some(60.0));
        assert_eq!(placement(&kinds, &[0.0, 0.0]).0, None);
        assert_eq!(placement(&kinds[..1], &[4.0]).0, None);
    }

    /// The commonest come first, at most five of them, and a part of nothing is none of it.
    #[test]
    fn the_commonest_are_named() {
        let counts = ["a", "b", "c", "d", "e", "f"].map(String::from).into_iter();
        let counts = counts.zip([1, 9, 2, 9, 3, 4]).collect();
        let names: Vec<String> = commonest(&counts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "d", "f", "e", "c"]);
        assert_eq!((percent(1, 4), percent(0, 0)), (25.0, 0.0));
    }

    /// Worked out by hand: five seconds of four threads, of which three are left out.
    #[test]
    fn a_recording_is_measured_as_its_replay_is() {
        use crate::measured::Row;
        use schedtwin_engine::recording::{Recorded, RecordedThread};
        const MS: Ns = 1_000_000;
        let thread = |name: &str, ms: Ns, excluded| RecordedThread {
            name: name.into(),
            pid: 1,
            cpu_time_ns: ms * MS,
            excluded,
            prio: 120,
            jobs: Default::default(),
        };
        let recorded = Recorded {
            span_ns: 4000 * MS,
            threads: vec![
                thread("a", 3000, None),
                thread("migration/0", 1000, Some(Excluded::Stopper)),
                thread("sugov:4", 500, Some(Excluded::Governor)),
                thread("sugov:4", 500, Some(Excluded::Governor)),
            ],
            busy_ns: vec![1000 * MS, 2000 * MS],
            work: 2500 * MS,
            assumed_frequency_ns: 750 * MS,
            paths_taken_off: 500 * MS,
            switches: 40,
            migrations: 4,
            tied_to_waker: 3,
            tied_to_time: 2,
            unmatched: 1,
            waking_latency_ns: vec![1000, 2000, 3000, 10_000],
            ..Recorded::default()
        };
        let cluster = |cpus: &[u16], capacity| RecordedCluster {
            cpus: cpus.to_vec(),
            capacity,
            highest_khz: None,
            frequencies: 0,
            full_speed_khz: 1,
        };
        // Of what was read, only the work is another.
        let lines = "<idle>-0 [000] 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                     prev_state=R ==> next_comm=a next_pid=1 next_prio=120\n\
                     a-1 [000] 2.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 \
                     prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
        let scenario = schedtwin_engine::Scenario::new("pixel6", "linux-6.12", "w1", None).unwrap();
        let machine = scenario.machine();
        let read = schedtwin_engine::recording::read_trace_from(
            lines.as_bytes(),
            "x",
            machine,
            machine,
            None,
        );
        let trace = TraceRecording {
            recorded,
            without_waking: false,
            clusters: vec![cluster(&[1], 1000), cluster(&[0], 100)],
            ..read.unwrap()
        };
        let row = |name, stat, cpu: Option<&str>, values: [f64; 2]| {
            let labels = cpu.iter().map(|cpu| ("cpu", cpu.to_string())).collect();
            let metric = metric::declared(name).expect("it is declared").value(stat, labels, None);
            let samples = values.map(|value| vec![Some(value); 2]).to_vec();
            Row { samples, ..Row::of(&metric) }
        };
        let mut comparison = crate::report::example::comparison();
        comparison.rows = crate::compare::judge(
            vec![
                row("cpu_time", "sum", None, [3.0, 2.5]),
                row("cpu_time", "sum", Some("0"), [2.0, 0.75]),
                row("cpu_time", "sum", Some("1"), [1.0, 1.75]),
                row("replayed_work", "share", None, [99.0, 98.0]),
            ],
            crate::compare::Span::Asked,
        );
        let board = Board {
            capacities: vec![120, 1024],
            domains: vec![("little".into(), vec![0], 1000), ("big".into(), vec![1], 2000)],
            core_names: vec!["a".into(), "b".into()],
            power_estimated: None,
        };
        let found = fidelity(&trace, &board, &comparison);
        assert_eq!((found.threads, found.cpu_time_covered_pct), (1, 60.0));
        assert_eq!((found.assumed_frequency_pct, found.paths_taken_off_pct), (25.0, 20.0));
        let left_out = found.left_out.iter().map(|part| (part.names.join(" "), part.cpu_time_pct));
        let expected = [("migration/0".to_string(), 20.0), ("sugov:4".to_string(), 20.0)];
        assert!(left_out.eq(expected), "{:?}", found.left_out);

        let pairs: Vec<_> = found
            .pairs
            .iter()
            .map(|pair| {
                let cpu = pair.labels.first().map_or("", |(_, cpu)| cpu.as_str());
                (pair.name, pair.stat, cpu, pair.recorded, pair.replayed.clone())
            })
            .collect();
        let none = || vec![None, None];
        assert_eq!(
            pairs,
            [
                ("cpu_time", "sum", "", Some(3.0), vec![Some(3.0), Some(2.5)]),
                ("cpu_time", "sum", "0", Some(1.0), vec![Some(2.0), Some(0.75)]),
                ("cpu_time", "sum", "1", Some(2.0), vec![Some(1.0), Some(1.75)]),
                ("work", "sum", "", Some(2.5), none()),
                ("replayed_sleeps", "sum", "", Some(6.0), none()),
                ("context_switches", "sum", "", Some(40.0), none()),
                ("migrations", "sum", "", Some(4.0), none()),
                ("waking_latency", "mean", "", Some(4.0), none()),
                ("waking_latency", "p50", "", Some(3.0), none()),
                ("waking_latency", "p90", "", Some(10.0), none()),
                ("waking_latency", "p99", "", Some(10.0), none()),
            ]
        );
        // A third of the time was on CPU 0; the replays have two thirds and 30 % there.
        let moved = found.verdicts.iter().map(|verdict| verdict.moved_pct.unwrap().round());
        assert!(moved.eq([33.0, 3.0]), "{:?}", found.verdicts);
        assert_eq!(found.verdicts[0].work_pct, Some(99.0));
        let told = "only 98% of the recorded work is done in its time";
        let told = found.verdicts.iter().map(|verdict| verdict.text.contains(told));
        assert!(told.eq([false, true]), "{:?}", found.verdicts);
        assert!(!found.verdicts[0].text.contains("of the recorded work"));

        let nothing = TraceRecording {
            recorded: Recorded { busy_ns: vec![0, 0], ..Recorded::default() },
            without_waking: true,
            ..trace
        };
        let pairs = pairs_of(&nothing, &comparison, "wakeup_latency");
        assert_eq!(pairs, [("mean", None), ("p50", None), ("p90", None), ("p99", None)]);
    }

    fn pairs_of(
        trace: &TraceRecording,
        comparison: &Comparison,
        name: &str,
    ) -> Vec<(&'static str, Option<f64>)> {
        let pairs = pairs(trace, &Board::default(), comparison)
            .into_iter()
            .filter(|pair| pair.name == name);
        pairs.map(|pair| (pair.stat, pair.recorded)).collect()
    }
}
