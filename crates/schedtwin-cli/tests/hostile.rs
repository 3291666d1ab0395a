// SPDX-License-Identifier: GPL-2.0-or-later
//! Files and names that somebody else made, through the binary: nothing in them acts on the terminal, becomes a line of ours, or
//! takes memory and time before it is refused.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output};

/// In a file's name, as it stands there; what TOML and JSON call the same in their texts.
const ODD: &str = "odd\u{1b}[31m\u{7}\nerror: none|<b>`_\u{202e}";
const ODD_ESCAPED: &str = r"odd\u001b[31m\u0007\nerror: none|<b>`_\u202e";

fn schedtwin(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.current_dir(folder).args(arguments).output().expect("the binary starts")
}

/// What would act on a terminal; and a line that a name has begun.
fn acts(text: &str) -> bool {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    text.contains(control) || text.lines().any(|line| line.starts_with("error: none"))
}

#[test]
fn names_do_not_act_on_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| fs::read_to_string(format!("{root}/{path}")).expect("it is there");
    let described = format!("description = \"{ODD_ESCAPED} ");
    let machine = read("machines/uniform8.toml").replace("description = \"", &described);
    let kernel = read("kernels/linux-6.12.toml").replace("description = \"", &described);
    let workload = format!(
        r#"{{ "global": {{ "calibration": 1000 }}, "tasks": {{ "={ODD_ESCAPED}": {{ "instance": 2, "loop": 20, "run": 1000, "timer": {{ "ref": "u", "period": 10000 }} }} }} }}"#
    );
    let write = |ending: &str, text: &str| {
        let name = format!("{ODD}{ending}");
        fs::write(folder.path().join(&name), text).expect("written");
        format!("./{name}")
    };
    let m = &write(".machine.toml", &machine);
    let k = &write(".kernel.toml", &kernel);
    let w = &write(".json", &workload);
    let bad = &write(".bad.toml", &machine.replace("coupling = false", "coupling = \"\u{9b}2J\""));
    let hz = &format!("{k}:hz=1000");
    let run = ["run", "-m", m, "-k", k, "-w", w];
    let compare = ["compare", "-m", m, "-k", k, "-k", hz, "-w", w, "-n", "2"];
    let of = |command: &[&'static str], rest: &[&str]| -> Vec<String> {
        command.iter().chain(rest).map(|word| word.to_string()).collect()
    };
    let with = |command: &[&str], rest: &[&str]| -> Vec<String> {
        command.iter().chain(rest).map(|word| word.to_string()).collect()
    };
    let cases = [
        (0, with(&run, &[])),
        (0, with(&run, &["--all"])),
        (0, with(&run, &["--more", "--format", "markdown"])),
        (0, with(&run, &["--format", "csv"])),
        (0, with(&run, &["--format", "json"])),
        (0, with(&run, &["--record", "r.jsonl", "--trace", "t.txt"])),
        (0, with(&compare, &["--all"])),
        (0, with(&compare, &["--format", "markdown", "--all"])),
        (0, with(&compare, &["--format", "csv"])),
        (0, with(&compare, &["--first-difference"])),
        (0, of(&["show", "machine"], &[m])),
        (0, of(&["show", "kernel"], &[k])),
        (0, of(&["show", "kernel", "--file"], &[k])),
        (0, of(&["show", "workload"], &[w])),
        (0, of(&["check"], &[m, k, w])),
        (1, of(&["check"], &[m, bad])),
        (0, of(&["explain", "r.jsonl", "--task", "=odd*"], &[])),
        (2, of(&["explain", "r.jsonl", "--task"], &[&format!("={ODD}x")])),
        (2, of(&["explain", "--cpu", "0"], &[&format!("{ODD}.jsonl")])),
        // The trace is one that can be read: no name has broken a line.
        (0, of(&["replay", "t.txt", "-m", "uniform8", "-k", "linux-6.12", "-n", "2"], &[])),
        (2, of(&["replay", "-m", "uniform8", "-k", "linux-6.12"], &[m])),
        (0, of(&["convert", "r.jsonl"], &[&format!("{ODD}.txt")])),
        (2, of(&["convert"], &[&format!("{ODD}.none"), "x.txt"])),
        (2, of(&["convert", "r.jsonl"], &[&format!("{ODD}/x.txt")])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "--trace"], &[&format!("{ODD}/x.txt")])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "--trace"], &[ODD])),
        (2, of(&["run", "-w", "w1", "-m"], &[ODD])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "-k"], &[ODD])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "-k"], &[&format!("linux-6.12+{ODD}")])),
        (2, of(&["run", "-m", "uniform8", "-w"], &[ODD])),
        (2, of(&["run", "-m", "uniform8", "-w"], &[&format!("periodic --{ODD} 3")])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "--metric"], &[ODD])),
        (2, of(&["run", "-m", "uniform8", "-w", "w1", "--fail-if"], &[ODD])),
        (2, of(&["study", "run"], &[&format!("./{ODD}.toml")])),
        (2, of(&["study", "show"], &[ODD])),
        (2, of(&["calibrate"], &[ODD])),
        (2, of(&["show", "schema"], &[ODD])),
    ];
    let mut wrong = String::new();
    for (code, arguments) in cases {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = schedtwin(folder.path(), &words);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        // A field of CSV may hold a line feed, within its quotes.
        let is_csv = words.contains(&"csv");
        let told = if is_csv { stdout.replace('\n', " ") } else { stdout };
        if output.status.code() != Some(code) || acts(&told) || acts(&stderr) {
            wrong.push_str(&format!("{words:?}: {:?}\n{told:?}\n{stderr:?}\n", output.status));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A file's name need not be Unicode.
#[test]
fn names_that_are_no_text_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = OsString::from_vec(b"\xff\x1b[31m.toml".to_vec());
    fs::write(folder.path().join(&name), "name = 1").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    let output = command.current_dir(folder.path()).arg("check").arg(&name).output();
    let output = output.expect("the binary starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!output.stderr.contains(&0x1b) && output.stdout.is_empty(), "{output:?}");
}

/// Ten thousand of everything, and names of a megabyte: an answer at once, short enough to read.
#[test]
fn too_much_of_anything_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let machine = fs::read_to_string(format!("{root}/machines/uniform8.toml")).expect("read");
    let name = "x".repeat(900_000);
    let tasks = |tasks: &str| format!(r#"{{ "tasks": {{ {tasks} }} }}"#);
    let body = r#"{ "loop": 1, "run": 10, "sleep": 10 }"#;
    let many: Vec<String> = (0..50_000).map(|at| format!("\"t{at}\": {body}")).collect();
    let domains = |at: u32| format!("[domain.d{at}]\ncpus = \"0\"\n");
    let domains: String = (0..10_000).map(domains).collect();
    let state =
        "  { name = \"C\", entry_ns = 0, exit_ns = 1, residency_us = 1, power = \"wfi\" },\n";
    for (file, text, expected) in [
        ("cpus.toml", machine.replace("0-7", "0-9999"), "at most 256 CPUs"),
        ("domains.toml", format!("{machine}{domains}"), "at most 4096 are taken"),
        (
            "states.toml",
            machine.replace("idle = [\n", &format!("idle = [\n{}", state.repeat(9_000))),
            "at most 4096 are taken",
        ),
        (
            "name.toml",
            machine.replace("\nname = \"uniform8\"", &format!("\nname = \"{name}\"")),
            "the name of a machine",
        ),
        (
            "domain.toml",
            machine.replace("[domain.all]", &format!("[domain.{name}]")),
            "a key of more than 128 bytes",
        ),
        ("large.toml", format!("{machine}# {}", "x".repeat(1 << 20)), "of more than 1 MiB"),
        ("tasks.json", tasks(&many.join(",")), "more than 16384"),
        (
            "instances.json",
            tasks(r#""t": { "instance": 2000000000, "run": 10 }"#),
            "more than 16384",
        ),
        ("task.json", tasks(&format!("\"{name}\": {body}")), "more than 255 bytes"),
        ("deep.json", tasks(&format!("\"t\": {}", "[".repeat(900_000))), "nesting depth"),
        (
            "large.json",
            tasks(&format!("\"t\": {body} {}", " ".repeat(5 << 20))),
            "larger than 4 MiB",
        ),
    ] {
        fs::write(folder.path().join(file), text).expect("written");
        // No more than 400 MB of address space, and some seconds of the CPU.
        let limited = format!("ulimit -v 400000; ulimit -t 20; exec \"$0\" check ./{file}");
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", &limited, env!("CARGO_BIN_EXE_schedtwin")]);
        let output = command.output().expect("sh starts");
        let stderr = String::from_utf8(output.stderr).expect("output is UTF-8");
        assert_eq!(output.status.code(), Some(1), "{file}: {stderr}");
        assert!(stderr.contains(expected) && stderr.len() < 10_000, "{file}: {stderr}");
    }
}
