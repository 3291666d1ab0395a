//! From need to clock in whole runs: where the time goes until a boosted task that wakes up has the clock it asks for.
//!
//! The clamps of a task that wakes up under 6.12 join its run queue behind the call of the governor, which
//! `uclamp-enqueue-order` turns round. `freq_update_latency` begins at the request, so it cannot tell the two apart.

use crate::scenarios::{SECOND, metric, run, scenario};

/// Need to request, request to settled, need to settled: means in µs, and the 99th percentile of the first.
fn chain(kernel: &str, workload: &str) -> ([f64; 3], f64) {
    let result = run(&scenario("juno-r2", kernel, workload, Some(2 * SECOND)), 1);
    let of = |name: &str, stat: &str| metric(&result, name, stat, &[]);
    let means =
        ["need_to_request", "request_to_settled", "need_to_settled"].map(|name| of(name, "mean"));
    (means, of("need_to_request", "p99"))
}

const BASE: &str = "linux-6.12";
const PATCHED: &str = "linux-6.12+uclamp-enqueue-order";

/// With the patch the governor raises the clock when the sleeper wakes up. Without it, it waits for the next update, which the
/// sleeper's own work causes. The hardware takes as long either way.
#[test]
fn a_boosted_sleeper_is_asked_for_as_it_wakes_up() {
    let (base, _) = chain(BASE, "boosted-sleeper");
    let (patched, p99) = chain(PATCHED, "boosted-sleeper");
    println!("sleeper, us: {base:.1?} {patched:.1?}");
    assert!(base[0] > 500.0, "{base:?}");
    assert_eq!(p99, 0.0, "{patched:?}");
    assert!((base[1] - patched[1]).abs() < 10.0, "{base:?} {patched:?}");
}

/// A task that stays queued while it sleeps waits less with the patch.
#[test]
fn a_boosted_delayed_task_waits_less() {
    let (base, _) = chain(BASE, "boosted-delayed");
    let (patched, _) = chain(PATCHED, "boosted-delayed");
    println!("delayed, us: {base:.1?} {patched:.1?}");
    assert!(patched[0] < base[0], "{base:?} {patched:?}");
}

/// The parts add up, because each chain that settles has all three times.
#[test]
fn the_parts_add_up() {
    let ([request, settled, both], _) = chain(BASE, "boosted-delayed");
    assert!((request + settled - both).abs() < 1e-6 * both, "{request} + {settled} = {both}");
}
