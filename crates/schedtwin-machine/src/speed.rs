//! How fast a CPU works: capacity × frequency, as an exact fraction.
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
//! Differences: work scales with frequency alone; memory-bound work, which does not, waits for task
//! kinds with a stall share (anyone who compares a memory-bound benchmark across frequencies would
//! notice).

use schedtwin_types::{Capacity, Khz, NEVER, Ns, Work};

/// Fractional bits of a rate.
pub const RATE_SHIFT: u32 = 20;

/// The rate of capacity 1024 at full speed.
pub const RATE_FULL: u64 = 1 << RATE_SHIFT;

/// The rate of a CPU of `capacity` at `khz`, where `max_khz` is its highest frequency.
pub fn rate(capacity: Capacity, khz: Khz, max_khz: Khz) -> u64 {
    assert!(max_khz > 0, "a checked machine has no domain whose highest frequency is 0");
    (u64::from(capacity) << 10) * u64::from(khz) / u64::from(max_khz)
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
        assert_eq!(time_for(5, 0), NEVER);
        assert_eq!(time_for(0, 0), 0);
        assert_eq!(time_for(u64::MAX, 1), NEVER);
        assert_eq!(work_done(RATE_FULL, u64::MAX), u64::MAX);
    }

    proptest::proptest! {
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
