// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs a scenario in every way, which must not matter, and checks what must be true of any run.
//!
//! | way | must be |
//! |---|---|
//! | plainly, on two threads, while other scenarios run | the same result |
//! | watched, and from a clone made in the middle | the same result; invariants hold at every fact |
//! | beside the reference twin, every sum recomputed at each fifth event | the same digest after each event |
//! | under a scheduler of sched_ext with a mistake | it ends with that mistake, and no other ends |
//! | followed by a second sched_ext class, if a scheduler is loaded | the same steps |
//! | traced and recorded | the same result; the record is read back |
//! | its JSON, nothing else known | run + idle = span on each CPU, energies of the parts add up |

use crate::ext_class;
use crate::scenario::Texts;
use crate::watch::{Seen, Watch};
use schedtwin_engine::board::{FlatBoard, MapBoard};
use schedtwin_engine::policy::Fault;
use schedtwin_engine::result::{RunResult, SCX_ENDED};
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_lab::crash::caught;
use schedtwin_lab::report::{self, Extent, Format, RunReport};
use schedtwin_trace::record::Reader;
use schedtwin_types::CpuId;
use std::io::BufReader;
use std::path::Path;

/// Events after which a run is cut: it would take the time of many others.
const EVENTS_MAX: u64 = 120_000;

/// Events at one instant: a machine of 256 CPUs has no more that can fall together.
const EVENTS_AT_ONCE_MAX: u64 = 60_000;

/// Events that the reference twin takes: it looks at every CPU after each.
const REFERENCE_EVENTS: u64 = 20_000;

/// Work of the reference twin: events times CPUs.
const REFERENCE_LOOKS: u64 = 150_000;

/// Events between two looks at all sums of the reference twin, a prime number.
const SUMS_EVERY: u64 = 5;

/// How a scenario went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: every setting of the kernel that ran, and how many events there were.
    Ran(Vec<(String, String)>, u64),
    /// The readers do not take it.
    Refused(String),
    /// It has too many events for a hunt: a run that goes on, only too long.
    Cut,
    /// A bug.
    Finding(String),
}

/// Loads and runs a scenario in every way. Files that it writes go to the folder.
pub fn check(texts: &Texts, folder: &Path) -> Outcome {
    let scenario = match caught(|| texts.load(folder)) {
        Ok(Ok(scenario)) => scenario,
        Ok(Err(faults)) => {
            // A refusal is shown to the user, which must work as well.
            let shown = caught(|| faults.render(false));
            return match shown {
                Ok(_) => Outcome::Refused(faults.0[0].message.clone()),
                Err(panic) => Outcome::Finding(panic),
            };
        }
        Err(panic) => return Outcome::Finding(panic),
    };
    match caught(|| run_all_ways(&scenario, texts.seed, folder)) {
        Ok(Some(events)) => {
            let values = scenario.kernel().config.values();
            let settings = values.iter().map(|(s, value)| (s.path.to_string(), value.to_string()));
            Outcome::Ran(settings.collect(), events)
        }
        Ok(None) => Outcome::Cut,
        Err(panic) => Outcome::Finding(panic),
    }
}

/// The plain run; `None`: it has too many events.
fn plain(scenario: &Scenario, seed: u64) -> Option<RunResult> {
    let mut twin: Twin<FlatBoard> = scenario.twin(seed);
    let (mut instant, mut since) = (0, 0);
    while twin.step(&mut ()) {
        if twin.now() > instant {
            (instant, since) = (twin.now(), twin.events());
        }
        let at_once = twin.events() - since;
        assert!(at_once < EVENTS_AT_ONCE_MAX, "time stands still at {instant} ns");
        if twin.events() >= EVENTS_MAX {
            return None;
        }
    }
    Some(twin.finish())
}

/// Runs it once, watched, and does the sums of its JSON. Returns the number of events; panics at a finding.
pub fn once(scenario: &Scenario, seed: u64) -> u64 {
    let (result, seen, _) = watched(scenario, seed, u64::MAX);
    from_outside(scenario, seed, &result, &seen);
    result.events
}

