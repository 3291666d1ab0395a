// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kind of file a user named: told from what stands in it, so that a machine given as a kernel is one error and not one a line.

use std::fmt;
use std::sync::Arc;

use crate::{Diagnostics, Location, Source};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// CPUs, cores, clock domains.
    Machine,
    /// Settings of a kernel.
    Kernel,
    /// The settings of a patch.
    Patch,
    /// Columns and rows of a published table.
    Study,
    /// Jobs of a score.
    Suite,
    /// Parameters and what they are fitted to.
    Calibration,
    /// What a system does beside its workload.
    System,
    /// An rt-app file.
    Workload,
    /// The source of a device tree, which is read compiled.
    DeviceTree,
}

/// Tables that only files of a kind have.
const TABLES: [(FileKind, &[&str]); 6] = [
    (FileKind::Suite, &["[[job"]),
    (FileKind::Study, &["[[column", "[[row"]),
    (FileKind::Calibration, &["[[residual", "[[parameter"]),
    (FileKind::Machine, &["[cpu", "[core", "[domain", "[path_costs"]),
    (FileKind::Patch, &["[sets"]),
    (FileKind::System, &["[[source"]),
];

/// Keys that only kernels have, of those that most kernel files begin with.
const KERNEL_KEYS: [&str; 3] = ["hz ", "hz=", "extends"];

impl FileKind {
    /// Returns the kind of the text. A TOML file without any other kind's tables is taken for a
    /// kernel.
    ///
    /// ```
    /// use schedtwin_input::FileKind;
    /// assert_eq!(FileKind::of("[cpu.little]\n"), FileKind::Machine);
    /// assert_eq!(FileKind::of("hz = 250\n"), FileKind::Kernel);
    /// assert_eq!(FileKind::of("/* mine */ { \"tasks\": {} }"), FileKind::Workload);
    /// assert_eq!(FileKind::of("// a board\n/dts-v1/;\n/ { };"), FileKind::DeviceTree);
    /// ```
    pub fn of(text: &str) -> FileKind {
        if text.lines().any(|line| line.trim_start().starts_with("/dts-v1/")) {
            return FileKind::DeviceTree;
        }
        if text.trim_start().starts_with(['{', '/']) {
            return FileKind::Workload;
        }
        let has = |table: &&str| text.lines().any(|line| line.trim_start().starts_with(*table));
        let found = TABLES.iter().find(|(_, tables)| tables.iter().any(has));
        found.map_or(FileKind::Kernel, |(kind, _)| *kind)
    }

    /// Refuses a file of another kind, which `at` names. What has none of any kind's tables may be anything that is not yet right.
    pub fn expect(self, source: &Arc<Source>, at: &Location) -> Result<(), Diagnostics> {
        let found = FileKind::of(&source.text);
        let begins = |line: &str| KERNEL_KEYS.iter().any(|key| line.trim_start().starts_with(key));
        let is_kernel = found == FileKind::Kernel && source.text.lines().any(begins);
        let may_be = found == FileKind::Kernel && self != FileKind::Workload;
        if found == self || may_be && !(is_kernel && self == FileKind::Machine) {
            return Ok(());
        }
        let mut faults = Diagnostics::new();
        let message = format!("`{}` is a {found} file, not a {self} file", source.name);
        faults.push_at(at, message, Some(found.taken_by().to_string()));
        Err(faults)
    }

    /// Which argument takes such a file.
    pub fn taken_by(self) -> &'static str {
        match self {
            FileKind::Machine => "-m takes it",
            FileKind::Kernel => "-k takes it",
            FileKind::Patch => "-k takes it behind a kernel: -k linux-6.12+FILE",
            FileKind::Study => "`schedtwin study run` takes it",
            FileKind::Suite => "`schedtwin score` takes it",
            FileKind::Calibration => "`schedtwin study calibrate` takes it",
            FileKind::System => "-w takes it behind a workload: -w 'NAME --system FILE'",
            FileKind::Workload => "-w takes it",
            FileKind::DeviceTree => {
                "make a machine file of it: dtc -I dts -O dtb -o FILE.dtb FILE.dts, then schedtwin import device-tree FILE.dtb -o FILE.toml"
            }
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Machine => "machine",
            FileKind::Kernel => "kernel",
            FileKind::Patch => "patch",
            FileKind::Study => "study",
            FileKind::Suite => "suite",
            FileKind::Calibration => "calibration",
            FileKind::System => "system",
            FileKind::Workload => "workload",
            FileKind::DeviceTree => "device tree's source",
        })
    }
}
