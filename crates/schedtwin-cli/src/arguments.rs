// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line, with help that teaches by example.

mod import;
mod live;
#[cfg(feature = "mcp")]
mod mcp;
mod score;
mod study;
mod sweep;
pub mod tip;
mod tune;

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use schedtwin_engine::output::MaxSize;
use schedtwin_input::Diagnostics;
use schedtwin_lab::report::{self, Extent, Format, Layout};
use schedtwin_lab::selector::Selector;
use schedtwin_lab::stopping::{DEFAULT_ITERATIONS, MOST_ITERATIONS};
use schedtwin_trace::event_out::TableFormat;
use schedtwin_types::{Duration, Ns};

use crate::failure::Failure;
use crate::{percent, terminal};
use import::IMPORT_EXAMPLES;
pub use import::{Import, ImportMachine, ImportWattson, ImportWhat};
use live::{LIVE_EXAMPLES, SETTINGS_EXAMPLES};
pub use live::{
    Live, LiveAction, LiveFolder, LiveJudge, LivePredict, LiveRecord, LiveRun, LiveTwin, LiveWork,
    Perform, RunnerArgument, SettingsAction, SettingsApply, SettingsArguments,
};
#[cfg(feature = "mcp")]
use mcp::MCP_EXAMPLES;
#[cfg(feature = "mcp")]
pub use mcp::Mcp;
use score::SCORE_EXAMPLES;
pub use score::Score;
use study::{CALIBRATE_EXAMPLES, STUDY_EXAMPLES};
pub use study::{
    Calibrate, CalibrateMachine, CalibrateWhat, DocumentFormat, Stability, StudyAction,
    StudyArguments, StudyList, StudyRun,
};
use sweep::{MERGE_EXAMPLES, SWEEP_EXAMPLES};
pub use sweep::{Merge, Sweep};
use tune::TUNE_EXAMPLES;
pub use tune::Tune;

/// The kernel of a run that names none: the newest that is modelled.
pub const DEFAULT_KERNEL: &str = "linux-7.3";

/// Threads beyond this are a typing error.
const MOST_THREADS: u64 = 1024;

const OVERVIEW: &str = "\
Examples:
  schedtwin list                                        everything that is built in
  schedtwin run -m pixel6 -w ui-phone -k linux-7.3-gki  one run
  schedtwin compare -m pixel6 -w ui-phone -k linux-7.3-gki -k linux-7.3-gki:hz=1000
  schedtwin run -m pixel6 -w app.json --record r.rec    keep every decision
  schedtwin explain r.rec --at 1.5s                     print them, with their reasons

Names and their variants:
  MACHINE   NAME[:KEY=VALUE,...]             pixel6:coupling=false
  KERNEL    NAME[+PATCH...][:KEY=VALUE,...]  linux-7.3:schedutil.rate_limit_us=500
  WORKLOAD  NAME or FILE                     w1, my-app.json
Each may be a path: machines and kernels are .toml files, workloads rt-app's .json files.

schedtwin --version --licences prints the licences of everything in it.

Exit codes: 0 success; 1 a --fail-if or a check failed; 2 bad input; 101 a bug;
130 Ctrl-C; 143 TERM.";

const ABOUT: &str = "\
A deterministic twin of Linux's scheduler, frequency and idle code: name a machine, a workload
and two kernels, and see what the change between them does.";

/// The command line.
#[derive(Parser)]
#[command(name = "schedtwin", version, about = ABOUT, long_about = None, after_help = OVERVIEW, subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, its help for a terminal of that width.
pub fn command(width: usize) -> clap::Command {
    let width = width.min(terminal::HELP_WIDEST);
    fitted(Arguments::command().max_term_width(terminal::HELP_WIDEST), width)
}

