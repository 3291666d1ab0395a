// SPDX-License-Identifier: GPL-2.0-or-later
//! The meter: turns what happened in a run into numbers.
//!
//! # What it sees
//!
//! Two streams, each in time order, that never meet:
//!
//! * **facts**: what the kernel did and believes ([`Meter::fact`], [`Meter::mark`]): switches,
//!   wakeups, idle misses, jobs done;
//! * **truth**: what the silicon did ([`Meter::cpu_activity`], [`Meter::domain_opp`]): residency,
//!   frequency, energy.
//!
//! # Terms
//!
//! * window: `[warmup, end]`. Time counts from the moment the warm-up ends until the end, exactly: of a
//!   path that is under way at the end, only the time until then. An occurrence counts if it is
//!   complete after the warm-up (a latency when the task gets the CPU, a job when it is done), no
//!   matter when it began; the last path of a CPU may stamp it after the end.
//! * task group: the tasks that share a label, such as the threads of one rt-app task.
//! * cluster: the CPUs that share a `cluster_name`; latencies and idle states are split by it.
//! * `waking_latency`, `wakeup_latency`: from `sched_waking` or `sched_wakeup` to the switch that
//!   gives the task a CPU. A task that was woken before it had left its CPU, a task that is new, and a
//!   thread of the kernel's own has none.
//!
//! ```text
//!  sched_waking     sched_wakeup          sched_switch                      job done
//!       |                |                     |                               |
//!       |<--- waking_latency ----------------->|
//!                        |<- wakeup_latency -->|
//!  released |<----------------- frame_duration ------------------------------->|
//! ```
//!
//! # Cost
//!
//! A fact is counted with a few additions on arrays indexed by CPU and task; nothing is allocated
//! once the tasks exist, and memory does not grow with simulated time. Everything is counted in
//! integers; floating point appears only where a [`Metric`] is written.
//!
//! # Differences
//!
//! * A latency is never negative: the stamps of two CPUs can be out of order by the kernel time
//!   that one of them still owes, and such a sample counts as 0.
//! * Facts about signals exist only while a trace asks for them, so they are not in the digest:
//!   recording must not change it.

pub mod chain_log;
mod cluster_idle;
mod columns;
mod digest;
pub(crate) mod distribution;
mod fairness;
mod l3;
mod need;
mod power_domain;
mod report;
#[cfg(test)]
mod tests;
mod truth;
mod usage;
mod visits;
mod waits;

use crate::result::{CpuResult, Metric, TaskResult};
use chain_log::ChainLog;
use cluster_idle::ClusterIdle;
use digest::{Digest, code};
use distribution::Distribution;
use fairness::Fairness;
use l3::L3Truth;
pub use l3::MeterL3;
use need::Needs;
use schedtwin_types::arena::Arena;
use schedtwin_types::property::{Bounds, Breach, Property};
use schedtwin_types::{
    ClockDomainId, CpuId, Fact, FactKind, IpiKind, Khz, Mark, NEVER, Ns, PowerDomainId,
    PowerSource, TaskId, TaskState,
};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use truth::Truth;
use waits::Waits;

