// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class: fixed priorities, first in first out, pushed and pulled between CPUs.
//!
//! **Idea.** The highest-priority tasks of the whole machine should run. A CPU that has more than one RT task
//! pushes the others away; a CPU that is about to run something lower asks overloaded CPUs to push.
//!
//! Before 6.12 `rt/bandwidth.rs` keeps them from taking everything, since then the fair server.
//!
//! Kernel: 6.12.95, 6.1.192 and 7.3.4 kernel/sched/rt.c, cpupri.c. They differ in which CPUs are overloaded
//! (`push_overload`).
//! Differences: utilisation clamps cannot be set, but the default of an RT task counts: it wants a CPU of full
//! capacity. The levels of `cpupri` are kept per CPU and scanned, not indexed. No task is migration-disabled. A push to a CPU
//! never has to retry, since nobody can interfere.

mod bandwidth;
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
#[cfg(test)]
mod tests;

pub use bandwidth::RtPeriod;

use crate::config::{RtTask, RtoNextCpu};
use crate::cpufreq::hook::CLASS_QUEUE;
use crate::sched::core::{DEQUEUE_MOVE, DEQUEUE_SAVE, ENQUEUE_HEAD};
use crate::sched::demand::signal::Signal;
#[cfg(any(test, feature = "conformance"))]
use crate::sched::demand::signal::StaleDemands;
use crate::sched::topology::SD_WAKE_AFFINE;
use crate::sched::{Class, OnRq, pelt};
use crate::{Context, Cpuidle, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, IpiKind, Ns, Policy, TaskId};

/// No RT task: lower than every RT priority.
const PRIO_NONE: i32 = 99;

/// `move_entity()`: whether a task that is taken off, or put back, leaves its place in the queue.
fn move_entity(flags: u32) -> bool {
    flags & (DEQUEUE_SAVE | DEQUEUE_MOVE) != DEQUEUE_SAVE
}

/// `cpupri` level of a CPU with a deadline entity (`CPUPRI_HIGHER`).
const CPUPRI_HIGHER: i32 = 100;

/// `convert_prio()`: priority → level; 0 (`CPUPRI_NORMAL`) without RT tasks.
fn convert_prio(prio: i32) -> i32 {
    PRIO_NONE - prio
}

/// `struct rt_rq`.
#[derive(Clone, Debug, Default)]
pub struct RtRq {
    /// Queued tasks: by priority, first come first served within one. The running one is among them.
    queue: Signal<Vec<(i32, TaskId)>>,
    /// Queued tasks that do not run and may run elsewhere: by priority, and within one by when they became
    /// pushable, which a preempted task has only just done.
    pushable: Vec<(i32, TaskId)>,
    /// This CPU's level in `cpupri`.
    cpupri: i32,
    /// Where the running task was in the queue, while one call takes it off and puts it back at its place
    /// (`on_list` without `on_rq`).
    kept_place: Option<usize>,
    /// Where the rotating search for a CPU stands (`distribute_cpu_mask_prev`).
    cursor: u16,
    /// `exec_start` of the running RT task.
    exec_start: u64,
    /// `rt_time`: what RT tasks have run of late, less what periods have forgiven.
    rt_time: Ns,
    /// `rt_throttled`: too much, so the queue counts as empty.
    throttled: Signal<bool>,
}

impl RtRq {
    /// For comparisons of the governor: somebody is queued, or nobody.
    #[cfg(any(test, feature = "conformance"))]
    pub(crate) fn set_runnable(&mut self, cpu: CpuId, stale: &mut StaleDemands, runnable: bool) {
        self.queue.change(cpu, stale, |queue| {
            queue.clear();
            queue.extend(runnable.then_some((PRIO_NONE - 1, TaskId::IDLE)));
        });
    }

    /// `highest_prio.curr`.
    #[inline]
    fn highest_prio(&self) -> i32 {
        self.queue.first().map_or(PRIO_NONE, |e| e.0)
    }

    /// The queue has been throttled; a timer is to end that.
    pub(crate) fn is_throttled(&self) -> bool {
        *self.throttled
    }

    /// Number of tasks that may run: the queued ones, or none while throttled (`rt_rq_is_runnable`,
    /// `sched_rt_runnable`).
    #[inline(always)]
    pub fn nr_running(&self) -> usize {
        if *self.throttled { 0 } else { self.queue.len() }
    }
}

