// SPDX-License-Identifier: GPL-2.0-or-later
//! Energy of the cache that all CPUs share, on the rail of one domain.
//!
//! Counted are products of whole numbers, and divided once at the end: energies are exact.
//!
//! ```text
//! work, ns << 20  ×  accesses in a µs  ×  (hits ‰ × pJ a hit + misses ‰ × pJ a miss)      2^-20 · 10^-6 pJ
//! ```

use schedtwin_types::{ClockDomainId, Ns};

/// What an access costs, and how many there are.
#[derive(Clone, Debug)]
pub struct MeterL3 {
    /// The domain whose rail feeds it.
    pub domain: ClockDomainId,
    /// Accesses in a microsecond of work.
    pub accesses_per_us: u64,
    /// By row of that domain (operating point and column of the vote): thousandths of a picojoule that an access takes.
    pub access: Vec<u64>,
}

/// What it has taken.
#[derive(Clone, Debug, Default)]
pub(super) struct L3Truth {
    /// In 2^-20 · 10^-6 pJ.
    counted: u128,
}

impl L3Truth {
    /// Work was done until `now` (20 fractional bits), while the domain was in `row`.
    pub(super) fn work(&mut self, of: &MeterL3, row: usize, work: u64) {
        self.counted += u128::from(work) * u128::from(of.accesses_per_us * of.access[row]);
    }

    /// What it has taken, fJ.
    pub(super) fn fj(&self) -> u128 {
        (self.counted >> 20) / 1_000
    }
}

impl super::Meter {
    /// Whether work uses a shared cache whose energy counts.
    #[inline(always)]
    pub fn counts_l3(&self) -> bool {
        self.setup.l3.is_some()
    }

    /// Work was done until `now`, 20 fractional bits.
    pub fn l3_work(&mut self, now: Ns, work: u64) {
        let Some(of) = self.setup.l3.as_ref().filter(|_| now > self.window_start) else { return };
        let row = self.truth.row_of(of.domain);
        self.l3.work(of, row, work);
    }

    /// What the shared cache has taken from a domain's rail, fJ.
    pub(super) fn l3_fj(&self, domain: ClockDomainId) -> u128 {
        let feeds = self.setup.l3.as_ref().is_some_and(|of| of.domain == domain);
        if feeds { self.l3.fj() } else { 0 }
    }
}
