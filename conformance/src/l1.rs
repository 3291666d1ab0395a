// SPDX-License-Identifier: GPL-2.0-or-later
//! L1: recordings of the real kernel, re-driven and compared.
//!
//! ```text
//! schedtwin-conformance l1 [--totals] [--misses] [FILE...]
//! ```
//!
//! This is PELT in detail, `l1 fair` the fair class; every mechanism, the decisions too, has a row in the table of
//! [`mechanisms`].
//!
//! Without files: all recordings of 6.12 in the checkout and beside it. Prints per recording, kind of entity and signal how many recorded values were judged, how many of ours are
//! within 1 and how many are equal, the largest difference and what the rest is due to; then the single
//! steps; then the totals. A free run is
//! never resynchronised: there is no code for it. Exit 0 if every signal is within 1 in 99 %, 1 if not,
//! 2 if a recording cannot be read.
//!
//! How it works is in [`redrive`].

mod balancing;
mod board;
mod changes;
pub mod clamps;
mod compare;
pub mod ext;
pub mod fair;
#[cfg(test)]
mod golden;
pub mod idle;
mod interrupts;
pub mod judge;
pub mod machine;
pub mod mechanism;
pub mod mechanisms;
pub mod operation;
mod queue;
mod realtime;
pub mod redrive;
mod state;
pub mod tally;
mod unprinted;
mod wakeups;

use rayon::prelude::*;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::ftrace::Trace;
use fair::FairSettings;
use interrupts::Interrupts;
use machine::Machine;
use redrive::Redrive;
use tally::{Row, Steps, Tally};

/// Which recordings.
#[derive(Debug, Default, clap::Args)]
pub struct Recordings {
    /// *.trace.txt or *.trace.txt.xz, each with its *.meta.txt, or folders of them [default: those of 6.12 in
    /// conformance/recordings, and any beside the checkout]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Recordings {
    /// The files, or all; `None`, said, if there are none.
    fn found(&self) -> Option<Vec<PathBuf>> {
        let of = |path: &PathBuf| match path.is_dir() {
            // A folder that cannot be listed has none.
            true => recordings_in(path).unwrap_or_default(),
            false => vec![path.clone()],
        };
        let files = match self.files.is_empty() {
            true => all_recordings(),
            false => self.files.iter().flat_map(of).collect(),
        };
        if files.is_empty() {
            eprintln!("no recordings in {}", recordings_dir().display());
            return None;
        }
        Some(files)
    }

    /// Re-drives each recording with `drive`, several at a time, and passes the results on in order, with the
    /// recordings' names; `None`, said, if there are none.
    fn walk<R: Send>(
        &self,
        drive: impl Fn(&Path) -> io::Result<R> + Sync,
        mut show: impl FnMut(&str, R),
    ) -> Option<Walk> {
        let files = self.found()?;
        let driven: Vec<_> = files.par_iter().map(|file| drive(file)).collect();
        let mut walk = Walk { count: files.len(), unreadable: false };
        for (file, result) in files.iter().zip(driven) {
            match result {
                Ok(result) => show(&name_of(file), result),
                Err(error) => {
                    eprintln!("failed to read {}: {error}", file.display());
                    walk.unreadable = true;
                }
            }
        }
        Some(walk)
    }
}

/// The recordings that a command has gone through.
struct Walk {
    count: usize,
    unreadable: bool,
}

impl Walk {
    /// Returns the exit code of a command: `fails`, something was not as it is to be.
    fn exit_code(&self, fails: bool) -> i32 {
        match (self.unreadable, fails) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }
}

/// What of the averages to show.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Only the totals
    #[arg(long)]
    totals: bool,
    /// Also each value that is off by more than 1 and each step that is not met
    #[arg(long)]
    misses: bool,
    #[command(flatten)]
    recordings: Recordings,
}

/// Where the recordings are that lie beside this checkout.
pub fn recordings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/rig/recordings")
}

/// The recordings of another release than 6.12 with its signals, in this checkout: `linux-7.3`, `linux-6.18`.
pub fn recordings_of_release(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name).join("redrive")
}

/// All recordings of 6.12 with the kernel's signals: those beside the checkout, and those in it.
pub fn all_recordings() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let dirs = [recordings_dir(), own.join("redrive"), own.join("other-boards")];
    // A folder that is not there has none.
    dirs.iter().flat_map(|dir| recordings_in(dir).unwrap_or_default()).collect()
}

/// A recording's name, without its ending.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".xz").trim_end_matches(".trace.txt").to_string()
}

/// The recordings in a folder, by name.
pub fn recordings_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".trace.txt") || name.ends_with(".trace.txt.xz") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Re-drives the signals of one recording.
pub fn redrive_file(path: &Path, keep_misses: bool) -> io::Result<Redrive> {
    let machine = Rc::new(Machine::of_recording(path)?);
    drive_file(path, Redrive::new(machine, keep_misses).with_fair(fair_settings(path)))
}

/// Returns the settings of the fair class in a recording's description.
fn fair_settings(path: &Path) -> FairSettings {
    FairSettings::parse(&std::fs::read_to_string(description_of(path)).unwrap_or_default())
}

/// `NAME.N.trace.txt.xz` is described by `NAME.N.meta.txt` or `NAME.meta.txt`; without a description the board's
/// defaults hold.
fn description_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".xz").trim_end_matches(".trace.txt");
    let own = path.with_file_name(format!("{name}.meta.txt"));
    if own.exists() {
        return own;
    }
    path.with_file_name(format!("{}.meta.txt", name.split('.').next().unwrap_or_default()))
}

