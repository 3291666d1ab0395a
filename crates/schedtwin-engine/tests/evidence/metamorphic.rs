// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes of the input whose effect on the output is known without a model of the scheduler.

use crate::scenarios::{
    KERNEL, Log, MS, SECOND, built_in, logged, metric, published, run, scenario, task, written,
};
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::Twin;
use schedtwin_types::{Fact, FactKind, Ns};

/// The highest frequency, always.
const PERFORMANCE: &str = "linux-6.12:cpufreq=performance";

/// A task that sleeps for ever costs nothing: it is put into a run that is under way, behind the
/// twin's back, so that even its start takes no time, and nothing happens differently.
#[test]
fn a_task_that_never_runs_changes_nothing() {
    let mut scenarios = built_in(KERNEL, 400 * MS);
    scenarios.extend(published("pixel6", KERNEL, 100 * MS));
    // A shell starts processes for as long as it runs.
    scenarios.retain(|(name, _)| !name.contains("shell"));
    for (name, scenario) in scenarios {
        let alone = run(&scenario, 1);
        let mut twin: Twin<FlatBoard> = scenario.twin(1);
        // Until all threads have been made: a thread's number is its place in the list of tasks.
        while twin.now() < 60 * MS && twin.step(&mut ()) {}
        let before = twin.kernel().inside().tasks.len();
        for day in 1..=3 {
            twin.kernel_mut().boot_thread(day * 86_400 * SECOND);
        }
        while twin.step(&mut ()) {}
        let forks = before < alone.tasks.len() + 1;
        assert!(!forks, "{name}: it still starts threads, so the rule says nothing about it");
        let digest = twin.digest();
        assert_eq!(digest, alone.digest, "{name}: three sleepers alter the run");
        assert_eq!(twin.finish().metrics, alone.metrics, "{name}");
    }
}

/// How far in the future a sleep ends does not matter, once it is beyond all else.
#[test]
fn how_long_a_sleeper_sleeps_does_not_matter() {
    for machine in ["uniform8", "pixel6"] {
        let with_delay = |delay_us: u64| {
            let tasks = format!(
                r#""job": {{ "instance": 12, "loop": -1, "run": 800,
                            "timer": {{ "ref": "unique", "period": 5000 }} }},
                   "sleeper": {{ "instance": 3, "delay": {delay_us}, "run": 10 }}"#
            );
            run(&written(machine, KERNEL, &tasks, 500 * MS), 1).digest
        };
        assert_eq!(with_delay(100_000_000), with_delay(2_000_000_000), "{machine}");
    }
}

/// All that repeats by itself repeats after this: ticks (4 ms) and the periods of PELT, which are
/// 1024 units of 1024 ns. 2^20 ns and 4,000,000 ns = 2^8 * 5^6 ns meet after 2^20 * 5^6 ns.
const COMMON_PERIOD: Ns = (1 << 20) * 15_625;

/// A fact as seen from `start`, which is `later` than in the other run.
fn since(start: Ns, later: Ns, fact: &Fact) -> Fact {
    let mut moved = *fact;
    moved.at -= start;
    match &mut moved.kind {
        FactKind::Frequency { requested_at, .. } => {
            *requested_at = requested_at.wrapping_sub(start);
        }
        // A sleep that lasted over the delay is longer by it.
        FactKind::IdleExit { residency_ns, .. } if *residency_ns > later => *residency_ns -= later,
        _ => {}
    }
    moved
}

/// If everything starts later by a common period, everything happens later by it and nothing else
/// changes. The threads sleep before they start, long enough that all averages have decayed.
#[test]
fn a_later_start_only_shifts() {
    let first_delay = 5 * SECOND;
    for machine in ["uniform8", "pixel6", "rig8"] {
        let after = |delay: Ns| {
            let us = delay / 1000;
            let tasks = format!(
                r#""job": {{ "instance": 10, "delay": {us}, "loop": -1, "run": 900,
                            "timer": {{ "ref": "unique", "period": 7000 }} }},
                   "audio": {{ "delay": {us}, "policy": "SCHED_FIFO", "priority": 3, "loop": -1,
                              "run": 200, "timer": {{ "ref": "tick", "period": 10000 }} }},
                   "hog": {{ "instance": 2, "delay": {us}, "loop": -1, "run": 30000, "sleep": 9000 }}"#
            );
            let scenario = written(machine, KERNEL, &tasks, delay + SECOND);
            let mut twin: Twin = scenario.twin(1);
            let mut log = Log::default();
            twin.introduce(&mut log);
            // To the end of the observed time, not of the run.
            while twin.now() < delay + SECOND / 2 && twin.step(&mut log) {}
            // The delays end a moment after `delay`; a whole number of milliseconds serves both.
            let after = log.facts.iter().filter(|f| f.at >= delay);
            after.map(|f| since(delay, delay - first_delay, f)).collect::<Vec<Fact>>()
        };
        let (early, late) = (after(first_delay), after(first_delay + COMMON_PERIOD));
        assert!(early.len() > 5_000, "{machine}: {} facts", early.len());
        let parted = early.iter().zip(&late).position(|(l, r)| l != r);
        let shown = parted.map(|at| (at, early[at], late[at]));
        assert_eq!(shown, None, "{machine}: fact number, early and late");
        assert!(early != after(first_delay + MS), "{machine}: another shift is not unnoticed");
    }
}

