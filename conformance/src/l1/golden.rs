// SPDX-License-Identifier: GPL-2.0-or-later
//! A recorded task small enough to read: a test of reader and re-driver without any recording.
//!
//! The user-interface task of one `ui-light` recording, alone on a big CPU, eleven periods of 16.67 ms.
//! The table is ours: per update its kind and PELT clock (ns), the estimate if one was stored, and what
//! the kernel printed if a segment was crossed: `period_contrib load_sum runnable_sum util_sum`, and the
//! averages `load runnable util`. The test writes the lines that the rig would have printed.

use std::fmt::Write;
use std::rc::Rc;

use super::machine::{Machine, tests::META};
use super::redrive::Redrive;
use super::tally::{Kind, Signal, Tally};
use crate::ftrace::Trace;

const UI: &str = "\
wake  1108870080 | 512 2658 2724191 2712042 | 57 57 57
tick  1109221155
tick  1109930138 | 524 3625 3715059 3703170 | 78 78 78
sleep 1110063362 est=78
wake  1125669584 | 534 2713 2780657 2772066 | 58 58 58
tick  1125864841
tick  1126573037 | 392 3525 3612882 3604475 | 76 76 76
sleep 1126863821 est=78
wake  1142256816 | 349 2752 2820774 2814699 | 59 59 59
tick  1142333520
tick  1143041716 | 91 3444 3529756 3523812 | 75 75 75
sleep 1143450999 est=78
wake  1158845760 | 165 2777 2846540 2842245 | 60 60 60
tick  1159515173
sleep 1160039873 est=73 | 307 3864 3960058 3955855 | 84 84 84
wake  1175457632 | 3 2792 2861499 2858462 | 61 61 61
tick  1176008079
sleep 1176651747 est=70 | 145 3875 3971098 3968126 | 84 84 84
wake  1192066880 | 863 2861 2932310 2930116 | 61 61 61
tick  1192498876 | 261 3217 3297508 3295361 | 70 70 70
tick  1193204717
sleep 1193260784 est=70
wake  1208652832 | 677 2862 2933257 2931706 | 61 61 61
tick  1208966278
tick  1209674474 | 650 3790 3883593 3882075 | 81 81 81
sleep 1209847012 est=81
wake  1225239776 | 491 2860 2931295 2930198 | 62 62 62
tick  1225434666
tick  1226142540 | 348 3667 3758266 3757192 | 79 79 79
sleep 1226433822 est=81
wake  1241826896 | 305 2855 2926567 2925791 | 62 62 62
tick  1241903242
tick  1242611438 | 47 3544 3632259 3631499 | 77 77 77
sleep 1243020659 est=81
wake  1258415920 | 121 2849 2920608 2920059 | 62 62 62
tick  1259084593
sleep 1259609643 est=76 | 263 3933 4031537 4030999 | 85 85 85
wake  1275025520 | 982 2904 2976939 2976542 | 62 62 62
";

/// The first record's time and estimate; times of later ones follow, in steps of 1024 ns.
const FIRST: (u64, u32) = (1_108_869_120, 77);

