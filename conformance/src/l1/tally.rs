// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of the comparisons: counts per kind of entity and signal, and why some failed.
//!
//! **Terms.** *judged*: a recorded value of at least [`VALUE_MIN`]. *within*: ours differs by no more
//! than 1. *step*: from one record of an entity to its next, started from the recorded sums; *met* when all
//! three sums and the position in time are equal to the last bit. *Cause*: what happened between the
//! two records that the recording does not tell in full.

use std::collections::BTreeMap;
use std::fmt;

use super::mechanism::{Difference, Table, Unknown, What};

/// Recorded values below this are not judged: there ±1 is no statement.
pub const VALUE_MIN: u64 = 8;
/// The share of judged values that must be within 1, in thousandths.
pub const WITHIN_MIN_PERMILLE: u64 = 990;

/// The owner of the signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A task's entity.
    Task,
    /// A CPU's fair run queue.
    CfsRq,
    /// A CPU's RT signal.
    Rt,
    /// A CPU's deadline signal.
    Dl,
    /// A CPU's interrupt signal.
    Irq,
}

/// Which signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// `util_avg`
    Util,
    /// `runnable_avg`
    Runnable,
    /// `load_avg`
    Load,
    /// `util_est`
    UtilEst,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Task => "task",
            Kind::CfsRq => "cfs_rq",
            Kind::Rt => "rt",
            Kind::Dl => "dl",
            Kind::Irq => "irq",
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Signal::Util => "util",
            Signal::Runnable => "runnable",
            Signal::Load => "load",
            Signal::UtilEst => "util_est",
        })
    }
}

/// The facts that a recording leaves untold, worst first: a miss is booked on the first that
/// applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A balancer's update at a time that is not printed, found by what it explains.
    UnprintedUpdate,
    /// Somebody was enqueued or dequeued and the lines do not say who.
    UnknownOperation,
    /// A task without a record so far took part.
    UnknownTask,
    /// A sleeping task left the queue; when that was folded in is not printed.
    RemovedFold,
    /// A balancing softirq ran on the busy CPU: it updates the queue at a time that is only printed
    /// if a segment was crossed.
    BalanceSoftirq,
    /// How interrupt time was spread over the clock's updates is not printed.
    InterruptTime,
    /// A new task's first utilisation is a share of its queue's, from which a removal before the first
    /// line may still have been pending.
    FirstUtilisation,
    /// None of these.
    Unexplained,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Cause::UnprintedUpdate => "time of an update, found",
            Cause::UnknownOperation => "operation not told",
            Cause::UnknownTask => "task without a record",
            Cause::RemovedFold => "time of a removal's fold",
            Cause::BalanceSoftirq => "time of a balancer's update",
            Cause::InterruptTime => "spread of interrupt time",
            Cause::FirstUtilisation => "new task's first utilisation",
            Cause::Unexplained => "unexplained",
        })
    }
}

impl From<Cause> for Difference {
    fn from(cause: Cause) -> Difference {
        match cause {
            Cause::UnknownTask | Cause::FirstUtilisation => {
                Difference::UnknownInput(Unknown::BeforeRecording)
            }
            Cause::InterruptTime => Difference::UnknownInput(Unknown::InterruptTime),
            Cause::UnprintedUpdate => Difference::Timestamp,
            // What could explain it is no field of the list.
            Cause::UnknownOperation
            | Cause::RemovedFold
            | Cause::BalanceSoftirq
            | Cause::Unexplained => Difference::ModelWrong,
        }
    }
}

/// The row that a signal is counted in.
fn what(kind: Kind, signal: Signal) -> What {
    match (kind, signal) {
        (Kind::Task, Signal::UtilEst) => What::UtilEstTask,
        (Kind::Task, _) => What::PeltTask,
        (Kind::CfsRq, Signal::UtilEst) => What::UtilEstCfsRq,
        (Kind::CfsRq, _) => What::PeltCfsRq,
        (Kind::Rt | Kind::Dl, _) => What::PeltRt,
        (Kind::Irq, _) => What::PeltIrq,
    }
}

/// A set of [`Cause`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes(u16);

impl Causes {
    const ALL: [Cause; 7] = [
        Cause::UnprintedUpdate,
        Cause::UnknownOperation,
        Cause::UnknownTask,
        Cause::RemovedFold,
        Cause::BalanceSoftirq,
        Cause::InterruptTime,
        Cause::FirstUtilisation,
    ];

    /// Adds one.
    pub fn add(&mut self, cause: Cause) {
        self.0 |= 1 << cause as u16;
    }

    /// Adds another set.
    pub fn merge(&mut self, other: Causes) {
        self.0 |= other.0;
    }

    /// Whether it has this one.
    pub fn has(self, cause: Cause) -> bool {
        self.0 & (1 << cause as u16) != 0
    }

    /// The worst one in it.
    pub fn first(self) -> Cause {
        *Self::ALL.iter().find(|&&c| self.0 & (1 << c as u16) != 0).unwrap_or(&Cause::Unexplained)
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Causes {
        let mut causes = Causes::default();
        causes.add(cause);
        causes
    }
}

/// Counts for one signal of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Judged values.
    pub judged: u64,
    /// Of these, off by at most 1.
    pub within: u64,
    /// Of these, equal.
    pub exact: u64,
    /// Largest difference.
    pub error_max: u64,
    /// The others by cause.
    pub causes: BTreeMap<Cause, u64>,
}

/// Counts of the single steps of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Steps.
    pub judged: u64,
    /// Equal to the last bit in `load_sum`, `runnable_sum`, `util_sum`, `period_contrib` and
    /// `last_update_time`.
    pub met: u64,
    /// Of the others, the largest difference of a sum, as thousandths of the average's unit.
    pub error_max_milli: u64,
    /// The others by cause.
    pub causes: BTreeMap<Cause, u64>,
}

