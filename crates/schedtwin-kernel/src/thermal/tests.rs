// SPDX-License-Identifier: GPL-2.0-or-later
//! Zones on a small machine: trip points, states, limits, what follows from them.

use super::*;
use crate::cpufreq::freq_table::Limits;
use crate::sched::root_domain::tests::kernel;
use schedtwin_types::{CpuId, PolicyId};

const OPPS: &[(u32, u64)] =
    &[(500_000, 100_000), (1_000_000, 300_000), (1_500_000, 600_000), (2_000_000, 900_000)];

fn zone(governor: Governor, trips: &[(i32, TripType, &[usize])]) -> DtThermalZone {
    let trip = |(temperature, kind, cooling): &(i32, TripType, &[usize])| DtTrip {
        temperature: *temperature,
        hysteresis: 2_000,
        kind: *kind,
        cooling: cooling.to_vec(),
    };
    DtThermalZone {
        governor,
        polling_delay: 0,
        passive_delay: 100_000_000,
        trips: trips.iter().map(trip).collect(),
        sustainable_power: 0,
        k_po: None,
        k_pu: None,
        k_i: None,
        k_d: None,
        integral_cutoff: 0,
    }
}

/// `cpufreq_set_policy()`: what user space asks for and what a zone takes away, together; `cpufreq_pressure` has both since 6.10.
#[test]
fn user_space_and_cooling_limit_together() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    let capacity = |kernel: &Kernel| kernel.sched.get_actual_cpu_capacity(CpuId(0));
    let asks = |kernel: &mut Kernel, min, max| {
        kernel.freq_qos_update_request(PolicyId(0), Limits { min, max }, 1);
        let policy = kernel.cpufreq.policy(PolicyId(0));
        (policy.limits.min, policy.limits.max, policy.resolve(0), policy.resolve(9_999_999))
    };
    assert_eq!(asks(&mut kernel, 600_000, 1_700_000), (1_000_000, 1_500_000, 1_000_000, 1_500_000));
    assert_eq!(capacity(&kernel), 768);
    kernel.cpufreq_set_cur_state(PolicyId(0), 3);
    let limits = kernel.cpufreq.policy(PolicyId(0)).limits;
    assert_eq!((limits, capacity(&kernel)), (Limits { min: 500_000, max: 500_000 }, 256));
    kernel.cpufreq_set_cur_state(PolicyId(0), 0);
    assert_eq!(asks(&mut kernel, 0, u32::MAX), (500_000, 2_000_000, 500_000, 2_000_000));
    kernel.cx.config.capacity_pressure = crate::config::CapacityPressure::Thermal;
    let Kernel { sched, cx, .. } = &mut kernel;
    sched.set_capacity_pressure(&cx.config);
    assert_eq!((asks(&mut kernel, 0, 500_000).1, capacity(&kernel)), (500_000, 1024));
}

/// The example at the top of the module, with what follows for the clock and the scheduler; a read
/// every 100 ms.
#[test]
fn step_wise_follows_the_trend() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    kernel
        .register_thermal_zones(&[zone(Governor::StepWise, &[(80_000, TripType::Passive, &[0])])]);
    assert!(kernel.thermal.thermal_due(0, 0, 20_000));
    let mut now = 0;
    for (temperature, state, threshold, polls) in [
        (79_000, 0, 80_000, false),
        (81_000, 1, 78_000, true),
        (83_000, 2, 78_000, true),
        (84_000, 3, 78_000, true),
        (85_000, 3, 78_000, true),
        (85_000, 3, 78_000, true),
        (82_000, 2, 78_000, true),
        (79_000, 1, 78_000, true),
        (78_500, 1, 78_000, true),
        (77_000, 0, 80_000, false),
        (79_000, 0, 80_000, false),
    ] {
        kernel.thermal_zone_device_update(0, now, temperature);
        let (zone, policy) = (&kernel.thermal.zones[0], kernel.cpufreq.policy(PolicyId(0)));
        let what = format!("{temperature}: state, threshold");
        assert_eq!((policy.cooling_state, zone.trips[0].threshold), (state, threshold), "{what}");
        let poll_at = if polls { now + 100_000_000 } else { NEVER };
        assert_eq!(zone.poll_at, poll_at, "{temperature}: next poll");
        let limit = OPPS[3 - state as usize].0;
        assert_eq!((policy.limits.max, policy.resolve(9_999_999)), (limit, limit));
        let left = 1024 * u64::from(limit) / 2_000_000;
        assert_eq!(kernel.sched.get_actual_cpu_capacity(CpuId(1)), left);
        now += 100_000_000;
    }
    // Nobody polls: an interrupt comes when the threshold is reached.
    assert!(
        !kernel.thermal.thermal_due(0, now, 79_999) && kernel.thermal.thermal_due(0, now, 80_000)
    );
}

