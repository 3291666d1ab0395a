// SPDX-License-Identifier: GPL-2.0-or-later
//! Small files, plain, packed and as from a pipe, whole and broken.

use super::PerfData;
use crate::event::listing::{read_to_the_end, shown};
use crate::event::{TraceEvent, TraceEventKind, TraceSource};
use crate::tracepoint::fixtures::{self, switch, waking};
use std::io::Cursor;

const UI: (&str, i32) = ("ui", 7);
const IDLE: (&str, i32) = ("swapper", 0);

/// `IP | TID | TIME | CPU | PERIOD | RAW | IDENTIFIER`, as `perf sched record` asks for it.
const SAMPLE_TYPE: u64 = 0x10587;

fn tracing_data() -> Vec<u8> {
    let sized = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut data = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    data.extend(4096_u32.to_le_bytes());
    data.extend(b"header_page\0");
    data.extend(sized(fixtures::HEADER_PAGE));
    data.extend(b"header_event\0");
    data.extend(sized(fixtures::HEADER_EVENT));
    data.extend(0_u32.to_le_bytes());
    data.extend(1_u32.to_le_bytes());
    data.extend(b"sched\0");
    data.extend(2_u32.to_le_bytes());
    data.extend(sized(&fixtures::switch_format()));
    data.extend(sized(&fixtures::waking_format()));
    data.extend([0; 16]);
    data
}

fn attr(id: u16) -> Vec<u8> {
    let mut attr = vec![0; 128];
    attr[0..4].copy_from_slice(&2_u32.to_le_bytes());
    attr[4..8].copy_from_slice(&128_u32.to_le_bytes());
    attr[8..16].copy_from_slice(&u64::from(id).to_le_bytes());
    attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_le_bytes());
    // sample_id_all.
    attr[40..48].copy_from_slice(&(1_u64 << 18).to_le_bytes());
    attr
}

