// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs schedulers of sched_ext with every built-in workload on four machines, and prints a line for each scheduler and
//! machine: the runs without an error, the longest that any task waited, and the time that it took.
//!
//! ```text
//! cargo run --release -p schedtwin-engine --example scx_matrix -- SECONDS KERNEL:scx=PATH...
//! ```
//!
//! A wait is from a wakeup until the task runs, or in a dispatch queue. A scheduler promises that none is longer than the
//! `timeout_ms` of its watchdog, which otherwise ends it with an error. Exit code 1: there was one.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::result::{RunResult, SCX_ENDED};
use schedtwin_engine::{RunOptions, Scenario};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A phone, a laptop, a server and a board.
const MACHINES: [&str; 4] = ["pixel6", "laptop-8c16t", "epyc-milan-2x64", "juno-r2"];

/// What a run had to tell.
struct Outcome {
    /// Its line of the table, and the workload.
    line: usize,
    workload: String,
    error: Option<String>,
    longest_us: f64,
    events: u64,
    took: Duration,
}

/// The largest value of a metric's `max`, whatever its labels.
fn most(result: &RunResult, name: &str) -> f64 {
    let of_name = result.metrics.iter().filter(|m| m.name == name && m.stat == "max");
    of_name.filter_map(|m| m.value).fold(0.0, f64::max)
}

fn run(kernel: &KernelFile, machine: &str, workload: &str, ns: u64) -> Result<(f64, u64), String> {
    let scenario = Scenario::with_kernel(machine, kernel.clone(), workload, Some(ns));
    let scenario = scenario.map_err(|faults| faults.to_string())?;
    let result = scenario.run(1, RunOptions::default()).map_err(|error| error.to_string())?;
    if let Some(notice) = result.notices.iter().find(|notice| notice.starts_with(SCX_ENDED)) {
        return Err(notice.clone());
    }
    let longest = most(&result, "waking_latency").max(most(&result, "scx_dsq_wait"));
    Ok((longest, result.events))
}

fn all() -> Result<bool, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((seconds, specs)) = arguments.split_first().filter(|(_, specs)| !specs.is_empty())
    else {
        return Err("arguments are SECONDS KERNEL:scx=PATH...".to_string());
    };
    let ns = seconds.parse::<f64>().map_err(|error| format!("{seconds}: {error}"))? * 1e9;
    let load = |spec: &String| KernelFile::load(spec).map_err(|faults| faults.to_string());
    let kernels: Vec<KernelFile> = specs.iter().map(load).collect::<Result<_, _>>()?;
    let workloads: Vec<String> =
        schedtwin_engine::list_workloads().into_iter().map(|(name, _)| name).collect();
    let jobs: Vec<(usize, usize, usize)> = (0..kernels.len())
        .flat_map(|k| (0..MACHINES.len()).map(move |m| (k, m)))
        .flat_map(|(k, m)| (0..workloads.len()).map(move |w| (k, m, w)))
        .collect();
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((k, m, w)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let result = run(&kernels[*k], MACHINES[*m], &workloads[*w], ns as u64);
                    let took = begun.elapsed();
                    let (longest_us, events) = *result.as_ref().unwrap_or(&(0.0, 0));
                    let outcome = Outcome {
                        line: k * MACHINES.len() + m,
                        workload: workloads[*w].clone(),
                        error: result.err(),
                        longest_us,
                        events,
                        took,
                    };
                    outcomes.lock().expect("no thread has panicked").push(outcome);
                }
            });
        }
    });
    Ok(print(specs, &workloads, seconds, &outcomes.into_inner().expect("as above")))
}

/// Prints the table; whether no run had an error.
fn print(specs: &[String], workloads: &[String], seconds: &str, outcomes: &[Outcome]) -> bool {
    println!("{} workloads, {seconds} s each at most, seed 1.\n", workloads.len());
    println!(
        "scheduler                    machine           ok  longest wait          in      events   time"
    );
    let mut good = true;
    for (at, spec) in specs.iter().enumerate() {
        for (m, machine) in MACHINES.iter().enumerate() {
            let of: Vec<&Outcome> =
                outcomes.iter().filter(|o| o.line == at * MACHINES.len() + m).collect();
            let ok = of.iter().filter(|o| o.error.is_none()).count();
            let worst = of.iter().max_by(|a, b| a.longest_us.total_cmp(&b.longest_us));
            let worst = worst.expect("there are workloads");
            let events: u64 = of.iter().map(|o| o.events).sum();
            let took: Duration = of.iter().map(|o| o.took).sum();
            println!(
                "{:28} {machine:16} {ok:>3}  {:>9.1} ms  {:>15} {events:>11} {:>5.1} s",
                short(spec),
                worst.longest_us / 1e3,
                worst.workload,
                took.as_secs_f64(),
            );
            let failed: Vec<&str> =
                of.iter().filter(|o| o.error.is_some()).map(|o| &*o.workload).collect();
            if let Some(error) = of.iter().find_map(|o| o.error.as_ref()) {
                println!("    {}: {error}", failed.join(", "));
                good = false;
            }
        }
    }
    good
}

/// `linux-7.3 scx_simple`.
fn short(spec: &str) -> String {
    let (kernel, path) = spec.split_once(":scx=").unwrap_or((spec, ""));
    let path = path.split(',').next().unwrap_or(path);
    let path = path.strip_suffix("/src/bpf/main.bpf.c").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".bpf.c");
    format!("{kernel} {name}")
}

fn main() -> ExitCode {
    match all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
