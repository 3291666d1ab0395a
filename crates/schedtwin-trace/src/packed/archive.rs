// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the recording in an archive: zip or tar.
//!
//! Bug reports of Android and archives of a folder hold notes beside a recording, often in front of it. The beginning of
//! each file is looked at, also of files that are packed once more. The only one that looks like a recording is
//! taken; of several the user names one (`FILE.zip:NAME`, see [`split`]), which may be the end of its path.
//!
//! The directory of a zip is at its end, in two forms (archives of more than 4 GiB have zip64's); a zip without one, as from a
//! pipe that was cut, has its first file for the only guess. A tar has a header in front of each file; long names stand in an
//! entry of their own (GNU's `L`, the records of pax).
//!
//! Not the crate `zip`: it keeps all entries of a directory, so an archive of small entries takes all memory. Here at most
//! [`FILES_MAX`] of them are kept, with names of at most [`NAME_BYTES_MAX`].

use super::{first_of_zip, head_of};
use crate::ftrace_read::parse_line;
use crate::perf_data::is_perf_data;
use crate::perfetto_source::is_perfetto;
use crate::trace_dat::is_trace_dat;
use schedtwin_types::printable;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Files of an archive that are looked into.
const FILES_MAX: usize = 1 << 14;
/// Entries of an archive that are passed over on the way.
const ENTRIES_MAX: usize = 1 << 20;
/// Longest name of a file.
const NAME_BYTES_MAX: usize = 1024;
/// Names that an error tells.
const NAMES_TOLD: usize = 8;
/// The end of a zip's directory lies within so many bytes of the archive's end: its own 22, and a comment.
const END_BYTES: u64 = 22 + 65_535;
/// A block of a tar.
const BLOCK: usize = 512;

/// A path and the name of a file within it: `bugreport.zip:FS/data/trace.pftrace`. A file whose own name has the colon comes
/// first.
///
/// ```
/// use schedtwin_trace::packed::split;
/// use std::path::Path;
///
/// assert_eq!(split(Path::new("no-such.zip:a.dat")), ("no-such.zip:a.dat".into(), None));
/// ```
pub fn split(path: &Path) -> (PathBuf, Option<String>) {
    if let Some(text) = path.to_str().filter(|_| !path.exists()) {
        for (at, _) in text.match_indices(':') {
            let (archive, name) = (Path::new(&text[..at]), &text[at + 1..]);
            if archive.exists() && !name.is_empty() {
                return (archive.to_owned(), Some(name.to_owned()));
            }
        }
    }
    (path.to_owned(), None)
}

/// The user has to say which file is meant, named one that is not there, or has to unpack it: no damage of the archive.
#[derive(Debug)]
pub struct Choice(String);

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Choice {}

fn choice(text: String) -> io::Error {
    io::Error::other(Choice(text))
}

/// A file of an archive.
#[derive(Clone, Debug)]
pub struct Member {
    name: String,
    /// Where its local header (zip) or its content (tar) is.
    at: u64,
    form: Form,
}

/// The form of a file's content.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// In a zip: as its directory tells.
    Zip { flags: u16, method: u16, packed: u64, crc: u32 },
    /// As it is.
    Plain { bytes: u64 },
}

impl Member {
    /// Its content.
    pub fn open(&self, mut file: File) -> io::Result<Box<dyn Read>> {
        file.seek(SeekFrom::Start(self.at))?;
        let mut reader = BufReader::with_capacity(super::BUFFER, file);
        let (flags, method, packed, crc) = match self.form {
            Form::Plain { bytes } => return Ok(Box::new(reader.take(bytes))),
            Form::Zip { flags, method, packed, crc } => (flags, method, packed, crc),
        };
        let mut head = [0; 30];
        reader.read_exact(&mut head)?;
        let skip = number(&head, 26, 2).zip(number(&head, 28, 2)).map_or(0, |(a, b)| a + b);
        io::copy(&mut reader.by_ref().take(skip), &mut io::sink())?;
        if flags & 1 != 0 {
            return Err(unpack_first("encrypted"));
        }
        let content: Box<dyn Read> = match method {
            0 => Box::new(reader.take(packed)),
            8 => Box::new(flate2::bufread::DeflateDecoder::new(reader.take(packed))),
            14 => {
                // With an end mark, or as long as the header says, if the writer knew that.
                let told = if flags & (1 << 1 | 1 << 3) == 0 { number(&head, 22, 4) } else { None };
                lzma_of_zip(reader.take(packed), told.unwrap_or(u64::MAX))?
            }
            93 => super::zstd_frames(Box::new(reader.take(packed))),
            95 => {
                let limit = super::XZ_MEMORY_KIB;
                Box::new(lzma_rust2::XzReader::new_mem_limit(reader.take(packed), true, limit))
            }
            method => return Err(not_read(method)),
        };
        Ok(Box::new(Checked { content, crc: flate2::Crc::new(), expected: crc }))
    }

