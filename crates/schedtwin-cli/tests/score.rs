// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin score` through the binary: one number, the same everywhere, and nothing of what is held out.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A suite that takes no time.
const SUITE: &str = r#"
name = "small"
description = "of this test"
baseline = "linux-7.3"
seeds = 3
properties = ["starvation=100ms", "latency-bound=100ms"]

[[job]]
name = "shown"
machines = ["uniform8", "x86-2cpu-hz100"]
workloads = ["ui-phone"]
duration = "300ms"
measure = [{ metric = "power.mean" }, { metric = "frame_duration.p99,task=ui" }]

[[job]]
name = "secret-job"
machines = ["uniform8"]
workloads = ["schbench -m 1 -t 4"]
duration = "200ms"
held_out = true
measure = [{ metric = "average_rps" }]
"#;

fn schedtwin(folder: &Path, arguments: &[&str]) -> Output {
    fs::write(folder.join("small.toml"), SUITE).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedtwin"));
    command.current_dir(folder).args(arguments).output().expect("the binary starts")
}

/// Stdout of a command that succeeds, and its stderr.
fn good(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = schedtwin(folder, arguments);
    let [text, told] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).expect("text"));
    assert!(output.status.success(), "{arguments:?}\n{told}");
    (text, told)
}

fn json(folder: &Path, name: &str) -> Value {
    let text = fs::read_to_string(folder.join(name)).expect("it was written");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let schema = schedtwin_lab::schema::text("score").expect("it is shipped");
    let schema = serde_json::from_str(&schema).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &found), "{found}");
    found
}

#[test]
fn a_score_is_one_number_and_the_same_with_any_threads_company_and_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let score = ["score", "-q", "small.toml"];
    let other = "linux-7.3:schedutil.rate_limit_us=100";
    let ask = |more: &[&str]| good(folder, &[&score[..], more].concat()).0;
    let alone = ask(&[other, "--threads", "1", "--json", "one.json"]);
    assert_eq!(alone.lines().count(), 1);
    assert_ne!(alone, "100\n");
    let both = ask(&["linux-7.3", other, "--threads", "2", "--json", "two.json"]);
    assert_eq!(both, format!("100\n{alone}"));
    // With kept runs, first made, then taken.
    for _ in 0..2 {
        assert_eq!(ask(&[other, "--cache", "runs", "--json", "kept.json"]), alone);
        assert_eq!(json(folder, "kept.json"), json(folder, "one.json"));
    }
    let [one, two] = ["one.json", "two.json"].map(|name| json(folder, name));
    assert_eq!(one["candidates"][0], two["candidates"][1]);
    assert_eq!(one["candidates"][0]["score"].to_string(), alone.trim());
    assert_eq!(one["candidates"][0]["runs"], 6);
}

#[test]
fn the_first_seed_can_be_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let kernel = "linux-7.3:schedutil.rate_limit_us=100";
    let ask = |seed: &[&str]| {
        let command = ["score", "-q", "small.toml", kernel, "--json", "s.json"];
        (
            good(folder, &[&command[..], seed].concat()).0,
            json(folder, "s.json")["provenance"]["first_seed"].clone(),
        )
    };
    let (own, other) = (ask(&[]), ask(&["--seed", "100"]));
    assert_eq!((own.1.clone(), other.1.clone()), (1.into(), 100.into()));
    assert_ne!(own.0, other.0);
    assert_eq!(ask(&["--first-seed", "1"]), own);
    let last = u64::MAX.to_string();
    let bad = schedtwin(folder, &["score", "small.toml", kernel, "--seed", &last]);
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn nothing_is_told_of_what_is_held_out_but_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    good(folder, &["score", "-q", "small.toml", "linux-7.3:hz=100", "--json", "all.json"]);
    let text = fs::read_to_string(folder.join("all.json")).expect("it was written");
    assert!(
        !text.contains("secret") && !text.contains("schbench") && !text.contains("average_rps")
    );
    let found = json(folder, "all.json");
    assert_eq!(found["candidates"][0]["jobs"].as_array().map(Vec::len), Some(1));
    assert!(found["candidates"][0]["held_out"].is_number());
    // It counts nevertheless.
    assert_ne!(found["candidates"][0]["score"], found["candidates"][0]["shown"]);
}

/// A score out of reach ends a candidate, and the bounds hold what the whole would have been.
#[test]
fn a_candidate_that_cannot_reach_a_score_is_over_and_its_bounds_are_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let kernel = "linux-7.3:cpufreq=performance";
    let whole: f64 = good(folder, &["score", "-q", "small.toml", kernel]).0.trim().parse().unwrap();
    let (_, told) =
        good(folder, &["score", "small.toml", kernel, "--beat", "300", "--json", "beat.json"]);
    assert!(told.contains("can come of it, below 300"), "{told}");
    let found = &json(folder, "beat.json")["candidates"][0];
    assert_eq!((&found["outcome"]["how"], &found["runs"]), (&"bound".into(), &2.into()));
    let bound = |at: usize| found["bounds"][at].as_f64().expect("a number");
    assert!(bound(0) <= whole && whole <= bound(1) && bound(1) < 300.0, "{found} {whole}");
}

