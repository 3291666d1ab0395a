// SPDX-License-Identifier: GPL-2.0-or-later
//! Systrace's pages: a viewer, and the trace in one of its scripts.
//!
//! ```text
//!   <!DOCTYPE html> ... megabytes of viewer ...
//!   <script class="trace-data" type="application/text">
//!   # tracer: nop                        the trace
//!   </script>
//!   <script class="trace-data" type="application/text">
//!   PROCESS DUMP                         tables of processes and threads, JSON
//!   USER PID TID CMD
//!   </script>
//! ```
//!
//! Pages from before 2015 hold the trace as a string of JavaScript, each line ending in `\n\`.

use crate::event::{StartingThread, TraceHeader};

/// Threads of a page's table that are kept.
const THREADS_KEPT: usize = 16_384;

/// Where in a file the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// Before the first line.
    Unknown,
    /// In plain text: every line belongs to the trace.
    None,
    /// In a page, outside of a script with data.
    Viewer,
    /// In a script with data.
    Data,
    /// In the string of an old page.
    OldData,
    /// In the other data of a page, before a table of threads.
    Tables,
    /// In the table of threads.
    Threads,
}

impl Page {
    /// The part of a line that belongs to the trace; `None` where it is of the page.
    pub fn trace_text<'a>(&mut self, text: &'a str, header: &mut TraceHeader) -> Option<&'a str> {
        match self {
            Page::None => return Some(text),
            Page::Unknown => {
                let start = text.trim_start_matches(['\u{feff}', ' ']);
                let begins = |tag: &str| {
                    start.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag))
                };
                if !begins("<!doctype html") && !begins("<html") {
                    // Nothing else that begins a trace is empty.
                    if !text.is_empty() {
                        *self = Page::None;
                    }
                    return Some(text);
                }
                header.format = "systrace HTML";
                *self = Page::Viewer;
            }
            Page::Data | Page::Tables | Page::Threads => {
                if let Some((text, _)) = text.split_once("</script>") {
                    let trace = *self == Page::Data && !text.is_empty();
                    *self = Page::Viewer;
                    return trace.then_some(text);
                }
            }
            Page::OldData => {
                let Some(text) = text.strip_suffix("\\n\\") else {
                    *self = Page::Viewer;
                    return None;
                };
                return Some(text);
            }
            Page::Viewer => {}
        }
        match self {
            Page::Viewer => {
                if let Some((_, tag)) = text.split_once("<script class=\"trace-data\"")
                    && let Some((_, text)) = tag.split_once('>')
                {
                    *self = Page::Data;
                    return (!text.is_empty()).then_some(text);
                }
                if let Some((_, text)) = text.split_once("linuxPerfData = \"") {
                    *self = Page::OldData;
                    return text.strip_suffix("\\n\\").or(text.strip_suffix('\\'));
                }
                None
            }
            Page::Threads => {
                thread(text, header);
                None
            }
            Page::Tables | Page::Data if is_threads(text) => {
                *self = Page::Threads;
                None
            }
            Page::Tables => None,
            // Tables of the page, and JSON.
            _ if ["PROCESS DUMP", "CGROUP DUMP", "USER ", "{"]
                .iter()
                .any(|h| text.starts_with(h)) =>
            {
                *self = Page::Tables;
                None
            }
            _ => Some(text),
        }
    }
}

/// The heading of the table of threads.
fn is_threads(text: &str) -> bool {
    text.split_whitespace().eq(["USER", "PID", "TID", "CMD"])
}

/// `system  1500  1507  android.anim`.
fn thread(text: &str, header: &mut TraceHeader) {
    let mut words = text.split_whitespace();
    if let (Some(_), Some(tgid), Some(pid)) = (words.next(), words.next(), words.next())
        && let (Ok(tgid), Ok(pid)) = (tgid.parse(), pid.parse())
        && header.threads.len() < THREADS_KEPT
    {
        let comm = words.collect::<Vec<_>>().join(" ");
        let thread = StartingThread { pid, tgid: Some(tgid), comm, ..StartingThread::default() };
        header.threads.push(thread);
    }
}
