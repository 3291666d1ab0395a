//! The real-time class: fixed priorities, first in first out, pushed and pulled between CPUs.
//!
//! **Idea.** The highest-priority tasks of the whole machine should run. A CPU that has more than one RT task
//! pushes the others away; a CPU that is about to run something lower asks overloaded CPUs to push.
//!
//! Kernel: 6.12.95 kernel/sched/rt.c, cpupri.c.
//! Differences: no RT throttling (6.12 has none without RT_GROUP_SCHED); uclamp is not modelled, so RT tasks
//! do not look for big CPUs; `cpupri` is a scan of the CPUs' priorities, not a structure of its own.
//! References: kernel behaviour notes 11 §2.

use crate::sched::core::ENQUEUE_HEAD;
use crate::sched::topology::SD_WAKE_AFFINE;
use crate::sched::{pelt, Class, OnRq};
use crate::Kernel;
use schedtwin_types::{CpuId, CpuMask, IpiKind, Policy, TaskId};

/// No RT task: lower than every RT priority.
const PRIO_NONE: i32 = 99;

/// `struct rt_rq`.
#[derive(Clone, Debug, Default)]
pub struct RtRq {
    /// Queued tasks: by priority, first come first served within one. The running one is among them.
    queue: Vec<(i32, TaskId)>,
    /// Where the rotating search for a CPU stands (`local_cpu_mask_dl` cursor).
    cursor: u16,
    /// A push to others is due after the switch.
    push_pending: bool,
    /// `exec_start` of the running RT task.
    exec_start: u64,
}

impl RtRq {
    /// `highest_prio.curr`.
    #[inline]
    fn highest_prio(&self) -> i32 {
        self.queue.first().map_or(PRIO_NONE, |e| e.0)
    }

    /// Number of queued tasks.
    pub fn nr_running(&self) -> usize {
        self.queue.len()
    }
}

impl Kernel {
    /// Full time slice of a `SCHED_RR` task: 100 ms in ticks.
    pub(crate) fn rr_time_slice(&self) -> u32 {
        100 * self.config.hz / 1000
    }

    /// The highest-priority task that could run elsewhere.
    fn pick_pushable(&self, cpu: CpuId) -> Option<TaskId> {
        let curr = self.rq[cpu].curr;
        let queue = &self.rq[cpu].rt.queue;
        queue.iter().map(|e| e.1).find(|&t| t != curr && self.tasks[t].nr_cpus_allowed > 1)
    }

    /// Keeps `rd.rto_mask` (CPUs with pushable tasks) in step.
    fn refresh_rto(&mut self, cpu: CpuId) {
        if self.rq[cpu].rt.queue.len() > 1 && self.pick_pushable(cpu).is_some() {
            self.rd.rto_mask.insert(cpu);
        } else {
            self.rd.rto_mask.remove(cpu);
        }
    }

    pub(crate) fn enqueue_task_rt(&mut self, cpu: CpuId, task: TaskId, flags: u32) {
        let prio = self.tasks[task].prio;
        let queue = &mut self.rq[cpu].rt.queue;
        let at = if flags & ENQUEUE_HEAD != 0 {
            queue.partition_point(|e| e.0 < prio)
        } else {
            queue.partition_point(|e| e.0 <= prio)
        };
        queue.insert(at, (prio, task));
        self.add_nr_running(cpu, 1);
        self.refresh_rto(cpu);
        self.cpufreq_update_util(cpu, 0);
    }

    pub(crate) fn dequeue_task_rt(&mut self, cpu: CpuId, task: TaskId) -> bool {
        self.update_curr_rt(cpu);
        let queue = &mut self.rq[cpu].rt.queue;
        let at = queue.iter().position(|e| e.1 == task).expect("a queued RT task");
        queue.remove(at);
        self.sub_nr_running(cpu, 1);
        self.refresh_rto(cpu);
        self.cpufreq_update_util(cpu, 0);
        true
    }

    fn update_curr_rt(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr;
        if self.tasks[curr].class != Class::Rt {
            return;
        }
        let clock_task = self.rq[cpu].clock_task;
        let delta = clock_task as i64 - self.rq[cpu].rt.exec_start as i64;
        if delta > 0 {
            self.rq[cpu].rt.exec_start = clock_task;
            let se = self.tasks[curr].se;
            self.se[se].sum_exec_runtime += delta as u64;
        }
    }

    pub(crate) fn pick_task_rt(&self, cpu: CpuId) -> Option<TaskId> {
        self.rq[cpu].rt.queue.first().map(|e| e.1)
    }

    pub(crate) fn set_next_task_rt(&mut self, cpu: CpuId, prev: TaskId, _next: TaskId) {
        let clock_task = self.rq[cpu].clock_task;
        self.rq[cpu].rt.exec_start = clock_task;
        if self.tasks[prev].class != Class::Rt {
            let now = self.rq_clock_pelt(cpu);
            pelt::update_rt_rq_load_avg(now, &mut self.rq[cpu].avg_rt, false);
        }
        self.rq[cpu].rt.push_pending = self.rq[cpu].rt.queue.len() > 1;
    }

