// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware threads of one core: power, speed and rest that they share.

use crate::scenarios::{SECOND, metric, run, task, written};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_types::Ns;

const KERNEL: &str = "linux-6.12:cpufreq=performance";

/// Two tasks of so many milliseconds of work (a loop of 1 us is 12 ns of the desktop's), on these CPUs, within a second.
fn pair(cpus: [u16; 2], work_ms: [u64; 2]) -> RunResult {
    let line = |name: &str, cpu: u16, ms: u64| {
        let run = ms * 1_000_000 / 12;
        format!(r#""{name}": {{ "loop": 1, "cpus": [{cpu}], "run": {run} }}"#)
    };
    let tasks = [line("one", cpus[0], work_ms[0]), line("two", cpus[1], work_ms[1])].join(",");
    let scenario = written("i5-10600k", KERNEL, &tasks, SECOND);
    let result = run(&scenario, 1);
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    assert_eq!(eager.finish().digest, result.digest, "the reference twin agrees");
    result
}

/// How long the first of the two ran, ms.
fn busy_ms(result: &RunResult) -> f64 {
    let ns: Ns = task(result, "one").cpu_time_by_cpu_ns.iter().sum();
    ns as f64 / 1e6
}

/// Package, and cores as by the file: 2 + 13.768 W (1 + 0.15) in one core, (1 + 1) in two.
#[test]
fn both_threads_of_a_core_draw_little_more_than_one() {
    for (cpus, expected) in [([0, 0], 15.77), ([0, 1], 29.54), ([0, 6], 17.83)] {
        let result = pair(cpus, [5_000; 2]);
        let watts = metric(&result, "power", "mean", &[("package", "package")]) / 1000.0;
        assert!((watts - expected).abs() < 0.3, "{cpus:?}: {watts} W instead of {expected} W");
    }
}

/// 65 ms of work take 100 ms beside a busy thread; what the other has left is done alone.
#[test]
fn threads_of_a_core_slow_each_other_while_both_work() {
    for (cpus, other_ms, expected) in
        [([0, 1], 200, 200.0), ([0, 6], 200, 200.0 / 0.65), ([0, 6], 65, 235.0)]
    {
        let found = busy_ms(&pair(cpus, [200, other_ms]));
        assert!((found / expected - 1.0).abs() < 0.01, "{cpus:?}: {found} ms, not {expected} ms");
    }
}

/// Who sleeps beside a busy thread rests in C1, whatever it has asked for.
#[test]
fn a_busy_thread_keeps_its_core_awake() {
    let result = pair([0, 0], [5_000; 2]);
    let deep = |cpu: u16| {
        let found = result.cpus.iter().find(|c| c.cpu == cpu).expect("it exists");
        found.idle_ns[2] + found.idle_ns[3]
    };
    let (beside, far) = (deep(6), deep(5));
    assert!(beside < 20_000_000, "{beside}");
    assert!(far > 900_000_000, "{far}");
}

/// How long `one` ran, ms, beside so many tasks of the same core.
fn one_beside(machine: &str, kernel: &str, one: &str, others: &[u16], other: &str) -> f64 {
    let mut tasks = vec![format!(r#""one": {{ "loop": 1, "cpus": [0], {one} }}"#)];
    for cpu in others {
        tasks.push(format!(r#""beside{cpu}": {{ "loop": 1, "cpus": [{cpu}], {other} }}"#));
    }
    busy_ms(&run(&written(machine, kernel, &tasks.join(","), SECOND / 5), 1))
}

/// 50 ms of work beside none to three busy threads of a small core take 1000 / speed times as long.
#[test]
fn busy_threads_of_a_core_together_do_what_the_file_says() {
    let work = |ms: u64| format!(r#""run": {}"#, ms * 1_000_000 / 20);
    let speeds = [1000.0, 780.0, 650.0, 575.0];
    for (others, speed) in speeds.into_iter().enumerate() {
        let beside = &[2, 4, 6][..others];
        let found = one_beside("power10-8core", KERNEL, &work(50), beside, &work(200));
        let expected = 50.0 * 1000.0 / speed;
        assert!((found / expected - 1.0).abs() < 0.01, "{others} beside: {found}, not {expected}");
    }
}

/// Who polls beside a busy thread takes so many thousandths of what a working one takes away.
#[test]
fn a_poller_slows_its_core_as_the_file_says() {
    let kernel = format!("{KERNEL},cpuidle_disable=C1_ACPI/C2_ACPI/C3_ACPI");
    let work = format!(r#""run": {}"#, 20 * 1_000_000 / 12);
    for (permille, speed) in [(0, 1000), (200, 930), (1000, 650)] {
        let machine = format!("i5-10600k:smt.polling_permille={permille}");
        let found = one_beside(&machine, &kernel, &work, &[], "");
        let expected = 20_000.0 / f64::from(speed);
        assert!((found / expected - 1.0).abs() < 0.01, "{permille}: {found}, not {expected}");
    }
    // Nobody polls where deeper states may be entered.
    let found = one_beside("i5-10600k:smt.polling_permille=1000", KERNEL, &work, &[], "");
    assert!((found / 20.0 - 1.0).abs() < 0.01, "{found}");
}

/// Nothing but system calls: beside a busy thread each takes 1 / 0.65 times as long where its cost is work, and as long as
/// before where it is time.
#[test]
fn kernel_paths_are_slower_on_a_busy_core() {
    let calls = r#""yields": { "loop": 10000, "yield": "" }"#;
    let calls = format!(r#""phases": {{ {calls} }}"#);
    let work = format!(r#""run": {}"#, 150 * 1_000_000 / 12);
    for (scale, expected) in [("work", 1.0 / 0.65), ("time", 1.0)] {
        let machine = format!("i5-10600k:path_costs.scale={scale}");
        let alone = one_beside(&machine, KERNEL, &calls, &[], "");
        let busy = one_beside(&machine, KERNEL, &calls, &[6], &work);
        let elsewhere = one_beside(&machine, KERNEL, &calls, &[1], &work);
        assert!(alone > 2.0, "{alone} ms of calls");
        assert!((busy / alone / expected - 1.0).abs() < 0.01, "{scale}: {alone}, {busy} ms");
        assert!((elsewhere / alone - 1.0).abs() < 0.01, "{scale}: {alone}, {elsewhere} ms");
    }
}
