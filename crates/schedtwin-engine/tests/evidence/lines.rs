// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache lines between CPUs: how much longer a wakeup takes from afar, against the lines of its path.

use crate::scenarios::{SECOND, metric, run, written};

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
