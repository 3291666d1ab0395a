// SPDX-License-Identifier: GPL-2.0-or-later
//! What a group's queue on one CPU is worth: the arithmetic of [`super`].
//!
//! ```
//! use schedtwin_kernel::sched::fair::group::calc_group_shares;
//!
//! // A group of 1024 shares whose load is a third on this CPU, two thirds elsewhere.
//! assert_eq!(calc_group_shares(1024 << 10, 3072, 1024, 1024), (1024 << 10) / 3);
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `calc_group_shares`, `update_tg_load_avg`.

/// `MIN_SHARES`, not scaled up where a CPU's part of the shares is concerned.
pub const MIN_SHARES: i64 = 2;

/// `calc_group_shares()`: `shares` of the group, scaled up; `tg_load_avg`: its load on all CPUs, of which `contrib` has been
/// told of this queue; `load`: this queue's now, the larger of its weight and its average.
pub fn calc_group_shares(shares: u64, tg_load_avg: i64, contrib: u64, load: u64) -> u64 {
    let load = load as i64;
    let total = tg_load_avg - contrib as i64 + load;
    let mut part = (shares as i64).wrapping_mul(load);
    if total != 0 {
        part /= total;
    }
    part.clamp(MIN_SHARES, shares as i64) as u64
}

/// `update_tg_load_avg()`: by how much a queue's contribution to its group's load changes; `None`: by too little.
pub fn tg_load_avg_delta(load_avg: u64, contrib: u64) -> Option<i64> {
    let delta = load_avg as i64 - contrib as i64;
    (delta.unsigned_abs() > contrib / 64).then_some(delta)
}
