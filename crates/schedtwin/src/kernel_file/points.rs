//! The variation points as kernel files spell them.
//!
//! A [`Point`] joins an enum of `schedtwin_kernel::config` with its key in a kernel file, the word for each
//! arm, and the releases that have it. Kernel files are read by this list, and `schedtwin list points`
//! prints it.

use schedtwin_input::{Diagnostics, Located, TableReader, did_you_mean};
use schedtwin_kernel::config::{
    BalanceFair, CheckMisfitStatus, CpuMapPackage, EffectiveCpuUtil, EmCpuEnergy, FairClass,
    FindEnergyEfficientCpu, FrequencyGovernor, HaltpollShrink, IdealRuntime, IdleGovernor,
    InitUtilWeight, MenuForm, MigrateSePeltLag, MisfitFailure, MisfitStatus, PickBusiestBigger,
    PickBusiestFull, PickBusiestMisfit, Preempt, PreferSibling, RateLimitDefault, RtBandwidth,
    RtTask, RunnableBoost, SelectIdleCluster, SiblingImbalance, TeoForm, TeoUtil, TgLoadAvg,
    TtwuQueueCond, Uclamp, UclampOrder, UtilEstForm, UtilEstUpdate,
};

/// One of the ways in which a point can be.
pub(super) struct Arm<T: 'static> {
    value: T,
    word: &'static str,
    releases: &'static str,
    means: &'static str,
}

/// A variation point.
pub(super) struct Point<T: 'static> {
    /// Name of the enum.
    type_name: &'static str,
    /// Key in a kernel file.
    key: &'static str,
    /// What a kernel engineer knows it by.
    known_by: &'static str,
    arms: &'static [Arm<T>],
}

/// A variation point in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointDescription {
    /// Name of the enum in `schedtwin_kernel::config`.
    pub type_name: &'static str,
    /// Key in a kernel file.
    pub key: &'static str,
    /// What a kernel engineer knows it by.
    pub known_by: &'static str,
    /// Per arm: its word, the releases that have it, what it means.
    pub arms: Vec<(&'static str, &'static str, &'static str)>,
}

macro_rules! points {
    ($($name:ident: $type:ident = $key:literal, $known:literal {
        $($arm:ident = $word:literal, $releases:literal, $means:literal;)*
    })*) => {
        $(pub(super) const $name: Point<$type> = Point {
            type_name: stringify!($type),
            key: $key,
            known_by: $known,
            arms: &[$(Arm { value: $type::$arm, word: $word, releases: $releases, means: $means }),*],
        };)*

        /// All variation points, in the order of a kernel file.
        ///
        /// ```
        /// let points = schedtwin::kernel_file::variation_points();
        /// let boost = points.iter().find(|point| point.key == "runnable_boost").unwrap();
        /// assert_eq!(boost.arms.len(), 4);
        /// ```
        pub fn variation_points() -> Vec<PointDescription> {
            vec![$($name.describe()),*]
        }
    };
}

