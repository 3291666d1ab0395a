// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpu.max`: how much CPU time a task group may use in each period.
//!
//! **Decides** when a group's run queue on a CPU has to stop (*throttle*), and when it may go on.
//!
//! **Idea.** A group has a pool of runtime that a timer fills with its quota each period. A run queue of the group takes
//! runtime from the pool a slice at a time, and pays what its tasks use from that. When it has used up its slice and the pool
//! is empty, it is *throttled* until the timer brings new runtime: its entity leaves the queue above with all tasks below it
//! (up to 6.17, `queue.rs`), or its tasks leave one by one, each on its way back to user space (`task.rs`).
//!
//! ```text
//!  quota 20 ms, period 100 ms, one hog                                          ▲ the period timer
//!
//!  ▲ pool 20                                          ▲ pool 20
//!  |--5--|--5--|--5--|--5--|      throttled           |--5--|--5--|--5--|--5--|   throttled
//!  0                      20 ms                      100 ms
//! ```
//!
//! **Terms.** *Quota*: what the pool gets each period. *Burst*: how much the pool may keep beyond it. *Slice*: what a queue
//! asks for at once (`sched_cfs_bandwidth_slice_us`, 5 ms). *Remaining*: what a queue has left of it; negative, if a tick came
//! late. *Hierarchy throttled*: the queue or one above it is throttled (`throttle_count`, `hierarchy.rs`).
//!
//! **Algorithm.**
//! 1. Charge: what the running entity of a level has run is taken off that level's queue. At 0 it asks the pool for a slice;
//!    without an answer the CPU is told to reschedule.
//! 2. Throttle, when a task is put back or picked: the queue asks once more, for as much as makes 1 ns. If it gets none, it is
//!    throttled. A queue that gets its first task does the same. In 7.3 the charge itself throttles.
//! 3. Period timer: the pool is filled, and queues that wait get as much as makes 1 ns each, in the order in which they were
//!    throttled. They take a slice when they run. Without a use for it the timer stops after two periods.
//! 4. A queue that loses its last task gives back what it has beyond 1 ms. If somebody waits and the pool has more than a slice,
//!    a second timer (*slack*) hands it out in 5 ms, unless the period is nearly over.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `__account_cfs_rq_runtime`, `throttle_cfs_rq`, `unthrottle_cfs_rq`,
//! `distribute_cfs_runtime`, `do_sched_cfs_period_timer`, `do_sched_cfs_slack_timer`, kernel/sched/core.c
//! `tg_set_cfs_bandwidth`; 6.1.192 where [`CfsUnthrottle`], [`PutPrev`](crate::config::PutPrev) and
//! [`CfsThrottledTime`](crate::config::CfsThrottledTime) say so, 6.18 and 7.3.4 where tasks leave one by one.
//! Differences: entries are atomic, so the timer's handler never finds its next period begun, and no period is stretched.

#[cfg(feature = "conformance")]
pub mod conformance;
mod hierarchy;
mod pool;
mod queue;
mod task;

pub use pool::{CfsBandwidth, CfsRqBandwidth, CpuStat, DEFAULT_CFS_PERIOD, PeriodTimer};

use crate::config::{CfsPeriodTimer, CfsUnthrottle};
use crate::sched::{CfsRqId, Class};
use crate::time::hrtimer::{TimerKind, hrtimer_forward};
use crate::{Context, Cpuidle, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, IpiKind, Ns, TaskGroupId, TaskId};

/// `min_bandwidth_expiration`: nothing is handed out so shortly before the next period.
const MIN_BANDWIDTH_EXPIRATION: i64 = 2_000_000;
/// `cfs_bandwidth_slack_period`: how long returned runtime is gathered.
const CFS_BANDWIDTH_SLACK_PERIOD: Ns = 5_000_000;

/// A run queue that may go on, on the list of its CPU.
#[derive(Clone, Copy, Debug)]
pub struct UnthrottleEntry {
    /// Which.
    cfs_rq: CfsRqId,
    /// The time when it was put there, by the clock of the CPU that did it.
    at: Ns,
}

