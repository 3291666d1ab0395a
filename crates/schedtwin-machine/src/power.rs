// SPDX-License-Identifier: GPL-2.0-or-later
//! The power of every situation, and energy without rounding.
//!
//! Power is in µW and time in ns, so their product is in femtojoules and exact:
//! 10⁻⁶ W × 10⁻⁹ s = 10⁻¹⁵ J. A u128 of them holds the energy of a kilowatt over 10¹⁶ years.
//!
//! The sum of a domain while its CPUs are in given situations at operating point `o`:
//!
//! ```text
//! Σ over CPUs  (busy: active_uw(o) · in state s: its share of idle_wfi_uw(o))
//!   + the domain's own: static_uw(o) while one CPU executes, idle_static_uw(o) while none does but one
//!     is not in a `deep` state, off_uw while all are
//!   + energy_entry_nj and energy_exit_nj of every entry and exit
//! ```
//!
//! Where `dependence` knows better, its values stand in the place of active, WFI and static power.
//!
//! References: the formula is that of Wattson (Perfetto, `wattson/cpu/estimates.sql`), and for a domain that
//! draws less while nobody executes that of EAS before it became energy-model based (busy and idle costs of
//! clusters).
//! Differences: Wattson's cache terms are absent; a meter compared with Wattson's on memory-heavy work
//! would read less.

use schedtwin_types::{ClockDomainId, CpuId, Ns};

use crate::{IdlePower, Machine, OperatingPoint};

/// Femtojoules in a nanojoule: to add entry and exit energies to a sum of µW·ns.
pub const FEMTOJOULES_PER_NANOJOULE: u128 = 1_000_000;

/// Energy of `power_uw` over `ns`, fJ.
pub fn energy_fj(power_uw: u64, ns: Ns) -> u128 {
    u128::from(power_uw) * u128::from(ns)
}

impl OperatingPoint {
    /// Returns the power of a CPU in an idle state with this power at this operating point, µW.
    pub fn idle_uw(&self, power: IdlePower) -> u64 {
        match power {
            // At most 10⁹ µW (checked when read) times 1000.
            IdlePower::ActivePermille(share) => self.active_uw * u64::from(share) / 1000,
            IdlePower::WfiPermille(share) => self.idle_wfi_uw * u64::from(share) / 1000,
        }
    }
}

impl Machine {
    /// Returns the power of `cpu` while busy at operating point `opp` of its domain, µW.
    pub fn active_uw(&self, cpu: CpuId, opp: usize) -> u64 {
        self.domain_of(cpu).opps[opp].active_uw
    }

    /// Returns the power of `cpu` in idle state `state` at its domain's operating point `opp`, µW.
    pub fn idle_uw(&self, cpu: CpuId, opp: usize, state: usize) -> u64 {
        self.domain_of(cpu).opps[opp].idle_uw(self.idle_states(cpu)[state].power)
    }

    /// Returns the power of domain `domain` besides its CPUs at operating point `opp`, µW, while
    /// one of its CPUs executes, or while all are in deep states.
    pub fn static_uw(&self, domain: ClockDomainId, opp: usize, all_cpus_deep: bool) -> u64 {
        let domain = &self.domains[domain];
        if all_cpus_deep { domain.off_uw } else { domain.opps[opp].static_uw }
    }

    /// Returns the power of the machine while each CPU is in its deepest idle state, at the lowest operating points, µW.
    pub fn sleeping_uw(&self) -> u64 {
        let deepest = |cpu: CpuId| self.idle_states(cpu).len() - 1;
        let cpus = || (0..self.nr_cpus()).map(|cpu| CpuId(cpu as u16));
        let of_cpus: u64 = cpus().map(|cpu| self.idle_uw(cpu, 0, deepest(cpu))).sum();
        let of_clocks: u64 = (self.domains.iter_ids())
            .map(|(id, domain)| {
                let deep = domain.cpus.iter().all(|&cpu| self.idle_states(cpu)[deepest(cpu)].deep);
                self.static_uw(id, 0, deep)
            })
            .sum();
        let of_parts: u64 = (self.power_domains.iter_ids())
            .map(|(_, part)| part.states.last().map_or(part.uw, |state| state.uw))
            .sum();
        of_cpus + of_clocks + of_parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_of_the_pixel_6_adds_up() {
        let machine = Machine::load("pixel6").unwrap();
        // One little core busy, one in WFI, two in c2, at the lowest frequency, for a second.
        let uw = machine.active_uw(CpuId(0), 0)
            + machine.idle_uw(CpuId(1), 0, 0)
            + 2 * machine.idle_uw(CpuId(2), 0, 1)
            + machine.static_uw(ClockDomainId(0), 0, false);
        assert_eq!(uw, 22_890 + 760 + 2_610);
        assert_eq!(energy_fj(uw, 1_000_000_000), 26_260_000_000_000); // 26.26 mJ
        assert_eq!(machine.static_uw(ClockDomainId(0), 0, true), 0);
    }

    #[test]
    fn a_sleeping_machine_takes_what_its_file_says() {
        let sleeping = |machine: &str| Machine::load(machine).unwrap().sleeping_uw();
        assert_eq!(sleeping("spr-2s224"), 0);
        // c2 of the little, middle and big cores, at the lowest operating points.
        let pixel6 = Machine::load("pixel6").unwrap();
        let cpus: u64 = (0..8).map(|cpu| pixel6.idle_uw(CpuId(cpu), 0, 1)).sum();
        assert!(sleeping("pixel6") >= cpus);
    }

    #[test]
    fn shares_of_the_wfi_curve() {
        let opp = OperatingPoint {
            khz: 1,
            microvolt: None,
            em_power_uw: 1,
            active_uw: 900,
            idle_wfi_uw: 301,
            static_uw: 0,
            idle_static_uw: 0,
        };
        assert_eq!(opp.idle_uw(IdlePower::WfiPermille(0)), 0);
        assert_eq!(opp.idle_uw(IdlePower::WfiPermille(500)), 150);
        assert_eq!(opp.idle_uw(IdlePower::WfiPermille(1000)), 301);
        assert_eq!(opp.idle_uw(IdlePower::ActivePermille(1000)), 900);
    }
}
