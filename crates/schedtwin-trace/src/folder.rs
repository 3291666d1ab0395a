// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings that are folders.
//!
//! | folder | holds |
//! |---|---|
//! | of `perf record --threads`, `--kcore` | `data`: a perf.data; `data.0`, `data.1`, …: more of its records |
//! | a copy of tracefs, crash's `trace dump -m` | `per_cpu/cpuN/trace_pipe_raw`: pages; `events/`: their formats |
//! | any other | files, of which one is a recording |
//!
//! Pages and formats of a copy of tracefs are put into a trace.dat without a name, as `schedtwin record` does, and read as such.

use crate::event::{CPUS_MAX, SourceFault};
use crate::open_readable;
use crate::packed::{Candidates, head_of};
use crate::perf_data::{PerfData, is_perf_data};
use crate::sources::{Opened, SPOOLED_BYTES_MAX, open as open_source};
use crate::trace_dat::TraceDat;
use crate::trace_dat::write::{CpuPages, Texts, write};
use crate::tracepoint::metadata::TEXT_BYTES_MAX;
use crate::tracepoint::{ByteOrder, PageLayout};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek};
use std::path::{Path, PathBuf};

/// Files of a folder that are looked at, and parts of a perf directory.
const FILES_MAX: usize = 4096;
/// Tracepoints whose formats are taken, and bytes of all of them: a kernel has some 2000, of 1 KiB each.
const FORMATS_MAX: usize = 1 << 14;
const FORMATS_BYTES_MAX: u64 = 64 << 20;

fn unusable(why: impl Into<String>) -> SourceFault {
    SourceFault::Unusable(why.into())
}

/// Opens the recording in a folder.
pub fn open(folder: &Path) -> Opened<'static> {
    let data = folder.join("data");
    if open_readable(&data)
        .and_then(|mut file| head_of(&mut file))
        .is_ok_and(|head| is_perf_data(&head))
    {
        return perf(folder, &data);
    }
    let raw = raw_buffers(folder)?;
    if !raw.is_empty() {
        return tracefs(folder, &raw);
    }
    let mut candidates = Candidates::new("FOLDER/");
    for path in sorted(folder)? {
        let head = open_readable(&path).and_then(|mut file| head_of(&mut file));
        if let (Ok(head), Some(name)) = (head, path.file_name()) {
            candidates.push(name.to_string_lossy().into_owned(), path.clone(), &head);
        }
    }
    if !candidates.is_any_like() {
        return Err(unusable(
            "no file of this folder looks like a recording; a folder is a perf directory, a copy of tracefs \
             (per_cpu/cpu0/trace_pipe_raw and events/), or holds a recording",
        ));
    }
    open_source(&candidates.only()?)
}

/// The paths of a folder's files, sorted.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.flatten().map(|entry| entry.path()).take(FILES_MAX).collect();
    paths.sort();
    Ok(paths)
}

/// The number behind a name's prefix: `cpu12`, `data.3`.
fn number_behind(path: &Path, prefix: &str) -> Option<usize> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// A perf directory.
fn perf(folder: &Path, data: &Path) -> Opened<'static> {
    let paths = sorted(folder)?;
    let mut parts: Vec<_> =
        paths.iter().filter_map(|path| Some((number_behind(path, "data.")?, path))).collect();
    parts.sort();
    let parts =
        parts.into_iter().map(|(_, path)| open_readable(path)).collect::<io::Result<_>>()?;
    Ok(Box::new(PerfData::open_with_parts(open_readable(data)?, parts)?))
}

/// The raw buffers of a copy of tracefs, by CPU.
fn raw_buffers(folder: &Path) -> io::Result<Vec<(usize, PathBuf)>> {
    let per_cpu = folder.join("per_cpu");
    let place = if per_cpu.is_dir() { per_cpu } else { folder.to_owned() };
    let cpu = |path: PathBuf| {
        let raw = path.join("trace_pipe_raw");
        raw.is_file().then_some((number_behind(&path, "cpu")?, raw))
    };
    let mut raw: Vec<_> = sorted(&place)?.into_iter().filter_map(cpu).collect();
    raw.sort();
    Ok(raw)
}

