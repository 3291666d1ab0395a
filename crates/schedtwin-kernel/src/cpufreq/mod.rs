//! `drivers/cpufreq/` and `kernel/sched/cpufreq*.c`: who chooses frequencies, and how.

pub mod dbs;
pub(crate) mod forms;
pub mod hook;
pub mod policy;
pub mod schedutil;
pub mod sugov_kthread;
