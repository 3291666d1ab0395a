// SPDX-License-Identifier: GPL-2.0-or-later
//! Single steps of `cpu.max` on several CPUs, for the differential test against the kernel's own C (`conformance/`, L0
//! `bandwidth`).
//!
//! Nothing else uses it, and it decides nothing: each function passes on to the one it names. What one step does across CPUs it
//! does on the CPU that [`BandwidthSteps::enter`] named.

use super::{CfsRqBandwidth, TimerKind};
use crate::Kernel;
use crate::sched::core::{
    DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_DELAYED,
    ENQUEUE_NOCLOCK, ENQUEUE_RESTORE, ENQUEUE_WAKEUP,
};
use crate::sched::{CfsRqId, OnRq, TaskKind};
use schedtwin_types::{CpuId, Ns, Policy, TaskGroupId, TaskId};

/// What a queue keeps for `cpu.max`, as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueClocks {
    /// `throttled_clock`; 0: not set.
    pub throttled_clock: u64,
    /// `throttled_clock_pelt`.
    pub throttled_clock_pelt: u64,
    /// `throttled_clock_pelt_time`.
    pub throttled_clock_pelt_time: u64,
    /// It is on its CPU's `cfsb_csd_list`.
    pub csd_queued: bool,
}

impl From<&CfsRqBandwidth> for QueueClocks {
    fn from(own: &CfsRqBandwidth) -> QueueClocks {
        QueueClocks {
            throttled_clock: own.throttled_clock.unwrap_or(0),
            throttled_clock_pelt: own.throttled_clock_pelt,
            throttled_clock_pelt_time: own.throttled_clock_pelt_time,
            csd_queued: own.csd_queued,
        }
    }
}

/// What a group's pool keeps of its timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTimers {
    /// When the period timer is due, or would be.
    pub period: Ns,
    /// When the slack timer is due.
    pub slack: Option<Ns>,
}

/// A machine whose groups have limits.
pub struct BandwidthSteps<'a>(pub &'a mut Kernel);

