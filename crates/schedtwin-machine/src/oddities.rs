// SPDX-License-Identifier: GPL-2.0-or-later
//! Statements that a file may make but cannot mean: warnings, not faults.
//!
//! Real tables are odd, too: a measured power falls a little at one frequency of Pixel 6, and its energy model has a lowest
//! frequency that never pays. So each of these is beyond what the built-in machines, most of which were measured, have.
//!
//! | what | because |
//! |---|---|
//! | WFI draws more than being busy at the same frequency | a column was mixed up |
//! | measured power falls by more than a tenth at a higher frequency | a row was mixed up |
//! | the energy model's power does not rise, or the highest frequency does its work for less than the one below | the same |
//! | two frequencies with one capacity | a step too small for the kernel to tell them apart |
//! | the highest frequency is below 20 MHz, the highest power below a milliwatt | MHz for kHz, mW for µW |
//! | all powers are 0 | energies would be 0; who knows no power says so with `power_unknown = true` |
//! | a deep state that draws busy power, or more than a shallower one | `power` was mixed up |
//! | a deep state that takes less than a microsecond | µs for ns |
//! | several nodes or packages without `[distance]`; cores of several CPUs without `kernel_smt` | a forgotten table, a forgotten key |

use schedtwin_input::{Diagnostics, Location};
use schedtwin_types::{Capacity, Khz};

use crate::topology::Topology;
use crate::{IdlePower, IdleState, OperatingPoint};

/// Below it the highest frequency of a CPU that runs Linux is in MHz.
const LEAST_MAX_KHZ: Khz = 20_000;

/// Below it the highest power of a CPU that runs Linux is in mW.
const LEAST_MAX_UW: u64 = 1_000;

/// Below it the way into and out of a deep state is in µs.
const LEAST_DEEP_NS: u64 = 1_000;

/// An operating point with the places of its values.
pub(crate) struct Placed {
    pub(crate) opp: OperatingPoint,
    pub(crate) khz_at: Location,
    pub(crate) em_at: Location,
    pub(crate) active_at: Location,
    pub(crate) wfi_at: Location,
}

/// Finds oddities of a domain's operating points, whose frequencies rise; `at`: the list.
pub(crate) fn of_opps(
    opps: &[Placed],
    at: &Location,
    power_unknown: bool,
    warnings: &mut Diagnostics,
) {
    let Some(top) = opps.last() else { return };
    if top.opp.khz < LEAST_MAX_KHZ {
        let message = format!("the highest frequency is {} kHz", top.opp.khz);
        let help = "`khz` is in kHz: 2.4 GHz are 2_400_000".to_string();
        warnings.push_at(&top.khz_at, message, Some(help));
    }
    let drawn = |p: &Placed| p.opp.em_power_uw > 0 || p.opp.active_uw > 0 || p.opp.idle_wfi_uw > 0;
    if !opps.iter().any(drawn) {
        if !power_unknown {
            let help = "energies will be 0; `power_unknown = true` at the top of the file says that this is meant";
            warnings.push_at(at, "all powers are 0", Some(help.into()));
        }
        return;
    }
    for (key, uw, at) in [
        ("em_uw", top.opp.em_power_uw, &top.em_at),
        ("active_uw", top.opp.active_uw, &top.active_at),
    ] {
        if (1..LEAST_MAX_UW).contains(&uw) {
            let message = format!("`{key}` of a CPU at its highest frequency is {uw} µW");
            warnings.push_at(at, message, Some("powers are in µW: 300 mW are 300_000".into()));
        }
    }
    for placed in opps.iter().filter(|p| p.opp.idle_wfi_uw > p.opp.active_uw) {
        let OperatingPoint { khz, idle_wfi_uw, active_uw, .. } = placed.opp;
        let message = format!(
            "at {khz} kHz a CPU in WFI draws more than a busy one: {idle_wfi_uw} and {active_uw} µW"
        );
        warnings.push_at(&placed.wfi_at, message, None);
    }
    for pair in opps.windows(2) {
        let [slow, fast] = pair else { unreachable!("windows of two") };
        if fast.opp.active_uw < slow.opp.active_uw - slow.opp.active_uw / 10 {
            let message = format!(
                "measured power falls by more than a tenth from {} to {} kHz",
                slow.opp.khz, fast.opp.khz
            );
            warnings.push_at(&fast.active_at, message, None);
        }
        if fast.opp.em_power_uw <= slow.opp.em_power_uw {
            let message = format!("the energy model's power does not rise at {} kHz", fast.opp.khz);
            let help = "the kernel takes it as it is; the lower frequency then never pays";
            warnings.push_at(&fast.em_at, message, Some(help.into()));
        }
    }
    let [.., below, top] = opps else { return };
    let rises = top.opp.em_power_uw > below.opp.em_power_uw;
    if rises
        && top.opp.em_power_uw * u64::from(below.opp.khz)
            < below.opp.em_power_uw * u64::from(top.opp.khz)
    {
        let message = format!(
            "by the energy model work costs less at the highest frequency than at {} kHz",
            below.opp.khz
        );
        let help = "the kernel then never chooses the lower one";
        warnings.push_at(&top.em_at, message, Some(help.into()));
    }
}

