// SPDX-License-Identifier: GPL-2.0-or-later
//! Listings, whole.

mod sample;

use schedtwin_trace::explain::{
    Query, Summary, Teller, What, explain, explain_perfetto, explain_record,
};
use schedtwin_trace::{Meta, Perfetto, Record, Sink};
use schedtwin_types::{
    CpuId, Decision, DecisionRecord, Fact, FactKind, IdleInput, IdleRule, PickRule, TaskId,
    TaskState, TeoRule, WakeSource,
};

fn record() -> Vec<u8> {
    record_of(sample::meta())
}

fn record_of(meta: Meta) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = Box::new(Record::new(&mut bytes, meta));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    bytes
}

fn list(record: &[u8], query: &Query) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = explain_record(record, query, &mut text).expect("a record");
    (String::from_utf8(text).expect("text"), summary)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert!(text == expected, "got:\n{text}\nexpected:\n{expected}");
}

#[test]
fn a_window_shows_decisions_with_their_inputs() {
    let query = Query { at: Some(2_000_000_000_000), window_ns: 100, ..Query::default() };
    let (text, summary) = list(&record(), &query);
    check(&text, EXPECTED_WINDOW);
    assert_eq!((summary.matched, summary.listed, summary.problem_count), (10, 10, 0));
}

const EXPECTED_WINDOW: &str = " 1999.999999900 [001] ipi                 wake list to CPU 31
 2000.000000000 [039] sched_wakeup_new    a name of more than 15-70000 on CPU 39
 2000.000000100 [039] sched_switch        idle R ==> a name of more than 15-70000
 1999.999999999 [001] placement           ui-12: CPU 2 -> 6, feec: least energy
                          cpu  role       util  capacity  use  energy delta  max util
                            2  prev        120       124  96%        123456       400
                      =>    6  max_spare    40      1024   3%         99999       300
                            7  idle scan     0         0    -             -         -
 2000.000000000 [001] frequency           policy0 (cpu-little): 1197000 -> 1803000 kHz, changed
                          cpu  util_avg  runnable_avg  util_est  boost  rt  dl  irq  min  max  perf
                            0       100           250         0    150   7   0    3   54    -   317
                            1         5             5         0      0   7   0    3   54  512    62
                          cpu 1: 40 with each task's clamps
                          cpu 0: runnable_avg 250 > util_avg 100: boosted by 150
                          util 396 -> raw 1650123 kHz -> table 1803000 kHz
 2000.000000001 [001] idle                state 2, tick stops (a sleep of a tick or more is expected), sleep length 3.999 ms; teo: deepest enabled state
                          from state 0 on: hits 8 7; intercepts 900 20; total 935
                          util 37, utilised above 16
 2000.000000002 [001] balance             CPU 1 pulls ui-12 from CPU 2 (level 1, newidle, migrate_task, imbalance 1); find_src_group: overloaded
 2000.000000003 [001] balance             CPU 1 finds nothing to pull (level 0, idle); find_src_group: nobody has a task to pull
 2000.000000004 [001] preemption          sugov:0-3 preempts ui-12; PREEMPT_SHORT: shorter slice, earliest eligible deadline
 2000.000000005 [001] pick                sugov:0-3 after ui-12; pick_eevdf: earliest eligible deadline
                          entity           depth    lag  deadline  eligible
                          ui-12 (running)      0  -1500    700000        no
                      =>  sugov:0-3            0    250   3000000       yes
                          group 2              0   1250   4000000       yes
";

#[test]
fn a_task_is_found_by_name_number_and_pattern() {
    for (pattern, matched) in
        [("sugov:0", 5), ("sugov*", 5), ("sugov:?-3", 5), ("3", 5), ("sugov", 0), ("a name*", 9)]
    {
        let query = Query { task: Some(pattern.to_string()), ..Query::default() };
        let (text, summary) = list(&record(), &query);
        assert_eq!(summary.matched, matched, "{pattern}:\n{text}");
        assert_eq!(summary.task_found, matched > 0, "{pattern}");
    }
}

