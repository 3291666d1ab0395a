// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair server, the RT class, schedutil, the idle loop and EAS, driven through the kernel's entries.

mod board;

use board::{Board, Do, MS, fifo, machine, pin, sleep, uniform};
use schedtwin_kernel::config::{
    Config, EffectiveCpuUtil, EmCpuEnergy, FindEnergyEfficientCpu, RateLimitDefault, RunnableBoost,
    Uclamp, UclampOrder, UtilEstForm, UtilEstUpdate,
};
use schedtwin_types::{CpuId, CpuMask, Decision, FactKind, IpiKind, Ns, PolicyId, Syscall};

fn config() -> Config {
    Config::linux_6_12()
}

/// Task numbers: idle 0, stoppers 1..=nr_cpus, then in order of creation.
fn first_task(nr_cpus: u32) -> u32 {
    nr_cpus + 1
}

// ---- fair server (kernel/sched/deadline.c) --------------------------------------------------------

/// A FIFO task that never stops, and a fair one that wakes with it: the fair one gets 50 ms at the end of the
/// first second and 50 ms in each one after that.
#[test]
fn a_starved_fair_task_gets_its_50_ms() {
    let fair = vec![pin(0), Do::Run(10_000 * MS)];
    let hog = vec![pin(0), Do::Start(fair), fifo(50), Do::Run(10_000 * MS)];
    let mut board = Board::new(uniform(2), config(), hog);
    board.run_until(4_500 * MS);
    let fair = first_task(2) + 1;
    let had =
        |from: Ns, to: Ns| board.cpu_time(from * MS, to * MS).get(&fair).copied().unwrap_or(0) / MS;
    assert_eq!(had(10, 940), 0);
    assert!((49..=54).contains(&had(940, 1_010)), "{}", had(940, 1_010));
    for second in 1..4 {
        let ms = had(1_010 + (second - 1) * 1_000, 1_010 + second * 1_000);
        // It is charged at ticks: up to one too many, which is paid back.
        assert!((45..=54).contains(&ms), "second {second}: {ms} ms");
    }
}

/// With fair work only the server never runs, but counts: a floor of 51, also on the idle CPU until its timer
/// finds out about a second later.
#[test]
fn an_idle_cpu_keeps_the_floor_for_about_a_second() {
    let task = vec![pin(0), Do::Run(5 * MS), sleep(10 * MS), Do::Run(5 * MS), sleep(20_000 * MS)];
    let mut board = Board::new(uniform(2), config(), task);
    board.run_until(8 * MS);
    assert_eq!(board.kernel.inside().rq[CpuId(0)].dl.cpu_bw_dl(), 51);
    board.run_until(900 * MS);
    assert_eq!(board.kernel.inside().rq[CpuId(0)].dl.cpu_bw_dl(), 51);
    assert!(board.kernel.inside().rq[CpuId(0)].fair_server.is_active());
    board.run_until(2_100 * MS);
    assert!(!board.kernel.inside().rq[CpuId(0)].fair_server.is_active());
    assert_eq!(board.kernel.inside().rq[CpuId(0)].dl.running_bw(), 0);
}

/// While it runs the timer is pushed on and the fair task is never interrupted by its own server.
#[test]
fn busy_fair_work_never_needs_the_server() {
    let mut board = Board::new(uniform(1), config(), vec![Do::Run(10_000 * MS)]);
    for at in 1..60 {
        board.run_until(at * 50 * MS);
        assert!(!board.kernel.inside().rq[CpuId(0)].fair_server.is_queued(), "at {} ms", at * 50);
    }
}

// ---- RT (kernel/sched/rt.c) -----------------------------------------------------------------------

/// A task that turns RT begins to count as RT then, not since boot.
#[test]
fn rt_utilisation_begins_with_the_class() {
    let task = vec![Do::Run(300 * MS), fifo(50), Do::Run(100 * MS)];
    let mut board = Board::new(uniform(1), config(), task);
    board.run_until(320 * MS);
    let util = board.kernel.inside().rq[CpuId(0)].avg_rt.util_avg;
    assert!((200..450).contains(&util), "{util} after about 16 ms");
}

