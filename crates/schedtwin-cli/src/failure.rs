// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a command did not succeed, and what that makes of the exit code.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use schedtwin_engine::Scenario;
use schedtwin_input::{Diagnostic, Diagnostics, Severity};

use crate::output::{shown, tell};
use crate::terminal;

/// The cause of a failure.
#[derive(Debug)]
pub enum Failure {
    /// The input is refused; every fault has its place.
    Refused(Diagnostics),
    /// The input is bad in a way that has no place in a text.
    Bad(String),
    /// A condition or a validation that was asked for failed; what failed, a line each.
    Failed(Vec<String>),
    /// The reader of stdout has gone: there is nobody to tell.
    NobodyReads,
    /// The worker has done and told everything; its exit code.
    Ended(u8),
}

impl Failure {
    /// A fault without a place.
    pub fn bad(message: impl Into<String>) -> Failure {
        Failure::Bad(message.into())
    }

    /// A fault of a file.
    pub fn of_file(what: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        Failure::Bad(format!("failed to {what} {}: {error}", shown(path)))
    }

    /// Prints the failure to stderr and gives the exit code.
    pub fn report(&self) -> u8 {
        match self {
            Failure::Refused(faults) => {
                tell_faults(faults);
                2
            }
            Failure::Bad(message) => {
                tell(&format!("error: {message}"));
                2
            }
            Failure::Failed(lines) => {
                for line in lines {
                    tell(&format!("failed: {line}"));
                }
                1
            }
            Failure::NobodyReads => 0,
            Failure::Ended(code) => *code,
        }
    }
}

impl From<Diagnostics> for Failure {
    fn from(faults: Diagnostics) -> Failure {
        Failure::Refused(faults)
    }
}

/// Writes faults to stderr, in colour where it takes colour.
pub fn tell_faults(faults: &Diagnostics) {
    tell_as(faults, Severity::Error);
}

/// Writes warnings to stderr, each with its place.
pub fn tell_warnings(warnings: &Diagnostics) {
    tell_as(warnings, Severity::Warning);
}

fn tell_as(faults: &Diagnostics, severity: Severity) {
    let text = faults.render_as(severity, stderr_takes_colour(), terminal::stderr_width());
    let _ = write!(io::stderr(), "{text}");
}

/// Writes what looks wrong in the machines and kernels of these scenarios, each place once.
pub fn warn_of<'a>(scenarios: impl Iterator<Item = &'a Scenario>) {
    let mut all = Diagnostics::new();
    let of = |scenario: &'a Scenario| {
        scenario.machine().warnings.0.iter().chain(&scenario.kernel().warnings.0)
    };
    for warning in scenarios.flat_map(of) {
        let known = |w: &Diagnostic| {
            let (source, name) = (&w.source.text, &w.source.name);
            (w.span == warning.span && w.message == warning.message)
                && (*source == warning.source.text && *name == warning.source.name)
        };
        if !all.0.iter().any(known) {
            all.0.push(warning.clone());
        }
    }
    tell_warnings(&all);
}

/// Whether stderr shows terminal escapes: a terminal that can, and neither `NO_COLOR` nor `CLICOLOR=0` against it.
fn stderr_takes_colour() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}
