// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin profile`: what a system does beside its programs, from a recording, as a file for `--system`.

use crate::arguments::Profile;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, shown, tell};
use crate::run::writable;
use schedtwin_engine::recording::{ProfileOptions, profile as extract};
use schedtwin_engine::system_file::SystemFile;
use schedtwin_input::Source;
use schedtwin_machine::Machine;
use schedtwin_trace::{AtomicFile, Destination};

pub fn profile(arguments: &Profile) -> Result<(), Failure> {
    let Profile { trace, output, machine, hz, name } = arguments;
    if let Some(output) = output {
        writable(output)?;
        interrupt::guard(output);
    }
    let machine = machine.as_deref().map(Machine::load).transpose()?;
    let stem = trace.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let name = name.clone().unwrap_or(stem);
    let options = ProfileOptions { name: name.clone(), machine: machine.as_ref(), hz: *hz };
    let made = extract(trace, &options)?;
    // What is written has to be a profile.
    SystemFile::parse(&name, &Source::new(format!("{name}.toml"), made.text.as_str()))?;
    for note in &made.notes {
        tell(&format!("note: {note}"));
    }
    let Some(output) = output else {
        return print(&made.text);
    };
    let written =
        AtomicFile::create(output).and_then(|file| file.commit_with(made.text.as_bytes()));
    written.map_err(|error| Failure::of_file("write", output, &error))?;
    tell(&format!(
        "{}: {} sources from {:.1} s; use it with -w 'NAME --system {}'",
        shown(output),
        made.sources,
        made.seconds,
        shown(output)
    ));
    Ok(())
}
