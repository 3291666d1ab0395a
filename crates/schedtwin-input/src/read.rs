// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads a file that a user named, and says plainly why it cannot.
//!
//! A directory, a missing file, a file that is not text, an empty one and one that is far too large
//! are faults of the whole file: they carry its name and no line.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use crate::{Diagnostics, Source};

/// The largest source that is read: no machine, kernel or workload comes near it, and a user who
/// names a disk image or `/dev/zero` gets an answer instead of a full memory.
pub const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// The first bytes of a compiled device tree.
pub const DEVICE_TREE: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];

/// Reads the text of a file.
///
/// ```
/// let faults = schedtwin_input::read_source("no/such.toml").unwrap_err();
/// assert_eq!(faults.to_string(), "no/such.toml: there is no such file");
/// ```
pub fn read_source(path: impl AsRef<Path>) -> Result<Arc<Source>, Diagnostics> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let fail = |message: String, help: Option<&str>| {
        let mut faults = Diagnostics::new();
        faults.push_whole(&Source::new(name.clone(), ""), message, help.map(str::to_string));
        faults
    };
    if path.is_dir() {
        return Err(fail("is a directory, not a file".into(), None));
    }
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => fail("there is no such file".into(), None),
        ErrorKind::PermissionDenied => fail("may not be read: permission denied".into(), None),
        _ => fail(format!("cannot be opened: {error}"), None),
    })?;
    let mut bytes = Vec::new();
    if let Err(error) = file.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut bytes) {
        return Err(fail(format!("cannot be read: {error}"), None));
    }
    if bytes.len() as u64 > MAX_SOURCE_BYTES {
        return Err(fail(format!("is larger than {} MiB", MAX_SOURCE_BYTES >> 20), None));
    }
    if bytes.starts_with(&DEVICE_TREE) {
        let next = "make a machine file of it: schedtwin import device-tree FILE.dtb -o FILE.toml";
        return Err(fail("is a compiled device tree".into(), Some(next)));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Err(fail(
                format!("is binary, or not UTF-8 text (byte {at})"),
                Some("save it as UTF-8"),
            ));
        }
    };
    if text.contains('\0') {
        return Err(fail("is binary: it contains a zero byte".into(), None));
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(fail("is empty".into(), None));
    }
    Ok(Source::new(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unreadable_file_says_why() {
        let dir = std::env::temp_dir().join(format!("schedtwin-read-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let large = vec![b'#'; MAX_SOURCE_BYTES as usize + 1];
        let cases: [(&str, Option<&[u8]>, &str); 8] = [
            ("missing", None, "there is no such file"),
            ("empty", Some(b""), "is empty"),
            ("blank", Some(b" \n\t\n"), "is empty"),
            ("bom", Some(b"\xef\xbb\xbf\n"), "is empty"),
            ("latin1", Some(b"name = \"\xe4\""), "is binary, or not UTF-8 text (byte 8)"),
            ("tree.dtb", Some(&DEVICE_TREE), "is a compiled device tree"),
            ("zero", Some(b"a\0b"), "is binary: it contains a zero byte"),
            ("large", Some(&large), "is larger than 16 MiB"),
        ];
        for (name, content, expected) in cases {
            let path = dir.join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let faults = read_source(&path).unwrap_err();
            assert_eq!(faults.0[0].message, expected, "{name}");
            assert!(!faults.render(false).is_empty());
        }
        assert_eq!(read_source(&dir).unwrap_err().0[0].message, "is a directory, not a file");
        std::fs::write(dir.join("good"), "a = 1").unwrap();
        assert_eq!(read_source(dir.join("good")).unwrap().text, "a = 1");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
