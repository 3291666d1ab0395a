// SPDX-License-Identifier: GPL-2.0-or-later
//! From need to clock: how long a frequency domain takes to give what its CPUs need.
//!
//! # Terms
//!
//! * need of a CPU: the lowest efficient frequency that gives what the governor would want of it at this moment, headroom
//!   and clamps included (`crates/schedtwin-kernel/src/sched/demand/need.rs`). Need of a domain: the highest of its
//!   CPUs', idle ones included, because the governor counts them, but no more than a thermal limit lets anybody ask for: what
//!   lies above the limit is needed from the moment on at which the limit is lifted.
//! * request: the governor decides for a frequency, whether or not the driver has been asked yet.
//! * settled: the domain's clock runs at the need's frequency or beyond.
//! * chain: one need that the requests so far do not answer, from the event to the clock.
//!
//! # Algorithm
//!
//! 1. A chain begins when the need of a domain changes and is another than what has been requested: of *more*, or of
//!    *less*. While it is not answered, a further change in the same direction is part of it: it goes on from its
//!    beginning.
//! 2. It is answered by the first request that is no lower than the need of that moment (of less: no higher), and settles
//!    when the clock gets there, which it may have before.
//! 3. It has *passed* if the need returns to what is requested before it is answered, or if a request takes back the
//!    answer before the clock got there. Then it has no times.
//! 4. A request that answers no need (a boost after I/O, a limit) begins no chain: only an event that changes the need does.
//!
//! ```text
//!  need       1 ──────┐3───────────────────────────────────
//!  request    1 ──────┼──────────────────┐3────────────────
//!  clock      1 ──────┼──────────────────┼─────────┐3──────
//!                     |<-need_to_request>|         |
//!                     |                  |<------->| request_to_settled
//!                     |<-need_to_settled---------->|
//! ```
//!
//! Every chain that settles has all three times, so the first two add up to the third.
//!
//! Why a chain took its time is what a record says of it, and kept only while somebody records (`chain_log.rs`).
//!
//! # Differences
//!
//! An entry of the kernel is atomic: a need and a request of the same entry are 0 apart. Where another domain forces a higher
//! frequency, less is never settled, and the chain counts nowhere.

use super::chain_log::{ChainLog, DomainLog};
use super::distribution::Distribution;
use super::{MeterOpp, MeterSetup};
use schedtwin_types::arena::Arena;
use schedtwin_types::property::{Bounds, Breach, Property};
use schedtwin_types::{ChainEnd, ClockDomainId, CpuId, NEVER, NeedCause, Ns};
use std::ops::RangeInclusive;

/// The needs of all domains.
#[derive(Clone, Debug)]
pub(super) struct Needs {
    window_start: Ns,
    /// Index of the operating point that each CPU needs.
    cpus: Vec<usize>,
    pub(super) domains: Arena<ClockDomainId, DomainNeed>,
    /// Somebody records.
    log: Option<Box<ChainLog>>,
}

/// The need of a domain, and what becomes of it. Numbers are indexes of operating points.
#[derive(Clone, Debug)]
pub(super) struct DomainNeed {
    members: Vec<usize>,
    /// The highest need of its CPUs.
    highest: usize,
    /// The lowest and the highest that may be asked for.
    floor: usize,
    limit: usize,
    /// The highest within these: what a request can answer.
    need: usize,
    requested: usize,
    clock: usize,
    /// The chain that no request has answered.
    open: Option<Open>,
    /// Those that the clock has not answered. Each asks for another operating point, so they are few.
    asked: Vec<FrequencyRequest>,
    /// Chains of more and of less, by [`Open::more`].
    chains: [Chains; 2],
    /// The highest that firmware lets the clock run at, whatever is asked for.
    allowed: usize,
    /// A chain of more goes on while a CPU works ([`Property::ClockHeld`]).
    below: Sight,
    /// The request is far above the need while a CPU works ([`Property::ClockAbove`]).
    above: Sight,
}

/// A state that should not last while a CPU of the domain works, as ticks of busy CPUs see it.
#[derive(Clone, Copy, Debug)]
struct Sight {
    bound: Ns,
    /// Since when ticks have seen it, and the last one that did; `NEVER`: they have not.
    since: Ns,
    seen: Ns,
    found: Held,
}

