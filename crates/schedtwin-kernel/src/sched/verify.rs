// SPDX-License-Identifier: GPL-2.0-or-later
//! Recomputes every sum and mask that is kept incrementally, from scratch.
//!
//! Called after every event by the reference twin and in tests; a difference is a bug.

use crate::sched::{CfsRqId, Class, OnRq, TaskKind, pelt};
use crate::sync::wait::Resume;
use crate::time::hrtimer::TimerKind;
use crate::{Context, Kernel, Scheduler, Time};
use schedtwin_types::arena::Arena;
use schedtwin_types::{CpuId, NEVER, TaskGroupId, TaskId, TaskState};

/// What a fair run queue's own entities (`load_weight`, `nr_queued`) and the tasks of the hierarchy below add up to.
#[derive(Default)]
struct Sums {
    load_weight: u64,
    nr_queued: u32,
    h_nr_queued: u32,
    h_nr_delayed: u32,
    h_nr_idle: u32,
    estimate: u64,
}

impl Kernel {
    /// Asserts that all sums, counters and masks are what the tasks and entities say.
    pub fn verify(&self) {
        let sums = self.sched.sums_of_cfs_rqs();
        let mut by_cpu: Vec<TaskId> = self.sched.tasks.ids().collect();
        by_cpu.sort_by_key(|task| self.sched.tasks[*task].cpu);
        let mut left = &by_cpu[..];
        for cpu in self.sched.rq.ids() {
            let nr = left.iter().take_while(|task| self.sched.tasks[**task].cpu == cpu).count();
            let here;
            (here, left) = left.split_at(nr);
            self.verify_cpu(cpu, here, &sums);
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
        let mut waits: Arena<TaskId, usize> = self.sched.tasks.iter().map(|_| 0).collect();
        for task in waiting {
            waits[task] += 1;
        }
        let mut running: Vec<TaskId> = self.sched.rq.iter().map(|rq| rq.curr).collect();
        running.retain(|task| !task.is_idle());
        running.sort_unstable();
        if let Some(pair) = running.windows(2).find(|pair| pair[0] == pair[1]) {
            panic!("{:?} runs on two CPUs", pair[0]);
        }
        for task in self.sched.tasks.ids().skip(1) {
            let t = &self.sched.tasks[task];
            if t.kind == TaskKind::User {
                // A sleeper waits for one thing; a task that waits for nothing has lost its wakeup.
                // A delayed sleeper is queued, and waits none the less.
                let asleep =
                    matches!(t.state, TaskState::Interruptible | TaskState::Uninterruptible);
                let waits = waits[task];
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

    /// `here`: the tasks whose CPU it is.
    fn verify_cpu(&self, cpu: CpuId, here: &[TaskId], sums: &Arena<CfsRqId, Sums>) {
        let rq = &self.sched.rq[cpu];
        for group in self.sched.groups.ids() {
            let id = self.sched.groups[group].cfs_rq[cpu.index()];
            self.sched.verify_cfs_rq(id, &sums[id], &self.time, &self.cx);
        }
        if self.sched.flat_groups() {
            self.sched.verify_flat(cpu, &self.cx);
        }
        let queued = self.sched.cfs[CfsRqId::root(cpu)].h_nr_queued;

        self.verify_demand(cpu);
        self.sched.verify_need(cpu, &self.cpufreq, &self.cx);
        self.sched.verify_uclamp(cpu, here);
        self.sched.verify_dl(cpu, here, &self.time);

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
            !task.is_idle() && t.class == Class::Fair && queued
        };
        let listed = here.iter().filter(|task| fair(task)).count();
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
            t.in_iowait && t.on_rq == OnRq::No && !woken()
        };
        let io_waiters = here.iter().filter(|task| waits_for_io(task)).count();
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

    /// The tasks whose CPU it is.
    #[cfg(test)]
    pub(crate) fn tasks_of(&self, cpu: CpuId) -> Vec<TaskId> {
        self.tasks.ids().filter(|task| self.tasks[*task].cpu == cpu).collect()
    }

    /// What the tasks and entities of each fair run queue add up to.
    fn sums_of_cfs_rqs(&self) -> Arena<CfsRqId, Sums> {
        let mut all: Arena<CfsRqId, Sums> = self.cfs.iter().map(|_| Sums::default()).collect();
        for task in self.tasks.ids().skip(1) {
            let t = &self.tasks[task];
            assert_eq!(t.group, self.autogroup_task_group(task), "{task:?}: its group");
            if t.class != Class::Fair || t.on_rq != OnRq::Queued {
                continue;
            }
            let in_limbo = self.is_in_limbo(task);
            let delayed = self.se[t.se].sched_delayed;
            let estimate = if delayed { 0 } else { pelt::_task_util_est(&self.se[t.se].avg) };
            let mut is_idle = t.policy == schedtwin_types::Policy::Idle;
            let mut dequeued = false;
            let path = || std::iter::successors(Some(t.se), |se| self.se[*se].parent);
            for (depth, se) in path().enumerate() {
                let id = self.se[se].cfs_rq;
                let cfs = &self.cfs[id];
                // With flat groups all of the path is on one queue.
                if path().take(depth).any(|below| self.se[below].cfs_rq == id) {
                    continue;
                }
                assert_eq!(t.cpu, cfs.cpu, "{task:?} is queued on another CPU");
                if in_limbo {
                    continue;
                }
                let sums = &mut all[id];
                sums.estimate += estimate;
                // To the queues above a throttled group it does not count.
                if !dequeued {
                    sums.h_nr_queued += 1;
                    sums.h_nr_delayed += u32::from(delayed);
                    sums.h_nr_idle += u32::from(is_idle);
                }
                dequeued |= cfs.bandwidth.dequeued;
                // To those above an idle group it counts as idle.
                is_idle |= self.groups[cfs.group].idle;
            }
        }
        for se in self.se.iter().filter(|se| se.on_rq) {
            let sums = &mut all[se.cfs_rq];
            sums.load_weight += se.load.weight;
            sums.nr_queued += 1;
        }
        all
    }

    /// A fair run queue: its own entities, and the tasks of the hierarchy below.
    fn verify_cfs_rq(&self, id: CfsRqId, sums: &Sums, time: &Time, cx: &Context) {
        let cfs = &self.cfs[id];
        let what = (cfs.cpu, cfs.group);
        assert_eq!(cfs.h_nr_queued, sums.h_nr_queued, "{what:?}: h_nr_queued");
        assert_eq!(cfs.h_nr_delayed, sums.h_nr_delayed, "{what:?}: h_nr_delayed");
        let runnable = sums.h_nr_queued - sums.h_nr_delayed;
        assert_eq!(cfs.h_nr_runnable, runnable, "{what:?}: h_nr_runnable");
        assert_eq!(cfs.h_nr_idle, sums.h_nr_idle, "{what:?}: idle_h_nr_running");
        if cx.config.features.util_est && cfs.group == TaskGroupId::ROOT {
            assert_eq!(cfs.avg.util_est as u64, sums.estimate, "{what:?}: util_est");
        }
        let entities = sums.nr_queued;
        assert_eq!(cfs.load_weight, sums.load_weight, "{what:?}: weight");
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
