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
        /// 66951e4860d3. With one timeline for all groups no group's entity is delayed, and only averages of load move.
        delayed_group_weight: switch {
            linux "update_cfs_group()";
            default_if_absent false;
        }
        /// The slice of a running idle entity stays protected when a normal one wakes, so that the preemption's pick may
        /// choose the idle one again. 6.6 to 6.14; corrected in 6.15 by f553741ac8c0. EEVDF only.
        protected_idle_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            default_if_absent false;
        }
        /// A wakeup compares the policies of the two tasks before it looks at their groups' `cpu.idle`: a normal task of an idle
        /// group preempts a `SCHED_IDLE` task of a normal group, which in its turn waits for it. 5.15 to 6.11; corrected in
        /// 6.12 by faa42d29419d. CFS always does so here.
        idle_preempt_by_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            default_if_absent false;
        }
        /// The fair server is charged as a deadline task is: time at a low clock or on a small CPU counts less, so RT waits
        /// longer for it. 6.12 to 6.15; corrected in 6.16 by fc975cfb3639.
        fair_server_scaled: switch {
            linux "update_curr_dl_se(), dl_server_update_idle_time()";
            default_if_absent false;
        }
        /// A fair server whose timer finds no fair task gets its runtime anew and stays active, but neither queued nor with
        /// a timer; a task that comes later does not start it. 6.17-rc1 to rc7; corrected in 6.17 by 4ae8d9aa9f9d.
        fair_server_stuck: switch {
            linux "dl_server_timer()";
            default_if_absent false;
        }
        /// A cap does not lift the rule that keeps the clock of a CPU that has not been idle, where the CPU has a clock of its
        /// own: a capped task keeps a high clock. 5.3 to 5.17; corrected in 5.18 by 7a17e1db1265.
        hold_above_cap: switch {
            linux "sugov_update_single_freq()";
            default_if_absent false;
        }
        /// A changed limit does not lift that rule either: a busy CPU asks for the old frequency until it has been idle. 4.18
        /// to 5.2; corrected in 5.3 by 600f5badb78c. Only where schedutil switches by itself; a thread's driver
        /// gets new limits at once.
        hold_above_limit: switch {
            linux "sugov_update_single(), sugov_update_single_freq()";
            default_if_absent false;
        }
        /// Where utilisation does not scale with the clock, requests refer to the present frequency without a quarter on top, so
        /// that none is above it. 6.8-rc1; corrected in 6.8 by e37617c8e53a. Only with `effective_cpu_util = "clamp-last"`
        /// and without frequency invariance.
        no_headroom_without_invariance: switch {
            linux "get_capacity_ref_freq()";
            default_if_absent false;
        }
        /// At boot a run queue counts as one with tasks: caps have no effect until a task without one was the last to
        /// leave. 5.9 to 5.15; corrected in 5.16 by 315c4f884800.
        first_cap_ignored: switch {
            linux "init_uclamp_rq()";
            default_if_absent false;
        }
        /// The cap that an idle run queue retains of its last task counts beside that of a task that is being placed there. 5.3
        /// to 5.13; corrected in 5.14 by 3e1493f46390.
        idle_clamp_counts: switch {
            linux "uclamp_rq_util_with()";
            default_if_absent false;
        }
        /// A clamped utilisation has to fit into 80 % of a CPU, as one without clamps has: a minimum of 1024 fits nowhere. And
        /// a CPU counts as overutilised whatever its tasks' caps are. 5.3 to 6.1; corrected in 6.2 by 48d5e9daa8b7,
        /// b48e16a69792, 244226035a1f and c56ab1b3506b.
        clamps_with_margin: switch {
            linux "task_fits_capacity(), find_energy_efficient_cpu(), cpu_overutilized()";
            default_if_absent false;
        }
        /// A CPU that was saturated and goes idle after a task of RT or DEADLINE gives idle time back that it did not
        /// have: utilisations never fall. 5.4 to 6.17; corrected in 6.18 by 17e3e88ed0b6.
        lost_idle_time_unseen: switch {
            linux "pick_next_task_fair(), update_idle_rq_clock_pelt()";
            default_if_absent false;
        }
        /// A task's util_est leaves its CPU's sum after the dequeue, in which schedutil still counts it. 4.17 to 5.11; corrected
        /// in 5.12 by 8c1f560c1ea3.
        util_est_leaves_late: switch {
            linux "dequeue_task_fair()";
            default_if_absent false;
        }
        /// A change of a queued entity's weight leaves its virtual runtime where it is, so that its lag is worth more or less
        /// than before. 6.6; corrected in 6.7 by eab03c23c2a1. EEVDF only.
        reweight_keeps_vruntime: switch {
            linux "reweight_entity()";
            default_if_absent false;
        }
        /// The average virtual runtime by which a queued entity is reweighted is that without the entity, and without the time
        /// that the running one has had since it was last charged. 6.7 and 6.8; corrected in 6.9 by afae8002b4fd and
        /// 11b1b8bc2b98. EEVDF with groups that nest.
        reweight_stale_average: switch {
            linux "reweight_entity(), reweight_eevdf()";
            default_if_absent false;
        }
        /// A fair task that becomes `SCHED_IDLE` gets its new weight without a change of its queue's load, its lag or its
        /// own load. 4.15 to 6.10; corrected in 6.11 by d32960528702.
        idle_policy_keeps_load: switch {
            linux "set_load_weight()";
            default_if_absent false;
        }
        /// A new task's first enqueue can make its domain overutilised, with the utilisation that is guessed for it. 5.0 to
        /// 5.9; corrected in 5.10 by 8e1ac4299a6e.
        fork_overutilises: switch {
            linux "enqueue_task_fair()";
            default_if_absent false;
        }
        /// Within a last-level cache, too, an idle CPU pulls the utilisation that it has capacity for, and not tasks until both
        /// sides have as many. 5.5 to 5.9; corrected in 5.10 by 16b0a7a1a0af.
        util_imbalance_in_llc: switch {
            linux "calculate_imbalance()";
            default_if_absent false;
        }
        /// The amount that a fully busy group pulls is computed also where its load is above the average: the difference wraps,
        /// and load goes towards the busier side. 5.5 to 6.2; corrected in 6.3 by 91dcf1e8068e.
        imbalance_overflows: switch {
            linux "calculate_imbalance()";
            default_if_absent false;
        }
        /// An idle CPU does not look whether the only fair task of another one has little of it beside RT, DEADLINE and
        /// interrupts. 5.5 to 5.19; corrected in 6.0 by c82a69629c53. Where capacities do not differ.
        reduced_capacity_ignored: switch {
            linux "update_sg_lb_stats()";
            default_if_absent false;
        }
        /// An idle CPU that balances for others gives up as soon as it is asked to reschedule, which is how a polling CPU
        /// is told that it has been kicked. 5.8 to 6.12; corrected in 6.13 by ff47a0acfcce.
        ilb_abort_by_need_resched: switch {
            linux "_nohz_idle_balance()";
            default_if_absent false;
        }
        /// A task's load in the hierarchy may be 0: then moving it does not lessen an imbalance, and as a misfit it gets no
        /// help. Up to 5.7; corrected in 5.8 by 01cfcde9c26d.
        h_load_zero: switch {
            linux "detach_tasks(), update_misfit_status()";
            default_if_absent false;
        }
        /// A newidle pass that moves nothing raises its domain's cost by half, up to the cost of a migration, and soon no
        /// idle time is long enough for another one. 6.17 and 6.18 up to .2; corrected in 6.19 by d206fbad9328.
        newidle_cost_raised_by_failure: switch {
            linux "sched_balance_newidle()";
            default_if_absent false;
        }
        /// `cpu.max`: a queue that is throttled is the first to get runtime, not the last; with little to hand out the others
        /// wait for ever. 3.17 to 4.18; corrected in 4.19 by baa9be4ffb55.
        throttled_first: switch {
            linux "throttle_cfs_rq()";
            default_if_absent false;
        }
        /// `cpu.max`: what a queue has left of its slice is lost when the next period begins. 4.18 to 5.3; corrected in 5.4 by
        /// de53fd7aedb1.
        slices_expire: switch {
            linux "expire_cfs_rq_runtime()";
            default_if_absent false;
        }
        /// A group's queue of less than the smallest weight counts as without load, so its group gets the least share. Up to
        /// 5.6; corrected in 5.7 by 26cf52229efc. Here in the group's share alone, not in the averages of load, in which such an
        /// entity still weighs something.
        group_load_zero: switch {
            linux "scale_load_down(), calc_group_shares()";
            default_if_absent false;
        }
        /// The tick is stopped before the idle state is chosen: a CPU that expects to be woken soon, and is not, stays in a
        /// shallow state until its next timer. Up to 4.16; corrected in 4.17 by 554c8aa8ecad and its series.
        tick_stopped_first: switch {
            linux "tick_nohz_idle_enter(), cpuidle_idle_call()";
            default_if_absent false;
        }
        /// The polling state has no limit: it lasts until somebody asks for the CPU. Up to 4.16; corrected in 4.17 by
        /// a37b969a61c1.
        poll_without_limit: switch {
            linux "poll_idle()";
            default_if_absent false;
        }
        /// The polling state lasts as long as the first deeper state needs to be worth it, and be that only 2 µs. 4.20 to 5.9;
        /// corrected in 5.10 by 7a25759eaa04.
        poll_too_short: switch {
            linux "cpuidle_poll_time()";
            default_if_absent false;
        }
        /// menu takes a state in place of polling also if leaving it takes longer than the sleep that it predicts. 6.17;
        /// corrected in 6.18 by db86f55bf81a. Forms from 6.12 on.
        menu_drops_polling: switch {
            linux "menu_select()";
            default_if_absent false;
        }
    }
}
