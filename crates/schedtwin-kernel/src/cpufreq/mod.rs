//! `drivers/cpufreq/` and `kernel/sched/cpufreq*.c`: who chooses frequencies, and how.

pub mod policy;
pub mod schedutil;
pub mod sugov_kthread;
