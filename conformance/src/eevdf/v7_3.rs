// SPDX-License-Identifier: GPL-2.0-or-later
//! The same world with the form of 7.3: lag limit, slice protection, wakeup preemption, lag of delayed tasks, full weights and
//! division.
//!
//! Without groups 7.3's one timeline for all tasks of a CPU is the root's, so its functions are compared as they stand. Levels
//! of groups are not in the world; what they leave to a task is drawn.

use super::{Eevdf, cut_out, mutations, read};
use crate::l0::instructions::TurnOps;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{OpSpec, Out, Record, Subject, TREE_7_3, extract, oracle};
use schedtwin_kernel::config::EevdfForm;
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

/// One CPU and its tasks, as of 7.3.
pub type Eevdf73 = Eevdf73Of<false>;
/// The same where a group exists, so that we walk the hierarchy as of 7.3; tasks get weights in the timeline as groups above
/// would leave them.
pub type Eevdf73Flat = Eevdf73Of<true>;

/// The world of both.
pub struct Eevdf73Of<const FLAT: bool>(Eevdf);

impl<const FLAT: bool> Subject for Eevdf73Of<FLAT> {
    const NAME: &'static str = if FLAT { "eevdf-7.3-flat" } else { "eevdf-7.3" };
    const TREE: &'static str = TREE_7_3;
    const OPS: &'static [OpSpec] = Eevdf::OPS;
    const TURNS: Option<TurnOps> = Eevdf::TURNS;
    const SOURCES: Sources = Sources { modules: &["fair", "eevdf"], kernel: None };
    const MUTATIONS: &'static [Mutation] =
        if FLAT { mutations::EEVDF_7_3_FLAT } else { mutations::EEVDF_7_3 };
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 10_000;

    fn new() -> Self {
        Eevdf73Of(Eevdf::of(EevdfForm::V7_3, FLAT))
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        self.0.operate(record, out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        self.0.next(step, rng)
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        // Of the two forms of this function the last is that of 64 bits.
        let fair = read(tree, "kernel/sched/fair.c")?;
        let last = fair.rfind("static u64 __calc_delta").unwrap_or(0);
        let calc_delta = extract::function(&fair[last..], "__calc_delta");
        let calc_delta = calc_delta.ok_or("this kernel tree has no __calc_delta")?;
        let actions = extract::block(&fair, "enum preempt_wakeup_action");
        let actions = actions.ok_or("this kernel tree has no preempt_wakeup_action")?;
        let text =
            calc_delta + &actions + &cut_out(tree, SCHED_MACROS, FAIR_MACROS, FAIR_FUNCTIONS)?;
        let form: &[&str] = if FLAT { &["-DKERNEL_7_3", "-DFLAT"] } else { &["-DKERNEL_7_3"] };
        oracle::compile_with_rbtree(
            tree,
            build_dir,
            &[flags, form].concat(),
            ("eevdf", "eevdf-7.3"),
            &text,
        )
    }
}

/// The macros that are taken out of `sched.h` …
pub(crate) const SCHED_MACROS: &[&str] = &[
    "scale_load",
    "scale_load_down",
    "DEQUEUE_SLEEP",
    "DEQUEUE_SAVE",
    "DEQUEUE_NOCLOCK",
    "DEQUEUE_SPECIAL",
    "DEQUEUE_DELAYED",
    "DEQUEUE_THROTTLE",
    "ENQUEUE_WAKEUP",
    "ENQUEUE_RESTORE",
    "ENQUEUE_NOCLOCK",
    "ENQUEUE_MIGRATED",
    "ENQUEUE_INITIAL",
    "ENQUEUE_DELAYED",
    "ENQUEUE_QUEUED",
];
/// … and of `fair.c`, in an order in which it compiles.
pub(crate) const FAIR_MACROS: &[&str] =
    &["WMULT_CONST", "WMULT_SHIFT", "vruntime_cmp", "vruntime_op", "__node_2_se"];
pub(crate) const FAIR_FUNCTIONS: &[&str] = &[
    // Virtual time.
    "calc_delta_fair",
    "min_vruntime",
    "entity_before",
    "entity_key",
    "avg_vruntime_weight",
    "__sum_w_vruntime_add",
    "sum_w_vruntime_add",
    "sum_w_vruntime_sub",
    "update_zero_vruntime",
    "avg_vruntime",
    "ineligible_vruntime",
    "entity_lag",
    "update_entity_lag",
    "vruntime_eligible",
    "entity_eligible",
    "cfs_rq_min_slice",
    "cfs_rq_max_slice",
    // The tree.
    "__entity_less",
    "__min_vruntime_update",
    "__min_slice_update",
    "__max_slice_update",
    "min_vruntime_copy",
    "min_vruntime_update",
    "__enqueue_entity",
    "__dequeue_entity",
    "__pick_root_entity",
    "__pick_first_entity",
    // Slices and picking.
    "set_protect_slice",
    "update_protect_slice",
    "protect_slice",
    "cancel_protect_slice",
    "pick_eevdf",
    "update_deadline",
    "update_se",
    "clear_buddies",
    "set_next_buddy",
    "update_curr",
    "update_curr_fair",
    "place_entity",
    // Entities.
    "account_entity_enqueue",
    "account_entity_dequeue",
    "rescale_entity",
    "reweight_eevdf",
    "reweight_entity",
    "__calc_prop_weight",
    "reweight_task_fair",
    "enqueue_entity",
    "set_delayed",
    "clear_delayed",
    "dequeue_entity",
    "set_next_entity",
    "pick_next_entity",
    "put_prev_entity",
    "entity_tick",
    // Tasks.
    "sched_idle_rq",
    "requeue_delayed_entity",
    "enqueue_hierarchy",
    "update_curr_eevdf",
    "enqueue_task_fair",
    "dequeue_hierarchy",
    "__dequeue_task",
    "dequeue_task_fair",
    "set_preempt_buddy",
    "set_short_buddy",
    "preempt_sync",
    "wakeup_preempt_fair",
    "pick_task_fair",
    "put_prev_task_fair",
    "set_next_task_fair",
    "yield_task_fair",
    "task_tick_fair",
];
