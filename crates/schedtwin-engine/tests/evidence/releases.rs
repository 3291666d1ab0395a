// SPDX-License-Identifier: GPL-2.0-or-later
//! Older releases: the rules of `determinism` and `invariants` for each kernel but the newest, on each machine.
//!
//! One pass over a scenario checks everything at once, for the matrix is large: the fast twin runs with every
//! fact judged, the reference twin beside it, a clone from the middle to the end, and each sum that the kernel
//! keeps is recomputed while a record is written.

use crate::determinism::{assert_reference, assert_same};
use crate::invariants::check;
use crate::scenarios::{KERNEL, MS, PUBLISHED, metric, published_folder, run, scenario};
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::Ns;

/// Both ways to change frequencies, both forms of a phone's topology, two and three sizes of CPUs, and equal ones.
const MACHINES: [&str; 6] =
    ["pixel6", "pixel6:switch=stock", "pixel6:topology=phantom", "juno-r2", "rig8", "uniform8"];

/// Every built-in kernel but the newest, which the other rooms judge.
fn older() -> Vec<String> {
    let kernels = schedtwin_engine::list_kernels().into_iter().map(|(name, _)| name);
    let older: Vec<String> = kernels.filter(|name| name != KERNEL).collect();
    assert!(older.len() >= 3, "{older:?}");
    older
}

/// The built-in workloads on all machines.
fn matrix(duration: Ns) -> Vec<(String, Scenario)> {
    let mut all = Vec::new();
    for kernel in older() {
        for machine in MACHINES {
            for workload in ["ui-phone", "w1"] {
                match Scenario::new(machine, &kernel, workload, Some(duration)) {
                    Ok(scenario) => all.push((format!("{machine} {kernel} {workload}"), scenario)),
                    // A workload that names CPU 7 is not for six CPUs.
                    Err(faults) if faults.to_string().contains("the machine has CPUs 0 to") => {}
                    Err(faults) => panic!("{machine} {kernel} {workload}: {faults}"),
                }
            }
        }
    }
    all
}

#[test]
fn the_reference_twin_agrees() {
    for (name, scenario) in matrix(80 * MS) {
        assert_reference(&name, &scenario, 1);
    }
}

#[test]
fn the_invariants_hold() {
    for (name, scenario) in matrix(500 * MS) {
        check(&name, &scenario, 2);
    }
}

/// On another thread, from a clone, with each sum recomputed, and while a record and a trace are written.
#[test]
fn a_run_is_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, scenario) in matrix(120 * MS) {
        let expected = run(&scenario, 3);
        let elsewhere = std::thread::scope(|scope| {
            scope.spawn(|| run(&scenario, 3)).join().expect("a run does not panic")
        });
        assert_same(&format!("{name}: another thread"), &elsewhere, &expected);
        let mut twin: Twin = scenario.twin(3);
        while twin.events() < expected.events / 2 && twin.step(&mut ()) {}
        let mut clone = twin.clone();
        while clone.step(&mut ()) {}
        assert_same(&format!("{name}: clone"), &clone.finish(), &expected);
        let options = RunOptions {
            verify: true,
            record: Some(folder.path().join("record.jsonl")),
            trace: Some(folder.path().join("trace.pftrace")),
            ..RunOptions::default()
        };
        let recorded = scenario.run(3, options).expect("the temporary folder can be written");
        assert_same(&format!("{name}: recorded and verified"), &recorded, &expected);
    }
}

/// A wish of the little CPUs that the others' clocks override is not answered when they give way, which with a
/// rate limit of 10 ms is long after.
#[test]
fn an_overridden_wish_is_not_answered_later() {
    // 4.7's rate limit is a thousand times the latency that the driver claims: 5 s.
    for kernel in older().into_iter().filter(|kernel| kernel != "linux-4.7") {
        let result = run(&scenario("pixel6", &kernel, "ui-phone", Some(1000 * MS)), 1);
        let longest = metric(&result, "freq_update_latency", "max", &[("domain", "little")]);
        // Two wakeups of schedutil's thread, out of c2 at the lowest clock, and the driver's call.
        assert!(longest < 3000.0, "{kernel}: {longest} us");
    }
}

mod long {
    use super::*;

    /// Each published file on each kernel; the machines take turns.
    #[test]
    fn the_published_files_run() {
        let Some(folder) = published_folder() else { return };
        for (turn, kernel) in older().iter().enumerate() {
            for (index, file) in PUBLISHED.iter().enumerate() {
                let machine = MACHINES[(turn + index) % MACHINES.len()];
                let path = folder.join(file);
                let name = format!("{machine} {kernel} {file}");
                match Scenario::new(machine, kernel, &path.to_string_lossy(), Some(200 * MS)) {
                    Ok(scenario) => {
                        let options = RunOptions { verify: true, ..RunOptions::default() };
                        let verified = scenario.run(1, options).expect("no files are written");
                        assert_same(&name, &check(&name, &scenario, 1), &verified);
                    }
                    Err(faults) if faults.to_string().contains("the machine has CPUs 0 to") => {}
                    Err(faults) => panic!("{name}: {faults}"),
                }
            }
        }
    }
}
