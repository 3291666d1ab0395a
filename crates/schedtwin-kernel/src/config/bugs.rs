// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong rules of earlier releases that were corrected since: off in every kernel, on by name.
//!
//! The built-in kernels follow stable releases with their corrections. With one of these switches a kernel gets the wrong
//! rule back, so that its symptom can be reproduced, shrunk and bisected: `linux-6.12:bugs.delayed_group_weight=true`.
//!
//! **Rules for this section.** Each switch is named after its wrong rule, and asked where the rule is. It applies to
//! whatever kernel it is set in, as far as that has the mechanism, not only to the releases that had it. Each says
//! the releases of the mainline that had it, and the commit that corrected it; stable releases got most corrections
//! earlier. Random hunts leave the section out ([`Setting::is_bug`]): they check what must hold in a correct kernel.

use super::declare::{Setting, Value, switch_from};

macro_rules! bugs {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// Wrong rules that were corrected since.
        bugs: table Bugs {}
        }
    };
}

declare! { []
    /// Wrong rules of earlier releases, each of which a switch puts back.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Bugs in "bugs." {
        /// A group whose last task has left gets the weight that follows from its remaining load, though its entity may
        /// still wait for a delayed dequeue: what it owes or is owed then grows in virtual time. 6.12; corrected in 6.13 by
        /// 66951e4860d3. Needs groups that nest: in one timeline for all, group entities are not delayed.
        delayed_group_weight: switch {
            linux "update_cfs_group()";
            unnamed false;
        }
        /// The slice of a running idle entity stays protected when a normal one wakes, so that the preemption's pick may
        /// choose the idle one again. 6.6 to 6.14; corrected in 6.15 by f553741ac8c0. EEVDF only.
        protected_idle_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            unnamed false;
        }
        /// A wakeup compares the policies of the two tasks before it looks at their groups' `cpu.idle`: a normal task of an idle
        /// group preempts a `SCHED_IDLE` task of a normal group. 5.15 to 6.11; corrected in 6.12 by faa42d29419d. CFS
        /// always does so here.
        idle_preempt_by_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            unnamed false;
        }
        /// The fair server is charged as a deadline task is: time at a low clock or on a small CPU counts less, so RT waits
        /// longer for it. 6.12 to 6.15; corrected in 6.16 by fc975cfb3639.
        fair_server_scaled: switch {
            linux "update_curr_dl_se(), dl_server_update_idle_time()";
            unnamed false;
        }
        /// A fair server whose timer finds no fair task gets its runtime anew and stays active, but neither queued nor with
        /// a timer; a task that comes later does not start it. 6.17-rc1 to rc7; corrected in 6.17 by 4ae8d9aa9f9d.
        fair_server_stuck: switch {
            linux "dl_server_timer()";
            unnamed false;
        }
        /// A cap does not lift the rule that keeps the clock of a CPU that has not been idle, where the CPU has a clock of its
        /// own: a capped task keeps a high clock. 5.3 to 5.17; corrected in 5.18 by 7a17e1db1265.
        hold_above_cap: switch {
            linux "sugov_update_single_freq()";
            unnamed false;
        }
        /// A changed limit does not lift that rule either: a busy CPU asks for the old frequency until it has been idle. 4.18
        /// to 5.2; corrected in 5.3 by 600f5badb78c. Only where schedutil switches by itself; a thread's driver
        /// gets new limits at once.
        hold_above_limit: switch {
            linux "sugov_update_single(), sugov_update_single_freq()";
            unnamed false;
        }
        /// Where utilisation does not scale with the clock, requests refer to the present frequency without a quarter on top, so
        /// that none is above it. 6.8-rc1; corrected in 6.8 by e37617c8e53a. Only with `effective_cpu_util = "clamp-last"`
        /// and without frequency invariance.
        no_headroom_without_invariance: switch {
            linux "get_capacity_ref_freq()";
            unnamed false;
        }
        /// At boot a run queue counts as one with tasks: the caps of its first tasks have no effect until all of them have
        /// left. 5.9 to 5.15; corrected in 5.16 by 315c4f884800.
        first_cap_ignored: switch {
            linux "init_uclamp_rq()";
            unnamed false;
        }
        /// The cap that an idle run queue retains of its last task counts beside that of a task that is being placed there. 5.3
        /// to 5.13; corrected in 5.14 by 3e1493f46390.
        idle_clamp_counts: switch {
            linux "uclamp_rq_util_with()";
            unnamed false;
        }
        /// A clamped utilisation has to fit into 80 % of a CPU, as one without clamps has: a minimum of 1024 fits nowhere. And
        /// a CPU counts as overutilised whatever its tasks' caps are. 5.3 to 6.1; corrected in 6.2 by 48d5e9daa8b7,
        /// b48e16a69792, 244226035a1f and c56ab1b3506b.
        clamps_with_margin: switch {
            linux "task_fits_capacity(), find_energy_efficient_cpu(), cpu_overutilized()";
            unnamed false;
        }
        /// A CPU that was saturated and goes idle after a task of RT or DEADLINE gives idle time back that it did not
        /// have: utilisations never fall. 5.4 to 6.17; corrected in 6.18 by 17e3e88ed0b6.
        lost_idle_time_unseen: switch {
            linux "pick_next_task_fair(), update_idle_rq_clock_pelt()";
            unnamed false;
        }
        /// A task's util_est leaves its CPU's sum after the dequeue, in which schedutil still counts it. 4.17 to 5.11; corrected
        /// in 5.12 by 8c1f560c1ea3.
        util_est_leaves_late: switch {
            linux "dequeue_task_fair()";
            unnamed false;
        }
        /// A change of a queued entity's weight leaves its virtual runtime where it is, so that its lag is worth more or less
        /// than before. 6.6; corrected in 6.7 by eab03c23c2a1. EEVDF only.
        reweight_keeps_vruntime: switch {
            linux "reweight_entity()";
            unnamed false;
        }
        /// A fair task that becomes `SCHED_IDLE` gets its new weight without a change of its queue's load, its lag or its
        /// own load. 4.15 to 6.10; corrected in 6.11 by d32960528702.
        idle_policy_keeps_load: switch {
            linux "set_load_weight()";
            unnamed false;
        }
        /// A new task's first enqueue can make its domain overutilised, with the utilisation that is guessed for it. 5.0 to
        /// 5.9; corrected in 5.10 by 8e1ac4299a6e.
        fork_overutilises: switch {
            linux "enqueue_task_fair()";
            unnamed false;
        }
    }
}
