// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand, of both forms. The differential tests against the kernel's own C are in
//! `conformance/src/menu`.

use super::*;
use crate::cpuidle::states::by_hand::{input, off, poll, state};
use crate::cpuidle::states::{KTIME_MAX, SleepLength};

/// Intervals that tell nothing.
const UNKNOWN: [u32; INTERVALS] = [u32::MAX; INTERVALS];

fn remembers(intervals: [u32; INTERVALS]) -> MenuCpu {
    MenuCpu { intervals, ..MenuCpu::default() }
}

#[test]
fn buckets_are_decades() {
    for (below, bucket) in [(10, 0), (100, 1), (1000, 2), (10_000, 3), (100_000, 4)] {
        assert_eq!(which_bucket(below * 1000 - 1), bucket);
        assert_eq!(which_bucket(below * 1000), bucket + 1);
    }
    assert_eq!(which_bucket(KTIME_MAX as u64), 5);
}

#[test]
fn the_corrected_time_is_rounded_and_wraps() {
    let mut menu = MenuCpu::default();
    // (4096000 + 32768000000) / 8192000
    assert_eq!(menu.timer_us(4_000_000, 3), 4000);
    assert_eq!(menu.timer_us(499, 0), 0);
    assert_eq!(menu.timer_us(500, 0), 1);
    menu.correction_factor[3] = 4096;
    assert_eq!(menu.timer_us(4_000_000, 3), 2000);
    // From 4295 s on the quotient does not fit; from 2^51 ns on the product does not.
    assert_eq!(menu.timer_us(4_294_967_296_000, 5), 0);
    assert_eq!(menu.timer_us(1 << 51, 5), 0);
    let wrapped = (i64::MAX as u64).wrapping_mul(8192).wrapping_add(4_096_000) / 8_192_000;
    assert_eq!(menu.timer_us(i64::MAX as u64, 5), wrapped as u32);
}

#[test]
fn typical_intervals() {
    let typical = |intervals| remembers(intervals).typical_interval_us(|_, max| max == 0);
    for (intervals, expected) in [
        ([812; 8], 812),
        // Much alike but for one, but for two.
        ([810, 812, 811, 9000, 812, 813, 812, 812], 811),
        ([810, 812, 811, 9000, 812, 813, 8000, 812], 811),
        // Three are too many.
        ([810, 812, 811, 9000, 812, 7000, 8000, 812], u32::MAX),
        // A standard deviation of 20 us is enough for the shortest of intervals: 0 and 40.
        ([0, 40, 0, 40, 0, 40, 0, 40], 20),
        ([0, 42, 0, 42, 0, 42, 0, 42], u32::MAX),
        // Beyond that a sixth of the mean: 1000 ± 166, 1000 ± 167.
        ([834, 1166, 834, 1166, 834, 1166, 834, 1166], 1000),
        ([820, 1180, 880, 1180, 760, 1180, 880, 1180], u32::MAX),
        // Equal ones go together, and those that are left may be few if they are narrow.
        ([833, 1167, 833, 1167, 833, 1167, 833, 1167], 833),
        // Refused entries are left out, even if few others remain; a narrow spread is then needed.
        ([u32::MAX, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 500, 510, 520], 510),
        ([u32::MAX, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 5000, 5100, 5200], u32::MAX),
        (UNKNOWN, u32::MAX),
        ([0; 8], u32::MAX),
    ] {
        assert_eq!(typical(intervals), expected, "{intervals:?}");
    }
    // 5.18 does not look for it if no sleep was shorter than the timer says.
    let menu = remembers([812; 8]);
    assert_eq!(menu.typical_interval_us(|min, _| min >= 813), 812);
    assert_eq!(menu.typical_interval_us(|min, _| min >= 812), u32::MAX);
    // And zeros are as good as any other interval.
    assert_eq!(remembers([0; 8]).typical_interval_us(|min, _| min >= 812), 0);
}

