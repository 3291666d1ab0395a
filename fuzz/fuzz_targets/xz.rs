// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes can be unpacked, or are refused, in bounded memory.
//!
//! Checksums reject nearly every changed file of xz before its content is looked at. Bytes that do not begin as a packed file
//! are therefore put into one: the first is the size of its dictionary, the rest its LZMA2 data.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::event::TraceSource;
use schedtwin_trace::sources;

const MAGIC: &[u8] = b"\xfd7zXZ\0";

/// First bytes of files that are read as they are: xz, gzip, zstd, zip, zlib; beside them tar.
const MAGICS: [&[u8]; 5] = [MAGIC, b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\x78\x9c"];

fuzz_target!(|bytes: &[u8]| {
    let is_tar = bytes.get(257..262) == Some(b"ustar");
    let wrapped = is_tar || MAGICS.iter().any(|magic| bytes.starts_with(magic));
    let file = if wrapped { bytes.to_vec() } else { packed(bytes) };
    if let Ok(mut source) = sources::read(&file[..]) {
        while let Ok(Some(_)) = source.next_event() {}
    }
});

/// A file of xz with one block and without its end: the reader meets that last.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let (dictionary, data) = bytes.split_first().unwrap_or((&0, &[]));
    let mut file = MAGIC.to_vec();
    // The kind of check: none.
    let flags = [0, 0];
    file.extend(flags);
    file.extend(crc32(&flags).to_le_bytes());
    // 12 bytes with one filter, LZMA2 (0x21), whose property of one byte is the size of its dictionary.
    let header = [2, 0, 0x21, 1, *dictionary, 0, 0, 0];
    file.extend(header);
    file.extend(crc32(&header).to_le_bytes());
    file.extend(data);
    file
}

/// The checksum of IEEE 802.3, as the format of xz names it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}