/// Two RT tasks on one CPU: the lower one is pushed away at once; nothing starves on an idle machine.
#[test]
fn a_lower_rt_task_is_pushed_to_an_idle_cpu() {
    let low = vec![fifo(10), Do::Run(50 * MS)];
    let high = vec![fifo(20), Do::Start(low), Do::Run(50 * MS)];
    let mut board = Board::new(uniform(2), config(), high);
    board.run_until(40 * MS);
    let times = board.cpu_time(5 * MS, 40 * MS);
    for task in [first_task(2), first_task(2) + 1] {
        assert!(times[&task] > 33 * MS, "{times:?}");
    }
}

/// Overloaded CPUs are asked to push by one interrupt that goes round twice and then ends, also if there is
/// nothing that they could push.
#[test]
fn the_push_interrupt_ends() {
    // CPUs 1 and 2: each a hog and behind it a task that may run on both, but on no other.
    let hog = |cpu| vec![fifo(60), pin(cpu), Do::Run(500 * MS)];
    let mask = CpuMask::from_cpus([CpuId(1), CpuId(2)]);
    let movable = vec![fifo(10), Do::Call(Syscall::SchedSetaffinity { mask }), Do::Run(400 * MS)];
    let blinker = vec![fifo(70), pin(3), Do::Run(MS), sleep(2 * MS), Do::Again(2)];
    let main = vec![
        Do::Start(blinker),
        Do::Start(movable.clone()),
        Do::Start(movable),
        sleep(2 * MS),
        Do::Start(hog(1)),
        Do::Start(hog(2)),
        sleep(400 * MS),
    ];
    let mut board = Board::new(uniform(4), config(), main);
    board.run_until(300 * MS);
    assert_eq!(board.kernel.inside().rd.rto_mask, mask);
    let blinker = first_task(4) + 1;
    let from = 20 * MS;
    let leaves = board.facts.iter().filter(|f| match f.kind {
        FactKind::Switch { prev, .. } => f.at > from && f.cpu == CpuId(3) && prev.0 == blinker,
        _ => false,
    });
    let pushes = board
        .facts
        .iter()
        .filter(|f| f.at > from && matches!(f.kind, FactKind::Ipi { kind: IpiKind::IrqWork, .. }));
    let (leaves, pushes) = (leaves.count(), pushes.count());
    // Each time the blinker leaves CPU 3 it asks: two rounds of two CPUs.
    assert!(leaves > 50);
    assert!(pushes.abs_diff(4 * leaves) <= 4, "{leaves} requests, {pushes} interrupts");
}

/// On an asymmetric machine an RT task wants a CPU of full capacity (uclamp's default for RT).
#[test]
fn rt_tasks_look_for_the_big_cpu() {
    let opps: &[(u32, u64)] = &[(1_000_000, 100_000)];
    let task = vec![fifo(10), Do::Run(MS), sleep(5 * MS), Do::Again(1)];
    let mut board = Board::new(machine(&[(2, 300, opps), (1, 1024, opps)]), config(), task);
    board.run_until(100 * MS);
    assert_eq!(board.kernel.inside().tasks[schedtwin_types::TaskId(first_task(3))].cpu, CpuId(2));
}

// ---- schedutil (kernel/sched/cpufreq_schedutil.c) -------------------------------------------------

fn frequencies(board: &Board) -> Vec<(Ns, u32)> {
    let khz = |f: &schedtwin_types::Fact| match f.kind {
        FactKind::Frequency { khz, .. } => Some((f.at, khz)),
        _ => None,
    };
    board.facts.iter().filter_map(khz).collect()
}

/// A runnable RT task asks for full speed as long as utilisation clamps are not in use.
#[test]
fn rt_runs_at_full_speed() {
    let task = vec![fifo(10), Do::Run(MS), sleep(20 * MS), Do::Again(1)];
    let mut board = Board::new(uniform(1), config(), task);
    board.run_until(200 * MS);
    let last = frequencies(&board);
    assert!(last.iter().any(|f| f.1 == 2_000_000), "{last:?}");
}

/// Changes are at least the rate limit apart, and a busy CPU ends at the highest frequency.
#[test]
fn changes_keep_the_rate_limit() {
    let mut config = config();
    config.schedutil.rate_limit_us = Some(10_000);
    config.fair_server_runtime = 0;
    let task =
        vec![Do::Run(3 * MS), sleep(13 * MS), Do::Run(300 * MS), sleep(300 * MS), Do::Again(0)];
    let mut board = Board::new(uniform(2), config, task);
    board.run_until(2_000 * MS);
    let changes = frequencies(&board);
    assert!(changes.len() > 4, "{changes:?}");
    for pair in changes.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= 10 * MS, "{pair:?}");
        assert!(pair[1].1 != pair[0].1, "{pair:?}");
    }
    assert!(changes.iter().any(|c| c.1 == 2_000_000));
}

