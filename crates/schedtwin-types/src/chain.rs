// SPDX-License-Identifier: GPL-2.0-or-later
//! Chains from a need to the clock: why a frequency domain took as long as it did.
//!
//! Like a [`crate::DecisionRecord`], a chain is built only while a recorder is on. When one begins and ends is said where
//! they are measured, in `crates/schedtwin-engine/src/meter/need.rs`.

use crate::{CpuId, FrequencyRule, Khz, Ns, PolicyId, TaskId};

/// One need of a frequency domain, from the event that brought it to the clock that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedChain {
    /// The domain's cpufreq policy.
    pub policy: PolicyId,
    /// Whether more is needed than was requested; else less.
    pub more: bool,
    /// The frequency that had been requested when the chain began.
    pub from_khz: Khz,
    /// The need at the end of the chain: what was asked for, if anybody has asked.
    pub khz: Khz,
    /// When it began.
    pub need_at: Ns,
    /// When the governor answered it, and on which CPU that code ran; `None`: nobody has.
    pub requested: Option<(Ns, Option<CpuId>)>,
    /// When the driver was asked for the answer.
    pub driver_at: Option<Ns>,
    /// When it ended.
    pub end_at: Ns,
    /// How.
    pub end: ChainEnd,
    /// The changes of the need and the answers of the governor that did not give it, in order; at most
    /// [`NeedChain::EVENTS_MOST`].
    pub events: Vec<ChainEvent>,
    /// How many later ones are left out.
    pub events_left_out: u32,
    /// The chain's time by what it waited for, nanoseconds, in the order of [`ChainWait::ALL`]. They add up to the whole.
    pub waits: [Ns; ChainWait::ALL.len()],
}

impl NeedChain {
    /// How many events a chain lists.
    pub const EVENTS_MOST: usize = 16;
}

/// An event of a chain before its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEvent {
    /// Another need of the domain.
    Need {
        /// When.
        at: Ns,
        /// The CPU whose need has changed.
        cpu: CpuId,
        /// The frequency that the domain needs now.
        khz: Khz,
        /// Why.
        cause: NeedCause,
    },
    /// The governor was called, and did not answer the need.
    Governor {
        /// When for the first time.
        at: Ns,
        /// On which CPU.
        cpu: CpuId,
        /// Its frequency.
        khz: Khz,
        /// Its reason.
        rule: FrequencyRule,
        /// Until when it is going to refuse.
        limited_until: Option<Ns>,
        /// How often in a row with this frequency and reason.
        times: u32,
    },
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$one:meta])* $case:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$one])* $case),* }
        impl $name {
            /// All of them, in order.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$case),*];
            /// In words, as records hold it.
            pub fn text(self) -> &'static str {
                match self { $($name::$case => $text),* }
            }
        }
    };
}

words! {
    /// The thing that a chain waits for.
    ChainWait {
        /// No hook has called the governor since the need was there, or since its rate limit was over.
        NotCalled = "governor not called",
        /// The governor was called, and refused until its rate limit was over.
        RateLimit = "rate limit",
        /// The governor was called in the same entry of the kernel, but computed another frequency: the need came after it.
        TooEarly = "asked before the need was complete",
        /// A domain of one CPU does not slow down before its CPU has been idle.
        Held = "held until idle",
        /// The governor was called, and wanted another frequency than the need.
        OtherAnswer = "governor wanted another",
        /// The governor has decided, and its thread or the driver has not asked the hardware yet.
        Driver = "driver",
        /// The hardware has been asked, and the clock has not settled.
        Clock = "clock settling",
    }
}

words! {
    /// How a chain ends.
    ChainEnd {
        /// The clock gives what is needed.
        Settled = "settled",
        /// The need has gone before anybody asked.
        NeedGone = "need gone",
        /// Another request has taken the answer back before the clock got there.
        TakenBack = "request taken back",
        /// Another domain forces a higher frequency.
        Overridden = "forced higher by another domain",
        /// The run is over.
        RunOver = "end of the run",
    }
}

/// The cause of a change of a CPU's need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedCause {
    /// A task became runnable on the CPU.
    Wakeup(TaskId),
    /// A task came from another CPU.
    MigrationIn(TaskId),
    /// A task went to another CPU.
    MigrationOut(TaskId),
    /// The running task went to sleep.
    Sleep(TaskId),
    /// The running task ended.
    Exit(TaskId),
    /// A task changed its own attributes, for example its clamps.
    SchedSetattr(TaskId),
    /// Another task runs.
    Switch(TaskId),
    /// The tick.
    Tick,
    /// A thermal limit has moved.
    Limit,
    /// Balancing brought the signals up to date.
    Balance,
    /// An interrupt.
    Interrupt,
    /// The CPU went idle or came back.
    Idle,
    /// Signals were brought up to date by something else.
    Update,
}

impl NeedCause {
    /// In words, as records hold it.
    pub fn text(self) -> &'static str {
        match self {
            NeedCause::Wakeup(_) => "wakeup",
            NeedCause::MigrationIn(_) => "arrival",
            NeedCause::MigrationOut(_) => "departure",
            NeedCause::Sleep(_) => "sleep",
            NeedCause::Exit(_) => "exit",
            NeedCause::SchedSetattr(_) => "sched_setattr",
            NeedCause::Switch(_) => "switch",
            NeedCause::Tick => "tick",
            NeedCause::Limit => "thermal limit",
            NeedCause::Balance => "balancing",
            NeedCause::Interrupt => "interrupt",
            NeedCause::Idle => "idle",
            NeedCause::Update => "update of signals",
        }
    }

    /// The task that it is about.
    pub fn task(self) -> Option<TaskId> {
        match self {
            NeedCause::Wakeup(task)
            | NeedCause::MigrationIn(task)
            | NeedCause::MigrationOut(task)
            | NeedCause::Sleep(task)
            | NeedCause::Exit(task)
            | NeedCause::SchedSetattr(task)
            | NeedCause::Switch(task) => Some(task),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record is read by its texts, and `waits` is indexed by the order.
    #[test]
    fn words_differ_and_are_in_order() {
        let mut texts = ChainWait::ALL.map(ChainWait::text).to_vec();
        texts.extend(ChainEnd::ALL.map(ChainEnd::text));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ChainWait::ALL.len() + ChainEnd::ALL.len());
        for (index, wait) in ChainWait::ALL.into_iter().enumerate() {
            assert_eq!(wait as usize, index);
        }
    }
}
