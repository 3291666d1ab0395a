// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin convert` as its users meet it.

use std::fs;
use std::process::{Command, Output};

fn schedtwin(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_schedtwin");
    Command::new(program).args(arguments).output().expect("the binary starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn what_a_record_turns_into_is_what_the_run_would_have_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let run = |outputs: &[&str]| {
        let subject = ["run", "-m", "uniform8", "-w", "w1", "--duration", "20ms", "--quiet"];
        let done = schedtwin(&[&subject, outputs].concat());
        assert!(done.status.success(), "{}", stderr(&done));
    };
    run(&["--record", &path("a.jsonl"), "--trace", &path("direct.pftrace")]);
    run(&["--trace", &path("direct.txt")]);
    for name in ["pftrace", "txt"] {
        let (made, direct) = (path(&format!("made.{name}")), path(&format!("direct.{name}")));
        let done = schedtwin(&["convert", &path("a.jsonl"), &made]);
        assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
        assert!(stderr(&done).contains("only a record holds them"), "{done:?}");
        assert!(fs::read(made).unwrap() == fs::read(direct).unwrap(), "{name}");
    }
    // Decisions, too, are as a run writes them, and are not read back.
    run(&["--trace", &path("explained.pftrace"), "--decisions"]);
    let done = schedtwin(&["convert", &path("a.jsonl"), &path("made.pftrace"), "--decisions"]);
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    let read = |name: &str| fs::read(path(name)).unwrap();
    assert!(read("made.pftrace") == read("explained.pftrace"));
    let done = schedtwin(&["convert", &path("explained.pftrace"), &path("bare.pftrace")]);
    assert!(stderr(&done).contains("decisions stay in"), "{done:?}");
    assert!(read("bare.pftrace").len() < read("explained.pftrace").len());
    let done = schedtwin(&["convert", &path("a.jsonl"), &path("made.txt"), "--decisions"]);
    assert!(stderr(&done).contains("text has no place for --decisions"), "{done:?}");
    // A trace has no decisions to lose.
    let done = schedtwin(&["convert", &path("direct.pftrace"), &path("back.jsonl")]);
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(fs::read_to_string(path("back.jsonl")).unwrap().starts_with('{'));
}

/// A value of a run on pixel6.
fn value(workload: &str, metric: &str) -> f64 {
    let subject = ["run", "-q", "-m", "pixel6", "-k", "linux-6.12", "-w", workload];
    let done = schedtwin(&[&subject[..], &["--value", metric]].concat());
    let text = String::from_utf8(done.stdout.clone()).expect("text");
    text.trim().parse().unwrap_or_else(|_| panic!("{text} {}", stderr(&done)))
}

/// Processes that ran once in a trace do not run for ever in its rt-app file.
#[test]
fn what_ran_once_in_a_trace_runs_once_in_its_rt_app_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = r#"{"global": {"duration": 2, "calibration": "largest"},
        "tasks": {"ui": {"loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 16666}},
                  "once": {"loop": 1, "delay": 300000, "run": 50000},
                  "twice": {"loop": 2, "delay": 500000, "run": 20000, "sleep": 30000}}}"#;
    fs::write(path("given.json"), text).unwrap();
    for (workload, duration) in [(path("given.json"), "2s"), ("shell -l 20".into(), "250ms")] {
        let (trace, made) = (path("trace.txt"), path("made.json"));
        let run = ["run", "-q", "-m", "pixel6", "-k", "linux-6.12", "-w", &workload];
        let done = schedtwin(&[&run[..], &["--duration", duration, "--trace", &trace]].concat());
        assert!(done.status.success(), "{}", stderr(&done));
        let done = schedtwin(&["convert", &trace, &made, "-m", "pixel6"]);
        assert!(done.status.success(), "{}", stderr(&done));
        let energy = [value(&workload, "energy"), value(&made, "energy")];
        assert!(
            energy[1] < 1.6 * energy[0],
            "{workload}: {energy:?} mJ, {}",
            fs::read_to_string(&made).unwrap()
        );
    }
    let made = path("given-made.json");
    let run = [
        "run",
        "-q",
        "-m",
        "pixel6",
        "-k",
        "linux-6.12",
        "-w",
        &path("given.json"),
        "--trace",
        &path("given.txt"),
    ];
    assert!(schedtwin(&run).status.success());
    assert!(schedtwin(&["convert", &path("given.txt"), &made, "-m", "pixel6"]).status.success());
    for (task, made_task) in [("once", "once-1"), ("twice", "twice-2"), ("ui", "ui-0")] {
        let given = value(&path("given.json"), &format!("cpu_time,task={task}"));
        let of_made = value(&made, &format!("cpu_time,task={made_task}"));
        // A job takes longer on a smaller CPU; one that goes on for ever would take six times as long.
        assert!((0.6..1.6).contains(&(of_made / given)), "{task}: {given} s, {of_made} s");
    }
    let text = fs::read_to_string(&made).unwrap();
    assert_eq!(text.matches("\"loop\": -1,").count(), 1, "the periodic one goes on: {text}");
    assert!(text.contains("\"delay\": "), "{text}");
}