impl Kernel {
    // ---- settings -------------------------------------------------------------------------------

    /// `tg_set_cfs_bandwidth()`: `quota` ns in each `period`, `None` without a limit. The period is 1 ms to 1 s, the quota at
    /// least 1 ms, the burst at most the quota.
    pub fn tg_set_cfs_bandwidth(
        &mut self,
        group: TaskGroupId,
        period: Ns,
        quota: Option<Ns>,
        burst: Ns,
    ) {
        assert!(group != TaskGroupId::ROOT, "the root has no limit");
        assert!((1_000_000..=1_000_000_000).contains(&period), "a period of {period} ns");
        assert!(quota.is_none_or(|q| q >= 1_000_000 && burst <= q), "a quota of {quota:?}");
        self.sched.cfs_bandwidth_used |= quota.is_some();
        self.sched.choose_group_tree(&self.cx);
        let bandwidth = &mut self.sched.groups[group].bandwidth;
        (bandwidth.period, bandwidth.quota, bandwidth.burst) = (period, quota, burst);
        bandwidth.refill();
        if quota.is_some() {
            self.sched.start_cfs_bandwidth(group, &mut self.time, &mut self.cx);
        }
        for cpu in self.sched.rq.ids() {
            let cfs_rq = self.sched.groups[group].cfs_rq[cpu.index()];
            let own = &mut self.sched.cfs[cfs_rq].bandwidth;
            own.runtime_enabled = quota.is_some();
            own.runtime_remaining = i64::from(self.cx.throttles_tasks());
            if own.throttled {
                self.unthrottle_cfs_rq(cfs_rq);
            }
        }
    }

    // ---- what a queue may run -------------------------------------------------------------------

