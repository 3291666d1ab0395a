// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios computed by hand, and properties of random streams of events.

mod fairness;
mod shares;

use super::*;
use schedtwin_types::rng::Rng;
use schedtwin_types::{ClockDomainId, PolicyId, TaskState, WakeSource};

/// The frequency domains of the machine.
const LITTLE: ClockDomainId = ClockDomainId(0);
const BIG: ClockDomainId = ClockDomainId(1);

/// Two little CPUs that share a clock, one big CPU with its own. States: 0 WFI, 1 off.
fn setup(warmup_ns: Ns) -> MeterSetup {
    let idle = |name: &str, uses_wfi_power, entry, exit, abort| MeterIdle {
        name: name.to_owned(),
        wfi_permille: if uses_wfi_power { 1000 } else { 0 },
        active_permille: 0,
        deep: !uses_wfi_power,
        entry_energy_pj: entry,
        exit_energy_pj: exit,
        abort_energy_pj: abort,
    };
    let cpu = |domain: u16, cluster: &str, capacity| MeterCpu {
        threads: Vec::new(),
        second_permille: 1000,
        domain: ClockDomainId(domain),
        cluster_name: cluster.to_owned(),
        idle_states: vec![idle("WFI", true, 0, 0, 0), idle("off", false, 1_000, 200, 30)],
        capacity,
    };
    let opp = |khz, active_uw, wfi_uw, static_uw| MeterOpp {
        khz,
        active_uw,
        wfi_uw,
        static_uw,
        idle_static_uw: static_uw,
    };
    let off =
        |name: &str, opps| MeterDomain { name: name.to_owned(), opps, off_uw: 0, dependence: None };
    MeterSetup {
        cpus: vec![cpu(0, "little", 256), cpu(0, "little", 256), cpu(1, "big", 1024)],
        domains: vec![
            off("little", vec![opp(500_000, 100, 10, 3), opp(1_000_000, 400, 40, 7)]),
            off("big", vec![opp(800_000, 1_000, 100, 50), opp(2_000_000, 5_000, 200, 70)]),
        ]
        .into(),
        power_domains: vec![].into(),
        l3: None,
        heats: true,
        warmup_ns,
        bounds: Bounds::default(),
    }
}

/// One call of the meter.
#[derive(Clone, Copy, Debug)]
enum Event {
    Fact(Fact),
    Mark(Ns, TaskId, Mark),
    Activity(Ns, CpuId, Activity),
    Opp(Ns, u16, u16),
}

fn feed(meter: &mut Meter, event: &Event) {
    match *event {
        Event::Fact(fact) => meter.fact(&fact),
        Event::Mark(at, task, mark) => meter.mark(at, task, mark),
        Event::Activity(at, cpu, activity) => meter.cpu_activity(at, cpu, activity),
        Event::Opp(at, domain, opp) => {
            meter.domain_opp(at, ClockDomainId(domain), usize::from(opp));
        }
    }
}

fn fact(at: Ns, cpu: u16, kind: FactKind) -> Event {
    Event::Fact(Fact { at, cpu: CpuId(cpu), kind })
}

fn switch(at: Ns, cpu: u16, prev: u32, next: u32) -> Event {
    let prev_state = TaskState::Interruptible;
    fact(at, cpu, FactKind::Switch { prev: TaskId(prev), next: TaskId(next), prev_state })
}

fn waking(at: Ns, cpu: u16, task: u32, source: WakeSource) -> Event {
    fact(at, cpu, FactKind::Waking { task: TaskId(task), source, prev_cpu: CpuId(0) })
}

fn wakeup(at: Ns, cpu: u16, task: u32, new: bool) -> Event {
    fact(at, cpu, FactKind::Wakeup { task: TaskId(task), target: CpuId(0), new })
}

fn activity(at: Ns, cpu: u16, activity: Activity) -> Event {
    Event::Activity(at, CpuId(cpu), activity)
}

/// A meter with tasks 1 and 2 of group `ui` and task 3 of group `render`.
fn meter(warmup_ns: Ns) -> Meter {
    let mut meter = Meter::new(setup(warmup_ns));
    meter.task_created(TaskId(1), "ui-0", "ui");
    meter.task_created(TaskId(2), "ui-1", "ui");
    meter.task_created(TaskId(3), "render-0", "render");
    meter
}

