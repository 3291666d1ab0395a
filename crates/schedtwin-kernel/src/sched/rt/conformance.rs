// SPDX-License-Identifier: GPL-2.0-or-later
//! Single steps of the RT class on a whole machine, for the differential test against the kernel's own C (`conformance/`, L0
//! `rt`).
//!
//! Each step passes on to the functions that it names, in the order in which the core calls them. Fair and deadline tasks only
//! run and end: their classes do nothing here. Nothing else uses this, and it decides nothing.

use super::RtRq;
use crate::Kernel;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, DEQUEUE_SLEEP, ENQUEUE_HEAD, ENQUEUE_NOCLOCK,
    ENQUEUE_RESTORE, ENQUEUE_WAKEUP, WF_TTWU,
};
use crate::sched::deadline::DlNode;
use crate::sched::demand::uclamp::UclampRequest;
use crate::sched::topology::SD_WAKE_AFFINE;
use crate::sched::{Class, OnRq, TaskKind};
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{CpuId, CpuMask, IpiKind, NEVER, Ns, Policy, TaskId};

/// The RT class of a machine. The caller's CPU and the time are those of the last [`RtSteps::enter`].
pub struct RtSteps<'a>(pub &'a mut Kernel);

/// A CPU's part of the class.
pub struct RtState {
    /// Queued tasks, best first.
    pub queue: Vec<TaskId>,
    /// Pushable ones, best first.
    pub pushable: Vec<TaskId>,
    /// `cpupri`.
    pub level: i32,
    /// `rt_throttled`.
    pub throttled: bool,
    /// `rt_time`.
    pub time: Ns,
}

