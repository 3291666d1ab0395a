// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux's scheduler, frequency and idle code as a deterministic twin: an experiment in, a table out.
//!
//! This crate is the interface for programs, notebooks and bindings. It has these things:
//!
//! | type | what it is |
//! |---|---|
//! | [`Experiment`] | machines, kernels and workloads by name, seeds, and how long to simulate |
//! | [`Table`] | what the runs measured: one row for each run, metric, label set and kind |
//! | [`Explanation`] | why two kernels part, or what a run did at some time, and why |
//! | [`Events`] | the events of a run, named as ftrace and LISA name them |
//! | [`score`](fn@score) | one number for a kernel, for searches |
//! | [`sweep`] | lists of settings, performed here or by a batch engine, and which are best |
//!
//! Equal experiments have equal tables, on every computer and with any number of threads.
//!
//! ```
//! use schedtwin::{Duration, Experiment};
//!
//! let table = Experiment::new()
//!     .machine("uniform8")
//!     .kernels(["linux-6.12", "linux-6.12:hz=1000"])
//!     .workload("w1")
//!     .seeds(1..=2)
//!     .duration(Duration::from_ms(50))
//!     .run()?;
//! assert_eq!(table.runs().len(), 4);
//! for row in table.select("power")? {
//!     println!("{} seed {}: {:?} {}", row.kernel(), row.seed(), row.value(), row.unit());
//! }
//! let comparison = table.comparison("uniform8", "w1").expect("a machine and a workload of the experiment");
//! println!("{comparison}");
//! # Ok::<(), schedtwin::Error>(())
//! ```
//!
//! All faults of an experiment come at once, each with its place:
//!
//! ```
//! let error = schedtwin::Experiment::new().machine("pixel7").kernel("linux-6.12:hz=0").workload("w1").run().unwrap_err();
//! let text = error.to_string();
//! assert!(text.contains("there is no machine `pixel7`") && text.contains("`hz` is 0"), "{text}");
//! ```
//!
//! What lies below: [`schedtwin_engine`] runs one scenario, [`schedtwin_lab`] compares, sweeps, fits and writes reports.

#[cfg(feature = "arrow")]
mod arrow;
mod comparison;
mod error;
mod events;
mod experiment;
mod explanation;
mod isolated;
mod score;
pub mod sweep;
mod table;

pub use comparison::Comparison;
pub use error::Error;
pub use events::{Events, Field};
pub use experiment::Experiment;
pub use explanation::{Decision, Explanation};
pub use schedtwin_engine::difference::Difference;
pub use schedtwin_engine::kernel_file::KernelFile;
pub use schedtwin_engine::{Machine, Workload};
pub use schedtwin_input::Diagnostics;
pub use schedtwin_lab::crash::Crash;
pub use schedtwin_lab::given::{Given, GivenKernel, GivenMachine, GivenSuite, GivenWorkload};
pub use schedtwin_lab::report::{Extent, Format};
pub use schedtwin_lab::{Progress, Provenance};
pub use schedtwin_trace::explain::{Query, What};
pub use schedtwin_types::Duration;
pub use schedtwin_types::metric::{Better, Kind, Labels, Parts};
pub use score::{Score, ScoreOptions, score, score_document};
pub use table::{Row, Run, Table};
