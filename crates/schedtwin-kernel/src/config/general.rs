// SPDX-License-Identifier: GPL-2.0-or-later
//! Ticks, preemption, topology from firmware, and options of the kernel's build.

macro_rules! general {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Ticks per second.
        hz: integer u32 {
            linux "CONFIG_HZ";
            range 24..=10_000;
        }
        /// The past of the machine when the run begins.
        start: choice StartState {
            linux "sched_init_smp(), and what an idle machine makes of its state";
            default_if_absent Settled;
            /// It has been up for long and idle just before: a wakeup may scan all CPUs of a cache, idle cores are
            /// known, every load balance is due, and clocks are low unless the governor keeps them high.
            Settled = "settled", "any";
            /// It has just booted: up to 7.1 a wakeup scans no CPU before the first load balance.
            Booted = "booted", "any";
        }
        /// Kernel preemption.
        preempt: choice Preempt {
            linux "CONFIG_PREEMPT_*, preempt=";
            /// Kernel mode is never preempted.
            None = "none", "any";
            /// Kernel mode is preempted at explicit points only. Equal to `none` here, because kernel paths are
            /// atomic.
            Voluntary = "voluntary", "any";
            /// Kernel mode is preempted at any interrupt.
            Full = "full", "any";
            /// As `full`, but a fair task gives way to fair tasks when it returns to user mode, or at the second tick.
            Lazy = "lazy", "6.13 and later", only FairClass in [Eevdf];
        }
        /// Interrupt time is taken out of `clock_task` and feeds `avg_irq`.
        irq_time_accounting: switch {
            linux "CONFIG_IRQ_TIME_ACCOUNTING";
        }
        /// Group scheduling is compiled in. Even without groups this changes the rounding of `task_h_load`; and a
        /// task that CFS picks again goes on with its slice, where it would otherwise start a new one.
        fair_group_sched: switch {
            linux "CONFIG_FAIR_GROUP_SCHED";
        }
        /// The tasks of a session are a task group, unless they were put into another one. Needs `fair_group_sched`.
        sched_autogroup: switch {
            linux "CONFIG_SCHED_AUTOGROUP and /proc/sys/kernel/sched_autogroup_enabled";
            default_if_absent false;
        }
        /// The package of a CPU where firmware describes the topology by a cpu-map.
        cpu_map_package: choice CpuMapPackage {
            linux "drivers/base/arch_topology.c";
            /// Each cluster that holds cores: phones get "phantom" domains.
            LeafCluster = "leaf-cluster", "up to 5.19";
            /// Each socket.
            Socket = "socket", "6.0 and later";
        }
        /// The name of the domain level that spans the CPUs of a node.
        package_domain: choice PackageDomain {
            linux "its name in /sys/kernel/debug/sched/domains";
            default_if_absent Pkg;
            /// Named after the die.
            Die = "DIE", "up to 6.6";
            /// Named after the package.
            Pkg = "PKG", "6.7 and later";
        }
        /// The threads that share a level 2 cache on powerpc machines whose big cores consist of two small cores.
        powerpc_l2: choice PowerpcL2 {
            linux "arch/powerpc/kernel/smp.c";
            default_if_absent SmallCore;
            /// Those of the big core; its cache is then the last-level cache (level CACHE).
            BigCore = "big-core", "up to 5.10 (and the patch wide-llc)";
            /// Those of the small core, as in the hardware.
            SmallCore = "small-core", "5.11 and later";
        }
        /// Whether the children of a domain with unequal CPUs spread tasks evenly (`SD_PREFER_SIBLING`).
        asym_child_prefer_sibling: choice AsymChildPreferSibling {
            linux "sd_init()";
            default_if_absent Cleared;
            /// They do not.
            Cleared = "cleared", "up to 7.1";
            /// They do, like those of other domains.
            Kept = "kept", "7.3";
        }
        /// A domain level for clusters below the last-level cache.
        sched_cluster: switch {
            linux "CONFIG_SCHED_CLUSTER";
        }
        /// Timer slack of fair tasks.
        timer_slack: integer Ns {
            key "timer_slack_ns";
            linux "prctl(PR_SET_TIMERSLACK), /proc/PID/timerslack_ns";
            range 0..=1_000_000_000 ns;
        }
        /// Interval at which the kworker of each busy CPU folds statistics; 0: there are no such kworkers.
        stat_interval: integer Ns {
            key "stat_interval_ms";
            linux "/proc/sys/vm/stat_interval, in ms; 0: no kworkers";
            range 0..=120_000 ms;
            default_if_absent 0;
        }
        /// The interrupts whose times fill a CPU's random pool, which arms a timer on that CPU once a second; and a kworker
        /// makes new seeds. As other housekeeping this is left out unless asked for.
        interrupt_randomness: choice InterruptRandomness {
            linux "drivers/char/random.c, kernel/irq/";
            default_if_absent Off;
            /// None, and no new seeds.
            Off = "off", "any (the twin leaves it out unless asked)";
            /// Those of devices.
            Devices = "devices", "6.12 to 6.18";
            /// A CPU's own as well, timer and IPIs, but on x86.
            All = "all", "7.3";
        }
        }
    };
}
