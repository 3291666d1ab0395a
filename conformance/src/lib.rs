// SPDX-License-Identifier: GPL-2.0-or-later
//! The real kernel as oracle.
//!
//! | compares | with | where |
//! |---|---|---|
//! | arithmetic | the kernel's own C | [`l0`], and one folder per subject ([`subjects`]) |
//! | the fair class | its definitions in exact fractions | [`rational`] |
//! | averages and decisions | recordings | [`l1`] |
//! | executions | recordings | [`l2`] |

pub mod amd_pstate;
pub mod balance;
pub mod bandwidth;
pub mod capacity;
pub mod cfs;
pub mod dbs;
pub mod deadline;
pub mod deadline_queues;
pub mod eevdf;
pub mod fair;
pub mod feec;
pub mod freq_table;
pub mod frequency;
pub mod ftrace;
pub mod groups;
pub mod haltpoll;
pub mod hrtimer;
pub mod idle;
pub mod intel_pstate;
pub mod l0;
pub mod l1;
pub mod l2;
pub mod ladder;
pub mod menu;
pub mod nohz;
pub mod pelt;
pub mod rational;
pub mod rt;
pub mod sched_cache;
pub mod schedutil;
pub mod schedutil_4_7;
pub mod slow_path;
pub mod states;
pub mod subjects;
pub mod teo;
pub mod timer_wheel;
pub mod uclamp;
pub mod wakeups;
