// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing, and wakeups up to 6.12, against the kernel's own C: whole decisions on random states.
//!
//! **Two kinds.** *Decisions*: `sched_balance_find_src_group` and `_rq` with the imbalance and what
//! they write to the root domain, or `sched_balance_find_dst_group` and `_cpu` for a fork. *Passes*: a
//! whole `sched_balance_rq`, then every queue in order, the counters and the stopper. `shim.c` also answers
//! *wakeups* of 6.1 and 6.12 ([`crate::wakeups`]), and newidle and NOHZ balancing ([`crate::nohz`]).
//!
//! Each kind also on machines whose cores have hardware threads, with priorities of CPUs as asymmetric
//! packing has them; those of 7.3 also where processes prefer one of several caches.
//!
//! **Forms.** 6.1 has `load_balance`, `find_busiest_group` and so on; 7.3 and 6.18 are known by what only they have,
//! 6.18 before 6.18.39 and 6.12 before 6.12.117 by what they lack.
//!
//! **Not compared here:** what `kernel.h` beside the shim lists as replaced.

mod mutations;

use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_6_1, TREE_6_18, TREE_7_3, extract};
use crate::states::{self, Extract};
use schedtwin_kernel::sched::fair::states::{Family, balance};
use std::path::{Path, PathBuf};

