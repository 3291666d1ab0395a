// SPDX-License-Identifier: GPL-2.0-or-later
//! The class's entries: queueing, sleeping, switching, ticking, waking.
//!
//! ```text
//! enqueue: runnable ─ [on its way between CPUs, or back after a change: local DSQ] ─ [direct dispatch] ─ enqueue
//! dequeue: [dequeue, if in custody] ─ [update_curr ─ stopping, if it runs] ─ quiescent ─ out of its DSQ
//! put:     update_curr ─ stopping ─ slice left (a class above took the CPU): head of the local DSQ
//!                                 └ slice over: enqueue, with LAST if the CPU goes idle
//! set:     out of the local DSQ ─ running
//! ```
//!
//! A task that is picked again is neither put nor set, so it gets neither `stopping` nor `running`.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `enqueue_task_scx`, `scx_do_enqueue_task`, `dequeue_task_scx`, `put_prev_task_scx`,
//! `set_next_task_scx`, `task_tick_scx`, `select_task_rq_scx`; the same functions of 6.12.95.

use super::dsq::{DsqIndex, Place, SCX_DSQ_FLAG_BUILTIN, SCX_DSQ_INVALID, SCX_DSQ_LOCAL};
use super::steps::{Op, Step};
use super::{
    DirectDispatch, ReenqReason, SCX_DEQ_CORE_SCHED_EXEC, SCX_DEQ_SCHED_CHANGE, SCX_DEQ_SLEEP,
    SCX_ENQ_CPU_SELECTED, SCX_ENQ_DSQ_PRIQ, SCX_ENQ_HEAD, SCX_ENQ_INITIAL, SCX_ENQ_LAST,
    SCX_ENQ_MIGRATED, SCX_ENQ_MIGRATING, SCX_ENQ_PREEMPT, SCX_ENQ_REENQ, SCX_ENQ_RESTORE,
    SCX_ENQ_WAKEUP, SCX_OPS_ENQ_EXITING, SCX_OPS_ENQ_LAST, SCX_SLICE_DFL, SCX_SLICE_INF,
};
use crate::policy::CpuPreemptReason;
use crate::sched::core::{
    DEQUEUE_SLEEP, ENQUEUE_HEAD, ENQUEUE_INITIAL, ENQUEUE_MIGRATED, ENQUEUE_RESTORE,
    ENQUEUE_WAKEUP, WF_EXEC, WF_FORK, WF_SYNC, WF_TTWU,
};
use crate::sched::{Class, OnRq};
use crate::{Context, Kernel, Scheduler};
use schedtwin_types::{CpuId, Decision, PlacementRule, TaskId};

/// A slice and a virtual time that come with an insertion.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    pub(super) slice: u64,
    pub(super) vtime: u64,
}

impl Kernel {
    // ---- queueing -----------------------------------------------------------------------------

