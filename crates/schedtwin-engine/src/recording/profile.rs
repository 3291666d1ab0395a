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
//!    get timers with the mean gap. Works of one function are apart by their addresses, but for those of one CPU each.
//! 4. A thread or work that follows nearly each interrupt of a device (within its handler) is that source's `then`.
//! 5. RCU's own threads and softirqs become `[rcu]`: times of its runs, and a source that hands it as many callbacks as there were
//!    grace periods.
//!
//! Differences: timers that the recorder did not log are not seen, so a work without one has a timer of its own. Whether a timer is
//! deferrable is not in an event, so none is. Threads of user programs are left out. What user programs cause (a disk that they
//! read) counts as the system's.

mod collect;
mod write;

use super::{refusal, unreadable};
use schedtwin_input::Diagnostics;
use schedtwin_machine::Machine;
use schedtwin_trace::event::TraceSource;
use schedtwin_trace::sources;
use schedtwin_types::Ns;
use std::collections::BTreeMap;
use std::path::Path;

/// Gaps that make an activity regular.
pub const RUNS_REGULAR: usize = 5;
/// The most devices of a profile: the twin has 32 together with those of a workload.
pub const DEVICES_MAX: usize = 16;
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
    /// Names of the kernel's functions by address, as of the recorded boot.
    pub symbols: Symbols,
}

/// Names of the kernel's functions by address: a recording may hold addresses alone.
#[derive(Clone, Debug, Default)]
pub struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    /// Reads `/proc/kallsyms`: a line for each symbol, its address first and its name third. Lines that are none are left out.
    ///
    /// ```
    /// use schedtwin_engine::recording::Symbols;
    /// let symbols = Symbols::parse("ffffffff81000010 T vmstat_update\nffffffff81000040 t kcompactd\t[m]\n?\n");
    /// assert_eq!(symbols.name("0xffffffff81000010"), "vmstat_update");
    /// assert_eq!(symbols.name("0xffffffff81000011"), "0xffffffff81000011");
    /// assert_eq!(symbols.len(), 2);
    /// ```
    pub fn parse(text: &str) -> Symbols {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|at| *at != 0)?;
            Some((address, words.nth(1)?.to_string()))
        };
        let mut symbols = BTreeMap::new();
        for (address, name) in text.lines().filter_map(symbol) {
            // Of several at one address the first is the function's own.
            symbols.entry(address).or_insert(name);
        }
        Symbols(symbols)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none, as where addresses are hidden (`kernel.kptr_restrict`).
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of a function that is given as an address, or what is given.
    pub fn name<'a>(&'a self, given: &'a str) -> &'a str {
        let address = given.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        address.and_then(|address| self.0.get(&address)).map_or(given, String::as_str)
    }
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

/// The state of a CPU between two events.
#[derive(Clone, Debug, Default)]
struct Cpu {
    running: u32,
    khz: u32,
    /// Since when the running thread's time has not been counted.
    since: Option<Ns>,
    /// What is going on: interrupt, hrtimer, wheel timer.
    irq: Option<(String, Ns)>,
    /// The device whose handler has ended last, and when: its thread is woken then.
    handled: Option<(String, Ns)>,
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
    symbols: &'m Symbols,
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

/// Between a work's function and its address, until works of one function are told apart or joined.
const WORK_MARK: char = '@';

impl<'m> Collector<'m> {
    fn new(machine: Option<&'m Machine>, symbols: &'m Symbols, nr_cpus: usize) -> Collector<'m> {
        Collector {
            machine,
            symbols,
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
        }
    }
}

/// Makes a profile of a recording.
pub fn profile(path: &Path, options: &ProfileOptions) -> Result<ExtractedProfile, Diagnostics> {
    let name = path.display().to_string();
    let mut source = sources::open(path).map_err(|fault| unreadable(&name, &fault))?;
    let nr_cpus = source.header().nr_cpus.unwrap_or(1);
    let mut collector = Collector::new(options.machine, &options.symbols, nr_cpus);
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

#[cfg(test)]
mod tests;
