// SPDX-License-Identifier: GPL-2.0-or-later
//! Decision records: why the kernel did what it did.
//!
//! Unlike a [`crate::Fact`], a decision is built only while a recorder is on, so it may own lists.
//! Rules are the enums of `rule.rs`, named after the kernel's function or feature that decided.

use crate::{
    BalanceRule, CpuId, FrequencyRule, IdleRule, Khz, Ns, PickRule, PlacementRule, PolicyId,
    PreemptionRule, TaskGroupId, TaskId, TickRule,
};

/// A decision taken at `at` by code that ran on `cpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// When.
    pub at: Ns,
    /// On which CPU the deciding code ran.
    pub cpu: CpuId,
    /// The decision.
    pub decision: Decision,
}

/// A decision with its inputs and its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// CPU selection for a waking, forked or executing task.
    Placement {
        /// The task that was placed.
        task: TaskId,
        /// The CPU it last ran on.
        prev: CpuId,
        /// The CPU chosen.
        chosen: CpuId,
        /// Which rule decided.
        rule: PlacementRule,
        /// CPUs looked at, in order, with the energy that EAS estimated where it did.
        candidates: Vec<Candidate>,
    },
    /// schedutil evaluated a request for a frequency domain.
    Frequency {
        /// The cpufreq policy.
        policy: PolicyId,
        /// Per CPU of the domain: the inputs.
        inputs: Vec<FrequencyInput>,
        /// Utilisation of the domain with headroom and limits applied; `None`: a governor's own C has computed it, and it is
        /// not known.
        util: Option<u64>,
        /// `get_next_freq` before the table.
        raw_khz: Khz,
        /// The table frequency that follows.
        khz: Khz,
        /// The frequency before.
        previous_khz: Khz,
        /// The outcome of the request.
        rule: FrequencyRule,
        /// Refused by the rate limit: until when.
        limited_until: Option<Ns>,
    },
    /// The idle governor chose a state.
    Idle {
        /// Index of the state.
        state: u8,
        /// Whether the tick may stop.
        stop_tick: bool,
        /// The expected time to the next timer, nanoseconds; `None` if it was not asked for.
        sleep_length_ns: Option<i64>,
        /// Which rule decided.
        rule: IdleRule,
        /// teo: which rule decided about the tick.
        tick_rule: Option<TickRule>,
        /// Inputs of the governor, beside the timers.
        input: IdleInput,
    },
    /// Load balancing moved (or failed to move) tasks.
    Balance {
        /// The CPU that pulls.
        dst: CpuId,
        /// From whom; `None` if no busiest group or queue was found.
        src: Option<CpuId>,
        /// Domain level, 0 = lowest.
        level: u8,
        /// `busy`, `idle` or `newidle`.
        idle: &'static str,
        /// `migrate_load`, `migrate_util`, `migrate_task` or `migrate_misfit`.
        migration: &'static str,
        /// `env.imbalance` before the move.
        imbalance: i64,
        /// Tasks moved.
        moved: Vec<TaskId>,
        /// Why it ended so.
        rule: BalanceRule,
    },
    /// A waking task was tested against the running one.
    Preemption {
        /// The waking task.
        task: TaskId,
        /// The running one.
        curr: TaskId,
        /// Whether `curr` has to go.
        preempt: bool,
        /// Which rule decided.
        rule: PreemptionRule,
    },
    /// `__schedule()` picked who runs next.
    Pick {
        /// The task that ran before.
        prev: TaskId,
        /// The task that runs next; the idle task if none does.
        next: TaskId,
        /// Which rule decided. Where groups nest, each level picks: this is the rule of the lowest level
        /// that had more than one entity.
        rule: PickRule,
        /// The fair entities that it chose from, at most [`PickCandidate::MOST`] a level, from the root
        /// queue down. Empty for the other classes.
        candidates: Vec<PickCandidate>,
    },
}

/// A fair entity that a pick chose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickCandidate {
    /// How many groups are above its queue.
    pub depth: u32,
    /// The task; `None` for a group.
    pub task: Option<TaskId>,
    /// The group that it is, or that the task is in.
    pub group: TaskGroupId,
    /// The pick.
    pub picked: bool,
    /// It has been running.
    pub curr: bool,
    /// By how much its virtual runtime is behind: EEVDF behind the average V, CFS behind the queue's
    /// `min_vruntime`. Virtual nanoseconds; negative: ahead.
    pub lag: i64,
    /// EEVDF: its virtual deadline less V, virtual nanoseconds. CFS has none.
    pub deadline: Option<i64>,
    /// EEVDF: not ahead of V, so that it may be picked. CFS: always.
    pub eligible: bool,
}

impl PickCandidate {
    /// How many entities of a level are listed: the running one, the picked one, and the first of the
    /// timeline.
    pub const MOST: usize = 8;
}

/// One CPU that a placement looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The CPU; for EAS the best one of its performance domain, or `prev`.
    pub cpu: CpuId,
    /// The part of the search: `prev`, `max_spare`, `idle scan`, ...
    pub role: &'static str,
    /// Utilisation that the CPU would have with the task.
    pub util: u64,
    /// Its capacity (`capacity_of`).
    pub capacity: u64,
    /// EAS: energy of the performance domain with the task here minus without it, in the unit of
    /// the energy model (cost × utilisation).
    pub energy_delta: Option<u64>,
    /// EAS: what the domain's CPUs would ask for at most with the task here, headroom, boosts and clamps included: it decides
    /// the operating point.
    pub max_util: Option<u64>,
}

/// Inputs of an idle governor, beside the timers; empty of governors without a memory.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IdleInput {
    /// teo, by state: wakeups that the timer had promised, and those that came before it (`hits`, `intercepts`). Each adds
    /// 1024, which decays.
    pub bins: Vec<[u32; 2]>,
    /// teo: all of them (`total`).
    pub total: Option<u32>,
    /// teo with utilisation: `sched_cpu_util()`, and the threshold above which the CPU is utilised.
    pub util: Option<[u64; 2]>,
    /// menu: the last sleeps, us.
    pub intervals_us: Vec<u32>,
    /// menu: what the time to the next timer is multiplied with, by its size, in thousandths.
    pub correction_permille: Option<u32>,
}

/// The values that schedutil read of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyInput {
    /// The CPU.
    pub cpu: CpuId,
    /// `cfs_rq->avg.util_avg`.
    pub util_avg: u64,
    /// `cfs_rq->avg.runnable_avg`: counts when boosting.
    pub runnable_avg: u64,
    /// `cfs_rq->avg.util_est`.
    pub util_est: u64,
    /// Sum aggregation of clamps: what counts instead of the three above, each task's utilisation within its clamps.
    pub util_uclamp: Option<u64>,
    /// By how much contention raised the utilisation: what counts of the three above minus what would
    /// count without runnable boosting. 0 where the release has none.
    pub boost: u64,
    /// `avg_rt.util_avg`.
    pub rt: u64,
    /// `avg_dl.util_avg`.
    pub dl: u64,
    /// `avg_irq.util_avg`.
    pub irq: u64,
    /// The lower bound: irq plus deadline bandwidth (the fair server's 51 included), or the clamps'
    /// minimum. Before 6.8: the deadline bandwidth, which is part of the demand.
    pub min: u64,
    /// The clamps' maximum where the run queue has one below 1024.
    pub max: Option<u64>,
    /// Resulting performance demand of this CPU, headroom included.
    pub perf: u64,
}
