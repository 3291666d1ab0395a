// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells the meter, when an entry is over, what clocks the CPUs need and what the governor wants
//! for them. While
//! somebody records, also why: the facts and decisions of the entry.

use super::Twin;
use crate::board::Board;
use crate::twin::Observer;
use schedtwin_types::{ClockDomainId, NEVER, NeedCause};

impl<B: Board> Twin<B> {
    /// The demand of some CPUs may have changed: the meter hears of those that need another operating point.
    #[inline(always)]
    pub(super) fn look_at_needs(&mut self) {
        if self.kernel.has_unseen_demands() {
            let Twin { kernel, meter, now, .. } = self;
            kernel.look_at_needs(|cpu, opp| meter.cpu_needs(*now, cpu, opp));
        }
    }

    /// Frequency domains whose frequency the kernel has set are asked for it.
    pub(super) fn ask_for_frequencies(&mut self) {
        for policy in self.kernel.take_wishing_policies().iter() {
            self.frequency_wanted(policy.clock_domain());
        }
        for policy in self.kernel.take_dirty_policies().iter() {
            let domain = policy.clock_domain();
            self.frequency_wanted(domain);
            let hardware = self.kernel.hardware();
            self.domains[domain].requested = hardware.requested(policy);
            if hardware.driver_may_interrupt(policy) {
                let at = hardware.driver_interrupt_at(policy).unwrap_or(NEVER);
                self.board.set(self.slots.driver(domain), at.max(self.now));
            }
            let settle = self.machine.domains[domain].switching.settle_ns;
            if let Some(log) = self.meter.chain_log() {
                log.driver_asked(self.now, domain, self.domains[domain].requested);
            }
            self.retarget(domain, settle);
        }
    }

    /// The governor has decided for a frequency, whether or not the driver knows.
    pub(super) fn frequency_wanted(&mut self, domain: ClockDomainId) {
        let khz = self.kernel.hardware().wanted(domain.policy());
        let opp =
            self.machine.domains[domain].opp_of(khz).expect("governors choose from the table");
        self.meter.frequency_requested(self.now, domain, opp);
    }

    // ---- for records --------------------------------------------------------------------------

    /// Logs the entry's purpose as the cause, which no fact tells.
    pub(super) fn log_because(&mut self, cause: NeedCause) {
        if let Some(log) = self.meter.chain_log() {
            log.because(cause);
        }
    }

    /// The facts of the entry say why needs may have changed.
    pub(super) fn log_facts(&mut self) {
        let Twin { kernel, meter, .. } = self;
        if let Some(log) = meter.chain_log() {
            kernel.facts().iter().for_each(|fact| log.fact(fact));
        }
    }

    /// The decisions of the entry.
    #[cold]
    pub(super) fn tell_decisions(&mut self, observer: &mut impl Observer) {
        let Twin { kernel, meter, .. } = self;
        for decision in kernel.drain_decisions() {
            if let Some(log) = meter.chain_log() {
                log.decision(&decision);
            }
            observer.decision(decision);
        }
    }

    /// Needs and requests of the entry have been looked at.
    pub(super) fn log_entry_ends(&mut self) {
        if let Some(log) = self.meter.chain_log() {
            log.entry_ends(self.now);
        }
    }

    /// Tells the chains that have ended.
    pub(super) fn tell_chains(&mut self, observer: &mut impl Observer) {
        if let Some(log) = self.meter.chain_log() {
            log.take_ended(|chain| observer.chain(chain));
        }
    }

    /// The run is over: tells the chains that are under way.
    pub fn tell_open_chains(&mut self, observer: &mut impl Observer) {
        if let Some(log) = self.meter.chain_log() {
            log.run_over(self.end);
        }
        self.tell_chains(observer);
    }
}