#[test]
fn cgroups_are_called_by_their_paths() {
    let cgroups = ["/web", "/background", "/web/api"].map(String::from).into();
    let record = record_of(Meta { cgroups, ..sample::meta() });
    let events = ["cgroup_attach_task", "cfs_throttled"].map(String::from).into();
    let (text, _) = list(&record, &Query { events, ..Query::default() });
    assert!(text.contains("ui-12 to cgroup /web/api\n"), "{text}");
    assert!(text.contains("cgroup /web/api on CPU 39\n"), "{text}");
    // The tasks of a cgroup, and of those within, from then on: of ui-12 all that follows.
    let of = |task: &str| {
        let query = Query { task: Some(task.to_string()), ..Query::default() };
        let (_, summary) = list(&record, &query);
        (summary.task_found, summary.matched)
    };
    assert_eq!(of("/web"), of("/web/api"));
    assert!(of("/web").0 && of("/web").1 > 0, "{:?}", of("/web"));
    assert_eq!((of("/background"), of("/we")), ((false, 0), (false, 0)));
}

#[test]
fn a_cpu_shows_what_is_aimed_at_it() {
    let query = Query { cpu: Some(CpuId(2)), ..Query::default() };
    let (text, _) = list(&record(), &query);
    check(&text, EXPECTED_CPU);
}

const EXPECTED_CPU: &str = " 1999.999998700 [001] sched_migrate_task  ui-12: CPU 2 -> 1
 1999.999999999 [001] placement           ui-12: CPU 2 -> 6, feec: least energy
                          cpu  role       util  capacity  use  energy delta  max util
                            2  prev        120       124  96%        123456       400
                      =>    6  max_spare    40      1024   3%         99999       300
                            7  idle scan     0         0    -             -         -
 2000.000000002 [001] balance             CPU 1 pulls ui-12 from CPU 2 (level 1, newidle, migrate_task, imbalance 1); find_src_group: overloaded
";

/// A CPU to which only an interrupt was sent.
#[test]
fn a_cpu_shows_nothing_of_others() {
    let (text, _) = list(&record(), &Query { cpu: Some(CpuId(31)), ..Query::default() });
    check(&text, " 1999.999999900 [001] ipi                 wake list to CPU 31\n");
}

#[test]
fn what_lies_beyond_the_record_is_told() {
    for (at, window_ns, ends_before) in [
        (2_000_000_000_000, 100, None),
        (3_000_000_000_000, 1_000_000_000_000, None),
        (3_000_000_000_000, 100, Some(2_000_000_001_100)),
    ] {
        let query = Query { at: Some(at), window_ns, ..Query::default() };
        let summary = list(&record(), &query).1;
        assert_eq!(summary.ends_before.is_some(), ends_before.is_some(), "{at} {summary:?}");
        assert!(summary.ends_before >= ends_before, "{summary:?}");
        assert_eq!(summary.nr_cpus, 40);
    }
    // A window that begins with the last event.
    let end = list(&record(), &Query { at: Some(u64::MAX), window_ns: 0, ..Query::default() }).1;
    let end = end.ends_before.expect("no record is so long");
    let query = Query { at: Some(end + 100), window_ns: 100, ..Query::default() };
    let summary = list(&record(), &query).1;
    assert_eq!((summary.matched, summary.ends_before), (1, None));
    let query = Query { task: Some("uii".to_string()), ..Query::default() };
    let summary = list(&record(), &query).1;
    assert!(!summary.task_found && summary.task_names.contains("ui"), "{summary:?}");
}

/// No empty table for a request that was refused before anything was looked at, and no sleep of centuries.
#[test]
fn what_was_not_looked_at_is_not_listed() {
    let header = r#"{"schema":"schedtwin.record/1","title":"t","nr_cpus":8,"domains":["little","mid"],"policies":[[0,1,2,3],[4,5,6,7]],"provenance":{}}"#;
    let lines = [
        r#"{"at":5,"cpu":4,"decision":{"frequency":{"policy":1,"inputs":[],"util":0,"raw_khz":0,"khz":930000,"previous_khz":930000,"rule":"rate limit"}}}"#,
        r#"{"at":5,"cpu":4,"decision":{"frequency":{"policy":1,"inputs":[],"util":0,"raw_khz":0,"khz":930000,"previous_khz":930000,"rule":"rate limit","limited_until":1500000007}}}"#,
        r#"{"at":6,"cpu":1,"decision":{"idle":{"state":1,"stop_tick":true,"sleep_length_ns":9223372036854775807,"rule":"teo"}}}"#,
    ];
    let record = format!("{header}\n{}\n", lines.join("\n"));
    let (text, summary) = list(record.as_bytes(), &Query::default());
    assert_eq!(summary.problem_count, 0, "{summary:?}");
    check(
        &text,
        "    0.000000005 [004] frequency           policy4 (mid): stays at 930000 kHz, rate limit\n    \
         0.000000005 [004] frequency           policy4 (mid): stays at 930000 kHz, rate limit until 1.500000007\n    \
         0.000000006 [001] idle                state 1, tick stops, no timer; teo\n",
    );
}

