// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of `schedtwin study` and `schedtwin calibrate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use schedtwin_lab::stopping::{DEFAULT_ITERATIONS, MOST_ITERATIONS};
use schedtwin_lab::study::reports::Kind;

use super::MOST_THREADS;
use crate::percent;

pub const STUDY_EXAMPLES: &str = "\
Examples:
  schedtwin study list                              all built-in studies
  schedtwin study show jankbench-pixel6             published numbers, settings, variants
  schedtwin study run jankbench-pixel6 -n 10        published and simulated numbers, with a verdict per row
  schedtwin study run ./my-study.toml --format markdown
  schedtwin study run --all --format json           every study that can run
  schedtwin study run --reports --kind preemption   published changes on a scoreboard, see docs/reports.md

Verdicts: agree (same sign, 0.5 to 2 times the published difference, or both within the noise);
direction (same sign only); disagree; inconclusive. Base values are no predictions.
robust: the sign is known, and the same in all sensitivity variants of the study; yes 12/15: in twelve
of the fifteen variants it is known, too.";

pub const CALIBRATE_EXAMPLES: &str = "\
Examples:
  schedtwin calibrate jankbench-pixel6 --dry-run    the values that would be fitted, and the checks
  schedtwin calibrate jankbench-pixel6              writes studies/calibrations/jankbench-pixel6.toml
  schedtwin calibrate ./my-study.toml               writes ./calibrations/my-study.toml
  schedtwin study run jankbench-pixel6 --calibration studies/calibrations/jankbench-pixel6.toml
  schedtwin calibrate machine work.dat -m my.toml   costs of a machine, from a recording of it
  schedtwin calibrate machine --probe               costs of communication between the CPUs of this machine
The fitter gets base values only and gives the same bytes on every computer. A calibration is refused
under another version of the model.";

const CALIBRATE_MACHINE_EXAMPLES: &str = "\
Examples:
  schedtwin calibrate machine work.dat -m machine.toml --dry-run
  schedtwin calibrate machine work.dat -m machine.toml      exit latencies and kernel paths, measured
  schedtwin calibrate machine t.pftrace -m pixel6 -o my-pixel6.toml
  schedtwin calibrate machine --probe                       lines, locks and messages between the CPUs here
  schedtwin calibrate machine --probe -m my.toml -o my-measured.toml
  taskset -c 0,8 schedtwin calibrate machine --probe        between two CPUs of your choice
Keys that are written are listed in the file as `measured`, each with its spread; the rest stays estimated.
--probe takes a minute or less, needs no root, and wants a machine without other work: what stays unsteady
is marked. Distances are those of sysfs, as `schedtwin capture` reads them. It prints a table, and [distance]
to paste; only -o writes a file. In virtual machines it leaves out what goes through the hypervisor.";

const STABILITY_EXAMPLES: &str = "\
Examples:
  schedtwin study stability jankbench-pixel6 --reruns 100
  schedtwin study stability jankbench-pixel6 --reruns 20 --rows S1.2,S1.4 --format json
  schedtwin study stability ./my-study.toml --fail-below 95";

const STUDY_RUN_EXAMPLES: &str = "\
Examples:
  schedtwin study run jankbench-pixel6 -n 10
  schedtwin study run jankbench-pixel6 --precision 1%
  schedtwin study run jankbench-pixel6 --html jankbench.html
  schedtwin study run jankbench-pixel6 --sensitivity --format markdown    each variant
  schedtwin study run --all --base -q     every base value, and how many are met within 10 and 25 %
  schedtwin study run --all --format json
  schedtwin study run --reports                           every report that can run, on one scoreboard
  schedtwin study run --reports --kind preemption R2 R4   some of them
  schedtwin study run --reports ./mine.toml               a report of your own
  schedtwin study run --reports --record studies/reports  into the files that docs/reports.md is made of

A report is a study of a published change with a table [report]. Of the differences that the publication
is sure of, the scoreboard counts those whose sign is right and those within a factor of two, and base
values within 25 %. docs/reports.md has the rule, and how to enter a report.";