    /// `enqueue_task_scx()`.
    #[inline(never)]
    pub(crate) fn enqueue_task_scx(&mut self, cpu: CpuId, task: TaskId, core_flags: u32) {
        let migrating = self.sched.tasks[task].on_rq == OnRq::Migrating;
        let current = self.sched.rq[cpu].curr == task;
        let jiffies = self.cx.jiffies();
        let ext = self.sched.scx_mut();
        let mut enq_flags = ext.rqs[cpu].remote_activate_enq_flags;
        for (core, scx) in [
            (ENQUEUE_WAKEUP, SCX_ENQ_WAKEUP),
            (ENQUEUE_RESTORE, SCX_ENQ_RESTORE),
            (ENQUEUE_HEAD, SCX_ENQ_HEAD),
            (ENQUEUE_MIGRATED, SCX_ENQ_MIGRATED),
            (ENQUEUE_INITIAL, SCX_ENQ_INITIAL),
        ] {
            if core_flags & core != 0 {
                enq_flags |= scx;
            }
        }
        if migrating {
            enq_flags |= SCX_ENQ_MIGRATING;
        }
        let entity = &mut ext.tasks[task.index()];
        let mut sticky_cpu = entity.sticky_cpu.take();
        let is_moved = sticky_cpu.is_some();
        if std::mem::take(&mut entity.cpu_selected) && core_flags & ENQUEUE_WAKEUP != 0 {
            enq_flags |= SCX_ENQ_CPU_SELECTED;
        }
        ext.rqs[cpu].in_wakeup = core_flags & ENQUEUE_WAKEUP != 0;
        if !is_moved {
            let t = &self.sched.tasks[task];
            let (cpus, exiting) = (t.cpus_mask, t.exiting);
            let ext = self.sched.scx_mut();
            let runs = core_flags & ENQUEUE_RESTORE != 0 && current;
            ext.note(Step::Enqueue { cpu, task, enq_flags, cpus, runs, exiting });
        }
        let ext = self.sched.scx_mut();
        if core_flags & ENQUEUE_RESTORE != 0 && current {
            // set_running() follows, which takes it from the local DSQ.
            sticky_cpu = Some(cpu);
        }
        if ext.tasks[task.index()].queued {
            ext.rqs[cpu].in_wakeup = false;
            return;
        }
        ext.set_task_runnable(task, jiffies);
        ext.tasks[task.index()].queued = true;
        ext.rqs[cpu].nr_running += 1;
        let first = ext.rqs[cpu].nr_running == 1;
        self.sched.add_nr_running(cpu, 1);
        if !migrating {
            self.scx_op(Some(cpu), Op::Runnable { task, enq_flags });
        }
        if first && self.sched.scx().has_server() {
            self.fair_server_start(cpu);
        }
        self.scx_do_enqueue_task(cpu, task, enq_flags, sticky_cpu);
        if let Some(ext) = &mut self.sched.ext {
            ext.rqs[cpu].in_wakeup = false;
        }
    }

    /// `scx_do_enqueue_task()`.
    pub(super) fn scx_do_enqueue_task(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        enq_flags: u64,
        sticky_cpu: Option<CpuId>,
    ) {
        let exiting = self.sched.tasks[task].exiting;
        let ext = self.sched.scx_mut();
        debug_assert!(ext.tasks[task.index()].queued);
        let local = ext.dsqs.local(cpu);
        if sticky_cpu == Some(cpu) {
            return self.scx_dispatch_enqueue(cpu, local, task, None, enq_flags);
        }
        ext.tasks[task.index()].immed = false;
        if enq_flags & SCX_ENQ_REENQ != 0 && !self.scx_count_reenq(task) {
            return;
        }
        let ext = self.sched.scx_mut();
        if ext.bypass {
            return self.scx_enqueue_in_bypass(cpu, task, enq_flags);
        }
        if ext.tasks[task.index()].ddsp_dsq_id != SCX_DSQ_INVALID {
            ext.events.from_select_cpu += 1;
            return self.scx_direct_dispatch(cpu, task, enq_flags);
        }
        if ext.flags & SCX_OPS_ENQ_EXITING == 0 && exiting {
            ext.events.enq_skip_exiting += 1;
            ext.refill_slice(task);
            return self.scx_dispatch_enqueue(cpu, local, task, None, enq_flags);
        }
        let entity = &mut ext.tasks[task.index()];
        // 0 is what an insertion records of a task that nobody holds.
        entity.qseq = (entity.qseq + 1).max(1);
        debug_assert!(ext.ddsp == DirectDispatch::No);
        ext.ddsp = DirectDispatch::Task(task);
        self.scx_op(Some(cpu), Op::Enqueue { task, enq_flags });
        let ext = self.sched.scx_mut();
        ext.ddsp = DirectDispatch::No;
        let entity = &mut ext.tasks[task.index()];
        if entity.ddsp_dsq_id != SCX_DSQ_INVALID {
            ext.events.from_enqueue += 1;
            return self.scx_direct_dispatch(cpu, task, enq_flags);
        }
        entity.in_custody = true;
        entity.held = true;
    }

