// SPDX-License-Identifier: GPL-2.0-or-later
//! Where deadline tasks run: placement, push and pull.
//!
//! **Idea.** The m earliest deadlines should run on the m CPUs (global EDF). A CPU that has more tasks than it can
//! run pushes the earliest of the waiting ones to a CPU where it is the earliest; a CPU that a deadline task has
//! left pulls the earliest that waits elsewhere. Where to is asked of `cpudl`: a CPU without deadline tasks, else
//! the one whose earliest deadline is the latest.
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/deadline.c `select_task_rq_dl`, `find_later_rq`, `push_dl_task`,
//! `pull_dl_task`, cpudeadline.c `cpudl_find`.
//! Differences: no task is migration-disabled, and a push never has to retry, since nobody can interfere.

use crate::sched::core::WF_TTWU;
use crate::sched::deadline::{DlNode, dl_time_before};
use crate::sched::{Class, OnRq};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{Candidate, CpuId, CpuMask, Decision, PlacementRule, TaskId};

impl Scheduler {
    /// `enqueue_pushable_dl_task()`: behind those of the same deadline.
    pub(super) fn enqueue_pushable_dl_task(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let (tasks, list) = (&self.tasks, &mut self.rq[cpu].dl.pushable);
        debug_assert!(!list.contains(&task));
        let entity = &tasks[task].dl;
        let at = list.partition_point(|other| !entity.preempts(&tasks[*other].dl));
        list.insert(at, task);
        if cx.pushable_overloads() {
            self.rd.dlo_mask.insert(cpu);
        }
    }

    /// `update_dl_migration()`: up to 6.6 a CPU is overloaded if it has two deadline tasks, and one of all may move.
    pub(super) fn update_dl_migration(&mut self, cpu: CpuId, cx: &Context) {
        if !cx.pushable_overloads() {
            let (queue, tasks) = (self.rq[cpu].dl.queue(), &self.tasks);
            let may_move = |node: &DlNode| match node {
                DlNode::Task(task) => tasks[*task].nr_cpus_allowed > 1,
                DlNode::FairServer => false,
            };
            let overloaded = queue.len() > 1 && queue.iter().any(may_move);
            self.rd.dlo_mask.set(cpu, overloaded);
        }
    }

    /// `dequeue_pushable_dl_task()`.
    #[inline]
    pub(super) fn dequeue_pushable_dl_task(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let list = &mut self.rq[cpu].dl.pushable;
        if list.is_empty() {
            return;
        }
        list.retain(|other| *other != task);
        if list.is_empty() && cx.pushable_overloads() {
            self.rd.dlo_mask.remove(cpu);
        }
    }

    /// `dl_task_fits_capacity()`.
    fn dl_task_fits_capacity(&self, task: TaskId, cpu: CpuId) -> bool {
        self.arch_scale_cpu_capacity(cpu) >= self.tasks[task].dl.dl_density >> 10
    }

    /// `dl_task_is_earliest_deadline()`: it would be the earliest on `cpu`.
    fn dl_task_is_earliest_deadline(&self, task: TaskId, cpu: CpuId) -> bool {
        let earliest = self.rd.cpudl.deadline_of(cpu);
        earliest.is_none_or(|earliest| dl_time_before(self.tasks[task].dl.deadline, earliest))
    }

    /// `select_task_rq_dl()`: where a task wakes that last ran on `cpu`. It stays, unless a deadline task runs there that
    /// goes on or cannot go away, or the CPU is too small for it.
    #[inline(never)]
    pub(crate) fn select_task_rq_dl(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        flags: u32,
        cx: &mut Context,
    ) -> CpuId {
        if flags & WF_TTWU == 0 {
            return cpu;
        }
        let (t, curr) = (&self.tasks[task], &self.tasks[self.rq[cpu].curr]);
        let occupied = curr.class == Class::Deadline
            && (curr.nr_cpus_allowed < 2 || !t.dl.preempts(&curr.dl))
            && t.nr_cpus_allowed > 1;
        let too_small = self.has_asym_cpucapacity() && !self.dl_task_fits_capacity(task, cpu);
        if !occupied && !too_small {
            return self.record_dl_placement(task, cpu, cpu, PlacementRule::DlStays, cx);
        }
        match self.find_later_rq(task, cx) {
            Some((target, rule)) if self.dl_task_is_earliest_deadline(task, target) => {
                self.record_dl_placement(task, cpu, target, rule, cx)
            }
            _ => self.record_dl_placement(task, cpu, cpu, PlacementRule::DlNoLaterRq, cx),
        }
    }