points! {
    PREEMPT: Preempt = "preempt", "CONFIG_PREEMPT_*, preempt=" {
        None = "none", "any", "kernel mode is never preempted";
        Voluntary = "voluntary", "any", "kernel mode is preempted at explicit points";
        Full = "full", "any", "kernel mode is preempted at any interrupt";
    }
    CPUFREQ: FrequencyGovernor = "cpufreq",
        "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor" {
        Schedutil = "schedutil", "4.7 and later", "frequency from utilisation";
        Performance = "performance", "any", "always the highest frequency";
        Powersave = "powersave", "any", "always the lowest frequency";
    }
    CPUIDLE: IdleGovernor = "cpuidle", "/sys/devices/system/cpu/cpuidle/current_governor" {
        Teo = "teo", "5.1 and later", "timer events oriented";
        Menu = "menu", "any", "correction factors and typical intervals";
        Ladder = "ladder", "any", "one state deeper after long sleeps, shallower after a short one";
        Haltpoll = "haltpoll", "5.4 and later, in guests", "polls for a while that adapts, then halts";
        Shallow = "shallow", "none (a reference)", "always the shallowest state";
    }
    RATE_LIMIT_DEFAULT: RateLimitDefault = "schedutil.rate_limit_default",
        "cpufreq_policy_transition_delay_us()" {
        LatencyTimes1000 = "latency-times-1000", "4.14 to 6.8",
            "1000 times the driver's latency, at most 10 ms";
        LatencyTimes1000Max2Ms = "latency-times-1000-max-2ms", "6.9 to 6.11",
            "1000 times the driver's latency, at most 2 ms";
        LatencyAndHalf = "latency-and-half", "6.12", "1.5 times the driver's latency";
    }
    EFFECTIVE_CPU_UTIL: EffectiveCpuUtil = "effective_cpu_util",
        "effective_cpu_util(), sugov_get_util(), get_next_freq()" {
        HeadroomLast = "headroom-last", "5.0 to 6.7", "clamps first, then 25 % on everything";
        ClampLast = "clamp-last", "6.8 and later", "25 % on the utilisation, then floor and cap";
    }
    TEO: TeoForm = "teo", "drivers/cpuidle/governors/teo.c" {
        V5_14 = "5.14", "5.14 to 6.5", "recent intercepts; asks for the sleep length first";
        V6_6 = "6.6", "6.6 to 6.10", "recent intercepts; asks for the sleep length late";
        V6_12 = "6.12", "6.11 and later", "all intercepts alike; asks for the sleep length late";
    }
    TEO_UTIL: TeoUtil = "teo_util", "teo_cpu_is_utilized()" {
        Off = "off", "up to 6.2, 6.11 and later; 6.6.y, 6.10.y", "teo does not look at utilisation";
        Posted = "posted", "none (RFC, September 2022)",
            "a utilised CPU takes the first state, and the counters do not learn from it";
        V2 = "v2", "none (October 2022)", "the next state below; of two the first; nothing is learnt";
        V3 = "v3", "none (October 2022)", "state 0 for state 1, but no polling; nothing is learnt";
        V4 = "v4", "none (November 2022)", "as v3, and the counters learn";
        V6_3 = "6.3", "6.3 to 6.10", "a state shallower, but no polling; the counters learn";
        Gradual = "gradual", "none (proposed in the discussion)",
            "the state's number times the share of the capacity that is unused";
    }
    MENU: MenuForm = "menu", "drivers/cpuidle/governors/menu.c" {
        V5_18 = "5.18", "4.20 to 6.5", "I/O waiters count; asks for the sleep length first";
        V6_12 = "6.12", "6.6 and later", "typical interval first, sleep length only if needed";
    }
    HALTPOLL_SHRINK: HaltpollShrink = "haltpoll_shrink", "adjust_poll_limit()" {
        Halved = "halved", "up to 6.1", "the window of haltpoll is halved";
        Closed = "closed", "6.12", "and closed if it falls below its first size";
    }
    FAIR: FairClass = "fair", "kernel/sched/fair.c" {
        Cfs = "cfs", "up to 6.5", "the smallest virtual runtime runs";
        Eevdf = "eevdf", "6.6 and later (as of 6.12)", "the earliest eligible virtual deadline runs";
    }
    IDEAL_RUNTIME: IdealRuntime = "cfs.ideal_runtime", "check_preempt_tick()" {
        SchedSlice = "sched-slice", "up to 6.2, 6.1.y", "a tick preempts after the slice";
        AtMostLatency = "at-most-latency", "6.3 to 6.5", "and after the latency at the latest";
    }
    UTIL_EST: UtilEstForm = "util_est", "struct sched_avg, util_est_update()" {
        EnqueuedAndEwma = "enqueued-and-ewma", "5.13 to 6.7",
            "last utilisation and moving average";
        Single = "single", "6.8 and later", "rises at once, falls slowly";
    }
    UTIL_EST_UPDATE: UtilEstUpdate = "util_est_update", "dequeue_task_fair()" {
        AfterDequeue = "after-dequeue", "up to 6.11", "with the utilisation as of this dequeue";
        BeforeDequeue = "before-dequeue", "6.12", "with the utilisation of the update before it";
    }
    INIT_UTIL_WEIGHT: InitUtilWeight = "init_util_weight", "post_init_entity_util_avg()" {
        ScaledUp = "scaled-up", "up to 6.9", "a new task gets half of what is left of its CPU";
        ScaledDown = "scaled-down", "6.10 and later", "a new task gets its share of the queue's";
    }
    TG_LOAD_AVG: TgLoadAvg = "tg_load_avg", "update_tg_load_avg()" {
        Always = "always", "up to 6.6", "a CPU tells a group of each change of its load by 1/64";
        OncePerMs = "once-per-ms", "6.7 and later", "and at most once in a millisecond";
    }
    MIGRATE_SE_PELT_LAG: MigrateSePeltLag = "migrate_se_pelt_lag", "migrate_task_rq_fair()" {
        Forgotten = "forgotten", "up to 5.19",
            "a task woken away from an idle CPU is as large as it was";
        Decayed = "decayed", "6.0 and later", "it has decayed while it slept";
    }
    RUNNABLE_BOOST: RunnableBoost = "runnable_boost", "cpu_util(.., boost)" {
        Off = "off", "up to 6.4", "contention is not utilisation";
        WithUtilEst = "with-util-est", "6.5.0, and as posted",
            "runnable_avg raises util_avg and util_est";
        On = "on", "6.5.y, 6.6 and later", "runnable_avg raises util_avg";
        WithTask = "with-task", "6.12.107, not yet 6.12.95",
            "so it does, with or without the runnable_avg of the task that is placed";
    }
    FIND_ENERGY_EFFICIENT_CPU: FindEnergyEfficientCpu = "find_energy_efficient_cpu",
        "find_energy_efficient_cpu()" {
        Margin = "margin", "5.14 to 5.19", "savings must exceed 1/16 of the total";
        Fits = "fits", "6.1.y, 6.2 and later", "fitting first, then the lowest energy";
    }
    EM_CPU_ENERGY: EmCpuEnergy = "em_cpu_energy", "em_cpu_energy()" {
        ByFrequency = "by-frequency", "up to 6.8", "state by frequency, after 25 % headroom";
        ByPerformance = "by-performance", "6.9 and later", "state by performance";
    }
    TTWU_QUEUE_COND: TtwuQueueCond = "ttwu_queue_cond", "ttwu_queue_cond()" {
        NoSharedCacheOrOnCpu = "no-shared-cache-or-on-cpu", "5.8 to 5.19",
            "wake list if the cache is not shared, or the task is being switched out";
        NoSharedCacheOrIdle = "no-shared-cache-or-idle", "6.0 and later",
            "wake list if the cache is not shared, or the target is idle";
    }
    SELECT_IDLE_CLUSTER: SelectIdleCluster = "select_idle_cluster", "select_idle_cpu()" {
        WholeLlc = "whole-llc", "up to 6.7", "a wakeup scans the cache domain from the target on";
        ClusterFirst = "cluster-first", "6.8 and later",
            "it scans the target's cluster first, then the rest";
    }
    BALANCE_FAIR: BalanceFair = "balance_fair", "balance_fair()" {
        NoTask = "no-task", "up to 6.11", "a CPU looks for fair tasks when no task is runnable";
        NoFairTask = "no-fair-task", "6.12 and later",
            "it looks also while tasks of a higher class wait for it";
    }
    PREFER_SIBLING: PreferSibling = "prefer_sibling", "update_sd_lb_stats()" {
        ChildDomain = "child-domain", "up to 6.4 [from memory]",
            "the domain below says that siblings share tasks out evenly";
        BusiestGroup = "busiest-group", "6.5 and later [from memory]", "the busiest group says so";
    }
    SIBLING_IMBALANCE: SiblingImbalance = "sibling_imbalance", "sibling_imbalance()" {
        Difference = "difference", "up to 6.5", "the difference of the numbers of tasks";
        ByCores = "by-cores", "6.6 and later", "in proportion to the cores; none for a busy CPU";
    }
    PICK_BUSIEST_BIGGER: PickBusiestBigger = "pick_busiest_bigger", "update_sd_pick_busiest()" {
        AmongEqualTypes = "among-equal-types", "5.14 and later, 6.12.95",
            "bigger CPUs without waiting tasks are spared if the busiest so far is of their type";
        Always = "always", "6.1.192, 6.12.117, 7.3", "they are spared in any case";
    }
    PICK_BUSIEST_FULL: PickBusiestFull = "pick_busiest_full", "update_sd_pick_busiest()" {
        First = "first", "up to 6.4 [from memory]", "the first fully busy group is the busiest";
        Last = "last", "6.5 and later [from memory]", "the last one is";
    }
    PICK_BUSIEST_MISFIT: PickBusiestMisfit = "pick_busiest_misfit", "update_sd_pick_busiest()" {
        Last = "last", "up to 6.8 [from memory]", "of equal misfits the last group is the busiest";
        First = "first", "6.9 and later [from memory]", "the first one is";
    }
    MISFIT_FAILURE: MisfitFailure = "misfit_failure", "sched_balance_rq(): nr_balance_failed" {
        Counted = "counted", "up to 6.9 [from memory]",
            "a misfit that stays where it is counts as a failure, and doubles the interval";
        Ignored = "ignored", "6.10 and later [from memory]", "it does neither";
    }
    CHECK_MISFIT_STATUS: CheckMisfitStatus = "check_misfit_status", "check_misfit_status()" {
        IfItCanBeHelped = "if-it-can-be-helped", "up to 6.9 [from memory]",
            "a misfit on the biggest CPU kicks an idle one only if that CPU's capacity is reduced";
        AnyMisfit = "any-misfit", "6.10 and later [from memory]", "it always does";
    }
    MISFIT_STATUS: MisfitStatus = "misfit_status", "update_misfit_status()" {
        AnyTask = "any-task", "up to 6.8", "whoever does not fit";
        UnlessOnLargestAllowed = "unless-on-largest-allowed", "6.9 and later",
            "unless it may use no larger CPU";
    }
    RT_BANDWIDTH: RtBandwidth = "rt_bandwidth", "rt.c; fair_server" {
        Throttling = "throttling", "up to 6.11", "RT queues are throttled";
        FairServer = "fair-server", "6.12", "a DEADLINE server runs fair tasks";
    }
    RT_TASK: RtTask = "rt_task", "rt_task() in select_task_rq_rt()" {
        OrDeadline = "or-deadline", "up to 6.11", "an RT wakee avoids a CPU that runs a deadline task";
        RtOnly = "rt-only", "6.12 and later", "it waits there";
    }
    UCLAMP: Uclamp = "uclamp", "CONFIG_UCLAMP_TASK; static key sched_uclamp_used" {
        CompiledOut = "compiled-out", "any", "no clamps in the build";
        KeyOff = "key-off", "5.3 and later", "nobody has used a clamp since boot";
        On = "on", "5.3 and later", "clamps are in use";
    }
    UCLAMP_ORDER: UclampOrder = "uclamp_order", "enqueue_task()" {
        BeforeEnqueue = "before-enqueue", "up to 6.11; from 6.16",
            "the governor sees a waking task's clamps";
        AfterEnqueue = "after-enqueue", "6.12 to 6.15", "it sees those of the others";
    }
    CPU_MAP_PACKAGE: CpuMapPackage = "cpu_map_package", "drivers/base/arch_topology.c" {
        LeafCluster = "leaf-cluster", "up to 5.19", "each cluster of the cpu-map is a package";
        Socket = "socket", "6.0 and later", "each socket is a package";
    }
}

