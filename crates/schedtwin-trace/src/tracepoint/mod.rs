// SPDX-License-Identifier: GPL-2.0-or-later
//! Tracepoints: the table of those that are read or written, and their records in binary, in the kernel's
//! ring-buffer pages.
//!
//! trace.dat, perf.data and raw `trace_pipe_raw` pages hold the same records: a struct that each
//! tracepoint's `format` file describes. The layout differs between kernels, so it is never known in
//! advance: it is always taken from the file.
//!
//! | module | answers |
//! |---|---|
//! | [`table`] | which tracepoints there are, and each one's form in every format |
//! | [`row`] | how a row of it and the values of an event are used |
//! | [`mod@format`] | which fields a tracepoint has, and where |
//! | [`fields`] | the value of a field of a record |
//! | [`flags`] | the state of the CPU that a record tells |
//! | [`ring_buffer`] | the records of a page, their times, and what was lost |
//! | [`metadata`] | the formats and layouts that a file carries |
//! | [`decode`] | the event that a record is |
//!
//! Terms: a *record* is one event's bytes, common fields included. A *page* is a sub-buffer of the
//! kernel's ring buffer, usually 4096 bytes.

pub mod decode;
pub mod fields;
#[cfg(test)]
pub mod fixtures;
pub mod flags;
pub mod format;
pub mod metadata;
pub mod ring_buffer;
pub mod row;
pub mod table;

pub use decode::{Decoded, Decoder, Undecoded};
pub use fields::{ByteOrder, Number, Text};
pub use format::{Field, Format};
pub use ring_buffer::{Lost, PageCursor, PageLayout};
