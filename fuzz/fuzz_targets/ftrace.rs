//! Any bytes can be read as ftrace text and become work, or are refused with their lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin::recording::read_trace_from;
use schedtwin_machine::Machine;
use std::sync::LazyLock;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::load("pixel6").expect("built in"));

fuzz_target!(|bytes: &[u8]| {
    let _ = read_trace_from(bytes, "fuzz.txt", &*MACHINE, &MACHINE, None);
});
