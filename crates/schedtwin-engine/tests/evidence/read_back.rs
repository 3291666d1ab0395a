// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run writes is what it did: from the files alone, every count and every nanosecond of the
//! result is worked out again.
//!
//! The record and the Perfetto trace are read by their own readers. Facts are stamped per CPU in order,
//! so all that is counted per CPU needs no common order of the CPUs.

use crate::scenarios::{KERNEL, SECOND, defined, metric, scenario};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_machine::{Machine, Shared};
use schedtwin_trace::perfetto_read::{self, Event};
use schedtwin_trace::record::{Entry, Reader};
use schedtwin_trace::{Meta, TaskInfo};
use schedtwin_types::{ClockDomainId, CpuId, Fact, FactKind, Ns, PowerDomainId, TaskId, TaskState};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// What a file holds.
#[derive(Default)]
struct Found {
    meta: Meta,
    tasks: Vec<TaskInfo>,
    /// Per CPU, in the order of the file.
    facts: Vec<Vec<Fact>>,
    decisions: usize,
    chains: usize,
    /// Per frequency domain, then per power domain: when and how many microwatts.
    power: BTreeMap<u16, Vec<(Ns, u64)>>,
}

impl Found {
    fn fact(&mut self, fact: Fact) {
        if self.facts.len() <= fact.cpu.index() {
            self.facts.resize(fact.cpu.index() + 1, Vec::new());
        }
        self.facts[fact.cpu.index()].push(fact);
    }

    /// All facts, in time order; CPUs at one instant by number.
    fn in_time_order(&self) -> Vec<Fact> {
        let mut all: Vec<Fact> = self.facts.iter().flatten().copied().collect();
        all.sort_by_key(|fact| fact.at);
        all
    }

    fn count(&self, which: impl Fn(&FactKind) -> bool) -> u64 {
        self.facts.iter().flatten().filter(|fact| which(&fact.kind)).count() as u64
    }
}

fn read_record(path: &Path) -> Found {
    let mut found = Found::default();
    let mut last = 0;
    let mut in_order = |at: Ns| {
        assert!(at >= last, "a record is in time order: {at} after {last}");
        last = at;
    };
    for entry in Reader::new(BufReader::new(File::open(path).unwrap())) {
        match entry.unwrap() {
            Entry::Header(meta) => found.meta = meta,
            Entry::Task(task) => found.tasks.push(task),
            Entry::Prio(..) => {}
            Entry::Fact(fact) => {
                in_order(fact.at);
                found.fact(fact);
            }
            Entry::Decision(at, ..) => {
                in_order(at);
                found.decisions += 1;
            }
            Entry::Chain(at, _) => {
                in_order(at);
                found.chains += 1;
            }
            Entry::Power(at, domain, uw) => {
                in_order(at);
                found.power.entry(domain).or_default().push((at, uw));
            }
        }
    }
    found
}

fn read_perfetto(path: &Path) -> Found {
    let mut found = Found::default();
    let input = BufReader::new(File::open(path).unwrap());
    let contents = perfetto_read::read(input, &mut |event| match event {
        Event::Fact(fact) => found.fact(fact),
        Event::Unplaced { .. } => {}
        Event::Power { at, domain, microwatts } => {
            found.power.entry(domain).or_default().push((at, microwatts));
        }
    })
    .unwrap();
    for facts in &mut found.facts {
        // Instants come outside of their CPU's bundle.
        facts.sort_by_key(|fact| fact.at);
    }
    found.meta = contents.meta;
    found.tasks = contents.tasks;
    found
}

/// Per task, then per CPU: time on it.
type TimeOnCpu = BTreeMap<TaskId, Vec<Ns>>;

fn time_on_cpus(found: &Found, end: Ns) -> TimeOnCpu {
    let nr_cpus = found.meta.nr_cpus;
    let mut times = TimeOnCpu::new();
    for (cpu, facts) in found.facts.iter().enumerate() {
        let (mut running, mut since) = (TaskId::IDLE, 0);
        let mut book = |task, ns| times.entry(task).or_insert_with(|| vec![0; nr_cpus])[cpu] += ns;
        for fact in facts {
            if let FactKind::Switch { prev, next, .. } = fact.kind {
                assert_eq!(prev, running, "cpu{cpu} at {}", fact.at);
                book(running, fact.at - since);
                (running, since) = (next, fact.at);
            }
        }
        book(running, end.max(since) - since);
    }
    times
}

