// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `schedtwin` as a function, for its binary and for the Python package: reads arguments, calls the library and the laboratory, prints.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 it ran, whatever the verdicts; 1 a
//! `--fail-if` or a validation that was asked for failed, or one run of many panicked; 2 bad input; 101 a bug; 130 and 143 ended
//! by Ctrl-C and by TERM.

mod arguments;
mod bar;
mod bounded;
mod calibrate_machine;
mod capture;
mod commits;
mod compare;
mod confine;
mod convert;
mod explain;
mod failure;
mod import;
mod interrupt;
mod list;
mod live;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod parting;
mod percent;
mod probe;
mod profile;
mod record;
mod replay;
mod reports;
mod run;
mod score;
mod search;
mod settings;
mod shell;
mod show;
mod study;
mod sweep;
mod terminal;
mod tune;

use std::ffi::OsString;

use clap::FromArgMatches;

use crate::arguments::{Arguments, Calibrate, CalibrateWhat, Command};
use crate::failure::Failure;

/// Runs the command with these arguments, the first of which is its name; returns the exit code.
///
/// It takes over the signals and the panic hook of the process: a process runs one command and ends.
pub fn run_command(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    report_panics();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if asks_for_licences(&arguments) {
        let text = format!("schedtwin {}\n\n{LICENCES}", env!("CARGO_PKG_VERSION"));
        return output::print(&text).err().map_or(0, |failure| failure.report());
    }
    let command = arguments::command(terminal::width().unwrap_or(terminal::HELP_WIDEST));
    let parsed = command.try_get_matches_from(&arguments);
    let arguments = match parsed.and_then(|parsed| Arguments::from_arg_matches(&parsed)) {
        Ok(parsed) => parsed,
        Err(said) => {
            // Help and versions come this way, too. Nobody may be reading them.
            let said = arguments::tip::with_tip(said, &arguments);
            let _ = said.print();
            return u8::try_from(said.exit_code()).unwrap_or(2);
        }
    };
    // A recording ends by a signal, and then writes what it has.
    if !matches!(arguments.command, Command::Record(_)) {
        interrupt::install();
    }
    schedtwin_engine::confine::defer();
    // A worker's panic is told as its exit code: without that, its supervisor would take it for the doing of the C.
    let code = std::panic::catch_unwind(|| match perform(arguments.command) {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    });
    if schedtwin_engine::worker::is_worker() {
        schedtwin_engine::worker::finish(code.unwrap_or(PANICKED));
    }
    code.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The exit code of a panic, which is Rust's.
const PANICKED: u8 = 101;

fn perform(command: Command) -> Result<(), Failure> {
    let outcome = match command {
        Command::Run(run) => run::run(run),
        Command::Compare(compare) => compare::compare(compare),
        Command::Aa(aa) => compare::aa(aa),
        Command::Bisect(arguments) => search::bisect(&arguments),
        Command::Shrink(arguments) => search::shrink(&arguments),
        Command::Hunt(arguments) => search::hunt(&arguments),
        Command::List(list) => list::list(list.what),
        Command::Show(show) => show::show(show.what),
        Command::Check(check) => show::check(&check.files),
        Command::Explain(explain) => explain::explain(explain),
        Command::Capture { print } => capture::capture(print),
        Command::Record(arguments) => record::record(arguments),
        Command::Profile(arguments) => profile::profile(&arguments),
        Command::Import(import) => import::import(&import.what),
        Command::Live(live) => live::live(live.action),
        Command::Settings(arguments) => settings::settings(arguments.action),
        Command::Study(study) => study::study(study),
        Command::Calibrate(Calibrate { what: Some(CalibrateWhat::Machine(machine)), .. }) => {
            calibrate_machine::calibrate(&machine)
        }
        Command::Calibrate(calibrate) => study::calibrate(calibrate),
        Command::Tune(tune) => tune::tune(tune),
        Command::Sweep(arguments) => sweep::sweep(arguments),
        // These divide for each piece of work, and go on.
        Command::Score(arguments) => return score::score(&arguments),
        #[cfg(feature = "mcp")]
        Command::Mcp(arguments) => return mcp::mcp(&arguments),
        Command::Merge(arguments) => sweep::merge(&arguments),
        Command::Replay(replay) => replay::replay(replay),
        Command::Convert(convert) => convert::convert(&convert),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { directory } => shell::man(&directory),
    };
    // A command that only looks at a kernel has asked its C nothing yet.
    outcome.and_then(|()| confine::confined())
}

/// What the binary links, with licences and their texts: written by `release/licences.py`.
const LICENCES: &str = include_str!("licences.txt");

/// Whether the command line is `--licences`, `--version` beside it or not.
fn asks_for_licences(arguments: &[OsString]) -> bool {
    let words = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    let is_licences = |word: &str| matches!(word, "--licences" | "--licenses");
    words.clone().any(is_licences)
        && words.clone().all(|word| is_licences(word) || matches!(word, "--version" | "-V"))
}

/// A panic is a bug, never the user's fault: says so after Rust's own message. The exit code is Rust's 101.
fn report_panics() {
    let rusts_own = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // A run among many that panics is told with the others' results.
        if schedtwin_lab::crash::heard(panic) {
            return;
        }
        rusts_own(panic);
        let version = env!("CARGO_PKG_VERSION");
        output::tell(&format!(
            "schedtwin {version}: this is a bug; please report it with the command line that led to it"
        ));
    }));
}
