// SPDX-License-Identifier: GPL-2.0-or-later
//! What threads do, told by a kernel with as many CPUs as threads: order, times, jobs, and that
//! nothing is lost, counted twice, or stands still.

mod executor;

use executor::{End, Executor, host, story, workload};
use schedtwin_types::{
    CpuId, CpuMask, Mark, Ns, Op, Outcome, Policy, SchedAttr, Syscall, ThreadId,
};
use schedtwin_workload::{Host, MAX_THREADS, Workload};

const MS: Ns = 1_000_000;
/// As the test machine's busy loop, so that "run" is exact microseconds.
const GLOBAL: &str = r#""global": { "calibration": 1000, "duration": -1 }"#;

fn check(tasks: &str, end: Ns, expected: &[&str]) {
    let found = story(&format!("{{ {GLOBAL}, \"tasks\": {{ {tasks} }} }}"), end);
    assert_eq!(found, expected, "{tasks}");
}

#[test]
fn run_and_sleep_repeat() {
    check(
        r#" "a": { "loop": 2, "run": 20000, "sleep": 80000 } "#,
        1000 * MS,
        &[
            "     0 a-0 run 20000",
            " 20000 a-0 done, released 0",
            " 20000 a-0 sleep 80000",
            "100000 a-0 run 20000",
            "120000 a-0 done, released 100000",
            "120000 a-0 sleep 80000",
            "200000 a-0 exit",
        ],
    );
}

/// The two pictures of timers in rt-app's tutorial: the third run is too long for its period.
#[test]
fn a_relative_timer_drops_lost_time_and_an_absolute_one_catches_up() {
    let phases = |mode: &str| {
        let timer = format!(r#""timer": {{ "ref": "unique", "period": 20000, "mode": "{mode}" }}"#);
        format!(
            r#" "r": {{ "loop": 1, "phases": {{
                "p": {{ "loop": 2, "run": 10000, {timer} }},
                "slow": {{ "run": 30000, {timer} }},
                "q": {{ "loop": 2, "run": 10000, {timer} }} }} }} "#
        )
    };
    check(
        &phases("relative"),
        1000 * MS,
        &[
            "     0 r-0 run 10000",
            " 10000 r-0 done, released 0",
            " 10000 r-0 until 20000",
            " 20000 r-0 run 10000",
            " 30000 r-0 done, released 20000",
            " 30000 r-0 until 40000",
            " 40000 r-0 run 30000",
            " 70000 r-0 done, released 40000",
            " 70000 r-0 run 10000",
            " 80000 r-0 done, released 70000",
            " 80000 r-0 until 90000",
            " 90000 r-0 run 10000",
            "100000 r-0 done, released 90000",
            "100000 r-0 until 110000",
            "110000 r-0 exit",
        ],
    );
    check(
        &phases("absolute"),
        1000 * MS,
        &[
            "     0 r-0 run 10000",
            " 10000 r-0 done, released 0",
            " 10000 r-0 until 20000",
            " 20000 r-0 run 10000",
            " 30000 r-0 done, released 20000",
            " 30000 r-0 until 40000",
            " 40000 r-0 run 30000",
            " 70000 r-0 done, released 40000",
            " 70000 r-0 run 10000",
            " 80000 r-0 done, released 60000",
            " 80000 r-0 run 10000",
            " 90000 r-0 done, released 80000",
            " 90000 r-0 until 100000",
            "100000 r-0 exit",
        ],
    );
}

/// Two threads that drive each other; the second begins asleep.
#[test]
fn suspend_and_resume_alternate() {
    check(
        r#" "ping": { "loop": 2, "run": 10000, "resume": "pong", "suspend" },
            "pong": { "loop": 2, "suspend": "pong", "run": 5000, "resume": "ping" } "#,
        1000 * MS,
        &[
            "     0 ping-0 run 10000",
            " 10000 ping-0 done, released 0",
            " 10000 pong-1 run 5000",
            " 15000 pong-1 done, released 10000",
            " 15000 ping-0 run 10000",
            " 25000 ping-0 done, released 15000",
            " 25000 pong-1 run 5000",
            " 30000 pong-1 done, released 25000",
            " 30000 pong-1 exit",
            " 30000 ping-0 exit",
        ],
    );
}