const STUDY_LIST_EXAMPLES: &str = "\
Examples:
  schedtwin study list
  schedtwin study list --reports --kind idle
  schedtwin study list --reports --results     first and present results of all reports";

#[derive(Args)]
pub struct StudyArguments {
    #[command(subcommand)]
    pub action: StudyAction,
}

#[derive(Subcommand)]
pub enum StudyAction {
    /// The built-in studies, or the reports
    #[command(after_help = STUDY_LIST_EXAMPLES)]
    List(StudyList),
    /// The published numbers, the runs, the fitted parameters and the variants of a study
    Show {
        /// NAME or a path
        name: String,
        /// Print the study's file, to start your own from
        #[arg(long)]
        file: bool,
        /// Only what was published of base kernels: nothing that the twin has to predict
        #[arg(long, conflicts_with = "file")]
        base: bool,
    },
    /// Run studies and print published numbers and the twin's side by side, with a verdict per row
    #[command(after_help = STUDY_RUN_EXAMPLES)]
    Run(StudyRun),
    /// Run a study repeatedly with other seeds and count its verdicts
    #[command(after_help = STABILITY_EXAMPLES)]
    Stability(Stability),
}

#[derive(Args)]
pub struct StudyList {
    /// The reports: published changes as small studies, with kind, year and whether each can run
    #[arg(long)]
    pub reports: bool,
    /// Only reports of this kind: preemption, placement, idle, ...
    #[arg(long, requires = "reports", value_parser = Kind::parse)]
    pub kind: Option<Kind>,
    /// The table of first and present results, in Markdown, as docs/reports.md has it
    #[arg(long, requires = "reports")]
    pub results: bool,
}

#[derive(Args)]
pub struct Stability {
    /// NAME or a path
    pub name: String,
    /// Number of reruns
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000), default_value_t = 100)]
    pub reruns: u64,
    /// Fresh seeds of each rerun
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(2..=10_000),
          default_value_t = DEFAULT_ITERATIONS as u64, conflicts_with = "precision", value_name = "RUNS")]
    pub iterations: u64,
    /// Add seeds to each rerun until the differences of the main rows have intervals this narrow, e.g. 1%
    #[arg(long, value_parser = percent::parse_percent, value_name = "PERCENT")]
    pub precision: Option<f64>,
    /// The most seeds of a rerun that --precision may take; each rerun has as many of its own
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=10_000), default_value_t = 320,
          requires = "precision", value_name = "RUNS")]
    pub max_iterations: u64,
    /// Only these rows, by id: S1.2,S1.4
    #[arg(long, value_delimiter = ',', value_name = "ID,...")]
    pub rows: Vec<String>,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Exit with 1 if the most frequent verdict of a row comes in a smaller percentage of the reruns
    #[arg(long, value_parser = percent::parse_percent, value_name = "PERCENT")]
    pub fail_below: Option<f64>,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t = DataFormat::Text)]
    format: DataFormat,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
}

impl Stability {
    pub fn json(&self) -> bool {
        self.format == DataFormat::Json
    }
}

/// The forms of a result that is no table for documents.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DataFormat {
    /// A table in ASCII
    Text,
    /// Everything, see schedtwin show schema stability
    Json,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Calibrate {
    #[command(subcommand)]
    pub what: Option<CalibrateWhat>,
    /// A study with [[fit]]: NAME or a path
    #[arg(required = true)]
    pub name: Option<String>,
    /// Print the parameters and the values that would be fitted, and the values that would stay checks; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Seeds of each measurement, from 1
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=1000),
          default_value_t = DEFAULT_ITERATIONS as u64, value_name = "RUNS")]
    pub iterations: u64,
    /// The file to write [default: calibrations/NAME.toml beside the study]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Subcommand)]
pub enum CalibrateWhat {
    /// Measure costs of a machine, in a recording of it or on the machine itself, and write them into its file
    #[command(after_help = CALIBRATE_MACHINE_EXAMPLES)]
    Machine(CalibrateMachine),
}

