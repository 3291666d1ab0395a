// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of placement against the kernel's own C: `select_task_rq_fair` of forks, execs and wakeups
//! with the walk down the domains, on random states.
//!
//! A case is a machine with all its domains and groups, those of NUMA nodes that overlap among them. The first domain
//! follows from flags that are drawn; groups are compared without the task itself, which may be counted where it is.
//!
//! **Four forms.** 6.1; 6.12 with 6.12.107 and later; 6.18 before 6.18.39, which counts all CPUs of a group; 7.3.
//!
//! **Not compared here:** what `shim.c` lists as replaced.

mod mutations;

use crate::l0::extract;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_6_1, TREE_6_18, TREE_7_3};
use crate::states::{self, Extract};
use schedtwin_kernel::sched::fair::states::{Family, slow_path};
use std::path::{Path, PathBuf};

/// The form of the slow path that a kernel tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Up to 6.8, where only allowed CPUs count.
    V6_1,
    /// Delayed tasks count.
    V6_12,
    /// Delayed tasks do not count; all CPUs of a group do.
    V6_18,
    /// Only allowed CPUs count.
    V7_3,
    /// A kernel without these functions, or one of another form.
    Other,
}

impl Form {
    /// Returns the form of a tree's `fair.c`.
    pub fn of(fair: &str) -> Form {
        let Some(stats) = extract::function(fair, "update_sg_wakeup_stats") else {
            return Form::Other;
        };
        let allowed = stats.contains("for_each_cpu_and");
        let runnable = stats.contains("h_nr_runnable");
        let older = extract::function(fair, "sched_balance_rq").is_none();
        match (older, runnable, allowed) {
            (true, _, true) => Form::V6_1,
            (false, false, true) => Form::V6_12,
            (false, true, false) => Form::V6_18,
            (false, true, true) => Form::V7_3,
            _ => Form::Other,
        }
    }

    fn flag(self) -> Option<&'static str> {
        match self {
            Form::V6_1 => Some("-DFORM_6_1"),
            Form::V7_3 | Form::V6_18 => Some("-DFORM_7_3"),
            Form::V6_12 | Form::Other => None,
        }
    }
}

/// Functions by their names in 6.12 and, where those differ, in 6.1; `""`: not there.
const FUNCTIONS: &[(&str, &str)] = &[
    ("_task_util_est", "_task_util_est"),
    ("cpu_util", "cpu_util_next"),
    ("cpu_util_cfs", ""),
    ("cpu_load_without", "cpu_load_without"),
    ("cpu_runnable_without", "cpu_runnable_without"),
    ("cpu_util_without", "cpu_util_without"),
    // Groups.
    ("sg_imbalanced", "sg_imbalanced"),
    ("group_has_capacity", "group_has_capacity"),
    ("group_is_overloaded", "group_is_overloaded"),
    ("group_classify", "group_classify"),
    ("task_running_on_cpu", "task_running_on_cpu"),
    ("idle_cpu_without", "idle_cpu_without"),
    ("update_sg_wakeup_stats", "update_sg_wakeup_stats"),
    ("update_pick_idlest", "update_pick_idlest"),
    ("adjust_numa_imbalance", "adjust_numa_imbalance"),
    ("sched_balance_find_dst_group", "find_idlest_group"),
    ("sched_balance_find_dst_group_cpu", "find_idlest_group_cpu"),
    ("sched_balance_find_dst_cpu", "find_idlest_cpu"),
    // The waker.
    ("record_wakee", "record_wakee"),
    ("wake_wide", "wake_wide"),
    ("wake_affine_idle", "wake_affine_idle"),
    ("wake_affine_weight", "wake_affine_weight"),
    ("wake_affine", "wake_affine"),
    ("select_task_rq_fair", "select_task_rq_fair"),
];

/// Builds the oracle from a tree.
fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let fair = states::read_fair(tree)?;
    let form = Form::of(&fair);
    let older = form == Form::V6_1;
    // 6.1 has one of them in `sched.h`.
    let text = match older {
        true => [extract::read(tree, "kernel/sched/sched.h")?, fair].concat(),
        false => fair,
    };
    let names = FUNCTIONS.iter().map(|(newer, before)| if older { *before } else { *newer });
    let newest = form.flag() == Some("-DFORM_7_3");
    let first = [("cpu_util_cfs", older), ("choose_sched_idle_rq", form == Form::V7_3)];
    let first = first.into_iter().filter(|(_, there)| *there).map(|(name, _)| name);
    let mut blocks = vec!["enum group_type", "struct sg_lb_stats"];
    if newest && extract::block(&text, "enum llc_mig").is_some() {
        blocks.insert(0, "enum llc_mig");
    }
    let pieces = Extract {
        blocks,
        macros: Vec::new(),
        functions: first.chain(names).filter(|name| !name.is_empty()).collect(),
    };
    let flags: Vec<&str> = flags.iter().copied().chain(form.flag()).collect();
    states::compile("slow_path", &text, &pieces, build_dir, &flags)
}

states::subjects! {
    &["states", "slow_path"];
    /// 6.1.
    SlowPath61 = "slow-path-6.1", TREE_6_1, Form::V6_1, slow_path::LINUX_6_1, build_oracle, &[];
    /// 6.12.107 and later.
    SlowPath612 = "slow-path", TREE, Form::V6_12, slow_path::LINUX_6_12, build_oracle, mutations::LINUX_6_12;
    /// 6.18 before 6.18.39.
    SlowPath618 = "slow-path-6.18", TREE_6_18, Form::V6_18, slow_path::LINUX_6_18, build_oracle, &[];
    /// 7.3.
    SlowPath73 = "slow-path-7.3", TREE_7_3, Form::V7_3, slow_path::LINUX_7_3, build_oracle, &[];
}