#[test]
fn a_resume_of_nobody_is_lost() {
    check(
        r#" "early": { "loop": 1, "resume": "late" },
            "late": { "loop": 1, "run": 1000, "suspend": "late", "run": 1000 } "#,
        1000 * MS,
        &["     0 late-1 run 1000", "     0 early-0 exit"],
    );
}

#[test]
fn a_semaphore_remembers_posts() {
    check(
        r#" "post": { "loop": 1, "sem_post": "s", "sem_post": "s", "run": 9000, "sem_post": "s" },
            "take": { "loop": 3, "delay": 4000, "sem_wait": "s", "run": 1000 } "#,
        1000 * MS,
        &[
            "     0 take-1 until 4000",
            "     0 post-0 run 9000",
            "  4000 take-1 run 1000",
            "  5000 take-1 done, released 4000",
            "  5000 take-1 run 1000",
            "  6000 take-1 done, released 5000",
            "  9000 take-1 run 1000",
            "  9000 post-0 done, released 0",
            "  9000 post-0 exit",
            " 10000 take-1 done, released 9000",
            " 10000 take-1 exit",
        ],
    );
}

/// The meeting points of rt-app's seventh example: the thread that comes first waits.
#[test]
fn a_barrier_holds_whoever_comes_first() {
    check(
        r#" "a": { "loop": 1, "run": 1000, "sleep": 2000, "barrier": "one", "run": 2000, "barrier": "two", "run": 10 },
            "b": { "loop": 1, "run": 2000, "barrier": "one", "run": 1000, "sleep": 2000, "barrier": "two", "run": 20 } "#,
        1000 * MS,
        &[
            "     0 a-0 run 1000",
            "     0 b-1 run 2000",
            "  1000 a-0 sleep 2000",
            "  3000 a-0 run 2000",
            "  3000 b-1 run 1000",
            "  4000 b-1 sleep 2000",
            "  6000 b-1 run 20",
            "  6000 a-0 run 10",
            "  6010 a-0 done, released 0",
            "  6010 a-0 exit",
            "  6020 b-1 done, released 0",
            "  6020 b-1 exit",
        ],
    );
}

#[test]
fn a_barrier_counts_the_instances_of_all_its_users() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{
            "early": {{ "instance": 3, "loop": 1, "run": 1000, "barrier": "b", "run": 777 }},
            "late": {{ "instance": 2, "loop": 1, "run": 9000, "barrier": "b", "run": 777 }} }} }}"#
    );
    let mut executor = Executor::with_delays(&workload(&text), &host(8), 3, 5000);
    let mut passed = Vec::new();
    let end = executor.run(1000 * MS, 100_000, |now, _, op, _| {
        if matches!(op, Op::Compute { work: 777_000, .. }) {
            passed.push(now);
        }
    });
    assert_eq!(end, End::Finished);
    assert_eq!(passed.len(), 5);
    assert!(passed.iter().all(|at| *at >= 9 * MS), "{passed:?}");
}

#[test]
fn a_mutex_admits_one_thread_at_a_time() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "instance": 5, "loop": 200,
            "lock": "m", "run": 777, "unlock": "m", "run": 300 }} }} }}"#
    );
    for seed in 1..10 {
        let mut executor = Executor::with_delays(&workload(&text), &host(8), seed, 500_000);
        let (mut free_at, mut entered, mut waits) = (0, 0, 0);
        let end = executor.run(10_000 * MS, 100_000, |now, _, op, _| match op {
            Op::Compute { work: 777_000, .. } => {
                assert!(now >= free_at, "two threads hold the mutex at {now}");
                free_at = now + 777_000;
                entered += 1;
            }
            Op::Call(Syscall::FutexWait { .. }) => waits += 1,
            _ => {}
        });
        assert_eq!((end, entered), (End::Finished, 1000), "seed {seed}");
        assert!(waits > 500, "the mutex is contended: {waits}");
    }
}

