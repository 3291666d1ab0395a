// SPDX-License-Identifier: GPL-2.0-or-later
//! A system's profile from a recording: what runs beside user programs, how often, where, how long.
//!
//! # Idea
//!
//! Background work leaves pairs of stamps. What is between them is a run; what is between two runs is a period, or if it is no
//! regular one, a rate:
//!
//! ```text
//!  irq_handler_entry ── exit          a device          interrupt = { mean_us }
//!  workqueue_execute_start ── end     a work            timer, or mean rate; the queue by the kworker's name
//!  timer_expire_entry ── exit         a wheel timer     timer = { every_ms }
//!  hrtimer_expire_entry ── exit       an hrtimer        hrtimer = { every_ms }
//!  sched_wakeup, switches, sleep      a kernel thread   timer, or interrupt = { mean_us }
//! ```
//!
//! # Algorithm
//!
//! 1. Runs are collected by kind and name, and for each the CPU and the time of its beginning. A run's time is on its CPU alone:
//!    what it was preempted for does not count. It is scaled to the capacity of its CPU and the frequency at that time.
//! 2. An activity is *regular* if at least [`RUNS_REGULAR`] gaps of one CPU, or of all, are within a quarter of their median. Its
//!    timer is armed for so many jiffies that the wheel's rounding gives the median gap.
//! 3. Others are irregular: devices, which come at exponential intervals. Of these a profile has at most [`DEVICES_MAX`]; the rest
//!    get timers with the mean gap.
//! 4. A thread or work that follows nearly each interrupt of a device (within its handler) is that source's `then`.
//! 5. RCU's own threads and softirqs become `[rcu]`: times of its runs, and a source that hands it as many callbacks as there were
//!    grace periods.
//!
//! Differences: timers that the recorder did not log are not seen, so a work without one has a timer of its own. Whether a timer is
//! deferrable is not in an event, so none is. Threads of user programs are left out. What user programs cause (a disk that they
//! read) counts as the system's.

use super::{refusal, unreadable};
use schedtwin_input::Diagnostics;
use schedtwin_machine::Machine;
use schedtwin_trace::event::{EventTask, Left, Names, TraceEvent, TraceEventKind, TraceSource};
use schedtwin_trace::sources;
use schedtwin_types::Ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Gaps that make an activity regular.
pub const RUNS_REGULAR: usize = 5;
/// The most devices of a profile: the twin has 32 together with those of a workload.
pub const DEVICES_MAX: usize = 10;
/// Runs that an activity needs to be told.
const RUNS_LEAST: usize = 3;
/// The most gaps and run times that are kept of an activity.
const SAMPLES_MOST: usize = 1 << 20;

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// What was made of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtractedProfile {
    /// The profile, as TOML.
    pub text: String,
    /// How many sources it has.
    pub sources: usize,
    /// The recording's length, s.
    pub seconds: f64,
    /// What a user should know.
    pub notes: Vec<String>,
}

/// How a profile is made.
#[derive(Clone, Debug, Default)]
pub struct ProfileOptions<'m> {
    /// The profile's name.
    pub name: String,
    /// The recorded machine, whose capacities and frequencies scale times; none: all CPUs are equal.
    pub machine: Option<&'m Machine>,
    /// `CONFIG_HZ`, where the recording does not tell it.
    pub hz: Option<u32>,
}

/// Kinds of activities, in the order of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Interrupt,
    Hrtimer,
    Timer,
    Work,
    HighWork,
    UnboundWork,
    Thread,
}

impl Kind {
    /// Its word behind `run`.
    fn run(self, bound: bool) -> &'static str {
        match self {
            Kind::Interrupt | Kind::Hrtimer | Kind::Timer => "function",
            Kind::Work => "work",
            Kind::HighWork => "high-work",
            Kind::UnboundWork => "unbound-work",
            Kind::Thread if bound => "bound-thread",
            Kind::Thread => "thread",
        }
    }

    /// The words of a line about it.
    fn words(self) -> &'static str {
        match self {
            Kind::Interrupt => "interrupts",
            Kind::Hrtimer => "hrtimers",
            Kind::Timer => "timers",
            Kind::Work | Kind::HighWork | Kind::UnboundWork => "works",
            Kind::Thread => "runs of the thread",
        }
    }
}

