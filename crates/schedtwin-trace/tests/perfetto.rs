// SPDX-License-Identifier: GPL-2.0-or-later
//! Perfetto traces are read back, by an independent reader, as what was fed.

mod sample;

use schedtwin_trace::perfetto_read::{self, Event};
use schedtwin_trace::{Meta, Perfetto, Sink, TaskInfo};
use schedtwin_types::{Fact, FactKind, TaskId};

/// What the format holds of a fact; `None` if it is left out.
fn carried(fact: &Fact) -> Option<Event> {
    let kind = match fact.kind {
        FactKind::Preempted { .. }
        | FactKind::DlThrottled { .. }
        | FactKind::CgroupAttach { .. }
        | FactKind::CfsThrottled { .. }
        | FactKind::Balance { moved: 0, .. } => return None,
        FactKind::Overutilized { .. } | FactKind::TaskSignals { .. } => {
            return Some(Event::Unplaced { at: fact.at, kind: fact.kind });
        }
        FactKind::IdleEnter { state, .. } => FactKind::IdleEnter { state, tick_stopped: false },
        FactKind::IdleExit { .. } => FactKind::IdleExit { state: 0, residency_ns: 0 },
        FactKind::IrqExit { .. } => FactKind::IrqExit { spent_ns: 0 },
        FactKind::Frequency { policy, khz, .. } => {
            FactKind::Frequency { policy, khz, requested_at: fact.at }
        }
        other => other,
    };
    Some(Event::Fact(Fact { kind, ..*fact }))
}

fn sorted(mut events: Vec<Event>) -> Vec<String> {
    let at = |event: &Event| match *event {
        Event::Fact(fact) => fact.at,
        Event::Unplaced { at, .. } | Event::Power { at, .. } => at,
    };
    events.sort_by_key(at);
    let mut lines: Vec<(u64, String)> =
        events.iter().map(|event| (at(event), format!("{event:?}"))).collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn every_kind_of_fact_comes_back() {
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");

    let mut events = Vec::new();
    let contents = perfetto_read::read(&bytes[..], &mut |event| events.push(event)).expect("read");
    // Perfetto has no field for cgroups.
    assert_eq!(contents.meta, Meta { cgroups: Vec::new(), ..sample::meta() });
    assert_eq!(contents.tasks, sample::tasks());

    let facts = sample::facts();
    // The second of two equal samples changes nothing.
    let mut expected: Vec<Event> = Vec::new();
    for (index, fact) in facts.iter().enumerate() {
        if index == 0 || fact.kind != facts[index - 1].kind {
            expected.extend(carried(fact));
        }
    }
    expected.push(Event::Power { at: 2_000_000_000_100, domain: 1, microwatts: 412 });
    expected.push(Event::Power { at: 2_000_000_000_200, domain: 0, microwatts: 7 });
    assert_eq!(sorted(events), sorted(expected));
}

#[test]
fn long_streams_come_back_across_bundles() {
    let mut meta = sample::meta();
    meta.nr_cpus = 40;
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, meta));
    for id in 1..=200 {
        sink.task(&TaskInfo { id: TaskId(id), name: format!("worker/{id}"), prio: 120 });
    }
    let mut expected = Vec::new();
    sample::stream(100_000, 40, 200, |fact| {
        sink.fact(&fact);
        expected.extend(carried(&fact));
    });
    sink.finish().expect("memory takes everything");
    let mut events = Vec::new();
    let contents = perfetto_read::read(&bytes[..], &mut |event| events.push(event)).expect("read");
    assert!(contents.packets > 80, "{} packets: several bundles a CPU", contents.packets);
    assert_eq!(events.len(), expected.len());
    assert!(sorted(events) == sorted(expected));
}

