//! The kernel's configuration: variation points and tunables.
//!
//! A **variation point** is an enum (or a feature flag) whose doc names the releases of each arm and
//! which is matched in exactly one place. No code compares release numbers; a kernel file sets every
//! point, without defaults, and a patch overlays points.

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
    /// Idle governor.
    pub cpuidle: IdleGovernor,
    /// `debugfs sched/features`.
    pub features: Features,
    /// `debugfs sched/base_slice_ns` before scaling: 700000 (6.12.95), 750000 (6.6 to 6.12.0).
    pub base_slice_unscaled: Ns,
    /// `sysctl sched_migration_cost_ns`.
    pub migration_cost: Ns,
    /// `debugfs sched/nr_migrate`.
    pub nr_migrate: u32,
    /// Whether the kernel is willing to use EAS (`sysctl sched_energy_aware`).
    pub energy_aware: bool,
    /// Fair server: runtime per period, 0 = off (`debugfs sched/fair_server/cpuN/runtime`).
    pub fair_server_runtime: Ns,
    /// Fair server: period.
    pub fair_server_period: Ns,
    /// Whether runnable_avg boosts the CPU utilisation of schedutil, of EAS's highest utilisation
    /// and of the busiest-queue choice. Off: before 6.5. On: 6.5 and later (form without boosted
    /// util_est, 6.6).
    pub runnable_boost: bool,
    /// Group scheduling is compiled in: changes the rounding of `task_h_load` even without groups.
    pub fair_group_sched: bool,
    /// Timer slack of fair tasks, nanoseconds (`prctl(PR_SET_TIMERSLACK)`, default 50000).
    pub timer_slack: Ns,
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

/// cpufreq governors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrequencyGovernor {
    /// schedutil as of 6.12.
    Schedutil,
    /// Always the highest frequency.
    Performance,
    /// Always the lowest frequency.
    Powersave,
}

/// schedutil's tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedutil {
    /// `rate_limit_us`; `None`: from the driver's transition latency (6.10 and later: latency × 1.5).
    pub rate_limit_us: Option<u64>,
}

/// cpuidle governors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleGovernor {
    /// teo as of 6.12.
    Teo,
    /// Always the shallowest state, the tick may stop.
    Shallow,
}

/// Scheduler features (`debugfs sched/features`), named as there. Values of 6.12 unless noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `PLACE_LAG`: a task keeps its lag over a sleep.
    pub place_lag: bool,
    /// `PLACE_DEADLINE_INITIAL`: a forked task starts with half a slice.
    pub place_deadline_initial: bool,
    /// `PLACE_REL_DEADLINE`: a migrated task keeps its relative deadline.
    pub place_rel_deadline: bool,
    /// `RUN_TO_PARITY`: a task keeps the CPU until its slice is used up.
    pub run_to_parity: bool,
    /// `PREEMPT_SHORT`: a shorter slice may break that protection.
    pub preempt_short: bool,
    /// `DELAY_DEQUEUE`: an ineligible sleeper stays queued.
    pub delay_dequeue: bool,
    /// `DELAY_ZERO`: and loses positive lag when it leaves.
    pub delay_zero: bool,
    /// `WAKEUP_PREEMPTION`.
    pub wakeup_preemption: bool,
    /// `TTWU_QUEUE`: remote wakeups through the wake list (form of 5.20 and later).
    pub ttwu_queue: bool,
    /// `SIS_UTIL`: limit of the idle-CPU scan by utilisation.
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
    /// `NONTASK_CAPACITY`.
    pub nontask_capacity: bool,
    /// `CACHE_HOT_BUDDY` and `PICK_BUDDY` concern task groups and `yield_to` only.
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
            cpuidle: IdleGovernor::Teo,
            features: Features {
                place_lag: true,
                place_deadline_initial: true,
                place_rel_deadline: true,
                run_to_parity: true,
                preempt_short: true,
                delay_dequeue: true,
                delay_zero: true,
                wakeup_preemption: true,
                ttwu_queue: true,
                sis_util: true,
                ni_random: true,
                wa_idle: true,
                wa_weight: true,
                wa_bias: true,
                util_est: true,
                nontask_capacity: true,
                rt_push_ipi: true,
            },
            base_slice_unscaled: 700_000,
            migration_cost: 500_000,
            nr_migrate: 32,
            energy_aware: true,
            fair_server_runtime: 50_000_000,
            fair_server_period: 1_000_000_000,
            runnable_boost: true,
            fair_group_sched: false,
            timer_slack: 50_000,
        }
    }
}