/// Runs a scenario and compares the metrics that `wanted` names, as `(name stat labels, value unit)`.
fn check(warmup_ns: Ns, end: Ns, events: &[Event], wanted: &[(&str, &str)]) {
    let mut meter = meter(warmup_ns);
    for event in events {
        feed(&mut meter, event);
    }
    meter.verify(end);
    let (metrics, _, _) = meter.finish(end);
    for (key, value) in wanted {
        let found = metrics.iter().find(|m| key_of(m) == *key);
        let found = found.unwrap_or_else(|| panic!("there is a metric {key}"));
        let text = found.value.map_or("none".to_owned(), |v| format!("{v} {}", found.unit));
        assert_eq!(text, *value, "{key}");
    }
}

fn key_of(metric: &Metric) -> String {
    let labels = metric.labels.iter().map(|(key, value)| format!(" {key}={value}"));
    format!("{} {}{}", metric.name, metric.stat, labels.collect::<String>())
}

/// ```text
/// ns      0        1000      3000   3010            6000  6020     10000
/// cpu0    active   entering1        off 1           exiting active
/// cpu1    active   off 1 (at 1000)                                  (until the end)
/// domain  500 MHz            1 GHz (at 3000)
/// ```
#[test]
fn residency_and_energy_are_exact() {
    let events = [
        activity(1_000, 0, Activity::Entering(1)),
        activity(1_000, 1, Activity::Idle(1)),
        activity(1_000, 2, Activity::Idle(0)),
        Event::Opp(3_000, 0, 1),
        activity(3_010, 0, Activity::Idle(1)),
        activity(6_000, 0, Activity::Exiting(1)),
        activity(6_020, 0, Activity::Active),
    ];
    let mut meter = meter(0);
    for event in &events {
        feed(&mut meter, event);
        let (Event::Activity(at, ..) | Event::Opp(at, ..)) = *event else { panic!() };
        meter.verify(at);
    }
    // cpu0 active at 1 GHz, cpu1 off, the domain awake; cpu2 in WFI at 800 MHz.
    assert_eq!((meter.domain_power_uw(LITTLE), meter.domain_power_uw(BIG)), (400 + 7, 100 + 50));
    let (metrics, _, cpus) = meter.finish(10_000);
    let cpu0: u128 = 100 * 3_000 + 400 * (10 + 20 + 3_980) + 1_000 * (1_000 + 200);
    let cpu1: u128 = 100 * 1_000 + 1_000 * 1_000;
    let little = cpu0 + cpu1 + 3 * 3_000 + 7 * (10 + 4_000);
    let big: u128 = 1_000 * 1_000 + 100 * 9_000 + 50 * 10_000;
    let truth = &meter.truth;
    let setup = &meter.setup;
    assert_eq!([truth.cpu_fj(setup, 0), truth.cpu_fj(setup, 1)], [cpu0, cpu1]);
    assert_eq!([truth.domain_fj(setup, LITTLE), truth.domain_fj(setup, BIG)], [little, big]);
    assert_eq!(cpus[0].idle_ns, [0, 2_010 + 2_990 + 20]);
    assert_eq!(cpus[0].idle_entries, [0, 1]);
    assert_eq!(cpus[1].idle_ns, [0, 9_000]);
    assert_eq!(cpus[2].idle_ns, [9_000, 0]);
    assert_eq!(cpus[0].frequency_ns, [(500_000, 3_000), (1_000_000, 7_000)]);
    let value = |key: &str| metrics.iter().find(|m| key_of(m) == key).unwrap().value.unwrap();
    assert_eq!(value("energy sum"), (little + big) as f64 / 1e12);
    assert_eq!(value("power mean domain=big"), big as f64 / 10_000.0 / 1e3);
    assert_eq!(value("energy sum cpu=1"), cpu1 as f64 / 1e12);
    assert_eq!(value("freq_mean mean domain=little"), 850.0);
    // Active: cpu0 1000 ns and cpu1 1000 ns at 500 MHz, cpu0 3980 ns at 1 GHz.
    let active = (2_000.0 * 500.0 + 3_980.0 * 1_000.0) / 5_980.0;
    assert_eq!(value("freq_mean mean domain=little while=active"), active);
    assert_eq!(value("idle_residency mean cluster=little state=off"), 70.1);
    assert_eq!(value("freq_residency mean domain=little khz=500000"), 30.0);
}

