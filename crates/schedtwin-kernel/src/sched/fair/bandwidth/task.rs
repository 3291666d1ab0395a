// SPDX-License-Identifier: GPL-2.0-or-later
//! Throttling task by task: since 6.18 a task leaves a throttled queue on its way back to user space.
//!
//! **Decides** when a task of a group without runtime stops, and when it goes on.
//!
//! **Idea.** A task that is stopped within the kernel keeps its locks from all others. So a throttled queue stays where it is. A
//! task of it that runs gets a *work*, which it does before it goes on in user space: it leaves the queue, and waits in the
//! queue's *limbo list*. In the kernel it goes on running, and the group's debt grows meanwhile.
//!
//! ```text
//!                     no runtime                                             new period
//!   task a  user ────────|──▶ limbo                                             |──▶ queued
//!   task b  in a call ───|───────────── return ──▶ limbo                        |──▶ queued
//!   task c  asleep ······|···· woken, runs, return ──▶ limbo                    |──▶ queued
//!   queue                |throttled                  empty: PELT clock stops    |goes on
//! ```
//!
//! **Who gets the work.** The running task, when a charge finds no runtime (7.3), and each task that is picked through a
//! throttled level. Kernel threads and tasks that exit do not return to user space, and never get it.
//!
//! **In limbo** a task counts as queued (`on_rq`) and keeps its clamps in the CPU's buckets, but it is in no timeline and no sum.
//! Whoever dequeues it there takes it off the list; it stays marked, and where it is queued next, it goes straight to limbo
//! if that queue is throttled, too.
//!
//! Kernel: 6.18 and 7.3.4 kernel/sched/fair.c `throttle_cfs_rq_work`, `task_throttle_setup_work`, `enqueue_throttled_task`,
//! `dequeue_throttled_task`, `tg_unthrottle_up`, `record_throttle_clock`.
//! Differences: `cpu.stat.local` is absent.

use crate::config::CfsThrottle;
use crate::sched::core::{DEQUEUE_SLEEP, DEQUEUE_THROTTLE, ENQUEUE_WAKEUP};
use crate::sched::{CfsRqId, Class, OnRq, TaskKind};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, IpiKind, Mode, TaskId};

impl Context {
    /// Whether tasks leave a throttled queue one by one.
    #[inline(always)]
    pub(in crate::sched::fair) fn throttles_tasks(&self) -> bool {
        self.config.cfs_throttle != CfsThrottle::Queue
    }

    /// Whether a queue is throttled as soon as a charge finds no runtime.
    #[inline(always)]
    pub(super) fn throttles_at_charge(&self) -> bool {
        self.config.cfs_throttle == CfsThrottle::TaskAtCharge
    }
}

