// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings written by hand, replayed by the tests' own executor: one CPU a thread, system calls take a nanosecond.

mod executor;

use executor::{End, Executor, host};
use proptest::prelude::*;
use schedtwin_types::{CpuId, CpuMask, Mark, Ns, Op, Policy, Syscall};
use schedtwin_workload::Workload;
use schedtwin_workload::recorded::{
    Builder, Excluded, Frames, PathCosts, Recorded, RecordedCpu, Recording, Seen, Silicon,
    ThreadFacts, Waker, frame_slice,
};

const MS: Ns = 1_000_000;
/// How a thread leaves its CPU.
const SLEEPS: (bool, bool) = (true, false);
const DIES: (bool, bool) = (false, true);
const WANTS_MORE: (bool, bool) = (false, false);
const IRQ: Waker = Waker::Interrupt;

fn seen(comm: &str, pid: u32) -> Seen<'_> {
    Seen { comm, pid, prio: 120 }
}

fn a() -> Seen<'static> {
    seen("a", 1)
}

fn b() -> Seen<'static> {
    seen("b", 2)
}

/// Four CPUs of that capacity whose highest frequency is 1 GHz, and kernel paths that cost nothing.
fn silicon(capacity: u32) -> Silicon {
    let cpu = RecordedCpu { capacity, max_khz: 1_000_000 };
    Silicon { cpus: vec![cpu; 4], paths: PathCosts::default(), same_numbers: true }
}

/// Records what `events` tell, from 0 to 10 ms.
fn record(silicon: &Silicon, events: impl FnOnce(&mut Builder)) -> Recording {
    let mut builder = Builder::new();
    builder.time(0);
    events(&mut builder);
    builder.time(10 * MS);
    builder.finish(silicon)
}

/// What the threads do: µs since the recording's beginning, who, what. The executor has no timer slack, so
/// timed sleeps of fair threads end 50 µs early.
fn story(recording: &Recording) -> Vec<String> {
    let begin = recording.duration() - recording.recorded().span_ns;
    let mut executor = Executor::new(&Workload::recorded("test", recording.clone()), &host(4));
    let mut lines = Vec::new();
    let end = executor.run(Ns::MAX, 100_000, |now, thread, op, programs| {
        // Calls take a nanosecond each, which rounding hides.
        let us = (now as f64 - begin as f64) / 1e3;
        let what = match op {
            _ if thread.0 == 0 => return,
            Op::Compute { work, .. } => format!("run {}", work / 1000),
            Op::Call(Syscall::NanosleepUntil { .. }) => "sleep".to_owned(),
            Op::Call(Syscall::FutexWait { .. }) => "wait".to_owned(),
            Op::Call(Syscall::FutexWake { .. }) => "wake".to_owned(),
            Op::Call(Syscall::Clone { thread, .. }) => {
                format!("clone {}", programs.thread_name(thread))
            }
            Op::Call(Syscall::SchedSetattr(attr)) => match attr.policy {
                Policy::Fifo => format!("fifo {}", attr.rt_priority),
                Policy::Normal if attr.util_min.is_none() => format!("nice {}", attr.nice),
                _ => format!("{:?} {:?}-{:?}", attr.policy, attr.util_min, attr.util_max),
            },
            Op::Call(Syscall::SchedSetaffinity { mask }) => format!("affinity {mask}"),
            Op::Mark(Mark::JobDone { released }) => {
                format!("done, released {:.0}", (released as f64 - begin as f64) / 1e3)
            }
            Op::Call(Syscall::Execve) => "exec".to_owned(),
            Op::Exit => "exit".to_owned(),
            _ => unreachable!("a replay does nothing else: {op:?}"),
        };
        let start = us < -1000.0;
        let at = if start { "start".to_owned() } else { format!("{us:.0}") };
        lines.push(format!("{at} {} {what}", programs.thread_name(thread)));
    });
    assert_eq!(end, End::Finished);
    lines
}

/// An interrupt wakes a at 1 ms; a runs 4 ms and wakes b in the middle; b runs 1 ms.
fn pipeline(builder: &mut Builder) {
    builder.waking(MS, IRQ, a());
    builder.switch(MS, 0, None, WANTS_MORE, Some(a()));
    builder.waking(3 * MS, Waker::Task(1), b());
    builder.wakeup(3 * MS + 1000, Waker::Task(1), b());
    builder.switch(4 * MS, 1, None, WANTS_MORE, Some(b()));
    builder.switch(5 * MS, 1, Some(b()), SLEEPS, None);
    builder.switch(5 * MS, 0, Some(a()), SLEEPS, None);
}

