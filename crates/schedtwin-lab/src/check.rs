//! Which kind of file something is, and whether it is right.

use std::path::Path;

use schedtwin_input::{Diagnostics, read_source};

use crate::calibrate::Calibration;
use crate::study;

/// Checks a file of any kind: machine, kernel, patch, workload, study, calibration. Notices if it is right.
pub fn check_file(path: &Path) -> Result<Vec<String>, Diagnostics> {
    if path.extension().is_none_or(|ending| ending != "toml") {
        return schedtwin::check_file(path);
    }
    let source = read_source(path)?;
    let has = |table: &str| source.text.lines().any(|line| line.trim_start().starts_with(table));
    if has("[[column") || has("[[row") {
        study::load(&path.to_string_lossy())?;
        return Ok(Vec::new());
    }
    if has("[[residual") || has("[[parameter") {
        return Ok(Calibration::read(&source)?.warnings());
    }
    schedtwin::check_file(path)
}