impl BandwidthSteps<'_> {
    /// From now on `cpu` executes.
    pub fn enter(&mut self, now: Ns, cpu: CpuId) {
        (self.0.cx.now, self.0.cx.this_cpu, self.0.cx.debt) = (now, cpu, 0);
    }

    /// A task of a group that sleeps, and was on `cpu` last.
    pub fn new_task(&mut self, group: TaskGroupId, cpu: CpuId, nice: i8, policy: Policy) -> TaskId {
        let task = self.0.new_task(None, TaskKind::User);
        let t = &mut self.0.sched.tasks[task];
        (t.group, t.cgroup, t.cpu, t.policy, t.nice) = (group, group, cpu, policy, nice);
        let se = t.se;
        self.0.sched.se[se].load = crate::sched::fair::weight_of(policy, nice);
        self.0.sched.set_task_rq(task, cpu);
        task
    }

    /// `update_rq_clock()`.
    pub fn update_rq_clock(&mut self, cpu: CpuId) {
        self.0.sched.update_rq_clock(cpu, &self.0.cx);
    }

    /// A wakeup on the task's own CPU.
    pub fn wake(&mut self, task: TaskId) {
        let (cpu, asleep) = (self.cpu_of(task), self.0.sched.tasks[task].on_rq == OnRq::No);
        self.update_rq_clock(cpu);
        if asleep {
            self.0.enqueue_task_fair(cpu, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK);
            self.0.sched.tasks[task].on_rq = OnRq::Queued;
        } else {
            self.0.enqueue_task_fair(cpu, task, ENQUEUE_NOCLOCK | ENQUEUE_DELAYED);
        }
        self.preempt(cpu, task);
    }

    fn cpu_of(&self, task: TaskId) -> CpuId {
        self.0.sched.tasks[task].cpu
    }

    fn preempt(&mut self, cpu: CpuId, task: TaskId) {
        if self.0.sched.rq[cpu].curr.is_idle() {
            self.0.sched.resched_curr(cpu, &mut self.0.cpuidle, &mut self.0.cx);
        } else {
            self.0.check_preempt_wakeup_fair(cpu, task, 0);
        }
    }

    /// A switch. `sleeps`: the running task blocks first; 2: in a special state.
    pub fn schedule(&mut self, cpu: CpuId, sleeps: u64) {
        self.update_rq_clock(cpu);
        let prev = self.0.sched.rq[cpu].curr;
        if sleeps != 0 && !prev.is_idle() {
            let special = if sleeps == 2 { DEQUEUE_SPECIAL } else { 0 };
            if self.0.dequeue_task_fair(cpu, prev, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK | special) {
                self.0.sched.tasks[prev].on_rq = OnRq::No;
            }
        }
        let next = self.0.pick_task_fair(cpu).unwrap_or(TaskId::IDLE);
        let put_back = !prev.is_idle() && self.0.was_put_back_by_pick(cpu, prev);
        match (prev.is_idle(), next.is_idle()) {
            (false, false) if put_back => self.0.set_next_task_fair(cpu, next, true),
            (false, false) if next == prev => self.0.repicked(cpu, next),
            _ if next == prev => {}
            (false, false) => self.0.put_prev_set_next_task_fair(cpu, prev, next),
            (false, true) => self.0.put_prev_task_fair(cpu, prev),
            (true, _) => self.0.set_next_task_fair(cpu, next, true),
        }
        let rq = &mut self.0.sched.rq[cpu];
        (rq.curr, rq.need_resched) = (next, false);
    }

    /// `task_tick_fair()`.
    pub fn tick(&mut self, cpu: CpuId) {
        self.update_rq_clock(cpu);
        let curr = self.0.sched.rq[cpu].curr;
        self.0.task_tick_fair(cpu, curr);
    }

    /// `throttle_cfs_rq_work()` of the running task, if it has that work.
    pub fn return_to_user(&mut self, cpu: CpuId) {
        let curr = self.0.sched.rq[cpu].curr;
        if std::mem::take(&mut self.0.sched.tasks[curr].throttle_work) {
            self.0.throttle_cfs_rq_work(cpu, curr);
        }
    }

    /// A queued task that does not run moves to another CPU.
    pub fn migrate(&mut self, task: TaskId, to: CpuId) {
        let from = self.cpu_of(task);
        self.update_rq_clock(from);
        self.update_rq_clock(to);
        self.0.deactivate_task(from, task, DEQUEUE_NOCLOCK);
        self.0.set_task_cpu(task, to);
        self.0.activate_task(to, task, ENQUEUE_NOCLOCK);
        self.preempt(to, task);
    }

    /// A queued task that does not run is taken out for a change, and put back.
    pub fn requeue(&mut self, task: TaskId) {
        let cpu = self.cpu_of(task);
        self.update_rq_clock(cpu);
        self.0.dequeue_task_fair(cpu, task, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
        self.0.enqueue_task_fair(cpu, task, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
    }

    /// `sched_move_task()` of the running task.
    pub fn move_group(&mut self, cpu: CpuId, group: TaskGroupId) {
        let curr = self.0.sched.rq[cpu].curr;
        self.0.cpu_cgroup_attach(curr, group);
    }

    fn cancel(&mut self, kind: TimerKind) {
        for cpu in self.0.sched.rd.span.iter() {
            self.0.time.hrtimer_cancel(cpu, kind, &mut self.0.cx);
        }
    }

    /// `sched_cfs_period_timer()`.
    pub fn period_timer(&mut self, group: TaskGroupId) {
        self.cancel(TimerKind::CfsPeriod(group));
        let expires = self.0.sched.groups[group].bandwidth.expires;
        self.0.sched_cfs_period_timer(group, expires);
    }

    /// `do_sched_cfs_slack_timer()`.
    pub fn slack_timer(&mut self, group: TaskGroupId) {
        self.cancel(TimerKind::CfsSlack(group));
        self.0.sched_cfs_slack_timer(group);
    }

    /// `__cfsb_csd_unthrottle()`.
    pub fn csd_unthrottle(&mut self, cpu: CpuId) {
        self.0.cfsb_csd_unthrottle(cpu);
    }

    /// When a group's timers are due.
    pub fn timers(&self, group: TaskGroupId) -> PoolTimers {
        let slack = TimerKind::CfsSlack(group);
        let mut bases = self.0.sched.rq.ids().map(|cpu| self.0.time.base(cpu).expires(slack));
        let bandwidth = &self.0.sched.groups[group].bandwidth;
        PoolTimers { period: bandwidth.expires, slack: bases.find_map(|expires| expires) }
    }

    /// The clocks of a queue.
    pub fn clocks(&self, cfs_rq: CfsRqId) -> QueueClocks {
        (&self.0.sched.cfs[cfs_rq].bandwidth).into()
    }

    /// The queues on a CPU's `cfsb_csd_list`.
    pub fn csd_list(&self, cpu: CpuId) -> impl Iterator<Item = CfsRqId> {
        self.0.sched.rq[cpu].unthrottle_list.iter().map(|entry| entry.cfs_rq)
    }
}