    pub(crate) fn put_prev_task_rt(&mut self, cpu: CpuId, prev: TaskId, _next: TaskId) {
        self.update_curr_rt(cpu);
        let now = self.rq_clock_pelt(cpu);
        pelt::update_rt_rq_load_avg(now, &mut self.rq[cpu].avg_rt, true);
        let _ = prev;
        self.refresh_rto(cpu);
    }

    pub(crate) fn task_tick_rt(&mut self, cpu: CpuId, curr: TaskId) {
        self.update_curr_rt(cpu);
        let now = self.rq_clock_pelt(cpu);
        pelt::update_rt_rq_load_avg(now, &mut self.rq[cpu].avg_rt, true);
        if self.tasks[curr].policy != Policy::Rr {
            return;
        }
        let full = self.rr_time_slice();
        let t = &mut self.tasks[curr];
        t.rr_time_slice = t.rr_time_slice.saturating_sub(1);
        if t.rr_time_slice > 0 {
            return;
        }
        t.rr_time_slice = full;
        let prio = t.prio;
        if self.rq[cpu].rt.queue.iter().filter(|e| e.0 == prio).count() > 1 {
            self.requeue_task_rt(cpu, curr, false);
            self.resched_curr(cpu);
        }
    }

    /// `requeue_task_rt()`: to the head or tail of its priority.
    fn requeue_task_rt(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        let queue = &mut self.rq[cpu].rt.queue;
        let at = queue.iter().position(|e| e.1 == task).expect("a queued RT task");
        let entry = queue.remove(at);
        let to = if head {
            queue.partition_point(|e| e.0 < entry.0)
        } else {
            queue.partition_point(|e| e.0 <= entry.0)
        };
        queue.insert(to, entry);
    }

    pub(crate) fn yield_task_rt(&mut self, cpu: CpuId) {
        let curr = self.rq[cpu].curr;
        self.requeue_task_rt(cpu, curr, false);
    }

    pub(crate) fn wakeup_preempt_rt(&mut self, cpu: CpuId, task: TaskId) {
        let curr = self.rq[cpu].curr;
        let (prio, curr_prio) = (self.tasks[task].prio, self.tasks[curr].prio);
        if prio < curr_prio {
            self.resched_curr(cpu);
        } else if prio == curr_prio && !self.rq[cpu].need_resched {
            // check_preempt_equal_prio(): let the pinned one have the CPU if curr has somewhere to go.
            if self.tasks[curr].nr_cpus_allowed == 1 || self.lowest_mask(curr).is_empty() {
                return;
            }
            if self.tasks[task].nr_cpus_allowed != 1 && !self.lowest_mask(task).is_empty() {
                return;
            }
            self.requeue_task_rt(cpu, task, true);
            self.resched_curr(cpu);
        }
    }

    /// `cpupri` level of a CPU: 100 with a deadline entity, 99 − prio for its highest RT task, 0 without.
    fn cpupri(&self, cpu: CpuId) -> i32 {
        if self.rq[cpu].fair_server.is_queued() {
            return 100;
        }
        match self.rq[cpu].rt.highest_prio() {
            PRIO_NONE => 0,
            prio => 99 - prio,
        }
    }

    /// `cpupri_find()`: the allowed CPUs of the lowest level below the task's own.
    fn lowest_mask(&self, task: TaskId) -> CpuMask {
        let own = 99 - self.tasks[task].prio;
        let mut best = own;
        let mut mask = CpuMask::EMPTY;
        for cpu in self.tasks[task].cpus_mask.iter() {
            let level = self.cpupri(cpu);
            if level < best {
                best = level;
                mask = CpuMask::EMPTY;
            }
            if level == best && best < own {
                mask.insert(cpu);
            }
        }
        mask
    }

    /// `find_lowest_rq()`.
    fn find_lowest_rq(&mut self, task: TaskId) -> Option<CpuId> {
        if self.tasks[task].nr_cpus_allowed == 1 {
            return None;
        }
        let mask = self.lowest_mask(task);
        if mask.is_empty() {
            return None;
        }
        let task_cpu = self.tasks[task].cpu;
        if mask.contains(task_cpu) {
            return Some(task_cpu);
        }
        let this = self.this_cpu;
        let mut level = self.topology.base[task_cpu.index()];
        while let Some(id) = level {
            let sd = &self.topology.domains[id.0 as usize];
            if sd.flags & SD_WAKE_AFFINE != 0 {
                let near = mask.and(&sd.span);
                if near.contains(this) {
                    return Some(this);
                }
                if !near.is_empty() {
                    return Some(self.distribute(near));
                }
            }
            level = sd.parent;
        }
        if mask.contains(this) { Some(this) } else { Some(self.distribute(mask)) }
    }

