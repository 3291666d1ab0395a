// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that the user names are read to a bound: a device has no end, and no size that would tell.

use std::io::{self, Read};
use std::path::Path;

/// All bytes of a file, a pipe or a device; it is an error if there are more than `most`.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    schedtwin_trace::open_readable(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The same as text.
pub fn read_to_string(path: &Path, most: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text");
    String::from_utf8(read(path, most)?).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_read_to_its_bound() {
        assert!(read(Path::new("/dev/zero"), 1000).is_err(), "it has no end");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "four").expect("written");
        assert_eq!(read(file.path(), 4).expect("it fits"), b"four");
        assert_eq!(read(file.path(), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
