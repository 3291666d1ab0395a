// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of task groups: shares, nesting, signals that climb, tasks that move.
//!
//! The harness recomputes all sums of all levels after each event.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, cfs_config, config};
use schedtwin_kernel::config::{CfsTunables, Config, GroupShares, TgLoadAvg};
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_types::*;

const ROOT: TaskGroupId = TaskGroupId::ROOT;

fn with_groups() -> Config {
    Config { fair_group_sched: true, base_slice_unscaled: 2_800_000, ..config() }
}

fn cfs_with_groups() -> Config {
    let tunables = CfsTunables {
        latency: 24 * MS,
        min_granularity: 3 * MS,
        wakeup_granularity: 4 * MS,
        idle_min_granularity: MS * 3 / 4,
    };
    Config { fair_group_sched: true, ..cfs_config(tunables) }
}

/// Time goes by shares between groups and by weight within them, whoever has more tasks.
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
    for config in [with_groups(), cfs_with_groups()] {
        let mut board = Board::with_groups(1, &config, &groups, hogs);
        board.run_until(20_000 * MS);
        for (name, per_mille) in parts {
            let got = board.cpu_time(name) / (20 * MS);
            assert!(
                got.abs_diff(per_mille) <= 4,
                "{:?} {name}: {got}, not {per_mille}",
                config.fair
            );
        }
    }
}

/// The machine's shares are split among the CPUs by load: three hogs to one, so 3/4 and 1/4.
#[test]
fn shares_are_split_by_load() {
    for config in [with_groups(), cfs_with_groups()] {
        let mut board = Board::with_groups(
            2,
            &config,
            &[(0, 1024)],
            "a @0: group 1, cpus 0, [run 1s]
             b @0: group 1, cpus 0, [run 1s]
             c @0: group 1, cpus 0, [run 1s]
             d @0: group 1, cpus 1, [run 1s]
             x @0: cpus 0, [run 1s]
             y @0: cpus 1, [run 1s]",
        );
        board.run_until(4_000 * MS);
        let group = &board.kernel.inside().groups[TaskGroupId(1)];
        let weights = group.se.iter().map(|se| board.kernel.inside().se[*se].load.weight >> 10);
        assert_eq!(weights.collect::<Vec<_>>(), [768, 256], "{:?}", config.fair);
        // Against a weight of 1024 that is 3/7 and 1/5.
        let share = |name| board.cpu_time(name) / (4 * MS);
        assert!(share("x").abs_diff(1000 * 1024 / 1792) <= 12, "{}", share("x"));
        assert!(share("d").abs_diff(1000 * 256 / 1280) <= 12, "{}", share("d"));
    }
}

/// The root's utilisation is that of the tasks below, however deep they are.
#[test]
fn utilisation_climbs_to_the_root() {
    let flat = "a @0: [run 3ms, sleep 7ms]\nb @5ms: [run 1ms, sleep 5ms]";
    let deep = "a @0: group 1, [run 3ms, sleep 7ms]\nb @5ms: group 3, [run 1ms, sleep 5ms]";
    let groups = [(0, 1024), (0, 1024), (2, 1024)];
    for config in [with_groups(), cfs_with_groups()] {
        let mut flat = Board::with_groups(1, &config, &groups, flat);
        let mut deep = Board::with_groups(1, &config, &groups, deep);
        // Each starts with half of what its own queue has free, so the beginnings differ; and who goes first
        // now and then.
        let (mut sum_flat, mut sum_deep) = (0, 0);
        for step in 50..250 {
            flat.run_until(step * 13 * MS);
            deep.run_until(step * 13 * MS);
            let util = |b: &Board| b.kernel.inside().cfs[CfsRqId::root(CpuId(0))].avg.util_avg;
            (sum_flat, sum_deep) = (sum_flat + util(&flat), sum_deep + util(&deep));
        }
        assert!(sum_deep.abs_diff(sum_flat) < sum_flat / 100, "{sum_deep} {sum_flat}");
    }
}

/// What has moved out leaves nothing behind: queues decay and leave their CPU's list.
#[test]
fn a_group_that_was_left_decays() {
    for config in [with_groups(), cfs_with_groups()] {
        let mut board = Board::with_groups(
            2,
            &config,
            &[(0, 1024), (1, 1024)],
            "a @0: group 2, run 50ms, group 0, [run 2ms, sleep 2ms]
             b @0: group 2, [run 50ms, sleep 5s]
             c @0: [run 3ms, sleep 1700us]",
        );
        board.run_until(40 * MS);
        assert!(board.kernel.inside().rq.iter().any(|rq| rq.leaf_cfs_rqs.len() == 2));
        board.run_until(4_000 * MS);
        for rq in board.kernel.inside().rq.iter() {
            assert_eq!(rq.leaf_cfs_rqs, [], "{:?}, {:?}", config.fair, rq.cpu);
        }
        assert_eq!(board.kernel.inside().groups[TaskGroupId(2)].load_avg, 0);
        assert_eq!(board.kernel.inside().tasks[board.task("a")].group, ROOT);
    }
}

