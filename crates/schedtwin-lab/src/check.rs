// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kind of file something is, and whether it is right.

use std::path::Path;

use schedtwin_engine::Checked;
use schedtwin_input::{Diagnostics, FileKind, read_source};

use crate::calibrate::Calibration;
use crate::score::{self, Prepared};
use crate::study;

/// Checks a file of any kind: machine, kernel, patch, workload, study, suite, calibration. Warnings and notices if it is right.
pub fn check_file(path: &Path) -> Result<Checked, Diagnostics> {
    if path.extension().is_none_or(|ending| ending != "toml") {
        return schedtwin_engine::check_file(path);
    }
    let source = read_source(path)?;
    match FileKind::of(&source.text) {
        FileKind::Study => study::load(&path.to_string_lossy()).map(|_| Checked::default()),
        FileKind::Suite => {
            Prepared::of(score::load(&path.to_string_lossy())?).map(|_| Checked::default())
        }
        FileKind::Calibration => {
            let notices = Calibration::read(&source)?.warnings();
            Ok(Checked { notices, ..Checked::default() })
        }
        _ => schedtwin_engine::check_file(path),
    }
}
