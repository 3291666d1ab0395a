// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's entries: queueing, sleeping, switching, ticking.
//!
//! **Delayed dequeue.** A task that blocks while it is *not* eligible has run more than its share. Were it
//! taken out, it would escape the negative lag; so it stays queued (`sched_delayed`), competes without
//! running, and leaves when it is picked, that is, when it has become eligible with the best deadline. If
//! it is woken before that, it just goes on, on the same CPU.
//!
//! ```text
//! enqueue_task_fair: util_est += ; per level: enqueue_entity (update_curr, PELT, place, insert) ; server
//! dequeue_task_fair: util_est −= ; util_est_update ; per level: dequeue_entity (update_curr,
//!                    [delay?], PELT, lag, remove)
//! ```
//!
//! The hooks of `discipline.rs` hold the differences of EEVDF and CFS in these walks.
//!
//! Kernel: 6.12.95 kernel/sched/fair.c; the order of steps is 6.1.192's too, as far as it can be seen.
//! Differences: before 6.12 a
//! running task that RT tasks keep waiting is put back before it is picked, not after: as nobody but
//! RT is picked then, nobody notices.

use super::{Pick, scale_load_down};
use crate::config::IowaitHook;
use crate::observe::{DecisionLog, DecisionObserver};
use crate::sched::core::{
    DEQUEUE_DELAYED, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, DEQUEUE_THROTTLE,
    ENQUEUE_DELAYED, ENQUEUE_MIGRATED, ENQUEUE_RESTORE, ENQUEUE_WAKEUP,
};
use crate::sched::fair::load_avg::{DO_ATTACH, DO_DETACH, UPDATE_TG};
use crate::sched::pelt::{self, Learns, SchedAvg};
use crate::sched::{CfsRq, CfsRqId, Class, EntityId, LoadWeight, OnRq};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, Decision, Ns, Policy, PreemptionRule, TaskId};

/// `SCHED_CPUFREQ_IOWAIT`.
pub const SCHED_CPUFREQ_IOWAIT: u32 = 1;

impl CfsRq {
    /// A task more below this level; `idle`: 1 if it counts as `SCHED_IDLE` here. What it counts as above.
    #[inline(always)]
    pub(super) fn count_in(&mut self, delayed: bool, idle: u32) -> u32 {
        if delayed {
            self.h_nr_delayed += 1;
        } else {
            self.h_nr_runnable += 1;
        }
        self.h_nr_queued += 1;
        self.h_nr_idle += idle;
        if self.idle { 1 } else { idle }
    }
}

impl Scheduler {
    // ---- cfs_tasks: queued tasks, most recently run first -------------------------------------

    fn cfs_tasks_add(&mut self, cpu: CpuId, task: TaskId) {
        let rq = &mut self.rq[cpu];
        let head = rq.cfs_tasks_head.replace(task);
        if head.is_none() {
            rq.cfs_tasks_tail = Some(task);
        }
        let t = &mut self.tasks[task];
        (t.cfs_tasks_prev, t.cfs_tasks_next) = (None, head);
        if let Some(head) = head {
            self.tasks[head].cfs_tasks_prev = Some(task);
        }
    }

    #[inline(always)]
    fn cfs_tasks_del(&mut self, cpu: CpuId, task: TaskId) {
        let t = &self.tasks[task];
        let (prev, next) = (t.cfs_tasks_prev, t.cfs_tasks_next);
        match prev {
            Some(prev) => self.tasks[prev].cfs_tasks_next = next,
            None => self.rq[cpu].cfs_tasks_head = next,
        }
        match next {
            Some(next) => self.tasks[next].cfs_tasks_prev = prev,
            None => self.rq[cpu].cfs_tasks_tail = prev,
        }
    }

    /// `list_move(&se->group_node, &rq->cfs_tasks)`.
    #[inline(always)]
    pub(crate) fn cfs_tasks_move_to_head(&mut self, cpu: CpuId, task: TaskId) {
        if self.rq[cpu].cfs_tasks_head != Some(task) {
            self.cfs_tasks_del(cpu, task);
            self.cfs_tasks_add(cpu, task);
        }
    }

    // ---- accounting ---------------------------------------------------------------------------

