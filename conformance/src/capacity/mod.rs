// SPDX-License-Identifier: GPL-2.0-or-later
//! The refresh of capacities against the kernel's own C: `update_group_capacity`, `update_cpu_capacity` and
//! `scale_rt_capacity`, on random states.
//!
//! A case is a machine with all its domains, those of NUMA nodes that overlap among them; RT, deadline, interrupts,
//! hardware and cpufreq take their parts of its CPUs. Compared are the capacities of all CPUs and groups, and when
//! those of a group are due again.

mod mutations;

use crate::l0::extract;
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_6_1, TREE_6_18, TREE_7_3};
use crate::states::{self, Extract};
use schedtwin_kernel::sched::fair::states::{Family, balance::capacity};
use std::path::{Path, PathBuf};

/// The form of the refresh that a kernel tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Up to 6.9: what thermal pressure takes counts as used.
    Thermal,
    /// From 6.10 on: the greater of hardware's and cpufreq's pressure lowers the capacity first.
    Actual,
}

impl Form {
    /// Returns the form of a tree's `fair.c`.
    pub fn of(fair: &str) -> Form {
        match extract::function(fair, "get_actual_cpu_capacity") {
            Some(_) => Form::Actual,
            None => Form::Thermal,
        }
    }
}

/// Functions of `sched.h`.
const SCHED_H: &[&str] = &["cpu_util_dl", "cpu_util_rt", "cpu_util_irq", "scale_irq_capacity"];

/// Builds the oracle from a tree.
fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let fair = states::read_fair(tree)?;
    let form = Form::of(&fair);
    let text = [extract::read(tree, "kernel/sched/sched.h")?, fair].concat();
    let actual = (form == Form::Actual).then_some("get_actual_cpu_capacity");
    let refresh = ["scale_rt_capacity", "update_cpu_capacity", "update_group_capacity"];
    let functions = SCHED_H.iter().copied().chain(actual).chain(refresh);
    let pieces = Extract { blocks: Vec::new(), macros: Vec::new(), functions: functions.collect() };
    let form = (form == Form::Thermal).then_some("-DFORM_6_1");
    let own = ["-DCONFIG_HAVE_SCHED_AVG_IRQ=1"];
    let flags: Vec<&str> = flags.iter().copied().chain(own).chain(form).collect();
    states::compile("capacity", &text, &pieces, build_dir, &flags)
}

states::subjects! {
    &["states", "capacity"];
    /// 6.1.
    Capacity61 = "capacity-6.1", TREE_6_1, Form::Thermal, capacity::LINUX_6_1, build_oracle, mutations::LINUX_6_1;
    /// 6.10 and later.
    Capacity612 = "capacity", TREE, Form::Actual, capacity::LINUX_6_12, build_oracle, mutations::LINUX_6_12;
    /// 6.18.
    Capacity618 = "capacity-6.18", TREE_6_18, Form::Actual, capacity::LINUX_6_12, build_oracle, &[];
    /// 7.3.
    Capacity73 = "capacity-7.3", TREE_7_3, Form::Actual, capacity::LINUX_6_12, build_oracle, &[];
}
