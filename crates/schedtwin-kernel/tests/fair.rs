// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of the fair class and of the core: waking, switching, sleeping, yielding, changing attributes.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use insta::assert_snapshot;
use schedtwin_kernel::config::{Config, Features, Preempt};
use schedtwin_kernel::sched::{CfsRqId, OnRq};
use schedtwin_types::*;

/// One CPU whose base slice is 2.8 ms, as on a machine of eight and more.
fn one_cpu(scenario: &str) -> Board {
    Board::with(device_tree(1), slices_of_eight(), scenario)
}

fn slices_of_eight() -> Config {
    Config { base_slice_unscaled: 2_800_000, ..config() }
}

fn root(cpu: u16) -> CfsRqId {
    CfsRqId::root(CpuId(cpu))
}

// ---- EEVDF -----------------------------------------------------------------------------------------

/// Slices of 2.8 ms end at the tick: two hogs take turns of 4 ms at HZ = 250.
#[test]
fn two_hogs_alternate_at_ticks() {
    let mut board = one_cpu("a @0: [run 1s]\nb @0: [run 1s]");
    board.run_until(80 * MS);
    assert_snapshot!(board.timeline(MS, 0, 48 * MS), @"cpu0 aaaabbbbaaaabbbbaaaabbbbaaaabbbbaaaabbbbaaaabbbb");
}

/// Weights of nice 0 and nice 5 are 1024 and 335; what is missing to the exact share is at most two ticks.
#[test]
fn shares_follow_weights() {
    let mut board = one_cpu("a @0: [run 1s]\nb @0: nice 5, [run 1s]");
    board.run_until(10_000 * MS);
    let (a, b) = (board.cpu_time("a") as i64, board.cpu_time("b") as i64);
    let share = (a + b) * 1024 / (1024 + 335);
    assert!((a - share).abs() <= 8 * MS as i64, "{a} of {}, {share} expected", a + b);
}

/// `RUN_TO_PARITY`: a task that has just been switched to keeps the CPU until its slice is used up, at a tick,
/// even though the wakee is eligible and has the earlier deadline. Here the switch is that from an RT task.
#[test]
fn the_slice_after_a_switch_is_protected() {
    let mut board = one_cpu(
        "h @0: [run 1s]
         a @0: nice -5, run 100us, until 8500us, run 1ms, [sleep 1s]
         b @0: fifo 1, until 8400us, run 10us, [sleep 1s]",
    );
    board.run_until(20 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 20 * MS), @"cpu0 hhhhhhhhhhhhhhhhhhhhhhhhaahhhhhhhhhhhhhh");
}

/// A task that has run on without a switch is not protected in its second slice.
#[test]
fn the_second_slice_is_not_protected() {
    let mut board = one_cpu(
        "h @0: [run 1s]
         a @0: nice -5, run 100us, until 8500us, run 1ms, [sleep 1s]",
    );
    board.run_until(20 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 20 * MS), @"cpu0 hhhhhhhhhhhhhhhhhaahhhhhhhhhhhhhhhhhhhhh");
}

/// `PREEMPT_SHORT`: a wakee with a shorter slice breaks the protection.
#[test]
fn a_short_slice_preempts() {
    let mut board = one_cpu(
        "h @0: [run 1s]
         a @0: slice 500us, run 100us, until 8500us, run 1ms, [sleep 1s]
         b @0: fifo 1, until 8400us, run 10us, [sleep 1s]",
    );
    board.run_until(20 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 20 * MS), @"cpu0 hhhhhhhhhhhhhhhhhaahhhhhhhhhhhhhhhhhhhhh");
}

/// A task that has run more than its share is not protected: the wakee that is owed time preempts it.
#[test]
fn whoever_is_owed_time_preempts() {
    let mut board = one_cpu("h @0: [run 1s]\nw @0: [sleep 1ms, run 500us]");
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 20 * MS), @"cpu0 hhhhhhhhhhwhhwhhwhhwhhwhhwhhwhhwhhwhhwhh");
}

/// `sched_yield()` moves an eligible task to its deadline, so the others run first.
#[test]
fn a_yield_lets_the_others_run() {
    let mut board =
        one_cpu("a @0: [run 1ms, yield]\nb @0: [run 1ms, yield]\nc @0: [run 1ms, yield]");
    board.run_until(40 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 20 * MS), @"cpu0 aabbccaabbccbbaaccbbaaccbbaaccbbaaccbbaa");
}

/// Alone, it does nothing.
#[test]
fn a_yield_alone_does_nothing() {
    let mut board = one_cpu("a @0: run 1ms, yield, yield, run 1ms, [sleep 1s]");
    board.run_until(MS + MS / 2);
    let before = board.se("a").vruntime;
    board.run_until(10 * MS);
    let used = board.se("a").vruntime.wrapping_sub(before);
    assert!(used < 2 * MS, "its slice was not forfeited: {used}");
}

