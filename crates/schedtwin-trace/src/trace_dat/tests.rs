// SPDX-License-Identifier: GPL-2.0-or-later
//! Small files of both versions, whole and broken.

use super::write::{CpuPages, Texts, write};
use super::{TraceDat, notes};
use crate::event::listing::{read_to_the_end, shown};
use crate::event::{Interrupt, TraceEvent, TraceEventKind, TraceSource};
use crate::tracepoint::fixtures::{self, page, print, switch, waking};
use std::io::Cursor;

const UI: (&str, i32) = ("ui", 7);
const IDLE: (&str, i32) = ("swapper", 0);

/// The texts of a small tracefs.
pub(crate) fn texts() -> Texts {
    let mut text = notes::NotesText::default();
    text.note("lost", 3);
    Texts {
        header_page: fixtures::HEADER_PAGE.into(),
        header_event: fixtures::HEADER_EVENT.into(),
        ftrace_formats: vec![fixtures::print_format().into()],
        systems: vec![(
            "sched".to_owned(),
            vec![fixtures::switch_format().into(), fixtures::waking_format().into()],
        )],
        trace_clock: b"local [boot]".to_vec(),
        options: vec![
            (super::write::OPTION_UNAME, b"Linux host 6.12.3 x86_64".to_vec()),
            (9999, b"of some later writer".to_vec()),
            (notes::OPTION, text.as_str().into()),
        ],
        ..Texts::default()
    }
}

/// CPU 0 and CPU 2 with events, in turn; CPU 1 without.
pub(crate) fn cpus() -> Vec<Vec<u8>> {
    let mut first = page(None, &[(100, waking(UI, 2)), (300, switch(IDLE, UI))]);
    first.extend(page(Some(5), &[(500, print(7, "B|7|draw")), (700, switch(UI, IDLE))]));
    vec![first, Vec::new(), page(None, &[(200, switch(IDLE, UI)), (600, switch(UI, IDLE))])]
}

fn version_6() -> Vec<u8> {
    let mut file = Vec::new();
    let pages = cpus();
    let pages = pages.iter().map(|pages| CpuPages { bytes: pages.len() as u64, pages: &pages[..] });
    let written = write(&mut file, &texts(), 4096, pages.collect()).unwrap();
    assert_eq!(written, file.len() as u64);
    file
}

/// The same as version 7: sections by a chain of two links, packed by `packing` if it is not `none`.
fn version_7(packing: &str) -> Vec<u8> {
    let pack = |bytes: &[u8]| -> Vec<u8> {
        match packing {
            "zlib" => {
                let mut packed = Vec::new();
                let mut encoder =
                    flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast());
                std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
                packed
            }
            _ => ruzstd::encoding::compress_to_vec(
                bytes,
                ruzstd::encoding::CompressionLevel::Fastest,
            ),
        }
    };
    let chunk = |bytes: &[u8]| -> Vec<u8> {
        let packed = pack(bytes);
        let sizes = [packed.len() as u32, bytes.len() as u32];
        [&sizes[0].to_le_bytes()[..], &sizes[1].to_le_bytes(), &packed].concat()
    };
    let texts = texts();
    let mut file = b"\x17\x08\x44tracing7\0\0\x08".to_vec();
    file.extend(4096_u32.to_le_bytes());
    file.extend(packing.as_bytes());
    file.extend(b"\0 1\0");
    let first_options_at = file.len();
    file.extend([0; 8]);
    let section = |file: &mut Vec<u8>, id: u16, content: &[u8]| -> u64 {
        let at = file.len() as u64;
        let packed = packing != "none" && id != 0;
        let content = if packed { chunk(content) } else { content.to_vec() };
        file.extend(id.to_le_bytes());
        file.extend(u16::from(packed).to_le_bytes());
        file.extend([0; 4]);
        file.extend((content.len() as u64).to_le_bytes());
        file.extend(content);
        at
    };
    let sized = |text: &[u8]| [&(text.len() as u64).to_le_bytes()[..], text].concat();
    let header = [
        b"header_page\0",
        &sized(&texts.header_page)[..],
        b"header_event\0",
        &sized(&texts.header_event),
    ]
    .concat();
    let ftrace = [&1_u32.to_le_bytes()[..], &sized(&texts.ftrace_formats[0])].concat();
    let (system, formats) = &texts.systems[0];
    let mut systems =
        [&1_u32.to_le_bytes()[..], system.as_bytes(), b"\0", &(formats.len() as u32).to_le_bytes()]
            .concat();
    formats.iter().for_each(|format| systems.extend(sized(format)));
    let mut options = Vec::new();
    let option = |options: &mut Vec<u8>, id: u16, data: &[u8]| {
        options.extend(id.to_le_bytes());
        options.extend((data.len() as u32).to_le_bytes());
        options.extend(data);
    };
    for (id, data) in &texts.options {
        option(&mut options, *id, data);
    }
    // The layout of pages last: the order is free.
    for (id, content) in [(18, &systems), (17, &ftrace), (16, &header)] {
        let at = section(&mut file, id, content);
        option(&mut options, id, &at.to_le_bytes());
    }
    let buffer_at = file.len() as u64;
    file.extend(3_u16.to_le_bytes());
    file.extend(u16::from(packing != "none").to_le_bytes());
    file.extend([0; 12]);
    let mut buffer = buffer_at.to_le_bytes().to_vec();
    buffer.extend(b"\0boot\0");
    buffer.extend(4096_u32.to_le_bytes());
    buffer.extend(3_u32.to_le_bytes());
    for (cpu, pages) in cpus().iter().enumerate() {
        file.resize(file.len().next_multiple_of(4096), 0);
        let at = file.len() as u64;
        if !pages.is_empty() {
            match packing {
                "none" => file.extend(pages),
                _ => {
                    file.extend(((pages.len() / 4096) as u32).to_le_bytes());
                    pages.chunks(4096).for_each(|page| file.extend(chunk(page)));
                }
            }
        }
        buffer.extend((cpu as u32).to_le_bytes());
        buffer.extend(at.to_le_bytes());
        // As one writer has it: without the number of chunks.
        let size = file.len() as u64 - at;
        buffer
            .extend((if packing == "none" { size } else { size.saturating_sub(4) }).to_le_bytes());
    }
    let second = {
        let mut second = Vec::new();
        option(&mut second, 3, &buffer);
        option(&mut second, 0, &0_u64.to_le_bytes());
        section(&mut file, 0, &second)
    };
    option(&mut options, 0, &second.to_le_bytes());
    let first = section(&mut file, 0, &options);
    file[first_options_at..first_options_at + 8].copy_from_slice(&first.to_le_bytes());
    file
}