/// The blocks that are taken out of `fair.c`, in an order in which it compiles.
const BLOCKS: &[&str] = &[
    "enum fbq_type",
    "enum group_type",
    "enum migration_type",
    "struct lb_env",
    "struct sg_lb_stats",
    "struct sd_lb_stats",
];
const MACROS: &[&str] = &[
    "LBF_ALL_PINNED",
    "LBF_NEED_BREAK",
    "LBF_DST_PINNED",
    "LBF_SOME_PINNED",
    "LBF_ACTIVE_LB",
    "MAX_PINNED_INTERVAL",
    "fits_capacity",
];
/// The macros and blocks that only 7.3 has.
const MACROS_7_3: &[&str] = &["LBF_LLC_PINNED", "LBF_ACTIVE_LB_LLC", "util_greater"];
const BLOCKS_7_3: &[&str] = &["enum llc_mig"];
/// What 6.18 and 7.3 have before the other functions.
const INELIGIBLE: &str = "task_is_ineligible_on_dst_cpu";
/// And functions of 7.3, before the others.
const FUNCTIONS_7_3: &[&str] = &[
    "choose_sched_idle_rq",
    // Caches that processes prefer.
    "llc_id",
    "get_sched_cache_scale",
    "exceed_llc_capacity",
    "invalid_llc_nr",
    "task_pref_llc_runnable",
    "pref_llc_running_inc",
    "pref_llc_running_dec",
    "account_llc_enqueue",
    "account_llc_dequeue",
    "fits_llc_capacity",
    "get_llc_stats",
    "can_migrate_llc",
    "task_misfits_asym_cpu",
    "can_migrate_llc_task",
    "alb_break_llc",
    "migrate_llc_task_wrong_dst",
    "migrate_degrades_llc",
    "record_sg_llc_stats",
    "llc_balance",
    "update_llc_busiest",
    "alb_stop_fn",
];
/// Functions by their names in 6.12 and, where those differ, in 6.1; `""`: not there.
const FUNCTIONS: &[(&str, &str)] = &[
    // Hardware threads.
    ("is_core_idle", "is_core_idle"),
    // Which task may move.
    ("task_hot", "task_hot"),
    ("can_migrate_task", "can_migrate_task"),
    ("detach_task", "detach_task"),
    ("detach_tasks", "detach_tasks"),
    ("attach_tasks", "attach_tasks"),
    // Statistics of groups.
    ("init_sd_lb_stats", "init_sd_lb_stats"),
    ("check_cpu_capacity", "check_cpu_capacity"),
    ("check_misfit_status", "check_misfit_status"),
    ("sg_imbalanced", "sg_imbalanced"),
    ("group_has_capacity", "group_has_capacity"),
    ("group_is_overloaded", "group_is_overloaded"),
    ("group_classify", "group_classify"),
    ("sched_use_asym_prio", "asym_smt_can_pull_tasks"),
    ("sched_asym", "sched_asym"),
    ("sched_group_asym", ""),
    ("smt_vs_nonsmt_groups", ""),
    ("smt_balance", ""),
    ("sibling_imbalance", ""),
    ("sched_reduced_capacity", "sched_reduced_capacity"),
    ("update_sg_lb_stats", "update_sg_lb_stats"),
    ("update_sd_pick_busiest", "update_sd_pick_busiest"),
    // Where a fork goes.
    ("task_running_on_cpu", "task_running_on_cpu"),
    ("idle_cpu_without", "idle_cpu_without"),
    ("update_sg_wakeup_stats", "update_sg_wakeup_stats"),
    ("update_pick_idlest", "update_pick_idlest"),
    ("adjust_numa_imbalance", "adjust_numa_imbalance"),
    ("sched_balance_find_dst_group", "find_idlest_group"),
    ("sched_balance_find_dst_group_cpu", "find_idlest_group_cpu"),
    // The busiest group and queue.
    ("update_idle_cpu_scan", "update_idle_cpu_scan"),
    ("update_sd_lb_stats", "update_sd_lb_stats"),
    ("calculate_imbalance", "calculate_imbalance"),
    ("sched_balance_find_src_group", "find_busiest_group"),
    ("sched_balance_find_src_rq", "find_busiest_queue"),
    // A pass.
    ("asym_active_balance", "asym_active_balance"),
    ("imbalanced_active_balance", "imbalanced_active_balance"),
    ("need_active_balance", "need_active_balance"),
    ("should_we_balance", "should_we_balance"),
    ("sched_balance_rq", "load_balance"),
];
/// Those of newidle balancing and of CPUs without a tick.
const NOHZ: &[(&str, &str)] = &[
    ("update_newidle_stats", "update_newidle_stats"),
    ("update_newidle_cost", "update_newidle_cost"),
    ("get_sd_balance_interval", "get_sd_balance_interval"),
    ("update_next_balance", "update_next_balance"),
    ("sched_balance_domains", "rebalance_domains"),
    ("set_cpu_sd_state_busy", "set_cpu_sd_state_busy"),
    ("nohz_balance_exit_idle", "nohz_balance_exit_idle"),
    ("set_cpu_sd_state_idle", "set_cpu_sd_state_idle"),
    ("nohz_balance_enter_idle", "nohz_balance_enter_idle"),
    ("find_new_ilb", "find_new_ilb"),
    ("kick_ilb", "kick_ilb"),
    ("nohz_balancer_kick", "nohz_balancer_kick"),
    ("update_nohz_stats", "update_nohz_stats"),
    ("_nohz_idle_balance", "_nohz_idle_balance"),
    ("nohz_run_idle_balance", "nohz_run_idle_balance"),
    ("nohz_newidle_balance", "nohz_newidle_balance"),
    ("sched_balance_newidle", "sched_balance_newidle"),
];
/// Those of wakeups in 6.1 and 6.12, where they have the same names.
const WAKEUPS: &[&str] = &[
    "util_fits_cpu",
    "wake_affine_idle",
    "wake_affine_weight",
    "wake_affine",
    "select_idle_core",
    "select_idle_smt",
    "select_idle_cpu",
    "select_idle_capacity",
    "asym_fits_cpu",
    "select_idle_sibling",
];

/// The form of balancing that a kernel tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Up to 6.8.
    V6_1,
    /// Before what 6.12.117 took over about groups of bigger CPUs.
    V6_12_95,
    /// From 6.12.117 on.
    V6_12,
    /// 6.18 before 6.18.39.
    V6_18,
    /// From 6.18.39 on: forks count allowed CPUs only, which no families of 6.18 do.
    V6_18_39,
    /// 7.3.
    V7_3,
}

