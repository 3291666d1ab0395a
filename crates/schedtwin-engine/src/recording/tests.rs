// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of what a trace's frequencies say of the recorded device.

use super::*;

/// A switch on each of `nr_cpus` CPUs, then the frequencies, `(CPU, MHz)`, then the switch back.
fn trace(nr_cpus: usize, frequencies: &[(usize, u32)]) -> String {
    let mut text = String::new();
    let mut us = 0;
    let mut line = |cpu: usize, event: &str| {
        us += 1;
        text.push_str(&format!("x-1 [{cpu:03}] d..2. 5.{us:06}: {event}\n"));
    };
    for cpu in 0..nr_cpus {
        let event = format!(
            "sched_switch: prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 prev_state=R ==> \
             next_comm=t{cpu} next_pid={} next_prio=120",
            100 + cpu
        );
        line(cpu, &event);
    }
    for (cpu, mhz) in frequencies {
        line(0, &format!("cpu_frequency: state={} cpu_id={cpu}", mhz * 1000));
    }
    line(0, "cpu_idle: state=0 cpu_id=0");
    text
}

fn read(text: &str, machine: &str, capacities: Option<&str>) -> TraceRecording {
    let machine = Machine::load(machine).unwrap();
    let capacities: Option<Capacities> = capacities.map(|text| text.parse().unwrap());
    let device = Device { machine: &machine, capacities: capacities.as_ref() };
    read_trace_from(text.as_bytes(), "t", device, &machine, None).unwrap_or_else(|e| panic!("{e}"))
}

fn clusters(trace: &TraceRecording) -> Vec<String> {
    let text = |c: &RecordedCluster| {
        format!("{}={}@{}", cpu_list(&c.cpus), c.capacity, c.full_speed_khz / 1000)
    };
    trace.clusters.iter().map(text).collect()
}

/// juno-r2: CPUs 0-3 have capacity 383 and 450, 800, 950 MHz, CPUs 4-5 1024 and 600, 900, 1200 MHz.
#[test]
fn recorded_clusters_are_never_split() {
    let juno = |littles: &[u32], bigs: &[u32]| {
        let mut all = Vec::new();
        for mhz in littles {
            all.extend([0, 3, 4, 5].map(|cpu| (cpu, *mhz)));
        }
        for mhz in bigs {
            all.extend([1, 2].map(|cpu| (cpu, *mhz)));
        }
        all
    };
    let cut = |mut all: Vec<(usize, u32)>, at_start| {
        if at_start {
            all.remove(0)
        } else {
            all.pop().expect("one")
        };
        all
    };
    let of_all = |cpus: std::ops::Range<usize>, mhz: &[u32]| -> Vec<(usize, u32)> {
        mhz.iter().flat_map(|mhz| cpus.clone().map(|cpu| (cpu, *mhz))).collect()
    };
    let own = [of_all(0..4, &[450, 950]), of_all(4..6, &[600, 1200])].concat();
    let phone =
        [of_all(0..4, &[1000, 1800]), of_all(4..7, &[900, 2400]), of_all(7..8, &[2800])].concat();
    let others = ["0,3-5=383@850", "1-2=1024@1100"];
    for (machine, nr_cpus, frequencies, expected, said) in [
        // A Juno of another revision, its big CPUs in the middle, told by events or by marks.
        ("juno-r2", 6, juno(&[450, 700, 850], &[1100]), &others[..], "by their numbers of CPUs"),
        // The big CPUs may have been slower than the small ones, or silent.
        (
            "juno-r2",
            6,
            juno(&[450, 700, 850], &[775]),
            &["0,3-5=383@850", "1-2=1024@775"],
            "by their numbers of CPUs",
        ),
        (
            "juno-r2",
            6,
            juno(&[450, 700, 850], &[]),
            &["0,3-5=383@850", "1-2=1024@1200"],
            "by their numbers of CPUs",
        ),
        // The beginning and the end of a recording may lie between the CPUs of a cluster.
        (
            "juno-r2",
            6,
            cut(juno(&[450, 700, 850], &[]), true),
            &["0,3-5=383@850", "1-2=1024@1200"],
            "2 recorded",
        ),
        (
            "juno-r2",
            6,
            cut(juno(&[450, 700, 850], &[]), false),
            &["0,3-5=383@850", "1-2=1024@1200"],
            "2 recorded",
        ),
        // The machine itself, and the same with other numbers.
        ("juno-r2", 6, own, &["0-3=383@950", "4-5=1024@1200"], ""),
        (
            "juno-r2",
            6,
            juno(&[450, 950], &[600]),
            &["0,3-5=383@950", "1-2=1024@1200"],
            "with other CPU numbers",
        ),
        // As many clusters, of other sizes: by speed.
        (
            "pixel6",
            8,
            phone,
            &["0-3=124@1800", "4-6=427@2400", "7=1024@2800"],
            "by speed, the slowest as the smallest",
        ),
        // Fewer clusters than domains: a guess, and said to be one.
        (
            "pixel6",
            6,
            juno(&[450, 850], &[1100]),
            &["0,3-5=124@850", "1-2=1024@1100"],
            "WARNING, a guess",
        ),
        // Nothing known: by number.
        (
            "juno-r2",
            6,
            vec![],
            &["0-3=383@950", "4-5=1024@1200"],
            "How the recorded board numbers its CPUs is unknown",
        ),
    ] {
        let trace = read(&trace(nr_cpus, &frequencies), machine, None);
        assert_eq!(clusters(&trace), expected, "{frequencies:?}: {:?}", trace.assumptions);
        let all = trace.assumptions.join("\n");
        assert!(all.contains(said) && all.is_empty() == said.is_empty(), "{said}: {all}");
        for cluster in
            trace.clusters.iter().filter(|c| !said.is_empty() && c.full_speed_khz == 850_000)
        {
            let few = format!("of {} only ", cpus_text(&cluster.cpus));
            assert!(all.contains(&few), "{few}: {all}");
        }
    }
}