fn run_all_ways(scenario: &Scenario, seed: u64, folder: &Path) -> Option<u64> {
    let result = plain(scenario, seed)?;
    let other = std::thread::scope(|scope| {
        // As `run` does it: with no more in the kernel than the run needs.
        let run = || scenario.run(seed, RunOptions::default()).expect("nothing is written");
        let other = scope.spawn(move || caught(run));
        other.join().expect("panics are caught")
    });
    let other = other.unwrap_or_else(|panic| panic!("only on the second thread: {panic}"));
    same("on a second thread, built for the run", &other, &result);
    let (again, seen, clone) = watched(scenario, seed, result.events / 2);
    same("watched", &again, &result);
    if let Some(mut clone) = clone {
        while clone.step(&mut ()) {}
        same("cloned in the middle", &clone.finish(), &result);
    }
    beside_the_reference(scenario, seed);
    if let Some(steps) = ext_class::follow(scenario, seed, u64::MAX) {
        let late = scenario.kernel().identity.contains("scx.load_ms");
        assert!(steps > 0 || late, "ext class: no step was followed");
    }
    ends_as_its_fault_says(scenario, &result);
    written(scenario, seed, folder, &result);
    from_outside(scenario, seed, &result, &seen);
    Some(result.events)
}

/// A scheduler of sched_ext is unloaded for the mistake that it makes, and for nothing else.
fn ends_as_its_fault_says(scenario: &Scenario, result: &RunResult) {
    let ended = result.notices.iter().find(|notice| notice.starts_with(SCX_ENDED));
    let kernel = &scenario.kernel().identity;
    let fault = Fault::ALL.into_iter().find(|(name, ..)| kernel.contains(name));
    if let Some(notice) = ended {
        let (_, _, words) = fault.unwrap_or_else(|| panic!("ext class: no mistake, but {notice}"));
        assert!(notice.contains(words), "ext class: {words}, not {notice}");
    }
}

fn same(what: &str, result: &RunResult, expected: &RunResult) {
    assert_eq!(result.digest, expected.digest, "{what}: digest");
    assert!(result == expected, "{what}: result");
}

/// A run with every fact checked: its result, what was seen, and the twin as it was after that many events.
fn watched(scenario: &Scenario, seed: u64, clone_at: u64) -> (RunResult, Vec<Seen>, Option<Twin>) {
    let mut watch = Watch::new(scenario.machine().nr_cpus());
    let mut twin: Twin = scenario.twin(seed);
    twin.introduce(&mut watch);
    let mut clone = None;
    while twin.step(&mut watch) {
        if twin.events() == clone_at {
            clone = Some(twin.clone());
        }
    }
    let result = twin.finish();
    let seen = watch.finish(&result);
    (result, seen, clone)
}

fn beside_the_reference(scenario: &Scenario, seed: u64) {
    let mut fast: Twin<FlatBoard> = scenario.twin(seed);
    let mut reference: Twin<MapBoard> =
        scenario.twin::<MapBoard>(seed).eager_with_sums_every(SUMS_EVERY);
    let most = REFERENCE_EVENTS.min(REFERENCE_LOOKS / scenario.machine().nr_cpus() as u64);
    while fast.events() < most {
        let more = (fast.step(&mut ()), reference.step(&mut ()));
        assert_eq!(
            (more.0, fast.now(), fast.digest()),
            (more.1, reference.now(), reference.digest()),
            "the reference twin parts"
        );
        if !more.0 {
            return;
        }
    }
}

fn written(scenario: &Scenario, seed: u64, folder: &Path, expected: &RunResult) {
    let trace = folder.join(if seed.is_multiple_of(2) { "trace.pftrace" } else { "trace.txt" });
    let record = folder.join(if seed.is_multiple_of(3) { "record.jsonl" } else { "record.rec" });
    let options = RunOptions {
        trace: Some(trace.clone()),
        record: Some(record.clone()),
        ..RunOptions::default()
    };
    let result = scenario.run(seed, options).expect("the folder can be written");
    same("traced and recorded", &result, expected);
    let file = std::fs::File::open(&record).expect("it was written");
    for entry in Reader::new(BufReader::new(file)) {
        if let Err(error) = entry {
            panic!("the record cannot be read back: {error}");
        }
    }
    for path in [trace, record] {
        std::fs::remove_file(path).expect("it was written");
    }
}

