// SPDX-License-Identifier: GPL-2.0-or-later
//! The speed of a CPU: capacity × frequency, as an exact fraction.
//!
//! The rate of a CPU is work per nanosecond with [`RATE_SHIFT`] fractional bits: a CPU of capacity
//! 1024 at its highest frequency does 1 ns of work a nanosecond, [`RATE_FULL`]. The rate is rounded
//! down once, where it is computed; work done and time needed then follow exactly:
//! `work_done(rate, time_for(work, rate)) >= work` and one nanosecond less is not enough.
//!
//! ```
//! use schedtwin_machine::{rate, time_for, work_done, RATE_FULL};
//! assert_eq!(rate(1024, 2_802_000, 2_802_000), RATE_FULL);
//! let slow = rate(124, 300_000, 1_803_000); // a little core at its lowest frequency
//! let ns = time_for(1_000_000, slow);
//! assert!(work_done(slow, ns) >= 1_000_000 && work_done(slow, ns - 1) < 1_000_000);
//! ```
//!
//! **Kinds of work.** Capacity is one number for a core, but cores differ by the code they run: rt-app's
//! loop is 5.5 times as fast on a Cortex-X1 as on a Cortex-A55 of the same phone, whose capacities are
//! 1024 and 124. A kind has, for each kind of core, a **factor** on the capacity, and a **stall share**:
//! the part of its time at the highest frequency that waits for memory, whose clock does not change.
//! With stall share s, at f of f_max, the same work takes s + (1 - s) f_max / f times as long:
//!
//! ```text
//!   rate = capacity * factor * f / (s f + (1 - s) f_max)
//! ```
//!
//! Work is still ns on a CPU of capacity 1024 at its highest frequency, factor 1.
//!
//! Differences: the memory's own clock, and its being shared, are absent: a stall takes as long as it
//! takes (anyone who compares memory-bound benchmarks with several at once would notice).

use schedtwin_input::{Diagnostics, Located, TableReader};
use schedtwin_types::{Capacity, Khz, NEVER, Ns, Work};

use crate::keys::keys;

/// Fractional bits of a rate.
pub const RATE_SHIFT: u32 = 20;

/// The rate of capacity 1024 at full speed.
pub const RATE_FULL: u64 = 1 << RATE_SHIFT;

/// The rate of a CPU of `capacity` at `khz`, where `max_khz` is its highest frequency.
pub fn rate(capacity: Capacity, khz: Khz, max_khz: Khz) -> u64 {
    assert!(max_khz > 0, "a checked machine has no domain whose highest frequency is 0");
    (u64::from(capacity) << 10) * u64::from(khz) / u64::from(max_khz)
}

/// The factor of work that follows the capacities, and the whole in stall shares.
pub const PERMILLE: u64 = 1000;

/// A kind of work: how its speed differs from what the capacities say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkKind {
    /// The name that workloads use: `rt-app`.
    pub name: String,
    /// Share of its time at the highest frequency that does not change with frequency, thousandths.
    pub stall_permille: u64,
    /// For each of [`crate::Machine::core_types`]: speed as thousandths of what the capacity says.
    pub factor_permille: Vec<u64>,
}

/// The rate of a CPU for work of a kind; without stall and with factor 1000 this is [`rate`].
///
/// ```
/// use schedtwin_machine::{rate, rate_of_kind, RATE_FULL};
/// assert_eq!(rate_of_kind(124, 1000, 0, 300_000, 1_803_000), rate(124, 300_000, 1_803_000));
/// // Half of the time is stalls: at half the frequency it takes 1.5 times as long.
/// assert_eq!(rate_of_kind(1024, 1000, 500, 1_000_000, 2_000_000), RATE_FULL * 2 / 3);
/// ```
pub fn rate_of_kind(capacity: Capacity, factor: u64, stall: u64, khz: Khz, max_khz: Khz) -> u64 {
    assert!(max_khz > 0 && stall <= PERMILLE, "a checked machine");
    let (khz, max_khz) = (u64::from(khz), u64::from(max_khz));
    // At most 2^20 * 10^5 * 10^7 < 2^60.
    (u64::from(capacity) << 10) * factor * khz / (stall * khz + (PERMILLE - stall) * max_khz)
}

/// The largest factor: a hundred times what the capacity says.
pub(crate) const MAX_FACTOR: u64 = 100 * PERMILLE;

keys! {
    /// a kind of work with speeds of its own
    struct WorkKeys in "work.*" {
        /// share of its time at full speed in which it waits for memory
        stall_permille: Located<u64> = Always, Whole(0, 1000);
    }
}

/// The key of a table of numbers by the names of cores, which is read as a table.
pub(crate) const FACTORS: &str = "factor_permille";

