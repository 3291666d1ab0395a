// SPDX-License-Identifier: GPL-2.0-or-later
//! The metadata of a trace.dat: where each CPU's pages are, and how to read them.
//!
//! | version 6, in this order | version 7 |
//! |---|---|
//! | head, `header_page`, formats, symbols, names | head, packing, the place of the first options |
//! | CPU count, `options  ` | sections, each named by an option |
//! | `flyrecord`: place and size of each CPU | option 3: the same for each buffer |
//! | the clock, if there is option 4 | the clock of each buffer within option 3 |
//!
//! Chains of options are bounded, and a place that was visited before is refused.

use super::notes;
use super::stream::exactly;
use crate::event::{CPUS_MAX, Names, Place, SourceFault, SourceReport, TraceHeader};
use crate::tracepoint::metadata::{self, Bytes, Found, TEXT_BYTES_MAX};
use crate::tracepoint::ring_buffer::PAGE_BYTES_MAX;
use crate::tracepoint::{ByteOrder, Decoder, PageLayout};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Options of a file, and sections of options.
const OPTIONS_MAX: usize = 1 << 16;
const SECTIONS_MAX: usize = 1 << 10;

/// Buffers of a file.
const BUFFERS_MAX: usize = 256;

/// Longest window of a packed frame, as other decoders have it.
const WINDOW_BYTES_MAX: u64 = 128 << 20;

mod option {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const VERSION: u16 = 9;
    pub const TIME_SHIFT: u16 = 12;
    pub const TSC2NSEC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const PRINTK: u16 = 20;
    pub const BUFFER_TEXT: u16 = 22;
}

/// All but the events.
pub struct Layout {
    /// The tracepoints.
    pub decoder: Decoder,
    /// The head of a page.
    pub page: PageLayout,
    /// The buffers, the one without a name first.
    pub buffers: Vec<Buffer>,
    /// The header: the file's data beside its events.
    pub header: TraceHeader,
    /// How stamps become ns, if they are no ns.
    pub tsc: Option<TscToNs>,
}

/// A buffer of the kernel: the top one, or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name; empty: the top one.
    pub name: String,
    /// Its clock, where the file says it for each buffer.
    pub clock: Option<String>,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// The form of its data.
    pub packing: Packing,
    /// Its CPUs.
    pub cpus: Vec<BufferCpu>,
}

/// The data of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferCpu {
    /// The CPU.
    pub cpu: u16,
    /// Where they begin.
    pub at: u64,
    /// How many there are.
    pub bytes: u64,
}

/// How sections are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    None,
    /// RFC 1950.
    Zlib(ByteOrder),
    /// Zstandard.
    Zstd(ByteOrder),
}

impl Packing {
    /// The byte order of the chunks' sizes.
    pub fn order(self) -> ByteOrder {
        match self {
            Packing::None => ByteOrder::Little,
            Packing::Zlib(order) | Packing::Zstd(order) => order,
        }
    }

    /// Unpacks to exactly `size` bytes.
    pub fn unpack(self, packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
        match self {
            Packing::None => exactly(packed, size),
            Packing::Zlib(_) => exactly(flate2::read::ZlibDecoder::new(packed), size),
            Packing::Zstd(_) => {
                let mut decoder = ruzstd::decoding::FrameDecoder::new();
                decoder.set_max_window_size(WINDOW_BYTES_MAX);
                let decoder = ruzstd::decoding::StreamingDecoder::new_with_decoder(packed, decoder);
                exactly(decoder.map_err(io::Error::other)?, size)
            }
        }
    }
}

/// `ns = offset + (stamp * mult >> shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscToNs {
    mult: u32,
    shift: u32,
    offset: u64,
}

impl TscToNs {
    /// A stamp as ns.
    pub fn ns(&self, stamp: u64) -> u64 {
        let scaled = (u128::from(stamp) * u128::from(self.mult)) >> self.shift;
        (scaled as u64).wrapping_add(self.offset)
    }
}

fn unusable(why: impl Into<String>) -> SourceFault {
    SourceFault::Unusable(why.into())
}

/// Positions `input` and reads from there to the end of the file.
fn reader_at<R: Read + Seek>(
    input: &mut R,
    at: u64,
    file_bytes: u64,
    order: ByteOrder,
) -> Result<Bytes<BufReader<&mut R>>, SourceFault> {
    if at > file_bytes {
        return Err(unusable(format!("it points to byte {at} and has only {file_bytes}")));
    }
    input.seek(SeekFrom::Start(at))?;
    Ok(Bytes::new(BufReader::new(input), at, file_bytes - at, order))
}

