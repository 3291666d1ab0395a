// SPDX-License-Identifier: GPL-2.0-or-later
//! Clamps, step by step from outside, for comparisons with the kernel's own C (`conformance/`, L0 `uclamp`,
//! `uclamp-sum`). Nothing else uses this interface, and it decides nothing.
//!
//! A task's class is left out of its enqueue and dequeue: the comparison says whether a dequeue is
//! delayed.

use super::max::{self, Clamps};
use super::sum::TaskSums;
use super::{RqClamps, UclampRequest, gives_clamps};
use crate::Kernel;
use crate::sched::core::ENQUEUE_DELAYED;
use crate::sched::demand::fits::{Fits, TaskDemand};
use crate::sched::{CfsRqId, Class, OnRq, fair, pelt};
use schedtwin_types::{CpuId, Policy, SchedAttr, TaskGroupId, TaskId};

/// A kernel whose tasks are queued from outside.
pub struct ClampSteps<'a>(pub &'a mut Kernel);

/// The request of a task, and its effective clamps.
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    /// `uclamp_req`.
    pub asked: Clamps,
    /// The part of that which it asked for itself (`user_defined`).
    pub request: UclampRequest,
    /// Whether a run queue counts it (`uclamp`, `active`).
    pub active: bool,
    /// `uclamp_eff_value()`.
    pub effective: Clamps,
}

/// Answers that follow from the clamps of a task and of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    /// `util_fits_cpu()` with the task's clamps: 1, 0, −1.
    pub fits_task: i64,
    /// `util_fits_cpu()` with the queue's.
    pub fits_queue: i64,
    /// `task_fits_cpu()`.
    pub task_fits: bool,
    /// `cpu_overutilized()`.
    pub overutilized: bool,
    /// `uclamp_rq_is_capped()`.
    pub capped: bool,
    /// `rt_task_fits_capacity()`.
    pub rt_fits: bool,
    /// The demand of the CPU with the task on it.
    pub demand_with: u64,
    /// Its demand if the task is nowhere.
    pub demand_without: u64,
    /// `uclamp_rq_util_with()` of the queue.
    pub util_of_queue: u64,
    /// `uclamp_rq_util_with()` of queue and task.
    pub util_with_task: u64,
}

/// `util_fits_cpu()`'s result as C has it.
fn number(fits: Fits) -> i64 {
    match fits {
        Fits::Yes => 1,
        Fits::No => 0,
        Fits::TooSlow => -1,
    }
}

