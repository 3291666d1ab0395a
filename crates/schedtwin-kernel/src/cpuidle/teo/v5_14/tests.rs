// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand, for 6.3 above all, of which there is no tree to compare with. The
//! differential tests of the form without a threshold are in `conformance/src/teo`.

use super::*;
use crate::config::TeoUtil;
use crate::cpuidle::states::by_hand::{TICK, input, off, poll, state};

fn timers(sleep_us: i64, tick_us: i64) -> SleepLength {
    SleepLength { sleep_length_ns: sleep_us * 1000, delta_tick_ns: tick_us * 1000 }
}

/// Utilisation as in 6.3, on a CPU of that capacity.
fn merged(capacity: Option<u64>) -> Option<UtilAware> {
    UtilAware::new(TeoUtil::V6_3, capacity?, 6)
}

/// A CPU that remembers these (hits, intercepts, recent) and nothing to update.
fn remembers(capacity: Option<u64>, bins: &[(u32, u32, u32)]) -> TeoCpu {
    let mut teo = TeoCpu { last_state_idx: None, ..TeoCpu::new(merged(capacity)) };
    for (bin, &(hits, intercepts, recent)) in teo.state_bins.iter_mut().zip(bins) {
        *bin = TeoBin { hits, intercepts, recent };
        teo.total += hits + intercepts;
    }
    teo
}

/// One selection: (state, may stop, rule, tick rule).
fn check(
    teo: &TeoCpu,
    input: &SelectInput,
    timers: SleepLength,
    expected: (usize, bool, SelectRule, TickRule),
) {
    let mut teo = teo.clone();
    if let Some(util) = &mut teo.util {
        util.look(input.cpu_util);
    }
    let chosen = teo.decide(input, timers);
    assert_eq!((chosen.idx, chosen.stop_tick, chosen.rule, chosen.tick_rule), expected);
}

use {SelectRule as S, TickRule as T};

#[test]
fn the_ring_of_recent_wakeups() {
    let states = [state(1, 1), state(230, 2000)];
    let mut teo = TeoCpu::new(None);
    let wakeup = |teo: &mut TeoCpu, slept_us: u64| {
        teo.last_state_idx = Some(1);
        (teo.sleep_length_ns, teo.time_span_ns) = (5_000_000, 0);
        teo.update(&SelectInput { last_residency_ns: slept_us * 1000, ..input(&states) });
    };
    for _ in 0..12 {
        wakeup(&mut teo, 100);
    }
    assert_eq!((teo.state_bins[0].recent, teo.next_recent_idx), (9, 12 % 9));
    for left in (0..9).rev() {
        wakeup(&mut teo, 5000);
        assert_eq!(teo.state_bins[0].recent, left);
    }
    assert_eq!(teo.recent_idx, [None; NR_RECENT]);
}

#[test]
fn each_rule_decides_once() {
    let states = [state(1, 1), state(230, 2000), state(455, 3500)];
    let i = input(&states);
    let new = remembers(None, &[(0, 0, 0), (0, 0, 0), (1024, 0, 0)]);
    let far = timers(50_000, 3_900);

    check(&new, &i, far, (2, true, S::Deepest, T::LongSleep));
    check(&new, &i, timers(3_000, 3_000), (1, false, S::Timer, T::ShortSleep));
    check(&new, &i, timers(1_999, 1_999), (0, false, S::Timer, T::ShortSleep));
    check(&new, &i, timers(4_000, 3_400), (2, true, S::Deepest, T::LongSleep));

    // Half of the early wakeups reached state 1: the middle of its bin, 2750 us, is below a tick.
    let early = remembers(None, &[(0, 100, 0), (0, 800, 0), (0, 0, 0)]);
    check(&early, &i, far, (1, false, S::Intercepts, T::ShortSleep));
    check(&early, &i, timers(50_000, 1_000), (0, false, S::Tick, T::ShortSleep));
    // With the tick stopped, no middle is a tick away.
    let stopped = SelectInput { tick_stopped: true, ..i };
    check(&early, &stopped, far, (2, true, S::Deepest, T::AlreadyStopped));

    // Recent wakeups alone: five of nine, whatever the counters say; four are not enough.
    let recently = |recent| remembers(None, &[(0, 0, recent), (0, 0, 0), (8000, 0, 0)]);
    check(&recently(5), &i, far, (0, false, S::Intercepts, T::ShortSleep));
    check(&recently(4), &i, far, (2, true, S::Deepest, T::LongSleep));
    // Both: the walk goes on until more than half of each has been seen.
    let both = remembers(None, &[(0, 100, 5), (0, 800, 0), (0, 0, 0)]);
    check(&both, &i, far, (0, false, S::Intercepts, T::ShortSleep));

    // The latency limit comes after that, and not at all for the first enabled state.
    let limit = SelectInput { latency_req_ns: 230_000, ..i };
    check(&new, &limit, far, (1, true, S::LatencyLimit, T::LongSleep));
    let one = [off(states[0]), states[1]];
    let limit = SelectInput { latency_req_ns: 1, ..input(&one) };
    check(&new, &limit, far, (1, true, S::OneEnabled, T::LongSleep));
    let none = [off(states[0]), off(states[1])];
    check(&new, &input(&none), far, (0, true, S::NoneEnabled, T::LongSleep));
    check(&new, &input(&states[..1]), far, (0, true, S::NoChoice, T::LongSleep));
}

