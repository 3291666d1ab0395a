// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes that a task makes to itself: policy, nice value, priority, slice, clamps, affinity.
//!
//! Both calls follow one pattern: out of the queue as if it moved (`DEQUEUE_SAVE`), off the CPU as far as its
//! class is concerned, the change, and back, in that order. So a fair task is placed anew with the lag it had,
//! keeps its relative deadline, and starts a new protected slice; none of that happens when nothing changes.
//!
//! ```text
//! dequeue ─ put_prev ─ change ─ enqueue ─ set_next ─┬─ class changed: switched_from, switched_to
//!                                                   └─ priority changed: prio_changed
//! ```
//!
//! Kernel: 6.12.95 kernel/sched/syscalls.c `__sched_setscheduler`, kernel/sched/core.c
//! `__set_cpus_allowed_ptr_locked`, `affine_move_task`, `check_class_changed`, fair.c `prio_changed_fair`.
//! Differences: the caller is the running task itself, so no sleeping, delayed or waiting task is ever
//! changed. A task that excludes its own CPU is preempted by the stopper and moved as a queued
//! task; with `preempt=none` Linux lets it block first, and wakes it on the new CPU.

use crate::config::ClassChange;
use crate::sched::core::{
    DEQUEUE_MOVE, DEQUEUE_NOCLOCK, DEQUEUE_SAVE, ENQUEUE_HEAD, ENQUEUE_NOCLOCK, ENQUEUE_RESTORE,
};
use crate::sched::deadline::DL_PRIO;
use crate::sched::stop::StopWork;
use crate::sched::{CfsRqId, Class, OnRq, fair};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, CpuMask, Errno, Policy, SchedAttr, TaskId};

/// Bounds of a custom slice: 10 ticks at HZ = 1000 … a tenth of one at HZ = 100.
const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

impl Context {
    /// Whether a task that rises to another class reschedules its CPU, and a changed reservation is judged by how its deadline moved (7.3).
    pub(crate) fn class_changes_preempt(&self) -> bool {
        self.config.class_change == ClassChange::Preempts
    }
}

impl Kernel {
    /// `__sched_setscheduler()` of the running task by itself.
    #[inline(never)]
    pub(crate) fn sched_setattr(&mut self, task: TaskId, attr: SchedAttr) -> Result<(), Errno> {
        if attr.policy == Policy::Deadline && !attr.dl.is_valid() {
            return Err(Errno::Inval);
        }
        let cpu = self.sched.tasks[task].cpu;
        debug_assert!(
            self.sched.rq[cpu].curr == task && self.sched.tasks[task].on_rq == OnRq::Queued
        );
        let uclamp_accepted = self.sched.uclamp_validate(task, &attr, &self.cx);
        self.sched.update_rq_clock(cpu, &self.cx);
        let (class, prio) = match attr.policy {
            Policy::Deadline => (Class::Deadline, DL_PRIO),
            Policy::Fifo | Policy::Rr => (Class::Rt, 99 - attr.rt_priority as i32),
            policy @ (Policy::Normal | Policy::Batch | Policy::Idle | Policy::Ext) => {
                (self.scx_class_of(policy), 120 + attr.nice as i32)
            }
        };
        if self.sched.nothing_changes(task, &attr, prio, &self.cx) {
            return Ok(());
        }
        self.sched.sched_dl_admit(task, &attr, &self.time, &self.cx)?;
        let (old_class, old_prio) = (self.sched.tasks[task].class, self.sched.tasks[task].prio);
        let uclamp_min = self.sched.uclamp_min_request(task, &self.cx);
        // With the priority it has, it keeps its place.
        let moves = self.moves_of(class, prio != old_prio);
        let old_deadline = self.get_prio_dl(cpu, task, class);
        self.dequeue_task(cpu, task, DEQUEUE_SAVE | moves | DEQUEUE_NOCLOCK);
        self.put_running(cpu, task);

        // __setscheduler_params(): policies above the fair ones leave nice value and slice as they are.
        let t = &mut self.sched.tasks[task];
        t.policy = attr.policy;
        let is_normal = matches!(class, Class::Fair | Class::Ext);
        if is_normal {
            t.nice = attr.nice;
        }
        let nice = t.nice;
        let se = t.se;
        if is_normal {
            let entity = &mut self.sched.se[se];
            entity.custom_slice = attr.slice != 0;
            entity.slice = match attr.slice {
                0 => self.sched.base_slice,
                asked => asked.clamp(*SLICE_NS.start(), *SLICE_NS.end()),
            };
        }
        if class == Class::Deadline {
            self.sched.setparam_dl(task, &attr.dl, &mut self.time);
        }
        // set_load_weight(): through the old class, also if the weight stays.
        let load = fair::weight_of(attr.policy, nice);
        let skipped = self.cx.config.bugs.idle_policy_keeps_load && attr.policy == Policy::Idle;
        if old_class == Class::Fair && !skipped {
            self.sched.reweight_task(se, load, &self.cx);
        } else {
            self.sched.se[se].load = load;
        }
        let t = &mut self.sched.tasks[task];
        t.class = class;
        t.prio = prio;
        self.sched.setscheduler_uclamp(task, &attr, uclamp_accepted, uclamp_min, &self.cx);
        match (old_class == Class::Ext, class == Class::Ext) {
            (false, true) => self.scx_enable_task(task, true),
            (true, true) => self.scx_reweight_task(task),
            _ => {}
        }

        let head = if old_prio < prio { ENQUEUE_HEAD } else { 0 };
        self.enqueue_task(cpu, task, ENQUEUE_RESTORE | moves | ENQUEUE_NOCLOCK | head);
        self.set_running(cpu, task);
        self.check_class_changed(cpu, task, (old_class, old_prio), old_deadline);
        self.balance_callbacks(cpu);
        Ok(())
    }