impl ClampSteps<'_> {
    /// `enqueue_task()` on `cpu`; the clamps that a governor sees which the class tells. `wakes`: a task whose
    /// dequeue was delayed.
    pub fn enqueue(&mut self, cpu: CpuId, task: TaskId, wakes: bool) -> Clamps {
        let k = &mut *self.0;
        let flags = if wakes { ENQUEUE_DELAYED } else { 0 };
        k.sched.tasks[task].cpu = cpu;
        k.sched.uclamp_rq_inc_before(cpu, task, flags, &k.cx);
        let seen = k.sched.rq[cpu].uclamp.clamps();
        let t = &mut k.sched.tasks[task];
        t.on_rq = OnRq::Queued;
        if wakes {
            k.sched.se[t.se].sched_delayed = false;
        }
        k.sched.uclamp_rq_inc_after(cpu, task, flags, &k.cx);
        seen
    }

    /// `dequeue_task()`. `delays`: the class keeps it queued.
    pub fn dequeue(&mut self, task: TaskId, delays: bool) {
        let k = &mut *self.0;
        k.sched.uclamp_rq_dec(k.sched.tasks[task].cpu, task, &k.cx);
        let t = &mut k.sched.tasks[task];
        if delays {
            k.sched.se[t.se].sched_delayed = true;
        } else {
            t.on_rq = OnRq::No;
        }
    }

    /// Whether the task is queued, and whether its dequeue is delayed.
    pub fn is_queued(&self, task: TaskId) -> (bool, bool) {
        let t = &self.0.sched.tasks[task];
        (t.on_rq == OnRq::Queued, self.0.sched.se[t.se].sched_delayed)
    }

    fn changed(&mut self, task: TaskId, change: impl FnOnce(&mut Kernel)) {
        let queued = self.is_queued(task).0;
        if queued {
            self.dequeue(task, false);
        }
        change(self.0);
        if queued {
            self.enqueue(self.0.sched.tasks[task].cpu, task, false);
        }
    }

    /// `__sched_setscheduler()`: a class and perhaps clamps. Whether the clamps were accepted; if not, nothing happens.
    pub fn set_attributes(&mut self, task: TaskId, attr: &SchedAttr) -> bool {
        let accepted = self.0.sched.uclamp_validate(task, attr, &self.0.cx);
        if gives_clamps(attr) && !accepted {
            return false;
        }
        let min_before = self.0.sched.uclamp_min_request(task, &self.0.cx);
        self.changed(task, |k| {
            let t = &mut k.sched.tasks[task];
            (t.policy, t.class, t.prio) = match attr.policy {
                Policy::Fifo => (Policy::Fifo, Class::Rt, 49),
                _ => (Policy::Normal, Class::Fair, 120),
            };
            k.sched.setscheduler_uclamp(task, attr, accepted, min_before, &k.cx);
        });
        true
    }

    /// `sched_move_task()`.
    pub fn move_to(&mut self, task: TaskId, group: TaskGroupId) {
        self.changed(task, |k| k.sched.tasks[task].group = group);
    }

    /// `uclamp_fork()`: `child` becomes a copy of `parent` that is queued nowhere.
    pub fn fork(&mut self, parent: TaskId, child: TaskId) {
        let k = &mut *self.0;
        let clamps = k.sched.uclamp_of_child(parent);
        let p = k.sched.tasks[parent].clone();
        let c = &mut k.sched.tasks[child];
        (c.policy, c.class, c.prio) = (p.policy, p.class, p.prio);
        (c.cpu, c.group, c.uclamp_req, c.uclamp) = (p.cpu, p.group, p.uclamp_req, clamps);
        k.sched.se[c.se].avg = k.sched.se[p.se].avg;
    }

    /// Returns the request of a task and its effective clamps.
    pub fn task(&self, task: TaskId) -> TaskView {
        let k = &*self.0;
        TaskView {
            asked: k.sched.uclamp_request(task, &k.cx),
            request: k.sched.tasks[task].uclamp_req,
            active: k.sched.tasks[task].uclamp.active.is_some(),
            effective: k.sched.uclamp_eff_value(task, &k.cx),
        }
    }

    /// A run queue's clamps under max aggregation.
    pub fn queue(&self, cpu: CpuId) -> &max::UclampRq {
        match &*self.0.sched.rq[cpu].uclamp {
            RqClamps::Max(rq) => rq,
            RqClamps::Sum(_) => panic!("a kernel that adds up"),
        }
    }

    /// The static key.
    pub fn key(&self) -> bool {
        self.0.sched.uclamp_is_used()
    }

    /// All answers at once, of a task, a CPU and a utilisation.
    pub fn ask(&self, task: TaskId, cpu: CpuId, util: u64) -> Answers {
        let k = &*self.0;
        let fits = |Clamps { min, max }| {
            number(k.sched.fits_cpu(&TaskDemand::of_clamps(util, min, max), cpu))
        };
        Answers {
            fits_task: fits(k.sched.uclamp_eff_value(task, &k.cx)),
            fits_queue: fits(k.sched.rq[cpu].uclamp.clamps()),
            task_fits: k.task_fits_cpu(task, cpu),
            overutilized: k.sched.util_exceeds(k.sched.cpu_util_cfs(cpu, &k.cx), cpu, &k.cx),
            capped: k.sched.uclamp_rq_is_capped(cpu, &k.cx),
            rt_fits: k.sched.rq[cpu].arch_capacity >= u64::from(k.sched.rt_uclamp_min(task, &k.cx)),
            demand_with: k.sched.energy_demand(cpu, task, Some(cpu), &k.cx),
            demand_without: k.sched.energy_demand(cpu, task, None, &k.cx),
            util_of_queue: k.sched.uclamp_rq_util_with(cpu, util, None, &k.cx),
            util_with_task: k.sched.uclamp_rq_util_with(cpu, util, Some(task), &k.cx),
        }
    }
}

/// A kernel that adds clamped utilisations up, whose tasks are queued from outside.
pub struct SumSteps<'a>(pub &'a mut Kernel);

/// Why a task leaves its run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It moves to another CPU.
    Moves,
    /// It sleeps.
    Sleeps,
    /// It sleeps and stays queued.
    Delays,
    /// Its delayed dequeue happens.
    Ends,
    /// Its attributes change.
    Changes,
}

/// Answers of sum aggregation about a task and a CPU.
#[derive(Clone, Copy, Debug)]
pub struct SumAnswers {
    /// `task_fits_cpu()`.
    pub task_fits: bool,
    /// `util_fits_cpu()` of the task: 1, 0, −1.
    pub fits: i64,
    /// `cpu_overutilized()`.
    pub overutilized: bool,
    /// `task_util_est_uclamp()`.
    pub task_util: u64,
    /// `cpu_util_uclamp()` without and with boosting, for each of: the CPU as it is, with the task, without it.
    pub cpu_util: [u64; 6],
    /// `util_fits_cpu()` of the CPU with the task.
    pub fits_beside: i64,
    /// The demand of the CPU with the task on it.
    pub demand_with: u64,
    /// Its demand if the task is nowhere.
    pub demand_without: u64,
}