/// Frequencies that the kernel cannot tell apart, on CPUs of this capacity.
pub(crate) fn of_capacities(
    opps: &[OperatingPoint],
    khz_at: &[Location],
    capacity: Capacity,
    warnings: &mut Diagnostics,
) {
    let Some(max) = opps.last().map(|opp| u64::from(opp.khz)) else { return };
    let at = |opp: &OperatingPoint| u64::from(capacity) * u64::from(opp.khz) / max;
    for (pair, place) in opps.windows(2).zip(&khz_at[1..]) {
        let [slow, fast] = pair else { unreachable!("windows of two") };
        if at(slow) == at(fast) {
            let message =
                format!("{} kHz has the capacity of {} kHz: {}", fast.khz, slow.khz, at(fast));
            let help = "to the kernel the faster one only costs more".to_string();
            warnings.push_at(place, message, Some(help));
        }
    }
}

/// Finds oddities of the chosen topology; `at`: its name.
pub(crate) fn of_topology(
    topology: &Topology,
    has_distance: bool,
    says_smt: bool,
    at: &Location,
    warnings: &mut Diagnostics,
) {
    if topology.first_smt_core().is_some() && !topology.kernel().smt && !says_smt {
        let help = "write `kernel_smt = true`, as in Linux with CONFIG_SCHED_SMT; `false` says that this is meant";
        let message =
            "CPUs share cores, and the kernel is not told of it: it takes each for a core";
        warnings.push_at(at, message, Some(help.into()));
    }
    if topology.has_distant_cpus() && !has_distance {
        let help = "`schedtwin show machine epyc-milan-2x64` has one to start from";
        let message = "without a table `[distance]` lines of another node or socket cost nothing";
        warnings.push_at(at, message, Some(help.into()));
    }
}

/// Finds oddities of an idle state, given the one before it; `at`: the state.
pub(crate) fn of_state(
    previous: Option<&IdleState>,
    state: &IdleState,
    at: &Location,
    warnings: &mut Diagnostics,
) {
    let name = &state.name;
    if state.target_residency_ns < state.kernel_exit_latency_ns {
        let message = format!("`residency_us` of `{name}` is shorter than its exit latency");
        let help = "it is usually above entry and exit together".to_string();
        warnings.push_at(at, message, Some(help));
    }
    if state.deep {
        if matches!(state.power, IdlePower::ActivePermille(1..)) {
            let message = format!("`{name}` is deep and draws a share of busy power");
            let help = "a core whose power is off has `power = \"off\"`".to_string();
            warnings.push_at(at, message, Some(help));
        }
        if state.entry_latency_ns + state.exit_latency_ns < LEAST_DEEP_NS {
            let message = format!("`{name}` is deep, and entry and exit take less than 1 us");
            warnings.push_at(at, message, Some("they are in ns: 160 us are 160_000".into()));
        }
    }
    let more = |a: IdlePower, b: IdlePower| match (a, b) {
        (IdlePower::ActivePermille(a), IdlePower::ActivePermille(b))
        | (IdlePower::WfiPermille(a), IdlePower::WfiPermille(b)) => a > b,
        (IdlePower::ActivePermille(share), IdlePower::WfiPermille(_)) => share > 0,
        (IdlePower::WfiPermille(_), IdlePower::ActivePermille(_)) => false,
    };
    if let Some(previous) = previous.filter(|previous| more(state.power, previous.power)) {
        let message = format!("`{name}` draws more than the shallower `{}`", previous.name);
        warnings.push_at(at, message, None);
    }
}