/// A task that sleeps while it has run more than its share stays queued until it is eligible again.
#[test]
fn an_ineligible_sleeper_stays_queued() {
    let mut board = one_cpu("a @0: run 3ms, sleep 500us, run 500us, [sleep 50ms]\nb @0: [run 1s]");
    let mut text = String::new();
    let mut last = None;
    for at in 1..240 {
        board.run_until(at * MS / 10 + 50_000);
        let a = board.task("a");
        let (t, se) = (&board.kernel.inside().tasks[a], board.se("a"));
        let running = board.kernel.inside().rq[CpuId(0)].curr == a;
        let state =
            (running, t.state == TaskState::Running, t.on_rq == OnRq::Queued, se.sched_delayed);
        if last.replace(state) != Some(state) {
            let name = match state {
                (true, ..) => "runs",
                (_, true, ..) => "waits",
                (_, _, true, true) => "sleeps, delayed",
                (_, _, false, false) => "sleeps",
                _ => "impossible",
            };
            text += &format!("{:.1} {name}\n", at as f64 / 10.0);
        }
    }
    assert_snapshot!(text, @r"
    0.1 runs
    3.0 sleeps, delayed
    3.5 waits
    8.0 runs
    8.5 sleeps
    ");
}

/// A new task's first deadline is half a slice away (`PLACE_DEADLINE_INITIAL`), at the queue's average.
#[test]
fn a_forked_task_starts_with_half_a_slice() {
    let mut board = one_cpu("a @0: run 2ms, fork b, [run 1s]\nb: [run 1s]");
    board.run_until(2 * MS + 1000);
    let (a, b) = (board.se("a"), board.se("b"));
    assert_eq!(b.deadline - b.vruntime, 1_400_000);
    let behind = a.vruntime.wrapping_sub(b.vruntime) as i64;
    assert!((0..2000).contains(&behind), "placed at the average, not {behind} ns behind");
}

/// SCHED_IDLE gives way to everybody at once; SCHED_BATCH preempts nobody.
#[test]
fn idle_gives_way_and_batch_waits() {
    let mut board = one_cpu("i @0: policy idle, [run 1s]\nn @0: [sleep 5ms, run 1ms]");
    board.run_until(40 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 24 * MS), @"cpu0 iiiiiiiiiiiiiiiiiinniiiiiiiiiinniiiiiiiiiinniiii");
    let scenario = "h @0: [run 1s]\nb @0: policy batch, slice 500us, [sleep 5500us, run 500us]";
    let mut board = one_cpu(scenario);
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 40 * MS), @"cpu0 hhhhhhhhhhhhhhhhbhhhhhhhhhhhhhhhbhhhhhhhhhhhhhhhbhhhhhhhhhhhhhhhbhhhhhhhhhhhhhhh");
}

/// `preempt=none`: an interrupt preempts user mode only; kernel mode gives way at its end.
#[test]
fn kernel_mode_is_preempted_by_a_full_kernel_only() {
    for (preempt, expected) in [(Preempt::Full, 4), (Preempt::None, 7)] {
        let scenario = "k @0: [krun 7ms]\nf @0: fifo 1, sleep 4ms, run 1ms";
        let mut board = Board::with(device_tree(1), Config { preempt, ..config() }, scenario);
        board.run_until(20 * MS);
        let f = board.task("f");
        let ran = board.switches(0).iter().filter(|s| s.1 == f).map(|s| s.0 / MS).nth(1);
        assert_eq!(ran, Some(expected), "{preempt:?}");
    }
}

// ---- attributes ------------------------------------------------------------------------------------

/// `__sched_setscheduler()` changes nothing if nothing changes: the caller stays ahead of its equals.
#[test]
fn the_same_rt_priority_again_keeps_the_place() {
    let scenario = "a @0: fifo 10, run 2ms, fork b, run 1ms, fifo 10, run 3ms
        b: run 1ms
        C @0: fifo 20, sleep 4500us";
    let mut board = one_cpu(scenario);
    board.run_until(10 * MS);
    assert_snapshot!(board.timeline(MS, 0, 8 * MS), @"cpu0 aaaaaab.");
}

/// Another policy of the same priority is a change that takes nobody's place: `DEQUEUE_MOVE` is taken back.
#[test]
fn another_policy_of_the_same_priority_keeps_the_place() {
    let scenario = "a @0: fifo 10, run 2ms, fork b, run 1ms, rr 10, run 3ms
        b: run 1ms
        C @0: fifo 20, sleep 4500us";
    let mut board = one_cpu(scenario);
    board.run_until(10 * MS);
    assert_snapshot!(board.timeline(MS, 0, 8 * MS), @"cpu0 aaaaaab.");
}