/// Reads `[work.NAME]`: `stall_permille` and `factor_permille = { CORE = ... }`, 1000 where left out.
pub(crate) fn read_kind(
    name: &Located<String>,
    mut table: TableReader<'_>,
    core_names: &[String],
    faults: &mut Diagnostics,
) -> Option<WorkKind> {
    let had = faults.0.len();
    let WorkKeys { stall_permille: stall } = WorkKeys::read(&mut table, faults);
    if let Some(stall) = stall.as_ref().filter(|stall| stall.value > PERMILLE) {
        faults.push_at(&stall.at, "`stall_permille` is a share: at most 1000", None);
    }
    let mut factors = table.required_table(FACTORS, faults);
    let mut factor_of = |core: &String| {
        let factor: Located<u64> = factors.as_mut()?.optional(core, faults)?;
        if factor.value == 0 || factor.value > MAX_FACTOR {
            let message = format!("a factor of {} is not within 1 to {MAX_FACTOR}", factor.value);
            faults.push_at(&factor.at, message, Some("1000 is what the capacity says".into()));
        }
        Some(factor.value)
    };
    let factor_permille =
        core_names.iter().map(|core| factor_of(core).unwrap_or(PERMILLE)).collect();
    if let Some(factors) = factors {
        factors.finish(faults);
    }
    table.finish(faults);
    let kind = WorkKind { name: name.value.clone(), stall_permille: stall?.value, factor_permille };
    (faults.0.len() == had).then_some(kind)
}

/// The work that is done in `ns`, rounded down.
pub fn work_done(rate: u64, ns: Ns) -> Work {
    ((u128::from(rate) * u128::from(ns)) >> RATE_SHIFT).try_into().unwrap_or(Work::MAX)
}

/// The time after which `work` is done, rounded up; [`NEVER`] at rate 0.
pub fn time_for(work: Work, rate: u64) -> Ns {
    if rate == 0 {
        return if work == 0 { 0 } else { NEVER };
    }
    (u128::from(work) << RATE_SHIFT).div_ceil(u128::from(rate)).try_into().unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (capacity, khz, max, expected) in [
            (1024, 1, 1, RATE_FULL),
            (512, 1, 1, RATE_FULL / 2),
            (1024, 500, 1000, RATE_FULL / 2),
            (124, 300_000, 1_803_000, 21_127), // 124 · 1024 · 300 / 1803 = 21 127.45
            (1, 1, 10_000_000, 0),
        ] {
            assert_eq!(rate(capacity, khz, max), expected, "{capacity} {khz} {max}");
        }
        for (capacity, factor, stall, khz, max, expected) in [
            (1024, 1000, 0, 1, 1, RATE_FULL),
            (512, 2000, 0, 1, 1, RATE_FULL),
            // Nothing but stalls: the frequency does not matter.
            (1024, 1000, 1000, 300, 3000, RATE_FULL),
            // 1 / (0.25 + 0.75 * 10) = 4 / 31.
            (1024, 1000, 250, 300, 3000, RATE_FULL * 4 / 31),
            (1024, 100_000, 0, 10_000_000, 10_000_000, RATE_FULL * 100),
            (124, 1495, 0, 1_803_000, 1_803_000, 189_829),
        ] {
            let rate = rate_of_kind(capacity, factor, stall, khz, max);
            assert_eq!(rate, expected, "{capacity} {factor} {stall} {khz} {max}");
        }
        assert_eq!(time_for(5, 0), NEVER);
        assert_eq!(time_for(0, 0), 0);
        assert_eq!(time_for(u64::MAX, 1), NEVER);
        assert_eq!(work_done(RATE_FULL, u64::MAX), u64::MAX);
    }

    proptest::proptest! {
        #[test]
        fn a_neutral_kind_is_no_kind(cap in 1u32..=1024, khz in 1u32..=10_000_000, more in 0u32..9_000_000) {
            let max = khz + more.min(10_000_000 - khz);
            assert_eq!(rate_of_kind(cap, 1000, 0, khz, max), rate(cap, khz, max));
        }

        #[test]
        fn stalls_never_make_slow_clocks_slower(stall in 0u64..=1000, khz in 1u32..=3_000_000) {
            let rate = |stall| rate_of_kind(700, 1000, stall, khz, 3_000_000);
            assert!(rate(stall) >= rate(0) && rate(stall) <= rate(1000));
        }

        #[test]
        fn time_is_the_least_that_suffices(work in 1u64..1 << 50, rate in 1u64..=RATE_FULL) {
            let ns = time_for(work, rate);
            if ns != NEVER {
                assert!(work_done(rate, ns) >= work);
                assert!(work_done(rate, ns - 1) < work);
            }
        }
    }
}
