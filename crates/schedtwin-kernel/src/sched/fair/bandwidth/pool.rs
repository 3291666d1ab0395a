// SPDX-License-Identifier: GPL-2.0-or-later
//! The pool of a group with a limit, and what one of its queues has of it: the arithmetic of [`super`].
//!
//! ```
//! use schedtwin_kernel::sched::fair::bandwidth::{CfsBandwidth, CfsRqBandwidth};
//!
//! let mut pool = CfsBandwidth::default();
//! pool.quota = Some(6_000_000);
//! let mut queue = CfsRqBandwidth::default();
//! pool.refill();
//! assert!(pool.assign(&mut queue, 5_000_000));
//! queue.runtime_remaining -= 5_200_000;
//! // 200 us were run too much, 1 ms is left.
//! assert!(pool.assign(&mut queue, 5_000_000));
//! assert_eq!((pool.runtime, queue.runtime_remaining), (0, 800_000));
//! ```
//!
//! Kernel: 6.12.95 and 6.1.192 kernel/sched/fair.c `__refill_cfs_bandwidth_runtime`, `__assign_cfs_rq_runtime`,
//! `__return_cfs_rq_runtime`, `distribute_cfs_runtime`, `do_sched_cfs_period_timer`.

use crate::sched::CfsRqId;
use schedtwin_types::Ns;

/// `default_cfs_period()`.
pub const DEFAULT_CFS_PERIOD: Ns = 100_000_000;
/// `min_cfs_rq_runtime`: a queue that loses its last task keeps that.
const MIN_CFS_RQ_RUNTIME: i64 = 1_000_000;

/// The counters in `cpu.stat` of a group's limit, since it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Periods in which the timer ran.
    pub nr_periods: u64,
    /// Those at whose end a queue of the group was throttled.
    pub nr_throttled: u64,
    /// For how long queues with tasks were throttled, ns; of all CPUs together.
    pub throttled_time: Ns,
    /// Periods in which more than the quota was used.
    pub nr_bursts: u64,
    /// The runtime used beyond the quota, ns.
    pub burst_time: Ns,
    /// `usage_usec`, in ns: what its tasks have run.
    pub usage: Ns,
    /// Periods at whose end it was throttled, although usage and what queues may hold back are below the quota.
    pub nr_early: u64,
    /// The longest sequence of such periods, ns.
    pub longest_early: Ns,
}

/// `struct cfs_bandwidth`: of a group.
#[derive(Clone, Debug)]
pub struct CfsBandwidth {
    /// Runtime for each period, ns; `None`: no limit.
    pub quota: Option<Ns>,
    /// The period, ns.
    pub period: Ns,
    /// Runtime that the pool may keep beyond the quota, ns.
    pub burst: Ns,
    /// The pool, ns.
    pub runtime: u64,
    /// The pool after it was filled last.
    pub runtime_snap: u64,
    /// Nobody has asked since the last period began.
    pub idle: bool,
    /// The period timer is queued, or its handler runs.
    pub period_active: bool,
    /// When it is due; while it does not run, when it would have been.
    pub(super) expires: Ns,
    /// Its handler runs.
    pub(super) callback_running: bool,
    /// The slack timer is queued.
    pub(super) slack_started: bool,
    /// `stat.usage` when the period began, and for how long periods have been such as [`CpuStat::nr_early`] counts, ns.
    pub(super) usage_before: Ns,
    pub(super) early_for: Ns,
    /// Run queues that are throttled, first come first served.
    pub throttled: Vec<CfsRqId>,
    /// The counters of `cpu.stat`.
    pub stat: CpuStat,
}

impl Default for CfsBandwidth {
    /// `init_cfs_bandwidth()`: no limit.
    fn default() -> CfsBandwidth {
        CfsBandwidth {
            quota: None,
            period: DEFAULT_CFS_PERIOD,
            burst: 0,
            runtime: 0,
            runtime_snap: 0,
            idle: false,
            period_active: false,
            expires: 0,
            callback_running: false,
            slack_started: false,
            usage_before: 0,
            early_for: 0,
            throttled: Vec::new(),
            stat: CpuStat::default(),
        }
    }
}

