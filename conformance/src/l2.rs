// SPDX-License-Identifier: GPL-2.0-or-later
//! L2: executions. The same work on the real kernel and in the twin, side by side.
//!
//! ```text
//! schedtwin-conformance side-by-side [--seeds N] [--with SPEC]... [--quiet] [WORKLOAD...]
//! ```
//!
//! A WORKLOAD is `NAME.wl.txt`, with its recordings `NAME.N.trace.txt.xz` beside it; a folder is all of its
//! workloads. Without any: `recordings/side-by-side` of this crate.
//!
//! The twin executes the workload ([`scenario`]) with many seeds, on the built-in kernel of the recordings' release; the same [`figures`] are computed of both sides
//! ([`execution`]), and [`spread`] says when they agree. `--with` gives the twin another kernel or machine than the one
//! recorded, for negative controls: they must miss the bars.

pub mod births;
pub mod execution;
pub mod figures;
pub mod judge;
pub mod paths;
pub mod scenario;
pub mod spread;
pub mod what_if;
pub mod workload;

mod boot;
mod costs;

use crate::l1::machine::Machine;
use execution::Execution;
use figures::Figure;
use rayon::prelude::*;
use scenario::{Seeds, Variant};
use schedtwin_input::{Diagnostics, read_source};
use spread::{Row, Score, Verdict};
use std::path::{Path, PathBuf};
use workload::BoardWorkload;

/// What to run, and what to show of it.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Runs of the twin per workload
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Runs the twin with something else than the recordings' kernel on rig8: linux-6.12:hz=1000, linux-6.12+PATCH, rig8:settle_us=100
    #[arg(long = "with", value_name = "SPEC")]
    variants: Vec<String>,
    /// Writes the twin's traces there, NAME.SEED.twin.txt
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Only the figures that are out, and the totals
    #[arg(long)]
    quiet: bool,
    /// NAME.wl.txt with its recordings NAME.N.trace.txt.xz beside it, or folders of them [default:
    /// conformance/recordings/side-by-side]
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<PathBuf>,
}

/// Seeds unless given.
const SEEDS: u64 = 40;

/// Where the recordings are that a checkout has.
pub fn recordings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/side-by-side")
}

/// The workloads of a folder, by name.
pub fn workloads_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".wl.txt")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The recordings of a workload's file.
pub fn recordings_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = format!("{}.", file.trim_end_matches(".wl.txt"));
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let all = crate::l1::recordings_in(folder)?;
    let of_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Ok(all.into_iter().filter(of_it).collect())
}

/// Reads a board workload.
pub fn read_workload(path: &Path) -> Result<BoardWorkload, Diagnostics> {
    BoardWorkload::parse(&read_source(path)?)
}

/// What `of` finds in each recording.
fn recorded<T: Send>(
    files: &[PathBuf],
    workload: &BoardWorkload,
    of: fn(&Execution, &BoardWorkload) -> T,
) -> Result<Vec<T>, String> {
    let one = |path: &PathBuf| {
        let execution = Execution::recorded(path, workload)
            .map_err(|fault| format!("{}: {fault}", path.display()))?;
        Ok(of(&execution, workload))
    };
    files.par_iter().map(one).collect()
}

/// The figures of recordings.
pub fn figures_recorded(
    files: &[PathBuf],
    workload: &BoardWorkload,
) -> Result<Vec<Vec<Figure>>, String> {
    recorded(files, workload, figures::figures)
}

/// What `of` finds in each of `runs` runs of the twin beside so many recordings.
fn of_twin<T: Send>(
    workload: &BoardWorkload,
    (runs, recordings): (u64, u64),
    variant: &Variant,
    of: fn(&Execution, &BoardWorkload) -> T,
) -> Result<Vec<T>, Diagnostics> {
    // What the twin refuses, it refuses for every seed.
    workload.scenario(Seeds::of_run(1, recordings), variant)?;
    (1..=runs)
        .into_par_iter()
        .map(|run| {
            let execution = Execution::of_twin(workload, Seeds::of_run(run, recordings), variant)?;
            Ok(of(&execution, workload))
        })
        .collect()
}

/// The figures of `runs` runs of the twin beside so many recordings.
pub fn figures_of_twin(
    workload: &BoardWorkload,
    runs: u64,
    recordings: u64,
    variant: &Variant,
) -> Result<Vec<Vec<Figure>>, Diagnostics> {
    of_twin(workload, (runs, recordings), variant, figures::figures)
}

