// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules that must hold for every fair scheduler: over random scenarios that are simple enough
//! for them to hold.
//!
//! A machine of 1 to 8 equal CPUs in one cache, without energy model, and busy tasks of nice 0, of which some are pinned. The
//! rules hold from the first instant on:
//!
//! 1. *A pinned task is never elsewhere*, once it has set its affinity.
//! 2. *No CPU is idle for longer than a balance interval while another has two runnable tasks*, one of which may go there.
//!    The interval is the longest that an idle CPU of such a domain has, twice its weight in ms, rounded up to jiffies.
//! 3. *n equal tasks on one CPU have their share*, to within the time that one may be ahead, `calc_delta_fair(max(2 · slice,
//!    TICK))`, and a tick until it is noticed: at every event, for any task that came or went. Of
//!    EEVDF; CFS has no such bound.
//!
//! That the weight of a throttled group is 0 the kernel asserts itself (`verify_cfs_bandwidth`), at every event of the
//! reference twin.
//!
//! **Lags.** A CPU's time is divided equally among who competes there; a task's lag is what it lacks of that. Who leaves with a lag takes it along,
//! as far as the kernel remembers it, and those who stay, whose sum of lags is 0 again, have had it or lack it; the other way round
//! when it comes to its next CPU.
//!
//! **Where Linux itself does not keep the second rule.**
//!
//! - `task_hot()`: the tick that preempts a task is the one that kicks an idle CPU, so the task that waits has just run and is hot. It stays until
//!   `nr_balance_failed` exceeds `cache_nice_tries`: two passes in vain, an interval each.
//! - One busiest queue: a pass looks at the queue of one CPU. If those who wait there are pinned and who runs is not, it takes nobody and
//!   looks at no other (`LBF_ALL_PINNED` is not set). It pushes who runs once `nr_balance_failed` exceeds `cache_nice_tries` by more than
//!   two (`imbalanced_active_balance`).
//! - `nohz.next_balance`: a pass fills a CPU and then takes the *busy* interval of it for the next kick (`rebalance_domains`, `_nohz_idle_balance`). If
//!   the CPU is idle again before its next tick, `nohz_balance_enter_idle` finds `nohz_tick_stopped` still set and does not ask for an update
//!   (`needs_update`), so nobody is kicked before that time, which the rule reads: at most sixteen intervals. It holds again a tick later.
//!
//! Kernel: 6.12 and 7.3 kernel/sched/fair.c `entity_lag`, `get_sd_balance_interval`, `task_hot`, `can_migrate_task`, `nohz_balance_enter_idle`; 6.1 has the
//! same.

use crate::tape::Tape;
use schedtwin_engine::Scenario;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};
use std::fmt::Write;
use std::path::Path;

/// How far a kernel lets a task be from its share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LagLimit {
    /// CFS: as far as it gets.
    None,
    /// EEVDF up to 6.12: two slices, at least a tick.
    TwoSlices,
    /// 7.3: the longest slice of its queue, and a tick.
    SliceAndTick,
}

/// A kernel's tick and the slice of a fair task, ns, and its limit of lags.
const KERNELS: [(&str, Ns, Ns, LagLimit); 9] = [
    ("linux-6.12", 4_000_000, 3_000_000, LagLimit::TwoSlices),
    ("linux-6.12:hz=1000", 1_000_000, 3_000_000, LagLimit::TwoSlices),
    ("linux-6.6", 4_000_000, 3_000_000, LagLimit::TwoSlices),
    ("linux-6.12:hz=100", 10_000_000, 3_000_000, LagLimit::TwoSlices),
    ("linux-6.1", 4_000_000, 3_000_000, LagLimit::None),
    ("linux-5.18", 4_000_000, 3_000_000, LagLimit::None),
    ("linux-7.3", 4_000_000, 3_000_000, LagLimit::SliceAndTick),
    ("linux-7.3:hz=1000", 1_000_000, 3_000_000, LagLimit::SliceAndTick),
    ("linux-7.3:hz=100", 10_000_000, 3_000_000, LagLimit::SliceAndTick),
];

/// How long a rule's scenario lasts, ns.
const SPAN: Ns = 400_000_000;

/// A scenario for the rules.
pub struct Ruled {
    machine: String,
    kernel: &'static str,
    workload: String,
    nr_cpus: usize,
    tick: Ns,
    slice: Ns,
    lag_limit: LagLimit,
    /// The CPU that each task is pinned to.
    pinned: Vec<Option<usize>>,
}

