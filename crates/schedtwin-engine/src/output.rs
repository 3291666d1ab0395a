// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces and records of a run: puts facts into time order and hands them to their files.
//!
//! Facts are stamped with the executing CPU's local clock, which may run a few microseconds ahead of the
//! event that they belong to. What is stamped up to the time of the board can no longer be preceded by
//! anything, so it is handed on; the rest waits. Waiting facts stay where they are put; what is kept in order is a short
//! list of their times and places.

use crate::twin::Observer;
use schedtwin_trace::{Sink, TaskInfo};
use schedtwin_types::{DecisionRecord, Fact, NeedChain, Ns, PowerSource, TaskId};
use std::io;

/// Facts that may wait before they are handed on.
const BATCH: usize = 256;

/// Facts among which the place of a new one is looked for first: a power of two.
const NEAR: usize = 64;

/// Files that a run is written to.
#[derive(Default)]
pub struct Output {
    trace: Option<Box<dyn Sink>>,
    record: Option<Box<dyn Sink>>,
    /// Facts that wait, as they came.
    facts: Vec<Fact>,
    /// Their times and places in `facts`, in time order.
    order: Vec<(Ns, u32)>,
    /// Buffer for those that go on to wait while others are handed on.
    later: Vec<Fact>,
    decisions: Vec<DecisionRecord>,
    /// Whether one of the files keeps decisions.
    wants_decisions: bool,
    /// Chains that wait with the facts, by their ends.
    chains: Vec<NeedChain>,
    /// Power that waits with the facts: when, of which number, microwatts.
    power: Vec<(Ns, u16, u64)>,
    /// Power by number as told last, microwatts.
    power_uw: Vec<u64>,
    /// Files number clock domains first, then power domains.
    nr_clocks: usize,
}

impl Output {
    /// Writes to a trace and a record of a machine with `nr_clocks` clock domains.
    pub fn new(
        trace: Option<Box<dyn Sink>>,
        record: Option<Box<dyn Sink>>,
        nr_clocks: usize,
    ) -> Output {
        let wants_decisions = trace.iter().chain(&record).any(|sink| sink.wants_decisions());
        Output {
            trace,
            record,
            wants_decisions,
            facts: Vec::with_capacity(2 * BATCH),
            order: Vec::with_capacity(2 * BATCH),
            later: Vec::with_capacity(2 * BATCH),
            nr_clocks,
            ..Output::default()
        }
    }

    /// Whether one of the files keeps decisions.
    pub fn wants_decisions(&self) -> bool {
        self.wants_decisions
    }

    fn flush(&mut self, until: Ns) {
        let facts = self.order.partition_point(|(at, _)| *at <= until);
        let decisions = self.decisions.partition_point(|d| d.at <= until);
        let power = self.power.partition_point(|p| p.0 <= until);
        let chains = self.chains.partition_point(|chain| chain.end_at <= until);
        for sink in self.trace.iter_mut().chain(self.record.iter_mut()) {
            hand_on(
                sink.as_mut(),
                self.order[..facts].iter().map(|(_, place)| &self.facts[*place as usize]),
                &self.decisions[..decisions],
                &self.power[..power],
                &self.chains[..chains],
            );
        }
        self.chains.drain(..chains);
        self.order.drain(..facts);
        for (later, (_, place)) in self.order.iter_mut().enumerate() {
            self.later.push(self.facts[*place as usize]);
            *place = later as u32;
        }
        std::mem::swap(&mut self.facts, &mut self.later);
        self.later.clear();
        self.decisions.drain(..decisions);
        self.power.drain(..power);
    }

    /// Hands on what is left and closes the files.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush(Ns::MAX);
        if let Some(trace) = self.trace.take() {
            trace.finish()?;
        }
        if let Some(record) = self.record.take() {
            record.finish()?;
        }
        Ok(())
    }

    fn sinks(&mut self) -> impl Iterator<Item = &mut Box<dyn Sink>> {
        self.trace.iter_mut().chain(self.record.iter_mut())
    }
}

