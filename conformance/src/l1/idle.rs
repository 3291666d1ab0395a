// SPDX-License-Identifier: GPL-2.0-or-later
//! The choices of teo and menu in the recordings, re-driven and compared.
//!
//! At each entry into idle the state, and, where the tick ran, whether it was stopped; at each exit, whether the
//! stay was too short or too long for its state, as `cpu_idle_miss` says. The trivial answer is the
//! commonest choice of that CPU in that recording.
//!
//! How it works is in [`drive`]. Recordings of another governor are not driven.

pub mod drive;
mod wheel;

use std::io;
use std::path::Path;

use super::machine::Machine;
use crate::ftrace::Trace;
use drive::IdleDrive;

/// Re-drives one recording; `None`: another governor chose.
pub fn drive_file<'a>(path: &Path, machine: &'a Machine) -> io::Result<Option<IdleDrive<'a>>> {
    if drive::corners(&machine.kernel(), &machine.governor, 0).is_none() {
        return Ok(None);
    }
    let mut drive = IdleDrive::new(machine);
    drive.read_ahead(&mut Trace::open(path)?)?;
    let mut trace = Trace::open(path)?;
    drive.drive(&mut trace)?;
    if let (Some(first), count) = (trace.bad_lines().0.first(), trace.bad_lines().1) {
        let message = format!("{count} unreadable lines; {first}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Some(drive))
}

#[cfg(test)]
mod tests;