/// Children are in their parent's group, wherever they are started and balanced to.
#[test]
fn children_inherit_the_group() {
    let mut board = Board::with_groups(
        4,
        &with_groups(),
        &[(0, 1024), (1, 512)],
        "a @0: group 2, fork b, fork c, fork d, fork e, [run 5ms, sleep 3ms]
         b: [run 4ms, sleep 1ms]
         c: [run 2ms, sleep 1ms]
         d: [run 9ms, sleep 2ms]
         e: cpus 1+3, [run 7ms, sleep 2ms, cpus 0+2, run 3ms, cpus 1+3]
         x @0: [run 6ms, sleep 2ms]
         y @0: group 1, [run 6ms, sleep 2ms]",
    );
    board.run_until(2_000 * MS);
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(board.kernel.inside().tasks[board.task(name)].group, TaskGroupId(2), "{name}");
        assert!(board.cpu_time(name) > 200 * MS, "{name}: {}", board.cpu_time(name));
    }
}

/// An RT task keeps its group for later, and an attached one that turns real-time leaves no load there.
#[test]
fn classes_and_groups() {
    let mut board = Board::with_groups(
        1,
        &with_groups(),
        &[(0, 1024)],
        "a @0: group 1, run 5ms, fifo 3, run 5ms, group 0, run 5ms, group 1, policy normal, [run 3ms, sleep 3ms]
         b @0: [run 5ms, sleep 1ms]",
    );
    board.run_until(1_000 * MS);
    assert_eq!(board.kernel.inside().tasks[board.task("a")].group, TaskGroupId(1));
    assert!(board.cpu_time("a") > 300 * MS);
}

fn files(group: u32) -> TaskGroupFiles {
    TaskGroupFiles::none(TaskGroupId(group))
}

/// `cpu.weight` and `cpu.weight.nice`, before tasks come and while they run: 200 to 100, then 335 (nice 5) to 1024.
#[test]
fn weights_are_written() {
    for config in [with_groups(), cfs_with_groups()] {
        let hogs = "a @0: group 1, [run 1s]\nb @0: group 2, [run 1s]";
        let mut board = Board::with_groups(1, &config, &[(0, 1024), (0, 1024)], hogs);
        let weight = Some(GroupWeight::Weight(200));
        board.kernel.write_task_group(&TaskGroupFiles { weight, ..files(1) });
        board.run_until(3_000 * MS);
        let share = board.cpu_time("a") / (3 * MS);
        assert!(share.abs_diff(667) <= 5, "{:?}: {share}", config.fair);
        let before = (board.cpu_time("a"), board.cpu_time("b"));
        for (group, nice) in [(1, 5), (2, 0)] {
            let weight = Some(GroupWeight::Nice(nice));
            board.kernel.write_task_group(&TaskGroupFiles { weight, ..files(group) });
        }
        board.kernel.verify();
        board.run_until(13_000 * MS);
        let share = (board.cpu_time("a") - before.0) / (10 * MS);
        assert!(share.abs_diff(1000 * 335 / 1359) <= 5, "{:?}: {share}", config.fair);
        assert_eq!(board.kernel.inside().groups[TaskGroupId(1)].shares, 335 << 10);
    }
}

/// An idle group has a weight of 3 and gives way at once, whatever the policies of those in it; its tasks count as
/// idle above it, and no longer when it is not idle any more.
#[test]
fn idle_groups_give_way() {
    for config in [with_groups(), cfs_with_groups()] {
        let tasks = "a @0: group 2, [run 1s]
            b @0: group 2, policy idle, [run 1s]
            c @100ms: [run 2ms, sleep 8ms]";
        let mut board = Board::with_groups(1, &config, &[(0, 1024), (1, 1024)], tasks);
        let counts = |b: &Board, group: u32| {
            let inside = b.kernel.inside();
            let cfs = &inside.cfs[inside.groups[TaskGroupId(group)].cfs_rq[0]];
            (cfs.h_nr_queued, cfs.h_nr_idle)
        };
        board.run_until(50 * MS);
        assert_eq!([counts(&board, 2), counts(&board, 0)], [(2, 1), (2, 1)]);
        assert!(!board.kernel.sched_idle_cpu(CpuId(0)));
        // The group in the middle: what is in its child counts as idle above it.
        board.kernel.write_task_group(&TaskGroupFiles { idle: Some(true), ..files(1) });
        board.kernel.verify();
        assert_eq!(
            [counts(&board, 2), counts(&board, 1), counts(&board, 0)],
            [(2, 1), (2, 1), (2, 2)]
        );
        assert!(board.kernel.sched_idle_cpu(CpuId(0)), "both are below an idle group");
        let shares = |b: &Board| b.kernel.inside().groups[TaskGroupId(1)].shares >> 10;
        assert_eq!(shares(&board), 3);
        board.run_until(3_100 * MS);
        let ran = board.cpu_time("c");
        assert!(ran >= 3_000 * MS / 5 - 4 * MS, "{:?}: {ran} of 600 ms", config.fair);
        board.kernel.write_task_group(&TaskGroupFiles { idle: Some(false), ..files(1) });
        board.kernel.verify();
        assert_eq!(shares(&board), 1024, "of a new group");
        assert_eq!(counts(&board, 0).1, 1);
    }
}