impl Ruled {
    /// Generates one.
    pub fn generate(tape: &mut Tape) -> Ruled {
        let (kernel, tick, slice, lag_limit) = *tape.pick(&KERNELS);
        let nr_cpus = tape.within(1, 8) as usize;
        let nr_tasks = tape.within(1, 2 * nr_cpus as u64 + 2) as usize;
        let pins = tape.percent(50);
        let mut pinned = Vec::new();
        let mut tasks = Vec::new();
        for number in 0..nr_tasks {
            let cpu = (pins && tape.percent(60)).then(|| tape.below(nr_cpus as u64) as usize);
            let cpus = cpu.map_or(String::new(), |cpu| format!("\"cpus\": [{cpu}], "));
            tasks.push(format!("  \"t{number}\": {{ \"loop\": -1, {cpus}\"run\": {SPAN} }}"));
            pinned.push(cpu);
        }
        let workload = format!(
            "{{ \"global\": {{ \"calibration\": 20, \"default_policy\": \"SCHED_OTHER\" }},\n\"tasks\": {{\n{}\n}} }}\n",
            tasks.join(",\n")
        );
        Ruled {
            machine: machine(nr_cpus),
            kernel,
            workload,
            nr_cpus,
            tick,
            slice,
            lag_limit,
            pinned,
        }
    }

    /// Returns the time that the kernel lets a task be ahead or behind (`entity_lag`), ns; of nice
    /// 0 `calc_delta_fair()` is the time itself.
    fn longest_lag(&self) -> Ns {
        match self.lag_limit {
            LagLimit::None => SPAN,
            LagLimit::TwoSlices => (2 * self.slice).max(self.tick),
            LagLimit::SliceAndTick => self.slice + self.tick,
        }
    }

    /// How long a CPU may be idle while another has too much, ns.
    fn longest_idle(&self) -> Ns {
        self.interval(1) + WAY
    }

    /// The longest balance interval of a CPU, ns; of a busy one with [`BUSY_FACTOR`].
    fn interval(&self, factor: Ns) -> Ns {
        // get_sd_balance_interval(): the weight of the domain in ms, up to twice that; jiffies are rounded up.
        let longest = 2 * self.nr_cpus as Ns * 1_000_000;
        (factor * longest).next_multiple_of(self.tick)
    }

    /// Generates the one of a seed and runs it: what is broken, if something is.
    pub fn broken_by(seed: u64, folder: &Path) -> Option<String> {
        let ruled = Ruled::generate(&mut Tape::of_seed(seed));
        let Ruled { kernel, nr_cpus, pinned, .. } = &ruled;
        let why = schedtwin_lab::crash::caught(|| ruled.check(folder, seed)).err()?;
        Some(format!("{why}, {kernel}, {nr_cpus} CPUs, tasks pinned to {pinned:?}"))
    }

    /// Runs it; panics where a rule is broken.
    pub fn check(&self, folder: &Path, seed: u64) {
        let machine = folder.join("machine.toml");
        let workload = folder.join("workload.json");
        std::fs::write(&machine, &self.machine).expect("the folder can be written");
        std::fs::write(&workload, &self.workload).expect("the folder can be written");
        let [machine, workload] = [machine, workload].map(|path| path.display().to_string());
        let scenario = Scenario::new(&machine, self.kernel, &workload, Some(SPAN))
            .unwrap_or_else(|faults| panic!("{faults}"));
        let mut rules = Rules::new(self);
        let mut twin: Twin = scenario.twin(seed);
        twin.introduce(&mut rules);
        while twin.now() < SPAN && twin.step(&mut rules) {
            rules.passes(&twin);
        }
    }
}