/// Writes the table as the rig prints it, for task 9 on CPU 7.
fn trace_of(table: &str) -> String {
    let mut text = String::new();
    let (mut lut, mut est) = FIRST;
    let idle = "  <idle>-0 [007] d.h3. 1.000000: ";
    let own = "  ui-9 [007] d..3. 1.000000: ";
    let tick = "  ui-9 [007] d.h2. 1.000000: ";
    let rq = |cp: u64, nr: u32| {
        format!("rq cpu=7 clk={cp} ct={cp} cp={cp} lost=0 irq=0 rbw=0 umin=0 umax=1024 nr={nr}")
    };
    let switch = |prev: u32, state: &str, next: u32| {
        format!(
            "sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state={state} ==> next_comm=b next_pid={next} next_prio=120"
        )
    };
    writeln!(text, "{own}{}", switch(9, "S", 0)).unwrap();
    for line in table.lines() {
        let mut parts = line.split('|');
        let mut event = parts.next().unwrap().split_whitespace();
        let kind = event.next().unwrap();
        let cp: u64 = event.next().unwrap().parse().unwrap();
        let stored = event.next().map(|s| s.trim_start_matches("est=").to_string());
        let numbers: Vec<&str> = parts.flat_map(str::split_whitespace).collect();
        if let Some(stored) = &stored {
            est = stored.parse().unwrap();
        }
        // The remainder below 1024 ns stays for the next update.
        lut += cp.saturating_sub(lut) >> 10 << 10;
        let printed = |by: &str, on: u32| match numbers.as_slice() {
            [pc, ls, rs, us, l, r, u] => format!(
                "{by}p_se: pelt_se pid=9 cpu=7 lut={lut} pc={pc} ls={ls} rs={rs} us={us} l={l} r={r} u={u} ue={est} uf=0 w=1048576 on={on} dly=0 v=0 d=0 vlag=0 sl=2800000\n"
            ),
            _ => String::new(),
        };
        match kind {
            "wake" => {
                writeln!(text, "{idle}p_ue_cfs: ue_cfs cpu=7 ue={est}").unwrap();
                text += &printed(idle, 0);
                writeln!(text, "{idle}p_nr: nr cpu=7 nr=1 ch=1 cp={cp}").unwrap();
                writeln!(text, "{idle}p_wake: {}", rq(cp, 1)).unwrap();
                writeln!(text, "{idle}sched_wakeup: comm=ui pid=9 prio=120 target_cpu=007")
                    .unwrap();
                writeln!(text, "{idle}p_switch: {}", rq(cp, 1)).unwrap();
                writeln!(text, "{idle}{}", switch(0, "R", 9)).unwrap();
            }
            "tick" => {
                writeln!(
                    text,
                    "{tick}hrtimer_expire_entry: hrtimer=0 function=tick_nohz_handler now=0"
                )
                .unwrap();
                writeln!(text, "{tick}p_run: run pid=9 ct={cp} cp={cp}").unwrap();
                text += &printed(tick, 1);
                writeln!(text, "{tick}sugov: sugov cpu=7 time={cp} fl=0").unwrap();
                writeln!(text, "{tick}resolve: resolve cpu=6 khz={}", cp % 2_802_000).unwrap();
                let khz = if cp.is_multiple_of(2) { 500_000 } else { 851_000 };
                writeln!(text, "{tick}cpu_frequency: state={khz} cpu_id=6").unwrap();
                writeln!(text, "{tick}p_energy: energy pid=9 dst=-1 e=0 max=0 busy=0").unwrap();
                writeln!(text, "{tick}p_energy: energy pid=9 dst=6 e=1 max=1 busy=1").unwrap();
            }
            "sleep" => {
                writeln!(text, "{own}p_ue_cfs: ue_cfs cpu=7 ue=0").unwrap();
                writeln!(text, "{own}p_ue_se: ue_se pid=9 u=0 ue={est} uf=1").unwrap();
                writeln!(text, "{own}p_run: run pid=9 ct={cp} cp={cp}").unwrap();
                text += &printed(own, 1);
                writeln!(text, "{own}p_nr: nr cpu=7 nr=0 ch=-1 cp={cp}").unwrap();
                let later = cp + 1_000_000;
                writeln!(text, "{own}p_switch: {}", rq(later, 0)).unwrap();
                writeln!(text, "{own}{}", switch(9, "S", 0)).unwrap();
            }
            other => panic!("{other}"),
        }
    }
    text
}

fn drive(table: &str) -> (Tally, String) {
    let mut trace = Trace::new(Box::new(std::io::Cursor::new(trace_of(table))));
    let machine = Rc::new(Machine::parse(META).unwrap());
    let mut redrive = Redrive::new(machine, true);
    redrive.drive(&mut trace).unwrap();
    assert_eq!(trace.bad_lines().0, []);
    (redrive.tally, format!("{:#?}", redrive.misses))
}