/// The command and all below it, whose examples are broken so that they fit.
fn fitted(command: clap::Command, width: usize) -> clap::Command {
    let examples = command.get_after_help().map(|text| terminal::fit_to(&text.to_string(), width));
    let command = command.mut_subcommands(|below| fitted(below, width));
    match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Run one workload on one kernel and print what was measured
    #[command(after_help = RUN_EXAMPLES, allow_negative_numbers = true)]
    Run(Run),
    /// Run kernels with the same seeds and print the differences, with intervals
    #[command(after_help = COMPARE_EXAMPLES, allow_negative_numbers = true)]
    Compare(Compare),
    /// Find which of the settings that differ between two kernels make the second one worse
    #[command(after_help = BISECT_EXAMPLES)]
    Bisect(Bisect),
    /// Make a workload smaller while the second kernel still breaks a property that the first keeps
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(Shrink),
    /// Look for a workload under which a kernel breaks a property that another one keeps; shrink and bisect it
    #[command(after_help = HUNT_EXAMPLES)]
    Hunt(Hunt),
    /// Print the events and decisions of a record, with the reason for each decision
    #[command(after_help = EXPLAIN_EXAMPLES, allow_negative_numbers = true)]
    Explain(Explain),
    /// List what is built in
    #[command(
        after_help = "Examples:\n  schedtwin list\n  schedtwin list kernels\n  schedtwin list metrics"
    )]
    List(List),
    /// Show a machine, kernel, workload, patch or JSON schema with all its settings
    #[command(
        after_help = "Examples:\n  schedtwin show kernel linux-7.3\n  schedtwin show kernel linux-7.3:hz=1000\n  schedtwin show kernel linux-6.6 linux-7.3-gki\n  schedtwin show machine pixel6\n  schedtwin show machine pixel6 -k linux-7.3-gki\n  schedtwin show machine pixel6 --file > mine.toml\n  schedtwin show schema compare > compare.schema.json"
    )]
    Show(Show),
    /// Check machine, kernel, patch, workload and suite files; of a suite the baseline is run
    #[command(
        after_help = "Examples:\n  schedtwin check my-phone.toml app.json\n\nExit codes: 0 all are fine; 1 a file has faults; 2 a file cannot be read."
    )]
    Check(Check),
    /// Print a shell script that a device runs to describe itself: a machine and a kernel file
    #[command(after_help = CAPTURE_EXAMPLES)]
    Capture {
        /// Print the script even to a terminal
        #[arg(long)]
        print: bool,
    },
    /// Record this machine through tracefs, with no other program, for replay: a trace.dat
    #[command(after_help = RECORD_EXAMPLES)]
    Record(Record),
    /// Make a system's profile from a recording: what runs beside programs, how often and how long
    #[command(after_help = PROFILE_EXAMPLES)]
    Profile(Profile),
    /// Predict what settings of this machine would do, then measure it, and judge the prediction
    #[command(after_help = LIVE_EXAMPLES)]
    Live(Live),
    /// Apply a kernel's settings to this machine, as far as a running Linux can switch them, and put them back
    #[command(after_help = SETTINGS_EXAMPLES)]
    Settings(SettingsArguments),
    /// Make a machine file of what other tools know, or put measured values into one
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Import),
    /// Run published experiments and print the published numbers beside the twin's
    #[command(after_help = STUDY_EXAMPLES, allow_negative_numbers = true)]
    Study(StudyArguments),
    /// Fit the unpublished parameters of a study to the published values of its base kernel
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(Calibrate),
    /// Find the value of a setting at which a metric has a wanted value
    #[command(after_help = TUNE_EXAMPLES, allow_negative_numbers = true)]
    Tune(Tune),
    /// Run every combination of machines, kernels and workloads, on several computers if wanted
    #[command(after_help = SWEEP_EXAMPLES, allow_negative_numbers = true)]
    Sweep(Sweep),
    /// Print one number for a kernel: how it does a suite of machines and workloads, for searches
    #[command(after_help = SCORE_EXAMPLES, allow_negative_numbers = true)]
    Score(Score),
    /// Serve agents: tools of the Model Context Protocol over stdin and stdout
    #[cfg(feature = "mcp")]
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(Mcp),
    /// Merge the shards of a sweep into one file
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(Merge),
    /// Run the work of a recorded trace on other kernels, and say how far to trust the result
    #[command(after_help = REPLAY_EXAMPLES, allow_negative_numbers = true)]
    Replay(Replay),
    /// Convert a run's record or trace, or a device's recording, into another format
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Compare a kernel with itself and count the differences that are called significant
    #[command(after_help = AA_EXAMPLES, allow_negative_numbers = true)]
    Aa(Aa),
    /// Print completions of commands and options for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(
        after_help = "Examples:\n  schedtwin man ~/.local/share/man/man1\n  man schedtwin-compare"
    )]
    Man {
        /// The directory; it is created if it does not exist
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  schedtwin run -m pixel6 -w ui-phone
  schedtwin run -m uniform8 -w w1 -k linux-7.3 --duration 10s --format json
  schedtwin run -m pixel6 -w ui-phone --duration 1s --metric power,energy,idle_residency
  schedtwin run -m pixel6 -w app.json --trace out.pftrace        open it in ui.perfetto.dev
  schedtwin run -m pixel6 -w app.json --trace out.pftrace --decisions   with each decision's reason
  schedtwin run -m pixel6 -w app.json --record out.rec           for schedtwin explain
  schedtwin run -m pixel6 -w app.json --html page.html           figures: clocks, idle states, power
  schedtwin run -m pixel6 -w ui-phone --value power.mean -n 5    one number and its error, for optimisers
The same machine, kernel, workload and seed give the same bytes on every computer.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  schedtwin compare -m pixel6 -w ui-phone -k linux-7.3-gki -k linux-7.3-gki:hz=1000
  schedtwin compare -m pixel6 -w ui-phone -k linux-7.3-gki -k linux-7.3-gki:hz=100 --precision 1%
  schedtwin compare -m pixel6 -w ui-phone -k 'linux-7.3-gki:hz={250,100}' --precision power:1%
  schedtwin compare -m pixel6 -w ui-phone -k 'linux-7.3-gki:hz={100,250,1000}'
  schedtwin compare -m pixel6 -w ui-phone -k 'linux-7.3-gki:tree=~/linux@{HEAD~1,HEAD},cpuidle=tree'   a commit's C
  schedtwin compare ... --more                      with parts of the machine and explaining metrics
  schedtwin compare ... --metric 'power,domain=*' --metric wakeup_latency.p99,task=ui    only these
  schedtwin compare ... --format markdown           for a web page; json and csv have everything
  schedtwin compare ... --metric throughput --metric wakeup_latency.p99 --width 72 -o table.txt   for a commit message
  schedtwin compare ... --mmtests --stddev          as mmtests prints it
  schedtwin compare ... --html report.html          figures too: one file for a browser
  schedtwin compare ... --first-difference          the first decision that differs, and its reason
  schedtwin compare ... --value power.mean          one number and its error, for optimisers
  schedtwin compare ... --fail-if 'power>+5%' --fail-if 'wakeup_latency.p99{task=ui}>+10%'

Metrics: NAME[.STAT][,LABEL=VALUE...], * for any letters; schedtwin list metrics lists them.
Conditions of --fail-if: NAME[.STAT][{LABEL=VALUE,...}] then one of > >= < <= and a limit.
  power>+5%        the power of another kernel is more than 5% above the first's
  power>+10mW      ... more than 10 mW above it
  overutilized>4%  the value itself; overutilized is measured in %
A condition holds if the whole 95% interval is beyond the limit. mean:power>+5% looks at the mean
alone; possible:power>+5% holds if any part of the interval is beyond it.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  schedtwin replay trace.txt -m pixel6 -k linux-7.3-gki
  schedtwin replay trace.dat -m pixel6 -k linux-7.3-gki -k linux-7.3-gki:hz=1000 --duration 1s
  schedtwin replay trace.txt -m pixel6 --recorded-on uniform8 -k linux-7.3-gki
  zcat trace.txt.gz | schedtwin replay - -m pixel6 -k linux-7.3-gki
  schedtwin replay ... --html report.html --fail-if 'power>+5%'      as for compare
  schedtwin replay trace.dat -m pixel6 -k linux-7.3-gki --first-difference   where it parts from the recording
TRACE is ftrace text, trace.dat, perf.data or a Perfetto trace. To record one: schedtwin record, or
  trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new \\
    -e sched_process_fork -e cpu_frequency -e cpu_idle COMMAND
The replay keeps how much each thread computed and which thread woke which. The replaying kernel
decides where and how fast threads run. The output says what was used, left out and assumed.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  schedtwin run -m pixel6 -w ui-phone --record out.rec      a record has everything
  schedtwin convert out.rec out.pftrace                     open it in ui.perfetto.dev
  schedtwin convert out.rec out.pftrace --decisions         with each decision's reason
  schedtwin convert out.rec out.txt                         ftrace text, for LISA, TRAPpy and grep
  schedtwin convert out.rec out.jsonl                       JSON Lines, for jq
  schedtwin convert out.pftrace out.rec                     a trace has no decisions
  schedtwin convert out.pftrace out.dat                     for trace-cmd, KernelShark and LISA
  schedtwin convert trace.pftrace tables/ --tables csv      a table for each tracepoint, LISA's columns
  schedtwin convert trace.dat app.json -m pixel6            an rt-app file to read and change
IN is also a recording of a device: ftrace text, trace.dat, perf.data, Perfetto, plain or packed. The
format is found by its content. What OUT has no place for is counted and named.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  schedtwin explain r.rec --at 1.5s                 everything around 1.5 s
  schedtwin explain r.rec --task ui --at 1.5s --window 5ms
  schedtwin explain r.rec --waits --task ui         the longest waits for a CPU: why, and what ran there instead
  schedtwin explain r.rec --event pick,sched_switch --cpu 3 --limit 100
  schedtwin explain out.rec --task ui --json > ui.jsonl   a smaller record, for jq and for explain
  schedtwin explain --legend                        the meaning of columns, and their units
  schedtwin explain r.rec --chains --cpu 3          from each need for a clock to that clock, and the waiting time by part
RECORD is what run --record wrote (facts, decisions and chains) or --trace as Perfetto (facts only).";

const CAPTURE_EXAMPLES: &str = "\
Examples:
  schedtwin capture > capture.sh                                    copy it, run it, copy the files back
  schedtwin capture | ssh HOST sudo sh -s -- /tmp/capture
  schedtwin capture | adb shell su 0 sh -s -- /data/local/tmp/capture
The script reads sysfs, debugfs and procfs and writes machine.toml and kernel.toml into the directory.
Values that the device does not report are marked `# estimated`. As root the script also reads the
energy model and the scheduler features.";

const RECORD_EXAMPLES: &str = "\
Examples:
  sudo schedtwin record --duration 10s                   record everything for 10 s
  sudo schedtwin record -o build.dat -- make -j8         record until the command ends
  sudo schedtwin record                                  record until Ctrl-C
It needs root and tracefs: mount -t tracefs nodev /sys/kernel/tracing
The file has version 6 of trace-cmd's format: trace-cmd report, KernelShark and LISA read it. Beside
the events it has the threads with policy, nice value, allowed CPUs and group, and the machine and
the kernel as `schedtwin capture` describes them. Programs are not stopped: only tracefs is used, in
an instance of its own that is removed at the end.";

const PROFILE_EXAMPLES: &str = "\
Examples:
  sudo schedtwin record --duration 30s -o idle.dat --event workqueue:workqueue_execute_start \\
      --event workqueue:workqueue_execute_end --event timer:timer_expire_entry --event timer:timer_expire_exit
  sudo schedtwin profile idle.dat -o mine.toml --kallsyms /proc/kallsyms
  schedtwin run -m laptop-8c16t -w 'idle --system ./mine.toml' --interruptions
Devices, works, timers and kernel threads become sources, each with its rate and the times of its runs;
programs are left out. Without the four events above there are no works and timers in a recording, and
kworkers and other kernel threads stand for them. Look at the file before you use it: what programs
caused while the recording was made (a disk that they read) is in it, too.";

const AA_EXAMPLES: &str = "\
Examples:
  schedtwin aa -m pixel6 -w ui-phone -k linux-7.3-gki
  schedtwin aa -m uniform8 -w w1 --duration 100ms --comparisons 100 --check
A kernel does not differ from itself, so the test should call about 5% of the rows significant.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  schedtwin completions bash > ~/.local/share/bash-completion/completions/schedtwin
  schedtwin completions zsh > ~/.zfunc/_schedtwin            a folder of $fpath
  schedtwin completions fish > ~/.config/fish/completions/schedtwin.fish";

/// The machine, the workload and the duration of a run.
#[derive(Args)]
pub struct Subject {
    /// The machine: NAME[:KEY=VALUE,...] or a path
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: String,
    /// The workload: NAME [OPTIONS] or a path; several: [setsid] [cgroup=/PATH] NAME & NAME
    #[arg(short, long, value_name = "WORKLOAD")]
    pub workload: String,
    /// Simulated time after all tasks of the workload have started: 10s, 500ms [default: the workload's own]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    pub duration: Option<Duration>,
}

/// Options for printing results.
#[derive(Args)]
pub struct Printing {
    /// The form of the result
    #[arg(long, value_enum, default_value_t = FormatArgument::Text)]
    format: FormatArgument,
    /// Show the longer table: with parts of the machine, and metrics that explain the headlines
    #[arg(long, conflicts_with = "all")]
    more: bool,
    /// Show the longer table with a row for each domain and cluster, even if there are many
    #[arg(long, conflicts_with_all = ["more", "all"])]
    per_cpu: bool,
    /// Show every metric that has a value, every task and every CPU
    #[arg(long)]
    all: bool,
    /// Show only these rows, in every format: NAME[.STAT][,LABEL=VALUE...]; may be given again. Where jobs run beside each
    /// other a task is JOB:NAME, its job counted from 1: run_delay,task=2:periodic
    #[arg(long = "metric", value_name = "NAME,...", conflicts_with_all = ["more", "per_cpu", "all"])]
    metrics: Vec<String>,
    /// Width of the text in columns, e.g. 72 for a commit message [default: the terminal's, else 100]
    #[arg(long, value_parser = clap::value_parser!(u16).range(40..=1000), value_name = "COLUMNS")]
    width: Option<u16>,
    /// No progress bar and no notes on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

impl Printing {
    /// The columns that text may take.
    pub fn width(&self) -> usize {
        terminal::report_width(self.width)
    }

    /// The columns that were asked for, or those of the terminal; `None`: lines are as long as they are.
    pub fn columns(&self) -> Option<usize> {
        self.width.map(usize::from).or_else(terminal::width)
    }

    /// The layout of a table of text.
    pub fn layout(&self) -> Layout {
        Layout { width: self.width(), ..Layout::default() }
    }

    /// Refuses a width of what is no text.
    pub fn check_width(&self) -> Result<(), Failure> {
        match self.width.is_some() && self.format() != Format::Text {
            true => Err(Failure::bad("--width is for tables of text, not for this --format")),
            false => Ok(()),
        }
    }

    pub fn format(&self) -> Format {
        self.format.into()
    }

    pub fn extent(&self) -> Extent {
        match self {
            Printing { all: true, .. } => Extent::All,
            Printing { per_cpu: true, .. } => Extent::PerCpu,
            Printing { more: true, .. } => Extent::More,
            Printing { metrics, .. } if !metrics.is_empty() => Extent::Chosen,
            _ => Extent::Headlines,
        }
    }

    /// The rows that `--metric` names; none: everything. All faults come at once, before anything runs.
    pub fn selectors(&self) -> Result<Vec<Selector>, Diagnostics> {
        let mut faults = Diagnostics::new();
        let mut selectors = Vec::new();
        for list in &self.metrics {
            selectors.extend(faults.absorb(Selector::parse_list(list)).unwrap_or_default());
        }
        faults.into_result(selectors)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    /// A table in ASCII
    Text,
    /// A table for web pages
    Markdown,
    /// Everything, see schedtwin show schema
    Json,
    /// Everything, a line per metric and kernel
    Csv,
}

impl From<FormatArgument> for Format {
    fn from(format: FormatArgument) -> Format {
        match format {
            FormatArgument::Text => Format::Text,
            FormatArgument::Markdown => Format::Markdown,
            FormatArgument::Json => Format::Json,
            FormatArgument::Csv => Format::Csv,
        }
    }
}

#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    pub subject: Subject,
    /// The kernel: NAME[+PATCH...][:KEY=VALUE,...] or a path
    #[arg(short, long, value_name = "KERNEL", default_value = DEFAULT_KERNEL)]
    pub kernel: String,
    /// The seed of all random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one number instead of a table, for optimisers: the metric, and half the width of its 95% interval
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["trace", "decisions", "record", "html", "format", "more", "per_cpu", "all", "metrics"])]
    pub value: Option<String>,
    /// Of --value: the mean of so many runs, with seeds SEED, SEED+1, ...
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          default_value_t = 1, requires = "value", value_name = "RUNS")]
    pub iterations: u64,
    /// Write a trace for other tools; the ending of the name selects the format: .pftrace, .txt
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// In a Perfetto trace, also show the kernel's decisions with their rules and inputs, on a track for each CPU
    #[arg(long, requires = "trace")]
    pub decisions: bool,
    /// Write a record for `schedtwin explain`: packed, or JSON Lines if its name ends in .jsonl
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub size: FileSize,
    /// Also write an HTML report with figures: one file, which loads nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print what interrupts idle CPUs, and how long they stay idle, instead of the metrics
    #[arg(long, conflicts_with_all = ["value", "trace", "decisions", "record", "html", "format", "more", "per_cpu", "all", "metrics"])]
    pub interruptions: bool,
    /// Recompute every cached sum at every event; slow, finds bugs
    #[arg(long, hide_short_help = true)]
    pub verify: bool,
    #[command(flatten)]
    pub bounds: BoundArguments,
    #[command(flatten)]
    pub printing: Printing,
}

