// SPDX-License-Identifier: GPL-2.0-or-later
//! Power rails of the recorded machine: meters on its board that count energy.

/// A rail with its first and last count.
///
/// ```
/// use schedtwin_trace::event::PowerRail;
///
/// let mut rail = PowerRail::default();
/// rail.name = "S2M_VDD_CPUCL2".into();
/// rail.count(1_000, 5_000_000);
/// rail.count(3_000, 6_200_000);
/// assert_eq!(rail.mean_mw(), Some(600.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerRail {
    /// Its name.
    pub name: String,
    /// The part of the machine that it feeds, as the recorder names it: `CPU(BIG)`.
    pub subsystem: String,
    /// Time, ms, and energy, µWs, of the first count.
    first: Option<(u64, u64)>,
    /// The same of the last one.
    last: Option<(u64, u64)>,
}

impl PowerRail {
    /// Takes a count: its time, ms, and the energy since some beginning, µWs. A meter that began anew is taken from there.
    pub fn count(&mut self, ms: u64, uws: u64) {
        let began_anew = self.last.is_some_and(|(at, before)| uws < before || ms < at);
        if self.first.is_none() || began_anew {
            self.first = Some((ms, uws));
        }
        self.last = Some((ms, uws));
    }

    /// Returns its mean power between the first and the last count, mW; `None`: there is one count at most.
    pub fn mean_mw(&self) -> Option<f64> {
        let ((from, first), (to, last)) = self.first.zip(self.last)?;
        let ms = to.checked_sub(from).filter(|ms| *ms > 0)?;
        // µWs in a ms are mW.
        Some((last - first) as f64 / ms as f64)
    }
}