/// The request is far above the need from half as much again on.
const FAR: (u64, u64) = (3, 2);

/// Ticks of busy CPUs that lie farther apart have an idle time between them.
const BUSY_GAP: Ns = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Open {
    need_at: Ns,
    more: bool,
}

#[derive(Clone, Copy, Debug)]
struct FrequencyRequest {
    need_at: Ns,
    requested_at: Ns,
    more: bool,
    opp: usize,
}

/// The chains in one direction.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    pub(super) need_to_request: Distribution,
    pub(super) request_to_settled: Distribution,
    pub(super) need_to_settled: Distribution,
    /// Those that have passed.
    pub(super) passed: u64,
}

impl Chains {
    fn new() -> Chains {
        Chains {
            need_to_request: Distribution::new(),
            request_to_settled: Distribution::new(),
            need_to_settled: Distribution::new(),
            passed: 0,
        }
    }
}

/// Whether operating point `opp` gives a need of more (or less) than before.
fn answers(more: bool, opp: usize, need: usize) -> bool {
    if more { opp >= need } else { opp <= need }
}

impl Needs {
    pub(super) fn new(setup: &MeterSetup) -> Needs {
        let members = |domain: ClockDomainId| -> Vec<usize> {
            (0..setup.cpus.len()).filter(|c| setup.cpus[*c].domain == domain).collect()
        };
        let domains = setup.domains.iter_ids().map(|(id, domain)| DomainNeed {
            members: members(id),
            highest: 0,
            floor: 0,
            limit: domain.opps.len().saturating_sub(1),
            need: 0,
            requested: 0,
            clock: 0,
            open: None,
            asked: Vec::with_capacity(domain.opps.len()),
            chains: [Chains::new(), Chains::new()],
            allowed: domain.opps.len().saturating_sub(1),
            below: Sight::new(setup.bounds.of(Property::ClockHeld)),
            above: Sight::new(setup.bounds.of(Property::ClockAbove)),
        });
        Needs {
            window_start: setup.warmup_ns,
            domains: domains.collect(),
            cpus: vec![0; setup.cpus.len()],
            log: None,
        }
    }

    /// From `at` on, somebody records.
    pub(super) fn keep_log(&mut self, at: Ns, setup: &MeterSetup) {
        let domains = self.domains.iter_ids().map(|(id, needs)| {
            (id, needs, setup.domains[id].opps.iter().map(|opp| opp.khz).collect())
        });
        self.log = Some(Box::new(ChainLog::new(domains, self.cpus.len(), at)));
    }

    /// Returns the log for a record, if a record is written.
    pub(super) fn log(&mut self) -> Option<&mut ChainLog> {
        self.log.as_deref_mut()
    }

    /// As in a record: what of a domain is kept, if anything.
    fn domain_log(&mut self, domain: ClockDomainId) -> (&mut DomainNeed, Option<&mut DomainLog>) {
        (&mut self.domains[domain], self.log.as_deref_mut().map(|log| log.domain(domain)))
    }

    /// From `at` on, `cpu` of `domain` needs operating point `opp`.
    pub(super) fn cpu_needs(&mut self, at: Ns, cpu: CpuId, id: ClockDomainId, opp: usize) {
        let before = std::mem::replace(&mut self.cpus[cpu.index()], opp);
        let domain = &mut self.domains[id];
        domain.highest = if opp >= domain.highest {
            opp
        } else if before == domain.highest {
            highest(&self.cpus, &domain.members)
        } else {
            return;
        };
        let need = domain.highest.clamp(domain.floor, domain.limit);
        if need != domain.need {
            let rises = need > domain.need;
            let cause = self.log.as_ref().map(|log| log.cause_of(cpu, rises));
            self.need_changed(at, id, need, cause.map(|cause| (cpu, cause)));
        }
    }

    /// From `at` on, only these operating points of `domain` may be asked for.
    pub(super) fn limited(&mut self, at: Ns, id: ClockDomainId, opps: RangeInclusive<usize>) {
        let domain = &mut self.domains[id];
        (domain.floor, domain.limit) = (*opps.start(), *opps.end());
        let need = domain.highest.clamp(domain.floor, domain.limit);
        if need != domain.need {
            let cpu = domain.members.iter().find(|cpu| self.cpus[**cpu] == domain.highest);
            let cpu = CpuId(*cpu.expect("somebody needs most") as u16);
            self.need_changed(at, id, need, Some((cpu, NeedCause::Limit)));
        }
    }

