// SPDX-License-Identifier: GPL-2.0-or-later
//! The idle governors in the idle loop, driven through the kernel's entries.

#[allow(dead_code, reason = "the board serves the tests of other governors too")]
mod board;

use board::{Board, Do, MS, pin, sleep, uniform};
use schedtwin_kernel::config::{
    Config, ExpiredSleep, IdleGovernor, MenuForm, PmQos, SingleIdleState, TeoForm, TeoUtil,
};
use schedtwin_kernel::cpuidle::governor::Governor;
use schedtwin_kernel::cpuidle::menu::DECADES;
use schedtwin_kernel::cpuidle::menu::MenuCpu;
use schedtwin_kernel::{Activity, Kernel};
use schedtwin_types::{CpuId, Decision, FactKind, IrqLine, IrqLines, Mode, Ns, Syscall};

const US: Ns = 1000;

/// Every governor in every form.
const GOVERNORS: [(&str, IdleGovernor, TeoForm, TeoUtil, MenuForm); 16] = [
    ("teo 5.14", IdleGovernor::Teo, TeoForm::V5_14, TeoUtil::Off, MenuForm::V5_18),
    ("teo posted", IdleGovernor::Teo, TeoForm::V5_14, TeoUtil::Posted, MenuForm::V5_18),
    ("teo 6.3", IdleGovernor::Teo, TeoForm::V5_14, TeoUtil::V6_3, MenuForm::V5_18),
    ("teo 6.6", IdleGovernor::Teo, TeoForm::V6_6, TeoUtil::V6_3, MenuForm::V5_18),
    ("teo 6.6.y", IdleGovernor::Teo, TeoForm::V6_6, TeoUtil::Off, MenuForm::V5_18),
    ("teo 6.12", IdleGovernor::Teo, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_12),
    ("teo 6.18", IdleGovernor::Teo, TeoForm::V6_18, TeoUtil::Off, MenuForm::V6_12),
    ("teo 7.3", IdleGovernor::Teo, TeoForm::V7_3, TeoUtil::Off, MenuForm::V6_12),
    ("teo gradual", IdleGovernor::Teo, TeoForm::V6_12, TeoUtil::Gradual, MenuForm::V6_12),
    ("menu 5.18", IdleGovernor::Menu, TeoForm::V5_14, TeoUtil::Off, MenuForm::V5_18),
    ("menu 6.12", IdleGovernor::Menu, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_12),
    ("menu 6.18", IdleGovernor::Menu, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_18),
    ("menu 7.3", IdleGovernor::Menu, TeoForm::V6_12, TeoUtil::Off, MenuForm::V7_3),
    ("ladder", IdleGovernor::Ladder, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_12),
    ("haltpoll", IdleGovernor::Haltpoll, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_12),
    ("shallow", IdleGovernor::Shallow, TeoForm::V6_12, TeoUtil::Off, MenuForm::V6_12),
];

/// A kernel with that governor of [`GOVERNORS`]; nothing but tasks and ticks has timers.
fn config(governor: &str) -> Config {
    let (_, cpuidle, teo, teo_util, menu) = *GOVERNORS.iter().find(|g| g.0 == governor).unwrap();
    let base = Config::linux_6_12();
    Config { cpuidle, teo, teo_util, menu, fair_server_runtime: 0, timer_slack: 0, ..base }
}

/// Works, and sleeps until the next of equal periods, on CPU 0.
fn periodic(work: Ns, period: Ns, rounds: u64) -> Vec<Do> {
    let round =
        |k| [Do::Call(Syscall::NanosleepUntil { until: 5 * MS + k * period }), Do::Run(work)];
    [pin(0)].into_iter().chain((1..rounds).flat_map(round)).collect()
}

