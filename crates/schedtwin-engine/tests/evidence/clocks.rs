// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks that stall while they switch, and firmware that holds them back.

use crate::scenarios::{KERNEL, MS, SECOND, metric, run, written};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_types::{ClockDomainId, CpuId};

/// Work that comes and goes, so that schedutil changes the clock of CPU 0 again and again.
const RESTLESS: &str = r#"
    "busy": { "loop": -1, "cpus": [0], "phases": {
        "much": { "loop": 30, "run": 6000, "sleep": 1000 },
        "little": { "loop": 30, "run": 500, "sleep": 8000 } } }"#;

/// uniform8 with a limit of power.
fn limited(limit: &str) -> (tempfile::TempDir, String) {
    let text =
        schedtwin_engine::builtin_machine("uniform8").expect("a built-in machine").text.to_string();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("limited.toml");
    let text = format!("{text}\n[power_limit.chip]\ncpus = \"0-7\"\n{limit}");
    std::fs::write(&path, text).expect("the folder is writable");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

/// The reference twin agrees, and every sum is right after every event.
fn agreed(scenario: &Scenario) -> RunResult {
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    let result = run(scenario, 1);
    assert_eq!(eager.finish().digest, result.digest);
    result
}

fn of_domain(result: &RunResult, name: &str, stat: &str, domain: &str) -> f64 {
    metric(result, name, stat, &[("domain", domain)])
}

#[test]
fn a_task_stands_still_with_each_switch() {
    let switching = "settle_us=300,stall_us=250";
    let scenario =
        |switching: &str| written(&format!("uniform8:{switching}"), KERNEL, RESTLESS, SECOND);
    let (plain, stalls) = (run(&scenario("settle_us=300"), 1), agreed(&scenario(switching)));
    let switches = of_domain(&stalls, "freq_transitions", "sum", "all");
    let stood_us = metric(&stalls, "freq_stall_time", "sum", &[]) * 1e3;
    assert!(switches > 20.0, "{switches}");
    assert!(stood_us >= 250.0 && stood_us % 250.0 == 0.0, "{stood_us} us: one task at most");
    assert!(stood_us <= switches * 250.0, "{stood_us} us in {switches} switches");
    assert!(plain.metrics.iter().all(|metric| metric.name != "freq_stall_time"));
}

/// Half of full power for long, nine tenths until then: the clock falls until the power is there.
#[test]
fn power_stays_within_its_budget() {
    let hog = r#""hog": { "loop": -1, "instance": 8, "run": 100000 }"#;
    let free = run(&written("uniform8", KERNEL, hog, 3 * SECOND), 1);
    let full = metric(&free, "power", "mean", &[]);
    let uw = |share: f64| (full * share * 1e3) as u64;
    let (sustained, burst) = (uw(0.5), uw(0.9));
    let (_folder, machine) =
        limited(&format!("sustained_uw = {sustained}\nburst_uw = {burst}\ntau_ms = 200\n"));
    let held = agreed(&written(&machine, KERNEL, hog, 3 * SECOND));
    let share = metric(&held, "power", "mean", &[]) / full;
    assert!((0.40..0.56).contains(&share), "{share} of {full} mW");
    assert!(of_domain(&held, "power_limited", "mean", "all") > 80.0);
    let speed = |result| of_domain(result, "freq_mean", "mean", "all");
    assert!(speed(&held) < 0.9 * speed(&free), "{} MHz", speed(&held));
}

/// With two cores awake the clock is lower than with one; who rests in WFI counts as awake.
#[test]
fn cores_that_are_awake_hold_the_clock_back() {
    let (_folder, machine) = limited("awake_khz = [2_000_000, 500_000]\ntells_kernel = true\n");
    let task = |cpu| format!(r#""hog{cpu}": {{ "loop": -1, "cpus": [{cpu}], "run": 100000 }}"#);
    let mhz = |governor: &str, tasks: &str| {
        let kernel = format!("{KERNEL}:{governor}");
        of_domain(&agreed(&written(&machine, &kernel, tasks, 500 * MS)), "freq_mean", "mean", "all")
    };
    assert!(mhz("cpuidle=shallow", &task(0)) < 600.0);
    let one = mhz("cpuidle=menu", &task(0));
    let two = mhz("cpuidle=menu", &format!("{},{}", task(0), task(1)));
    assert!(two < 600.0 && one > 1.5 * two, "{one} and {two} MHz");
}

/// The scheduler hears of it: a CPU that firmware halves is half as large to it.
#[test]
fn the_kernel_is_told() {
    let capacity = |tells: bool| {
        let (_folder, machine) =
            limited(&format!("awake_khz = [1_000_000]\ntells_kernel = {tells}\n"));
        let hog = r#""hog": { "loop": -1, "cpus": [0], "run": 100000 }"#;
        let mut twin: Twin = written(&machine, KERNEL, hog, SECOND).twin(1);
        while twin.step(&mut ()) {}
        twin.kernel().get_actual_cpu_capacity(CpuId(0))
    };
    assert_eq!(capacity(false), 1024);
    let max =
        schedtwin_machine::Machine::load("uniform8").unwrap().domains[ClockDomainId(0)].max_khz();
    let left = 1024 * 1_000_000 / u64::from(max);
    let told = capacity(true);
    assert!((left..=left + 2).contains(&told), "{told} of {left}");
}

/// Work that waits for memory takes the time at half the clock that its share says; `mem` is such work.
#[test]
fn waits_for_memory_do_not_follow_the_clock() {
    // A loop's time in ms at the highest clock of uniform8 and at the lowest.
    let durations = |events: &str| {
        let text = format!(
            r#"{{ "tasks": {{ "t": {{ "loop": -1, {events}, "sleep": 20000 }} }},
                 "global": {{ "duration": 1, "calibration": "CPU0" }} }}"#
        );
        let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        let workload = file.path().to_str().unwrap();
        ["performance", "powersave"].map(|governor| {
            let kernel = format!("linux-6.12:cpufreq={governor}");
            let scenario =
                schedtwin_engine::Scenario::new("uniform8", &kernel, workload, None).unwrap();
            let result = scenario.run(1, Default::default()).unwrap();
            let busy =
                result.metrics.iter().find(|m| m.name == "frame_duration" && m.stat == "mean");
            busy.and_then(|m| m.value).expect("jobs")
        })
    };
    let machine = schedtwin_machine::Machine::load("uniform8").unwrap();
    let opps = &machine.domains[schedtwin_types::ClockDomainId(0)].opps;
    let slower = f64::from(opps[opps.len() - 1].khz) / f64::from(opps[0].khz);
    for (memory, share) in [(0, 0.0), (40, 0.4), (100, 1.0)] {
        let [fast, slow] = durations(&format!(r#""run": {{ "us": 5000, "memory": {memory} }}"#));
        let expected = (1.0 - share) * slower + share;
        assert!((4.9..5.3).contains(&fast), "{fast} ms");
        assert!((slow / fast - expected).abs() < 0.06 * expected, "{memory} %: {fast}, {slow} ms");
    }
    let [fast, slow] = durations(r#""mem": 50000000"#);
    let expected = 0.5 * slower + 0.5;
    assert!((slow / fast - expected).abs() < 0.06 * expected, "{fast}, {slow} ms");
}
