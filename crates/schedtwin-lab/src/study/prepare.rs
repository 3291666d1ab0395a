// SPDX-License-Identifier: GPL-2.0-or-later
//! From a study to scenarios that can run, or to what it waits for.
//!
//! A study may be written before the machine, the workload, the patch or a setting that it needs is
//! modelled. What is missing is asked of the registries at run time and never typed, so that a study
//! starts to run on the day its last part arrives.
//!
//! Rows that share machine, workload and settings are measured by the same runs: a **setup**.

use schedtwin_engine::{Scenario, job_names};
use schedtwin_input::{Diagnostics, Spec};

use crate::study::Study;
use crate::study::spec::{Assignment, Part, with_settings};
use crate::twin::Column;

/// The built-in inputs, by name.
#[derive(Clone, Debug)]
pub struct Registry {
    machines: Vec<String>,
    kernels: Vec<String>,
    patches: Vec<String>,
    workloads: Vec<String>,
}

impl Registry {
    /// Returns the inputs that this schedtwin has built in.
    pub fn built_in() -> Registry {
        let names =
            |of: Vec<(String, String)>| of.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        Registry {
            machines: names(schedtwin_engine::list_machines()),
            kernels: names(schedtwin_engine::list_releases()),
            patches: names(schedtwin_engine::list_patches()),
            workloads: names(schedtwin_engine::list_workloads()),
        }
    }

    /// The parts that do not exist: `machine x`, `kernel x`, `patch x`, `workload x`.
    pub fn missing(&self, machine: &str, kernel: &str, workload: &str) -> Vec<String> {
        let mut missing = Vec::new();
        if let Ok(spec) = Spec::parse_machine(machine)
            && !spec.name.is_path()
            && !self.machines.contains(&spec.name.text)
        {
            missing.push(format!("machine {}", spec.name.text));
        }
        if let Ok(spec) = Spec::parse_kernel(kernel) {
            if !spec.name.is_path() && !self.kernels.contains(&spec.name.text) {
                missing.push(format!("kernel {}", spec.name.text));
            }
            for patch in spec.patches.iter().filter(|patch| !patch.is_path()) {
                if !self.patches.contains(&patch.text) {
                    missing.push(format!("patch {}", patch.text));
                }
            }
        }
        for name in job_names(workload) {
            let is_path = name.contains('/') || name.ends_with(".json");
            if !is_path && !self.workloads.iter().any(|known| known == name) {
                missing.push(format!("workload {name}"));
            }
        }
        missing
    }
}

/// Machine, workload and settings with the rows that they measure.
#[derive(Clone)]
pub struct Setup {
    /// The machine as it runs, settings included.
    pub machine: String,
    /// The workload as it runs.
    pub workload: String,
    /// The rows that are measured: numbers of the study's rows.
    pub rows: Vec<usize>,
    /// The study's columns that these rows have, by number.
    pub columns: Vec<usize>,
    /// Of each of them the scenario; empty while the setup waits.
    pub scenarios: Vec<Column>,
    /// The inputs that the setup waits for; empty if it can run.
    pub waits_for: Vec<String>,
}

/// The setups of a study under settings, each with scenarios or with what it waits for.
///
/// `settings` come before those of the rows; the settings of a variant, which must win over both, are
/// `last`.
pub fn setups(
    study: &Study,
    settings: &[Assignment],
    last: &[Assignment],
    registry: &Registry,
) -> Vec<Setup> {
    let mut setups: Vec<(Setup, Vec<Assignment>)> = Vec::new();
    for (number, row) in study.rows.iter().enumerate() {
        let all: Vec<Assignment> =
            settings.iter().chain(&row.settings).chain(last).cloned().collect();
        let machine = with_settings(row.machine(study), Part::Machine, &all);
        let workload = with_settings(row.workload(study), Part::Workload, &all);
        let of_kernels: Vec<Assignment> =
            all.into_iter().filter(|set| set.part == Part::Kernel).collect();
        let known = setups.iter_mut().find(|(setup, kernels)| {
            setup.machine == machine && setup.workload == workload && *kernels == of_kernels
        });
        let setup = match known {
            Some((setup, _)) => setup,
            None => {
                let setup = Setup {
                    machine,
                    workload,
                    rows: Vec::new(),
                    columns: Vec::new(),
                    scenarios: Vec::new(),
                    waits_for: Vec::new(),
                };
                setups.push((setup, of_kernels));
                &mut setups.last_mut().expect("just put in").0
            }
        };
        setup.rows.push(number);
        for cell in &row.cells {
            if !setup.columns.contains(&cell.column) {
                setup.columns.push(cell.column);
            }
        }
    }
    setups
        .into_iter()
        .map(|(mut setup, of_kernels)| {
            setup.columns.sort();
            for number in setup.columns.clone() {
                let column = &study.columns[number];
                let name = column.run_as.as_ref().unwrap_or(&column.kernel);
                let kernel = with_settings(name, Part::Kernel, &of_kernels);
                match scenario(&setup.machine, &kernel, &setup.workload, study, registry) {
                    Ok(scenario) => setup.scenarios.push(Column { kernel, scenario }),
                    Err(waits) => {
                        setup.waits_for.extend(waits);
                    }
                }
            }
            if !setup.waits_for.is_empty() {
                setup.scenarios.clear();
            }
            setup.waits_for.sort();
            setup.waits_for.dedup();
            setup
        })
        .collect()
}

pub(in crate::study) fn scenario(
    machine: &str,
    kernel: &str,
    workload: &str,
    study: &Study,
    registry: &Registry,
) -> Result<Scenario, Vec<String>> {
    let missing = registry.missing(machine, kernel, workload);
    if !missing.is_empty() {
        return Err(missing);
    }
    Scenario::new(machine, kernel, workload, study.duration_ns).map_err(|faults| refused(&faults))
}

/// Returns the reasons of a refusal: the names exist, but not with these settings.
fn refused(faults: &Diagnostics) -> Vec<String> {
    let line = |fault: &schedtwin_input::Diagnostic| match fault.source.name.as_str() {
        "<command line>" => format!("{}: {}", fault.source.text, fault.message),
        name => format!("{name}: {}", fault.message),
    };
    faults.0.iter().map(line).collect()
}

/// All that a study waits for, each once; empty if every row can run.
pub fn waits_for(setups: &[Setup]) -> Vec<String> {
    let mut all: Vec<String> = setups.iter().flat_map(|setup| setup.waits_for.clone()).collect();
    all.sort();
    all.dedup();
    all
}
