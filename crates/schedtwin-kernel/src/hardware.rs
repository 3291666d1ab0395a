// SPDX-License-Identifier: GPL-2.0-or-later
//! The view that hardware and user space have of the kernel: all that the twin may read.
//!
//! The kernel keeps its state to itself. What leaves it is one of four things:
//!
//! * the result of an entry: [`UserReturn`], [`SyscallEffect`];
//! * a fact or a decision record;
//! * a CPU's wires, a clock's request, a driver's interrupt: [`HardwareView`];
//! * what `/proc` would print about a task: [`TaskStat`], and a cgroup's `cpu.stat` about its limit: [`CpuStat`].
//!
//! Tests and the comparison with the kernel's own C look further in, by [`crate::inside`].

pub use crate::block::{BlockDevice, IssuedRequest, RequestId};
pub use crate::coherence::Waited;
pub use crate::cpufreq::counts::Counts;
pub use crate::cpufreq::freq_table::Limits;
pub use crate::cpufreq::hints::Hints;
pub use crate::cpufreq::hook::RequestCounts;
pub use crate::sched::TaskKind;
pub use crate::sched::fair::bandwidth::{CpuStat, DEFAULT_CFS_PERIOD};
pub use crate::sched::fair::entitled::TaskShare;
use crate::thermal::MilliCelsius;
use crate::{Kernel, Wires};
use schedtwin_types::{
    CpuId, CpuMask, FutexId, Khz, NEVER, Ns, Outcome, PolicyId, TaskGroupId, TaskId, ThreadId,
};

/// A read-only view of what hardware sees.
#[derive(Clone, Copy)]
pub struct HardwareView<'a> {
    kernel: &'a Kernel,
}

impl<'a> HardwareView<'a> {
    /// The wires of a CPU.
    #[inline(always)]
    pub fn wires(self, cpu: CpuId) -> &'a Wires {
        &self.kernel.cx.platform.wires[cpu]
    }

    /// When the timers of a CPU next have something to do, as firmware is told that chooses the state of a power
    /// domain (`dev->next_hrtimer`); [`schedtwin_types::NEVER`]: they are empty.
    #[inline]
    pub fn next_event(self, cpu: CpuId) -> Ns {
        self.kernel.time.base(cpu).next_event()
    }

    /// The frequency that the driver of a policy has asked for last.
    #[inline]
    pub fn requested(self, policy: PolicyId) -> Khz {
        self.kernel.cpufreq.policy(policy).requested
    }

    /// Returns the hints of a policy's driver to a processor that chooses its frequency itself;
    /// `None`: the processor follows requests.
    pub fn hints(self, policy: PolicyId) -> Option<Hints> {
        self.kernel.cpufreq.hints(policy, &self.kernel.cx)
    }

    /// The frequency that the governor of a policy wants, which a driver that takes its time has not been asked for yet.
    #[inline]
    pub fn wanted(self, policy: PolicyId) -> Khz {
        let index = policy;
        let policy = self.kernel.cpufreq.policy(index);
        // Governors that want one frequency ask the driver and keep no wish.
        if policy.sugov.next_freq == 0 {
            policy.requested
        } else {
            self.kernel.cpufreq.driver_frequency(index, policy.sugov.next_freq)
        }
    }

    /// Returns the outcomes of the calls of a policy's governor, counted since boot.
    pub fn request_counts(self, policy: PolicyId) -> RequestCounts {
        self.kernel.cpufreq.policy(policy).sugov.counts
    }

    /// Whether a thread calls the driver of a policy, so that the driver may interrupt when it is done.
    #[inline]
    pub fn driver_may_interrupt(self, policy: PolicyId) -> bool {
        self.kernel.cpufreq.policy(policy).kthread.is_some()
    }

    /// When the driver of a policy interrupts; `None`: nobody waits for it.
    pub fn driver_interrupt_at(self, policy: PolicyId) -> Option<Ns> {
        self.kernel.cpufreq.policy(policy).kthread.as_ref().and_then(|k| k.interrupt_at())
    }

    /// Whether a cooling device holds the frequency of a policy below its maximum.
    pub fn is_cooled(self, policy: PolicyId) -> bool {
        self.kernel.cpufreq.policy(policy).cooling_state > 0
    }

    /// The lowest and the highest frequency that may be asked of a policy now.
    pub fn limits(self, policy: PolicyId) -> Limits {
        self.kernel.cpufreq.policy(policy).limits
    }

    /// How long a CPU was idle while a task that went to sleep there waited for I/O (`iowait_sleeptime`); `None`: no task has
    /// waited for I/O.
    pub fn iowait(self, cpu: CpuId) -> Option<Ns> {
        self.kernel.block.iowait(cpu)
    }

    /// The time that CPUs have waited for each other's lines and run queues' locks so far, for each of [`Waited::ALL`];
    /// `None`: on this machine that costs nothing.
    pub fn waited(self) -> Option<[Ns; Waited::ALL.len()]> {
        self.kernel.cx.coherence.as_ref().map(|coherence| coherence.waited())
    }

    /// How many thermal zones there are: each has a sensor of its number.
    pub fn nr_thermal_zones(self) -> usize {
        self.kernel.thermal.nr_zones()
    }
}