#[test]
fn what_an_update_measures() {
    let states = [poll(), state(1, 1), state(230, 2000)];
    // (state, residency, next timer, tick ran, polling gave up) → (interval us, factor of that timer)
    for (last, residency_us, timer_us, tick, gave_up, interval_us, factor) in [
        // The exit latency is left out, if more than twice as much was slept.
        (2, 1000, 4000, false, false, 770, 7168 + 197),
        (2, 460, 4000, false, false, 230, 7168 + 58),
        // Never longer than the timer.
        (2, 9000, 4000, false, false, 4000, 7168 + 1024),
        // 50 ms and more are perfect.
        (2, 50_230, 90_000, false, false, 50_000, 7168 + 1024),
        (2, 50_229, 90_000, false, false, 49_999, 7168 + 568),
        // The tick ran although no timer was due within one: 45 ms, if the timer was that far.
        (2, 1000, 90_000, true, false, 45_000, 7168 + 512),
        (2, 1000, 4001, true, false, 4001, 7168 + 1024),
        (2, 1000, 4000, true, false, 770, 7168 + 197),
        // Polling that gave up.
        (0, 20, 4000, false, true, 4000, 7168 + 1024),
        (0, 20, 4000, false, false, 20, 7168 + 5),
        (1, 20, 4000, false, true, 19, 7168 + 4),
        // No timer was asked.
        (1, 20, 0, false, false, 0, 7168 + 1024),
    ] {
        let mut menu = MenuCpu {
            next_timer_ns: timer_us * 1000,
            bucket: which_bucket(timer_us * 1000) as u8,
            ..MenuCpu::default()
        };
        menu.reflect(last, tick, gave_up);
        let input = SelectInput { last_residency_ns: residency_us * 1000, ..input(&states) };
        menu.update(&input);
        let case = (last, residency_us, timer_us, tick, gave_up);
        assert_eq!(menu.intervals[0], interval_us, "{case:?}");
        assert_eq!(menu.correction_factor[menu.bucket as usize], factor, "{case:?}");
        assert_eq!((menu.interval_ptr, menu.needs_update), (1, false));
        // Once.
        let before = menu.clone();
        menu.update(&input);
        assert_eq!(menu, before);
    }
}

#[test]
fn a_refused_entry_is_an_interval_that_never_counts() {
    let states = [state(1, 1), state(230, 2000)];
    let mut menu = MenuCpu::default();
    menu.update(&input(&states)); // the very first selection, too
    menu.update(&input(&states));
    assert_eq!(menu.intervals[..3], [u32::MAX, u32::MAX, 0]);
    assert_eq!(menu.correction_factor, MenuCpu::default().correction_factor);
}

/// Selects with both forms: (state, may stop, rule) of 5.18 and of 6.12, and whether 6.12 asked the timers.
fn check(
    intervals: [u32; INTERVALS],
    input: SelectInput,
    (sleep_us, tick_us): (i64, i64),
    old: (usize, bool, SelectRule),
    new: (usize, bool, SelectRule),
    new_asks: bool,
) {
    let timers = SleepLength { sleep_length_ns: sleep_us * 1000, delta_tick_ns: tick_us * 1000 };
    let menu = remembers(intervals);
    let chosen = v5_18::decide(&menu, &input, timers);
    assert_eq!((chosen.idx, chosen.stop_tick, chosen.rule), old, "5.18");
    assert_eq!(chosen.sleep_length_ns, Some(timers.sleep_length_ns));
    let chosen = v6_12::decide(&menu, &input, &mut || timers);
    assert_eq!((chosen.idx, chosen.stop_tick, chosen.rule), new, "6.12");
    assert_eq!(chosen.sleep_length_ns.is_some(), new_asks);
}

use SelectRule as S;

#[test]
fn each_rule_decides_once() {
    let states = [state(1, 1), state(230, 2000), state(455, 3500)];
    let i = input(&states);
    let both = |intervals, input, timers, expected| {
        check(intervals, input, timers, expected, expected, true);
    };
    both(UNKNOWN, i, (50_000, 3_900), (2, true, S::Timer));
    both(UNKNOWN, i, (3_000, 3_000), (1, false, S::Timer));
    // State 0 no matter what is predicted; then the tick may stop, even with a timer before it.
    both(UNKNOWN, i, (1_999, 1_999), (0, true, S::TimerTooSoon));
    both(UNKNOWN, i, (-5, -5), (0, true, S::TimerTooSoon));
    both(UNKNOWN, input(&states[..1]), (50_000, 3_900), (0, true, S::NoChoice));
    let no_latency = SelectInput { latency_req_ns: 0, ..i };
    both(UNKNOWN, no_latency, (50_000, 3_900), (0, true, S::LatencyLimit));
    let state_0 = SelectInput { latency_req_ns: 229_999, ..i };
    both(UNKNOWN, state_0, (50_000, 3_900), (0, true, S::LatencyLimit));
    let state_1 = SelectInput { latency_req_ns: 230_000, ..i };
    both(UNKNOWN, state_1, (50_000, 3_900), (1, true, S::LatencyLimit));
    // Intervals of 3 ms: shorter than the timer.
    both([3_000; 8], i, (50_000, 3_900), (1, false, S::Typical));
    // The tick goes on and comes before state 1 pays.
    both([3_000; 8], i, (50_000, 1_900), (0, false, S::Tick));
    // A stopped tick: 3 ms is not believed.
    let stopped = SelectInput { tick_stopped: true, ..i };
    both([3_000; 8], stopped, (50_000, 3_900), (2, true, S::TickStopped));
    // Disabled states.
    let none = [off(states[0]), off(states[1])];
    both(UNKNOWN, input(&none), (50_000, 3_900), (0, true, S::NoneEnabled));
    let first_off = [off(states[0]), states[1], states[2]];
    both(UNKNOWN, input(&first_off), (1_000, 1_000), (1, false, S::Timer));
    // Longer than a tick, but no state for it: keep the tick, to look again.
    let gap = [state(1, 1), state(230, 20_000)];
    both([5_000; 8], input(&gap), (50_000, 3_900), (0, false, S::Typical));
    let stopped = SelectInput { tick_stopped: true, ..input(&gap) };
    both([5_000; 8], stopped, (50_000, 50_000), (1, true, S::NotStuck));
    both([5_000; 8], stopped, (50_000, 19_999), (0, true, S::Typical));
}

