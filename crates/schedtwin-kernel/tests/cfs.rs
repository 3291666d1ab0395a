// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios of the fair class with CFS: latency 24 ms, granularity 3 ms, wakeup granularity 4 ms, as on a
//! machine of eight CPUs; ticks of 4 ms.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, cfs_config, cfs_features, device_tree};
use insta::assert_snapshot;
use schedtwin_kernel::config::{CfsTunables, Config, Features};
use schedtwin_kernel::sched::CfsRqId;
use schedtwin_types::*;

/// CFS, with tunables as they are on `of_cpus` CPUs.
fn cfs(nr_cpus: usize) -> Config {
    // What the kernel multiplies by.
    let factor = 1 + nr_cpus.min(8).ilog2() as u64;
    let tunables = CfsTunables {
        latency: 24 * MS / factor,
        min_granularity: 3 * MS / factor,
        wakeup_granularity: 4 * MS / factor,
        idle_min_granularity: MS * 3 / 4,
    };
    Config { fair_group_sched: true, ..cfs_config(tunables) }
}

fn one_cpu(scenario: &str) -> Board {
    Board::with(device_tree(1), cfs(1), scenario)
}

fn one_cpu_with(features: Features, scenario: &str) -> Board {
    Board::with(device_tree(1), Config { features, ..cfs(1) }, scenario)
}

/// Slices of two hogs are 12 ms (less 6 ns, which the kernel's arithmetic loses): three ticks.
#[test]
fn two_hogs_alternate_at_ticks() {
    let mut board = one_cpu("a @0: [run 1s]\nb @0: [run 1s]");
    board.run_until(200 * MS);
    assert_snapshot!(board.timeline(4 * MS, 0, 144 * MS), @"cpu0 bbbaaabbbaaabbbaaabbbaaabbbaaabbbaaa");
}

/// Whoever is picked again when its slice ends starts another one, unless groups are compiled in: a's slice is
/// 21.7 ms, so it gives way at the end of the fifth, after 120 ms, or as soon as b is behind, after 112.
#[test]
fn a_slice_for_whoever_is_picked_again() {
    let given_way = |fair_group_sched| {
        let scenario = "b @0: [run 1s]\na @0: nice -10, sleep 200ms, [run 1s]";
        let mut board =
            Board::with(device_tree(1), Config { fair_group_sched, ..cfs(1) }, scenario);
        board.run_until(400 * MS);
        board.timeline(4 * MS, 180 * MS, 360 * MS)
    };
    assert_snapshot!(given_way(false), @"cpu0 bbbbbbbbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaa");
    assert_snapshot!(given_way(true), @"cpu0 bbbbbbbbaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaa");
}

/// Nine and more have slices of 3 ms: whoever runs at a tick gives way.
#[test]
fn a_crowd_alternates_at_every_tick() {
    let scenario: String = "abcdefghij".chars().map(|c| format!("{c} @0: [run 1s]\n")).collect();
    let mut board = one_cpu(&scenario);
    board.run_until(400 * MS);
    assert_snapshot!(board.timeline(4 * MS, 200 * MS, 320 * MS), @"cpu0 ijfbedcaghijfbedcaghijfbedcagh");
}

/// Weights of nice 0 and nice 5 are 1024 and 335; what is missing to the exact share is less than a period.
#[test]
fn shares_follow_weights() {
    let mut board = one_cpu("a @0: [run 1s]\nb @0: nice 5, [run 1s]");
    board.run_until(10_000 * MS);
    let (a, b) = (board.cpu_time("a") as i64, board.cpu_time("b") as i64);
    let share = (a + b) * 1024 / (1024 + 335);
    assert!((a - share).abs() <= 24 * MS as i64, "{a} of {}, {share} expected", a + b);
}