/// The number that samples of a tracepoint carry.
fn number_of(id: u16) -> u64 {
    1000 + u64::from(id)
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

fn sample(time: u64, cpu: u32, id: u16, raw: &[u8]) -> Vec<u8> {
    let mut body = number_of(id).to_le_bytes().to_vec();
    body.extend([0; 8]);
    body.extend(5_u32.to_le_bytes());
    body.extend(7_u32.to_le_bytes());
    body.extend(time.to_le_bytes());
    body.extend(cpu.to_le_bytes());
    body.extend([0; 4]);
    body.extend(1_u64.to_le_bytes());
    let padded = (raw.len() + 4).next_multiple_of(8) - 4;
    body.extend((padded as u32).to_le_bytes());
    body.extend(raw);
    body.resize(body.len() + padded - raw.len(), 0);
    record(9, 0, &body)
}

/// Returns the fields behind records that are no samples: TID, TIME, CPU, IDENTIFIER.
fn trailer(time: u64, cpu: u32) -> Vec<u8> {
    let ids =
        [&5_u32.to_le_bytes()[..], &7_u32.to_le_bytes(), &time.to_le_bytes(), &cpu.to_le_bytes()]
            .concat();
    [&ids[..], &[0; 4], &number_of(fixtures::SWITCH).to_le_bytes()].concat()
}

fn comm(pid: u32, tid: u32, time: u64, name: &[u8; 8]) -> Vec<u8> {
    record(3, 0, &[&pid.to_le_bytes()[..], &tid.to_le_bytes(), name, &trailer(time, 0)].concat())
}

fn fork(child: u32, parent: u32, time: u64) -> Vec<u8> {
    let body = [child, parent, child, parent].map(u32::to_le_bytes).concat();
    record(7, 0, &[&body[..], &time.to_le_bytes(), &trailer(time, 0)].concat())
}

fn lost(time: u64, cpu: u32, events: u64) -> Vec<u8> {
    record(2, 0, &[&0_u64.to_le_bytes()[..], &events.to_le_bytes(), &trailer(time, cpu)].concat())
}

const ROUND: u32 = 68;

/// Two rounds; the CPUs' records stand one CPU behind the other.
fn rounds() -> [Vec<Vec<u8>>; 3] {
    [
        vec![
            comm(5, 7, 0, b"ui\0\0\0\0\0\0"),
            sample(100, 0, fixtures::WAKING, &waking(UI, 1)),
            sample(300, 0, fixtures::SWITCH, &switch(IDLE, UI)),
            sample(200, 1, fixtures::SWITCH, &switch(IDLE, UI)),
        ],
        vec![
            sample(500, 0, fixtures::SWITCH, &switch(UI, IDLE)),
            fork(8, 7, 450),
            sample(290, 1, fixtures::SWITCH, &switch(UI, IDLE)),
            lost(600, 1, 4),
        ],
        vec![
            comm(8, 8, 650, b"new\0\0\0\0\0"),
            sample(400, 1, fixtures::SWITCH, &switch(IDLE, UI)),
        ],
    ]
}

fn plain_records() -> Vec<u8> {
    let mut data = Vec::new();
    for round in rounds() {
        data.extend(round.concat());
        data.extend(record(ROUND, 0, &[]));
    }
    data
}

/// The same as perf packs it: one frame that does not end, its blocks cut by the records that hold it.
fn packed_records() -> Vec<u8> {
    // A frame with a window of 1 KiB.
    let mut stream = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    stream.extend([0, 0]);
    let mut data = Vec::new();
    for round in rounds() {
        let bytes = round.concat();
        for block in bytes.chunks(100) {
            // A block that is not packed and not the last.
            stream.extend(&(u32::try_from(block.len()).unwrap() << 3).to_le_bytes()[..3]);
            stream.extend(block);
        }
        for piece in std::mem::take(&mut stream).chunks(130) {
            data.extend(record(81, 0, piece));
        }
        data.extend(record(ROUND, 0, &[]));
    }
    data
}

/// A perf.data with those records.
pub(crate) fn file(data: &[u8]) -> Vec<u8> {
    let attrs = [attr(fixtures::SWITCH), attr(fixtures::WAKING)];
    let ids = [fixtures::SWITCH, fixtures::WAKING].map(number_of);
    let (ids_at, attrs_at) = (104_u64, 120_u64);
    let data_at = attrs_at + 2 * 144;
    let mut bytes = b"PERFILE2".to_vec();
    for number in [104, 144, attrs_at, 2 * 144, data_at, data.len() as u64, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    // TRACING_DATA and OSRELEASE.
    bytes.extend((1_u64 << 1 | 1 << 4).to_le_bytes());
    bytes.extend([0; 24]);
    ids.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
    for (index, attr) in attrs.iter().enumerate() {
        bytes.extend(attr);
        bytes.extend((ids_at + 8 * index as u64).to_le_bytes());
        bytes.extend(8_u64.to_le_bytes());
    }
    assert_eq!(bytes.len() as u64, data_at);
    bytes.extend(data);
    let tracing = tracing_data();
    let release = [&8_u32.to_le_bytes()[..], b"6.12.3\0\0"].concat();
    let features_at = bytes.len() as u64 + 32;
    for (at, size) in
        [(features_at, tracing.len()), (features_at + tracing.len() as u64, release.len())]
    {
        bytes.extend(at.to_le_bytes());
        bytes.extend((size as u64).to_le_bytes());
    }
    bytes.extend(tracing);
    bytes.extend(release);
    bytes
}

/// A directory's `data` and its parts, one for each CPU.
pub(crate) fn parts() -> Vec<Vec<u8>> {
    let [main, first, second] = rounds();
    let of = |records: Vec<Vec<u8>>, cpu: u32| -> Vec<u8> {
        let at = records.into_iter().filter(|record| record[0] == 9 && record[44] == cpu as u8);
        at.collect::<Vec<_>>().concat()
    };
    let all = [&main[1..], &first, &second].concat();
    vec![file(&main[0]), of(all.clone(), 0), of(all, 1)]
}

/// As `perf record -o -` writes it.
fn pipe() -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(16_u64.to_le_bytes());
    for id in [fixtures::SWITCH, fixtures::WAKING] {
        bytes.extend(record(64, 0, &[attr(id), number_of(id).to_le_bytes().to_vec()].concat()));
    }
    let tracing = tracing_data();
    bytes.extend(record(66, 0, &(tracing.len() as u32).to_le_bytes()));
    bytes.extend(&tracing);
    bytes.resize(bytes.len() + tracing.len().next_multiple_of(8) - tracing.len(), 0);
    bytes.extend(record(
        80,
        0,
        &[&4_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), b"6.12.3\0\0"].concat(),
    ));
    bytes.extend(plain_records());
    bytes
}

/// The events of a file, and its reader at the end.
type ReadToTheEnd<'a> = (Vec<TraceEvent>, PerfData<Cursor<&'a [u8]>>);

fn read(file: &[u8]) -> Result<ReadToTheEnd<'_>, String> {
    let source = PerfData::open(Cursor::new(file)).map_err(|fault| fault.to_string())?;
    read_to_the_end(source).map_err(|fault| fault.to_string())
}