impl Form {
    /// Returns the form of a tree's `fair.c`: by the names of functions, what that one asks for which picks
    /// the busiest group, and which CPUs count for a fork.
    pub fn of(fair: &str) -> Form {
        if extract::function(fair, "sched_balance_rq").is_none() {
            return Form::V6_1;
        }
        if extract::function(fair, "can_migrate_llc").is_some() {
            return Form::V7_3;
        }
        if extract::function(fair, INELIGIBLE).is_some() {
            let stats = extract::function(fair, "update_sg_wakeup_stats").unwrap_or_default();
            let allowed = stats.contains("for_each_cpu_and");
            return if allowed { Form::V6_18_39 } else { Form::V6_18 };
        }
        let pick = extract::function(fair, "update_sd_pick_busiest").unwrap_or_default();
        if pick.contains("dst_core_idle") { Form::V6_12 } else { Form::V6_12_95 }
    }

    /// Returns the flag that the shim is told.
    fn flag(self) -> Option<&'static str> {
        match self {
            Form::V6_1 => Some("-DFORM_6_1"),
            Form::V6_18 | Form::V6_18_39 => Some("-DFORM_6_18"),
            Form::V7_3 => Some("-DFORM_7_3"),
            Form::V6_12_95 | Form::V6_12 => None,
        }
    }
}

/// Builds the oracle from a tree.
pub fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let fair = states::read_fair(tree)?;
    let form = Form::of(&fair);
    // What stands in for newidle balancing on machines of one CPU.
    let stub = extract::function(&fair, "sched_balance_newidle");
    let stub = stub.filter(|text| text.lines().count() < 6);
    let fair = stub.map_or(fair.clone(), |stub| fair.replacen(&stub, "", 1));
    let newer = form == Form::V7_3;
    let (blocks, macros) = if newer { (BLOCKS_7_3, MACROS_7_3) } else { (&[][..], &[][..]) };
    let names = FUNCTIONS.iter().chain(NOHZ).map(|(newer, older)| match form {
        Form::V6_1 => *older,
        _ => *newer,
    });
    let ineligible = extract::function(&fair, INELIGIBLE).map(|_| INELIGIBLE);
    let first = ineligible.into_iter().chain(FUNCTIONS_7_3.iter().filter(|_| newer).copied());
    let functions = first.chain(names);
    let actual = extract::function(&fair, "get_actual_cpu_capacity");
    let functions = functions.chain(actual.filter(|_| !newer).map(|_| "get_actual_cpu_capacity"));
    let functions = functions.chain(WAKEUPS.iter().filter(|_| !newer).copied());
    let pieces = Extract {
        blocks: [BLOCKS, blocks].concat(),
        macros: [MACROS, macros].concat(),
        functions: functions.filter(|name| !name.is_empty()).collect(),
    };
    let flags: Vec<&str> = flags.iter().copied().chain(form.flag()).collect();
    states::compile("balance", &fair, &pieces, build_dir, &flags)
}

states::subjects! {
    &["states", "balance"];
    /// 6.1.
    Balance61 = "balance-6.1", TREE_6_1, Form::V6_1, balance::LINUX_6_1, build_oracle, &[];
    /// 6.12 before 6.12.117.
    Balance612_95 = "balance-6.12.95", TREE, Form::V6_12_95, balance::LINUX_6_12_95, build_oracle, &[];
    /// 6.12.117 and later.
    Balance612 = "balance", TREE, Form::V6_12, balance::LINUX_6_12, build_oracle,
        mutations::SINCE_6_12;
    /// 6.18 before 6.18.39.
    Balance618 = "balance-6.18", TREE_6_18, Form::V6_18, balance::LINUX_6_18, build_oracle,
        mutations::LINUX_6_18;
    /// 7.3.
    Balance73 = "balance-7.3", TREE_7_3, Form::V7_3, balance::LINUX_7_3, build_oracle,
        mutations::LINUX_7_3;
}
