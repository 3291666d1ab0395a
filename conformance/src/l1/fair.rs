//! The fair class's decisions, re-driven: picks, preemption, delayed dequeues, and every virtual time.
//!
//! ```text
//! schedtwin-conformance l1 fair [--misses] [FILE...]
//! ```

pub(super) mod judge;
pub(super) mod twin;

pub use judge::{DELAY, PICK, PLACE, SUMS, TICK, TIMES, WAKEUP};
pub use twin::FairSettings;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::mechanism::{HEAD, Mechanism, Row};

/// The command; returns the exit code.
pub fn main(args: &[String]) -> i32 {
    let mut misses = false;
    let mut files = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--misses" => misses = true,
            option if option.starts_with('-') => {
                eprintln!("unknown option {option}\n{USAGE}");
                return 2;
            }
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        files = super::recordings_in(&super::recordings_dir()).unwrap_or_default();
    }
    let mut rows: BTreeMap<&'static str, Mechanism> = BTreeMap::new();
    for file in &files {
        let redrive = match super::redrive_file(file, misses) {
            Ok(redrive) => redrive,
            Err(error) => {
                eprintln!("failed to read {}: {error}", file.display());
                return 2;
            }
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        for miss in redrive.misses.iter().filter(|miss| miss.text.starts_with("fair")) {
            println!("{name} at {} us: {}", miss.time_us, miss.text);
        }
        println!("{name}: {} lines", redrive.tally.records);
        for (mechanism, counts) in redrive.fair_rows() {
            print!("{}", Row(mechanism, counts));
            rows.entry(mechanism).or_default().merge(counts);
        }
    }
    println!("all\n{HEAD}");
    for (mechanism, counts) in &rows {
        print!("{}", Row(mechanism, counts));
    }
    0
}

const USAGE: &str = "usage: schedtwin-conformance l1 fair [--misses] [FILE...]";
