// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs on their paths at one moment: what one has not done yet, the other does not see.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use schedtwin_kernel::config::{Config, TtwuQueueCond};
use schedtwin_types::{CpuId, Fact, FactKind, IpiKind, Ns, TaskId};

/// Facts of a machine whose kernel paths take time.
fn run(cpus: usize, config: Config, scenario: &str) -> Board {
    let mut machine = device_tree(cpus);
    let costs = &mut machine.path_costs;
    (costs.schedule, costs.context_switch, costs.wakeup) = (800, 600, 400);
    let mut board = Board::with(machine, config, scenario);
    board.run_until(20 * MS);
    board
}

fn time_of(facts: &[Fact], what: impl Fn(&FactKind) -> bool) -> Option<Ns> {
    facts.iter().find(|fact| what(&fact.kind)).map(|fact| fact.at)
}

fn cpu_of_wakeup(facts: &[Fact], woken: TaskId) -> Option<CpuId> {
    facts.iter().rev().find_map(|fact| match fact.kind {
        FactKind::Wakeup { task, target, .. } if task == woken => Some(target),
        _ => None,
    })
}

/// A task is woken while its CPU switches it out. It never wakes before that is over, and where the form of the condition
/// knows such tasks it stays where it is, by the wake list.
#[test]
fn a_task_that_is_being_switched_out_wakes_on_its_cpu() {
    use TtwuQueueCond::{NoSharedCache, NoSharedCacheOrIdle, NoSharedCacheOrOnCpu};
    for cond in [NoSharedCache, NoSharedCacheOrOnCpu, NoSharedCacheOrIdle] {
        let mut met = 0;
        for delay in (0..4000).step_by(100) {
            let scenario = format!(
                "a @0: cpus 0, until 10ms, run {}ns, wake 0, [run 1s]\n\
                 b @0: cpus 1-2, until 10ms, run 100us, wait 0, run 1ms",
                100_000 + delay
            );
            let board = run(3, Config { ttwu_queue_cond: cond, ..config() }, &scenario);
            let b = board.task("b");
            let is_waking =
                |kind: &FactKind| matches!(*kind, FactKind::Waking { task, .. } if task == b);
            let Some(last) = board.facts.iter().rposition(|fact| is_waking(&fact.kind)) else {
                continue;
            };
            let Some(out) = board.facts[..last]
                .iter()
                .rfind(|fact| matches!(fact.kind, FactKind::Switch { prev, .. } if prev == b))
            else {
                continue;
            };
            let waking = board.facts[last];
            if waking.at < 14 * MS || waking.at >= out.at {
                continue;
            }
            met += 1;
            let after = &board.facts[last..];
            let woken =
                time_of(after, |k| matches!(*k, FactKind::Wakeup { task, .. } if task == b));
            assert!(woken.is_some_and(|at| at >= out.at), "{cond:?} {delay}: {woken:?} {}", out.at);
            let listed =
                time_of(after, |k| matches!(*k, FactKind::Ipi { kind: IpiKind::WakeList, .. }));
            if cond != NoSharedCache {
                assert!(listed.is_some_and(|at| at <= woken.unwrap()), "{cond:?} {delay}");
                assert_eq!(cpu_of_wakeup(after, b), Some(out.cpu), "{cond:?} {delay}");
            } else {
                assert_eq!(listed, None, "{cond:?} {delay}");
            }
        }
        assert!(met >= 5, "{cond:?}: {met} delays fall into the switch");
    }
}

/// Two CPUs each wake a task that slept on CPU 2, which idles. The later waker takes another CPU only if the earlier one has
/// queued its task by then.
#[test]
fn wakers_of_one_moment_choose_the_same_idle_cpu() {
    let cpus_of = |delay: Ns| {
        let scenario = format!(
            "a @0: cpus 0, until 10ms, run 100us, wake 0, [run 1s]\n\
             b @0: cpus 1, until 10ms, run {}ns, wake 1, [run 1s]\n\
             s @1ms: cpus 2, cpus 2-3, wait 0, run 1ms\n\
             t @2ms: cpus 2, cpus 2-3, wait 1, run 1ms",
            100_000 + delay
        );
        let mut config = config();
        config.features.sis_util = false;
        let board = run(4, config, &scenario);
        ["s", "t"].map(|name| cpu_of_wakeup(&board.facts, board.task(name)).unwrap().0)
    };
    assert_eq!(cpus_of(0), [2, 2]);
    assert_eq!(cpus_of(2000), [2, 3]);
    let crossings = (0..20).map(|step| cpus_of(step * 100)[1]).collect::<Vec<u16>>();
    assert!(crossings.is_sorted(), "one moment decides: {crossings:?}");
}

/// Tasks that wake each other on four CPUs: nobody runs before its wakeup's time stamp, whichever CPU found it.
#[test]
fn no_task_runs_before_it_was_woken() {
    let pairs = (0..4).map(|pair| {
        format!(
            "a{pair} @0: [run {0}us, wake {pair}, wait 1{pair}]\n\
             b{pair} @0: [wait {pair}, run {1}us, wake 1{pair}]\n\
             c{pair} @0: [run {1}us, sleep {0}us]\n",
            3 + pair,
            7 - pair
        )
    });
    let board = run(4, config(), &pairs.collect::<String>());
    let mut woken = std::collections::BTreeMap::new();
    let mut runs = 0;
    for fact in &board.facts {
        match fact.kind {
            FactKind::Wakeup { task, .. } => {
                woken.insert(task, fact.at);
            }
            FactKind::Switch { next, .. } if !next.is_idle() => {
                runs += 1;
                assert!(woken[&next] <= fact.at, "{fact:?}, woken at {}", woken[&next]);
            }
            _ => {}
        }
    }
    assert!(runs > 1000, "{runs}");
}
