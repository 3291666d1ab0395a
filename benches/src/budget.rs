// SPDX-License-Identifier: GPL-2.0-or-later
//! The budget of a W1 job, by row, as measured.
//!
//! Valgrind counts the instructions of two runs of different length; their difference is what jobs cost once
//! everything has started. A row's nanoseconds are its share of the instructions times the measured time of
//! a job: an instruction that waits for memory or divides is counted like any other, so a row can be off by
//! some ten per cent either way, while the sum is what a clock says.

use crate::callgrind::Profile;
use crate::measure::{child, median, timed};
use crate::rows::{ROWS, by_row};
use crate::w1::{Files, JOBS_PER_SECOND, KERNEL, run, scenario, table};
use std::io;
use std::path::Path;
use std::process::Command;

/// Simulated seconds of the two runs under Valgrind.
const SHORT_S: u64 = 2;
const LONG_S: u64 = 12;

/// Whether Valgrind can be started.
pub fn valgrind_is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// W1 under callgrind.
pub fn profile(seconds: u64) -> io::Result<Profile> {
    callgrind(&["case", "--seconds", &seconds.to_string()])
}

/// A process of this program with these arguments, under callgrind.
pub fn callgrind(arguments: &[&str]) -> io::Result<Profile> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    child(&["valgrind", "--tool=callgrind", &out], arguments)?;
    Ok(Profile::parse(&std::fs::read_to_string(Path::new(&file))?))
}

/// Measures and prints the table.
pub fn report() -> io::Result<()> {
    let (short, long) = (by_row(&profile(SHORT_S)?), by_row(&profile(LONG_S)?));
    let jobs = (JOBS_PER_SECOND * (LONG_S - SHORT_S)) as f64;
    let instructions: Vec<f64> =
        long.iter().zip(short).map(|(long, short)| (long - short) / jobs).collect();
    let all: f64 = instructions.iter().sum();

    let scenario = scenario(KERNEL, 60);
    let times: Vec<f64> = (0..11).map(|_| timed(|| run(&scenario, 1, Files::None)).0).collect();
    let job_ns = median(&times[1..]) * 1e9 / (JOBS_PER_SECOND * 60) as f64;

    let mut table = table(["row", "budget, ns", "measured, ns", "share", "instructions a job"]);
    for ((name, budget), count) in ROWS.iter().zip(&instructions) {
        table.add_row([
            name.to_string(),
            budget.to_string(),
            format!("{:.0}", job_ns * count / all),
            format!("{:.1} %", 100.0 * count / all),
            format!("{count:.0}"),
        ]);
    }
    let budget: u64 = ROWS.iter().map(|(_, budget)| budget).sum();
    let sum = [
        "sum".to_string(),
        budget.to_string(),
        format!("{job_ns:.0}"),
        String::new(),
        format!("{all:.0}"),
    ];
    table.add_row(sum);
    println!("{table}");
    Ok(())
}
