// SPDX-License-Identifier: GPL-2.0-or-later
//! The guard against regressions: instructions of a few runs, as Valgrind counts them, against committed
//! numbers. Counts repeat to the last digit on one computer and differ little between computers; clocks do
//! neither, so no clock is asked.
//!
//! `benches/instructions.toml` holds the numbers and the compiler that they were counted with. A change that makes
//! one larger or smaller by more than the tolerance writes them down anew (`guard --update`), and CHANGELOG.md says why
//! it rose. The difference of two runs of W1, by job, holds no start and no end; the others are whole processes.

use crate::budget::{callgrind, profile, valgrind_is_there};
use crate::w1::{Files, JOBS_PER_SECOND, run};
use schedtwin_engine::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::process::Command;

/// Where the numbers are.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.toml");
/// Deviation that passes, per cent.
pub const TOLERANCE_PERCENT: u64 = 1;

/// The name of W1's difference by job.
const W1_JOB: &str = "w1-job";

/// A run that is counted whole.
struct Counted {
    name: &'static str,
    machine: &'static str,
    kernel: &'static str,
    workload: &'static str,
    milliseconds: u64,
}

/// Runs as people wait for them: a phone's interface, messages on a laptop and on a large server.
const RUNS: [Counted; 3] = [
    Counted {
        name: "ui-phone",
        machine: "pixel6",
        kernel: "linux-7.3",
        workload: "ui-phone",
        milliseconds: 3_000,
    },
    Counted {
        name: "messaging",
        machine: "i7-3630qm",
        kernel: "linux-6.12",
        workload: "messaging -g 5 -l 50",
        milliseconds: 10_000,
    },
    Counted {
        name: "messaging-256",
        machine: "epyc-milan-2x64",
        kernel: "linux-7.3",
        workload: "messaging -g 4 -l 20",
        milliseconds: 10_000,
    },
];

/// Performs the run of that name; whether there is one.
pub fn case(name: &str) -> bool {
    let Some(Counted { machine, kernel, workload, milliseconds, .. }) =
        RUNS.iter().find(|run| run.name == name)
    else {
        return false;
    };
    let scenario = Scenario::new(machine, kernel, workload, Some(milliseconds * 1_000_000))
        .unwrap_or_else(|faults| panic!("built-ins: {faults}"));
    run(&scenario, 1, Files::None);
    true
}

/// Simulated seconds of the two runs: their difference holds no start and no end.
const SHORT_S: u64 = 1;
const LONG_S: u64 = 3;

/// The committed numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// `rustc --version`: another compiler counts a little differently.
    pub rustc: String,
    /// Instructions by the name of what is counted.
    pub instructions: BTreeMap<String, u64>,
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

fn judge(name: &str, expected: u64, counted: u64) -> Verdict {
    let percent = 100.0 * (counted as f64 / expected as f64 - 1.0);
    let said =
        format!("{name}: {counted} instructions, {percent:+.2} % against the committed {expected}");
    let passes = counted.abs_diff(expected) * 100 <= TOLERANCE_PERCENT * expected;
    if passes { Verdict::Passed(said) } else { Verdict::Failed(said) }
}

/// Counts everything.
fn count() -> io::Result<BTreeMap<String, u64>> {
    let (short, long) = (profile(SHORT_S)?.total, profile(LONG_S)?.total);
    let job = (long - short) / (JOBS_PER_SECOND * (LONG_S - SHORT_S));
    let mut counted = BTreeMap::from([(W1_JOB.to_string(), job)]);
    for run in &RUNS {
        counted.insert(run.name.to_string(), callgrind(&["guard-case", run.name])?.total);
    }
    Ok(counted)
}

/// Counts and compares; with `update`, writes the numbers down instead.
pub fn check(update: bool) -> io::Result<Vec<Verdict>> {
    if !valgrind_is_there() {
        return Ok(vec![Verdict::Passed("skipped: valgrind is not installed".to_string())]);
    }
    let counted = count()?;
    if update {
        let said = |(name, count): (&String, &u64)| {
            Verdict::Passed(format!("{name}: {count} instructions, written down"))
        };
        let said = counted.iter().map(said).collect();
        let text = toml::to_string(&Committed { rustc: rustc(), instructions: counted });
        let text = format!("# Written by `guard --update`.\n{}", text.map_err(io::Error::other)?);
        std::fs::write(FILE, text)?;
        return Ok(said);
    }
    let committed: Committed =
        toml::from_str(&std::fs::read_to_string(FILE)?).map_err(io::Error::other)?;
    let mine = rustc();
    let verdict = |(name, count): (&String, &u64)| {
        let Some(expected) = committed.instructions.get(name) else {
            return Verdict::Failed(format!("{name}: no number is committed"));
        };
        match judge(name, *expected, *count) {
            Verdict::Failed(said) if mine != committed.rustc => Verdict::Failed(format!(
                "{said} (counted with {mine}, committed with {})",
                committed.rustc
            )),
            verdict => verdict,
        }
    };
    Ok(counted.iter().map(verdict).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_per_cent_either_way() {
        for (counted, passes) in
            [(989, false), (990, true), (1000, true), (1010, true), (1011, false)]
        {
            let passed = matches!(judge("w1-job", 1000, counted), Verdict::Passed(_));
            assert_eq!(passed, passes, "{counted}");
        }
    }

    #[test]
    fn every_run_has_a_committed_number_and_can_be_read() {
        let text = std::fs::read_to_string(FILE).unwrap();
        let committed = toml::from_str::<Committed>(&text).unwrap().instructions;
        let names = RUNS.iter().map(|run| run.name).chain([W1_JOB]);
        assert!(names.clone().all(|name| committed.get(name).is_some_and(|count| *count > 0)));
        assert_eq!(committed.len(), names.count());
        for run in &RUNS {
            Scenario::new(run.machine, run.kernel, run.workload, Some(1_000_000)).unwrap();
        }
    }
}