impl Context {
    /// Full time slice of a `SCHED_RR` task: 100 ms in ticks.
    pub(crate) fn rr_time_slice(&self) -> u32 {
        100 * self.config.hz / 1000
    }
}

impl Scheduler {
    /// `enqueue_pushable_task()`.
    fn enqueue_pushable_task(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let prio = self.tasks[task].prio;
        let list = &mut self.rq[cpu].rt.pushable;
        list.retain(|e| e.1 != task);
        let at = list.partition_point(|e| e.0 <= prio);
        list.insert(at, (prio, task));
        if cx.pushable_overloads() {
            self.rd.rto_mask.insert(cpu);
        }
    }

    /// `dequeue_pushable_task()`.
    fn dequeue_pushable_task(&mut self, cpu: CpuId, task: TaskId, cx: &Context) {
        let list = &mut self.rq[cpu].rt.pushable;
        list.retain(|e| e.1 != task);
        if list.is_empty() && cx.pushable_overloads() {
            self.rd.rto_mask.remove(cpu);
        }
    }

    /// `update_rt_migration()`: up to 6.6 a CPU is overloaded if it has two RT tasks, and one of all may move.
    fn update_rt_migration(&mut self, cpu: CpuId, cx: &Context) {
        if !cx.pushable_overloads() {
            let (queue, tasks) = (&self.rq[cpu].rt.queue, &self.tasks);
            let migratory = || queue.iter().any(|entry| tasks[entry.1].nr_cpus_allowed > 1);
            self.rd.rto_mask.set(cpu, queue.len() > 1 && migratory());
        }
    }

    /// A deadline entity is queued on a CPU that had none (`inc_dl_deadline`).
    pub(crate) fn cpupri_deadline_queued(&mut self, cpu: CpuId) {
        self.rq[cpu].rt.cpupri = CPUPRI_HIGHER;
    }

    /// The last one has left (`dec_dl_deadline`).
    pub(crate) fn cpupri_deadline_gone(&mut self, cpu: CpuId) {
        let rt = &mut self.rq[cpu].rt;
        rt.cpupri = convert_prio(rt.highest_prio());
    }

    /// `rt_task_fits_capacity()`.
    fn rt_task_fits_capacity(&self, task: TaskId, cpu: CpuId, cx: &Context) -> bool {
        !self.has_asym_cpucapacity()
            || self.arch_scale_cpu_capacity(cpu) >= self.rt_uclamp_min(task, cx) as u64
    }

    /// `update_rt_rq_load_avg()`: `running` is what has been on the CPU up to now.
    fn update_rt_rq_load_avg(&mut self, cpu: CpuId, running: bool) {
        let now = self.rq_clock_pelt(cpu);
        self.rq[cpu].avg_rt.update(cpu, &mut self.stale_demands, |avg| {
            pelt::update_rt_rq_load_avg(now, avg, running)
        });
    }

    pub(crate) fn pick_task_rt(&self, cpu: CpuId) -> Option<TaskId> {
        let rt = &self.rq[cpu].rt;
        if *rt.throttled { None } else { rt.queue.first().map(|e| e.1) }
    }

    /// `set_next_task_rt()`. `first`: it has been picked; else a running task is put back after a change of its attributes.
    pub(crate) fn set_next_task_rt(
        &mut self,
        cpu: CpuId,
        prev: TaskId,
        next: TaskId,
        first: bool,
        cx: &Context,
    ) {
        let clock_task = self.rq[cpu].clock_task;
        self.rq[cpu].rt.exec_start = clock_task;
        self.dequeue_pushable_task(cpu, next, cx);
        // From now on time counts as the class's. A task that put itself into it gets that from
        // switched_to_rt(); if it was in it already, put_prev_task_rt() has left nothing to do.
        if !first || self.tasks[prev].class != Class::Rt {
            self.update_rt_rq_load_avg(cpu, false);
        }
        if first {
            self.rq[cpu].push_pending |= !self.rq[cpu].rt.pushable.is_empty();
        }
    }

    /// `requeue_task_rt()`: to the head or tail of its priority.
    fn requeue_task_rt(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        self.rq[cpu].rt.queue.change(cpu, &mut self.stale_demands, |queue| {
            let at = queue.iter().position(|e| e.1 == task).expect("a queued RT task");
            let entry = queue.remove(at);
            let to = if head {
                queue.partition_point(|e| e.0 < entry.0)
            } else {
                queue.partition_point(|e| e.0 <= entry.0)
            };
            queue.insert(to, entry);
        });
    }

