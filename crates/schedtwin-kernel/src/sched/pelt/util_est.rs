// SPDX-License-Identifier: GPL-2.0-or-later
//! `util_est`: the utilisation a task will probably need, known at the moment it wakes.
//!
//! `util_avg` decays while a task sleeps, so that a task which runs 10 ms a second looks small when
//! it wakes, and needs a while to look large again. `util_est` remembers, per task, the utilisation
//! at the end of its activations: it rises at once and falls with weight ¼ (an EWMA). A runqueue
//! holds the sum over its enqueued tasks.
//!
//! **Two forms** ([`UtilEstForm`]). Up to 6.7 a task keeps *two* numbers, the utilisation at the end
//! of its last activation (`enqueued`) and the moving average (`ewma`), and the larger one is the
//! estimate. Since 6.8 there is one number, the average. With `UTIL_EST_FASTUP` the average is never
//! below `enqueued`, so that the forms differ only for a task that had to wait: the older one learns its
//! lower utilisation, the newer one keeps what it knew. Here `enqueued` is [`SchedAvg::util_est`] and
//! `ewma` is [`SchedAvg::util_est_ewma`], which the single form leaves at 0: so what reads an estimate
//! need not know the form.
//!
//! ```text
//!   util_avg at the end of each activation:    300       100       100       100 (waited)
//!   single:                                    300       250       212       212
//!   two numbers, enqueued | ewma:          300|300   100|250   100|212   100|184
//! ```
//!
//! **Terms.** *activation*: from wakeup to sleep. [`UTIL_AVG_UNCHANGED`]: bit 31 of a task's
//! `util_est`, set by each store and cleared by the next refresh of its averages; while it is set
//! there is nothing new to learn.
//!
//! **Kernel:** `kernel/sched/fair.c`: `util_est_update`, `util_est_enqueue`, `util_est_dequeue`,
//! `_task_util_est`, `task_util_est`, of Linux 6.12 (single) and 6.1 (two numbers).
//!
//! **Differences:** the feature bit `UTIL_EST` counts as on.

use super::SchedAvg;
use crate::config::{UtilEstForm, UtilEstUpdate};

/// Bit 31 of a task's `util_est`: the averages have not been refreshed since the last store.
pub const UTIL_AVG_UNCHANGED: u32 = 0x8000_0000;
/// Falls by less than this (1 % of 1024) are not smoothed.
pub const UTIL_EST_MARGIN: u32 = 1024 / 100;
/// A new sample's weight is 1/4.
pub const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

/// The estimate of a task without its flag (`_task_util_est`).
#[inline(always)]
pub fn _task_util_est(task: &SchedAvg) -> u64 {
    (task.util_est & !UTIL_AVG_UNCHANGED).max(task.util_est_ewma) as u64
}

/// Returns the expected need of a task (`task_util_est`): the larger of estimate and present value.
#[inline(always)]
pub fn task_util_est(task: &SchedAvg) -> u64 {
    task.util_avg.max(_task_util_est(task))
}

/// Adds a task that is being enqueued to the root runqueue's sum (`util_est_enqueue`).
#[inline]
pub fn util_est_enqueue(cfs: &mut SchedAvg, task: &SchedAvg) {
    cfs.util_est = cfs.util_est.wrapping_add(_task_util_est(task) as u32);
}

/// Takes a task that is being dequeued out of the sum, not below 0 (`util_est_dequeue`).
#[inline]
pub fn util_est_dequeue(cfs: &mut SchedAvg, task: &SchedAvg) {
    cfs.util_est = cfs.util_est.saturating_sub(_task_util_est(task) as u32);
}

/// When a sleeping task's estimate is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learns {
    /// Before its dequeue, on the averages of the last update.
    Before,
    /// In it, on those of this moment, which have just been updated.
    Within,
    /// After it, on those of this moment.
    After,
}

/// When the kernel's form learns.
#[inline(always)]
pub fn util_est_learns(when: UtilEstUpdate) -> Learns {
    match when {
        UtilEstUpdate::AfterDequeue => Learns::After,
        UtilEstUpdate::BeforeDequeue | UtilEstUpdate::BeforeDequeueUnlimited => Learns::Before,
        UtilEstUpdate::InDequeue => Learns::Within,
    }
}

/// Whether a delayed sleeper that changes its class is counted out again, as in 6.12; it was when it began to sleep.
#[inline(always)]
pub fn util_est_leaves_twice(when: UtilEstUpdate) -> bool {
    match when {
        UtilEstUpdate::AfterDequeue | UtilEstUpdate::BeforeDequeue => true,
        UtilEstUpdate::BeforeDequeueUnlimited | UtilEstUpdate::InDequeue => false,
    }
}

