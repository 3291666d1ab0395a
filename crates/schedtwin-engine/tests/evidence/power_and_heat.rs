// SPDX-License-Identifier: GPL-2.0-or-later
//! States of packages, ways out of idle, polling power, heat and throttling.

use crate::scenarios::{MS, SECOND, metric, run, task, written};
use schedtwin_engine::firmware::meter_setup;
use schedtwin_engine::meter::{Activity, Meter};
use schedtwin_machine::Machine;
use schedtwin_types::{ClockDomainId, CpuId, Ns};

const PERFORMANCE: &str = "linux-6.12:cpufreq=performance";
/// Nobody has anything to do.
const IDLE: &str = r#""nobody": { "loop": 1, "sleep": 1000000 }"#;

/// A built-in machine with pieces of its text replaced: a file that lives as long as the folder.
fn changed(machine: &str, changes: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let mut text =
        schedtwin_engine::builtin_machine(machine).expect("a built-in machine").text.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{machine} has no {from}");
        text = text.replace(from, to);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("changed.toml");
    std::fs::write(&path, text).expect("the folder is writable");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

/// The line of an idle state.
fn state(machine: &str, name: &str) -> String {
    let text = &schedtwin_engine::builtin_machine(machine).expect("a built-in machine").text;
    let line = text.lines().find(|line| line.contains(&format!("name = \"{name}\"")));
    line.expect("it has the state").to_string()
}

/// A machine without power data has no power; 0 mW would be a claim, and the better one in a comparison.
#[test]
fn power_that_is_not_known_is_undefined() {
    let busy = r#""busy": { "loop": -1, "run": 1000, "sleep": 1000 }"#;
    for (machine, known) in [("power10-8core", false), ("uniform8", true)] {
        let result = run(&written(machine, "linux-6.12", busy, 100 * MS), 1);
        let of_power = result.metrics.iter().filter(|m| ["power", "energy"].contains(&m.name));
        let values: Vec<Option<f64>> = of_power.map(|m| m.value).collect();
        assert!(values.len() > 2, "{machine}");
        assert!(values.iter().all(|value| value.is_some() == known), "{machine}: {values:?}");
    }
}

/// The idle powers that i5-10600k was fitted to come out of runs in which nobody has anything to do: 1.4 W with all
/// states, 2.6 W with C1 alone, and 46 W if all CPUs poll (which the meter alone says: no governor takes part).
#[test]
fn the_idle_powers_that_the_desktop_was_fitted_to() {
    let line = |name: &str| state("i5-10600k", name);
    let (poll, c2, c3) = (line("POLL"), line("C2_ACPI"), line("C3_ACPI"));
    let (pc2, pc3) = (line("PC-C2"), line("PC-C3"));
    let none = |line: &'static str| (line, "");
    let leaked = |line: &str| -> &'static str { Box::leak(line.to_string().into_boxed_str()) };
    let mut gone: Vec<_> = [&poll, &c2, &c3, &pc2, &pc3].map(|line| none(leaked(line))).into();
    gone.push(none(r#""power.package.states[0].uw", "#));
    for (removed, published) in [(&gone[..1], 1.4), (&gone[..], 2.6)] {
        let (_folder, machine) = changed("i5-10600k", removed);
        let result =
            run(&written(&machine, "linux-6.3:cpufreq=performance,hz=1000", IDLE, SECOND), 1);
        let power = metric(&result, "power", "mean", &[("package", "package")]) / 1000.0;
        assert!((power / published - 1.0).abs() < 0.03, "{power} W instead of {published} W");
        let all = metric(&result, "power", "mean", &[]) / 1000.0;
        assert!((all - power).abs() < 1e-9, "the package is all there is");
    }
    let machine = Machine::load("i5-10600k").unwrap();
    let mut meter = Meter::new(meter_setup(&machine));
    for cpu in 0..12 {
        let highest = machine.domains[ClockDomainId(cpu)].opps.len() - 1;
        meter.domain_opp(0, ClockDomainId(cpu), highest);
        meter.cpu_activity(0, CpuId(cpu), Activity::Polling);
    }
    let (metrics, ..) = meter.finish(SECOND);
    let power = metrics.iter().find(|m| m.name == "power" && m.labels.is_empty()).unwrap();
    let watts = power.value.unwrap() / 1000.0;
    assert!((watts / 46.0 - 1.0).abs() < 0.001, "{watts} W instead of 46 W");
}

/// Firmware turns off what is quiet for 10 ms: everything in an idle phone, the other clusters while one CPU wakes every 5
/// ms, and nothing of that costs or saves what Wattson's curves do not know.
#[test]
fn clusters_and_system_go_down_unasked() {
    let share = |result: &_, level: &'static str, name: &str, state: &str| {
        metric(result, "power_domain_residency", "mean", &[(level, name), ("state", state)])
    };
    let tasks = r#""job": { "loop": 200, "cpus": [0], "run": 100, "timer": { "ref": "t", "period": 5000 } }"#;
    let idle = run(&written("pixel6:switch=fast", "linux-6.12", IDLE, SECOND), 1);
    let busy = run(&written("pixel6:switch=fast", "linux-6.12", tasks, SECOND), 1);
    assert!(share(&idle, "package", "system", "sicd") > 95.0);
    assert_eq!(share(&busy, "package", "system", "sicd"), 0.0);
    assert_eq!(share(&busy, "cluster", "cl0", "cpd"), 0.0);
    assert!(share(&busy, "cluster", "cl2", "cpd") > 90.0);
    // They draw nothing of their own, so there is nothing to tell of their power.
    let of_cluster = |m: &schedtwin_engine::result::Metric| {
        m.name == "power" && m.labels.iter().any(|label| label.0 == "cluster")
    };
    assert!(!busy.metrics.iter().any(of_cluster));
}

/// A package that is off makes the first to wake wait, and only while all of it rests.
#[test]
fn the_first_to_wake_turns_the_package_on() {
    let tables = "\n[power.package]\ncpus = \"0-7\"\nuw = 1_000\n\
        states = [{ name = \"off\", cpus_in = \"WFI\", uw = 10, exit_ns = 500_000, entry_nj = 7 }]\n\n[interrupts]\n";
    let idle = schedtwin_engine::builtin_machine("uniform8").unwrap();
    let idle = idle
        .text
        .lines()
        .filter(|line| line.contains("{ name = \"sleep\"") || line.contains("{ name = \"off\""));
    let lines: Vec<String> = idle.map(String::from).collect();
    let (_folder, machine) =
        changed("uniform8", &[(&lines[0], ""), (&lines[1], ""), ("\n[interrupts]\n", tables)]);
    let waits = |tasks: &str| {
        let result = run(&written(&machine, PERFORMANCE, tasks, SECOND), 1);
        metric(&result, "wu_lat", "p50", &[("task", "job")])
    };
    let job = r#""job": { "loop": -1, "cpus": [0], "run": 100, "timer": { "ref": "t", "period": 20000 } }"#;
    let power = |machine: &str| {
        let result = run(&written(machine, PERFORMANCE, job, SECOND), 1);
        metric(&result, "power", "mean", &[("domain", "all")])
    };
    let slow = power(&machine);
    let other = r#", "other": { "loop": -1, "cpus": [5], "run": 100000 }"#;
    let (alone, beside) = (waits(job), waits(&format!("{job}{other}")));
    // The kernel's path comes on top, in both.
    assert!((alone - beside - 500.0).abs() < 1.0, "{alone} us and {beside} us");

    // Whoever waits for its package rests meanwhile: the cores draw what they draw if it is back at once.
    let at_once =
        std::fs::read_to_string(&machine).unwrap().replace("exit_ns = 500_000", "exit_ns = 0");
    std::fs::write(&machine, at_once).unwrap();
    let at_once = power(&machine);
    assert!((slow / at_once - 1.0).abs() < 0.01, "{slow} mW and {at_once} mW");
}

/// How long the way out takes depends on what wakes the CPU; an entry is aborted after its abort latency.
#[test]
fn ways_out_of_idle() {
    let waits = |state: &str, tasks: &str, name: &str, label: (&str, &str)| {
        let machine = schedtwin_engine::builtin_machine("uniform8").unwrap();
        let text = &machine.text;
        let (from, to) = (text.find("idle = [").unwrap(), text.find("]\n\n[cpu.all]").unwrap());
        let (_folder, machine) =
            changed("uniform8", &[(&text[from..to], &format!("idle = [{state}"))]);
        let result = run(&written(&machine, PERFORMANCE, tasks, SECOND), 1);
        metric(&result, name, "p50", &[label])
    };
    let pair = r#"
        "first": { "loop": -1, "cpus": [0], "run": 100, "resume": "go", "timer": { "ref": "t", "period": 20000 } },
        "second": { "loop": -1, "cpus": [4], "suspend": "go", "run": 100 }"#;
    let state =
        r#"{ name = "WFI", entry_ns = 0, exit_ns = 1_000, EXIT residency_us = 1, power = "wfi" }"#;
    let plain = state.replace("EXIT", "");
    let slow = state.replace("EXIT", "exit_ipi_ns = 301_000,");
    let [plain_timer, slow_timer] =
        [&plain, &slow].map(|s| waits(s, pair, "wu_lat", ("task", "first")));
    let [plain_ipi, slow_ipi] =
        [&plain, &slow].map(|s| waits(s, pair, "waking_latency", ("task", "second")));
    assert!((plain_timer - slow_timer).abs() < 1.0, "{plain_timer} {slow_timer}");
    assert!((slow_ipi - plain_ipi - 300.0).abs() < 1.0, "{plain_ipi} {slow_ipi}");

    // At most twenty milliseconds of sleep, and 25 to go to bed: back at the end of those, or 20 us after the timer.
    let sleeper = r#""job": { "loop": -1, "cpus": [0], "run": 10, "timer": { "ref": "t", "period": 20000 } }"#;
    let state = r#"{ name = "deep", entry_ns = 25_000_000, exit_ns = 1_000, ABORT residency_us = 1, power = "off" }"#;
    let full = waits(&state.replace("ABORT", ""), sleeper, "wu_lat", ("task", "job"));
    let short =
        waits(&state.replace("ABORT", "abort_ns = 20_000,"), sleeper, "wu_lat", ("task", "job"));
    assert!(full > 4_900.0, "{full}");
    assert!((20.0..100.0).contains(&short), "with 50 us of slack: {short}");
}

/// Two busy big cores of a phone.
fn busy(machine: &str, seconds: Ns) -> schedtwin_engine::result::RunResult {
    let tasks = r#""one": { "loop": -1, "cpus": [6], "run": 1000000 },
                   "two": { "loop": -1, "cpus": [7], "run": 1000000 }"#;
    run(&written(machine, PERFORMANCE, tasks, seconds * SECOND), 1)
}

/// Heat moves nothing while no trip point is reached, and is measured.
#[test]
fn heat_alone_moves_nothing() {
    let (with, without) = (busy("pixel6", 5), busy("pixel6:heat=false", 5));
    assert_eq!(with.digest, without.digest);
    assert_eq!(metric(&with, "throttled", "mean", &[("domain", "big")]), 0.0);
    // 2 x 1942.89 mW through 5 K/W, above a chip that takes it up with 4 J/K: less what 0.75 s lag behind that.
    let node = |stat, name: &str| metric(&with, "temperature", stat, &[("node", name)]);
    let rise = node("max", "big") - node("max", "soc");
    let soc = node("max", "soc") - 25.0;
    assert!((3.5..4.86).contains(&soc), "less than 3.886 W x 5 s / 4 J/K: {soc} K");
    let expected = 3.886 * 5.0 - 0.75 * 3.886 / 4.0;
    assert!((rise / expected - 1.0).abs() < 0.02, "{rise} K instead of {expected} K");
    assert_eq!(metric(&with, "temperature", "max", &[]), node("max", "big"));
    assert!(without.metrics.iter().all(|m| m.name != "temperature"));
}

/// A hot phone holds its clock back, a cold one does not; both governors keep the temperature near the trip point.
#[test]
fn a_hot_phone_is_held_back() {
    let hot = "pixel6:ambient_c=60,start_above_k=15";
    let allocator = format!(
        "{hot},thermal_zone.big.governor=power_allocator,thermal_zone.big.sustainable_mw=1500"
    );
    let time = |result: &schedtwin_engine::result::RunResult| task(result, "one").cpu_time_ns;
    let big =
        |result: &_, name, stat, label: &'static str| metric(result, name, stat, &[(label, "big")]);
    let cold = busy("pixel6:ambient_c=4", 10);
    assert_eq!(big(&cold, "throttled", "mean", "domain"), 0.0);
    for machine in [hot, &allocator] {
        let held = busy(machine, 10);
        assert!(big(&held, "throttled", "mean", "domain") > 50.0, "{machine}");
        let (max, mean) =
            (big(&held, "temperature", "max", "node"), big(&held, "temperature", "mean", "node"));
        assert!((86.0..96.0).contains(&max), "{machine}: {max} C");
        assert!((80.0..93.0).contains(&mean), "{machine}: {mean} C");
        let speed = |result| big(result, "freq_mean", "mean", "domain");
        assert!(speed(&held) < 0.95 * speed(&cold), "{machine}: {}", speed(&held));
        let busy = time(&held) as f64 / time(&cold) as f64;
        assert!((busy - 1.0).abs() < 0.001, "the CPU is as busy, only slower: {busy}");
    }
}

/// Throttled or not, all energy becomes heat and every sum is right after every event; a warm-up cuts statistics only.
#[test]
fn all_energy_becomes_heat_after_every_event() {
    let tasks = r#""one": { "loop": -1, "cpus": [6], "run": 3000, "sleep": 500 },
                   "two": { "loop": -1, "cpus": [1], "run": 300, "sleep": 3000 }"#;
    let scenario = written(
        "pixel6:ambient_c=80,start_above_k=9,thermal_zone.big.trips[1].c=89",
        "linux-6.12",
        tasks,
        300 * MS,
    );
    let mut twin: schedtwin_engine::twin::Twin<schedtwin_engine::board::FlatBoard> =
        scenario.twin(1);
    twin = twin.eager();
    while twin.step(&mut ()) {}
    let eager = twin.finish();
    assert!(metric(&eager, "throttled", "mean", &[("domain", "big")]) > 0.0);
    assert_eq!(eager.digest, run(&scenario, 1).digest);
}

/// The shared cache is on the little cores' rail: work of a big core, at the highest clocks, by hand.
#[test]
fn accesses_to_the_shared_cache_are_paid_by_the_little_rail() {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let text = r#"{ "tasks": { "t": { "cpus": [7], "loop": -1, "run": 1000 } },
                    "global": { "duration": 1, "calibration": "CPU7" } }"#;
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let workload = file.path().to_str().unwrap();
    let powers = |machine: &str| {
        let kernel = "linux-6.12:cpufreq=performance";
        let scenario = schedtwin_engine::Scenario::new(machine, kernel, workload, None).unwrap();
        let result = scenario.run(1, Default::default()).unwrap();
        let power = |domain: &str| {
            let mut of = result.metrics.iter().filter(|m| m.name == "power");
            let found = of.find(|m| m.labels.iter().any(|(_, value)| value == domain));
            found.and_then(|m| m.value).expect("each domain has a power")
        };
        ["little", "mid", "big"].map(power)
    };
    let without = powers("pixel6");
    assert_eq!(powers("pixel6:l3.accesses_per_us=0"), without);
    let with = powers("pixel6:l3.accesses_per_us=42");
    assert_eq!(with[1..], without[1..]);
    // 42 accesses in a microsecond of 0.7 x 2748 + 0.3 x 1067 pJ are 94.2 mW; the thread works nearly all the time.
    let added = with[0] - without[0];
    assert!((91.0..94.4).contains(&added), "{added} mW");
}
