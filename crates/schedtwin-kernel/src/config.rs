//! The kernel's configuration: variation points and tunables.
//!
//! A **variation point** is an enum of this file whose doc names the releases of each arm. Exactly one
//! file of the kernel names its arms, and no code compares release numbers (the CLI's `house` test sees to
//! both): a kernel is the values of [`Config`]. A kernel file sets every point,
//! without defaults; a patch overlays points. A **tunable** is a number or a switch that a user of the
//! release can change too: a sysctl, a file in debugfs, a build option.

use schedtwin_types::Ns;

/// All variation points and tunables of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    /// Kernel preemption.
    pub preempt: Preempt,
    /// `CONFIG_IRQ_TIME_ACCOUNTING`: interrupt time is taken out of `clock_task` and feeds `avg_irq`.
    pub irq_time_accounting: bool,
    /// Whether `cpufreq` moves frequencies by itself, and how.
    pub cpufreq: FrequencyGovernor,
    /// schedutil's tunables.
    pub schedutil: Schedutil,
    /// What `rate_limit_us` is if nobody sets it.
    pub rate_limit_default: RateLimitDefault,
    /// Order of clamps and headroom between utilisation and frequency.
    pub effective_cpu_util: EffectiveCpuUtil,
    /// Idle governor.
    pub cpuidle: IdleGovernor,
    /// Form of teo, where teo is chosen.
    pub teo: TeoForm,
    /// Whether teo looks at utilisation, and what it makes of it.
    pub teo_util: TeoUtil,
    /// A CPU is utilised above its capacity shifted right by this, 0..=10; 6 in Linux, about 1.6 %.
    pub teo_util_threshold_shift: u32,
    /// Form of menu, where menu is chosen.
    pub menu: MenuForm,
    /// How haltpoll's window shrinks, where haltpoll is chosen.
    pub haltpoll_shrink: HaltpollShrink,
    /// Idle states that are switched off on all CPUs, by name or number
    /// (`/sys/devices/system/cpu/cpuN/cpuidle/stateM/disable`).
    pub cpuidle_disable: Vec<String>,
    /// Limits on the exit latency of idle states.
    pub pm_qos: PmQos,
    /// How the fair class divides time.
    pub fair: FairClass,
    /// CFS: `debugfs sched/{latency,min_granularity,...}_ns`; zeros with EEVDF.
    pub cfs: CfsTunables,
    /// CFS: what bounds a slice at a tick.
    pub ideal_runtime: IdealRuntime,
    /// EEVDF: `debugfs sched/base_slice_ns` before scaling: 700000 (6.12.95), 750000 (6.6 to 6.12.0);
    /// 0 with CFS.
    pub base_slice_unscaled: Ns,
    /// `debugfs sched/features`.
    pub features: Features,
    /// `sysctl sched_migration_cost_ns`.
    pub migration_cost: Ns,
    /// `debugfs sched/nr_migrate`.
    pub nr_migrate: u32,
    /// What util_est keeps.
    pub util_est: UtilEstForm,
    /// When a sleeping task's util_est is updated.
    pub util_est_update: UtilEstUpdate,
    /// The weight that gives a new task its first utilisation.
    pub init_util_weight: InitUtilWeight,
    /// Whether a task that is woken away from an idle CPU has decayed until now.
    pub migrate_se_pelt_lag: MigrateSePeltLag,
    /// Whether contention raises the utilisation of schedutil, EAS and the busiest-queue choice.
    pub runnable_boost: RunnableBoost,
    /// Whether the kernel is willing to use EAS (`sysctl sched_energy_aware`).
    pub energy_aware: bool,
    /// Which CPUs EAS compares, and by how much one must be better.
    pub find_energy_efficient_cpu: FindEnergyEfficientCpu,
    /// How the energy model turns utilisation into energy.
    pub em_cpu_energy: EmCpuEnergy,
    /// When a wakeup goes through the target's wake list.
    pub ttwu_queue_cond: TtwuQueueCond,
    /// Whether wakeups look for an idle CPU in the target's cluster first.
    pub select_idle_cluster: SelectIdleCluster,
    /// Which tasks keep a CPU that runs out of fair ones from looking for others.
    pub balance_fair: BalanceFair,
    /// Which domain or group says that siblings share tasks out evenly.
    pub prefer_sibling: PreferSibling,
    /// How many tasks more than its share a sibling has.
    pub sibling_imbalance: SiblingImbalance,
    /// When a group of bigger CPUs without waiting tasks is left alone.
    pub pick_busiest_bigger: PickBusiestBigger,
    /// Which of several fully busy groups is the busiest.
    pub pick_busiest_full: PickBusiestFull,
    /// Which of several groups with equal misfits is the busiest.
    pub pick_busiest_misfit: PickBusiestMisfit,
    /// Whether a pass that could not pull a misfit has failed.
    pub misfit_failure: MisfitFailure,
    /// Whether a misfit that no CPU can help is a reason to kick an idle one.
    pub check_misfit_status: CheckMisfitStatus,
    /// When a running task counts as misfit.
    pub misfit_status: MisfitStatus,
    /// What keeps RT tasks from starving the others.
    pub rt_bandwidth: RtBandwidth,
    /// Whether a deadline task counts as an RT task where one of those is placed.
    pub rt_task: RtTask,
    /// `sysctl sched_rt_runtime_us` (−1: `None`), nanoseconds, per `rt_period`.
    pub rt_runtime: Option<Ns>,
    /// `sysctl sched_rt_period_us`, nanoseconds.
    pub rt_period: Ns,
    /// Fair server: runtime per period, 0 = off (`debugfs sched/fair_server/cpuN/runtime`) or none yet.
    pub fair_server_runtime: Ns,
    /// Fair server: period.
    pub fair_server_period: Ns,
    /// Utilisation clamping.
    pub uclamp: Uclamp,
    /// `sysctl sched_util_clamp_min_rt_default`, 0..=1024.
    pub uclamp_min_rt_default: u32,
    /// Whether the governor sees a waking task's clamps.
    pub uclamp_order: UclampOrder,
    /// What a package is on a machine whose topology comes from a cpu-map.
    pub cpu_map_package: CpuMapPackage,
    /// `CONFIG_SCHED_CLUSTER`: a domain level for clusters below the last-level cache.
    pub sched_cluster: bool,
    /// How often a CPU tells a group of its load.
    pub tg_load_avg: TgLoadAvg,
    /// Group scheduling is compiled in: changes the rounding of `task_h_load` even without groups, and lets
    /// CFS leave a task that is picked again as it is, without which it starts another slice.
    pub fair_group_sched: bool,
    /// Timer slack of fair tasks, nanoseconds (`prctl(PR_SET_TIMERSLACK)`, default 50000).
    pub timer_slack: Ns,
    /// `vm.stat_interval`: how often each busy CPU's kworker wakes, nanoseconds; 0: there are none.
    pub stat_interval: Ns,
}

