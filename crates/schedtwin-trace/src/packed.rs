// SPDX-License-Identifier: GPL-2.0-or-later
//! Unpacks: tells by the first bytes, not by a name, what is packed and with what.
//!
//! | wrapper | first bytes | by |
//! |---|---|---|
//! | gzip, several members | `1f 8b` | `flate2` |
//! | zlib, also behind atrace's `TRACE:` | `78 01`, `78 5e`, `78 9c`, `78 da` | `flate2` |
//! | zstd, several frames | `28 b5 2f fd`, skippable frames | `ruzstd` |
//! | xz, several streams | `fd 37 7a 58 5a 00` | `lzma-rust2` |
//! | zip, the recording in it | `50 4b 03 04` | `flate2`, `ruzstd`, `lzma-rust2`, see `packed/archive.rs` |
//! | tar, the same | `ustar` at byte 257 | `packed/archive.rs` |
//!
//! Up to [`LAYERS_MAX`] wrappers and as many archives are taken off, one around the other; other packers are refused with the command that unpacks
//! them. Everything streams: memory is what the decoders need, at most `XZ_MEMORY_KIB` or zstd's window of 100 MiB, and
//! a file that unpacks to more than `RATIO_MAX` times its size, `FREE_BYTES` apart, is refused
//! while it is being read: a size that a file states is never believed.

mod archive;

pub use archive::{Candidates, split};

use crate::open_readable;
use archive::Choice;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;

/// Wrappers that are taken off a file, and archives beside them: a `tar.gz` may hold a packed trace.
pub const LAYERS_MAX: usize = 2;

/// The most memory that `xz` may take, KiB: twice what `xz -9` needs.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// How many times larger than the file its content may be: text of traces packs 20 to 60 times.
const RATIO_MAX: u64 = 1000;

/// Bytes that a file may unpack to however small it is.
const FREE_BYTES: u64 = 1 << 30;

/// Most bytes of an archive, which is written to a temporary file.
const ARCHIVE_BYTES_MAX: u64 = 16 << 30;

/// Buffer between two layers, and bytes by which a file is recognised.
const BUFFER: usize = 1 << 16;

/// Bytes by which a format is recognised.
pub const HEAD: usize = 4096;

/// A file without its wrappers.
pub struct Unpacked<'a> {
    /// Its content.
    pub reader: Box<dyn BufRead + 'a>,
    /// The first bytes of the content, at most [`HEAD`]; the reader still has them.
    pub head: Vec<u8>,
    /// Wrappers that were taken off, the outer one first.
    pub wrappers: Vec<&'static str>,
}

impl Unpacked<'_> {
    /// The content as a file in which one can seek: a temporary one without a name, at most `bytes_max` large.
    pub fn into_file(mut self, bytes_max: u64) -> io::Result<File> {
        let mut file = tempfile::tempfile()?;
        let copied = io::copy(&mut self.reader.by_ref().take(bytes_max), &mut file)?;
        if copied == bytes_max && !self.reader.fill_buf()?.is_empty() {
            let mib = bytes_max >> 20;
            return Err(io::Error::other(format!("it is larger than {mib} MiB when unpacked")));
        }
        file.flush()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// Wrappers, their first bytes and their decoders; an archive is none, see [`archive`].
const WRAPPERS: [(&str, &[u8], Option<Decode>); 8] = [
    ("gzip", b"\x1f\x8b", Some(gzip)),
    ("zstd", b"\x28\xb5\x2f\xfd", Some(zstd)),
    ("xz", b"\xfd7zXZ\0", Some(xz)),
    (ZIP, b"PK\x03\x04", None),
    ("zlib", b"\x78\x01", Some(zlib)),
    ("zlib", b"\x78\x5e", Some(zlib)),
    ("zlib", b"\x78\x9c", Some(zlib)),
    ("zlib", b"\x78\xda", Some(zlib)),
];

const ZIP: &str = "zip";
const TAR: &str = "tar";

fn is_archive(name: &str) -> bool {
    matches!(name, ZIP | TAR)
}

type Decode = for<'a> fn(Source<'a>) -> io::Result<Box<dyn Read + 'a>>;

