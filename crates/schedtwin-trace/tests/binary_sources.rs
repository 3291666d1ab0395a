// SPDX-License-Identifier: GPL-2.0-or-later
//! Binary recordings, counted by the tool whose format it is and by our reader: the same events of each name.
//!
//! The recordings are those of `../shared/traces`, and what the tools make of them. A test whose tool or recording is
//! not there says so and passes: nothing was compared.

use schedtwin_trace::event::{TraceEventKind, TraceSource};
use schedtwin_trace::perf_data::PerfData;
use schedtwin_trace::trace_dat::TraceDat;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Counts = BTreeMap<String, u64>;

fn shared() -> PathBuf {
    let given = std::env::var_os("SCHEDTWIN_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    given.unwrap_or(beside).join("traces")
}

/// Whether a tool can be run; says so if not.
fn there_is(tool: &str) -> bool {
    let found =
        Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("SKIPPED: there is no {tool}");
    }
    found.is_ok()
}

/// What a tool prints of a recording. None if the tool fails or prints nothing, which it then says: that is no matter of
/// our reader, and nothing can be compared.
fn output(tool: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let output = Command::new(tool).args(arguments).arg(path).output().unwrap();
    let said = output.status.success() && !output.stdout.is_empty();
    if !said {
        let error = String::from_utf8_lossy(&output.stderr);
        eprintln!("SKIPPED {}: {tool} ended with {}: {error}", path.display(), output.status);
    }
    said.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The events of each name, as a source counts them; its events are read to the end.
fn counted(source: &mut dyn TraceSource) -> Counts {
    let mut events = 0;
    let mut latest = 0;
    while let Some(event) = source.next_event().unwrap() {
        assert!(event.at >= latest, "{} after {latest}", event.at);
        latest = event.at;
        events += u64::from(!matches!(event.kind, TraceEventKind::Lost { .. }));
    }
    let counts: Counts = source
        .report()
        .counts(source.names())
        .map(|(name, count)| (name.to_owned(), count.events))
        .collect();
    assert_eq!(events, counts.values().sum::<u64>(), "each event is handed out and counted once");
    assert_eq!(source.report().damage_count, 0, "{:?}", source.report().damages);
    counts
}

/// The events of each name in the text of `trace-cmd report`.
fn of_report(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        // `TASK-PID [CPU] TIME: NAME: ...`: the time is the first word that ends in a colon behind the CPU.
        let Some((_, behind_cpu)) = line.split_once("] ").or_else(|| line.split_once("]\t")) else {
            continue;
        };
        let mut words = behind_cpu.split_whitespace();
        let is_time = |word: &&str| {
            word.ends_with(':')
                && word.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit() || b == b'.')
        };
        if words.by_ref().take(2).any(|word| is_time(&word)) {
            let name = words.next().unwrap_or("").trim_end_matches(':');
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn unpacked(folder: &Path, path: &Path) -> PathBuf {
    let to = folder.join(path.file_stem().unwrap());
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(File::open(path).unwrap(), true).read_to_end(&mut bytes).unwrap();
    fs::write(&to, bytes).unwrap();
    to
}

fn packed_recordings() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(shared()) else {
        eprintln!("SKIPPED: there is no {}", shared().display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(".dat.xz")));
    paths.sort();
    paths
}

#[test]
fn trace_dat_has_the_events_that_trace_cmd_reports_in_each_version_and_packing() {
    if !there_is("trace-cmd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for packed in packed_recordings() {
        let path = unpacked(folder.path(), &packed);
        let Some(report) = output("trace-cmd", &["report", "-R", "-i"], &path) else {
            continue;
        };
        let expected = of_report(&report);
        let head: Vec<_> = report.lines().take(5).collect();
        if expected.is_empty() {
            eprintln!("SKIPPED {}: trace-cmd shows no event: {head:#?}", path.display());
            continue;
        }
        assert!(expected.values().sum::<u64>() > 1000, "{expected:?} in {head:#?}");
        let mut versions = vec![path.clone()];
        for (version, packing) in [("6", "none"), ("7", "none"), ("7", "zstd"), ("7", "zlib")] {
            let to = folder.path().join(format!("{version}-{packing}.dat"));
            let converted = Command::new("trace-cmd")
                .args(["convert", "--file-version", version, "--compression", packing, "-i"])
                .arg(&path)
                .arg("-o")
                .arg(&to)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            // Version 6 has no packing, and a build may lack zlib.
            if converted.is_ok_and(|status| status.success()) && to.exists() {
                versions.push(to);
            }
        }
        assert!(versions.len() >= 3, "trace-cmd converts to both versions: {versions:?}");
        for version in versions {
            let mut source = TraceDat::open(File::open(&version).unwrap()).unwrap();
            assert_eq!(counted(&mut source), expected, "{}", version.display());
            fs::remove_file(&version).unwrap();
        }
    }
}

/// The samples of each event in the output of `perf script -F event`; the system's name is left off.
fn of_script(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let event = line.trim().trim_end_matches(':');
        if let Some((_, name)) = event.split_once(':') {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn perf_data_has_the_events_that_perf_prints_plain_packed_and_from_a_pipe() {
    if !there_is("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let events = [
        "sched:sched_switch",
        "sched:sched_waking",
        "sched:sched_process_fork",
        "sched:sched_stat_runtime",
    ];
    for (name, options) in [("plain", &[][..]), ("packed", &["-z"]), ("pipe", &["-o", "-"])] {
        let path = folder.path().join(name);
        let mut perf = Command::new("perf");
        perf.args(["record", "-a", "-c", "1", "-m", "1024"]).stderr(Stdio::null());
        for event in events {
            perf.args(["-e", event]);
        }
        perf.args(options);
        if name == "pipe" {
            perf.stdout(File::create(&path).unwrap());
        } else {
            perf.arg("-o").arg(&path).stdout(Stdio::null());
        }
        // Something that forks, wakes and sleeps.
        let recorded = perf
            .args(["--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do ls / | cat; done > /dev/null"])
            .status();
        if !recorded.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED {name}: perf cannot record here");
            continue;
        }
        let Some(script) = output("perf", &["script", "-F", "event", "-i"], &path) else {
            continue;
        };
        let expected = of_script(&script);
        assert!(
            expected.get("sched_switch").is_some_and(|count| *count > 10),
            "{name}: {expected:?}"
        );
        let mut source = PerfData::open(File::open(&path).unwrap()).unwrap();
        let mut counts = counted(&mut source);
        // perf's own records are no samples.
        counts.retain(|event, _| !event.starts_with("PERF_RECORD_"));
        assert_eq!(counts, expected, "{name}");
    }
}
