// SPDX-License-Identifier: GPL-2.0-or-later
//! Conversions between the formats that schedtwin writes.

mod sample;

use schedtwin_trace::convert::{Converted, convert};
use schedtwin_trace::{Detail, Format, create};
use std::fs;

#[test]
fn formats_turn_into_each_other() {
    let directory = std::env::temp_dir().join(format!("schedtwin-convert-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("writable");
    let path = |name: &str| directory.join(name);
    let formats = [
        ("direct.jsonl", Format::Record),
        ("direct.pftrace", Format::Perfetto),
        ("direct.txt", Format::FtraceText),
        ("direct.rec", Format::PackedRecord),
    ];
    for (name, format) in formats {
        let mut sink =
            create(&path(name), format, sample::meta(), Detail::Facts).expect("writable");
        sample::feed(&mut *sink);
        sink.finish().expect("room");
    }

    // A record loses nothing: what it turns into is what the run would have written.
    let all = Converted { facts: 34, decisions_dropped: 7 };
    for record in ["direct.jsonl", "direct.rec"] {
        for (name, format) in &formats {
            let made =
                convert(&path(record), &path("made"), *format, Detail::Facts).expect("converted");
            // Records keep what only they hold.
            let kept = matches!(format, Format::Record | Format::PackedRecord);
            let decisions_dropped = if kept { 0 } else { all.decisions_dropped };
            assert_eq!(made, Converted { decisions_dropped, ..all });
            let (made, direct) = (fs::read(path("made")), fs::read(path(name)));
            assert!(made.expect("read") == direct.expect("read"), "{record} to {name}");
        }
    }

    // A trace loses what it has no place for, but a second trace of it nothing more.
    let made = convert(&path("direct.pftrace"), &path("made.jsonl"), Format::Record, Detail::Facts);
    assert_eq!(made.expect("converted"), Converted { facts: 28, decisions_dropped: 0 });
    convert(&path("made.jsonl"), &path("again.pftrace"), Format::Perfetto, Detail::Facts)
        .expect("converted");
    convert(&path("again.pftrace"), &path("again.jsonl"), Format::Record, Detail::Facts)
        .expect("converted");
    let read = |name: &str| fs::read_to_string(path(name)).expect("read");
    assert_eq!(read("again.jsonl"), read("made.jsonl"));

    // A damaged source leaves what is there.
    fs::write(path("cut.jsonl"), &read("direct.jsonl")[..4000]).expect("written");
    let error = convert(&path("cut.jsonl"), &path("direct.txt"), Format::FtraceText, Detail::Facts);
    assert!(error.expect_err("cut").to_string().starts_with("read the record: line "));
    assert!(read("direct.txt").starts_with("cpus=40\n"));
    fs::write(path("empty"), "").expect("written");
    assert!(convert(&path("empty"), &path("made"), Format::Record, Detail::Facts).is_err());
    fs::remove_dir_all(&directory).expect("removed");
}
