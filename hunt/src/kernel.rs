//! Random kernels, as they are spelled on the command line: a release, patches, and any settings that it takes.
//!
//! What a release takes is asked of the reader itself: a setting that it refuses is left out again. So every variation point
//! and tunable takes part as soon as it exists.

use crate::tape::Tape;
use schedtwin::kernel_file::{KernelFile, variation_points};

/// A kernel's spelling.
pub fn kernel(tape: &mut Tape) -> String {
    let releases = schedtwin::list_kernels();
    // The newest is the simplest: most other tests run it.
    let at = releases.len() - 1 - tape.below(releases.len() as u64) as usize;
    let mut name = releases[at].0.clone();
    for _ in 0..*tape.pick(&[0, 0, 0, 1, 2]) {
        let patches = schedtwin::list_patches();
        let with = format!("{name}+{}", tape.pick(&patches).0);
        if KernelFile::load(&with).is_ok() {
            tape.mark("kernel: patches");
            name = with;
        }
    }
    let mut settings = String::new();
    let points = variation_points();
    for _ in 0..*tape.pick(&[0, 1, 3, 6, 10, 20]) {
        let spec = |settings: &str| match settings {
            "" => name.clone(),
            _ => format!("{name}:{settings}"),
        };
        let now = KernelFile::load(&spec(&settings)).expect("only what loads is kept");
        // Half of the settings are arms of variation points: there are many tunables.
        let (key, value) = match tape.percent(50) {
            true => {
                let point = tape.pick(&points);
                (point.key.to_string(), tape.pick(&point.arms).0.to_string())
            }
            false => {
                let (key, value) = tape.pick(&now.settings).clone();
                let value = other_value(tape, &value);
                (key, value)
            }
        };
        let more = match settings.as_str() {
            "" => format!("{key}={value}"),
            _ => format!("{settings},{key}={value}"),
        };
        if KernelFile::load(&spec(&more)).is_ok() {
            settings = more;
        }
    }
    if settings.is_empty() {
        return name;
    }
    tape.mark("kernel: settings");
    format!("{name}:{settings}")
}

/// Another value for a setting that has this one.
fn other_value(tape: &mut Tape, value: &str) -> String {
    match value {
        "true" => "false".to_string(),
        "false" => "true".to_string(),
        _ => {
            let number: u64 = value.replace('_', "").parse().unwrap_or(1000);
            let near = [number / 2, number * 2, number / 10, number * 10, 0, 1, number + 1];
            match tape.percent(60) {
                false => tape.pick(&near).to_string(),
                true => tape.magnitude(0, 100_000_000).to_string(),
            }
        }
    }
}
