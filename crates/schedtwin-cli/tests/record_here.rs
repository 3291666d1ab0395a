// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin record` on this machine: what it writes is read by trace-cmd and by us alike, and tracefs is left as it was.
//!
//! Recording needs root and a mounted tracefs; where these are not, a test says so and passes.

use schedtwin_trace::event::{TraceEventKind, TraceSource};
use schedtwin_trace::sources;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// Instances are looked at: one recording at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The top of tracefs, if recording is possible here.
fn tracefs() -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
    let usable = |place: &PathBuf| {
        place.join("instances").exists()
            && fs::OpenOptions::new().write(true).open(place.join("tracing_on")).is_ok()
    };
    let place = places.into_iter().find(usable);
    if place.is_none() {
        eprintln!("SKIPPED: recording needs root and a mounted tracefs");
    }
    Some((place?, guard))
}

fn record(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.args(["record", "--bare", "-o"]).arg(file).args(arguments).output().unwrap()
}

/// Instances of recorders that are gone: another one may be at work on this machine.
fn instances(tracefs: &Path) -> Vec<String> {
    let entries = fs::read_dir(tracefs.join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let left = |name: &String| {
        name.strip_prefix("schedtwin-").is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    names.filter(left).collect()
}

fn counted(file: &Path) -> (BTreeMap<String, u64>, Box<dyn TraceSource>) {
    let mut source = sources::open(file).unwrap();
    let mut own_switches = 0;
    while let Some(event) = source.next_event().unwrap() {
        own_switches += u64::from(matches!(event.kind, TraceEventKind::Switch { .. }));
    }
    assert!(own_switches > 0);
    assert_eq!(source.report().damage_count, 0, "{:?}", source.report().damages);
    let counts = source.report().counts(source.names());
    (counts.map(|(name, count)| (name.to_owned(), count.events)).collect(), source)
}

const WORK: &str = "for i in 1 2 3 4; do ls / | cat; done > /dev/null";

#[test]
fn a_recording_holds_events_threads_and_notes_and_trace_cmd_reads_the_same() {
    let Some((tracefs, _guard)) = tracefs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.dat");
    let done = record(&["--", "sh", "-c", WORK], &file);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (counts, source) = counted(&file);
    assert!(counts["sched_process_fork"] >= 8, "{counts:?}");
    let header = source.header();
    assert!(header.tool.as_ref().unwrap().starts_with("schedtwin "));
    let own = header.threads.iter().find(|thread| thread.pid == std::process::id()).unwrap();
    assert!(own.affinity.is_some() && own.policy.is_some() && own.nice.is_some());
    let noted =
        |name: &str| header.options.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert_eq!(noted("records"), counts.values().sum::<u64>().to_string());
    // The ping-pong that measures an event's cost came before, and is not in it.
    assert!(counts["sched_switch"] < 5000, "{counts:?}");
    assert_eq!(noted("command_ended"), "exit status: 0");
    assert_eq!(instances(&tracefs), [""; 0]);
    let report = Command::new("trace-cmd").args(["report", "-R", "-i"]).arg(&file).output();
    let Ok(report) = report else {
        eprintln!("SKIPPED: there is no trace-cmd");
        return;
    };
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    for (name, count) in &counts {
        let mark = format!(": {name}:");
        let lines = report.lines().filter(|line| line.contains(&mark)).count() as u64;
        assert_eq!(lines, *count, "{name}");
    }
}

#[test]
fn a_signal_ends_a_recording_with_its_file_and_a_kill_leaves_what_the_next_one_removes() {
    let Some((tracefs, _guard)) = tracefs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.dat");
    for signal in ["INT", "TERM", "HUP"] {
        let done = record(
            &["--", "sh", "-c", &format!("{WORK}; kill -{signal} $PPID; exec sleep 60")],
            &file,
        );
        assert!(done.status.success(), "{signal}: {}", String::from_utf8_lossy(&done.stderr));
        counted(&file);
        assert_eq!(instances(&tracefs), [""; 0], "{signal}");
        fs::remove_file(&file).unwrap();
    }
    let killed = record(&["--", "sh", "-c", "kill -KILL $PPID"], &file);
    assert_eq!(killed.status.signal(), Some(9));
    assert_eq!(instances(&tracefs).len(), 1);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing half-written is left");
    let next = record(&["--duration", "1ms"], &file);
    let told = String::from_utf8_lossy(&next.stderr).into_owned();
    assert!(told.contains("of a recorder that was killed"), "{told}");
    assert_eq!(instances(&tracefs), [""; 0]);
}

#[test]
fn what_cannot_be_recorded_is_refused_and_leaves_nothing() {
    let Some((tracefs, _guard)) = tracefs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.dat");
    for (arguments, message) in [
        (
            &["--event", "sched"][..],
            "--event sched: an event is written SYSTEM:NAME, as sched:sched_stat_runtime",
        ),
        (&["--event", "no:such"], "--event no:such: this kernel has no such event"),
        (&["--event", "..:tracing_on"], "--event ..:tracing_on: this kernel has no such event"),
        (&["--", "/no/such/program"], "failed to run /no/such/program: "),
    ] {
        let refused = record(arguments, &file);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains(message), "{told}");
        assert_eq!(instances(&tracefs), [""; 0]);
        assert!(!file.exists());
    }
}
