// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong rules of earlier releases (`config/bugs.rs`): with each something comes out otherwise than without.

#[allow(dead_code, reason = "it serves other files too")]
mod board;
#[allow(dead_code, reason = "it serves other files too")]
mod harness;

use board::{Do, fifo, machine, pin, sleep, uniform};
use harness::{Board, MS, device_tree};
use schedtwin_kernel::config::{Bugs, CfsPeriodTimer, Config, Uclamp};
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_types::*;

fn with_groups(bugs: Bugs) -> Config {
    Config {
        fair_group_sched: true,
        base_slice_unscaled: 2_800_000,
        cfs_period_timer: CfsPeriodTimer::Aligned,
        bugs,
        ..harness::config()
    }
}

/// Returns the smallest weight that a group's entity on CPU 0 has while it waits to be dequeued.
fn weight_while_delayed(bugs: Bugs) -> u64 {
    let scenario = "a @0: group 1, cpus 0, [run 1ms, sleep 9ms]\nh @0: cpus 0, [run 1s]
        b @0: group 1, cpus 1, [run 1s]";
    let mut board = Board::with_groups(2, &with_groups(bugs), &[(0, 1024)], scenario);
    let mut least = u64::MAX;
    for step in 1..400 {
        board.run_until(step * MS / 2);
        let inside = board.kernel.inside();
        let group = &inside.se[inside.groups[TaskGroupId(1)].se[0]];
        if group.sched_delayed {
            least = least.min(group.load.weight >> 10);
        }
    }
    least
}

#[test]
fn a_delayed_group_keeps_its_weight() {
    let correct = weight_while_delayed(Bugs::default());
    let wrong = weight_while_delayed(Bugs { delayed_group_weight: true, ..Bugs::default() });
    assert!(correct > 2 * wrong, "{correct} {wrong}");
}

/// A `SCHED_IDLE` task runs for 3 ms now and then, while a normal one wakes each millisecond.
#[test]
fn an_idle_task_gives_way_at_once() {
    let rounds = |bugs| {
        let scenario = "i @0: policy idle, [run 3ms, sleep 17ms]
            n @0: [run 50us, sleep 950us]";
        let mut board = Board::with(device_tree(1), with_groups(bugs), scenario);
        board.run_until(1_000 * MS);
        board.cpu_time("n") / 50_000
    };
    let correct = rounds(Bugs::default());
    let wrong = rounds(Bugs { protected_idle_task: true, ..Bugs::default() });
    assert!(correct > 990 && wrong < 900, "{correct} {wrong}");
}

/// A normal task of an idle group runs, and a `SCHED_IDLE` task of a normal group wakes.
#[test]
fn groups_are_compared_before_tasks() {
    let ran = |bugs| {
        let scenario = "i @0: group 1, policy idle, [run 100us, sleep 900us]
            n @0: group 2, [run 1s]";
        let mut board = Board::with_groups(1, &with_groups(bugs), &[(0, 1024); 2], scenario);
        board.kernel.sched_group_set_idle(TaskGroupId(2), true);
        board.run_until(400 * MS);
        board.cpu_time("i") / 1_000
    };
    let correct = ran(Bugs::default());
    let wrong = ran(Bugs { idle_preempt_by_task: true, ..Bugs::default() });
    assert!(correct > 38_000 && wrong < 30_000, "{correct} {wrong}");
}

/// A quota that is enough for one CPU's tick: who was throttled last gets it again.
#[test]
fn throttled_queues_take_turns() {
    let least = |bugs| {
        let scenario = "a @0: group 1, cpus 0, [run 1s]\nb @0: group 1, cpus 1, [run 1s]
            c @0: group 1, cpus 2, [run 1s]\nd @0: group 1, cpus 3, [run 1s]";
        let mut board = Board::with_groups(4, &with_groups(bugs), &[(0, 1024)], scenario);
        board.kernel.tg_set_cfs_bandwidth(TaskGroupId(1), 100 * MS, Some(2 * MS), 0);
        board.run_until(4_000 * MS);
        ["a", "b", "c", "d"].map(|name| board.cpu_time(name) / MS).into_iter().min().unwrap()
    };
    let correct = least(Bugs::default());
    let wrong = least(Bugs { throttled_first: true, ..Bugs::default() });
    assert!(correct > 12 && wrong < 8, "{correct} {wrong}");
}

/// Threads on many CPUs that use little of their slices.
#[test]
fn slices_outlive_their_period() {
    let throttled = |bugs| {
        let line =
            |cpu: usize| format!("{cpu} @0: group 1, cpus {cpu}, [run 500us, sleep 39500us]\n");
        let scenario: String = (0..8).map(line).collect();
        let mut board = Board::with_groups(8, &with_groups(bugs), &[(0, 1024)], &scenario);
        board.kernel.tg_set_cfs_bandwidth(TaskGroupId(1), 100 * MS, Some(16 * MS), 0);
        board.run_until(4_000 * MS);
        board.kernel.inside().groups[TaskGroupId(1)].bandwidth.stat.nr_throttled
    };
    let correct = throttled(Bugs::default());
    let wrong = throttled(Bugs { slices_expire: true, ..Bugs::default() });
    assert!(correct < wrong, "{correct} {wrong}");
}