    fn record_dl_placement(
        &self,
        task: TaskId,
        prev: CpuId,
        chosen: CpuId,
        rule: PlacementRule,
        cx: &mut Context,
    ) -> CpuId {
        if cx.wants_decisions() {
            let (allowed, cpudl) = (&self.tasks[task].cpus_mask, &self.rd.cpudl);
            let candidate = |cpu: CpuId| Candidate {
                cpu,
                role: if cpudl.deadline_of(cpu).is_none() { "free" } else { "later" },
                util: self.rq[cpu].avg_dl.util_avg,
                capacity: self.arch_scale_cpu_capacity(cpu),
                energy_delta: None,
                max_util: None,
            };
            let looked_at = |cpu: &CpuId| {
                rule != PlacementRule::DlStays
                    && (cpudl.deadline_of(*cpu).is_none() || *cpu == chosen)
            };
            let candidates = allowed.iter().filter(looked_at).map(candidate).collect();
            cx.record(Decision::Placement { task, prev, chosen, rule, candidates });
        }
        chosen
    }

    /// The end of `cpudl_find()`, which is all of it without a mask: the CPU whose earliest deadline is the latest of all, if
    /// that is later than the task's.
    fn cpudl_latest(&self, task: TaskId) -> Option<CpuId> {
        let t = &self.tasks[task];
        let (deadline, cpu) = self.rd.cpudl.maximum()?;
        let later = t.cpus_mask.contains(cpu) && dl_time_before(t.dl.deadline, deadline);
        later.then_some(cpu)
    }

    /// `cpudl_find()`: the allowed CPUs without a deadline entity that are large enough, or the largest of those that are
    /// not; if there is none, [`Kernel::cpudl_latest`].
    fn later_mask(&self, task: TaskId) -> (CpuMask, PlacementRule) {
        let t = &self.tasks[task];
        let free = self.rd.cpudl.free_cpus().and(&t.cpus_mask);
        if free.is_empty() {
            let latest = self.cpudl_latest(task);
            return (latest.map_or(CpuMask::EMPTY, CpuMask::of), PlacementRule::DlLatestDeadline);
        }
        if !self.has_asym_cpucapacity() {
            return (free, PlacementRule::DlFreeCpu);
        }
        let fits: CpuMask = free.iter().filter(|c| self.dl_task_fits_capacity(task, *c)).collect();
        if !fits.is_empty() {
            return (fits, PlacementRule::DlFreeCpu);
        }
        // Of equal ones the first, but its own before others.
        let rank = |c: &CpuId| (self.arch_scale_cpu_capacity(*c), *c == t.cpu, u16::MAX - c.0);
        let largest = free.iter().max_by_key(rank).map_or(CpuMask::EMPTY, CpuMask::of);
        (largest, PlacementRule::DlLargestFreeCpu)
    }

    /// `find_later_rq()`, and why.
    pub(super) fn find_later_rq(
        &mut self,
        task: TaskId,
        cx: &Context,
    ) -> Option<(CpuId, PlacementRule)> {
        if self.tasks[task].nr_cpus_allowed == 1 {
            return None;
        }
        let (mask, rule) = self.later_mask(task);
        if mask.is_empty() {
            return None;
        }
        Some((self.nearest_cpu(task, mask, cx), rule))
    }

    /// `wakeup_preempt_dl()`: both are deadline tasks.
    pub(crate) fn wakeup_preempt_dl(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let curr = self.rq[cpu].curr;
        let (t, c) = (&self.tasks[task], &self.tasks[curr]);
        if t.dl.preempts(&c.dl) {
            self.resched_curr(cpu, cpuidle, cx);
        } else if t.dl.deadline == c.dl.deadline && !self.rq[cpu].need_resched {
            // check_preempt_equal_dl(): the running one gives way if it has somewhere to go and the other has not.
            let curr_stays = c.nr_cpus_allowed == 1 || self.cpudl_latest(curr).is_none();
            let other_moves = t.nr_cpus_allowed != 1 && self.cpudl_latest(task).is_some();
            if !curr_stays && !other_moves {
                self.resched_curr(cpu, cpuidle, cx);
            }
        }
    }

    /// Asserts that the tasks which wait to be pushed are those that are queued, do not run and may
    /// move.
    pub(super) fn verify_dl_pushable(&self, cpu: CpuId) {
        let dl = &self.rq[cpu].dl;
        for node in &dl.queue {
            let DlNode::Task(task) = *node else { continue };
            let t = &self.tasks[task];
            let waits = self.rq[cpu].curr != task && t.nr_cpus_allowed > 1;
            assert_eq!(dl.pushable.contains(&task), waits, "{cpu:?}: {task:?} waits to be pushed");
            assert_eq!(t.on_rq, OnRq::Queued);
        }
        let listed = dl.pushable.iter().all(|task| self.tasks[*task].dl.queued);
        assert!(listed, "{cpu:?}: a pushable task is not queued");
        if self.rd.dlo_mask.contains(cpu) {
            assert!(dl.queue().len() + dl.pushable.len() > 0, "{cpu:?}: dlo_mask");
        } else {
            assert!(dl.pushable.len() < 2, "{cpu:?}: dlo_mask");
        }
    }
}