/// Without a setting the rate limit follows from the driver's latency.
#[test]
fn the_rate_limit_follows_from_the_latency() {
    let delay_ns = |rate_limit_default, transition_latency, rate_limit_us| {
        let mut config = Config { rate_limit_default, ..config() };
        config.schedutil.rate_limit_us = rate_limit_us;
        let mut tree = uniform(1);
        tree.policies[0].transition_latency = transition_latency;
        let board = Board::new(tree, config, vec![Do::Run(MS)]);
        board.kernel.inside().policies[PolicyId(0)].sugov.freq_update_delay_ns
    };
    for (form, latency_us, expected_us) in [
        (RateLimitDefault::LatencyTimes1000, 500, 10_000),
        (RateLimitDefault::LatencyTimes1000, 5, 5_000),
        (RateLimitDefault::LatencyTimes1000, 0, 1_000),
        (RateLimitDefault::LatencyTimes1000Max2Ms, 5, 2_000),
        (RateLimitDefault::LatencyTimes1000Max2Ms, 1, 1_000),
        (RateLimitDefault::LatencyAndHalf, 500, 750),
        (RateLimitDefault::LatencyAndHalf, 5, 7),
        (RateLimitDefault::LatencyAndHalf, 0, 1_000),
    ] {
        let case = (form, latency_us);
        assert_eq!(delay_ns(form, latency_us * 1_000, None), expected_us * 1_000, "{case:?}");
        assert_eq!(delay_ns(form, latency_us * 1_000, Some(42)), 42_000, "{case:?}");
    }
}

/// Up to 6.7 with the key on, an RT task gets what its default minimum says, plus headroom; with the key off
/// or clamps compiled out, all there is.
#[test]
fn the_speed_of_rt_before_6_8() {
    let highest = |uclamp, uclamp_min_rt_default| {
        let config = Config {
            effective_cpu_util: EffectiveCpuUtil::HeadroomLast,
            uclamp_order: UclampOrder::BeforeEnqueue,
            uclamp,
            uclamp_min_rt_default,
            fair_server_runtime: 0,
            ..config()
        };
        let task = vec![sleep(600 * MS), fifo(10), Do::Run(2 * MS), sleep(40 * MS), Do::Again(2)];
        // A domain of one CPU would hold the speed.
        let mut board = Board::new(uniform(2), config, task);
        board.run_until(1_000 * MS);
        let late = frequencies(&board).into_iter().filter(|f| f.0 > 700 * MS);
        late.map(|f| f.1).max()
    };
    for (uclamp, minimum, expected) in [
        (Uclamp::KeyOff, 1024, Some(2_000_000)),
        (Uclamp::KeyOff, 300, Some(1_000_000)), // writing it turns the key on
        (Uclamp::CompiledOut, 300, Some(2_000_000)),
        (Uclamp::On, 1024, Some(2_000_000)),
        (Uclamp::On, 300, Some(1_000_000)), // 300 · 1.25 of 1024 · 2 GHz = 732 MHz
    ] {
        assert_eq!(highest(uclamp, minimum), expected, "{uclamp:?} {minimum}");
    }
}

