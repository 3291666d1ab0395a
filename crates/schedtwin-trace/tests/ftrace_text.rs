// SPDX-License-Identifier: GPL-2.0-or-later
//! Text traces, line by line.

mod sample;

use schedtwin_trace::{FtraceText, Sink};

#[test]
fn lines_are_those_of_trace_cmd() {
    let mut bytes = Vec::new();
    let mut sink = Box::new(FtraceText::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    let text = String::from_utf8(bytes).expect("text");
    let expected = "\
cpus=40
# schedtwin: sample \"run\"
# version: 0.1.0
# kernel: linux-5.18+runnable-boost
          <idle>-0     [001]  1999.999998: irq_handler_entry:    irq=3 name=timer+reschedule
          <idle>-0     [001]  1999.999999: hrtimer_expire_entry: hrtimer=0x0 function=tick_nohz_handler now=1999999998500
          <idle>-0     [001]  1999.999999: sched_waking:         comm=ui pid=12 prio=120 target_cpu=002
          <idle>-0     [001]  1999.999999: sched_migrate_task:   comm=ui pid=12 prio=120 orig_cpu=2 dest_cpu=1
          <idle>-0     [001]  1999.999999: sched_wakeup:         comm=ui pid=12 prio=120 target_cpu=001
          <idle>-0     [001]  1999.999999: irq_handler_exit:     irq=3 ret=handled
          <idle>-0     [001]  1999.999999: cpu_idle:             state=4294967295 cpu_id=1
          <idle>-0     [001]  1999.999999: cpu_idle_miss:        cpu_id=1 state=2 type=above
          <idle>-0     [001]  1999.999999: sched_switch:         prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui next_pid=12 next_prio=120
              ui-12    [001]  1999.999999: sched_pelt_cfs:       cpu=1 path=/ runnable=110 util=100
              ui-12    [001]  1999.999999: sched_util_est_cfs:   cpu=1 path=/ enqueued=0 util=100
              ui-12    [001]  1999.999999: sched_pelt_se:        cpu=1 path=(null) comm=ui pid=12 runnable=95 util=90
              ui-12    [001]  1999.999999: sched_util_est_se:    cpu=1 path=(null) comm=ui pid=12 enqueued=80 util=90
              ui-12    [001]  2000.000000: cpu_frequency:        state=1803000 cpu_id=0
              ui-12    [001]  2000.000000: cpu_frequency:        state=1803000 cpu_id=1
              ui-12    [001]  2000.000000: cpu_frequency:        state=1803000 cpu_id=2
              ui-12    [001]  2000.000000: cpu_frequency:        state=1803000 cpu_id=3
              ui-12    [001]  2000.000000: sched_waking:         comm=sugov:0 pid=3 prio=98 target_cpu=039
              ui-12    [001]  2000.000000: sched_waking:         comm=a name of more than 15 pid=70000 prio=-1 target_cpu=000
              ui-12    [001]  2000.000000: ipi_raise:            target_mask=00000080,00000000 (Rescheduling interrupts)
              ui-12    [001]  2000.000000: ipi_raise:            target_mask=00000000,80000000 (Function call interrupts (wake list))
          <idle>-0     [039]  2000.000000: sched_wakeup_new:     comm=a name of more than 15 pid=70000 prio=-1 target_cpu=039
          <idle>-0     [039]  2000.000000: sched_switch:         prev_comm=swapper/39 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a name of more than 15 next_pid=70000 next_prio=-1
a name of more than 15-70000 [039]  2000.000000: sched_switch:         prev_comm=a name of more than 15 prev_pid=70000 prev_prio=-1 prev_state=R+ ==> next_comm=sugov:0 next_pid=3 next_prio=98
         sugov:0-3     [039]  2000.000000: sched_switch:         prev_comm=sugov:0 prev_pid=3 prev_prio=98 prev_state=D ==> next_comm=a name of more than 15 next_pid=70000 next_prio=-1
a name of more than 15-70000 [039]  2000.000001: sched_process_exit:   comm=a name of more than 15 pid=70000 prio=-1
a name of more than 15-70000 [039]  2000.000001: sched_switch:         prev_comm=a name of more than 15 prev_pid=70000 prev_prio=-1 prev_state=X ==> next_comm=swapper/39 next_pid=0 next_prio=120
          <idle>-0     [039]  2000.000001: cpu_idle:             state=0 cpu_id=39
              ui-12    [001]  2000.000001: sched_overutilized:   overutilized=1
              ui-12    [001]  2000.000001: sched_switch:         prev_comm=ui prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0     [001]  2000.000001: sched_pelt_cfs:       cpu=1 path=/ runnable=90 util=100
          <idle>-0     [001]  2000.000001: sched_util_est_cfs:   cpu=1 path=/ enqueued=80 util=100
          <idle>-0     [001]  2000.000001: sched_pelt_cfs:       cpu=1 path=/ runnable=90 util=100
          <idle>-0     [001]  2000.000001: sched_util_est_cfs:   cpu=1 path=/ enqueued=80 util=100
          <idle>-0     [001]  2000.000001: cpu_idle:             state=2 cpu_id=1
";
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

/// A name is one word of one line, whatever is in it, and reads back as it was shown.
#[test]
fn odd_names_stay_in_their_line() {
    use schedtwin_trace::TaskInfo;
    use schedtwin_trace::event::{TraceEventKind, TraceSource};
    use schedtwin_trace::ftrace_read::FtraceSource;
    use schedtwin_types::{CpuId, Fact, FactKind, TaskId, TaskState};

    for (name, shown) in [
        ("a b", "a b"),
        ("[000] a", "[000] a"),
        ("x-3 [000] 1.0", "x-3 [000] 1.0"),
        ("a ==> next_comm=b", "a ==> next_comm=b"),
        ("1.5: sched_switch: x", "1.5: sched_switch: x"),
        ("red\u{1b}[31m\u{9b}0m", "red?[31m?0m"),
        ("a\n1.0: cpu_idle", "a?1.0: cpu_idle"),
        ("\u{202e}txt.exe\r", "?txt.exe?"),
        ("=1+1", "=1+1"),
        ("漢字漢字漢字漢字", "漢字漢字漢字漢字"),
        // Whole heads, fields, comments and headings of their own.
        (
            "x-3 [000] 1.000000: sched_wakeup: comm=y pid=1 prio=1",
            "x-3__000]_1.000000__sched_wakeup__comm_y_pid_1_prio_1",
        ),
        ("a prev_pid=9 prev_prio=1", "a_prev_pid_9_prev_prio_1"),
        ("a next_pid=9", "a_next_pid_9"),
        ("a pid=9", "a_pid_9"),
        ("#a-long-name-of-a-task", "_a-long-name-of-a-task"),
        ("cpus=16-or-more-characters", "cpus_16-or-more-characters"),
        ("CPU 5 has this one for itself", "CPU_5_has_this_one_for_itself"),
        // Longer than a line may be.
        (&"漢".repeat(2_000), &"漢".repeat(200)),
    ] {
        let mut meta = sample::meta();
        meta.title = format!("{name}\ncpus=1");
        meta.provenance = vec![(name.to_string(), name.to_string())];
        let mut bytes = Vec::new();
        let mut sink = Box::new(FtraceText::new(&mut bytes, meta));
        sink.task(&TaskInfo { id: TaskId(7), name: name.to_string(), prio: 120 });
        for (at, prev, next) in [(1_000, 0, 7), (2_000, 7, 0)] {
            let (prev, next) = (TaskId(prev), TaskId(next));
            let kind = FactKind::Switch { prev, next, prev_state: TaskState::Running };
            sink.fact(&Fact { at, cpu: CpuId(0), kind });
        }
        sink.finish().expect("memory takes everything");
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(text.lines().count(), 5, "{text}");
        let (mut comms, mut running) = (Vec::new(), Vec::new());
        let mut source = FtraceSource::new(text.as_bytes());
        while let Some(event) = source.next_event().expect("a trace") {
            let text = |name| source.names().text(name).to_string();
            running.push(text(event.context.comm));
            if let TraceEventKind::Switch { prev: Some(prev), next, .. } = event.kind {
                comms.extend([text(prev.comm), text(next.comm)]);
            }
        }
        assert_eq!((source.report().events, source.report().damage_count), (2, 0), "{text}");
        assert!(comms[1] == comms[2] && running == ["<idle>", &comms[1]], "{text}");
        assert!(comms[1].starts_with(shown), "{name:?} is shown as {:?}", comms[1]);
    }
}

/// A line says the priority that a task had then.
#[test]
fn priorities_are_those_of_the_line() {
    use schedtwin_trace::TaskInfo;
    use schedtwin_trace::event::{TraceEventKind, TraceSource};
    use schedtwin_trace::ftrace_read::FtraceSource;
    use schedtwin_types::{CpuId, Fact, FactKind, TaskId, TaskState};

    let mut bytes = Vec::new();
    let mut sink = Box::new(FtraceText::new(&mut bytes, sample::meta()));
    sink.task(&TaskInfo { id: TaskId(7), name: "ui".into(), prio: 120 });
    let switch = |at, prev, next| {
        let (prev, next) = (TaskId(prev), TaskId(next));
        let kind = FactKind::Switch { prev, next, prev_state: TaskState::Running };
        Fact { at, cpu: CpuId(0), kind }
    };
    sink.fact(&switch(1_000, 0, 7));
    sink.task_prio(TaskId(7), 98);
    sink.fact(&switch(2_000, 7, 0));
    sink.finish().expect("memory takes everything");
    let mut prios = Vec::new();
    let mut source = FtraceSource::new(&bytes[..]);
    while let Some(event) = source.next_event().expect("a trace") {
        if let TraceEventKind::Switch { prev: Some(prev), next, .. } = event.kind {
            prios.extend([prev, next].iter().filter(|task| task.pid == 7).map(|task| task.prio));
        }
    }
    assert_eq!((source.report().events, prios), (2, vec![120, 98]));
}
