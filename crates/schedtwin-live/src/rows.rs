// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of one run, from a recording of this machine or from a run of the twin, by the same rules.
//!
//! **Threads** are counted by their class ([`class_of`]): of an rt-app file its tasks; of a command all that descend from
//! it. A thread's class is that of its last name.
//!
//! | figure | rule |
//! |---|---|
//! | `latency` mean, p99 (µs) | `sched_waking` to the switch to the thread |
//! | `preemptions` | switches away from a thread that wants to go on |
//! | `cpu_time` (ms) | time on CPUs |
//! | `switches`, `sleeps` | switches to a thread; switches away from one that sleeps |
//! | `energy` (J), class `*` | of the packages, where the machine counts it ([`crate::rapl`]); the twin's of all its domains |
//! | `elapsed` (ms), class `*` | from the first switch to one of the threads to the last away from one |

use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_engine::{Scenario, recording};
use schedtwin_input::Diagnostics;
use schedtwin_lab::verdict::RunTroubles;
use schedtwin_trace::event::{Left, SourceFault, TraceEventKind};
use schedtwin_trace::sources;
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};
use schedtwin_workload::class_of;
use schedtwin_workload::recorded::WARMUP;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// The class of the work as a whole.
pub const WHOLE: &str = "*";

/// A figure: whose, which, which stat of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The class of threads.
    pub class: String,
    /// The metric.
    pub metric: String,
    /// The stat; empty where there is one only.
    pub stat: String,
}

impl Key {
    /// The energy of the whole machine.
    pub fn energy() -> Key {
        Key::of(WHOLE, "energy", "")
    }

    fn of(class: &str, metric: &str, stat: &str) -> Key {
        Key { class: class.to_owned(), metric: metric.to_owned(), stat: stat.to_owned() }
    }

    /// The unit of its values.
    pub fn unit(&self) -> &'static str {
        match self.metric.as_str() {
            "latency" => "us",
            "cpu_time" | "elapsed" => "ms",
            "energy" => "J",
            _ => "",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.class, self.metric)?;
        if self.stat.is_empty() { Ok(()) } else { write!(f, " {}", self.stat) }
    }
}

/// The figures of a run.
pub type Rows = BTreeMap<Key, f64>;

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// Its last name.
    name: String,
    counted: bool,
    /// A waking that has led to no switch.
    woken: Option<Ns>,
    running: Option<Ns>,
    latencies: Vec<u32>,
    cpu_time: Ns,
    switches: u64,
    sleeps: u64,
    preemptions: u64,
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, PartialEq)]
enum Leaves {
    Runnable,
    Sleeps,
    Dies,
}

/// Sums up a run's events.
#[derive(Debug, Default)]
struct Collector {
    threads: BTreeMap<u32, Thread>,
    from: Ns,
    first: Option<Ns>,
    last: Ns,
    /// CPU time of threads that are not counted: so far, at `first`, at `last`.
    others: [Ns; 3],
}

/// The recorder, and what gives threads their settings until it executes the work.
const OURS: &str = "schedtwin";

impl Collector {
    fn waking(&mut self, at: Ns, id: u32) {
        let thread = self.threads.entry(id).or_default();
        // One that waits for a CPU has been woken already.
        if thread.woken.is_none() && at >= self.from {
            thread.woken = Some(at);
        }
    }

    /// A waking that found the thread awake has ended no sleep.
    fn wakeup(&mut self, id: u32) {
        let thread = self.threads.entry(id).or_default();
        if thread.running.is_some() {
            thread.woken = None;
        }
    }

