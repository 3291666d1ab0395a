// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes can be read back as a trace of ours, listed and converted, or say in which packet they cannot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::Record;
use schedtwin_trace::convert::convert_from;
use schedtwin_trace::explain::{Query, explain_perfetto};

fuzz_target!(|bytes: &[u8]| {
    let _ = explain_perfetto(bytes, &Query::default(), &mut std::io::sink());
    let mut record = Vec::new();
    let _ = convert_from(bytes, |meta| Ok(Box::new(Record::new(&mut record, meta))));
});
