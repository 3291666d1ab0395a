// SPDX-License-Identifier: GPL-2.0-or-later
//! Opens recordings: finds the format by content, not by name.
//!
//! [`FORMATS`] is the table of all that is read, one line each; the first whose test likes the first bytes reads the file.
//! Text comes last, since it has no first bytes of its own. Wrappers are taken off before (see [`crate::packed`]).
//!
//! ```
//! use schedtwin_trace::event::TraceSource;
//!
//! let text = "ui-7 [001] d..2 5.000001: cpu_idle: state=1 cpu_id=1\n";
//! let mut source = schedtwin_trace::sources::read(text.as_bytes())?;
//! assert_eq!(source.next_event()?.unwrap().at, 5_000_001_000);
//! assert_eq!(source.header().format, "ftrace text");
//! # Ok::<(), schedtwin_trace::event::SourceFault>(())
//! ```

use crate::chrome_json::{SystemTraceEvents, is_chrome_json};
use crate::event::{SourceFault, TraceSource};
use crate::folder;
use crate::ftrace_read::FtraceSource;
use crate::open_readable;
use crate::packed::{self, Unpacked, unpack};
use crate::perf_data::{PerfData, is_perf_data};
use crate::perfetto_source::{PerfettoTrace, is_perfetto};
use crate::trace_dat::{TraceDat, is_trace_dat};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The input of a format's reader.
pub struct Input<'a> {
    /// The content, wrappers taken off.
    pub content: Unpacked<'a>,
    /// The file itself, at its beginning, where the content is one that can be sought in and no wrapper was around it.
    pub file: Option<File>,
}

/// A source, or why there is none.
pub type Opened<'a> = Result<Box<dyn TraceSource + 'a>, SourceFault>;

/// A format that is read.
pub struct SourceFormat {
    /// Its name, as `header().format` has it.
    pub name: &'static str,
    /// Whether a file with these first bytes is of this format.
    pub matches: fn(&[u8]) -> bool,
    /// Reads it, or says why not.
    pub open: for<'a> fn(Input<'a>) -> Opened<'a>,
}

/// All formats.
pub const FORMATS: [SourceFormat; 6] = [
    SourceFormat {
        name: "trace.dat",
        matches: is_trace_dat,
        open: |input| Ok(Box::new(TraceDat::open(seekable(input)?)?)),
    },
    SourceFormat {
        name: "perf.data",
        matches: is_perf_data,
        open: |input| Ok(Box::new(PerfData::open(seekable(input)?)?)),
    },
    SourceFormat {
        name: "Perfetto",
        matches: is_perfetto,
        open: |input| Ok(Box::new(PerfettoTrace::open(input.content.reader)?)),
    },
    SourceFormat {
        name: "Chrome JSON",
        matches: is_chrome_json,
        open: |input| {
            let text = BufReader::new(SystemTraceEvents::new(input.content.reader));
            Ok(Box::new(FtraceSource::new(text)))
        },
    },
    SourceFormat {
        name: "record",
        matches: |head| OWN.iter().any(|begins| head.starts_with(begins.as_bytes())),
        open: |_| {
            let what = "it is a record of a run: schedtwin explain reads it, schedtwin convert makes a trace of it";
            Err(SourceFault::Unusable(what.to_string()))
        },
    },
    SourceFormat {
        name: "ftrace text",
        matches: |_| true,
        open: |input| Ok(Box::new(FtraceSource::new(input.content.reader))),
    },
];

/// The first bytes of the twin's own records.
const OWN: [&str; 2] = [crate::record::PACKED, "{\"schema\":\"schedtwin.record/1\""];

/// Everything that is read, and the next step, for who has another file.
pub const KNOWN: &str = "recordings are trace.dat (trace-cmd, schedtwin record), perf.data, Perfetto, Chrome's JSON with \
    systemTraceEvents, or text: /sys/kernel/tracing/trace, trace-cmd report, atrace, perf script, systrace's page; a perf directory, \
    a copy of tracefs with per_cpu/cpu0/trace_pipe_raw; plain or in gzip, zlib, zstd, xz, zip, tar. To make one: \
    schedtwin record";

/// Most bytes of a packed recording, or of one from a pipe, that a reader has to seek in: they go to a temporary file.
pub(crate) const SPOOLED_BYTES_MAX: u64 = 64 << 30;

/// The content as a file in which one can seek.
fn seekable(input: Input<'_>) -> std::io::Result<File> {
    match input.file {
        Some(file) => Ok(file),
        None => input.content.into_file(SPOOLED_BYTES_MAX),
    }
}

/// Opens a recording; `-` is standard input, `ARCHIVE:NAME` a file of an archive. A folder may be one, too.
pub fn open(path: &Path) -> Opened<'static> {
    if path.is_dir() {
        return folder::open(path);
    }
    let content = packed::open(path)?;
    let plain = content.wrappers.is_empty() && path.as_os_str() != "-";
    let file = plain.then(|| open_readable(path)).transpose()?;
    // A pipe cannot be sought in, and what was read of it is gone.
    let file = file.filter(|file| file.metadata().is_ok_and(|of| of.is_file()));
    source_of(Input { content, file })
}

/// As [`open`], from any bytes.
pub fn read<'a>(input: impl BufRead + 'a) -> Opened<'a> {
    source_of(Input { content: unpack(input)?, file: None })
}

fn source_of(input: Input<'_>) -> Opened<'_> {
    let format = FORMATS.iter().find(|format| (format.matches)(&input.content.head));
    (format.expect("text is always tried").open)(input)
}
