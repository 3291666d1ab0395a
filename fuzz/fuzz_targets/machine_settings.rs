//! Whatever follows the name of a machine on the command line is settings, with which it runs, or faults that can be shown.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use schedtwin_fuzz::{KERNEL, SMALL_MACHINE, WORKLOAD, run_a_little};
use schedtwin_input::Spec;
use schedtwin_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let machine = Spec::parse_machine(&format!("m:{text}"))
        .and_then(|spec| Machine::from_source(&SMALL_MACHINE, &spec.settings));
    match machine {
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
