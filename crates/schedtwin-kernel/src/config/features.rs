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
        place_lag: feature {
            only FairClass in [Eevdf];
            releases true "6.6 and later";
        }
        /// A new task starts with half a slice.
        place_deadline_initial: feature {
            only FairClass in [Eevdf];
            releases true "6.6 and later";
        }
        /// A migrated task keeps its relative deadline.
        place_rel_deadline: feature {
            only FairClass in [Eevdf];
            releases false "6.6 to 6.11";
            releases true "6.12 and later";
        }
        /// A task keeps the CPU until its slice is used up, while it is eligible.
        run_to_parity: feature {
            only FairClass in [Eevdf];
            releases true "6.6 and later";
        }
        /// A task with a shorter slice may preempt one whose slice is not used up.
        preempt_short: feature {
            only FairClass in [Eevdf];
            releases false "6.6 to 6.11";
            releases true "6.12 and later";
        }
        /// A task that falls asleep while it is not eligible stays queued until it is.
        delay_dequeue: feature {
            only FairClass in [Eevdf];
            releases false "6.6 to 6.11";
            releases true "6.12 and later";
        }
        /// A task with a delayed dequeue loses positive lag when it leaves the queue.
        delay_zero: feature {
            only FairClass in [Eevdf];
            releases false "6.6 to 6.11";
            releases true "6.12 and later";
        }
        /// A waking task gets only half a latency of credit.
        gentle_fair_sleepers: feature {
            only FairClass in [Cfs];
            releases true "up to 6.5";
        }
        /// A new task waits for one slice before it runs.
        start_debit: feature {
            only FairClass in [Cfs];
            releases true "up to 6.5";
        }
        /// The pick prefers the last woken task even if it did not preempt. Linux has it with EEVDF as well, from 6.6 on and by another rule from 6.19 on; that form is not modelled.
        next_buddy: feature {
            only FairClass in [Cfs];
            releases false "up to 6.5";
        }
        /// The pick prefers a preempted task afterwards.
        last_buddy: feature {
            only FairClass in [Cfs];
            releases true "up to 6.5";
        }
        /// The period counts the tasks of the whole hierarchy.
        alt_period: feature {
            only FairClass in [Cfs];
            releases false "up to 5.12";
            releases true "5.13 to 6.5";
        }
        /// No slice is shorter than min_granularity.
        base_slice: feature {
            only FairClass in [Cfs];
            releases false "up to 5.12";
            releases true "5.13 to 6.5";
        }
        /// The moving average of util_est rises at once (before 6.8).
        util_est_fastup: feature {
            only UtilEstForm in [EnqueuedAndEwma]; default_if_absent false;
            releases false "up to 5.4";
            releases true "5.5 to 6.7";
        }
        /// Idle time limits the scan for an idle CPU (present and off in 6.1).
        sis_prop: feature {
            only FairClass in [Cfs];
            releases false "up to 4.12; 6.0 and later";
            releases true "4.13 to 5.19";
        }
        /// Utilisation limits the scan for an idle CPU.
        sis_util: feature {
            releases false "up to 5.19";
            releases true "6.0 and later";
        }
        /// A woken task may preempt the running one.
        wakeup_preemption: feature {}
        /// Balancing does not move a buddy.
        cache_hot_buddy: feature {}
        /// Remote wakeups go through the wake list.
        ttwu_queue: feature {}
        /// Newidle balancing happens with a probability that follows its success.
        ni_random: feature {
            releases false "up to 6.18";
            releases true "6.19 and later; 6.1.y from .160 on (or earlier, assumed), 6.6.y from .120 on, 6.12.y from .65 on (or earlier, assumed), 6.18.y from .5 on";
        }
        /// `wake_affine` prefers an idle CPU.
        wa_idle: feature {}
        /// `wake_affine` compares loads.
        wa_weight: feature {}
        /// The comparison of WA_WEIGHT favours the waker's CPU by half of the imbalance that a domain tolerates.
        wa_bias: feature {}
        /// A task's utilisation is estimated across sleeps (util_est).
        util_est: feature {
            releases false "up to 4.16";
            releases true "4.17 and later";
        }
        /// Time in interrupts counts against a CPU's capacity (`avg_irq`).
        nontask_capacity: feature {}
        /// A timer ends the running task's slice if others wait (as in 7.3, where x86 and riscv have it on).
        hrtick: feature { only EevdfForm in [V7_3]; default_if_absent false; }
        /// A timer ends the running deadline task's runtime; needs `hrtick`.
        hrtick_dl: feature { only EevdfForm in [V7_3]; default_if_absent false; }
        /// A CPU whose priority falls does not pull RT tasks; it asks the CPUs with waiting RT tasks by an
        /// interrupt to push one.
        rt_push_ipi: feature {
            releases false "7.3; 6.1.y from .192 on (or earlier), 6.12.y from .117 on (or earlier), 6.18.y from .39 on, 7.1.y from .5 on (or earlier)";
            releases true "up to 7.1";
        }
    }
}
