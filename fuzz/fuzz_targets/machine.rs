// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a machine or a list of faults, both can be shown, and a machine runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_fuzz::try_machine;
use schedtwin_input::Source;
use schedtwin_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    try_machine(Machine::from_source(&Source::new("fuzz.toml", text), &[]));
});

schedtwin_fuzz::text_mutator!();