/// Asking for the default slice counts as a change even if it is none, and a change begins a protected slice;
/// asking for the affinity in force does not.
#[test]
fn a_change_begins_a_protected_slice() {
    for (step, protected) in [("nice 0", true), ("cpus 0", false), ("slice 2ms, slice 2ms", true)] {
        let mut board = one_cpu(&format!("a @0: run 6ms, {step}, [run 1s]"));
        board.run_until(5_900_000);
        let before = (board.se("a").vlag, board.se("a").deadline);
        assert_ne!(before.0 as u64, before.1, "not protected any more");
        board.run_until(7_000_000);
        let a = board.se("a");
        assert_eq!(a.vlag as u64 == a.deadline, protected, "{step}");
    }
}

/// A forked task inherits whom its parent wakes.
#[test]
fn a_forked_task_inherits_wakeup_habits() {
    let scenario = "a @0: wait 0
        b @0: wait 1
        c @2ms: wake 0, wake 1, fork d, [run 1s]
        d: [run 1s]";
    let mut board = Board::new(2, scenario);
    board.run_until(3 * MS);
    let (c, d) = (
        &board.kernel.inside().tasks[board.task("c")],
        &board.kernel.inside().tasks[board.task("d")],
    );
    assert_eq!((c.wakee_flips, c.last_wakee), (d.wakee_flips, d.last_wakee));
    assert_eq!(d.wakee_flips, 2);
}

/// A task that becomes an RT task loses the weight of SCHED_IDLE: the weight is that of its nice value.
#[test]
fn an_rt_task_has_the_weight_of_its_nice_value() {
    let mut board =
        one_cpu("a @0: policy idle, run 1ms, fifo 1, run 1ms, fork b, [run 1s]\nb: [run 1s]");
    board.run_until(3 * MS);
    assert_eq!(board.se("a").load.weight, 1024 << 10);
    assert_eq!(board.se("b").load.weight, 1024 << 10);
}

/// The slice that sched_setattr() sets is clamped to 0.1 ms … 100 ms, and inherited.
#[test]
fn slices_are_clamped_and_inherited() {
    for (asked, expected) in [("1us", 100_000), ("3ms", 3_000_000), ("1s", 100_000_000)] {
        let mut board = one_cpu(&format!("a @0: slice {asked}, fork b, [run 1s]\nb: [run 1s]"));
        board.run_until(2 * MS);
        assert_eq!(board.se("b").slice, expected, "{asked}");
        assert!(board.se("b").custom_slice);
    }
}

// ---- affinity, stopper -----------------------------------------------------------------------------

/// A running task that excludes its CPU is moved by the stopper to the next allowed one.
#[test]
fn a_running_task_is_moved_by_the_stopper() {
    let mut board = Board::new(4, "a @0: run 1ms, cpus 2-3, run 2ms, cpus 0, run 1ms");
    board.run_until(8 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 5 * MS), @r"
    cpu0 ......aa..
    cpu1 aa........
    cpu2 ..aaaa....
    cpu3 ..........
    ");
}

/// `execve` looks for a CPU as a new task does, without the caller: one that is alone stays, one that shares its CPU goes
/// where there is room, a real-time task stays in any case.
#[test]
fn a_task_that_executes_a_program_goes_where_a_new_one_would() {
    for (tasks, expected) in [
        ("a @0: run 1ms, exec, run 2ms", "cpu0 ........\ncpu1 aaaaaa..\n"),
        ("a @0: run 1ms, exec, run 2ms\nb @0: cpus 1, [run 1s]", "cpu0 ..aaaa..\ncpu1 aabbbbbb\n"),
        (
            "a @0: fifo 10, run 1ms, exec, run 2ms\nb @0: cpus 1, [run 1s]",
            "cpu0 ........\ncpu1 aaaaaabb\n",
        ),
    ] {
        let mut board = Board::new(2, tasks);
        board.run_until(8 * MS);
        assert_eq!(board.timeline(MS / 2, 0, 4 * MS), expected, "{tasks}");
    }
}