impl Kernel {
    /// `task_woken_dl()`.
    #[inline(never)]
    pub(crate) fn task_woken_dl(&mut self, cpu: CpuId, task: TaskId) {
        let curr = self.sched.rq[cpu].curr;
        let (t, c) = (&self.sched.tasks[task], &self.sched.tasks[curr]);
        let push = curr != task
            && !self.sched.rq[cpu].need_resched
            && t.nr_cpus_allowed > 1
            && c.class == Class::Deadline
            && (c.nr_cpus_allowed < 2 || !t.dl.preempts(&c.dl));
        if push {
            self.push_dl_tasks(cpu);
        }
    }

    /// `push_dl_task()`; whether something was moved.
    pub(crate) fn push_dl_task(&mut self, cpu: CpuId) -> bool {
        if !self.sched.rd.dlo_mask.contains(cpu) {
            return false;
        }
        let Some(&next) = self.sched.rq[cpu].dl.pushable.first() else { return false };
        let curr = &self.sched.tasks[self.sched.rq[cpu].curr];
        if curr.class == Class::Deadline
            && dl_time_before(self.sched.tasks[next].dl.deadline, curr.dl.deadline)
            && curr.nr_cpus_allowed > 1
        {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            return false;
        }
        let Some((target, _)) = self.sched.find_later_rq(next, &self.cx) else { return false };
        if target == cpu || !self.sched.dl_task_is_earliest_deadline(next, target) {
            return false;
        }
        self.move_queued_task(next, cpu, target);
        self.sched.resched_curr(target, &mut self.cpuidle, &mut self.cx);
        true
    }

    /// `push_dl_tasks()`. Each turn moves a task away, so the queue's length bounds the turns.
    pub(crate) fn push_dl_tasks(&mut self, cpu: CpuId) {
        while self.push_dl_task(cpu) {}
    }

    /// `balance_dl()`: before something lower runs, waiting tasks are pulled. Whether a deadline entity or the stopper is
    /// runnable here.
    pub(crate) fn balance_dl(&mut self, cpu: CpuId, prev: TaskId) -> bool {
        let t = &self.sched.tasks[prev];
        if t.class == Class::Deadline && !t.dl.queued {
            self.pull_dl_task(cpu);
        }
        self.sched.rq[cpu].stop_queued || self.sched.rq[cpu].dl_nr_running() > 0
    }

    /// `pull_dl_task()`: from each CPU that has waiting tasks its earliest that may run here, if it is earlier than
    /// all that are here.
    pub(super) fn pull_dl_task(&mut self, cpu: CpuId) {
        let mut others = self.sched.rd.dlo_mask;
        others.remove(cpu);
        let mut last_pulled: Option<u64> = None;
        for src in others.iter() {
            let dl = &self.sched.rq[src].dl;
            let Some(&next) = dl.pushable.first() else { continue };
            let next_deadline = self.sched.tasks[next].dl.deadline;
            let own = self.sched.rd.cpudl.deadline_of(cpu);
            if own.is_some_and(|own| dl_time_before(own, next_deadline))
                || self.sched.rq[src].dl_nr_running() <= 1
            {
                continue;
            }
            let allowed = |task: &&TaskId| self.sched.tasks[**task].cpus_mask.contains(cpu);
            let Some(&task) = dl.pushable.iter().find(allowed) else { continue };
            let deadline = self.sched.tasks[task].dl.deadline;
            if last_pulled.is_some_and(|last| !dl_time_before(deadline, last))
                || !self.sched.dl_task_is_earliest_deadline(task, cpu)
            {
                continue;
            }
            // One that is earlier than what runs there has only just been woken. `deadline` of a task of another class is
            // what it last had in this one.
            let src_curr = self.sched.rq[src].curr;
            if dl_time_before(deadline, self.sched.tasks[src_curr].dl.deadline) {
                continue;
            }
            self.move_queued_task(task, src, cpu);
            last_pulled = Some(deadline);
        }
        if last_pulled.is_some() {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `prio_changed_dl()` of the running task: its reservation has changed. 7.3 asks whether its deadline has, too
    /// (`old_deadline`).
    pub(crate) fn prio_changed_dl(&mut self, cpu: CpuId, task: TaskId, old_deadline: u64) {
        let deadline = self.sched.tasks[task].dl.deadline;
        let pulls = match self.cx.class_changes_preempt() {
            false => !self.sched.rd.dlo_mask.contains(cpu),
            true if deadline == old_deadline => return,
            true => dl_time_before(old_deadline, deadline),
        };
        // earliest_dl.curr, which is 0 if nobody is queued.
        let earliest = self.sched.rd.cpudl.deadline_of(cpu).unwrap_or(0);
        if dl_time_before(earliest, deadline) {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
        if pulls {
            self.pull_dl_task(cpu);
        }
    }
}
