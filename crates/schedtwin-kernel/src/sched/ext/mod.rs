// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_ext: the class whose decisions are a loaded scheduler's.
//!
//! **Idea.** The class has the mechanism: run queues, slices, idle CPUs, moving tasks between CPUs. A scheduler
//! ([`crate::policy::ExtScheduler`]) has the policy: at each step the class calls it, and it answers by putting tasks
//! into dispatch queues (`dsq.rs`). A CPU runs tasks out of its local queue only; everything else is a way to get there.
//!
//! ```text
//!  wakeup ─ select_cpu ─ runnable ─ enqueue ──┬─► local DSQ ───────────────┐
//!                                             ├─► global or user DSQ ─┐    │
//!                                             └─► the scheduler's own │    │
//!                                                        │ insert     │    ▼
//!  pick: prev with slice left, else local ◄── global ◄── dispatch ◄───┘  running ─ tick ─ stopping ─ quiescent
//! ```
//!
//! **Terms.** *Custody*: the scheduler holds the task, in a data structure of its own or in a user DSQ. *Slice*: the time
//! that a task may run before it gives way; it is looked at by ticks and by `schedule()`, so it ends late. *Direct dispatch*:
//! `select_cpu` or `enqueue` puts the task into a DSQ itself. `ops_state` and `qseq` say whether a task that the scheduler
//! inserts is still the one that it was given.
//!
//! | file | what |
//! |---|---|
//! | `dsq.rs` | dispatch queues |
//! | `class.rs` | the class's entries: queueing, switching, ticks, wakeups |
//! | `dispatch.rs` | the pick, `dispatch` and its bounds, insertion, moves between CPUs |
//! | `idle.rs` | idle CPUs, the default selection |
//! | `kick.rs` | rescheduling other CPUs |
//! | `life.rs` | load, tasks' states, errors, the watchdog, unload |
//! | `bypass.rs` | what goes on without the scheduler meanwhile |
//! | `program.rs` | the program of a scheduler that decides in user space |
//! | `reenq.rs` | tasks that come back to `enqueue`, `SCX_ENQ_IMMED` |
//! | `kfunc.rs` | what a scheduler may call |
//! | `cgroup.rs` | cgroups and their files |
//! | `form.rs` | where the releases differ |
//! | `report.rs` | what a run tells of its scheduler |
//! | `steps.rs` | the calls of the scheduler, and the class's steps for who follows them |
//! | `verify.rs` | what must hold after each event |
//!
//! Kernel: 7.3.4 kernel/sched/ext/ext.c, idle.c, inlines.h; 6.12.95 kernel/sched/ext.c.
//! Differences: an entry is atomic, so nobody sees a task between two queues (`QUEUEING`, `DISPATCHING`, `holding_cpu`), and
//! locks are never lost. Sub-schedulers, core scheduling and hotplug are absent; CPU IDs (cids)
//! are translated where C is called (`schedtwin-tree`).
//! `SCX_KICK_WAIT` does not wait. MODEL.md has the list.

mod bypass;
mod cgroup;
mod class;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cost;
mod dispatch;
pub mod dsq;
mod form;
mod idle;
mod kfunc;
mod kick;
mod life;
mod program;
mod reenq;
mod report;
pub mod steps;
mod verify;

pub use cgroup::{CgroupFiles, CgroupView};
pub use form::LoaderForm;
pub use kfunc::{DsqIter, Kfuncs, TaskView};
pub use life::{Exit, ExitKind, weight_to_cgroup};
pub use reenq::ReenqReason;
pub use report::{DsqReport, ExtReport};

use crate::Scheduler;
use dsq::{DsqIndex, Dsqs, SCX_DSQ_INVALID};
use form::Form;
use idle::IdleMasks;
use schedtwin_types::arena::PerCpu;
use schedtwin_types::{CpuId, CpuMask, Ns, TaskId};

/// `SCX_SLICE_DFL`: 20 ms.
pub const SCX_SLICE_DFL: u64 = 20_000_000;
/// `SCX_SLICE_INF`: never charged.
pub const SCX_SLICE_INF: u64 = u64::MAX;

