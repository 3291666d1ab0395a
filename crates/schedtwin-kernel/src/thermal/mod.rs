// SPDX-License-Identifier: GPL-2.0-or-later
//! Thermal zones: how far the clocks are held back.
//!
//! **Decides** the highest frequency that each domain may have, from temperatures.
//!
//! **Idea.** A zone watches a sensor. Its trip points say from which temperature on something has to be done, its
//! governor how much: each trip point asks for a cooling state of the domains that it holds back, 0 being "none",
//! and the deepest state that any trip point asks for counts. State s of a domain takes its s highest frequencies
//! away.
//!
//! 1. The sensor is read when a poll is due: every `polling_delay`, every `passive_delay` while a passive trip point is
//!    exceeded; or when a trip point is crossed, where nobody polls (`thermal_due`).
//! 2. A trip point counts as exceeded from its temperature on, until it falls below that less its hysteresis.
//! 3. The governor sets what each trip point asks for: [`step_wise`] or [`power_allocator`].
//! 4. A new cooling state is a new `policy->max`: the governor of the domain follows, and the scheduler takes the
//!    lost capacity off (cpufreq pressure).
//!
//! ```text
//!  temperature  79  81  83  84  82  79  77        trip 80, hysteresis 2, step_wise
//!  threshold    80  78  78  78  78  78  80
//!  state         0   1   2   3   2   1   0
//! ```
//!
//! Kernel: 6.12.107 drivers/thermal/thermal_core.c `__thermal_zone_device_update`, `handle_thermal_trip`,
//! `monitor_thermal_zone`; thermal_helpers.c `get_tz_trend`, `__thermal_cdev_update`; cpufreq_cooling.c;
//! drivers/cpufreq/cpufreq.c `cpufreq_update_pressure`; kernel/sched/cpufreq_schedutil.c `sugov_limits`.
//! Differences: all releases behave as 6.12 (before it the governor of a trip point ran once for each trip, and lost
//! capacity was a PELT average, not the present value). The work runs in no thread and costs no CPU time; a sensor is
//! read on the machine's grid, so a poll is late by up to a step; delays of more than a second are not rounded to whole
//! seconds. A critical trip point shuts nothing down, it is counted. No fans, no limits of cooling maps, no
//! weights.

pub mod power_allocator;
pub mod step_wise;
#[cfg(test)]
mod tests;

use crate::Kernel;
use schedtwin_types::{NEVER, Ns, PolicyId};

/// Thermal zones and their governors.
#[derive(Clone)]
pub struct Thermal {
    /// Thermal zones.
    zones: Vec<ThermalZone>,
}

impl Thermal {
    /// No zone yet: firmware registers them.
    pub(crate) fn new() -> Thermal {
        Thermal { zones: Vec::new() }
    }

    /// How many zones there are.
    pub(crate) fn nr_zones(&self) -> usize {
        self.zones.len()
    }
}

/// A temperature, thousandths of a degree Celsius.
pub type MilliCelsius = i32;

/// The purpose of a trip point (`enum thermal_trip_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripType {
    /// A fan would go on: there is none.
    Active,
    /// Clocks are held back.
    Passive,
    /// User space is told.
    Hot,
    /// The system shuts down.
    Critical,
}

/// Thermal governors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governor {
    /// One step at a time, by trend.
    StepWise,
    /// A power budget, by a PID controller.
    PowerAllocator,
}

/// The device tree's description of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtThermalZone {
    /// Its governor (`policy`).
    pub governor: Governor,
    /// `polling-delay`; 0: none.
    pub polling_delay: Ns,
    /// `polling-delay-passive`; 0: none.
    pub passive_delay: Ns,
    /// Trip points.
    pub trips: Vec<DtTrip>,
    /// `sustainable-power`, mW; 0: estimated.
    pub sustainable_power: u32,
    /// `k_po` as written later, instead of the estimate; 10 fractional bits, and so the others.
    pub k_po: Option<i32>,
    /// `k_pu`.
    pub k_pu: Option<i32>,
    /// `k_i`.
    pub k_i: Option<i32>,
    /// `k_d`.
    pub k_d: Option<i32>,
    /// `integral_cutoff`, m°C.
    pub integral_cutoff: MilliCelsius,
}

/// The device tree's description of a trip point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtTrip {
    /// Its temperature.
    pub temperature: MilliCelsius,
    /// Its hysteresis.
    pub hysteresis: MilliCelsius,
    /// The purpose of the trip point.
    pub kind: TripType,
    /// The frequency domains that it holds back.
    pub cooling: Vec<usize>,
}

/// Which way the temperature goes (`enum thermal_trend`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// As at the last look.
    Stable,
    /// Up.
    Raising,
    /// Down.
    Dropping,
}

/// The request of one trip point to one domain (`struct thermal_instance`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThermalInstance {
    /// The frequency domain.
    pub policy: PolicyId,
    /// The cooling state; `None`: nothing (`THERMAL_NO_TARGET`).
    pub target: Option<u32>,
    /// Whether the governor has looked at it before.
    pub initialized: bool,
}

/// A trip point (`struct thermal_trip_desc`).
#[derive(Clone, Debug)]
pub struct Trip {
    /// Its temperature.
    pub temperature: MilliCelsius,
    /// How far the temperature must fall below it again.
    pub hysteresis: MilliCelsius,
    /// The purpose of the trip point.
    pub kind: TripType,
    /// Where it changes next.
    pub threshold: MilliCelsius,
    /// Its requests.
    pub instances: Vec<ThermalInstance>,
}