/// The values of a file's options.
#[derive(Default)]
struct Options {
    /// Buffers of version 6: place and name.
    instances: Vec<(u64, String)>,
    /// Buffers of version 7: the bodies of their options.
    buffers: Vec<Vec<u8>>,
    has_clock: bool,
    clock: Option<String>,
    latency: bool,
    guest: bool,
    tsc: Option<TscToNs>,
    /// Sections: number of the option and place.
    sections: Vec<(u16, u64)>,
}

impl Options {
    /// Takes an option in; where it begins.
    #[allow(clippy::too_many_arguments)]
    fn take(
        &mut self,
        id: u16,
        data: &[u8],
        at: u64,
        order: ByteOrder,
        v7: bool,
        header: &mut TraceHeader,
        report: &mut SourceReport,
    ) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        match id {
            option::BUFFER if v7 => self.buffers.push(data.to_vec()),
            option::BUFFER => match order.u64_at(data, 0) {
                Some(place) => {
                    let name = &data[8..];
                    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                    self.instances
                        .push((place, String::from_utf8_lossy(&name[..end]).into_owned()));
                }
                None => report.damage(Place::Byte(at), "the option of a buffer is too short"),
            },
            option::TRACECLOCK => {
                self.has_clock = true;
                self.clock = chosen_clock(&text());
            }
            option::UNAME => {
                let uname = text();
                let mut words = uname.split_whitespace().skip(1);
                header.hostname = words.next().map(str::to_owned);
                header.release = words.next().map(str::to_owned);
            }
            option::VERSION => header.tool = Some(tool(&text())),
            option::TIME_SHIFT => self.guest = true,
            option::TSC2NSEC => {
                let read = (order.u32_at(data, 0), order.u32_at(data, 4), order.u64_at(data, 8));
                match read {
                    (Some(mult), Some(shift @ 0..=63), Some(offset)) => {
                        self.tsc = Some(TscToNs { mult, shift, offset });
                    }
                    _ => report.damage(Place::Byte(at), "the conversion of its clock is damaged"),
                }
            }
            option::BUFFER_TEXT => self.latency = true,
            notes::OPTION => {
                if let Err(why) = notes::read(&String::from_utf8_lossy(data), header) {
                    report.damage(Place::Byte(at), format!("the recorder's notes: {why}"));
                }
            }
            option::HEADER_INFO
            | option::FTRACE_EVENTS
            | option::EVENT_FORMATS
            | option::KALLSYMS
            | option::PRINTK
                if v7 =>
            {
                match order.u64_at(data, 0) {
                    Some(place) => self.sections.push((id, place)),
                    None => report.damage(Place::Byte(at), "the option of a section is too short"),
                }
            }
            _ => {}
        }
    }
}

fn tool(version: &str) -> String {
    // The recorder of this project names itself.
    if version.starts_with("schedtwin") {
        version.to_owned()
    } else {
        format!("trace-cmd {version}")
    }
}

/// The clock in brackets of `local [global] counter`.
fn chosen_clock(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (clock, _) = rest.split_once(']')?;
    Some(clock.to_owned())
}