/// `SCX_OPS_KEEP_BUILTIN_IDLE`.
pub const SCX_OPS_KEEP_BUILTIN_IDLE: u64 = 1;
/// `SCX_OPS_ENQ_LAST`: a task whose slice is over is enqueued even if nobody else wants the CPU.
pub const SCX_OPS_ENQ_LAST: u64 = 1 << 1;
/// `SCX_OPS_ENQ_EXITING`.
pub const SCX_OPS_ENQ_EXITING: u64 = 1 << 2;
/// `SCX_OPS_SWITCH_PARTIAL`: only tasks of `SCHED_EXT` are in the class.
pub const SCX_OPS_SWITCH_PARTIAL: u64 = 1 << 3;
/// `SCX_OPS_ENQ_MIGRATION_DISABLED`.
pub const SCX_OPS_ENQ_MIGRATION_DISABLED: u64 = 1 << 4;
/// `SCX_OPS_ALLOW_QUEUED_WAKEUP`: the target CPU may activate a woken task itself.
pub const SCX_OPS_ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
/// `SCX_OPS_BUILTIN_IDLE_PER_NODE`: idle CPUs are kept node by node.
pub const SCX_OPS_BUILTIN_IDLE_PER_NODE: u64 = 1 << 6;

/// `SCX_OPS_ALWAYS_ENQ_IMMED`: all insertions into local queues are IMMED.
pub const SCX_OPS_ALWAYS_ENQ_IMMED: u64 = 1 << 7;

/// `SCX_WAKE_FORK`.
pub const SCX_WAKE_FORK: u64 = 4;
/// `SCX_WAKE_TTWU`.
pub const SCX_WAKE_TTWU: u64 = 8;
/// `SCX_WAKE_SYNC`.
pub const SCX_WAKE_SYNC: u64 = 0x10;

/// `SCX_ENQ_WAKEUP`.
pub const SCX_ENQ_WAKEUP: u64 = 1;
/// `ENQUEUE_RESTORE`: back after a change.
pub const SCX_ENQ_RESTORE: u64 = 2;
/// `ENQUEUE_MIGRATING`: on the way to another CPU.
pub const SCX_ENQ_MIGRATING: u64 = 0x10;
/// `SCX_ENQ_HEAD`.
pub const SCX_ENQ_HEAD: u64 = 1 << 16;
/// `ENQUEUE_MIGRATED`.
pub const SCX_ENQ_MIGRATED: u64 = 1 << 18;
/// `ENQUEUE_INITIAL`: a new task.
pub const SCX_ENQ_INITIAL: u64 = 1 << 19;
/// `SCX_ENQ_CPU_SELECTED`: `select_cpu` was asked.
pub const SCX_ENQ_CPU_SELECTED: u64 = 1 << 20;
/// `SCX_ENQ_PREEMPT`: the running task of the class gives way.
pub const SCX_ENQ_PREEMPT: u64 = 1 << 32;
/// `SCX_ENQ_IMMED`: into a local queue, to run at once or to come back.
pub const SCX_ENQ_IMMED: u64 = 1 << 33;
/// `SCX_ENQ_RESCUE`: into a local queue of a CPU that a sub-scheduler may not use.
pub const SCX_ENQ_RESCUE: u64 = 1 << 34;
/// `SCX_ENQ_REENQ`.
pub const SCX_ENQ_REENQ: u64 = 1 << 40;
/// `SCX_ENQ_LAST`: nobody else wants the CPU.
pub const SCX_ENQ_LAST: u64 = 1 << 41;
/// `__SCX_ENQ_INTERNAL_MASK`.
const SCX_ENQ_INTERNAL_MASK: u64 = 0xff << 56;
/// `SCX_ENQ_DSQ_PRIQ`.
const SCX_ENQ_DSQ_PRIQ: u64 = 1 << 57;

/// `SCX_DEQ_SLEEP`.
pub const SCX_DEQ_SLEEP: u64 = 1;
/// `SCX_DEQ_CORE_SCHED_EXEC`.
pub const SCX_DEQ_CORE_SCHED_EXEC: u64 = 1 << 32;
/// `SCX_DEQ_SCHED_CHANGE`: the task stays runnable (7.3).
pub const SCX_DEQ_SCHED_CHANGE: u64 = 1 << 33;

/// `SCX_KICK_IDLE`.
pub const SCX_KICK_IDLE: u64 = 1;
/// `SCX_KICK_PREEMPT`.
pub const SCX_KICK_PREEMPT: u64 = 2;
/// `SCX_KICK_WAIT`.
pub const SCX_KICK_WAIT: u64 = 4;

