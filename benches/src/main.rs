// SPDX-License-Identifier: GPL-2.0-or-later
//! The measurements' command line; see the library's documentation for what each says.

use clap::{Parser, Subcommand, ValueEnum};
use schedtwin_benches::{budget, clamps, cpus, guard, measure, scale, traces, w1};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Measures the twin's own speed and memory")]
struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand)]
enum What {
    /// W1 against the frozen floor, with traces, records and memory
    W1 {
        /// The kernel it runs under
        #[arg(long, default_value = w1::KERNEL)]
        kernel: String,
        /// Alternating rounds; the median counts
        #[arg(long, default_value_t = 10)]
        pairs: usize,
        /// Simulated seconds of a run
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Many runs at once on 1, 2, … threads
    Scale {
        /// How many runs
        #[arg(long, default_value_t = 24)]
        runs: u64,
        /// The most threads
        #[arg(long, default_value_t = 2)]
        threads: usize,
        /// Simulated seconds of a run
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Instructions and nanoseconds of a W1 job by row of the budget (needs valgrind)
    Budget,
    /// Instructions of a W1 job and of some runs against the committed numbers (skipped without valgrind)
    Guard {
        /// Write the numbers down instead
        #[arg(long)]
        update: bool,
    },
    /// One run of `guard`
    GuardCase {
        /// Its name
        name: String,
    },
    /// Instructions of an enqueue and a dequeue without clamps, under max and under sum aggregation (needs valgrind)
    Clamps,
    /// Tasks that join and leave a run queue, for `clamps`
    ClampsCase {
        #[arg(value_enum)]
        mode: clamps::Mode,
        /// How often
        pairs: u64,
    },
    /// Instructions of an event and memory on machines of 8 to 256 CPUs (needs valgrind)
    Cpus,
    /// One run of `cpus`; prints the peak of this process's memory, KiB
    CpusCase {
        /// A built-in machine
        machine: String,
        /// How many CPUs it has
        cpus: u64,
        /// Simulated milliseconds
        milliseconds: u64,
    },
    /// Events of recordings read a second
    Traces {
        /// Further files to read
        files: Vec<PathBuf>,
    },
    /// One run; prints the peak of this process's memory, KiB
    Case {
        /// What it writes
        #[arg(long, value_enum, default_value_t = Files::None)]
        files: Files,
        /// Simulated seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Files {
    None,
    Trace,
    Record,
}

/// Prints what Valgrind has counted, where it is installed.
fn counted(report: impl FnOnce() -> io::Result<()>) -> ExitCode {
    if !budget::valgrind_is_there() {
        println!("skipped: valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    match report() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("error: failed to count instructions: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the guard's verdicts.
fn guarded(update: bool) -> ExitCode {
    let verdicts = match guard::check(update) {
        Ok(verdicts) => verdicts,
        Err(fault) => {
            eprintln!("error: failed to count instructions: {fault}");
            return ExitCode::FAILURE;
        }
    };
    let mut code = ExitCode::SUCCESS;
    for verdict in verdicts {
        match verdict {
            guard::Verdict::Passed(said) => println!("guard: {said}"),
            guard::Verdict::Failed(said) => {
                eprintln!("guard: {said}: beyond {} %", guard::TOLERANCE_PERCENT);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        What::W1 { kernel, pairs, seconds } => w1::report(&kernel, pairs.max(1), seconds),
        What::Scale { runs, threads, seconds } => scale::report(runs, threads, seconds),
        What::Cpus => return counted(cpus::report),
        What::CpusCase { machine, cpus, milliseconds } => {
            cpus::case(&machine, cpus, milliseconds);
            println!("{}", measure::peak_kib().unwrap_or(0));
        }
        What::Traces { files } => {
            if let Err(fault) = traces::report(&files) {
                eprintln!("error: failed to read recordings: {fault}");
                return ExitCode::FAILURE;
            }
        }
        What::Clamps => return counted(clamps::report),
        What::ClampsCase { mode, pairs } => clamps::run(mode, pairs),
        What::Budget => return counted(budget::report),
        What::Guard { update } => return guarded(update),
        What::GuardCase { name } => {
            if !guard::case(&name) {
                eprintln!("error: `{name}` is no run of the guard");
                return ExitCode::FAILURE;
            }
        }
        What::Case { files, seconds } => {
            let files = match files {
                Files::None => w1::Files::None,
                Files::Trace => w1::Files::Trace,
                Files::Record => w1::Files::Record,
            };
            w1::run(&w1::scenario(w1::KERNEL, seconds), 1, files);
            println!("{}", measure::peak_kib().unwrap_or(0));
        }
    }
    ExitCode::SUCCESS
}
