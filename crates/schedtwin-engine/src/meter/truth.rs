// SPDX-License-Identifier: GPL-2.0-or-later
//! The activity of the silicon, and the energy that it took: the truth side of the meter.
//!
//! # Idea
//!
//! Power is piecewise constant: it changes only when a CPU's activity, its domain's operating point
//! (OPP), or what its domain depends on changes. So nothing is multiplied while the run goes on.
//! Nanoseconds are counted in a table of integers, one cell per (CPU, OPP, column, activity), and energy
//! is a sum over that table at the end. µW · ns = 10⁻¹⁵ J, so femtojoules (fJ) in 128 bits hold every
//! energy exactly.
//!
//! # Terms
//!
//! * slot: an activity as a column of the table: active (at, below or above what the CPU needs, see `need.rs`), polling, and
//!   per idle state s entering, in it, exiting.
//! * executes: does anything but stay in an idle state; a CPU that waits for its package executes:
//!   all but itself is on for it.
//! * second: a hardware thread while another one of its core does as much or more, see *A core of several threads*.
//! * deep: an idle state that lets the domain's static power go off.
//! * awake: a domain with at least one CPU that is not in a deep state; of a domain that depends
//!   on others, also while one of theirs is not: what is static about it is shared.
//! * column: the vote that a domain's power depends on, see [`super::MeterDependence`]; one column where
//!   there is no dependence.
//! * row: an OPP and a column, `opp * columns + column`.
//! * window: from the end of the warm-up to the end of the run. Only what happens in it counts; a
//!   segment across its start counts from there.
//!
//! # Energy of a domain
//!
//! ```text
//!   Σ CPU, row:  active_uw · (active + entering + exiting)
//!              + share of wfi_uw or active_uw · (rest, waiting for its package, polling)
//! + Σ CPU, idle state: entry, exit and abort energy · how often
//! + Σ row: static_uw · time at it while a CPU executes + idle_static_uw · time awake while none does
//! + off_uw · time not awake
//! ```
//!
//! An entry is paid on arrival in a state, its exit on leaving idleness from it, an abort when
//! `Entering` ends in anything but an idle state. If a CPU's idle state turns into another one (the
//! cluster powers down or up around it), deepening pays the deeper entry, the reverse the deeper
//! exit.
//!
//! # A core of several threads
//!
//! The thread that does most (executing, then polling, then the shallowest idle state; of equal
//! ones the lowest CPU) is the core's first and draws in full. The others are second: they draw a
//! share of their power while they execute or poll, and nothing while idle. Each CPU has its
//! columns
//! twice, as first and as second, so its times are exact in either place; its energy is its share
//! of the core's by that rule.
//!
//! # Differences
//!
//! A polling state is always idle state 0, as on x86; its residency is the time spent polling.
//! Power does not depend on temperature, and static power not on which deep states the domain's sleeping CPUs
//! are in.

use super::columns::{
    SLOT_ACTIVE, SLOT_ACTIVE_OVER, SLOT_ACTIVE_UNDER, SLOT_IDLE, SLOT_POLLING, SLOTS_PER_STATE,
    active_slot, cell_powers, slot_of, slot_uw, slots_of, width_of,
};
use super::distribution::Distribution;
use super::power_domain::PowerTruth;
use super::visits::{Visits, count_visit, visit_pj};
use super::{Activity, MeterSetup};
use schedtwin_types::arena::Arena;
use schedtwin_types::{ClockDomainId, CpuId, Khz, Ns, PowerDomainId, PowerSource};
use std::cell::Cell;

/// Femtojoules in a picojoule.
const FJ_PER_PJ: u128 = 1_000;

