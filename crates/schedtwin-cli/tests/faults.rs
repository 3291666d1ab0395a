// SPDX-License-Identifier: GPL-2.0-or-later
//! Faults of the world around, through the binary: nothing computed is lost, nothing half-written remains.
//!
//! | fault | what must be |
//! |---|---|
//! | killed at each call that changes a file | each result is absent or whole; the same command again makes it, and nothing else is left |
//! | a disk that is full from some write on | exit code 2, a message that names the file or the journal, no half of a result |
//! | one CPU, little memory | the same bytes |
//! | a folder that takes no file | exit code 2 before anything is computed |
//! | two processes on one sweep | one does it, the other says so |
//!
//! The first two need `strace`, which makes calls fail; without it they are skipped by name.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCHEDTWIN: &str = env!("CARGO_BIN_EXE_schedtwin");

/// The calls that write, replace or remove a file.
const CHANGES: &str = "write,rename,renameat,renameat2,unlink,unlinkat,ftruncate";

/// More calls than any of the commands makes.
const MOST_CALLS: u32 = 400;

/// Commands that write files, and the files.
const WRITERS: [(&str, &[&str]); 8] = [
    ("run -m uniform8 -k linux-6.12 -w w1 --duration 10ms -q --record a.rec", &["a.rec"]),
    ("run -m uniform8 -k linux-6.12 -w w1 --duration 10ms -q --record a.jsonl", &["a.jsonl"]),
    (
        "run -m uniform8 -k linux-6.12 -w w1 --duration 10ms -q --trace a.txt --html a.html",
        &["a.txt", "a.html"],
    ),
    ("run -m uniform8 -k linux-6.12 -w w1 --duration 10ms -q --trace a.pftrace", &["a.pftrace"]),
    (
        "compare -m uniform8 -k linux-6.12 -k linux-6.12:hz=100 -w w1 --duration 10ms -n 2 -q --html c.html",
        &["c.html"],
    ),
    (
        "sweep -m uniform8 -k linux-6.12:hz={100,250} -w w1 --duration 10ms -n 2 -q --threads 1 -o s.csv",
        &["s.csv"],
    ),
    ("convert input.rec b.txt", &["b.txt"]),
    ("convert input.rec b.jsonl", &["b.jsonl"]),
];

fn schedtwin(folder: &Path, arguments: &str) -> Output {
    Command::new(SCHEDTWIN)
        .current_dir(folder)
        .args(arguments.split(' '))
        .output()
        .expect("the binary starts")
}

/// As [`schedtwin`], with what `inject` says done to its calls.
fn with_fault(folder: &Path, arguments: &str, inject: &str) -> Output {
    Command::new("strace")
        .current_dir(folder)
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={inject}"), SCHEDTWIN])
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .expect("strace starts")
}

fn has_strace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EPERM", "true"])
        .status();
    let has = tried.is_ok_and(|status| status.success());
    if !has {
        eprintln!("skipped: strace is not there, or may not trace");
    }
    has
}

/// A folder with the input of `convert`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let made = schedtwin(
        folder.path(),
        "run -m uniform8 -k linux-6.12 -w w1 --duration 10ms -q --record input.rec",
    );
    assert!(made.status.success(), "{made:?}");
    folder
}

/// What each file holds after the command.
fn whole(arguments: &str, files: &[&str]) -> Vec<Vec<u8>> {
    let folder = folder();
    let output = schedtwin(folder.path(), arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    files.iter().map(|file| fs::read(folder.path().join(file)).expect("written")).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("Unicode"))
        .filter(|name| name != "input.rec")
        .collect();
    names.sort();
    names
}

/// No file holds half of what it should.
fn absent_or_whole(folder: &Path, files: &[&str], expected: &[Vec<u8>], when: &str) {
    for (file, expected) in files.iter().zip(expected) {
        if let Ok(bytes) = fs::read(folder.join(file)) {
            assert!(bytes == *expected, "half of {file}: {when}");
        }
    }
}