    /// `DEQUEUE_MOVE`, if its place in the queue may change.
    pub(crate) fn moves_of(&self, class: Class, prio_changes: bool) -> u32 {
        let deadline = class == Class::Deadline && self.cx.class_changes_preempt();
        if prio_changes || deadline { DEQUEUE_MOVE } else { 0 }
    }

    /// `get_prio_dl()`: the deadline before a change within the class, up to date in 7.3.
    pub(crate) fn get_prio_dl(&mut self, cpu: CpuId, task: TaskId, class: Class) -> u64 {
        let stays = class == Class::Deadline && self.sched.tasks[task].class == class;
        if stays && self.cx.class_changes_preempt() {
            self.update_curr_dl(cpu);
        }
        self.sched.tasks[task].dl.deadline
    }

    pub(crate) fn put_running(&mut self, cpu: CpuId, task: TaskId) {
        match self.sched.tasks[task].class {
            Class::Fair => self.put_prev_task_fair(cpu, task),
            Class::Rt => self.put_prev_task_rt(cpu, task, task),
            Class::Deadline => self.put_prev_task_dl(cpu, task),
            Class::Ext => self.put_prev_task_scx(cpu, task, None),
            _ => {}
        }
    }

    pub(crate) fn set_running(&mut self, cpu: CpuId, task: TaskId) {
        match self.sched.tasks[task].class {
            Class::Fair => self.set_next_task_fair(cpu, task, false),
            // Does what switched_to_rt() would do, too.
            Class::Rt => self.sched.set_next_task_rt(cpu, task, task, false, &self.cx),
            Class::Deadline => self.set_next_task_dl(cpu, task, task, false),
            Class::Ext => self.set_next_task_scx(cpu, task),
            _ => {}
        }
    }

