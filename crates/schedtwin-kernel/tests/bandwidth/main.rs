// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of `cpu.max`: quotas, bursts, nesting, migration, what a throttled group looks like.
//!
//! The harness recomputes all sums of all levels after each event, throttled groups included.

#[allow(dead_code, reason = "the harness serves other files too")]
#[path = "../harness/mod.rs"]
mod harness;
mod random;
mod task;

use harness::{Board, MS, cfs_config, config, device_tree};
use schedtwin_kernel::config::{
    CalcDelta, CfsPeriodTimer, CfsThrottle, CfsTunables, CfsUnthrottle, Config, EevdfForm,
    GroupTree, LagLimit, ReweightEntity,
};
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_kernel::sched::fair::bandwidth::CpuStat;
use schedtwin_types::*;

const ROOT: CfsRqId = CfsRqId(0);

/// With periods that begin at multiples of themselves: 6.12 and 6.1, whose queues leave as a whole, and 6.18, 7.3 and 7.3 with
/// groups that nest, whose tasks leave one by one.
fn configs() -> [Config; 5] {
    let eevdf = Config {
        fair_group_sched: true,
        base_slice_unscaled: 2_800_000,
        cfs_period_timer: CfsPeriodTimer::Aligned,
        ..config()
    };
    let tunables = CfsTunables {
        latency: 6 * MS,
        min_granularity: MS * 3 / 4,
        wakeup_granularity: MS,
        idle_min_granularity: MS * 3 / 4,
    };
    let cfs = Config {
        fair_group_sched: true,
        cfs_period_timer: CfsPeriodTimer::Aligned,
        cfs_unthrottle: CfsUnthrottle::Remote,
        ..cfs_config(tunables)
    };
    let at_pick = Config {
        cfs_throttle: CfsThrottle::TaskAtPick,
        eevdf_form: EevdfForm::V6_18,
        reweight_entity: ReweightEntity::Placed,
        ..eevdf.clone()
    };
    let nested = Config {
        cfs_throttle: CfsThrottle::TaskAtCharge,
        eevdf_form: EevdfForm::V7_3,
        calc_delta: CalcDelta::Division,
        lag_limit: LagLimit::MaxSliceAndTick,
        ..eevdf.clone()
    };
    let flat = Config { group_tree: GroupTree::Flat, ..nested.clone() };
    [eevdf, cfs, at_pick, nested, flat]
}

/// Whether tasks leave one by one.
fn by_task(config: &Config) -> bool {
    config.cfs_throttle != CfsThrottle::Queue
}

/// Groups, each (group above, quota in ms of 100 ms; 0: no limit); the first is number 1.
fn board(nr_cpus: usize, config: &Config, groups: &[(u32, u64)], scenario: &str) -> Board {
    let mut board = Board::with(device_tree(nr_cpus), config.clone(), scenario);
    for (parent, quota) in groups {
        let group = board.kernel.new_task_group(TaskGroupId(*parent), 1024);
        if *quota != 0 {
            board.kernel.tg_set_cfs_bandwidth(group, 100 * MS, Some(quota * MS), 0);
        }
    }
    board
}

fn stat(board: &Board, group: u32) -> CpuStat {
    board.kernel.inside().groups[TaskGroupId(group)].bandwidth.stat
}

fn cfs(board: &Board, group: u32, cpu: usize) -> &schedtwin_kernel::sched::CfsRq {
    let inside = board.kernel.inside();
    &inside.cfs[inside.groups[TaskGroupId(group)].cfs_rq[cpu]]
}

/// 20 ms of 100 ms for a hog: four slices, then it waits for the next period; what it ran beyond them until the tick is paid
/// back.
#[test]
fn a_quota_is_four_slices() {
    for config in configs() {
        let mut board = board(1, &config, &[(0, 20)], "a @100ms: group 1, [run 1s]");
        board.run_until(1_990 * MS);
        let ran = board.cpu_time("a");
        // 19 periods, and a tick at most.
        assert!(
            (19 * 20 * MS..=19 * 20 * MS + 4 * MS + MS).contains(&ran),
            "{:?}: {ran}",
            config.fair
        );
        let stat = stat(&board, 1);
        assert!(stat.nr_throttled == 18, "{stat:?}");
        assert!(stat.nr_periods >= stat.nr_throttled, "{stat:?}");
        let throttled = stat.throttled_time / MS;
        assert!((18 * 80 - 12..=18 * 80).contains(&throttled), "{throttled} ms");
        assert_eq!((stat.nr_bursts, stat.burst_time), (0, 0));
    }
}

