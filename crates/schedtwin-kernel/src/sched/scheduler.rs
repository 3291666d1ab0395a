// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's state. Only `sched/` reads and writes its fields; other subsystems ask by the methods below.

use super::Class;
use super::demand::need::Needs;
use super::demand::signal::StaleDemands;
use super::demand::uclamp::UclampKey;
use super::ext::Ext;
use super::fair::group::TaskGroup;
use super::fair::sched_cache::CacheAffinity;
use super::nohz::Nohz;
use super::root_domain::RootDomain;
use super::topology::Topology;
use super::unseen::IdleChanges;
use super::{CfsRq, CfsRqId, EntityId, Rq, SchedEntity, Task};
use crate::config::{CapacityPressure, CfsTunables};
use crate::sync::wait::Resume;
use crate::{Context, Cpufreq};
use schedtwin_types::arena::{Arena, PerCpu};
use schedtwin_types::{CpuId, CpuMask, Ns, Outcome, Policy, TaskGroupId, TaskId, TaskState};

/// `kernel/sched/`: run queues, entities, tasks, groups and domains.
#[derive(Clone)]
// Fields that each entry touches come first: their addresses are short, and they share few cache lines.
#[repr(C)]
pub struct Scheduler {
    /// Run queues.
    pub(super) rq: PerCpu<Rq>,
    /// Fair run queues: the root one of CPU c is number c; group ones follow.
    pub(super) cfs: Arena<CfsRqId, CfsRq>,
    /// Entities of tasks and groups.
    pub(super) se: Arena<EntityId, SchedEntity>,
    /// All tasks; 0 is the idle task of every CPU.
    pub(super) tasks: Arena<TaskId, Task>,
    /// The static key `__cfs_bandwidth_used`: some group has had a limit.
    pub(super) cfs_bandwidth_used: bool,
    /// There are groups, and the tasks of all compete in one timeline of each CPU.
    pub(super) flat_groups: bool,
    /// sched_ext with its scheduler loaded.
    pub(super) ext: Option<Box<Ext>>,
    /// The preferences of processes among several last-level caches (`sched_cache_active`).
    pub(super) sched_cache: Option<Box<CacheAffinity>>,
    /// The static key `sched_uclamp_used`: somebody has used a clamp, so clamps are accounted.
    pub(super) sched_uclamp_used: UclampKey,
    /// CPUs idle in the sense of `idle_cpu()`, kept incrementally.
    pub(super) idle_mask: CpuMask,
    /// Changes of it that other CPUs may not have seen.
    pub(super) idle_changes: IdleChanges,
    /// CPUs with `SCHED_IDLE` tasks only, in the sense of `sched_idle_cpu()`, kept incrementally.
    pub(super) sched_idle_mask: CpuMask,
    /// CPUs whose demand schedutil has to compute at its next request.
    pub(super) stale_demands: StaleDemands,
    /// `sysctl_sched_base_slice`, scaled by the number of CPUs.
    pub(super) base_slice: Ns,
    /// Whether firmware has ever told what it takes away.
    pub(super) hw_pressure_told: bool,
    /// How limits lower capacities.
    pub(super) capacity_pressure: CapacityPressure,
    /// Task groups; 0 is the root.
    pub(super) groups: Arena<TaskGroupId, TaskGroup>,
    /// The autogroup of each session; none without autogroups.
    pub(super) autogroups: Vec<TaskGroupId>,
    /// Scheduling domains.
    pub(super) topology: Topology,
    /// The root domain that spans all CPUs.
    pub(super) rd: RootDomain,
    /// NOHZ idle balancing.
    pub(super) nohz: Nohz,
    /// The operating point that each CPU needs.
    pub(super) needs: Needs,
    /// The tunables of CFS, scaled by the number of CPUs.
    pub(super) cfs_tunables: CfsTunables,
    /// The class as it was when its scheduler was unloaded.
    pub(super) ext_unloaded: Option<Box<Ext>>,
}

/// The state of the scheduler that other subsystems read.
impl Scheduler {
    /// Number of CPUs.
    #[inline(always)]
    pub(crate) fn nr_cpus(&self) -> usize {
        self.rq.len()
    }

    /// The run queue of a CPU.
    #[inline(always)]
    pub(crate) fn rq(&self, cpu: CpuId) -> &Rq {
        &self.rq[cpu]
    }

    /// The root fair run queue of a CPU.
    #[inline(always)]
    pub(crate) fn root_cfs(&self, cpu: CpuId) -> &CfsRq {
        &self.cfs[CfsRqId::root(cpu)]
    }

    /// A task.
    #[inline(always)]
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// All tasks, in the order in which they were made.
    pub(crate) fn task_ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        self.tasks.ids()
    }

    /// A task group.
    pub(crate) fn group(&self, group: TaskGroupId) -> &TaskGroup {
        &self.groups[group]
    }

    /// Scheduling domains.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The root domain.
    pub(crate) fn rd(&self) -> &RootDomain {
        &self.rd
    }

    /// CPUs idle in the sense of `idle_cpu()`.
    pub(crate) fn idle_mask(&self) -> &CpuMask {
        &self.idle_mask
    }

    /// CPUs whose demand the frequency governor has to compute at its next request.
    #[inline(always)]
    pub(crate) fn stale_demands(&self) -> &StaleDemands {
        &self.stale_demands
    }

    /// As [`Scheduler::stale_demands`], to be marked or taken as computed.
    #[inline(always)]
    pub(crate) fn stale_demands_mut(&mut self) -> &mut StaleDemands {
        &mut self.stale_demands
    }
}