    /// `account_cfs_rq_runtime()`: the running entity of a queue has run for `delta` ns. Returns whether the queue is throttled,
    /// where charges decide that.
    #[inline]
    pub(super) fn account_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId, delta: u64) -> bool {
        let own = &mut self.sched.cfs[cfs_rq].bandwidth;
        if !own.runtime_enabled {
            return false;
        }
        own.runtime_remaining -= delta as i64;
        let group = self.sched.cfs[cfs_rq].group;
        self.sched.groups[group].bandwidth.stat.usage += delta;
        if self.cx.config.bugs.slices_expire {
            let cfs = &mut self.sched.cfs[cfs_rq];
            self.sched.groups[cfs.group].bandwidth.expire(&mut cfs.bandwidth);
        }
        let own = &mut self.sched.cfs[cfs_rq].bandwidth;
        if own.runtime_remaining > 0 {
            return false;
        }
        if self.cx.throttles_at_charge() {
            return own.throttled || self.throttle_cfs_rq(cfs_rq);
        }
        if own.throttled {
            return false;
        }
        let slice = self.cx.config.cfs_bandwidth_slice;
        if !self.sched.assign_cfs_rq_runtime(cfs_rq, slice, &mut self.time, &mut self.cx)
            && self.sched.cfs[cfs_rq].curr.is_some()
        {
            self.sched.resched_curr(self.sched.cpu_of(cfs_rq), &mut self.cpuidle, &mut self.cx);
        }
        false
    }

    /// `set_next_task_fair()`: each level of the task that is switched to gets runtime.
    #[inline(never)]
    pub(super) fn assign_runtime_to(&mut self, next: TaskId) {
        let mut throttled = false;
        let mut level = Some(self.sched.tasks[next].se);
        while let Some(se) = level {
            throttled |= self.account_cfs_rq_runtime(self.sched.se[se].cfs_rq, 0);
            level = self.sched.se[se].parent;
        }
        if throttled {
            self.task_throttle_setup_work(next);
        }
    }

    /// `check_enqueue_throttle()`: a queue has got its first entity.
    fn check_enqueue_throttle(&mut self, cfs_rq: CfsRqId) {
        let cfs = &self.sched.cfs[cfs_rq];
        // What runs is looked at when it is charged or put back.
        if !cfs.bandwidth.runtime_enabled || cfs.curr.is_some() || cfs.bandwidth.throttled {
            return;
        }
        self.account_cfs_rq_runtime(cfs_rq, 0);
        if !self.cx.throttles_at_charge() && self.sched.cfs[cfs_rq].bandwidth.runtime_remaining <= 0
        {
            self.throttle_cfs_rq(cfs_rq);
        }
    }

    /// `check_cfs_rq_runtime()`: throttles a queue that has nothing left; whether it is throttled.
    pub(super) fn check_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) -> bool {
        let own = &self.sched.cfs[cfs_rq].bandwidth;
        if !own.runtime_enabled || own.runtime_remaining > 0 || self.cx.throttles_at_charge() {
            return false;
        }
        // A queue that is already throttled was made to run all the same, by a change of a task's
        // attributes, or because its tasks leave one by one.
        own.throttled || self.throttle_cfs_rq(cfs_rq)
    }

    /// The test of a pick on its way down: whether the queue is throttled. Where the running task is put back before a pick,
    /// only its own queues are tested. The first that is throttled puts the task back on all levels, and the pick begins anew,
    /// without a test.
    pub(super) fn throttles_at_pick(&mut self, cpu: CpuId, cfs_rq: CfsRqId) -> bool {
        if !self.cx.puts_back_before_pick() {
            return self.check_cfs_rq_runtime(cfs_rq);
        }
        let throttled = self.sched.cfs[cfs_rq].curr.is_some() && self.check_cfs_rq_runtime(cfs_rq);
        if throttled {
            self.put_prev_task_fair(cpu, self.sched.rq[cpu].curr);
        }
        throttled
    }

    /// Whether the pick that goes on has put back the fair task that ran ([`Kernel::throttles_at_pick`]).
    #[inline(always)]
    pub(in crate::sched) fn was_put_back_by_pick(&self, cpu: CpuId, prev: TaskId) -> bool {
        self.sched.cfs_bandwidth_used()
            && self.sched.cfs[CfsRqId::root(cpu)].curr.is_none()
            && self.sched.tasks[prev].class == Class::Fair
            && !self.sched.flat_groups()
    }

    // ---- throttling -----------------------------------------------------------------------------

    /// `throttle_cfs_rq()`; `false`: there was something left after all.
    fn throttle_cfs_rq(&mut self, cfs_rq: CfsRqId) -> bool {
        let cfs = &self.sched.cfs[cfs_rq];
        let (cpu, group) = (cfs.cpu, cfs.group);
        let by_task = self.cx.throttles_tasks();
        // A charge asks for the running entity, which goes on with what it gets.
        let charged = self.cx.throttles_at_charge() && self.sched.curr_on_rq(cfs_rq).is_some();
        let target = if charged { self.cx.config.cfs_bandwidth_slice } else { 1 };
        if self.sched.assign_cfs_rq_runtime(cfs_rq, target, &mut self.time, &mut self.cx) {
            return false;
        }
        let waiting = &mut self.sched.groups[group].bandwidth.throttled;
        let at = if self.cx.config.bugs.throttled_first { 0 } else { waiting.len() };
        waiting.insert(at, cfs_rq);
        self.sched.tg_throttle_down(group, cpu, !by_task, &mut self.cx);
        if !by_task {
            self.dequeue_throttled_queue(cfs_rq);
        }
        self.sched.cfs[cfs_rq].bandwidth.throttled = true;
        if charged {
            self.task_throttle_setup_work(self.sched.rq[cpu].curr);
        }
        true
    }

    /// `unthrottle_cfs_rq()`. Where tasks leave one by one, those that still run may have used up what the queue got.
    fn unthrottle_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        let (cpu, group) = (self.sched.cpu_of(cfs_rq), self.sched.cfs[cfs_rq].group);
        self.sched.update_rq_clock(cpu, &self.cx);
        if self.cx.throttles_tasks() {
            if self.cx.throttles_at_charge() {
                self.update_curr(cfs_rq);
            }
            let own = &self.sched.cfs[cfs_rq].bandwidth;
            if own.runtime_enabled && own.runtime_remaining <= 0 {
                return;
            }
        }
        let own = &mut self.sched.cfs[cfs_rq].bandwidth;
        own.throttled = false;
        own.unthrottled_at = self.cx.now;
        let dequeued = std::mem::take(&mut own.dequeued);
        let clock = self.sched.rq[cpu].clock;
        let since = self.sched.cfs[cfs_rq].bandwidth.throttled_clock.take();
        let pool = &mut self.sched.groups[group].bandwidth;
        pool.stat.throttled_time += since.map_or(0, |since| clock - since);
        pool.throttled.retain(|id| *id != cfs_rq);
        self.tg_unthrottle_up(group, cpu);
        if self.sched.cfs[cfs_rq].load_weight != 0 {
            if dequeued {
                self.enqueue_unthrottled_queue(cfs_rq);
            }
        } else if self.sched.cfs[cfs_rq].on_list {
            // Nothing to run, but something to decay, and to tell those above of.
            let mut level = self.sched.groups[group].se.get(cpu.index()).copied();
            while let Some(se) = level {
                self.sched.list_add_leaf_cfs_rq(self.sched.se[se].cfs_rq);
                level = self.sched.se[se].parent;
            }
        } else {
            return;
        }
        let root = &self.sched.cfs[CfsRqId::root(cpu)];
        if self.sched.rq[cpu].curr.is_idle() && root.nr_queued != 0 {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// The end of `enqueue_entity()`: a queue has got its first entity.
    pub(super) fn queue_begins(&mut self, cfs_rq: CfsRqId) {
        if self.sched.cfs_bandwidth_used() {
            self.check_enqueue_throttle(cfs_rq);
            let cfs = &mut self.sched.cfs[cfs_rq];
            if cfs.bandwidth.pelt_clock_throttled {
                if self.cx.throttles_tasks() {
                    self.sched.pelt_clock_goes_on(cfs_rq);
                } else {
                    if cfs.bandwidth.throttled {
                        let clock = self.sched.rq[cfs.cpu].clock;
                        cfs.bandwidth.throttled_clock.get_or_insert(clock);
                    }
                    return;
                }
            }
        }
        self.sched.list_add_leaf_cfs_rq(cfs_rq);
    }

    /// The end of `dequeue_entity()`: a queue may have lost its last entity.
    #[inline(never)]
    pub(super) fn queue_may_end(&mut self, cfs_rq: CfsRqId) {
        let cfs = &self.sched.cfs[cfs_rq];
        if cfs.nr_queued != 0 {
            return;
        }
        let stops = cfs.bandwidth.throttle_count != 0 && self.cx.throttles_tasks();
        self.sched.update_idle_cfs_rq_clock_pelt(cfs_rq);
        if stops {
            self.sched.pelt_clock_stops(cfs_rq);
        }
    }

    /// `sched_cfs_period_timer()`, on the executing CPU.
    #[inline(never)]
    pub(crate) fn sched_cfs_period_timer(&mut self, group: TaskGroupId, expires: Ns) {
        let bandwidth = &mut self.sched.groups[group].bandwidth;
        let next = hrtimer_forward(expires, self.cx.now, bandwidth.period);
        let overrun = (next - expires) / bandwidth.period;
        (bandwidth.expires, bandwidth.callback_running) = (next, true);
        let held = self.held_by_queues();
        self.sched.groups[group].bandwidth.judge_period(overrun, held);
        let idle = self.do_sched_cfs_period_timer(group, overrun);
        let bandwidth = &mut self.sched.groups[group].bandwidth;
        bandwidth.callback_running = false;
        if idle {
            bandwidth.period_active = false;
        } else {
            self.time.hrtimer_start(
                self.cx.this_cpu,
                next,
                next,
                TimerKind::CfsPeriod(group),
                &mut self.cx,
            );
        }
    }

    /// For judging: what queues may hold back, or have run beyond their runtime: a slice and a tick each, and a slice of the pool.
    pub(crate) fn held_by_queues(&self) -> Ns {
        let cpus = self.sched.nr_cpus() as u64;
        let slice = self.cx.config.cfs_bandwidth_slice;
        cpus * (slice + self.cx.tick_nsec) + slice
    }

    /// `do_sched_cfs_period_timer()`; `true`: nobody needs the timer.
    fn do_sched_cfs_period_timer(&mut self, group: TaskGroupId, overrun: u64) -> bool {
        match self.sched.groups[group].bandwidth.begin_period(overrun) {
            PeriodTimer::Stops => return true,
            PeriodTimer::GoesOn => return false,
            PeriodTimer::HandsOut => {}
        }
        let mut throttled = true;
        // Each round hands out something.
        while throttled && self.sched.groups[group].bandwidth.runtime > 0 {
            throttled = self.distribute_cfs_runtime(group);
        }
        false
    }

    /// `do_sched_cfs_slack_timer()`.
    #[inline(never)]
    pub(crate) fn sched_cfs_slack_timer(&mut self, group: TaskGroupId) {
        self.sched.groups[group].bandwidth.slack_started = false;
        if self.sched.runtime_refresh_within(group, MIN_BANDWIDTH_EXPIRATION, &self.cx) {
            return;
        }
        let pool = &self.sched.groups[group].bandwidth;
        if pool.quota.is_some() && pool.runtime > self.cx.config.cfs_bandwidth_slice {
            self.distribute_cfs_runtime(group);
        }
    }

    /// `distribute_cfs_runtime()`: queues that wait get as much as makes 1 ns; whether somebody got too little.
    fn distribute_cfs_runtime(&mut self, group: TaskGroupId) -> bool {
        let mut local = None;
        let mut at = 0;
        let mut throttled = false;
        while let Some(&cfs_rq) = self.sched.groups[group].bandwidth.throttled.get(at) {
            if self.sched.groups[group].bandwidth.runtime == 0 {
                throttled = true;
                break;
            }
            at += 1;
            let cfs = &self.sched.cfs[cfs_rq];
            let cpu = cfs.cpu;
            if cfs.bandwidth.csd_queued {
                continue;
            }
            if self.cx.throttles_at_charge() && cfs.curr.is_some() {
                self.sched.update_rq_clock(cpu, &self.cx);
                self.update_curr(cfs_rq);
            }
            let pool = &mut self.sched.groups[group].bandwidth;
            if !pool.hand_out(&mut self.sched.cfs[cfs_rq].bandwidth) {
                throttled = true;
                continue;
            }
            match self.cx.config.cfs_unthrottle {
                CfsUnthrottle::Remote => {
                    // It leaves the list.
                    at -= 1;
                    self.unthrottle_cfs_rq(cfs_rq);
                }
                CfsUnthrottle::OwnCpu if cpu == self.cx.this_cpu => {
                    // An interrupt for another queue of this CPU is on its way, and sees to this one, too.
                    if self.cx.throttles_at_charge() && self.sched.csd_is_pending(cpu, &self.cx) {
                        self.sched.list_for_csd(cfs_rq, self.cx.now);
                    } else {
                        local = Some(cfs_rq);
                    }
                }
                CfsUnthrottle::OwnCpu => {
                    self.sched.unthrottle_cfs_rq_async(cfs_rq, &mut self.cpuidle, &mut self.cx)
                }
            }
        }
        if let Some(cfs_rq) = local {
            self.unthrottle_cfs_rq(cfs_rq);
        }
        throttled
    }

    /// `__cfsb_csd_unthrottle()`: the interrupt has arrived. What was listed later than now has one of its own.
    #[inline]
    pub(crate) fn cfsb_csd_unthrottle(&mut self, cpu: CpuId) {
        if self.sched.rq[cpu].unthrottle_list.is_empty() {
            return;
        }
        let now = self.cx.now;
        let mut list = std::mem::take(&mut self.sched.rq[cpu].unthrottle_list);
        list.retain(|entry| {
            if entry.at > now {
                return true;
            }
            self.sched.cfs[entry.cfs_rq].bandwidth.csd_queued = false;
            if self.sched.cfs[entry.cfs_rq].bandwidth.throttled {
                self.unthrottle_cfs_rq(entry.cfs_rq);
            }
            false
        });
        if let Some(next) = list.iter().map(|entry| entry.at).min() {
            self.cx.wake_list_again(cpu, next);
        }
        self.sched.rq[cpu].unthrottle_list = list;
    }
}

