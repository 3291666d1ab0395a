// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes can be read as ftrace text and become work that runs, or are refused with their lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_engine::recording::read_trace_from;
use schedtwin_fuzz::{KERNEL, MACHINE, run_a_little};
use schedtwin_machine::Machine;
use std::sync::LazyLock;

static RECORDED_ON: LazyLock<Machine> =
    LazyLock::new(|| Machine::load("pixel6").expect("built in"));

fuzz_target!(|bytes: &[u8]| {
    match read_trace_from(bytes, "fuzz.txt", &*RECORDED_ON, &MACHINE, None) {
        Ok(recording) => run_a_little(MACHINE.clone(), KERNEL.clone(), recording.workload),
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
