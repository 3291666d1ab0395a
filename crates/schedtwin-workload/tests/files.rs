// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading: faulty files with their messages, and whatever else a user may hand in.
//!
//! Each `tests/bad/NAME.json` has its message in `tests/bad/NAME.expected`. After a change of
//! wording, `BLESS=1 cargo test -p schedtwin-workload --test files` writes them anew; read the diff.

mod executor;

use executor::host;
use proptest::prelude::*;
use schedtwin_input::{Diagnostics, Source};
use schedtwin_workload::Workload;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad")
}

/// Reads a file as a user would, under a name that is the same everywhere, for 4 CPUs.
fn faults_of(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let found = Workload::from_path_or_name(path.to_str().unwrap())
        .and_then(|w| w.instantiate(&host(4), 1));
    match found {
        Ok(_) => "no fault".to_owned(),
        Err(Diagnostics(list)) => {
            let short = |fault: &schedtwin_input::Diagnostic| {
                let mut fault = fault.clone();
                fault.source = Source::new(name, fault.source.text.clone());
                fault
            };
            Diagnostics(list.iter().map(short).collect()).to_string()
        }
    }
}

#[test]
fn faulty_files_have_the_expected_messages() {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    assert!(paths.len() >= 30, "{}", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let expected_path = path.with_extension("expected");
        let found = faults_of(&path) + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected_path, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected || found == "no fault\n" {
            wrong.push(format!("--- {}\nexpected:\n{expected}found:\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_file_is_told() {
    for (spec, message) in [
        (folder().to_str().unwrap(), "it is a directory; a workload is a file"),
        ("no/such/file.json", "cannot be read: No such file or directory"),
        ("w2", "unknown workload \"w2\"\n  help: did you mean `w1`?"),
        ("messaging-of-any-kind", "built in are w1, ui-phone, juno-scenario1, "),
        (
            "w1 -f 73",
            "<command line>:1:4: workload \"w1\" has no option \"-f\"\n  help: it takes none",
        ),
        ("", "unknown workload \"\""),
    ] {
        let faults = Workload::from_path_or_name(spec).unwrap_err().to_string();
        assert!(faults.contains(message), "{spec}: {faults}");
    }
}

#[test]
fn built_ins_are_listed_and_can_be_had() {
    for (name, description) in schedtwin_workload::builtin_names() {
        let workload = Workload::from_path_or_name(name).unwrap();
        assert_eq!(workload.name(), name);
        let options = schedtwin_workload::builtin_options(name).expect("it is built in");
        assert!(options.iter().all(|option| workload.describe().contains(option.help)), "{name}");
        assert!(!description.is_empty() && workload.pending().is_empty());
        assert!(workload.instantiate(&host(8), 1).is_ok());
        assert!(
            workload.bytes().starts_with(b"/*") || workload.bytes().starts_with(name.as_bytes())
        );
    }
}

#[test]
fn what_is_understood_but_not_modelled_is_refused_by_name_and_all_at_once() {
    let text = r#"{ "global": { "pi_enabled": true }, "tasks": {
        "g": { "taskgroup": "/a/b", "nodes_membind": [0], "lock": "m", "unlock": "m",
               "memrun": { "type": "chase", "size": 4096, "count": 9 } },
        "u": { "util_min": 0, "util_max": 512, "run": 1 } } }"#;
    let workload = Workload::parse_rtapp(Source::new("f.json", text)).unwrap();
    let faults = workload.instantiate(&host(4), 1).unwrap_err().to_string();
    let waits: Vec<_> =
        faults.lines().map(|line| line.split("is not modelled: ").nth(1).unwrap()).collect();
    let expected = ["NUMA memory binding", "memory-bound work", "priority inheritance of mutexes"];
    let mut sorted = waits.clone();
    sorted.sort_unstable();
    let mut expected_sorted = expected;
    expected_sorted.sort_unstable();
    assert_eq!(sorted, expected_sorted, "{faults}");
    let told = "\"memrun\" of task \"g\" is not modelled: memory-bound work";
    assert!(faults.contains(told), "{told} not in:\n{faults}");
    assert_eq!(workload.notices(), [""; 0]);
}

/// Fifty are enough, of what waits as of faults.
#[test]
fn what_is_not_modelled_is_told_fifty_times() {
    for (events, told) in [(49, 49), (50, 50), (51, 50)] {
        let events: Vec<String> = (0..events)
            .map(|n| format!("\"memrun{n}\": {{ \"type\": \"read\", \"size\": 64, \"count\": 1 }}"))
            .collect();
        let text = format!("{{ \"tasks\": {{ \"a\": {{ {} }} }} }}", events.join(", "));
        let workload = Workload::parse_rtapp(Source::new("f.json", text)).unwrap();
        assert_eq!(workload.pending().0.len(), told);
    }
}

#[test]
fn a_workload_shows_its_file() {
    let text = "{ \"tasks\": { \"a\": { \"run\": 1 } } }";
    let workload = Workload::parse_rtapp(Source::new("f.json", format!("{text}\n\n"))).unwrap();
    assert_eq!(workload.describe(), format!("{text}\n"));
}

/// Folders of task groups are groups, too, and their files are nanoseconds.
#[test]
fn task_groups_have_folders_and_files() {
    let read = |files: &str| {
        let text = format!(
            "{{ \"tasks\": {{ \"t\": {{ \"taskgroup\": \"/a/b\", \"run\": 1 }}, \
             \"u\": {{ \"taskgroup\": \"/c\", \"run\": 1 }}, \
             \"v\": {{ \"taskgroup\": \"/a\", \"run\": 1 }} }}, \
             \"taskgroups\": {{ \"/c\": {{ {files} }} }} }}"
        );
        Workload::parse_rtapp(Source::new("f.json", text)).map_err(|faults| faults.to_string())
    };
    let max = |quota: u64, burst: u64| {
        read(&format!("\"cpu.max\": \"{quota} 50000\", \"cpu.max.burst\": \"{burst}\""))
    };
    let programs = max(20_000, 20_000).unwrap().instantiate(&host(4), 1).unwrap();
    // Groups with files come first; a folder comes before what is in it.
    assert_eq!(programs.task_group_paths(), ["/c", "/a", "/a/b"]);
    let above: Vec<u32> = programs.task_groups().iter().map(|group| group.0).collect();
    assert_eq!(above, [0, 0, 2]);
    let [files] = programs.task_group_files() else { panic!("one group has files") };
    assert_eq!((files.group.0, files.burst), (1, Some(20_000_000)));
    let limit = files.max.unwrap();
    assert_eq!((limit.quota, limit.period), (Some(20_000_000), 50_000_000));
    // No more than the quota, and with it no more than the kernel counts.
    assert!(max(20_000, 20_001).unwrap_err().contains("at most \"20000\" here"));
    let most = (1 << 44) - 1;
    assert!(max(most - 5, 5).is_ok());
    assert!(max(most - 5, 6).unwrap_err().contains("at most \"5\" here"));
}

/// rt-app has space for so many; a group that is named again needs no space.
#[test]
fn task_groups_are_bounded() {
    let read = |groups: usize| {
        let task =
            |n: usize| format!("\"t{n}\": {{ \"taskgroup\": \"/g{}\", \"run\": 1 }}", n % groups);
        let tasks: Vec<String> = (0..groups + 2).map(task).collect();
        let text = format!("{{ \"tasks\": {{ {} }} }}", tasks.join(", "));
        Workload::parse_rtapp(Source::new("f.json", text)).map_err(|faults| faults.to_string())
    };
    assert!(read(32).is_ok());
    let faults = read(33).unwrap_err();
    assert!(faults.contains("task groups, rt-app's bound"), "{faults}");
}

#[test]
fn task_groups_are_at_most_sixteen_levels_deep() {
    let read = |levels: usize| {
        let path = "/a".repeat(levels) + "/";
        let text =
            format!("{{ \"tasks\": {{ \"t\": {{ \"taskgroup\": \"{path}\", \"run\": 1 }} }} }}");
        Workload::parse_rtapp(Source::new("f.json", text)).map_err(|faults| faults.to_string())
    };
    assert!(read(16).is_ok());
    assert!(read(17).unwrap_err().contains("at most 16 levels deep"));
}

/// A CPU that no machine has is refused by the file, one that this machine has not by the machine.
#[test]
fn the_cpu_of_a_calibration_exists() {
    use schedtwin_types::MAX_CPUS;
    let read = |cpu: usize| {
        let text = format!(
            "{{ \"global\": {{ \"calibration\": \"CPU{cpu}\" }}, \"tasks\": {{ \"a\": {{ \"run\": 1 }} }} }}"
        );
        Workload::parse_rtapp(Source::new("f.json", text))
    };
    let faults = read(MAX_CPUS - 1).unwrap().instantiate(&host(4), 1).unwrap_err().to_string();
    assert!(faults.contains("the machine has CPUs 0 to 3"), "{faults}");
    let faults = read(MAX_CPUS).unwrap_err().to_string();
    assert!(faults.contains("machines have at most"), "{faults}");
}

#[test]
fn notices_tell_what_is_easily_overlooked() {
    let text = r#"{ "tasks": {
        "a": { "suspend": "nobody-resumes", "resume": "nobody-suspends", "runtime": 500 },
        "a": { "instance": 0, "timer": { }, "barrier": "b" } } }"#;
    let workload = Workload::parse_rtapp(Source::new("f.json", text)).unwrap();
    let notices = workload.notices().join("\n");
    for part in [
        "waits for \"nobody-resumes\", which nothing resumes",
        "resumes or signals \"nobody-suspends\", for which nothing waits",
        "a custom slice of 500 us",
        "a later one is called \"a1\"",
        "names no \"ref\"",
        "has no \"period\"",
        "rt-app does not count its threads",
    ] {
        assert!(notices.contains(part), "{part} not in:\n{notices}");
    }
}

