// SPDX-License-Identifier: GPL-2.0-or-later
//! The part that trace.dat and perf.data share: byte order, the page's layout, and the tracepoints' formats.
//!
//! ```text
//! 17 08 44 "tracing" VERSION\0  u8 order  u8 long  u32 page size
//! "header_page\0" u64 size, text   "header_event\0" u64 size, text
//! u32 count   { u64 size, format text }                      formats of the system ftrace
//! u32 count   { name\0  u32 count { u64 size, format text } } formats of the other systems
//! u32 size, /proc/kallsyms   u32 size, printk_formats   u64 size, saved_cmdlines
//! ```
//!
//! Every length is compared with what is left of the file before anything is read, and texts are read as
//! they come: a wrong length costs no memory.

use super::decode::Decoder;
use super::fields::ByteOrder;
use super::format::{FORMAT_BYTES_MAX, Format};
use super::ring_buffer::PageLayout;
use crate::event::{Names, Place, SourceFault, SourceReport};
use std::io::{self, Read};

/// The first bytes of trace.dat and of the tracing data of perf.data.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Longest text that is kept of a file's metadata.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Systems of tracepoints, and tracepoints of one: a kernel has some 150 and 2000.
const SYSTEMS_MAX: u32 = 1 << 13;
const EVENTS_MAX: u32 = 1 << 14;

/// Reads numbers and texts, and knows how much is left and where it is.
pub struct Bytes<R> {
    input: R,
    left: u64,
    at: u64,
    /// The byte order of numbers.
    pub order: ByteOrder,
}

fn unusable(why: impl Into<String>) -> SourceFault {
    SourceFault::Unusable(why.into())
}

impl<R: Read> Bytes<R> {
    /// Begins at byte `at` of a file, of which `left` bytes follow.
    pub fn new(input: R, at: u64, left: u64, order: ByteOrder) -> Bytes<R> {
        Bytes { input, left, at, order }
    }

    /// The place in the file.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Fills `bytes`, or says that the file ends within `what`.
    pub fn fill(&mut self, bytes: &mut [u8], what: &str) -> Result<(), SourceFault> {
        let ends = |at| unusable(format!("it ends at byte {at}, within {what}"));
        if bytes.len() as u64 > self.left {
            return Err(ends(self.at + self.left));
        }
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ends(self.at),
            _ => SourceFault::Io(error),
        })?;
        self.at += bytes.len() as u64;
        self.left -= bytes.len() as u64;
        Ok(())
    }

    /// A byte.
    pub fn u8(&mut self, what: &str) -> Result<u8, SourceFault> {
        let mut bytes = [0];
        self.fill(&mut bytes, what)?;
        Ok(bytes[0])
    }

    /// A u16.
    pub fn u16(&mut self, what: &str) -> Result<u16, SourceFault> {
        let mut bytes = [0; 2];
        self.fill(&mut bytes, what)?;
        Ok(self.order.u16(bytes))
    }

    /// A u32.
    pub fn u32(&mut self, what: &str) -> Result<u32, SourceFault> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes, what)?;
        Ok(self.order.u32(bytes))
    }

    /// A u64.
    pub fn u64(&mut self, what: &str) -> Result<u64, SourceFault> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes, what)?;
        Ok(self.order.u64(bytes))
    }

    /// The bytes before a NUL, at most `most`.
    pub fn until_nul(&mut self, most: usize, what: &str) -> Result<String, SourceFault> {
        let mut bytes = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                _ if bytes.len() == most => {
                    return Err(unusable(format!("its {what} at byte {} is too long", self.at)));
                }
                byte => bytes.push(byte),
            }
        }
    }

    /// `size` bytes, at most `most`.
    pub fn bytes(&mut self, size: u64, most: u64, what: &str) -> Result<Vec<u8>, SourceFault> {
        self.fits(size, what)?;
        if size > most {
            return Err(unusable(format!(
                "its {what} at byte {} has {size} bytes, more than {most}",
                self.at
            )));
        }
        let mut bytes = Vec::new();
        (&mut self.input).take(size).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        self.left -= bytes.len() as u64;
        if (bytes.len() as u64) < size {
            return Err(unusable(format!("it ends at byte {}, within {what}", self.at)));
        }
        Ok(bytes)
    }

    /// The same as text.
    pub fn text(&mut self, size: u64, most: u64, what: &str) -> Result<String, SourceFault> {
        Ok(String::from_utf8_lossy(&self.bytes(size, most, what)?).into_owned())
    }

    /// Leaves `size` bytes out.
    pub fn skip(&mut self, size: u64, what: &str) -> Result<(), SourceFault> {
        self.fits(size, what)?;
        let skipped = io::copy(&mut (&mut self.input).take(size), &mut io::sink())?;
        self.at += skipped;
        self.left -= skipped;
        if skipped < size {
            return Err(unusable(format!("it ends at byte {}, within {what}", self.at)));
        }
        Ok(())
    }

    fn fits(&self, size: u64, what: &str) -> Result<(), SourceFault> {
        if size > self.left {
            return Err(unusable(format!(
                "its {what} at byte {} claims {size} bytes, and {} are left",
                self.at, self.left
            )));
        }
        Ok(())
    }
}

/// The first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `6`, `7`; `0.6` in perf.data.
    pub version: String,
    /// The byte order of the rest.
    pub order: ByteOrder,
    /// Bytes of the recording program's `long`; the kernel's is told by `header_page`.
    pub long_bytes: u8,
    /// Bytes of a page.
    pub page_bytes: u32,
}

