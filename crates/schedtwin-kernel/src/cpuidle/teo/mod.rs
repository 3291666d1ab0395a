//! The timer events oriented governor (teo), one file per form it has had.
//!
//! What the forms share is here: the table of idle states as a governor sees it, and the words for
//! why a state was chosen.

pub mod v6_12;

/// Most idle states a driver can have (`CPUIDLE_STATE_MAX`).
pub const CPUIDLE_STATE_MAX: usize = 10;
/// A state with a shorter target residency is not worth asking the timers about
/// (`RESIDENCY_THRESHOLD_NS` of `drivers/cpuidle/governors/gov.h`).
pub const RESIDENCY_THRESHOLD_NS: i64 = 15_000;
/// The sleep length when nothing was asked or nothing is pending (`KTIME_MAX`), ns.
pub const KTIME_MAX: i64 = i64::MAX;

/// What a governor knows about an idle state (`struct cpuidle_state` and the `disable` of
/// `struct cpuidle_state_usage`). States are ordered from shallow to deep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleStateParams {
    /// Worst time from interrupt to first instruction, ns (an s64 in C; at most 2^63 − 1).
    pub exit_latency_ns: u64,
    /// Shortest stay that pays, ns (an s64 in C; at most 2^63 − 1).
    pub target_residency_ns: u64,
    /// The state spins instead of sleeping (`CPUIDLE_FLAG_POLLING`).
    pub polling: bool,
    /// Switched off, by the driver or through sysfs.
    pub disabled: bool,
}

/// What `select` is told about the moment.
#[derive(Clone, Copy, Debug)]
pub struct SelectInput<'a> {
    /// The CPU's idle states, 1..=[`CPUIDLE_STATE_MAX`] of them.
    pub states: &'a [IdleStateParams],
    /// Longest exit latency that is allowed (`cpuidle_governor_latency_req`), ns.
    pub latency_req_ns: i64,
    /// The tick was stopped by an earlier round of this idle period (`tick_nohz_tick_stopped`).
    pub tick_stopped: bool,
    /// Length of a tick (`TICK_NSEC`): (10^9 + HZ/2) / HZ.
    pub tick_nsec: i64,
    /// `local_clock()`, ns.
    pub now: u64,
    /// How long the last entered state lasted, latencies included (`dev->last_residency_ns`).
    pub last_residency_ns: u64,
}

/// The answer of `tick_nohz_get_sleep_length`, ns. Both can be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepLength {
    /// Until the next timer, with the tick left out if it can be stopped.
    pub sleep_length_ns: i64,
    /// Until the next programmed event, the tick included (`delta_next`).
    pub delta_tick_ns: i64,
}

/// What was chosen and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Index of the state to enter.
    pub idx: usize,
    /// Whether the tick may be stopped.
    pub stop_tick: bool,
    /// The rule that decided about the state: the last one that moved it.
    pub rule: SelectRule,
    /// The rule that decided about the tick.
    pub tick_rule: TickRule,
    /// The answer of the timers, if they were asked.
    pub sleep_length_ns: Option<i64>,
}

/// Why this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SelectRule {
    /// There are fewer than two states.
    NoChoice,
    /// All states are disabled: state 0 all the same.
    NoneEnabled,
    /// Only one state is enabled.
    OneEnabled,
    /// The deepest enabled state: nothing spoke against it.
    Deepest,
    /// Wakeups before the deeper states' residency prevail: the state that half of them reached.
    Intercepts,
    /// A deeper state would take too long to leave.
    LatencyLimit,
    /// The next timer comes before the residency of a deeper state.
    Timer,
    /// The tick goes on and comes before the residency of a deeper state.
    Tick,
}

/// Why the tick may stop, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TickRule {
    /// A sleep of a tick or more is expected: may stop.
    LongSleep,
    /// It is stopped already and may remain so.
    AlreadyStopped,
    /// The next timer, or the residency of the only state, is less than a tick away: keep.
    ShortSleep,
    /// The chosen state spins: keep.
    Polling,
    /// Most wakeups come before a tick has passed: keep.
    Intercepts,
    /// A short stay is expected and the timers were not looked at, or not for this: keep.
    Shallow,
}