/// Only 5.18: the exit latency must fit into the prediction, divided for I/O waiters.
#[test]
fn interactivity_counts_before_6_6() {
    let states = [state(1, 1), state(230, 250)];
    let with = |nr_iowaiters| SelectInput { nr_iowaiters, ..input(&states) };
    let intervals = [2_600; 8];
    let new = (1, false, S::Typical);
    check(intervals, with(0), (50_000, 3_900), (1, false, S::Typical), new, true);
    // 2600 / 11 = 236, 2600 / 21 = 123
    check(intervals, with(1), (50_000, 3_900), (1, false, S::Typical), new, true);
    check(intervals, with(2), (50_000, 3_900), (0, false, S::Interactivity), new, true);
    let stopped = SelectInput { tick_stopped: true, ..with(2) };
    let new = (1, true, S::TickStopped);
    check(intervals, stopped, (50_000, 3_900), (1, true, S::TickStopped), new, true);
    // They have buckets of their own.
    let timers = SleepLength { sleep_length_ns: 3_000_000, delta_tick_ns: 3_000_000 };
    let menu = MenuCpu::default();
    assert_eq!([0, 1].map(|n| v5_18::decide(&menu, &with(n), timers).bucket), [3, 9]);
}

/// 6.12 does not ask the timers after very short sleeps, and takes the tick to be half its length away.
#[test]
fn very_short_sleeps() {
    let states = [state(1, 1), state(2, 10), state(230, 2000)];
    let i = input(&states);
    check([15; 8], i, (50_000, 1), (0, false, S::Tick), (1, false, S::Typical), false);
    check([16; 8], i, (50_000, 1), (0, false, S::Tick), (0, false, S::Tick), true);
    check([15; 8], i, (50_000, 3_900), (1, false, S::Typical), (1, false, S::Typical), false);
    // A stopped tick: always.
    let stopped = SelectInput { tick_stopped: true, ..i };
    let deep = (2, true, S::TickStopped);
    check([15; 8], stopped, (50_000, 3_900), deep, deep, true);
}

/// Neither spins if there is a cheap state that pays until the timer; what is cheap differs.
#[test]
fn sleeping_rather_than_spinning() {
    let x86 = [poll(), state(2, 2), state(10, 20)];
    let short = [1; 8];
    let spins = (0, false, S::Typical);
    check(short, input(&x86), (50_000, 900), spins, spins, false);
    let two = [3; 8];
    let sleeps = (1, false, S::Typical);
    check(two, input(&x86), (50_000, 900), sleeps, sleeps, false);
    // Predicted 1 us, and leaving takes as long.
    let x86 = [poll(), state(1, 2), state(10, 20)];
    let sleeps = (1, false, S::NoPolling);
    check(short, input(&x86), (50_000, 900), sleeps, sleeps, false);
    // Leaving takes longer than that: not in place of polling.
    let slow = [poll(), state(3, 4), state(10, 20)];
    let far = || SleepLength { sleep_length_ns: 50_000_000, delta_tick_ns: 900_000 };
    let chosen = |drops_polling| {
        let menu = MenuCpu { drops_polling, ..remembers(short) };
        v6_12::decide(&menu, &input(&slow), &mut far.clone()).idx
    };
    assert_eq!([false, true].map(chosen), [0, 1]);
    // Not a cheap one in 6.12: it pays after 15 us only.
    let x86 = [poll(), state(1, 15)];
    check(short, input(&x86), (50_000, 900), sleeps, spins, false);
}
