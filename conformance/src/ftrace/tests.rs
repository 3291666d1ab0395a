// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the reader of the rig's traces.

use super::*;

#[test]
fn lines_say_what_they_say() {
    let check = |line: &str, expected: Event| {
        assert_eq!(parse_line(line).unwrap().unwrap().event, expected, "{line}");
    };
    let line = "kworker/u32:1-60 [007] d..3. 5.340347: ";
    check(
        &format!("{line}p_nr: nr cpu=4 nr=2 ch=-1 cp=77"),
        Event::Nr { cpu: 4, nr: 2, ch: -1, cp: 77 },
    );
    check(
        &format!(
            "{line}sched_switch: prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=migration/3 next_pid=32 next_prio=0"
        ),
        Event::SchedSwitch {
            prev_pid: 5,
            prev_prio: 120,
            prev_state: b'R',
            next_pid: 32,
            next_prio: 0,
            next_stop: true,
        },
    );
    check(
        &format!("{line}sugov: sugov cpu=0 time=12 fl=1f"),
        Event::Sugov { cpu: 0, time: 12, fl: 31 },
    );
    check(
        &format!("{line}cpu_idle: state=4294967295 cpu_id=6"),
        Event::CpuIdle { cpu: 6, state: -1 },
    );
    check(
        &format!("{line}p_rt: pelt_rt cpu=6 lut=1024 pc=3 us=9 u=0"),
        Event::PeltOther { signal: OtherSignal::Rt, cpu: 6, lut: 1024, pc: 3, us: 9, u: 0 },
    );
    check(&format!("{line}tick_stop: success=1"), Event::TickStop { success: true });
    check(&format!("{line}ipi_entry: (x)"), Event::Other);
    let timer = |flags, deferrable, pinned| {
        check(
            &format!(
                "{line}timer_start: timer=00a function=f expires=8 [timeout=1] bucket_expiry=9 cpu=7 idx=3 flags={flags}"
            ),
            Event::TimerStart { timer: 10, bucket_expiry: 9, cpu: 7, deferrable, pinned },
        );
    };
    timer("", false, false);
    timer("D|I", true, false);
    timer("P|I", false, true);
}

#[test]
fn the_head_of_a_line() {
    let record = parse_line("   a[1]-b-2-31 [012] dNH5. 71.000009: ipi_exit: x").unwrap().unwrap();
    assert_eq!((record.cpu, record.pid, record.time_us), (12, 31, 71_000_009));
    assert!(record.hardirq && !record.softirq && record.need_resched);
    assert_eq!(parse_line("# tracer: nop"), Ok(None));
}

#[test]
fn bad_lines_are_counted_and_named_not_fatal() {
    let text = "no trace at all\n\
        a-1 [000] d..3. 1.000000: p_nr: nr cpu=0 nr=1 ch=1\n\
        a-1 [000] d..3. 1.000000: p_nr: nr cpu=99999 nr=1 ch=1 cp=5\n\
        a-1 [000] d..3. 1.00000: p_nr: nr cpu=0 nr=1 ch=1 cp=5\n\
        a-1 [000] d..3. 1.000000: p_nr: nr cpu=0 nr=1 ch=1 cp=5\n";
    let mut trace = Trace::new(Box::new(text.as_bytes()));
    assert!(trace.next_record().unwrap().is_some());
    assert!(trace.next_record().unwrap().is_none());
    let (bad, count) = trace.bad_lines();
    assert_eq!(count, 4);
    assert_eq!(bad[1].to_string(), "line 2: event p_nr has no readable field `cp`");
    assert_eq!(bad[2].to_string(), "line 3: event p_nr has no readable field `cpu`");
}
