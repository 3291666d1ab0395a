// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of `schedtwin sweep` and `schedtwin merge`.

use std::path::PathBuf;

use clap::Args;
use schedtwin_lab::stopping::MOST_ITERATIONS;
use schedtwin_lab::sweep::Shard;
use schedtwin_types::Duration;

use super::MOST_THREADS;

pub const SWEEP_EXAMPLES: &str = "\
A list in braces stands for each of its values: {500,1000,2000}. Quote it, because shells expand braces, too. -m, -k and -w may be given again; each machine runs each kernel with each workload.

The output has a line for each run and metric: the metrics that --metric names, or all. With --wide it has a line for each run and a
column for each metric. Its first line has the version and the hash of each input. Finished runs are kept in OUTPUT.runs until the output
is written: after an interruption give the command again, and it goes on where it stopped. With --shard K/N it performs every N-th run, for
batch engines; schedtwin merge makes one file of all shards, the same as a sweep without shards. With --cache DIR
a sweep that is repeated or widened performs only new runs: a run is known by all its inputs and the version of the model.

Examples:
  schedtwin sweep -m pixel6 -k 'linux-7.3-gki:schedutil.rate_limit_us={500,1000,2000}' -w ui-phone
  schedtwin sweep -m pixel6 -m juno-r2 -k 'linux-{6.1,6.12}' -w w1 -n 20 -o runs.csv
  schedtwin sweep -m pixel6 -k 'linux-{6.1,6.12}' -w ui-phone --metric power,domain=* -o power.csv
  schedtwin sweep -m pixel6 -k 'linux-7.3-gki:hz={100,250,1000}' -w ui-phone --front power,wakeup_latency.p99
  schedtwin sweep ... --front power,wakeup_latency.p99 -n 40 --race               few runs for settings that lose
  schedtwin sweep ... --front power,wakeup_latency.p99 --html sweep.html        with a figure of both metrics
  schedtwin sweep -m spr-2s224 -k linux-6.6 -w 'messaging -g {1,2,4}' --shard 3/40 -o part-03.csv
  schedtwin sweep ... --from runs.csv --front power,elapsed --html sweep.html   a figure of what merge put together

Exit codes: 0 all ran; 1 a run panicked; 2 bad arguments.";

pub const MERGE_EXAMPLES: &str = "\
Examples:
  schedtwin merge part-*.csv -o runs.csv
  schedtwin sweep -m ... -k ... -w ... --from runs.csv --front power,elapsed --html sweep.html   then a table and a figure
  schedtwin merge part-*.parquet -o runs.parquet

Exit codes: 0 merged; 2 parts are missing or cannot be read.";

#[derive(Args)]
pub struct Sweep {
    /// A machine: NAME[:KEY=VALUE,...] or a path; may have lists, and be given again
    #[arg(short, long = "machine", value_name = "MACHINE", required = true)]
    pub machines: Vec<String>,
    /// A kernel: NAME[+PATCH...][:KEY=VALUE,...] or a path; may have lists, and be given again
    #[arg(short, long = "kernel", value_name = "KERNEL", required = true)]
    pub kernels: Vec<String>,
    /// A workload: NAME [OPTIONS] or a path; may have lists, and be given again
    #[arg(short, long = "workload", value_name = "WORKLOAD", required = true)]
    pub workloads: Vec<String>,
    /// Simulated time of each run: 10s, 500ms [default: the workload's own]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Runs of each setting, with seeds SEED, SEED+1, ...
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          default_value_t = 3, value_name = "RUNS")]
    pub iterations: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A metric of the table and of the output: NAME[.STAT][,LABEL=VALUE...]; may be given again [default: in the
    /// table the workload's headlines, in the output everything]
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<String>,
    /// Mark the settings that no other setting beats in both metrics: power,wakeup_latency.p99
    #[arg(long, value_name = "NAME,NAME")]
    pub front: Option<String>,
    /// Give runs to settings that may still be on the front: each has 4 seeds, and as many as -n says where no rival is
    /// better in both metrics for certain. Prints the table; --cache keeps the runs
    #[arg(long, requires = "front", conflicts_with_all = ["output", "shard"])]
    pub race: bool,
    /// Write an HTML report with the table and, with --front, a figure of the two metrics
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every run to this file: FILE.csv, or FILE.parquet (a binary built with --features parquet)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Take runs from this file, which a sweep of the same settings or merge has written, and perform only what it lacks: for
    /// another table, front or page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "shard", "race"])]
    pub from: Option<PathBuf>,
    /// Write one line for each run, with a column for each metric
    #[arg(long, requires = "output")]
    pub wide: bool,
    /// Perform every N-th run only, beginning with the K-th
    #[arg(long, value_parser = Shard::parse, value_name = "K/N", requires = "output", conflicts_with_all = ["metrics", "front", "html"])]
    pub shard: Option<Shard>,
    /// Keep every run there, and take from there what an earlier sweep of this version has run: FOLDER, made if need be
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct Merge {
    /// All files that `schedtwin sweep --shard` wrote
    #[arg(value_name = "PART", required = true)]
    pub parts: Vec<PathBuf>,
    /// The file of the whole sweep
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}
