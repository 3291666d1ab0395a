// SPDX-License-Identifier: GPL-2.0-or-later
//! The ways in which an entity's signals enter a fair runqueue, leave it, and climb through groups.
//!
//! A runqueue's averages are the sums of the averages of all entities *attached* to it, whether they
//! are queued or asleep. Three ways out and one in:
//!
//! ```text
//!            attach_entity                    detach_entity      (queued task moved by the balancer)
//!  new/woken ------------->  attached to cfs ------------------>
//!                               |
//!                               | remove_entity                  (sleeping task wakes elsewhere: the
//!                               v                                 old CPU's lock is not taken, so the
//!                            Removed  --- fold_removed --> cfs    subtraction waits for its next update)
//! ```
//!
//! Whatever changes the averages of a group's runqueue must also change the group's entity in the
//! parent. Utilisation and runnable are copied; load is re-weighted; a *propagation* carries the
//! change of the unweighted runnable sum upwards (`add_tg_cfs_propagate`): the functions here return
//! that change and the caller adds it up.
//!
//! **The floor.** Sums and averages are rounded separately, so repeated subtraction could leave an
//! average without its sum. After each subtraction, and in 7.3 after each addition of load, a sum is therefore raised to at
//! least `avg × PELT_MIN_DIVIDER`.
//!
//! **Kernel:** Linux 6.12 and 7.3, `kernel/sched/fair.c`: `init_entity_runnable_average`,
//! `post_init_entity_util_avg`, `attach_entity_load_avg`, `detach_entity_load_avg`,
//! `update_cfs_rq_load_avg` (its first half), `remove_entity_load_avg`, `migrate_se_pelt_lag`,
//! `set_task_rq_fair`, `update_tg_cfs_util`, `update_tg_cfs_runnable`, `update_tg_cfs_load`,
//! `reweight_entity` (its load part).
//!
//! **Differences:**
//! - The floor of `load_sum` and `runnable_sum` is a 64-bit maximum, not the `max_t(u32, …)` that cuts
//!   a runqueue's sum to 32 bits. This shows in a runqueue with more than about 87 attached
//!   nice-0 entities, whose sums wrap in 6.12 each time one leaves. 7.3 has 64 bits, too.
//! - Callers pass clocks and weights; locks are gone.

use super::{
    PELT_MIN_DIVIDER, SCHED_CAPACITY_SHIFT, SchedAvg, get_pelt_divider, update_load_avg_blocked_se,
};
use crate::config::{AttachFloor, TgRunnableSum};

/// Averages of entities that left a runqueue while it was not locked (`cfs_rq->removed`).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of entities that left since the last fold.
    pub nr: u32,
    /// Σ `load_avg`.
    pub load_avg: u64,
    /// Σ `util_avg`.
    pub util_avg: u64,
    /// Σ `runnable_avg`.
    pub runnable_avg: u64,
}

/// Adds a signed change, clamping at 0 when a negative one underflows (`add_positive`).
#[inline(always)]
fn add_positive(value: u64, delta: i64) -> u64 {
    let sum = value.wrapping_add(delta as u64);
    if delta < 0 && sum > value { 0 } else { sum }
}

#[inline(always)]
fn floor_u64(sum: u64, avg: u64) -> u64 {
    sum.max(avg.wrapping_mul(PELT_MIN_DIVIDER as u64))
}

#[inline(always)]
fn floor_u32(sum: u32, avg: u64) -> u32 {
    sum.max((avg as u32).wrapping_mul(PELT_MIN_DIVIDER))
}

/// Adds an entity's load to its runqueue (`enqueue_load_avg`).
#[inline]
pub fn enqueue_load_avg(cfs: &mut SchedAvg, se: &SchedAvg, se_weight: u64, floor: AttachFloor) {
    cfs.load_avg = cfs.load_avg.wrapping_add(se.load_avg);
    cfs.load_sum = cfs.load_sum.wrapping_add(se_weight.wrapping_mul(se.load_sum));
    if floor == AttachFloor::Raised {
        cfs.load_sum = floor_u64(cfs.load_sum, cfs.load_avg);
    }
}

/// Takes an entity's load out of its runqueue (`dequeue_load_avg`).
#[inline]
pub fn dequeue_load_avg(cfs: &mut SchedAvg, se: &SchedAvg, se_weight: u64) {
    cfs.load_avg = cfs.load_avg.saturating_sub(se.load_avg);
    cfs.load_sum = cfs.load_sum.saturating_sub(se_weight.wrapping_mul(se.load_sum));
    cfs.load_sum = floor_u64(cfs.load_sum, cfs.load_avg);
}