/// How often a CPU may change its contribution to a task group's `load_avg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TgLoadAvg {
    /// Whenever its load has changed by 1/64. Up to 6.6.
    Always,
    /// And at most once in a millisecond. 6.7 and later.
    OncePerMs,
}

/// Kernel preemption (`CONFIG_PREEMPT_*`, `preempt=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preempt {
    /// Kernel mode is never preempted.
    None,
    /// Kernel mode is preempted at explicit points only: as `None` here, where paths are atomic.
    Voluntary,
    /// Kernel mode is preempted at any interrupt.
    Full,
}

impl Preempt {
    /// Whether kernel mode is preempted (`CONFIG_PREEMPTION`, and not switched off at boot).
    pub fn preempts_kernel_mode(self) -> bool {
        self == Preempt::Full
    }
}

/// cpufreq governors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrequencyGovernor {
    /// From utilisation.
    Schedutil,
    /// Always the highest frequency.
    Performance,
    /// Always the lowest frequency.
    Powersave,
}

impl FrequencyGovernor {
    /// Whether frequencies follow utilisation, without which there is no EAS.
    pub fn is_schedutil(self) -> bool {
        self == FrequencyGovernor::Schedutil
    }
}

/// schedutil's tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedutil {
    /// `rate_limit_us`; `None`: the default of [`RateLimitDefault`].
    pub rate_limit_us: Option<u64>,
}