/// While it is throttled a group counts nowhere above, weighs nothing, and its averages stand still.
#[test]
fn a_throttled_group_weighs_nothing() {
    for config in configs() {
        let scenario = "a @0: group 1, [run 1s]\nb @0: group 2, [run 1s]";
        let mut board = board(1, &config, &[(0, 10), (1, 0)], scenario);
        board.run_until(60 * MS);
        let inside = board.kernel.inside();
        let root = &inside.cfs[ROOT];
        assert_eq!((root.h_nr_queued, root.nr_queued, root.load_weight), (0, 0, 0));
        assert_eq!(inside.rq[CpuId(0)].nr_running, 0);
        assert!(board.kernel.idle_cpu(CpuId(0)));
        let (outer, inner) = (cfs(&board, 1, 0), cfs(&board, 2, 0));
        assert!(outer.bandwidth.throttled && !inner.bandwidth.throttled);
        assert_eq!((outer.bandwidth.throttle_count, inner.bandwidth.throttle_count), (1, 1));
        // A whole queue keeps its tasks; one whose tasks have left has none.
        let left = if by_task(&config) { (0, 0) } else { (2, 1) };
        assert_eq!((outer.h_nr_queued, inner.h_nr_queued), left);
        let before = (outer.avg.util_avg, inner.avg.load_avg, outer.avg.last_update_time);
        assert!(before.0 > 0 && before.1 > 0);
        board.run_until(98 * MS);
        let (outer, inner) = (cfs(&board, 1, 0), cfs(&board, 2, 0));
        let after = (outer.avg.util_avg, inner.avg.load_avg, outer.avg.last_update_time);
        assert_eq!(before, after, "{:?}", config.fair);
    }
}

/// A group on four CPUs shares one quota, whoever is first.
#[test]
fn a_quota_is_shared_by_all_cpus() {
    for config in configs() {
        let hogs = "a @0: group 1, cpus 0, [run 1s]
            b @0: group 1, cpus 1, [run 1s]
            c @0: group 1, cpus 2, [run 1s]
            d @0: group 1, cpus 3, [run 1s]
            x @0: cpus 3, [run 1s]";
        let mut board = board(4, &config, &[(0, 60)], hogs);
        board.run_until(4_990 * MS);
        let total: u64 = ["a", "b", "c", "d"].iter().map(|name| board.cpu_time(name)).sum();
        // Each CPU may be late by a tick, and pays it back.
        let most = 50 * 60 * MS + 4 * 4 * MS;
        assert!((48 * 60 * MS..=most).contains(&total), "{:?}: {total}", config.fair);
        let x = board.cpu_time("x");
        assert!(x + board.cpu_time("d") > 4_980 * MS, "who is beside it has the rest: {x}");
    }
}

/// A child gets no more than what is above it leaves, whatever it is allowed itself.
#[test]
fn limits_nest() {
    for config in configs() {
        for (outer, inner) in [(30, 10), (10, 30)] {
            let hogs = "a @0: group 2, [run 1s]\nb @0: group 1, [run 1s]";
            let mut board = board(1, &config, &[(0, outer), (1, inner)], hogs);
            board.run_until(9_990 * MS);
            let (a, b) = (board.cpu_time("a") / MS, board.cpu_time("b") / MS);
            let (most_a, most) = (100 * inner.min(outer), 100 * outer);
            assert!(a <= most_a + 5, "{:?}: {a} of {most_a}", config.fair);
            assert!((most - 60..=most + 5).contains(&(a + b)), "{:?}: {a} + {b}", config.fair);
        }
    }
}

/// What was not used in some periods may be used in one, as far as the burst goes.
#[test]
fn bursts_use_what_was_left() {
    for config in configs() {
        let scenario = "a @0: group 1, [sleep 290ms, run 25ms]";
        let mut board = board(1, &config, &[(0, 10)], scenario);
        board.kernel.tg_set_cfs_bandwidth(TaskGroupId(1), 100 * MS, Some(10 * MS), 10 * MS);
        board.run_until(5_000 * MS);
        let bursts = stat(&board, 1);
        assert!(bursts.nr_bursts > 5 && bursts.burst_time > 5 * 5 * MS, "{bursts:?}");
        assert!(bursts.burst_time <= bursts.nr_bursts * 10 * MS, "{bursts:?}");
    }
}

