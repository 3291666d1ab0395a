//! Any bytes can be explained, or say in which line they cannot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedtwin_trace::explain::{Query, explain_record};

fuzz_target!(|bytes: &[u8]| {
    let _ = explain_record(bytes, &Query::default(), &mut std::io::sink());
});
