// SPDX-License-Identifier: GPL-2.0-or-later
//! Recomputes every sum and mask that is kept incrementally, from scratch.
//!
//! Called after every event by the reference twin and in tests; a difference is a bug.

use crate::sched::{CfsRqId, Class, EntityId, OnRq, TaskKind, pelt};
use crate::sync::wait::Resume;
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::{CpuId, NEVER, TaskGroupId, TaskId, TaskState};

impl Kernel {
    /// Asserts that all sums, counters and masks are what the tasks and entities say.
    pub fn verify(&self) {
        for cpu in self.sched.rq.ids() {
            self.verify_cpu(cpu);
        }
        self.cpufreq.verify_sugov(&self.sched, &self.work);
        self.sched.verify_sched_cache();
        self.sched.verify_scx();
        self.time.verify_broadcast(&self.sched, &self.cx);
        self.time.verify_timers(|cpu| self.cpuidle.cpu(cpu).tick.tick_stopped);
        self.rcu.verify();
        let awake = |task: TaskId| {
            let t = &self.sched.tasks[task];
            let mut wake_list = self.sched.rq[t.cpu].wake_list.iter();
            let queued = t.on_rq == OnRq::Queued && !self.sched.is_delayed(task);
            queued || wake_list.any(|entry| entry.task == task)
        };
        self.workqueues.verify(awake);
        let throttled = self.sched.rq.ids().any(|cpu| self.sched.rq[cpu].rt.is_throttled());
        let timer =
            self.sched.rq.ids().any(|cpu| self.time.base(cpu).is_queued(TimerKind::RtPeriod));
        assert!(timer || !throttled, "RT tasks are throttled for ever");
        let mut waiting = self.sync.waiting();
        self.sync.verify();
        waiting.extend(self.block.waiting());
        self.block.verify();
        for task in &waiting {
            let t = &self.sched.tasks[*task];
            if let (Some(Resume::Call(blocked)), TaskState::Interruptible) = (t.resume, t.state) {
                self.sync.verify_sleeper(blocked.call);
            }
        }
        for cpu in self.sched.rq.ids() {
            waiting.extend(self.sched.rq[cpu].wake_list.iter().map(|entry| entry.task));
            waiting.extend(self.time.base(cpu).sleepers());
        }
        for task in self.sched.tasks.ids().skip(1) {
            let t = &self.sched.tasks[task];
            let running_on = self.sched.rq.ids().filter(|&c| self.sched.rq[c].curr == task).count();
            assert!(running_on <= 1, "{task:?} runs on {running_on} CPUs");
            if t.kind == TaskKind::User {
                // A sleeper waits for one thing; a task that waits for nothing has lost its wakeup.
                // A delayed sleeper is queued, and waits none the less.
                let asleep =
                    matches!(t.state, TaskState::Interruptible | TaskState::Uninterruptible);
                let waits = waiting.iter().filter(|w| **w == task).count();
                assert_eq!(
                    waits, asleep as usize,
                    "{task:?} is {:?} and waits for {waits}",
                    t.state
                );
            }
            self.sched.verify_limbo(task);
            let in_limbo = self.sched.is_in_limbo(task);
            if t.on_rq == OnRq::Queued && t.class == Class::Fair && !in_limbo {
                assert!(self.sched.se[t.se].on_rq, "{task:?} is queued, its entity is not");
            }
            assert!(t.on_rq != OnRq::Migrating, "{task:?} was left in the middle of a migration");
        }
    }