/// Hands all of it to a sink in time order. At one instant: power, then why, then what has been waited for, then what.
fn hand_on<'a>(
    sink: &mut dyn Sink,
    facts: impl Iterator<Item = &'a Fact>,
    decisions: &[DecisionRecord],
    power: &[(Ns, u16, u64)],
    chains: &[NeedChain],
) {
    let (mut decisions, mut power) = (decisions.iter().peekable(), power.iter().peekable());
    let mut chains = chains.iter().peekable();
    // Returns when there is more to hand on.
    let mut until = |at: Ns, sink: &mut dyn Sink| loop {
        let decided_at = decisions.peek().map_or(Ns::MAX, |d| d.at);
        let ended_at = chains.peek().map_or(Ns::MAX, |chain| chain.end_at);
        let next = at.min(decided_at).min(ended_at);
        if let Some((at, number, microwatts)) = power.next_if(|p| p.0 <= next) {
            sink.power_uw(*at, *number, *microwatts);
        } else if let Some(decision) = decisions.next_if(|d| d.at <= at.min(ended_at)) {
            sink.decision(decision);
        } else if let Some(chain) = chains.next_if(|chain| chain.end_at <= at) {
            sink.chain(chain);
        } else {
            return power.peek().map_or(Ns::MAX, |p| p.0).min(decided_at).min(ended_at);
        }
    };
    let mut more_at = 0;
    for fact in facts {
        if more_at <= fact.at {
            more_at = until(fact.at, sink);
        }
        sink.fact(fact);
    }
    until(Ns::MAX, sink);
}

/// Where a fact of time `at` belongs that is not the last: behind all that are not later.
#[inline(always)]
fn place_of(order: &[(Ns, u32)], at: Ns) -> usize {
    match order.last_chunk::<NEAR>() {
        Some(near) if near[0].0 <= at => {
            // The last is later, so the place is one of `NEAR`: a bit of it a step, without a branch.
            let mut place = 0;
            let mut step = NEAR / 2;
            while step > 0 {
                let behind = near[(place + step - 1) % NEAR].0 <= at;
                place += if behind { step } else { 0 };
                step /= 2;
            }
            order.len() - NEAR + place
        }
        _ => order.partition_point(|entry| entry.0 <= at),
    }
}

impl Observer for Output {
    const DECISIONS: bool = true;

    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        for sink in self.sinks() {
            sink.task(&TaskInfo { id, name: name.to_string(), prio });
        }
    }

    fn task_prio(&mut self, at: Ns, id: TaskId, prio: i32) {
        self.flush(at);
        for sink in self.sinks() {
            sink.task_prio(id, prio);
        }
    }

    #[inline]
    fn fact(&mut self, fact: &Fact) {
        let entry = (fact.at, self.facts.len() as u32);
        self.facts.push(*fact);
        match self.order.last() {
            Some(last) if last.0 > fact.at => {
                let place = place_of(&self.order, fact.at);
                self.order.insert(place, entry);
            }
            _ => self.order.push(entry),
        }
    }

    fn decision(&mut self, decision: DecisionRecord) {
        if self.wants_decisions {
            let mut at = self.decisions.len();
            while at > 0 && self.decisions[at - 1].at > decision.at {
                at -= 1;
            }
            self.decisions.insert(at, decision);
        }
    }

    fn chain(&mut self, chain: NeedChain) {
        if self.record.is_some() {
            // Chains of several domains may end at one instant; the time of the board only goes forward.
            self.chains.push(chain);
        }
    }

    fn power(&mut self, at: Ns, source: PowerSource, microwatts: u64) {
        let number = source.number(self.nr_clocks);
        let index = usize::from(number);
        if self.power_uw.len() <= index {
            self.power_uw.resize(index + 1, u64::MAX);
        }
        if self.power_uw[index] != microwatts {
            self.power_uw[index] = microwatts;
            self.power.push((at, number, microwatts));
        }
    }

    #[inline]
    fn settled(&mut self, now: Ns) {
        if self.facts.len() + self.power.len() >= BATCH {
            self.flush(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedtwin_types::draw::{Purpose, draw};
    use schedtwin_types::{CpuId, FactKind};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Keeps the times and the CPUs of facts.
    struct Kept(Rc<RefCell<Vec<(Ns, u16)>>>);

    impl Sink for Kept {
        fn task(&mut self, _: &TaskInfo) {}
        fn task_prio(&mut self, _: TaskId, _: i32) {}
        fn fact(&mut self, fact: &Fact) {
            self.0.borrow_mut().push((fact.at, fact.cpu.0));
        }
        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    /// Facts that come up to `ahead` before their turn; those of one time stay in the order in which they came.
    fn check(ahead: u64) {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let mut output = Output::new(Some(Box::new(Kept(kept.clone()))), None, 1);
        let mut expected = Vec::new();
        for number in 0..5_000u16 {
            let now = u64::from(number / 3);
            let at = now + draw(ahead, number.into(), Purpose::StartPhase, 0, 0, ahead);
            // The number of the CPU says which fact it is.
            output.fact(&Fact { at, cpu: CpuId(number), kind: FactKind::Tick });
            output.settled(now - now.min(1));
            expected.push((at, number));
        }
        output.finish().expect("nothing can fail");
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(*kept.borrow(), expected, "{ahead} ahead");
    }

    #[test]
    fn facts_are_handed_on_in_time_order() {
        for ahead in [0, 1, 5, 20, 64, 200, 1_000, 10_000] {
            check(ahead);
        }
    }
}
