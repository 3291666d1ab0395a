// SPDX-License-Identifier: GPL-2.0-or-later
//! The twin: joins kernel, machine and workload.
//!
//! ```
//! use schedtwin_engine::{RunOptions, Scenario};
//! let scenario = Scenario::new("uniform8", "linux-6.12", "w1", Some(100_000_000)).unwrap();
//! let result = scenario.run(1, RunOptions::default()).unwrap();
//! assert!(result.tasks.iter().any(|task| task.name == "job-0" && task.cpu_time_ns > 0));
//! ```

pub mod board;
pub mod difference;
pub mod domains;
pub mod firmware;
mod heat;
pub mod interruptions;
pub mod kernel_file;
pub mod meter;
mod negotiation;
pub mod output;
mod power_limit;
pub mod recording;
mod requests;
pub mod result;
pub mod scenario;
pub mod system_file;
pub mod twin;

pub use schedtwin_kernel::policy;
pub use schedtwin_machine::keys as machine_keys;
pub use schedtwin_trace::outside;
pub use schedtwin_tree::{Fault, Tree, confine, worker};

pub use difference::{
    DecisionKind, Difference, KindDifference, Taken, first_difference, first_differences_by_kind,
};
pub use domains::describe_domains;
pub use scenario::{MODEL_VERSION, Provenance, RunOptions, Scenario};
pub use schedtwin_kernel::device_tree::{DomainRow, DomainTable, flag_names};

use kernel_file::KernelFile;
use schedtwin_input::{Diagnostics, FileKind, read_source};
pub use schedtwin_machine::{Machine, MachineSetting, settings as machine_settings};
use schedtwin_types::printable;
pub use schedtwin_workload::{
    Field, FieldKind, OptionKind, Spelled, Workload, WorkloadForm, WorkloadOption, job_names,
};
use std::path::Path;

/// The built-in machines: name and description.
pub fn list_machines() -> Vec<(String, String)> {
    schedtwin_machine::builtin_names()
        .into_iter()
        .map(|(name, text)| (name.to_string(), text))
        .collect()
}

/// The file of a built-in machine.
pub fn builtin_machine(name: &str) -> Option<std::sync::Arc<schedtwin_input::Source>> {
    schedtwin_machine::builtin_source(name)
}

/// The built-in kernels that have a file, the newest last.
pub fn list_kernels() -> Vec<(String, String)> {
    kernel_file::builtin_names()
}

/// All kernels that have a name: those with a file and the composed ones, by release.
pub fn list_releases() -> Vec<(String, String)> {
    kernel_file::release_names()
}

/// The built-in patches.
pub fn list_patches() -> Vec<(String, String)> {
    kernel_file::patch_names()
}

/// The built-in profiles of systems.
pub fn list_systems() -> Vec<(String, String)> {
    system_file::builtin_names()
}

/// Text for `show system`.
pub fn describe_system(name: &str) -> Result<String, Diagnostics> {
    let source = schedtwin_input::Source::new("<command line>", name);
    let at = schedtwin_input::Location::new(&source, 0..name.len());
    Ok(system_file::SystemFile::load(name, &at)?.describe())
}

/// The built-in workloads.
pub fn list_workloads() -> Vec<(String, String)> {
    schedtwin_workload::builtin_names()
        .into_iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect()
}

/// The options of a built-in workload; `None`: there is no such workload.
pub fn workload_options(name: &str) -> Option<&'static [WorkloadOption]> {
    schedtwin_workload::builtin_options(name)
}

/// Text about a workload: what of it is ignored, and the file itself; of a model its options and how it is made.
pub fn describe_workload(spec: &str) -> Result<String, Diagnostics> {
    let workload = Workload::from_path_or_name(spec)?;
    let first = spec.split_whitespace().next().unwrap_or_default();
    let description = list_workloads().into_iter().find(|(name, _)| name == first);
    let mut text = format!("workload {}\n", printable::line(workload.name()));
    text.extend(description.map(|(_, description)| format!("{description}\n")));
    text.extend(
        workload.notices().iter().map(|notice| format!("note: {}\n", printable::line(notice))),
    );
    text.push_str(&format!("\n{}", workload.describe()));
    Ok(text)
}

/// Text about a machine.
pub fn describe_machine(spec: &str) -> Result<String, Diagnostics> {
    Ok(Machine::load(spec)?.describe())
}

/// Text about a kernel.
pub fn describe_kernel(spec: &str) -> Result<String, Diagnostics> {
    Ok(KernelFile::load(spec)?.describe())
}

/// A kernel with its patches and settings, as the text of a kernel file.
///
/// ```
/// let text = schedtwin_engine::kernel_as_file("linux-6.12:hz=1000").unwrap();
/// assert!(text.contains("\nhz = 1000\n"));
/// ```
pub fn kernel_as_file(spec: &str) -> Result<String, Diagnostics> {
    Ok(KernelFile::load(spec)?.to_file())
}

/// Remarks about a file that is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Values that look wrong but are possible, each with its place in the file.
    pub warnings: Diagnostics,
    /// Facts that the user should know.
    pub notices: Vec<String>,
}

/// Checks a file of any kind; warnings and notices if it is right.
pub fn check_file(path: &Path) -> Result<Checked, Diagnostics> {
    let source = read_source(path)?;
    let spec = path.to_string_lossy();
    if path.extension().is_some_and(|e| e == "toml") {
        let kind = FileKind::of(&source.text);
        if kind == FileKind::Machine {
            let machine = Machine::load(&spec)?;
            firmware::refuse_what_waits(&machine)?;
            let notices = machine.remarks();
            return Ok(Checked { warnings: machine.warnings, notices });
        }
        if kind == FileKind::System {
            system_file::SystemFile::parse(&source.name, &source)?;
            return Ok(Checked::default());
        }
        if kind == FileKind::Patch {
            let notices = kernel_file::check_patch(&source)?;
            return Ok(Checked { notices, ..Checked::default() });
        }
        let kernel = KernelFile::load(&spec)?;
        return Ok(Checked { warnings: kernel.warnings, ..Checked::default() });
    }
    let workload = Workload::parse_rtapp(source)?;
    let mut notices = workload.notices();
    if let Err(endless) = workload.check_that_it_ends() {
        let help = |fault: &schedtwin_input::Diagnostic| {
            format!("{}: {}", fault.message, fault.help.clone().unwrap_or_default())
        };
        notices.extend(endless.0.iter().map(help));
    }
    match workload.pending() {
        nothing if nothing.is_empty() => Ok(Checked { notices, ..Checked::default() }),
        pending => Err(pending.clone()),
    }
}