#[derive(Args)]
pub struct Record {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "schedtwin.dat")]
    pub output: PathBuf,
    /// Length of the recording: 10s, 500ms; else until the command ends, or Ctrl-C
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Size of each CPU's buffer in the kernel, in KiB; give more if events are lost
    #[arg(long = "buffer", value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub buffer_kib: u32,
    /// Also record this event: SYSTEM:NAME, as timer:hrtimer_start; may be given again
    #[arg(long = "event", value_name = "EVENT")]
    pub events: Vec<String>,
    /// Leave out the machine, the kernel and the measurement of an event's cost
    #[arg(long)]
    pub bare: bool,
    /// A command to run, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Args)]
pub struct Profile {
    /// A recording in any format that `schedtwin replay` reads
    #[arg(value_name = "FROM-TRACE")]
    pub trace: PathBuf,
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// The machine that was recorded, NAME or a path: times of runs are scaled by its capacities and frequencies
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// CONFIG_HZ of the recorded kernel, where the recording does not tell it [default: 250]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(24..=1000))]
    pub hz: Option<u32>,
    /// /proc/kallsyms of the recorded boot, or a copy: names for functions that the recording has as addresses
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// The profile's name [default: the recording's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Args)]
pub struct Compare {
    /// A machine: NAME[:KEY=VALUE,...] or a path; may be given again, for one table with all
    #[arg(short, long = "machine", value_name = "MACHINE", required = true)]
    pub machines: Vec<String>,
    /// A workload: NAME [OPTIONS] or a path; several at the same time: [setsid] [cgroup=/PATH] NAME & NAME; may be
    /// given again, for one table with all
    #[arg(short, long = "workload", value_name = "WORKLOAD", required = true)]
    pub workloads: Vec<String>,
    /// Simulated time after all tasks of the workload have started: 10s, 500ms [default: the workload's own]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// A kernel; give -k again for each further kernel, or name several at once: 'linux-7.3:hz={250,1000}'. The
    /// first is the baseline
    #[arg(short, long = "kernel", value_name = "KERNEL", required = true)]
    pub kernels: Vec<String>,
    /// Runs of each kernel, with seeds SEED, SEED+1, ...
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          conflicts_with_all = ["precision", "max_iterations"], value_name = "RUNS")]
    pub iterations: Option<u64>,
    /// Add seeds until the differences have intervals this narrow (95% half-width): 1% of the main metrics, or power:1%
    /// of those that are named; may be given again
    #[arg(long, value_parser = percent::Precision::parse, value_name = "[METRIC:]PERCENT")]
    pub precision: Vec<percent::Precision>,
    /// The most runs of each kernel that --precision [default: 320] or --fail-if [default: 10] may take; --fail-if
    /// without -n stops as soon as its answer is certain
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64), value_name = "RUNS")]
    pub max_iterations: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Exit with 1 if this holds, e.g. 'power>+5%', or if the kernel breaks a property that the first one keeps; may be given again
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Print the first decision where the executions of the first seed diverge, and the first of each kind (placement, pick,
    /// frequency, idle state, balancing), with the reasons, instead of a table
    #[arg(long, conflicts_with_all = ["fail_if", "format", "html", "more", "per_cpu", "all", "metrics"])]
    pub first_difference: bool,
    /// Print one number instead of a table, for optimisers: the difference of the second kernel to the first, and half the width
    /// of its 95% interval; a line for each other kernel
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["first_difference", "html", "format", "more", "per_cpu", "all", "metrics"])]
    pub value: Option<String>,
    /// Also write an HTML report with figures: one file, which loads nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the result to this file instead of stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "first_difference")]
    pub output: Option<PathBuf>,
    /// In the text: means with their standard deviation over the seeds, without the interval of the difference
    #[arg(long, conflicts_with = "first_difference")]
    pub stddev: bool,
    /// In the text: as mmtests prints it, with a column for each kernel and changes in brackets, positive if better
    #[arg(long, conflicts_with = "first_difference")]
    pub mmtests: bool,
    /// With several machines or workloads: print a table for each, not one for all
    #[arg(long, conflicts_with = "first_difference")]
    pub each: bool,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    #[command(flatten)]
    pub bounds: BoundArguments,
    #[command(flatten)]
    pub printing: Printing,
}

