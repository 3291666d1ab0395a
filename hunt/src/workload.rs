// SPDX-License-Identifier: GPL-2.0-or-later
//! Random workloads: rt-app files with every event that the twin runs, and benchmark models with options.

use crate::tape::Tape;

/// A workload: the text of an rt-app file, or what is typed for a model.
pub enum Workload {
    /// The text of an rt-app file.
    File(String),
    /// A built-in workload with options.
    Model(String),
}

/// Models that fit short runs, with options whose values are asked for.
type Options = &'static [(&'static str, u64, u64)];
const MODELS: [(&str, Options); 18] = [
    ("periodic", &[("-f", 1, 5000), ("-t", 0, 64), ("-d", 0, 100), ("--together", 0, 1)]),
    ("ui-phone", &[]),
    ("w1", &[]),
    ("jankbench", &[("--hz", 30, 240), ("--frame-work", 30, 300), ("--background", 0, 1)]),
    ("uibench", &[]),
    ("geekbench5", &[("--work-ms", 10, 500), ("--gap-ms", 0, 50), ("--cpusets", 0, 1)]),
    ("pcmark-web", &[]),
    ("speedometer", &[("--hz", 30, 240), ("--suite-ms", 20, 1000)]),
    ("vm-guest-idle", &[]),
    ("idle", &[]),
    ("messaging", &[("-g", 1, 2), ("-l", 1, 20), ("-t", 0, 0), ("-p", 0, 0)]),
    (
        "hackbench",
        &[
            ("-g", 1, 3),
            ("-l", 1, 20),
            ("-f", 1, 12),
            ("-s", 1, 150_000),
            ("-T", 0, 0),
            ("-p", 0, 0),
        ],
    ),
    (
        "schbench",
        &[
            ("-m", 1, 3),
            ("-t", 1, 20),
            ("-F", 1, 128),
            ("-n", 1, 3),
            ("-s", 0, 5_000),
            ("-R", 0, 2_000),
            ("-L", 0, 0),
        ],
    ),
    ("schbench-old", &[("-m", 1, 3), ("-t", 1, 20), ("-s", 0, 30_000), ("-c", 1, 30_000)]),
    ("netperf", &[("--instances", 1, 12), ("--request", 1, 60_000), ("--response", 1, 60_000)]),
    ("tbench", &[("-c", 1, 12)]),
    ("shell", &[("-c", 1, 8), ("-j", 1, 12), ("-l", 1, 60)]),
    (
        "daytrader",
        &[
            ("-j", 1, 4),
            ("-u", 1, 60),
            ("--workers", 0, 6),
            ("--gc-every", 1, 50),
            ("--nic-queues", 1, 16),
        ],
    ),
];

/// A workload for a machine with that many CPUs.
pub fn workload(tape: &mut Tape, nr_cpus: u64) -> Workload {
    if tape.percent(25) {
        tape.mark("workload: model");
        let model = model(tape);
        return Workload::Model(if tape.percent(20) { jobs(tape, &model) } else { model });
    }
    file(tape, nr_cpus)
}

/// A model beside another one, in sessions and cgroups.
fn jobs(tape: &mut Tape, first: &str) -> String {
    tape.mark("workload: jobs");
    let second = model(tape);
    let start = |tape: &mut Tape| {
        let session = *tape.pick(&["", "setsid ", "setsid autogroup=-5 "]);
        let cgroup = *tape.pick(&["", "", "cgroup=/a ", "cgroup=/a/b cpu.weight=300 "]);
        format!("{session}{cgroup}")
    };
    let (before, behind) = (start(tape), start(tape));
    // Two jobs cannot write the same file.
    let behind = behind.replace("/a/b", "/c");
    format!("{before}{first} & {behind}{second}")
}

fn model(tape: &mut Tape) -> String {
    let (name, options) = tape.pick(&MODELS);
    let mut text = name.to_string();
    if *name == "daytrader" {
        // Its own is longer than most runs.
        text.push_str(&format!(" --warmup-ms {}", tape.within(0, 120)));
    }
    for (option, low, high) in *options {
        if tape.percent(40) {
            text.push_str(&format!(" {option}"));
            // Without bounds it is a flag.
            if *high > 0 {
                text.push_str(&format!(" {}", tape.within(*low, *high)));
            }
        }
    }
    text
}