/// The facts that the meter needs of a machine, without the machine's own types.
#[derive(Clone, Debug, Default)]
pub struct MeterSetup {
    /// The CPUs, by number.
    pub cpus: Vec<MeterCpu>,
    /// The frequency domains (cpufreq policies), by number.
    pub domains: Arena<ClockDomainId, MeterDomain>,
    /// The power domains, by number.
    pub power_domains: Arena<PowerDomainId, MeterPowerDomain>,
    /// The cache that all CPUs share, if its energy counts.
    pub l3: Option<MeterL3>,
    /// Whether somebody takes the heat away ([`Meter::take_heat`]).
    pub heats: bool,
    /// Length of the warm-up, which is not measured, ns.
    pub warmup_ns: Ns,
    /// The bound of each property.
    pub bounds: Bounds,
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct MeterCpu {
    /// Its frequency domain.
    pub domain: ClockDomainId,
    /// The cluster that its measurements are summed in.
    pub cluster_name: String,
    /// Its idle states, the shallowest first.
    pub idle_states: Vec<MeterIdle>,
    /// The hardware threads of its core, itself included, ascending; empty where it is the only one.
    pub threads: Vec<usize>,
    /// The share of its own power that it draws while another thread of its core does as much or
    /// more, thousandths.
    pub second_permille: u64,
    /// Its capacity at the highest frequency, 1..=1024.
    pub capacity: u32,
}

/// An idle state of a CPU.
#[derive(Clone, Debug)]
pub struct MeterIdle {
    /// Its name.
    pub name: String,
    /// The power of the CPU in it, thousandths of the WFI curve's power.
    pub wfi_permille: u16,
    /// And thousandths of a busy CPU's power: it polls.
    pub active_permille: u16,
    /// A domain whose CPUs are all in such states draws no static power.
    pub deep: bool,
    /// Energy of an entry, pJ.
    pub entry_energy_pj: u64,
    /// Energy of an exit, pJ.
    pub exit_energy_pj: u64,
    /// Energy of an entry that was aborted, pJ.
    pub abort_energy_pj: u64,
}

/// A set of CPUs with power of its own.
#[derive(Clone, Debug)]
pub struct MeterPowerDomain {
    /// Its name.
    pub name: String,
    /// Whether it is in no other one: a package, not a cluster.
    pub outermost: bool,
    /// The power domains within it, itself included.
    pub within: Vec<PowerDomainId>,
    /// The frequency domains whose CPUs are all in it.
    pub clocks: Vec<ClockDomainId>,
    /// Its own power while it is on, then in each of its states, µW.
    pub uw: Vec<u64>,
    /// Names of its states.
    pub states: Vec<String>,
    /// Energy of an entry into each of its states, pJ.
    pub entry_energy_pj: Vec<u64>,
}

/// A frequency domain.
#[derive(Clone, Debug)]
pub struct MeterDomain {
    /// Its name.
    pub name: String,
    /// Its operating points, ascending. The domain starts at the first.
    pub opps: Vec<MeterOpp>,
    /// Power of the domain itself while all its CPUs are in deep states, µW.
    pub off_uw: u64,
    /// How its power depends on other domains, if it does.
    pub dependence: Option<MeterDependence>,
}

/// Power of a domain that depends on what others do.
///
/// A domain votes while one of its CPUs executes, with the `active_uw` of its operating point. The largest
/// vote (of equal ones the first voter's) chooses the column; while nobody votes it is column 0.
#[derive(Clone, Debug)]
pub struct MeterDependence {
    /// The domains that vote, by number. Each has a column for each of its operating points, one voter's
    /// after another's.
    pub voters: Vec<ClockDomainId>,
    /// Powers by the domain's own operating point and column: `opp * columns + column`.
    pub rows: Vec<MeterOpp>,
}

/// An operating point of a domain, with the measured power at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterOpp {
    /// Frequency, kHz.
    pub khz: Khz,
    /// Power of one CPU that executes or polls, µW.
    pub active_uw: u64,
    /// Power of one CPU that waits with its clock stopped (WFI), µW.
    pub wfi_uw: u64,
    /// Power of the domain itself while one of its CPUs executes, µW.
    pub static_uw: u64,
    /// The same while none executes, but one is not in a deep state, µW.
    pub idle_static_uw: u64,
}

impl MeterSetup {
    /// Whether anything of the machine draws power: its file has power data.
    fn has_power(&self) -> bool {
        let powers =
            |opp: &MeterOpp| opp.active_uw | opp.wfi_uw | opp.static_uw | opp.idle_static_uw != 0;
        let of_clock = |domain: &MeterDomain| {
            domain.off_uw > 0 || domain.rows().iter().chain(&domain.opps).any(powers)
        };
        let of_power_domain = |domain: &MeterPowerDomain| domain.uw.iter().any(|uw| *uw > 0);
        self.domains.iter_ids().any(|(_, domain)| of_clock(domain))
            || self.power_domains.iter_ids().any(|(_, domain)| of_power_domain(domain))
    }
}

impl MeterDomain {
    /// The powers by operating point and column of the vote.
    fn rows(&self) -> &[MeterOpp] {
        self.dependence.as_ref().map_or(&self.opps, |d| &d.rows)
    }
}

impl MeterIdle {
    /// Power of a CPU in the idle state, µW.
    fn rest_uw(&self, opp: &MeterOpp) -> u64 {
        opp.wfi_uw * u64::from(self.wfi_permille) / 1000
            + opp.active_uw * u64::from(self.active_permille) / 1000
    }
}

/// The activity of a CPU's silicon. Numbers are indexes of idle states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Executes code.
    Active,
    /// Spins in its polling idle state (state 0).
    Polling,
    /// On the way into an idle state, at full power.
    Entering(u8),
    /// Is in an idle state.
    Idle(u8),
    /// Woken from an idle state: it waits for the silicon around it to come back, and draws what it
    /// drew in that state.
    Waiting(u8),
    /// On the way out of an idle state, at full power.
    Exiting(u8),
}

impl Activity {
    /// Number of the activity in the digest.
    fn code(self) -> u64 {
        match self {
            Activity::Active => 0,
            Activity::Polling => 1,
            Activity::Entering(s) => 2 | u64::from(s) << 8,
            Activity::Idle(s) => 3 | u64::from(s) << 8,
            Activity::Exiting(s) => 4 | u64::from(s) << 8,
            Activity::Waiting(s) => 5 | u64::from(s) << 8,
        }
    }
}

/// How many kinds of [`schedtwin_types::WakeSource`] there are.
const WAKE_SOURCES: usize = 3;
/// How many values `enum cpu_idle_type` has: busy, idle, newly idle.
const BALANCE_KINDS: usize = 3;

/// The meter's state of a CPU: the kernel's side.
#[derive(Clone, Debug)]
struct CpuMeter {
    running: TaskId,
    /// Since when.
    since: Ns,
    cluster: u32,
    /// 0: active, s + 1: in idle state s, by `cpu_idle`.
    idle_level: usize,
    idle_exits: u64,
    too_deep: u64,
    too_shallow: u64,
    irq_ns: Ns,
    /// The last `cpu_idle`: whether the tick was stopped, and how long it lasted.
    tick_stopped: bool,
    residency_ns: Ns,
    stuck: Stuck,
}

