// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand.

use super::*;
use crate::cpuidle::states::by_hand::{TICK, input, state, timers};

#[test]
fn half_of_a_sleep_in_the_timers_bin_is_a_hit_at_any_hz() {
    let states = [state(1, 1), state(455, 3500)];
    for tick_nsec in [1_000_000, 4_000_000, 10_000_000] {
        let mut teo = TeoCpu { last_state_idx: Some(1), ..TeoCpu::default() };
        teo.sleep_length_ns = 10_000_000;
        teo.update(&SelectInput { last_residency_ns: 5_000_000, tick_nsec, ..input(&states) });
        assert_eq!((teo.state_bins[1].hits, teo.state_bins[1].intercepts), (PULSE, 0));
        assert_eq!((teo.tick_intercepts, teo.short_idles, teo.total), (0, 0, PULSE));
    }
}

#[test]
fn an_intercept_after_a_tick_or_more_is_a_tick_intercept() {
    let states = [state(1, 1), state(100, 1000), state(0, 8000)];
    for (tick_nsec, counted) in [(10_000_000, 0), (4_000_000, PULSE), (1_000_000, PULSE)] {
        let mut teo = TeoCpu { last_state_idx: Some(2), ..TeoCpu::default() };
        teo.sleep_length_ns = 10_000_000;
        teo.update(&SelectInput { last_residency_ns: 5_000_000, tick_nsec, ..input(&states) });
        assert_eq!((teo.state_bins[1].intercepts, teo.tick_intercepts), (PULSE, counted));
    }
}

#[test]
fn the_total_tends_to_eight_pulses_and_small_counters_stay() {
    let states = [state(1, 1), state(455, 3500)];
    let mut teo = TeoCpu::default();
    for _ in 0..200 {
        (teo.last_state_idx, teo.sleep_length_ns) = (Some(1), 10_000_000);
        teo.update(&SelectInput { last_residency_ns: 9_000_000, ..input(&states) });
    }
    assert!((8192..8200).contains(&teo.total), "{}", teo.total);
    let mut counter = 8;
    decay(&mut counter);
    decay(&mut counter);
    assert_eq!(counter, 7);
}

#[test]
fn a_safety_net_makes_a_sleep_endless() {
    let states = [state(1, 1), state(455, 3500)];
    let stay = |got_tick, poll_time_limit| Reflection {
        state: 1,
        got_tick,
        poll_time_limit,
        now: 0,
        tick_nsec: TICK,
        last_residency_ns: 100_000,
    };
    // Sleep length, tick, poll limit: hits of bin 1, intercepts of bin 0.
    for (sleep_length_ns, got_tick, gave_up, expected) in [
        (10_000_000, false, false, (0, PULSE)),
        (10_000_000, true, false, (PULSE, 0)),
        (TICK, true, false, (0, PULSE)),
        (10_000_000, false, true, (PULSE, 0)),
    ] {
        let mut teo = TeoCpu { sleep_length_ns, ..TeoCpu::default() };
        teo.reflect(&stay(got_tick, gave_up));
        teo.update(&SelectInput { last_residency_ns: 100_000, ..input(&states) });
        assert_eq!((teo.state_bins[1].hits, teo.state_bins[0].intercepts), expected);
    }
}

#[test]
fn timers_are_not_asked_for_a_shallow_state_even_without_a_tick() {
    let states = [state(1, 1), state(10, 14), state(455, 3500)];
    let bins = [TeoBin { hits: 0, intercepts: 4000 }, TeoBin::default()];
    for (short_idles, tick_stopped, asked) in
        [(2000, false, false), (1999, false, true), (2000, true, false), (1999, true, true)]
    {
        let mut teo =
            TeoCpu { total: 4000, short_idles, last_state_idx: None, ..Default::default() };
        teo.state_bins[..2].copy_from_slice(&bins);
        // The limit allows state 1 only: with a stopped tick the walk stays at the deepest.
        let input = SelectInput { tick_stopped, latency_req_ns: 20_000, ..input(&states) };
        let selection = teo.decide(&input, &mut timers(50_000, 3_000));
        assert_eq!(selection.sleep_length_ns.is_some(), asked, "{short_idles} {tick_stopped}");
    }
}

#[test]
fn the_tick_goes_on_if_five_eighths_come_after_one() {
    let states = [state(1, 1), state(100, 1000)];
    for (tick_intercepts, stop_tick) in [(2500, true), (2501, false)] {
        let teo =
            TeoCpu { total: 4000, tick_intercepts, last_state_idx: None, ..Default::default() };
        let selection = teo.decide(&input(&states), &mut timers(50_000, 3_000));
        assert_eq!((selection.idx, selection.stop_tick), (1, stop_tick));
    }
}
