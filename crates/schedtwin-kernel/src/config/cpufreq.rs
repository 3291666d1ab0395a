// SPDX-License-Identifier: GPL-2.0-or-later
//! Frequencies: governors, schedutil, the energy model.

macro_rules! cpufreq {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Whether `cpufreq` moves frequencies by itself, and how.
        cpufreq: choice FrequencyGovernor {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor";
            /// From utilisation.
            Schedutil = "schedutil", "4.7 and later";
            /// Always the highest frequency.
            Performance = "performance", "any";
            /// Always the lowest frequency.
            Powersave = "powersave", "any";
            /// From the load of the last period: the highest frequency above a threshold, else in proportion.
            Ondemand = "ondemand", "any";
            /// From the load of the last period, in steps.
            Conservative = "conservative", "any";
            /// What user space has set.
            Userspace = "userspace", "any";
        }
        /// ondemand, conservative: how long between two samples; 0: two ticks, or the driver's transition delay if that is longer.
        dbs_sampling_rate_us: integer u32 {
            key "dbs.sampling_rate_us";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/sampling_rate";
            range 0..=10_000_000 us;
            only FrequencyGovernor in [Ondemand, Conservative] else 0;
            unnamed 0;
        }
        /// The load in percent above which they go up; 0: 95 of ondemand, 80 of conservative.
        dbs_up_threshold: integer u32 {
            key "dbs.up_threshold";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/up_threshold";
            range 0..=100;
            only FrequencyGovernor in [Ondemand, Conservative] else 0;
            unnamed 0;
        }
        /// So many samples at the top (ondemand) or below the threshold (conservative) count as one on the way down.
        dbs_sampling_down_factor: integer u32 {
            key "dbs.sampling_down_factor";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/sampling_down_factor";
            range 1..=100_000;
            only FrequencyGovernor in [Ondemand, Conservative] else 1;
            unnamed 1;
        }
        /// The load in percent below which conservative goes down.
        dbs_down_threshold: integer u32 {
            key "dbs.down_threshold";
            linux "/sys/devices/system/cpu/cpufreq/conservative/down_threshold";
            range 1..=100;
            only FrequencyGovernor in [Conservative] else 20;
            unnamed 20;
        }
        /// conservative's step in percent of the highest frequency; 0: the frequency stays.
        dbs_freq_step: integer u32 {
            key "dbs.freq_step";
            linux "/sys/devices/system/cpu/cpufreq/conservative/freq_step";
            range 0..=100;
            only FrequencyGovernor in [Conservative] else 5;
            unnamed 5;
        }
        /// conservative: when it makes up for the periods that a domain slept through, with that many steps down.
        deferred_steps: choice DeferredSteps {
            key "dbs.deferred_steps";
            linux "cs_dbs_update()";
            unnamed BelowThreshold;
            /// Whatever the load is.
            AtAnyLoad = "at-any-load", "6.1.192, 6.18.y";
            /// When the load of the sample is below the threshold at which it goes down.
            BelowThreshold = "below-threshold", "6.12.117, 7.3";
        }
        /// userspace: the frequency in kHz; the lowest of a domain that is not below it is taken.
        scaling_setspeed: integer u32 {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_setspeed";
            range 0..=100_000_000;
            only FrequencyGovernor in [Userspace] else 0;
            unnamed 0;
        }
        /// Who stands between the governor and the clock, or decides itself.
        scaling_driver: choice CpufreqDriver {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver";
            unnamed Machine;
            /// The machine's own: it takes frequencies of the machine's table.
            Machine = "machine", "any";
            /// intel_pstate in active mode: the driver decides, from how busy the CPU's counters say that it was. Its powersave
            /// algorithm stands behind every governor but performance.
            IntelPstate = "intel_pstate", "4.15 and later; x86 whose CPUs have clocks of their own";
            /// intel_pstate in passive mode: it takes any frequency in steps of 100 MHz from a governor.
            IntelCpufreq = "intel_cpufreq", "4.14 and later; x86 whose CPUs have clocks of their own";
            /// amd-pstate in passive mode: it takes any performance in 255 steps from a governor, from schedutil as such.
            AmdPstate = "amd-pstate", "5.17 and later; x86 whose CPUs have clocks of their own";
            /// amd-pstate in active mode: the processor chooses within limits, by the preference.
            AmdPstateEpp = "amd-pstate-epp", "6.3 and later; x86 whose CPUs have clocks of their own";
        }
        /// The processor takes hints (HWP): with intel_cpufreq schedutil asks for performance as such, with intel_pstate the processor
        /// chooses within limits, by the preference.
        hwp: switch {
            linux "intel_pstate=no_hwp";
            unnamed false;
        }
        /// A processor that chooses itself: its preference between performance (0) and energy (255).
        epp: integer u32 {
            key "energy_performance_preference";
            linux "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference";
            range 0..=255;
            only CpufreqDriver in [IntelPstate, AmdPstateEpp] else 128;
            unnamed 128;
        }
        /// intel_pstate: at most this percentage of the highest frequency.
        pstate_max_perf_pct: integer u32 {
            key "intel_pstate.max_perf_pct";
            linux "/sys/devices/system/cpu/intel_pstate/max_perf_pct";
            range 1..=100;
            only CpufreqDriver in [IntelPstate, IntelCpufreq] else 100;
            unnamed 100;
        }
        /// intel_pstate: at least this percentage of the highest frequency; 0: that of the lowest one.
        pstate_min_perf_pct: integer u32 {
            key "intel_pstate.min_perf_pct";
            linux "/sys/devices/system/cpu/intel_pstate/min_perf_pct";
            range 0..=100;
            only CpufreqDriver in [IntelPstate, IntelCpufreq] else 0;
            unnamed 0;
        }
        /// schedutil's tunables.
        schedutil: table Schedutil {}
        /// What `rate_limit_us` is if nobody sets it, L being the driver's transition latency.
        rate_limit_default: choice RateLimitDefault {
            key "schedutil.rate_limit_default";
            linux "cpufreq_policy_transition_delay_us()";
            /// L times 1000, however long that is; 1 ms if L is 0.
            LatencyTimes1000Uncapped = "latency-times-1000-uncapped", "4.7 to 4.13";
            /// L times 1000, at most 10 ms; 1 ms if L is 0.
            LatencyTimes1000 = "latency-times-1000", "4.14 to 6.8";
            /// L times 1000, at most 2 ms; 1 ms if L is 0.
            LatencyTimes1000Max2Ms = "latency-times-1000-max-2ms", "6.9 to 6.11";
            /// L times 1.5; 1 ms if L is 0.
            LatencyAndHalf = "latency-and-half", "6.12 and later";
        }
        /// Whose hook a change of utilisation calls, and who may change which clock.
        cpufreq_remote: choice CpufreqRemote {
            linux "cpufreq_update_util(), cpufreq_this_cpu_can_update()";
            unnamed Allowed;
            /// The hook of the executing CPU alone: a wakeup on another CPU is noticed there at the next event.
            LocalOnly = "local", "4.7 to 4.13";
            /// A CPU of the domain calls the hook at once; another one after it has decided about preemption, and only if
            /// nothing is preempted. An interrupt to the target then carries the change out.
            AfterPreemption = "after-preemption", "schedutil-remote";
            /// Always; the governor drops the call where the domain may not be changed from there.
            Allowed = "allowed", "4.14 and later";
        }
        /// What schedutil compares with its last request.
        sugov_mapping: choice SugovMapping {
            linux "get_next_freq()";
            unnamed Resolved;
            /// The frequency of the formula; the driver finds one of its own for it.
            Raw = "raw", "4.7";
            /// The driver's frequency, looked up again only if the formula gives another one than last time.
            Resolved = "resolved", "4.8 and later; schedutil-opp-mapping";
        }
        /// What starts schedutil's rate limit again.
        sugov_rate_limit: choice SugovRateLimit {
            linux "sugov_update_commit(), sugov_update_next_freq()";
            unnamed Changes;
            /// Each time that it has computed a frequency.
            Requests = "requests", "4.7 to 4.11";
            /// A frequency that is another than the last one.
            Changes = "changes", "4.12 and later; schedutil-opp-mapping";
        }
        /// What schedutil does while its slow path is at work.
        sugov_work: choice SugovWork {
            linux "sugov_should_update_freq(), sugov_work()";
            unnamed Amend;
            /// Nothing, until the driver has returned.
            Drop = "drop", "4.7 to 4.17";
            /// It goes on deciding; the slow path takes the latest frequency.
            Amend = "amend", "4.18 and later";
        }
        /// Who calls a driver that cannot switch in scheduler context.
        sugov_slow_path: choice SugovSlowPath {
            linux "sugov_irq_work(), sugov_kthread_create()";
            unnamed Deadline;
            /// A kworker of the CPU that has asked: a fair task.
            Kworker = "kworker", "4.7 and 4.8", only SugovWork in [Drop];
            /// A thread of SCHED_FIFO 50.
            Fifo = "fifo", "4.9 to 4.16";
            /// A thread of SCHED_DEADLINE that precedes all others.
            Deadline = "deadline", "4.17 and later";
        }
        /// Where utilisation scales with the clock, so that a busy CPU at half its frequency counts as half used.
        freq_invariance: choice FreqInvariance {
            linux "arch_scale_freq_invariant()";
            unnamed All;
            /// Nowhere: schedutil's formula goes from the present frequency.
            None = "none", "up to 4.13";
            /// On arm64.
            Arm = "arm", "4.14 to 5.6";
            /// On arm64 and x86; here on powerpc too, where Linux has none.
            All = "all", "5.7 and later";
        }
        /// The order of clamps and headroom between utilisation and frequency.
        effective_cpu_util: choice EffectiveCpuUtil {
            linux "effective_cpu_util(), sugov_get_util(), get_next_freq()";
            /// The caller of the hook hands over what fair tasks use; while RT or DEADLINE tasks run it asks for the highest
            /// frequency. CPUs of the domain that have not called for a tick do not count. No boost, no holding.
            Passed = "passed", "4.7";
            /// Clamps, then DEADLINE and irq on top, then a quarter of headroom on everything, boost included. Of
            /// several CPUs the one with the largest share of its capacity counts.
            HeadroomLast = "headroom-last", "5.0 to 6.7";
            /// A quarter of headroom on the actual utilisation, then floor and cap. The highest utilisation counts.
            ClampLast = "clamp-last", "6.8 and later";
        }
        /// How the energy model turns utilisation into energy.
        em_cpu_energy: choice EmCpuEnergy {
            linux "em_cpu_energy()";
            /// Cost = f_max · power / f; the state is found by frequency, after a quarter of headroom; no inefficient
            /// states are skipped by performance.
            ByFrequency = "by-frequency", "up to 6.8";
            /// Cost = 10 · power / performance; the state is found by performance.
            ByPerformance = "by-performance", "6.9 and later";
        }
        }
    };
}