    /// An entity is queued: into the timeline, unless it runs, and into the sums (`account_entity_enqueue()`).
    #[inline(always)]
    fn account_entity_enqueue(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let (cfs, entity) = (&mut self.cfs[cfs_rq], &mut self.se[se]);
        entity.on_rq = true;
        if cfs.curr != Some(se) {
            cfs.timeline_insert(se, entity);
        }
        cfs.load_weight += entity.load.weight;
        cfs.nr_queued += 1;
        if entity.my_q.is_none() {
            let (cpu, task) = (cfs.cpu, entity.task);
            self.task_is_queued(cpu, se, task);
        }
    }

    /// `account_entity_enqueue()`, the part that counts tasks alone.
    #[inline(always)]
    pub(super) fn task_is_queued(&mut self, cpu: CpuId, se: EntityId, task: TaskId) {
        self.cfs_tasks_add(cpu, task);
        if self.sched_cache.is_some() {
            self.account_llc(cpu, se, true);
        }
    }

    /// And out again (`account_entity_dequeue()`).
    #[inline(always)]
    fn account_entity_dequeue(&mut self, cfs_rq: CfsRqId, se: EntityId) {
        let (cfs, entity) = (&mut self.cfs[cfs_rq], &mut self.se[se]);
        if cfs.curr != Some(se) {
            cfs.timeline_remove(se, entity);
        }
        entity.on_rq = false;
        cfs.load_weight -= entity.load.weight;
        cfs.nr_queued -= 1;
        if entity.my_q.is_none() {
            let (cpu, task) = (cfs.cpu, entity.task);
            self.task_is_dequeued(cpu, se, task);
        }
    }

    /// `account_entity_dequeue()`, the part that counts tasks alone.
    #[inline(always)]
    pub(super) fn task_is_dequeued(&mut self, cpu: CpuId, se: EntityId, task: TaskId) {
        self.cfs_tasks_del(cpu, task);
        if self.sched_cache.is_some() {
            self.account_llc(cpu, se, false);
        }
    }

    /// The running entity of a queue, if it is still queued.
    #[inline(always)]
    pub(super) fn curr_on_rq(&self, cfs_rq: CfsRqId) -> Option<EntityId> {
        self.cfs[cfs_rq].curr.filter(|&c| self.se[c].on_rq)
    }

    /// `se_is_idle()`: a task of `SCHED_IDLE`, or an idle group.
    pub(super) fn se_is_idle(&self, se: EntityId) -> bool {
        let entity = &self.se[se];
        match entity.my_q {
            None => self.tasks[entity.task].policy == Policy::Idle,
            Some(my_q) => self.cfs[my_q].idle,
        }
    }

    /// Lets `change` work on the counters of a task's hierarchy, up to a queue whose entity throttling has taken out.
    pub(super) fn for_each_level(
        &mut self,
        mut se: EntityId,
        mut change: impl FnMut(&mut crate::sched::CfsRq),
    ) {
        loop {
            let cfs_rq = self.se[se].cfs_rq;
            change(&mut self.cfs[cfs_rq]);
            match self.se[se].parent {
                Some(parent) if !self.cfs[cfs_rq].bandwidth.dequeued => se = parent,
                _ => break,
            }
        }
    }

    pub(super) fn set_delayed(&mut self, se: EntityId) {
        self.se[se].sched_delayed = true;
        if self.se[se].my_q.is_some() {
            return;
        }
        if self.sched_cache.is_some() {
            self.account_llc_delayed(se, true);
        }
        self.for_each_level(se, |cfs| {
            cfs.h_nr_runnable -= 1;
            cfs.h_nr_delayed += 1;
        });
    }

    #[inline(always)]
    fn clear_delayed(&mut self, se: EntityId) {
        self.se[se].sched_delayed = false;
        if self.se[se].my_q.is_some() {
            return;
        }
        if self.sched_cache.is_some() {
            self.account_llc_delayed(se, false);
        }
        self.for_each_level(se, |cfs| {
            cfs.h_nr_runnable += 1;
            cfs.h_nr_delayed -= 1;
        });
    }

    /// A task goes to sleep, and its averages have just been updated (`UPDATE_UTIL_EST`).
    #[inline(always)]
    pub(super) fn learns_within_dequeue(&mut self, se: EntityId, cx: &Context) {
        if cx.config.features.util_est
            && self.se[se].my_q.is_none()
            && pelt::util_est_learns(cx.config.util_est_update) == Learns::Within
        {
            self.learn_within_dequeue(se, cx);
        }
    }

