// SPDX-License-Identifier: GPL-2.0-or-later
//! `kernel/sched/`: run queues, entities and tasks, and the modules that work on them.

pub mod autogroup;
mod avg_idle;
mod boot;
pub mod core;
pub mod deadline;
pub mod demand;
pub mod ext;
pub mod fair;
pub mod fair_server;
pub mod hrtick;
pub mod hw_pressure;
pub mod idle;
pub mod nohz;
pub mod pelt;
mod preempt;
pub mod root_domain;
pub mod rq_clock;
mod rq_lock;
pub mod rt;
mod scheduler;
mod start;
mod static_keys;
pub mod stop;
pub mod syscalls;
pub mod topology;
mod unseen;
mod verify;

use crate::arena::Id;
use crate::config::FairClass;
use crate::rcu::RcuThread;
use demand::signal::Signal;
use demand::uclamp::RqClamps;
use pelt::{Removed, RqClockPelt, SchedAvg};
use schedtwin_types::{
    CpuId, CpuMask, Ns, Outcome, Policy, PolicyId, TaskGroupId, TaskId, TaskState,
};

pub use scheduler::Scheduler;

/// `SCHED_CAPACITY_SCALE`.
pub const SCHED_CAPACITY_SCALE: u64 = 1024;

/// An entity of the fair class: a task or a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct EntityId(pub u32);

/// A fair run queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CfsRqId(pub u32);

impl Id for EntityId {
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
    fn from_index(index: usize) -> EntityId {
        EntityId(index as u32)
    }
}

impl Id for CfsRqId {
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
    fn from_index(index: usize) -> CfsRqId {
        CfsRqId(index as u32)
    }
}

impl CfsRqId {
    /// The root fair run queue of a CPU.
    #[inline(always)]
    pub fn root(cpu: CpuId) -> CfsRqId {
        CfsRqId(cpu.0 as u32)
    }
}

/// `struct load_weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    /// Weight, `<< 10`.
    pub weight: u64,
    /// 2^32 / weight; 0 = to be computed.
    pub inv_weight: u32,
}

/// `struct sched_entity`.
#[derive(Clone, Debug)]
// What is touched at each event comes first, see [`crate::Kernel`].
#[repr(C)]
pub struct SchedEntity {
    /// Its PELT signals and util_est.
    pub avg: SchedAvg,
    /// Virtual runtime. CFS: relative to a queue's `min_vruntime` while between two queues.
    pub vruntime: u64,
    /// EEVDF: virtual deadline.
    pub deadline: u64,
    /// EEVDF: lag in virtual units while off the queue; up to 6.12 slice-protection mark while running.
    pub vlag: i64,
    /// `clock_task` up to which its runtime is accounted.
    pub exec_start: u64,
    /// Weight.
    pub load: LoadWeight,
    /// Queued (or running).
    pub on_rq: bool,
    /// Asleep, but still queued until it is eligible.
    pub sched_delayed: bool,
    /// The slice was set by the task.
    pub custom_slice: bool,
    /// `deadline` is relative to `vruntime` while off the queue.
    pub rel_deadline: bool,
    /// The fair run queue on which it is (to be) queued.
    pub cfs_rq: CfsRqId,
    /// A group's own run queue; `None` for a task.
    pub my_q: Option<CfsRqId>,
    /// EEVDF of 7.3: up to where its slice is protected while it runs.
    pub vprot: u64,
    /// EEVDF: requested slice.
    pub slice: Ns,
    /// Total runtime.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when it was installed last.
    pub prev_sum_exec_runtime: u64,
    /// EEVDF of 7.3: the weight with which it is in the timeline, where that is not `load` (`h_load`).
    pub timeline_load: Option<LoadWeight>,
    /// The group entity above; `None` at root level.
    pub parent: Option<EntityId>,
    /// Number of entities above it.
    pub depth: u32,
    /// A group's runnable tasks, as of the last enqueue or dequeue below.
    pub runnable_weight: u32,
    /// The task; meaningless for a group.
    pub task: TaskId,
}

