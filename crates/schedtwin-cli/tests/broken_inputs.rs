// SPDX-License-Identifier: GPL-2.0-or-later
//! Inputs that were once refused, emptied, misread or wrongly trusted: those of `../shared/broken-inputs`, each with what is right for
//! it. Without that folder the test is skipped. Others of each kind are in the tests of the readers.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/broken-inputs");
    if !folder.is_dir() {
        println!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

/// The exit code, and what is printed on both streams with spaces for line breaks.
fn told(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_schedtwin"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary starts");
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(both).expect("it prints UTF-8");
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.code(), words.join(" "))
}

/// File, exit code, what is told, and what is not.
const TRACES: [(&str, i32, &[&str], &[&str]); 17] = [
    ("trust-one-switch.txt", 0, &["trust: not judged: all rows (too little is recorded)"], &[]),
    (
        "trust-contradictions.txt",
        0,
        &["240 events, 0 of them not used", "100.0% of the recorded CPU time"],
        &["events contradict", "may be compared"],
    ),
    ("late-buffer.txt", 0, &["the buffer of CPU 1 begins later than others: 127 events"], &[]),
    ("suspended.txt", 0, &["suspended (1 times, 599.999 s together)"], &["601."]),
    (
        "release-5.10.pftrace",
        0,
        &["nearest built-in kernel linux-5.10", "vendors of phones put schedulers of their own"],
        &["linux-4.7"],
    ),
    ("cpu1024.txt", 2, &["40 events of CPUs from 1024 on", "record fewer"], &[]),
    // Its one frame is over before the recording begins: it is read as one all the same.
    ("marker-0.txt", 0, &["32 events, 1 of them not used"], &[]),
    ("prev_state_hex.txt", 0, &["events, 0 of them not used"], &[]),
    ("idle-minus-1.txt", 0, &["0 of them not used"], &[]),
    ("fields-option.txt", 0, &["0 of them not used"], &[]),
    ("latency-format.txt", 0, &["0 of them not used"], &[]),
    ("cut-with-newline.txt", 0, &["29 events", "last line cut short and left out: 1"], &[]),
    ("cut.pftrace", 0, &["the file is cut in the middle of an event", "lacks 37 of"], &[]),
    ("bugreport.zip", 0, &["0 of them not used"], &["no sched_switch"]),
    ("chrome-system-trace.json", 0, &["recorded CPU time"], &["no sched_switch"]),
    ("two-machines.pftrace", 0, &["recorded CPU time"], &["events contradict"]),
    ("ansi.txt", 0, &["recorded CPU time"], &["\u{1b}", "\u{7}"]),
];

#[test]
fn each_trace_is_read_or_refused_as_is_right_for_it() {
    let Some(folder) = folder() else { return };
    for (file, code, has, has_not) in TRACES {
        let arguments = ["replay", file, "-m", "pixel6", "-k", "linux-7.3-gki", "-n", "1", "-q"];
        let (status, text) = told(&arguments, &folder);
        assert_eq!(status, Some(code), "{file}: {text}");
        for words in has {
            assert!(text.contains(words), "{file} does not tell `{words}`: {text}");
        }
        for words in has_not {
            assert!(!text.contains(words), "{file} tells `{words}`: {text}");
        }
    }
}

#[test]
fn each_workload_runs() {
    let Some(folder) = folder() else { return };
    let run = |machine: &str, file: &str, metric: &str| {
        let arguments =
            ["run", "-m", machine, "-w", file, "-k", "linux-7.3", "--duration", "200ms", "-q"];
        let (status, text) = told(&[&arguments[..], &["--metric", metric]].concat(), &folder);
        assert_eq!(status, Some(0), "{file}: {text}");
        let number =
            text.split(&format!(" {metric} ")).nth(1).and_then(|rest| rest.split(' ').next());
        number
            .and_then(|number| number.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("{file}: {text}"))
    };
    assert!(run("pixel6", "resources-0.json", "throughput") > 0.0);
    assert!(run("pixel6", "contention.json", "contention") <= 100.0);
    for file in ["pair.json", "pair2.json", "live-mix.json"] {
        assert!(run("laptop-8c16t", file, "throughput") > 0.0);
    }
    assert!(run("flatcg-m.toml", "flatcg.json", "throughput") > 0.0);
}

/// Schedulers of Linux 7.3 that crashed with these workloads. They need its tree, as other tests of C do.
#[test]
fn schedulers_that_crashed_run() {
    let Some(folder) = folder() else { return };
    let Some(tree) = std::env::var_os("SCHEDTWIN_KERNEL_TREE_7_3") else {
        println!("skipped: SCHEDTWIN_KERNEL_TREE_7_3 names no tree");
        return;
    };
    for (machine, file, scheduler) in [
        ("laptop-8c16t", "pair.json", "scx_pair"),
        ("laptop-8c16t", "pair2.json", "scx_pair"),
        ("flatcg-m.toml", "flatcg.json", "scx_flatcg"),
    ] {
        let path = Path::new(&tree).join(format!("tools/sched_ext/{scheduler}.bpf.c"));
        let kernel = format!("linux-7.3:scx={}", path.display());
        let arguments =
            ["run", "-m", machine, "-w", file, "-k", &kernel, "--duration", "100ms", "-q"];
        let (status, text) = told(&arguments, &folder);
        // An unload with its reason is a result, too.
        assert!(matches!(status, Some(0 | 1)) && text.contains("simulated"), "{file}: {text}");
    }
}
