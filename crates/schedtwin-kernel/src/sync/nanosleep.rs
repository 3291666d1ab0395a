// SPDX-License-Identifier: GPL-2.0-or-later
//! `clock_nanosleep`: sleeping on an hrtimer, with the task's timer slack.
//!
//! The slack belongs to the sleep: also one that should have ended already lasts until the slack is over, or
//! until some other timer's interrupt comes. Since 7.3 the timer of a sleep that should have ended is not armed if it would be the CPU's
//! next event, and the task goes on.
//!
//! Kernel: 6.12.95 and 7.3.4 kernel/time/hrtimer.c `hrtimer_nanosleep`, `do_nanosleep`, `hrtimer_check_user_timer`.
//! Differences: a timer that is overdue, slack included, does not let the task sleep; its interrupt, which
//! Linux takes before it looks, costs its time here, too.

use crate::Kernel;
use crate::config::ExpiredSleep;
use crate::sched::Class;
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{Ns, Outcome, TaskId, TaskState};

impl Kernel {
    /// The caller sleeps until `until`, or as long as its slack allows after that.
    pub(crate) fn nanosleep_until(&mut self, task: TaskId, until: Ns) {
        self.sched.set_outcome(task, Outcome::Done);
        // Real-time tasks have no slack.
        let slack = if matches!(self.sched.task(task).class, Class::Fair | Class::Ext) {
            self.cx.config.timer_slack
        } else {
            0
        };
        let expires = until.saturating_add(slack);
        let (cpu, now) = (self.cx.this_cpu, self.cx.local_clock());
        let refused = match self.cx.config.expired_sleep {
            ExpiredSleep::Armed => false,
            ExpiredSleep::Refused => until <= now && expires < self.time.base(cpu).next_event(),
        };
        if refused {
            return;
        }
        if expires <= now {
            let costs = &self.cx.platform.device_tree.path_costs;
            let cost = costs.interrupt + costs.hrtimer;
            self.sched.charge(cost, &mut self.cx);
            return;
        }
        self.time.hrtimer_start(cpu, until, expires, TimerKind::Sleeper(task), &mut self.cx);
        self.sched.set_sleep_timer(task, Some(cpu));
        self.sched.set_task_state(task, TaskState::Interruptible);
        self.schedule(false);
    }
}
