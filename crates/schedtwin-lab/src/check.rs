//! Which kind of file something is, and whether it is right.

use std::path::Path;

use schedtwin::Checked;
use schedtwin_input::{Diagnostics, read_source};

use crate::calibrate::Calibration;
use crate::study;

/// Checks a file of any kind: machine, kernel, patch, workload, study, calibration. Warnings and notices if it is right.
pub fn check_file(path: &Path) -> Result<Checked, Diagnostics> {
    if path.extension().is_none_or(|ending| ending != "toml") {
        return schedtwin::check_file(path);
    }
    let source = read_source(path)?;
    let has = |table: &str| source.text.lines().any(|line| line.trim_start().starts_with(table));
    if has("[[column") || has("[[row") {
        study::load(&path.to_string_lossy())?;
        return Ok(Checked::default());
    }
    if has("[[residual") || has("[[parameter") {
        let notices = Calibration::read(&source)?.warnings();
        return Ok(Checked { notices, ..Checked::default() });
    }
    schedtwin::check_file(path)
}
