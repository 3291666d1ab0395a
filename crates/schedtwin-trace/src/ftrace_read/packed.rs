// SPDX-License-Identifier: GPL-2.0-or-later
//! Opens traces: tells by their first bytes, not by their names, what is packed and what is no text.
//!
//! `xz` is unpacked. What cannot be read is refused with the command that makes it readable: other
//! packers, and the binary files of `trace-cmd record`, be they packed in `xz` or not.

use crate::open_readable;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The most memory that unpacking may take, KiB: twice what `xz -9` needs.
const XZ_MEMORY_KIB: u32 = 128 << 10;

const BUFFER: usize = 1 << 16;

const XZ: &[u8] = b"\xfd7zXZ\0";

/// First bytes of what is no text, what it is, and what makes text of it.
const NO_TEXT: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "packed with gzip", "zcat FILE | schedtwin replay - ..."),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "zstdcat FILE | schedtwin replay - ..."),
    (b"BZh", "packed with bzip2", "bzcat FILE | schedtwin replay - ..."),
    (b"PK\x03\x04", "a zip archive", "unzip -p FILE | schedtwin replay - ..."),
    (
        b"\x17\x08Dtracing",
        "the binary file of trace-cmd record",
        "trace-cmd report -l -N FILE > trace.txt",
    ),
];

/// Opens a trace; `-` is standard input, what `xz` packed is unpacked.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return unpack(BufReader::with_capacity(BUFFER, io::stdin()));
    }
    unpack(BufReader::with_capacity(BUFFER, open_readable(path)?))
}

/// As [`open`], from any bytes.
pub fn unpack(mut input: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    if !input.fill_buf()?.starts_with(XZ) {
        refuse_no_text(&mut input, "")?;
        return Ok(Box::new(input));
    }
    let unpacked = lzma_rust2::XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB);
    let mut unpacked = BufReader::with_capacity(BUFFER, unpacked);
    refuse_no_text(&mut unpacked, "packed with xz, in it ")?;
    Ok(Box::new(unpacked))
}

fn refuse_no_text(input: &mut impl BufRead, within: &str) -> io::Result<()> {
    let head = match input.fill_buf() {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(super::cut_short());
        }
        head => head?,
    };
    match NO_TEXT.iter().find(|(magic, ..)| head.starts_with(magic)) {
        None => Ok(()),
        Some((_, what, _)) if !within.is_empty() => {
            Err(io::Error::other(format!("it is {within}{what}: unpack it with xz -dk FILE first")))
        }
        Some((_, what, remedy)) => {
            Err(io::Error::other(format!("it is {what}: make text of it with {remedy}")))
        }
    }
}
