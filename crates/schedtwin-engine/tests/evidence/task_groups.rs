// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: rt-app's `taskgroup` from the file to the shares.

use crate::scenarios::{SECOND, published_folder, run, scenario, written};
use schedtwin_engine::{RunOptions, Scenario};

const EEVDF: &str = "linux-6.12:fair_group_sched=true";

/// One hog in a group gets as much as three in another, on each of two CPUs that are full of them.
const UNEVEN: &str = r#"
    "one":   { "instance": 8, "taskgroup": "/one",   "run": 100000000 },
    "three": { "instance": 24, "taskgroup": "/a/three", "run": 100000000 }"#;

fn cpu_time_ms(scenario: &Scenario, name: &str) -> u64 {
    let result = scenario.run(1, RunOptions { verify: true, ..Default::default() }).unwrap();
    let of = result.tasks.iter().filter(|task| task.name.starts_with(name));
    of.map(|task| task.cpu_time_ns / 1_000_000).sum()
}

#[test]
fn groups_share_the_machine_not_their_tasks() {
    for kernel in [EEVDF, "linux-5.18"] {
        let scenario = written("uniform8", kernel, UNEVEN, SECOND);
        let (one, three) = (cpu_time_ms(&scenario, "one"), cpu_time_ms(&scenario, "three"));
        let half = (one + three) / 2;
        assert!(one + three > 7_900, "{kernel}: {one} ms and {three} ms of 8 s");
        assert!(one.abs_diff(half) < half / 8, "{kernel}: {one} ms and {three} ms");
    }
}

#[test]
fn without_groups_tasks_share_it() {
    let flat = UNEVEN
        .replace("taskgroup", "//")
        .replace("\"//\": \"/one\",   ", "")
        .replace("\"//\": \"/a/three\", ", "");
    let scenario = written("uniform8", EEVDF, &flat, SECOND);
    let (one, three) = (cpu_time_ms(&scenario, "one"), cpu_time_ms(&scenario, "three"));
    assert!(three > 5 * one / 2, "{one} ms and {three} ms");
}

#[test]
fn rt_apps_own_examples_run() {
    let Some(folder) = published_folder() else { return };
    for example in ["tutorial__example10", "tutorial__example11"] {
        let file = folder.join(format!("rt-app/{example}.json")).display().to_string();
        for kernel in [EEVDF, "linux-5.18", "linux-6.3"] {
            let result = run(&scenario("pixel6", kernel, &file, Some(2 * SECOND)), 1);
            assert!(result.tasks.iter().any(|t| t.cpu_time_ns > SECOND / 10), "{example} {kernel}");
        }
        // A kernel without task groups gets them, and says so; one that was asked to have none is refused.
        let own = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        let text = "name = \"mine\"\ndescription = \"of mine\"\nextends = \"linux-6.12\"\nfair_group_sched = false\n";
        std::fs::write(own.path(), text).unwrap();
        let own = own.path().display().to_string();
        let on = Scenario::new("pixel6", &own, &file, Some(2 * SECOND)).unwrap();
        assert!(on.kernel().config.fair_group_sched);
        assert!(on.notices()[0].contains("has not: they are turned on"), "{:?}", on.notices());
        let same = scenario("pixel6", EEVDF, &file, Some(2 * SECOND));
        assert_eq!(run(&on, 1).digest, run(&same, 1).digest);
        assert!(same.notices().iter().all(|notice| !notice.contains("turned on")));
        let without = "linux-6.12:fair_group_sched=false";
        let refused = Scenario::new("pixel6", without, &file, None).err().unwrap().to_string();
        let expected = "kernel:1:1: linux-6.12:fair_group_sched=false has no task groups, which the workload asks for\n  help: leave fair_group_sched=false out";
        assert_eq!(refused, expected);
    }
}