/// Runs of each kernel that --precision may take where nothing is said.
const MOST_OF_A_SEARCH: u64 = 320;

impl Compare {
    /// Runs of each kernel at most.
    pub fn most_runs(&self) -> u64 {
        let unsaid =
            if self.precision.is_empty() { DEFAULT_ITERATIONS as u64 } else { MOST_OF_A_SEARCH };
        self.iterations.or(self.max_iterations).unwrap_or(unsaid)
    }

    /// The layout of the text.
    pub fn layout(&self) -> Layout {
        // A file is as wide as a mail.
        let width = match &self.output {
            Some(_) => self.printing.width.map_or(report::WIDTH, usize::from),
            None => self.printing.width(),
        };
        Layout { width, stddev: self.stddev, mmtests: self.mmtests }
    }

    /// An option for the text format that is given with another format; `None`: there is none.
    pub fn misplaced(&self) -> Option<&'static str> {
        let text = self.printing.format() == Format::Text;
        let width = self.printing.width.is_some();
        let given = [(width, "--width"), (self.stddev, "--stddev")];
        let mut given = given.into_iter().chain([(self.mmtests, "--mmtests")]);
        given.find(|(given, _)| *given && !text).map(|(_, option)| option)
    }
}

#[derive(Args)]
pub struct Replay {
    /// The trace: text of ftrace, trace-cmd report, atrace or perf script, a page of systrace, trace.dat, perf.data
    /// or a Perfetto trace; plain or packed with gzip, zstd, xz or zip; - is standard input. The format is found by
    /// the content, not by the name
    #[arg(value_name = "TRACE")]
    pub recording: PathBuf,
    /// The machine that replays it: NAME[:KEY=VALUE,...] or a path
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: String,
    /// The machine of the recording; its capacities convert recorded time into work [default: MACHINE]
    #[arg(long, value_name = "MACHINE")]
    pub recorded_on: Option<String>,
    /// Capacities of recorded CPUs, instead of those of a machine: 0-3=383,4-5=1024
    #[arg(long, value_name = "CPUS=CAPACITY,...")]
    pub capacities: Option<schedtwin_engine::recording::Capacities>,
    /// A kernel; give -k again for each further kernel. Name the kernel of the recording first: it is the baseline,
    /// and its replay is compared with the recording
    #[arg(short, long = "kernel", value_name = "KERNEL", required = true)]
    pub kernels: Vec<String>,
    /// The part of the trace to replay, from its beginning: 2s, 500ms; else all of it
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Runs of each kernel, with seeds SEED, SEED+1, ...
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=MOST_ITERATIONS as u64),
          default_value_t = DEFAULT_ITERATIONS as u64, value_name = "RUNS")]
    pub iterations: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a trace of the first kernel's first run; the ending of the name selects the format: .pftrace, .txt
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// In a Perfetto trace, also show the kernel's decisions with their rules and inputs, on a track for each CPU
    #[arg(long, requires = "trace")]
    pub decisions: bool,
    /// Write a record of the first kernel's first run for `schedtwin explain`: packed, or JSON Lines (.jsonl)
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub size: FileSize,
    /// Exit with 1 if this holds, e.g. 'power>+5%'; may be given again. Doubtful rows do not count unless
    /// --fail-on-doubtful is given
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Let --fail-if also judge doubtful rows, for which the replay on the first kernel differs too much from the
    /// recording
    #[arg(long, requires = "fail_if")]
    pub fail_on_doubtful: bool,
    /// Instead of a table, print where the replay first differs from the recording, and the twin's reason; with several
    /// kernels, the first decision where their replays diverge. Of the first seed
    #[arg(long, conflicts_with_all = ["fail_if", "format", "html", "trace", "record", "more", "per_cpu", "all", "metrics"])]
    pub first_difference: bool,
    /// Print whether the verdict on the first half of the recording holds for its second half, instead of a table: both are
    /// replayed on the first kernel
    #[arg(long, conflicts_with_all = ["fail_if", "format", "html", "trace", "record", "more", "per_cpu", "all", "metrics", "first_difference", "duration"])]
    pub halves: bool,
    /// Also write an HTML report with figures: one file, which loads nothing from elsewhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Threads; no result depends on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    #[command(flatten)]
    pub printing: Printing,
}

