// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler may call: `scx_bpf_*`, by the names that they have after that prefix.
//!
//! **Idea.** A scheduler never holds the kernel. Each of its callbacks gets a [`Kfuncs`], which has the kernel's functions
//! for it and ends with the call. What a call may not do is an error of the scheduler, as in Linux: it is unloaded.
//!
//! Linux calls `ops.dequeue()` in the middle of a function that dispatches a task. A scheduler in Rust hears of it when its
//! own call is over; one in C at once ([`Kfuncs::take_notice`]).
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c, idle.c, the functions that begin with `scx_bpf_`.

use super::class::Carried;
use super::cost;
use super::dsq::{
    DsqError, SCX_DSQ_FLAG_BUILTIN, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_CPU_MASK, SCX_DSQ_LOCAL_ON,
};
use super::steps::{Call, Op, Step};
use super::{
    ExitKind, Ext, ExtEntity, ReenqReason, SCX_CPUPERF_ONE, SCX_ENQ_DSQ_PRIQ,
    SCX_ENQ_INTERNAL_MASK, Timer,
};
use crate::Kernel;
use crate::arena::Id;
use crate::policy::ExtScheduler;
use crate::sched::TaskKind;
use crate::time::hrtimer::TimerKind;
use schedtwin_types::{CpuId, CpuMask, Ns, Policy, TaskGroupId, TaskId};
use std::cell::Cell;

/// Functions of the kernel for a scheduler's callback.
pub struct Kfuncs<'a> {
    kernel: &'a mut Kernel,
    /// Time that the call costs beside `op_cost`.
    owed: Cell<Ns>,
}

/// What a scheduler can read of a task (`struct task_struct`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// `pid`.
    pub task: TaskId,
    /// `task_cpu()`.
    pub cpu: CpuId,
    /// `cpus_ptr`.
    pub cpus: CpuMask,
    /// `nr_cpus_allowed`.
    pub nr_cpus_allowed: u32,
    /// The kind of code that it runs.
    pub kind: TaskKind,
    /// `prio`.
    pub prio: i32,
    /// The nice value.
    pub nice: i8,
    /// `policy`.
    pub policy: Policy,
    /// `se.sum_exec_runtime`.
    pub sum_exec_runtime: Ns,
    /// `scx.slice`.
    pub slice: u64,
    /// `scx.dsq_vtime`.
    pub dsq_vtime: u64,
    /// `scx.weight`.
    pub weight: u32,
    /// `scx.flags & SCX_TASK_QUEUED`.
    pub queued: bool,
    /// `on_cpu`: it is what its CPU runs.
    pub running: bool,
    /// `flags & PF_EXITING`.
    pub exiting: bool,
    /// `scx.flags & SCX_TASK_IMMED`.
    pub immed: bool,
    /// `scx.flags & SCX_TASK_REENQ_REASON_MASK`: why it is enqueued anew.
    pub reenq_reason: ReenqReason,
    /// `scx.runnable_at`, jiffies.
    pub runnable_at: u64,
    /// `utime + stime`: ticks that came while it ran, since the scheduler is there.
    pub ticked: Ns,
    /// `nvcsw`, since the scheduler is there.
    pub voluntary_switches: u64,
    /// `nivcsw`, since the scheduler is there.
    pub involuntary_switches: u64,
}

/// A walk over a user DSQ (`bpf_iter_scx_dsq`): tasks that come after its start are left out, and tasks that go are passed
/// over.
#[derive(Clone, Copy, Debug)]
pub struct DsqIter {
    dsq_id: u64,
    seq: u32,
    rev: bool,
    /// The last task that it gave, and its place.
    last: Option<(TaskId, u32)>,
}

impl DsqIter {
    /// As numbers, for a scheduler in C to keep.
    pub fn to_words(self) -> [u64; 4] {
        let (task, seq) = self.last.map_or((0, 0), |(task, seq)| (u64::from(task.0) + 1, seq));
        [self.dsq_id, u64::from(self.seq) << 1 | u64::from(self.rev), task, seq.into()]
    }

    /// What [`DsqIter::to_words`] gave.
    pub fn from_words([dsq_id, seq_and_rev, task, seq]: [u64; 4]) -> DsqIter {
        let last = task.checked_sub(1).map(|task| (TaskId(task as u32), seq as u32));
        DsqIter { dsq_id, seq: (seq_and_rev >> 1) as u32, rev: seq_and_rev & 1 != 0, last }
    }
}

