// SPDX-License-Identifier: GPL-2.0-or-later
//! What must be true at every event, judged by the facts alone: nothing here asks the kernel or the
//! meter, so an error that both share is still found.
//!
//! A task is in one of five states, and every fact about it must fit the one it is in:
//!
//! ```text
//!             new            Switch next
//!  (unknown) ─────► Queued ◄─────────────► Running ──Exit, Switch prev──► Dead
//!                     ▲    Switch prev R+     │ Switch prev S, D
//!              Wakeup │                       ▼
//!                   Waking ◄───────────── Sleeping
//!                            Waking
//! ```

use crate::scenarios::{KERNEL, MS, SECOND, built_in, defined, few, metric, published};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_kernel::config::IdleGovernor;
use schedtwin_types::{
    CpuId, DecisionRecord, Fact, FactKind, NEVER, Ns, PowerSource, TaskId, TaskState,
};
use schedtwin_workload::{Host, Workload};
use std::sync::Arc;

/// How long a CPU that idles may take to run a task that has been given to it: the interrupt, the exit
/// latency of the deepest state (0.24 ms on pixel6) and the kernel's paths on the slowest core at its
/// lowest clock (some 50 times what they take at full speed).
const IDLE_RESPONSE_MAX: Ns = 2 * MS;

/// And what of that each CPU of the machine may add: who balances for all idle CPUs does so in one entry of the kernel, which here is
/// not cut short when a task is given to it, as it is in Linux (up to 11 ms on 224 CPUs).
const IDLE_RESPONSE_PER_CPU: Ns = 60_000;

/// A path of the kernel is one piece here, and no tick comes within it: a fork at the lowest clock of a little core.
const LONGEST_PATH: Ns = 1_500_000;

/// How late a tick may be against its grid on a CPU that runs a task: the interrupt's latency and the
/// longest path that keeps interrupts off: a fork takes 1.3 ms on pixel6's little cores at their lowest clock, which
/// rate limits of 10 ms before 6.9 let last.
const TICK_LATE_MAX: Ns = 2 * MS;

/// How long any task may wait for a CPU in the workloads here, none of which has more than a few
/// runnable tasks a CPU: longer is a task that was forgotten.
const WAIT_MAX: Ns = SECOND;

/// An entry of the kernel is atomic at its time, but stamps what it does at that time plus the work
/// that it owes by then. Another CPU can therefore take a task from its queue before the stamp of the
/// waker that put it there, at most by the waker's debt: that of a call which wakes many threads, on the
/// slowest core. (Wake lists keep their wakers' time, so a wakeup never comes before its waking.)
/// The longest such path is a fork at the lowest clock, as above.
const DEBT_MAX: Ns = 2 * MS;

/// How many switches in a hundred wakeups may be so: up to 8 are, where one timer interrupt wakes many threads without
/// wake lists, as jiffies do to a phone's background. More would be another reason.
const OVERTAKEN_PERCENT_MAX: u64 = 8;

/// The same without wake lists: a thread that is pinned to one CPU, and whose timer fires on another, is put into its queue by
/// that one each time (`boosted-sleeper`: 16 % of the wakeups on a Juno r2).
const OVERTAKEN_PERCENT_WITHOUT_WAKE_LISTS_MAX: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Queued,
    Running,
    Sleeping,
    Waking,
    Dead,
}

/// No path takes longer, ns.
const PATH_MAX: Ns = 200_000;

#[derive(Clone, Debug)]
struct Watched {
    name: String,
    /// `None` until `sched_wakeup_new`, or until the first fact of a task that exists from the boot.
    stage: Option<Stage>,
    /// It has been forked and did not run yet.
    is_new: bool,
    cpu: CpuId,
    since: Ns,
    /// Since when it belongs to `cpu`.
    placed_at: Ns,
    waking_at: Ns,
    run_ns: Vec<Ns>,
    switches: u64,
    migrations: u64,
}

