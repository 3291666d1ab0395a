// SPDX-License-Identifier: GPL-2.0-or-later
//! The measurements of a run.

use schedtwin_types::Ns;
pub use schedtwin_types::metric::{Better, Kind, Metric};
pub use schedtwin_types::property::{Bounds, Breach, Property};

/// How a notice begins that says that a scheduler of sched_ext was unloaded with an error: a failure of the run.
pub const SCX_ENDED: &str = "sched_ext: a scheduler was unloaded";

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// Name as `comm` shows it.
    pub name: String,
    /// Task id.
    pub id: u32,
    /// Time on a CPU.
    pub cpu_time_ns: Ns,
    /// Of that, time at the work of its program.
    pub utime_ns: Ns,
    /// The rest: paths of the kernel in its context, among them interrupts.
    pub stime_ns: Ns,
    /// Per CPU: time on it.
    pub cpu_time_by_cpu_ns: Vec<Ns>,
    /// Jobs completed.
    pub jobs: u64,
    /// Times it was switched in.
    pub switches: u64,
    /// Times it changed the CPU.
    pub migrations: u64,
}

/// A CPU of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuResult {
    /// CPU number.
    pub cpu: u16,
    /// Time running tasks (interrupts included).
    pub busy_ns: Ns,
    /// Per idle state: time in it (entry and exit included).
    pub idle_ns: Vec<Ns>,
    /// Time in the idle task outside of its idle states: paths of the kernel on the way in and out.
    /// With `busy_ns` and `idle_ns` it is the whole span.
    pub idle_loop_ns: Ns,
    /// Per idle state: entries.
    pub idle_entries: Vec<u64>,
    /// Per operating point of its domain: (kHz, time at it).
    pub frequency_ns: Vec<(u32, Ns)>,
}

/// All that one run measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The metrics, in a fixed order.
    pub metrics: Vec<Metric>,
    /// The tasks, by id.
    pub tasks: Vec<TaskResult>,
    /// The CPUs.
    pub cpus: Vec<CpuResult>,
    /// Digest over every fact and every energy segment: equal digests, equal executions.
    pub digest: u64,
    /// Simulated time.
    pub simulated_ns: Ns,
    /// Events taken from the board.
    pub events: u64,
    /// What ended the run before its time, or kept it from ending: in words.
    pub ended: Vec<String>,
    /// Properties that were broken, the gravest first.
    pub broken: Vec<Breach>,
    /// Outcomes worth knowing: what was ignored, which limit ended the run.
    pub notices: Vec<String>,
}
