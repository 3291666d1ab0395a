// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that leave a throttled group one by one: when they leave, where they wait, and how they come back.

use super::harness::{Board, MS};
use super::{board, by_task, cfs, configs};
use schedtwin_types::*;

/// Whether a task waits in limbo.
fn in_limbo(board: &Board, name: &str) -> bool {
    let task = &board.kernel.inside().tasks[board.task(name)];
    task.throttled && !board.se(name).on_rq
}

/// A call takes 40 ms, four times the quota. Where the queue leaves as a whole, its task is stopped within the call; else it leaves at
/// the end of it, and the group pays for that in the following periods.
#[test]
fn a_task_in_the_kernel_goes_on() {
    for config in configs() {
        let scenario = "a @0: group 1, [krun 40ms, run 1ms]\nother @0: [run 1s]";
        let mut board = board(1, &config, &[(0, 10)], scenario);
        board.run_until(70 * MS);
        let ran = board.cpu_time("a") / MS;
        assert!(cfs(&board, 1, 0).bandwidth.throttled);
        assert!(!in_limbo(&board, "a"), "{:?}", config.cfs_throttle);
        let form = config.cfs_throttle;
        match by_task(&config) {
            true => assert!((30..40).contains(&ran), "{form:?}: {ran} ms"),
            false => assert!((10..15).contains(&ran), "{form:?}: {ran} ms"),
        }
        board.run_until(95 * MS);
        assert_eq!(in_limbo(&board, "a"), by_task(&config), "{form:?}");
        // 40 ms on credit: until three more periods have begun there is nothing to run with.
        board.run_until(295 * MS);
        let ran = board.cpu_time("a") / MS;
        assert!((28..=42).contains(&ran), "{form:?}: {ran} ms");
    }
}

/// A task that sleeps while its group is throttled is queued when it wakes, runs, and leaves as soon as it returns to user space.
#[test]
fn a_wakee_leaves_at_its_first_return() {
    for config in configs() {
        let tasks = "hog @0: group 1, [run 1s]\nwakee @0: group 1, sleep 50ms, [run 1s]";
        let mut board = board(1, &config, &[(0, 10)], tasks);
        board.run_until(40 * MS);
        let before = board.cpu_time("wakee");
        assert!(cfs(&board, 1, 0).bandwidth.throttled);
        board.run_until(90 * MS);
        let form = config.cfs_throttle;
        assert!(board.cpu_time("wakee") < before + MS / 10, "{form:?}");
        assert_eq!(in_limbo(&board, "wakee"), by_task(&config), "{form:?}");
        let expected = if by_task(&config) { 2 } else { 0 };
        assert_eq!(cfs(&board, 1, 0).throttled_limbo_list.len(), expected, "{form:?}");
        board.run_until(105 * MS);
        let left = cfs(&board, 1, 0).throttled_limbo_list.len();
        assert_eq!((left, board.cpu_time("wakee") > before), (0, true), "{form:?}");
    }
}

/// The averages of a group stand still from the time when its last task has left, not before.
#[test]
fn the_clock_stops_with_the_last_task() {
    for config in configs().into_iter().filter(by_task) {
        let tasks = "call @0: group 1, [krun 30ms, run 1ms]\nhog @0: group 1, [run 1s]";
        let mut board = board(1, &config, &[(0, 10)], tasks);
        board.run_until(32 * MS);
        let queue = cfs(&board, 1, 0);
        assert!(queue.bandwidth.throttled && queue.h_nr_queued == 1, "{:?}", config.cfs_throttle);
        assert!(!queue.bandwidth.pelt_clock_throttled && queue.on_list);
        board.run_until(95 * MS);
        let queue = cfs(&board, 1, 0);
        assert!(queue.bandwidth.pelt_clock_throttled && !queue.on_list);
        assert_eq!(queue.h_nr_queued, 0);
    }
}

/// A task in limbo is moved: it waits on where its group is throttled, and is queued where that is not.
#[test]
fn limbo_moves_with_its_task() {
    for config in configs().into_iter().filter(by_task) {
        for elsewhere in [true, false] {
            let hog = if elsewhere { "hog @0: group 1, cpus 1, [run 1s]" } else { "" };
            let tasks = format!("a @0: group 1, cpus 0, [run 1s]\n{hog}");
            let mut board = board(2, &config, &[(0, 10)], &tasks);
            board.run_until(50 * MS);
            assert!(in_limbo(&board, "a"));
            let task = board.task("a");
            let (from, to) = (CpuId(0), CpuId(1));
            assert_eq!(cfs(&board, 1, 1).bandwidth.throttled, elsewhere);
            board.kernel.deactivate_task(from, task, 0);
            board.kernel.set_task_cpu(task, to);
            board.kernel.activate_task(to, task, 0);
            board.kernel.wakeup_preempt(to, task, 0);
            board.kernel.verify();
            assert_eq!(in_limbo(&board, "a"), elsewhere, "{:?}", config.cfs_throttle);
            assert!(cfs(&board, 1, 0).throttled_limbo_list.is_empty());
        }
    }
}
