// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever a user names, the answer is a scenario or faults that say where, never a panic.
//!
//! The readers' own tests check every message; here is what a user meets: all three inputs at once.

use crate::scenarios::{KERNEL, MS, SECOND};
use schedtwin_engine::{RunOptions, Scenario};
use schedtwin_types::Ns;
use std::path::{Path, PathBuf};

/// The files that the built-in machines, kernels and workloads are made of.
fn our_files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Writes a file for a test and names it.
fn file(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn faults_say_what_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let here = folder.to_string_lossy().into_owned();
    let empty = file(folder, "empty.toml", b"");
    let empty_json = file(folder, "empty.json", b"");
    let binary = file(folder, "binary.toml", b"name = \0\xff\xfe");
    let binary_json = file(folder, "binary.json", b"\x7fELF\x02\x01\x01\0\0");
    let machine = std::fs::read_to_string(&our_files("machines")[0]).unwrap();
    let half = file(folder, "half.toml", &machine.as_bytes()[..machine.len() / 2]);
    let half_json = file(folder, "half.json", br#"{ "tasks": { "a": { "run": 10, "#);
    let forever = br#"{ "global": { "duration": 1000001 }, "tasks": { "a": { "run": 10 } } }"#;
    let forever = file(folder, "forever.json", forever);
    let missing = format!("{here}/missing.toml");
    let missing_json = format!("{here}/missing.json");

    // (machine, kernel, workload, duration, parts of the faults in their order)
    type Case<'a> = (&'a str, &'a str, &'a str, Option<Ns>, &'a [&'a str]);
    let cases: &[Case] = &[
        ("", KERNEL, "w1", None, &["<command line>:1:1: a name is missing"]),
        (
            "pixel7",
            KERNEL,
            "w1",
            None,
            &["<command line>:1:1: there is no machine `pixel7`", "`pixel6`"],
        ),
        (
            "uniform8",
            "linux-6.20",
            "w1",
            None,
            &["<command line>:1:1: there is no kernel `linux-6.20`"],
        ),
        ("uniform8", KERNEL, "w2", None, &["<command line>:1:1: unknown workload \"w2\"", "w1"]),
        ("uniform8", KERNEL, "", None, &["<command line>:1:1: unknown workload"]),
        (
            "uniform8",
            KERNEL,
            "w1 -f 3",
            None,
            &["<command line>:1:4: workload \"w1\" has no option \"-f\""],
        ),
        // All three at once.
        (
            "pixle6",
            "linux-6.20",
            "w",
            None,
            &["no machine `pixle6`", "no kernel `linux-6.20`", "workload \"w\""],
        ),
        (
            "uniform8:colour=3",
            KERNEL,
            "w1",
            None,
            &["<command line>:1:10: there is no setting `colour`"],
        ),
        (
            "uniform8",
            "linux-6.12:hz=0",
            "w1",
            None,
            &["<command line>:1:15: `hz` is 0, outside 24..=10000"],
        ),
        ("uniform8", "linux-6.12:hz=-250", "w1", None, &["<command line>:1:15: "]),
        ("uniform8", "linux-6.12:hz=99999999999999999999", "w1", None, &["<command line>:1:15: "]),
        (
            "uniform8",
            "linux-6.12:features.slis=true",
            "w1",
            None,
            &["<command line>:1:21: there is no setting `slis`"],
        ),
        (
            "uniform8",
            "linux-6.12:cpufreq=fast",
            "w1",
            None,
            &["<command line>:1:20: `cpufreq` cannot be `fast`"],
        ),
        (
            "uniform8",
            "linux-6.12+fast",
            "w1",
            None,
            &["<command line>:1:12: there is no patch `fast`"],
        ),
        ("uniform8", "linux-6.12:", "w1", None, &["<command line>:1:12: a setting is missing"]),
        ("uniform8:=", KERNEL, "w1", None, &["<command line>:1:10: "]),
        (
            "uniform8:cpu.all.capacity=0",
            KERNEL,
            "w1",
            None,
            &["<command line>:1:27: capacity 0 is not within 1 to 1024"],
        ),
        (
            "uniform8:cpu.all.capacity=1025",
            KERNEL,
            "w1",
            None,
            &["<command line>:1:27: capacity 1025"],
        ),
        (
            "uniform8:domain.all.opp[1].khz=400_000",
            KERNEL,
            "w1",
            None,
            &["400000 kHz after 500000 kHz"],
        ),
        ("uniform8:domain.all.opp[9].khz=400_000", KERNEL, "w1", None, &["<command line>:1:24: "]),
        ("uniform8:ns_per_loop=0", KERNEL, "w1", None, &["<command line>:1:22: "]),
        (
            "uniform8:path_costs.percent=20000",
            KERNEL,
            "w1",
            None,
            &["<command line>:1:29: more than 10000 percent"],
        ),
        (
            &here,
            &here,
            &here,
            None,
            &["is a directory, not a file", "is a directory, not a file", "it is a directory"],
        ),
        (
            &missing,
            &missing,
            &missing_json,
            None,
            &["missing.toml: there is no such file", "missing.toml: there is", "missing.json"],
        ),
        (
            &empty,
            &empty,
            &empty_json,
            None,
            &["empty.toml: is empty", "empty.toml: is empty", "empty.json:1:1: the file is empty"],
        ),
        (
            &binary,
            &binary,
            &binary_json,
            None,
            &[
                "binary.toml: is binary",
                "binary.toml: is binary",
                "binary.json:1:8: not an rt-app file",
            ],
        ),
        (&half, KERNEL, &half_json, None, &["half.toml:", "half.json:1:"]),
        ("uniform8", KERNEL, "w1", Some(0), &["a run lasts longer than 0 s"]),
        ("uniform8", KERNEL, "w1", Some(Ns::MAX), &["a run lasts at most "]),
        (
            "uniform8",
            KERNEL,
            &forever,
            None,
            &["forever.json:1:27: \"duration\" is 1000001, outside"],
        ),
    ];
    let mut wrong = Vec::new();
    for (machine, kernel, workload, duration, parts) in cases {
        let told = match Scenario::new(machine, kernel, workload, *duration) {
            Ok(_) => "it was taken".to_string(),
            Err(faults) => {
                assert!(!faults.render(false).is_empty() && !faults.render(true).is_empty());
                faults.to_string()
            }
        };
        let mut rest = told.as_str();
        for part in *parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => {
                    wrong.push(format!("{machine} {kernel} {workload}: no {part:?} in\n{told}"));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What is taken for good must also run.
fn try_out(machine: &str, kernel: &str, workload: &str) -> bool {
    let Ok(scenario) = Scenario::new(machine, kernel, workload, Some(10 * MS)) else {
        return false;
    };
    let result = scenario.run(1, RunOptions::default()).unwrap();
    // Threads that do not end are cut after a grace time.
    assert!(result.simulated_ns <= 11 * SECOND);
    true
}

/// Whether a file of these bytes is taken, and then runs.
type Taken<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Runs `changed` for each of our files in the place of the built-in one.
fn in_its_place(changed: &mut dyn FnMut(&str, &[u8], Taken)) {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["machines", "kernels", "workloads"] {
        for path in our_files(kind) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let content = std::fs::read(&path).unwrap();
            let run = |bytes: &[u8]| {
                let spec = file(folder.path(), &name, bytes);
                match kind {
                    // It names no CPU that a smaller machine has not.
                    "machines" => try_out(&spec, KERNEL, "w1"),
                    "kernels" => try_out("pixel6", &spec, "ui-phone"),
                    _ => try_out("uniform8", KERNEL, &spec),
                }
            };
            if String::from_utf8_lossy(&content).contains("polling = true") && !run(&content) {
                eprintln!("skipped: {name} polls, which the twin does not yet");
                continue;
            }
            assert!(run(&content), "{name} is good as it is");
            changed(&name, &content, &run);
        }
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    in_its_place(&mut |name, content, run| {
        // A part of a file that says what differs from another may be such a file, too: those are cut when they are whole.
        let resolved = String::from_utf8_lossy(content).contains("\nextends = ").then(|| {
            let kernel = name.strip_suffix(".toml").expect("a kernel file");
            schedtwin_engine::kernel_as_file(kernel).expect("a built-in kernel").into_bytes()
        });
        let content = resolved.as_deref().unwrap_or(content);
        // What stands before the last closing bracket or value is not a whole file.
        let whole = content.trim_ascii_end().len();
        for step in 0..40 {
            let cut = whole * step / 40;
            // A kernel or a machine may be cut in a comment at its very end.
            assert!(!run(&content[..cut]), "{name} cut to {cut} of {whole} bytes was taken");
        }
    });
}

/// Random bytes over random places: a number that is another one, a bracket that is gone, a word
/// that is none. Most are refused; those that are not must run.
#[test]
fn a_file_that_was_damaged_does_no_harm() {
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut taken, mut refused) = (0, 0);
    in_its_place(&mut |_, content, run| {
        for _ in 0..120 {
            let mut bytes = content.to_vec();
            for _ in 0..1 + draw(3) {
                let at = draw(bytes.len());
                let with = b"0123456789-.,:[]{}\"=#\n_ae\0\xff"[draw(27)];
                match draw(3) {
                    0 => bytes[at] = with,
                    1 => bytes.insert(at, with),
                    _ => drop(bytes.remove(at)),
                }
            }
            if run(&bytes) { taken += 1 } else { refused += 1 }
        }
    });
    assert!(taken > 50 && refused > 50, "both happen: {taken} {refused}");
}
