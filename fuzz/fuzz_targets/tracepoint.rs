// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text can be read as the format of a tracepoint, and any bytes behind it as its records and pages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::event::Names;
use schedtwin_trace::marker;
use schedtwin_trace::tracepoint::{ByteOrder, Decoder, Format, PageCursor, PageLayout};

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.windows(2).position(|two| two == b"\0\0").unwrap_or(bytes.len());
    let (text, records) = bytes.split_at(cut);
    let text = String::from_utf8_lossy(text);
    let names = &mut Names::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut decoder = Decoder::default();
        if let Ok(format) = Format::parse(&text) {
            let _ = decoder.add("sched", &format, order, names);
            let _ = decoder.decode(records, names);
        }
        let layout = PageLayout::parse(&text, order).unwrap_or(PageLayout::of_long(8, order));
        let Ok((mut cursor, _)) = PageCursor::open(&layout, records) else { continue };
        let mut count = 0;
        while let Ok(Some(place)) = cursor.next(records) {
            let _ = decoder.decode(&records[place.start..place.end], names);
            count += 1;
            assert!(4 * count <= records.len(), "each record has at least its head");
        }
    }
    let _ = marker::parse(bytes, names);
});
