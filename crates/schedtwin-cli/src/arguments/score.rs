// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of `schedtwin score`.

use std::path::PathBuf;

use clap::Args;
use schedtwin_types::Duration;

use super::MOST_THREADS;

pub const SCORE_EXAMPLES: &str = "\
The number is 100 times a geometric mean of how many times better each measure of the suite is than under the baseline: more is better,
100 is the baseline, and 0 is a candidate that breaks a property, leaves work undone or cannot be loaded. The reason is on stderr and in
the JSON. Several candidates have a line each, in their order, and share the runs of the baseline. `baseline:KEY=VALUE` is the
suite's own baseline with other settings.

Examples:
  schedtwin score --list
  schedtwin score default linux-7.3:eevdf.base_slice_unscaled_ns=3000000
  schedtwin score default 'baseline:scx=./my.bpf.c' --json score.json      what it is made of, and what it breaks
  schedtwin score phone 'baseline:scx={./a,./b}.bpf.c' --limit 30s         0 for one that takes longer
  schedtwin score phone 'linux-7.3:hz={100,250,1000}' --cache runs         the baseline is run once
  schedtwin score default my-kernel.toml --beat 104.2                      ends once that is out of reach
  schedtwin show suite default > mine.toml                                 to start your own from

Exit codes: 0 the numbers are printed, whatever they are; 1 a run panicked; 2 the suite is bad.";

#[derive(Args)]
pub struct Score {
    /// The suite: a name or a path that ends in .toml
    #[arg(value_name = "SUITE", required_unless_present = "list")]
    pub suite: Option<String>,
    /// The candidates: NAME[+PATCH...][:KEY=VALUE,...] or a path; may have lists
    #[arg(value_name = "KERNEL", required_unless_present = "list")]
    pub kernels: Vec<String>,
    /// List the built-in suites
    #[arg(long, conflicts_with_all = ["suite", "kernels", "json", "cache", "beat", "race", "limit", "seed"])]
    pub list: bool,
    /// Write everything to this file: the score of each job and measure, what was broken, how to repeat it
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep every run there, and take from there what was run before: FOLDER, made if need be
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// End a candidate that cannot reach this score any more, which is certain, not estimated
    #[arg(long, value_name = "SCORE")]
    pub beat: Option<f64>,
    /// End a candidate that another one beats by the 99.9% interval of their difference: an estimate
    #[arg(long)]
    pub race: bool,
    /// End a candidate with C that takes longer than this: its score is 0 [default: 10s of CPU time a call of its C]
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Duration>,
    /// The seed of the first run [default: the suite's]
    #[arg(long, visible_alias = "first-seed")]
    pub seed: Option<u64>,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// No progress bar, and no reasons on stderr
    #[arg(short, long)]
    pub quiet: bool,
}
