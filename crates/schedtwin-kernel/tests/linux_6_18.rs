// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of rules that 6.18 has and neither 6.12 nor 7.3: one scenario, three kernels, and what differs.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree, first_runs_at};
use schedtwin_kernel::config::{Config, EevdfForm, FairServerForm, IdleGovernor};
use schedtwin_kernel::device_tree::DtIdleState;
use schedtwin_types::*;

/// A new task has half a slice only, so that its deadline is the earlier one; since 6.18 it does not preempt for that.
#[test]
fn forks_do_not_preempt() {
    let scenario = "h @0: run 7ms, fork b, [run 1s]\nb: run 1ms";
    use EevdfForm::{V6_12, V6_18, V7_3};
    for (eevdf_form, expected) in [(V6_12, 7_000), (V6_18, 8_000), (V7_3, 8_000)] {
        let config = Config { eevdf_form, base_slice_unscaled: 2_800_000, ..config() };
        assert_eq!(first_runs_at(config, scenario, "b"), expected, "{eevdf_form:?}");
    }
}

/// A wakee of policy SCHED_BATCH is none of the check's business in 6.18, so its short slice leaves the protection as it is; 7.3
/// shortens it.
#[test]
fn a_batch_wakee_does_not_shorten_the_protection() {
    let scenario = "h @0: nice -10, run 100us, until 4500us, [run 1s]
        b @0: policy batch, slice 500us, run 10us, until 5200us, run 500us, [sleep 1s]";
    use EevdfForm::{V6_12, V6_18, V7_3};
    for (eevdf_form, expected) in [(V6_12, 8_000), (V6_18, 8_000), (V7_3, 6_000)] {
        let config = Config { eevdf_form, hz: 1000, base_slice_unscaled: 2_800_000, ..config() };
        assert_eq!(first_runs_at(config, scenario, "b"), expected, "{eevdf_form:?}");
    }
}

/// Whether CPU 0 has the server's floor at some times (ms), after 3 ms of fair work and with an RT task at 1500 ms.
fn floor(fair_server_form: FairServerForm) -> [bool; 5] {
    let mut machine = device_tree(1);
    machine.idle_tables = vec![vec![DtIdleState::new(0, 0), DtIdleState::new(100, 200)]];
    let config = Config {
        fair_server_form,
        fair_server_runtime: 50 * MS,
        cpuidle: IdleGovernor::Menu,
        hz: 1000,
        ..config()
    };
    let scenario = "a @0: run 3ms\nr @0: fifo 1, until 1500ms, run 1ms, [sleep 10s]";
    let mut board = Board::with(machine, config, scenario);
    [940, 960, 1_499, 1_502, 2_500].map(|at| {
        board.run_until(at * MS);
        board.kernel.inside().rq[CpuId(0)].dl.running_bw() != 0
    })
}

/// The timer makes the server runnable for nobody. 6.12 counts it as a task, so the idle CPU looks for it and stops it; 7.3 stops
/// it in the timer; in 6.18 it stays until an RT task has come and gone.
#[test]
fn a_server_on_an_idle_cpu_stays_queued() {
    use FairServerForm::{V6_12, V6_18, V7_3};
    assert_eq!(floor(V6_12), [true, false, false, false, false]);
    assert_eq!(floor(V6_18), [true, true, true, false, false]);
    assert_eq!(floor(V7_3), [true, false, false, false, false]);
}