fn file(tape: &mut Tape, nr_cpus: u64) -> Workload {
    tape.mark("workload: rt-app");
    let nr_tasks = 1 + *tape.pick(&[0, 1, 2, 3, 5, 9]);
    let forked = nr_tasks > 1 && tape.percent(20);
    let groups = tape.percent(20);
    let mut tasks: Vec<String> = Vec::new();
    for number in 0..nr_tasks {
        let is_child = forked && number + 1 == nr_tasks;
        let forks = (forked && number == 0).then(|| format!("t{}", nr_tasks - 1));
        let body = task(tape, nr_cpus, is_child, forks, groups);
        tasks.push(format!("  \"t{number}\": {{ {body} }}"));
    }
    let calibration = tape.pick(&["1000", "20", "\"CPU0\"", "\"largest\""]);
    let files = if groups { task_group_files(tape) } else { String::new() };
    Workload::File(format!(
        "{{ \"global\": {{ \"calibration\": {calibration}, \"default_policy\": \"SCHED_OTHER\" }},\n\"tasks\": {{\n{}\n}}{files} }}\n",
        tasks.join(",\n")
    ))
}

/// Returns the values for the files of some groups.
fn task_group_files(tape: &mut Tape) -> String {
    let mut groups = Vec::new();
    for group in ["/a", "/b", "/a/c", "/a/c/d"] {
        if !tape.percent(40) {
            continue;
        }
        let mut files = Vec::new();
        match tape.below(5) {
            0 => {
                tape.mark("workload: idle groups");
                files.push("\"cpu.idle\": \"1\"".to_string());
            }
            1 | 2 => {
                tape.mark("workload: weights of groups");
                files.push(format!("\"cpu.weight\": \"{}\"", tape.magnitude(1, 10_000)));
            }
            3 => {
                let nice = tape.pick(&[-20i64, -5, 3, 19]);
                files.push(format!("\"cpu.weight.nice\": \"{nice}\""));
            }
            _ => {}
        }
        if tape.percent(60) {
            tape.mark("workload: limits of groups");
            let period = tape.magnitude(1_000, 1_000_000);
            let quota = (period * tape.magnitude(1, 300) / 100).max(1_000);
            files.push(format!("\"cpu.max\": \"{quota} {period}\""));
            if tape.percent(30) {
                files.push(format!("\"cpu.max.burst\": \"{}\"", tape.within(0, quota)));
            }
        }
        groups.push(format!("  \"{group}\": {{ {} }}", files.join(", ")));
    }
    format!(",\n\"taskgroups\": {{\n{}\n}}", groups.join(",\n"))
}

fn task(
    tape: &mut Tape,
    nr_cpus: u64,
    is_child: bool,
    forks: Option<String>,
    groups: bool,
) -> String {
    let mut members: Vec<String> = Vec::new();
    let instances = *tape.pick(&[1, 1, 1, 2, 4, 8, 40]);
    if is_child {
        members.push("\"instance\": 0".to_string());
    } else if instances > 1 {
        members.push(format!("\"instance\": {instances}"));
    }
    let class = tape.below(8);
    let mut reserves = false;
    match class {
        5 => {
            tape.mark("workload: real time");
            members.push(format!("\"policy\": \"{}\"", tape.pick(&["SCHED_FIFO", "SCHED_RR"])));
            members.push(format!("\"priority\": {}", tape.within(1, 99)));
        }
        6 => {
            tape.mark("workload: batch and idle");
            members.push(format!(
                "\"policy\": \"{}\"",
                tape.pick(&["SCHED_BATCH", "SCHED_IDLE", "SCHED_EXT"])
            ));
        }
        3 | 4 => {
            tape.mark("workload: nice");
            let nice = tape.pick(&[0i64, -20, 19, -10, 5]);
            members.push(format!("\"priority\": {nice}"));
        }
        7 => {
            let runtime = tape.magnitude(100, 100_000);
            members.push(format!("\"dl-runtime\": {runtime}"));
            // Threads of SCHED_DEADLINE cannot fork, and how many are forked nobody knows ahead.
            reserves = runtime.is_multiple_of(3) && !is_child && forks.is_none();
            if reserves {
                tape.mark("workload: deadlines");
                let period = runtime * (2 + runtime % 7);
                let deadline = period - (period - runtime) * (runtime % 5) / 4;
                members.push(format!(
                    "\"policy\": \"SCHED_DEADLINE\", \"dl-period\": {period}, \"dl-deadline\": {deadline}"
                ));
            } else {
                tape.mark("workload: custom slices");
            }
        }
        _ => {}
    }
    if tape.percent(25) {
        tape.mark("workload: affinity");
        let list = cpus(tape, nr_cpus);
        // SCHED_DEADLINE wants all CPUs.
        if !reserves {
            members.push(format!("\"cpus\": [{list}]"));
        }
    }
    if tape.percent(20) {
        tape.mark("workload: clamps");
        let min = tape.within(0, 1024);
        members.push(format!("\"util_min\": {min}, \"util_max\": {}", tape.within(min, 1024)));
    }
    // Groups are the fair class's, and nice is.
    let fair = class != 5 && !reserves;
    if groups && fair && tape.percent(60) {
        tape.mark("workload: groups");
        let group = tape.pick(&["/a", "/b", "/a/c", "/a/c/d", "/"]);
        members.push(format!("\"taskgroup\": \"{group}\""));
    }
    if tape.percent(15) {
        members.push(format!("\"delay\": {}", tape.magnitude(0, 200_000)));
    }
    members.push("\"loop\": -1".to_string());
    if tape.percent(20) {
        tape.mark("workload: phases");
        let mut phases = Vec::new();
        for phase in 0..1 + tape.below(3) {
            let mut inner = events(tape, None);
            inner.insert(0, format!("\"loop\": {}", tape.within(1, 20)));
            if tape.percent(30) {
                let list = cpus(tape, nr_cpus);
                if !reserves {
                    inner.push(format!("\"cpus\": [{list}]"));
                }
            }
            if fair && tape.percent(20) {
                inner.push(format!("\"priority\": {}", tape.pick(&[0i64, -5, 10])));
            }
            phases.push(format!("\"p{phase}\": {{ {} }}", inner.join(", ")));
        }
        members.push(format!("\"phases\": {{ {} }}", phases.join(", ")));
    } else {
        members.extend(events(tape, forks));
    }
    members.join(", ")
}

