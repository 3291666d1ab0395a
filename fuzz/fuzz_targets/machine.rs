//! Any text is a machine or a list of faults, both can be shown, and a machine runs.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use schedtwin_fuzz::{KERNEL, WORKLOAD, run_a_little};
use schedtwin_input::Source;
use schedtwin_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Machine::from_source(&Source::new("fuzz.toml", text), &[]) {
        Ok(machine) => {
            drop(machine.describe());
            run_a_little(machine, KERNEL.clone(), WORKLOAD.clone());
        }
        Err(faults) => drop(faults.render(false)),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    schedtwin_fuzz::change_text(data, size, max_size, seed)
});
