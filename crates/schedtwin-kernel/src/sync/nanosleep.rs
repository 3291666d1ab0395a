//! `clock_nanosleep`: sleeping on an hrtimer, with the task's timer slack.
//!
//! Kernel: 6.12.95 kernel/time/hrtimer.c `hrtimer_nanosleep`, `schedule_hrtimeout`.

use crate::sched::Class;
use crate::time::hrtimer::TimerKind;
use crate::Kernel;
use schedtwin_types::{Ns, Outcome, TaskId, TaskState};

impl Kernel {
    /// The caller sleeps until `until`; a time that has passed does not let it sleep.
    pub(crate) fn nanosleep_until(&mut self, task: TaskId, until: Ns) {
        self.tasks[task].outcome = Outcome::Done;
        if until <= self.local_clock() {
            return;
        }
        let cpu = self.this_cpu;
        let slack = if self.tasks[task].class == Class::Fair { self.config.timer_slack } else { 0 };
        self.hrtimer_start(cpu, until, until.saturating_add(slack), TimerKind::Sleeper(task));
        self.tasks[task].sleep_timer_on = Some(cpu);
        self.tasks[task].state = TaskState::Interruptible;
        self.schedule(false);
    }
}
