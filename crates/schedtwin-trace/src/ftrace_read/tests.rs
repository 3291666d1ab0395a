// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::event::{CpuLosses, EventTask, Interrupt, Left, Missing};
use crate::sources;

const IDLE: &str = "<idle>-0 [003] d..2 7.000001: ";

/// Reads a text: returns its events without their heads, as text; then the report, or why there is
/// none.
fn read(text: &str) -> (Vec<String>, Result<SourceReport, String>) {
    let mut source = sources::read(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}"));
    let mut seen = Vec::new();
    loop {
        match source.next_event() {
            Ok(Some(event)) => seen.push(format!("{:?}", event.kind)),
            Ok(None) => return (seen, Ok(source.report().clone())),
            Err(fault) => return (seen, Err(fault.to_string())),
        }
    }
}

/// The kinds of the events of a text that is without fault, and their names.
fn kinds(text: &str) -> (Vec<TraceEventKind>, Names) {
    let mut source = FtraceSource::new(text.as_bytes());
    let mut kinds = Vec::new();
    while let Some(event) = source.next_event().unwrap_or_else(|fault| panic!("{text}: {fault}")) {
        kinds.push(event.kind);
    }
    assert_eq!(source.report().damages, [], "{text}");
    (kinds, source.names().clone())
}