#[test]
fn what_cannot_be_loaded_has_the_worst_score_and_a_bad_suite_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (text, told) = good(folder, &["score", "small.toml", "linux-7.3:hzz=1", "linux-7.3"]);
    assert_eq!(text, "0\n100\n");
    assert!(told.contains("there is no setting `hzz`"), "{told}");
    let bad = schedtwin(folder, &["score", "smal.toml", "linux-7.3"]);
    assert_eq!((bad.status.code(), bad.stdout.len()), (Some(2), 0));
    let (listed, _) = good(folder, &["score", "--list"]);
    assert_eq!(listed, good(folder, &["list", "suites"]).0);
    assert!(listed.starts_with("default "), "{listed}");
    fs::write(folder.join("mine.toml"), good(folder, &["show", "suite", "phone"]).0).unwrap();
    assert_eq!(good(folder, &["check", "mine.toml"]).0, "mine.toml: fine\n");
}

/// A scheduler in C that never runs each third thread, and one that crashes: both are candidates like others.
#[test]
fn c_that_starves_or_crashes_has_the_worst_score() {
    if Command::new(std::env::var("CC").unwrap_or("cc".into())).arg("--version").output().is_err() {
        println!("skipped: there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let scheduler = |enqueue: &str| {
        format!(
            r#"#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags) {{ {enqueue} }}
void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev) {{ scx_bpf_dsq_move_to_local(0); }}
s32 BPF_STRUCT_OPS_SLEEPABLE(t_init) {{ return scx_bpf_create_dsq(0, -1) ?: scx_bpf_create_dsq(1, -1); }}
void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei) {{ UEI_RECORD(uei, ei); }}
SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	.init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
"#
        )
    };
    let insert = "scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_DFL, enq_flags);";
    let cases = [
        ("honest", insert.replace("QUEUE", "0"), "complete", ""),
        ("starves", insert.replace("QUEUE", "p->nr_cpus_allowed > 1 && p->pid % 3 == 0"), "", ""),
        ("crashes", "*(volatile int *)8 = 1;".to_string(), "ended", "crashes.bpf.c"),
        ("loops", "for (;;) barrier();".to_string(), "ended", "did not come to its end within 2s"),
    ];
    for (name, enqueue, how, why) in cases {
        fs::write(folder.join(format!("{name}.bpf.c")), scheduler(&enqueue)).expect("written");
        let kernel = format!("linux-7.3:scx=./{name}.bpf.c");
        let path = format!("{name}.json");
        let (text, told) = good(
            folder,
            &["score", "small.toml", &kernel, "--cache", "runs", "--json", &path, "--limit", "2s"],
        );
        let found = &json(folder, &path)["candidates"][0];
        let outcome = &found["outcome"];
        match how {
            "complete" => assert!(text.trim().parse::<f64>().unwrap() > 0.0, "{found} {told}"),
            _ => assert_eq!(text, "0\n", "{found} {told}"),
        }
        assert!(how.is_empty() || outcome["how"] == how, "{outcome} {told}");
        assert!(outcome["text"].as_str().unwrap_or_default().contains(why), "{outcome} {told}");
    }
    // Several at once, each in a process of its own; a workload of the user's is read before.
    let own = SUITE
        .replace("\"schbench -m 1 -t 4\"", "\"own.json\"")
        .replace("average_rps", "wakeup_latency.p99");
    fs::write(folder.join("own.toml"), own).expect("written");
    let work = r#"{ "tasks": { "a": { "instance": 4, "loop": -1, "run": 3000, "sleep": 5000 } } }"#;
    fs::write(folder.join("own.json"), work).expect("written");
    let several =
        ["baseline:hz=100", "baseline:scx=./honest.bpf.c", "baseline:scx=./crashes.bpf.c"];
    let (text, told) =
        good(folder, &[&["score", "own.toml", "--json", "all.json"], &several[..]].concat());
    let scores: Vec<f64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    assert!(scores[0] > 0.0 && scores[1] > 0.0 && scores[2] == 0.0, "{text} {told}");
    let found = &json(folder, "all.json")["candidates"];
    let kernels: Vec<&str> =
        found.as_array().expect("a list").iter().map(|of| of["kernel"].as_str().unwrap()).collect();
    assert_eq!(kernels[1], "linux-7.3:scx=./honest.bpf.c");
    // Machine code could print numbers of its own.
    let prints = scheduler("long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(1L)); (void)r;");
    fs::write(folder.join("prints.bpf.c"), prints).expect("written");
    let (text, told) = good(folder, &["score", "small.toml", "baseline:scx=./prints.bpf.c"]);
    assert_eq!(text, "0\n");
    assert!(told.contains("prints.bpf.c:4: `asm` is machine code"), "{told}");
}
