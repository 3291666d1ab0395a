// SPDX-License-Identifier: GPL-2.0-or-later
//! power_allocator, the "intelligent power allocation" (IPA): a power budget for all domains of a zone.
//!
//! **Decides** how much power each domain may draw, and from that its cooling state.
//!
//! **Idea.** A PID controller makes a budget of the distance to the control temperature; the budget is shared out by what
//! the domains ask for, which is what they draw now, by the kernel's energy model.
//!
//! ```text
//!   err = control temperature − temperature            m°C, all terms with 10 fractional bits
//!   budget = sustainable + (k · err + k_i · Σ err + k_d · Δerr / passive_delay)   mW, within 0 and what all can draw
//!   asked for = power(cur) · Σ over CPUs of 100 · util / capacity / 100
//!   granted = asked for / all that is asked for · budget; what a domain cannot use goes to the others
//!   limit = the highest frequency whose power is at most granted · 100 / load
//! ```
//!
//! k is `k_po` above the control temperature and `k_pu` below it. Errors add up only below `integral_cutoff`, and only as
//! long as their term alone does not exceed what all can draw.
//!
//! 1. The last passive trip point is the control temperature; below the first, if there are two, everything is allowed and the
//!    controller starts over.
//! 2. Without `sustainable_power` it is what all domains draw at their lowest frequency; without coefficients
//!    k_po = sustainable / distance of the two trip points, k_pu twice that, k_i a tenth of k_pu, k_d 0.
//!
//! **Example.** Sustainable 1000 mW, trips at 60 and 80 °C: k_po = 1000 · 1024 / 20000 = 51. At 84 °C err is −4000, so the
//! budget is 1000 − 51 · 4000 / 1024 = 1000 − 200 = 800 mW (−199.2 is rounded down).
//!
//! Kernel: 6.12.107 drivers/thermal/gov_power_allocator.c; cpufreq_cooling.c `cpufreq_get_requested_power`,
//! `cpufreq_state2power`, `cpufreq_power2state`.
//! Differences: all domains weigh the same; nobody writes its parameters later; power is that of the energy model as
//! the device tree has it.

use super::{DtThermalZone, Trip, TripType};
use crate::{Context, Kernel};
use schedtwin_types::{CpuId, Khz, PolicyId};

/// Fractional bits.
const FRAC_BITS: u32 = 10;

/// Parameters and memory (`struct power_allocator_params`, `struct thermal_zone_params`).
#[derive(Clone, Debug)]
pub(crate) struct Params {
    trip_switch_on: Option<usize>,
    trip_max: Option<usize>,
    /// mW; 0 until it has been estimated.
    sustainable_power: u32,
    pid: Pid,
    given: [Option<i32>; 4],
    passive_delay_ms: i64,
    update_cdevs: bool,
    /// Buffers, one a domain.
    actors: Vec<PowerActor>,
}

/// `pid_controller()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pid {
    /// Proportional, above the control temperature.
    pub k_po: i32,
    /// Proportional, below it.
    pub k_pu: i32,
    /// Integral.
    pub k_i: i32,
    /// Differential.
    pub k_d: i32,
    /// Errors count below this one, m°C.
    pub integral_cutoff: i32,
    /// Sum of the errors.
    pub err_integral: i64,
    /// The last one.
    pub prev_err: i32,
}

/// `struct power_actor`, mW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerActor {
    /// Asked for.
    pub req_power: u32,
    /// At most.
    pub max_power: u32,
    /// Granted.
    pub granted_power: u32,
    /// The power that it could draw beyond that.
    pub extra_actor_power: u32,
    /// Percent of a CPU's capacity that its CPUs used, in sum.
    pub last_load: u32,
}

fn mul_frac(x: i64, y: i64) -> i64 {
    x.wrapping_mul(y) >> FRAC_BITS
}