/// Wakeups below a throttled group reach nobody; a task that leaves the group runs at once; one that comes waits; RT tasks do not
/// care.
#[test]
fn coming_and_going() {
    for config in configs() {
        let scenario = "hog @0: group 1, [run 1s]
            leaves @0: group 1, run 1ms, sleep 50ms, group 0, [run 1s]
            comes @0: run 40ms, group 1, [run 1s]
            wakes @0: group 1, [run 100us, sleep 3ms]
            rt @0: group 1, fifo 3, [run 1ms, sleep 9ms]
            moves @0: group 1, [run 300us, cpus 0, run 300us, cpus 1, sleep 700us]
            nice @0: group 1, [run 500us, nice 3, run 500us, nice -3, policy idle, run 1ms, policy normal]";
        let mut board = board(2, &config, &[(0, 20)], scenario);
        board.run_until(3_000 * MS);
        let limited = ["hog", "comes", "wakes", "moves", "nice"].iter().map(|n| board.cpu_time(n));
        let limited: u64 = limited.sum::<u64>() / MS;
        // Plus what `comes` ran before it came.
        assert!(
            (29 * 20..=30 * 20 + 40 + 2 * 5).contains(&limited),
            "{:?}: {limited}",
            config.fair
        );
        assert!(board.cpu_time("leaves") > 1_500 * MS, "{}", board.cpu_time("leaves"));
        assert!(board.cpu_time("rt") > 290 * MS, "{}", board.cpu_time("rt"));
    }
}

/// A queue that becomes empty gives back what it has beyond 1 ms.
#[test]
fn slack_goes_back() {
    for config in configs() {
        let scenario = "a @100ms: group 1, run 500us, [sleep 1s]";
        let mut board = board(1, &config, &[(0, 20)], scenario);
        board.run_until(110 * MS);
        let left = cfs(&board, 1, 0).bandwidth.runtime_remaining;
        assert_eq!(left, MS as i64, "{:?} {:?}", config.cfs_throttle, config.group_tree);
        let pool = board.kernel.inside().groups[TaskGroupId(1)].bandwidth.runtime;
        // It ran 0.5 ms, and what the way to the group's queue took.
        assert!((18 * MS..=18 * MS + 500_000).contains(&pool), "{pool}");
    }
}

/// The pool's timer stops when nobody uses it, and starts again.
#[test]
fn the_timer_stops() {
    for config in configs() {
        let scenario = "a @0: group 1, [run 1ms, sleep 1s]";
        let mut board = board(1, &config, &[(0, 20)], scenario);
        let active = |b: &Board| b.kernel.inside().groups[TaskGroupId(1)].bandwidth.period_active;
        board.run_until(150 * MS);
        assert!(active(&board), "{:?} {:?}", config.cfs_throttle, config.group_tree);
        board.run_until(350 * MS);
        assert!(!active(&board), "two periods without a request");
        board.run_until(1_100 * MS);
        assert!(active(&board));
        let stat = stat(&board, 1);
        assert!(stat.nr_periods <= 5 && stat.nr_throttled == 0, "{stat:?}");
    }
}

/// Limits are changed and taken away while queues are throttled.
#[test]
fn limits_change() {
    for config in configs() {
        let scenario = "a @0: group 2, [run 1s]\nb @0: group 1, [run 1s]";
        let mut board = board(1, &config, &[(0, 10), (1, 5)], scenario);
        board.run_until(50 * MS);
        assert!(cfs(&board, 1, 0).bandwidth.throttled);
        let inner = TaskGroupId(2);
        board.kernel.tg_set_cfs_bandwidth(inner, 50 * MS, Some(50 * MS), 0);
        board.kernel.verify();
        board.run_until(80 * MS);
        board.kernel.tg_set_cfs_bandwidth(TaskGroupId(1), 100 * MS, None, 0);
        board.kernel.verify();
        board.run_until(1_080 * MS);
        assert!(board.cpu_time("a") + board.cpu_time("b") > 990 * MS, "nothing is limited");
        let below = board.kernel.new_task_group(inner, 1024);
        assert_eq!(board.kernel.inside().groups[below].bandwidth.quota, None);
    }
}
