// SPDX-License-Identifier: GPL-2.0-or-later
//! Throttling a whole queue: up to 6.17 the group's entity leaves the queue above, with all tasks below it.
//!
//! **Idea.** What leaves is not a task but a branch. So the numbers of tasks that the queues above keep lose all tasks of the
//! branch at once, and get them back when its entity returns. A walk upwards ends at a queue that is throttled itself: nothing
//! above that counts what is below.
//!
//! ```text
//!   root          h_nr_queued 3 -> 1          a walk that throttles B takes 2 from A and from the root;
//!    +- task                                  if A were throttled, it would end there
//!    +- A         h_nr_queued 2 -> 0
//!        +- B     h_nr_queued 2     throttled
//!            +- task, task
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/fair.c `throttle_cfs_rq`, `unthrottle_cfs_rq`; the order of steps is 6.1.192's, too.

use crate::Kernel;
use crate::config::CfsThrottledTime;
use crate::sched::CfsRqId;
use crate::sched::core::{DEQUEUE_DELAYED, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_WAKEUP};
use crate::sched::fair::load_avg::UPDATE_TG;

impl Kernel {
    /// The walk of `throttle_cfs_rq()`: the entity of a queue leaves, and its tasks are no longer counted above.
    pub(super) fn dequeue_throttled_queue(&mut self, cfs_rq: CfsRqId) {
        let cfs = &self.sched.cfs[cfs_rq];
        let (cpu, group) = (cfs.cpu, cfs.group);
        let (queued, delayed) = (cfs.h_nr_queued, cfs.h_nr_delayed);
        let (runnable, mut idle) = (cfs.h_nr_runnable, cfs.h_nr_idle);
        let mut level = Some(self.sched.groups[group].se[cpu.index()]);
        let mut parent_stays = false;
        while let Some(se) = level
            && self.sched.se[se].on_rq
        {
            let above = self.sched.se[se].cfs_rq;
            if parent_stays {
                self.update_load_avg(above, se, 0);
                self.sched.se_update_runnable(se);
            } else {
                // It leaves at once, eligible or not.
                let delayed = if self.sched.se[se].sched_delayed { DEQUEUE_DELAYED } else { 0 };
                self.dequeue_entity(above, se, DEQUEUE_SLEEP | DEQUEUE_SPECIAL | delayed);
            }
            if self.sched.se_is_idle(se) {
                idle = queued;
            }
            let cfs = &mut self.sched.cfs[above];
            cfs.h_nr_queued -= queued;
            cfs.h_nr_runnable -= runnable;
            cfs.h_nr_delayed -= delayed;
            cfs.h_nr_idle -= idle;
            parent_stays |= cfs.load_weight != 0;
            level = self.sched.se[se].parent;
        }
        if level.is_none() {
            self.sched.sub_nr_running(cpu, queued);
        }
        let clock = self.sched.rq[cpu].clock;
        let always = self.cx.config.cfs_throttled_time == CfsThrottledTime::Whole;
        let cfs = &mut self.sched.cfs[cfs_rq];
        cfs.bandwidth.dequeued = true;
        cfs.bandwidth.throttled_clock = (always || cfs.nr_queued != 0).then_some(clock);
    }

    /// The walk of `unthrottle_cfs_rq()`: what is on the queue counts again above, up to the next one that is throttled.
    pub(super) fn enqueue_unthrottled_queue(&mut self, cfs_rq: CfsRqId) {
        let cpu = self.sched.cpu_of(cfs_rq);
        let root = CfsRqId::root(cpu);
        let queued_before = self.sched.cfs[root].h_nr_queued;
        let cfs = &self.sched.cfs[cfs_rq];
        let (queued, delayed) = (cfs.h_nr_queued, cfs.h_nr_delayed);
        let (runnable, mut idle) = (cfs.h_nr_runnable, cfs.h_nr_idle);
        let mut level = Some(self.sched.groups[cfs.group].se[cpu.index()]);
        let mut parent_is_queued = false;
        while let Some(se) = level {
            let above = self.sched.se[se].cfs_rq;
            parent_is_queued |= self.sched.se[se].on_rq && !self.sched.se[se].sched_delayed;
            if parent_is_queued {
                self.update_load_avg(above, se, UPDATE_TG);
                self.sched.se_update_runnable(se);
            } else {
                if self.sched.se[se].sched_delayed {
                    self.dequeue_entity(above, se, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
                }
                self.enqueue_entity(above, se, ENQUEUE_WAKEUP);
            }
            if self.sched.se_is_idle(se) {
                idle = queued;
            }
            let cfs = &mut self.sched.cfs[above];
            cfs.h_nr_queued += queued;
            cfs.h_nr_runnable += runnable;
            cfs.h_nr_delayed += delayed;
            cfs.h_nr_idle += idle;
            if cfs.bandwidth.dequeued {
                return;
            }
            level = self.sched.se[se].parent;
        }
        if queued_before == 0 && self.sched.cfs[root].h_nr_queued != 0 {
            self.fair_server_start(cpu);
        }
        self.sched.add_nr_running(cpu, queued);
    }
}