type Key = (Kind, String);

/// Runs of one name.
#[derive(Clone, Debug, Default)]
struct Activity {
    /// Per CPU: when its last run began, and gaps between beginnings.
    cpus: BTreeMap<usize, (Ns, Vec<f64>)>,
    /// When the last run anywhere began, and gaps.
    last: Option<Ns>,
    gaps: Vec<f64>,
    /// Work of each run, ns at capacity 1024.
    runs: Vec<f64>,
    count: u64,
    prio: i32,
    /// The name of its threads ends in a CPU's number.
    bound: bool,
    /// Of its beginnings: how many fell into the handler of each interrupt.
    inside: BTreeMap<String, u64>,
}

impl Activity {
    fn begins(&mut self, at: Ns, cpu: usize) {
        self.count += 1;
        let (last, gaps) = self.cpus.entry(cpu).or_insert((at, Vec::new()));
        if at > *last {
            keep(gaps, (at - *last) as f64);
        }
        *last = at;
        if let Some(last) = self.last.replace(at).filter(|last| at > *last) {
            keep(&mut self.gaps, (at - last) as f64);
        }
    }

    /// Whether each of several CPUs has its own.
    fn is_on_each(&self, kind: Kind) -> bool {
        let regular = self.cpus.values().filter(|(_, gaps)| period(gaps).is_some()).count();
        match kind {
            Kind::Interrupt | Kind::UnboundWork => false,
            Kind::Thread => self.bound && self.cpus.len() > 1,
            Kind::Hrtimer | Kind::Timer | Kind::Work | Kind::HighWork => {
                self.cpus.len() > 1 && regular * 2 > self.cpus.len()
            }
        }
    }
}

fn keep(samples: &mut Vec<f64>, sample: f64) {
    if samples.len() < SAMPLES_MOST {
        samples.push(sample);
    }
}

/// The quantile `percent` of samples, sorted.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0.0)
}

/// The median of regular gaps; `None`: they are not regular.
fn period(gaps: &[f64]) -> Option<f64> {
    if gaps.len() < RUNS_REGULAR {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [p10, p50, p90] = [10, 50, 90].map(|percent| quantile(&sorted, percent));
    (p10 > p50 * 0.75 && p90 < p50 * 1.25).then_some(p50)
}

/// The delay, in jiffies, after which the wheel's rounding makes a timer come so many jiffies later (kernel/time/timer.c:
/// one granularity of its level late).
fn delay_of(jiffies: u64) -> u64 {
    let mut level = 0;
    // Level n makes timers come at most 63 · 8^n jiffies later.
    while jiffies > 63 << (3 * level) {
        level += 1;
    }
    jiffies.saturating_sub(1 << (3 * level)).max(1)
}

/// The state of a CPU between two events.
#[derive(Clone, Debug, Default)]
struct Cpu {
    running: u32,
    khz: u32,
    /// Since when the running thread's time has not been counted.
    since: Option<Ns>,
    /// What is going on: interrupt, hrtimer, wheel timer.
    irq: Option<(String, Ns)>,
    hrtimer: Option<(String, Ns)>,
    timer: Option<(String, Ns)>,
    /// Softirqs: vector and beginning.
    softirq: Option<(u8, Ns)>,
}

/// A thread that is known.
#[derive(Clone, Debug, Default)]
struct Thread {
    name: String,
    prio: i32,
    /// Its work in the present run, ns, and whether the run has begun.
    work: f64,
    awake: bool,
    woken_in: Option<String>,
    /// The work that the kworker does: function, and the thread's work at its beginning.
    doing: Option<(String, f64)>,
}

struct Collector<'m> {
    machine: Option<&'m Machine>,
    cpus: Vec<Cpu>,
    threads: BTreeMap<u32, Thread>,
    found: BTreeMap<Key, Activity>,
    /// Times of RCU's softirqs and threads, ns.
    rcu_softirq: Vec<f64>,
    rcu_thread: Vec<f64>,
    rcu_runs: u64,
    offloaded: bool,
    /// Whether works are logged, so that kworkers need not be.
    works: bool,
    user_runs: u64,
    begin: Option<Ns>,
    end: Ns,
    nr_cpus: usize,
}

