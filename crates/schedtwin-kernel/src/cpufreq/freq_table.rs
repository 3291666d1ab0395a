// SPDX-License-Identifier: GPL-2.0-or-later
//! `include/linux/cpufreq.h`: which frequency of a table stands for one between them.
//!
//! Tables ascend and have an entry. Entries that are inefficient, because a faster one costs no more, are skipped as long as what
//! is found stays within the limits.

use schedtwin_types::Khz;

/// `CPUFREQ_RELATION_*`, among efficient entries (`CPUFREQ_RELATION_E`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The lowest that is not below it.
    Low,
    /// The highest that is not above it.
    High,
    /// The closest.
    Closest,
}

/// `policy->min` and `policy->max`, each a frequency of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At least this frequency may be asked for.
    pub min: Khz,
    /// At most this one.
    pub max: Khz,
}

impl Limits {
    /// A table's whole.
    pub fn whole(table: &[Khz]) -> Limits {
        Limits { min: table[0], max: table[table.len() - 1] }
    }

    /// The frequency within the limits that is nearest.
    #[inline(always)]
    pub fn clamp(self, khz: Khz) -> Khz {
        khz.clamp(self.min, self.max)
    }

    /// `cpufreq_set_policy()`: the limits that come of two requests. Where no frequency lies between them, the next below the upper one
    /// counts; the limits are frequencies of the table, the lower one not below its request, the upper one not above its own.
    ///
    /// ```
    /// use schedtwin_kernel::cpufreq::freq_table::Limits;
    /// let of = |min, max| Limits::of(&[1000, 1300, 1500], min, max);
    /// assert_eq!(of(1100, 1400), Limits { min: 1300, max: 1300 });
    /// assert_eq!(of(1310, 1400), Limits { min: 1300, max: 1300 });
    /// assert_eq!(of(1500, 1000), Limits { min: 1000, max: 1000 });
    /// assert_eq!(of(0, u32::MAX), Limits { min: 1000, max: 1500 });
    /// ```
    pub fn of(table: &[Khz], min: Khz, max: Khz) -> Limits {
        let Limits { min: lowest, max: highest } = Limits::whole(table);
        let mut max = max.clamp(lowest, highest);
        let mut min = min.clamp(lowest, max);
        if !table.iter().any(|khz| (min..=max).contains(khz)) {
            max = table.iter().copied().filter(|khz| *khz <= max).max().unwrap_or(lowest);
            min = min.min(max);
        }
        let resolved = |khz, relation| {
            find(table.iter().copied(), khz, relation).expect("a table has an entry")
        };
        let max = resolved(max, Relation::High);
        Limits { min: resolved(min, Relation::Low).min(max), max }
    }
}

/// The lowest efficient frequency that is not below `target`, or any that is not, if that one is above the limit.
#[inline(always)]
pub fn low(table: &[Khz], inefficient: &[bool], limits: Limits, target: Khz) -> Khz {
    let target = limits.clamp(target);
    for (khz, inefficient) in table.iter().zip(inefficient) {
        if *khz >= target && !inefficient {
            if *khz > limits.max {
                break;
            }
            return *khz;
        }
    }
    let first = table.partition_point(|khz| *khz < target);
    table[first]
}

/// `cpufreq_frequency_table_target()`: the frequency for `target` within the limits.
///
/// ```
/// use schedtwin_kernel::cpufreq::freq_table::{Limits, Relation::*, target};
/// let limits = Limits { min: 1000, max: 1500 };
/// let of = |khz| [Low, High, Closest].map(|how| target(&[1000, 1300, 1500], &[false; 3], limits, khz, how));
/// assert_eq!(of(1400), [1500, 1300, 1300]);
/// ```
pub fn target(
    table: &[Khz],
    inefficient: &[bool],
    limits: Limits,
    target: Khz,
    relation: Relation,
) -> Khz {
    let target = limits.clamp(target);
    let efficient = table.iter().zip(inefficient).filter(|(_, skip)| !**skip).map(|(khz, _)| *khz);
    let found = find(efficient, target, relation);
    match found.filter(|khz| (limits.min..=limits.max).contains(khz)) {
        Some(khz) => khz,
        None => find(table.iter().copied(), target, relation).expect("a table has an entry"),
    }
}

/// `cpufreq_table_find_index_al()`, `_ah()` and `_ac()`; `None`: there is nothing to choose from.
fn find(ascending: impl Iterator<Item = Khz>, target: Khz, relation: Relation) -> Option<Khz> {
    let mut below = None;
    for khz in ascending {
        if khz < target {
            below = Some(khz);
            continue;
        }
        let lower = match relation {
            _ if khz == target => None,
            Relation::Low => None,
            Relation::High => below,
            Relation::Closest => below.filter(|below| target - below <= khz - target),
        };
        return Some(lower.unwrap_or(khz));
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Khz; 4] = [1_000, 1_300, 1_500, 2_000];

    fn all(inefficient: [bool; 4], limit_max: Khz, khz: Khz) -> [Khz; 3] {
        [Relation::Low, Relation::High, Relation::Closest].map(|relation| {
            target(&TABLE, &inefficient, Limits { min: 1_000, max: limit_max }, khz, relation)
        })
    }

    #[test]
    fn relations() {
        let of = |khz| all([false; 4], 2_000, khz);
        assert_eq!(of(1_300), [1300, 1300, 1300]);
        assert_eq!(of(1_400), [1500, 1300, 1300], "of equal ones the lower");
        assert_eq!(of(1_401), [1500, 1300, 1500]);
        assert_eq!(of(900), [1000, 1000, 1000]);
        assert_eq!(of(3_000), [2000, 2000, 2000]);
    }

    #[test]
    fn inefficient_ones_are_skipped_within_the_limits() {
        let skips = [false, false, true, false];
        assert_eq!(all(skips, 2_000, 1_500), [2000, 1300, 1300]);
        assert_eq!(all(skips, 1_500, 1_500), [1500, 1300, 1300], "not above the limit");
        assert_eq!(low(&TABLE, &skips, Limits { min: 1_000, max: 1_500 }, 1_500), 1_500);
        assert_eq!(low(&TABLE, &skips, Limits { min: 1_500, max: 2_000 }, 0), 2_000);
        assert_eq!(all([true, false, false, false], 2_000, 1_000), [1300, 1300, 1300]);
    }
}