    /// `direct_dispatch()`.
    fn scx_direct_dispatch(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64) {
        let dsq_id = self.sched.scx_task(task).ddsp_dsq_id;
        let dsq = self.scx_find_dsq_for_dispatch(cpu, dsq_id, cpu);
        let ext = self.sched.scx_mut();
        let entity = &mut ext.tasks[task.index()];
        entity.ddsp_enq_flags |= enq_flags;
        if ext.dsqs.is_local(dsq) && dsq != ext.dsqs.local(cpu) {
            entity.deferred = true;
            ext.rqs[cpu].deferred_locals.push(task);
            return self.scx_schedule_deferred_locked(cpu);
        }
        let carried = Carried { slice: entity.ddsp_slice, vtime: entity.ddsp_vtime };
        let flags = entity.ddsp_enq_flags;
        entity.clear_direct_dispatch();
        self.scx_dispatch_enqueue(cpu, dsq, task, Some(carried), flags);
    }

    /// `schedule_deferred_locked()`: when tasks can go to other CPUs' local queues.
    pub(super) fn scx_schedule_deferred_locked(&mut self, cpu: CpuId) {
        let rq = &mut self.sched.scx_mut().rqs[cpu];
        if rq.in_wakeup || rq.bal_cb_pending {
            return;
        }
        if rq.in_dispatch {
            rq.bal_cb_pending = true;
            return;
        }
        rq.deferred_irq_work = true;
        self.scx_raise_irq_work(cpu);
    }

