// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

const IDLE: &str = "<idle>-0 [003] d..2 7.000001: ";

fn named(comm: &str, pid: u32, prio: i32) -> Named<'_> {
    Named { comm, pid, prio }
}

fn events_of(text: &str) -> (Vec<String>, Result<Summary, Fault>) {
    let mut seen = Vec::new();
    let result = read(text.as_bytes(), &mut |_, event| {
        seen.push(format!("{event:?}"));
        ControlFlow::Continue(())
    });
    (seen, result)
}

#[test]
fn heads_of_both_forms_are_found_behind_any_name() {
    for (text, comm, pid, cpu, flags, at) in [
        (
            "   <...>-1744  ( 1744) [005] .... 41287.854747: x: y",
            "<...>",
            1744,
            5,
            "....",
            41_287_854_747_000,
        ),
        (
            "<idle>-0 (-----) [000] d..1 41287.854696: cpu_idle: state=1",
            "<idle>",
            0,
            0,
            "d..1",
            41_287_854_696_000,
        ),
        ("a[1]-b-2-31 [012] dNH5. 71.000009: x: y", "a[1]-b-2", 31, 12, "dNH5.", 71_000_009_000),
        (
            "  ->transport-5851 [007] d..3 1.000000: x: y",
            "->transport",
            5851,
            7,
            "d..3",
            1_000_000_000,
        ),
        ("a [003] b-9 [004] .... 1.000000: x: y", "a [003] b", 9, 4, "....", 1_000_000_000),
        ("my (tool)-9 [004] .... 1.000000: x: y", "my (tool)", 9, 4, "....", 1_000_000_000),
        ("trace-cmd-1701  [001]    76.211513: x:   y", "trace-cmd", 1701, 1, "", 76_211_513_000),
        ("a-1 [1000] d... 1.000000001: x: y", "a", 1, 1000, "d...", 1_000_000_001),
    ] {
        let line = parse_line(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((line.comm, line.pid, line.cpu, line.flags), (comm, pid, cpu, flags), "{text}");
        assert_eq!(line.at, at, "{text}");
    }
    assert_eq!(parse_line("a-1 [000] .... 1.000000: x: y").unwrap().event, "x");
}

#[test]
fn contexts_come_from_the_third_flag() {
    for (flags, context) in [
        ("d..2", Context::Task),
        ("d.s3", Context::Softirq),
        ("d.h1", Context::Hardirq),
        ("dNHa", Context::Hardirq),
        ("d.Z1.", Context::Hardirq),
        ("", Context::Unknown),
    ] {
        let text = format!("a-1 [000] {flags} 1.000000: x: y");
        assert_eq!(parse_line(&text).unwrap().context(), context, "{flags}");
    }
}

#[test]
fn lines_that_are_none_say_what_they_lack() {
    for (text, fault) in [
        ("hello", "no [CPU]"),
        ("[000]", "no TASK-PID"),
        ("a [000] .... 1.000000: x: y", "no TASK-PID"),
        ("a-1 [2000] .... 1.000000: x: y", "a CPU beyond 1023"),
        ("a-1 [000]", "no time"),
        ("a-1 [000] .... x: y", "a time without a fraction; record with trace_clock local"),
        ("a-1 [000] .... 12345: x: y", "a time without a fraction; record with trace_clock local"),
        ("a-1 [000] .... 1.00: x: y", "a time in neither microseconds nor nanoseconds"),
        ("a-1 [000] .... +1.000000: x: y", "no time"),
        ("a-1 [000] .... 99999999999999999999.000000: x: y", "no time"),
        ("a-1 [000] .... 1.000000: x", "no event"),
    ] {
        assert_eq!(parse_line(text).unwrap_err(), fault, "{text}");
    }
}

#[test]
fn events_are_read_in_both_spellings() {
    let switch =
        |left| Event::Switch { prev: named("a b", 5, 120), left, next: named("c-d", 6, 89) };
    for (text, expected) in [
        (
            "sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=c-d next_pid=6 next_prio=89",
            switch(Left::Asleep),
        ),
        (
            "sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=c-d next_pid=6 next_prio=89",
            switch(Left::Runnable),
        ),
        (
            "sched_switch:    prev_comm=a b prev_pid=5 prev_prio=120 prev_state=4096 next_comm=c-d next_pid=6 next_prio=89",
            switch(Left::Runnable),
        ),
        (
            "sched_switch:    prev_comm=a b prev_pid=5 prev_prio=120 prev_state=130 next_comm=c-d next_pid=6 next_prio=89",
            switch(Left::Asleep),
        ),
        (
            "sched_switch:    prev_comm=a b prev_pid=5 prev_prio=120 prev_state=64 next_comm=c-d next_pid=6 next_prio=89",
            switch(Left::Dead),
        ),
        ("sched_switch:         a b:5 [120] x ==> c-d:6 [89]", switch(Left::Dead)),
        (
            "sched_switch:  x ==> y:5 [120] D ==> a [b]:6 [-1]",
            Event::Switch {
                prev: named("x ==> y", 5, 120),
                left: Left::Asleep,
                next: named("a [b]", 6, -1),
            },
        ),
        (
            "sched_wakeup: comm=-> x pid=5 prio=120 target_cpu=007",
            Event::Wakeup(named("-> x", 5, 120)),
        ),
        ("sched_waking: x:5 [98] CPU:002", Event::Waking(named("x", 5, 98))),
        ("sched_wakeup_new: x:5 [120] success=1 CPU:002", Event::WakeupNew(named("x", 5, 120))),
        (
            "sched_process_fork: comm=sh pid=5 child_comm=a b child_pid=6",
            Event::Fork { parent: 5, child_comm: "a b", child: 6 },
        ),
        ("sched_process_exit: comm=a pid=5 prio=120 group_dead=true", Event::Exit { pid: 5 }),
        ("cpu_idle: state=4294967295 cpu_id=6", Event::Idle { cpu: 6, state: None }),
        ("cpu_frequency: state=1804800 cpu_id=3", Event::Frequency { cpu: 3, khz: 1_804_800 }),
        ("tracing_mark_write: B|1|x: y", Event::Other),
        (
            "print:     tracing_mark_write: cpu_frequency:        state=450000 cpu_id=3",
            Event::Frequency { cpu: 3, khz: 450_000 },
        ),
        (
            "tracing_mark_write: cpu_frequency_devlib: frequency=450000 cpu_id=3",
            Event::Frequency { cpu: 3, khz: 450_000 },
        ),
        ("print: cpu_frequency: state=x cpu_id=3", Event::Other),
        ("print: cpu_frequency: state=1 cpu_id=5000", Event::Other),
    ] {
        let text = format!("{IDLE}{text}");
        assert_eq!(parse_event(&parse_line(&text).unwrap()), Ok(expected), "{text}");
    }
}

#[test]
fn what_a_file_holds_is_counted() {
    let text = format!(
        "# tracer: nop\n# entries-in-buffer/entries-written: 90/100   #P:8\nversion = 6\ncpus=6\n\
         CPU 2 is empty\nCPU:3 [LOST 12 EVENTS]\nCPU:1 [EVENTS DROPPED]\nCPU:0 [5 EVENTS DROPPED]\n\
         {IDLE}print: first\nsecond line of it\n\n{IDLE}cpu_idle: state=1 cpu_id=3\n"
    );
    let (seen, summary) = events_of(&text);
    assert_eq!(seen.len(), 2);
    let expected = Summary {
        lines: 12,
        events: 2,
        unknown: 1,
        unknown_by_name: [("print".to_owned(), 1)].into(),
        cut: 0,
        foreign: 1,
        lost: 10 + 12 + 5,
        lost_uncounted: 1,
    };
    assert_eq!(summary.unwrap(), expected);
}

#[test]
fn faults_are_told_with_their_lines_all_at_once() {
    let lines = [
        "sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=? ==> next_comm=b next_pid=6 next_prio=1",
        "sched_switch: prev_comm=a prev_pid=-5 prev_prio=120",
        "sched_switch: nothing of it",
        "sched_waking: comm=a prio=5",
        "sched_wakeup: 5",
        "cpu_idle: state=1 cpu_id=5000",
        "cpu_frequency: cpu_id=5",
        "sched_process_fork: comm=a pid=5",
    ];
    let text: String = lines.iter().map(|line| format!("{IDLE}{line}\n")).collect();
    let (seen, result) = events_of(&text);
    assert!(seen.is_empty());
    assert_eq!(
        result.unwrap_err().to_string(),
        "line 1: event sched_switch has no readable field `prev_state`\n\
         line 2: event sched_switch has no readable field `prev_pid`\n\
         line 3: event sched_switch has an unknown form\n\
         line 4: event sched_waking has no readable field `pid`\n\
         line 5: event sched_wakeup has an unknown form\n\
         line 6: event cpu_idle has no readable field `cpu_id`\n\
         line 7: event cpu_frequency has no readable field `state`\n\
         line 8: event sched_process_fork has no readable field `child_comm`"
    );
    let many = format!("{IDLE}cpu_idle: x\n").repeat(1000);
    let Err(Fault::Lines(kept, 1000)) = events_of(&many).1 else { panic!("all are counted") };
    assert_eq!(kept.len(), FAULTS_KEPT);
}

#[test]
fn no_trace_and_times_that_jump_back_are_refused() {
    for (text, message) in [
        ("", "it is not ftrace text: it has no trace line"),
        ("# tracer: nop\n", "it is not ftrace text: it has no trace line"),
        ("<!DOCTYPE html>\n", "it is not ftrace text: line 1: no [CPU]"),
        (
            "a-1 [000] d... 5.000000: x: y\na-1 [001] d... 4.999500: x: y\na-1 [001] d... 4.5: x: y\n\
             a-1 [001] d... 4.000000: x: y\n",
            "line 4: the time goes back by 1000000 us",
        ),
    ] {
        assert_eq!(events_of(text).1.unwrap_err().to_string(), message);
    }
}

#[test]
fn long_lines_and_bytes_that_are_no_text_do_no_harm() {
    let mut bytes = b"a\xe4\xb8-1 [000] d... 5.000000: print: ".to_vec();
    bytes.extend(std::iter::repeat_n(b'x', 3 * LINE_MAX));
    bytes.extend(b"\nb-2 [000] d... 5.000001: cpu_idle: state=0 cpu_id=0");
    let mut seen = Vec::new();
    let summary = read(&bytes[..], &mut |line, event| {
        seen.push((line.comm.to_owned(), event == Event::Other));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(summary.lines, 2);
    assert_eq!(seen, [("a\u{fffd}".to_owned(), true), ("b".to_owned(), false)]);
}

#[test]
fn reading_can_be_broken_off() {
    let text = format!("{IDLE}cpu_idle: state=0 cpu_id=0\n").repeat(5);
    let mut seen = 0;
    let summary = read(text.as_bytes(), &mut |_, _| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((seen, summary.unwrap().events), (2, 2));
}

/// A trace that was cut ends in the middle of a line, wherever that is. Damage before it is a fault.
#[test]
fn only_a_last_line_without_end_may_be_cut() {
    let whole = format!("{IDLE}cpu_idle: state=1 cpu_id=3\n");
    let switch = format!(
        "{IDLE}sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=c next_pid=6 next_prio=1"
    );
    for cut in 1..switch.len() - 1 {
        let (seen, summary) = events_of(&format!("{whole}{}", &switch[..cut]));
        let summary = summary.unwrap_or_else(|fault| panic!("{}: {fault}", &switch[..cut]));
        // An event's name may be cut to another name.
        assert_eq!(summary.cut + summary.unknown, 1, "{}", &switch[..cut]);
        assert_eq!(seen.len() as u64, 1 + summary.unknown);
        assert_eq!(summary.events, 1 + summary.unknown);
    }
    assert_eq!(events_of(&format!("{whole}{switch}")).1.unwrap().cut, 0);
    let damaged = format!("{}\n", &switch[..80]);
    assert!(events_of(&format!("{whole}{damaged}")).1.is_err());
    assert!(events_of(&format!("{damaged}{whole}")).1.is_err());
    assert!(matches!(events_of(&switch[..80]).1, Err(Fault::NotATrace(_))));
}

#[test]
fn what_is_no_text_is_told_by_its_first_bytes() {
    for (bytes, expected) in [
        (&b"\x1f\x8b\x08"[..], "it is packed with gzip: make text of it with zcat FILE |"),
        (b"BZh9", "it is packed with bzip2"),
        (b"\x17\x08Dtracing6\0", "make text of it with trace-cmd report"),
        (b"\xfd7zXZ\0\0", "the file is cut short"),
    ] {
        let Err(error) = packed::unpack(bytes) else { panic!("{expected}") };
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(packed::unpack(&b"# tracer: nop"[..]).is_ok());
    assert!(packed::unpack(&b""[..]).is_ok());
}

/// A few bytes of `xz` that ask for gigabytes: of output, in several streams; packed once more; of dictionary.
#[test]
fn packed_bombs_are_refused() {
    let zeros: &'static [u8] = include_bytes!("mebibyte-of-zeros.xz");
    let dictionary: &'static [u8] = include_bytes!("gibibyte-of-dictionary.xz");
    let fault = |bytes: Vec<u8>| {
        let unpacked = match packed::unpack(std::io::Cursor::new(bytes)) {
            Ok(unpacked) => unpacked,
            Err(error) => return error.to_string(),
        };
        match read(unpacked, &mut |_, _| ControlFlow::Continue(())) {
            Ok(_) => "no fault".to_owned(),
            Err(fault) => fault.to_string(),
        }
    };
    assert_eq!(
        fault(zeros.repeat(1000)),
        "it is not ftrace text: line 1: 64 MiB without a trace line"
    );
    // One layer is unpacked: what is in the second is no text.
    assert_eq!(fault(zeros.to_vec()), "it is not ftrace text: line 1: no [CPU]");
    let told = fault(dictionary.to_vec());
    assert!(told.contains("memory"), "{told}");
}
