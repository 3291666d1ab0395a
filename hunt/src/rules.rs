//! What must be true of every fair scheduler: rules over random scenarios that are simple enough for them to hold.
//!
//! A machine of 1 to 8 equal CPUs in one cache, without energy model, and busy tasks of nice 0, of which some are pinned.
//! Two rules are about what is seen while it runs, one about what has come of it:
//!
//! 1. *A pinned task is never elsewhere.*
//! 2. *No CPU is idle for longer than a balance interval while another has two runnable tasks*, one of which may go there.
//!    The interval is the longest that an idle CPU of such a domain has, twice its weight in ms, rounded up to jiffies, and a tick more for
//!    the one that notices.
//! 3. *n equal tasks on one CPU have their share*, to within the time that one may be ahead: `calc_delta_fair(max(2 · slice,
//!    TICK))` and a tick until it is noticed.
//!
//! That the weight of a throttled group is 0 the kernel asserts itself (`verify_cfs_bandwidth`), at every event of the
//! reference twin.
//!
//! Kernel: 6.12 kernel/sched/fair.c `entity_lag`, `get_sd_balance_interval`; 6.1 `place_entity`.

use crate::tape::Tape;
use schedtwin::Scenario;
use schedtwin::twin::{Observer, Twin};
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};
use std::fmt::Write;
use std::path::Path;

/// A kernel's tick and the longest slice of a fair task, ns.
const KERNELS: [(&str, Ns, Ns); 4] = [
    ("linux-6.12", 4_000_000, 3_000_000),
    ("linux-6.12:hz=1000", 1_000_000, 3_000_000),
    ("linux-6.6", 4_000_000, 3_000_000),
    ("linux-6.12:hz=100", 10_000_000, 3_000_000),
];

/// How long a rule's scenario lasts, ns.
const SPAN: Ns = 400_000_000;

/// From then on every task has been started and has set its affinity, which it does when it first runs.
const SETTLED: Ns = 150_000_000;

/// A scenario for the rules.
pub struct Ruled {
    machine: String,
    kernel: &'static str,
    workload: String,
    nr_cpus: usize,
    tick: Ns,
    slice: Ns,
    /// The CPU that each task is pinned to.
    pinned: Vec<Option<usize>>,
}

impl Ruled {
    /// Generates one.
    pub fn generate(tape: &mut Tape) -> Ruled {
        let (kernel, tick, slice) = *tape.pick(&KERNELS);
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
        Ruled { machine: machine(nr_cpus), kernel, workload, nr_cpus, tick, slice, pinned }
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
        while twin.now() < SPAN && twin.step(&mut rules) {}
        rules.shares();
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
    for (name, cost) in crate::machine::COSTS {
        writeln!(text, "{name} = {cost}").expect("memory takes everything");
    }
    text
}

/// Where a task is, while it is runnable.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    cpu: usize,
    runnable: bool,
    /// The only CPU that it may use.
    pinned: Option<usize>,
    /// It is one of the scenario's tasks.
    own: bool,
    /// Time on a CPU since all are settled.
    ran: Ns,
}

/// Watches the first two rules.
struct Rules<'a> {
    ruled: &'a Ruled,
    places: Vec<Place>,
    running: Vec<TaskId>,
    /// Since when.
    since: Vec<Ns>,
    /// Since when a CPU has been idle while another had too much; `None`: it is not.
    wasted: Vec<Option<Ns>>,
}

