// SPDX-License-Identifier: GPL-2.0-or-later
//! The settings that kernel files have in tables of their own: schedutil's, CFS's, latency limits, features.

use super::FairClass;
use super::declare::{Kind, Setting, Value, With, integer_from, limit_from, limit_to};
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
            unnamed "none";
        }
        /// Of each CPU's device; 0 is no latency at all.
        resume_latency_us: limit u32 {
            linux "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us (0 here: \"n/a\" there)";
            range 0..=2_000_000_000 us;
            none "none", "no limit";
            unnamed "none";
        }
    }
}

declare! { []
    /// Tunables of CFS before scaling by the number of CPUs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct CfsTunables in "cfs." {
        /// The period in which everybody runs once; scaled.
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
        /// The lead a wakee needs; scaled.
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