/// Four compilers in one session, an editor in another, and a service in a cgroup that calls `setsid()` too.
const SESSIONS: &str = "a @0: setsid 1, [run 1s]
    b @0: setsid 1, [run 1s]
    c @0: setsid 1, [run 1s]
    d @0: setsid 1, [run 1s]
    e @0: setsid 2, [run 1s]
    f @0: group 1, setsid 2, [run 1s]";

/// With autogroups sessions share, by the nice values of their autogroups, and tasks within them; without, tasks do. A cgroup comes first.
#[test]
fn sessions_share_like_groups() {
    let parts = |sched_autogroup: bool, weight: u64| match sched_autogroup {
        // Root: session 1 with 1024, session 2 with its weight, group 1 with 1024.
        true => [1024, weight, 1024].map(|shares| shares * 1000 / (2048 + weight)),
        // Five tasks and group 1.
        false => [667, 167, 167],
    };
    for base in [with_groups(), cfs_with_groups()] {
        for (sched_autogroup, nice, weight) in
            [(true, 0, 1024), (true, 5, 335), (true, -5, 3121), (false, 0, 0)]
        {
            let config = Config { sched_autogroup, ..base.clone() };
            let mut board = Board::with_groups(1, &config, &[(0, 1024)], SESSIONS);
            for nice in [0, 0, nice] {
                board.kernel.new_session(nice);
            }
            board.run_until(20_000 * MS);
            let of = |names: &[&str]| names.iter().map(|n| board.cpu_time(n)).sum::<u64>();
            let got = [&["a", "b", "c", "d"][..], &["e"], &["f"]].map(|n| of(n) / (20 * MS));
            for (got, expected) in got.iter().zip(parts(sched_autogroup, weight)) {
                let what = format!("{:?} {sched_autogroup} {nice}: {got:?}", config.fair);
                assert!(got.abs_diff(expected) <= 6, "{what}, not {expected}");
            }
        }
    }
}

/// Children are in their parent's session, who leaves its cgroup goes back to its session, and who exits leaves nothing there.
#[test]
fn sessions_are_inherited_and_left() {
    for base in [with_groups(), cfs_with_groups()] {
        let config = Config { sched_autogroup: true, ..base };
        let scenario = "a @0: setsid 1, fork b, run 20ms, group 1, run 20ms, group 0, run 20ms
            b: run 40ms";
        let mut board = Board::with_groups(1, &config, &[(0, 1024)], scenario);
        board.kernel.new_session(0);
        board.kernel.new_session(0);
        let session = TaskGroupId(3);
        let mut seen = std::collections::BTreeSet::new();
        for ms in 1..120 {
            board.run_until(ms * MS);
            let inside = board.kernel.inside();
            for name in ["a", "b"] {
                let task = &inside.tasks[board.task(name)];
                seen.insert((name, task.group.0, task.exiting));
                let entity = inside.se[task.se].cfs_rq;
                assert_eq!(inside.groups[task.group].cfs_rq[0], entity, "{name} at {ms} ms");
            }
        }
        let expected = [
            ("a", 0, true),
            ("a", 1, false),
            ("a", session.0, false),
            ("b", 0, true),
            ("b", session.0, false),
        ];
        assert!(expected.iter().all(|state| seen.contains(state)), "{seen:?}");
        board.run_until(3_000 * MS);
        let inside = board.kernel.inside();
        assert_eq!(inside.groups[session].load_avg, 0, "{:?}", config.fair);
        let queue = &inside.cfs[inside.groups[session].cfs_rq[0]];
        assert_eq!((queue.h_nr_queued, queue.avg.util_avg), (0, 0));
    }
}

/// `group_shares`: on each of four CPUs a task of a group competes with one of the root. Four tasks in 7.3's sums count as
/// nearly four, so as three.
#[test]
fn a_group_weighs_as_much_as_its_tasks_or_cpus() {
    use GroupShares::{Concur, Max, Smp, Tasks, Up};
    let weight = |group_shares| {
        let config = Config { group_shares, tg_load_avg: TgLoadAvg::WithRunnable, ..with_groups() };
        let mut scenario = String::new();
        for cpu in 0..4 {
            scenario += &format!("a{cpu} @0: group 1, cpus {cpu}, [run 1s]\n");
            scenario += &format!("x{cpu} @0: cpus {cpu}, [run 1s]\n");
        }
        let mut board = Board::with_groups(4, &config, &[(0, 1024)], &scenario);
        board.run_until(3_000 * MS);
        let inside = board.kernel.inside();
        let group = &inside.groups[TaskGroupId(1)];
        let load = group.runnable_avg;
        assert!((3 << 10..4 << 10).contains(&load), "{load}");
        inside.se[group.se[2]].load.weight >> 10
    };
    for (form, expected) in [(Up, 1024), (Smp, 256), (Concur, 768), (Max, 1024), (Tasks, 768)] {
        let got = weight(form);
        assert!(got.abs_diff(expected) <= 2, "{form:?}: {got}");
    }
}
