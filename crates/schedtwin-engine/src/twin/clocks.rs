// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks that follow what is asked of them.
//!
//! ```text
//!  asks for a frequency, another clock forces one, firmware allows less ── settles, the CPUs stand still at the end ── works at it
//! ```
//!
//! A request is bounded from below by the clocks that force this one up
//! ([`schedtwin_machine::Coupling`]), and from above by
//! firmware ([`schedtwin_machine::PowerLimit`]). How long it takes, and what becomes of a request that comes meanwhile, is in
//! [`schedtwin_machine::Switching`].
//!
//! Differences: only a CPU that runs a task stands still, with the kernel's paths that the task has to wait for. An idle CPU, and the
//! driver's thread while it waits for its hardware, go on.

use super::{Phase, Twin};
use crate::board::{Board, CpuSlot};
use crate::result::Metric;
use crate::twin::Observer;
use schedtwin_machine::{LateRequests, MAILBOX, Machine};
use schedtwin_types::arena::Arena;
use schedtwin_types::{ClockDomainId, Khz, NEVER, Ns, metric};

/// A frequency domain's truth.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The frequency that the kernel asked for.
    pub(super) requested: Khz,
    /// The frequency that it is to run at, once the last of its switches is over.
    pub(super) target: Khz,
    /// Switches under way, and those that wait for them, in the order in which they were asked for.
    switches: Vec<Switch>,
    /// Its CPUs stand still: the switch under way is about to end.
    standing: bool,
    /// For how long tasks stood still, all CPUs together, ...
    stood_ns: Ns,
    /// ... since this time, the end of the warm-up.
    counted_from: Ns,
}

/// A switch that has been asked for.
#[derive(Clone, Copy, Debug)]
struct Switch {
    khz: Khz,
    /// How long it takes but for the voltage's way.
    settle: Ns,
    /// When it is over; [`NEVER`]: it has not begun.
    ready_at: Ns,
}

/// All clocks at their highest frequency, as firmware leaves them.
pub(super) fn at_boot(machine: &Machine, counted_from: Ns) -> Arena<ClockDomainId, Clock> {
    let clock = |khz| Clock {
        requested: khz,
        target: khz,
        switches: Vec::with_capacity(MAILBOX),
        standing: false,
        stood_ns: 0,
        counted_from,
    };
    machine.domains.iter().map(|domain| clock(domain.max_khz())).collect()
}

impl<B: Board> Twin<B> {
    /// The frequency that a domain should run at: what was asked for, at least what its neighbours force, at most what
    /// firmware allows.
    fn target_khz(&self, domain: ClockDomainId) -> Khz {
        let hardware = &self.machine.domains[domain];
        let floor = if self.machine.couplings.is_empty() {
            0
        } else {
            self.machine.coupled_floor(self.settled.as_slice(), domain)
        };
        let asked = self.chosen_khz(domain).unwrap_or(self.domains[domain].requested);
        let wanted = asked.max(floor);
        let opp = hardware.opp_at_least(wanted);
        let opp = self.limits.as_ref().map_or(opp, |limits| opp.min(limits.highest(domain)));
        hardware.opps[opp].khz
    }

    /// A domain's request or bounds have changed: the hardware will follow.
    pub(super) fn retarget(&mut self, domain: ClockDomainId, settle: Ns) {
        let target = self.target_khz(domain);
        if target != self.domains[domain].requested {
            self.meter.frequency_overridden(self.now, domain);
        }
        if target == self.domains[domain].target {
            return;
        }
        let late_requests = self.machine.domains[domain].switching.late_requests;
        let clock = &mut self.domains[domain];
        clock.target = target;
        let asked = Switch { khz: target, settle, ready_at: NEVER };
        let room = match late_requests {
            LateRequests::Replace if clock.standing => 2,
            LateRequests::Replace => 1,
            LateRequests::Wait => 2,
            LateRequests::Queue | LateRequests::Overtake => MAILBOX,
        };
        clock.switches.truncate(room - 1);
        clock.switches.push(asked);
        self.next_switch(domain);
    }

