// SPDX-License-Identifier: GPL-2.0-or-later
//! Values worked out by hand or read off a running kernel's arithmetic. The differential tests
//! against the kernel's own C are in `conformance/src/pelt`.

use super::*;
use crate::config::{AttachFloor, TgRunnableSum};

const MS: u64 = 1_000_000;

/// Σ over u32 limbs, least significant first: exact integers for the table test.
fn multiply(limbs: &mut Vec<u32>, factor: u64) {
    let mut carry = 0u128;
    for limb in limbs.iter_mut() {
        let product = *limb as u128 * factor as u128 + carry;
        *limb = product as u32;
        carry = product >> 32;
    }
    while carry != 0 {
        limbs.push(carry as u32);
        carry >>= 32;
    }
}

/// `base^32 · 2^shift`, most significant limb first, padded.
fn power_32(base: u64, shift: u32) -> Vec<u32> {
    let mut limbs = vec![1];
    for _ in 0..32 {
        multiply(&mut limbs, base);
    }
    multiply(&mut limbs, 1 << shift);
    limbs.resize(40, 0);
    limbs.reverse();
    limbs
}

#[test]
fn table_entries_are_the_integer_parts() {
    // t = ⌊M·2^(−n/32)⌋  ⇔  t^32·2^n ≤ M^32 < (t+1)^32·2^n, in whole numbers.
    let max = power_32(0xffff_ffff, 0);
    for (n, &entry) in RUNNABLE_AVG_YN_INV.iter().enumerate() {
        assert!(power_32(entry as u64, n as u32) <= max, "entry {n} is too large");
        assert!(power_32(entry as u64 + 1, n as u32) > max, "entry {n} is too small");
    }
    assert_eq!(RUNNABLE_AVG_YN_INV[0], 0xffff_ffff);
    assert_eq!(RUNNABLE_AVG_YN_INV[16], 0xb504_f333);
    assert_eq!(RUNNABLE_AVG_YN_INV[31], 0x82cd_8698);
    assert_eq!((LOAD_AVG_MAX, PELT_MIN_DIVIDER), (47742, 46718));
}

#[test]
fn a_signal_is_one_cache_line() {
    assert_eq!(size_of::<SchedAvg>(), 64);
}

#[test]
fn decay_of_known_values() {
    let check = |value, cases: &[(u64, u64)]| {
        for &(n, expected) in cases {
            assert_eq!(decay_load(value, n), expected, "{value} after {n}");
        }
    };
    check(
        1024,
        &[
            (1, 1002),
            (2, 980),
            (8, 861),
            (16, 724),
            (31, 523),
            (32, 511),
            (33, 501),
            (64, 255),
            (100, 117),
            (320, 0),
        ],
    );
    check(47742, &[(1, 46718), (2, 45717), (32, 23870), (64, 11934), (345, 26)]);
    check(u64::MAX, &[(0, u64::MAX - (1 << 32)), (2016, 0), (2017, 0), (u64::MAX, 0)]);
}

/// A task that runs all the time from zero, updated every ms.
fn saturate(ms: u64, mut each_ms: impl FnMut(u64, &SchedAvg)) -> SchedAvg {
    let mut sa = SchedAvg::default();
    for now in 1..=ms {
        update_load_avg_se(now * MS, &mut sa, true, 1, true, 1024);
        each_ms(now, &sa);
    }
    sa
}

#[test]
fn rise_of_a_busy_task() {
    let expected = [
        (1, 0),
        (2, 41),
        (4, 81),
        (8, 156),
        (10, 191),
        (16, 288),
        (20, 346),
        (32, 495),
        (50, 659),
        (64, 751),
        (75, 806),
        (100, 894),
        (150, 978),
        (200, 1008),
        (300, 1022),
        (345, 1023),
        (400, 1024),
    ]; // ms, util_avg
    let mut seen = Vec::new();
    saturate(400, |ms, sa| {
        if expected.iter().any(|&(at, _)| at == ms) {
            seen.push((ms, sa.util_avg));
            assert_eq!(sa.util_avg, sa.runnable_avg);
        }
        match ms {
            2 => assert_eq!((sa.util_sum, sa.period_contrib), (1_976_408, 929)),
            100 => assert_eq!((sa.util_sum, sa.period_contrib), (42_135_012, 376)),
            _ => {}
        }
    });
    assert_eq!(seen, expected);
}