    /// Another need of a domain; why, if somebody records.
    fn need_changed(
        &mut self,
        at: Ns,
        id: ClockDomainId,
        need: usize,
        why: Option<(CpuId, NeedCause)>,
    ) {
        let counted = at >= self.window_start;
        let (domain, log) = self.domain_log(id);
        domain.need = need;
        let (Some(log), Some((cpu, cause))) = (log, why) else {
            return domain.need_changed(at, counted, None);
        };
        domain.need_changed(at, counted, Some(log));
        log.needs(at, cpu, need, cause);
    }

    /// The governor wants `domain` at operating point `opp` from now on.
    pub(super) fn requested(&mut self, at: Ns, domain: ClockDomainId, opp: usize) {
        let counted = at >= self.window_start;
        let (domain, log) = self.domain_log(domain);
        domain.request(at, opp, counted, log);
    }

    /// The clock of `domain` runs at operating point `opp` from now on.
    pub(super) fn settled(&mut self, at: Ns, domain: ClockDomainId, opp: usize) {
        let counted = at >= self.window_start;
        let (domain, log) = self.domain_log(domain);
        domain.clock = opp;
        domain.settle(at, counted, log);
    }

    /// Another domain forces a higher frequency on `domain` than it has requested.
    pub(super) fn overridden(&mut self, at: Ns, domain: ClockDomainId) {
        let (domain, mut log) = self.domain_log(domain);
        for index in (0..domain.asked.len()).rev().filter(|index| !domain.asked[*index].more) {
            if let Some(log) = &mut log {
                log.asked_ends(index, at, ChainEnd::Overridden);
            }
        }
        domain.asked.retain(|asked| asked.more);
    }

    /// Firmware lets `domain` run at operating point `opp` at most.
    pub(super) fn firmware_allows(&mut self, domain: ClockDomainId, opp: usize) {
        self.domains[domain].allowed = opp;
    }

    /// A CPU of `domain` has its tick and works: is the clock below the need, or what is asked for far above it, and no request
    /// answers that?
    #[inline]
    pub(super) fn busy_tick(&mut self, at: Ns, domain: ClockDomainId, opps: &[MeterOpp]) {
        let window_start = self.window_start;
        let domain = &mut self.domains[domain];
        match domain.is_below() {
            true => domain.below.tick(at, window_start),
            false => domain.below.since = NEVER,
        }
        let khz = |opp: usize| opps.get(opp).map_or(0, |opp| u64::from(opp.khz));
        let is_less = domain.open.is_some_and(|open| !open.more);
        if !is_less || khz(domain.requested) * FAR.1 < khz(domain.need) * FAR.0 {
            domain.above.since = NEVER;
            return;
        }
        domain.above.tick(at, window_start);
    }

    /// The property that no clock stays far above its need while its CPUs work.
    pub(super) fn broken_above(&self, setup: &MeterSetup) -> Option<Breach> {
        let bound = setup.bounds.of(Property::ClockAbove);
        let of = self.domains.iter_ids().map(|(id, domain)| (domain.above.found, id));
        let (found, id) = of.max_by_key(|(found, _)| found.longest)?;
        (found.longest > bound).then(|| Breach {
            property: Property::ClockAbove,
            count: 1,
            longest: found.longest,
            open: false,
            since: found.since,
            who: format!("the clock of {}", setup.domains[id].name),
            group: String::new(),
            how: "far above what its CPUs needed while they worked".to_string(),
            bound,
        })
    }

    pub(super) fn bound_by(&mut self, bounds: &Bounds) {
        for domain in self.domains.iter_mut() {
            domain.below.bound = bounds.of(Property::ClockHeld);
            domain.above.bound = bounds.of(Property::ClockAbove);
        }
    }