/// The events of a file, and its reader at the end.
type ReadToTheEnd<'a> = (Vec<TraceEvent>, TraceDat<Cursor<&'a [u8]>>);

fn read(file: &[u8]) -> Result<ReadToTheEnd<'_>, String> {
    let source = TraceDat::open(Cursor::new(file)).map_err(|fault| fault.to_string())?;
    read_to_the_end(source).map_err(|fault| fault.to_string())
}

const EVENTS: &str = "100 0 sched_waking\n200 2 sched_switch\n300 0 sched_switch\n500 0 lost Some(5)\n\
                      500 0 print\n600 2 sched_switch\n700 0 sched_switch\n";

#[test]
fn both_versions_and_each_packing_hold_the_same_events_in_the_order_of_time() {
    for (what, file) in [
        ("6", version_6()),
        ("7", version_7("none")),
        ("7 zlib", version_7("zlib")),
        ("7 zstd", version_7("zstd")),
    ] {
        let (events, source) = read(&file).unwrap_or_else(|why| panic!("{what}: {why}"));
        assert_eq!(shown(&events, &source), EVENTS, "{what}");
        let report = source.report();
        assert_eq!(
            (report.pieces, report.damage_count, report.cut),
            (3, 0, 0),
            "{what}: {:?}",
            report.damages
        );
        assert_eq!(report.lost().events, 5);
        let header = source.header();
        assert_eq!(header.clock.as_deref(), Some("boot"), "{what}");
        assert_eq!(header.release.as_deref(), Some("6.12.3"));
        assert_eq!(header.nr_cpus, Some(3));
        assert_eq!(header.options, [("lost".to_owned(), "3".to_owned())]);
        let waking = &events[0];
        assert_eq!(
            (waking.context.interrupt, waking.context.irqs_off),
            (Interrupt::Hardirq, Some(true))
        );
        assert!(matches!(events[4].kind, TraceEventKind::SliceBegin { tgid: 7, .. }));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_says_so_or_gives_the_events_before() {
    for file in [version_6(), version_7("none"), version_7("zstd")] {
        let whole = read(&file).unwrap().0.len();
        for length in 0..file.len() {
            match read(&file[..length]) {
                Ok((events, source)) => {
                    let told = source.report().cut == 1 || source.report().damage_count > 0;
                    assert!(events.len() == whole || told, "{length} of {}", file.len());
                }
                Err(why) => assert!(why.starts_with("it"), "{length}: {why}"),
            }
        }
    }
}

#[test]
fn a_byte_that_is_wrong_anywhere_is_no_panic_and_takes_no_memory() {
    for file in [version_6(), version_7("none"), version_7("zlib"), version_7("zstd")] {
        for at in 0..file.len() {
            for value in [0x7f, 0xff] {
                // Padding between parts need not be tried everywhere.
                if file[at] == value || (file[at] == 0 && at % 7 != 0) {
                    continue;
                }
                let mut broken = file.clone();
                broken[at] = value;
                let _ = read(&broken);
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    let v6 = version_6();
    let replaced = |from: &[u8], to: &[u8]| {
        let at = v6.windows(from.len()).position(|window| window == from).unwrap();
        let mut file = v6.clone();
        file[at..at + to.len()].copy_from_slice(to);
        read(&file).err().unwrap_or_default()
    };
    for (from, to, message) in [
        (
            &b"tracing6"[..],
            &b"tracing5"[..],
            "it is of version 5; 6 and 7 are read (`trace-cmd convert --file-version 7`)",
        ),
        (b"header_page", b"header_pagf", "it has `header_pagf` where header_page belongs"),
        (
            b"flyrecord",
            b"latency  ",
            "it holds the text of a latency tracer; give that text: `trace-cmd report`",
        ),
        (
            b"\x01\0\0\0sched",
            b"\xff\xff\xff\xffsched",
            "it claims 4294967295 systems of tracepoints, more than 8192",
        ),
        (
            b"header_page\0",
            b"header_page\0\xff\xff\xff\xff\xff\xff\xff\x7f",
            "its header_page at byte 38 claims 9223372036854775807 bytes, and 20440 are left",
        ),
    ] {
        let told = replaced(from, to);
        // Places in the file move with the texts; the words do not.
        let words = |text: &str| {
            text.split_whitespace()
                .filter(|word| !word.bytes().any(|b| b.is_ascii_digit()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(&told), words(message), "{told}");
    }
    let counter = {
        let mut texts = texts();
        texts.trace_clock = b"local [counter]".to_vec();
        let mut file = Vec::new();
        write(&mut file, &texts, 4096, Vec::<CpuPages<&[u8]>>::new()).unwrap();
        file
    };
    assert_eq!(
        read(&counter).err().unwrap(),
        "its clock `counter` counts events, not time; record with `-C mono`"
    );
    let guest = {
        let mut texts = texts();
        texts.options.push((12, vec![0; 16]));
        let mut file = Vec::new();
        write(&mut file, &texts, 4096, Vec::<CpuPages<&[u8]>>::new()).unwrap();
        file
    };
    assert!(read(&guest).err().unwrap().starts_with("it is the recording of a guest"));
    let mut circle = version_7("none");
    let first = u64::from_le_bytes(circle[26..34].try_into().unwrap());
    let end = circle.len() - 8;
    circle[end..].copy_from_slice(&first.to_le_bytes());
    assert_eq!(
        read(&circle).err().unwrap(),
        format!("its options lead in a circle at byte {first}")
    );
}

#[test]
fn a_damaged_page_is_a_loss_of_its_cpu_and_the_next_page_is_read() {
    let mut file = version_6();
    let size = file.len();
    // The first page of CPU 0 is the first of the last three.
    let page = size - 3 * 4096;
    file[page + 8..page + 10].copy_from_slice(&0x1fff_u16.to_le_bytes());
    let (events, source) = read(&file).unwrap();
    assert_eq!(source.report().damage_count, 1);
    assert_eq!(source.report().damages[0].what, "a page claims more data than it has");
    assert!(
        shown(&events, &source).contains("500 0 lost None\n500 0 print"),
        "{}",
        shown(&events, &source)
    );
}

#[test]
fn a_tracepoint_that_two_buffers_have_comes_once() {
    let file = {
        let mut file = version_6();
        // An instance with the same pages: its table stands behind, and option 3 points there.
        let place = file.len() as u64;
        let mut texts = texts();
        texts.options.push((3, [&0_u64.to_le_bytes()[..], b"two\0"].concat()));
        let pages = cpus();
        let parts =
            pages.iter().map(|pages| CpuPages { bytes: pages.len() as u64, pages: &pages[..] });
        let mut with_option = Vec::new();
        write(&mut with_option, &texts, 4096, parts.collect()).unwrap();
        let table_at = with_option.len() as u64;
        let option_at = with_option.windows(12).position(|w| w.ends_with(b"two\0")).unwrap();
        with_option[option_at..option_at + 8].copy_from_slice(&table_at.to_le_bytes());
        let first_cpu_at = with_option.windows(4).rposition(|w| w == b"flyr").unwrap() + 10;
        let table = with_option[first_cpu_at..first_cpu_at + 48].to_vec();
        with_option.extend(b"flyrecord\0");
        with_option.extend(table);
        file.clear();
        file.extend(with_option);
        assert!(place > 0);
        file
    };
    let (events, source) = read(&file).unwrap();
    assert_eq!(shown(&events, &source).matches("sched_switch").count(), 4);
    assert_eq!(source.report().foreign, 6, "the six events of the instance");
}
