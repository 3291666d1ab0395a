// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_ext.

macro_rules! ext {
    ([$next:ident $($more:ident)*] $($before:tt)*) => {
        $next! { [$($more)*] $($before)*

        /// The class of schedulers in BPF (`CONFIG_SCHED_CLASS_EXT`).
        sched_ext: choice SchedExt {
            linux "kernel/sched/ext.c, kernel/sched/ext/";
            default_if_absent None;
            /// There is none.
            None = "none", "up to 6.11; 6.13 to 7.2 (their class is not modelled)";
            /// Tasks are dispatched before the pick (`balance_scx()`), slices change at the call, `ops.dequeue()` comes
            /// for tasks that the scheduler itself holds.
            V6_12 = "6.12", "6.12 (as of .95)";
            /// Tasks are dispatched in the pick, slices change at the insertion, `ops.dequeue()` comes whenever a task
            /// leaves the scheduler's custody; an idle wakeup stays in its cache and node.
            V7_3 = "7.3", "7.3";
        }
        }
    };
}