/// A group may use little of a CPU's speed: what its thread does takes longer; a thread of another group is as fast as
/// ever. A minimum of the group above counts as well. It sleeps now and then: under sum aggregation the estimate that it came
/// with is clamped at its next sleep only.
#[test]
fn groups_have_clamps() {
    let tasks = r#"
        "slow": { "taskgroup": "/apps/background", "cpus": [0], "loop": 6, "run": 500000, "sleep": 20000 },
        "fast": { "taskgroup": "/apps", "cpus": [4], "loop": 1, "run": 3000000 }"#;
    let with = |clamps: &str| format!("{tasks} }}, \"taskgroups\": {{ {clamps}");
    let capped = with(r#""/apps/background": { "cpu.uclamp.max": "5" }"#);
    let raised = with(r#""/apps": { "cpu.uclamp.min": "100" }"#);
    let raised_all = with(
        r#""/apps": { "cpu.uclamp.min": "max" }, "/apps/background": { "cpu.uclamp.min": "100.00" }"#,
    );
    // Each in a clock domain of its own.
    let machine = "pixel6";
    for kernel in [EEVDF, "linux-6.3:uclamp=key-off", "linux-6.12+uclamp-sum:fair_group_sched=true"]
    {
        let times = |tasks: &str| {
            let scenario = written(machine, kernel, tasks, 10 * SECOND);
            (cpu_time_ms(&scenario, "slow"), cpu_time_ms(&scenario, "fast"))
        };
        let plain = times(tasks);
        let [capped, raised, raised_all] = [&capped, &raised, &raised_all].map(|t| times(t));
        let all = format!("{kernel}: {plain:?}, {capped:?}, {raised:?}, {raised_all:?}");
        assert!(2 * capped.0 > 3 * plain.0 && capped.1.abs_diff(plain.1) <= plain.1 / 10, "{all}");
        assert!(raised.1 < plain.1 && raised.0.abs_diff(plain.0) <= plain.0 / 10, "{all}");
        assert!(
            raised_all.1.abs_diff(raised.1) <= plain.1 / 10 && raised_all.0 <= plain.0,
            "{all}"
        );
    }
    let refused = |kernel: &str, workload: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("clamped.json");
        let text = format!(r#"{{ "tasks": {{ {workload} }} }}"#);
        std::fs::write(&path, text).expect("the temporary folder can be written");
        Scenario::new(machine, kernel, &path.to_string_lossy(), None).err().unwrap().to_string()
    };
    let message = refused("linux-6.12:uclamp=compiled-out,fair_group_sched=true", &capped);
    assert!(message.contains("has no utilisation clamps"), "{message}");
}

/// Weights from the file: 300 to 100, then an idle group beside a normal one.
#[test]
fn groups_have_weights_and_may_be_idle() {
    let hogs = r#"
        "one": { "taskgroup": "/one", "cpus": [0], "run": 100000000 },
        "two": { "taskgroup": "/two", "cpus": [0], "run": 100000000 } },
        "taskgroups": { "/one": { "cpu.weight": "300" }, "/two": { FILE }"#;
    for kernel in [EEVDF, "linux-5.18"] {
        for (file, per_mille) in [("", 750), (r#""cpu.idle": "1""#, 998)] {
            let scenario = written("uniform8", kernel, &hogs.replace("FILE", file), 4 * SECOND);
            let (one, two) = (cpu_time_ms(&scenario, "one"), cpu_time_ms(&scenario, "two"));
            let share = 1000 * one / (one + two);
            assert!(share.abs_diff(per_mille) < 12, "{kernel} {file}: {share}");
        }
    }
}

/// A quota of 25 ms in 100 ms, over two CPUs: a quarter of a CPU in every form of the kernel, and its `cpu.stat` in the results.
#[test]
fn groups_have_limits() {
    let hogs = r#"
        "one": { "instance": 2, "taskgroup": "/a/one", "run": 100000000 },
        "two": { "taskgroup": "/two", "run": 100000000 } },
        "taskgroups": { "/a": { "cpu.max": "25000 100000" }"#;
    let kernels =
        [EEVDF, "linux-5.18", "linux-6.6:fair_group_sched=true", "linux-6.18", "linux-7.3"];
    for kernel in kernels {
        let scenario = written("uniform8", kernel, hogs, 4 * SECOND);
        let options = RunOptions { verify: true, ..Default::default() };
        let result = scenario.run(1, options).unwrap();
        let seconds = result.simulated_ns as f64 / 1e9;
        let of = |name: &str| {
            let tasks = result.tasks.iter().filter(|task| task.name.starts_with(name));
            tasks.map(|task| task.cpu_time_ns as f64 / 1e9).sum::<f64>() / seconds
        };
        assert!((of("one") - 0.25).abs() < 0.01, "{kernel}: {}", of("one"));
        assert!(of("two") > 0.98, "{kernel}: {}", of("two"));
        let stat = |name: &str| {
            let metric = result.metrics.iter().find(|m| m.name == name).expect(name);
            assert_eq!(metric.labels, [("group", "/a".to_owned())]);
            metric.value.unwrap()
        };
        let periods = stat("nr_periods") / (10.0 * seconds);
        assert!((0.97..1.01).contains(&periods), "{kernel}: {periods}");
        assert!(stat("nr_throttled") >= 0.95 * stat("nr_periods"), "{kernel}");
        // Two CPUs wait for most of each period.
        let throttled = stat("throttled_usec") / 1e6 / seconds;
        assert!((1.5..1.8).contains(&throttled), "{kernel}: {throttled}");
        let groups = result.metrics.iter().filter(|m| m.name == "nr_periods").count();
        assert_eq!(groups, 1, "the others have no limit");
        // As usage_usec: with the groups within.
        let used = result.metrics.iter().filter(|m| m.name == "cpu_time");
        let used = used.filter_map(|m| match &m.labels[..] {
            [("group", path)] => Some((path.as_str(), m.value.unwrap() / seconds)),
            _ => None,
        });
        let used: Vec<(&str, f64)> = used.collect();
        assert_eq!(used.iter().map(|of| of.0).collect::<Vec<_>>(), ["/a", "/a/one", "/two"]);
        let [above, one, two] = [0, 1, 2].map(|at| used[at].1);
        assert!(above == one && (one - of("one")).abs() < 1e-9, "{kernel}: {used:?}");
        assert!((two - of("two")).abs() < 1e-9, "{kernel}: {used:?}");
    }
}

/// A build of 24 compilers and an editor, each a file of its own, in the sessions that `line` says; the editor's share of the CPU,
/// per mille, and what both had of it, ms.
fn editor_beside_a_build(kernel: &str, line: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, tasks: &str| {
        let path = folder.path().join(name);
        let text = format!(r#"{{ "global": {{ "calibration": 20 }}, "tasks": {{ {tasks} }} }}"#);
        std::fs::write(&path, text).expect("the temporary folder can be written");
        path.display().to_string()
    };
    let build = file(
        "build.json",
        r#""cc": { "instance": 24, "cpus": [0], "loop": -1, "run": 100000000 }"#,
    );
    let editor = file("editor.json", r#""editor": { "cpus": [0], "loop": -1, "run": 100000000 }"#);
    let line = line.replace("BUILD", &build).replace("EDITOR", &editor);
    let scenario = Scenario::new("uniform8", kernel, &line, Some(8 * SECOND));
    let scenario = scenario.unwrap_or_else(|faults| panic!("{faults}"));
    let (editor, build) = (cpu_time_ms(&scenario, "editor"), cpu_time_ms(&scenario, "cc"));
    (1000 * editor / (editor + build), editor + build)
}

/// What autogroups are for: an editor beside `make -j24` gets half of a CPU, not a 25th, if they are in two sessions.
#[test]
fn sessions_share_the_machine_with_autogroups() {
    let with = |base: &str| format!("{base},sched_autogroup=true");
    for base in [EEVDF, "linux-5.18:fair_group_sched=true"] {
        let apart = "setsid BUILD & setsid EDITOR";
        for (kernel, line, expected) in [
            (with(base), apart, 500),
            (base.to_string(), apart, 40),
            (with(base), "BUILD & EDITOR", 40),
            // The shell's session has the build, and the editor's counts for 1 of 4 (1024 and 335).
            (with(base), "BUILD & setsid autogroup=5 EDITOR", 1000 * 335 / 1359),
            // Cgroups come first.
            (with(base), "setsid cgroup=/b BUILD & setsid cgroup=/e cpu.weight=300 EDITOR", 750),
            (with(base), "cgroup=/b cpu.max=20000/100000 BUILD & EDITOR", 800),
        ] {
            let (share, all) = editor_beside_a_build(&kernel, line);
            assert!(all > 7_900, "{kernel} {line}: {all} ms");
            assert!(share.abs_diff(expected) < 8, "{kernel} {line}: {share}, not {expected}");
        }
    }
}

/// Benchmarks in sessions and cgroups: an AF_UNIX benchmark beside one that sleeps on timers, each keeps its own futexes, sockets and devices.
#[test]
fn benchmarks_run_as_jobs() {
    let kernel = "linux-6.12:fair_group_sched=true,sched_autogroup=true";
    let alone = scenario("i5-10600k", kernel, "messaging -g 1 -l 100", None);
    let line = "messaging -g 1 -l 100 & setsid cgroup=/b cpu.idle=1 periodic -f 100 -t 4 -d 3";
    let beside = scenario("i5-10600k", kernel, line, None);
    let [alone, beside] = [alone, beside].map(|s| run(&s, 1));
    assert!(beside.simulated_ns >= 3 * SECOND && beside.notices.is_empty());
    let kernel_threads = ["migration/", "sugov:", "kworker/"];
    let threads = |result: &schedtwin_engine::result::RunResult| {
        let is_own = |name: &str| kernel_threads.iter().all(|kernel| !name.starts_with(kernel));
        result.tasks.iter().filter(|task| is_own(&task.name)).count()
    };
    // Four sleepers, their first thread, and the shell.
    assert_eq!(threads(&beside), threads(&alone) + 6);
    for job in ["1:", "2:"] {
        let of = |value: &String| value.starts_with(job);
        assert!(
            beside.metrics.iter().any(|m| m.labels.iter().any(|(_, value)| of(value))),
            "{job}"
        );
    }
}

/// Each fault of a line of jobs has its place; none is a panic.
#[test]
fn faults_of_jobs_are_told() {
    let tell = |kernel: &str, line: &str| match Scenario::new("uniform8", kernel, line, None) {
        Ok(_) => String::new(),
        Err(faults) => faults.to_string(),
    };
    for (line, told) in [
        ("w1 & ", "<command line>:1:6: a job without a workload"),
        ("setsid & w1", "a job without a workload"),
        ("autogroup=3 w1", "<command line>:1:1: the nice value of a session without the session"),
        ("setsid autogroup=30 w1", "<command line>:1:18: not the nice value of an autogroup"),
        ("cgroup=a w1", "<command line>:1:8: not the path of a cgroup"),
        ("cgroup=/ w1", "not the path of a cgroup"),
        ("cpu.weight=3 w1", "<command line>:1:1: a file of a cgroup without the cgroup"),
        ("cgroup=/a cpu.wait=3 w1", "<command line>:1:11: unknown file \"cpu.wait\""),
        ("cgroup=/a cpu.weight=0 w1", "<command line>:1:22: \"cpu.weight\" cannot be \"0\""),
        ("cgroup=/a cpu.weight w1", "\"cpu.weight\" without a value"),
        ("cgroup=/a cpu.idle=1 cpu.weight=3 w1", "of an idle group"),
        (
            "cgroup=/a cpu.idle=1 w1 & cgroup=/a/ cpu.weight=3 w1",
            "two jobs write files of the cgroup /a",
        ),
        ("w1 & w1 & w1 & w1 & w1 & w1 & w1 & w1 & w1", "9 jobs, of at most 8"),
        ("w1 & periodic -x", "<command line>:1:15: workload \"periodic\" has no option \"-x\""),
        ("messaging & messaging -g 2", "both measure"),
        ("messaging & messaging -g 2", "(periodic, shell, an rt-app file)"),
        ("w1 & no/file.json", "cannot be read"),
    ] {
        let message = tell(EEVDF, line);
        assert!(message.contains(told), "{line}: {message}");
    }
    assert!(
        tell("linux-6.12:fair_group_sched=false", "cgroup=/a w1").contains("has no task groups")
    );
    let message = tell("linux-6.12:fair_group_sched=false,sched_autogroup=true", "w1");
    assert!(message.contains("has autogroups without task groups"), "{message}");
}
