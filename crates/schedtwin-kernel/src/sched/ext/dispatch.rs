// SPDX-License-Identifier: GPL-2.0-or-later
//! The pick, and how tasks get into the local queue that it takes from.
//!
//! **Algorithm** (`do_pick_task_scx()`), prev being what runs:
//! 1. prev is of the class, runnable and has slice left: it goes on, whatever waits.
//! 2. The local DSQ has tasks: its head.
//! 3. The global DSQ of the node has a task that may run here: that one.
//! 4. `dispatch`, and what it inserted. Then prev, if it has got a slice; the local DSQ; the global DSQ. Again while the
//!    call inserted or moved anything, [`SCX_DSP_MAX_LOOPS`] times at most: then the CPU kicks itself.
//! 5. Nothing: prev goes on with a new slice, unless the scheduler wants to be asked (`SCX_OPS_ENQ_LAST`); else idle.
//!
//! **Insertion.** `dispatch` may name any task that it holds. The task goes into a buffer with its `qseq`, and the buffer is
//! worked off when the call asks for a task of a queue, and when it returns. A task that has been dequeued or dispatched
//! meanwhile has another state or `qseq`: the entry is dropped without a word.
//!
//! **Moves.** A task in another CPU's run queue is deactivated there and activated here. The scheduler sees neither
//! `quiescent` nor `runnable` of it.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `dispatch_one`, `do_pick_task_scx`, `finish_dispatch`, `dispatch_to_local_dsq`,
//! `scx_consume_dispatch_q`, `move_remote_task_to_local_dsq`; inlines.h `scx_dispatch_sched`; 6.12.95 `balance_one`.

use super::class::Carried;
use super::dsq::{
    DsqIndex, Place, SCX_DSQ_BYPASS, SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_CPU_MASK,
    SCX_DSQ_LOCAL_ON,
};
use super::steps::{self, Op, Step};
use super::{BufEntry, DirectDispatch, SCX_ENQ_HEAD, SCX_ENQ_PREEMPT};
use crate::Kernel;
use crate::sched::Class;
use schedtwin_types::{CpuId, PickRule, TaskId};

/// `SCX_DSP_MAX_LOOPS`.
const SCX_DSP_MAX_LOOPS: u32 = 32;

/// `enum scx_dsp_verdict`, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// prev goes on.
    Prev(PickRule),
    /// The head of the local DSQ.
    Local(PickRule),
    /// Nothing.
    None,
}

impl Verdict {
    pub(super) fn noted(self) -> steps::Verdict {
        match self {
            Verdict::Prev(_) => steps::Verdict::Prev,
            Verdict::Local(_) => steps::Verdict::Local,
            Verdict::None => steps::Verdict::None,
        }
    }
}

impl Kernel {
    // ---- pick ---------------------------------------------------------------------------------

    /// `balance_scx()`: before the pick, where the release dispatches then. `found`: a class above has a task.
    #[inline(never)]
    pub(crate) fn balance_scx(&mut self, cpu: CpuId, prev: TaskId, found: bool) {
        if self.sched.scx().form.balances {
            let balanced = (!found).then(|| self.scx_dispatch_one(cpu, prev));
            self.sched.scx_mut().rqs[cpu].balanced = balanced;
        }
    }

    /// `do_pick_task_scx()`.
    #[inline(never)]
    pub(crate) fn pick_task_scx(&mut self, cpu: CpuId) -> Option<TaskId> {
        let prev = self.sched.rq[cpu].curr;
        let ext = self.sched.scx_mut();
        let verdict = match ext.form.balances {
            false => self.scx_dispatch_one(cpu, prev),
            // A class above kept the CPU from balancing, and then had nothing: prev, or the local DSQ.
            true => match ext.rqs[cpu].balanced.take() {
                Some(verdict) => verdict,
                None if ext.tasks[prev.index()].queued => Verdict::Prev(PickRule::ExtKeepLast),
                None => Verdict::Local(PickRule::ExtLocal),
            },
        };
        let ext = self.sched.scx_mut();
        let (next, rule) = match verdict {
            Verdict::Prev(rule) => (prev, rule),
            Verdict::Local(rule) => (ext.dsqs[ext.dsqs.local(cpu)].head()?, rule),
            Verdict::None => return None,
        };
        if ext.tasks[next.index()].slice == 0 {
            ext.refill_slice(next);
            ext.note(Step::Refilled { task: next });
        }
        self.sched.record_pick(cpu, next, rule, &mut self.cx);
        Some(next)
    }

