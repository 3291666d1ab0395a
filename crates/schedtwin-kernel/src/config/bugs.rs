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
    }
}