/// The present activity of one CPU.
#[derive(Clone, Debug)]
struct CpuTruth {
    activity: Activity,
    since: Ns,
    domain: ClockDomainId,
    /// First cell of the CPU in `Truth::ns`; a row per OPP, `width` columns.
    base: usize,
    width: usize,
    /// Columns for one place in the core: all of them, or where it has other threads half of them.
    slots: usize,
    /// It is second in its core.
    second: bool,
    /// The cell that time goes to now.
    cell: usize,
    /// Index of its idle state 0 in `Truth::visits`, and how many it has.
    states: usize,
    state_count: usize,
    /// Bit per idle state: whether it is deep.
    deep: u32,
    /// Index of the operating point that it needs, and the column of executing that follows from it.
    need: usize,
    active: usize,
}

/// The present activity of one frequency domain.
#[derive(Clone, Debug)]
pub(super) struct DomainTruth {
    cpus: Vec<usize>,
    opp: usize,
    /// The column of the present vote, and how many there are.
    column: usize,
    columns: usize,
    /// CPUs that are not in a deep state, those of the domains it depends on included.
    awake: usize,
    /// CPUs that execute; kept only where `tracked`.
    executing: usize,
    /// Whether power depends on `executing`: its own, or that of a domain which depends on this one.
    tracked: bool,
    /// Domains whose power depends on this one.
    dependents: Vec<ClockDomainId>,
    since: Ns,
    /// Per OPP: time at it.
    pub(super) opp_ns: Vec<Ns>,
    /// Per row: time awake with a CPU executing, and with none. Where that makes no difference all of it
    /// is in the first.
    executing_ns: Vec<Ns>,
    resting_ns: Vec<Ns>,
    /// Time not awake.
    off_ns: Ns,
    /// Changes of the OPP in the window.
    pub(super) transitions: u64,
    /// When the present OPP was settled.
    settled_at: Ns,
    /// Per row: own power while off, idle and executing, µW; empty unless heat is wanted.
    level_uw: Vec<[u64; 3]>,
    /// The energy that it and its CPUs have turned into heat since that was last taken, fJ.
    heat_fj: u128,
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
    pub(super) domains: Arena<ClockDomainId, DomainTruth>,
    pub(super) power_domains: Arena<PowerDomainId, PowerTruth>,
    ns: Vec<Ns>,
    /// Power of each cell, µW.
    cell_uw: Vec<u64>,
    /// Whether heat is wanted.
    heats: bool,
    visits: Vec<Visits>,
    /// All heat that was taken, fJ.
    taken_fj: u128,
    /// Energy at the last `verify`: it must never fall.
    verified_fj: Cell<u128>,
}