#[test]
fn capacities_given_override_those_of_the_machine() {
    let text = trace(6, &[(0, 850), (3, 850), (4, 850), (5, 850), (1, 1100), (2, 1100)]);
    let given = read(&text, "juno-r2", Some("0,3-5=446,1=1024"));
    assert_eq!(clusters(&given), ["0,3-5=446@850", "1-2=1024@1100"]);
    assert!(given.assumptions.iter().any(|a| a.contains("--capacities where it names the CPU")));
    let assumed = read(&text, "juno-r2", None);
    assert!(given.recorded.work > assumed.recorded.work);
    let machine = Machine::load("juno-r2").unwrap();
    let capacities = "0-7=1024".parse().unwrap();
    let device = Device { machine: &machine, capacities: Some(&capacities) };
    let refused = read_trace_from(text.as_bytes(), "t", device, &machine, None).unwrap_err();
    assert!(refused.to_string().contains("names a CPU 7"), "{refused}");
}

/// A disk wakes `reader` on CPU 1 three times; the timer of CPU 0 wakes it once. The replay sleeps as often.
#[test]
fn a_device_interrupts_where_it_did() {
    let mut text = String::new();
    let mut line = |us: u64, cpu: u64, what: &str| {
        text.push_str(&format!("<idle>-0 [{cpu:03}] d.h1 5.{us:06}: {what}\n"));
    };
    let switch = |prev: &str, next: &str| {
        let pid = |name: &str| if name == "reader" { 7 } else { 0 };
        format!(
            "sched_switch: prev_comm={prev} prev_pid={} prev_prio=120 prev_state=S ==> \
             next_comm={next} next_pid={} next_prio=120",
            pid(prev),
            pid(next)
        )
    };
    for (ms, handler, cpu) in
        [(1, "nvme0q1", 1), (3, "nvme0q1", 1), (6, "arch_timer", 0), (9, "nvme0q1", 1)]
    {
        let us = ms * 1000;
        line(us, cpu, &format!("irq_handler_entry: irq=9 name={handler}"));
        line(us + 1, cpu, "sched_waking: comm=reader pid=7 prio=120 target_cpu=000");
        line(us + 2, cpu, "irq_handler_exit: irq=9 ret=handled");
        line(us + 10, 0, &switch("swapper/0", "reader"));
        line(us + 500, 0, &switch("reader", "swapper/0"));
    }
    let trace = read(&text, "uniform8", None);
    let recorded = &trace.recorded;
    assert_eq!((recorded.tied_to_time, recorded.by_device, recorded.unended), (4, 3, 1));
    let scenario =
        crate::Scenario::with_workload("uniform8", "linux-6.12", Ok(trace.workload), None);
    let result = scenario.unwrap().run(1, crate::RunOptions::default()).unwrap();
    let sleeps = result.metrics.iter().find(|metric| metric.name == "replayed_sleeps").unwrap();
    // The last one has no end.
    assert_eq!(sleeps.value, Some(4.0));
}

