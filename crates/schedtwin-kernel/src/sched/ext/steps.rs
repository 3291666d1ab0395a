// SPDX-License-Identifier: GPL-2.0-or-later
//! Steps of the class, one after the other, for who follows them with an implementation of their own (`hunt/src/ext_class`).
//!
//! A step is what the core asks of the class, a call of the scheduler, a call that the scheduler makes, or an effect. Nothing is noted
//! unless somebody asks for it before the run.

use super::dsq::{SCX_DSQ_BYPASS, SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL_ON};
use super::{DsqIndex, Ext, Kfuncs};
use crate::Kernel;
use crate::policy::{CpuPreemptReason, ExtScheduler, TaskChange};
use schedtwin_types::{CpuId, CpuMask, TaskId};

/// A callback of the scheduler, with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    SelectCpu { task: TaskId, prev: CpuId, wake_flags: u64 },
    Enqueue { task: TaskId, enq_flags: u64 },
    Dequeue { task: TaskId, deq_flags: u64 },
    Dispatch { cpu: CpuId, prev: Option<TaskId> },
    Tick { task: TaskId },
    Runnable { task: TaskId, enq_flags: u64 },
    Running { task: TaskId },
    Stopping { task: TaskId, runnable: bool },
    Quiescent { task: TaskId, deq_flags: u64 },
    Yield { from: TaskId },
    Changed { task: TaskId, change: TaskChange },
    UpdateIdle { cpu: CpuId, idle: bool },
    CpuAcquire { cpu: CpuId },
    CpuRelease { cpu: CpuId, reason: CpuPreemptReason, next: TaskId },
    InitTask { task: TaskId, fork: bool },
    ExitTask { task: TaskId },
    Enable { task: TaskId },
    Disable { task: TaskId },
    Init,
    Exit,
    Timer { timer: u32 },
}

/// A function of the kernel that the scheduler calls. Those that only read are not noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Call {
    CreateDsq {
        dsq_id: u64,
    },
    Insert {
        task: TaskId,
        dsq_id: u64,
        slice: u64,
        vtime: Option<u64>,
        enq_flags: u64,
    },
    MoveToLocal {
        dsq_id: u64,
        enq_flags: u64,
    },
    Move {
        task: TaskId,
        from: u64,
        dsq_id: u64,
        slice: Option<u64>,
        vtime: Option<u64>,
        priq: bool,
        enq_flags: u64,
    },
    IterFirst {
        dsq_id: u64,
        rev: bool,
    },
    /// `cursor`: the CPU that this one last chose out of several.
    SelectDfl {
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        cursor: CpuId,
    },
    SelectAnd {
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        mask: CpuMask,
        flags: u64,
        cursor: CpuId,
    },
    Kick {
        cpu: i32,
        flags: u64,
    },
    SetSlice {
        task: TaskId,
        slice: u64,
    },
    SetVtime {
        task: TaskId,
        vtime: u64,
    },
    /// One that the follower does not know.
    Other,
}

/// What `pick` has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The task that ran goes on.
    Prev,
    /// The head of the local DSQ.
    Local,
    /// Nothing of the class.
    None,
}

/// A step of the class.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Step {
    // What the core asks: each begins, what it does follows.
    Select {
        this: CpuId,
        task: TaskId,
        prev: CpuId,
        wake_flags: u64,
        cpus: CpuMask,
    },
    /// `runs`: it is what the CPU runs, and goes on after a change.
    Enqueue {
        cpu: CpuId,
        task: TaskId,
        enq_flags: u64,
        cpus: CpuMask,
        runs: bool,
        exiting: bool,
    },
    Dequeue {
        cpu: CpuId,
        task: TaskId,
        deq_flags: u64,
        migrating: bool,
    },
    Pick {
        cpu: CpuId,
        prev: TaskId,
        prev_is_ext: bool,
    },
    /// `goes_on`: it is the same task that follows, after a change.
    PutPrev {
        cpu: CpuId,
        task: TaskId,
        next_is_idle: bool,
        goes_on: bool,
        exiting: bool,
    },
    SetNext {
        cpu: CpuId,
        task: TaskId,
    },
    Tick {
        cpu: CpuId,
        task: TaskId,
    },
    Yield {
        cpu: CpuId,
        task: TaskId,
    },
    Idle {
        cpu: CpuId,
        idle: bool,
        notify: bool,
    },
    /// What was put off until the run queue may be left: LOCAL_ON of other CPUs.
    Deferred {
        cpu: CpuId,
    },
    /// The scheduler is bypassed from now on, or asked again: all waiting tasks are enqueued anew.
    Bypass {
        on: bool,
    },
    /// The kicks that were asked for on this CPU.
    Kicks {
        cpu: CpuId,
    },
    // The scheduler.
    /// A callback begins, on this CPU.
    Op {
        op: Op,
        this: CpuId,
    },
    OpEnds {
        returned: i32,
    },
    Call(Call),
    CallEnds {
        returned: i64,
    },
    // Effects.
    /// Time that the running task has used.
    Charge {
        task: TaskId,
        ns: u64,
    },
    /// A task has entered a queue; a local one is LOCAL_ON its CPU, a bypass one has the CPU in bits 8 to 23.
    Inserted {
        task: TaskId,
        dsq_id: u64,
        slice: u64,
        at_head: bool,
    },
    Selected {
        task: TaskId,
        cpu: CpuId,
    },
    Picked {
        cpu: CpuId,
        verdict: Verdict,
    },
    /// The task that a pick has found had no slice left, and has a new one.
    Refilled {
        task: TaskId,
    },
    /// A task that waits is on another CPU from now on.
    Moved {
        task: TaskId,
        to: CpuId,
    },
    /// The scheduler has made a mistake, and is to be unloaded.
    Failed,
    /// It is to be unloaded because somebody wants it.
    Leaves,
}

