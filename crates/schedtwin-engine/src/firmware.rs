// SPDX-License-Identifier: GPL-2.0-or-later
//! Firmware: the machine's truth becomes the kernel's tables, as a device tree would tell it.

use schedtwin_input::Diagnostics;
use schedtwin_kernel::device_tree::{
    self as dt, BroadcastDevice, DeviceTree, DtCoherence, DtCpu, DtIdleState, DtPolicy,
    DtThermalZone, DtTopology, DtTrip, PathCosts,
};
use schedtwin_machine::{
    Architecture, Broadcast, CostScale, DriverWait, FrequencyDomain, Heat, IdlePower,
    KernelTopology, L3, Machine, PowerDependence, PowerDomain, RATE_SHIFT, ThermalGovernor,
    TripType,
};
use schedtwin_types::property::Bounds;
use schedtwin_types::{ClockDomainId, CpuId, CpuMask, PowerDomainId};
use schedtwin_workload::WORK_KIND;

use crate::meter::{
    MeterCpu, MeterDependence, MeterDomain, MeterIdle, MeterL3, MeterOpp, MeterPowerDomain,
    MeterSetup,
};

/// Returns the machine as the kernel is told about it.
pub fn device_tree(machine: &Machine, nr_threads_hint: usize) -> DeviceTree {
    let costs = &machine.path_costs;
    DeviceTree {
        cpus: machine
            .cpus
            .iter()
            .enumerate()
            .map(|(number, cpu)| DtCpu {
                capacity: cpu.capacity,
                policy: cpu.domain.index(),
                idle_table: cpu.core_type,
                package: cpu.package,
                cluster: cpu.cluster,
                llc: cpu.llc,
                node: cpu.node,
                core: machine.kernel_topology.smt.then_some(cpu.core),
                l2: cpu.l2,
                hemisphere: cpu.hemisphere,
                big_core: cpu.big_core,
                asym_priority: machine
                    .kernel_topology
                    .asym_priority
                    .get(number)
                    .map(|priority| i32::from(*priority)),
            })
            .collect(),
        policies: machine
            .domains
            .iter()
            .map(|domain| DtPolicy {
                cpus: CpuMask::from_cpus(domain.cpus.iter().copied()),
                opps: domain.opps.iter().map(|o| (o.khz, o.em_power_uw)).collect(),
                transition_latency: domain.kernel_transition_latency_ns,
                fast_switch: domain.fast_switch,
                driver_latency: domain.driver_latency_ns,
                driver_sleeps: domain.driver == DriverWait::Sleeps,
                dvfs_possible_from_any_cpu: domain.dvfs_possible_from_any_cpu,
            })
            .collect(),
        idle_tables: machine
            .core_types
            .iter()
            .map(|core| {
                core.idle_states
                    .iter()
                    .map(|s| DtIdleState {
                        exit_latency: s.kernel_exit_latency_ns,
                        target_residency: s.target_residency_ns,
                        polling: s.polling,
                        monitors: s.mwait,
                        // Without a device nobody could wake the CPU: its own timer does, see MODEL.md.
                        timer_stop: s.local_timer_stops && machine.broadcast.is_some(),
                        disabled: false,
                    })
                    .collect()
            })
            .collect(),
        topology: topology(&machine.kernel_topology),
        path_costs: PathCosts {
            constant_time: costs.scale == CostScale::Time,
            running_clocks: costs.running_clocks,
            one_at_a_time: costs.one_at_a_time,
            after_wakeup_permille: costs.after_wakeup_permille,
            syscall: costs.syscall_ns,
            schedule: costs.schedule_ns,
            context_switch: costs.context_switch_ns,
            wakeup: costs.wakeup_ns,
            select_per_cpu: costs.select_per_cpu_ns,
            energy_per_domain: costs.energy_per_domain_ns,
            interrupt: costs.interrupt_ns,
            hrtimer: costs.hrtimer_ns,
            tick: costs.tick_ns,
            ipi_send: costs.ipi_send_ns,
            softirq: costs.softirq_ns,
            balance_per_cpu: costs.balance_per_cpu_ns,
            migrate_task: costs.migrate_task_ns,
            idle_enter: costs.idle_enter_ns,
            idle_exit: costs.idle_exit_ns,
            frequency_switch: costs.frequency_switch_ns,
            fork: costs.fork_ns,
            exit: costs.exit_ns,
            pipe: costs.pipe_ns,
            pipe_lock: costs.pipe_lock_ns,
            unix_socket: costs.unix_socket_ns,
            unix_lock: costs.unix_lock_ns,
            tcp: costs.tcp_ns,
            udp: costs.udp_ns,
            poll: costs.poll_ns,
            copy_per_kib: costs.copy_per_kib_ns,
            kilo_instruction: costs.kilo_instruction_ns,
        },
        coherence: coherence(machine),
        nr_threads_hint,
    }
}

