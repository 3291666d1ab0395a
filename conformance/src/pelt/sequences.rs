// SPDX-License-Identifier: GPL-2.0-or-later
//! Random operations: plausible values, edges, and odd ones.

use super::*;

pub(super) fn op(op: usize, values: &[u64]) -> Record {
    let mut args = [0; ARGS];
    args[..values.len()].copy_from_slice(values);
    Record { op, args }
}

/// A time to update a signal to: steps from below a microsecond to years, exact edges of segments,
/// and times that lie back.
fn time_for(sa: &SchedAvg, rng: &mut Rng) -> u64 {
    let last = sa.last_update_time;
    let to_edge =
        |segments: u64| (segments.wrapping_mul(1024).wrapping_sub(sa.period_contrib as u64)) << 10;
    last.wrapping_add(match rng.below(20) {
        0 => 0,
        1 => rng.below(1024),
        2 => rng.below(64 << 10),
        3..=8 => rng.below(4_000_000),
        9 => rng.below(40_000_000),
        10 => rng.below(3_000_000_000),
        11 => to_edge(1).wrapping_add(rng.below(3)).wrapping_sub(1),
        12 => to_edge(1 + rng.below(70)),
        13 => to_edge(1 + rng.below(70)).wrapping_sub(1),
        14 => to_edge(2014 + rng.below(6)),
        15 => rng.below(3600 * 1_000_000_000),
        16 => rng.below(20 * 365 * 24 * 3600 * 1_000_000_000),
        // Whole multiples of 2^32 segments, where a 32-bit count of them is 0.
        17 => to_edge((rng.below(3) << 32) + rng.below(2)),
        18 => rng.magnitude(40).wrapping_neg(),
        _ => rng.magnitude(64),
    })
}

fn weight(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => rng.pick(&[1, 2, 3, 15, 110, 335, 820, 1277, 9548, 88761]),
        1 => 1 + rng.below(1 << 20),
        2 => 1024 * (1 + rng.below(64)),
        3 => rng.pick(&[1023, 1024, 1025, 0xffff_ffff]),
        _ => 1024,
    }
}

/// The number of runnable, or weight of a runqueue: mostly plausible.
fn count(rng: &mut Rng) -> u64 {
    match rng.below(16) {
        0 => rng.below(1000),
        1 => rng.magnitude(32),
        _ => rng.below(5),
    }
}

fn scale(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => 1024,
        1 => rng.pick(&[0, 1, 160, 512, 1023]),
        _ => rng.below(1025),
    }
}

/// An average: of a task, of a runqueue, or odd.
fn average(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => 0,
        1 => rng.below(100 * 1024),
        2 => rng.magnitude(40),
        _ => rng.below(1100),
    }
}

