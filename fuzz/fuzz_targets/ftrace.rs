//! Any bytes can be read as ftrace text and become work that can be instantiated, or are refused with their lines.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use schedtwin::recording::read_trace_from;
use schedtwin_machine::Machine;
use schedtwin_workload::Host;
use std::sync::LazyLock;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::load("pixel6").expect("built in"));

fuzz_target!(|bytes: &[u8]| {
    match read_trace_from(bytes, "fuzz.txt", &*MACHINE, &MACHINE, None) {
        Ok(recording) => {
            let host = Host { cpu_capacity: vec![124, 124, 1024, 1024], ns_per_loop: 21 };
            let _ = recording.workload.instantiate(&host, 1);
        }
        Err(faults) => drop(faults.render(false)),
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    schedtwin_fuzz::change_text(data, size, max_size, seed)
});
