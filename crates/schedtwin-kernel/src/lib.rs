// SPDX-License-Identifier: GPL-2.0-or-later
//! What Linux decides: the scheduler, cpufreq and cpuidle governors, timers and wait queues of one
//! simulated kernel.
//!
//! [`Kernel`] is a value. Entries ([`Kernel::interrupt`], [`Kernel::syscall`], [`Kernel::idle_enter`],
//! ...) take the time and arguments, change it, and return; nothing inside calls out. All that
//! hardware can see of a CPU is its [`Wires`], which the kernel writes and the twin reads after each
//! entry. A snapshot is a `clone()`.
//!
//! **Time inside an entry.** An entry is atomic at its time T. Each path adds its cost to the CPU's
//! *debt*, which the CPU pays before its activity proceeds; interrupts that arrive meanwhile wait.
//! Run-queue clocks read T; only what Linux stamps in the middle of a path (`local_clock()`: trace
//! events, costs of newidle balancing) reads T plus the debt so far ([`Kernel::local_clock`]).
//!
//! The rooms are where Linux has them: `sched/core.rs`, `sched/fair/`, `time/tick_sched.rs`, ...

mod boot_config;
pub mod config;
pub mod cpufreq;
pub mod cpuidle;
pub mod device_tree;
mod entry;
pub mod hardware;
pub mod inside;
mod irq_work;
pub mod policy;
pub mod sched;
pub mod see;
mod sorted;
pub mod sync;
pub mod thermal;
pub mod time;
mod vmstat;

pub use boot_config::BootConfig;
use config::CfsTunables;
use cpufreq::policy::CpufreqPolicy;
use cpuidle::CpuIdle;
use device_tree::DeviceTree;
use sched::demand::need::Needs;
use sched::demand::signal::StaleDemands;
use sched::demand::uclamp::UclampKey;
use sched::nohz::Nohz;
use sched::root_domain::RootDomain;
use sched::topology::Topology;
use sched::{CfsRq, CfsRqId, EntityId, Rq, SchedEntity, Task};
use schedtwin_types::arena::{self, Arena, PerCpu};
use schedtwin_types::{
    CpuId, CpuMask, DecisionRecord, Fact, FutexId, IpiKind, Ns, PolicyId, PolicyMask, TaskGroupId,
    TaskId,
};

/// What the hardware sees of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wires {
    /// The one-shot clock event (`clockevents_program_event`); [`schedtwin_types::NEVER`] = off.
    pub clock_event_at: Ns,
    /// Per kind: when the interrupt in flight to this CPU was sent; [`schedtwin_types::NEVER`] = none.
    pub ipi_at: [Ns; IpiKind::COUNT],
    /// Per kind: who sent it last.
    pub ipi_from: [CpuId; IpiKind::COUNT],
    /// What the CPU does once its debt is paid.
    pub activity: Activity,
    /// Kernel time that the CPU still owes, nanoseconds from the time of its last entry. Written when
    /// the entry ends.
    pub debt: Ns,
}

/// What a CPU does between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Runs a task.
    Task(TaskId),
    /// The idle task is about to ask the governor: [`Kernel::idle_enter`] is due.
    IdleLoop,
    /// Sleeps in idle state `state` until an interrupt.
    Idle {
        /// Index of the state.
        state: u8,
    },
    /// Spins in the polling idle state, with interrupts on: [`Kernel::poll_end`] is due.
    Poll {
        /// When the loop ends: its time is up, or another CPU has set `need_resched`.
        until: Ns,
    },
}