    pub(crate) fn yield_task_rt(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr;
        self.requeue_task_rt(cpu, curr, false);
    }

    #[inline(never)]
    pub(crate) fn wakeup_preempt_rt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        cpuidle: &mut Cpuidle,
        cx: &mut Context,
    ) {
        let curr = self.rq[cpu].curr;
        let (prio, curr_prio) = (self.tasks[task].prio, self.tasks[curr].prio);
        if prio < curr_prio {
            self.resched_curr(cpu, cpuidle, cx);
        } else if prio == curr_prio && !self.rq[cpu].need_resched {
            // check_preempt_equal_prio(): let the pinned one have the CPU if curr has somewhere to go.
            if self.tasks[curr].nr_cpus_allowed == 1 || self.lowest_mask(curr, false, cx).is_empty()
            {
                return;
            }
            if self.tasks[task].nr_cpus_allowed != 1
                && !self.lowest_mask(task, false, cx).is_empty()
            {
                return;
            }
            self.requeue_task_rt(cpu, task, true);
            self.resched_curr(cpu, cpuidle, cx);
        }
    }

    /// `cpupri_find()`: the allowed CPUs of the lowest level below the task's own. With `fit`, of those only
    /// such on which the task fits, from the lowest level that has one; if none has, all the same without.
    fn lowest_mask(&self, task: TaskId, fit: bool, cx: &Context) -> CpuMask {
        let own = convert_prio(self.tasks[task].prio);
        let mut best = own;
        let mut mask = CpuMask::EMPTY;
        for cpu in self.tasks[task].cpus_mask.iter() {
            let level = self.rq[cpu].rt.cpupri;
            if level >= own || level > best || (fit && !self.rt_task_fits_capacity(task, cpu, cx)) {
                continue;
            }
            if level < best {
                best = level;
                mask = CpuMask::EMPTY;
            }
            mask.insert(cpu);
        }
        if fit && mask.is_empty() { self.lowest_mask(task, false, cx) } else { mask }
    }

    /// `find_lowest_rq()`.
    fn find_lowest_rq(&mut self, task: TaskId, cx: &Context) -> Option<CpuId> {
        if self.tasks[task].nr_cpus_allowed == 1 {
            return None;
        }
        let mask = self.lowest_mask(task, self.has_asym_cpucapacity(), cx);
        if mask.is_empty() {
            return None;
        }
        Some(self.nearest_cpu(task, mask, cx))
    }

    /// Where `find_lowest_rq()` and `find_later_rq()` send a task that may go to the CPUs of `mask`, which is
    /// not empty: to its own CPU, else within the smallest domain that has one of them, there to this CPU
    /// before others.
    pub(crate) fn nearest_cpu(&mut self, task: TaskId, mask: CpuMask, cx: &Context) -> CpuId {
        let task_cpu = self.tasks[task].cpu;
        if mask.contains(task_cpu) {
            return task_cpu;
        }
        let mut near = mask;
        let mut level = self.topology.base[task_cpu.index()];
        while let Some(id) = level {
            let sd = &self.topology.domains[id.0 as usize];
            let within = mask.and(&sd.span);
            if sd.flags & SD_WAKE_AFFINE != 0 && !within.is_empty() {
                near = within;
                break;
            }
            level = sd.parent;
        }
        let this = cx.this_cpu;
        if near.contains(this) { this } else { self.cpumask_any_and_distribute(near, cx) }
    }

    /// The CPU that this one chose last out of several (`distribute_cpu_mask_prev`).
    pub(crate) fn distribute_cursor(&self, cx: &Context) -> CpuId {
        CpuId(self.rq[cx.this_cpu].rt.cursor)
    }

    /// Sets it, for a decision that is driven again.
    #[cfg(feature = "conformance")]
    pub(crate) fn set_distribute_cursor(&mut self, cpu: CpuId, cursor: CpuId) {
        self.rq[cpu].rt.cursor = cursor.0;
    }

    /// `cpumask_any_and_distribute()`: the next CPU after this CPU's cursor.
    pub(crate) fn cpumask_any_and_distribute(&mut self, mask: CpuMask, cx: &Context) -> CpuId {
        let start = CpuId(self.rq[cx.this_cpu].rt.cursor + 1);
        let cpu = mask.iter_wrapping_from(start).next().expect("a mask that is not empty");
        self.rq[cx.this_cpu].rt.cursor = cpu.0;
        cpu
    }

    /// `select_task_rq_rt()`: the CPU on which a real-time task wakes that was last on `cpu`.
    pub(crate) fn select_task_rq_rt(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        _flags: u32,
        cx: &Context,
    ) -> CpuId {
        let curr = self.rq[cpu].curr;
        let prio = self.tasks[task].prio;
        let rt_task = match self.tasks[curr].class {
            Class::Rt | Class::Stop => true,
            Class::Deadline => cx.config.rt_task == RtTask::OrDeadline,
            Class::Fair | Class::Ext | Class::Idle => false,
        };
        let occupied =
            rt_task && (self.tasks[curr].nr_cpus_allowed < 2 || self.tasks[curr].prio <= prio);
        if !occupied && self.rt_task_fits_capacity(task, cpu, cx) {
            return cpu;
        }
        match self.find_lowest_rq(task, cx) {
            // Only a larger CPU was wanted, and this is none.
            Some(target) if !occupied && !self.rt_task_fits_capacity(task, target, cx) => cpu,
            Some(target) if prio < self.rq[target].rt.highest_prio() => target,
            _ => cpu,
        }
    }

    /// `rto_next_cpu()`: the next overloaded CPU of the round, ascending; at the end another round if one
    /// has been asked for meanwhile. Never the executing CPU, where the release leaves it out. Every request begins at most one round, and
    /// a round passes each CPU once, so it ends.
    fn rto_next_cpu(&mut self, cx: &Context) -> Option<CpuId> {
        loop {
            let mut from = self.rd.rto_cpu.map_or(0, |last| last.index() + 1);
            while let Some(cpu) = self.rd.rto_mask.next_from(from) {
                self.rd.rto_cpu = Some(cpu);
                if cpu != cx.this_cpu || cx.config.rto_next_cpu == RtoNextCpu::Any {
                    return Some(cpu);
                }
                from = cpu.index() + 1;
            }
            self.rd.rto_cpu = None;
            if self.rd.rto_loop == self.rd.rto_loop_next {
                return None;
            }
            self.rd.rto_loop = self.rd.rto_loop_next;
        }
    }

    /// `tell_cpu_to_push()`: sends one interrupt round the overloaded CPUs, or has the one that is under way
    /// go round again.
    fn tell_cpu_to_push(&mut self, cpuidle: &mut Cpuidle, cx: &mut Context) {
        self.rd.rto_loop_next += 1;
        if self.rd.rto_cpu.is_none()
            && let Some(first) = self.rto_next_cpu(cx)
        {
            self.send_ipi(first, IpiKind::IrqWork, cpuidle, cx);
        }
    }
}