/// A sleeper wakes with up to 12 ms of credit, more than the granularity: it preempts at once.
#[test]
fn a_sleeper_preempts() {
    let mut board = one_cpu("h @0: [run 1s]\nw @0: [sleep 9500us, run 1ms]");
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 44 * MS), @"cpu0 hhhhhhhhhhhhhhhhhhhwwhhhhhhhhhhhhhhhhhhhwwhhhhhhhhhhhhhhhhhhhwwhhhhhhhhhhhhhhhhhhhwwhhhh");
}

/// Whoever is behind by less than the granularity waits for the tick: here a task that sleeps a little, and so
/// keeps its own virtual runtime.
#[test]
fn a_short_sleeper_waits() {
    let mut board = one_cpu("h @0: [run 1s]\nw @0: [run 3ms, sleep 1ms]");
    board.run_until(100 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 80 * MS), @"cpu0 wwwwwwhhhhhhhhhhhhhhhhhhhhhhhhhhwwwwwwhhwwwwwwhhwwwwwwhhwwwwwwhhwwwwwwhhhhhhhhhhhhhhhhhhhhhhhhhhwwwwwwhhwwwwwwhhwwwwwwhhwwwwwwhhwwwwwwhhwwwwwwhhhhhhhhhhhhhhhhhh");
}

/// `START_DEBIT`: a forked task is a slice behind its parent; without it, it is beside it, and runs when the
/// parent's slice is used up.
#[test]
fn a_forked_task_waits_for_a_slice() {
    for (start_debit, expected) in [(true, 16), (false, 12)] {
        let features = Features { start_debit, ..cfs_features() };
        let mut board = one_cpu_with(features, "a @0: run 1ms, fork b, [run 1s]\nb: [run 1s]");
        board.run_until(60 * MS);
        let b = board.task("b");
        let first = board.switches(0).iter().find(|s| s.1 == b).map(|s| s.0 / MS);
        assert_eq!(first, Some(expected), "{start_debit}");
    }
}

/// `LAST_BUDDY`: where eight are queued, a preempted task goes on after the wakee, though others are behind it;
/// without it, the first of the others gets its turn.
#[test]
fn a_preempted_task_goes_on() {
    let mut scenario: String = "abcdefgh".chars().map(|c| format!("{c} @0: [run 1s]\n")).collect();
    scenario += "w @50ms: until 301ms, run 500us, [sleep 1s]";
    for (last_buddy, goes_on) in [(true, true), (false, false)] {
        let mut board = one_cpu_with(Features { last_buddy, ..cfs_features() }, &scenario);
        board.run_until(310 * MS);
        let w = board.task("w");
        let switches = board.switches(0);
        let at = switches.iter().rposition(|s| s.1 == w).expect("w has run");
        let (before, after) = (switches[at - 1].1, switches[at + 1].1);
        assert_eq!(switches[at].0 / MS, 301);
        assert_eq!(before == after, goes_on, "{last_buddy}: {}", board.switch_list(0));
    }
}

/// `sched_yield()`: the other goes first unless it is ahead by more than the granularity; virtual time stays
/// what it is.
#[test]
fn a_yield_lets_the_other_run() {
    let mut board = one_cpu("a @0: [run 1ms, yield]\nb @0: [run 1ms, yield]");
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 40 * MS), @"cpu0 bbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaabbaa");
    // Whoever has just been forked is a slice ahead: too far for a yield.
    let mut board = one_cpu("a @0: run 1ms, fork b, [run 500us, yield]\nb: [run 1s]");
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 40 * MS), @"cpu0 aaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbb");
}

/// SCHED_IDLE gives way at once, and gets 3 of 1027 parts beside a normal task, in turns of a tick.
#[test]
fn idle_gives_way() {
    let mut board = one_cpu("i @0: policy idle, [run 1s]\nn @0: [sleep 5ms, run 1ms]");
    board.run_until(40 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 24 * MS), @"cpu0 iiiiiiiiiinniiiiiiiiiinniiiiiiiiiinniiiiiiiiiinn");
    let mut board = one_cpu("i @0: policy idle, [run 1s]\nn @0: [run 1s]");
    board.run_until(20_000 * MS);
    let (i, n) = (board.cpu_time("i"), board.cpu_time("n"));
    assert!((i * 1027).abs_diff(3 * (i + n)) < 12 * MS * 1027, "{i} {n}");
    let i = board.task("i");
    let switches = board.switches(0);
    let turns = switches.windows(2).filter(|w| w[0].1 == i && w[0].0 > 1_000 * MS);
    assert!(turns.clone().count() > 5);
    for turn in turns {
        assert!(turn[1].0 - turn[0].0 <= 4 * MS + 10, "a turn of {}", turn[1].0 - turn[0].0);
    }
}

