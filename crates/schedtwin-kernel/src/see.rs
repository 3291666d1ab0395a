//! Recording what happened and why.
//!
//! Facts are always on. Decisions go through a [`See`]: `()` in the hot path, which compiles to
//! nothing, or a list that a recorder reads afterwards.

use crate::Kernel;
use schedtwin_types::{Candidate, Decision, DecisionRecord, Fact, FactKind, FrequencyInput};

/// Watches a decision being made.
pub trait See {
    /// Whether anybody watches: guards work that only serves the record.
    const ON: bool;
    /// A CPU was looked at.
    fn candidate(&mut self, candidate: impl FnOnce() -> Candidate);
    /// schedutil read a CPU.
    fn frequency_input(&mut self, input: impl FnOnce() -> FrequencyInput);
}

impl See for () {
    const ON: bool = false;
    #[inline(always)]
    fn candidate(&mut self, _: impl FnOnce() -> Candidate) {}
    #[inline(always)]
    fn frequency_input(&mut self, _: impl FnOnce() -> FrequencyInput) {}
}

/// Keeps what it sees.
#[derive(Default)]
pub struct Notes {
    /// CPUs looked at, in order.
    pub candidates: Vec<Candidate>,
    /// CPUs read by schedutil, in order.
    pub inputs: Vec<FrequencyInput>,
}

impl See for Notes {
    const ON: bool = true;
    fn candidate(&mut self, candidate: impl FnOnce() -> Candidate) {
        self.candidates.push(candidate());
    }
    fn frequency_input(&mut self, input: impl FnOnce() -> FrequencyInput) {
        self.inputs.push(input());
    }
}

impl Kernel {
    /// States a fact, stamped with the executing CPU's local clock.
    #[inline(always)]
    pub(crate) fn fact(&mut self, kind: FactKind) {
        let fact = Fact { at: self.local_clock(), cpu: self.this_cpu, kind };
        self.facts.push(fact);
    }

    /// Files a decision. Callers test `want_decisions` first.
    pub(crate) fn record(&mut self, decision: Decision) {
        let at = self.local_clock();
        self.decisions.push(DecisionRecord { at, cpu: self.this_cpu, decision });
    }
}