/// Shallow idle periods with a stopped tick that were longer than the bound.
#[derive(Clone, Copy, Debug, Default)]
struct Stuck {
    count: u64,
    longest: Ns,
    until: Ns,
}

/// The meter's state of a task.
#[derive(Clone, Debug, Default)]
struct TaskMeter {
    /// `sched_waking` and `sched_wakeup` of the wakeup that has not led to a switch yet, or `NEVER`.
    waking_at: Ns,
    wakeup_at: Ns,
    source: u32,
    group: u32,
    /// Of the kernel's own: its wakeups have no latency.
    kernel: bool,
    switches: u64,
    migrations: u64,
    preemptions: u64,
    jobs: u64,
    /// Jobs that had begun and are not done at the end.
    open_jobs: u64,
    /// Time at the work of its program, in the window.
    user_ns: Ns,
    /// `None`: it has completed no job under `SCHED_DEADLINE`.
    deadline_misses: Option<u64>,
    dl_throttles: u64,
    /// Where it is queued or running.
    queued_on: Option<CpuId>,
    on_cpu: bool,
    /// Its wait as the queue counts it, by its class ([`waits::wait_unit`]).
    wait_unit: u64,
    /// Since when it is queued and does not run, or `NEVER` (`waits.rs`).
    waits_since: Ns,
    /// Since when it is queued there, without a sleep.
    queued_at: Ns,
    /// Its share at the last look at its CPU (`fairness.rs`).
    seen: fairness::Seen,
    /// Its waits, in the window.
    run_delay_ns: Ns,
    longest_wait_ns: Ns,
    /// Those beyond the bound of starvation.
    starved: u64,
    /// Kernel priority: -1 DEADLINE, 0..=99 RT, 100..=139 fair.
    prio: i32,
    /// Number of its cgroup in [`Meter::cgroups`], from 1 on; 0: the root.
    cgroup: u32,
}

impl TaskMeter {
    fn new(group: usize) -> TaskMeter {
        let group = group as u32;
        TaskMeter {
            waking_at: NEVER,
            wakeup_at: NEVER,
            waits_since: NEVER,
            prio: 120,
            wait_unit: waits::wait_unit(false),
            group,
            ..TaskMeter::default()
        }
    }

    /// Whether it is of the workload: neither an idle task nor the kernel's own.
    #[inline(always)]
    fn counts(&self) -> bool {
        !self.kernel
    }
}

/// Two views of the latencies of wakeups, each of which holds every sample.
#[derive(Clone, Debug)]
struct Latencies {
    /// By task group.
    by_group: Vec<Distribution>,
    /// By cluster and wake source: `cluster * WAKE_SOURCES + source`.
    by_place: Vec<Distribution>,
}

impl Latencies {
    fn new(clusters: usize) -> Latencies {
        let by_place = (0..clusters * WAKE_SOURCES).map(|_| Distribution::new()).collect();
        Latencies { by_group: Vec::new(), by_place }
    }

    #[inline]
    fn record(&mut self, group: usize, place: usize, latency: Ns) {
        let bucket = Distribution::bucket(latency);
        self.by_group[group].record_in(bucket, latency);
        self.by_place[place].record_in(bucket, latency);
    }
}

/// The measurements from the marks of a task group.
#[derive(Clone, Debug)]
struct GroupMeter {
    name: String,
    frames: Distribution,
    wu_lat: Distribution,
    slack: SlackSum,
}

/// Slack has a sign, so only its counts, sum and least are kept, all exact.
#[derive(Clone, Copy, Debug, Default)]
struct SlackSum {
    count: u64,
    /// Of those below zero.
    missed: u64,
    sum_ns: i128,
    min_ns: i64,
}

impl SlackSum {
    fn record(&mut self, slack_ns: i64) {
        self.min_ns = if self.count == 0 { slack_ns } else { self.min_ns.min(slack_ns) };
        self.count += 1;
        self.missed += u64::from(slack_ns < 0);
        self.sum_ns += i128::from(slack_ns);
    }

    fn merge(&mut self, other: &SlackSum) {
        if other.count > 0 {
            self.min_ns =
                if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
            self.count += other.count;
            self.missed += other.missed;
            self.sum_ns += other.sum_ns;
        }
    }
}

/// Counts of the whole machine, in the window.
#[derive(Clone, Debug, Default)]
struct Counts {
    switches: u64,
    migrations: u64,
    preemptions: u64,
    ticks: u64,
    ipis: [u64; IpiKind::COUNT],
    balance: [u64; BALANCE_KINDS],
    balance_moved: u64,
}