/// Per CPU and idle state: the time between entry and exit, by the stamps.
fn idle_times(found: &Found, end: Ns, states: usize) -> Vec<Vec<Ns>> {
    let mut times = vec![vec![0; states]; found.meta.nr_cpus];
    for (cpu, facts) in found.facts.iter().enumerate() {
        let mut entered = None;
        for fact in facts {
            match fact.kind {
                FactKind::IdleEnter { state, .. } => entered = Some((state, fact.at)),
                FactKind::IdleExit { .. } => {
                    let (state, since): (u8, Ns) =
                        entered.take().expect("an exit follows an entry");
                    times[cpu][state as usize] += fact.at - since;
                }
                _ => {}
            }
        }
        if let Some((state, since)) = entered {
            times[cpu][state as usize] += end.max(since) - since;
        }
    }
    times
}

/// Mean and longest latency from a waking, and from a wakeup, to the switch that it leads to, in
/// microseconds.
///
/// The stamps of two CPUs may be out of order by the time that one of them owes, so events are not
/// paired by time: a task's nth waking, its nth wakeup and its nth return from sleep belong together.
fn latencies(found: &Found) -> [(f64, f64); 2] {
    #[derive(Default)]
    struct Wakes {
        waking: Vec<Ns>,
        wakeup: Vec<Ns>,
        switched_in: Vec<Ns>,
        is_new: bool,
        awake: bool,
    }
    let mut wakes: BTreeMap<TaskId, Wakes> = BTreeMap::new();
    for fact in found.in_time_order() {
        match fact.kind {
            FactKind::Waking { task, .. } => wakes.entry(task).or_default().waking.push(fact.at),
            FactKind::Wakeup { task, new: true, .. } => {
                wakes.entry(task).or_default().is_new = true
            }
            FactKind::Wakeup { task, .. } => wakes.entry(task).or_default().wakeup.push(fact.at),
            FactKind::Switch { prev, next, prev_state } => {
                let leaving = wakes.entry(prev).or_default();
                leaving.awake = matches!(prev_state, TaskState::Running | TaskState::Preempted);
                let entering = wakes.entry(next).or_default();
                if !std::mem::replace(&mut entering.awake, true) {
                    entering.switched_in.push(fact.at);
                }
            }
            _ => {}
        }
    }
    let mut samples: [Vec<Ns>; 2] = Default::default();
    // The kernel's own threads have none.
    let kernel = |id: &TaskId| {
        found.tasks.iter().any(|task| task.id == *id && task.name.starts_with("sugov:"))
    };
    for (_, task) in wakes.iter().filter(|(id, _)| !kernel(id)) {
        // A new task's first switch comes from no sleep.
        let returns = &task.switched_in[usize::from(task.is_new).min(task.switched_in.len())..];
        for (samples, from) in samples.iter_mut().zip([&task.waking, &task.wakeup]) {
            samples.extend(returns.iter().zip(from).map(|(to, from)| to.saturating_sub(*from)));
        }
    }
    samples.map(|samples| {
        let sum: u128 = samples.iter().map(|ns| u128::from(*ns)).sum();
        let max = samples.iter().max().copied().unwrap_or(0);
        (sum as f64 / samples.len() as f64 / 1e3, max as f64 / 1e3)
    })
}

/// Energy of a domain, fJ: its power over time.
fn energy_fj(power: &[(Ns, u64)], end: Ns) -> u128 {
    let until = power.iter().skip(1).map(|(at, _)| *at).chain([end]);
    power.iter().zip(until).map(|((at, uw), until)| u128::from(until - at) * u128::from(*uw)).sum()
}