impl Truth {
    pub(super) fn new(setup: &MeterSetup) -> Truth {
        let mut cells = 0;
        let mut states = 0;
        let mut cpus = Vec::with_capacity(setup.cpus.len());
        for cpu in &setup.cpus {
            assert!(cpu.domain.index() < setup.domains.len(), "a CPU names a domain that exists");
            assert!(cpu.idle_states.len() <= 32, "deep states are bits of 32");
            let deep = cpu.idle_states.iter().enumerate();
            let deep = deep.map(|(index, state)| u32::from(state.deep) << index).sum();
            let (slots, width) = (slots_of(cpu), width_of(cpu));
            let second = cpu.threads.first().is_some_and(|first| *first != cpus.len());
            cpus.push(CpuTruth {
                activity: Activity::Active,
                since: 0,
                domain: cpu.domain,
                base: cells,
                width,
                slots,
                second,
                cell: cells + SLOT_ACTIVE + if second { slots } else { 0 },
                states,
                state_count: cpu.idle_states.len(),
                deep,
                need: 0,
                active: SLOT_ACTIVE,
            });
            cells += width * setup.domains[cpu.domain].rows().len();
            states += cpu.idle_states.len();
        }
        let members = |domain: ClockDomainId| -> Vec<usize> {
            (0..setup.cpus.len()).filter(|c| setup.cpus[*c].domain == domain).collect()
        };
        let voters = |domain: ClockDomainId| -> &[ClockDomainId] {
            setup.domains[domain].dependence.as_ref().map_or(&[], |d| &d.voters)
        };
        let domains = setup.domains.iter_ids().map(|(id, domain)| {
            assert!(!domain.opps.is_empty(), "a domain has an operating point");
            let columns = match &domain.dependence {
                Some(d) => d.voters.iter().map(|v| setup.domains[*v].opps.len()).sum(),
                None => 1,
            };
            assert_eq!(domain.rows().len(), domain.opps.len() * columns, "power for every vote");
            let cpus = members(id);
            let dependents: Vec<ClockDomainId> =
                setup.domains.ids().filter(|d| voters(*d).contains(&id)).collect();
            DomainTruth {
                awake: cpus.len() + voters(id).iter().map(|v| members(*v).len()).sum::<usize>(),
                executing: cpus.len(),
                tracked: !dependents.is_empty()
                    || domain.rows().iter().any(|o| o.idle_static_uw != o.static_uw),
                dependents,
                cpus,
                opp: 0,
                column: 0,
                columns,
                since: 0,
                opp_ns: vec![0; domain.opps.len()],
                executing_ns: vec![0; domain.rows().len()],
                resting_ns: vec![0; domain.rows().len()],
                off_ns: 0,
                transitions: 0,
                settled_at: 0,
                level_uw: if setup.heats { level_powers(domain) } else { Vec::new() },
                heat_fj: 0,
                pending: None,
                update_latency: Distribution::new(),
            }
        });
        let mut truth = Truth {
            window_start: setup.warmup_ns,
            now: 0,
            domains: domains.collect(),
            power_domains: setup.power_domains.iter().map(PowerTruth::new).collect(),
            cpus,
            ns: vec![0; cells],
            cell_uw: cell_powers(setup),
            heats: setup.heats,
            taken_fj: 0,
            visits: vec![Visits::default(); states],
            verified_fj: Cell::new(0),
        };
        for domain in truth.domains.ids() {
            truth.vote_again(setup, 0, domain);
        }
        truth
    }

    /// From `at` on, `cpu` does `activity`. Returns whether that is news.
    #[inline]
    pub(super) fn cpu_activity(
        &mut self,
        setup: &MeterSetup,
        at: Ns,
        cpu: CpuId,
        activity: Activity,
    ) -> bool {
        let index = cpu.index();
        let before = self.cpus[index].activity;
        if before == activity {
            return false;
        }
        self.advance(at);
        self.close_cpu(index, at);
        let slot = slot_of(activity);
        let truth = &mut self.cpus[index];
        assert!(slot < truth.slots, "cpu{index} has no idle state for {activity:?}");
        truth.activity = activity;
        let was_deep = is_deep(truth.deep, before);
        let is_deep = is_deep(truth.deep, activity);
        if at >= self.window_start {
            count_visit(&mut self.visits[truth.states..][..truth.state_count], before, activity);
        }
        let domain_index = truth.domain;
        let domain = &mut self.domains[domain_index];
        if !domain.level_uw.is_empty() {
            let pj = visit_pj(&setup.cpus[index].idle_states, before, activity);
            domain.heat_fj += u128::from(pj) * FJ_PER_PJ;
        }
        truth.cell = truth.cell_in(domain.row());
        if !setup.cpus[index].threads.is_empty() {
            self.settle_core(&setup.cpus[index].threads, at);
        }
        let domain = &mut self.domains[domain_index];
        if was_deep != is_deep {
            close_domain(domain, self.window_start, at);
            count(&mut domain.awake, !is_deep);
            for at_dependent in 0..domain.dependents.len() {
                let dependent = self.domains[domain_index].dependents[at_dependent];
                let dependent = &mut self.domains[dependent];
                close_domain(dependent, self.window_start, at);
                count(&mut dependent.awake, !is_deep);
            }
        }
        if self.domains[domain_index].tracked && executes(before) != executes(activity) {
            let domain = &mut self.domains[domain_index];
            close_domain(domain, self.window_start, at);
            count(&mut domain.executing, executes(activity));
            // The first and the last that execute begin and end the domain's vote.
            if domain.executing == usize::from(executes(activity)) {
                self.dependents_vote_again(setup, at, domain_index);
            }
        }
        true
    }