/// Reads the metadata.
pub fn read<R: Read + Seek>(
    input: &mut R,
    file_bytes: u64,
    names: &mut Names,
    report: &mut SourceReport,
) -> Result<Layout, SourceFault> {
    let mut bytes = reader_at(input, 0, file_bytes, ByteOrder::Little)?;
    let head = metadata::read_head(&mut bytes)?;
    let mut header = TraceHeader { format: "trace.dat", ..TraceHeader::default() };
    let mut decoder = Decoder::default();
    let mut options = Options::default();
    let found = &mut Found { decoder: &mut decoder, names, report };
    let page_bytes = checked_page(head.page_bytes)?;
    let (page, mut buffers) = match head.version.as_str() {
        "6" => read_6(&mut bytes, &head, page_bytes, found, &mut options, &mut header)?,
        "7" => {
            let at = read_7_head(&mut bytes)?;
            drop(bytes);
            read_7(input, file_bytes, &head, at, found, &mut options, &mut header)?
        }
        version => {
            return Err(unusable(format!(
                "it is of version {}; 6 and 7 are read (`trace-cmd convert --file-version 7`)",
                version.escape_default()
            )));
        }
    };
    if head.version == "6" {
        for (place, name) in std::mem::take(&mut options.instances) {
            if buffers.len() == BUFFERS_MAX {
                return Err(unusable(format!("it has more than {BUFFERS_MAX} buffers")));
            }
            let mut bytes = reader_at(input, place, file_bytes, head.order)?;
            let word = bytes.until_nul(16, "the keyword of a buffer")?;
            if word != "flyrecord" {
                return Err(unusable(format!(
                    "it has no records at byte {place}, where its buffer `{}` is",
                    name.escape_default()
                )));
            }
            let cpus = read_table(&mut bytes, header.nr_cpus.unwrap_or(0) as u32)?;
            buffers.push(Buffer { name, clock: None, page_bytes, packing: Packing::None, cpus });
        }
    }
    if options.guest {
        return Err(unusable(
            "it is the recording of a guest, whose clock is shifted to its host's; give the host's recording, or \
             record in the guest without `-A`",
        ));
    }
    if options.latency {
        return Err(unusable(
            "it holds the text of a latency tracer; give that text: `trace-cmd report`",
        ));
    }
    one_clock(&mut buffers, &mut options, &mut header, found.report)?;
    let cpus =
        buffers.iter().flat_map(|buffer| &buffer.cpus).map(|cpu| usize::from(cpu.cpu) + 1).max();
    header.nr_cpus = header.nr_cpus.max(cpus);
    let tsc = options.tsc.filter(|_| header.clock.as_deref() == Some("x86-tsc"));
    match header.clock.as_deref() {
        Some("counter") => {
            return Err(unusable(
                "its clock `counter` counts events, not time; record with `-C mono`",
            ));
        }
        Some("x86-tsc") if tsc.is_none() => {
            return Err(unusable(
                "its clock x86-tsc has no conversion to time in the file; record with `-C mono`",
            ));
        }
        _ => {}
    }
    Ok(Layout { decoder, page, buffers, header, tsc })
}

fn checked_page(page_bytes: u32) -> Result<usize, SourceFault> {
    let bytes = page_bytes as usize;
    if !(64..=PAGE_BYTES_MAX).contains(&bytes) || !bytes.is_power_of_two() {
        return Err(unusable(format!(
            "its page has {page_bytes} bytes; that is no size of a page"
        )));
    }
    Ok(bytes)
}

/// Leaves out buffers of other clocks than the first one's.
fn one_clock(
    buffers: &mut Vec<Buffer>,
    options: &mut Options,
    header: &mut TraceHeader,
    report: &mut SourceReport,
) -> Result<(), SourceFault> {
    let with_data = |buffer: &&Buffer| buffer.cpus.iter().any(|cpu| cpu.bytes > 0);
    let first = buffers.iter().find(with_data).and_then(|buffer| buffer.clock.clone());
    header.clock = first.or(options.clock.take()).or_else(|| Some("local".to_owned()));
    let clock = header.clock.clone();
    buffers.retain(|buffer| {
        let same = buffer.clock.is_none() || buffer.clock == clock || !with_data(&buffer);
        if !same {
            let at = buffer.cpus.first().map_or(0, |cpu| cpu.at);
            report.damage(
                Place::Byte(at),
                format!(
                    "the buffer `{}` has the clock {} and not {}; it is left out",
                    buffer.name.escape_default(),
                    buffer.clock.as_deref().unwrap_or(""),
                    clock.as_deref().unwrap_or("")
                ),
            );
        }
        same
    });
    Ok(())
}

/// Version 6, from behind the head up to the clock.
fn read_6<R: Read>(
    bytes: &mut Bytes<R>,
    head: &metadata::Head,
    page_bytes: usize,
    found: &mut Found,
    options: &mut Options,
    header: &mut TraceHeader,
) -> Result<(PageLayout, Vec<Buffer>), SourceFault> {
    let page = metadata::read_page_layout(bytes, head)?;
    metadata::read_ftrace_formats(bytes, found)?;
    metadata::read_systems(bytes, found)?;
    metadata::read_kallsyms(bytes, found)?;
    metadata::read_printk_formats(bytes, found)?;
    metadata::skip_cmdlines(bytes)?;
    let cpus = bytes.u32("the number of CPUs")?;
    if cpus as usize > CPUS_MAX {
        return Err(unusable(format!("it claims {cpus} CPUs; at most {CPUS_MAX} are read")));
    }
    header.nr_cpus = Some(cpus as usize);
    let keyword = |bytes: &mut Bytes<R>| -> Result<[u8; 10], SourceFault> {
        let mut word = [0; 10];
        bytes.fill(&mut word, "the keyword behind the CPUs")?;
        Ok(word)
    };
    let mut word = keyword(bytes)?;
    if word == *b"options  \0" {
        for _ in 0.. {
            let at = bytes.at();
            let id = bytes.u16("an option")?;
            if id == option::DONE {
                break;
            }
            let size = bytes.u32("an option")?;
            let data = bytes.bytes(u64::from(size), TEXT_BYTES_MAX, "option")?;
            options.take(id, &data, at, head.order, false, header, found.report);
            if options.instances.len() > BUFFERS_MAX {
                return Err(unusable(format!("it has more than {BUFFERS_MAX} buffers")));
            }
        }
        word = keyword(bytes)?;
    }
    match &word {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            return Err(unusable(
                "it holds the text of a latency tracer; give that text: `trace-cmd report`",
            ));
        }
        other => {
            return Err(unusable(format!(
                "it has `{}` where its records belong; known are `flyrecord` and `latency`",
                other.escape_ascii()
            )));
        }
    }
    let table = read_table(bytes, cpus)?;
    if options.has_clock {
        // Some writers left the text away: the clock is the default one then.
        let clock = bytes
            .u64("the clock")
            .and_then(|size| bytes.text(size, 4096, "clock"))
            .ok()
            .and_then(|text| chosen_clock(&text));
        options.clock = clock.or(options.clock.take());
    }
    let top = Buffer {
        name: String::new(),
        clock: None,
        page_bytes,
        packing: Packing::None,
        cpus: table,
    };
    Ok((page, vec![top]))
}