/// Checks everything that needs only the JSON, and the facts that were told of each CPU.
fn from_outside(scenario: &Scenario, seed: u64, result: &RunResult, seen: &[Seen]) {
    let provenance = schedtwin_lab::twin::provenance(scenario);
    let kernel = scenario.kernel().identity.clone();
    let told = RunReport { provenance: &provenance, kernel: &kernel, seed, result };
    let json = report::run(&told, Format::Json, Extent::All);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON: it is no JSON");
    adds_up(scenario, &json, seen);
}

fn adds_up(scenario: &Scenario, json: &serde_json::Value, seen: &[Seen]) {
    let warmup_s = metric(json, "warmup", &[]).expect("JSON: warmup");
    let end = json["simulated_ns"].as_u64().expect("JSON: simulated_ns");
    let span = end.saturating_sub((warmup_s * 1e9).round() as u64);
    let tasks = json["tasks"].as_array().expect("JSON: tasks");
    let task_ns = |task: &serde_json::Value, cpu: usize| {
        task["cpu_time_by_cpu_ns"][cpu].as_u64().expect("JSON: cpu_time_by_cpu_ns")
    };
    for task in tasks {
        let ns = |key: &str| task[key].as_u64().expect("JSON: ns");
        let (user, system) = (ns("utime_ns"), ns("stime_ns"));
        assert_eq!(user + system, ns("cpu_time_ns"), "JSON: utime + stime of {}", task["name"]);
    }
    for cpu in json["cpus"].as_array().expect("JSON: cpus") {
        let busy = cpu["busy_ns"].as_u64().expect("JSON: busy_ns");
        let idle = cpu["idle_ns"].as_array().expect("JSON: idle_ns");
        let idle: u64 = idle.iter().map(|ns| ns.as_u64().expect("JSON: ns")).sum();
        let clock = cpu["frequency_ns"].as_array().expect("JSON: frequency_ns");
        let clock: u64 = clock.iter().map(|f| f["time_ns"].as_u64().expect("JSON: ns")).sum();
        assert_eq!(clock, span, "JSON: times of the clock of cpu{} add up", cpu["cpu"]);
        let index = cpu["cpu"].as_u64().expect("JSON: cpu") as usize;
        let run: u64 = tasks.iter().map(|task| task_ns(task, index)).sum();
        assert_eq!(busy, run, "JSON: tasks of cpu{index} add up");
        // A state may hold less and a shallower one more than the kernel asked for; together they hold all of it. While
        // a CPU polls it also takes interrupts, which are no idle time.
        let rested = &seen[index].rested;
        let polls = scenario.machine().idle_states(CpuId(index as u16));
        let polls = polls.first().is_some_and(|state| state.polling);
        let asked: u64 = rested.iter().sum();
        assert!(idle <= asked, "JSON: cpu{index} is idle {idle} of {asked}");
        assert!(polls || idle == asked, "JSON: idle states of cpu{index}: {idle} of {asked}");
        // The rest are paths of the kernel in the idle task.
        let paths = cpu["idle_loop_ns"].as_u64().expect("JSON: idle_loop_ns");
        assert_eq!(idle + paths, seen[index].idle_ns, "JSON: idle task of cpu{index}");
        assert_eq!(busy + idle + paths, span, "JSON: times of cpu{index} add up");
    }
    let Some(all) = metric(json, "energy", &[]) else { return };
    let parts = energy_of_parts(scenario, json);
    // A picojoule, and what a sum of so many doubles may be off.
    let rounding = 1e-9 + 1e-14 * all.abs();
    assert!((all - parts).abs() <= rounding, "JSON: energy {all} mJ, its parts {parts} mJ");
    for value in labelled(json, "energy", "domain") {
        assert!(value >= 0.0, "JSON: energy below zero");
    }
}

/// Energy of the whole by its parts: what a power domain tells holds that of all within it, so the outermost of those that tell
/// one are added, and the clocks that are in none.
fn energy_of_parts(scenario: &Scenario, json: &serde_json::Value) -> f64 {
    let machine = scenario.machine();
    let told = |name: &str| {
        let of = |label| metric(json, "energy", &[(label, name)]);
        of("package").or_else(|| of("cluster"))
    };
    let telling = || machine.power_domains.iter().filter(|domain| told(&domain.name).is_some());
    let within = |inner: &[CpuId], outer: &[CpuId]| inner.iter().all(|cpu| outer.contains(cpu));
    let outermost = telling()
        .filter(|d| !telling().any(|o| o.cpus.len() > d.cpus.len() && within(&d.cpus, &o.cpus)));
    let packages: f64 = outermost.filter_map(|domain| told(&domain.name)).sum();
    let alone = machine.domains.iter().filter(|c| !telling().any(|d| within(&c.cpus, &d.cpus)));
    let of_clock = |name: &str| metric(json, "energy", &[("domain", name)]).expect("of a clock");
    packages + alone.map(|clock| of_clock(&clock.name)).sum::<f64>()
}