    /// Begins what may begin, and waits for what is over first.
    fn next_switch(&mut self, domain: ClockDomainId) {
        let Twin { machine, domains, settled, now, .. } = self;
        let (hardware, clock) = (&machine.domains[domain], &mut domains[domain]);
        if clock.standing {
            return;
        }
        let opp_of = |khz| &hardware.opps[hardware.opp_of(khz).expect("a frequency of the table")];
        let from = opp_of(settled[domain]);
        let switching = &hardware.switching;
        let at_once = match switching.late_requests {
            LateRequests::Overtake => clock.switches.len(),
            _ => 1,
        };
        for switch in clock.switches.iter_mut().take(at_once).filter(|s| s.ready_at == NEVER) {
            let voltage = switching.switch_ns(from, opp_of(switch.khz)) - switching.settle_ns;
            switch.ready_at = *now + switch.settle + voltage;
        }
        let at = match clock.switches.iter().min_by_key(|switch| switch.ready_at) {
            None => NEVER,
            Some(first) if first.khz == settled[domain] => first.ready_at,
            Some(first) => first.ready_at.saturating_sub(switching.stall_ns).max(*now),
        };
        self.board.set(self.slots.domain(domain), at);
    }

    /// A clock's switch is over, or its CPUs begin to stand still.
    pub(super) fn clock_step(&mut self, domain: ClockDomainId, observer: &mut impl Observer) {
        let clock = &mut self.domains[domain];
        let ready = clock.switches.iter().enumerate().min_by_key(|(_, switch)| switch.ready_at);
        let (first, switch) = ready.expect("it has a switch under way");
        let Switch { khz, ready_at, .. } = *switch;
        if ready_at > self.now {
            clock.standing = true;
            self.board.set(self.slots.domain(domain), ready_at);
            self.stand_still(domain, ready_at - self.now);
            return;
        }
        clock.standing = false;
        clock.switches.remove(first);
        self.board.set(self.slots.domain(domain), NEVER);
        self.frequency_settled(domain, khz, observer);
        if !self.domains[domain].switches.is_empty() {
            self.next_switch(domain);
        }
    }

    /// The tasks of a domain's CPUs do nothing for `ns`, and interrupts wait.
    fn stand_still(&mut self, domain: ClockDomainId, ns: Ns) {
        for index in 0..self.machine.domains[domain].cpus.len() {
            let cpu = self.machine.domains[domain].cpus[index];
            if !matches!(self.cpus[cpu].phase, Phase::Task(_)) {
                continue;
            }
            self.account_work(cpu);
            let now = self.now;
            let c = &mut self.cpus[cpu];
            c.masked_until = c.masked_until.max(now) + ns;
            c.since = c.since.max(now).saturating_add(ns);
            let until = c.masked_until;
            if !c.pending.is_empty() {
                self.board.set(self.slots.cpu(cpu, CpuSlot::Unmask), until);
            }
            let at = self.work_done_at(cpu);
            self.board.set(self.slots.cpu(cpu, CpuSlot::Work), at);
            let clock = &mut self.domains[domain];
            clock.stood_ns += if now >= clock.counted_from { ns } else { 0 };
        }
    }

    fn frequency_settled(&mut self, domain: ClockDomainId, khz: Khz, observer: &mut impl Observer) {
        let machine = self.machine.clone();
        for &cpu in &machine.domains[domain].cpus {
            self.account_work(cpu);
        }
        self.settled[domain] = khz;
        self.kernel.clock_settled(domain.policy(), khz, self.now);
        let opp = machine.domains[domain].opp_of(khz).expect("a target is a table frequency");
        self.meter.domain_opp(self.now, domain, opp);
        self.tell_power(domain, observer);
        for &cpu in &machine.domains[domain].cpus {
            self.refresh_rates(cpu);
            if matches!(self.cpus[cpu].phase, Phase::Task(_)) {
                let at = self.work_done_at(cpu);
                self.board.set(self.slots.cpu(cpu, CpuSlot::Work), at);
            }
        }
        for coupling in &machine.couplings {
            if coupling.from == domain {
                self.retarget(coupling.to, 0);
                if machine.coupling_by_driver {
                    let floor = machine.coupled_floor(self.settled.as_slice(), coupling.to);
                    self.kernel.clock_held(coupling.to.policy(), floor, self.now);
                    self.kernel.facts_wait(|cpu| self.cpus[cpu].masked_until);
                    self.after_entry(None, observer);
                }
            }
        }
    }