/// Equal CPUs in one cache, one clock.
fn machine(nr_cpus: usize) -> String {
    let cpus = format!("0-{}", nr_cpus - 1);
    let mut text = format!(
        "name = \"equal\"\ndescription = \"equal CPUs\"\ntopology = \"flat\"\ncoupling = false\nns_per_loop = 20\n\
         transition_latency_us = 20\nsettle_us = 0\nfast_switch = true\ndvfs_possible_from_any_cpu = true\n\
         driver = \"spins\"\ndriver_latency_us = 0\n\n\
         [topologies.flat]\narchitecture = \"x86\"\npackage = [\"{cpus}\"]\nllc = [\"{cpus}\"]\n\n\
         [core.any]\nidle = [{{ name = \"C1\", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = \"wfi\" }}]\n\n\
         [cpu.all]\ncpus = \"{cpus}\"\ncore = \"any\"\ncapacity = 1024\n\n\
         [domain.all]\ncpus = \"{cpus}\"\n\
         opp = [{{ khz = 2_000_000, em_uw = 900_000, active_uw = 900_000, wfi_uw = 32_000, static_uw = 70_000 }}]\n\n\
         [interrupts]\nipi_latency_min_ns = 300\nipi_latency_max_ns = 900\ntimer_latency_min_ns = 100\n\
         timer_latency_max_ns = 600\n\n[path_costs]\nscale = \"work\"\npercent = 100\n"
    );
    for (name, cost) in schedtwin_machine::PATHS {
        writeln!(text, "{name} = {cost}").expect("memory takes everything");
    }
    text
}

/// Lags are kept in 1024ths of a ns, because they are divided among tasks.
const LAG_SHIFT: u32 = 10;

/// A task that has run so long where it may run has set its affinity: that is the first thing it does.
const AT_HOME: Ns = 1_000_000;

/// Where a task is, while it is runnable.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    cpu: usize,
    runnable: bool,
    /// The only CPU that it may use.
    pinned: Option<usize>,
    /// It is one of the scenario's tasks.
    own: bool,
    /// It competes with them: they and who starts them.
    fair: bool,
    /// Time on the CPU that it is pinned to, and elsewhere.
    at_home: Ns,
    elsewhere: Ns,
    /// The time that the task lacks of its share, `<< LAG_SHIFT`.
    lag: i64,
}

/// An idle CPU while another has two tasks.
#[derive(Clone, Copy, Debug)]
struct Wasted {
    /// Since it began, or since the last pass in vain.
    since: Ns,
    /// Passes that found the waiting task just preempted, so hot in its cache, and left it.
    in_vain: u32,
}

/// `sd->cache_nice_tries` of a domain that shares a cache: so many passes may fail, and the one behind them, before a hot task is taken.
const CACHE_NICE_TRIES: u32 = 1;

/// `sd->busy_factor`: so many times as seldom a busy CPU balances.
const BUSY_FACTOR: Ns = 16;

/// From the tick at which somebody notices until the task runs elsewhere: an interrupt, a softirq, a switch.
const WAY: Ns = 200_000;

/// Watches the rules.
struct Rules<'a> {
    ruled: &'a Ruled,
    places: Vec<Place>,
    running: Vec<TaskId>,
    /// Until when each CPU's time has been charged.
    since: Vec<Ns>,
    /// Whether each CPU's visit of work, the present or the last one, has seen a tick.
    ticked: Vec<bool>,
    /// Of each CPU that is idle while another has too much: since when, and how often it looked in vain.
    wasted: Vec<Option<Wasted>>,
    /// `nohz.next_balance`, ns.
    next_balance: Ns,
    /// Nobody is kicked before: that, or the update that found it past, ns.
    no_kick_before: Ns,
}

