//! What the silicon did, and the energy that it took: the truth side of the meter.
//!
//! # Idea
//!
//! Power is piecewise constant: it changes only when a CPU's activity or its domain's operating
//! point (OPP) changes. So nothing is multiplied while the run goes on. Nanoseconds are counted in
//! a table of integers, one cell per (CPU, OPP, activity), and energy is a sum over that table at
//! the end. µW · ns = 10⁻¹⁵ J, so femtojoules (fJ) in 128 bits hold every energy exactly.
//!
//! # Terms
//!
//! * slot: an activity as a column of the table: active, polling, and per idle state s entering,
//!   in it, exiting.
//! * deep: an idle state that lets the domain's static power go off.
//! * awake: a domain with at least one CPU that is not resting in a deep state.
//! * window: from the end of the warm-up to the end of the run. Only what happens in it counts; a
//!   segment across its start counts from there.
//!
//! # Energy of a domain
//!
//! ```text
//!   Σ CPU, OPP:  active_uw · (active + polling + entering + exiting)
//!              + wfi_uw · (rest in states that use the WFI curve)
//! + Σ CPU, idle state: entry, exit and abort energy · how often
//! + Σ OPP: static_uw · time awake at it
//! ```
//!
//! An entry is paid on arrival in a state, its exit on leaving idleness from it, an abort when
//! `Entering` ends in anything but rest. If a CPU's rest turns from one state into another (the
//! cluster powers down or up around it), deepening pays the deeper entry, the reverse the deeper
//! exit.
//!
//! # Differences
//!
//! A polling state is always idle state 0, as on x86; its residency is the time spent polling.
//! Power depends on the CPU's own domain only, not on other domains' frequency or on heat, and
//! static power not on which deep states the domain's sleeping CPUs are in.

use super::distribution::Distribution;
use super::{Activity, MeterSetup};
use schedtwin_types::{CpuId, Khz, Ns};
use std::cell::Cell;

/// Femtojoules in a picojoule.
const FJ_PER_PJ: u128 = 1_000;

/// Columns of the table before those of the idle states: active and polling.
const SLOT_ACTIVE: usize = 0;
const SLOT_POLLING: usize = 1;
const SLOT_IDLE: usize = 2;
/// Columns per idle state: entering, rest, exiting.
const SLOTS_PER_STATE: usize = 3;

/// What one CPU does now.
#[derive(Clone, Debug)]
struct CpuTruth {
    activity: Activity,
    since: Ns,
    domain: usize,
    /// First cell of the CPU in `Truth::ns`; a row per OPP, `width` columns.
    base: usize,
    width: usize,
    /// The cell that time goes to now.
    cell: usize,
    /// Index of its idle state 0 in `Truth::visits`, and how many it has.
    states: usize,
    state_count: usize,
    /// Bit per idle state: whether it is deep.
    deep: u32,
}

/// How often an idle state of a CPU was used, in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visits {
    pub(super) entries: u64,
    pub(super) exits: u64,
    pub(super) aborts: u64,
}

/// What one frequency domain does now.
#[derive(Clone, Debug)]
pub(super) struct DomainTruth {
    cpus: Vec<usize>,
    opp: usize,
    /// CPUs that are not resting in a deep state.
    awake: usize,
    since: Ns,
    /// Per OPP: time at it, and of that the time awake.
    pub(super) opp_ns: Vec<Ns>,
    pub(super) awake_ns: Vec<Ns>,
    /// Changes of the OPP in the window.
    pub(super) transitions: u64,
    /// When the present OPP was settled.
    settled_at: Ns,
    /// The governor's wish that the hardware has not fulfilled yet.
    pending: Option<Pending>,
    /// From the governor's wish to the settled OPP.
    pub(super) update_latency: Distribution,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    khz: Khz,
    requested_at: Ns,
}

/// The truth of all CPUs and domains.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    window_start: Ns,
    /// The time of the last call: segments come in time order.
    now: Ns,
    cpus: Vec<CpuTruth>,
    pub(super) domains: Vec<DomainTruth>,
    ns: Vec<Ns>,
    visits: Vec<Visits>,
    /// Energy at the last `verify`: it must never fall.
    verified_fj: Cell<u128>,
}

