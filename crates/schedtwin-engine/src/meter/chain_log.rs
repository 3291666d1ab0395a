// SPDX-License-Identifier: GPL-2.0-or-later
//! Why chains took as long as they did: what a record says of each (`need.rs` measures them).
//!
//! Kept only while somebody records. Before an entry's needs and requests are looked at, the log hears the entry's facts,
//! which say why a CPU's need may have changed, and the calls of the governor.
//!
//! **Where the time goes.** Before the request: a chain waits for a *call* of the governor. A call that is refused by the
//! rate limit turns this into a wait for the limit's end; from there on for a call again. A call that computes
//! another frequency is remembered until the next one. After the request: for the driver until the hardware is asked,
//! then for the clock.
//!
//! ```text
//!  need ──────── refused ──────── limit over ──────── call: request ──── hardware asked ──── settled
//!    not called     rate limit        not called                  driver              clock
//! ```

use super::need::DomainNeed;
use schedtwin_types::arena::Arena;
use schedtwin_types::{
    ChainEnd, ChainEvent, ChainWait, ClockDomainId, CpuId, Decision, DecisionRecord, Fact,
    FactKind, FrequencyRule, Khz, NEVER, NeedCause, NeedChain, Ns, PolicyId, TaskState,
};

/// The log of all chains that have not been told.
#[derive(Clone, Debug)]
pub struct ChainLog {
    domains: Arena<ClockDomainId, DomainLog>,
    /// By CPU: what in this entry may have raised its need, and lowered it.
    causes: Vec<[Option<NeedCause>; 2]>,
    /// The causes of CPUs that have none of their own.
    elsewhere: Option<NeedCause>,
}

/// The chains of a domain.
#[derive(Clone, Debug)]
pub(super) struct DomainLog {
    policy: PolicyId,
    khz: Vec<Khz>,
    /// The governor's calls in this entry.
    calls: Vec<Call>,
    /// The need has changed in this entry.
    need_changed: bool,
    /// The chain that no request has answered.
    open: Option<NeedChain>,
    /// The wait of the open chain, and since when.
    wait: ChainWait,
    since: Ns,
    /// The end of the rate limit that it waits for.
    limited_until: Ns,
    /// Those that the clock has not answered, in the order of [`DomainNeed`].
    asked: Vec<NeedChain>,
    ended: Vec<NeedChain>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    cpu: CpuId,
    khz: Khz,
    rule: FrequencyRule,
    limited_until: Option<Ns>,
}

/// How well a cause explains a change of need: the lowest does best, and of equals the first.
fn rank(cause: NeedCause) -> usize {
    match cause {
        NeedCause::Wakeup(_) | NeedCause::Sleep(_) => 0,
        NeedCause::MigrationIn(_) | NeedCause::MigrationOut(_) | NeedCause::Exit(_) => 1,
        NeedCause::SchedSetattr(_) => 2,
        NeedCause::Tick => 3,
        NeedCause::Balance => 4,
        NeedCause::Switch(_) => 5,
        NeedCause::Interrupt => 6,
        NeedCause::Idle => 7,
        NeedCause::Limit | NeedCause::Update => 8,
    }
}

impl ChainLog {
    /// The domains and the frequencies of their operating points. Chains that are under way begin with the log.
    pub(super) fn new<'a>(
        domains: impl Iterator<Item = (ClockDomainId, &'a DomainNeed, Vec<Khz>)>,
        nr_cpus: usize,
        at: Ns,
    ) -> ChainLog {
        let domains = domains.map(|(id, needs, khz)| {
            let mut log = DomainLog {
                policy: id.policy(),
                khz,
                calls: Vec::new(),
                need_changed: false,
                open: None,
                wait: ChainWait::NotCalled,
                since: at,
                limited_until: NEVER,
                asked: Vec::new(),
                ended: Vec::new(),
            };
            for (more, opp) in needs.asked() {
                log.begins(at, more, opp, opp);
                log.answered(at);
            }
            if let Some((more, requested, need)) = needs.open() {
                log.begins(at, more, requested, need);
            }
            log
        });
        let domains = domains.collect();
        ChainLog { domains, causes: vec![[None; 2]; nr_cpus], elsewhere: None }
    }

    /// An entry of the kernel at `at` is over, needs and requests have been looked at: calls that have not answered the
    /// need are part of the chain. What the entry did explains nothing that comes later.
    pub fn entry_ends(&mut self, at: Ns) {
        self.causes.fill([None; 2]);
        self.elsewhere = None;
        self.domains.iter_mut().for_each(|domain| domain.entry_ends(at));
    }

