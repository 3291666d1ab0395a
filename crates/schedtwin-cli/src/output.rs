// SPDX-License-Identifier: GPL-2.0-or-later
//! Writing results to stdout.
//!
//! `schedtwin ... | head` closes the pipe early. That is no fault of anyone, so it ends the printing and
//! nothing else; a full disk is a fault.

use std::io::{self, Write};
use std::path::Path;

use schedtwin_types::printable;

use crate::failure::Failure;
use crate::terminal;

/// Writes a whole result. What would act on a terminal is shown as `?`: names in it come from anywhere.
pub fn print(text: &str) -> Result<(), Failure> {
    let text = printable::lines(text);
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(failure)
}

/// As [`print`], its long lines broken where they go to a terminal.
pub fn print_fit(text: &str) -> Result<(), Failure> {
    print(&terminal::fit(text))
}

/// As [`print`], its lines broken to fit so many columns; `None`: they are as long as they are.
pub fn print_within(text: &str, columns: Option<usize>) -> Result<(), Failure> {
    match columns {
        Some(columns) => print(&terminal::fit_to(text, columns)),
        None => print(text),
    }
}

/// A path as part of a line.
pub fn shown(path: &Path) -> String {
    printable::line(&path.display().to_string()).into_owned()
}

/// Writes a line to stderr, as safe as [`print`].
pub fn tell(text: &str) {
    // Nobody may be reading: that is no reason to end in another way than without a message.
    let text = match terminal::stderr_width() {
        Some(width) => terminal::fit_to(text, width),
        None => text.to_owned(),
    };
    let _ = writeln!(io::stderr(), "{}", printable::lines(&text));
}

/// Returns the failure that a failed write to stdout means.
pub fn failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::NobodyReads,
        _ => Failure::bad(format!("failed to write to stdout: {error}")),
    }
}
