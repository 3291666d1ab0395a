// SPDX-License-Identifier: GPL-2.0-or-later
//! Power domains as the meter sees them: time and energy per state, exact.
//!
//! The numbers of states are shifted by one here: 0 is "on", `s + 1` the domain's state `s`.

use super::MeterPowerDomain;
use super::truth::energy;
use schedtwin_types::Ns;

/// Femtojoules in a picojoule.
const FJ_PER_PJ: u128 = 1_000;

/// The present state of one power domain.
#[derive(Clone, Debug)]
pub(super) struct PowerTruth {
    now_in: usize,
    pub(super) since: Ns,
    /// Per state: time in it, in the window.
    pub(super) ns: Vec<Ns>,
    /// Per state: how often it was entered, in the window.
    entries: Vec<u64>,
    uw: Vec<u64>,
    /// The energy that it has turned into heat since that was last taken, fJ.
    pub(super) heat_fj: u128,
}

impl PowerTruth {
    /// On, at time 0.
    pub(super) fn new(setup: &MeterPowerDomain) -> PowerTruth {
        assert_eq!(setup.uw.len(), setup.states.len() + 1, "power on, and in each state");
        PowerTruth {
            now_in: 0,
            since: 0,
            ns: vec![0; setup.uw.len()],
            entries: vec![0; setup.uw.len()],
            uw: setup.uw.clone(),
            heat_fj: 0,
        }
    }

    /// Books what was and goes on in `state`.
    pub(super) fn enter(
        &mut self,
        setup: &MeterPowerDomain,
        window_start: Ns,
        at: Ns,
        state: Option<usize>,
    ) {
        self.close(window_start, at);
        self.now_in = state.map_or(0, |state| state + 1);
        if let Some(state) = state {
            self.entries[self.now_in] += u64::from(at >= window_start);
            self.heat_fj += u128::from(setup.entry_energy_pj[state]) * FJ_PER_PJ;
        }
    }

    /// Books its time up to `at`.
    pub(super) fn close(&mut self, window_start: Ns, at: Ns) {
        self.ns[self.now_in] += at.max(window_start) - self.since.max(window_start);
        self.heat_fj += energy(self.uw[self.now_in], at - self.since);
        self.since = at;
    }

    /// Power at this instant, µW.
    pub(super) fn uw(&self) -> u64 {
        self.uw[self.now_in]
    }

    /// Energy as far as booked, fJ.
    pub(super) fn fj(&self, setup: &MeterPowerDomain) -> u128 {
        let power: u128 = self.uw.iter().zip(&self.ns).map(|(uw, ns)| energy(*uw, *ns)).sum();
        let entries = setup.entry_energy_pj.iter().zip(&self.entries[1..]);
        let pj: u128 = entries.map(|(pj, n)| u128::from(*pj) * u128::from(*n)).sum();
        power + pj * FJ_PER_PJ
    }

    /// Its states fill the span; `open`: what is not booked yet.
    pub(super) fn verify(&self, index: usize, span: Ns, open: Ns) {
        let booked: Ns = self.ns.iter().sum();
        assert_eq!(booked + open, span, "power domain {index}: its states fill the span");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On for 100 ns at 5 µW, in its only state for 60 ns at 1 µW after an entry of 2 pJ; half of the former before the window.
    #[test]
    fn time_and_energy_are_of_the_window_and_heat_of_all() {
        let setup = MeterPowerDomain {
            name: "package".into(),
            outermost: true,
            within: Vec::new(),
            clocks: Vec::new(),
            uw: vec![5, 1],
            states: vec!["off".into()],
            entry_energy_pj: vec![2],
        };
        let mut truth = PowerTruth::new(&setup);
        assert_eq!(truth.uw(), 5);
        truth.enter(&setup, 50, 100, Some(0));
        assert_eq!((truth.uw(), truth.entries[1]), (1, 1));
        truth.enter(&setup, 50, 160, None);
        assert_eq!((truth.uw(), &truth.ns), (5, &vec![50, 60]));
        truth.close(50, 170);
        assert_eq!(truth.ns, [60, 60]);
        // µW × ns are fJ, a pJ is a thousand of them.
        assert_eq!(truth.fj(&setup), 60 * 5 + 60 + 2000);
        assert_eq!(truth.heat_fj, 100 * 5 + 2000 + 60 + 10 * 5);
        truth.verify(0, 120, 0);
        truth.verify(0, 125, 5);
        // An entry before the window is heat, and none of its energy.
        let mut truth = PowerTruth::new(&setup);
        truth.enter(&setup, 50, 49, Some(0));
        truth.close(50, 60);
        assert_eq!((truth.fj(&setup), truth.heat_fj), (10, 49 * 5 + 2000 + 11));
        let mut truth = PowerTruth::new(&setup);
        truth.enter(&setup, 50, 50, Some(0));
        assert_eq!(truth.fj(&setup), 2000);
    }

    #[test]
    #[should_panic(expected = "its states fill the span")]
    fn a_gap_is_noticed() {
        let setup = MeterPowerDomain {
            name: "package".into(),
            outermost: true,
            within: Vec::new(),
            clocks: Vec::new(),
            uw: vec![5],
            states: Vec::new(),
            entry_energy_pj: Vec::new(),
        };
        let mut truth = PowerTruth::new(&setup);
        truth.close(0, 10);
        truth.verify(0, 11, 0);
    }
}
