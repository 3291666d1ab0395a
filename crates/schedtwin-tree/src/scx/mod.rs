// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of sched_ext in C, behind the policy interface.
//!
//! A `.bpf.c` file is compiled as native C against `c/include/schedtwin/scx.h` and called where the kernel calls its
//! programs.
//!
//! | file | what |
//! |---|---|
//! | `code.rs` | the compiled scheduler and its settings |
//! | `loader.rs` | what its own program does before it loads it |
//! | `layout.rs` | structures that the C and the twin share |
//! | `mirror.rs` | tasks as the C sees them |
//! | `mod.rs` | its callbacks |
//! | `ask.rs` | the kernel's functions that it calls |

mod ask;
mod code;
mod layout;
mod loader;
mod mirror;

pub use code::ExtCode;

use crate::memory::Image;
use crate::watch::{Question, Watched};
use ask::QUESTIONS;
use layout::{Entries, ExitInfo, InitTaskArgs, Mask, Ops, ReleaseArgs};
use loader::Loader;
use mirror::{Call, Slot};
use schedtwin_kernel::policy::{
    CpuPreemptReason, ExtProperties, ExtScheduler, Kfuncs, SCX_SLICE_DFL, TaskChange,
};
use schedtwin_types::{CpuId, TaskId};

/// A scheduler at work.
#[derive(Clone)]
struct TreeExt {
    entries: Entries,
    image: Image,
    watched: Watched,
    ops: Ops,
    code: ExtCode,
    /// The structure of each task in the object's memory, by number; 0: none yet. An image returns to the arena that it was
    /// made in, so addresses stay right.
    tasks: Vec<Slot>,
    /// Tasks that the call under way has seen, with the slice and the virtual time that they had.
    touched: Vec<(TaskId, u64, u64)>,
}

impl TreeExt {
    /// Calls the C, with `tasks` up to date. `None`: the scheduler has no such callback.
    fn call<R>(
        &mut self,
        scx: &mut Kfuncs,
        question: Question,
        call: impl FnOnce(&mut Call) -> R,
    ) -> R {
        let cpu = scx.this_cpu();
        let watched = Watched { question, cpu: cpu.0, ..self.watched };
        let TreeExt { entries, image, ops, tasks, touched, .. } = self;
        touched.clear();
        image.ask(watched, || {
            let mut of = Call { scx, tasks, touched, entries: *entries, ops: *ops };
            let at: *mut Call = &mut of;
            // SAFETY: the image is resident; the call lives until the C has returned.
            unsafe { (entries.enter)(at.cast(), &QUESTIONS, cpu.0.into()) };
            // SAFETY: the C hands this pointer back to the functions below only, while no other reference is in use.
            let result = call(unsafe { &mut *at });
            // SAFETY: as above.
            unsafe { (*at).store() };
            result
        })
    }
}

