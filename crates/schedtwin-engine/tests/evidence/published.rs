// SPDX-License-Identifier: GPL-2.0-or-later
//! The rt-app files that people published run on the phone and are measured.

use crate::scenarios::{
    KERNEL, PUBLISHED, SECOND, metric, published, published_folder, run, scenario,
};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::{RunOptions, Scenario};

/// What a user of these files is told, by a part of the notice; anything else is news.
const EXPECTED_NOTICES: [&str; 3] = [
    "for which nothing waits: it wakes nobody",
    // linux-4.7.
    "has no utilisation clamps (uclamp=compiled-out)",
    "real-time tasks ask for the highest frequency",
];

fn check_metrics(name: &str, scenario: &Scenario, result: &RunResult) {
    for metric in &result.metrics {
        let value = metric.value.unwrap_or(0.0);
        assert!(value.is_finite(), "{name}: {metric:?}");
        let signed = metric.name == "slack";
        assert!(signed || value >= 0.0, "{name}: {metric:?}");
        assert!(metric.unit != "%" || value <= 100.0 + 1e-9, "{name}: {metric:?}");
    }
    let cpus = scenario.machine().nr_cpus();
    assert_eq!(result.cpus.len(), cpus, "{name}");
    assert!(metric(result, "energy", "sum", &[]) > 0.0, "{name}");
    assert!(metric(result, "context_switches", "sum", &[]) > 0.0, "{name}");
    for cpu in &result.cpus {
        let idle: u64 = cpu.idle_ns.iter().sum();
        let at_frequencies: u64 = cpu.frequency_ns.iter().map(|(_, ns)| ns).sum();
        assert_eq!(at_frequencies, result.simulated_ns, "{name}: cpu{}", cpu.cpu);
        // A CPU may have been switched a path's debt ahead of the end.
        assert!(cpu.busy_ns + idle <= result.simulated_ns + 2_000_000, "{name}: {cpu:?}");
    }
    let unexpected =
        |notice: &&String| !EXPECTED_NOTICES.iter().any(|known| notice.contains(known));
    let notices: Vec<String> =
        scenario.notices().into_iter().chain(result.notices.clone()).collect();
    let news: Vec<&String> = notices.iter().filter(unexpected).collect();
    assert!(news.is_empty(), "{name}: {news:?}");
}

#[test]
fn every_file_runs_and_the_governor_saves() {
    let plain = published("pixel6", KERNEL, 2 * SECOND);
    let fastest = published("pixel6", "linux-6.12:cpufreq=performance", 2 * SECOND);
    for ((name, plain), (_, fastest)) in plain.iter().zip(&fastest) {
        let run = |scenario: &Scenario| scenario.run(1, RunOptions::default()).unwrap();
        let (under_schedutil, under_performance) = (run(plain), run(fastest));
        check_metrics(name, plain, &under_schedutil);
        check_metrics(name, fastest, &under_performance);
        for domain in &plain.machine().domains {
            let labels = [("domain", domain.name.as_str())];
            let top = f64::from(domain.max_khz()) / 1e3;
            let mean = |result| metric(result, "freq_mean", "mean", &labels);
            assert_eq!(mean(&under_performance), top, "{name}: {} at full speed", domain.name);
            assert!(mean(&under_schedutil) <= top, "{name}: {}", domain.name);
        }
        // Power, not energy: a file that ends after its loops takes longer at lower clocks.
        let power = |result| metric(result, "power", "mean", &[]);
        let (saved, full) = (power(&under_schedutil), power(&under_performance));
        // With load that does not change there is nothing to save, but schedutil's threads cost a little.
        assert!(saved < 1.01 * full, "{name}: {saved} mW under schedutil, {full} mW at full speed");
    }
}

/// The five scenarios of the uclamp discussion run on the board that they were made for, under every kernel.
#[test]
fn the_uclamp_scenarios_run_on_their_board() {
    let Some(folder) = published_folder() else { return };
    for number in 1..=5 {
        let file = folder.join(format!("uclamp-scenarios/juno-scenario{number}.json"));
        let workload = file.display().to_string();
        for (kernel, _) in schedtwin_engine::list_kernels() {
            let name = format!("juno-scenario{number} {kernel}");
            let scenario = scenario("juno-r2", &kernel, &workload, Some(SECOND));
            check_metrics(&name, &scenario, &run(&scenario, 1));
        }
    }
}

/// The built-in forms of these scenarios are the same workloads: the same run to the last event.
#[test]
fn the_built_in_uclamp_scenarios_are_those_that_were_published() {
    let Some(folder) = published_folder() else { return };
    for number in 1..=5 {
        let name = format!("juno-scenario{number}");
        let file = folder.join(format!("uclamp-scenarios/{name}.json")).display().to_string();
        let [built_in, published] = [&name, &file].map(|workload| {
            let scenario = scenario("juno-r2", KERNEL, workload, Some(15 * SECOND));
            run(&scenario, 3).digest
        });
        assert_eq!(built_in, published, "{name}");
    }
}

/// Every file of the folder is either one that runs, or refused with a reason.
#[test]
fn the_other_files_are_refused() {
    let Some(folder) = published_folder() else { return };
    let mut refused = 0;
    for part in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        for path in std::fs::read_dir(&part).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(&folder).unwrap().to_string_lossy().replace('\\', "/");
            if !name.ends_with(".json") || PUBLISHED.contains(&name.as_str()) {
                continue;
            }
            match Scenario::new("pixel6", KERNEL, &path.to_string_lossy(), Some(SECOND)) {
                Ok(_) => panic!("{name} runs now: add it to the list"),
                Err(faults) => {
                    let faults = faults.to_string();
                    assert!(faults.contains(".json:"), "{name}: {faults}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0, "some files wait or are in rt-app's old language");
}