#[test]
fn a_wakee_follows_its_waker_and_an_interrupt_its_time() {
    for (capacity, expected) in [
        (
            1024,
            [
                "start a sleep",
                "start b wait",
                "950 a run 2000",
                "2950 a wake",
                "2950 b run 1000",
                "2950 a run 2000",
                "3950 b done, released 2950",
                "3950 b wait",
                "4950 a done, released 1000",
                "4950 a wait",
            ],
        ),
        // Recorded on CPUs of half the capacity, the same times are half the work; b comes earlier with a.
        (
            512,
            [
                "start a sleep",
                "start b wait",
                "950 a run 1000",
                "1950 a wake",
                "1950 b run 500",
                "1950 a run 1000",
                "2450 b done, released 1950",
                "2450 b wait",
                "2950 a done, released 1000",
                "2950 a wait",
            ],
        ),
    ] {
        let recording = record(&silicon(capacity), pipeline);
        assert_eq!(story(&recording), expected, "capacity {capacity}");
        let Recorded { tied_to_waker, tied_to_time, unmatched, unended, switches, .. } =
            *recording.recorded();
        assert_eq!((tied_to_waker, tied_to_time, unmatched, unended, switches), (1, 1, 0, 2, 4));
        assert_eq!(recording.recorded().busy_ns, [4 * MS, MS]);
        // a at once; b a millisecond after its sched_waking.
        assert_eq!(recording.recorded().waking_latency_ns, [1_000_000]);
    }
}

#[test]
fn work_follows_the_recorded_frequencies() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        builder.frequency(2 * MS, 0, 500_000);
        builder.frequency(3 * MS, 1, 100_000);
        builder.frequency(4 * MS, 0, 250_000);
        builder.switch(8 * MS, 0, Some(a()), SLEEPS, None);
    });
    // 2 ms at the highest, 2 ms at half, 4 ms at a quarter of it.
    assert_eq!(recording.recorded().work, 4 * MS);
    assert_eq!(recording.recorded().assumed_frequency_ns, 2 * MS);
}

#[test]
fn preemption_and_migration_leave_no_trace_in_the_work() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(MS, 0, Some(a()), WANTS_MORE, Some(b()));
        builder.switch(2 * MS, 0, Some(b()), SLEEPS, None);
        builder.switch(3 * MS, 1, None, WANTS_MORE, Some(a()));
        builder.switch(4 * MS, 1, Some(a()), DIES, None);
    });
    assert_eq!(
        story(&recording),
        [
            "start a sleep",
            "start b sleep",
            "-50 a run 2000",
            "950 b run 1000",
            "1950 a exit",
            "1950 b done, released 1000",
            "1950 b wait"
        ],
        "a ran from the beginning; b's first event is its switch in"
    );
    assert_eq!(recording.recorded().migrations, 1);
}

#[test]
fn which_wakeup_ends_a_sleep() {
    type Events = fn(&mut Builder);
    // b sleeps from 1 ms on, a runs; what follows decides when b runs again. Recorded: who ends the sleep.
    let cases: [(&str, Events, [u64; 3]); 7] = [
        (
            "waking before the switch, wakeup behind it",
            |x| {
                x.waking(MS - 500, Waker::Task(1), b());
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.wakeup(MS + 500, IRQ, b());
            },
            [1, 0, 0],
        ),
        (
            "sched_wakeup alone",
            |x| {
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.wakeup(2 * MS, Waker::Task(1), b());
            },
            [1, 0, 0],
        ),
        (
            "sched_waking alone",
            |x| {
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.waking(2 * MS, Waker::Task(1), b());
            },
            [1, 0, 0],
        ),
        (
            "waking is the cause, wherever wakeup is stamped",
            |x| {
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.waking(2 * MS, IRQ, b());
                x.wakeup(2 * MS, Waker::Task(1), b());
            },
            [0, 1, 0],
        ),
        (
            "a waking that prevented a sleep does not end the next",
            |x| {
                x.waking(MS - 900, Waker::Task(1), b());
                x.wakeup(MS - 800, Waker::Task(1), b());
                x.switch(MS, 1, Some(b()), SLEEPS, None);
            },
            [0, 0, 1],
        ),
        (
            "a waker that is not known to run",
            |x| {
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.waking(2 * MS, Waker::Task(77), b());
            },
            [0, 1, 0],
        ),
        (
            "a waker that is left out",
            |x| {
                x.switch(MS, 1, Some(b()), SLEEPS, None);
                x.switch(MS, 2, None, WANTS_MORE, Some(seen("sugov:0", 9)));
                x.waking(2 * MS, Waker::Task(9), b());
            },
            [0, 1, 0],
        ),
    ];
    for (name, events, expected) in cases {
        let recording = record(&silicon(1024), |builder| {
            builder.switch(0, 0, None, WANTS_MORE, Some(a()));
            builder.switch(0, 1, None, WANTS_MORE, Some(b()));
            events(builder);
            builder.switch(3 * MS, 1, None, WANTS_MORE, Some(b()));
            builder.switch(4 * MS, 1, Some(b()), SLEEPS, None);
        });
        let r = recording.recorded();
        assert_eq!([r.tied_to_waker, r.tied_to_time, r.unmatched], expected, "{name}");
        assert_eq!(r.contradictions, 0, "{name}");
        // Whatever ended the sleep, b's second run comes.
        let runs = story(&recording).iter().filter(|line| line.contains("b run 1000")).count();
        assert_eq!(runs, 2, "{name}");
    }
}