    fn switch(&mut self, at: Ns, prev: Option<(u32, Leaves)>, next: Option<u32>) {
        if let Some((id, leaves)) = prev {
            let thread = self.threads.entry(id).or_default();
            if let Some(since) = thread.running.take()
                && at >= self.from
            {
                let ran = at.saturating_sub(since.max(self.from));
                thread.cpu_time += ran;
                if !thread.counted && thread.name != OURS {
                    self.others[0] += ran;
                }
                thread.preemptions += u64::from(leaves == Leaves::Runnable);
                thread.sleeps += u64::from(leaves == Leaves::Sleeps);
                if thread.counted {
                    self.last = self.last.max(at);
                    self.others[2] = self.others[0];
                }
            }
            if leaves == Leaves::Runnable {
                thread.woken = None;
            }
        }
        if let Some(id) = next {
            let thread = self.threads.entry(id).or_default();
            thread.running = Some(at);
            if at >= self.from {
                thread.switches += 1;
                if let Some(woken) = thread.woken.take() {
                    thread.latencies.push(at.saturating_sub(woken).min(Ns::from(u32::MAX)) as u32);
                }
                if thread.counted && self.first.is_none() {
                    self.first = Some(at);
                    self.others[1] = self.others[0];
                }
            }
            thread.woken = None;
        }
    }

    /// CPU time of threads that are not counted, % of one CPU while the work went on.
    fn others(&self) -> f64 {
        let [_, before, ns] = self.others;
        let ns = ns.saturating_sub(before);
        let elapsed = self.first.map_or(0, |first| self.last.saturating_sub(first));
        if elapsed == 0 { 0.0 } else { 100.0 * ns as f64 / elapsed as f64 }
    }

    /// The figures by class, of counted threads.
    fn rows(mut self) -> Rows {
        let mut rows = Rows::new();
        let mut by_class: BTreeMap<String, Vec<Thread>> = BTreeMap::new();
        for thread in std::mem::take(&mut self.threads).into_values() {
            if thread.counted && thread.switches > 0 {
                by_class.entry(class_of(&thread.name).to_owned()).or_default().push(thread);
            }
        }
        for (class, threads) in by_class {
            let sum = |of: fn(&Thread) -> u64| threads.iter().map(of).sum::<u64>() as f64;
            let mut set = |metric, stat, value| rows.insert(Key::of(&class, metric, stat), value);
            set("preemptions", "", sum(|thread| thread.preemptions));
            set("switches", "", sum(|thread| thread.switches));
            set("sleeps", "", sum(|thread| thread.sleeps));
            set("cpu_time", "", sum(|thread| thread.cpu_time) / 1e6);
            let mut all: Vec<u32> = threads.iter().flat_map(|t| t.latencies.clone()).collect();
            all.sort_unstable();
            if let Some(last) = all.len().checked_sub(1) {
                let mean = all.iter().map(|ns| f64::from(*ns)).sum::<f64>() / all.len() as f64;
                set("latency", "mean", mean / 1e3);
                // The nearest rank.
                let rank = (all.len() * 99).div_ceil(100).saturating_sub(1).min(last);
                set("latency", "p99", f64::from(all[rank]) / 1e3);
            }
        }
        if let Some(first) = self.first {
            let elapsed = self.last.saturating_sub(first) as f64 / 1e6;
            rows.insert(Key::of(WHOLE, "elapsed", ""), elapsed);
        }
        rows
    }
}

/// Which threads of a recording are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Those of these classes.
    Classes(BTreeSet<String>),
    /// Those that descend from a process.
    Descendants(u32),
}

/// The figures of a recording, and the CPU time of all other threads, % of one CPU.
pub fn of_recording(path: &Path, counted: &Counted) -> Result<(Rows, f64), SourceFault> {
    let (mut collector, _) = collect(path, counted)?;
    collector.threads.retain(|_, thread| thread.name != OURS);
    let others = collector.others();
    Ok((collector.rows(), others))
}