/// 6.3 with two states: the counters are not asked.
#[test]
fn a_utilised_cpu_with_two_states_takes_the_shallowest_that_sleeps() {
    let states = [state(1, 1), state(455, 3500)];
    let teo = remembers(Some(1024), &[(0, 0, 0), (8000, 0, 0)]);
    let far = timers(50_000, 3_900);
    let with = |states, cpu_util| SelectInput { cpu_util, ..input(states) };
    // Strictly more than the threshold. The tick may stop although the state is shallow.
    check(&teo, &with(&states, 16), far, (1, true, S::Deepest, T::LongSleep));
    check(&teo, &with(&states, 17), far, (0, true, S::Utilised, T::LongSleep));
    check(&teo, &with(&states, 17), timers(3_600, 3_600), (0, false, S::Utilised, T::ShortSleep));
    // The timer comes first: not a matter of utilisation.
    check(&teo, &with(&states, 17), timers(3_000, 3_000), (0, false, S::Timer, T::ShortSleep));
    // Beside polling it is the deeper one; but a tick that goes on may still make it spin.
    let x86 = [poll(), state(455, 3500)];
    check(&teo, &with(&x86, 17), far, (1, true, S::Utilised, T::LongSleep));
    check(&teo, &with(&x86, 17), timers(3_900, 3_000), (0, false, S::Tick, T::ShortSleep));
    // No enabled state that sleeps: as if not utilised.
    let only_poll = [poll(), off(states[1])];
    check(&teo, &with(&only_poll, 17), far, (0, false, S::OneEnabled, T::Polling));
    // Before 6.3 nobody looks.
    let teo = TeoCpu { util: None, ..teo };
    check(&teo, &with(&states, 1024), far, (1, true, S::Deepest, T::LongSleep));
}

/// 6.3 with three or more: one state shallower than otherwise, but not polling.
#[test]
fn a_utilised_cpu_goes_one_state_shallower() {
    let states = [state(1, 1), state(230, 2000), state(455, 3500)];
    let teo = remembers(Some(124), &[(0, 0, 0), (0, 0, 0), (8000, 0, 0)]);
    let far = timers(50_000, 3_900);
    let with = |states, cpu_util| SelectInput { cpu_util, ..input(states) };
    check(&teo, &with(&states, 1), far, (2, true, S::Deepest, T::LongSleep));
    check(&teo, &with(&states, 2), far, (1, true, S::Utilised, T::LongSleep));
    check(&teo, &with(&states, 2), timers(3_000, 3_000), (0, false, S::Utilised, T::ShortSleep));
    // A disabled state is skipped.
    let gap = [states[0], off(states[1]), states[2]];
    check(&teo, &with(&gap, 2), far, (0, true, S::Utilised, T::LongSleep));
    // Nothing shallower sleeps: unchanged.
    let x86 = [poll(), off(states[1]), states[2]];
    check(&teo, &with(&x86, 2), far, (2, true, S::Deepest, T::LongSleep));
    let x86 = [poll(), states[1], states[2]];
    check(&teo, &with(&x86, 2), far, (1, true, S::Utilised, T::LongSleep));
    // After early wakeups have spoken for state 1, whose bin's middle is the duration.
    let early = remembers(Some(124), &[(0, 100, 0), (0, 800, 0), (0, 0, 0)]);
    check(&early, &with(&states, 2), far, (0, false, S::Utilised, T::ShortSleep));
    // The first enabled state is taken before utilisation is looked at.
    let one = [off(states[0]), states[1], off(states[2])];
    check(&teo, &with(&one, 2), far, (1, true, S::OneEnabled, T::LongSleep));
    // After the latency limit.
    let limit = SelectInput { latency_req_ns: 230_000, ..with(&states, 2) };
    check(&teo, &limit, far, (0, true, S::Utilised, T::LongSleep));
}

