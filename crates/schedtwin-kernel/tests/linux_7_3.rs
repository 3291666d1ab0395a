// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of rules that came with 7.3, each beside those of 6.12: one scenario, two kernels, and what differs.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree, first_runs_at};
use schedtwin_kernel::config::{
    AvgIdle, CalcDelta, Config, EevdfForm, FairServerForm, IdleGovernor, LagLimit, Preempt,
    SchedIdleCpus,
};
use schedtwin_kernel::device_tree::DtIdleState;
use schedtwin_kernel::time::hrtimer::TimerKind;
use schedtwin_types::*;

/// A microsecond.
const US: Ns = 1_000;

/// Idle times that forks end: 7.3 learns from them, 6.12 only from those that a wakeup ends.
#[test]
fn avg_idle_learns_at_the_switch() {
    let table = [
        // From 1 ms on, which is also the most: an eighth of the way to 200 us, then to 250 us.
        (AvgIdle::AtSwitch, [1_000, 900, 818]),
        (AvgIdle::AtWakeup, [1_000; 3]),
    ];
    for (avg_idle, expected) in table {
        let scenario = "a @0: run 1ms, fork b, run 300us, fork b, run 350us, fork b, run 1s
            b: run 100us";
        let mut board = Board::with(device_tree(2), Config { avg_idle, ..config() }, scenario);
        let learnt = [1_050, 1_350, 1_700].map(|at| {
            board.run_until(at * US);
            board.kernel.inside().rq[CpuId(0)].avg_idle / US
        });
        assert_eq!(learnt, expected, "{avg_idle:?}");
    }
}

/// A wakee of policy SCHED_IDLE beside a CPU that runs such tasks only: up to 6.12 it queues up there, since 7.3 it goes on to
/// the CPU that is idle. One of policy SCHED_NORMAL goes there in both.
#[test]
fn idle_tasks_do_not_displace_each_other() {
    use SchedIdleCpus::{ForAll, ForOthers};
    let table = [(ForAll, "idle", 1), (ForOthers, "idle", 2), (ForOthers, "normal", 1)];
    for (sched_idle_cpus, policy, expected) in table {
        let scenario = format!(
            "waker @0: cpus 0, run 5ms, wake 0, [run 1s]
             idler @0: policy idle, cpus 1, [run 1s]
             wakee @1ms: cpus 1, policy {policy}, nice 0, cpus 1-2, wait 0, [run 1s]"
        );
        let mut board =
            Board::with(device_tree(3), Config { sched_idle_cpus, ..config() }, &scenario);
        board.run_until(6 * MS);
        let wakee = board.task("wakee");
        let cpu = board.kernel.inside().tasks[wakee].cpu;
        assert_eq!(cpu, CpuId(expected), "{sched_idle_cpus:?} {policy}");
    }
}

/// When the fair server's floor of CPU 0 ends for the last time, ms.
fn floor_ends(fair_server_form: FairServerForm, ticks: bool, scenario: &str, until: u64) -> u64 {
    let mut machine = device_tree(1);
    let mut cpuidle = IdleGovernor::Teo;
    if !ticks {
        // teo keeps the tick where there is one state.
        machine.idle_tables = vec![vec![DtIdleState::new(0, 0), DtIdleState::new(100, 200)]];
        cpuidle = IdleGovernor::Menu;
    }
    let config =
        Config { fair_server_form, fair_server_runtime: 50 * MS, cpuidle, hz: 1000, ..config() };
    let mut board = Board::with(machine, config, scenario);
    let mut last = 0;
    for at in 1..until {
        board.run_until(at * MS + MS / 2);
        if board.kernel.inside().rq[CpuId(0)].dl.running_bw() != 0 {
            last = at;
        }
    }
    last + 1
}

