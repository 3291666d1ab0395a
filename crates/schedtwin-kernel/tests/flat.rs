// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of one timeline for all groups of a CPU (7.3): weights, shares of time, and that it is the old one without groups.
//!
//! The harness recomputes all sums of all levels, and those of the timeline, after each event.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config};
use schedtwin_kernel::config::{
    AttachFloor, CalcDelta, Config, EevdfForm, GroupShares, GroupTree, LagLimit, TgLoadAvg,
    UtilEstUpdate,
};
use schedtwin_types::*;

/// Task groups as 7.3 has them.
fn flat() -> Config {
    Config {
        fair_group_sched: true,
        base_slice_unscaled: 2_800_000,
        eevdf_form: EevdfForm::V7_3,
        lag_limit: LagLimit::MaxSliceAndTick,
        calc_delta: CalcDelta::Division,
        group_tree: GroupTree::Flat,
        group_shares: GroupShares::Concur,
        tg_load_avg: TgLoadAvg::WithRunnable,
        attach_floor: AttachFloor::Raised,
        util_est_update: UtilEstUpdate::InDequeue,
        ..config()
    }
}

/// With which weight a task competes.
fn h_load(board: &Board, name: &str) -> u64 {
    board.se(name).timeline_load.expect("has been queued").weight
}

/// nice 5 and nice 0 in a group that weighs one task of nice 0: what a group leaves to its tasks, each by its weight.
#[test]
fn a_task_weighs_what_its_groups_leave_to_it() {
    let config = Config { group_shares: GroupShares::Smp, ..flat() };
    let tasks = "a @0: group 1, nice 5, [run 1s]\nb @0: group 1, [run 1s]\nc @0: [run 1s]";
    let mut board = Board::with_groups(1, &config, &[(0, 1024)], tasks);
    board.run_until(10_000 * MS);
    assert_eq!(h_load(&board, "a"), 258_478);
    assert_eq!(h_load(&board, "b"), 790_097);
    assert_eq!(h_load(&board, "c"), 1 << 20);
    for (name, per_mille) in [("a", 123), ("b", 377), ("c", 500)] {
        let got = board.cpu_time(name) / (10 * MS);
        assert!(got.abs_diff(per_mille) <= 3, "{name}: {got}, not {per_mille}");
    }
}

/// Time goes by shares between groups and by weight within them, on every level.
#[test]
fn time_follows_shares_on_every_level() {
    let hogs = "a @0: group 1, [run 1s]
        b @0: group 2, [run 1s]
        c @0: group 2, [run 1s]
        d @0: group 3, [run 1s]
        e @0: group 3, nice 5, [run 1s]
        f @0: [run 1s]";
    // Root: group 1 with 1024, group 2 with 2048, f with 1024. Group 3 is in group 2.
    let groups = [(0, 1024), (0, 2048), (2, 1024)];
    let parts = [
        ("a", 1024 * 1000 / 4096),
        ("b", 2048 * 1000 / 4096 / 3),
        ("c", 2048 * 1000 / 4096 / 3),
        ("d", 2048 * 1000 / 4096 / 3 * 1024 / 1359),
        ("e", 2048 * 1000 / 4096 / 3 * 335 / 1359),
        ("f", 1024 * 1000 / 4096),
    ];
    // On one CPU `concur` is the same.
    for group_shares in [GroupShares::Smp, GroupShares::Concur] {
        let mut board = Board::with_groups(1, &Config { group_shares, ..flat() }, &groups, hogs);
        board.run_until(20_000 * MS);
        for (name, per_mille) in parts {
            let got = board.cpu_time(name) / (20 * MS);
            assert!(got.abs_diff(per_mille) <= 4, "{name}: {got}, not {per_mille}");
        }
    }
}

/// Three tasks of a group beside one of the root, on one CPU of four: the group weighs three, once the sum of what is runnable
/// has reached three; with `smp` it weighs one.
#[test]
fn a_group_of_three_gets_three_quarters() {
    let tasks = "a @0: group 1, cpus 0, [run 1s]
        b @0: group 1, cpus 0, [run 1s]
        c @0: group 1, cpus 0, [run 1s]
        d @0: group 1, cpus 0, [run 3ms, sleep 1ms]
        x @0: cpus 0, [run 1s]";
    for (group_shares, tree, per_mille) in [
        (GroupShares::Concur, GroupTree::Flat, 250),
        (GroupShares::Concur, GroupTree::Nested, 250),
        (GroupShares::Smp, GroupTree::Flat, 500),
        (GroupShares::Smp, GroupTree::Nested, 500),
    ] {
        let config = Config { group_shares, group_tree: tree, ..flat() };
        let mut board = Board::with_groups(4, &config, &[(0, 1024)], tasks);
        board.run_until(1_000 * MS);
        let before = board.cpu_time("x");
        board.run_until(9_000 * MS);
        let got = (board.cpu_time("x") - before) / (8 * MS);
        assert!(got.abs_diff(per_mille) <= 10, "{group_shares:?} {tree:?}: {got}");
    }
}

