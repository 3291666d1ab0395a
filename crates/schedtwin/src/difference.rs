//! Where two runs part: the first event after which they are no longer the same.

use crate::scenario::Scenario;
use crate::twin::{Observer, Twin};
use schedtwin_types::{DecisionRecord, Fact, Ns, TaskId};
use std::collections::VecDeque;

/// How many facts before the parting are shown.
const CONTEXT: usize = 12;

/// The first difference of two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// When.
    pub at: Ns,
    /// What happened on the left.
    pub left: String,
    /// What happened on the right.
    pub right: String,
    /// The decisions of that event on the left.
    pub decisions_left: Vec<String>,
    /// And on the right.
    pub decisions_right: Vec<String>,
    /// What both had in common just before.
    pub context: Vec<String>,
}

/// Keeps an event's facts and decisions, and the last facts before it.
#[derive(Default)]
struct Memory {
    facts: Vec<Fact>,
    decisions: Vec<DecisionRecord>,
    past: VecDeque<Fact>,
    names: Vec<String>,
}

impl Memory {
    /// A new event begins.
    fn turn_page(&mut self) {
        for fact in self.facts.drain(..) {
            if self.past.len() == CONTEXT {
                self.past.pop_front();
            }
            self.past.push_back(fact);
        }
        self.decisions.clear();
    }

    fn name(&self, id: TaskId) -> &str {
        if id.is_idle() {
            return "idle";
        }
        self.names.get(id.index()).map_or("?", String::as_str)
    }

    fn tell(&self, fact: &Fact) -> String {
        let mut text = format!("{:>14} cpu{} {:?}", seconds(fact.at), fact.cpu, fact.kind);
        text = replace_word(&text, "task0", self.name(TaskId::IDLE));
        for id in (1..self.names.len()).rev() {
            let number = format!("task{id}");
            if text.contains(&number) {
                // Names are cut to 15 characters, so the number stays beside them.
                let named = format!("{}:{id}", self.name(TaskId(id as u32)));
                text = replace_word(&text, &number, &named);
            }
        }
        text
    }
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        out.push_str(&rest[..at]);
        let whole = !rest[end..].starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if whole { by } else { word });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn seconds(at: Ns) -> String {
    format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
}

impl Observer for Memory {
    const DECISIONS: bool = true;
    fn task(&mut self, id: TaskId, name: &str, _prio: i32) {
        if self.names.len() <= id.index() {
            self.names.resize(id.index() + 1, String::from("?"));
        }
        self.names[id.index()] = name.to_string();
    }
    fn fact(&mut self, fact: &Fact) {
        self.facts.push(*fact);
    }
    fn decision(&mut self, decision: &DecisionRecord) {
        self.decisions.push(decision.clone());
    }
    fn power(&mut self, _: Ns, _: u16, _: u64) {}
    fn settled(&mut self, _: Ns) {}
}

/// Runs both side by side with one seed, until they part or end.
pub fn first_difference(a: &Scenario, b: &Scenario, seed: u64) -> Option<Difference> {
    let mut left: Twin = a.twin(seed);
    let mut right: Twin = b.twin(seed);
    left.kernel.want_decisions = true;
    right.kernel.want_decisions = true;
    let (mut seen_left, mut seen_right) = (Memory::default(), Memory::default());
    left.introduce(&mut seen_left);
    right.introduce(&mut seen_right);
    loop {
        seen_left.turn_page();
        seen_right.turn_page();
        let more_left = left.step(&mut seen_left);
        let more_right = right.step(&mut seen_right);
        let same =
            left.digest() == right.digest() && left.now() == right.now() && more_left == more_right;
        if same && !more_left {
            return None;
        }
        if !same {
            let parted = |mine: &Memory, other: &Memory, more: bool| {
                let at = mine.facts.iter().zip(&other.facts).position(|(l, r)| l != r);
                match at.or((mine.facts.len() > other.facts.len()).then_some(other.facts.len())) {
                    Some(at) => mine.tell(&mine.facts[at]),
                    None if !more => "the run is over".to_string(),
                    None => "nothing more in this event (silicon or frequency differ)".to_string(),
                }
            };
            let decisions = |memory: &Memory| {
                memory.decisions.iter().map(|d| format!("{:?}", d.decision)).collect()
            };
            return Some(Difference {
                at: left.now().min(right.now()),
                left: parted(&seen_left, &seen_right, more_left),
                right: parted(&seen_right, &seen_left, more_right),
                decisions_left: decisions(&seen_left),
                decisions_right: decisions(&seen_right),
                context: seen_left.past.iter().map(|f| seen_left.tell(f)).collect(),
            });
        }
    }
}
