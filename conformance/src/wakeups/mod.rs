// SPDX-License-Identifier: GPL-2.0-or-later
//! Wakeup placement against the kernel's own C: whole decisions on random states.
//!
//! *Wakeups*: `wake_affine` and `select_idle_sibling` with all that the latter calls, on machines with and
//! without hardware threads, where capacities differ and where not, of tasks with and without clamps. Up to
//! 6.12 with what SIS_PROP spends; in 7.3 with a limit of the search of each cache and of the domain with all
//! capacities.
//!
//! **Not compared here:** what `balance/kernel.h` lists as replaced.

mod mutations;

use crate::balance::{self, Form};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_6_1, TREE_7_3};
use crate::states::{self, Extract};
use schedtwin_kernel::sched::fair::states::{Family, wakeups};
use std::path::{Path, PathBuf};

/// The functions that are taken out of `fair.c`, in an order in which it compiles.
const FUNCTIONS: &[&str] = &[
    "is_core_idle",
    "get_actual_cpu_capacity",
    "util_fits_cpu",
    "choose_sched_idle_rq",
    "choose_idle_cpu",
    "wake_affine_idle",
    "wake_affine_weight",
    "wake_affine",
    "__select_idle_cpu",
    "set_idle_cores",
    "test_idle_cores",
    "select_idle_core",
    "select_idle_smt",
    "select_idle_cpu",
    "select_idle_capacity",
    "asym_fits_cpu",
    "select_idle_sibling",
];

/// Builds the oracle of 7.3 from a tree.
fn build_oracle_7_3(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let fair = states::read_fair(tree)?;
    let pieces = Extract {
        blocks: vec!["enum asym_fits_state"],
        macros: vec!["fits_capacity"],
        functions: FUNCTIONS.to_vec(),
    };
    states::compile("wakeups", &fair, &pieces, build_dir, flags)
}

states::subjects! {
    &["states", "balance", "wakeups"];
    /// 6.1.
    Wakeups61 = "wakeups-6.1", TREE_6_1, Form::V6_1, wakeups::LINUX_6_1, balance::build_oracle, &[];
    /// 6.12.
    Wakeups612 = "wakeups", TREE, Form::V6_12_95 | Form::V6_12, wakeups::LINUX_6_12, balance::build_oracle,
        mutations::LINUX_6_12;
    /// 7.3.
    Wakeups73 = "wakeups-7.3", TREE_7_3, Form::V7_3, wakeups::LINUX_7_3, build_oracle_7_3,
        mutations::LINUX_7_3;
}
