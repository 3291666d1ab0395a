// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions worked out by hand, where this form differs from its neighbours. The differential tests against
//! the kernel's own C are in `conformance/src/teo`.

use super::*;
use crate::config::TeoUtil;
use crate::cpuidle::states::IdleStateParams;
use crate::cpuidle::states::by_hand::{self, off, state};
use {SelectRule as S, TickRule as T};

fn input(states: &[IdleStateParams], cpu_util: u64) -> SelectInput<'_> {
    SelectInput { cpu_util, ..by_hand::input(states) }
}

/// A CPU that remembers these (hits, intercepts, recent) and nothing to update.
fn remembers(bins: &[(u32, u32, u32)]) -> TeoCpu {
    let util = UtilAware::new(TeoUtil::V6_3, 1024, 6);
    let mut teo = TeoCpu { last_state_idx: None, ..TeoCpu::new(util) };
    for (bin, &(hits, intercepts, recent)) in teo.state_bins.iter_mut().zip(bins) {
        *bin = TeoBin { hits, intercepts, recent };
        teo.total += hits + intercepts;
    }
    teo
}

/// One selection with timers 50 ms away: (state, may stop, rule, tick rule, were the timers asked).
fn check(teo: &TeoCpu, input: &SelectInput, expected: (usize, bool, S, T, bool)) {
    let far = SleepLength { sleep_length_ns: 50_000_000, delta_tick_ns: 3_900_000 };
    let chosen = teo.clone().select(input, &mut || far);
    let asked = chosen.sleep_length_ns.is_some();
    assert_eq!((chosen.idx, chosen.stop_tick, chosen.rule, chosen.tick_rule, asked), expected);
}

#[test]
fn a_utilised_cpu_keeps_its_tick_in_a_shallow_state() {
    let new = remembers(&[]);
    let two = [state(1, 1), state(455, 3500)];
    check(&new, &input(&two, 16), (1, true, S::Deepest, T::LongSleep, true));
    check(&new, &input(&two, 17), (0, false, S::Utilised, T::Shallow, false));
    // Too shallow to be stuck in without a tick.
    let stopped = SelectInput { tick_stopped: true, ..input(&two, 17) };
    check(&new, &stopped, (1, true, S::Utilised, T::AlreadyStopped, false));
    check(&new, &input(&[off(two[0]), two[1]], 17), (1, false, S::Utilised, T::ShortSleep, false));
    check(&new, &input(&[two[0], off(two[1])], 17), (0, false, S::Utilised, T::Shallow, false));

    let three = [state(1, 1), state(230, 2000), state(455, 5000)];
    check(&new, &input(&three, 17), (1, true, S::Utilised, T::LongSleep, true));
    let stopped = SelectInput { tick_stopped: true, ..input(&three, 17) };
    check(&new, &stopped, (2, true, S::Deepest, T::AlreadyStopped, true));
}

#[test]
fn early_wakeups_that_lead_to_state_0_leave_the_timers_alone() {
    let states = [state(1, 1), state(230, 2000), state(455, 3500)];
    let early = remembers(&[(0, 800, 0), (0, 100, 0), (0, 0, 0)]);
    check(&early, &input(&states, 0), (0, false, S::Intercepts, T::Shallow, false));
    let recently = remembers(&[(0, 0, 5), (0, 0, 0), (8000, 0, 0)]);
    check(&recently, &input(&states, 0), (0, false, S::Intercepts, T::Shallow, false));
}

/// A hit behind the last bin leaves the ring's entry, which has been taken off its bin already: the next round
/// takes it off again. The count wraps below zero, as in C, and reads as very many.
#[test]
fn a_tick_hit_leaves_an_old_entry_in_the_ring() {
    let states = [state(1, 1), state(230, 2000)];
    let mut teo = TeoCpu::new(None);
    let wakeup = |teo: &mut TeoCpu, slept_us: u64| {
        teo.last_state_idx = Some(1);
        (teo.sleep_length_ns, teo.time_span_ns) = (50_000_000, 0);
        let residency = slept_us * 1000;
        teo.update(&SelectInput { last_residency_ns: residency, ..input(&states, 0) });
    };
    wakeup(&mut teo, 100);
    assert_eq!((teo.state_bins[0].recent, teo.recent_idx[0]), (1, Some(0)));
    for _ in 0..9 {
        wakeup(&mut teo, 9000);
    }
    assert_eq!((teo.state_bins[0].recent, teo.recent_idx[0]), (0, Some(0)));
    for _ in 0..9 {
        wakeup(&mut teo, 9000);
    }
    assert_eq!(teo.state_bins[0].recent, u32::MAX);
}