/// A kernel thread that is bound to CPU 3 is recorded there, then on CPU 5, and then it loses its CPU. The replay of the
/// same work without these two differs in nothing.
#[test]
fn a_replay_parts_where_the_recorded_kernel_did_something_else() {
    let parting_of = |cpus: [u64; 4], preempted: bool| {
        let mut text = String::new();
        let mut line = |us: u64, cpu: u64, what: &str| {
            text.push_str(&format!("<idle>-0 [{cpu:03}] d.h1 5.{us:06}: {what}\n"));
        };
        let switch = |prev: &str, state: &str, next: &str| {
            let pid = |name: &str| u8::from(name.starts_with('k')) * 7;
            format!(
                "sched_switch: prev_comm={prev} prev_pid={} prev_prio=120 prev_state={state} ==> \
                 next_comm={next} next_pid={} next_prio=120",
                pid(prev),
                pid(next)
            )
        };
        for (nr, cpu) in cpus.into_iter().enumerate() {
            let us = 3000 * (nr as u64 + 1);
            line(us, cpu, "sched_waking: comm=kworker/3:1 pid=7 prio=120 target_cpu=003");
            line(us + 10, cpu, &switch("swapper/3", "R", "kworker/3:1"));
            if preempted && nr == 3 {
                line(us + 200, cpu, &switch("kworker/3:1", "R", "swapper/3"));
                line(us + 210, cpu, &switch("swapper/3", "R", "kworker/3:1"));
            }
            line(us + 500, cpu, &switch("kworker/3:1", "S", "swapper/3"));
        }
        line(20_000, 0, "cpu_idle: state=0 cpu_id=0");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        std::fs::write(&path, text).unwrap();
        let machine = Machine::load("uniform8").unwrap();
        let trace = read_trace_with_moments(&path, &machine, &machine, None).unwrap();
        let workload = Ok(trace.workload.clone());
        let scenario = crate::Scenario::with_workload("uniform8", "linux-6.12", workload, None);
        parting(&scenario.unwrap(), &trace, 1)
    };
    let same = parting_of([3, 3, 3, 3], false);
    assert_eq!((same.sleeps, same.compared, same.first()), (4, 4, None), "{same:?}");

    let other = parting_of([3, 5, 3, 3], true);
    assert_eq!(other.first(), Some(Kind::OtherCpu));
    let moved = &other.kinds[&Kind::OtherCpu];
    // Back on CPU 3 it is where the replay is.
    assert_eq!((moved.count, &moved.by_thread[..]), (1, &[("kworker/3:1".to_owned(), 1)][..]));
    let first = moved.first.as_ref().unwrap();
    assert_eq!(first.thread, "kworker/3:1 (7)");
    assert!(first.recorded.starts_with("it runs on CPU 5 at 0.003010000 s, before on CPU 3"));
    assert!(first.replayed.contains("on CPU 3 at 0.0030"), "{first:?}");
    let kept = &other.kinds[&Kind::KeepsCpu];
    assert_eq!((kept.count, other.kinds.len()), (1, 2), "{other:?}");
    let recorded = &kept.first.as_ref().unwrap().recorded;
    assert_eq!(recorded, "it loses its CPU once until it sleeps again");
}