    /// Settles again which thread of a core does most, after a possible change.
    #[inline(never)]
    fn settle_core(&mut self, threads: &[usize], at: Ns) {
        let least = |thread: &&usize| idleness(self.cpus[**thread].activity);
        let first = *threads.iter().min_by_key(least).expect("a core has threads");
        for thread in threads {
            let second = *thread != first;
            if self.cpus[*thread].second != second {
                self.close_cpu(*thread, at);
                let truth = &mut self.cpus[*thread];
                truth.second = second;
                truth.cell = truth.cell_in(self.domains[truth.domain].row());
            }
        }
    }

    /// The vote of `domain` has changed.
    fn dependents_vote_again(&mut self, setup: &MeterSetup, at: Ns, domain: ClockDomainId) {
        for index in 0..self.domains[domain].dependents.len() {
            self.vote_again(setup, at, self.domains[domain].dependents[index]);
        }
    }

    /// The column that the present votes choose for a domain's power.
    fn column(&self, setup: &MeterSetup, domain: ClockDomainId) -> usize {
        let Some(dependence) = &setup.domains[domain].dependence else { return 0 };
        let (mut first, mut largest, mut column) = (0, None, 0);
        for voter in &dependence.voters {
            let (truth, opps) = (&self.domains[*voter], &setup.domains[*voter].opps);
            let vote = (truth.executing > 0).then(|| opps[truth.opp].active_uw);
            if vote > largest {
                (largest, column) = (vote, first + truth.opp);
            }
            first += opps.len();
        }
        column
    }

    /// Books what was and goes on in the column that the votes choose now.
    fn vote_again(&mut self, setup: &MeterSetup, at: Ns, domain: ClockDomainId) {
        let column = self.column(setup, domain);
        if column != self.domains[domain].column {
            self.close_cpus(domain, at);
            close_domain(&mut self.domains[domain], self.window_start, at);
            self.domains[domain].column = column;
            self.point_cells(domain);
        }
    }

    fn close_cpus(&mut self, domain: ClockDomainId, at: Ns) {
        for member in 0..self.domains[domain].cpus.len() {
            self.close_cpu(self.domains[domain].cpus[member], at);
        }
    }

    /// Has the CPUs of a domain book to its present row.
    fn point_cells(&mut self, domain: ClockDomainId) {
        let domain = &self.domains[domain];
        for member in &domain.cpus {
            let cpu = &mut self.cpus[*member];
            cpu.active = active_slot(cpu.need, domain.opp);
            cpu.cell = cpu.cell_in(domain.row());
        }
    }

    /// From `at` on, `cpu` needs operating point `opp`.
    pub(super) fn cpu_needs(&mut self, at: Ns, cpu: CpuId, opp: usize) {
        let index = cpu.index();
        let truth = &mut self.cpus[index];
        let domain = &self.domains[truth.domain];
        (truth.need, truth.active) = (opp, active_slot(opp, domain.opp));
        let cell = truth.cell_in(domain.row());
        if cell != truth.cell {
            self.advance(at);
            self.close_cpu(index, at);
            self.cpus[index].cell = cell;
        }
    }