/// `rate_limit_us` without a setting, L being the driver's transition latency in microseconds
/// (`cpufreq_policy_transition_delay_us`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimitDefault {
    /// L · 1000, at most 10000; 1000 if L is 0. 4.14 to 6.8.
    LatencyTimes1000,
    /// L · 1000, at most 2000; 1000 if L is 0. 6.9 to 6.11.
    LatencyTimes1000Max2Ms,
    /// L · 1.5; 1000 if L is 0. 6.12.
    LatencyAndHalf,
}

/// From utilisation to a frequency (`effective_cpu_util`, `sugov_get_util`, `get_next_freq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveCpuUtil {
    /// Clamps, then DEADLINE and irq on top, then a quarter of headroom on everything, boost included.
    /// Of several CPUs the one with the largest share of its capacity counts. 5.0 to 6.7.
    HeadroomLast,
    /// A quarter of headroom on the actual utilisation, then floor and cap. The highest utilisation
    /// counts. 6.8 and later.
    ClampLast,
}

/// cpuidle governors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleGovernor {
    /// Timer events oriented.
    Teo,
    /// Correction factors and typical intervals.
    Menu,
    /// One state deeper after four long sleeps, one shallower after a short one.
    Ladder,
    /// Polls for a while that adapts, then halts; for guests.
    Haltpoll,
    /// Always the shallowest state, the tick may stop.
    Shallow,
}

/// Forms of teo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeoForm {
    /// With recent intercepts; asks for the sleep length first. 5.14 to 6.5.
    V5_14,
    /// With recent intercepts; asks late. 6.6 to 6.10.
    V6_6,
    /// Without; asks late, and looks at the timers also where state 0 is certain. 6.11 and later.
    V6_12,
}

/// Utilisation awareness of teo: what a CPU takes that is *utilised* (`sched_cpu_util()` above the
/// threshold) while it goes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeoUtil {
    /// Nobody looks. Up to 6.2, 6.11 and later, and 6.6.y and 6.10.y since the revert.
    Off,
    /// The shallowest enabled state, also one that polls; the counters do not learn from it. RFC of
    /// September 2022.
    Posted,
    /// Of two states the shallowest, of more the one below the choice, also one that polls; the counters do
    /// not learn. v2, October 2022.
    V2,
    /// State 0 in place of state 1 unless it polls; the counters do not learn. v3, October 2022.
    V3,
    /// As v3, but the counters learn from every sleep. v4, November 2022.
    V4,
    /// A state shallower, whichever was chosen, but none that polls. v6 and 6.3 to 6.10.
    V6_3,
    /// The number of the state times the share of the capacity that is unused; whatever is chosen before.
    /// Proposed in the discussion, never posted as a patch.
    Gradual,
}

/// Forms of menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MenuForm {
    /// Twelve buckets, I/O waiters count; asks for the sleep length first. 4.20 to 6.5.
    V5_18,
    /// Six buckets; asks only where the interval pattern leaves it open. 6.6 and later.
    V6_12,
}

/// What becomes of haltpoll's window when it shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltpollShrink {
    /// It is halved. Up to 6.1.
    Halved,
    /// It is halved, and closed below its first size. 6.12 (from 6.8 on, from memory).
    Closed,
}

/// Limits on the exit latency of idle states (PM QoS), microseconds; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmQos {
    /// For all CPUs (`/dev/cpu_dma_latency`).
    pub cpu_latency_us: Option<u32>,
    /// Of each CPU's device (`/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us`; 0 is "n/a"
    /// there).
    pub resume_latency_us: Option<u32>,
}