/// Returns what lines that CPUs take from each other cost.
fn coherence(machine: &Machine) -> Option<DtCoherence> {
    let told = machine.distances.as_ref()?.coherence.as_ref()?;
    let cpus = || (0..machine.cpus.len()).map(|cpu| CpuId(cpu as u16));
    let line = |to, from| told.line_ns[machine.distance(to, from) as usize];
    Some(DtCoherence {
        line_ns: cpus().map(|to| cpus().map(|from| line(to, from)).collect()).collect(),
        overlap_permille: told.overlap_permille,
        copy_permille: told.copy_permille,
        handover_lines: told.handover_lines,
        rq_locks: told.rq_locks,
        lines: told.lines.clone(),
    })
}

fn topology(told: &KernelTopology) -> DtTopology {
    DtTopology {
        architecture: match told.architecture {
            Architecture::Arm64 => dt::Architecture::Arm64,
            Architecture::X86 => dt::Architecture::X86,
            Architecture::Powerpc => dt::Architecture::Powerpc,
        },
        distances: told.distances.clone(),
        reclaim_distance: told.reclaim_distance,
        asym_packing: told.asym_packing,
    }
}

/// Returns what the kernel is told about the timer that stands in for others.
pub fn broadcast(device: &Broadcast) -> BroadcastDevice {
    match device.hrtimer {
        true => BroadcastDevice::Hrtimer,
        false => BroadcastDevice::Timer { cpu: device.cpu, moves: device.moves },
    }
}

/// Returns what the kernel is told about heat.
pub fn thermal_zones(heat: &Heat) -> Vec<DtThermalZone> {
    let trip = |trip: &schedtwin_machine::Trip| DtTrip {
        temperature: trip.mc as i32,
        hysteresis: trip.hysteresis_mc as i32,
        kind: match trip.kind {
            TripType::Passive => dt::TripType::Passive,
            TripType::Active => dt::TripType::Active,
            TripType::Hot => dt::TripType::Hot,
            TripType::Critical => dt::TripType::Critical,
        },
        cooling: trip.cools.iter().map(|map| map.domain.index()).collect(),
    };
    let zone = |zone: &schedtwin_machine::ThermalZone| {
        let [k_po, k_pu, k_i, k_d] = zone.coefficients;
        DtThermalZone {
            governor: match zone.governor {
                ThermalGovernor::StepWise => dt::ThermalGovernor::StepWise,
                ThermalGovernor::PowerAllocator => dt::ThermalGovernor::PowerAllocator,
            },
            polling_delay: zone.polling_delay_ns,
            passive_delay: zone.passive_delay_ns,
            trips: zone.trips.iter().map(trip).collect(),
            sustainable_power: zone.sustainable_mw,
            k_po,
            k_pu,
            k_i,
            k_d,
            integral_cutoff: zone.integral_cutoff_mc,
        }
    };
    heat.zones.iter().map(zone).collect()
}

