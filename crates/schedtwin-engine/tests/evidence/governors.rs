// SPDX-License-Identifier: GPL-2.0-or-later
//! Drivers and governors in the twin: intel_pstate, drivers that are asked for performance, and which phase of the tick gives the 7 ms
//! that were published for schedutil without remote callbacks.

use crate::scenarios::{KERNEL, Log, MS, SECOND, logged, metric, scenario};
use schedtwin_engine::Scenario;
use schedtwin_engine::twin::Twin;
use schedtwin_types::property::Property;
use schedtwin_types::{CpuId, FactKind, Ns};

/// A busy thread that begins after the start of everything, on a desktop.
fn one_busy_thread(settings: &str) -> Scenario {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("busy.json");
    let text =
        r#"{ "tasks": { "busy": { "loop": -1, "cpus": [2], "sleep": 30000, "run": 200000 } } }"#;
    std::fs::write(&path, text).expect("the temporary folder can be written");
    let kernel = format!("{KERNEL}:{settings}");
    scenario("i5-10600k", &kernel, &path.to_string_lossy(), Some(SECOND))
}

/// When the clock of CPU 2 was asked for which frequency, kHz.
fn requests(log: &Log) -> Vec<(Ns, u32)> {
    let of = |kind| match kind {
        FactKind::Frequency { policy, khz, .. } if policy.0 == 2 => Some(khz),
        _ => None,
    };
    log.facts.iter().filter_map(|fact| Some((fact.at, of(fact.kind)?))).collect()
}

/// When the busy thread first runs on CPU 2.
fn begins(log: &Log) -> Ns {
    // It begins with a sleep, which ends 30 ms later.
    let switches: Vec<Ns> = log.switches_to(log.task("busy-0")).collect();
    let woken = switches.windows(2).find(|pair| pair[1] - pair[0] >= 30 * MS);
    woken.expect("it sleeps and runs")[1]
}

/// Of a sample, the busy part counts: the first after the beginning may be half empty, the next one is full.
#[test]
fn intel_pstate_reaches_the_top_within_three_samples() {
    let (log, _) = logged(&one_busy_thread("scaling_driver=intel_pstate"), 1);
    let begin = begins(&log);
    let top = requests(&log).into_iter().find(|(at, khz)| *at >= begin && *khz == 4_800_000);
    let (at, _) = top.expect("it gets there");
    assert!((5 * MS..35 * MS).contains(&(at - begin)), "after {} ms", (at - begin) / MS);
    let spacing = requests(&log).windows(2).map(|pair| pair[1].0 - pair[0].0).min();
    assert!(spacing.expect("there are several") >= 9 * MS, "a sample takes 10 ms");
}

#[test]
fn intel_pstates_performance_is_the_top_from_the_start() {
    let settings = "scaling_driver=intel_pstate,cpufreq=performance";
    let (log, _) = logged(&one_busy_thread(settings), 1);
    assert_eq!(requests(&log), Vec::new());
    let (_, result) = logged(&one_busy_thread("cpufreq=performance"), 1);
    let (_, same) = logged(&one_busy_thread(settings), 1);
    let power = |result| metric(result, "power", "mean", &[]);
    assert_eq!(power(&result), power(&same));
}

/// What the processor prefers decides how fast a load that comes and goes runs; limits and performance hold.
#[test]
fn a_processor_that_chooses_follows_its_preference() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("half.json");
    let text = r#"{ "tasks": { "half": { "loop": -1, "cpus": [2], "run": 250,
        "timer": { "ref": "t", "period": 1000 } } } }"#;
    std::fs::write(&path, text).expect("the temporary folder can be written");
    let mhz = |settings: &str| {
        let kernel = format!("{KERNEL}:{settings}");
        let scenario = scenario("i5-10600k", &kernel, &path.to_string_lossy(), Some(SECOND));
        let mut eager: Twin = scenario.twin(1).eager();
        while eager.step(&mut ()) {}
        let (log, result) = logged(&scenario, 1);
        assert_eq!(eager.finish().digest, result.digest, "{settings}");
        assert_eq!(requests(&log), Vec::new(), "Linux asks for nothing");
        let while_busy = [("domain", "cpu2"), ("while", "active")];
        metric(&result, "freq_mean", "mean", &while_busy)
    };
    for driver in ["scaling_driver=intel_pstate,hwp=true", "scaling_driver=amd-pstate-epp"] {
        let with = |rest: &str| mhz(&format!("{driver},{rest}"));
        let [fast, usual, slow] =
            [0, 128, 255].map(|epp| with(&format!("energy_performance_preference={epp}")));
        assert!(fast > 1.1 * usual && usual > 1.1 * slow, "{fast} {usual} {slow} MHz");
        assert_eq!(with("cpufreq=performance"), 4_800.0);
    }
    let half = mhz(
        "scaling_driver=intel_pstate,hwp=true,energy_performance_preference=0,intel_pstate.max_perf_pct=50",
    );
    assert!(half <= 2_400.0, "{half} MHz");
}

/// 500 us between changes of intel_cpufreq, 5 ms with hints, 1 ms of amd-pstate; all begin at the bottom, and reach the top.
#[test]
fn drivers_keep_their_delays() {
    let delays = [
        ("scaling_driver=intel_cpufreq", 500_000),
        ("scaling_driver=intel_cpufreq,hwp=true", 5 * MS),
        ("scaling_driver=amd-pstate", MS),
    ];
    for (settings, delay) in delays {
        let (log, _) = logged(&one_busy_thread(settings), 1);
        let requests = requests(&log);
        assert!(requests.iter().any(|(_, khz)| *khz == 4_800_000), "{settings}: {requests:?}");
        assert!(requests.len() >= 4, "{settings}: {requests:?}");
        for pair in requests.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            // The governor counts by the run queue's clock.
            assert!(apart + MS / 10 >= delay, "{settings}: {apart} ns apart");
        }
    }
}

