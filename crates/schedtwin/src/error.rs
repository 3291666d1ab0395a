// SPDX-License-Identifier: GPL-2.0-or-later
//! What can go wrong: a wrong experiment, and files.

use schedtwin_input::Diagnostics;
use std::fmt;
use std::io;

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Names, settings, files or selectors are wrong: every fault with its place.
    Input(Diagnostics),
    /// A file could not be read or written.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(faults) => faults.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Input(_) => None,
            Error::Io(error) => Some(error),
        }
    }
}

impl From<Diagnostics> for Error {
    fn from(faults: Diagnostics) -> Error {
        Error::Input(faults)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}