    /// As [`Member::open`], of a file that stays.
    fn head(&self, file: &File) -> Vec<u8> {
        // One that is encrypted, damaged or packed in another way is no candidate; if it is taken all the same, that is told.
        let content = file.try_clone().and_then(|file| self.open(file));
        content.and_then(|mut content| head_of(&mut content)).unwrap_or_default()
    }
}

/// The error of a file that another program can unpack.
pub(super) fn unpack_first(what: &str) -> io::Error {
    choice(format!("it is {what}: unpack it with 7z x ARCHIVE, and give the file in it"))
}

/// The error of a file that is packed in a way that is not read.
pub(super) fn not_read(method: u16) -> io::Error {
    let known = METHODS.iter().find(|(number, _)| *number == method);
    let name = known.map_or(String::new(), |(_, name)| format!(" ({name})"));
    unpack_first(&format!("packed with method {method}{name} of zip, which is not read"))
}

/// Methods of zip that are not read, by number; the last four are where the archive has a directory.
const METHODS: [(u16, &str); 12] = [
    (1, "shrink"),
    (6, "implode"),
    (9, "deflate64"),
    (12, "bzip2"),
    (19, "lz77"),
    (94, "mp3"),
    (97, "wavpack"),
    (98, "ppmd"),
    (0, "stored, without its size"),
    (14, "lzma"),
    (93, "zstd"),
    (95, "xz"),
];

/// Content of method 14: the version of the packer and the length of the properties, two bytes each; the properties; LZMA.
fn lzma_of_zip(mut packed: impl Read + 'static, bytes: u64) -> io::Result<Box<dyn Read>> {
    let mut head = [0; 9];
    packed.read_exact(&mut head)?;
    let [_, _, 5, 0, properties, dictionary @ ..] = head else {
        return Err(io::Error::other("its LZMA properties are none of zip's"));
    };
    let dictionary = u32::from_le_bytes(dictionary);
    if lzma_rust2::lzma_get_memory_usage_by_props(dictionary, properties)? > super::XZ_MEMORY_KIB {
        return Err(io::Error::other("it needs more memory than is taken for it: unpack it first"));
    }
    let reader =
        lzma_rust2::LzmaReader::new_with_props(packed, bytes, properties, dictionary, None)?;
    Ok(Box::new(reader))
}

/// Content whose checksum is compared at its end.
struct Checked {
    content: Box<dyn Read>,
    crc: flate2::Crc,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(into)?;
        self.crc.update(&into[..count]);
        if count == 0 && !into.is_empty() && self.crc.sum() != self.expected {
            return Err(io::Error::other("its checksum is wrong"));
        }
        Ok(count)
    }
}

/// The recording of an archive, or the file that was named. `None`: there is no directory.
pub fn recording_in(file: &File, zip: bool, wanted: Option<&str>) -> io::Result<Option<Member>> {
    let mut found = Found { wanted, members: Vec::new(), all: 0, sample: Vec::new() };
    let any = match zip {
        true => zip_members(file, &mut found)?,
        false => tar_members(file, &mut found)?,
    };
    if !any && wanted.is_none() {
        return Ok(None);
    }
    let Found { mut members, all, sample, .. } = found;
    if let Some(wanted) = wanted {
        // The whole name is better than the end of one.
        if members.iter().any(|member| member.name == wanted) {
            members.retain(|member| member.name == wanted);
        }
        return match members.len() {
            1 => Ok(members.pop()),
            0 => Err(choice(format!("it has no {}; it has {}", shown(wanted), list(&sample, all)))),
            _ => Err(ask("files of that name", &names_of(&members), "ARCHIVE:")),
        };
    }
    let mut candidates = Candidates { all, sample, ..Candidates::new("ARCHIVE:") };
    for member in members {
        let head = member.head(file);
        candidates.weigh(shown(&member.name), member, &head);
    }
    candidates.only().map(Some)
}