impl Scheduler {
    /// When a group's periods begin: `offset` ns after the grid of time 0, if this kernel sets them apart.
    pub(crate) fn seed_cfs_period(&mut self, group: TaskGroupId, offset: Ns, cx: &Context) {
        if cx.config.cfs_period_timer == CfsPeriodTimer::Random {
            self.groups[group].bandwidth.expires = offset;
        }
    }

    /// `__assign_cfs_rq_runtime()`: a queue asks its group's pool for as much as makes `target`; whether it may run.
    fn assign_cfs_rq_runtime(
        &mut self,
        cfs_rq: CfsRqId,
        target: Ns,
        time: &mut Time,
        cx: &mut Context,
    ) -> bool {
        let group = self.cfs[cfs_rq].group;
        if self.groups[group].bandwidth.quota.is_some() {
            self.start_cfs_bandwidth(group, time, cx);
        }
        self.groups[group].bandwidth.assign(&mut self.cfs[cfs_rq].bandwidth, target)
    }

    /// `return_cfs_rq_runtime()`: a queue has lost an entity; an empty one gives back what it has.
    pub(super) fn return_cfs_rq_runtime(
        &mut self,
        cfs_rq: CfsRqId,
        time: &mut Time,
        cx: &mut Context,
    ) {
        let cfs = &mut self.cfs[cfs_rq];
        if !cfs.bandwidth.runtime_enabled || cfs.nr_queued != 0 {
            return;
        }
        let (group, slice) = (cfs.group, cx.config.cfs_bandwidth_slice);
        if cx.config.bugs.slices_expire {
            self.groups[group].bandwidth.expire(&mut cfs.bandwidth);
        }
        if self.groups[group].bandwidth.give_back(&mut cfs.bandwidth, slice) {
            self.start_cfs_slack_bandwidth(group, time, cx);
        }
    }

