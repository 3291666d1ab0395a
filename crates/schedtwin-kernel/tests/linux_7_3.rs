//! Scenarios of rules that came with 7.3, each beside those of 6.12: one scenario, two kernels, and what differs.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, config, device_tree};
use schedtwin_kernel::config::{AvgIdle, Config};
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
