// SPDX-License-Identifier: GPL-2.0-or-later
//! The pages of one CPU in a trace.dat, read block by block.
//!
//! A block is [`BLOCK_BYTES`] of plain pages, or one packed chunk. Packed data begin with the number of
//! their chunks; the stored total size is not used, since one writer left four bytes out of it.

use super::layout::{Buffer, BufferCpu, Packing};
use crate::event::SourceFault;
use crate::tracepoint::{Lost, PageCursor, PageLayout, ring_buffer::PAGE_BYTES_MAX};
use schedtwin_types::CpuId;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of plain pages that are read at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Events lost before the next record, as [`crate::event::TraceEventKind::Lost`] tells it.
type LostBefore = Option<Option<u64>>;

/// The pages of one CPU of one buffer.
pub struct Stream {
    /// The number of its buffer.
    pub buffer: u16,
    /// The CPU.
    pub cpu: CpuId,
    page_bytes: usize,
    packing: Packing,
    /// The next block in the file, and where the data end; packed data: the chunks that are left, once known.
    next: u64,
    end: u64,
    chunks: Option<u32>,
    packed: Vec<u8>,
    block: Vec<u8>,
    /// The place of the block in the file, and of the page in the block.
    block_at: u64,
    page: usize,
    cursor: PageCursor,
    record: Option<crate::tracepoint::ring_buffer::Place>,
    lost: LostBefore,
}

/// The result of a step of a stream.
pub enum Advance {
    /// A record, at this time.
    Record(u64),
    /// A new page.
    Page {
        /// The losses before it.
        lost: Lost,
    },
    /// Something damaged at a place of the file; the stream goes on behind it.
    Damaged {
        /// Where.
        at: u64,
        /// The fault in words.
        why: String,
    },
    /// The file ends before the stream does.
    Cut,
    /// No more records.
    End,
}

impl Stream {
    /// The stream of a CPU.
    pub fn new(index: u16, buffer: &Buffer, cpu: &BufferCpu) -> Stream {
        Stream {
            buffer: index,
            cpu: super::cpu_id(cpu.cpu),
            page_bytes: buffer.page_bytes,
            packing: buffer.packing,
            next: cpu.at,
            end: cpu.at.saturating_add(cpu.bytes),
            chunks: None,
            packed: Vec::new(),
            block: Vec::new(),
            block_at: cpu.at,
            page: 0,
            cursor: PageCursor::default(),
            record: None,
            lost: None,
        }
    }

    /// The current record with its time.
    pub fn record(&self) -> Option<(u64, &[u8])> {
        let place = self.record?;
        let page = &self.block[self.page..];
        Some((place.at, &page[place.start..place.end]))
    }

    /// Where in the file the current page is; of packed pages, their chunk.
    pub fn page_at(&self) -> u64 {
        match self.packing {
            Packing::None => self.block_at + self.page as u64,
            _ => self.block_at,
        }
    }

    /// Notes a loss before the next record; of two, the sum.
    pub fn lose(&mut self, events: Option<u64>) {
        self.lost = Some(match (self.lost, events) {
            (None, events) => events,
            (Some(Some(before)), Some(events)) => Some(before.saturating_add(events)),
            _ => None,
        });
    }

    /// Returns the losses before the current record, and clears them.
    pub fn take_lost(&mut self) -> LostBefore {
        self.lost.take()
    }

    /// Goes on to the next record, or to the next thing to tell.
    pub fn advance<R: Read + Seek>(
        &mut self,
        input: &mut R,
        file_bytes: u64,
        layout: &PageLayout,
    ) -> Result<Advance, SourceFault> {
        self.record = None;
        if let Some(page) = self.block.get(self.page..self.page + self.page_bytes) {
            match self.cursor.next(page) {
                Ok(Some(place)) => {
                    self.record = Some(place);
                    return Ok(Advance::Record(place.at));
                }
                Ok(None) => self.page += self.page_bytes,
                Err(damaged) => {
                    return Ok(Advance::Damaged { at: self.page_at(), why: damaged.0.to_owned() });
                }
            }
        }
        if self.page + self.page_bytes > self.block.len() {
            match self.load(input, file_bytes)? {
                None => {}
                Some(other) => return Ok(other),
            }
        }
        let page = &self.block[self.page..self.page + self.page_bytes];
        match PageCursor::open(layout, page) {
            Ok((cursor, lost)) => {
                self.cursor = cursor;
                Ok(Advance::Page { lost })
            }
            Err(damaged) => {
                // A cursor at its end: the next step goes on behind this page.
                self.cursor = PageCursor::default();
                Ok(Advance::Damaged { at: self.page_at(), why: damaged.0.to_owned() })
            }
        }
    }

