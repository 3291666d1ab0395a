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

/// Why a scheduler is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its code.
    Code(Fault),
    /// Faults of its file of options, where they are.
    Faults(Diagnostics),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Code(fault)
    }
}

impl Refusal {
    /// As faults, of the code at the place where the user asked for it.
    pub fn at(self, at: &Location) -> Diagnostics {
        match self {
            Refusal::Code(fault) => fault.at(at),
            Refusal::Faults(faults) => faults,
        }
    }
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
