//! Any text is a machine or a list of faults, and both can be shown.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use schedtwin_input::Source;
use schedtwin_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Machine::from_source(&Source::new("fuzz.toml", text), &[]) {
        Ok(machine) => drop(machine.describe()),
        Err(faults) => drop(faults.render(false)),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    schedtwin_fuzz::change_text(data, size, max_size, seed)
});
