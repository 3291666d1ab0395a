// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduler features.

use super::declare::{Setting, Value, With, feature_known_by, switch_from};
use super::{EevdfForm, FairClass, UtilEstForm};

declare! { []
    /// Scheduler features (`debugfs sched/features`), with the names there. A feature that a release lacks is
    /// false.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Features in "features." {
        /// A task keeps its lag while it sleeps.
        place_lag: feature { only FairClass in [Eevdf]; }
        /// A new task starts with half a slice.
        place_deadline_initial: feature { only FairClass in [Eevdf]; }
        /// A migrated task keeps its relative deadline.
        place_rel_deadline: feature { only FairClass in [Eevdf]; }
        /// A task keeps the CPU until its slice is used up.
        run_to_parity: feature { only FairClass in [Eevdf]; }
        /// A task with a shorter slice may preempt one whose slice is not used up.
        preempt_short: feature { only FairClass in [Eevdf]; }
        /// A task that falls asleep while it is not eligible stays queued until it is.
        delay_dequeue: feature { only FairClass in [Eevdf]; }
        /// A task with a delayed dequeue loses positive lag when it leaves the queue.
        delay_zero: feature { only FairClass in [Eevdf]; }
        /// A waking task gets only half a latency of credit.
        gentle_fair_sleepers: feature { only FairClass in [Cfs]; }
        /// A new task waits for one slice before it runs.
        start_debit: feature { only FairClass in [Cfs]; }
        /// The pick prefers the last woken task even if it did not preempt. Linux has it with EEVDF as well, from 6.6 on and by another rule from 6.19 on; that form is not modelled.
        next_buddy: feature { only FairClass in [Cfs]; }
        /// The pick prefers a preempted task afterwards.
        last_buddy: feature { only FairClass in [Cfs]; }
        /// The period counts the tasks of the whole hierarchy.
        alt_period: feature { only FairClass in [Cfs]; }
        /// No slice is shorter than min_granularity.
        base_slice: feature { only FairClass in [Cfs]; }
        /// The moving average of util_est rises at once (before 6.8).
        util_est_fastup: feature { only UtilEstForm in [EnqueuedAndEwma]; default_if_absent false; }
        /// Idle time limits the scan for an idle CPU (5.18; present and off in 6.1).
        sis_prop: feature { only FairClass in [Cfs]; }
        /// Utilisation limits the scan for an idle CPU (6.0 and later).
        sis_util: feature {}
        /// A woken task may preempt the running one.
        wakeup_preemption: feature {}
        /// Balancing does not move a buddy.
        cache_hot_buddy: feature {}
        /// Remote wakeups go through the wake list.
        ttwu_queue: feature {}
        /// Newidle balancing happens with a probability that follows its success (6.12.95; absent in 6.12.0).
        ni_random: feature {}
        /// `wake_affine` prefers an idle CPU.
        wa_idle: feature {}
        /// `wake_affine` compares loads.
        wa_weight: feature {}
        /// The comparison of WA_WEIGHT favours the waker's CPU by half of the imbalance that a domain tolerates.
        wa_bias: feature {}
        /// A task's utilisation is estimated across sleeps (util_est).
        util_est: feature {}
        /// Time in interrupts counts against a CPU's capacity (`avg_irq`).
        nontask_capacity: feature {}
        /// A timer ends the running task's slice if others wait (as in 7.3, where x86 and riscv have it on).
        hrtick: feature { only EevdfForm in [V7_3]; default_if_absent false; }
        /// A timer ends the running deadline task's runtime; needs `hrtick`.
        hrtick_dl: feature { only EevdfForm in [V7_3]; default_if_absent false; }
        /// A CPU whose priority falls does not pull RT tasks; it asks the CPUs with waiting RT tasks by an
        /// interrupt to push one.
        rt_push_ipi: feature {}
    }
}
