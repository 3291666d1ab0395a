// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces of real devices, from a folder beside the repository, are replayed.

use crate::scenarios::metric;
use schedtwin_engine::recording::{TraceRecording, read_trace};
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_machine::Machine;
use schedtwin_types::Ns;
use std::path::{Path, PathBuf};

/// Name, `sched_switch`es, the least share of sleeps that must be tied to a recorded wakeup.
const TRACES: [(&str, u64, f64); 4] = [
    ("tests_assets_trace_txt_trace.txt", 1856, 1.0),
    ("trace_surfaceflinger.ftrace.txt", 715, 0.99),
    ("trace_input_blog_list_jank.ftrace.txt.xz", 37_736, 0.999),
    ("xiaomi_launcher_scroll_all_the_time.ftrace.txt.xz", 60_835, 0.999),
];

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !folder.is_dir() {
        println!("skipped: recordings need {}", folder.display());
    }
    folder.is_dir().then_some(folder)
}

fn read(folder: &Path, name: &str, duration: Option<Ns>) -> TraceRecording {
    let machine = Machine::load("pixel6").unwrap();
    read_trace(&folder.join(name), &machine, &machine, duration).unwrap_or_else(|e| panic!("{e}"))
}

fn scenario(trace: &TraceRecording, kernel: &str) -> Scenario {
    let workload = Ok(trace.workload.clone());
    Scenario::with_workload("pixel6", kernel, workload, None).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn real_traces_are_read_without_contradiction() {
    let Some(folder) = folder() else { return };
    for (name, switches, matched) in TRACES {
        let trace = read(&folder, name, None);
        let r = &trace.recorded;
        assert_eq!((r.switches, r.contradictions), (switches, 0), "{name}");
        assert_eq!((trace.trace.lost, trace.trace.lost_uncounted), (0, 0), "{name}");
        let tied = (r.tied_to_waker + r.tied_to_time) as f64;
        assert!(tied / (tied + r.unmatched as f64) >= matched, "{name}: {r:?}");
        let all: Ns = r.threads.iter().map(|thread| thread.cpu_time_ns).sum();
        let replayed: Ns = r.busy_ns.iter().sum();
        assert!(replayed * 100 >= all * 98, "{name}: {replayed} of {all} ns");
    }
}

#[test]
fn real_traces_are_replayed_to_their_end() {
    let Some(folder) = folder() else { return };
    for (name, ..) in TRACES {
        let trace = read(&folder, name, None);
        for kernel in ["linux-6.12", "linux-6.12:cpufreq=performance"] {
            let result = scenario(&trace, kernel).run(1, RunOptions::default()).unwrap();
            let work = metric(&result, "replayed_work", "share", &[]);
            // Of one device no more than 518 MHz is recorded, which counts as its full speed: too much work.
            let least = if name.starts_with("trace_surfaceflinger") { 50.0 } else { 99.0 };
            assert!(work > least, "{name} on {kernel}: {work} % of the work");
            let again = scenario(&trace, kernel).run(1, RunOptions::default()).unwrap();
            assert_eq!(result.digest, again.digest, "{name} on {kernel}");
        }
    }
}

/// Three threads that never sleep, on two CPUs: none comes to the end of its work before the recording's, and what each has done
/// of it counts.
#[test]
fn work_that_the_end_cuts_counts_as_far_as_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let (program, text) = (folder.path().join("hogs.json"), folder.path().join("hogs.txt"));
    let hogs = r#"{"global": {"duration": 2}, "tasks": {"hog": {"instance": 3, "run": 10000000}}}"#;
    std::fs::write(&program, hogs).unwrap();
    let machine = "x86-2cpu-hz100";
    let recorded =
        crate::scenarios::scenario(machine, "linux-6.12", program.to_str().unwrap(), None);
    let options = RunOptions { trace: Some(text.clone()), ..RunOptions::default() };
    recorded.run(1, options).unwrap();
    let machine_file = Machine::load(machine).unwrap();
    let trace = read_trace(&text, &machine_file, &machine_file, None).unwrap();
    let workload = Ok(trace.workload.clone());
    let scenario = Scenario::with_workload(machine, "linux-6.12", workload, None).unwrap();
    let work =
        metric(&scenario.run(2, RunOptions::default()).unwrap(), "replayed_work", "share", &[]);
    assert!((97.0..=100.0).contains(&work), "{work} % of the work");
}

/// Limits that user space has set while it was recorded are set again: a clock whose lower limit is its highest frequency runs at
/// that, although the work asks for less; one with an upper limit stays below it.
#[test]
fn recorded_limits_of_clocks_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let mean_of = |limits: &str| {
        let path = folder.path().join("limits.txt");
        let mut text = format!("          <idle>-0     [000] d..2. 1.000000: {limits} cpu_id=0\n");
        for i in 0..100 {
            let at = 1.001 + f64::from(i) * 0.01;
            text.push_str(&format!(
                "          <idle>-0     [000] d..2. {at:.6}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
                 prev_state=R ==> next_comm=a next_pid=10 next_prio=120\n               a-10    [000] d..2. {:.6}: sched_switch: \
                 prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n",
                at + 0.001
            ));
        }
        std::fs::write(&path, text).unwrap();
        let machine = Machine::load("pixel6").unwrap();
        let trace = read_trace(&path, &machine, &machine, None).unwrap();
        let options = RunOptions { verify: true, ..RunOptions::default() };
        let result = scenario(&trace, "linux-6.12-gki").run(1, options).unwrap();
        metric(&result, "freq_mean", "mean", &[("domain", "little"), ("while", "active")])
    };
    let free = mean_of("cpu_frequency: state=300000");
    let boosted = mean_of("cpu_frequency_limits: min=1803000 max=1803000");
    let capped = mean_of("cpu_frequency_limits: min=300000 max=574000");
    assert!(boosted > 1780.0 && free < 1600.0, "{boosted} MHz, without limits {free}");
    assert!(capped <= 574.5 && capped < free, "{capped} MHz, without limits {free}");
}

/// The reference twin, which verifies every sum after every event, executes the same.
#[test]
fn the_reference_twin_replays_alike() {
    let Some(folder) = folder() else { return };
    let trace = read(&folder, TRACES[3].0, Some(60_000_000));
    let scenario = scenario(&trace, "linux-6.12");
    let run = |verify| scenario.run(3, RunOptions { verify, ..RunOptions::default() }).unwrap();
    assert_eq!(run(false).digest, run(true).digest);
}