/// Recomputes an entity's `load_avg` after its weight changed (`reweight_entity`). Around it the
/// caller takes the load out and puts it back with the old and the new weight.
#[inline]
pub fn reweight_load_avg(se: &mut SchedAvg, new_weight: u64) {
    se.load_avg = new_weight.wrapping_mul(se.load_sum) / get_pelt_divider(se) as u64;
}

/// Attaches an entity to a runqueue that is up to date (`attach_entity_load_avg`). Returns the
/// change of the unweighted runnable sum, for propagation.
///
/// The entity adopts the runqueue's time and position in the segment; its averages are taken as they
/// are and its sums rebuilt to match. `floor` is the only clamp.
pub fn attach_entity(
    cfs: &mut SchedAvg,
    se: &mut SchedAvg,
    se_weight: u64,
    floor: AttachFloor,
) -> i64 {
    let divider = get_pelt_divider(cfs) as u64;
    se.last_update_time = cfs.last_update_time;
    se.period_contrib = cfs.period_contrib;

    se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
    se.runnable_sum = se.runnable_avg.wrapping_mul(divider);
    let weighted = se.load_avg.wrapping_mul(divider);
    se.load_sum = if se_weight < weighted { weighted / se_weight.max(1) } else { 1 };

    enqueue_load_avg(cfs, se, se_weight, floor);
    cfs.util_avg = cfs.util_avg.wrapping_add(se.util_avg);
    cfs.util_sum = cfs.util_sum.wrapping_add(se.util_sum);
    cfs.runnable_avg = cfs.runnable_avg.wrapping_add(se.runnable_avg);
    cfs.runnable_sum = cfs.runnable_sum.wrapping_add(se.runnable_sum);
    se.load_sum as i64
}

/// Detaches an entity from a runqueue that is up to date (`detach_entity_load_avg`). Returns the
/// change of the unweighted runnable sum, for propagation.
pub fn detach_entity(cfs: &mut SchedAvg, se: &SchedAvg, se_weight: u64) -> i64 {
    dequeue_load_avg(cfs, se, se_weight);
    cfs.util_avg = cfs.util_avg.saturating_sub(se.util_avg);
    cfs.util_sum = floor_u32(cfs.util_sum.saturating_sub(se.util_sum), cfs.util_avg);
    cfs.runnable_avg = cfs.runnable_avg.saturating_sub(se.runnable_avg);
    cfs.runnable_sum =
        floor_u64(cfs.runnable_sum.saturating_sub(se.runnable_sum), cfs.runnable_avg);
    (se.load_sum as i64).wrapping_neg()
}

/// A sleeping task leaves for another CPU (`remove_entity_load_avg`): ages it to its old
/// runqueue's last update and notes its averages there for a later [`fold_removed`]. Whether that refreshed them.
pub fn remove_entity(
    removed: &mut Removed,
    se: &mut SchedAvg,
    se_weight: u64,
    cfs_last_update_time: u64,
) -> bool {
    let refreshed = update_load_avg_blocked_se(cfs_last_update_time, se, se_weight);
    removed.nr = removed.nr.wrapping_add(1);
    removed.util_avg = removed.util_avg.wrapping_add(se.util_avg);
    removed.load_avg = removed.load_avg.wrapping_add(se.load_avg);
    removed.runnable_avg = removed.runnable_avg.wrapping_add(se.runnable_avg);
    refreshed
}

