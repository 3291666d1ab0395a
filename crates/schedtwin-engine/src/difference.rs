// SPDX-License-Identifier: GPL-2.0-or-later
//! Where two runs part: the first event after which they are no longer the same.

mod by_kind;

use crate::scenario::Scenario;
use crate::twin::{Observer, Twin};
pub use by_kind::{DecisionKind, KindDifference, Taken, first_differences_by_kind};
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

/// A thing that an observer is told.
enum Item {
    Fact(Fact),
    Decision(DecisionRecord),
}

/// Keeps what a run has told and the other one has not been compared with.
#[derive(Default)]
struct Memory {
    items: VecDeque<Item>,
    teller: Teller,
}

impl Memory {
    fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.items.iter().filter_map(|item| match item {
            Item::Fact(fact) => Some(fact),
            Item::Decision(_) => None,
        })
    }

    fn decisions(&self) -> impl Iterator<Item = &DecisionRecord> {
        self.items.iter().filter_map(|item| match item {
            Item::Fact(_) => None,
            Item::Decision(decision) => Some(decision),
        })
    }
}

impl Observer for Memory {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, prio: i32) {
        self.teller.task(&TaskInfo { id, name: name.to_string(), prio });
    }
    fn fact(&mut self, fact: &Fact) {
        self.items.push_back(Item::Fact(*fact));
    }
    fn decision(&mut self, decision: DecisionRecord) {
        self.items.push_back(Item::Decision(decision));
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

/// Runs both side by side with one seed, until they part or end. What they tell is compared, not their steps: an event of which
/// nothing is told, such as a timer of a watchdog, is no difference.
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
    let mut past = VecDeque::new();
    loop {
        while seen_left.items.is_empty() && left.step(&mut seen_left) {}
        while seen_right.items.is_empty() && right.step(&mut seen_right) {}
        // A wish for a frequency may wait in the governor, so decisions can part before anything happens.
        let same = match (seen_left.items.front(), seen_right.items.front()) {
            (None, None) => return None,
            (Some(Item::Fact(l)), Some(Item::Fact(r))) => l == r,
            (Some(Item::Decision(l)), Some(Item::Decision(r))) => {
                outcome(&l.decision) == outcome(&r.decision)
            }
            _ => false,
        };
        if !same {
            return Some(difference(&seen_left, &seen_right, &past));
        }
        if let Some(Item::Fact(fact)) = seen_left.items.pop_front() {
            if past.len() == KEPT {
                past.pop_front();
            }
            past.push_back(fact);
        }
        seen_right.items.pop_front();
    }
}

/// The difference of two runs that tell other things from here on.
fn difference(left: &Memory, right: &Memory, past: &VecDeque<Fact>) -> Difference {
    let parted = |mine: &Memory, other: &Memory| {
        let mut others = other.facts();
        mine.facts().find(|fact| others.next() != Some(fact)).copied()
    };
    // The first one that comes to something else.
    let same =
        |(l, r): &(&DecisionRecord, &DecisionRecord)| outcome(&l.decision) == outcome(&r.decision);
    let first = left.decisions().zip(right.decisions()).take_while(same).count();
    let decision = |memory: &Memory| memory.decisions().nth(first).cloned();
    let told = |mine: &Memory, other: &Memory| match parted(mine, other) {
        Some(fact) => {
            let same = |of: &Fact| (of.cpu, of.kind) == (fact.cpu, fact.kind) && of.at < fact.at;
            let later = parted(other, mine).filter(same).map_or_else(String::new, |of| {
                let ns = fact.at - of.at;
                format!(
                    "\n(the same event, {ns} ns later: a path of the kernel takes another time)"
                )
            });
            mine.teller.fact(&fact) + &later
        }
        None if mine.items.is_empty() => "the run is over".to_string(),
        None if parted(other, mine).is_none() => {
            "no event differs yet, only what was decided".to_string()
        }
        None => "nothing else differs in this event".to_string(),
    };
    let both = [(left, right), (right, left)];
    let facts = both.iter().filter_map(|(mine, other)| Some(parted(mine, other)?.at));
    let decided = both.iter().filter_map(|(mine, _)| Some(decision(mine)?.at));
    let at = facts.chain(decided).min().expect("something of one side differs");
    let mut context: Vec<&Fact> = past.iter().filter(|fact| fact.at <= at).collect();
    context.sort_by_key(|fact| fact.at);
    let skipped = context.len().saturating_sub(CONTEXT);
    let words = |memory: &Memory| {
        decision(memory).iter().map(|decision| memory.teller.decision(decision)).collect()
    };
    Difference {
        at,
        left: told(left, right),
        right: told(right, left),
        decisions_left: words(left),
        decisions_right: words(right),
        context: context[skipped..].iter().map(|fact| left.teller.fact(fact)).collect(),
    }
}
