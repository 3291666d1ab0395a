// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing.

macro_rules! balance {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// How long a task that has run counts as cache-hot, and the least cost of a newidle pass that is worth it.
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
        /// Which tasks keep a CPU that runs out of fair ones from looking for others.
        balance_fair: choice BalanceFair {
            linux "balance_fair(), pick_task_fair()";
            /// Any: it looks when no task of any class is runnable.
            NoTask = "no-task", "up to 6.11";
            /// Fair ones: it looks when none is runnable, whatever waits in higher classes.
            NoFairTask = "no-fair-task", "6.12.y, 6.18.y";
            /// Any: it looks while it picks, when no higher class has a task, and delayed ones have left.
            InPick = "in-pick", "7.3";
        }
        /// What tasks are to balancing whose dequeue is delayed.
        balance_delayed: choice BalanceDelayed {
            linux "h_nr_runnable, can_migrate_task()";
            unnamed LikeOthers;
            /// Tasks that wait: they are counted, and moved.
            LikeOthers = "like-others", "6.12.y; before it there are none";
            /// Load only: no fair tasks of their CPU, and they move only where load is to be moved.
            LoadOnly = "load-only", "6.18 and later";
        }
        /// Whether a busy CPU pulls tasks that are not eligible where they are.
        migrate_ineligible: choice MigrateIneligible {
            linux "task_is_ineligible_on_dst_cpu()";
            only FairClass in [Eevdf] else Always;
            unnamed Always;
            /// It does.
            Always = "always", "up to 6.12.y";
            /// Only after a pass that moved nothing.
            AfterFailure = "after-failure", "6.18 and later";
        }
        /// When a group counts as overloaded while EAS is possible.
        group_is_overloaded: choice GroupIsOverloaded {
            linux "group_is_overloaded()";
            unnamed ByTasks;
            /// As without EAS: more tasks than CPUs, which want more than there is.
            ByTasks = "by-tasks", "up to 6.18.y";
            /// If one of its CPUs is overutilized, too: not because of clamps or of tasks that wait only.
            ByOverutilization = "by-overutilization", "7.3";
        }
        /// Which misfits make their group a group with a misfit.
        group_misfit: choice GroupMisfit {
            linux "update_sg_lb_stats(): group_misfit_task_load";
            unnamed Any;
            /// All: a destination that cannot help leaves the group alone.
            Any = "any", "up to 6.18.y";
            /// Those that the destination can help: else the group is what it is without them.
            Helped = "helped", "7.3";
        }
        /// From which CPU a task that has it to itself is taken where capacities differ.
        find_src_rq: choice FindSrcRq {
            linux "sched_balance_find_src_rq()";
            unnamed Smaller;
            /// From a smaller one than the destination.
            Smaller = "smaller", "up to 6.18.y";
            /// Also from an equal one where there are clusters, and from one whose core has another busy thread.
            SmallerOrShared = "smaller-or-shared", "7.3";
        }
        /// Which idle CPU without a tick balances for all of them.
        find_new_ilb: choice FindNewIlb {
            linux "find_new_ilb()";
            unnamed FirstIdle;
            /// The first.
            FirstIdle = "first-idle", "up to 6.18.y";
            /// The first on a core that is idle as a whole, if there is one.
            IdleCore = "idle-core", "7.3";
        }
        /// What makes a newidle pass over a domain likely (NI_RANDOM).
        newidle_rate: choice NewidleRate {
            linux "update_newidle_stats(), NI_RATE";
            unnamed Success;
            /// How many of the last passes pulled something.
            Success = "success", "up to 6.18.y";
            /// That, and how seldom there was a reason to look: 256 in 1024 for each second that 512 tries took.
            SuccessAndTime = "success-and-time", "7.3";
        }
        /// Whether threads of a process are gathered in one last-level cache. Moves nothing where there is one.
        sched_cache: choice SchedCache {
            linux "CONFIG_SCHED_CACHE, /sys/kernel/debug/sched/llc_balancing/enabled";
            unnamed Absent;
            /// They are not.
            Absent = "absent", "up to 6.18.y";
            /// In the one where the process has run most of late, as long as its threads and the load leave room there.
            Llc = "llc", "7.3";
        }
        /// Limits of gathering threads in a cache; zeros without it.
        llc_balancing: table LlcBalancing {}
        /// Which domain or group says that siblings share tasks out evenly.
        prefer_sibling: choice PreferSibling {
            linux "update_sd_lb_stats()";
            /// The domain below the one that is balanced.
            ChildDomain = "child-domain", "up to 6.4";
            /// The domain below the busiest group.
            BusiestGroup = "busiest-group", "6.5 and later";
        }
        /// How many tasks more than its share the busiest group has.
        sibling_imbalance: choice SiblingImbalance {
            linux "sibling_imbalance()";
            /// The difference of the numbers of tasks.
            Difference = "difference", "up to 6.5";
            /// What is beyond the share of its cores, and nothing for a busy CPU.
            ByCores = "by-cores", "6.6 and later";
        }
        /// When a group of bigger CPUs without waiting tasks is left alone, since tasks run faster there.
        pick_busiest_bigger: choice PickBusiestBigger {
            linux "update_sd_pick_busiest()";
            /// If it is of the same type as the busiest so far; the first fully busy one is pulled from.
            AmongEqualTypes = "among-equal-types", "5.14 and later, 6.12.95, 6.18.y; but for the releases of the other arm";
            /// In any case.
            Always = "always", "6.1.192, 6.12.117, 7.3";
        }
        /// Which of several fully busy groups is the busiest.
        pick_busiest_full: choice PickBusiestFull {
            linux "update_sd_pick_busiest()";
            /// The first.
            First = "first", "up to 6.4";
            /// The last.
            Last = "last", "6.5 and later";
        }
        /// What balancing makes of hardware threads that share a core. Moves nothing where every CPU is a core.
        smt_balance: choice SmtBalance {
            linux "group_smt_balance, should_we_balance()";
            unnamed Cores;
            /// Nothing: the first idle CPU of a group balances for it.
            None = "none", "up to 6.5";
            /// A core of which two threads work is relieved by others, and idle cores balance first.
            Cores = "cores", "6.6 and later";
        }
        /// When a CPU takes work from others because it is preferred to them (x86 with ITMT, powerpc on shared
        /// processors).
        asym_packing: choice AsymPacking {
            linux "sched_asym(), asym_smt_can_pull_tasks()";
            unnamed IdleCore;
            /// It compares how many threads work in its core and in the other.
            BusyThreads = "busy-threads", "up to 6.4";
            /// Its core has to be idle as a whole.
            IdleCore = "idle-core", "6.5 and later";
        }
        /// Which of several groups with equally large misfits is the busiest.
        pick_busiest_misfit: choice PickBusiestMisfit {
            linux "update_sd_pick_busiest()";
            /// The last.
            Last = "last", "up to 6.8";
            /// The first.
            First = "first", "6.9 and later";
        }
        /// Whether a pass that could not pull a misfit has failed.
        misfit_failure: choice MisfitFailure {
            linux "sched_balance_rq(): nr_balance_failed";
            /// It has, as for other tasks: `nr_balance_failed` grows, and the interval doubles without a queue to pull
            /// from.
            Counted = "counted", "up to 6.9";
            /// It has not: neither happens.
            Ignored = "ignored", "6.10 and later";
        }
        /// When a running misfit is a reason to kick an idle CPU.
        check_misfit_status: choice CheckMisfitStatus {
            linux "check_misfit_status()";
            /// If there is a bigger CPU, or the capacity of its own is reduced.
            IfItCanBeHelped = "if-it-can-be-helped", "up to 6.9";
            /// Always.
            AnyMisfit = "any-misfit", "6.10 and later";
        }
        /// When a running task counts as misfit.
        misfit_status: choice MisfitStatus {
            linux "update_misfit_status()";
            /// Whenever it does not fit.
            AnyTask = "any-task", "up to 6.9";
            /// Whenever it does not fit, unless its affinity allows no larger CPU (`max_allowed_capacity`).
            UnlessOnLargestAllowed = "unless-on-largest-allowed", "6.10 and later";
        }
        }
    };
}
