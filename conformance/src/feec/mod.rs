// SPDX-License-Identifier: GPL-2.0-or-later
//! Placement by energy against the kernel's own C: `find_energy_efficient_cpu` with all that it asks, on
//! random states.
//!
//! A case is a machine with energy models of its own, which both sides build from frequencies and powers; signals of
//! all classes, interrupts among them; clamps of queues and of the task; limits by cpufreq and by
//! hardware. Compared are the choice, the domains computed, and what the task adds to the energy of each domain.
//!
//! **Four forms.** Before 6.0 the saving must exceed a sixteenth; before 6.8 headroom is added after the clamps, and the
//! state is found by frequency; since then performance counts, with and without the task in what runnable boosting
//! looks at.
//!
//! **Not compared here:** sum aggregation of clamps, and what `shim.c` lists as replaced.

mod mutations;

use crate::l0::extract::{self, Pieces};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_5_19, TREE_6_1, TREE_6_18, TREE_7_3, oracle};
use crate::states;
use schedtwin_kernel::sched::fair::states::{Family, energy};
use std::path::{Path, PathBuf};

/// The form of placement that a kernel tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 5.14 to 5.19.
    Margin,
    /// Up to 6.4.
    V6_1,
    /// Runnable boosting adds and subtracts the task's utilisation only.
    V6_18,
    /// It adds and subtracts what of the task is runnable.
    V7_3,
}

impl Form {
    /// Returns the form of a tree's `fair.c`.
    pub fn of(fair: &str) -> Form {
        if extract::function(fair, "eenv_pd_max_util").is_none() {
            return Form::Margin;
        }
        match extract::function(fair, "cpu_util") {
            None => Form::V6_1,
            Some(text) if text.contains("add_task") => Form::V7_3,
            Some(_) => Form::V6_18,
        }
    }

    /// Returns the flags that the shim is told.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Form::Margin => &["-DFORM_6_1", "-DFORM_MARGIN"],
            Form::V6_1 => &["-DFORM_6_1"],
            Form::V6_18 | Form::V7_3 => &[],
        }
    }
}

/// Blocks and macros of the energy model's header; those that not every release has.
const MODEL_BLOCKS: &[&str] =
    &["struct em_perf_state", "struct em_perf_domain", "struct em_data_callback"];
const MODEL_MACROS: &[&str] = &[
    "EM_PERF_STATE_INEFFICIENT",
    "EM_PERF_DOMAIN_SKIP_INEFFICIENCIES",
    "EM_PERF_DOMAIN_ARTIFICIAL",
    "EM_MAX_POWER",
    "em_span_cpus",
];
const MODEL_MACROS_OF_SOME: &[&str] = &["em_estimate_energy", "em_scale_power"];
/// Functions of `sched.h`.
const SCHED_H: &[&str] =
    &["cpu_bw_dl", "cpu_util_dl", "cpu_util_rt", "cpu_util_irq", "scale_irq_capacity"];
const SCHED_H_OF_SOME: &[&str] =
    &["uclamp_rq_get", "uclamp_rq_is_idle", "uclamp_is_used", "uclamp_rq_util_with"];
/// Functions of `fair.c`, in an order in which it compiles; those that not every release has.
const FAIR: &[&str] = &["capacity_of", "task_util", "_task_util_est", "task_util_est"];
const FAIR_OF_SOME: &[&str] =
    &["get_actual_cpu_capacity", "cpu_util", "cpu_util_next", "util_fits_cpu"];
const ENERGY_OF_SOME: &[&str] = &["eenv_task_busy_time", "eenv_pd_busy_time", "eenv_pd_max_util"];