    /// Sets the cause by the entry's purpose, where no fact says it.
    pub fn because(&mut self, cause: NeedCause) {
        self.elsewhere = Some(cause);
    }

    /// A fact of the entry.
    pub fn fact(&mut self, fact: &Fact) {
        let cpu = fact.cpu;
        match fact.kind {
            FactKind::Wakeup { task, target, .. } => self.both(target, NeedCause::Wakeup(task)),
            FactKind::Migrate { task, from, to } => {
                self.both(from, NeedCause::MigrationOut(task));
                self.both(to, NeedCause::MigrationIn(task));
            }
            FactKind::Exit { task } => self.both(cpu, NeedCause::Exit(task)),
            FactKind::Switch { prev, next, prev_state } => {
                if matches!(prev_state, TaskState::Interruptible | TaskState::Uninterruptible) {
                    self.cause(cpu, false, NeedCause::Sleep(prev));
                }
                let who = if next.is_idle() { prev } else { next };
                self.both(cpu, NeedCause::Switch(who));
            }
            FactKind::Tick => self.both(cpu, NeedCause::Tick),
            FactKind::Balance { .. } => {
                // Balancing updates the signals of others, too.
                self.both(cpu, NeedCause::Balance);
                self.elsewhere.get_or_insert(NeedCause::Balance);
            }
            FactKind::IrqEntry { .. } => self.both(cpu, NeedCause::Interrupt),
            FactKind::IdleEnter { .. } | FactKind::IdleExit { .. } => {
                self.both(cpu, NeedCause::Idle);
            }
            _ => {}
        }
    }

    fn both(&mut self, cpu: CpuId, cause: NeedCause) {
        self.cause(cpu, true, cause);
        self.cause(cpu, false, cause);
    }

    fn cause(&mut self, cpu: CpuId, rises: bool, cause: NeedCause) {
        let known = &mut self.causes[cpu.index()][usize::from(rises)];
        if known.is_none_or(|known| rank(cause) < rank(known)) {
            *known = Some(cause);
        }
    }

    /// A decision of the entry.
    pub fn decision(&mut self, record: &DecisionRecord) {
        if let Decision::Frequency { policy, khz, rule, limited_until, .. } = record.decision {
            let call = Call { cpu: record.cpu, khz, rule, limited_until };
            self.domains[policy.clock_domain()].calls.push(call);
        }
    }

    /// The hardware of `domain` has been asked for `khz`.
    pub fn driver_asked(&mut self, at: Ns, domain: ClockDomainId, khz: Khz) {
        for chain in &mut self.domains[domain].asked {
            let answered = if chain.more { khz >= chain.khz } else { khz <= chain.khz };
            if answered && chain.driver_at.is_none() {
                chain.driver_at = Some(at);
            }
        }
    }

    /// Hands out the chains that have ended, domain by domain in the order of their ends.
    pub fn take_ended(&mut self, mut take: impl FnMut(NeedChain)) {
        for domain in self.domains.iter_mut() {
            domain.ended.drain(..).for_each(&mut take);
        }
    }

    /// The run is over: so are the chains under way.
    pub fn run_over(&mut self, at: Ns) {
        for domain in self.domains.iter_mut() {
            domain.open_ends(at, ChainEnd::RunOver);
            while !domain.asked.is_empty() {
                domain.asked_ends(0, at, ChainEnd::RunOver);
            }
        }
    }

    pub(super) fn domain(&mut self, domain: ClockDomainId) -> &mut DomainLog {
        &mut self.domains[domain]
    }

    /// Asserts that the log has the chains that are measured.
    pub(super) fn verify(&self, domain: ClockDomainId, needs: &DomainNeed) {
        self.domains[domain].verify(needs);
    }

    /// Why the need of `cpu` has changed in this entry.
    pub(super) fn cause_of(&self, cpu: CpuId, rises: bool) -> NeedCause {
        let own = self.causes[cpu.index()][usize::from(rises)];
        own.or(self.elsewhere).unwrap_or(NeedCause::Update)
    }
}

impl DomainLog {
    fn chain(&self, need_at: Ns, more: bool, requested: usize, need: usize) -> NeedChain {
        NeedChain {
            policy: self.policy,
            more,
            from_khz: self.khz[requested],
            khz: self.khz[need],
            need_at,
            requested: None,
            driver_at: None,
            end_at: need_at,
            end: ChainEnd::RunOver,
            events: Vec::new(),
            events_left_out: 0,
            waits: [0; ChainWait::ALL.len()],
        }
    }