/// What entries into idle states and exits from them took beside power, fJ, in frequency domain `domain`.
///
/// An entry is aborted if its stay is too short for the way in and out; what is open at the end has been entered. A file does not
/// tell when the hardware was asked, so of an entry just before the end it is not known: each sum that may be is returned.
fn visits_fj(found: &Found, machine: &Machine, domain: ClockDomainId, end: Ns) -> Vec<u128> {
    let mut nj: u64 = 0;
    let mut unsure: Vec<u64> = Vec::new();
    for cpu in &machine.domains[domain].cpus {
        let mut entered = None;
        for fact in found.facts.get(cpu.index()).into_iter().flatten() {
            match fact.kind {
                FactKind::IdleEnter { state, .. } => entered = Some((state, fact.at)),
                FactKind::IdleExit { state, .. } => {
                    let (_, since) = entered.take().expect("it has entered");
                    let state = &machine.idle_states(*cpu)[state as usize];
                    let way = state.entry_latency_ns + state.exit_latency_ns;
                    nj += match fact.at - since >= way {
                        true => state.energy_entry_nj + state.energy_exit_nj,
                        false => state.energy_abort_nj,
                    };
                }
                _ => {}
            }
        }
        if let Some((state, since)) = entered {
            let state = &machine.idle_states(*cpu)[state as usize];
            // The kernel's own way there takes a few microseconds more.
            let (entry, kernel) = (state.entry_latency_ns, 20_000);
            match end.saturating_sub(since) {
                stay if stay > entry + kernel => nj += state.energy_entry_nj,
                stay if stay > entry => unsure.push(state.energy_entry_nj),
                _ => {}
            }
        }
    }
    let mut sums = vec![nj];
    for entry in unsure {
        sums.extend(sums.clone().iter().map(|sum| sum + entry));
    }
    sums.iter().map(|nj| u128::from(*nj) * 1_000_000).collect()
}

/// The energy of a result, from the powers of a file.
fn compare_energy(name: &str, scenario: &Scenario, found: &Found, result: &RunResult) {
    let (machine, end) = (scenario.machine(), result.simulated_ns);
    let mj = |fj: u128| fj as f64 / 1e12;
    let mut sum = 0;
    for (domain, power) in &found.power {
        let fj = energy_fj(power, end);
        let Some(above) = usize::from(*domain).checked_sub(machine.domains.len()) else {
            let domain = ClockDomainId(*domain);
            let clock = &machine.domains[domain];
            // Without power data nothing is told.
            let told = defined(result, "energy", "sum", &[("domain", &clock.name)]).unwrap_or(0.0);
            let mut may_be =
                visits_fj(found, machine, domain, end).into_iter().map(|more| fj + more);
            let fj = may_be.clone().find(|fj| mj(*fj) == told);
            let fj = fj.unwrap_or_else(|| may_be.next_back().expect("there is a sum"));
            assert_eq!(mj(fj), told, "{name}: energy of {}", clock.name);
            sum += fj;
            continue;
        };
        let package = &machine.power_domains[PowerDomainId(above as u16)];
        let entries = package.states.iter().all(|state| state.energy_entry_nj == 0);
        assert!(entries, "{name}: entries of {} are not in its power", package.name);
        sum += fj;
    }
    let domains = machine.domains.len() + machine.power_domains.len();
    assert_eq!(found.power.len(), domains, "{name}: whose power is told");
    let told = defined(result, "energy", "sum", &[]).unwrap_or(0.0);
    assert_eq!(mj(sum), told, "{name}: energy");
}

