// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil's slow path, driven through the kernel's entries: irq_work, the thread `sugov:N`, the driver's
//! call, and only then the frequency.

mod board;

use board::{Board, Do, MS, fifo, machine, pin, sleep, slow, uniform};
use schedtwin_kernel::config::{Config, FrequencyGovernor};
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_types::{
    CpuId, Decision, Fact, FactKind, FrequencyRule, IpiKind, Ns, PolicyId, TaskId, TaskState,
};

/// The driver's call in these tests.
const DRIVER_NS: Ns = 300_000;

fn config() -> Config {
    Config { fair_server_runtime: 0, ..Config::linux_6_12() }
}

/// Task numbers: idle 0, stoppers 1..=nr_cpus, a thread for each domain, then in order of creation.
fn sugov(nr_cpus: u32, policy: u32) -> TaskId {
    TaskId(nr_cpus + 1 + policy)
}

/// Equal CPUs with a frequency each 100 MHz, so that nearly every change of utilisation asks for another one.
fn fine(count: u16) -> DeviceTree {
    let opps: Vec<(u32, u64)> =
        (1..=20).map(|n| (100_000 * n, 10_000 * u64::from(n) * (20 + u64::from(n)))).collect();
    machine(&[(count, 1024, &opps)])
}

fn find(facts: &[Fact], from: Ns, what: impl Fn(&FactKind) -> bool) -> Option<&Fact> {
    facts.iter().find(|f| f.at >= from && what(&f.kind))
}

fn changes(board: &Board) -> Vec<(Ns, u32, Ns)> {
    let change = |f: &Fact| match f.kind {
        FactKind::Frequency { khz, requested_at, .. } => Some((f.at, khz, requested_at)),
        _ => None,
    };
    board.facts.iter().filter_map(change).collect()
}

/// A hog on CPU 0 of two, behind a driver that takes 300 us.
fn hog(sleeps: bool) -> Board {
    let task = vec![pin(0), Do::Run(5 * MS), sleep(60 * MS), Do::Run(300 * MS)];
    let mut board = Board::new(slow(uniform(2), DRIVER_NS, sleeps), config(), task);
    board.run_until(250 * MS);
    board
}

/// Governor → self interrupt → thread switched in → driver → frequency; the hog is preempted.
#[test]
fn a_change_takes_its_steps() {
    for sleeps in [false, true] {
        let board = hog(sleeps);
        let thread = sugov(2, 0);
        let (at, khz, requested_at) = *changes(&board).last().unwrap();
        assert_eq!(khz, 2_000_000, "a hog ends at full speed");
        let facts = &board.facts;
        let raise = find(facts, requested_at, |k| {
            matches!(k, FactKind::Ipi { kind: IpiKind::IrqWork, .. })
        });
        let raise = raise.unwrap();
        assert!(matches!(raise.kind, FactKind::Ipi { target, .. } if target == raise.cpu));
        let into = |k: &FactKind| matches!(k, FactKind::Switch { next, .. } if *next == thread);
        let switch = find(facts, raise.at, into).unwrap();
        let FactKind::Switch { prev, prev_state, .. } = switch.kind else { unreachable!() };
        assert_eq!(prev_state, TaskState::Preempted, "{prev:?} gives way");
        assert!(requested_at <= raise.at && raise.at <= switch.at);
        assert!(switch.at - raise.at < 10_000, "two interrupts at most");
        // The interrupt that ends a sleeping call costs time and switches once more.
        let driver = at - switch.at;
        assert!((DRIVER_NS..DRIVER_NS + 5_000).contains(&driver), "sleeps {sleeps}: {driver}");
        // A driver that sleeps leaves the CPU to the hog, one that spins does not.
        let had = board.cpu_time(switch.at, at)[&thread.0];
        assert_eq!(had > DRIVER_NS / 2, !sleeps, "sleeps {sleeps}: {had}");
        board.kernel.inside().policies.iter().for_each(|p| assert!(!p.sugov.work_in_progress));
    }
}

/// Belief follows the driver; the hardware was asked at the beginning of its call.
#[test]
fn belief_changes_when_the_driver_has_returned() {
    let task = vec![pin(0), Do::Run(5 * MS), sleep(60 * MS), Do::Run(300 * MS)];
    let mut board = Board::new(slow(uniform(1), DRIVER_NS, false), config(), task);
    let mut asked = Vec::new();
    let mut at = 0;
    while at < 250 * MS {
        at += 20_000;
        board.run_until(at);
        let policy = &board.kernel.inside().policies[PolicyId(0)];
        let scale = u64::from(policy.cur) * 1024 / 2_000_000;
        assert_eq!(board.kernel.inside().rq[CpuId(0)].freq_scale, scale);
        if policy.requested != policy.cur {
            asked.push(at);
        }
    }
    let expected = changes(&board).len() * (DRIVER_NS / 20_000) as usize;
    assert!(asked.len().abs_diff(expected) <= changes(&board).len(), "{} {expected}", asked.len());
}

