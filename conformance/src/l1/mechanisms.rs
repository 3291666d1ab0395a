// SPDX-License-Identifier: GPL-2.0-or-later
//! The table over all mechanisms: what of the kernel's decisions the twin meets, exactly.
//!
//! ```text
//! schedtwin-conformance mechanisms [--each] [--misses] [--json] [FILE...]
//! ```
//!
//! Without files: all recordings beside the checkout and in it. Each is driven twice: for the averages and what follows
//! from them ([`super::redrive`]) and for the idle governor ([`super::idle`]). Exit 0 if every row keeps
//! its bars ([`super::mechanism`]), 1 if one does not, 2 if a recording cannot be read.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::machine::Machine;
use super::mechanism::{NONTRIVIAL_MIN, Table};
use super::{Recordings, idle, judge_file};

/// What of the table to show.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Also a table per recording
    #[arg(long)]
    each: bool,
    /// Also each answer that is not the recorded one
    #[arg(long)]
    misses: bool,
    /// The table for machines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recordings: Recordings,
}

impl Options {
    /// The table over these files.
    pub fn of(files: Vec<PathBuf>) -> Options {
        Options { recordings: Recordings { files }, ..Options::default() }
    }
}

/// The table of one recording, and its misses as text.
pub fn of_file(path: &Path, keep_misses: bool) -> io::Result<(Table, Vec<String>)> {
    let machine = Rc::new(Machine::of_recording(path)?);
    let redrive = judge_file(path, Rc::clone(&machine), keep_misses)?;
    let mut table = redrive.table();
    let text = |miss: &super::redrive::Miss| format!("at {} us: {}", miss.time_us, miss.text);
    let mut misses: Vec<String> = redrive.misses.iter().map(text).collect();
    if let Some(drive) = idle::drive_file(path, &machine)? {
        table.merge(&drive.table());
        misses.extend(drive.misses);
    }
    Ok((table, misses))
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let Options { each, misses: show_misses, json, ref recordings } = *options;
    let mut total = Table::default();
    let drive = |file: &Path| of_file(file, show_misses);
    let walk = recordings.walk(drive, |name, (table, misses)| {
        for miss in misses.iter().filter(|_| show_misses) {
            println!("{name} {miss}");
        }
        if each {
            print!("{name}:\n{table}");
        }
        total.merge(&table);
    });
    let Some(walk) = walk else { return 2 };
    let missed = total.missed();
    if json {
        print!("{}", total.json());
    } else {
        print!("{} recordings:\n{total}", walk.count);
        missed.iter().for_each(|bar| println!("missed: {bar}"));
        let scarce = total.scarce();
        if !scarce.is_empty() {
            println!("fewer than {NONTRIVIAL_MIN} that are not trivial: {}", scarce.join(", "));
        }
    }
    walk.exit_code(!missed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::fair::{DELAY, PICK, TICK, WAKEUP};
    use super::super::mechanism::What;
    use super::super::{all_recordings, recordings_dir, recordings_in, recordings_of_release};
    use super::*;
    use rayon::prelude::*;

    fn table_of(files: &[PathBuf]) -> Table {
        let tables: Vec<_> = files.par_iter().map(|file| of_file(file, false).unwrap().0).collect();
        let mut total = Table::default();
        tables.iter().for_each(|table| total.merge(table));
        total
    }

    /// One without fair servers and with many places, one with two tasks that load two domains, one with RT, one
    /// with clamps, one of menu.
    #[test]
    fn recordings_keep_the_bars() {
        let names = ["littles.1", "ui-pair.2", "rt-over-fair.1", "uclamp-mix.2", "ui-light-menu.1"];
        let mut files = Vec::new();
        for name in names {
            let path = recordings_dir().join(format!("{name}.trace.txt.xz"));
            if path.exists() {
                files.push(path);
            } else {
                eprintln!("skipped {name}: {} is not there", path.display());
            }
        }
        if files.len() < names.len() {
            return;
        }
        let table = table_of(&files);
        for (what, judged_min) in [
            (What::PeltTask, 40_000),
            (What::PeltCfsRq, 30_000),
            (What::UtilEstTask, 4000),
            (What::Uclamp, 3000),
            (What::SugovRequest, 15_000),
            (What::FrequencyChange, 1000),
            (What::TeoTick, 2500),
            (What::MenuTick, 500),
            (What::IdleMiss, 6000),
            (What::EasEnergy, 25_000),
            (What::EasChoice, 4500),
            (What::Sibling, 350),
        ] {
            let judged = table.get(what).map_or(0, |row| row.judged);
            assert!(judged >= judged_min, "{what}: {judged}\n{table}");
        }
        assert_eq!(table.missed(), [""; 0], "{table}");
        for (what, row) in table.rows() {
            // More than a wrong answer in a thousand is a model that is wrong.
            assert!(row.wrong() * 1000 <= row.judged, "{what}: {}\n{table}", row.wrong());
        }
    }

    /// The recordings of this checkout: every bar.
    #[test]
    fn committed_recordings_keep_the_bars() {
        let shared = recordings_dir();
        let files: Vec<_> =
            all_recordings().into_iter().filter(|file| !file.starts_with(&shared)).collect();
        if files.is_empty() {
            eprintln!("skipped: no recordings in conformance/recordings");
            return;
        }
        let table = table_of(&files);
        assert_eq!(table.missed(), [""; 0], "{table}");
    }

    /// Those of other releases, asked of the forms of those.
    #[test]
    fn recordings_of_other_releases_keep_the_bars() {
        for release in ["linux-6.18", "linux-7.3"] {
            let files = recordings_in(&recordings_of_release(release)).unwrap_or_default();
            if files.is_empty() {
                eprintln!("skipped: no recordings of {release}");
                continue;
            }
            let table = table_of(&files);
            assert_eq!(table.missed(), [""; 0], "{release}\n{table}");
            let wrong = |name| table.get(What::Fair(name)).map_or(0, |row| row.wrong());
            for name in [PICK, WAKEUP, TICK, DELAY] {
                assert_eq!(wrong(name), 0, "{release}: {name}\n{table}");
            }
        }
    }

    #[test]
    fn bad_files_are_reported_not_fatal() {
        assert_eq!(main(&Options::of(vec!["/no/such/recording.1.trace.txt".into()])), 2);
    }
}