    // ---- handing out ----------------------------------------------------------------------------

    /// `start_cfs_bandwidth()`, on the executing CPU.
    fn start_cfs_bandwidth(&mut self, group: TaskGroupId, time: &mut Time, cx: &mut Context) {
        let now = cx.local_clock();
        let bandwidth = &mut self.groups[group].bandwidth;
        if bandwidth.period_active {
            return;
        }
        bandwidth.period_active = true;
        bandwidth.expires = hrtimer_forward(bandwidth.expires, now, bandwidth.period);
        let at = bandwidth.expires;
        time.hrtimer_start(cx.this_cpu, at, at, TimerKind::CfsPeriod(group), cx);
    }

    /// `start_cfs_slack_bandwidth()`.
    fn start_cfs_slack_bandwidth(&mut self, group: TaskGroupId, time: &mut Time, cx: &mut Context) {
        let gathers = CFS_BANDWIDTH_SLACK_PERIOD as i64;
        if self.runtime_refresh_within(group, gathers + MIN_BANDWIDTH_EXPIRATION, cx) {
            return;
        }
        if std::mem::replace(&mut self.groups[group].bandwidth.slack_started, true) {
            return;
        }
        let at = cx.local_clock() + CFS_BANDWIDTH_SLACK_PERIOD;
        let on = time.nohz_timer_target(at, self, cx);
        time.hrtimer_start(on, at, at, TimerKind::CfsSlack(group), cx);
    }

