// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext: in the place of the fair class, verified after each event.

use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::*;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::Ns;

const SECOND: Ns = 1_000_000_000;

fn with(kernel: &str, name: &str, make: impl Fn() -> Simple + Send + Sync + 'static) -> KernelFile {
    KernelFile::load(kernel).unwrap().with_ext_scheduler(name, make).unwrap()
}

fn run(machine: &str, workload: &str, kernel: KernelFile) -> RunResult {
    let scenario = Scenario::with_kernel(machine, kernel, workload, Some(SECOND)).unwrap();
    scenario.run(3, RunOptions { verify: true, ..RunOptions::default() }).unwrap()
}

#[test]
fn simple_runs_all_kinds_of_work() {
    for kernel in ["linux-7.3", "linux-6.12"] {
        for fifo in [false, true] {
            for (machine, workload) in [
                ("pixel6", "ui-phone"),
                ("uniform8", "periodic"),
                ("epyc-milan-2x64", "schbench"),
                ("laptop-8c16t", "periodic"),
            ] {
                let result = run(machine, workload, with(kernel, "simple", move || Simple::new(fifo)));
                println!("{kernel} {machine} {workload} {fifo}: {} events {:x} {:?}", result.events, result.digest, result.notices);
                assert!(result.events > 100);
            }
        }
    }
}
