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
    // A trace has no decisions to lose.
    let done = schedtwin(&["convert", &path("direct.pftrace"), &path("back.jsonl")]);
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(fs::read_to_string(path("back.jsonl")).unwrap().starts_with('{'));
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
        ("trace.txt", "old.pftrace", "it is neither a record (`run --record"),
        ("trace.dat", "old.txt", "`schedtwin replay` reads as it is"),
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