    /// The time of the open chain up to `at` goes to what it has waited for.
    fn account(&mut self, at: Ns) {
        let Some(open) = &mut self.open else { return };
        let waited = at - self.since;
        let limited = match self.wait {
            ChainWait::RateLimit => self.limited_until.clamp(self.since, at) - self.since,
            _ => waited,
        };
        open.waits[self.wait as usize] += limited;
        open.waits[ChainWait::NotCalled as usize] += waited - limited;
        self.since = at;
    }

    /// A chain begins with this need.
    pub(super) fn begins(&mut self, at: Ns, more: bool, requested: usize, need: usize) {
        self.open = Some(self.chain(at, more, requested, need));
        (self.wait, self.since) = (ChainWait::NotCalled, at);
    }

    /// The open chain needs this now.
    pub(super) fn needs(&mut self, at: Ns, cpu: CpuId, need: usize, cause: NeedCause) {
        let khz = self.khz[need];
        let Some(open) = &mut self.open else { return };
        open.khz = khz;
        push(open, ChainEvent::Need { at, cpu, khz, cause });
        self.need_changed = true;
    }

    fn entry_ends(&mut self, at: Ns) {
        let need_changed = std::mem::take(&mut self.need_changed);
        if self.calls.is_empty() {
            return;
        }
        self.account(at);
        if let Some(open) = &mut self.open {
            for call in &self.calls {
                call.is_event(at, open);
                self.limited_until = call.limited_until.unwrap_or(NEVER);
                self.wait = match call.rule {
                    FrequencyRule::RateLimit => ChainWait::RateLimit,
                    FrequencyRule::Held => ChainWait::Held,
                    FrequencyRule::NotFromHere => ChainWait::NotCalled,
                    _ if need_changed => ChainWait::TooEarly,
                    _ => ChainWait::OtherAnswer,
                };
            }
        }
        self.calls.clear();
    }

    /// A request answers the open chain, which waits for the clock from now on.
    pub(super) fn answered(&mut self, at: Ns) {
        self.account(at);
        let mut chain = self.open.take().expect("what is answered is open");
        chain.requested = Some((at, self.calls.last().map(|call| call.cpu)));
        self.asked.push(chain);
    }

    /// The open chain ends without a request.
    pub(super) fn open_ends(&mut self, at: Ns, end: ChainEnd) {
        self.account(at);
        if let Some(chain) = self.open.take() {
            self.ends(chain, at, end);
        }
    }

    /// The chain number `index` of those that have been asked for ends.
    pub(super) fn asked_ends(&mut self, index: usize, at: Ns, end: ChainEnd) {
        let mut chain = self.asked.remove(index);
        let (requested_at, _) = chain.requested.expect("it has been asked for");
        let driver_at = chain.driver_at.unwrap_or(at);
        chain.waits[ChainWait::Driver as usize] = driver_at - requested_at;
        chain.waits[ChainWait::Clock as usize] = at - driver_at;
        self.ends(chain, at, end);
    }

    fn ends(&mut self, mut chain: NeedChain, at: Ns, end: ChainEnd) {
        (chain.end_at, chain.end) = (at, end);
        let waited: Ns = chain.waits.iter().sum();
        assert_eq!(waited, at - chain.need_at, "the parts of a chain's time");
        self.ended.push(chain);
    }

    fn verify(&self, needs: &DomainNeed) {
        let asked = self.asked.iter().map(|chain| (chain.more, chain.khz));
        assert!(asked.eq(needs.asked().map(|(more, opp)| (more, self.khz[opp]))), "asked for");
        let open = self.open.as_ref().map(|chain| (chain.more, chain.khz));
        assert_eq!(open, needs.open().map(|(more, _, need)| (more, self.khz[need])), "open");
    }
}

impl Call {
    /// It did not answer the chain.
    fn is_event(&self, at: Ns, chain: &mut NeedChain) {
        let Call { cpu, khz, rule, limited_until } = *self;
        match chain.events.last_mut() {
            Some(ChainEvent::Governor { khz: last_khz, rule: last, times, .. })
                if (*last_khz, *last) == (khz, rule) =>
            {
                *times += 1;
            }
            _ => push(chain, ChainEvent::Governor { at, cpu, khz, rule, limited_until, times: 1 }),
        }
    }
}