#[derive(Args)]
pub struct CalibrateMachine {
    /// A recording of that machine, with sched_waking, sched_switch, cpu_idle and, if it can be, interrupts
    #[arg(value_name = "TRACE", required_unless_present = "probe", conflicts_with = "probe")]
    pub recording: Option<PathBuf>,
    /// The machine: NAME or a path
    #[arg(short, long, value_name = "MACHINE", required_unless_present = "probe")]
    pub machine: Option<String>,
    /// Where the file with the measured values goes [default: the machine's own file; with --probe: nowhere]
    #[arg(short, long, value_name = "FILE", requires = "machine")]
    pub output: Option<PathBuf>,
    /// Print what was measured, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Measure although the recording looks like another machine's
    #[arg(long, conflicts_with = "probe")]
    pub force: bool,
    /// Measure here, without a recording, what communication between CPUs costs
    #[arg(long)]
    pub probe: bool,
    /// With --probe: measure messages and wakeups between CPUs in a virtual machine, too
    #[arg(long, requires = "probe", conflicts_with = "recording")]
    pub in_guest: bool,
    /// With --probe: no progress on stderr
    #[arg(short, long, requires = "probe", conflicts_with = "recording")]
    pub quiet: bool,
}

/// The forms of a study's result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// A table in ASCII
    Text,
    /// A table for web pages
    Markdown,
    /// Everything, see schedtwin show schema study (of reports: schema reports)
    Json,
}

#[derive(Args)]
pub struct StudyRun {
    /// Built-in studies or paths of study files; with --reports: reports by id or path
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "reports"], conflicts_with = "all")]
    pub names: Vec<String>,
    /// Every built-in study that can run
    #[arg(long)]
    pub all: bool,
    /// Reports on one scoreboard: those that are named, else all
    #[arg(long, conflicts_with_all = ["all", "precision", "base", "sensitivity", "calibration", "html"])]
    pub reports: bool,
    /// Only reports of this kind: preemption, placement, idle, ...
    #[arg(long, requires = "reports", value_parser = Kind::parse)]
    pub kind: Option<Kind>,
    /// Also run the reports that were put aside unseen
    #[arg(long, requires = "reports")]
    pub kept_aside: bool,
    /// Write the results into DIR: present-results.csv, and into first-results.csv those of cells without any
    #[arg(long, requires = "reports", value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Runs of each kernel, with seeds SEED, SEED+1, ... [default: 10; of reports what the file says, else 5]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          conflicts_with = "precision", value_name = "RUNS")]
    pub iterations: Option<u64>,
    /// Add seeds until the differences of the main rows have intervals this narrow (95% half-width), e.g. 1%
    #[arg(long, value_parser = percent::parse_percent, value_name = "PERCENT")]
    pub precision: Option<f64>,
    /// The most runs of each kernel that --precision may take
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          default_value_t = 320, requires = "precision", value_name = "RUNS")]
    pub max_iterations: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run base kernels only, and show how far each of their values is off: for who builds a model
    #[arg(long, conflicts_with_all = ["no_variants", "sensitivity"])]
    pub base: bool,
    /// Leave out the sensitivity variants: faster, but without the column robust
    #[arg(long)]
    pub no_variants: bool,
    /// Print the table of the variants: every difference in each of them, with its interval
    #[arg(long, conflicts_with = "no_variants")]
    pub sensitivity: bool,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// A calibration to use instead of the study's own
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub calibration: Option<PathBuf>,
    /// Use no calibration: nothing is fitted
    #[arg(long, conflicts_with = "calibration")]
    pub uncalibrated: bool,
    /// The form of the result
    #[arg(long, value_enum, default_value_t = DocumentFormat::Text)]
    pub format: DocumentFormat,
    /// Also write an HTML report with figures: one file, which loads nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Width of the text in columns [default: the terminal's, else 100]
    #[arg(long, value_parser = clap::value_parser!(u16).range(40..=1000), value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// No progress bar and no notes on stderr
    #[arg(short, long)]
    pub quiet: bool,
}
