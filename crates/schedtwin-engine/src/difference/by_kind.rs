// SPDX-License-Identifier: GPL-2.0-or-later
//! The first decision of each kind that two runs take differently.
//!
//! Two kernels often part in the idle governor of the first microsecond, and what somebody asks is where they part in
//! placement. After they have parted, events no longer match one another. So decisions are matched by their subject: the
//! n-th placement of a task on the left with its n-th on the right, the n-th choice of an idle state of a CPU, and so on.
//! The run that is behind goes on first, and the first pair with different outcomes is the difference of its kind.
//!
//! Differences: a later one may follow from an earlier one. A decision that only one of the runs takes is told if its kind
//! has no pair that differs. Of a subject at most [`MOST_PENDING`] decisions wait for their match; beyond them it is no longer
//! looked at.

use super::{Item, Memory, outcome};
use crate::scenario::Scenario;
use crate::twin::Twin;
use schedtwin_types::{Decision, DecisionRecord, Ns};
use std::collections::{BTreeMap, VecDeque};

/// Decisions of a subject that wait for the other run's.
const MOST_PENDING: usize = 4096;

/// The kind of a decision, as far as differences are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionKind {
    /// The CPU of a waking, forked or executing task.
    Placement,
    /// Whether a waking task preempts, and the task that runs next.
    Pick,
    /// The frequency of a domain.
    Frequency,
    /// The idle state of a CPU.
    Idle,
    /// Tasks that a CPU pulls.
    Balance,
}

impl DecisionKind {
    /// All kinds.
    pub const ALL: [DecisionKind; 5] = [
        DecisionKind::Placement,
        DecisionKind::Pick,
        DecisionKind::Frequency,
        DecisionKind::Idle,
        DecisionKind::Balance,
    ];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            DecisionKind::Placement => "placement",
            DecisionKind::Pick => "preemption or pick",
            DecisionKind::Frequency => "frequency",
            DecisionKind::Idle => "idle state",
            DecisionKind::Balance => "balancing",
        }
    }

    fn of(decision: &Decision) -> DecisionKind {
        match decision {
            Decision::Placement { .. } => DecisionKind::Placement,
            Decision::Preemption { .. } | Decision::Pick { .. } => DecisionKind::Pick,
            Decision::Frequency { .. } => DecisionKind::Frequency,
            Decision::Idle { .. } => DecisionKind::Idle,
            Decision::Balance { .. } => DecisionKind::Balance,
        }
    }
}

/// The first difference of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindDifference {
    /// The kind.
    pub kind: DecisionKind,
    /// The decision on the left; `None`: it is not taken there.
    pub left: Option<Taken>,
    /// The decision on the right.
    pub right: Option<Taken>,
}

/// A decision of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// When.
    pub at: Ns,
    /// In the words of `explain`.
    pub text: String,
}

impl KindDifference {
    /// The earlier of both times.
    pub fn at(&self) -> Ns {
        let times = [&self.left, &self.right].into_iter().flatten().map(|taken| taken.at);
        times.min().expect("one of them takes it")
    }
}

/// The thing that a decision is about: its kind, preemptions told from picks, and a task, CPU or frequency domain.
type Subject = (DecisionKind, bool, u64);

fn subject(record: &DecisionRecord) -> Subject {
    let kind = DecisionKind::of(&record.decision);
    match &record.decision {
        Decision::Placement { task, .. } => (kind, false, task.0.into()),
        Decision::Preemption { task, .. } => (kind, true, task.0.into()),
        Decision::Pick { .. } | Decision::Idle { .. } => (kind, false, record.cpu.0.into()),
        Decision::Frequency { policy, .. } => (kind, false, policy.0.into()),
        Decision::Balance { dst, .. } => (kind, false, dst.0.into()),
    }
}

/// One of both runs.
struct Side {
    twin: Twin,
    memory: Memory,
    /// Decisions that the other run has not taken yet, by subject.
    pending: BTreeMap<Subject, VecDeque<DecisionRecord>>,
    is_over: bool,
}

impl Side {
    fn new(scenario: &Scenario, seed: u64) -> Side {
        let mut twin: Twin = scenario.twin(seed);
        twin.record_decisions();
        let mut memory = Memory::default();
        memory.teller.header(&scenario.meta(seed));
        twin.introduce(&mut memory);
        Side { twin, memory, pending: BTreeMap::new(), is_over: false }
    }

    /// Performs one event, and returns its decisions.
    fn step(&mut self) -> Vec<DecisionRecord> {
        self.is_over = !self.twin.step(&mut self.memory);
        let decisions = self.memory.items.drain(..).filter_map(|item| match item {
            Item::Decision(decision) => Some(decision),
            Item::Fact(_) => None,
        });
        decisions.collect()
    }

