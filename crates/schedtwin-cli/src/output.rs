//! Writing results to stdout.
//!
//! `schedtwin ... | head` closes the pipe early. That is no fault of anyone, so it ends the printing and
//! nothing else; a full disk is a fault.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes a whole result.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(failure)
}

/// What a failed write to stdout means.
pub fn failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::NobodyReads,
        _ => Failure::bad(format!("failed to write to stdout: {error}")),
    }
}
