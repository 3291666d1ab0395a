// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a workload or a list of faults; a workload can be instantiated, or says why not, and its threads run.
#![no_main]

#[path = "../../crates/schedtwin-workload/tests/executor/mod.rs"]
mod executor;

use executor::{Executor, host};
use libfuzzer_sys::fuzz_target;
use schedtwin_fuzz::{KERNEL, MACHINE, run_a_little};
use schedtwin_input::Source;
use schedtwin_workload::Workload;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Workload::parse_rtapp(Source::new("fuzz.json", text)) {
        Ok(workload) if workload.instantiate(&host(4), 1).is_ok() => {
            let mut executor = Executor::with_delays(&workload, &host(4), 1, 100);
            executor.run(1_000_000_000, 500, |_, _, _, _| {});
            run_a_little(MACHINE.clone(), KERNEL.clone(), workload);
        }
        Ok(_) => {}
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
