// SPDX-License-Identifier: GPL-2.0-or-later
//! `drivers/cpufreq/` and `kernel/sched/cpufreq*.c`: who chooses frequencies, and how.

pub mod counters;
pub mod counts;
pub mod dbs;
pub(crate) mod driver;
pub(crate) mod forms;
pub mod freq_table;
pub mod hints;
pub mod hook;
pub mod intel_pstate;
pub mod policy;
pub mod schedutil;
pub mod sugov_kthread;