/// Place and size of each CPU's data.
fn read_table<R: Read>(bytes: &mut Bytes<R>, cpus: u32) -> Result<Vec<BufferCpu>, SourceFault> {
    let mut table = Vec::new();
    for cpu in 0..cpus {
        let at = bytes.u64("the table of CPUs")?;
        let size = bytes.u64("the table of CPUs")?;
        table.push(BufferCpu { cpu: cpu as u16, at, bytes: size });
    }
    Ok(table)
}

/// The rest of version 7's head: the packing is read again where sections are, so only the place is returned.
fn read_7_head<R: Read>(bytes: &mut Bytes<R>) -> Result<(String, u64), SourceFault> {
    let packing = bytes.until_nul(64, "the packing's name")?;
    bytes.until_nul(64, "the packing's version")?;
    let at = bytes.u64("the place of its options")?;
    Ok((packing, at))
}

/// The head of a section.
struct Section {
    id: u16,
    packed: bool,
    at: u64,
    size: u64,
}

const SECTION_HEAD_BYTES: u64 = 16;

fn read_section<R: Read + Seek>(
    input: &mut R,
    at: u64,
    file_bytes: u64,
    order: ByteOrder,
) -> Result<Section, SourceFault> {
    let mut bytes = reader_at(input, at, file_bytes, order)?;
    let id = bytes.u16("a section")?;
    let flags = bytes.u16("a section")?;
    bytes.u32("a section")?;
    let size = bytes.u64("a section")?;
    Ok(Section { id, packed: flags & 1 != 0, at: at + SECTION_HEAD_BYTES, size })
}

/// Returns the content of a section, unpacked.
fn section_bytes<R: Read + Seek>(
    input: &mut R,
    section: &Section,
    file_bytes: u64,
    packing: Packing,
) -> Result<Vec<u8>, SourceFault> {
    let order = packing.order();
    let mut bytes = reader_at(input, section.at, file_bytes, order)?;
    if !section.packed {
        return bytes.bytes(section.size, TEXT_BYTES_MAX, "section");
    }
    let packed = bytes.u32("a packed section")?;
    let size = bytes.u32("a packed section")?;
    if u64::from(size) > TEXT_BYTES_MAX {
        return Err(unusable(format!(
            "its section at byte {} unpacks to {size} bytes, more than {TEXT_BYTES_MAX}",
            section.at
        )));
    }
    let data = bytes.bytes(u64::from(packed), TEXT_BYTES_MAX, "packed section")?;
    packing.unpack(&data, size as usize).map_err(|why| {
        unusable(format!("its section at byte {} cannot be unpacked: {why}", section.at))
    })
}