#[test]
fn priorities_are_those_of_the_moment() {
    use prost::Message;
    use schedtwin_trace::perfetto_messages::{Data, TracePacket};
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()));
    sink.task(&TaskInfo { id: sample::UI, name: "ui".into(), prio: 120 });
    let switches: Vec<Fact> = sample::facts()
        .into_iter()
        .filter(|fact| fact.cpu.0 == 1 && matches!(fact.kind, FactKind::Switch { .. }))
        .collect();
    sink.fact(&switches[0]);
    sink.task_prio(sample::UI, 101);
    sink.fact(&switches[1]);
    sink.fact(&Fact { at: switches[1].at + 50, ..switches[0] });
    sink.finish().expect("memory takes everything");

    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<TracePacket>,
    }
    let trace = Trace::decode(&bytes[..]).expect("a trace is a message");
    let bundles: Vec<_> = trace
        .packet
        .into_iter()
        .filter_map(|packet| match packet.data {
            Some(Data::FtraceEvents(bundle)) => bundle.compact_sched,
            _ => None,
        })
        .collect();
    assert_eq!(bundles.len(), 1);
    assert_eq!(bundles[0].switch_next_prio, [120, 120, 101]);
    assert_eq!(bundles[0].intern_table, ["ui", "swapper/1"]);
    assert_eq!(bundles[0].switch_next_comm_index, [0, 1, 0]);
    let step = switches[1].at - switches[0].at;
    assert_eq!(bundles[0].switch_timestamp, [switches[0].at, step, 50]);
}

/// Decisions are written only if asked for, each as one instant.
#[test]
fn decisions_are_instants_if_asked_for() {
    use prost::Message;
    use schedtwin_trace::perfetto_messages::{
        Data, DebugAnnotation, InternedData, TracePacket, TrackEvent,
    };
    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<TracePacket>,
    }
    let written = |decisions: bool| {
        let mut bytes = Vec::new();
        let trace = Perfetto::new(&mut bytes, sample::meta());
        let mut sink = Box::new(if decisions { trace.with_decisions() } else { trace });
        assert_eq!(sink.wants_decisions(), decisions);
        sample::feed(&mut *sink);
        sink.finish().expect("memory takes everything");
        bytes
    };
    let (plain, explained) = (written(false), written(true));
    assert!(plain.len() < explained.len());
    let trace = Trace::decode(&explained[..]).expect("a trace is a message");
    let mut interned = InternedData::default();
    let mut instants: Vec<(u64, TrackEvent)> = Vec::new();
    for packet in trace.packet {
        if let Some(new) = packet.interned_data {
            interned.event_categories.extend(new.event_categories);
            interned.event_names.extend(new.event_names);
            interned.debug_annotation_names.extend(new.debug_annotation_names);
            interned.debug_annotation_string_values.extend(new.debug_annotation_string_values);
        }
        match packet.data {
            Some(Data::TrackEvent(event)) if !event.category_iids.is_empty() => {
                assert_eq!(packet.sequence_flags, Some(2), "it refers to what came before");
                instants.push((packet.timestamp.expect("an instant has a time"), event));
            }
            _ => {}
        }
    }
    let InternedData { event_categories, event_names, .. } = &interned;
    let event_name = |event: &TrackEvent| {
        let name = event_names.iter().find(|name| name.iid == event.name_iid).expect("a name");
        let category = Some(event.category_iids[0]);
        let category = event_categories.iter().find(|one| one.iid == category).expect("a category");
        assert!(name.name().starts_with(&format!("{}: ", category.name())));
        name.name().to_string()
    };
    let names: Vec<String> = instants.iter().map(|(_, event)| event_name(event)).collect();
    assert_eq!(
        names,
        [
            "placement: feec: least energy",
            "frequency: changed",
            "idle: teo: deepest enabled state",
            "balance: find_src_group: overloaded",
            "balance: find_src_group: nobody has a task to pull",
            "preemption: PREEMPT_SHORT: shorter slice, earliest eligible deadline",
            "pick: pick_eevdf: earliest eligible deadline",
        ]
    );
    let times: Vec<u64> = instants.iter().map(|(at, _)| *at).collect();
    let expected: Vec<u64> = sample::decisions().iter().map(|decision| decision.at).collect();
    assert_eq!(times, expected);
    let named = |details: &[DebugAnnotation], name: &str| -> DebugAnnotation {
        let names = &interned.debug_annotation_names;
        let number = names.iter().find(|known| known.name() == name).expect(name).iid;
        details.iter().find(|detail| detail.name_iid == number).cloned().unwrap_or_default()
    };
    let text = |detail: DebugAnnotation| -> String {
        let texts = &interned.debug_annotation_string_values;
        let text = texts.iter().find(|text| text.iid == detail.string_value_iid).expect("a text");
        String::from_utf8(text.str().to_vec()).expect("a name")
    };
    let placement = &instants[0].1.debug_annotations;
    assert_eq!(text(named(placement, "task_name")), "ui");
    assert_eq!(named(placement, "chosen").uint_value(), 6);
    let candidates = named(placement, "candidates").array_values;
    assert_eq!(candidates.len(), 3);
    assert_eq!(named(&candidates[1].dict_entries, "energy_delta").uint_value(), 99_999);
    let none = DebugAnnotation::default();
    assert_eq!(named(&candidates[2].dict_entries, "energy_delta"), none);
    let pick = named(&instants[6].1.debug_annotations, "candidates").array_values;
    assert_eq!(named(&pick[0].dict_entries, "lag").int_value(), -1_500);
    // The reader of runs passes over them.
    let read = |bytes: &[u8]| {
        let mut events = Vec::new();
        let contents = perfetto_read::read(bytes, &mut |event| events.push(event)).expect("read");
        (contents.decisions, contents.meta, sorted(events))
    };
    let (none, meta, events) = read(&plain);
    assert_eq!(none, 0);
    assert_eq!(read(&explained), (7, meta, events));
}