    /// The property that no clock is held below the need for longer than the bound while its CPUs work, and firmware would let it
    /// run faster.
    pub(super) fn broken(&self, setup: &MeterSetup, end: Ns) -> Option<Breach> {
        let bound = setup.bounds.of(Property::ClockHeld);
        let mut worst: Option<(Held, bool, &str)> = None;
        let mut count = 0;
        for (id, domain) in self.domains.iter_ids() {
            let held = domain.below.found;
            count += held.count;
            let is_open = domain.below.goes_on_at(end);
            if held.count > 0 && worst.is_none_or(|(other, ..)| held.longest > other.longest) {
                worst = Some((held, is_open, &setup.domains[id].name));
            }
        }
        let (held, open, name) = worst?;
        Some(Breach {
            property: Property::ClockHeld,
            count,
            longest: held.longest,
            open,
            since: held.since,
            who: format!("the clock of {name}"),
            group: String::new(),
            how: "below what its CPUs needed while they worked".to_string(),
            bound,
        })
    }

    /// Asserts what must be so after every event.
    pub(super) fn verify(&self) {
        for (id, domain) in self.domains.iter_ids() {
            let highest = highest(&self.cpus, &domain.members);
            assert_eq!(domain.highest, highest, "{id:?}: highest need");
            assert_eq!(
                domain.need,
                highest.clamp(domain.floor, domain.limit),
                "{id:?}: need within the limit"
            );
            if let Some(log) = &self.log {
                log.verify(id, domain);
            }
            if let Some(open) = domain.open {
                let answered = answers(open.more, domain.requested, domain.need);
                assert!(!answered, "{id:?}: a chain goes on that is answered");
            }
            for asked in &domain.asked {
                assert!(
                    !answers(asked.more, domain.clock, asked.opp),
                    "{id:?}: a chain has settled"
                );
                assert!(
                    answers(asked.more, domain.requested, asked.opp),
                    "{id:?}: an answer that was taken back"
                );
            }
            for chains in &domain.chains {
                let parts = [&chains.need_to_request, &chains.request_to_settled];
                let whole = &chains.need_to_settled;
                assert!(parts.iter().all(|part| part.count() == whole.count()), "{id:?}: chains");
                let sum: u128 = parts.iter().map(|part| part.sum()).sum();
                assert_eq!(sum, whole.sum(), "{id:?}: need to request to settled");
            }
        }
    }
}

fn highest(cpus: &[usize], members: &[usize]) -> usize {
    members.iter().map(|cpu| cpus[*cpu]).max().unwrap_or(0)
}

/// The number of times that it lasted longer than the bound, and the longest time.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    count: u64,
    longest: Ns,
    since: Ns,
}

impl Sight {
    fn new(bound: Ns) -> Sight {
        Sight { bound, since: NEVER, seen: 0, found: Held::default() }
    }

    fn tick(&mut self, at: Ns, window_start: Ns) {
        if self.since == NEVER || at.saturating_sub(self.seen) > BUSY_GAP {
            self.since = at.max(window_start);
        }
        let [before, lasted] = [self.seen, at].map(|at| at.saturating_sub(self.since));
        self.seen = at;
        self.found.count += u64::from(before <= self.bound && lasted > self.bound);
        if lasted > self.found.longest {
            (self.found.longest, self.found.since) = (lasted, self.since);
        }
    }

    /// Whether the longest time goes on at the end of the run.
    fn goes_on_at(&self, end: Ns) -> bool {
        self.since == self.found.since && end.saturating_sub(self.seen) <= BUSY_GAP
    }
}

impl DomainNeed {
    /// Whether a chain of more goes on that firmware does not hold up.
    fn is_below(&self) -> bool {
        let mut asked = self.asked.iter();
        self.open.is_some_and(|open| open.more)
            || asked.any(|asked| asked.more && asked.opp <= self.allowed)
    }

    /// Chains of more (or less).
    pub(super) fn chains(&self, more: bool) -> &Chains {
        &self.chains[usize::from(more)]
    }

    /// The chain that is not answered: of more or less, what has been requested, and what is needed.
    pub(super) fn open(&self) -> Option<(bool, usize, usize)> {
        self.open.map(|open| (open.more, self.requested, self.need))
    }

    /// The chains that the clock has not answered: of more or less, and what was needed.
    pub(super) fn asked(&self) -> impl Iterator<Item = (bool, usize)> {
        self.asked.iter().map(|asked| (asked.more, asked.opp))
    }