impl Kernel {
    #[inline(never)]
    pub(crate) fn enqueue_task_rt(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        let prio = self.sched.tasks[task].prio;
        let rt = &mut self.sched.rq[cpu].rt;
        let before = rt.nr_running() as u32;
        let kept = rt.kept_place.take();
        let at = match kept {
            Some(place) => place,
            None if flags & ENQUEUE_HEAD != 0 => rt.queue.partition_point(|e| e.0 < prio),
            None => rt.queue.partition_point(|e| e.0 <= prio),
        };
        // inc_rt_prio_smp(): a new highest one counts, even over a deadline entity. One that kept its place beside others is
        // not new.
        if prio < rt.highest_prio() && (kept.is_none() || rt.queue.is_empty()) {
            rt.cpupri = convert_prio(prio);
        }
        rt.queue.change(cpu, &mut self.sched.stale_demands, |queue| queue.insert(at, (prio, task)));
        self.sched.update_rt_migration(cpu, &self.cx);
        self.sched.start_rt_bandwidth(&mut self.time, &mut self.cx);
        self.recount_rt_tasks(cpu, before);
        if self.sched.rq[cpu].curr != task && self.sched.tasks[task].nr_cpus_allowed > 1 {
            self.sched.enqueue_pushable_task(cpu, task, &self.cx);
        }
    }

