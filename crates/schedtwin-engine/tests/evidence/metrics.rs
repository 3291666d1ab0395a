// SPDX-License-Identifier: GPL-2.0-or-later
//! What runs measure is what is declared, and what is declared is measured.

use crate::scenarios::{MS, run, scenario, written};
use schedtwin_engine::Scenario;
use schedtwin_types::metric::{Better, METRICS, declared};
use std::collections::BTreeSet;

/// Declared labels that no run here has: of replays, whose metrics the laboratory adds; and of machine files in which a
/// cluster within a package draws power of its own, which no built-in machine has.
const ELSEWHERE: [(&str, &str); 3] =
    [("cpu_time", "cpu"), ("power", "cluster"), ("energy", "cluster")];

/// A group with a limit, which no built-in workload has.
const LIMITED: &str = r#""hog": { "taskgroup": "/a", "run": 100000000 } },
    "taskgroups": { "/a": { "cpu.max": "1000 5000" }"#;

/// A reservation that is too small, which no built-in workload has.
const RESERVED: &str = r#""hog": { "policy": "SCHED_DEADLINE", "dl-runtime": 500, "dl-period": 1000, "phases": {
    "p": { "run": 700, "timer": { "ref": "t", "period": 1000 } } } }"#;

/// Machine and workload of runs that measure, together, everything but what replays measure.
fn runs() -> Vec<(String, Scenario)> {
    let workloads = schedtwin_engine::list_workloads().into_iter();
    let of_phone = workloads.map(|(workload, _)| ("pixel6".to_string(), workload));
    let machines = schedtwin_engine::list_machines().into_iter();
    let built_in = of_phone.chain(machines.map(|(machine, _)| (machine, "w1".to_string())));
    let loaded = built_in.map(|(machine, workload)| {
        let scenario = scenario(&machine, "linux-6.12", &workload, Some(10 * MS));
        (format!("{machine}, {workload}"), scenario)
    });
    let limited = written("uniform8", "linux-6.12:fair_group_sched=true", LIMITED, 10 * MS);
    let reserved = written("uniform8", "linux-6.12", RESERVED, 10 * MS);
    let stalls = written("uniform8:settle_us=50,stall_us=10", "linux-6.12", RESERVED, 10 * MS);
    let loads_one = scenario("pixel6", "linux-7.3:scx=simple", "w1", Some(100 * MS));
    let written = [
        ("a scheduler of sched_ext", loads_one),
        ("a group with a limit", limited),
        ("a small reservation", reserved),
        ("clocks that stall", stalls),
    ];
    loaded.chain(written.map(|(name, scenario)| (name.to_string(), scenario))).collect()
}

#[test]
fn what_is_declared_is_measured() {
    let (mut stats, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for (name, scenario) in runs() {
        let mut names = BTreeSet::new();
        for metric in run(&scenario, 1).metrics {
            let of = declared(metric.name).expect("a declaration");
            assert_eq!(metric.unit, of.unit, "{}", of.name);
            // Too shallow a state costs power alone, which not all machines tell.
            let is_neutral = of.name == "idle_too_shallow" && metric.better == Better::Neutral;
            assert!(is_neutral || metric.better == of.better, "{}", of.name);
            let keys: Vec<&str> = metric.labels.iter().map(|(key, _)| *key).collect();
            assert!(of.labels.contains(&keys.as_slice()), "{} {keys:?}", of.name);
            assert!(of.stats.contains(&metric.stat), "{} {}", of.name, metric.stat);
            names.insert(of.name);
            stats.insert((of.name, metric.stat));
            labels.insert((of.name, keys.join("+")));
        }
        for metric in METRICS.iter().filter(|metric| metric.only.is_none()) {
            assert!(names.contains(metric.name), "{name}: no {}", metric.name);
        }
    }
    for metric in METRICS.iter().filter(|metric| metric.only != Some("replays of a trace")) {
        let name = metric.name;
        for stat in metric.stats {
            assert!(stats.contains(&(name, *stat)), "no run has {name} {stat}");
        }
        for set in metric.labels.iter().map(|set| set.join("+")) {
            let elsewhere = ELSEWHERE.contains(&(name, set.as_str()));
            assert!(labels.contains(&(name, set.clone())) != elsewhere, "{name} by {set:?}");
        }
    }
}
