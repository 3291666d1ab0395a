// SPDX-License-Identifier: GPL-2.0-or-later
//! `paths`: how long the kernel's paths take, between two events of one path that follow each other on a CPU.
//!
//! The costs of the board's machine (`[path_costs]` of `machines/rig8.toml`) are made of these intervals. They are measured where
//! nothing else is printed (`probes 0`), and the twin's own are measured by the same code from its trace.

use super::execution::{Execution, What};
use super::scenario::Variant;
use super::workload::{BoardWorkload, NR_CPUS};
use super::{SEEDS, recordings_dir, recordings_of, workloads_of};
use schedtwin_types::Ns;
use std::fmt::Write;
use std::path::PathBuf;

/// Prints how long the kernel's paths take in recordings and in the twin: the mean time between two events that follow
/// each other on a CPU.
///
/// Exit code: 0, or 2 if something cannot be read.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Runs of the twin per workload
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Runs the twin with something else than the recordings' kernel on rig8: rig8:path_costs.wakeup_ns=2000
    #[arg(long = "with", value_name = "SPEC")]
    variants: Vec<String>,
    /// NAME.wl.txt with its recordings NAME.N.trace.txt.xz beside it, or folders of them [default:
    /// conformance/recordings/side-by-side]
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<PathBuf>,
}

/// The paths: their events, and what the time between them holds.
const PATHS: [(&str, &str); 11] = [
    ("idle exit -> waking", "interrupt, hrtimer"),
    ("wakeup -> waking", "hrtimer"),
    ("waking -> wakeup, one CPU", "wakeup of a pinned kernel thread"),
    ("waking -> wakeup, EAS", "wakeup, energy_per_domain"),
    ("waking -> wakeup, RT", "wakeup of a real-time task"),
    ("wakeup -> switch from idle", "idle_exit, schedule, context_switch"),
    ("wakeup -> switch from a task", "schedule, context_switch"),
    ("switch -> idle entry", "idle_enter"),
    ("idle miss -> idle entry", "idle_enter"),
    ("idle exit -> idle entry", "interrupt, softirq, idle_enter"),
    ("idle exit -> switch from idle", "a kick: interrupt, idle_exit, schedule, context_switch"),
];

/// Intervals longer than this are not one path.
const LONGEST_NS: Ns = 40_000;

/// The intervals of an execution, for each of [`PATHS`].
type Intervals = [Vec<Ns>; PATHS.len()];

/// The path whose two events these are, on one CPU.
fn path(before: What, after: What, fair: impl Fn(u32) -> Option<bool>) -> Option<usize> {
    let path = match (before, after) {
        (What::Idle(_, None), What::Waking(_)) => 0,
        (What::Wakeup(_), What::Waking(_)) => 1,
        (What::Waking(pid), What::Wakeup(woken)) if pid == woken => match fair(pid) {
            None => 2,
            Some(true) => 3,
            Some(false) => 4,
        },
        (What::Wakeup(pid), What::Switch { prev, next, .. }) if pid == next => {
            if prev == 0 {
                5
            } else {
                6
            }
        }
        (What::Switch { next: 0, .. }, What::Idle(_, Some(_))) => 7,
        (What::Miss(_), What::Idle(_, Some(_))) => 8,
        (What::Idle(_, None), What::Idle(_, Some(_))) => 9,
        (What::Idle(_, None), What::Switch { prev: 0, .. }) => 10,
        _ => return None,
    };
    Some(path)
}

/// What an execution says, from the start of its work on.
fn intervals(execution: &Execution, workload: &BoardWorkload) -> Intervals {
    let mut found = Intervals::default();
    let mut last: [Option<(Ns, What)>; NR_CPUS as usize] = [None; NR_CPUS as usize];
    let fair = |pid| {
        let task = &workload.tasks[*execution.task_of.get(&pid)?];
        Some(task.fifo.is_none())
    };
    for seen in &execution.seen {
        let before = last[seen.cpu].replace((seen.at, seen.what));
        let Some((at, before)) = before.filter(|(at, _)| *at >= execution.start) else { continue };
        let took = seen.at - at;
        if let Some(path) = path(before, seen.what, fair).filter(|_| took <= LONGEST_NS) {
            found[path].push(took);
        }
    }
    found
}

/// Number, mean, 10 and 90 % of intervals in us.
fn told(intervals: &mut [Ns]) -> String {
    intervals.sort_unstable();
    let us = |ns: Ns| ns as f64 / 1000.0;
    let Some(last) = intervals.len().checked_sub(1) else {
        return format!("{:>7} {:>6} {:>5} {:>5}", 0, "-", "-", "-");
    };
    let mean = us(intervals.iter().sum::<Ns>()) / intervals.len() as f64;
    let [low, high] = [last / 10, last * 9 / 10].map(|index| us(intervals[index]));
    format!("{:>7} {mean:>6.2} {low:>5.1} {high:>5.1}", intervals.len())
}

/// The table of both sides.
fn print(recorded: &mut Intervals, twin: &mut Intervals) -> String {
    let mut text = format!(
        "{:<30} {:>7} {:>6} {:>5} {:>5}   {:>7} {:>6} {:>5} {:>5}   made of\n",
        "path, us", "", "mean", "p10", "p90", "twin", "mean", "p10", "p90"
    );
    for (index, (name, parts)) in PATHS.iter().enumerate() {
        let [recorded, twin] = [&mut recorded[index], &mut twin[index]].map(|side| told(side));
        writeln!(text, "{name:<30} {recorded}   {twin}   {parts}").expect("memory takes it");
    }
    text
}

fn add(all: &mut Intervals, runs: Vec<Intervals>) {
    for run in runs {
        std::iter::zip(&mut *all, run).for_each(|(all, one)| all.extend(one));
    }
}

fn measure(options: &Options) -> Result<String, String> {
    let own = [recordings_dir()];
    let paths = if options.workloads.is_empty() { &own[..] } else { &options.workloads };
    let variant = Variant::of(&options.variants)?;
    let (mut recorded, mut twin) = (Intervals::default(), Intervals::default());
    for path in workloads_of(paths)? {
        let workload = super::read_workload(&path).map_err(|faults| faults.to_string())?;
        let files = recordings_of(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let variant = &super::beside(&variant, &files)?;
        let runs = (options.seeds, files.len() as u64);
        let of_twin = super::of_twin(&workload, runs, variant, intervals)
            .map_err(|faults| faults.to_string())?;
        add(&mut recorded, super::recorded(&files, &workload, intervals)?);
        add(&mut twin, of_twin);
    }
    Ok(print(&mut recorded, &mut twin))
}

/// The command; returns the exit code.
pub fn main(options: &Options) -> i32 {
    match measure(options) {
        Ok(table) => {
            print!("{table}");
            0
        }
        Err(message) => {
            eprintln!("{message}");
            2
        }
    }
}
