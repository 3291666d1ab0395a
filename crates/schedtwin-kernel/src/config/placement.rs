// SPDX-License-Identifier: GPL-2.0-or-later
//! Placement at wakeup.

macro_rules! placement {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Whether the kernel is willing to use EAS.
        energy_aware: switch {
            linux "/proc/sys/kernel/sched_energy_aware";
        }
        /// Which CPUs EAS compares, and by how much one must be better.
        find_energy_efficient_cpu: choice FindEnergyEfficientCpu {
            linux "find_energy_efficient_cpu()";
            /// Savings must exceed 1/16 of the total; no spare capacity, no candidate.
            Margin = "margin", "5.14 to 5.19";
            /// No margin; how well a task fits comes first, then the lowest energy.
            Fits = "fits", "6.1.y, 6.2 and later";
        }
        /// Whether a CPU that has no spare capacity can be EAS's candidate.
        max_spare_cap: choice MaxSpareCap {
            linux "find_energy_efficient_cpu(): max_spare_cap, prev_spare_cap";
            only FindEnergyEfficientCpu in [Fits] else MayBeZero;
            unnamed MayBeZero;
            /// It cannot: of CPUs that capped tasks fill none is looked at.
            AboveZero = "above-zero", "6.2 to 6.6; the first patch of uclamp-sum goes back to it";
            /// It can, if it fits.
            MayBeZero = "may-be-zero", "6.7 and later; late in 6.1.y and 6.6.y";
        }
        /// When the target of a wakeup activates the task itself, by its wake list and an interrupt.
        ttwu_queue_cond: choice TtwuQueueCond {
            linux "ttwu_queue_cond()";
            /// If the cache is not shared, or the task is just being switched out there.
            NoSharedCacheOrOnCpu = "no-shared-cache-or-on-cpu", "5.8 to 5.19";
            /// If the cache is not shared, or the target has nothing to do.
            NoSharedCacheOrIdle = "no-shared-cache-or-idle", "6.0 and later";
        }
        /// How a wakeup looks for an idle CPU in the target's cache domain.
        select_idle_scan: choice SelectIdleScan {
            linux "select_idle_sibling()";
            unnamed SmtFirst;
            /// An idle core, if there is one; an idle CPU from the target on, as far as a 512th of the idle time
            /// allows; an idle thread of the target's core.
            SmtLast = "smt-last", "5.11";
            /// An idle thread of prev's core; then, behind the target, an idle core, or an idle CPU.
            SmtFirst = "smt-first", "5.13 and later";
        }
        /// What a wakeup remembers as the recently used CPU.
        recent_used_cpu: choice RecentUsedCpu {
            linux "select_idle_sibling(), select_task_rq_fair(): recent_used_cpu";
            unnamed Prev;
            /// The CPU on which the task last woke somebody who may be pulled there, and prev where that was used.
            Waker = "waker", "5.11";
            /// The CPU before prev.
            Prev = "prev", "5.16 and later";
        }
        /// Whether `wake_affine` compares how busy two caches are before it compares loads.
        idler_llc: choice IdlerLlc {
            linux "the features WA_IDLER_LLC and WA_WAKER, as posted";
            unnamed Absent;
            /// It does not.
            Absent = "absent", "all releases";
            /// The cache with the smaller busy share; a tie goes to the waker's if the wakeup is synchronous.
            Fraction = "fraction", "the patch of February 2021";
            /// The waker's cache, if any of its CPUs is idle; else by that share.
            WakerFirst = "waker-first", "that patch with WA_WAKER";
            /// The waker's cache, if fewer of its CPUs are busy than it has cores; else by that share.
            WakerCores = "waker-cores", "its second version, of March 2021";
            /// An idle CPU or a known idle core of prev's cache (synchronous: of the waker's), then of the other one; then
            /// the smaller share. Who is busy is counted at each switch.
            IdleCore = "idle-core", "the series, third version, of May 2021";
        }
        /// Which CPUs a wakeup looks at where capacities differ and EAS does not decide.
        select_idle_capacity: choice SelectIdleCapacity {
            linux "select_idle_capacity(), asym_fits_cpu()";
            unnamed WholeDomain;
            /// All of the domain with all capacities, until one fits.
            WholeDomain = "whole-domain", "5.7 to 6.18.y";
            /// As many as SIS_UTIL allows; where cores have hardware threads, cores that are idle as a whole first.
            SisUtil = "sis-util", "7.3";
        }
        /// For whom a CPU with `SCHED_IDLE` tasks only is as good as an idle one.
        sched_idle_cpus: choice SchedIdleCpus {
            linux "sched_idle_cpu(), choose_sched_idle_rq()";
            unnamed ForAll;
            /// For every task.
            ForAll = "for-all", "5.6 to 6.18.y";
            /// For tasks of another policy.
            ForOthers = "for-others", "7.3";
        }
        /// What a wakeup makes of a cache's idle core if the task may run on none of its CPUs.
        idle_core_unseen: choice IdleCoreUnseen {
            linux "select_idle_cpu(): set_idle_cores()";
            unnamed Forgotten;
            /// It has found none, so there is said to be none.
            Forgotten = "forgotten", "5.12 to 6.18.y";
            /// It has not looked, so it says nothing.
            Kept = "kept", "7.3";
        }
        /// Which domains know in common whether a core is idle and how far a wakeup looks for an idle CPU.
        sd_shared: choice SdShared {
            linux "struct sched_domain_shared, sd_balance_shared";
            unnamed Caches;
            /// Last-level caches. Before the first balancing pass a wakeup does not look.
            Caches = "caches", "4.9 to 6.18.y";
            /// The lowest domain with all capacities, too, unless it is a NUMA one; it then knows of idle cores. Before the
            /// first pass a wakeup may look at 512 CPUs in a cache, at 32 in that domain.
            CachesAndCapacities = "caches-and-capacities", "7.3";
        }
        /// When an idle time is over that `avg_idle` learns from, by which newidle balancing judges what it can afford.
        avg_idle: choice AvgIdle {
            linux "ttwu_do_activate(), put_prev_task_idle(), update_rq_avg_idle()";
            unnamed AtWakeup;
            /// With the next wakeup that queues a task there, whatever the CPU did before.
            AtWakeup = "at-wakeup", "up to 6.18.y";
            /// With the switch from the idle task, whatever brought the next one.
            AtSwitch = "at-switch", "7.3";
        }
        /// Where a wakeup looks for an idle CPU on a machine with clusters.
        select_idle_cluster: choice SelectIdleCluster {
            linux "select_idle_cpu()";
            /// In the last-level cache's domain, from the target on.
            WholeLlc = "whole-llc", "up to 6.7";
            /// In the target's cluster first, then in the rest of the domain.
            ClusterFirst = "cluster-first", "6.8 and later";
        }
        }
    };
}
