// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces made of messages: both forms of events, packed packets, losses, damage.

use super::messages::{
    DisplayFrame, EnergyData, FrameEnd, FrameTimeline, Packet, PowerRails, RailDescriptor,
};
use super::{PerfettoTrace, is_perfetto};
use crate::event::listing::{read_to_the_end, shown};
use crate::event::{Interrupt, Left, TraceEvent, TraceEventKind, TraceSource};
use crate::perfetto_messages::{
    Clock, ClockSnapshot, CompactSched, FtraceEventBundle as Bundle, ProcessTree, SystemInfo,
    Thread, Utsname,
};
use prost::Message;
use prost::bytes::Bytes;
use std::io::{Cursor, Read};

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
struct Switch {
    #[prost(bytes = "bytes", optional, tag = "1")]
    prev_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    prev_state: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    next_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "6")]
    next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    next_prio: Option<i32>,
}

/// A name and numbers: `sched_waking`, `sched_migrate_task`, `sched_process_exit` and the like.
#[derive(Clone, PartialEq, Message)]
struct NameNumbers {
    #[prost(bytes = "bytes", optional, tag = "1")]
    name: Option<Bytes>,
    #[prost(int64, optional, tag = "2")]
    second: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    third: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    fourth: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    fifth: Option<i64>,
}

/// Numbers only: `cpu_idle`, `softirq_entry`, `hrtimer_start` and the like.
#[derive(Clone, Copy, PartialEq, Message)]
struct Numbers {
    #[prost(int64, optional, tag = "1")]
    first: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    second: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    third: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    fourth: Option<i64>,
}

/// A number, a name and a number: `print`, `irq_handler_entry`, `task_newtask`.
#[derive(Clone, PartialEq, Message)]
struct NumberName {
    #[prost(int64, optional, tag = "1")]
    first: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    name: Option<Bytes>,
    #[prost(int64, optional, tag = "3")]
    third: Option<i64>,
}