/// Reads the head, and sets the byte order.
pub fn read_head<R: Read>(bytes: &mut Bytes<R>) -> Result<Head, SourceFault> {
    let mut magic = [0; MAGIC.len()];
    bytes.fill(&mut magic, "its first bytes")?;
    if magic != *MAGIC {
        return Err(unusable("it does not begin as trace.dat does"));
    }
    let version = bytes.until_nul(16, "version")?;
    let order = match bytes.u8("the byte order")? {
        0 => ByteOrder::Little,
        1 => ByteOrder::Big,
        other => return Err(unusable(format!("its byte order is {other}; known are 0 and 1"))),
    };
    bytes.order = order;
    let long_bytes = bytes.u8("the size of long")?;
    let page_bytes = bytes.u32("the page size")?;
    Ok(Head { version, order, long_bytes, page_bytes })
}

/// Reads `header_page` and `header_event`; what the kernel's pages look like.
pub fn read_page_layout<R: Read>(
    bytes: &mut Bytes<R>,
    head: &Head,
) -> Result<PageLayout, SourceFault> {
    let mut texts = [String::new(), String::new()];
    for (name, text) in ["header_page", "header_event"].into_iter().zip(&mut texts) {
        let found = bytes.until_nul(16, name)?;
        if found != name {
            return Err(unusable(format!(
                "it has `{}` where {name} belongs",
                found.escape_default()
            )));
        }
        let size = bytes.u64(name)?;
        *text = bytes.text(size, TEXT_BYTES_MAX, name)?;
    }
    let [page, event] = texts;
    // Only one form has existed since this format has.
    for (key, value) in [("type_len", "5 bits"), ("time_delta", "27 bits")] {
        let told = event.lines().find(|line| line.trim_start().starts_with(key));
        if told.is_some_and(|line| !line.contains(value)) {
            return Err(unusable(format!("its header_event has a {key} of other than {value}")));
        }
    }
    if page.trim().is_empty() {
        // perf.data of a kernel whose file could not be read; its records need no pages.
        return Ok(PageLayout::of_long(usize::from(head.long_bytes.clamp(4, 8)), head.order));
    }
    PageLayout::parse(&page, head.order).map_err(|why| unusable(format!("its {why}")))
}

/// The outputs that reading metadata fills.
pub struct Found<'a> {
    /// The tracepoints.
    pub decoder: &'a mut Decoder,
    /// Their names.
    pub names: &'a mut Names,
    /// Tracepoints that cannot be used.
    pub report: &'a mut SourceReport,
}

impl Found<'_> {
    fn format(&mut self, system: &str, text: &str, at: u64, order: ByteOrder) {
        let added = Format::parse(text)
            .map_err(|lacks| format!("the format of a tracepoint of {system} is damaged: {lacks}"))
            .and_then(|format| self.decoder.add(system, &format, order, self.names));
        if let Err(why) = added {
            self.report.damage(Place::Byte(at), why);
        }
    }
}

/// Reads the formats of the system `ftrace`.
pub fn read_ftrace_formats<R: Read>(
    bytes: &mut Bytes<R>,
    found: &mut Found,
) -> Result<(), SourceFault> {
    read_formats(bytes, "ftrace", found)
}

/// Reads the formats of the other systems.
pub fn read_systems<R: Read>(bytes: &mut Bytes<R>, found: &mut Found) -> Result<(), SourceFault> {
    let count = bytes.u32("the number of systems")?;
    if count > SYSTEMS_MAX {
        return Err(unusable(format!(
            "it claims {count} systems of tracepoints, more than {SYSTEMS_MAX}"
        )));
    }
    for _ in 0..count {
        let system = bytes.until_nul(256, "a system's name")?;
        read_formats(bytes, &system, found)?;
    }
    Ok(())
}

fn read_formats<R: Read>(
    bytes: &mut Bytes<R>,
    system: &str,
    found: &mut Found,
) -> Result<(), SourceFault> {
    let count = bytes.u32("the number of tracepoints")?;
    if count > EVENTS_MAX {
        return Err(unusable(format!(
            "it claims {count} tracepoints of {}, more than {EVENTS_MAX}",
            system.escape_default()
        )));
    }
    for _ in 0..count {
        let size = bytes.u64("the format of a tracepoint")?;
        let at = bytes.at();
        let text = bytes.text(size, FORMAT_BYTES_MAX as u64, "format of a tracepoint")?;
        found.format(system, &text, at, bytes.order);
    }
    Ok(())
}

/// Reads the kernel's symbols, if records name functions by address; else leaves these megabytes out.
pub fn read_kallsyms<R: Read>(bytes: &mut Bytes<R>, found: &mut Found) -> Result<(), SourceFault> {
    let size = u64::from(bytes.u32("the kernel's symbols")?);
    if size > TEXT_BYTES_MAX || !found.decoder.names_functions() {
        return bytes.skip(size, "list of symbols");
    }
    let text = bytes.bytes(size, TEXT_BYTES_MAX, "list of symbols")?;
    found.decoder.add_symbols(text);
    Ok(())
}

/// Reads the strings that records hold by address.
pub fn read_printk_formats<R: Read>(
    bytes: &mut Bytes<R>,
    found: &mut Found,
) -> Result<(), SourceFault> {
    let size = bytes.u32("printk_formats")?;
    let text = bytes.text(u64::from(size), TEXT_BYTES_MAX, "printk_formats")?;
    found.decoder.add_strings(&text, found.names);
    Ok(())
}

/// Leaves saved_cmdlines out: names of threads at the recording's end, that events tell better.
pub fn skip_cmdlines<R: Read>(bytes: &mut Bytes<R>) -> Result<(), SourceFault> {
    let size = bytes.u64("saved_cmdlines")?;
    bytes.skip(size, "list of command names")
}
