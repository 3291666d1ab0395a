// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes can be explained and converted as a record, or say in which line they cannot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::convert::convert_from;
use schedtwin_trace::explain::{Query, explain_record};
use schedtwin_trace::{FtraceText, Perfetto};

fuzz_target!(|bytes: &[u8]| {
    let _ = explain_record(bytes, &Query::default(), &mut std::io::sink());
    let (mut text, mut trace) = (Vec::new(), Vec::new());
    let _ = convert_from(bytes, |meta| Ok(Box::new(FtraceText::new(&mut text, meta))));
    let _ = convert_from(bytes, |meta| Ok(Box::new(Perfetto::new(&mut trace, meta))));
});

schedtwin_fuzz::text_mutator!();
