// SPDX-License-Identifier: GPL-2.0-or-later
//! The stop class: one thread per CPU that nothing preempts, for work that needs the CPU to itself.
//!
//! Works queue up for it, first come first served, and it does them all before it sleeps. At most two can
//! wait: one active balance (`rq.active_balance` keeps a second from being asked for) and one affinity
//! change or `execve` (its caller does not run before it is done).
//!
//! Kernel: 6.12.95 kernel/sched/stop_task.c, kernel/stop_machine.c, kernel/sched/core.c `migration_cpu_stop`.
//! Differences: the stopper's wakeup is not stated as a fact and costs nothing of its own.

use crate::sched::OnRq;
use crate::{Kernel, Scheduler};
use schedtwin_types::{CpuId, TaskId, TaskState};

/// Work of a stopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWork {
    /// `active_load_balance_cpu_stop`: push the task that was running to `rq.push_cpu`.
    ActiveBalance {
        /// Only a task that prefers the last-level cache there (`active_load_balance_llc_cpu_stop`).
        llc: bool,
    },
    /// `softlockup_fn`: only shows that the stopper runs.
    Softlockup,
    /// `migration_cpu_stop`: move a task whose affinity has changed, or that executes another program.
    Migrate {
        /// Which task.
        task: TaskId,
        /// Where to.
        dest_cpu: CpuId,
        /// `set_affinity_pending`: only off a CPU that it may not use.
        pending: bool,
    },
}

/// The works that wait for a stopper (`cpu_stopper.works`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopWorks([Option<StopWork>; 3]);

impl StopWorks {
    /// Whether none waits.
    pub fn is_none(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether one waits.
    pub fn is_some(&self) -> bool {
        !self.is_none()
    }

    fn push(&mut self, work: StopWork) {
        let free = self.0.iter_mut().find(|slot| slot.is_none());
        *free.expect("one of each kind at most") = Some(work);
    }

    pub(crate) fn pop(&mut self) -> Option<StopWork> {
        let first = self.0[0].take();
        self.0.rotate_left(1);
        first
    }
}

impl Kernel {
    /// `stop_one_cpu_nowait()`: queues work for the stopper of `cpu` and wakes it.
    pub fn stop_one_cpu_nowait(&mut self, cpu: CpuId, work: StopWork) {
        self.sched.rq[cpu].stop_work.push(work);
        if self.sched.rq[cpu].stop_queued {
            return;
        }
        let stopper = self.sched.rq[cpu].stopper;
        self.sched.update_rq_clock(cpu, &self.cx);
        self.sched.enqueue_task_stop(cpu);
        self.sched.tasks[stopper].on_rq = OnRq::Queued;
        self.wakeup_preempt(cpu, stopper, 0);
        self.sched.tasks[stopper].state = TaskState::Running;
        self.sched.idle_ends_by_wakeup(cpu, &self.cx);
    }

    /// The same for a work that does nothing beyond running there (`softlockup_fn`), unless the stopper has enough to do.
    pub(crate) fn stop_one_cpu_nowait_if_free(&mut self, cpu: CpuId) {
        if self.sched.rq[cpu].stop_work.is_none() && !self.sched.rq[cpu].stop_queued {
            self.stop_one_cpu_nowait(cpu, StopWork::Softlockup);
        }
    }

    /// The stopper of the executing CPU has been switched to and has paid for it: it works and sleeps.
    pub(crate) fn cpu_stopper_thread(&mut self) {
        let cpu = self.cx.this_cpu;
        // What a work asks of this CPU's own stopper is done in the same turn; works do not ask that.
        while let Some(work) = self.sched.rq[cpu].stop_work.pop() {
            let cost = self.cx.platform.device_tree.path_costs.migrate_task;
            self.sched.charge(cost, &mut self.cx);
            match work {
                StopWork::Softlockup => {}
                StopWork::ActiveBalance { llc } => self.active_load_balance_cpu_stop(cpu, llc),
                StopWork::Migrate { task, dest_cpu, pending } => {
                    self.migration_cpu_stop(cpu, task, dest_cpu, pending)
                }
            }
        }
        let stopper = self.sched.rq[cpu].stopper;
        self.sched.tasks[stopper].state = TaskState::Interruptible;
        self.schedule(false);
    }

    /// `migration_cpu_stop()`, `move_queued_task()`.
    fn migration_cpu_stop(&mut self, cpu: CpuId, task: TaskId, dest_cpu: CpuId, pending: bool) {
        let t = &self.sched.tasks[task];
        let stays = pending && t.cpus_mask.contains(cpu);
        if t.cpu != cpu || stays || !t.cpus_mask.contains(dest_cpu) || t.on_rq != OnRq::Queued {
            return;
        }
        self.sched.update_rq_clock(cpu, &self.cx);
        self.deactivate_task(cpu, task, crate::sched::core::DEQUEUE_NOCLOCK);
        self.set_task_cpu(task, dest_cpu);
        self.activate_task(dest_cpu, task, 0);
        self.wakeup_preempt(dest_cpu, task, 0);
    }
}

impl Scheduler {
    #[inline(never)]
    pub(crate) fn enqueue_task_stop(&mut self, cpu: CpuId) {
        self.rq[cpu].stop_queued = true;
        self.add_nr_running(cpu, 1);
    }

    #[inline(never)]
    pub(crate) fn dequeue_task_stop(&mut self, cpu: CpuId) -> bool {
        self.rq[cpu].stop_queued = false;
        self.sub_nr_running(cpu, 1);
        true
    }
}
