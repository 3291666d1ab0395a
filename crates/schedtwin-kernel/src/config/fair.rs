// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: CFS or EEVDF, and the signals that it keeps.

macro_rules! fair {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The fair class's rule for dividing time.
        fair: choice FairClass {
            linux "kernel/sched/fair.c";
            /// The task with the smallest virtual runtime runs; buddies and granularities.
            Cfs = "cfs", "up to 6.5";
            /// Of the tasks that are owed time, the one with the earliest virtual deadline runs.
            Eevdf = "eevdf", "6.6 and later (as of 6.12)";
        }
        /// Tunables of CFS; zeros with EEVDF.
        cfs: table CfsTunables {}
        /// CFS: the time after which a tick preempts the running task.
        ideal_runtime: choice IdealRuntime {
            key "cfs.ideal_runtime";
            linux "check_preempt_tick()";
            only FairClass in [Cfs] else SchedSlice;
            default_if_absent SchedSlice;
            /// Its slice, which can be longer than the latency if the other tasks are lighter.
            SchedSlice = "sched-slice", "up to 6.2, 6.1.y";
            /// Its slice, at most the latency.
            AtMostLatency = "at-most-latency", "6.3 to 6.5";
        }
        /// EEVDF: the slice before scaling by CPUs; 0 with CFS.
        base_slice_unscaled: integer Ns {
            key "eevdf.base_slice_unscaled_ns";
            linux "/sys/kernel/debug/sched/base_slice_ns, before scaling by CPUs";
            range 10_000..=1_000_000_000 ns;
            only FairClass in [Eevdf] else 0;
            releases 750_000 "6.6 to 6.14";
            releases 700_000 "6.15 and later; 6.12.y from .27 on (or earlier, assumed)";
        }
        /// Release of EEVDF's rules.
        eevdf_form: choice EevdfForm {
            linux "pick_eevdf(), update_curr(), wakeup_preempt_fair()";
            only FairClass in [Eevdf] else V6_12;
            default_if_absent V6_12;
            /// The running task's slice is protected until its deadline; a waking task with a shorter slice
            /// preempts if it wins the pick; the lag of a delayed task is measured when it leaves the queue.
            V6_12 = "6.12", "6.6 to 6.16 (assumed outside 6.12)";
            /// The running task's slice is protected for as long as the shortest slice in the queue, once per
            /// switch; a waking task with a shorter slice preempts if it wins the pick without protection, new and
            /// delayed tasks do not; a change of weight places the entity anew.
            V6_18 = "6.18", "6.18.y from .33 on, 6.19 and 7.0; 6.17 and 6.18 (assumed), 7.1 (assumed: its lag is already that of 7.3)";
            /// The running task's slice is protected until the task with the shortest slice would have its turn,
            /// once per switch; a waking task with a shorter slice preempts if it is eligible, new tasks do not;
            /// lag is measured when a task blocks, and from then on only rises, up to 0.
            V7_3 = "7.3", "7.3";
        }
        /// A change of a queued entity's weight (nice, shares of groups), in the form of 6.18.
        reweight_entity: choice ReweightEntity {
            linux "reweight_entity()";
            only EevdfForm in [V6_18] else InPlace;
            default_if_absent InPlace;
            /// Lag and deadline keep their worth at the average virtual runtime of before.
            InPlace = "in-place", "up to 6.12; 6.18.y from .45 on; 7.1 and later";
            /// The entity is placed anew, though the average counts it already: with each change its lag grows, and tasks
            /// beside a group whose shares change often starve.
            Placed = "placed", "6.13 to 7.0; 6.18.y up to .44";
        }
        /// The limit of the lag that a task keeps when it leaves its queue.
        lag_limit: choice LagLimit {
            key "eevdf.lag_limit";
            linux "entity_lag()";
            only FairClass in [Eevdf] else TwoSlices;
            default_if_absent TwoSlices;
            /// Two slices of its own, at least a tick.
            TwoSlices = "two-slices", "6.6 to 6.19";
            /// The longest slice in the queue, and a tick.
            MaxSliceAndTick = "max-slice-and-tick", "7.0 and later; 6.18.y from .17 on, 6.19.y from .9 on (or earlier)";
        }
        /// The timeline in which a task competes with tasks of other groups.
        group_tree: choice GroupTree {
            linux "enqueue_task_fair(), pick_task_fair(), __calc_prop_weight()";
            only FairClass in [Eevdf] else Nested;
            default_if_absent Nested;
            /// Its group's; the group's entity competes in the timeline of the group above.
            Nested = "nested", "up to 7.1";
            /// One timeline for the whole CPU, with the weight that remains of the task's own after the shares of
            /// its groups.
            Flat = "flat", "7.3";
        }
        /// The conversion of real time into virtual time.
        calc_delta: choice CalcDelta {
            key "eevdf.calc_delta";
            linux "__calc_delta()";
            only FairClass in [Eevdf] else Inverse;
            default_if_absent Inverse;
            /// Multiplication by the rounded inverse of the weight, without the weight's ten bits of fixed point.
            Inverse = "inverse", "6.6 to 7.0";
            /// A 64-bit division.
            Division = "division", "7.1 and later";
        }
        /// Scheduler features.
        features: table Features {}
        /// The numbers that util_est keeps for a task.
        util_est: choice UtilEstForm {
            linux "struct sched_avg, util_est_update()";
            /// Two: the last utilisation and a moving average; the larger one counts.
            EnqueuedAndEwma = "enqueued-and-ewma", "5.13 to 6.7";
            /// One, which rises at once and falls slowly.
            Single = "single", "6.8 and later";
        }
        /// When a sleeping task's util_est is updated.
        util_est_update: choice UtilEstUpdate {
            linux "dequeue_task_fair(), dequeue_entity()";
            /// With the utilisation as of this dequeue.
            AfterDequeue = "after-dequeue", "up to 6.11";
            /// With the utilisation of the last update before it.
            BeforeDequeue = "before-dequeue", "6.12 to 6.15";
            /// As `before-dequeue`, and also for a task whose utilisation exceeds its CPU's capacity.
            BeforeDequeueUnlimited = "before-dequeue-unlimited", "6.16 to 7.0";
            /// As the last step of the dequeue's update of averages, even if the dequeue is delayed, and also for a
            /// task whose utilisation exceeds its CPU's capacity.
            InDequeue = "in-dequeue", "7.1 and later";
        }
        /// The weight from which a new task's share of its queue's utilisation is computed.
        init_util_weight: choice InitUtilWeight {
            linux "post_init_entity_util_avg()";
            default_if_absent ScaledDown;
            /// The weight with its ten bits of fixed point, divided by a load without them. So on every queue with
            /// load the share reaches its limit, half of the CPU's unused utilisation.
            ScaledUp = "scaled-up", "up to 6.9";
            /// The weight in the unit of the load, so the task gets its true share of the queue's utilisation.
            ScaledDown = "scaled-down", "6.10 and later";
        }
        /// The changes after which a queue's `load_sum` is raised to the lowest value that fits its `load_avg`.
        attach_floor: choice AttachFloor {
            linux "enqueue_load_avg()";
            default_if_absent Absent;
            /// Only after load is taken away.
            Absent = "absent", "up to 6.19";
            /// After each change.
            Raised = "raised", "7.0 and later";
        }
        /// The width in which a group's `runnable_avg` is converted into its entity's `runnable_sum`.
        tg_runnable_sum: choice TgRunnableSum {
            linux "update_tg_cfs_runnable()";
            default_if_absent Bits32;
            /// 32 bits: it wraps from 88 tasks of one group on a CPU on.
            Bits32 = "32-bits", "up to 7.1";
            /// 64 bits.
            Bits64 = "64-bits", "7.3; 6.1.y from .192 on (or earlier), 6.12.y from .117 on (or earlier)";
        }
        /// The changes after which a CPU updates its contribution to a task group's `load_avg`.
        tg_load_avg: choice TgLoadAvg {
            linux "update_tg_load_avg()";
            default_if_absent OncePerMs;
            /// A change of its load by 1/64.
            Always = "always", "up to 6.6";
            /// A change of its load by 1/64, at most once a millisecond.
            OncePerMs = "once-per-ms", "6.7 to 7.1";
            /// As `once-per-ms`, and also a change of its `runnable_avg` by 1/64, which the group adds up as well.
            WithRunnable = "with-runnable", "7.3";
        }
        /// The weight of a task group's entity on a CPU.
        group_shares: choice GroupShares {
            linux "calc_group_shares(), /sys/kernel/debug/sched/cgroup_mode";
            default_if_absent Smp;
            /// The group's weight.
            Up = "up", "none (7.3, by cgroup_mode)";
            /// The group's weight times the CPU's share of the group's load.
            Smp = "smp", "up to 7.1 (7.3, by cgroup_mode)";
            /// As `smp`, times the number of the group's runnable tasks, at most the number of CPUs. Needs
            /// `tg_load_avg = "with-runnable"`, which counts the tasks.
            Concur = "concur", "7.3";
            /// As `smp`, times the number of CPUs, at most the weight of nice -20.
            Max = "max", "none (7.3, by cgroup_mode)";
            /// As `concur`, without the limit to the number of CPUs.
            Tasks = "tasks", "none (7.3, by cgroup_mode)";
        }
        /// `cpu.max`: the runtime that a run queue takes from its group's pool at once.
        cfs_bandwidth_slice: integer Ns {
            key "cfs_bandwidth_slice_us";
            linux "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";
            range 1..=4_294_967 us;
            default_if_absent 5_000;
        }
        /// `cpu.max`: what leaves a CPU's queues when a group has used up its runtime there.
        cfs_throttle: choice CfsThrottle {
            linux "throttle_cfs_rq(), throttle_cfs_rq_work()";
            default_if_absent Queue;
            /// The group's entity, with all tasks below it, at the next pick.
            Queue = "queue", "up to 6.17";
            /// Each task, on its way back to user space. A queue is throttled when a task is picked from it or put
            /// back.
            TaskAtPick = "task-at-pick", "6.18 to 7.1";
            /// Each task, on its way back to user space. A queue is throttled as soon as a charge finds no runtime.
            TaskAtCharge = "task-at-charge", "7.3";
        }
        /// `cpu.max`: the CPU that unthrottles a run queue.
        cfs_unthrottle: choice CfsUnthrottle {
            linux "distribute_cfs_runtime()";
            default_if_absent OwnCpu;
            /// The CPU whose timer has expired.
            Remote = "remote", "up to 6.2, 6.1.y";
            /// The run queue's own CPU, after an interrupt.
            OwnCpu = "own-cpu", "6.3 and later";
        }
        /// `cpu.max`: the time that counts as throttled, where the group's entity leaves.
        cfs_throttled_time: choice CfsThrottledTime {
            linux "throttle_cfs_rq(), cfs_rq->throttled_clock";
            default_if_absent WithTasks;
            /// All the time from throttling to unthrottling.
            Whole = "whole", "up to 6.5";
            /// The time during which a task waits in the queue.
            WithTasks = "with-tasks", "6.6 and later";
        }
        /// `cpu.max`: the beginning of a group's periods.
        cfs_period_timer: choice CfsPeriodTimer {
            linux "init_cfs_bandwidth()";
            default_if_absent Random;
            /// At multiples of the period since boot.
            Aligned = "aligned", "up to 6.3";
            /// At a random time, drawn for each group.
            Random = "random", "6.4 and later";
        }
        /// The signals of a sleeping task that leaves its queue while the queue's clock stands still, because the
        /// CPU is idle.
        migrate_se_pelt_lag: choice MigrateSePeltLag {
            linux "migrate_task_rq_fair()";
            default_if_absent Decayed;
            /// As of the queue's last update: the task arrives with the signals with which it fell asleep.
            Forgotten = "forgotten", "up to 5.19";
            /// Decayed by an estimate of the time since then.
            Decayed = "decayed", "6.0 and later";
        }
        /// Whether contention (`runnable_avg` above `util_avg`) raises a CPU's utilisation for schedutil, for EAS's
        /// highest utilisation and for the busiest queue of `migrate_util`.
        runnable_boost: choice RunnableBoost {
            linux "cpu_util(.., boost)";
            /// It does not.
            Off = "off", "up to 6.4";
            /// It raises util_avg and util_est, which counts a waking task twice.
            WithUtilEst = "with-util-est", "6.5.0 (and as posted)";
            /// It raises util_avg. For a task that is being placed only its utilisation is added or subtracted.
            On = "on", "6.5.y, 6.6 to 7.0";
            /// It raises util_avg. For a task that is being placed its `runnable_avg` is added or subtracted as
            /// well.
            WithTask = "with-task", "7.1 and later; 6.12.y from .107 on (or from .96 on), 6.18.y from .40 on";
        }
        }
    };
}
