// SPDX-License-Identifier: GPL-2.0-or-later
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
    /// A value that another CPU was just writing.
    OtherCpu,
    /// Events before the recording began.
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

    /// Judged decisions where the trivial answer is wrong.
    pub fn nontrivial(&self) -> u64 {
        self.judged - self.trivial
    }

    /// Skill in ten thousandths, rounded down; `None` if the trivial answer is always right.
    pub fn skill(&self) -> Option<i64> {
        let gained = self.equal as i64 - self.trivial as i64;
        match self.nontrivial() as i64 {
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

/// The mechanisms that the recordings judge, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// `load_avg`, `runnable_avg` and `util_avg` of a task, each time that they are printed.
    PeltTask,
    /// The same of a CPU's fair run queue.
    PeltCfsRq,
    /// The utilisations of the RT and DEADLINE classes.
    PeltRt,
    /// The utilisation of interrupts, where each charge of interrupt time is printed.
    PeltIrq,
    /// The same where only their sum is: a row without bars, since most of what decides it is not told.
    PeltIrqUntold,
    /// `util_est` of a task.
    UtilEstTask,
    /// `util_est` of a run queue.
    UtilEstCfsRq,
    /// A run queue's utilisation clamps, both, each time that they are printed.
    Uclamp,
    /// schedutil, after a call: the frequency that it computed last, before the table.
    SugovRaw,
    /// schedutil, after a call: the frequency that it wants, be it a new one or not.
    SugovRequest,
    /// Changes of frequency, each within one rate limit of the other side's.
    FrequencyChange,
    /// teo: the state, at each entry into idle.
    TeoState,
    /// teo: whether the tick stops, where it ran.
    TeoTick,
    /// menu: the state.
    MenuState,
    /// menu: whether the tick stops.
    MenuTick,
    /// `cpu_idle_miss`: the stay was too short for its state, too long, or neither.
    IdleMiss,
    /// EAS: the utilisation that decides a domain's operating point.
    EasMaxUtil,
    /// EAS: a domain's busy time.
    EasBusy,
    /// EAS: a domain's energy.
    EasEnergy,
    /// EAS: the CPU on which the task wakes.
    EasChoice,
    /// `wake_affine` and `select_idle_sibling`: the CPU on which a task wakes where EAS is not asked.
    Sibling,
    /// `should_we_balance`: whether a CPU is the one that balances a domain.
    BalanceWho,
    /// `sched_balance_find_src_group`: the busiest group of a domain, or none.
    BalanceGroup,
    /// `sched_balance_find_src_rq`: the busiest queue of that group, or none.
    BalanceQueue,
    /// `find_lowest_rq`: the CPU on which a real-time task wakes.
    RtPlacement,
    /// A row of the fair class, by its own name: picks, preemption, virtual times.
    Fair(&'static str),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            What::PeltTask => "PELT, tasks",
            What::PeltCfsRq => "PELT, cfs_rq",
            What::PeltRt => "PELT, rt and dl",
            What::PeltIrq => "PELT, irq",
            What::PeltIrqUntold => "PELT, irq, charges untold",
            What::UtilEstTask => "util_est, tasks",
            What::UtilEstCfsRq => "util_est, cfs_rq",
            What::Uclamp => "uclamp, run queue",
            What::SugovRaw => "schedutil, raw kHz",
            What::SugovRequest => "schedutil, request",
            What::FrequencyChange => "changes of frequency",
            What::TeoState => "teo, state",
            What::TeoTick => "teo, tick",
            What::MenuState => "menu, state",
            What::MenuTick => "menu, tick",
            What::IdleMiss => "idle, too deep or shallow",
            What::EasMaxUtil => "EAS, max util",
            What::EasBusy => "EAS, busy time",
            What::EasEnergy => "EAS, energy",
            What::EasChoice => "EAS, choice",
            What::Sibling => "select_idle_sibling",
            What::BalanceWho => "balance, who",
            What::BalanceGroup => "balance, group",
            What::BalanceQueue => "balance, queue",
            What::RtPlacement => "find_lowest_rq",
            What::Fair(name) => name,
        })
    }
}

/// Judged decisions that are not the trivial ones: with fewer, over all recordings, a row says little.
pub const NONTRIVIAL_MIN: u64 = 300;
/// Of the events at least this share must be judged, in percent.
pub const JUDGED_MIN_PERCENT: u64 = 90;
/// The least skill, in ten thousandths.
pub const SKILL_MIN: i64 = 9_500;
/// Of the judged ones at most this share may differ for want of resolution or of an input, in percent.
pub const EXCUSED_MAX_PERCENT: u64 = 2;

