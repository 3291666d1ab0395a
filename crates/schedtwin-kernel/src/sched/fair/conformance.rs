// SPDX-License-Identifier: GPL-2.0-or-later
//! Single steps of the fair class, for the differential test against the kernel's own C.
//!
//! The twin enters the kernel through its entries, where a wakeup is also CPU selection, PELT and
//! costs. The tests (`conformance/`, L0 `eevdf` and L1's re-driven queues) take one step of the fair class
//! at a time; this is the narrow interface for them. Nothing else uses it, and it decides nothing:
//! each function passes on to the one it names. Both disciplines use the same steps; steps that
//! only one of them has are in an `impl` of its own.

use crate::Kernel;
use crate::sched::{CfsRqId, LoadWeight};
use schedtwin_types::{CpuId, TaskId};

/// `calc_delta_fair()` in the kernel's form.
pub fn calc_delta_fair(kernel: &Kernel, delta: u64, load: &LoadWeight) -> u64 {
    kernel.cx.calc_delta_fair(delta, load)
}

/// The fair class of a CPU.
pub struct FairSteps<'a>(pub &'a mut Kernel, pub CpuId);

impl FairSteps<'_> {
    /// `enqueue_task_fair()`.
    pub fn enqueue(&mut self, task: TaskId, flags: u32) {
        self.0.enqueue_task_fair(self.1, task, flags);
    }

    /// `dequeue_task_fair()`; `false`: it stays, delayed.
    pub fn dequeue(&mut self, task: TaskId, flags: u32) -> bool {
        self.0.dequeue_task_fair(self.1, task, flags)
    }

    /// `pick_task_fair()`.
    pub fn pick(&mut self) -> Option<TaskId> {
        self.0.pick_task_fair(self.1)
    }

    /// `put_prev_task_fair()`.
    pub fn put_prev(&mut self, task: TaskId) {
        self.0.put_prev_task_fair(self.1, task);
    }

    /// `set_next_task_fair()`.
    pub fn set_next(&mut self, task: TaskId, first: bool) {
        self.0.set_next_task_fair(self.1, task, first);
    }

    /// `task_tick_fair()`.
    pub fn tick(&mut self, task: TaskId) {
        self.0.task_tick_fair(self.1, task);
    }

    /// `check_preempt_wakeup_fair()`.
    pub fn wakeup_preempt(&mut self, task: TaskId) {
        self.0.check_preempt_wakeup_fair(self.1, task, 0);
    }

    /// `check_preempt_wakeup_fair()` with flags of the wakeup (`WF_FORK`).
    pub fn wakeup_preempt_flags(&mut self, task: TaskId, wake_flags: u32) {
        self.0.check_preempt_wakeup_fair(self.1, task, wake_flags);
    }

    /// `yield_task_fair()`.
    pub fn yield_task(&mut self) {
        self.0.yield_task_fair(self.1);
    }

    /// `reweight_task_fair()` of a task that is off the queue.
    pub fn reweight(&mut self, task: TaskId, load: LoadWeight) {
        let se = self.0.sched.tasks[task].se;
        self.0.sched.reweight_task(se, load, &self.0.cx);
    }

    /// `resched_curr()`.
    pub fn resched_curr(&mut self) {
        self.0.sched.resched_curr(self.1, &mut self.0.cpuidle, &mut self.0.cx);
    }

    /// The buddies' part of `task_hot()`.
    pub fn cache_hot_buddy(&self, task: TaskId) -> bool {
        self.0.sched.cache_hot_buddy(self.0.sched.tasks[task].se, &self.0.cx)
    }

    /// `update_curr()` of the queue.
    pub fn update_curr(&mut self) {
        self.0.update_curr(self.0.sched.rq[self.1].timeline);
    }
}