#[test]
fn what_cannot_be_converted_is_refused_with_what_can() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("trace.txt"), "cpus=2\n  a-1 [000] 1.0: cpu_idle: state=0 cpu_id=0\n").unwrap();
    fs::write(path("trace.dat"), b"\x17\x08\x44tracing6\0").unwrap();
    fs::write(path("empty.jsonl"), "").unwrap();
    fs::write(path("cut.jsonl"), "{\"schedtwin").unwrap();
    fs::write(path("old.txt"), "old").unwrap();
    for (from, to, expected) in [
        ("trace.txt", "old.rec", "it is neither a record (`run --record"),
        ("trace.dat", "old.rec", "`schedtwin replay` reads as it is"),
        ("trace.dat", "old.txt", "failed to convert"),
        ("cut.jsonl", "new.dat", "convert it to .pftrace first"),
        ("trace.txt", "old.json", "say with -m MACHINE which"),
        ("empty.jsonl", "old.txt", "it is empty"),
        ("cut.jsonl", "old.txt", "read the record: line 1"),
        ("absent.jsonl", "old.txt", "failed to convert"),
        ("cut.jsonl", "new.csv", "ends in .pftrace"),
        ("cut.jsonl", "no/new.txt", "there is no directory"),
        ("cut.jsonl", "cut.jsonl", "OUT is the same file"),
    ] {
        let done = schedtwin(&["convert", &path(from), &path(to)]);
        let told = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{from} {to}: {told}");
        assert!(told.starts_with("error: failed to ") && told.contains(expected), "{told}");
    }
    assert_eq!(fs::read_to_string(path("old.txt")).unwrap(), "old");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 5, "nothing half-written: {left:?}");
}

/// A recording keeps its events through every format, and its work through text.
#[test]
fn a_recording_keeps_its_events() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/pipeline.txt");
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (from, to) in [
        (recording.to_owned(), "a.txt"),
        (recording.to_owned(), "a.pftrace"),
        (path("a.pftrace"), "b.txt"),
        (path("a.txt"), "c.txt"),
        (path("a.pftrace"), "b.pftrace"),
        (path("b.pftrace"), "tables/"),
        (path("b.pftrace"), "b.dat"),
        (path("b.dat"), "d.txt"),
        (path("a.txt"), "again/tables/"),
    ] {
        let done = schedtwin(&["convert", &from, &path(to)]);
        assert!(done.status.success(), "{from} {to}: {}", stderr(&done));
    }
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("a.txt"), read("c.txt"));
    let count = |text: &str, event: &str| text.matches(&format!(": {event}: ")).count();
    let original = fs::read_to_string(recording).unwrap();
    for event in ["sched_switch", "sched_waking", "cpu_frequency"] {
        let wanted = count(&original, event);
        assert!(wanted > 0, "{event}");
        for name in ["a.txt", "b.txt", "d.txt"] {
            assert_eq!(count(&read(name), event), wanted, "{event} in {name}");
        }
        let table = read(&format!("tables/{event}.csv"));
        assert_eq!(table.lines().count(), wanted + 1, "{event}");
        assert!(table.starts_with("Time,__cpu,__pid,__comm,"), "{table}");
    }
    let work = |name: &str| {
        let done = schedtwin(&[
            "replay",
            name,
            "-m",
            "pixel6",
            "-k",
            "linux-6.12",
            "-n",
            "1",
            "--format",
            "json",
        ]);
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        report["provenance"]["hashes"]["workload"].clone()
    };
    assert_eq!(work(recording), work(&path("a.txt")));
    assert_eq!(work(recording), work(&path("b.dat")));
    // What is left is what was asked for.
    let mut left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let expected =
        ["a.pftrace", "a.txt", "again", "b.dat", "b.pftrace", "b.txt", "c.txt", "d.txt", "tables"];
    assert_eq!(left, expected);
}

/// What becomes of a recording is a workload that runs, and says what it left out.
#[test]
fn a_recording_becomes_an_rt_app_file() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/pipeline.txt");
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("app.json").display().to_string();
    let done = schedtwin(&["convert", recording, &app, "-m", "pixel6"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = fs::read_to_string(&app).unwrap();
    let ui = text.split("\"main ui\": {").nth(1).expect("a task").split('}').next().unwrap();
    assert!(ui.contains("\"period\": 16"), "{text}");
    assert!(text.contains("\"sem_wait\": \"RenderThread\""), "{text}");
    let run = schedtwin(&["run", "-m", "pixel6", "-w", &app, "--format", "json", "-q"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let tasks = report["tasks"].as_array().unwrap();
    let time = |name: &str| {
        let task = tasks.iter().find(|task| task["name"].as_str().unwrap().starts_with(name));
        task.unwrap_or_else(|| panic!("no {name}"))["cpu_time_ns"].as_u64().unwrap()
    };
    assert!(time("main ui") > 0 && time("RenderThread") > 0 && time("composer-fx") > 0);
}