#[test]
fn a_limit_still_counts() {
    let (text, summary) = list(&record(), &Query { limit: 3, ..Query::default() });
    assert_eq!(text.lines().count(), 3);
    assert_eq!((summary.matched, summary.listed), (41, 3));
}

#[test]
fn damaged_lines_are_told_and_skipped() {
    let mut record = record();
    record.extend_from_slice(b"{\"at\":\n");
    let (_, summary) = list(&record, &Query::default());
    assert_eq!(summary.matched, 41);
    assert_eq!(summary.problem_count, 1);
    assert_eq!(summary.problems, ["line 50: EOF while parsing a value (column 6)"]);

    let error = explain_record(&b"junk\n"[..], &Query::default(), &mut Vec::new());
    let error = error.expect_err("no header");
    assert_eq!(error.to_string(), "read the record: line 1: not a JSON object");
}

#[test]
fn the_first_twenty_damaged_lines_are_told() {
    let mut record = record();
    record.extend_from_slice(&b"{\"at\":\n".repeat(30));
    let summary = list(&record, &Query::default()).1;
    assert_eq!((summary.problems.len(), summary.problem_count), (20, 30));
}

/// Lines are a little out of order, so reading goes on for 10 ms behind the window, and no further.
#[test]
fn reading_ends_behind_the_window() {
    let query = Query { at: Some(1_000), window_ns: 100, ..Query::default() };
    for (behind, read) in [(0, true), (1, false)] {
        let at = 1_000 + 100 + 10_000_000 + behind;
        let fact = format!(r#"{{"at":{at},"cpu":0,"fact":"sched_tick"}}"#);
        let record = format!("{HEADER}\n{fact}\nnot a line\n");
        let summary = list(record.as_bytes(), &query).1;
        assert_eq!(summary.problem_count, u64::from(read), "{at}: {summary:?}");
    }
}

const HEADER: &str = r#"{"schema":"schedtwin.record/1","title":"t","nr_cpus":8,"domains":[],"policies":[],"provenance":{}}"#;

/// What is told without a file is worded as in a listing.
#[test]
fn a_teller_says_what_a_listing_shows() {
    let mut teller = Teller::default();
    teller.header(&sample::meta());
    sample::tasks().iter().for_each(|task| teller.task(task));
    let mut text = String::new();
    sample::facts().iter().for_each(|fact| text.push_str(&teller.fact(fact)));
    sample::decisions().iter().for_each(|record| text.push_str(&teller.decision(record)));
    check(&text, &list(&record(), &Query::default()).0);
}

#[test]
fn numbers_are_worded_by_their_size() {
    let (teller, cpu) = (Teller::default(), CpuId(0));
    let balance = |moved| FactKind::Balance { level: 1, idle: 2, moved };
    let after = |spent_ns| FactKind::IrqExit { spent_ns };
    for (kind, end) in [
        (balance(0), "newidle: 0 tasks moved"),
        (balance(1), "newidle: 1 task moved"),
        (balance(2), "newidle: 2 tasks moved"),
        (after(9_999), "after 9999 ns"),
        (after(10_000), "after 10.000 us"),
        (after(999_999), "after 999.999 us"),
        (after(1_000_000), "after 1.000 ms"),
    ] {
        let text = teller.fact(&Fact { at: 0, cpu, kind });
        assert!(text.ends_with(&format!(" {end}\n")), "{text}");
    }
    for (sleep_length_ns, end) in [
        (None, ""),
        (Some(-1), ", the timer is overdue"),
        (Some(0), ", sleep length 0 ns"),
        (Some(i64::MAX), ", no timer"),
    ] {
        let rule = IdleRule::Teo(TeoRule::Deepest);
        let (state, stop_tick, tick_rule, input) = (1, false, None, IdleInput::default());
        let decision = Decision::Idle { state, stop_tick, sleep_length_ns, rule, tick_rule, input };
        let text = teller.decision(&DecisionRecord { at: 0, cpu, decision });
        assert!(text.contains(&format!("state 1, tick stays{end};")), "{text}");
    }
}

/// A choice among one shows no table, and both who leaves and who comes are asked about.
#[test]
fn a_pick_is_about_all_who_take_part() {
    let template = sample::decisions().pop().expect("a pick");
    let Decision::Pick { candidates, .. } = template.decision else { panic!("a pick") };
    for (count, lines) in [(0, 1), (1, 1), (2, 4)] {
        let candidates = candidates[..count].to_vec();
        let (prev, next, rule) = (TaskId(12), TaskId(3), PickRule::EarliestDeadline);
        let decision = Decision::Pick { prev, next, rule, candidates };
        let record = DecisionRecord { at: 5, cpu: CpuId(0), decision };
        let text = Teller::default().decision(&record);
        assert_eq!(text.lines().count(), lines, "{text}");
        let mut bytes = Vec::new();
        let mut sink = Box::new(Record::new(&mut bytes, sample::meta()));
        sample::tasks().iter().for_each(|task| sink.task(task));
        sink.decision(&record);
        sink.finish().expect("memory takes everything");
        for (task, matched) in [("ui", 1), ("sugov:0", 1), ("a name*", 0)] {
            let query = Query { task: Some(task.to_string()), ..Query::default() };
            assert_eq!(list(&bytes, &query).1.matched, matched, "{task}");
        }
    }
}

#[test]
fn a_perfetto_trace_shows_the_facts() {
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    let query = Query { task: Some("ui".to_string()), ..Query::default() };
    let mut text = Vec::new();
    let summary = explain_perfetto(&bytes[..], &query, &mut text).expect("a trace");
    check(&String::from_utf8(text).expect("text"), EXPECTED_PERFETTO);
    assert!(summary.task_found);
}

const EXPECTED_PERFETTO: &str =
    " 1999.999998600 [001] sched_waking        ui-12 by a timer, last on CPU 2
 1999.999998700 [001] sched_migrate_task  ui-12: CPU 2 -> 1
 1999.999998800 [001] sched_wakeup        ui-12 on CPU 1
 1999.999999200 [001] sched_switch        idle R ==> ui-12
 1999.999999400 [  -] task_signals        ui-12: util_avg 90, runnable_avg 95, util_est 80
 2000.000001100 [001] sched_switch        ui-12 S ==> idle
";

/// A record comes from somebody else as well: what is in its names moves no cursor and makes no line of its own.
#[test]
fn names_of_a_record_do_not_act_on_the_terminal() {
    let record = String::from_utf8(record()).expect("text");
    let long = "x".repeat(70_000);
    for odd in ["\\u001b[31mui\\n 1.000000000 [000] tick", "\\u009b2J\\u202e", &long] {
        let record = record.replace("\"ui\"", &format!("\"{odd}\""));
        let record = record.replace("cpu-little", odd).replace("sugov:0", odd);
        let (text, summary) =
            list(record.as_bytes(), &Query { window_ns: 100, ..Query::default() });
        let acts = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!text.contains(acts), "{text:?}");
        assert!(summary.listed > 20 && text.lines().all(|line| line.starts_with(' ')), "{text}");
        assert!(!text.lines().any(|line| line.starts_with(" 1.0")), "{text}");
    }
}

