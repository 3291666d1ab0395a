// SPDX-License-Identifier: GPL-2.0-or-later
//! Utilisation clamps.

macro_rules! uclamp {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Utilisation clamping.
        uclamp: choice Uclamp {
            linux "CONFIG_UCLAMP_TASK; static key sched_uclamp_used";
            /// There are no clamps in the build.
            CompiledOut = "compiled-out", "any";
            /// Nobody has used a clamp since boot: nothing is clamped, and before 6.8 a runnable RT task asks for the
            /// highest frequency outright.
            KeyOff = "key-off", "5.3 and later";
            /// Clamps are in use.
            On = "on", "5.3 and later";
        }
        /// The floor that RT tasks get, as a capacity.
        uclamp_min_rt_default: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_min_rt_default";
            range 0..=1024;
        }
        /// Max aggregation: when a task's clamps join its run queue's.
        uclamp_order: choice UclampOrder {
            linux "enqueue_task()";
            /// Before the class enqueues it, so the governor sees them.
            BeforeEnqueue = "before-enqueue", "up to 6.11; from 6.16";
            /// Afterwards: the governor runs with the clamps of the others.
            AfterEnqueue = "after-enqueue", "6.12 to 6.15";
        }
        /// What the clamps of a run queue's tasks make together.
        uclamp_aggregation: choice UclampAggregation {
            linux "rq.uclamp; cfs_rq.avg.util_avg_bias";
            unnamed Max;
            /// The largest minimum and the largest maximum, counted in buckets.
            Max = "max", "5.3 and later";
            /// Each task's utilisation is clamped by itself, and the queue adds up by how much that changes it.
            Sum = "sum", "none; posted in June 2024 and March 2025";
        }
        /// Sum aggregation: whether estimates are clamped and added up beside utilisation.
        util_est_uclamp: choice UtilEstUclamp {
            key "uclamp_sum.util_est_uclamp";
            linux "struct sched_avg.util_est_uclamp";
            only UclampAggregation in [Sum] else Absent;
            unnamed Tracked;
            /// They are not: a clamped utilisation knows no estimate.
            Absent = "absent", "none; not posted either";
            /// They are.
            Tracked = "tracked", "none; as posted";
        }
        /// Sum aggregation: what a task takes away when it leaves, whose cap has lowered its queue's utilisation.
        negative_bias: choice NegativeBias {
            key "uclamp_sum.negative_bias";
            linux "propagate_negative_bias()";
            only UclampAggregation in [Sum] else Removed;
            unnamed Propagated;
            /// Its bias alone: the utilisation that stays behind jumps up and decays from there.
            Removed = "removed", "none; the series without its seventh patch";
            /// As much of its utilisation as its cap hid, so that the clamped utilisation decays.
            Propagated = "propagated", "none; as posted";
        }
        /// Sum aggregation: whether a capped task is throttled if a task without a cap competes with it.
        max_uclamp_factor: choice MaxUclampFactor {
            key "uclamp_sum.max_uclamp_factor";
            linux "rq.max_uclamp_factor";
            only UclampAggregation in [Sum] else Absent;
            unnamed Tracked;
            /// It is, and the CPU may be too slow for the other one.
            Absent = "absent", "none; as posted in June 2024";
            /// Not below its fair share beside the task that demands most for its weight.
            Tracked = "tracked", "none; as posted in March 2025";
        }
        /// Sum aggregation: whether an enqueue tells the governor once more when the bias has joined the queue's.
        enqueue_hook: choice UtilBiasHook {
            key "uclamp_sum.enqueue_hook";
            linux "util_bias_enqueue() in enqueue_task_fair()";
            only UclampAggregation in [Sum] else Always;
            unnamed Boosted;
            /// Every time.
            Always = "always", "none; as posted in June 2024";
            /// If the task's utilisation is raised.
            Boosted = "boosted", "none; as posted in March 2025";
        }
        /// What is left of each clamp that a task or a group asks for: sum aggregation does not go around the headroom of a
        /// quarter, so its authors reduced clamps to 0.8. A maximum of 1024, which is none, stays.
        uclamp_scale_permille: integer u32 {
            linux "none; who sets clamps does this";
            range 1..=1000;
            unnamed 1000;
        }
        /// The highest minimum that counts.
        uclamp_util_min: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_min";
            range 0..=1024;
            at_most "uclamp_util_max";
            unnamed 1024;
        }
        /// The highest maximum that counts.
        uclamp_util_max: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_max";
            range 0..=1024;
            unnamed 1024;
        }
        /// Max aggregation: in how many buckets a run queue counts its tasks' clamps (20 in Android's common kernels).
        uclamp_buckets: integer u32 {
            linux "CONFIG_UCLAMP_BUCKETS_COUNT";
            range 5..=20;
            only UclampAggregation in [Max] else 5;
            unnamed 5;
        }
        }
    };
}
