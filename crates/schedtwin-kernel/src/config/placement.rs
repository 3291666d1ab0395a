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