impl RtSteps<'_> {
    /// Enters the kernel on `cpu` at `now`.
    pub fn enter(&mut self, now: Ns, cpu: CpuId) {
        (self.0.cx.now, self.0.cx.this_cpu, self.0.cx.debt) = (now, cpu, 0);
    }

    fn cpu(&self) -> CpuId {
        self.0.cx.this_cpu
    }

    fn curr(&self) -> TaskId {
        self.0.sched.rq[self.cpu()].curr
    }

    fn update_clock(&mut self) {
        self.0.sched.update_rq_clock(self.cpu(), &self.0.cx);
    }

    /// Makes a task of any class that is not queued, but can be the running one.
    pub fn new_task_of(
        &mut self,
        cpu: CpuId,
        class: Class,
        prio: i32,
        policy: Policy,
        mask: CpuMask,
    ) -> TaskId {
        let task = self.0.new_task(None, TaskKind::User);
        let t = &mut self.0.sched.tasks[task];
        (t.cpu, t.class, t.prio, t.policy) = (cpu, class, prio, policy);
        (t.cpus_mask, t.nr_cpus_allowed) = (mask, mask.weight());
        // A deadline task that is never charged.
        (t.dl.deadline, t.dl.special) = (1 << 40, true);
        task
    }

    /// Gives a task a lower clamp.
    pub fn clamp(&mut self, task: TaskId, min: u16) {
        self.0.sched.tasks[task].uclamp_req = UclampRequest { min: Some(min), max: None };
    }

    /// `try_to_wake_up()`.
    pub fn wake(&mut self, task: TaskId) {
        let k = &mut *self.0;
        let (cpu, allowed) = (k.sched.tasks[task].cpu, k.sched.tasks[task].nr_cpus_allowed);
        let cpu =
            if allowed > 1 { k.sched.select_task_rq_rt(task, cpu, WF_TTWU, &k.cx) } else { cpu };
        k.set_task_cpu(task, cpu);
        k.sched.update_rq_clock(cpu, &k.cx);
        k.activate_task(cpu, task, ENQUEUE_WAKEUP | ENQUEUE_NOCLOCK);
        k.wakeup_preempt(cpu, task, WF_TTWU);
        k.task_woken_rt(cpu, task);
    }

    /// `schedule()`; the running task `sleeps`. `lower` runs if no class above has a task.
    pub fn schedule(&mut self, sleeps: bool, lower: TaskId) {
        let (cpu, prev) = (self.cpu(), self.curr());
        self.update_clock();
        let k = &mut *self.0;
        let prev_class = k.sched.tasks[prev].class;
        if sleeps && prev_class == Class::Rt {
            k.dequeue_task(cpu, prev, DEQUEUE_SLEEP | DEQUEUE_NOCLOCK);
            k.sched.tasks[prev].on_rq = OnRq::No;
        }
        if !(prev_class >= Class::Deadline && k.balance_dl(cpu, prev)) && prev_class >= Class::Rt {
            k.balance_rt(cpu, prev);
        }
        k.charge_before_pick(cpu, prev);
        let next = match k.sched.pick_next_dl_entity(cpu) {
            Some(DlNode::Task(next)) => next,
            _ => k.sched.pick_task_rt(cpu).unwrap_or(lower),
        };
        if next != prev {
            if prev_class == Class::Rt {
                k.put_prev_task_rt(cpu, prev, next);
            }
            if k.sched.tasks[next].class == Class::Rt {
                k.sched.set_next_task_rt(cpu, prev, next, true, &k.cx);
            }
        } else if prev_class == Class::Rt {
            k.put_prev_set_next_task(cpu, prev, next);
        }
        let class = k.sched.tasks[next].class;
        let rq = &mut k.sched.rq[cpu];
        (rq.need_resched, rq.next_class, rq.curr) = (false, class, next);
        k.balance_callbacks(cpu);
    }

    /// A task that has left the class sleeps, and is one of it again.
    pub fn rejoin_asleep(&mut self, task: TaskId, prio: i32, policy: Policy) {
        let t = &mut self.0.sched.tasks[task];
        (t.class, t.prio, t.policy, t.on_rq) = (Class::Rt, prio, policy, OnRq::No);
    }

    /// `task_tick_rt()`, so many times.
    pub fn ticks(&mut self, count: u64) {
        self.update_clock();
        let (cpu, curr) = (self.cpu(), self.curr());
        for _ in 0..count {
            self.0.task_tick_rt(cpu, curr);
        }
    }

    /// `yield_task_rt()`.
    pub fn yield_task(&mut self) {
        self.update_clock();
        let cpu = self.cpu();
        self.0.sched.yield_task_rt(cpu);
    }

    /// Takes the running task off, changes it, and puts it back, as `sched_setaffinity()` and
    /// `__sched_setscheduler()` do.
    fn change(&mut self, moves: u32, head: u32, change: impl FnOnce(&mut crate::sched::Task)) {
        self.update_clock();
        let (cpu, task) = (self.cpu(), self.curr());
        let k = &mut *self.0;
        if k.sched.tasks[task].class == Class::Rt {
            k.dequeue_task(cpu, task, DEQUEUE_SAVE | moves | DEQUEUE_NOCLOCK);
            k.put_running(cpu, task);
        }
        change(&mut k.sched.tasks[task]);
        if k.sched.tasks[task].class == Class::Rt {
            k.enqueue_task(cpu, task, ENQUEUE_RESTORE | moves | ENQUEUE_NOCLOCK | head);
            k.set_running(cpu, task);
        }
    }

    /// `sched_setaffinity()` of the running task, whose CPU stays among its own.
    pub fn set_affinity(&mut self, mask: CpuMask) {
        self.change(0, 0, |t| {
            (t.cpus_mask, t.nr_cpus_allowed) = (mask, mask.weight());
        });
        self.0.balance_callbacks(self.cpu());
    }

    /// `sched_setscheduler()` of the running task to the class; it may have left that before.
    pub fn set_priority(&mut self, prio: i32, policy: Policy) {
        let (cpu, task) = (self.cpu(), self.curr());
        let (old, class) = (self.0.sched.tasks[task].prio, self.0.sched.tasks[task].class);
        let moves = if prio != old || class != Class::Rt { DEQUEUE_MOVE } else { 0 };
        let head = if old < prio { ENQUEUE_HEAD } else { 0 };
        self.change(moves, head, |t| {
            (t.class, t.prio, t.policy) = (Class::Rt, prio, policy);
        });
        self.0.check_class_changed(cpu, task, (class, old), 0);
        self.0.balance_callbacks(cpu);
    }

    /// `sched_setscheduler()` of the running task to the fair class.
    pub fn leave(&mut self) {
        let (cpu, task) = (self.cpu(), self.curr());
        let old = self.0.sched.tasks[task].prio;
        self.change(DEQUEUE_MOVE, 0, |t| {
            (t.class, t.prio, t.policy) = (Class::Fair, 120, Policy::Normal);
        });
        let k = &mut *self.0;
        k.check_class_changed(cpu, task, (Class::Rt, old), 0);
        k.balance_callbacks(cpu);
    }

    /// `rto_push_irq_work_func()`: the interrupt arrives.
    pub fn push_interrupt(&mut self) {
        let cpu = self.cpu();
        self.0.cx.platform.wires[cpu].ipi_at[IpiKind::IrqWork as usize] = NEVER;
        self.0.rto_push_irq_work(cpu);
    }

    /// The CPUs to which the interrupt is under way.
    pub fn push_interrupts(&self) -> CpuMask {
        let pending =
            |cpu: &CpuId| self.0.cx.platform.wires[*cpu].ipi_at[IpiKind::IrqWork as usize] != NEVER;
        self.0.sched.rd.span.iter().filter(pending).collect()
    }

    /// A deadline task is queued, or leaves.
    pub fn deadline(&mut self, task: TaskId, queued: bool) {
        self.update_clock();
        let cpu = self.cpu();
        let k = &mut *self.0;
        k.sched.tasks[task].dl.queued = queued;
        if queued {
            k.sched.insert_dl_entity(cpu, DlNode::Task(task), &k.cx);
            k.wakeup_preempt(cpu, task, WF_TTWU);
        } else {
            k.sched.remove_dl_entity(cpu, DlNode::Task(task), &k.cx);
            k.sched.resched_curr(cpu, &mut k.cpuidle, &mut k.cx);
        }
    }

    /// `find_lowest_rq()`.
    pub fn find_lowest_rq(&mut self, task: TaskId) -> Option<CpuId> {
        self.0.sched.find_lowest_rq(task, &self.0.cx)
    }

    /// Whether the timer that forgives throttled queues runs, and when it is or would be due.
    pub fn period_timer(&self) -> (bool, Ns) {
        self.0.sched.rd.rt_period.opened()
    }

    /// `sched_rt_period_timer()`.
    pub fn period(&mut self) {
        let expires = self.period_timer().1;
        for cpu in self.0.sched.rd.span.iter() {
            self.0.time.hrtimer_cancel(cpu, TimerKind::RtPeriod, &mut self.0.cx);
        }
        self.0.sched_rt_period_timer(expires);
    }

    /// Returns what the class keeps of a CPU.
    pub fn state(&self, cpu: CpuId) -> RtState {
        let RtRq { queue, pushable, cpupri, rt_time, throttled, .. } = &self.0.sched.rq[cpu].rt;
        let tasks = |list: &[(i32, TaskId)]| list.iter().map(|entry| entry.1).collect();
        RtState {
            queue: tasks(queue),
            pushable: tasks(pushable),
            level: *cpupri,
            throttled: **throttled,
            time: *rt_time,
        }
    }

    /// Says of each of a CPU's domains, the smallest first, whether wakeups may stay within it.
    pub fn set_wake_affine(&mut self, cpu: CpuId, wakes: &[bool]) {
        let topology = &mut self.0.sched.topology;
        let mut level = topology.base[cpu.index()];
        for wakes in wakes {
            let Some(id) = level else { return };
            let sd = &mut topology.domains[id.0 as usize];
            sd.flags = sd.flags & !SD_WAKE_AFFINE | if *wakes { SD_WAKE_AFFINE } else { 0 };
            level = sd.parent;
        }
    }

    /// Returns the spans of a CPU's domains, the smallest first, and whether wakeups may stay within each.
    pub fn domains(&self, cpu: CpuId) -> Vec<(CpuMask, bool)> {
        let topology = &self.0.sched.topology;
        let up = |id: &crate::sched::topology::DomainId| topology.domains[id.0 as usize].parent;
        std::iter::successors(topology.base[cpu.index()], up)
            .map(|id| &topology.domains[id.0 as usize])
            .map(|sd| (sd.span, sd.flags & SD_WAKE_AFFINE != 0))
            .collect()
    }
}
