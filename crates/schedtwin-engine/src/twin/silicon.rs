// SPDX-License-Identifier: GPL-2.0-or-later
//! The silicon's own actions: ways into and out of idle states, clusters and packages, heat, limits
//! of power.
//!
//! ```text
//!  asks for a state ── entry latency ── rests ── interrupt ── exit latency ── back
//! ```

use super::{Phase, Twin};
use crate::board::{Board, CpuSlot};
use crate::meter::Activity as Silicon;
use crate::twin::Observer;
use schedtwin_kernel::hardware::Limits;
use schedtwin_machine::{IdleState, PERMILLE};
use schedtwin_types::{ClockDomainId, CpuId, IrqLine, MAX_CPUS, NEVER, Ns, PowerSource};

impl<B: Board> Twin<B> {
    /// Time begins: every source of events has its first one.
    #[inline(never)]
    pub(super) fn silicon_begins(&mut self, observer: &mut impl Observer) {
        self.tell_all_power(observer);
        for c in 0..self.cpus.len() {
            self.sync_wires(CpuId(c as u16));
            self.board.set(self.slots.cpu(CpuId(c as u16), CpuSlot::Idle), 0);
        }
        if let Some(heat) = &self.heat {
            self.board.set(self.slots.heat_slot(), heat.step_ns());
        }
        if let Some(limits) = &self.limits {
            self.board.set(self.slots.power_limit_slot(), limits.next_at());
        }
        self.limits_are_seen();
        self.after_entry(None, observer);
        self.hwp_begins();
    }

    // ---- idle ---------------------------------------------------------------------------------