/// All events of a recording, and the time of the first.
fn collect(path: &Path, counted: &Counted) -> Result<(Collector, Ns), SourceFault> {
    let mut source = sources::open(path)?;
    let mut collector = Collector::default();
    let mut family: BTreeSet<u32> = BTreeSet::new();
    let mut begin = None;
    while let Some(event) = source.next_event()? {
        let at = event.at;
        begin.get_or_insert(at);
        let names = source.names();
        match event.kind {
            TraceEventKind::Fork { parent, child, .. } => {
                let of_it = match counted {
                    Counted::Descendants(root) => parent == *root || family.contains(&parent),
                    Counted::Classes(_) => false,
                };
                if of_it {
                    family.insert(child);
                }
                let thread = collector.threads.entry(child).or_default();
                *thread = Thread { counted: of_it, ..Thread::default() };
            }
            TraceEventKind::Switch { prev, left, next } => {
                let leaves = match left {
                    Left::Runnable => Leaves::Runnable,
                    Left::Dead => Leaves::Dies,
                    _ => Leaves::Sleeps,
                };
                let prev = prev.filter(|prev| prev.pid != 0);
                let next = Some(next).filter(|next| next.pid != 0);
                for task in prev.iter().chain(&next) {
                    let thread = collector.threads.entry(task.pid).or_default();
                    let name = names.text(task.comm);
                    if thread.name != name {
                        name.clone_into(&mut thread.name);
                    }
                    if let Counted::Classes(classes) = counted {
                        thread.counted = classes.contains(class_of(name));
                    }
                }
                collector.switch(
                    at,
                    prev.map(|prev| (prev.pid, leaves)),
                    next.map(|next| next.pid),
                );
            }
            TraceEventKind::Waking { task, .. } if task.pid != 0 => {
                collector.waking(at, task.pid);
            }
            TraceEventKind::Wakeup { task, .. } if task.pid != 0 => collector.wakeup(task.pid),
            _ => {}
        }
    }
    Ok((collector, begin.unwrap_or(0)))
}

/// How the recorded command ended, in the recorder's words; `None`: the recording does not say.
pub fn command_ended(path: &Path) -> Result<Option<String>, SourceFault> {
    let mut source = sources::open(path)?;
    source.next_event()?;
    let mut options = source.header().options.iter();
    Ok(options.find(|(name, _)| name == "command_ended").map(|(_, how)| how.clone()))
}

/// The threads of a recording that descend from a process.
pub fn descendants(path: &Path, root: u32) -> Result<BTreeSet<u32>, SourceFault> {
    let mut source = sources::open(path)?;
    let mut family = BTreeSet::new();
    while let Some(event) = source.next_event()? {
        if let TraceEventKind::Fork { parent, child, .. } = event.kind
            && (parent == root || family.contains(&parent))
        {
            family.insert(child);
        }
    }
    Ok(family)
}

/// Watches a run of the twin.
struct Watch {
    collector: Collector,
    classes: BTreeSet<String>,
    nr_clocks: usize,
    /// By source: since when it draws so many microwatts.
    powers: BTreeMap<u16, (Ns, u64)>,
    /// Since the work is measured, µW ns.
    energy: u128,
}

impl Watch {
    fn draws(&mut self, at: Ns, source: u16, microwatts: u64) {
        let from = self.collector.from;
        if let Some((since, before)) = self.powers.insert(source, (at, microwatts)) {
            let length = at.max(from).saturating_sub(since.max(from));
            self.energy += u128::from(length) * u128::from(before);
        }
    }

    /// All energy up to the end, J.
    fn joules(&mut self, end: Ns) -> f64 {
        let sources: Vec<u16> = self.powers.keys().copied().collect();
        sources.into_iter().for_each(|source| self.draws(end, source, 0));
        self.energy as f64 / 1e15
    }
}

impl Observer for Watch {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        let counted = self.classes.contains(class_of(name));
        let thread = self.collector.threads.entry(id.0).or_default();
        (thread.name, thread.counted) = (name.to_owned(), counted);
    }
    fn fact(&mut self, fact: &Fact) {
        let task = |id: TaskId| (!id.is_idle()).then_some(id.0);
        match fact.kind {
            FactKind::Switch { prev, next, prev_state } => {
                let leaves = match prev_state {
                    TaskState::Running | TaskState::Preempted => Leaves::Runnable,
                    TaskState::Dead => Leaves::Dies,
                    _ => Leaves::Sleeps,
                };
                let prev = task(prev).map(|id| (id, leaves));
                self.collector.switch(fact.at, prev, task(next));
            }
            FactKind::Waking { task, .. } => self.collector.waking(fact.at, task.0),
            FactKind::Wakeup { task, .. } => self.collector.wakeup(task.0),
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64) {
        self.draws(at, source.number(self.nr_clocks), microwatts);
    }
    fn settled(&mut self, _: Ns) {}
}

