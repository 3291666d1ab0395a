// SPDX-License-Identifier: GPL-2.0-or-later
//! Records come back as what was fed; damaged ones are errors that name their line.

mod sample;

use schedtwin_trace::record::{Entry, LINE_BYTES_MAX, PACKED, Reader, RecordedDecision};
use schedtwin_trace::{PackedRecord, Record, Sink};

fn written() -> String {
    let mut bytes = Vec::new();
    let mut sink = Box::new(Record::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    String::from_utf8(bytes).expect("text")
}

fn packed() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = Box::new(PackedRecord::new(&mut bytes, sample::meta()));
    sample::feed(&mut *sink);
    sink.finish().expect("memory takes everything");
    bytes
}

#[test]
fn everything_comes_back() {
    let mut expected = vec![Entry::Header(sample::meta())];
    expected.extend(sample::tasks().into_iter().map(Entry::Task));
    expected.extend(sample::facts().into_iter().map(Entry::Fact));
    for decision in sample::decisions() {
        let recorded = RecordedDecision::from(&decision.decision);
        expected.push(Entry::Decision(decision.at, decision.cpu, recorded));
    }
    expected.push(Entry::Power(2_000_000_000_100, 1, 412));
    expected.push(Entry::Power(2_000_000_000_200, 1, 412));
    expected.push(Entry::Power(2_000_000_000_200, 0, 7));
    expected.push(Entry::Prio(sample::UI, 110));
    for bytes in [written().into_bytes(), packed()] {
        let read: Result<Vec<Entry>, _> = Reader::new(&bytes[..]).collect();
        assert_eq!(read.expect("no errors"), expected);
    }
}

/// Its shape has no names: a change of it raises the version in [`PACKED`], and this number.
#[test]
fn the_bytes_of_a_packed_record_change_with_its_version_alone() {
    let bytes = packed();
    assert!(bytes.starts_with(b"schedtwin.packed-record/2 {\"schema\":\"schedtwin.record/1\","));
    let digest = schedtwin_types::fnv::Fnv1a::of(bytes.iter().copied()).digest();
    assert_eq!((bytes.len(), digest), (2159, 5_272_504_740_510_480_922));
}

#[test]
fn lines_are_readable() {
    let text = written();
    for line in [
        r#"{"schema":"schedtwin.record/1","title":"sample \"run\"","nr_cpus":40,"domains":["cpu-little","cpu-big"],"policies":[[0,1,2,3],"#,
        r#""provenance":{"version":"0.1.0","kernel":"linux-5.18+runnable-boost"}}"#,
        r#"{"task":12,"name":"ui","prio":120}"#,
        r#"{"at":1999999999200,"cpu":1,"fact":{"sched_switch":{"prev":0,"next":12,"prev_state":"R"}}}"#,
        r#"{"at":1999999998500,"cpu":1,"fact":"sched_tick"}"#,
        r#"{"at":2000000000001,"cpu":1,"decision":{"idle":{"state":2,"stop_tick":true,"sleep_length_ns":3999000,"rule":"teo: deepest enabled state","tick_rule":"a sleep of a tick or more is expected","input":{"bins":[[8,900],[7,20],[0,0]],"total":935,"util":[37,16]}}}}"#,
        r#"{"at":2000000000100,"power":{"domain":1,"mw":0,"uw":412}}"#,
    ] {
        assert!(text.contains(line), "{line}\n is not in\n{text}");
    }
}