#[test]
fn a_ticket_posted_early_is_not_lost() {
    // CPU 0 was so slow that b's first run is 1 ms of work after 100 us of a's, which wakes it.
    let events = |b_clock: u32| {
        move |builder: &mut Builder| {
            builder.frequency(0, 0, b_clock);
            builder.frequency(0, 1, 50_000);
            builder.switch(0, 0, None, WANTS_MORE, Some(b()));
            builder.switch(0, 1, None, WANTS_MORE, Some(a()));
            builder.switch(MS, 0, Some(b()), SLEEPS, None);
            builder.waking(2 * MS, Waker::Task(1), b());
            builder.switch(2 * MS, 0, None, WANTS_MORE, Some(b()));
            builder.switch(3 * MS, 0, Some(b()), SLEEPS, None);
            builder.switch(3 * MS, 1, Some(a()), SLEEPS, None);
        }
    };
    let lines = story(&record(&silicon(1024), events(1_000_000)));
    // a posts after 2 ms at a twentieth of the speed; b passes its first sleep.
    assert!(lines.contains(&"50 a run 50".to_owned()), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("wake")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("b run 1000")).count(), 2);
    assert_eq!(lines.iter().filter(|line| line.ends_with("b wait")).count(), 1, "the last one");
}

#[test]
fn priorities_are_taken_before_the_sleep_whose_wakeup_shows_them() {
    let fifo = Seen { prio: 89, ..a() };
    let recording = record(&silicon(1024), |builder| {
        builder.switch(MS, 0, Some(a()), SLEEPS, None);
        builder.wakeup(2 * MS, IRQ, fifo);
        builder.switch(2 * MS, 0, None, WANTS_MORE, Some(fifo));
        builder.switch(3 * MS, 0, Some(a()), SLEEPS, None);
        builder.switch(4 * MS, 0, None, WANTS_MORE, Some(Seen { prio: 130, ..b() }));
        builder.switch(5 * MS, 0, Some(Seen { prio: 130, ..b() }), SLEEPS, None);
    });
    assert_eq!(
        story(&recording),
        [
            "start a sleep",
            "start b nice 10",
            "start b sleep",
            "-50 a run 1000",
            "950 a fifo 10",
            "950 a done, released 0",
            "950 a sleep",
            "2000 a run 1000",
            "3000 a nice 0",
            "3000 a done, released 2000",
            "3000 a wait",
            "3950 b run 1000",
            "4950 b done, released 4000",
            "4950 b wait"
        ]
    );
    assert_eq!(recording.recorded().priority_changes, 2);
}

#[test]
fn forked_threads_are_started_by_their_parent_and_inherit() {
    for event in ["fork", "wakeup_new", "both"] {
        let recording = record(&silicon(1024), |builder| {
            let parent = seen("kworker/2:1", 1);
            builder.switch(0, 2, None, WANTS_MORE, Some(parent));
            if event != "wakeup_new" {
                builder.fork(MS, 1, "kworker/2:1", 2);
            }
            if event != "fork" {
                builder.wakeup_new(MS, Waker::Task(1), b());
            }
            builder.switch(2 * MS, 2, Some(parent), SLEEPS, Some(b()));
            builder.switch(3 * MS, 2, Some(b()), DIES, None);
            // Its number is used again.
            builder.switch(4 * MS, 2, None, WANTS_MORE, Some(parent));
            builder.fork(5 * MS, 1, "c", 2);
            builder.switch(6 * MS, 2, Some(parent), SLEEPS, Some(seen("c", 2)));
            builder.switch(7 * MS, 2, Some(seen("c", 2)), DIES, None);
        });
        let lines = story(&recording);
        let of = |what: &str| lines.iter().filter(|line| line.ends_with(what)).count();
        assert_eq!((of("clone b"), of("clone c"), of("exit")), (1, 1, 2), "{event}: {lines:#?}");
        assert_eq!(of("kworker/2:1 affinity 2"), 1, "{lines:#?}");
        let all = CpuMask::first(4);
        assert_eq!((of(&format!("b affinity {all}")), of(&format!("c affinity {all}"))), (1, 1));
        assert_eq!((recording.recorded().forked, recording.recorded().pinned), (2, 1), "{event}");
    }
}

