// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments of `schedtwin tune`.

use clap::{ArgGroup, Args};
use schedtwin_lab::stopping::{DEFAULT_ITERATIONS, MOST_ITERATIONS};

use super::{DEFAULT_KERNEL, MOST_THREADS, Subject};

pub const TUNE_EXAMPLES: &str = "\
Examples:
  schedtwin tune -m pixel9 -w speedometer -k linux-6.1-gki+uclamp-sum \\
    --setting kernel.uclamp_scale_permille=300..1000 --metric power --like linux-6.1-gki
  schedtwin tune -m pixel6 -w jankbench -k linux-7.3-gki \\
    --setting kernel.schedutil.rate_limit_us=0..20000 --metric jank --to 2
  schedtwin tune -m pixel6 -w periodic --setting workload.threads=1..64 --metric power --to 500
The step of a range is its last digit: 0.50..2.00 has steps of 0.01. Each value runs with the same seeds as the goal.
The metric must rise or fall over the whole range; all measured values are printed, so check that it does.";

#[derive(Args)]
#[command(group = ArgGroup::new("goal").required(true).args(["like", "to"]))]
pub struct Tune {
    #[command(flatten)]
    pub subject: Subject,
    /// The kernel that runs with the setting: NAME[+PATCH...][:KEY=VALUE,...] or a path
    #[arg(short, long, value_name = "KERNEL", default_value = DEFAULT_KERNEL)]
    pub kernel: String,
    /// The setting and its range: kernel.KEY, machine.KEY or workload.OPTION
    #[arg(long, value_name = "PART.KEY=LEAST..GREATEST")]
    pub setting: String,
    /// The metric: NAME[.STAT][,LABEL=VALUE...]; must be one row
    #[arg(long, value_name = "NAME")]
    pub metric: String,
    /// The wanted value is this kernel's, measured without the setting
    #[arg(long, value_name = "KERNEL")]
    pub like: Option<String>,
    /// The wanted value, in the metric's unit
    #[arg(long, value_name = "NUMBER")]
    pub to: Option<f64>,
    /// Runs of each value, with seeds SEED, SEED+1, ...
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          default_value_t = DEFAULT_ITERATIONS as u64, value_name = "RUNS")]
    pub iterations: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
}