/// The figures of a run of the twin: of threads of these classes, `from` on.
pub fn of_twin(
    scenario: &Scenario,
    seed: u64,
    classes: &BTreeSet<String>,
    from: Ns,
) -> (Rows, RunTroubles) {
    let collector = Collector { from, ..Collector::default() };
    let mut watch = Watch {
        collector,
        classes: classes.clone(),
        nr_clocks: scenario.machine().domains.len(),
        powers: BTreeMap::new(),
        energy: 0,
    };
    let mut twin: Twin<FlatBoard> = scenario.twin(seed);
    twin.introduce(&mut watch);
    while twin.step(&mut watch) {}
    // The last event comes before the end.
    let joules = watch.joules(scenario.duration().unwrap_or(0).max(twin.now()));
    let mut rows = watch.collector.rows();
    if joules > 0.0 && !rows.is_empty() {
        rows.insert(Key::energy(), joules);
    }
    (rows, RunTroubles::of(&twin.finish()))
}

/// A recording as work for the twin, and when its first moment is in a run.
pub fn replayed(
    path: &Path,
    machine: &schedtwin_machine::Machine,
) -> Result<(schedtwin_workload::Workload, Ns), Diagnostics> {
    let read = recording::read_trace(path, machine, machine, None)?;
    let whole = read.workload.duration().unwrap_or(read.recorded.span_ns);
    Ok((read.workload, whole - read.recorded.span_ns))
}