/// Measures one run.
#[derive(Clone, Debug)]
pub struct Meter {
    setup: MeterSetup,
    window_start: Ns,
    /// No time is booked after it.
    end: Ns,
    digest: Digest,
    counts: Counts,
    cpus: Vec<CpuMeter>,
    tasks: Vec<TaskMeter>,
    /// Name of each task as `comm` shows it; `None` for a number that no task has.
    names: Vec<Option<String>>,
    /// Time on a CPU: `task * cpus + cpu`. Task 0 is the idle tasks, each on its CPU.
    run_ns: Vec<Ns>,
    waking: Latencies,
    wakeup: Latencies,
    groups: Vec<GroupMeter>,
    group_by_name: BTreeMap<String, usize>,
    /// Paths of the workload's cgroups that have tasks at the end.
    cgroups: Vec<String>,
    /// Threads that wait at the end for a lock that was not given back, and the longest of these waits.
    locks_held: u64,
    lock_held: Option<Breach>,
    /// Names of the clusters, by number.
    clusters: Vec<String>,
    cluster_idle: Vec<ClusterIdle>,
    /// Per frequency domain, of `cpu_frequency`: their sum, kHz, and their count.
    khz_told: Arena<ClockDomainId, (u64, u64)>,
    waits: Waits,
    /// Breaches of cgroups with a `cpu.max`.
    of_limits: Vec<Breach>,
    fairness: Fairness,
    overutilized: bool,
    overutilized_since: Ns,
    overutilized_ns: Ns,
    needs: Needs,
    truth: Truth,
    l3: L3Truth,
}

impl Meter {
    /// A meter at time 0: every CPU runs its idle task and is active, every domain is at its first
    /// operating point. The twin reports at time 0 what is different.
    pub fn new(setup: MeterSetup) -> Meter {
        let mut clusters: Vec<String> = Vec::new();
        let mut cpus = Vec::with_capacity(setup.cpus.len());
        for cpu in &setup.cpus {
            let known = clusters.iter().position(|name| *name == cpu.cluster_name);
            let cluster = known.unwrap_or(clusters.len());
            if known.is_none() {
                clusters.push(cpu.cluster_name.clone());
            }
            cpus.push(CpuMeter {
                running: TaskId::IDLE,
                since: 0,
                cluster: cluster as u32,
                idle_level: 0,
                idle_exits: 0,
                too_deep: 0,
                too_shallow: 0,
                irq_ns: 0,
                tick_stopped: false,
                residency_ns: 0,
                stuck: Stuck::default(),
            });
        }
        let cluster_idle = (0..clusters.len()).map(|cluster| {
            let here =
                || cpus.iter().zip(&setup.cpus).filter(|(c, _)| c.cluster as usize == cluster);
            let states = here().map(|(_, cpu)| cpu.idle_states.len()).max().unwrap_or(0);
            ClusterIdle::new(here().count() as u32, states, setup.warmup_ns)
        });
        Meter {
            cluster_idle: cluster_idle.collect(),
            khz_told: vec![(0, 0); setup.domains.len()].into(),
            window_start: setup.warmup_ns,
            end: NEVER,
            digest: Digest::new(),
            counts: Counts::default(),
            // The idle tasks belong to no group: they are never woken and never done.
            tasks: vec![TaskMeter { kernel: true, ..TaskMeter::new(u32::MAX as usize) }],
            names: vec![Some("swapper".to_owned())],
            run_ns: vec![0; cpus.len()],
            cpus,
            waking: Latencies::new(clusters.len()),
            wakeup: Latencies::new(clusters.len()),
            groups: Vec::new(),
            group_by_name: BTreeMap::new(),
            clusters,
            cgroups: Vec::new(),
            locks_held: 0,
            lock_held: None,
            of_limits: Vec::new(),
            fairness: Fairness::new(setup.cpus.len()),
            waits: Waits::new(setup.cpus.len(), setup.warmup_ns, setup.bounds.clone()),
            overutilized: false,
            overutilized_since: 0,
            overutilized_ns: 0,
            needs: Needs::new(&setup),
            l3: L3Truth::default(),
            truth: Truth::new(&setup),
            setup,
        }
    }

    /// The name of a task.
    pub fn task_name(&self, id: TaskId) -> Option<String> {
        self.names.get(id.index())?.clone()
    }

    /// A task exists from now on. `name` is its `comm`, `group` the label that its measurements are
    /// summed under. Every task that a fact names must have been created; numbers are not reused.
    pub fn task_created(&mut self, id: TaskId, name: &str, group: &str) {
        let group_index = match self.group_by_name.get(group) {
            Some(index) => *index,
            None => {
                let index = self.groups.len();
                self.group_by_name.insert(group.to_owned(), index);
                self.groups.push(GroupMeter {
                    name: group.to_owned(),
                    frames: Distribution::new(),
                    wu_lat: Distribution::new(),
                    slack: SlackSum::default(),
                });
                self.waking.by_group.push(Distribution::new());
                self.wakeup.by_group.push(Distribution::new());
                index
            }
        };
        let index = id.index();
        if index >= self.tasks.len() {
            self.tasks.resize(index + 1, TaskMeter::new(u32::MAX as usize));
            self.names.resize(index + 1, None);
            self.run_ns.resize((index + 1) * self.cpus.len(), 0);
        }
        assert!(self.names[index].is_none(), "{id:?} is created once");
        self.tasks[index] = TaskMeter::new(group_index);
        self.fairness.make_room(self.tasks.len());
        self.names[index] = Some(name.to_owned());
        self.digest.absorb(0, code::TASK_CREATED, 0, 0, u64::from(id.0));
    }

