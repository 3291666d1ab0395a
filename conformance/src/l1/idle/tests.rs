// SPDX-License-Identifier: GPL-2.0-or-later
use super::drive::IdleDrive;
use super::*;
use crate::l1::machine::meta_path;
use crate::l1::mechanism::{Difference, Mechanism, Unknown, What};
use crate::l1::recordings_dir;
use schedtwin_kernel::config::Config;
use std::io::Cursor;

const META: &str = "\
/sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1 2 3 4 5 6 7
/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies = 1000000
/sys/devices/system/cpu/cpuidle/current_governor = teo
/sys/devices/system/cpu/cpu0/cpuidle/state0/latency = 1
/sys/devices/system/cpu/cpu0/cpuidle/state0/residency = 1
/sys/devices/system/cpu/cpu0/cpuidle/state1/latency = 230
/sys/devices/system/cpu/cpu0/cpuidle/state1/residency = 2000
CONFIG_HZ=250
";
/// Enough wakeups for the untold past to be forgotten.
const ROUNDS: u64 = 100;
const WHEEL: Difference = Difference::UnknownInput(Unknown::WheelTimer);

/// A stay in idle as the rig prints it, on CPU 4: times in µs.
#[derive(Clone, Copy)]
struct Round {
    sleep_length: u64,
    stay: u64,
    /// The state that the recording claims, and a stop of the tick.
    state: u8,
    stops: bool,
    /// The tick's handler runs in this stay.
    tick: bool,
}

const WOKEN_EARLY: Round =
    Round { sleep_length: 50_000, stay: 100, state: 0, stops: false, tick: false };

/// Once a task has run, `rounds` of the same stay, 10 ms apart, each followed by a task; then `last`.
fn trace_of(rounds: u64, round: Round, last: Round) -> String {
    let mut text = String::new();
    for n in 0..rounds {
        let r = if n + 1 == rounds { last } else { round };
        let start = 1_000_000 + n * 100_000;
        let mut line = |after: u64, pid: u32, flags: &str, what: String| {
            let at = start + after;
            let time = format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
            text += &format!("  t-{pid} [004] {flags} {time}: {what}\n");
        };
        let switch = |prev: u32, next: u32| {
            format!(
                "sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm=b next_pid={next} next_prio=120"
            )
        };
        line(0, 0, "d..2.", switch(0, 9));
        line(500, 9, "d..2.", switch(9, 0));
        let length = r.sleep_length * 1000;
        line(502, 0, "d..3.", format!("sleep_out: sleep len={length} tick=3000000"));
        if r.stops {
            line(503, 0, "d..1.", "tick_stop: success=1 dependency=NONE".into());
        }
        line(503, 0, "d..1.", format!("cpu_idle: state={} cpu_id=4", r.state));
        let end = 502 + r.stay;
        line(end - 1, 0, "d..1.", "cpu_idle: state=4294967295 cpu_id=4".into());
        if r.tick {
            let what = "hrtimer_expire_entry: hrtimer=0 function=tick_nohz_handler now=0";
            line(end - 1, 0, "d.h1.", what.into());
        }
        line(
            end,
            0,
            "dN.2.",
            format!("reflect: reflect st={} res={}", r.state, (r.stay - 2) * 1000),
        );
        line(end + 2, 0, "dN.2.", "ipi_exit: (x)".into());
    }
    text
}

/// State, tick and stays, and how many wakeups the stamps leave open.
struct Driven {
    state: Mechanism,
    stop_tick: Mechanism,
    stays: Mechanism,
    time_open: u64,
}

fn driven(drive: &IdleDrive<'_>) -> Driven {
    let mut table = drive.table();
    let menu = table.get(What::MenuState).is_some();
    let (state, tick) =
        if menu { (What::MenuState, What::MenuTick) } else { (What::TeoState, What::TeoTick) };
    let mut row = |what| table.row(what).clone();
    Driven {
        state: row(state),
        stop_tick: row(tick),
        stays: row(What::IdleMiss),
        time_open: drive.time_open,
    }
}

