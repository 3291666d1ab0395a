// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of 6.1 from which the comparison is compiled.

/// The macros that are taken out of `sched.h` …
pub(crate) const SCHED_MACROS: &[&str] = &[
    "scale_load",
    "scale_load_down",
    "DEQUEUE_SLEEP",
    "DEQUEUE_SAVE",
    "DEQUEUE_MOVE",
    "DEQUEUE_NOCLOCK",
    "ENQUEUE_WAKEUP",
    "ENQUEUE_RESTORE",
    "ENQUEUE_NOCLOCK",
    "ENQUEUE_MIGRATED",
];
/// … and of `fair.c`, in an order in which it compiles.
pub(crate) const FAIR_MACROS: &[&str] = &[
    "WMULT_CONST",
    "WMULT_SHIFT",
    "__node_2_se",
    "add_positive",
    "sub_positive",
    "UTIL_EST_MARGIN",
];
/// PELT and util_est.
pub(crate) const PELT_FUNCTIONS: &[&str] = &[
    "enqueue_load_avg",
    "dequeue_load_avg",
    "update_cfs_rq_load_avg",
    "attach_entity_load_avg",
    "detach_entity_load_avg",
    "update_load_avg",
    "task_util",
    "_task_util_est",
    "util_est_enqueue",
    "util_est_dequeue",
    "within_margin",
    "util_est_update",
];
/// The class.
pub(crate) const FAIR_FUNCTIONS: &[&str] = &[
    // Weights.
    "__update_inv_weight",
    "__calc_delta",
    "calc_delta_fair",
    // Virtual time and the tree.
    "max_vruntime",
    "min_vruntime",
    "entity_before",
    "update_min_vruntime",
    "__entity_less",
    "__enqueue_entity",
    "__dequeue_entity",
    "__pick_first_entity",
    "__pick_next_entity",
    // Slices and placement.
    "se_is_idle",
    "sched_idle_cfs_rq",
    "__sched_period",
    "sched_slice",
    "sched_vslice",
    "update_curr",
    "entity_is_long_sleeper",
    "place_entity",
    // Entities.
    "account_entity_enqueue",
    "account_entity_dequeue",
    "enqueue_entity",
    "__clear_buddies_last",
    "__clear_buddies_next",
    "__clear_buddies_skip",
    "clear_buddies",
    "dequeue_entity",
    "check_preempt_tick",
    "set_next_entity",
    "wakeup_gran",
    "wakeup_preempt_entity",
    "pick_next_entity",
    "put_prev_entity",
    "entity_tick",
    // Tasks.
    "sched_idle_rq",
    "enqueue_task_fair",
    "dequeue_task_fair",
    "set_last_buddy",
    "set_next_buddy",
    "check_preempt_wakeup",
    "put_prev_task_fair",
    "set_next_task_fair",
    "task_tick_fair",
];
/// What the comparison of `cpu.max` needs no more.
pub(crate) const MORE_FUNCTIONS: &[&str] = &[
    "reweight_entity",
    "set_skip_buddy",
    "pick_task_fair",
    "yield_task_fair",
    "task_fork_fair",
    "migrate_task_rq_fair",
    "reweight_task",
];