fn text(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

/// An event of a message: its number, and the message.
fn event(at: u64, pid: u32, number: u32, body: &impl Message) -> Bytes {
    use prost::encoding::{WireType, encode_key, encode_varint};
    let mut bytes = Vec::new();
    for (field, value) in [(1, at), (2, u64::from(pid))] {
        encode_key(field, WireType::Varint, &mut bytes);
        encode_varint(value, &mut bytes);
    }
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(body.encoded_len() as u64, &mut bytes);
    body.encode(&mut bytes).unwrap();
    bytes.into()
}

fn of_bundle(bundle: &Bundle) -> Packet {
    Packet {
        ftrace_events: Some(bundle.encode_to_vec().into()),
        sequence: Some(2),
        ..Packet::default()
    }
}

/// A file of packets.
fn file(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.push(0x0a);
        packet.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

/// Two switches and a waking in columns: at 100 to 7, at 150 back to idle; in between 7 is woken from an interrupt.
fn compact(cpu: u32, start: u64) -> Bundle {
    Bundle {
        cpu: Some(cpu),
        compact_sched: Some(CompactSched {
            intern_table: vec![Bytes::from_static(b"ui\xff"), Bytes::from_static(b"swapper")],
            switch_timestamp: vec![start, 50],
            switch_prev_state: vec![1, 0x102],
            switch_next_pid: vec![7, 0],
            switch_next_prio: vec![-1, 120],
            switch_next_comm_index: vec![0, 1],
            waking_timestamp: vec![start + 20],
            waking_pid: vec![9],
            waking_target_cpu: vec![3],
            waking_prio: vec![98],
            waking_comm_index: vec![0],
            waking_common_flags: vec![0x09],
        }),
        ..Bundle::default()
    }
}

/// Events of other kinds, and a switch that is not in columns.
fn plain(cpu: u32, start: u64) -> Bundle {
    let idle =
        Numbers { first: Some(0xffff_ffff), second: Some(i64::from(cpu)), ..Numbers::default() };
    let print = NumberName { name: text("B|7|draw\n"), ..NumberName::default() };
    let switch = Switch {
        prev_comm: text("ui"),
        prev_pid: Some(7),
        prev_prio: Some(120),
        prev_state: Some(0),
        next_comm: text("b"),
        next_pid: Some(8),
        next_prio: Some(98),
    };
    let migrate = NameNumbers {
        name: text("ui"),
        second: Some(7),
        third: Some(120),
        fourth: Some(0),
        fifth: Some(1),
    };
    Bundle {
        cpu: Some(cpu),
        event: vec![
            event(start, 0, 13, &idle),
            event(start + 10, 7, 3, &print),
            event(start + 20, 7, 4, &switch),
            event(start + 30, 8, 491, &migrate),
            event(start + 40, 8, 7777, &NameNumbers::default()),
            event(
                start + 50,
                8,
                327,
                &NameNumbers { name: text("sugov_next_freq"), ..NameNumbers::default() },
            ),
        ],
        ..Bundle::default()
    }
}

fn read(file: &[u8]) -> (Vec<TraceEvent>, PerfettoTrace<Cursor<Vec<u8>>>) {
    read_to_the_end(PerfettoTrace::open(Cursor::new(file.to_vec())).unwrap()).unwrap()
}

/// CPU 1's bundle stands before the earlier one of CPU 0.
fn packets() -> Vec<Packet> {
    vec![of_bundle(&compact(1, 300)), of_bundle(&compact(0, 100)), of_bundle(&plain(0, 310))]
}

const EVENTS: &str = "100 0 sched_switch\n120 0 sched_waking\n150 0 sched_switch\n300 1 sched_switch\n\
    310 0 cpu_idle\n320 0 print\n320 1 sched_waking\n330 0 sched_switch\n340 0 sched_migrate_task\n\
    350 0 ftrace_event_7777\n350 1 sched_switch\n360 0 sugov_next_freq\n";

#[test]
fn plain_and_packed_packets_hold_the_same_events_in_the_order_of_time() {
    let plain = file(&packets());
    let mut deflated = Vec::new();
    let mut encoder = flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::best());
    encoder.read_to_end(&mut deflated).unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    let packed = [
        Packet { compressed_packets: Some(deflated.into()), ..Packet::default() },
        Packet { zstd_compressed_packets: Some(zstd.into()), ..Packet::default() },
    ];
    for file in [plain, file(&packed[..1]), file(&packed[1..])] {
        assert!(is_perfetto(&file));
        let (events, source) = read(&file);
        assert_eq!(shown(&events, &source), EVENTS);
        assert_eq!((source.report().damage_count, source.report().cut), (0, 0));
        assert_eq!(source.header().clock.as_deref(), Some("boot"));
    }
}

#[test]
fn columns_give_the_previous_task_of_a_cpu_but_never_guess_the_first() {
    let (events, source) = read(&file(&[of_bundle(&compact(0, 100))]));
    let TraceEventKind::Switch { prev, left, next } = events[0].kind else { panic!("{events:?}") };
    assert_eq!((prev, left, next.pid, next.prio), (None, Left::Asleep, 7, -1));
    let TraceEventKind::Waking { task, target } = events[1].kind else { panic!("{events:?}") };
    assert_eq!((task.pid, task.prio, target.unwrap().0), (9, 98, 3));
    assert_eq!(events[1].context.pid, 7, "the waker is the task that runs");
    assert_eq!(
        (events[1].context.interrupt, events[1].context.irqs_off),
        (Interrupt::Hardirq, Some(true))
    );
    let TraceEventKind::Switch { prev, left, next } = events[2].kind else { panic!("{events:?}") };
    let prev = prev.unwrap();
    assert_eq!((prev.pid, source.names().text(prev.comm)), (7, "ui\u{fffd}"));
    assert_eq!((left, next.pid), (Left::Blocked, 0));
}

#[test]
fn after_a_loss_the_task_that_ran_is_not_believed() {
    let lossy = Bundle { lost_events: Some(true), ..compact(0, 500) };
    let (events, source) = read(&file(&[of_bundle(&compact(0, 100)), of_bundle(&lossy)]));
    assert!(matches!(events[3].kind, TraceEventKind::Lost { events: None }));
    assert!(matches!(events[4].kind, TraceEventKind::Switch { prev: None, .. }));
    assert_eq!(source.report().lost().uncounted, 1);
    // A packet of the sequence is missing, which is told by the next one.
    let dropped = Packet { previous_packet_dropped: Some(1), ..of_bundle(&compact(0, 500)) };
    let (events, _) = read(&file(&[of_bundle(&compact(0, 100)), dropped.clone()]));
    assert!(matches!(events[3].kind, TraceEventKind::Lost { events: None }));
    // The first packet of a sequence has the flag, too.
    assert!(
        !read(&file(&[dropped]))
            .0
            .iter()
            .any(|event| matches!(event.kind, TraceEventKind::Lost { .. }))
    );
}

#[test]
fn damage_is_told_and_the_rest_read() {
    let mut short = compact(0, 100);
    short.compact_sched.as_mut().unwrap().switch_next_prio.pop();
    let mut outside = compact(0, 100);
    outside.compact_sched.as_mut().unwrap().waking_comm_index[0] = 2;
    let no_cpu = Bundle { cpu: None, ..compact(0, 100) };
    let far_cpu = Bundle { cpu: Some(1024), ..compact(0, 100) };
    let unknown_clock = Bundle { ftrace_clock: Some(1), ..compact(0, 100) };
    let bad_event = Bundle { event: vec![Bytes::from_static(b"\x08")], ..compact(0, 100) };
    let guest = Packet { machine: Some(3), ..of_bundle(&compact(0, 100)) };
    // A guest's events are counted and left out: they are no damage of the host's.
    let (events, source) = read(&file(&[guest, of_bundle(&compact(0, 100))]));
    assert!(!events.is_empty() && source.report().damage_count == 0);
    assert_eq!(source.report().elsewhere, 1);
    let nested = {
        let inner = file(&[Packet { compressed_packets: text("x"), ..Packet::default() }]);
        let mut deflated = Vec::new();
        flate2::read::ZlibEncoder::new(&inner[..], flate2::Compression::fast())
            .read_to_end(&mut deflated)
            .unwrap();
        Packet { compressed_packets: Some(deflated.into()), ..Packet::default() }
    };
    let not_packed = Packet { zstd_compressed_packets: text("not packed"), ..Packet::default() };
    for (packet, events, what) in [
        (
            of_bundle(&short),
            2,
            "columns of events of different lengths; what they all have is used",
        ),
        (of_bundle(&outside), 2, "a sched_waking whose name or pid is out of range"),
        (of_bundle(&no_cpu), 0, "a bundle of events without a CPU"),
        (of_bundle(&far_cpu), 0, "a bundle of events of CPU 1024"),
        (of_bundle(&unknown_clock), 0, "events in the clock that is told as unknown are left out"),
        (of_bundle(&bad_event), 3, "an event that cannot be read"),
        (nested, 0, "a packed packet within a packed one; it is left out"),
        (not_packed, 0, "a packed packet cannot be unpacked: "),
    ] {
        let (read, source) = read(&file(&[packet]));
        assert_eq!(read.len(), events, "{what}");
        let damages = &source.report().damages;
        assert!(damages.len() == 1 && damages[0].what.starts_with(what), "{what}: {damages:?}");
    }
}

#[test]
fn a_trace_that_is_cut_or_changed_anywhere_is_no_panic_and_what_is_whole_is_read() {
    let good = file(&packets());
    let mut most = 0;
    for length in 1..good.len() {
        let (events, source) = read(&good[..length]);
        // Of a packet that is cut its whole events are read.
        assert!((most..=12).contains(&events.len()), "{length}: {} events", events.len());
        most = events.len();
        assert!(source.report().cut == 1 || events.len() < 12, "{length}");
    }
    for at in 1..good.len() {
        for value in [0, 1, 0x0a, 0x7f, 0x80, 0xff] {
            let mut broken = good.clone();
            broken[at] = value;
            read(&broken);
        }
    }
}

#[test]
fn frames_come_in_the_clock_of_the_events() {
    let clocks = |boot, mono| ClockSnapshot {
        clocks: vec![
            Clock { clock_id: Some(6), timestamp: Some(boot) },
            Clock { clock_id: Some(3), timestamp: Some(mono) },
        ],
        ..ClockSnapshot::default()
    };
    let begin = FrameTimeline {
        actual_display: Some(DisplayFrame {
            cookie: Some(5),
            token: Some(6),
            pid: Some(7),
            jank: Some(64),
        }),
        ..FrameTimeline::default()
    };
    let end =
        FrameTimeline { frame_end: Some(FrameEnd { cookie: Some(5) }), ..FrameTimeline::default() };
    let frame = |at, clock, frame: &FrameTimeline| Packet {
        timestamp: Some(at),
        timestamp_clock: clock,
        frame_timeline: Some(frame.encode_to_vec().into()),
        ..Packet::default()
    };
    let packets = [
        Packet {
            clock_snapshot: Some(clocks(1000, 900).encode_to_vec().into()),
            ..Packet::default()
        },
        of_bundle(&compact(0, 100)),
        frame(40, Some(3), &begin),
        frame(149, None, &end),
        frame(149, Some(64), &end),
    ];
    let (events, source) = read(&file(&packets));
    assert_eq!(
        shown(&events, &source),
        "100 0 sched_switch\n120 0 sched_waking\n140 0 frame_timeline_begin\n149 0 frame_timeline_end\n150 0 sched_switch\n"
    );
    assert!(matches!(
        events[2].kind,
        TraceEventKind::FrameBegin { cookie: 5, token: 6, pid: 7, jank: 64, .. }
    ));
    assert_eq!(
        source.report().damages[0].what,
        "a span of the frame timeline whose clock is not known"
    );
}

#[test]
fn the_header_says_who_was_recorded() {
    let tree = |name: &'static str| ProcessTree {
        threads: vec![Thread { tid: Some(8), name: text(name), tgid: Some(7) }],
        ..ProcessTree::default()
    };
    let system = SystemInfo {
        utsname: Some(Utsname { release: text("4.9.0-android"), ..Utsname::default() }),
        num_cpus: Some(8),
        ..SystemInfo::default()
    };
    let parts = [
        Packet { process_tree: Some(tree("old").encode_to_vec().into()), ..Packet::default() },
        Packet { process_tree: Some(tree("new").encode_to_vec().into()), ..Packet::default() },
        Packet { system_info: Some(system.encode_to_vec().into()), ..Packet::default() },
        // Before 4.14, 0x40 was a task that is gone.
        {
            let mut bundle = compact(0, 100);
            bundle.compact_sched.as_mut().unwrap().switch_prev_state[0] = 0x40;
            of_bundle(&bundle)
        },
    ];
    let (events, source) = read(&file(&parts));
    let header = source.header();
    assert_eq!((header.release.as_deref(), header.nr_cpus), (Some("4.9.0-android"), Some(8)));
    let [thread] = &header.threads[..] else { panic!("{:?}", header.threads) };
    assert_eq!((thread.pid, thread.tgid, thread.comm.as_str()), (8, Some(7), "new"));
    assert!(matches!(events[0].kind, TraceEventKind::Switch { left: Left::Dead, .. }));
}

