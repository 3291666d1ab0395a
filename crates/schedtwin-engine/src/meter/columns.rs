// SPDX-License-Identifier: GPL-2.0-or-later
//! The columns of a CPU's table of times: what each stands for, and the power of a CPU in it.
//!
//! Active (at the operating point that the CPU needs, below it, above it), polling, and per idle
//! state entering, in it, exiting. A CPU whose core has other
//! threads has all of them twice: once as the core's first thread, once as a second one.

use super::{Activity, MeterCpu, MeterOpp, MeterSetup};
use std::cmp::Ordering;

/// Columns of the table before those of the idle states: active, by how the clock suits what the CPU needs, and polling.
pub(super) const SLOT_ACTIVE: usize = 0;
pub(super) const SLOT_ACTIVE_UNDER: usize = 1;
pub(super) const SLOT_ACTIVE_OVER: usize = 2;
pub(super) const SLOT_POLLING: usize = 3;
pub(super) const SLOT_IDLE: usize = 4;
/// Columns per idle state: entering, in it, exiting.
pub(super) const SLOTS_PER_STATE: usize = 3;

/// The column of executing at operating point `opp` where `need` is needed.
#[inline]
pub(super) fn active_slot(need: usize, opp: usize) -> usize {
    match need.cmp(&opp) {
        Ordering::Equal => SLOT_ACTIVE,
        Ordering::Greater => SLOT_ACTIVE_UNDER,
        Ordering::Less => SLOT_ACTIVE_OVER,
    }
}

/// The column of an activity; of executing the first.
#[inline]
pub(super) fn slot_of(activity: Activity) -> usize {
    match activity {
        Activity::Active => SLOT_ACTIVE,
        Activity::Polling => SLOT_POLLING,
        Activity::Entering(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize,
        Activity::Idle(s) | Activity::Waiting(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize + 1,
        Activity::Exiting(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize + 2,
    }
}

/// Returns the number of a CPU's activities.
pub(super) fn slots_of(cpu: &MeterCpu) -> usize {
    SLOT_IDLE + SLOTS_PER_STATE * cpu.idle_states.len()
}

/// Columns of a CPU's table: what it can do, and in a core of several threads that once more as the second one.
pub(super) fn width_of(cpu: &MeterCpu) -> usize {
    slots_of(cpu) * if cpu.threads.is_empty() { 1 } else { 2 }
}

/// Power of a CPU that does what the column `slot` stands for, µW.
pub(super) fn slot_uw(cpu: &MeterCpu, slot: usize, opp: &MeterOpp) -> u64 {
    let states = &cpu.idle_states[..];
    let slots = slots_of(cpu);
    if slot >= slots {
        return match (slot - slots).checked_sub(SLOT_IDLE) {
            Some(column) if column % SLOTS_PER_STATE == 1 => 0,
            _ => slot_uw(cpu, slot - slots, opp) * cpu.second_permille / 1000,
        };
    }
    match slot.checked_sub(SLOT_IDLE) {
        Some(column) if column % SLOTS_PER_STATE == 1 => {
            states[column / SLOTS_PER_STATE].rest_uw(opp)
        }
        None if slot == SLOT_POLLING => states.first().map_or(0, |state| state.rest_uw(opp)),
        _ => opp.active_uw,
    }
}

/// Power of every cell of the table, µW.
pub(super) fn cell_powers(setup: &MeterSetup) -> Vec<u64> {
    let mut cells = Vec::new();
    for cpu in &setup.cpus {
        let slots = 0..width_of(cpu);
        for opp in setup.domains[cpu.domain].rows() {
            cells.extend(slots.clone().map(|slot| slot_uw(cpu, slot, opp)));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::MeterIdle;
    use schedtwin_types::ClockDomainId;

    /// A thread that is second draws 150 thousandths of what it would draw alone, and nothing when
    /// idle.
    #[test]
    fn each_column_has_its_power() {
        let idle = |wfi_permille, active_permille| MeterIdle {
            name: "state".into(),
            wfi_permille,
            active_permille,
            deep: false,
            entry_energy_pj: 0,
            exit_energy_pj: 0,
            abort_energy_pj: 0,
        };
        let cpu = MeterCpu {
            domain: ClockDomainId(0),
            cluster_name: "cpu".into(),
            idle_states: vec![idle(0, 500), idle(1000, 0), idle(300, 0)],
            threads: vec![0, 1],
            second_permille: 150,
            capacity: 1024,
        };
        let opp =
            MeterOpp { khz: 1, active_uw: 2000, wfi_uw: 100, static_uw: 7, idle_static_uw: 7 };
        // Three active columns, polling as in the first state; entering, in and exiting each state.
        let first = [2000, 2000, 2000, 1000, 2000, 1000, 2000, 2000, 100, 2000, 2000, 30, 2000];
        let second = [300, 300, 300, 150, 300, 0, 300, 300, 0, 300, 300, 0, 300];
        let powers = (0..width_of(&cpu)).map(|slot| slot_uw(&cpu, slot, &opp));
        assert!(
            powers.clone().eq(first.into_iter().chain(second)),
            "{:?}",
            powers.collect::<Vec<_>>()
        );
        let alone = MeterCpu { threads: Vec::new(), ..cpu };
        let powers = (0..width_of(&alone)).map(|slot| slot_uw(&alone, slot, &opp));
        assert!(powers.eq(first));
    }
}