    /// From `at` on, `domain` runs at `opp`. Returns whether that is news.
    pub(super) fn domain_opp(
        &mut self,
        setup: &MeterSetup,
        at: Ns,
        domain: ClockDomainId,
        opp: usize,
    ) -> bool {
        if self.domains[domain].opp == opp {
            return false;
        }
        self.advance(at);
        self.close_cpus(domain, at);
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
        self.point_cells(domain);
        self.dependents_vote_again(setup, at, domain);
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
        domain: ClockDomainId,
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
    pub(super) fn frequency_overridden(&mut self, domain: ClockDomainId) {
        self.domains[domain].pending = None;
    }

    /// Books everything up to `end`.
    pub(super) fn close(&mut self, end: Ns) {
        self.advance(end);
        for cpu in 0..self.cpus.len() {
            self.close_cpu(cpu, end);
        }
        for domain in self.domains.iter_mut() {
            close_domain(domain, self.window_start, end);
        }
        for domain in self.power_domains.iter_mut() {
            domain.close(self.window_start, end);
        }
    }

    /// From `at` on, `domain` is in `state`; `None`: it is on.
    pub(super) fn power_domain(
        &mut self,
        setup: &MeterSetup,
        at: Ns,
        domain: PowerDomainId,
        state: Option<u8>,
    ) {
        self.advance(at);
        let state = state.map(usize::from);
        let start = self.window_start;
        self.power_domains[domain].enter(&setup.power_domains[domain], start, at, state);
    }

    /// Hands out the heat since the last call, by frequency domain, then by power domain.
    pub(super) fn take_heat(&mut self, at: Ns, mut take: impl FnMut(PowerSource, u128)) {
        self.close(at);
        for domain in self.domains.ids() {
            let fj = std::mem::take(&mut self.domains[domain].heat_fj);
            self.taken_fj += fj;
            take(PowerSource::Clock(domain), fj);
        }
        for domain in self.power_domains.ids() {
            let fj = std::mem::take(&mut self.power_domains[domain].heat_fj);
            self.taken_fj += fj;
            take(PowerSource::PowerDomain(domain), fj);
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
        if self.heats {
            self.domains[truth.domain].heat_fj +=
                energy(self.cell_uw[truth.cell], at - truth.since);
        }
        truth.since = at;
    }

    /// Booked time of `cpu` in `slot`, per OPP.
    fn slot_ns(&self, cpu: usize, slot: usize) -> impl Iterator<Item = Ns> + '_ {
        let truth = &self.cpus[cpu];
        let domain = &self.domains[truth.domain];
        let (opps, columns) = (domain.opp_ns.len(), domain.columns);
        let cells = move |row: usize| {
            let first = truth.base + row * truth.width + slot;
            (first..truth.base + (row + 1) * truth.width).step_by(truth.slots)
        };
        let of_row = move |row: usize| cells(row).map(|cell| self.ns[cell]).sum::<Ns>();
        (0..opps).map(move |opp| (opp * columns..(opp + 1) * columns).map(of_row).sum())
    }

    /// Booked time that `cpu` executed code, per OPP.
    pub(super) fn active_ns(&self, cpu: usize) -> impl Iterator<Item = Ns> + '_ {
        let suited = self.slot_ns(cpu, SLOT_ACTIVE);
        suited
            .zip(self.under_ns(cpu))
            .zip(self.over_ns(cpu))
            .map(|((at, below), over)| at + below + over)
    }