/// Information that user space can read about a task (`/proc/PID/comm`, `/proc/PID/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// The kind of code that it runs.
    pub kind: TaskKind,
    /// Kernel priority: −1 DEADLINE, 0..=99 RT and stopper, 100..=139 fair.
    pub prio: i32,
}

/// The action of a running task once its CPU owes no more kernel time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserReturn {
    /// It stays in the kernel: there was something left to do, and the CPU's wires say what comes of it.
    InKernel,
    /// It goes on with its program, which learns how its last operation ended.
    ToUser(Outcome),
}

/// The changes by a system call that are visible outside of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyscallEffect {
    /// The task that it has made.
    pub child: Option<NewTask>,
    /// The caller's kernel priority, if that is another now.
    pub new_prio: Option<i32>,
}

/// A task that `clone()` has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The task.
    pub task: TaskId,
    /// The thread of the workload that it runs.
    pub thread: ThreadId,
    /// Its kernel priority.
    pub prio: i32,
}

impl Kernel {
    /// Returns the view that hardware has of the kernel.
    #[inline(always)]
    pub fn hardware(&self) -> HardwareView<'_> {
        HardwareView { kernel: self }
    }

    /// Returns what user space can read in a group's `cpu.stat` about its limit, if it has one.
    pub fn cpu_stat(&self, group: TaskGroupId) -> Option<CpuStat> {
        let bandwidth = &self.sched.group(group).bandwidth;
        bandwidth.quota.map(|_| bandwidth.stat)
    }

    /// By how much a group with a limit has used more CPU time than that allows, ns.
    pub fn beyond_limit(&self, group: TaskGroupId) -> Ns {
        let bandwidth = &self.sched.group(group).bandwidth;
        let most = bandwidth.most_usage(self.held_by_queues());
        most.map_or(0, |most| bandwidth.stat.usage.saturating_sub(most))
    }

    /// Returns what user space can read about a task.
    pub fn task_stat(&self, task: TaskId) -> TaskStat {
        let t = self.sched.task(task);
        TaskStat { kind: t.kind, prio: t.prio }
    }

    /// The CPUs that a runnable task may move to now; none while the `cpu.max` of its cgroup keeps it from running, or its
    /// reservation is used up.
    pub fn may_move_to(&self, task: TaskId) -> CpuMask {
        let t = self.sched.task(task);
        let held = t.throttled || t.dl.waits_for_period() || self.sched.throttled_task(task);
        if held { CpuMask::EMPTY } else { t.cpus_mask }
    }

    /// Since when neither a `cpu.max` nor a reservation keeps a runnable task from running on `cpu`: `NEVER` while one does.
    pub fn free_since(&self, task: TaskId, cpu: CpuId) -> Ns {
        let t = self.sched.task(task);
        if t.throttled || t.dl.waits_for_period() {
            return NEVER;
        }
        self.sched.unthrottled_since(task, cpu)
    }

    /// Returns the least and the greatest speed that the tasks of a CPU ask for (`rq->uclamp`), 0..=1024; `None`: nobody uses
    /// clamps, or the kernel adds up what they change of each task's utilisation.
    pub fn uclamp(&self, cpu: CpuId) -> Option<[u32; 2]> {
        self.sched.uclamp_of(cpu, &self.cx).map(|clamps| [clamps.min, clamps.max])
    }

    /// The cgroup of a task (its session's group does not count).
    pub fn cgroup_of(&self, task: TaskId) -> TaskGroupId {
        self.sched.task(task).cgroup
    }

    /// The kernel's own threads, in the order in which they were made.
    pub fn kernel_threads(&self) -> impl Iterator<Item = TaskId> + '_ {
        let own = |kind| !matches!(kind, TaskKind::Swapper | TaskKind::User);
        self.sched.task_ids().filter(move |task| own(self.sched.task(*task).kind))
    }

    /// Starts the random sequence of a CPU that newidle balancing draws from, before time begins.
    pub fn seed_newidle_random(&mut self, cpu: CpuId, seed: u64) {
        self.sched.seed_newidle_random(cpu, seed);
    }

    /// Whether decisions are recorded, for [`Kernel::take_decisions`].
    pub fn record_decisions(&mut self, wanted: bool) {
        self.cx.want_decisions = wanted;
    }

    /// Whether decisions are recorded.
    #[inline(always)]
    pub fn records_decisions(&self) -> bool {
        self.cx.want_decisions
    }

    /// Whether signals of CPUs and tasks are among the facts.
    pub fn report_signals(&mut self, wanted: bool) {
        self.cx.want_signals = wanted;
    }
}

