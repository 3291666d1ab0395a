//! Whether who has been queued preempts who runs.
//!
//! **Decides** whether a CPU is asked to reschedule, by class; within the fair class that decides itself.
//!
//! **Idea.** A higher class preempts a lower one outright, and equal ones ask their class. 7.3 compares with the class that was
//! picked last *or has been raised since* (`next_class`): a fair task that is queued while an RT task waits for the switch is
//! not looked at any more, so it neither dequeues who was delayed nor shortens the running task's protection.
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/sched/core.c `wakeup_preempt`.

use crate::Kernel;
use crate::sched::{Class, OnRq};
use schedtwin_types::{CpuId, TaskId};

impl Kernel {
    /// `wakeup_preempt()`.
    pub fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) {
        let curr = self.rq[cpu].curr;
        let class = self.tasks[task].class;
        let curr_class = self.tasks[curr].class;
        let raised = self.rq[cpu].next_class;
        if self.compares_next_class() && class < raised {
            // What is pending is above it.
        } else if class == curr_class {
            match class {
                Class::Fair => self.check_preempt_wakeup_fair(cpu, task, wake_flags),
                Class::Rt => self.wakeup_preempt_rt(cpu, task),
                Class::Deadline => self.wakeup_preempt_dl(cpu, task),
                _ => {}
            }
        } else if class > curr_class {
            self.resched_curr(cpu);
        }
        self.rq[cpu].next_class = raised.max(class);
        // The switch that follows is dated to this clock reading.
        if self.tasks[curr].on_rq == OnRq::Queued && self.rq[cpu].need_resched {
            self.rq[cpu].skip_clock_update = true;
        }
        if self.rq[cpu].cpufreq_callback != 0 {
            self.cpufreq_callback(cpu);
        }
    }
}
