// SPDX-License-Identifier: GPL-2.0-or-later
//! `schedtwin profile`: what a system does beside its programs, from a recording, as a file for `--system`.

use crate::arguments::Profile;
use crate::compare::write_page;
use crate::failure::Failure;
use crate::output::{print, shown, tell};
use crate::run::writable;
use schedtwin_engine::recording::{ProfileOptions, Symbols, profile as extract};
use schedtwin_engine::system_file::SystemFile;
use schedtwin_input::Source;
use schedtwin_machine::Machine;
use std::path::Path;

pub fn profile(arguments: &Profile) -> Result<(), Failure> {
    let Profile { trace, output, machine, hz, name, kallsyms } = arguments;
    if let Some(output) = output {
        writable(output)?;
    }
    let machine = machine.as_deref().map(Machine::load).transpose()?;
    let stem = trace.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let name = name.clone().unwrap_or(stem);
    let symbols = kallsyms.as_deref().map(symbols).transpose()?.unwrap_or_default();
    let options =
        ProfileOptions { name: name.clone(), machine: machine.as_ref(), hz: *hz, symbols };
    let made = extract(trace, &options)?;
    // What is written has to be a profile.
    SystemFile::parse(&name, &Source::new(format!("{name}.toml"), made.text.as_str()))?;
    for note in &made.notes {
        tell(&format!("note: {note}"));
    }
    let Some(output) = output else {
        return print(&made.text);
    };
    write_page(output, &made.text)?;
    tell(&format!(
        "{}: {} sources from {:.1} s; use it with -w 'NAME --system {}'",
        shown(output),
        made.sources,
        made.seconds,
        shown(output)
    ));
    Ok(())
}

/// The longest list of symbols: that of a kernel with everything built in has a quarter of it.
const SYMBOLS_BYTES_MAX: u64 = 256 << 20;

/// Reads `/proc/kallsyms` or a copy of it.
fn symbols(path: &Path) -> Result<Symbols, Failure> {
    let text = crate::bounded::read_to_string(path, SYMBOLS_BYTES_MAX);
    let symbols = Symbols::parse(&text.map_err(|error| Failure::of_file("read", path, &error))?);
    if symbols.is_empty() {
        return Err(Failure::bad(format!(
            "{} tells no address: read it as root (kernel.kptr_restrict)",
            shown(path)
        )));
    }
    Ok(symbols)
}