/// Beginnings of names of kernel threads whose runs are background.
const KERNEL_THREADS: [&str; 19] = [
    "kworker/",
    "kcompactd",
    "kswapd",
    "khugepaged",
    "ksmd",
    "kdamond",
    "jbd2/",
    "irq/",
    "kauditd",
    "oom_reaper",
    "psimon",
    "hwrng",
    "card",
    "ext4-",
    "f2fs_",
    "xfs",
    "loop",
    "nvme",
    "scsi",
];

/// Beginnings of names of threads that mechanisms of the kernel make by themselves.
const OF_MECHANISMS: [&str; 6] =
    ["ksoftirqd/", "migration/", "sugov:", "cpuhp/", "swapper", "idle_inject"];

/// Functions of timers that belong to what else is modelled: ticks, sleeps, bandwidth, servers, delayed works, threads.
const OF_KERNEL: [&str; 17] = [
    "tick_nohz_handler",
    "tick_sched_timer",
    "tick",
    "hrtimer_wakeup",
    "hrtick",
    "dl_task_timer",
    "inactive_task_timer",
    "sched_rt_period_timer",
    "sched_cfs_period_timer",
    "sched_cfs_slack_timer",
    "delayed_work_timer_fn",
    "process_timeout",
    "it_real_fn",
    "timerfd_tmrproc",
    "posix_timer_fn",
    "idle_worker_timeout",
    "bc_handler",
];

/// Names of interrupts that are no devices: timers, and those of other CPUs.
const NO_DEVICES: [&str; 9] = [
    "timer",
    "reschedule",
    "wake_list",
    "nohz_kick",
    "irq_work",
    "cpufreq",
    "timer_broadcast",
    "broadcast_device",
    "none",
];

/// The device among the names of an interrupt, if there is one.
fn device_of(handler: &str) -> Option<String> {
    if handler.contains("arch_timer") || handler.starts_with("IPI") {
        return None;
    }
    let mut parts = handler.split('+').filter(|part| !NO_DEVICES.contains(part));
    parts.next().map(str::to_string)
}

/// A thread's name without the number of its CPU, and whether it had one.
fn base_of(name: &str) -> (String, bool) {
    match name.rsplit_once('/') {
        Some((base, cpu)) if !cpu.is_empty() && cpu.chars().all(|c| c.is_ascii_digit()) => {
            (base.to_string(), true)
        }
        _ => (name.to_string(), false),
    }
}

/// The queue of a kworker, by its name.
fn queue_of(name: &str) -> Kind {
    let rest = name.strip_prefix("kworker/").unwrap_or(name);
    let high = rest.split(['-', '+']).next().is_some_and(|id| id.ends_with('H'));
    match (rest.starts_with('u'), high) {
        (true, _) => Kind::UnboundWork,
        (false, true) => Kind::HighWork,
        (false, false) => Kind::Work,
    }
}

