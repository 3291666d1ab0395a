//! Ctrl-C and termination leave no half-written files.
//!
//! Traces grow under a temporary name beside their final one and are renamed when complete. An
//! interrupted process would leave the temporary file, so the handler removes those of this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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

/// Removes this process's temporary files for `path`: `.NAME.PID-NUMBER.partial`.
fn remove_partials(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let prefix = format!(".{}.{}-", name.to_string_lossy(), std::process::id());
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        if found.starts_with(&prefix) && found.ends_with(".partial") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_this_process_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.pftrace");
        let own = format!(".out.pftrace.{}-3.partial", std::process::id());
        for name in ["out.pftrace", &own, ".out.pftrace.1-3.partial", ".other.partial"] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        remove_partials(&path);
        assert!(!directory.path().join(own).exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}
