//! One row of the re-driven evidence: a mechanism of the kernel, what the recordings ask of it, and what came of it.
//!
//! **Terms.** *event*: the recorded kernel decided. *judged*: we know enough to be asked the same. *equal*: our answer
//! is the recorded one. *trivial*: so is the answer of somebody who decides nothing (stays on the previous CPU, keeps the
//! frequency, takes that CPU's commonest state, lets the running task run). *skill* = (equal − trivial) / (judged −
//! trivial): 0 for him, 1 for the truth. A [`Difference`] says why an answer is not equal; whatever is neither
//! the stamps' resolution nor on the short list of unknown inputs is the model's fault.

use std::collections::BTreeMap;
use std::fmt;

use super::Percent;

/// Why an answer is not the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// A program found times within the stated resolution with which our answer is the recorded one.
    Timestamp,
    /// The decision needs a field that is on the short list of those that no line prints.
    UnknownInput(Unknown),
    /// Neither: the model is wrong.
    ModelWrong,
}

/// The fields that recordings do not print. The list is fixed; a longer one needs a reason here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// When interrupt time was charged: only its sum is printed, before a switch and around a wakeup.
    InterruptTime,
    /// When a timer-wheel timer is due.
    WheelTimer,
    /// What another CPU was just writing.
    OtherCpu,
    /// What happened before the recording began.
    BeforeRecording,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Difference::Timestamp => "timestamp",
            Difference::UnknownInput(Unknown::InterruptTime) => "unknown input: interrupt time",
            Difference::UnknownInput(Unknown::WheelTimer) => "unknown input: timer wheel",
            Difference::UnknownInput(Unknown::OtherCpu) => "unknown input: another CPU's write",
            Difference::UnknownInput(Unknown::BeforeRecording) => {
                "unknown input: before the recording"
            }
            Difference::ModelWrong => "model wrong",
        })
    }
}

/// Counts of one mechanism.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mechanism {
    /// Decisions recorded.
    pub events: u64,
    /// Decisions that we were asked for.
    pub judged: u64,
    /// Answers that are the recorded ones.
    pub equal: u64,
    /// Trivial answers that are the recorded ones.
    pub trivial: u64,
    /// The other answers of ours, by reason.
    pub differences: BTreeMap<Difference, u64>,
}

impl Mechanism {
    /// Counts a decision that we cannot be asked for.
    pub fn skip(&mut self) {
        self.events += 1;
    }

    /// Counts an answer; returns whether it is equal.
    pub fn count(&mut self, equal: bool, trivial: bool, why: impl FnOnce() -> Difference) -> bool {
        self.events += 1;
        self.judged += 1;
        self.equal += equal as u64;
        self.trivial += trivial as u64;
        if !equal {
            *self.differences.entry(why()).or_default() += 1;
        }
        equal
    }

    /// Adds another recording's counts.
    pub fn merge(&mut self, other: &Mechanism) {
        self.events += other.events;
        self.judged += other.judged;
        self.equal += other.equal;
        self.trivial += other.trivial;
        for (difference, count) in &other.differences {
            *self.differences.entry(*difference).or_default() += count;
        }
    }

    /// Skill in ten thousandths, rounded down; `None` if the trivial answer is always right.
    pub fn skill(&self) -> Option<i64> {
        let gained = self.equal as i64 - self.trivial as i64;
        match self.judged as i64 - self.trivial as i64 {
            0 => None,
            possible => Some((gained * 10_000).div_euclid(possible)),
        }
    }

    /// Answers that are not equal for want of resolution or of an input.
    pub fn excused(&self) -> u64 {
        let all = self.differences.iter();
        all.filter(|(why, _)| **why != Difference::ModelWrong).map(|(_, count)| count).sum()
    }

    /// Answers that are not equal through our fault.
    pub fn wrong(&self) -> u64 {
        self.judged - self.equal - self.excused()
    }
}

/// The head of the table whose rows [`Row`] prints.
pub const HEAD: &str = "  mechanism                  events  judged judged %   equal  equal % trivial   skill  differences";

/// A mechanism's counts as a line of the table.
pub struct Row<'a>(pub &'a str, pub &'a Mechanism);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row(name, counts) = self;
        let Mechanism { events, judged, equal, trivial, differences } = counts;
        let skill = counts.skill().map_or("-".to_string(), |s| format!("{:.4}", s as f64 / 1e4));
        let (of_events, of_judged) = (Percent(*judged, *events), Percent(*equal, *judged));
        write!(
            f,
            "  {name:25}{events:8}{judged:8}{of_events:>9}{equal:8}{of_judged:>9}{trivial:8}{skill:>8} "
        )?;
        for (difference, count) in differences {
            write!(f, " {difference}: {count};")?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_is_0_for_the_lazy_and_1_for_the_right() {
        for (equal, trivial, skill) in [
            (90, 90, Some(0)),
            (100, 90, Some(10_000)),
            (95, 90, Some(5_000)),
            (80, 90, Some(-10_000)),
        ] {
            let row = Mechanism { events: 100, judged: 100, equal, trivial, ..Default::default() };
            assert_eq!(row.skill(), skill, "{equal} {trivial}");
        }
        let always = Mechanism { judged: 5, equal: 5, trivial: 5, ..Default::default() };
        assert_eq!(always.skill(), None);
    }

    #[test]
    fn what_is_neither_resolution_nor_a_listed_input_is_our_fault() {
        let mut row = Mechanism::default();
        row.skip();
        row.count(true, false, || unreachable!());
        row.count(false, false, || Difference::Timestamp);
        row.count(false, true, || Difference::UnknownInput(Unknown::WheelTimer));
        row.count(false, true, || Difference::ModelWrong);
        assert_eq!((row.events, row.judged, row.equal, row.trivial), (5, 4, 1, 2));
        assert_eq!((row.excused(), row.wrong()), (2, 1));
        let line = Row("pick", &row).to_string();
        assert!(
            line.contains("timestamp: 1; unknown input: timer wheel: 1; model wrong: 1;"),
            "{line}"
        );
    }
}
