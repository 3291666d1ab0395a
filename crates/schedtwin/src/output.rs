// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces and records of a run: puts facts into time order and hands them to their files.
//!
//! Facts are stamped with the executing CPU's local clock, which may run a few microseconds ahead of the
//! event that they belong to. What is stamped up to the time of the board can no longer be preceded by
//! anything, so it is handed on; the rest waits in a short sorted list.

use crate::twin::Observer;
use schedtwin_trace::{Sink, TaskInfo};
use schedtwin_types::{DecisionRecord, Fact, NeedChain, Ns, PowerSource, TaskId};
use std::io;

/// Facts that may wait before they are handed on.
const BATCH: usize = 256;

/// Files that a run is written to.
#[derive(Default)]
pub struct Output {
    trace: Option<Box<dyn Sink>>,
    record: Option<Box<dyn Sink>>,
    facts: Vec<Fact>,
    decisions: Vec<DecisionRecord>,
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
        let facts = Vec::with_capacity(2 * BATCH);
        Output { trace, record, facts, nr_clocks, ..Output::default() }
    }

    fn flush(&mut self, until: Ns) {
        let facts = self.facts.partition_point(|f| f.at <= until);
        let decisions = self.decisions.partition_point(|d| d.at <= until);
        let power = self.power.partition_point(|p| p.0 <= until);
        let chains = self.chains.partition_point(|chain| chain.end_at <= until);
        for sink in self.trace.iter_mut().chain(self.record.iter_mut()) {
            hand_on(
                sink.as_mut(),
                &self.facts[..facts],
                &self.decisions[..decisions],
                &self.power[..power],
                &self.chains[..chains],
            );
        }
        self.chains.drain(..chains);
        self.facts.drain(..facts);
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
fn hand_on(
    sink: &mut dyn Sink,
    facts: &[Fact],
    decisions: &[DecisionRecord],
    power: &[(Ns, u16, u64)],
    chains: &[NeedChain],
) {
    let (mut decisions, mut power) = (decisions.iter().peekable(), power.iter().peekable());
    let mut chains = chains.iter().peekable();
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
            return;
        }
    };
    for fact in facts {
        until(fact.at, sink);
        sink.fact(fact);
    }
    until(Ns::MAX, sink);
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
        let mut at = self.facts.len();
        while at > 0 && self.facts[at - 1].at > fact.at {
            at -= 1;
        }
        self.facts.insert(at, *fact);
    }

    fn decision(&mut self, decision: DecisionRecord) {
        if self.record.is_some() {
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