    /// `check_class_changed()` of the running task.
    pub(crate) fn check_class_changed(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        (old_class, old_prio): (Class, i32),
        old_deadline: u64,
    ) {
        let (class, prio) = (self.sched.tasks[task].class, self.sched.tasks[task].prio);
        if old_class != class {
            match old_class {
                Class::Fair => self.switched_from_fair(task),
                Class::Rt => self.switched_from_rt(cpu, task),
                Class::Deadline => self.switched_from_dl(cpu, task),
                Class::Ext => self.scx_disable_task(task),
                Class::Idle | Class::Stop => unreachable!("no policy of a user's"),
            }
        }
        if old_class != class && self.cx.class_changes_preempt() {
            match class {
                Class::Fair => self.switched_to_fair(task),
                Class::Deadline => {
                    self.sched.switched_to_dl(cpu, task, &mut self.time, &mut self.cx)
                }
                _ => {}
            }
            // sched_change_end(): one that rises reschedules because the class that was picked is below its own.
            self.wakeup_preempt(cpu, task, 0);
            if class < old_class {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            return;
        }
        match (old_class, class) {
            (Class::Rt | Class::Deadline, Class::Fair) => {
                self.switched_to_fair(task);
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            // sched_change_end(): a class below; before, nobody rescheduled.
            (Class::Fair, Class::Ext) if self.sched.scx_reschedules_below() => {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            (Class::Ext, Class::Fair) => {
                self.switched_to_fair(task);
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            // switched_to_scx() does nothing; the class asked last has to reschedule.
            (Class::Rt | Class::Deadline, Class::Ext) => {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            (Class::Fair | Class::Rt | Class::Ext, Class::Deadline) => {
                self.sched.switched_to_dl(cpu, task, &mut self.time, &mut self.cx)
            }
            (Class::Deadline, Class::Deadline) => self.prio_changed_dl(cpu, task, old_deadline),
            (Class::Rt, Class::Rt) if prio != old_prio => self.prio_changed_rt(cpu, task, old_prio),
            // prio_changed_fair(): nobody to give way to if it is alone.
            (Class::Fair, Class::Fair)
                if prio > old_prio && self.sched.cfs[CfsRqId::root(cpu)].nr_queued != 1 =>
            {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
            _ => {}
        }
    }

    /// `sched_setaffinity()` of the running task by itself.
    #[inline(never)]
    pub(crate) fn sched_setaffinity(&mut self, task: TaskId, mask: CpuMask) -> Result<(), Errno> {
        let mask = mask.and(&self.cx.platform.device_tree.all_cpus());
        let cpu = self.sched.tasks[task].cpu;
        if mask.is_empty() {
            return Err(Errno::Inval);
        }
        // dl_task_check_affinity()
        if self.sched.tasks[task].class == Class::Deadline && !self.sched.dl_may_run_on(&mask) {
            return Err(Errno::Busy);
        }
        self.sched.update_rq_clock(cpu, &self.cx);
        if mask == self.sched.tasks[task].cpus_mask {
            return Ok(());
        }
        let dest_cpu = self.sched.cpumask_any_and_distribute(mask, &self.cx);

        // __do_set_cpus_allowed()
        self.dequeue_task(cpu, task, DEQUEUE_SAVE | DEQUEUE_NOCLOCK);
        self.put_running(cpu, task);
        let capacity = self.cx.max_allowed_capacity(&mask);
        let t = &mut self.sched.tasks[task];
        t.cpus_mask = mask;
        t.nr_cpus_allowed = mask.weight();
        t.max_allowed_capacity = capacity;
        if self.sched.tasks[task].class == Class::Ext {
            self.scx_set_cpumask(task);
        }
        self.enqueue_task(cpu, task, ENQUEUE_RESTORE | ENQUEUE_NOCLOCK);
        self.set_running(cpu, task);

        if !mask.contains(cpu) {
            self.stop_one_cpu_nowait(cpu, StopWork::Migrate { task, dest_cpu, pending: true });
        }
        Ok(())
    }
}

impl Scheduler {
    fn nothing_changes(&self, task: TaskId, attr: &SchedAttr, prio: i32, cx: &Context) -> bool {
        let t = &self.tasks[task];
        let clamps = attr.util_min.is_some() || attr.util_max.is_some();
        if attr.policy != t.policy || (clamps && cx.uclamp_compiled_in()) {
            return false;
        }
        match attr.policy {
            Policy::Fifo | Policy::Rr => prio == t.prio,
            Policy::Deadline => !t.dl.differs(&attr.dl),
            Policy::Normal | Policy::Batch | Policy::Idle | Policy::Ext => {
                attr.nice == t.nice && !self.slice_changes(t.se, attr, cx)
            }
        }
    }
}