    #[inline(never)]
    pub(crate) fn dequeue_task_rt(&mut self, cpu: CpuId, task: TaskId, flags: u32) -> bool {
        self.update_curr_rt(cpu);
        let rt = &mut self.sched.rq[cpu].rt;
        let before = rt.nr_running() as u32;
        let highest = rt.highest_prio();
        let at = rt.queue.iter().position(|e| e.1 == task).expect("a queued RT task");
        rt.queue.change(cpu, &mut self.sched.stale_demands, |queue| queue.remove(at));
        rt.kept_place = (!move_entity(flags)).then_some(at);
        // dec_rt_prio(): its place still counts while others are queued.
        if rt.highest_prio() != highest && (move_entity(flags) || rt.queue.is_empty()) {
            rt.cpupri = convert_prio(rt.highest_prio());
        }
        self.sched.update_rt_migration(cpu, &self.cx);
        self.recount_rt_tasks(cpu, before);
        self.sched.dequeue_pushable_task(cpu, task, &self.cx);
        true
    }

    /// `dequeue_top_rt_rq()`, `enqueue_top_rt_rq()`: all RT tasks leave the count together and come back
    /// together, and the governor is told; a throttled queue does neither.
    fn recount_rt_tasks(&mut self, cpu: CpuId, before: u32) {
        let rt = &self.sched.rq[cpu].rt;
        if *rt.throttled {
            return;
        }
        let now = rt.nr_running() as u32;
        self.sched.sub_nr_running(cpu, before);
        self.sched.add_nr_running(cpu, now);
        self.cpufreq_update_util(cpu, CLASS_QUEUE);
    }

    pub(crate) fn update_curr_rt(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        if self.sched.tasks[curr].class != Class::Rt {
            return;
        }
        let clock_task = self.sched.rq[cpu].clock_task;
        let delta = clock_task as i64 - self.sched.rq[cpu].rt.exec_start as i64;
        if delta > 0 {
            self.cpufreq_trigger_update(cpu);
            self.sched.rq[cpu].rt.exec_start = clock_task;
            let se = self.sched.tasks[curr].se;
            self.sched.se[se].sum_exec_runtime += delta as u64;
            self.account_rt_time(cpu, delta as u64);
        }
    }

    /// `put_prev_task_rt()`.
    pub(crate) fn put_prev_task_rt(&mut self, cpu: CpuId, prev: TaskId, _next: TaskId) {
        self.update_curr_rt(cpu);
        self.sched.update_rt_rq_load_avg(cpu, true);
        let queued = self.sched.rq[cpu].rt.queue.iter().any(|e| e.1 == prev);
        if queued && self.sched.tasks[prev].nr_cpus_allowed > 1 {
            self.sched.enqueue_pushable_task(cpu, prev, &self.cx);
        }
    }

