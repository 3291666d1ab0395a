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
        }
        /// schedutil's tunables.
        schedutil: table Schedutil {}
        /// What `rate_limit_us` is if nobody sets it, L being the driver's transition latency.
        rate_limit_default: choice RateLimitDefault {
            key "schedutil.rate_limit_default";
            linux "cpufreq_policy_transition_delay_us()";
            /// L times 1000, at most 10 ms; 1 ms if L is 0.
            LatencyTimes1000 = "latency-times-1000", "4.14 to 6.8";
            /// L times 1000, at most 2 ms; 1 ms if L is 0.
            LatencyTimes1000Max2Ms = "latency-times-1000-max-2ms", "6.9 to 6.11";
            /// L times 1.5; 1 ms if L is 0.
            LatencyAndHalf = "latency-and-half", "6.12";
        }
        /// The order of clamps and headroom between utilisation and frequency.
        effective_cpu_util: choice EffectiveCpuUtil {
            linux "effective_cpu_util(), sugov_get_util(), get_next_freq()";
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