    #[inline(never)]
    fn learn_within_dequeue(&mut self, se: EntityId, cx: &Context) {
        self.util_est_update(self.cfs[self.se[se].cfs_rq].cpu, se, cx);
    }

    /// `task_dead_fair()`: a task has left its CPU for the last time, and takes its load with it.
    pub(crate) fn task_dead_fair(&mut self, task: TaskId, cx: &Context) {
        self.remove_entity_load_avg(task, cx);
    }

    /// `reweight_task_fair()` of a task that is off the queue while its attributes change: its load is
    /// part of its queue's. The average is refreshed even if the weight stays.
    pub(crate) fn reweight_task(&mut self, se: EntityId, new: LoadWeight, cx: &Context) {
        debug_assert!(!self.se[se].on_rq);
        self.reweighted_off_queue(se, new.weight, cx);
        let floor = cx.attach_floor();
        let entity = &mut self.se[se];
        let cfs_rq = entity.cfs_rq;
        let old_down = scale_load_down(entity.load.weight);
        let new_down = scale_load_down(new.weight);
        entity.load = new;
        self.cfs[cfs_rq].avg.change_load(|avg| {
            pelt::dequeue_load_avg(avg, &entity.avg, old_down);
            pelt::reweight_load_avg(&mut entity.avg, new_down);
            pelt::enqueue_load_avg(avg, &entity.avg, new_down, floor);
        });
    }
}

impl Kernel {
    /// `update_curr()`: accounts the running entity's time.
    #[inline(always)]
    pub(crate) fn update_curr(&mut self, cfs_rq: CfsRqId) {
        let cfs = &self.sched.cfs[cfs_rq];
        let Some(curr) = cfs.curr else { return };
        let clock_task = self.sched.rq[cfs.cpu].clock_task;
        let delta = clock_task as i64 - self.sched.se[curr].exec_start as i64;
        // An entry asks several times at one reading of the clock.
        if delta > 0 {
            self.account_curr(cfs_rq, curr, clock_task, delta as u64);
        }
    }

    /// The running entity has run for `delta` ns more.
    #[inline(never)]
    fn account_curr(&mut self, cfs_rq: CfsRqId, curr: EntityId, clock_task: u64, delta: u64) {
        let cpu = self.sched.cpu_of(cfs_rq);
        let virtual_delta = self.cx.calc_delta_fair(delta, self.sched.se[curr].virtual_load());
        let entity = &mut self.sched.se[curr];
        entity.exec_start = clock_task;
        entity.sum_exec_runtime += delta;
        entity.vruntime = entity.vruntime.wrapping_add(virtual_delta);
        let is_task = entity.my_q.is_none();
        if is_task && self.sched.sched_cache.is_some() {
            self.sched.account_mm_sched(cpu, curr, delta, &self.cx);
        }
        if self.sched.cfs_bandwidth_used() {
            // Not the timeline, where one is for all groups.
            self.account_cfs_rq_runtime(self.sched.se[curr].cfs_rq, delta);
        }
        if self.sched.flat_groups() && !is_task {
            return;
        }
        if is_task && self.sched.rq[cpu].fair_server.is_active() {
            self.fair_server_update(cpu, delta as i64);
        }
        let timeline = if self.sched.flat_groups() { self.sched.rq[cpu].timeline } else { cfs_rq };
        self.sched.virtual_time_passed(timeline, curr, &mut self.cpuidle, &mut self.cx);
    }

    // ---- enqueue ------------------------------------------------------------------------------

    // One of its two callers is on the way of every wakeup.
    #[inline(always)]
    pub(super) fn enqueue_entity(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) {
        self.place_before_update(cfs_rq, se, flags);
        self.update_curr(cfs_rq);
        self.update_load_avg(cfs_rq, se, UPDATE_TG | DO_ATTACH);
        self.sched.se_update_runnable(se);
        self.update_cfs_group(se);
        self.sched.place_after_update(cfs_rq, se, flags, &self.cx);
        if flags & ENQUEUE_MIGRATED != 0 {
            // It counts as not cache hot.
            self.sched.se[se].exec_start = 0;
        }
        self.sched.account_entity_enqueue(cfs_rq, se);
        if self.sched.cfs[cfs_rq].nr_queued == 1 && self.sched.is_of_group(cfs_rq) {
            self.queue_begins(cfs_rq);
        }
    }

