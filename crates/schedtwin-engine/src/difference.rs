// SPDX-License-Identifier: GPL-2.0-or-later
//! Where two runs part: the first event after which they are no longer the same.

mod by_kind;

use crate::scenario::Scenario;
use crate::twin::{Observer, Twin};
pub use by_kind::{DecisionKind, KindDifference, first_differences_by_kind};
pub use schedtwin_trace::TaskInfo;
pub use schedtwin_trace::explain::Teller;
use schedtwin_types::{Decision, DecisionRecord, Fact, Ns, PowerSource, TaskId};
use std::collections::VecDeque;

/// How many facts before the parting are shown.
const CONTEXT: usize = 12;

/// Facts that are kept: a CPU's stamps may lie behind those of facts that came before.
const KEPT: usize = 3 * CONTEXT;

/// The first difference of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// When: the earliest time of what differs.
    pub at: Ns,
    /// The event on the left.
    pub left: String,
    /// The event on the right.
    pub right: String,
    /// The decision of that event that comes to something else on the left, worded as `explain` does.
    pub decisions_left: Vec<String>,
    /// And on the right.
    pub decisions_right: Vec<String>,
    /// The last events that both had in common, in the order of their times, none of them later than `at`.
    pub context: Vec<String>,
}

/// Keeps an event's facts and decisions, and the last facts before it.
#[derive(Default)]
struct Memory {
    facts: Vec<Fact>,
    decisions: Vec<DecisionRecord>,
    past: VecDeque<Fact>,
    teller: Teller,
}

impl Memory {
    /// A new event begins.
    fn turn_page(&mut self) {
        for fact in self.facts.drain(..) {
            if self.past.len() == KEPT {
                self.past.pop_front();
            }
            self.past.push_back(fact);
        }
        self.decisions.clear();
    }
}

impl Observer for Memory {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.teller.task(&TaskInfo { id, name: name.to_string(), prio });
    }
    fn fact(&mut self, fact: &Fact) {
        self.facts.push(*fact);
    }
    fn decision(&mut self, decision: DecisionRecord) {
        self.decisions.push(decision);
    }
    fn power(&mut self, _: Ns, _: PowerSource, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Returns the outcome of a decision, whatever inputs it looked at: its kind, its subject, its
/// result.
fn outcome(decision: &Decision) -> (u8, u64, u64) {
    match decision {
        Decision::Placement { task, chosen, .. } => (0, task.0.into(), chosen.0.into()),
        Decision::Frequency { policy, khz, .. } => (1, policy.0.into(), (*khz).into()),
        Decision::Idle { state, stop_tick, .. } => (2, (*state).into(), (*stop_tick).into()),
        Decision::Balance { dst, moved, .. } => (3, dst.0.into(), moved.len() as u64),
        Decision::Preemption { task, preempt, .. } => (4, task.0.into(), (*preempt).into()),
        Decision::Pick { prev, next, .. } => (5, prev.0.into(), next.0.into()),
    }
}

/// Runs both side by side with one seed, until they part or end.
pub fn first_difference(a: &Scenario, b: &Scenario, seed: u64) -> Option<Difference> {
    let mut left: Twin = a.twin(seed);
    let mut right: Twin = b.twin(seed);
    left.record_decisions();
    right.record_decisions();
    let (mut seen_left, mut seen_right) = (Memory::default(), Memory::default());
    seen_left.teller.header(&a.meta(seed));
    seen_right.teller.header(&b.meta(seed));
    left.introduce(&mut seen_left);
    right.introduce(&mut seen_right);
    loop {
        seen_left.turn_page();
        seen_right.turn_page();
        let more_left = left.step(&mut seen_left);
        let more_right = right.step(&mut seen_right);
        // A wish for a frequency may wait in the governor, so decisions can part before anything happens.
        let decided = |memory: &Memory| -> Vec<_> {
            memory.decisions.iter().map(|record| outcome(&record.decision)).collect()
        };
        let (decided_left, decided_right) = (decided(&seen_left), decided(&seen_right));
        let same = left.digest() == right.digest()
            && left.now() == right.now()
            && more_left == more_right
            && decided_left == decided_right;
        if same && !more_left {
            return None;
        }
        if !same {
            let parted = |mine: &Memory, other: &Memory| {
                let at = mine.facts.iter().zip(&other.facts).position(|(l, r)| l != r);
                at.or((mine.facts.len() > other.facts.len()).then_some(other.facts.len()))
                    .map(|at| mine.facts[at])
            };
            // The first one that comes to something else.
            let first = decided_left.iter().zip(&decided_right).take_while(|(l, r)| l == r).count();
            let told = |mine: &Memory, other: &Memory, more: bool| match parted(mine, other) {
                Some(fact) => mine.teller.fact(&fact),
                None if !more => "the run is over".to_string(),
                None if parted(other, mine).is_none() => {
                    "no event differs yet, only what was decided".to_string()
                }
                None => "nothing else differs in this event".to_string(),
            };
            let decisions = |memory: &Memory| {
                let parted = memory.decisions.get(first);
                parted.into_iter().map(|d| memory.teller.decision(d)).collect()
            };
            let both = [(&seen_left, &seen_right), (&seen_right, &seen_left)];
            let facts = both.iter().filter_map(|(mine, other)| Some(parted(mine, other)?.at));
            let decided = both.iter().filter_map(|(mine, _)| Some(mine.decisions.get(first)?.at));
            let at = facts.chain(decided).min();
            let at = at.unwrap_or_else(|| left.now().min(right.now()));
            let mut context: Vec<&Fact> = seen_left.past.iter().filter(|f| f.at <= at).collect();
            context.sort_by_key(|fact| fact.at);
            let skipped = context.len().saturating_sub(CONTEXT);
            return Some(Difference {
                at,
                left: told(&seen_left, &seen_right, more_left),
                right: told(&seen_right, &seen_left, more_right),
                decisions_left: decisions(&seen_left),
                decisions_right: decisions(&seen_right),
                context: context[skipped..].iter().map(|f| seen_left.teller.fact(f)).collect(),
            });
        }
    }
}