impl CfsBandwidth {
    /// `__refill_cfs_bandwidth_runtime()`.
    pub fn refill(&mut self) {
        let Some(quota) = self.quota else { return };
        self.runtime += quota;
        if self.runtime_snap > self.runtime {
            self.stat.burst_time += self.runtime_snap - self.runtime;
            self.stat.nr_bursts += 1;
        }
        self.runtime = self.runtime.min(quota + self.burst);
        self.runtime_snap = self.runtime;
    }

    /// `__assign_cfs_rq_runtime()` once the timer runs: a queue asks for as much as makes `target`; whether it may run.
    pub fn assign(&mut self, queue: &mut CfsRqBandwidth, target: Ns) -> bool {
        queue.of_period = self.stat.nr_periods;
        let wanted = (target as i64 - queue.runtime_remaining) as u64;
        let mut amount = wanted;
        if self.quota.is_some() {
            amount = wanted.min(self.runtime);
            if self.runtime > 0 {
                self.runtime -= amount;
                self.idle = false;
            }
        }
        queue.runtime_remaining += amount as i64;
        queue.runtime_remaining > 0
    }

    /// `expire_cfs_rq_runtime()`, which is no more: what a queue has of an earlier period is lost.
    ///
    /// ```
    /// use schedtwin_kernel::sched::fair::bandwidth::{CfsBandwidth, CfsRqBandwidth};
    ///
    /// let mut pool = CfsBandwidth::default();
    /// pool.quota = Some(10_000_000);
    /// let mut queue = CfsRqBandwidth::default();
    /// pool.begin_period(1);
    /// pool.assign(&mut queue, 5_000_000);
    /// queue.runtime_remaining -= 1_000_000;
    /// pool.expire(&mut queue);
    /// assert_eq!(queue.runtime_remaining, 4_000_000);
    /// pool.begin_period(1);
    /// pool.expire(&mut queue);
    /// assert_eq!(queue.runtime_remaining, 0);
    /// ```
    pub fn expire(&self, queue: &mut CfsRqBandwidth) {
        if queue.runtime_remaining > 0 && queue.of_period != self.stat.nr_periods {
            queue.runtime_remaining = 0;
        }
    }

    /// `__return_cfs_rq_runtime()`: a queue without entities gives back what it has beyond 1 ms; whether what has gathered
    /// is worth handing out.
    pub fn give_back(&mut self, queue: &mut CfsRqBandwidth, slice: Ns) -> bool {
        let slack = queue.runtime_remaining - MIN_CFS_RQ_RUNTIME;
        if slack <= 0 {
            return false;
        }
        queue.runtime_remaining -= slack;
        if self.quota.is_none() {
            return false;
        }
        self.runtime += slack as u64;
        self.runtime > slice && !self.throttled.is_empty()
    }

    /// One turn of `distribute_cfs_runtime()`: a queue that waits gets as much as makes 1 ns; whether it may go on.
    pub fn hand_out(&mut self, queue: &mut CfsRqBandwidth) -> bool {
        queue.of_period = self.stat.nr_periods;
        let wanted = (1 - queue.runtime_remaining) as u64;
        let amount = wanted.min(self.runtime);
        self.runtime -= amount;
        queue.runtime_remaining += amount as i64;
        queue.runtime_remaining > 0
    }

    /// For judging: a period ends, in which `held` ns of runtime may have stayed with the queues. It is no part of the kernel.
    pub(super) fn judge_period(&mut self, overrun: u64, held: Ns) {
        let used = self.stat.usage - std::mem::replace(&mut self.usage_before, self.stat.usage);
        let waits = !self.throttled.is_empty();
        let early = overrun == 1 && waits && self.quota.is_some_and(|quota| used + held < quota);
        self.early_for = if early { self.early_for + self.period } else { 0 };
        self.stat.nr_early += u64::from(early);
        self.stat.longest_early = self.stat.longest_early.max(self.early_for);
    }