/// A thermal zone (`struct thermal_zone_device`).
#[derive(Clone, Debug)]
pub struct ThermalZone {
    /// The temperature at the last look, `None` before the first.
    pub temperature: Option<MilliCelsius>,
    /// The one before it.
    pub last_temperature: Option<MilliCelsius>,
    /// Its trip points.
    pub trips: Vec<Trip>,
    /// Passive trip points that are exceeded.
    pub passive: u32,
    /// When the sensor is read next.
    pub poll_at: Ns,
    /// How often a critical trip point was crossed upwards.
    pub critical: u64,
    governor: Governor,
    polling_delay: Ns,
    passive_delay: Ns,
    /// The power allocator's parameters and memory.
    pub(crate) ipa: power_allocator::Params,
}

impl ThermalZone {
    /// As it is registered: the first look is at once.
    pub(crate) fn new(dt: &DtThermalZone) -> ThermalZone {
        let trip = |dt: &DtTrip| Trip {
            temperature: dt.temperature,
            hysteresis: dt.hysteresis,
            kind: dt.kind,
            threshold: dt.temperature,
            instances: dt
                .cooling
                .iter()
                .map(|policy| ThermalInstance {
                    policy: PolicyId(*policy as u16),
                    target: None,
                    initialized: false,
                })
                .collect(),
        };
        let trips: Vec<Trip> = dt.trips.iter().map(trip).collect();
        let ipa = power_allocator::Params::new(dt, &trips);
        ThermalZone {
            temperature: None,
            last_temperature: None,
            trips,
            passive: 0,
            poll_at: 0,
            critical: 0,
            governor: dt.governor,
            polling_delay: dt.polling_delay,
            passive_delay: dt.passive_delay,
            ipa,
        }
    }

    /// `get_tz_trend()` without a driver's own opinion.
    pub fn trend(&self) -> Trend {
        match self.temperature.cmp(&self.last_temperature) {
            std::cmp::Ordering::Less => Trend::Dropping,
            std::cmp::Ordering::Equal => Trend::Stable,
            std::cmp::Ordering::Greater => Trend::Raising,
        }
    }

    /// `handle_thermal_trip()` of all trip points.
    fn handle_trips(&mut self) {
        let temperature = self.temperature.expect("it has been read");
        for trip in &mut self.trips {
            let old_threshold = trip.threshold;
            trip.threshold = trip.temperature;
            if self.last_temperature.is_some_and(|last| last >= old_threshold) {
                if temperature < trip.temperature - trip.hysteresis {
                    if trip.kind == TripType::Passive {
                        self.passive -= 1;
                    }
                } else {
                    trip.threshold -= trip.hysteresis;
                }
            } else if temperature >= trip.temperature {
                trip.threshold -= trip.hysteresis;
                match trip.kind {
                    TripType::Passive => self.passive += 1,
                    TripType::Critical => self.critical += 1,
                    TripType::Active | TripType::Hot => {}
                }
            }
        }
    }

    /// `monitor_thermal_zone()`: when the next look is.
    fn monitor(&mut self, now: Ns) {
        let delay = match (self.passive > 0, self.passive_delay, self.polling_delay) {
            (true, delay @ 1.., _) => delay,
            (_, _, delay @ 1..) => delay,
            _ => NEVER,
        };
        self.poll_at = now.saturating_add(delay);
    }
}

impl Kernel {
    /// Registers thermal zones, at boot.
    pub fn register_thermal_zones(&mut self, zones: &[DtThermalZone]) {
        self.thermal.zones = zones.iter().map(ThermalZone::new).collect();
    }

    /// `thermal_zone_device_update()`: the sensor of zone `zone` says `temperature`.
    pub fn thermal_zone_device_update(&mut self, zone: usize, now: Ns, temperature: MilliCelsius) {
        self.cx.begin_on_no_cpu(now);
        let z = &mut self.thermal.zones[zone];
        z.last_temperature = z.temperature;
        z.temperature = Some(temperature);
        z.handle_trips();
        match z.governor {
            Governor::StepWise => self.step_wise_manage(zone),
            Governor::PowerAllocator => self.power_allocator_manage(zone),
        }
        self.thermal.zones[zone].monitor(now);
    }

    /// `__thermal_cdev_update()`: the deepest state that anybody asks of the domain.
    pub(crate) fn thermal_cdev_update(&mut self, policy: PolicyId) {
        let trips = self.thermal.zones.iter().flat_map(|zone| &zone.trips);
        let instances = trips.flat_map(|trip| &trip.instances);
        let targets = instances.filter(|i| i.policy == policy).filter_map(|i| i.target);
        self.cpufreq_set_cur_state(policy, targets.max().unwrap_or(0));
    }

    /// `cpufreq_set_cur_state()`, and what follows: `freq_qos_update_request()`, `cpufreq_set_policy()`.
    fn cpufreq_set_cur_state(&mut self, index: PolicyId, state: u32) {
        let policy = self.cpufreq.policy_mut(index);
        if policy.cooling_state == state {
            return;
        }
        policy.cooling_state = state;
        self.cpufreq_set_policy(index);
    }
}

impl Thermal {
    /// Whether a look at zone `zone` is due: a poll, or its sensor says `temperature`, and a trip point lies between that
    /// and what it said last.
    pub(crate) fn thermal_due(&self, zone: usize, now: Ns, temperature: MilliCelsius) -> bool {
        let zone = &self.zones[zone];
        let interrupt = |trip: &Trip| match zone.temperature {
            Some(last) => (last >= trip.threshold) != (temperature >= trip.threshold),
            None => true,
        };
        now >= zone.poll_at || zone.trips.iter().any(interrupt)
    }
}
