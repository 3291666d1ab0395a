// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a study, or a list of faults that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::Source;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(faults) = schedtwin_lab::study::read(&Source::new("fuzz.toml", text)) {
        drop(faults.render(false));
    }
});

schedtwin_fuzz::text_mutator!();