#[derive(Clone, Debug)]
struct WatchedCpu {
    running: TaskId,
    since: Ns,
    /// Since when it runs tasks without a break; `NEVER` while it runs the idle task.
    busy_since: Ns,
    last_fact: Ns,
    /// The idle state it is in and since when.
    idle: Option<(u8, Ns)>,
    /// Its state 0 polls.
    polls: bool,
    /// Number of the last tick's grid point.
    last_tick: u64,
    in_irq: bool,
    idle_ns: Ns,
}

/// Checks each fact as it comes.
struct Invariants {
    name: String,
    tick_ns: Ns,
    cpus: Vec<WatchedCpu>,
    /// By CPU who ran, from when until when: a path that is under way at the end may be stamped after it.
    stints: Vec<Vec<(TaskId, Ns, Ns)>>,
    tasks: Vec<Watched>,
    domains: Vec<(Ns, u64, u128)>,
    /// Of which so many are clock domains, the first ones.
    nr_clocks: usize,
    /// The driver changes a clock that another one holds.
    coupling_by_driver: bool,
    overutilized: bool,
    switches: u64,
    ticks: u64,
    wakeups: u64,
    /// Stamps against the order of what happened, see [`DEBT_MAX`]: of a waking and its wakeup, and of a
    /// wakeup and its switch.
    overtaken: [u64; 2],
}

impl Invariants {
    fn new(name: &str, scenario: &Scenario) -> Invariants {
        let nr_cpus = scenario.machine().nr_cpus();
        let cpu = WatchedCpu {
            running: TaskId::IDLE,
            since: 0,
            busy_since: NEVER,
            last_fact: 0,
            idle: None,
            polls: false,
            last_tick: 0,
            in_irq: false,
            idle_ns: 0,
        };
        Invariants {
            name: name.to_string(),
            tick_ns: scenario.kernel().config.tick_nsec(),
            cpus: (0..nr_cpus)
                .map(|c| WatchedCpu {
                    polls: scenario.machine().idle_states(CpuId(c as u16))[0].polling,
                    ..cpu.clone()
                })
                .collect(),
            stints: vec![Vec::new(); nr_cpus],
            tasks: vec![],
            domains: vec![(0, 0, 0); nr_domains(scenario)],
            nr_clocks: scenario.machine().domains.len(),
            coupling_by_driver: scenario.machine().coupling_by_driver,
            overutilized: false,
            switches: 0,
            ticks: 0,
            wakeups: 0,
            overtaken: [0; 2],
        }
    }

    #[track_caller]
    fn must(&self, is: bool, fact: &Fact, rule: &str) {
        if !is {
            let about = |id: TaskId| match self.tasks.get(id.index()) {
                Some(task) => format!("\n  {id:?} {task:?}"),
                None => String::new(),
            };
            let tasks = match fact.kind {
                FactKind::Switch { prev, next, .. } => about(prev) + &about(next),
                FactKind::Waking { task, .. }
                | FactKind::Wakeup { task, .. }
                | FactKind::Migrate { task, .. }
                | FactKind::Exit { task }
                | FactKind::DlThrottled { task }
                | FactKind::Preempted { task } => about(task),
                _ => String::new(),
            };
            let cpu = &self.cpus[fact.cpu.index()];
            panic!("{}: {rule}: {fact:?}\n  {cpu:?}{tasks}", self.name);
        }
    }

    /// `fact` comes after what was stamped `before`, or is ahead of it by a path's debt: counted as this one of
    /// `overtaken`, if any.
    fn in_order(&mut self, counts: Option<usize>, fact: &Fact, before: Ns, rule: &str) {
        if fact.at < before {
            if let Some(pair) = counts {
                self.overtaken[pair] += 1;
            }
            self.must(before - fact.at <= DEBT_MAX, fact, rule);
        }
    }

    fn task_mut(&mut self, id: TaskId) -> &mut Watched {
        &mut self.tasks[id.index()]
    }