fn push(chain: &mut NeedChain, event: ChainEvent) {
    if chain.events.len() < NeedChain::EVENTS_MOST {
        chain.events.push(event);
    } else {
        chain.events_left_out += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::need::Needs;
    use super::super::{MeterCpu, MeterDomain, MeterOpp, MeterSetup};
    use super::*;
    use schedtwin_types::TaskId;

    const DOMAIN: ClockDomainId = ClockDomainId(0);
    const CPU: CpuId = CpuId(1);
    const UI: TaskId = TaskId(12);

    /// Two CPUs in a domain of five operating points of 1 to 5 kHz.
    fn needs() -> Needs {
        let cpu = || MeterCpu {
            domain: DOMAIN,
            cluster_name: "all".to_owned(),
            idle_states: Vec::new(),
            threads: Vec::new(),
            second_permille: 1000,
            capacity: 1024,
        };
        let opp = |khz| MeterOpp { khz, active_uw: 0, wfi_uw: 0, static_uw: 0, idle_static_uw: 0 };
        let setup = MeterSetup {
            cpus: vec![cpu(), cpu()],
            domains: vec![MeterDomain {
                name: "all".to_owned(),
                opps: (1..=5).map(opp).collect(),
                off_uw: 0,
                dependence: None,
            }]
            .into(),
            ..MeterSetup::default()
        };
        let mut needs = Needs::new(&setup);
        needs.keep_log(0, &setup);
        needs
    }

    enum Event {
        Fact(FactKind),
        Call(FrequencyRule, Option<Ns>),
        Need(usize),
        Request(usize),
        Driver(Khz),
        Clock(usize),
    }
    use Event::{Clock, Driver, Need, Request};

    /// Feeds entries, each with its time, and tells the chains that have ended.
    fn chains(entries: &[(Ns, &[Event])]) -> Vec<NeedChain> {
        let mut needs = needs();
        for (at, events) in entries {
            for event in *events {
                let log = needs.log().expect("kept");
                match *event {
                    Event::Fact(kind) => log.fact(&Fact { at: *at, cpu: CPU, kind }),
                    Event::Call(rule, limited_until) => log.decision(&DecisionRecord {
                        at: *at,
                        cpu: CpuId(0),
                        decision: Decision::Frequency {
                            policy: DOMAIN.policy(),
                            inputs: Vec::new(),
                            util: Some(0),
                            raw_khz: 0,
                            khz: 1,
                            previous_khz: 1,
                            rule,
                            limited_until,
                        },
                    }),
                    Need(opp) => needs.cpu_needs(*at, CPU, DOMAIN, opp),
                    Request(opp) => needs.requested(*at, DOMAIN, opp),
                    Driver(khz) => log.driver_asked(*at, DOMAIN, khz),
                    Clock(opp) => needs.settled(*at, DOMAIN, opp),
                }
            }
            needs.log().expect("kept").entry_ends(*at);
            needs.verify();
        }
        let mut ended = Vec::new();
        needs.log().expect("kept").run_over(10_000);
        needs.log().expect("kept").take_ended(|chain| ended.push(chain));
        ended
    }

    fn refused(until: Ns) -> Event {
        Event::Call(FrequencyRule::RateLimit, Some(until))
    }

    fn called(rule: FrequencyRule) -> Event {
        Event::Call(rule, None)
    }

    fn wakes() -> Event {
        Event::Fact(FactKind::Wakeup { task: UI, target: CPU, new: false })
    }

    /// Each wait by hand, in the order of `ChainWait::ALL`.
    #[test]
    fn where_the_time_goes() {
        let unchanged = || called(FrequencyRule::Unchanged);
        let answer = |at: Ns| -> Vec<(Ns, Vec<Event>)> {
            vec![
                (at, vec![called(FrequencyRule::Changed), Request(3)]),
                (at + 40, vec![Driver(4)]),
                (at + 100, vec![Clock(3)]),
            ]
        };
        for (name, before, waits) in [
            ("nobody calls", vec![(100, vec![Need(3)])], [800, 0, 0, 0, 0, 40, 60]),
            (
                "refused, and called again when the limit is long over",
                vec![(100, vec![Need(3), refused(600)])],
                [300, 500, 0, 0, 0, 40, 60],
            ),
            (
                "refused again, until later",
                vec![(100, vec![Need(3), refused(600)]), (700, vec![refused(950)])],
                [100, 700, 0, 0, 0, 40, 60],
            ),
            (
                "called later than the need, within the limit",
                vec![(100, vec![Need(3)]), (400, vec![refused(600)])],
                [600, 200, 0, 0, 0, 40, 60],
            ),
            (
                "called in the entry of the need, which it did not see",
                vec![(100, vec![unchanged(), Need(3)])],
                [0, 0, 800, 0, 0, 40, 60],
            ),
            (
                "called, and it wants something else",
                vec![(100, vec![Need(3)]), (300, vec![unchanged()])],
                [200, 0, 0, 0, 600, 40, 60],
            ),
            (
                "held, and then refused",
                vec![
                    (100, vec![Need(3)]),
                    (150, vec![called(FrequencyRule::Held)]),
                    (350, vec![refused(400)]),
                ],
                [50 + 500, 50, 0, 200, 0, 40, 60],
            ),
            (
                "a call from another domain's CPU is none",
                vec![(100, vec![Need(3)]), (300, vec![called(FrequencyRule::NotFromHere)])],
                [800, 0, 0, 0, 0, 40, 60],
            ),
        ] {
            let entries: Vec<(Ns, Vec<Event>)> = before.into_iter().chain(answer(900)).collect();
            let entries: Vec<(Ns, &[Event])> =
                entries.iter().map(|(at, events)| (*at, &events[..])).collect();
            let chains = chains(&entries);
            assert_eq!(chains.len(), 1, "{name}: {chains:?}");
            let chain = &chains[0];
            assert_eq!(chain.waits, waits, "{name}");
            assert_eq!((chain.end, chain.end_at), (ChainEnd::Settled, 1_000), "{name}");
            assert_eq!(chain.requested, Some((900, Some(CpuId(0)))), "{name}");
            assert_eq!((chain.from_khz, chain.khz, chain.driver_at), (1, 4, Some(940)), "{name}");
        }
    }

    /// A request in the entry of the need waits for the hardware only, and its call is no refusal.
    #[test]
    fn an_answer_at_once() {
        let call = called(FrequencyRule::Changed);
        let chains =
            chains(&[(100, &[wakes(), call, Need(3), Request(3), Driver(4)]), (160, &[Clock(3)])]);
        assert_eq!(chains[0].waits, [0, 0, 0, 0, 0, 0, 60]);
        let cause = NeedCause::Wakeup(UI);
        assert_eq!(chains[0].events, [ChainEvent::Need { at: 100, cpu: CPU, khz: 4, cause }]);
    }

    /// The events of a chain: needs with their causes, refusals one after another told once.
    #[test]
    fn events_and_causes() {
        let sleeps =
            FactKind::Switch { prev: UI, next: TaskId::IDLE, prev_state: TaskState::Interruptible };
        let told = chains(&[
            (100, &[Event::Fact(FactKind::Tick), wakes(), Need(2), refused(600)]),
            (200, &[refused(600), refused(600)]),
            (300, &[Event::Fact(FactKind::Tick), Need(3)]),
            (400, &[Event::Fact(sleeps), Need(0)]),
        ]);
        let need = |at, khz, cause| ChainEvent::Need { at, cpu: CPU, khz, cause };
        let refusal = ChainEvent::Governor {
            at: 100,
            cpu: CpuId(0),
            khz: 1,
            rule: FrequencyRule::RateLimit,
            limited_until: Some(600),
            times: 3,
        };
        let expected =
            [need(100, 3, NeedCause::Wakeup(UI)), refusal, need(300, 4, NeedCause::Tick)];
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].events, expected);
        assert_eq!((told[0].end, told[0].end_at), (ChainEnd::NeedGone, 400));
        assert_eq!(told[0].waits, [0, 300, 0, 0, 0, 0, 0]);
        // The same entry lowers a need for another reason than it raises one.
        let told = chains(&[
            (0, &[Need(4), Request(4), Clock(4)]),
            (100, &[wakes(), Event::Fact(sleeps), Need(1)]),
        ]);
        assert!(matches!(told[1].events[0], ChainEvent::Need { cause: NeedCause::Wakeup(UI), .. }));
        let told = chains(&[
            (0, &[Need(4), Request(4), Clock(4)]),
            (100, &[Event::Fact(FactKind::Tick), Event::Fact(sleeps), Need(1)]),
        ]);
        assert!(matches!(told[1].events[0], ChainEvent::Need { cause: NeedCause::Sleep(UI), .. }));
        assert_eq!(told[1].end, ChainEnd::RunOver);
    }

    /// A long chain keeps its first events and counts the rest.
    #[test]
    fn a_chain_keeps_so_many_events() {
        let mut needs = needs();
        for at in 0..100 {
            needs.cpu_needs(at, CPU, DOMAIN, 2 + at as usize % 2);
            needs.log().expect("kept").entry_ends(at);
        }
        let log = needs.log().expect("kept");
        log.run_over(100);
        log.take_ended(|chain| {
            assert_eq!(chain.events.len(), NeedChain::EVENTS_MOST);
            assert_eq!(chain.events_left_out, 100 - NeedChain::EVENTS_MOST as u32);
        });
    }
}