/// SCHED_BATCH preempts nobody: it waits for a tick at which the running task is ahead by more than its slice,
/// or has used it up.
#[test]
fn batch_waits() {
    let mut board = one_cpu("h @0: [run 1s]\nb @0: policy batch, [sleep 9500us, run 1ms]");
    board.run_until(60 * MS);
    assert_snapshot!(board.timeline(MS / 2, 0, 44 * MS), @"cpu0 hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhbbhhhhhhhhhhhhhhhhhhhhhhbbhhhhhhhhhhhhhh");
}

/// Nobody stays queued over a sleep, however much it has run.
#[test]
fn no_dequeue_is_delayed() {
    let mut board = one_cpu("a @0: run 9ms, [sleep 50ms]\nb @0: [run 1s]");
    for at in 1..40 {
        board.run_until(at * MS);
        assert_eq!(board.kernel.inside().cfs[CfsRqId(0)].h_nr_delayed, 0);
    }
    assert!(!board.se("a").on_rq);
}

/// `min_vruntime` never goes back, whatever happens; and virtual times stay near it through migrations
/// between CPUs whose virtual times are far apart.
#[test]
fn virtual_times_stay_together() {
    let scenario = "a @0: cpus 0, nice -10, [run 1s]
        b @0: cpus 1, nice 10, [run 1s]
        c @1ms: [run 3ms, sleep 2ms, cpus 0, run 2ms, cpus 1, run 1ms, cpus 0-1]
        d @2ms: nice 3, [sleep 1500us, run 700us]
        e @3ms: [run 5ms, yield, nice 2, run 1ms, fifo 1, run 1ms, nice 0, policy normal, sleep 7ms]
        f @4ms: policy idle, [run 2ms, fork g, sleep 3ms]
        g: policy normal, run 4ms, sleep 1ms, run 1ms
        w @5ms: policy batch, [wait 0, run 300us, sleep 1ms]
        x @5ms: [run 1ms, wake 0, sleep 600us]";
    let mut board = Board::with(device_tree(2), cfs(2), scenario);
    let mut last = [(-(1i64 << 20)) as u64; 2];
    for at in 0..8_000 {
        board.run_until(at * MS / 20);
        for (cpu, last) in last.iter_mut().enumerate() {
            let min = board.kernel.inside().cfs[CfsRqId(cpu as u32)].min_vruntime;
            assert!(min.wrapping_sub(*last) as i64 >= 0, "CPU {cpu} goes back");
            *last = min;
        }
        for se in board.kernel.inside().se.ids().filter(|&se| board.kernel.inside().se[se].on_rq) {
            let entity = &board.kernel.inside().se[se];
            let min = board.kernel.inside().cfs[entity.cfs_rq].min_vruntime;
            let ahead = entity.vruntime.wrapping_sub(min) as i64;
            // Half a latency behind; and ahead by what 12 ms of SCHED_IDLE are worth at most.
            let bound = 12 * MS as i64 * 1024 / 3;
            assert!((-12 * MS as i64..=bound).contains(&ahead), "{se:?} is {ahead} ahead");
        }
    }
    let apart = last[1].wrapping_sub(last[0]) as i64;
    assert!(apart > 100 * MS as i64, "they are {apart} apart");
    let migrations =
        board.facts.iter().filter(|f| matches!(f.kind, FactKind::Migrate { .. })).count();
    assert!(migrations > 20, "{migrations}");
}
