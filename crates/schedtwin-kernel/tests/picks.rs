// SPDX-License-Identifier: GPL-2.0-or-later
//! Picks have a rule, and a record says from whom was chosen.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, config, device_tree};
use schedtwin_kernel::config::Config;
use schedtwin_types::*;

/// Runs to `end` and hands out every pick from `from` on: (next, rule, candidates).
fn picks(board: &mut Board, from: Ns, end: Ns) -> Vec<(TaskId, PickRule, Vec<PickCandidate>)> {
    board.kernel.record_decisions(true);
    board.run_until(end);
    let decisions = board.kernel.take_decisions().into_iter();
    decisions
        .filter(|record| record.at >= from)
        .filter_map(|record| match record.decision {
            Decision::Pick { next, rule, candidates, .. } => Some((next, rule, candidates)),
            _ => None,
        })
        .collect()
}

/// Two hogs take turns: each time the waiting one has the earlier deadline. The list has both, once.
#[test]
fn hogs_take_turns_by_deadline() {
    let mut board = Board::with(device_tree(1), config(), "a @0: [run 1s]\nb @0: [run 1s]");
    let picks = picks(&mut board, 20 * MS, 60 * MS);
    assert!(picks.len() > 5, "{picks:?}");
    for (next, rule, candidates) in picks {
        assert_eq!(rule, PickRule::EarliestDeadline);
        let [a, b] = candidates[..] else { panic!("{candidates:?}") };
        let (picked, other) = if a.picked { (a, b) } else { (b, a) };
        assert_eq!(picked.task, Some(next));
        assert!(picked.eligible && !picked.curr && !other.picked && other.curr);
        // V is their mean, by equal weights; rounded down.
        assert!((0..=1).contains(&(-picked.lag - other.lag)), "{picked:?} {other:?}");
        assert!(picked.lag > 0, "it has waited: {picked:?}");
    }
}

/// A task alone is picked for want of others, an RT task by its class, and nobody in the end.
#[test]
fn every_class_says_why() {
    let scenario =
        "a @0: until 12ms, run 3ms, [sleep 1s]\nr @0: fifo 7, until 13ms, run 1ms, [sleep 1s]";
    let mut board = Board::with(device_tree(1), config(), scenario);
    let rules: Vec<PickRule> =
        picks(&mut board, 10 * MS, 30 * MS).into_iter().map(|pick| pick.1).collect();
    let expected = [PickRule::OnlyEntity, PickRule::Rt, PickRule::OnlyEntity, PickRule::Idle];
    assert_eq!(rules, expected);
}

/// The group wins at the root, where there was a choice; its only task is no choice.
#[test]
fn a_level_without_a_choice_keeps_the_rule_above() {
    let config = Config { fair_group_sched: true, ..config() };
    let mut board = Board::with(device_tree(1), config, "a @0: group 1, [run 1s]\nb @0: [run 1s]");
    board.kernel.new_task_group(TaskGroupId::ROOT, 1024);
    let picks = picks(&mut board, 20 * MS, 60 * MS);
    let of_group = picks.iter().find(|pick| pick.2.iter().any(|c| c.picked && c.task.is_none()));
    let (_, rule, candidates) = of_group.expect("the group runs now and then");
    assert_eq!(*rule, PickRule::EarliestDeadline);
    let levels: Vec<(u32, bool, u32)> =
        candidates.iter().map(|c| (c.depth, c.picked, c.group.0)).collect();
    assert_eq!(levels.last(), Some(&(1, true, 1)), "the task in it comes last: {levels:?}");
    assert!(levels.contains(&(0, true, 1)) && levels.contains(&(0, false, 0)), "{levels:?}");
}

/// A crowd is not listed whole, but the one picked is.
#[test]
fn a_crowd_is_cut_short() {
    let crowd: String = (0..20).map(|n| format!("t{n} @0: [run 1s]\n")).collect();
    let mut board = Board::with(device_tree(1), config(), &crowd);
    let picks = picks(&mut board, 20 * MS, 200 * MS);
    for (next, _, candidates) in &picks {
        assert!(candidates.len() <= PickCandidate::MOST, "{candidates:?}");
        let picked: Vec<_> = candidates.iter().filter(|c| c.picked).map(|c| c.task).collect();
        assert_eq!(picked, [Some(*next)]);
    }
    assert!(picks.iter().any(|pick| pick.2.len() == PickCandidate::MOST));
}