/// The wrapper that begins with these bytes.
fn wrapper_of(begins: &[u8]) -> Option<(&'static str, Option<Decode>)> {
    let skippable = matches!(begins, [b'\x50'..=b'\x5f', 0x2a, 0x4d, 0x18, ..]);
    let wrapper = WRAPPERS
        .iter()
        .find(|(name, magic, _)| begins.starts_with(magic) || (skippable && *name == "zstd"));
    let wrapper = wrapper.map(|(name, _, decode)| (*name, *decode));
    wrapper.or_else(|| archive::is_tar(begins).then_some((TAR, None)))
}

/// The first bytes within packed ones, as far as they come; `None`: they are not packed. Of an archive none.
fn head_inside(head: &[u8]) -> Option<Vec<u8>> {
    let (_, decode) = wrapper_of(head)?;
    let source = Source { inner: Box::new(head), seen: Rc::default() };
    let mut inside = Vec::new();
    if let Some(Ok(decoder)) = decode.map(|decode| decode(source)) {
        // The end is missing; what came before it is there.
        let _ = decoder.take(HEAD as u64).read_to_end(&mut inside);
    }
    Some(inside)
}

/// Forms that are not read: their first bytes, what they are, and what to do.
const OTHERS: [(&[u8], &str, &str); 5] = [
    (b"BZh", "packed with bzip2", "make it readable with bzcat FILE | schedtwin replay - ..."),
    (
        b"\x04\x22\x4d\x18",
        "packed with lz4",
        "make it readable with lz4 -dc FILE | schedtwin replay - ...",
    ),
    (b"PK\x05\x06", "an empty zip archive", "take another file"),
    (b"\xff\xfe", UTF_16, ICONV),
    (b"\xfe\xff", UTF_16, ICONV),
];

const UTF_16: &str = "text in UTF-16, as PowerShell's > writes it";
const ICONV: &str = "make it readable with iconv -f utf-16 -t utf-8 FILE | schedtwin replay - ...";

/// The header that atrace writes in front of its packed data (`atrace -z`).
const ATRACE: &[u8] = b"TRACE:\n";

/// Opens a file and takes its wrappers off; `-` is standard input, `ARCHIVE:NAME` a file of an archive.
pub fn open(path: &Path) -> io::Result<Unpacked<'static>> {
    if path.as_os_str() == "-" {
        return unpack(BufReader::with_capacity(BUFFER, io::stdin()));
    }
    let (path, member) = split(path);
    let file = BufReader::with_capacity(BUFFER, open_readable(&path)?);
    unpack_member(file, member.as_deref())
}

/// Takes the wrappers off.
pub fn unpack<'a>(input: impl BufRead + 'a) -> io::Result<Unpacked<'a>> {
    unpack_member(input, None)
}

