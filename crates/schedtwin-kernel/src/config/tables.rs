// SPDX-License-Identifier: GPL-2.0-or-later
//! The settings that kernel files have in tables of their own: schedutil's, CFS's, latency limits, features.

use super::declare::{Kind, Setting, Value, With, integer_from, limit_from, limit_to};
use super::{FairClass, SchedCache};
use schedtwin_types::Ns;

declare! { []
    /// schedutil's tunables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Schedutil in "schedutil." {
        /// The least time between two requests of a clock domain.
        rate_limit_us: limit u64 {
            linux "/sys/devices/system/cpu/cpufreq/policy*/schedutil/rate_limit_us";
            range 0..=10_000_000 us;
            none "driver", "what follows from the driver's transition latency";
        }
    }
}

declare! { []
    /// Limits on the exit latency of idle states (PM QoS); `None`: no limit.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct PmQos in "pm_qos." {
        /// For all CPUs.
        cpu_latency_us: limit u32 {
            linux "/dev/cpu_dma_latency";
            range 0..=2_000_000_000 us;
            none "none", "no limit";
            default_if_absent "none";
        }
        /// Of each CPU's device; 0 is no latency at all.
        resume_latency_us: limit u32 {
            linux "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us (0 here: \"n/a\" there)";
            range 0..=2_000_000_000 us;
            none "none", "no limit";
            default_if_absent "none";
        }
    }
}

declare! { []
    /// Limits of gathering a process's threads in a last-level cache.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct LlcBalancing in "llc_balancing." {
        /// The largest number of running threads per CPU of the cache with which a process is gathered (four fifths
        /// of it, and less with hardware threads); 0: never gathered; 100: always.
        aggr_tolerance: integer u32 {
            linux "/sys/kernel/debug/sched/llc_balancing/aggr_tolerance";
            range 0..=100;
            only SchedCache in [Llc] else 0;
            default_if_absent 1;
        }
        /// Jiffies after which earlier running time counts half, and the preferred cache of a process is determined
        /// again.
        epoch_period: limit u32 {
            linux "/sys/kernel/debug/sched/llc_balancing/epoch_period";
            range 0..=1_000_000;
            none "HZ/100", "a hundredth of a second";
            only SchedCache in [Llc];
            default_if_absent "HZ/100";
        }
        /// Epochs after which a process loses its preferred cache, unless it was determined again.
        epoch_affinity_timeout: integer u32 {
            linux "/sys/kernel/debug/sched/llc_balancing/epoch_affinity_timeout";
            range 0..=1_000_000;
            only SchedCache in [Llc] else 0;
            default_if_absent 5;
        }
        /// The utilisation, in per cent, up to which a cache always takes tasks; half as much again without
        /// hardware threads.
        overaggr_pct: integer u32 {
            linux "/sys/kernel/debug/sched/llc_balancing/overaggr_pct";
            range 0..=1_000;
            only SchedCache in [Llc] else 0;
            default_if_absent 50;
        }
        /// The percentage by which a cache must exceed another one to count as busier, where one of them is above
        /// `overaggr_pct`.
        imb_pct: integer u32 {
            linux "/sys/kernel/debug/sched/llc_balancing/imb_pct";
            range 0..=1_000;
            only SchedCache in [Llc] else 0;
            default_if_absent 20;
        }
    }
}

declare! { []
    /// Tunables of CFS before scaling by the number of CPUs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct CfsTunables in "cfs." {
        /// The period in which each runnable task runs once; scaled.
        latency: integer Ns {
            key "latency_ns";
            linux "/sys/kernel/debug/sched/latency_ns, before scaling by CPUs";
            range 10_000..=1_000_000_000 ns;
            only FairClass in [Cfs] else 0;
        }
        /// The shortest slice; scaled.
        min_granularity: integer Ns {
            key "min_granularity_ns";
            linux "/sys/kernel/debug/sched/min_granularity_ns, before scaling by CPUs";
            range 10_000..=1_000_000_000 ns;
            only FairClass in [Cfs] else 0;
        }
        /// The lead in virtual runtime that a woken task needs to preempt; scaled.
        wakeup_granularity: integer Ns {
            key "wakeup_granularity_ns";
            linux "/sys/kernel/debug/sched/wakeup_granularity_ns, before scaling by CPUs";
            range 10_000..=1_000_000_000 ns;
            only FairClass in [Cfs] else 0;
        }
        /// The shortest slice of an idle entity beside normal ones; not scaled.
        idle_min_granularity: integer Ns {
            key "idle_min_granularity_ns";
            linux "/sys/kernel/debug/sched/idle_min_granularity_ns";
            range 10_000..=1_000_000_000 ns;
            only FairClass in [Cfs] else 0;
        }
    }
}
