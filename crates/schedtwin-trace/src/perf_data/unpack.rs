// SPDX-License-Identifier: GPL-2.0-or-later
//! Packed records: pieces of one Zstandard stream that perf flushes but never ends.
//!
//! A record may be cut anywhere, by pieces and by blocks; so may a block by pieces. The decoder keeps the
//! last window of what it unpacked until its frame ends, and perf's never does. Hence:
//! - At the end of the file an empty last block is added, which ends the frame.
//! - A round that ends is noted with the number of bytes that had been unpacked at most by then; it ends for us when
//!   that many have come out.

use crate::tracepoint::ByteOrder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::collections::VecDeque;

/// Longest window: perf's highest level asks for this much.
const WINDOW_BYTES_MAX: u64 = 128 << 20;

/// A block is at most this large, and so is what waits for its end.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// The longest head of a frame.
const FRAME_HEAD_BYTES_MAX: usize = 18;

/// A last block of no bytes.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];

/// Unpacks records.
#[derive(Default)]
pub struct Unpacker {
    decoder: Option<FrameDecoder>,
    window: u64,
    in_frame: bool,
    /// Pieces that are no whole block yet.
    pieces: Vec<u8>,
    /// Unpacked bytes: those before `next` have been taken.
    unpacked: Vec<u8>,
    next: usize,
    /// Bytes that came out of the decoder, and those of them that were taken.
    out: u64,
    taken: u64,
    /// Ends of rounds: bytes that have to be taken before.
    rounds: VecDeque<u64>,
    broken: bool,
}

/// The next item of the unpacked data.
pub enum Next {
    /// A record, its body in the caller's buffer.
    Record {
        /// Its type.
        kind: u32,
        /// Its flags.
        misc: u16,
    },
    /// A round ends here.
    Round,
    /// The rest cannot be read.
    Damaged,
    /// Nothing as yet.
    Nothing,
}

impl Unpacker {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), String> {
        if self.broken {
            return Ok(());
        }
        self.pieces.extend_from_slice(piece);
        let fed = self.decode();
        if fed.is_err() {
            self.broken = true;
            self.pieces = Vec::new();
        }
        fed
    }

    /// Ends the stream.
    pub fn finish(&mut self) -> Result<(), String> {
        if !self.in_frame || self.broken {
            return Ok(());
        }
        if !self.pieces.is_empty() {
            // A block that the file's end has cut.
            self.pieces.clear();
        }
        self.feed(&LAST_BLOCK)
    }

    /// A round has ended in the file; `false` if nothing is packed, so that it has ended for all records.
    pub fn round(&mut self) -> bool {
        if self.decoder.is_none() || self.broken {
            return false;
        }
        self.rounds.push_back(self.out + self.window);
        true
    }

    /// Whether a part of a record is left.
    pub fn has_rest(&self) -> bool {
        self.next < self.unpacked.len()
    }

    fn decode(&mut self) -> Result<(), String> {
        loop {
            if self.pieces.is_empty() {
                return Ok(());
            }
            if !self.in_frame {
                let mut source = &self.pieces[..];
                let decoder = self.decoder.get_or_insert_with(|| {
                    let mut decoder = FrameDecoder::new();
                    decoder.set_max_window_size(WINDOW_BYTES_MAX);
                    decoder
                });
                match decoder.reset(&mut source) {
                    Ok(()) => {
                        let used = self.pieces.len() - source.len();
                        self.window = window(&self.pieces);
                        self.pieces.drain(..used);
                        self.in_frame = true;
                    }
                    Err(_) if self.pieces.len() < FRAME_HEAD_BYTES_MAX => return Ok(()),
                    Err(error) => {
                        return Err(format!("a packed record cannot be unpacked: {error}"));
                    }
                }
                continue;
            }
            let Some(size) = whole_block(&self.pieces) else {
                if self.pieces.len() > 2 * BLOCK_BYTES_MAX {
                    return Err("a packed record holds a block of more than 128 KiB".to_owned());
                }
                return Ok(());
            };
            let decoder = self.decoder.as_mut().expect("a frame was begun");
            let mut source = &self.pieces[..];
            let ended = decoder
                .decode_blocks(&mut source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| format!("a packed record cannot be unpacked: {error}"))?;
            let used = (self.pieces.len() - source.len()).max(size.min(self.pieces.len()));
            self.pieces.drain(..used);
            if let Some(bytes) = decoder.collect() {
                self.out += bytes.len() as u64;
                if self.next > BLOCK_BYTES_MAX {
                    self.unpacked.drain(..self.next);
                    self.next = 0;
                }
                self.unpacked.extend_from_slice(&bytes);
            }
            if ended {
                self.in_frame = false;
                self.window = 0;
            }
        }
    }

    /// Takes the next record.
    pub fn next_record(&mut self, order: ByteOrder, body: &mut Vec<u8>) -> Next {
        if self.rounds.front().is_some_and(|end| self.taken >= *end || self.broken) {
            self.rounds.pop_front();
            return Next::Round;
        }
        let rest = &self.unpacked[self.next..];
        let (Some(kind), Some(misc), Some(size)) =
            (order.u32_at(rest, 0), order.u16_at(rest, 4), order.u16_at(rest, 6))
        else {
            return Next::Nothing;
        };
        if size < 8 {
            self.broken = true;
            self.next = self.unpacked.len();
            return Next::Damaged;
        }
        let Some(record) = rest.get(8..usize::from(size)) else {
            return Next::Nothing;
        };
        body.clear();
        body.extend_from_slice(record);
        self.next += usize::from(size);
        self.taken += u64::from(size);
        Next::Record { kind, misc }
    }
}

/// The window that the head of a frame asks for.
fn window(head: &[u8]) -> u64 {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    match head {
        [_, _, _, _, descriptor, window, ..] if descriptor & SINGLE_SEGMENT == 0 => {
            let base = 1_u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        // The whole content is the window.
        _ => WINDOW_BYTES_MAX,
    }
}

/// The bytes of the first block with its head, if it is whole.
fn whole_block(bytes: &[u8]) -> Option<usize> {
    const RUN_LENGTH: u8 = 1;
    let [first, second, third, ..] = bytes else { return None };
    let size = match first >> 1 & 3 {
        RUN_LENGTH => 1,
        _ => (usize::from(*first) | usize::from(*second) << 8 | usize::from(*third) << 16) >> 3,
    };
    // The end of a frame may have a checksum; perf asks for none.
    (bytes.len() >= 3 + size).then_some(3 + size)
}