/// How large trace and record may get.
#[derive(Args)]
pub struct FileSize {
    /// Let the trace and the record, each, grow to about this size, e.g. 500MB: then the file ends, and the run
    /// goes on
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    /// With --max-size: the run ends with the file
    #[arg(long, requires = "max_size")]
    stop_when_full: bool,
}

impl FileSize {
    pub fn max(&self) -> Option<MaxSize> {
        self.max_size.map(|bytes| MaxSize { bytes, ends_run: self.stop_when_full })
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    match text.parse::<ByteSize>() {
        Ok(size) if size.as_u64() > 0 => Ok(size.as_u64()),
        _ => Err("a size is written 500MB or 2GB".to_string()),
    }
}

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["at", "task", "cpu", "event", "chains", "waits", "legend"]))]
pub struct Explain {
    /// The file that --record or --trace wrote
    #[arg(value_name = "RECORD", required_unless_present = "legend")]
    pub record: Option<PathBuf>,
    /// Entries around this time: 1.5s, 20ms
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Entries about these tasks: a name (ui-3), the name of all its threads (ui), a pattern with * and ?, a
    /// number, or the path of a cgroup (/web) for its tasks and those of the cgroups within
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
    /// Entries on or about this CPU
    #[arg(long, value_name = "N")]
    pub cpu: Option<u16>,
    /// Time before and after --at
    #[arg(long, value_name = "TIME", value_parser = schedtwin_trace::explain::parse_time, default_value = "500us", requires = "at")]
    pub window: Ns,
    /// Entries of these names alone, separated by commas: sched_switch, pick, placement, frequency
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["chains", "waits"])]
    pub event: Vec<String>,
    /// The largest number of entries [default: 100000; of --waits 20]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Only the longest waits for a CPU: why each began, and what ran there meanwhile
    #[arg(long, conflicts_with = "chains")]
    pub waits: bool,
    /// Only chains: each need for another clock, the requests that followed, and the parts of the waiting time
    #[arg(long)]
    pub chains: bool,
    /// Print JSON Lines (schedtwin show schema record): the record's header and tasks, then the matching entries
    #[arg(long)]
    pub json: bool,
    /// Explain the words, columns and units; without RECORD print nothing else
    #[arg(long, conflicts_with = "json")]
    pub legend: bool,
}