/// `SCX_PICK_IDLE_CORE`.
pub const SCX_PICK_IDLE_CORE: u64 = 1;
/// `SCX_PICK_IDLE_IN_NODE`.
pub const SCX_PICK_IDLE_IN_NODE: u64 = 2;

/// `SCX_CPUPERF_ONE`.
pub const SCX_CPUPERF_ONE: u32 = 1024;

/// The state of a task towards the scheduler that is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// It is not known to it.
    #[default]
    None,
    /// Known, in another class (`READY`).
    Ready,
    /// In the class.
    Enabled,
}

/// `struct sched_ext_entity`.
#[derive(Clone, Debug)]
pub struct ExtEntity {
    /// Its queue.
    pub dsq: Option<DsqIndex>,
    prev: Option<TaskId>,
    next: Option<TaskId>,
    dsq_seq: u32,
    on_priq: bool,
    /// When it came into its queue.
    queued_at: Ns,
    /// The time that it may still run.
    pub slice: u64,
    /// Its place in a queue that is ordered by virtual time.
    pub dsq_vtime: u64,
    /// 1 to 10000; 100 at nice 0.
    pub weight: u32,
    state: TaskState,
    /// `SCX_TASK_QUEUED`.
    queued: bool,
    in_custody: bool,
    /// `SCX_OPSS_QUEUED`: the scheduler holds it, and no DSQ does.
    held: bool,
    qseq: u64,
    reset_runnable_at: bool,
    /// The jiffy since which it waits.
    runnable_at: u64,
    /// Its place in its CPU's `runnable_list`; 0: it is not there.
    runnable_seq: u64,
    sticky_cpu: Option<CpuId>,
    /// `select_cpu` has been asked for the wakeup that is under way.
    cpu_selected: bool,
    ddsp_dsq_id: u64,
    ddsp_enq_flags: u64,
    ddsp_slice: u64,
    ddsp_vtime: u64,
    /// `slice_oob`: a slice that it gets when it is charged next.
    slice_oob: Option<u64>,
    /// On its CPU's `ddsp_deferred_locals`.
    deferred: bool,
    /// `SCX_TASK_IMMED`: it may not wait in a local queue.
    immed: bool,
    /// `SCX_TASK_REENQ_*`, while it is enqueued anew.
    reenq_reason: ReenqReason,
    /// How often it has been, since it ran.
    reenq_cnt: u32,
    /// Ticks that came while it ran, by which `utime` and `stime` are counted.
    ticks: u64,
    /// `nvcsw`, `nivcsw`, since the scheduler is there.
    context_switches: [u64; 2],
}

impl Default for ExtEntity {
    fn default() -> ExtEntity {
        ExtEntity {
            dsq: None,
            prev: None,
            next: None,
            dsq_seq: 0,
            on_priq: false,
            queued_at: 0,
            slice: SCX_SLICE_DFL,
            dsq_vtime: 0,
            weight: 100,
            state: TaskState::None,
            queued: false,
            in_custody: false,
            held: false,
            qseq: 0,
            reset_runnable_at: true,
            runnable_at: 0,
            runnable_seq: 0,
            sticky_cpu: None,
            cpu_selected: false,
            ddsp_dsq_id: SCX_DSQ_INVALID,
            ddsp_enq_flags: 0,
            ddsp_slice: 0,
            ddsp_vtime: 0,
            slice_oob: None,
            deferred: false,
            immed: false,
            reenq_reason: ReenqReason::None,
            reenq_cnt: 0,
            ticks: 0,
            context_switches: [0; 2],
        }
    }
}