impl Kernel {
    /// `task_throttle_setup_work()`: the task looks at its queue before it goes on in user space.
    pub(in crate::sched::fair) fn task_throttle_setup_work(&mut self, task: TaskId) {
        let t = &mut self.sched.tasks[task];
        // The programs of sched_ext's schedulers do not return to user space here.
        if t.throttle_work || t.exiting || t.kind != TaskKind::User {
            return;
        }
        t.throttle_work = true;
        let cpu = t.cpu;
        // kick_process(): it may be in user space.
        if cpu != self.cx.this_cpu && self.sched.rq[cpu].curr == task {
            self.sched.send_ipi(cpu, IpiKind::Reschedule, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// Does the work of the running task, if it has one: it gives way if it has to leave. It is on its way to user space, after
    /// a call or an interrupt.
    #[inline]
    pub(crate) fn do_throttle_work(&mut self, cpu: CpuId, interrupted: bool) {
        let task = self.sched.rq[cpu].curr;
        if std::mem::take(&mut self.sched.tasks[task].throttle_work)
            && self.throttle_cfs_rq_work(cpu, task)
        {
            self.sched.tasks[task].preempted_in_user = interrupted;
            self.schedule(true);
        }
    }

    /// After a switch: a task that was interrupted in user space returns there at once. Whether it has left its queue.
    #[inline(always)]
    pub(crate) fn throttle_work_after_switch(&mut self, cpu: CpuId) -> bool {
        if !self.sched.cfs_bandwidth_used() {
            return false;
        }
        let task = self.sched.rq[cpu].curr;
        let t = &mut self.sched.tasks[task];
        if !std::mem::take(&mut t.preempted_in_user) || !std::mem::take(&mut t.throttle_work) {
            return false;
        }
        let leaves = self.throttle_cfs_rq_work(cpu, task);
        self.sched.tasks[task].preempted_in_user = leaves;
        leaves
    }

    /// Where 7.3's rule is asked for beside groups that nest: levels that two tasks have in common are neither put back nor
    /// set, and a task that comes by them may have to leave none the less.
    #[inline(always)]
    pub(in crate::sched::fair) fn assign_runtime_at_switch(&mut self, next: TaskId) {
        if self.sched.cfs_bandwidth_used() && self.cx.throttles_at_charge() {
            self.assign_runtime_to(next);
        }
    }

    /// `throttle_cfs_rq_work()`: the task leaves its queue if that is throttled. Whether it does.
    #[inline(never)]
    pub(super) fn throttle_cfs_rq_work(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let t = &self.sched.tasks[task];
        let cfs_rq = self.sched.se[t.se].cfs_rq;
        let throttled = self.sched.cfs[cfs_rq].bandwidth.throttle_count != 0;
        if t.exiting || t.class != Class::Fair || !throttled {
            return false;
        }
        debug_assert!(!t.throttled);
        self.sched.update_rq_clock(cpu, &self.cx);
        self.dequeue_task_fair(cpu, task, DEQUEUE_SLEEP | DEQUEUE_THROTTLE);
        self.sched.cfs[cfs_rq].throttled_limbo_list.push(task);
        // Not before: the dequeue would take it for one that is in limbo.
        self.sched.tasks[task].throttled = true;
        self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        true
    }

    /// `enqueue_throttled_task()`: whether a task that was in limbo goes to that of its queue. The running task does not: a class
    /// that installs it expects it in the queue.
    pub(in crate::sched::fair) fn enqueue_throttled_task(&mut self, task: TaskId) -> bool {
        let cfs_rq = self.sched.se[self.sched.tasks[task].se].cfs_rq;
        let runs = self.sched.rq[self.sched.cpu_of(cfs_rq)].curr == task;
        let stays = self.sched.throttled_hierarchy(cfs_rq) && !runs;
        if stays {
            self.sched.cfs[cfs_rq].throttled_limbo_list.push(task);
        } else {
            self.sched.tasks[task].throttled = false;
        }
        stays
    }

    /// `dequeue_throttled_task()`: a task leaves limbo for another queue or class, or blocks.
    pub(in crate::sched::fair) fn dequeue_throttled_task(&mut self, task: TaskId, flags: u32) {
        let t = &mut self.sched.tasks[task];
        let (se, migrates) = (t.se, t.on_rq == OnRq::Migrating);
        let cfs_rq = self.sched.se[se].cfs_rq;
        self.sched.cfs[cfs_rq].throttled_limbo_list.retain(|other| *other != task);
        if flags & DEQUEUE_SLEEP != 0 {
            t.throttled = false;
        } else if migrates {
            self.detach_entity_cfs_rq(se);
        }
    }

    /// The middle of `tg_unthrottle_up()`: tasks come back from limbo, the last one first.
    pub(super) fn unthrottle_tasks(&mut self, cpu: CpuId, cfs_rq: CfsRqId) {
        let mut waiting = std::mem::take(&mut self.sched.cfs[cfs_rq].throttled_limbo_list);
        while let Some(&task) = waiting.last() {
            // The first ones may have used up what there was.
            let again = self.sched.cfs[cfs_rq].bandwidth.throttle_count != 0;
            if again && self.cx.throttles_at_charge() {
                break;
            }
            waiting.pop();
            self.sched.tasks[task].throttled = false;
            self.enqueue_task_fair(cpu, task, ENQUEUE_WAKEUP);
        }
        let limbo = &mut self.sched.cfs[cfs_rq].throttled_limbo_list;
        debug_assert!(limbo.is_empty(), "nobody is throttled by being queued");
        *limbo = waiting;
    }
}

impl Scheduler {
    /// Notes that an interrupt of user mode preempts `task`: when it runs again, it is on its way to user space.
    #[inline(always)]
    pub(crate) fn preempted_in(&mut self, task: TaskId, mode: Mode) {
        if self.cfs_bandwidth_used() && mode == Mode::User {
            self.tasks[task].preempted_in_user = true;
        }
    }

    /// `task_has_throttle_work()`.
    #[inline(always)]
    pub(crate) fn has_throttle_work(&self, task: TaskId) -> bool {
        self.tasks[task].throttle_work
    }

    /// `task_is_throttled()`: the task is in limbo, or was on its way there when it was taken out.
    #[inline(always)]
    pub(in crate::sched::fair) fn task_is_throttled(&self, task: TaskId) -> bool {
        self.cfs_bandwidth_used() && self.tasks[task].throttled
    }

    /// Whether a task that has been queued cannot preempt anybody, because its group is throttled.
    #[inline(always)]
    pub(in crate::sched::fair) fn throttled_wakee(&self, task: TaskId, cx: &Context) -> bool {
        match cx.throttles_tasks() {
            true => self.task_is_throttled(task),
            false => self.throttled_hierarchy(self.se[self.tasks[task].se].cfs_rq),
        }
    }

    /// `throttled_lb_pair()`, `lb_throttled_hierarchy()`: whether a task's group is throttled where it would come from or go to.
    /// A task that has not left its queue may leave the CPU.
    pub(in crate::sched::fair) fn throttled_lb(
        &self,
        task: TaskId,
        [src, dst]: [CpuId; 2],
        cx: &Context,
    ) -> bool {
        let queues = &self.groups[self.tasks[task].group].cfs_rq;
        let throttled = |cpu: CpuId| self.throttled_hierarchy(queues[cpu.index()]);
        throttled(dst) || !cx.throttles_tasks() && throttled(src)
    }

    /// `record_throttle_clock()`, on each level that a task leaves: from now on somebody waits.
    pub(in crate::sched::fair) fn record_throttle_clock(&mut self, cfs_rq: CfsRqId) {
        let cfs = &mut self.cfs[cfs_rq];
        if cfs.bandwidth.throttled {
            let clock = self.rq[cfs.cpu].clock;
            cfs.bandwidth.throttled_clock.get_or_insert(clock);
        }
    }

    /// Asserts what holds of a task's mark and its queue's limbo list.
    pub(crate) fn verify_limbo(&self, task: TaskId) {
        let t = &self.tasks[task];
        let cfs = &self.cfs[self.se[t.se].cfs_rq];
        let listed = cfs.throttled_limbo_list.iter().filter(|other| **other == task).count();
        let in_limbo = t.throttled && t.class == Class::Fair && t.on_rq == OnRq::Queued;
        assert_eq!(listed, in_limbo as usize, "{task:?}: throttled_limbo_list");
        assert!(!in_limbo || cfs.bandwidth.throttle_count != 0, "{task:?}: in limbo for ever");
        assert!(!in_limbo || !self.se[t.se].on_rq, "{task:?}: in limbo, and queued");
    }

    /// Whether a task counts as queued, and waits in limbo.
    pub(crate) fn is_in_limbo(&self, task: TaskId) -> bool {
        let t = &self.tasks[task];
        t.throttled && t.class == Class::Fair && t.on_rq == OnRq::Queued
    }
}
