//! Single steps of the fair class, for the differential test against the kernel's own C.
//!
//! The twin enters the kernel through its entries, where a wakeup is also CPU selection, PELT and
//! costs. The test (`conformance/`, L0 `eevdf`) compares one step of the fair class at a time, on one
//! CPU; this is the narrow door for it. Nothing else uses it, and it decides nothing: each function
//! passes on to the one it names. Both disciplines use the same steps; what only one of them has is in an
//! `impl` of its own.

use crate::Kernel;
use crate::sched::{CfsRqId, LoadWeight};
use schedtwin_types::{CpuId, TaskId};

/// The fair class of CPU 0.
pub struct FairSteps<'a>(pub &'a mut Kernel);

impl FairSteps<'_> {
    const CPU: CpuId = CpuId(0);

    /// `enqueue_task_fair()`.
    pub fn enqueue(&mut self, task: TaskId, flags: u32) {
        self.0.enqueue_task_fair(Self::CPU, task, flags);
    }

    /// `dequeue_task_fair()`; `false`: it stays, delayed.
    pub fn dequeue(&mut self, task: TaskId, flags: u32) -> bool {
        self.0.dequeue_task_fair(Self::CPU, task, flags)
    }

    /// `pick_task_fair()`.
    pub fn pick(&mut self) -> Option<TaskId> {
        self.0.pick_task_fair(Self::CPU)
    }

    /// `put_prev_task_fair()`.
    pub fn put_prev(&mut self, task: TaskId) {
        self.0.put_prev_task_fair(Self::CPU, task);
    }

    /// `set_next_task_fair()`.
    pub fn set_next(&mut self, task: TaskId, first: bool) {
        self.0.set_next_task_fair(Self::CPU, task, first);
    }

    /// `task_tick_fair()`.
    pub fn tick(&mut self, task: TaskId) {
        self.0.task_tick_fair(Self::CPU, task);
    }

    /// `check_preempt_wakeup_fair()`.
    pub fn wakeup_preempt(&mut self, task: TaskId) {
        self.0.check_preempt_wakeup_fair(Self::CPU, task, 0);
    }

    /// `check_preempt_wakeup_fair()` with flags of the wakeup (`WF_FORK`).
    pub fn wakeup_preempt_flags(&mut self, task: TaskId, wake_flags: u32) {
        self.0.check_preempt_wakeup_fair(Self::CPU, task, wake_flags);
    }

    /// `yield_task_fair()`.
    pub fn yield_task(&mut self) {
        self.0.yield_task_fair(Self::CPU);
    }

    /// `reweight_task_fair()` of a task that is off the queue.
    pub fn reweight(&mut self, task: TaskId, load: LoadWeight) {
        let se = self.0.tasks[task].se;
        self.0.reweight_task(se, load);
    }

    /// `resched_curr()`.
    pub fn resched_curr(&mut self) {
        self.0.resched_curr(Self::CPU);
    }

    /// The buddies' part of `task_hot()`.
    pub fn cache_hot_buddy(&self, task: TaskId) -> bool {
        self.0.cache_hot_buddy(self.0.tasks[task].se)
    }

    /// `update_curr()` of the queue.
    pub fn update_curr(&mut self) {
        self.0.update_curr(CfsRqId::root(Self::CPU));
    }
}

/// What only EEVDF has.
impl FairSteps<'_> {
    /// `pick_eevdf()`: whom it would pick now.
    pub fn pick_eevdf(&self) -> Option<TaskId> {
        let se = self.0.pick_eevdf(CfsRqId::root(Self::CPU));
        se.map(|se| self.0.se[se].task)
    }

    /// `entity_eligible()`.
    pub fn eligible(&self, task: TaskId) -> bool {
        self.0.entity_eligible(CfsRqId::root(Self::CPU), self.0.tasks[task].se)
    }
}

/// What only CFS has.
impl FairSteps<'_> {
    /// `task_fork_fair()`: `child`, never queued yet, has been made by the running task. It is enqueued
    /// with flags 0 (`ENQUEUE_INITIAL` means nothing to CFS).
    pub fn fork(&mut self, child: TaskId) {
        self.0.this_cpu = Self::CPU;
        self.0.task_fork_cfs(self.0.tasks[child].se);
    }

    /// `migrate_task_rq_fair()`, the virtual part: a sleeping task is woken on another CPU. A queued one
    /// that moves is dequeued (`on_rq` = `Migrating`) and enqueued with `ENQUEUE_MIGRATED` instead.
    pub fn migrate_sleeper(&mut self, task: TaskId) {
        self.0.sleeper_migrates(self.0.tasks[task].se);
    }

    /// `pick_next_entity()` with the running entity, if it is queued: whom it would pick now.
    pub fn pick_next_entity(&self) -> Option<TaskId> {
        self.0.pick_cfs(CfsRqId::root(Self::CPU)).map(|se| self.0.se[se].task)
    }

    /// `wakeup_preempt_entity()`: −1, 0 or 1.
    pub fn wakeup_preempt_entity(&self, curr: TaskId, task: TaskId) -> i32 {
        self.0.wakeup_preempt_entity(self.0.tasks[curr].se, self.0.tasks[task].se)
    }

    /// `sched_slice()`, nanoseconds.
    pub fn sched_slice(&self, task: TaskId) -> u64 {
        self.0.sched_slice(CfsRqId::root(Self::CPU), self.0.tasks[task].se)
    }

    /// `place_entity()`; `initial`: as after a fork.
    pub fn place(&mut self, task: TaskId, initial: bool) {
        self.0.place_by_vruntime(CfsRqId::root(Self::CPU), self.0.tasks[task].se, initial);
    }

    /// `check_preempt_tick()` of the running task, `update_curr()` before it included, PELT not.
    pub fn check_preempt_tick(&mut self, curr: TaskId) {
        let se = self.0.tasks[curr].se;
        self.update_curr();
        self.0.check_preempt_tick(CfsRqId::root(Self::CPU), se);
    }

    /// `update_min_vruntime()`.
    pub fn update_min_vruntime(&mut self) {
        self.0.update_min_vruntime(CfsRqId::root(Self::CPU));
    }
}