/// One task that only computes, on a machine that does nothing else.
#[test]
fn a_task_alone_gets_all_of_a_cpu() {
    let work_ns = 900 * MS;
    let tasks = r#""alone": { "loop": 1, "run": 900000 }"#;
    for (machine, least_percent) in [("uniform8", 99.9), ("uniform8:path_costs.percent=0", 99.999)]
    {
        let (log, result) = logged(&written(machine, PERFORMANCE, tasks, 2 * SECOND), 1);
        let id = log.task("alone-0");
        let alone = task(&result, "alone-0");
        // From its last switch-in to its end, and in all.
        let exit =
            log.facts.iter().find(|f| f.kind == FactKind::Exit { task: id }).expect("it ends");
        let begin = log.switches_to(id).last().expect("it begins");
        let took = exit.at - begin;
        let percent = work_ns as f64 / took as f64 * 100.0;
        assert!(took >= work_ns, "{machine}: {took} ns for {work_ns} ns of work");
        assert!(percent > least_percent, "{machine}: {percent} %");
        assert!(alone.cpu_time_ns >= took, "{machine}: {} {took}", alone.cpu_time_ns);
        assert_eq!(alone.migrations, 0, "{machine}: it has no reason to move");
        // What it took beyond its work is what it was interrupted for.
        let interrupted: Ns = log
            .facts
            .iter()
            .filter(|f| f.cpu == exit.cpu && f.at >= begin && f.at <= exit.at)
            .map(|f| match f.kind {
                FactKind::IrqExit { spent_ns } => Ns::from(spent_ns),
                _ => 0,
            })
            .sum();
        let paths = took - work_ns;
        assert!(
            interrupted <= paths && paths <= interrupted + 120_000,
            "{machine}: {paths} {interrupted}"
        );
    }
}

/// N tasks that only compute, on one CPU: each gets an Nth of the time. EEVDF lets none be ahead of or
/// behind its share by more than a slice; a slice that is over is noticed at the next tick.
#[test]
fn equal_hogs_share_equally() {
    let (slice, tick) = (2_800_000, 4 * MS);
    for count in [2, 3, 5, 8] {
        for seed in 1..=2 {
            let tasks = format!(
                r#""hog": {{ "instance": {count}, "loop": -1, "cpus": [3], "run": 100000 }}"#
            );
            let result = run(&written("uniform8", PERFORMANCE, &tasks, 3 * SECOND), seed);
            let mut times: Vec<Ns> = (0..count)
                .map(|i| task(&result, &format!("hog-{i}")).cpu_time_by_cpu_ns[3])
                .collect();
            times.sort_unstable();
            let spread = times[times.len() - 1] - times[0];
            assert!(
                spread <= 2 * (slice + tick),
                "{count} hogs, seed {seed}: {spread} in {times:?}"
            );
            assert!(times[0] > 2 * SECOND / count, "{count} hogs, seed {seed}: {times:?}");
        }
    }
}

/// Two tasks on one CPU share it by their weights: `sched_prio_to_weight`.
#[test]
fn shares_follow_weights() {
    for (nice, weight) in [(0, 1024.0), (1, 820.0), (5, 335.0), (10, 110.0), (-5, 3121.0)] {
        let tasks = format!(
            r#""plain": {{ "priority": 0, "loop": -1, "cpus": [2], "run": 1000 }},
               "other": {{ "priority": {nice}, "loop": -1, "cpus": [2], "run": 1000 }}"#
        );
        let result = run(&written("uniform8", PERFORMANCE, &tasks, 20 * SECOND), 1);
        let time = |name: &str| task(&result, name).cpu_time_by_cpu_ns[2] as f64;
        let found = time("plain-") / time("other-");
        let expected = 1024.0 / weight;
        let off = found / expected - 1.0;
        assert!(off.abs() < 0.02, "nice {nice}: {found} instead of {expected}");
    }
}

