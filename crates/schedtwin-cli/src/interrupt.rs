//! Ctrl-C and termination leave no half-written files.
//!
//! Traces grow under a temporary name beside their final one and are renamed when complete. An
//! interrupted process would leave the temporary file, so the handler removes those of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use schedtwin_trace::remove_partials;

/// Files that this process is about to write.
static OUTPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Exit code of a process that Ctrl-C ended, as shells have it: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Installs the handler. Without it (a system that refuses) an interrupted run leaves a `.partial` file.
pub fn install() {
    let _ = ctrlc::set_handler(|| {
        if let Ok(outputs) = OUTPUTS.lock() {
            outputs.iter().for_each(|path| remove_partials(path));
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Notes that `path` is going to be written.
pub fn guard(path: &Path) {
    // Links are followed when writing: the temporary file is beside the target.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    OUTPUTS.lock().expect("nothing panics while it holds the list").push(path);
}