/// Builds the oracle from a tree.
fn build_oracle(tree: &Path, build_dir: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let read = |name| extract::read(tree, name);
    let fair = states::read_fair(tree)?;
    let sched_h = read("kernel/sched/sched.h")?;
    let model_h = read("include/linux/energy_model.h")?;
    let model_c = read("kernel/power/energy_model.c")?;
    let hook_h = read("include/linux/sched/cpufreq.h")?;
    let governor = read("kernel/sched/cpufreq_schedutil.c")?;
    // Where it lies changed with 6.12.
    let utilisation = [fair.clone(), read("kernel/sched/core.c")?].concat();
    let form = Form::of(&fair);

    let mut text = Pieces::default();
    text.add(extract::macro_definition, &model_h, MODEL_MACROS)?;
    text.add_if_there(extract::macro_definition, &model_h, MODEL_MACROS_OF_SOME);
    text.add(extract::block, &model_h, &MODEL_BLOCKS[..1])?;
    text.add_if_there(extract::block, &model_h, &["struct em_perf_table"]);
    text.add(extract::block, &model_h, &MODEL_BLOCKS[1..])?;
    if model_h.contains("max_perf_state") {
        text.text("#define HAS_LIMITS\n");
    }
    text.add(extract::function, &hook_h, &["map_util_freq", "map_util_perf"])?;
    text.add(extract::function, &model_h, &["em_pd_get_efficient_state", "em_cpu_energy"])?;
    text.add_if_there(extract::function, &model_c, &["em_init_performance", "em_compute_costs"]);
    text.add(extract::function, &model_c, &["em_create_perf_table"])?;
    text.add(extract::macro_definition, &sched_h, &["perf_domain_span"])?;
    text.add(extract::function, &sched_h, SCHED_H)?;
    text.add_if_there(extract::function, &sched_h, &["capacity_orig_of"]);
    text.add_if_there(extract::function, &sched_h, SCHED_H_OF_SOME);
    text.add(extract::macro_definition, &fair, &["fits_capacity"])?;
    text.add(extract::function, &fair, FAIR)?;
    text.add_if_there(extract::function, &fair, FAIR_OF_SOME);
    text.add(extract::function, &utilisation, &["effective_cpu_util"])?;
    text.add_if_there(extract::function, &governor, &["sugov_effective_cpu_perf"]);
    text.add_if_there(extract::block, &fair, &["struct energy_env"]);
    text.add_if_there(extract::function, &fair, ENERGY_OF_SOME);
    text.add(extract::function, &fair, &["compute_energy"])?;
    // From here on whatever is computed is noted.
    text.text(match form {
        Form::Margin => {
            "#define compute_energy(p, dst, pd) note_energy(dst, compute_energy(p, dst, pd))\n"
        }
        _ => {
            "#define compute_energy(eenv, pd, cpus, p, dst) \\\n\
             \tnote_energy(dst, compute_energy(eenv, pd, cpus, p, dst))\n"
        }
    });
    text.add(extract::function, &fair, &["find_energy_efficient_cpu"])?;
    text.write(build_dir, "feec_extract.h")?;
    let flags: Vec<&str> = flags.iter().chain(form.flags()).copied().collect();
    oracle::compile("feec/shim.c", &[build_dir], build_dir, &flags)
}

states::subjects! {
    &["states", "feec"];
    /// 5.14 to 5.19.
    Feec519 = "feec-5.19", TREE_5_19, Form::Margin, energy::LINUX_5_19, build_oracle, mutations::MARGIN;
    /// 6.1.
    Feec61 = "feec-6.1", TREE_6_1, Form::V6_1, energy::LINUX_6_1, build_oracle, mutations::LINUX_6_1;
    /// 6.12.107 and later.
    Feec612 = "feec", TREE, Form::V7_3, energy::LINUX_6_12, build_oracle, mutations::LINUX_6_12;
    /// 6.18 before 6.18.40.
    Feec618 = "feec-6.18", TREE_6_18, Form::V6_18, energy::LINUX_6_18, build_oracle, &[];
    /// 7.3.
    Feec73 = "feec-7.3", TREE_7_3, Form::V7_3, energy::LINUX_7_3, build_oracle, &[];
}