/// Subtracts what left since the last update (first half of `update_cfs_rq_load_avg`) and clears
/// it. To be called before the runqueue is aged: the divider is the old position's. `Some(change)`,
/// for propagation, if anything had left: then the averages count as changed.
pub fn fold_removed(cfs: &mut SchedAvg, removed: &mut Removed) -> Option<i64> {
    if removed.nr == 0 {
        return None;
    }
    let Removed { load_avg, util_avg, runnable_avg, .. } = std::mem::take(removed);
    let divider = get_pelt_divider(cfs) as u64;

    cfs.load_avg = cfs.load_avg.saturating_sub(load_avg);
    cfs.load_sum = cfs.load_sum.saturating_sub(load_avg.wrapping_mul(divider));
    cfs.load_sum = floor_u64(cfs.load_sum, cfs.load_avg);

    cfs.util_avg = cfs.util_avg.saturating_sub(util_avg);
    cfs.util_sum = cfs.util_sum.saturating_sub(util_avg.wrapping_mul(divider) as u32);
    cfs.util_sum = floor_u32(cfs.util_sum, cfs.util_avg);

    let runnable_sum = runnable_avg.wrapping_mul(divider);
    cfs.runnable_avg = cfs.runnable_avg.saturating_sub(runnable_avg);
    cfs.runnable_sum = cfs.runnable_sum.saturating_sub(runnable_sum);
    cfs.runnable_sum = floor_u64(cfs.runnable_sum, cfs.runnable_avg);

    // The removed runnable time stands in for the unweighted load. The negation comes before the
    // (arithmetic) shift, which therefore rounds away from zero.
    Some((runnable_sum as i64).wrapping_neg() >> SCHED_CAPACITY_SHIFT)
}

/// True if nothing is left of an owner's signals (`load_avg_is_decayed`).
#[inline]
pub fn load_avg_is_decayed(sa: &SchedAvg) -> bool {
    sa.load_sum == 0 && sa.util_sum == 0 && sa.runnable_sum == 0
}

/// Ages a task that leaves an idle CPU by the time for which that CPU's clocks have been standing
/// still (`migrate_se_pelt_lag`). Only for a CPU whose current task is idle; to be called after
/// [`remove_entity`].
///
/// `clock_pelt_idle` and `clock_idle` are the old runqueue's ([`super::RqClockPelt`]), `throttled_ns`
/// the time its fair runqueue spent throttled (`None` = throttled now, do nothing), `sched_clock` the
/// time now. Whether that refreshed its averages.
pub fn migrate_se_pelt_lag(
    se: &mut SchedAvg,
    se_weight: u64,
    clock_pelt_idle: u64,
    clock_idle: u64,
    throttled_ns: Option<u64>,
    cfs_last_update_time: u64,
    sched_clock: u64,
) -> bool {
    if load_avg_is_decayed(se) {
        return false;
    }
    let Some(throttled_ns) = throttled_ns else {
        return false;
    };
    let mut now = clock_pelt_idle.wrapping_sub(throttled_ns);
    if now < cfs_last_update_time {
        // The runqueue was updated after the estimate (by a balancer): its time is the better one.
        now = cfs_last_update_time;
    } else {
        now = now.wrapping_add(sched_clock.wrapping_sub(clock_idle));
    }
    update_load_avg_blocked_se(now, se, se_weight)
}

/// A task of another class changes its runqueue (`set_task_rq_fair`): ages it to the old one's time
/// and stamps the new one's. Fair tasks have their time zeroed before, and are left alone. Whether that refreshed its
/// averages.
pub fn set_task_rq(
    se: &mut SchedAvg,
    se_weight: u64,
    prev_last_update_time: u64,
    next_last_update_time: u64,
) -> bool {
    if se.last_update_time == 0 {
        return false;
    }
    let refreshed = update_load_avg_blocked_se(prev_last_update_time, se, se_weight);
    se.last_update_time = next_last_update_time;
    refreshed
}

/// Takes `util` out of an owner's utilisation, average and sum alike, as `propagate_negative_bias` (posted) does.
pub fn sub_util(sa: &mut SchedAvg, util: u32) {
    sa.util_avg = sa.util_avg.saturating_sub(util as u64);
    let sum = util.wrapping_mul(get_pelt_divider(sa));
    sa.util_sum = floor_u32(sa.util_sum.saturating_sub(sum), sa.util_avg);
}

/// A new task looks as heavy as its weight until it shows what it is; a new group is empty
/// (`init_entity_runnable_average`). `weight` is scaled down; `None` for a group.
pub fn init_entity(task_weight: Option<u64>) -> SchedAvg {
    SchedAvg { load_avg: task_weight.unwrap_or(0), ..SchedAvg::default() }
}

