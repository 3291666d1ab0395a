// SPDX-License-Identifier: GPL-2.0-or-later
//! Built-in machines and workloads under the built-in schedulers.

use super::{follow, follow_from};
use crate::scenario::Texts;
use crate::tape::Tape;
use schedtwin_engine::Scenario;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_engine::policy::Fault;
use schedtwin_engine::policy::steps::Beginning;

#[test]
fn both_classes_agree_on_built_in_machines() {
    for (machine, workload) in
        [("uniform8", "periodic"), ("pixel6", "ui-phone"), ("i5-10600k", "ui-phone")]
    {
        for release in ["linux-7.3", "linux-6.12"] {
            for scheduler in ["simple", "fifo", "random"] {
                let spec = format!("{release}:scx={scheduler}");
                let kernel = KernelFile::load(&spec).unwrap();
                let run = Scenario::with_kernel(machine, kernel, workload, Some(500_000_000));
                let steps = follow(&run.unwrap(), 3, u64::MAX).unwrap();
                assert!(steps > 500, "{spec} {machine}: only {steps} steps");
            }
        }
    }
}

/// A scheduler that comes while tasks run, and goes: in bypass tasks run in turn, and at its end the fair class has them all.
#[test]
fn both_classes_agree_on_bypass() {
    for release in ["linux-7.3", "linux-6.12"] {
        for scheduler in ["simple", "fifo", "random", "random-partial"] {
            let spec = format!("{release}:scx={scheduler},scx.load_ms=100,scx.unload_ms=300");
            let kernel = KernelFile::load(&spec).unwrap();
            let run = Scenario::with_kernel(
                "uniform8",
                kernel,
                "messaging -g 1 -l 1000000",
                Some(500_000_000),
            );
            let steps = follow(&run.unwrap(), 3, u64::MAX).unwrap();
            println!("{spec}: {steps} steps");
            assert!(steps > 300, "{spec}: only {steps} steps");
        }
    }
}

/// A class that differs in one thing is noticed.
#[test]
fn another_class_is_noticed() {
    let kernel = KernelFile::load("linux-7.3:scx=random").unwrap();
    let run = Scenario::with_kernel("i5-10600k", kernel, "ui-phone", Some(500_000_000)).unwrap();
    let parts = |change: fn(&mut Beginning)| {
        schedtwin_lab::crash::caught(|| follow_from(&run, 3, u64::MAX, change)).is_err()
    };
    assert!(!parts(|_| {}));
    assert!(parts(|at| at.balances = true), "6.12's forms");
    assert!(parts(|at| at.flags = 0), "SCX_OPS_ENQ_LAST");
    assert!(parts(|at| at.dispatch_max_batch = 1), "the dispatch buffer");
    assert!(parts(|at| at.dsqs.clear()), "no DSQ is known");
}

/// Random machines and workloads, each under one of the schedulers and with each of its mistakes in turn.
#[test]
fn both_classes_agree_on_random_scenarios() {
    let schedulers: Vec<&str> = ["simple", "fifo", "random", "random", "random-partial"]
        .into_iter()
        .chain(Fault::ALL.iter().map(|(name, ..)| *name))
        .collect();
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(33);
    let (mut followed, mut steps) = (0, 0);
    for seed in 1..=seeds {
        let mut texts = Texts::generate(&mut Tape::of_seed(seed));
        let release = if seed % 3 == 0 { "linux-6.12" } else { "linux-7.3" };
        let scheduler = schedulers[seed as usize % schedulers.len()];
        texts.kernel = format!("{release}:scx={scheduler},fair_group_sched=true,rt_runtime_us=-1");
        // Half of them come and go while tasks run.
        if seed % 2 == 0 {
            let (load, unload) = (1 + seed % 40, 45 + seed % 50);
            texts.kernel.push_str(&format!(",scx.load_ms={load},scx.unload_ms={unload}"));
        }
        texts.duration_ms = texts.duration_ms.min(200);
        let folder = tempfile::tempdir().unwrap();
        let Ok(scenario) = texts.load(folder.path()) else { continue };
        let name = format!("seed {seed} {}", texts.kernel);
        let done = schedtwin_lab::crash::caught(|| follow(&scenario, texts.seed, 8_000));
        let done = done.unwrap_or_else(|panic| panic!("{name}: {panic}"));
        (followed, steps) = (followed + 1, steps + done.expect("a scheduler is loaded"));
    }
    println!("{followed} scenarios, {steps} steps");
    assert!(followed >= 20 && steps > 50_000, "{followed} scenarios, {steps} steps");
}