#[derive(Args)]
pub struct List {
    /// The kind to list [default: all]
    pub what: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Modelled machines
    Machines,
    /// Kernel releases and their settings
    Kernels,
    /// Named changes to kernels
    Patches,
    /// Built-in benchmarks
    Workloads,
    /// What systems do beside their workload
    Systems,
    /// Properties: name, bound, the metric that counts breaches, meaning
    Properties,
    /// Metrics: name, unit, meaning
    Metrics,
    /// Published experiments
    Studies,
    /// Suites of schedtwin score
    Suites,
    /// Settings of kernels: variation points with their arms and releases, and tunables
    #[value(alias = "settings")]
    Points,
    /// JSON schemas of outputs, and of machine and kernel files
    Schemas,
}

#[derive(Args)]
pub struct Show {
    #[command(subcommand)]
    pub what: Shown,
}

#[derive(Subcommand)]
pub enum Shown {
    /// Topology, operating points, idle states and all other values of a machine
    Machine {
        /// NAME[:KEY=VALUE,...] or a path
        name: String,
        /// Print the scheduling domains that this kernel builds instead: NAME[+PATCH...][:KEY=VALUE,...] or a path
        #[arg(short, long, conflicts_with = "file")]
        kernel: Option<String>,
        /// Print the file of a built-in machine, to start your own from
        #[arg(long)]
        file: bool,
    },
    /// Every setting of a kernel, with its sysctl or config option; of several kernels, the settings that differ
    Kernel {
        /// NAME[+PATCH...][:KEY=VALUE,...] or a path
        #[arg(required = true, value_name = "KERNEL")]
        names: Vec<String>,
        /// Print a kernel file with all settings, patches included
        #[arg(long)]
        file: bool,
    },
    /// The parts and options of a workload
    Workload {
        /// NAME or a path
        name: String,
    },
    /// The settings that a patch changes
    Patch {
        /// NAME or a path
        name: String,
    },
    /// What a system does beside its workload, with the origin of each value
    System {
        /// NAME or a path
        name: String,
    },
    /// The file of a built-in suite, to start your own from
    Suite {
        /// NAME or a path
        name: String,
    },
    /// The JSON schema of run, compare, study or record, or of machine or kernel files
    Schema {
        /// run, compare, study, record, machine, kernel: `schedtwin list schemas` lists all
        name: String,
    },
}

