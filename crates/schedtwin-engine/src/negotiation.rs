// SPDX-License-Identifier: GPL-2.0-or-later
//! Idle states above single CPUs: the idle state that each CPU is really in.
//!
//! One CPU cannot turn a cluster or a package off. There are two ways to do it together:
//!
//! ```text
//!  asked for (a PSCI platform): the deeper state is in the CPU's table
//!    cpu4  asks for cluster-sleep ──cpu-sleep──┬──cluster-sleep──┬──cpu-sleep────────
//!    cpu5  runs ........... asks for it too ───┴──cluster-sleep──┴──leaves it, runs
//!
//!  unasked (firmware, a power unit): the deeper state follows from what the CPUs are in
//!    cpu4  c2 ────────────────────────────────────────────────────────────────────
//!    cpu5  runs ............. c2 ──────────────┐ wakes
//!    cluster    on ..............off ──────────┴ on: cpu5 waits for that, too
//! ```
//!
//! 1. A CPU's request counts once it has arrived, after the entry latency of the state it asked for.
//! 2. A shared state holds for a CPU that asked for it, or for a deeper one, while all who share it have asked for one at
//!    least as deep; of several the deepest. Otherwise the CPU is in the deepest state of its own
//!    that is no deeper than its request.
//! 3. A power domain is in the deepest of its states for which every CPU of it is deep enough;
//!    where the state has a residency, only if no CPU has a timer within that time. That is looked
//!    at when a CPU arrives.
//! 4. The first to leave turns on what was off: it pays the exit latency of its own state and of each power domain
//!    around it that was not on; the others are back in their own states at once. Who is woken before all is back waits
//!    for the rest of that time.
//!
//! The kernel sees its own request: its statistics know nothing of this.
//!
//! References: PSCI, platform-coordinated mode; MWAIT hints and package C-states.
//! Differences: a request counts on arrival, not from the call on: with two CPUs on their way in at once
//! the cluster goes off up to an entry latency later than in firmware that decides at the second call. A power
//! domain enters at once, and from the first wakeup on it draws as if it were on.

use schedtwin_machine::{Machine, Shared};
use schedtwin_types::arena::Arena;
use schedtwin_types::{CpuId, Ns, PowerDomainId};

/// The requests of the CPUs, and the power domains that follow from their idle states.
#[derive(Clone, Debug)]
pub struct Negotiation {
    /// Per CPU: the state it asked for and has arrived in, if it is idle.
    asked: Vec<Option<u8>>,
    /// Per CPU: the CPUs whose idle state may depend on its request, itself included; none without
    /// shared states.
    sharers: Vec<Vec<CpuId>>,
    /// Per CPU: the idle state that it is really in, kept only where there are power domains.
    rests: Vec<Option<u8>>,
    /// Per CPU: the power domains around it.
    around: Vec<Vec<PowerDomainId>>,
    domains: Arena<PowerDomainId, DomainRest>,
}

/// A power domain's CPUs.
#[derive(Clone, Debug)]
struct DomainRest {
    /// Per state: the number of CPUs that are deep enough.
    deep_enough: Vec<usize>,
    /// The state that holds.
    state: Option<u8>,
    /// When it was, or will be, on again after its last state.
    back_at: Ns,
}

impl Negotiation {
    /// All CPUs run.
    pub fn new(machine: &Machine) -> Negotiation {
        let cpus = || (0..machine.nr_cpus()).map(|c| CpuId(c as u16));
        let sharers = |cpu: CpuId| {
            let widest = machine.idle_states(cpu).iter().map(|s| s.shared).max();
            let widest = widest.unwrap_or(Shared::Own);
            cpus().filter(|other| shares(machine, cpu, *other, widest)).collect()
        };
        let around = |cpu: CpuId| {
            let domains = machine.power_domains.iter_ids();
            domains.filter(|(_, d)| d.cpus.contains(&cpu)).map(|(id, _)| id).collect()
        };
        let domain = |domain: &schedtwin_machine::PowerDomain| DomainRest {
            deep_enough: vec![0; domain.states.len()],
            state: None,
            back_at: 0,
        };
        Negotiation {
            asked: vec![None; machine.nr_cpus()],
            sharers: cpus().map(sharers).collect(),
            rests: vec![None; machine.nr_cpus()],
            around: cpus().map(around).collect(),
            domains: machine.power_domains.iter().map(domain).collect(),
        }
    }

    /// Whether the CPU has shared states: otherwise every request is granted.
    #[inline]
    pub fn negotiates(&self, cpu: CpuId) -> bool {
        !self.sharers[cpu.index()].is_empty()
    }

    /// The CPUs whose idle state may depend on the request of `cpu`, itself included.
    pub fn sharers(&self, cpu: CpuId) -> &[CpuId] {
        &self.sharers[cpu.index()]
    }

    /// `cpu` has arrived in the state that it asked for, or has left it (`None`). Afterwards
    /// [`Negotiation::rests_in`] may say otherwise of any CPU that shares states with it.
    pub fn ask(&mut self, cpu: CpuId, state: Option<u8>) {
        self.asked[cpu.index()] = state;
    }

