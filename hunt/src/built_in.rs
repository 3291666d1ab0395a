// SPDX-License-Identifier: GPL-2.0-or-later
//! Every built-in machine with every built-in workload and kernel, without patches and with each: what a user tries first.
//!
//! They are numbered. A pass goes through all machines, kernels and workloads once; pass 0 is without patches, the next passes
//! have one patch each, and then it begins again. A pass has a seed of its own, so no number runs the same twice.

use crate::check::{self, Outcome};
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_lab::crash::caught;

/// One second: long enough for most of what a workload does.
const DURATION_NS: u64 = 1_000_000_000;
/// Of threads that talk, which do as much in milliseconds.
const TALKING_NS: u64 = 20_000_000;
/// The workloads whose threads do.
const TALKING: [&str; 4] = ["messaging", "hackbench", "netperf", "tbench"];
/// A prime number, longer than what is built in: a part of a pass has something of everything.
const STRIDE: u64 = 1_000_003;

/// The names of all that is built in.
#[derive(Debug)]
pub struct BuiltIn {
    machines: Vec<String>,
    kernels: Vec<String>,
    workloads: Vec<String>,
    patches: Vec<String>,
}

/// A run of what is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of a built-in machine.
    pub machine: String,
    /// Of a built-in kernel, perhaps with a patch.
    pub kernel: String,
    /// Of a built-in workload.
    pub workload: String,
    /// The seed of the run.
    pub seed: u64,
    /// How long to simulate.
    pub duration_ns: u64,
}

fn first<T>(list: Vec<(String, T)>) -> Vec<String> {
    list.into_iter().map(|(name, _)| name).collect()
}

impl BuiltIn {
    /// Lists them.
    pub fn list() -> BuiltIn {
        BuiltIn {
            machines: first(schedtwin_engine::list_machines()),
            kernels: first(schedtwin_engine::list_kernels()),
            workloads: first(schedtwin_engine::list_workloads()),
            patches: first(schedtwin_engine::list_patches()),
        }
    }

    /// The runs of a pass.
    pub fn pass(&self) -> u64 {
        [&self.machines, &self.kernels, &self.workloads].map(|l| l.len() as u64).iter().product()
    }

    /// The run of a number; `None`: its kernel does not take the pass's patch.
    pub fn run(&self, number: u64) -> Option<Run> {
        let (pass, at) = (number / self.pass(), number % self.pass());
        let at = (at * STRIDE % self.pass()) as usize;
        let (at, machine) = (at / self.machines.len(), at % self.machines.len());
        let (workload, kernel) = (at / self.kernels.len(), at % self.kernels.len());
        let workload = self.workloads[workload].clone();
        let mut kernel = self.kernels[kernel].clone();
        let patch = pass as usize % (self.patches.len() + 1);
        if patch > 0 {
            kernel = format!("{kernel}+{}", self.patches[patch - 1]);
            KernelFile::load(&kernel).ok()?;
        }
        let talks = TALKING.contains(&workload.as_str());
        let duration_ns = if talks { TALKING_NS } else { DURATION_NS };
        let machine = self.machines[machine].clone();
        Some(Run { machine, kernel, workload, seed: pass + 1, duration_ns })
    }
}

impl Run {
    /// The command that runs it.
    pub fn command(&self) -> String {
        let Run { machine, kernel, workload, seed, duration_ns } = self;
        format!(
            "schedtwin run -m {machine} -k {kernel} -w {workload} --seed {seed} --duration {duration_ns}ns"
        )
    }

    /// Runs it, watched.
    pub fn check(&self) -> Outcome {
        let duration = Some(self.duration_ns);
        match Scenario::new(&self.machine, &self.kernel, &self.workload, duration) {
            Err(faults) => Outcome::Refused(faults.0[0].message.clone()),
            Ok(scenario) => match caught(|| check::once(&scenario, self.seed)) {
                Ok(events) => Outcome::Ran(Vec::new(), events),
                Err(panic) => Outcome::Finding(panic),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_pass_has_each_once_and_every_name_loads() {
        let built_in = BuiltIn::list();
        let mut seen = BTreeSet::new();
        let (mut small, mut no_disk) = (0, 0);
        for number in 0..built_in.pass() {
            let run = built_in.run(number).expect("it has no patch");
            let command = run.command();
            assert!(seen.insert(command.clone()), "{command}");
            let duration = Some(run.duration_ns);
            let Err(faults) = Scenario::new(&run.machine, &run.kernel, &run.workload, duration)
            else {
                continue;
            };
            // A workload that names CPU 4 or 6 is not for two, four or six CPUs, one that reads a disk not for a machine
            // without one.
            let why = &faults.0[0].message;
            let too_few = |last| why.contains(&format!("the machine has CPUs 0 to {last}"));
            if [1, 3, 5].into_iter().any(too_few) {
                small += 1;
            } else {
                assert!(why.contains("the machine has no block device"), "{command}: {why}");
                assert!(run.workload.starts_with("fio"), "{command}");
                no_disk += 1;
            }
        }
        // Four workloads do, on two machines, and a fifth on these and two more.
        assert!(small <= (2 * 4 + 4) * built_in.kernels.len(), "{small}");
        assert!(no_disk < seen.len() / 10, "{no_disk}");
    }

    #[test]
    fn a_pass_has_one_patch_and_a_seed_of_its_own() {
        let built_in = BuiltIn::list();
        for (pass, patch) in (1..).zip(&built_in.patches) {
            let of_pass = |number| built_in.run(pass * built_in.pass() + number);
            let run = (0..built_in.pass()).find_map(of_pass).expect("a kernel takes it");
            assert!(run.kernel.ends_with(&format!("+{patch}")), "{run:?}");
            assert_eq!(run.seed, pass + 1);
        }
        let around = built_in.run(built_in.pass() * (built_in.patches.len() as u64 + 1));
        let around = around.expect("it has no patch");
        assert!(!around.kernel.contains('+') && around.seed > 1, "{around:?}");
    }
}
