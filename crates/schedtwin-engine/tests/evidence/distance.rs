// SPDX-License-Identifier: GPL-2.0-or-later
//! Distances between CPUs: what a task fetches after it has moved, and how long interrupts are under way.

use crate::scenarios::{SECOND, metric, run, task, written};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;

const KERNEL: &str = "linux-6.12:cpufreq=performance";

/// A task that works 100 times 0.1 ms on CPU 0 and as often on another one, by turns.
fn commuter(machine: &str, other: u16) -> RunResult {
    let phase = |name: &str, cpu: u16| {
        format!(r#""{name}": {{ "loop": 1, "cpus": [{cpu}], "run": 4545 }}"#)
    };
    let phases = [phase("here", 0), phase("there", other)].join(",");
    let tasks = format!(r#""one": {{ "loop": 100, "phases": {{ {phases} }} }}"#);
    let scenario = written(machine, KERNEL, &tasks, SECOND);
    let result = run(&scenario, 1);
    if other == 64 {
        let mut eager: Twin = scenario.twin(1).eager();
        while eager.step(&mut ()) {}
        assert_eq!(eager.finish().digest, result.digest, "the reference twin agrees");
    }
    result
}

/// What refills took of a commuter's time, ns. It also moves once in the beginning, when it takes its affinity.
fn refills(machine: &str, other: u16) -> u64 {
    let with = commuter(machine, other);
    let without = commuter(&format!("{machine},distance.refill_lines=0"), other);
    let [with, without] = [&with, &without].map(|result| task(result, "one"));
    assert_eq!(with.migrations, if other == 0 { 1 } else { 200 });
    with.cpu_time_ns - without.cpu_time_ns
}

/// A hundred lines of 25, 123, 123 and 304 ns, 199 times: nodes of a socket are as far apart as caches of a node.
#[test]
fn refills_grow_with_the_distance() {
    let machine = "epyc-milan-2x64:topology=nps4";
    let first = refills(machine, 0) as f64;
    for (other, ns) in [(1, 2_500), (8, 12_300), (16, 12_300), (64, 30_400)] {
        let found = (refills(machine, other) as f64 - first) / 199.0;
        let expected = f64::from(ns);
        assert!((found - expected).abs() <= 0.02 * expected, "{other}: {found} ns, not {ns} ns");
    }
    // A hundred lines of 10 ns within the core. The stopper still works on the other thread: time without progress costs less.
    let found = (refills(machine, 128) as f64 - first) / 199.0;
    assert!((500.0..=1_000.0).contains(&found), "{found} ns within the core");
}

/// A task that stays where it is refills nothing, whatever a line takes.
#[test]
fn who_stays_refills_nothing() {
    let far = "epyc-milan-2x64:distance.line_ns.llc=90000,distance.line_ns.node=90000,distance.line_ns.machine=90000";
    let found = refills(far, 0);
    assert!((8_900_000..9_100_000).contains(&found), "{found} ns: its first move, and no more");
}

/// A task of CPU 0 wakes one of another CPU, which sleeps: the interrupt takes 20 us longer to the other socket, and there only.
#[test]
fn interrupts_take_longer_from_afar() {
    let latency = |other: u16, ns: u64| {
        let tasks = format!(
            r#""waker": {{ "loop": 100, "cpus": [0], "run": 4545, "sleep": 1000, "resume": "other" }},
               "other": {{ "loop": 100, "cpus": [{other}], "suspend": "other", "run": 45 }}"#
        );
        let machine = format!("epyc-milan-2x64:distance.ipi_ns.machine={ns}");
        let result = run(&written(&machine, KERNEL, &tasks, SECOND), 1);
        metric(&result, "waking_latency", "mean", &[("task", "other")])
    };
    for (other, expected) in [(8, 0.0), (64, 20.0)] {
        let found = latency(other, 20_176) - latency(other, 176);
        assert!((found - expected).abs() < 1.0, "{other}: {found} us more, not {expected}");
    }
}
