// SPDX-License-Identifier: GPL-2.0-or-later
//! Ctrl-C and termination leave no half-written files.
//!
//! Traces grow under a temporary name beside their final one and are renamed when complete. An
//! interrupted process would leave the temporary file, so a thread that waits for signals removes those of
//! this process. What a killed process left (SIGKILL, power) the next one removes that writes the same result.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use schedtwin_engine::worker;
use schedtwin_trace::{remove_abandoned, remove_partials};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Files that this process is about to write.
static OUTPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The number that shells add to a signal's number to make it an exit code: 130 after Ctrl-C, 143
/// after TERM.
const BY_SIGNAL: i32 = 128;

/// Waits for signals. Without it (a system that refuses) an interrupted run leaves a `.partial` file.
pub fn install() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        // First, so that nothing is written any more.
        worker::kill();
        if let Ok(outputs) = OUTPUTS.lock() {
            outputs.iter().for_each(|path| remove_partials(path));
        }
        std::process::exit(BY_SIGNAL + signal);
    });
}

/// Notes that `path` is going to be written.
pub fn guard(path: &Path) {
    // Links are followed when writing: the temporary file is beside the target, or, where they are not, beside the link.
    for path in [Some(path.to_path_buf()), fs::canonicalize(path).ok()].into_iter().flatten() {
        remove_abandoned(&path);
        OUTPUTS.lock().expect("nothing panics while it holds the list").push(path);
    }
}
