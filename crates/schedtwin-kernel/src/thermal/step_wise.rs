// SPDX-License-Identifier: GPL-2.0-or-later
//! step_wise: one cooling state at a time, by the trend of the temperature.
//!
//! **Decides** what each trip point asks of each domain it holds back.
//!
//! | | raising | dropping | stable |
//! |---|---|---|---|
//! | above the threshold | one state deeper | one shallower, but at least 1 | as it was |
//! | below it | as it was | nothing (from state 0: asks for nothing at all) | as it was |
//!
//! At its first look it asks for one state more above the threshold, and for nothing below. Steps start at the state that
//! the domain is in, not at what this trip point asked for last.
//!
//! Kernel: 6.12.107 drivers/thermal/gov_step_wise.c `get_target_state`, `thermal_zone_trip_update`.
//! Differences: cooling maps have no limits, so their lowest state is 0 and their highest the domain's last.

use super::{Trend, TripType};
use crate::Kernel;

/// `get_target_state()`: what is asked for from now on. `cur_state`: where the domain is, `upper`: its deepest state,
/// `target`: what was asked for before, `None` inside: nothing.
///
/// ```
/// use schedtwin_kernel::thermal::{Trend, step_wise::get_target_state};
/// assert_eq!(get_target_state(Some(Some(3)), 3, 10, Trend::Raising, true), Some(4));
/// assert_eq!(get_target_state(Some(Some(1)), 1, 10, Trend::Dropping, true), Some(1));
/// assert_eq!(get_target_state(Some(Some(3)), 3, 10, Trend::Dropping, false), Some(0));
/// assert_eq!(get_target_state(Some(Some(0)), 0, 10, Trend::Dropping, false), None);
/// ```
pub fn get_target_state(
    target: Option<Option<u32>>,
    cur_state: u32,
    upper: u32,
    trend: Trend,
    throttle: bool,
) -> Option<u32> {
    let deeper = (cur_state + 1).min(upper);
    let Some(target) = target else { return throttle.then_some(deeper) };
    match (throttle, trend) {
        (true, Trend::Raising) => Some(deeper),
        // cur_state - 1 wraps at 0 in C, and is then clamped to the deepest.
        (true, Trend::Dropping) => Some(cur_state.wrapping_sub(1).clamp(1.min(upper), upper)),
        (false, Trend::Dropping) => (cur_state > 0).then_some(0),
        _ => target,
    }
}

impl Kernel {
    /// `step_wise_manage()`.
    pub(super) fn step_wise_manage(&mut self, zone: usize) {
        let z = &mut self.thermal.zones[zone];
        let (trend, temperature) = (z.trend(), z.temperature.expect("it has been read"));
        for trip in &mut z.trips {
            if matches!(trip.kind, TripType::Critical | TripType::Hot) {
                continue;
            }
            let throttle = temperature >= trip.threshold;
            for instance in &mut trip.instances {
                let policy = self.cpufreq.policy(instance.policy);
                let upper = policy.table.len() as u32 - 1;
                let before = instance.initialized.then_some(instance.target);
                let cur_state = policy.cooling_state;
                instance.target = get_target_state(before, cur_state, upper, trend, throttle);
                instance.initialized = true;
            }
        }
        for trip in 0..self.thermal.zones[zone].trips.len() {
            for at in 0..self.thermal.zones[zone].trips[trip].instances.len() {
                let policy = self.thermal.zones[zone].trips[trip].instances[at].policy;
                self.thermal_cdev_update(policy);
            }
        }
    }
}
