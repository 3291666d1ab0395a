// SPDX-License-Identifier: GPL-2.0-or-later
//! Block I/O: where requests complete, who waits how, and what governors hear of it.

use schedtwin_engine::Scenario;
use schedtwin_engine::board::FlatBoard;
use schedtwin_engine::twin::{Observer, Twin};
use schedtwin_types::{CpuId, DecisionRecord, Fact, FactKind, Ns, PowerSource, TaskId, TaskState};
use std::io::Write;

const US: Ns = 1_000;
const SECOND: Ns = 1_000_000_000;

/// Requests as they were issued and completed: CPU, time, task.
#[derive(Default)]
struct Seen {
    issued: Vec<(CpuId, Ns, TaskId)>,
    completed: Vec<(CpuId, Ns, TaskId)>,
    /// States in which tasks that have made a request left their CPUs.
    states: Vec<(TaskId, TaskState)>,
    /// The most requests that were under way at a time.
    most: usize,
}

impl Observer for Seen {
    const DECISIONS: bool = false;
    fn task(&mut self, _: TaskId, _: &str, _: i32) {}
    fn fact(&mut self, fact: &Fact) {
        match fact.kind {
            FactKind::BlockIssue { task, .. } => {
                self.issued.push((fact.cpu, fact.at, task));
                self.most = self.most.max(self.issued.len() - self.completed.len());
            }
            FactKind::BlockComplete { task, .. } => {
                self.completed.push((fact.cpu, fact.at, task));
            }
            FactKind::Switch { prev, prev_state, .. } => self.states.push((prev, prev_state)),
            _ => {}
        }
    }
    fn decision(&mut self, _: DecisionRecord) {}
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

impl Seen {
    /// From each issue to its completion; every request is completed before its task makes another.
    fn times(&self) -> Vec<(CpuId, CpuId, Ns)> {
        let mut left = self.completed.clone();
        let mut times = Vec::new();
        for (on, at, task) in &self.issued {
            let Some(place) = left.iter().position(|(.., of)| of == task) else { continue };
            let (there, done, _) = left.remove(place);
            times.push((*on, there, done - at));
        }
        times
    }
}

/// `[[block]]` with these changes: one queue that interrupts CPU 3, 200 us for anything.
fn disk(changes: &[(&str, &str)]) -> String {
    let mut text = "\n[[block]]\nname = \"disk\"\nqueues = 1\ndepth = 32\nirq_cpu = 3\nparallel = 8\nread_us = [200]\n\
                    write_us = [200]\nflush_us = [900]\nread_mb_per_s = 1000\nwrite_mb_per_s = 500\nsubmit_ns = 3000\n\
                    complete_ns = 2000\n"
        .to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// A machine of equal CPUs with a disk, in a file.
fn uniform8(disk: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let text = include_str!("../../../schedtwin-machine/machines/uniform8.toml");
    write!(file, "{text}{disk}").unwrap();
    file
}

/// Runs for a second, every sum verified at every event.
fn seen(machine: &str, kernel: &str, workload: &str) -> Seen {
    let scenario = Scenario::new(machine, kernel, workload, Some(SECOND)).unwrap();
    let mut twin: Twin<FlatBoard> = scenario.twin::<FlatBoard>(1).eager();
    let mut seen = Seen::default();
    twin.introduce(&mut seen);
    while twin.step(&mut seen) {}
    seen
}

fn on(disk: &str, kernel: &str, workload: &str) -> Seen {
    let file = uniform8(disk);
    seen(file.path().to_str().unwrap(), kernel, workload)
}

/// A metric of a run of two seconds.
fn measured(machine: &str, kernel: &str, workload: &str, name: &str) -> Option<f64> {
    let scenario = Scenario::new(machine, kernel, workload, Some(2 * SECOND)).unwrap();
    let result = scenario.run(1, Default::default()).unwrap();
    let mut found = result.metrics.iter().filter(|m| m.name == name && m.labels.is_empty());
    found.find(|m| m.stat == "mean").and_then(|m| m.value)
}

fn rtapp(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    write!(file, "{text}").unwrap();
    file
}

/// Requests that are served at once do not wait for each other: a reader of 200 us beside one that flushes for 900 us.
#[test]
fn a_short_request_overtakes_a_long_one() {
    let reads = |flushes: bool| {
        let flusher = r#""flusher": { "loop": -1, "io": { "type": "flush" } },"#;
        let text = format!(
            r#"{{ "tasks": {{ {} "reader": {{ "loop": -1, "io": {{ "bytes": 4096 }} }} }}, "global": {{ "duration": 1 }} }}"#,
            if flushes { flusher } else { "" }
        );
        let workload = rtapp(&text);
        let seen =
            on(&disk(&[]), "linux-6.12:cpufreq=performance", workload.path().to_str().unwrap());
        seen.times().iter().filter(|(.., ns)| *ns < 600 * US).count()
    };
    let (alone, beside) = (reads(false), reads(true));
    assert!(
        alone > 2_000 && beside * 100 >= alone * 95,
        "{alone} alone, {beside} beside a flusher"
    );
}

/// `blk_mq_complete_need_ipi()` on CPUs that share a cache: `rq_affinity` decides alone.
#[test]
fn equal_cpus_complete_where_the_interrupt_comes_or_where_rq_affinity_says() {
    for (affinity, at_home) in [(0, false), (1, false), (2, true)] {
        let kernel = format!("linux-6.12:rq_affinity={affinity}");
        let seen = on(&disk(&[]), &kernel, "fio --numjobs 3");
        let times = seen.times();
        assert!(times.len() > 5_000, "{} requests", times.len());
        for (issued_on, completed_on, ns) in times {
            let expected = if at_home { issued_on } else { CpuId(3) };
            assert_eq!(completed_on, expected, "rq_affinity={affinity}");
            // And the ways out of deep idle states, the interrupt and the softirq.
            assert!((200 * US..600 * US).contains(&ns), "{ns} ns");
        }
    }
}

/// Since 6.9 a CPU of another capacity hands the completion back to the submitter's; before it did not.
#[test]
fn a_big_submitter_is_interrupted_since_capacities_count() {
    let big = rtapp(
        r#"{ "tasks": { "reader": { "cpus": [7], "loop": -1, "io": { "bytes": 4096 }, "run": 50 } },
             "global": { "duration": 1 } }"#,
    );
    let workload = big.path().to_str().unwrap();
    for (kernel, completes_on) in [("linux-6.1", 0), ("linux-6.12", 7), ("linux-7.3", 7)] {
        let times = seen("pixel6", kernel, workload).times();
        assert!(times.len() > 500, "{kernel}: {} requests", times.len());
        let there =
            |(on, there, _): &(CpuId, CpuId, Ns)| *on == CpuId(7) && *there == CpuId(completes_on);
        assert!(times.iter().all(there), "{kernel}");
    }
}

/// A queue for each CPU: the request completes in the interrupt, on the CPU that submitted it.
#[test]
fn with_a_queue_for_each_cpu_requests_stay_where_they_are() {
    let times = seen("i5-10600k", "linux-6.12", "fio --numjobs 4 --rwmixread 50").times();
    assert!(times.len() > 10_000, "{} requests", times.len());
    assert!(times.iter().all(|(on, there, _)| on == there));
}

/// A queue has so many tags: who finds none sleeps for one, and nobody is forgotten.
#[test]
fn tags_bound_what_is_under_way() {
    let few = on(&disk(&[("depth = 32", "depth = 2")]), "linux-6.12", "fio --numjobs 5");
    assert_eq!(few.most, 2);
    // Two at a time of 200 us and the paths between.
    assert!((8_000..=10_000).contains(&few.completed.len()), "{}", few.completed.len());
    let tasks: std::collections::BTreeSet<u32> = few.completed.iter().map(|c| c.2.0).collect();
    assert_eq!(tasks.len(), 5, "every thread gets its turn");
    let many = on(&disk(&[]), "linux-6.12", "fio --numjobs 5");
    assert_eq!(many.most, 5);
}

/// The device serves so many at a time, and its link carries one.
#[test]
fn servers_and_the_link_are_queues() {
    let one = on(&disk(&[("parallel = 8", "parallel = 1")]), "linux-6.12", "fio --numjobs 4");
    assert_eq!(one.most, 4);
    // 4 KiB cross the link in 4 us, while the server is at the next one.
    assert!((4_800..=5_000).contains(&one.completed.len()), "{}", one.completed.len());
    // 1 MiB takes 1.05 ms on the link, whoever served it.
    let large = on(&disk(&[]), "linux-6.12", "fio --numjobs 4 --bs 1024");
    assert!((930..=955).contains(&large.completed.len()), "{}", large.completed.len());
}

/// A task sleeps uninterruptibly for its request, and a CPU's idle time meanwhile is iowait.
#[test]
fn sleepers_are_in_d_and_idle_time_is_iowait() {
    let seen = on(&disk(&[]), "linux-6.12", "fio");
    let reader = seen.issued[0].2;
    let slept = seen.states.iter().filter(|(task, _)| *task == reader).map(|(_, state)| *state);
    let slept: Vec<TaskState> = slept.skip(1).collect();
    assert!(slept.len() > 2_500, "{} sleeps", slept.len());
    assert!(slept.iter().filter(|s| **s == TaskState::Uninterruptible).count() > slept.len() - 10);
    let file = uniform8(&disk(&[]));
    let machine = file.path().to_str().unwrap();
    // One of eight CPUs, for the 200 of some 215 us of a round.
    let share = measured(machine, "linux-6.12", "fio", "iowait").unwrap();
    assert!((10.5..12.5).contains(&share), "{share} %");
    assert_eq!(measured(machine, "linux-6.12", "periodic", "iowait"), None, "without I/O: no row");
}

/// `SCHED_CPUFREQ_IOWAIT`: schedutil raises the clock of CPUs whose tasks wait for I/O.
#[test]
fn schedutil_boosts_after_io() {
    let mean = |kernel: &str| {
        let scenario = Scenario::new("i5-10600k", kernel, "fio", Some(2 * SECOND)).unwrap();
        let result = scenario.run(1, Default::default()).unwrap();
        let found = result.metrics.iter().find(|m| m.name == "throughput" && m.labels.is_empty());
        found.and_then(|m| m.value).unwrap()
    };
    let [with, without] = ["linux-6.12", "linux-6.12:iowait_hook=absent"].map(mean);
    assert!(with > without * 1.02, "{with} requests a second with the boost, {without} without");
}

/// menu up to 6.5 takes shallower states while tasks of the CPU wait for I/O.
#[test]
fn menu_looks_at_io_waiters() {
    let file = uniform8(&disk(&[("read_us = [200]", "read_us = [400]")]));
    let machine = file.path().to_str().unwrap();
    let too_shallow = |kernel| measured(machine, kernel, "fio --numjobs 8", "idle_too_shallow");
    let [old, new] = ["linux-5.18:cpuidle=menu", "linux-6.12:cpuidle=menu"]
        .map(|kernel| too_shallow(kernel).expect("CPUs were idle"));
    assert!(old > new + 10.0, "{old} % of the stays too shallow, {new} % without the rule");
}

/// Bytes to `/dev/null` cost calls; to a file they are copied.
#[test]
fn iorun_is_calls_or_copies() {
    let jobs = |device: &str| {
        let file = rtapp(&format!(
            r#"{{ "tasks": {{ "w": {{ "loop": -1, "run": 10, "iorun": 1048576, "sleep": 1000 }} }},
                 "global": {{ "duration": 1{device} }} }}"#
        ));
        measured("uniform8", "linux-6.12", file.path().to_str().unwrap(), "throughput").unwrap()
    };
    let (null, copied) = (jobs(""), jobs(r#", "io_device": "/tmp/out""#));
    // 1 MiB at 25 % of a system call's cost for each KiB is 64 us at the highest clock, several times that at the lowest.
    assert!(null > copied * 1.05 && null < copied * 1.4, "{null} and {copied} rounds a second");
}

/// A machine without a device, and a device that it has not.
#[test]
fn what_is_missing_is_told() {
    let named = rtapp(r#"{ "tasks": { "r": { "io": { "device": "sdz", "type": "reed" } } } }"#);
    let workload = named.path().to_str().unwrap();
    let faults = Scenario::new("pixel6", "linux-6.12", workload, None).err().unwrap().to_string();
    assert!(faults.contains("unknown \"type\" \"reed\""), "{faults}");
    let named = rtapp(r#"{ "tasks": { "r": { "loop": 1, "io": { "device": "sdz" } } } }"#);
    let workload = named.path().to_str().unwrap();
    for (machine, workload, complaint) in [
        ("pixel6", workload, "no block device \"sdz\""),
        ("rig8", workload, "has no block device"),
        ("rig8", "fio", "has no block device"),
        ("pixel6", "fio --device 3", "no block device 3: it has 1"),
    ] {
        let faults = Scenario::new(machine, "linux-6.12", workload, None).err().unwrap();
        assert!(faults.to_string().contains(complaint), "{complaint}: {faults}");
    }
}

/// What facts alone say holds with I/O, too: on each machine that has a device, under kernels old and new, with threads that
/// migrate, flush and think.
#[test]
fn the_invariants_hold() {
    let machines = [
        "pixel6",
        "pixel6:fast_switch=false,driver=sleeps,driver_latency_us=400",
        "i5-10600k",
        "laptop-8c16t",
        "x86-2cpu-hz100",
    ];
    for machine in machines {
        for kernel in ["linux-5.18", "linux-6.12", "linux-6.12:preempt=none", "linux-7.3:hz=1000"] {
            for workload in ["fio", "fio --numjobs 24 --rwmixread 60 --fsync 3 --thinktime 100"] {
                let name = format!("{machine} {kernel} {workload}");
                let scenario = Scenario::new(machine, kernel, workload, Some(SECOND / 5)).unwrap();
                crate::invariants::check(&name, &scenario, 1);
            }
        }
    }
}