/// A queued entity as the timeline keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineNode {
    /// `se.deadline`: EEVDF's order.
    pub deadline: u64,
    /// `se.vruntime`: EEVDF's eligibility, CFS's order.
    pub vruntime: u64,
    /// The entity.
    pub se: EntityId,
}

/// `struct cfs_rq`.
#[derive(Clone, Debug)]
// What is touched at each event comes first, see [`crate::Kernel`].
#[repr(C)]
pub struct CfsRq {
    /// PELT signals and util_est of the queue.
    pub avg: Signal<SchedAvg>,
    /// Sum of the weights of queued entities (running one included), `<< 10`.
    pub load_weight: u64,
    /// Queued entities (running one included) of this level (`nr_running`, `nr_queued`).
    pub nr_queued: u32,
    /// Tasks in the hierarchy below, delayed ones included.
    pub h_nr_queued: u32,
    /// Tasks in the hierarchy below that are runnable.
    pub h_nr_runnable: u32,
    /// Tasks in the hierarchy below that are delayed.
    pub h_nr_delayed: u32,
    /// The running entity; not in the timeline.
    pub curr: Option<EntityId>,
    /// EEVDF: Σ (v − zero_vruntime) · w over the timeline.
    pub avg_vruntime: i64,
    /// EEVDF: Σ w over the timeline.
    pub avg_load: u64,
    /// EEVDF: base of `avg_vruntime`.
    pub zero_vruntime: u64,
    /// Its CPU.
    pub cpu: CpuId,
    /// Which virtual time the timeline is ordered by.
    pub discipline: FairClass,
    /// EEVDF of 7.3: weights in these sums have all of their bits.
    pub full_weights: bool,
    /// Its group is idle (`cpu.idle`).
    pub idle: bool,
    /// Tasks in the hierarchy below that are of `SCHED_IDLE`, or in an idle group below this queue
    /// (`idle_h_nr_running`).
    pub h_nr_idle: u32,
    /// CFS: the smallest virtual runtime here, which never goes back.
    pub min_vruntime: u64,
    /// Next buddy: is to run as soon as that is not unfair.
    pub next: Option<EntityId>,
    /// CFS, last buddy: was preempted by a wakee, and is to run after it.
    pub last: Option<EntityId>,
    /// CFS, skip buddy: has yielded.
    pub skip: Option<EntityId>,
    /// Queued entities by deadline (EEVDF) or virtual runtime (CFS), equal ones in order of
    /// insertion. A sorted array, not a tree: queues are short, and the kernel's search yields the
    /// first eligible one by deadline.
    pub timeline: Vec<TimelineNode>,
    /// Averages of tasks that left for another CPU while asleep.
    pub removed: Removed,
    /// Its group.
    pub group: TaskGroupId,
    /// Something has changed that the levels above do not know yet.
    pub propagate: bool,
    /// By how much the unweighted runnable sum has changed since they were told.
    pub prop_runnable_sum: i64,
    /// Its contribution to the group's `load_avg`.
    pub tg_load_avg_contrib: u64,
    /// Its contribution to the group's `runnable_avg` (7.3).
    pub tg_runnable_avg_contrib: u64,
    /// When these were changed last.
    pub last_update_tg_load_avg: Ns,
    /// In its CPU's list of leaf queues.
    pub on_list: bool,
    /// Its share of the runtime of its group's `cpu.max`.
    pub bandwidth: fair::bandwidth::CfsRqBandwidth,
    /// Tasks that throttling has taken out, the last one first to return.
    pub throttled_limbo_list: Vec<TaskId>,
}

