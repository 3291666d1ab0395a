// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand. The differential tests against the kernel's own C are in `conformance/src/teo`.

use super::*;
use crate::cpuidle::states::IdleStateParams;
use crate::cpuidle::states::by_hand::{TICK, input, state, timers};

/// A CPU that remembers these (hits, intercepts) and nothing to update.
fn remembers(bins: &[(u32, u32)]) -> TeoCpu {
    let mut teo = TeoCpu { last_state_idx: None, ..Default::default() };
    for (bin, &(hits, intercepts)) in teo.state_bins.iter_mut().zip(bins) {
        *bin = TeoBin { hits, intercepts };
        teo.total += hits + intercepts;
    }
    teo
}

/// Returns the counts of a stay in state 1: hits and intercepts of two states' bins, tick
/// intercepts, short idles.
fn counted(sleep_length_ns: i64, residency_ns: u64, tick_nsec: i64) -> ([TeoBin; 2], u32, u32) {
    let states = [state(1, 1), state(455, 3500)];
    let mut teo = TeoCpu { last_state_idx: Some(1), sleep_length_ns, ..remembers(&[]) };
    teo.update(&SelectInput { last_residency_ns: residency_ns, tick_nsec, ..input(&states) });
    ([teo.state_bins[0], teo.state_bins[1]], teo.tick_intercepts, teo.short_idles)
}

#[test]
fn an_early_wakeup_within_the_timers_bin_is_an_intercept() {
    let none = TeoBin::default();
    let hit = TeoBin { hits: PULSE, intercepts: 0 };
    let intercept = TeoBin { hits: 0, intercepts: PULSE };
    // 10 ms asked for, 5 ms slept: 4.7725 ms measured, in bin 1 like the timer.
    assert_eq!(counted(10_000_000, 5_000_000, TICK), ([none, intercept], 0, 0));
    assert_eq!(counted(10_000_000, 5_000_000, 10_000_000), ([none, intercept], PULSE, 0));
    // The timer came: what is missing is less than half of the exit latency, 227.5 us.
    assert_eq!(counted(10_000_000, 10_000_001, TICK), ([none, hit], 0, 0));
    assert_eq!(counted(10_000_000, 10_000_000, TICK), ([none, intercept], 0, 0));
    // Shorter than the exit latency: half of it, and short.
    assert_eq!(counted(10_000_000, 454_999, TICK), ([intercept, none], PULSE, PULSE));
}

#[test]
fn small_counters_are_forgotten() {
    let mut counter = 1024;
    let mut seen = Vec::new();
    for _ in 0..4 {
        decay(&mut counter);
        seen.push(counter);
    }
    assert_eq!(seen, [896, 784, 686, 601]);
    let mut counter = 8;
    decay(&mut counter);
    assert_eq!(counter, 7);
    decay(&mut counter);
    assert_eq!(counter, 0);
}

#[test]
fn a_polling_state_that_gave_up_has_slept_without_end() {
    let poll = IdleStateParams { polling: true, ..Default::default() };
    let states = [poll, state(2, 2)];
    let mut teo = TeoCpu { sleep_length_ns: 50_000_000, ..remembers(&[]) };
    teo.reflect(&Reflection {
        state: 0,
        got_tick: false,
        poll_time_limit: true,
        now: 0,
        tick_nsec: TICK,
        last_residency_ns: 2000,
    });
    teo.update(&SelectInput { last_residency_ns: 2000, ..input(&states) });
    assert_eq!((teo.state_bins[1].hits, teo.short_idles, teo.poll_time_limit), (PULSE, 0, false));
}

#[test]
fn ticks_that_prevail_speak_for_the_deepest_state() {
    let states = [state(1, 1), state(100, 1000), state(455, 3500)];
    let tick = |teo: &mut TeoCpu| {
        teo.last_state_idx = Some(0);
        teo.tick_wakeup = true;
        teo.sleep_length_ns = 2_000_000;
        teo.update(&SelectInput { last_residency_ns: 1_500_000, ..input(&states) });
    };
    // One tick alone is all there was.
    let mut teo = remembers(&[]);
    tick(&mut teo);
    assert_eq!((teo.state_bins[2].hits, teo.total_tick), (PULSE, PULSE));
    // Among hits it is a hit of the timer's bin.
    let mut teo = remembers(&[(4000, 0)]);
    tick(&mut teo);
    assert_eq!((teo.state_bins[1].hits, teo.state_bins[2].hits), (PULSE, 0));
    // Among intercepts within a tick it is judged by itself: early for its timer.
    let mut teo = TeoCpu { tick_intercepts: 4000, ..remembers(&[(0, 4000)]) };
    tick(&mut teo);
    assert_eq!((teo.state_bins[1].hits, teo.state_bins[1].intercepts), (0, PULSE));
}