/// What a fair hog has had beside a FIFO hog on a CPU of a quarter of the capacity, ms by second.
fn starved(bugs: Bugs, fair: Vec<Do>) -> Vec<Ns> {
    let opps: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000)];
    let tree = machine(&[(1, 256, opps), (1, 1024, opps)]);
    let config = Config { bugs, ..Config::linux_6_12() };
    let program = [vec![pin(0)], fair].concat();
    let hog = vec![pin(0), Do::Start(program), fifo(50), Do::Run(20_000 * MS)];
    let mut board = board::Board::new(tree, config, hog);
    board.run_until(6_000 * MS);
    let of = |second: Ns| board.cpu_time(second * 1_000 * MS, (second + 1) * 1_000 * MS);
    // Idle is 0, then two stoppers and the first task.
    (0..6).map(|second| of(second).get(&4).copied().unwrap_or(0) / MS).collect()
}

#[test]
fn a_fair_server_is_charged_in_time() {
    let hog = || vec![Do::Run(20_000 * MS)];
    let correct: Ns = starved(Bugs::default(), hog()).into_iter().sum();
    let wrong = Bugs { fair_server_scaled: true, ..Bugs::default() };
    let wrong: Ns = starved(wrong, hog()).into_iter().sum();
    assert!((200..=320).contains(&correct) && wrong > 3 * correct, "{correct} {wrong}");
}

/// A fair task that comes back when an RT hog has come, after the timer has found nobody.
#[test]
fn a_fair_server_starts_again() {
    let had = |bugs| {
        let fair = vec![pin(0), Do::Run(5 * MS), sleep(2_000 * MS), Do::Run(20_000 * MS)];
        let hog = vec![pin(0), Do::Start(fair), sleep(500 * MS), fifo(50), Do::Run(20_000 * MS)];
        let config = Config { bugs, ..Config::linux_6_12() };
        let mut board = board::Board::new(uniform(1), config, hog);
        board.run_until(6_000 * MS);
        board.cpu_time(1_500 * MS, 6_000 * MS).get(&3).copied().unwrap_or(0) / MS
    };
    let correct = had(Bugs::default());
    let wrong = had(Bugs { fair_server_stuck: true, ..Bugs::default() });
    assert!((150..=260).contains(&correct) && wrong == 0, "{correct} {wrong}");
}

/// A hog is capped while it runs, on a CPU with a clock of its own.
#[test]
fn a_cap_lowers_a_busy_cpus_clock() {
    let opps: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];
    let clock = |bugs| {
        let capped = SchedAttr { util_max: Some(200), ..SchedAttr::default() };
        let hog =
            vec![Do::Run(200 * MS), Do::Call(Syscall::SchedSetattr(capped)), Do::Run(20_000 * MS)];
        let config =
            Config { fair_server_runtime: 0, uclamp: Uclamp::On, bugs, ..Config::linux_6_12() };
        let mut board = board::Board::new(machine(&[(1, 1024, opps)]), config, hog);
        board.run_until(1_000 * MS);
        let khz = |fact: &Fact| match fact.kind {
            FactKind::Frequency { khz, .. } => Some(khz),
            _ => None,
        };
        board.facts.iter().rev().find_map(khz)
    };
    assert_eq!(clock(Bugs::default()), Some(500_000));
    let wrong = Bugs { hold_above_cap: true, ..Bugs::default() };
    assert_eq!(clock(wrong), Some(2_000_000));
}

/// An RT task takes more than half of CPU 0, though never at a tick, and CPU 1 is idle.
#[test]
fn a_reduced_capacity_is_noticed() {
    let ran = |bugs| {
        let scenario = "r @500us: fifo 10, cpus 0, [run 2500us, sleep 1500us]
            h @0: cpus 0, run 20ms, cpus 0-1, [run 1s]";
        let mut board = Board::with(device_tree(2), with_groups(bugs), scenario);
        board.run_until(2_000 * MS);
        board.cpu_time("h") / MS
    };
    let correct = ran(Bugs::default());
    let wrong = ran(Bugs { reduced_capacity_ignored: true, ..Bugs::default() });
    assert!(correct > 1_800 && wrong < 1_000, "{correct} {wrong}");
}

/// Load that a queue keeps of a task that has become `SCHED_IDLE`.
#[test]
fn an_idle_policy_takes_load_off() {
    let load = |bugs| {
        let scenario = "a @0: run 200ms, policy idle, [run 1s]\nb @0: [run 1s]";
        let mut board = Board::with(device_tree(1), with_groups(bugs), scenario);
        let mut most = 0;
        for ms in 500..520 {
            board.run_until(ms * MS);
            if board.se("a").load.weight == 3 << 10 {
                most = most.max(board.kernel.inside().cfs[CfsRqId::root(CpuId(0))].avg.load_avg);
            }
        }
        most
    };
    let correct = load(Bugs::default());
    let wrong = load(Bugs { idle_policy_keeps_load: true, ..Bugs::default() });
    assert!(correct < 1_030 && wrong > 1_130, "{correct} {wrong}");
}

/// A heavy group whose only child is as light as can be, on four CPUs, beside a normal one.
#[test]
fn a_light_child_leaves_its_parent_its_weight() {
    let share = |bugs| {
        let line = |group: usize, cpu: usize| {
            format!("{} @0: group {group}, cpus {cpu}, [run 1s]\n", group * 10 + cpu)
        };
        let scenario: String = (0..4).flat_map(|cpu| [line(2, cpu), line(3, cpu)]).collect();
        let groups = [(0, 102_400), (1, 2), (0, 1024)];
        let mut board = Board::with_groups(4, &with_groups(bugs), &groups, &scenario);
        board.run_until(2_000 * MS);
        (0..4).map(|cpu| board.cpu_time(&(20 + cpu).to_string())).sum::<Ns>() / (80 * MS)
    };
    let correct = share(Bugs::default());
    let wrong = share(Bugs { group_load_zero: true, ..Bugs::default() });
    assert!(correct > 90 && wrong < 40, "{correct} {wrong}");
}
