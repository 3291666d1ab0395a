// SPDX-License-Identifier: GPL-2.0-or-later
//! A run is a function of machine, kernel, workload and seed: of nothing else.

use crate::scenarios::{KERNEL, MS, SECOND, built_in, few, published, run, scenario};
use schedtwin_engine::board::{Board, FlatBoard, MapBoard};
use schedtwin_engine::output::MaxSize;
use schedtwin_engine::result::RunResult;
use schedtwin_engine::twin::Twin;
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_trace::record::Reader;

/// Compares everything that a run gives, and says which part differs first.
pub fn assert_same(name: &str, left: &RunResult, right: &RunResult) {
    assert_eq!(left.digest, right.digest, "{name}: digest");
    assert_eq!(left.events, right.events, "{name}: events");
    assert_eq!(left.simulated_ns, right.simulated_ns, "{name}: simulated time");
    for (l, r) in left.metrics.iter().zip(&right.metrics) {
        assert_eq!(l, r, "{name}: metric");
    }
    assert_eq!(left, right, "{name}");
}

#[test]
fn twice_the_same_and_each_seed_its_own() {
    twice(few(built_in(KERNEL, 500 * MS)));
}

fn twice(scenarios: Vec<(String, Scenario)>) {
    for (name, scenario) in scenarios {
        let (first, second) = (run(&scenario, 1), run(&scenario, 1));
        assert_same(&name, &first, &second);
        assert_ne!(first.digest, run(&scenario, 2).digest, "{name}: a seed changes the run");
    }
}

#[test]
fn threads_do_not_matter() {
    threads(few(built_in(KERNEL, 300 * MS)));
}

fn threads(scenarios: Vec<(String, Scenario)>) {
    for (name, scenario) in scenarios {
        let seeds: Vec<u64> = (1..=6).collect();
        let alone: Vec<RunResult> = seeds.iter().map(|seed| run(&scenario, *seed)).collect();
        let together: Vec<RunResult> = std::thread::scope(|scope| {
            let runs: Vec<_> = seeds
                .chunks(3)
                .map(|part| {
                    let scenario = &scenario;
                    scope.spawn(move || part.iter().map(|s| run(scenario, *s)).collect::<Vec<_>>())
                })
                .collect();
            runs.into_iter().flat_map(|r| r.join().expect("a run does not panic")).collect()
        });
        for (seed, (alone, together)) in seeds.iter().zip(alone.iter().zip(&together)) {
            assert_same(&format!("{name} seed {seed}"), alone, together);
        }
    }
}

/// Runs the fast twin and the reference twin side by side and stops where they part.
pub fn assert_reference(name: &str, scenario: &Scenario, seed: u64) {
    let mut fast: Twin<FlatBoard> = scenario.twin(seed);
    let mut reference: Twin<MapBoard> = scenario.twin::<MapBoard>(seed).eager();
    loop {
        let more = (fast.step(&mut ()), reference.step(&mut ()));
        assert_eq!(
            (more.0, fast.now(), fast.digest()),
            (more.1, reference.now(), reference.digest()),
            "{name}: event {} differs from the reference twin's",
            fast.events()
        );
        if !more.0 {
            break;
        }
    }
    assert_same(name, &fast.finish(), &reference.finish());
}

#[test]
fn the_reference_twin_agrees_on_some_built_in_workloads() {
    for (name, scenario) in few(built_in(KERNEL, 300 * MS)) {
        assert_reference(&name, &scenario, 1);
    }
}

#[test]
fn the_reference_twin_agrees_on_other_kernels() {
    for settings in [
        "hz=1000,preempt=none",
        "hz=100,preempt=voluntary,irq_time_accounting=false",
        "cpufreq=performance,cpuidle=shallow",
        "cpufreq=powersave,energy_aware=false",
        "features.delay_dequeue=false,features.ttwu_queue=false,features.run_to_parity=false",
        "features.place_lag=false,features.sis_util=false,features.util_est=false",
        "schedutil.rate_limit_us=0,timer_slack_ns=0,fair_server.runtime_us=0",
    ] {
        for machine in ["uniform8", "pixel6"] {
            let kernel = format!("{KERNEL}:{settings}");
            let scenario = scenario(machine, &kernel, "ui-phone", Some(150 * MS));
            assert_reference(&format!("{machine} {kernel}"), &scenario, 3);
        }
    }
}

#[test]
fn the_reference_twin_agrees_on_the_published_workloads() {
    for (name, scenario) in published("pixel6", KERNEL, 100 * MS) {
        assert_reference(&name, &scenario, 1);
    }
}

/// What a run builds its kernel with changes nothing that it decides.
#[test]
fn the_reference_twin_agrees_with_what_runs_build() {
    for (machine, kernel, workload) in [
        ("uniform8", "linux-5.18", "w1"),
        ("uniform8", "linux-6.12", "ui-phone"),
        ("uniform8", "linux-7.3", "w1"),
        ("altra-2p160", "linux-7.3", "messaging -t -g 1 -l 20"),
        ("pixel6", "linux-6.12-gki", "ui-phone"),
        // What leaves a CPU's sums is what came, also where it leaves late.
        ("pixel6", "linux-5.4-gki", "ui-phone"),
        ("pixel6", "linux-4.19-gki", "ui-phone"),
        ("laptop-8c16t", "linux-7.3", "ui-phone"),
        ("uniform8", "linux-6.12-debian", "w1"),
    ] {
        let name = format!("{machine} {kernel} {workload}");
        let scenario = scenario(machine, kernel, workload, Some(100 * MS));
        let built = scenario.run(1, RunOptions::default()).expect("nothing is written");
        let options = RunOptions { verify: true, ..RunOptions::default() };
        assert_same(&name, &built, &scenario.run(1, options).expect("nothing is written"));
    }
}

