// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks that force others up.
//!
//! On some SoCs a fast cluster drags the clock of a slow one along, so that shared caches keep up:
//! on Pixel 6, while the big cores run at 2.8 GHz the little ones run at 1.4 GHz at least. Floors
//! apply to the truth (settled frequencies) and not to requests. If firmware does it the kernel knows
//! nothing of it; if the kernel's driver does, `policy->cur` follows (`coupling_by_driver`).
//!
//! 1. A [`Coupling`] maps the frequency of domain `from` to the least one of domain `to`.
//! 2. Couplings have no cycles, and a machine keeps them so ordered that those which raise a domain
//!    come before those that it causes; one pass in that order is the fixed point.
//!
//! ```
//! use schedtwin_machine::Machine;
//! use schedtwin_types::ClockDomainId;
//! let machine = Machine::load("pixel6").unwrap();
//! let little = ClockDomainId(0);
//! assert_eq!(machine.coupled_floor(&[300_000, 400_000, 2_802_000], little), 1_401_000);
//! assert_eq!(machine.with_floors(&[300_000, 2_253_000, 500_000]), [1_328_000, 2_253_000, 500_000]);
//! ```

use schedtwin_types::{ClockDomainId, Khz};

use crate::Machine;

/// The floor that one domain's frequency puts under another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coupling {
    /// The domain whose frequency counts.
    pub from: ClockDomainId,
    /// The domain that is held up.
    pub to: ClockDomainId,
    /// Steps, frequencies of `from` rising.
    pub steps: Vec<FloorStep>,
}

/// From this frequency of one domain on, the other runs at least so fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorStep {
    /// While `from` runs at this or faster,
    pub at_khz: Khz,
    /// `to` runs at this or faster.
    pub min_khz: Khz,
}

impl Coupling {
    /// The floor while `from` runs at `khz`; 0 below the first step.
    pub fn floor(&self, khz: Khz) -> Khz {
        let above = self.steps.partition_point(|step| step.at_khz <= khz);
        above.checked_sub(1).map_or(0, |at| self.steps[at].min_khz)
    }
}

impl Machine {
    /// The least frequency of domain `to` while the domains run at `domain_khz` (one each); 0 where
    /// nothing forces it.
    pub fn coupled_floor(&self, domain_khz: &[Khz], to: ClockDomainId) -> Khz {
        let floors = self.couplings.iter().filter(|coupling| coupling.to == to);
        floors.map(|coupling| coupling.floor(domain_khz[coupling.from.index()])).max().unwrap_or(0)
    }

    /// Returns the frequencies that the hardware runs at where `requested` is asked for.
    pub fn with_floors(&self, requested: &[Khz]) -> Vec<Khz> {
        let mut settled = requested.to_vec();
        self.apply_floors(&mut settled);
        settled
    }

    /// As [`Machine::with_floors`], in place.
    pub fn apply_floors(&self, domain_khz: &mut [Khz]) {
        for coupling in &self.couplings {
            let floor = coupling.floor(domain_khz[coupling.from.index()]);
            domain_khz[coupling.to.index()] = domain_khz[coupling.to.index()].max(floor);
        }
    }
}

/// The order that the header speaks of; the error names one domain of a cycle.
pub(crate) fn ordered(
    mut couplings: Vec<Coupling>,
    nr_domains: usize,
) -> Result<Vec<Coupling>, ClockDomainId> {
    let mut out = Vec::with_capacity(couplings.len());
    let mut settled = vec![false; nr_domains];
    // Each pass settles at least one domain, or there is a cycle.
    while !couplings.is_empty() {
        for (domain, settled) in settled.iter_mut().enumerate() {
            *settled = *settled || couplings.iter().all(|c| c.to.index() != domain);
        }
        let (ready, rest): (Vec<_>, Vec<_>) =
            couplings.into_iter().partition(|c| settled[c.from.index()]);
        if ready.is_empty() {
            // Walk against the arrows: since every domain left has one, the walk meets a cycle.
            let mut at = rest[0].from;
            for _ in 0..nr_domains {
                at = rest.iter().find(|c| c.to == at).map_or(at, |c| c.from);
            }
            return Err(at);
        }
        out.extend(ready);
        couplings = rest;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coupling(from: u16, to: u16, steps: &[(Khz, Khz)]) -> Coupling {
        let steps = steps.iter().map(|&(at_khz, min_khz)| FloorStep { at_khz, min_khz }).collect();
        Coupling { from: ClockDomainId(from), to: ClockDomainId(to), steps }
    }

    #[test]
    fn steps_hold_from_their_frequency_on() {
        let coupling = coupling(1, 0, &[(400, 300), (800, 500)]);
        for (khz, floor) in [(0, 0), (399, 0), (400, 300), (799, 300), (800, 500), (9999, 500)] {
            assert_eq!(coupling.floor(khz), floor, "{khz}");
        }
    }

    #[test]
    fn a_chain_is_settled_in_one_pass_and_a_cycle_is_found() {
        // 2 raises 1, and 1 raises 0: written in the wrong order.
        let chain = vec![coupling(1, 0, &[(500, 300)]), coupling(2, 1, &[(900, 500)])];
        let chain = ordered(chain, 3).unwrap();
        assert_eq!(chain[0].from, ClockDomainId(2));
        let cycle = vec![coupling(0, 1, &[]), coupling(1, 2, &[]), coupling(2, 1, &[])];
        assert!([1, 2].contains(&ordered(cycle, 3).unwrap_err().0));
    }

    #[test]
    fn the_pixel_6_follows_its_table() {
        let machine = Machine::load("pixel6").unwrap();
        for (mid, big, little) in [
            (400_000, 500_000, 300_000),
            (553_000, 500_000, 574_000),
            (910_000, 500_000, 574_000),
            (1_024_000, 500_000, 738_000),
            (1_197_000, 500_000, 930_000),
            (1_328_000, 500_000, 930_000),
            (1_491_000, 500_000, 1_098_000),
            (2_130_000, 500_000, 1_098_000),
            (2_253_000, 500_000, 1_328_000),
            (400_000, 851_000, 574_000),
            (400_000, 984_000, 574_000),
            (400_000, 1_106_000, 738_000),
            (400_000, 1_277_000, 738_000),
            (400_000, 1_426_000, 930_000),
            (400_000, 1_582_000, 1_098_000),
            (400_000, 1_826_000, 1_098_000),
            (400_000, 2_048_000, 1_197_000),
            (400_000, 2_252_000, 1_197_000),
            (400_000, 2_401_000, 1_328_000),
            (400_000, 2_507_000, 1_328_000),
            (400_000, 2_630_000, 1_401_000),
            (400_000, 2_802_000, 1_401_000),
            (2_253_000, 2_802_000, 1_401_000),
        ] {
            assert_eq!(machine.with_floors(&[300_000, mid, big])[0], little, "{mid} {big}");
            assert_eq!(
                machine.coupled_floor(&[0, mid, big], ClockDomainId(0)),
                little,
                "{mid} {big}"
            );
        }
        assert_eq!(machine.with_floors(&[1_803_000, 2_253_000, 2_802_000])[0], 1_803_000);
    }
}
