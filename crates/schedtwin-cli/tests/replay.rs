// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin replay` from outside, on a trace made for it: an interrupt wakes `main ui` every 16.7 ms, which wakes
//! `RenderThread`, which wakes `composer-fx`; `hog` never sleeps.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/pipeline.txt");

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

fn replay(trace: &str, rest: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_schedtwin"))
        .args(["replay", trace, "-m", "pixel6"])
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Whoever refuses the trace may have closed the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    Outcome {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

const TWO: [&str; 6] = ["-k", "linux-6.12", "-k", "linux-6.12:cpufreq=performance", "-n", "2"];

fn json(trace: &str, rest: &[&str]) -> Value {
    let outcome = replay(trace, &[rest, &["--format", "json"]].concat(), "");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("valid JSON")
}

fn pair<'a>(report: &'a Value, name: &str, stat: &str) -> &'a Value {
    let pairs = report["fidelity"]["pairs"].as_array().expect("pairs");
    let is_it = |p: &&Value| {
        p["name"] == name && p["stat"] == stat && p["labels"] == Value::Object(Default::default())
    };
    pairs.iter().find(is_it).unwrap_or_else(|| panic!("no pair {name} {stat}"))
}

#[test]
fn a_trace_becomes_a_table_with_its_fidelity() {
    let text = replay(TRACE, &TWO, "");
    assert_eq!((text.code, text.stderr.as_str()), (0, ""));
    for line in [
        "pixel6, pipeline: 2 runs each, paired (seeds 1-2)",
        "B  linux-6.12:cpufreq=performance",
        "replayed_work",
        "Fidelity: the recording against its replay on A (linux-6.12)",
        "read: 181 events, 1 of them not used",
        "replayed: 4 threads (0 forked within), 100.0% of the recorded CPU time",
        "sleeps end: 24 by their recorded waker, 12 at the recorded time of an interrupt, 0 at the time of",
    ] {
        assert!(text.stdout.contains(line), "{line}\n{}", text.stdout);
    }
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 100), "{}", text.stdout);
    let markdown = replay(TRACE, &[&TWO[..], &["--format", "markdown"]].concat(), "");
    assert!(markdown.stdout.contains("\n**Fidelity**: "), "{}", markdown.stdout);
    let csv = replay(TRACE, &[&TWO[..], &["--format", "csv"]].concat(), "").stdout;
    let columns: Vec<usize> = csv.lines().map(|line| line.matches(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{csv}");
    assert!(csv.contains(",pipeline,recorded,cpu_time,sum,,s,"), "{csv}");
}

#[test]
fn the_replay_does_the_recorded_work_in_the_recorded_order() {
    let report = json(TRACE, &TWO);
    let fidelity = &report["fidelity"];
    assert_eq!(fidelity["wakes_by_waker"], 24);
    assert_eq!(fidelity["wakes_by_time"], 12);
    assert_eq!((&fidelity["contradictions"], &fidelity["events_lost"]), (&0.into(), &0.into()));
    // All is done within the recorded time but what the hog could not do beside the composer.
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {value}"));
    let ratio = |name, stat| {
        let pair = pair(&report, name, stat);
        number(&pair["replayed"]) / number(&pair["recorded"])
    };
    assert!((0.95..=1.05).contains(&ratio("work", "sum")), "{}", ratio("work", "sum"));
    assert_eq!(ratio("replayed_sleeps", "sum"), 1.0);
    // Recorded: 10 us for the ui, 12 and 11 for those whom it wakes.
    let recorded = |stat| number(&pair(&report, "waking_latency", stat)["recorded"]);
    assert_eq!((recorded("p50"), recorded("p99")), (11.0, 12.0));
    // Every frame went through the whole pipeline, on both kernels.
    let metrics = report["metrics"].as_array().expect("metrics");
    let values = |name: &str, task: Option<&str>| {
        let is_it = |m: &&Value| m["name"] == name && m["labels"]["task"].as_str() == task;
        let values = &metrics.iter().find(is_it).unwrap_or_else(|| panic!("no {name}"))["values"];
        [number(&values[0]["mean"]), number(&values[1]["mean"])]
    };
    let elapsed = values("elapsed", None);
    for task in ["main ui", "RenderThread", "composer-fx"] {
        let per_second = values("throughput", Some(task));
        let frames = [0, 1].map(|kernel| (per_second[kernel] * elapsed[kernel]).round());
        // The recording's end may cut the last one.
        assert!(frames.iter().all(|count| [11.0, 12.0].contains(count)), "{task}: {frames:?}");
    }
}

#[test]
fn json_follows_the_shipped_schema_and_is_the_same_every_time() {
    let report = json(TRACE, &TWO);
    let schema = Command::new(env!("CARGO_BIN_EXE_schedtwin"))
        .args(["show", "schema", "replay"])
        .output()
        .expect("it runs");
    let schema: Value = serde_json::from_slice(&schema.stdout).expect("a schema");
    let validator = jsonschema::draft202012::new(&schema).expect("a valid schema");
    let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    let mut broken = report.clone();
    broken["fidelity"].as_object_mut().unwrap().remove("wakes_unmatched");
    assert!(!validator.is_valid(&broken));
    let one_thread = json(TRACE, &[&TWO[..], &["--threads", "1"]].concat());
    assert_eq!(report, one_thread);
}

/// Packed or not, from a file or a pipe: the same work, so the same digest of it.
#[test]
fn every_way_in_gives_the_same_work() {
    let one = ["-k", "linux-6.12", "-n", "1", "--format", "json"];
    let digest = |outcome: Outcome| -> Value {
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        report["provenance"]["hashes"]["workload"].clone()
    };
    let text = std::fs::read_to_string(TRACE).unwrap();
    let plain = digest(replay(TRACE, &one, ""));
    assert!(plain.is_string());
    assert_eq!(plain, digest(replay(&format!("{TRACE}.xz"), &one, "")));
    assert_eq!(plain, digest(replay("-", &one, &text)));
    // What the twin writes it can read: its own trace is a recording as well.
    let directory = tempfile::tempdir().unwrap();
    let written = directory.path().join("own.txt").display().to_string();
    let again = replay(TRACE, &[&one[..], &["--trace", &written]].concat(), "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_ne!(plain, digest(replay(&written, &one, "")));
    let half = replay(TRACE, &[&one[..], &["--duration", "100ms"]].concat(), "");
    assert_ne!(plain, digest(half));
}

#[test]
fn bad_traces_and_arguments_are_refused_with_what_to_do() {
    let head = "ui-7 [001] d..2. 5.000001: ";
    let switch = "sched_switch: prev_comm=ui prev_pid=7 prev_prio=120 prev_state=S ==> \
                  next_comm=swapper/1 next_pid=0 next_prio=120\n";
    let ok = format!("{head}{switch}");
    let far = ok.replace("[001]", "[009]");
    for (input, rest, expected) in [
        ("", vec![], vec!["it is not ftrace text"]),
        ("hello\n", vec![], vec!["line 1: no [CPU]", "trace-cmd report"]),
        (&format!("{head}print: x\n"), vec![], vec!["has no sched_switch"]),
        (
            &format!("{head}sched_switch: x\n{head}cpu_idle: state=1\n"),
            vec![],
            vec!["line 1: event sched_switch has an unknown form", "line 2: event cpu_idle has no"],
        ),
        (&far, vec![], vec!["a CPU 9, and pixel6 has 8 CPUs", "--recorded-on"]),
        (&ok, vec![], vec!["no length"]),
        (
            &format!("{ok}{}", ok.replace(" 5.0", " 18000000000.0")),
            vec![],
            vec!["longer than a day"],
        ),
        (&ok, vec!["-k", "linux-6.12"], vec!["named twice"]),
        (&ok, vec!["-k", "linux-6.21"], vec!["did you mean", "no length"]),
        (&ok, vec!["--recorded-on", "pixl6"], vec!["pixl6"]),
        (&ok, vec!["-n", "0"], vec!["0 is not in 1..="]),
        (&ok, vec!["--trace", "x.xyz"], vec!["ends in .pftrace"]),
    ] {
        let rest = [&["-k", "linux-6.12"][..], &rest].concat();
        let outcome = replay("-", &rest, input);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{input}\n{}", outcome.stderr);
        for expected in expected {
            assert!(outcome.stderr.contains(expected), "{expected}\n{}", outcome.stderr);
        }
    }
    let missing = replay("no/such.txt", &["-k", "linux-6.12"], "");
    assert!(missing.code == 2 && missing.stderr.contains("cannot be read"), "{}", missing.stderr);
    let folder = replay(env!("CARGO_MANIFEST_DIR"), &["-k", "linux-6.12"], "");
    assert!(folder.stderr.contains("no file of this folder looks like"), "{}", folder.stderr);
}