    /// `scx_dispatch_enqueue()`: into a queue. `cpu`: the CPU whose local queue it is, or that executes.
    pub(super) fn scx_dispatch_enqueue(
        &mut self,
        cpu: CpuId,
        dsq: DsqIndex,
        task: TaskId,
        carried: Option<Carried>,
        mut enq_flags: u64,
    ) {
        self.scx_lock_dsq(dsq);
        let now = self.cx.now;
        let ext = self.sched.scx_mut();
        let queue = &ext.dsqs[dsq];
        let (id, is_local) = (queue.id, ext.dsqs.is_local(dsq));
        let has_tasks = queue.nr > 0;
        let mut fault = None;
        if id & SCX_DSQ_FLAG_BUILTIN != 0 && enq_flags & SCX_ENQ_DSQ_PRIQ != 0 {
            fault = Some("cannot use vtime ordering for built-in DSQs".to_string());
            enq_flags &= !SCX_ENQ_DSQ_PRIQ;
        }
        let priq = enq_flags & SCX_ENQ_DSQ_PRIQ != 0;
        if has_tasks && queue.priq != priq {
            let kind = if priq { "FIFO" } else { "PRIQ" };
            fault = Some(format!("DSQ ID 0x{id:016x} already had {kind}-enqueued tasks"));
        }
        if let Some(carried) = carried {
            ext.apply_slice_vtime(task, carried, enq_flags);
        }
        let place = match (priq, enq_flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT)) {
            (true, _) => Place::ByVtime,
            (false, 0) => Place::Tail,
            (false, _) => Place::Head,
        };
        ext.dsqs.link(dsq, task, place, &mut ext.tasks, now);
        ext.tasks[task.index()].held = false;
        ext.note_inserted(task, dsq, place == Place::Head);
        if let Some(message) = fault {
            self.scx_error(message);
        }
        if is_local {
            self.scx_local_immed(cpu, task, enq_flags);
            self.scx_local_post_enq(cpu, task, enq_flags);
        } else if id & SCX_DSQ_FLAG_BUILTIN != 0 {
            self.scx_leave_custody(task, None, cpu);
        } else {
            let ext = self.sched.scx_mut();
            let custody = ext.form.custody;
            ext.tasks[task.index()].in_custody = custody;
        }
    }

    /// `task_leave_custody()`, with the call of `ops.dequeue()`. `taken`: it is taken away from the scheduler, with these
    /// flags; else it has been dispatched, of which 6.12 does not tell.
    fn scx_leave_custody(&mut self, task: TaskId, taken: Option<u64>, cpu: CpuId) {
        let ext = self.sched.scx_mut();
        let entity = &mut ext.tasks[task.index()];
        if !entity.in_custody || entity.sticky_cpu.is_some() {
            return;
        }
        entity.in_custody = false;
        if ext.form.custody || taken.is_some() {
            self.scx_call_dequeue(task, taken.unwrap_or(0), cpu);
        }
    }

    /// `rq_owned_post_enq()`: the task has got into the local queue of `cpu`.
    pub(super) fn scx_local_post_enq(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64) {
        self.scx_leave_custody(task, None, cpu);
        let curr = self.sched.rq[cpu].curr;
        let curr_class = self.sched.tasks[curr].class;
        let ext = self.sched.scx_mut();
        let preempts = enq_flags & SCX_ENQ_PREEMPT != 0 && task != curr && curr_class == Class::Ext;
        if ext.form.wakes_by_next_class {
            let in_dispatch = ext.rqs[cpu].in_dispatch;
            if self.sched.rq[cpu].next_class < Class::Ext {
                self.wakeup_preempt(cpu, task, 0);
            }
            if in_dispatch {
                return;
            }
            if preempts {
                self.sched.scx_mut().set_task_slice(curr, 0);
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
        } else {
            if preempts {
                ext.tasks[curr.index()].slice = 0;
            }
            if preempts || curr_class < Class::Ext {
                self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
            }
        }
    }

    /// `ops_dequeue()`: the scheduler has it no more.
    fn scx_ops_dequeue(&mut self, cpu: CpuId, task: TaskId, deq_flags: u64) {
        let entity = self.sched.scx_task_mut(task);
        entity.runnable_seq = 0;
        entity.held = false;
        self.scx_leave_custody(task, Some(deq_flags), cpu);
    }

    /// `dequeue_task_scx()`.
    #[inline(never)]
    pub(crate) fn dequeue_task_scx(&mut self, cpu: CpuId, task: TaskId, core_flags: u32) -> bool {
        let migrating = self.sched.tasks[task].on_rq == OnRq::Migrating;
        let current = self.sched.rq[cpu].curr == task;
        let ext = self.sched.scx();
        if !ext.tasks[task.index()].queued {
            return true;
        }
        let deq_flags = match core_flags & DEQUEUE_SLEEP != 0 {
            true => SCX_DEQ_SLEEP,
            false if ext.form.sched_change => SCX_DEQ_SCHED_CHANGE,
            // DEQUEUE_SAVE, DEQUEUE_MOVE.
            false => u64::from(core_flags & 6),
        };
        if ext.tasks[task.index()].sticky_cpu.is_none() {
            let step = Step::Dequeue { cpu, task, deq_flags, migrating };
            self.sched.scx_mut().note(step);
        }
        self.scx_ops_dequeue(cpu, task, deq_flags);
        if current {
            self.update_curr_scx(cpu);
            self.scx_op(Some(cpu), Op::Stopping { task, runnable: false });
        }
        if !migrating {
            self.scx_op(Some(cpu), Op::Quiescent { task, deq_flags });
        }
        let now = self.cx.now;
        let ext = self.sched.scx_mut();
        ext.tasks[task.index()].queued = false;
        ext.rqs[cpu].nr_running -= 1;
        ext.dispatch_dequeue(cpu, task, now);
        ext.tasks[task.index()].clear_direct_dispatch();
        self.sched.sub_nr_running(cpu, 1);
        true
    }

    // ---- running ------------------------------------------------------------------------------

    /// `update_curr_scx()`.
    pub(crate) fn update_curr_scx(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        if self.sched.tasks[curr].class != Class::Ext {
            return;
        }
        let clock_task = self.sched.rq[cpu].clock_task;
        let ext = self.sched.ext.as_mut().expect("the class has a task");
        let entity = &mut ext.tasks[curr.index()];
        if let Some(slice) = entity.slice_oob.take() {
            entity.slice = slice;
        }
        let se = &mut self.sched.se[self.sched.tasks[curr].se];
        let delta = clock_task.wrapping_sub(se.exec_start) as i64;
        if delta <= 0 {
            return;
        }
        se.exec_start = clock_task;
        se.sum_exec_runtime += delta as u64;
        let charged = Step::Charge { task: curr, ns: delta as u64 };
        if entity.slice != SCX_SLICE_INF {
            entity.slice -= entity.slice.min(delta as u64);
        }
        ext.note(charged);
        if ext.has_server() && self.sched.rq[cpu].fair_server.is_active() {
            self.fair_server_update(cpu, delta);
        }
    }

    /// `put_prev_task_scx()`. `next`: the task that follows; `None`: the task goes on after a change.
    #[inline(never)]
    pub(crate) fn put_prev_task_scx(&mut self, cpu: CpuId, task: TaskId, next: Option<TaskId>) {
        let next_is_idle = next.is_some_and(TaskId::is_idle);
        let (goes_on, exiting) = (next.is_none(), self.sched.tasks[task].exiting);
        let step = Step::PutPrev { cpu, task, next_is_idle, goes_on, exiting };
        self.sched.scx_mut().note(step);
        self.update_curr_scx(cpu);
        if self.sched.scx_task(task).queued {
            self.scx_op(Some(cpu), Op::Stopping { task, runnable: true });
            self.scx_put_runnable(cpu, task, next);
        }
        let Some(next) = next else { return };
        let class = self.sched.tasks[next].class;
        if class != Class::Ext {
            self.scx_switch_class(cpu, class, next);
        }
    }

    fn scx_put_runnable(&mut self, cpu: CpuId, task: TaskId, next: Option<TaskId>) {
        let jiffies = self.cx.jiffies();
        let ext = self.sched.scx_mut();
        ext.set_task_runnable(task, jiffies);
        let local = ext.dsqs.local(cpu);
        if ext.tasks[task.index()].slice > 0 && !ext.bypass {
            // A class above has taken the CPU.
            if ext.tasks[task.index()].immed {
                return self.scx_enqueue_anew(cpu, task, ReenqReason::Preempted);
            }
            return self.scx_dispatch_enqueue(cpu, local, task, None, SCX_ENQ_HEAD);
        }
        let below = next.is_some_and(|next| self.sched.tasks[next].class < Class::Ext);
        let flags = if below { SCX_ENQ_LAST } else { 0 };
        self.scx_do_enqueue_task(cpu, task, flags, None);
        let ext = self.sched.scx_mut();
        if below && ext.tasks[task.index()].dsq == Some(local) {
            ext.rqs[cpu].resched_idle = true;
        }
    }

    /// `switch_class()`: tells once that a class above has the CPU.
    fn scx_switch_class(&mut self, cpu: CpuId, class: Class, next: TaskId) {
        let rq = &mut self.sched.scx_mut().rqs[cpu];
        if class < Class::Ext || std::mem::replace(&mut rq.cpu_released, true) {
            return;
        }
        let reason = match class {
            Class::Stop => CpuPreemptReason::Stop,
            Class::Deadline => CpuPreemptReason::Deadline,
            Class::Rt => CpuPreemptReason::Rt,
            _ => CpuPreemptReason::Unknown,
        };
        self.scx_op(Some(cpu), Op::CpuRelease { cpu, reason, next });
    }

    /// `set_next_task_scx()`.
    #[inline(never)]
    pub(crate) fn set_next_task_scx(&mut self, cpu: CpuId, task: TaskId) {
        let queued = self.sched.scx_task(task).queued;
        let now = self.cx.now;
        self.sched.scx_mut().note(Step::SetNext { cpu, task });
        if queued {
            self.scx_ops_dequeue(cpu, task, SCX_DEQ_CORE_SCHED_EXEC);
            self.sched.scx_mut().dispatch_dequeue(cpu, task, now);
        }
        let clock_task = self.sched.rq[cpu].clock_task;
        let se = self.sched.tasks[task].se;
        self.sched.se[se].exec_start = clock_task;
        if queued {
            self.scx_op(Some(cpu), Op::Running { task });
        }
        let entity = self.sched.scx_task_mut(task);
        (entity.runnable_seq, entity.reenq_cnt) = (0, 0);
        entity.reset_runnable_at = true;
        if let Some(slice) = entity.slice_oob.take() {
            entity.slice = slice;
        }
    }

    /// `task_tick_scx()`.
    #[inline(never)]
    pub(crate) fn task_tick_scx(&mut self, cpu: CpuId, curr: TaskId) {
        self.sched.scx_mut().note(Step::Tick { cpu, task: curr });
        self.update_curr_scx(cpu);
        // account_process_tick() comes before the class's tick.
        self.sched.scx_task_mut(curr).ticks += 1;
        let ext = self.sched.scx_mut();
        if ext.bypass {
            ext.set_task_slice(curr, 0);
        } else {
            self.scx_op(Some(cpu), Op::Tick { task: curr });
        }
        if self.sched.scx_task(curr).slice == 0 {
            self.sched.resched_curr(cpu, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `yield_task_scx()`.
    pub(crate) fn yield_task_scx(&mut self, cpu: CpuId) {
        let curr = self.sched.rq[cpu].curr;
        self.sched.scx_mut().note(Step::Yield { cpu, task: curr });
        self.scx_op(Some(cpu), Op::Yield { from: curr });
    }

    // ---- waking -------------------------------------------------------------------------------

    /// `select_task_rq_scx()`.
    #[inline(never)]
    pub(crate) fn select_task_rq_scx(
        &mut self,
        task: TaskId,
        prev_cpu: CpuId,
        core_flags: u32,
    ) -> CpuId {
        if core_flags & WF_EXEC != 0 {
            return prev_cpu;
        }
        // WF_* are SCX_WAKE_*.
        let wake_flags = u64::from(core_flags & (WF_FORK | WF_TTWU | WF_SYNC));
        let cpus = self.sched.tasks[task].cpus_mask;
        let this = self.cx.this_cpu;
        let ext = self.sched.scx_mut();
        ext.note(Step::Select { this, task, prev: prev_cpu, wake_flags, cpus });
        if ext.bypass {
            return self.scx_select_cpu_in_bypass(task, prev_cpu, wake_flags);
        }
        ext.ddsp = DirectDispatch::Task(task);
        ext.in_select_cpu = true;
        let cpu = self.scx_op(None, Op::SelectCpu { task, prev: prev_cpu, wake_flags });
        let nr_cpus = self.sched.nr_cpus();
        let ext = self.sched.scx_mut();
        ext.in_select_cpu = false;
        ext.ddsp = DirectDispatch::No;
        ext.tasks[task.index()].cpu_selected = true;
        let chosen = match usize::try_from(cpu) {
            Ok(cpu) if cpu < nr_cpus => {
                let cpu = CpuId(cpu as u16);
                ext.note(Step::Selected { task, cpu });
                cpu
            }
            _ => {
                self.scx_error(format!("invalid CPU {cpu} from ops.select_cpu()"));
                prev_cpu
            }
        };
        if self.cx.wants_decisions() {
            let direct = self.sched.scx_task(task).ddsp_dsq_id != SCX_DSQ_INVALID;
            let rule = PlacementRule::Custom(match direct {
                true => "scx: select_cpu, dispatched directly",
                false => "scx: select_cpu, to be enqueued there",
            });
            let (prev, candidates) = (prev_cpu, Vec::new());
            self.cx.record(Decision::Placement { task, prev, chosen, rule, candidates });
        }
        if !self.sched.tasks[task].cpus_mask.contains(chosen) {
            self.sched.scx_mut().events.select_cpu_fallback += 1;
        }
        chosen
    }

    /// `select_task_rq_scx()` where the scheduler has no `select_cpu`.
    pub(super) fn scx_select_cpu_default(
        &mut self,
        task: TaskId,
        prev_cpu: CpuId,
        wake_flags: u64,
    ) -> i32 {
        match self.scx_select_cpu_dfl(task, prev_cpu, wake_flags, None, 0) {
            Some(cpu) => {
                let ext = self.sched.scx_mut();
                ext.events.refill_slice_dfl += 1;
                let entity = &mut ext.tasks[task.index()];
                entity.ddsp_slice = SCX_SLICE_DFL;
                entity.ddsp_dsq_id = SCX_DSQ_LOCAL;
                i32::from(cpu.0)
            }
            None => i32::from(prev_cpu.0),
        }
    }

    /// `task_woken_scx()`, `run_deferred()`.
    #[inline(never)]
    pub(crate) fn task_woken_scx(&mut self, cpu: CpuId) {
        self.scx_run_deferred(cpu);
    }
}

impl Scheduler {
    /// `scx_tick()`: in each tick, whatever runs.
    #[inline(never)]
    pub(crate) fn scx_tick(&mut self, cpu: CpuId, cx: &Context) {
        self.update_other_load_avgs(cpu, cx);
    }
}

impl super::Ext {
    /// `set_task_runnable()`.
    fn set_task_runnable(&mut self, task: TaskId, jiffies: u64) {
        self.runnable_seq += 1;
        let entity = &mut self.tasks[task.index()];
        if std::mem::take(&mut entity.reset_runnable_at) {
            entity.runnable_at = jiffies;
        }
        entity.runnable_seq = self.runnable_seq;
    }

    /// `scx_dispatch_dequeue()`.
    pub(super) fn dispatch_dequeue(&mut self, cpu: CpuId, task: TaskId, now: u64) {
        let entity = &mut self.tasks[task.index()];
        if entity.dsq.is_some() {
            self.dsqs.unlink(task, &mut self.tasks, now);
        } else if std::mem::take(&mut entity.deferred) {
            self.rqs[cpu].deferred_locals.retain(|other| *other != task);
        }
    }

    /// `apply_slice_vtime()`.
    pub(super) fn apply_slice_vtime(&mut self, task: TaskId, carried: Carried, enq_flags: u64) {
        if self.form.sets_slice_at_call {
            return;
        }
        let entity = &mut self.tasks[task.index()];
        if carried.slice != 0 {
            entity.slice = carried.slice;
            entity.slice_oob = None;
        } else {
            entity.slice = entity.slice.max(1);
        }
        if enq_flags & SCX_ENQ_DSQ_PRIQ != 0 {
            entity.dsq_vtime = carried.vtime;
        }
    }

    /// `refill_task_slice_dfl()`.
    pub(super) fn refill_slice(&mut self, task: TaskId) {
        self.tasks[task.index()].slice = self.slice_dfl;
        self.events.refill_slice_dfl += 1;
    }

    /// `scx_set_task_slice()`.
    pub(super) fn set_task_slice(&mut self, task: TaskId, slice: u64) {
        let entity = &mut self.tasks[task.index()];
        entity.slice = slice;
        entity.slice_oob = None;
    }

    /// Whether the class has the DEADLINE server that keeps RT tasks from starving it.
    pub(crate) fn has_server(&self) -> bool {
        self.form.server && self.switching_all
    }

    pub(super) fn keeps_last(&self) -> bool {
        self.flags & SCX_OPS_ENQ_LAST == 0
    }
}

impl super::ExtEntity {
    /// Whether it is on its CPU's `runnable_list`: runnable, and not what the CPU runs.
    pub(super) fn waits(&self) -> bool {
        self.runnable_seq > 0
    }

    /// `clear_direct_dispatch()`.
    pub(super) fn clear_direct_dispatch(&mut self) {
        self.ddsp_dsq_id = SCX_DSQ_INVALID;
        self.ddsp_enq_flags = 0;
    }
}