const EVENTS: &str = "100 0 sched_waking\n200 1 sched_switch\n290 1 sched_switch\n300 0 sched_switch\n\
    400 1 sched_switch\n450 0 PERF_RECORD_FORK\n500 0 sched_switch\n600 1 lost Some(4)\n650 0 PERF_RECORD_COMM\n";

#[test]
fn plain_and_packed_files_and_pipes_hold_the_same_events_in_the_order_of_time() {
    for (what, file) in
        [("plain", file(&plain_records())), ("packed", file(&packed_records())), ("pipe", pipe())]
    {
        let (events, source) = read(&file).unwrap_or_else(|why| panic!("{what}: {why}"));
        assert_eq!(shown(&events, &source), EVENTS, "{what}");
        let report = source.report();
        assert_eq!((report.damage_count, report.cut), (0, 0), "{what}: {:?}", report.damages);
        assert_eq!(report.lost().events, 4);
        let header = source.header();
        assert_eq!(header.release.as_deref(), Some("6.12.3"), "{what}");
        let thread = &header.threads[0];
        assert_eq!((thread.pid, thread.tgid, thread.comm.as_str()), (7, Some(5), "ui"));
        assert_eq!(events[0].context.tgid, Some(5), "{what}: the process of the running thread");
        assert!(matches!(events[5].kind, TraceEventKind::Fork { parent: 7, child: 8, .. }));
    }
}

/// perf's own event begins before the tracepoints: what it tells counts, and the recording begins with them.
#[test]
fn a_recording_begins_with_its_first_sample() {
    let mut records = fork(9, 7, 20);
    records.extend(plain_records());
    let file = file(&records);
    let (events, source) = read(&file).unwrap();
    assert_eq!(shown(&events, &source), format!("100 0 PERF_RECORD_FORK\n{EVENTS}"));
}

#[test]
fn a_file_that_is_cut_anywhere_says_so_or_gives_the_events_before() {
    for file in [file(&plain_records()), file(&packed_records()), pipe()] {
        let whole = read(&file).unwrap().0.len();
        for length in 0..file.len() {
            match read(&file[..length]) {
                Ok((events, source)) => {
                    let told = source.report().cut == 1 || source.report().damage_count > 0;
                    // A pipe that ends between two records may have ended there.
                    assert!(events.len() == whole || told || file[8] == 16, "{length}");
                }
                Err(why) => assert!(why.starts_with("it"), "{length}: {why}"),
            }
        }
    }
}

#[test]
fn a_byte_that_is_wrong_anywhere_is_no_panic_and_takes_no_memory() {
    for file in [file(&plain_records()), file(&packed_records()), pipe()] {
        for at in 0..file.len() {
            for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
                let mut broken = file.clone();
                broken[at] = value;
                let _ = read(&broken);
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    let good = file(&plain_records());
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read(&file).err().unwrap_or_default()
    };
    for (told, message) in [
        (with(0, b"PERFFILE"), "it does not begin as perf.data does"),
        (with(8, &[5]), "its head has 5 bytes; known are 104 and 16"),
        (with(16, &[1]), "its descriptions of events have 1 bytes each"),
        (
            with(48, &[0; 8]),
            "its recording was not finished: it has no size; end `perf record` with Ctrl-C, not by killing it",
        ),
        (
            with(47, &[0x7f]),
            "its records at byte 9151314442816848280 claim 1040 bytes, and it has 3347",
        ),
        (
            with(72, &[1 << 4]),
            "it lacks the formats of its tracepoints (TRACING_DATA), so that their fields cannot be found",
        ),
        (with(120, &[1]), ""),
    ] {
        let words = |text: &str| {
            text.split_whitespace()
                .filter(|word| !word.bytes().any(|b| b.is_ascii_digit()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(words(&told), words(message), "{told}");
    }
    let mut no_tracepoints = good.clone();
    (no_tracepoints[120], no_tracepoints[120 + 144]) = (1, 1);
    assert!(
        read(&no_tracepoints).err().unwrap().starts_with("it holds no tracepoints; record with")
    );
}

#[test]
fn a_record_of_no_size_ends_the_file_with_a_loss() {
    let mut data = sample(100, 0, fixtures::SWITCH, &switch(IDLE, UI));
    data.extend([9, 0, 0, 0, 0, 0, 7, 0]);
    let file = file(&data);
    let (events, source) = read(&file).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(
        source.report().damages[0].what,
        "a record of 7 bytes; the rest of the file is lost"
    );
    assert_eq!(source.report().lost().uncounted, 1);
}