    fn taken(&self, record: &DecisionRecord) -> Taken {
        Taken { at: record.at, text: self.memory.teller.decision(record) }
    }
}

/// Runs both with one seed until each kind of decision has differed or both runs are over: of each kind the first
/// difference, the earliest first.
pub fn first_differences_by_kind(a: &Scenario, b: &Scenario, seed: u64) -> Vec<KindDifference> {
    let mut sides = [Side::new(a, seed), Side::new(b, seed)];
    let mut found: BTreeMap<DecisionKind, KindDifference> = BTreeMap::new();
    let mut given_up: Vec<Subject> = Vec::new();
    while found.len() < DecisionKind::ALL.len() && sides.iter().any(|side| !side.is_over) {
        let [left, right] = &sides;
        let is_left_next = !left.is_over && (right.is_over || left.twin.now() <= right.twin.now());
        let (mine, other) = if is_left_next { (0, 1) } else { (1, 0) };
        for record in sides[mine].step() {
            let subject = subject(&record);
            if found.contains_key(&subject.0) || given_up.contains(&subject) {
                continue;
            }
            let matching =
                sides[other].pending.get_mut(&subject).and_then(|pending| pending.pop_front());
            match matching {
                Some(matching) if outcome(&matching.decision) == outcome(&record.decision) => {}
                Some(matching) => {
                    let own = Some(sides[mine].taken(&record));
                    let matching = Some(sides[other].taken(&matching));
                    let (left, right) = match is_left_next {
                        true => (own, matching),
                        false => (matching, own),
                    };
                    found.insert(subject.0, KindDifference { kind: subject.0, left, right });
                }
                None => {
                    let pending = sides[mine].pending.entry(subject).or_default();
                    pending.push_back(record);
                    if pending.len() > MOST_PENDING {
                        pending.clear();
                        given_up.push(subject);
                    }
                }
            }
        }
    }
    for kind in DecisionKind::ALL {
        let earliest = |side: &Side| {
            let of_kind = side.pending.iter().filter(|(subject, _)| subject.0 == kind);
            let first = of_kind.filter_map(|(_, pending)| pending.front());
            first.min_by_key(|record| record.at).cloned()
        };
        if found.contains_key(&kind) {
            continue;
        }
        let [left, right] = [earliest(&sides[0]), earliest(&sides[1])];
        // The earlier one of the two; the other run does not take it.
        let is_left = match (&left, &right) {
            (Some(left), Some(right)) => left.at <= right.at,
            (left, _) => left.is_some(),
        };
        let Some(record) = (if is_left { &left } else { &right }) else { continue };
        let taken = Some(sides[usize::from(!is_left)].taken(record));
        let (left, right) = if is_left { (taken, None) } else { (None, taken) };
        found.insert(kind, KindDifference { kind, left, right });
    }
    let mut found: Vec<KindDifference> = found.into_values().collect();
    found.sort_by_key(KindDifference::at);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(kernel: &str) -> Scenario {
        Scenario::new("uniform8", kernel, "w1", Some(200_000_000)).expect("a scenario")
    }

    #[test]
    fn a_kernel_and_itself_differ_in_nothing() {
        let same = scenario("linux-6.12");
        assert_eq!(first_differences_by_kind(&same, &same, 1), []);
    }

    #[test]
    fn each_kind_has_its_first_difference_and_the_earliest_is_first() {
        let (old, new) = (scenario("linux-6.1"), scenario("linux-6.12"));
        let found = first_differences_by_kind(&old, &new, 1);
        let kinds: Vec<DecisionKind> = found.iter().map(|of| of.kind).collect();
        assert!(
            kinds.contains(&DecisionKind::Idle) && kinds.contains(&DecisionKind::Pick),
            "{kinds:?}"
        );
        assert!(found.is_sorted_by_key(KindDifference::at));
        let mut once = kinds.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), kinds.len(), "{kinds:?}");
        assert!(found.iter().all(|of| of.left != of.right), "{found:?}");
        // The left and the right keep their places.
        let back = first_differences_by_kind(&new, &old, 1);
        let idle = |of: &[KindDifference]| {
            of.iter().find(|of| of.kind == DecisionKind::Idle).cloned().expect("it is there")
        };
        let (there, back) = (idle(&found), idle(&back));
        assert_eq!((there.left, there.right), (back.right, back.left));
    }

    #[test]
    fn a_setting_of_the_governor_differs_in_frequency() {
        let (a, b) = (scenario("linux-6.12"), scenario("linux-6.12:cpufreq=powersave"));
        let found = first_differences_by_kind(&a, &b, 1);
        let of = |kind| found.iter().find(|of| of.kind == kind);
        let frequency =
            of(DecisionKind::Frequency).expect("one governor decides, the other one never does");
        assert!(frequency.left.is_some(), "{frequency:?}");
    }
}