impl PmQos {
    /// What governors are told (`cpuidle_governor_latency_req`): the stricter limit, nanoseconds.
    ///
    /// ```
    /// use schedtwin_kernel::config::PmQos;
    ///
    /// let none = PmQos::default();
    /// assert_eq!(none.latency_req_ns(), 2_000_000_000_000);
    /// let both = PmQos { cpu_latency_us: Some(50), resume_latency_us: Some(20) };
    /// assert_eq!(both.latency_req_ns(), 20_000);
    /// ```
    pub fn latency_req_ns(&self) -> i64 {
        /// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`: 2000 s. That of a device is larger.
        const DEFAULT_US: u32 = 2_000_000_000;
        let all = self.cpu_latency_us.unwrap_or(DEFAULT_US);
        let own = self.resume_latency_us.unwrap_or(i32::MAX as u32);
        i64::from(all.min(own)) * 1000
    }
}

/// How the fair class divides time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairClass {
    /// The smallest virtual runtime runs; buddies and granularities. Before 6.6.
    Cfs,
    /// The earliest virtual deadline of those that are owed time runs. 6.6 and later (as of 6.12).
    Eevdf,
}

/// Tunables of CFS, nanoseconds, before scaling by the number of CPUs (`debugfs sched/*_ns`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfsTunables {
    /// `latency_ns`: the period in which everybody runs once; scaled.
    pub latency: Ns,
    /// `min_granularity_ns`: the shortest slice; scaled.
    pub min_granularity: Ns,
    /// `wakeup_granularity_ns`: the lead a wakee needs; scaled.
    pub wakeup_granularity: Ns,
    /// `idle_min_granularity_ns`: the shortest slice of an idle entity beside normal ones; not scaled.
    pub idle_min_granularity: Ns,
}

/// How long the running task may run before a tick preempts it (`check_preempt_tick()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdealRuntime {
    /// Its slice, which in a crowd of lighter tasks can be longer than the latency. Up to 6.2, 6.1.y.
    SchedSlice,
    /// Its slice, at most the latency. 6.3 to 6.5.
    AtMostLatency,
}

/// What util_est keeps of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilEstForm {
    /// The last utilisation and a moving average; the larger counts. 5.13 to 6.7.
    EnqueuedAndEwma,
    /// One number that rises at once and falls slowly. 6.8 and later.
    Single,
}

/// When a sleeping task's util_est is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilEstUpdate {
    /// With the utilisation as of this dequeue. Up to 6.11.
    AfterDequeue,
    /// With the utilisation of the last update before it. 6.12.
    BeforeDequeue,
}

/// What a new task's share of its queue's utilisation is computed with (`post_init_entity_util_avg()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitUtilWeight {
    /// The weight with its ten bits of fixed point, against a load without: on a queue with any load the
    /// share is all that may be had, half of what is left of the CPU. Up to 6.9.
    ScaledUp,
    /// The weight in the unit of the load. 6.10 and later.
    ScaledDown,
}

/// A sleeper's signals when it leaves its queue, whose clock stands still while its CPU idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrateSePeltLag {
    /// As of the queue's last update: it arrives as large as it fell asleep. Up to 5.19.
    Forgotten,
    /// The time since then is estimated, and they decay by it. 6.0 and later.
    Decayed,
}

/// Runnable boosting: contention (`runnable_avg` above `util_avg`) counts as utilisation for schedutil,
/// for EAS's highest utilisation and for the busiest queue of `migrate_util`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnableBoost {
    /// Up to 6.4.
    Off,
    /// util_est is raised too, which counts a waking task twice. As posted, and 6.5.0.
    WithUtilEst,
    /// 6.6 and later, and 6.5.y. A task that is placed comes and goes with its utilisation only.
    On,
    /// A task that is placed brings its own `runnable_avg`, or takes it away. 6.12.107 has it, 6.12.95 not yet.
    WithTask,
}

/// `find_energy_efficient_cpu()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindEnergyEfficientCpu {
    /// Saving must exceed 1/16 of the total; no spare capacity, no candidate. 5.14 to 5.19.
    Margin,
    /// No margin; how well a task fits comes first. 6.2 and later, 6.1.y.
    Fits,
}