/// Work is neither lost nor made: with paths that cost nothing, the time on each CPU times its speed is
/// the work that was asked for, however often tasks move.
#[test]
fn work_is_conserved_over_cpus() {
    let (threads, loops, run_us) = (11, 40, 1700);
    let tasks = format!(
        r#""job": {{ "instance": {threads}, "loop": {loops}, "run": {run_us}, "sleep": 500 }}"#
    );
    for machine in ["uniform8", "pixel6"] {
        let free = format!("{machine}:path_costs.percent=0");
        let scenario = written(&free, PERFORMANCE, &tasks, 20 * SECOND);
        let result = run(&scenario, 1);
        let capacity = |cpu: usize| u128::from(scenario.machine().cpus[cpu].capacity);
        let loop_ns = scenario.machine().ns_per_loop;
        let work = u128::from(run_us * loop_ns * threads * loops);
        let mut done = 0;
        let mut migrations = 0;
        for job in result.tasks.iter().filter(|t| t.name.starts_with("job-")) {
            assert_eq!(job.jobs, loops, "{machine}: {} is through", job.name);
            migrations += job.migrations;
            let by_cpu = job.cpu_time_by_cpu_ns.iter().enumerate();
            // Capacity 1024 does a nanosecond of work a nanosecond.
            done += by_cpu.map(|(cpu, ns)| capacity(cpu) * u128::from(*ns)).sum::<u128>();
        }
        done /= 1024;
        // Each operation ends on a whole nanosecond, and system calls take one; rt-app's own events
        // are a hundred nanoseconds of work each.
        let slack = u128::from(threads * loops * 2 * 300);
        assert!(done >= work && done - work < slack, "{machine}: {done} done of {work}");
        assert!(migrations > 0, "{machine}: the rule is about tasks that move");
    }
}

/// The same over frequencies: what the silicon executed, at the frequencies that it had, is the work.
#[test]
fn work_is_conserved_over_frequencies() {
    let (threads, loops, run_us) = (6, 100, 900);
    let tasks = format!(
        r#""job": {{ "instance": {threads}, "loop": {loops}, "run": {run_us}, "sleep": 3000 }}"#
    );
    let scenario = written("uniform8:path_costs.percent=0", KERNEL, &tasks, 10 * SECOND);
    let result = run(&scenario, 1);
    assert!(metric(&result, "freq_transitions", "sum", &[]) > 4.0, "the rule is about changes");
    let span_ns = result.simulated_ns as f64 * 8.0;
    let executed = metric(&result, "utilization", "mean", &[]) / 100.0 * span_ns;
    let work = (run_us * 1000 * threads * loops) as f64;
    let off = executed / work - 1.0;
    assert!((0.0..0.002).contains(&off), "{executed} executed of {work}");
}

/// Twice the clock, half the time: the same task at fixed frequencies.
#[test]
fn time_goes_with_the_clock() {
    let tasks = r#""alone": { "loop": 1, "cpus": [4], "run": 300000 }"#;
    let took = |kernel: &str| {
        let scenario = written("uniform8:path_costs.percent=0", kernel, tasks, 5 * SECOND);
        task(&run(&scenario, 1), "alone-0").cpu_time_ns as f64
    };
    // 2 GHz and 500 MHz.
    let ratio = took("linux-6.12:cpufreq=powersave") / took(PERFORMANCE);
    assert!((ratio - 4.0).abs() < 0.001, "{ratio}");
}

/// More work never ends sooner on one CPU, and a faster core is not slower.
#[test]
fn faster_cores_end_sooner() {
    let took = |cpu: usize, run_us: u64| {
        let tasks = format!(r#""alone": {{ "loop": 1, "cpus": [{cpu}], "run": {run_us} }}"#);
        let result = run(&written("pixel6", PERFORMANCE, &tasks, 30 * SECOND), 1);
        task(&result, "alone-0").cpu_time_by_cpu_ns[cpu]
    };
    let (little, mid, big) = (took(1, 200_000), took(4, 200_000), took(6, 200_000));
    assert!(big < mid && mid < little, "{big} {mid} {little}");
    assert!(took(4, 210_000) > mid);
    let machine = scenario("pixel6", PERFORMANCE, "w1", None);
    let capacity = |cpu: usize| f64::from(machine.machine().cpus[cpu].capacity);
    let ratio = little as f64 / big as f64 / (capacity(6) / capacity(1));
    assert!((ratio - 1.0).abs() < 0.01, "time goes with capacity: {ratio}");
}