    #[inline(never)]
    pub(crate) fn task_tick_rt(&mut self, cpu: CpuId, curr: TaskId) {
        self.update_curr_rt(cpu);
        self.sched.update_rt_rq_load_avg(cpu, true);
        if self.sched.tasks[curr].policy != Policy::Rr {
            return;
        }
        let full = self.cx.rr_time_slice();
        let t = &mut self.sched.tasks[curr];
        t.rr_time_slice = t.rr_time_slice.saturating_sub(1);
        if t.rr_time_slice > 0 {
            return;
        }
        t.rr_time_slice = full;
        let prio = t.prio;
        if self.sched.rq[cpu].rt.queue.iter().filter(|e| e.0 == prio).count() > 1 {
            self.sched.requeue_task_rt(cpu, curr, false);
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `push_rt_task()`; whether something was (or has to be) done.
    fn push_rt_task(&mut self, cpu: CpuId) -> bool {
        if !self.sched.rd.rto_mask.contains(cpu) {
            return false;
        }
        let Some(&(_, next)) = self.sched.rq[cpu].rt.pushable.first() else { return false };
        let curr = self.sched.rq[cpu].curr;
        if self.sched.tasks[next].prio < self.sched.tasks[curr].prio {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            return false;
        }
        let Some(target) = self.sched.find_lowest_rq(next, &self.cx) else { return false };
        if target == cpu || self.sched.rq[target].rt.highest_prio() <= self.sched.tasks[next].prio {
            return false;
        }
        self.move_queued_task(next, cpu, target);
        self.sched.resched_curr(target, &mut self.cpuidle, &mut self.cx);
        true
    }

    /// `deactivate_task()`, `set_task_cpu()` and `activate_task()` of a waiting task, by push or pull.
    pub(crate) fn move_queued_task(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let cost = self.cx.platform.device_tree.path_costs.migrate_task;
        self.sched.charge(cost, &mut self.cx);
        self.sched.update_rq_clock(from, &self.cx);
        self.deactivate_task(from, task, crate::sched::core::DEQUEUE_NOCLOCK);
        self.set_task_cpu(task, to);
        self.activate_task(to, task, 0);
    }

    /// `push_rt_tasks()`.
    pub(crate) fn push_rt_tasks(&mut self, cpu: CpuId) {
        // Each turn moves a task away, so the queue's length bounds the turns.
        while self.push_rt_task(cpu) {}
    }

    /// `task_woken_rt()`.
    pub(crate) fn task_woken_rt(&mut self, cpu: CpuId, task: TaskId) {
        let curr = self.sched.rq[cpu].curr;
        let push = curr != task
            && !self.sched.rq[cpu].need_resched
            && self.sched.tasks[task].nr_cpus_allowed > 1
            && self.sched.tasks[curr].class >= Class::Rt
            && (self.sched.tasks[curr].nr_cpus_allowed < 2
                || self.sched.tasks[curr].prio <= self.sched.tasks[task].prio);
        if push {
            self.push_rt_tasks(cpu);
        }
    }

    /// `balance_rt()`: before something lower runs, overloaded CPUs are asked to push. Whether an RT (or
    /// higher) task is runnable here.
    pub(crate) fn balance_rt(&mut self, cpu: CpuId, prev: TaskId) -> bool {
        let t = &self.sched.tasks[prev];
        let on_rt_rq = t.class == Class::Rt && t.on_rq == OnRq::Queued;
        if !on_rt_rq && self.sched.rq[cpu].rt.highest_prio() > self.sched.tasks[prev].prio {
            self.pull_rt_task(cpu);
        }
        let rq = &self.sched.rq[cpu];
        rq.stop_queued || rq.dl_nr_running() > 0 || rq.rt.nr_running() > 0
    }

    /// `pull_rt_task()`.
    fn pull_rt_task(&mut self, cpu: CpuId) {
        let mut others = self.sched.rd.rto_mask;
        others.remove(cpu);
        if others.is_empty() {
            return;
        }
        if self.cx.config.features.rt_push_ipi {
            self.sched.tell_cpu_to_push(&mut self.cpuidle, &mut self.cx);
            return;
        }
        for src in others.iter() {
            let Some(&(next_prio, _)) = self.sched.rq[src].rt.pushable.first() else { continue };
            if next_prio >= self.sched.rq[cpu].rt.highest_prio() {
                continue;
            }
            let allowed = |e: &&(i32, TaskId)| self.sched.tasks[e.1].cpus_mask.contains(cpu);
            let Some(&(prio, task)) = self.sched.rq[src].rt.pushable.iter().find(allowed) else {
                continue;
            };
            let src_curr = self.sched.rq[src].curr;
            // One that is better than what runs there has only just been woken.
            if prio < self.sched.rq[cpu].rt.highest_prio()
                && prio >= self.sched.tasks[src_curr].prio
            {
                self.move_queued_task(task, src, cpu);
            }
        }
    }

    /// `rto_push_irq_work_func()`: the interrupt has come to `cpu`, which pushes and passes it on.
    pub(crate) fn rto_push_irq_work(&mut self, cpu: CpuId) {
        self.push_rt_tasks(cpu);
        if let Some(next) = self.sched.rto_next_cpu(&self.cx) {
            self.sched.send_ipi(next, IpiKind::IrqWork, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `switched_from_rt()`: a queued task has left the class. If no other is left, others may come.
    pub(crate) fn switched_from_rt(&mut self, cpu: CpuId, task: TaskId) {
        if self.sched.tasks[task].on_rq == OnRq::Queued && self.sched.rq[cpu].rt.queue.is_empty() {
            self.pull_rt_task(cpu);
        }
    }

    /// `prio_changed_rt()` of the running task: a lower one may have to give way, or bring others here.
    pub(crate) fn prio_changed_rt(&mut self, cpu: CpuId, task: TaskId, old_prio: i32) {
        let prio = self.sched.tasks[task].prio;
        if old_prio < prio {
            self.pull_rt_task(cpu);
        }
        if prio > self.sched.rq[cpu].rt.highest_prio() {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }
}