#[test]
fn a_recorded_task_is_met_to_the_last_bit() {
    let (tally, misses) = drive(UI);
    let records = UI.lines().filter(|line| line.contains('|')).count() as u64;
    let steps = &tally.steps[&Kind::Task];
    // The first record is where the state is taken over.
    assert_eq!((steps.judged, steps.met), (records - 1, records - 1), "{misses}");
    for signal in [Signal::Util, Signal::Runnable, Signal::Load] {
        let row = &tally.rows[&(Kind::Task, signal)];
        assert_eq!((row.judged, row.exact), (records - 1, records - 1), "{signal}");
    }
    let sleeps = UI.lines().filter(|line| line.starts_with("sleep")).count() as u64;
    let estimates = &tally.rows[&(Kind::Task, Signal::UtilEst)];
    assert_eq!((estimates.judged, estimates.exact), (sleeps, sleeps));
    assert_eq!((tally.picture_wrong, tally.starts[&Kind::Task]), (0, 1));
}

#[test]
fn one_wrong_bit_one_lost_tick_and_one_late_clock_are_noticed() {
    let check = |from: &str, to: &str, steps_missed: u64, free_exact: bool| {
        let table = UI.replacen(from, to, 1);
        assert_ne!(table, UI);
        let (tally, misses) = drive(&table);
        let steps = &tally.steps[&Kind::Task];
        assert_eq!(steps.judged - steps.met, steps_missed, "{from} {misses}");
        let exact = tally.rows.values().all(|row| row.exact == row.judged);
        assert_eq!(exact, free_exact, "{from}");
    };
    // A recorded sum that is 1 off: that step is missed, and so is the next, which starts from it;
    // the free run does not look at it.
    check("2930198 |", "2930199 |", 2, true);
    // An update that crossed nothing and is not told changes the last bits of the next.
    check("tick  1225434666\n", "", 1, true);
    // A wakeup 5 us late.
    check("wake  1225239776 |", "wake  1225244896 |", 2, true);
    // A tick 500 us early.
    check("tick  1242611438 |", "tick  1242111438 |", 2, false);
}

/// Whatever a file holds, driving it ends: no panic, no overflow.
#[test]
fn garbled_recordings_are_survived() {
    let good = trace_of(UI);
    let mut random = 1u64;
    let mut draw = |below: usize| {
        // Knuth's MMIX generator; its high bits are random enough to garble text.
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    const LARGE: [&str; 4] = ["18446744073709551615", "-9223372036854775808", "4294967295", "0"];
    let machine = Rc::new(Machine::parse(META).unwrap());
    for _ in 0..300 {
        let mut lines: Vec<String> = good.lines().map(str::to_string).collect();
        for _ in 0..1 + draw(8) {
            let at = draw(lines.len());
            match draw(4) {
                0 => drop(lines.remove(at)),
                1 => lines.swap(at, 0),
                2 => {
                    let copy = lines[at].clone();
                    let to = draw(lines.len());
                    lines.insert(to, copy);
                }
                _ => {
                    let fields: Vec<&str> = lines[at].split('=').collect();
                    let field = draw(fields.len());
                    let value = fields[field];
                    let end = value.find(' ').unwrap_or(value.len());
                    let changed = format!("{}{}", LARGE[draw(LARGE.len())], &value[end..]);
                    let mut fields: Vec<&str> = fields.clone();
                    fields[field] = &changed;
                    lines[at] = fields.join("=");
                }
            }
        }
        let mut trace = Trace::new(Box::new(std::io::Cursor::new(lines.join("\n"))));
        Redrive::new(Rc::clone(&machine), true).judging().drive(&mut trace).unwrap();
    }
}