    /// `dispatch_one()`, `balance_one()`.
    pub(super) fn scx_dispatch_one(&mut self, cpu: CpuId, prev: TaskId) -> Verdict {
        let prev_is_ext = self.sched.tasks[prev].class == Class::Ext;
        let ext = self.sched.scx_mut();
        ext.note(Step::Pick { cpu, prev, prev_is_ext });
        ext.rqs[cpu].in_dispatch = true;
        if std::mem::take(&mut self.sched.scx_mut().rqs[cpu].cpu_released) {
            self.scx_op(Some(cpu), Op::CpuAcquire { cpu });
        }
        let verdict = self.scx_find_task(cpu, prev);
        if let Some(ext) = &mut self.sched.ext {
            ext.note(Step::Picked { cpu, verdict: verdict.noted() });
            let crowded = verdict != Verdict::None && ext.dsqs[ext.dsqs.local(cpu)].nr > 1;
            if crowded && ext.has_immed(cpu) {
                ext.rqs[cpu].reenq_immed = true;
                ext.rqs[cpu].bal_cb_pending = true;
            }
            ext.rqs[cpu].in_dispatch = false;
            if std::mem::take(&mut ext.rqs[cpu].bal_cb_pending) {
                self.sched.rq[cpu].push_pending = true;
            }
        }
        verdict
    }

    fn scx_find_task(&mut self, cpu: CpuId, prev: TaskId) -> Verdict {
        let on_scx = self.sched.tasks[prev].class == Class::Ext;
        self.update_curr_scx(cpu);
        let ext = self.sched.scx();
        let bypass = ext.bypass;
        if on_scx && !bypass && self.scx_has_slice(prev) {
            return Verdict::Prev(PickRule::ExtKeepPrev);
        }
        if ext.dsqs[ext.dsqs.local(cpu)].nr > 0 {
            return Verdict::Local(PickRule::ExtLocal);
        }
        let verdict = self.scx_dispatch_sched(cpu, prev, on_scx);
        let ext = self.sched.scx_mut();
        if verdict == Verdict::None
            && ext.tasks[prev.index()].queued
            && (ext.keeps_last() || bypass)
        {
            ext.events.dispatch_keep_last += 1;
            return Verdict::Prev(PickRule::ExtKeepLast);
        }
        verdict
    }

    fn scx_has_slice(&self, task: TaskId) -> bool {
        let entity = self.sched.scx_task(task);
        entity.queued && entity.slice > 0
    }

    /// `scx_dispatch_sched()`: asks the scheduler.
    fn scx_dispatch_sched(&mut self, cpu: CpuId, prev: TaskId, on_scx: bool) -> Verdict {
        if self.scx_consume_global(cpu) {
            return Verdict::Local(PickRule::ExtGlobal);
        }
        if self.sched.scx().bypass {
            return self.scx_dispatch_bypassed(cpu);
        }
        let moved_before = self.sched.scx().events.moved;
        self.sched.scx_mut().dispatch_cpu = Some(cpu);
        let mut verdict = Verdict::None;
        for turn in 1..=SCX_DSP_MAX_LOOPS {
            self.sched.scx_mut().nr_tasks = 0;
            let asked = on_scx.then_some(prev);
            self.scx_op(Some(cpu), Op::Dispatch { cpu, prev: asked });
            self.scx_flush_dispatch_buf(cpu);
            if on_scx && self.scx_has_slice(prev) {
                verdict = Verdict::Prev(PickRule::ExtSlice);
                break;
            }
            let ext = self.sched.scx_mut();
            if ext.dsqs[ext.dsqs.local(cpu)].nr > 0 {
                let moved = ext.events.moved > moved_before;
                let rule = if moved { PickRule::ExtMoved } else { PickRule::ExtDispatch };
                verdict = Verdict::Local(rule);
                break;
            }
            if self.scx_consume_global(cpu) {
                verdict = Verdict::Local(PickRule::ExtGlobal);
                break;
            }
            if self.sched.scx().nr_tasks == 0 {
                self.sched.scx_mut().events.empty_dispatches += 1;
                break;
            }
            if turn == SCX_DSP_MAX_LOOPS {
                self.scx_kick_cpu(cpu, 0);
            }
        }
        self.sched.scx_mut().dispatch_cpu = None;
        verdict
    }