    /// `requeue_delayed_entity()`: a delayed sleeper is woken and goes on.
    fn requeue_delayed_entity(&mut self, se: EntityId) {
        let cfs_rq = self.sched.timeline_of(se);
        if self.requeued_elsewhere(cfs_rq, se) {
            let curr = self.sched.cfs[cfs_rq].curr == Some(se);
            self.sched.cfs[cfs_rq].nr_queued -= 1;
            if !curr {
                self.sched.timeline_remove(cfs_rq, se);
            }
            self.sched.place_entity(cfs_rq, se, 0, &self.cx);
            if !curr {
                self.sched.timeline_insert(cfs_rq, se);
            }
            self.sched.cfs[cfs_rq].nr_queued += 1;
        }
        self.update_load_avg(self.sched.se[se].cfs_rq, se, 0);
        self.sched.clear_delayed(se);
    }

    pub(crate) fn enqueue_task_fair(&mut self, cpu: CpuId, task: TaskId, mut flags: u32) {
        let t = &self.sched.tasks[task];
        let (se, in_iowait, mut idle) = (t.se, t.in_iowait, (t.policy == Policy::Idle) as u32);
        let moving = t.on_rq == OnRq::Migrating || flags & ENQUEUE_RESTORE != 0;
        let root = CfsRqId::root(cpu);
        if self.sched.task_is_throttled(task) && self.enqueue_throttled_task(task) {
            return;
        }
        let delayed = self.sched.se[se].sched_delayed;
        if !(delayed && moving) && self.cx.config.features.util_est {
            let own = &self.sched.se[se].avg;
            self.sched.cfs[root].avg.change(cpu, &mut self.sched.stale_demands, |avg| {
                pelt::util_est_enqueue(avg, own);
            });
            if self.cx.uclamp_sums() {
                self.sched.util_est_uclamp_enqueue(cpu, task);
            }
        }
        if flags & ENQUEUE_DELAYED != 0 {
            self.requeue_delayed_entity(se);
            return;
        }
        if in_iowait && self.cx.config.iowait_hook == IowaitHook::Enqueue {
            self.cpufreq_update_util(cpu, SCHED_CPUFREQ_IOWAIT);
        }
        let task_new = flags & ENQUEUE_WAKEUP == 0;
        let still_delayed = task_new && delayed;
        let queued_before = self.sched.cfs[root].h_nr_queued;

        let mut level = self.sched.nested_levels(task);
        if level.is_none() {
            self.enqueue_flat(cpu, task, flags);
        }
        let mut parent_is_queued = false;
        let mut slice_below = None;
        let mut throttled = false;
        while let Some(id) = level {
            let entity = &self.sched.se[id];
            let (cfs_rq, parent) = (entity.cfs_rq, entity.parent);
            if parent_is_queued || entity.on_rq {
                if !parent_is_queued && entity.sched_delayed {
                    self.requeue_delayed_entity(id);
                }
                parent_is_queued = true;
                self.stays_queued(id, slice_below);
            } else {
                if let Some(slice) = slice_below {
                    self.sched.takes_slice(id, slice);
                }
                self.enqueue_entity(cfs_rq, id, flags);
                flags = ENQUEUE_WAKEUP;
            }
            if parent.is_some() {
                slice_below = self.sched.slice_for_above(cfs_rq, &self.cx);
            }
            let cfs = &mut self.sched.cfs[cfs_rq];
            idle = cfs.count_in(still_delayed, idle);
            throttled = cfs.bandwidth.dequeued;
            if throttled {
                break;
            }
            level = parent;
        }

        if !throttled {
            if queued_before == 0 {
                if self.sched.rq[cpu].nr_running == 0 {
                    self.sched.fair_server_before_start(cpu, &self.cx);
                }
                self.fair_server_start(cpu);
            }
            self.sched.add_nr_running(cpu, 1);
        }
        if self.cx.uclamp_sums() {
            self.util_bias_enqueue(cpu, task);
        }
        if (!task_new || self.cx.config.bugs.fork_overutilises) && !throttled {
            self.sched.check_update_overutilized_status(cpu, &mut self.cx);
        }
        if self.cx.config.features.hrtick {
            self.hrtick_update(cpu);
        }
    }

