// SPDX-License-Identifier: GPL-2.0-or-later
//! Placement at wakeup.

macro_rules! placement {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Whether the kernel may use EAS.
        energy_aware: switch {
            linux "/proc/sys/kernel/sched_energy_aware";
            releases false "up to 4.20";
            releases true "5.0 and later";
        }
        /// The CPUs that EAS compares, and the saving that it asks for.
        find_energy_efficient_cpu: choice FindEnergyEfficientCpu {
            linux "find_energy_efficient_cpu()";
            /// The saving must exceed 1/16 of the total energy. A CPU without spare capacity is no candidate.
            Margin = "margin", "5.14 to 5.19";
            /// Any saving is enough. CPUs where the task fits better come first, then the lowest energy decides.
            Fits = "fits", "6.2 and later; 6.1.y; 6.0 (assumed: no margin, but clamps are not asked)";
        }
        /// Whether a CPU that has no spare capacity can be EAS's candidate.
        max_spare_cap: choice MaxSpareCap {
            linux "find_energy_efficient_cpu(): max_spare_cap, prev_spare_cap";
            only FindEnergyEfficientCpu in [Fits] else MayBeZero;
            default_if_absent MayBeZero;
            /// It cannot: EAS ignores CPUs that capped tasks fill.
            AboveZero = "above-zero", "up to 6.6 (the first patch of uclamp-sum goes back to it)";
            /// It can, if the task fits.
            MayBeZero = "may-be-zero", "6.7 and later; 6.1.y from .192 on (or earlier), 6.6.y from .139 on (or earlier)";
        }
        /// The condition on which the target CPU of a wakeup activates the task itself, by its wake list and an
        /// interrupt.
        ttwu_queue_cond: choice TtwuQueueCond {
            linux "ttwu_queue_cond()";
            /// Waker and target share no cache.
            NoSharedCache = "no-shared-cache", "up to 5.7";
            /// Waker and target share no cache, or the target CPU is just switching the task out.
            NoSharedCacheOrOnCpu = "no-shared-cache-or-on-cpu", "5.8 to 5.19";
            /// Waker and target share no cache, or the target CPU has nothing to do.
            NoSharedCacheOrIdle = "no-shared-cache-or-idle", "6.0 and later";
        }
        /// The order in which a wakeup looks for an idle CPU in the target's cache domain.
        select_idle_scan: choice SelectIdleScan {
            linux "select_idle_sibling()";
            default_if_absent SmtFirst;
            /// First an idle core, if there is one; then an idle CPU from the target on, for at most a 512th of the
            /// average idle time; then an idle thread of the target's core.
            SmtLast = "smt-last", "up to 5.11 (read in 4.19 and 5.11)";
            /// First an idle thread of prev's core; then, from the CPU after the target on, an idle core or an idle
            /// CPU.
            SmtFirst = "smt-first", "5.13 and later";
        }
        /// The CPU that a wakeup remembers as the recently used one.
        recent_used_cpu: choice RecentUsedCpu {
            linux "select_idle_sibling(), select_task_rq_fair(): recent_used_cpu";
            default_if_absent Prev;
            /// The CPU on which the task last woke another task that could be pulled there; after its use, prev.
            Waker = "waker", "up to 5.15 (read in 4.19 and 5.11)";
            /// The CPU that the task used before prev.
            Prev = "prev", "5.16 and later";
        }
        /// Whether `wake_affine` compares how busy two caches are before it compares loads.
        idler_llc: choice IdlerLlc {
            linux "the features WA_IDLER_LLC and WA_WAKER, as posted";
            default_if_absent Absent;
            /// It does not.
            Absent = "absent", "any";
            /// It does, and takes the cache with the smaller share of busy CPUs; in a tie the waker's if the wakeup
            /// is synchronous.
            Fraction = "fraction", "none (the patch of February 2021)";
            /// It takes the waker's cache if any of its CPUs is idle, else decides by the share of busy CPUs.
            WakerFirst = "waker-first", "none (that patch with WA_WAKER)";
            /// It takes the waker's cache if fewer of its CPUs are busy than it has cores, else decides by the
            /// share of busy CPUs.
            WakerCores = "waker-cores", "none (its second version, of March 2021)";
            /// It takes an idle CPU or a known idle core of prev's cache (of the waker's, if the wakeup is
            /// synchronous), then of the other cache, then decides by the share of busy CPUs. Busy CPUs are counted
            /// at each switch.
            IdleCore = "idle-core", "none (the series, third version, of May 2021)";
        }
        /// The CPUs that a wakeup looks at where capacities differ and EAS does not decide.
        select_idle_capacity: choice SelectIdleCapacity {
            linux "select_idle_capacity(), asym_fits_cpu()";
            default_if_absent WholeDomain;
            /// All CPUs of the domain that contains every capacity, until one fits.
            WholeDomain = "whole-domain", "5.7 to 7.1";
            /// As many as SIS_UTIL allows; where cores have hardware threads, completely idle cores first.
            SisUtil = "sis-util", "7.3";
        }
        /// The waking tasks for which a CPU with only `SCHED_IDLE` tasks is as good as an idle one.
        sched_idle_cpus: choice SchedIdleCpus {
            linux "sched_idle_cpu(), choose_sched_idle_rq()";
            default_if_absent ForAll;
            /// Every task.
            ForAll = "for-all", "5.6 to 7.0";
            /// Tasks of other policies.
            ForOthers = "for-others", "7.1 and later";
        }
        /// The mark "this cache has an idle core" when the task may run on none of the CPUs that a search would
        /// look at.
        idle_core_unseen: choice IdleCoreUnseen {
            linux "select_idle_cpu(): set_idle_cores()";
            default_if_absent Forgotten;
            /// It is cleared, because the search finds no idle core.
            Forgotten = "forgotten", "5.12 to 7.1";
            /// It stays.
            Kept = "kept", "7.3";
        }
        /// The domains whose CPUs share a mark for idle cores and the number of CPUs that a wakeup may scan.
        sd_shared: choice SdShared {
            linux "struct sched_domain_shared, sd_balance_shared";
            default_if_absent Caches;
            /// Last-level caches. Before the first balance pass a wakeup scans no CPU.
            Caches = "caches", "4.9 to 7.1";
            /// Last-level caches, and the lowest domain that contains every capacity unless it is a NUMA domain;
            /// that domain then has the mark. Before the first balance pass a wakeup may scan 512 CPUs in a cache
            /// and 32 in that domain.
            CachesAndCapacities = "caches-and-capacities", "7.3";
        }
        /// The end of an idle period that enters `avg_idle`, with which newidle balancing compares its cost.
        avg_idle: choice AvgIdle {
            linux "ttwu_do_activate(), put_prev_task_idle(), update_rq_avg_idle()";
            default_if_absent AtWakeup;
            /// The next wakeup that queues a task on the CPU, even if the CPU has run others before.
            AtWakeup = "at-wakeup", "up to 6.19";
            /// The switch from the idle task, whatever its cause.
            AtSwitch = "at-switch", "7.0 and later";
        }
        /// The place where a wakeup looks for an idle CPU on a machine with clusters.
        select_idle_cluster: choice SelectIdleCluster {
            linux "select_idle_cpu()";
            /// The last-level cache's domain, from the target on.
            WholeLlc = "whole-llc", "up to 6.7";
            /// The target's cluster first, then the other CPUs of the domain.
            ClusterFirst = "cluster-first", "6.8 and later";
        }
        }
    };
}
