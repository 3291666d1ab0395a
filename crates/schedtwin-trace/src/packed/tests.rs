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
        (&encrypted, "it is encrypted: unpack it with 7z x ARCHIVE"),
        (
            &method,
            "it is packed with method 93 (zstd) of zip, which is not read: unpack it with 7z",
        ),
        (b"BZh9", "it is packed with bzip2: make it readable with bzcat FILE |"),
        (b"\x04\x22\x4d\x18", "it is packed with lz4"),
        (b"PK\x05\x06", "it is an empty zip archive: take another file"),
        (
            b"\xff\xfe#\0 \0",
            "it is text in UTF-16, as PowerShell's > writes it: make it readable with iconv",
        ),
        (&tar_of(&[], false), "it has no files"),
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

/// A file of an archive: its name, its content, and the method that packs it in a zip.
type Entry<'a> = (&'a str, &'a [u8], u16);

/// An archive with a directory; `wide`: as zip64 writes numbers.
fn zip_with_directory(files: &[Entry<'_>], wide: bool) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes, method) in files {
        let mut packer =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        let content = match method {
            0 => bytes.to_vec(),
            8 => packer.finish().unwrap(),
            _ => zstd_of(bytes),
        };
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let at = archive.len() as u64;
        // As a writer that streamed: the sizes stand behind the content, and in the directory.
        archive.extend([&b"PK\x03\x04\x14\0\x08\0"[..], &method.to_le_bytes(), &[0; 16]].concat());
        archive.extend((name.len() as u16).to_le_bytes());
        archive.extend([0; 2]);
        archive.extend(name.as_bytes());
        archive.extend(&content);
        let numbers = [bytes.len() as u64, content.len() as u64, at];
        let narrow = |number: u64| if wide { u32::MAX } else { number as u32 }.to_le_bytes();
        directory.extend(b"PK\x01\x02\x14\0\x14\0\x08\0");
        directory.extend(method.to_le_bytes());
        directory.extend([0; 4]);
        directory.extend(crc.sum().to_le_bytes());
        directory.extend([narrow(numbers[1]), narrow(numbers[0])].concat());
        directory.extend((name.len() as u16).to_le_bytes());
        let extra: Vec<u8> = match wide {
            true => [&[1, 0, 24, 0][..], &numbers.map(u64::to_le_bytes).concat()].concat(),
            false => Vec::new(),
        };
        directory.extend((extra.len() as u16).to_le_bytes());
        directory.extend([0; 10]);
        directory.extend(narrow(at));
        directory.extend(name.as_bytes());
        directory.extend(extra);
    }
    let place = archive.len() as u64;
    archive.extend(directory);
    if wide {
        let record = archive.len() as u64;
        archive.extend([&b"PK\x06\x06"[..], &[0; 44], &place.to_le_bytes()].concat());
        archive.extend([&b"PK\x06\x07"[..], &[0; 4], &record.to_le_bytes(), &[0; 4]].concat());
    }
    archive.extend([&b"PK\x05\x06"[..], &[0; 12]].concat());
    archive.extend(if wide { u32::MAX } else { place as u32 }.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

/// A tar; a long name stands in an entry of its own, as GNU or pax writes it.
fn tar_of(files: &[Entry<'_>], pax: bool) -> Vec<u8> {
    let entry = |name: &str, kind: u8, bytes: &[u8]| {
        let mut header = vec![0; 512];
        let short = &name.as_bytes()[..name.len().min(100)];
        header[..short.len()].copy_from_slice(short);
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        header[257..265].copy_from_slice(if pax { b"ustar\x0000" } else { b"ustar  \0" });
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header.extend(bytes);
        header.resize(header.len().next_multiple_of(512), 0);
        header
    };
    let mut archive = entry("folder/", b'5', b"");
    for (name, bytes, _) in files {
        if name.len() > 100 && pax {
            let record = format!(" path={name}\n");
            let length = record.len() + 3;
            archive.extend(entry("PaxHeader", b'x', format!("{length}{record}").as_bytes()));
        } else if name.len() > 100 {
            archive.extend(entry("././@LongLink", b'L', name.as_bytes()));
        }
        archive.extend(entry(name, b'0', bytes));
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

/// How many events a file of an archive has, or why it cannot be read.
fn events_of_member(archive: &[u8], member: &str) -> Result<u64, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a: b.archive");
    std::fs::write(&path, archive).unwrap();
    let named = match member {
        "" => path,
        member => format!("{}:{member}", path.display()).into(),
    };
    let mut source = sources::open(&named).map_err(|fault| fault.to_string())?;
    while source.next_event().map_err(|fault| fault.to_string())?.is_some() {}
    Ok(source.report().events)
}

#[test]
fn the_recording_of_an_archive_is_found_and_of_several_one_is_asked_for() {
    let long = format!("{}/trace.txt", "folder".repeat(30));
    let packed = gzip_of(&TEXT.repeat(2));
    let three = TEXT.repeat(3);
    let one: &[Entry<'_>] =
        &[("notes.txt", b"notes", 8), (&long, TEXT, 8), ("log.gz", &gzip_of(b"log"), 0)];
    let two: &[Entry<'_>] = &[("a/one.gz", &packed, 0), ("n", b"no", 0), ("b/two.txt", &three, 8)];
    for (form, pack) in [
        ("zip", &(|files: &[Entry<'_>]| zip_with_directory(files, false)) as &dyn Fn(_) -> Vec<u8>),
        ("zip64", &|files: &[Entry<'_>]| zip_with_directory(files, true)),
        ("tar", &|files: &[Entry<'_>]| tar_of(files, false)),
        ("pax", &|files: &[Entry<'_>]| tar_of(files, true)),
        ("tar.gz", &|files: &[Entry<'_>]| gzip_of(&tar_of(files, true))),
    ] {
        assert_eq!(events_of_member(&pack(one), ""), Ok(1), "{form}");
        assert_eq!(events_of_member(&pack(one), "trace.txt"), Ok(1), "{form}");
        assert_eq!(
            events_of_member(&pack(two), "").unwrap_err(),
            "it has 2 recordings: a/one.gz, b/two.txt; name one, as in ARCHIVE:a/one.gz",
            "{form}"
        );
        assert_eq!(events_of_member(&pack(two), "a/one.gz"), Ok(2), "{form}");
        assert_eq!(events_of_member(&pack(two), "two.txt"), Ok(3), "{form}");
        assert_eq!(
            events_of_member(&pack(two), "wo.txt").unwrap_err(),
            "it has no wo.txt; it has a/one.gz, n, b/two.txt",
            "{form}"
        );
        let none = events_of_member(&pack(&[("x", b"1", 0), ("y", b"2", 0)]), "").unwrap_err();
        assert!(none.starts_with("none of its 2 files looks like a recording (x, y)"), "{none}");
    }
    let inner = zip_with_directory(one, false);
    assert_eq!(events_of_member(&tar_of(&[("a.zip", &inner, 0)], false), ""), Ok(1));
    let zstd = zip_with_directory(&[("a.txt", TEXT, 93)], false);
    assert_eq!(events_of_member(&zstd, ""), Ok(1));
    let mut damaged = zip_with_directory(&[("a.txt", TEXT, 0)], false);
    damaged[60] ^= 1;
    let told = events_of_member(&damaged, "").unwrap_err();
    assert!(told.contains("its checksum is wrong"), "{told}");
    let plain = events_of_member(TEXT, "x").unwrap_err();
    assert_eq!(plain, "it is no archive that could hold x");
}

/// An archive whose directory, headers or sizes lie is refused or read to its end; memory stays small.
#[test]
fn archives_that_lie_do_no_harm() {
    let files: &[Entry<'_>] = &[("a.txt", TEXT, 8), ("b.txt", TEXT, 0)];
    let whole = [zip_with_directory(files, true), tar_of(files, true), tar_of(files, false)];
    for archive in whole {
        for at in (0..archive.len()).step_by(3) {
            for byte in [0, 0x7f, 0xff] {
                let mut lying = archive.clone();
                lying[at] = byte;
                let _ = events(&lying);
            }
            let _ = events(&archive[..at]);
        }
    }
}

/// Archives of [`TEXT`] as Python's `zipfile` writes them, in hexadecimal.
const ZIP_LZMA: &str = "504b03043f0002000e000000210076a106df4f0000004300000005000000612e747874090405005d000080000011880b07\
    8161397248fe04df7f4a5ea33ad7c713dbcc6ba903fdde1377f8316384d364078cf1fa7ffe0f47ad6df46e97b66874207ad39bdb5103110964cc82fffffc\
    8b9c00504b01023f033f0002000e000000210076a106df4f00000043000000050000000000000000000000800100000000612e747874504b05060000000001\
    00010033000000720000000000";
const ZIP_BZIP2: &str = "504b03042e0000000c000000210076a106df630000004300000005000000612e747874425a68393141592653592220b40100\
    0005db80201048037292000aae25de00200054500000006844d2794d34c8fd53d403d46632f674c2a0cb39f5c81581b458845366d5fba1aa5896de2c013a3c9\
    c9caef92282d00f280b5f1772453850902220b401504b01022e032e0000000c000000210076a106df6300000043000000050000000000000000000000800100\
    000000612e747874504b0506000000000100010033000000860000000000";

fn of_hex(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn methods_of_zip_are_read_or_named() {
    assert_eq!(events(&of_hex(ZIP_LZMA)), Ok(1));
    let told = events(&of_hex(ZIP_BZIP2)).unwrap_err();
    assert!(told.contains("method 12 (bzip2)") && told.contains("7z x"), "{told}");
    let whole = of_hex(ZIP_LZMA);
    for at in 30..whole.len() - 22 {
        for byte in [0, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let _ = events(&damaged);
        }
    }
}