/// Averages with sums that fit them.
fn set_averages(avg: &mut pelt::SchedAvg, util: u64, runnable: u64) {
    let divider = pelt::get_pelt_divider(avg);
    (avg.util_avg, avg.util_sum) = (util, util as u32 * divider);
    (avg.runnable_avg, avg.runnable_sum) = (runnable, runnable * u64::from(divider));
}

impl SumSteps<'_> {
    /// All signals begin at a time, ns, and nobody has used anything.
    pub fn begin(&mut self, at: u64) {
        let k = &mut *self.0;
        let begun = pelt::SchedAvg { last_update_time: at, ..pelt::SchedAvg::default() };
        for se in k.sched.se.iter_mut() {
            se.avg = begun;
        }
        for cfs in k.sched.cfs.iter_mut() {
            cfs.avg.change(cfs.cpu, &mut k.sched.stale_demands, |avg| *avg = begun);
        }
        for rq in k.sched.rq.iter_mut() {
            rq.clock_pelt.clock_pelt = at;
        }
    }

    /// The signals of a task.
    pub fn set_task(&mut self, task: TaskId, util: u64, runnable: u64, util_est: u32) {
        let avg = &mut self.0.sched.se[self.0.sched.tasks[task].se].avg;
        set_averages(avg, util, runnable);
        avg.util_est = util_est;
    }

    /// The signals of a group's queue on a CPU, and of the entity that it is in.
    pub fn set_queue(&mut self, cpu: CpuId, group: TaskGroupId, util: u64, runnable: u64) {
        let k = &mut *self.0;
        let cfs = &mut k.sched.cfs[k.sched.groups[group].cfs_rq[cpu.index()]];
        cfs.avg.change(cpu, &mut k.sched.stale_demands, |avg| set_averages(avg, util, runnable));
        if let Some(&se) = k.sched.groups[group].se.get(cpu.index()) {
            set_averages(&mut k.sched.se[se].avg, util, runnable);
        }
    }

    /// A sleeping task's signals become as old as its queue's.
    pub fn sync(&mut self, task: TaskId) {
        self.0.sched.sync_entity_load_avg(task, &self.0.cx);
    }

    /// A task is on a CPU, with signals as old as those of the queue there.
    pub fn place(&mut self, task: TaskId, cpu: CpuId) {
        let k = &mut *self.0;
        k.sched.tasks[task].cpu = cpu;
        k.sched.set_task_rq(task, cpu);
        let entity = &mut k.sched.se[k.sched.tasks[task].se];
        entity.avg.last_update_time = k.sched.cfs[entity.cfs_rq].avg.last_update_time;
    }

    /// The fair class enqueues a task, or wakes one whose dequeue was delayed. Whether the governor was told.
    pub fn enqueue(&mut self, task: TaskId, wakes: bool) -> bool {
        let k = &mut *self.0;
        let t = &mut k.sched.tasks[task];
        let (cpu, se) = (t.cpu, t.se);
        let own = &k.sched.se[se].avg;
        k.sched.cfs[CfsRqId::root(cpu)].avg.change(cpu, &mut k.sched.stale_demands, |avg| {
            pelt::util_est_enqueue(avg, own);
        });
        k.sched.util_est_uclamp_enqueue(cpu, task);
        k.sched.tasks[task].on_rq = OnRq::Queued;
        k.sched.se[se].sched_delayed = false;
        if wakes {
            return false;
        }
        k.sched.se[se].on_rq = true;
        k.util_bias_enqueue(cpu, task);
        // A governor that is told computes the demand that has changed.
        !k.sched.stale_demands.contains(cpu)
    }

    /// The fair class dequeues a task.
    pub fn dequeue(&mut self, task: TaskId, why: Leaves) {
        let k = &mut *self.0;
        let t = &mut k.sched.tasks[task];
        let (cpu, se) = (t.cpu, t.se);
        if why != Leaves::Ends {
            let own = &k.sched.se[se].avg;
            k.sched.cfs[CfsRqId::root(cpu)].avg.change(cpu, &mut k.sched.stale_demands, |avg| {
                pelt::util_est_dequeue(avg, own);
            });
            k.sched.util_est_uclamp_dequeue(cpu, task);
            if matches!(why, Leaves::Sleeps | Leaves::Delays) {
                k.sched.util_est_update(cpu, se, &k.cx);
            }
        }
        k.sched.se[se].sched_delayed = why == Leaves::Delays;
        if why == Leaves::Delays {
            return;
        }
        if why == Leaves::Moves {
            k.sched.tasks[task].on_rq = OnRq::Migrating;
        }
        k.sched.se[se].on_rq = false;
        k.sched.util_bias_dequeue(cpu, task, &k.cx);
        k.sched.tasks[task].on_rq = OnRq::No;
    }

    /// Whether a task is queued, and whether its dequeue is delayed.
    pub fn is_queued(&self, task: TaskId) -> (bool, bool) {
        let t = &self.0.sched.tasks[task];
        (t.on_rq == OnRq::Queued, self.0.sched.se[t.se].sched_delayed)
    }

    fn changed(&mut self, task: TaskId, change: impl FnOnce(&mut Kernel)) {
        let queued = self.is_queued(task).0;
        if queued {
            self.dequeue(task, Leaves::Changes);
        }
        change(self.0);
        if queued {
            self.enqueue(task, false);
        }
    }

    /// `__sched_setscheduler()` of a fair task: clamps and a nice value. Whether the clamps were accepted; if not,
    /// nothing happens.
    pub fn set_attributes(&mut self, task: TaskId, attr: &SchedAttr) -> bool {
        if !self.0.sched.uclamp_validate(task, attr, &self.0.cx) {
            return false;
        }
        self.changed(task, |k| {
            let t = &mut k.sched.tasks[task];
            (t.nice, t.prio) = (attr.nice, 120 + i32::from(attr.nice));
            k.sched.se[t.se].load = fair::weight_of(Policy::Normal, attr.nice);
            k.sched.setscheduler_uclamp(task, attr, true, 0, &k.cx);
        });
        true
    }

    /// `sched_move_task()`.
    pub fn move_to(&mut self, task: TaskId, group: TaskGroupId) {
        let cpu = self.0.sched.tasks[task].cpu;
        self.changed(task, |k| {
            k.sched.tasks[task].group = group;
            SumSteps(k).place(task, cpu);
        });
    }

    /// `uclamp_fork()`: `child` becomes a copy of `parent` that is queued nowhere and has used nothing.
    pub fn fork(&mut self, parent: TaskId, child: TaskId) {
        ClampSteps(self.0).fork(parent, child);
        let k = &mut *self.0;
        let p = k.sched.tasks[parent].clone();
        k.sched.tasks[child].nice = p.nice;
        let se = k.sched.tasks[child].se;
        k.sched.se[se].load = k.sched.se[p.se].load;
        k.sched.se[se].avg = pelt::SchedAvg::default();
        self.place(child, p.cpu);
    }

    /// `delta` ns pass for a task and its queue.
    pub fn age(&mut self, task: TaskId, delta: u64, runs: bool) {
        let k = &mut *self.0;
        let t = &k.sched.tasks[task];
        let (cpu, se) = (t.cpu, t.se);
        let cfs_rq = k.sched.se[se].cfs_rq;
        k.sched.rq[cpu].clock_pelt.clock_pelt += delta;
        k.sched.cfs[cfs_rq].curr = runs.then_some(se);
        k.update_load_avg(cfs_rq, se, 0);
        k.sched.cfs[cfs_rq].curr = None;
    }

    /// Returns the sums of a run queue: bias, estimate, the highest factor and its task.
    pub fn sums(&self, cpu: CpuId) -> (i32, u32, u64, Option<TaskId>) {
        match &*self.0.sched.rq[cpu].uclamp {
            RqClamps::Sum(sums) => sums.parts(),
            RqClamps::Max(_) => panic!("a kernel that takes the largest"),
        }
    }

    /// Returns what a task adds to the sums, and its effective clamps.
    pub fn task(&self, task: TaskId) -> (TaskSums, Clamps) {
        (self.0.sched.tasks[task].uclamp.sums, self.0.sched.uclamp_eff_value(task, &self.0.cx))
    }

    /// All answers at once, of a task and a CPU.
    pub fn ask(&self, task: TaskId, cpu: CpuId) -> SumAnswers {
        let k = &*self.0;
        let RqClamps::Sum(sums) = &*k.sched.rq[cpu].uclamp else {
            panic!("a kernel that takes the largest")
        };
        let util = |task, dst, boost| k.sched.cpu_util_uclamp(cpu, sums, task, dst, boost, &k.cx);
        let both = |task, dst| [false, true].map(|boost| util(task, dst, boost));
        let [with, without] = [Some(cpu), None].map(|dst| both(Some(task), dst));
        let demand = k.task_demand(task);
        SumAnswers {
            task_fits: k.task_fits_cpu(task, cpu),
            fits: number(k.sched.fits_cpu(&demand, cpu)),
            overutilized: k.sched.util_exceeds(k.sched.cpu_util_cfs(cpu, &k.cx), cpu, &k.cx),
            task_util: k.sched.task_util_est_uclamp(task),
            cpu_util: [both(None, None), with, without].concat().try_into().expect("six"),
            fits_beside: number(k.sched.fits_beside(&mut demand.search(), task, cpu, &k.cx).0),
            demand_with: k.sched.energy_demand(cpu, task, Some(cpu), &k.cx),
            demand_without: k.sched.energy_demand(cpu, task, None, &k.cx),
        }
    }
}
