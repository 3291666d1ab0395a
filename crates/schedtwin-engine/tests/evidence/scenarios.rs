// SPDX-License-Identifier: GPL-2.0-or-later
//! The scenarios that the evidence is taken from, and an observer that keeps what it is told.

use schedtwin_engine::result::{RunResult, TaskResult};
use schedtwin_engine::twin::Observer;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::{DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId};
use std::path::{Path, PathBuf};

pub const MS: Ns = 1_000_000;
pub const SECOND: Ns = 1_000_000_000;

/// The kernel that scenarios run unless they say otherwise.
pub const KERNEL: &str = "linux-6.12";

/// Loads a scenario that must be good.
pub fn scenario(machine: &str, kernel: &str, workload: &str, duration: Option<Ns>) -> Scenario {
    Scenario::new(machine, kernel, workload, duration)
        .unwrap_or_else(|faults| panic!("{machine} {kernel} {workload}: {faults}"))
}

/// Machines whose frequency drivers make schedutil use threads: one sleeps in its driver, longer and shorter than
/// the silicon takes, one spins.
pub const SLOW_MACHINES: [&str; 3] = [
    "pixel6:fast_switch=false,driver=sleeps,driver_latency_us=400",
    "uniform8:fast_switch=false,driver=sleeps,driver_latency_us=20,settle_us=150",
    "rig8:fast_switch=false,driver=spins,driver_latency_us=60",
];

/// A few of many scenarios, spread over machines and workloads: what the quick tests run. Modules called `long` run all;
/// README.md says how either is asked for.
pub fn few<T>(all: Vec<T>) -> Vec<T> {
    // Prime to the number of workloads, else it would always be the same few of them.
    all.into_iter().step_by(23).collect()
}

/// Every built-in workload on every built-in machine, so that new ones are covered when they come, and on slow
/// variants of them.
pub fn built_in(kernel: &str, duration: Ns) -> Vec<(String, Scenario)> {
    let mut all = Vec::new();
    let machines = schedtwin_engine::list_machines().into_iter().map(|(name, _)| name);
    for machine in machines.chain(SLOW_MACHINES.map(String::from)) {
        // Where there are ten times as many CPUs, as much happens in a tenth of the time.
        let nr_cpus = schedtwin_machine::Machine::load(&machine).map_or(8, |m| m.nr_cpus().max(8));
        let duration = duration * 8 / nr_cpus as Ns;
        for (workload, _) in schedtwin_engine::list_workloads() {
            // Threads that talk do in milliseconds what others do in a second; 400 of them are more than it needs.
            let (workload, duration) = match workload.as_str() {
                "messaging" | "hackbench" => (format!("{workload} -g 1"), duration / 50),
                "netperf" | "tbench" | "sched-pipe" => (workload, duration / 50),
                // What is shorter than the warm-up measures nothing.
                "daytrader" => (format!("{workload} --warmup-ms 0"), duration),
                _ => (workload, duration),
            };
            match Scenario::new(&machine, kernel, &workload, Some(duration)) {
                Ok(scenario) => all.push((format!("{machine} {kernel} {workload}"), scenario)),
                // A workload that names CPU 7 is not for six CPUs.
                Err(faults) if faults.to_string().contains("the machine has CPUs 0 to") => {
                    eprintln!("skipped: {workload} is not for {machine}");
                }
                Err(faults) if faults.to_string().contains("the machine has no block device") => {
                    eprintln!("skipped: {machine} has no disk for {workload}");
                }
                Err(faults) if faults.to_string().contains("is not modelled: polling") => {
                    eprintln!("skipped: {machine} polls, which the twin does not yet");
                }
                Err(faults) => panic!("{machine} {kernel} {workload}: {faults}"),
            }
        }
    }
    assert!(all.len() >= 6, "there are machines and workloads: {}", all.len());
    all
}

/// The published rt-app files that can run alone. The others wait for features, or are parts or of
/// rt-app's old language; the workload crate's tests say which and why.
pub const PUBLISHED: [&str; 36] = [
    "rt-app/browser-long.json",
    "rt-app/browser-short.json",
    "rt-app/cpufreq_governor_efficiency__calibration.json",
    "rt-app/cpufreq_governor_efficiency__dvfs.json",
    "rt-app/custom-slice.json",
    "rt-app/mp3-long.json",
    "rt-app/mp3-short.json",
    "rt-app/spreading-tasks.json",
    "rt-app/template.json",
    "rt-app/tutorial__example1.json",
    "rt-app/tutorial__example10.json",
    "rt-app/tutorial__example11.json",
    "rt-app/tutorial__example2.json",
    "rt-app/tutorial__example3.json",
    "rt-app/tutorial__example4.json",
    "rt-app/tutorial__example5.json",
    "rt-app/tutorial__example6.json",
    "rt-app/tutorial__example7.json",
    "rt-app/tutorial__example8.json",
    "rt-app/tutorial__example9.json",
    "rt-app/video-long.json",
    "rt-app/video-short.json",
    "uclamp-scenarios/juno-scenario1.json",
    "uclamp-scenarios/juno-scenario2.json",
    "uclamp-scenarios/juno-scenario3.json",
    "uclamp-scenarios/juno-scenario4.json",
    "uclamp-scenarios/juno-scenario5.json",
    "workload-automation/browser-long.json",
    "workload-automation/browser-short.json",
    "workload-automation/camera-long.json",
    "workload-automation/camera-short.json",
    "workload-automation/mp3-long.json",
    "workload-automation/mp3-short.json",
    "workload-automation/spreading-tasks.json",
    "workload-automation/video-long.json",
    "workload-automation/video-short.json",
];