/// The steps since they were last taken; none: nobody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps(Option<Vec<Step>>);

/// The class as it is when somebody begins to follow it.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The IDs of user DSQs.
    pub dsqs: Vec<u64>,
    /// `scx_bpf_get_idle_cpumask()`, `scx_bpf_get_idle_smtmask()`.
    pub idle: [CpuMask; 2],
    /// `SCX_OPS_*`.
    pub flags: u64,
    /// How many tasks one `dispatch` may insert.
    pub dispatch_max_batch: usize,
    /// It is the class of 6.12.
    pub balances: bool,
    /// Tasks of the class.
    pub tasks: Vec<TaskId>,
}

impl Ext {
    #[inline]
    pub(super) fn note(&mut self, step: Step) {
        if let Some(steps) = &mut self.steps.0 {
            steps.push(step);
        }
    }

    /// A task has entered a queue.
    #[inline]
    pub(super) fn note_inserted(&mut self, task: TaskId, dsq: DsqIndex, at_head: bool) {
        let queue = &self.dsqs[dsq];
        let local = queue.cpu.map(|cpu| SCX_DSQ_LOCAL_ON | u64::from(cpu.0));
        let bypass = self.dsqs.bypass_cpu(dsq).map(|cpu| SCX_DSQ_BYPASS | u64::from(cpu.0) << 8);
        let dsq_id = match self.dsqs.is_global(dsq) {
            true => SCX_DSQ_GLOBAL,
            false => local.or(bypass).unwrap_or(queue.id),
        };
        let slice = self.tasks[task.index()].slice;
        self.note(Step::Inserted { task, dsq_id, slice, at_head });
    }
}

impl Kernel {
    /// Notes the class's steps from now on; `None`: no scheduler is loaded.
    pub fn scx_follow(&mut self) -> Option<Beginning> {
        let ext = self.sched.ext.as_mut()?;
        ext.steps.0 = Some(Vec::new());
        let enabled = |task: &TaskId| {
            ext.tasks.get(task.index()).is_some_and(|t| t.state == super::TaskState::Enabled)
        };
        Some(Beginning {
            dsqs: ext.dsqs.iter().map(|(_, dsq)| dsq.id).filter(|id| id >> 63 == 0).collect(),
            idle: [ext.idle_cpumask(), ext.idle_smtmask()],
            flags: ext.flags,
            dispatch_max_batch: ext.dispatch_max_batch,
            balances: ext.form.balances,
            tasks: self.sched.tasks.ids().skip(1).filter(enabled).collect(),
        })
    }

    /// The steps since the last call.
    pub fn scx_take_steps(&mut self) -> Vec<Step> {
        let ext = self.sched.ext.as_mut().or(self.sched.ext_unloaded.as_mut());
        ext.and_then(|ext| ext.steps.0.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    /// A callback of the scheduler; returns 0 where the callback returns nothing. `locked`: the CPU whose run queue is locked meanwhile.
    pub(super) fn scx_op(&mut self, locked: Option<CpuId>, op: Op) -> i32 {
        let this = self.cx.this_cpu;
        self.sched.scx_mut().note(Step::Op { op, this });
        self.scx_call(locked, |ops, scx| {
            let returned = op.call(ops, scx);
            scx.ext_mut().note(Step::OpEnds { returned });
            returned
        })
    }
}

impl Op {
    fn call(self, ops: &mut dyn ExtScheduler, scx: &mut Kfuncs) -> i32 {
        match self {
            Op::SelectCpu { task, prev, wake_flags } => {
                return ops.select_cpu(scx, task, prev, wake_flags);
            }
            Op::InitTask { task, fork } => return ops.init_task(scx, task, fork),
            Op::Init => return ops.init(scx),
            Op::Enqueue { task, enq_flags } => ops.enqueue(scx, task, enq_flags),
            Op::Dequeue { task, deq_flags } => ops.dequeue(scx, task, deq_flags),
            Op::Dispatch { cpu, prev } => ops.dispatch(scx, cpu, prev),
            Op::Tick { task } => ops.tick(scx, task),
            Op::Runnable { task, enq_flags } => ops.runnable(scx, task, enq_flags),
            Op::Running { task } => ops.running(scx, task),
            Op::Stopping { task, runnable } => ops.stopping(scx, task, runnable),
            Op::Quiescent { task, deq_flags } => ops.quiescent(scx, task, deq_flags),
            Op::Yield { from } => ops.yield_task(scx, from),
            Op::Changed { task, change } => ops.changed(scx, task, change),
            Op::UpdateIdle { cpu, idle } => ops.update_idle(scx, cpu, idle),
            Op::CpuAcquire { cpu } => ops.cpu_acquire(scx, cpu),
            Op::CpuRelease { cpu, reason, next } => ops.cpu_release(scx, cpu, reason, next),
            Op::ExitTask { task } => ops.exit_task(scx, task),
            Op::Enable { task } => ops.enable(scx, task),
            Op::Disable { task } => ops.disable(scx, task),
            Op::Exit => ops.exit(scx),
            Op::Timer { timer } => ops.timer(scx, timer),
        }
        0
    }
}