/// The state of the scheduler that other subsystems change.
impl Scheduler {
    /// `set_current_state()`.
    #[inline(always)]
    pub(crate) fn set_task_state(&mut self, task: TaskId, state: TaskState) {
        self.tasks[task].state = state;
    }

    /// Sets the result of a task's last operation.
    #[inline(always)]
    pub(crate) fn set_outcome(&mut self, task: TaskId, outcome: Outcome) {
        self.tasks[task].outcome = outcome;
    }

    /// Sets the point at which a task's call goes on once it runs again.
    #[inline(always)]
    pub(crate) fn set_resume(&mut self, task: TaskId, resume: Option<Resume>) {
        self.tasks[task].resume = resume;
    }

    /// Takes the point at which a task's call goes on.
    #[inline(always)]
    pub(crate) fn take_resume(&mut self, task: TaskId) -> Option<Resume> {
        self.tasks[task].resume.take()
    }

    /// Marks a task as one that waits for I/O (`io_schedule_prepare`, `io_schedule_finish`).
    pub(crate) fn set_in_iowait(&mut self, task: TaskId, waits: bool) {
        self.tasks[task].in_iowait = waits;
    }

    /// Notes the CPU whose timer ends a task's sleep.
    #[inline(always)]
    pub(crate) fn set_sleep_timer(&mut self, task: TaskId, cpu: Option<CpuId>) {
        self.tasks[task].sleep_timer_on = cpu;
    }

    /// Binds a sleeping kernel thread to CPUs, with `first` as its last one (`kthread_bind_mask()`).
    pub(crate) fn kthread_bind_mask(&mut self, task: TaskId, first: CpuId, cpus: CpuMask) {
        let t = &mut self.tasks[task];
        t.cpu = first;
        t.cpus_mask = cpus;
        t.nr_cpus_allowed = cpus.weight();
        t.state = TaskState::Interruptible;
        self.se[t.se].cfs_rq = CfsRqId::root(first);
    }

    /// Gives a fair kernel thread a nice value, before it first runs.
    pub(crate) fn set_kthread_nice(&mut self, task: TaskId, nice: i8) {
        let t = &mut self.tasks[task];
        (t.nice, t.prio) = (nice, 120 + i32::from(nice));
        let load = crate::sched::fair::weight_of(t.policy, nice);
        self.se[t.se].load = load;
        self.se[t.se].avg =
            crate::sched::pelt::init_entity(Some(crate::sched::fair::scale_load_down(load.weight)));
    }

    /// Makes a kernel thread one of `SCHED_FIFO`, before it first runs.
    pub(crate) fn make_fifo(&mut self, task: TaskId, priority: i32) {
        let t = &mut self.tasks[task];
        (t.class, t.policy, t.prio) = (Class::Rt, Policy::Fifo, 99 - priority);
    }

    /// Has a work done by the kworker of `cpu` (`schedule_work_on()`).
    pub(crate) fn queue_kworker_on(&mut self, task: TaskId, cpu: CpuId) {
        let t = &mut self.tasks[task];
        t.cpus_mask = CpuMask::of(cpu);
        t.nr_cpus_allowed = 1;
    }

    /// `set_tsk_need_resched()` of a CPU that polls the flag, hence without an interrupt.
    pub(crate) fn set_need_resched(&mut self, cpu: CpuId) {
        self.rq[cpu].need_resched = true;
    }

    /// Takes the pending `SCHED_SOFTIRQ` of a CPU.
    #[inline(always)]
    pub(crate) fn take_sched_softirq(&mut self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.rq[cpu].sched_softirq)
    }

    /// Notes at a tick whether the CPU is idle (`rq->idle_balance`).
    #[inline(always)]
    pub(crate) fn note_idle_at_tick(&mut self, cpu: CpuId) {
        self.rq[cpu].idle_balance = self.idle_cpu(cpu);
    }

    /// `arch_scale_freq_capacity()` of a CPU is another.
    #[inline(always)]
    pub(crate) fn set_freq_scale(&mut self, cpu: CpuId, scale: u64) {
        self.rq[cpu].freq_scale = scale;
    }

    /// Starts the random sequence of a CPU that newidle balancing draws from.
    pub(crate) fn seed_newidle_random(&mut self, cpu: CpuId, seed: u64) {
        self.rq[cpu].newidle_rnd = seed;
    }

    /// Sets `rq_clock()`, where a recorded call is repeated.
    pub(crate) fn set_clock(&mut self, cpu: CpuId, time: Ns) {
        self.rq[cpu].clock = time;
    }

    /// Another configuration goes on from this state: every demand, and what CPUs need, is computed anew.
    pub(crate) fn reconfigure(&mut self, cpufreq: &Cpufreq, cx: &Context) {
        self.stale_demands = StaleDemands::all(cx.platform.device_tree.all_cpus());
        self.needs = cpufreq.needs_for_config(&self.needs, cx);
        self.set_capacity_pressure(&cx.config);
    }
}

crate::inside::opened!(Scheduler {
    tasks: Arena<TaskId, Task>,
    se: Arena<EntityId, SchedEntity>,
    cfs: Arena<CfsRqId, CfsRq>,
    groups: Arena<TaskGroupId, TaskGroup>,
    rq: PerCpu<Rq>,
    topology: Topology,
    rd: RootDomain,
    idle_mask: CpuMask,
    nohz: super::nohz::Nohz,
});
