// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kind of file something is, and whether it is right.

use std::path::Path;

use schedtwin_engine::Checked;
use schedtwin_input::{Diagnostics, FileKind, read_source};

use crate::Progress;
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
        FileKind::Suite => checked_suite(&Prepared::of(score::load(&path.to_string_lossy())?)?),
        FileKind::Calibration => {
            let notices = Calibration::read(&source)?.warnings();
            Ok(Checked { notices, ..Checked::default() })
        }
        _ => schedtwin_engine::check_file(path),
    }
}

/// Runs the baseline of a suite: whether it measures what the suite asks for, no file tells. A baseline with C is not run, as a
/// check is not confined.
fn checked_suite(prepared: &Prepared) -> Result<Checked, Diagnostics> {
    if prepared.has_foreign_code() {
        let notice = "the baseline has C, so it was not run: whether it has a value of each measure is not known";
        return Ok(Checked { notices: vec![notice.to_string()], ..Checked::default() });
    }
    match prepared.baseline(None, &Progress::new()) {
        Ok(baseline) => baseline.map(|_| Checked::default()),
        Err(error) => {
            let mut faults = Diagnostics::new();
            let message = format!("the baseline cannot be run: {error}");
            faults.push_whole(&prepared.suite.source, message, None);
            Err(faults)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Candidate, Conditions};

    /// A check of a suite refuses what scoring refuses.
    #[test]
    fn a_suite_is_fine_where_a_score_is_possible() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, workload, metric, why) in [
            ("good", "ui-phone", "power.mean", ""),
            ("idle", "idle", "power.mean", "no task counts jobs"),
            ("no-frames", "w1", "frame_duration.p99,task=ui", "has no value"),
        ] {
            let path = folder.path().join(format!("{name}.toml"));
            let text = format!(
                "name = \"t\"\ndescription = \"t\"\nbaseline = \"linux-7.3\"\nseeds = 2\n[[job]]\nname = \"a\"\n\
                 machines = [\"pixel6\"]\nworkloads = [\"{workload}\"]\nduration = \"300ms\"\n\
                 measure = [{{ metric = \"{metric}\" }}]\n"
            );
            std::fs::write(&path, text).expect("written");
            let checked = check_file(&path);
            let prepared = Prepared::of(score::load(&path.to_string_lossy()).unwrap()).unwrap();
            let candidates = [Candidate::named("linux-7.3")];
            let scored =
                score::score(&prepared, &candidates, &Conditions::default(), &Progress::new());
            match why {
                "" => assert!(checked.is_ok() && scored.unwrap().is_ok()),
                why => {
                    let faults = checked.expect_err(name).to_string();
                    assert!(faults.contains(why), "{faults}");
                    assert_eq!(scored.unwrap().unwrap_err().to_string(), faults);
                }
            }
        }
    }
}