    /// `runtime_refresh_within()`: the next period begins in less than `ns`, or just now.
    fn runtime_refresh_within(&self, group: TaskGroupId, ns: i64, cx: &Context) -> bool {
        let bandwidth = &self.groups[group].bandwidth;
        bandwidth.callback_running || bandwidth.expires as i64 - (cx.local_clock() as i64) < ns
    }

    /// `unthrottle_cfs_rq_async()`: another CPU is asked to let its queue go on.
    fn unthrottle_cfs_rq_async(
        &mut self,
        cfs_rq: CfsRqId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        self.list_for_csd(cfs_rq, cx.local_clock());
        self.send_ipi(self.cpu_of(cfs_rq), IpiKind::WakeList, cpuidle, cx);
    }

    /// Puts a queue on its CPU's `cfsb_csd_list`.
    fn list_for_csd(&mut self, cfs_rq: CfsRqId, at: Ns) {
        let cfs = &mut self.cfs[cfs_rq];
        cfs.bandwidth.csd_queued = true;
        self.rq[cfs.cpu].unthrottle_list.push(UnthrottleEntry { cfs_rq, at });
    }

    /// Whether the list has something on it now.
    fn csd_is_pending(&self, cpu: CpuId, cx: &Context) -> bool {
        self.rq[cpu].unthrottle_list.iter().any(|entry| entry.at <= cx.now)
    }