/// Where the published files are, if they are there: they are not part of this repository.
pub fn published_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/workloads/rtapp");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: the published rt-app files are not there ({})", folder.display());
    None
}

/// Every published file that runs, on one machine.
pub fn published(machine: &str, kernel: &str, duration: Ns) -> Vec<(String, Scenario)> {
    let Some(folder) = published_folder() else { return Vec::new() };
    let load = |name: &&str| {
        let path = folder.join(name);
        (name.to_string(), scenario(machine, kernel, &path.to_string_lossy(), Some(duration)))
    };
    PUBLISHED.iter().map(load).collect()
}

/// A scenario whose workload is written in the test. `tasks` is the inside of rt-app's `"tasks"`; a
/// loop is 1 us, so that on the machine uniform8 `run` is microseconds at full speed.
pub fn written(machine: &str, kernel: &str, tasks: &str, duration: Ns) -> Scenario {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("written.json");
    let text = format!(
        r#"{{ "global": {{ "calibration": 1000, "default_policy": "SCHED_OTHER" }},
              "tasks": {{ {tasks} }} }}"#
    );
    std::fs::write(&path, text).expect("the temporary folder can be written");
    scenario(machine, kernel, &path.to_string_lossy(), Some(duration))
}

/// Keeps every fact, in the order in which the kernel stated them, and the power of each domain.
#[derive(Default)]
pub struct Log {
    pub facts: Vec<Fact>,
    /// When, of what, microwatts.
    pub power: Vec<(Ns, PowerSource, u64)>,
    pub names: Vec<String>,
}

impl Log {
    /// Which task has this name.
    pub fn task(&self, name: &str) -> TaskId {
        let index = self.names.iter().position(|known| known == name);
        TaskId(index.unwrap_or_else(|| panic!("no task `{name}` in {:?}", self.names)) as u32)
    }

    /// When each switch to `task` happened.
    pub fn switches_to(&self, task: TaskId) -> impl Iterator<Item = Ns> + '_ {
        self.facts.iter().filter_map(move |fact| match fact.kind {
            FactKind::Switch { next, .. } if next == task => Some(fact.at),
            _ => None,
        })
    }
}

impl Observer for Log {
    const DECISIONS: bool = false;
    fn task(&mut self, id: TaskId, name: &str, _: i32) {
        if self.names.len() <= id.index() {
            self.names.resize(id.index() + 1, String::new());
        }
        self.names[id.index()] = name.to_string();
    }
    fn fact(&mut self, fact: &Fact) {
        self.facts.push(*fact);
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64) {
        self.power.push((at, source, microwatts));
    }
    fn settled(&mut self, _: Ns) {}
}

/// Runs to the end and keeps everything.
pub fn logged(scenario: &Scenario, seed: u64) -> (Log, RunResult) {
    let mut twin: schedtwin_engine::twin::Twin = scenario.twin(seed);
    let mut log = Log::default();
    twin.introduce(&mut log);
    while twin.step(&mut log) {}
    (log, twin.finish())
}

/// One run without files.
pub fn run(scenario: &Scenario, seed: u64) -> RunResult {
    scenario.run(seed, RunOptions::default()).expect("a run without files does not fail")
}

/// The first thread whose name begins so; a number follows that counts the threads of all tasks.
pub fn task<'a>(result: &'a RunResult, name: &str) -> &'a TaskResult {
    let found = result.tasks.iter().find(|task| task.name.starts_with(name));
    found.unwrap_or_else(|| panic!("no task `{name}`"))
}

/// The value of a metric that must exist and have a value.
pub fn metric(result: &RunResult, name: &str, stat: &str, labels: &[(&str, &str)]) -> f64 {
    let value = defined(result, name, stat, labels);
    value.unwrap_or_else(|| panic!("{name} {stat} {labels:?} has no value"))
}

/// The value of a metric that must exist.
pub fn defined(result: &RunResult, name: &str, stat: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let found = result.metrics.iter().find(|metric| {
        metric.name == name
            && metric.stat == stat
            && metric.labels.len() == labels.len()
            && metric.labels.iter().zip(labels).all(|(l, r)| l.0 == r.0 && l.1 == r.1)
    });
    found.unwrap_or_else(|| panic!("no metric {name} {stat} {labels:?}")).value
}
