// SPDX-License-Identifier: GPL-2.0-or-later
//! Visits to idle states: how often a CPU used each, and what the ways in and out cost.
//!
//! A change of activity takes at most two ways, each into or out of one state. Counters and energy
//! both follow [`ways`], so what is counted is what is paid for.

use super::{Activity, MeterIdle};

/// How often an idle state of a CPU was used, in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visits {
    pub(super) entries: u64,
    pub(super) exits: u64,
    pub(super) aborts: u64,
}

impl Visits {
    /// Energy of the visits to a state, pJ.
    pub(super) fn pj(self, state: &MeterIdle) -> u128 {
        u128::from(self.entries) * u128::from(state.entry_energy_pj)
            + u128::from(self.exits) * u128::from(state.exit_energy_pj)
            + u128::from(self.aborts) * u128::from(state.abort_energy_pj)
    }
}

/// Returns the cost of one change of activity, pJ.
pub(super) fn visit_pj(states: &[MeterIdle], before: Activity, after: Activity) -> u64 {
    let mut pj = 0;
    ways(states.len(), before, after, |state, way| {
        let state = &states[state];
        pj += match way {
            Way::Entry => state.entry_energy_pj,
            Way::Exit => state.exit_energy_pj,
            Way::Abort => state.abort_energy_pj,
        };
    });
    pj
}

/// Counts what the change from `before` to `after` means for the idle states of a CPU.
#[inline]
pub(super) fn count_visit(visits: &mut [Visits], before: Activity, after: Activity) {
    ways(visits.len(), before, after, |state, way| {
        let visits = &mut visits[state];
        match way {
            Way::Entry => visits.entries += 1,
            Way::Exit => visits.exits += 1,
            Way::Abort => visits.aborts += 1,
        }
    });
}

/// A way into or out of an idle state.
#[derive(Clone, Copy)]
enum Way {
    Entry,
    Exit,
    Abort,
}

/// The ways that the change from `before` to `after` takes, each with its state; of a CPU without states none.
#[inline]
fn ways(states: usize, before: Activity, after: Activity, mut take: impl FnMut(usize, Way)) {
    if states == 0 {
        return;
    }
    match (before, after) {
        (Activity::Idle(from), Activity::Idle(to)) if to < from => take(from as usize, Way::Exit),
        (_, Activity::Idle(to)) => take(to as usize, Way::Entry),
        (Activity::Idle(from), _) => take(from as usize, Way::Exit),
        (Activity::Entering(into), _) => take(into as usize, Way::Abort),
        _ => {}
    }
    // Polling is the first state.
    if after == Activity::Polling {
        take(0, Way::Entry);
    }
    if before == Activity::Polling {
        take(0, Way::Exit);
    }
}
