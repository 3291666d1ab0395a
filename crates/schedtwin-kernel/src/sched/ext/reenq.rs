// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that are enqueued anew: because the scheduler wants it, or because they must not wait (`SCX_ENQ_IMMED`).
//!
//! **Idea.** A task that is inserted into a local queue with IMMED is to run at once, or its scheduler is to hear of it again: it
//! never waits behind another task, nor under a higher class. Such a task goes through `enqueue` with `SCX_ENQ_REENQ`, and
//! `p->scx.flags` says why.
//!
//! | reason | it comes back because |
//! |---|---|
//! | `SCX_TASK_REENQ_KFUNC` | the scheduler asked for it (`scx_bpf_dsq_reenq()`) |
//! | `SCX_TASK_REENQ_IMMED` | the CPU is not open: it is not the first, or somebody runs with slice left, or a higher class comes |
//! | `SCX_TASK_REENQ_PREEMPTED` | a higher class took the CPU while it ran |
//!
//! A CPU is *open* if it is or goes idle, if it is looking for a task, or if the insertion preempts. IMMED stays with a task until it
//! is enqueued anew. A task that comes back more than [`SCX_REENQ_MAX_REPEAT`] times without running ends the scheduler.
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c `dsq_inc_nr`, `rq_is_open`, `wakeup_preempt_scx`, `reenq_local`, `reenq_user`,
//! `process_deferred_reenq_locals`.
//! Differences: capabilities of sub-schedulers, and the reason `SCX_TASK_REENQ_CAP` with them, are absent. A scheduler without
//! children may run on every CPU, so `SCX_ENQ_RESCUE` asks for nothing.

use super::dsq::{SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON};
use super::{
    DirectDispatch, ExitKind, Ext, SCX_ENQ_IMMED, SCX_ENQ_PREEMPT, SCX_ENQ_REENQ, SCX_ENQ_RESCUE,
    SCX_OPS_ALWAYS_ENQ_IMMED,
};
use crate::Kernel;
use crate::sched::Class;
use schedtwin_types::{CpuId, TaskId};

/// `SCX_REENQ_MAX_REPEAT`.
const SCX_REENQ_MAX_REPEAT: u32 = 256;

/// Why a task is enqueued anew: `SCX_TASK_REENQ_*`, as numbers in `p->scx.flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReenqReason {
    /// It is not.
    #[default]
    None = 0,
    /// The scheduler asked for it.
    Kfunc = 1,
    /// It may not wait.
    Immed = 2,
    /// It was preempted, and may not wait.
    Preempted = 3,
}

impl Kernel {
    /// `scx_vet_enq_flags()`: the flags of an insertion into this queue; `None`: they are wrong, which ends the scheduler.
    pub(super) fn scx_vet_enq_flags(&mut self, dsq_id: u64, mut enq_flags: u64) -> Option<u64> {
        let is_local = dsq_id == SCX_DSQ_LOCAL || dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON;
        let ext = self.sched.scx_mut();
        if !ext.form.immed {
            return Some(enq_flags);
        }
        if enq_flags & SCX_ENQ_IMMED == 0 && is_local && ext.flags & SCX_OPS_ALWAYS_ENQ_IMMED != 0 {
            enq_flags |= SCX_ENQ_IMMED;
        }
        for (flag, name) in [(SCX_ENQ_IMMED, "SCX_ENQ_IMMED"), (SCX_ENQ_RESCUE, "SCX_ENQ_RESCUE")] {
            if enq_flags & flag != 0 && !is_local {
                self.scx_error(format!("{name} on a non-local DSQ 0x{dsq_id:x}"));
                return None;
            }
        }
        Some(enq_flags)
    }

    /// `dsq_inc_nr()` of a local queue: a task that may not wait has got into it.
    pub(super) fn scx_local_immed(&mut self, cpu: CpuId, task: TaskId, enq_flags: u64) {
        let ext = self.sched.scx_mut();
        if !ext.form.immed {
            return;
        }
        let is_immed = enq_flags & SCX_ENQ_IMMED != 0;
        ext.uses_immed |= is_immed;
        let entity = &mut ext.tasks[task.index()];
        entity.immed |= is_immed;
        let crowded = ext.dsqs[ext.dsqs.local(cpu)].nr > 1;
        if ext.tasks[task.index()].immed && (crowded || !self.scx_rq_is_open(cpu, enq_flags)) {
            self.scx_schedule_reenq_immed(cpu);
        }
    }

    /// `rq_is_open()`: whether a task of the class could run on the CPU at once.
    fn scx_rq_is_open(&self, cpu: CpuId, enq_flags: u64) -> bool {
        let next_class = self.sched.rq[cpu].next_class;
        match next_class.cmp(&Class::Ext) {
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => {
                self.sched.scx().rqs[cpu].in_dispatch || enq_flags & SCX_ENQ_PREEMPT != 0
            }
        }
    }

