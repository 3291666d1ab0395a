// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of 6.12 from which the comparison is compiled.

/// The macros that are taken out of `sched.h` …
pub(crate) const SCHED_MACROS: &[&str] = &[
    "scale_load",
    "scale_load_down",
    "DEQUEUE_SLEEP",
    "DEQUEUE_SAVE",
    "DEQUEUE_NOCLOCK",
    "DEQUEUE_SPECIAL",
    "DEQUEUE_DELAYED",
    "ENQUEUE_WAKEUP",
    "ENQUEUE_RESTORE",
    "ENQUEUE_NOCLOCK",
    "ENQUEUE_MIGRATED",
    "ENQUEUE_INITIAL",
    "ENQUEUE_DELAYED",
];
/// … and of `fair.c`, in an order in which it compiles.
pub(crate) const FAIR_MACROS: &[&str] =
    &["WMULT_CONST", "WMULT_SHIFT", "__node_2_se", "vruntime_gt"];
pub(crate) const FAIR_FUNCTIONS: &[&str] = &[
    // Weights.
    "__update_inv_weight",
    "__calc_delta",
    "calc_delta_fair",
    // Virtual time.
    "entity_before",
    "entity_key",
    "avg_vruntime_add",
    "avg_vruntime_sub",
    "update_zero_vruntime",
    "avg_vruntime",
    "entity_lag",
    "update_entity_lag",
    "vruntime_eligible",
    "entity_eligible",
    "cfs_rq_min_slice",
    // The tree.
    "__entity_less",
    "__min_vruntime_update",
    "__min_slice_update",
    "min_vruntime_update",
    "__enqueue_entity",
    "__dequeue_entity",
    "__pick_root_entity",
    "__pick_first_entity",
    // Slices and picking.
    "set_protect_slice",
    "protect_slice",
    "cancel_protect_slice",
    "pick_eevdf",
    "update_deadline",
    "update_curr_se",
    "did_preempt_short",
    "do_preempt_short",
    "update_curr",
    "place_entity",
    // Entities.
    "account_entity_enqueue",
    "account_entity_dequeue",
    "enqueue_entity",
    "__clear_buddies_next",
    "clear_buddies",
    "set_delayed",
    "clear_delayed",
    "finish_delayed_dequeue_entity",
    "dequeue_entity",
    "set_next_entity",
    "pick_next_entity",
    "put_prev_entity",
    "entity_tick",
    "requeue_delayed_entity",
    "reweight_entity",
    // Tasks.
    "sched_idle_rq",
    "enqueue_task_fair",
    "dequeue_entities",
    "dequeue_task_fair",
    "check_preempt_wakeup_fair",
    "pick_task_fair",
    "put_prev_task_fair",
    "__set_next_task_fair",
    "set_next_task_fair",
    "yield_task_fair",
    "task_tick_fair",
    "reweight_task_fair",
];