    fn switch(&mut self, fact: &Fact, prev: TaskId, next: TaskId, state: TaskState) {
        let Fact { at, cpu, .. } = *fact;
        let c = self.cpus[cpu.index()].clone();
        self.switches += 1;
        self.must(prev == c.running, fact, "who leaves is who ran");
        self.must(prev != next, fact, "a switch is between two");
        if prev.is_idle() {
            self.cpus[cpu.index()].idle_ns += at - c.since;
        } else {
            let stage = match state {
                TaskState::Running | TaskState::Preempted => Stage::Queued,
                TaskState::Interruptible | TaskState::Uninterruptible => Stage::Sleeping,
                TaskState::Dead => Stage::Dead,
            };
            let was = self.tasks[prev.index()].stage;
            if was == Some(Stage::Dead) {
                self.must(stage == Stage::Dead, fact, "an exited task leaves dead");
            } else {
                self.must(stage != Stage::Dead, fact, "only an exited task leaves dead");
                self.must(was == Some(Stage::Running), fact, "who leaves was running");
            }
            let task = self.task_mut(prev);
            (task.stage, task.since) = (Some(stage), at);
            task.run_ns[cpu.index()] += at - c.since;
        }
        if !next.is_idle() {
            let task = self.tasks[next.index()].clone();
            let elsewhere = self.cpus.iter().filter(|other| other.running == next).count();
            self.must(elsewhere == 0, fact, "a task runs on one CPU");
            // A CPU's stopper is woken inside the kernel, without a tracepoint's fact.
            if !task.name.starts_with("migration/") {
                self.must(task.stage == Some(Stage::Queued), fact, "who enters was queued");
                self.must(task.cpu == cpu, fact, "who enters was queued here");
                // A CPU that polls sees a new task at once, and the fork goes on for some 20 us: bounded, not counted.
                let counts = if task.is_new && c.polls { None } else { Some(1) };
                self.in_order(counts, fact, task.since, "wakeup comes before the switch");
                self.task_mut(next).is_new = false;
                let waited = at.saturating_sub(task.since);
                self.must(waited <= WAIT_MAX, fact, "nobody is forgotten");
                if prev.is_idle() {
                    let given = c.since.max(task.since).max(task.placed_at);
                    let idle_with_it = at.saturating_sub(given);
                    self.must(
                        idle_with_it <= self.idle_response_max(),
                        fact,
                        "an idle CPU takes up a task soon",
                    );
                }
            }
            let task = self.task_mut(next);
            (task.stage, task.since, task.cpu) = (Some(Stage::Running), at, cpu);
            task.switches += 1;
        }
        self.stints[cpu.index()].push((prev, self.cpus[cpu.index()].since, at));
        let c = &mut self.cpus[cpu.index()];
        (c.running, c.since) = (next, at);
        if next.is_idle() {
            self.no_tick_is_missing(fact, at);
            self.cpus[cpu.index()].busy_since = NEVER;
        } else if c.busy_since == NEVER {
            c.busy_since = at;
        }
    }

    /// Every grid point while the CPU was busy, up to `until`, has had its tick.
    fn no_tick_is_missing(&self, fact: &Fact, until: Ns) {
        let c = &self.cpus[fact.cpu.index()];
        if c.busy_since == NEVER || until < TICK_LATE_MAX {
            return;
        }
        let due = (until - TICK_LATE_MAX) / self.tick_ns;
        if due * self.tick_ns > c.busy_since {
            self.must(c.last_tick >= due, fact, "a busy CPU ticks on the grid");
        }
    }

    fn idle_response_max(&self) -> Ns {
        IDLE_RESPONSE_MAX + IDLE_RESPONSE_PER_CPU * self.cpus.len() as Ns
    }