    /// From now on, intervals longer than these break properties.
    pub fn bound_by(&mut self, bounds: Bounds) {
        self.waits.bound_by(bounds.clone());
        self.needs.bound_by(&bounds);
        self.setup.bounds = bounds;
    }

    /// The run ends at `end`, which no booked time has passed yet.
    pub fn ends_at(&mut self, end: Ns) {
        self.end = end;
    }

    /// A task is a thread of the kernel's own: its time counts, its latencies are nobody's.
    pub fn kernel_thread(&mut self, id: TaskId) {
        self.tasks[id.index()].kernel = true;
    }

    /// The kernel priority of a task: -1 DEADLINE, 0..=99 RT, 100..=139 fair.
    pub fn task_prio(&mut self, id: TaskId, prio: i32) {
        // What waits keeps the class with which it is counted.
        let task = &mut self.tasks[id.index()];
        task.prio = prio;
        if task.waits_since == NEVER {
            task.wait_unit = waits::wait_unit(prio < 100);
        }
    }

    /// A task is in the cgroup with this path when the run ends.
    pub fn task_cgroup(&mut self, id: TaskId, path: &str) {
        let known = self.cgroups.iter().position(|cgroup| cgroup == path);
        let at = known.unwrap_or_else(|| {
            self.cgroups.push(path.to_owned());
            self.cgroups.len() - 1
        });
        self.tasks[id.index()].cgroup = at as u32 + 1;
    }

    /// A job that was released then is not done at the end. It counts as a frame with its age, a lower bound, if that is
    /// longer than any that is done: a shorter one says nothing yet.
    pub fn open_job(&mut self, id: TaskId, released: Ns, end: Ns) {
        let task = &mut self.tasks[id.index()];
        task.open_jobs += 1;
        let frames = &mut self.groups[task.group as usize].frames;
        let age = end.saturating_sub(released);
        if released >= self.window_start && frames.max().is_none_or(|max| age as f64 > max) {
            frames.record(age);
        }
    }

    /// A thread waits at the end for a lock that `holder` has.
    pub fn open_lock(&mut self, waiter: TaskId, holder: (&str, bool), since: Ns, end: Ns) {
        let bound = self.setup.bounds.of(Property::LockHeld);
        let age = end.saturating_sub(since);
        if age <= bound {
            return;
        }
        self.locks_held += 1;
        if self.lock_held.as_ref().is_some_and(|worst| worst.longest >= age) {
            return;
        }
        let (name, ended) = holder;
        let ended = if ended { ", which has ended" } else { "" };
        let group = self.groups.get(self.tasks[waiter.index()].group as usize);
        self.lock_held = Some(Breach {
            property: Property::LockHeld,
            count: 0,
            longest: age,
            open: true,
            since,
            who: self.task_name(waiter).unwrap_or_default(),
            group: group.map_or_else(String::new, |group| group.name.clone()),
            how: format!("for a lock that {name} has{ended}"),
            bound,
        });
    }

    /// Judges the cgroup with this path and a `cpu.max`: for how long it was throttled at a time with usage below that,
    /// in periods, and by how much it used more.
    pub fn limited(&mut self, path: &str, (early_for, nr_early): (Ns, u64), beyond: Ns) {
        let amounts = [
            (
                Property::ThrottledEarly,
                early_for,
                nr_early,
                "in periods in which it used less than its cpu.max",
            ),
            (Property::Bandwidth, beyond, 1, "more than its cpu.max"),
        ];
        for (property, longest, count, how) in amounts {
            let bound = self.setup.bounds.of(property);
            if longest > bound {
                self.of_limits.push(Breach {
                    property,
                    count,
                    longest,
                    open: false,
                    since: 0,
                    who: format!("cgroup {path}"),
                    group: String::new(),
                    how: how.to_string(),
                    bound,
                });
            }
        }
    }

    /// Cgroups with a limit that break a property.
    fn of_limits(&self, property: Property) -> u64 {
        self.of_limits.iter().filter(|breach| breach.property == property).count() as u64
    }

    /// The properties that were broken, the gravest first. After [`Meter::finish`].
    pub fn broken(&self, end: Ns) -> Vec<Breach> {
        let mut broken = self.broken_waits();
        for property in [Property::ThrottledEarly, Property::Bandwidth] {
            let all = self.of_limits.iter().filter(|breach| breach.property == property);
            broken.extend(all.max_by_key(|breach| breach.longest).cloned());
        }
        broken.extend(self.needs.broken(&self.setup, end));
        broken.extend(self.needs.broken_above(&self.setup));
        broken.extend(self.broken_idle());
        let held = self.lock_held.clone();
        broken.extend(held.map(|breach| Breach { count: self.locks_held, ..breach }));
        broken.sort_by_key(|breach| breach.property);
        broken
    }