#[test]
fn idle_visits_are_counted_by_how_they_end() {
    use Activity::*;
    /// Of states 0 and 1.
    type Count = [u64; 2];
    // (sequence, entries, exits, aborts)
    let table: &[(&[Activity], Count, Count, Count)] = &[
        (&[Entering(1), Idle(1), Exiting(1), Active], [0, 1], [0, 1], [0, 0]),
        (&[Entering(1), Exiting(1), Active], [0, 0], [0, 0], [0, 1]),
        (&[Entering(1), Active], [0, 0], [0, 0], [0, 1]),
        // Demoted on entry: only the state that was reached is paid.
        (&[Entering(1), Idle(0), Active], [1, 0], [1, 0], [0, 0]),
        // The cluster goes down around the idle CPU, and comes up again.
        (&[Idle(0), Idle(1), Idle(0), Active], [1, 1], [1, 1], [0, 0]),
        (&[Polling, Active], [1, 0], [1, 0], [0, 0]),
        (&[Active, Active], [0, 0], [0, 0], [0, 0]),
    ];
    for (sequence, entries, exits, aborts) in table {
        let mut meter = meter(0);
        for (step, activity) in sequence.iter().enumerate() {
            meter.cpu_activity(10 * (step as Ns + 1), CpuId(0), *activity);
        }
        meter.verify(1_000);
        let visits = [0, 1].map(|state| meter.truth.visits(0, state));
        assert_eq!(visits.map(|v| v.entries), *entries, "{sequence:?}");
        assert_eq!(visits.map(|v| v.exits), *exits, "{sequence:?}");
        assert_eq!(visits.map(|v| v.aborts), *aborts, "{sequence:?}");
    }
}

#[test]
fn saying_what_is_already_so_changes_nothing() {
    let mut meter = meter(0);
    let before = meter.digest();
    meter.cpu_activity(5, CpuId(0), Activity::Active);
    meter.domain_opp(6, BIG, 0);
    assert_eq!(meter.digest(), before);
}