    /// The end: closes what is open and compares with what the meter says.
    fn finish(mut self, scenario: &Scenario, result: &RunResult) {
        let end = result.simulated_ns;
        let [wakeups, switches] = self.overtaken;
        assert_eq!(wakeups, 0, "{}: woken before the waking", self.name);
        // Where many CPUs look for work, a burst is taken by many of them.
        let percent = match scenario.kernel().config.features.ttwu_queue {
            true => OVERTAKEN_PERCENT_MAX,
            false => OVERTAKEN_PERCENT_WITHOUT_WAKE_LISTS_MAX,
        };
        let most = self.wakeups * percent / 100 + 3 + self.cpus.len() as u64 / 5;
        // Threads that talk wake each other all the time, one interrupt of a disk wakes many, and idle hardware threads look for
        // work meanwhile.
        let workload = scenario.provenance().workload;
        let bounded = !TALKING.iter().any(|name| workload.starts_with(name));
        assert!(
            !bounded || switches <= most,
            "{}: {switches} of {} wakeups",
            self.name,
            self.wakeups
        );
        let shallow = scenario.kernel().config.cpuidle == IdleGovernor::Shallow;
        for (domain, (since, power, booked)) in scenario.machine().domains.iter().zip(&self.domains)
        {
            let fj = booked + u128::from(*power) * u128::from(end - since);
            let drawn = fj as f64 / 1e12;
            let told = defined(result, "energy", "sum", &[("domain", &domain.name)]);
            // Without power data nothing is told.
            assert!(
                told.is_some() || drawn == 0.0,
                "{}: {}: {drawn} drawn",
                self.name,
                domain.name
            );
            let Some(told) = told else { continue };
            // Energy is the power over time, plus that of entering and leaving deep states.
            assert!(told >= drawn, "{}: {}: {told} mJ told, {drawn} drawn", self.name, domain.name);
            if shallow {
                assert_eq!(told, drawn, "{}: energy of {}", self.name, domain.name);
            }
        }
        let nr_cpus = self.cpus.len();
        for index in 0..nr_cpus {
            let cpu = self.cpus[index].clone();
            let stints = std::mem::take(&mut self.stints[index]);
            let book = |watch: &mut Self, task: TaskId, ns: Ns, less: bool| {
                let time = match task.is_idle() {
                    true => &mut watch.cpus[index].idle_ns,
                    false => &mut watch.task_mut(task).run_ns[index],
                };
                *time = if less { *time - ns } else { *time + ns };
            };
            for (task, from, until) in stints.iter().filter(|(.., until)| *until > end) {
                book(&mut self, *task, until - end.max(*from), true);
            }
            book(&mut self, cpu.running, end.saturating_sub(cpu.since), false);
            let run: Ns = self.tasks.iter().map(|task| task.run_ns[index]).sum();
            let name = &self.name;
            assert_eq!(run + self.cpus[index].idle_ns, end, "{name}: cpu{index} run + idle = span");
            assert_eq!(run, result.cpus[index].busy_ns, "{name}: cpu{index} busy time");
        }
        for (index, task) in self.tasks.iter().enumerate().skip(1) {
            let name = format!("{}: {index} {}", self.name, task.name);
            if task.stage == Some(Stage::Queued) {
                let waited = end.saturating_sub(task.since);
                assert!(waited <= WAIT_MAX, "{name} waits since {}", task.since);
                let cpu = &self.cpus[task.cpu.index()];
                if cpu.running.is_idle() {
                    let idle_with_it =
                        end.saturating_sub(task.since.max(task.placed_at).max(cpu.since));
                    assert!(
                        idle_with_it <= self.idle_response_max(),
                        "{name}: its CPU sleeps: lost wakeup"
                    );
                }
            }
            if task.stage == Some(Stage::Waking) {
                let since = end.saturating_sub(task.waking_at);
                assert!(since <= self.idle_response_max(), "{name}: a wake list is not emptied");
            }
            let told = result.tasks.iter().find(|t| t.id as usize == index).expect("it is told of");
            assert_eq!(told.name, task.name);
            assert_eq!(told.cpu_time_by_cpu_ns, task.run_ns, "{name}: time per CPU");
            assert_eq!(told.cpu_time_ns, task.run_ns.iter().sum::<Ns>(), "{name}: time");
            assert_eq!(told.switches, task.switches, "{name}: switches");
            assert_eq!(told.migrations, task.migrations, "{name}: migrations");
        }
        assert_eq!(
            self.tasks.len() - 1,
            result.tasks.len(),
            "{}: every task is told of",
            self.name
        );
        assert_eq!(self.switches as f64, metric(result, "context_switches", "sum", &[]));
        assert_eq!(self.ticks as f64, metric(result, "ticks", "sum", &[]));
    }
}

