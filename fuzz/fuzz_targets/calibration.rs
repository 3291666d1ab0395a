// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is a calibration or a list of faults; a calibration that is written and read again is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::Source;
use schedtwin_lab::calibrate::Calibration;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Calibration::read(&Source::new("fuzz.toml", text)) {
        Ok(calibration) => {
            let again = Calibration::read(&Source::new("again.toml", calibration.text()));
            assert_eq!(again.expect("what was written can be read"), calibration);
        }
        Err(faults) => drop(faults.render(false)),
    }
});

schedtwin_fuzz::text_mutator!();