/// Makes a profile of a recording.
pub fn profile(path: &Path, options: &ProfileOptions) -> Result<ExtractedProfile, Diagnostics> {
    let name = path.display().to_string();
    let mut source = sources::open(path).map_err(|fault| unreadable(&name, &fault))?;
    let nr_cpus = source.header().nr_cpus.unwrap_or(1);
    let mut collector = Collector {
        machine: options.machine,
        cpus: Vec::new(),
        threads: BTreeMap::new(),
        found: BTreeMap::new(),
        rcu_softirq: Vec::new(),
        rcu_thread: Vec::new(),
        rcu_runs: 0,
        offloaded: false,
        works: false,
        user_runs: 0,
        begin: None,
        end: 0,
        nr_cpus,
    };
    for thread in &source.header().threads {
        let of = collector.threads.entry(thread.pid).or_default();
        of.name.clone_from(&thread.comm);
    }
    while let Some(event) = source.next_event().map_err(|fault| unreadable(&name, &fault))? {
        collector.event(&event, source.names());
    }
    let hz = source.header().hz.or(options.hz);
    let seconds = (collector.end - collector.begin.unwrap_or(0)) as f64 / NS_PER_S;
    if seconds < 0.1 {
        let message = "is too short for a profile: less than a tenth of a second of events";
        return Err(refusal(&name, message, Some("record at least 30 s".to_string())));
    }
    Ok(collector.finish(options, hz, seconds))
}

