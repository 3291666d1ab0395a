// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: `kernel/sched/fair.c`.
//!
//! | file | content |
//! |---|---|
//! | `class.rs` | enqueue, dequeue, delayed dequeue, put and set, tick, wakeup preemption, yield |
//! | `buddies.rs` | the entities that a run queue prefers or skips |
//! | `discipline.rs` | where EEVDF and CFS differ in these |
//! | `eevdf.rs` | virtual time of 6.6 and later: lag, eligibility, deadlines, placement, picking |
//! | `cfs.rs` | virtual time before: slices of a period, granularities, buddies |
//! | `own_code.rs` | instructions of this code in Linux, beyond those of CFS |
//! | `pick.rs` | what a record says of a pick |
//! | `group.rs` | task groups: weights, propagation, moving a task |
//! | `flat.rs` | one timeline for all groups of a CPU |
//! | `bandwidth.rs` | limits of groups: `cpu.max` |
//! | `load_avg.rs` | which PELT update happens when; load of a CPU |
//! | `wakeup.rs` | CPU selection: `wake_affine`, `select_idle_sibling` |
//! | `energy.rs` | CPU selection by energy: `find_energy_efficient_cpu` |
//! | `slow_path.rs` | CPU selection for fork and exec |
//! | `balance.rs` | load balancing |
//! | `sched_cache.rs` | the last-level cache that a process prefers |

pub mod balance;
pub mod bandwidth;
mod buddies;
pub mod cfs;
pub mod class;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
pub(crate) mod discipline;
pub mod eevdf;
pub mod energy;
pub mod entitled;
pub mod flat;
pub mod group;
pub mod load_avg;
mod own_code;
mod pick;
#[doc(hidden)]
pub mod sched_cache;
pub mod slow_path;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod states;
pub mod wakeup;

use crate::Context;
use crate::config::CalcDelta;
use crate::sched::LoadWeight;
use schedtwin_types::{Policy, TaskId};

/// `NICE_0_LOAD`: the weight of nice 0, scaled up.
pub const NICE_0_LOAD: u64 = 1024 << 10;

/// The result of `pick_next_task_fair()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// A task.
    Task(TaskId),
    /// Nothing, not even by balancing.
    Nothing,
    /// A task of a higher class has come in: start again (`RETRY_TASK`).
    Retry,
}

/// `sched_prio_to_weight`: each nice level is worth about 10 % of CPU time (a factor of 1.25).
const PRIO_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// `sched_prio_to_wmult`: 2^32 / weight.
const PRIO_TO_WMULT: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644,
    704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765,
    6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740, 31350126, 39045157,
    49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// `WEIGHT_IDLEPRIO` and its inverse.
const IDLE_WEIGHT: LoadWeight = LoadWeight { weight: 3 << 10, inv_weight: 1431655765 };

/// The weight of a fair task (`set_load_weight`).
pub fn weight_of(policy: Policy, nice: i8) -> LoadWeight {
    if policy == Policy::Idle {
        return IDLE_WEIGHT;
    }
    let index = (nice + 20) as usize;
    LoadWeight { weight: (PRIO_TO_WEIGHT[index] as u64) << 10, inv_weight: PRIO_TO_WMULT[index] }
}

/// Weight and its inverse of a nice level, 0 (nice −20) to 39.
pub(crate) fn prio_weight(level: i32) -> (u32, u32) {
    (PRIO_TO_WEIGHT[level as usize], PRIO_TO_WMULT[level as usize])
}

/// `scale_load_down()`: a weight without its `<< 10`, at least 2 if it is not 0.
#[inline(always)]
pub fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 { 0 } else { (weight >> 10).max(2) }
}

/// `calc_delta_fair()`: real time → virtual time of an entity.
///
/// ```
/// use schedtwin_kernel::sched::fair::{calc_delta_fair, weight_of};
/// use schedtwin_types::Policy;
/// assert_eq!(calc_delta_fair(1_000_000, &weight_of(Policy::Normal, 0)), 1_000_000);
/// assert_eq!(calc_delta_fair(1_000_000, &weight_of(Policy::Normal, 5)), 3_056_716);
/// assert_eq!(calc_delta_fair(1_000_000, &weight_of(Policy::Normal, -20)), 11_536);
/// ```
#[inline(always)]
pub fn calc_delta_fair(delta: u64, load: &LoadWeight) -> u64 {
    if load.weight == NICE_0_LOAD { delta } else { calc_delta(delta, NICE_0_LOAD, load) }
}

impl Context {
    /// `calc_delta_fair()` in the kernel's form.
    #[inline(always)]
    pub(crate) fn calc_delta_fair(&self, delta: u64, load: &LoadWeight) -> u64 {
        match self.config.calc_delta {
            _ if load.weight == NICE_0_LOAD => delta,
            CalcDelta::Inverse => calc_delta(delta, NICE_0_LOAD, load),
            CalcDelta::Division => delta.wrapping_mul(NICE_0_LOAD) / load.weight,
        }
    }
}

/// `__calc_delta()`: delta · weight / load, by multiplication with the inverse.
pub fn calc_delta(delta: u64, weight: u64, load: &LoadWeight) -> u64 {
    let mut fact = scale_load_down(weight);
    let mut shift = 32u32;
    let inverse = match load.inv_weight {
        0 => match scale_load_down(load.weight) {
            0 => u32::MAX,
            w if w >= u32::MAX as u64 => 1,
            w => (u32::MAX as u64 / w) as u32,
        },
        known => known,
    };
    let high = (fact >> 32) as u32;
    if high != 0 {
        let bits = 32 - high.leading_zeros();
        shift -= bits;
        fact >>= bits;
    }
    fact = (fact as u32 as u64).wrapping_mul(inverse as u64);
    let high = (fact >> 32) as u32;
    if high != 0 {
        let bits = 32 - high.leading_zeros();
        shift -= bits;
        fact >>= bits;
    }
    ((delta as u128 * fact as u128) >> shift) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_belong_to_the_weights() {
        for nice in -20..20i8 {
            let load = weight_of(Policy::Normal, nice);
            let exact = (1u64 << 32) as i64 / scale_load_down(load.weight) as i64;
            assert!((load.inv_weight as i64 - exact).abs() <= 1 + (exact >> 15), "nice {nice}");
        }
    }

    #[test]
    fn a_reweighted_entity_computes_its_inverse() {
        let known = weight_of(Policy::Normal, 0);
        let unknown = LoadWeight { weight: 2048 << 10, inv_weight: 0 };
        assert_eq!(calc_delta_fair(1 << 20, &known), 1 << 20);
        // 2^32 − 1 over 2048, truncated, loses a little.
        assert_eq!(calc_delta_fair(1 << 20, &unknown), (1 << 19) - 1);
    }
}