/// `em_cpu_energy()` and the cost table behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmCpuEnergy {
    /// Cost = f_max · power / f; the state is found by frequency, after a quarter of headroom; no
    /// inefficient states are skipped by performance. Up to 6.8.
    ByFrequency,
    /// Cost = 10 · power / performance; the state is found by performance. 6.9 and later.
    ByPerformance,
}

/// `ttwu_queue_cond()`: the target activates the task itself, by interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtwuQueueCond {
    /// If the cache is not shared, or the task is just being switched out there. 5.8 to 5.19.
    NoSharedCacheOrOnCpu,
    /// If the cache is not shared, or the target has nothing to do. 6.0 and later.
    NoSharedCacheOrIdle,
}

/// Where a wakeup looks for an idle CPU on a machine with clusters (`select_idle_cpu()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectIdleCluster {
    /// In the last-level cache's domain, wherever the scan begins. Up to 6.7.
    WholeLlc,
    /// In the target's cluster first, then in the rest of the domain. 6.8 and later.
    ClusterFirst,
}

/// When a CPU that runs out of fair tasks looks for others (`balance_fair()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceFair {
    /// When no task of any class is runnable. Up to 6.11.
    NoTask,
    /// When no fair task is, whatever waits in higher classes. 6.12 and later.
    NoFairTask,
}

/// Who says that siblings share tasks out evenly (`update_sd_lb_stats()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferSibling {
    /// The domain below the one that is balanced. Up to 6.4, from memory.
    ChildDomain,
    /// The domain below the busiest group. 6.5 and later, from memory.
    BusiestGroup,
}

/// How many tasks more than its share the busiest group has (`sibling_imbalance()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiblingImbalance {
    /// The difference of the numbers of tasks. Up to 6.5.
    Difference,
    /// What is beyond the share of its cores, and nothing for a busy CPU. 6.6 and later.
    ByCores,
}

/// A group of bigger CPUs without waiting tasks, where tasks run faster (`update_sd_pick_busiest()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickBusiestBigger {
    /// Is left alone if it is of the same type as the busiest so far; the first fully busy one is pulled
    /// from. 5.14 and later, but for the releases of the other arm.
    AmongEqualTypes,
    /// Is left alone in any case. 6.1.192, 6.12.117 and 7.3; not 6.12.95.
    Always,
}

/// Which of several fully busy groups is the busiest (`update_sd_pick_busiest()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickBusiestFull {
    /// The first. Up to 6.4, from memory.
    First,
    /// The last. 6.5 and later, from memory.
    Last,
}

/// Which of several groups with equally large misfits is the busiest (`update_sd_pick_busiest()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickBusiestMisfit {
    /// The last. Up to 6.8, from memory.
    Last,
    /// The first. 6.9 and later, from memory.
    First,
}

/// What it means that a misfit could not be pulled (`sched_balance_rq()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisfitFailure {
    /// As for other tasks, `nr_balance_failed` grows, and the interval doubles without a queue to pull from.
    /// Up to 6.9, from memory.
    Counted,
    /// Neither. 6.10 and later, from memory.
    Ignored,
}

/// When a running misfit is a reason to kick an idle CPU (`check_misfit_status()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMisfitStatus {
    /// If there is a bigger CPU, or the capacity of its own is reduced. Up to 6.9, from memory.
    IfItCanBeHelped,
    /// Always. 6.10 and later, from memory.
    AnyMisfit,
}

/// `update_misfit_status()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisfitStatus {
    /// Whoever does not fit. Up to 6.8.
    AnyTask,
    /// Unless its affinity allows no larger CPU (`max_allowed_capacity`). 6.9 and later.
    UnlessOnLargestAllowed,
}

/// What keeps RT tasks from starving the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtBandwidth {
    /// RT queues are throttled beyond `rt_runtime` per `rt_period`. Up to 6.11.
    Throttling,
    /// The fair server; `rt_runtime` bounds DEADLINE admission only. 6.12.
    FairServer,
}

/// `rt_task()`, asked of the running task when an RT task is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtTask {
    /// Deadline tasks are meant, too: the wakee looks for another CPU. Up to 6.11.
    OrDeadline,
    /// RT alone: the wakee waits behind schedutil's thread. 6.12 and later.
    RtOnly,
}

