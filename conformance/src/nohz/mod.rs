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
use crate::l0::{TREE, TREE_6_1, TREE_7_3};
use schedtwin_kernel::sched::fair::states::{Family, balance::nohz};
use std::path::{Path, PathBuf};

crate::states::subjects! {
    &["states", "balance", "nohz"];
    /// 6.1.
    Nohz61 = "nohz-6.1", TREE_6_1, Form::V6_1, nohz::LINUX_6_1, balance::build_oracle, &[];
    /// 6.12.117 and later.
    Nohz612 = "nohz", TREE, Form::V6_12, nohz::LINUX_6_12, balance::build_oracle, mutations::LINUX_6_12;
    /// 7.3.
    Nohz73 = "nohz-7.3", TREE_7_3, Form::V7_3, nohz::LINUX_7_3, balance::build_oracle, mutations::LINUX_7_3;
}