/// Files among which the recording is sought: those whose beginnings look most like one.
pub struct Candidates<T> {
    /// Where a name goes that the user gives: `ARCHIVE:`.
    before_name: &'static str,
    best: u8,
    found: Vec<(String, T)>,
    all: usize,
    sample: Vec<String>,
}

impl<T> Candidates<T> {
    /// None yet.
    pub fn new(before_name: &'static str) -> Candidates<T> {
        Candidates { before_name, best: 0, found: Vec::new(), all: 0, sample: Vec::new() }
    }

    /// Whether there is no file.
    fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Whether one looks like a recording.
    pub fn is_any_like(&self) -> bool {
        self.best > 0
    }

    /// Adds a file: its name, and its beginning.
    pub fn push(&mut self, name: String, file: T, head: &[u8]) {
        let name = shown(&name);
        self.all += 1;
        if self.sample.len() < NAMES_TOLD {
            self.sample.push(name.clone());
        }
        self.weigh(name, file, head);
    }

    fn weigh(&mut self, name: String, file: T, head: &[u8]) {
        let likeness = likeness(head, true);
        if likeness > self.best {
            self.best = likeness;
            self.found.clear();
        }
        if likeness == self.best {
            self.found.push((name, file));
        }
    }

    /// The only one, or an error that asks for one.
    pub fn only(mut self) -> io::Result<T> {
        if self.found.len() == 1 {
            return Ok(self.found.remove(0).1);
        }
        let before = self.before_name;
        if self.is_empty() {
            return Err(choice("it has no files".to_owned()));
        }
        if self.best == 0 {
            let (all, sample) = (self.all, list(&self.sample, self.all));
            let first = self.sample.first().map_or("NAME", String::as_str);
            return Err(choice(format!(
                "none of its {all} files looks like a recording ({sample}): name one, as in {before}{first}"
            )));
        }
        let what = if self.best == 1 { "files that may hold a recording" } else { "recordings" };
        let names: Vec<String> = self.found.into_iter().map(|(name, _)| name).collect();
        Err(ask(what, &names, before))
    }
}

fn names_of(members: &[Member]) -> Vec<String> {
    members.iter().map(|member| shown(&member.name)).collect()
}

fn shown(name: &str) -> String {
    printable::line(name).into_owned()
}

/// Names, as many as an error tells.
fn list(names: &[String], all: usize) -> String {
    let told = names.iter().take(NAMES_TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.saturating_sub(names.len().min(NAMES_TOLD)) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

fn ask(what: &str, names: &[String], before: &str) -> io::Error {
    let count = names.len();
    let told = list(names, count);
    choice(format!("it has {count} {what}: {told}; name one, as in {before}{}", names[0]))
}

/// The files of an archive, as they are found.
struct Found<'a> {
    wanted: Option<&'a str>,
    members: Vec<Member>,
    /// How many there are, and the first names.
    all: usize,
    sample: Vec<String>,
}

impl Found<'_> {
    /// Keeps a file that is a candidate; `false`: there are too many.
    fn push(&mut self, name: &[u8], at: u64, form: Form) -> bool {
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).into_owned();
        self.all += 1;
        if self.sample.len() < NAMES_TOLD {
            self.sample.push(shown(&name));
        }
        let is_wanted = |wanted: &str| {
            name.strip_suffix(wanted).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        if self.wanted.is_none_or(is_wanted) {
            self.members.push(Member { name, at, form });
        }
        self.members.len() < FILES_MAX && self.all < ENTRIES_MAX
    }
}

/// A number in little-endian order.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// How much the beginning of a file looks like a recording: 0 not at all, 2 it is one.
fn likeness(head: &[u8], packed_too: bool) -> u8 {
    if is_trace_dat(head) || is_perf_data(head) {
        return 2;
    }
    // The first byte of a Perfetto trace is a line feed, so text may begin with it, too.
    if is_perfetto(head) && head.iter().take(64).any(|byte| *byte < b' ' && *byte != b'\n') {
        return 2;
    }
    let text = String::from_utf8_lossy(head);
    let is_trace = |line: &str| line.starts_with("# tracer:") || parse_line(line).is_ok();
    if text.lines().any(is_trace) || text.contains("\"systemTraceEvents\"") {
        return 2;
    }
    if packed_too && let Some(inside) = super::head_inside(head) {
        // What cannot be looked into may be one.
        return likeness(&inside, false).max(1);
    }
    let page = text.trim_start().to_ascii_lowercase().starts_with("<!doctype html");
    u8::from(page || text.contains("TRACE:"))
}