impl Rules<'_> {
    fn new(ruled: &Ruled) -> Rules<'_> {
        Rules {
            ruled,
            places: vec![Place::default()],
            running: vec![TaskId::IDLE; ruled.nr_cpus],
            since: vec![0; ruled.nr_cpus],
            ticked: vec![true; ruled.nr_cpus],
            wasted: vec![None; ruled.nr_cpus],
            next_balance: 0,
            no_kick_before: 0,
        }
    }

    fn competing(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let there = move |place: &Place| place.fair && place.runnable && place.cpu == cpu;
        (0..self.places.len()).filter(move |id| there(&self.places[*id]))
    }

    /// A CPU's time until now: who ran has had it, and each who competes should have had its part.
    fn charge(&mut self, cpu: usize, at: Ns) {
        let time = at.saturating_sub(self.since[cpu]);
        self.since[cpu] = self.since[cpu].max(at);
        let id = self.running[cpu].index();
        let place = &mut self.places[id];
        if place.pinned == Some(cpu) {
            place.at_home += time;
        } else if place.pinned.is_some() {
            place.elsewhere += time;
            // It may start anywhere, until it has set its affinity.
            let early = place.at_home < AT_HOME && place.elsewhere < AT_HOME;
            assert!(early, "rules: a pinned task is elsewhere: {place:?} at {at}");
        }
        if place.fair {
            let time = (time << LAG_SHIFT) as i64;
            self.share_out(cpu, time);
            self.places[id].lag -= time;
        }
        self.check_lags(cpu, at);
    }

    /// Divides a lag among those who compete.
    fn share_out(&mut self, cpu: usize, lag: i64) {
        let ids: Vec<usize> = self.competing(cpu).collect();
        for id in &ids {
            self.places[*id].lag += lag / ids.len() as i64;
        }
    }

    /// A task comes to a CPU. What it lacks the others have had.
    fn join(&mut self, id: usize, cpu: usize, at: Ns) {
        self.leave(id, at);
        self.charge(cpu, at);
        if self.competing(cpu).next().is_none() {
            self.places[id].lag = 0;
        }
        self.share_out(cpu, -self.places[id].lag);
        (self.places[id].cpu, self.places[id].runnable) = (cpu, true);
    }

    /// A task leaves its CPU. What it lacks (as far as the kernel remembers) is the others' from now on.
    fn leave(&mut self, id: usize, at: Ns) {
        let Place { cpu, runnable, .. } = self.places[id];
        if !runnable {
            return;
        }
        self.charge(cpu, at);
        self.places[id].runnable = false;
        self.share_out(cpu, self.places[id].lag);
        let most = (self.ruled.longest_lag() << LAG_SHIFT) as i64;
        self.places[id].lag = self.places[id].lag.clamp(-most, most);
    }

    /// The third rule.
    fn check_lags(&self, cpu: usize, at: Ns) {
        if self.ruled.lag_limit == LagLimit::None {
            return;
        }
        let bound = self.ruled.longest_lag() + self.ruled.tick;
        for id in self.competing(cpu) {
            let lag = self.places[id].lag >> LAG_SHIFT;
            assert!(
                lag.unsigned_abs() <= bound,
                "rules: at {at} task {id} of cpu{cpu} is {lag} ns from its share, at most {bound}"
            );
        }
    }

    /// A CPU that has two runnable tasks of which one waits and may go to `idle`.
    fn overfull(&self, idle: usize) -> bool {
        (0..self.ruled.nr_cpus).any(|cpu| {
            let on = || self.places.iter().filter(move |p| p.runnable && p.cpu == cpu);
            let movable = || {
                self.competing(cpu).any(|id| {
                    let place = &self.places[id];
                    place.own
                        && self.running[cpu].index() != id
                        && place.pinned.is_none_or(|to| to == idle)
                })
            };
            cpu != idle && on().count() >= 2 && movable()
        })
    }

    /// Whether on some CPU who waits is pinned, and who runs is not.
    fn has_pinned_waiters(&self) -> bool {
        (0..self.ruled.nr_cpus).any(|cpu| {
            let runs = self.running[cpu].index();
            let waits = |id: usize| id != runs && self.places[id].pinned.is_some();
            self.places[runs].pinned.is_none() && self.competing(cpu).any(waits)
        })
    }

    /// The second rule.
    fn look(&mut self, at: Ns) {
        for cpu in 0..self.ruled.nr_cpus {
            let idle = self.running[cpu].is_idle()
                && !self.places.iter().any(|place| place.runnable && place.cpu == cpu);
            if !(idle && self.overfull(cpu)) {
                self.wasted[cpu] = None;
                continue;
            }
            let wasted = *self.wasted[cpu].get_or_insert(Wasted { since: at, in_vain: 0 });
            let time = at.saturating_sub(wasted.since);
            let mut allowed = self.ruled.longest_idle();
            if !self.ticked[cpu] {
                // The kick comes with the next tick of a busy CPU.
                let kicked = self.no_kick_before + self.ruled.tick + WAY;
                allowed = allowed.max(kicked.saturating_sub(wasted.since));
            }
            assert!(
                time <= allowed,
                "rules: cpu{cpu} is idle at {at} while another has two tasks, {time} of {allowed} ns ({wasted:?})"
            );
        }
    }

    /// Sees passes of balancing that found a task, but none that they would take, and when kicks are due.
    fn passes(&mut self, twin: &Twin) {
        let kernel = twin.kernel().inside();
        let later = kernel.nohz.next_balance as i64 - twin.kernel().jiffies() as i64;
        let next = (twin.now() / self.ruled.tick).saturating_add_signed(later) * self.ruled.tick;
        if next != self.next_balance {
            (self.next_balance, self.no_kick_before) = (next, next.max(twin.now()));
        }
        let no_kick_before = self.no_kick_before;
        let tries = CACHE_NICE_TRIES + if self.has_pinned_waiters() { 3 } else { 1 };
        for (cpu, wasted) in self.wasted.iter_mut().enumerate() {
            let Some(wasted) = wasted else { continue };
            let most = wasted.since + self.ruled.interval(BUSY_FACTOR) + self.ruled.tick;
            assert!(
                self.ticked[cpu] || no_kick_before <= most,
                "rules: no kick before {no_kick_before}, at most {most} for cpu{cpu}"
            );
            let sd = kernel.topology.domains_of(CpuId(cpu as u16)).next();
            let failed = sd.map_or(0, |sd| kernel.topology[sd].nr_balance_failed);
            if failed > wasted.in_vain && failed <= tries {
                *wasted = Wasted { since: twin.now(), in_vain: failed };
            }
        }
    }
}