impl Observer for Invariants {
    const DECISIONS: bool = false;

    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        if self.tasks.is_empty() {
            // Number 0: the idle tasks.
            self.tasks.push(Watched {
                is_new: false,
                name: "swapper".into(),
                stage: None,
                cpu: CpuId(0),
                since: 0,
                placed_at: 0,
                waking_at: 0,
                run_ns: vec![0; self.cpus.len()],
                switches: 0,
                migrations: 0,
            });
        }
        assert_eq!(id.index(), self.tasks.len(), "tasks are announced in order, once");
        let idle = self.tasks[0].clone();
        self.tasks.push(Watched { name: name.to_string(), ..idle });
    }

    fn fact(&mut self, fact: &Fact) {
        let Fact { at, cpu, kind } = *fact;
        let c = self.cpus[cpu.index()].clone();
        self.must(at >= c.last_fact, fact, "a CPU's facts go forward in time");
        self.cpus[cpu.index()].last_fact = at;
        if let Some((state, _)) = c.idle {
            let is_exit = matches!(kind, FactKind::IdleExit { .. });
            let in_irq = c.in_irq || matches!(kind, FactKind::IrqEntry { .. });
            let polls = state == 0 && c.polls && in_irq;
            // What a driver changes with another clock is told on the first CPU of the policy, whoever runs the driver.
            let by_driver = self.coupling_by_driver && matches!(kind, FactKind::Frequency { .. });
            let sleeps = is_exit || polls || by_driver;
            self.must(sleeps, fact, "a sleeping CPU does nothing but wake up");
        }
        match kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.switch(fact, prev, next, prev_state)
            }
            FactKind::Waking { task, prev_cpu, .. } => {
                // The workload's first thread sleeps from the boot.
                let stage = self.tasks[task.index()].stage;
                let asleep = matches!(stage, Some(Stage::Sleeping) | None);
                self.must(asleep, fact, "who is woken slept");
                if stage.is_some() {
                    let on = self.tasks[task.index()].cpu;
                    self.must(on == prev_cpu, fact, "who is woken slept where it is said");
                }
                let task = self.task_mut(task);
                (task.stage, task.waking_at, task.cpu) = (Some(Stage::Waking), at, prev_cpu);
            }
            FactKind::Wakeup { task, target, new } => {
                self.wakeups += 1;
                let watched = self.tasks[task.index()].clone();
                if new {
                    self.must(watched.stage.is_none(), fact, "a new task is new");
                } else {
                    self.must(
                        watched.stage == Some(Stage::Waking),
                        fact,
                        "a wakeup follows its waking",
                    );
                    self.must(watched.cpu == target, fact, "a wakeup is where the task was put");
                    self.in_order(Some(0), fact, watched.waking_at, "waking comes before wakeup");
                }
                let task = self.task_mut(task);
                task.is_new = new;
                (task.stage, task.since, task.cpu) = (Some(Stage::Queued), at, target);
            }
            FactKind::Migrate { task, from, to } => {
                let watched = self.tasks[task.index()].clone();
                self.must(from != to, fact, "a migration goes elsewhere");
                self.must(watched.cpu == from, fact, "a migration starts where the task is");
                self.must(
                    watched.stage != Some(Stage::Running),
                    fact,
                    "a running task does not move",
                );
                self.must(watched.stage != Some(Stage::Dead), fact, "a dead task does not move");
                let task = self.task_mut(task);
                (task.cpu, task.placed_at) = (to, at);
                task.migrations += 1;
            }
            FactKind::Exit { task } => {
                self.must(c.running == task, fact, "who exits runs here");
                self.task_mut(task).stage = Some(Stage::Dead);
            }
            FactKind::DlThrottled { task } => {
                let known = self.task_mut(task).stage != Some(Stage::Dead);
                self.must(known, fact, "who is throttled lives");
            }
            FactKind::BlockIssue { task, .. } => {
                self.must(c.running == task, fact, "who asks a device runs here");
            }
            FactKind::BlockComplete { task, .. } => {
                let stage = self.tasks[task.index()].stage;
                self.must(stage == Some(Stage::Sleeping), fact, "who waits for a device sleeps");
            }
            FactKind::Preempted { task } => {
                self.must(c.running == task, fact, "who is preempted runs here");
            }
            FactKind::IdleEnter { state, .. } => {
                self.must(c.running.is_idle(), fact, "only the idle task sleeps");
                self.cpus[cpu.index()].idle = Some((state, at));
            }
            FactKind::IdleExit { state, residency_ns } => {
                let Some((entered, since)) = c.idle else {
                    return self.must(false, fact, "an exit follows an entry");
                };
                self.must(entered == state, fact, "the state that is left was entered");
                // Nothing, if silicon has refused the state.
                let told = residency_ns == at - since || residency_ns == 0;
                self.must(told, fact, "the residency is the time between");
                self.cpus[cpu.index()].idle = None;
            }
            FactKind::IdleMiss { .. } => {
                self.must(c.running.is_idle(), fact, "only the idle task misses");
            }
            FactKind::Tick => {
                self.ticks += 1;
                let grid = at / self.tick_ns;
                self.must(grid > c.last_tick, fact, "a grid point has one tick");
                if c.busy_since != NEVER {
                    self.must(at % self.tick_ns <= TICK_LATE_MAX, fact, "a tick is on the grid");
                    if (grid - 1) * self.tick_ns > c.busy_since + LONGEST_PATH {
                        self.must(grid == c.last_tick + 1, fact, "a busy CPU misses no tick");
                    }
                }
                self.must(c.in_irq, fact, "a tick is in an interrupt");
                self.cpus[cpu.index()].last_tick = grid;
            }
            FactKind::IrqEntry { lines } => {
                self.must(!c.in_irq, fact, "interrupts do not nest");
                self.must(!lines.is_empty(), fact, "an interrupt has a reason");
                self.cpus[cpu.index()].in_irq = true;
            }
            FactKind::IrqExit { .. } => {
                self.must(c.in_irq, fact, "an interrupt's exit follows its entry");
                self.cpus[cpu.index()].in_irq = false;
            }
            FactKind::Ipi { target, .. } => {
                self.must(target.index() < self.cpus.len(), fact, "an IPI goes to a CPU");
            }
            FactKind::Overutilized { on } => {
                self.must(self.overutilized != on, fact, "overutilized changes");
                self.overutilized = on;
            }
            FactKind::Frequency { requested_at, .. } => {
                // By the run queue's clock, which may be a path ahead of this CPU's (`running_clocks`).
                let ahead = requested_at.saturating_sub(at);
                self.must(ahead <= PATH_MAX, fact, "a frequency is wanted before it is set");
            }
            FactKind::Balance { .. }
            | FactKind::CpuSignals { .. }
            | FactKind::CgroupAttach { .. }
            | FactKind::CfsThrottled { .. }
            | FactKind::TaskSignals { .. } => {}
        }
    }

    fn decision(&mut self, _: DecisionRecord) {}

    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64) {
        let number = source.number(self.nr_clocks);
        let (since, power, energy) = &mut self.domains[usize::from(number)];
        assert!(at >= *since, "{}: power goes back in time", self.name);
        *energy += u128::from(*power) * u128::from(at - *since);
        (*since, *power) = (at, microwatts);
    }

    fn settled(&mut self, _: Ns) {}
}

