// SPDX-License-Identifier: GPL-2.0-or-later
//! Frequencies: governors, schedutil, the energy model.

macro_rules! cpufreq {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The cpufreq governor.
        cpufreq: choice FrequencyGovernor {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor";
            /// The frequency follows from utilisation.
            Schedutil = "schedutil", "4.7 and later";
            /// Always the highest frequency.
            Performance = "performance", "any";
            /// Always the lowest frequency.
            Powersave = "powersave", "any";
            /// The frequency follows from the load of the last period: above a threshold the highest one, else in
            /// proportion to the load.
            Ondemand = "ondemand", "any";
            /// The frequency moves in steps by the load of the last period.
            Conservative = "conservative", "any";
            /// The frequency that user space has set.
            Userspace = "userspace", "any";
        }
        /// Whether the hook hears of a task that waited for I/O when it is enqueued.
        iowait_hook: choice IowaitHook {
            linux "enqueue_task_fair(): SCHED_CPUFREQ_IOWAIT";
            default_if_absent Enqueue;
            /// It does not.
            Absent = "absent", "up to 4.8";
            /// It is called with a flag: schedutil raises the CPU's boost.
            Enqueue = "enqueue", "4.9 and later";
        }
        /// ondemand, conservative: time between two samples; 0: two ticks, or the driver's transition delay if that
        /// is longer.
        dbs_sampling_rate_us: integer u32 {
            key "dbs.sampling_rate_us";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/sampling_rate";
            range 0..=10_000_000 us;
            only FrequencyGovernor in [Ondemand, Conservative] else 0;
            default_if_absent 0;
        }
        /// ondemand, conservative: the load in percent above which the frequency rises; 0: 95 for ondemand, 80 for
        /// conservative.
        dbs_up_threshold: integer u32 {
            key "dbs.up_threshold";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/up_threshold";
            range 0..=100;
            only FrequencyGovernor in [Ondemand, Conservative] else 0;
            default_if_absent 0;
        }
        /// ondemand: factor for the time between two samples while the frequency is the highest one. conservative:
        /// only every so many samples without a rise can lower the frequency.
        dbs_sampling_down_factor: integer u32 {
            key "dbs.sampling_down_factor";
            linux "/sys/devices/system/cpu/cpufreq/{ondemand,conservative}/sampling_down_factor";
            range 1..=100_000;
            only FrequencyGovernor in [Ondemand, Conservative] else 1;
            default_if_absent 1;
        }
        /// conservative: the load in percent below which the frequency falls.
        dbs_down_threshold: integer u32 {
            key "dbs.down_threshold";
            linux "/sys/devices/system/cpu/cpufreq/conservative/down_threshold";
            range 1..=100;
            only FrequencyGovernor in [Conservative] else 20;
            default_if_absent 20;
        }
        /// conservative: the step in percent of the highest frequency; 0: the frequency stays.
        dbs_freq_step: integer u32 {
            key "dbs.freq_step";
            linux "/sys/devices/system/cpu/cpufreq/conservative/freq_step";
            range 0..=100;
            only FrequencyGovernor in [Conservative] else 5;
            default_if_absent 5;
        }
        /// conservative: when it takes the steps down of the periods in which all CPUs of a domain were idle.
        deferred_steps: choice DeferredSteps {
            key "dbs.deferred_steps";
            linux "cs_dbs_update()";
            default_if_absent BelowThreshold;
            /// At any load.
            AtAnyLoad = "at-any-load", "up to 7.1";
            /// When the load of the sample is below `down_threshold`.
            BelowThreshold = "below-threshold", "7.3; 6.12.y from .117 on (or earlier)";
        }
        /// userspace: the frequency in kHz. A domain takes its lowest frequency that is not below it.
        scaling_setspeed: integer u32 {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_setspeed";
            range 0..=100_000_000;
            only FrequencyGovernor in [Userspace] else 0;
            default_if_absent 0;
        }
        /// The lower limit of all clocks that user space sets, in kHz: each keeps to its frequencies that are not below it.
        scaling_min_freq: limit u32 {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq";
            range 0..=100_000_000 kHz;
            none "none", "the lowest frequency of each";
            default_if_absent "none";
        }
        /// The upper limit of all clocks that user space sets, in kHz: each keeps to its frequencies that are not above it.
        scaling_max_freq: limit u32 {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq";
            range 0..=100_000_000 kHz;
            none "none", "the highest frequency of each";
            default_if_absent "none";
        }
        /// The cpufreq driver. It takes requests from the governor, or decides by itself.
        scaling_driver: choice CpufreqDriver {
            linux "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver";
            default_if_absent Machine;
            /// The machine's own: it takes frequencies of the machine's table.
            Machine = "machine", "any";
            /// intel_pstate in active mode: the driver decides by the CPU's counters. Every governor except
            /// performance selects its powersave algorithm.
            IntelPstate = "intel_pstate", "4.15 and later (x86 whose CPUs have clocks of their own)";
            /// intel_pstate in passive mode: it takes any frequency in steps of 100 MHz from a governor.
            IntelCpufreq = "intel_cpufreq", "4.14 and later (x86 whose CPUs have clocks of their own)";
            /// amd-pstate in passive mode: it takes any of 255 steps of performance. schedutil asks for performance
            /// directly (`adjust_perf`), other governors for a frequency.
            AmdPstate = "amd-pstate", "5.17 and later (x86 whose CPUs have clocks of their own)";
            /// amd-pstate in active mode: the processor chooses within limits, by `energy_performance_preference`.
            AmdPstateEpp = "amd-pstate-epp", "6.3 and later (x86 whose CPUs have clocks of their own)";
        }
        /// amd-pstate in passive mode: the limits that it keeps, and a floor of the whole capacity.
        amd_pstate: choice AmdPstateForm {
            linux "amd_pstate_adjust_perf(), amd_pstate_update()";
            default_if_absent Limited;
            /// Performance may be asked for beyond the limits of the policy; a floor of the whole capacity is the highest level.
            FloorIsHighest = "floor-is-highest", "5.17 to 6.5 (seen in 5.19 and 6.3.8)";
            /// The same, but a floor of the whole capacity is none.
            Unlimited = "unlimited", "6.1.y from .192 on (or earlier)";
            /// Requests are kept within the limits; a floor of the whole capacity is none.
            Limited = "limited", "6.8 to 6.14; 6.6.y from .57 on (or earlier)";
            /// Levels follow from the nominal frequency; a floor lifts the upper limit.
            ByNominal = "by-nominal", "6.15 and later";
        }
        /// The processor takes hints (HWP). With intel_cpufreq, schedutil asks for performance directly
        /// (`adjust_perf`); with intel_pstate the processor chooses within limits, by
        /// `energy_performance_preference`.
        hwp: switch {
            linux "intel_pstate=no_hwp";
            default_if_absent false;
        }
        /// The preference of a processor that chooses its frequency: from performance (0) to energy (255).
        epp: integer u32 {
            key "energy_performance_preference";
            linux "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference";
            range 0..=255;
            only CpufreqDriver in [IntelPstate, AmdPstateEpp] else 128;
            default_if_absent 128;
        }
        /// intel_pstate: at most this percentage of the highest frequency.
        pstate_max_perf_pct: integer u32 {
            key "intel_pstate.max_perf_pct";
            linux "/sys/devices/system/cpu/intel_pstate/max_perf_pct";
            range 1..=100;
            only CpufreqDriver in [IntelPstate, IntelCpufreq] else 100;
            default_if_absent 100;
        }
        /// intel_pstate: at least this percentage of the highest frequency; 0: the lowest frequency.
        pstate_min_perf_pct: integer u32 {
            key "intel_pstate.min_perf_pct";
            linux "/sys/devices/system/cpu/intel_pstate/min_perf_pct";
            range 0..=100;
            only CpufreqDriver in [IntelPstate, IntelCpufreq] else 0;
            default_if_absent 0;
        }
        /// schedutil's tunables.
        schedutil: table Schedutil {}
        /// The default of `rate_limit_us`; L is the driver's transition latency.
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
        /// The CPU whose schedutil hook is called after a change of utilisation, and the CPUs that may change a
        /// domain's clock.
        cpufreq_remote: choice CpufreqRemote {
            linux "cpufreq_update_util(), cpufreq_this_cpu_can_update()";
            default_if_absent Allowed;
            /// Only the hook of the executing CPU, for its own clock. After a remote wakeup the target CPU calls
            /// its hook at its next event.
            LocalOnly = "local", "4.7 to 4.13";
            /// A CPU of the same domain calls the hook at once. A CPU of another domain calls it after the decision
            /// about preemption, only if nothing is preempted, and an interrupt to the target CPU makes the change.
            AfterPreemption = "after-preemption", "none (the patch schedutil-remote)";
            /// The hook of the CPU whose utilisation changed, from any CPU. The governor drops the call if the
            /// executing CPU may not change the domain's clock.
            Allowed = "allowed", "4.14 and later";
        }
        /// The frequency that schedutil compares with its last request.
        sugov_mapping: choice SugovMapping {
            linux "get_next_freq()";
            default_if_absent Resolved;
            /// The result of the formula, before the driver rounds it to a frequency of its table.
            Raw = "raw", "4.7";
            /// The driver's frequency, looked up again only when the result of the formula has changed.
            Resolved = "resolved", "4.8 and later (and the patch schedutil-opp-mapping)";
        }
        /// The event that starts schedutil's rate limit again.
        sugov_rate_limit: choice SugovRateLimit {
            linux "sugov_update_commit(), sugov_update_next_freq()";
            default_if_absent Changes;
            /// Each computed frequency.
            Requests = "requests", "4.7 to 4.11";
            /// Each change of the frequency.
            Changes = "changes", "4.12 and later (and the patch schedutil-opp-mapping)";
        }
        /// schedutil's behaviour while its slow path is at work.
        sugov_work: choice SugovWork {
            linux "sugov_should_update_freq(), sugov_work()";
            default_if_absent Amend;
            /// It drops calls until the driver has returned.
            Drop = "drop", "4.7 to 4.17";
            /// It goes on deciding, and the slow path takes the latest frequency.
            Amend = "amend", "4.18 and later";
        }
        /// The thread that calls a driver without fast switch.
        sugov_slow_path: choice SugovSlowPath {
            linux "sugov_irq_work(), sugov_kthread_create()";
            default_if_absent Deadline;
            /// A kworker on the requesting CPU, a fair task.
            Kworker = "kworker", "4.7 and 4.8", only SugovWork in [Drop];
            /// A thread of SCHED_FIFO 50.
            Fifo = "fifo", "4.9 to 4.16";
            /// A thread of SCHED_DEADLINE that precedes all others.
            Deadline = "deadline", "4.17 and later";
        }
        /// The architectures on which utilisation scales with the clock, so that a CPU that is busy at half its
        /// frequency counts as half used.
        freq_invariance: choice FreqInvariance {
            linux "arch_scale_freq_invariant()";
            default_if_absent All;
            /// None: schedutil's formula starts from the present frequency.
            None = "none", "up to 4.13";
            /// arm64.
            Arm = "arm", "4.14 to 5.6";
            /// arm64 and x86; in the model powerpc as well, unlike in Linux.
            All = "all", "5.7 and later";
        }
        /// How limits of frequencies lower a CPU's capacity.
        capacity_pressure: choice CapacityPressure {
            linux "arch_scale_thermal_pressure(), get_actual_cpu_capacity()";
            default_if_absent HwAndCpufreq;
            /// They do not.
            None = "none", "up to 5.6";
            /// Thermal pressure: EAS and clamps look at what is taken now, balancing at its average, which it counts as
            /// used. Cooling devices and firmware tell it, whichever told last.
            Thermal = "thermal", "5.7 to 6.9";
            /// The greater of cpufreq's pressure, as of now, and of the average of what firmware takes is off the capacity
            /// for all.
            HwAndCpufreq = "hw-and-cpufreq", "6.10 and later";
        }
        /// The order of clamps and headroom between utilisation and frequency.
        effective_cpu_util: choice EffectiveCpuUtil {
            linux "effective_cpu_util(), sugov_get_util(), get_next_freq()";
            /// The caller of the hook passes the utilisation of fair tasks; while RT or DEADLINE tasks run it asks
            /// for the highest frequency. A CPU of the domain that has not called for a tick does not count. There
            /// is no boost after I/O, and the frequency of a busy CPU may fall.
            Passed = "passed", "4.7";
            /// First clamps; then DEADLINE and interrupts are added; then a quarter of headroom on everything, the
            /// boost after I/O included. Of several CPUs the one with the largest share of its capacity counts.
            HeadroomLast = "headroom-last", "4.19 to 6.7";
            /// First a quarter of headroom on the actual utilisation, then minimum and maximum. Of several CPUs the
            /// highest utilisation counts.
            ClampLast = "clamp-last", "6.8 and later";
        }
        /// The energy model's conversion of utilisation into energy.
        em_cpu_energy: choice EmCpuEnergy {
            linux "em_cpu_energy()";
            /// Cost = f_max · power / f. The performance state is found by frequency, after a quarter of headroom.
            ByFrequency = "by-frequency", "up to 6.8";
            /// Cost = 10 · power / performance. The performance state is found by performance.
            ByPerformance = "by-performance", "6.9 and later";
        }
        }
    };
}