    /// `cpumask_any_and_distribute()`: the next CPU after this CPU's cursor.
    fn distribute(&mut self, mask: CpuMask) -> CpuId {
        let start = CpuId(self.rq[self.this_cpu].rt.cursor + 1);
        let cpu = mask.iter_wrapping_from(start).next().expect("a mask that is not empty");
        self.rq[self.this_cpu].rt.cursor = cpu.0;
        cpu
    }

    pub(crate) fn select_task_rq_rt(&mut self, task: TaskId, cpu: CpuId, _flags: u32) -> CpuId {
        let curr = self.rq[cpu].curr;
        let prio = self.tasks[task].prio;
        let occupied = self.tasks[curr].class >= Class::Rt
            && (self.tasks[curr].nr_cpus_allowed < 2 || self.tasks[curr].prio <= prio);
        if occupied
            && let Some(target) = self.find_lowest_rq(task)
            && prio < self.rq[target].rt.highest_prio()
        {
            return target;
        }
        cpu
    }

    /// `push_rt_task()`; whether something was (or has to be) done.
    fn push_rt_task(&mut self, cpu: CpuId) -> bool {
        let Some(next) = self.pick_pushable(cpu) else { return false };
        let curr = self.rq[cpu].curr;
        if self.tasks[next].prio < self.tasks[curr].prio {
            self.resched_curr(cpu);
            return false;
        }
        let Some(target) = self.find_lowest_rq(next) else { return false };
        if target == cpu || self.rq[target].rt.highest_prio() <= self.tasks[next].prio {
            return false;
        }
        self.move_rt_task(next, cpu, target);
        self.resched_curr(target);
        true
    }

    fn move_rt_task(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let cost = self.device_tree.path_costs.migrate_task;
        self.charge(cost);
        self.update_rq_clock(from);
        self.deactivate_task(from, task, crate::sched::core::DEQUEUE_NOCLOCK);
        self.set_task_cpu(task, to);
        self.activate_task(to, task, 0);
    }

    fn push_rt_tasks(&mut self, cpu: CpuId) {
        // Each turn moves a task away, so the queue's length bounds the turns.
        while self.push_rt_task(cpu) {}
    }

    /// Balance callbacks of the RT class, after the switch.
    pub(crate) fn balance_callbacks_rt(&mut self, cpu: CpuId) {
        if std::mem::take(&mut self.rq[cpu].rt.push_pending) {
            self.push_rt_tasks(cpu);
        }
    }

    /// `task_woken_rt()`.
    pub(crate) fn task_woken_rt(&mut self, cpu: CpuId, task: TaskId) {
        let curr = self.rq[cpu].curr;
        let push = curr != task
            && !self.rq[cpu].need_resched
            && self.tasks[task].nr_cpus_allowed > 1
            && self.tasks[curr].class >= Class::Rt
            && (self.tasks[curr].nr_cpus_allowed < 2
                || self.tasks[curr].prio <= self.tasks[task].prio);
        if push {
            self.push_rt_tasks(cpu);
        }
    }

    /// `balance_rt()`: before something lower runs, overloaded CPUs are asked to push. Whether an RT (or
    /// higher) task is runnable here.
    pub(crate) fn balance_rt(&mut self, cpu: CpuId, prev: TaskId) -> bool {
        let gone = self.tasks[prev].on_rq != OnRq::Queued;
        if gone && self.rq[cpu].rt.highest_prio() > self.tasks[prev].prio {
            self.pull_rt_task(cpu);
        }
        self.rq[cpu].stop_queued
            || self.rq[cpu].fair_server.is_queued()
            || self.rq[cpu].rt.nr_running() > 0
    }

    /// `pull_rt_task()`.
    fn pull_rt_task(&mut self, cpu: CpuId) {
        let mut others = self.rd.rto_mask;
        others.remove(cpu);
        if others.is_empty() {
            return;
        }
        if self.config.features.rt_push_ipi {
            // tell_cpu_to_push(): the interrupt goes round the overloaded CPUs, ascending.
            if let Some(first) = others.lowest() {
                self.send_ipi(first, IpiKind::IrqWork);
            }
            return;
        }
        for src in others.iter() {
            let Some(task) = self.pick_pushable(src) else { continue };
            let src_curr = self.rq[src].curr;
            let prio = self.tasks[task].prio;
            if prio < self.rq[cpu].rt.highest_prio() && prio >= self.tasks[src_curr].prio {
                self.move_rt_task(task, src, cpu);
            }
        }
    }

    /// `rto_push_irq_work_func()`.
    pub(crate) fn rto_push_irq_work(&mut self, cpu: CpuId) {
        self.update_rq_clock(cpu);
        self.push_rt_tasks(cpu);
        if let Some(next) = self.rd.rto_mask.next_from(cpu.index() + 1) {
            self.send_ipi(next, IpiKind::IrqWork);
        }
    }
}