/// Calls a callback that gets a task, if the scheduler has it.
macro_rules! task_call {
    ($self:ident, $scx:ident, $op:ident, $question:ident, $task:expr $(, $argument:expr)*) => {{
        let Some(callback) = $self.ops.$op else { return $scx.absent() };
        $self.call($scx, Question::$question, |call| {
            let structure = call.task($task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { callback(structure $(, $argument)*) }
        })
    }};
}

impl ExtScheduler for TreeExt {
    fn properties(&self) -> ExtProperties {
        let loader = Loader::of(&self.ops.name());
        ExtProperties {
            flags: self.code.flags.or(loader.map(|loader| loader.flags)).unwrap_or(self.ops.flags),
            timeout_ms: self.code.timeout_ms.unwrap_or(self.ops.timeout_ms),
            dispatch_max_batch: self.ops.dispatch_max_batch,
            tracks_idle: self.ops.update_idle.is_some(),
            op_cost_ns: self.code.op_cost_ns,
        }
    }

    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        let Some(select_cpu) = self.ops.select_cpu else {
            scx.absent();
            return scx.select_cpu_default(task, prev, wake_flags);
        };
        self.call(scx, Question::SelectCpu, |call| {
            let structure = call.task(task);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { select_cpu(structure, prev.0.into(), wake_flags) }
        })
    }

    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        if self.ops.enqueue.is_none() {
            scx.dsq_insert(
                task,
                schedtwin_kernel::policy::SCX_DSQ_GLOBAL,
                SCX_SLICE_DFL,
                enq_flags,
            );
        }
        task_call!(self, scx, enqueue, Enqueue, task, enq_flags)
    }

    fn dequeue(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, dequeue, Dequeue, task, deq_flags)
    }

    fn dispatch(&mut self, scx: &mut Kfuncs, cpu: CpuId, prev: Option<TaskId>) {
        let Some(dispatch) = self.ops.dispatch else { return scx.absent() };
        self.call(scx, Question::Dispatch, |call| {
            let prev = prev.map_or(std::ptr::null_mut(), |prev| call.task(prev));
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { dispatch(cpu.0.into(), prev) }
        })
    }

    fn tick(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, tick, Tick, task)
    }

    fn runnable(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        task_call!(self, scx, runnable, Runnable, task, enq_flags)
    }

    fn running(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, running, Running, task)
    }

    fn stopping(&mut self, scx: &mut Kfuncs, task: TaskId, runnable: bool) {
        task_call!(self, scx, stopping, Stopping, task, runnable)
    }

    fn quiescent(&mut self, scx: &mut Kfuncs, task: TaskId, deq_flags: u64) {
        task_call!(self, scx, quiescent, Quiescent, task, deq_flags)
    }

    fn yield_task(&mut self, scx: &mut Kfuncs, from: TaskId) {
        if self.ops.yield_task.is_none() {
            scx.task_set_slice(from, 0);
        }
        let Some(yield_task) = self.ops.yield_task else { return scx.absent() };
        self.call(scx, Question::Yield, |call| {
            let structure = call.task(from);
            // SAFETY: the image is resident, and the structure lives in it.
            unsafe { yield_task(structure, std::ptr::null_mut()) };
        })
    }

    fn changed(&mut self, scx: &mut Kfuncs, task: TaskId, change: TaskChange) {
        match change {
            TaskChange::Weight(weight) => {
                task_call!(self, scx, set_weight, Change, task, weight)
            }
            TaskChange::Cpus(cpus) => {
                let mask = Mask::of(&cpus);
                task_call!(self, scx, set_cpumask, Change, task, &mask)
            }
        }
    }

    fn update_idle(&mut self, scx: &mut Kfuncs, cpu: CpuId, idle: bool) {
        let Some(update_idle) = self.ops.update_idle else { return scx.absent() };
        // SAFETY: the image is resident.
        self.call(scx, Question::UpdateIdle, |_| unsafe { update_idle(cpu.0.into(), idle) })
    }

    fn cpu_acquire(&mut self, scx: &mut Kfuncs, cpu: CpuId) {
        let Some(cpu_acquire) = self.ops.cpu_acquire else { return scx.absent() };
        let nothing = std::ptr::null();
        // SAFETY: the image is resident.
        self.call(scx, Question::Change, |_| unsafe { cpu_acquire(cpu.0.into(), nothing) })
    }

    fn cpu_release(
        &mut self,
        scx: &mut Kfuncs,
        cpu: CpuId,
        reason: CpuPreemptReason,
        next: TaskId,
    ) {
        let Some(cpu_release) = self.ops.cpu_release else { return scx.absent() };
        self.call(scx, Question::Change, |call| {
            let args = ReleaseArgs { reason: reason as u32, task: call.task(next) };
            // SAFETY: the image is resident, and the arguments live until the function returns.
            unsafe { cpu_release(cpu.0.into(), &args) }
        })
    }

    fn init_task(&mut self, scx: &mut Kfuncs, task: TaskId, fork: bool) -> i32 {
        let Some(init_task) = self.ops.init_task else {
            scx.absent();
            return 0;
        };
        self.call(scx, Question::InitTask, |call| {
            let structure = call.task(task);
            let args = InitTaskArgs { fork, cgroup: std::ptr::null() };
            // SAFETY: the image is resident; structure and arguments live until the function returns.
            unsafe { init_task(structure, &args) }
        })
    }

    fn exit_task(&mut self, scx: &mut Kfuncs, task: TaskId) {
        let cancelled = false;
        task_call!(self, scx, exit_task, ExitTask, task, &cancelled)
    }

    fn enable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, enable, Enable, task)
    }

    fn disable(&mut self, scx: &mut Kfuncs, task: TaskId) {
        task_call!(self, scx, disable, Disable, task)
    }

    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        self.load(scx);
        let Some(init) = self.ops.init else {
            scx.absent();
            return 0;
        };
        // SAFETY: the image is resident.
        self.call(scx, Question::Init, |_| unsafe { init() })
    }

    fn exit(&mut self, scx: &mut Kfuncs) {
        let Some(exit) = self.ops.exit else { return scx.absent() };
        let (kind, exit_code) =
            scx.exit_info().map_or((64, 0), |info| (info.kind.number(), info.code));
        let (reason, msg) = (c"".as_ptr(), c"".as_ptr());
        let info = ExitInfo { kind, exit_code, flags: 0, reason, msg };
        // SAFETY: the image is resident, and the structure lives until the function returns.
        self.call(scx, Question::Exit, |_| unsafe { exit(&info) })
    }

    fn timer(&mut self, scx: &mut Kfuncs, timer: u32) {
        let run = self.entries.timer;
        // SAFETY: the image is resident, and the C has started this timer.
        self.call(scx, Question::Timer, |_| unsafe { run(timer) })
    }
}