/// The rest of a recording while the work ran, as work for the twin: all threads of a recording but those of these classes, with the
/// interrupts that woke them.
pub fn beside(
    path: &Path,
    machine: &schedtwin_machine::Machine,
    classes: &BTreeSet<String>,
) -> Result<schedtwin_workload::Workload, Diagnostics> {
    let (collector, begin) = collect(path, &Counted::Classes(classes.clone()))
        .map_err(|fault| recording::unreadable(&path.display().to_string(), &fault))?;
    let first = collector.first.unwrap_or(begin);
    // A recording's threads start for so long before it begins; the work begins at once.
    let skip = (first - begin).saturating_sub(WARMUP);
    let span = skip..collector.last.saturating_sub(begin);
    let read = recording::read_trace_without(path, machine, machine, classes.clone(), span)?;
    Ok(read.workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_workload::Workload;

    const NS_PER_S: Ns = 1_000_000_000;

    const TEXT: &str = "\
  <idle>-0 [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=5 next_prio=120
      sh-5 [000] ...1 1.000100: sched_process_fork: comm=sh pid=5 child_comm=sh child_pid=7
      sh-5 [000] d..2 1.000200: sched_switch: prev_comm=sh prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=sh next_pid=7 next_prio=120
      ui-7 [000] d..2 1.001200: sched_switch: prev_comm=ui-0 prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=other next_pid=9 next_prio=120
   other-9 [000] d.h3 1.002000: sched_waking: comm=ui-0 pid=7 prio=120 target_cpu=000
   other-9 [000] d..2 1.002050: sched_switch: prev_comm=other prev_pid=9 prev_prio=120 prev_state=R+ ==> next_comm=ui-0 next_pid=7 next_prio=120
      ui-7 [000] d..2 1.004050: sched_switch: prev_comm=ui-0 prev_pid=7 prev_prio=120 prev_state=R ==> next_comm=other next_pid=9 next_prio=120
   other-9 [000] d..2 1.005050: sched_switch: prev_comm=other prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=ui-0 next_pid=7 next_prio=120
      ui-7 [000] d..2 1.006050: sched_switch: prev_comm=ui-0 prev_pid=7 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

    fn rows(counted: &Counted) -> Vec<(String, f64)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        std::fs::write(&path, TEXT).unwrap();
        let (rows, _) = of_recording(&path, counted).unwrap();
        rows.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
    }

    #[test]
    fn figures_are_those_of_the_descendants_by_their_last_names() {
        let expected = [
            ("* elapsed", 5.85),
            ("ui cpu_time", 4.0),
            ("ui latency mean", 50.0),
            ("ui latency p99", 50.0),
            ("ui preemptions", 1.0),
            ("ui sleeps", 1.0),
            ("ui switches", 3.0),
        ];
        let expected: Vec<_> = expected.map(|(key, value)| (key.to_owned(), value)).into();
        assert_eq!(rows(&Counted::Descendants(5)), expected);
        let classes = BTreeSet::from(["other".to_owned()]);
        let others = rows(&Counted::Classes(classes));
        assert!(others.contains(&("other preemptions".to_owned(), 2.0)), "{others:?}");
        assert!(!others.iter().any(|(key, _)| key.starts_with("ui")), "{others:?}");
    }

    /// Others count while the work goes on, and not before or after.
    #[test]
    fn unrelated_work_counts_beside_the_work_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        let long = |from: u32, to: u32| {
            format!(
                "  <idle>-0 [001] d..2 {from}.0: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
                 next_comm=other next_pid=9 next_prio=120\n   other-9 [001] d..2 {to}.0: sched_switch: prev_comm=other \
                 prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n"
            )
        };
        // 0.85 and 1 ms of 5.85.
        std::fs::write(&path, long(0, 1) + TEXT + &long(2, 9)).unwrap();
        let (_, others) = of_recording(&path, &Counted::Descendants(5)).unwrap();
        assert!((others - 100.0 * 1.85 / 5.85).abs() < 0.1, "{others}");
    }

    /// The twin's events are counted by the same rules as its own trace is when it is read back.
    #[test]
    fn the_twin_and_its_own_trace_have_the_same_figures() {
        let text = r#"{ "global": { "duration": 1 }, "tasks": {
            "ui": { "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 16000 } },
            "hogs": { "instance": 2, "cpus": [0], "loop": -1, "run": 10000 } } }"#;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        std::fs::write(&file, text).unwrap();
        let scenario =
            Scenario::new("uniform8", "linux-6.18", file.to_str().unwrap(), None).unwrap();
        let classes = BTreeSet::from(["ui".to_owned(), "hogs".to_owned()]);
        let mut direct = of_twin(&scenario, 1, &classes, 0).0;
        let joules = direct.remove(&Key::energy()).expect("the machine has power");
        let trace = folder.path().join("t.txt");
        let options = schedtwin_engine::RunOptions {
            trace: Some(trace.clone()),
            ..schedtwin_engine::RunOptions::default()
        };
        let result = scenario.run(1, options).unwrap();
        let energy =
            result.metrics.iter().find(|row| row.name == "energy" && row.labels.is_empty());
        let expected = energy.and_then(|row| row.value).expect("a result has energy") / 1000.0;
        // A result goes on for the paths that are under way.
        assert!((joules - expected).abs() < 1e-3 * expected, "{joules} {expected}");
        let (read, others) = of_recording(&trace, &Counted::Classes(classes)).unwrap();
        assert!(others < 1.0, "rt-app's own thread and the kernel's: {others}");
        assert_eq!(direct.keys().collect::<Vec<_>>(), read.keys().collect::<Vec<_>>());
        assert!(direct.len() >= 11, "{direct:?}");
        for (key, value) in &direct {
            // The text has whole microseconds.
            let near = (value - read[key]).abs() <= 2.0 + value * 0.01;
            assert!(near, "{key}: {value} {}", read[key]);
        }
        // Beside another work that is called as its `ui`, the recorded hogs do what they did.
        let machine = schedtwin_machine::Machine::load("uniform8").unwrap();
        let recorded = beside(&trace, &machine, &BTreeSet::from(["ui".to_owned()])).unwrap();
        let work = Workload::from_path_or_name("w1").unwrap().with_duration(NS_PER_S);
        let both = work.beside(recorded);
        let scenario = Scenario::with_workload("uniform8", "linux-6.18", Ok(both), None).unwrap();
        let classes = ["hogs", "ui", "job"].map(str::to_owned).into();
        let (played, _) = of_twin(&scenario, 1, &classes, 0);
        let cpu_time = |rows: &Rows, class| rows.get(&Key::of(class, "cpu_time", "")).copied();
        let [was, is] = [&direct, &played].map(|rows| cpu_time(rows, "hogs").unwrap());
        assert!((is - was).abs() < 0.05 * was, "{is} {was}");
        assert_eq!(cpu_time(&played, "ui"), None, "left out");
        assert!(cpu_time(&played, "job").is_some());
    }
}