    /// The part of it below the OPP that the CPU needed.
    pub(super) fn under_ns(&self, cpu: usize) -> impl Iterator<Item = Ns> + '_ {
        self.slot_ns(cpu, SLOT_ACTIVE_UNDER)
    }

    /// The part of it above the OPP that the CPU needed.
    pub(super) fn over_ns(&self, cpu: usize) -> impl Iterator<Item = Ns> + '_ {
        self.slot_ns(cpu, SLOT_ACTIVE_OVER)
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
        let hardware = &setup.cpus[cpu];
        let mut fj = 0;
        for (row, opp) in setup.domains[truth.domain].rows().iter().enumerate() {
            let row = &self.ns[truth.base + row * truth.width..][..truth.width];
            for (slot, ns) in row.iter().enumerate().filter(|(_, ns)| **ns > 0) {
                fj += energy(slot_uw(hardware, slot, opp), *ns);
            }
        }
        for (index, state) in states.iter().enumerate() {
            fj += self.visits(cpu, index).pj(state) * FJ_PER_PJ;
        }
        fj
    }

    /// Energy of power domain `domain` by itself, in fJ, as far as booked.
    pub(super) fn power_domain_fj(&self, setup: &MeterSetup, domain: PowerDomainId) -> u128 {
        self.power_domains[domain].fj(&setup.power_domains[domain])
    }

    /// The present row of a domain: its operating point and the column of the vote.
    pub(super) fn row_of(&self, domain: ClockDomainId) -> usize {
        self.domains[domain].row()
    }

    /// Energy of `domain` and its CPUs, in fJ, as far as booked.
    pub(super) fn domain_fj(&self, setup: &MeterSetup, domain: ClockDomainId) -> u128 {
        let truth = &self.domains[domain];
        let cpus: u128 = truth.cpus.iter().map(|cpu| self.cpu_fj(setup, *cpu)).sum();
        let rows = setup.domains[domain].rows().iter().enumerate();
        let own: u128 = rows
            .map(|(row, o)| {
                energy(o.static_uw, truth.executing_ns[row])
                    + energy(o.idle_static_uw, truth.resting_ns[row])
            })
            .sum();
        cpus + own + energy(setup.domains[domain].off_uw, truth.off_ns)
    }

    /// The power of `domain` and its CPUs at this instant, µW.
    pub(super) fn domain_power_uw(&self, setup: &MeterSetup, domain: ClockDomainId) -> u64 {
        let truth = &self.domains[domain];
        let opp = &setup.domains[domain].rows()[truth.row()];
        let mut power = match truth.level() {
            Level::Off => setup.domains[domain].off_uw,
            Level::Resting => opp.idle_static_uw,
            Level::Executing => opp.static_uw,
        };
        for cpu in &truth.cpus {
            power += self.cell_uw[self.cpus[*cpu].cell];
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
            assert_eq!(cpu.active, active_slot(cpu.need, domain.opp), "cpu{index}: need");
            assert_eq!(
                cpu.cell,
                cpu.cell_in(domain.row()),
                "cpu{index} books to the cell of what it does"
            );
            let mut booked = 0;
            for opp in 0..domain.opp_ns.len() {
                let of_opp = cpu.width * domain.columns;
                let rows: Ns = self.ns[cpu.base + opp * of_opp..][..of_opp].iter().sum();
                let of_cpu = rows + if opp == domain.opp { open(cpu.since) } else { 0 };
                let of_domain =
                    domain.opp_ns[opp] + if opp == domain.opp { open(domain.since) } else { 0 };
                assert_eq!(of_cpu, of_domain, "cpu{index} shares its domain's clock");
                booked += of_cpu;
            }
            assert_eq!(booked, span, "cpu{index}: its activities fill the span");
        }
        for (index, cpu) in setup.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.threads.is_empty())
        {
            let most = cpu.threads.iter().map(|t| idleness(self.cpus[*t].activity)).min();
            let mine = Some(idleness(self.cpus[index].activity));
            let firsts = cpu.threads.iter().filter(|t| !self.cpus[**t].second).count();
            assert_eq!(firsts, 1, "cpu{index}: its core has one first thread");
            assert!(self.cpus[index].second || mine == most, "cpu{index}: first in its core");
        }
        let deep = |cpu: &&usize| {
            matches!(self.cpus[**cpu].activity, Activity::Idle(s)
                if setup.cpus[**cpu].idle_states[s as usize].deep)
        };
        let awake =
            |domain: &DomainTruth| domain.cpus.len() - domain.cpus.iter().filter(deep).count();
        for (id, domain) in self.domains.iter_ids() {
            let booked = domain.opp_ns.iter().sum::<Ns>() + open(domain.since);
            assert_eq!(booked, span, "{id:?}: its operating points fill the span");
            let levels: Ns = domain.executing_ns.iter().chain(&domain.resting_ns).sum();
            let levels = levels + domain.off_ns + open(domain.since);
            assert_eq!(levels, span, "{id:?}: executing, resting and off fill the span");
            let dependence = setup.domains[id].dependence.as_ref();
            let voters = dependence.map_or(&[][..], |d| &d.voters);
            let shared: usize = voters.iter().map(|v| awake(&self.domains[*v])).sum();
            assert_eq!(awake(domain) + shared, domain.awake, "{id:?}: awake");
            if domain.tracked {
                let executing = domain.cpus.iter().filter(|c| executes(self.cpus[**c].activity));
                assert_eq!(executing.count(), domain.executing, "{id:?}: executing");
            }
            assert_eq!(self.column(setup, id), domain.column, "{id:?}: the vote");
        }
        for (index, domain) in self.power_domains.iter().enumerate() {
            domain.verify(index, span, open(domain.since));
        }
        let fj: u128 = self.domains.ids().map(|d| self.domain_fj(setup, d)).sum();
        let own = self.power_domains.ids().map(|d| self.power_domain_fj(setup, d));
        let fj = fj + own.sum::<u128>();
        assert!(fj >= self.verified_fj.get(), "energy fell");
        self.verified_fj.set(fj);
        if setup.heats && self.window_start == 0 {
            let clocks: u128 = self.domains.iter().map(|d| d.heat_fj).sum();
            let own: u128 = self.power_domains.iter().map(|d| d.heat_fj).sum();
            assert_eq!(self.taken_fj + clocks + own, fj, "all energy becomes heat");
        }
    }
}

