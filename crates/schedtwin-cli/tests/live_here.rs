// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin live` and `schedtwin settings` on this machine: the protocol is kept and everything is put back. No timing is
//! judged.
//!
//! Recording and switching need root, recording also a mounted tracefs; where these are not, a test says so and passes.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// There is one machine to be switched.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A knob that changes nothing where no group has a quota.
const KNOB: &str = "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";

fn schedtwin() -> Command {
    Command::new(env!("CARGO_BIN_EXE_schedtwin"))
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    schedtwin().args(arguments).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says that this test is skipped, by its name.
fn skipped(why: &str) {
    eprintln!("SKIPPED {}: {why}", std::thread::current().name().unwrap_or_default());
}

/// Whether settings can be switched here.
fn can_switch() -> bool {
    let can = fs::OpenOptions::new().write(true).open(KNOB).is_ok();
    if !can {
        skipped(&format!("switching settings needs root and {KNOB}"));
    }
    can
}

/// Whether recording is possible here.
fn can_record() -> bool {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
    let usable = |place: &PathBuf| {
        place.join("instances").exists()
            && fs::OpenOptions::new().write(true).open(place.join("tracing_on")).is_ok()
    };
    let can = places.iter().any(usable);
    if !can {
        skipped("recording needs root and a mounted tracefs");
    }
    can
}

fn knob() -> String {
    fs::read_to_string(KNOB).unwrap().trim().to_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Some tenths of a second of work.
const MIX: &str = r#"{ "tasks": {
    "ui": { "loop": 60, "run": 1000, "timer": { "ref": "unique", "period": 4000 } },
    "hogs": { "instance": 2, "loop": 40, "run": 4000, "sleep": 100 } } }"#;

