//! Single steps of the fair class, for the differential test against the kernel's own C.
//!
//! The twin enters the kernel through its entries, where a wakeup is also CPU selection, PELT and
//! costs. The test (`conformance/`, L0 `eevdf`) compares one step of the fair class at a time, on one
//! CPU; this is the narrow door for it. Nothing else uses it, and it decides nothing: each function
//! passes on to the one it names.

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

    /// `yield_task_fair()`.
    pub fn yield_task(&mut self) {
        self.0.yield_task_fair(Self::CPU);
    }

    /// `reweight_task_fair()` of a task that is off the queue.
    pub fn reweight(&mut self, task: TaskId, load: LoadWeight) {
        let se = self.0.tasks[task].se;
        self.0.reweight_task(se, load);
    }

    /// `pick_eevdf()`: whom it would pick now.
    pub fn pick_eevdf(&self) -> Option<TaskId> {
        let se = self.0.pick_eevdf(CfsRqId::root(Self::CPU));
        se.map(|se| self.0.se[se].task)
    }

    /// `entity_eligible()`.
    pub fn eligible(&self, task: TaskId) -> bool {
        self.0.entity_eligible(CfsRqId::root(Self::CPU), self.0.tasks[task].se)
    }

    /// `resched_curr()`.
    pub fn resched_curr(&mut self) {
        self.0.resched_curr(Self::CPU);
    }
}