#[derive(Args)]
pub struct Check {
    /// Machine, kernel and patch files (.toml), rt-app workloads (.json)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Which property a search is about, its bound, and whether progress is told.
#[derive(Args)]
pub struct Searched {
    /// The property (`schedtwin list properties`) [default: the gravest that is broken]
    #[arg(long, value_name = "PROPERTY")]
    pub property: Option<String>,
    #[command(flatten)]
    pub bounds: BoundArguments,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// Bounds of properties.
#[derive(Args)]
pub struct BoundArguments {
    /// From which length an interval breaks a property, e.g. starvation=500ms; may be given again (`schedtwin list properties`)
    #[arg(long = "bound", value_name = "PROPERTY=TIME")]
    pub bounds: Vec<String>,
}

#[derive(Args)]
pub struct Bisect {
    #[command(flatten)]
    pub subject: Subject,
    /// The kernel that is good, then the one that is bad
    #[arg(short, long = "kernel", value_name = "KERNEL", required = true)]
    pub kernels: Vec<String>,
    /// Instead of a property: the metric that differs, e.g. wakeup_latency.p99; a kernel is bad if its mean is nearer to the
    /// bad kernel's than to the good one's
    #[arg(long, value_name = "METRIC", conflicts_with = "property")]
    pub metric: Option<String>,
    /// Runs of each kernel, for --metric
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..=1_000), default_value_t = 6, requires = "metric")]
    pub iterations: u64,
    #[command(flatten)]
    pub searched: Searched,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args)]
pub struct Shrink {
    #[command(flatten)]
    pub subject: Subject,
    /// The kernel that keeps the property, then the one that breaks it
    #[arg(short, long = "kernel", value_name = "KERNEL", required = true)]
    pub kernels: Vec<String>,
    #[command(flatten)]
    pub searched: Searched,
    /// How long to shrink: 1m; what is smallest by then is written [default: until nothing more goes]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Duration>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write machine.toml and workload.json into this folder
    #[arg(short, long, value_name = "FOLDER", default_value = "shrunk")]
    pub output: PathBuf,
}

#[derive(Args)]
pub struct Hunt {
    /// The kernel that may break something
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
    /// The kernel that has to keep it
    #[arg(long, value_name = "KERNEL")]
    pub against: String,
    #[command(flatten)]
    pub searched: Searched,
    /// Time to hunt, and then at most as much to make the case small: 10m, 8h
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    pub time: Duration,
    /// The first seed; each case is a function of its seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seeds to try at most [default: as many as the time has]
    #[arg(long)]
    pub count: Option<u64>,
    /// Threads; the finding does not depend on the number [default: one per CPU]
    #[arg(long, alias = "jobs", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    pub threads: Option<u64>,
    /// Write machine.toml and workload.json of what is found into this folder
    #[arg(short, long, value_name = "FOLDER", default_value = "found")]
    pub output: PathBuf,
}