/// The files that a zip's directory names; `false` without a directory.
fn zip_members(mut file: &File, found: &mut Found<'_>) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end)?;
    let Some(at) = end.windows(4).rposition(|word| word == b"PK\x05\x06") else {
        return Ok(false);
    };
    let place = match number(&end, at + 16, 4) {
        Some(0xffff_ffff) => place_of_zip64(file, from + at as u64)?,
        place => place,
    };
    let Some(place) = place.filter(|place| *place < length) else { return Ok(false) };
    file.seek(SeekFrom::Start(place))?;
    let mut reader = BufReader::new(file);
    loop {
        let mut entry = [0; 46];
        if reader.read_exact(&mut entry).is_err() || !entry.starts_with(b"PK\x01\x02") {
            return Ok(true);
        }
        let size = |at| number(&entry, at, 2).unwrap_or(0);
        let (mut name, mut extra) = (Vec::new(), Vec::new());
        reader.by_ref().take(size(28)).read_to_end(&mut name)?;
        reader.by_ref().take(size(30)).read_to_end(&mut extra)?;
        io::copy(&mut reader.by_ref().take(size(32)), &mut io::sink())?;
        let mut of_zip64 = zip64_numbers(&extra);
        // Those that do not fit stand in the extra field, in this order.
        let mut wide = |at| match number(&entry, at, 4) {
            Some(0xffff_ffff) => of_zip64.next(),
            narrow => narrow,
        };
        let (bytes, packed, header) = (wide(24), wide(20), wide(42));
        let (Some(1..), Some(packed), Some(header)) = (bytes, packed, header) else { continue };
        if header >= length || name.ends_with(b"/") {
            continue;
        }
        let (flags, method) = (size(8) as u16, size(10) as u16);
        let crc = number(&entry, 16, 4).unwrap_or(0) as u32;
        if !found.push(&name, header, Form::Zip { flags, method, packed, crc }) {
            return Ok(true);
        }
    }
}

/// Where the directory of a zip64 is: a record in front of the end says where a record is that says it.
fn place_of_zip64(mut file: &File, end: u64) -> io::Result<Option<u64>> {
    let Some(locator) = end.checked_sub(20) else { return Ok(None) };
    let mut bytes = [0; 56];
    file.seek(SeekFrom::Start(locator))?;
    file.read_exact(&mut bytes[..20])?;
    let Some(record) = number(&bytes, 8, 8).filter(|_| bytes.starts_with(b"PK\x06\x07")) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(record))?;
    if file.read_exact(&mut bytes).is_err() || !bytes.starts_with(b"PK\x06\x06") {
        return Ok(None);
    }
    Ok(number(&bytes, 48, 8))
}

/// The wide numbers in a file's extra field.
fn zip64_numbers(extra: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let mut rest = extra;
    let mut of_zip64: &[u8] = &[];
    while let (Some(id), Some(size)) = (number(rest, 0, 2), number(rest, 2, 2)) {
        let Some(data) = rest.get(4..4 + size as usize) else { break };
        if id == 1 {
            of_zip64 = data;
            break;
        }
        rest = &rest[4 + size as usize..];
    }
    of_zip64.chunks_exact(8).filter_map(|bytes| number(bytes, 0, 8))
}

/// Whether these are the first bytes of a tar.
pub fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar") && head.get(..BLOCK).is_some_and(has_right_sum)
}

/// Whether the checksum of a tar's header is right: the sum of its bytes, those of the sum itself taken as spaces.
fn has_right_sum(header: &[u8]) -> bool {
    let byte =
        |(at, byte): (usize, &u8)| u64::from(if (148..156).contains(&at) { 32 } else { *byte });
    octal(&header[148..156]) == Some(header.iter().enumerate().map(byte).sum())
}

