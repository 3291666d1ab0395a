// SPDX-License-Identifier: GPL-2.0-or-later
//! The guard against regressions: instructions of a W1 job, as Valgrind counts them, against a committed
//! number. Counts repeat to the last digit on one computer and differ little between computers; clocks do
//! neither, so no clock is asked.
//!
//! `benches/instructions.toml` holds the number and the compiler it was counted with. A change that makes
//! the twin faster or slower by more than the tolerance updates it (`guard --update`) and says why.

use crate::budget::{profile, valgrind_is_there};
use crate::w1::JOBS_PER_SECOND;
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Command;

/// Where the number is.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.toml");
/// Deviation that passes, per cent.
pub const TOLERANCE_PERCENT: u64 = 5;

/// Simulated seconds of the two runs: their difference holds no start and no end.
const SHORT_S: u64 = 1;
const LONG_S: u64 = 3;

/// The committed number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// Instructions of a W1 job.
    pub instructions_per_job: u64,
    /// `rustc --version`: another compiler counts a little differently.
    pub rustc: String,
}

/// The verdict of the guard.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Within the tolerance, or not measured.
    Passed(String),
    /// Beyond it.
    Failed(String),
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

fn judge(committed: &Committed, counted: u64) -> Verdict {
    let expected = committed.instructions_per_job;
    let percent = 100.0 * (counted as f64 / expected as f64 - 1.0);
    let said = format!(
        "{counted} instructions a W1 job, {percent:+.1} % against the committed {expected}",
    );
    let passes = counted.abs_diff(expected) * 100 <= TOLERANCE_PERCENT * expected;
    if passes { Verdict::Passed(said) } else { Verdict::Failed(said) }
}

/// Counts and compares; with `update`, writes the number down instead.
pub fn check(update: bool) -> io::Result<Verdict> {
    if !valgrind_is_there() {
        return Ok(Verdict::Passed("skipped: valgrind is not installed".to_string()));
    }
    let (short, long) = (profile(SHORT_S)?.total, profile(LONG_S)?.total);
    let counted = (long - short) / (JOBS_PER_SECOND * (LONG_S - SHORT_S));
    if update {
        let new = Committed { instructions_per_job: counted, rustc: rustc() };
        let text = toml::to_string(&new).map_err(io::Error::other)?;
        std::fs::write(FILE, format!("# Written by `guard --update`.\n{text}"))?;
        return Ok(Verdict::Passed(format!("{counted} instructions a W1 job, written down")));
    }
    let committed: Committed =
        toml::from_str(&std::fs::read_to_string(FILE)?).map_err(io::Error::other)?;
    let mine = rustc();
    Ok(match judge(&committed, counted) {
        Verdict::Failed(said) if mine != committed.rustc => Verdict::Failed(format!(
            "{said} (counted with {mine}, committed with {})",
            committed.rustc
        )),
        verdict => verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_per_cent_either_way() {
        let committed = Committed { instructions_per_job: 1000, rustc: String::new() };
        for (counted, passes) in
            [(949, false), (950, true), (1000, true), (1050, true), (1051, false)]
        {
            assert_eq!(
                matches!(judge(&committed, counted), Verdict::Passed(_)),
                passes,
                "{counted}"
            );
        }
    }

    #[test]
    fn the_committed_number_can_be_read() {
        let text = std::fs::read_to_string(FILE).unwrap();
        assert!(toml::from_str::<Committed>(&text).unwrap().instructions_per_job > 0);
    }
}