/// The simulated kernel. Its state is its own: what leaves it is listed in [`hardware`].
#[derive(Clone)]
// Fields that each entry touches come first: their addresses are short, and they share few cache lines.
#[repr(C)]
pub struct Kernel {
    /// Time of the current entry.
    now: Ns,
    /// Kernel time that the current entry has cost so far.
    debt: Ns,
    /// Run queues.
    rq: PerCpu<Rq>,
    /// Fair run queues: the root one of CPU c is number c; group ones follow.
    cfs: Arena<CfsRqId, CfsRq>,
    /// Entities of tasks and groups.
    se: Arena<EntityId, SchedEntity>,
    /// All tasks; 0 is the idle task of every CPU.
    tasks: Arena<TaskId, Task>,
    /// The CPU that executes the current entry (`smp_processor_id()`).
    this_cpu: CpuId,
    /// The executing CPU is in interrupt context: its costs are interrupt time.
    in_irq: bool,
    /// Whether decisions are recorded.
    want_decisions: bool,
    /// Whether `CpuSignals` and `TaskSignals` facts are wanted.
    want_signals: bool,
    /// The static key `__cfs_bandwidth_used`: some group has had a limit.
    cfs_bandwidth_used: bool,
    /// There are groups, and the tasks of all compete in one timeline of each CPU.
    flat_groups: bool,
    /// What processes prefer of several last-level caches (`sched_cache_active`).
    sched_cache: Option<Box<sched::fair::sched_cache::CacheAffinity>>,
    /// The static key `sched_uclamp_used`: somebody has used a clamp, so clamps are accounted.
    sched_uclamp_used: UclampKey,
    /// Who hears that utilisation has changed.
    frequency_hook: cpufreq::hook::FrequencyHook,
    /// schedutil's forms.
    sugov_forms: cpufreq::forms::SugovForms,
    /// What hardware sees.
    wires: PerCpu<Wires>,
    facts: Vec<Fact>,
    /// hrtimer queues and tick state, per CPU.
    timers: PerCpu<time::hrtimer::HrtimerBase>,
    ns_per_work_shift_10: PerCpu<u64>,
    sugov_cpus: PerCpu<cpufreq::schedutil::SugovCpu>,
    dirty: CpuMask,
    /// CPUs idle in the sense of `idle_cpu()`, kept incrementally.
    idle_mask: CpuMask,
    /// CPUs with `SCHED_IDLE` tasks only, in the sense of `sched_idle_cpu()`, kept incrementally.
    sched_idle_mask: CpuMask,
    /// CPUs whose demand schedutil has to compute at its next request.
    stale_demands: StaleDemands,
    tick_nsec: Ns,
    base_slice: Ns,
    /// Frequency domains.
    policies: Arena<PolicyId, CpufreqPolicy>,
    /// Whether there are dirty or wishing policies.
    policies_dirty: bool,
    /// Whether firmware has ever told what it takes away.
    hw_pressure_told: bool,
    /// The broadcast device has been armed or disarmed since hardware last looked.
    broadcast_changed: bool,
    /// The variation points and tunables, as of boot.
    config: BootConfig,
    /// What firmware told it about the machine.
    device_tree: DeviceTree,
    /// Task groups; 0 is the root.
    groups: Arena<TaskGroupId, sched::fair::group::TaskGroup>,
    /// The autogroup of each session; none without autogroups.
    autogroups: Vec<schedtwin_types::TaskGroupId>,
    /// Scheduling domains.
    topology: Topology,
    /// The root domain that spans all CPUs.
    rd: RootDomain,
    /// NOHZ idle balancing.
    nohz: Nohz,
    /// The counters of each CPU; none where nobody reads them.
    counters: Vec<cpufreq::counters::Counters>,
    /// Thermal zones.
    thermal_zones: Vec<thermal::ThermalZone>,
    /// The operating point that each CPU needs.
    needs: Needs,
    /// The user's frequency governor that is one for all domains, if there is one.
    machine_frequency: Option<Box<policy::CustomMachineFrequency>>,
    /// What it was told of each CPU when it asked last; right where the demand is not stale. Empty without it.
    machine_demands: Vec<policy::EffectiveDemand>,
    /// The user's placement, if there is one.
    placement: Option<Box<policy::CustomPlacement>>,
    /// The user's idle governor that is one for all CPUs, if there is one.
    machine_idle: Option<Box<policy::CustomMachineIdle>>,
    /// Idle governor and idle loop, per CPU.
    cpuidle: Arena<CpuId, CpuIdle>,
    /// The device that stands in for timers that stop in idle states, and who relies on it.
    broadcast: Option<time::tick_broadcast::TickBroadcast>,
    /// CPUs whose own clock event is off although they may have an event.
    local_timers_off: CpuMask,
    /// Futex wait queues.
    futexes: sync::futex::Futexes,
    /// Pipes.
    pipes: sync::pipe::Pipes,
    /// Sockets.
    sockets: sync::socket::Sockets,
    /// The last section under a mutex, per CPU.
    sections: Arena<CpuId, Option<sync::lock::Section>>,
    /// Whom the handlers of the workload's devices wake, in the entry that follows.
    peripheral_wakes: Vec<FutexId>,
    /// The tunables of CFS, scaled by the number of CPUs.
    cfs_tunables: CfsTunables,
    /// Interrupt time of this entry that `account_irq_time` has not seen.
    irq_time_unaccounted: Ns,
    /// The work of each CPU's kworker; none without an interval.
    stat_works: Vec<vmstat::StatWork>,
    /// Speed of each CPU as a thread of its core, thousandths of what it does alone.
    thread_speed_permille: Vec<u64>,
    dirty_policies: PolicyMask,
    /// Whose governor wants another frequency that the driver will be asked for later.
    wishing_policies: PolicyMask,
    decisions: Vec<DecisionRecord>,
}