    /// Whether a request of `cpu` counts now.
    pub fn has_asked(&self, cpu: CpuId) -> bool {
        self.asked[cpu.index()].is_some()
    }

    /// The idle state that a CPU is really in, `None` if it is not idle.
    pub fn rests_in(&self, machine: &Machine, cpu: CpuId) -> Option<u8> {
        let asked = self.asked[cpu.index()]?;
        let core = |cpu: CpuId| &machine.core_types[machine.cpus[cpu.index()].core_type];
        let granted = |state: &u8| {
            let shared = core(cpu).idle_states[*state as usize].shared;
            let depth = core(cpu).depth(*state as usize);
            let agrees = |other: &CpuId| {
                let asked = self.asked[other.index()];
                asked.is_some_and(|state| core(*other).depth(state as usize) >= depth)
            };
            let mut sharers = self.sharers[cpu.index()].iter();
            sharers.all(|other| !shares(machine, cpu, *other, shared) || agrees(other))
        };
        (0..=asked).rev().find(granted)
    }

    /// Whether there are power domains at all.
    #[inline(always)]
    pub fn has_power_domains(&self) -> bool {
        !self.domains.is_empty()
    }

    /// Records that `cpu` is idle in `state` from now on, or not at all. `quiet_ns`: for how long a
    /// CPU has no timer. Tells `changed` of each power domain that changes: its number, and the
    /// state it is in now.
    pub fn rest_changed(
        &mut self,
        machine: &Machine,
        cpu: CpuId,
        state: Option<u8>,
        quiet_ns: impl Fn(CpuId) -> Ns,
        mut changed: impl FnMut(PowerDomainId, Option<u8>),
    ) {
        let before = std::mem::replace(&mut self.rests[cpu.index()], state);
        if before == state {
            return;
        }
        for index in &self.around[cpu.index()] {
            let (hardware, domain) = (&machine.power_domains[*index], &mut self.domains[*index]);
            let member = hardware.cpus.binary_search(&cpu).expect("it is around the CPU");
            let mut holds = None;
            for (number, state_of) in hardware.states.iter().enumerate() {
                let deep = |rest: Option<u8>| rest >= Some(state_of.cpus_in[member]);
                let count = &mut domain.deep_enough[number];
                *count = *count + usize::from(deep(state)) - usize::from(deep(before));
                let all = *count == hardware.cpus.len();
                let quiet = |cpu: &CpuId| quiet_ns(*cpu) >= state_of.residency_ns;
                if all && (state_of.residency_ns == 0 || hardware.cpus.iter().all(quiet)) {
                    holds = Some(number as u8);
                }
            }
            if holds != domain.state {
                domain.state = holds;
                changed(*index, holds);
            }
        }
    }

    /// How long `cpu`, which is woken at `now`, waits until all around it is on: for what others have turned on and is not
    /// back yet, and for what it turns on itself.
    pub fn wait_ns(&mut self, machine: &Machine, cpu: CpuId, now: Ns) -> Ns {
        let (mut back_at, mut turns_on) = (now, 0);
        for index in &self.around[cpu.index()] {
            let domain = &self.domains[*index];
            match domain.state {
                Some(state) => {
                    let states = &machine.power_domains[*index].states;
                    turns_on += states[state as usize].exit_latency_ns;
                }
                None => back_at = back_at.max(domain.back_at),
            }
        }
        back_at += turns_on;
        if back_at == now {
            return 0;
        }
        for index in &self.around[cpu.index()] {
            let domain = &mut self.domains[*index];
            if domain.state.is_some() {
                domain.back_at = back_at;
            }
        }
        back_at - now
    }

    /// Recomputes what is kept of the power domains.
    pub fn verify(&self, machine: &Machine) {
        for (domain, hardware) in self.domains.iter().zip(&machine.power_domains) {
            for (number, state) in hardware.states.iter().enumerate() {
                let deep = |(cpu, least): &(&CpuId, &u8)| {
                    self.rests[cpu.index()].is_some_and(|rest| rest >= **least)
                };
                let count = hardware.cpus.iter().zip(&state.cpus_in).filter(deep).count();
                assert_eq!(count, domain.deep_enough[number], "{}: deep enough", hardware.name);
                let holds = domain.state == Some(number as u8);
                assert!(!holds || count == hardware.cpus.len(), "{}: holds", hardware.name);
            }
        }
    }
}

/// Whether `other` shares states of this kind with `cpu`.
fn shares(machine: &Machine, cpu: CpuId, other: CpuId, shared: Shared) -> bool {
    let (one, two) = (&machine.cpus[cpu.index()], &machine.cpus[other.index()]);
    match shared {
        Shared::Own => false,
        Shared::Core => one.core == two.core,
        Shared::Cluster => one.domain == two.domain,
        Shared::Package => one.package == two.package,
    }
}

#[cfg(test)]
mod tests;