/// Calls of hardware, firmware and user space that one subsystem answers.
impl Kernel {
    /// The clock of a policy has settled at `khz`, by anyone's choice: counters go on at that
    /// frequency.
    #[inline]
    pub fn clock_settled(&mut self, policy: PolicyId, khz: Khz, now: Ns) {
        self.cpufreq.clock_settled(policy, khz, now)
    }

    /// The handler of a device will wake a waiter of `futex` in the next entry that has
    /// `IrqLine::Peripheral` among its lines.
    #[inline]
    pub fn peripheral(&mut self, futex: FutexId) {
        self.cx.peripheral(futex)
    }

    /// Whether any CPU's demand may have changed since [`Kernel::look_at_needs`].
    #[inline]
    pub fn has_unseen_demands(&self) -> bool {
        self.sched.has_unseen_demands()
    }

    /// Looks at the CPUs whose demand may have changed since the last call, and tells `see` of each that needs another
    /// frequency now: its index in the domain's table.
    #[inline]
    pub fn look_at_needs(&mut self, see: impl FnMut(CpuId, usize)) {
        self.sched.look_at_needs(see, &self.cpufreq, &self.cx)
    }

    /// When a group's periods begin: `offset` ns after the grid of time 0, if this kernel sets them apart.
    #[inline]
    pub fn seed_cfs_period(&mut self, group: TaskGroupId, offset: Ns) {
        self.sched.seed_cfs_period(group, offset, &self.cx)
    }

    /// `sched_create_group()`: a group below `parent` with `shares` (`cpu.shares`, 2..=2^18, 1024 by default).
    #[inline]
    pub fn new_task_group(&mut self, parent: TaskGroupId, shares: u64) -> TaskGroupId {
        let group = self.sched.new_task_group(parent, shares, &self.cx);
        self.scx_tg_online(group);
        group
    }

    /// `arch_update_hw_pressure()`: firmware lets the CPUs of a policy run at `capped_khz` at most.
    #[inline]
    pub fn arch_update_hw_pressure(&mut self, policy: PolicyId, capped_khz: Khz) {
        self.sched.arch_update_hw_pressure(policy, capped_khz, &self.cpufreq)
    }

    /// Whether a look at zone `zone` is due: a poll, or its sensor says `temperature`, and a trip point lies between that
    /// and what it said last.
    #[inline]
    pub fn thermal_due(&self, zone: usize, now: Ns, temperature: MilliCelsius) -> bool {
        self.thermal.thermal_due(zone, now, temperature)
    }
}