/// How long an idle CPU asks for a twentieth of itself: until the server's timer (6.12), or until it finds that idling has used
/// up the runtime (7.3), 950 ms after the last charge that did (behaviour notes 12 section 9).
#[test]
fn the_floor_of_an_idle_cpu_ends() {
    use FairServerForm::{V6_12, V7_3};
    let once = "a @0: run 3ms";
    assert_eq!(floor_ends(V6_12, false, once, 2100), 953);
    assert_eq!(floor_ends(V7_3, false, once, 2100), 950);
    // Each wakeup charges 99 ms of idling, which begins a period: the last at 900 ms.
    let often = "a @0: run 1ms, until 100ms, run 1ms, until 200ms, run 1ms, until 300ms, run 1ms, until 400ms, run 1ms,
        until 500ms, run 1ms, until 600ms, run 1ms, until 700ms, run 1ms, until 800ms, run 1ms, until 900ms, run 1ms";
    let often = &often.replace('\n', " ");
    assert_eq!(floor_ends(V7_3, false, often, 3000), 900 + 950);
    // A tick in idle finds the runtime used up; the timer comes 950 ms later, the zero-lag time 50 ms after it.
    assert_eq!(floor_ends(V7_3, true, once, 2100), 50 + 1000);
}

/// The charge in the timer's handler arms the timer, which the stop there cannot take back.
#[test]
fn a_timer_is_left_over() {
    let mut machine = device_tree(1);
    machine.idle_tables = vec![vec![DtIdleState::new(0, 0), DtIdleState::new(100, 200)]];
    let config = Config {
        fair_server_form: FairServerForm::V7_3,
        fair_server_runtime: 50 * MS,
        cpuidle: IdleGovernor::Menu,
        ..config()
    };
    let mut board = Board::with(machine, config, "a @0: run 3ms");
    let queued = [900, 1000, 1899, 1901].map(|at| {
        board.run_until(at * MS);
        let inside = board.kernel.inside();
        let timer = inside.timers[CpuId(0)].is_queued(TimerKind::FairServer(CpuId(0)));
        (inside.rq[CpuId(0)].fair_server.is_active(), timer)
    });
    assert_eq!(queued, [(true, true), (false, true), (false, true), (false, false)]);
}

/// Who runs first after the wakeup at 5 ms, and when, us: a task of nice -20 is woken beside a hog on CPU 1.
fn wakee_runs_at(preempt: Preempt, waker_cpu: u16, mode: &str) -> u64 {
    let scenario = format!(
        "hog @0: cpus 1, [{mode} 1s]
         wakee @0: cpus 1, nice -20, slice 500us, wait 0, [sleep 1s]
         waker @1ms: cpus {waker_cpu}, nice -15, until 5ms, run 10us, wake 0, run 10us, [sleep 1s]"
    );
    let mut board = Board::with(device_tree(2), Config { preempt, ..config() }, &scenario);
    board.run_until(20 * MS);
    let wakee = board.task("wakee");
    let at = board.switches(1).into_iter().filter(|s| s.1 == wakee && s.0 > 5 * MS).map(|s| s.0);
    at.min().expect("it ran") / US
}

/// Woken from another CPU, it runs at once (full), or when the hog comes into the kernel: at the tick (lazy). Woken on the same
/// CPU it runs when the waker's call returns, in both.
#[test]
fn lazy_preemption_waits_for_the_kernel() {
    use Preempt::{Full, Lazy, None};
    for (preempt, mode, expected) in [
        (Full, "run", 5_010),
        (Full, "krun", 5_010),
        (Lazy, "run", 8_000),
        (Lazy, "krun", 8_000),
        (None, "run", 5_010),
    ] {
        let at = wakee_runs_at(preempt, 0, mode);
        assert_eq!(at, expected, "{preempt:?} {mode}");
    }
    for preempt in [Full, Lazy] {
        assert_eq!(wakee_runs_at(preempt, 1, "run"), 5_010, "{preempt:?}");
    }
}

/// The end of a slice is seen by the tick: in user mode it takes effect at the tick's return, in kernel mode at the next tick.
#[test]
fn a_slice_ends_a_tick_later_in_lazy_kernel_mode() {
    for (preempt, mode, expected) in [
        (Preempt::Full, "krun", "aaaabbbbaaaabbbbaaaabbbb"),
        (Preempt::Lazy, "run", "aaaabbbbaaaabbbbaaaabbbb"),
        (Preempt::Lazy, "krun", "aaaaaaaabbbbbbbbaaaaaaaa"),
    ] {
        let scenario = format!("a @0: [{mode} 1s]\nb @0: [{mode} 1s]");
        let config = Config { preempt, base_slice_unscaled: 2_800_000, ..config() };
        let mut board = Board::with(device_tree(1), config, &scenario);
        board.run_until(40 * MS);
        let timeline = board.timeline(MS, 0, 24 * MS);
        assert_eq!(timeline.trim_start_matches("cpu0 ").trim(), expected, "{preempt:?} {mode}");
    }
}

