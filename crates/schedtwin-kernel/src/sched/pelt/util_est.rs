//! `util_est`: the utilisation a task will probably need, known at the moment it wakes.
//!
//! `util_avg` decays while a task sleeps, so that a task which runs 10 ms a second looks small when
//! it wakes, and needs a while to look large again. `util_est` remembers, per task, the utilisation
//! at the end of its activations: it rises at once and falls with weight ¼ (an EWMA). A runqueue
//! holds the sum over its enqueued tasks.
//!
//! **Terms.** *activation*: from wakeup to sleep. [`UTIL_AVG_UNCHANGED`]: bit 31 of a task's
//! `util_est`, set by each store and cleared by the next refresh of its averages; while it is set
//! there is nothing new to learn.
//!
//! **Kernel:** Linux 6.12 (single field, since 6.8), `kernel/sched/fair.c`: `util_est_update`,
//! `util_est_enqueue`, `util_est_dequeue`, `_task_util_est`, `task_util_est`.
//!
//! **Differences:** the feature bit `UTIL_EST` counts as on.

use super::SchedAvg;

/// Bit 31 of a task's `util_est`: the averages have not been refreshed since the last store.
pub const UTIL_AVG_UNCHANGED: u32 = 0x8000_0000;
/// Falls by less than this (1 % of 1024) are not smoothed.
pub const UTIL_EST_MARGIN: u32 = 1024 / 100;
/// A new sample's weight is 1/4.
pub const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

/// The estimate of a task without its flag (`_task_util_est`).
#[inline(always)]
pub fn _task_util_est(task: &SchedAvg) -> u64 {
    (task.util_est & !UTIL_AVG_UNCHANGED) as u64
}

/// What a task is expected to need (`task_util_est`): the larger of estimate and present value.
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

/// A task goes to sleep: learns from this activation (`util_est_update` with `task_sleep`).
///
/// `arch_capacity` is the CPU's `arch_scale_cpu_capacity`. In 6.12 this runs at the start of the
/// dequeue, hence on the averages of the last update.
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
