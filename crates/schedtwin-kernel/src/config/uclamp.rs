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
            /// No clamp has been used since boot: nothing is clamped, and before 6.8 a runnable RT task asks for
            /// the highest frequency.
            KeyOff = "key-off", "5.3 and later";
            /// Clamps are in use.
            On = "on", "5.3 and later";
        }
        /// The minimum clamp of RT tasks without a request of their own, as a capacity.
        uclamp_min_rt_default: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_min_rt_default";
            range 0..=1024;
        }
        /// Max aggregation: when a task's clamps join its run queue's.
        uclamp_order: choice UclampOrder {
            linux "enqueue_task()";
            /// Before the class enqueues the task, so the governor sees them.
            BeforeEnqueue = "before-enqueue", "up to 6.11, 6.16 and later";
            /// After the class has enqueued the task: the governor runs before, with the clamps of the other tasks.
            AfterEnqueue = "after-enqueue", "6.12 to 6.15";
        }
        /// The combination of the clamps of a run queue's tasks.
        uclamp_aggregation: choice UclampAggregation {
            linux "rq.uclamp; cfs_rq.avg.util_avg_bias";
            default_if_absent Max;
            /// The largest minimum and the largest maximum, counted in buckets.
            Max = "max", "any";
            /// Each task's utilisation is clamped by itself, and the queue adds up the changes.
            Sum = "sum", "none (posted in June 2024 and March 2025)";
        }
        /// Sum aggregation: whether estimates are clamped and added up beside utilisation.
        util_est_uclamp: choice UtilEstUclamp {
            key "uclamp_sum.util_est_uclamp";
            linux "struct sched_avg.util_est_uclamp";
            only UclampAggregation in [Sum] else Absent;
            default_if_absent Tracked;
            /// They are not: clamped utilisation is without estimates.
            Absent = "absent", "none (not posted either)";
            /// They are.
            Tracked = "tracked", "none (as posted)";
        }
        /// Sum aggregation: the amount that a capped task subtracts from its queue when it leaves.
        negative_bias: choice NegativeBias {
            key "uclamp_sum.negative_bias";
            linux "propagate_negative_bias()";
            only UclampAggregation in [Sum] else Removed;
            default_if_absent Propagated;
            /// Its bias only: the queue's clamped utilisation jumps up and decays from there.
            Removed = "removed", "none (the series without its seventh patch)";
            /// The part of its utilisation that its cap hid, so that the clamped utilisation decays.
            Propagated = "propagated", "none (as posted)";
        }
        /// Sum aggregation: whether a cap also holds while an uncapped task competes for the CPU.
        max_uclamp_factor: choice MaxUclampFactor {
            key "uclamp_sum.max_uclamp_factor";
            linux "rq.max_uclamp_factor";
            only UclampAggregation in [Sum] else Absent;
            default_if_absent Tracked;
            /// It does, and the CPU may be too slow for the other task.
            Absent = "absent", "none (as posted in June 2024)";
            /// It does not lower the task below its fair share beside the task with the highest demand for its
            /// weight.
            Tracked = "tracked", "none (as posted in March 2025)";
        }
        /// Sum aggregation: the enqueues after which the governor is called once more, when the task's bias has
        /// joined the queue's.
        enqueue_hook: choice UtilBiasHook {
            key "uclamp_sum.enqueue_hook";
            linux "util_bias_enqueue() in enqueue_task_fair()";
            only UclampAggregation in [Sum] else Always;
            default_if_absent Boosted;
            /// After every enqueue.
            Always = "always", "none (as posted in June 2024)";
            /// After an enqueue of a task whose utilisation is raised.
            Boosted = "boosted", "none (as posted in March 2025)";
        }
        /// A factor for each clamp that a task or a group asks for. Sum aggregation adds the headroom of a quarter
        /// to clamped values, so its authors reduced clamps to 0.8. A maximum of 1024 means no clamp and is not
        /// changed.
        uclamp_scale_permille: integer u32 {
            linux "none: user space scales the clamps that it sets";
            range 1..=1000;
            default_if_absent 1000;
        }
        /// The limit for all minimum clamps.
        uclamp_util_min: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_min";
            range 0..=1024;
            at_most "uclamp_util_max";
            default_if_absent 1024;
        }
        /// The limit for all maximum clamps.
        uclamp_util_max: integer u32 {
            linux "/proc/sys/kernel/sched_util_clamp_max";
            range 0..=1024;
            default_if_absent 1024;
        }
        /// Max aggregation: the number of buckets in which a run queue counts its tasks' clamps (20 in Android's
        /// common kernels).
        uclamp_buckets: integer u32 {
            linux "CONFIG_UCLAMP_BUCKETS_COUNT";
            range 5..=20;
            only UclampAggregation in [Max] else 5;
            default_if_absent 5;
        }
        }
    };
}
