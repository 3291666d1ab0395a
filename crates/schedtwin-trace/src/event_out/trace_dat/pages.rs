// SPDX-License-Identifier: GPL-2.0-or-later
//! Pages of the kernel's ring buffer, as they stand in a trace.dat.
//!
//! A page begins with a time and the bytes of its data; a record with the time since the one before it (27 bits of
//! nanoseconds, a record of its own for more) and its length. Pages of all CPUs wait in one temporary file; what is
//! kept in memory is the number of each page.

use schedtwin_types::Ns;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Bytes of a page, and of its head: the time and the length.
pub const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 16;

/// The longest record: what fits into a page behind the two words of a long record's head.
pub const RECORD_BYTES_MAX: usize = PAGE_BYTES - HEAD_BYTES - 8 - 8;

/// Kinds of records beside data of up to 112 bytes.
const TYPE_LONG: u32 = 0;
const TYPE_TIME_EXTEND: u32 = 30;
const SHORT_WORDS_MAX: usize = 28;

/// The largest difference of times that a record holds itself.
const DELTA_MAX: u64 = (1 << 27) - 1;

/// Events were lost before a page; and their number stands behind its data.
const LOST: u64 = 1 << 31;
const LOST_STORED: u64 = 1 << 30;

/// The page of a CPU that is being filled.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    /// Time of the last record.
    last: Ns,
    lost: Option<Option<u64>>,
    /// Numbers of its full pages in the spool.
    full: Vec<u32>,
}

/// Pages of all CPUs.
pub struct Pages {
    cpus: Vec<Page>,
    spool: BufWriter<File>,
    spooled: u32,
}

impl Pages {
    /// None yet.
    pub fn new() -> io::Result<Pages> {
        let spool = BufWriter::with_capacity(1 << 18, tempfile::tempfile()?);
        Ok(Pages { cpus: Vec::new(), spool, spooled: 0 })
    }

    fn cpu(&mut self, cpu: usize) -> &mut Page {
        if cpu >= self.cpus.len() {
            self.cpus.resize_with(cpu + 1, Page::default);
        }
        &mut self.cpus[cpu]
    }

    /// Events of a CPU were lost here.
    pub fn lose(&mut self, cpu: usize, events: Option<u64>) -> io::Result<()> {
        self.end_page(cpu)?;
        let lost = &mut self.cpu(cpu).lost;
        *lost = Some(match (*lost, events) {
            (Some(Some(before)), Some(more)) => Some(before.saturating_add(more)),
            (None, events) => events,
            _ => None,
        });
        Ok(())
    }

    /// Adds a record, a multiple of 4 bytes and at most [`RECORD_BYTES_MAX`].
    pub fn record(&mut self, cpu: usize, at: Ns, record: &[u8]) -> io::Result<()> {
        assert!(record.len().is_multiple_of(4) && record.len() <= RECORD_BYTES_MAX);
        let page = self.cpu(cpu);
        // Head, time and a word for the length; behind the data there is place for the number of lost events.
        let needs = record.len() + 16;
        let begun = !page.bytes.is_empty();
        let full = page.bytes.len() + needs + 8 > PAGE_BYTES;
        let back = at < page.last;
        let far = at.saturating_sub(page.last) >> 59 != 0;
        if begun && (full || back || far) {
            self.end_page(cpu)?;
        }
        let page = self.cpu(cpu);
        if page.bytes.is_empty() {
            page.bytes.extend(at.to_ne_bytes());
            page.bytes.extend([0; 8]);
            page.last = at;
        }
        let delta = at - page.last;
        page.last = at;
        let short = if delta > DELTA_MAX {
            let low = (delta & DELTA_MAX) as u32;
            page.bytes.extend(head(TYPE_TIME_EXTEND, low).to_ne_bytes());
            page.bytes.extend(((delta >> 27) as u32).to_ne_bytes());
            0
        } else {
            delta as u32
        };
        let words = record.len() / 4;
        if (1..=SHORT_WORDS_MAX).contains(&words) {
            page.bytes.extend(head(words as u32, short).to_ne_bytes());
        } else {
            page.bytes.extend(head(TYPE_LONG, short).to_ne_bytes());
            page.bytes.extend((record.len() as u32 + 4).to_ne_bytes());
        }
        page.bytes.extend(record);
        Ok(())
    }

    fn end_page(&mut self, cpu: usize) -> io::Result<()> {
        let number = self.spooled;
        let page = self.cpu(cpu);
        if page.bytes.is_empty() {
            return Ok(());
        }
        let data = (page.bytes.len() - HEAD_BYTES) as u64;
        let commit = match page.lost.take() {
            None => data,
            Some(None) => data | LOST,
            Some(Some(events)) => {
                page.bytes.extend(events.to_ne_bytes());
                data | LOST | LOST_STORED
            }
        };
        page.bytes[8..16].copy_from_slice(&commit.to_ne_bytes());
        page.bytes.resize(PAGE_BYTES, 0);
        page.full.push(number);
        let bytes = std::mem::take(&mut page.bytes);
        self.spool.write_all(&bytes)?;
        self.spooled = number.checked_add(1).ok_or_else(|| io::Error::other("too many pages"))?;
        let page = self.cpu(cpu);
        page.bytes = bytes;
        page.bytes.clear();
        Ok(())
    }

    /// Ends all pages; those of each CPU, to be read in the order of the CPUs.
    pub fn finish(mut self) -> io::Result<Vec<(u64, CpuReader)>> {
        for cpu in 0..self.cpus.len() {
            self.end_page(cpu)?;
        }
        let spool = self.spool.into_inner().map_err(|error| error.into_error())?;
        let reader = |page: Page| {
            let bytes = page.full.len() as u64 * PAGE_BYTES as u64;
            Ok((bytes, CpuReader { spool: spool.try_clone()?, pages: page.full, next: 0 }))
        };
        self.cpus.into_iter().map(reader).collect()
    }
}

fn head(kind: u32, delta: u32) -> u32 {
    // The kind is in the low bits of a little-endian file, in the high ones of a big-endian one.
    if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind }
}

/// Reads the pages of a CPU.
pub struct CpuReader {
    spool: File,
    pages: Vec<u32>,
    next: usize,
}

impl Read for CpuReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let page = self.next / PAGE_BYTES;
        let Some(number) = self.pages.get(page) else { return Ok(0) };
        let within = self.next % PAGE_BYTES;
        self.spool.seek(SeekFrom::Start(u64::from(*number) * PAGE_BYTES as u64 + within as u64))?;
        let bytes = buffer.len().min(PAGE_BYTES - within);
        let read = self.spool.read(&mut buffer[..bytes])?;
        self.next += read;
        Ok(read)
    }
}

impl CpuReader {
    /// A reader that reads whole pages.
    pub fn buffered(self) -> BufReader<CpuReader> {
        BufReader::with_capacity(PAGE_BYTES, self)
    }
}