/// Works the result out again from a file.
fn compare(name: &str, scenario: &Scenario, found: &Found, result: &RunResult) {
    let end = result.simulated_ns;
    assert_eq!(found.meta.nr_cpus, scenario.machine().nr_cpus(), "{name}");

    let names: Vec<(u32, &str)> = found.tasks.iter().map(|t| (t.id.0, t.name.as_str())).collect();
    let told: Vec<(u32, &str)> = result.tasks.iter().map(|t| (t.id, t.name.as_str())).collect();
    assert_eq!(names, told, "{name}: tasks");

    let times = time_on_cpus(found, end);
    for task in &result.tasks {
        let id = TaskId(task.id);
        let name = format!("{name}: {}", task.name);
        let none = vec![0; found.meta.nr_cpus];
        let by_cpu = times.get(&id).unwrap_or(&none);
        assert_eq!(by_cpu, &task.cpu_time_by_cpu_ns, "{name}: time on each CPU");
        let to_it = |kind: &FactKind| matches!(kind, FactKind::Switch { next, .. } if *next == id);
        assert_eq!(found.count(to_it), task.switches, "{name}: switches");
        let moved = |kind: &FactKind| matches!(kind, FactKind::Migrate { task, .. } if *task == id);
        assert_eq!(found.count(moved), task.migrations, "{name}: migrations");
    }
    for cpu in &result.cpus {
        let busy: Ns = times
            .iter()
            .filter(|(task, _)| !task.is_idle())
            .map(|(_, by_cpu)| by_cpu[cpu.cpu as usize])
            .sum();
        assert_eq!(busy, cpu.busy_ns, "{name}: cpu{} busy", cpu.cpu);
    }
    let states = result.cpus.iter().map(|cpu| cpu.idle_ns.len()).max().unwrap();
    let idle = idle_times(found, end, states);
    for cpu in &result.cpus {
        let mut stamped = idle[cpu.cpu as usize][..cpu.idle_ns.len()].to_vec();
        if scenario.machine().idle_states(CpuId(cpu.cpu))[0].polling {
            // The interrupt that ends a poll is within the kernel's stay; silicon is active from it on.
            let after = stamped[0].checked_sub(cpu.idle_ns[0]).expect("the kernel's is longer");
            let nr_polls = found.facts.get(cpu.cpu as usize).map_or(0, |facts| {
                let ends = |f: &&Fact| matches!(f.kind, FactKind::IdleExit { state: 0, .. });
                facts.iter().filter(ends).count()
            });
            assert!(after <= nr_polls as Ns * 20_000, "{name}: cpu{}: {after} more", cpu.cpu);
            stamped[0] -= after;
        }
        let told = &cpu.idle_ns;
        let mut states = scenario.machine().idle_states(CpuId(cpu.cpu)).iter();
        if states.any(|state| state.shared != Shared::Own) {
            // The kernel says what it asked for, silicon where the CPU rested.
            let (stamped, told): (Ns, Ns) = (stamped.iter().sum(), told.iter().sum());
            assert_eq!(stamped, told, "{name}: cpu{} time in all idle states", cpu.cpu);
            continue;
        }
        assert_eq!(stamped, *told, "{name}: cpu{} time in idle states", cpu.cpu);
    }

    let total = |metric_name| metric(result, metric_name, "sum", &[]) as u64;
    let is = |counted: fn(&FactKind) -> bool| found.count(counted);
    assert_eq!(is(|k| matches!(k, FactKind::Switch { .. })), total("context_switches"), "{name}");
    assert_eq!(is(|k| matches!(k, FactKind::Migrate { .. })), total("migrations"), "{name}");
    assert_eq!(is(|k| matches!(k, FactKind::Tick)), total("ticks"), "{name}: ticks");
    assert_eq!(is(|k| matches!(k, FactKind::Ipi { .. })), total("ipis"), "{name}: IPIs");
    let preempted =
        |k: &FactKind| matches!(k, FactKind::Switch { prev_state: TaskState::Preempted, .. });
    assert_eq!(is(preempted), total("preemptions"), "{name}: preemptions");
    assert!(is(|k| matches!(k, FactKind::Wakeup { .. })) > 0, "{name}: there are wakeups");
}