/// All counts of a recording, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The free run.
    pub rows: BTreeMap<(Kind, Signal), Row>,
    /// The single steps.
    pub steps: BTreeMap<Kind, Steps>,
    /// Entities whose state was taken from the recording (once each).
    pub starts: BTreeMap<Kind, u64>,
    /// Lines that disagree with our picture of who is queued where.
    pub picture_wrong: u64,
    /// Advances of a PELT clock while a task ran, by how many ns ours is ahead: below 0, 0, 1, 2 to 4,
    /// more.
    pub clock: [u64; 5],
    /// Records read.
    pub records: u64,
    /// The free run once more, as mechanisms: every value, also small ones, equal or not.
    pub table: Table,
    /// The value printed last, of each entity: the trivial answer.
    last: BTreeMap<(Kind, usize, Signal), u64>,
}

impl Tally {
    /// A printed value that ours cannot be compared with yet.
    pub fn skip(&mut self, kind: Kind, id: usize, signal: Signal, recorded: u64) {
        self.last.insert((kind, id, signal), recorded);
        self.table.row(what(kind, signal)).skip();
    }

    /// Compares one value of the free run, of the CPU or task `id`; whether it is within 1.
    pub fn value(
        &mut self,
        (kind, id, signal): (Kind, usize, Signal),
        recorded: u64,
        ours: u64,
        causes: Causes,
    ) -> bool {
        let last = self.last.insert((kind, id, signal), recorded);
        let mechanism = self.table.row(what(kind, signal));
        mechanism.count(ours == recorded, last == Some(recorded), || causes.first().into());
        if recorded < VALUE_MIN {
            return true;
        }
        let row = self.rows.entry((kind, signal)).or_default();
        let error = recorded.abs_diff(ours);
        row.judged += 1;
        row.within += (error <= 1) as u64;
        row.exact += (error == 0) as u64;
        row.error_max = row.error_max.max(error);
        if error > 1 {
            *row.causes.entry(causes.first()).or_default() += 1;
        }
        error <= 1
    }

    /// Counts an advance of a PELT clock.
    pub fn clock(&mut self, ahead_ns: i64) {
        let bin = match ahead_ns {
            ..0 => 0,
            0 => 1,
            1 => 2,
            2..=4 => 3,
            _ => 4,
        };
        self.clock[bin] += 1;
    }

    /// Counts one step; `error_milli` 0 = met.
    pub fn step(&mut self, kind: Kind, met: bool, error_milli: u64, causes: Causes) {
        let steps = self.steps.entry(kind).or_default();
        steps.judged += 1;
        if met {
            steps.met += 1;
        } else {
            steps.error_max_milli = steps.error_max_milli.max(error_milli);
            *steps.causes.entry(causes.first()).or_default() += 1;
        }
    }

    /// Adds another recording's counts.
    pub fn merge(&mut self, other: &Tally) {
        for (key, from) in &other.rows {
            let to = self.rows.entry(*key).or_default();
            to.judged += from.judged;
            to.within += from.within;
            to.exact += from.exact;
            to.error_max = to.error_max.max(from.error_max);
            add_counts(&mut to.causes, &from.causes);
        }
        for (kind, from) in &other.steps {
            let to = self.steps.entry(*kind).or_default();
            to.judged += from.judged;
            to.met += from.met;
            to.error_max_milli = to.error_max_milli.max(from.error_max_milli);
            add_counts(&mut to.causes, &from.causes);
        }
        add_counts(&mut self.starts, &other.starts);
        self.picture_wrong += other.picture_wrong;
        for (to, from) in self.clock.iter_mut().zip(other.clock) {
            *to += from;
        }
        self.records += other.records;
        self.table.merge(&other.table);
    }

    /// The signals of which fewer than [`WITHIN_MIN_PERMILLE`] are within 1, all kinds together.
    pub fn failing(&self) -> Vec<(Signal, u64, u64)> {
        let mut by_signal: BTreeMap<Signal, (u64, u64)> = BTreeMap::new();
        for ((_, signal), row) in &self.rows {
            let sum = by_signal.entry(*signal).or_default();
            sum.0 += row.within;
            sum.1 += row.judged;
        }
        by_signal
            .into_iter()
            .filter(|(_, (within, judged))| within * 1000 < judged * WITHIN_MIN_PERMILLE)
            .map(|(signal, (within, judged))| (signal, within, judged))
            .collect()
    }
}

fn add_counts<K: Ord + Copy>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(*key).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_not_judged_and_misses_have_a_cause() {
        let mut tally = Tally::default();
        let mut causes = Causes::default();
        assert!(tally.value((Kind::Task, 1, Signal::Util), 7, 500, causes));
        assert!(tally.rows.is_empty());
        assert!(tally.value((Kind::Task, 1, Signal::Util), 8, 9, causes));
        causes.add(Cause::BalanceSoftirq);
        causes.add(Cause::UnknownTask);
        assert!(!tally.value((Kind::Task, 1, Signal::Util), 8, 10, causes));
        let row = &tally.rows[&(Kind::Task, Signal::Util)];
        assert_eq!((row.judged, row.within, row.exact, row.error_max), (2, 1, 0, 2));
        assert_eq!(row.causes[&Cause::UnknownTask], 1);
        assert_eq!(tally.failing(), [(Signal::Util, 1, 2)]);
        let mut both = tally.clone();
        both.merge(&tally);
        assert_eq!(both.failing(), [(Signal::Util, 2, 4)]);
    }
}