/// The largest utilisation from which a task may learn to need less: 6.18 and later have no limit.
#[inline(always)]
pub fn util_est_limit(when: UtilEstUpdate, arch_capacity: u64) -> u64 {
    match when {
        UtilEstUpdate::BeforeDequeueUnlimited | UtilEstUpdate::InDequeue => u64::MAX,
        UtilEstUpdate::AfterDequeue | UtilEstUpdate::BeforeDequeue => arch_capacity,
    }
}

/// A task goes to sleep: learns from this activation in the kernel's form. `fastup` is the feature
/// `UTIL_EST_FASTUP`, which the single form has built in.
#[inline]
pub fn util_est_update_form(
    form: UtilEstForm,
    fastup: bool,
    task: &mut SchedAvg,
    arch_capacity: u64,
) {
    match form {
        UtilEstForm::EnqueuedAndEwma => {
            util_est_update_enqueued_and_ewma(task, arch_capacity, fastup);
        }
        UtilEstForm::Single => util_est_update(task, arch_capacity),
    }
}

/// The single form (`util_est_update` with `task_sleep`, 6.8 and later).
///
/// `arch_capacity` is the CPU's `arch_scale_cpu_capacity`.
///
/// 1. Flag set: nothing was refreshed, return.
/// 2. The estimate is not above `util_avg`: take `util_avg`.
/// 3. Less than 1 % above: keep it.
/// 4. `util_avg` above the CPU's capacity: there was no idle time to compare with; return without
///    even setting the flag.
/// 5. The task waited (`runnable_avg` above `util_avg` by more than the margin): it would have liked
///    more than it got; keep the estimate.
/// 6. Else move a quarter of the way.
pub fn util_est_update(task: &mut SchedAvg, arch_capacity: u64) {
    let mut ewma = task.util_est;
    if ewma & UTIL_AVG_UNCHANGED != 0 {
        return;
    }
    let dequeued = task.util_avg as u32;
    if ewma <= dequeued {
        ewma = dequeued;
    } else {
        let fall = ewma - dequeued;
        if fall >= UTIL_EST_MARGIN {
            if dequeued as u64 > arch_capacity {
                return;
            }
            // The sum is unsigned int in C, hence cannot be above 2^32 before the comparison.
            if dequeued.wrapping_add(UTIL_EST_MARGIN) as u64 >= task.runnable_avg {
                ewma = (ewma << UTIL_EST_WEIGHT_SHIFT).wrapping_sub(fall) >> UTIL_EST_WEIGHT_SHIFT;
            }
        }
    }
    task.util_est = ewma | UTIL_AVG_UNCHANGED;
}

/// The form with two numbers (`util_est_update` with `task_sleep`, 5.13 to 6.7).
///
/// 1. Flag set: nothing was refreshed, return.
/// 2. `enqueued` becomes `util_avg`. With `fastup`, an `ewma` below that is raised to it.
/// 3. `ewma` closer than 1 %: it stays. If `enqueued` moved by 1 % or more it is stored; else nothing
///    is, the flag included.
/// 4. `util_avg` above the CPU's capacity: nothing is stored.
/// 5. Else `ewma` moves a quarter of the way.
pub fn util_est_update_enqueued_and_ewma(task: &mut SchedAvg, arch_capacity: u64, fastup: bool) {
    let (before, ewma) = (task.util_est, task.util_est_ewma);
    if before & UTIL_AVG_UNCHANGED != 0 {
        return;
    }
    let enqueued = task.util_avg as u32;
    if fastup && ewma < enqueued {
        task.util_est_ewma = enqueued;
    } else if within_margin(enqueued, ewma) {
        if within_margin(before, enqueued) {
            return;
        }
    } else if task.util_avg > arch_capacity {
        return;
    } else {
        // 4·ewma + (enqueued − ewma), which wraps as C's unsigned int does.
        let moved = (ewma << UTIL_EST_WEIGHT_SHIFT).wrapping_add(enqueued.wrapping_sub(ewma));
        task.util_est_ewma = moved >> UTIL_EST_WEIGHT_SHIFT;
    }
    task.util_est = enqueued | UTIL_AVG_UNCHANGED;
}

/// Whether two utilisations differ by less than the margin (`within_margin` of their difference).
fn within_margin(a: u32, b: u32) -> bool {
    a.abs_diff(b) < UTIL_EST_MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_used_more_than_the_cpu_has_learns_since_6_18() {
        for (when, learnt) in [
            (UtilEstUpdate::BeforeDequeue, 400),
            (UtilEstUpdate::BeforeDequeueUnlimited, 350),
            (UtilEstUpdate::InDequeue, 350),
        ] {
            let mut task =
                SchedAvg { util_est: 400, util_avg: 200, runnable_avg: 200, ..SchedAvg::default() };
            util_est_update(&mut task, util_est_limit(when, 160));
            assert_eq!(_task_util_est(&task), learnt, "{when:?}");
        }
    }
}