    /// `scx_dispatch_sched()` in bypass.
    fn scx_dispatch_bypassed(&mut self, cpu: CpuId) -> Verdict {
        let ext = self.sched.scx();
        let own = ext.form.bypass_queues.then(|| ext.dsqs.bypass(cpu));
        match own.is_some_and(|dsq| self.scx_consume_dispatch_q(cpu, dsq, 0)) {
            true => Verdict::Local(PickRule::ExtBypass),
            false => Verdict::None,
        }
    }

    // ---- insertion ----------------------------------------------------------------------------

    /// `find_dsq_for_dispatch()`. `cpu`: whose local queue `SCX_DSQ_LOCAL` is; `task_cpu`: whose node's the global one is.
    pub(super) fn scx_find_dsq_for_dispatch(
        &mut self,
        cpu: CpuId,
        dsq_id: u64,
        task_cpu: CpuId,
    ) -> DsqIndex {
        let nr_cpus = self.sched.nr_cpus() as u64;
        let ext = self.sched.scx();
        let global = ext.dsqs.global(ext.node_of[task_cpu.index()]);
        if dsq_id == SCX_DSQ_LOCAL {
            return ext.dsqs.local(cpu);
        }
        if dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
            let on = dsq_id & SCX_DSQ_LOCAL_CPU_MASK;
            if on < nr_cpus {
                return ext.dsqs.local(CpuId(on as u16));
            }
            self.scx_error(format!(
                "invalid CPU {} in SCX_DSQ_LOCAL_ON dispatch verdict",
                on as i32
            ));
            return global;
        }
        if dsq_id == SCX_DSQ_GLOBAL {
            return global;
        }
        match ext.dsqs.user(dsq_id) {
            Some(dsq) => dsq,
            None => {
                self.scx_error(format!("non-existent DSQ 0x{dsq_id:x}"));
                global
            }
        }
    }

    /// `scx_dsq_insert_commit()`.
    pub(super) fn scx_insert(&mut self, task: TaskId, dsq_id: u64, carried: Carried, flags: u64) {
        let ext = self.sched.scx_mut();
        if ext.form.sets_slice_at_call {
            let entity = &mut ext.tasks[task.index()];
            entity.slice = match carried.slice {
                0 => entity.slice.max(1),
                slice => slice,
            };
            if flags & super::SCX_ENQ_DSQ_PRIQ != 0 {
                entity.dsq_vtime = carried.vtime;
            }
        }
        match std::mem::replace(&mut ext.ddsp, DirectDispatch::Done) {
            DirectDispatch::Task(asked) if asked == task => {
                let entity = &mut ext.tasks[task.index()];
                entity.ddsp_slice = carried.slice;
                entity.ddsp_vtime = carried.vtime;
                entity.ddsp_dsq_id = dsq_id;
                entity.ddsp_enq_flags = flags;
            }
            DirectDispatch::Task(asked) => {
                let message = format!(
                    "scheduling for task {} but trying to direct-dispatch task {}",
                    asked.0, task.0
                );
                self.scx_error(message);
            }
            DirectDispatch::Done => {
                self.scx_error(format!("task {} already direct-dispatched", task.0))
            }
            DirectDispatch::No => {
                ext.ddsp = DirectDispatch::No;
                if ext.buf.len() >= ext.dispatch_max_batch {
                    return self.scx_error("dispatch buffer overflow".to_string());
                }
                let entity = &ext.tasks[task.index()];
                let qseq = if entity.held { entity.qseq } else { 0 };
                let Carried { slice, vtime } = carried;
                ext.buf.push(BufEntry { task, qseq, dsq_id, slice, vtime, enq_flags: flags });
            }
        }
    }

    /// `scx_flush_dispatch_buf()`.
    pub(super) fn scx_flush_dispatch_buf(&mut self, cpu: CpuId) {
        let count = self.sched.scx().buf.len();
        for at in 0..count {
            let entry = self.sched.scx().buf[at];
            self.scx_finish_dispatch(cpu, entry);
        }
        let ext = self.sched.scx_mut();
        ext.nr_tasks += count as u32;
        ext.buf.clear();
    }

    /// `finish_dispatch()`.
    fn scx_finish_dispatch(&mut self, cpu: CpuId, entry: BufEntry) {
        let BufEntry { task, qseq, dsq_id, slice, vtime, enq_flags } = entry;
        let ext = self.sched.scx_mut();
        let entity = &mut ext.tasks[task.index()];
        if !entity.held || entity.qseq != qseq {
            ext.events.stale_inserts += 1;
            return;
        }
        entity.held = false;
        ext.events.from_dispatch += 1;
        let task_cpu = self.sched.tasks[task].cpu;
        let dsq = self.scx_find_dsq_for_dispatch(cpu, dsq_id, task_cpu);
        let carried = Carried { slice, vtime };
        match self.sched.scx().dsqs[dsq].cpu {
            Some(to) => self.scx_dispatch_to_local_dsq(task, to, carried, enq_flags),
            None => self.scx_dispatch_enqueue(cpu, dsq, task, Some(carried), enq_flags),
        }
    }

    /// `dispatch_to_local_dsq()`.
    fn scx_dispatch_to_local_dsq(
        &mut self,
        task: TaskId,
        to: CpuId,
        carried: Carried,
        enq_flags: u64,
    ) {
        let from = self.sched.tasks[task].cpu;
        let local = self.sched.scx().dsqs.local(to);
        if from == to {
            self.scx_dispatch_enqueue(to, local, task, Some(carried), enq_flags);
        } else if !self.sched.tasks[task].cpus_mask.contains(to) {
            self.scx_error(format!(
                "SCX_DSQ_LOCAL[_ON] target CPU {to} not allowed for task {}",
                task.0
            ));
            let ext = self.sched.scx();
            let global = ext.dsqs.global(ext.node_of[from.index()]);
            return self.scx_dispatch_enqueue(from, global, task, Some(carried), enq_flags);
        } else {
            self.sched.scx_mut().apply_slice_vtime(task, carried, enq_flags);
            self.scx_move_remote_task(task, from, to, enq_flags);
        }
        let curr = self.sched.rq[to].curr;
        if self.sched.tasks[curr].class < Class::Ext {
            self.sched.resched_curr(to, &mut self.cpuidle, &mut self.cx);
        }
    }

    /// `run_deferred()`: what a call has left for when its run queue is no longer locked.
    #[inline(never)]
    pub(crate) fn scx_run_deferred(&mut self, cpu: CpuId) {
        self.scx_process_ddsp_deferred_locals(cpu);
        self.scx_process_deferred_reenqs(cpu);
    }

    /// `process_ddsp_deferred_locals()`: direct dispatches from `cpu` to other CPUs' local queues.
    fn scx_process_ddsp_deferred_locals(&mut self, cpu: CpuId) {
        if let Some(ext) = &mut self.sched.ext
            && !ext.rqs[cpu].deferred_locals.is_empty()
        {
            ext.note(Step::Deferred { cpu });
        }
        // A task leaves the list in each turn, and none comes.
        while let Some(ext) = &mut self.sched.ext
            && !ext.rqs[cpu].deferred_locals.is_empty()
        {
            let task = ext.rqs[cpu].deferred_locals.remove(0);
            let entity = &mut ext.tasks[task.index()];
            entity.deferred = false;
            let carried = Carried { slice: entity.ddsp_slice, vtime: entity.ddsp_vtime };
            let (dsq_id, flags) = (entity.ddsp_dsq_id, entity.ddsp_enq_flags);
            entity.clear_direct_dispatch();
            let dsq = self.scx_find_dsq_for_dispatch(cpu, dsq_id, cpu);
            let to = self.sched.scx().dsqs[dsq].cpu.expect("a local queue was deferred");
            self.scx_dispatch_to_local_dsq(task, to, carried, flags);
        }
    }

    // ---- consumption --------------------------------------------------------------------------

    fn scx_consume_global(&mut self, cpu: CpuId) -> bool {
        let ext = self.sched.scx();
        let global = ext.dsqs.global(ext.node_of[cpu.index()]);
        let consumed = ext.dsqs[global].nr > 0 && self.scx_consume_dispatch_q(cpu, global, 0);
        self.sched.scx_mut().events.from_global += u64::from(consumed);
        consumed
    }

    /// `scx_consume_dispatch_q()`: the first task of a queue that may run on `cpu`.
    pub(super) fn scx_consume_dispatch_q(
        &mut self,
        cpu: CpuId,
        dsq: DsqIndex,
        enq_flags: u64,
    ) -> bool {
        let ext = self.sched.scx();
        let is_bypass = ext.dsqs[dsq].id == SCX_DSQ_BYPASS;
        if ext.exit.is_some() && ext.form.bypass_queues && !is_bypass {
            // Many tasks that may not run here could keep the exit waiting.
            return false;
        }
        let mut at = ext.dsqs[dsq].head();
        if at.is_none() {
            // Seen without the lock.
            return false;
        }
        self.scx_lock_dsq(dsq);
        let ext = self.sched.scx();
        while let Some(task) = at {
            let t = &self.sched.tasks[task];
            if t.cpu == cpu || t.cpus_mask.contains(cpu) {
                self.scx_move_to_local(task, cpu, enq_flags);
                return true;
            }
            at = ext.tasks[task.index()].next;
        }
        false
    }

    /// Moves a task from a queue that is no local one into the local one of `to`, which it may run on.
    fn scx_move_to_local(&mut self, task: TaskId, to: CpuId, enq_flags: u64) {
        let (now, from) = (self.cx.now, self.sched.tasks[task].cpu);
        let ext = self.sched.scx_mut();
        ext.dsqs.unlink(task, &mut ext.tasks, now);
        if from != to {
            return self.scx_move_remote_task(task, from, to, enq_flags);
        }
        let local = ext.dsqs.local(to);
        let head = enq_flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT) != 0;
        let place = if head { Place::Head } else { Place::Tail };
        ext.dsqs.link(local, task, place, &mut ext.tasks, now);
        ext.note_inserted(task, local, head);
        self.scx_local_immed(to, task, enq_flags);
        self.scx_local_post_enq(to, task, enq_flags);
    }

    /// `move_remote_task_to_local_dsq()`.
    fn scx_move_remote_task(&mut self, task: TaskId, from: CpuId, to: CpuId, enq_flags: u64) {
        let cost = self.cx.platform.device_tree.path_costs.migrate_task;
        self.sched.charge(cost, &mut self.cx);
        self.sched.update_rq_clock(from, &self.cx);
        let ext = self.sched.scx_mut();
        ext.events.migrations += 1;
        ext.tasks[task.index()].sticky_cpu = Some(to);
        ext.note(Step::Moved { task, to });
        self.deactivate_task(from, task, 0);
        self.set_task_cpu(task, to);
        self.sched.scx_mut().rqs[to].remote_activate_enq_flags = enq_flags;
        self.activate_task(to, task, 0);
        self.sched.scx_mut().rqs[to].remote_activate_enq_flags = 0;
    }

    /// `move_task_between_dsqs()`: a task in a user DSQ, to any queue. `cpu`: whose local queue `SCX_DSQ_LOCAL` is.
    pub(super) fn scx_move_between(&mut self, task: TaskId, cpu: CpuId, dsq_id: u64, flags: u64) {
        let (now, from) = (self.cx.now, self.sched.tasks[task].cpu);
        let mut dsq = self.scx_find_dsq_for_dispatch(cpu, dsq_id, from);
        self.sched.scx_mut().events.moved += 1;
        if let Some(to) = self.sched.scx().dsqs[dsq].cpu {
            if from == to || self.sched.tasks[task].cpus_mask.contains(to) {
                return self.scx_move_to_local(task, to, flags);
            }
            self.scx_error(format!(
                "SCX_DSQ_LOCAL[_ON] target CPU {to} not allowed for task {}",
                task.0
            ));
            let ext = self.sched.scx();
            dsq = ext.dsqs.global(ext.node_of[from.index()]);
        }
        let ext = self.sched.scx_mut();
        ext.dsqs.unlink(task, &mut ext.tasks, now);
        self.scx_dispatch_enqueue(from, dsq, task, None, flags);
    }
}