impl Pid {
    /// `estimate_pid_constants()`: as large as a distance of `threshold` m°C is to the power.
    pub fn estimate(&mut self, sustainable_power: u32, threshold: u32) {
        if threshold == 0 {
            return;
        }
        self.k_po = ((sustainable_power << FRAC_BITS) / threshold) as i32;
        self.k_pu = (((2 * sustainable_power) << FRAC_BITS) / threshold) as i32;
        self.k_i = (self.k_pu / 10).max(1);
    }

    /// `pid_controller()`: the budget, mW.
    pub fn budget(
        &mut self,
        err: i32,
        sustainable_power: u32,
        max_allocatable_power: u32,
        passive_delay_ms: i64,
    ) -> u32 {
        let max_power_frac = i64::from((max_allocatable_power << FRAC_BITS) as i32);
        let err = err << FRAC_BITS;
        let p = mul_frac(i64::from(if err < 0 { self.k_po } else { self.k_pu }), i64::from(err));
        let mut i = mul_frac(i64::from(self.k_i), self.err_integral);
        if err < self.integral_cutoff << FRAC_BITS {
            let i_next = i + mul_frac(i64::from(self.k_i), i64::from(err));
            if i_next.abs() < max_power_frac {
                i = i_next;
                self.err_integral += i64::from(err);
            }
        }
        let d = mul_frac(i64::from(self.k_d), i64::from(err.wrapping_sub(self.prev_err)));
        // Without a delay C divides by zero; nothing asks for that here.
        let d = (d << FRAC_BITS) / passive_delay_ms.max(1);
        self.prev_err = err;
        let range = i64::from(sustainable_power) + ((p + i + d) >> FRAC_BITS);
        range.clamp(0, i64::from(max_allocatable_power)) as u32
    }
}

/// `divvy_up_power()`: shares the budget out.
///
/// ```
/// use schedtwin_kernel::thermal::power_allocator::{PowerActor, divvy_up_power};
/// let actor = |req_power, max_power| PowerActor { req_power, max_power, ..PowerActor::default() };
/// let mut actors = [actor(300, 400), actor(100, 1000)];
/// divvy_up_power(&mut actors, 800);
/// assert_eq!(actors.map(|a| a.granted_power), [400, 400]); // 600 is 200 too much for the first
/// ```
pub fn divvy_up_power(actors: &mut [PowerActor], power_range: u32) {
    let round = |n: u64, d: u32| (n + u64::from(d / 2)) / u64::from(d);
    let total: u32 = actors.iter().map(|a| a.req_power).sum::<u32>().max(1);
    let (mut extra, mut capped_extra) = (0, 0);
    for a in actors.iter_mut() {
        a.granted_power = round(u64::from(a.req_power) * u64::from(power_range), total) as u32;
        if a.granted_power > a.max_power {
            extra += a.granted_power - a.max_power;
            a.granted_power = a.max_power;
        }
        a.extra_actor_power = a.max_power - a.granted_power;
        capped_extra += a.extra_actor_power;
    }
    if extra == 0 || capped_extra == 0 {
        return;
    }
    let extra = extra.min(capped_extra);
    for a in actors.iter_mut() {
        let share = u64::from(a.extra_actor_power) * u64::from(extra);
        a.granted_power += round(share, capped_extra) as u32;
    }
}

impl Params {
    /// `power_allocator_bind()`, `get_governor_trips()`.
    pub(super) fn new(dt: &DtThermalZone, trips: &[Trip]) -> Params {
        let of = |kind| {
            let all = trips.iter().enumerate().filter(move |(_, trip)| trip.kind == kind);
            all.map(|(index, _)| index)
        };
        let (first, last) = (of(TripType::Passive).next(), of(TripType::Passive).next_back());
        let two = first != last;
        let trip_max = last.or_else(|| of(TripType::Active).next_back());
        let actors = trip_max.map_or(0, |trip| trips[trip].instances.len());
        let mut params = Params {
            trip_switch_on: first.filter(|_| two),
            trip_max,
            sustainable_power: 0,
            pid: Pid { integral_cutoff: dt.integral_cutoff, ..Pid::default() },
            given: [dt.k_po, dt.k_pu, dt.k_i, dt.k_d],
            passive_delay_ms: (dt.passive_delay / 1_000_000) as i64,
            update_cdevs: false,
            actors: vec![PowerActor::default(); actors],
        };
        if dt.sustainable_power > 0 {
            params.set_sustainable_power(dt.sustainable_power, trips);
        }
        params
    }