/// How fast each CPU does rt-app's loop at its highest frequency, 1024 = `ns_per_loop`: what a calibration
/// on it would find.
pub fn loop_capacities(machine: &Machine) -> Vec<u32> {
    let kind = machine.kind(WORK_KIND);
    let fastest = |cpu: CpuId| machine.rate_of(cpu, machine.domain_of(cpu).max_khz(), kind);
    let capacity = |c: usize| (fastest(CpuId(c as u16)) >> (RATE_SHIFT - 10)).max(1) as u32;
    (0..machine.nr_cpus()).map(capacity).collect()
}

/// Switches off the idle states that a kernel's user has (`cpuidle_disable`): words that are names or numbers
/// of states. The words that fit no state of any core.
pub fn disable_idle_states<'w>(
    machine: &Machine,
    device_tree: &mut DeviceTree,
    words: &'w [String],
) -> Vec<&'w str> {
    let mut unknown: Vec<&str> = words.iter().map(String::as_str).collect();
    for (core, table) in machine.core_types.iter().zip(&mut device_tree.idle_tables) {
        for (index, (state, dt)) in core.idle_states.iter().zip(table).enumerate() {
            let fits = |word: &str| word == state.name || word.parse() == Ok(index);
            dt.disabled |= words.iter().any(|word| fits(word));
            unknown.retain(|word| !fits(word));
        }
    }
    unknown
}

/// Returns what the meter is told about a machine.
pub fn meter_setup(machine: &Machine) -> MeterSetup {
    MeterSetup {
        cpus: machine
            .cpus
            .iter()
            .enumerate()
            .map(|(index, cpu)| MeterCpu {
                threads: {
                    let threads = machine.threads_of(CpuId(index as u16)).map(CpuId::index);
                    let threads: Vec<usize> = threads.collect();
                    if threads.len() > 1 { threads } else { Vec::new() }
                },
                second_permille: machine.smt.as_ref().map_or(1000, |smt| smt.second_permille),
                domain: cpu.domain,
                cluster_name: machine.domains[cpu.domain].name.clone(),
                capacity: cpu.capacity,
                idle_states: machine.core_types[cpu.core_type]
                    .idle_states
                    .iter()
                    .map(|s| MeterIdle {
                        name: s.name.clone(),
                        wfi_permille: match s.power {
                            IdlePower::WfiPermille(share) => share,
                            IdlePower::ActivePermille(_) => 0,
                        },
                        active_permille: match s.power {
                            IdlePower::ActivePermille(share) => share,
                            IdlePower::WfiPermille(_) => 0,
                        },
                        deep: s.deep,
                        entry_energy_pj: s.energy_entry_nj * 1000,
                        exit_energy_pj: s.energy_exit_nj * 1000,
                        abort_energy_pj: s.energy_abort_nj * 1000,
                    })
                    .collect(),
            })
            .collect(),
        domains: machine
            .domains
            .iter_ids()
            .map(|(id, domain)| MeterDomain {
                name: domain.name.clone(),
                opps: domain
                    .opps
                    .iter()
                    .map(|o| MeterOpp {
                        khz: o.khz,
                        active_uw: o.active_uw,
                        wfi_uw: o.idle_wfi_uw,
                        static_uw: o.static_uw,
                        idle_static_uw: o.idle_static_uw,
                    })
                    .collect(),
                off_uw: domain.off_uw,
                dependence: machine
                    .power_dependences
                    .iter()
                    .find(|dependence| dependence.domain == id)
                    .map(|dependence| meter_dependence(domain, dependence)),
            })
            .collect(),
        power_domains: machine
            .power_domains
            .iter()
            .map(|domain| meter_power_domain(machine, domain))
            .collect(),
        l3: machine.l3.and_then(|l3| meter_l3(machine, l3)),
        heats: machine.heat.is_some() || !machine.power_limits.is_empty(),
        warmup_ns: 0,
        bounds: Bounds::default(),
    }
}