/// As [`unpack`]; of the first archive the file that is named.
fn unpack_member<'a>(
    input: impl BufRead + 'a,
    mut wanted: Option<&str>,
) -> io::Result<Unpacked<'a>> {
    let mut reader: Box<dyn BufRead + 'a> = Box::new(input);
    let mut wrappers = Vec::new();
    loop {
        let head = head_of(&mut reader)?;
        let packed_at = packed_after_atrace(&head).unwrap_or(0);
        let begins = &head[packed_at..];
        if let Some((_, what, remedy)) = OTHERS.iter().find(|(magic, ..)| begins.starts_with(magic))
        {
            return Err(io::Error::other(format!("it is {what}: {remedy}")));
        }
        let wrapper = wrapper_of(begins);
        let rest = io::Read::chain(Cursor::new(head.clone()), reader);
        let Some((name, decode)) = wrapper else {
            if let Some(wanted) = wanted {
                let why = format!("it is no archive that could hold {wanted}");
                return Err(io::Error::other(why));
            }
            return Ok(Unpacked { reader: Box::new(rest), head, wrappers });
        };
        if wrappers.iter().filter(|of| is_archive(of) == is_archive(name)).count() == LAYERS_MAX {
            return Err(io::Error::other(format!(
                "it is packed {} times ({}, {name}): unpack it first",
                wrappers.len() + 1,
                wrappers.join(", ")
            )));
        }
        wrappers.push(name);
        let mut rest: Box<dyn BufRead + 'a> = Box::new(rest);
        io::copy(&mut rest.by_ref().take(packed_at as u64), &mut io::sink())?;
        let seen = Rc::new(Seen::default());
        let source = Source { inner: rest, seen: seen.clone() };
        let decoder = match decode {
            Some(decode) => decode(source),
            None => archive(source, name, wanted.take()),
        };
        let bounded = match decoder {
            Ok(decoder) => Bounded { decoder, seen, name, out: 0 },
            Err(error) => return Err(told(error, &seen, name)),
        };
        reader = Box::new(BufReader::with_capacity(BUFFER, bounded));
    }
}

/// The first bytes, as many as there are up to [`HEAD`]: a pipe hands out a few at a time.
pub fn head_of(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Where atrace's packed data begins: behind its `TRACE:` and what it said before.
fn packed_after_atrace(head: &[u8]) -> Option<usize> {
    let at = head.windows(ATRACE.len()).position(|window| window == ATRACE)? + ATRACE.len();
    matches!(head[at..], [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]).then_some(at)
}

/// The count of packed bytes that have been read, and whether they have ended.
#[derive(Default)]
struct Seen {
    bytes: Cell<u64>,
    ended: Cell<bool>,
}

/// Packed bytes, counted.
struct Source<'a> {
    inner: Box<dyn BufRead + 'a>,
    seen: Rc<Seen>,
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.seen.bytes.set(self.seen.bytes.get() + count as u64);
        self.seen.ended.set(count == 0 && !into.is_empty());
        Ok(count)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.inner.fill_buf()?;
        self.seen.ended.set(bytes.is_empty());
        Ok(bytes)
    }

    fn consume(&mut self, count: usize) {
        self.seen.bytes.set(self.seen.bytes.get() + count as u64);
        self.inner.consume(count);
    }
}

/// Unpacked bytes, of which there may not be too many.
struct Bounded<'a> {
    decoder: Box<dyn Read + 'a>,
    seen: Rc<Seen>,
    name: &'static str,
    out: u64,
}

impl Read for Bounded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match self.decoder.read(into) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => return Err(told(error, &self.seen, self.name)),
        };
        self.out += count as u64;
        let packed = self.seen.bytes.get();
        if self.out > FREE_BYTES && self.out / RATIO_MAX > packed {
            return Err(io::Error::other(format!(
                "it unpacks ({}) to more than {RATIO_MAX} times its size: no trace does",
                self.name
            )));
        }
        Ok(count)
    }
}

/// A decoder's error: the file ends too early, or it is damaged.
fn told(error: io::Error, seen: &Seen, name: &str) -> io::Error {
    if error.get_ref().is_some_and(|inner| inner.is::<Choice>()) {
        return error;
    }
    if error.kind() == io::ErrorKind::UnexpectedEof || seen.ended.get() {
        return io::Error::other("the file is cut short: its packed data ends too early");
    }
    io::Error::other(format!("its packed data ({name}) is damaged: {error}"))
}

