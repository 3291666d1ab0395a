//! What came of the comparisons of decisions: counts per question, and why some differ.
//!
//! **Terms.** *judged*: the recording has an answer. *equal*: ours is the same. *trivial*: the answer
//! of somebody who always says "as before" (the frequency stays; the task stays on its CPU) is the same.
//! *skill* = (equal − trivial) / (judged − trivial): 0 for him, 1 for the truth.
//!
//! A *change* of frequency is met when ours has the same frequency within one rate limit of it.

use std::collections::BTreeMap;
use std::fmt;

use super::Percent;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// schedutil, after a call: the frequency it computed last, before the table.
    Raw,
    /// schedutil, after a call: the frequency it wants.
    Request,
    /// EAS: the utilisation that decides a domain's operating point.
    MaxUtil,
    /// EAS: a domain's busy time.
    Busy,
    /// EAS: a domain's energy.
    Energy,
    /// EAS: the CPU on which the task wakes.
    Placement,
}

impl Question {
    /// Whether "as before" is an answer to it.
    pub fn has_trivial_answer(self) -> bool {
        matches!(self, Question::Raw | Question::Request | Question::Placement)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Question::Raw => "sugov, raw kHz",
            Question::Request => "sugov, request",
            Question::MaxUtil => "EAS, max util",
            Question::Busy => "EAS, busy time",
            Question::Energy => "EAS, energy",
            Question::Placement => "EAS, choice",
        })
    }
}

/// Why an answer differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A queue of the domain has not been seen empty yet: who is on it is not known.
    QueueUnknown,
    /// Nothing has told the task's state yet.
    TaskUnknown,
    /// The interrupt signal or the capacity of a CPU has not been printed yet.
    BeforeRecording,
    /// With the printed interrupt signal ours is equal: how interrupt time was spread is not printed.
    InterruptTime,
    /// With the printed averages of the last lines ours is equal.
    Signal,
    /// An earlier answer for the same domain differed within the last rate limit, which shifts the next.
    Follows,
    /// An estimate that the choice rests on differs.
    Estimate,
    /// Another CPU was amidst an update of the domain or had just made one: what memory held when the
    /// answer was found is not what the lines say.
    Raced,
    /// None of these: the model is wrong, or an input is not known.
    Unexplained,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Why::QueueUnknown => "queue not known yet",
            Why::TaskUnknown => "task not known yet",
            Why::BeforeRecording => "state from before the recording",
            Why::InterruptTime => "spread of interrupt time",
            Why::Signal => "re-driven signal",
            Why::Follows => "follows another",
            Why::Estimate => "follows an estimate",
            Why::Raced => "another CPU's update",
            Why::Unexplained => "unexplained",
        })
    }
}

/// Counts of one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Answers compared.
    pub judged: u64,
    /// Of these, equal.
    pub equal: u64,
    /// Of these, as before.
    pub trivial: u64,
    /// The others by reason.
    pub causes: BTreeMap<Why, u64>,
}

impl Answers {
    /// Counts one; returns whether it is equal.
    pub fn count(&mut self, equal: bool, trivial: bool, why: impl FnOnce() -> Why) -> bool {
        self.judged += 1;
        self.equal += equal as u64;
        self.trivial += trivial as u64;
        if !equal {
            *self.causes.entry(why()).or_default() += 1;
        }
        equal
    }

    /// Skill in ten thousandths, rounded down; `None` if "as before" is always right.
    pub fn skill(&self) -> Option<i64> {
        let gained = self.equal as i64 - self.trivial as i64;
        match self.judged as i64 - self.trivial as i64 {
            0 => None,
            possible => Some((gained * 10_000).div_euclid(possible)),
        }
    }
}

/// Changes of frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Recorded ones.
    pub recorded: u64,
    /// Ours.
    pub ours: u64,
    /// Pairs of one each.
    pub matched: u64,
}

impl Changes {
    /// Pairs two lists of changes (time in ns, kHz), each ascending in time, within `within` ns.
    pub fn of(recorded: &[(u64, u32)], ours: &[(u64, u32)], within: u64) -> Changes {
        let mut used = vec![false; ours.len()];
        let mut from = 0;
        let mut matched = 0;
        for (time, khz) in recorded {
            while from < ours.len() && ours[from].0.saturating_add(within) < *time {
                from += 1;
            }
            let near = ours[from..].iter().take_while(|o| o.0 <= time.saturating_add(within));
            let hit = near.enumerate().find(|(i, o)| o.1 == *khz && !used[from + i]);
            if let Some((i, _)) = hit {
                used[from + i] = true;
                matched += 1;
            }
        }
        Changes { recorded: recorded.len() as u64, ours: ours.len() as u64, matched }
    }
}

/// All counts of a recording, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// By question.
    pub answers: BTreeMap<Question, Answers>,
    /// Changes of frequency.
    pub changes: Changes,
}

impl Decisions {
    /// Adds another recording's counts.
    pub fn merge(&mut self, other: &Decisions) {
        for (question, from) in &other.answers {
            let to = self.answers.entry(*question).or_default();
            to.judged += from.judged;
            to.equal += from.equal;
            to.trivial += from.trivial;
            for (why, count) in &from.causes {
                *to.causes.entry(*why).or_default() += count;
            }
        }
        self.changes.recorded += other.changes.recorded;
        self.changes.ours += other.changes.ours;
        self.changes.matched += other.changes.matched;
    }
}

impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {:22}{:>8}{:>8}{:>10}{:>8}  not equal: due to",
            "decision", "judged", "equal %", "trivial %", "skill",
        )?;
        for (question, answers) in &self.answers {
            let Answers { judged, equal, trivial, causes } = answers;
            let (trivial, skill) = if question.has_trivial_answer() {
                let skill = answers.skill().map_or("-".to_string(), ten_thousandths);
                (Percent(*trivial, *judged).to_string(), skill)
            } else {
                Default::default()
            };
            let equal = Percent(*equal, *judged);
            write!(f, "  {question:22}{judged:8}{equal:>8}{trivial:>10}{skill:>8} ")?;
            for (why, count) in causes {
                write!(f, " {why}: {count};")?;
            }
            writeln!(f)?;
        }
        let Changes { recorded, ours, matched } = self.changes;
        writeln!(f, "  changes of frequency: recorded {recorded}, ours {ours}, matched {matched}")
    }
}

/// As a decimal fraction.
fn ten_thousandths(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    format!("{sign}{}.{:04}", value / 10_000, value % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_of_the_lazy_the_right_and_the_wrong() {
        for (equal, trivial, skill) in [
            (90, 90, Some(0)),
            (100, 90, Some(10_000)),
            (95, 90, Some(5_000)),
            (80, 90, Some(-10_000)),
        ] {
            let answers = Answers { judged: 100, equal, trivial, ..Answers::default() };
            assert_eq!(answers.skill(), skill, "{equal} {trivial}");
        }
        let answers = Answers { judged: 5, equal: 5, trivial: 5, ..Answers::default() };
        assert_eq!(answers.skill(), None);
    }

    #[test]
    fn changes_are_paired_once_and_only_nearby() {
        let recorded = [(1_000, 5), (2_000, 6), (9_000, 5)];
        let check = |ours: &[(u64, u32)], matched| {
            assert_eq!(Changes::of(&recorded, ours, 500).matched, matched, "{ours:?}");
        };
        check(&recorded, 3);
        check(&[(1_500, 5), (1_500, 6)], 2);
        check(&[(1_501, 5)], 0);
        check(&[(2_000, 5)], 0);
        check(&[(600, 5), (800, 5)], 1);
        check(&[], 0);
    }
}
