// SPDX-License-Identifier: GPL-2.0-or-later
//! RT and DEADLINE.

macro_rules! rt {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The mechanism that keeps RT tasks from starving other tasks.
        rt_bandwidth: choice RtBandwidth {
            linux "rt.c; fair_server";
            /// RT queues are throttled after `rt_runtime_us` in each `rt_period_us`.
            Throttling = "throttling", "up to 6.11";
            /// A DEADLINE server runs fair tasks; `rt_runtime_us` bounds DEADLINE admission only.
            FairServer = "fair-server", "6.12 and later";
        }
        /// The fair server's treatment of idle time.
        fair_server_form: choice FairServerForm {
            linux "dl_server_update_idle(), update_curr_dl_se()";
            only RtBandwidth in [FairServer] else V6_12;
            default_if_absent V6_12;
            /// Idle time is charged when the CPU leaves the idle task. On a CPU that stays idle the server finally
            /// becomes runnable, and finds no task.
            V6_12 = "6.12", "6.12 (as of .95); 6.13 to 6.16 (assumed)";
            /// Idle time is charged when the CPU leaves the idle task. A runnable server does not count as a task,
            /// so an idle CPU ignores it; a server that used its runtime up too late for its timer begins a new
            /// period.
            V6_18 = "6.18", "6.18.y from .44 on; 6.17 and 6.18 (assumed)";
            /// Idle time is charged like fair time, also by ticks; a server whose runtime was used up by idle time
            /// stops at its timer. A runnable server does not count as a task; a server that used its runtime up
            /// too late for its timer begins a new period.
            V7_3 = "7.3", "6.19 and later";
        }
        /// Whether a running deadline task counts as an RT task when an RT task is placed.
        rt_task: choice RtTask {
            linux "rt_task() in select_task_rq_rt()";
            default_if_absent RtOnly;
            /// It does: the woken RT task looks for another CPU.
            OrDeadline = "or-deadline", "up to 6.11";
            /// It does not: the woken RT task waits behind schedutil's thread.
            RtOnly = "rt-only", "6.12 and later";
        }
        /// The CPUs that have RT or deadline tasks for others to pull.
        push_overload: choice PushOverload {
            linux "rt_rq->overloaded, dl_rq->overloaded";
            default_if_absent Pushable;
            /// Two tasks of the class are queued, the running one among them, and one of all may run elsewhere.
            Migratory = "migratory", "up to 6.6";
            /// A task of the class is queued that does not run and may run elsewhere.
            Pushable = "pushable", "6.7 and later";
        }
        /// The CPUs that the interrupt for pushing RT tasks visits.
        rto_next_cpu: choice RtoNextCpu {
            linux "rto_next_cpu()";
            default_if_absent Others;
            /// All that have RT tasks for others to pull, also the one that sends it.
            Any = "any", "up to 6.19 (seen in 5.19, 6.3.8, 6.6.57 and 6.14)";
            /// Never the one that sends it.
            Others = "others", "7.0 and later; 6.1.y from .176 on (or earlier), 6.12.y from .95 on (or earlier), 6.18.y from .14 on, 6.19.y from .9 on (or earlier)";
        }
        /// When the task that ran is put back into its queue.
        put_prev: choice PutPrev {
            linux "put_prev_task_balance(), put_prev_set_next_task()";
            default_if_absent WithNext;
            /// Before the next one is picked, which may be the same. An RT or deadline task that goes on pushes others away.
            /// A pick throttles only queues of the fair task that ran, and a switch asks for no runtime (`cpu.max`).
            BeforePick = "before-pick", "up to 6.11";
            /// When another one has been picked.
            WithNext = "with-next", "6.12 and later";
        }
        /// What follows when a running task changes its class.
        class_change: choice ClassChange {
            linux "check_class_changed(), sched_change_end()";
            default_if_absent Switched;
            /// The classes are told. A task that rises goes on.
            Switched = "switched", "up to 6.19";
            /// The class that it leaves is told before it is in another. It is looked at as if it had been woken, so a task
            /// that rises reschedules its CPU.
            Preempts = "preempts", "7.0 and later";
        }
        /// The time for which RT tasks may run in each period; without a limit they can starve other tasks.
        rt_runtime: limit Ns {
            key "rt_runtime_us";
            linux "/proc/sys/kernel/sched_rt_runtime_us";
            range 1..=4_000_000 us;
            none -1, "no limit";
            at_most "rt_period_us";
            releases 950_000 "up to 7.1";
            releases 1_000_000 "7.3";
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
        }
    };
}