/// Below its threshold 6.3 is 5.14: choices and memory, over random lives.
#[test]
fn a_cpu_that_is_not_utilised_is_that_of_5_14() {
    let mut random = 1u64;
    let mut draw = |below: u64| {
        // Knuth's MMIX generator; its high bits are random enough here.
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    let mut choices = [0; 4];
    for life in 0..200 {
        let mut states = vec![state(1, 1), state(70, 200), state(230, 2000), state(455, 3500)];
        states.truncate(2 + life % 3);
        states[0].polling = draw(3) == 0;
        states[1].disabled = draw(4) == 0;
        let (mut v5_14, mut v6_3) = (TeoCpu::new(None), TeoCpu::new(merged(Some(1024))));
        let habit = 1 + draw(6_000_000);
        let mut now = 0;
        for _ in 0..100 {
            let input = SelectInput {
                cpu_util: draw(17),
                last_residency_ns: draw(habit),
                tick_stopped: draw(4) == 0,
                now,
                ..input(&states)
            };
            let timers = timers(draw(8000) as i64, draw(4000) as i64);
            let chosen = v5_14.select(&input, &mut || timers);
            assert_eq!(v6_3.select(&input, &mut || timers), chosen);
            choices[chosen.idx] += 1;
            now += draw(habit) + 1000;
            let got_tick = draw(5) == 0;
            let stay = Reflection {
                state: chosen.idx,
                got_tick,
                poll_time_limit: false,
                now,
                tick_nsec: TICK,
                last_residency_ns: 0,
            };
            v5_14.reflect(&stay);
            v6_3.reflect(&stay);
            assert_eq!(TeoCpu { util: None, ..v6_3.clone() }, v5_14);
        }
    }
    assert!(choices.iter().all(|count| *count > 100), "{choices:?}");
}

/// As posted, a sleep of a utilised CPU is not counted; and where the timers leave no choice, nobody looks, so
/// that an old flag decides.
#[test]
fn as_posted_the_counters_do_not_learn_from_a_utilised_cpu() {
    let states = [state(1, 1), state(455, 3500)];
    let mut teo = TeoCpu::new(UtilAware::new(TeoUtil::Posted, 1024, 6));
    let (far, near) = (timers(50_000, 3_900), timers(100, 100));
    let round = |teo: &mut TeoCpu, cpu_util, timers| {
        let chosen = teo.select(&SelectInput { cpu_util, ..input(&states) }, &mut || timers);
        teo.reflect(&Reflection {
            state: chosen.idx,
            got_tick: false,
            poll_time_limit: false,
            now: 0,
            tick_nsec: TICK,
            last_residency_ns: 0,
        });
        (chosen.idx, chosen.stop_tick, chosen.rule, teo.next_recent_idx)
    };
    // The first selection counts a hit that never was; the flag is down.
    assert_eq!(round(&mut teo, 17, far), (0, true, S::Utilised, 1));
    assert_eq!(round(&mut teo, 16, far), (1, true, S::Deepest, 1), "nothing was counted");
    assert_eq!(round(&mut teo, 17, near), (0, false, S::Timer, 2), "nobody has looked");
    assert_eq!(round(&mut teo, 17, far), (0, true, S::Utilised, 3));
    assert_eq!(round(&mut teo, 0, near), (0, false, S::Timer, 3), "the flag is still up");
    assert_eq!(round(&mut teo, 0, near), (0, false, S::Timer, 3), "and stays so");
}