#[test]
fn capacities_are_read_or_refused() {
    for (text, expected) in [
        ("0-3=383,4-5=1024", Ok([Some(383), Some(383), Some(1024), None])),
        ("0,5=7", Ok([Some(7), None, Some(7), None])),
        ("", Err("`` is no CPU")),
        ("0-3", Err("CPU 0 has no capacity")),
        ("0=1,3-2=5", Err("CPUs 3-2 go backwards")),
        ("0-3=1,2=5", Err("CPUs of `2` are named twice")),
        ("0=0", Err("`0` is no capacity: from 1 to 1024")),
        ("0=1025", Err("`1025` is no capacity")),
        ("0=-", Err("`-` is no capacity")),
        ("a=5", Err("`a` is no CPU")),
        ("70000=5", Err("`70000` is no CPU")),
    ] {
        match (text.parse::<Capacities>(), expected) {
            (Ok(given), Ok(of)) => assert_eq!([0, 3, 5, 9].map(|cpu| given.of(cpu)), of, "{text}"),
            (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{fault}"),
            (given, _) => panic!("{text}: {given:?}"),
        }
    }
}

/// A thread that works on CPU 0 for 5 of every 16 ms, and one that answers on CPU 1 for 3 of them, from 100 s on; the lines by
/// their times in us.
fn work_and_help(rounds: u64) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    let switch = |cpu: u64, from: (&str, u32), state: &str, to: (&str, u32)| {
        format!(
            "x-{} [{cpu:03}] d..2. TIME: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> \
             next_comm={} next_pid={} next_prio=120\n",
            from.1, from.0, from.1, to.0, to.1
        )
    };
    let woken = |pid: u32, (comm, wakee): (&str, u32)| {
        format!(
            "x-{pid} [000] d.h2. TIME: sched_waking: comm={comm} pid={wakee} prio=120 target_cpu=000\n"
        )
    };
    // Names that look like fields.
    let (work, help) = (("a prev_pid=7", 1001), ("b next_pid=9", 1002));
    for round in 0..rounds {
        let at = 100_000_000 + 16_000 * round;
        lines.push((at, woken(0, work)));
        lines.push((at + 20, switch(0, ("swapper/0", 0), "R", work)));
        lines.push((at + 4000, woken(1001, help)));
        lines.push((at + 4020, switch(1, ("swapper/1", 0), "R", help)));
        lines.push((at + 5000, switch(0, work, "S", ("swapper/0", 0))));
        lines.push((at + 7000, switch(1, help, "S", ("swapper/1", 0))));
    }
    lines
}

fn text_of(lines: &[(u64, String)]) -> String {
    let stamp = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    lines.iter().map(|(at, line)| line.replace("TIME", &stamp(*at))).collect()
}

/// What ran for how long, ms by name.
fn ran(trace: &TraceRecording) -> Vec<(String, u64)> {
    let threads = trace.recorded.threads.iter();
    threads.map(|thread| (thread.name.to_string(), thread.cpu_time_ns / 1_000_000)).collect()
}

#[test]
fn names_that_look_like_fields_are_names() {
    let trace = read(&text_of(&work_and_help(40)), "pixel6", None);
    assert_eq!(trace.recorded.contradictions, 0);
    assert_eq!(ran(&trace), [("a prev_pid=7".into(), 199), ("b next_pid=9".into(), 119)]);
}

