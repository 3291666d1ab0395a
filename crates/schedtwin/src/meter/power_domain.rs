//! Power domains as the meter sees them: time and energy per state, exact.
//!
//! The numbers of states are shifted by one here: 0 is "on", `s + 1` the domain's state `s`.

use super::MeterPowerDomain;
use super::truth::energy;
use schedtwin_types::Ns;

/// Femtojoules in a picojoule.
const FJ_PER_PJ: u128 = 1_000;

/// What one power domain does now.
#[derive(Clone, Debug)]
pub(super) struct PowerTruth {
    now_in: usize,
    pub(super) since: Ns,
    /// Per state: time in it, in the window.
    pub(super) ns: Vec<Ns>,
    /// Per state: how often it was entered, in the window.
    entries: Vec<u64>,
    uw: Vec<u64>,
    /// What it has turned into heat since that was last taken, fJ.
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
