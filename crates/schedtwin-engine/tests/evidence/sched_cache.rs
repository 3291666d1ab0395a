// SPDX-License-Identifier: GPL-2.0-or-later
//! Cache-aware scheduling on a desktop of two caches, each of eight cores of two hardware threads.

use crate::scenarios::{SECOND, run, scenario, written};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_types::Ns;

const MACHINE: &str = "ryzen-5950x";
const GATHERED: &str = "linux-7.3:cpufreq=performance";
const SPREAD: &str = "linux-7.3:cpufreq=performance,sched_cache=absent";

/// Threads of one process, each of which runs for so many of every 10 ms.
fn process(kernel: &str, threads: usize, run_ms: u64) -> Scenario {
    let run = run_ms * 1_000_000 / 12;
    let task = format!(
        r#""worker": {{ "instance": {threads}, "loop": -1, "run": {run},
            "timer": {{ "ref": "unique", "period": 10000 }} }}"#
    );
    written(MACHINE, kernel, &task, 2 * SECOND)
}

/// The part of all running time that the cache has which has most of it.
fn in_one_cache(result: &RunResult) -> f64 {
    let mut caches = [0, 0];
    for task in &result.tasks {
        for (cpu, ns) in task.cpu_time_by_cpu_ns.iter().enumerate() {
            caches[cpu % 16 / 8] += ns;
        }
    }
    let [first, second]: [Ns; 2] = caches;
    first.max(second) as f64 / (first + second) as f64
}

/// On average of three seeds.
fn share(kernel: &str, threads: usize, run_ms: u64) -> f64 {
    let shares = (1..=3).map(|seed| in_one_cache(&run(&process(kernel, threads, run_ms), seed)));
    shares.sum::<f64>() / 3.0
}

/// Up to six threads run at once where a cache has 16 CPUs: they gather. Without the rule, each cache has half of them.
#[test]
fn few_threads_gather_in_one_cache() {
    for (threads, run_ms) in [(4, 4), (4, 8), (6, 8)] {
        let [gathered, spread] = [GATHERED, SPREAD].map(|kernel| share(kernel, threads, run_ms));
        assert!(gathered > 0.9 && spread < 0.6, "{threads} {run_ms}: {gathered} {spread}");
    }
}

/// Twelve run at once: they stay spread.
#[test]
fn many_threads_do_not() {
    for kernel in [GATHERED, SPREAD] {
        let found = share(kernel, 12, 9);
        assert!(found < 0.6, "{kernel}: {found}");
    }
}

/// Processes of one thread each are placed and balanced as without the rule.
#[test]
fn single_threads_are_left_alone() {
    let digest = |kernel: &str| {
        run(&scenario(MACHINE, kernel, "messaging -g 1 -l 50", Some(SECOND / 2)), 1).digest
    };
    assert_eq!(digest(GATHERED), digest(SPREAD));
}

/// The reference twin, which recomputes all counts after each event, does the same.
#[test]
fn the_reference_twin_agrees() {
    let scenario = process(GATHERED, 4, 8);
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    assert_eq!(eager.finish().digest, run(&scenario, 1).digest);
}
