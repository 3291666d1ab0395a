// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: CFS or EEVDF, and the signals that it keeps.

macro_rules! fair {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// How the fair class divides time.
        fair: choice FairClass {
            linux "kernel/sched/fair.c";
            /// The smallest virtual runtime runs; buddies and granularities.
            Cfs = "cfs", "up to 6.5";
            /// The earliest virtual deadline of those that are owed time runs.
            Eevdf = "eevdf", "6.6 and later (as of 6.12)";
        }
        /// Tunables of CFS; zeros with EEVDF.
        cfs: table CfsTunables {}
        /// CFS: how long the running task may run before a tick preempts it.
        ideal_runtime: choice IdealRuntime {
            key "cfs.ideal_runtime";
            linux "check_preempt_tick()";
            only FairClass in [Cfs] else SchedSlice;
            unnamed SchedSlice;
            /// Its slice, which in a crowd of lighter tasks can be longer than the latency.
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
        }
        /// Form of EEVDF.
        eevdf_form: choice EevdfForm {
            linux "pick_eevdf(), update_curr(), wakeup_preempt_fair()";
            only FairClass in [Eevdf] else V6_12;
            unnamed V6_12;
            /// A slice is protected until its deadline; short slices preempt if they win the pick; lag is measured when a
            /// delayed task leaves.
            V6_12 = "6.12", "6.12.y";
            /// A slice is protected until the shortest one queued would be over, once per switch; short slices preempt if they win
            /// the pick without protection, forks and delayed tasks do not; a weight that changes places its entity anew.
            V6_18 = "6.18", "6.18.y from .33 on";
            /// A slice is protected until the shortest one queued has had its turn, once per switch; short slices preempt
            /// while eligible, forks do not; lag is measured when a task blocks, and then only improves, up to 0.
            V7_3 = "7.3", "7.3";
        }
        /// How much lag a task keeps that leaves its queue.
        lag_limit: choice LagLimit {
            key "eevdf.lag_limit";
            linux "entity_lag()";
            only FairClass in [Eevdf] else TwoSlices;
            unnamed TwoSlices;
            /// Two slices of its own, at least a tick.
            TwoSlices = "two-slices", "6.6 to 6.12.y, 6.18.y up to .16";
            /// The longest slice in the queue, and a tick.
            MaxSliceAndTick = "max-slice-and-tick", "6.18.y from .17 on, 7.3";
        }
        /// In which timeline a task competes with tasks of other groups.
        group_tree: choice GroupTree {
            linux "enqueue_task_fair(), pick_task_fair(), __calc_prop_weight()";
            only FairClass in [Eevdf] else Nested;
            unnamed Nested;
            /// In its group's; the group's entity competes in the timeline of the group above.
            Nested = "nested", "up to 6.18.y";
            /// In the one timeline of its CPU, with the weight that the groups above leave to it.
            Flat = "flat", "7.3";
        }
        /// How real time becomes virtual time.
        calc_delta: choice CalcDelta {
            key "eevdf.calc_delta";
            linux "__calc_delta()";
            only FairClass in [Eevdf] else Inverse;
            unnamed Inverse;
            /// By multiplication with the rounded inverse of a weight without its ten bits of fixed point.
            Inverse = "inverse", "6.6 to 6.18.y";
            /// By a division of 64 bits.
            Division = "division", "7.3";
        }
        /// Scheduler features.
        features: table Features {}
        /// What util_est keeps of a task.
        util_est: choice UtilEstForm {
            linux "struct sched_avg, util_est_update()";
            /// The last utilisation and a moving average; the larger counts.
            EnqueuedAndEwma = "enqueued-and-ewma", "5.13 to 6.7";
            /// One number that rises at once and falls slowly.
            Single = "single", "6.8 and later";
        }
        /// When a sleeping task's util_est is updated.
        util_est_update: choice UtilEstUpdate {
            linux "dequeue_task_fair(), dequeue_entity()";
            /// With the utilisation as of this dequeue.
            AfterDequeue = "after-dequeue", "up to 6.11";
            /// With the utilisation of the last update before it.
            BeforeDequeue = "before-dequeue", "6.12";
            /// So; a task that used more than its CPU can give learns as well.
            BeforeDequeueUnlimited = "before-dequeue-unlimited", "6.18";
            /// As the last step of this dequeue's update of averages, also where the dequeue is delayed; a task that used more
            /// than its CPU can give learns as well.
            InDequeue = "in-dequeue", "7.3";
        }
        /// What a new task's share of its queue's utilisation is computed with.
        init_util_weight: choice InitUtilWeight {
            linux "post_init_entity_util_avg()";
            unnamed ScaledDown;
            /// The weight with its ten bits of fixed point, against a load without: on a queue with any load the share
            /// is all that may be had, half of what is left of the CPU.
            ScaledUp = "scaled-up", "up to 6.9";
            /// The weight in the unit of the load: the task gets its share of the queue's.
            ScaledDown = "scaled-down", "6.10 and later";
        }
        /// Whether a queue's `load_sum` is raised to the least that fits its `load_avg` when load is added, too.
        attach_floor: choice AttachFloor {
            linux "enqueue_load_avg()";
            unnamed Absent;
            /// When load is taken away only.
            Absent = "absent", "up to 6.18.y";
            /// At each change.
            Raised = "raised", "7.3";
        }
        /// In how many bits a task group's `runnable_avg` becomes its entity's `runnable_sum`.
        tg_runnable_sum: choice TgRunnableSum {
            linux "update_tg_cfs_runnable()";
            unnamed Bits32;
            /// 32: from 88 tasks of one group on a CPU it wraps.
            Bits32 = "32-bits", "up to 6.12.95, 6.18.y";
            /// 64.
            Bits64 = "64-bits", "6.1.192, 6.12.117, 7.3";
        }
        /// How often a CPU may change its contribution to a task group's `load_avg`.
        tg_load_avg: choice TgLoadAvg {
            linux "update_tg_load_avg()";
            unnamed OncePerMs;
            /// Whenever its load has changed by 1/64.
            Always = "always", "up to 6.6";
            /// Whenever it has changed by 1/64, and at most once in a millisecond.
            OncePerMs = "once-per-ms", "6.7 to 6.18.y";
            /// So, or whenever its `runnable_avg` has, which is added up for the group as well.
            WithRunnable = "with-runnable", "7.3";
        }
        /// What a task group's entity on a CPU weighs, of the group's weight.
        group_shares: choice GroupShares {
            linux "calc_group_shares(), /sys/kernel/debug/sched/cgroup_mode";
            unnamed Smp;
            /// All of it.
            Up = "up", "7.3, as cgroup_mode";
            /// The CPU's part, as the CPU's load is of the group's.
            Smp = "smp", "up to 6.18.y; 7.3, as cgroup_mode";
            /// The CPU's part of as many times the weight as the group has runnable tasks, at most CPUs. Tasks are counted with
            /// `tg_load_avg = "with-runnable"`.
            Concur = "concur", "7.3";
            /// The CPU's part of as many times the weight as there are CPUs, at most that of nice -20.
            Max = "max", "7.3, as cgroup_mode";
            /// As `concur`, however many CPUs there are.
            Tasks = "tasks", "7.3, as cgroup_mode";
        }
        /// `cpu.max`: what a run queue asks its group for at once.
        cfs_bandwidth_slice: integer Ns {
            key "cfs_bandwidth_slice_us";
            linux "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";
            range 1..=4_294_967 us;
            unnamed 5_000;
        }
        /// `cpu.max`: who lets a run queue go on that was throttled.
        cfs_unthrottle: choice CfsUnthrottle {
            linux "distribute_cfs_runtime()";
            unnamed OwnCpu;
            /// The CPU whose timer has expired.
            Remote = "remote", "up to 6.2, 6.1.y";
            /// Its own CPU, which is interrupted for that.
            OwnCpu = "own-cpu", "6.3 and later";
        }
        /// `cpu.max`: when a group's periods begin.
        cfs_period_timer: choice CfsPeriodTimer {
            linux "init_cfs_bandwidth()";
            unnamed Random;
            /// At multiples of the period since boot.
            Aligned = "aligned", "up to 6.3";
            /// At a random time of its own.
            Random = "random", "6.4 and later";
        }
        /// A sleeper's signals when it leaves its queue, whose clock stands still while its CPU idles.
        migrate_se_pelt_lag: choice MigrateSePeltLag {
            linux "migrate_task_rq_fair()";
            unnamed Decayed;
            /// As of the queue's last update: it arrives as large as it fell asleep.
            Forgotten = "forgotten", "up to 5.19";
            /// The time since then is estimated, and they decay by it.
            Decayed = "decayed", "6.0 and later";
        }
        /// Whether contention (`runnable_avg` above `util_avg`) counts as utilisation for schedutil, for EAS's highest
        /// utilisation and for the busiest queue of `migrate_util`.
        runnable_boost: choice RunnableBoost {
            linux "cpu_util(.., boost)";
            /// It does not.
            Off = "off", "up to 6.4";
            /// It raises util_avg and util_est, which counts a waking task twice.
            WithUtilEst = "with-util-est", "6.5.0, and as posted";
            /// It raises util_avg. A task that is placed comes and goes with its utilisation only.
            On = "on", "6.5.y, 6.6 and later, up to 6.12.95 and 6.18.39";
            /// It raises util_avg. A task that is placed brings its own `runnable_avg`, or takes it away.
            WithTask = "with-task", "6.12.107 and later, 6.18.y from .40 on, 7.3; not yet 6.12.95";
        }
        }
    };
}