/// Choices of CPU 0 from `from` on: state, stop_tick and rule, in order, equal neighbours once.
fn choices(board: &mut Board, from: Ns) -> Vec<(u8, bool, &'static str)> {
    let decisions = board.kernel.take_decisions().into_iter();
    let mut found: Vec<(u8, bool, &'static str)> = decisions
        .filter(|record| record.cpu == CpuId(0) && record.at >= from)
        .filter_map(|record| match record.decision {
            Decision::Idle { state, stop_tick, rule, .. } => Some((state, stop_tick, rule.text())),
            _ => None,
        })
        .collect();
    found.dedup();
    found
}

fn run(config: Config, program: Vec<Do>, end: Ns) -> Board {
    let mut board = Board::new(uniform(1), config, program);
    board.kernel.record_decisions(true);
    board.run_until(end);
    board
}

fn misses(board: &Board, from: Ns) -> (usize, usize) {
    let count = |shallow| {
        let miss = |f: &&schedtwin_types::Fact| {
            f.at >= from
                && f.kind == FactKind::IdleMiss { state: 1 - shallow as u8, below: shallow }
        };
        board.facts.iter().filter(miss).count()
    };
    (count(false), count(true))
}

/// A task at 73 Hz that works 30 us: sleeps of 13.67 ms, as long as the timer says and all alike. Every
/// governor but the shallow one finds the deeper state, without a tick and without a miss.
#[test]
fn a_73_hz_task_sleeps_deep() {
    let period = 13_698_630;
    for (governor, chosen) in [
        // The interval is measured without the exit latency, hence shorter than the timer.
        ("menu 5.18", vec![(1, true, "menu: typical interval")]),
        ("menu 6.12", vec![(1, true, "menu: typical interval")]),
        ("menu 7.3", vec![(1, true, "menu: typical interval")]),
        ("teo 5.14", vec![(1, true, "teo: deepest enabled state")]),
        ("teo 6.12", vec![(1, true, "teo: deepest enabled state")]),
        ("teo 7.3", vec![(1, true, "teo: deepest enabled state")]),
        ("shallow", vec![(0, true, "always the shallowest")]),
    ] {
        let mut board = run(config(governor), periodic(30 * US, period, 73), 900 * MS);
        assert_eq!(choices(&mut board, 300 * MS), chosen, "{governor}");
        let (too_deep, too_shallow) = misses(&board, 300 * MS);
        assert_eq!(too_deep, 0, "{governor}");
        assert_eq!(too_shallow > 40, governor == "shallow", "{governor}: {too_shallow}");
    }
}

/// Timers every 300 us: state 0. menu lets the tick stop there, teo does not.
#[test]
fn short_timers_and_the_tick() {
    for (governor, chosen) in [
        ("menu 5.18", (0, true, "menu: next timer comes before state 1 pays")),
        ("menu 6.12", (0, true, "menu: next timer comes before state 1 pays")),
        ("teo 5.14", (0, false, "teo: next timer comes before a deeper state's residency")),
    ] {
        let mut board = run(config(governor), periodic(50 * US, 350 * US, 2000), 400 * MS);
        assert_eq!(choices(&mut board, 100 * MS), [chosen], "{governor}");
        let ticks = |f: &&schedtwin_types::Fact| f.kind == FactKind::Tick && f.at > 100 * MS;
        let ticks = board.facts.iter().filter(ticks).count();
        // A tick that stops comes back with the next task: now and then it finds one at work.
        assert!(if chosen.1 { ticks < 40 } else { ticks > 70 }, "{governor}: {ticks} ticks");
    }
}

/// A task that computes 3 ms in 10: its CPU is utilised. Of two states 6.3 takes the shallower one, and the
/// tick stops all the same.
#[test]
fn a_utilised_cpu_sleeps_shallow_in_6_3() {
    for (governor, state) in [("teo 5.14", 1), ("teo 6.3", 0)] {
        let mut board = run(config(governor), periodic(3 * MS, 10 * MS, 60), 500 * MS);
        let chosen = choices(&mut board, 200 * MS);
        let rule = ["teo: the CPU is utilised", "teo: deepest enabled state"][state as usize];
        assert_eq!(chosen, [(state, true, rule)], "{governor}");
    }
    // One that computes 50 us in 50 ms does not.
    let mut board = run(config("teo 6.3"), periodic(50 * US, 50 * MS, 20), 900 * MS);
    assert_eq!(choices(&mut board, 300 * MS), [(1, true, "teo: deepest enabled state")]);
}

/// A task that sleeps for I/O is counted where it went to sleep, and menu of 5.18 uses the other buckets.
#[test]
fn io_waiters_are_counted() {
    let task = vec![Do::Run(MS), sleep(7 * MS), Do::Again(0)];
    let mut board = Board::new(uniform(2), config("menu 5.18"), task);
    let first = board.kernel.inside().tasks.ids().last().unwrap();
    // While it works, or its present sleep would end uncounted.
    let at_work = |board: &Board| {
        board.kernel.inside().rq.ids().any(|c| board.kernel.inside().rq[c].curr == first)
    };
    while board.now < 50 * MS || !at_work(&board) {
        board.run_until(board.now + 300 * US);
    }
    board.kernel.inside_mut().tasks[first].in_iowait = true;
    let (start, mut waits, mut works) = (board.now, 0, 0);
    for at in 1..200 {
        board.run_until(start + at * 300 * US);
        let asleep =
            board.kernel.inside().rq.ids().all(|cpu| board.kernel.inside().rq[cpu].curr.is_idle());
        let cpu = board.kernel.inside().tasks[first].cpu;
        let waiters = board.kernel.inside().rq[cpu].nr_iowait;
        assert_eq!(waiters, asleep as u32, "step {at}");
        if asleep {
            waits += 1;
            let Governor::MenuWaiters(menu) = &board.kernel.inside().cpus[cpu].governor else {
                panic!("another governor")
            };
            assert!(menu.bucket as usize >= DECADES, "step {at}: {menu:?}");
        } else {
            works += 1;
        }
    }
    assert!(waits > 100 && works > 10, "{waits} and {works} times");
}

/// One idle state: 6.12's teo keeps the tick for ever; since the fix nobody is asked, and the tick stops once it has come in an
/// idle period.
#[test]
fn a_single_state_needs_no_governor() {
    for (single_idle_state, chosen, few) in [
        (SingleIdleState::Governor, vec![(0, false, "teo: fewer than two states")], false),
        (
            SingleIdleState::Skipped,
            vec![(0, false, "the only state"), (0, true, "the only state")],
            true,
        ),
    ] {
        let mut device_tree = uniform(1);
        device_tree.idle_tables[0].truncate(1);
        let config = Config { single_idle_state, ..config("teo 6.12") };
        let mut board = Board::new(device_tree, config, vec![pin(0), sleep(400 * MS)]);
        board.kernel.record_decisions(true);
        board.run_until(350 * MS);
        // The task goes to sleep a little after the first tick.
        assert_eq!(choices(&mut board, 4 * MS + 5 * US), chosen);
        let ticks = |f: &&schedtwin_types::Fact| f.kind == FactKind::Tick && f.at > 5 * MS;
        let ticks = board.facts.iter().filter(ticks).count();
        assert_eq!(ticks < 3, few, "{ticks} ticks");
    }
}

/// A sleep that should have ended by now: its timer waits for the slack, or the task does not sleep at all.
#[test]
fn an_expired_sleep_is_refused_since_7_3() {
    for (expired_sleep, sleeps) in [(ExpiredSleep::Armed, true), (ExpiredSleep::Refused, false)] {
        let config = Config { expired_sleep, timer_slack: 500 * US, ..config("teo 6.12") };
        let late = Do::Call(Syscall::NanosleepUntil { until: 18_900 * US });
        let program = vec![pin(0), Do::Run(15 * MS), late, Do::Run(MS), sleep(100 * MS)];
        let mut board = Board::new(uniform(1), config, program);
        board.run_until(25 * MS);
        let entered = |f: &&schedtwin_types::Fact| {
            f.at > 10 * MS && matches!(f.kind, FactKind::IdleEnter { .. })
        };
        let first = board.facts.iter().find(entered).expect("it sleeps in the end").at;
        // It starts after the first tick, at 4 ms, and computes 15 ms before that sleep and 1 ms after it.
        let until = 19 * MS + if sleeps { 0 } else { MS };
        assert!((until..until + MS / 10).contains(&first), "{expired_sleep:?}: {first}");
    }
}

/// All governors through a changeful life with short and long sleeps, ticks at several rates and two CPUs:
/// `verify()` after every event, no assertion, all states used.
#[test]
fn long_lives_are_survived() {
    for (governor, ..) in GOVERNORS {
        for hz in [100, 250, 1000] {
            let other = vec![
                Do::Run(400 * US),
                sleep(200 * US),
                Do::Run(MS),
                sleep(13 * MS),
                Do::Run(90 * US),
                sleep(40 * US),
                Do::Again(0),
            ];
            let mut task = vec![Do::Start(other)];
            for k in 1..40 {
                task.push(Do::Run(k * 50 * US));
                task.push(sleep(k * k * 9 * US));
            }
            task.push(sleep(120 * MS));
            task.push(Do::Again(1));
            let config = Config { hz, fair_server_runtime: 50 * MS, ..config(governor) };
            let mut board = Board::new(uniform(2), config, task);
            board.run_until(4_000 * MS);
            let entries = |entered: u8| {
                let entry = |f: &&schedtwin_types::Fact| matches!(f.kind, FactKind::IdleEnter { state, .. } if state == entered);
                board.facts.iter().filter(entry).count()
            };
            let (shallow, deep) = (entries(0), entries(1));
            assert!(shallow > 20, "{governor} at {hz} Hz: {shallow} in state 0");
            assert_eq!(deep > 0, governor != "shallow", "{governor} at {hz} Hz: {deep} in 1");
        }
    }
}

/// An interrupt that nobody has sent for a reason.
const NOTHING: fn() -> IrqLines = || IrqLine::IrqWork.into();

fn menu(kernel: &Kernel) -> &MenuCpu {
    match &kernel.inside().cpus[CpuId(0)].governor {
        Governor::Menu(menu) => menu,
        other => panic!("another governor: {other:?}"),
    }
}

/// A refused entry is a stay of no length that the governor does not hear of: menu remembers an interval that
/// never counts, as after the boot.
#[test]
fn a_refused_entry_is_not_reflected() {
    let cpu = CpuId(0);
    let mut kernel = Kernel::boot(uniform(1), config("menu 6.12"));
    kernel.idle_enter(cpu, 0);
    kernel.idle_refused(cpu, 300 * US, NOTHING());
    assert_eq!(
        (kernel.inside().cpus[cpu].rejected, kernel.inside().cpus[cpu].last_residency_ns),
        (1, 0)
    );
    assert!(!menu(&kernel).needs_update);
    kernel.idle_enter(cpu, 400 * US);
    kernel.idle_exit(cpu, 700 * US, NOTHING());
    assert!(menu(&kernel).needs_update);
    kernel.idle_enter(cpu, 800 * US);
    // The boot, the refusal, and 300 us less the exit latency of 1 us, or half of that.
    let intervals = menu(&kernel).intervals;
    assert_eq!(intervals[..2], [u32::MAX; 2]);
    assert!((100..=299).contains(&intervals[2]), "{intervals:?}");
    kernel.verify();
}

/// A CPU polls on after an interrupt that asks for nothing, to its limit of 1/16 tick, and says that it gave up.
#[test]
fn polling_lasts_to_its_limit_through_interrupts() {
    let cpu = CpuId(0);
    let mut machine = uniform(1);
    machine.idle_tables[0][0].polling = true;
    // No latency at all: menu always takes state 0.
    let strict = PmQos { cpu_latency_us: Some(0), resume_latency_us: None };
    let mut kernel = Kernel::boot(machine, Config { pm_qos: strict, ..config("menu 6.12") });
    kernel.idle_enter(cpu, 0);
    let until = kernel.hardware().wires(cpu).debt + 250 * US;
    assert_eq!(kernel.hardware().wires(cpu).activity, Activity::Poll { until });
    kernel.verify();
    kernel.interrupt(cpu, 100 * US, NOTHING(), Mode::Kernel);
    assert_eq!(kernel.hardware().wires(cpu).activity, Activity::Poll { until });
    assert_eq!(kernel.inside().cpus[cpu].tick.idle_entrytime, 101 * US, "as seen by the governor");
    kernel.verify();
    kernel.poll_end(cpu, until);
    assert_eq!(kernel.hardware().wires(cpu).activity, Activity::IdleLoop);
    assert_eq!(
        kernel.inside().cpus[cpu].last_residency_ns,
        250 * US,
        "one stay, interrupt included"
    );
    assert!(menu(&kernel).poll_time_limit && menu(&kernel).needs_update);
    assert!(!kernel.inside().cpus[cpu].tick.tick_stopped, "polling keeps the tick");
    // The next round is judged from the interrupt's end: nothing has ended it since.
    assert_eq!(kernel.inside().cpus[cpu].tick.idle_entrytime, 101 * US);
    kernel.verify();
}

/// A task for a CPU that polls, or watches the flag asleep: no interrupt is sent, and it runs.
#[test]
fn a_task_comes_to_a_polling_cpu_without_an_interrupt() {
    for (polling, monitors) in [(false, false), (true, false), (false, true)] {
        let mut machine = uniform(2);
        machine.idle_tables[0][0].polling = polling;
        machine.idle_tables[0].iter_mut().for_each(|state| state.monitors = monitors);
        let config = Config { fair_server_runtime: 0, ..config("shallow") };
        // Each wakes for a moment at its own pace; a futex would do, but sleeping on another CPU is enough.
        let other = vec![pin(1), Do::Run(20 * US), sleep(350 * US), Do::Again(1)];
        let main = vec![
            pin(0),
            Do::Start(other),
            Do::Run(30 * US),
            Do::Call(Syscall::SchedYield),
            Do::Again(2),
        ];
        let mut board = Board::new(machine, config, main);
        board.run_until(60 * MS);
        let count = |wanted: &dyn Fn(&FactKind) -> bool| {
            board.facts.iter().filter(|fact| wanted(&fact.kind)).count()
        };
        let ran = count(&|kind| matches!(kind, FactKind::Switch { next, .. } if !next.is_idle()));
        assert!(ran > 100, "{ran} switches");
        // The first move of the new task to its CPU is a push, by interrupt unless that CPU polls.
        let sent = count(&|kind| matches!(kind, FactKind::Ipi { target: CpuId(1), .. }));
        assert_eq!(sent == 0, polling || monitors, "{sent} interrupts");
    }
}
