// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of a tree from which the comparison is compiled.

use super::{LINUX_6_1, LINUX_6_12, LINUX_6_18, by_task};
use crate::cfs;
use crate::eevdf::{cut_out, taken, v6_18, v7_3};
use crate::l0::extract::{self, Pieces};
use crate::l0::oracle;
use std::path::{Path, PathBuf};

/// Levels of groups.
const HIERARCHY: &[&str] = &["is_same_group"];
/// … of EEVDF; CFS names it among its own.
const IDLE: &[&str] = &["se_is_idle"];
/// … where each has a timeline of its own.
const NESTED: &[&str] = &["find_matching_se"];
/// What every release has of bandwidth control, before throttling …
const RUNTIME: &[&str] =
    &["tg_cfs_bandwidth", "__refill_cfs_bandwidth_runtime", "__assign_cfs_rq_runtime"];
/// … in its middle, where a tree throttles when a task is picked …
const CHARGE_6_12: &[&str] = &["assign_cfs_rq_runtime"];
const CHARGE: &[&str] = &[
    "__account_cfs_rq_runtime",
    "account_cfs_rq_runtime",
    "cfs_rq_throttled",
    "throttled_hierarchy",
];
/// … where tasks leave one by one …
const BY_TASK: &[&str] = &[
    "task_is_throttled",
    "throttle_cfs_rq_work",
    "dequeue_throttled_task",
    "enqueue_throttled_task",
    "task_has_throttle_work",
    "task_throttle_setup_work",
    "record_throttle_clock",
];
/// … and after it.
const THROTTLING: &[&str] =
    &["tg_unthrottle_up", "tg_throttle_down", "throttle_cfs_rq", "unthrottle_cfs_rq"];
/// … whose queues their own CPUs unthrottle …
const BY_INTERRUPT: &[&str] =
    &["__cfsb_csd_unthrottle", "__unthrottle_cfs_rq_async", "unthrottle_cfs_rq_async"];
/// … when runtime is handed out …
const HANDING_OUT: &[&str] = &[
    "distribute_cfs_runtime",
    "do_sched_cfs_period_timer",
    "runtime_refresh_within",
    "start_cfs_slack_bandwidth",
    "__return_cfs_rq_runtime",
    "return_cfs_rq_runtime",
    "do_sched_cfs_slack_timer",
    "check_enqueue_throttle",
    "sched_cfs_period_timer",
    "start_cfs_bandwidth",
];
const CHECK_6_12: &[&str] = &["check_cfs_rq_runtime"];
/// The switch, where only the levels that differ are put and set.
const SWITCH_6_12: &[&str] = &["pick_next_task_fair"];
/// Its constants.
const CONSTANTS: &[&str] = &[
    "static const u64 min_cfs_rq_runtime",
    "static const u64 min_bandwidth_expiration",
    "static const u64 cfs_bandwidth_slack_period",
];
/// Flags beside those of the comparison of EEVDF.
const MORE_MACROS: &[&str] = &["DEQUEUE_MOVE", "ENQUEUE_MOVE"];
const MORE_MACROS_6_1: &[&str] = &["ENQUEUE_MOVE"];

/// Compiles the oracle of a form.
pub(super) fn build<const FORM: u8>(
    tree: &Path,
    build_dir: &Path,
    flags: &[&str],
    name: &str,
) -> Result<PathBuf, String> {
    let fair = extract::read(tree, "kernel/sched/fair.c")?;
    let core = extract::read(tree, "kernel/sched/core.c")?;
    let pelt = extract::read(tree, "kernel/sched/pelt.h")?;
    let mut before = Pieces::default();
    before.add(extract::function, &core, &["walk_tg_tree_from", "tg_nop"])?;
    before.add(extract::statement, &fair, CONSTANTS)?;
    before.add(extract::function, &pelt, &["update_idle_cfs_rq_clock_pelt"])?;
    if by_task(FORM) {
        before.add(extract::block, &fair, &["enum preempt_wakeup_action"])?;
    }
    let (sched_macros, fair_macros, class, form): (_, _, _, &[&str]) = match FORM {
        LINUX_6_1 => (
            [cfs::taken::SCHED_MACROS, MORE_MACROS_6_1].concat(),
            cfs::taken::FAIR_MACROS,
            cfs::taken::FAIR_FUNCTIONS,
            &["-DKERNEL_6_1"],
        ),
        LINUX_6_12 => {
            before.add(extract::function, &fair, &["set_next_buddy"])?;
            let macros = [taken::SCHED_MACROS, MORE_MACROS].concat();
            (macros, taken::FAIR_MACROS, taken::FAIR_FUNCTIONS, &[])
        }
        LINUX_6_18 => (
            [v6_18::SCHED_MACROS, MORE_MACROS].concat(),
            v7_3::FAIR_MACROS,
            v6_18::FAIR_FUNCTIONS,
            &["-DKERNEL_6_18", "-DLIMITS_IN_US"],
        ),
        _ => (
            [v7_3::SCHED_MACROS, MORE_MACROS].concat(),
            v7_3::FAIR_MACROS,
            v7_3::FAIR_FUNCTIONS,
            &["-DKERNEL_7_3", "-DLIMITS_IN_US"],
        ),
    };
    let at_pick = !by_task(FORM) || FORM == LINUX_6_18;
    let none: &[&str] = &[];
    let only = |condition: bool, names| if condition { names } else { none };
    let functions = [
        HIERARCHY,
        only(FORM != LINUX_6_1, IDLE),
        only(at_pick, NESTED),
        RUNTIME,
        only(at_pick, CHARGE_6_12),
        CHARGE,
        only(by_task(FORM), BY_TASK),
        THROTTLING,
        only(FORM != LINUX_6_1, BY_INTERRUPT),
        HANDING_OUT,
        only(at_pick, CHECK_6_12),
        class,
        only(at_pick, SWITCH_6_12),
    ]
    .concat();
    let mut after = Pieces::default();
    if !at_pick {
        // Of the two forms of this function the last is that of 64 bits.
        let last = fair.rfind("static u64 __calc_delta").unwrap_or(0);
        before.add(extract::function, &fair[last..], &["__calc_delta"])?;
    }
    after.add(extract::function, &core, &["tg_set_cfs_bandwidth"])?;
    let text = before.text_so_far().to_string()
        + &cut_out(tree, &sched_macros, fair_macros, &functions)?
        + after.text_so_far();
    oracle::compile_with_rbtree(
        tree,
        build_dir,
        &[flags, form].concat(),
        ("bandwidth", name),
        &text,
    )
}
