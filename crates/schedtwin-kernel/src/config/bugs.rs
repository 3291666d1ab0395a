// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong rules of earlier releases that were corrected since: off in kernels with a file, on in
//! composed ones whose release had them, and on by name.
//!
//! The built-in files follow stable releases with their corrections. With one of these switches a
//! kernel gets the wrong rule back, so that its symptom can be reproduced, shrunk and bisected:
//! `linux-6.12:bugs.delayed_group_weight=true`.
//!
//! **Rules for this section.** Each switch is named after its wrong rule, and asked where the rule
//! is. It applies to whatever kernel it is set in, as far as that has the mechanism, not only to
//! the releases that had it. `releases true` names those, of the mainline; stable releases got many
//! corrections early, so for these a series needs words of its own: `releases true "…; 5.10.y"`
//! where a late one was seen with the wrong rule, `releases false "5.15.y from .215 on"` where it
//! was seen corrected. The text has the commit. Random hunts leave the section out
//! ([`Setting::is_bug`]): they check what must hold in a correct kernel.

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
        /// A group whose last task has left gets the weight that follows from its remaining load,
        /// though its entity may still wait for a delayed dequeue: what it owes or is owed then
        /// grows in virtual time. Corrected in 6.13 by 66951e4860d3. With one timeline for all
        /// groups no group's entity is delayed, and only averages of load move.
        delayed_group_weight: switch {
            linux "update_cfs_group()";
            default_if_absent false;
            releases true "6.12";
            releases false "6.12.y from .10 on (assumed)";
        }
        /// The slice of a running idle entity stays protected when a normal one wakes, so that the
        /// preemption's pick may choose the idle one again. Corrected in 6.15 by f553741ac8c0.
        /// EEVDF only.
        protected_idle_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            default_if_absent false;
            releases true "6.6 to 6.14; 6.11.y";
            releases false "6.12.y from .23 on, 6.13.y from .11 on, 6.14.y from .2 on";
        }
        /// A wakeup compares the policies of the two tasks before it looks at their groups'
        /// `cpu.idle`: a normal task of an idle group preempts a `SCHED_IDLE` task of a normal
        /// group, which in its turn waits for it. Corrected in 6.12 by faa42d29419d. CFS always
        /// does so here.
        idle_preempt_by_task: switch {
            linux "check_preempt_wakeup_fair(), wakeup_preempt_fair()";
            default_if_absent false;
            releases true "5.15 to 6.11; 5.15.y, 6.1.y";
            releases false "6.6.y from .63 on (or earlier), 6.11.y from .11 on (or earlier)";
        }
        /// The fair server is charged as a deadline task is: time at a low clock or on a small CPU
        /// counts less, so RT waits longer for it. Corrected in 6.16 by fc975cfb3639.
        fair_server_scaled: switch {
            linux "update_curr_dl_se(), dl_server_update_idle_time()";
            default_if_absent false;
            releases true "6.12 to 6.15; 6.13.y, 6.14.y";
            releases false "6.12.y from .39 on (assumed), 6.15.y from .7 on";
        }
        /// A fair server whose timer finds no fair task gets its runtime anew and stays active, but
        /// neither queued nor with a timer; a task that comes later does not start it. Corrected in
        /// 6.17 by 4ae8d9aa9f9d.
        fair_server_stuck: switch {
            linux "dl_server_timer()";
            default_if_absent false;
            releases true "none (6.17-rc1 to rc7)";
        }
        /// A cap does not lift the rule that keeps the clock of a CPU that has not been idle, where
        /// the CPU has a clock of its own: a capped task keeps a high clock. Corrected in 5.18 by
        /// 7a17e1db1265.
        hold_above_cap: switch {
            linux "sugov_update_single_freq()";
            default_if_absent false;
            releases true "5.3 to 5.17; 5.4.y, 5.10.y, 5.15.y";
        }
        /// A changed limit does not lift that rule either: a busy CPU asks for the old frequency
        /// until it has been idle. Corrected in 5.3 by 600f5badb78c. Only where schedutil switches
        /// by itself; a thread's driver gets new limits at once.
        hold_above_limit: switch {
            linux "sugov_update_single(), sugov_update_single_freq()";
            default_if_absent false;
            releases true "4.18 to 5.2";
            releases false "4.19.y from .67 on (assumed)";
        }
        /// Where utilisation does not scale with the clock, requests refer to the present frequency
        /// without a quarter on top, so that none is above it. Corrected in 6.8 by e37617c8e53a.
        /// Only with `effective_cpu_util = "clamp-last"` and without frequency invariance.
        no_headroom_without_invariance: switch {
            linux "get_capacity_ref_freq()";
            default_if_absent false;
            releases true "none (6.8-rc1)";
        }
        /// At boot a run queue counts as one with tasks: caps have no effect until a task without
        /// one was the last to leave. Corrected in 5.16 by 315c4f884800.
        first_cap_ignored: switch {
            linux "init_uclamp_rq()";
            default_if_absent false;
            releases true "5.9 to 5.15";
            releases false "5.10.y from .265 on (or earlier), 5.15.y from .215 on (or earlier)";
        }
        /// The cap that an idle run queue retains of its last task counts beside that of a task
        /// that is being placed there. Corrected in 5.14 by 3e1493f46390.
        idle_clamp_counts: switch {
            linux "uclamp_rq_util_with()";
            default_if_absent false;
            releases true "5.3 to 5.13; 5.4.y";
            releases false "5.10.y from .265 on (or earlier)";
        }
        /// A clamped utilisation has to fit into 80 % of a CPU, as one without clamps has: a
        /// minimum of 1024 fits nowhere. And a CPU counts as overutilised whatever its tasks' caps
        /// are. Corrected in 6.2 by 48d5e9daa8b7, b48e16a69792, 244226035a1f and c56ab1b3506b.
        clamps_with_margin: switch {
            linux "task_fits_capacity(), find_energy_efficient_cpu(), cpu_overutilized()";
            default_if_absent false;
            releases true "5.3 to 6.1; 5.4.y";
            releases false "5.10.y from .265 on (or earlier), 5.15.y from .215 on (or earlier), 6.1.y from .192 on (or earlier)";
        }
        /// A CPU that was saturated and goes idle after a task of RT or DEADLINE gives idle time
        /// back that it did not have: utilisations never fall. Corrected in 6.18 by 17e3e88ed0b6.
        lost_idle_time_unseen: switch {
            linux "pick_next_task_fair(), update_idle_rq_clock_pelt()";
            default_if_absent false;
            releases true "5.4 to 6.17; 5.4.y, 5.10.y, 5.15.y, 6.11.y, 6.13.y, 6.14.y";
            releases false "6.1.y from .192 on (or earlier), 6.6.y from .139 on (or earlier, assumed), 6.12.y from .55 on, 6.17.y from .5 on (assumed)";
        }
        /// A task's util_est leaves its CPU's sum after the dequeue, in which schedutil still
        /// counts it. Corrected in 5.12 by 8c1f560c1ea3.
        util_est_leaves_late: switch {
            linux "dequeue_task_fair()";
            default_if_absent false;
            releases true "4.17 to 5.11; 5.4.y";
            releases false "5.10.y from .265 on (or earlier)";
        }
        /// A change of a queued entity's weight leaves its virtual runtime where it is, so that its
        /// lag is worth more or less than before. Corrected in 6.7 by eab03c23c2a1. EEVDF only.
        reweight_keeps_vruntime: switch {
            linux "reweight_entity()";
            default_if_absent false;
            releases true "6.6";
            releases false "6.6.y from .63 on (or earlier)";
        }
        /// The average virtual runtime by which a queued entity is reweighted is that without the
        /// entity, and without the time that the running one has had since it was last charged.
        /// Corrected in 6.9 by afae8002b4fd and 11b1b8bc2b98. EEVDF with groups that nest.
        reweight_stale_average: switch {
            linux "reweight_entity(), reweight_eevdf()";
            default_if_absent false;
            releases true "6.7 and 6.8";
            releases false "6.8.y from .10 on (assumed)";
        }
        /// A fair task that becomes `SCHED_IDLE` gets its new weight without a change of its
        /// queue's load, its lag or its own load. Corrected in 6.11 by d32960528702.
        idle_policy_keeps_load: switch {
            linux "set_load_weight()";
            default_if_absent false;
            releases true "4.15 to 6.10; 4.19.y, 5.4.y";
            releases false "5.10.y from .265 on (or earlier), 5.15.y from .215 on (or earlier), 6.1.y from .192 on (or earlier), 6.6.y from .63 on (or earlier), 6.10.y from .3 on (assumed)";
        }
        /// A new task's first enqueue can make its domain overutilised, with the utilisation that
        /// is guessed for it. Corrected in 5.10 by 8e1ac4299a6e.
        fork_overutilises: switch {
            linux "enqueue_task_fair()";
            default_if_absent false;
            releases true "5.0 to 5.9";
            releases false "5.4.y from .286 on (or earlier)";
        }
        /// Within a last-level cache, too, an idle CPU pulls the utilisation that it has capacity
        /// for, and not tasks until both sides have as many. Corrected in 5.10 by 16b0a7a1a0af.
        util_imbalance_in_llc: switch {
            linux "calculate_imbalance()";
            default_if_absent false;
            releases true "5.5 to 5.9";
        }
        /// The amount that a fully busy group pulls is computed also where its load is above the
        /// average: the difference wraps, and load goes towards the busier side. Corrected in 6.3
        /// by 91dcf1e8068e.
        imbalance_overflows: switch {
            linux "calculate_imbalance()";
            default_if_absent false;
            releases true "5.5 to 6.2";
            releases false "5.10.y from .265 on (or earlier), 5.15.y from .215 on (or earlier), 6.1.y from .192 on (or earlier)";
        }
        /// An idle CPU does not look whether the only fair task of another one has little of it
        /// beside RT, DEADLINE and interrupts. Corrected in 6.0 by c82a69629c53. Where capacities
        /// do not differ.
        reduced_capacity_ignored: switch {
            linux "update_sg_lb_stats()";
            default_if_absent false;
            releases true "5.5 to 5.19; 5.10.y, 5.15.y";
        }
        /// An idle CPU that balances for others gives up as soon as it is asked to reschedule,
        /// which is how a polling CPU is told that it has been kicked. Corrected in 6.13 by
        /// ff47a0acfcce.
        ilb_abort_by_need_resched: switch {
            linux "_nohz_idle_balance()";
            default_if_absent false;
            releases true "5.8 to 6.12; 6.11.y";
            releases false "5.10.y from .265 on (or earlier), 5.15.y from .215 on (or earlier), 6.1.y from .192 on (or earlier), 6.6.y from .139 on (or earlier, assumed), 6.12.y from .95 on (or earlier)";
        }
        /// A task's load in the hierarchy may be 0: then moving it does not lessen an imbalance,
        /// and as a misfit it gets no help. Corrected in 5.8 by 01cfcde9c26d.
        h_load_zero: switch {
            linux "detach_tasks(), update_misfit_status()";
            default_if_absent false;
            releases true "up to 5.7";
            releases false "4.19.y from .134 on, 5.4.y from .286 on (or earlier)";
        }
        /// A newidle pass that moves nothing raises its domain's cost by half, up to the cost of a
        /// migration, and soon no idle time is long enough for another one. Corrected in 6.19 by
        /// d206fbad9328.
        newidle_cost_raised_by_failure: switch {
            linux "sched_balance_newidle()";
            default_if_absent false;
            releases true "6.17; 6.18.y up to .2";
        }
        /// `cpu.max`: a queue that is throttled is the first to get runtime, not the last; with
        /// little to hand out the others wait for ever. Corrected in 4.19 by baa9be4ffb55.
        throttled_first: switch {
            linux "throttle_cfs_rq()";
            default_if_absent false;
            releases true "3.17 to 4.18";
        }
        /// `cpu.max`: what a queue has left of its slice is lost when the next period begins.
        /// Corrected in 5.4 by de53fd7aedb1.
        slices_expire: switch {
            linux "expire_cfs_rq_runtime()";
            default_if_absent false;
            releases true "4.18 to 5.3";
            releases false "4.19.y from .84 on (assumed)";
        }
        /// A group's queue of less than the smallest weight counts as without load, so its group
        /// gets the least share. Corrected in 5.7 by 26cf52229efc. Here in the group's share alone,
        /// not in the averages of load, in which such an entity still weighs something.
        group_load_zero: switch {
            linux "scale_load_down(), calc_group_shares()";
            default_if_absent false;
            releases true "up to 5.6";
            releases false "5.4.y from .286 on (or earlier)";
        }
        /// The tick is stopped before the idle state is chosen: a CPU that expects to be woken
        /// soon, and is not, stays in a shallow state until its next timer. Corrected in 4.17 by
        /// 554c8aa8ecad and its series.
        tick_stopped_first: switch {
            linux "tick_nohz_idle_enter(), cpuidle_idle_call()";
            default_if_absent false;
            releases true "up to 4.16";
        }
        /// The polling state has no limit: it lasts until somebody asks for the CPU. Corrected in
        /// 4.17 by a37b969a61c1.
        poll_without_limit: switch {
            linux "poll_idle()";
            default_if_absent false;
            releases true "up to 4.16";
        }
        /// The polling state lasts as long as the first deeper state needs to be worth it, and be
        /// that only 2 µs. Corrected in 5.11 by 7a25759eaa04.
        poll_too_short: switch {
            linux "cpuidle_poll_time()";
            default_if_absent false;
            releases true "4.20 to 5.10; 5.4.y, 5.10.y";
        }
        /// menu takes a state in place of polling also if leaving it takes longer than the sleep
        /// that it predicts. Corrected in 6.18 by db86f55bf81a. Forms from 6.12 on.
        menu_drops_polling: switch {
            linux "menu_select()";
            default_if_absent false;
            releases true "6.17";
            releases false "6.17.y from .8 on (assumed)";
        }
    }
}
