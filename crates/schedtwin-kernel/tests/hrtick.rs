// SPDX-License-Identifier: GPL-2.0-or-later
//! The hrtick of 7.3: what it ends, who sets it, and what it leaves behind.
//!
//! What is expected follows from the kernel's rules; each test names the rule.

#[allow(dead_code, reason = "the harness serves other files too")]
mod harness;

use harness::{Board, MS, ORIGIN, config, device_tree};
use schedtwin_kernel::config::{Config, EevdfForm, Features, Preempt};
use schedtwin_kernel::time::hrtimer::TimerKind;
use schedtwin_types::*;

/// A microsecond.
const US: Ns = 1_000;

fn with(hrtick: bool, preempt: Preempt) -> Config {
    let config = config();
    let features = Features { hrtick, hrtick_dl: hrtick, ..config.features };
    let slice = 2_800_000;
    Config { features, preempt, eevdf_form: EevdfForm::V7_3, base_slice_unscaled: slice, ..config }
}

/// A slice of 2.8 ms (a new task's first is half of it) ends at its virtual deadline; without a hrtick at the tick behind it (4 ms). The flag is a full one: work in
/// kernel mode gives way, too, where preemption is lazy.
#[test]
fn slices_end_at_their_deadline() {
    let (short, long) =
        ("aaaabbbccccaaaaaaabbbbbbbcccccccaaa", "aaaaaaaaaabbbbbbbbbbccccccccccaaaaa");
    for (hrtick, preempt, mode, expected) in [
        (true, Preempt::Full, "run", short),
        (false, Preempt::Full, "run", long),
        (true, Preempt::Lazy, "krun", short),
    ] {
        let scenario = format!("a @0: [{mode} 1s]\nb @0: [{mode} 1s]\nc @0: [{mode} 1s]");
        let mut board = Board::with(device_tree(1), with(hrtick, preempt), &scenario);
        board.run_until(20 * MS);
        let timeline = board.timeline(400 * US, 0, 14 * MS);
        let timeline = timeline.trim_start_matches("cpu0 ").trim();
        assert_eq!(timeline, expected, "{hrtick} {preempt:?} {mode}");
    }
}

/// `b` is queued at 4.5 ms: what is then left of the slice of `a`, and how long `b` waits, us.
fn waits(cpus: usize, hrtick: bool, scenario: &str) -> (u64, u64) {
    let mut board = Board::with(device_tree(cpus), with(hrtick, Preempt::Full), scenario);
    board.run_until(4_510 * US);
    let [a, b] = ["a", "b"].map(|name| board.task(name));
    let inside = board.kernel.inside();
    let se = &inside.se[inside.tasks[a].se];
    let left = (se.deadline - se.vruntime) / US;
    board.run_until(40 * MS);
    let ran = board.switches(0).into_iter().filter(|s| s.1 == b && s.0 > 4_500 * US).map(|s| s.0);
    (left, ran.min().expect("it ran") / US - 4_500)
}

/// A task that runs alone has no timer. Who is queued meanwhile, by a timer on this CPU or from another one, sets it to the end of
/// the slice; without a hrtick the next tick behind that ends it.
#[test]
fn an_enqueue_sets_the_timer_of_who_runs() {
    let own = "a @0: [run 1s]\nb @0: policy batch, until 4500us, run 1ms, [sleep 1s]";
    let remote = "a @0: cpus 0, [run 1s]
        b @0: cpus 0, policy batch, wait 0, run 1ms, [sleep 1s]
        waker @0: cpus 1, until 4500us, wake 0, run 100us, [sleep 1s]";
    for (cpus, scenario) in [(1, own), (2, remote)] {
        let (left, waited) = waits(cpus, true, scenario);
        assert_eq!(waited, left, "{scenario}");
        let (left, waited) = waits(cpus, false, scenario);
        let tick = (4_500 + left).next_multiple_of(4_000);
        assert_eq!(waited, tick - 4_500, "{left}: {scenario}");
    }
}

/// The timer moves from the end of `a`'s slice (1.4 ms) to that of `b`'s (2.4 ms), and is taken back when `b` sleeps and the CPU goes
/// idle. The clock event stays armed for what it was, each time, until its interrupt.
#[test]
fn the_clock_event_stays_armed_for_a_cancelled_timer() {
    let scenario = "a @0: run 1ms, until 30ms, run 1ms, [sleep 1s]\nb @0: run 500us, [sleep 1s]";
    let mut board = Board::with(device_tree(1), with(true, Preempt::Full), scenario);
    let seen = [500, 1_300, 1_700, 2_900].map(|at| {
        board.run_until(at * US);
        let inside = board.kernel.inside();
        let timer = inside.timers[CpuId(0)].is_queued(TimerKind::Hrtick);
        (timer, (board.kernel.hardware().wires(CpuId(0)).clock_event_at - ORIGIN) / US)
    });
    assert_eq!(seen, [(true, 1_400), (true, 1_400), (false, 2_400), (false, 30_000)]);
}