    fn verify_cpu(&self, cpu: CpuId) {
        let rq = &self.sched.rq[cpu];
        for group in self.sched.groups.ids() {
            self.sched.verify_cfs_rq(
                self.sched.groups[group].cfs_rq[cpu.index()],
                &self.time,
                &self.cx,
            );
        }
        if self.sched.flat_groups() {
            self.sched.verify_flat(cpu, &self.cx);
        }
        let queued = self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued;

        self.verify_demand(cpu);
        self.sched.verify_need(cpu, &self.cpufreq, &self.cx);
        self.sched.verify_uclamp(cpu);
        self.sched.verify_dl(cpu, &self.time);

        let mut count = 0;
        let mut at = rq.cfs_tasks_head;
        let mut last = None;
        while let Some(task) = at {
            count += 1;
            assert!(count <= self.sched.tasks.len(), "{cpu:?}: cfs_tasks is a circle");
            assert_eq!(self.sched.tasks[task].cfs_tasks_prev, last, "{cpu:?}: cfs_tasks links");
            last = at;
            at = self.sched.tasks[task].cfs_tasks_next;
        }
        let fair = |task: &TaskId| {
            let t = &self.sched.tasks[*task];
            let queued = t.on_rq == OnRq::Queued && !self.sched.is_in_limbo(*task);
            t.class == Class::Fair && t.cpu == cpu && queued
        };
        let listed = self.sched.tasks.ids().skip(1).filter(fair).count();
        assert_eq!(count, listed, "{cpu:?}: cfs_tasks");
        assert_eq!(rq.cfs_tasks_tail, last, "{cpu:?}: cfs_tasks tail");

        let all =
            queued + rq.rt.nr_running() as u32 + rq.stop_queued as u32 + rq.dl_nr_running() as u32;
        let all = all + self.sched.scx_nr_running(cpu);
        let uncounted = rq.fair_server.is_queued() && !self.cx.fair_server_is_counted();
        let all = all - u32::from(uncounted);
        assert_eq!(rq.nr_running, all, "{cpu:?}: nr_running");
        let waits_for_io = |task: &TaskId| {
            let t = &self.sched.tasks[*task];
            // A task woken towards another CPU is on its wake list, and waits no more.
            let woken = || rq.wake_list.iter().any(|w| w.task == *task) && t.sched_remote_wakeup;
            t.in_iowait && t.cpu == cpu && t.on_rq == OnRq::No && !woken()
        };
        let io_waiters = self.sched.tasks.ids().filter(waits_for_io).count();
        assert_eq!(rq.nr_iowait as usize, io_waiters, "{cpu:?}: nr_iowait");
        self.cpuidle.cpu(cpu).governor.verify();
        let polls = matches!(self.cx.platform.wires[cpu].activity, crate::Activity::Poll { .. });
        self.cpuidle.cpu(cpu).verify(polls, rq.need_resched);
        assert_eq!(
            self.sched.idle_mask.contains(cpu),
            self.sched.idle_cpu(cpu),
            "{cpu:?}: idle mask"
        );
        let only_sched_idle = self.sched.sched_idle_cpu(cpu);
        assert_eq!(
            self.sched.sched_idle_mask.contains(cpu),
            only_sched_idle,
            "{cpu:?}: sched_idle mask"
        );
        let off = self.time.local_timer_is_off(cpu);
        let next = if off { NEVER } else { self.time.base(cpu).armed() };
        assert_eq!(self.cx.platform.wires[cpu].clock_event_at, next, "{cpu:?}: timer");
        if rq.ttwu_pending {
            assert!(!rq.wake_list.is_empty(), "{cpu:?}: pending without a list");
        }
        if rq.need_resched && !rq.curr.is_idle() {
            return;
        }
        // A scheduler of sched_ext may leave a CPU idle.
        if rq.curr.is_idle() && rq.nr_running > self.sched.scx_nr_running(cpu) {
            // Somebody must be on the way to it: a reschedule that is pending, or an interrupt.
            let coming =
                rq.need_resched || self.cx.platform.wires[cpu].ipi_at.iter().any(|at| *at != NEVER);
            assert!(coming, "{cpu:?} idles with {} tasks and nobody tells it", rq.nr_running);
        }
    }
}

impl Scheduler {
    /// Whether a task sleeps and its dequeue is delayed.
    pub(crate) fn is_delayed(&self, task: TaskId) -> bool {
        self.se[self.tasks[task].se].sched_delayed
    }