impl Truth {
    pub(super) fn new(setup: &MeterSetup) -> Truth {
        let mut cells = 0;
        let mut states = 0;
        let mut cpus = Vec::with_capacity(setup.cpus.len());
        for cpu in &setup.cpus {
            assert!(cpu.domain < setup.domains.len(), "a CPU names a domain that exists");
            assert!(cpu.idle_states.len() <= 32, "deep states are bits of 32");
            let deep = cpu.idle_states.iter().enumerate();
            let deep = deep.map(|(index, state)| u32::from(state.deep) << index).sum();
            let width = SLOT_IDLE + SLOTS_PER_STATE * cpu.idle_states.len();
            cpus.push(CpuTruth {
                activity: Activity::Active,
                since: 0,
                domain: cpu.domain,
                base: cells,
                width,
                cell: cells + SLOT_ACTIVE,
                states,
                state_count: cpu.idle_states.len(),
                deep,
            });
            cells += width * setup.domains[cpu.domain].opps.len();
            states += cpu.idle_states.len();
        }
        let domains = setup.domains.iter().enumerate().map(|(index, domain)| {
            assert!(!domain.opps.is_empty(), "a domain has an operating point");
            let members: Vec<usize> =
                (0..setup.cpus.len()).filter(|c| setup.cpus[*c].domain == index).collect();
            DomainTruth {
                awake: members.len(),
                cpus: members,
                opp: 0,
                since: 0,
                opp_ns: vec![0; domain.opps.len()],
                awake_ns: vec![0; domain.opps.len()],
                transitions: 0,
                settled_at: 0,
                pending: None,
                update_latency: Distribution::new(),
            }
        });
        Truth {
            window_start: setup.warmup_ns,
            now: 0,
            domains: domains.collect(),
            cpus,
            ns: vec![0; cells],
            visits: vec![Visits::default(); states],
            verified_fj: Cell::new(0),
        }
    }

    /// From `at` on, `cpu` does `activity`. Returns whether that is news.
    #[inline]
    pub(super) fn cpu_activity(&mut self, at: Ns, cpu: CpuId, activity: Activity) -> bool {
        let index = cpu.index();
        let before = self.cpus[index].activity;
        if before == activity {
            return false;
        }
        self.advance(at);
        self.close_cpu(index, at);
        let slot = slot_of(activity);
        let truth = &mut self.cpus[index];
        assert!(slot < truth.width, "cpu{index} has no idle state for {activity:?}");
        truth.activity = activity;
        let was_deep = is_deep(truth.deep, before);
        let is_deep = is_deep(truth.deep, activity);
        if at >= self.window_start {
            count_visit(&mut self.visits[truth.states..][..truth.state_count], before, activity);
        }
        let domain_index = truth.domain;
        let domain = &mut self.domains[domain_index];
        truth.cell = truth.base + domain.opp * truth.width + slot;
        if was_deep != is_deep {
            close_domain(domain, self.window_start, at);
            if is_deep { domain.awake -= 1 } else { domain.awake += 1 }
        }
        true
    }

    /// From `at` on, `domain` runs at `opp`. Returns whether that is news.
    pub(super) fn domain_opp(
        &mut self,
        setup: &MeterSetup,
        at: Ns,
        domain: usize,
        opp: usize,
    ) -> bool {
        if self.domains[domain].opp == opp {
            return false;
        }
        self.advance(at);
        for member in 0..self.domains[domain].cpus.len() {
            self.close_cpu(self.domains[domain].cpus[member], at);
        }
        let truth = &mut self.domains[domain];
        close_domain(truth, self.window_start, at);
        let khz = setup.domains[domain].opps[opp].khz;
        truth.opp = opp;
        truth.settled_at = at;
        // A call at time 0 sets the initial OPP.
        truth.transitions += u64::from(at >= self.window_start && at > 0);
        if let Some(pending) = truth.pending.filter(|p| p.khz == khz) {
            truth.pending = None;
            if at >= self.window_start {
                truth.update_latency.record(at.saturating_sub(pending.requested_at));
            }
        }
        for member in &self.domains[domain].cpus {
            let cpu = &mut self.cpus[*member];
            cpu.cell = cpu.base + opp * cpu.width + slot_of(cpu.activity);
        }
        true
    }

    /// The driver has taken `khz` for `domain`; the governor has wanted it since `requested_at`.
    ///
    /// The next settled OPP of that frequency answers it. A newer wish replaces an older one that
    /// was not fulfilled, which then counts nowhere; a wish for what the hardware already does
    /// counts only if it has settled since then (a switch that takes no time, or a driver that says so only
    /// when it is done).
    pub(super) fn frequency_wanted(
        &mut self,
        setup: &MeterSetup,
        domain: usize,
        khz: Khz,
        requested_at: Ns,
    ) {
        let truth = &mut self.domains[domain];
        if setup.domains[domain].opps[truth.opp].khz != khz {
            truth.pending = Some(Pending { khz, requested_at });
            return;
        }
        truth.pending = None;
        let settled_at = truth.settled_at;
        if settled_at >= requested_at && settled_at > 0 && settled_at >= self.window_start {
            truth.update_latency.record(settled_at - requested_at);
        }
    }

