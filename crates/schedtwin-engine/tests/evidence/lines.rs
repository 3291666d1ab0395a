// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache lines between CPUs: how much longer a wakeup takes from afar, against the lines of its path. And the instructions of
//! the fair class, against those that were counted.

use crate::scenarios::{SECOND, metric, run, scenario, written};

const MACHINE: &str = "epyc-milan-2x64";
const KERNEL: &str = "linux-6.12:cpufreq=performance";

/// The wait of a sleeper of CPU `other`, woken by a task of CPU 0, ns; `line`: the time of a line between the sockets.
fn latency(other: u16, line: u64) -> f64 {
    let tasks = format!(
        r#""waker": {{ "loop": 100, "cpus": [0], "run": 4545, "sleep": 1000, "resume": "other" }},
           "other": {{ "loop": 100, "cpus": [{other}], "suspend": "other", "run": 45 }}"#
    );
    let machine =
        format!("{MACHINE}:distance.overlap_permille=1000,distance.line_ns.machine={line}");
    let result = run(&written(&machine, KERNEL, &tasks, SECOND), 1);
    1000.0 * metric(&result, "waking_latency", "mean", &[("task", "other")])
}

/// The waker looks at the sleeper's task (5 lines) and puts it on the wake list (4), without a choice of CPUs. The other CPU takes
/// the list (4) and the task (9); its run queue it has.
#[test]
fn a_wakeup_from_afar_pays_for_the_lines_of_its_path() {
    let lines = 5 + 4 + 4 + 9;
    let slope = (latency(64, 704) - latency(64, 304)) / 400.0;
    let expected = f64::from(lines);
    assert!((slope - expected).abs() <= 0.05 * expected, "{slope} lines, not {expected}");
}

/// Within a cache the time between sockets does not matter.
#[test]
fn a_wakeup_from_nearby_pays_nothing_for_it() {
    assert_eq!(latency(1, 304), latency(1, 704));
}

/// A message between two tasks on one CPU, ns; `kilo`: the cost of 1,000 instructions of the fair class.
fn message(kernel: &str, group: &str, kilo: u64) -> f64 {
    const LOOPS: u32 = 1000;
    let machine = format!("laptop-8c16t:path_costs.kilo_instruction_ns={kilo}");
    let kernel = format!("{kernel}:cpufreq=performance");
    let workload = format!("{group} taskset=0 sched-pipe -l {LOOPS}");
    let result = run(&scenario(&machine, &kernel, workload.trim_start(), None), 1);
    1e9 * metric(&result, "elapsed", "sum", &[]) / f64::from(2 * LOOPS)
}

/// The time that instructions of the fair class add to a message, ns for each ns of one: on one CPU one task wakes the other and sleeps.
fn instructions(kernel: &str, group: &str) -> f64 {
    message(kernel, group, 1000) - message(kernel, group, 0)
}

/// Counted in the kernels' C. CFS: the tree of the woken one beside the waker. EEVDF, where the sleeper stays queued: the test for
/// preemption and the switch, whose tree is of two.
#[test]
fn a_message_costs_the_instructions_of_its_fair_class() {
    for (kernel, expected) in
        [("linux-6.3", 9.0), ("linux-6.12", 80.0 + 155.0), ("linux-7.3", 167.0 + 22.0 + 265.0)]
    {
        let found = instructions(kernel, "");
        assert!((found - expected).abs() <= 0.1 * expected, "{kernel}: {found}, not {expected}");
    }
}

/// A level that stays queued has its averages and shares twice, and is picked through.
#[test]
fn each_level_of_groups_costs_its_instructions() {
    let expected = 2.0 * 179.0 + 56.0;
    let [none, one, three] =
        ["", "cgroup=/a", "cgroup=/a/b/c"].map(|group| instructions("linux-6.3", group));
    for (found, levels) in [(one - none, 1.0), (three - none, 3.0)] {
        let error = (found / levels - expected).abs();
        assert!(error <= 0.05 * expected, "{found} of {levels} levels of {expected}");
    }
}