    /// The estimates that follow from it, and what is given instead.
    fn set_sustainable_power(&mut self, mw: u32, trips: &[Trip]) {
        self.sustainable_power = mw;
        let Some(max) = self.trip_max else { return };
        let low = self.trip_switch_on.map_or(0, |trip| trips[trip].temperature);
        self.pid.estimate(mw, (trips[max].temperature - low) as u32);
        let [k_po, k_pu, k_i, k_d] = self.given;
        let pid = &mut self.pid;
        pid.k_po = k_po.unwrap_or(pid.k_po);
        pid.k_pu = k_pu.unwrap_or(pid.k_pu);
        pid.k_i = k_i.unwrap_or(pid.k_i);
        pid.k_d = k_d.unwrap_or(pid.k_d);
    }
}

impl Kernel {
    /// `power_allocator_manage()`.
    pub(super) fn power_allocator_manage(&mut self, zone: usize) {
        let z = &mut self.thermal.zones[zone];
        let temperature = z.temperature.expect("it has been read");
        let Some(trip_max) = z.ipa.trip_max else { return };
        if z.ipa.trip_switch_on.is_some_and(|trip| temperature < z.trips[trip].temperature) {
            (z.ipa.pid.err_integral, z.ipa.pid.prev_err) = (0, 0);
            let update = std::mem::replace(&mut z.ipa.update_cdevs, false);
            self.allow_maximum_power(zone, trip_max, update);
            return;
        }
        self.allocate_power(zone, trip_max, temperature);
        self.thermal.zones[zone].ipa.update_cdevs = true;
    }

    /// `allow_maximum_power()`.
    fn allow_maximum_power(&mut self, zone: usize, trip: usize, update: bool) {
        for at in 0..self.thermal.zones[zone].trips[trip].instances.len() {
            let instance = &mut self.thermal.zones[zone].trips[trip].instances[at];
            instance.target = Some(0);
            let policy = instance.policy;
            self.thermal.zones[zone].ipa.actors[at].last_load = self.cooling_load(policy);
            if update {
                self.thermal_cdev_update(policy);
            }
        }
    }

    /// `allocate_power()`.
    fn allocate_power(&mut self, zone: usize, trip: usize, temperature: i32) {
        let mut max_allocatable_power = 0;
        let mut sustainable = 0;
        for at in 0..self.thermal.zones[zone].trips[trip].instances.len() {
            let policy = self.thermal.zones[zone].trips[trip].instances[at].policy;
            let (cur, cpus) =
                (self.cpufreq.policy(policy).cur, self.cpufreq.policy(policy).cpus.weight());
            let last_load = self.cooling_load(policy);
            let power = |khz: Khz| self.cx.em_power_mw(policy, khz);
            let req_power = power(cur).wrapping_mul(last_load) / 100;
            let max_power = power(self.cpufreq.policy(policy).max()) * cpus;
            sustainable += power(self.cpufreq.policy(policy).table[0]) * cpus;
            max_allocatable_power += max_power;
            self.thermal.zones[zone].ipa.actors[at] =
                PowerActor { req_power, max_power, last_load, ..PowerActor::default() };
        }
        let z = &mut self.thermal.zones[zone];
        if z.ipa.sustainable_power == 0 {
            z.ipa.set_sustainable_power(sustainable, &z.trips);
        }
        let err = z.trips[trip].temperature - temperature;
        let ipa = &mut z.ipa;
        let (mw, delay) = (ipa.sustainable_power, ipa.passive_delay_ms);
        let power_range = ipa.pid.budget(err, mw, max_allocatable_power, delay);
        divvy_up_power(&mut ipa.actors, power_range);
        for at in 0..self.thermal.zones[zone].trips[trip].instances.len() {
            let actor = self.thermal.zones[zone].ipa.actors[at];
            let policy = self.thermal.zones[zone].trips[trip].instances[at].policy;
            let state = self.cx.cpufreq_power2state(policy, actor.granted_power, actor.last_load);
            self.thermal.zones[zone].trips[trip].instances[at].target = Some(state);
            self.thermal_cdev_update(policy);
        }
    }