    fn need_changed(&mut self, at: Ns, counted: bool, mut log: Option<&mut DomainLog>) {
        let more = self.need > self.requested;
        let unanswered = self.need != self.requested;
        if let Some(open) = self.open {
            if unanswered && open.more == more {
                return;
            }
            self.pass(open.more, counted);
            if let Some(log) = &mut log {
                log.open_ends(at, ChainEnd::NeedGone);
            }
        }
        self.open = unanswered.then_some(Open { need_at: at, more });
        if unanswered && let Some(log) = log {
            log.begins(at, more, self.requested, self.need);
        }
    }

    fn request(&mut self, at: Ns, opp: usize, counted: bool, mut log: Option<&mut DomainLog>) {
        self.requested = opp;
        // Answers that this one takes back.
        for index in (0..self.asked.len()).rev() {
            let asked = self.asked[index];
            if !answers(asked.more, opp, asked.opp) {
                self.asked.remove(index);
                self.pass(asked.more, counted);
                if let Some(log) = &mut log {
                    log.asked_ends(index, at, ChainEnd::TakenBack);
                }
            }
        }
        if let Some(Open { need_at, more }) = self.open
            && answers(more, opp, self.need)
        {
            self.open = None;
            self.asked.push(FrequencyRequest { need_at, requested_at: at, more, opp: self.need });
            if let Some(log) = &mut log {
                log.answered(at);
            }
            self.settle(at, counted, log);
        }
    }

    fn settle(&mut self, at: Ns, counted: bool, mut log: Option<&mut DomainLog>) {
        let (chains, clock) = (&mut self.chains, self.clock);
        let mut index = 0;
        self.asked.retain(|asked| {
            let settled = answers(asked.more, clock, asked.opp);
            if !settled {
                index += 1;
                return true;
            }
            if counted {
                let chains = &mut chains[usize::from(asked.more)];
                chains.need_to_request.record(asked.requested_at - asked.need_at);
                chains.request_to_settled.record(at - asked.requested_at);
                chains.need_to_settled.record(at - asked.need_at);
            }
            if let Some(log) = &mut log {
                log.asked_ends(index, at, ChainEnd::Settled);
            }
            false
        });
    }