fn drive(text: &str) -> Driven {
    // The board switches the events of ticks on before anything else happens.
    let text = format!("  t-0 [007] d..1. 0.400000: tick_stop: success=1 dependency=NONE\n{text}");
    let machine = Machine::parse(META).unwrap();
    let mut trace = Trace::new(Box::new(Cursor::new(text)));
    let mut drive = IdleDrive::new(&machine);
    drive.drive(&mut trace).unwrap();
    assert_eq!(trace.bad_lines().0, []);
    driven(&drive)
}

#[test]
fn what_the_past_can_decide_is_not_judged() {
    let tally = drive(&trace_of(ROUNDS, WOKEN_EARLY, WOKEN_EARLY));
    let Mechanism { events, judged, equal, trivial, .. } = tally.state;
    // Full of late wakeups, teo would need six early ones to believe in them: (7/8)^6 < 1/2.
    assert_eq!((events, judged, equal, trivial), (ROUNDS, ROUNDS - 6, ROUNDS - 6, ROUNDS - 6));
    assert_eq!(tally.time_open, 0);
}

#[test]
fn each_cause_is_told_from_the_others() {
    let early = WOKEN_EARLY;
    // Always woken about when the timer was due: the difference of the lines is the sleep length, so a
    // little less and a little more are possible too. Slept: too short for state 1 if less its latency.
    let late = Round { sleep_length: 2050, stay: 2050, state: 1, stops: false, tick: false };
    let by_timer = Round { sleep_length: 9000, stay: 9100, state: 1, stops: true, tick: false };
    let other_cpu = "  t-9 [005] d..2. 0.500000: sched_switch: prev_comm=a prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=9 next_prio=120\n";
    for (name, round, last, before, state_cause, tick_cause) in [
        ("equal", early, early, "", None, None),
        (
            "a wrong state",
            early,
            Round { state: 1, ..early },
            "",
            Some(Difference::ModelWrong),
            None,
        ),
        (
            "a wrong stop",
            early,
            Round { stops: true, ..early },
            "",
            None,
            Some(Difference::ModelWrong),
        ),
        ("equal, late", late, late, "", None, None),
        ("time", late, Round { state: 0, ..late }, "", Some(Difference::Timestamp), None),
        ("equal, timer", by_timer, by_timer, "", None, None),
        ("last", by_timer, Round { stops: false, ..by_timer }, "", None, Some(WHEEL)),
        (
            "not the last",
            by_timer,
            Round { stops: false, ..by_timer },
            other_cpu,
            None,
            Some(Difference::ModelWrong),
        ),
    ] {
        let tally = drive(&format!("{before}{}", trace_of(ROUNDS, round, last)));
        let causes = |row: &Mechanism| row.differences.clone().into_iter().collect::<Vec<_>>();
        let one = |cause: Option<Difference>| cause.map(|c| (c, 1)).into_iter().collect::<Vec<_>>();
        assert_eq!(causes(&tally.state), one(state_cause), "{name}: state");
        assert_eq!(causes(&tally.stop_tick), one(tick_cause), "{name}: tick");
        // Only where span and sleep length meet do the stamps leave anything open.
        assert_eq!(tally.time_open > 0, name == "equal, late" || name == "time", "{name}");
    }
}

#[test]
fn a_tick_that_ran_hides_an_early_wakeup() {
    // The tick woke the CPU long before its timer: says nothing, counts as slept to the end.
    let ticked = Round { stay: 2300, state: 1, stops: true, tick: true, ..WOKEN_EARLY };
    let tally = drive(&trace_of(ROUNDS, ticked, ticked));
    assert_eq!(tally.state.equal, tally.state.judged);
    assert_eq!(tally.stop_tick.equal, tally.stop_tick.judged);
    // Without it the same stays are early wakeups within a tick, and the tick would be kept.
    let woken = Round { tick: false, ..ticked };
    let tally = drive(&trace_of(ROUNDS, woken, woken));
    assert_eq!(tally.stop_tick.equal, 0);
}

