// SPDX-License-Identifier: GPL-2.0-or-later
//! Recording what happened and why.
//!
//! Facts are always on. Decisions go through a [`DecisionObserver`]: `()` in the hot path, which compiles to
//! nothing, or a list that a recorder reads afterwards.

use crate::Context;
use schedtwin_types::{
    Candidate, Decision, DecisionRecord, Fact, FactKind, FrequencyInput, PickCandidate, PickRule,
    PreemptionRule,
};
use std::hint::cold_path;

/// Watches a decision being made; what it does not see is nothing to it.
pub trait DecisionObserver {
    /// Whether anybody watches: guards work that only serves the record.
    const ON: bool;
    /// A CPU was looked at.
    #[inline(always)]
    fn candidate(&mut self, _: impl FnOnce() -> Candidate) {}
    /// schedutil read a CPU.
    #[inline(always)]
    fn frequency_input(&mut self, _: impl FnOnce() -> FrequencyInput) {}
    /// A pick starts, or starts over because it met a task whose dequeue was delayed.
    #[inline(always)]
    fn pick_begins(&mut self) {}
    /// A level of the hierarchy has picked by that rule.
    #[inline(always)]
    fn pick(&mut self, _: PickRule) {}
    /// A pick had this entity to choose from.
    #[inline(always)]
    fn pick_candidate(&mut self, _: impl FnOnce() -> PickCandidate) {}
}

impl DecisionObserver for () {
    const ON: bool = false;
}

/// Keeps what it sees.
#[derive(Default)]
pub struct DecisionLog {
    /// CPUs looked at, in order.
    pub candidates: Vec<Candidate>,
    /// CPUs read by schedutil, in order.
    pub inputs: Vec<FrequencyInput>,
    /// The rule of the lowest level that had a choice, once something was picked.
    pub pick: Option<PickRule>,
    /// Entities that a pick had to choose from, level by level.
    pub pick_candidates: Vec<PickCandidate>,
}

/// Appends `item`. Most decisions look at eight or fewer: the list allocates space once.
fn note<T>(list: &mut Vec<T>, item: T) {
    if list.capacity() == 0 {
        list.reserve(8);
    }
    list.push(item);
}

/// Sees only by which rule was picked last.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastPick(pub Option<PickRule>);

impl DecisionObserver for LastPick {
    const ON: bool = false;
    #[inline(always)]
    fn pick(&mut self, rule: PickRule) {
        self.0 = Some(rule);
    }
}

impl LastPick {
    /// Why a waking task that was not picked does not preempt.
    pub fn refuses(self) -> PreemptionRule {
        match self.0 {
            Some(PickRule::RunToParity) => PreemptionRule::SliceProtected,
            _ => PreemptionRule::NotEarliestDeadline,
        }
    }
}

impl DecisionObserver for DecisionLog {
    const ON: bool = true;
    fn candidate(&mut self, candidate: impl FnOnce() -> Candidate) {
        note(&mut self.candidates, candidate());
    }
    fn frequency_input(&mut self, input: impl FnOnce() -> FrequencyInput) {
        note(&mut self.inputs, input());
    }
    fn pick_begins(&mut self) {
        self.pick = None;
        self.pick_candidates.clear();
    }
    fn pick(&mut self, rule: PickRule) {
        if self.pick.is_none() || rule != PickRule::OnlyEntity {
            self.pick = Some(rule);
        }
    }
    fn pick_candidate(&mut self, candidate: impl FnOnce() -> PickCandidate) {
        note(&mut self.pick_candidates, candidate());
    }
}

impl Context {
    /// States a fact, stamped with the executing CPU's local clock.
    #[inline(always)]
    pub(crate) fn fact(&mut self, kind: FactKind) {
        let fact = Fact { at: self.local_clock(), cpu: self.this_cpu, kind };
        self.facts.push(fact);
    }

    /// Whether decisions are recorded. Most runs do not record, so the code for it is laid out apart.
    #[inline(always)]
    pub(crate) fn wants_decisions(&self) -> bool {
        let wanted = self.want_decisions;
        if wanted {
            cold_path();
        }
        wanted
    }

    /// Files a decision. Callers test `wants_decisions()` first.
    #[cold]
    pub(crate) fn record(&mut self, decision: Decision) {
        let at = self.local_clock();
        self.decisions.push(DecisionRecord { at, cpu: self.this_cpu, decision });
    }
}