#[test]
fn a_prediction_is_sealed_before_it_is_measured_and_everything_is_put_back() {
    let _alone = alone();
    if !can_record() || !can_switch() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mix.json"), MIX).unwrap();
    let was = knob();
    let other = if was == "4000" { "3000" } else { "4000" };
    let b = format!("nice hogs=10; cfs_bandwidth_slice_us={other}");
    let arguments =
        ["live", "run", "-q", "-w", "mix.json", "--runs", "3", "--b", &b, "--json", "-o", "l"];
    let done = run(folder.path(), &arguments);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(knob(), was, "the knob is put back");
    let live = folder.path().join("l");
    assert!(!live.join("journal").exists());

    // Sealed before any run was measured, and every run knows the seal.
    let seal: Value = json(&live.join("prediction.seal"));
    let mut measured = 0;
    for entry in fs::read_dir(live.join("measured")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            let run = json(&entry.path());
            assert!(run["began_unix_ns"].as_u64() > seal["sealed_unix_ns"].as_u64());
            assert_eq!(run["seal"], seal["blake3"]);
            assert!(run["rows"].as_array().unwrap().len() > 10, "{run}");
            measured += 1;
        }
    }
    assert_eq!(measured, 9, "three runs of A, B and the control");

    // Verdicts sum up.
    let judged: Value = serde_json::from_slice(&done.stdout).unwrap();
    let (mut rows, mut counted) = (0, 0);
    for setting in judged["settings"].as_array().unwrap() {
        let verdicts = setting["verdicts"].as_object().unwrap();
        let of_setting = setting["rows"].as_array().unwrap();
        for (verdict, count) in verdicts {
            let named = of_setting.iter().filter(|row| row["verdict"] == verdict.as_str()).count();
            assert_eq!(count.as_u64(), Some(named as u64), "{verdict}");
        }
        let sum: u64 = verdicts.values().filter_map(Value::as_u64).sum();
        assert_eq!(sum, of_setting.len() as u64);
        if setting["control"] == false {
            rows += of_setting.len() as u64;
        }
    }
    counted +=
        judged["verdicts"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(rows, counted, "the control does not count");
    assert!(rows > 10);
    let page = fs::read_to_string(live.join("index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("nice hogs=10"));

    // What was sealed is not changed.
    let prediction = live.join("prediction.json");
    let text = fs::read_to_string(&prediction).unwrap();
    fs::write(&prediction, text.replacen("1.", "2.", 1)).unwrap();
    let refused = run(folder.path(), &["live", "judge", "-o", "l"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("changed after it was sealed"), "{}", said(&refused));
    fs::write(&prediction, text).unwrap();
    let again = run(folder.path(), &["live", "predict", "-o", "l"]);
    assert!(said(&again).contains("a prediction comes before them"), "{}", said(&again));
    let judged = run(folder.path(), &["live", "judge", "-o", "l"]);
    assert!(judged.status.success(), "{}", said(&judged));
}

#[test]
fn steps_of_a_command_are_taken_apart_in_their_order() {
    let _alone = alone();
    if !can_record() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let step = |arguments: &[&str]| run(folder.path(), arguments);
    let work = ["--control", "", "--runs", "3", "--b", "cpus *=0", "--", "sh", "-c"];
    let script = "for i in 1 2 3; do ls / | cat; done > /dev/null";
    let mut first = vec!["live", "record", "-q"];
    first.extend(work);
    first.push(script);
    let recorded = step(&first);
    assert!(recorded.status.success(), "{}", said(&recorded));
    let early = step(&["live", "record", "-q"]);
    assert!(said(&early).contains("now `schedtwin live predict`"), "{}", said(&early));
    let unjudged = step(&["live", "judge"]);
    assert_eq!(unjudged.status.code(), Some(2), "{}", said(&unjudged));
    let twice = step(&first);
    assert!(said(&twice).contains("is planned already"), "{}", said(&twice));
    let predicted = step(&["live", "predict", "-q"]);
    assert!(predicted.status.success(), "{}", said(&predicted));
    let measured = step(&["live", "record", "-q"]);
    assert!(measured.status.success(), "{}", said(&measured));
    let judged = step(&["live", "judge"]);
    assert!(judged.status.success(), "{}", said(&judged));
    let text = said(&judged);
    assert!(text.contains("B: cpus *=0, predicted by replay"), "{text}");
    assert!(
        text.contains("ls sleeps") && text.contains("rule (fixed before any result)"),
        "{text}"
    );
}

#[test]
fn settings_go_back_when_a_command_ends_and_when_schedtwin_is_killed() {
    let _alone = alone();
    if !can_switch() {
        return;
    }
    if Path::new("/run/schedtwin/settings.journal").exists() {
        skipped("settings are applied to this machine already");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let was = knob();
    let other = if was == "4000" { "3000" } else { "4000" };
    let set = format!("cfs_bandwidth_slice_us={other}");
    let apply = ["settings", "apply", "--set", &set];
    let with = |more: &[&str]| run(folder.path(), &[&apply[..], more].concat());

    let script = with(&["--dry-run"]);
    assert!(script.status.success(), "{}", said(&script));
    assert!(said(&script).contains(&format!("echo {other} > {KNOB}")), "{}", said(&script));
    assert_eq!(knob(), was, "--dry-run changes nothing");

    let during = with(&["--", "cat", KNOB]);
    assert_eq!(String::from_utf8_lossy(&during.stdout).trim(), other, "{}", said(&during));
    assert_eq!(knob(), was);

    let kept = with(&[]);
    assert!(kept.status.success(), "{}", said(&kept));
    assert_eq!(knob(), other);
    assert!(said(&with(&[])).contains("settings undo"), "one journal at a time");
    let undone = run(folder.path(), &["settings", "undo"]);
    assert!(said(&undone).contains("1 changes are put back"), "{}", said(&undone));
    assert_eq!(knob(), was);
    assert!(said(&run(folder.path(), &["settings", "undo"])).contains("nothing is applied"));

    let mut killed =
        schedtwin().args(apply).args(["--", "sleep", "3"]).stdin(Stdio::null()).spawn().unwrap();
    wait_for(|| knob() == other);
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_for(|| knob() == was && !Path::new("/run/schedtwin/settings.journal").exists());
}

/// Waits for something that another process does; a machine may be busy.
fn wait_for(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not happen");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn wrong_settings_and_works_are_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mix.json"), MIX).unwrap();
    for (arguments, part) in [
        (&["live", "run", "-w", "mix.json"][..], "give at least one setting with --b"),
        (&["live", "run", "-w", "mix.json", "--b", "nice hgos=1"], "there are hogs, ui"),
        (&["live", "run", "-w", "mix.json", "--b", "nice hogs=99"], "-20 to 19"),
        (&["live", "run", "-w", "mix.json", "--b", "hzz=1"], "there is no setting `hzz`"),
        (&["live", "run", "--b", "nice a=1"], "a command behind --"),
        (&["live", "judge", "-o", "none"], "plan.json"),
        (&["settings", "apply", "--set", "nice a"], "nice THREADS=VALUE"),
        (&["settings", "apply", "linux-9.9", "--dry-run"], "there is no kernel"),
    ] {
        let refused = run(folder.path(), arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", said(&refused));
        assert!(said(&refused).contains(part), "{arguments:?}: {}", said(&refused));
    }
    let shown = run(folder.path(), &["settings", "show"]);
    assert!(said(&shown).contains("sched_rt_runtime_us"), "{}", said(&shown));
}

/// A folder of the controller `cpu` in which groups can be made.
fn groups() -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(PathBuf::from);
    let offers = |place: &PathBuf| {
        let v2 = fs::read_to_string(place.join("cgroup.controllers")).unwrap_or_default();
        place.join("cpu.shares").exists() || v2.split_whitespace().any(|word| word == "cpu")
    };
    let place = places.into_iter().find(offers)?;
    let probe = place.join(format!("schedtwin-probe-{}", std::process::id()));
    fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).ok()?;
    Some(place)
}

/// No thread of the work is needed to see what a machine refuses: a thread and a group of our own are.
#[test]
fn what_the_machine_refuses_is_told_at_once_before_anything_runs() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mix.json"), MIX).unwrap();
    let mut arguments = vec!["live", "run", "-q", "-w", "mix.json", "-o", "l"];
    for b in [
        "cpus hogs=0-250",
        "slice ui=1us; nice hogs=5",
        "timer_slack_ns=0",
        "hz=1000",
        "cpu.max /none/inner=1ms/10ms",
        "online=0-1; cpu.weight /schedtwin-a=1; cpu.weight /schedtwin-b=1",
    ] {
        arguments.extend(["--b", b]);
    }
    let refused = run(folder.path(), &arguments);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let said = said(&refused);
    for part in [
        "nothing was run",
        "cpus hogs=0-250: CPUs 0-250: ",
        "of them are online and in its cpuset",
        "slice ui=1us: the kernel did not take it",
        "a timer slack of 0 ns: the kernel made ",
        "hz: only another kernel changes it",
        "cpu.max /none/inner=1ms/10ms: ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("hogs=0-250").count(), 1, "{said}");
    for name in ["plan.json", "basis", "journal", "refused"] {
        assert!(!folder.path().join("l").join(name).exists(), "{name}");
    }
}

/// The work writes down where it is and what it has.
#[test]
fn groups_and_timer_slack_reach_the_work() {
    let _alone = alone();
    let Some(place) = groups() else {
        skipped("no cgroup can be made");
        return;
    };
    if !can_record() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = format!("schedtwin-test-{}", std::process::id());
    let cpuset = place.join("cgroup.controllers").exists().then(|| place.clone());
    let cpuset = cpuset.unwrap_or_else(|| "/sys/fs/cgroup/cpuset".into()).join(&name);
    let (max, shares) = match place.join("cgroup.controllers").exists() {
        true => ("cpu.max", "cpu.weight"),
        false => ("cpu.cfs_quota_us", "cpu.shares"),
    };
    let group = place.join(&name);
    let files = [group.join(max), group.join(shares), cpuset.join("cpuset.cpus")];
    let files = files.map(|path| path.display().to_string()).join(" ");
    let script = format!(
        "{{ tr '\\n' ' ' < /proc/self/cgroup; cat /proc/self/timerslack_ns; \
         grep Cpus_allowed_list /proc/self/status; cat {files}; echo end; }} >> seen 2> /dev/null"
    );
    let b = format!(
        "cpu.max /{name}=20ms/40ms; cpu.weight /{name}=50; cpuset.cpus /{name}=0; timer_slack_ns=777000"
    );
    let arguments = ["live", "run", "-q", "--runs", "3", "--control", "", "--b", &b, "--", "sh"];
    let done = run(folder.path(), &[&arguments[..], &["-c", &script]].concat());
    assert!(done.status.success(), "{}", said(&done));
    let seen = fs::read_to_string(folder.path().join("seen")).unwrap();
    let runs: Vec<&str> = seen.split("end\n").filter(|run| !run.is_empty()).collect();
    // The basis, and A and B in turns.
    assert_eq!(runs.len(), 9, "{seen}");
    for (at, run) in runs.iter().enumerate() {
        let is_b = at >= 3 && at % 2 == 0;
        assert_eq!(run.contains(&format!(":/{name}")), is_b, "{at}: {run}");
        assert_eq!(run.contains("\n777000\n") || run.contains(" 777000\n"), is_b, "{at}: {run}");
        let values: Vec<&str> = run.lines().skip_while(|line| !line.starts_with("Cpus")).collect();
        if is_b {
            let expected = match max {
                "cpu.max" => ["Cpus_allowed_list:\t0", "20000 40000", "50", "0"],
                _ => ["Cpus_allowed_list:\t0", "20000", "512", "0"],
            };
            assert_eq!(values, expected, "{at}");
        } else {
            assert_eq!(values.len(), 1, "{at}: {run}");
        }
    }
    assert!(!group.exists() && !cpuset.exists(), "the groups are removed");
}

/// No figure of a setting is judged under which the work ended otherwise than without it.
#[test]
fn a_setting_that_ends_the_work_is_not_judged() {
    let _alone = alone();
    if !can_record() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["live", "run", "--json", "--runs", "3", "--control", ""];
    let own = nice();
    let other = if own == "7" { "nice *=8" } else { "nice *=7" };
    for b in [other, "cpus *=0"] {
        arguments.extend(["--b", b]);
    }
    // It fails with another nice value than it is started with.
    let script = format!("test $(nice) = {own}; exit $?");
    arguments.extend(["--", "sh", "-c", &script]);
    let done = run(folder.path(), &arguments);
    assert!(done.status.success(), "{}", said(&done));
    let judged: Value = serde_json::from_slice(&done.stdout).unwrap();
    let why = |at: usize| judged["settings"][at]["not_judged"].as_str();
    let said = why(0).unwrap_or_else(|| panic!("{judged:#}"));
    assert!(said.contains("the work ended with exit status: 1, as never in the basis"), "{said}");
    assert_eq!(why(1), None);
    let rows = |at: usize| judged["settings"][at]["rows"].as_array().unwrap().len();
    assert_eq!(rows(0), 0);
    assert!(rows(1) > 0);
    let counted: u64 =
        judged["verdicts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(counted, rows(1) as u64);
}

/// The nice value that programs started from here have.
fn nice() -> String {
    let output = Command::new("nice").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A second of work. Releases of rt-app differ in what `loop` means without phases, so these go on until the end.
const SECOND: &str = r#"{ "global": { "duration": 1 }, "tasks": {
    "ui": { "loop": -1, "run": 1000, "timer": { "ref": "unique", "period": 8000 } },
    "hogs": { "loop": -1, "run": 4000, "sleep": 1000 } } }"#;

/// rt-app and the runner of schedtwin do the same: threads of the same classes, with as much work between two sleeps.
#[test]
fn rt_app_and_the_runner_agree() {
    let _alone = alone();
    if !can_record() {
        return;
    }
    // rt-app calibrates until two loops take the same time, which may be never while others work.
    if std::env::var_os("SCHEDTWIN_MACHINE_IS_QUIET").is_none() {
        skipped("rt-app calibrates on a quiet machine only: set SCHEDTWIN_MACHINE_IS_QUIET");
        return;
    }
    if Command::new("rt-app").arg("--help").output().is_err() {
        skipped("there is no rt-app");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("second.json"), SECOND).unwrap();
    let mut work = Vec::new();
    for runner in ["schedtwin", "rt-app"] {
        let mut arguments = vec!["live", "record", "-q", "-w", "second.json", "--runs", "3"];
        arguments.extend(["--b", "nice hogs=1", "--runner", runner, "-o", runner]);
        let recorded = run(folder.path(), &arguments);
        assert!(recorded.status.success(), "{}", said(&recorded));
        let basis = json(&folder.path().join(runner).join("basis/00.json"));
        let of = |class: &str, metric: &str| {
            let rows = basis["rows"].as_array().unwrap().iter();
            let mut found = rows.filter(|row| row[0] == class && row[1] == metric);
            let found = found.next();
            let row = found.unwrap_or_else(|| panic!("{runner}, {class} {metric}: {basis:#}"));
            row[3].as_f64().unwrap()
        };
        work.push(["ui", "hogs"].map(|class| of(class, "cpu_time") / of(class, "sleeps")));
    }
    for (own, other) in work[0].iter().zip(work[1]) {
        assert!((own / other).max(other / own) < 1.5, "ms of CPU time for each sleep: {work:?}");
    }
}