impl<const FORM: u8> PeltOf<FORM> {
    pub(super) fn random_operation(&self, which: usize, rng: &mut Rng) -> Record {
        let sa = |index: usize| &self.avgs[index];
        let flag = |rng: &mut Rng| rng.below(2);
        let narrow = |wide: u64, bits: u32| {
            if FORM == LINUX_7_3 { wide & ((1 << bits) - 1) } else { wide }
        };
        let weight = |rng: &mut Rng| narrow(weight(rng), 20);
        let average = |rng: &mut Rng| narrow(average(rng), 17);
        let args: &[u64] = &match which {
            SET_AVG => {
                let index = rng.pick(&[SE as u64, SE as u64, CFS as u64, GCFS as u64, 2, 3, 4, 5]);
                let util = narrow(average(rng) & 0xffff, 10);
                // A runnable average just around the utilisation decides in util_est.
                let runnable = match rng.below(3) {
                    0 => average(rng),
                    _ => util.wrapping_add(rng.below(24)).saturating_sub(4),
                };
                let near = util + rng.below(30);
                let flag = (rng.one_in(4) as u64) << 31;
                let util_est = if rng.one_in(2) { rng.below(1100) } else { near };
                if Self::OLD {
                    let ewma = if rng.one_in(2) { rng.below(1100) } else { near };
                    return op(
                        which,
                        &[index, average(rng), runnable, util, util_est | flag, ewma],
                    );
                }
                [index, average(rng), runnable, util, util_est | flag, 0]
            }
            SET_SUM => {
                let index = rng.pick(&[SE as u64, CFS as u64, GCFS as u64, 2, 3, 4, 5]);
                let [mut load, mut runnable, mut util] =
                    [rng.below(47743), rng.below(47743 << 10), rng.below(48_888_000)];
                if rng.one_in(4) {
                    load = rng.magnitude(64);
                    runnable = rng.magnitude(64);
                    util = rng.magnitude(32);
                    if FORM == LINUX_7_3 {
                        // Within half of each type, also times a weight.
                        (load, runnable, util) = (load >> 44, runnable >> 4, util >> 5);
                    }
                }
                if rng.one_in(2) {
                    // Makes the CPU saturated, just so or not quite.
                    let others: u32 = [CFS, RT_AVG, DL_AVG]
                        .iter()
                        .filter(|&&other| other as u64 != index)
                        .fold(0, |sum, &other| sum.wrapping_add(sa(other).util_sum));
                    let edge = 47_791_489 + rng.below(3) as u32;
                    util = match FORM {
                        LINUX_7_3 => edge.saturating_sub(others) as u64,
                        _ => edge.wrapping_sub(others) as u64,
                    };
                }
                let time = if rng.one_in(4) { 0 } else { rng.magnitude(50) };
                [index, time, load, runnable, util, rng.below(1024)]
            }
            BLOCKED_SE => [time_for(sa(SE), rng), weight(rng), 0, 0, 0, 0],
            UPDATE_SE => {
                let now = time_for(sa(SE), rng);
                [now, flag(rng), count(rng), flag(rng), weight(rng), 0]
            }
            UPDATE_CFS_RQ | CFS_LOAD_AVG => {
                let weight = if rng.one_in(3) { 0 } else { weight(rng) };
                [time_for(sa(CFS), rng), weight, count(rng) & 0xffff_ffff, flag(rng), 0, 0]
            }
            RT => [time_for(sa(RT_AVG), rng), flag(rng), 0, 0, 0, 0],
            DL => [time_for(sa(DL_AVG), rng), flag(rng), 0, 0, 0, 0],
            HW => {
                let capacity = match rng.below(8) {
                    0 => 1 << 32,
                    1 => rng.magnitude(64),
                    2 => 0,
                    _ => rng.below(1025),
                };
                [time_for(sa(HW_AVG), rng), capacity, 0, 0, 0, 0]
            }
            IRQ => {
                let running = if rng.one_in(8) { rng.magnitude(60) } else { rng.below(2_000_000) };
                [time_for(sa(IRQ_AVG), rng), running, scale(rng), scale(rng), 0, 0]
            }
            RQ_CLOCK => {
                let delta = rng.magnitude(36);
                let task = self.clock_task.wrapping_add(delta);
                let clock = self.rq_clock.wrapping_add(delta).wrapping_add(rng.below(1000));
                [delta, task, clock, scale(rng), scale(rng), rng.one_in(4) as u64]
            }
            IDLE_CLOCK => {
                let ahead = rng.magnitude(30);
                [self.clock_task.wrapping_add(ahead), self.rq_clock.wrapping_add(ahead), 0, 0, 0, 0]
            }
            OTHER => {
                let now = time_for(sa(RT_AVG), rng);
                let class = rng.below(3);
                let pressure = if rng.one_in(2) { 0 } else { rng.below(1025) };
                [now, now.wrapping_add(rng.below(1000)), class, pressure, 0, 0]
            }
            ATTACH | DETACH | REMOVE | SET_TASK_RQ => [weight(rng), 0, 0, 0, 0, 0],
            MIGRATE_LAG => {
                let clock = self.clock.clock_idle.wrapping_add(rng.magnitude(34));
                let throttled = match rng.below(4) {
                    0 => u64::MAX,
                    1 => rng.magnitude(40),
                    _ => 0,
                };
                [weight(rng), clock, throttled, !rng.one_in(4) as u64, 0, 0]
            }
            PROPAGATE => {
                let pending = match rng.below(4) {
                    0 => rng.below(48_000),
                    1 => rng.below(48_000).wrapping_neg(),
                    2 => rng.below(3).wrapping_sub(1),
                    _ => rng.magnitude(40).wrapping_neg(),
                };
                let gcfs_weight = if rng.one_in(4) { 0 } else { weight(rng) };
                [pending, gcfs_weight, weight(rng), 0, 0, 0]
            }
            INIT => [!rng.one_in(4) as u64, weight(rng), 0, 0, 0, 0],
            POST_INIT => {
                let near = sa(CFS).util_avg.wrapping_add(rng.below(6)).saturating_sub(2);
                let capacity = if rng.one_in(2) { near & 0xffff } else { scale(rng) };
                [weight(rng), capacity, 0, 0, 0, 0]
            }
            UTIL_EST_UPDATE => [scale(rng), (Self::OLD && !rng.one_in(4)) as u64, 0, 0, 0, 0],
            DECAY_LOAD => {
                let n = match rng.below(4) {
                    0 => rng.below(70),
                    1 => 2010 + rng.below(12),
                    2 => rng.magnitude(64),
                    _ => rng.below(2100),
                };
                [rng.magnitude(64), n, 0, 0, 0, 0]
            }
            SCALE_IRQ => {
                let max = 1 + rng.below(1024);
                [rng.below(2048), rng.below(max + 1), max, 0, 0, 0]
            }
            REWEIGHT => [weight(rng), weight(rng), 0, 0, 0, 0],
            _ => [0; 6],
        };
        op(which, args)
    }
}
