// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers that expire near each other share an interrupt, if their slack allows.
//!
//! A timer may expire from the time that was asked for (soft) until its slack after that (hard). The interrupt is armed for the
//! earliest hard time, and whatever has passed its soft one by then expires with it. Real-time tasks have no slack.

use crate::scenarios::{Log, SECOND, logged, metric, written};
use schedtwin_types::{CpuId, FactKind, IrqLine};

/// Two tasks on CPU 5, every 10 ms a hundred times, the second one 30 us after the first.
fn two(policy: &str) -> String {
    let task = |name: &str, delay: u32| {
        format!(
            r#""{name}": {{ "loop": 100, "cpus": [5], "policy": "{policy}", "delay": {delay}, "run": 5,
                "timer": {{ "ref": "{name}", "period": 10000 }} }}"#
        )
    };
    format!("{}, {}", task("one", 1000), task("two", 1030))
}

/// Interrupts of CPU 5's timer, and by how much the second task is woken late, us.
fn seen(kernel: &str, policy: &str) -> (usize, f64) {
    let scenario = written("uniform8", kernel, &two(policy), SECOND);
    let (log, result): (Log, _) = logged(&scenario, 1);
    let timer = |kind: &FactKind| matches!(kind, FactKind::IrqEntry { lines } if lines.contains(IrqLine::ClockEvent));
    let on_5 = log.facts.iter().filter(|fact| fact.cpu == CpuId(5) && timer(&fact.kind)).count();
    (on_5, metric(&result, "wu_lat", "p50", &[("task", "two")]))
}

#[test]
fn two_timers_share_an_interrupt_within_their_slack() {
    let apart = "linux-6.12:cpufreq=performance,cpuidle=shallow,timer_slack_ns=0";
    let together = "linux-6.12:cpufreq=performance,cpuidle=shallow";
    let (two, late_apart) = seen(apart, "SCHED_OTHER");
    let (one, late_together) = seen(together, "SCHED_OTHER");
    let (real_time, _) = seen(together, "SCHED_FIFO");
    // A hundred pairs: two interrupts each, or one; ticks while the tasks start come on top.
    assert!((200..=215).contains(&two), "{two} interrupts without slack");
    assert!((100..=115).contains(&one), "{one} interrupts with 50 us of slack");
    assert!((200..=215).contains(&real_time), "{real_time} interrupts of real-time tasks");
    // The first one's hard time is 50 us after its soft one, 20 us after the second one's.
    assert!(late_together - late_apart > 15.0, "{late_together} against {late_apart} us");
    assert!(late_together - late_apart < 30.0, "{late_together} against {late_apart} us");
}
