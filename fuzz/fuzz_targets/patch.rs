// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a patch that some kernel takes, or a list of faults.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_engine::kernel_file::check_patch;
use schedtwin_input::Source;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(faults) = check_patch(&Source::new("fuzz.toml", text)) {
        drop(faults.render(false));
    }
});

schedtwin_fuzz::text_mutator!();
