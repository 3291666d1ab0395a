// SPDX-License-Identifier: GPL-2.0-or-later
//! From need to clock in whole runs: where the time goes until a boosted task that wakes up has the clock it asks for.
//!
//! The clamps of a task that wakes up under 6.12 join its run queue behind the call of the governor, which
//! `uclamp-enqueue-order` turns round. `freq_update_latency` begins at the request, so it cannot tell the two apart.

use crate::scenarios::{SECOND, metric, run, scenario};
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Observer;
use schedtwin_types::{
    ChainEnd, ChainEvent, ChainWait, DecisionRecord, Fact, NeedCause, NeedChain, Ns, PowerSource,
    TaskId,
};

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
    assert!(base[0] > 400.0, "{base:?}");
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

/// Takes the chains that a run tells.
#[derive(Default)]
struct Chains(Vec<NeedChain>);

impl Observer for Chains {
    const DECISIONS: bool = true;
    fn task(&mut self, _: TaskId, _: &str, _: i32) {}
    fn fact(&mut self, _: &Fact) {}
    fn decision(&mut self, _: DecisionRecord) {}
    fn chain(&mut self, chain: NeedChain) {
        self.0.push(chain);
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// A run, its chains, and its digest.
fn recorded(machine: &str, kernel: &str, workload: &str) -> (RunResult, Vec<NeedChain>) {
    let scenario = scenario(machine, kernel, workload, Some(SECOND));
    let mut twin = scenario.twin::<FlatBoard>(1).eager();
    twin.record_decisions();
    let mut chains = Chains::default();
    while twin.step(&mut chains) {}
    twin.tell_open_chains(&mut chains);
    (twin.finish(), chains.0)
}

/// The chains of a record are those that the metrics count, with the same times, and recording them changes nothing.
#[test]
fn a_records_chains_are_those_that_are_measured() {
    for (machine, workload) in [("juno-r2", "boosted-delayed"), ("pixel6", "ui-phone")] {
        let (result, chains) = recorded(machine, BASE, workload);
        let plain = run(&scenario(machine, BASE, workload, Some(SECOND)), 1);
        assert_eq!(result.digest, plain.digest);
        let settled = chains.iter().filter(|chain| chain.more && chain.end == ChainEnd::Settled);
        let mut spans: Vec<f64> =
            settled.map(|chain| (chain.end_at - chain.need_at) as f64 / 1e3).collect();
        assert!(spans.len() > 20, "{workload}: {}", spans.len());
        spans.sort_by(f64::total_cmp);
        let mean = spans.iter().sum::<f64>() / spans.len() as f64;
        let measured = |stat| metric(&plain, "need_to_settled", stat, &[]);
        assert!((mean - measured("mean")).abs() < 1e-6 * mean, "{workload}: {mean}");
        assert_eq!(spans.last().copied(), Some(measured("max")), "{workload}");
    }
}

/// The chains say why: without the patch the governor is called as the sleeper wakes up, before its clamp counts.
#[test]
fn chains_say_what_the_patch_changes() {
    let early = |kernel: &str| -> Ns {
        let (_, chains) = recorded("juno-r2", kernel, "boosted-sleeper");
        let woken = |chain: &&NeedChain| {
            let first = chain.events.first();
            let woken = |cause: NeedCause| matches!(cause, NeedCause::Wakeup(_));
            chain.more && matches!(first, Some(ChainEvent::Need { cause, .. }) if woken(*cause))
        };
        let woken = chains.iter().filter(woken);
        woken.map(|chain| chain.waits[ChainWait::TooEarly as usize]).sum()
    };
    assert!(early(BASE) > 1_000_000, "{}", early(BASE));
    assert_eq!(early(PATCHED), 0);
}