    /// A level above whose entity stays where it is: what is below it has changed.
    pub(super) fn stays_queued(&mut self, se: EntityId, slice: Option<Ns>) {
        self.update_load_avg(self.sched.se[se].cfs_rq, se, UPDATE_TG);
        self.sched.se_update_runnable(se);
        self.update_cfs_group(se);
        if let Some(slice) = slice {
            self.sched.se[se].slice = slice;
        }
    }

    // ---- dequeue ------------------------------------------------------------------------------

    /// `dequeue_entity()`; `false`: it stays, delayed.
    #[inline(always)]
    pub(super) fn dequeue_entity(&mut self, cfs_rq: CfsRqId, se: EntityId, flags: u32) -> bool {
        let sleep = flags & DEQUEUE_SLEEP != 0;
        self.update_curr(cfs_rq);
        self.sched.clear_buddies(cfs_rq, se);
        self.sched.before_delaying(cfs_rq, se, &self.cx);
        if flags & DEQUEUE_DELAYED == 0 {
            let delay = sleep && flags & (DEQUEUE_SPECIAL | DEQUEUE_THROTTLE) == 0;
            if self.cx.config.features.delay_dequeue
                && delay
                && !self.sched.entity_eligible(cfs_rq, se)
            {
                self.update_load_avg(cfs_rq, se, 0);
                self.sched.learns_within_dequeue(se, &self.cx);
                self.sched.set_delayed(se);
                return false;
            }
        }
        let mut action = UPDATE_TG;
        let entity = &self.sched.se[se];
        let migrating =
            entity.my_q.is_none() && self.sched.tasks[entity.task].on_rq == OnRq::Migrating;
        if migrating {
            action |= DO_DETACH;
        }
        self.update_load_avg(cfs_rq, se, action);
        if sleep && flags & DEQUEUE_DELAYED == 0 {
            self.sched.learns_within_dequeue(se, &self.cx);
        }
        self.sched.se_update_runnable(se);
        self.sched.before_leaving(cfs_rq, se, flags, &self.cx);
        self.sched.account_entity_dequeue(cfs_rq, se);
        if self.sched.cfs_bandwidth_used() {
            self.sched.return_cfs_rq_runtime(cfs_rq, &mut self.time, &mut self.cx);
        }
        self.update_cfs_group(se);
        self.sched.after_leaving(cfs_rq, se, flags, &self.cx);
        if flags & DEQUEUE_DELAYED != 0 {
            self.sched.clear_delayed(se);
        }
        if self.sched.cfs_bandwidth_used() {
            self.queue_may_end(cfs_rq);
        }
        true
    }