/// Scheduling class of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The idle task.
    Idle,
    /// sched_ext: the tasks of a scheduler that is loaded.
    Ext,
    /// Fair: `SCHED_NORMAL`, `SCHED_BATCH`, `SCHED_IDLE`.
    Fair,
    /// `SCHED_FIFO`, `SCHED_RR`.
    Rt,
    /// `SCHED_DEADLINE`. The fair server is an entity of this class.
    Deadline,
    /// The stopper threads.
    Stop,
}

/// The owner of the code that a task runs. The task's class only says how it is scheduled: a
/// kworker and a thread of the workload share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// The idle task (`swapper/N`).
    Swapper,
    /// The stopper of a CPU (`migration/N`, `cpu_stopper_thread()`).
    Stopper {
        /// Its CPU.
        cpu: CpuId,
    },
    /// A thread of schedutil's slow path (`sugov:N`, `kthread_worker_fn()`).
    Sugov {
        /// The policy whose frequency it changes.
        policy: PolicyId,
    },
    /// A kworker of a pool (`worker_thread()`).
    Kworker {
        /// Its number among all.
        worker: u16,
        /// Its pool is that of a CPU.
        bound: bool,
    },
    /// A thread of the system's description.
    Source {
        /// The source.
        source: u16,
        /// It must not leave its CPU.
        bound: bool,
    },
    /// A thread of RCU.
    Rcu {
        /// Which one.
        thread: RcuThread,
    },
    /// The program in user space of a scheduler of sched_ext, where it decides.
    ExtProgram,
    /// `ksoftirqd/N`.
    Ksoftirqd {
        /// Its CPU.
        cpu: CpuId,
    },
    /// A thread of the workload.
    User,
}

impl TaskKind {
    /// `kthread_is_per_cpu()`: a kernel thread that must not leave its CPU.
    pub fn is_per_cpu_kthread(self) -> bool {
        match self {
            TaskKind::Stopper { .. } | TaskKind::Ksoftirqd { .. } => true,
            TaskKind::Kworker { bound, .. } | TaskKind::Source { bound, .. } => bound,
            TaskKind::Swapper | TaskKind::Sugov { .. } => false,
            TaskKind::Rcu { .. } | TaskKind::ExtProgram | TaskKind::User => false,
        }
    }
}

/// `task_struct.on_rq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRq {
    /// Not queued.
    No,
    /// `TASK_ON_RQ_QUEUED`; also a task whose dequeue is delayed.
    Queued,
    /// `TASK_ON_RQ_MIGRATING`.
    Migrating,
}