impl Mechanism {
    /// The bars that it misses; one that no recording shows misses none.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.judged * 100 < self.events * JUDGED_MIN_PERCENT {
            let judged = Percent(self.judged, self.events);
            missed.push(format!("only {judged} % judged, wanted {JUDGED_MIN_PERCENT}"));
        }
        if let Some(skill) = self.skill().filter(|skill| *skill < SKILL_MIN) {
            missed.push(format!("skill {}, wanted {}", Skill(skill), Skill(SKILL_MIN)));
        }
        if self.excused() * 100 > self.judged * EXCUSED_MAX_PERCENT {
            let excused = Percent(self.excused(), self.judged);
            let wanted = EXCUSED_MAX_PERCENT;
            missed.push(format!("{excused} % for resolution or unknown inputs, at most {wanted}"));
        }
        missed
    }
}

/// Ten thousandths as a decimal fraction.
struct Skill(i64);

impl fmt::Display for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        f.pad(&format!("{sign}{}.{:04}", value / 10_000, value % 10_000))
    }
}

/// The counts of a recording, or of several, by mechanism.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<What, Mechanism>);

impl Table {
    /// The row of a mechanism.
    pub fn row(&mut self, what: What) -> &mut Mechanism {
        self.0.entry(what).or_default()
    }

    /// The row of a mechanism, if a recording showed it.
    pub fn get(&self, what: What) -> Option<&Mechanism> {
        self.0.get(&what)
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = (What, &Mechanism)> {
        self.0.iter().map(|(what, row)| (*what, row))
    }

    /// Adds another table.
    pub fn merge(&mut self, other: &Table) {
        for (what, row) in &other.0 {
            self.row(*what).merge(row);
        }
    }

    /// The bars that are missed, where there are bars.
    pub fn missed(&self) -> Vec<String> {
        let of = |(what, row): (What, &Mechanism)| {
            row.missed().into_iter().map(move |why| format!("{what}: {why}")).collect::<Vec<_>>()
        };
        self.rows().filter(|(what, _)| *what != What::PeltIrqUntold).flat_map(of).collect()
    }

    /// Rows with too few decisions that are not trivial.
    pub fn scarce(&self) -> Vec<String> {
        let few = self.rows().filter(|(_, row)| row.nontrivial() < NONTRIVIAL_MIN);
        few.map(|(what, row)| format!("{what}: {}", row.nontrivial())).collect()
    }

    /// Counts a row under another name.
    pub fn rename(&mut self, from: What, to: What) {
        if let Some(row) = self.0.remove(&from) {
            self.row(to).merge(&row);
        }
    }

    /// The table as JSON: an object per mechanism, with its counts, its differences and the bars it misses.
    pub fn json(&self) -> String {
        let row = |(what, row): (What, &Mechanism)| {
            let differences: Vec<String> =
                row.differences.iter().map(|(why, count)| format!("\"{why}\": {count}")).collect();
            let missed: Vec<String> = row.missed().iter().map(|why| format!("\"{why}\"")).collect();
            let skill = row.skill().map_or("null".to_string(), |skill| Skill(skill).to_string());
            format!(
                "  {{\"mechanism\": \"{what}\", \"events\": {}, \"judged\": {}, \"equal\": {}, \"trivial\": {}, \"nontrivial\": {}, \"skill\": {skill}, \"differences\": {{{}}}, \"missed\": [{}]}}",
                row.events,
                row.judged,
                row.equal,
                row.trivial,
                row.nontrivial(),
                differences.join(", "),
                missed.join(", "),
            )
        };
        format!("[\n{}\n]\n", self.rows().map(row).collect::<Vec<_>>().join(",\n"))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        self.rows().try_for_each(|(what, row)| Row(&what.to_string(), row).fmt(f))
    }
}

/// The head of the table whose rows [`Row`] prints.
pub const HEAD: &str = "  mechanism                   events  judged judged %   equal  equal % trivial not trivial   skill  differences";

/// A mechanism's counts as a line of the table.
pub struct Row<'a>(pub &'a str, pub &'a Mechanism);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row(name, row) = self;
        let Mechanism { events, judged, equal, trivial, differences } = row;
        let skill = row.skill().map_or("-".to_string(), |skill| Skill(skill).to_string());
        let (of_events, of_judged) = (Percent(*judged, *events), Percent(*equal, *judged));
        let rest = row.nontrivial();
        write!(
            f,
            "  {name:26}{events:8}{judged:8}{of_events:>9}{equal:8}{of_judged:>9}{trivial:8}{rest:12}{skill:>8} "
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
        let mut table = Table::default();
        *table.row(What::Fair("pick")) = row;
        let text = table.to_string();
        let differences = "timestamp: 1; unknown input: timer wheel: 1; model wrong: 1;";
        assert!(text.contains(differences), "{text}");
        // Four of five judged; one of two that are not trivial is lost; two of four excused.
        assert_eq!(table.missed().len(), 3, "{:?}", table.missed());
        assert!(table.json().contains("\"events\": 5, \"judged\": 4"), "{}", table.json());
    }
}