/// The steps of EEVDF alone.
impl FairSteps<'_> {
    /// `pick_eevdf()`, the next buddy included: the task that it would pick now.
    pub fn pick_eevdf(&self) -> Option<TaskId> {
        let se = self.0.sched.pick_next_entity(
            self.0.sched.rq[self.1].timeline,
            true,
            &mut (),
            &self.0.cx,
        );
        se.map(|se| self.0.sched.se[se].task)
    }

    /// Takes the first step of `dequeue_task()`: some forms measure the lag there, before it is
    /// known whether the dequeue will be delayed.
    pub fn begin_dequeue(&mut self, task: TaskId) {
        self.0.sched.before_delaying(
            CfsRqId::root(self.1),
            self.0.sched.tasks[task].se,
            &self.0.cx,
        );
    }

    /// `entity_eligible()`.
    pub fn eligible(&self, task: TaskId) -> bool {
        self.0.sched.entity_eligible(self.0.sched.rq[self.1].timeline, self.0.sched.tasks[task].se)
    }

    /// `reweight_eevdf()`: another weight in the timeline, as groups above might leave it.
    pub fn reweight_in_timeline(&mut self, task: TaskId, weight: u64) {
        let (se, timeline) = (self.0.sched.tasks[task].se, self.0.sched.rq[self.1].timeline);
        let queued = self.0.sched.se[se].on_rq;
        self.0.sched.reweight_in_timeline(timeline, se, weight, queued, &self.0.cx);
    }

    /// `reweight_entity()`, as changes of a group's weight use it.
    pub fn reweight_entity(&mut self, task: TaskId, weight: u64) {
        self.0.cx.this_cpu = self.1;
        self.0.reweight_entity(self.0.sched.tasks[task].se, weight);
    }

    /// Gives an entity other virtual times where it is, queued or not. No function of the kernel: it takes
    /// over what a recording says.
    pub fn adopt(&mut self, task: TaskId, vruntime: u64, deadline: u64, vlag: i64) {
        let (se, root) = (self.0.sched.tasks[task].se, self.0.sched.rq[self.1].timeline);
        let in_timeline = self.0.sched.se[se].on_rq && self.0.sched.cfs[root].curr != Some(se);
        if in_timeline {
            self.0.sched.timeline_remove(root, se);
        }
        let entity = &mut self.0.sched.se[se];
        (entity.vruntime, entity.deadline, entity.vlag) = (vruntime, deadline, vlag);
        if in_timeline {
            self.0.sched.timeline_insert(root, se);
        }
    }
}

/// The steps of CFS alone.
impl FairSteps<'_> {
    /// `task_fork_fair()`: `child`, never queued yet, has been made by the running task. It is enqueued
    /// with flags 0 (`ENQUEUE_INITIAL` means nothing to CFS).
    pub fn fork(&mut self, child: TaskId) {
        self.0.cx.this_cpu = self.1;
        self.0.task_fork_cfs(self.0.sched.tasks[child].se);
    }

    /// `migrate_task_rq_fair()`, the virtual part: a sleeping task is woken on another CPU. A queued one
    /// that moves is dequeued (`on_rq` = `Migrating`) and enqueued with `ENQUEUE_MIGRATED` instead.
    pub fn migrate_sleeper(&mut self, task: TaskId) {
        self.0.sched.sleeper_migrates(self.0.sched.tasks[task].se, &self.0.cx);
    }

    /// `pick_next_entity()` with the running entity, if it is queued: the task that it would pick
    /// now.
    pub fn pick_next_entity(&self) -> Option<TaskId> {
        self.0.sched.pick_cfs(CfsRqId::root(self.1), &mut ()).map(|se| self.0.sched.se[se].task)
    }

    /// `wakeup_preempt_entity()`: −1, 0 or 1.
    pub fn wakeup_preempt_entity(&self, curr: TaskId, task: TaskId) -> i32 {
        self.0.sched.wakeup_preempt_entity(self.0.sched.tasks[curr].se, self.0.sched.tasks[task].se)
    }

    /// `sched_slice()`, nanoseconds.
    pub fn sched_slice(&self, task: TaskId) -> u64 {
        self.0.sched.sched_slice(CfsRqId::root(self.1), self.0.sched.tasks[task].se, &self.0.cx)
    }

    /// `place_entity()`; `initial`: as after a fork.
    pub fn place(&mut self, task: TaskId, initial: bool) {
        self.0.sched.place_by_vruntime(
            CfsRqId::root(self.1),
            self.0.sched.tasks[task].se,
            initial,
            &self.0.cx,
        );
    }

    /// `check_preempt_tick()` of the running task, `update_curr()` before it included, PELT not.
    pub fn check_preempt_tick(&mut self, curr: TaskId) {
        let se = self.0.sched.tasks[curr].se;
        self.update_curr();
        self.0.sched.check_preempt_tick(
            CfsRqId::root(self.1),
            se,
            &mut self.0.cpuidle,
            &mut self.0.cx,
        );
    }

    /// `update_min_vruntime()`.
    pub fn update_min_vruntime(&mut self) {
        self.0.sched.update_min_vruntime(CfsRqId::root(self.1));
    }
}