    /// `dequeue_entities()`; `false`: the task stays, delayed.
    pub(super) fn dequeue_entities(&mut self, cpu: CpuId, se: EntityId, mut flags: u32) -> bool {
        if self.sched.flat_groups() {
            return self.dequeue_flat(cpu, se, flags);
        }
        let was_sched_idle = self.sched.sched_idle_mask.contains(cpu);
        let sleep = flags & DEQUEUE_SLEEP != 0;
        let finishing = flags & DEQUEUE_DELAYED != 0;
        let throttles = flags & DEQUEUE_THROTTLE != 0;
        let entity = &self.sched.se[se];
        // A delayed group stands for no task: its tasks have been counted out before.
        let task = entity.my_q.is_none().then_some(entity.task);
        let tasks = task.is_some() as u32;
        let was_delayed = task.is_some() && !sleep && !finishing && entity.sched_delayed;
        let mut idle = task.is_some_and(|t| self.sched.tasks[t].policy == Policy::Idle) as u32;

        let mut level = Some(se);
        let mut parent_stays = false;
        let mut slice_below = None;
        let mut throttled = false;
        while let Some(id) = level {
            let entity = &self.sched.se[id];
            let (cfs_rq, parent) = (entity.cfs_rq, entity.parent);
            if parent_stays {
                self.stays_queued(id, slice_below);
            } else if !self.dequeue_entity(cfs_rq, id, flags) {
                if task.is_some() && id == se {
                    return false;
                }
                // The group waits to be dequeued, with all that is above.
                self.stays_queued(id, self.sched.slice_for_above(cfs_rq, &self.cx));
                parent_stays = true;
            }
            let cfs = &mut self.sched.cfs[cfs_rq];
            if was_delayed {
                cfs.h_nr_delayed -= tasks;
            } else {
                cfs.h_nr_runnable -= tasks;
            }
            cfs.h_nr_queued -= tasks;
            cfs.h_nr_idle -= idle;
            if cfs.idle {
                idle = tasks;
            }
            throttled = cfs.bandwidth.dequeued;
            if throttled {
                break;
            }
            let occupied = cfs.load_weight != 0;
            let stands_still = cfs.bandwidth.pelt_clock_throttled;
            if throttles {
                self.sched.record_throttle_clock(cfs_rq);
            }
            if let Some(parent) = parent {
                if occupied && !parent_stays && sleep && !stands_still {
                    // It sleeps within its slice: another task of the group shall get what is left
                    // of it.
                    self.sched.set_next_buddy(parent);
                }
                slice_below = self.sched.slice_for_above(cfs_rq, &self.cx);
            }
            parent_stays |= occupied;
            flags = (flags | DEQUEUE_SLEEP) & !(DEQUEUE_DELAYED | DEQUEUE_SPECIAL);
            level = parent;
        }
        if !throttled {
            self.sched.sub_nr_running(cpu, tasks);
        }
        if let Some(task) = task
            && self.cx.uclamp_sums()
        {
            self.sched.util_bias_dequeue(cpu, task, &self.cx);
        }
        if !throttled && !was_sched_idle && self.sched.sched_idle_mask.contains(cpu) {
            self.sched.rq[cpu].next_balance = self.cx.jiffies();
        }
        if let Some(task) = task
            && finishing
        {
            self.sched.finish_block_task(task);
        }
        true
    }

    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, task: TaskId, flags: u32) -> bool {
        if self.sched.task_is_throttled(task) {
            self.dequeue_throttled_task(task, flags);
            return true;
        }
        let t = &self.sched.tasks[task];
        let (se, root) = (t.se, CfsRqId::root(cpu));
        let moving = t.on_rq == OnRq::Migrating || flags & DEQUEUE_SAVE != 0;
        let util_est = self.cx.config.features.util_est;
        let delayed = self.sched.se[se].sched_delayed;
        let twice = || !moving && pelt::util_est_leaves_twice(self.cx.config.util_est_update);
        let leaves = util_est && (!delayed || twice());
        let late = self.cx.config.bugs.util_est_leaves_late;
        // The estimate by which it was counted: the dequeue may make another.
        let SchedAvg { util_est: enqueued, util_est_ewma: ewma, .. } = self.sched.se[se].avg;
        if leaves && !late {
            let own = &self.sched.se[se].avg;
            self.sched.cfs[root].avg.change(cpu, &mut self.sched.stale_demands, |avg| {
                pelt::util_est_dequeue(avg, own);
            });
            if !delayed && self.cx.uclamp_sums() {
                self.sched.util_est_uclamp_dequeue(cpu, task);
            }
        }
        let sleeps = util_est && flags & DEQUEUE_SLEEP != 0;
        let learns = pelt::util_est_learns(self.cx.config.util_est_update);
        if sleeps && learns == Learns::Before {
            self.sched.util_est_update(cpu, se, &self.cx);
        }
        let dequeued = self.dequeue_entities(cpu, se, flags);
        if leaves && late {
            self.util_est_leaves_late(cpu, task, [enqueued, ewma], delayed);
        }
        if sleeps && learns == Learns::After {
            self.sched.util_est_update(cpu, se, &self.cx);
        }
        dequeued
    }

    /// `bugs.util_est_leaves_late`: the sleeping task's estimate is taken off when the governor has been asked.
    #[cold]
    fn util_est_leaves_late(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        [util_est, util_est_ewma]: [u32; 2],
        delayed: bool,
    ) {
        let own = SchedAvg { util_est, util_est_ewma, ..SchedAvg::default() };
        let root = CfsRqId::root(cpu);
        self.sched.cfs[root].avg.change(cpu, &mut self.sched.stale_demands, |avg| {
            pelt::util_est_dequeue(avg, &own);
        });
        if !delayed && self.cx.uclamp_sums() {
            self.sched.util_est_uclamp_dequeue(cpu, task);
        }
    }

    // ---- pick, put, set -----------------------------------------------------------------------

    /// `pick_task_fair()`.
    pub(crate) fn pick_task_fair(&mut self, cpu: CpuId) -> Option<TaskId> {
        if !self.cx.wants_decisions() {
            return self.pick_task_fair_seen(cpu, &mut ());
        }
        let mut notes = DecisionLog::default();
        let next = self.pick_task_fair_seen(cpu, &mut notes)?;
        let rule = notes.pick.expect("each pick says its rule");
        let (prev, candidates) = (self.sched.rq[cpu].curr, notes.pick_candidates);
        self.cx.record(Decision::Pick { prev, next, rule, candidates });
        Some(next)
    }

    #[inline(always)]
    fn pick_task_fair_seen(
        &mut self,
        cpu: CpuId,
        see: &mut impl DecisionObserver,
    ) -> Option<TaskId> {
        if self.sched.flat_groups() {
            return self.pick_flat(cpu, see);
        }
        'again: loop {
            see.pick_begins();
            let mut cfs_rq = CfsRqId::root(cpu);
            if self.sched.cfs[cfs_rq].nr_queued == 0 {
                return None;
            }
            let mut throttled = false;
            loop {
                if let Some(curr) = self.sched.cfs[cfs_rq].curr
                    && self.sched.se[curr].on_rq
                {
                    self.update_curr(cfs_rq);
                }
                if self.sched.cfs_bandwidth_used() && self.throttles_at_pick(cpu, cfs_rq) {
                    if !self.cx.throttles_tasks() {
                        continue 'again;
                    }
                    throttled = true;
                }
                let picked = self.sched.pick_next_entity(cfs_rq, true, see, &self.cx);
                let se = picked.expect("a queue that is not empty has a best");
                self.sched.note_pick(see, cfs_rq, se, &self.cx);
                if self.sched.se[se].sched_delayed {
                    self.dequeue_entities(cpu, se, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
                    continue 'again;
                }
                match self.sched.se[se].my_q {
                    Some(below) => cfs_rq = below,
                    None => {
                        let task = self.sched.se[se].task;
                        if throttled {
                            self.task_throttle_setup_work(task);
                        }
                        return Some(task);
                    }
                }
            }
        }
    }

    /// `pick_next_task_fair()`, newidle balancing included.
    pub(crate) fn pick_next_task_fair(&mut self, cpu: CpuId, prev: TaskId) -> Pick {
        loop {
            if let Some(next) = self.pick_task_fair(cpu) {
                let common = self.sched.has_groups() && self.sched.tasks[prev].class == Class::Fair;
                if self.was_put_back_by_pick(cpu, prev) {
                    self.put_prev_set_next_task(cpu, prev, next);
                } else if next == prev {
                    self.repicked(cpu, next);
                } else if common {
                    self.put_prev_set_next_task_fair(cpu, prev, next);
                } else {
                    self.put_prev_set_next_task(cpu, prev, next);
                }
                return Pick::Task(next);
            }
            match self.sched_balance_newidle(cpu) {
                pulled if pulled < 0 => return Pick::Retry,
                0 => return Pick::Nothing,
                _ => {}
            }
        }
    }

    pub(crate) fn put_prev_task_fair(&mut self, cpu: CpuId, prev: TaskId) {
        if self.sched.flat_groups() {
            return self.put_prev_flat(cpu, prev, None);
        }
        if self.was_put_back_by_pick(cpu, prev) {
            return;
        }
        let mut level = Some(self.sched.tasks[prev].se);
        while let Some(se) = level {
            self.put_prev_entity(se);
            level = self.sched.se[se].parent;
        }
    }

    /// `put_prev_entity()`.
    #[inline(always)]
    pub(super) fn put_prev_entity(&mut self, se: EntityId) {
        let cfs_rq = self.sched.se[se].cfs_rq;
        if self.sched.se[se].on_rq {
            self.update_curr(cfs_rq);
        }
        if self.sched.cfs_bandwidth_used() {
            self.check_cfs_rq_runtime(cfs_rq);
        }
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &self.sched.se[se]);
        if entity.on_rq {
            cfs.timeline_insert(se, entity);
            self.update_load_avg(cfs_rq, se, 0);
        }
        self.sched.cfs[cfs_rq].curr = None;
    }

    /// `set_next_task_fair()`; `first`: it is being switched to, not put back after a change.
    pub(crate) fn set_next_task_fair(&mut self, cpu: CpuId, next: TaskId, first: bool) {
        if self.sched.flat_groups() {
            return self.set_next_flat(cpu, next, first);
        }
        let mut level = Some(self.sched.tasks[next].se);
        while let Some(se) = level {
            self.set_next_entity(se, first);
            level = self.sched.se[se].parent;
        }
        if self.sched.cfs_bandwidth_used() && !(first && self.cx.puts_back_before_pick()) {
            self.assign_runtime_to(next);
        }
        self.next_task_is_set(cpu, next, first);
    }

    /// `set_next_entity()`.
    #[inline(always)]
    pub(super) fn set_next_entity(&mut self, se: EntityId, first: bool) {
        let cfs_rq = self.sched.se[se].cfs_rq;
        self.sched.clear_buddies(cfs_rq, se);
        let (cfs, entity) = (&mut self.sched.cfs[cfs_rq], &self.sched.se[se]);
        if entity.on_rq {
            cfs.timeline_remove(se, entity);
            self.update_load_avg(cfs_rq, se, UPDATE_TG);
            self.sched.installed(cfs_rq, se, first, &self.cx);
        }
        let clock_task = self.sched.rq[self.sched.cpu_of(cfs_rq)].clock_task;
        let entity = &mut self.sched.se[se];
        entity.exec_start = clock_task;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        self.sched.cfs[cfs_rq].curr = Some(se);
    }

    /// `__set_next_task_fair()`.
    #[inline(always)]
    pub(super) fn next_task_is_set(&mut self, cpu: CpuId, next: TaskId, first: bool) {
        if self.sched.tasks[next].on_rq == OnRq::Queued {
            self.sched.cfs_tasks_move_to_head(cpu, next);
        }
        if first {
            if self.cx.config.features.hrtick {
                self.hrtick_start_fair(cpu, next);
            }
            self.update_misfit_status(Some(next), cpu);
        }
    }

    // ---- tick, preemption, yield --------------------------------------------------------------

    /// `task_tick_fair()` for a hrtick: the slice is over.
    pub(crate) fn task_hrtick_fair(&mut self, cpu: CpuId, curr: TaskId) {
        let mut level = self.sched.nested_levels(curr);
        if level.is_none() {
            self.tick_flat(cpu, curr);
        }
        while let Some(se) = level {
            self.entity_tick(se);
            level = self.sched.se[se].parent;
        }
        self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
    }

    /// `entity_tick()`, what a tick and a hrtick both do.
    #[inline(always)]
    pub(super) fn entity_tick(&mut self, se: EntityId) {
        let cfs_rq = self.sched.se[se].cfs_rq;
        self.update_curr(cfs_rq);
        self.update_load_avg(cfs_rq, se, UPDATE_TG);
        self.update_cfs_group(se);
    }

    pub(crate) fn task_tick_fair(&mut self, cpu: CpuId, curr: TaskId) {
        let mut level = self.sched.nested_levels(curr);
        if level.is_none() {
            self.tick_flat(cpu, curr);
        }
        while let Some(se) = level {
            self.entity_tick(se);
            self.sched.tick_preempts(self.sched.se[se].cfs_rq, se, &mut self.cpuidle, &mut self.cx);
            level = self.sched.se[se].parent;
        }
        if let Some(cache) = &mut self.sched.sched_cache {
            cache.task_tick_cache(cpu, curr);
        }
        self.update_misfit_status(Some(curr), cpu);
        self.sched.check_update_overutilized_status(cpu, &mut self.cx);
    }

    /// `check_preempt_wakeup_fair()`, `check_preempt_wakeup()` before 6.7.
    pub(crate) fn check_preempt_wakeup_fair(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) {
        let curr = self.sched.rq[cpu].curr;
        if curr == task {
            return;
        }
        let (preempt, rule) = if self.sched.throttled_wakee(task, &self.cx) {
            (false, PreemptionRule::Throttled)
        } else {
            self.wakeup_preempts(cpu, task, curr, wake_flags)
        };
        if self.cx.wants_decisions() {
            self.cx.record(Decision::Preemption { task, curr, preempt, rule });
        }
        if preempt {
            self.sched.resched_curr_lazy(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `yield_task_fair()`.
    pub(crate) fn yield_task_fair(&mut self, cpu: CpuId) {
        if self.sched.rq[cpu].nr_running == 1 {
            return;
        }
        let se = self.sched.tasks[self.sched.rq[cpu].curr].se;
        let cfs_rq = self.sched.timeline_of(se);
        self.sched.clear_buddies(cfs_rq, se);
        self.yields(cpu, cfs_rq, se);
    }
}
