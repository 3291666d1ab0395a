// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads, which are the demands of tasks: read from rt-app files, built in or recorded, and
//! their threads' programs.
//!
//! A [`Workload`] is checked and knows no machine. [`Workload::instantiate`] fits it to a [`Host`]
//! and makes its [`Programs`]: the program counters of all threads and the user memory they share.
//! The twin then asks each thread for its next operation whenever the last one is over.
//!
//! ```
//! use schedtwin_types::{Op, Outcome, Syscall};
//! use schedtwin_workload::{Host, Workload};
//!
//! let workload = Workload::from_path_or_name("w1").unwrap();
//! assert_eq!(workload.duration(), Some(60_000_000_000));
//! let host = Host { cpu_capacity: vec![1024; 8], ns_per_loop: 1000, dl_bandwidth: None, copy_per_kib: 60, block_devices: Vec::new() };
//! let mut programs = workload.instantiate(&host, 1).unwrap();
//! // rt-app's main thread starts the other 40.
//! let first = programs.next(programs.main(), Outcome::Started, 0);
//! assert!(matches!(first, Op::Call(Syscall::Clone { .. })));
//! assert_eq!(programs.nr_threads(), 41);
//! assert_eq!(programs.thread_name(schedtwin_types::ThreadId(1)), "job-0");
//! ```
//!
//! Recordings of real threads are in [`recorded`]. Models of benchmarks take options
//! (`periodic -f 73 -t 12`): see `builtin`. What a thread is allowed and how much it counts can be changed by its name
//! (`nice hogs=10`): see [`ThreadSetting`]. A machine can execute the same programs as the twin: see [`code`]. Several workloads beside each other, in sessions and cgroups, are
//! spelled as jobs of a shell (`setsid w1 & setsid periodic`): see `jobs`. A form for users who do not know these languages: see
//! [`WorkloadForm`].
//!
//! The language is documented in `rtapp`, the life of a thread in `program`, glibc's mutexes,
//! conditions and semaphores in `program::memory`.

mod builtin;
mod form;
mod jobs;
mod program;
mod programs;
pub mod recorded;
mod rtapp;
mod thread_settings;
mod workload;

pub use builtin::{OptionKind, WorkloadOption, builtin_names, builtin_options};
pub use form::{Field, FieldKind, Spelled, WorkloadForm};
pub use jobs::job_names;
pub use program::recording::FrequencyLimits;
pub use program::{LockWait, WORK_KIND, code};
pub use programs::Programs;
pub use thread_settings::{
    CPU_LIST, ThreadChanges, ThreadSetting, ThreadValue, WORDS, class_of, list_of, unmatched,
};
pub use workload::{Host, Workload};

use schedtwin_types::{MAX_CPUS, Work};

/// The most threads of a workload besides rt-app's own, at the start and by forking: enough for any
/// published file (the largest has some 60) and for hundreds of groups of hackbench, and small enough that a slip
/// of the pen in `instance` is told rather than simulated. Builds for machines of more CPUs take more.
pub const MAX_THREADS: usize = if MAX_CPUS > 256 { 131_072 } else { 16_384 };

/// What to do where a workload wants a block device and the machine has none.
pub(crate) const NO_BLOCK_DEVICE: &str = "add [[block]] to its file (docs/machine-keys.md), or take a machine that has one: \
                                          pixel6, i5-10600k, laptop-8c16t, x86-2cpu-hz100";

/// The user work of an event that neither computes nor calls the kernel (an uncontended `lock`, a
/// `resume` of nobody): nanoseconds at capacity 1024. An estimate: some hundred instructions of
/// rt-app's event loop and glibc. It also keeps a loop of such events from standing still in time.
pub const EVENT_WORK: Work = 100;