/// A light group's task waits its turn among all tasks, not behind a group: its deadline is far, as its weight is small, so
/// heavy tasks of other groups go first, and it loses no time by that.
#[test]
fn light_groups_wait_longer_and_get_their_part() {
    let tasks = "a @0: group 1, [run 1s]\nb @0: group 2, [run 1s]\nc @0: group 2, [run 1s]";
    let mut board = Board::with_groups(1, &flat(), &[(0, 102), (0, 1024)], tasks);
    board.run_until(20_000 * MS);
    let got = board.cpu_time("a") / (20 * MS);
    assert!(got.abs_diff(1000 * 102 / 1126) <= 3, "{got}");
}

/// Moves between groups, classes and nice values; delayed tasks; balancing: the harness verifies each step, and nobody starves.
#[test]
fn what_moves_keeps_the_books() {
    let mut board = Board::with_groups(
        4,
        &flat(),
        &[(0, 1024), (1, 512), (0, 300), (3, 2048)],
        "a @0: group 2, fork b, fork c, fork d, fork e, [run 5ms, sleep 3ms]
         b: [run 4ms, sleep 1ms, nice 3, run 2ms, nice -4]
         c: [run 2ms, sleep 1ms, group 3, run 1ms, group 2]
         d: [run 9ms, sleep 2ms, yield, run 1ms]
         e: cpus 1+3, [run 7ms, sleep 2ms, cpus 0+2, run 3ms, cpus 1+3]
         f @0: group 1, run 5ms, fifo 3, run 5ms, group 0, run 5ms, group 4, policy normal, [run 3ms, sleep 3ms]
         g @0: group 4, policy idle, [run 2ms, sleep 100us]
         h @0: group 4, slice 300us, [run 200us, sleep 1700us]
         i @3ms: group 3, policy batch, [run 8ms, sleep 4ms, policy normal, run 1ms, policy batch]
         x @0: [run 6ms, sleep 2ms]
         y @0: group 1, [run 6ms, sleep 2ms, slice 1ms, run 1ms, slice 4ms]",
    );
    board.run_until(3_000 * MS);
    for name in ["a", "b", "c", "d", "e", "f", "h", "i", "x", "y"] {
        assert!(board.cpu_time(name) > 150 * MS, "{name}: {}", board.cpu_time(name));
    }
}

/// Where nobody is in a group the timeline is that of before, task by task and switch by switch.
#[test]
fn without_tasks_in_groups_it_is_the_same_timeline() {
    let tasks = "a @0: fork b, fork c, fork d, [run 5ms, sleep 3ms]
        b: [run 4ms, sleep 1ms, nice 3, run 2ms, nice -4]
        c: [run 2ms, sleep 1ms]
        d: [run 9ms, sleep 2ms, yield, run 1ms]
        e @0: cpus 1, [run 7ms, sleep 2ms, cpus 0, run 3ms, cpus 1]
        f @0: run 5ms, fifo 3, run 5ms, policy normal, [run 3ms, sleep 3ms]
        g @0: policy idle, [run 2ms, sleep 100us]
        h @0: slice 300us, [run 200us, sleep 1700us]
        i @3ms: policy batch, [run 8ms, sleep 4ms]
        j @5ms: nice 7, slice 9ms, [run 8ms, sleep 700us]";
    let switches = |group_tree, groups: &[(u32, u64)]| {
        let mut board = Board::with_groups(2, &Config { group_tree, ..flat() }, groups, tasks);
        board.run_until(2_000 * MS);
        [board.switches(0), board.switches(1)]
    };
    let expected = switches(GroupTree::Nested, &[]);
    assert!(expected[0].len() > 500);
    assert!(switches(GroupTree::Flat, &[]) == expected);
    assert!(switches(GroupTree::Flat, &[(0, 1024), (1, 1024)]) == expected);
}

/// A group with a limit: the groups nest, and the limit holds.
#[test]
fn with_a_limit_groups_nest() {
    let tasks = "a @0: group 1, [run 1s]\nb @0: group 2, [run 1s]\nc @0: [run 1s]";
    let mut board = Board::with_groups(1, &flat(), &[(0, 1024), (0, 1024)], tasks);
    board.kernel.tg_set_cfs_bandwidth(TaskGroupId(1), 100 * MS, Some(20 * MS), 0);
    board.run_until(10_000 * MS);
    for (name, per_mille) in [("a", 200), ("b", 400), ("c", 400)] {
        let got = board.cpu_time(name) / (10 * MS);
        assert!(got.abs_diff(per_mille) <= 12, "{name}: {got}, not {per_mille}");
    }
}
