use super::*;
use std::io::Cursor;

const META: &str = "\
/sys/devices/system/cpu/cpuidle/current_governor = teo
/sys/devices/system/cpu/cpu0/cpuidle/state0/latency = 1
/sys/devices/system/cpu/cpu0/cpuidle/state0/residency = 1
/sys/devices/system/cpu/cpu0/cpuidle/state1/latency = 230
/sys/devices/system/cpu/cpu0/cpuidle/state1/residency = 2000
CONFIG_HZ=250
";
/// Enough wakeups for the untold past to be forgotten.
const ROUNDS: u64 = 100;

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

fn drive(text: &str) -> IdleTally {
    let board = Board::parse(META).unwrap();
    let mut trace = Trace::new(Box::new(Cursor::new(text.to_string())));
    let mut drive = IdleDrive::new(&board);
    drive.drive(&mut trace).unwrap();
    assert_eq!(trace.bad_lines().0, []);
    drive.tally
}

#[test]
fn what_the_past_can_decide_is_not_judged() {
    let tally = drive(&trace_of(ROUNDS, WOKEN_EARLY, WOKEN_EARLY));
    let Score { events, unjudged, equal, .. } = tally.state;
    assert_eq!((events, equal), (ROUNDS, ROUNDS - unjudged));
    // Full of late wakeups, teo would need six early ones to believe in them: (7/8)^6 < 1/2.
    assert_eq!(unjudged, 6);
    assert_eq!(tally.warm_up[&4], (6, 1));
    assert_eq!((tally.time_open, tally.not_entered), (0, 0));
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
        ("a wrong state", early, Round { state: 1, ..early }, "", Some(Cause::Model), None),
        ("a wrong stop", early, Round { stops: true, ..early }, "", None, Some(Cause::Model)),
        ("equal, late", late, late, "", None, None),
        ("time", late, Round { state: 0, ..late }, "", Some(Cause::Timestamps), None),
        ("equal, timer", by_timer, by_timer, "", None, None),
        ("last", by_timer, Round { stops: false, ..by_timer }, "", None, Some(Cause::LastTick)),
        (
            "not the last",
            by_timer,
            Round { stops: false, ..by_timer },
            other_cpu,
            None,
            Some(Cause::Model),
        ),
    ] {
        let tally = drive(&format!("{before}{}", trace_of(ROUNDS, round, last)));
        let causes = |score: &Score| score.causes.clone().into_iter().collect::<Vec<_>>();
        let one = |cause: Option<Cause>| cause.map(|c| (c, 1)).into_iter().collect::<Vec<_>>();
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
    assert_eq!(tally.state.equal, tally.state.judged());
    assert_eq!(tally.stop_tick.equal, tally.stop_tick.judged());
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
    let board = Board::parse(META).unwrap();
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
        IdleDrive::new(&board).drive(&mut trace).unwrap();
    }
}

/// The recordings with most choices against the commonest: early wakeups, and every task on CPU 6.
#[test]
fn two_recordings_are_met() {
    for (name, judged_min) in [("ramp.3", 600), ("slowpath.2", 2000)] {
        let path = recordings_dir().join(format!("{name}.trace.txt.xz"));
        if !path.exists() {
            eprintln!("skipped {name}: {} is not there", path.display());
            continue;
        }
        let Outcome::Driven(_, tally, misses) = drive_file(&path).unwrap() else {
            panic!("{name}: another governor")
        };
        for score in [&tally.state, &tally.stop_tick] {
            assert_eq!(score.equal, score.judged(), "{name}: {misses:#?}");
            assert!(score.trivial() * 10 < score.judged() * 9, "{name}: says too little");
        }
        assert_eq!(tally.stays.0, tally.stays.1, "{name}");
        assert!(tally.stays.0 >= judged_min, "{name}: {:?}", tally.stays);
        assert!(tally.state.judged() >= judged_min, "{name}: {}", Rows(name, &tally));

        // A teo that believes in another machine makes other choices.
        let mut text = std::fs::read_to_string(board::meta_path(&path)).unwrap();
        text = text.replace("state1/residency = 3500", "state1/residency = 2500");
        let board = Board::parse(&text).unwrap();
        let mut drive = IdleDrive::new(&board);
        drive.drive(&mut Trace::open(&path).unwrap()).unwrap();
        assert!(drive.tally.state.equal < drive.tally.state.judged(), "{name}: insensitive");
        assert!(drive.tally.stays.1 < drive.tally.stays.0, "{name}: insensitive");
    }
}

/// menu: short and long sleeps on CPUs that keep and stop their ticks.
#[test]
fn recordings_of_menu_are_met() {
    for (name, judged_min) in [("ui-light-menu.1", 600), ("tick-73hz-menu.2", 300)] {
        let path = recordings_dir().join(format!("{name}.trace.txt.xz"));
        if !path.exists() {
            eprintln!("skipped {name}: {} is not there", path.display());
            continue;
        }
        let Outcome::Driven(governor, tally, misses) = drive_file(&path).unwrap() else {
            panic!("{name}: another governor")
        };
        assert_eq!(governor, "menu");
        assert_eq!(tally.state.equal, tally.state.judged(), "{name}: {misses:#?}");
        let causes: Vec<Cause> = tally.stop_tick.causes.keys().copied().collect();
        assert_eq!(causes, [Cause::WheelTimer], "{name}: {misses:#?}");
        assert!(tally.state.judged() >= judged_min, "{name}: {}", Rows(name, &tally));
        assert_eq!(tally.stays.0, tally.stays.1, "{name}");

        // A menu on another machine makes other choices.
        let mut text = std::fs::read_to_string(board::meta_path(&path)).unwrap();
        text = text.replace("/residency = 3500", "/residency = 12000");
        text = text.replace("/residency = 2000", "/residency = 12000");
        let board = Board::parse(&text).unwrap();
        let mut drive = IdleDrive::new(&board);
        drive.drive(&mut Trace::open(&path).unwrap()).unwrap();
        assert!(drive.tally.state.equal < drive.tally.state.judged(), "{name}: insensitive");
    }
}

#[test]
fn another_governor_is_not_driven() {
    assert!(drive::corners("ladder", 2).is_none());
}

#[test]
fn skill_is_full_only_if_all_are_equal() {
    assert_eq!(skill(10, 4, 10), "1.000");
    assert_eq!(skill(99_999, 0, 100_000), "0.999");
    assert_eq!(skill(3, 4, 10), "-0.167");
    assert_eq!(skill(10, 10, 10), "-");
}

#[test]
fn bad_options_and_files_are_reported_not_fatal() {
    let run = |args: &[&str]| main(&args.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(run(&["--no-such-option"]), 2);
    assert_eq!(run(&["/no/such/recording.1.trace.txt"]), 2);
}