/// A trace shows the same whether the kernel could record, too, or has been built without.
#[test]
fn a_trace_does_not_tell_what_was_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = |record: Option<&str>| {
        let path = |name: &str| folder.path().join(name);
        let scenario = scenario("uniform8", KERNEL, "w1", Some(50 * MS));
        let (trace, record) = (Some(path("trace.txt")), record.map(path));
        let options = RunOptions { trace, record, ..RunOptions::default() };
        let result = scenario.run(1, options).expect("the folder can be written");
        (result, std::fs::read(path("trace.txt")).expect("it was written"))
    };
    let ((small, small_trace), (whole, whole_trace)) = (trace(None), trace(Some("record.rec")));
    assert_same("traced", &small, &whole);
    assert!(small_trace == whole_trace, "two traces");
}

/// A twin is a value: a clone in the middle of anything goes on as the original does.
#[test]
fn a_clone_goes_on_alike() {
    clones(few(built_in(KERNEL, 200 * MS)));
}

fn clones(scenarios: Vec<(String, Scenario)>) {
    fn check<B: Board>(name: &str, scenario: &Scenario) {
        let expected = run(scenario, 5);
        let mut twin: Twin<B> = scenario.twin(5);
        let mut points = [0, 1, 2, 17, 300, expected.events / 3, expected.events - 1];
        points.sort_unstable();
        for point in points.into_iter().filter(|point| *point < expected.events) {
            while twin.events() < point && twin.step(&mut ()) {}
            assert_eq!(twin.events(), point, "{name} gets that far");
            let mut clone = twin.clone();
            while clone.step(&mut ()) {}
            assert_same(&format!("{name}: clone at event {point}"), &clone.finish(), &expected);
        }
        while twin.step(&mut ()) {}
        assert_same(&format!("{name}: the original"), &twin.finish(), &expected);
    }
    for (name, scenario) in scenarios {
        check::<FlatBoard>(&name, &scenario);
        check::<MapBoard>(&name, &scenario);
    }
}

#[test]
fn recording_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| Some(folder.path().join(name));
    for (machine, workload) in [("pixel6", "ui-phone"), ("uniform8", "w1"), ("rig8", "ui-phone")] {
        let scenario = scenario(machine, KERNEL, workload, Some(SECOND / 2));
        let plain = run(&scenario, 9);
        let none = RunOptions::default();
        for (how, options) in [
            ("perfetto", RunOptions { trace: file("a.pftrace"), ..none.clone() }),
            ("text", RunOptions { trace: file("a.txt"), ..none.clone() }),
            ("record", RunOptions { record: file("a.jsonl"), ..none.clone() }),
            (
                "both",
                RunOptions { trace: file("b.pftrace"), record: file("b.jsonl"), ..none.clone() },
            ),
            ("progress", RunOptions { progress: Some(Default::default()), ..none.clone() }),
            ("verify", RunOptions { verify: true, ..none.clone() }),
        ] {
            let recorded = scenario.run(9, options).unwrap();
            assert_same(&format!("{machine} {workload}: {how}"), &recorded, &plain);
        }
    }
}

/// The same on every built-in workload and machine.
mod long {
    use super::*;

    #[test]
    fn twice_the_same_and_each_seed_its_own() {
        twice(built_in(KERNEL, 500 * MS));
    }

    #[test]
    fn threads_do_not_matter() {
        threads(built_in(KERNEL, 300 * MS));
    }

    #[test]
    fn the_reference_twin_agrees_on_the_built_in_workloads() {
        for (name, scenario) in built_in(KERNEL, 300 * MS) {
            assert_reference(&name, &scenario, 1);
        }
    }

    #[test]
    fn a_clone_goes_on_alike() {
        clones(built_in(KERNEL, 200 * MS));
    }
}

/// A file that may not grow ends whole; the run goes on as if nobody had written, or ends with it, with its books closed.
#[test]
fn a_file_that_is_large_enough_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario("pixel6", KERNEL, "ui-phone", Some(SECOND));
    let plain = run(&scenario, 4);
    for name in ["a.pftrace", "a.txt", "a.jsonl", "a.rec"] {
        let path = folder.path().join(name);
        let is_record = name.starts_with("a.jsonl") || name.ends_with("rec");
        let (trace, record) = if is_record { (None, Some(&path)) } else { (Some(&path), None) };
        let options = |ends_run| RunOptions {
            trace: trace.cloned(),
            record: record.cloned(),
            max_size: Some(MaxSize { bytes: 200_000, ends_run }),
            ..RunOptions::default()
        };
        let mut whole = scenario.run(4, options(false)).unwrap();
        let [notice] = &whole.notices[..] else { panic!("one notice, not {:?}", whole.notices) };
        assert!(notice.contains("largest size, 200.0 kB"), "{notice}");
        whole.notices.clear();
        assert_same(name, &whole, &plain);
        let size = std::fs::metadata(&path).unwrap().len();
        assert!((200_000..800_000).contains(&size), "{name}: {size} bytes");
        if is_record {
            let file = std::fs::File::open(&path).unwrap();
            let entries = Reader::new(std::io::BufReader::new(file));
            let entries: Vec<_> = entries.collect::<Result<_, _>>().expect("it is whole");
            assert!(entries.len() > 100, "{name}: {} entries", entries.len());
        }
        let cut = scenario.run(4, options(true)).unwrap();
        assert!(cut.simulated_ns < plain.simulated_ns, "{name} ends the run");
        for cpu in &cut.cpus {
            let booked = cpu.busy_ns + cpu.idle_ns.iter().sum::<u64>() + cpu.idle_loop_ns;
            assert_eq!(booked, cut.simulated_ns, "{name}: cpu{}", cpu.cpu);
        }
    }
}