    /// The hardware does not follow the wish of `domain`: another domain forces more.
    pub(super) fn frequency_overridden(&mut self, domain: usize) {
        self.domains[domain].pending = None;
    }

    /// Books everything up to `end`.
    pub(super) fn close(&mut self, end: Ns) {
        self.advance(end);
        for cpu in 0..self.cpus.len() {
            self.close_cpu(cpu, end);
        }
        for domain in &mut self.domains {
            close_domain(domain, self.window_start, end);
        }
    }

    #[inline]
    fn advance(&mut self, at: Ns) {
        assert!(at >= self.now, "truth goes back from {} to {at}", self.now);
        self.now = at;
    }

    #[inline]
    fn close_cpu(&mut self, cpu: usize, at: Ns) {
        let truth = &mut self.cpus[cpu];
        self.ns[truth.cell] += at.max(self.window_start) - truth.since.max(self.window_start);
        truth.since = at;
    }

    /// Booked time of `cpu` in `slot`, per OPP.
    fn slot_ns(&self, cpu: usize, slot: usize) -> impl Iterator<Item = Ns> + '_ {
        let truth = &self.cpus[cpu];
        let opps = self.domains[truth.domain].opp_ns.len();
        (0..opps).map(move |opp| self.ns[truth.base + opp * truth.width + slot])
    }

    /// Booked time that `cpu` executed code, per OPP.
    pub(super) fn active_ns(&self, cpu: usize) -> impl Iterator<Item = Ns> + '_ {
        self.slot_ns(cpu, SLOT_ACTIVE)
    }

    /// Booked time of `cpu` in idle state `state`, entry and exit included.
    pub(super) fn state_ns(&self, cpu: usize, state: usize) -> Ns {
        let first = SLOT_IDLE + SLOTS_PER_STATE * state;
        let mut ns: Ns =
            (first..first + SLOTS_PER_STATE).map(|s| self.slot_ns(cpu, s).sum::<Ns>()).sum();
        if state == 0 {
            ns += self.slot_ns(cpu, SLOT_POLLING).sum::<Ns>();
        }
        ns
    }

    /// How often `cpu` used its idle state `state`.
    pub(super) fn visits(&self, cpu: usize, state: usize) -> Visits {
        self.visits[self.cpus[cpu].states + state]
    }

    /// Energy that `cpu` has taken by itself, in fJ, as far as booked.
    pub(super) fn cpu_fj(&self, setup: &MeterSetup, cpu: usize) -> u128 {
        let truth = &self.cpus[cpu];
        let states = &setup.cpus[cpu].idle_states;
        let mut fj = 0;
        for (row, opp) in setup.domains[truth.domain].opps.iter().enumerate() {
            let row = &self.ns[truth.base + row * truth.width..][..truth.width];
            for (slot, ns) in row.iter().enumerate() {
                let power = match slot.checked_sub(SLOT_IDLE) {
                    Some(column) if column % SLOTS_PER_STATE == 1 => {
                        states[column / SLOTS_PER_STATE].rest_uw(opp)
                    }
                    _ => opp.active_uw,
                };
                fj += u128::from(power) * u128::from(*ns);
            }
        }
        for (index, state) in states.iter().enumerate() {
            let visits = self.visits(cpu, index);
            let pj = u128::from(visits.entries) * u128::from(state.entry_energy_pj)
                + u128::from(visits.exits) * u128::from(state.exit_energy_pj)
                + u128::from(visits.aborts) * u128::from(state.abort_energy_pj);
            fj += pj * FJ_PER_PJ;
        }
        fj
    }

    /// Energy of `domain` and its CPUs, in fJ, as far as booked.
    pub(super) fn domain_fj(&self, setup: &MeterSetup, domain: usize) -> u128 {
        let truth = &self.domains[domain];
        let cpus: u128 = truth.cpus.iter().map(|cpu| self.cpu_fj(setup, *cpu)).sum();
        let opps = setup.domains[domain].opps.iter();
        let own =
            opps.zip(&truth.awake_ns).map(|(o, ns)| u128::from(o.static_uw) * u128::from(*ns));
        cpus + own.sum::<u128>()
    }

    /// The power of `domain` and its CPUs at this instant, µW.
    pub(super) fn domain_power_uw(&self, setup: &MeterSetup, domain: usize) -> u64 {
        let truth = &self.domains[domain];
        let opp = &setup.domains[domain].opps[truth.opp];
        let mut power = if truth.awake > 0 { opp.static_uw } else { 0 };
        for cpu in &truth.cpus {
            power += match self.cpus[*cpu].activity {
                Activity::Idle(s) => setup.cpus[*cpu].idle_states[s as usize].rest_uw(opp),
                _ => opp.active_uw,
            };
        }
        power
    }

    /// Recomputes every sum that is kept, as of `now`.
    pub(super) fn verify(&self, setup: &MeterSetup, now: Ns) {
        assert!(now >= self.now, "verified at {now}, before {}", self.now);
        let span = now.max(self.window_start) - self.window_start;
        let open = |since: Ns| now.max(self.window_start) - since.max(self.window_start);
        for (index, cpu) in self.cpus.iter().enumerate() {
            let domain = &self.domains[cpu.domain];
            let cell = cpu.base + domain.opp * cpu.width + slot_of(cpu.activity);
            assert_eq!(cpu.cell, cell, "cpu{index} books to the cell of what it does");
            let mut booked = 0;
            for opp in 0..domain.opp_ns.len() {
                let row: Ns = self.ns[cpu.base + opp * cpu.width..][..cpu.width].iter().sum();
                let of_cpu = row + if opp == domain.opp { open(cpu.since) } else { 0 };
                let of_domain =
                    domain.opp_ns[opp] + if opp == domain.opp { open(domain.since) } else { 0 };
                assert_eq!(of_cpu, of_domain, "cpu{index} shares its domain's clock");
                booked += of_cpu;
            }
            assert_eq!(booked, span, "cpu{index}: its activities fill the span");
        }
        for (index, domain) in self.domains.iter().enumerate() {
            let booked = domain.opp_ns.iter().sum::<Ns>() + open(domain.since);
            assert_eq!(booked, span, "domain {index}: its operating points fill the span");
            let deep = domain.cpus.iter().filter(|cpu| {
                matches!(self.cpus[**cpu].activity, Activity::Idle(s)
                    if setup.cpus[**cpu].idle_states[s as usize].deep)
            });
            assert_eq!(domain.cpus.len() - deep.count(), domain.awake, "domain {index}: awake");
            for (awake, all) in domain.awake_ns.iter().zip(&domain.opp_ns) {
                assert!(awake <= all, "domain {index} is awake for longer than it exists");
            }
        }
        let fj: u128 = (0..self.domains.len()).map(|d| self.domain_fj(setup, d)).sum();
        assert!(fj >= self.verified_fj.get(), "energy fell");
        self.verified_fj.set(fj);
    }
}

