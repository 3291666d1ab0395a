//! The stop class: one thread per CPU that nothing preempts, for work that needs the CPU to itself.
//!
//! Kernel: 6.12.95 kernel/sched/stop_task.c, kernel/stop_machine.c.

use crate::sched::OnRq;
use crate::Kernel;
use schedtwin_types::{CpuId, TaskId, TaskState};

/// Work of a stopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWork {
    /// `active_load_balance_cpu_stop`: push the task that was running to `rq.push_cpu`.
    ActiveBalance,
    /// `migration_cpu_stop`: move a task whose affinity has changed.
    Migrate {
        /// Which task.
        task: TaskId,
    },
}

impl Kernel {
    /// `stop_one_cpu_nowait()`: queues work for the stopper of `cpu` and wakes it.
    pub fn stop_one_cpu_nowait(&mut self, cpu: CpuId, work: StopWork) {
        if self.rq[cpu].stop_work.is_some() {
            // One of the two kinds waits already; active balance is asked for again, an affinity
            // change is looked at when the task wakes next.
            return;
        }
        self.rq[cpu].stop_work = Some(work);
        let stopper = self.rq[cpu].stopper;
        self.update_rq_clock(cpu);
        self.tasks[stopper].state = TaskState::Running;
        self.enqueue_task_stop(cpu);
        self.tasks[stopper].on_rq = OnRq::Queued;
        self.wakeup_preempt(cpu, stopper, 0);
    }

    /// `stop_one_cpu()` by a task about itself: it runs again after the stopper has moved it.
    pub(crate) fn stop_one_cpu(&mut self, cpu: CpuId, work: StopWork) {
        self.stop_one_cpu_nowait(cpu, work);
    }

    /// The stopper of the executing CPU has been switched to and has paid for it: it works and sleeps.
    pub(crate) fn cpu_stopper_thread(&mut self) {
        let cpu = self.this_cpu;
        let cost = self.device_tree.path_costs.migrate_task;
        self.charge(cost);
        match self.rq[cpu].stop_work.take() {
            Some(StopWork::ActiveBalance) => self.active_load_balance_cpu_stop(cpu),
            Some(StopWork::Migrate { task }) => self.migration_cpu_stop(cpu, task),
            None => {}
        }
        let stopper = self.rq[cpu].stopper;
        self.tasks[stopper].state = TaskState::Interruptible;
        self.schedule(false);
    }

    /// `migration_cpu_stop()`: `__migrate_task()` to an allowed CPU.
    fn migration_cpu_stop(&mut self, cpu: CpuId, task: TaskId) {
        let t = &self.tasks[task];
        if t.cpu != cpu || t.cpus_mask.contains(cpu) || t.on_rq != OnRq::Queued {
            return;
        }
        self.update_rq_clock(cpu);
        // cpumask_any_and_distribute(): the first one serves.
        let dst = self.tasks[task].cpus_mask.lowest().expect("a task is allowed somewhere");
        self.deactivate_task(cpu, task, crate::sched::core::DEQUEUE_NOCLOCK);
        self.set_task_cpu(task, dst);
        self.update_rq_clock(dst);
        self.activate_task(dst, task, crate::sched::core::ENQUEUE_NOCLOCK);
        self.wakeup_preempt(dst, task, 0);
    }

    pub(crate) fn enqueue_task_stop(&mut self, cpu: CpuId) {
        self.rq[cpu].stop_queued = true;
        self.add_nr_running(cpu, 1);
    }

    pub(crate) fn dequeue_task_stop(&mut self, cpu: CpuId) -> bool {
        self.rq[cpu].stop_queued = false;
        self.sub_nr_running(cpu, 1);
        true
    }

    pub(crate) fn set_next_task_stop(&mut self, cpu: CpuId) {
        let rq = &mut self.rq[cpu];
        rq.stop_exec_start = rq.clock_task;
    }


}
