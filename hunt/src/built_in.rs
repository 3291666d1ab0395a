// SPDX-License-Identifier: GPL-2.0-or-later
//! Every built-in machine with every built-in workload and kernel, many seeds each: what a user tries first.

use crate::check;
use schedtwin_engine::Scenario;
use schedtwin_lab::crash::caught;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One second: long enough for most of what a workload does.
const DURATION_NS: u64 = 1_000_000_000;
/// Of threads that talk, which do as much in milliseconds.
const TALKING_NS: u64 = 20_000_000;
/// The workloads whose threads do.
const TALKING: [&str; 4] = ["messaging", "hackbench", "netperf", "tbench"];

/// The results of all of them.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Scenarios: machine, kernel and workload.
    pub scenarios: u64,
    /// Runs: scenarios times seeds.
    pub runs: u64,
    /// Events of all runs.
    pub events: u64,
    /// Scenarios that the readers do not take, with the reason.
    pub refused: Vec<String>,
    /// The faults found, with a command that repeats each.
    pub findings: Vec<String>,
}

/// Machine, kernel and workload of each scenario.
pub fn scenarios() -> Vec<[String; 3]> {
    let mut all = Vec::new();
    for (machine, _) in schedtwin_engine::list_machines() {
        for (kernel, _) in schedtwin_engine::list_kernels() {
            for (workload, _) in schedtwin_engine::list_workloads() {
                all.push([machine.clone(), kernel.clone(), workload]);
            }
        }
    }
    all
}

/// Runs all of them with seeds from 1 to `seeds`, on that many threads. A scenario's first finding ends that scenario. `ended` is
/// called at the end of each.
pub fn sweep(seeds: u64, threads: usize, ended: &(impl Fn() + Sync)) -> Sweep {
    let all = scenarios();
    let (sweep, next) = (Mutex::new(Sweep::default()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(names) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(names, seeds, &sweep);
                    ended();
                }
            });
        }
    });
    sweep.into_inner().expect("nobody panics while adding")
}

fn one([machine, kernel, workload]: &[String; 3], seeds: u64, sweep: &Mutex<Sweep>) {
    let names = format!("-m {machine} -k {kernel} -w {workload}");
    let adding = || sweep.lock().expect("nobody panics while adding");
    let duration = if TALKING.contains(&workload.as_str()) { TALKING_NS } else { DURATION_NS };
    let scenario = match Scenario::new(machine, kernel, workload, Some(duration)) {
        Ok(scenario) => scenario,
        Err(faults) => return adding().refused.push(format!("{names}: {}", faults.0[0].message)),
    };
    adding().scenarios += 1;
    for seed in 1..=seeds {
        match caught(|| check::once(&scenario, seed)) {
            Ok(events) => {
                let mut sweep = adding();
                sweep.runs += 1;
                sweep.events += events;
            }
            Err(panic) => {
                let again = format!("schedtwin run {names} --seed {seed} --duration {duration}ns");
                return adding().findings.push(format!("{panic}\n  again: {again}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_loads() {
        let sweep = sweep(0, 2, &|| {});
        // A workload that names CPU 4 is not for two CPUs, one that reads a disk not for a machine without one.
        let (disks, refused): (Vec<_>, Vec<_>) =
            sweep.refused.iter().partition(|why| why.contains("the machine has no block device"));
        let (not_for_it, refused): (Vec<&String>, Vec<_>) =
            refused.into_iter().partition(|why| why.contains("the machine has CPUs 0 to 1"));
        assert_eq!(refused, Vec::<&String>::new());
        let [machines, kernels, workloads] = [
            schedtwin_engine::list_machines(),
            schedtwin_engine::list_kernels(),
            schedtwin_engine::list_workloads(),
        ]
        .map(|list| list.len() as u64);
        let all = machines * kernels * workloads;
        assert_eq!(sweep.scenarios + (not_for_it.len() + disks.len()) as u64, all);
        assert!(disks.iter().all(|why| why.contains("-w fio")), "{disks:?}");
        // Four workloads do.
        assert!(not_for_it.len() as u64 <= 4 * kernels, "{}", not_for_it.len());
    }
}