/// Whose power is told: that of frequency domains, then of power domains.
fn nr_domains(scenario: &Scenario) -> usize {
    scenario.machine().domains.len() + scenario.machine().power_domains.len()
}

/// Runs with every fact checked.
pub fn check(name: &str, scenario: &Scenario, seed: u64) -> RunResult {
    let mut twin: Twin = scenario.twin(seed);
    let mut invariants = Invariants::new(name, scenario);
    twin.introduce(&mut invariants);
    while twin.step(&mut invariants) {}
    let result = twin.finish();
    invariants.finish(scenario, &result);
    result
}

/// Kernels whose runs are looked at.
const OF_KERNELS: [&str; 3] =
    ["", ":hz=1000,preempt=none", ":cpuidle=shallow,features.ttwu_queue=false"];

/// Workloads of which one event wakes many threads: they send messages, or wait for a disk.
const TALKING: [&str; 8] =
    ["messaging", "hackbench", "schbench", "netperf", "tbench", "fio", "sched-pipe", "daytrader"];

#[test]
fn of_some_built_in_workloads() {
    for settings in OF_KERNELS {
        for (name, scenario) in few(built_in(&format!("{KERNEL}{settings}"), SECOND)) {
            check(&name, &scenario, 1);
        }
    }
}

#[test]
fn of_the_published_workloads() {
    for machine in ["pixel6", "uniform8", "rig8"] {
        for (name, scenario) in published(machine, KERNEL, 300 * MS) {
            check(&format!("{machine} {name}"), &scenario, 1);
        }
    }
}