/// The waiter holds the mutex from "ready" until it waits, so no signal may be lost, however the
/// mutex is contended by a third thread.
#[test]
fn no_signal_is_lost_between_unlock_and_sleep() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{
            "waiter": {{ "loop": 300, "lock": "m", "sem_post": "ready", "wait": {{ "ref": "c", "mutex": "m" }}, "unlock": "m", "run": 3 }},
            "signaller": {{ "loop": 300, "sem_wait": "ready", "lock": "m", "signal": "c", "unlock": "m", "run": 4 }},
            "other": {{ "instance": 3, "loop": 900, "lock": "m", "run": 2, "unlock": "m", "sleep": 1 }} }} }}"#
    );
    for seed in 1..20 {
        let mut executor = Executor::with_delays(&workload(&text), &host(8), seed, 9_000);
        let end = executor.run(10_000 * MS, 1_000_000, |_, _, _, _| {});
        assert_eq!(end, End::Finished, "seed {seed} at {}", executor.now);
    }
}

/// `sync` wakes the other and sleeps: two threads that hand a token to and fro.
#[test]
fn sync_signals_and_then_waits() {
    check(
        r#" "a": { "loop": 2, "lock": "m", "wait": { "ref": "q", "mutex": "m" }, "run": 1000, "signal": "q", "unlock": "m" },
            "b": { "loop": 2, "delay": 5000, "lock": "m", "sync": { "ref": "q", "mutex": "m" }, "unlock": "m", "run": 2000 } "#,
        1000 * MS,
        &[
            "     0 b-1 until 5000",
            "  5000 a-0 run 1000",
            "  6000 a-0 done, released 5000",
            "  6000 b-1 run 2000",
            "  8000 b-1 done, released 6000",
            "  8000 a-0 run 1000",
            "  9000 a-0 done, released 8000",
            "  9000 b-1 run 2000",
            "  9000 a-0 exit",
            " 11000 b-1 done, released 9000",
            " 11000 b-1 exit",
        ],
    );
}

#[test]
fn the_end_of_the_run_is_dry() {
    // The thread holds a mutex when the second is over: the unlock is still executed, the rest not.
    let text = r#"{ "global": { "calibration": 1000, "duration": 1 }, "tasks": {
        "holder": { "lock": "m", "run": 1500000, "sleep": 5000, "unlock": "m", "run": 7000 },
        "waiter": { "delay": 1000, "lock": "m", "run": 9000, "unlock": "m" },
        "sleeper": { "suspend", "run": 8000 },
        "counter": { "sem_wait": "s", "run": 6000 } } }"#;
    let mut executor = Executor::new(&workload(text), &host(4));
    let mut works = Vec::new();
    let end = executor.run(10_000 * MS, 10_000, |now, thread, op, programs| {
        if let Op::Compute { work, .. } = op {
            works.push((now / MS, programs.task_name(thread), work / 1000));
        }
    });
    assert_eq!(end, End::Finished);
    works.retain(|(_, _, us)| *us > 0);
    assert_eq!(works, [(0, "holder".to_owned(), 1_500_000)]);
    assert_eq!(executor.exited.len(), 5);
}