/// A number of a tar's header: octal digits, or binary behind a byte of 128.
fn octal(field: &[u8]) -> Option<u64> {
    if let [0x80, rest @ ..] = field {
        let (high, low) = rest.split_at(rest.len().saturating_sub(8));
        let low = low.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        return high.iter().all(|byte| *byte == 0).then_some(low);
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

/// The files of a tar.
fn tar_members(mut file: &File, found: &mut Found<'_>) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let (mut at, mut long_name, mut long_size) = (0, None, None);
    for _ in 0..ENTRIES_MAX {
        let mut header = [0; BLOCK];
        file.seek(SeekFrom::Start(at))?;
        if file.read_exact(&mut header).is_err() || !has_right_sum(&header) {
            break;
        }
        let Some(mut bytes) = octal(&header[124..136]) else { break };
        let content = at + BLOCK as u64;
        match header[156] {
            b'L' | b'x' => {
                let mut text = Vec::new();
                file.take(bytes.min(1 << 16)).read_to_end(&mut text)?;
                if header[156] == b'L' {
                    long_name = Some(until_nul(&text).to_vec());
                } else {
                    long_name = of_pax(&text, b"path").map(<[u8]>::to_vec).or(long_name);
                    long_size = of_pax(&text, b"size")
                        .and_then(|size| std::str::from_utf8(size).ok()?.parse::<u64>().ok());
                }
            }
            kind => {
                bytes = long_size.take().unwrap_or(bytes);
                let name = long_name.take().unwrap_or_else(|| short_name(&header));
                let is_file = matches!(kind, b'0' | 0 | b'7') && !name.ends_with(b"/");
                if is_file
                    && bytes > 0
                    && content < length
                    && !found.push(&name, content, Form::Plain { bytes })
                {
                    break;
                }
            }
        }
        let Some(next) = bytes.checked_next_multiple_of(BLOCK as u64) else { break };
        at = content.saturating_add(next);
    }
    Ok(true)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

/// The name in a tar's header, behind the folder that it may name apart.
fn short_name(header: &[u8; BLOCK]) -> Vec<u8> {
    let (name, folder) = (until_nul(&header[..100]), until_nul(&header[345..500]));
    // GNU's own headers have times there.
    if folder.is_empty() || header[257..264] == *b"ustar  " {
        return name.to_vec();
    }
    [folder, b"/", name].concat()
}

/// A record of pax: `LENGTH KEY=VALUE` and a line feed.
fn of_pax<'a>(mut text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    while !text.is_empty() {
        let space = text.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
        let record = text.get(space + 1..length)?;
        if let Some(value) = record.strip_prefix(key).and_then(|rest| rest.strip_prefix(b"=")) {
            return value.strip_suffix(b"\n");
        }
        text = &text[length..];
    }
    None
}

/// The content of an archive: of the recording in it, or of the file that was named.
pub fn content(file: File, zip: bool, wanted: Option<&str>) -> io::Result<Box<dyn Read>> {
    match recording_in(&file, zip, wanted)? {
        Some(member) => member.open(file),
        None => {
            let mut file = file;
            file.seek(SeekFrom::Start(0))?;
            first_of_zip(BufReader::with_capacity(super::BUFFER, file))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_records_of_a_tar_are_read() {
        assert_eq!(octal(b"00000001750\0"), Some(1000));
        assert_eq!(octal(b"\x80\0\0\0\0\0\0\x02\0\0\0\0"), Some(2 << 32));
        assert_eq!((octal(b"        "), octal(b"9\0")), (Some(0), None));
        let pax = b"11 path=ab\n12 size=123\n";
        assert_eq!(of_pax(pax, b"path"), Some(&b"ab"[..]));
        assert_eq!(of_pax(pax, b"size"), Some(&b"123"[..]));
        assert_eq!(of_pax(b"99 path=ab\n", b"path"), None);
    }

    #[test]
    fn head_lengths_are_bounded() {
        assert_eq!(zip64_numbers(&[1, 0, 255, 255]).count(), 0);
        let number_of = [&[9, 0, 1, 0, 7, 1, 0, 8, 0][..], &5_u64.to_le_bytes()].concat();
        assert_eq!(zip64_numbers(&number_of).collect::<Vec<_>>(), [5]);
        let long = super::super::HEAD;
        assert!(!is_tar(&vec![0; long]));
    }
}
