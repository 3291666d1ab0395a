// SPDX-License-Identifier: GPL-2.0-or-later
//! RT throttling: 950 ms of each second, per CPU, by one timer for all.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use insta::assert_snapshot;
use schedtwin_kernel::config::{Config, RtBandwidth};
use schedtwin_kernel::time::hrtimer::TimerKind;
use schedtwin_types::CpuId;

/// A kernel before 6.12, without fair server.
fn throttling() -> Config {
    Config { rt_bandwidth: RtBandwidth::Throttling, ..config() }
}

fn run(nr_cpus: usize, config: Config, scenario: &str, until: u64) -> Board {
    let mut board = Board::with(device_tree(nr_cpus), config, scenario);
    board.run_until(until * MS);
    board
}

const HOGS: &str = "r @0: fifo 50, [run 1s]\nf @1ms: [run 1s]";

/// Throttling is noticed at the first tick beyond 950 ms (HZ = 250: at 952), and lasts until the timer, whose
/// grid began when the RT task was first queued. From then on the excess counts.
#[test]
fn a_fair_task_gets_the_rest_of_the_period() {
    let board = run(1, throttling(), HOGS, 4000);
    assert_snapshot!(board.timeline(50 * MS, 0, 3000 * MS), @"cpu0 rrrrrrrrrrrrrrrrrrrfrrrrrrrrrrrrrrrrrrrfrrrrrrrrrrrrrrrrrrrf");
    assert_snapshot!(board.switch_list(0), @r"
    0.000 main
    0.000 r
    952.000 main
    952.000 f
    1000.000 r
    1952.000 f
    2000.000 r
    2948.000 f
    3000.000 r
    3952.000 f
    ");
}

/// The CPU idles rather than run RT tasks beyond their share.
#[test]
fn a_throttled_cpu_idles() {
    let board = run(1, throttling(), "r @0: fifo 50, [run 1s]", 2000);
    assert_snapshot!(board.timeline(50 * MS, 0, 2000 * MS), @"cpu0 rrrrrrrrrrrrrrrrrrr.rrrrrrrrrrrrrrrrrrr.");
}

/// Each CPU has its own time; nobody borrows.
#[test]
fn cpus_are_throttled_by_themselves() {
    let scenario = "r @0: cpus 0, fifo 50, [run 1s]
        s @0: cpus 1, fifo 50, [run 300ms, sleep 100ms]
        f @0: cpus 0, [run 1s]
        g @0: cpus 1, [run 1s]";
    let board = run(2, throttling(), scenario, 2000);
    assert_snapshot!(board.timeline(50 * MS, 0, 2000 * MS), @r"
    cpu0 ffrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrf
    cpu1 ssssssggssssssggssssssggssssssggssssssgg
    ");
}

/// The timer of an RT task that sleeps for long ends by itself, and starts again with it.
#[test]
fn the_timer_ends_without_rt_tasks() {
    let mut board = run(1, throttling(), "r @0: fifo 50, [run 1ms, sleep 3s]", 500);
    for (until, queued) in [(500, true), (1500, false), (3500, true), (4500, false)] {
        board.run_until(until * MS);
        let timers = &board.kernel.inside().timers[CpuId(0)];
        assert_eq!(timers.is_queued(TimerKind::RtPeriod), queued, "at {until} ms");
    }
}

/// What switches it off: −1, the whole period, a runtime of 0 (which would throttle for ever), and 6.12.
#[test]
fn without_throttling_an_rt_task_keeps_the_cpu() {
    let table = [
        Config { rt_runtime: None, ..throttling() },
        Config { rt_runtime: Some(1000 * MS), ..throttling() },
        Config { rt_runtime: Some(0), ..throttling() },
        Config { rt_bandwidth: RtBandwidth::FairServer, ..config() },
    ];
    for config in table {
        let name = format!("{:?} {:?}", config.rt_bandwidth, config.rt_runtime);
        let board = run(1, config, HOGS, 3000);
        assert_eq!(board.switch_list(0), "0.000 main\n0.000 r\n", "{name}");
    }
}

/// A shorter period is served as often.
#[test]
fn other_periods() {
    let config = Config { rt_runtime: Some(20 * MS), rt_period: 50 * MS, ..throttling() };
    let board = run(1, config, HOGS, 400);
    assert_snapshot!(board.timeline(4 * MS, 0, 200 * MS), @"cpu0 rrrrrrfffffffrrrrffffffffrrrrrffffffffrrrrrfffffff");
    let share = board.cpu_time("r") as f64 / (400 * MS) as f64;
    assert!((0.38..0.43).contains(&share), "{share}");
}