/// `struct scx_rq`.
#[derive(Clone, Debug, Default)]
pub struct ExtRq {
    /// Runnable tasks of the class.
    pub nr_running: u32,
    /// `SCX_RQ_ROOT_IDLE_RENOTIFY`: the scheduler has not been told that the CPU idles.
    idle_renotify: bool,
    /// `SCX_RQ_IN_DISPATCH` (7.3), `SCX_RQ_IN_BALANCE` (6.12).
    in_dispatch: bool,
    in_wakeup: bool,
    bal_cb_pending: bool,
    /// `SCX_RQ_BAL_KEEP` (6.12): what `balance_scx()` has found.
    balanced: Option<dispatch::Verdict>,
    /// A class above took the CPU.
    cpu_released: bool,
    /// The idle task that is about to run is flagged.
    resched_idle: bool,
    /// `scx_bpf_cpuperf_set()`.
    pub cpuperf_target: u32,
    remote_activate_enq_flags: u64,
    deferred_locals: Vec<TaskId>,
    deferred_irq_work: bool,
    /// The tasks of the local queue are to be enqueued anew.
    reenq_local: bool,
    /// Those of them that may not wait.
    reenq_immed: bool,
    /// User queues whose tasks are to be enqueued anew, by their IDs.
    reenq_users: Vec<u64>,
    kicks: kick::Kicks,
}

/// Counters, as `scx_bpf_events()` and metrics have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// `SCX_EV_SELECT_CPU_FALLBACK`.
    pub select_cpu_fallback: u64,
    /// `SCX_EV_DISPATCH_KEEP_LAST`.
    pub dispatch_keep_last: u64,
    /// `SCX_EV_ENQ_SKIP_EXITING`.
    pub enq_skip_exiting: u64,
    /// `SCX_EV_REFILL_SLICE_DFL`.
    pub refill_slice_dfl: u64,
    /// Calls of the scheduler.
    pub ops: u64,
    /// Kicks that were carried out.
    pub kicks: u64,
    /// Tasks dispatched directly by `select_cpu`.
    pub from_select_cpu: u64,
    /// Tasks dispatched directly by `enqueue`.
    pub from_enqueue: u64,
    /// Tasks inserted by `dispatch`.
    pub from_dispatch: u64,
    /// Insertions that came too late: the task was not the scheduler's any more.
    pub stale_inserts: u64,
    /// Tasks taken out of a user DSQ by `move_to_local` or `dsq_move`.
    pub moved: u64,
    /// Tasks taken out of a global DSQ.
    pub from_global: u64,
    /// Moves to the local DSQ of another CPU.
    pub migrations: u64,
    /// Calls of `dispatch` that gave nothing.
    pub empty_dispatches: u64,
}

/// The task that a direct dispatch may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectDispatch {
    /// Not in `select_cpu` or `enqueue`.
    No,
    /// This one.
    Task(TaskId),
    /// It has been dispatched.
    Done,
}

/// An entry of the dispatch buffer.
#[derive(Clone, Copy, Debug)]
struct BufEntry {
    task: TaskId,
    qseq: u64,
    dsq_id: u64,
    slice: u64,
    vtime: u64,
    enq_flags: u64,
}

/// A timer of the scheduler's (`bpf_timer`).
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The CPU that it is queued on.
    on: Option<CpuId>,
}

/// The class with a scheduler loaded.
#[derive(Clone, Debug)]
pub struct Ext {
    form: Form,
    /// `SCX_OPS_*`.
    flags: u64,
    /// `__scx_enabled`: tasks may be in the class.
    enabled: bool,
    /// How far it is with loading and unloading.
    stage: life::Stage,
    /// Its program in user space, and whether that has worked since it yielded.
    program: Option<TaskId>,
    program_worked: bool,
    /// When it is unloaded by its user.
    unload_at: Option<Ns>,
    /// The scheduler is bypassed.
    bypass: bool,
    /// The slice of a task that gets none from the scheduler.
    slice_dfl: u64,
    /// All tasks of policies below RT are in the class.
    switching_all: bool,
    dispatch_max_batch: usize,
    op_cost: Ns,
    timeout: u64,
    /// Dispatch queues.
    pub dsqs: Dsqs,
    tasks: Vec<ExtEntity>,
    rqs: PerCpu<ExtRq>,
    node_of: Vec<u16>,
    idle: IdleMasks,
    cgroups: cgroup::Cgroups,
    /// A program listens to `sched_switch`.
    traces_switches: bool,
    ddsp: DirectDispatch,
    buf: Vec<BufEntry>,
    nr_tasks: u32,
    /// Tasks that have been taken out to be enqueued anew.
    reenqs: Vec<(TaskId, ReenqReason)>,
    /// Some task was inserted with IMMED.
    uses_immed: bool,
    /// The CPU whose `dispatch` is under way.
    dispatch_cpu: Option<CpuId>,
    /// The CPU whose run queue is locked during the call that is under way.
    locked_rq: Option<CpuId>,
    in_select_cpu: bool,
    /// The callback that is under way is none of the scheduler's own.
    absent: bool,
    /// Calls of `ops.dequeue()` that came about within another call.
    notices: Vec<(TaskId, u64)>,
    timers: Vec<Timer>,
    runnable_seq: u64,
    exit: Option<Exit>,
    /// An exit waits for its interrupt.
    exit_pending: bool,
    steps: steps::Steps,
    /// Counters.
    pub events: Events,
}