    // ---- verification ---------------------------------------------------------------------------

    /// Asserts what holds of a queue's bandwidth: a throttled one does not run, is listed, and somebody will let it go on.
    pub(crate) fn verify_cfs_bandwidth(&self, id: CfsRqId, time: &Time) {
        let cfs = &self.cfs[id];
        let what = (cfs.cpu, cfs.group);
        let own = &cfs.bandwidth;
        let above = std::iter::successors(Some(cfs.group), |g| self.groups[*g].parent);
        let queue = |g: TaskGroupId| &self.cfs[self.groups[g].cfs_rq[cfs.cpu.index()]].bandwidth;
        let count = above.filter(|g| queue(*g).throttled).count();
        assert_eq!(own.throttle_count as usize, count, "{what:?}: throttle_count");
        let group = &self.groups[cfs.group].bandwidth;
        let listed = group.throttled.iter().filter(|other| **other == id).count();
        assert_eq!(listed, own.throttled as usize, "{what:?}: throttled_list");
        assert_eq!(own.runtime_enabled, group.quota.is_some(), "{what:?}: runtime_enabled");
        let csd = self.rq[cfs.cpu].unthrottle_list.iter().filter(|entry| entry.cfs_rq == id);
        assert_eq!(csd.count(), own.csd_queued as usize, "{what:?}: throttled_csd_list");
        let queued = |kind| self.rq.ids().any(|cpu| time.base(cpu).is_queued(kind));
        let timer = queued(TimerKind::CfsPeriod(cfs.group));
        assert_eq!(group.period_active, timer, "{what:?}: period timer");
        assert_eq!(group.slack_started, queued(TimerKind::CfsSlack(cfs.group)), "{what:?}: slack");
        if own.throttled {
            assert!(timer, "{what:?}: throttled for ever");
            assert!(
                own.runtime_remaining <= 0 || own.csd_queued,
                "{what:?}: throttled with runtime"
            );
        }
        if own.dequeued {
            let se = self.groups[cfs.group].se[cfs.cpu.index()];
            assert!(own.throttled && !self.se[se].on_rq, "{what:?}: a throttled group competes");
            let timed = cfs.nr_queued == 0 || own.throttled_clock.is_some();
            assert!(timed, "{what:?}: throttled_clock");
        }
        assert!(!own.pelt_clock_throttled || own.throttle_count != 0, "{what:?}: its clock stands");
        assert!(!cfs.on_list || !own.pelt_clock_throttled, "{what:?}: its averages decay");
    }
}