impl Collector<'_> {
    fn event(&mut self, event: &TraceEvent, names: &Names) {
        let (at, cpu) = (event.at, event.cpu.index());
        self.begin.get_or_insert(at);
        self.end = self.end.max(at);
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        let text = |name| names.text(name).to_string();
        match event.kind {
            TraceEventKind::Frequency { cpu, khz } => {
                if let Some(of) = self.cpus.get_mut(cpu.index()) {
                    of.khz = khz;
                }
            }
            TraceEventKind::Waking { task, .. } | TraceEventKind::Wakeup { task, .. } => {
                self.wakes(cpu, task, names);
            }
            TraceEventKind::Switch { prev, left, next } => {
                self.switch(at, cpu, prev, left, next, names);
            }
            TraceEventKind::IrqEntry { handler, .. } => {
                let device = device_of(names.text(handler));
                self.cpus[cpu].irq = device.map(|device| (device, at));
            }
            TraceEventKind::IrqExit { .. } => {
                if let Some((device, since)) = self.cpus[cpu].irq.take() {
                    self.ran((Kind::Interrupt, device), since, at, cpu);
                }
            }
            TraceEventKind::HrtimerExpire { function, .. } => {
                self.cpus[cpu].hrtimer = Some((text(function), at));
            }
            TraceEventKind::HrtimerDone { .. } => {
                if let Some((function, since)) = self.cpus[cpu].hrtimer.take() {
                    self.timer_ran(Kind::Hrtimer, function, since, at, cpu);
                }
            }
            TraceEventKind::TimerExpire { function, .. } => {
                self.cpus[cpu].timer = Some((text(function), at));
            }
            TraceEventKind::TimerDone { .. } => {
                if let Some((function, since)) = self.cpus[cpu].timer.take() {
                    self.timer_ran(Kind::Timer, function, since, at, cpu);
                }
            }
            TraceEventKind::SoftirqEntry { vector } => {
                self.cpus[cpu].softirq = Some((vector, at));
            }
            TraceEventKind::SoftirqExit { .. } => {
                const RCU: u8 = 9;
                if let Some((RCU, since)) = self.cpus[cpu].softirq.take() {
                    let work = at.saturating_sub(since) as f64 * self.speed(cpu);
                    keep(&mut self.rcu_softirq, work);
                }
            }
            TraceEventKind::WorkStart { function, .. } => self.work_starts(at, cpu, text(function)),
            TraceEventKind::WorkEnd { .. } => self.work_ends(at, cpu),
            TraceEventKind::Lost { .. } | TraceEventKind::Begins => {
                let khz = self.cpus[cpu].khz;
                self.cpus[cpu] = Cpu { khz, ..Cpu::default() };
            }
            _ => {}
        }
    }

    /// Work that a CPU does in a ns, at most 1.
    fn speed(&self, cpu: usize) -> f64 {
        let Some(of) = self.machine.and_then(|machine| machine.cpus.get(cpu)) else { return 1.0 };
        let highest = self.machine.map_or(0, |m| m.domains[of.domain].max_khz());
        let khz = self.cpus[cpu].khz;
        let frequency = if khz == 0 { 1.0 } else { f64::from(khz) / f64::from(highest.max(1)) };
        f64::from(of.capacity) / 1024.0 * frequency.min(1.0)
    }

    fn timer_ran(&mut self, kind: Kind, function: String, since: Ns, at: Ns, cpu: usize) {
        if !OF_KERNEL.contains(&function.as_str()) {
            self.ran((kind, function), since, at, cpu);
        }
    }

    /// A run that nothing preempts.
    fn ran(&mut self, key: Key, since: Ns, at: Ns, cpu: usize) {
        let work = at.saturating_sub(since) as f64 * self.speed(cpu);
        let of = self.found.entry(key).or_default();
        of.begins(since, cpu);
        keep(&mut of.runs, work);
    }

    fn wakes(&mut self, cpu: usize, task: EventTask, names: &Names) {
        let inside = self.cpus[cpu].irq.as_ref().map(|(device, _)| device.clone());
        let of = self.threads.entry(task.pid).or_default();
        names.text(task.comm).clone_into(&mut of.name);
        of.prio = task.prio;
        if !of.awake {
            of.woken_in = of.woken_in.take().or(inside);
        }
    }

    fn switch(
        &mut self,
        at: Ns,
        cpu: usize,
        prev: Option<EventTask>,
        left: Left,
        next: EventTask,
        names: &Names,
    ) {
        self.count_time(at, cpu);
        if let Some(prev) = prev.filter(|prev| prev.pid != 0) {
            names.text(prev.comm).clone_into(&mut self.threads.entry(prev.pid).or_default().name);
            if left.sleeps() || left == Left::Dead {
                self.run_ends(prev.pid);
            }
        }
        self.cpus[cpu].running = next.pid;
        self.cpus[cpu].since = Some(at);
        if next.pid == 0 {
            return;
        }
        let of = self.threads.entry(next.pid).or_default();
        names.text(next.comm).clone_into(&mut of.name);
        of.prio = next.prio;
        if !std::mem::replace(&mut of.awake, true) {
            self.run_begins(at, cpu, next.pid);
        }
    }

    /// Counts the running thread's time until now.
    fn count_time(&mut self, at: Ns, cpu: usize) {
        let Some(since) = self.cpus[cpu].since.replace(at) else { return };
        let work = at.saturating_sub(since) as f64 * self.speed(cpu);
        if let Some(of) = self.threads.get_mut(&self.cpus[cpu].running) {
            of.work += work;
        }
    }

    /// The activity that a thread's runs belong to; `None`: they are not background, or belong to a mechanism.
    fn key_of(&self, name: &str) -> Option<(Key, bool)> {
        if OF_MECHANISMS.iter().any(|begin| name.starts_with(begin)) || name.starts_with("rcu") {
            return None;
        }
        if name.starts_with("kworker/") {
            let queue = queue_of(name);
            return (!self.works)
                .then(|| ((queue, format!("{} of kworkers", queue.run(false))), false));
        }
        let known = KERNEL_THREADS.iter().any(|begin| name.starts_with(begin));
        let (base, bound) = base_of(name);
        known.then_some(((Kind::Thread, base), bound))
    }

    fn run_begins(&mut self, at: Ns, cpu: usize, pid: u32) {
        let of = &self.threads[&pid];
        let Some((key, bound)) = self.key_of(&of.name) else {
            self.user_runs += u64::from(!of.name.starts_with("rcu"));
            return;
        };
        let (prio, inside) = (of.prio, of.woken_in.clone());
        let found = self.found.entry(key).or_default();
        found.begins(at, cpu);
        (found.prio, found.bound) = (prio, bound);
        if let Some(device) = inside {
            *found.inside.entry(device).or_insert(0) += 1;
        }
    }

    fn run_ends(&mut self, pid: u32) {
        let Some(of) = self.threads.get_mut(&pid) else { return };
        let (begun, work) = (std::mem::take(&mut of.awake), std::mem::take(&mut of.work));
        of.woken_in = None;
        let name = of.name.clone();
        if !begun {
            return;
        }
        if name.starts_with("rcu_preempt") || name.starts_with("rcu_sched") {
            self.rcu_runs += 1;
            keep(&mut self.rcu_thread, work);
        }
        self.offloaded |= name.starts_with("rcuop") || name.starts_with("rcuog");
        if let Some((key, _)) = self.key_of(&name)
            && let Some(found) = self.found.get_mut(&key)
        {
            keep(&mut found.runs, work);
        }
    }

    fn work_starts(&mut self, at: Ns, cpu: usize, function: String) {
        self.count_time(at, cpu);
        if !std::mem::replace(&mut self.works, true) {
            // What kworkers did before is told by works from here on.
            self.found.retain(|(_, name), _| !name.ends_with("of kworkers"));
        }
        let running = self.cpus[cpu].running;
        if let Some(of) = self.threads.get_mut(&running) {
            let (kind, before) = (queue_of(&of.name), of.work);
            of.doing = Some((function.clone(), before));
            let inside = of.woken_in.clone();
            let found = self.found.entry((kind, function)).or_default();
            found.begins(at, cpu);
            if let Some(device) = inside {
                *found.inside.entry(device).or_insert(0) += 1;
            }
        }
    }

    fn work_ends(&mut self, at: Ns, cpu: usize) {
        self.count_time(at, cpu);
        let running = self.cpus[cpu].running;
        let Some(of) = self.threads.get_mut(&running) else { return };
        let Some((function, before)) = of.doing.take() else { return };
        let (work, kind) = (of.work - before, queue_of(&of.name));
        if let Some(found) = self.found.get_mut(&(kind, function)) {
            keep(&mut found.runs, work);
        }
    }

    fn finish(
        mut self,
        options: &ProfileOptions,
        hz: Option<u32>,
        seconds: f64,
    ) -> ExtractedProfile {
        let mut notes = Vec::new();
        if hz.is_none() {
            notes.push("the recording does not tell CONFIG_HZ: 250 is taken (--hz)".to_string());
        }
        if self.machine.is_none() {
            notes.push(
                "times count as of CPUs of capacity 1024 at full speed (-m MACHINE scales them)"
                    .into(),
            );
        }
        if !self.works {
            notes.push(
                "no works are in it: record with --event workqueue:workqueue_execute_start, \
                 workqueue:workqueue_execute_end, timer:timer_expire_entry and timer:timer_expire_exit"
                    .to_string(),
            );
        }
        let few = self.found.values().filter(|of| of.count < RUNS_LEAST as u64).count();
        if few > 0 {
            notes.push(format!("{few} activities with less than {RUNS_LEAST} runs are left out"));
        }
        self.found.retain(|_, of| of.count >= RUNS_LEAST as u64);
        notes.push(format!(
            "{:.0} runs a second of user programs are left out",
            self.user_runs as f64 / seconds
        ));
        let mut text = format!(
            "# Made by `schedtwin profile` from {seconds:.1} s of a recording; {} CPUs.\n\nname = {:?}\ndescription = \
             \"what a recording of {seconds:.0} s shows beside its programs\"\n",
            self.nr_cpus.max(self.cpus.len()),
            options.name
        );
        let rcu = self.write_rcu(&mut text, seconds, hz.unwrap_or(250));
        let sources = self.write_sources(&mut text, seconds, hz.unwrap_or(250)) + rcu;
        ExtractedProfile { text, sources, seconds, notes }
    }

    /// `[rcu]` and who hands it callbacks; how many sources that are.
    fn write_rcu(&mut self, text: &mut String, seconds: f64, hz: u32) -> usize {
        if self.rcu_runs == 0 {
            return 0;
        }
        // A grace period wakes the thread three times: it begins, waits for stragglers, ends.
        let periods = self.rcu_runs as f64 / 3.0;
        let _ = write!(
            text,
            "\n[rcu]\norigin = \"{:.1} runs of its thread a second; callbacks [E]\"\noffloaded = {}\nthread_us = {}\n",
            self.rcu_runs as f64 / seconds,
            self.offloaded,
            quantiles_us(&mut self.rcu_thread)
        );
        if !self.rcu_softirq.is_empty() {
            let _ = writeln!(text, "softirq_us = {}", quantiles_us(&mut self.rcu_softirq));
        }
        text.push_str("callback_ns = 300\n");
        let jiffies = (seconds / periods * f64::from(hz)).round().max(1.0) as u64;
        let _ = write!(
            text,
            "\n[[source]]\nname = \"callers of call_rcu\"\norigin = \"{:.1} grace periods a second, by the runs of RCU's \
             thread\"\ntimer = {{ every_ms = {} }}\nrcu_callbacks = 1\n",
            periods / seconds,
            every_ms(delay_of(jiffies), hz)
        );
        1
    }

    fn write_sources(&mut self, text: &mut String, seconds: f64, hz: u32) -> usize {
        let found = std::mem::take(&mut self.found);
        let counts: BTreeMap<&String, u64> = found
            .iter()
            .filter(|((kind, _), _)| *kind == Kind::Interrupt)
            .map(|((_, name), of)| (name, of.count))
            .collect();
        // Which device an activity follows.
        let follows = |of: &Activity| {
            let (device, inside) = of.inside.iter().max_by_key(|(_, inside)| **inside)?;
            let all = *counts.get(device)?;
            (*inside * 10 >= of.count * 8 && of.count * 10 >= all * 8).then(|| device.clone())
        };
        let mut irregular: Vec<(u64, &Key)> = found
            .iter()
            .filter(|((kind, _), of)| {
                let regular = period(&of.gaps).is_some() || of.is_on_each(*kind);
                *kind == Kind::Interrupt || (!regular && follows(of).is_none())
            })
            .map(|(key, of)| (of.count, key))
            .collect();
        // Devices are devices; of others the most frequent.
        irregular.sort_by_key(|(count, (kind, _))| (*kind != Kind::Interrupt, u64::MAX - count));
        let devices: BTreeSet<&Key> =
            irregular.iter().take(DEVICES_MAX).map(|(_, key)| *key).collect();
        let mut names = BTreeSet::new();
        let named: BTreeMap<&Key, String> = found
            .keys()
            .map(|key| {
                let mut name = key.1.clone();
                while !names.insert(name.clone()) {
                    name.push_str(" again");
                }
                (key, name)
            })
            .collect();
        for (key, of) in &found {
            let after: Vec<&String> = found
                .iter()
                .filter(|(other, of)| {
                    other.0 != Kind::Interrupt && follows(of).as_ref() == Some(&key.1)
                })
                .filter(|_| key.0 == Kind::Interrupt)
                .map(|(other, _)| &named[other])
                .collect();
            let trigger = match follows(of).filter(|_| key.0 != Kind::Interrupt) {
                Some(_) => None,
                None => Some(self.trigger_of(key, of, devices.contains(key), seconds, hz)),
            };
            self.write_source(text, key, &named[key], of, trigger, &after, seconds);
        }
        found.len()
    }

    /// The line of a trigger.
    fn trigger_of(
        &self,
        (kind, _): &Key,
        of: &Activity,
        device: bool,
        seconds: f64,
        hz: u32,
    ) -> String {
        let tick = NS_PER_S / f64::from(hz);
        let each = of.is_on_each(*kind);
        let cpus = if each { of.cpus.len() as f64 } else { 1.0 };
        let mean = seconds * NS_PER_S * cpus / of.count as f64;
        let regular = match each {
            true => Some(mean),
            false => period(&of.gaps),
        };
        match (*kind, regular) {
            (Kind::Interrupt, _) => format!("interrupt = {{ mean_us = {} }}", us_of(mean)),
            (Kind::Hrtimer, regular) => {
                let ms = (regular.unwrap_or(mean) / NS_PER_MS).round().max(1.0);
                format!("hrtimer = {{ every_ms = {ms:.0} }}")
            }
            (_, None) if device => format!("interrupt = {{ mean_us = {} }}", us_of(mean)),
            (_, regular) => {
                let jiffies = (regular.unwrap_or(mean) / tick).round().max(1.0) as u64;
                let pinned = if each { ", pinned = true" } else { "" };
                format!("timer = {{ every_ms = {}{pinned} }}", every_ms(delay_of(jiffies), hz))
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one entry")]
    fn write_source(
        &self,
        text: &mut String,
        (kind, _): &Key,
        name: &str,
        of: &Activity,
        trigger: Option<String>,
        after: &[&String],
        seconds: f64,
    ) {
        let mut gaps = of.gaps.clone();
        gaps.sort_by(f64::total_cmp);
        let ms = |percent| quantile(&gaps, percent) / NS_PER_MS;
        let _ = write!(
            text,
            "\n[[source]]\nname = {name:?}\norigin = \"{:.2} {} a second; gaps {:.1}, {:.1}, {:.1} ms (p10, p50, p90)\"\n",
            of.count as f64 / seconds,
            kind.words(),
            ms(10),
            ms(50),
            ms(90)
        );
        if let Some(trigger) = trigger {
            let _ = writeln!(text, "{trigger}");
        }
        let _ = writeln!(text, "run = {:?}", kind.run(of.bound));
        let _ = writeln!(text, "run_us = {}", quantiles_us(&mut of.runs.clone()));
        if *kind == Kind::Thread && (0..100).contains(&of.prio) && of.prio < 99 {
            let _ = writeln!(text, "fifo = {}", 99 - of.prio);
        } else if *kind == Kind::Thread && (100..140).contains(&of.prio) && of.prio != 120 {
            let _ = writeln!(text, "nice = {}", of.prio - 120);
        }
        if of.is_on_each(*kind) {
            text.push_str("cpus = \"each\"\n");
        } else if *kind == Kind::Interrupt && self.is_on_little(of) {
            text.push_str("cpus = \"little\"\n");
        }
        if !after.is_empty() {
            let _ = writeln!(text, "then = {after:?}");
        }
    }

    /// Whether all runs were on the weakest of unequal CPUs.
    fn is_on_little(&self, of: &Activity) -> bool {
        let Some(machine) = self.machine else { return false };
        let least = machine.cpus.iter().map(|cpu| cpu.capacity).min().unwrap_or(1024);
        let is_little = |cpu: &usize| machine.cpus.get(*cpu).is_some_and(|c| c.capacity == least);
        least < 1024 && of.cpus.keys().all(is_little)
    }
}

/// Jiffies as a whole number of ms that is as many jiffies again.
fn every_ms(jiffies: u64, hz: u32) -> u64 {
    (jiffies * 1000 / u64::from(hz)).max(1)
}

fn us_of(ns: f64) -> u64 {
    (ns / NS_PER_US).round().max(10.0) as u64
}

/// Quantiles 10, 50, 90 and 99 of times in ns, as a list of µs.
fn quantiles_us(ns: &mut [f64]) -> String {
    ns.sort_by(f64::total_cmp);
    let us = |percent| (quantile(ns, percent) / NS_PER_US).round() as u64;
    format!("[{}, {}, {}, {}]", us(10), us(50), us(90), us(99))
}

#[cfg(test)]
mod tests;