/// A new fair task's first utilisation (`post_init_entity_util_avg`, at its first wakeup): its share
/// of the runqueue's by weight, at most half of what is left of the CPU's capacity. On an empty CPU of
/// 1024 the first tasks get 512, 256, 128, …
pub fn post_init_entity_util_avg(
    se: &mut SchedAvg,
    cfs_util_avg: u64,
    cfs_load_avg: u64,
    se_weight: u64,
    cpu_capacity: u64,
) {
    // Division of a signed number: −1 / 2 is 0.
    let cap = (cpu_capacity.wrapping_sub(cfs_util_avg) as i64) / 2;
    if cap > 0 {
        let cap = cap as u64;
        se.util_avg = if cfs_util_avg != 0 {
            let share = cfs_util_avg.wrapping_mul(se_weight) / cfs_load_avg.wrapping_add(1).max(1);
            share.min(cap)
        } else {
            cap
        };
    }
    se.runnable_avg = se.util_avg;
}

/// Copies a group runqueue's utilisation to its entity and the difference to the parent
/// (`update_tg_cfs_util`).
pub fn propagate_util(cfs: &mut SchedAvg, se: &mut SchedAvg, gcfs: &SchedAvg) {
    let delta_avg = gcfs.util_avg.wrapping_sub(se.util_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs);
    se.util_avg = gcfs.util_avg;
    let new_sum = (se.util_avg as u32).wrapping_mul(divider);
    let delta_sum = new_sum as i64 - se.util_sum as i64;
    se.util_sum = new_sum;

    cfs.util_avg = add_positive(cfs.util_avg, delta_avg);
    // The clamp of a 32-bit sum: C adds in 64 bits, cuts to 32 and then looks for a wrap.
    let sum = (cfs.util_sum as i64).wrapping_add(delta_sum) as u32;
    let sum = if delta_sum < 0 && sum > cfs.util_sum { 0 } else { sum };
    cfs.util_sum = floor_u32(sum, cfs.util_avg);
}

/// Copies a group runqueue's runnable time to its entity and the difference to the parent
/// (`update_tg_cfs_runnable`).
pub fn propagate_runnable(
    cfs: &mut SchedAvg,
    se: &mut SchedAvg,
    gcfs: &SchedAvg,
    sum: TgRunnableSum,
) {
    let delta_avg = gcfs.runnable_avg.wrapping_sub(se.runnable_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs);
    se.runnable_avg = gcfs.runnable_avg;
    let new_sum = match sum {
        TgRunnableSum::Bits32 => (se.runnable_avg as u32).wrapping_mul(divider) as u64,
        TgRunnableSum::Bits64 => se.runnable_avg.wrapping_mul(divider as u64),
    };
    let delta_sum = (new_sum as i64).wrapping_sub(se.runnable_sum as i64);
    se.runnable_sum = new_sum;

    cfs.runnable_avg = add_positive(cfs.runnable_avg, delta_avg);
    cfs.runnable_sum = floor_u64(add_positive(cfs.runnable_sum, delta_sum), cfs.runnable_avg);
}

/// Turns a group's pending propagation into load of its entity and of the parent
/// (`update_tg_cfs_load`).
///
/// `pending` is the group runqueue's `prop_runnable_sum`, which the caller zeroes;
/// `gcfs_weight` its scaled-down queued weight; `se_weight` the group entity's.
/// A positive change adds, at most to "always runnable"; a negative one assumes that all that is left
/// is equally runnable. Never less runnable than running.
pub fn propagate_load(
    cfs: &mut SchedAvg,
    se: &mut SchedAvg,
    gcfs: &SchedAvg,
    pending: i64,
    gcfs_weight: u64,
    se_weight: u64,
) {
    if pending == 0 {
        return;
    }
    let divider = get_pelt_divider(cfs) as i64;
    let runnable_sum = if pending >= 0 {
        pending.wrapping_add(se.load_sum as i64).min(divider)
    } else {
        let equal_share = gcfs.load_sum.checked_div(gcfs_weight).unwrap_or(0);
        se.load_sum.min(equal_share) as i64
    };
    let running_sum = (se.util_sum >> SCHED_CAPACITY_SHIFT) as i64;
    let runnable_sum = runnable_sum.max(running_sum) as u64;

    let load_sum = se_weight.wrapping_mul(runnable_sum);
    let load_avg = load_sum / divider as u64;
    let delta_avg = load_avg.wrapping_sub(se.load_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let delta_sum = load_sum.wrapping_sub(se_weight.wrapping_mul(se.load_sum)) as i64;
    se.load_sum = runnable_sum;
    se.load_avg = load_avg;
    cfs.load_avg = add_positive(cfs.load_avg, delta_avg);
    cfs.load_sum = floor_u64(add_positive(cfs.load_sum, delta_sum), cfs.load_avg);
}
