//! `clock_nanosleep`: sleeping on an hrtimer, with the task's timer slack.
//!
//! The slack belongs to the sleep: also one that should have ended already lasts until the slack is over, or
//! until some other timer's interrupt comes.
//!
//! Kernel: 6.12.95 kernel/time/hrtimer.c `hrtimer_nanosleep`, `do_nanosleep`.
//! Differences: a timer that is overdue, slack included, does not let the task sleep; its interrupt, which
//! Linux takes before it looks, costs its time here, too.

use crate::Kernel;
use crate::sched::Class;
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{Ns, Outcome, TaskId, TaskState};

impl Kernel {
    /// The caller sleeps until `until`, or as long as its slack allows after that.
    pub(crate) fn nanosleep_until(&mut self, task: TaskId, until: Ns) {
        self.tasks[task].outcome = Outcome::Done;
        // Real-time tasks have no slack.
        let slack = if self.tasks[task].class == Class::Fair { self.config.timer_slack } else { 0 };
        let expires = until.saturating_add(slack);
        if expires <= self.local_clock() {
            let costs = &self.device_tree.path_costs;
            let cost = costs.interrupt + costs.hrtimer;
            self.charge(cost);
            return;
        }
        let cpu = self.this_cpu;
        self.hrtimer_start(cpu, until, expires, TimerKind::Sleeper(task));
        self.tasks[task].sleep_timer_on = Some(cpu);
        self.tasks[task].state = TaskState::Interruptible;
        self.schedule(false);
    }
}
