// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin import`: what other tools know of a machine, into machine files.

mod device_tree;
mod fdt;
mod lisa;
mod outline;
mod wattson;

use crate::arguments::{ImportMachine, ImportWhat};
use crate::bounded;
use crate::failure::Failure;
use crate::output::{shown, tell};
use crate::run::writable;
use outline::Outline;
use schedtwin_input::Source;
use schedtwin_machine::Machine;
use schedtwin_trace::{AtomicFile, Destination};

/// Most bytes of a description.
const BYTES_MAX: u64 = 16 << 20;

pub fn import(what: &ImportWhat) -> Result<(), Failure> {
    match what {
        ImportWhat::Wattson(arguments) => wattson::wattson(arguments),
        ImportWhat::Lisa(arguments) => machine(arguments, lisa::outline),
        ImportWhat::DeviceTree(arguments) => machine(arguments, device_tree::outline),
    }
}

/// Makes a machine file of a description.
fn machine(
    arguments: &ImportMachine,
    outline: fn(&[u8]) -> Result<Outline, String>,
) -> Result<(), Failure> {
    let (from, target) = (&arguments.description, &arguments.output);
    let bytes =
        bounded::read(from, BYTES_MAX).map_err(|error| Failure::of_file("read", from, &error))?;
    writable(target)?;
    let mut outline = outline(&bytes)
        .map_err(|why| Failure::bad(format!("failed to import {}: {why}", shown(from))))?;
    if let Some(name) = &arguments.name {
        outline.name.clone_from(name);
    }
    let file_name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy().into_owned();
    let text = outline.text(&file_name);
    // What is written has to be a machine.
    Machine::from_source(&Source::new(shown(target), text.clone()), &[])?;
    let written = AtomicFile::create(target).and_then(|file| file.commit_with(text.as_bytes()));
    written.map_err(|error| Failure::of_file("write", target, &error))?;
    tell(&format!(
        "{}: {} CPUs in {} domains; look at what is estimated (`schedtwin show machine {0}`)",
        shown(target),
        outline.nr_cpus(),
        outline.domains.len()
    ));
    outline.missing.iter().for_each(|what| tell(&format!("note: {what}")));
    Ok(())
}