impl Scheduler {
    /// The static key `__scx_enabled`.
    #[inline(always)]
    pub(crate) fn scx_enabled(&self) -> bool {
        self.ext.as_ref().is_some_and(|ext| ext.enabled)
    }

    /// The static key `__scx_switched_all`: not while the scheduler is being unloaded, when tasks come back to the fair class.
    #[inline(always)]
    pub(crate) fn scx_switched_all(&self) -> bool {
        self.ext.as_ref().is_some_and(|ext| ext.enabled && ext.switching_all && ext.exit.is_none())
    }

    #[inline]
    fn scx(&self) -> &Ext {
        self.ext.as_ref().expect("a task of the class means that a scheduler is loaded")
    }

    #[inline]
    fn scx_mut(&mut self) -> &mut Ext {
        self.ext.as_mut().expect("a task of the class means that a scheduler is loaded")
    }

    #[inline]
    fn scx_task(&self, task: TaskId) -> &ExtEntity {
        &self.scx().tasks[task.index()]
    }

    #[inline]
    fn scx_task_mut(&mut self, task: TaskId) -> &mut ExtEntity {
        &mut self.scx_mut().tasks[task.index()]
    }

    /// `scx_cpuperf_target()`, if a scheduler is loaded.
    #[inline(always)]
    pub(crate) fn scx_cpuperf_target(&self, cpu: CpuId) -> u64 {
        match &self.ext {
            Some(ext) if ext.enabled => ext.rqs[cpu].cpuperf_target.into(),
            _ => 0,
        }
    }

    /// Whether the CPU's DEADLINE server is the class's.
    #[inline]
    pub(crate) fn scx_has_server(&self) -> bool {
        self.ext.as_ref().is_some_and(|ext| ext.has_server())
    }

    /// `scx_allow_ttwu_queue()`: whether the target CPU may activate a woken task of the class itself.
    #[inline(never)]
    pub(crate) fn scx_allow_ttwu_queue(&self) -> bool {
        let ext = self.scx();
        ext.form.queued_wakeups && ext.flags & SCX_OPS_ALLOW_QUEUED_WAKEUP != 0
    }

    /// Whether a running task that comes down into the class is rescheduled.
    pub(crate) fn scx_reschedules_below(&self) -> bool {
        self.scx().form.reschedules_below
    }

    /// `SCX_RQ_BAL_PENDING`: what an earlier balance has found counts no more.
    #[inline(never)]
    pub(crate) fn scx_balance_begins(&mut self, cpu: CpuId) {
        self.scx_mut().rqs[cpu].balanced = None;
    }

    /// After a switch to idle: the idle task has been flagged, because a task is in the local queue.
    #[inline(never)]
    pub(crate) fn scx_resched_idle(&mut self, cpu: CpuId) {
        if std::mem::take(&mut self.scx_mut().rqs[cpu].resched_idle) {
            self.rq[cpu].need_resched = true;
        }
    }

    /// Runnable tasks of the class on a CPU.
    #[inline]
    pub(crate) fn scx_nr_running(&self, cpu: CpuId) -> u32 {
        self.ext.as_ref().map_or(0, |ext| ext.rqs[cpu].nr_running)
    }
}

impl Ext {
    /// Its counters and queues of the whole run, summed up to `now`.
    pub(crate) fn account(&mut self, now: Ns) {
        self.dsqs.account(now);
    }

    /// How it ended, if it did.
    pub fn exit_info(&self) -> Option<&Exit> {
        self.exit.as_ref()
    }

    fn cpu_mask_of_node(&self, node: u16) -> CpuMask {
        let of_node = self.node_of.iter().enumerate().filter(|(_, of)| **of == node);
        CpuMask::from_cpus(of_node.map(|(cpu, _)| CpuId(cpu as u16)))
    }
}
