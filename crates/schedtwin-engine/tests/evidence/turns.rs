// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that execute in turns, as those of an emulator do.

use crate::scenarios::{SECOND, run, task, written};
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;

const KERNEL: &str = "linux-6.12:cpufreq=performance";
const BOARD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/board/messages/sym8.toml:");

/// Two tasks of 100 ms of work each, one on CPU 1 and the other on this CPU.
fn pair(settings: &str, second_cpu: u16) -> RunResult {
    let line = |name: &str, cpu: u16| {
        format!(r#""{name}": {{ "loop": 1, "cpus": [{cpu}], "run": 100000 }}"#)
    };
    let tasks = [line("one", 1), line("two", second_cpu)].join(",");
    let scenario = written(&format!("{BOARD}{settings}"), KERNEL, &tasks, SECOND);
    let result = run(&scenario, 1);
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    assert_eq!(eager.finish().digest, result.digest, "the reference twin agrees");
    result
}

/// How long each of the two had a CPU by the kernel's account, ms.
fn busy_ms(result: &RunResult) -> [f64; 2] {
    ["one", "two"].map(|name| task(result, name).cpu_time_ns as f64 / 1e6)
}

/// Two CPUs take 200 ms for 100 ms each, for each of them executes half of the time; work by the clock goes on in both.
#[test]
fn cpus_share_the_time_of_one() {
    for (settings, expected) in [
        ("execution=parallel", 100.0),
        ("execution=turns", 100.0),
        ("execution=turns,turns.work_by_clock=false", 200.0),
    ] {
        for found in busy_ms(&pair(settings, 2)) {
            let off = (found / expected - 1.0).abs();
            assert!(off < 0.02, "{settings}: {found} ms, not {expected} ms");
        }
    }
}

/// Two tasks of one CPU share it as they do without turns: nobody else has anything to execute.
#[test]
fn a_cpu_alone_keeps_its_turn() {
    let sum = |settings| busy_ms(&pair(settings, 1)).iter().sum::<f64>();
    let (parallel, turns) =
        (sum("execution=parallel"), sum("execution=turns,turns.work_by_clock=false"));
    assert!((turns / parallel - 1.0).abs() < 0.01, "{turns} ms, without turns {parallel} ms");
}
