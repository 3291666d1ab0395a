// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever follows the name of a benchmark is options, with which it runs, or faults that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_fuzz::{KERNEL, MACHINE, run_a_little};
use schedtwin_workload::{Workload, builtin_names, builtin_options};
use std::sync::LazyLock;

/// The benchmarks; the other built-ins are rt-app files.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = builtin_names().into_iter().map(|(name, _)| name);
    names.filter(|name| builtin_options(name).is_some_and(|o| !o.is_empty())).collect()
});

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses a benchmark: `0 --frequency 73`.
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let name = NAMES[usize::from(*first) % NAMES.len()];
    match Workload::from_path_or_name(&format!("{name} {text}")) {
        Ok(workload) => run_a_little(MACHINE.clone(), KERNEL.clone(), workload),
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