/// A program is executed 85 us of the thread's own time before the event that tells of it, whatever CPUs it has seen since, and the
/// thread has another number from then on if it was not its process's first.
#[test]
fn programs_are_executed_before_the_event_that_tells_it() {
    let recording = record(&silicon(1024), |builder| {
        let parent = seen("sh", 1);
        builder.switch(0, 0, None, WANTS_MORE, Some(parent));
        builder.fork(MS, 1, "sh", 2);
        builder.switch(2 * MS, 0, Some(parent), SLEEPS, Some(seen("sh", 2)));
        builder.exec(3 * MS, 2, 7);
        builder.switch(4 * MS, 0, Some(seen("ls", 7)), DIES, None);
    });
    let lines = story(&recording);
    let child: Vec<&str> =
        lines.iter().filter_map(|line| line.split_once(" ls ")).map(|(_, does)| does).collect();
    assert_eq!(child, ["run 915", "exec", "run 1085", "exit"], "{lines:#?}");
    assert_eq!(recording.recorded().executed, 1);
}

#[test]
fn path_costs_are_taken_off_and_what_is_too_short_owes_them() {
    let mut costly = silicon(1024);
    costly.paths = PathCosts { wake: 300_000, sleep: 1_500_000, ..PathCosts::default() };
    let recording = record(&costly, |builder| {
        pipeline(builder);
        builder.wakeup(7 * MS, IRQ, b());
        builder.switch(7 * MS, 1, None, WANTS_MORE, Some(b()));
        builder.switch(9 * MS, 1, Some(b()), SLEEPS, None);
    });
    let lines = story(&recording);
    // a wakes in the middle of 4 ms and the sleep behind has not ended: 1.5 for the first, 0.3 for the wakeup. b's first ms is
    // less than its two sleeps cost; the rest is owed by the next.
    let runs: Vec<&str> =
        lines.iter().filter_map(|l| l.split_once("run ").map(|(_, w)| w)).collect();
    assert_eq!(runs, ["200", "2000"], "{lines:#?}");
    assert_eq!(recording.recorded().paths_taken_off, 1_800_000 + 3_000_000);
    assert_eq!(recording.recorded().work, 7 * MS);
}

#[test]
fn threads_of_the_twins_own_jobs_are_left_out() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(0, 0, None, WANTS_MORE, Some(seen("migration/0", 9)));
        builder.switch(MS, 0, Some(seen("migration/0", 9)), SLEEPS, Some(a()));
        builder.switch(2 * MS, 0, Some(a()), SLEEPS, None);
    });
    let recorded = recording.recorded();
    let excluded: Vec<bool> = recorded.threads.iter().map(|t| t.excluded.is_some()).collect();
    assert_eq!(excluded, [true, false]);
    assert_eq!((recorded.work, recorded.busy_ns[0]), (MS, MS));
    assert!(story(&recording).iter().all(|line| line.contains(" a ")));
}

#[test]
fn a_class_that_is_played_otherwise_is_left_out() {
    let recording = record(&silicon(1024), |builder| {
        builder.leave_out(["a".to_owned()].into());
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        builder.switch(0, 1, None, WANTS_MORE, Some(b()));
        builder.switch(MS, 1, Some(b()), SLEEPS, None);
        builder.waking(2 * MS, Waker::Task(a().pid), b());
        builder.switch(2 * MS, 1, None, WANTS_MORE, Some(b()));
        builder.switch(3 * MS, 1, Some(b()), SLEEPS, None);
        builder.switch(4 * MS, 0, Some(a()), SLEEPS, None);
    });
    let excluded: Vec<_> = recording.recorded().threads.iter().map(|t| t.excluded).collect();
    assert_eq!(excluded, [Some(Excluded::Asked), None]);
    let lines = story(&recording);
    assert!(lines.iter().all(|line| line.contains(" b ")), "{lines:#?}");
    let none_posts = ["wait", "post"].map(|op| lines.iter().filter(|l| l.ends_with(op)).count());
    assert_eq!(none_posts, [1, 0], "it ends by a time but for the last: {lines:#?}");
}