#[test]
fn fall_of_a_sleeping_task() {
    let mut sa = saturate(1000, |_, _| {});
    assert_eq!((sa.util_sum, sa.period_contrib), (48_569_730, 690));
    let expected = [
        (1, 1003),
        (8, 868),
        (16, 736),
        (32, 528),
        (64, 273),
        (100, 129),
        (150, 46),
        (200, 16),
        (256, 5),
        (300, 2),
    ];
    let mut seen = Vec::new();
    for ms in 1..=300 {
        update_load_avg_blocked_se((1000 + ms) * MS, &mut sa, 1024);
        assert!(sa.util_avg - sa.load_avg <= 1);
        if expected.iter().any(|&(at, _)| at == ms) {
            seen.push((ms, sa.util_avg));
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn half_busy_task_swings_between_469_and_554() {
    let mut sa = SchedAvg::default();
    let mut peaks = std::collections::BTreeMap::<u64, u32>::new();
    let mut troughs = std::collections::BTreeMap::<u64, u32>::new();
    for period in 0..700u64 {
        for ms in 1..=8 {
            update_load_avg_se((16 * period + ms) * MS, &mut sa, true, 1, true, 1024);
        }
        if period >= 100 {
            *peaks.entry(sa.util_avg).or_default() += 1;
        }
        update_load_avg_blocked_se((16 * period + 16) * MS, &mut sa, 1024);
        if period >= 100 {
            *troughs.entry(sa.util_avg).or_default() += 1;
        }
    }
    // About every 22nd period ends without a boundary in its last millisecond.
    assert_eq!(peaks.keys().copied().collect::<Vec<_>>(), [544, 554]);
    assert!((24..=31).contains(&peaks[&544]), "{peaks:?}");
    assert_eq!(troughs.keys().copied().collect::<Vec<_>>(), [469, 470]);
    assert!((360..=440).contains(&troughs[&469]), "{troughs:?}");
}

#[test]
fn time_that_goes_back_only_moves_the_stamp() {
    let mut sa = saturate(10, |_, _| {});
    let before = sa;
    assert!(!update_load_avg_se(5 * MS, &mut sa, true, 1, true, 1024));
    assert_eq!(sa, SchedAvg { last_update_time: 5 * MS, ..before });
}

#[test]
fn a_gap_of_2_to_the_32_segments_reports_no_crossing() {
    let mut sa = saturate(100, |_, _| {});
    let before = sa;
    let now = sa.last_update_time + (1 << 52);
    assert!(!update_load_avg_blocked_se(now, &mut sa, 1024));
    assert_eq!((sa.util_sum, sa.load_sum, sa.util_avg), (0, 0, before.util_avg));
}

/// A signal of zero takes a shorter path to the same result as a full computation.
#[test]
fn zero_signals_only_move_in_time() {
    let start = SchedAvg { last_update_time: 5_000, period_contrib: 700, ..SchedAvg::default() };
    let (mut short, mut full) = (start, start);
    let gaps =
        [0, 1_023, 1_024, 330_000, 331_776, 1 << 20, 3 << 20, 70_000_000_000, (1 << 32) << 20];
    let mut now = 5_000;
    for gap in gaps {
        now += gap;
        let crossed = update_rq_signal(now, &mut full, 0, 0, 0);
        assert_eq!(update_rare_signal(now, &mut short, 0, 0, 0), crossed, "{gap}");
        assert_eq!(short, full, "{gap}");
    }
    assert!(!update_rare_signal(now - 5_000, &mut short, 0, 0, 0), "time goes back");
    assert_eq!(short.last_update_time, now - 5_000);
    // Once it is busy it is no longer zero, and falls as usual.
    for (ms, running) in [(4, true), (9, true), (12, false), (40, false)] {
        let at = now + (ms << 20);
        short.last_update_time = short.last_update_time.max(full.last_update_time);
        let crossed =
            update_rq_signal(at, &mut full, running as u64, running as u64, running as u32);
        assert_eq!(update_rt_rq_load_avg(at, &mut short, running), crossed, "{ms}");
        assert_eq!(short, full, "{ms}");
    }
}

#[test]
fn slow_cpu_gets_its_idle_time_back_unless_saturated() {
    // 8 ms at half capacity, then idle.
    let mut clock = RqClockPelt::default();
    clock.update_rq_clock_pelt(8 * MS, 8 * MS, 8 * MS, 512, 1024, false);
    assert_eq!(clock.rq_clock_pelt(), 4 * MS);
    let mut saturated = clock;

    clock.update_idle_rq_clock_pelt(8 * MS, 9 * MS, 47_791_489, 0, 0);
    let expected = RqClockPelt {
        clock_pelt: 8 * MS,
        lost_idle_time: 0,
        clock_idle: 9 * MS,
        clock_pelt_idle: 8 * MS,
    };
    assert_eq!(clock, expected);

    saturated.update_idle_rq_clock_pelt(8 * MS, 9 * MS, 47_791_488, 1, 1);
    let expected = RqClockPelt { lost_idle_time: 4 * MS, clock_pelt_idle: 4 * MS, ..expected };
    assert_eq!(saturated, expected);

    // Two truncations: 1001·1023 >> 10 = 1000, 1000·1023 >> 10 = 999.
    let mut clock = RqClockPelt::default();
    clock.update_rq_clock_pelt(1001, 0, 0, 1023, 1023, false);
    assert_eq!(clock.clock_pelt, 999);
}

#[test]
fn attach_then_detach_leaves_what_was_there() {
    let mut cfs = saturate(100, |_, _| {});
    let before = cfs;
    let mut se = SchedAvg { load_avg: 600, runnable_avg: 700, util_avg: 300, ..Default::default() };
    let attached = attach_entity(&mut cfs, &mut se, 1024, AttachFloor::Absent);
    let divider = 46718 + 376;
    assert_eq!(se.load_sum, 600 * divider / 1024);
    assert_eq!((se.util_sum as u64, se.runnable_sum), (300 * divider, 700 * divider));
    assert_eq!((se.last_update_time, se.period_contrib), (cfs.last_update_time, 376));
    assert_eq!(attached, se.load_sum as i64);
    assert_eq!(cfs.util_avg, before.util_avg + 300);

    assert_eq!(detach_entity(&mut cfs, &se, 1024), -attached);
    // The runqueue's own sum of load lacks a weight here, so the floor decides about it.
    let floored = before.load_sum.max(before.load_avg * PELT_MIN_DIVIDER as u64);
    assert_eq!(cfs, SchedAvg { load_sum: floored, ..before });

    // A load that is smaller than the weight becomes one unit of time.
    let mut tiny = SchedAvg::default();
    attach_entity(&mut cfs, &mut tiny, 1024, AttachFloor::Absent);
    assert_eq!(tiny.load_sum, 1);
}

/// An entity attaches with a load that its sum, rounded down by its weight, does not give: only
/// 6.9997 of the 7 are in the sum of an empty queue.
#[test]
fn the_floor_of_an_attached_load() {
    for (floor, expected) in [(AttachFloor::Absent, 327_015), (AttachFloor::Raised, 327_026)] {
        let mut se = SchedAvg { load_avg: 7, ..Default::default() };
        let mut cfs = SchedAvg::default();
        attach_entity(&mut cfs, &mut se, 15, floor);
        assert_eq!((cfs.load_sum, cfs.load_avg), (expected, 7), "{floor:?}");
    }
}

/// At the start of a segment 32 bits hold a group's runnable sum of 89 tasks.
#[test]
fn the_runnable_sum_of_many_tasks() {
    let divider = PELT_MIN_DIVIDER as u64;
    for (form, wrapped) in [(TgRunnableSum::Bits32, true), (TgRunnableSum::Bits64, false)] {
        let below = SchedAvg { runnable_avg: 90 << 10, ..Default::default() };
        let (mut cfs, mut se) = (SchedAvg::default(), SchedAvg::default());
        propagate_runnable(&mut cfs, &mut se, &below, form);
        let full = (90 << 10) * divider;
        assert_eq!(se.runnable_sum, if wrapped { full % (1 << 32) } else { full }, "{form:?}");
        assert_eq!(cfs.runnable_avg, 90 << 10);
    }
}

#[test]
fn removed_load_is_subtracted_at_the_next_update() {
    let mut cfs = saturate(100, |_, _| {});
    let mut task = SchedAvg { util_avg: 400, runnable_avg: 500, load_avg: 10, ..cfs };
    let mut removed = Removed::default();
    assert_eq!(fold_removed(&mut cfs, &mut removed), None);

    remove_entity(&mut removed, &mut task, 1024, cfs.last_update_time);
    assert_eq!(removed, Removed { nr: 1, load_avg: 10, util_avg: 400, runnable_avg: 500 });
    let before = cfs;
    let change = fold_removed(&mut cfs, &mut removed).unwrap();
    assert_eq!(removed, Removed::default());
    assert_eq!(cfs.util_avg, before.util_avg - 400);
    assert_eq!(cfs.util_sum, before.util_sum - 400 * 47094);
    assert_eq!(change, (-(500i64 * 47094)) >> 10);

    // Never below zero, and no average without its sum.
    let mut all = Removed { nr: 3, load_avg: 1 << 40, util_avg: 400, runnable_avg: 1 << 40 };
    cfs.util_sum = 0;
    fold_removed(&mut cfs, &mut all);
    assert_eq!((cfs.load_avg, cfs.runnable_avg, cfs.runnable_sum), (0, 0, 0));
    assert_eq!(cfs.util_sum as u64, cfs.util_avg * 46718);
}

#[test]
fn first_tasks_of_an_empty_cpu_take_half_of_what_is_left() {
    let mut cfs = SchedAvg::default();
    let mut utils = Vec::new();
    for _ in 0..6 {
        let mut task = init_entity(Some(1024));
        post_init_entity_util_avg(&mut task, cfs.util_avg, cfs.load_avg, 1024, 1024);
        attach_entity(&mut cfs, &mut task, 1024, AttachFloor::Absent);
        utils.push(task.util_avg);
    }
    assert_eq!(utils, [512, 256, 128, 64, 32, 16]);
    // A full CPU gives nothing; one unit left is none either, by truncation.
    for util in [1024, 1500, 1023] {
        let mut task = init_entity(Some(1024));
        post_init_entity_util_avg(&mut task, util, 0, 1024, 1024);
        assert_eq!((task.util_avg, task.runnable_avg, task.load_avg), (0, 0, 1024));
    }
}

#[test]
fn util_est_rises_at_once_and_falls_by_quarters() {
    let stored = |est, util_avg, runnable_avg, capacity| {
        let mut task = SchedAvg { util_est: est, util_avg, runnable_avg, ..Default::default() };
        util_est_update(&mut task, capacity);
        task.util_est
    };
    let flag = UTIL_AVG_UNCHANGED;
    assert_eq!(stored(100, 300, 300, 1024), 300 | flag); // up at once
    assert_eq!(stored(300, 100, 100, 1024), 250 | flag); // a quarter of the way down
    assert_eq!(stored(300, 101, 101, 1024), 250 | flag); // (1200 − 199) / 4 = 250.25
    assert_eq!(stored(300, 291, 291, 1024), 300 | flag); // within the margin
    assert_eq!(stored(300, 290, 290, 1024), 297 | flag); // margin is exclusive
    assert_eq!(stored(300, 200, 200, 160), 300); // beyond this CPU's capacity: not even the flag
    assert_eq!(stored(300, 200, 211, 1024), 300 | flag); // it waited
    assert_eq!(stored(300, 200, 210, 1024), 275 | flag); // a little waiting does not count
    assert_eq!(stored(300 | flag, 900, 900, 1024), 300 | flag); // nothing new since the last store
}

/// Up to 6.7: `(enqueued, ewma)` after an activation that ended with `util_avg`.
#[test]
fn util_est_of_two_numbers() {
    let stored = |enqueued, ewma, util_avg, capacity, fastup| {
        let mut task = SchedAvg {
            util_est: enqueued,
            util_est_ewma: ewma,
            util_avg,
            runnable_avg: 1024, // nobody looks at it
            ..Default::default()
        };
        util_est_update_enqueued_and_ewma(&mut task, capacity, fastup);
        (task.util_est, task.util_est_ewma)
    };
    let flag = UTIL_AVG_UNCHANGED;
    for (enqueued, ewma, util_avg, capacity, fastup, expected) in [
        (100, 100, 300, 1024, true, (300 | flag, 300)), // up at once
        (100, 100, 300, 1024, false, (300 | flag, 150)), // or by a quarter
        (300, 300, 100, 1024, true, (100 | flag, 250)), // a quarter of the way down
        (300, 300, 101, 1024, true, (101 | flag, 250)), // 1001 / 4, truncated
        (100, 300, 291, 1024, true, (291 | flag, 300)), // within ewma's margin: enqueued moves alone
        (300, 300, 291, 1024, true, (300, 300)),        // both within: not even the flag
        (300, 300, 290, 1024, true, (290 | flag, 297)), // the margin is exclusive
        (300, 300, 200, 160, true, (300, 300)), // beyond this CPU's capacity: not even the flag
        (100, 100, 300, 160, true, (300 | flag, 300)), // but up it goes
        (300 | flag, 300, 900, 1024, true, (300 | flag, 300)), // nothing new since the last store
    ] {
        let case = (enqueued, ewma, util_avg, capacity, fastup);
        assert_eq!(stored(enqueued, ewma, util_avg, capacity, fastup), expected, "{case:?}");
    }
}

/// A run queue counts the larger number of a task, and subtracts the same number when the task
/// leaves.
#[test]
fn the_larger_number_is_the_estimate() {
    let mut cfs = SchedAvg { util_est: 50, ..Default::default() };
    for (enqueued, ewma, larger) in [(100, 250, 250), (250, 100, 250), (7, 0, 7)] {
        let task = SchedAvg {
            util_est: enqueued | UTIL_AVG_UNCHANGED,
            util_est_ewma: ewma,
            util_avg: 180,
            ..Default::default()
        };
        assert_eq!(_task_util_est(&task), larger);
        assert_eq!(task_util_est(&task), larger.max(180));
        util_est_enqueue(&mut cfs, &task);
        assert_eq!(cfs.util_est as u64, 50 + larger);
        util_est_dequeue(&mut cfs, &task);
        assert_eq!(cfs.util_est, 50);
    }
}

#[test]
fn group_propagation_copies_util_and_clips_load() {
    let mut parent = saturate(100, |_, _| {});
    let mut se = SchedAvg { util_avg: 100, util_sum: 100 * 47094, ..parent };
    let group = SchedAvg { util_avg: 500, load_sum: 20_000 * 1024, ..parent };
    let before = parent;
    propagate_util(&mut parent, &mut se, &group);
    assert_eq!((se.util_avg, se.util_sum), (500, 500 * 47094));
    assert_eq!(parent.util_avg, before.util_avg + 400);

    se.load_sum = 40_000;
    propagate_load(&mut parent, &mut se, &group, 10_000, 1024, 512);
    assert_eq!(se.load_sum, 47094); // clipped at always runnable
    assert_eq!(se.load_avg, 512);
    propagate_load(&mut parent, &mut se, &group, -1, 1024, 512);
    assert_eq!(se.load_sum, 500 * 47094 / 1024); // equal share 20000, but it ran longer
    se.util_sum = 0;
    propagate_load(&mut parent, &mut se, &group, -1, 1024, 512);
    assert_eq!(se.load_sum, 20_000);
}