/// While the work is in progress a newer choice only overwrites; the thread then takes the newest. A hog's
/// utilisation rises with each tick, 4 ms; the driver takes 23.7 ms, and there is no rate limit.
#[test]
fn a_newer_choice_only_overwrites() {
    let (mut config, driver) = (config(), 23_700_000);
    config.schedutil.rate_limit_us = Some(0);
    // An estimate would ask for all at once.
    config.features.util_est = false;
    let main = vec![pin(0), Do::Run(150 * MS), sleep(250 * MS), Do::Again(1)];
    let mut board = Board::new(slow(fine(2), driver, true), config, main);
    board.kernel.record_decisions(true);
    board.run_until(2_000 * MS);
    let choices: Vec<(Ns, u32)> = board
        .kernel
        .take_decisions()
        .into_iter()
        .filter_map(|record| match record.decision {
            Decision::Frequency { khz, rule: FrequencyRule::Changed, .. } => Some((record.at, khz)),
            _ => None,
        })
        .collect();
    let works = board.facts.iter().filter(
        |f| matches!(f.kind, FactKind::Ipi { kind: IpiKind::IrqWork, target } if target == f.cpu),
    );
    let (works, changes) = (works.count(), changes(&board));
    assert!(works * 5 < choices.len() * 4, "{works} works for {} choices", choices.len());
    assert!(changes.len() > 10 && changes.len() <= works, "{} by {works} works", changes.len());
    for (at, khz, requested_at) in &changes {
        // What was newest when the call began, which is not known to the last 10 us: its interrupt and the
        // switch take some.
        let newest = choices.iter().rposition(|c| c.0 + driver + 10_000 <= *at).unwrap_or(0);
        let (_, taken) = choices[newest..]
            .iter()
            .take_while(|c| c.0 + driver <= *at)
            .find(|c| c.0.abs_diff(*requested_at) < 5_000)
            .unwrap_or_else(|| panic!("{at}: a choice of {requested_at} is not the newest"));
        assert_eq!(taken, khz, "{at}");
    }
    for pair in changes.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= driver && pair[1].1 != pair[0].1, "{pair:?}");
    }
}

/// Time of the thread is deadline time, and counts in the demand of its CPU without a floor.
#[test]
fn the_threads_time_counts_as_deadline_utilisation() {
    let highest = |spin: Ns, sleeps: bool| {
        let mut config = config();
        config.schedutil.rate_limit_us = Some(0);
        let task = vec![pin(0), Do::Run(MS), sleep(60 * MS), Do::Run(150 * MS), sleep(MS)];
        let mut board = Board::new(slow(fine(1), spin, sleeps), config, task);
        let mut highest = 0;
        for step in 1..60 {
            board.run_until(step * 4 * MS);
            assert_eq!(board.kernel.inside().rq[CpuId(0)].dl.running_bw(), 0);
            highest = board.kernel.inside().rq[CpuId(0)].avg_dl.util_avg.max(highest);
        }
        highest
    };
    assert_eq!(highest(0, false), 0);
    let (short, long) = (highest(500_000, false), highest(2 * MS, false));
    assert!(short > 10 && long > 3 * short, "{short} {long}");
    // Asleep it uses nothing.
    assert!(highest(2 * MS, true) <= 1);
}

/// One thread a domain, on its CPUs only, also if the one that asks is elsewhere.
#[test]
fn each_domain_has_its_own_thread() {
    let opps: &[(u32, u64)] = &[(500_000, 100_000), (1_000_000, 300_000), (2_000_000, 900_000)];
    let tree = slow(machine(&[(1, 1024, opps), (2, 1024, opps)]), DRIVER_NS, true);
    let periodic = |cpu| vec![pin(cpu), Do::Run(9 * MS), sleep(40 * MS), Do::Again(1)];
    let mut main = vec![Do::Start(periodic(0)), Do::Start(periodic(1)), Do::Start(periodic(2))];
    main.extend(periodic(0));
    let mut board = Board::new(tree, config(), main);
    board.run_until(1_000 * MS);
    let mut ran = [0; 2];
    for fact in &board.facts {
        let FactKind::Switch { next, .. } = fact.kind else { continue };
        for policy in 0..2 {
            if next == sugov(3, policy) {
                let cpus = board.kernel.inside().policies[PolicyId(policy as u16)].cpus;
                assert!(cpus.contains(fact.cpu), "{next:?} on {:?}", fact.cpu);
                ran[policy as usize] += 1;
            }
        }
    }
    assert!(ran[0] >= 5 && ran[1] >= 5, "{ran:?}");
}

/// It preempts even real-time tasks, which 6.12 never throttles.
#[test]
fn an_rt_hog_gives_way() {
    let task = vec![pin(0), Do::Run(20 * MS), fifo(99), Do::Run(400 * MS)];
    let mut board = Board::new(slow(uniform(1), DRIVER_NS, false), config(), task);
    board.run_until(200 * MS);
    let last = *changes(&board).last().expect("a change");
    assert_eq!(last.1, 2_000_000);
    assert!(last.0 - last.2 < 2 * DRIVER_NS, "{last:?}");
}

/// The other governors set their frequency before time begins and need no thread.
#[test]
fn performance_and_powersave() {
    for (governor, khz) in
        [(FrequencyGovernor::Performance, 2_000_000), (FrequencyGovernor::Powersave, 500_000)]
    {
        for tree in [uniform(2), slow(uniform(2), DRIVER_NS, true)] {
            let config = Config { cpufreq: governor, ..config() };
            let mut board =
                Board::new(tree, config, vec![Do::Run(50 * MS), sleep(MS), Do::Again(0)]);
            board.run_until(200 * MS);
            let policy = &board.kernel.inside().policies[PolicyId(0)];
            assert_eq!((policy.cur, policy.requested), (khz, khz));
            assert_eq!(
                board.kernel.inside().rq[CpuId(1)].freq_scale,
                u64::from(khz) * 1024 / 2_000_000
            );
            assert!(policy.kthread.is_none() && changes(&board).is_empty());
        }
    }
}
