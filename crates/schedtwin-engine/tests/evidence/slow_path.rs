// SPDX-License-Identifier: GPL-2.0-or-later
//! schedutil's slow path in the twin, beside the recordings of the real kernel on the emulated board (`slowpath`:
//! no fast switch, a transition latency of 5 ms and so a rate limit of 7.5 ms).
//!
//! Recorded, three times six seconds: 2.1–2.8, 16.7–19.5 and 18.6–47 wakeups a second of the threads of the small,
//! middle and big CPUs, all but one of which changed the frequency; from waking to `cpu_frequency` 15–50 us on a busy
//! CPU and, out of c2, up to 290 us on an idle one; changes of one domain 7.5 ms apart and more, except where
//! the fair server's start overrides the rate limit.

use crate::scenarios::{KERNEL, Log, SECOND, logged, metric, scenario};
use schedtwin_engine::Scenario;
use schedtwin_types::{FactKind, IrqLine, IrqLines, Ns, TaskId};

/// The tasks of the recordings.
const TASKS: &str = r#"
    "ui": { "loop": -1, "run": 1200,
        "timer": { "ref": "unique", "period": 16667, "mode": "absolute" } },
    "small": { "instance": 2, "loop": -1, "run": 100,
        "timer": { "ref": "unique", "period": 16000, "mode": "absolute" } },
    "step": { "loop": -1, "phases": {
        "low": { "loop": 40, "run": 300,
            "timer": { "ref": "unique", "period": 16000, "mode": "absolute" } },
        "high": { "loop": 40, "run": 5000,
            "timer": { "ref": "unique", "period": 16000, "mode": "absolute" } } } }"#;

/// Kernel paths as long as where they print, as the recordings do (machines/rig8.toml).
const PRINTING: &str = "path_costs.wakeup_ns=19_000,path_costs.energy_per_domain_ns=5_000,\
    path_costs.idle_exit_ns=4_500,path_costs.schedule_ns=2_500,path_costs.context_switch_ns=2_000,\
    path_costs.idle_enter_ns=7_000,path_costs.tick_ns=18_500,path_costs.softirq_ns=4_000,\
    path_costs.interrupt_ns=2_000";

fn rig(settings: &str) -> Scenario {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("slowpath.json");
    // Work is in microseconds at full speed of a big CPU.
    let text = format!(r#"{{ "global": {{ "calibration": "CPU7" }}, "tasks": {{ {TASKS} }} }}"#);
    std::fs::write(&path, text).expect("the temporary folder can be written");
    let machine = format!("rig8:fast_switch=false,transition_latency_us=5000,{settings}");
    scenario(&machine, KERNEL, &path.to_string_lossy(), Some(6 * SECOND))
}

/// A thread's wakeups, and for each its way to the frequency change if one followed.
struct Thread {
    wakings: Vec<Ns>,
    /// When, how long after waking, and after the request.
    changes: Vec<(Ns, Ns, Ns)>,
}

fn thread(log: &Log, name: &str, domain: u16) -> Thread {
    let task = log.task(name);
    let mut thread = Thread { wakings: Vec::new(), changes: Vec::new() };
    for fact in &log.facts {
        match fact.kind {
            FactKind::Waking { task: woken, .. } if woken == task => thread.wakings.push(fact.at),
            FactKind::Frequency { policy, requested_at, .. } if policy.0 == domain => {
                let since = fact.at - thread.wakings.last().expect("a change follows a wakeup");
                thread.changes.push((fact.at, since, fact.at - requested_at));
            }
            _ => {}
        }
    }
    thread
}

#[test]
fn looks_like_the_recordings() {
    let rig = rig(PRINTING);
    for seed in 1..=3 {
        let (log, result) = logged(&rig, seed);
        let bounds = [("sugov:0", 1..=4), ("sugov:4", 12..=22), ("sugov:6", 15..=65)];
        for (domain, (name, per_second)) in bounds.into_iter().enumerate() {
            let thread = thread(&log, name, domain as u16);
            let rate = thread.wakings.len() / 6;
            assert!(per_second.contains(&rate), "{name} seed {seed}: {rate} wakeups a second");
            assert!(
                thread.wakings.len() - thread.changes.len() <= 2,
                "{name}: each changes something"
            );
            for (at, since_waking, since_request) in &thread.changes {
                // Recorded from 15 us on: the paths here print less (a bound of 10 us held with longer IPIs).
                assert!((3_000..300_000).contains(since_waking), "{name} at {at}: {since_waking}");
                assert!(since_request > since_waking && *since_request < 600_000, "{name} at {at}");
            }
            // A late thread, 0.3 ms at most, is followed by one in time.
            let early = |pair: &&[(Ns, Ns, Ns)]| pair[1].0 - pair[0].0 < 7_200_000;
            let early = thread.changes.windows(2).filter(early).count();
            let few = if name == "sugov:0" { thread.changes.len() / 2 } else { 4 };
            assert!(early <= few, "{name} seed {seed}: {early} within the rate limit");
        }
        // They take what they took, and nobody's latency.
        let cpu_time = metric(&result, "cpu_time", "sum", &[("task", "sugov")]);
        assert!((0.0005..0.01).contains(&cpu_time), "{cpu_time} s");
        let of_group = |m: &&schedtwin_engine::result::Metric| {
            m.name == "wakeup_latency" && m.labels.iter().any(|l| l.1 == "sugov")
        };
        assert!(result.metrics.iter().filter(of_group).all(|m| m.value.is_none()));
    }
}

/// The driver's time is between the switch and the change: on the CPU if it spins, asleep if it sleeps.
#[test]
fn the_drivers_time_is_where_it_should_be() {
    for (driver, spins) in [("spins", true), ("sleeps", false)] {
        let (log, _) = logged(&rig(&format!("driver={driver},driver_latency_us=700")), 1);
        let (task, domain) = (log.task("sugov:6"), 2);
        let (mut since, mut had, mut changes) = (0, 0, 0);
        for fact in &log.facts {
            match fact.kind {
                FactKind::Switch { next, .. } if next == task => since = fact.at,
                FactKind::Switch { prev, .. } if prev == task => had += fact.at - since,
                FactKind::Frequency { policy, requested_at, .. } if policy.0 == domain => {
                    assert!(fact.at - requested_at > 700_000, "{driver} at {}", fact.at);
                    changes += 1;
                }
                _ => {}
            }
        }
        assert!(changes > 50, "{driver}: {changes}");
        let each = had / changes;
        let expected = if spins { 700_000..720_000 } else { 1_000..30_000 };
        assert!(expected.contains(&each), "{driver}: {each} ns a change");
    }
}

/// The interrupt of a driver that sleeps comes to the first CPU, and no other device interrupts.
#[test]
fn a_sleeping_driver_interrupts_the_first_cpu() {
    let machine = "pixel6:fast_switch=false,driver=sleeps,driver_latency_us=400";
    let (log, _) = logged(&scenario(machine, KERNEL, "ui-phone", Some(SECOND)), 1);
    let device = |lines: IrqLines| lines.contains(IrqLine::CpufreqDriver);
    let by_cpu = |first: bool| {
        let hit = |f: &&schedtwin_types::Fact| match f.kind {
            FactKind::IrqEntry { lines } => device(lines) && (f.cpu.0 == 0) == first,
            _ => false,
        };
        log.facts.iter().filter(hit).count()
    };
    assert!(by_cpu(true) > 10 && by_cpu(false) == 0, "{} {}", by_cpu(true), by_cpu(false));
    assert_eq!(log.task("sugov:4"), TaskId(8 + 2), "after the idle task and the stoppers");
}