#[test]
fn errors_name_their_line_and_reading_goes_on() {
    let header = r#"{"schema":"schedtwin.record/1","nr_cpus":2}"#;
    let good = r#"{"at":7,"cpu":1,"fact":"sched_tick","later_versions":"may add members"}"#;
    for (bad, message) in [
        ("{", "line 2: EOF while parsing an object (column 1)"),
        ("[]", "line 2: not a JSON object"),
        ("{}", "line 2: no `task` and no `at`: not a line of a record"),
        (r#"{"at":-1}"#, "line 2: invalid value: integer `-1`, expected u64 (column 8)"),
        (
            r#"{"at":1,"cpu":1}"#,
            "line 2: one of `fact`, `decision`, `power` and `chain` is expected",
        ),
        (r#"{"at":1,"cpu":2,"fact":"sched_tick"}"#, "line 2: CPU 2, but there are 2 CPUs"),
        (r#"{"at":1,"fact":"sched_tick"}"#, "line 2: missing member `cpu`"),
        (
            r#"{"at":1,"cpu":0,"fact":{"sched_switch":{"prev":1,"next":2}}}"#,
            "line 2: missing field `prev_state` (column 58)",
        ),
        (r#"{"task":1}"#, "line 2: a task without `prio`"),
        (
            r#"{"task":4294967295,"prio":1,"name":""}"#,
            "line 2: task 4294967295 is beyond the highest task number 4194304",
        ),
        (
            r#"{"at":1,"cpu":0,"fact":{"preempted":{"task":4194304}}}"#,
            "line 2: task 4194304 is beyond the highest task number 4194304",
        ),
        ("\u{0}\u{1}", "line 2: not a JSON object"),
        (&" ".repeat(LINE_BYTES_MAX as usize + 1), "line 2: longer than 1048576 bytes"),
        (&"[".repeat(100_000), "line 2: not a JSON object"),
    ] {
        let text = format!("{header}\n{bad}\n\n{good}");
        let entries: Vec<_> = Reader::new(text.as_bytes()).collect();
        let name = &bad[..bad.len().min(80)];
        assert_eq!(entries.len(), 3, "{name}");
        assert_eq!(entries[1].as_ref().expect_err(name).to_string(), message, "{name}");
        assert!(matches!(entries[2], Ok(Entry::Fact(_))), "{name}");
    }
}

#[test]
fn without_a_header_nothing_is_read() {
    for (text, message) in [
        ("", "line 1: the file is empty"),
        ("hello\nworld\n", "line 1: not a JSON object"),
        ("{}\n{}\n", "line 1: not a record: no `\"schema\":\"schedtwin.record/1\"`"),
        (
            r#"{"schema":"schedtwin.run/1"}"#,
            "line 1: schema is `schedtwin.run/1`; `schedtwin.record/1` can be read",
        ),
        (
            r#"{"schema":"schedtwin.record/1","nr_cpus":257}"#,
            "line 1: nr_cpus is 257, not within 1..=256",
        ),
        (
            r#"{"schema":"schedtwin.record/1","nr_cpus":1,"policies":[[1]]}"#,
            "line 1: policy of CPU 1, but there are 1 CPUs",
        ),
    ] {
        let entries: Vec<_> = Reader::new(text.as_bytes()).collect();
        assert_eq!(entries.len(), 1, "{text}");
        assert_eq!(entries[0].as_ref().expect_err(text).to_string(), message);
    }
    // A blank line is no header; behind one that is too long nothing is read.
    let long = "x".repeat(LINE_BYTES_MAX as usize + 1);
    for (text, message) in [
        ("\n{}\n".to_string(), "line 1: not a JSON object"),
        (format!("{long}\n{{}}\n"), "line 1: not a record: its first line is too long"),
    ] {
        let entries: Vec<_> = Reader::new(text.as_bytes()).collect();
        let faults = entries.iter().map(|entry| entry.as_ref().expect_err("none").to_string());
        assert_eq!(faults.collect::<Vec<_>>(), [message]);
    }
    let most = r#"{"schema":"schedtwin.record/1","nr_cpus":256}"#;
    assert!(Reader::new(most.as_bytes()).all(|entry| entry.is_ok()));
}

#[test]
fn truncated_and_damaged_records_do_not_panic() {
    for bytes in [written().into_bytes(), packed()] {
        for cut in (0..bytes.len()).step_by(7) {
            let _ = Reader::new(&bytes[..cut]).count();
            let mut damaged = bytes.clone();
            for value in [0u8, b'"', b'9', b'\n', 0xff] {
                damaged[cut] = value;
                let _ = Reader::new(&damaged[..]).count();
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_packed_record_is_said_by_item() {
    let whole = packed();
    let first = whole.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    let item_bytes = u32::from_le_bytes(whole[first..first + 4].try_into().unwrap());
    let second = first + 4 + item_bytes as usize;
    let told = |bytes: &[u8]| -> Vec<String> {
        Reader::new(bytes).filter_map(|entry| entry.err()).map(|fault| fault.to_string()).collect()
    };
    assert_eq!(told(&whole), [""; 0]);
    // Cut between two items it is only shorter.
    assert_eq!(told(&whole[..second]), [""; 0]);
    assert_eq!(told(&whole[..second - 1]), ["item 2: the record ends within it"]);
    assert_eq!(told(&whole[..first + 2]), ["item 2: the record ends within it"]);
    // An item of no kind: the next ones are read.
    let mut damaged = whole.clone();
    damaged[first + 4] = 99;
    let faults = told(&damaged);
    assert!(faults.len() == 1 && faults[0].starts_with("item 2: Unexpected variant"), "{faults:?}");
    // Behind a length that cannot be, nothing is known.
    damaged[first..first + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(told(&damaged), ["item 2: longer than 1048576 bytes"]);
    // What items say is checked as in lines.
    let mut few = whole.clone();
    let cpus = whole.windows(12).position(|w| w == b"\"nr_cpus\":40").expect("in the header");
    few[cpus..cpus + 12].copy_from_slice(b"\"nr_cpus\": 1");
    assert!(told(&few)[0].starts_with("item 1: policy of CPU 1"), "{:?}", told(&few));
    let other = format!("{}1 {{}}\n", &PACKED[..PACKED.len() - 1]);
    assert_eq!(
        told(other.as_bytes()),
        [format!("line 1: packed as `{}1`; `{PACKED}` can be read", &PACKED[..PACKED.len() - 1])]
    );
}

/// The rest of a line that is too long belongs to it, whether or not a line end follows, and lines keep their numbers.
#[test]
fn the_rest_of_an_overlong_line_is_no_line() {
    let long = "x".repeat(LINE_BYTES_MAX as usize + 100);
    let text = format!("{{\"schema\":\"schedtwin.record/1\",\"nr_cpus\":2}}\n{long}\n{{}}\n{long}");
    // Small pieces: the rest is longer than what is read at once.
    let input = std::io::BufReader::with_capacity(64, text.as_bytes());
    let faults: Vec<String> = Reader::new(input)
        .skip(1)
        .map(|entry| entry.expect_err("not a line").to_string())
        .collect();
    assert_eq!(
        faults,
        [
            "line 2: longer than 1048576 bytes",
            "line 3: no `task` and no `at`: not a line of a record",
            "line 4: longer than 1048576 bytes",
        ]
    );
}
