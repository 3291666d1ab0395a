// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever follows the name of a machine on the command line is settings, with which it runs, or faults that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_fuzz::{SMALL_MACHINE, try_machine};
use schedtwin_input::Spec;
use schedtwin_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let spec = Spec::parse_machine(&format!("m:{text}"));
    try_machine(spec.and_then(|spec| Machine::from_source(&SMALL_MACHINE, &spec.settings)));
});

schedtwin_fuzz::text_mutator!();
