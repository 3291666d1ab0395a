// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand. The differential tests against the kernel's own C are in
//! `conformance/src/teo`.

use super::*;
use crate::cpuidle::states::by_hand::{TICK, input, off, poll, state, timers};

/// A CPU that remembers these (hits, intercepts) and nothing to update.
fn remembers(bins: &[(u32, u32)]) -> TeoCpu {
    let mut teo = TeoCpu { last_state_idx: None, ..Default::default() };
    for (bin, &(hits, intercepts)) in teo.state_bins.iter_mut().zip(bins) {
        *bin = TeoBin { hits, intercepts };
        teo.total += hits + intercepts;
    }
    teo
}

#[test]
fn counters_decay_by_an_eighth_and_settle_at_eight_pulses() {
    let states = [state(1, 1), state(230, 2000)];
    let mut teo = remembers(&[(1024, 0), (0, 0)]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        // A timer that is met, in bin 1.
        teo.last_state_idx = Some(1);
        teo.sleep_length_ns = 3_000_000;
        teo.time_span_ns = 3_000_000;
        teo.update(&input(&states));
        seen.push(teo.state_bins[0].hits);
    }
    assert_eq!(seen, [896, 784, 686, 601]);
    for _ in 0..200 {
        teo.last_state_idx = Some(1);
        teo.update(&input(&states));
    }
    // h − h/8 + 1024 = h; truncation stops the rise a little above.
    let settled = teo.state_bins[1].hits;
    assert_eq!(settled - (settled >> 3) + PULSE, settled);
    assert!((8185..=8199).contains(&settled), "{settled}");
}

#[test]
fn the_first_selection_counts_a_hit_that_never_was() {
    let states = [state(1, 0), state(2, 50), state(455, 3500)];
    let mut teo = TeoCpu::default();
    teo.update(&input(&states));
    assert_eq!((teo.state_bins[0].hits, teo.total, teo.last_state_idx), (1024, 1024, None));
    // Nothing more to count until a wakeup is reflected.
    let before = teo.clone();
    teo.update(&input(&states));
    assert_eq!(teo, before);
}

#[test]
fn measured_duration_leaves_out_half_the_exit_latency() {
    // States of residency 1, 2000; slept (ns) in state 1 with exit latency 230 µs; expected bin.
    let states = [state(1, 1), state(230, 2000)];
    for (residency_ns, bin) in [
        (2_115_000, 1),
        (2_114_999, 0),
        (229_999, 0), // shorter than the latency: half of it
    ] {
        let mut teo = TeoCpu { last_state_idx: Some(1), ..remembers(&[]) };
        teo.sleep_length_ns = 3_000_000; // in bin 1, below a tick
        let input = SelectInput { last_residency_ns: residency_ns, ..input(&states) };
        teo.update(&input);
        let counted = teo.state_bins[bin];
        assert_eq!(counted.hits + counted.intercepts, PULSE, "{residency_ns}");
    }
}

#[test]
fn timers_beyond_the_tick_have_a_bin_of_their_own() {
    let states = [state(1, 1), state(230, 2000)]; // deepest pays within a tick
    let mut teo = TeoCpu { last_state_idx: Some(1), ..remembers(&[]) };
    (teo.sleep_length_ns, teo.time_span_ns) = (TICK, TICK);
    teo.update(&input(&states));
    assert_eq!((teo.tick_hits, teo.total), (PULSE, PULSE));

    // Woken in bin 1 before it: an intercept although the bin is the deepest.
    teo.last_state_idx = Some(1);
    teo.time_span_ns = 0;
    teo.update(&SelectInput { last_residency_ns: 3_000_000, ..input(&states) });
    assert_eq!((teo.tick_hits, teo.state_bins[1].intercepts), (896, PULSE));
    assert_eq!(teo.total, 896 + PULSE);

    // A state that needs more than a tick: no extra bin, a plain hit.
    let states = [state(1, 1), state(230, 5000)];
    let mut teo = TeoCpu { last_state_idx: Some(1), ..remembers(&[]) };
    (teo.sleep_length_ns, teo.time_span_ns) = (6_000_000, 6_000_000);
    teo.update(&input(&states));
    assert_eq!((teo.tick_hits, teo.state_bins[1].hits), (0, PULSE));
}

