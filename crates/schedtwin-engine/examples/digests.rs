// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints the digest of each of a fixed list of runs: the same lines on every computer, at every
//! optimisation level.
//!
//! A test sees one build of the twin only, so two builds are compared by their output:
//!
//! ```text
//! cargo run -q -p schedtwin-engine --example digests > dev.txt
//! cargo run -q -p schedtwin-engine --example digests --release > release.txt
//! cmp dev.txt release.txt
//! ```
//!
//! With arguments it prints those runs instead, which is handy to see what a change altered:
//!
//! ```text
//! cargo run -q -p schedtwin-engine --example digests -- MACHINE KERNEL WORKLOAD SECONDS [SEED]
//! ```
//!
//! Each line ends with a number over the result's metrics, bit by bit: floating point appears only
//! there, after everything is decided, and must come out the same too.

use schedtwin_engine::result::RunResult;
use schedtwin_engine::{Machine, RunOptions, Scenario};
use schedtwin_types::fnv::Fnv1a;
use std::process::ExitCode;

/// Machine, kernel, and how many milliseconds of each built-in workload.
const RUNS: [(&str, &str, u64); 15] = [
    ("uniform8", "linux-6.12", 2_000),
    ("pixel6", "linux-6.12", 2_000),
    ("rig8", "linux-6.12", 2_000),
    ("pixel6", "linux-6.12:cpufreq=performance,cpuidle=shallow", 500),
    ("pixel6", "linux-6.12:hz=1000,preempt=none,schedutil.rate_limit_us=500", 500),
    ("rig8", "linux-6.12:energy_aware=false,features.delay_dequeue=false", 500),
    ("uniform8:path_costs.percent=0", "linux-6.12:cpufreq=powersave", 500),
    ("pixel6", "linux-7.3", 2_000),
    ("uniform8", "linux-7.3", 500),
    ("pixel6", "linux-6.18", 500),
    ("uniform8", "linux-6.18", 500),
    ("pixel6", "linux-7.3:scx=simple", 500),
    ("i5-10600k", "linux-7.3:scx=random", 500),
    ("uniform8", "linux-6.12:scx=random", 500),
    ("pixel6", "linux-7.3:scx=random-loses-task", 500),
];

/// Two seeds a run: one could be the same by accident.
const SEEDS: [u64; 2] = [1, 2];

fn print(
    machine: &str,
    kernel: &str,
    workload: &str,
    ms: u64,
    seeds: &[u64],
) -> Result<(), String> {
    let scenario = Scenario::new(machine, kernel, workload, Some(ms * 1_000_000))
        .map_err(|faults| faults.to_string())?;
    for seed in seeds {
        let result =
            scenario.run(*seed, RunOptions::default()).map_err(|error| error.to_string())?;
        println!(
            "{:016x} {:016x} {:>9} events {:>11} ns  {machine} {kernel} {workload} {ms} ms seed {seed}",
            result.digest,
            metrics_digest(&result),
            result.events,
            result.simulated_ns,
        );
    }
    Ok(())
}

/// A digest over the bits of every metric.
fn metrics_digest(result: &RunResult) -> u64 {
    let values = result.metrics.iter().map(|metric| metric.value.map_or(u64::MAX, f64::to_bits));
    Fnv1a::of(values.flat_map(u64::to_le_bytes)).digest()
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [machine, kernel, workload, seconds, seed @ ..] = &arguments[..] {
        let seconds: f64 = seconds.parse().map_err(|error| format!("{seconds}: {error}"))?;
        let seeds: Result<Vec<u64>, String> =
            seed.iter().map(|s| s.parse().map_err(|error| format!("{s}: {error}"))).collect();
        let mut seeds = seeds?;
        if seeds.is_empty() {
            seeds.push(1);
        }
        return print(machine, kernel, workload, (seconds * 1e3) as u64, &seeds);
    }
    if !arguments.is_empty() {
        return Err("arguments are MACHINE KERNEL WORKLOAD SECONDS [SEED...], or none".to_string());
    }
    for (machine, kernel, ms) in RUNS {
        let has_disk = Machine::load(machine).is_ok_and(|machine| !machine.block.is_empty());
        for (workload, _) in schedtwin_engine::list_workloads() {
            if workload == "fio" && !has_disk {
                continue;
            }
            print(machine, kernel, &workload, ms, &SEEDS)?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