    /// Takes in one fact.
    #[inline(always)]
    pub fn fact(&mut self, fact: &Fact) {
        let at = fact.at;
        let cpu = fact.cpu;
        let counted = u64::from(at >= self.window_start);
        match fact.kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.switch(at, cpu, prev, next);
                let stays = matches!(prev_state, TaskState::Running | TaskState::Preempted);
                self.queues_switch(at, cpu, prev, next, stays);
            }
            FactKind::Waking { task, source, .. } => {
                let meter = &mut self.tasks[task.index()];
                meter.waking_at = at;
                meter.source = source as u32;
            }
            FactKind::Wakeup { task, target, new } => {
                // A new task was not asleep, so it has no latency of waking up.
                self.tasks[task.index()].wakeup_at = if new { NEVER } else { at };
                self.queue_task(at, task, Some(target));
            }
            FactKind::Migrate { task, to, .. } => {
                self.tasks[task.index()].migrations += counted;
                self.counts.migrations += counted;
                if self.tasks[task.index()].queued_on.is_some() {
                    self.queue_task(at, task, Some(to));
                }
            }
            FactKind::IdleEnter { state, tick_stopped } => {
                self.cpus[cpu.index()].tick_stopped = tick_stopped;
                self.idle_level(at, cpu, usize::from(state) + 1);
            }
            FactKind::IdleExit { residency_ns, .. } => {
                self.cpus[cpu.index()].residency_ns = residency_ns;
                self.cpus[cpu.index()].idle_exits += counted;
                self.idle_level(at, cpu, 0);
            }
            FactKind::IdleMiss { below, .. } => {
                let meter = &mut self.cpus[cpu.index()];
                meter.too_shallow += counted & u64::from(below);
                meter.too_deep += counted & u64::from(!below);
                if below && meter.residency_ns > self.setup.bounds.of(Property::IdleStuck) {
                    self.stuck(at, cpu, counted);
                }
            }
            FactKind::Frequency { policy, khz, requested_at } => {
                let domain = policy.clock_domain();
                self.khz_told[domain].0 += counted * u64::from(khz);
                self.khz_told[domain].1 += counted;
                self.truth.frequency_wanted(&self.setup, domain, khz, requested_at);
            }
            FactKind::Tick => {
                self.counts.ticks += counted;
                self.tick_looks(at, cpu);
                if !self.cpus[cpu.index()].running.is_idle() {
                    let domain = self.setup.cpus[cpu.index()].domain;
                    self.needs.busy_tick(at, domain, &self.setup.domains[domain].opps);
                }
            }
            FactKind::Ipi { kind, .. } => {
                self.counts.ipis[kind as usize] += counted;
            }
            FactKind::IrqExit { spent_ns } => {
                let entry = at.saturating_sub(Ns::from(spent_ns));
                self.cpus[cpu.index()].irq_ns += self.in_window(entry, at);
            }
            FactKind::Balance { idle, moved, .. } => {
                self.counts.balance[idle as usize] += counted;
                self.counts.balance_moved += counted * u64::from(moved);
            }
            FactKind::Preempted { task } => {
                self.tasks[task.index()].preemptions += counted;
                self.counts.preemptions += counted;
            }
            FactKind::DlThrottled { task } => {
                self.tasks[task.index()].dl_throttles += counted;
            }
            FactKind::Overutilized { on } => {
                self.close_overutilized(at);
                self.overutilized = on;
            }
            // No figure counts the others.
            _ => {}
        }
        let digest = &mut self.digest;
        fact.kind.digest(|code, small, word| digest.absorb(at, code, cpu.0, small, word));
    }

    /// A CPU was in a state for too long in which it should have been in a deeper one, and no tick could correct it.
    #[cold]
    fn stuck(&mut self, at: Ns, cpu: CpuId, counted: u64) {
        let meter = &mut self.cpus[cpu.index()];
        if !meter.tick_stopped || counted == 0 {
            return;
        }
        meter.stuck.count += 1;
        if meter.residency_ns > meter.stuck.longest {
            (meter.stuck.longest, meter.stuck.until) = (meter.residency_ns, at);
        }
    }

    fn broken_idle(&self) -> Option<Breach> {
        let count = self.cpus.iter().map(|cpu| cpu.stuck.count).sum();
        let stuck = self.cpus.iter().map(|cpu| cpu.stuck).enumerate();
        let (cpu, worst) = stuck.max_by_key(|(_, stuck)| stuck.longest)?;
        (count > 0).then(|| Breach {
            property: Property::IdleStuck,
            count,
            longest: worst.longest,
            open: false,
            since: worst.until.saturating_sub(worst.longest),
            who: format!("CPU {cpu}"),
            group: String::new(),
            how: "in a shallow state with its tick stopped".to_string(),
            bound: self.setup.bounds.of(Property::IdleStuck),
        })
    }

    /// The part of a time that is in the window; none of one that goes back.
    #[inline]
    fn in_window(&self, from: Ns, until: Ns) -> Ns {
        until.min(self.end).max(self.window_start).saturating_sub(from.max(self.window_start))
    }

    /// `cpu` is at a level of [`ClusterIdle`] from now on.
    #[inline]
    fn idle_level(&mut self, at: Ns, cpu: CpuId, level: usize) {
        let meter = &mut self.cpus[cpu.index()];
        let before = std::mem::replace(&mut meter.idle_level, level);
        self.cluster_idle[meter.cluster as usize].moves(at.min(self.end), before, level);
    }

    /// `next` gets `cpu` from `prev`.
    #[inline]
    fn switch(&mut self, at: Ns, cpu: CpuId, prev: TaskId, next: TaskId) {
        let counted = u64::from(at >= self.window_start);
        self.counts.switches += counted;
        let meter = &mut self.cpus[cpu.index()];
        assert!(meter.running == prev, "{cpu:?} switches from a task that it does not run");
        assert!(at >= meter.since, "{cpu:?} switches before its last switch");
        let since = std::mem::replace(&mut meter.since, at);
        meter.running = next;
        let cluster = meter.cluster as usize;
        self.run_ns[prev.index() * self.setup.cpus.len() + cpu.index()] +=
            self.in_window(since, at);

        // Woken while it still ran: it did not wait, and its next switch has another cause.
        let leaving = &mut self.tasks[prev.index()];
        leaving.waking_at = NEVER;
        leaving.wakeup_at = NEVER;

        let entering = &mut self.tasks[next.index()];
        entering.switches += counted;
        let (waking_at, wakeup_at) = (entering.waking_at, entering.wakeup_at);
        entering.waking_at = NEVER;
        entering.wakeup_at = NEVER;
        if wakeup_at == NEVER || counted == 0 || entering.kernel {
            return;
        }
        let group = entering.group as usize;
        let place = cluster * WAKE_SOURCES + entering.source as usize;
        self.wakeup.record(group, place, at.saturating_sub(wakeup_at));
        if waking_at != NEVER {
            self.waking.record(group, place, at.saturating_sub(waking_at));
        }
    }

    /// Takes in what a workload says about its own progress.
    pub fn mark(&mut self, at: Ns, task: TaskId, mark: Mark) {
        let counted = at >= self.window_start;
        let meter = &mut self.tasks[task.index()];
        let group = &mut self.groups[meter.group as usize];
        let (code, word) = match mark {
            Mark::JobDone { released } => {
                if counted {
                    meter.jobs += 1;
                    group.frames.record(at.saturating_sub(released));
                }
                (code::JOB_DONE, released)
            }
            Mark::DeadlineJobDone { released, deadline } => {
                let missed = u64::from(counted && at.saturating_sub(released) > deadline);
                *meter.deadline_misses.get_or_insert(0) += missed;
                if counted {
                    meter.jobs += 1;
                    group.frames.record(at.saturating_sub(released));
                }
                (code::DEADLINE_JOB_DONE, released)
            }
            Mark::Slack { slack_ns } => {
                if counted {
                    group.slack.record(slack_ns);
                }
                (code::SLACK, slack_ns as u64)
            }
            Mark::WakeupLatency { latency_ns } => {
                if counted {
                    group.wu_lat.record(latency_ns);
                }
                (code::WAKEUP_LATENCY, latency_ns)
            }
        };
        self.digest.absorb(at, code, 0, u64::from(task.0), word);
    }

    /// From `at` on, the silicon of `cpu` does `activity`. Truth comes in time order; saying what
    /// is already so is free and leaves no trace in the digest.
    #[inline]
    pub fn cpu_activity(&mut self, at: Ns, cpu: CpuId, activity: Activity) {
        if self.truth.cpu_activity(&self.setup, at, cpu, activity) {
            self.digest.absorb(at, code::CPU_ACTIVITY, cpu.0, activity.code(), 0);
        }
    }

    /// The hardware does not follow the governor's last wish for `domain`, because another domain
    /// forces a higher frequency: the wish has no update latency.
    pub fn frequency_overridden(&mut self, at: Ns, domain: ClockDomainId) {
        self.truth.frequency_overridden(domain);
        self.needs.overridden(at, domain);
    }

    /// From `at` on, somebody records why chains from need to clock take as long as they do.
    pub fn log_chains(&mut self, at: Ns) {
        self.needs.keep_log(at, &self.setup);
    }

    /// Returns the log of those chains, if a record is written.
    pub fn chain_log(&mut self) -> Option<&mut ChainLog> {
        self.needs.log()
    }

    /// From `at` on, `cpu` needs operating point number `opp` of its domain (`need.rs`). The digest does without: it
    /// follows from what the kernel did, and looking is no deed.
    pub fn cpu_needs(&mut self, at: Ns, cpu: CpuId, opp: usize) {
        self.truth.cpu_needs(at, cpu, opp);
        self.needs.cpu_needs(at, cpu, self.setup.cpus[cpu.index()].domain, opp);
    }

    /// From `at` on, the governor wants `domain` at operating point number `opp`.
    pub fn frequency_requested(&mut self, at: Ns, domain: ClockDomainId, opp: usize) {
        self.needs.requested(at, domain, opp);
    }

    /// From `at` on, limits keep `domain` at these of its operating points.
    pub fn frequency_limited(
        &mut self,
        at: Ns,
        domain: ClockDomainId,
        opps: RangeInclusive<usize>,
    ) {
        self.needs.limited(at, domain, opps);
    }

    /// Firmware lets `domain` run at operating point number `opp` at most.
    pub fn firmware_allows(&mut self, domain: ClockDomainId, opp: usize) {
        self.needs.firmware_allows(domain, opp);
    }

    /// From `at` on, `domain` runs at its operating point number `opp`.
    pub fn domain_opp(&mut self, at: Ns, domain: ClockDomainId, opp: usize) {
        if self.truth.domain_opp(&self.setup, at, domain, opp) {
            self.digest.absorb(at, code::DOMAIN_OPP, domain.0, opp as u64, 0);
            self.needs.settled(at, domain, opp);
        }
    }

    /// From `at` on, power domain `domain` is in `state`; `None`: it is on. The digest does without: it follows
    /// from what the CPUs do.
    pub fn power_domain(&mut self, at: Ns, domain: PowerDomainId, state: Option<u8>) {
        self.truth.power_domain(&self.setup, at, domain, state);
    }

    /// Hands out what has been turned into heat since the last call, up to `at`, fJ: first of each frequency
    /// domain, then of each power domain. Only where [`MeterSetup::heats`] is set.
    pub fn take_heat(&mut self, at: Ns, take: impl FnMut(PowerSource, u128)) {
        self.truth.take_heat(at, take);
    }

    /// The run ends: closes everything that is open and writes down what was measured, in a fixed
    /// order.
    pub fn finish(&mut self, end: Ns) -> (Vec<Metric>, Vec<TaskResult>, Vec<CpuResult>) {
        self.ends_at(end);
        for cpu in 0..self.cpus.len() {
            let CpuMeter { running, since, .. } = self.cpus[cpu];
            self.run_ns[running.index() * self.cpus.len() + cpu] += self.in_window(since, end);
            self.cpus[cpu].since = end.max(since);
        }
        self.close_overutilized(end);
        self.cluster_idle.iter_mut().for_each(|cluster| cluster.close(end));
        self.truth.close(end);
        let span_ns = end.max(self.window_start) - self.window_start;
        (report::metrics(self, span_ns), report::tasks(self), report::cpus(self))
    }

    /// Recomputes every sum from scratch and panics if one is wrong: per CPU, activities and tasks
    /// fill the span; a task runs on one CPU; the energy booked never falls. For tests.
    pub fn verify(&self, now: Ns) {
        let mut running: Vec<TaskId> = Vec::new();
        let mut booked_ns: Vec<Ns> = vec![0; self.cpus.len()];
        for of_task in self.run_ns.chunks_exact(self.cpus.len()) {
            for (booked, ns) in booked_ns.iter_mut().zip(of_task) {
                *booked += ns;
            }
        }
        for (index, cpu) in self.cpus.iter().enumerate() {
            let until = now.max(cpu.since);
            let (span, open) = (self.in_window(0, until), self.in_window(cpu.since, until));
            assert_eq!(booked_ns[index] + open, span, "cpu{index}: its tasks fill the span");
            assert!(cpu.too_deep + cpu.too_shallow <= cpu.idle_exits, "cpu{index}: idle misses");
            if !cpu.running.is_idle() {
                running.push(cpu.running);
            }
        }
        running.sort_unstable();
        assert!(running.windows(2).all(|pair| pair[0] != pair[1]), "a task runs on two CPUs");
        let mut runnable = vec![(0, 0); self.cpus.len()];
        for task in self.tasks.iter().filter(|task| !task.kernel) {
            if let Some(cpu) = task.queued_on {
                let (queued, waiting): &mut (u32, u32) = &mut runnable[cpu.index()];
                *queued += 1;
                *waiting += u32::from(task.waits_since != NEVER);
                assert!(task.on_cpu != (task.waits_since != NEVER), "queued: runs or waits");
            }
        }
        for (index, counts) in runnable.into_iter().enumerate() {
            assert_eq!(self.waits.queued(index), counts, "cpu{index}: queued, waiting");
        }
        for latencies in [&self.waking, &self.wakeup] {
            let count = |parts: &[Distribution]| parts.iter().map(Distribution::count).sum::<u64>();
            let (groups, places) = (count(&latencies.by_group), count(&latencies.by_place));
            assert_eq!(groups, places, "both views hold every latency");
        }
        self.needs.verify();
        self.truth.verify(&self.setup, now);
    }

    /// Digest of everything taken in so far, in order; the same on every computer.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// The power of `domain` and its CPUs at this instant, µW.
    pub fn domain_power_uw(&self, domain: ClockDomainId) -> u64 {
        self.truth.domain_power_uw(&self.setup, domain)
    }

    /// The power of power domain `domain` by itself at this instant, µW.
    pub fn power_domain_uw(&self, domain: PowerDomainId) -> u64 {
        self.truth.power_domains[domain].uw()
    }

    fn close_overutilized(&mut self, at: Ns) {
        if self.overutilized {
            // Two CPUs may stamp the change out of order by the kernel time that one owes.
            self.overutilized_ns += self.in_window(self.overutilized_since, at);
        }
        self.overutilized_since = at;
    }
}
