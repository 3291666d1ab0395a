// SPDX-License-Identifier: GPL-2.0-or-later
//! The faults of a tree or its code, before it is known where the user named it.

use schedtwin_input::{Diagnostics, Location};

/// A fault and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The fault.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: Some(help.into()) }
    }

    /// As a fault at the place where the user asked for it.
    pub fn at(self, at: &Location) -> Diagnostics {
        let mut faults = Diagnostics::new();
        faults.push_at(at, self.message, self.help);
        faults
    }
}
