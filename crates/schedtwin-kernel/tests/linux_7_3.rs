//! Scenarios of rules that came with 7.3, each beside those of 6.12: one scenario, two kernels, and what differs.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use schedtwin_kernel::config::{AvgIdle, Config, SchedIdleCpus};
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