/// One selection: (state, may stop, rule, tick rule, were the timers asked).
fn check(
    teo: &TeoCpu,
    input: &SelectInput,
    mut timers: impl FnMut() -> SleepLength,
    expected: (usize, bool, SelectRule, TickRule, bool),
) {
    let chosen = teo.decide(input, &mut timers);
    let asked = chosen.sleep_length_ns.is_some();
    assert_eq!((chosen.idx, chosen.stop_tick, chosen.rule, chosen.tick_rule, asked), expected);
}

#[test]
fn each_rule_decides_once() {
    use {SelectRule as S, TickRule as T};
    let states = [state(1, 1), state(230, 2000), state(455, 3500)];
    let new = remembers(&[(0, 0), (0, 0), (1024, 0)]);
    let far = || timers(50_000, 3_900);
    let i = input(&states);

    check(&new, &i, far(), (2, true, S::Deepest, T::LongSleep, true));
    check(&new, &i, timers(3_000, 3_000), (1, false, S::Timer, T::ShortSleep, true));
    check(&new, &i, timers(50_000, 3_400), (2, true, S::Deepest, T::LongSleep, true));

    // Early wakeups that reached state 1; state 0, whose timer is asked for unless sleeps are short.
    let early = remembers(&[(0, 100), (0, 800), (0, 0)]);
    check(&early, &i, far(), (1, true, S::Intercepts, T::LongSleep, true));
    let very_early = remembers(&[(0, 800), (0, 100), (0, 0)]);
    check(&very_early, &i, far(), (0, false, S::Intercepts, T::Shallow, true));
    let short = TeoCpu { short_idles: 450, ..very_early.clone() };
    check(&short, &i, far(), (0, false, S::Intercepts, T::Shallow, false));
    // Half of the intercepts reached state 1, but bin 0 has most of them: no deeper than that.
    let spread = remembers(&[(0, 400), (0, 300), (0, 0)]);
    let deep = [state(1, 1), state(100, 1000), state(230, 2000), state(455, 3500)];
    let spread_deep = TeoCpu { total: 1000, ..remembers(&[(0, 400), (0, 250), (0, 350)]) };
    check(&spread, &i, far(), (0, false, S::Intercepts, T::Shallow, true));
    check(&spread_deep, &input(&deep), far(), (0, false, S::Intercepts, T::Shallow, true));

    // A stopped tick: state 0 would do, but a timer 50 ms away can be far too late.
    let stopped = SelectInput { tick_stopped: true, ..i };
    check(&very_early, &stopped, far(), (2, true, S::NotStuck, T::AlreadyStopped, true));
    let near = timers(8_000, 3_900);
    check(&very_early, &stopped, near, (0, false, S::Intercepts, T::Shallow, true));
    let limit = SelectInput { latency_req_ns: 230_000, ..stopped };
    check(&very_early, &limit, far(), (1, true, S::NotStuck, T::AlreadyStopped, true));

    // Latency limits: state 1 at most; a limit so low that the timers do not matter.
    let limit = SelectInput { latency_req_ns: 230_000, ..i };
    check(&new, &limit, far(), (1, true, S::LatencyLimit, T::LongSleep, true));
    let limit = SelectInput { latency_req_ns: 7_500, ..i };
    check(&new, &limit, far(), (0, false, S::LatencyLimit, T::Shallow, true));
    let limit = SelectInput { latency_req_ns: 7_499, ..i };
    check(&new, &limit, far(), (0, false, S::LatencyLimit, T::Shallow, false));

    // Two thirds of the wakeups are intercepts within a tick: it goes on, and comes too soon for states 2 and 1.
    let mostly = TeoCpu { tick_intercepts: 800, total: 1200, ..remembers(&[]) };
    check(&mostly, &i, timers(50_000, 1_000), (0, false, S::Tick, T::Intercepts, true));
    let fewer = TeoCpu { tick_intercepts: 799, ..mostly };
    check(&fewer, &i, timers(50_000, 1_000), (2, true, S::Deepest, T::LongSleep, true));
}

#[test]
fn disabled_states() {
    use {SelectRule as S, TickRule as T};
    let far = || timers(50_000, 3_900);
    let new = remembers(&[]);
    let off = |state| IdleStateParams { disabled: true, ..state };
    let s = [state(1, 1), state(230, 2000), state(455, 3500)];
    let none = [off(s[0]), off(s[1])];
    check(&new, &input(&none), far(), (0, false, S::NoneEnabled, T::Shallow, false));
    let one = [off(s[0]), s[1]];
    check(&new, &input(&one), far(), (1, false, S::OneEnabled, T::ShortSleep, false));
    // The only enabled state below is what is left.
    let gap = [s[0], off(s[1]), s[2]];
    let early = remembers(&[(0, 100), (0, 800), (0, 0)]);
    check(&early, &input(&gap), far(), (0, false, S::Intercepts, T::Shallow, true));
}