/// `struct task_struct`.
#[derive(Clone, Debug)]
// What is touched at each event comes first, see [`crate::Kernel`].
#[repr(C)]
pub struct Task {
    /// Its entity in the fair class.
    pub se: EntityId,
    /// Its task group (`sched_task_group`).
    pub group: TaskGroupId,
    /// CPU it is (or was last) on.
    pub cpu: CpuId,
    /// `recent_used_cpu`.
    pub recent_used_cpu: CpuId,
    /// Class.
    pub class: Class,
    /// Policy.
    pub policy: Policy,
    /// State; `Running` while runnable.
    pub state: TaskState,
    /// Queued?
    pub on_rq: OnRq,
    /// Waits for I/O.
    pub in_iowait: bool,
    /// Until then, by the clock of the CPU that does it, its last wakeup or its switch-out to sleep (`on_cpu`) is not over.
    pub under_way_until: Ns,
    /// Its group's `cpu.max` has taken it out of its queue, into the limbo list.
    pub throttled: bool,
    /// `sched_throttle_work` is pending: it looks at its queue before it goes on in user space.
    pub throttle_work: bool,
    /// An interrupt has preempted it in user space; only told where groups have limits.
    pub preempted_in_user: bool,
    /// Their number.
    pub nr_cpus_allowed: u32,
    /// Kernel priority: −1 DEADLINE, 0..=98 RT, 100..=139 fair.
    pub prio: i32,
    /// Neighbour towards the head of `rq.cfs_tasks`.
    pub cfs_tasks_prev: Option<TaskId>,
    /// Neighbour towards the tail of `rq.cfs_tasks`.
    pub cfs_tasks_next: Option<TaskId>,
    /// Allowed CPUs.
    pub cpus_mask: CpuMask,
    /// Wake-wide heuristic: the task that it woke last.
    pub last_wakee: TaskId,
    /// Wake-wide heuristic: how often that changed.
    pub wakee_flips: u32,
    /// Wake-wide heuristic: jiffies of the last decay.
    pub wakee_flip_decay_ts: u64,
    /// The owner of the code that it runs.
    pub kind: TaskKind,
    /// The end of its last operation.
    pub outcome: Outcome,
    /// Its sleep timer is queued on this CPU.
    pub sleep_timer_on: Option<CpuId>,
    /// The cgroup that it was put into: its task group, unless that is its session's.
    pub cgroup: TaskGroupId,
    /// The task group of its session (`signal->autogroup`); the root: it has none.
    pub autogroup: TaskGroupId,
    /// Nice value.
    pub nice: i8,
    /// Largest capacity its affinity touches (`max_allowed_capacity`).
    pub max_allowed_capacity: u64,
    /// Utilisation clamps it asked for.
    pub uclamp_req: demand::uclamp::UclampRequest,
    /// The clamps with which its run queue counts it (`uclamp`).
    pub uclamp: demand::uclamp::TaskClamps,
    /// `sched_remote_wakeup`: a wake-list entry stands for a migration.
    pub sched_remote_wakeup: bool,
    /// Remaining ticks of a `SCHED_RR` task.
    pub rr_time_slice: u32,
    /// Its entity in the DEADLINE class.
    pub dl: deadline::DlEntity,
    /// Its first action when it runs: it looks at a blocked system call again, or gives a lock
    /// back.
    pub(crate) resume: Option<crate::sync::wait::Resume>,
    /// The futex it waits on.
    pub futex: Option<schedtwin_types::FutexId>,
    /// `PF_EXITING`.
    pub exiting: bool,
}

/// A task on a wake list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeListEntry {
    /// The task to activate.
    pub task: TaskId,
    /// When its waker put it there, by the waker's clock.
    pub at: Ns,
}

