// SPDX-License-Identifier: GPL-2.0-or-later
//! The shapes of a record's lines.
//!
//! These types mirror facts and decisions for serde (JSON Lines) and borsh (packed), which `schedtwin-types` does not depend
//! on. A change to the shape of a type that derives borsh must raise the version of
//! [`crate::record::PACKED`].
//! The texts of decisions are fixed ones while a run writes them, and owned ones when they are
//! read back.

use crate::record::varint;
use borsh::{BorshDeserialize, BorshSerialize};
use schedtwin_types::{
    Candidate, ChainEvent, ChainWait, CpuId, Decision, FactKind, FrequencyInput, IdleInput,
    IpiKind, IrqLines, Khz, NeedChain, Ns, PickCandidate, PolicyId, TaskGroupId, TaskId, TaskState,
    WakeSource,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A text: fixed when written, owned when read.
pub type Text = Cow<'static, str>;

/// One line. Exactly one of the groups of members is present; see [`crate::record`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_cpus: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) domains: Option<Vec<String>>,
    /// CPUs by policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policies: Option<Vec<Vec<u16>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cgroups: Option<Vec<String>>,
    /// A map whose order is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<serde_json::Map<String, serde_json::Value>>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prio: Option<i32>,

    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Ns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fact: Option<FactLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<DecisionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) power: Option<PowerLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<ChainLine>,
}

/// The power of a domain: whole milliwatts, rounded down, which is all that older records have, and microwatts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PowerLine {
    domain: u16,
    mw: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    uw: Option<u64>,
}

impl PowerLine {
    pub(crate) fn new(domain: u16, microwatts: u64) -> PowerLine {
        PowerLine { domain, mw: microwatts / 1000, uw: Some(microwatts) }
    }

    pub(crate) fn domain(self) -> u16 {
        self.domain
    }

    pub(crate) fn microwatts(self) -> u64 {
        self.uw.unwrap_or(self.mw.saturating_mul(1000))
    }
}