#[test]
fn record_and_trace_hold_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for (machine, kernel, workload, seed) in [
        ("pixel6", KERNEL, "ui-phone", 1),
        ("pixel6", KERNEL, "w1", 2),
        ("uniform8", KERNEL, "w1", 3),
        ("uniform8", "linux-6.12:cpuidle=shallow,hz=1000", "ui-phone", 4),
        ("rig8", KERNEL, "ui-phone", 5),
        ("i5-10600k", KERNEL, "ui-phone", 6),
        ("i5-10600k", "linux-6.0:cpuidle=teo,hz=1000", "periodic -f 73 -t 12", 7),
        ("juno-r2", KERNEL, "ui-phone", 11),
        ("power10-8core", KERNEL, "ui-phone", 8),
        ("altra-2p160", KERNEL, "ui-phone", 9),
        ("spr-2s224", KERNEL, "ui-phone", 10),
    ] {
        let name = format!("{machine} {kernel} {workload} seed {seed}");
        let duration =
            if ["pixel6", "uniform8"].contains(&machine) { 2 * SECOND } else { SECOND / 2 };
        let scenario = scenario(machine, kernel, workload, Some(duration));
        let trace = folder.path().join("run.pftrace");
        let packed = u64::is_multiple_of(seed, 2);
        let record = folder.path().join(if packed { "run.rec" } else { "run.jsonl" });
        let options = RunOptions {
            trace: Some(trace.clone()),
            record: Some(record.clone()),
            ..RunOptions::default()
        };
        let result = scenario.run(seed, options).unwrap();
        let recorded = read_record(&record);
        let traced = read_perfetto(&trace);
        compare(&format!("record of {name}"), &scenario, &recorded, &result);
        compare(&format!("trace of {name}"), &scenario, &traced, &result);

        // The record alone holds what the trace has no place for.
        let preempted = |k: &FactKind| matches!(k, FactKind::Preempted { .. });
        assert_eq!(recorded.count(preempted) as f64, metric(&result, "preemptions", "sum", &[]));
        let passes = |k: &FactKind| matches!(k, FactKind::Balance { .. });
        assert_eq!(recorded.count(passes) as f64, metric(&result, "balance_passes", "sum", &[]));
        assert!(recorded.decisions > 0, "{name}: a record holds decisions");
        let changes = metric(&result, "freq_transitions", "sum", &[]);
        assert!(changes == 0.0 || recorded.chains > 0, "{name}: a record holds chains");
        for facts in &recorded.facts {
            let mut last = None;
            for fact in facts {
                match fact.kind {
                    FactKind::IdleEnter { .. } => last = Some(fact.at),
                    FactKind::IdleExit { residency_ns, .. } => {
                        assert_eq!(residency_ns, fact.at - last.take().unwrap(), "{name}");
                    }
                    _ => {}
                }
            }
        }

        // Both say the same, fact by fact, as far as the trace's format can.
        for (cpu, facts) in recorded.facts.iter().enumerate() {
            let kept = |fact: &&Fact| {
                matches!(
                    fact.kind,
                    FactKind::Switch { .. }
                        | FactKind::Waking { .. }
                        | FactKind::Wakeup { .. }
                        | FactKind::Migrate { .. }
                        | FactKind::Exit { .. }
                        | FactKind::Tick
                        | FactKind::Ipi { .. }
                        | FactKind::IrqEntry { .. }
                )
            };
            // At one instant the trace may have another order.
            let ordered = |facts: &[Fact]| {
                let mut kept: Vec<(Ns, String)> =
                    facts.iter().filter(kept).map(|f| (f.at, format!("{:?}", f.kind))).collect();
                kept.sort();
                kept
            };
            let differ =
                ordered(facts).into_iter().zip(ordered(&traced.facts[cpu])).find(|(l, r)| l != r);
            assert_eq!(differ, None, "{name}: cpu{cpu}");
        }
        assert_eq!(recorded.power, traced.power, "{name}: power");
        compare_energy(&name, &scenario, &recorded, &result);

        // Latencies are worked out by the meter while it runs, here from the files.
        for (found, file) in [(&recorded, "record"), (&traced, "trace")] {
            for ((mean, max), about) in
                latencies(found).into_iter().zip(["waking_latency", "wakeup_latency"])
            {
                let told =
                    (metric(&result, about, "mean", &[]), metric(&result, about, "max", &[]));
                assert_eq!((mean, max), told, "{file} of {name}: {about}");
            }
        }
    }
}

/// The text has a line for each switch and wakeup, under the names that trace-cmd gives them.
#[test]
fn the_text_holds_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.txt");
    let scenario = scenario("pixel6", KERNEL, "ui-phone", Some(SECOND));
    let options = RunOptions { trace: Some(path.clone()), ..RunOptions::default() };
    let result = scenario.run(1, options).unwrap();
    let lines: Vec<String> =
        BufReader::new(File::open(&path).unwrap()).lines().map(Result::unwrap).collect();
    let count =
        |event: &str| lines.iter().filter(|l| l.contains(&format!(" {event}:"))).count() as f64;
    assert_eq!(count("sched_switch"), metric(&result, "context_switches", "sum", &[]));
    assert_eq!(count("sched_migrate_task"), metric(&result, "migrations", "sum", &[]));
    assert!(count("sched_wakeup") > 0.0 && count("sched_wakeup") <= count("sched_waking"));
}
