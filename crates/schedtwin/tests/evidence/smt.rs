//! Hardware threads of one core: power, speed and rest that they share.

use crate::scenarios::{SECOND, metric, run, task, written};
use schedtwin::result::RunResult;
use schedtwin::twin::Twin;
use schedtwin_types::Ns;

const KERNEL: &str = "linux-6.12:cpufreq=performance";

/// Two tasks of so many milliseconds of work (a loop of 1 us is 12 ns of the desktop's), on these CPUs, within a second.
fn pair(cpus: [u16; 2], work_ms: [u64; 2]) -> RunResult {
    let line = |name: &str, cpu: u16, ms: u64| {
        let run = ms * 1_000_000 / 12;
        format!(r#""{name}": {{ "loop": 1, "cpus": [{cpu}], "run": {run} }}"#)
    };
    let tasks = [line("one", cpus[0], work_ms[0]), line("two", cpus[1], work_ms[1])].join(",");
    let scenario = written("i5-10600k", KERNEL, &tasks, SECOND);
    let result = run(&scenario, 1);
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    assert_eq!(eager.finish().digest, result.digest, "the reference twin agrees");
    result
}

/// How long the first of the two ran, ms.
fn busy_ms(result: &RunResult) -> f64 {
    let ns: Ns = task(result, "one").cpu_time_by_cpu_ns.iter().sum();
    ns as f64 / 1e6
}

/// Package, and cores as by the file: 2 + 13.768 W (1 + 0.15) in one core, (1 + 1) in two.
#[test]
fn both_threads_of_a_core_draw_little_more_than_one() {
    for (cpus, expected) in [([0, 0], 15.77), ([0, 1], 29.54), ([0, 6], 17.83)] {
        let result = pair(cpus, [5_000; 2]);
        let watts = metric(&result, "power", "mean", &[("package", "package")]) / 1000.0;
        assert!((watts - expected).abs() < 0.3, "{cpus:?}: {watts} W instead of {expected} W");
    }
}

/// 65 ms of work take 100 ms beside a busy thread; what the other has left is done alone.
#[test]
fn threads_of_a_core_slow_each_other_while_both_work() {
    for (cpus, other_ms, expected) in
        [([0, 1], 200, 200.0), ([0, 6], 200, 200.0 / 0.65), ([0, 6], 65, 235.0)]
    {
        let found = busy_ms(&pair(cpus, [200, other_ms]));
        assert!((found / expected - 1.0).abs() < 0.01, "{cpus:?}: {found} ms, not {expected} ms");
    }
}

/// Who sleeps beside a busy thread rests in C1, whatever it has asked for.
#[test]
fn a_busy_thread_keeps_its_core_awake() {
    let result = pair([0, 0], [5_000; 2]);
    let deep = |cpu: u16| {
        let found = result.cpus.iter().find(|c| c.cpu == cpu).expect("it exists");
        found.idle_ns[2] + found.idle_ns[3]
    };
    let (beside, far) = (deep(6), deep(5));
    assert!(beside < 20_000_000, "{beside}");
    assert!(far > 900_000_000, "{far}");
}