    /// A fair run queue: its own entities, and the tasks of the hierarchy below.
    fn verify_cfs_rq(&self, id: CfsRqId, time: &Time, cx: &Context) {
        let cfs = &self.cfs[id];
        let what = (cfs.cpu, cfs.group);
        let is_below = |se: EntityId| {
            let mut above = std::iter::successors(Some(se), |se| self.se[*se].parent);
            above.any(|se| self.se[se].cfs_rq == id)
        };
        let (mut queued, mut delayed, mut idle, mut estimate) = (0, 0, 0, 0u64);
        for task in self.tasks.ids().skip(1) {
            let t = &self.tasks[task];
            assert_eq!(t.group, self.autogroup_task_group(task), "{task:?}: its group");
            if t.class != Class::Fair || t.on_rq != OnRq::Queued || !is_below(t.se) {
                continue;
            }
            assert_eq!(t.cpu, cfs.cpu, "{task:?} is queued on another CPU");
            if self.is_in_limbo(task) {
                continue;
            }
            let se = &self.se[t.se];
            // To the queues above an idle group it counts as idle.
            let above = std::iter::successors(Some(t.se), |se| self.se[*se].parent);
            let mut below = above.map(|se| self.se[se].cfs_rq).take_while(|queue| *queue != id);
            let in_idle_group = below.any(|queue| self.groups[self.cfs[queue].group].idle);
            if !se.sched_delayed {
                estimate += pelt::_task_util_est(&se.avg);
            }
            // To those above a throttled group it does not count.
            let above = std::iter::successors(Some(t.se), |se| self.se[*se].parent);
            let mut below = above.map(|se| self.se[se].cfs_rq).take_while(|queue| *queue != id);
            if below.any(|queue| self.cfs[queue].bandwidth.dequeued) {
                continue;
            }
            queued += 1;
            delayed += se.sched_delayed as u32;
            idle += (in_idle_group || t.policy == schedtwin_types::Policy::Idle) as u32;
        }
        assert_eq!(cfs.h_nr_queued, queued, "{what:?}: h_nr_queued");
        assert_eq!(cfs.h_nr_delayed, delayed, "{what:?}: h_nr_delayed");
        assert_eq!(cfs.h_nr_runnable, queued - delayed, "{what:?}: h_nr_runnable");
        assert_eq!(cfs.h_nr_idle, idle, "{what:?}: idle_h_nr_running");
        if cx.config.features.util_est && cfs.group == TaskGroupId::ROOT {
            assert_eq!(cfs.avg.util_est as u64, estimate, "{what:?}: util_est");
        }

        let own = self.se.iter().filter(|se| se.cfs_rq == id && se.on_rq);
        let (load, entities) = own.fold((0, 0), |(load, n), se| (load + se.load.weight, n + 1));
        assert_eq!(cfs.load_weight, load, "{what:?}: weight");
        assert_eq!(cfs.nr_queued, entities, "{what:?}: nr_queued");
        let running = cfs.curr.is_some_and(|c| self.se[c].on_rq) as usize;
        if !self.flat_groups() {
            assert_eq!(cfs.timeline.len() + running, entities as usize, "{what:?}: timeline");
        }
        for node in &cfs.timeline {
            let se = &self.se[node.se];
            assert_eq!(
                (node.deadline, node.vruntime),
                (se.deadline, se.vruntime),
                "{what:?}: node"
            );
            assert!(cfs.curr != Some(node.se), "{what:?}: the running entity is queued");
        }
        self.verify_timeline(id, cx);
        assert_eq!(cfs.idle, self.groups[cfs.group].idle, "{what:?}: idle");
        if let Some(&se) = self.groups[cfs.group].se.get(cfs.cpu.index()) {
            let se = &self.se[se];
            // A group with a queued entity competes above; an empty one may wait for its dequeue.
            let dequeued = cfs.bandwidth.dequeued;
            assert!(se.on_rq || entities == 0 || dequeued, "{what:?}: the group is not queued");
            assert!(!se.on_rq || se.sched_delayed == (entities == 0), "{what:?}: delayed");
            let stands_still = cfs.bandwidth.pelt_clock_throttled;
            let decays = cfs.on_list || entities == 0 || stands_still;
            assert!(decays, "{what:?}: its averages would not decay");
            self.verify_cfs_bandwidth(id, time);
        }
    }
}
