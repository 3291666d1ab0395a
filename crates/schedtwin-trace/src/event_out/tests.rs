// SPDX-License-Identifier: GPL-2.0-or-later
//! Every row of the table of tracepoints is written to each format and comes back.

use super::*;
use crate::event::{EventContext, Interrupt, SourceReport, TraceHeader};
use crate::sources;
use crate::tracepoint::row::{ABSENT, Field, Type};
use schedtwin_types::CpuId;
use std::path::Path;

/// A source of given events.
struct Given {
    events: std::vec::IntoIter<TraceEvent>,
    names: Names,
    header: TraceHeader,
    report: SourceReport,
}

impl TraceSource for Given {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, SourceFault> {
        Ok(self.events.next())
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn report(&self) -> &SourceReport {
        &self.report
    }
}

/// Some value of a field; `absent`: none where there may be none.
fn value(row: &Tracepoint, field: &Field, absent: bool, names: &mut Names) -> i64 {
    let mut name = |text: &str| i64::from(names.intern(text).0);
    match field.ty {
        Type::PrevPid | Type::Target | Type::AnyCpu if absent => ABSENT,
        // A task without a number has nothing.
        Type::Comm | Type::I32 if absent && field.name.starts_with("prev_") => ABSENT,
        Type::IdleState if absent => -1,
        Type::Callsite => ABSENT,
        Type::Comm | Type::Text | Type::Reason => name("a name"),
        ty if ty.is_function() => name("a_function"),
        Type::Vector => name(crate::tracepoint::row::vector(row.name)),
        Type::State => 2,
        Type::Flag | Type::Below => 1,
        Type::Hex | Type::Address | Type::Work => 0xffff_8000_1234_5678_u64 as i64,
        _ => 5,
    }
}

/// An event of each tracepoint, twice: with all that it may tell, and with what it has to.
fn of_every_row() -> Given {
    let mut names = Names::new();
    let mut events = Vec::new();
    for row in TRACEPOINTS.iter().filter(|row| !row.is_mark()) {
        for absent in [false, true] {
            let mut values = Values::default();
            let kept = row.fields.iter().filter(|field| field.ty.is_kept());
            for (at, field) in kept.enumerate() {
                values.0[at] = value(row, field, absent, &mut names);
            }
            let comm = names.intern("ui");
            let interrupt = Interrupt::Task;
            let context = EventContext { pid: 7, comm, interrupt, ..EventContext::default() };
            let (at, name) = (1000 + events.len() as u64, names.intern(row.name));
            let kind = (row.make)(&values);
            events.push(TraceEvent { at, cpu: CpuId(1), name, context, kind });
        }
    }
    let (header, report) = (TraceHeader::default(), SourceReport::default());
    Given { events: events.into_iter(), names, header, report }
}

/// Times, names and kinds of events, in words.
fn told(source: &mut dyn TraceSource) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        let mut kind = format!("{:?}", event.kind);
        for id in (0..source.names().len() as u32).rev() {
            kind = kind.replace(&format!("{:?}", NameId(id)), source.names().text(NameId(id)));
        }
        told.push(format!("{} {} {kind}", event.at, source.names().text(event.name)));
    }
    assert_eq!(source.report().damage_count, 0, "{:?}", source.report().damages);
    told
}

/// Writes every event to a file and reads it again.
fn again(path: &Path, sink: Box<dyn EventSink>) -> (Vec<String>, Written) {
    let written = write_events(&mut of_every_row(), sink).unwrap();
    (told(&mut *sources::open(path).unwrap()), written)
}

#[test]
fn every_tracepoint_comes_back_from_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let (told_again, written) = again(&path, Box::new(EventText::create(&path, 2).unwrap()));
    assert_eq!(written.dropped, []);
    assert_eq!(told_again, told(&mut of_every_row()));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("prio=120"), "no priority is made up: {text}");
    assert!(text.contains("sched_process_exit: comm=<...> pid=5\n"), "{text}");
}

#[test]
fn every_tracepoint_comes_back_from_trace_dat() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.dat");
    let sink = EventTraceDat::create(&path, &TraceHeader::default()).unwrap();
    let (told_again, written) = again(&path, Box::new(sink));
    assert_eq!(written.dropped, []);
    // A record does not hold the CPUs of a mask.
    let without_mask = |text: &String| text.replace("Some(cpu5), reason: a", "None, reason: a");
    let expected: Vec<_> = told(&mut of_every_row()).iter().map(without_mask).collect();
    assert_eq!(told_again, expected);
}

#[test]
fn tracepoints_that_have_a_number_come_back_from_perfetto() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pftrace");
    let sink = EventPerfetto::create(&path, &TraceHeader::default()).unwrap();
    let (told_again, written) = again(&path, Box::new(sink));
    let dropped: Vec<_> = written.dropped.iter().map(|(name, _)| &name[..]).collect();
    // Timers and work items are named by addresses; the rest has no message.
    assert!(dropped.contains(&"timer_start") && dropped.contains(&"cpu_idle_miss"), "{dropped:?}");
    assert!(!dropped.contains(&"sched_wakeup_task_attr"), "{dropped:?}");
    for event in told(&mut of_every_row()) {
        let name = event.split(' ').nth(1).unwrap();
        let has_message = Tracepoint::named(name).is_some_and(|row| row.perfetto != 0);
        // A message without a CPU is one with CPU 0; columns take the thread that ran from the switch before.
        let told = !event.contains("target: None") && !event.contains("prev: None");
        if has_message && !dropped.contains(&name) && told {
            assert!(told_again.contains(&event), "{event} in {told_again:#?}");
        }
    }
}

#[test]
fn tables_have_every_tracepoint_and_nothing_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    let sink = EventTables::create(&path, TableFormat::Csv).unwrap();
    let written = write_events(&mut of_every_row(), Box::new(sink)).unwrap();
    assert_eq!(written.dropped, []);
    let table = |event: &str| std::fs::read_to_string(path.join(format!("{event}.csv"))).unwrap();
    for (event, columns, row) in [
        ("timer_start", "timer,function,expires,now", "18446603336526616184,a_function,5,0"),
        ("workqueue_queue_work", "work,function,req_cpu", "18446603336526616184,a_function,5"),
        ("sched_wakeup_task_attr", "pid,cpu_affinity", "5,18446603336526616184"),
        ("ipi_raise", "target_cpus,reason", "32,a name"),
        ("sched_process_exit", "pid", "5"),
        ("sched_process_fork", "pid,child_comm,child_pid", "5,a name,5"),
        (
            "sched_switch",
            "prev_comm,prev_pid,prev_prio,prev_state,next_comm,next_pid,next_prio",
            "a name,5,5,D,a name,5,5",
        ),
    ] {
        let text = table(event);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(&*format!("Time,__cpu,__pid,__comm,{columns}")), "{event}");
        assert!(lines.next().unwrap().ends_with(&format!(",1,7,ui,{row}")), "{text}");
    }
    let switches = table("sched_switch");
    assert!(switches.ends_with(",1,7,ui,,,,D,a name,5,5\n"), "{switches}");
}
