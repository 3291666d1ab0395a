// SPDX-License-Identifier: GPL-2.0-or-later
//! A processor that chooses its frequency itself, within the hints of its driver (Intel's HWP,
//! AMD's CPPC): an estimate.
//!
//! **Idea.** Every millisecond the processor looks at how busy each clock's CPU was and how fast it ran. The preference between energy and
//! performance (EPP) says how busy it may be in the long run: at 0 half of the time, at 255 nearly always. Who was busy throughout needs
//! more than is known, so its frequency doubles; who needs less comes down by a quarter of the way each time.
//!
//! ```text
//!  EPP        0            128           255
//!  busy     50 %          72 %          95 %       what it is content with
//! ```
//!
//! **Example.** EPP 128, busy for 36 % of the millisecond at 2 GHz: 0.72 GHz are needed, 1 GHz is wanted, 1.75 GHz come next.
//!
//! All of this is estimated [E]: the step, the shares and the rates of rise and fall. What is known is what drivers write, and that a
//! processor with EPP 0 runs at its highest frequency under load.

use super::Twin;
use super::clocks::Clock;
use crate::board::Board;
use schedtwin_kernel::hardware::{Counts, Hints};
use schedtwin_types::{ClockDomainId, Khz, Ns};

/// How often it looks. [E]
const STEP_NS: Ns = 1_000_000;
/// Busy so many thousandths of a step is busy throughout. [E]
const THROUGHOUT: u64 = 980;
/// How busy it may be in the long run, in thousandths, at EPP 0 and at EPP 255. [E]
const CONTENT: [u64; 2] = [500, 950];

/// A clock whose CPU chooses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// The frequency that it has chosen.
    pub khz: Khz,
    /// The counters at the last look.
    counts: Counts,
}

/// The next frequency: `counted` since the last look, `khz` chosen then; `base`: at which MPERF counts.
fn choose(hints: Hints, counted: Counts, khz: Khz, base: Khz) -> Khz {
    if counted.tsc == 0 {
        return khz.clamp(hints.min, hints.max);
    }
    let busy = counted.mperf * 1000 / counted.tsc;
    let needed = (u128::from(counted.aperf) * u128::from(base) / u128::from(counted.tsc)) as u64;
    let content = CONTENT[0] + (CONTENT[1] - CONTENT[0]) * u64::from(hints.epp) / 255;
    let wanted = if busy >= THROUGHOUT { 2 * u64::from(khz) } else { needed * 1000 / content };
    let khz = u64::from(khz);
    let next = if wanted >= khz { wanted } else { khz - (khz - wanted) / 4 };
    (next.min(u64::from(Khz::MAX)) as Khz).clamp(hints.min, hints.max)
}

impl<B: Board> Twin<B> {
    /// At boot: every clock whose processor chooses has its first frequency.
    pub(super) fn hwp_begins(&mut self) {
        if self.slots.hwp {
            let khz = |clock: &Clock| Choice { khz: clock.requested, counts: Counts::default() };
            self.choices = self.domains.iter().map(khz).collect();
            self.board.set(self.slots.hwp_slot(), STEP_NS);
        }
    }

    /// Returns the frequency of a processor that chooses itself; `None`: it follows requests.
    #[inline]
    pub(super) fn chosen_khz(&self, domain: ClockDomainId) -> Option<Khz> {
        self.choices.get(domain.index()).map(|choice| choice.khz)
    }

    /// A millisecond is over: all processors look.
    pub(super) fn hwp_step(&mut self) {
        self.board.set(self.slots.hwp_slot(), self.now + STEP_NS);
        for domain in self.domains.ids() {
            let hints = self.kernel.hardware().hints(domain.policy());
            let hints = hints.expect("only processors that choose have their slot");
            let hardware = &self.machine.domains[domain];
            let (cpu, base) = (hardware.cpus[0], hardware.max_khz());
            let settle = hardware.switching.settle_ns;
            let counts = self.kernel.counters_of(cpu, self.now);
            let choice = self.choices[domain.index()];
            let next = choose(hints, counts.since(choice.counts), choice.khz, base);
            self.choices[domain.index()] = Choice { khz: next, counts };
            let opp_at = |khz| self.machine.domains[domain].opp_at_least(khz);
            let opp = opp_at(next);
            if opp != opp_at(choice.khz) {
                self.meter.frequency_requested(self.now, domain, opp);
                self.retarget(domain, settle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(epp: u8, busy: u64, khz: Khz) -> Khz {
        let hints = Hints { min: 800_000, max: 4_000_000, epp };
        let mperf = 4_000 * busy;
        let counted = Counts { tsc: 4_000_000, mperf, aperf: mperf * u64::from(khz) / 4_000_000 };
        choose(hints, counted, khz, 4_000_000)
    }

    #[test]
    fn the_preference_decides_how_busy_it_may_be() {
        assert_eq!(next(0, 600, 2_000_000), 2_400_000);
        assert_eq!(next(128, 600, 2_000_000), 2_000_000 - (2_000_000 - 1_655_172) / 4);
        assert_eq!(next(255, 600, 2_000_000), 2_000_000 - (2_000_000 - 1_263_157) / 4);
    }

    #[test]
    fn it_doubles_when_busy_throughout_and_keeps_the_limits() {
        assert_eq!(next(255, 1000, 1_000_000), 2_000_000);
        assert_eq!(next(255, 1000, 3_000_000), 4_000_000);
        assert_eq!(next(0, 0, 900_000), 800_000);
    }
}
