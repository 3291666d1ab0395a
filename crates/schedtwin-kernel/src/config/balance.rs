// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing.

macro_rules! balance {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The time for which a task counts as cache-hot after it has run, and the lower bound of a queue's
        /// `max_idle_balance_cost`, which limits `avg_idle`.
        migration_cost: integer Ns {
            key "migration_cost_ns";
            linux "/sys/kernel/debug/sched/migration_cost_ns";
            range 0..=1_000_000_000 ns;
        }
        /// The most tasks that one balance pass looks at.
        nr_migrate: integer u32 {
            linux "/sys/kernel/debug/sched/nr_migrate";
            range 1..=1024;
        }
        /// The runnable tasks that keep a CPU from newidle balancing.
        balance_fair: choice BalanceFair {
            linux "balance_fair(), pick_task_fair()";
            /// Tasks of any class: the CPU balances when no task at all is runnable.
            NoTask = "no-task", "up to 6.11";
            /// Fair tasks: the CPU balances when none is runnable, even if tasks of higher classes are.
            NoFairTask = "no-fair-task", "6.12 to 6.18";
            /// Tasks of any class; the CPU balances within the pick, when no higher class has a task and delayed
            /// tasks have left.
            InPick = "in-pick", "6.19 and later";
        }
        /// The treatment of tasks with a delayed dequeue in balancing.
        balance_delayed: choice BalanceDelayed {
            linux "h_nr_runnable, can_migrate_task()";
            default_if_absent LikeOthers;
            /// Like waiting tasks: they are counted, and moved.
            LikeOthers = "like-others", "up to 6.13 (before 6.12 there are none)";
            /// As load only: they do not count as tasks of their CPU, and move only if load is to be moved.
            LoadOnly = "load-only", "6.14 and later";
        }
        /// Whether a busy CPU pulls tasks that are not eligible in their queue.
        migrate_ineligible: choice MigrateIneligible {
            linux "task_is_ineligible_on_dst_cpu()";
            only FairClass in [Eevdf] else Always;
            default_if_absent Always;
            /// It does.
            Always = "always", "up to 6.13";
            /// Only after a pass that moved nothing.
            AfterFailure = "after-failure", "6.14 and later";
        }
        /// The largest task that a pass moves whose imbalance is utilisation.
        detach_util: choice DetachUtil {
            linux "detach_tasks()";
            default_if_absent ByFailures;
            /// One that is not larger than the imbalance.
            Whole = "whole", "5.5 to 6.7; 5.10.y (assumed), 5.15.y (assumed)";
            /// The same, but each pass that has failed halves what a task counts.
            ByFailures = "by-failures", "6.8 and later; 6.1.y from .192 on (or earlier), 6.6.y from .139 on (or earlier, assumed)";
        }
        /// The condition on which a group counts as overloaded while EAS is possible.
        group_is_overloaded: choice GroupIsOverloaded {
            linux "group_is_overloaded()";
            default_if_absent ByTasks;
            /// As without EAS: it has more tasks than CPUs, and their demand exceeds its capacity.
            ByTasks = "by-tasks", "up to 7.0";
            /// As `by-tasks`, and one of its CPUs must be overutilized, so that clamps or waiting tasks alone are
            /// not enough.
            ByOverutilization = "by-overutilization", "7.1 and later";
        }
        /// The misfit tasks that make their group a misfit group.
        group_misfit: choice GroupMisfit {
            linux "update_sg_lb_stats(): group_misfit_task_load";
            default_if_absent Any;
            /// All; a destination that cannot help does not pull from the group.
            Any = "any", "up to 7.1";
            /// Those that fit the destination better; other misfit tasks do not change the group's type.
            Helped = "helped", "7.3";
        }
        /// The CPUs from which balancing takes a single running task where capacities differ.
        find_src_rq: choice FindSrcRq {
            linux "sched_balance_find_src_rq()";
            default_if_absent Smaller;
            /// Those smaller than the destination.
            Smaller = "smaller", "up to 7.1";
            /// Also equal ones where there are clusters, and ones whose core has another busy thread.
            SmallerOrShared = "smaller-or-shared", "7.3";
        }
        /// The CPUs of a group that count when a fork or exec compares groups.
        dst_group_stats: choice DstGroupStats {
            linux "update_sg_wakeup_stats()";
            default_if_absent AllowedCpus;
            /// All.
            AllCpus = "all-cpus", "up to 6.18";
            /// Those that the task may use.
            AllowedCpus = "allowed-cpus", "6.19 and later; 6.1.y from .192 on (or earlier), 6.12.y from .107 on, 6.18.y from .39 on";
        }
        /// The idle CPU that balances for all idle CPUs without a tick.
        find_new_ilb: choice FindNewIlb {
            linux "find_new_ilb()";
            default_if_absent FirstIdle;
            /// The first.
            FirstIdle = "first-idle", "up to 7.1";
            /// The first on a completely idle core, if there is one.
            IdleCore = "idle-core", "7.3";
        }
        /// The inputs of the probability of a newidle pass over a domain (NI_RANDOM).
        newidle_rate: choice NewidleRate {
            linux "update_newidle_stats(), NI_RATE";
            default_if_absent Success;
            /// The share of recent passes that pulled a task.
            Success = "success", "up to 7.0";
            /// The share of recent passes that pulled a task, plus 256 in 1024 for each second that the last 512
            /// tries took.
            SuccessAndTime = "success-and-time", "7.1 and later";
        }
        /// Whether threads of a process are gathered in one last-level cache. No effect on machines with a single
        /// one.
        sched_cache: choice SchedCache {
            linux "CONFIG_SCHED_CACHE, /sys/kernel/debug/sched/llc_balancing/enabled";
            default_if_absent Absent;
            /// They are not.
            Absent = "absent", "up to 7.1";
            /// They are, in the cache where the process has run most recently, unless the cache has too many of its
            /// threads or too much load.
            Llc = "llc", "7.3";
        }
        /// Limits of gathering threads in a cache; zeros without it.
        llc_balancing: table LlcBalancing {}
        /// The domain or group whose flag says that siblings spread tasks evenly.
        prefer_sibling: choice PreferSibling {
            linux "update_sd_lb_stats()";
            /// The domain below the one that is balanced.
            ChildDomain = "child-domain", "up to 6.4";
            /// The domain below the busiest group.
            BusiestGroup = "busiest-group", "6.5 and later";
        }
        /// The imbalance of the busiest group towards its sibling, in tasks.
        sibling_imbalance: choice SiblingImbalance {
            linux "sibling_imbalance()";
            /// The difference between the numbers of tasks.
            Difference = "difference", "up to 6.5";
            /// The number of tasks beyond the share of its cores; a busy CPU pulls nothing.
            ByCores = "by-cores", "6.6 and later";
        }
        /// The condition on which a group of bigger CPUs without waiting tasks is left alone, because tasks run
        /// faster there.
        pick_busiest_bigger: choice PickBusiestBigger {
            linux "update_sd_pick_busiest()";
            /// It has the same type as the busiest group so far; from the first fully busy group tasks are pulled.
            AmongEqualTypes = "among-equal-types", "5.14 to 7.1";
            /// None: it is always left alone.
            Always = "always", "7.3; 6.1.y from .192 on (or earlier), 6.12.y from .117 on (or earlier)";
        }
        /// The busiest of several fully busy groups.
        pick_busiest_full: choice PickBusiestFull {
            linux "update_sd_pick_busiest()";
            /// The first.
            First = "first", "up to 6.4";
            /// The last.
            Last = "last", "6.5 and later";
        }
        /// The treatment of hardware threads that share a core in balancing. No effect on machines without hardware
        /// threads.
        smt_balance: choice SmtBalance {
            linux "group_smt_balance, should_we_balance()";
            default_if_absent Cores;
            /// Like CPUs: the first idle CPU of a group balances for it.
            None = "none", "up to 6.5";
            /// Other cores pull tasks from a core with two busy threads, and idle cores balance first.
            Cores = "cores", "6.6 and later";
        }
        /// The condition on which a CPU pulls tasks because it is preferred to others (x86 with ITMT, powerpc on
        /// shared processors).
        asym_packing: choice AsymPacking {
            linux "sched_asym(), asym_smt_can_pull_tasks()";
            default_if_absent IdleCore;
            /// The numbers of busy threads in its core and in the other decide.
            BusyThreads = "busy-threads", "up to 6.4";
            /// Its core must be completely idle.
            IdleCore = "idle-core", "6.5 and later";
        }
        /// The busiest of several groups with equally large misfit tasks.
        pick_busiest_misfit: choice PickBusiestMisfit {
            linux "update_sd_pick_busiest()";
            /// The last.
            Last = "last", "up to 6.8";
            /// The first.
            First = "first", "6.9 and later";
        }
        /// Whether a pass that could not pull a misfit task counts as failed.
        misfit_failure: choice MisfitFailure {
            linux "sched_balance_rq(): nr_balance_failed";
            /// It does, as for other tasks: `nr_balance_failed` grows, and without a queue to pull from the
            /// interval doubles.
            Counted = "counted", "up to 6.9";
            /// It does not.
            Ignored = "ignored", "6.10 and later";
        }
        /// The condition on which a running misfit task is a reason to kick an idle CPU.
        check_misfit_status: choice CheckMisfitStatus {
            linux "check_misfit_status()";
            /// There is a bigger CPU, or the capacity of the task's own CPU is reduced.
            IfItCanBeHelped = "if-it-can-be-helped", "up to 6.9";
            /// None: any running misfit task is a reason.
            AnyMisfit = "any-misfit", "6.10 and later";
        }
        /// The condition on which a running task counts as misfit.
        misfit_status: choice MisfitStatus {
            linux "update_misfit_status()";
            /// It does not fit its CPU.
            AnyTask = "any-task", "up to 6.9";
            /// It does not fit its CPU, and its affinity allows a larger one (`max_allowed_capacity`).
            UnlessOnLargestAllowed = "unless-on-largest-allowed", "6.10 and later";
        }
        }
    };
}
