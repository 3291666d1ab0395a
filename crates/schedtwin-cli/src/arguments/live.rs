// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin live` and `schedtwin settings`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub const LIVE_EXAMPLES: &str = "\
Examples:
  sudo schedtwin live run -w mix.json --a '' --b 'nice hogs=10' --b 'slice ui=100us'
  sudo schedtwin live run --b 'cpus cc1=0' -- make -j2          any command
The same in steps that leave their files in a folder:
  sudo schedtwin live record -o live -w mix.json --b 'nice hogs=10'   A alone
  schedtwin live predict -o live                    what the twin says of B, sealed
  sudo schedtwin live record -o live                A, B, A, B, ... measured
  schedtwin live judge -o live                      side by side

A setting is any number of these, with ; between:
  nice THREADS=10   policy THREADS=fifo:50   slice THREADS=100us   cpus THREADS=0-1
  util_min THREADS=512   util_max THREADS=256   dl THREADS=2ms/10ms
  KEY=VALUE as for -k (migration_cost_ns=0), where the running kernel lets it be switched
  cpu.max /GROUP=20ms/100ms   cpu.weight /GROUP=50   cpuset.cpus /GROUP=0   smt=off   online=0-3
  a GROUP that is not there is made, and the work runs in it
THREADS is a name or a class (ui for ui-0, ui-1), with * and ?. Everything is put back, even if this is killed.
All settings are tried before anything runs; what the machine refuses is told at once.
Recording needs root and tracefs: mount -t tracefs nodev /sys/kernel/tracing";

pub const SETTINGS_EXAMPLES: &str = "\
Examples:
  schedtwin settings show                                      what can be switched here, and its value
  schedtwin settings apply linux-6.18:migration_cost_ns=0 --dry-run       a shell script
  sudo schedtwin settings apply best.toml                      until the undo
  sudo schedtwin settings apply --set 'nice hogs=10' -- ./benchmark       while the command runs
  sudo schedtwin settings undo
Of a kernel only what a running Linux can switch is applied: of a file or a built-in all such settings, of
KERNEL:KEY=VALUE,... those that are named. The kernel's own threads are left alone.";

#[derive(Args)]
pub struct Live {
    #[command(subcommand)]
    pub action: LiveAction,
}

#[derive(Subcommand)]
pub enum LiveAction {
    /// Record, predict, seal, measure, judge
    Run(LiveRun),
    /// Record what is due: the first setting, or, once a prediction is sealed, all of them
    Record(LiveRecord),
    /// Predict every setting from the recordings of the first one, and seal the prediction
    Predict(LivePredict),
    /// Judge the sealed prediction by the measurements
    Judge(LiveJudge),
    /// Execute an rt-app file, or a command, with the settings of the work
    #[command(hide = true)]
    Perform(Perform),
}

/// What runs under which settings.
#[derive(Args)]
pub struct LiveWork {
    /// An rt-app file; else give a command behind --
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub workload: Option<PathBuf>,
    /// The first setting; '' is the machine as it is
    #[arg(long, value_name = "SETTING", default_value = "")]
    pub a: String,
    /// A setting that is compared with it; may be given again
    #[arg(long, value_name = "SETTING")]
    pub b: Vec<String>,
    /// A setting with a known large effect, which has to be seen; '' for none
    #[arg(long, value_name = "SETTING", default_value = "cpus *=0")]
    pub control: String,
    /// Runs under each setting
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub runs: u32,
    /// Who runs an rt-app file
    #[arg(long, value_enum, default_value_t = RunnerArgument::Schedtwin)]
    pub runner: RunnerArgument,
    /// A command to run, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunnerArgument {
    /// The runner that schedtwin brings
    Schedtwin,
    /// rt-app itself
    RtApp,
}

#[derive(Args)]
pub struct LiveRun {
    #[command(flatten)]
    pub folder: LiveFolder,
    #[command(flatten)]
    pub work: LiveWork,
    #[command(flatten)]
    pub twin: LiveTwin,
    /// Print JSON (schedtwin.live/1) instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct LiveRecord {
    #[command(flatten)]
    pub folder: LiveFolder,
    #[command(flatten)]
    pub work: LiveWork,
}

#[derive(Args)]
pub struct LivePredict {
    #[command(flatten)]
    pub folder: LiveFolder,
    #[command(flatten)]
    pub twin: LiveTwin,
}

#[derive(Args)]
pub struct LiveJudge {
    #[command(flatten)]
    pub folder: LiveFolder,
    /// Print JSON (schedtwin.live/1) instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct LiveFolder {
    /// The folder of all files
    #[arg(short, long, value_name = "FOLDER", default_value = "live")]
    pub output: PathBuf,
    /// No notes on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The twin that predicts.
#[derive(Args)]
pub struct LiveTwin {
    /// The machine instead of the captured one
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// The kernel instead of the captured one
    #[arg(short, long, value_name = "KERNEL")]
    pub kernel: Option<String>,
}

#[derive(Args)]
pub struct Perform {
    /// The rt-app file
    #[arg(short, long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Settings of threads
    #[arg(long, value_name = "SETTING")]
    pub set: Vec<String>,
    /// A cgroup to run in
    #[arg(long, value_name = "FOLDER")]
    pub group: Vec<PathBuf>,
    /// The timer slack
    #[arg(long, value_name = "NS")]
    pub slack: Option<u64>,
    /// A file for what is refused
    #[arg(long, value_name = "FILE")]
    pub refusals: Option<PathBuf>,
    /// The command; neither this nor a file: a trial of the settings
    #[arg(last = true)]
    pub command: Vec<String>,
}

#[derive(Args)]
pub struct SettingsArguments {
    #[command(subcommand)]
    pub action: SettingsAction,
}

#[derive(Subcommand)]
pub enum SettingsAction {
    /// Print every setting that can be switched here, with its value
    Show,
    /// Apply a kernel's settings, and others
    Apply(SettingsApply),
    /// Put everything back that was applied
    Undo {
        /// The journal, if it is not that of `settings apply`
        #[arg(default_value = schedtwin_live::settings::JOURNAL)]
        journal: PathBuf,
    },
    /// Put everything back once standard input ends
    #[command(hide = true)]
    Watch {
        /// The journal
        journal: PathBuf,
    },
}

#[derive(Args)]
pub struct SettingsApply {
    /// A kernel: NAME[:KEY=VALUE,...] or a path
    #[arg(value_name = "KERNEL", required_unless_present = "set")]
    pub kernel: Option<String>,
    /// Further settings: 'nice hogs=10; smt=off'; may be given again
    #[arg(long, value_name = "SETTING")]
    pub set: Vec<String>,
    /// Print a shell script that applies and undoes them, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// A command after --: the settings hold while it runs
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