#[test]
fn affinity_and_attributes_are_set_only_when_they_change() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "loop": 2, "cpus": [2], "priority": 5, "phases": {{
            "a": {{ "cpus": [0], "run": 1, "loop": 2 }},
            "b": {{ "policy": "SCHED_RR", "run": 1 }},
            "c": {{ "policy": "SCHED_OTHER", "priority": -3, "dl-runtime": 5000, "run": 1 }} }} }} }} }}"#
    );
    let mut executor = Executor::new(&workload(&text), &host(4));
    let mut calls = Vec::new();
    executor.run(1000 * MS, 10_000, |_, _, op, _| match op {
        Op::Call(Syscall::SchedSetaffinity { mask }) => calls.push(format!("cpus {mask}")),
        Op::Call(Syscall::SchedSetattr(SchedAttr { policy, nice, rt_priority, slice, .. })) => {
            calls.push(format!("{policy:?} {nice} {rt_priority} {slice}"));
        }
        _ => {}
    });
    let round = ["cpus 0", "cpus 2", "Rr 5 10 0", "Normal -3 0 5000000"];
    let mut expected = vec!["Normal 5 0 0"];
    expected.extend(round);
    // The second round begins with the slice and nice value that phase c left.
    expected.extend(["cpus 0", "cpus 2", "Rr -3 10 5000000", "Normal -3 0 5000000"]);
    assert_eq!(calls, expected);
}

#[test]
fn a_thread_returns_to_sched_other_before_it_exits() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "loop": 1, "policy": "SCHED_FIFO", "run": 1 }} }} }}"#
    );
    let mut executor = Executor::new(&workload(&text), &host(1));
    let mut policies = Vec::new();
    executor.run(1000 * MS, 1000, |_, _, op, _| {
        if let Op::Call(Syscall::SchedSetattr(attributes)) = op {
            policies.push((attributes.policy, attributes.rt_priority));
        }
    });
    assert_eq!(policies, [(Policy::Fifo, 10), (Policy::Normal, 0)]);
}

#[test]
fn a_run_is_loops_of_the_calibration() {
    // (calibration, capacities, ns_per_loop, us) -> work
    let cases: [(&str, &[u32], u64, u64, u64); 8] = [
        ("1000", &[1024], 1000, 1280, 1_280_000),
        ("186", &[1024], 1000, 100, 537 * 1000),
        ("21", &[1024], 21, 1000, 47_619 * 21),
        ("\"CPU0\"", &[124, 1024], 21, 1000, 5780 * 21), // 21 * 1024 / 124 = 173 ns per loop
        ("\"CPU1\"", &[124, 1024], 21, 1000, 47_619 * 21),
        ("\"largest\"", &[124, 1024, 124], 21, 1000, 47_619 * 21),
        ("\"largest\"", &[1024; 8], 21, 1000, 47_619 * 21),
        ("300", &[1024], 1, 2_500_000, 2 * 3_333_333 + 1_666_666), // each second is rounded down apart
    ];
    for (calibration, capacities, ns_per_loop, us, work) in cases {
        let text = format!(
            r#"{{ "global": {{ "calibration": {calibration} }}, "tasks": {{ "t": {{ "loop": 1, "run": {us} }} }} }}"#
        );
        let host = Host {
            cpu_capacity: capacities.to_vec(),
            ns_per_loop,
            dl_bandwidth: None,
            block_devices: Vec::new(),
        };
        let mut executor = Executor::new(&workload(&text), &host);
        let mut found = Vec::new();
        executor.run(10_000 * MS, 100, |_, _, op, _| {
            if let Op::Compute { work, .. } = op {
                found.push(work);
            }
        });
        assert_eq!(found, [work], "{calibration} {us}");
    }
}

#[test]
fn runtime_ends_by_the_clock() {
    let text = format!(r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "loop": 1, "runtime0": 1000 }} }} }}"#);
    let mut executor = Executor::new(&workload(&text), &host(1));
    let mut pieces = 0;
    let end = executor.run(10_000 * MS, 1000, |_, _, op, _| {
        pieces += u32::from(matches!(op, Op::Compute { work: 32_000, .. }));
    });
    // 31 pieces are 992 us, 32 are 1024.
    assert_eq!((end, pieces), (End::Finished, 32));
}