/// Utilisation clamping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uclamp {
    /// `CONFIG_UCLAMP_TASK=n`.
    CompiledOut,
    /// Nobody has used a clamp since boot (static key `sched_uclamp_used`): nothing is clamped, and
    /// before 6.8 a runnable RT task asks for the highest frequency outright.
    KeyOff,
    /// Clamps are in use.
    On,
}

/// When a task's clamps join its run queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UclampOrder {
    /// Before the class enqueues it, so the governor sees them. Up to 6.11 (and from 6.16).
    BeforeEnqueue,
    /// Afterwards: the governor runs with the clamps of the others. 6.12 to 6.15.
    AfterEnqueue,
}

/// What a package is where firmware describes the topology by a cpu-map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuMapPackage {
    /// Each cluster that holds cores: phones get "phantom" domains. Up to 5.19.
    LeafCluster,
    /// Each socket. 6.0 and later.
    Socket,
}

/// Scheduler features (`debugfs sched/features`), named as there. A feature that a release has not is
/// false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// EEVDF `PLACE_LAG`: a task keeps its lag over a sleep.
    pub place_lag: bool,
    /// EEVDF `PLACE_DEADLINE_INITIAL`: a forked task starts with half a slice.
    pub place_deadline_initial: bool,
    /// EEVDF `PLACE_REL_DEADLINE`: a migrated task keeps its relative deadline.
    pub place_rel_deadline: bool,
    /// EEVDF `RUN_TO_PARITY`: a task keeps the CPU until its slice is used up.
    pub run_to_parity: bool,
    /// EEVDF `PREEMPT_SHORT`: a shorter slice may break that protection.
    pub preempt_short: bool,
    /// EEVDF `DELAY_DEQUEUE`: an ineligible sleeper stays queued.
    pub delay_dequeue: bool,
    /// EEVDF `DELAY_ZERO`: and loses positive lag when it leaves.
    pub delay_zero: bool,
    /// CFS `GENTLE_FAIR_SLEEPERS`: a sleeper gets half a latency of credit only.
    pub gentle_fair_sleepers: bool,
    /// CFS `START_DEBIT`: a forked task waits for a slice first.
    pub start_debit: bool,
    /// CFS `NEXT_BUDDY`: the last wakee is preferred even if it did not preempt.
    pub next_buddy: bool,
    /// CFS `LAST_BUDDY`: a preempted task is preferred afterwards.
    pub last_buddy: bool,
    /// CFS `ALT_PERIOD`: the period counts the tasks of the whole hierarchy.
    pub alt_period: bool,
    /// CFS `BASE_SLICE`: no slice is shorter than min_granularity.
    pub base_slice: bool,
    /// `WAKEUP_PREEMPTION`.
    pub wakeup_preemption: bool,
    /// `CACHE_HOT_BUDDY`: a buddy is not balanced away.
    pub cache_hot_buddy: bool,
    /// `TTWU_QUEUE`: remote wakeups through the wake list.
    pub ttwu_queue: bool,
    /// `SIS_PROP`: limit of the idle-CPU scan by idle time (5.18; present and off in 6.1).
    pub sis_prop: bool,
    /// `SIS_UTIL`: limit of the idle-CPU scan by utilisation (6.0 and later).
    pub sis_util: bool,
    /// `NI_RANDOM`: newidle balancing with a success-dependent probability (6.12.95; absent in
    /// 6.12.0).
    pub ni_random: bool,
    /// `WA_IDLE`.
    pub wa_idle: bool,
    /// `WA_WEIGHT`.
    pub wa_weight: bool,
    /// `WA_BIAS`.
    pub wa_bias: bool,
    /// `UTIL_EST`.
    pub util_est: bool,
    /// `UTIL_EST_FASTUP`, before 6.8: util_est rises at once.
    pub util_est_fastup: bool,
    /// `NONTASK_CAPACITY`.
    pub nontask_capacity: bool,
    /// `RT_PUSH_IPI`.
    pub rt_push_ipi: bool,
}