    /// Reads the next block; `None` if there is one.
    fn load<R: Read + Seek>(
        &mut self,
        input: &mut R,
        file_bytes: u64,
    ) -> Result<Option<Advance>, SourceFault> {
        self.page = 0;
        self.block.clear();
        if self.packing != Packing::None {
            return self.load_chunk(input, file_bytes);
        }
        let stated = self.end.saturating_sub(self.next);
        let left = self.end.min(file_bytes).saturating_sub(self.next);
        let block = (BLOCK_BYTES / self.page_bytes).max(1) * self.page_bytes;
        let size = left.min(block as u64) / self.page_bytes as u64 * self.page_bytes as u64;
        if size == 0 {
            self.next = self.end;
            return Ok(Some(if stated > 0 && stated > left { self.cut() } else { Advance::End }));
        }
        input.seek(SeekFrom::Start(self.next))?;
        input.by_ref().take(size).read_to_end(&mut self.block)?;
        self.block_at = self.next;
        self.next += size;
        if self.block.len() < self.page_bytes {
            return Ok(Some(self.cut()));
        }
        Ok(None)
    }

    fn cut(&mut self) -> Advance {
        self.next = self.end;
        self.chunks = Some(0);
        self.block.clear();
        Advance::Cut
    }

    /// Reads the next packed chunk.
    fn load_chunk<R: Read + Seek>(
        &mut self,
        input: &mut R,
        file_bytes: u64,
    ) -> Result<Option<Advance>, SourceFault> {
        let order = self.packing.order();
        let word = |input: &mut R, at: u64| -> Result<Option<u32>, SourceFault> {
            let mut bytes = [0; 4];
            if at.checked_add(4).is_none_or(|end| end > file_bytes) {
                return Ok(None);
            }
            input.seek(SeekFrom::Start(at))?;
            input.read_exact(&mut bytes)?;
            Ok(Some(order.u32(bytes)))
        };
        let chunks = match self.chunks {
            Some(chunks) => chunks,
            None => match word(input, self.next)? {
                None => return Ok(Some(self.cut())),
                Some(chunks) => {
                    self.next += 4;
                    chunks
                }
            },
        };
        if chunks == 0 {
            return Ok(Some(Advance::End));
        }
        self.chunks = Some(chunks - 1);
        let (Some(packed), Some(unpacked)) = (word(input, self.next)?, word(input, self.next + 4)?)
        else {
            return Ok(Some(self.cut()));
        };
        self.block_at = self.next;
        let damaged = |stream: &mut Stream, why: String| {
            stream.block.clear();
            Ok(Some(Advance::Damaged { at: stream.block_at, why }))
        };
        let begin = self.next + 8;
        self.next = begin.saturating_add(u64::from(packed));
        if self.next > file_bytes {
            return Ok(Some(self.cut()));
        }
        let pages = unpacked as usize;
        if pages == 0 || pages > PAGE_BYTES_MAX || !pages.is_multiple_of(self.page_bytes) {
            let page_bytes = self.page_bytes;
            return damaged(
                self,
                format!("a chunk of {pages} bytes, which is no number of pages of {page_bytes}"),
            );
        }
        self.packed.clear();
        input.seek(SeekFrom::Start(begin))?;
        input.by_ref().take(u64::from(packed)).read_to_end(&mut self.packed)?;
        match self.packing.unpack(&self.packed, pages) {
            Ok(block) => {
                self.block = block;
                Ok(None)
            }
            Err(why) => damaged(self, format!("a packed chunk cannot be unpacked: {why}")),
        }
    }
}

/// Reads exactly `size` bytes out of a decoder that must then end.
pub fn exactly(mut decoder: impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.by_ref().take(size as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() != size {
        let more = if bytes.len() > size { "more" } else { "less" };
        return Err(io::Error::other(format!("it holds {more} than the {size} bytes it states")));
    }
    Ok(bytes)
}