#[test]
fn forks_get_new_threads_and_names() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{
            "maker": {{ "loop": 2, "fork": "made", "run": 10 }},
            "made": {{ "instance": 0, "loop": 1, "cpus": [1], "run": 777 }},
            "a-very-long-name": {{ "loop": 1, "run": 1 }} }} }}"#
    );
    let mut executor = Executor::new(&workload(&text), &host(2));
    let end = executor.run(1000 * MS, 1000, |_, _, _, _| {});
    assert_eq!(end, End::Finished);
    let names: Vec<_> = (0..executor.programs.nr_threads())
        .map(|t| executor.programs.thread_name(ThreadId(t as u32)))
        .collect();
    assert_eq!(names, ["rt-app", "maker-0", "a-very-long-nam", "made-2-0000", "made-3-0001"]);
    assert_eq!(executor.programs.task_name(ThreadId(4)), "made");
}

#[test]
fn a_fork_bomb_ends_at_a_limit() {
    let bombs = [
        (r#" "t": { "fork": "t", "run": 1 } "#.to_owned(), 1 + 1024, "1024 threads of one task"),
        (
            format!(
                r#" "t": {{ "instance": {}, "fork": "u" }}, "u": {{ "instance": 0, "run": 1 }} "#,
                MAX_THREADS - 6
            ),
            MAX_THREADS,
            "more threads than the workload may have",
        ),
    ];
    for (tasks, threads, reason) in bombs {
        let mut executor = Executor::new(
            &workload(&format!("{{ {GLOBAL}, \"tasks\": {{ {tasks} }} }}")),
            &host(2),
        );
        let end = executor.run(100_000 * MS, 200_000, |_, _, _, _| {});
        assert_eq!(end, End::Finished);
        assert_eq!(executor.programs.nr_threads(), threads + 1);
        assert!(executor.programs.limit_reached().unwrap().contains(reason));
    }
}

#[test]
fn a_loop_of_events_without_calls_advances_in_time() {
    let loops = [
        r#""resume": "nobody""#,
        r#""lock": "m", "unlock": "m""#,
        r#""sem_post": "s""#,
        r#""run": 0"#,
        r#""timer": { "ref": "t", "period": 0 }"#,
        r#""barrier": "alone""#,
        r#""yield": """#,
        r#""sleep": 0"#,
        r#""runtime0": 0"#,
    ];
    for events in loops {
        let text = format!(r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "loop": -1, {events} }} }} }}"#);
        let mut executor = Executor::new(&workload(&text), &host(1));
        let end = executor.run(Ns::MAX, 10_000, |_, _, _, _| {});
        assert_eq!(end, End::Steps, "{events}");
        assert!(executor.now >= 3_000, "{events}: {} ns after 10,000 operations", executor.now);
        // And it ends when the run is over.
        executor.programs.shutdown();
        assert_eq!(executor.run(Ns::MAX, 10_000, |_, _, _, _| {}), End::Finished, "{events}");
    }
}

#[test]
fn shared_timers_share_their_expiry_and_unique_ones_do_not() {
    for (name, expected) in [("shared", [10, 20, 30, 40]), ("unique", [10, 10, 20, 20])] {
        let text = format!(
            r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "instance": 2, "loop": 2, "timer": {{ "ref": "{name}", "period": 10000 }} }} }} }}"#
        );
        let mut executor = Executor::new(&workload(&text), &host(2));
        let mut expiries = Vec::new();
        executor.run(1000 * MS, 1000, |_, _, op, _| {
            if let Op::Call(Syscall::NanosleepUntil { until }) = op {
                // t_zero is a few nanoseconds after the beginning.
                expiries.push(until / MS);
            }
        });
        expiries.sort_unstable();
        assert_eq!(expiries, expected, "{name}");
    }
}