fn damages(report: &SourceReport) -> String {
    report.damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn heads_of_all_forms_are_found_behind_any_name() {
    for (text, comm, pid, tgid, cpu, flags, at) in [
        (
            "   <...>-1744  ( 1740) [005] .... 41287.854747: x: y",
            "<...>",
            1744,
            Some(1740),
            5,
            "....",
            41_287_854_747_000,
        ),
        (
            "<idle>-0 (-----) [000] d..1 41287.854696: cpu_idle: state=1",
            "<idle>",
            0,
            None,
            0,
            "d..1",
            41_287_854_696_000,
        ),
        (
            "a[1]-b-2-31 [012] dNH5. 71.000009: x: y",
            "a[1]-b-2",
            31,
            None,
            12,
            "dNH5.",
            71_000_009_000,
        ),
        (
            "  ->transport-5851 [007] d..3 1.000000: x: y",
            "->transport",
            5851,
            None,
            7,
            "d..3",
            1_000_000_000,
        ),
        ("a [003] b-9 [004] .... 1.000000: x: y", "a [003] b", 9, None, 4, "....", 1_000_000_000),
        ("my (tool)-9 [004] .... 1.000000: x: y", "my (tool)", 9, None, 4, "....", 1_000_000_000),
        (
            "trace-cmd-1701  [001]    76.211513: x:   y",
            "trace-cmd",
            1701,
            None,
            1,
            "",
            76_211_513_000,
        ),
        ("a-1 [1000] d... 1.000000001: x: y", "a", 1, None, 1000, "d...", 1_000_000_001),
        // perf script: names are padded, and may hold spaces and dashes.
        (
            "      a b-7   312 [002] 5.000001:   sched:x: y",
            "a b-7",
            312,
            None,
            2,
            "",
            5_000_001_000,
        ),
        (
            "swapper     0 [002] 5.000000001:  1 sched:x: y",
            "swapper",
            0,
            None,
            2,
            "",
            5_000_000_001,
        ),
        ("perf  311/312 [002] 5.000001: sched:x: y", "perf", 312, Some(311), 2, "", 5_000_001_000),
        ("  :-1    -1 [002] 5.000001: sched:x: y", ":-1", u32::MAX, None, 2, "", 5_000_001_000),
    ] {
        let line = parse_line(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((line.comm, line.pid, line.cpu, line.flags), (comm, pid, cpu, flags), "{text}");
        assert_eq!((line.at, line.tgid), (at, tgid), "{text}");
        assert!(["x", "cpu_idle"].contains(&line.event), "{text}: {}", line.event);
    }
}

#[test]
fn contexts_come_from_the_flags() {
    use Interrupt::{Hardirq, Softirq, Task, Unknown};
    for (flags, interrupt, need_resched, irqs_off, preempt_count) in [
        ("d..2", Task, false, Some(true), Some(2)),
        ("..s3", Softirq, false, Some(false), Some(3)),
        ("d.h.", Hardirq, false, Some(true), Some(0)),
        ("dNHa", Hardirq, true, Some(true), Some(10)),
        ("d.Z1.", Hardirq, false, Some(true), Some(1)),
        ("Xn.1", Task, true, None, Some(1)),
        // PREEMPT_RT before it was merged: a column more in front of the interrupt's.
        ("d.lh1..", Hardirq, false, Some(true), Some(1)),
        ("", Unknown, false, None, None),
    ] {
        let text = format!("a-1 [000] {flags} 1.000000: x: y");
        let context = parse_line(&text).unwrap().context(NameId::NONE);
        assert_eq!((context.interrupt, context.need_resched), (interrupt, need_resched), "{flags}");
        assert_eq!((context.irqs_off, context.preempt_count), (irqs_off, preempt_count), "{flags}");
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

/// All spellings of the scheduler's events.
#[test]
fn events_are_read_in_all_spellings() {
    use TraceEventKind as Kind;
    let switch = |left| format!("Switch prev a b:5:120 {left:?} next c-d:6:89");
    let shown = |kind: TraceEventKind, names: &Names| {
        let task =
            |task: EventTask| format!("{}:{}:{}", names.text(task.comm), task.pid, task.prio);
        let cpu = |cpu: Option<CpuId>| cpu.map_or(String::new(), |cpu| format!(" on {cpu}"));
        match kind {
            Kind::Switch { prev: Some(prev), left, next } => {
                format!("Switch prev {} {left:?} next {}", task(prev), task(next))
            }
            Kind::Waking { task: t, target } => format!("Waking {}{}", task(t), cpu(target)),
            Kind::Wakeup { task: t, target } => format!("Wakeup {}{}", task(t), cpu(target)),
            Kind::WakeupNew { task: t, target } => format!("WakeupNew {}{}", task(t), cpu(target)),
            Kind::Migrate { task: t, from, to } => format!("Migrate {} {from} {to}", task(t)),
            Kind::Fork { parent, child_comm, child } => {
                format!("Fork {parent} {}:{child}", names.text(child_comm))
            }
            Kind::NewTask { pid, comm, clone_flags } => {
                format!("NewTask {}:{pid} {clone_flags:#x}", names.text(comm))
            }
            Kind::Rename { pid, comm } => format!("Rename {pid} {}", names.text(comm)),
            Kind::IrqEntry { irq, handler } => format!("IrqEntry {irq} {}", names.text(handler)),
            Kind::IpiSend { to, reason } => format!("IpiSend{} {}", cpu(to), names.text(reason)),
            Kind::VectorEntry { name } => format!("VectorEntry {}", names.text(name)),
            Kind::VectorExit { name } => format!("VectorExit {}", names.text(name)),
            Kind::HrtimerStart { timer, function, expires } => {
                format!("HrtimerStart {timer:#x} {} {expires}", names.text(function))
            }
            Kind::HrtimerExpire { timer, function } => {
                format!("HrtimerExpire {timer:#x} {}", names.text(function))
            }
            Kind::TimerStart { timer, function, expires, ticks } => {
                format!("TimerStart {timer:#x} {} {expires} {ticks}", names.text(function))
            }
            Kind::TimerExpire { timer, function } => {
                format!("TimerExpire {timer:#x} {}", names.text(function))
            }
            Kind::WorkQueue { work, function, cpu: on } => {
                format!("WorkQueue {work:#x} {}{}", names.text(function), cpu(on))
            }
            Kind::WorkStart { work, function } => {
                format!("WorkStart {work:#x} {}", names.text(function))
            }
            Kind::SliceBegin { tgid, name } => format!("SliceBegin {tgid} {}", names.text(name)),
            Kind::AsyncBegin { tgid, name, cookie } => {
                format!("AsyncBegin {tgid} {} {cookie}", names.text(name))
            }
            Kind::AsyncEnd { tgid, name, cookie } => {
                format!("AsyncEnd {tgid} {} {cookie}", names.text(name))
            }
            Kind::Counter { tgid, name, value } => {
                format!("Counter {tgid} {} {value}", names.text(name))
            }
            Kind::Instant { tgid, name } => format!("Instant {tgid} {}", names.text(name)),
            other => format!("{other:?}"),
        }
    };
    let full = "prev_comm=a b prev_pid=5 prev_prio=120";
    let next = "next_comm=c-d next_pid=6 next_prio=89";
    for (text, expected) in [
        (format!("sched_switch: {full} prev_state=S ==> {next}"), switch(Left::Asleep)),
        (format!("sched_switch: {full} prev_state=D ==> {next}"), switch(Left::Blocked)),
        (format!("sched_switch: {full} prev_state=R+ ==> {next}"), switch(Left::Runnable)),
        (format!("sched_switch:    {full} prev_state=4096 {next}"), switch(Left::Runnable)),
        (format!("sched_switch:    {full} prev_state=130 {next}"), switch(Left::Asleep)),
        (format!("sched_switch:    {full} prev_state=2 {next}"), switch(Left::Blocked)),
        (format!("sched_switch:    {full} prev_state=64 {next}"), switch(Left::Dead)),
        ("sched_switch:         a b:5 [120] x ==> c-d:6 [89]".into(), switch(Left::Dead)),
        (
            "sched_switch:  x ==> y:5 [120] D ==> a [b]:6 [-1]".into(),
            "Switch prev x ==> y:5:120 Blocked next a [b]:6:-1".into(),
        ),
        ("sched_wakeup: comm=-> x pid=5 prio=120 target_cpu=007".into(), "Wakeup -> x:5:120 on 7".into()),
        ("sched_wakeup: comm=x pid=5 prio=120 success=1 target_cpu=007".into(), "Wakeup x:5:120 on 7".into()),
        ("sched_waking: x:5 [98] CPU:002".into(), "Waking x:5:98 on 2".into()),
        ("sched_waking: comm=x pid=5 prio=98".into(), "Waking x:5:98".into()),
        ("sched_wakeup_new: x:5 [120] success=1 CPU:002".into(), "WakeupNew x:5:120 on 2".into()),
        ("sched_migrate_task: comm=a b pid=5 prio=120 orig_cpu=1 dest_cpu=2".into(), "Migrate a b:5:120 1 2".into()),
        ("sched_process_fork: comm=sh pid=5 child_comm=a b child_pid=6".into(), "Fork 5 a b:6".into()),
        ("sched_process_fork: parent_comm=sh parent_pid=5 child_comm=a child_pid=6".into(), "Fork 5 a:6".into()),
        ("sched_process_exit: comm=a pid=5 prio=120 group_dead=true".into(), "Exit { pid: 5 }".into()),
        ("sched_process_free: comm=a pid=5 prio=120".into(), "Free { pid: 5 }".into()),
        ("sched_process_exec: filename=/bin/a b pid=5 old_pid=4".into(), "Exec { pid: 5, old_pid: 4 }".into()),
        ("task_newtask: pid=5 comm=a b clone_flags=10f00 oom_score_adj=0".into(), "NewTask a b:5 0x10f00".into()),
        ("task_rename: pid=5 oldcomm=main newcomm=my app oom_score_adj=0".into(), "Rename 5 my app".into()),
        ("sched_pi_setprio: comm=a pid=5 oldprio=120 newprio=98".into(), "PiPriority { pid: 5, from: 120, to: 98 }".into()),
        ("uclamp_util_se: pid=5 comm=a util_avg=1 uclamp_avg=300 uclamp_min=300 uclamp_max=1024".into(),
            "Clamp { pid: 5, min: Some(300), max: Some(1024) }".into()),
        ("cpu_idle: state=4294967295 cpu_id=6".into(), "Idle { cpu: cpu6, state: None }".into()),
        ("cpu_idle_miss: cpu_id=6 state=1 type=below".into(), "IdleMiss { cpu: cpu6, state: 1, below: true }".into()),
        ("cpu_frequency: state=1804800 cpu_id=3".into(), "Frequency { cpu: cpu3, khz: 1804800 }".into()),
        ("cpu_frequency_limits: min=300000 max=1804800 cpu_id=3".into(),
            "FrequencyLimits { cpu: cpu3, min_khz: 300000, max_khz: 1804800 }".into()),
        ("irq_handler_entry: irq=17 name=mmc 0".into(), "IrqEntry 17 mmc 0".into()),
        ("irq_handler_exit: irq=17 ret=handled".into(), "IrqExit { irq: 17 }".into()),
        ("softirq_raise: vec=1 [action=TIMER]".into(), "SoftirqRaise { vector: 1 }".into()),
        ("softirq_entry: vec=9 [action=RCU]".into(), "SoftirqEntry { vector: 9 }".into()),
        ("softirq_exit: vec=9 [action=RCU]".into(), "SoftirqExit { vector: 9 }".into()),
        ("ipi_raise: target_mask=00000000,00000010 (Function call interrupts)".into(), "IpiSend on 4 Function call interrupts".into()),
        ("ipi_raise: target_mask=00000001,00000010 (x)".into(), "IpiSend x".into()),
        ("ipi_send_cpu: cpu=3 callsite=a+0x1/0x2 callback=0x0".into(), "IpiSend on 3 ".into()),
        ("ipi_entry: (Rescheduling interrupts)".into(), "VectorEntry Rescheduling interrupts".into()),
        ("local_timer_entry: vector=236".into(), "VectorEntry local_timer".into()),
        ("local_timer_exit: vector=236".into(), "VectorExit local_timer".into()),
        ("hrtimer_start: hrtimer=00000000ab function=tick_sched_timer expires=5 softexpires=5 mode=ABS".into(),
            "HrtimerStart 0xab tick_sched_timer 5".into()),
        ("hrtimer_expire_entry: hrtimer=0xab function=tick_sched_timer now=5".into(), "HrtimerExpire 0xab tick_sched_timer".into()),
        ("hrtimer_expire_exit: hrtimer=0xab".into(), "HrtimerDone { timer: 171 }".into()),
        ("hrtimer_cancel: hrtimer=0xab".into(), "HrtimerCancel { timer: 171 }".into()),
        ("timer_start: timer=0xab function=delayed_work_timer_fn expires=4295 [timeout=250] bucket_expiry=4300 cpu=1 idx=4 flags=D".into(),
            "TimerStart 0xab delayed_work_timer_fn 4295 250".into()),
        ("timer_expire_entry: timer=0xab function=f now=4295 baseclk=4295".into(), "TimerExpire 0xab f".into()),
        ("timer_expire_exit: timer=0xab".into(), "TimerDone { timer: 171 }".into()),
        ("timer_cancel: timer=0xab".into(), "TimerCancel { timer: 171 }".into()),
        ("workqueue_queue_work: work struct=00ab function=f workqueue=events req_cpu=3 cpu=3".into(), "WorkQueue 0xab f on 3".into()),
        ("workqueue_queue_work: work struct=00ab function=f workqueue=events req_cpu=8192 cpu=4294967295".into(), "WorkQueue 0xab f".into()),
        ("workqueue_execute_start: work struct 00ab: function f".into(), "WorkStart 0xab f".into()),
        ("workqueue_execute_end: work struct 00ab".into(), "WorkEnd { work: 171 }".into()),
        ("sched_blocked_reason: pid=5 iowait=1 caller=f+0x1/0x2".into(), "BlockedReason { pid: 5, io_wait: true }".into()),
        ("tracing_mark_write: B|1|x: y|z".into(), "SliceBegin 1 x: y|z".into()),
        ("print: 0xffff8000: B|1|x".into(), "SliceBegin 1 x".into()),
        ("tracing_mark_write: E|1".into(), "SliceEnd { tgid: 1 }".into()),
        ("tracing_mark_write: E".into(), "SliceEnd { tgid: 0 }".into()),
        ("0: C|1|q|u|-5".into(), "Counter 1 q|u -5".into()),
        ("print: S|1|draw|9".into(), "AsyncBegin 1 draw 9".into()),
        ("print: F|1|draw|9".into(), "AsyncEnd 1 draw 9".into()),
        ("print: I|1|now".into(), "Instant 1 now".into()),
        ("tracing_mark_write: hello | you".into(), "Other".into()),
        ("print:     tracing_mark_write: cpu_frequency:        state=450000 cpu_id=3".into(),
            "Frequency { cpu: cpu3, khz: 450000 }".into()),
        ("tracing_mark_write: cpu_frequency_devlib: frequency=450000 cpu_id=3".into(),
            "Frequency { cpu: cpu3, khz: 450000 }".into()),
        ("print: cpu_frequency: state=x cpu_id=3".into(), "Other".into()),
        ("print: cpu_frequency: state=1 cpu_id=5000".into(), "Other".into()),
        // What a replay does not need may be printed in any way.
        ("timer_start: timer=?".into(), "Other".into()),
        ("clk_enable: x".into(), "Other".into()),
    ] {
        let text = format!("{IDLE}{text}\n");
        let (kinds, names) = kinds(&text);
        assert_eq!(kinds.into_iter().map(|kind| shown(kind, &names)).collect::<Vec<_>>(), [expected], "{text}");
        // The same by perf, where the line has no flags.
        let perf = text.replace("<idle>-0 [003] d..2 7.000001: ", "swapper     0 [003]     7.000001:     sched:");
        assert_eq!(self::kinds(&perf).0.len(), 1, "{perf}");
    }
}

#[test]
fn what_a_file_holds_is_counted() {
    let text = format!(
        "# tracer: nop\n# entries-in-buffer/entries-written: 90/100   #P:8\nversion = 6\n\
         CPU 2 is empty\nCPU:3 [LOST 12 EVENTS]\nCPU:1 [EVENTS DROPPED]\nCPU:0 [5 EVENTS DROPPED]\n\
         {IDLE}print: first\nsecond line of it\n\n{IDLE}cpu_idle: state=1 cpu_id=3\n"
    );
    let mut source = FtraceSource::new(text.as_bytes());
    let mut seen = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        seen.push(event.kind);
    }
    // The loss of CPU 3 is told where it happened, the others' CPUs have no events.
    assert_eq!(seen[0], TraceEventKind::Lost { events: Some(12) });
    assert_eq!((seen[1], seen.len()), (TraceEventKind::Other, 3));
    let report = source.report();
    assert_eq!((report.pieces, report.events, report.unused), (11, 2, 1));
    assert_eq!((report.foreign, report.cut, report.disordered), (1, 0, 0));
    assert_eq!(report.lost(), CpuLosses { events: 10 + 12 + 5, uncounted: 1 });
    let by_cpu: Vec<_> =
        report.losses().map(|(cpu, lost)| (cpu.0, lost.events, lost.uncounted)).collect();
    assert_eq!(by_cpu, [(0, 5, 0), (1, 0, 1), (3, 12, 0)]);
    let counts: Vec<_> =
        report.counts(source.names()).map(|(name, count)| (name, count.events)).collect();
    assert_eq!(counts, [("print", 1), ("cpu_idle", 1)]);
    assert_eq!(source.header().nr_cpus, Some(8));
}

#[test]
fn a_cpu_whose_buffer_was_overwritten_begins_late() {
    let text = format!("##### CPU 3 buffer started ####\n{IDLE}x: y\n{IDLE}x: y\n");
    let (kinds, _) = kinds(&text);
    assert_eq!(kinds, [TraceEventKind::Begins, TraceEventKind::Other, TraceEventKind::Other]);
}

#[test]
fn damage_is_told_with_its_lines_all_at_once() {
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
    let (seen, report) = read(&text);
    assert!(seen.is_empty());
    assert_eq!(
        damages(&report.unwrap()),
        "line 1: event sched_switch has no readable field `prev_state`\n\
         line 2: event sched_switch has no readable field `prev_pid`\n\
         line 3: event sched_switch has an unknown form\n\
         line 4: event sched_waking has no readable field `pid`\n\
         line 5: event sched_wakeup has an unknown form\n\
         line 6: event cpu_idle has no readable field `cpu_id`\n\
         line 7: event cpu_frequency has no readable field `state`\n\
         line 8: event sched_process_fork has no readable field `child_comm`"
    );
    let report = read(&format!("{IDLE}cpu_idle: x\n").repeat(1000)).1.unwrap();
    assert_eq!((report.damages.len(), report.damage_count), (20, 1000));
}

#[test]
fn what_is_no_trace_is_refused() {
    for (text, message) in [
        ("", "it is not ftrace text: it has no trace line"),
        ("# tracer: nop\n", "it is not ftrace text: it has no trace line"),
        ("hello\n", "it is not ftrace text: line 1: no [CPU]"),
        (
            "<!DOCTYPE html>\n<p>hello\n",
            "it is not ftrace text: it is a page without a trace in it",
        ),
        (
            "# tracer: nop\n#\n# latency trace v1.1.5 on 6.18.0\n",
            "it is not ftrace text: it has no trace line",
        ),
        (
            "  ui   7   1 0 00000000 00000000 [0009f2b3] 651.955ms (+0.020ms): sched_waking: comm=a pid=5\n",
            "it is in the kernel's verbose latency format: switch the option verbose off \
             (echo 0 > options/verbose) and read the trace again",
        ),
    ] {
        assert_eq!(read(text).1.unwrap_err(), message);
    }
}

#[test]
fn times_may_go_back_a_little() {
    let (seen, report) = read(
        "a-1 [000] d... 5.000000: x: y\na-1 [001] d... 4.999500: x: y\n\
         a-1 [001] d... 4.000000: x: y\n",
    );
    let report = report.unwrap();
    assert_eq!((seen.len(), report.disordered), (2, 1));
    assert_eq!(damages(&report), "line 3: the time goes back by 1000000 us");
}

#[test]
fn long_lines_and_bytes_that_are_no_text_do_no_harm() {
    let mut bytes = b"a\xe4\xb8-1 [000] d... 5.000000: print: ".to_vec();
    bytes.extend(std::iter::repeat_n(b'x', 3 * LINE_MAX));
    bytes.extend(b"\nb-2 [000] d... 5.000001: cpu_idle: state=0 cpu_id=0");
    let mut source = FtraceSource::new(&bytes[..]);
    let mut seen = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        let comm = source.names().text(event.context.comm).to_owned();
        seen.push((comm, event.kind == TraceEventKind::Other));
    }
    assert_eq!(source.report().pieces, 2);
    assert_eq!(seen, [("a\u{fffd}".to_owned(), true), ("b".to_owned(), false)]);
}

/// The option `fields`, printers of other releases, and names that look like fields.
#[test]
fn numbers_and_names_are_read_as_they_are_printed() {
    let switch = |text: &str| {
        let (kinds, names) = kinds(&format!("{IDLE}sched_switch: {text}\n"));
        let [TraceEventKind::Switch { prev: Some(prev), left, next }] = kinds[..] else {
            panic!("{kinds:?}")
        };
        let task = |of: EventTask| (names.text(of.comm).to_owned(), of.pid, of.prio);
        (task(prev), left, task(next))
    };
    let plain = switch(
        "prev_comm=a prev_pid=7 prev_pid=1001 prev_prio=120 prev_state=D ==> next_comm=b next_pid=0 next_pid=9 next_prio=98",
    );
    for other in [
        "prev_comm=a prev_pid=7 prev_pid=0x3e9 (1001) prev_prio=0x78 (120) prev_state=0x2 (2) next_comm=b next_pid=0 \
         next_pid=0x9 (9) next_prio=0x62 (98)",
        "prev_comm=a prev_pid=7 prev_pid=1001 prev_prio=120 prev_state=0x2 ==> next_comm=b next_pid=0 next_pid=9 next_prio=98",
    ] {
        assert_eq!(switch(other), plain);
    }
    let (prev, next) = (("a prev_pid=7".to_owned(), 1001, 120), ("b next_pid=0".to_owned(), 9, 98));
    assert_eq!(plain, (prev, Left::Blocked, next));
    let minus_one = format!("{IDLE}cpu_idle: state=-1 cpu_id=3\n");
    let unsigned = format!("{IDLE}cpu_idle: state=0xffffffff (4294967295) cpu_id=0x3 (3)\n");
    assert_eq!(kinds(&minus_one).0, kinds(&unsigned).0);
    let suspend = |text: &str| kinds(&format!("{IDLE}suspend_resume: {text}\n")).0;
    for (text, kind) in [
        ("machine_suspend[3] begin", TraceEventKind::Suspend { begins: true }),
        (
            "action=machine_suspend val=0x3 (3) start=0x0 (0)",
            TraceEventKind::Suspend { begins: false },
        ),
        ("dpm_suspend[2] begin", TraceEventKind::Other),
    ] {
        assert_eq!(suspend(text), [kind], "{text}");
    }
}

/// The latency format of the kernel, of `trace-cmd report -l` and of a kernel's log.
#[test]
fn heads_of_the_latency_format_are_found() {
    for (text, comm, pid, cpu, flags, at) in [
        ("  <idle>-0       0d.h2. 100000000us : x: y", "<idle>", 0, 0, "d.h2.", 100_000_000_000),
        ("    ui 1-7-9     11d..2.   12us+: x: y", "ui 1-7", 9, 11, "d..2.", 12_000),
        ("  <idle>-0       2dNs2.  2084.021528: x:  y", "<idle>", 0, 2, "dNs2.", 2_084_021_528_000),
        ("  <idle>-0       2-0x15  2084.021528040: x: y", "<idle>", 0, 2, "", 2_084_021_528_040),
        ("<4>[   12.345678]    <...>-7   1d..2. 12us!: x: y", "<...>", 7, 1, "d..2.", 12_000),
        ("[   12.345678] <...>-7   1d..2. 12us#: x: y", "<...>", 7, 1, "d..2.", 12_000),
        ("  <idle>-0     [002]  2084.021528: (+5180)  x: y", "<idle>", 0, 2, "", 2_084_021_528_000),
    ] {
        let line = parse_line(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((line.comm, line.pid, line.cpu, line.flags), (comm, pid, cpu, flags), "{text}");
        assert_eq!((line.at, line.event, line.arguments), (at, "x", "y"), "{text}");
    }
    for text in ["a-1 000d..2. 12: x: y", "a-b 1d..2. 12us: x: y", "a-1 1d 12us : x: y", "- 1"] {
        assert_eq!(parse_line(text).unwrap_err(), NO_CPU, "{text}");
    }
}

/// What the twin has no place for is told once, with its count and what to do.
#[test]
fn cpus_beyond_the_limit_and_differences_of_times_are_told_once() {
    let line = |cpu: usize, at: u64| {
        format!("a-1 [{cpu:03}] d..2 7.{at:06}: cpu_idle: state=1 cpu_id={}\n", cpu % 1000)
    };
    let far: String = (0..30).map(|at| line(1024 * (at % 2) as usize, at)).collect();
    let report = read(&far).1.unwrap();
    assert_eq!(
        damages(&report),
        "line 2: 15 events of CPUs from 1024 on; the twin has at most 1024 CPUs: record fewer \
         (trace-cmd record -M MASK, or tracing_cpumask)"
    );
    let differences: String = (0..100).map(|at| line(0, at * 37 % 50)).collect();
    let told = damages(&read(&differences).1.unwrap());
    assert!(told.contains("they are differences, not times"), "{told}");
}

/// A trace that was cut ends in the middle of a line, wherever that is. Damage before it is damage.
#[test]
fn only_a_last_line_may_be_cut() {
    let whole = format!("{IDLE}cpu_idle: state=1 cpu_id=3\n");
    let switch = format!(
        "{IDLE}sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=c next_pid=6 next_prio=1"
    );
    for cut in 1..switch.len() - 1 {
        let (seen, report) = read(&format!("{whole}{}", &switch[..cut]));
        let report = report.unwrap_or_else(|fault| panic!("{}: {fault}", &switch[..cut]));
        // An event's name may be cut to another name.
        assert_eq!(report.cut + report.unused, 1, "{}", &switch[..cut]);
        assert_eq!(seen.len() as u64, 1 + report.unused);
        assert_eq!((report.events, report.damage_count), (1 + report.unused, 0));
    }
    assert_eq!(read(&format!("{whole}{switch}")).1.unwrap().cut, 0);
    let damaged = format!("{}\n", &switch[..80]);
    let report = read(&format!("{whole}{damaged}")).1.unwrap();
    assert_eq!((report.cut, report.damage_count, report.events), (1, 0, 1), "a line feed behind");
    let heading = "# entries-in-buffer/entries-written: 30/30   #P:4\n";
    let report = read(&format!("{heading}{whole}{damaged}")).1.unwrap();
    assert_eq!(report.missing, Some(Missing::Events(29)));
    assert_eq!(read(&format!("{damaged}{damaged}")).1.unwrap().damage_count, 2);
    assert_eq!(read(&format!("{damaged}{whole}")).1.unwrap().damage_count, 1);
    assert!(read(&switch[..80]).1.is_err());
}

/// Systrace's page of today and that of its beginnings.
#[test]
fn a_trace_is_found_in_a_page() {
    let event = format!("{IDLE}cpu_idle: state=1 cpu_id=3");
    let today = format!(
        "<!DOCTYPE html>\n<html>\n<script>a-1 [000] d... 5.000000: no: trace</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n{event}\n{event}\n</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\nUSER PID PPID VSZ NAME\n\
         root 1 0 5 init\nUSER PID TID CMD\nsystem 1500 1507 android anim\n</script>\n</html>\n"
    );
    let old = format!(
        "<!DOCTYPE HTML>\n<script>\n  var linuxPerfData = \"\\\n# tracer: nop\\n\\\n{event}\\n\\\n{event}\\n\\\n\";\n</script>\n"
    );
    for (page, threads) in [(today, 1), (old, 0)] {
        let mut source = FtraceSource::new(page.as_bytes());
        let mut count = 0;
        while let Some(event) = source.next_event().unwrap() {
            assert!(matches!(event.kind, TraceEventKind::Idle { .. }));
            count += 1;
        }
        assert_eq!(
            (count, source.report().foreign, source.header().format),
            (2, 0, "systrace HTML"),
            "{page}"
        );
        assert_eq!(source.header().threads.len(), threads);
        for thread in &source.header().threads {
            assert_eq!(
                (thread.pid, thread.tgid, &thread.comm[..]),
                (1507, Some(1500), "android anim")
            );
        }
    }
}