impl Config {
    /// Length of a tick, nanoseconds (`TICK_NSEC`).
    pub fn tick_nsec(&self) -> Ns {
        (1_000_000_000 + self.hz as u64 / 2) / self.hz as u64
    }

    /// Linux 6.12.95 as Debian's and arm64 defaults have it; the reference for tests.
    ///
    /// ```
    /// let config = schedtwin_kernel::config::Config::linux_6_12();
    /// assert_eq!(config.tick_nsec(), 4_000_000);
    /// ```
    pub fn linux_6_12() -> Config {
        Config {
            hz: 250,
            preempt: Preempt::Full,
            irq_time_accounting: true,
            cpufreq: FrequencyGovernor::Schedutil,
            schedutil: Schedutil { rate_limit_us: None },
            rate_limit_default: RateLimitDefault::LatencyAndHalf,
            effective_cpu_util: EffectiveCpuUtil::ClampLast,
            cpuidle: IdleGovernor::Teo,
            teo: TeoForm::V6_12,
            teo_util: TeoUtil::Off,
            teo_util_threshold_shift: 6,
            menu: MenuForm::V6_12,
            haltpoll_shrink: HaltpollShrink::Closed,
            cpuidle_disable: Vec::new(),
            pm_qos: PmQos::default(),
            fair: FairClass::Eevdf,
            cfs: CfsTunables::default(),
            ideal_runtime: IdealRuntime::SchedSlice,
            base_slice_unscaled: 700_000,
            features: Features {
                place_lag: true,
                place_deadline_initial: true,
                place_rel_deadline: true,
                run_to_parity: true,
                preempt_short: true,
                delay_dequeue: true,
                delay_zero: true,
                wakeup_preemption: true,
                cache_hot_buddy: true,
                ttwu_queue: true,
                sis_util: true,
                ni_random: true,
                wa_idle: true,
                wa_weight: true,
                wa_bias: true,
                util_est: true,
                nontask_capacity: true,
                rt_push_ipi: true,
                ..Features::default()
            },
            migration_cost: 500_000,
            nr_migrate: 32,
            util_est: UtilEstForm::Single,
            util_est_update: UtilEstUpdate::BeforeDequeue,
            init_util_weight: InitUtilWeight::ScaledDown,
            tg_load_avg: TgLoadAvg::OncePerMs,
            migrate_se_pelt_lag: MigrateSePeltLag::Decayed,
            runnable_boost: RunnableBoost::On,
            energy_aware: true,
            find_energy_efficient_cpu: FindEnergyEfficientCpu::Fits,
            em_cpu_energy: EmCpuEnergy::ByPerformance,
            ttwu_queue_cond: TtwuQueueCond::NoSharedCacheOrIdle,
            select_idle_cluster: SelectIdleCluster::ClusterFirst,
            balance_fair: BalanceFair::NoFairTask,
            prefer_sibling: PreferSibling::BusiestGroup,
            sibling_imbalance: SiblingImbalance::ByCores,
            pick_busiest_bigger: PickBusiestBigger::AmongEqualTypes,
            pick_busiest_full: PickBusiestFull::Last,
            pick_busiest_misfit: PickBusiestMisfit::First,
            misfit_failure: MisfitFailure::Ignored,
            check_misfit_status: CheckMisfitStatus::AnyMisfit,
            misfit_status: MisfitStatus::UnlessOnLargestAllowed,
            rt_bandwidth: RtBandwidth::FairServer,
            rt_task: RtTask::RtOnly,
            rt_runtime: Some(950_000_000),
            rt_period: 1_000_000_000,
            fair_server_runtime: 50_000_000,
            fair_server_period: 1_000_000_000,
            uclamp: Uclamp::KeyOff,
            uclamp_min_rt_default: 1024,
            uclamp_order: UclampOrder::AfterEnqueue,
            cpu_map_package: CpuMapPackage::Socket,
            sched_cluster: false,
            fair_group_sched: false,
            timer_slack: 50_000,
            stat_interval: 0,
        }
    }
}