    /// For how long tasks stood still, by clock; nothing where no clock stalls.
    pub(super) fn stall_metrics(&self) -> Vec<Metric> {
        let hardware = self.machine.domains.iter();
        if hardware.clone().all(|domain| domain.switching.stall_ns == 0) {
            return Vec::new();
        }
        let ms = |ns: Ns| Some(ns as f64 / 1e6);
        let all = self.domains.iter().map(|clock| clock.stood_ns).sum();
        let mut metrics = vec![metric::FREQ_STALL_TIME.value("sum", vec![], ms(all))];
        for (domain, clock) in hardware.zip(self.domains.iter()) {
            let labels = vec![("domain", domain.name.clone())];
            metrics.push(metric::FREQ_STALL_TIME.value("sum", labels, ms(clock.stood_ns)));
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::board::FlatBoard;

    const LITTLE: ClockDomainId = ClockDomainId(0);
    const US: Ns = 1_000;

    /// Asks a clock of juno-r2 for frequencies at given times (us after the start), and tells when it runs at which.
    fn asked(switching: &str, asks: &[(Ns, Khz)]) -> Vec<(Ns, Khz)> {
        let machine = format!("juno-r2:{switching}");
        let kernel = "linux-6.12:cpufreq=performance";
        let scenario = Scenario::new(&machine, kernel, "periodic", Some(1_000_000_000));
        let scenario = scenario.unwrap_or_else(|faults| panic!("{faults}"));
        let mut twin: Twin<FlatBoard> = scenario.twin::<FlatBoard>(1);
        twin.step(&mut ());
        let start = 20_000 * US;
        let mut seen = vec![(0, twin.settled[LITTLE])];
        let mut asks = asks.iter().peekable();
        loop {
            let (next_at, _) = twin.board.next().expect("the run has not ended");
            let due = asks.next_if(|(at, _)| start + at * US <= next_at);
            if let Some((at, khz)) = due {
                twin.now = start + at * US;
                twin.domains[LITTLE].requested = *khz;
                let settle = twin.machine.domains[LITTLE].switching.settle_ns;
                twin.retarget(LITTLE, settle);
                continue;
            }
            if next_at > start + 10_000 * US {
                break;
            }
            let before = twin.settled[LITTLE];
            assert!(twin.step(&mut ()));
            if twin.settled[LITTLE] != before {
                seen.push(((twin.now - start) / US, twin.settled[LITTLE]));
            }
        }
        assert!(asks.next().is_none(), "all have been asked for");
        seen
    }

    /// Frequencies in the order in which the clock had them.
    fn order(switching: &str, asks: &[(Ns, Khz)]) -> Vec<Khz> {
        asked(switching, asks).into_iter().map(|(_, khz)| khz).collect()
    }

    const LOW: Khz = 450_000;
    const MIDDLE: Khz = 800_000;
    const HIGH: Khz = 950_000;

    /// Down, and then up and down again while that is under way; raising takes 200 us + 180 mV / 0.1 mV/us.
    #[test]
    fn what_becomes_of_late_requests() {
        let slow = |late: &str| format!("settle_us=200,slew_uv_per_us=100,late_requests={late}");
        let asks = [(0, LOW), (2_000, HIGH), (2_500, MIDDLE), (2_600, LOW)];
        for (late, expected) in [
            // The newest takes the place of what is under way: nothing is left to do.
            ("replace", vec![HIGH, LOW]),
            ("wait", vec![HIGH, LOW, HIGH, LOW]),
            ("queue", vec![HIGH, LOW, HIGH, MIDDLE, LOW]),
            // What raises comes last, and stays.
            ("overtake", vec![HIGH, LOW, MIDDLE, HIGH]),
        ] {
            assert_eq!(order(&slow(late), &asks), expected, "{late}");
        }
    }

    /// A request that is taken back while it waits is never carried out.
    #[test]
    fn a_request_that_waits_can_be_replaced() {
        let asks = [(0, LOW), (100, MIDDLE), (150, LOW)];
        assert_eq!(order("settle_us=200,late_requests=wait", &asks), [HIGH, LOW]);
        assert_eq!(order("settle_us=200,late_requests=queue", &asks), [HIGH, LOW, MIDDLE, LOW]);
    }
}