/// Version 7, from its options on.
fn read_7<R: Read + Seek>(
    input: &mut R,
    file_bytes: u64,
    head: &metadata::Head,
    (packing, first): (String, u64),
    found: &mut Found,
    options: &mut Options,
    header: &mut TraceHeader,
) -> Result<(PageLayout, Vec<Buffer>), SourceFault> {
    let order = head.order;
    let packing = match packing.as_str() {
        "none" => Packing::None,
        "zlib" => Packing::Zlib(order),
        "zstd" => Packing::Zstd(order),
        other => {
            return Err(unusable(format!(
                "it is packed by `{}`; known are none, zlib and zstd (`trace-cmd convert --compression none`)",
                other.escape_default()
            )));
        }
    };
    read_chain(input, file_bytes, packing, order, first, found, options, header)?;
    let mut page = None;
    // The layout first: the order of sections is free.
    options.sections.sort();
    for (id, place) in std::mem::take(&mut options.sections) {
        // Sections are in the order of their numbers: formats are known here.
        if id == option::KALLSYMS && !found.decoder.names_functions() {
            continue;
        }
        let section = read_section(input, place, file_bytes, order)?;
        if section.id != id {
            return Err(unusable(format!(
                "it has section {} at byte {place}, where section {id} belongs",
                section.id
            )));
        }
        let data = section_bytes(input, &section, file_bytes, packing)?;
        let bytes = &mut Bytes::new(&data[..], 0, data.len() as u64, order);
        match id {
            option::HEADER_INFO => page = Some(metadata::read_page_layout(bytes, head)?),
            option::FTRACE_EVENTS => metadata::read_ftrace_formats(bytes, found)?,
            option::EVENT_FORMATS => metadata::read_systems(bytes, found)?,
            option::KALLSYMS => metadata::read_kallsyms(bytes, found)?,
            _ => metadata::read_printk_formats(bytes, found)?,
        }
    }
    let page = page.ok_or_else(|| unusable("it lacks the layout of its pages (header_page)"))?;
    let mut buffers = Vec::new();
    for data in std::mem::take(&mut options.buffers) {
        if buffers.len() == BUFFERS_MAX {
            return Err(unusable(format!("it has more than {BUFFERS_MAX} buffers")));
        }
        let bytes = &mut Bytes::new(&data[..], 0, data.len() as u64, order);
        let at = bytes.u64("the option of a buffer")?;
        let name = bytes.until_nul(256, "a buffer's name")?;
        let clock = bytes.until_nul(64, "a buffer's clock")?;
        let page_bytes = checked_page(bytes.u32("the option of a buffer")?)?;
        let count = bytes.u32("the option of a buffer")?;
        if count as usize > CPUS_MAX {
            return Err(unusable(format!(
                "its buffer has {count} CPUs; at most {CPUS_MAX} are read"
            )));
        }
        let mut cpus = Vec::new();
        for _ in 0..count {
            let cpu = bytes.u32("the option of a buffer")?;
            let at = bytes.u64("the option of a buffer")?;
            let size = bytes.u64("the option of a buffer")?;
            let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
            cpus.push(BufferCpu { cpu, at, bytes: size });
        }
        let packed = match packing {
            Packing::None => false,
            _ => read_section(input, at, file_bytes, order)?.packed,
        };
        buffers.push(Buffer {
            clock: Some(clock).filter(|clock| !clock.is_empty()),
            packing: if packed { packing } else { Packing::None },
            name,
            page_bytes,
            cpus,
        });
    }
    buffers.sort_by_key(|buffer| !buffer.name.is_empty());
    Ok((page, buffers))
}

/// Follows the chain of options.
#[allow(clippy::too_many_arguments)]
fn read_chain<R: Read + Seek>(
    input: &mut R,
    file_bytes: u64,
    packing: Packing,
    order: ByteOrder,
    first: u64,
    found: &mut Found,
    options: &mut Options,
    header: &mut TraceHeader,
) -> Result<(), SourceFault> {
    let mut visited = Vec::new();
    let mut next = first;
    let mut count = 0;
    while next != 0 {
        if visited.contains(&next) || visited.len() == SECTIONS_MAX {
            return Err(unusable(format!("its options lead in a circle at byte {next}")));
        }
        visited.push(next);
        let section = read_section(input, next, file_bytes, order)?;
        if section.id != 0 {
            return Err(unusable(format!(
                "it has section {} at byte {next}, where options belong",
                section.id
            )));
        }
        let data = section_bytes(input, &section, file_bytes, packing)?;
        let bytes = &mut Bytes::new(&data[..], section.at, data.len() as u64, order);
        next = 0;
        while bytes.left() > 0 {
            let at = bytes.at();
            let id = bytes.u16("an option")?;
            let size = bytes.u32("an option")?;
            let value = bytes.bytes(u64::from(size), TEXT_BYTES_MAX, "option")?;
            if id == option::DONE {
                next = order.u64_at(&value, 0).unwrap_or(0);
                break;
            }
            count += 1;
            if count > OPTIONS_MAX {
                return Err(unusable(format!("it has more than {OPTIONS_MAX} options")));
            }
            options.take(id, &value, at, order, true, header, found.report);
        }
    }
    Ok(())
}