macro_rules! mirrored {
    ($(#[$doc:meta])* $mirror:ident = $original:ident { $($name:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
        pub(crate) enum $mirror {
            $( #[serde(rename = $text)] $name, )*
        }
        impl From<$original> for $mirror {
            fn from(original: $original) -> $mirror {
                match original { $( $original::$name => $mirror::$name, )* }
            }
        }
        impl From<$mirror> for $original {
            fn from(mirror: $mirror) -> $original {
                match mirror { $( $mirror::$name => $original::$name, )* }
            }
        }
    };
}

mirrored! {
    /// As `sched_switch` prints it.
    StateLine = TaskState {
        Running = "R", Preempted = "R+", Interruptible = "S", Uninterruptible = "D", Dead = "X",
    }
}
mirrored! {
    /// The source that woke a task.
    SourceLine = WakeSource { Task = "task", Timer = "timer", Kernel = "kernel" }
}
mirrored! {
    /// The purpose of an IPI.
    IpiLine = IpiKind {
        Reschedule = "reschedule", WakeList = "wake_list", NohzKick = "nohz_kick", IrqWork = "irq_work",
        Timer = "timer_broadcast",
    }
}

/// The form of a fact's field in a record.
pub(crate) trait Recorded: Copy {
    type Line;
    fn line(self) -> Self::Line;
    fn of(line: Self::Line) -> Self;
}

macro_rules! recorded {
    ($( $type:ty: $line:ty, $out:expr, $back:expr; )*) => {
        $( impl Recorded for $type {
            type Line = $line;
            fn line(self) -> $line {
                $out(self)
            }
            fn of(line: $line) -> $type {
                $back(line)
            }
        } )*
    };
}

recorded! {
    bool: bool, |b| b, |b| b;
    u8: u8, |n| n, |n| n;
    u16: u16, |n| n, |n| n;
    u32: u32, |n| n, |n| n;
    u64: u64, |n| n, |n| n;
    TaskId: u32, |task: TaskId| task.0, TaskId;
    CpuId: u16, |cpu: CpuId| cpu.0, CpuId;
    PolicyId: u16, |policy: PolicyId| policy.0, PolicyId;
    TaskGroupId: u32, |group: TaskGroupId| group.0, TaskGroupId;
    IrqLines: u16, u16::from, IrqLines::from;
    TaskState: StateLine, StateLine::from, TaskState::from;
    WakeSource: SourceLine, SourceLine::from, WakeSource::from;
    IpiKind: IpiLine, IpiLine::from, IpiKind::from;
}

macro_rules! fact_lines {
    ($(
        $(#[$doc:meta])*
        $name:ident $record:literal $({ $( $(#[$field_doc:meta])* $field:ident: $type:ty ),* $(,)? })?
            => { $($rest:tt)* }
    )*) => {
        /// A fact. Members are named as in [`FactKind`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
        pub(crate) enum FactLine {
            $( #[serde(rename = $record)] $name $({ $($field: <$type as Recorded>::Line),* })?, )*
        }
        impl From<FactKind> for FactLine {
            fn from(kind: FactKind) -> FactLine {
                match kind {
                    $( FactKind::$name $({ $($field),* })? =>
                        FactLine::$name $({ $($field: $field.line()),* })?, )*
                }
            }
        }
        impl From<FactLine> for FactKind {
            fn from(line: FactLine) -> FactKind {
                match line {
                    $( FactLine::$name $({ $($field),* })? =>
                        FactKind::$name $({ $($field: <$type as Recorded>::of($field)),* })?, )*
                }
            }
        }
    };
}

schedtwin_types::with_facts!(fact_lines);

/// A decision as a record holds it. Members are those of [`Decision`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "documented at schedtwin_types::Decision, which this mirrors")]
pub enum DecisionLine {
    Placement {
        task: u32,
        prev: u16,
        chosen: u16,
        rule: Text,
        candidates: Vec<CandidateLine>,
    },
    Frequency {
        policy: u16,
        inputs: Vec<InputLine>,
        #[borsh(serialize_with = "known::serialize", deserialize_with = "known::deserialize")]
        util: Option<u64>,
        raw_khz: Khz,
        khz: Khz,
        previous_khz: Khz,
        rule: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limited_until: Option<Ns>,
    },
    Idle {
        state: u8,
        stop_tick: bool,
        sleep_length_ns: Option<i64>,
        rule: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tick_rule: Option<Text>,
        #[serde(default, skip_serializing_if = "IdleInputLine::is_empty")]
        input: IdleInputLine,
    },
    Balance {
        dst: u16,
        src: Option<u16>,
        level: u8,
        idle: Text,
        migration: Text,
        imbalance: i64,
        moved: Vec<u32>,
        rule: Text,
    },
    Preemption {
        task: u32,
        curr: u32,
        preempt: bool,
        rule: Text,
    },
    Pick {
        prev: u32,
        next: u32,
        rule: Text,
        candidates: Vec<PickLine>,
    },
}

/// [`NeedChain`] as a record holds it; its end is the line's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[allow(missing_docs, reason = "documented at schedtwin_types::NeedChain, which this mirrors")]
pub struct ChainLine {
    pub policy: u16,
    pub more: bool,
    pub from_khz: Khz,
    pub khz: Khz,
    pub need_at: Ns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Ns>,
    /// On which CPU the request was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_at: Option<Ns>,
    pub end: Text,
    pub events: Vec<ChainEventLine>,
    pub events_left_out: u32,
    /// Those that it has waited for, in order.
    pub waits: Vec<WaitLine>,
}

/// [`ChainEvent`] as a record holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "documented at schedtwin_types::ChainEvent, which this mirrors")]
pub enum ChainEventLine {
    Need {
        at: Ns,
        cpu: u16,
        khz: Khz,
        cause: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<u32>,
    },
    Governor {
        at: Ns,
        cpu: u16,
        khz: Khz,
        rule: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limited_until: Option<Ns>,
        times: u32,
    },
}

/// How long a chain has waited for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[allow(missing_docs, reason = "documented at schedtwin_types::ChainWait, which this mirrors")]
pub struct WaitLine {
    #[serde(rename = "for")]
    pub wait: Text,
    pub ns: Ns,
}

impl From<&NeedChain> for ChainLine {
    fn from(chain: &NeedChain) -> ChainLine {
        let waits = ChainWait::ALL.into_iter().zip(chain.waits).filter(|(_, ns)| *ns > 0);
        ChainLine {
            policy: chain.policy.0,
            more: chain.more,
            from_khz: chain.from_khz,
            khz: chain.khz,
            need_at: chain.need_at,
            requested_at: chain.requested.map(|(at, _)| at),
            requested_by: chain.requested.and_then(|(_, cpu)| cpu).map(|cpu| cpu.0),
            driver_at: chain.driver_at,
            end: chain.end.text().into(),
            events: chain.events.iter().map(ChainEventLine::from).collect(),
            events_left_out: chain.events_left_out,
            waits: waits.map(|(wait, ns)| WaitLine { wait: wait.text().into(), ns }).collect(),
        }
    }
}

impl From<&ChainEvent> for ChainEventLine {
    fn from(event: &ChainEvent) -> ChainEventLine {
        match *event {
            ChainEvent::Need { at, cpu, khz, cause } => ChainEventLine::Need {
                at,
                cpu: cpu.0,
                khz,
                cause: cause.text().into(),
                task: cause.task().map(|task| task.0),
            },
            ChainEvent::Governor { at, cpu, khz, rule, limited_until, times } => {
                let rule = rule.text().into();
                ChainEventLine::Governor { at, cpu: cpu.0, khz, rule, limited_until, times }
            }
        }
    }
}

/// [`PickCandidate`] as a record holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[allow(missing_docs, reason = "documented at schedtwin_types::PickCandidate, which this mirrors")]
pub struct PickLine {
    pub depth: u32,
    pub task: Option<u32>,
    pub group: u32,
    pub picked: bool,
    pub curr: bool,
    pub lag: i64,
    pub deadline: Option<i64>,
    pub eligible: bool,
}

/// [`Candidate`] as a record holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[allow(missing_docs, reason = "documented at schedtwin_types::Candidate, which this mirrors")]
pub struct CandidateLine {
    pub cpu: u16,
    pub role: Text,
    pub util: u64,
    pub capacity: u64,
    pub energy_delta: Option<u64>,
    pub max_util: Option<u64>,
}

/// [`IdleInput`] as a record holds it.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize,
)]
#[allow(missing_docs, reason = "documented at schedtwin_types::IdleInput, which this mirrors")]
pub struct IdleInputLine {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<[u32; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub util: Option<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals_us: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction_permille: Option<u32>,
}

impl IdleInputLine {
    /// Whether the governor looked at nothing beside the timers.
    pub fn is_empty(&self) -> bool {
        *self == IdleInputLine::default()
    }
}

impl From<&IdleInput> for IdleInputLine {
    fn from(input: &IdleInput) -> IdleInputLine {
        let IdleInput { bins, total, util, intervals_us, correction_permille } = input.clone();
        IdleInputLine { bins, total, util, intervals_us, correction_permille }
    }
}

/// [`FrequencyInput`] as a record holds it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize,
)]
#[allow(missing_docs, reason = "documented at schedtwin_types::FrequencyInput, which this mirrors")]
pub struct InputLine {
    pub cpu: u16,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub util_avg: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub runnable_avg: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub util_est: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub util_uclamp: Option<u64>,
    /// Records of before runnable boosting was a choice do not say it.
    #[serde(default)]
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub boost: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub rt: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub dl: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub irq: u64,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub min: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    #[borsh(serialize_with = "varint::write", deserialize_with = "varint::read")]
    pub perf: u64,
}

impl From<&Candidate> for CandidateLine {
    fn from(candidate: &Candidate) -> CandidateLine {
        let Candidate { cpu, role, util, capacity, energy_delta, max_util } = *candidate;
        CandidateLine { cpu: cpu.0, role: role.into(), util, capacity, energy_delta, max_util }
    }
}

impl From<&PickCandidate> for PickLine {
    fn from(candidate: &PickCandidate) -> PickLine {
        let PickCandidate { depth, task, group, picked, curr, lag, deadline, eligible } =
            *candidate;
        let (task, group) = (task.map(|task| task.0), group.0);
        PickLine { depth, task, group, picked, curr, lag, deadline, eligible }
    }
}

impl From<&FrequencyInput> for InputLine {
    fn from(input: &FrequencyInput) -> InputLine {
        let FrequencyInput {
            cpu,
            util_avg,
            runnable_avg,
            util_est,
            util_uclamp,
            boost,
            rt,
            dl,
            irq,
            min,
            max,
            perf,
        } = *input;
        InputLine {
            cpu: cpu.0,
            util_avg,
            runnable_avg,
            util_est,
            util_uclamp,
            boost,
            rt,
            dl,
            irq,
            min,
            max,
            perf,
        }
    }
}

impl From<&Decision> for DecisionLine {
    fn from(decision: &Decision) -> DecisionLine {
        match decision {
            Decision::Placement { task, prev, chosen, rule, candidates } => {
                DecisionLine::Placement {
                    task: task.0,
                    prev: prev.0,
                    chosen: chosen.0,
                    rule: rule.text().into(),
                    candidates: candidates.iter().map(CandidateLine::from).collect(),
                }
            }
            Decision::Frequency {
                policy,
                inputs,
                util,
                raw_khz,
                khz,
                previous_khz,
                rule,
                limited_until,
            } => DecisionLine::Frequency {
                policy: policy.0,
                inputs: inputs.iter().map(InputLine::from).collect(),
                util: *util,
                raw_khz: *raw_khz,
                khz: *khz,
                previous_khz: *previous_khz,
                rule: rule.text().into(),
                limited_until: *limited_until,
            },
            Decision::Idle { state, stop_tick, sleep_length_ns, rule, tick_rule, input } => {
                DecisionLine::Idle {
                    state: *state,
                    stop_tick: *stop_tick,
                    sleep_length_ns: *sleep_length_ns,
                    rule: rule.text().into(),
                    tick_rule: tick_rule.map(|rule| rule.text().into()),
                    input: input.into(),
                }
            }
            Decision::Balance { dst, src, level, idle, migration, imbalance, moved, rule } => {
                DecisionLine::Balance {
                    dst: dst.0,
                    src: src.map(|cpu| cpu.0),
                    level: *level,
                    idle: (*idle).into(),
                    migration: (*migration).into(),
                    imbalance: *imbalance,
                    moved: moved.iter().map(|task| task.0).collect(),
                    rule: rule.text().into(),
                }
            }
            Decision::Preemption { task, curr, preempt, rule } => DecisionLine::Preemption {
                task: task.0,
                curr: curr.0,
                preempt: *preempt,
                rule: rule.text().into(),
            },
            Decision::Pick { prev, next, rule, candidates } => DecisionLine::Pick {
                prev: prev.0,
                next: next.0,
                rule: rule.text().into(),
                candidates: candidates.iter().map(PickLine::from).collect(),
            },
        }
    }
}

/// A number that may not be known, in a packed record, whose shape has a number there: the highest one.
mod known {
    use borsh::{BorshDeserialize, BorshSerialize};
    use std::io::{self, Read, Write};

    const UNKNOWN: u64 = u64::MAX;

    pub fn serialize<W: Write>(value: &Option<u64>, to: &mut W) -> io::Result<()> {
        value.unwrap_or(UNKNOWN).serialize(to)
    }

    pub fn deserialize<R: Read>(from: &mut R) -> io::Result<Option<u64>> {
        let value = u64::deserialize_reader(from)?;
        Ok((value != UNKNOWN).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_from_before_microwatts_are_read() {
        let read = |text| serde_json::from_str::<PowerLine>(text).unwrap().microwatts();
        assert_eq!(read(r#"{"domain":0,"mw":412}"#), 412_000);
        assert_eq!(read(r#"{"domain":0,"mw":412,"uw":412345}"#), 412_345);
    }
}
