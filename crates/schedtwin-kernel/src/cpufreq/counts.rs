// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of the counters of an x86 processor ([`super::counters`]).

/// Cycles, as the registers have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `MSR_IA32_APERF`.
    pub aperf: u64,
    /// `MSR_IA32_MPERF`.
    pub mperf: u64,
    /// `rdtsc()`.
    pub tsc: u64,
}

impl Counts {
    /// Returns the counts since `earlier`.
    pub fn since(self, earlier: Counts) -> Counts {
        Counts {
            aperf: self.aperf.wrapping_sub(earlier.aperf),
            mperf: self.mperf.wrapping_sub(earlier.mperf),
            tsc: self.tsc.wrapping_sub(earlier.tsc),
        }
    }
}