#[test]
fn contradictions_are_counted_and_do_no_harm() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        // Somebody else leaves; a leaves a CPU where it is not; it runs twice.
        builder.switch(MS, 0, Some(b()), SLEEPS, None);
        builder.switch(2 * MS, 1, Some(a()), SLEEPS, Some(b()));
        builder.switch(3 * MS, 2, None, WANTS_MORE, Some(b()));
        builder.switch(4 * MS, 2, Some(b()), SLEEPS, None);
    });
    assert!(recording.recorded().contradictions >= 3, "{:?}", recording.recorded());
    story(&recording);
}

proptest! {
    /// Whatever events come, all work that was recorded gets done: no sleep waits for ever, however
    /// late threads run.
    #[test]
    fn no_order_of_events_hangs(
        events in prop::collection::vec((0u8..9, 0u32..5, 0u32..5, 0usize..3, 0u64..2000), 1..300),
        seed in 0u64..1000,
    ) {
        let mut builder = Builder::new();
        let names = ["a", "b", "c", "kworker/1:0", "migration/0"];
        let task = |n: u32| Seen { comm: names[n as usize], pid: n + 1, prio: 100 + n as i32 * 9 };
        let some = |n: u32| (n > 0).then(|| task(n));
        let mut at = 0;
        for (kind, x, y, cpu, step) in events {
            at += step;
            builder.time(at);
            let by = if x == 0 { IRQ } else { Waker::Task(x + 1) };
            match kind {
                0 | 1 => builder.switch(at, cpu, some(x), SLEEPS, some(y)),
                2 => builder.switch(at, cpu, some(x), WANTS_MORE, some(y)),
                3 => builder.waking(at, by, task(y)),
                4 => builder.wakeup(at, by, task(y)),
                5 if step % 5 == 0 => builder.fork(at, x + 1, names[y as usize], y + 1),
                5 => builder.switch(at, cpu, some(x), if step % 7 == 0 { DIES } else { SLEEPS }, some(y)),
                6 => builder.frequency(at, cpu, 100_000 + 1000 * step as u32),
                7 => builder.affinity(x + 1, CpuMask::first(cpu)),
                _ => builder.clamps(x + 1, Some(step as u16), (cpu == 0).then_some(1000)),
            }
        }
        let recording = builder.finish(&Silicon {
            cpus: vec![RecordedCpu { capacity: 300, max_khz: 3_000_000 }; 3],
            paths: PathCosts { wake: 10, sleep: 20, ..PathCosts::default() },
            same_numbers: seed % 2 == 0,
        });
        let workload = Workload::recorded("random", recording);
        let mut executor = Executor::with_delays(&workload, &host(2), seed, 100_000);
        let end = executor.run(Ns::MAX, 1_000_000, |_, _, _, _| ());
        prop_assert_eq!(end, End::Finished);
        let done = executor.programs.replayed(|_| 0).expect("it is a recording");
        prop_assert_eq!(done.work, done.work_recorded);
    }
}

/// What the file tells beside its events holds from the start, what an event tells from the sleep before it: a is a
/// batch task on CPUs 2-3 by the file, b is bound to CPU 1 and then to CPU 3 by events and gets clamps.
#[test]
fn threads_have_the_facts_that_the_recording_tells() {
    let events = |builder: &mut Builder| {
        let batch = ThreadFacts {
            policy: Some(Policy::Batch),
            affinity: Some(CpuMask::from_cpus([CpuId(2), CpuId(3)])),
            clamps: Some((0, 1024)),
        };
        builder.describe(1, batch);
        builder.switch(0, 2, None, WANTS_MORE, Some(a()));
        for (at, cpu) in [(MS, 1), (3 * MS, 3)] {
            builder.waking(at, Waker::Task(1), b());
            builder.affinity(2, CpuMask::of(CpuId(cpu)));
            builder.clamps(2, Some(100 * cpu), None);
            builder.switch(at + 1000, cpu as usize, None, WANTS_MORE, Some(b()));
            builder.switch(at + MS, cpu as usize, Some(b()), SLEEPS, None);
        }
        builder.switch(5 * MS, 2, Some(a()), SLEEPS, None);
    };
    let recording = record(&silicon(1024), events);
    let lines = story(&recording);
    let told: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("affinity") || line.contains("Some") || line.contains("Batch"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        told,
        [
            "start a affinity 2-3",
            "start a Batch None-None",
            "start b affinity 1",
            "start b Normal Some(100)-Some(1024)",
            "1949 b affinity 3",
            "1949 b Normal Some(300)-Some(1024)",
        ],
        "{lines:#?}"
    );
    let Recorded { affinities, bound, policies, clamped, pinned, .. } = *recording.recorded();
    assert_eq!((affinities, bound, policies, clamped, pinned), (2, 2, 1, 1, 0));
    // CPUs with other numbers say nothing of these.
    let elsewhere = record(&Silicon { same_numbers: false, ..silicon(1024) }, events);
    assert!(story(&elsewhere).iter().all(|line| !line.contains("affinity")));
}

