// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a kernel or a list of faults; a kernel that is written to a file and read again is the same, and it runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_engine::kernel_file::KernelFile;
use schedtwin_fuzz::{MACHINE, WORKLOAD, run_a_little};
use schedtwin_input::{Source, Spec};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let spec = Spec::parse_kernel("fuzz").expect("a name");
    match KernelFile::from_source(&Source::new("fuzz.toml", text), &spec) {
        Ok(kernel) => {
            drop(kernel.describe());
            let again =
                KernelFile::from_source(&Source::new("again.toml", kernel.to_file()), &spec);
            assert_eq!(again.expect("what was written can be read").config, kernel.config);
            run_a_little(MACHINE.clone(), kernel, WORKLOAD.clone());
        }
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