/// Returns the energy of `uw` over `ns`, fJ.
#[inline]
pub(super) fn energy(uw: u64, ns: Ns) -> u128 {
    u128::from(uw) * u128::from(ns)
}

/// A domain's own power by row and level, µW.
fn level_powers(domain: &super::MeterDomain) -> Vec<[u64; 3]> {
    domain.rows().iter().map(|o| [domain.off_uw, o.idle_static_uw, o.static_uw]).collect()
}

impl CpuTruth {
    /// The column that time goes to.
    #[inline]
    fn slot(&self) -> usize {
        let slot = match self.activity {
            Activity::Active => self.active,
            activity => slot_of(activity),
        };
        slot + if self.second { self.slots } else { 0 }
    }

    /// The cell that time goes to in a row.
    #[inline]
    fn cell_in(&self, row: usize) -> usize {
        self.base + row * self.width + self.slot()
    }
}

/// How little an activity has to do: the thread with the least is its core's first.
#[inline]
fn idleness(activity: Activity) -> usize {
    match activity {
        Activity::Active | Activity::Entering(_) | Activity::Exiting(_) => 0,
        Activity::Polling => 1,
        Activity::Idle(s) | Activity::Waiting(s) => 2 + s as usize,
    }
}

/// Returns whether a CPU whose deep states are the bits of `deep` is in one.
#[inline]
fn is_deep(deep: u32, activity: Activity) -> bool {
    matches!(activity, Activity::Idle(state) if deep >> state & 1 != 0)
}

/// One more or one less.
#[inline]
fn count(counter: &mut usize, more: bool) {
    if more { *counter += 1 } else { *counter -= 1 }
}

/// Returns whether a CPU is outside an idle state; it is while it enters or leaves one.
#[inline]
fn executes(activity: Activity) -> bool {
    !matches!(activity, Activity::Idle(_))
}

/// The level that a domain's own power follows.
enum Level {
    /// All CPUs are in deep states.
    Off = 0,
    /// One is not, but none executes.
    Resting,
    /// One executes, or nobody counts who does.
    Executing,
}

impl DomainTruth {
    /// The row of powers that is in force.
    #[inline]
    fn row(&self) -> usize {
        self.opp * self.columns + self.column
    }

    #[inline]
    fn level(&self) -> Level {
        match (self.awake, self.executing) {
            (0, _) => Level::Off,
            (_, 0) => Level::Resting,
            _ => Level::Executing,
        }
    }
}

/// Books the domain's time up to `at`.
#[inline]
fn close_domain(domain: &mut DomainTruth, window_start: Ns, at: Ns) {
    let ns = at.max(window_start) - domain.since.max(window_start);
    domain.opp_ns[domain.opp] += ns;
    let row = domain.row();
    if let Some(levels) = domain.level_uw.get(row) {
        domain.heat_fj += energy(levels[domain.level() as usize], at - domain.since);
    }
    match domain.level() {
        Level::Off => domain.off_ns += ns,
        Level::Resting => domain.resting_ns[row] += ns,
        Level::Executing => domain.executing_ns[row] += ns,
    }
    domain.since = at;
}
