// SPDX-License-Identifier: GPL-2.0-or-later
//! Users' schedulers: a whole class of sched_ext.
//!
//! **Idea.** The kernel's class ([`crate::sched::ext`]) calls a scheduler at the steps of a task's life. Each call gets
//! [`Kfuncs`], by which the scheduler puts tasks into dispatch queues, claims idle CPUs, kicks CPUs. Callbacks that a
//! scheduler leaves out do what the class does without them.
//!
//! First come first served, on all CPUs together:
//!
//! ```
//! use schedtwin_kernel::policy::{ExtScheduler, Kfuncs, SCX_DSQ_LOCAL, SCX_SLICE_DFL};
//! use schedtwin_types::{CpuId, TaskId};
//!
//! #[derive(Clone)]
//! struct Fifo;
//! const SHARED: u64 = 0;
//!
//! impl ExtScheduler for Fifo {
//!     fn init(&mut self, scx: &mut Kfuncs) -> i32 {
//!         scx.create_dsq(SHARED)
//!     }
//!     fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
//!         scx.dsq_insert(task, SHARED, SCX_SLICE_DFL, enq_flags);
//!     }
//!     fn dispatch(&mut self, scx: &mut Kfuncs, _: CpuId, _: Option<TaskId>) {
//!         scx.dsq_move_to_local(SHARED, 0);
//!     }
//! }
//! ```
//!
//! Names and order of the callbacks are those of `struct sched_ext_ops` (7.3.4 kernel/sched/ext/internal.h).

use super::boxed;
pub use crate::sched::ext::dsq::{
    SCX_DSQ_BYPASS, SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON, time_before64,
};
pub use crate::sched::ext::*;
use schedtwin_types::{CpuId, CpuMask, Ns, TaskGroupId, TaskId};

/// What a scheduler says of itself before it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtProperties {
    /// `flags`: `SCX_OPS_*`.
    pub flags: u64,
    /// `timeout_ms`: how long a task may wait before the scheduler is unloaded; 0: 30 s, the most.
    pub timeout_ms: u32,
    /// That time is the user's wish: a short run does not shorten it.
    pub timeout_is_the_users: bool,
    /// `dispatch_max_batch`: how many tasks one call of `dispatch` may insert; 0: 32.
    pub dispatch_max_batch: u32,
    /// It has `update_idle`, so that the class keeps no masks of idle CPUs (`SCX_OPS_KEEP_BUILTIN_IDLE`: it does).
    pub tracks_idle: bool,
    /// A program of it listens to the tracepoint `sched_switch`.
    pub traces_switches: bool,
    /// What each callback costs, nanoseconds on the fastest CPU.
    pub op_cost_ns: Ns,
    /// A program of it in user space decides: a task that is scheduled like others.
    pub has_program: bool,
}

/// When a scheduler is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtLoading {
    /// When its user loads it; 0: before time begins.
    pub at: Ns,
    /// When its user unloads it.
    pub until: Option<Ns>,
    /// The watchdog waits no longer than this, unless the user has said how long: in a run of 5 s one of 30 s sees nothing.
    pub watchdog_most: Option<Ns>,
}

impl Default for ExtProperties {
    fn default() -> ExtProperties {
        ExtProperties {
            flags: 0,
            timeout_ms: 0,
            timeout_is_the_users: false,
            dispatch_max_batch: 0,
            tracks_idle: false,
            traces_switches: false,
            op_cost_ns: OP_COST_NS,
            has_program: false,
        }
    }
}

/// An estimate: a trampoline of BPF and a short program. No published source gives a figure.
pub const OP_COST_NS: Ns = 50;

/// A change of a task that the scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// `set_weight`: 1 to 10000.
    Weight(u32),
    /// `set_cpumask`.
    Cpus(CpuMask),
}

/// A change of a cgroup's files that the scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupChange {
    /// `cgroup_set_weight`: 1 to 10000.
    Weight(u32),
    /// `cgroup_set_bandwidth` (7.3); no quota is `u64::MAX`.
    Bandwidth {
        /// Microseconds.
        period_us: u64,
        /// Microseconds of CPU time in each period.
        quota_us: u64,
        /// Microseconds.
        burst_us: u64,
    },
    /// `cgroup_set_idle` (7.3).
    Idle(bool),
}

/// `enum scx_cpu_preempt_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPreemptReason {
    /// `SCX_CPU_PREEMPT_RT`.
    Rt,
    /// `SCX_CPU_PREEMPT_DL`.
    Deadline,
    /// `SCX_CPU_PREEMPT_STOP`.
    Stop,
    /// `SCX_CPU_PREEMPT_UNKNOWN`.
    Unknown,
}