/// The same run, cut sooner and later: everything that is counted only grows, and at each cut the
/// times add up to the cut.
#[test]
fn what_is_counted_never_falls() {
    counted(few(built_in(KERNEL, SECOND)));
}

fn counted(scenarios: Vec<(String, Scenario)>) {
    for (name, scenario) in scenarios {
        let mut before: Option<Vec<(&str, f64)>> = None;
        for cut in (0..40).map(|step| step * 7_777_777 + 1) {
            let name = format!("{name} cut at {cut}");
            let mut twin: Twin = cut_twin(&scenario, cut);
            while twin.step(&mut ()) {}
            let result = twin.finish();
            if result.simulated_ns < cut && ends_by_itself(&scenario) {
                break;
            }
            assert_eq!(result.simulated_ns, cut, "{name}");
            for cpu in &result.cpus {
                let domain: Ns = cpu.frequency_ns.iter().map(|(_, ns)| ns).sum();
                assert_eq!(domain, cut, "{name}: operating points of cpu{}", cpu.cpu);
                let idle: Ns = cpu.idle_ns.iter().sum();
                assert!(idle <= cut, "{name}: cpu{} idles {idle}", cpu.cpu);
            }
            let counted: Vec<(&str, f64)> = result
                .metrics
                .iter()
                // What is open at the end may have an end later on.
                .filter(|m| !matches!(m.name, "open_jobs" | "lock_held" | "clock_held"))
                .filter(|m| matches!(m.name, "energy" | "cpu_time") || m.unit == "count")
                // Without power data there is none.
                .filter(|m| m.name != "energy" || m.value.is_some())
                .map(|m| (m.name, m.value.expect("a count has a value")))
                .chain(
                    result
                        .cpus
                        .iter()
                        .flat_map(|c| c.idle_ns.iter().map(|ns| ("idle", *ns as f64))),
                )
                .collect();
            // Each thread that starts adds labels, so only runs of the same labels can be compared.
            if let Some(before) = before.filter(|before| before.len() == counted.len()) {
                let fell = before.iter().zip(&counted).find(|(before, now)| before.1 > now.1);
                assert_eq!(fell, None, "{name}");
            }
            before = Some(counted);
        }
    }
}

/// Whether the workload ends when it has done its work, not after a time.
fn ends_by_itself(scenario: &Scenario) -> bool {
    let workload = Workload::from_path_or_name(&scenario.provenance().workload).unwrap();
    workload.duration().is_none()
}

/// A run of a scenario that ends at `end`, whatever its workload wants.
fn cut_twin(scenario: &Scenario, end: Ns) -> Twin {
    let machine = scenario.machine();
    let host = Host {
        cpu_capacity: machine.cpus.iter().map(|cpu| cpu.capacity).collect(),
        ns_per_loop: machine.ns_per_loop,
        dl_bandwidth: None,
        copy_per_kib: machine.path_costs.copy_per_kib_ns,
        block_devices: machine.block.iter().map(|device| device.name.clone()).collect(),
    };
    let workload = Workload::from_path_or_name(&scenario.provenance().workload).unwrap();
    let programs = workload.instantiate(&host, 1).unwrap();
    let config = scenario.kernel().config.clone();
    Twin::new(Arc::new(machine.clone()), config, programs, 1, end)
}

/// The same on every built-in workload and machine.
mod long {
    use super::*;

    #[test]
    fn of_the_built_in_workloads() {
        for settings in OF_KERNELS {
            for (name, scenario) in built_in(&format!("{KERNEL}{settings}"), SECOND) {
                for seed in 1..=3 {
                    check(&format!("{name} seed {seed}"), &scenario, seed);
                }
            }
        }
    }

    #[test]
    fn what_is_counted_never_falls() {
        counted(built_in(KERNEL, SECOND));
    }
}
