//! What came of the comparisons of a governor's choices: counts, and why some differ.
//!
//! *judged*: a choice that does not depend on what was before the recording. *trivial*: what would be
//! equal if each CPU of each recording always made its commonest choice.

use std::collections::BTreeMap;
use std::fmt;

/// Why a choice differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// With a time of selection or reflection that the µs stamps allow, the choice is the recorded one.
    Timestamps,
    /// The governor lets the tick be stopped, the kernel kept it, and no other CPU's tick was running: whoever
    /// stops the last tick inherits the wheel timers of all CPUs, which nothing prints, and keeps its
    /// tick if one of them is due. (The governor's permission is not printed; a stop is.)
    LastTick,
    /// The governor lets the tick be stopped, the kernel kept it, and the timers had answered with the next
    /// clock event itself, tick included: so they do where a wheel timer, which nothing prints, comes
    /// within a tick, and that keeps the tick.
    WheelTimer,
    /// None of these: the model is wrong, or something unknown was an input.
    Model,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Cause::Timestamps => "resolution of time",
            Cause::LastTick => "last tick",
            Cause::WheelTimer => "wheel timer",
            Cause::Model => "model",
        })
    }
}

/// Counts of one kind of choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Choices recorded while the governor was driven.
    pub events: u64,
    /// Those that depend on what was before the recording.
    pub unjudged: u64,
    /// Those that are ours.
    pub equal: u64,
    /// Recorded choices that were judged: per CPU, per choice.
    pub recorded: BTreeMap<usize, BTreeMap<u8, u64>>,
    /// Why the others are not ours.
    pub causes: BTreeMap<Cause, u64>,
}

impl Score {
    /// All choices that were judged.
    pub fn judged(&self) -> u64 {
        self.events - self.unjudged
    }

    /// What would be equal if each CPU always took its commonest choice.
    pub fn trivial(&self) -> u64 {
        self.recorded.values().filter_map(|choices| choices.values().max()).sum()
    }

    /// Adds a recording's counts; its CPUs are told apart from those of others.
    pub fn merge(&mut self, other: &Score) {
        self.events += other.events;
        self.unjudged += other.unjudged;
        self.equal += other.equal;
        let next = self.recorded.last_key_value().map_or(0, |(cpu, _)| cpu + 1);
        self.recorded.extend(other.recorded.iter().map(|(cpu, c)| (next + cpu, c.clone())));
        for (cause, count) in &other.causes {
            *self.causes.entry(*cause).or_default() += count;
        }
    }
}

/// The counts of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleTally {
    /// Which state, at each entry.
    pub state: Score,
    /// Whether to stop the tick, where it ran.
    pub stop_tick: Score,
    /// Selections after which no state was entered.
    pub not_entered: u64,
    /// Wakeups near which the stamps leave open whether the timer had come.
    pub time_open: u64,
    /// Stays in idle, and those of which our `cpu_idle_miss` says what the recorded one says, or is
    /// silent like it.
    pub stays: (u64, u64),
    /// Per CPU: choices before the first judged one, and after it still unjudged.
    pub warm_up: BTreeMap<usize, (u64, u64)>,
}

impl IdleTally {
    /// Adds a recording's counts.
    pub fn merge(&mut self, other: &IdleTally) {
        self.state.merge(&other.state);
        self.stop_tick.merge(&other.stop_tick);
        self.not_entered += other.not_entered;
        self.time_open += other.time_open;
        self.stays.0 += other.stays.0;
        self.stays.1 += other.stays.1;
        let next = self.warm_up.last_key_value().map_or(0, |(cpu, _)| cpu + 1);
        self.warm_up.extend(other.warm_up.iter().map(|(cpu, counts)| (next + cpu, *counts)));
    }
}