    /// `wakeup_preempt_scx()`: a task of a higher class has come to a CPU that is the class's.
    #[inline(never)]
    pub(crate) fn wakeup_preempt_scx(&mut self, cpu: CpuId) {
        if self.sched.scx().has_immed(cpu) {
            self.scx_schedule_reenq_immed(cpu);
        }
    }

    fn scx_schedule_reenq_immed(&mut self, cpu: CpuId) {
        let ext = self.sched.scx_mut();
        if !ext.bypass {
            ext.rqs[cpu].reenq_immed = true;
            self.scx_schedule_deferred_locked(cpu);
        }
    }

    /// Counts that a task comes back; `false`: it has come back too often, and belongs nowhere until the scheduler is gone.
    pub(super) fn scx_count_reenq(&mut self, task: TaskId) -> bool {
        let entity = self.sched.scx_task_mut(task);
        entity.reenq_cnt += 1;
        let count = entity.reenq_cnt;
        if count > SCX_REENQ_MAX_REPEAT {
            let message = format!("task {} reenqueued {count} times without running", task.0);
            self.scx_exit(ExitKind::ErrorReenq, 0, message, Some(task));
        }
        count <= SCX_REENQ_MAX_REPEAT
    }

    /// A task that has been taken out goes to the scheduler again.
    pub(super) fn scx_enqueue_anew(&mut self, cpu: CpuId, task: TaskId, reason: ReenqReason) {
        debug_assert!(self.sched.scx().ddsp == DirectDispatch::No);
        self.sched.scx_task_mut(task).reenq_reason = reason;
        self.scx_do_enqueue_task(cpu, task, SCX_ENQ_REENQ, None);
        if let Some(ext) = &mut self.sched.ext {
            ext.tasks[task.index()].reenq_reason = ReenqReason::None;
        }
    }

    /// `process_deferred_reenq_locals()`, `process_deferred_reenq_users()`.
    pub(super) fn scx_process_deferred_reenqs(&mut self, cpu: CpuId) {
        // A task that comes back into the same queue may ask again; its count ends that.
        while let Some(ext) = &mut self.sched.ext
            && !ext.bypass
        {
            let rq = &mut ext.rqs[cpu];
            let any = std::mem::take(&mut rq.reenq_local);
            if !std::mem::take(&mut rq.reenq_immed) && !any {
                break;
            }
            self.scx_reenq_local(cpu, any);
        }
        while let Some(ext) = &mut self.sched.ext
            && let Some(dsq_id) = ext.rqs[cpu].reenq_users.pop()
            && !ext.bypass
        {
            self.scx_reenq_user(dsq_id);
        }
    }

    /// `reenq_user()`: the tasks that are in a user queue now, each once.
    fn scx_reenq_user(&mut self, dsq_id: u64) {
        let now = self.cx.now;
        let Some(dsq) = self.sched.scx().dsqs.user(dsq_id) else { return };
        let last = self.sched.scx().dsqs[dsq].seq;
        let is_new = |seq: u32| (last.wrapping_sub(seq) as i32) < 0;
        let mut at = self.sched.scx().dsqs[dsq].head();
        while let Some(task) = at {
            let entity = &self.sched.scx().tasks[task.index()];
            at = entity.next;
            // Those that come back may stand anywhere, with later numbers.
            if is_new(entity.dsq_seq) {
                continue;
            }
            let cpu = self.sched.tasks[task].cpu;
            self.sched.update_rq_clock(cpu, &self.cx);
            let ext = self.sched.scx_mut();
            ext.dsqs.unlink(task, &mut ext.tasks, now);
            self.scx_enqueue_anew(cpu, task, ReenqReason::Kfunc);
        }
    }

    /// `reenq_local()`: of the local queue those that may not wait, or `any`.
    fn scx_reenq_local(&mut self, cpu: CpuId, any: bool) {
        let now = self.cx.now;
        let open = self.scx_rq_is_open(cpu, 0);
        let ext = self.sched.scx_mut();
        let mut out = std::mem::take(&mut ext.reenqs);
        let (mut at, mut first) = (ext.dsqs[ext.dsqs.local(cpu)].head(), true);
        while let Some(task) = at {
            let entity = &ext.tasks[task.index()];
            at = entity.next;
            let reason = match entity.immed && !(first && open) {
                true => ReenqReason::Immed,
                false if any => ReenqReason::Kfunc,
                false => ReenqReason::None,
            };
            first = false;
            if reason != ReenqReason::None {
                ext.dsqs.unlink(task, &mut ext.tasks, now);
                out.push((task, reason));
            }
        }
        for &(task, reason) in &out {
            self.scx_enqueue_anew(cpu, task, reason);
        }
        out.clear();
        if let Some(ext) = &mut self.sched.ext {
            ext.reenqs = out;
        }
    }
}

impl Ext {
    /// Whether a task waits in the CPU's local queue that may not.
    pub(super) fn has_immed(&self, cpu: CpuId) -> bool {
        let next = |task: &TaskId| self.tasks[task.index()].next;
        let head = self.dsqs[self.dsqs.local(cpu)].head();
        self.uses_immed && std::iter::successors(head, next).any(|t| self.tasks[t.index()].immed)
    }
}
