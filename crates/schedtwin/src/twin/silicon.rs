//! What the silicon does by itself: ways into and out of idle states, clusters, clocks that settle.
//!
//! ```text
//!  asks for a state ── entry latency ── rests ── interrupt ── exit latency ── back
//!  asks for a frequency (or another domain forces one) ── settles ── works at it
//! ```

use super::{Phase, Twin};
use crate::board::{Board, CpuSlot};
use crate::meter::Activity as Silicon;
use crate::twin::Observer;
use schedtwin_kernel::Activity;
use schedtwin_types::{CpuId, Khz, NEVER, Ns};

impl<B: Board> Twin<B> {
    // ---- idle ---------------------------------------------------------------------------------

    pub(super) fn idle_step(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        let slot = self.slots.cpu(cpu, CpuSlot::Idle as u8);
        match self.cpus[cpu.index()].phase {
            Phase::IdleLoop => {
                if self.cpus[cpu.index()].pending.is_empty() {
                    self.kernel.idle_enter(cpu, self.now);
                    self.after_entry(Some(cpu), observer);
                } else {
                    self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask as u8), NEVER);
                    self.deliver(cpu, observer);
                }
            }
            Phase::Idle { state, asleep_at } => {
                self.enter_idle(cpu, state, asleep_at, observer);
                if !self.cpus[cpu.index()].pending.is_empty() {
                    // It came while the debt was paid: the way in is gone to its end, and back.
                    let refused = self.machine.idle_states(cpu)[state as usize].refuses_pending;
                    self.cpus[cpu.index()].phase = Phase::Waking { refused };
                    self.board.set(slot, asleep_at);
                }
            }
            Phase::Poll { spins: false } => self.begin_poll(cpu, observer),
            Phase::Poll { spins: true } => {
                if self.cpus[cpu.index()].pending.is_empty() {
                    self.kernel.poll_end(cpu, self.now);
                    self.after_entry(Some(cpu), observer);
                } else {
                    self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask as u8), NEVER);
                    self.deliver(cpu, observer);
                }
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

    /// A CPU that owes nothing spins in its polling state.
    pub(super) fn begin_poll(&mut self, cpu: CpuId, observer: &mut impl Observer) {
        self.cpus[cpu.index()].phase = Phase::Poll { spins: true };
        self.silicon(cpu, Silicon::Polling, observer);
        self.poll_goes_on(cpu);
    }

    /// A CPU spins until its time is up or the flag that it watches is set, which it sees after the state's
    /// exit latency.
    pub(super) fn poll_goes_on(&mut self, cpu: CpuId) {
        let Activity::Poll { until } = self.kernel.wires[cpu].activity else {
            unreachable!("a CPU polls as its wires say")
        };
        let seen = until + self.machine.idle_states(cpu)[0].exit_latency_ns;
        let at = seen.max(self.cpus[cpu.index()].masked_until).max(self.now);
        self.board.set(self.slots.cpu(cpu, CpuSlot::Idle as u8), at);
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
        let slot = self.slots.cpu(cpu, CpuSlot::Idle as u8);
        if asleep_at > self.now {
            self.silicon(cpu, Silicon::Entering(state), observer);
            self.board.set(slot, asleep_at);
        } else {
            self.board.set(slot, NEVER);
            let domain = self.machine.cpus[cpu.index()].domain;
            if self.clusters.negotiates(domain) {
                self.clusters.ask(cpu, Some(state));
                self.cluster_settles(domain, observer);
            } else {
                self.silicon(cpu, Silicon::Idle(state), observer);
            }
        }
    }

    /// An interrupt ends a CPU's rest, which it had asked to be in `state`: tells in which it was.
    #[inline]
    pub(super) fn rest_ends(&mut self, cpu: CpuId, state: u8, observer: &mut impl Observer) -> u8 {
        let domain = self.machine.cpus[cpu.index()].domain;
        if !self.clusters.negotiates(domain) {
            self.silicon(cpu, Silicon::Exiting(state), observer);
            return state;
        }
        let rested = self.clusters.rests_in(&self.machine, cpu).expect("it rests");
        self.silicon(cpu, Silicon::Exiting(rested), observer);
        self.clusters.ask(cpu, None);
        self.cluster_settles(domain, observer);
        rested
    }

    /// A request has come or gone: the CPUs of the domain that rest do so where they may.
    fn cluster_settles(&mut self, domain: usize, observer: &mut impl Observer) {
        let machine = self.machine.clone();
        for &cpu in &machine.domains[domain].cpus {
            if let Some(state) = self.clusters.rests_in(&machine, cpu) {
                self.silicon(cpu, Silicon::Idle(state), observer);
            }
        }
    }

    /// Tells the meter what a CPU's silicon does from now on.
    #[inline]
    pub(super) fn silicon(&mut self, cpu: CpuId, activity: Silicon, observer: &mut impl Observer) {
        self.meter.cpu_activity(self.now, cpu, activity);
        self.tell_power(self.machine.cpus[cpu.index()].domain, observer);
    }

    /// The power of a domain, and of those that depend on it, may have changed.
    #[inline(always)]
    fn tell_power<O: Observer>(&self, domain: usize, observer: &mut O) {
        if std::mem::size_of::<O>() == 0 {
            return;
        }
        let dependents = self.machine.power_dependences.iter();
        let dependents = dependents.filter(|d| d.tables.iter().any(|table| table.on == domain));
        for domain in std::iter::once(domain).chain(dependents.map(|d| d.domain)) {
            let domain = domain as u16;
            observer.power(self.now, domain, self.meter.domain_power_uw(domain));
        }
    }

    // ---- frequency ----------------------------------------------------------------------------

    /// The frequency that a domain should run at: what was asked for, at least what its neighbours force.
    fn target_khz(&self, domain: usize) -> Khz {
        let hardware = &self.machine.domains[domain];
        let floor = if self.machine.couplings.is_empty() {
            0
        } else {
            self.machine.coupled_floor(&self.settled, domain)
        };
        let wanted = self.domains[domain].requested.max(floor);
        hardware.opps[hardware.opp_at_least(wanted)].khz
    }

    /// A domain's request or floor has changed: the hardware will follow.
    pub(super) fn retarget(&mut self, domain: usize, settle: Ns) {
        let target = self.target_khz(domain);
        if target != self.domains[domain].requested {
            self.meter.frequency_overridden(domain as u16);
        }
        if target == self.domains[domain].target {
            return;
        }
        self.domains[domain].target = target;
        self.board.set(domain, self.now + settle);
    }

    pub(super) fn frequency_settled(&mut self, domain: usize, observer: &mut impl Observer) {
        self.board.set(domain, NEVER);
        let khz = self.domains[domain].target;
        let machine = self.machine.clone();
        for &cpu in &machine.domains[domain].cpus {
            self.account_work(cpu);
        }
        self.settled[domain] = khz;
        let opp = machine.domains[domain].opp_of(khz).expect("a target is a table frequency");
        self.meter.domain_opp(self.now, domain as u16, opp as u16);
        self.tell_power(domain, observer);
        for &cpu in &machine.domains[domain].cpus {
            self.refresh_rates(cpu);
            if matches!(self.cpus[cpu.index()].phase, Phase::Task(_)) {
                let at = self.work_done_at(cpu);
                self.board.set(self.slots.cpu(cpu, CpuSlot::Work as u8), at);
            }
        }
        for coupling in &machine.couplings {
            if coupling.from == domain {
                self.retarget(coupling.to, 0);
            }
        }
    }
}
