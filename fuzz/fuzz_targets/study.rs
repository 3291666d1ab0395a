//! Any text is a study and a calibration, or lists of faults that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_input::Source;
use schedtwin_lab::calibrate::Calibration;

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.toml", text);
    if let Err(faults) = schedtwin_lab::study::read(&source) {
        drop(faults.render(false));
    }
    if let Err(faults) = Calibration::read(&source) {
        drop(faults.render(false));
    }
});
