// SPDX-License-Identifier: GPL-2.0-or-later
//! The command confines itself before it asks a user's C anything ([`schedtwin_engine::confine`]): afterwards it writes only beneath the
//! folders of its outputs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use schedtwin_engine::{Confined, Fault, confine};

use crate::failure::Failure;
use crate::output::tell;

/// Folders of what this process is about to write.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a folder in which an output is going to be written.
pub fn writes_into(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_path_buf());
}

/// Confines the process if there is C of the user's. Called when every output is known, and before any thread is started.
pub fn confined() -> Result<(), Failure> {
    let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match confine::enter(&folders) {
        Ok(Confined::SystemCalls) => {
            tell(
                "note: this kernel has no Landlock: the C of the tree may read and write your files",
            );
            Ok(())
        }
        Ok(Confined::NoNeed | Confined::Full) => Ok(()),
        Err(faults) => {
            let told = |fault: &Fault| match &fault.help {
                Some(help) => format!("{}\n  help: {help}", fault.message),
                None => fault.message.clone(),
            };
            let lines: Vec<String> = faults.iter().map(told).collect();
            Err(Failure::bad(lines.join("\nerror: ")))
        }
    }
}