impl<'a> Kfuncs<'a> {
    pub(super) fn new(kernel: &'a mut Kernel) -> Kfuncs<'a> {
        Kfuncs { kernel, owed: Cell::new(0) }
    }

    /// The present call takes so much longer, ns on the fastest CPU.
    #[inline]
    pub fn owe(&self, ns: Ns) {
        self.owed.set(self.owed.get() + ns);
    }

    fn ext(&self) -> &Ext {
        self.kernel.sched.scx()
    }

    pub(super) fn ext_mut(&mut self) -> &mut Ext {
        self.kernel.sched.scx_mut()
    }

    /// A function that is noted, with what it returns as a number.
    fn noted<R>(
        &mut self,
        call: Call,
        number: impl FnOnce(&R) -> i64,
        body: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.ext_mut().note(Step::Call(call));
        let result = body(self);
        let returned = number(&result);
        self.ext_mut().note(Step::CallEnds { returned });
        result
    }

    fn cursor(&self) -> CpuId {
        self.kernel.sched.distribute_cursor(&self.kernel.cx)
    }

    fn cpu(&mut self, cpu: i32, what: &str) -> Option<CpuId> {
        match u16::try_from(cpu) {
            Ok(number) if usize::from(number) < self.kernel.sched.nr_cpus() => Some(CpuId(number)),
            _ => {
                self.kernel.scx_error(format!("{what}: invalid CPU {cpu}"));
                None
            }
        }
    }

    // ---- dispatch queues ----------------------------------------------------------------------

    /// `scx_bpf_reenqueue_local()`: the tasks of this CPU's local queue go through `enqueue` again, as soon as the call
    /// allows it.
    pub fn reenqueue_local(&mut self) {
        self.owe(cost::READ);
        let cpu = self.ext().locked_rq.unwrap_or(self.kernel.cx.this_cpu);
        self.kernel.sched.scx_mut().rqs[cpu].reenq_local = true;
        self.kernel.scx_schedule_deferred_locked(cpu);
    }

    /// `scx_bpf_dsq_reenq()`: the tasks of a local or a user queue go through `enqueue` again, as soon as the call allows it.
    pub fn dsq_reenq(&mut self, dsq_id: u64) {
        self.owe(cost::READ);
        let here = self.ext().locked_rq.unwrap_or(self.kernel.cx.this_cpu);
        let dsq = self.kernel.scx_find_dsq_for_dispatch(here, dsq_id, here);
        let ext = self.kernel.sched.scx_mut();
        if ext.bypass {
            return;
        }
        let on = match ext.dsqs[dsq].cpu {
            Some(cpu) => {
                ext.rqs[cpu].reenq_local = true;
                cpu
            }
            None if ext.dsqs.is_global(dsq) => {
                return self.kernel.scx_error(format!("DSQ 0x{dsq_id:016x} is not allowed"));
            }
            None => {
                let users = &mut ext.rqs[here].reenq_users;
                if !users.contains(&dsq_id) {
                    users.push(dsq_id);
                }
                here
            }
        };
        self.kernel.scx_schedule_deferred_locked(on);
    }

    /// `scx_bpf_create_dsq()`: 0, `-EINVAL` or `-EEXIST`.
    pub fn create_dsq(&mut self, dsq_id: u64) -> i32 {
        let now = self.kernel.cx.now;
        self.noted(
            Call::CreateDsq { dsq_id },
            |error| i64::from(*error),
            |scx| match scx.ext_mut().dsqs.create(dsq_id, now) {
                Ok(()) => 0,
                Err(DsqError::Exists) => -17,
                Err(_) => -22,
            },
        )
    }

    /// `scx_bpf_destroy_dsq()`.
    pub fn destroy_dsq(&mut self, dsq_id: u64) {
        if self.kernel.sched.scx_mut().dsqs.destroy(dsq_id) == Err(DsqError::NotEmpty) {
            self.kernel.scx_error(format!("attempting to destroy in-use dsq 0x{dsq_id:016x}"));
        }
    }

    /// `scx_bpf_dsq_insert()`: a task into a queue, first come first served. A `slice` of 0 keeps the present one.
    pub fn dsq_insert(&mut self, task: TaskId, dsq_id: u64, slice: u64, enq_flags: u64) -> bool {
        if enq_flags & SCX_ENQ_INTERNAL_MASK != 0 {
            self.kernel.scx_error(format!("invalid enq_flags 0x{enq_flags:x}"));
            return false;
        }
        let Some(enq_flags) = self.kernel.scx_vet_enq_flags(dsq_id, enq_flags) else {
            return false;
        };
        let call = Call::Insert { task, dsq_id, slice, vtime: None, enq_flags };
        self.insert(call, Carried { slice, vtime: 0 }, enq_flags);
        true
    }

    fn insert(&mut self, call: Call, carried: Carried, enq_flags: u64) {
        self.owe(cost::INSERT);
        let Call::Insert { task, dsq_id, .. } = call else { unreachable!("an insertion") };
        self.noted(call, |()| 1, |scx| scx.kernel.scx_insert(task, dsq_id, carried, enq_flags));
    }

    /// `scx_bpf_dsq_insert_vtime()`: a task into a queue, by virtual time.
    pub fn dsq_insert_vtime(
        &mut self,
        task: TaskId,
        dsq_id: u64,
        slice: u64,
        vtime: u64,
        enq_flags: u64,
    ) -> bool {
        if enq_flags & SCX_ENQ_INTERNAL_MASK != 0 {
            self.kernel.scx_error(format!("invalid enq_flags 0x{enq_flags:x}"));
            return false;
        }
        let Some(enq_flags) = self.kernel.scx_vet_enq_flags(dsq_id, enq_flags) else {
            return false;
        };
        let flags = enq_flags | SCX_ENQ_DSQ_PRIQ;
        let call = Call::Insert { task, dsq_id, slice, vtime: Some(vtime), enq_flags };
        self.insert(call, Carried { slice, vtime }, flags);
        true
    }

    /// `scx_bpf_dsq_move_to_local()`, in `dispatch`: the first task of a user DSQ that may run here.
    pub fn dsq_move_to_local(&mut self, dsq_id: u64, enq_flags: u64) -> bool {
        self.owe(cost::READ);
        let call = Call::MoveToLocal { dsq_id, enq_flags };
        self.noted(call, |moved| i64::from(*moved), |scx| scx.move_to_local(dsq_id, enq_flags))
    }

    fn move_to_local(&mut self, dsq_id: u64, enq_flags: u64) -> bool {
        let Some(enq_flags) = self.kernel.scx_vet_enq_flags(SCX_DSQ_LOCAL, enq_flags) else {
            return false;
        };
        let Some(cpu) = self.ext().dispatch_cpu else {
            self.kernel.scx_error("dsq_move_to_local outside of ops.dispatch()".to_string());
            return false;
        };
        self.kernel.scx_flush_dispatch_buf(cpu);
        let Some(dsq) = self.ext().dsqs.user(dsq_id) else {
            self.kernel.scx_error(format!("invalid DSQ ID 0x{dsq_id:016x}"));
            return false;
        };
        let moved = self.kernel.scx_consume_dispatch_q(cpu, dsq, enq_flags);
        if moved {
            let ext = self.kernel.sched.scx_mut();
            ext.nr_tasks += 1;
            ext.events.moved += 1;
        }
        moved
    }

    /// `scx_bpf_dispatch_nr_slots()`: free entries of the dispatch buffer.
    pub fn dispatch_nr_slots(&self) -> u32 {
        self.owe(cost::READ);
        let ext = self.ext();
        (ext.dispatch_max_batch - ext.buf.len()) as u32
    }

    /// `scx_bpf_dispatch_cancel()`: drops the last entry.
    pub fn dispatch_cancel(&mut self) {
        self.owe(cost::READ);
        if self.kernel.sched.scx_mut().buf.pop().is_none() {
            self.kernel.scx_error("dispatch buffer underflow".to_string());
        }
    }

    /// `scx_bpf_dsq_nr_queued()`; `-ENOENT`.
    pub fn dsq_nr_queued(&self, dsq_id: u64) -> i32 {
        self.owe(cost::READ);
        let ext = self.ext();
        let dsq = if dsq_id == SCX_DSQ_LOCAL {
            Some(ext.dsqs.local(ext.locked_rq.unwrap_or(self.kernel.cx.this_cpu)))
        } else if dsq_id & SCX_DSQ_LOCAL_ON == SCX_DSQ_LOCAL_ON {
            let cpu = dsq_id & SCX_DSQ_LOCAL_CPU_MASK;
            let there = cpu < self.kernel.sched.nr_cpus() as u64;
            there.then(|| ext.dsqs.local(CpuId(cpu as u16)))
        } else {
            ext.dsqs.user(dsq_id)
        };
        dsq.map_or(-2, |dsq| ext.dsqs[dsq].nr as i32)
    }

    /// `scx_bpf_dsq_peek()`: the head of a user DSQ.
    pub fn dsq_peek(&mut self, dsq_id: u64) -> Option<TaskId> {
        self.owe(cost::READ);
        if dsq_id & SCX_DSQ_FLAG_BUILTIN != 0 {
            self.kernel.scx_error(format!("peek disallowed on builtin DSQ 0x{dsq_id:x}"));
            return None;
        }
        let Some(dsq) = self.ext().dsqs.user(dsq_id) else {
            self.kernel.scx_error(format!("peek on non-existent DSQ 0x{dsq_id:x}"));
            return None;
        };
        self.ext().dsqs[dsq].head()
    }

    /// `bpf_iter_scx_dsq_new()`; `None`: there is no such queue. `rev`: from the end.
    pub fn dsq_iter(&self, dsq_id: u64, rev: bool) -> Option<DsqIter> {
        self.owe(cost::READ);
        let ext = self.ext();
        let seq = ext.dsqs[ext.dsqs.user(dsq_id)?].seq;
        Some(DsqIter { dsq_id, seq, rev, last: None })
    }

    /// `bpf_iter_scx_dsq_next()`.
    pub fn dsq_iter_next(&mut self, iter: &mut DsqIter) -> Option<TaskId> {
        let call = match iter.last {
            None => Call::IterFirst { dsq_id: iter.dsq_id, rev: iter.rev },
            Some(_) => Call::Other,
        };
        let number = |task: &Option<TaskId>| task.map_or(-1, |task| i64::from(task.0));
        self.owe(cost::READ);
        if let Some(dsq) = self.ext().dsqs.user(iter.dsq_id) {
            self.kernel.scx_lock_dsq(dsq);
        }
        self.noted(call, number, |scx| scx.iter_next(iter))
    }

    fn iter_next(&self, iter: &mut DsqIter) -> Option<TaskId> {
        let ext = self.ext();
        let dsq = ext.dsqs.user(iter.dsq_id)?;
        let entity = |task: TaskId| -> &ExtEntity { &ext.tasks[task.index()] };
        let step = |task: TaskId| if iter.rev { entity(task).prev } else { entity(task).next };
        let end = if iter.rev { ext.dsqs[dsq].tail() } else { ext.dsqs[dsq].head() };
        let mut at = match iter.last {
            None => end,
            Some((task, seq)) if entity(task).dsq == Some(dsq) && entity(task).dsq_seq == seq => {
                step(task)
            }
            // It has been taken out: those that were before it have been given already, and are older or gone.
            Some((_, seq)) => {
                let mut at = end;
                while let Some(task) = at
                    && !is_after(entity(task).dsq_seq, seq, iter.rev)
                {
                    at = step(task);
                }
                at
            }
        };
        while let Some(task) = at {
            if (iter.seq.wrapping_sub(entity(task).dsq_seq) as i32) >= 0 {
                iter.last = Some((task, entity(task).dsq_seq));
                return Some(task);
            }
            at = step(task);
        }
        None
    }

    /// `scx_bpf_dsq_move()` and `_vtime()`: the task that a walk has given, to another queue. `slice` and `vtime` of the
    /// task change first, where they are given; `priq`: it goes into the queue by its virtual time.
    pub fn dsq_move(
        &mut self,
        iter: &DsqIter,
        task: TaskId,
        dsq_id: u64,
        (slice, vtime): (Option<u64>, Option<u64>),
        enq_flags: u64,
        priq: bool,
    ) -> bool {
        self.owe(cost::READ);
        let call = Call::Move { task, from: iter.dsq_id, dsq_id, slice, vtime, priq, enq_flags };
        self.noted(
            call,
            |moved| i64::from(*moved),
            |scx| scx.move_task(iter, task, dsq_id, (slice, vtime), enq_flags, priq),
        )
    }

    fn move_task(
        &mut self,
        iter: &DsqIter,
        task: TaskId,
        dsq_id: u64,
        (slice, vtime): (Option<u64>, Option<u64>),
        enq_flags: u64,
        priq: bool,
    ) -> bool {
        let Some(enq_flags) = self.kernel.scx_vet_enq_flags(dsq_id, enq_flags) else {
            return false;
        };
        let ext = self.kernel.sched.scx_mut();
        let dsq = ext.dsqs.user(iter.dsq_id);
        let entity = &mut ext.tasks[task.index()];
        let late = (iter.seq.wrapping_sub(entity.dsq_seq) as i32) < 0;
        if dsq.is_none() || entity.dsq != dsq || late || ext.exit.is_some() {
            return false;
        }
        if let Some(vtime) = vtime {
            entity.dsq_vtime = vtime;
        }
        if let Some(slice) = slice {
            ext.set_task_slice(task, slice);
        }
        let cpu = ext.locked_rq.unwrap_or(self.kernel.cx.this_cpu);
        self.kernel.scx_lock_dsq(dsq.expect("a queue that the task is in"));
        let flags = enq_flags | if priq { SCX_ENQ_DSQ_PRIQ } else { 0 };
        self.kernel.scx_move_between(task, cpu, dsq_id, flags);
        true
    }

    // ---- idle CPUs ----------------------------------------------------------------------------

    fn idle_is_tracked(&mut self, what: &str) -> bool {
        let tracked = self.ext().idle.enabled;
        if !tracked {
            self.kernel.scx_error(format!("{what}: built-in idle tracking is disabled"));
        }
        tracked
    }

    /// The class's choice where there is no `select_cpu`: the CPU, with the task dispatched to it if it idles.
    pub fn select_cpu_default(&mut self, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        if !self.ext().idle.enabled {
            return i32::from(prev.0);
        }
        self.kernel.scx_select_cpu_default(task, prev, wake_flags)
    }

    /// `scx_bpf_select_cpu_dfl()`: an idle CPU, claimed, and true; else prev and false.
    pub fn select_cpu_dfl(&mut self, task: TaskId, prev: CpuId, wake_flags: u64) -> (CpuId, bool) {
        self.owe(cost::SELECT);
        if !self.idle_is_tracked("select_cpu_dfl") {
            return (prev, false);
        }
        let call = Call::SelectDfl { task, prev, wake_flags, cursor: self.cursor() };
        let number = |(cpu, idle): &(CpuId, bool)| i64::from(cpu.0) | i64::from(*idle) << 32;
        self.noted(call, number, |scx| match scx.select_idle(task, prev, wake_flags, None, 0) {
            Some(cpu) => (cpu, true),
            None => (prev, false),
        })
    }

    /// `scx_bpf_select_cpu_and()`: an idle CPU of `within`, claimed.
    pub fn select_cpu_and(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        within: &CpuMask,
        flags: u64,
    ) -> Option<CpuId> {
        self.owe(cost::SELECT);
        if !self.idle_is_tracked("select_cpu_and") {
            return None;
        }
        let (mask, cursor) = (*within, self.cursor());
        let call = Call::SelectAnd { task, prev, wake_flags, mask, flags, cursor };
        let number = |cpu: &Option<CpuId>| cpu.map_or(-1, |cpu| i64::from(cpu.0));
        self.noted(call, number, |scx| scx.select_idle(task, prev, wake_flags, Some(within), flags))
    }

    fn select_idle(
        &mut self,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        within: Option<&CpuMask>,
        flags: u64,
    ) -> Option<CpuId> {
        let t = &self.kernel.sched.tasks[task];
        if t.nr_cpus_allowed == 1 && !self.ext().in_select_cpu {
            let only = t.cpus_mask.lowest()?;
            let wanted = within.is_none_or(|within| within.contains(only));
            return (wanted && self.kernel.scx_test_and_clear_cpu_idle(only)).then_some(only);
        }
        self.kernel.scx_select_cpu_dfl(task, prev, wake_flags, within, flags)
    }

    /// `scx_bpf_pick_idle_cpu()`: any idle CPU of a mask, claimed.
    pub fn pick_idle_cpu(&mut self, mask: &CpuMask, flags: u64) -> Option<CpuId> {
        self.owe(cost::PICK);
        if !self.idle_is_tracked("pick_idle_cpu") {
            return None;
        }
        let here = self.kernel.cx.this_cpu;
        self.kernel.scx_pick_idle_cpu(mask, here, flags)
    }

    /// `scx_bpf_pick_idle_cpu_node()`: likewise, of this node first where idle CPUs are kept node by node.
    pub fn pick_idle_cpu_node(&mut self, mask: &CpuMask, node: u16, flags: u64) -> Option<CpuId> {
        self.owe(cost::PICK);
        if !self.idle_is_tracked("pick_idle_cpu_node") {
            return None;
        }
        let near = self.node_cpus(node).lowest().unwrap_or(self.kernel.cx.this_cpu);
        self.kernel.scx_pick_idle_cpu(mask, near, flags)
    }

    /// `scx_bpf_pick_any_cpu()`: likewise, and any CPU of the mask if none idles.
    pub fn pick_any_cpu(&mut self, mask: &CpuMask, flags: u64) -> Option<CpuId> {
        self.owe(cost::PICK);
        let here = self.kernel.cx.this_cpu;
        let tracked = self.ext().idle.enabled;
        let idle = if tracked { self.kernel.scx_pick_idle_cpu(mask, here, flags) } else { None };
        idle.or_else(|| self.any_distribute(mask))
    }

    /// `cpumask_any_distribute()`: a CPU of a mask, another one each time.
    pub fn any_distribute(&mut self, mask: &CpuMask) -> Option<CpuId> {
        let within = mask.and(&self.possible_cpus());
        let kernel = &mut *self.kernel;
        (!within.is_empty()).then(|| kernel.sched.cpumask_any_and_distribute(within, &kernel.cx))
    }

    /// `scx_bpf_test_and_clear_cpu_idle()`.
    pub fn test_and_clear_cpu_idle(&mut self, cpu: i32) -> bool {
        self.owe(cost::READ);
        self.idle_is_tracked("test_and_clear_cpu_idle")
            && self
                .cpu(cpu, "test_and_clear_cpu_idle")
                .is_some_and(|cpu| self.kernel.scx_test_and_clear_cpu_idle(cpu))
    }

    /// `scx_bpf_get_idle_cpumask()`.
    pub fn idle_cpumask(&self) -> CpuMask {
        self.owe(cost::READ);
        self.ext().idle_cpumask()
    }

    /// `scx_bpf_get_idle_smtmask()`.
    pub fn idle_smtmask(&self) -> CpuMask {
        self.owe(cost::READ);
        match self.kernel.sched.has_smt() {
            true => self.ext().idle_smtmask(),
            false => self.ext().idle_cpumask(),
        }
    }

    /// `scx_bpf_get_idle_cpumask_node()`: of a node where idle CPUs are kept node by node, else of all.
    pub fn idle_cpumask_node(&self, node: u16) -> CpuMask {
        self.within_node(self.idle_cpumask(), node)
    }

    /// `scx_bpf_get_idle_smtmask_node()`.
    pub fn idle_smtmask_node(&self, node: u16) -> CpuMask {
        self.within_node(self.idle_smtmask(), node)
    }

    fn within_node(&self, idle: CpuMask, node: u16) -> CpuMask {
        match self.ext().flags & super::SCX_OPS_BUILTIN_IDLE_PER_NODE {
            0 => idle,
            _ => idle.and(&self.node_cpus(node)),
        }
    }

    // ---- CPUs ---------------------------------------------------------------------------------

    /// `scx_bpf_kick_cpu()`.
    pub fn kick_cpu(&mut self, cpu: i32, flags: u64) {
        self.owe(cost::READ);
        self.noted(
            Call::Kick { cpu, flags },
            |()| 0,
            |scx| {
                if let Some(cpu) = scx.cpu(cpu, "kick_cpu") {
                    scx.kernel.scx_kick_cpu(cpu, flags);
                }
            },
        );
    }

    /// `bpf_get_smp_processor_id()`.
    pub fn this_cpu(&self) -> CpuId {
        self.kernel.cx.this_cpu
    }

    /// Does something as if it were on another CPU: a loader runs a program there.
    pub fn on_cpu<R>(&mut self, cpu: CpuId, act: impl FnOnce(&mut Kfuncs) -> R) -> R {
        let here = std::mem::replace(&mut self.kernel.cx.this_cpu, cpu);
        let result = act(self);
        self.kernel.cx.this_cpu = here;
        result
    }

    /// `bpf_get_current_task_btf()`: the task that runs on this CPU.
    pub fn current(&self) -> TaskId {
        self.kernel.sched.rq[self.kernel.cx.this_cpu].curr
    }

    /// `scx_bpf_nr_cpu_ids()`.
    pub fn nr_cpu_ids(&self) -> usize {
        self.kernel.sched.nr_cpus()
    }

    /// `scx_bpf_nr_node_ids()`.
    pub fn nr_node_ids(&self) -> usize {
        self.ext().node_of.iter().max().map_or(1, |last| usize::from(*last) + 1)
    }

    /// `scx_bpf_cpu_node()`.
    pub fn cpu_node(&self, cpu: CpuId) -> u16 {
        self.ext().node_of[cpu.index()]
    }

    /// The CPUs of a node.
    pub fn node_cpus(&self, node: u16) -> CpuMask {
        self.ext().cpu_mask_of_node(node)
    }

    /// `scx_bpf_get_possible_cpumask()`, and the online ones.
    pub fn possible_cpus(&self) -> CpuMask {
        self.kernel.cx.platform.device_tree.all_cpus()
    }

    /// `sd_llc_id`: the first CPU of the last-level cache.
    pub fn llc_id(&self, cpu: CpuId) -> CpuId {
        self.kernel.sched.topology.sd_llc_id[cpu.index()]
    }

    /// `cpu_smt_mask()`: the threads of a CPU's core.
    pub fn smt_mask(&self, cpu: CpuId) -> CpuMask {
        self.kernel.sched.topology.smt_mask[cpu.index()]
    }

    /// `scx_bpf_cpu_curr()`: the task that a CPU runs.
    pub fn cpu_curr(&self, cpu: CpuId) -> TaskId {
        self.owe(cost::READ);
        self.kernel.sched.rq[cpu].curr
    }

    /// `scx_bpf_cpuperf_cap()`: the capacity of a CPU at its highest frequency.
    pub fn cpuperf_cap(&self, cpu: CpuId) -> u32 {
        self.owe(cost::READ);
        self.kernel.sched.arch_scale_cpu_capacity(cpu) as u32
    }

    /// `scx_bpf_cpuperf_cur()`: its frequency, 1024 being the highest.
    pub fn cpuperf_cur(&self, cpu: CpuId) -> u32 {
        self.owe(cost::READ);
        self.kernel.sched.rq[cpu].freq_scale as u32
    }

    /// `scx_bpf_cpuperf_set()`: the performance that schedutil is to ask for, in units of capacity.
    pub fn cpuperf_set(&mut self, cpu: i32, perf: u32) {
        self.owe(cost::READ);
        if perf > SCX_CPUPERF_ONE {
            return self.kernel.scx_error(format!("Invalid cpuperf target {perf} for CPU {cpu}"));
        }
        let Some(cpu) = self.cpu(cpu, "cpuperf_set") else { return };
        let ext = self.kernel.sched.scx();
        let locked = ext.locked_rq;
        if ext.form.cpuperf_locked && locked.is_some_and(|locked| locked != cpu) {
            return self.kernel.scx_error(format!("Invalid target CPU {cpu}"));
        }
        if locked.is_none() {
            self.kernel.sched.update_rq_clock(cpu, &self.kernel.cx);
        }
        self.kernel.sched.scx_mut().rqs[cpu].cpuperf_target = perf;
        self.kernel.sched.stale_demands.mark(cpu);
        self.kernel.cpufreq_update_util(cpu, 0);
    }

    // ---- tasks --------------------------------------------------------------------------------

    /// What can be read of a task.
    pub fn task(&self, task: TaskId) -> TaskView {
        let (t, entity) = (&self.kernel.sched.tasks[task], self.kernel.sched.scx_task(task));
        TaskView {
            task,
            cpu: t.cpu,
            cpus: t.cpus_mask,
            nr_cpus_allowed: t.nr_cpus_allowed,
            kind: t.kind,
            prio: t.prio,
            nice: t.nice,
            policy: t.policy,
            sum_exec_runtime: self.kernel.sched.se[t.se].sum_exec_runtime,
            slice: entity.slice,
            dsq_vtime: entity.dsq_vtime,
            weight: entity.weight,
            queued: entity.queued,
            running: !task.is_idle() && self.kernel.sched.rq[t.cpu].curr == task,
            exiting: t.exiting,
            immed: entity.immed,
            reenq_reason: entity.reenq_reason,
            runnable_at: entity.runnable_at,
            ticked: entity.ticks * self.kernel.cx.tick_nsec,
            voluntary_switches: entity.context_switches[0],
            involuntary_switches: entity.context_switches[1],
        }
    }

    /// `bpf_task_from_pid()`.
    pub fn task_from_pid(&self, pid: i32) -> Option<TaskId> {
        self.owe(cost::TASK);
        let task = TaskId(u32::try_from(pid).ok().filter(|pid| *pid > 0)?);
        let known = self.ext().tasks.get(task.index())?;
        (known.state != super::TaskState::None).then_some(task)
    }

    /// `scx_bpf_task_cgroup()`; of an autogroup the root.
    pub fn task_cgroup(&self, task: TaskId) -> TaskGroupId {
        self.kernel.sched.scx_cgroup_of(task)
    }

    /// A cgroup; `None`: there is none of this number.
    pub fn cgroup(&self, group: TaskGroupId) -> Option<super::CgroupView> {
        self.kernel.sched.scx_cgroup(group)
    }

    /// `scx_bpf_events()`.
    pub fn events(&self) -> super::Events {
        self.ext().events
    }

    /// The number of task groups, of which some are no cgroups.
    pub fn nr_cgroups(&self) -> usize {
        self.kernel.sched.groups.len()
    }

    /// `bpf_cgroup_from_id()`.
    pub fn cgroup_from_id(&self, id: u64) -> Option<TaskGroupId> {
        self.owe(cost::TASK);
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        let group = TaskGroupId::from_index(at);
        self.ext().cgroups.files(group).map(|_| group)
    }

    /// `scx_bpf_task_cpu()`.
    pub fn task_cpu(&self, task: TaskId) -> CpuId {
        self.owe(cost::READ);
        self.kernel.sched.tasks[task].cpu
    }

    /// `scx_bpf_task_running()`.
    pub fn task_running(&self, task: TaskId) -> bool {
        self.owe(cost::READ);
        self.kernel.sched.rq[self.kernel.sched.tasks[task].cpu].curr == task
    }

    /// `scx_bpf_task_set_slice()`: at once if the task's CPU is the one of this call or the task waits, else when it is
    /// charged next.
    pub fn task_set_slice(&mut self, task: TaskId, slice: u64) -> bool {
        self.owe(cost::READ);
        let running = self.task_running(task);
        let cpu = self.task_cpu(task);
        self.noted(
            Call::SetSlice { task, slice },
            |set| i64::from(*set),
            |scx| {
                let ext = scx.ext_mut();
                if running && ext.locked_rq != Some(cpu) {
                    ext.tasks[task.index()].slice_oob = Some(slice);
                } else {
                    ext.set_task_slice(task, slice);
                }
                true
            },
        )
    }

    /// A store to `p->scx.slice`, as programs of the older form have it.
    pub fn store_slice(&mut self, task: TaskId, slice: u64) {
        self.kernel.sched.scx_task_mut(task).slice = slice;
    }

    /// `scx_bpf_task_set_dsq_vtime()`.
    pub fn task_set_dsq_vtime(&mut self, task: TaskId, vtime: u64) -> bool {
        self.noted(
            Call::SetVtime { task, vtime },
            |set| i64::from(*set),
            |scx| {
                scx.kernel.sched.scx_task_mut(task).dsq_vtime = vtime;
                true
            },
        )
    }

    // ---- time, timers, the end ----------------------------------------------------------------

    /// `scx_bpf_now()`: the clock of the locked run queue, else the CPU's.
    pub fn now(&self) -> Ns {
        self.owe(cost::READ);
        match self.ext().locked_rq {
            Some(cpu) => self.kernel.sched.rq[cpu].clock,
            None => self.kernel.cx.local_clock(),
        }
    }

    /// `rq->clock_task` and the clock of PELT of a CPU, as they were when they moved last.
    pub fn rq_clocks(&self, cpu: CpuId) -> (Ns, Ns) {
        self.owe(cost::READ);
        let rq = &self.kernel.sched.rq[cpu];
        (rq.clock_task, rq.clock_pelt.rq_clock_pelt())
    }

    /// Whether an interrupt is being handled (`bpf_in_hardirq()`).
    pub fn in_interrupt(&self) -> bool {
        self.kernel.cx.in_irq
    }

    /// `bpf_ktime_get_ns()`.
    pub fn ktime_get_ns(&self) -> Ns {
        self.owe(cost::CLOCK);
        self.kernel.cx.local_clock()
    }

    /// `jiffies`.
    pub fn jiffies(&self) -> u64 {
        self.kernel.cx.jiffies()
    }

    /// `bpf_timer_init()`: the number of a timer.
    pub fn timer_init(&mut self) -> u32 {
        let timers = &mut self.kernel.sched.scx_mut().timers;
        timers.push(Timer { on: None });
        timers.len() as u32 - 1
    }

    /// `bpf_timer_start()`: `timer` is called after `ns`, or at `ns` if `absolute`; `pinned`: on this CPU.
    pub fn timer_start(&mut self, timer: u32, ns: Ns, absolute: bool, pinned: bool) {
        self.owe(cost::TIMER);
        self.timer_cancel(timer);
        let kernel = &mut *self.kernel;
        let at = if absolute { ns } else { kernel.cx.local_clock().saturating_add(ns) };
        let this = kernel.cx.this_cpu;
        let kind = TimerKind::ScxTimer(timer);
        let on = if pinned { this } else { kernel.hrtimer_target(kind, at, this) };
        kernel.sched.scx_mut().timers[timer as usize].on = Some(on);
        kernel.time.hrtimer_start(on, at, at, kind, &mut kernel.cx);
    }

    /// `bpf_timer_cancel()`; whether it was queued.
    pub fn timer_cancel(&mut self, timer: u32) -> bool {
        self.owe(cost::TIMER);
        let kernel = &mut *self.kernel;
        let on = kernel.sched.scx_mut().timers[timer as usize].on.take();
        let Some(on) = on else { return false };
        kernel.time.hrtimer_cancel(on, TimerKind::ScxTimer(timer), &mut kernel.cx);
        true
    }

    /// `scx_bpf_error()`: the scheduler ends with an error.
    pub fn error(&mut self, message: impl Into<String>) {
        self.kernel.scx_exit(ExitKind::ErrorBpf, 0, message.into(), None);
    }

    /// `scx_bpf_exit()`: the scheduler ends.
    pub fn exit(&mut self, code: i64, message: impl Into<String>) {
        self.kernel.scx_exit(ExitKind::UnregBpf, code, message.into(), None);
    }

    /// The scheduler has no such callback: the call costs nothing.
    pub fn absent(&mut self) {
        self.kernel.sched.scx_mut().absent = true;
    }

    /// How the scheduler ended, in `exit`.
    pub fn exit_info(&self) -> Option<&super::Exit> {
        self.ext().exit.as_ref()
    }

    /// A call of `ops.dequeue()` that came about within the present call: the task and the flags.
    pub fn take_notice(&mut self) -> Option<(TaskId, u64)> {
        let notices = &mut self.kernel.sched.scx_mut().notices;
        (!notices.is_empty()).then(|| notices.remove(0))
    }
}

/// Whether a task of `seq` follows one of `last` in a queue that is first come first served, or precedes it in reverse.
fn is_after(seq: u32, last: u32, rev: bool) -> bool {
    let after = (seq.wrapping_sub(last) as i32) > 0;
    if rev { !after } else { after }
}

impl Kernel {
    /// Calls the scheduler. `locked`: the CPU whose run queue is locked meanwhile.
    pub(super) fn scx_call<R>(
        &mut self,
        locked: Option<CpuId>,
        call: impl FnOnce(&mut dyn ExtScheduler, &mut Kfuncs) -> R,
    ) -> R {
        let ext = self.sched.scx_mut();
        let before = std::mem::replace(&mut ext.locked_rq, locked);
        ext.absent = false;
        let mut scheduler = self.own.take_ext();
        let mut kfuncs = Kfuncs::new(self);
        let result = call(&mut *scheduler.policy, &mut kfuncs);
        let owed = kfuncs.owed.get();
        self.own.put_ext(scheduler);
        let ext = self.sched.scx_mut();
        ext.locked_rq = before;
        if !ext.absent {
            ext.events.ops += 1;
            let cost = ext.op_cost + owed;
            self.sched.charge(cost, &mut self.cx);
        }
        self.scx_tell_notices();
        result
    }

    /// `ops.dequeue()`, at once or when the call that is under way has ended.
    pub(super) fn scx_call_dequeue(&mut self, task: TaskId, deq_flags: u64, cpu: CpuId) {
        if self.own.has_ext() {
            self.scx_op(Some(cpu), Op::Dequeue { task, deq_flags });
        } else {
            self.sched.scx_mut().notices.push((task, deq_flags));
        }
    }

    fn scx_tell_notices(&mut self) {
        // Each turn takes one; a call of dequeue() dispatches nothing, so none comes.
        while let Some((task, flags)) = Kfuncs::new(self).take_notice() {
            let cpu = self.sched.tasks[task].cpu;
            self.scx_op(Some(cpu), Op::Dequeue { task, deq_flags: flags });
        }
    }

    /// A timer of the scheduler's has expired.
    pub(crate) fn scx_timer(&mut self, timer: u32) {
        let Some(ext) = &mut self.sched.ext else { return };
        ext.timers[timer as usize].on = None;
        self.scx_op(None, Op::Timer { timer });
    }
}