#[test]
fn safety_nets_count_as_if_the_timer_had_been_met() {
    let reflected = |sleep_length_ns, got_tick, poll_time_limit| {
        let mut teo = remembers(&[]);
        (teo.sleep_length_ns, teo.time_span_ns) = (sleep_length_ns, 1000);
        teo.reflect(&Reflection {
            state: 1,
            got_tick,
            poll_time_limit,
            now: 5000,
            tick_nsec: TICK,
            last_residency_ns: 0,
        });
        assert_eq!(teo.last_state_idx, Some(1));
        teo.time_span_ns
    };
    assert_eq!(reflected(2 * TICK, false, false), 4000);
    assert_eq!(reflected(2 * TICK, true, false), 2 * TICK);
    assert_eq!(reflected(TICK, true, false), 4000); // the tick was not to be expected to hide it
    assert_eq!(reflected(TICK, false, true), TICK);
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
    check(&new, &i, timers(-5, -5), (0, false, S::Timer, T::ShortSleep, true));
    // Exactly one tick away is long; the residency itself is not too long.
    check(&new, &i, timers(4_000, 3_500), (2, true, S::Deepest, T::LongSleep, true));

    // Half of the early wakeups reached state 1.
    let early = remembers(&[(0, 100), (0, 800), (0, 0)]);
    check(&early, &i, far(), (1, false, S::Intercepts, T::Intercepts, true));
    let very_early = remembers(&[(0, 800), (0, 100), (0, 0)]);
    check(&very_early, &i, far(), (0, false, S::Intercepts, T::Shallow, true));
    // Exactly half against it does not move the candidate.
    let even = remembers(&[(0, 500), (0, 0), (500, 0)]);
    check(&even, &i, far(), (2, true, S::Deepest, T::LongSleep, true));
    // With the tick stopped, nothing shallower pays for a tick.
    let stopped = SelectInput { tick_stopped: true, ..i };
    check(&early, &stopped, far(), (2, true, S::TickStopped, T::AlreadyStopped, true));

    // Latency limits: state 1 at most; then state 0, without asking the timers.
    let limit = SelectInput { latency_req_ns: 230_000, ..i };
    check(&new, &limit, far(), (1, true, S::LatencyLimit, T::LongSleep, true));
    let limit = SelectInput { latency_req_ns: 229_999, ..i };
    check(&new, &limit, far(), (0, false, S::LatencyLimit, T::Shallow, false));

    // The tick goes on because of intercepts, and comes too soon for states 2 and 1; 5/8 exactly are
    // not enough.
    let mostly = remembers(&[(0, 0), (0, 500), (0, 251), (0, 0)]);
    let mostly = TeoCpu { total: 1200, ..mostly };
    check(&mostly, &i, timers(50_000, 1_000), (0, false, S::Tick, T::Intercepts, true));
    let exactly = TeoCpu { total: 1202, ..mostly };
    check(&exactly, &i, timers(50_000, 1_000), (2, true, S::Deepest, T::LongSleep, true));
}

#[test]
fn disabled_and_polling_states() {
    use {SelectRule as S, TickRule as T};
    let far = || timers(50_000, 3_900);
    let new = remembers(&[]);
    let s = [state(1, 1), state(230, 2000), state(455, 3500)];

    check(&new, &input(&s[..1]), far(), (0, false, S::NoChoice, T::Shallow, false));
    let none = [off(s[0]), off(s[1])];
    check(&new, &input(&none), far(), (0, false, S::NoneEnabled, T::Shallow, false));
    // The only state's residency stands for the duration.
    let one = [off(s[0]), s[1]];
    check(&new, &input(&one), far(), (1, false, S::OneEnabled, T::ShortSleep, false));
    let one_deep = [off(s[0]), state(455, 4000)];
    check(&new, &input(&one_deep), far(), (1, true, S::OneEnabled, T::LongSleep, false));

    // Intercepts at a disabled state: the last enabled one above it, here the deepest.
    let gap = [s[0], off(s[1]), s[2]];
    let early = remembers(&[(0, 100), (0, 800), (0, 0)]);
    let kept = timers(50_000, 3_900);
    check(&early, &input(&gap), kept, (2, false, S::Deepest, T::Intercepts, true));

    // A state of 2 µs beside polling: the timers are not asked.
    let x86 = [poll(), state(2, 2), state(10, 20)];
    let limit = SelectInput { latency_req_ns: 2_000, ..input(&x86) };
    check(&new, &limit, far(), (1, false, S::LatencyLimit, T::Shallow, false));
    // Too soon even for that: poll, and polling never stops the tick.
    let limit = SelectInput { latency_req_ns: 10_000, ..input(&x86) };
    check(&new, &limit, timers(1, 1), (0, false, S::Timer, T::Polling, true));
}
