// SPDX-License-Identifier: GPL-2.0-or-later
//! `cpu.max`: how much CPU time a task group may use in each period.
//!
//! **Decides** when a group's run queue on a CPU has to stop (*throttle*), and when it may go on.
//!
//! **Idea.** A group has a pool of runtime that a timer fills with its quota each period. A run queue of the group takes
//! runtime from the pool a slice at a time, and pays what its tasks use from that. When it has used up its slice and the pool
//! is empty, its entity leaves the queue above, with all tasks below it, until the timer brings new runtime.
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
//! late. *Hierarchy throttled*: the queue or one above it is throttled (`throttle_count`); its PELT clock stands still.
//!
//! **Algorithm.**
//! 1. Charge: what the running entity of a level has run is taken off that level's queue. At 0 it asks the pool for a slice;
//!    without an answer the CPU is told to reschedule.
//! 2. Throttle, when a task is put back or picked: the queue asks once more, for as much as makes 1 ns. If it gets none, its
//!    entity is dequeued, and its tasks are no longer counted above. A queue that gets its first task does the same.
//! 3. Period timer: the pool is filled, and queues that wait get as much as makes 1 ns each, in the order in which they were
//!    throttled. They take a slice when they run. Without a use for it the timer stops after two periods.
//! 4. A queue that loses its last task gives back what it has beyond 1 ms. If somebody waits and the pool has more than a slice,
//!    a second timer (*slack*) hands it out in 5 ms, unless the period is nearly over.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `__account_cfs_rq_runtime`, `throttle_cfs_rq`, `unthrottle_cfs_rq`,
//! `distribute_cfs_runtime`, `do_sched_cfs_period_timer`, `do_sched_cfs_slack_timer`, kernel/sched/core.c
//! `tg_set_cfs_bandwidth`; 6.1.192 where [`CfsUnthrottle`] says so.
//! Differences: entries are atomic, so the timer's handler never finds its next period begun, and no period is stretched. The
//! time that a queue is throttled without tasks is left out in every release, as in 6.12 (before, it counted). Before 6.6 a queue
//! that is throttled while a task is picked makes the kernel put back all levels of the running task, here those that differ.

mod pool;

pub use pool::{CfsBandwidth, CfsRqBandwidth, CpuStat, DEFAULT_CFS_PERIOD, PeriodTimer};