fn gzip(source: Source<'_>) -> io::Result<Box<dyn Read + '_>> {
    Ok(Box::new(flate2::bufread::MultiGzDecoder::new(source)))
}

fn zlib(source: Source<'_>) -> io::Result<Box<dyn Read + '_>> {
    Ok(Box::new(flate2::bufread::ZlibDecoder::new(source)))
}

fn xz(source: Source<'_>) -> io::Result<Box<dyn Read + '_>> {
    Ok(Box::new(lzma_rust2::XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB)))
}

fn zstd(source: Source<'_>) -> io::Result<Box<dyn Read + '_>> {
    Ok(Box::new(ZstdFrames { source: Some(source), frame: None }))
}

/// As [`zstd`], of a file of an archive.
fn zstd_frames(inner: Box<dyn BufRead>) -> Box<dyn Read> {
    let source = Source { inner, seen: Rc::default() };
    Box::new(ZstdFrames { source: Some(source), frame: None })
}

/// Frames of zstd, one after the other.
struct ZstdFrames<'a> {
    /// Between frames.
    source: Option<Source<'a>>,
    frame: Option<ZstdFrame<'a>>,
}

type ZstdFrame<'a> = ruzstd::decoding::StreamingDecoder<Source<'a>, ruzstd::decoding::FrameDecoder>;

impl Read for ZstdFrames<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(into)?;
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
                self.source = self.frame.take().map(ZstdFrame::into_inner);
            }
            let Some(source) = &mut self.source else { return Ok(0) };
            let head = source.fill_buf()?;
            if head.is_empty() {
                return Ok(0);
            }
            if matches!(head, [b'\x50'..=b'\x5f', ..]) {
                skip_frame(source)?;
                continue;
            }
            let source = self.source.take().expect("it was looked at");
            let frame = ruzstd::decoding::StreamingDecoder::new(source);
            let header =
                "a frame's header is damaged, or it asks for a window of more than 100 MiB";
            self.frame = Some(frame.map_err(|_| io::Error::other(header))?);
        }
    }
}

/// A skippable frame: four bytes of magic number, four of length.
fn skip_frame(source: &mut Source<'_>) -> io::Result<()> {
    let mut head = [0; 8];
    source.read_exact(&mut head)?;
    let [.., a, b, c, d] = head;
    if head[1..4] != [0x2a, 0x4d, 0x18] {
        return Err(io::Error::other("unknown frame"));
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if io::copy(&mut source.by_ref().take(length), &mut io::sink())? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// The recording of an archive, or the file that is wanted of it: the archive is written to a temporary file without a name, in
/// which its files are found.
fn archive<'a>(
    mut source: Source<'a>,
    name: &str,
    wanted: Option<&str>,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut file = tempfile::tempfile()?;
    let copied = io::copy(&mut source.by_ref().take(ARCHIVE_BYTES_MAX), &mut file)?;
    if copied == ARCHIVE_BYTES_MAX && !source.fill_buf()?.is_empty() {
        let gib = ARCHIVE_BYTES_MAX >> 30;
        return Err(io::Error::other(format!("it is larger than {gib} GiB")));
    }
    source.seen.ended.set(false);
    archive::content(file, name == ZIP, wanted)
}

/// The first file of an archive, read behind its local header: an archive in a pipe has no directory yet, and a writer that
/// streamed wrote no size.
fn first_of_zip(mut source: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
    let mut head = [0; 30];
    source.read_exact(&mut head)?;
    let number = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (flags, method) = (number(6), number(8));
    let size = u32::from_le_bytes([head[18], head[19], head[20], head[21]]);
    let skip = u64::from(number(26)) + u64::from(number(28));
    if io::copy(&mut source.by_ref().take(skip), &mut io::sink())? < skip {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if flags & 1 != 0 {
        return Err(archive::unpack_first("encrypted"));
    }
    match method {
        8 => Ok(Box::new(flate2::bufread::DeflateDecoder::new(source))),
        // Its end is known by its size alone.
        0 if flags & 8 == 0 && size != u32::MAX => Ok(Box::new(source.take(u64::from(size)))),
        method => Err(archive::not_read(method)),
    }
}

#[cfg(test)]
#[path = "packed/tests.rs"]
mod tests;