    /// `get_load()` of all CPUs of a domain: percent of a CPU.
    fn cooling_load(&self, policy: PolicyId) -> u32 {
        let load = |cpu: CpuId| {
            (self.sched.sched_cpu_util(cpu, &self.cx) * 100
                / self.sched.arch_scale_cpu_capacity(cpu)) as u32
        };
        self.cpufreq.policy(policy).cpus.iter().map(load).sum()
    }
}

impl Context {
    /// `cpu_freq_to_power()`: of one CPU at the lowest frequency not below `khz`.
    fn em_power_mw(&self, policy: PolicyId, khz: Khz) -> u32 {
        let opps = &self.platform.device_tree.policies[policy.index()].opps;
        let at = opps.partition_point(|opp| opp.0 < khz).min(opps.len() - 1);
        (opps[at].1 / 1000) as u32
    }

    /// `cpufreq_power2state()`: the state in which the domain draws at most `power`.
    fn cpufreq_power2state(&self, policy: PolicyId, power: u32, last_load: u32) -> u32 {
        let normalised = power.wrapping_mul(100) / last_load.max(1);
        let opps = &self.platform.device_tree.policies[policy.index()].opps;
        let fits = opps.iter().rposition(|opp| u64::from(normalised) >= opp.1 / 1000);
        (opps.len() - 1 - fits.unwrap_or(0)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example at the top, and what the integral adds: k_i = 10, the error is remembered.
    #[test]
    fn a_budget_by_hand() {
        let mut pid = Pid::default();
        pid.estimate(1000, 20_000);
        assert_eq!((pid.k_po, pid.k_pu, pid.k_i), (51, 102, 10));
        let mut proportional = Pid { k_i: 0, ..pid.clone() };
        assert_eq!(proportional.budget(-4_000, 1_000, 5_000, 100), 800);
        assert_eq!(proportional.budget(4_000, 1_000, 5_000, 100), 1_398);
        assert_eq!(proportional.budget(-100_000, 1_000, 5_000, 100), 0);
        assert_eq!(proportional.budget(100_000, 1_000, 5_000, 100), 5_000);
        // −4000 · 10 / 1024 = −39.06 a look: above the temperature errors add up, below they do not.
        let budgets = [-4_000, -4_000, 4_000].map(|err| pid.budget(err, 1_000, 5_000, 100));
        assert_eq!(budgets, [761, 722, 1_320]);
        assert_eq!(pid.err_integral, -8_000 << 10);
    }

    #[test]
    fn power_is_shared_out_by_demand() {
        let actor =
            |req_power, max_power| PowerActor { req_power, max_power, ..Default::default() };
        for (actors, range, granted) in [
            ([actor(1, 100), actor(1, 100)], 99, [50, 50]),
            ([actor(0, 100), actor(0, 100)], 50, [0, 0]),
            ([actor(90, 100), actor(10, 300)], 200, [100, 100]),
            ([actor(1, 10), actor(1, 10)], 100, [10, 10]),
        ] {
            let mut actors = actors;
            divvy_up_power(&mut actors, range);
            assert_eq!(actors.map(|a| a.granted_power), granted);
        }
    }
}