#[test]
fn killed_at_each_change_of_a_file() {
    if !has_strace() {
        return;
    }
    for (arguments, files) in WRITERS {
        let expected = whole(arguments, files);
        let mut kills = 0;
        for at in 1..MOST_CALLS {
            let folder = folder();
            let folder = folder.path();
            let fault = format!("{CHANGES}:signal=KILL:when={at}");
            let output = with_fault(folder, arguments, &fault);
            absent_or_whole(folder, files, &expected, &format!("{arguments}: call {at}"));
            if output.status.success() {
                break;
            }
            kills += 1;
            // Again: it makes what was to be made, and takes away what the killed one left.
            let again = schedtwin(folder, arguments);
            assert!(again.status.success(), "{arguments}: {again:?}");
            for (file, expected) in files.iter().zip(&expected) {
                let bytes = fs::read(folder.join(file)).expect("written");
                assert!(bytes == *expected, "{arguments}: {file} after call {at} and again");
            }
            assert_eq!(names(folder), sorted(files), "{arguments}: after call {at} and again");
        }
        assert!((2..MOST_CALLS - 1).contains(&kills), "{arguments}: killed {kills} times");
    }
}

fn sorted(files: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = files.iter().map(|file| file.to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_disk_that_is_full_from_some_write_on() {
    if !has_strace() {
        return;
    }
    for (arguments, files) in WRITERS {
        let expected = whole(arguments, files);
        let (mut failures, mut told_any) = (0, false);
        for at in 1..MOST_CALLS {
            let folder = folder();
            let folder = folder.path();
            let output = with_fault(folder, arguments, &format!("write:error=ENOSPC:when={at}"));
            if output.status.success() {
                break;
            }
            failures += 1;
            let told = String::from_utf8(output.stderr).expect("text");
            assert_eq!(output.status.code(), Some(2), "{arguments}: write {at}: {told}");
            // Calls are counted by thread, so a message may fail as the file did.
            let named = files.iter().any(|file| told.contains(file)) || told.contains("stdout");
            let clear = named && told.contains("No space left");
            assert!(clear || told.is_empty(), "{arguments}: write {at}: {told}");
            told_any |= clear;
            absent_or_whole(folder, files, &expected, &format!("{arguments}: write {at}"));
            assert!(
                names(folder).iter().all(|name| !name.ends_with(".partial")),
                "{arguments}: write {at} leaves {:?}",
                names(folder)
            );
        }
        assert!((1..MOST_CALLS - 1).contains(&failures), "{arguments}: failed {failures} times");
        assert!(told_any, "{arguments}: nothing was told");
    }
}

/// A CPU and a third of a gigabyte of addresses are enough for each of the commands.
#[test]
fn one_cpu_and_little_memory() {
    for (arguments, files) in WRITERS {
        let expected = whole(arguments, files);
        let folder = folder();
        let shell = format!("ulimit -v 350000; exec taskset -c 0 {SCHEDTWIN} {arguments}");
        let output =
            Command::new("sh").current_dir(folder.path()).args(["-c", &shell]).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        for (file, expected) in files.iter().zip(expected) {
            let bytes = fs::read(folder.path().join(file)).expect("written");
            assert!(bytes == expected, "{arguments}: {file}");
        }
    }
}

#[test]
fn a_folder_that_takes_no_file() {
    let folder = folder();
    for (arguments, files) in WRITERS {
        let mut arguments = arguments.to_string();
        for file in files {
            arguments = arguments.replace(&format!(" {file}"), &format!(" /proc/{file}"));
        }
        let output = schedtwin(folder.path(), &arguments);
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {told}");
        assert!(told.contains(&format!("/proc/{}", files[0])), "{arguments}: {told}");
        assert!(output.stdout.is_empty(), "{arguments}: it was computed first");
    }
}

#[test]
fn two_processes_on_one_sweep() {
    let folder = folder();
    let arguments = "sweep -m uniform8 -k linux-6.12:hz={100,250} -w w1 --duration 200ms -n 40 -q --threads 1 -o s.csv";
    let start = || {
        let mut command = Command::new(SCHEDTWIN);
        command.current_dir(folder.path()).args(arguments.split(' '));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let ends = [start(), start()].map(|child| child.wait_with_output().expect("it ends"));
    let good = ends.iter().filter(|end| end.status.success()).count();
    assert!(good >= 1, "{ends:?}");
    for end in ends.iter().filter(|end| !end.status.success()) {
        let told = String::from_utf8_lossy(&end.stderr);
        assert!(told.contains("another process is at work on it"), "{told}");
    }
    let alone = tempfile::tempdir().expect("a folder");
    assert!(schedtwin(alone.path(), arguments).status.success());
    let read = |folder: &Path| fs::read(folder.join("s.csv")).expect("written");
    assert!(read(folder.path()) == read(alone.path()), "the same bytes");
    assert_eq!(names(folder.path()), ["s.csv"]);
}