#[test]
fn damaged_traces_are_errors() {
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    let read = |bytes: &[u8]| perfetto_read::read(bytes, &mut |_| ());
    for (damage, message) in [
        (&b""[..], "packet 0: the trace has no system information"),
        (b"hello", "packet 1: not a Perfetto trace"),
        (
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "packet 1: a number of more than 64 bits",
        ),
        (b"\x0a\xff\xff\xff\xff\x7f", "packet 1: 34359738367 bytes, more than 16777216"),
        (b"\x0a\x05abc", "packet 1: ends after 3 of 5 bytes"),
        (b"\x0a\x02\x40\x01", "packet 1: not a trace that schedtwin wrote"),
    ] {
        assert_eq!(read(damage).expect_err(message).to_string(), message);
    }
    // Every prefix and every changed byte: an answer, no panic.
    for cut in 0..bytes.len() {
        let _ = read(&bytes[..cut]);
        for value in [0, 0x7f, 0xff, bytes[cut] ^ 1] {
            let mut damaged = bytes.clone();
            damaged[cut] = value;
            let _ = read(&damaged);
        }
    }
}

/// A track that hangs below another one hangs below one that is there, and no two have one number.
#[test]
fn tracks_hang_together() {
    use prost::Message;
    use schedtwin_trace::perfetto_messages::{Data, TracePacket};
    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<TracePacket>,
    }
    let mut bytes = Vec::new();
    let mut sink = Box::new(Perfetto::new(&mut bytes, sample::meta()));
    sink.task(&TaskInfo { id: sample::UI, name: "ui".into(), prio: 120 });
    sample::facts().iter().for_each(|fact| sink.fact(fact));
    sink.finish().expect("memory takes everything");
    let trace = Trace::decode(&bytes[..]).expect("a trace is a message");
    let tracks = trace.packet.into_iter().filter_map(|packet| match packet.data {
        Some(Data::TrackDescriptor(track)) => Some((track.uuid, track.parent_uuid)),
        _ => None,
    });
    let tracks: Vec<(Option<u64>, Option<u64>)> = tracks.collect();
    let mut numbers: Vec<_> = tracks.iter().map(|(number, _)| number.expect("a number")).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let above: Vec<u64> = tracks.iter().filter_map(|(_, above)| *above).collect();
    assert!(!above.is_empty() && above.iter().all(|number| numbers.contains(number)), "{above:?}");
}