    /// For judging: the most that may have been used by now, `held` ns of which stayed with the queues.
    pub fn most_usage(&self, held: Ns) -> Option<Ns> {
        let quota = self.quota?;
        // The first period begins with a whole quota, and another may have begun since the timer ran last.
        Some((self.stat.nr_periods + 2) * quota + self.burst + held)
    }

    /// `do_sched_cfs_period_timer()` up to the point where it hands out. `overrun`: periods that have passed.
    pub fn begin_period(&mut self, overrun: u64) -> PeriodTimer {
        if self.quota.is_none() {
            return PeriodTimer::Stops;
        }
        let throttled = !self.throttled.is_empty();
        self.stat.nr_periods += overrun;
        self.refill();
        if self.idle && !throttled {
            return PeriodTimer::Stops;
        }
        if !throttled {
            self.idle = true;
            return PeriodTimer::GoesOn;
        }
        self.stat.nr_throttled += overrun;
        self.idle = false;
        PeriodTimer::HandsOut
    }
}

/// The action of the timer at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodTimer {
    /// Nobody needs it.
    Stops,
    /// Nobody waits.
    GoesOn,
    /// Queues wait for runtime.
    HandsOut,
}

/// The part of `struct cfs_rq` that bandwidth control keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct CfsRqBandwidth {
    /// Its group has a limit.
    pub runtime_enabled: bool,
    /// It is throttled: nobody below it may use the CPU, once all have left.
    pub throttled: bool,
    /// When it was last unthrottled.
    pub(super) unthrottled_at: Ns,
    /// Its entity has left the queue above, with all below it (up to 6.17).
    pub dequeued: bool,
    /// Its PELT clock stands still.
    pub pelt_clock_throttled: bool,
    /// It waits for its CPU to let it go on (`throttled_csd_list`).
    pub(super) csd_queued: bool,
    /// Number of throttled queues among it and those above.
    pub throttle_count: u32,
    /// The runtime that is left, ns.
    pub runtime_remaining: i64,
    /// The period in which it got some last, by the group's count.
    pub(super) of_period: u64,
    /// Since when tasks have been waiting for it to be unthrottled, by `rq.clock`.
    pub(super) throttled_clock: Option<u64>,
    /// PELT clock of its CPU when its own stopped.
    pub(super) throttled_clock_pelt: u64,
    /// For how long its own has stood still, by that of the CPU.
    pub(super) throttled_clock_pelt_time: u64,
    /// The same when it became empty; [`u64::MAX`]: it was throttled (`throttled_pelt_idle`).
    pub throttled_pelt_idle: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group that is throttled with usage below its quota, less what queues may hold back.
    #[test]
    fn a_period_is_judged_by_what_was_used_in_it() {
        let mut pool = CfsBandwidth { quota: Some(20_000_000), ..CfsBandwidth::default() };
        let end = |pool: &mut CfsBandwidth, used: Ns, throttled: bool| {
            pool.stat.usage += used;
            pool.throttled = if throttled { vec![CfsRqId(1)] } else { Vec::new() };
            pool.judge_period(1, 10_000_000);
            (pool.stat.nr_early, pool.stat.longest_early / DEFAULT_CFS_PERIOD)
        };
        assert_eq!(end(&mut pool, 20_000_000, true), (0, 0));
        assert_eq!(end(&mut pool, 10_000_000, true), (0, 0), "the rest may be with the queues");
        assert_eq!(end(&mut pool, 9_000_000, true), (1, 1));
        assert_eq!(end(&mut pool, 9_000_000, true), (2, 2));
        assert_eq!(end(&mut pool, 9_000_000, false), (2, 2), "nobody waits");
        assert_eq!(end(&mut pool, 9_000_000, true), (3, 2));
        // Two periods at least: the first one's quota, and one that has begun since.
        assert_eq!(pool.most_usage(5_000_000), Some(45_000_000));
        pool.stat.nr_periods = 3;
        assert_eq!(pool.most_usage(0), Some(100_000_000));
    }
}