#[test]
fn marks_tell_slack_and_wakeup_latency() {
    let text = format!(
        r#"{{ {GLOBAL}, "tasks": {{ "t": {{ "loop": 2, "run": 4000, "timer": {{ "ref": "x", "period": 10000 }} }} }} }}"#
    );
    let mut executor = Executor::with_delays(&workload(&text), &host(2), 1, 50_000);
    let (mut woken, mut marks) = (0, Vec::new());
    let mut until_last = 0;
    executor.run(1000 * MS, 1000, |now, _, op, _| match op {
        Op::Call(Syscall::NanosleepUntil { until }) => until_last = until,
        Op::Mark(Mark::WakeupLatency { latency_ns }) => {
            woken += 1;
            assert_eq!(latency_ns, now - until_last);
        }
        Op::Mark(Mark::Slack { slack_ns }) => marks.push(slack_ns / 100_000),
        _ => {}
    });
    assert_eq!((woken, marks), (2, vec![60, 59]));
}

#[test]
fn w1_does_150_000_jobs_and_its_clone_does_the_same() {
    let w1 = Workload::from_path_or_name("w1").unwrap();
    let mut executor = Executor::new(&w1, &host(8));
    let mut jobs = 0;
    let mut halfway = None;
    executor.run(30_000 * MS, u64::MAX / 2, |_, _, op, _| {
        jobs += u32::from(matches!(op, Op::Mark(Mark::JobDone { .. })))
    });
    halfway.replace(executor.programs.clone());
    let end = executor.run(100_000 * MS, u64::MAX / 2, |_, _, op, _| {
        jobs += u32::from(matches!(op, Op::Mark(Mark::JobDone { .. })))
    });
    assert_eq!((end, jobs), (End::Finished, 150_000));
    // The clone still stands in the middle.
    let mut clone = halfway.unwrap();
    assert!(!clone.finished());
    assert!(!matches!(clone.next(ThreadId(1), Outcome::Done, 30_001 * MS), Op::Exit));
}

#[test]
fn ui_phone_makes_a_frame_every_vsync() {
    let phone = Workload::from_path_or_name("ui-phone").unwrap();
    assert_eq!(phone.notices(), Vec::<String>::new());
    let mut executor = Executor::with_delays(&phone, &host(8), 1, 50_000);
    let mut jobs = std::collections::BTreeMap::<String, u32>::new();
    let mut work = 0;
    let end = executor.run(20_000 * MS, u64::MAX / 2, |_, thread, op, programs| match op {
        Op::Mark(Mark::JobDone { .. }) => *jobs.entry(programs.task_name(thread)).or_default() += 1,
        Op::Compute { work: more, .. } => work += more,
        _ => {}
    });
    assert_eq!(end, End::Finished);
    for (task, low, high) in [
        ("ui", 598, 600),
        ("RenderThread", 597, 600),
        ("surfaceflinger", 598, 600),
        ("FastMixer", 1999, 2000),
        ("InputReader", 890, 910),
        ("crtc_commit", 597, 600),
    ] {
        assert!((low..=high).contains(&jobs[task]), "{task}: {}", jobs[task]);
    }
    // About a third of a biggest core in the mean, as in the traces.
    let percent = work / (10 * 10_000_000);
    assert!((25..45).contains(&percent), "{percent} % of a biggest core");
}

#[test]
fn cpus_are_checked_against_the_machine_and_all_at_once() {
    let text = r#"{ "global": { "calibration": "CPU9" }, "tasks": { "t": { "cpus": [0, 7], "phases": { "p": { "cpus": [8], "run": 1 } } } } }"#;
    let faults = workload(text).instantiate(&host(4), 1).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "test.json:1:30: \"calibration\" names CPU 9; the machine has CPUs 0 to 3\n\
         test.json:1:70: \"cpus\" names CPU 7; the machine has CPUs 0 to 3\n\
         test.json:1:102: \"cpus\" names CPU 8; the machine has CPUs 0 to 3"
    );
    let mut executor = Executor::new(&workload(&text.replace("CPU9", "CPU0")), &host(9));
    let mut masks = Vec::new();
    executor.run(MS, 100, |_, _, op, _| {
        if let Op::Call(Syscall::SchedSetaffinity { mask }) = op {
            masks.push(mask);
        }
    });
    assert_eq!(masks, [CpuMask::of(CpuId(8))]);
}