#[test]
fn a_driver_needs_its_machine() {
    let refused = |machine: &str| {
        let kernel = format!("{KERNEL}:scaling_driver=intel_pstate");
        match Scenario::new(machine, &kernel, "idle", Some(SECOND)) {
            Ok(_) => panic!("{machine} is not for it"),
            Err(faults) => faults.to_string(),
        }
    };
    for machine in ["pixel6", "i5-10600k:topology=package", "altra-2p160"] {
        let why = refused(machine);
        assert!(why.contains("x86 processors with a clock for each CPU"), "{machine}: {why}");
    }
}

/// Of a kernel with HZ 100.
const TICK: Ns = 10 * MS;

/// Of each move of the busy thread to CPU 1: how long after a tick it came, and how long after that CPU 1 changed its clock.
fn waits(patches: &str) -> Vec<(Ns, Ns)> {
    let kernel = format!("linux-4.7{patches}:hz=100");
    let scenario = scenario("x86-2cpu-hz100", &kernel, "remote-wakeup", Some(20 * SECOND));
    let mut waits = Vec::new();
    for seed in 1..=4 {
        let (log, _) = logged(&scenario, seed);
        let mover = log.task("mover-0");
        let mut arrived: Option<Ns> = None;
        for fact in &log.facts {
            match fact.kind {
                FactKind::Migrate { task, to, .. } if task == mover && to == CpuId(1) => {
                    arrived = Some(fact.at);
                }
                FactKind::Frequency { policy, .. } if policy.0 == 1 => {
                    if let Some(at) = arrived.take() {
                        // The ticks of both CPUs are on one grid.
                        waits.push((at % TICK, fact.at.saturating_sub(at)));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(waits.len() > 400, "{} moves", waits.len());
    waits
}

/// How many of a hundred waits last from the thread's coming to the next tick, and how many one tick more.
fn ends_with_a_tick(waits: &[(Ns, Ns)]) -> [usize; 2] {
    let ends = |more: Ns| {
        let rest = |phase: Ns| TICK - phase + more;
        waits.iter().filter(|(phase, wait)| wait.abs_diff(rest(*phase)) < MS / 5).count()
    };
    [0, TICK].map(|more| 100 * ends(more) / waits.len())
}

/// What docs/studies-results.md says: a thread that comes 3 ms after a tick waits for the 7 ms that were published.
#[test]
fn the_published_7_ms_are_those_of_3_ms_after_a_tick() {
    let mapped = waits("+schedutil-opp-mapping");
    let [next, later] = ends_with_a_tick(&mapped);
    assert!(next >= 65 && later <= 8, "{next} % with the next tick, {later} % one later");
    let at_3_ms = mapped.iter().filter(|(phase, _)| phase.abs_diff(3 * MS) < MS / 2);
    let waits_7_ms = at_3_ms.clone().filter(|(_, wait)| wait.abs_diff(7 * MS) < MS * 7 / 10);
    let [of_3_ms, waits_7_ms] = [at_3_ms.count(), waits_7_ms.count()];
    println!("{next} % with the next tick; {waits_7_ms} of {of_3_ms} at 3 ms wait for 7 ms");
    assert!(of_3_ms >= 10 && waits_7_ms * 10 >= of_3_ms * 7, "{waits_7_ms} of {of_3_ms}");
    // Each computed frequency starts a rate limit that is as long as a tick: often the next tick is too early.
    let [next, later] = ends_with_a_tick(&waits(""));
    println!("4.7: {next} % with the next tick, {later} % one later");
    assert!(next >= 20 && later >= 20 && next + later >= 55, "{next} % and {later} %");
    let both = waits("+schedutil-remote+schedutil-opp-mapping");
    let at_once = both.iter().filter(|(_, wait)| *wait < MS / 10).count();
    println!("the series: {at_once} of {} at once", both.len());
    assert!(at_once * 10 >= both.len() * 7, "{at_once} of {}", both.len());
}

/// A clock that stands on user space's lower limit is not above what is needed, and one below the upper limit is not held back
/// by its governor; every governor keeps to both.
#[test]
fn clocks_keep_to_the_limits_of_user_space() {
    for governor in ["schedutil", "performance", "powersave", "ondemand", "conservative"] {
        let kernel = |limits: &str| format!("linux-7.3-gki:cpufreq={governor},{limits}");
        for (limits, khz) in [
            ("scaling_min_freq=1500000", 1_500_000..=u32::MAX),
            ("scaling_max_freq=1000000", 0..=1_000_000),
            ("scaling_min_freq=1500000,scaling_max_freq=1000000", 0..=1_000_000),
        ] {
            let scenario = scenario("pixel6", &kernel(limits), "ui-phone", Some(SECOND));
            let (log, result) = logged(&scenario, 1);
            // The clocks that firmware has left fall within the first millisecond.
            let told =
                log.facts.iter().filter(|fact| fact.at > MS).filter_map(|fact| match fact.kind {
                    FactKind::Frequency { khz, .. } => Some(khz),
                    _ => None,
                });
            assert!(told.clone().all(|told| khz.contains(&told)), "{governor}, {limits}");
            let broken = result.broken.iter().map(|breach| breach.property);
            let of_clocks = broken
                .filter(|property| matches!(property, Property::ClockAbove | Property::ClockHeld));
            assert_eq!(of_clocks.count(), 0, "{governor}, {limits}: {:?}", result.broken);
        }
    }
}