impl Rules<'_> {
    fn new(ruled: &Ruled) -> Rules<'_> {
        Rules {
            ruled,
            places: vec![Place::default()],
            running: vec![TaskId::IDLE; ruled.nr_cpus],
            since: vec![0; ruled.nr_cpus],
            wasted: vec![None; ruled.nr_cpus],
        }
    }

    /// Who runs on a CPU has run until now.
    fn charge(&mut self, cpu: usize, at: Ns) {
        let since = std::mem::replace(&mut self.since[cpu], at);
        self.places[self.running[cpu].index()].ran +=
            at.min(SPAN).saturating_sub(since.max(SETTLED));
    }

    /// The third rule, where it is known who shares with whom: there is one CPU.
    fn shares(mut self) {
        if self.ruled.nr_cpus != 1 {
            return;
        }
        self.charge(0, SPAN.max(self.since[0]));
        let times: Vec<Ns> = self.places.iter().filter(|p| p.own).map(|p| p.ran).collect();
        assert_eq!(times.len(), self.ruled.pinned.len(), "rules: tasks");
        let share = times.iter().sum::<Ns>() / times.len() as Ns;
        // Nice 0: calc_delta_fair() is the time itself. The first moment may be as far off as the last.
        let bound = 2 * ((2 * self.ruled.slice).max(self.ruled.tick) + self.ruled.tick);
        for time in &times {
            let off = time.abs_diff(share);
            assert!(
                off <= bound,
                "rules: {off} ns from the share {share}, at most {bound}: {times:?}"
            );
        }
    }

    /// A CPU that has two runnable tasks of which one waits and may go to `idle`.
    fn overfull(&self, idle: usize) -> bool {
        let on = |cpu: usize| self.places.iter().filter(move |p| p.runnable && p.cpu == cpu);
        (0..self.ruled.nr_cpus).any(|cpu| {
            let movable = || {
                let waits = |id: usize, p: &Place| {
                    p.runnable && p.cpu == cpu && self.running[cpu].index() != id
                };
                self.places
                    .iter()
                    .enumerate()
                    .any(|(id, p)| p.own && waits(id, p) && p.pinned.is_none_or(|to| to == idle))
            };
            cpu != idle && on(cpu).count() >= 2 && movable()
        })
    }

    fn look(&mut self, at: Ns) {
        // get_sd_balance_interval(): the weight of the domain in ms, up to twice that; jiffies are rounded up.
        let longest = 2 * self.ruled.nr_cpus as Ns * 1_000_000;
        let allowed = longest.next_multiple_of(self.ruled.tick) + 2 * self.ruled.tick;
        for cpu in 0..self.ruled.nr_cpus {
            let idle = self.running[cpu].is_idle()
                && !self.places.iter().any(|place| place.runnable && place.cpu == cpu);
            if at < SETTLED || !(idle && self.overfull(cpu)) {
                self.wasted[cpu] = None;
                continue;
            }
            let since = *self.wasted[cpu].get_or_insert(at);
            assert!(
                at.saturating_sub(since) <= allowed,
                "rules: cpu{cpu} is idle since {since}, at {at} another has two tasks"
            );
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
            pinned: pinned.flatten(),
            ..Place::default()
        });
    }

    fn fact(&mut self, fact: &Fact) {
        let (at, cpu) = (fact.at, fact.cpu.index());
        match fact.kind {
            FactKind::Switch { prev, next, prev_state } => {
                self.charge(cpu, at);
                if !prev.is_idle() {
                    let stays = matches!(prev_state, TaskState::Running | TaskState::Preempted);
                    self.places[prev.index()].runnable = stays;
                }
                if !next.is_idle() {
                    let place = &mut self.places[next.index()];
                    let settled = at >= SETTLED;
                    let elsewhere = settled && place.pinned.is_some_and(|only| only != cpu);
                    assert!(!elsewhere, "rules: a pinned task is elsewhere: {place:?}, {fact:?}");
                    (place.cpu, place.runnable) = (cpu, true);
                }
                self.running[cpu] = next;
            }
            FactKind::Wakeup { task, target, .. } => {
                let place = &mut self.places[task.index()];
                (place.cpu, place.runnable) = (target.index(), true);
            }
            FactKind::Migrate { task, to, .. } => self.places[task.index()].cpu = to.index(),
            _ => {}
        }
        self.look(at);
    }

    fn decision(&mut self, _: &DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_hold() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..120 {
            let ruled = Ruled::generate(&mut Tape::of_seed(seed));
            let broken = schedtwin_lab::crash::caught(|| ruled.check(folder.path(), seed));
            if let Err(why) = broken {
                panic!("seed {seed}, {}, {}: {why}", ruled.kernel, ruled.workload);
            }
        }
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
        let (kernel, tick, slice) = KERNELS[0];
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
