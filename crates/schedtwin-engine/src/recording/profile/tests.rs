// SPDX-License-Identifier: GPL-2.0-or-later
//! A known profile, recorded from the twin, comes out again.

use super::write::{delay_of, regrouped};
use super::*;
use crate::Scenario;
use crate::scenario::RunOptions;
use crate::system_file::SystemFile;
use schedtwin_input::Source;
use schedtwin_machine::Machine;

/// Threads of each kind of trigger, works of each queue, a device and what follows it.
const KNOWN: &str = r#"
name = "known"
description = "a test"
[[source]]
name = "kcompactd0"
origin = "test"
timer = { every_ms = 500 }
run = "thread"
run_us = [200]
[[source]]
name = "kdamond.0"
origin = "test"
timer = { every_ms = 40 }
run = "thread"
run_us = [50, 100, 300, 400]
[[source]]
name = "disk"
origin = "test"
interrupt = { mean_us = 7000 }
run_us = [60]
then = ["irq/9-disk"]
[[source]]
name = "irq/9-disk"
origin = "test"
run = "bound-thread"
fifo = 50
run_us = [150]
[[source]]
name = "statistics"
origin = "test"
timer = { every_ms = 100, pinned = true }
run = "work"
cpus = "each"
run_us = [80]
[[source]]
name = "flush"
origin = "test"
timer = { every_ms = 60 }
run = "unbound-work"
run_us = [120]
"#;

/// Runs a second, and microseconds of a run, of each thread's kind in a recording.
fn rates(path: &Path) -> BTreeMap<String, (f64, f64)> {
    let mut source = sources::open(path).unwrap();
    let symbols = Symbols::default();
    let mut collector = Collector::new(None, &symbols, 4);
    while let Some(event) = source.next_event().unwrap() {
        collector.event(&event, source.names());
    }
    let seconds = (collector.end - collector.begin.unwrap()) as f64 / NS_PER_S;
    let of = |((_, name), of): (&Key, &Activity)| {
        let us = of.runs.iter().sum::<f64>() / of.runs.len() as f64 / NS_PER_US;
        (name.clone(), (of.count as f64 / seconds, us))
    };
    collector.found.iter().map(of).collect()
}

fn record(folder: &Path, system: &str, to: &str) -> std::path::PathBuf {
    let profile = folder.join(format!("{to}.toml"));
    std::fs::write(&profile, system).unwrap();
    let workload = format!("idle --system {}", profile.display());
    let kernel = "linux-6.12:cpufreq=performance";
    let scenario = Scenario::new("uniform8", kernel, &workload, Some(20 * 1_000_000_000)).unwrap();
    let trace = folder.join(format!("{to}.txt"));
    scenario.run(3, RunOptions { trace: Some(trace.clone()), ..RunOptions::default() }).unwrap();
    trace
}

#[test]
fn a_known_profile_comes_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = record(folder.path(), KNOWN, "first");
    let machine = Machine::load("uniform8").unwrap();
    let options = ProfileOptions {
        name: "again".into(),
        machine: Some(&machine),
        hz: Some(250),
        symbols: Symbols::default(),
    };
    let extracted = profile(&first, &options).unwrap();
    assert!((19.0..21.0).contains(&extracted.seconds), "{}", extracted.seconds);
    let text = &extracted.text;
    assert!(text.contains("then = [\"irq/9-disk\"]") && text.contains("fifo = 50"), "{text}");
    assert!(text.contains("every_ms = 480"), "125 jiffies come every 128, as 120 do: {text}");
    SystemFile::parse("again", &Source::new("again.toml", text.as_str())).unwrap();
    let second = record(folder.path(), text, "second");
    let (first, second) = (rates(&first), rates(&second));
    assert!(first.len() >= 6, "{first:?}");
    for (name, (rate, us)) in &first {
        let (again, again_us) =
            second.get(name).unwrap_or_else(|| panic!("{name} is gone: {text}"));
        // Exponential gaps of 2900 interrupts scatter by 2 %; runs keep their length but for kernel paths, which come on top.
        assert!((again / rate - 1.0).abs() < 0.10, "{name}: {rate} and {again} a second\n{text}");
        assert!((again_us - us).abs() < 0.15 * us + 10.0, "{name}: {us} and {again_us} us");
    }
}

#[test]
fn delays_undo_the_rounding_of_the_wheel() {
    // Armed right after an expiry at a multiple of the granularity: 1 later in the first level, 8 in the second.
    for (delay, comes) in [(1, 2), (24, 25), (62, 63), (120, 128), (248, 256)] {
        assert_eq!(delay_of(comes), delay);
    }
    assert_eq!(delay_of(1), 1, "the shortest");
}

#[test]
fn what_is_no_recording_or_too_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.txt");
    std::fs::write(&path, "").unwrap();
    assert!(profile(&path, &ProfileOptions::default()).is_err());
}

/// Works of one function: eight monitors are eight, and a statistic of each CPU is one on each.
#[test]
fn works_of_one_function_are_told_apart_or_joined() {
    let runs = |cpu: usize, gap: u64| {
        let mut of = Activity::default();
        (0..20).for_each(|n| of.begins(n * gap, cpu));
        of
    };
    let mut found = BTreeMap::new();
    for work in 0..3 {
        found.insert((Kind::UnboundWork, format!("monitor@{work:x}")), runs(0, 1000));
        found.insert((Kind::Work, format!("statistics@{work:x}")), runs(work, 5000));
    }
    for file in 0..12 {
        let mut of = Activity::default();
        for at in [0, 7, 900] {
            of.begins(at * (file + 1), 0);
        }
        found.insert((Kind::UnboundWork, format!("end of i/o@{file:x}")), of);
    }
    let grouped = regrouped(found);
    assert_eq!(grouped[&(Kind::UnboundWork, "end of i/o".to_string())].count, 36);
    let names: Vec<&str> = grouped.keys().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["statistics", "end of i/o", "monitor", "monitor 2", "monitor 3"]);
    let each = &grouped[&(Kind::Work, "statistics".to_string())];
    assert!(each.is_on_each(Kind::Work) && each.count == 60);
}
