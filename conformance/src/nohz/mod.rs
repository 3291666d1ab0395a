// SPDX-License-Identifier: GPL-2.0-or-later
//! Newidle balancing and balancing for CPUs without a tick against the kernel's own C, on random states.
//!
//! *Newidle*: `sched_balance_newidle`, with what passes cost, how often they help (NI_RANDOM, in 7.3 NI_RATE), when
//! the next one is due. *Idlers*: `nohz_balancer_kick` with all its reasons, the choice of the CPU that is kicked
//! and the flags that it gets, `nohz_balance_enter_idle` and `_exit_idle`, `_nohz_idle_balance` with the passes of
//! each CPU, `nohz_run_idle_balance`, `sched_balance_domains`.
//!
//! The oracle is that of [`crate::balance`], whose passes are made where a domain is due.
//!
//! **Not compared here:** times that passes take, and what `balance/nohz.h` lists as replaced.

mod mutations;

use crate::balance::{self, Form};
use crate::l0::mutate::{Mutation, Sources};
use crate::l0::{TREE, TREE_6_1, TREE_6_18, TREE_7_3};
use schedtwin_kernel::sched::fair::states::{Family, balance::nohz};
use std::path::{Path, PathBuf};

crate::states::subjects! {
    &["states", "balance", "nohz"];
    /// 6.1.
    Nohz61 = "nohz-6.1", TREE_6_1, Form::V6_1, nohz::LINUX_6_1, balance::build_oracle, &[];
    /// 6.12.117 and later.
    Nohz612 = "nohz", TREE, Form::V6_12, nohz::LINUX_6_12, balance::build_oracle, mutations::LINUX_6_12;
    /// 6.18 before 6.18.39.
    Nohz618 = "nohz-6.18", TREE_6_18, Form::V6_18, nohz::LINUX_6_18, balance::build_oracle,
        mutations::LINUX_6_18;
    /// 7.3.
    Nohz73 = "nohz-7.3", TREE_7_3, Form::V7_3, nohz::LINUX_7_3, balance::build_oracle, mutations::LINUX_7_3;
}

#[cfg(test)]
mod tests {
    use super::nohz::FORMS;
    use schedtwin_engine::kernel_file::KernelFile;
    use schedtwin_kernel::config::{Config, Value};

    /// What the states leave out: 6.1's says which tasks are misfits, not what becomes of them, and 7.3's caches have
    /// families of their own (`balance-7.3`).
    const LEFT_OUT: [(&str, &str); 7] = [
        ("linux-6.1", "misfit_status"),
        ("linux-7.3", "sched_cache"),
        ("linux-7.3", "llc_balancing.aggr_tolerance"),
        ("linux-7.3", "llc_balancing.epoch_period"),
        ("linux-7.3", "llc_balancing.epoch_affinity_timeout"),
        ("linux-7.3", "llc_balancing.overaggr_pct"),
        ("linux-7.3", "llc_balancing.imb_pct"),
    ];
    /// The tree is of another release of the series than the built-in kernel: 6.12.117 and .95, 6.18.35 and .44.
    const OTHER_RELEASE: [(&str, &str, &str, &str); 3] = [
        ("linux-6.12", "dst_group_stats", "allowed-cpus", "all-cpus"),
        ("linux-6.12", "pick_busiest_bigger", "always", "among-equal-types"),
        ("linux-6.18", "dst_group_stats", "all-cpus", "allowed-cpus"),
    ];

    /// The settings of balancing, and who has a shared domain.
    fn of_balancing(config: &Config) -> Vec<(&'static str, Value)> {
        let settings = Config::settings().iter().map(|setting| setting.path);
        let settings = settings.skip_while(|path| *path != "migration_cost_ns");
        let mut paths: Vec<_> = settings.take_while(|path| *path != "misfit_status").collect();
        paths.extend(["misfit_status", "sd_shared"]);
        let values = config.values().into_iter().map(|(setting, value)| (setting.path, value));
        values.filter(|(path, _)| paths.contains(path)).collect()
    }

    /// The states are of kernels that balance as the built-in ones.
    #[test]
    fn states_are_of_the_built_in_kernels() {
        let mut apart = Vec::new();
        for (name, form) in FORMS {
            let built_in = KernelFile::load(name).unwrap().config;
            let mut states = Config::linux_6_12();
            form(&mut states);
            let states = of_balancing(&states);
            for (path, value) in of_balancing(&built_in) {
                let ours = states.iter().find(|(other, _)| *other == path);
                let ours = ours.map(|(_, value)| value.clone());
                if ours != Some(value.clone()) && !LEFT_OUT.contains(&(name, path)) {
                    apart.push((*name, path, ours, value));
                }
            }
        }
        let text = |value: &str| Value::from(value);
        let expected = OTHER_RELEASE
            .map(|(name, path, ours, value)| (name, path, Some(text(ours)), text(value)));
        assert_eq!(apart, expected);
    }
}