impl<T: Copy> Point<T> {
    fn describe(&self) -> PointDescription {
        PointDescription {
            type_name: self.type_name,
            key: self.key,
            known_by: self.known_by,
            arms: self.arms.iter().map(|arm| (arm.word, arm.releases, arm.means)).collect(),
        }
    }

    /// Reads the point from the table that holds it.
    pub(super) fn read(&self, reader: &mut TableReader<'_>, faults: &mut Diagnostics) -> Option<T> {
        let key = self.key.rsplit('.').next().expect("a key has a last part");
        let found: Located<String> = reader.required(key, faults)?;
        if let Some(arm) = self.arms.iter().find(|arm| arm.word == found.value) {
            return Some(arm.value);
        }
        let all: Vec<&str> = self.arms.iter().map(|arm| arm.word).collect();
        let help = match did_you_mean(&found.value, all.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? known: {}", all.join(", ")),
            None => format!("known: {}", all.join(", ")),
        };
        let message = format!("`{}` cannot be `{}`", self.key, found.value);
        faults.push_at(&found.at, message, Some(help));
        None
    }
}

/// Whether a kernel file has the table `[cfs]` rather than `[eevdf]`.
pub(super) fn is_cfs(fair: FairClass) -> bool {
    fair == FairClass::Cfs
}

/// Whether a kernel file has the table `[fair_server]`.
pub(super) fn has_fair_server(rt_bandwidth: RtBandwidth) -> bool {
    rt_bandwidth == RtBandwidth::FairServer
}

/// Whether a form of teo can be told to look at utilisation in this way.
pub(super) fn takes_util(teo: TeoForm, util: TeoUtil) -> bool {
    match teo {
        TeoForm::V5_14 => true,
        TeoForm::V6_6 => matches!(util, TeoUtil::Off | TeoUtil::V6_3 | TeoUtil::Gradual),
        TeoForm::V6_12 => matches!(util, TeoUtil::Off | TeoUtil::Gradual),
    }
}
