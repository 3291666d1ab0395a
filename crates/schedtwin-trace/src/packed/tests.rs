// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::event::TraceSource;
use crate::sources;
use std::io::Write;

const TEXT: &[u8] = b"# tracer: nop\nui-7 [001] d..2 5.000001: cpu_idle: state=1 cpu_id=1\n";

fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zlib_of(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// An archive with one file: stored with its size, or packed by a writer that streamed and knew no size.
fn zip_of(bytes: &[u8], packed: bool) -> Vec<u8> {
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    let content = if packed { packer.finish().unwrap() } else { bytes.to_vec() };
    let (flags, method, size) = if packed { (8u16, 8u16, 0) } else { (0, 0, bytes.len() as u32) };
    let mut file = b"PK\x03\x04\x14\0".to_vec();
    file.extend(flags.to_le_bytes());
    file.extend(method.to_le_bytes());
    file.extend([0; 8]);
    file.extend(size.to_le_bytes());
    file.extend(size.to_le_bytes());
    file.extend(5u16.to_le_bytes());
    file.extend(0u16.to_le_bytes());
    file.extend(b"a.txt");
    file.extend(content);
    file.extend(b"PK\x01\x02 and so on");
    file
}

/// How many events a file has, or why it cannot be read.
fn events(file: &[u8]) -> Result<u64, String> {
    let mut source = sources::read(file).map_err(|fault| fault.to_string())?;
    while source.next_event().map_err(|fault| fault.to_string())?.is_some() {}
    Ok(source.report().events)
}

#[test]
fn every_wrapper_is_taken_off() {
    let atrace = [b"capturing trace... done\nTRACE:\n", &zlib_of(TEXT)[..]].concat();
    let skippable = [b"\x53\x2a\x4d\x18\x03\0\0\0abc", &zstd_of(TEXT)[..]].concat();
    for (name, file, events_of) in [
        ("plain", TEXT.to_vec(), 1),
        ("gzip", gzip_of(TEXT), 1),
        ("two members", [gzip_of(TEXT), gzip_of(TEXT)].concat(), 2),
        ("zlib", zlib_of(TEXT), 1),
        ("atrace -z", atrace, 1),
        ("zstd", zstd_of(TEXT), 1),
        ("two frames", [zstd_of(TEXT), zstd_of(TEXT)].concat(), 2),
        ("a skippable frame", skippable, 1),
        ("zip", zip_of(TEXT, true), 1),
        ("zip, stored", zip_of(TEXT, false), 1),
        ("gzip in zip", zip_of(&gzip_of(TEXT), true), 1),
    ] {
        assert_eq!(events(&file), Ok(events_of), "{name}");
    }
}

#[test]
fn what_cannot_be_unpacked_says_why() {
    let layers = gzip_of(&gzip_of(&gzip_of(TEXT)));
    let gzip = gzip_of(TEXT);
    let zstd = zstd_of(TEXT);
    let mut damaged = gzip.clone();
    damaged[14] ^= 0x55;
    let mut encrypted = zip_of(TEXT, true);
    encrypted[6] |= 1;
    let mut method = zip_of(TEXT, true);
    method[8] = 93;
    let cut = "the file is cut short: its packed data ends too early";
    for (file, expected) in [
        (&layers[..], "it is packed 3 times (gzip, gzip, gzip): unpack it first"),
        (&gzip[..gzip.len() - 12], cut),
        (&zstd[..zstd.len() - 5], cut),
        (b"\xfd7zXZ\0\0", cut),
        (&damaged, "its packed data (gzip) is damaged"),
        (&encrypted, "its packed data (zip) is damaged: it is encrypted"),
        (&method, "its packed data (zip) is damaged: its method 93 is unknown"),
        (b"BZh9", "it is packed with bzip2: make it readable with bzcat FILE |"),
        (b"\x04\x22\x4d\x18", "it is packed with lz4"),
        (b"PK\x05\x06", "it is an empty zip archive"),
        (b"\x17\x08Dtracing6\0", "it ends at byte 12, within the byte order"),
        (b"PERFILE2", "it ends at byte 8, within its head"),
    ] {
        let told = events(file).unwrap_err();
        assert!(told.starts_with(expected) || told.contains(expected), "{expected}: {told}");
    }
}

/// A few bytes that ask for gigabytes: of output, in several streams; packed once more; of dictionary.
#[test]
fn packed_bombs_are_refused() {
    let zeros: &[u8] = include_bytes!("../ftrace_read/mebibyte-of-zeros.xz");
    let dictionary: &[u8] = include_bytes!("../ftrace_read/gibibyte-of-dictionary.xz");
    let told = events(&zeros.repeat(1000)).unwrap_err();
    assert_eq!(told, "it is not ftrace text: line 1: 64 MiB without a trace line");
    let told = events(dictionary).unwrap_err();
    assert!(told.contains("memory"), "{told}");
    // What has trace lines could go on for ever: it is told by its ratio.
    let line = b"ui-7 [001] d..2 5.000001: cpu_idle: state=1 cpu_id=1\n".repeat(1 << 15);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&line).unwrap();
    let once = packer.finish().unwrap();
    let out = line.len() as u64;
    let seen = Rc::new(Seen::default());
    seen.bytes.set(once.len() as u64);
    let decoder: Box<dyn Read> = Box::new(&line[..]);
    let mut bounded = Bounded { decoder, seen, name: "gzip", out: FREE_BYTES };
    assert!(out < FREE_BYTES && (FREE_BYTES + out) / RATIO_MAX > once.len() as u64);
    let told = io::copy(&mut bounded, &mut io::sink()).unwrap_err().to_string();
    assert_eq!(told, "it unpacks (gzip) to more than 1000 times its size: no trace does");
}

#[test]
fn content_can_be_made_a_file() {
    let packed = gzip_of(TEXT);
    let mut file = unpack(&packed[..]).unwrap().into_file(1 << 20).unwrap();
    let mut content = Vec::new();
    file.read_to_end(&mut content).unwrap();
    assert_eq!(content, TEXT);
    assert!(unpack(&packed[..]).unwrap().into_file(TEXT.len() as u64).is_ok());
    let told = unpack(&packed[..]).unwrap().into_file(10).unwrap_err();
    assert!(told.to_string().contains("larger than"), "{told}");
}
