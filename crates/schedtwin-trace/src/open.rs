// SPDX-License-Identifier: GPL-2.0-or-later
//! Opens what a user named, if it can be read to an end.
//!
//! Files and pipes are read (`replay <(zcat trace.gz)`); a pipe without a writer waits for one, as it does for any
//! program. A directory holds no trace, and devices such as `/dev/zero` and `/dev/urandom` never end.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file or a pipe; refuses directories and devices.
pub fn open_readable(path: &Path) -> io::Result<File> {
    // Looked at before it is opened: opening a device may do something.
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !kind.is_file() && is_device(kind) {
        return Err(io::Error::other("it is a device, not a file"));
    }
    File::open(path)
}

#[cfg(unix)]
fn is_device(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: std::fs::FileType) -> bool {
    false
}