/// Two tasks that wake together share a CPU: runnable_avg is above util_avg, and the frequency rises earlier if
/// that counts. The records say by how much it was raised.
#[test]
fn contention_raises_the_frequency() {
    let run = |runnable_boost| {
        let config = Config { runnable_boost, fair_server_runtime: 0, ..config() };
        // Small tasks until then, one at a time.
        let worker = |number: u64| {
            let small = (1..30).flat_map(|k| {
                let until = (20 * k + 5 * number) * MS;
                [Do::Call(Syscall::NanosleepUntil { until }), Do::Run(MS / 4)]
            });
            let big = [Do::Call(Syscall::NanosleepUntil { until: 600 * MS }), Do::Run(60 * MS)];
            small.chain(big).collect::<Vec<Do>>()
        };
        let mut main = vec![Do::Start(worker(1)), Do::Start(worker(2))];
        main.extend(worker(0));
        let mut board = Board::new(uniform(1), config, main);
        board.run_until(590 * MS);
        board.kernel.record_decisions(true);
        board.run_until(700 * MS);
        let changes = frequencies(&board);
        let full = changes.iter().find(|f| f.0 > 600 * MS && f.1 == 2_000_000);
        let decisions = board.kernel.take_decisions().into_iter();
        let boosts = decisions.filter_map(|record| match record.decision {
            Decision::Frequency { inputs, .. } => inputs.first().map(|input| {
                let without = input.util_avg.max(input.util_est);
                let boosted = input.runnable_avg.max(without).min(1024);
                assert!(
                    input.boost == 0 || input.boost == boosted - without.min(1024),
                    "{input:?}"
                );
                assert_eq!(
                    input.perf,
                    (without + input.boost + (without + input.boost) / 4).min(1024)
                );
                input.boost
            }),
            _ => None,
        });
        (full.expect("they need it all").0 / MS, boosts.max().expect("decisions were recorded"))
    };
    let (off, none) = run(RunnableBoost::Off);
    let (on, raised) = run(RunnableBoost::On);
    let (as_posted, raised_too) = run(RunnableBoost::WithUtilEst);
    assert_eq!(none, 0);
    assert!(raised > 100 && raised_too > 100, "{raised} {raised_too}");
    assert!(
        on + 8 < off && as_posted + 8 < off,
        "off {off} ms, on {on} ms, as posted {as_posted} ms"
    );
}

/// Sums, clamps and remembered demands are right after each event in all forms together: RT and fair tasks
/// that contend, sleep, fork and move on an asymmetric machine.
#[test]
fn all_forms_keep_their_sums() {
    let a: &[(u32, u64)] = &[(500_000, 60_000), (1_000_000, 100_000), (2_000_000, 300_000)];
    let b: &[(u32, u64)] = &[(1_000_000, 400_000), (2_000_000, 1_400_000)];
    let blink = |run: Ns, pause: Ns| vec![Do::Run(run), sleep(pause), Do::Again(0)];
    let mut main = vec![fifo(10), Do::Start(blink(MS / 2, 7 * MS)), Do::Start(blink(MS, 3 * MS))];
    main.extend([sleep(MS), Do::Call(Syscall::SchedSetattr(Default::default()))]);
    main.extend([Do::Start(blink(2 * MS, 5 * MS)), Do::Start(vec![pin(2), Do::Run(9 * MS)])]);
    main.extend([pin(2), Do::Run(4 * MS), sleep(2 * MS), Do::Again(6)]);
    let mut requests = std::collections::BTreeSet::new();
    for number in 0..64u32 {
        let bit = |n: u32| number >> n & 1 != 0;
        let config = Config {
            util_est: if bit(0) { UtilEstForm::EnqueuedAndEwma } else { UtilEstForm::Single },
            util_est_update: if bit(1) {
                UtilEstUpdate::AfterDequeue
            } else {
                UtilEstUpdate::BeforeDequeue
            },
            effective_cpu_util: if bit(2) {
                EffectiveCpuUtil::HeadroomLast
            } else {
                EffectiveCpuUtil::ClampLast
            },
            uclamp: if bit(3) { Uclamp::On } else { Uclamp::KeyOff },
            uclamp_min_rt_default: 600,
            uclamp_order: if bit(4) {
                UclampOrder::BeforeEnqueue
            } else {
                UclampOrder::AfterEnqueue
            },
            find_energy_efficient_cpu: if bit(5) {
                FindEnergyEfficientCpu::Margin
            } else {
                FindEnergyEfficientCpu::Fits
            },
            em_cpu_energy: if bit(5) != bit(2) {
                EmCpuEnergy::ByFrequency
            } else {
                EmCpuEnergy::ByPerformance
            },
            runnable_boost: match number % 3 {
                0 => RunnableBoost::Off,
                1 => RunnableBoost::WithUtilEst,
                _ => RunnableBoost::On,
            },
            ..config()
        };
        let tree = machine(&[(2, 512, a), (1, 1024, b)]);
        let mut board = Board::new(tree, config, main.clone());
        board.run_until(150 * MS); // verifies after each event
        requests.insert(frequencies(&board));
    }
    assert!(requests.len() > 16, "forms matter: {} different runs", requests.len());
}