/// Two zones hold one domain back: the deeper state counts. A hot trip point holds nothing back.
#[test]
fn the_deepest_state_counts() {
    let mut kernel = kernel(&[(1, 1024, OPPS)]);
    let passive = (80_000, TripType::Passive, &[0][..]);
    let hot = (90_000, TripType::Hot, &[][..]);
    let zone = zone(Governor::StepWise, &[passive, hot]);
    kernel.register_thermal_zones(&[zone.clone(), zone]);
    for (at, (zone, temperature, state)) in
        [(0, 81_000, 1), (1, 95_000, 2), (0, 70_000, 2), (1, 94_000, 1), (1, 70_000, 0)]
            .into_iter()
            .enumerate()
    {
        kernel.thermal_zone_device_update(zone, at as Ns, temperature);
        assert_eq!(kernel.cpufreq.policy(PolicyId(0)).cooling_state, state, "{at}");
    }
}

/// With fast switch the next request of schedutil sees a limit; without, the driver is called at once.
#[test]
fn when_a_limit_counts() {
    for (fast_switch, cur) in [(true, 2_000_000), (false, 1_500_000)] {
        let mut kernel = kernel(&[(1, 1024, OPPS)]);
        kernel.cpufreq.policy_mut(PolicyId(0)).fast_switch = fast_switch;
        kernel.cpufreq.policy_mut(PolicyId(0)).cur = 2_000_000;
        kernel.cpufreq.policy_mut(PolicyId(0)).sugov.limits_changed = false;
        let trips: &[(i32, TripType, &[usize])] = &[(80_000, TripType::Passive, &[0])];
        kernel.register_thermal_zones(&[zone(Governor::StepWise, trips)]);
        kernel.thermal_zone_device_update(0, 1_000, 81_000);
        assert_eq!(kernel.cpufreq.policy(PolicyId(0)).cur, cur, "fast switch {fast_switch}");
        assert!(kernel.cpufreq.policy(PolicyId(0)).sugov.limits_changed);
    }
}

/// Below the first trip point everything is allowed; above, an idle domain may still go as fast as it likes, for one that
/// draws nothing is granted nothing but loads nothing either, and a busy one gets what the budget leaves.
#[test]
fn the_power_allocator_holds_a_budget() {
    let mut kernel = kernel(&[(2, 1024, OPPS)]);
    let trips: &[(i32, TripType, &[usize])] =
        &[(60_000, TripType::Passive, &[]), (80_000, TripType::Passive, &[0])];
    let mut zone = zone(Governor::PowerAllocator, trips);
    zone.sustainable_power = 1_000;
    zone.k_i = Some(0);
    kernel.register_thermal_zones(&[zone]);
    kernel.thermal_zone_device_update(0, 0, 50_000);
    assert_eq!(kernel.cpufreq.policy(PolicyId(0)).cooling_state, 0);
    // Both CPUs busy at full capacity: 1800 mW are asked for, load is 200 %.
    for cpu in [CpuId(0), CpuId(1)] {
        kernel.inside_mut().cfs[crate::sched::CfsRqId::root(cpu)].avg.util_avg = 1024;
    }
    kernel.cpufreq.policy_mut(PolicyId(0)).cur = 2_000_000;
    for (at, (temperature, state)) in [
        // 1000 + 102 · 20 = 3040, more than all can draw: no limit.
        (60_000, 0),
        // 1000 + 102 · 4 = 1398: 699 a CPU, which is 1500 MHz.
        (76_000, 1),
        // 1000: 500 a CPU, 1000 MHz.
        (80_000, 2),
        // 1000 − 51 · 16 = 203: 101 a CPU, 500 MHz.
        (96_000, 3),
        (59_000, 0),
    ]
    .into_iter()
    .enumerate()
    {
        // What is asked for follows the frequency, so it is set back to the highest.
        kernel.cpufreq.policy_mut(PolicyId(0)).cur = 2_000_000;
        kernel.thermal_zone_device_update(0, 1 + at as Ns, temperature);
        assert_eq!(kernel.cpufreq.policy(PolicyId(0)).cooling_state, state, "{temperature}");
    }
}