#[test]
fn what_json_c_and_workgen_accept_is_accepted() {
    for text in [
        "{ \"tasks\": { \"a\": { \"suspend\", \"run\": 1, }, }, }",
        "// c\n{ /* c */ \"tasks\": { \"a\": { \"run\": 1, \"run\": 2, \"yield\", \"suspend\" } } } // end",
        "{ \"tasks\": { \"a\": { \"suspend\" /* until resumed */, \"run\": 1 } } }",
        "\u{feff}{ \"tasks\": { \"a\": { \"run\": 1 } } }",
        "{ \"tasks\": { \"\u{e9}\u{1f600}long-name-of-a-task\": { \"run\": 1 } } }",
        "{ \"global\": { \"log_size\": \"Disable\", \"ftrace\": true, \"frag\": 1 }, \"tasks\": { \"a\": { \"run\": 1, \"loop\": 2147483647 } } }",
        "{ \"resources\": 0, \"tasks\": { \"a\": { \"run\": 1 } } }",
        "{ \"resources\": null, \"tasks\": { \"a\": { \"run\": 1 } } }",
        "{ \"resources\": { \"m\": { \"type\": \"mutex\" }, \"w\": { \"type\": \"signal\", \"target\": \"x\" } }, \"tasks\": { \"a\": { \"runtime0\": 2147483647, \"phases_not\": 1 } } }",
    ] {
        let path = std::env::temp_dir().join(format!(
            "schedtwin-workload-{}-{}.json",
            std::process::id(),
            text.len()
        ));
        std::fs::write(&path, text).unwrap();
        let read = Workload::from_path_or_name(path.to_str().unwrap())
            .and_then(|w| w.instantiate(&host(4), 1));
        std::fs::remove_file(&path).unwrap();
        if text.contains("phases_not") {
            assert!(read.unwrap_err().to_string().contains("unknown key"));
        } else {
            read.unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }
}

/// A template is no workload yet: its placeholders are named as such, quoted or not.
#[test]
fn placeholders_of_templates_say_what_to_do() {
    let name = format!("schedtwin-template-{}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    for value in [
        "\"@LOAD@\"",
        "\"{{ load }}\"",
        "{{ load }}",
        "@LOAD@",
        "${LOAD}",
        "\"%(load)s\"",
        "<load>",
    ] {
        std::fs::write(&path, format!("{{ \"tasks\": {{ \"a\": {{ \"run\": {value} }} }} }}"))
            .unwrap();
        let read = Workload::from_path_or_name(path.to_str().unwrap())
            .and_then(|workload| workload.instantiate(&host(4), 1));
        let told = read.map(drop).unwrap_err().to_string();
        assert!(told.contains("this looks like a template"), "{value}: {told}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn hostile_sizes_end_soon_and_with_a_bounded_message() {
    let deep = "[".repeat(1_000_000);
    let deep_objects = "{\"tasks\":".repeat(300_000);
    let keys = format!("{{\"tasks\":{{\"a\":{{{}\"run\":1}}}}}}", "\"x\":1,".repeat(300_000));
    let suspends =
        format!("{{\"tasks\":{{\"a\":{{{}\"run\":1}}}}}}", "\"suspend\",".repeat(200_000));
    let comments = format!("{{{}", "\"a\"/**/".repeat(300_000));
    let huge = format!("{{\"tasks\":{{\"a\":{{\"run\":{}}}}}}}", "9".repeat(100_000));
    for text in [deep, deep_objects, keys, suspends, comments, huge] {
        let start = &text[..20].to_owned();
        match Workload::parse_rtapp(Source::new("hostile.json", text)) {
            Ok(workload) => assert!(workload.instantiate(&host(4), 1).is_ok()),
            Err(faults) => assert!(faults.0.len() <= 60, "{start}: {}", faults.0.len()),
        }
    }
}

/// A file whose every byte may be changed.
const SEED: &str = r#"{ "global": { "duration": 2, "calibration": "CPU0", "ftrace": "main,task" },
    "tasks": { "a": { "instance": 2, "loop": -1, "cpus": [0, 1], "phases": {
        "p": { "loop": 3, "suspend", "run": 10, "lock": "m", "wait": { "ref": "c", "mutex": "m" }, "unlock": "m" },
        "q": { "policy": "SCHED_RR", "priority": 5, "timer": { "ref": "unique", "period": 100, "mode": "absolute" } } } },
      "b": { "resume": "a", "barrier": "x", "sem_post": "s", "fork": "a", "signal": "c", "sleep": 7, } } } /* end */"#;

/// Reads it and, if it is well, executes some of it.
fn survive(text: String) {
    if let Ok(workload) = Workload::parse_rtapp(Source::new("fuzz.json", text))
        && workload.instantiate(&host(2), 1).is_ok()
    {
        let mut executor = executor::Executor::with_delays(&workload, &host(2), 1, 100);
        executor.run(1_000_000_000, 2_000, |_, _, _, _| {});
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survive(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn no_tokens_make_the_reader_panic(tokens in proptest::collection::vec(0..TOKENS.len(), 0..60)) {
        survive(tokens.into_iter().map(|at| TOKENS[at]).collect());
    }

    #[test]
    fn no_change_of_a_file_makes_the_reader_panic(changes in proptest::collection::vec((0..SEED.len(), 0..TOKENS.len(), 0..20_usize), 1..6)) {
        let mut text = SEED.to_owned();
        for (at, token, removed) in changes {
            let start = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let end = (start + removed).min(text.len());
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
            text.replace_range(start..end, TOKENS[token]);
        }
        survive(text);
    }
}

const TOKENS: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"tasks\"",
    "\"global\"",
    "\"a\"",
    "\"run\"",
    "\"suspend\"",
    "\"phases\"",
    "-1",
    "0",
    "99999999999999999999",
    "1.5",
    "true",
    "null",
    "/*",
    "*/",
    "//",
    "\n",
    "\\",
    "\\u0000",
    "\u{e9}",
    "\u{1f600}",
    " ",
    "\"timer\"",
    "\"fork\"",
    "\"loop\"",
    "\"instance\"",
    "4097",
    "\"barrier\"",
    "\"sync\"",
    "'",
    "\r",
    "\"cpus\"",
    "300",
    "\"sem_wait\"",
];

/// Thousands of equal names, each of which is made different from all before it: half a megabyte once took minutes.
#[test]
fn equal_names_are_told_apart_in_no_time() {
    let equal = |member: &str, count: usize| vec![member; count].join(",");
    let tasks = format!(r#"{{ "tasks": {{ {} }} }}"#, equal(r#""a": { "run": 1 }"#, 40_000));
    survive(tasks);
    let few = format!(r#"{{ "tasks": {{ {} }} }}"#, equal(r#""a": { "run": 1 }"#, 4));
    let workload = Workload::parse_rtapp(Source::new("few.json", few)).unwrap();
    let programs = workload.instantiate(&host(4), 1).unwrap();
    let names: Vec<String> = (0..programs.nr_threads())
        .map(|t| programs.task_name(schedtwin_types::ThreadId(t as u32)))
        .collect();
    for name in ["a", "a1", "a2", "a3"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
}

#[test]
fn mutated_published_files_do_not_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/workloads/rtapp");
    let Ok(parts) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: the published rt-app files are not there ({})", folder.display());
        return;
    };
    let mut random: u64 = 1;
    let mut draw = |bound: usize| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % bound
    };
    for part in parts {
        for file in std::fs::read_dir(part.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let original = std::fs::read(&path).unwrap();
            for _ in 0..10 {
                let mut bytes = original.clone();
                for _ in 0..=draw(3) {
                    let at = draw(bytes.len());
                    match draw(3) {
                        0 => bytes[at] = draw(256) as u8,
                        1 => bytes.truncate(at.max(1)),
                        _ => bytes.insert(at, b"{}[],:\"0-a"[draw(10)]),
                    }
                }
                survive(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
}

/// `system` in `global` is what `--system` is on the command line, which goes before it; jobs have one together.
#[test]
fn a_file_names_the_system_beside_it() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let write = |name: &str, system: &str| {
        let path = folder.join(name);
        let text = format!(
            r#"{{ "tasks": {{ "t": {{ "loop": 1, "run": 10 }} }}, "global": {{ "system": "{system}" }} }}"#
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (one, two) = (write("one.json", "board"), write("two.json", "guest-linux"));
    let system = |spec: &str| {
        let workload = Workload::from_path_or_name(spec)?;
        Ok::<_, schedtwin_input::Diagnostics>(workload.system().map(|s| s.value.clone()))
    };
    assert_eq!(system(&one).unwrap().as_deref(), Some("board"));
    assert_eq!(
        system(&format!("{one} --system server-linux")).unwrap().as_deref(),
        Some("server-linux")
    );
    assert_eq!(system(&format!("{one} & periodic")).unwrap().as_deref(), Some("board"));
    let faults = system(&format!("{one} & {two}")).unwrap_err().to_string();
    assert!(faults.contains("names another system"), "{faults}");
}
