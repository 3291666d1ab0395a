// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the recording in a zip archive.
//!
//! Bug reports of Android and archives of a folder hold notes beside a recording, often in front of it. The directory at the
//! archive's end names all files; the beginning of each is looked at, and the first that looks like a recording is taken.
//! Without a directory, as in an archive that was cut, and where none does, the first file is the only guess.

use super::{HEAD, first_of_zip};
use crate::ftrace_read::parse_line;
use crate::perf_data::is_perf_data;
use crate::perfetto_source::is_perfetto;
use crate::trace_dat::is_trace_dat;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Files of an archive that are looked into.
const FILES_MAX: usize = 4096;
/// The end of the directory lies within so many bytes of the archive's end: its own 22, and a comment.
const END_BYTES: u64 = 22 + 65_535;

/// Where the local header of the recording is. `None`: no file looks like one, or there is no directory.
pub fn recording_in(file: &mut File) -> io::Result<Option<u64>> {
    let mut best: Option<(u8, u64)> = None;
    for at in headers(file)? {
        file.seek(SeekFrom::Start(at))?;
        let mut head = Vec::with_capacity(HEAD);
        // One that is encrypted or packed in another way is no candidate; if it is taken all the same, that is told.
        let Ok(content) = first_of_zip(BufReader::new(&*file)) else { continue };
        // What is damaged later is told when it is read.
        let _ = content.take(HEAD as u64).read_to_end(&mut head);
        let likeness = likeness(&head);
        if likeness > best.map_or(0, |(best, _)| best) {
            best = Some((likeness, at));
        }
    }
    Ok(best.map(|(_, at)| at))
}

/// How much the beginning of a file looks like a recording: 0 not at all, 2 it is one.
fn likeness(head: &[u8]) -> u8 {
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
    let packed = super::WRAPPERS.iter().any(|(_, magic, _)| head.starts_with(magic));
    let page = text.trim_start().to_ascii_lowercase().starts_with("<!doctype html");
    u8::from(packed || page || text.contains("TRACE:"))
}

/// The places of all local headers that the directory names; none without a directory.
fn headers(file: &mut File) -> io::Result<Vec<u64>> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    (&*file).take(END_BYTES).read_to_end(&mut end)?;
    let Some(at) = end.windows(4).rposition(|word| word == b"PK\x05\x06") else {
        return Ok(Vec::new());
    };
    let number = |bytes: &[u8], at: usize, size: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    // An archive of more than 4 GiB has its place in another record; of such a one the first file is taken.
    let Some(directory) = number(&end, at + 16, 4).filter(|place| *place < length) else {
        return Ok(Vec::new());
    };
    file.seek(SeekFrom::Start(directory))?;
    let mut reader = BufReader::new(&*file);
    let mut headers = Vec::new();
    while headers.len() < FILES_MAX {
        let mut entry = [0; 46];
        if reader.read_exact(&mut entry).is_err() || !entry.starts_with(b"PK\x01\x02") {
            break;
        }
        let skip: u64 = [28, 30, 32].iter().filter_map(|at| number(&entry, *at, 2)).sum();
        if io::copy(&mut reader.by_ref().take(skip), &mut io::sink())? < skip {
            break;
        }
        // A folder has no content.
        if number(&entry, 24, 4) != Some(0)
            && let Some(place) = number(&entry, 42, 4).filter(|place| *place < length)
        {
            headers.push(place);
        }
    }
    Ok(headers)
}