#[test]
fn tasks_and_idle_tasks_fill_the_time() {
    let events = [switch(100, 0, 0, 1), switch(400, 0, 1, 2), switch(900, 0, 2, 0)];
    let mut meter = meter(200);
    for event in &events {
        feed(&mut meter, event);
    }
    feed(&mut meter, &switch(950, 2, 0, 1));
    let (_, tasks, cpus) = meter.finish(1_000);
    assert_eq!(tasks[0].cpu_time_by_cpu_ns, [200, 0, 50]);
    assert_eq!((tasks[0].cpu_time_ns, tasks[0].switches), (250, 1));
    assert_eq!(tasks[1].cpu_time_by_cpu_ns, [500, 0, 0]);
    assert_eq!(cpus.iter().map(|c| c.busy_ns).collect::<Vec<_>>(), [700, 0, 50]);
    assert_eq!(tasks.iter().map(|t| t.id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn latencies_are_split_by_group_cluster_and_source() {
    let events = [
        waking(1_000, 1, 1, WakeSource::Timer),
        wakeup(3_000, 0, 1, false),
        switch(7_000, 0, 0, 1),
        waking(8_000, 0, 3, WakeSource::Task),
        wakeup(8_000, 0, 3, false),
        switch(18_000, 2, 0, 3),
        // New: waits, but was not asleep.
        wakeup(19_000, 0, 2, true),
        switch(20_000, 1, 0, 2),
        // Woken while it still runs: its next switch is another story.
        waking(21_000, 0, 2, WakeSource::Task),
        wakeup(21_000, 1, 2, false),
        switch(22_000, 1, 2, 0),
        switch(90_000, 1, 0, 2),
    ];
    let wanted = [
        ("waking_latency mean", "8 us"),
        ("waking_latency max", "10 us"),
        ("waking_latency max task=ui", "6 us"),
        ("waking_latency mean task=render", "10 us"),
        ("wakeup_latency mean", "7 us"),
        ("wakeup_latency max cluster=little", "4 us"),
        ("wakeup_latency p50 cluster=big", "10 us"),
        ("wakeup_latency max source=timer", "4 us"),
        ("wakeup_latency max source=task", "10 us"),
        ("wakeup_latency p99 source=kernel", "none"),
        ("context_switches sum", "5 count"),
        ("context_switches sum task=ui", "3 count"),
    ];
    check(0, 100_000, &events, &wanted);
    // Only what ends in the window counts, from its true beginning.
    let wanted = [("waking_latency max task=ui", "none"), ("waking_latency mean", "10 us")];
    check(10_000, 100_000, &events, &wanted);
}

#[test]
fn jobs_slack_and_late_timers() {
    let done = |at, task, released| Event::Mark(at, TaskId(task), Mark::JobDone { released });
    let slack = |at, slack_ns| Event::Mark(at, TaskId(1), Mark::Slack { slack_ns });
    let late = |at, latency_ns| Event::Mark(at, TaskId(3), Mark::WakeupLatency { latency_ns });
    let events = [
        done(1_000_000, 1, 0),
        slack(1_000_000, -9_000_000),
        done(12_000_000, 1, 8_000_000),
        done(14_000_000, 2, 8_000_000),
        done(20_000_000, 3, 19_000_000),
        slack(12_000_000, 3_000_000),
        slack(14_000_000, -1_000_000),
        late(15_000_000, 7_000),
    ];
    let wanted = [
        ("elapsed sum", "0.5 s"),
        ("warmup sum", "0.01 s"),
        ("throughput mean", "6 1/s"),
        ("throughput mean task=ui", "4 1/s"),
        ("frame_duration mean task=ui", "5 ms"),
        ("frame_duration max", "6 ms"),
        ("frame_duration p99 task=render", "1 ms"),
        ("missed_periods mean", "50 %"),
        ("missed_periods mean task=render", "none"),
        ("slack mean task=ui", "1 ms"),
        ("slack min", "-1 ms"),
        ("slack min task=render", "none"),
        ("wu_lat max task=render", "7 us"),
    ];
    check(10_000_000, 510_000_000, &events, &wanted);
}

#[test]
fn counts_and_shares() {
    let exit = |at, cpu| fact(at, cpu, FactKind::IdleExit { state: 1, residency_ns: 5 });
    let miss = |at, cpu, below| fact(at, cpu, FactKind::IdleMiss { state: 1, below });
    let events = [
        exit(10, 0),
        miss(10, 0, true),
        exit(110, 0),
        miss(110, 0, false),
        exit(120, 1),
        exit(130, 2),
        miss(130, 2, true),
        exit(140, 2),
        fact(90, 0, FactKind::Overutilized { on: true }),
        fact(350, 1, FactKind::Overutilized { on: false }),
        fact(120, 0, FactKind::IrqExit { spent_ns: 30 }),
        fact(400, 0, FactKind::IrqExit { spent_ns: 25 }),
        fact(401, 0, FactKind::Tick),
        fact(402, 0, FactKind::Ipi { target: CpuId(1), kind: IpiKind::NohzKick }),
        fact(403, 0, FactKind::Balance { level: 0, idle: 2, moved: 3 }),
        fact(404, 0, FactKind::Migrate { task: TaskId(1), from: CpuId(0), to: CpuId(2) }),
        fact(405, 0, FactKind::Preempted { task: TaskId(3) }),
    ];
    let wanted = [
        ("idle_too_deep mean", "25 %"),
        ("idle_too_deep mean cluster=little", "50 %"),
        ("idle_too_deep mean cluster=little of=all", "25 %"),
        ("idle_too_shallow mean", "25 %"),
        ("idle_too_shallow mean cluster=big", "50 %"),
        ("overutilized mean", "25 %"),
        // From 100: 20 of the 30 ns of the first interrupt, and the second; 2 little CPUs.
        ("irq_time mean cluster=little", "2.25 %"),
        ("ticks sum", "1 count"),
        ("ipis sum", "1 count"),
        ("ipis sum kind=nohz_kick", "1 count"),
        ("balance_passes sum idle=newly_idle", "1 count"),
        ("balance_moved sum", "3 count"),
        ("migrations sum task=ui", "1 count"),
        ("preemptions sum task=render", "1 count"),
        // All three CPUs are active at their lowest frequency: (2 * 256 / 2 + 1024 * 0.4) / 1536.
        ("utilization mean cluster=big", "40 %"),
        ("utilization mean cluster=little", "50 %"),
    ];
    check(100, 1_100, &events, &wanted);
}

#[test]
fn a_wish_for_a_frequency_is_paired_with_the_opp_that_fulfils_it() {
    let wish = |at, khz, requested_at| {
        fact(at, 0, FactKind::Frequency { policy: PolicyId(0), khz, requested_at })
    };
    let opp = |at, opp| Event::Opp(at, 0, opp);
    let key = "freq_update_latency mean domain=little";
    let table: &[(&str, &[Event], &str)] = &[
        ("settled later", &[wish(3_000, 1_000_000, 2_000), opp(5_000, 1)], "3 us"),
        (
            "settled at once, the fact seen first",
            &[wish(5_000, 1_000_000, 4_000), opp(5_000, 1)],
            "1 us",
        ),
        (
            "settled at once, the fact seen last",
            &[opp(5_000, 1), wish(5_000, 1_000_000, 4_000)],
            "1 us",
        ),
        (
            "settled before the driver's call returned",
            &[opp(4_000, 1), wish(5_000, 1_000_000, 3_000)],
            "1 us",
        ),
        ("already there", &[opp(2_000, 1), wish(5_000, 1_000_000, 3_000)], "none"),
        ("moved by somebody else", &[opp(4_000, 1)], "none"),
        (
            "a newer wish replaces the older",
            &[wish(1_000, 1_000_000, 0), wish(2_000, 500_000, 2_000), opp(9_000, 1)],
            "none",
        ),
    ];
    for (what, events, value) in table {
        println!("{what}");
        check(0, 10_000, events, &[(key, value)]);
    }
}

#[test]
#[should_panic(expected = "switches from a task that it does not run")]
fn a_switch_from_another_task_is_a_bug() {
    feed(&mut meter(0), &switch(10, 0, 2, 1));
}

#[test]
#[should_panic(expected = "truth goes back")]
fn truth_in_the_wrong_order_is_a_bug() {
    let mut meter = meter(0);
    meter.cpu_activity(10, CpuId(0), Activity::Polling);
    meter.cpu_activity(9, CpuId(1), Activity::Polling);
}

/// A random stream that a machine of `setup` could produce, with tasks 1 to 3.
fn stream(seed: u64, length: usize) -> Vec<Event> {
    let mut random = Rng::with_state(seed);
    let mut at = 0;
    let mut running = [0u32; 3];
    let mut events = Vec::with_capacity(length);
    for _ in 0..length {
        at += random.below(3) * random.below(5_000);
        let cpu = random.below(3) as u16;
        let task = 1 + random.below(3) as u32;
        let source =
            [WakeSource::Task, WakeSource::Timer, WakeSource::Kernel][random.below(3) as usize];
        let state = random.below(2) as u8;
        let kind = match random.below(20) {
            0..5 => {
                let prev = running[cpu as usize];
                let free = [0, task].into_iter().rev().find(|t| *t == 0 || !running.contains(t));
                let next = free.unwrap_or(0);
                if next == prev {
                    continue;
                }
                running[cpu as usize] = next;
                events.push(switch(at, cpu, prev, next));
                continue;
            }
            5 => {
                events.push(Event::Opp(at, random.below(2) as u16, random.below(2) as u16));
                continue;
            }
            6..10 => {
                let to = match random.below(5) {
                    0 => Activity::Active,
                    1 => Activity::Polling,
                    2 => Activity::Entering(state),
                    3 => Activity::Idle(state),
                    _ => Activity::Exiting(state),
                };
                events.push(activity(at, cpu, to));
                continue;
            }
            10 => {
                let mark = match random.below(3) {
                    0 => Mark::JobDone { released: random.below(at + 1) },
                    1 => Mark::Slack { slack_ns: random.below(100) as i64 - 50 },
                    _ => Mark::WakeupLatency { latency_ns: random.below(100) },
                };
                events.push(Event::Mark(at, TaskId(task), mark));
                continue;
            }
            11 => FactKind::Waking { task: TaskId(task), source, prev_cpu: CpuId(cpu) },
            12 => FactKind::Wakeup { task: TaskId(task), target: CpuId(cpu), new: state == 1 },
            13 => FactKind::Frequency {
                policy: PolicyId(random.below(2) as u16),
                khz: [500_000, 1_000_000, 2_000_000][random.below(3) as usize],
                requested_at: random.below(at + 1),
            },
            14 => {
                events.push(fact(at, cpu, FactKind::IdleExit { state, residency_ns: at / 2 }));
                FactKind::IdleMiss { state, below: random.below(2) == 1 }
            }
            15 => FactKind::IdleEnter { state, tick_stopped: random.below(2) == 1 },
            16 => FactKind::IrqExit { spent_ns: random.below(900) as u32 },
            17 => FactKind::Overutilized { on: state == 1 },
            18 => FactKind::Balance { level: state, idle: 2, moved: random.below(9) as u16 },
            _ => FactKind::Tick,
        };
        events.push(fact(at, cpu, kind));
    }
    events
}

fn time_of(event: &Event) -> Ns {
    match event {
        Event::Fact(fact) => fact.at,
        Event::Mark(at, ..) | Event::Activity(at, ..) | Event::Opp(at, ..) => *at,
    }
}

#[test]
fn every_sum_is_right_after_every_event() {
    for seed in 0..40 {
        let events = stream(seed, 300);
        let mut meter = meter((seed % 4) * 200_000);
        for event in &events {
            feed(&mut meter, event);
            meter.verify(time_of(event));
        }
        let end = time_of(events.last().unwrap()) + 12_345;
        let span = end - meter.window_start.min(end);
        let (metrics, tasks, cpus) = meter.finish(end);
        meter.verify(end);
        for cpu in &cpus {
            let active: Ns = meter.truth.active_ns(usize::from(cpu.cpu)).sum();
            assert_eq!(active + cpu.idle_ns.iter().sum::<Ns>(), span, "seed {seed}");
            assert_eq!(cpu.frequency_ns.iter().map(|f| f.1).sum::<Ns>(), span, "seed {seed}");
            let run: Ns = tasks.iter().map(|t| t.cpu_time_by_cpu_ns[usize::from(cpu.cpu)]).sum();
            assert_eq!(run, cpu.busy_ns, "seed {seed}");
        }
        // No key twice, and the same keys in the same order whatever happened.
        let keys: Vec<String> = metrics.iter().map(key_of).collect();
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        let mut quiet = self::meter(0);
        assert_eq!(quiet.finish(1).0.iter().map(key_of).collect::<Vec<_>>(), keys);
    }
}

/// The little CPUs' power depends on the big one's vote, and the big one's own power has three levels.
fn dependent_setup() -> MeterSetup {
    let mut setup = setup(0);
    for idle in setup.cpus.iter_mut().flat_map(|cpu| &mut cpu.idle_states) {
        (idle.entry_energy_pj, idle.exit_energy_pj, idle.abort_energy_pj) = (0, 0, 0);
    }
    let row = |opp: usize, scale: u64| {
        let mut row = setup.domains[LITTLE].opps[opp];
        (row.active_uw, row.wfi_uw) = (row.active_uw * scale, row.wfi_uw * scale);
        (row.static_uw, row.idle_static_uw) = (row.static_uw * scale, row.static_uw * scale);
        row
    };
    let rows = vec![row(0, 2), row(0, 3), row(1, 2), row(1, 3)];
    setup.domains[LITTLE].dependence = Some(MeterDependence { voters: vec![BIG], rows });
    for opp in &mut setup.domains[BIG].opps {
        opp.idle_static_uw = opp.static_uw / 10;
    }
    setup.domains[BIG].off_uw = 1;
    setup
}

/// Power as it should be, from what the CPUs do and where the clocks are.
fn plain_power(setup: &MeterSetup, doing: &[Activity; 3], opp: &[usize; 2]) -> [u64; 2] {
    let rests = |cpu: usize| matches!(doing[cpu], Activity::Idle(_));
    let deep = |cpu: usize| doing[cpu] == Activity::Idle(1);
    let cpu = |cpu: usize, opp: &MeterOpp| match doing[cpu] {
        // A CPU that polls draws what its first state says.
        Activity::Idle(0) | Activity::Polling => opp.wfi_uw,
        Activity::Idle(_) => 0,
        _ => opp.active_uw,
    };
    let column = if rests(2) { 0 } else { opp[1] };
    let little = &setup.domains[LITTLE].rows()[opp[0] * 2 + column];
    let big = &setup.domains[BIG].opps[opp[1]];
    let shared = if deep(0) && deep(1) && deep(2) { 0 } else { little.static_uw };
    let own = match (deep(2), rests(2)) {
        (true, _) => 1,
        (_, true) => big.idle_static_uw,
        _ => big.static_uw,
    };
    [cpu(0, little) + cpu(1, little) + shared, cpu(2, big) + own]
}

#[test]
fn dependent_power_is_what_a_plain_sum_says() {
    let setup = dependent_setup();
    for seed in 300..330 {
        let mut meter = Meter::new(setup.clone());
        let (mut doing, mut opp) = ([Activity::Active; 3], [0; 2]);
        let (mut at, mut fj) = (0, [0u128; 2]);
        for event in stream(seed, 600) {
            let power = plain_power(&setup, &doing, &opp);
            for domain in 0..2 {
                assert_eq!(
                    meter.domain_power_uw(ClockDomainId(domain as u16)),
                    power[domain],
                    "seed {seed}"
                );
                fj[domain] += u128::from(power[domain]) * u128::from(time_of(&event) - at);
            }
            at = time_of(&event);
            match event {
                Event::Activity(_, cpu, activity) => doing[cpu.index()] = activity,
                Event::Opp(_, domain, to) => opp[usize::from(domain)] = usize::from(to),
                _ => continue,
            }
            feed(&mut meter, &event);
            meter.truth.verify(&setup, at);
        }
        meter.truth.close(at);
        let measured = [LITTLE, BIG].map(|domain| meter.truth.domain_fj(&setup, domain));
        assert_eq!(measured, fj, "seed {seed}");
    }
}

/// Measuring [0, w] and [w, end] gives what measuring [0, end] gives, to the femtojoule.
#[test]
fn windows_add_up() {
    for seed in 100..130 {
        let events = stream(seed, 400);
        let end = time_of(events.last().unwrap()) + 1;
        let middle = time_of(&events[events.len() / 3]);
        let measure = |warmup: Ns, end: Ns| {
            let mut meter = meter(warmup);
            for event in events.iter().filter(|e| time_of(e) < end) {
                feed(&mut meter, event);
            }
            let (_, tasks, _) = meter.finish(end);
            let fj: Vec<u128> =
                [LITTLE, BIG].iter().map(|d| meter.truth.domain_fj(&meter.setup, *d)).collect();
            let run: Vec<Ns> = tasks.iter().flat_map(|t| t.cpu_time_by_cpu_ns.clone()).collect();
            let jobs: Vec<u64> = tasks.iter().map(|t| t.jobs + t.switches).collect();
            (fj, run, jobs, meter.overutilized_ns, meter.wakeup_count())
        };
        let (whole, first, rest) = (measure(0, end), measure(0, middle), measure(middle, end));
        let add = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        assert_eq!(whole.0, [first.0[0] + rest.0[0], first.0[1] + rest.0[1]], "seed {seed}");
        assert_eq!(whole.1, add(&first.1, &rest.1), "seed {seed}");
        assert_eq!(whole.2, add(&first.2, &rest.2), "seed {seed}");
        assert_eq!(whole.3, first.3 + rest.3, "seed {seed}");
        assert_eq!(whole.4, first.4 + rest.4, "seed {seed}");
    }
}

impl Meter {
    fn wakeup_count(&self) -> u64 {
        self.wakeup.by_group.iter().map(Distribution::count).sum()
    }
}

/// Facts that differ from their neighbour in the list in one field only, of every kind.
fn siblings() -> Vec<Vec<FactKind>> {
    use FactKind::*;
    let (t, u, c, d) = (TaskId(1), TaskId(2), CpuId(1), CpuId(2));
    let (task, timer) = (WakeSource::Task, WakeSource::Timer);
    let frequency =
        |policy, khz, requested_at| Frequency { policy: PolicyId(policy), khz, requested_at };
    vec![
        vec![
            Switch { prev: TaskId::IDLE, next: t, prev_state: TaskState::Running },
            Switch { prev: TaskId::IDLE, next: u, prev_state: TaskState::Running },
            Switch { prev: TaskId::IDLE, next: t, prev_state: TaskState::Preempted },
        ],
        vec![
            Waking { task: t, source: task, prev_cpu: c },
            Waking { task: u, source: task, prev_cpu: c },
            Waking { task: t, source: timer, prev_cpu: c },
            Waking { task: t, source: task, prev_cpu: d },
        ],
        vec![
            Wakeup { task: t, target: c, new: false },
            Wakeup { task: u, target: c, new: false },
            Wakeup { task: t, target: d, new: false },
            Wakeup { task: t, target: c, new: true },
        ],
        vec![
            Migrate { task: t, from: c, to: d },
            Migrate { task: u, from: c, to: d },
            Migrate { task: t, from: d, to: d },
            Migrate { task: t, from: c, to: c },
        ],
        vec![Exit { task: t }, Exit { task: u }],
        vec![
            IdleEnter { state: 0, tick_stopped: false },
            IdleEnter { state: 1, tick_stopped: false },
            IdleEnter { state: 0, tick_stopped: true },
        ],
        vec![
            IdleExit { state: 0, residency_ns: 1 },
            IdleExit { state: 1, residency_ns: 1 },
            IdleExit { state: 0, residency_ns: 2 },
        ],
        vec![
            IdleMiss { state: 0, below: false },
            IdleMiss { state: 1, below: false },
            IdleMiss { state: 0, below: true },
        ],
        vec![frequency(0, 7, 3), frequency(1, 7, 3), frequency(0, 8, 3), frequency(0, 7, 4)],
        vec![Tick],
        vec![
            Ipi { target: c, kind: IpiKind::Reschedule },
            Ipi { target: d, kind: IpiKind::Reschedule },
            Ipi { target: c, kind: IpiKind::WakeList },
        ],
        vec![IrqEntry { lines: 1.into() }, IrqEntry { lines: 2.into() }],
        vec![IrqExit { spent_ns: 1 }, IrqExit { spent_ns: 2 }],
        vec![
            Balance { level: 0, idle: 0, moved: 0 },
            Balance { level: 1, idle: 0, moved: 0 },
            Balance { level: 0, idle: 1, moved: 0 },
            Balance { level: 0, idle: 0, moved: 1 },
        ],
        vec![Preempted { task: t }, Preempted { task: u }],
        vec![Overutilized { on: false }, Overutilized { on: true }],
    ]
}

#[test]
fn every_field_of_every_fact_is_in_the_digest() {
    let digest = |event: Event| {
        let mut meter = meter(0);
        feed(&mut meter, &event);
        meter.digest()
    };
    let mut seen = std::collections::BTreeMap::new();
    for kind in siblings().into_iter().flatten() {
        for (at, cpu) in [(1_000, 0), (1_001, 0), (1_000, 1)] {
            let other = seen.insert(digest(fact(at, cpu, kind)), (at, cpu, kind));
            assert_eq!(other, None, "has the digest of {at} {cpu} {kind:?}");
        }
    }
    let mut marks = vec![];
    for (task, number) in [(1, 5), (2, 5), (1, 6)] {
        marks.push(Event::Mark(9, TaskId(task), Mark::JobDone { released: number }));
        marks.push(Event::Mark(9, TaskId(task), Mark::Slack { slack_ns: number as i64 }));
        marks.push(Event::Mark(9, TaskId(task), Mark::WakeupLatency { latency_ns: number }));
    }
    for state in 0..2 {
        use Activity::*;
        marks.extend([Entering(state), Idle(state), Exiting(state)].map(|a| activity(9, 0, a)));
    }
    marks.extend([activity(9, 0, Activity::Polling), activity(9, 1, Activity::Polling)]);
    marks.extend([Event::Opp(9, 0, 1), Event::Opp(9, 1, 1), Event::Opp(8, 1, 1)]);
    let distinct: std::collections::BTreeSet<u64> = marks.iter().map(|m| digest(*m)).collect();
    assert_eq!(distinct.len(), marks.len());
}

#[test]
fn signals_for_traces_leave_no_mark() {
    let mut meter = meter(0);
    let before = meter.digest();
    let kind = FactKind::CpuSignals { util_avg: 1, runnable_avg: 2, util_est: 3 };
    feed(&mut meter, &fact(5, 0, kind));
    assert_eq!(meter.digest(), before);
}

#[test]
fn a_copy_goes_on_as_the_original() {
    let events = stream(7, 400);
    let mut original = meter(1_000);
    for event in &events[..200] {
        feed(&mut original, event);
    }
    let mut copy = original.clone();
    for meter in [&mut original, &mut copy] {
        for event in &events[200..] {
            feed(meter, event);
        }
    }
    let end = time_of(events.last().unwrap());
    assert_eq!(original.digest(), copy.digest());
    assert_eq!(original.finish(end), copy.finish(end));
}

/// The digest tells activities apart, and the states that they are of.
#[test]
fn activities_have_codes_of_their_own() {
    let states = 0..4;
    let of_states = [Activity::Entering, Activity::Idle, Activity::Exiting, Activity::Waiting];
    let mut codes: Vec<u64> = states
        .flat_map(|state| of_states.map(|activity| activity(state).code()))
        .chain([Activity::Active.code(), Activity::Polling.code()])
        .collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 4 * 4 + 2);
}

/// Counts are added up, from the end of the warm-up on.
#[test]
fn counts_add_up() {
    let mut meter = meter(100);
    for at in [50, 200, 300] {
        let task = TaskId(1);
        feed(&mut meter, &fact(at, 0, FactKind::Balance { level: 0, idle: 2, moved: 3 }));
        feed(&mut meter, &fact(at, 0, FactKind::Migrate { task, from: CpuId(0), to: CpuId(2) }));
    }
    let counts = &meter.counts;
    assert_eq!((counts.balance_moved, counts.balance[2], counts.migrations), (6, 2, 2));
    assert_eq!(meter.tasks[1].migrations, 2);
}

#[test]
fn a_power_domain_draws_its_own_power() {
    let mut setup = setup(0);
    let package = MeterPowerDomain {
        name: "package".into(),
        outermost: true,
        within: vec![PowerDomainId(0)],
        clocks: vec![LITTLE, BIG],
        uw: vec![5, 1],
        states: vec!["off".into()],
        entry_energy_pj: vec![0],
    };
    setup.power_domains = vec![package].into();
    assert_eq!(Meter::new(setup).power_domain_uw(PowerDomainId(0)), 5);
}