/// a wakes b five times and is preempted by it each time: b works longer than a does from one wakeup to the next. Had a gone on
/// meanwhile, it would have woken b before that sleeps. It waits for b if b ever answers.
#[test]
fn a_pair_that_answers_keeps_its_hand_overs() {
    for answers in [true, false] {
        let recording = record(&silicon(1024), |builder| {
            builder.switch(0, 0, None, WANTS_MORE, Some(a()));
            for round in 0..5 {
                let at = MS * (round + 1);
                builder.waking(at, Waker::Task(1), b());
                builder.switch(at + 1000, 0, Some(a()), WANTS_MORE, Some(b()));
                builder.switch(at + 801_000, 0, Some(b()), SLEEPS, Some(a()));
            }
            // a waits for b once, and b for an interrupt.
            builder.switch(6 * MS, 0, Some(a()), SLEEPS, None);
            builder.waking(7 * MS, IRQ, b());
            builder.switch(7 * MS, 0, None, WANTS_MORE, Some(b()));
            if answers {
                builder.waking(8 * MS, Waker::Task(2), a());
            }
            builder.switch(8 * MS + 1000, 0, Some(b()), SLEEPS, Some(a()));
            builder.switch(9 * MS, 0, Some(a()), SLEEPS, None);
        });
        assert_eq!(recording.recorded().handovers, if answers { 5 } else { 0 });
        let workload = Workload::recorded("test", recording);
        let mut executor = Executor::new(&workload, &host(4));
        assert_eq!(executor.run(Ns::MAX, 100_000, |_, _, _, _| ()), End::Finished);
        let done = executor.programs.replayed(|_| 0).expect("it is a recording");
        let early: u64 = done.early.iter().map(|(_, count)| count).sum();
        assert_eq!(early == 0, answers, "{done:?}");
    }
}

/// A frame lasts from one point of its thread's work to another, with the sleep between.
#[test]
fn frames_are_recorded_and_replayed() {
    let draw = frame_slice("DrawFrame 7");
    assert_eq!((draw, frame_slice("measure")), (Some(1), None));
    let recording = record(&silicon(512), |builder| {
        for ms in [1, 4, 7] {
            builder.waking(ms * MS, IRQ, a());
            builder.switch(ms * MS, 0, None, WANTS_MORE, Some(a()));
            builder.slice_begin(ms * MS + 200_000, 1, draw);
            builder.slice_begin(ms * MS + 300_000, 1, None);
            builder.slice_end(ms * MS + 400_000, 1);
            builder.slice_end(ms * MS + 1_200_000, 1);
            builder.switch(ms * MS + 1_400_000, 0, Some(a()), SLEEPS, None);
        }
    });
    let expected =
        |us: u64| Frames { slice: "DrawFrame", ns: vec![us * 1000; 3], period_ns: 3 * MS };
    assert_eq!(recording.recorded().frames, [expected(1000)]);
    let workload = Workload::recorded("test", recording);
    let mut executor = Executor::new(&workload, &host(4));
    assert_eq!(executor.run(Ns::MAX, 100_000, |_, _, _, _| ()), End::Finished);
    // Half the work where capacity is twice as large.
    assert_eq!(
        executor.programs.replayed(|_| 0).expect("it is a recording").frames,
        [expected(500)]
    );
    assert_eq!((expected(500).quantile_ms(50), expected(500).jank_pct()), (0.5, Some(0.0)));
}

/// Two applications draw in turn: each has its own time from one frame to the next.
#[test]
fn a_frames_period_is_that_of_its_own_thread() {
    let draw = frame_slice("DrawFrame");
    let recording = record(&silicon(512), |builder| {
        for (ms, who, pid) in [(1, a(), 1), (3, b(), 2), (11, a(), 1), (13, b(), 2), (21, a(), 1)] {
            builder.waking(ms * MS, IRQ, who);
            builder.switch(ms * MS, 0, None, WANTS_MORE, Some(who));
            builder.slice_begin(ms * MS + 200_000, pid, draw);
            builder.slice_end(ms * MS + 1_200_000, pid);
            builder.switch(ms * MS + 1_400_000, 0, Some(who), SLEEPS, None);
        }
    });
    assert_eq!(recording.recorded().frames[0].period_ns, 10 * MS);
}