const BISECT_EXAMPLES: &str = "Examples:
  schedtwin bisect -m pixel6 -w app.json -k linux-6.12-gki -k linux-6.18-gki
  schedtwin bisect -m uniform8 -w 'schbench -m 2 -t 4' -k linux-6.12 -k linux-7.3 --metric wakeup_latency.p99
  schedtwin bisect -m pixel6 -w ui-phone -k 'linux-7.3-gki:tree=~/linux@v7.2,cpuidle=tree/teo.c' \\
      -k 'linux-7.3-gki:tree=~/linux@master,cpuidle=tree/teo.c' --metric power.mean

Settings are put from the bad kernel into the good one: each alone, then, if none suffices, by delta debugging. Printed are the
smallest set, whether setting it back heals the bad kernel, and the first decision that differs with it. Kernels that differ in
the commit of a tree alone (tree=PATH@GOOD, tree=PATH@BAD) are bisected by commits: printed is the first bad one. Of kernels
whose C differs otherwise (tree=, scx=) only the settings are bisected.

Exit codes: 0 a cause was found; 1 the kernels do not differ in what was asked; 2 bad input.";

const SHRINK_EXAMPLES: &str = "Examples:
  schedtwin shrink -m pixel6 -w app.json -k linux-6.12-gki -k linux-6.18-gki -o small

The workload is an rt-app file without comments and with each name once. Tried are fewer CPUs, tasks, phases, events, cgroups and
instances, shorter times and rounder numbers. The files of the smallest case that still shows it are written, and the command
that runs it is printed.

Exit codes: 0 it was shrunk; 1 the kernels do not differ in a property; 2 bad input.";

const HUNT_EXAMPLES: &str = "Examples:
  schedtwin hunt --against linux-6.12 linux-6.18:reweight_entity=placed
  schedtwin hunt --against linux-7.3 'linux-7.3:sched_ext=7.3,scx=mine.bpf.c' --property starvation --bound starvation=300ms

Random machines of 1 to 4 CPUs with random tasks (cgroups, chains of wakeups, policies, limits, affinity, clamps) run under both
kernels until one shows a property broken by the kernel and kept by the other. It is shrunk, bisected and written.

Exit codes: 0 nothing was found; 1 something was found; 2 bad input.";

#[derive(Args)]
pub struct Aa {
    #[command(flatten)]
    pub subject: Subject,
    /// The kernel that is compared with itself
    #[arg(short, long, value_name = "KERNEL", default_value = DEFAULT_KERNEL)]
    pub kernel: String,
    /// Number of comparisons
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000), default_value_t = 400)]
    pub comparisons: u64,
    /// Exit with 1 if less than 2% or more than 8% of all are called significant
    #[arg(long)]
    pub check: bool,
    /// Seeds of each side of a comparison
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(2..=10_000), default_value_t = 10)]
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

#[derive(Args)]
pub struct Convert {
    /// A record or trace of a run, or a recording of a device in any format that replay reads
    #[arg(value_name = "IN")]
    pub from: PathBuf,
    /// The file to write; the ending of its name selects the format: .pftrace (Perfetto), .txt (ftrace text), .dat
    /// (trace.dat), .json (an rt-app file), .rec and .jsonl (records: of runs only); a folder, written with a / at its
    /// end, gets a table for each tracepoint
    #[arg(value_name = "OUT")]
    pub to: PathBuf,
    /// The machine that the recording was made on: makes work of time in an rt-app file
    #[arg(short, long, value_name = "MACHINE")]
    pub machine: Option<String>,
    /// From a record to a Perfetto trace: also show the kernel's decisions with their rules and inputs
    #[arg(long)]
    pub decisions: bool,
    /// The format of the tables in a folder [default: csv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub tables: Option<Tables>,
}

/// The format of a folder of tables.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Tables {
    /// Text, for everything
    #[default]
    Csv,
    /// Apache Parquet (builds with the feature `parquet`)
    Parquet,
    /// Arrow's IPC files (builds with the feature `arrow`)
    Arrow,
}

impl From<Tables> for TableFormat {
    fn from(tables: Tables) -> TableFormat {
        match tables {
            Tables::Csv => TableFormat::Csv,
            Tables::Parquet => TableFormat::Parquet,
            Tables::Arrow => TableFormat::Arrow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    /// Every line of every help fits, but for words that are longer than a line.
    #[test]
    fn help_is_as_wide_as_asked() {
        fn check(mut command: clap::Command, width: usize, path: &str) {
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    // Clap breaks every line but this one.
                    let breaks = line.trim_start().contains(' ') && !line.starts_with("Usage:");
                    let fits = line.chars().count() <= width || !breaks;
                    assert!(fits, "{path}: {} columns: {line}", line.chars().count());
                }
            }
            for below in command.get_subcommands() {
                check(
                    below.clone().term_width(width),
                    width,
                    &format!("{path} {}", below.get_name()),
                );
            }
        }
        for width in [72, 100] {
            check(command(width).term_width(width), width, "schedtwin");
        }
    }
}