/// An RT task does not wait.
#[test]
fn other_classes_preempt_lazy_kernels_at_once() {
    let scenario = "k @0: [krun 7ms]\nf @0: fifo 1, sleep 5ms, run 1ms";
    let config = Config { preempt: Preempt::Lazy, ..config() };
    let mut board = Board::with(device_tree(1), config, scenario);
    board.run_until(20 * MS);
    let f = board.task("f");
    let ran = board.switches(0).iter().filter(|s| s.1 == f).map(|s| s.0 / MS).nth(1);
    assert_eq!(ran, Some(5));
}

/// Somebody with a shorter slice comes at 5.2 ms who does not preempt (SCHED_BATCH): up to 6.12 the running task is protected
/// until its deadline, 2.8 ms from 4.5 ms on; since 7.3 for the shorter slice, 0.5 ms. The tick behind it sees that.
#[test]
fn a_short_slice_ends_the_protection_of_a_long_one() {
    let scenario = "h @0: nice -10, run 100us, until 4500us, [run 1s]
        b @0: policy batch, slice 500us, run 10us, until 5200us, run 500us, [sleep 1s]";
    for (eevdf_form, expected) in [(EevdfForm::V6_12, 8_000), (EevdfForm::V7_3, 6_000)] {
        let config = Config { eevdf_form, hz: 1000, base_slice_unscaled: 2_800_000, ..config() };
        assert_eq!(first_runs_at(config, scenario, "b"), expected, "{eevdf_form:?}");
    }
}

/// A new task has half a slice only, so that its deadline is the earlier one; since 7.3 it does not preempt for that.
#[test]
fn forks_do_not_preempt_since_7_3() {
    let scenario = "h @0: run 7ms, fork b, [run 1s]\nb: run 1ms";
    for (eevdf_form, expected) in [(EevdfForm::V6_12, 7_000), (EevdfForm::V7_3, 8_000)] {
        let config = Config { eevdf_form, base_slice_unscaled: 2_800_000, ..config() };
        assert_eq!(first_runs_at(config, scenario, "b"), expected, "{eevdf_form:?}");
    }
}

/// Behind a slice of 100 ms a batch task waits from 2 to 60 ms, which is 29 ms less than its share, and blocks: two of its own
/// slices are remembered, or all, where the longest slice of the queue and a tick are the limit.
#[test]
fn a_lag_is_limited() {
    for (lag_limit, expected) in
        [(LagLimit::TwoSlices, 5_600..5_601), (LagLimit::MaxSliceAndTick, 28_500..29_500)]
    {
        let config = Config { lag_limit, base_slice_unscaled: 2_800_000, ..config() };
        let scenario = "k @0: slice 100ms, until 1ms, run 59ms, [sleep 1s]
            b @0: policy batch, until 2ms, run 10us, [sleep 1s]";
        let mut board = Board::with(device_tree(1), config, scenario);
        board.run_until(70 * MS);
        let lag = board.se("b").vlag / US as i64;
        assert!(expected.contains(&lag), "{lag_limit:?}: {lag} us");
    }
}

/// Half a slice of 2.8 ms at nice 5, whose weight of 335 has no exact inverse.
#[test]
fn virtual_time_is_divided_exactly_since_7_3() {
    for (calc_delta, expected) in
        [(CalcDelta::Inverse, 8_558_806 / 2), (CalcDelta::Division, 8_558_805 / 2)]
    {
        let config = Config { calc_delta, base_slice_unscaled: 2_800_000, ..config() };
        let scenario = "a @0: nice 5, run 2ms, fork b, [run 1s]\nb: [run 1s]";
        let mut board = Board::with(device_tree(1), config, scenario);
        board.run_until(2 * MS + US);
        let b = board.se("b");
        assert_eq!(b.deadline - b.vruntime, expected, "{calc_delta:?}");
    }
}
