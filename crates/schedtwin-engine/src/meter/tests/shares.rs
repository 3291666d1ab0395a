// SPDX-License-Identifier: GPL-2.0-or-later
//! Sums of the parts of a run: shares of time and of work, needs, changes, residencies.

use super::*;

/// cpu0 needs 1 GHz and has half of it for 2 us, then all of it for 1 us, then 1 us more than it needs, then what it needs.
#[test]
fn provision_is_a_share_of_time_and_of_work() {
    let mut meter = meter(0);
    meter.cpu_activity(0, CpuId(1), Activity::Idle(0));
    meter.cpu_needs(0, CpuId(0), 1);
    meter.domain_opp(2_000, LITTLE, 1);
    meter.cpu_needs(3_000, CpuId(0), 0);
    meter.domain_opp(4_000, LITTLE, 0);
    meter.verify(8_000);
    let (metrics, _, _) = meter.finish(8_000);
    // At capacity 256 1 us of work below the need and 1 us above it, of 5 us; the big CPU works at 0.4 of 1024.
    let (part, little, big) = (256.0 * 1_000.0, 256.0 * 5_000.0, 0.4 * 1024.0 * 8_000.0);
    for (key, expected) in [
        ("under_provisioned mean cluster=little", 25.0),
        ("over_provisioned mean cluster=little", 12.5),
        ("under_provisioned mean cluster=little of=work", 20.0),
        ("over_provisioned mean cluster=little of=work", 20.0),
        ("over_provisioned mean cluster=big", 0.0),
        ("under_provisioned mean", 12.5),
        ("under_provisioned mean of=work", 100.0 * part / (little + big)),
    ] {
        let found = metrics.iter().find(|m| key_of(m) == key).unwrap().value.unwrap();
        assert!((found - expected).abs() < 1e-9, "{key}: {found} instead of {expected}");
    }
}

/// Of two needs of more one passes and one is settled; the way back is a need of less.
#[test]
fn needs_are_told_by_direction() {
    let mut meter = meter(0);
    meter.cpu_needs(100, CpuId(0), 1);
    meter.cpu_needs(200, CpuId(0), 0);
    meter.cpu_needs(1_000, CpuId(0), 1);
    meter.frequency_requested(3_000, LITTLE, 1);
    meter.domain_opp(7_000, LITTLE, 1);
    meter.cpu_needs(10_000, CpuId(0), 0);
    meter.frequency_requested(18_000, LITTLE, 0);
    meter.domain_opp(34_000, LITTLE, 0);
    let (metrics, _, _) = meter.finish(40_000);
    for (key, expected) in [
        ("need_to_request mean", Some(2.0)),
        ("request_to_settled mean", Some(4.0)),
        ("need_to_settled mean domain=little", Some(6.0)),
        ("need_to_request mean to=less", Some(8.0)),
        ("need_to_settled mean domain=little to=less", Some(24.0)),
        ("needs_passed mean", Some(50.0)),
        ("needs_passed mean domain=little to=less", Some(0.0)),
        ("needs_passed mean domain=big", None),
    ] {
        let found = metrics.iter().find(|m| key_of(m) == key).unwrap().value;
        assert_eq!(found, expected, "{key}");
    }
}

/// Changes count from the end of the warm-up on, and what is set at time 0 is where a clock begins.
#[test]
fn changes_of_frequency_count_in_the_window() {
    let told =
        |at, khz| fact(at, 0, FactKind::Frequency { policy: PolicyId(0), khz, requested_at: at });
    let events = [
        Event::Opp(0, 0, 1),
        Event::Opp(1_000, 0, 0),
        told(1_000, 500_000),
        Event::Opp(3_000, 0, 1),
        told(3_000, 1_000_000),
        Event::Opp(4_000, 1, 1),
        told(5_000, 500_000),
    ];
    let little = "freq_transitions sum domain=little";
    check(0, 10_000, &events, &[("freq_transitions sum", "3 count"), (little, "2 count")]);
    let over = ("freq_mean mean domain=little over=changes", "750 MHz");
    check(2_000, 10_000, &events, &[("freq_transitions sum", "2 count"), over]);
}

/// The least slack is one that was measured, not the zero that its sum starts from.
#[test]
fn the_least_slack_is_one_that_was_measured() {
    let slack = |at, slack_ns| Event::Mark(at, TaskId(1), Mark::Slack { slack_ns });
    let events = [slack(1_000_000, 3_000_000), slack(2_000_000, 5_000_000)];
    let wanted = [("slack min", "3 ms"), ("slack min task=ui", "3 ms"), ("slack mean", "4 ms")];
    check(0, 10_000_000, &events, &wanted);
}

/// A run that ends before its warm-up has measured nothing: sums are zero, shares and means do not exist.
#[test]
fn a_window_without_length_has_no_shares() {
    let wanted = [
        ("elapsed sum", "0 s"),
        ("energy sum", "0 mJ"),
        ("throughput mean", "none"),
        ("power mean", "none"),
        ("utilization mean", "none"),
        ("under_provisioned mean", "none"),
        ("idle_residency mean cluster=little state=off", "none"),
        ("overutilized mean", "none"),
    ];
    check(1_000, 500, &[], &wanted);
}

/// A task that is moved while it waits counts where it goes; one that sleeps counts nowhere.
#[test]
fn contention_follows_the_queued() {
    let moved = |at, task, from, to| {
        let kind = FactKind::Migrate { task: TaskId(task), from: CpuId(from), to: CpuId(to) };
        fact(at, from, kind)
    };
    let events = [
        wakeup(100, 0, 1, false),
        switch(100, 0, 0, 1),
        wakeup(200, 0, 2, false),
        moved(250, 3, 1, 0),
        moved(600, 2, 0, 1),
        switch(700, 1, 0, 2),
    ];
    // Tasks 1 and 2 on CPU 0 from 200 to 600.
    let wanted =
        [("contention mean cluster=little", "20 %"), ("contention mean cluster=big", "0 %")];
    check(0, 1_000, &events, &wanted);
}

/// A cluster's residency follows the kernel's `cpu_idle` of all its CPUs.
#[test]
fn a_cluster_rests_as_its_cpus_do() {
    let enter = |at, cpu, state| fact(at, cpu, FactKind::IdleEnter { state, tick_stopped: false });
    let exit = fact(700, 0, FactKind::IdleExit { state: 0, residency_ns: 600 });
    let events = [enter(100, 0, 0), enter(200, 1, 1), exit, enter(800, 0, 1)];
    let wanted = [
        ("cluster_residency mean cluster=little state=active", "30 %"),
        ("cluster_residency mean cluster=little state=WFI", "50 %"),
        ("cluster_residency mean cluster=little state=off", "20 %"),
        ("cluster_residency mean cluster=big state=active", "100 %"),
    ];
    check(0, 1_000, &events, &wanted);
}