use crate::arena::Id;
use crate::config::{CfsPeriodTimer, CfsUnthrottle};
use crate::sched::CfsRqId;
use crate::sched::core::{DEQUEUE_DELAYED, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_WAKEUP};
use crate::sched::fair::load_avg::UPDATE_TG;
use crate::time::hrtimer::{TimerKind, hrtimer_forward};
use crate::{Context, Cpuidle, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, IpiKind, Ns, TaskGroupId};

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
            own.runtime_remaining = 0;
            if own.throttled {
                self.unthrottle_cfs_rq(cfs_rq);
            }
        }
    }

    // ---- what a queue may run -------------------------------------------------------------------

    /// `account_cfs_rq_runtime()`: the running entity of a queue has run for `delta` ns.
    #[inline]
    pub(super) fn account_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId, delta: u64) {
        let own = &mut self.sched.cfs[cfs_rq].bandwidth;
        if !own.runtime_enabled {
            return;
        }
        own.runtime_remaining -= delta as i64;
        if own.runtime_remaining > 0 || own.throttled {
            return;
        }
        let slice = self.cx.config.cfs_bandwidth_slice;
        if !self.sched.assign_cfs_rq_runtime(cfs_rq, slice, &mut self.time, &mut self.cx)
            && self.sched.cfs[cfs_rq].curr.is_some()
        {
            self.sched.resched_curr(self.sched.cpu_of(cfs_rq), &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `check_enqueue_throttle()`: a queue has got its first entity.
    pub(super) fn check_enqueue_throttle(&mut self, cfs_rq: CfsRqId) {
        let cfs = &self.sched.cfs[cfs_rq];
        // What runs is looked at when it is put back.
        if !cfs.bandwidth.runtime_enabled || cfs.curr.is_some() || cfs.bandwidth.throttled {
            return;
        }
        self.account_cfs_rq_runtime(cfs_rq, 0);
        if self.sched.cfs[cfs_rq].bandwidth.runtime_remaining <= 0 {
            self.throttle_cfs_rq(cfs_rq);
        }
    }

    /// `check_cfs_rq_runtime()`: throttles a queue that has nothing left; whether it is throttled.
    pub(super) fn check_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) -> bool {
        let own = &self.sched.cfs[cfs_rq].bandwidth;
        if !own.runtime_enabled || own.runtime_remaining > 0 {
            return false;
        }
        // A queue that is already throttled was made to run all the same, by a change of a task's
        // attributes.
        own.throttled || self.throttle_cfs_rq(cfs_rq)
    }

    // ---- throttling -----------------------------------------------------------------------------

    /// `throttle_cfs_rq()`; `false`: there was something left after all.
    fn throttle_cfs_rq(&mut self, cfs_rq: CfsRqId) -> bool {
        if self.sched.assign_cfs_rq_runtime(cfs_rq, 1, &mut self.time, &mut self.cx) {
            return false;
        }
        let (cpu, group) = (self.sched.cpu_of(cfs_rq), self.sched.cfs[cfs_rq].group);
        self.sched.groups[group].bandwidth.throttled.push(cfs_rq);
        self.sched.tg_throttle_down(group, cpu);

        let cfs = &self.sched.cfs[cfs_rq];
        let (queued, delayed) = (cfs.h_nr_queued, cfs.h_nr_delayed);
        let (runnable, mut idle) = (cfs.h_nr_runnable, cfs.h_nr_idle);
        let mut level = Some(self.sched.groups[group].se[cpu.index()]);
        let mut parent_stays = false;
        while let Some(se) = level
            && self.sched.se[se].on_rq
        {
            let above = self.sched.se[se].cfs_rq;
            if parent_stays {
                self.update_load_avg(above, se, 0);
                self.sched.se_update_runnable(se);
            } else {
                // It leaves at once, eligible or not.
                let delayed = if self.sched.se[se].sched_delayed { DEQUEUE_DELAYED } else { 0 };
                self.dequeue_entity(above, se, DEQUEUE_SLEEP | DEQUEUE_SPECIAL | delayed);
            }
            if self.sched.se_is_idle(se) {
                idle = queued;
            }
            let cfs = &mut self.sched.cfs[above];
            cfs.h_nr_queued -= queued;
            cfs.h_nr_runnable -= runnable;
            cfs.h_nr_delayed -= delayed;
            cfs.h_nr_idle -= idle;
            parent_stays |= cfs.load_weight != 0;
            level = self.sched.se[se].parent;
        }
        if level.is_none() {
            self.sched.sub_nr_running(cpu, queued);
        }
        let clock = self.sched.rq[cpu].clock;
        let cfs = &mut self.sched.cfs[cfs_rq];
        cfs.bandwidth.throttled = true;
        cfs.bandwidth.throttled_clock = (cfs.nr_queued != 0).then_some(clock);
        true
    }

    /// `unthrottle_cfs_rq()`.
    fn unthrottle_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        let (cpu, group) = (self.sched.cpu_of(cfs_rq), self.sched.cfs[cfs_rq].group);
        self.sched.cfs[cfs_rq].bandwidth.throttled = false;
        self.sched.update_rq_clock(cpu, &self.cx);
        let clock = self.sched.rq[cpu].clock;
        let since = self.sched.cfs[cfs_rq].bandwidth.throttled_clock.take();
        let pool = &mut self.sched.groups[group].bandwidth;
        pool.stat.throttled_time += since.map_or(0, |since| clock - since);
        pool.throttled.retain(|id| *id != cfs_rq);
        self.sched.tg_unthrottle_up(group, cpu);
        if self.sched.cfs[cfs_rq].load_weight != 0 {
            self.queue_unthrottled(cpu, cfs_rq);
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

    /// The middle of `unthrottle_cfs_rq()`: what is on the queue counts again above, up to the next one that is throttled.
    fn queue_unthrottled(&mut self, cpu: CpuId, cfs_rq: CfsRqId) {
        let root = CfsRqId::root(cpu);
        let queued_before = self.sched.cfs[root].h_nr_queued;
        let cfs = &self.sched.cfs[cfs_rq];
        let (queued, delayed) = (cfs.h_nr_queued, cfs.h_nr_delayed);
        let (runnable, mut idle) = (cfs.h_nr_runnable, cfs.h_nr_idle);
        let mut level = Some(self.sched.groups[cfs.group].se[cpu.index()]);
        let mut parent_is_queued = false;
        while let Some(se) = level {
            let above = self.sched.se[se].cfs_rq;
            parent_is_queued |= self.sched.se[se].on_rq && !self.sched.se[se].sched_delayed;
            if parent_is_queued {
                self.update_load_avg(above, se, UPDATE_TG);
                self.sched.se_update_runnable(se);
            } else {
                if self.sched.se[se].sched_delayed {
                    self.dequeue_entity(above, se, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
                }
                self.enqueue_entity(above, se, ENQUEUE_WAKEUP);
            }
            if self.sched.se_is_idle(se) {
                idle = queued;
            }
            let cfs = &mut self.sched.cfs[above];
            cfs.h_nr_queued += queued;
            cfs.h_nr_runnable += runnable;
            cfs.h_nr_delayed += delayed;
            cfs.h_nr_idle += idle;
            if cfs.bandwidth.throttled {
                return;
            }
            level = self.sched.se[se].parent;
        }
        if queued_before == 0 && self.sched.cfs[root].h_nr_queued != 0 {
            self.fair_server_start(cpu);
        }
        self.sched.add_nr_running(cpu, queued);
    }

    /// The end of `enqueue_entity()`: a queue has got its first entity.
    pub(super) fn queue_begins(&mut self, cfs_rq: CfsRqId) {
        if self.sched.cfs_bandwidth_used() {
            self.check_enqueue_throttle(cfs_rq);
            let cfs = &mut self.sched.cfs[cfs_rq];
            if cfs.bandwidth.throttle_count != 0 {
                if cfs.bandwidth.throttled {
                    let clock = self.sched.rq[cfs.cpu].clock;
                    cfs.bandwidth.throttled_clock.get_or_insert(clock);
                }
                return;
            }
        }
        self.sched.list_add_leaf_cfs_rq(cfs_rq);
    }

    /// `sched_cfs_period_timer()`, on the executing CPU.
    #[inline(never)]
    pub(crate) fn sched_cfs_period_timer(&mut self, group: TaskGroupId, expires: Ns) {
        let bandwidth = &mut self.sched.groups[group].bandwidth;
        let next = hrtimer_forward(expires, self.cx.now, bandwidth.period);
        let overrun = (next - expires) / bandwidth.period;
        (bandwidth.expires, bandwidth.callback_running) = (next, true);
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
            let pool = &mut self.sched.groups[group].bandwidth;
            if pool.runtime == 0 {
                throttled = true;
                break;
            }
            at += 1;
            let cfs = &mut self.sched.cfs[cfs_rq];
            if cfs.bandwidth.csd_queued {
                continue;
            }
            if !pool.hand_out(&mut cfs.bandwidth) {
                throttled = true;
                continue;
            }
            let cpu = cfs.cpu;
            match self.cx.config.cfs_unthrottle {
                CfsUnthrottle::Remote => {
                    // It leaves the list.
                    at -= 1;
                    self.unthrottle_cfs_rq(cfs_rq);
                }
                CfsUnthrottle::OwnCpu if cpu == self.cx.this_cpu => local = Some(cfs_rq),
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
        if self.groups[group].bandwidth.give_back(&mut cfs.bandwidth, slice) {
            self.start_cfs_slack_bandwidth(group, time, cx);
        }
    }

    /// Whether `group` is `top` or below it.
    fn is_group_below(&self, group: TaskGroupId, top: TaskGroupId) -> bool {
        std::iter::successors(Some(group), |g| self.groups[*g].parent).any(|g| g == top)
    }

    /// `tg_throttle_down()`, from a group to those below it: their PELT clocks stop.
    fn tg_throttle_down(&mut self, top: TaskGroupId, cpu: CpuId) {
        let now = self.rq_clock_pelt(cpu);
        for index in top.index()..self.groups.len() {
            let group = TaskGroupId::from_index(index);
            if !self.is_group_below(group, top) {
                continue;
            }
            let cfs_rq = self.groups[group].cfs_rq[cpu.index()];
            let own = &mut self.cfs[cfs_rq].bandwidth;
            if own.throttle_count == 0 {
                own.throttled_clock_pelt = now;
                self.list_del_leaf_cfs_rq(cfs_rq);
            }
            self.cfs[cfs_rq].bandwidth.throttle_count += 1;
        }
    }

    /// `tg_unthrottle_up()`, from the lowest groups to `top`: their PELT clocks go on.
    fn tg_unthrottle_up(&mut self, top: TaskGroupId, cpu: CpuId) {
        let now = self.rq_clock_pelt(cpu);
        for index in (top.index()..self.groups.len()).rev() {
            let group = TaskGroupId::from_index(index);
            if !self.is_group_below(group, top) {
                continue;
            }
            let cfs_rq = self.groups[group].cfs_rq[cpu.index()];
            let own = &mut self.cfs[cfs_rq].bandwidth;
            own.throttle_count -= 1;
            if own.throttle_count == 0 {
                own.throttled_clock_pelt_time += now - own.throttled_clock_pelt;
                if !self.cfs_rq_is_decayed(cfs_rq, self.rq[cpu].leaf_cfs_rqs.len()) {
                    self.list_add_leaf_cfs_rq(cfs_rq);
                }
            }
        }
    }

    // ---- time -----------------------------------------------------------------------------------

    /// `throttled_hierarchy()`: the queue or one above it is throttled.
    #[inline(always)]
    pub(super) fn throttled_hierarchy(&self, cfs_rq: CfsRqId) -> bool {
        self.cfs_bandwidth_used() && self.cfs[cfs_rq].bandwidth.throttle_count != 0
    }

    /// `cfs_rq_clock_pelt()`: the PELT clock of a CPU, less the time in which the queue was throttled.
    #[inline(always)]
    pub(crate) fn cfs_rq_clock_pelt(&self, cfs_rq: CfsRqId) -> u64 {
        let cfs = &self.cfs[cfs_rq];
        let now = self.rq_clock_pelt(cfs.cpu);
        if self.cfs_bandwidth_used() { cfs.bandwidth.clock_pelt(now) } else { now }
    }

    /// `update_idle_cfs_rq_clock_pelt()`: a queue has become empty.
    pub(super) fn update_idle_cfs_rq_clock_pelt(&mut self, cfs_rq: CfsRqId) {
        let own = &mut self.cfs[cfs_rq].bandwidth;
        let throttled = own.throttle_count != 0;
        own.throttled_pelt_idle = if throttled { u64::MAX } else { own.throttled_clock_pelt_time };
    }

    /// `sync_throttle()`: a new group below one that is throttled.
    pub(super) fn sync_throttle(&mut self, group: TaskGroupId) {
        let Some(parent) = self.groups[group].parent else { return };
        for cpu in self.rq.ids() {
            let above = self.groups[parent].cfs_rq[cpu.index()];
            let throttle_count = self.cfs[above].bandwidth.throttle_count;
            let now = self.rq_clock_pelt(cpu);
            let own = &mut self.cfs[self.groups[group].cfs_rq[cpu.index()]].bandwidth;
            (own.throttle_count, own.throttled_clock_pelt) = (throttle_count, now);
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
        let at = cx.local_clock();
        let cfs = &mut self.cfs[cfs_rq];
        cfs.bandwidth.csd_queued = true;
        let cpu = cfs.cpu;
        self.rq[cpu].unthrottle_list.push(UnthrottleEntry { cfs_rq, at });
        self.send_ipi(cpu, IpiKind::WakeList, cpuidle, cx);
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
            let se = self.groups[cfs.group].se[cfs.cpu.index()];
            assert!(!self.se[se].on_rq, "{what:?}: a throttled group competes");
            assert!(timer, "{what:?}: throttled for ever");
            assert!(
                own.runtime_remaining <= 0 || own.csd_queued,
                "{what:?}: throttled with runtime"
            );
            let timed = cfs.nr_queued == 0 || own.throttled_clock.is_some();
            assert!(timed, "{what:?}: throttled_clock");
        }
        assert!(!cfs.on_list || own.throttle_count == 0, "{what:?}: its averages decay");
    }
}
