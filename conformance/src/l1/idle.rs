//! The choices of teo and menu in the recordings, re-driven and compared.
//!
//! ```text
//! schedtwin-conformance idle [--misses] [FILE...]
//! ```
//!
//! Without files: all recordings beside the checkout. Recordings of another governor are skipped by
//! name. Per recording and for each governor: at each entry into idle the state, and, where the tick ran,
//! whether it was stopped. Besides, at each exit: whether the stay was too short or too long for its
//! state, as `cpu_idle_miss` says.
//!
//! **skill** = (equal − trivial) / (judged − trivial), where *trivial* is what would be equal if each
//! CPU always made its commonest choice: 0 for who knows nothing but that, 1 for who knows all.
//!
//! Exit 0 if nothing is put down to the model and all stays are judged alike, 1 if not, 2 if a recording cannot be read.
//! How it works is in [`drive`].

pub mod board;
pub mod drive;
pub mod tally;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{recordings_dir, recordings_in};
use crate::ftrace::Trace;
use board::Board;
use drive::IdleDrive;
use tally::{Cause, IdleTally, Score};

const USAGE: &str = "\
usage: schedtwin-conformance idle [--misses] [FILE...]
  re-drives teo or menu from recordings (*.trace.txt, *.trace.txt.xz, each with its *.meta.txt;
  default: ../shared/rig/recordings)
  --misses   also each choice that differs";

/// What came of one recording.
pub enum Outcome {
    /// The governor, counts and the first misses.
    Driven(String, Box<IdleTally>, Vec<String>),
    /// Another governor chose, this one.
    OtherGovernor(String),
}

/// Re-drives one recording.
pub fn drive_file(path: &Path) -> io::Result<Outcome> {
    let board = Board::of_recording(path)?;
    if drive::corners(&board.governor, 0).is_none() {
        return Ok(Outcome::OtherGovernor(board.governor));
    }
    let mut trace = Trace::open(path)?;
    let mut drive = IdleDrive::new(&board);
    drive.drive(&mut trace)?;
    if let (Some(first), count) = (trace.bad_lines().0.first(), trace.bad_lines().1) {
        let message = format!("{count} unreadable lines; {first}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let IdleDrive { tally, misses, .. } = drive;
    Ok(Outcome::Driven(board.governor.clone(), Box::new(tally), misses))
}

/// The command; returns the exit code.
pub fn main(args: &[String]) -> i32 {
    let mut show_misses = false;
    let mut files = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--misses" => show_misses = true,
            "-h" | "--help" => {
                println!("{USAGE}");
                return 0;
            }
            option if option.starts_with('-') => {
                eprintln!("unknown option {option}\n{USAGE}");
                return 2;
            }
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        match recordings_in(&recordings_dir()) {
            Ok(found) => files = found,
            Err(error) => eprintln!("failed to list {}: {error}", recordings_dir().display()),
        }
    }
    if files.is_empty() {
        eprintln!("no recordings");
        return 2;
    }

    println!("{}", Heading);
    let mut totals = BTreeMap::<String, IdleTally>::new();
    let mut unreadable = false;
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(".xz").trim_end_matches(".trace.txt");
        match drive_file(file) {
            Ok(Outcome::Driven(governor, tally, misses)) => {
                print!("{}", Rows(name, &tally));
                if show_misses {
                    misses.iter().for_each(|miss| println!("  {miss}"));
                }
                totals.entry(governor).or_default().merge(&tally);
            }
            Ok(Outcome::OtherGovernor(governor)) => println!("{name}: skipped, {governor} chose"),
            Err(error) => {
                eprintln!("failed to read {}: {error}", file.display());
                unreadable = true;
            }
        }
    }
    let mut total = IdleTally::default();
    for (governor, tally) in &totals {
        print!("{}", Rows(&format!("all of {governor}"), tally));
        total.merge(tally);
    }
    let (mut first, mut later, mut most) = (0, 0, 0);
    for (before, after) in total.warm_up.values() {
        first += before;
        later += after.saturating_sub(1);
        most = most.max(*before);
    }
    println!(
        "states not judged, because of what was before the recording: the first {first} of {} CPUs (at most {most} each), {later} later",
        total.warm_up.len(),
    );
    println!(
        "selections without entry: {}; wakeups where the stamps leave open if the timer had come: {}",
        total.not_entered, total.time_open,
    );
    println!(
        "stays called too deep, too shallow or neither as recorded (cpu_idle_miss): {} of {}",
        total.stays.1, total.stays.0,
    );
    let wrong = |score: &Score| score.causes.contains_key(&Cause::Model);
    let (stays, equal) = total.stays;
    match (unreadable, wrong(&total.state) || wrong(&total.stop_tick) || equal < stays) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

struct Heading;

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:18} {:6}{:>8}{:>8}{:>8}{:>8}{:>8}  different: due to",
            "recording", "what", "events", "judged", "equal", "trivial", "skill",
        )
    }
}

/// The two rows of a recording.
struct Rows<'a>(&'a str, &'a IdleTally);

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, score) in [("state", &self.1.state), ("tick", &self.1.stop_tick)] {
            let (judged, trivial) = (score.judged(), score.trivial());
            write!(
                f,
                "{:18} {what:6}{:8}{judged:8}{:8}{trivial:8}{:>8} ",
                self.0,
                score.events,
                score.equal,
                skill(score.equal, trivial, judged),
            )?;
            for (cause, count) in &score.causes {
                write!(f, " {cause}: {count};")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Skill in thousandths, rounded down: 1.000 only if all are equal. `-` if there was nothing to know.
fn skill(equal: u64, trivial: u64, judged: u64) -> String {
    if judged == trivial {
        return "-".into();
    }
    let milli = (equal as i64 - trivial as i64) * 1000;
    let milli = milli.div_euclid((judged - trivial) as i64);
    format!("{}{}.{:03}", if milli < 0 { "-" } else { "" }, milli.abs() / 1000, milli.abs() % 1000)
}

#[cfg(test)]
mod tests;