#[test]
fn text_that_begins_with_a_line_feed_is_no_trace() {
    assert!(!is_perfetto(
        b"\n# tracer: nop\n#\n# entries-in-buffer/entries-written: 3/3\n a-1 [000] 5.0: x: y\n"
    ));
    assert!(!is_perfetto(b"\n\n\n\n"));
    assert!(!is_perfetto(b""));
}

/// Columns do not tell the thread before the first switch; no format that the trace is converted to loses the switch.
#[test]
fn the_first_switch_of_each_cpu_is_converted() {
    use crate::event_out::{EventPerfetto, EventSink, EventText, EventTraceDat, write_events};
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.txt", "a.dat", "a.pftrace"] {
        let path = folder.path().join(name);
        let mut source = PerfettoTrace::open(Cursor::new(file(&packets()))).unwrap();
        let header = source.header().clone();
        let sink: Box<dyn EventSink> = match name {
            "a.txt" => Box::new(EventText::create(&path, 2).unwrap()),
            "a.dat" => Box::new(EventTraceDat::create(&path, &header).unwrap()),
            _ => Box::new(EventPerfetto::create(&path, &header).unwrap()),
        };
        let written = write_events(&mut source, sink).unwrap();
        assert!(written.dropped.iter().all(|(event, _)| event != "sched_switch"), "{written:?}");
        let (events, source) = read_to_the_end(crate::sources::open(&path).unwrap()).unwrap();
        assert_eq!(source.report().damage_count, 0, "{:?}", source.report().damages);
        let firsts = events.iter().filter_map(|event| match event.kind {
            TraceEventKind::Switch { prev: None, left, next } => {
                Some((event.at, event.cpu.0, left, next.pid))
            }
            _ => None,
        });
        let firsts: Vec<_> = firsts.collect();
        assert_eq!(firsts, [(100, 0, Left::Asleep, 7), (300, 1, Left::Asleep, 7)], "{name}");
    }
}

