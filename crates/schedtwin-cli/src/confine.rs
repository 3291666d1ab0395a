// SPDX-License-Identifier: GPL-2.0-or-later
//! The command never loads a user's C: a confined worker does, and performs the rest of it ([`schedtwin_engine::worker`]). Here is what
//! the command does for its worker: it writes the outputs that were named on the command line, and draws the progress.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use schedtwin_engine::outside::{self, OutsideFiles};
use schedtwin_engine::worker::{self, Service, Side};
use schedtwin_engine::{Fault, confine};

use crate::bar::Drawn;
use crate::failure::Failure;
use crate::{interrupt, output};

/// What this process is about to write.
static FILES: Mutex<Option<OutsideFiles>> = Mutex::new(None);

fn with_files(change: impl FnOnce(&mut OutsideFiles)) {
    change(FILES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default());
}

/// Notes an output that is going to be written. `false`: another output is the same file, and one would be lost.
#[must_use]
pub fn writes(path: &Path) -> bool {
    let mut is_new = true;
    with_files(|files| {
        is_new = !files.outputs().any(|other| same(other, path));
        files.output(path);
    });
    is_new
}

/// Whether two paths name the same file, that need not be there; what is no file, as `/dev/null`, takes everything.
fn same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| -> Option<PathBuf> {
        if let Ok(whole) = path.canonicalize() {
            return whole.is_file().then_some(whole);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

/// Notes a file that may be written, beside what the user has named: it replaces what is there.
pub fn may_write(path: &Path) {
    with_files(|files| files.may_output(path));
}

/// Notes a file that is going to be appended to, and removed.
pub fn appends(path: &Path) {
    with_files(|files| files.journal(path));
}

/// The exit code of a command that came to its end, and has found what it was asked to tell.
const FOUND: u8 = 1;

/// The supervisor's service.
struct Desk {
    files: OutsideFiles,
    bar: Drawn,
}

impl Service for Desk {
    fn request(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.files.serve(request)
    }

    fn end(&mut self, code: u8) -> io::Result<()> {
        match code {
            0 => self.files.finish(true),
            FOUND => self.files.finish(false),
            _ => Ok(()),
        }
    }

    fn progress(&mut self, progress: &[u8]) {
        self.bar.draw(progress);
    }
}

/// Divides the process if there is C of the user's. Called when every input has been read and every output is known, and before any
/// thread is started. The supervisor comes back with [`Failure::Ended`], when all is done.
pub fn confined() -> Result<(), Failure> {
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    files.outputs().for_each(interrupt::guard);
    if let Some(lacks) = confine::lacks().filter(|_| !worker::is_worker()) {
        output::tell(&format!("warning: {lacks}"));
    }
    match confine::enter(&mut Desk { files, bar: Drawn::new() }) {
        Ok(Side::Whole) => Ok(()),
        Ok(Side::Worker) => {
            outside::divert(worker::request);
            Ok(())
        }
        Ok(Side::Supervisor(code)) => Err(Failure::Ended(code)),
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
