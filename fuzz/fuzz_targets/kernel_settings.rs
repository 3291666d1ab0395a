// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever follows the name of a kernel on the command line is patches and settings, with which it runs, or faults.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_engine::kernel_file::{KernelFile, builtin_texts};
use schedtwin_fuzz::{MACHINE, WORKLOAD, run_a_little};
use schedtwin_input::{Source, Spec};
use std::sync::{Arc, LazyLock};

static KERNELS: LazyLock<Vec<Arc<Source>>> =
    LazyLock::new(|| builtin_texts().map(|(name, text)| Source::new(name, text)).collect());

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses a kernel: `0+teo-util:hz=100`.
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let kernel = &KERNELS[usize::from(*first) % KERNELS.len()];
    let spec = match Spec::parse_kernel(&format!("{}{text}", kernel.name)) {
        // A path would be read.
        Ok(spec) if spec.name.is_path() || spec.patches.iter().any(|p| p.is_path()) => return,
        Ok(spec) => spec,
        Err(faults) => return drop(faults.render(false)),
    };
    match KernelFile::from_source(kernel, &spec) {
        Ok(kernel) => {
            drop(kernel.describe());
            run_a_little(MACHINE.clone(), kernel, WORKLOAD.clone());
        }
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
