// SPDX-License-Identifier: GPL-2.0-or-later
//! The world of both fair classes: one CPU and its tasks, and the steps that the core takes with them.

use crate::l0::mutate::Sources;
use schedtwin_kernel::Kernel;
use schedtwin_kernel::device_tree::DeviceTree;
use schedtwin_kernel::sched::fair::conformance::FairSteps;
use schedtwin_kernel::sched::{LoadWeight, OnRq, SchedEntity};
use schedtwin_types::{CpuId, Policy, TaskId};

/// The only CPU.
pub const CPU: CpuId = CpuId(0);

/// The sources of both classes: their modules use each other.
pub const SOURCES: Sources =
    Sources { modules: &["fair", "eevdf", "cfs", "rational"], kernel: None };

/// A machine of one CPU.
pub fn one_cpu(tasks: usize) -> DeviceTree {
    let cpu = DeviceTree::of_domains(&[(1, 1024, &[(1_000_000, 1000)])]);
    DeviceTree { nr_threads_hint: tasks, ..cpu }
}

/// One CPU and its tasks.
pub struct World {
    /// The kernel.
    pub kernel: Kernel,
    /// By number.
    pub tasks: Vec<TaskId>,
    /// Generator only: how many operations a sequence has, and tasks to come.
    pub length: usize,
    /// Generator only: tasks to come.
    pub planned: u64,
    /// Generator only: the kind of sequence.
    pub mix: u64,
    /// Generator only: tasks that have never been queued here.
    pub fresh: u64,
    /// Generator only: tasks that are away, on another CPU.
    pub away: u64,
}

impl World {
    /// An empty world.
    pub fn new(kernel: Kernel) -> World {
        World { kernel, tasks: Vec::new(), length: 0, planned: 0, mix: 0, fresh: 0, away: 0 }
    }

    /// Returns a task's entity.
    pub fn entity(&self, task: TaskId) -> &SchedEntity {
        &self.kernel.inside().se[self.kernel.inside().tasks[task].se]
    }

    /// Returns a task's entity, to be set up.
    pub fn entity_mut(&mut self, task: TaskId) -> &mut SchedEntity {
        let inside = self.kernel.inside_mut();
        &mut inside.se[inside.tasks[task].se]
    }

    /// Returns the steps of the class.
    pub fn steps(&mut self) -> FairSteps<'_> {
        FairSteps(&mut self.kernel, CPU)
    }

    /// Returns the task that runs.
    pub fn curr(&self) -> Option<TaskId> {
        Some(self.kernel.inside().rq[CPU].curr).filter(|curr| !curr.is_idle())
    }

    /// Returns a task's number: 1 and up; 0 is the idle task.
    pub fn number_of(&self, task: Option<TaskId>) -> u64 {
        let position = task.and_then(|task| self.tasks.iter().position(|&t| t == task));
        position.map_or(0, |number| number as u64 + 1)
    }

    /// Returns a task by its number, from 0 on.
    pub fn task(&self, number: usize) -> TaskId {
        self.tasks[number]
    }

    /// Whether the CPU is asked to schedule.
    pub fn need_resched(&self) -> bool {
        self.kernel.inside().rq[CPU].need_resched
    }

    /// Returns a task's state as the oracle numbers it: 0 blocked, 1 queued, 2 migrating.
    pub fn on_rq(&self, task: TaskId) -> u64 {
        match self.kernel.inside().tasks[task].on_rq {
            OnRq::No => 0,
            OnRq::Queued => 1,
            OnRq::Migrating => 2,
        }
    }

    /// Whether a task is queued.
    pub fn is_queued(&self, task: TaskId) -> bool {
        self.kernel.inside().tasks[task].on_rq == OnRq::Queued
    }

    /// Tests preemption by a task that has been woken, or asks an idle CPU to schedule.
    pub fn wakeup_preempt(&mut self, task: TaskId, wake_flags: u32) {
        // The core asks the class only if a task of the same class runs.
        if self.curr().is_some() {
            self.steps().wakeup_preempt_flags(task, wake_flags);
        } else {
            self.steps().resched_curr();
        }
    }

    /// Picks the next task, once the running one has been blocked or stays queued, and switches to it.
    pub fn switch(&mut self) -> Option<TaskId> {
        let prev = self.curr();
        let next = self.steps().pick();
        self.kernel.inside_mut().rq[CPU].need_resched = false;
        if next != prev {
            if let Some(prev) = prev {
                self.steps().put_prev(prev);
            }
            if let Some(next) = next {
                self.steps().set_next(next, true);
            }
        }
        self.kernel.inside_mut().rq[CPU].curr = next.unwrap_or(TaskId::IDLE);
        next
    }

    /// Changes what decides about a task, as `sched_change` does: it leaves the queue with the flag
    /// `leaves`, is changed, and comes back with `returns`.
    pub fn change(
        &mut self,
        task: TaskId,
        (leaves, returns): (u32, u32),
        (load, policy): (LoadWeight, Policy),
        also: impl FnOnce(&mut World),
    ) {
        let (queued, running) = (self.is_queued(task), self.curr() == Some(task));
        if queued {
            self.steps().dequeue(task, leaves);
        }
        if running {
            self.steps().put_prev(task);
        }
        self.kernel.inside_mut().tasks[task].policy = policy;
        self.steps().reweight(task, load);
        also(self);
        if queued {
            self.steps().enqueue(task, returns);
        }
        if running {
            self.steps().set_next(task, false);
        }
    }
}
