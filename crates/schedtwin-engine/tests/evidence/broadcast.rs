// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers that stop in idle states: who wakes the CPU instead, when, and who else is disturbed.

use crate::scenarios::{Log, SECOND, logged, metric, written};
use schedtwin_engine::Scenario;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_types::{CpuId, FactKind, IpiKind, IrqLine};

/// Only the deepest state, without a tick: every sleep stops the timer, and nobody has one but the tasks.
const KERNEL: &str = "linux-6.12:cpufreq=performance,cpuidle=shallow,cpuidle_disable=0/1";
const DEEP: &str = r#"{ name = "off", entry_ns = 30_000, exit_ns = 100_000, residency_us = 400, power = "off", deep = true, STOPS },"#;

/// uniform8 with one state whose timer stops, and a broadcast device.
fn machine(device: &str) -> (tempfile::TempDir, String) {
    let text =
        schedtwin_engine::builtin_machine("uniform8").expect("a built-in machine").text.to_string();
    let line =
        text.lines().find(|line| line.contains("name = \"off\"")).expect("its deepest state");
    let stops = DEEP.replace("STOPS", "local_timer_stops = true");
    let text = text.replace(line, &stops);
    let table =
        if device.is_empty() { String::new() } else { format!("\n[broadcast]\n{device}\n") };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("timers.toml");
    std::fs::write(&path, text + &table).expect("the folder is writable");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

/// Until the first ticks have stopped, all CPUs have events at one time.
const BOOT: usize = 8;

const TIMER: &str = "device = \"t\"";
const MOVES: &str = "device = \"t\"\nmoves = true";
const HRTIMER: &str = "device = \"hrtimer\"";

/// A hundred sleeps of 10 ms on CPU 5, without slack.
const ONE: &str = r#""job": { "loop": 100, "cpus": [5], "policy": "SCHED_FIFO", "run": 100, "timer": { "ref": "t", "period": 10000 } }"#;
/// The same on two CPUs at the same times.
const TWO: &str = r#"
    "job": { "loop": 100, "cpus": [5], "policy": "SCHED_FIFO", "run": 100, "timer": { "ref": "t", "period": 10000, "mode": "absolute" } },
    "other": { "loop": 100, "cpus": [6], "policy": "SCHED_FIFO", "run": 100, "timer": { "ref": "u", "period": 10000, "mode": "absolute" } }"#;

struct Seen {
    /// Median of how late the job is, µs.
    late_us: f64,
    /// IPIs of tick broadcast.
    ipis: usize,
    /// Interrupts of the device, by CPU.
    device: [usize; 8],
}

fn seen(device: &str, tasks: &str) -> Seen {
    let (_folder, machine) = machine(device);
    let scenario: Scenario = written(&machine, KERNEL, tasks, SECOND);
    let (log, result): (Log, RunResult) = logged(&scenario, 1);
    let mut eager: Twin = scenario.twin(1).eager();
    while eager.step(&mut ()) {}
    assert_eq!(eager.finish().digest, result.digest, "{device}: the reference twin agrees");
    let mut device = [0; 8];
    for fact in &log.facts {
        if let FactKind::IrqEntry { lines } = fact.kind {
            device[fact.cpu.index()] += usize::from(lines.contains(IrqLine::BroadcastDevice));
        }
    }
    let timer = |kind: &FactKind| matches!(kind, FactKind::Ipi { kind: IpiKind::Timer, .. });
    let ipis = log.facts.iter().filter(|fact| timer(&fact.kind)).count();
    assert_eq!(ipis as f64, metric(&result, "ipis", "sum", &[("kind", "timer_broadcast")]));
    Seen { late_us: metric(&result, "wu_lat", "p50", &[("task", "job")]), ipis, device }
}

#[test]
fn without_a_device_the_own_timer_wakes() {
    let seen = seen("", ONE);
    assert_eq!((seen.ipis, seen.device), (0, [0; 8]));
    assert!((100.0..104.0).contains(&seen.late_us), "{} us", seen.late_us);
}

/// The interrupt comes to the sleeper itself: as late as its own timer, and nobody else is disturbed.
#[test]
fn a_device_whose_interrupt_moves_wakes_the_sleeper() {
    let seen = seen(MOVES, ONE);
    assert!(seen.ipis <= BOOT, "{}", seen.ipis);
    assert!(seen.device[5] >= 95, "{:?}", seen.device);
    assert!(seen.device.iter().sum::<usize>() - seen.device[5] <= BOOT, "{:?}", seen.device);
    assert!((100.0..104.0).contains(&seen.late_us), "{} us", seen.late_us);
}

/// CPU 0 is woken each time to send an IPI: the sleeper is late by two ways out, and the IPI.
#[test]
fn a_device_that_stays_wakes_its_cpu_first() {
    let seen = seen(TIMER, ONE);
    assert!((99..=100 + BOOT).contains(&seen.ipis), "{}", seen.ipis);
    assert!(seen.device[0] >= 99 && seen.device[1..] == [0; 7], "{:?}", seen.device);
    assert!((200.0..210.0).contains(&seen.late_us), "{} us", seen.late_us);
    // Where its CPU is the sleeper's, nobody else is needed.
    let own = self::seen(&format!("{TIMER}\ncpu = 5"), ONE);
    assert!(own.ipis <= BOOT && own.device[5] >= 99, "{} {:?}", own.ipis, own.device);
    assert!((100.0..104.0).contains(&own.late_us), "{} us", own.late_us);
}

/// Two events at once are one interrupt and one IPI.
#[test]
fn events_at_one_time_share_an_interrupt() {
    let seen = seen(MOVES, TWO);
    assert!((95..=100 + BOOT).contains(&seen.ipis), "{}", seen.ipis);
    let interrupts: usize = seen.device.iter().sum();
    assert!((95..=100 + BOOT).contains(&interrupts), "{:?}", seen.device);
}

/// The CPU that keeps the timer for all waits in the state with a timer, so it is there at once: others are late by its
/// way out of that (1 us), the IPI, and their own way out.
#[test]
fn an_hrtimer_keeps_one_cpu_out() {
    // A lone sleeper has nobody to hand its timer to: it stays out itself.
    let alone = seen(HRTIMER, ONE);
    assert_eq!((alone.ipis, alone.device), (0, [0; 8]));
    assert!(alone.late_us < 5.0, "{} us", alone.late_us);
    // Of two the first to sleep has the earlier event: the other hands over its own.
    let seen = seen(HRTIMER, TWO);
    assert_eq!(seen.device, [0; 8]);
    assert!((95..=101).contains(&seen.ipis), "{}", seen.ipis);
    let (_folder, machine) = machine(HRTIMER);
    let (log, _) = logged(&written(&machine, KERNEL, TWO, SECOND), 1);
    for cpu in [5, 6] {
        let entered = |state| {
            let entered = |kind: &FactKind| matches!(kind, FactKind::IdleEnter { state: s, .. } if *s == state);
            log.facts.iter().filter(|f| f.cpu == CpuId(cpu) && entered(&f.kind)).count()
        };
        // State 0 is switched off, and still where an entry that is busy goes (`find_deepest_state`).
        assert!(entered(0) + entered(2) > 95 && entered(1) == 0, "cpu{cpu}");
    }
}