/// Re-drives one recording and asks the product for its decisions.
pub fn judge_file(path: &Path, machine: Rc<Machine>, keep_misses: bool) -> io::Result<Redrive> {
    let redrive = Redrive::new(machine, keep_misses).with_fair(fair_settings(path)).judging();
    drive_file(path, redrive.with_wishes(clamps::of_recording(path)))
}

fn drive_file(path: &Path, mut redrive: Redrive) -> io::Result<Redrive> {
    redrive.interrupts = Interrupts::read(&mut Trace::open(path)?, &redrive.machine)?;
    let mut trace = Trace::open(path)?;
    redrive.drive(&mut trace)?;
    if let (Some(first), count) = (trace.bad_lines().0.first(), trace.bad_lines().1) {
        let message = format!("{count} unreadable lines; {first}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(redrive)
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let mut total = Tally::default();
    let drive = |file: &Path| {
        let redrive = redrive_file(file, options.misses)?;
        Ok((redrive.tally, redrive.misses))
    };
    let walk = options.recordings.walk(drive, |name, (tally, misses)| {
        for miss in &misses {
            println!("{name} at {} us: {}", miss.time_us, miss.text);
        }
        if !options.totals {
            print!("{}", Detail(name, &tally));
        }
        total.merge(&tally);
    });
    let Some(walk) = walk else { return 2 };
    print!("{}", Detail("all", &total));
    let failing = total.failing();
    for (signal, within, judged) in &failing {
        println!("{signal}: only {within} of {judged} within 1");
    }
    walk.exit_code(!failing.is_empty())
}

/// `part` of `whole` in percent, rounded down to hundredths: 100.00 only if it is all.
struct Percent(u64, u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0 as u128 * 10_000 / self.1.max(1) as u128;
        f.pad(&format!("{}.{:02}", hundredths / 100, hundredths % 100))
    }
}

/// The counts of one recording, as text.
struct Detail<'a>(&'a str, &'a Tally);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail(name, tally) = self;
        let starts: u64 = tally.starts.values().sum();
        writeln!(
            f,
            "{name}: {} lines, {starts} states taken over, never again; {} lines against our picture of the queues",
            tally.records, tally.picture_wrong,
        )?;
        writeln!(
            f,
            "  {:7}{:14}{:>8}{:>8}{:>8}{:>7}  not within 1, not met: due to",
            "entity", "signal", "judged", "±1 %", "exact %", "max",
        )?;
        for ((kind, signal), row) in &tally.rows {
            let Row { judged, within, exact, error_max, causes } = row;
            write!(
                f,
                "  {kind:7}{signal:14}{judged:8}{:>8}{:>8}{error_max:7} ",
                Percent(*within, *judged),
                Percent(*exact, *judged),
            )?;
            for (cause, count) in causes {
                write!(f, " {cause}: {count};")?;
            }
            writeln!(f)?;
        }
        let [behind, equal, one, few, more] = tally.clock;
        writeln!(
            f,
            "  PELT clock, advances while a task runs: ours equal {equal}, ahead by 1 ns {one}, 2-4 ns {few}, more {more}, behind {behind}",
        )?;
        for (kind, steps) in &tally.steps {
            let Steps { judged, met, error_max_milli, causes } = steps;
            let (whole, milli) = (error_max_milli / 1000, error_max_milli % 1000);
            write!(
                f,
                "  {kind:7}{:14}{judged:8}{:>8}{:>8}{:>7} ",
                "steps, sums",
                "",
                Percent(*met, *judged),
                format!("{whole}.{milli:03}"),
            )?;
            for (cause, count) in causes {
                write!(f, " {cause}: {count};")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::tally::{Kind, Signal, WITHIN_MIN_PERMILLE};
    use super::*;

    /// One with migrations, delayed dequeues and a removal at almost every wakeup, one with RT.
    #[test]
    fn two_recordings_meet_the_99_percent_rule() {
        for name in ["littles.2", "rt-over-fair.1"] {
            let path = recordings_dir().join(format!("{name}.trace.txt.xz"));
            if !path.exists() {
                eprintln!("skipped {name}: {} is not there", path.display());
                continue;
            }
            let tally = redrive_file(&path, false).unwrap().tally;
            assert_eq!(tally.failing(), [], "{}", Detail(name, &tally));
            assert_eq!(tally.picture_wrong, 0, "{}", Detail(name, &tally));
            let judged = tally.rows[&(Kind::Task, Signal::Util)].judged;
            assert!(judged > 1000, "{name}: only {judged} values");
            // Of a task everything is told; of a queue not when a balancer updated it.
            let steps = &tally.steps[&Kind::Task];
            assert_eq!(steps.met, steps.judged, "{name}: {steps:?}");
            let steps = &tally.steps[&Kind::CfsRq];
            let enough = steps.judged * WITHIN_MIN_PERMILLE;
            assert!(steps.met * 1000 >= enough, "{name}: {steps:?}");
        }
    }

    #[test]
    fn percent_is_full_only_if_all_is() {
        assert_eq!(Percent(3, 3).to_string(), "100.00");
        assert_eq!(Percent(99_999, 100_000).to_string(), "99.99");
        assert_eq!(Percent(0, 0).to_string(), "0.00");
    }

    #[test]
    fn bad_files_are_reported_not_fatal() {
        let recordings = Recordings { files: vec!["/no/such/recording.trace.txt".into()] };
        assert_eq!(main(&Options { recordings, ..Options::default() }), 2);
    }
}
