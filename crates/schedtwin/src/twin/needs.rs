//! What the CPUs need of their clocks, and what the governor wants for them: told to the meter when an entry is over.

use super::Twin;
use crate::board::Board;
use schedtwin_types::ClockDomainId;

impl<B: Board> Twin<B> {
    /// The demand of some CPUs may have changed: the meter hears of those that need another operating point.
    #[inline(always)]
    pub(super) fn look_at_needs(&mut self) {
        if self.kernel.has_unseen_demands() {
            let Twin { kernel, meter, now, .. } = self;
            kernel.look_at_needs(|cpu, opp| meter.cpu_needs(*now, cpu, opp));
        }
    }

    /// The governor has decided for a frequency, whether or not the driver knows.
    pub(super) fn frequency_wanted(&mut self, domain: ClockDomainId) {
        let khz = self.kernel.hardware().wanted(domain.policy());
        let opp =
            self.machine.domains[domain].opp_of(khz).expect("governors choose from the table");
        self.meter.frequency_requested(self.now, domain, opp);
    }
}