/// `struct rq`.
#[derive(Clone, Debug)]
// What is touched at each event comes first, see [`crate::Kernel`].
#[repr(C)]
pub struct Rq {
    /// Its CPU.
    pub cpu: CpuId,
    /// The class that was picked last, or a higher one that has been raised since.
    pub next_class: Class,
    /// `TIF_NEED_RESCHED` of the running task.
    pub need_resched: bool,
    /// `TIF_NEED_RESCHED_LAZY` of it: it gives way when it returns to user mode, or after the next tick.
    pub need_resched_lazy: bool,
    /// The next `__schedule` does not update the clock (`RQCF_REQ_SKIP`).
    pub skip_clock_update: bool,
    /// The wake list is being worked on or waits for its interrupt.
    pub ttwu_pending: bool,
    /// RT or DEADLINE tasks wait here that are to be pushed to other CPUs after the switch
    /// (`balance_callback`).
    pub push_pending: bool,
    /// Runnable tasks of all classes, delayed ones and the enqueued fair server included.
    pub nr_running: u32,
    /// The running task.
    pub curr: TaskId,
    /// Tasks that went to sleep here until I/O is done, and have not been woken.
    pub nr_iowait: u32,
    /// `rq->clock`.
    pub clock: u64,
    /// `rq->clock_task`.
    pub clock_task: u64,
    /// The PELT clock.
    pub clock_pelt: RqClockPelt,
    /// Interrupt time of the CPU so far, including what is not yet over.
    pub irq_time: u64,
    /// `prev_irq_time`: how much of it `clock_task` has left out.
    pub prev_irq_time: u64,
    /// `arch_scale_cpu_capacity`.
    pub arch_capacity: u64,
    /// `arch_scale_freq_capacity`.
    pub freq_scale: u64,
    /// `cpufreq_pressure`: what a limited frequency takes off it.
    pub cpufreq_pressure: u64,
    /// `hw_pressure`: what firmware takes off it at this moment.
    pub hw_pressure: u64,
    /// `rq->cpu_capacity` (`capacity_of`).
    pub cpu_capacity: u64,
    /// The utilisation clamps of its runnable tasks.
    pub uclamp: Signal<RqClamps>,
    /// PELT of the RT class.
    pub avg_rt: Signal<SchedAvg>,
    /// PELT of the DEADLINE class.
    pub avg_dl: Signal<SchedAvg>,
    /// PELT of interrupts.
    pub avg_irq: Signal<SchedAvg>,
    /// PELT of hardware pressure.
    pub avg_hw: SchedAvg,
    /// RT run queue.
    pub rt: rt::RtRq,
    /// The fair server.
    pub fair_server: fair_server::FairServer,
    /// DEADLINE run queue.
    pub dl: deadline::DlRq,
    /// The timer that ends slices.
    pub hrtick: hrtick::Hrtick,
    /// Head (most recently run) of `cfs_tasks`.
    pub cfs_tasks_head: Option<TaskId>,
    /// Tail (least recently run).
    pub cfs_tasks_tail: Option<TaskId>,
    /// Run queues of groups whose averages decay with the CPU's (`leaf_cfs_rq_list`), children first.
    pub leaf_cfs_rqs: Vec<CfsRqId>,
    /// The queue with the timeline of its tasks, where that is one for all groups; else its root's.
    pub timeline: CfsRqId,
    /// The running task's load if it does not fit the CPU.
    pub misfit_task_load: u64,
    /// When the CPU went idle (0: it did not, or the time is taken).
    pub idle_stamp: u64,
    /// Average idle time.
    pub avg_idle: u64,
    /// SIS_PROP: idle time that a scan for an idle CPU may use up, halved each jiffy since `wake_stamp`.
    pub wake_avg_idle: u64,
    /// SIS_PROP: the jiffy up to which that has been done.
    pub wake_stamp: u64,
    /// Upper bound of what newidle balancing may cost.
    pub max_idle_balance_cost: u64,
    /// Jiffy of the next periodic balance.
    pub next_balance: u64,
    /// `rq.idle_balance`: `idle_cpu()` at the last tick.
    pub idle_balance: bool,
    /// SCHED_SOFTIRQ is raised.
    pub sched_softirq: bool,
    /// `nohz_csd` kick is to be carried out (`rq->nohz_flags`).
    pub nohz_flags: u32,
    /// The tick is stopped and the CPU is in `nohz.idle_cpus_mask` (`nohz_tick_stopped`).
    pub nohz_tick_stopped: bool,
    /// Its idle task has been picked and is counted so in `nr_busy_cpus` (`is_idle`, of a patch).
    pub is_idle: bool,
    /// `rq.has_blocked_load`.
    pub has_blocked_load: bool,
    /// Jiffy of the last blocked-load update.
    pub last_blocked_load_update_tick: u64,
    /// Tasks to be activated by this CPU (`rq.wake_list`), first come first served.
    pub wake_list: Vec<WakeListEntry>,
    /// Queues of groups that this CPU lets go on with the same interrupt (`cfsb_csd_list`).
    pub unthrottle_list: Vec<fair::bandwidth::UnthrottleEntry>,
    /// An active balance is under way.
    pub active_balance: bool,
    /// Where it pushes to.
    pub push_cpu: CpuId,
    /// The stopper thread.
    pub stopper: TaskId,
    /// Works that wait for the stopper.
    pub stop_work: stop::StopWorks,
    /// The stopper is runnable.
    pub stop_queued: bool,
    /// `exec_start` of the idle task.
    pub idle_exec_start: u64,
    /// State of the random sequence that NI_RANDOM draws from.
    pub newidle_rnd: u64,
}