/// What a file is, a record or a trace, is told by what it holds, not by its name.
#[test]
fn a_file_is_listed_as_what_it_holds() {
    let mut trace = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut trace, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    let query = Query { task: Some("ui".to_string()), ..Query::default() };
    let of_record = list(&record(), &query).0;
    let directory = tempfile::tempdir().expect("a fresh directory");
    let path = directory.path().join("file");
    for (bytes, expected) in [(trace, EXPECTED_PERFETTO), (record(), of_record.as_str())] {
        std::fs::write(&path, bytes).expect("written");
        let mut text = Vec::new();
        explain(&path, &query, &mut text).expect("a record or a trace");
        check(&String::from_utf8(text).expect("text"), expected);
    }
}

/// A task is woken behind another one that runs on, moves to a second CPU and runs there at last; what it preempts waits until
/// the record ends.
#[test]
fn the_longest_waits_tell_why_and_what_ran_meanwhile() {
    let [first, second] = [CpuId(0), CpuId(1)];
    let [long, late, other, moved] = [12, 15, 31, 3].map(TaskId);
    let running = TaskState::Running;
    let switch = |prev, next, prev_state| FactKind::Switch { prev, next, prev_state };
    let wakes = |task| FactKind::Waking { task, source: WakeSource::Task, prev_cpu: first };
    let facts = [
        (0, first, switch(TaskId::IDLE, long, running)),
        (0, second, switch(TaskId::IDLE, other, running)),
        (500, first, switch(TaskId::IDLE, moved, running)),
        (600, second, switch(other, moved, TaskState::Preempted)),
        (650, second, switch(moved, other, TaskState::Interruptible)),
        // It had left before it ran there; the path that took it off is stamped at its end.
        (700, first, switch(moved, long, TaskState::Preempted)),
        (1_000, second, wakes(late)),
        (2_000, first, FactKind::Wakeup { task: late, target: first, new: false }),
        (5_002_000, first, FactKind::Migrate { task: late, from: first, to: second }),
        (6_002_000, second, switch(other, late, TaskState::Preempted)),
        (7_002_000, second, switch(late, TaskId::IDLE, TaskState::Interruptible)),
    ];
    let mut bytes = Vec::new();
    let mut sink = Box::new(Record::new(&mut bytes, sample::meta()));
    sample::tasks().iter().for_each(|task| sink.task(task));
    facts.iter().for_each(|(at, cpu, kind)| sink.fact(&Fact { at: *at, cpu: *cpu, kind: *kind }));
    sink.finish().expect("memory takes everything");
    let waits = Query { what: What::Waits, limit: 20, ..Query::default() };
    let (text, summary) = list(&bytes, &waits);
    let who = |id: TaskId| {
        let name = sample::tasks().into_iter().find(|task| task.id == id).map(|task| task.name);
        name.map_or(format!("task-{id}"), |name| format!("{name}-{id}"))
    };
    assert!(text.starts_with("3 waits for a CPU, 7.001 ms in all; the longest 3:\n"), "{text}");
    let lines: Vec<&str> = text.lines().skip(3).collect();
    let why = format!("woken by {}, moved", who(other));
    let meanwhile = format!("{} 5.001 ms, {} 1.000 ms", who(long), who(other));
    for wanted in ["6.001 ms", &who(late), &why, &meanwhile] {
        assert!(lines[0].contains(wanted), "{wanted} in {text}");
    }
    let why = format!("preempted by {}, still waits", who(late));
    assert!(lines[1].contains("1.000 ms") && lines[1].contains(&why), "{text}");
    assert_eq!((summary.matched, summary.listed), (3, 3));
    let (json, _) = list(&bytes, &Query { json: true, cpu: Some(second), ..waits });
    let waits: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (waits.len(), &waits[0]["wait"]["ns"], &waits[0]["at"]),
        (3, &6_001_000.into(), &1_000.into())
    );
}

/// Names choose entries; one that no entry has gets those that there are.
#[test]
fn names_choose_entries() {
    let of = |names: &[&str]| Query {
        events: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Query::default()
    };
    let (text, _) = list(&record(), &of(&["pick", "sched_wakeup_new"]));
    let named = |line: &&str| line.starts_with(' ') && line.contains('[');
    assert!(text.lines().filter(named).count() >= 2, "{text}");
    for line in text.lines().filter(named) {
        assert!(line.contains(" pick ") || line.contains(" sched_wakeup_new "), "{line}");
    }
    let (none, summary) = list(&record(), &of(&["sched_swich"]));
    assert!(none.is_empty() && summary.event_names.contains("sched_switch"), "{summary:?}");
}