/// A table of figures.
pub fn print_table(rows: &[Row], only_out: bool) -> String {
    let mut text = format!(
        "  {:<28} {:>4}  {:>9} {:>9} {:>9} {:>7}  {:>9} {:>9} {:>9}\n",
        "figure", "", "least", "recorded", "largest", "spread", "least", "twin", "largest"
    );
    let three = |side: Option<(f64, f64, f64)>| match side {
        Some((a, b, c)) => format!("{:>9} {:>9} {:>9}", number(a), number(b), number(c)),
        None => format!("{:>9} {:>9} {:>9}", "-", "-", "-"),
    };
    for row in rows.iter().filter(|row| !only_out || row.verdict == Verdict::Out) {
        let verdict = match row.verdict {
            Verdict::In => "in",
            Verdict::Out => "OUT",
            Verdict::NotJudged => "not judged",
        };
        let spread = match row.spread.is_finite() {
            true => format!("{:.1} %", row.spread * 100.0),
            false => "-".into(),
        };
        text += &format!(
            "  {:<28} {:>4}  {} {spread:>7}  {}  {verdict}\n",
            row.name,
            row.unit,
            three(row.recorded),
            three(row.twin)
        );
    }
    text
}

/// Four digits.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn print_score(name: &str, score: Score) {
    println!(
        "{name}: {} figures, {} judged ({:.0} %), {} in ({:.0} %)",
        score.figures,
        score.judged,
        score.judged_share() * 100.0,
        score.inside,
        score.inside_share() * 100.0
    );
}

/// The variant with the kernel of the first of these recordings, unless it names one.
pub fn beside(variant: &Variant, files: &[PathBuf]) -> Result<Variant, String> {
    let Some(first) = files.first() else { return Ok(variant.clone()) };
    let machine = Machine::of_recording(first).map_err(|error| error.to_string())?;
    Ok(variant.beside(machine.kernel_name()))
}

/// One workload: its rows and its table of births, or why there are none.
pub fn side_by_side(
    path: &Path,
    seeds: u64,
    variant: &Variant,
) -> Result<(Vec<Row>, String), String> {
    let workload = read_workload(path).map_err(|faults| faults.to_string())?;
    let files = recordings_of(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if files.is_empty() {
        return Err(format!("{}: no recordings beside it (NAME.N.trace.txt.xz)", path.display()));
    }
    let variant = &beside(variant, &files)?;
    let both = |execution: &Execution, workload: &BoardWorkload| {
        (figures::figures(execution, workload), births::first_cpus(execution, workload))
    };
    let (twin, twin_born): (Vec<_>, Vec<_>) =
        of_twin(&workload, (seeds, files.len() as u64), variant, both)
            .map_err(|faults| faults.to_string())?
            .into_iter()
            .unzip();
    let (recorded, born): (Vec<_>, Vec<_>) = recorded(&files, &workload, both)?.into_iter().unzip();
    Ok((spread::compare(&recorded, &twin), births::print(&born, &twin_born)))
}

fn write_traces(path: &Path, folder: &Path, seeds: u64, variant: &Variant) -> Result<(), String> {
    let workload = read_workload(path).map_err(|faults| faults.to_string())?;
    let files = recordings_of(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let variant = &beside(variant, &files)?;
    for seed in 1..=seeds {
        let text = execution::twin_trace(&workload, Seeds::of_run(seed, seeds), variant)
            .map_err(|faults| faults.to_string())?;
        let file = folder.join(format!("{}.{seed}.twin.txt", workload.name));
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// The workloads of files and folders.
fn workloads_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut workloads = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => workloads.extend(
                workloads_in(path).map_err(|error| format!("{}: {error}", path.display()))?,
            ),
            false => workloads.push(path.clone()),
        }
    }
    Ok(workloads)
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    let own = [recordings_dir()];
    let paths = if options.workloads.is_empty() { &own[..] } else { &options.workloads };
    let prepared = Variant::of(&options.variants).and_then(|v| Ok((v, workloads_of(paths)?)));
    let (variant, workloads) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            eprintln!("{message}");
            return 2;
        }
    };
    let Options { seeds, quiet, ref traces, .. } = *options;
    let (mut total, mut every, mut failed) = (Score::default(), Score::default(), false);
    for path in workloads {
        if let Some(folder) = traces
            && let Err(message) = write_traces(&path, folder, seeds, &variant)
        {
            eprintln!("{message}");
            return 2;
        }
        match side_by_side(&path, seeds, &variant) {
            Ok((rows, births)) => {
                let score = Score::of(&rows);
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                print_score(name.trim_end_matches(".wl.txt"), score);
                println!("{}", print_table(&rows, quiet));
                if !quiet {
                    println!("{births}");
                }
                every = every.plus(score);
                match score.counts() {
                    true => total = total.plus(score),
                    false => {
                        println!("(told, not counted: its recordings disagree on most figures)\n")
                    }
                }
            }
            Err(message) if message.contains("waits for: ") => println!("skipped: {message}\n"),
            Err(message) => {
                eprintln!("{message}");
                failed = true;
            }
        }
    }
    if every != total {
        print_score("all", every);
    }
    print_score("together", total);
    match (failed, total.passes()) {
        (true, _) => 2,
        (false, true) => 0,
        (false, false) => 1,
    }
}