/// Where everything takes twice as long, an answer comes as long after its question as it did, and a longer sleep ends at its
/// recorded time.
#[test]
fn an_answer_comes_after_its_question_however_late() {
    let recording = record(&silicon(2 * 1024), |builder| {
        for (from, to) in [(1000, 2000), (2100, 2200), (7000, 8000)] {
            builder.waking(from * 1000, IRQ, a());
            builder.switch(from * 1000, 0, None, WANTS_MORE, Some(a()));
            builder.switch(to * 1000, 0, Some(a()), SLEEPS, None);
        }
    });
    assert_eq!(
        story(&recording),
        [
            "start a sleep",
            "950 a run 2000",
            "2950 a done, released 1000",
            "2950 a sleep",
            "3000 a run 200",
            "3200 a done, released 3050",
            "3200 a sleep",
            "6950 a run 2000",
            "8950 a done, released 7000",
            "8950 a wait",
        ]
    );
}

/// CPUs of one clock are told one after the other, so a recording's beginning or end may lie between them.
#[test]
fn one_clock_is_known_by_its_changes() {
    for (one, other, same) in [
        (&[][..], &[][..], true),
        (&[1, 2, 3], &[1, 2, 3], true),
        (&[1, 2, 3], &[1, 2], true),
        (&[1, 2, 3], &[2, 3], true),
        (&[1, 2, 3], &[1, 3], false),
        (&[1, 2, 3], &[1, 2, 1], false),
        (&[1, 2, 3], &[3], false),
        // One change less, and nothing else to go by.
        (&[1, 2], &[2], false),
        (&[1], &[], false),
        // What is told again is no change.
        (&[1, 1, 2, 2, 3], &[1, 2, 3, 3], true),
    ] {
        let mut builder = Builder::new();
        for (cpu, changes) in [one, other].into_iter().enumerate() {
            builder.cpu_exists(cpu);
            changes.iter().for_each(|khz| builder.frequency(0, cpu, *khz));
        }
        let (one_clock, other_clock) = (builder.frequencies(0), builder.frequencies(1));
        assert_eq!(one_clock.same_clock(other_clock), same, "{one:?} {other:?}");
        assert_eq!(other_clock.same_clock(one_clock), same, "{other:?} {one:?}");
    }
}

/// Of many different frequencies the first 63 and the highest are kept, ascending.
#[test]
fn frequencies_are_kept_in_order_and_the_highest_always() {
    let mut builder = Builder::new();
    for khz in [3, 1, 1, 2] {
        builder.frequency(0, 0, khz);
    }
    assert_eq!(builder.frequencies(0).khz, [1, 2, 3]);
    for khz in (4..=64).chain([900, 800, 70]) {
        builder.frequency(0, 0, khz);
    }
    let kept: Vec<u32> = (1..=63).chain([900]).collect();
    assert_eq!(builder.frequencies(0).khz, kept);
}

/// What a replay says of itself before and behind its run.
#[test]
fn a_replay_knows_its_threads_its_length_and_its_sleeps() {
    let recording = record(&silicon(1024), pipeline);
    let workload = Workload::recorded("test", recording.clone());
    assert_eq!(workload.bytes(), recording.fingerprint().as_bytes());
    let mut executor = Executor::new(&workload, &host(4));
    let begin = executor.programs.warmup();
    assert_eq!(recording.duration(), begin + 10 * MS);
    // The one that starts the others, a and b.
    assert_eq!((executor.programs.nr_threads(), executor.programs.nr_futexes()), (3, 3));
    assert!(!executor.programs.finished());
    let mut ends = Vec::new();
    executor.run(Ns::MAX, 100_000, |_, thread, op, _| {
        if let (0, Op::Call(Syscall::NanosleepUntil { until })) = (thread.0, op) {
            ends.push(until);
        }
    });
    assert!(executor.programs.finished());
    assert_eq!(ends, [begin + 10 * MS], "it lasts as long as the recording");
    // a slept until the interrupt, and b until a woke it. What nothing ended was not a sleep.
    assert_eq!(executor.programs.replayed(|_| 0).unwrap().sleeps, 2);
}

#[test]
fn waiting_for_the_beginning_is_no_sleep() {
    // a ran before the recording began; b came at 1 ms.
    let recording = record(&silicon(1024), |builder| {
        builder.switch(MS, 0, Some(a()), SLEEPS, Some(b()));
        builder.switch(2 * MS, 0, Some(b()), SLEEPS, None);
    });
    let workload = Workload::recorded("test", recording);
    let mut executor = Executor::new(&workload, &host(4));
    executor.run(Ns::MAX, 100_000, |_, _, _, _| ());
    assert_eq!(executor.programs.replayed(|_| 0).unwrap().sleeps, 1);
}