/// A copy of tracefs.
fn tracefs(folder: &Path, raw: &[(usize, PathBuf)]) -> Opened<'static> {
    let texts = texts(folder)?;
    if texts.systems.is_empty() {
        return Err(unusable(
            "its raw buffers lack the formats of their events: copy events/header_page and \
             events/*/*/format of the recorded kernel's tracefs into the folder",
        ));
    }
    let page_text = String::from_utf8_lossy(&texts.header_page).into_owned();
    let layout = PageLayout::parse(&page_text, ByteOrder::of_host())
        .map_err(|why| unusable(format!("its events/header_page cannot be used: {why}")))?;
    let (last, _) = raw.last().expect("there is a raw buffer");
    if *last >= CPUS_MAX {
        return Err(unusable(format!("it has a CPU {last}, and at most {CPUS_MAX} CPUs are read")));
    }
    let mut cpus: Vec<CpuPages<Box<dyn Read>>> = Vec::new();
    let page = layout.page_bytes as u64;
    let (mut sum, mut is_cut) = (0, false);
    for cpu in 0..=*last {
        let file = match raw.iter().find(|(number, _)| *number == cpu) {
            Some((_, path)) => Some(open_readable(path)?),
            None => None,
        };
        let bytes = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|of| of.len()))?;
        // A buffer that was cut has its whole pages.
        is_cut |= bytes % page != 0;
        let bytes = bytes - bytes % page;
        sum += bytes;
        let pages: Box<dyn Read> = match file {
            Some(file) => Box::new(file),
            None => Box::new(io::empty()),
        };
        cpus.push(CpuPages { bytes, pages });
    }
    if sum > SPOOLED_BYTES_MAX {
        return Err(unusable(format!("its raw buffers have {} GiB together", sum >> 30)));
    }
    let page_bytes = u32::try_from(layout.page_bytes).unwrap_or(4096);
    let mut file = tempfile::tempfile()?;
    write(&mut BufWriter::new(&mut file), &texts, page_bytes, cpus)?;
    file.rewind()?;
    Ok(Box::new(TraceDat::open_as(file, "raw buffers of tracefs", is_cut)?))
}

/// The texts of a copy of tracefs; those that are not there are empty.
fn texts(folder: &Path) -> Result<Texts, SourceFault> {
    let text = |path: &str| text_of(&folder.join(path)).unwrap_or_default();
    let mut texts = Texts {
        header_page: text("events/header_page"),
        header_event: text("events/header_event"),
        printk_formats: text("printk_formats"),
        saved_cmdlines: text("saved_cmdlines"),
        trace_clock: text("trace_clock"),
        kallsyms: text("kallsyms"),
        ..Texts::default()
    };
    let events = folder.join("events");
    if !events.is_dir() {
        return Ok(texts);
    }
    let (mut count, mut bytes) = (0, 0);
    for system in sorted(&events)?.into_iter().filter(|path| path.is_dir()) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut formats = Vec::new();
        for event in sorted(&system)? {
            if let Ok(format) = text_of(&event.join("format")) {
                count += 1;
                bytes += format.len() as u64;
                formats.push(format);
            }
            if count > FORMATS_MAX || bytes > FORMATS_BYTES_MAX {
                return Err(unusable(format!("its events/ has more than {FORMATS_MAX} formats")));
            }
        }
        match &name[..] {
            _ if formats.is_empty() => {}
            "ftrace" => texts.ftrace_formats = formats,
            _ => texts.systems.push((name, formats)),
        }
    }
    Ok(texts)
}

/// The content of a small file.
fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file: File = open_readable(path)?;
    BufReader::new(file).take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "folder/tests.rs"]
mod tests;
