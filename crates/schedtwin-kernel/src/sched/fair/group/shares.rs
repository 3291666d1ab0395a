// SPDX-License-Identifier: GPL-2.0-or-later
//! The weight of a group's queue on one CPU: the arithmetic of [`super`].
//!
//! ```
//! use schedtwin_kernel::config::GroupShares;
//! use schedtwin_kernel::sched::fair::group::{GroupLoad, calc_group_shares};
//!
//! // A group of 1024 shares with four busy tasks; a quarter of its load is on this CPU.
//! let group = GroupLoad { shares: 1024 << 10, load_avg: 4096, runnable_avg: 4096, cpus: 8 };
//! assert_eq!(calc_group_shares(GroupShares::Smp, &group, 1024, 1024), 256 << 10);
//! assert_eq!(calc_group_shares(GroupShares::Concur, &group, 1024, 1024), 1024 << 10);
//!
//! // In sums that decay, four tasks are nearly four, and count as three.
//! let group = GroupLoad { runnable_avg: 4092, ..group };
//! assert_eq!(calc_group_shares(GroupShares::Concur, &group, 1024, 1024), 768 << 10);
//! ```
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/fair.c `calc_group_shares`, `update_tg_load_avg`; 7.3.4
//! `__sched_cgroup_mode_update`.

use crate::config::{GroupShares, TgLoadAvg};

/// `MIN_SHARES`, not scaled up where a CPU's part of the shares is concerned.
pub const MIN_SHARES: i64 = 2;
/// The weight of nice -20, scaled up: the most that `max` gives.
const MAX_WEIGHT: i64 = 88761 << 10;
/// `SCHED_CAPACITY_SHIFT`: the `runnable_avg` of a task that is always runnable.
const TASK_SHIFT: u32 = 10;

/// The weight of a group, and the contributions of the CPUs.
#[derive(Clone, Copy, Debug)]
pub struct GroupLoad {
    /// Its weight, scaled up.
    pub shares: u64,
    /// Its load on all CPUs.
    pub load_avg: i64,
    /// Its runnable tasks on all CPUs, each of which counts 1024.
    pub runnable_avg: i64,
    /// CPUs that it may use.
    pub cpus: u32,
}

/// `calc_group_shares()`: the weight of a group's queue on one CPU, of whose load the group has been told `contrib`; `load`
/// is this queue's now, the larger of its weight and its average.
pub fn calc_group_shares(form: GroupShares, group: &GroupLoad, contrib: u64, load: u64) -> u64 {
    let tasks = (group.runnable_avg >> TASK_SHIFT).max(1);
    let cpus = i64::from(group.cpus.max(1));
    let shares = group.shares as i64;
    let (worth, most) = match form {
        GroupShares::Up => return group.shares,
        GroupShares::Smp => (shares, shares),
        GroupShares::Concur => (tasks.min(cpus) * shares, tasks.min(cpus) * shares),
        GroupShares::Max => (cpus * shares, MAX_WEIGHT),
        GroupShares::Tasks => (tasks * shares, tasks * shares),
    };
    let load = load as i64;
    let total = group.load_avg - contrib as i64 + load;
    let mut part = worth.wrapping_mul(load);
    if total != 0 {
        part /= total;
    }
    part.clamp(MIN_SHARES, most) as u64
}

/// Whether a queue contributes at most once in a millisecond.
pub fn contributes_once_per_ms(form: TgLoadAvg) -> bool {
    form != TgLoadAvg::Always
}

/// Whether that is by its CPU's run queue's clock, not by `sched_clock()`.
pub fn contributes_by_rq_clock(form: TgLoadAvg) -> bool {
    form == TgLoadAvg::WithRunnable
}

/// `update_tg_load_avg()`: by how much what a queue contributes to its group's `load_avg` and `runnable_avg` changes, of
/// each what it is and what has been contributed; `None`: by too little. One that has moved takes the other along.
pub fn contribution_delta(
    form: TgLoadAvg,
    load: (u64, u64),
    runnable: (u64, u64),
) -> Option<(i64, i64)> {
    let delta = |(is, contrib): (u64, u64)| is as i64 - contrib as i64;
    let moved = |told: (u64, u64)| delta(told).unsigned_abs() > told.1 / 64;
    let with_runnable = form == TgLoadAvg::WithRunnable;
    let runnable_delta = if with_runnable { delta(runnable) } else { 0 };
    (moved(load) || with_runnable && moved(runnable)).then(|| (delta(load), runnable_delta))
}
