// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings written as trace.dat come back event for event, and trace-cmd reads them.

use schedtwin_trace::event::{EventContext, TraceEvent, TraceEventKind, TraceSource};
use schedtwin_trace::event_out::{EventTraceDat, Written, write_events};
use schedtwin_trace::sources;
use std::path::Path;
use std::process::Command;

const TEXT: &str = "\
# tracer: nop
          <idle>-0     [000] dNh2. 5.000001: sched_waking: comm=ui main pid=7 prio=120 target_cpu=001
          <idle>-0     [000] dNs2. 5.000002: sched_waking: comm=rt pid=9 prio=98 target_cpu=000
          <idle>-0     [001] d..2. 5.000003: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui main next_pid=7 next_prio=120
         ui main-7     [001] .....  5.000100: tracing_mark_write: B|7|Choreographer#doFrame
         ui main-7     [001] .....  5.000200: tracing_mark_write: E|7
         ui main-7     [001] d..1. 5.000300: sched_process_fork: comm=ui main pid=7 child_comm=child child_pid=70
         ui main-7     [001] d..1. 5.000310: sched_wakeup_new: comm=child pid=70 prio=120 target_cpu=001
         ui main-7     [001] d.h1. 5.000320: irq_handler_entry: irq=33 name=a disk
         ui main-7     [001] d.h1. 5.000330: irq_handler_exit: irq=33 ret=handled
         ui main-7     [001] d.h1. 5.000340: hrtimer_expire_entry: hrtimer=0xffff1234 function=tick_sched_timer now=5000340000
         ui main-7     [001] d.h1. 5.000341: hrtimer_expire_exit: hrtimer=0xffff1234
CPU:1 [LOST 12 EVENTS]
         ui main-7     [001] d..2. 5.500000: sched_switch: prev_comm=ui main prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0     [001] d..1. 5.500001: cpu_idle: state=1 cpu_id=1
          <idle>-0     [001] d..1. 9.500001: cpu_idle: state=4294967295 cpu_id=1
          <idle>-0     [000] d..1. 9.500002: cpu_frequency: state=1500000 cpu_id=0
";

/// The events of a source in words that do not depend on the numbers of names.
fn told(source: &mut dyn TraceSource) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        let TraceEvent { at, cpu, name, context, kind } = event;
        let names = source.names();
        // Names of the context's thread are not in a trace.dat's records.
        let EventContext { pid, interrupt, need_resched, .. } = context;
        let mut kind = format!("{kind:?}");
        for id in (0..names.len()).rev() {
            let id = schedtwin_trace::event::NameId(id as u32);
            kind = kind.replace(&format!("{id:?}"), names.text(id));
        }
        if let TraceEventKind::Lost { events } = event.kind {
            told.push(format!("{at} {} lost {events:?}", cpu.0));
            continue;
        }
        let name = names.text(name);
        told.push(format!("{at} {} {name} {pid} {interrupt:?} {need_resched} {kind}", cpu.0));
    }
    assert_eq!(source.report().damage_count, 0, "{:?}", source.report().damages);
    told
}

fn converted(source: &mut dyn TraceSource, to: &Path) -> Written {
    let header = source.header().clone();
    let sink = EventTraceDat::create(to, &header).unwrap();
    write_events(source, Box::new(sink)).unwrap()
}

#[test]
fn events_come_back_and_trace_cmd_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat");
    let written = converted(&mut *sources::read(TEXT.as_bytes()).unwrap(), &path);
    assert_eq!(written.dropped, []);
    let expected = told(&mut *sources::read(TEXT.as_bytes()).unwrap());
    let mut again = sources::open(&path).unwrap();
    assert_eq!(again.header().format, "trace.dat");
    assert_eq!(told(&mut *again), expected);
    assert_eq!(again.report().lost().events, 12);

    let report = Command::new("trace-cmd").args(["report", "-i"]).arg(&path).output();
    let Ok(report) = report else {
        eprintln!("SKIPPED: there is no trace-cmd");
        return;
    };
    let text = String::from_utf8_lossy(&report.stdout);
    let complaint = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{complaint}");
    for (event, count) in
        [("sched_switch", 2), ("sched_waking", 2), ("tracing_mark_write", 2), ("cpu_idle", 2)]
    {
        assert_eq!(
            text.matches(&format!(" {event}:")).count(),
            count,
            "{event}: {text}{complaint}"
        );
    }
    // Seconds, which LISA needs, and not bare nanoseconds.
    assert!(text.contains(" 5.000001") && text.contains(" 9.500002"), "{text}");
    assert!(text.contains("[12 EVENTS DROPPED]"), "{text}");
    assert!(text.contains("tick_sched_timer"), "{text}");
}

/// Many events of several CPUs: pages are filled and read in order, and records of any length come back.
#[test]
fn pages_hold_what_is_written() {
    let mut text = String::new();
    for nr in 0..20_000_u64 {
        let (cpu, at) = (nr % 3, nr * 777_777);
        let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
        let mark = "x".repeat((nr * nr % 900) as usize);
        text.push_str(&format!(
            "a-{} [{cpu:03}] ...1. {seconds}.{ns:09}: tracing_mark_write: I|5|{mark}\n",
            nr % 100 + 1
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat");
    let written = converted(&mut *sources::read(text.as_bytes()).unwrap(), &path);
    assert_eq!((written.events, &written.dropped[..]), (20_000, &[][..]));
    let expected = told(&mut *sources::read(text.as_bytes()).unwrap());
    assert!(told(&mut *sources::open(&path).unwrap()) == expected);
}

/// LISA reads the file, too. Skipped, and saying so, without the PyPI package `lisa-linux`; `SCHEDTWIN_PYTHON` names another
/// interpreter.
#[test]
fn lisa_loads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat");
    // It does not read what trace-cmd prints of a loss.
    let whole: String = TEXT.split_inclusive('\n').filter(|line| !line.contains("LOST")).collect();
    converted(&mut *sources::read(whole.as_bytes()).unwrap(), &path);
    let python = std::env::var("SCHEDTWIN_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let output = Command::new(&python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/load_with_lisa.py"))
        .arg(&path)
        .args(["sched_switch", "sched_waking"])
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: there is no {python}");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = said.strip_prefix("skip: ") {
        eprintln!("SKIPPED: LISA cannot be loaded: {}", reason.trim_end());
        return;
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("sched_")).collect();
    assert_eq!(lines, ["sched_switch 2", "sched_waking 2"], "{said}{complaint}");
}