/// Whatever a file holds, driving it ends: no panic, no overflow.
#[test]
fn garbled_recordings_are_survived() {
    let good = trace_of(20, WOKEN_EARLY, WOKEN_EARLY);
    let mut random = 1u64;
    let mut draw = |below: usize| {
        // Knuth's MMIX generator; its high bits are random enough to garble text.
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    const LARGE: [&str; 4] = ["9223372036854775807", "-9223372036854775808", "4294967295", "0"];
    let machine = Machine::parse(META).unwrap();
    for _ in 0..300 {
        let mut lines: Vec<String> = good.lines().map(str::to_string).collect();
        for _ in 0..1 + draw(8) {
            let at = draw(lines.len());
            match draw(3) {
                0 => drop(lines.remove(at)),
                1 => lines.swap(at, 0),
                _ => {
                    let mut fields: Vec<&str> = lines[at].split('=').collect();
                    let field = draw(fields.len());
                    let value = fields[field];
                    let end = value.find(' ').unwrap_or(value.len());
                    let changed = format!("{}{}", LARGE[draw(LARGE.len())], &value[end..]);
                    fields[field] = &changed;
                    lines[at] = fields.join("=");
                }
            }
        }
        let mut trace = Trace::new(Box::new(Cursor::new(lines.join("\n"))));
        IdleDrive::new(&machine).drive(&mut trace).unwrap();
    }
}

/// The recordings with most choices against the commonest: early wakeups, and every task on CPU 6; and of
/// menu: short and long sleeps on CPUs that keep and stop their ticks.
#[test]
fn recordings_are_met() {
    for (name, judged_min) in
        [("ramp.3", 600), ("slowpath.2", 2000), ("ui-light-menu.1", 600), ("tick-73hz-menu.2", 300)]
    {
        let path = recordings_dir().join(format!("{name}.trace.txt.xz"));
        if !path.exists() {
            eprintln!("skipped {name}: {} is not there", path.display());
            continue;
        }
        let machine = Machine::of_recording(&path).unwrap();
        let drive = drive_file(&path, &machine).unwrap().expect("teo or menu");
        let (tally, misses) = (driven(&drive), &drive.misses);
        assert_eq!(machine.governor == "menu", name.contains("menu"));
        assert_eq!(tally.state.equal, tally.state.judged, "{name}: {misses:#?}");
        assert_eq!(tally.stop_tick.wrong(), 0, "{name}: {misses:#?}");
        assert_eq!(tally.stays.equal, tally.stays.judged, "{name}");
        assert!(tally.state.judged >= judged_min, "{name}: {:?}", tally.state);
        if machine.governor == "teo" {
            for row in [&tally.state, &tally.stop_tick] {
                assert!(row.trivial * 10 < row.judged * 9, "{name}: says too little");
            }
        }

        // A governor that believes in another machine makes other choices.
        let mut text = std::fs::read_to_string(meta_path(&path)).unwrap();
        let (from, to) = if machine.governor == "teo" { (3500, 2500) } else { (3500, 12000) };
        text = text.replace(&format!("residency = {from}"), &format!("residency = {to}"));
        if machine.governor == "menu" {
            text = text.replace("residency = 2000", "residency = 12000");
        }
        let machine = Machine::parse(&text).unwrap();
        let mut drive = IdleDrive::new(&machine);
        drive.drive(&mut Trace::open(&path).unwrap()).unwrap();
        let other = driven(&drive);
        assert!(other.state.equal < other.state.judged, "{name}: insensitive");
        assert!(other.stays.equal < other.stays.judged, "{name}: insensitive");
    }
}

#[test]
fn another_governor_is_not_driven() {
    assert!(drive::corners(&Config::linux_6_12(), "ladder", 2).is_none());
}