/// A domain of one CPU does not slow down before that CPU has tried to stop its tick; a shared one does. Two
/// tasks wake together; when the shorter one leaves, the other alone would need less.
#[test]
fn only_single_cpu_domains_hold_their_frequency() {
    let opps: &[(u32, u64)] =
        &[(500_000, 100_000), (1_000_000, 300_000), (1_300_000, 400_000), (2_000_000, 900_000)];
    let drops_while_running = |tree| {
        let mut config = config();
        config.fair_server_runtime = 0;
        // It would count the one that has left for a while.
        config.runnable_boost = RunnableBoost::Off;
        let periodic = |work: Ns| {
            let round =
                |k: u64| [Do::Call(Syscall::NanosleepUntil { until: k * 200 * MS }), Do::Run(work)];
            (1..20).flat_map(round).collect::<Vec<Do>>()
        };
        let mut main = vec![pin(0), Do::Start(periodic(10 * MS))];
        main.extend(periodic(25 * MS));
        let mut board = Board::new(tree, config, main);
        board.run_until(4_000 * MS);
        let woke = |at: Ns| {
            let from_idle = |f: &&schedtwin_types::Fact| {
                matches!(f.kind, FactKind::IdleExit { .. }) && f.cpu == CpuId(0) && f.at <= at
            };
            board.facts.iter().rev().find(from_idle).map_or(0, |f| f.at)
        };
        let changes = frequencies(&board);
        changes.windows(2).filter(|w| w[1].1 < w[0].1 && w[1].0 - woke(w[1].0) > 5 * MS).count()
    };
    assert_eq!(drops_while_running(machine(&[(1, 1024, opps)])), 0);
    assert!(drops_while_running(machine(&[(2, 1024, opps)])) > 5);
}

// ---- idle loop and tick (kernel/sched/idle.c, kernel/time/tick-sched.c) ---------------------------

/// Ticks stay on their grid however often they are stopped.
#[test]
fn ticks_come_back_on_their_grid() {
    let task = vec![Do::Run(5 * MS), sleep(9 * MS + 123), Do::Again(0)];
    let mut board = Board::new(uniform(2), config(), task);
    board.run_until(400 * MS);
    let (mut ticks, mut stopped) = (0, 0);
    for fact in &board.facts {
        match fact.kind {
            FactKind::Tick => {
                ticks += 1;
                let late = fact.at % (4 * MS);
                assert!(late <= 10_000, "tick at {}", fact.at);
            }
            FactKind::IdleEnter { tick_stopped: true, .. } => stopped += 1,
            _ => {}
        }
    }
    assert!(ticks > 20 && stopped > 20, "{ticks} ticks, {stopped} stops");
}

/// No tick interrupts a CPU that sleeps long, and schedutil's `idle_calls` count each attempt to stop it.
#[test]
fn a_long_sleep_has_no_ticks() {
    let task = vec![pin(0), Do::Run(5 * MS), sleep(700 * MS)];
    let mut config = config();
    config.fair_server_runtime = 0;
    let mut board = Board::new(uniform(1), config, task);
    board.run_until(690 * MS);
    let ticks = board.facts.iter().filter(|f| f.kind == FactKind::Tick && f.at > 40 * MS).count();
    assert_eq!(ticks, 0);
    assert!(board.kernel.inside().cpus[CpuId(0)].tick.tick_stopped);
    assert!(board.kernel.inside().cpus[CpuId(0)].tick.idle_calls > 0);
}

// ---- EAS (kernel/sched/fair.c) --------------------------------------------------------------------

/// Two domains, A of capacity 512 (costs 3906, 5859) and B of 1024 (7812, 13671): small tasks live on A, whose
/// lowest state they fit, wherever they were.
#[test]
fn small_tasks_live_where_they_cost_least() {
    let a: &[(u32, u64)] = &[(1_000_000, 100_000), (2_000_000, 300_000)];
    let b: &[(u32, u64)] = &[(1_000_000, 400_000), (2_000_000, 1_400_000)];
    let mut config = config();
    config.fair_server_runtime = 0;
    let task = vec![Do::Run(MS), sleep(9 * MS), Do::Again(0)];
    let mut board = Board::new(machine(&[(2, 512, a), (1, 1024, b)]), config, task);
    board.run_until(500 * MS);
    let wakeups = |on_a: bool| {
        let hit = |f: &&schedtwin_types::Fact| match f.kind {
            FactKind::Wakeup { target, .. } => f.at > 100 * MS && (target.0 < 2) == on_a,
            _ => false,
        };
        board.facts.iter().filter(hit).count()
    };
    assert!(board.kernel.inside().rd.energy_aware);
    assert_eq!(wakeups(false), 0);
    assert!(wakeups(true) >= 39);
}
