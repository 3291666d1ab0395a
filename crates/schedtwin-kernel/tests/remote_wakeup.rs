// SPDX-License-Identifier: GPL-2.0-or-later
//! Who carries out the wakeup of a task on another CPU: the waker, or by interrupt the target.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use schedtwin_kernel::config::{Config, TtwuQueueCond};
use schedtwin_types::{CpuId, FactKind, IpiKind};

/// Which interrupts CPU 1 gets when a task of CPU 0 wakes one there.
fn interrupts(cond: TtwuQueueCond, share_cache: bool, target_busy: bool) -> Vec<IpiKind> {
    let mut machine = device_tree(2);
    machine.cpus[1].llc = !share_cache as u16;
    let busy = if target_busy { "\nc @1ms: cpus 1, [run 1s]" } else { "" };
    let scenario =
        format!("a @0: cpus 0, run 5ms, wake 0, [run 1s]\nb @0: cpus 1, nice -20, [wait 0]{busy}");
    let config = Config { ttwu_queue_cond: cond, ..config() };
    let mut board = Board::with(machine, config, &scenario);
    board.run_until(4 * MS);
    let before = board.facts.len();
    board.run_until(40 * MS);
    let b = board.task("b");
    let waking = board.facts[before..].iter();
    let from_waking =
        waking.skip_while(|f| !matches!(f.kind, FactKind::Waking { task, .. } if task == b));
    from_waking
        .take_while(|f| !matches!(f.kind, FactKind::Switch { next, .. } if next == b))
        .filter_map(|f| match f.kind {
            FactKind::Ipi { target: CpuId(1), kind } => Some(kind),
            _ => None,
        })
        .collect()
}

#[test]
fn the_wake_list_serves_other_caches_and_idle_cpus() {
    use TtwuQueueCond::{NoSharedCache, NoSharedCacheOrIdle, NoSharedCacheOrOnCpu};
    let table = [
        // The point, the cache is shared, the target is busy, by the wake list
        (NoSharedCacheOrIdle, true, false, true),
        (NoSharedCacheOrIdle, true, true, false),
        (NoSharedCacheOrIdle, false, true, true),
        (NoSharedCacheOrOnCpu, true, false, false),
        (NoSharedCacheOrOnCpu, true, true, false),
        (NoSharedCacheOrOnCpu, false, false, true),
        (NoSharedCacheOrOnCpu, false, true, true),
        (NoSharedCache, true, false, false),
        (NoSharedCache, false, true, true),
    ];
    for (cond, share_cache, busy, listed) in table {
        let first = interrupts(cond, share_cache, busy).first().copied();
        let expected = if listed { IpiKind::WakeList } else { IpiKind::Reschedule };
        assert_eq!(first, Some(expected), "{cond:?} shared {share_cache} busy {busy}");
    }
}
