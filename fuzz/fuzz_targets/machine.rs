//! Any text is a machine or a list of faults, and faults can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::Source;
use schedtwin_machine::Machine;

fuzz_target!(|text: &str| {
    match Machine::from_source(&Source::new("fuzz.toml", text), &[]) {
        Ok(machine) => drop(machine.describe()),
        Err(faults) => drop(faults.render(false)),
    }
});