/// The shared cache as the meter counts it: on the rail of the first domain whose table has its energies.
fn meter_l3(machine: &Machine, l3: L3) -> Option<MeterL3> {
    let powers = |of: &PowerDependence, index: usize| -> Vec<[u64; 2]> {
        of.tables.iter().flat_map(|table| &table.rows[index]).map(|power| power.l3_pj).collect()
    };
    let nr_opps = |of: &PowerDependence| machine.domains[of.domain].opps.len();
    let all = |of: &PowerDependence| (0..nr_opps(of)).flat_map(|index| powers(of, index)).collect();
    let tables = machine.power_dependences.iter().map(|of| (of.domain, all(of)));
    let mut told =
        tables.filter(|(_, all): &(_, Vec<[u64; 2]>)| all.iter().any(|pj| *pj != [0, 0]));
    let (domain, all) = told.next().filter(|_| l3.accesses_per_us > 0)?;
    let mixed = |[hit, miss]: [u64; 2]| hit * l3.hit_permille + miss * (1000 - l3.hit_permille);
    let access = all.into_iter().map(mixed).collect();
    Some(MeterL3 { domain, accesses_per_us: l3.accesses_per_us, access })
}

fn meter_power_domain(machine: &Machine, domain: &PowerDomain) -> MeterPowerDomain {
    let inside = |cpus: &[CpuId]| cpus.iter().all(|cpu| domain.cpus.contains(cpu));
    let within = |(at, other): (PowerDomainId, &PowerDomain)| inside(&other.cpus).then_some(at);
    let clocks = |(at, clock): (ClockDomainId, &FrequencyDomain)| inside(&clock.cpus).then_some(at);
    let states = &domain.states;
    MeterPowerDomain {
        name: domain.name.clone(),
        outermost: domain.parent.is_none(),
        within: machine.power_domains.iter_ids().filter_map(within).collect(),
        clocks: machine.domains.iter_ids().filter_map(clocks).collect(),
        uw: std::iter::once(domain.uw).chain(states.iter().map(|s| s.uw)).collect(),
        states: states.iter().map(|s| s.name.clone()).collect(),
        entry_energy_pj: states.iter().map(|s| s.energy_entry_nj * 1000).collect(),
    }
}

/// A dependence as the meter counts it: the tables of all voters side by side.
fn meter_dependence(domain: &FrequencyDomain, dependence: &PowerDependence) -> MeterDependence {
    let row = |(index, opp): (usize, &schedtwin_machine::OperatingPoint)| {
        let powers = dependence.tables.iter().flat_map(move |table| &table.rows[index]);
        let khz = opp.khz;
        powers.map(move |power| MeterOpp {
            khz,
            active_uw: power.active_uw,
            wfi_uw: power.wfi_uw,
            static_uw: power.static_uw,
            idle_static_uw: power.static_uw,
        })
    };
    MeterDependence {
        voters: dependence.tables.iter().map(|table| table.on).collect(),
        rows: domain.opps.iter().enumerate().flat_map(row).collect(),
    }
}

/// Refuses by name what a machine may have but the twin does not run yet.
pub fn refuse_what_waits(machine: &Machine) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::new();
    let source = &machine.source;
    for core in &machine.core_types {
        for state in &core.idle_states {
            let at_work = matches!(state.power, IdlePower::ActivePermille(_));
            if state.polling && !at_work {
                let message = format!(
                    "idle state {} of {}: a polling state is at work: its `power` is \"active\" or a share of it",
                    state.name, core.name
                );
                faults.push_whole(source, message, None);
            }
        }
    }
    if let Err(error) = device_tree(machine, 0).check() {
        faults.push_whole(source, format!("impossible topology: {error}"), None);
    }
    // The works that an interrupt has to run are bits of a word.
    if machine.domains.len() > 64 && machine.domains.iter().any(|domain| !domain.fast_switch) {
        faults.push_whole(source, "more than 64 frequency domains without fast switch", None);
    }
    faults.into_result(())
}
