// SPDX-License-Identifier: GPL-2.0-or-later
//! The same world with the form of 6.18: lag limit, slice protection, wakeup preemption and reweighting.
//!
//! A protection shares its place with the lag, as in the kernel, so the lag of the running task is its protection.
//!
//! The kernel reads the shortest and the longest slice of a queue from nodes of its tree. In 6.18 rotations do not copy the two,
//! and a new node does not set the longest, so that they can be those of an earlier time. Ours are those of the entities that are
//! there, and the oracle's too unless it is asked for what is written (`--as-written`).

use super::v7_3::FAIR_MACROS;
use super::{Eevdf, cut_out, mutations, read};
use crate::l0::instructions::TurnOps;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{AS_WRITTEN, OpSpec, Out, Record, Subject, TREE_6_18, extract, oracle};
use schedtwin_kernel::config::EevdfForm;
use schedtwin_types::rng::Rng;
use std::path::{Path, PathBuf};

/// One CPU and its tasks, as of 6.18 (since 6.18.33).
pub struct Eevdf618(Eevdf);

impl Subject for Eevdf618 {
    const NAME: &'static str = "eevdf-6.18";
    const TREE: &'static str = TREE_6_18;
    const OPS: &'static [OpSpec] = Eevdf::OPS;
    const TURNS: Option<TurnOps> = Eevdf::TURNS;
    const SOURCES: Sources = Sources { modules: &["fair", "eevdf"], kernel: None };
    const MUTATIONS: &'static [Mutation] = mutations::EEVDF_6_18;
    const GOLDEN_SHOWN: u64 = 1;
    const GOLDEN_CASES: u64 = 10_000;

    fn new() -> Self {
        Eevdf618(Eevdf::of(EevdfForm::V6_18, false))
    }

    fn operate(&mut self, record: &Record, out: &mut Out) {
        self.0.operate(record, out);
    }

    fn next(&mut self, step: usize, rng: &mut Rng) -> Option<Record> {
        self.0.next(step, rng)
    }

    fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
        let fair = read(tree, "kernel/sched/fair.c")?;
        let actions = extract::block(&fair, "enum preempt_wakeup_action");
        let actions = actions.ok_or("this kernel tree has no preempt_wakeup_action")?;
        let slices = |name: &str| {
            let found = flags.contains(&AS_WRITTEN).then(|| extract::function(&fair, name));
            found.map_or(Ok(String::new()), |text| text.ok_or(format!("no {name} in this tree")))
        };
        let text = actions
            + &cut_out(tree, SCHED_MACROS, FAIR_MACROS, FAIR_FUNCTIONS)?
            + &slices("cfs_rq_min_slice")?
            + &slices("cfs_rq_max_slice")?;
        let flags = [flags, &["-DKERNEL_6_18"]].concat();
        oracle::compile_with_rbtree(tree, build_dir, &flags, ("eevdf", Self::NAME), &text)
    }
}

/// The macros that are taken out of `sched.h`; those of `fair.c` are 7.3's.
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
];
pub(crate) const FAIR_FUNCTIONS: &[&str] = &[
    // Weights.
    "__update_inv_weight",
    "__calc_delta",
    "calc_delta_fair",
    // Virtual time.
    "min_vruntime",
    "entity_before",
    "entity_key",
    "sum_w_vruntime_add",
    "sum_w_vruntime_sub",
    "update_zero_vruntime",
    "avg_vruntime",
    "update_entity_lag",
    "vruntime_eligible",
    "entity_eligible",
    // The tree.
    "__entity_less",
    "__min_vruntime_update",
    "__min_slice_update",
    "__max_slice_update",
    "min_vruntime_update",
    "__pick_root_entity",
    "__enqueue_entity",
    "__dequeue_entity",
    "__pick_first_entity",
    // Slices and picking.
    "set_protect_slice",
    "update_protect_slice",
    "protect_slice",
    "cancel_protect_slice",
    "pick_eevdf",
    "update_deadline",
    "update_se",
    "__clear_buddies_next",
    "clear_buddies",
    "set_next_buddy",
    "update_curr",
    "place_entity",
    // Entities.
    "account_entity_enqueue",
    "account_entity_dequeue",
    "enqueue_entity",
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
    "set_preempt_buddy",
    "preempt_sync",
    "check_preempt_wakeup_fair",
    "pick_task_fair",
    "put_prev_task_fair",
    "__set_next_task_fair",
    "set_next_task_fair",
    "yield_task_fair",
    "task_tick_fair",
    "reweight_task_fair",
];