/// A scheduler of sched_ext (`struct sched_ext_ops`).
pub trait ExtScheduler: CloneExtScheduler + Send + Sync {
    /// Flags and limits.
    fn properties(&self) -> ExtProperties {
        ExtProperties::default()
    }
    /// Flags and limits on a machine with so many nodes.
    fn properties_on(&self, _nr_nodes: usize) -> ExtProperties {
        self.properties()
    }
    /// The CPU for a task that wakes up or is new; it may dispatch the task directly.
    fn select_cpu(&mut self, scx: &mut Kfuncs, task: TaskId, prev: CpuId, wake_flags: u64) -> i32 {
        scx.absent();
        scx.select_cpu_default(task, prev, wake_flags)
    }
    /// A runnable task that has not been dispatched directly.
    fn enqueue(&mut self, scx: &mut Kfuncs, task: TaskId, enq_flags: u64) {
        scx.absent();
        scx.dsq_insert(task, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
    }
    /// A task leaves the scheduler's custody.
    fn dequeue(&mut self, scx: &mut Kfuncs, _task: TaskId, _deq_flags: u64) {
        scx.absent();
    }
    /// A CPU has nothing to run. `prev`: the task that ran, if it is of the class.
    fn dispatch(&mut self, scx: &mut Kfuncs, _cpu: CpuId, _prev: Option<TaskId>) {
        scx.absent();
    }
    /// A tick while a task runs.
    fn tick(&mut self, scx: &mut Kfuncs, _task: TaskId) {
        scx.absent();
    }
    /// A task has become runnable.
    fn runnable(&mut self, scx: &mut Kfuncs, _task: TaskId, _enq_flags: u64) {
        scx.absent();
    }
    /// A task starts to run.
    fn running(&mut self, scx: &mut Kfuncs, _task: TaskId) {
        scx.absent();
    }
    /// A task stops running.
    fn stopping(&mut self, scx: &mut Kfuncs, _task: TaskId, _runnable: bool) {
        scx.absent();
    }
    /// A task is no longer runnable.
    fn quiescent(&mut self, scx: &mut Kfuncs, _task: TaskId, _deq_flags: u64) {
        scx.absent();
    }
    /// `yield`: the running task yields.
    fn yield_task(&mut self, scx: &mut Kfuncs, from: TaskId) {
        scx.absent();
        scx.task_set_slice(from, 0);
    }
    /// `set_weight`, `set_cpumask`.
    fn changed(&mut self, scx: &mut Kfuncs, _task: TaskId, _change: TaskChange) {
        scx.absent();
    }
    /// A CPU goes idle or leaves idle.
    fn update_idle(&mut self, scx: &mut Kfuncs, _cpu: CpuId, _idle: bool) {
        scx.absent();
    }
    /// The class has a CPU again.
    fn cpu_acquire(&mut self, scx: &mut Kfuncs, _cpu: CpuId) {
        scx.absent();
    }
    /// A class above has taken a CPU, for `next`.
    fn cpu_release(
        &mut self,
        scx: &mut Kfuncs,
        _cpu: CpuId,
        _reason: CpuPreemptReason,
        _next: TaskId,
    ) {
        scx.absent();
    }
    /// A task becomes known: at load, or because it has been made (`fork`). Not 0: an error.
    fn init_task(&mut self, scx: &mut Kfuncs, _task: TaskId, _fork: bool) -> i32 {
        scx.absent();
        0
    }
    /// A task is gone.
    fn exit_task(&mut self, scx: &mut Kfuncs, _task: TaskId) {
        scx.absent();
    }
    /// A task enters the class.
    fn enable(&mut self, scx: &mut Kfuncs, _task: TaskId) {
        scx.absent();
    }
    /// A task leaves the class.
    fn disable(&mut self, scx: &mut Kfuncs, _task: TaskId) {
        scx.absent();
    }
    /// A cgroup becomes known: at load, or because it has been made. [`Kfuncs::cgroup`] has its files. Not 0: an error.
    fn cgroup_init(&mut self, scx: &mut Kfuncs, _cgroup: TaskGroupId) -> i32 {
        scx.absent();
        0
    }
    /// A cgroup is gone, or the scheduler is.
    fn cgroup_exit(&mut self, scx: &mut Kfuncs, _cgroup: TaskGroupId) {
        scx.absent();
    }
    /// A task is about to go to another cgroup. Not 0: it stays.
    fn cgroup_prep_move(
        &mut self,
        scx: &mut Kfuncs,
        _task: TaskId,
        _from: TaskGroupId,
        _to: TaskGroupId,
    ) -> i32 {
        scx.absent();
        0
    }
    /// A task goes to another cgroup.
    fn cgroup_move(
        &mut self,
        scx: &mut Kfuncs,
        _task: TaskId,
        _from: TaskGroupId,
        _to: TaskGroupId,
    ) {
        scx.absent();
    }
    /// `cgroup_set_weight`, `cgroup_set_bandwidth`, `cgroup_set_idle`.
    fn cgroup_changed(&mut self, scx: &mut Kfuncs, _cgroup: TaskGroupId, _change: CgroupChange) {
        scx.absent();
    }
    /// Its program is this task ([`ExtProperties::has_program`]), before `init`.
    fn program_is(&mut self, _task: TaskId) {}

    /// Its program runs: what it does between two yields. Returns how many calls of the kernel that takes.
    fn program_turn(&mut self, _scx: &mut Kfuncs) -> u32 {
        0
    }

    /// A CPU switches tasks ([`ExtProperties::traces_switches`]). `prev_state` is a `TASK_*`.
    fn sched_switch(
        &mut self,
        scx: &mut Kfuncs,
        _preempt: bool,
        _prev: TaskId,
        _next: TaskId,
        _prev_state: u32,
    ) {
        scx.absent();
    }
    /// The scheduler is loaded. Not 0: an error.
    fn init(&mut self, scx: &mut Kfuncs) -> i32 {
        scx.absent();
        0
    }
    /// The scheduler is unloaded; [`Kfuncs::exit_info`] says why.
    fn exit(&mut self, scx: &mut Kfuncs) {
        scx.absent();
    }
    /// A timer of [`Kfuncs::timer_init`] has expired.
    fn timer(&mut self, scx: &mut Kfuncs, _timer: u32) {
        scx.absent();
    }
}

boxed!(ExtScheduler, CloneExtScheduler, CustomExt);