/// Two works for one stopper: both are done.
#[test]
fn a_stopper_does_all_its_works() {
    use schedtwin_kernel::sched::stop::StopWork;
    let mut board = Board::new(2, "a @0: cpus 0, [run 1s]\nb @0: cpus 0, [run 1s]");
    board.run_until(9 * MS);
    let kernel = &mut board.kernel;
    let b = kernel.inside().rq[CpuId(0)].cfs_tasks_tail.expect("a waiting task");
    let mask = CpuMask::of(CpuId(1));
    kernel.inside_mut().tasks[b].cpus_mask = mask;
    kernel.inside_mut().rq[CpuId(0)].active_balance = true;
    kernel.inside_mut().rq[CpuId(0)].push_cpu = CpuId(1);
    kernel.stop_one_cpu_nowait(
        CpuId(0),
        StopWork::Migrate { task: b, dest_cpu: CpuId(1), pending: true },
    );
    kernel.stop_one_cpu_nowait(CpuId(0), StopWork::ActiveBalance { llc: false });
    board.run_until(20 * MS);
    assert_eq!(board.kernel.inside().tasks[b].cpu, CpuId(1), "the first work was done");
    assert!(!board.kernel.inside().rq[CpuId(0)].active_balance, "and the second");
}

// ---- end of a task ---------------------------------------------------------------------------------

/// `task_dead_fair()`: what a dead task contributed leaves with it, at the queue's next update.
#[test]
fn a_dead_task_leaves_no_load() {
    let mut board = one_cpu("a @0: run 40ms\nb @0: [sleep 1ms, run 10us]");
    board.run_until(39 * MS);
    assert!(board.kernel.inside().cfs[root(0)].avg.util_avg > 300);
    board.run_until(50 * MS);
    // What is left is b's.
    let (queue, b) = (&board.kernel.inside().cfs[root(0)].avg, &board.se("b").avg);
    assert!(queue.util_avg < b.util_avg + 20, "{} {}", queue.util_avg, b.util_avg);
    assert!(queue.load_avg < b.load_avg + 20, "{} {}", queue.load_avg, b.load_avg);
}

// ---- waking ----------------------------------------------------------------------------------------

/// A remote wakeup that sets need_resched dates the switch to itself (`RQCF_REQ_SKIP`): the way out of idle
/// counts as the wakee's runtime.
#[test]
fn the_way_out_of_idle_is_the_wakees_runtime() {
    let config = Config {
        features: Features { ttwu_queue: false, ..Config::linux_6_12().features },
        ..config()
    };
    let scenario =
        "w @0: cpus 1, wait 0, run 1ms, [sleep 1s]\nm @0: cpus 0, run 2500us, wake 0, [run 1s]";
    let mut board = Board::with(device_tree(2), config, scenario);
    board.idle_exit_ns = 100_000;
    board.run_until(2 * MS);
    let before = board.se("w").sum_exec_runtime;
    board.run_until(10 * MS);
    let ran = board.se("w").sum_exec_runtime - before;
    assert!((1_100_000..1_110_000).contains(&ran), "{ran}");
}

/// Waiters of RT tasks come first, by priority; the others in order of arrival.
#[test]
fn futex_waiters_are_ordered_by_rt_priority() {
    let scenario = "a @0: wait 0
        b @1ms: fifo 5, wait 0
        c @2ms: nice -5, wait 0
        d @3ms: fifo 50, wait 0
        e @4ms: fifo 5, wait 0
        w @5ms: wake 0 5";
    let mut board = one_cpu(scenario);
    board.run_until(4_500_000);
    board.facts.clear();
    board.run_until(10 * MS);
    assert_eq!(board.wakeups(), "main d b e a c");
}

/// Timer slack: a fair task sleeps up to 50 µs longer if nothing else wakes the CPU, an RT task does not; a
/// time that has just passed still means a sleep of the slack.
#[test]
fn sleeps_end_with_the_slack() {
    let config = || Config { timer_slack: 50_000, ..config() };
    let awake = |scenario: &str| {
        let mut board = Board::with(device_tree(1), config(), scenario);
        board.run_until(20 * MS);
        let a = board.task("a");
        let times: Vec<u64> =
            board.switches(0).iter().filter(|s| s.1 == a).map(|s| s.0 / 1000).collect();
        times[1] - times[0]
    };
    assert_eq!(awake("a @0: sleep 1ms, run 1ms"), 1050);
    assert_eq!(awake("a @0: fifo 1, sleep 1ms, run 1ms"), 1000);
    assert_eq!(awake("a @0: sleep 0ms, run 1ms"), 50);
}

/// A pipe holds sixteen pages; a writer that finds it full writes what fits, sleeps, and goes on.
#[test]
fn a_writer_fills_the_pipe_and_goes_on() {
    let scenario = "w @0: write 0 100000, run 1ms, [sleep 1s]\nr @1ms: read 0 4096, run 2ms, read 0 1000000, [sleep 1s]";
    let mut board = Board::new(1, scenario);
    board.run_until(20 * MS);
    assert_snapshot!(board.switch_list(0), @r"
    0.000 main
    0.000 w
    0.000 .
    1.000 main
    1.000 r
    3.000 w
    4.000 .
    ");
    assert_eq!(board.kernel.inside().tasks[board.task("w")].outcome, Outcome::Done);
}