fn rows<'a>(json: &'a serde_json::Value, name: &str) -> Vec<&'a serde_json::Value> {
    let metrics = json["metrics"].as_array().expect("JSON: metrics");
    metrics.iter().filter(|metric| metric["name"] == name).collect()
}

fn metric(json: &serde_json::Value, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let fits = |row: &&serde_json::Value| {
        let of = row["labels"].as_object().expect("JSON: labels");
        of.len() == labels.len()
            && labels.iter().all(|(key, value)| of.get(*key).is_some_and(|told| told == value))
    };
    rows(json, name).into_iter().find(fits).and_then(|row| row["value"].as_f64())
}

/// The values of a metric's rows that have only this label.
fn labelled(json: &serde_json::Value, name: &str, label: &str) -> Vec<f64> {
    rows(json, name)
        .into_iter()
        .filter(|row| {
            let of = row["labels"].as_object().expect("JSON: labels");
            of.len() == 1 && of.contains_key(label)
        })
        .filter_map(|row| row["value"].as_f64())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Removes the content of the JSON bit by bit: each time something no longer adds up.
    #[test]
    fn what_is_lost_is_noticed() {
        let load = |machine| Scenario::new(machine, "linux-6.12", "ui-phone", Some(100_000_000));
        for machine in ["juno-r2", "i5-10600k"] {
            let scenario = load(machine).expect("a scenario");
            let (result, seen, _) = watched(&scenario, 1, u64::MAX);
            let provenance = schedtwin_lab::twin::provenance(&scenario);
            let report =
                RunReport { provenance: &provenance, kernel: "k", seed: 1, result: &result };
            let json = report::run(&report, Format::Json, Extent::All);
            let json: Value = serde_json::from_str(&json).expect("JSON");
            let good = |json: &Value| caught(|| adds_up(&scenario, json, &seen)).is_ok();
            assert!(good(&json), "{machine}");
            let states = json["cpus"][0]["idle_ns"].as_array().expect("states").len();
            let polls = scenario.machine().idle_states(CpuId(0))[0].polling;
            let mut lost = 0;
            for state in usize::from(polls)..states {
                let mut less = json.clone();
                if less["cpus"][0]["idle_ns"][state] == json!(0) {
                    continue;
                }
                less["cpus"][0]["idle_ns"][state] = json!(0);
                lost += u32::from(!polls);
                assert!(polls || !good(&less), "{machine}: idle state {state}");
            }
            let rows = json["metrics"].as_array().expect("metrics");
            for (at, row) in rows.iter().enumerate().filter(|(_, row)| row["name"] == "energy") {
                let labels = row["labels"].as_object().expect("labels");
                let counts = |label: &String| label == "domain" || label == "package";
                let within = machine == "i5-10600k" && labels.contains_key("domain");
                if (labels.is_empty() || labels.keys().any(counts)) && !within {
                    let mut less = json.clone();
                    less["metrics"][at]["value"] =
                        json!(row["value"].as_f64().unwrap_or(1.0) / 2.0);
                    lost += 1;
                    assert!(!good(&less), "{machine}: {row}");
                }
            }
            for key in ["utime_ns", "stime_ns"] {
                let mut less = json.clone();
                let task = less["tasks"].as_array_mut().expect("tasks").iter_mut();
                let task = task.filter(|task| task[key] != json!(0)).last().expect("a task");
                task[key] = json!(0);
                assert!(!good(&less), "{machine}: {key}");
            }
            let mut less = json.clone();
            less["cpus"][1]["busy_ns"] = json!(0);
            assert!(!good(&less), "{machine}: busy time");
            assert!(lost >= 2, "{machine}: {lost} things lost");
        }
    }
}
