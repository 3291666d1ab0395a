// SPDX-License-Identifier: GPL-2.0-or-later
//! The bandwidth that a machine's deadline tasks may reserve together.
//!
//! Every admitted reservation and the fair servers are in `total_bw`. A call that would bring it above the limit for the
//! machine's capacity fails with EBUSY (`deadline/bandwidth.rs`).
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/deadline.c `__dl_overflow`, `dl_bw_capacity`.

/// `struct dl_bw` of the root domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlBw {
    /// Bandwidth that may be reserved of a CPU of capacity 1024; `None`: no limit.
    pub bw: Option<u64>,
    /// Bandwidth that is reserved.
    pub total_bw: u64,
}

impl DlBw {
    /// `__dl_overflow()`: whether `new_bw` in the place of `old_bw` is too much for that capacity.
    pub fn overflows(&self, capacity: u64, old_bw: u64, new_bw: u64) -> bool {
        self.bw.is_some_and(|bw| (bw * capacity) >> 10 < self.total_bw - old_bw + new_bw)
    }
}

/// `dl_bw_capacity()`: capacities count where they differ.
pub(crate) fn dl_bw_capacity(capacities: &[u64]) -> u64 {
    let asymmetric = capacities.iter().any(|capacity| *capacity != capacities[0]);
    if asymmetric { capacities.iter().sum() } else { capacities.len() as u64 * 1024 }
}