    fn pass(&mut self, more: bool, counted: bool) {
        self.chains[usize::from(more)].passed += u64::from(counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{MeterCpu, MeterDomain, MeterOpp};

    const DOMAIN: ClockDomainId = ClockDomainId(0);
    const CPU0: CpuId = CpuId(0);
    const CPU1: CpuId = CpuId(1);

    /// Two CPUs in a domain of five operating points, which runs at the first.
    fn needs(warmup_ns: Ns) -> Needs {
        let cpu = || MeterCpu {
            domain: DOMAIN,
            cluster_name: "all".to_owned(),
            idle_states: Vec::new(),
            threads: Vec::new(),
            second_permille: 1000,
            capacity: 1024,
        };
        let opp = |khz| MeterOpp { khz, active_uw: 0, wfi_uw: 0, static_uw: 0, idle_static_uw: 0 };
        Needs::new(&MeterSetup {
            cpus: vec![cpu(), cpu()],
            domains: vec![MeterDomain {
                name: "all".to_owned(),
                opps: (1..=5).map(|n| opp(n * 100_000)).collect(),
                off_uw: 0,
                dependence: None,
            }]
            .into(),
            warmup_ns,
            ..MeterSetup::default()
        })
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Need(CpuId, usize),
        Request(usize),
        Clock(usize),
        Limit(usize),
        Override,
    }
    use Event::{Clock, Limit, Need, Override, Request};

    /// Returns the totals of a direction: count, sums of the three times, and how many have passed.
    fn seen(needs: &Needs, more: bool) -> (u64, [u128; 3], u64) {
        let chains = needs.domains[DOMAIN].chains(more);
        let parts = [&chains.need_to_request, &chains.request_to_settled, &chains.need_to_settled];
        (chains.need_to_settled.count(), parts.map(|part| part.sum()), chains.passed)
    }

    fn feed(needs: &mut Needs, events: &[(Ns, Event)]) {
        for (at, event) in events {
            match *event {
                Need(cpu, opp) => needs.cpu_needs(*at, cpu, DOMAIN, opp),
                Request(opp) => needs.requested(*at, DOMAIN, opp),
                Clock(opp) => needs.settled(*at, DOMAIN, opp),
                Limit(opp) => needs.limited(*at, DOMAIN, 0..=opp),
                Override => needs.overridden(*at, DOMAIN),
            }
            needs.verify();
        }
    }

    /// A clock far above the need counts while busy CPUs have ticks, up to the request that answers.
    #[test]
    fn a_clock_far_above_the_need_is_seen_by_ticks() {
        let opps: Vec<MeterOpp> = (1..=5)
            .map(|n| MeterOpp {
                khz: n * 100_000,
                active_uw: 0,
                wfi_uw: 0,
                static_uw: 0,
                idle_static_uw: 0,
            })
            .collect();
        let ms = 1_000_000;
        let longest = |need: usize, gap: Ns, answered: Ns| {
            let mut needs = needs(0);
            feed(&mut needs, &[(0, Need(CPU0, 4)), (0, Request(4)), (0, Clock(4))]);
            feed(&mut needs, &[(ms, Need(CPU0, need))]);
            for tick in 1..100 {
                let at = tick * gap;
                if at >= answered {
                    needs.requested(at, DOMAIN, need);
                }
                needs.busy_tick(at, DOMAIN, &opps);
            }
            needs.domains[DOMAIN].above.found.longest / ms
        };
        assert_eq!(longest(0, 4 * ms, NEVER), 98 * 4);
        assert_eq!(longest(0, 4 * ms, 200 * ms), 49 * 4 - 4, "up to the answer");
        assert_eq!(longest(3, 4 * ms, NEVER), 0, "500 MHz is not far above 400");
        assert_eq!(longest(0, 30 * ms, NEVER), 0, "it is idle between the ticks");
    }

    const NOTHING: (u64, [u128; 3], u64) = (0, [0; 3], 0);

    /// Each case by hand: what chains of more have seen, then those of less.
    #[test]
    fn chains() {
        type Seen = (u64, [u128; 3], u64);
        let check = |name: &str, events: &[(Ns, Event)], more: Seen, less: Seen| {
            let mut needs = needs(0);
            feed(&mut needs, events);
            assert_eq!(seen(&needs, true), more, "{name}: more");
            assert_eq!(seen(&needs, false), less, "{name}: less");
        };
        check(
            "a task wakes, the rate limit passes, the clock settles",
            &[(100, Need(CPU0, 3)), (850, Request(3)), (860, Clock(3))],
            (1, [750, 10, 760], 0),
            NOTHING,
        );
        check(
            "the request comes with the need",
            &[(100, Need(CPU0, 3)), (100, Request(4)), (160, Clock(4))],
            (1, [0, 60, 60], 0),
            NOTHING,
        );
        check(
            "the need grows on: the chain goes on from its beginning",
            &[(100, Need(CPU0, 2)), (300, Need(CPU0, 4)), (500, Request(4)), (520, Clock(4))],
            (1, [400, 20, 420], 0),
            NOTHING,
        );
        check(
            "a request that gives only a part of it answers nothing",
            &[
                (100, Need(CPU0, 4)),
                (200, Request(3)),
                (210, Clock(3)),
                (500, Request(4)),
                (520, Clock(4)),
            ],
            (1, [400, 20, 420], 0),
            NOTHING,
        );
        check(
            "after a request the rest is a chain of its own, and one clock answers both",
            &[
                (100, Need(CPU0, 2)),
                (200, Request(2)),
                (250, Need(CPU1, 4)),
                (300, Request(4)),
                (330, Clock(4)),
            ],
            (2, [100 + 50, 130 + 30, 230 + 80], 0),
            NOTHING,
        );
        check(
            "another CPU's need is covered by the first one's",
            &[
                (100, Need(CPU0, 4)),
                (100, Request(4)),
                (110, Clock(4)),
                (200, Need(CPU1, 3)),
                (300, Need(CPU1, 0)),
            ],
            (1, [0, 10, 10], 0),
            NOTHING,
        );
        check(
            "the task sleeps before anybody has asked",
            &[(100, Need(CPU0, 3)), (400, Need(CPU0, 0)), (900, Request(0))],
            (0, [0; 3], 1),
            NOTHING,
        );
        check(
            "and before the clock got there",
            &[(100, Need(CPU0, 3)), (200, Request(3)), (220, Need(CPU0, 0)), (240, Request(0))],
            (0, [0; 3], 1),
            (1, [20, 0, 20], 0),
        );
        check(
            "less is needed: once for the whole decay",
            &[
                (0, Need(CPU0, 4)),
                (0, Request(4)),
                (5, Clock(4)),
                (100, Need(CPU0, 3)),
                (200, Need(CPU0, 1)),
                (750, Request(1)),
                (770, Clock(1)),
            ],
            (1, [0, 5, 5], 0),
            (1, [650, 20, 670], 0),
        );
        check(
            "the CPU that needs most stops, and the next one counts",
            &[
                (0, Need(CPU0, 4)),
                (0, Need(CPU1, 2)),
                (0, Request(4)),
                (0, Clock(4)),
                (100, Need(CPU0, 0)),
                (150, Request(2)),
                (160, Clock(2)),
            ],
            (1, [0; 3], 0),
            (1, [50, 10, 60], 0),
        );
        check(
            "the clock is there already, because another domain forces it",
            &[(50, Clock(4)), (100, Need(CPU0, 3)), (300, Request(3))],
            (1, [200, 0, 200], 0),
            NOTHING,
        );
        check(
            "another domain forbids less",
            &[
                (0, Need(CPU0, 4)),
                (0, Request(4)),
                (0, Clock(4)),
                (100, Need(CPU0, 0)),
                (150, Request(0)),
                (150, Override),
                (900, Clock(0)),
            ],
            (1, [0; 3], 0),
            NOTHING,
        );
        check(
            "a boost after I/O begins nothing: no need has changed",
            &[(100, Request(4)), (110, Clock(4)), (600, Request(0)), (610, Clock(0))],
            NOTHING,
            NOTHING,
        );
        check(
            "above a limit: answered at the limit, and the rest is needed from the moment on at which it is lifted",
            &[
                (0, Limit(2)),
                (100, Need(CPU0, 4)),
                (150, Request(2)),
                (160, Clock(2)),
                (9_000, Limit(4)),
                (9_100, Request(4)),
                (9_130, Clock(4)),
            ],
            (2, [50 + 100, 10 + 30, 60 + 130], 0),
            NOTHING,
        );
        check(
            "a limit falls below what is needed: less, from then on",
            &[
                (0, Need(CPU0, 4)),
                (0, Request(4)),
                (0, Clock(4)),
                (100, Limit(1)),
                (130, Request(1)),
                (140, Clock(1)),
                (200, Need(CPU0, 0)),
                (200, Request(0)),
                (210, Clock(0)),
            ],
            (1, [0; 3], 0),
            (2, [30, 10 + 10, 40 + 10], 0),
        );
        check(
            "nobody asked before the limit fell to what is requested",
            &[(0, Limit(3)), (50, Need(CPU0, 4)), (100, Limit(0))],
            (0, [0; 3], 1),
            NOTHING,
        );
        check(
            "from less to more at once",
            &[
                (0, Need(CPU0, 2)),
                (0, Request(2)),
                (0, Clock(2)),
                (100, Need(CPU0, 1)),
                (200, Need(CPU0, 4)),
                (300, Request(4)),
                (310, Clock(4)),
            ],
            (2, [100, 10, 110], 0),
            (0, [0; 3], 1),
        );
    }

    /// A chain counts if it ends in the window, with all of its time.
    #[test]
    fn the_window() {
        let mut needs = needs(1_000);
        let early =
            [(100, Need(CPU0, 2)), (150, Request(2)), (160, Clock(2)), (200, Need(CPU0, 3))];
        feed(&mut needs, &early);
        feed(&mut needs, &[(300, Need(CPU0, 2)), (400, Need(CPU0, 4))]);
        assert_eq!(seen(&needs, true), NOTHING);
        feed(
            &mut needs,
            &[
                (1_200, Request(4)),
                (1_300, Clock(4)),
                (1_400, Need(CPU0, 0)),
                (1_500, Need(CPU0, 4)),
            ],
        );
        assert_eq!(seen(&needs, true), (1, [800, 100, 900], 0));
        assert_eq!(seen(&needs, false), (0, [0; 3], 1));
    }
}
