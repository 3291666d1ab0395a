// SPDX-License-Identifier: GPL-2.0-or-later
//! Single decisions of the class, for recordings that are driven again (`conformance/`, L1).
//!
//! A kernel with a scheduler loaded that never runs gets the recorded state, is asked one question, and answers by its own
//! functions. Nothing else uses this, and it decides nothing.

use super::SCX_ENQ_DSQ_PRIQ;
use super::class::Carried;
use super::idle::IdleCpus;
use super::steps::Verdict;
use crate::Kernel;
use crate::sched::{Class, OnRq};
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId};

/// What the default selection reads.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// The task.
    pub task: TaskId,
    /// The CPU that asks.
    pub this: CpuId,
    /// Where the task was.
    pub prev: CpuId,
    /// `SCX_WAKE_*`.
    pub wake_flags: u64,
    /// The CPUs that it may have.
    pub allowed: CpuMask,
    /// The masks: idle CPUs, CPUs of idle cores.
    pub idle: [CpuMask; 2],
    /// The CPU that the asking one chose last out of several.
    pub cursor: CpuId,
    /// Whether tasks wait in the asking CPU's local DSQ.
    pub local_waits: bool,
    /// `SCX_PICK_IDLE_*`.
    pub flags: u64,
}

/// A task that waits in a user DSQ.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The task.
    pub task: TaskId,
    /// The CPU that it was on last.
    pub cpu: CpuId,
    /// Those that it may have.
    pub cpus: CpuMask,
}

/// What a CPU runs when it picks.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// The task; `None`: one of another class.
    pub task: Option<TaskId>,
    /// It is runnable still.
    pub queued: bool,
    /// What is left of its slice, before it is charged.
    pub slice: u64,
    /// `exec_start`.
    pub exec_start: Ns,
    /// `rq->clock_task`.
    pub clock_task: Ns,
}

/// A kernel with a scheduler, asked for one decision after the other.
pub struct ExtSteps<'a>(pub &'a mut Kernel);

impl ExtSteps<'_> {
    /// `scx_select_cpu_dfl()`, and the cursor after it.
    pub fn select(&mut self, q: &Selection) -> (Option<CpuId>, CpuId) {
        let kernel = &mut *self.0;
        kernel.cx.this_cpu = q.this;
        kernel.sched.set_distribute_cursor(q.this, q.cursor);
        kernel.sched.tasks[q.task].cpus_mask = q.allowed;
        kernel.sched.tasks[q.task].nr_cpus_allowed = q.allowed.weight();
        let ext = kernel.sched.scx_mut();
        ext.idle.masks[0] = IdleCpus { cpu: q.idle[0], smt: q.idle[1] };
        let local = ext.dsqs.local(q.this);
        if q.local_waits {
            ext.dsqs.link(local, q.task, super::dsq::Place::Tail, &mut ext.tasks, 0);
        }
        let chosen = kernel.scx_select_cpu_dfl(q.task, q.prev, q.wake_flags, None, q.flags);
        self.leave(q.task);
        (chosen, self.0.sched.distribute_cursor(&self.0.cx))
    }

    /// `scx_dispatch_enqueue()` into a user DSQ; by virtual time, or in front or behind as the flags say.
    pub fn enqueue(&mut self, task: TaskId, dsq_id: u64, vtime: u64, enq_flags: u64) {
        let dsq = self.0.sched.scx().dsqs.user(dsq_id).expect("the scheduler has made it");
        let carried = Carried { slice: 1, vtime };
        self.0.scx_dispatch_enqueue(CpuId(0), dsq, task, Some(carried), enq_flags);
    }

    /// Whether an insertion with these flags is by virtual time.
    pub fn is_by_vtime(enq_flags: u64) -> bool {
        enq_flags & SCX_ENQ_DSQ_PRIQ != 0
    }

    /// The task leaves its queue, if it is in one.
    pub fn leave(&mut self, task: TaskId) {
        let ext = self.0.sched.scx_mut();
        if ext.tasks[task.index()].dsq.is_some() {
            ext.dsqs.unlink(task, &mut ext.tasks, 0);
        }
    }

    /// The tasks of a user DSQ, in its order.
    pub fn order(&self, dsq_id: u64) -> Vec<TaskId> {
        let ext = self.0.sched.scx();
        let dsq = ext.dsqs.user(dsq_id).expect("the scheduler has made it");
        let next = |task: &TaskId| ext.tasks[task.index()].next;
        std::iter::successors(ext.dsqs[dsq].head(), next).collect()
    }

    /// A task waits in a queue: as it was enqueued, with its run queue counting it. `dsq_id`: a user's; `None`: the local one of its CPU.
    pub fn waits(&mut self, waiting: &Waiting, dsq_id: Option<u64>) {
        let Waiting { task, cpu, cpus } = *waiting;
        let sched = &mut self.0.sched;
        let t = &mut sched.tasks[task];
        (t.cpu, t.cpus_mask, t.nr_cpus_allowed, t.on_rq) = (cpu, cpus, cpus.weight(), OnRq::Queued);
        sched.add_nr_running(cpu, 1);
        let ext = sched.scx_mut();
        ext.rqs[cpu].nr_running += 1;
        let dsq = match dsq_id {
            Some(id) => ext.dsqs.user(id).expect("the scheduler has made it"),
            None => ext.dsqs.local(cpu),
        };
        ext.tasks[task.index()].queued = true;
        ext.dsqs.link(dsq, task, super::dsq::Place::Tail, &mut ext.tasks, 0);
    }

    /// `dispatch_one()` with the scheduler's own `dispatch`: what it finds, the head of the local DSQ, what the slice of the
    /// running task is then.
    pub fn pick(&mut self, cpu: CpuId, running: &Running) -> (Verdict, Option<TaskId>, u64) {
        let kernel = &mut *self.0;
        kernel.cx.this_cpu = cpu;
        let prev = running.task.unwrap_or(TaskId::IDLE);
        kernel.sched.rq[cpu].curr = prev;
        kernel.sched.rq[cpu].clock_task = running.clock_task;
        if let Some(task) = running.task {
            let t = &mut kernel.sched.tasks[task];
            (t.cpu, t.class, t.on_rq) = (cpu, Class::Ext, OnRq::Queued);
            let se = t.se;
            kernel.sched.se[se].exec_start = running.exec_start;
            kernel.sched.add_nr_running(cpu, u32::from(running.queued));
            let ext = kernel.sched.scx_mut();
            ext.rqs[cpu].nr_running += u32::from(running.queued);
            let entity = &mut ext.tasks[task.index()];
            (entity.slice, entity.queued) = (running.slice, running.queued);
        }
        let verdict = kernel.scx_dispatch_one(cpu, prev).noted();
        let ext = kernel.sched.scx();
        let head = ext.dsqs[ext.dsqs.local(cpu)].head();
        (verdict, head, ext.tasks[prev.index()].slice)
    }
}