impl Observer for Rules<'_> {
    const DECISIONS: bool = false;

    fn task(&mut self, _: TaskId, name: &str, _: i32) {
        let number = name.strip_prefix('t').and_then(|rest| rest.split('-').next()?.parse().ok());
        let pinned = number.and_then(|n: usize| self.ruled.pinned.get(n).copied());
        self.places.push(Place {
            own: pinned.is_some(),
            fair: pinned.is_some() || name == "rt-app",
            pinned: pinned.flatten(),
            ..Place::default()
        });
    }

    fn fact(&mut self, fact: &Fact) {
        let (at, cpu) = (fact.at, fact.cpu.index());
        match fact.kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.charge(cpu, at);
                let stays = matches!(prev_state, TaskState::Running | TaskState::Preempted);
                if !prev.is_idle() && !stays {
                    self.leave(prev.index(), at);
                }
                let there = &self.places[next.index()];
                let is_there = there.runnable && there.cpu == cpu;
                if !next.is_idle() && !is_there {
                    self.join(next.index(), cpu, at);
                }
                if self.running[cpu].is_idle() && !next.is_idle() {
                    self.ticked[cpu] = false;
                }
                self.running[cpu] = next;
            }
            FactKind::Tick => self.ticked[cpu] |= !self.running[cpu].is_idle(),
            FactKind::Wakeup { task, target, .. } => self.join(task.index(), target.index(), at),
            FactKind::Migrate { task, to, .. } => self.join(task.index(), to.index(), at),
            _ => {}
        }
        self.look(at);
    }

    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_hold() {
        let folder = tempfile::tempdir().unwrap();
        let broken =
            |seed| Some(format!("seed {seed}: {}", Ruled::broken_by(seed, folder.path())?));
        let broken: Vec<String> = (0..300).filter_map(broken).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    /// Kernels that balance or share badly on purpose are found out.
    #[test]
    fn a_broken_rule_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let pins = |cpu: usize| Ruled { pinned: vec![Some(cpu); 2], ..two_on_one_of(2) };
        let caught =
            |ruled: &Ruled| schedtwin_lab::crash::caught(|| ruled.check(folder.path(), 1)).is_err();
        // Both are pinned to CPU 0, and the rule is told of CPU 1, of none, and of CPU 0.
        assert!(caught(&pins(1)));
        assert!(caught(&Ruled { pinned: vec![None; 2], ..two_on_one_of(2) }));
        assert!(!caught(&pins(0)));
        // A bound that no scheduler meets.
        let hasty = Ruled { slice: 0, tick: 1, ..three_on_one() };
        assert!(caught(&hasty));
        assert!(!caught(&three_on_one()));
    }

    fn hogs(tasks: &[&str], nr_cpus: usize) -> Ruled {
        let tasks: Vec<String> = tasks
            .iter()
            .enumerate()
            .map(|(n, cpus)| format!("  \"t{n}\": {{ \"loop\": -1, {cpus}\"run\": {SPAN} }}"))
            .collect();
        let (kernel, tick, slice, lag_limit) = KERNELS[0];
        Ruled {
            machine: machine(nr_cpus),
            kernel,
            workload: format!(
                "{{ \"global\": {{ \"calibration\": 20 }},\n\"tasks\": {{\n{}\n}} }}\n",
                tasks.join(",\n")
            ),
            nr_cpus,
            tick,
            slice,
            lag_limit,
            pinned: vec![None; tasks.len()],
        }
    }

    fn two_on_one_of(nr_cpus: usize) -> Ruled {
        hogs(&["\"cpus\": [0], "; 2], nr_cpus)
    }

    fn three_on_one() -> Ruled {
        hogs(&[""; 3], 1)
    }
}
