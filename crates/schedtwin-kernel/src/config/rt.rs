//! RT, DEADLINE, and utilisation clamps.

macro_rules! rt {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// What keeps RT tasks from starving the others.
        rt_bandwidth: choice RtBandwidth {
            linux "rt.c; fair_server";
            /// RT queues are throttled beyond `rt_runtime_us` per `rt_period_us`.
            Throttling = "throttling", "up to 6.11";
            /// A DEADLINE server runs fair tasks; `rt_runtime_us` bounds DEADLINE admission only.
            FairServer = "fair-server", "6.12";
        }
        /// Whether a deadline task that runs counts as an RT task where one of those is placed.
        rt_task: choice RtTask {
            linux "rt_task() in select_task_rq_rt()";
            unnamed RtOnly;
            /// It does: the wakee looks for another CPU.
            OrDeadline = "or-deadline", "up to 6.11";
            /// It does not: the wakee waits behind schedutil's thread.
            RtOnly = "rt-only", "6.12 and later";
        }
        /// What RT tasks may run in each period; without a limit they may starve the others.
        rt_runtime: limit Ns {
            key "rt_runtime_us";
            linux "/proc/sys/kernel/sched_rt_runtime_us";
            range 1..=4_000_000 us;
            none -1, "no limit";
            at_most "rt_period_us";
        }
        /// The period of `rt_runtime_us`.
        rt_period: integer Ns {
            key "rt_period_us";
            linux "/proc/sys/kernel/sched_rt_period_us";
            range 1_000..=4_000_000 us;
        }
        /// Fair server: runtime per period, 0 = off.
        fair_server_runtime: integer Ns {
            key "fair_server.runtime_us";
            linux "/sys/kernel/debug/sched/fair_server/cpu*/runtime";
            range 0..=4_194_304 us;
            at_most "fair_server.period_us";
            only RtBandwidth in [FairServer] else 0;
        }
        /// Fair server: period.
        fair_server_period: integer Ns {
            key "fair_server.period_us";
            linux "/sys/kernel/debug/sched/fair_server/cpu*/period";
            range 100..=4_194_304 us;
            only RtBandwidth in [FairServer] else 1_000_000;
        }
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
        /// When a task's clamps join its run queue's.
        uclamp_order: choice UclampOrder {
            linux "enqueue_task()";
            /// Before the class enqueues it, so the governor sees them.
            BeforeEnqueue = "before-enqueue", "up to 6.11; from 6.16";
            /// Afterwards: the governor runs with the clamps of the others.
            AfterEnqueue = "after-enqueue", "6.12 to 6.15";
        }
        }
    };
}