fn cpus(tape: &mut Tape, nr_cpus: u64) -> String {
    let mut list: Vec<u64> = vec![tape.below(nr_cpus)];
    for _ in 0..tape.below(4) {
        list.push(tape.below(nr_cpus));
    }
    list.sort_unstable();
    list.dedup();
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the events of a thread in a round: at least some work, so that it cannot spin at one
/// instant.
fn events(tape: &mut Tape, forks: Option<String>) -> Vec<String> {
    let mut events = vec![format!("\"run\": {}", tape.magnitude(1, 20_000))];
    if let Some(child) = forks {
        tape.mark("workload: forks");
        events.push(format!("\"fork\": \"{child}\""));
        // Children are bounded by the sleep: a fork a round.
        events.push(format!("\"sleep\": {}", tape.within(20_000, 200_000)));
    }
    for number in 0..1 + tape.below(4) {
        let us = tape.magnitude(1, 50_000);
        let name = tape.pick(&["x", "y", "z"]);
        let event = match tape.below(16) {
            0..=2 => format!("\"sleep{number}\": {us}"),
            3 | 4 => format!(
                "\"timer{number}\": {{ \"ref\": \"{}\", \"period\": {us} }}",
                tape.pick(&["unique", "u2"])
            ),
            5 => format!("\"run{number}\": {us}"),
            6 => format!("\"runtime{number}\": {us}"),
            7 => {
                tape.mark("workload: locks");
                format!(
                    "\"lock{number}\": \"m{name}\", \"run{number}\": {}, \"unlock{number}\": \"m{name}\"",
                    us / 10 + 1
                )
            }
            8 => {
                tape.mark("workload: conditions");
                format!(
                    "\"lock{number}\": \"m{name}\", \"wait{number}\": {{ \"ref\": \"c{name}\", \"mutex\": \"m{name}\" }}, \"unlock{number}\": \"m{name}\""
                )
            }
            9 => {
                tape.mark("workload: signals");
                format!("\"{}{number}\": \"c{name}\"", tape.pick(&["signal", "broad"]))
            }
            10 => {
                tape.mark("workload: barriers");
                format!("\"barrier{number}\": \"b{name}\"")
            }
            11 => {
                tape.mark("workload: suspend and resume");
                format!("\"suspend{number}\": \"s{name}\"")
            }
            12 => format!("\"resume{number}\": \"s{name}\""),
            13 => {
                tape.mark("workload: semaphores");
                format!("\"sem_post{number}\": \"e{name}\"")
            }
            14 => format!("\"sem_wait{number}\": \"e{name}\""),
            _ => {
                tape.mark("workload: yields");
                format!("\"yield{number}\": \"\"")
            }
        };
        events.push(event);
    }
    events
}