/// Of the time before a CPU's buffer begins only half is known: the replay begins where all have begun.
#[test]
fn a_replay_begins_where_all_buffers_have_begun() {
    let mut lines = work_and_help(40);
    let begins = 100_000_000 + 16_000 * 20;
    lines.retain(|(at, line)| *at >= begins || !line.contains("[001]"));
    let first = lines.iter().position(|(_, line)| line.contains("[001]")).unwrap();
    lines.insert(
        0,
        (
            begins - 16_000 * 20,
            "x-0 [000] d..1. TIME: cpu_frequency: state=300000 cpu_id=0\n".into(),
        ),
    );
    lines.insert(first + 1, (0, "##### CPU 1 buffer started ####\n".into()));
    let trace = read(&text_of(&lines), "pixel6", None);
    let late = &trace.trace.late;
    // Four lines a round, a fifth in front, and three of the round in which it begins.
    assert_eq!((late.cpus.as_slice(), late.events), (&[1][..], 20 * 4 + 1 + 3));
    assert_eq!(late.ns, 324_020_000);
    assert_eq!(ran(&trace), [("b next_pid=9".into(), 59), ("a prev_pid=7".into(), 95)]);
    assert_eq!(trace.recorded.contradictions, 0);
    assert_eq!(trace.recorded.assumed_frequency_ns / 1_000_000, 59, "CPU 0's clock goes on");
}

/// The machine sleeps for ten minutes while the thread is on the CPU: nobody works then.
#[test]
fn suspended_time_is_nobodys() {
    let mut lines = work_and_help(40);
    let at = 100_000_000 + 16_000 * 30 + 2000;
    lines.iter_mut().filter(|(time, _)| *time > at).for_each(|(time, _)| *time += 600_000_000);
    let place = lines.iter().position(|(time, _)| *time > at).unwrap();
    let step = |time: u64, what: &str| {
        (time, format!("x-1001 [000] ..... TIME: suspend_resume: {what}\n"))
    };
    lines.insert(place, step(at + 600_000_000, "machine_suspend[3] end"));
    lines.insert(place, step(at, "machine_suspend[3] begin"));
    lines.insert(place, step(at, "suspend_enter[3] begin"));
    let trace = read(&text_of(&lines), "pixel6", None);
    let suspends = trace.trace.suspends;
    assert_eq!((suspends.count, suspends.ns), (1, 600_000_000_000));
    assert_eq!(ran(&trace), [("a prev_pid=7".into(), 199), ("b next_pid=9".into(), 119)]);
    assert_eq!(trace.recorded.span_ns, 631_000_000);
}

/// A thread on two CPUs at once, and one that leaves and was not there.
#[test]
fn contradictions_are_counted() {
    let mut lines = work_and_help(10);
    for (_, line) in lines.iter_mut().filter(|(_, line)| line.contains("[001]")) {
        *line = line.replace("b next_pid=9", "a prev_pid=7").replace("1002", "1001");
    }
    let trace = read(&text_of(&lines), "pixel6", None);
    assert!(trace.recorded.contradictions >= 10, "{:?}", trace.recorded);
}

/// A recording of another machine would make its costs look measured.
#[test]
fn costs_of_another_machine_are_refused_with_all_signs() {
    let text = |nr_cpus: u32, state: u32, khz: &[u32]| {
        let mut text = format!("# entries-in-buffer/entries-written: 9/9   #P:{nr_cpus}\n");
        for (at, khz) in khz.iter().enumerate() {
            text.push_str(&format!(
                "a-1 [000] d..2 7.{at:06}: cpu_frequency: state={khz} cpu_id=0\n"
            ));
        }
        text + &format!("a-1 [000] d..2 8.000000: cpu_idle: state={state} cpu_id=0\n")
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    let machine = Machine::load("pixel6").unwrap();
    let measured = |text: &str, any| {
        std::fs::write(&path, text).unwrap();
        measure_costs(&path, &machine, any).map_err(|faults| faults.to_string())
    };
    let own: Vec<u32> = machine.domains.iter().next().unwrap().opps.iter().map(|o| o.khz).collect();
    assert!(measured(&text(8, 1, &own[..6]), false).is_ok());
    let others = [1_000_001, 1_100_001, 1_200_001, 1_300_001, 1_400_001];
    let told = measured(&text(4, 3, &others), false).unwrap_err();
    for sign in [
        "its machine has 4 CPUs, and pixel6 has 8",
        "CPU 0 entered idle state 3, and the last of pixel6 there is 1",
        "most of its frequencies are no operating points of pixel6",
        "or give --force",
    ] {
        assert!(told.contains(sign), "{sign}: {told}");
    }
    assert!(measured(&text(4, 3, &others), true).is_ok());
}
