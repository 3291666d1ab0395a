// SPDX-License-Identifier: GPL-2.0-or-later
//! What machines do that no kernel decides: states of clusters, speeds of kinds of work, power that
//! depends on votes.

use crate::scenarios::{MS, SECOND, metric, run, task, written};

const PERFORMANCE: &str = "linux-6.12:cpufreq=performance";
/// With fast switch, which has no thread that would wake CPUs.
const JUNO: &str = "juno-r2:fast_switch=true,path_costs.percent=0";

/// A big CPU that wakes every 20 ms keeps its cluster on only while it runs; its sibling, which never
/// does, is in the cluster's state whenever it is.
#[test]
fn a_cluster_is_off_while_nobody_in_it_runs() {
    let tasks = r#""job": { "loop": 50, "cpus": [4], "run": 2000, "timer": { "ref": "t", "period": 20000 } }"#;
    let result = run(&written(JUNO, PERFORMANCE, tasks, SECOND), 1);
    let share = |cluster: &str, state: &str| {
        metric(&result, "idle_residency", "mean", &[("cluster", cluster), ("state", state)])
    };
    // Of each 20 ms one of two CPUs leaves for 1.2 ms, runs 2000 loops for 0.13 ms and enters for 0.4 ms, in
    // which the other is on its own: 1.73 of 40 ms. Ways in and out count as being in the state.
    let (alone, off) = (share("big", "cpu-sleep-0"), share("big", "cluster-sleep-0"));
    assert!((alone - 4.3).abs() < 0.2, "a sibling that waits: {alone}");
    assert!((off - 95.3).abs() < 0.3, "both: {off}");
    // Nobody runs on the little ones, but their kernel does now and then.
    assert!(share("little", "cluster-sleep-0") > 95.0);

    // What the cluster draws while it is off is nearly all that this saves.
    let apart = JUNO.to_string() + ",core.cortex-a72.idle[2].cluster=false";
    let other = run(&written(&apart, PERFORMANCE, tasks, SECOND), 1);
    let power = |result| metric(result, "power", "mean", &[("domain", "big")]);
    assert!((power(&result) - power(&other)).abs() < 0.05 * power(&other));
    assert!(share("big", "cpu-sleep-0") > 0.0);
    let none =
        metric(&other, "idle_residency", "mean", &[("cluster", "big"), ("state", "cpu-sleep-0")]);
    assert!(none < 0.5, "a CPU that may go deep alone does so: {none}");
}

/// rt-app's loop takes what its calibration on that core says, where kinds of work are on, and what the
/// capacities say, where they are off.
#[test]
fn a_loop_takes_what_the_calibration_says() {
    for (machine, kinds, cpu, ns_per_loop) in [
        ("juno-r2:fast_switch=true", true, 0, 186.0),
        ("juno-r2:fast_switch=true", true, 4, 66.0),
        ("juno-r2:fast_switch=true", false, 0, 176.5),
        ("pixel6:coupling=false", true, 0, 116.0),
        ("pixel6:coupling=false", false, 0, 173.4),
        ("pixel6:coupling=false", true, 7, 21.0),
    ] {
        let machine = format!("{machine},kinds={kinds},path_costs.percent=0");
        // A loop of the calibration is a microsecond: 1000 us are 1000 loops.
        let (jobs, loops) = (20, 20_000);
        let tasks = format!(
            r#""job": {{ "loop": {jobs}, "cpus": [{cpu}], "run": {loops}, "sleep": 100 }}"#
        );
        let result = run(&written(&machine, PERFORMANCE, &tasks, 5 * SECOND), 1);
        let job = task(&result, "job-0");
        let ns = job.cpu_time_by_cpu_ns[cpu] as f64 / (jobs * loops) as f64;
        assert!((ns / ns_per_loop - 1.0).abs() < 0.003, "{machine} CPU {cpu}: {ns}");
    }
}

/// Work that only waits for memory takes as long at any frequency; without stalls its time is the clock's.
#[test]
fn stalls_do_not_follow_the_clock() {
    let time = |stall: u32, kernel: &str| {
        let machine = format!("{JUNO},work.rt-app.stall_permille={stall}");
        let tasks = r#""job": { "loop": 10, "cpus": [4], "run": 10000, "sleep": 1000 }"#;
        let result = run(&written(&machine, kernel, tasks, 5 * SECOND), 1);
        task(&result, "job-0").cpu_time_by_cpu_ns[4] as f64
    };
    let slow = "linux-6.12:cpufreq=powersave";
    for (stall, ratio) in [(0, 2.0), (500, 1.5), (1000, 1.0)] {
        let found = time(stall, slow) / time(stall, PERFORMANCE);
        assert!((found - ratio).abs() < 0.01, "{stall}: {found} instead of {ratio}");
    }
}

/// The little cores of a Pixel 6 draw more while the big ones run fast, and nothing else changes.
#[test]
fn votes_move_power_and_nothing_else() {
    let tasks = r#""slow": { "loop": 50, "cpus": [0], "run": 400, "sleep": 1000 },
                   "fast": { "loop": 50, "cpus": [7], "run": 100000, "sleep": 100 }"#;
    let result = |machine: &str| run(&written(machine, "linux-6.12", tasks, 500 * MS), 1);
    let (with, without) = (result("pixel6"), result("pixel6:power_dependence=false"));
    assert_eq!(with.digest, without.digest);
    let power = |result, domain: &str| metric(result, "power", "mean", &[("domain", domain)]);
    assert_eq!(power(&with, "big"), power(&without, "big"));
    assert_eq!(power(&with, "mid"), power(&without, "mid"));
    assert!(power(&with, "little") > 1.2 * power(&without, "little"));
}

/// While a big core runs at full speed the little clock is held up; the kernel knows of it if its driver does that, and says so in
/// `cpu_frequency`.
#[test]
fn a_driver_that_couples_clocks_tells_the_kernel() {
    let tasks = r#""busy": { "loop": 1, "cpus": [7], "run": 40000000 },
        "light": { "loop": 200, "cpus": [0], "run": 10, "timer": { "ref": "t", "period": 5000 } }"#;
    let told = |machine: &str| {
        let result =
            run(&written(machine, "linux-6.12:schedutil.rate_limit_us=500", tasks, SECOND), 1);
        let labels = [("domain", "little"), ("over", "changes")];
        let in_truth = metric(&result, "freq_mean", "mean", &[("domain", "little")]);
        (metric(&result, "freq_mean", "mean", &labels), in_truth)
    };
    let (by_hardware, by_driver) = (told("pixel6:coupling_by_driver=false"), told("pixel6"));
    // The clock is the same.
    assert!((1_300.0..1_402.0).contains(&by_hardware.1), "{by_hardware:?}");
    assert!((by_hardware.1 - by_driver.1).abs() < 20.0, "{by_hardware:?} {by_driver:?}");
    // What the kernel says of it is not: with the driver it follows each step of the big clock.
    assert!(by_driver.0 > by_hardware.0 + 30.0, "{by_hardware:?} {by_driver:?}");
}