/// Energy counts become each rail's mean; names may come behind them, and a meter may begin anew.
#[test]
fn power_rails_are_read() {
    let rail = |index: u32, name: &'static str| RailDescriptor {
        index: Some(index),
        name: Some(Bytes::from_static(name.as_bytes())),
        subsystem: None,
    };
    let count = |index: u32, ms: u64, uws: u64| EnergyData {
        index: Some(index),
        timestamp_ms: Some(ms),
        energy_uws: Some(uws),
    };
    let of = |descriptors: Vec<RailDescriptor>, counts: Vec<EnergyData>| Packet {
        power_rails: Some(PowerRails { descriptors, counts }.encode_to_vec().into()),
        ..Packet::default()
    };
    let mut all = packets();
    all.push(of(vec![], vec![count(0, 1000, 500), count(7, 1000, 900_000)]));
    all.push(of(vec![rail(0, "CPUCL0"), rail(7, "CPUCL2")], vec![count(0, 3000, 2500)]));
    all.push(of(vec![], vec![count(7, 2000, 100), count(7, 2500, 600)]));
    let (_, source) =
        read_to_the_end(PerfettoTrace::open(Cursor::new(file(&all))).unwrap()).unwrap();
    let rails = &source.header().rails;
    let means: Vec<_> = rails.iter().map(|rail| (&rail.name[..], rail.mean_mw())).collect();
    assert_eq!(means, [("CPUCL0", Some(1.0)), ("CPUCL2", Some(1.0))]);
}