#[test]
fn recordings_that_differ_have_other_fingerprints() {
    let of = |us: Ns| {
        record(&silicon(1024), |builder| {
            builder.switch(0, 0, None, WANTS_MORE, Some(a()));
            builder.switch(us * 1000, 0, Some(a()), SLEEPS, None);
        })
    };
    let print = of(1000).fingerprint().to_string();
    assert!(print.len() == 16 && print.bytes().all(|digit| digit.is_ascii_hexdigit()), "{print}");
    assert_eq!(of(1000).fingerprint(), print);
    assert_ne!(of(1001).fingerprint(), print);
}

/// Pieces of one CPU and clock are one run, and each CPU counts by its own capacity.
#[test]
fn pieces_of_a_run_are_added_where_they_ran() {
    let mut unlike = silicon(1024);
    unlike.cpus[1].capacity = 512;
    for khz in [None, Some(500_000)] {
        let recording = record(&unlike, |builder| {
            for cpu in 0..2 {
                khz.iter().for_each(|khz| builder.frequency(0, cpu, *khz));
            }
            // 1 ms, 1 ms and 2 ms.
            builder.switch(0, 0, None, WANTS_MORE, Some(a()));
            builder.switch(MS, 0, Some(a()), WANTS_MORE, None);
            builder.switch(2 * MS, 0, None, WANTS_MORE, Some(a()));
            builder.switch(3 * MS, 0, Some(a()), WANTS_MORE, None);
            builder.switch(4 * MS, 1, None, WANTS_MORE, Some(a()));
            builder.switch(6 * MS, 1, Some(a()), SLEEPS, None);
        });
        let speed = if khz.is_some() { 2 } else { 1 };
        assert_eq!(recording.recorded().work, (MS + MS + 2 * MS / 2) / speed, "{khz:?}");
        assert_eq!(recording.recorded().busy_ns, [2 * MS, 2 * MS]);
        assert_eq!(recording.recorded().migrations, 1);
    }
    // A nanosecond at half the speed is no work, but four are two.
    let recording = record(&silicon(1024), |builder| {
        builder.frequency(0, 0, 500_000);
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        (1..4).for_each(|at| builder.frequency(at, 0, 500_000));
        builder.switch(4, 0, Some(a()), SLEEPS, None);
    });
    assert_eq!(recording.recorded().work, 2);
}

/// How long a thread waited for its CPU is told from its `sched_waking`, also where nothing else tells of it.
#[test]
fn waits_for_a_cpu_are_measured_from_the_waking() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        builder.switch(MS, 0, Some(a()), SLEEPS, None);
        builder.waking(2 * MS, IRQ, a());
        builder.switch(5 * MS, 0, None, WANTS_MORE, Some(a()));
        builder.switch(6 * MS, 0, Some(a()), SLEEPS, None);
        // The kernel may stamp the switch a little before the waking.
        builder.waking(8 * MS, IRQ, a());
        builder.switch(8 * MS - 10, 0, None, WANTS_MORE, Some(a()));
    });
    assert_eq!(recording.recorded().waking_latency_ns, [0, 3_000_000]);
    let Recorded { tied_to_time, first_seen, contradictions, .. } = *recording.recorded();
    assert_eq!((tied_to_time, first_seen, contradictions), (2, 1, 0));
}

/// One thread that runs twice at once is a contradiction.
#[test]
fn each_contradiction_is_counted() {
    let recording = record(&silicon(1024), |builder| {
        builder.switch(0, 0, None, WANTS_MORE, Some(a()));
        builder.switch(MS, 1, None, WANTS_MORE, Some(a()));
        builder.switch(2 * MS, 2, None, WANTS_MORE, Some(a()));
    });
    assert_eq!(recording.recorded().contradictions, 2);
}

#[test]
fn a_builder_tells_how_far_it_is() {
    use schedtwin_workload::recorded::{Full, THREADS_MAX};
    let mut builder = Builder::new();
    assert_eq!((builder.span(), builder.nr_cpus(), builder.switches()), (0, 0, 0));
    builder.time(3 * MS);
    builder.switch(4 * MS, 2, None, WANTS_MORE, Some(a()));
    builder.switch(5 * MS, 2, Some(a()), SLEEPS, None);
    builder.time(7 * MS);
    builder.cpu_exists(4);
    assert_eq!((builder.span(), builder.nr_cpus(), builder.switches()), (4 * MS, 5, 2));
    for pid in 2..=THREADS_MAX as u32 {
        builder.waking(7 * MS, IRQ, seen("x", pid));
    }
    assert_eq!(builder.full(), None);
    builder.waking(7 * MS, IRQ, seen("x", u32::MAX));
    assert_eq!(builder.full(), Some(Full::Threads));
}