    pub(super) fn idle_step(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        let slot = self.slots.cpu(cpu, CpuSlot::Idle);
        match self.cpus[cpu].phase {
            Phase::IdleLoop => {
                if self.cpus[cpu].pending.is_empty() {
                    self.kernel.idle_enter(cpu, self.now);
                    self.after_entry(Some(cpu), observer);
                } else {
                    self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), NEVER);
                    self.deliver(cpu, observer);
                }
            }
            Phase::Idle { state, asleep_at } => self.enter_idle(cpu, state, asleep_at, observer),
            Phase::BeforeIdle { state, asleep_at } => {
                self.cpus[cpu].phase = Phase::Idle { state, asleep_at };
                self.enter_idle(cpu, state, asleep_at, observer);
                if !self.cpus[cpu].pending.is_empty() {
                    // It came while the debt was paid: the entry notices it as soon as it can be aborted.
                    let refused = self.machine.idle_states(cpu)[state as usize].refuses_pending;
                    self.cpus[cpu].phase = Phase::Waking { refused };
                    if asleep_at <= self.now && self.negotiation.negotiates(cpu) {
                        // A state without an entry latency was reached, so its request is taken back.
                        self.negotiation.ask(cpu, None);
                        self.sharers_settle(cpu, observer);
                    }
                    let back = self.entry_aborted(cpu, state, asleep_at);
                    self.board.set(slot, back);
                }
            }
            Phase::Poll { spins: false } => self.begin_poll(cpu, observer),
            Phase::Poll { spins: true } => self.poll_ends(cpu, observer),
            Phase::Waiting { state, exit } => {
                self.cpus[cpu].phase = Phase::Waking { refused: false };
                self.silicon(cpu, Silicon::Exiting(state), observer);
                self.board.set(slot, self.now + exit);
            }
            Phase::Waking { refused } => {
                let lines = self.take_pending(cpu);
                if refused {
                    self.kernel.idle_refused(cpu, self.now, lines);
                } else {
                    self.kernel.idle_exit(cpu, self.now, lines);
                }
                self.after_entry(Some(cpu), observer);
            }
            Phase::Task(_) => unreachable!("a CPU with a task is not idle"),
        }
    }

    /// A CPU that owes nothing is on its way into an idle state until `asleep_at`, or there.
    #[inline]
    pub(super) fn enter_idle(
        &mut self,
        cpu: CpuId,
        state: u8,
        asleep_at: Ns,
        observer: &mut impl Observer,
    ) {
        let slot = self.slots.cpu(cpu, CpuSlot::Idle);
        if asleep_at > self.now {
            self.silicon(cpu, Silicon::Entering(state), observer);
            self.board.set(slot, asleep_at);
        } else {
            self.board.set(slot, NEVER);
            if self.negotiation.negotiates(cpu) {
                self.negotiation.ask(cpu, Some(state));
                self.sharers_settle(cpu, observer);
            } else {
                self.silicon(cpu, Silicon::Idle(state), observer);
            }
        }
    }

    /// When a CPU is back that an interrupt catches on its way into `state`.
    #[inline]
    pub(super) fn entry_aborted(&self, cpu: CpuId, state: u8, asleep_at: Ns) -> Ns {
        match self.machine.idle_states(cpu)[state as usize].abort_latency_ns {
            Some(latency) => asleep_at.min(self.now + latency),
            None => asleep_at,
        }
    }

    /// An interrupt ends a CPU's idle state, which it had asked to be `state`: tells how long its
    /// next step takes, which is
    /// the way out, or the wait for what is off around it.
    #[inline]
    pub(super) fn rest_ends(
        &mut self,
        cpu: CpuId,
        state: u8,
        line: IrqLine,
        observer: &mut impl Observer,
    ) -> Ns {
        let negotiates = self.negotiation.negotiates(cpu);
        if negotiates && !self.negotiation.has_asked(cpu) {
            // The interrupt came at the very instant of the arrival, ahead of the event that notices it.
            self.negotiation.ask(cpu, Some(state));
            self.sharers_settle(cpu, observer);
        }
        let wait = self.negotiation.wait_ns(&self.machine, cpu, self.now);
        let rested = match negotiates {
            true => self.negotiation.rests_in(&self.machine, cpu).expect("it has asked"),
            false => state,
        };
        let exit = exit_latency(&self.machine.idle_states(cpu)[rested as usize], line);
        let c = &mut self.cpus[cpu];
        // A CPU whose package is off has no clock: until that is back it draws what it draws when
        // idle.
        let (activity, next) = match wait {
            0 => (Silicon::Exiting(rested), exit),
            wait => {
                c.phase = Phase::Waiting { state: rested, exit };
                (Silicon::Waiting(rested), wait)
            }
        };
        self.silicon(cpu, activity, observer);
        if negotiates {
            self.negotiation.ask(cpu, None);
            self.sharers_settle(cpu, observer);
        }
        next
    }

    /// Moves the CPUs that share states with a CPU to the states they may have, after its request
    /// came or went.
    fn sharers_settle(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        for index in 0..self.negotiation.sharers(cpu).len() {
            let cpu = self.negotiation.sharers(cpu)[index];
            if let Some(state) = self.negotiation.rests_in(&self.machine, cpu) {
                self.silicon(cpu, Silicon::Idle(state), observer);
            }
        }
    }

    /// Tells the meter what a CPU's silicon does from now on.
    #[inline]
    pub(super) fn silicon(&mut self, cpu: CpuId, activity: Silicon, observer: &mut impl Observer) {
        self.meter.cpu_activity(self.now, cpu, activity);
        if self.negotiation.has_power_domains() {
            self.power_domains_settle(cpu, activity, observer);
        }
        self.tell_power(self.machine.cpus[cpu.index()].domain, observer);
        if let Some(smt) = &self.machine.smt {
            let slows = match activity {
                Silicon::Polling => smt.polling_permille,
                Silicon::Idle(_) | Silicon::Waiting(_) => 0,
                Silicon::Active | Silicon::Entering(_) | Silicon::Exiting(_) => PERMILLE,
            };
            self.thread_slows(cpu, slows);
            for &thread in self.threads[cpu.index()].iter().filter(|thread| **thread != cpu) {
                // Which thread the core's power is booked to may have changed.
                self.tell_power(self.machine.cpus[thread.index()].domain, observer);
            }
        }
    }

    /// Makes the power domains around a CPU follow its idle state.
    #[inline(never)]
    fn power_domains_settle<O: Observer>(
        &mut self,
        cpu: CpuId,
        activity: Silicon,
        observer: &mut O,
    ) {
        let rests = match activity {
            Silicon::Idle(state) => Some(state),
            _ => None,
        };
        let Twin { negotiation, kernel, meter, machine, now, .. } = self;
        let quiet_ns = |cpu: CpuId| kernel.hardware().next_event(cpu).saturating_sub(*now);
        negotiation.rest_changed(machine, cpu, rests, quiet_ns, |domain, state| {
            meter.power_domain(*now, domain, state);
            observer.power(*now, PowerSource::PowerDomain(domain), meter.power_domain_uw(domain));
        });
    }

    /// The power of a domain, and of those that depend on it, may have changed.
    #[inline(always)]
    pub(super) fn tell_power<O: Observer>(&self, domain: ClockDomainId, observer: &mut O) {
        if std::mem::size_of::<O>() == 0 {
            return;
        }
        let dependents = self.machine.power_dependences.iter();
        let dependents = dependents.filter(|d| d.tables.iter().any(|table| table.on == domain));
        for domain in std::iter::once(domain).chain(dependents.map(|d| d.domain)) {
            let source = PowerSource::Clock(domain);
            observer.power(self.now, source, self.meter.domain_power_uw(domain));
        }
    }

    /// Tells what everything draws as time begins.
    pub(super) fn tell_all_power(&self, observer: &mut impl Observer) {
        self.machine.domains.ids().for_each(|domain| self.tell_power(domain, observer));
        for domain in self.machine.power_domains.ids() {
            let uw = self.meter.power_domain_uw(domain);
            observer.power(self.now, PowerSource::PowerDomain(domain), uw);
        }
    }

    // ---- heat ---------------------------------------------------------------------------------

    /// A step of the grid is over: heat has flowed, and thermal zones may look.
    #[inline(never)]
    pub(super) fn heat_step(&mut self, observer: &mut impl Observer) {
        self.heat_flows(self.now);
        let heat = self.heat.as_ref().expect("only heat has its slot");
        self.board.set(self.slots.heat_slot(), self.now + heat.step_ns());
        for zone in 0..self.kernel.hardware().nr_thermal_zones() {
            let temperature = heat.sensor_mc(zone);
            if self.kernel.thermal_due(zone, self.now, temperature) {
                self.kernel.thermal_zone_device_update(zone, self.now, temperature);
            }
        }
        self.limits_are_seen();
        self.kernel.facts_wait(|cpu| self.cpus[cpu].masked_until);
        self.after_entry(None, observer);
    }

    /// The meter learns how far the kernel lets clocks go.
    pub(super) fn limits_are_seen(&mut self) {
        for domain in self.domains.ids() {
            let Limits { min, max } = self.kernel.hardware().limits(domain.policy());
            let opp =
                |khz| self.machine.domains[domain].opp_of(khz).expect("limits are of the table");
            let (lowest, highest) = (opp(min), opp(max));
            self.meter.frequency_limited(self.now, domain, lowest..=highest);
        }
    }

    /// Turns the energy used until `at` into heat, which flows.
    pub(super) fn heat_flows(&mut self, at: Ns) {
        self.energy_is_taken(at);
        let Some(heat) = &mut self.heat else { return };
        let hardware = self.kernel.hardware();
        heat.step(at, |domain| hardware.is_cooled(domain.policy()));
    }

    /// Tells the energy used until `at` to those who follow it.
    fn energy_is_taken(&mut self, at: Ns) {
        let Twin { meter, heat, limits, .. } = self;
        if heat.is_none() && limits.is_none() {
            return;
        }
        meter.take_heat(at, |source, fj| {
            if let Some(heat) = heat {
                heat.add(source, fj);
            }
            if let Some(limits) = limits {
                limits.add(source, fj);
            }
        });
    }

    // ---- limits of power ----------------------------------------------------------------------

    /// Firmware looks at what is drawn and who is awake, and holds clocks back or lets them go.
    pub(super) fn power_limit_step(&mut self) {
        self.energy_is_taken(self.now);
        let Twin { machine, limits, cpus, domains, now, .. } = self;
        let limits = limits.as_mut().expect("only limits have their slot");
        let rests_deep = |cpu: CpuId| match cpus[cpu].phase {
            Phase::Idle { state, asleep_at } => {
                asleep_at <= *now && machine.idle_states(cpu)[state as usize].deep
            }
            _ => false,
        };
        let awake = |of: &[CpuId]| {
            let awake = of.iter().filter(|cpu| !rests_deep(**cpu));
            let cores = awake.map(|cpu| machine.cpus[cpu.index()].core);
            // CPUs of a core need not be neighbours in the list.
            let mut seen = [false; MAX_CPUS];
            cores.filter(|core| !std::mem::replace(&mut seen[usize::from(*core)], true)).count()
        };
        limits.step(*now, awake, |domain| domains[domain].target < domains[domain].requested);
        let next_at = limits.next_at();
        self.board.set(self.slots.power_limit_slot(), next_at);
        for index in 0..self.machine.power_limits.len() {
            for at in 0..self.machine.power_limits[index].clocks.len() {
                let domain = self.machine.power_limits[index].clocks[at];
                let hardware = &self.machine.domains[domain];
                let limits = self.limits.as_ref().expect("they were there above");
                self.meter.firmware_allows(domain, limits.highest(domain));
                if self.machine.power_limits[index].tells_kernel {
                    let khz = hardware.opps[limits.highest(domain)].khz;
                    self.kernel.arch_update_hw_pressure(domain.policy(), khz);
                }
                self.retarget(domain, hardware.switching.settle_ns);
            }
        }
    }
}

/// How long the way out of a state takes, by what woke the CPU.
#[inline]
fn exit_latency(state: &IdleState, line: IrqLine) -> Ns {
    match line {
        IrqLine::ClockEvent => state.exit_latency_ns,
        IrqLine::CpufreqDriver | IrqLine::Peripheral | IrqLine::BroadcastDevice => {
            state.exit_device_latency_ns
        }
        _ => state.exit_ipi_latency_ns,
    }
}
