// SPDX-License-Identifier: GPL-2.0-or-later
//! The binary as its users meet it: what it prints where, and with which exit code.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

const SCHEDTWIN: &str = env!("CARGO_BIN_EXE_schedtwin");

/// A small comparison that every test machine does in no time.
const SMALL: [&str; 6] = ["-m", "uniform8", "-w", "w1", "--duration", "50ms"];

#[derive(Debug)]
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

fn schedtwin(arguments: &[&str]) -> Outcome {
    let output = Command::new(SCHEDTWIN).args(arguments).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Outcome {
        code: output.status.code().expect("it ends by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// `head` and then the arguments of [`SMALL`] and then `tail`.
fn small(head: &[&str], tail: &[&str]) -> Outcome {
    schedtwin(&[head, &SMALL, tail].concat())
}

#[test]
fn bad_input_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let folder = directory.path().display().to_string();
    fs::write(path("binary.json"), [0u8, 159, 146, 150]).unwrap();
    fs::write(path("syntax.json"), "{ \"tasks\": { \"a\": { \"run\": } } }").unwrap();
    fs::write(path("typo.json"), "{ \"tasks\": { \"a\": { \"nap\": 1000 } } }").unwrap();
    let trace_in_nowhere = path("no/such.pftrace");
    let (json, toml) = (path("none.json"), path("none.toml"));
    let (binary, syntax, typo) = (path("binary.json"), path("syntax.json"), path("typo.json"));
    let w1 = "-m uniform8 -w w1";
    let mut wrong = String::new();
    for (arguments, expected) in [
        ("run -m pixl6 -w w1".to_string(), "did you mean `pixel6`"),
        ("run -m uniform8 -w w1 -k linux-6.122".into(), "did you mean `linux-6.12`"),
        ("run -m uniform8 -w w1 -k linux-6.12:hzz=100".into(), "hzz"),
        ("run -m uniform8:nonsense=1 -w w1".into(), "nonsense"),
        (format!("run -m {toml} -w w1"), "there is no such file"),
        (format!("run -m {folder}/ -w w1"), "is a directory"),
        (format!("run -m uniform8 -w {json}"), "o such file"),
        (format!("run -m uniform8 -w {binary}"), "binary"),
        (format!("run -m uniform8 -w {syntax}"), "syntax.json:1:"),
        (format!("run -m uniform8 -w {typo}"), "nap"),
        (format!("run {w1} --duration 10"), "has a unit: 10s"),
        (format!("run {w1} --duration 0s"), "measures nothing"),
        (format!("run {w1} --duration -5s"), "is positive"),
        (format!("run {w1} --duration 1000days"), "at most 1day"),
        (format!("run {w1} --seed -1"), "invalid value '-1'"),
        (format!("run {w1} --trace {trace_in_nowhere}"), "there is no directory"),
        (format!("run {w1} --trace out.xyz"), "ends in .pftrace"),
        (format!("run {w1} --trace {folder}/a.jsonl --record {folder}/a.jsonl"), "the same file"),
        (format!("run {w1} --record {folder}"), "is a directory"),
        ("run -m uniform8".into(), "--workload"),
        (format!("compare {w1} -k linux-6.12"), "at least two kernels"),
        (format!("compare {w1} -k linux-6.12 -k linux-6.12"), "named twice"),
        (format!("compare {w1} -k a -k b -n 0"), "0 is not in 1..="),
        (format!("compare {w1} -k a -k b --threads 0"), "0 is not in 1..="),
        (format!("compare {w1} -k a -k b --precision 0%"), "between 0% and 100%"),
        (format!("compare {w1} -k a -k b --precision 1% -n 3"), "cannot be used with"),
        (
            format!("compare {w1} -k linux-6.12 -k linux-6.12:hz=1000 --fail-if power"),
            "expected one of > >= < <=",
        ),
        (
            format!("compare {w1} -k linux-6.12 -k linux-6.12:hz=1000 --seed 18446744073709551615"),
            "below 2^64",
        ),
        (
            format!("compare {w1} -k linux-6.12 -k linux-6.12:hz=1000 --html no/where/a.html"),
            "there is no directory",
        ),
        (format!("compare {w1} -k a -k b --first-difference --fail-if power>5%"), "cannot be used"),
        (format!("compare {w1} -k a -k b --first-difference --format json"), "cannot be used"),
        (format!("compare {w1} -k a -k b --first-difference --html a.html"), "cannot be used"),
        (format!("run {w1} -k linux-6.12:qqqq=1"), "`schedtwin show kernel linux-6.12` lists all"),
        (format!("run {w1} -k linux-6.12+./no.toml"), "there is no such file"),
        (format!("explain {json} --at 1s"), "failed to read"),
        (format!("explain {folder} --at 1s"), "is a directory"),
        (format!("explain {syntax} --at 1s"), "failed to explain"),
        (format!("explain {json}"), "--at"),
        ("show machine pixl6".into(), "did you mean `pixel6`"),
        ("show kernel linux-6.122".into(), "did you mean `linux-6.12`"),
        ("show schema campare".into(), "there is no schema `campare`"),
        (format!("check {json}"), "there is no such file"),
        (format!("check {folder}"), "is a directory"),
        ("study show jankbench-pixel".into(), "did you mean `jankbench-pixel6`"),
        ("study run".into(), "<NAME>"),
        ("calibrate x --dry-run".into(), "there is no study `x`"),
        ("calibrate messaging-altra".into(), "nothing of messaging-altra may be fitted"),
        ("calibrate machine".into(), "<TRACE>"),
        ("calibrate machine a.dat --probe".into(), "cannot be used with"),
        ("calibrate machine a.dat -m pixel6 --in-guest".into(), "cannot be used with"),
        ("calibrate machine -m pixel6 --in-guest".into(), "--probe"),
        ("calibrate machine --probe -o out.toml".into(), "--machine"),
        ("calibrate machine --probe -m pixl6".into(), "did you mean `pixel6`"),
        ("calibrate machine --probe -m pixel6:settle_us=1 -o out.toml".into(), "are in no file"),
        ("calibrate machine --probe -m pixel6 -o no/where/a.toml".into(), "there is no directory"),
        ("study run uibench-pixel9 --calibration no.toml".into(), "there is no such file"),
        (format!("tune {w1} --setting hz=1..2 --metric power --to 1"), "a parameter begins with"),
        (format!("tune {w1} --setting kernel.hz=2..1 --metric power --to 1"), "ends above where"),
        (format!("tune {w1} --setting kernel.hz=100..99999 --metric power --to 1"), "hz"),
        (format!("tune {w1} --setting kernel.hertz=1..2 --metric power --to 1"), "`hertz`"),
        (
            format!("tune {w1} --setting kernel.hz=100..1000 --metric pwr --to 1"),
            "no metric is named",
        ),
        (format!("tune {w1} --setting kernel.hz=100..1000 --metric power"), "--like"),
        ("replay no.txt -m pixel6 -k linux-6.12".into(), "cannot be read"),
        ("convert a b".into(), "the name of a trace or record ends in"),
        ("frobnicate".into(), "unrecognized subcommand"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let Outcome { code, stdout, stderr } = schedtwin(&words);
        if !stderr.contains(expected) || code != 2 || !stdout.is_empty() {
            wrong.push_str(&format!(
                "{arguments}: expected {expected:?}, exit code {code}\n{stderr}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_faults_are_reported_at_once_and_each_once() {
    let outcome =
        schedtwin(&["compare", "-m", "pixl6", "-w", "w1", "-k", "linux-6.21", "-k", "linux-6.31"]);
    let count = |word: &str| {
        outcome.stderr.lines().filter(|line| line.contains(word) && line.contains("error")).count()
    };
    assert_eq!(
        (count("pixl6"), count("linux-6.21"), count("linux-6.31")),
        (1, 1, 1),
        "{}",
        outcome.stderr
    );
}

#[test]
fn help_teaches_at_every_level() {
    for arguments in [
        "--help",
        "run --help",
        "compare --help",
        "explain --help",
        "replay --help",
        "list --help",
        "show --help",
        "check --help",
        "study --help",
        "study run --help",
        "study stability --help",
        "calibrate --help",
        "calibrate machine --help",
        "tune --help",
    ] {
        let outcome = schedtwin(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{arguments}");
        assert!(
            outcome.stdout.contains("Examples:\n  schedtwin "),
            "{arguments}\n{}",
            outcome.stdout
        );
    }
    assert_eq!(schedtwin(&[]).code, 2);
}

/// A study of the user's own from calibration to page: the fitted parameter is used, shown, and refused under
/// another model.
#[test]
fn a_study_of_ones_own_is_calibrated_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let study = folder.path().join("mine.toml");
    let text = r#"
name = "mine"
description = "what a slower clock does"
published = "nowhere"
about = "a test"
machine = "./phone.toml"
workload = "ui-phone"
duration = "300ms"
[[column]]
kernel = "linux-5.18"
[[column]]
kernel = "linux-5.18+runnable-boost"
[[row]]
id = "1"
metric = "frame_duration"
stat = "mean"
unit = "ms"
better = "lower"
cells = [
  { kernel = "linux-5.18", role = "base", value = 3 },
  { kernel = "linux-5.18+runnable-boost", role = "patched", value = 2 },
]
[[row]]
id = "2"
metric = "power"
stat = "mean"
unit = "mW"
better = "lower"
cells = [{ kernel = "linux-5.18", role = "base", value = 700 }]
[[fit]]
parameter = "machine.settle_us"
bounds = [50, 150]
fitted_on = ["1", "2"]
why = "a test"
"#;
    std::fs::write(&study, text).unwrap();
    let phone = schedtwin(&["show", "machine", "pixel6", "--file"]);
    std::fs::write(folder.path().join("phone.toml"), phone.stdout).unwrap();
    let study = study.to_str().unwrap();
    let file = schedtwin(&["study", "show", study, "--file"]);
    assert_eq!(file.stdout, text);
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, text.replace("machine.settle_us", "machine.setle_us")).unwrap();
    let wrong = schedtwin(&["calibrate", wrong.to_str().unwrap(), "--dry-run"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("setle_us"), "{wrong:?}");
    let dry = schedtwin(&["calibrate", study, "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("machine.settle_us in 50 .. 150"), "{dry:?}");
    assert!(!folder.path().join("calibrations").exists(), "a dry run writes nothing");
    let fitted = schedtwin(&["calibrate", study, "-n", "1"]);
    assert_eq!((fitted.code, fitted.stderr.as_str()), (0, ""));
    let path = folder.path().join("calibrations/mine.toml");
    let written = std::fs::read_to_string(&path).unwrap();
    // Somebody else's folder may have a link where the calibration belongs: what it points to stays.
    let precious = folder.path().join("precious");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&precious, "mine").unwrap();
    std::os::unix::fs::symlink(&precious, &path).unwrap();
    let again = schedtwin(&["calibrate", study, "-n", "1", "--threads", "1"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "the folder exists now");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written, "the same bytes");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
    let page = folder.path().join("page.html");
    let run = ["study", "run", study, "-n", "2", "--html", page.to_str().unwrap()];
    let ran = schedtwin(&run);
    assert!(ran.code == 0 && ran.stdout.contains("fitted: "), "{ran:?}");
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
    let bare = schedtwin(&["study", "run", study, "-n", "2", "--uncalibrated"]);
    assert!(bare.stdout.contains("nothing is calibrated"), "{bare:?}");
    let old = written.replace("model_version = \"", "model_version = \"0");
    std::fs::write(&path, old).unwrap();
    let refused = schedtwin(&run);
    assert!(refused.code == 2 && refused.stderr.contains("is of model 0"), "{refused:?}");
    let stable = ["study", "stability", study, "--reruns", "2", "-n", "2", "--fail-below", "95"];
    let stale = schedtwin(&stable);
    assert!(stale.code == 2 && stale.stderr.contains("run `schedtwin calibrate"), "{stale:?}");
    std::fs::remove_file(&path).unwrap();
    assert!(schedtwin(&stable).stdout.contains("frame_duration mean linux-5.18+runnable-boost"));
    let json = schedtwin(&[
        "study",
        "stability",
        study,
        "--reruns",
        "2",
        "--precision",
        "90%",
        "--rows",
        "1",
        "--format",
        "json",
    ]);
    assert!(json.stdout.starts_with("{\"schema\":\"schedtwin.stability/1\""), "{json:?}");
    let row = schedtwin(&["study", "stability", study, "--rows", "2"]);
    assert!(row.code == 2 && row.stderr.contains("`2` is no row of mine"), "{row:?}");
    let table = schedtwin(&["study", "run", study, "-n", "2", "--sensitivity"]);
    assert!(table.code == 0 && table.stdout.contains("robust, yes:"), "{table:?}");
}

#[test]
fn studies_are_listed_and_none_waits() {
    let listed = schedtwin(&["study", "list"]).stdout;
    assert_eq!(listed, schedtwin(&["list", "studies"]).stdout);
    // None of the built-in ones waits any longer; one that does is shown by a test of the laboratory.
    assert!(listed.contains("jankbench-pixel6  ") && !listed.contains("waits for: "), "{listed}");
    let shown = schedtwin(&["study", "show", "messaging-altra"]).stdout;
    assert!(shown.contains("+-0.0173") && shown.contains("perf stat"), "{shown}");
}

/// A report of one's own: its first result stays when it runs again with other seeds.
#[test]
fn reports_are_recorded_and_first_results_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("X1.toml");
    let text = r#"
name = "X1"
description = "a faster tick"
published = "nowhere"
about = "made up"
machine = "uniform8"
workload = "periodic -t 4"
duration = "200ms"
[report]
kind = "tick"
year = 2025
sources = ["https://example.org/"]
status = "runs"
seeds = 2
[[column]]
kernel = "linux-6.12"
[[column]]
kernel = "linux-6.12:hz=1000"
[[row]]
id = "1"
metric = "ticks"
stat = "sum"
unit = "count"
better = "lower"
cells = [
  { kernel = "linux-6.12", role = "base", value = 20 },
  { kernel = "linux-6.12:hz=1000", role = "patched", diff_pct = 200 },
]
"#;
    std::fs::write(&path, text).unwrap();
    let (report, into) = (path.to_str().unwrap(), folder.path().to_str().unwrap());
    let run = |seed: &str| {
        let ran = schedtwin(&[
            "study",
            "run",
            "--reports",
            report,
            "--record",
            into,
            "--seed",
            seed,
            "-q",
        ]);
        assert!(ran.code == 0 && ran.stdout.contains("X1 (tick, 2025): a faster tick"), "{ran:?}");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        [read("first-results.csv"), read("present-results.csv")]
    };
    let [first, present] = run("1");
    assert!(first == present && first.lines().count() == 3, "{first}");
    let [again, now] = run("7");
    assert_eq!(again, first);
    assert_ne!(now, present);
    for (arguments, message) in [
        (["--reports", "jankbench-pixel6"], "jankbench-pixel6 is no report"),
        (["--reports", "R999"], "there is no study `R999`"),
        (["--reports", "--kind=idel"], "did you mean `idle`?"),
        (["jankbench-pixel6", "--kept-aside"], "--reports"),
    ] {
        let refused = schedtwin(&[&["study", "run"][..], &arguments[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(message), "{refused:?}");
    }
    let listed = schedtwin(&["study", "list", "--reports", "--kind", "preemption"]).stdout;
    assert!(listed.contains("D30  preemption        2024  refused: "), "{listed}");
    let shown = schedtwin(&["study", "show", "R2"]).stdout;
    assert!(shown.contains("report: preemption, 2023, runs"), "{shown}");
}

#[test]
fn lists_name_what_runs() {
    let all = schedtwin(&["list"]).stdout;
    for title in ["Machines", "Kernels", "Patches", "Workloads"] {
        assert!(all.contains(title), "{all}");
    }
    for (kind, name) in [
        ("machines", "pixel6"),
        ("kernels", "linux-6.12"),
        ("workloads", "w1"),
        ("schemas", "schedtwin.run/1"),
    ] {
        let outcome = schedtwin(&["list", kind]);
        assert!(
            outcome.code == 0
                && outcome.stdout.lines().any(|line| line.split(' ').next() == Some(name)),
            "{}",
            outcome.stdout
        );
    }
    assert!(schedtwin(&["show", "machine", "pixel6"]).stdout.contains("pixel6"));
    assert!(schedtwin(&["show", "kernel", "linux-6.12"]).stdout.contains("linux-6.12"));
}

fn schema_errors(name: &str, document: &str) -> Vec<String> {
    let schema = schedtwin(&["show", "schema", name]).stdout;
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    let document: Value = serde_json::from_str(document).expect("valid JSON");
    validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn json_follows_the_shipped_schemas() {
    let run = small(&["run"], &["--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(schema_errors("run", &run.stdout), [""; 0]);
    let compared = small(
        &["compare"],
        &["-k", "linux-6.12", "-k", "linux-6.12:hz=1000", "-n", "2", "--format", "json"],
    );
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    assert_eq!(schema_errors("compare", &compared.stdout), [""; 0]);
    assert!(!schema_errors("run", &compared.stdout).is_empty());
}

#[test]
fn a_record_follows_its_schema_and_can_be_explained() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("out.jsonl").display().to_string();
    let run = small(&["run"], &["--record", &record, "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let file = BufReader::new(fs::File::open(&record).unwrap());
    let schema: Value =
        serde_json::from_str(&schedtwin(&["show", "schema", "record"]).stdout).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut lines = 0;
    for line in file.lines().take(2000) {
        let line: Value = serde_json::from_str(&line.unwrap()).expect("each line is JSON");
        assert!(validator.is_valid(&line), "{line}");
        lines += 1;
    }
    assert!(lines > 100, "{lines} lines");
    let explained = schedtwin(&["explain", &record, "--at", "20ms", "--window", "5ms"]);
    assert!(
        explained.code == 0 && explained.stdout.contains("sched_switch"),
        "{}{}",
        explained.stderr,
        explained.stdout
    );
    let chains = schedtwin(&["explain", &record, "--chains"]);
    assert!(chains.code == 0 && chains.stdout.contains("where the time went"), "{}", chains.stderr);
    let nobody = schedtwin(&["explain", &record, "--task", "nobody-of-this-name"]);
    assert!(nobody.code == 2 && nobody.stderr.contains("has no task"), "{}", nobody.stderr);
}

#[test]
fn a_record_is_asked_for_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("out.jsonl").display().to_string();
    let run = small(&["run"], &["--record", &record, "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let one = schedtwin(&["explain", &record, "--task", "job-3"]);
    let all = schedtwin(&["explain", &record, "--task", "job"]);
    assert!(one.code == 0 && one.stdout.lines().count() > 5, "{}", one.stderr);
    assert!(all.stdout.lines().count() > 10 * one.stdout.lines().count(), "all 40 threads");
    for (arguments, expected) in [
        (["--task", "jobb"], "did you mean `job`?"),
        (["--cpu", "77"], "has no CPU 77: it has 8 CPUs"),
        (["--at", "100s"], "which ends at "),
    ] {
        let outcome = schedtwin(&[&["explain", &record], &arguments[..]].concat());
        assert!(outcome.code == 2 && outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}

/// A machine without eight CPUs has a strongest one too.
#[test]
fn the_phone_workload_runs_on_every_machine() {
    for line in schedtwin(&["list", "machines"]).stdout.lines() {
        let machine = line.split(' ').next().unwrap();
        let outcome =
            schedtwin(&["run", "-m", machine, "-w", "ui-phone", "--duration", "50ms", "--quiet"]);
        assert_eq!(outcome.code, 0, "{machine}: {}", outcome.stderr);
    }
}

#[test]
fn the_glossary_has_every_metric() {
    let glossary = schedtwin(&["list", "metrics"]).stdout;
    assert!(glossary.lines().all(|line| line.chars().count() <= 120), "{glossary}");
    for (machine, workload) in [("uniform8", "w1"), ("pixel6", "jankbench")] {
        let run = ["run", "-m", machine, "-w", workload, "--duration", "50ms", "--format", "json"];
        let run: Value = serde_json::from_str(&schedtwin(&run).stdout).unwrap();
        let metrics = run["metrics"].as_array().expect("a run has metrics");
        assert!(metrics.len() > 50);
        for metric in metrics {
            let word = |key: &str| metric[key].as_str().unwrap_or("").to_string();
            let (_, after) =
                glossary.split_once(&format!("\n  {} ", word("name"))).expect("a line");
            let facts = after.lines().nth(1).expect("a second line").trim();
            assert!(
                facts.starts_with(&format!("{}, ", word("unit")))
                    || facts.starts_with(&format!("{}; ", word("unit"))),
                "{facts}"
            );
            assert_eq!(facts.contains(" is better"), !word("better").is_empty(), "{facts}");
            assert!(facts.contains(&word("better")) && facts.contains(&word("stat")), "{facts}");
        }
    }
}

/// A table for a mail: narrow, with deviations, as mmtests prints it, straight to a file; other formats have no layout.
#[test]
fn tables_are_laid_out_for_mails() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.txt").display().to_string();
    let kernels = ["-k", "linux-6.12", "-k", "linux-6.12:hz=1000", "-n", "2"];
    let wanted = ["--metric", "throughput", "--metric", "wakeup_latency.p99", "--stddev"];
    let laid_out = ["--width", "72", "--mmtests", "-o", &file];
    let outcome = small(&["compare", "-q"], &[&kernels[..], &wanted, &laid_out].concat());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""), "{outcome:?}");
    let text = fs::read_to_string(&file).unwrap();
    for expected in ["Amean ", "Stddev ", "throughput", "wakeup_latency", "(   0.00%)", "hz=1000"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = small(&["compare", "--format", "json", "--mmtests"], &kernels);
    assert!(json.code == 2 && json.stderr.contains("--mmtests is for tables of text"), "{json:?}");
    let narrow = small(&["compare", "--width", "10"], &kernels);
    assert!(narrow.code == 2 && narrow.stderr.contains("40..=1000"), "{narrow:?}");
}

/// `--metric` means the same rows in every format, and a mistyped one is refused before a run.
#[test]
fn rows_are_chosen_by_name() {
    let chosen = ["--metric", "power,wakeup_latency.p99,cluster=*", "--metric", "idle_too_*"];
    let kernels = ["-k", "linux-6.12", "-k", "linux-6.12:hz=1000", "-n", "2"];
    let compared = small(&["compare"], &[&chosen[..], &kernels].concat()).stdout;
    let run = small(&["run"], &chosen).stdout;
    for text in [&compared, &run] {
        let is_row = |line: &&str| line.starts_with("power ") || line.starts_with("wakeup_latency");
        let rows = text.lines().filter(is_row);
        assert_eq!(rows.count(), 2, "{text}");
        assert!(text.contains("idle_too_deep ") && text.contains("idle_too_shallow "), "{text}");
        assert!(!text.contains("migrations") && !text.contains("more rows:"), "{text}");
    }
    let names = ["power", "wakeup_latency", "idle_too_deep", "idle_too_shallow"];
    let csv = small(&["run", "--format", "csv"], &chosen).stdout;
    let column: Vec<&str> = csv.lines().skip(1).map(|l| l.split(',').nth(5).unwrap()).collect();
    assert_eq!(column, names);
    let json = small(&["compare", "--format", "json"], &[&chosen[..], &kernels].concat()).stdout;
    assert_eq!(schema_errors("compare", &json), [""; 0]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["metrics"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["name"].as_str().unwrap()).collect::<Vec<_>>(), names);

    for (wrong, expected) in [
        ("powre", "did you mean power?"),
        ("power.p99", "power has no p99"),
        ("power,task=ui", "its labels are domain"),
        ("jank", "it is measured by benchmarks of frames"),
        ("power,domain=bgi", "no power has these labels"),
    ] {
        let outcome = small(&["run"], &["--metric", wrong]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{wrong}");
        assert!(outcome.stderr.contains(expected), "{wrong}: {}", outcome.stderr);
    }
    // A year on a machine that does not exist: both faults at once, and neither is simulated.
    let both = ["run", "-m", "pixl6", "-w", "w1", "--metric", "powre"];
    let both = schedtwin(&both).stderr;
    assert!(both.contains("did you mean power?") && both.contains("pixel6"), "{both}");
}

/// The default table is short and has the same rows whatever the kernels do; `--more` has these and others.
#[test]
fn tables_come_in_three_lengths() {
    let rows = |more: &[&str]| {
        let run = ["run", "-m", "pixel6", "-w", "ui-phone", "--duration", "300ms", "--quiet"];
        let text = schedtwin(&[&run, more].concat()).stdout;
        let table = text.split("\ntask ").next().unwrap().lines().skip(2);
        table.filter(|line| !line.is_empty()).map(str::to_string).collect::<Vec<String>>()
    };
    let (short, more, all) = (rows(&[]), rows(&["--more"]), rows(&["--all"]));
    assert!((10..=16).contains(&short.len()), "{short:#?}");
    assert!((30..=60).contains(&more.len()) && all.len() > 300, "{} {}", more.len(), all.len());
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let within = |some: &[String], others: &[String]| {
        let others: Vec<String> = others.iter().map(words).collect();
        some.iter().map(words).all(|line| others.contains(&line))
    };
    assert!(within(&short, &more) && within(&more, &all));
}

#[test]
fn a_patch_may_be_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, sets: &str| {
        let path = directory.path().join(name);
        let text = "name = \"mine\"\ndescription = \"mine\"\n[requires]\nhz = 250\n[sets]\n";
        fs::write(&path, format!("{text}{sets}\n")).unwrap();
        path.display().to_string()
    };
    let (fine, other) = (path("fine.toml", "hz = 1000"), path("other.toml", "hz = 100"));
    let wrong = path("wrong.toml", "hzz = 1000");
    let checked = schedtwin(&["check", &fine]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(
        checked.stdout.contains("note: for linux-4.7, linux-5.11, linux-5.18, "),
        "{}",
        checked.stdout
    );
    let checked = schedtwin(&["check", &wrong]);
    assert!(checked.code == 1 && checked.stderr.contains("wrong.toml:6:"), "{}", checked.stderr);

    let hash = |patch: &str| {
        let kernel = format!("linux-6.12+{patch}");
        let outcome = small(&["run", "-k", &kernel], &["--format", "json"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let run: Value = serde_json::from_str(&outcome.stdout).unwrap();
        run["provenance"]["hashes"].to_string()
    };
    let before = hash(&fine);
    fs::copy(&other, &fine).unwrap();
    assert_ne!(before, hash(&fine), "the hash of a kernel covers its patches");
    let shown = schedtwin(&["show", "kernel", &format!("linux-6.12+{fine}")]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("hz ") && line.contains(" 100 ")), "{shown}");
    let twice = schedtwin(&["show", "kernel", &format!("linux-6.12+{fine}+{other}")]);
    assert!(twice.stderr.contains("both set `hz`"), "{}", twice.stderr);
}

#[test]
fn the_same_bytes_twice_and_with_any_number_of_threads() {
    let kernels = ["-k", "linux-6.12", "-k", "linux-6.12:hz=1000", "-n", "3", "--all"];
    for format in ["text", "markdown", "json", "csv"] {
        let run = |threads| {
            let outcome = small(&["compare", "--format", format, "--threads", threads], &kernels);
            assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
            outcome.stdout
        };
        let one = run("1");
        assert!(one.len() > 500, "{one}");
        assert_eq!(one, run("4"), "{format}");
        let run = || small(&["run", "--format", format], &["--seed", "9"]).stdout;
        assert_eq!(run(), run(), "{format}");
    }
}

#[test]
fn conditions_decide_the_exit_code_and_the_table_is_printed_all_the_same() {
    let kernels = ["-k", "linux-6.12", "-k", "linux-6.12:hz=1000", "-n", "2"];
    let holds = small(&["compare", "--fail-if", "power>=0mW"], &kernels);
    assert_eq!(holds.code, 1, "{}", holds.stderr);
    assert!(
        holds.stderr.starts_with("failed: power>=0mW: power mean of linux-6.12:hz=1000 is "),
        "{}",
        holds.stderr
    );
    let not = small(&["compare", "--fail-if", "power>+1000000%"], &kernels);
    assert_eq!((not.code, not.stderr.as_str()), (0, ""));
    assert_eq!(not.stdout, holds.stdout);
    let unknown = small(&["compare", "--fail-if", "powre>+5%"], &kernels);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("did you mean power?"),
        "{}",
        unknown.stderr
    );
    assert_eq!(unknown.stdout, "", "told before anything runs");
}

#[test]
fn the_first_difference_is_named() {
    let outcome = small(
        &["compare", "--first-difference"],
        &["-k", "linux-6.12", "-k", "linux-6.12:hz=1000"],
    );
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("the first difference is at "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("] cpu_idle "), "in the words of explain: {}", outcome.stdout);
}

#[test]
fn the_first_difference_is_as_wide_as_asked() {
    let kernels = ["-k", "linux-6.12", "-k", "linux-6.12:hz=1000"];
    let widest = |width: &[&str]| {
        let outcome = small(&[&["compare", "--first-difference"], width].concat(), &kernels);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    assert!(widest(&[]) > 60, "else there is nothing to break");
    assert!(widest(&["--width", "60"]) <= 60);
}

#[test]
fn a_study_is_as_wide_as_asked() {
    let study = ["study", "run", "uclamp-enqueue-order", "-n", "2", "--no-variants", "-q"];
    let outcome = schedtwin(&[&study[..], &["--width", "72"]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let wide = outcome.stdout.lines().find(|line| line.chars().count() > 72);
    assert_eq!(wide, None, "{}", outcome.stdout);
}

#[test]
fn a_run_that_is_all_warm_up_says_so() {
    let daytrader = ["run", "-m", "power10-8core", "-w", "daytrader -j 1 -u 2", "--duration"];
    let told = |duration: &str| {
        let stdout = schedtwin(&[&daytrader[..], &[duration]].concat()).stdout;
        stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(told("550ms").contains("first 500ms of the workload are warm-up"), "{}", told("550ms"));
    assert!(told("550ms").contains("take --duration 1s or more"), "{}", told("550ms"));
    assert!(!told("600ms").contains("warm-up"), "{}", told("600ms"));
}

/// The first thing that runnable boosting does is to raise a request, also where a slow driver makes it wait; with other seeds a
/// placement comes first, whose energies count boosted utilisation.
#[test]
fn the_first_difference_of_boosting_is_a_boosted_request() {
    let kernels = ["-k", "linux-5.18", "-k", "linux-5.18+runnable-boost"];
    let run = ["compare", "-m", "pixel6", "-w", "ui-phone", "--duration", "500ms", "--seed", "3"];
    let outcome = schedtwin(&[&run[..], &kernels, &["--first-difference"]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let (base, boosted) = outcome.stdout.split_once("linux-5.18+runnable-boost\n").unwrap();
    assert!(base.contains("frequency ") && !base.contains("boosted by"), "{base}");
    assert!(boosted.contains("boosted by"), "{boosted}");
}

#[test]
fn check_tells_wrong_files_from_unreadable_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let fine = path(
        "fine.json",
        r#"{ "tasks": { "a": { "loop": 10, "run": 1000, "timer": { "ref": "t", "period": 16000 } } } }"#,
    );
    let wrong = path("wrong.json", r#"{ "tasks": { "a": { "nap": 1000 } } }"#);
    let outcome = schedtwin(&["check", &fine]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with(&format!("{fine}: fine\n")));
    let odd = fs::read_to_string("../../machines/uniform8.toml").unwrap();
    let odd = odd.replacen("wfi_uw = 6_000", "wfi_uw = 66_000", 1);
    let odd = path("odd.toml", &odd.replacen("active_uw = 900_000", "active_uw = 9_000", 1));
    let both = |told: &str| {
        told.contains("warning: at 500000 kHz a CPU in WFI draws more than a busy one")
            && told.contains("warning: measured power falls by more than a tenth")
            && told.contains("odd.toml:51:")
            && told.contains("odd.toml:54:")
    };
    let outcome = schedtwin(&["check", &odd, &fine]);
    assert_eq!(outcome.code, 0);
    assert!(both(&outcome.stderr), "{}", outcome.stderr);
    assert!(
        outcome.stdout.starts_with(&format!("{odd}: fine, 3 warnings\n")),
        "{}",
        outcome.stdout
    );
    for kernels in
        [&["run", "-k", "linux-6.12"][..], &["compare", "-k", "linux-6.12", "-k", "linux-6.6"]]
    {
        let rest = ["-m", &odd, "-w", &fine, "--duration", "10ms"];
        let outcome = schedtwin(&[kernels, &rest].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(both(&outcome.stderr), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.matches("warning: ").count(), 3, "{}", outcome.stderr);
    }
    let outcome = schedtwin(&["check", &wrong, &fine]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("wrong.json:1:") && outcome.stderr.contains("failed: "),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stdout.contains("fine.json: fine"), "the other files are checked all the same");
}

/// `schedtwin ... | head -1` must not end in a panic.
/// What has no end is refused, whether it is a device or comes through a pipe.
#[test]
#[cfg(unix)]
fn endless_input_is_refused() {
    let explain = ["explain", "--cpu", "0"];
    let replay = ["replay", "-m", "pixel6", "-k", "linux-6.12"];
    for device in ["/dev/zero", "/dev/urandom", "/dev/null"] {
        for command in [&explain[..], &replay] {
            let outcome = schedtwin(&[command, &[device]].concat());
            assert_eq!(outcome.code, 2, "{outcome:?}");
            assert!(outcome.stderr.contains("it is a device, not a file"), "{outcome:?}");
        }
    }
    let workload = schedtwin(&["run", "-m", "uniform8", "-w", "/dev/zero"]);
    assert!(workload.code == 2 && workload.stderr.contains("larger than"), "{workload:?}");
    let machine = schedtwin(&["run", "-m", "/dev/zero", "-w", "w1"]);
    assert!(machine.code == 2 && machine.stderr.contains("larger than"), "{machine:?}");
    for (command, expected) in [
        ([&explain[..], &["/dev/stdin"]].concat(), "its first line is too long"),
        ([&replay[..], &["-"]].concat(), "64 MiB without a trace line"),
    ] {
        let mut endless = Command::new("cat")
            .arg("/dev/zero")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("cat starts");
        let stdin = endless.stdout.take().expect("it is piped");
        let output = Command::new(SCHEDTWIN).args(&command).stdin(stdin).output().expect("it ends");
        endless.wait().expect("cat ends when nobody reads");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn a_closed_pipe_is_no_fault() {
    for arguments in [
        vec!["list"],
        vec!["show", "schema", "compare"],
        [&["run", "--format", "json"], &SMALL[..]].concat(),
    ] {
        let mut child = Command::new(SCHEDTWIN)
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{arguments:?}");
    }
}

/// Results that cannot be stored are a fault.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_fault() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(SCHEDTWIN).arg("list").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("failed to write to stdout"));
}

/// What the help tells people to type must run. Lines that need a file of the reader's own or
/// stand for a longer command (`...`) are left out.
#[test]
fn the_examples_of_the_help_run() {
    let mut ran = 0;
    for command in ["run", "compare", "list", "show"] {
        let help = schedtwin(&[command, "--help"]).stdout;
        for line in help.lines().filter_map(|line| line.strip_prefix("  schedtwin ")) {
            let example = line.split("  ").next().expect("a line has a beginning");
            if ["app.json", "...", " > ", "~/"].iter().any(|word| example.contains(word)) {
                continue;
            }
            // As a shell has it: no quoted word of these has a blank.
            let mut arguments: Vec<&str> =
                example.split(' ').map(|w| w.trim_matches('\'')).collect();
            if ["run", "compare"].contains(&command) && !example.contains("--duration") {
                arguments.extend(["--duration", "20ms"]);
            }
            if example.contains("--precision") {
                arguments.extend(["--max-iterations", "12"]);
            }
            let outcome = schedtwin(&arguments);
            assert_eq!(outcome.code, 0, "{example}\n{}", outcome.stderr);
            ran += 1;
        }
    }
    assert!(ran >= 8, "{ran} examples");
}

/// What is found is told as a command; if nothing can be found, the ends are shown.
#[test]
fn a_setting_is_tuned() {
    let machine = ["-m", "uniform8", "--duration", "200ms", "--metric", "power", "-q"];
    let five = [&["run", "-w", "periodic --threads 5", "--format", "csv"][..], &machine].concat();
    let five = schedtwin(&five).stdout;
    let power = five.lines().nth(1).and_then(|line| line.split(',').nth(11)).expect("a value");
    let tune = |to: &str| {
        let rest = ["tune", "-w", "periodic", "--setting", "workload.threads=1..8", "-n", "1"];
        schedtwin(&[&rest[..], &["--to", to], &machine].concat())
    };
    let found = tune(power);
    assert_eq!(found.code, 0, "{found:?}");
    let closest = found.stdout.lines().find(|line| line.ends_with("<- closest"));
    assert_eq!(closest.and_then(|line| line.split_whitespace().next()), Some("5"), "{found:?}");
    assert!(found.stdout.contains("to run it: schedtwin run -m uniform8"), "{found:?}");
    assert!(found.stdout.contains("--threads 5'"), "{found:?}");
    let none = tune("5000");
    assert!(none.code == 1 && none.stderr.contains("lies outside"), "{none:?}");
    assert!(!none.stdout.contains("closest"), "{none:?}");
}