/// The column of an activity.
#[inline]
fn slot_of(activity: Activity) -> usize {
    match activity {
        Activity::Active => SLOT_ACTIVE,
        Activity::Polling => SLOT_POLLING,
        Activity::Entering(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize,
        Activity::Idle(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize + 1,
        Activity::Exiting(s) => SLOT_IDLE + SLOTS_PER_STATE * s as usize + 2,
    }
}

/// Whether a CPU whose deep states are the bits of `deep` rests in one.
#[inline]
fn is_deep(deep: u32, activity: Activity) -> bool {
    matches!(activity, Activity::Idle(state) if deep >> state & 1 != 0)
}

/// Counts what the change from `before` to `after` means for the idle states of a CPU.
#[inline]
fn count_visit(visits: &mut [Visits], before: Activity, after: Activity) {
    match (before, after) {
        (Activity::Idle(from), Activity::Idle(to)) if to < from => visits[from as usize].exits += 1,
        (_, Activity::Idle(to)) => visits[to as usize].entries += 1,
        (Activity::Idle(from), _) => visits[from as usize].exits += 1,
        (Activity::Entering(into), _) => visits[into as usize].aborts += 1,
        _ => {}
    }
    if let Some(poll) = visits.first_mut() {
        poll.entries += u64::from(after == Activity::Polling);
        poll.exits += u64::from(before == Activity::Polling);
    }
}

/// Books the domain's time up to `at`.
#[inline]
fn close_domain(domain: &mut DomainTruth, window_start: Ns, at: Ns) {
    let ns = at.max(window_start) - domain.since.max(window_start);
    domain.opp_ns[domain.opp] += ns;
    if domain.awake > 0 {
        domain.awake_ns[domain.opp] += ns;
    }
    domain.since = at;
}
